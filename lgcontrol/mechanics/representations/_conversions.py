"""Every conversion as a model function, traced when first used."""

from __future__ import annotations

from functools import cache

import casadi as ca

from ...codegen import ModelFunction, Value, trace
from .._reference import Reference, check_reference
from ._forms import (
    Pose,
    convert_inertias,
    convert_twist_rates,
    convert_twists,
    convert_wrenches,
)


def _twists(V: Value, pose: Value, source: Reference, target: Reference) -> Value:
    return convert_twists(Pose.of(pose), V, source, target)


def _twist_rate(rate: Value, V: Value, pose: Value, source: Reference, target: Reference) -> Value:
    return _jacobian_rate(rate, V, V, pose, source, target)


def _wrench(W: Value, pose: Value, source: Reference, target: Reference) -> Value:
    return convert_wrenches(Pose.of(pose), W, source, target)


def _inertia(M: Value, pose: Value, source: Reference, target: Reference) -> Value:
    return convert_inertias(Pose.of(pose), M, source, target)


def _jacobian_rate(
    rate: Value, J: Value, V: Value, pose: Value, source: Reference, target: Reference
) -> Value:
    return convert_twist_rates(Pose.of(pose).moving(V, source), rate, J, source, target)


def _matrix(pose: Value, source: Reference, target: Reference) -> Value:
    return convert_twists(Pose.of(pose), ca.DM.eye(6), source, target)


_CONVERSIONS = {
    "twist": (("twist", "pose"), _twists),
    "twist_rate": (("twist_rate", "twist", "pose"), _twist_rate),
    "wrench": (("wrench", "pose"), _wrench),
    "momentum": (("momentum", "pose"), _wrench),
    "inertia": (("inertia", "pose"), _inertia),
    "jacobian": (("jacobian", "pose"), _twists),
    "jacobian_rate": (("jacobian_rate", "jacobian", "twist", "pose"), _jacobian_rate),
    "matrix": (("pose",), _matrix),
}


def conversion(
    quantity: str, source: Reference, target: Reference, columns: int = 1
) -> ModelFunction:
    """The function that converts a quantity; Jacobians have so many columns."""
    check_reference(source)
    check_reference(target)
    return _traced(quantity, source, target, columns)


@cache
def _traced(quantity: str, source: Reference, target: Reference, columns: int) -> ModelFunction:
    jacobian = (6, columns)
    shapes = {"inertia": (6, 6), "matrix": (6, 6), "pose": (7,)}
    shapes |= {"jacobian": jacobian, "jacobian_rate": jacobian}
    names, build = _CONVERSIONS[quantity]
    return trace(
        f"convert_{quantity}",
        lambda *values: build(*values, source, target),
        {name: shapes.get(name, (6,)) for name in names},
        {"converted": shapes.get(quantity, (6,))},
    )
