"""Placements: constant poses, however the caller has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...groups import SE3


def as_placement(name: str, value: Any) -> np.ndarray:
    """Homogeneous matrix of a placement, shape (4, 4), not writable.

    Parameters
    ----------
    name : str
        What the value is, for messages.
    value : None, array_like of shape (7,), (4, 4) or (3,)
        SE3 coordinates, a homogeneous matrix, or a position [m]; None is no motion.

    Raises
    ------
    ValueError
        If the shape is another, an entry is not finite or the rotation is none.
    """
    if value is None:
        return freeze(np.eye(4))
    array = np.asarray(value, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite: {array.tolist()}")
    if array.shape == (3,):
        return freeze(SE3.homogeneous(SE3.from_position(array)))
    if array.shape == (7,):
        norm = float(np.linalg.norm(array[3:]))
        if abs(norm - 1.0) > 1e-6:
            raise ValueError(f"{name}: the quaternion has length {norm:.6g}, expected 1")
        return freeze(SE3.homogeneous(SE3.normalize(array)))
    if array.shape == (4, 4):
        try:
            SE3.from_matrix(array)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return freeze(array.copy())
    raise ValueError(
        f"{name} has shape {array.shape}, expected SE3 coordinates (7,), a homogeneous "
        "matrix (4, 4) or a position (3,)"
    )


def freeze(array: np.ndarray) -> np.ndarray:
    """The array, not writable from now on."""
    array.flags.writeable = False
    return array
