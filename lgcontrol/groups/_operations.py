"""Operations of groups on values of every kind: inline for SX, one traced function for the rest."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import Shape, UnknownNameError, unknown_name

if TYPE_CHECKING:
    from ._base import LieGroup

# Arguments and result of each operation: X coordinates, d tangent vector, M matrix,
# J Jacobian, p point, s scalar, E and F maps between tangent vectors and coordinate rates,
# P coordinates on SE(3), T homogeneous matrix.
OPERATIONS: dict[str, tuple[str, str]] = {
    "compose": ("XX", "X"),
    "inverse": ("X", "X"),
    "exp": ("d", "X"),
    "log": ("X", "d"),
    "plus": ("Xd", "X"),
    "minus": ("XX", "d"),
    "act": ("Xp", "p"),
    "hat": ("d", "M"),
    "vee": ("M", "d"),
    "matrix": ("X", "M"),
    "from_matrix": ("M", "X"),
    "Ad": ("X", "J"),
    "ad": ("d", "J"),
    "right_jacobian": ("d", "J"),
    "left_jacobian": ("d", "J"),
    "right_jacobian_inverse": ("d", "J"),
    "left_jacobian_inverse": ("d", "J"),
    "normalize": ("X", "X"),
    "distance": ("XXs", "s"),
    "interpolate": ("XXs", "X"),
    "rate_matrix": ("X", "E"),
    "tangent_matrix": ("X", "F"),
    "embed": ("X", "P"),
    "homogeneous": ("X", "T"),
}

# A model uses some ten groups with ten operations each; sweeps over pitches or axes make new ones.
MOST_FUNCTIONS = 2048


WRITTEN = 1e-2  # off the norm of what is written by hand with three digits


def apply(group: LieGroup, operation: str, values: tuple[Value, ...]) -> Value:
    """Result of an operation, of the kind of its values.

    Among SX values with structural zeros, which they keep, the group's formula is written out;
    everything else goes through its function, which CasADi writes out faster for dense SX values.
    """
    inline = any(isinstance(value, ca.SX) for value in values)
    if not inline or any(isinstance(value, ca.MX | ca.DM) for value in values):
        function = operation_function(group, operation)
        if operation != "normalize":
            for name, value in zip(function.arguments, values, strict=True):
                # What is written by hand is looked at; arrays of loops are not.
                if name in ("X", "Y") and type(value) is list and np.shape(value) == (group.nq,):
                    check_written(name, value, group)
        return function(*values)
    columns = [
        _sx(group, operation, kind, value)
        for kind, value in zip(OPERATIONS[operation][0], values, strict=True)
    ]
    if operation != "normalize" and all(column.is_dense() for column in columns):
        return ca.sparsify(operation_function(group, operation).function(*columns))
    return ca.SX(getattr(group, f"_{operation}")(*columns))


def check_written(name: str, value: list[Any], group: LieGroup) -> None:
    """Refuse numbers that are no element by more than rounding of what is printed."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        return
    for part in group.unit_parts:
        norm = float(np.linalg.norm(numbers[part]))
        if not abs(norm - 1.0) <= WRITTEN:
            names = ", ".join(group.coordinate_names[part])
            raise ValueError(
                f"{name} = {value} is no element of {group}: ({names}) has norm {norm:.7g}, not 1; "
                "normalize brings coordinates onto the group"
            )


@lru_cache(MOST_FUNCTIONS)
def operation_function(group: LieGroup, operation: str) -> ModelFunction:
    """Trace an operation once for each group, unless it was long out of use."""
    if operation not in OPERATIONS:
        raise UnknownNameError(unknown_name(f"operation of {group.name}", operation, OPERATIONS))
    kinds, result = OPERATIONS[operation]
    build = "normalize_any" if operation == "normalize" else operation
    names = [*kinds]
    if kinds.startswith("XX"):
        names[1] = "Y"
    label = "_".join(re.findall(r"[A-Za-z0-9]+", group.name))
    return trace(
        f"{label}_{operation}",
        getattr(group, f"_{build}"),
        {name: _shape(group, kind) for name, kind in zip(names, kinds, strict=True)},
        {"result": _shape(group, result)},
    )


def _shape(group: LieGroup, kind: str) -> Shape:
    return {
        "X": (group.nq,),
        "d": (group.dim,),
        "M": (group.matrix_size, group.matrix_size),
        "J": (group.dim, group.dim),
        "p": (group.point_size,),
        "s": (),
        "E": (group.nq, group.dim),
        "F": (group.dim, group.nq),
        "P": (7,),
        "T": (4, 4),
    }[kind]


def _sx(group: LieGroup, operation: str, kind: str, value: Value) -> ca.SX:
    column = value if isinstance(value, ca.SX) else ca.SX(ca.DM(np.asarray(value, dtype=float)))
    shape = (_shape(group, kind) + (1, 1))[:2]
    if column.shape != shape:
        raise ValueError(
            f"{group.name}.{operation}: an argument has shape {column.shape}, expected {shape}"
        )
    return column
