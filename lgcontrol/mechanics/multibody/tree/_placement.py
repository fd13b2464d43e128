"""Placements and joint positions: constants, however the caller has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen._internal import ask_degrees, check_shape, in_degrees
from ....groups import SE3, LieGroup, check_element

PLACEMENT_ROUNDING = 1e-12  # what products of a few rotation matrices in doubles leave


def as_placement(name: str, value: Any) -> np.ndarray:
    """Homogeneous matrix of a placement, shape (4, 4), not writable.

    Parameters
    ----------
    name : str
        What the value is, for messages.
    value : None, array_like of shape (7,), (4, 4) or (3,)
        SE3 coordinates, a homogeneous matrix, or a position [m]; None is the identity.

    Raises
    ------
    ValueError
        If the shape is wrong, an entry is not finite or the matrix is no rotation. Coordinates and
        matrices with missing digits are taken: see `check_element` and `LieGroup.from_matrix`.
    """
    if value is None:
        return IDENTITY
    array = check_shape(name, value, (), batch=True)
    if array.shape == (3,):
        return freeze(SE3.homogeneous(SE3.from_position(array)))
    if array.shape == (7,):
        return freeze(SE3.homogeneous(SE3.normalize(check_element(name, array, SE3))))
    if array.shape == (4, 4):
        try:
            repaired = SE3.homogeneous(SE3.from_matrix(array))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        # Exact zeros and ones of a matrix that needs no repair make sparse expressions.
        is_exact = np.abs(repaired - array).max() < PLACEMENT_ROUNDING
        return freeze(array.copy() if is_exact else repaired)
    raise ValueError(
        f"{name} has shape {array.shape}, expected SE3 coordinates (7,), a homogeneous "
        "matrix (4, 4) or a position (3,)"
    )


def as_position(name: str, value: Any, group: LieGroup) -> np.ndarray:
    """Coordinates of a joint's group, shape (nq,); where there is one, a plain number will do."""
    found = check_element(name, [value] if np.ndim(value) == 0 else value, group)
    for entry, unit in zip(found, group.coordinate_units, strict=True):
        if unit == "rad" and in_degrees(entry):
            ask_degrees(name, float(entry))
    return found


def freeze(array: np.ndarray) -> np.ndarray:
    """The array, not writable from now on."""
    array.flags.writeable = False
    return array


IDENTITY = freeze(np.eye(4))
"""No motion."""
