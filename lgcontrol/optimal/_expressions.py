"""What terms and bounds are stated in: functions, parameters by name, quantities of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import casadi as ca

from ..codegen import ModelFunction, Value
from ..codegen._internal import UnknownNameError, unknown_name
from ..systems import System
from ..systems._internal import call_with_symbols

StageFunction: TypeAlias = Callable[[Value, Value, Value, Value], Value]
"""Smooth function ``(t, x, u, p) → column`` of CasADi columns; u are all inputs of the system."""


def parameter_index(label: str, name: str, parameters: Sequence[str]) -> int:
    """Which parameter a name in a statement means."""
    if name not in parameters:
        raise UnknownNameError(
            f"{label}: {unknown_name('parameter', name, parameters)} A new one is declared by "
            f"parameters=[{name!r}] of the problem"
        )
    return parameters.index(name)


def called_with(label: str, function: Any, values: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """What a function returns for symbols; its errors say the label and what it was called with."""
    try:
        return call_with_symbols(label, function, values, names)
    except Exception as error:  # the user's function: any error
        if str(error).startswith(label):
            raise
        sizes = ", ".join(
            f"{name} of length {value.shape[0]}"
            for name, value in zip(names[1:], values[1:], strict=True)
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{label}, called with CasADi columns t, {sizes}: {error}") from error


def column_of(label: str, function: Any, values: tuple[Any, ...]) -> Any:
    """What a function of (t, x, u, p) returns for symbols; what is wrong with it says its label."""
    function = function.function if isinstance(function, ModelFunction) else function
    value, symbol = called_with(label, function, values, ("t", "x", "u", "p")), type(values[1])
    try:
        return symbol(value)
    except NotImplementedError:
        raise TypeError(f"{label} must return a CasADi column ({symbol.__name__})") from None


class KnownQuantity(NamedTuple):
    """A symbol for the value of a quantity, whose derivatives by state and inputs are known."""

    symbol: Any
    value: Any
    by_x: Any
    by_u: Any


def spelled_out(expressions: Sequence[Any], known: Mapping[str, KnownQuantity]) -> list[Any]:
    """Expressions without symbols that stand for quantities."""
    if not known:
        return [*expressions]
    symbols = [quantity.symbol for quantity in known.values()]
    meant: Any = [each.value for each in known.values()]
    return [*ca.substitute([*expressions], symbols, meant)]


def entries_of(system: System, name: str) -> tuple[str, ...]:
    """Entries of a system's quantities that a name stands for; none where it is no quantity."""
    if name in system.quantity_names:
        return (name,)
    if name not in system.quantities:
        return ()
    return system.named_quantities()[name].names(name, system.quantities[name].result_shapes[0][0])


# What of a stage is a number, and what a matrix.
NUMBERS, MATRICES = ("t", "dt", "cost"), ("P", "A", "B", "C", "F", "G", "H", "W")


def named_function(name: str, inputs: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    """A function of symbols; numbers and matrices keep their shapes where a side has length one."""
    function = ca.Function(name, [*inputs.values()], [*results.values()], [*inputs], [*results])
    named = {**inputs, **results}
    shapes = {key: () for key in NUMBERS if key in named}
    shapes |= {key: named[key].shape for key in MATRICES if key in named}
    return ModelFunction(function, shapes=shapes)


def quantities_of(system: System) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*system.quantities, *system.quantity_names)))
