"""Weights given by name: scalars, diagonals or matrices, put together into one matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..codegen import check_shape, unknown_name
from ..groups import LieGroup
from ..systems import System, block_slices

# Eigenvalues of a semidefinite matrix from data come out negative by this share of the largest.
SEMIDEFINITE_TOLERANCE = 1e-10


def state_weight(name: str, weight: Any, group: LieGroup) -> np.ndarray:
    """Weight on tangent vectors of a group.

    Parameters
    ----------
    name : str
        What messages call it, for example ``"Q"``.
    weight : float, array_like or mapping
        A number (times the identity), a diagonal (dim,), a matrix (dim, dim), or a mapping from
        blocks (joints, too) or tangent coordinates to any of these; what is not named weighs
        nothing.
    group : LieGroup

    Returns
    -------
    ndarray, shape (dim, dim)
        Symmetric, positive semidefinite.

    Raises
    ------
    ValueError
        If a name is unknown, a shape does not fit or the matrix is indefinite.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> craft = Product(pose=SE2, twist=Rn(3))
    >>> np.diag(state_weight("Q", {"pose": [1, 1, 5], "twist": 0.1}, craft))
    array([1. , 1. , 5. , 0.1, 0.1, 0.1])
    """
    return _assemble(name, weight, state_names(group), group.dim, strict=False)


def input_weight(name: str, weight: Any, system: System) -> np.ndarray:
    """Weight on the controls of a system.

    Parameters
    ----------
    name : str
    weight : float, array_like or mapping
        As in `state_weight`, with the names of controls, or what comes before the dot in them:
        ``{"rotor": 0.1}`` for rotor.0 to rotor.3.
    system : System

    Returns
    -------
    ndarray, shape (m, m)
        Symmetric, positive definite.

    Raises
    ------
    ValueError
        If a name is unknown, a shape does not fit or the matrix is not positive definite.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> input_weight("R", 0.5, wheel)
    array([[0.5]])
    """
    controls = system.input_index("control")
    names = {system.input_names[i]: slice(k, k + 1) for k, i in enumerate(controls)}
    for prefix in dict.fromkeys(name.split(".")[0] for name in names if "." in name):
        own = [k for k, name in enumerate(names) if name.startswith(f"{prefix}.")]
        if prefix not in names and own[-1] - own[0] == len(own) - 1:
            names[prefix] = slice(own[0], own[-1] + 1)
    return _assemble(name, weight, names, len(controls), strict=True)


def state_names(group: LieGroup) -> dict[str, slice]:
    """Where blocks, blocks in blocks and tangent coordinates are in a tangent vector."""
    names = {key: slice(i, i + 1) for i, key in enumerate(group.tangent_names)}
    return block_slices(group)[1] | names


def _assemble(
    name: str, weight: Any, names: Mapping[str, slice], size: int, *, strict: bool
) -> np.ndarray:
    if isinstance(weight, Mapping):
        matrix = np.zeros((size, size))
        for key, value in weight.items():
            if key not in names:
                raise ValueError(unknown_name(f"entry of {name}", key, names))
            part, label = names[key], f"{name}[{key!r}]"
            own = square(label, value, part.stop - part.start)
            matrix[part, part] = check_definite(label, own, strict=False)
        missing = [
            key
            for key, part in names.items()
            if part.stop - part.start == 1 and not matrix[part, part].any()
        ]
        if strict and missing:
            raise ValueError(f"{name} gives no weight to {', '.join(missing)}: weigh every control")
    elif isinstance(weight, str):
        raise TypeError(
            f"{name} must be a number, a diagonal, a matrix, or a mapping from names to these, as "
            f"in {{{next(iter(names))!r}: 1.0}}; got {weight!r}"
        )
    else:
        matrix = square(name, weight, size, names)
    return check_definite(name, matrix, strict=strict)


def square(
    name: str, value: Any, size: int, names: Mapping[str, slice] | None = None
) -> np.ndarray:
    """Matrix of a number, a diagonal or a matrix; names of its rows for messages."""
    array = check_shape(name, value, [None] * np.ndim(value))
    if array.ndim == 0:
        return array * np.eye(size)
    if array.shape not in ((size,), (size, size)):
        rows = [key for key, part in (names or {}).items() if part.stop - part.start == 1]
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number, ({size},) or ({size}, {size})"
            + (f": the rows are {', '.join(rows)}" if len(rows) == size else "")
        )
    return np.diag(array) if array.ndim == 1 else array


def check_definite(name: str, matrix: np.ndarray, *, strict: bool) -> np.ndarray:
    """Refuse matrices that are asymmetric or not positive (semi)definite."""
    scale = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > SEMIDEFINITE_TOLERANCE * scale:
        raise ValueError(f"{name} must be symmetric")
    matrix = (matrix + matrix.T) / 2
    smallest = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    if strict and not smallest > 0:
        raise ValueError(
            f"{name} must be positive definite, every control must cost something; its smallest "
            f"eigenvalue is {smallest:.3g}"
        )
    if smallest < -SEMIDEFINITE_TOLERANCE * scale:
        raise ValueError(
            f"{name} must be positive semidefinite, its smallest eigenvalue is {smallest:.3g}"
        )
    return matrix
