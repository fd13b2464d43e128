"""Trajectory: times, states and inputs, with interpolation on the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..codegen import check_shape
from ..groups import LieGroup


class TrajectoryPoint(NamedTuple):
    """State and input at one time (or, with arrays of times, at many)."""

    x: np.ndarray
    u: np.ndarray


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States and inputs over time; callable at any time.

    Between nodes the state follows the group's screw interpolation and the input is held. Before
    the start and after the end the first and last values are held.

    Parameters
    ----------
    group : LieGroup
        The state's group.
    t : array_like, shape (N + 1,)
        Increasing times in s.
    x : array_like, shape (..., N + 1, nq)
        States.
    u : array_like, shape (..., N, n_inputs) or (..., N + 1, n_inputs), optional
        Input held from each time on; the one at the last time may be left out.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> turn = Trajectory(SO2, [0.0, 1.0], SO2.exp([[0.0], [1.0]]))
    >>> SO2.log(turn(0.5).x)
    array([0.5])
    """

    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    u: np.ndarray = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        t = check_shape("t", self.t, (None,))
        x = check_shape("x", self.x, (None, self.group.nq), batch=True)
        if len(t) < 1 or (np.diff(t) <= 0).any():
            raise ValueError("t must hold at least one time and increase")
        if x.shape[-2] != len(t):
            raise ValueError(f"x has {x.shape[-2]} states for {len(t)} times")
        given = np.zeros((*x.shape[:-2], len(t), 0)) if self.u is None else self.u
        u = check_shape("u", given, (None, None), batch=True)
        if u.shape[-2] not in (len(t) - 1, len(t)) and len(t) > 1:
            raise ValueError(
                f"u has {u.shape[-2]} rows, expected {len(t) - 1} (one per step) or {len(t)}"
            )
        for name, value in (("t", t), ("x", x), ("u", u)):
            object.__setattr__(self, name, value)

    def __call__(self, t: Any) -> TrajectoryPoint:
        """State and input at times t.

        Parameters
        ----------
        t : float or array_like, shape (k,)

        Returns
        -------
        TrajectoryPoint
            ``x`` of shape (..., nq), ``u`` of shape (..., n_inputs); with the axis of t before
            the last one if t is an array.
        """
        t = np.asarray(t, dtype=np.float64)
        last = len(self.t) - 1
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, max(last - 1, 0))
        after = np.minimum(k + 1, last)
        span = np.where(after > k, self.t[after] - self.t[k], 1.0)
        s = np.clip((t - self.t[k]) / span, 0.0, 1.0)
        x = self.group.interpolate(self.x[..., k, :], self.x[..., after, :], s)
        held = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, self.u.shape[-2] - 1)
        return TrajectoryPoint(x, self.u[..., held, :])

    def __len__(self) -> int:
        """Number of times."""
        return len(self.t)

    @property
    def duration(self) -> float:
        """Time from start to end, s."""
        return float(self.t[-1] - self.t[0])
