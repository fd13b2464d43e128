"""Inertias of solids of even density about their centres, shape (3, 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...codegen._internal import check_shape
from .._fields import unit_vector


def box_inertia(mass: float, size: Any) -> np.ndarray:
    """Box with edges along the axes, of lengths `size` (3,)."""
    x, y, z = _lengths("size", size, (3,)) ** 2
    return mass / 12 * np.diag([y + z, x + z, x + y])


def cylinder_inertia(mass: float, radius: Any, length: Any, axis: Any) -> np.ndarray:
    """Cylinder along an axis (3,)."""
    r, h = _lengths("radius", radius, ()), _lengths("length", length, ())
    return _about(axis, mass * r**2 / 2, mass * (3 * r**2 + h**2) / 12)


def sphere_inertia(mass: float, radius: Any) -> np.ndarray:
    """Ball."""
    return 0.4 * mass * _lengths("radius", radius, ()) ** 2 * np.eye(3)


def rod_inertia(mass: float, length: Any, axis: Any) -> np.ndarray:
    """Line along an axis (3,)."""
    return _about(axis, 0.0, mass * _lengths("length", length, ()) ** 2 / 12)


def parallel_axis(c: np.ndarray) -> np.ndarray:
    """``−ĉ ĉ``: inertia of a unit mass at c about the origin."""
    return (c @ c) * np.eye(3) - np.outer(c, c)


def _about(axis: Any, along: Any, across: Any) -> np.ndarray:
    """Inertia with one moment along an axis and another across it."""
    n = unit_vector("axis", axis)
    return across * np.eye(3) + (along - across) * np.outer(n, n)


def _lengths(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    lengths = check_shape(name, value, shape)
    if (lengths < 0).any():
        raise ValueError(f"{name} must not be negative, got {lengths.tolist()} m")
    return lengths
