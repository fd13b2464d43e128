"""Weights by the names of errors and controls, and what of them is a parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import (
    UnknownNameError,
    check_semidefinite,
    check_shape,
    check_symmetric,
    unknown_name,
)
from ..groups import LieGroup
from ..systems import System
from ..systems._internal import from_wide_to_narrow
from ._places import control_places, error_places, state_names

WeightLike: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A number, a diagonal, a matrix, or a mapping from blocks and coordinates to any of these.

Along the horizon also a stack of matrices, one a step: shape (N, n, n), or (N, 1, 1) for numbers.
"""


def state_weight(name: str, weight: WeightLike, group: LieGroup) -> np.ndarray:
    """Weight (dim, dim) on tangent vectors of a group, positive semidefinite.

    A number (times the identity), a diagonal, a matrix, or a mapping from blocks, joints or tangent
    coordinates to any of these. Names that are left out weigh nothing.

    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> craft = Product(pose=SE2, twist=Rn(3))
    >>> np.diag(state_weight("Q", {"pose": [1, 1, 5], "twist": 0.1}, craft))
    array([1. , 1. , 5. , 0.1, 0.1, 0.1])
    """
    return _assemble(name, weight, state_names(group), group.dim, strict=False)


def error_weight(
    name: str, weight: WeightLike, system: System, steps: int | None = None
) -> np.ndarray:
    """Weight on the error coordinates of a system, as `state_weight`, by their own names.

    With `steps` it may change along the horizon, with so many entries.
    """
    return _assemble(name, weight, error_places(system), system.n_errors, strict=False, steps=steps)


def input_weight(
    name: str, weight: WeightLike, system: System, steps: int | None = None
) -> np.ndarray:
    """Weight (m, m) on the controls of a system, positive definite, as `state_weight`.

    Names are those of controls, or what comes before the dot in them: ``{"rotor": 0.1}`` for
    rotor.0 to rotor.3. With `steps` it may change along the horizon.

    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> input_weight("R", 0.5, wheel)
    array([[0.5]])
    """
    names, count = control_places(system), len(system.input_index("control"))
    return _assemble(name, weight, names, count, strict=True, steps=steps)


def _assemble(
    name: str, weight: WeightLike, names: Mapping[str, slice], size: int, *, strict: bool,
    steps: int | None = None,
) -> np.ndarray:  # fmt: skip
    if isinstance(weight, Mapping):
        matrix = np.zeros((size, size))
        for key in weight:
            if key not in names:
                raise UnknownNameError(unknown_name(f"entry of {name}", key, names))
        for key in from_wide_to_narrow(name, {key: names[key] for key in weight}):
            part, label = names[key], f"{name}[{key!r}]"
            own = square(label, weight[key], part.stop - part.start, steps=steps)
            if own.ndim > matrix.ndim:
                matrix = np.tile(matrix, (len(own), 1, 1))
            matrix[..., part, part] = each_checked(check_semidefinite, label, own)
        missing = [
            key
            for key, part in names.items()
            if part.stop - part.start == 1 and not matrix[..., part, part].any()
        ]
        if strict and missing:
            raise ValueError(f"{name} gives no weight to {', '.join(missing)}: weigh every control")
    elif isinstance(weight, str):
        raise TypeError(
            f"{name} must be a number, a diagonal, a matrix, or a mapping from names to these, as "
            f"in {{{next(iter(names))!r}: 1.0}}; got {weight!r}"
        )
    else:
        matrix = square(name, weight, size, names, steps)
    return each_checked(check_definite if strict else check_semidefinite, name, matrix)


def each_checked(
    check: Callable[[str, np.ndarray], np.ndarray], name: str, matrix: np.ndarray
) -> np.ndarray:
    """What a check makes of a matrix, or of each one along the horizon; equal ones are one."""
    if matrix.ndim == 2:
        return check(name, matrix)
    if (matrix == matrix[:1]).all():
        return check(name, matrix[0])
    return np.array([check(f"{name} of step {k}", each) for k, each in enumerate(matrix)])


