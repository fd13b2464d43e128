"""Smooth motions through waypoints on a group, with their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ..codegen import UnknownNameError, check_shape, unknown_name
from ..groups import LieGroup, check_element

Profile = Literal["smooth", "constant"]


class WaypointMotion(NamedTuple):
    """Where a motion is, and its body-fixed velocity and acceleration.

    Attributes
    ----------
    x : ndarray, shape (..., nq)
    rate : ndarray, shape (..., dim)
        Per s.
    acceleration : ndarray, shape (..., dim)
        Per s².
    """

    x: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray


@dataclass(frozen=True, eq=False)
class Waypoints:
    """Motion through waypoints, a screw motion from each to the next.

    Parameters
    ----------
    group : LieGroup
        Group of the waypoints: SE3 for poses.
    t : array_like, shape (N + 1,)
        Increasing times in s.
    x : array_like, shape (N + 1, nq)
        Waypoints.
    profile : {"smooth", "constant"}
        "smooth" rests at every waypoint, with velocity and acceleration zero there; "constant"
        keeps the velocity between waypoints.

    Examples
    --------
    A reference for a system whose state is a pose and its twist:

    >>> from lgcontrol.groups import SE3, Product, Rn
    >>> from lgcontrol.systems import Trajectory, Waypoints
    >>> path = Waypoints(SE3, [0, 2], SE3.from_position([[0, 0, 0], [1, 0, 0]]))
    >>> path(1.0).rate.round(4)
    array([0.9375, 0.    , 0.    , 0.    , 0.    , 0.    ])
    >>> state = Product(pose=SE3, twist=Rn(6))
    >>> reference = Trajectory.from_functions(
    ...     state, np.linspace(0, 2, 41), lambda t: state.join(pose=path(t).x, twist=path(t).rate))
    """

    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    profile: Profile

    def __init__(self, group: LieGroup, t: Any, x: Any, profile: Profile = "smooth") -> None:
        t = check_shape("t", t, (None,))
        x = check_element("x", check_shape("x", x, (len(t), group.nq)), group, batch=True)
        if len(t) < 2 or (np.diff(t) <= 0).any():
            raise ValueError("t must hold at least two times and increase")
        if profile not in get_args(Profile):
            raise UnknownNameError(unknown_name("profile", profile, get_args(Profile)))
        values = {"group": group, "t": t, "x": x, "profile": profile}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, t: Any) -> WaypointMotion:
        """Place, velocity and acceleration at times t; at rest before the start and after the end.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            Times in s.

        Returns
        -------
        WaypointMotion
            ``x`` of shape (nq,) or (k, nq); ``rate`` and ``acceleration`` of shape (dim,) or
            (k, dim), body-fixed, per s and per s².
        """
        t = np.asarray(t, dtype=np.float64)
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        span = self.t[k + 1] - self.t[k]
        s = np.clip((t - self.t[k]) / span, 0.0, 1.0)
        inside = (t >= self.t[0]) & (t <= self.t[-1])
        if self.profile == "smooth":  # quintic, at rest and unaccelerated at both ends
            part = s**3 * (10 - 15 * s + 6 * s**2)
            speed = 30 * s**2 * (1 - s) ** 2 / span
            change = 60 * s * (1 - s) * (1 - 2 * s) / span**2
        else:
            part, speed, change = s, inside / span, np.zeros_like(s)
        screw = self.group.minus(self.x[k + 1], self.x[k])
        x = self.group.plus(self.x[k], part[..., None] * screw)
        return WaypointMotion(x, speed[..., None] * screw, change[..., None] * screw)
