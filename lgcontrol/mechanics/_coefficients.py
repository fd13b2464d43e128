"""Numbers of models: checked fields, and coefficients of which chosen ones stay symbolic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value, named_options
from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..groups._internal import axis_numbers
from ..systems import Parameter


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


AXES = ("x", "y", "z")
TWIST_AXES = (*AXES, "rx", "ry", "rz")


@named_options
@dataclass(frozen=True, eq=False)
class Coefficient:
    """A number, column or matrix of numbers with a unit. Any entry may stay symbolic.

    Parameters
    ----------
    value : ndarray, shape (), (n,) or (n, m)
        The numbers.
    unit : str or ndarray of str
        Unit of all entries, or of each.
    is_symmetric : bool
        Whether a matrix is symmetric: its upper triangle is what can be chosen.
    lower : float
        Least value that makes sense, of matrices for entries of the diagonal.
    labels : tuple of str, optional
        Names of the rows, and of the columns of a square matrix. Default: x, y, z, rx, ry, rz for
        lengths of three and six, else numbers.

    Examples
    --------
    >>> import numpy as np
    >>> [name for name, _ in Coefficient(np.zeros(3), "m").entries("position")]
    ['position.x', 'position.y', 'position.z']
    >>> drag = Coefficient(np.eye(6), ["N s/m"] * 3 + ["N m s"] * 3, is_symmetric=True)
    >>> drag.entries("damping")[4][0]
    'damping.x.ry'
    >>> Coefficient(np.eye(3), "kg m²", is_symmetric=True).entries("inertia")[1][0]
    'inertia.xy'
    """

    value: np.ndarray
    unit: Any = ""
    is_symmetric: bool = False
    labels: tuple[str, ...] = ()
    lower: float = -inf

    def entries(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        """Name and index of each number."""
        shape = self.value.shape
        if shape == ():
            return [(name, ())]
        rows, columns = (self._axis(n) for n in (shape[0], shape[-1]))
        if len(shape) == 1:
            return [(f"{name}.{row}", (i,)) for i, row in enumerate(rows)]
        dot = "." if any(len(label) > 1 for label in (*rows, *columns)) else ""
        return [
            (f"{name}.{row}{dot}{column}", (i, j))
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
            if i <= j or not self.is_symmetric
        ]

    def _axis(self, length: int) -> tuple[str, ...]:
        if len(self.labels) == length:
            return self.labels
        if length in (3, 6):
            return TWIST_AXES[:length]
        return tuple(str(i) for i in range(length))


class _SymbolicCoefficient(NamedTuple):
    parameter: Parameter
    coefficient: str
    place: tuple[int, ...]


class Coefficients:
    """All coefficients of a model by name; those named in `symbolic` become parameters.

    Names are those of entries, or beginnings of several up to a dot: "inertia.xx", "inertia".
    """

    def __init__(
        self, coefficients: Mapping[str, Coefficient], symbolic: Iterable[str] = ()
    ) -> None:
        entries = [entry for name, c in coefficients.items() for entry in _entries(name, c)]
        for name in symbolic:
            valid = [entry.parameter.name for entry in entries]
            if not is_named(name, valid):
                raise UnknownNameError(unknown_parameter(name, valid))
        self.values = {name: c.value for name, c in coefficients.items()}
        self._entries = entries
        self._symmetric = {name for name, c in coefficients.items() if c.is_symmetric}
        self._chosen = [
            entry
            for entry in entries
            if any(is_named(name, [entry.parameter.name]) for name in symbolic)
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Every number that may become a parameter."""
        return tuple(entry.parameter.name for entry in self._entries)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the chosen entries, in the order of the coefficients."""
        return tuple(entry.parameter for entry in self._chosen)

    def with_values(self, where: str, values: Any) -> dict[str, np.ndarray]:
        """The coefficients that change, with new numbers: one for each of `parameters`, or by name.

        `where` says in messages whose they are.
        """
        chosen = [entry.parameter.name for entry in self._chosen]
        if isinstance(values, Mapping):
            given = {key: float(check_shape(key, x, ())) for key, x in values.items()}
        else:
            p = check_shape(f"{where}: parameter values", values, (len(chosen),))
            given = dict(zip(chosen, p.tolist(), strict=True))
        known = {entry.parameter.name: entry for entry in self._entries}
        changed: dict[str, np.ndarray] = {}
        for name, x in given.items():
            if name not in known:
                raise UnknownNameError(f"{where}: {unknown_parameter(name, known)}")
            parameter, coefficient, place = known[name]
            parameter.check(x, f"{where}: ")
            new = changed.setdefault(coefficient, np.array(self.values[coefficient], dtype=float))
            new[place] = x
            if coefficient in self._symmetric:
                new[place[::-1]] = x
        return changed

    def bind(self, p: Value) -> dict[str, Value]:
        """Coefficients as CasADi values: constants without stored zeros, or with entries of p."""
        bound: dict[str, Value] = {name: ca.DM(value) for name, value in self.values.items()}
        for k, entry in enumerate(self._chosen):
            name = entry.coefficient
            if isinstance(bound[name], ca.DM):
                bound[name] = type(p)(bound[name])
            bound[name][entry.place or 0] = p[k]
            if name in self._symmetric:
                bound[name][entry.place[::-1]] = p[k]
        return {
            name: value if isinstance(value, ca.MX) else ca.sparsify(value)
            for name, value in bound.items()
        }


def _entries(name: str, coefficient: Coefficient) -> Iterator[_SymbolicCoefficient]:
    units = np.broadcast_to(np.asarray(coefficient.unit), coefficient.value.shape)
    for full_name, place in coefficient.entries(name):
        value = float(coefficient.value[place])
        is_judged = len(set(place)) <= 1  # off the diagonal every sign may be
        lower = coefficient.lower if is_judged else -inf
        entry = within(Parameter(full_name, str(units[place]), value), lower)
        yield _SymbolicCoefficient(entry, name, place)


def is_named(name: str, numbers: Iterable[str]) -> bool:
    """Whether a name is that of a number, or the beginning of several up to a dot."""
    return any(entry == name or entry.startswith(f"{name}.") for entry in numbers)


def within(parameter: Parameter, lower: float) -> Parameter:
    """Parameter with a least value, where it has no less from the start (as some files do)."""
    return parameter if parameter.nominal < lower else replace(parameter, lower=lower)


# What numbers were called elsewhere, and are called here.
_RENAMED = ((r"(^|\.)com(?=\.|$)", r"\1center_of_mass"), (r"\bgravity\.acceleration\b", "gravity"))


def unknown_parameter(name: str, known: Iterable[str]) -> str:
    """Message for a name that no number has; a name from elsewhere is translated."""
    here = name
    for pattern, new in _RENAMED:
        here = re.sub(pattern, new, here)
    message = unknown_name("parameter", name, known)
    return message if here == name else f"{name!r} is called {here!r} here; {message}"