def square(
    name: str, value: Any, size: int, names: Mapping[str, slice] | None = None,
    steps: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Matrix of a number, a diagonal or a matrix, or a stack of these, one for each of the steps.

    Names of its rows are for messages.
    """
    if callable(value):
        raise TypeError(
            f"{name} must be numbers, not a function: give one matrix for each of the "
            f"{steps or 'N'} steps, shape ({steps or 'N'}, {size}, {size}), or a Residual whose "
            "function (t, x, u, p) holds the root of the weight"
        )
    array = check_shape(name, value, [None] * np.ndim(value))
    if array.ndim == 0:
        return array * np.eye(size)
    if array.ndim == 3:
        if steps is None:
            raise ValueError(
                f"{name} has shape {array.shape}, expected ({size}, {size}): it is one weight; "
                "weights along the horizon alone may have an entry for each step"
            )
        if array.shape not in ((steps, 1, 1), (steps, size, size)):
            raise ValueError(
                f"{name} has shape {array.shape}, expected ({steps}, {size}, {size}), a matrix for "
                f"each of the {steps} steps or nodes, or ({steps}, 1, 1), a number for each"
            )
        return array * np.eye(size) if array.shape[1] == 1 else array
    if array.shape not in ((size,), (size, size)):
        rows = [key for key, part in (names or {}).items() if part.stop - part.start == 1]
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number, ({size},) or ({size}, {size})"
            + (f": the rows are {', '.join(rows)}" if len(rows) == size else "")
            + (f"; a number for each step is ({steps}, 1, 1)" if array.shape[0] == steps else "")
        )
    return np.diag(array) if array.ndim == 1 else array


def check_definite(name: str, matrix: np.ndarray) -> np.ndarray:
    """Refuse weights of controls that leave a combination of them free."""
    matrix = check_symmetric(name, matrix)
    smallest = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    if not smallest > 0:
        raise ValueError(
            f"{name} must be positive definite, every control must cost something; its smallest "
            f"eigenvalue is {smallest:.3g}: give a control that is to be free a small weight, "
            "1e-6 / h² with half its range h"
        )
    return matrix


class Weight(NamedTuple):
    """A weight, of all steps or of each, whose diagonal may hold parameters.

    Which of p stands there says `parameter` (size,), −1 for none; the matrix has what multiplies
    it.
    """

    matrix: np.ndarray
    parameter: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> Weight:
        """Numbers alone."""
        return cls(matrix, np.full(matrix.shape[-1], -1))

    def at(self, p: np.ndarray) -> np.ndarray:
        """The matrix for values of the parameters, of the last step where it changes."""
        matrix = (self.matrix if self.matrix.ndim == 2 else self.matrix[-1]).copy()
        np.fill_diagonal(matrix, np.diag(matrix) * np.append(p, 1.0)[self.parameter])
        return matrix

    def times(self, factor: float | np.ndarray) -> Weight:
        """The weight times a factor, or one for each step, shape (N,)."""
        factor = np.reshape(factor, (-1, 1, 1)) if np.ndim(factor) else factor
        return self._replace(matrix=factor * self.matrix)

    @property
    def is_set(self) -> np.ndarray:
        """Which entries are not zero throughout, shape (size, size)."""
        return np.any(self.matrix != 0, axis=0) if self.matrix.ndim == 3 else self.matrix != 0

    def split(self) -> tuple[np.ndarray, Weight]:
        """The matrix without what parameters stand for, and that."""
        varies = np.diag(np.where(self.parameter < 0, 0.0, np.diag(self.matrix)))
        return self.matrix - varies, Weight(varies, self.parameter)


def single_numbers(matrix: np.ndarray, places: Mapping[str, slice]) -> dict[str, float]:
    """Parts of a weight that are a number times the identity, and coupled to no other."""
    found = {}
    for name, part in places.items():
        alone, number = np.zeros_like(matrix), matrix[part, part][0, 0]
        alone[part, part] = number * np.eye(part.stop - part.start)
        if np.array_equal(alone[part], matrix[part]):
            found[name] = float(number)
    return found


def named_places(term: str, places: Mapping[str, slice]) -> dict[str, slice]:
    """Names of a weight and its entries, as in "Q" and "Q.pose"."""
    size = max((part.stop for part in places.values()), default=0)
    return {term: slice(0, size)} | {f"{term}.{name}": part for name, part in places.items()}


def parameter_places(
    weights: Sequence[str], places: Mapping[str, Mapping[str, slice]], nominal: Mapping[str, float]
) -> dict[str, slice]:
    """Places of the weights that are parameters; each place holds one at most."""
    known = {
        name: part for term, own in places.items() for name, part in named_places(term, own).items()
    }
    found: dict[str, slice] = {}
    for name in weights:
        if name not in known:
            raise UnknownNameError(unknown_name("weight", name, known))
        if name not in nominal:
            raise UnknownNameError(unknown_name("parameter", name, nominal))
        part = known[name]
        for other, taken in found.items():
            same = other.partition(".")[0] == name.partition(".")[0]
            if same and part.start < taken.stop and taken.start < part.stop:
                raise ValueError(f"weights {other!r} and {name!r} are parameters of the same place")
        found[name] = part
    return found


def with_numbers(
    term: str, matrix: np.ndarray, parts: Mapping[str, slice], nominal: Mapping[str, float]
) -> np.ndarray:
    """A weight with the nominal values of what are parameters."""
    for name, part in parts.items():
        if name.partition(".")[0] == term:
            matrix[..., part, part] = nominal[name] * np.eye(part.stop - part.start)
    return matrix


def diagonal_of(weight: Any) -> str:
    """A weight in a few characters: its diagonal, equal entries once."""
    if isinstance(weight, str):
        return repr(weight)
    if weight.ndim == 3:
        return f"{diagonal_of(weight[0])} to {diagonal_of(weight[-1])}"
    entries = np.diag(weight)
    if (entries == entries[:1]).all():
        text = f"{entries[0]:g}"
    else:
        runs = np.split(entries, np.flatnonzero(np.diff(entries)) + 1)
        parts = (f"{run[0]:g}" + (f"×{len(run)}" if len(run) > 1 else "") for run in runs)
        text = f"diag({', '.join(parts)})"
    return text + (" and more" if np.count_nonzero(weight - np.diag(entries)) else "")
