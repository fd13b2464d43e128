"""What a problem states as expressions, and the functions of a stage that follow from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from threading import RLock
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction
from ..groups import LieGroup, Product
from ..integrators import MuntheKaas, get_method
from ..integrators._internal import solved_once
from ..systems import System, step_derivatives
from ..systems._internal import point_states
from ._bounds import LIMITS, holds_throughout
from ._expressions import KnownQuantity, entries_of, named_function, spelled_out
from ._masks import Mask, mask_of, rows_to_mask
from ._problem import OptimalControlProblem
from ._rows import BoundRows, build_rows
from ._statement import AT_POINTS, collocation_of, points_within
from ._terms import Residual, TermWeights
from ._weights import Weight

# Residuals and rows are differentiated together where at most this share of their operations is
# left once each is written once: as one stack they cannot each take the cheaper direction.
SHARED = 0.8

# Derivatives of substeps are multiplied by loops where those of all take more operations than this.
LONGEST_PRODUCT = 20_000

# Results of the functions of terms.
TERMS = ["error_pull", "r", "pull", "other"]


class StageFunctions(NamedTuple):
    """What a transcription evaluates.

    `stage` is ``(t, x, u, x_next, x_ref, u_ref, p, w, dt) → cost, gap, rows, A, B, g, H, G``; g, H
    and G belong to error coordinates of x, then controls. `around` is None unless `composes`. It
    has the step's end given, and ``C`` in place of A and B, which are C times those of the step.
    `terminal` is ``(t, x, u, x_ref, p, w, P) → cost, rows, g, H, G`` with the weight P on the last
    error. Of `…_values` the results are those without derivatives. `…_terms` have the results
    ``error_pull, r, pull, other``: the cost is ``½ error_pullᵀ error + ½ pullᵀ r + other``, and
    pulls are products with weights.
    """

    stage: ModelFunction
    stage_values: ModelFunction
    around: ModelFunction | None
    terminal: ModelFunction
    terminal_values: ModelFunction
    stage_terms: ca.Function
    terminal_terms: ca.Function


class _Term(NamedTuple):
    """A term ``½ rᵀ W r`` of the cost with a symmetric W, or ``w ℓ``.

    The value is r or ℓ, "error" and "effort" for the r of Q and R. It counts at nodes alone, not
    over steps, if it `is_of_node`. The mask is a symbol in the value that is 1 where the term has a
    weight, and 0 elsewhere.
    """

    value: Any
    weight: Weight
    is_of_node: bool = False
    mask: Any = None


class _Stated(NamedTuple):
    """Expressions that a problem states, before anything is derived from them.

    Of symbols t, x, u, p, x_ref: squares along the horizon and at its end, other terms, rows and
    what these mean. They hold symbols for what is `known`, which has derivatives in closed form.
    """

    inputs: dict[str, Any]
    path: list[_Term]
    end: list[_Term]
    costs: list[_Term]
    end_costs: list[_Term]
    rows: Any
    meaning: BoundRows
    known: dict[str, KnownQuantity]

    @property
    def masks(self) -> list[Any]:
        """Symbols of the masks of terms, each once."""
        masks = [term.mask for term in (*self.path, *self.costs) if term.mask is not None]
        return [*{mask.name(): mask for mask in masks}.values()]


class Built:
    """Functions of a problem, built once when asked for; copies of a transcription share it."""

    def __init__(self, problem: OptimalControlProblem) -> None:
        self._problem, self._lock = problem, RLock()
        self._stated: _Stated | None = state(problem)
        self._functions: StageFunctions | None = None
        if not _is_explicit(problem):  # steps refuse what they cannot do where they are made
            problem.system.step(problem.method, problem.substeps)

    def __getstate__(self) -> dict[str, Any]:
        """Without expressions, which are stated again where they are needed."""
        return self.__dict__ | {"_stated": None, "_lock": None}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """With a lock of its own."""
        self.__dict__ = kept | {"_lock": RLock()}

    @property
    def stated(self) -> _Stated:
        """The expressions."""
        if self._stated is None:
            self._stated = state(self._problem)
        return self._stated

    @property
    def functions(self) -> StageFunctions:
        """The functions."""
        if self._functions is None:
            with self._lock:  # a build may go on beside the program
                if self._functions is None:
                    self._functions = build_functions(self._problem, self.stated)
        return self._functions


def _is_explicit(problem: OptimalControlProblem) -> bool:
    """Whether steps follow from the field and its derivatives alone, and take any field."""
    return problem.system.is_discrete or type(get_method(problem.method)) is MuntheKaas


def identity_of(problem: OptimalControlProblem, stated: _Stated) -> str | None:
    """See `Transcription.identity`."""
    system = problem.system
    if system.symbol is not ca.SX or not _is_explicit(problem):
        return None
    group = _text_of(system.state)
    if group is None:
        return None
    used: list[Any] = [
        system.f, system.derivatives, system.project, system.project_derivative, system.policy,
        None if system.errors is None else system.errors.basis,
    ]  # fmt: skip
    terms = [*stated.path, *stated.end, *stated.costs, *stated.end_costs]
    own: Any = [term.value for term in terms if not isinstance(term.value, str)]
    own += [stated.rows]
    given = [*stated.inputs.values(), *(each.symbol for each in stated.known.values())]
    given += stated.masks
    own += [entry for each in stated.known.values() for entry in each[1:]]
    counts = (len(stated.path), len(stated.end), len(stated.costs), len(stated.end_costs))
    weights = [
        [term.value if isinstance(term.value, str) else "", *map(np.ndarray.tolist, places)]
        + term.weight.parameter.tolist()
        for term, places in zip(terms, map(_places, terms), strict=True)
    ]
    try:
        texts = ["" if entry is None else entry.function.serialize() for entry in used]
        texts.append(ca.Function("stated", given, own).serialize())
    except RuntimeError:  # it calls back into Python, say
        return None
    method = "" if system.is_discrete else f"{get_method(problem.method)!r} {problem.substeps}"
    texts += [
        group, method, f"{counts} {weights} {problem.free_start.tolist()}",
        f"{system.is_discrete} {system.error_selection.tolist()}",
        f"{system.input_index('control').tolist()}",
    ]  # fmt: skip
    texts += [] if problem.has_equal_steps else ["steps of different lengths"]
    *along, end = stated.meaning.active
    texts.append(f"rows {rows_to_mask(np.array(along))} {np.any(along, axis=0)} {end}")
    if entries_in([*stated.path, *stated.costs]).ndim > 1:
        texts += ["weights that change along the horizon"]
    return "\n".join(f"{len(text)} {text}" for text in texts)


def _text_of(group: LieGroup) -> str | None:
    """Class and values of a group; None for classes of others, whose sources nobody hashes."""
    kind = type(group)
    if not kind.__module__.startswith("lgcontrol.groups."):
        return None
    if isinstance(group, Product):
        texts = [_text_of(part) for part in group.blocks.values()]
        return None if None in texts else f"{kind.__qualname__} {[*group.blocks]} {texts}"
    values = vars(group)
    if any(isinstance(value, LieGroup) for value in values.values()):
        return None
    return f"{kind.__module__} {kind.__qualname__} {sorted(values.items())!r}"


def state(problem: OptimalControlProblem) -> _Stated:
    """Expressions of a problem's terms and bounds."""
    system, group = problem.system, problem.system.state
    sym = problem.symbol.sym
    names = problem.parameter_names
    inputs = {
        "t": sym("t"), "x": sym("x", group.nq), "u": sym("u", system.n_inputs),
        "p": sym("p", len(problem.nominal_parameters)), "x_ref": sym("x_ref", group.nq),
    }  # fmt: skip
    t, x, u, p, x_ref = inputs.values()
    known = _known_quantities(problem, sym, (t, x, u, p[: system.n_parameters]))
    stand_ins = {key: quantity.symbol for key, quantity in known.items()}
    points, is_left = [(1.0, t, x)], problem.quadrature == "left"
    if not is_left:
        inputs["dt"] = sym("dt")
        points = _points_of(problem, known, t, x, u, p[: system.n_parameters], inputs["dt"])
    path = [_Term("error", problem.weight("Q")), _Term("effort", problem.weight("R"))]
    if not is_left:
        path[0] = _Term("error", Weight.of(0.0 * problem.Q))
        path += [
            _Term(system.error(state, x_ref), problem.weight("Q").times(share))
            for share, _, state in points
        ]
    end: list[_Term] = []
    if not isinstance(problem.terminal, str):
        _, varying = problem.weight("terminal").split()
        end += [_Term("error", varying)] if varying.matrix.any() else []
    of_system = {key: known[key] for key in stand_ins}

    def masked(weights: TermWeights, value: Any, name: str) -> Mask | None:
        weight = weights.nodes if weights.path is None else weights.path
        return mask_of(problem, weight, value, (t, x, u, p), of_system, name)

    def along(
        weights: TermWeights, here: Any, mask: Mask | None, expression: Callable[..., Any]
    ) -> list[_Term]:
        on = None if mask is None else mask.on
        found = [] if weights.nodes is None else [_Term(here, weights.nodes, True, on)]
        if weights.path is None:
            return found
        for share, time, state in points:
            at = [time, state, u, p] if mask is None else mask.switch(time, state, u, p)
            value = here if is_left else expression(*at)
            found.append(_Term(value, weights.path.times(share), False, on))
        return found

    costs: tuple[list[_Term], list[_Term]] = ([], [])
    counted = [("residual", *each) for each in enumerate(problem.residuals)]
    counted += [("cost", *each) for each in enumerate(problem.costs)]
    for kind, i, term in counted:
        at, value = [t, x, u, p], term.expression(system, t, x, u, p, stand_ins)
        weights = term.weigh(value.shape[0], names, problem.steps)
        mask = masked(weights, value, f"{kind} {i} counts")
        if mask is not None:
            switched = mask.switch(*at, *stand_ins.values())
            at, quantities = switched[:4], dict(zip(stand_ins, switched[4:], strict=True))
            value = term.expression(system, *at, known=quantities)
        if isinstance(term, Residual) and term.derivatives is not None:
            quantity = term.differentiated(system, value, *at)
            known[f"residual {len(known)}"], value = quantity, quantity.symbol
        terms, at_end = (path, end) if kind == "residual" else costs
        at_end += [] if weights.end is None else [_Term(value, weights.end)]
        terms += along(weights, value, mask, partial(term.expression, system))
    bounds = [
        each for each in problem.bounds if not holds_throughout(system, each, problem.horizon)
    ]
    rows, meaning = build_rows(
        system, bounds, problem.steps, (t, x, u, p, x_ref), names, problem.free_start, known,
        points, is_refined=problem._is_refined,
    )  # fmt: skip
    return _Stated(inputs, path, end, *costs, rows, meaning, known)


