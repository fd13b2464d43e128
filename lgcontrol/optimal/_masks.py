"""Terms where they have no weight, rows where they do not hold: evaluated where they are finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ._expressions import KnownQuantity, spelled_out
from ._problem import OptimalControlProblem
from ._weights import Weight

# Operations whose value or slope may not be finite.
SINGULAR = frozenset(
    (
        ca.OP_DIV, ca.OP_INV, ca.OP_LOG, ca.OP_LOG1P, ca.OP_SQRT, ca.OP_POW, ca.OP_CONSTPOW,
        ca.OP_TAN, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ACOSH, ca.OP_ATANH, ca.OP_ATAN2, ca.OP_HYPOT,
        ca.OP_NORM2, ca.OP_NORMF, ca.OP_SOLVE, ca.OP_INVERSE, ca.OP_DETERMINANT, ca.OP_CALL,
    )
)  # fmt: skip

# Sizes of the points at which a term is tried, beside the time of its first node with a weight.
SIZES = 0.7, -0.7, 0.07, -0.07, 7.0, -7.0, 70.0, -70.0
GOLDEN = 0.6180339887498949  # its multiples, without whole ones, have no symmetry


class Mask(NamedTuple):
    """A symbol that is not zero where a term counts, and where it is evaluated elsewhere.

    Zero times what is not finite is not finite, and a switch of results does not help: its
    derivatives are such products. A term whose arguments are switched is finite, and so are its
    derivatives of any order. `safe` are arguments t, x, u, p, then values of known quantities.
    """

    on: Any
    safe: tuple[Any, ...]

    def switch(self, *point: Any) -> list[Any]:
        """Arguments t, x, u, p, and values of quantities if given, or the safe ones."""
        ends = np.cumsum([0, *(each.shape[0] for each in point)]).tolist()
        safe = ca.vertcat(*self.safe[: len(point)])
        return ca.vertsplit(ca.if_else(self.on, ca.vertcat(*point), safe), ends)


def mask_of(
    problem: OptimalControlProblem, weight: Weight | None, value: Any, point: Sequence[Any],
    known: Mapping[str, KnownQuantity], name: str,
) -> Mask | None:  # fmt: skip
    """The mask of a term that has no weight at some nodes and may not be finite there.

    The value is of the symbols t, x, u, p of `point`, and of known quantities. None also where no
    point is found at which the term and its slope are finite.
    """
    if weight is None or weight.matrix.ndim == 2:
        return None
    counts = np.asarray(weight.matrix.any(axis=(1, 2)))
    if counts.all():
        return None
    spelled = spelled_out([value], known)
    if not _may_be_singular(ca.Function("operations", [*point], spelled)):
        return None
    quantities: list[Any] = [each.value for each in known.values()]
    slope = ca.jacobian(spelled[0], ca.vertcat(*point))
    tried = ca.Function("tried", [*point], [*spelled, slope, *quantities])
    found = _finite_point(problem, tried, "txup", counts)
    if found is None:
        return None
    at, (_, _, *values) = found
    return Mask(type(point[0]).sym(name), (*(at[key] for key in "txup"), *values))


def bounded_rows(
    problem: OptimalControlProblem, values: ca.Function, holds: np.ndarray, at: Mapping[str, Any],
    prices: Any,
) -> Any:  # fmt: skip
    """Rows for second derivatives of ``pricesᵀ rows``, which are finite where no row has a price.

    Rows are the result "rows" of `values` with arguments `at`, and hold at nodes (nodes, rows).
    Those that hold at none are zero. Those that hold at some are evaluated where they are finite if
    the prices of all rows of their nodes are zero.
    """
    symbol, given = type(prices), [*at.values()]
    found = symbol(values.call(given)[values.name_out().index("rows")])
    somewhere: Any = holds.any(axis=0)
    rows = [found[i] if on else symbol(0) for i, on in enumerate(somewhere)]
    for alike in rows_to_mask(holds):
        safe = _safe_arguments(problem, values, alike, holds[:, alike[0]])
        if safe is None:
            continue
        on = reduce(ca.logic_or, [prices[i] != 0 for i in alike])
        switched = [ca.if_else(on, at[k], safe[k]) if k in safe else at[k] for k in at]
        there = values.call(switched)[values.name_out().index("rows")]
        for i in alike:
            rows[i] = there[i]
    return symbol(ca.vertcat(symbol(0, 1), *rows))


def rows_to_mask(holds: np.ndarray) -> list[list[int]]:
    """Rows that hold at some of the nodes, those of the same nodes together."""
    found: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(holds.any(axis=0) & ~holds.all(axis=0)).tolist():
        found.setdefault(holds[:, i].tobytes(), []).append(i)
    return [*found.values()]


def _safe_arguments(
    problem: OptimalControlProblem, values: ca.Function, which: list[int], holds: np.ndarray
) -> dict[str, ca.DM] | None:
    """Arguments at which some rows and their slopes are finite; None where they are anywhere."""
    names, which_out = values.name_in(), values.name_out().index("rows")
    given: list[Any] = values.sx_in() if values.is_a("SXFunction") else values.mx_in()
    rows = values.call(given)[which_out][which]
    try:
        function = ca.Function("rows", given, [rows]).expand()
    except RuntimeError:  # steps that solve equations, say
        return None
    if not _may_be_singular(function):
        return None
    at: list[Any] = function.sx_in()
    rows = function.call(at)[0]
    tried = ca.Function("tried", at, [rows, ca.jacobian(rows, ca.vertcat(*at))])
    found = _finite_point(problem, tried, names, holds)
    return None if found is None else found[0]


def _may_be_singular(function: ca.Function) -> bool:
    """Whether a function has operations whose value or slope may not be finite."""
    operations = range(function.n_instructions())
    return not SINGULAR.isdisjoint(map(function.instruction_id, operations))


def _finite_point(
    problem: OptimalControlProblem, tried: ca.Function, names: Sequence[str], holds: np.ndarray
) -> tuple[dict[str, ca.DM], list[ca.DM]] | None:
    """Arguments by name at which a function is finite, and its results.

    Points without symmetry are tried, at the first node that counts and at other times.
    """
    group, nominal = problem.system.state, np.asarray(problem.nominal_parameters, dtype=float)
    place = 0.5 + GOLDEN * np.arange(1, 1 + group.dim + problem.system.n_inputs) % 1.0
    parameters = nominal, np.where(nominal == 0, 1.0, nominal)
    first = problem.times()[int(holds.argmax())]
    for size in SIZES:
        x, u = group.exp(size * place[: group.dim]), size * place[group.dim :]
        for t, p in product((first, abs(size)), parameters):
            at = {"t": t, "x": x, "u": u, "p": p, "x_ref": group.identity}
            safe = {key: ca.DM(value) for key, value in at.items()}
            others = {"dt": ca.DM(problem.dt)}
            given = [
                (safe | others).get(name, ca.DM.ones(*tried.size_in(i)))
                for i, name in enumerate(names)
            ]
            found = tried.call(given)
            if all(np.isfinite(np.asarray(each)).all() for each in found):
                return safe, found
    return None
