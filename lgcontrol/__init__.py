"""Control and estimation on Lie groups: models, linearization, MPC, simulation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mechanics import Multibody as Multibody
    from .systems import Input as Input
    from .systems import Parameter as Parameter
    from .systems import System as System
    from .systems import Trajectory as Trajectory

# Where each name lives: packages load when a name of theirs is first used.
_HOME = {
    "Input": "systems",
    "Multibody": "mechanics",
    "Parameter": "systems",
    "System": "systems",
    "Trajectory": "systems",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