def _points_of(
    problem: OptimalControlProblem, known: dict[str, KnownQuantity], t: Any, x: Any, u: Any, p: Any,
    dt: Any,
) -> list[tuple[float, Any, Any]]:  # fmt: skip
    """The points of a step at which integrals are taken: weight, time and state.

    States at collocation points are solved for once, with derivatives: they are known quantities.
    """
    system, group = problem.system, problem.system.state
    if problem.quadrature != AT_POINTS:
        step = system.step(problem.method, problem.substeps).function
        return points_within(step, problem.quadrature, t, x, u, p, dt)
    method = collocation_of(problem.method)
    X, by_x, by_u = point_states(system, method)(t, x, u, p, dt)
    n, m, found = group.dim, system.n_inputs, []
    for i, (c, share) in enumerate(method.points.items()):
        state, symbol = X[:, i], type(x).sym(f"point{i}", group.nq)
        lift = group.rate_matrix(state)
        known[f"point {i}"] = KnownQuantity(
            symbol, state, lift @ by_x[:, i * n : (i + 1) * n], lift @ by_u[:, i * m : (i + 1) * m]
        )
        found.append((share, t + c * dt, symbol))
    return found


def _known_quantities(
    problem: OptimalControlProblem, sym: Callable[..., Any], point: tuple[Any, Any, Any, Any]
) -> dict[str, KnownQuantity]:
    """Those that bounds and residuals name and whose derivatives the system knows."""
    system = problem.system
    named = [bound.of for bound in problem.bounds if isinstance(bound.of, str)]
    named += [entry.of for entry in problem.residuals if isinstance(entry.of, str)]
    named += system.limits if LIMITS in named else []
    entries = {entry for name in named for entry in entries_of(system, name)}
    found = {}
    for key, slopes in system.quantity_derivatives.items():
        if entries.isdisjoint(entries_of(system, key)):
            continue
        value, by_x, by_u = slopes.function(*point)
        found[key] = KnownQuantity(sym(key, value.shape[0]), value, by_x, by_u)
    return found


