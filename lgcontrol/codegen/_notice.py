"""Notices and progress: through logging, so that they never stop a computation."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_logger = logging.getLogger("lgcontrol.codegen")
_said: set[str] = set()
PATIENCE = 3.0  # s that people wait without a word; twice as long each time after that


def notice(topic: str, message: str) -> None:
    """Log a warning; a second one on the same topic goes to the debug level."""
    level = logging.DEBUG if topic in _said else logging.WARNING
    _said.add(topic)
    _logger.log(level, "lgcontrol: %s", message)


class Progress:
    """Says how far something has come that takes longer than a few seconds.

    Examples
    --------
    >>> progress = Progress("plan of a cart")
    >>> for k in range(3):  # logged after 3 s, after 6, after 12
    ...     progress.tell(lambda k=k: f"{k} iterations")
    """

    def __init__(self, name: str) -> None:
        self.name, self._began, self._due = name, time.perf_counter(), PATIENCE

    def tell(self, how_far: Callable[[], str]) -> None:
        """Log how far it is, if people have waited long enough."""
        spent = time.perf_counter() - self._began
        if spent >= self._due:
            self._due = 2 * max(spent, self._due)
            _logger.warning("lgcontrol: %s: %s, %.0f s so far", self.name, how_far(), spent)
