"""Control on Lie groups: models, trim, linearization, MPC, closed-loop simulation.

The names that tasks need are here, and load when they are first used:

- State spaces: `LieGroup`, `Rn`, `Translation`, `SO2`, `SO3`, `SE2`, `SE3`, `SE23`, `SEK3`,
  `Schoenflies`, `Cylindrical`, `PlanarHelical`, `Helical`, `Product`.
- A model of your own: `System`, `Input`, `Parameter`, `check_system`, `TrimError`.
- Bodies, arms and mechanisms: `SpatialInertia`, `RigidBody`, `Multibody`, `ClosedTree`,
  `Mechanism`, `SeriesElastic`, `InverseKinematics`.
- References: `Trajectory`, `Waypoints`, `BSpline`.
- Control: `MPC`, `LQR`, `TVLQR`.
- Plans: `OptimalControlProblem`, `Bound`, `Cost`, `Residual`, `PhasedProblem`, `Phase`.
- Estimation: `EKF`, `UKF`, `MovingHorizon`, `Sensor`.
- Closed loops: `simulate`, `SimulationResult`, `SimulationError`, `Cascade`, `Kick`,
  `Pulse`, `HeldNoise`, `WhiteNoise`, `InputSignal`, `Task`, `Criterion`.

The rooms have the rest: `models` (ready vehicles, arms and mechanisms), `controllers`, `groups`,
`integrators`, `systems`, `mechanics`, `optimal`, `estimation`, `simulation`, `io`, `plotting`,
`codegen`. A name that is asked for at the wrong place says where it is.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# Where each public name lives: packages load when a name of theirs is first used. The list is the
# stub that type checkers read, ``from .room import Name as Name`` a line.
_HOME: dict[str, str] = {
    name: room
    for room, name in re.findall(
        r"^from \.([\w.]*) import (\w+) as \2$",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
}


def __getattr__(name: str) -> Any:
    """Import a public name or a package on first use."""
    if name not in _HOME:
        # Not by a statement: what is imported of this package is first asked for here.
        import_module("._names", __name__).refuse(__name__, name)
    if not _HOME[name]:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    special = {name for name in globals() if name.startswith("__")}
    return sorted({*special, *_HOME})