def composes(problem: OptimalControlProblem) -> bool:
    """Whether derivatives of substeps are multiplied by loops where there are some: long ones are.

    Written out, the products take most of a stage, and it is several times as long as a substep.
    """
    system = problem.system
    if problem.substeps == 1 or system.symbol is not ca.SX or not _is_explicit(problem):
        return False
    if system.is_discrete or system.errors is not None or system.project is not None:
        return False
    one = step_derivatives(system, problem.method, 1, backwards=True).function
    return problem.substeps * one.n_instructions() > LONGEST_PRODUCT


def build_functions(problem: OptimalControlProblem, stated: _Stated) -> StageFunctions:
    """Functions of a problem, of its expressions."""
    system, group = problem.system, problem.system.state
    controls = system.input_index("control").tolist()
    method = problem.method, problem.substeps
    derivatives = step_derivatives(system, *method, backwards=True).function
    t, x, u, p, x_ref, *within = stated.inputs.values()
    symbol: Any = type(x)
    sym, n, m = symbol.sym, system.n_errors, len(controls)
    x_next, u_ref = sym("x_next", group.nq), sym("u_ref", system.n_inputs)
    P, dt = sym("P", n, n), within[0] if within else sym("dt")
    own = p[: system.n_parameters]
    E, N = ca.DM(system.error_selection), system.error_basis(x, own)
    lift = group.rate_matrix(x) @ N

    known = stated.known

    def by_state(value: Any) -> Any:
        slope = ca.jacobian(value, x) @ lift
        for each in known.values():
            slope += ca.jacobian(value, each.symbol) @ (each.by_x @ N)
        return slope

    def by_both(value: Any) -> Any:
        slope = ca.jacobian(value, u)[:, controls]
        for each in known.values():
            slope += ca.jacobian(value, each.symbol) @ each.by_u[:, controls]
        return ca.horzcat(by_state(value), slope)

    away = group.minus(x, x_ref)
    error = E @ away
    by_error = E @ group.right_jacobian_inverse(away) @ N
    weighed = {
        "error": (error, ca.horzcat(by_error, ca.DM(n, m))),
        "effort": ((u - u_ref)[controls], ca.horzcat(ca.DM(m, n), ca.DM.eye(m))),
    }

    def squares(terms: list[_Term]) -> list[_Square]:
        """At the end."""
        found = []
        for value, weight, *_ in terms:
            is_known = isinstance(value, str)
            r, slope = weighed[value] if is_known else (value, by_state(value))
            found.append(_Square(r, slope[:, :n], weight))
        return found

    plain = [_Square(value, by_both(value), weight) for value, weight, *_ in stated.costs]
    last_plain = [_Square(value, by_state(value), weight) for value, weight, *_ in stated.end_costs]
    *residuals, (rows, by_rows) = _differentiated(stated, by_both)
    path, end = [], squares(stated.end)
    for value, weight, *_ in stated.path:
        r, slope = weighed[value] if isinstance(value, str) else residuals.pop(0)
        path.append(_Square(r, slope, weight))
    arguments = (t, x, u, own, dt)
    after, A, B = derivatives(*arguments)
    gap = group.minus(after, x_next)
    correction = E @ group.right_jacobian_inverse(gap) @ system.error_basis(after, own)
    r, weighted, g, H, other, w = _gauss_newton(symbol, path, plain, p)
    meant = _mask_values(stated, w)
    # Without derivatives the gap comes from the step itself, a tenth of the work.
    step = system.step(*method).function
    values = {
        "cost": dt * (ca.dot(r, weighted) / 2 + other),
        "gap": E @ group.minus(step(*arguments), x_next),
        "rows": rows,
    }
    slopes = {
        "A": correction @ A,
        "B": (correction @ B)[:, controls],
        "g": dt * g,
        "H": mirrored(dt * H),
        "G": by_rows,
    }
    inputs = {
        "t": t, "x": x, "u": u, "x_next": x_next, "x_ref": x_ref, "u_ref": u_ref, "p": p,
        "w": w, "dt": dt,
    }  # fmt: skip
    terms = [dt * weighted[:n], r[n:], dt * weighted[n:], dt * other]
    terms = _written(terms, known, meant)
    stage_terms = ca.Function("stage_terms", [*inputs.values()], terms, [*inputs], TERMS)
    r, weighted, g, H, other, w = _gauss_newton(symbol, end, last_plain, p)
    pull = P @ error
    last = {"cost": (ca.dot(r, weighted) + ca.dot(error, pull)) / 2 + other, "rows": rows}
    last_inputs = {"t": t, "x": x, "u": u, "x_ref": x_ref, "p": p, "w": w, "P": P}
    split = n if end and end[0].value is error else 0
    all_pull = pull + weighted[:split] if split else pull
    # Symbols that only rows depend on which do not hold, and masks, are 1.
    meant_at_end = [(each, symbol(1.0)) for each in (*within, *stated.masks)]
    terms = _written([all_pull, r[split:], weighted[split:], other], known, meant_at_end)
    given = [*last_inputs.values()]
    terminal_terms = ca.Function("terminal_terms", given, terms, [*last_inputs], TERMS)
    last_derivatives = {
        "g": g + by_error.T @ pull,
        "H": mirrored(H) + by_error.T @ P @ by_error,
        "G": by_state(rows),
    }
    made = partial(_function, system, symbol, known)
    around = None
    if composes(problem):
        end_of_step = sym("after", group.nq)
        gap_there = group.minus(end_of_step, x_next)
        back = E @ group.right_jacobian_inverse(gap_there)
        results = {
            "cost": values["cost"], "gap": E @ gap_there, "rows": rows, "C": back,
            "g": slopes["g"], "H": slopes["H"], "G": by_rows,
        }  # fmt: skip
        around = made("around", inputs | {"after": end_of_step}, results, meant)
    return StageFunctions(
        made("stage", inputs, values | {"gap": E @ gap} | slopes, meant),
        made("stage_values", inputs, values, meant),
        around,
        made("terminal", last_inputs, last | last_derivatives, meant_at_end),
        made("terminal_values", last_inputs, last, meant_at_end),
        stage_terms,
        terminal_terms,
    )


