"""What tells the representations apart, and the one change of form that all conversions are.

A twist [v; ω] has a part that depends on the point it is measured at (v) and one that does not
(ω); a wrench [f; m] has them the other way round. In each representation the two parts are
resolved in body or world axes, for a point that moves with the body or for the world's origin.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import casadi as ca

from ...codegen import Value
from ...groups import SE3
from .._reference import Reference

Side = Literal["body", "world"]


class Form(NamedTuple):
    """Axes of the linear part, axes of the angular part, and the point."""

    linear: Side
    angular: Side
    point: Side


FORMS: dict[Reference, Form] = {
    "body": Form("body", "body", "body"),
    "spatial": Form("world", "world", "world"),
    "hybrid": Form("world", "world", "body"),
    "mixed": Form("world", "body", "body"),
}


class Rated(NamedTuple):
    """A matrix with its time derivative; sums and products follow the rules of differentiation."""

    value: Value
    rate: Value

    def __add__(self, other: Rated) -> Rated:  # type: ignore[override]
        """Sum."""
        return Rated(self.value + other.value, self.rate + other.rate)

    def __neg__(self) -> Rated:
        """Opposite."""
        return Rated(-self.value, -self.rate)

    def __matmul__(self, other: Rated) -> Rated:
        """Product."""
        value, rate = self.value @ other.value, self.rate @ other.value
        return Rated(value, rate + self.value @ other.rate)

    @property
    def T(self) -> Rated:
        """Transpose."""
        return Rated(self.value.T, self.rate.T)


class MovingPose(NamedTuple):
    """Rotation matrix body → world and position of the body; plain or `Rated`."""

    R: Any
    p: Any

    @classmethod
    def of(cls, pose: Value) -> MovingPose:
        """From SE3 coordinates."""
        T = SE3.homogeneous(pose)
        return cls(T[:3, :3], T[:3, 3])

    def moving(self, twist: Value, reference: Reference) -> MovingPose:
        """The same pose with its rate, for a twist of the body in a reference."""
        hybrid = convert_twists(self, twist, reference, "hybrid")
        return MovingPose(
            Rated(self.R, ca.skew(hybrid[3:]) @ self.R),
            Rated(self.p, hybrid[:3]),
        )


def convert_twists(pose: MovingPose, twists: Value, source: Reference, target: Reference) -> Value:
    """Twists (columns) in another representation."""
    linear, angular = _twist_parts(pose, twists[:3, :], twists[3:, :], source, target)
    return ca.vertcat(linear, angular)


def convert_twist_rates(
    pose: MovingPose, rates: Value, twists: Value, source: Reference, target: Reference
) -> Value:
    """Time derivatives of twists (columns) in another representation, for a moving pose."""
    linear, angular = _twist_parts(
        pose,
        Rated(twists[:3, :], rates[:3, :]),
        Rated(twists[3:, :], rates[3:, :]),
        source,
        target,
    )
    return ca.vertcat(linear.rate, angular.rate)


def convert_wrenches(
    pose: MovingPose, wrenches: Value, source: Reference, target: Reference
) -> Value:
    """Wrenches or momenta (columns) in another representation."""
    old, new = FORMS[source], FORMS[target]
    moment, force = _convert(
        pose,
        (wrenches[3:, :], old.angular, new.angular),
        (wrenches[:3, :], old.linear, new.linear),
        (old.point, new.point),
    )
    return ca.vertcat(force, moment)


def convert_inertias(
    pose: MovingPose, inertia: Value, source: Reference, target: Reference
) -> Value:
    """Inertia matrix in another representation: ``Xᵀ M X`` with X from target to source."""
    X = convert_twists(pose, ca.DM.eye(6), target, source)
    return X.T @ inertia @ X


def _twist_parts(
    pose: MovingPose, linear: Any, angular: Any, source: Reference, target: Reference
) -> tuple[Any, Any]:
    old, new = FORMS[source], FORMS[target]
    return _convert(
        pose,
        (linear, old.linear, new.linear),
        (angular, old.angular, new.angular),
        (old.point, new.point),
    )


def _convert(
    pose: MovingPose,
    moved: tuple[Any, Side, Side],
    free: tuple[Any, Side, Side],
    points: tuple[Side, Side],
) -> tuple[Any, Any]:
    """Change the axes of both parts, and the point that `moved` is measured at.

    About the world's origin it is ``moved + p × free``, of twists and wrenches alike. Where the
    point changes, one of the two forms has all its axes in the world.
    """
    x, x_old, x_new = moved
    y, y_old, y_new = free
    if points[0] == points[1]:
        return _turn(pose, x, x_old, x_new), _turn(pose, y, y_old, y_new)
    arm = pose.p if points[1] == "world" else -pose.p
    shift = _hat(arm) @ _turn(pose, y, y_old, "world")
    x = _turn(pose, x, x_old, "world") + shift
    return _turn(pose, x, "world", x_new), _turn(pose, y, y_old, y_new)


def _turn(pose: MovingPose, x: Any, old: Side, new: Side) -> Any:
    if old == new:
        return x
    return pose.R @ x if new == "world" else pose.R.T @ x


def _hat(x: Any) -> Any:
    return Rated(ca.skew(x.value), ca.skew(x.rate)) if isinstance(x, Rated) else ca.skew(x)
