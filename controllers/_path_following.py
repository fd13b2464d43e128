"""PathFollowing: predictive control along a path without a timetable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen._internal import interruptible
from lgcontrol.groups import LieGroup
from lgcontrol.optimal import Bound, PathTask
from lgcontrol.systems import ReferenceLike

from ._base import Controller
from ._mpc import MPC

# Weight on the rate of the progress, where R names other controls only.
EASE = 1e-2
# Price of a place beyond the ends, and of a speed beyond its limits, in rewards. They are not the
# plant's, and every answer keeps them; hard they left calls near the end without a plan.
BEYOND = 50.0


class PathFollowing(Controller):
    """Goes along the path of a `PathTask` as fast as it pays, from the plant's state alone.

    The place on the path and its speed are the controller's own: they begin at the nearest place
    and go on as planned. Everything else is an `MPC` of the task's system, `mpc`.

    Parameters
    ----------
    task : PathTask
    horizon : int
        Number of steps.
    dt : float
        Length of a step in s.
    Q : float, array_like or mapping
        Weight on what is to stay small besides the errors of the path, next to the home of the
        plant: ``{"twist": 0.1}``.
    R : float, array_like or mapping
        Weight on the controls; "progress.rate" weighs 0.01 where a mapping leaves it out.
    bounds : sequence of Bound
        Besides those of the task.
    **options
        Of `MPC`: ``period``, ``delay``, ``solver``, ``budget``, ``p``, …

    Attributes
    ----------
    mpc : MPC
    progress : tuple of float
        Place and speed at the last call.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol import System, Waypoints
    >>> from lgcontrol.groups import Product, Rn, Translation
    >>> from lgcontrol.systems import Input
    >>> plane = Translation("xy")
    >>> mass = System(
    ...     "mass", Product(place=plane, speed=Rn(2)), lambda t, x, u, p: ca.vertcat(x[2:], u),
    ...     inputs=[Input("fx", "N", -1, 1), Input("fy", "N", -1, 1)])
    >>> corner = Waypoints(plane, [0, 1, 2], [[0, 0], [1, 0], [1, 1]], order=3)
    >>> law = PathFollowing(PathTask(mass, corner, weight=100.0, speed=0.5), 20, 0.1, R=0.01)
    >>> law(0.0, [0.0, 0.0, 0.0, 0.0]).shape
    (2,)
    """

    def __init__(
        self,
        task: PathTask,
        horizon: int,
        dt: float,
        *,
        Q: Any = 0.0,
        R: Any = 1.0,
        bounds: Sequence[Bound] = (),
        **options: Any,
    ) -> None:
        if "reference" in options or "residuals" in options or "costs" in options:
            raise ValueError("reference, residuals and costs are the task's: PathTask(…)")
        terms = task.terms
        own = [replace(bound, soft=BEYOND * task.reward) for bound in terms["bounds"]]
        if isinstance(R, Mapping):
            R = {"progress.rate": EASE, **R}
        self.task = task
        self.mpc = MPC(
            task.system, horizon, dt, Q=Q, R=R, terminal=0.0, reference=task.reference,
            residuals=terms["residuals"], costs=terms["costs"], bounds=[*own, *bounds],
            **options,
        )  # fmt: skip
        mpc = self.mpc
        super().__init__(task.plant, dt=mpc.dt, offset=mpc.offset, delay=mpc.delay)
        self.info = mpc.info
        self._at: tuple[float, np.ndarray] | None = None  # the last state with its progress

    @property
    def progress(self) -> tuple[float, float]:
        """Place on the path and its speed at the last call; the first place before."""
        if self._at is None:
            return float(self.task.path.t[0]), 0.0
        place, speed = self._at[1][-2:]
        return float(place), float(speed)

    def reset(self) -> None:
        """Forget place and plan."""
        super().reset()
        self.mpc.reset()
        self._at, self.info = None, self.mpc.info

    @interruptible
    def prepare(
        self, t: float = 0.0, x: ArrayLike | None = None, reference: ReferenceLike | None = None
    ) -> Self:
        """Compile, and plan from the nearest place; see `MPC.prepare`."""
        super().prepare(t, x, None)
        finite = x is not None and bool(np.isfinite(np.asarray(x, dtype=np.float64)).all())
        try:
            start = self.task.start(x) if finite else None  # type: ignore[arg-type]
        except ValueError:  # no element of the group: the first call will say so
            start = None
        self.mpc.prepare(t, start)
        return self

    @interruptible
    def export_c(self, folder: str | Path, *, name: str | None = None) -> Path:
        """Write `mpc` as plain C; its state ends in place and speed. See `MPC.export_c`."""
        return self.mpc.export_c(folder, name=name)

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Errors from the nearest place of the path."""
        states = np.array([self.task.start(row) for row in x])
        return self.mpc.task_errors(times, states)

    def state_reference(self, reference: ReferenceLike | None) -> None:
        """None: where it is to be is not said in time."""

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        if reference is not None:
            raise ValueError("a path is followed, there is no other reference: PathTask(path, …)")
        if self._at is None or not self.mpc._follows(self._at[0], t):
            state = self.task.start(x)  # the first call, or the clock jumped
        else:
            mpc = self.mpc
            later = mpc._parts.predicted(mpc._loop, *self._at, t, mpc._own)[-2:]
            first, last = float(self.task.path.t[0]), float(self.task.path.t[-1])
            later = np.clip(later, [first, 0.0], [last, self.task.speed])
            state = np.concatenate([x, later])
        u = self.mpc(t, state)
        self._at, self.info = (t, state), self.mpc.info
        return u[: len(self._controls)]
