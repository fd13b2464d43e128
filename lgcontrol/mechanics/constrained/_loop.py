"""LoopJoint: a joint between two frames of a tree, as equations on the pose of one in the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import check_known
from ...groups._internal import axis_numbers
from .._coefficients import unit_vector
from ..multibody._spatial import Pose
from ..multibody.tree._link import Axis

Rows = list[tuple[str, str, Value]]
"""Name, unit and value of each equation."""


@dataclass(frozen=True)
class LoopJoint:
    """A joint that closes a loop: what it holds of the pose ``T_a_b`` of frame b in frame a.

    Parameters
    ----------
    name : str
    frame_a, frame_b : str
    joint : str
        "fixed"; "spherical" (origins coincide); "revolute" (and the axes); "prismatic" (b slides
        along the axis, without turning); "cylindrical" (slides along it and turns about it);
        "universal" (origins coincide, axis of a and axis2 of b stay perpendicular); "planar" (b
        moves in the plane whose normal is the axis); "point_in_plane"; "point_on_line";
        "orientation" (b does not turn); "distance" (of the origins).
    axis, axis2 : array_like or str
        In frame a, and for "universal" the second one in frame b.
    length : float, optional
        For "distance" [m].

    Notes
    -----
    Rows of angles are sines, which are also zero for a loop that is closed the other way round.
    Assembly goes to the nearest zero.
    """

    name: str
    frame_a: str
    frame_b: str
    joint: str = "fixed"
    axis: Axis = "z"
    axis2: Axis = "y"
    length: float | None = None

    def __post_init__(self) -> None:
        check_known("joint of a loop", _JOINTS, self.joint)
        for axis in (self.axis, self.axis2):
            unit_vector(f"loop {self.name!r}: axis", axis)
        if self.joint == "distance" and not (self.length is not None and 0 < self.length < inf):
            raise ValueError(
                f"loop {self.name!r}: a distance joint needs its length in m, got {self.length}"
            )
        if self.joint == "universal" and abs(_unit(self.axis) @ _unit(self.axis2)) > 1e-9:
            raise ValueError(
                f"loop {self.name!r}: axis of frame a and axis2 of frame b must be perpendicular "
                "where the frames coincide"
            )

    def rows(self, a: Pose, b: Pose) -> Rows:
        """Equations for the poses of both frames."""
        held = Held(ca.sparsify(a.R.T @ b.R), a.R.T @ (b.p - a.p), self)
        return _JOINTS[self.joint](held)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the equations."""
        return tuple(name for name, _, _ in self._example)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the equations."""
        return tuple(unit for _, unit, _ in self._example)

    @property
    def _example(self) -> Rows:
        return self.rows(Pose.identity(), Pose.identity())


@dataclass(frozen=True, eq=False)
class Held:
    """Relative rotation and position, from which joints take what they hold."""

    R: Value
    p: Value
    loop: LoopJoint

    @property
    def axis(self) -> ca.DM:
        """Axis in frame a."""
        return ca.DM(_unit(self.loop.axis))

    @property
    def across(self) -> list[ca.DM]:
        """Two directions across the axis."""
        a = _unit(self.loop.axis)
        first = np.eye(3)[(int(np.abs(a).argmax()) + 1) % 3]  # x and y about z, and so on round
        first = first - a * (a @ first)
        first /= np.linalg.norm(first)
        return [ca.DM(first), ca.DM(np.cross(a, first))]

    def origins(self) -> Rows:
        """Origins coincide."""
        return [(axis, "m", self.p[i]) for i, axis in enumerate("xyz")]

    def orientation(self) -> Rows:
        """No turn: the sine of the angle times its axis."""
        R = self.R
        turn = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
        return [(f"turn_{axis}", "rad", turn[i] / 2) for i, axis in enumerate("xyz")]

    def axes(self) -> Rows:
        """The axis of b is that of a."""
        turned = self.R @ self.axis
        return [(f"tilt_{k + 1}", "rad", ca.dot(e, turned)) for k, e in enumerate(self.across)]

    def beside(self) -> Rows:
        """The origin of b is on the axis."""
        return [(f"beside_{k + 1}", "m", ca.dot(e, self.p)) for k, e in enumerate(self.across)]

    def above(self) -> Rows:
        """The origin of b is in the plane across the axis."""
        return [("above", "m", ca.dot(self.axis, self.p))]

    def perpendicular(self) -> Rows:
        """The second axis, in b, is perpendicular to the first."""
        second = self.R @ ca.DM(_unit(self.loop.axis2))
        return [("perpendicular", "rad", ca.dot(self.axis, second))]

    def apart(self) -> Rows:
        """Distance of the origins, regular wherever they are apart."""
        length = self.loop.length
        return [("length", "m", (ca.sumsqr(self.p) - length**2) / (2 * length))]  # type: ignore[operator]


def _unit(axis: Axis) -> np.ndarray:
    direction = axis_numbers("axis", axis)
    return direction / np.linalg.norm(direction)


_JOINTS: dict[str, Callable[[Held], Rows]] = {
    "fixed": lambda held: held.origins() + held.orientation(),
    "spherical": lambda held: held.origins(),
    "revolute": lambda held: held.origins() + held.axes(),
    "prismatic": lambda held: held.beside() + held.orientation(),
    "cylindrical": lambda held: held.beside() + held.axes(),
    "universal": lambda held: held.origins() + held.perpendicular(),
    "planar": lambda held: held.above() + held.axes(),
    "point_in_plane": lambda held: held.above(),
    "point_on_line": lambda held: held.beside(),
    "orientation": lambda held: held.orientation(),
    "distance": lambda held: held.apart(),
}


def loop_wrenches(loop: LoopJoint, a: Pose, b: Pose, multipliers: Any) -> dict[str, Any]:
    """Wrenches [f; m] that the joint exerts on its frames, in their axes about their origins.

    On frame b what the equations answer to a displacement of b alone,
    ``−(∂φ(T_a_b exp d)/∂d)ᵀ λ``; on frame a the opposite one.
    """
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    force = ca.SX.sym("force", multipliers.shape[0])
    work = ca.dot(force, ca.vertcat(*(row for _, _, row in loop.rows(Pose.identity(), Pose(R, p)))))
    by_R, by_p = (ca.reshape(ca.gradient(work, y), *y.shape) for y in (R, p))
    # dR = R hat(d): moment i is the derivative along R hat(e_i).
    S = R.T @ by_R
    moment = -ca.vertcat(S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1])
    on_a = ca.vertcat(by_p, -R @ moment + ca.cross(p, by_p))
    made = ca.Function("wrenches", [R, p, force], [on_a, ca.vertcat(-R.T @ by_p, moment)])
    seen = a.inverse() @ b
    both = made.call([ca.densify(seen.R), ca.densify(seen.p), multipliers])
    return {
        frame: wrench
        for frame, wrench in zip((loop.frame_a, loop.frame_b), both, strict=True)
        if frame != "world"
    }
