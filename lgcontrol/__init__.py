"""Control and estimation on Lie groups: models, linearization, MPC, simulation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mechanics import Multibody as Multibody
    from .simulation import Cascade as Cascade
    from .simulation import Criterion as Criterion
    from .simulation import HeldNoise as HeldNoise
    from .simulation import InputSignal as InputSignal
    from .simulation import Kick as Kick
    from .simulation import Pulse as Pulse
    from .simulation import Sensor as Sensor
    from .simulation import SimulationError as SimulationError
    from .simulation import SimulationResult as SimulationResult
    from .simulation import Task as Task
    from .simulation import WhiteNoise as WhiteNoise
    from .simulation import simulate as simulate
    from .systems import Input as Input
    from .systems import Parameter as Parameter
    from .systems import System as System
    from .systems import Trajectory as Trajectory

# Where each name lives: packages load when a name of theirs is first used.
_HOME = {
    "Cascade": "simulation",
    "Criterion": "simulation",
    "HeldNoise": "simulation",
    "Input": "systems",
    "InputSignal": "simulation",
    "Kick": "simulation",
    "Multibody": "mechanics",
    "Parameter": "systems",
    "Pulse": "simulation",
    "Sensor": "simulation",
    "SimulationError": "simulation",
    "SimulationResult": "simulation",
    "System": "systems",
    "Task": "simulation",
    "Trajectory": "systems",
    "WhiteNoise": "simulation",
    "simulate": "simulation",
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
