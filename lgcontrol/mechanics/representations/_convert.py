"""Conversions between the representations, for NumPy batches and CasADi."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from ...codegen import ModelFunction, Value, trace
from ...codegen._internal import Shape, UnknownNameError, unknown_name
from .._reference import Reference, check_reference
from ._forms import (
    MovingPose,
    convert_inertias,
    convert_twist_rates,
    convert_twists,
    convert_wrenches,
)

Quantity = Literal[
    "twist", "twist_rate", "wrench", "momentum", "inertia", "jacobian", "jacobian_rate"
]


class _Conversion(NamedTuple):
    """What is converted: its shape, what must be known besides, and how.

    Attributes
    ----------
    shape : tuple of int
        0 for any number of columns.
    build : callable
        ``(pose, value, source, target, *besides) → converted`` on CasADi values.
    besides : tuple of str
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
    if quantity not in _CONVERSIONS:
        raise UnknownNameError(unknown_name("quantity", quantity, _CONVERSIONS))
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
