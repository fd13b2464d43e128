"""Parameters of parameters: by name or in order, numbers or functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import UnknownNameError, check_shape, unknown_name

FixedParameters: TypeAlias = Mapping[str, float] | ArrayLike
"""All values in order, or some by name."""

Parameters: TypeAlias = Mapping[str, float | Callable[[float], float]] | ArrayLike
"""All values in order, or some by name, each a number or a function of time in s."""


def values_by_name(
    names: Sequence[str], nominal: np.ndarray, p: FixedParameters | None = None
) -> np.ndarray:
    """Parameters of parameters of a mapping or of an array.

    Parameters
    ----------
    names : sequence of str
    nominal : ndarray, shape (n,)
        Parameters of those that a mapping does not name.
    p : mapping of str to float, array_like or None

    Returns
    -------
    ndarray, shape (n,)
    """
    if p is None:
        return nominal
    if not isinstance(p, Mapping):
        return check_shape("p", p, nominal.shape)
    values = nominal.copy()
    for name, value in p.items():
        _check_known(names, name)
        values[names.index(name)] = check_shape(f"parameter {name!r}", value, ())
    return values


class ParameterValues:
    """Parameters of parameters over time: numbers, and functions of time by name.

    Parameters
    ----------
    names : sequence of str
        Of all parameters.
    others : ndarray, shape (n,)
        Parameters of those that a mapping does not name.
    values : mapping or array_like, optional

    Attributes
    ----------
    constant : ndarray, shape (n,)
        Of those that do not change.
    functions : dict of str to callable
        Parameters that change.

    Examples
    --------
    >>> values = ParameterValues(["mass", "drag"], np.ones(2), {"mass": lambda t: 2.0 - t})
    >>> values.at(0.5)
    array([1.5, 1. ])
    >>> values.changed({"mass": 3.0}).at(0.5)
    array([3., 1.])
    """

    def __init__(
        self, names: Sequence[str], others: np.ndarray, values: Parameters | None = None
    ) -> None:
        self.names, self.functions = tuple(names), {}
        fixed: object = values
        if isinstance(values, Mapping):
            self.functions = {name: value for name, value in values.items() if callable(value)}
            fixed = {name: value for name, value in values.items() if not callable(value)}
        for name in self.functions:
            _check_known(self.names, name)
        self.constant = values_by_name(self.names, others, fixed)  # type: ignore[arg-type]

    def changed(self, values: Parameters) -> ParameterValues:
        """These with some other ones; an array gives all."""
        made = ParameterValues(self.names, self.constant, values)
        if isinstance(values, Mapping):
            made.functions = {
                name: function for name, function in self.functions.items() if name not in values
            } | made.functions
        return made

    def by_name(self) -> dict[str, float | Callable[[float], float]]:
        """What each parameter is, a number or a function."""
        numbers = dict(zip(self.names, map(float, self.constant), strict=True))
        return {name: self.functions.get(name, value) for name, value in numbers.items()}

    def at(self, t: float) -> np.ndarray:
        """Parameters at time t in s, shape (n,).

        Raises
        ------
        ValueError
            If a function returns what is no finite number.
        """
        if not self.functions:
            return self.constant
        values = self.constant.copy()
        for name, function in self.functions.items():
            label = f"parameter {name!r} at t = {t:g} s"
            values[self.names.index(name)] = check_shape(label, function(t), ())
        return values


def _check_known(names: Sequence[str], name: str) -> None:
    if name not in names:
        raise UnknownNameError(unknown_name("parameter", name, names))
