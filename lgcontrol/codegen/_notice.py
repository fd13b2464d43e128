"""Notices: said once a process, through logging, so that they never stop a computation."""

from __future__ import annotations

import logging

_logger = logging.getLogger("lgcontrol.codegen")
_said: set[str] = set()


def notice(topic: str, message: str) -> None:
    """Log a warning; a second one on the same topic goes to the debug level.

    Parameters
    ----------
    topic : str
        What it is about; each is told once.
    message : str
    """
    level = logging.DEBUG if topic in _said else logging.WARNING
    _said.add(topic)
    _logger.log(level, "lgcontrol: %s", message)
