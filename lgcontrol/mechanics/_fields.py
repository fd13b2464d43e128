"""Checks of the fields of frozen dataclasses, kept as floats and read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..groups._internal import axis_numbers


def freeze(owner: Any, **shapes: tuple[int | None, ...]) -> None:
    """Check fields against their shapes and keep them as floats or read-only arrays."""
    for field, shape in shapes.items():
        value = check_shape(f"{type(owner).__name__}: {field}", getattr(owner, field), shape)
        set_field(owner, field, value)


def set_field(owner: Any, field: str, value: np.ndarray) -> None:
    """Keep a checked value in a frozen dataclass."""
    object.__setattr__(owner, field, read_only(value) if value.ndim else float(value))


def read_only(array: np.ndarray) -> np.ndarray:
    """Copy of an array that cannot be changed."""
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


def refuse_negative(owner: Any, **units: str) -> None:
    """Refuse negative numbers in fields, given with their units."""
    for field, unit in units.items():
        value = np.asarray(getattr(owner, field))
        if (value < 0.0).any():
            raise ValueError(
                f"{type(owner).__name__}: {field} must not be negative, got {value.min():g} {unit}"
            )


def unit_vector(name: str, value: Any) -> np.ndarray:
    """Direction of a vector of three that is not zero, or of a letter, "-x"."""
    vector = axis_numbers(name, value)
    largest = np.abs(vector).max()
    if largest == 0.0:
        raise ValueError(f"{name} must not be zero")
    if not 1e-150 < largest < 1e150:  # the squares would vanish or overflow
        vector = vector / largest
    return vector / np.linalg.norm(vector)
