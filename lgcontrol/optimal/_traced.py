"""Terms and bounds with CasADi functions in place of Python's, so that they pickle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import casadi as ca

from ..codegen import ModelFunction
from ..systems import System
from ._bounds import Bound, NamedRows
from ._expressions import column_of, entries_of
from ._rows import expression_of
from ._terms import Cost, Residual, of_quantity

Statement = TypeVar("Statement", Residual, Cost, Bound)


def traced_terms(
    system: System, terms: Sequence[Statement], parameters: int, symbol: Any = None
) -> tuple[Statement, ...]:
    """Terms of a problem with CasADi functions in place of Python's, which do not all pickle."""
    symbol = symbol or system.symbol
    sizes = {"t": 1, "x": system.state.nq, "u": system.n_inputs, "p": parameters}
    point = [symbol.sym(name, size) for name, size in sizes.items()]
    return tuple(_traced(system, term, point) for term in terms)


def _traced(system: System, term: Statement, point: list[Any]) -> Statement:
    """A term with functions of symbols t, x, u, p."""
    if isinstance(term, Bound):
        if isinstance(term.of, str | ca.Function | ModelFunction):
            return term
        t, x, u, p = point
        column, names = expression_of(system, term, t, x, u, p, x)
        function, shown = ca.Function("bound", point, [column]), term.shown
        if shown is not None:
            value = column_of(f"bound {term.label!r}", shown.function, (t, x, u, p))
            shown = shown._replace(function=ca.Function("shown", point, [value]))
        rows = NamedRows(function, names)
        if isinstance(term.of, NamedRows):
            rows = term.of._replace(function=function)
        return replace(term, of=rows, name=term.label, shown=shown)
    term, changes = of_quantity(system, term), {}
    own = "function" if isinstance(term.of, str) else "of"
    traced = getattr(term, own)
    if traced is not None and not isinstance(traced, ca.Function | ModelFunction):
        kind, given = type(term).__name__.lower(), list(point)
        if isinstance(term.of, str):
            rows = system.quantity_rows(entries_of(system, term.of), *point)
            given[1] = type(point[1]).sym("y", rows.shape[0])
        column = column_of(term._label, traced, tuple(given))
        changes[own] = ca.Function(kind, given, [column])
    if isinstance(term, Residual) and callable(term.derivatives):
        slopes = term.derivatives(*point)
        changes["derivatives"] = ca.Function("derivatives", point, [*slopes])
    return replace(term, **changes)
