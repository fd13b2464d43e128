"""Control on Lie groups: models, trim, linearization, MPC, closed-loop simulation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .groups import SE2 as SE2
    from .groups import SE3 as SE3
    from .groups import SO2 as SO2
    from .groups import SO3 as SO3
    from .groups import Cylindrical as Cylindrical
    from .groups import Helical as Helical
    from .groups import LieGroup as LieGroup
    from .groups import PlanarHelical as PlanarHelical
    from .groups import Product as Product
    from .groups import Rn as Rn
    from .groups import Schoenflies as Schoenflies
    from .groups import Translation as Translation
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
    from .systems import TrimError as TrimError
    from .systems import Waypoints as Waypoints
    from .systems import check_system as check_system

# Where each name lives: packages load when a name of theirs is first used.
_HOME = {
    "Cascade": "simulation",
    "Criterion": "simulation",
    "Cylindrical": "groups",
    "HeldNoise": "simulation",
    "Helical": "groups",
    "Input": "systems",
    "InputSignal": "simulation",
    "Kick": "simulation",
    "LieGroup": "groups",
    "Multibody": "mechanics",
    "Parameter": "systems",
    "PlanarHelical": "groups",
    "Product": "groups",
    "Pulse": "simulation",
    "Rn": "groups",
    "SE2": "groups",
    "SE3": "groups",
    "SO2": "groups",
    "SO3": "groups",
    "Schoenflies": "groups",
    "Sensor": "simulation",
    "SimulationError": "simulation",
    "SimulationResult": "simulation",
    "System": "systems",
    "Task": "simulation",
    "Trajectory": "systems",
    "Translation": "groups",
    "TrimError": "systems",
    "Waypoints": "systems",
    "WhiteNoise": "simulation",
    "check_system": "systems",
    "simulate": "simulation",
}
_PACKAGES = (
    "codegen",
    "controllers",
    "estimation",
    "groups",
    "integrators",
    "io",
    "mechanics",
    "models",
    "optimal",
    "plotting",
    "simulation",
    "systems",
)


def __getattr__(name: str) -> Any:
    """Import a public name or a package on first use."""
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
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
    return sorted({*special, *_HOME, *_PACKAGES})
