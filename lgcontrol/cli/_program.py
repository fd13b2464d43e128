"""The program: its commands are loaded here, so that Ctrl-C meanwhile ends it in one line too."""

from __future__ import annotations

import sys
from collections.abc import Sequence

STOPPED = 130  # what shells say of Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program name; those of the process if left out.

    Returns
    -------
    int
        0 if everything worked and all criteria were met; 2 for bad input; 130 after Ctrl-C.
        1 if a task failed: a criterion was not met, the run ended early, or the design raised. It
        is 1, too, if a case of a campaign failed. A search fails if what it found succeeds in no
        held-out case. A search that shows nothing better has worked.

    Raises
    ------
    SystemExit
        For words that are no command or option (status 2), and after ``--help``.

    Examples
    --------
    >>> main(["list"])  # doctest: +ELLIPSIS
    designs:
    ...
    0
    """
    try:
        from ._main import run_words  # loads NumPy, which takes long enough to be interrupted

        return run_words(arguments)
    except KeyboardInterrupt as interrupt:
        print(f"\nlgcontrol: {str(interrupt) or 'stopped'}", file=sys.stderr)
        return STOPPED
