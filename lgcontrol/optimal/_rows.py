"""Rows: all constraints of a problem as one column, with limits, penalties and where they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from ..systems import System
from ..systems._internal import block_slices
from ._bounds import (
    ALONG,
    LIMITS,
    ROUNDING,
    Bound,
    NamedRows,
    PointRows,
    bounded_place,
    nodes_at,
    place_text,
    units_of,
)
from ._expressions import KnownQuantity, column_of, entries_of, parameter_index, spelled_out

# Operations up to which two rows are compared before they count as others.
SAME_DEPTH = 5
# Violation from which on a determined row is refused: the default tolerance of solves.
KEPT = 1e-6


@dataclass(frozen=True, eq=False)
class BoundRows:
    """All bounds of a problem as rows of one column g(t, x, u, p, x_ref).

    `kinds` tells rows of one name apart, as "terminal upper". `soft` are penalty weights, infinite
    for hard bounds; `parameter` says which of p is the weight, −1 for none. `active` (N + 1, rows):
    nodes at which each row holds. `lengths` (N + 1, rows): time in s that they count if it is soft.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    soft: np.ndarray
    parameter: np.ndarray
    active: np.ndarray
    lengths: np.ndarray

    def weights(self, p: np.ndarray) -> np.ndarray:
        """Penalty weights for values of the parameters."""
        return self.soft * np.append(p, 1.0)[self.parameter]

    def excess(self, values: np.ndarray) -> np.ndarray:
        """How far values (N + 1, rows) are outside of the limits; zero where a row is idle.

        A value that is not a number is infinitely far outside: no bound is dropped for want of a
        value.
        """
        over = np.maximum(np.maximum(values - self.upper, self.lower - values), 0.0)
        return np.where(self.active, np.where(np.isnan(over), np.inf, over), 0.0)

    def beyond(self, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest values whose `excess` is within what is allowed of it."""
        low, high = self.lower - allowed, self.upper + allowed
        return np.where(self.active, low, -np.inf), np.where(self.active, high, np.inf)

    def penalty(self, values: np.ndarray, soft: np.ndarray) -> float:
        """Penalty on what soft rows violate, with weights per s."""
        finite = np.isfinite(soft)
        s = self.excess(values)[:, finite]
        return float((self.lengths[:, finite] * soft[finite] * (s + s**2 / 2)).sum())

    def not_finite(self, values: np.ndarray) -> str:
        """Which bounded quantity is not a number first, as a message; empty where all are."""
        bad = self.active & np.isnan(values)
        if not bad.any():
            return ""
        k, i = np.argwhere(bad)[0]
        return (
            f"the bounded quantity {self.names[i]} is not a number at node {k}: start where "
            "it is one, with x0 or guess=, or write a division, root or logarithm with a guard, "
            "as sqrt(fmax(a, 1e-6))"
        )


@dataclass(eq=False)
class _RowMade:
    """A row that is being made: its expression g, limits, penalty weight, nodes."""

    name: str
    kind: str
    g: Any
    lower: float
    upper: float
    soft: float
    parameter: int
    active: np.ndarray
    lengths: np.ndarray

    @property
    def is_fixed(self) -> bool:
        """Whether it is a hard equality that holds somewhere."""
        return bool(self.lower == self.upper and np.isinf(self.soft) and self.active.any())

    def allows(self, value: float) -> bool:
        """Whether a value is within the limits."""
        slack = ROUNDING * max(1.0, abs(value))
        return self.lower - slack <= value <= self.upper + slack


def build_rows(
    system: System, bounds: Sequence[Bound], steps: np.ndarray, symbols: Sequence[Any],
    parameters: Sequence[str], free: np.ndarray, known: Mapping[str, KnownQuantity] | None = None,
    points: Sequence[tuple[float, Any, Any]] = (), *, is_refined: bool = False,
) -> tuple[Any, BoundRows]:  # fmt: skip
    """Column g for symbols (t, x, u, p, x_ref), and what the rows mean.

    A node of a soft row counts as long as its step, the last one as that before. In problems that
    are refined, rows without inputs count by the trapezoidal rule.

    A limit that is a parameter is a row of its own: what the quantity exceeds it by, at most zero.
    Error coordinates of the first state that are free are given by their numbers. Symbols of
    known quantities stand for them. Points are weights, times and states within a step, for
    `PointRows`.
    """
    known = known or {}
    stand_ins = {key: quantity.symbol for key, quantity in known.items()}
    rows: list[_RowMade] = []
    horizon, own_step = len(steps), np.append(steps, steps[-1])
    both = (np.append(steps, 0.0) + np.append(0.0, steps)) / 2 if is_refined else own_step
    _, x, u, p, _ = symbols
    moves = system.state.rate_matrix(x) @ system.error_basis(x, p[: system.n_parameters])
    moves = moves[:, free.tolist()]
    for bound in bounds:
        column, labels = expression_of(system, bound, *symbols, known=stand_ins)
        if isinstance(bound.of, PointRows):
            at = [(time, state, *symbols[2:]) for _, time, state in points]
            column = ca.vertcat(*(expression_of(system, bound, *each)[0] for each in at))
            labels = labels * len(at)
        size, shares = column.shape[0], np.ones(len(labels))
        if isinstance(bound.of, NamedRows):
            shares *= bound.of.share
        if isinstance(bound.of, PointRows):
            shares = np.repeat([weight for weight, *_ in points], len(labels) // len(points))
        low, high = bound._limits(size)
        if not (low <= high).all():
            k = int(np.flatnonzero(~(low <= high))[0])
            raise ValueError(
                f"bound {labels[k]!r}: lower must not exceed upper, got {low[k]:g} and {high[k]:g}"
            )
        penalty, own = bound.soft, -1
        if isinstance(penalty, str):
            own = parameter_index(f"soft of bound {bound.label!r}", penalty, parameters)
            penalty = 1.0
        whole = column if not known else spelled_out([column], known)[0]
        needs_input = ca.which_depends(whole, u, 1, True) if size else []
        by_free = ca.jacobian(whole, x) @ moves
        starts = set(by_free.sparsity().row()) if len(free) else set()
        for row in range(size):
            where = np.zeros(horizon + 1, dtype=bool)
            where[list(nodes_at(bound.at, horizon))] = True
            where[0] |= bound.at in ALONG
            where[0] &= needs_input[row] or row in starts
            where[-1] &= not needs_input[row]
            if bound.at == "start" and not where[0]:
                raise ValueError(
                    f"bound {labels[row]!r} at the start: nothing that it depends on is free "
                    "there; see free= of OptimalControlProblem"
                )
            side = "upper" if np.isinf(low[row]) else "lower" if np.isinf(high[row]) else ""
            limited = [(column[row], low[row], high[row], side)]
            for sign, side in ((-1.0, "lower"), (1.0, "upper")):
                limit = getattr(bound, side)
                if isinstance(limit, str):
                    k = parameter_index(f"{side} of bound {bound.label!r}", limit, parameters)
                    beyond = sign * (column[row] - p[k])
                    limited.append((beyond, -np.inf, 0.0, side))
            for value, least, most, side in limited:
                if np.isinf(least) and np.isinf(most):
                    continue
                place = "" if bound.at == "both" else place_text(bound.at)
                kind = " ".join(filter(None, [place, side]))
                weight = np.inf if penalty is None else penalty * shares[row]
                lengths = own_step if needs_input[row] else both
                made = labels[row], kind, value, least, most, weight, own, where.copy(), lengths
                rows.append(_RowMade(*made))
    _leave_fixed(rows)
    columns, names = [row.g for row in rows], [row.name for row in rows]
    if any(row.is_fixed for row in rows):
        _leave_determined(symbols, spelled_out(columns, known) if known else columns, rows)
    kinds = (row.kind if names.count(row.name) > 1 else "" for row in rows)
    lower, upper, soft = (
        np.array([getattr(row, each) for row in rows]) for each in ("lower", "upper", "soft")
    )
    parameter = np.array([row.parameter for row in rows], dtype=np.int64)
    active = np.array([row.active for row in rows], dtype=bool).reshape(-1, horizon + 1).T
    lengths = np.array([row.lengths for row in rows]).reshape(-1, horizon + 1).T
    meaning = BoundRows(tuple(names), tuple(kinds), lower, upper, soft, parameter, active, lengths)
    return type(u)(ca.vertcat(*columns)).reshape((len(columns), 1)), meaning


def _leave_fixed(rows: Sequence[_RowMade]) -> None:
    """No limits where a hard equality fixes the same expression within them, such as an end.

    At a limit both together would leave nothing inside, where solvers search, and no multipliers.
    """
    for row, other in permutations(rows, 2):
        if row.is_fixed and other.allows(row.lower) and ca.is_equal(row.g, other.g, SAME_DEPTH):
            other.active &= ~row.active


def _leave_determined(
    symbols: Sequence[Any], columns: Sequence[Any], rows: Sequence[_RowMade]
) -> None:
    """No limits at nodes where linear hard equalities determine a row, within its limits.

    Such as a cone whose apex is the end of a landing: next to the equalities it says nothing, has
    no interior and often no derivative. An equality that others imply is one as well: its
    multiplier would be any number.
    """
    t, x, u, p, x_ref = symbols
    others = ca.vertcat(t, p, x_ref)
    linear = [
        i
        for i, row in enumerate(rows)
        if row.is_fixed
        and not ca.depends_on(columns[i], u)
        and not ca.which_depends(columns[i], x, 2, True)[0]
    ]
    slopes = {i: ca.jacobian(columns[i], x) for i in linear}
    linear = [i for i in linear if not ca.symvar(slopes[i])]
    nodes_by: dict[tuple[int, ...], list[int]] = {}
    for k in range(len(rows[0].active) if linear else 0):
        nodes_by.setdefault(tuple(i for i in linear if rows[i].active[k]), []).append(k)
    nodes_by.pop((), None)
    for equal, nodes in nodes_by.items():
        independent: list[int] = []
        normals = np.zeros((0, x.shape[0]))
        for i in equal:
            added = np.vstack([normals, np.asarray(ca.evalf(slopes[i])).reshape(1, -1)])
            if np.linalg.matrix_rank(added) == len(added):
                independent, normals = [*independent, i], added
        inverse = np.linalg.pinv(normals)
        unit = np.abs(inverse @ normals - np.eye(len(inverse))).max(axis=0) <= ROUNDING
        zero = type(x)(ca.DM.zeros(*x.shape))
        ends = [rows[i].lower - ca.substitute(columns[i], x, zero) for i in independent]
        end = ca.densify(ca.sparsify(ca.DM(np.round(inverse, 15))) @ ca.vertcat(*ends))
        for i, value in enumerate(columns):
            if i in independent or not rows[i].active[nodes].any() or ca.depends_on(value, u):
                continue
            depends = np.unique(np.array(ca.jacobian_sparsity(value, x).get_triplet()[1], int))
            if not unit[depends].all():
                continue
            fixed = ca.substitute(value, x, end)
            if ca.depends_on(fixed, others):
                continue
            found = float(ca.evalf(fixed))
            if rows[i].allows(found):
                rows[i].active[nodes] = False
            elif np.isinf(rows[i].soft):
                _refuse_determined(rows[i], found, [rows[j] for j in independent], nodes)


def _refuse_determined(
    row: _RowMade, value: float, equalities: Sequence[_RowMade], nodes: Sequence[int]
) -> None:
    """Refuse a hard row that equalities keep outside of its limits."""
    over = max(row.lower - value, value - row.upper)
    on = [k for k in nodes if row.active[k]]
    if not over > KEPT or not on:  # NaN is told elsewhere
        return
    asked = f"at least {row.lower:g}" if value < row.lower else f"at most {row.upper:g}"
    whose = ", ".join(dict.fromkeys(repr(other.name.split("[")[0]) for other in equalities))
    raise ValueError(
        f"bound {row.name!r} contradicts the equalities on {whose} at node {on[0]}: they make it "
        f"{value:.4g}, {asked} is asked for. Move its limit by {over:.3g}, give it other nodes "
        "(at=range(0, N) leaves out the end) or a penalty (soft=100)"
    )


@dataclass(frozen=True, eq=False)
class SeenBound:
    """What a bound keeps within limits, as ``(t, x, u, p, x_ref) → (rows,)``, for records."""

    bound: Bound
    function: ca.Function
    labels: tuple[str, ...]
    compares: bool
    needs_input: bool


def seen_bounds(
    system: System, bounds: Sequence[Bound], parameters: Sequence[str],
    at: Sequence[str | range] = ALONG,
) -> tuple[SeenBound, ...]:  # fmt: skip
    """Functions of bounds that hold along plans, or at other places; others are left out."""
    if not bounds:
        return ()
    nq, sym = system.state.nq, system.symbol.sym
    sizes = {"t": 1, "x": nq, "u": system.n_inputs, "p": len(parameters), "r": nq}
    symbols = [sym(name, size) for name, size in sizes.items()]
    found = []
    for bound in bounds:
        if bound.shown is not None:
            bound = replace(
                bound, of=bound.shown.function, lower=bound.shown.lower, upper=bound.shown.upper,
                name=bound.label,
            )  # fmt: skip
        column, labels = expression_of(system, bound, *symbols)
        if bound.at in at:
            function = ca.Function("bounded", symbols, [column])
            compares, needs_input = (ca.depends_on(column, symbols[i]) for i in (-1, 2))
            found.append(SeenBound(bound, function, tuple(labels), compares, needs_input))
    return tuple(found)


def bounded_along(
    seen: Sequence[SeenBound],
    parameters: Sequence[str],
    points: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None],
) -> dict[str, tuple[np.ndarray, float, float]]:
    """Bounded quantities along a trajectory by name, with their lower and upper limits.

    Points are times, states, inputs, parameters and states of the reference. Without these,
    quantities that need one are left out. Of several quantities of one name the later ones are
    numbered.
    """
    found: dict[str, tuple[np.ndarray, float, float]] = {}
    for _, name, row, low, high in rows_along(seen, parameters, points):
        label, number = name, 2
        while label in found and not np.array_equal(found[label][0], row, equal_nan=True):
            label, number = f"{name} ({number})", number + 1
        _, least, most = found.get(label, (row, -np.inf, np.inf))
        found[label] = (row, max(least, low), min(most, high))
    return found


def rows_along(
    seen: Sequence[SeenBound],
    parameters: Sequence[str],
    points: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None],
) -> Iterator[tuple[SeenBound, str, np.ndarray, float, float]]:
    """Bound, label, values, lower and upper limit of each row; arguments of `bounded_along`."""
    t, x, u, p, x_ref = points
    tiled = np.tile(p[:, None], (1, len(t)))
    columns = [t[None], x.T, u.T, tiled, (x if x_ref is None else x_ref).T]
    for one in seen:
        if one.compares and x_ref is None:
            continue
        values = one.function(*columns).full()
        sides = []
        for side in ("lower", "upper"):
            limit = getattr(one.bound, side)
            number = p[parameters.index(limit)] if isinstance(limit, str) else limit
            sides.append(np.broadcast_to(np.asarray(number, dtype=np.float64), len(values)))
        for label, row, low, high in zip(one.labels, values, *sides, strict=True):
            yield one, label, row, float(low), float(high)


def enter_end(
    kept: dict[str, Any], system: System, bounds: Sequence[Bound], parameters: Sequence[str],
    points: tuple[np.ndarray, ...], end: int, count: int,
) -> None:  # fmt: skip
    """Enter what terminal bounds ask of coordinates, for figures: limits at one of `count` places.

    `points` are those of `rows_along`, the last one is meant.
    """
    t, x, u, p, x_ref = points
    last = t[-1:], x[-1:], u[-1:], p, x_ref[-1:]
    seen = seen_bounds(system, bounds, parameters, ["terminal"])
    for _, name, _, low, high in rows_along(seen, parameters, last):
        if name not in system.state.coordinate_names:
            continue
        entry = kept.setdefault(name, SimpleNamespace(lower=-np.inf, upper=np.inf))
        lower, upper = (np.broadcast_to(side, count).copy() for side in (entry.lower, entry.upper))
        lower[end], upper[end] = max(lower[end], low), min(upper[end], high)
        entry.lower, entry.upper = lower, upper


def unit_named(system: System, bounds: Sequence[Bound], name: str) -> str:
    """Unit of a quantity that some bounds limit, by the name of `bounded_along`."""
    group = system.state
    units = dict(zip(group.coordinate_names, group.coordinate_units, strict=True))
    units |= {one.name: one.unit for one in system.inputs} | system.quantity_units
    for bound in bounds:
        own = ["" if bound.shown is None else bound.shown.unit]
        if bound.shown is None and isinstance(bound.of, str):
            own = [*units_of(system, *bounded_place(system, bound)).values()]
        if len(own) == 1 and own[0]:
            units[bound.label] = own[0]
    return units.get(name, units.get(name.partition("[")[0], ""))


def expression_of(
    system: System, bound: Bound, t: Any, x: Any, u: Any, p: Any, x_ref: Any,
    known: Mapping[str, Any] | None = None,
) -> tuple[Any, tuple[str, ...]]:  # fmt: skip
    state = system.state
    if not isinstance(bound.of, str):
        column = column_of(f"bound {bound.label!r}", bound.of, (t, x, u, p))
        size = column.shape[0]
        if isinstance(bound.of, NamedRows):
            return column, bound.of.names
        return column, tuple(f"{bound.label}[{i}]" if size > 1 else bound.label
                             for i in range(size))  # fmt: skip
    kind, name = bounded_place(system, bound)
    if kind == "input":
        return u[system.input_names.index(name)], (bound.label,)
    if kind == "block":
        part, freedoms = (places[name] for places in block_slices(state))
        is_number = not (np.ndim(bound.lower) or np.ndim(bound.upper))
        if is_number and freedoms.stop - freedoms.start == 1 < part.stop - part.start:
            return state.log(x)[freedoms], _called(bound, (name,))
        return x[part], _called(bound, state.coordinate_names[part])
    if kind == "coordinate":
        return x[state.coordinate_names.index(name)], (bound.label,)
    if kind == "tangent":
        return state.minus(x, x_ref)[state.tangent_names.index(name)], (bound.label,)
    if kind == LIMITS:
        limited = tuple(entry for entry in system.limits if entry in system.quantity_names)
        rows = system.quantity_rows(limited, t, x, u, p, known)
        columns = {entry: rows[i] for i, entry in enumerate(limited)}
        for entry in system.limits:
            if entry not in columns:
                part = replace(bound, of=entry, name=None)
                columns[entry] = expression_of(system, part, t, x, u, p, x_ref, known)[0]
        return ca.vertcat(*(columns[e] for e in system.limits)), _called(bound, (*system.limits,))
    entries = entries_of(system, name)
    return system.quantity_rows(entries, t, x, u, p, known), _called(bound, entries)


def _called(bound: Bound, entries: tuple[str, ...]) -> tuple[str, ...]:
    """What messages call the entries of a bound: its own name is told, too."""
    if bound.name is None:
        return entries
    return (bound.name,) if len(entries) == 1 else tuple(f"{bound.name}: {e}" for e in entries)
