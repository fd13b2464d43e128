"""Command line: list, inspect and run designs; inspect models and robot files."""

from ._main import main as main
