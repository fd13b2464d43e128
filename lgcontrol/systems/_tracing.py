"""Users' callables traced once into model functions of (t, x, u, p)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Shape, Value
from ._complete import input_count, parameter_names
from ._errors import ErrorCoordinates
from ._system_function import SystemFunction
from ._user_code import call_with_symbols, refuse_nan

if TYPE_CHECKING:
    from ._system import System

Field = Callable[..., Any]
"""A callable (t, x, u, p) → column, on CasADi columns."""


def symbols_of(system: System, symbol: Any = None) -> tuple[Value, Value, Value, Value]:
    """Fresh symbols t, x, u, p, of the system's kind unless told."""
    sym = (symbol or system.symbol).sym
    return (
        sym("t"),
        sym("x", system.state.nq),
        sym("u", system.n_inputs),
        sym("p", system.n_parameters),
    )


def shapes_of(system: System) -> dict[str, Shape]:
    """NumPy shapes of the arguments t, x, u, p."""
    return {
        "t": (),
        "x": (system.state.nq,),
        "u": (system.n_inputs,),
        "p": (system.n_parameters,),
    }


def trace_field(system: System, name: str, build: Field, rows: int | None) -> ModelFunction:
    """``(t, x, u, p) → name``; u and p may be left out."""
    return _trace(system, name, build, rows, ("t", "x", "u", "p"))


def trace_static(system: System, name: str, build: Field, rows: int | None) -> ModelFunction:
    """``(x, p) → name``; p may be left out."""
    return _trace(system, name, build, rows, ("x", "p"))


def trace_basis(system: System, errors: ErrorCoordinates) -> ErrorCoordinates:
    """Error coordinates with their basis as a model function ``(x, p) → N``."""
    errors.check(system.state)
    if isinstance(errors.basis, ModelFunction):
        return errors
    _, x, _, p = symbols_of(system)
    label = f"{system.name}: basis of the error coordinates"
    N = system.symbol(call_with_symbols(label, errors.basis, [x, p], ["x", "p"]))
    shape = errors.selection.shape[::-1]
    if N.shape != shape:
        raise ValueError(f"{label} returned shape {N.shape}, expected {shape}")
    shapes = shapes_of(system)
    basis = ModelFunction(
        ca.Function("basis", [x, p], [N], ["x", "p"], ["N"]),
        shapes={"x": shapes["x"], "p": shapes["p"], "N": shape},
        defaults={"p": system.nominal_parameters},
    )
    return ErrorCoordinates(errors.selection, basis, errors.names, errors.units)


def _trace(
    system: System, name: str, build: Field, rows: int | None, arguments: tuple[str, ...]
) -> ModelFunction:
    if not ca.Function.check_name(name):
        raise ValueError(
            f"{system.name}: {name!r} cannot name a function; use letters, digits and "
            "single underscores"
        )
    symbols = dict(zip("txup", symbols_of(system), strict=True))
    used = [symbols[key] for key in arguments]
    label = f"{system.name}: {name}"
    column = as_column(system, name, call_with_symbols(label, build, used, arguments), rows)
    free = ca.Function("free", used, [column], {"allow_free": True})
    if free.has_free():
        raise ValueError(
            f"{system.name}: {name} depends on symbols that are not its arguments "
            f"({', '.join(map(str, free.get_free()))}); make them parameters"
        )
    nominal = {"u": system.nominal_input, "p": system.nominal_parameters}
    function = ca.Function(name, used, [column], list(arguments), [name])
    somewhere = {"t": np.array(0.5), "x": system.state.random(0), **nominal}
    refuse_nan(label, function, [somewhere[key] for key in arguments])
    shapes = shapes_of(system)
    return SystemFunction(
        function,
        shapes={key: shapes[key] for key in arguments} | {name: (column.shape[0],)},
        defaults={key: value for key, value in nominal.items() if key in arguments},
        advice={"u": input_count(system), "p": parameter_names(system)},
    )


def as_column(system: System, name: str, value: Any, rows: int | None) -> Any:
    """What a callable returned as one column of the system's kind of symbol."""
    if isinstance(value, list | tuple):
        value = ca.vertcat(*value)
    try:
        column = system.symbol(value)
    except (NotImplementedError, TypeError):
        raise TypeError(
            f"{system.name}: {name} returned {type(value).__name__}, expected a CasADi column or "
            f"a list of scalars of kind {system.symbol.__name__}; a callable that needs MX "
            "(a solver, an MX function) takes System(..., symbol=casadi.MX)"
        ) from None
    if column.shape[1] != 1 or (rows is not None and column.shape[0] != rows):
        expected = "one column" if rows is None else f"a column of {rows}"
        raise ValueError(
            f"{system.name}: {name} returned shape {column.shape}, expected {expected} "
            f"(state {system.state})"
        )
    return ca.cse(column) if system.symbol is ca.SX else column
