"""check_element: coordinates from outside as elements of a group, or an error that names them."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..codegen import check_shape
from ._base import LieGroup

# Two printed digits of a quaternion: [0, 0, 0.7, 0.7] is off by 7e-3 in each entry.
ELEMENT_TOLERANCE = 1e-2
# What many steps of arithmetic leave: such elements stay as they are, bit by bit.
ROUNDING = 1e-9


def check_element(
    name: str,
    value: Any,
    group: LieGroup,
    *,
    batch: bool = False,
    tolerance: float = ELEMENT_TOLERANCE,
) -> np.ndarray:
    """`value` as coordinates on a group, brought onto it where digits are missing.

    Parameters
    ----------
    name : str
        What the value is called in the message.
    value : array_like, shape (nq,) or (..., nq)
        Coordinates.
    group : LieGroup
    batch : bool
        Whether leading axes are allowed.
    tolerance : float
        How far a coordinate may be from the element it is normalised to; infinity takes unit
        quaternions and circles of any length but zero. Elements that are off by less than 1e-9
        are returned as they are.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the shape is wrong, a number is not finite, or the coordinates are off by more than the
        tolerance: a quaternion of zeros, ``cos = 2``.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> check_element("heading", [0.6, 0.79], SO2).round(3)
    array([0.605, 0.796])
    >>> check_element("heading", [2.0, 0.0], SO2)
    Traceback (most recent call last):
    ...
    ValueError: heading = [2. 0.] is no element of SO2: cos = 2 should be 1 (normalize brings \
coordinates onto the group)
    """
    given = check_shape(name, value, (group.nq,), batch=batch)
    X = np.asarray(group.normalize(given))
    off = np.abs(X - given)
    if not (off <= tolerance).all() or not np.isfinite(X).all():
        raise ValueError(_complaint(name, given, X, group, tolerance))
    if tolerance == inf:
        return X
    return np.where(off.max(axis=-1, initial=0.0, keepdims=True) > ROUNDING, X, given)


def _complaint(
    name: str, given: np.ndarray, X: np.ndarray, group: LieGroup, tolerance: float
) -> str:
    """Message about the first element that is off, and its worst coordinate."""
    wrong = ~np.isfinite(X) | (np.abs(X - given) > tolerance)
    first = tuple(int(i) for i in np.argwhere(wrong.any(axis=-1))[0])
    where = f"{name}[{', '.join(map(str, first))}]" if first else name
    element, there = given[first], X[first]
    shown = np.array2string(element, precision=4, threshold=20, max_line_width=10**6)
    text = f"{where} = {shown} is no element of {group}: "
    if not np.isfinite(there).all():
        i = int(np.flatnonzero(~np.isfinite(there))[0])
        return f"{text}the part with {group.coordinate_names[i]} cannot be normalised"
    i = int(np.argmax(np.abs(there - element)))
    return (
        f"{text}{group.coordinate_names[i]} = {element[i]:.4g} should be {there[i]:.4g} "
        "(normalize brings coordinates onto the group)"
    )
