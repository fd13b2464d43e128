"""Frames of groups about an axis, and rotations about it."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import UnknownNameError, check_shape, unknown_name

Axis = tuple[float, float, float]

Z_AXIS: Axis = (0.0, 0.0, 1.0)


LARGEST_COORDINATE = 1e150  # numbers above it have squares that overflow
AXIS_ROUNDING = 1e-15  # what cosines and sums of doubles leave where a zero or a one is meant


_LETTERS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def axis_numbers(name: str, axis: Any) -> np.ndarray:
    """Three numbers, of a letter with an optional sign, "-x", or as they are given."""
    if not isinstance(axis, str):
        return check_shape(name, axis, (3,))
    letter = axis.lstrip("+-")
    if letter not in _LETTERS or len(axis) > len(letter) + 1:
        known = [*_LETTERS, *(f"-{x}" for x in _LETTERS)]
        raise UnknownNameError(f"{name}: {unknown_name('axis', axis, known)}")
    return (-1.0 if axis.startswith("-") else 1.0) * np.array(_LETTERS[letter])


def unit_axis(axis: Any) -> Axis:
    """Normalise an axis; refuses a zero one.

    Entries that are rounding noise become exact zeros. A unit vector is returned as it is. An axis
    thus has one form, and groups about it are equal.
    """
    vector = axis_numbers("axis", axis)
    largest = np.abs(vector).max()
    if largest > LARGEST_COORDINATE:
        vector = vector / largest
    length = np.linalg.norm(vector)
    if length < 1e-12:
        raise ValueError(f"axis must not be zero, got {vector.tolist()}")
    if abs(length - 1.0) > AXIS_ROUNDING:
        vector = vector / length
    vector = np.where(np.abs(vector) < AXIS_ROUNDING, 0.0, vector)
    if np.count_nonzero(vector) == 1:
        vector = np.sign(vector)
    return tuple(vector.tolist())


def axis_frame(axis: Axis) -> np.ndarray:
    """Right-handed frame whose third column is the axis, shape (3, 3).

    Coordinate axes give cyclic permutations: about x the plane is (y, z), about y it is (z, x).
    Any other axis gives the frame of the shortest rotation from z (from −z below the plane).
    """
    n = np.array(axis)
    k = int(np.argmax(np.abs(n)))
    if abs(n[k]) == 1.0:
        first, second = np.eye(3)[(k + 1) % 3], np.eye(3)[(k + 2) % 3]
        return np.column_stack([first, second, n] if n[k] > 0 else [second, first, n])
    sign = 1.0 if n[2] >= 0 else -1.0
    first = np.array(
        [1 - n[0] ** 2 / (1 + abs(n[2])), -n[0] * n[1] / (1 + abs(n[2])), -sign * n[0]]
    )
    return np.column_stack([first, np.cross(n, first), n])


def constant(matrix: np.ndarray) -> ca.DM:
    """A constant with its zeros left out, so that products with it are cheap."""
    return ca.sparsify(ca.DM(matrix))


def cross_matrix(v: Value) -> Value:
    """``v̂`` with ``v̂ x = v × x``, for a CasADi column of three."""
    return ca.skew(v)


def rotation_about(axis: Axis, cos: Value, sin: Value) -> Value:
    """Rotation matrix about a unit axis for given cosine and sine."""
    n = constant(np.array(axis))
    outer = n @ n.T
    return outer + (ca.DM.eye(3) - outer) * cos + constant(skew(axis)) * sin


def skew(v: Any) -> np.ndarray:
    """``v̂`` of three numbers, shape (3, 3)."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def twist_matrix(V: Value) -> Value:
    """``V^`` of a twist [v; ω], 4 × 4."""
    return ca.blockcat([[ca.skew(V[3:]), V[:3]], [ca.DM(1, 3), ca.DM(1, 1)]])
