"""Values of parameters: by name or in order, numbers or functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import UnknownNameError, check_shape
from ._signals import Parameter, unknown_parameter

FixedParameters: TypeAlias = Mapping[str, float] | ArrayLike
"""All values in order, or some by name."""

Parameters: TypeAlias = Mapping[str, float | Callable[[float], float]] | ArrayLike
"""All values in order, or some by name, each a number or a function of time in s."""


def values_by_name(
    parameters: Sequence[Parameter], others: np.ndarray, p: FixedParameters | None = None
) -> np.ndarray:
    """Values of parameters of a mapping or of an array.

    Parameters
    ----------
    parameters : sequence of Parameter
    others : ndarray, shape (n,)
        Values of those that a mapping does not name.
    p : mapping of str to float, array_like or None

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If a value is outside the range of its parameter.
    """
    if p is None:
        return others
    if not isinstance(p, Mapping):
        values = check_shape("p", p, others.shape)
        for entry, value in zip(parameters, values, strict=True):
            entry.check(value)
        return values
    values = others.copy()
    for name, value in p.items():
        k = _index(parameters, name)
        values[k] = check_shape(f"parameter {name!r}", value, ())
        parameters[k].check(values[k])
    return values


class ParameterValues:
    """Values of parameters over time: numbers, and functions of time by name.

    Parameters
    ----------
    parameters : sequence of Parameter
    others : ndarray, shape (n,)
        Values of those that a mapping does not name.
    values : mapping or array_like, optional

    Attributes
    ----------
    constant : ndarray, shape (n,)
        Of those that do not change.
    functions : dict of str to callable
        Parameters that change.

    Examples
    --------
    >>> declared = [Parameter("mass", "kg", lower=0.0), Parameter("drag")]
    >>> values = ParameterValues(declared, np.ones(2), {"mass": lambda t: 2.0 - t})
    >>> values.at(0.5)
    array([1.5, 1. ])
    >>> values.changed({"mass": 3.0}).at(0.5)
    array([3., 1.])
    """

    def __init__(
        self, parameters: Sequence[Parameter], others: np.ndarray, values: Parameters | None = None
    ) -> None:
        self.parameters, self.functions = tuple(parameters), {}
        fixed: object = values
        if isinstance(values, Mapping):
            self.functions = {name: value for name, value in values.items() if callable(value)}
            fixed = {name: value for name, value in values.items() if not callable(value)}
        for name in self.functions:
            _index(self.parameters, name)  # which refuses unknown ones
        self.constant = values_by_name(self.parameters, others, fixed)  # type: ignore[arg-type]

    def changed(self, values: Parameters) -> ParameterValues:
        """These with some other ones; an array gives all."""
        made = ParameterValues(self.parameters, self.constant, values)
        if isinstance(values, Mapping):
            made.functions = {
                name: function for name, function in self.functions.items() if name not in values
            } | made.functions
        return made

    def by_name(self) -> dict[str, float | Callable[[float], float]]:
        """What each parameter is, a number or a function."""
        names = (entry.name for entry in self.parameters)
        numbers = dict(zip(names, map(float, self.constant), strict=True))
        return {name: self.functions.get(name, value) for name, value in numbers.items()}

    def at(self, t: float) -> np.ndarray:
        """Values at time t in s, shape (n,).

        Raises
        ------
        ValueError
            If a function returns what is no finite number or is outside of its range.
        """
        if not self.functions:
            return self.constant
        values = self.constant.copy()
        for name, function in self.functions.items():
            k, when = _index(self.parameters, name), f"at t = {t:g} s"
            values[k] = check_shape(f"parameter {name!r} {when}", function(t), ())
            self.parameters[k].check(values[k], f"{when}: ")
        return values


def _index(parameters: Sequence[Parameter], name: str) -> int:
    names = [entry.name for entry in parameters]
    if name not in names:
        raise UnknownNameError(unknown_parameter(name, names))
    return names.index(name)
