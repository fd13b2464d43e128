"""Signals: inputs, outputs and parameters of systems by name, with units, bounds and values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import (
    NO_LIMIT,
    UnknownNameError,
    ask_degrees,
    check_shape,
    is_symbolic,
    unknown_name,
)
from ..groups import LieGroup

Role = Literal["control", "measured", "disturbance", "noise"]
"""What an input is: commanded, measured (as by an IMU), acting from outside, or noise."""

InputChoice = Literal["control", "measured", "disturbance", "noise", "all"]
"""A role, or the inputs of all roles."""
CHOICES = get_args(InputChoice)


@named_options
@dataclass(frozen=True)
class Input:
    """One scalar input.

    Parameters
    ----------
    name : str
    unit : str
        SI unit, for labels.
    lower, upper : float
        Bounds; infinite by default.
    nominal : float
        Value when nothing else is said, and about which linearizations are taken; within the
        bounds.
    role : {"control", "measured", "disturbance", "noise"}
        Controllers see controls only; simulations feed the others, logs feed measured ones.

    Examples
    --------
    >>> Input("thrust", "N", lower=0.0, upper=6.0).upper
    6.0
    """

    name: str
    unit: str = ""
    lower: float = -inf
    upper: float = inf
    nominal: float = 0.0
    role: Role = "control"

    def __post_init__(self) -> None:
        check_name("input", self.name)
        if self.role not in get_args(Role):
            raise ValueError(
                f"input {self.name!r}: role must be one of {', '.join(get_args(Role))}, "
                f"not {self.role!r}"
            )
        check_shape(f"input {self.name!r}: nominal value", self.nominal, ())
        for side in ("lower", "upper"):
            check_shape(f"input {self.name!r}: {side}", getattr(self, side), (), finite=False)
        if isnan(self.lower) or isnan(self.upper) or not self.lower <= self.upper:
            raise ValueError(
                f"input {self.name!r}: bounds [{self.lower}, {self.upper}] are not an interval"
            )
        if not self.lower <= self.nominal <= self.upper:
            raise ValueError(
                f"input {self.name!r}: nominal value {self.nominal:g} is outside its bounds "
                f"[{self.lower:g}, {self.upper:g}]; give nominal=, a value between them that "
                "plans begin with"
            )
        if self.unit == "rad":
            for what in ("lower", "upper", "nominal"):
                value = getattr(self, what)
                if ask_degrees(f"input {self.name!r}: {what}", value, most=NO_LIMIT):
                    break


@named_options
@dataclass(frozen=True)
class Parameter:
    """One scalar parameter; it stays symbolic, so that it can be swept or estimated.

    Parameters
    ----------
    name : str
    unit : str
    nominal : float
        Value used unless another is given.
    lower, upper : float
        Range of values that make sense, infinite by default: no mass is negative. Others are
        refused wherever values are given; functions of the system trust the ``p`` they get.

    Examples
    --------
    >>> mass = Parameter("mass", "kg", 1.2, lower=0.0)
    >>> mass.check(-1.0)
    Traceback (most recent call last):
    ...
    ValueError: parameter 'mass' = -1 kg is outside its range [0, inf] kg
    """

    name: str
    unit: str = ""
    nominal: float = 0.0
    lower: float = -inf
    upper: float = inf

    def __post_init__(self) -> None:
        check_name("parameter", self.name)
        check_shape(f"parameter {self.name!r}: nominal", self.nominal, ())
        if not self.lower <= self.upper:
            raise ValueError(
                f"parameter {self.name!r}: [{self.lower}, {self.upper}] is not an interval"
            )
        if not self.lower <= self.nominal <= self.upper:
            self.check(self.nominal)

    def check(self, value: Any, where: str = "") -> None:
        """Refuse values outside of the range.

        Parameters
        ----------
        value : float or array_like
        where : str
            Put before the message.

        Raises
        ------
        ValueError
        """
        wrong = np.ravel(np.less(value, self.lower) | np.greater(value, self.upper))
        if wrong.any():
            given = float(np.ravel(value)[np.argmax(wrong)])
            raise ValueError(
                f"{where}parameter {self.name!r} = {given:g} {self.unit}".rstrip()
                + f" is outside its range [{self.lower:g}, {self.upper:g}] {self.unit}".rstrip()
            )


@named_options
@dataclass(frozen=True, eq=False)
class Quantity:
    """A result of a system with names for its entries, so that each may have limits and a unit.

    Parameters
    ----------
    of : callable
        ``(t, x, u, p) → column`` on CasADi columns.
    entries : sequence of str
        Names of the rows; the quantity "deflection" has the entry "deflection.elbow". Left out, a
        single row has the quantity's name, several are numbered.
    unit : str
        Of all rows.
    derivatives : callable, optional
        ``(t, x, u, p) → value, by_x, by_u`` where they are known in closed form, with the value
        that they share operations with: the derivative for displacements ``x exp d`` of the state,
        shape (rows, dim), and by the inputs, shape (rows, n_inputs).

    Examples
    --------
    >>> import casadi as ca
    >>> Quantity(lambda t, x, u, p: ca.vertcat(x[0], x[1]), ("left", "right"), "N").names("load", 2)
    ('load.left', 'load.right')
    """

    of: Callable[[Any, Any, Any, Any], Any]
    entries: tuple[str, ...] = ()
    unit: str = ""
    derivatives: Callable[[Any, Any, Any, Any], Any] | None = None

    def names(self, name: str, count: int) -> tuple[str, ...]:
        """Full names of the rows, for their number."""
        if self.entries and len(self.entries) != count:
            raise ValueError(
                f"quantity {name!r} has {count} rows and names for {len(self.entries)}: "
                f"{', '.join(self.entries)}"
            )
        if len(set(self.entries)) < len(self.entries):
            raise ValueError(f"quantity {name!r}: entries must differ, got {self.entries}")
        if self.entries:
            return tuple(f"{name}.{entry}" for entry in self.entries)
        return (name,) if count == 1 else tuple(f"{name}.{i}" for i in range(count))


_Signal = TypeVar("_Signal", Input, Parameter)


def as_signals(kind: type[_Signal], values: Iterable[_Signal | str]) -> tuple[_Signal, ...]:
    """Signals from a list of them or of plain names; names must differ.

    Examples
    --------
    >>> [entry.name for entry in as_signals(Input, ["left", Input("right", "N")])]
    ['left', 'right']
    """
    if isinstance(values, str | kind):
        word = kind.__name__.lower()
        raise TypeError(f"{word}s must be a list, got {values!r}: write {word}s=[{values!r}]")
    if not hasattr(values, "__iter__"):
        word = kind.__name__.lower()
        raise TypeError(
            f"{word}s must be a list of names or {kind.__name__}s, got {values!r}: write {word}s=[]"
        )
    signals = tuple(kind(value) if isinstance(value, str) else value for value in values)
    seen: set[str] = set()
    for signal in signals:
        if not isinstance(signal, kind):
            raise TypeError(f"expected {kind.__name__} or a name, got {signal!r}")
        if signal.name in seen:
            raise ValueError(f"two {kind.__name__.lower()}s are called {signal.name!r}")
        seen.add(signal.name)
    return signals


def names_of(signals: Sequence[Any]) -> tuple[str, ...]:
    """Names of signals."""
    return tuple(signal.name for signal in signals)


def nominal_of(signals: Sequence[Any]) -> np.ndarray:
    """Nominal values of signals, shape (n,)."""
    return np.array([signal.nominal for signal in signals], dtype=np.float64)


def choose_inputs(inputs: Sequence[Input], choice: InputChoice) -> np.ndarray:
    """Positions of the inputs with a role, or of all; integers of shape (k,)."""
    if not isinstance(choice, str) or choice not in CHOICES:
        raise UnknownNameError(unknown_name("choice of inputs", choice, CHOICES))
    chosen = [i for i, entry in enumerate(inputs) if choice in (entry.role, "all")]
    return np.array(chosen, dtype=int)


def set_by_name(
    kind: str, names: Sequence[str], vector: np.ndarray, values: Mapping[str, Any]
) -> Any:
    """Vector (..., n) with values put in by name; unknown names are refused.

    Values with batch axes give the vector these axes, symbols make it a CasADi column.
    """
    for name, value in values.items():
        if name not in names:
            raise UnknownNameError(
                unknown_parameter(name, names)
                if kind == "parameter"
                else unknown_name(kind, name, names)
            )
        if not is_symbolic(value):
            check_shape(f"{kind} {name!r}", value, [None] * np.ndim(value))
    if is_symbolic(*values.values()):
        return ca.vertcat(*(values.get(name, float(vector[i])) for i, name in enumerate(names)))
    batch = np.broadcast_shapes(vector.shape[:-1], *(np.shape(v) for v in values.values()))
    made = np.broadcast_to(vector, (*batch, len(names))).copy()
    for name, value in values.items():
        made[..., names.index(name)] = value
    return made


def unknown_parameter(name: str, names: Sequence[str], owner: str = "the system") -> str:
    """Message for a parameter that is none; where there is none at all, how one is kept."""
    if names:
        return unknown_name("parameter", name, names)
    return (
        f"unknown parameter {name!r}: {owner} has none, its numbers are fixed; keep it symbolic "
        f"when the system is made: symbolic=[{name!r}] for a model, .symbolic({name!r}) of a "
        "body or a tree, parameters=[…] for a System"
    )


def set_parameters(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> Any:
    """Vector (..., n) of nominal values with some put in by name, each within its range."""
    made = set_by_name("parameter", names_of(parameters), nominal_of(parameters), values)
    known = {entry.name: entry for entry in parameters}
    for name, value in values.items():
        if not is_symbolic(value):
            known[name].check(value)
    return made


def check_parameters(parameters: Sequence[Parameter], p: np.ndarray) -> np.ndarray:
    """Values (..., n) of all parameters, each within its range."""
    for k, entry in enumerate(parameters):
        entry.check(p[..., k])
    return p


def control_name(name: str) -> str:
    """Name of a signal as python-control allows it: there a dot separates system and signal."""
    return name.replace(".", "_")


def control_names(kind: str, names: Sequence[str]) -> list[str]:
    """Names of signals as python-control allows them; two that become the same are refused."""
    made = [control_name(name) for name in names]
    for i, name in enumerate(made):
        if name in made[:i]:
            first = names[made.index(name)]
            raise ValueError(
                f"{kind} {first!r} and {names[i]!r} are both {name!r} in python-control, which "
                "reserves the dot: rename one of them"
            )
    return made


def check_name(kind: str, name: object) -> None:
    """Refuse names that are not text or are empty.

    Examples
    --------
    >>> check_name("wheel", "front left")
    >>> check_name("wheel", "")
    Traceback (most recent call last):
    ...
    ValueError: wheel names must be non-empty text, got ''
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{kind} names must be non-empty text, got {name!r}")