def _differentiated(stated: _Stated, slope: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Residuals along the horizon, rows at last, each with its slope.

    Where they evaluate the same, as torques that have limits and cost something, they are
    differentiated together; others apart, each in the direction that is cheaper for it.
    """
    apart = [term.value for term in stated.path if not isinstance(term.value, str)]
    apart.append(stated.rows)
    together: Any = ca.cse([type(stated.inputs["x"])(value) for value in apart])
    given = [*stated.inputs.values(), *(each.symbol for each in stated.known.values())]
    given += stated.masks

    def size(values: list[Any]) -> int:
        return ca.Function("size", given, values).n_instructions()

    if size(together) > SHARED * size(apart):
        return [(value, slope(value)) for value in apart]
    ends = np.cumsum([0, *(value.shape[0] for value in together)]).tolist()
    slopes = ca.vertsplit(slope(ca.vertcat(*together)), ends)
    return list(zip(together, slopes, strict=True))


def _function(
    system: System, symbol: Any, known: dict[str, KnownQuantity], name: str,
    inputs: dict[str, Any], results: dict[str, Any], meant: Sequence[tuple[Any, Any]],
) -> ModelFunction:  # fmt: skip
    """A function of dense results."""
    # Notices of compilers say whose function it is.
    name = "_".join([name, *re.findall(r"[A-Za-z0-9]+", system.name)])
    spelled = _written([symbol(value) for value in results.values()], known, meant)
    expressions: Any = [ca.densify(value) for value in spelled]
    if symbol is ca.MX:
        expressions = solved_once([*inputs.values()], expressions)
    # Steps, fields and costs share next to nothing that is not shared inside of each: ca.cse would
    # find 0.4 % of a stage's operations in a fifth of the time that the problem takes to make.
    return named_function(name, inputs, dict(zip(results, expressions, strict=True)))


def _written(
    expressions: list[Any], known: dict[str, KnownQuantity], meant: Sequence[tuple[Any, Any]]
) -> list[Any]:
    """Expressions without symbols of known quantities, and with what other symbols mean."""
    spelled = spelled_out(expressions, known)
    if not meant:
        return spelled
    symbols, values = zip(*meant, strict=True)
    return [*ca.substitute([*map(type(symbols[0]), spelled)], [*symbols], [*values])]


def _mask_values(stated: _Stated, w: Any) -> list[tuple[Any, Any]]:
    """Symbols of masks, each with whether its term has a weight among w.

    A weight that is not zero has a diagonal that is not, as weights are semidefinite.
    """
    found, start = {}, 0
    for term in (*stated.path, *stated.costs):
        rows, columns = _places(term)
        own = [w[start + int(i)] != 0 for i in np.flatnonzero(rows == columns)]
        start += len(rows)
        if term.mask is not None:
            found[term.mask.name()] = term.mask, reduce(ca.logic_or, own)
    return [*found.values()]


class _Square(NamedTuple):
    """A term ``½ rᵀ W r``, or one ``w r``, and the derivative of its r."""

    value: Any
    jacobian: Any
    weight: Weight


def _places(term: _Term | _Square) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries on and below the diagonal of W that are not zero.

    Column after column, as CasADi stores them.
    """
    columns, rows = np.nonzero(np.tril(term.weight.is_set).T)
    return rows, columns


def entries_in(terms: list[_Term], *, of_nodes: bool = False) -> np.ndarray:
    """These entries of all terms, shape (w,), or (N, w) where some change along the horizon.

    With `of_nodes` those of terms over steps are zero.
    """
    found = [
        term.weight.matrix[(..., *_places(term))] * (term.is_of_node or not of_nodes)
        for term in terms
    ]
    stages = max((len(each) for each in found if each.ndim > 1), default=0)
    if stages:
        found = [np.broadcast_to(each, (stages, each.shape[-1])) for each in found]
    return np.concatenate([np.zeros((stages, 0) if stages else 0), *found], axis=-1)


def _gauss_newton(
    symbol: Any, terms: list[_Square], plain: list[_Square], p: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """All r and W r of ``½ Σ rᵀ W r + Σ w ℓ``, its derivatives, ``Σ w ℓ``, a symbol for weights.

    Of the Hessian what is on and below the diagonal, without that of ℓ.
    Only entries that are not zero have a symbol, one for both sides of the diagonal; those that are
    parameters are multiplied by theirs.
    """
    places = [_places(term) for term in (*terms, *plain)]
    w, start = symbol.sym("w", sum(len(rows) for rows, _ in places)), 0
    residuals, pulls, gradient, hessian = ca.DM(0, 1), ca.DM(0, 1), ca.DM(0), ca.DM(0)
    for term, (rows, columns) in zip(terms, places, strict=False):
        size, stop = term.value.shape[0], start + len(rows)
        pattern = ca.Sparsity.triplet(size, size, rows.tolist(), columns.tolist())
        entries, start = w[start:stop], stop
        which = np.where(rows == columns, term.weight.parameter[rows], -1)
        if (which >= 0).any():
            entries = entries * ca.vertcat(*(p[int(k)] if k >= 0 else 1 for k in which))
        # No entries of an MX are a row.
        lower = symbol(pattern, entries) if len(rows) else symbol(size, size)
        W = lower + lower.T - ca.diag(ca.diag(lower))
        weighted = W @ term.jacobian
        residuals = ca.vertcat(residuals, term.value)
        pulls = ca.vertcat(pulls, W @ term.value)
        gradient = gradient + weighted.T @ term.value
        hessian = hessian + lower_product(term.jacobian, weighted)
    other: Any = ca.DM(0)
    for k, term in enumerate(plain):
        which = int(term.weight.parameter[0])
        factor = w[start + k] if which < 0 else w[start + k] * p[which]
        other, gradient = other + factor * term.value, gradient + factor * term.jacobian.T
    return residuals, pulls, gradient, hessian, other, w


def lower_product(J: Any, weighted: Any) -> Any:
    """``Jᵀ W J`` on and below the diagonal: both sides would be written twice."""
    columns = [J[:, j:].T @ weighted[:, j] for j in range(J.shape[1])]
    return ca.horzcat(*(ca.vertcat(ca.DM(j, 1), column) for j, column in enumerate(columns)))


def mirrored(lower: Any) -> Any:
    """The symmetric matrix of what is on and below its diagonal."""
    return lower + ca.tril(lower, False).T
