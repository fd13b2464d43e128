"""Springs and dampers on a group: forces that are the exact gradient of a potential."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value
from lgcontrol.codegen._internal import as_numbers, check_shape
from lgcontrol.groups import LieGroup


def error_of(
    group: LieGroup, X: Value, velocity: Value, X_ref: Value, velocity_ref: Value
) -> tuple[Value, Value]:
    """Error ``e = minus(X, X_ref)`` and relative velocity, both in the axes of X.

    The relative velocity ``ν = V − Ad(h⁻¹) V_ref`` with ``h = X_ref⁻¹ X`` is that of h: the rate of
    e is ``J_r(e)⁻¹ ν``.
    """
    h = group.compose(group.inverse(X_ref), X)
    return group.log(h), velocity - group.Ad(group.inverse(h)) @ velocity_ref


def spring_damper(
    group: LieGroup, e: Value, relative: Value, stiffness: Value, damping: Value
) -> Value:
    """Force ``−J_r(e)⁻ᵀ K e − D ν``: its power on ν is ``−d/dt ½ eᵀ K e − νᵀ D ν``."""
    return -group.right_jacobian_inverse(e).T @ (stiffness * e) - damping * relative


def gain(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """Diagonal of a gain, shape (size,); refuses negative ones."""
    array = as_numbers(name, value)
    array = check_shape(name, array, () if array.ndim == 0 else (size,))
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {value}")
    return np.broadcast_to(array, (size,)).copy()
