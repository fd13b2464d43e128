"""Control on Lie groups: models, trim, linearization, MPC, closed-loop simulation."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

# Where each public name lives: packages load when a name of theirs is first used. The list is the
# stub that type checkers read, ``from .room import Name as Name`` a line.
_HOME: dict[str, str] = {
    name: room
    for room, name in re.findall(
        r"^from \.(\w*) import (\w+) as \2$",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
}
_PACKAGES = tuple(name for name, room in _HOME.items() if not room)


def __getattr__(name: str) -> Any:
    """Import a public name or a package on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Where a name is that is not at the top."""
    if name.startswith("_"):
        return ""  # what debuggers and notebooks ask of every object
    for package in _PACKAGES:
        if name in vars(import_module(f".{package}", __name__)):
            return f"; {name} is in {__name__}.{package}"
    return ""


def __dir__() -> list[str]:
    special = {name for name in globals() if name.startswith("__")}
    return sorted({*special, *_HOME})
