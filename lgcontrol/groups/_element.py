"""check_element: coordinates from outside as elements of a group, or an error that names them."""

from __future__ import annotations

import warnings
from math import hypot, inf, isfinite
from typing import Any

import numpy as np

from ..codegen._internal import check_shape, level_outside
from ._base import LieGroup, not_a_group

# Single precision and printed files have six digits; what is further off was not meant to be.
ELEMENT_TOLERANCE = 1e-6
# What many steps of arithmetic leave: such elements stay as they are, bit by bit.
ELEMENT_ROUNDING = 1e-9


def check_element(
    name: str,
    value: Any,
    group: LieGroup,
    *,
    batch: bool = False,
    tolerance: float = ELEMENT_TOLERANCE,
) -> np.ndarray:
    """`value` as coordinates on a group, brought onto it where the seventh digit is missing.

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
    >>> check_element("heading", [0.6, 0.8000001], SO2).round(9)
    array([0.59999995, 0.80000004])
    >>> check_element("heading", [2.0, 0.0], SO2)
    Traceback (most recent call last):
    ...
    ValueError: heading = [2. 0.] is no element of SO2: (cos, sin) has norm 2, not 1 (normalize \
brings coordinates onto the group)
    """
    if not isinstance(group, LieGroup):
        raise TypeError(not_a_group("group", group))
    given = check_shape(name, value, (group.nq,), batch=batch, finite=False)
    least = min(ELEMENT_ROUNDING, tolerance)
    if tolerance != inf and given.ndim == 1:  # as in loops: no coordinate is off by more than norms
        numbers = given.tolist()
        is_finite = isfinite(sum(numbers))  # a sum may only be less finite than its terms
        if is_finite and _are_units(numbers, group.unit_parts, least):
            return given
    check_shape(name, given, (group.nq,), batch=batch)
    X = np.asarray(group.normalize(given))
    off = np.abs(X - given)
    if off.max(initial=0.0) <= least:  # NaN is not
        return X if tolerance == inf else given
    if not (off <= tolerance).all() or not np.isfinite(X).all():
        raise ValueError(_complaint(name, given, X, group, tolerance))
    if tolerance == inf:
        return X
    return np.where(off.max(axis=-1, initial=0.0, keepdims=True) > ELEMENT_ROUNDING, X, given)


def _are_units(numbers: list[float], parts: tuple[slice, ...], least: float) -> bool:
    for part in parts:
        if not abs(hypot(*numbers[part]) - 1.0) <= least:
            return False
    return True


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
    worst = np.where(np.isfinite(there), np.abs(there - element), np.inf)
    i = int(np.argmax(worst))
    inside = (p for p in group.unit_parts if i in range(group.nq)[p])
    part = next(inside, slice(i, i + 1))
    names = f"({', '.join(group.coordinate_names[part])})"
    if not np.isfinite(there).all():
        return f"{text}{names} cannot be normalised"
    if part not in group.unit_parts:
        return (
            f"{text}{group.coordinate_names[i]} = {element[i]:.7g} should be {there[i]:.7g} "
            "(normalize brings coordinates onto the group)"
        )
    largest = float(np.abs(element[part]).max())
    norm = largest * np.linalg.norm(element[part] / largest)
    return f"{text}{names} has norm {norm:.7g}, not 1 (normalize brings coordinates onto the group)"


def ask_order(name: str, X: np.ndarray, group: LieGroup) -> None:
    """Ask by a warning whether a quaternion that is exactly [1, 0, 0, 0] has w first.

    In the order [x, y, z, w] it is half a turn about x, which computations leave with rounding.
    """
    for part in group.unit_parts:
        q = X[part]
        if len(q) == 4 and abs(q[0]) == 1.0 and not q[1:].any():
            names = ", ".join(group.coordinate_names[part])
            warnings.warn(
                f"{name}: ({names}) = {q.tolist()} is half a turn about x in the order "
                "[x, y, z, w]; is w first? The identity is [0, 0, 0, 1]; give "
                "SO3.from_quaternion(q, order='wxyz'), or SO3.exp([np.pi, 0, 0]) for the half turn",
                stacklevel=level_outside(),
            )
