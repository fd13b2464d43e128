"""Results of trimming: a motion with constant rate and input, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._linearization import Kind
from ._trajectory import Trajectory, TrajectoryPoint

if TYPE_CHECKING:
    from ._system import System


@dataclass(frozen=True, eq=False, repr=False)
class TrimPoint:
    """A motion ``X(s) = x exp((s − t) rate)`` with constant input; callable like a trajectory.

    Attributes
    ----------
    x : ndarray, shape (nq,)
        State at time t.
    u : ndarray, shape (n_inputs,)
        All inputs.
    t : float
        Time in s.
    p : ndarray, shape (n_parameters,)
    rate : ndarray, shape (dim,)
        Constant body-fixed rate, per s (per sample for discrete systems); zero at an equilibrium.
    kind : str
        "equilibrium" or "relative equilibrium"; "none" for the best iterate of a failure.
    system : System
    """

    x: np.ndarray
    u: np.ndarray
    t: float
    p: np.ndarray
    rate: np.ndarray
    kind: Kind
    system: System

    def __repr__(self) -> str:
        """Kind, state and input to five digits, and the rate where it is not zero."""
        kind = "no equilibrium" if self.kind == "none" else self.kind
        values = {"x": self.x, "u": self.u}
        if self.kind != "equilibrium":
            values["rate"] = self.rate
        layout = {"precision": 5, "suppress_small": True, "max_line_width": 10**6}
        shown = (f"{name}={np.array2string(value, **layout)}" for name, value in values.items())
        return f"TrimPoint({self.system.name!r}, {kind}, {', '.join(shown)})"

    def __call__(self, t: Any) -> TrajectoryPoint:
        """State and input at times t [s], a float or shape (k,)."""
        t = np.asarray(t, dtype=np.float64)
        elapsed = (t - self.t) / (self.system.dt or 1.0)
        state = self.system.state
        x = state.compose(self.x, state.exp(elapsed[..., None] * self.rate))
        return TrajectoryPoint(x, np.broadcast_to(self.u, (*t.shape, len(self.u))))

    def trajectory(self, seconds: float, dt: float) -> Trajectory:
        """Sample the motion from t on.

        Parameters
        ----------
        seconds, dt : float
            Duration and spacing in s.

        Returns
        -------
        Trajectory
        """
        if not (dt > 0 and seconds >= dt):
            raise ValueError(f"needs 0 < dt <= seconds, got dt={dt}, seconds={seconds}")
        times = self.t + dt * np.arange(round(seconds / dt) + 1)
        x, u = self(times)
        return Trajectory(self.system.state, times, x, u, inputs=self.system.inputs)


class TrimError(RuntimeError):
    """No trim point was found.

    Attributes
    ----------
    status : str
        "infeasible" or "not a symmetry".
    best : TrimPoint
        Best iterate.
    """

    def __init__(self, message: str, status: str, best: TrimPoint) -> None:
        super().__init__(message)
        self.status = status
        self.best = best

    def __reduce__(self) -> tuple[Any, ...]:
        return TrimError, (self.args[0], self.status, self.best)
