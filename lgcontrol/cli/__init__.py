"""Command line: list, inspect and run designs; inspect models and robot files.

`main` is the program ``lgcontrol``.
"""

from ._program import main as main
