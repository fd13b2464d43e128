"""Coefficients of models by name: numbers, of which chosen ones stay symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value, unknown_name
from ..systems import Parameter

AXES = ("x", "y", "z")
TWIST_AXES = (*AXES, "rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Coefficient:
    """A number, column or matrix of numbers with a unit, any entry of which may stay symbolic.

    Parameters
    ----------
    value : ndarray, shape (), (n,) or (n, m)
        The numbers.
    unit : str or ndarray of str
        Unit of all entries, or of each.
    is_symmetric : bool
        Whether a matrix is symmetric: its upper triangle is what can be chosen.
    labels : tuple of str, optional
        Names of the rows (and of the columns of a square matrix); x, y, z, rx, ry, rz for lengths
        of three and six, else numbers.

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


class _Slot(NamedTuple):
    parameter: Parameter
    coefficient: str
    index: tuple[int, ...]


class Coefficients:
    """All coefficients of a model; those named in `parametric` become parameters.

    Parameters
    ----------
    coefficients : mapping of str to Coefficient
        By name.
    parametric : iterable of str
        Names of coefficients (all their entries) or of single entries.

    Raises
    ------
    KeyError
        If a name is unknown.
    """

    def __init__(
        self, coefficients: Mapping[str, Coefficient], parametric: Iterable[str] = ()
    ) -> None:
        if isinstance(parametric, str):
            parametric = (parametric,)
        self.values = {name: c.value for name, c in coefficients.items()}
        self._symmetric = {name for name, c in coefficients.items() if c.is_symmetric}
        slots: dict[str, list[_Slot]] = {}
        for name, coefficient in coefficients.items():
            units = np.broadcast_to(np.asarray(coefficient.unit), coefficient.value.shape)
            for entry, index in coefficient.entries(name):
                parameter = Parameter(entry, str(units[index]), float(coefficient.value[index]))
                slot = _Slot(parameter, name, index)
                slots[entry] = [slot]
                if entry != name:
                    slots.setdefault(name, []).append(slot)
        chosen = set()
        for name in parametric:
            if name not in slots:
                raise KeyError(unknown_name("parameter", name, slots))
            chosen |= {slot.parameter.name for slot in slots[name]}
        self._slots = [
            slot
            for name, coefficient in coefficients.items()
            for entry, _ in coefficient.entries(name)
            for slot in slots[entry]
            if entry in chosen
        ]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the chosen entries, in the order of the coefficients."""
        return tuple(slot.parameter for slot in self._slots)

    def bind(self, p: Value) -> dict[str, Value]:
        """Coefficients as CasADi values: constants without stored zeros, or with entries of p."""
        bound: dict[str, Value] = {
            name: ca.sparsify(ca.DM(value)) for name, value in self.values.items()
        }
        for k, slot in enumerate(self._slots):
            name = slot.coefficient
            if isinstance(bound[name], ca.DM):
                bound[name] = type(p)(ca.DM(self.values[name]))
            bound[name][slot.index or 0] = p[k]
            if name in self._symmetric:
                bound[name][slot.index[::-1]] = p[k]
        return {
            name: ca.sparsify(value) if isinstance(value, ca.SX) else value
            for name, value in bound.items()
        }