def check_limits(
    state: LieGroup, quantities: Collection[str], limits: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Limits of coordinates and of entries of quantities by name as pairs of floats, checked."""
    found = {}
    valid = dict.fromkeys((*state.coordinate_names, *quantities))
    for name, pair in limits.items():
        if name not in valid:
            raise UnknownNameError(unknown_name("limited coordinate or quantity", name, valid))
        if name in state.coordinate_names and name in quantities:
            raise ValueError(
                f"limits of {name!r}: that is a coordinate of the state and a quantity; rename one"
            )
        try:
            lower, upper = (float(value) for value in pair)
        except (TypeError, ValueError):
            raise ValueError(
                f"limits of {name!r} must be a pair of numbers (lower, upper), got {pair!r}"
            ) from None
        if not lower <= upper:
            raise ValueError(f"limits of {name!r}: [{lower}, {upper}] is not an interval")
        found[name] = (lower, upper)
    return found


FixedParameters: TypeAlias = Mapping[str, float] | ArrayLike
"""All values in order, or some by name."""

Parameters: TypeAlias = Mapping[str, float | Callable[[float], float]] | ArrayLike
"""All values in order, or some by name, each a number or a function of time in s."""


def values_by_name(
    parameters: Sequence[Parameter], others: np.ndarray, p: FixedParameters | None = None
) -> np.ndarray:
    """Values of parameters of a mapping or of an array.

    `others` are values of those that a mapping does not name; a value outside its range is refused.
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

    `others` are values of those that a mapping does not name. Parameters that change have
    functions; `constant` has the values of the others.

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

        Refused is what is no finite number or is outside of its range.
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
