"""What tells the representations apart, and the one change of form that all conversions are.

A twist [v; ω] has a part that depends on the point it is measured at (v) and one that does not
(ω); a wrench [f; m] has them the other way round. In each representation the two parts are
resolved in body or world axes, for a point that moves with the body or for the world's origin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, trace
from ...codegen._internal import Shape, check_known, unknown_name
from ...groups import SE3

Reference = Literal["body", "spatial", "hybrid", "mixed"]
"""Frame a twist is expressed in.

"body": point and axes of the frame; "spatial": world origin and axes; "hybrid": point of the
frame, world axes; "mixed": linear part in world axes, angular part in the frame's axes.
"""

_ELSEWHERE = {
    "local": "body",
    "world": "spatial",
    "local_world_aligned": "hybrid",
    "lwa": "hybrid",
    "body_fixed_representation": "body",
    "inertial_fixed_representation": "spatial",
    "inertial": "spatial",
    "mixed_representation": "hybrid",
}


def check_reference(reference: str) -> None:
    """Refuse unknown references; those of other libraries are translated in the message."""
    if reference in get_args(Reference):
        return
    message = unknown_name("reference", reference, get_args(Reference))
    here = _ELSEWHERE.get(str(reference).lower())
    raise ValueError(f"{message} {reference!r} elsewhere is {here!r} here." if here else message)


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


Quantity = Literal[
    "twist", "twist_rate", "wrench", "momentum", "inertia", "jacobian", "jacobian_rate"
]


class _Conversion(NamedTuple):
    """What is converted: its shape (0 for any number of columns), what else must be known, and how.

    `build` is ``(pose, value, source, target, *besides) → converted`` on CasADi values.
    """

    shape: Shape
    build: Callable[..., Value]
    besides: tuple[str, ...] = ()


def _rates(
    pose: MovingPose,
    rate: Value,
    source: Reference,
    target: Reference,
    twist: Value,
    of: Value = None,
) -> Value:
    columns = twist if of is None else of
    return convert_twist_rates(pose.moving(twist, source), rate, columns, source, target)


_CONVERSIONS = {
    "twist": _Conversion((6,), convert_twists),
    "twist_rate": _Conversion((6,), _rates, ("twist",)),
    "wrench": _Conversion((6,), convert_wrenches),
    "momentum": _Conversion((6,), convert_wrenches),
    "inertia": _Conversion((6, 6), convert_inertias),
    "jacobian": _Conversion((6, 0), convert_twists),
    "jacobian_rate": _Conversion((6, 0), _rates, ("twist", "jacobian")),
}


def convert(
    quantity: Quantity,
    value: Value,
    pose: Value,
    source: Reference,
    target: Reference,
    *,
    twist: Value | None = None,
    jacobian: Value | None = None,
) -> Any:
    """A quantity of a body or frame, given in one representation, in another.

    ================== ============= ===================================================
    quantity           shape         conversion
    ================== ============= ===================================================
    "twist"            (..., 6)      [v; ω] [m/s, rad/s]
    "twist_rate"       (..., 6)      d/dt of the twist's components; needs `twist`
    "wrench"           (..., 6)      [f; m] [N, N m]; dual to twists: the power is the same
    "momentum"         (..., 6)      [p; L] [kg m/s, kg m²/s]; as a wrench
    "inertia"          (..., 6, 6)   ``M' = Xᵀ M X`` with the X from `target` to `source`
    "jacobian"         (..., 6, n)   each column as a twist
    "jacobian_rate"    (..., 6, n)   dJ/dt; needs `twist` and `jacobian`
    ================== ============= ===================================================

    Rates are derivatives of the components: "hybrid" holds the acceleration of the frame's origin
    in world axes and the angular acceleration. "body" holds the body-frame rates, ``Rᵀ p̈ − ω ×
    v``, "spatial" Featherstone's spatial acceleration in world coordinates.

    Parameters
    ----------
    quantity : str
        See the table.
    value : array_like
        The quantity in the representation `source`, linear part first.
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        See `lgcontrol.mechanics.representations`.
    twist : array_like, shape (..., 6), optional
        Twist of the frame in the representation `source`, for rates.
    jacobian : array_like, shape (..., 6, n), optional
        J with ``twist = J v`` in the representation `source`, for its rate.

    Returns
    -------
    ndarray or CasADi value
        Of the shape of `value`.

    Raises
    ------
    ValueError
        If there is no such quantity or representation, or a shape is wrong.
    TypeError
        If the twist or the Jacobian lacks, or is given where it does not matter.

    References
    ----------
    Müller 2018, sections 2 and 3 (in eq. 34, the first and the third relation miss a term), eq. 36
    (momenta), eq. 35, 48, 52 (inertias); "Screw and Lie group theory in multibody kinematics"
    (2018), table 3.

    Examples
    --------
    A body at x = 2 m that turns about its own vertical axis; then the wrench of its weight:

    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.from_position([2.0, 0.0, 0.0])
    >>> convert("twist", [0, 0, 0, 0, 0, 3.0], pose, "body", "spatial").tolist()
    [0.0, -6.0, 0.0, 0.0, 0.0, 3.0]
    >>> convert("wrench", [0, 0, -5.0, 0, 0, 0], pose, "hybrid", "spatial").tolist()
    [0.0, 0.0, -5.0, 0.0, 10.0, 0.0]

    A point on a turntable, at 0.5 m from its axis, is accelerated towards it:

    >>> pose, twist = SE3.from_position([0.5, 0.0, 0.0]), [0, 1.0, 0, 0, 0, 2.0]
    >>> convert("twist_rate", [0.0] * 6, pose, "body", "hybrid", twist=twist).tolist()
    [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    check_known("quantity", _CONVERSIONS, quantity)
    besides = _CONVERSIONS[quantity].besides
    for name, given in (("twist", twist), ("jacobian", jacobian)):
        if (name in besides) != (given is not None):
            wanted = f"needs {name}=…" if name in besides else f"takes no {name}: leave it out"
            raise TypeError(f"convert: a {quantity} {wanted}")
    columns = 0
    if _CONVERSIONS[quantity].shape == (6, 0):
        shape = np.shape(value)
        if len(shape) < 2:
            raise ValueError(f"{quantity} has shape {shape}, expected (..., 6, n)")
        columns = shape[-1]
    known = {"twist": twist, "jacobian": jacobian}
    for reference in (source, target):
        check_reference(reference)
    function = _traced(quantity, source, target, columns)
    return function(value, pose, *(known[name] for name in besides))


@cache
def _traced(quantity: str, source: Reference, target: Reference, columns: int) -> ModelFunction:
    made = _CONVERSIONS[quantity]
    shape = (6, columns) if made.shape == (6, 0) else made.shape
    shapes = {quantity: shape, "pose": (7,), "twist": (6,), "jacobian": (6, columns)}
    return trace(
        f"convert_{quantity}",
        lambda value, pose, *besides: made.build(
            MovingPose.of(pose), value, source, target, *besides
        ),
        {name: shapes[name] for name in (quantity, "pose", *made.besides)},
        {"converted": shape},
    )


def conversion_matrix(pose: Value, source: Reference, target: Reference) -> Any:
    """Matrix X with ``twist in target = X · twist in source``.

    Wrenches and momenta go the other way with its transpose: ``wrench in source = Xᵀ · wrench in
    target``.

    Parameters
    ----------
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, 6)
        From "body" to "spatial" it is the adjoint matrix of the pose.

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller, "Screw and Lie group theory in multibody kinematics" (2018), table 3.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.random(np.random.default_rng(0))
    >>> np.allclose(conversion_matrix(pose, "body", "spatial"), SE3.Ad(pose))
    True
    """
    return convert("jacobian", np.eye(6), pose, source, target)
