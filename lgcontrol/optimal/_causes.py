"""Why a solve did not converge: evidence at its last iterate, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import casadi as ca
import numpy as np

from ..systems import System
from ._masks import GOLDEN
from ._outcome import SolveStatus
from ._plan import Plan
from ._stage_model import Expansion, StageModel, by_nodes
from ._substeps import ends_of_steps
from ._terms import TermWeights
from ._transcription import Nodes, Setting

# Where numbers have a range below, messages of 26 tasks that fail stay the same when one is moved
# alone within it: the table is in tests/benchmarks/planning_experiments.md.

# A guess or rollout whose numbers are larger than this has diverged: 1e9 to 1e15.
DIVERGED = 1e12
# Displacements of the iterate, in sizes, between which derivatives are compared.
PROBES = (1e-2, 1e-4, 1e-6)
# Share of a derivative's largest value that is a kink, 1e-8 to 1, and of its jump at the larger
# displacement, 0.23 to 0.6: a smooth function has a hundredth there.
KINK, STAYS = 1e-2, 0.3
# Norm below which a normalized combination of rows is none, 1e-12 to 1e-2; distance of an active
# row from its limit, 1e-10 to 1; distance in sizes from where its gradient vanishes, 0.01 to 0.1.
DEPENDENT, ACTIVE, NEAR = 1e-6, 1e-4, 3e-2
# Rows whose dependence is looked for, those with the largest multipliers, 4 or more; share of one
# in a sum that a message names, 1e-7 to 0.1.
MOST_ROWS, SHARE = 40, 0.1
# Newton steps from a node to where its equalities hold, 8 or more.
MOST_NEWTON = 20
# Decades between the sizes of states and inputs from which a message names them.
DECADES = 8.0
# Share of its size in the solve that a state moves by, below which that size is one of other
# quantities. A ship that berths in newtons has speeds of up to 4 m/s, and 3,800 to 7,500 for them.
LITTLE = 0.01
# Growth of a displacement in one step from which it is longer than the motion allows: it is 5e3 in
# ethanol and 8e6 in penicillin of the literature, which fail by it.
TOO_LONG = 1e3
# A step is off its motion if it ends this share of the range of a state elsewhere than in so many
# parts, or answers to a displacement otherwise by that share of its largest answer. Reactors and
# waits of 12.5 s whose solves fail by it have 0.86 to 20, where steps are exact it is 1e-11. Decays
# by an implicit method, which end 0.065 above zero at most, have 0.68: they are not meant.
OFF, OFF_SLOPE, PARTS, MOVED, LEAST_SLOPE, LEAST_SPAN = 0.1, 0.7, 4, 1e-5, 0.03, 1e-3
TINY = np.finfo(float).tiny
# Lengths of motion from a node, in steps, that are tried for solutions of algebraic equations.
ALONG_STEP = 0.5, 1.0, 2.0
# Displacement of a coordinate that tells whether it makes something infinite: 1e-9 to 0.1.
ASIDE = 1e-3


@dataclass(frozen=True)
class LastIterate:
    """What a solve left: its nodes, its plan, and a row of numbers for each iterate."""

    model: StageModel
    setting: Setting
    nodes: Nodes
    plan: Plan
    log: np.ndarray

    @cached_property
    def at(self) -> Expansion:
        """The problem's expansion there."""
        return self.model.expand(self.nodes, self.setting)

    @cached_property
    def names(self) -> list[str]:
        """Names of error coordinates, then of controls."""
        system = self.model.problem.system
        return [*system.error_names, *(system.input_names[i] for i in self.model.controls)]

    @property
    def motion(self) -> str:
        """What messages call the dynamics."""
        return f"the motion of {self.model.problem.system.name}"

    @cached_property
    def size(self) -> np.ndarray:
        """Sizes of error coordinates, then of controls, which are at least as far as these go."""
        nodes, model = self.nodes, self.model
        known = self.plan["scales"][0, len(model.transcription.rows.names) :]
        with np.errstate(all="ignore"):
            moved = np.abs(model.problem.system.error(nodes.x, nodes.x[0])).max(axis=0)
            largest = np.abs(nodes.u[:, model.controls]).max(axis=0)
        return np.fmax(known, np.nan_to_num(np.r_[moved, largest], posinf=0.0))

    @cached_property
    def aside(self) -> np.ndarray:
        """How far states are from their start and their reference at most."""
        error, x = self.model.problem.system.error, self.nodes.x
        with np.errstate(all="ignore"):
            return np.abs([error(x, x[0]), error(x, self.setting.x_ref)]).max(axis=(0, 1))

    @cached_property
    def is_mean(self) -> np.ndarray:
        """Which states have a size that is of other quantities: they move by much less."""
        aside = self.aside
        return (aside > 0) & (aside < LITTLE * self.size[: self.model.n])

    @cached_property
    def jumps(self) -> tuple[np.ndarray, ...]:
        """Differences of derivatives between both sides, at the largest displacement."""
        return _jumps(self, PROBES[0], self.size)


def causes_of(last: LastIterate, status: SolveStatus) -> list[str]:
    """What kept a solve from converging, the most certain cause first, each with its remedy."""
    causes = []
    with np.errstate(all="ignore"):
        for rule in RULES.get(status, ALL_RULES):
            if text := rule(last):
                causes.append(text)
                if rule in ALONE:
                    break
    return causes


# -- what is not finite ----------------------------------------------------------------------------


def _terms(last: LastIterate) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Residuals and costs: name, ``(t, x, u, p) → value``, its weight at nodes."""
    problem, p = last.model.problem, last.setting.p
    system, names, steps = problem.system, problem.parameter_names, problem.steps
    sizes = 1, system.state.nq, system.n_inputs, len(p)
    t, x, u, q = (problem.symbol.sym(*each) for each in zip("txup", sizes, strict=True))
    for term in (*problem.residuals, *problem.costs):
        value = term.expression(system, t, x, u, q)
        on = _counts(term.weigh(value.shape[0], names, steps), len(steps))
        yield f"the {term._label}", ca.Function("term", [t, x, u, q], [value]), on


def _counts(weights: TermWeights, steps: int) -> np.ndarray:
    """Largest weight of a term at each node, 1 for a parameter; zero where it does not count."""
    found = np.zeros(steps + 1)
    for weight, nodes in (
        (weights.path, slice(0, steps)), (weights.nodes, slice(0, steps)), (weights.end, steps),
    ):  # fmt: skip
        if weight is None:
            continue
        own = np.abs(weight.matrix).max(axis=(-2, -1), initial=0.0)
        own = np.ones_like(own) if (np.asarray(weight.parameter) >= 0).any() else own
        found[nodes] = np.fmax(found[nodes], own)
    return found


def _first(bad: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(bad)[0])


def _not_finite(last: LastIterate) -> str:
    """Which value or derivative is not finite first, and by which coordinate."""
    model, at, names = last.model, last.at, last.names
    if all(np.isfinite(part).all() for part in at):
        return ""
    motion, states, N = last.motion, names[: model.n], len(last.nodes.u)
    if not np.isfinite(at.gaps).all():
        k, i = _first(~np.isfinite(at.gaps))
        if text := _unsolved(last, k):
            return text
        return _told(last, _rate(last, k) or f"{motion}, {states[i]},", k)
    by = np.concatenate([at.A, at.B], axis=2)
    if not np.isfinite(by).all():
        k, i, j = _first(~np.isfinite(by))
        return _told(last, f"the derivative of {motion}, of {states[i]} by {names[j]},", k)
    slopes = at.row_slopes
    for value, is_slope in ((at.rows[..., None], False), (slopes, True)):
        bad = ~np.isfinite(value) & model.transcription.rows.active[..., None]
        if bad.any():
            k, i, j = _first(bad)
            name = f"the bounded quantity {model.transcription.rows.names[i]}"
            of = f"the derivative of {name} by {names[j]}" if is_slope else name
            return _told(last, of, k)
    for name, function, on in _terms(last):
        for k in np.flatnonzero(on).tolist():
            given = _given(last, k)
            if not np.isfinite(np.asarray(function(*given))).all():
                return _told(last, name, k)
            if not np.isfinite(np.asarray(_slope(function)(*given))).all():
                return _told(last, f"the derivative of {name}", k)
    bad = ~np.isfinite(np.vstack([at.g, np.r_[at.g_end, np.zeros(model.m)]]))
    k = _first(bad)[0] if bad.any() else N
    return _told(last, "the cost or one of its derivatives", k)


def _unsolved(last: LastIterate, k: int) -> str:
    """Which algebraic equation of the system has no solution at a node; empty where all have."""
    t, x, u, p = _given(last, k)
    system, nodes = last.model.problem.system, last.nodes
    text = system.unsolved(t, x, u, p[: system.n_parameters])
    if text:
        return f"at node {k} {text}"
    one = Nodes(nodes.t[k : k + 2], nodes.x[k : k + 2], nodes.u[k : k + 1])
    return unsolved_beside(system, one, p, first=k)


def _fold(last: LastIterate) -> str:
    """A state next to the iterate at which algebraic equations have no solution."""
    return unsolved_beside(last.model.problem.system, last.nodes, last.setting.p)


def unsolved_beside(system: System, nodes: Nodes, p: np.ndarray, first: int = 0) -> str:
    """Which algebraic equation has no solution next to nodes or in their steps, and at which state.

    Empty for other systems, and where all have one. `first` is the number of the first node.
    """
    if system.is_discrete or not system.has_algebraic_states:
        return ""
    t, x, u, own = nodes.t[:-1], nodes.x[:-1], nodes.u, p[: system.n_parameters]
    state = system.state
    span = np.abs(state.minus(nodes.x, nodes.x[0])).max(axis=0)
    span = np.maximum(span, ASIDE * max(float(span.max()), 1.0))
    ways = [share * side for share in PROBES[::-1] for side in np.diag(span)]
    rates = np.asarray(system.f(t, x, u, own)) * np.diff(nodes.t)[:, None]
    tried = [state.plus(x, sign * way) for way in ways for sign in (-1.0, 1.0)]
    tried += [state.plus(x, share * np.nan_to_num(rates)) for share in ALONG_STEP]
    for at in map(np.asarray, tried):
        bad = ~np.isfinite(np.asarray(system.f(t, at, u, own))).all(axis=-1)
        for k in np.flatnonzero(bad)[:1].tolist():
            if text := system.unsolved(t[k], at[k], u[k], own):
                pairs = zip(state.coordinate_names, at[k], strict=True)
                told = ", ".join(f"{name} = {value:.4g}" for name, value in pairs)
                return f"next to node {first + k}, at {told}, {text}"
    return ""


def _rate(last: LastIterate, k: int) -> str:
    """Which entry of the vector field is not finite at a node; empty where it is finite."""
    system = last.model.problem.system
    if system.is_discrete:
        return ""
    t, x, u, p = _given(last, k)
    rate = np.asarray(system.f(t, x, u, p[: system.n_parameters]), dtype=float).ravel()
    bad = ~np.isfinite(rate)
    if not bad.any():
        return ""
    return f"the rate of {system.state.tangent_names[int(bad.argmax())]} in {system.name}"


def _given(last: LastIterate, k: int) -> tuple[Any, ...]:
    nodes = last.nodes
    return nodes.t[k], nodes.x[k], nodes.u[min(k, len(nodes.u) - 1)], last.setting.p


def _slope(function: Any) -> Any:
    t, x, u, p = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
    value = function(t, x, u, p)
    return ca.Function("slope", [t, x, u, p], [ca.jacobian(value, ca.vertcat(x, u))])


def _told(last: LastIterate, what: str, k: int) -> str:
    """The sentence, with the coordinates without which it would be finite."""
    makers = _makers(last, k)
    where = f" with {' and '.join(makers)}" if makers else ""
    remedy = (
        "bound this away from there, start elsewhere with x0 or guess=, or write a division, root, "
        "norm or logarithm with a guard, as sqrt(a² + 1e-6)"
    )
    return f"{what.rstrip(',')} is not finite at node {k}{where}: {remedy}"


def _makers(last: LastIterate, k: int) -> list[str]:
    """Coordinates of a node whose displacement makes all finite that is not, with their values."""
    model, nodes, n = last.model, last.nodes, last.model.n
    before, found, N = _bad(last.at, k), [], len(nodes.u)
    states = dict(zip(model.problem.system.state.coordinate_names, nodes.x[k], strict=True))
    known = [states.get(name) for name in last.names[:n]]
    known += [] if k == N else nodes.u[k, model.controls].tolist()  # the end has no controls
    for j, (name, value) in enumerate(zip(last.names, known, strict=False)):
        move = np.zeros((N + 1, n + model.m))
        move[k, j] = ASIDE
        moved = model.transcription.move(nodes, move[:, :n].copy(), move[:-1, n:], last.setting)
        if _bad(model.expand(moved, last.setting), k) < before:
            found.append(name if value is None else f"{name} = {value:.3g}")
    return found


def _bad(at: Expansion, k: int) -> int:
    """How many numbers of a node are not finite."""
    N = len(at.gaps)
    parts = (at.rows[N], at.g_end, at.G_end) if k == N else (
        at.gaps[k], at.rows[k], at.A[k], at.B[k], at.g[k], at.G[k])  # fmt: skip
    return sum(int((~np.isfinite(part)).sum()) for part in parts)


# -- what diverged, and sizes ----------------------------------------------------------------------


def has_diverged(last: LastIterate) -> bool:
    """Whether states are so far from start and reference that rounding hides what they violate."""
    nodes, setting = last.nodes, last.setting
    start = nodes.x[0] if setting.x0 is None else setting.x0
    known = max(1.0, float(np.abs(start).max()), float(np.abs(setting.x_ref).max()))
    return bool(np.abs(nodes.x).max() > DIVERGED * known)


def _diverged(last: LastIterate) -> str:
    """Whether the first iterate was out of all bounds, or the last one is."""
    first = np.abs(last.log[0, :3]).max()
    if not first > DIVERGED:
        if not has_diverged(last):
            return ""
        size = np.abs(last.nodes.x).max(axis=0)
        name = last.model.problem.system.state.coordinate_names[int(size.argmax())]
        remedy = "bound it, or fix its start" if len(last.model.free) else "bound it or its inputs"
        return f"the plan diverges, with {name} up to {size.max():.1e}: {remedy}"
    return (
        f"the initial guess diverges, with numbers up to {first:.1e}: start from states that do "
        'not, guess="rest", guess="screw" or a Trajectory'
    )


def _sizes(last: LastIterate) -> str:
    """Sizes that are far apart, where rounding ends a solve."""
    tail = last.log[-5:]
    is_rounded = len(tail) == 5 and (tail[:, 4] == 1).all() and (tail[:, 5] == 0).all()
    size = last.size
    if not is_rounded or np.log10(size.max() / size.min()) < DECADES:
        return ""
    names = last.names
    small, large = int(size.argmin()), int(size.argmax())
    return (
        "whole steps do not lower the residual, as rounding of large numbers is left in small "
        f"ones: {names[large]} is of size {size[large]:.1g}, {names[small]} of {size[small]:.1g}; "
        "choose units, or scales of the states, in which both are about 1"
    )


def _without_size(last: LastIterate) -> str:
    """States that have one size, the mean of those of others, and move by much less."""
    known, states = last.size[: last.model.n], np.flatnonzero(last.is_mean)
    states = [i for i in states.tolist() if (known == known[i]).sum() > 1]
    if not states:
        return ""
    i = min(states, key=lambda one: last.aside[one] / known[one])
    return (
        f"{last.names[i]} moves by {last.aside[i]:.2g} alone, and the solve takes {known[i]:.2g} "
        "as its size, the mean of those of other states and inputs: choose units in which states "
        "and inputs are about 1, such as MN for N or Mm for m"
    )


# -- constraints that depend on each other ---------------------------------------------------------


class HeldRow(NamedTuple):
    """A row that holds at a node: name, gradient, its change over the widest probe, multiplier.

    And how far it is beyond its limit.
    """

    name: str
    node: int
    slope: np.ndarray
    bend: np.ndarray
    price: float
    is_equality: bool
    excess: float


def _held(last: LastIterate) -> list[HeldRow]:
    """Hard rows that are equalities or at their limits."""
    model, plan, at = last.model, last.plan, last.at
    sides, rows, size = model.sides, model.transcription.rows, last.size
    slopes, bends = at.row_slopes * size, by_nodes(*last.jumps[1:3]) * size
    count, limit = len(sides.row), sides.limit
    off = sides.sign * (at.rows[:, sides.row] - limit)
    is_met = np.isinf(sides.weight) & ~(off < -ACTIVE * np.maximum(1.0, np.abs(limit)))
    holds = np.hstack([sides.active & is_met, sides.equal_active])
    off, price = np.hstack([off, np.zeros(sides.equal_active.shape)]), np.abs(plan["z"])
    price[:, count:] = np.maximum(price[:, count:], np.abs(plan["nu"]))
    held = []
    for c, r in enumerate(np.r_[sides.row, sides.equal].astype(int)):
        for k in np.flatnonzero(holds[:, c]).tolist():
            numbers = float(price[k, c]), c >= count, float(off[k, c])
            held.append(HeldRow(rows.names[r], k, slopes[k, r], bends[k, r], *numbers))
    return sorted(held, key=lambda one: -one.price)[:MOST_ROWS]


def _dependent(last: LastIterate) -> str:
    """Rows that no input changes, or that say the same."""
    held = _held(last)
    if not held:
        return ""
    for one in held:
        # The gradient changes by `bend` over two probes: it vanishes this near, and no part stays.
        slope, bend = np.abs(one.slope), np.abs(one.bend) / (2 * PROBES[0])
        if slope.max() <= NEAR * bend.max() and (slope <= bend)[slope > SHARE * slope.max()].all():
            return _without_slope(last, one)
    by = np.array([_by_inputs(last, one) for one in held])
    norms = np.linalg.norm(by, axis=1)
    if not np.isfinite(norms).all():  # a plan that has diverged says nothing of its bounds
        return ""
    most = max(float(norms.max(initial=0.0)), 1e-300)
    for one, norm in zip(held, norms, strict=True):
        if norm <= DEPENDENT * min(most, 1.0):
            return (
                f"no input changes {one.name} at node {one.node}, whose bound holds there: leave "
                "this bound out, or free what it depends on"
            )
    # Inputs at their limits and what they move depend on each other in any plan: equalities alone.
    equal = [i for i, one in enumerate(held) if one.is_equality]
    held, by, norms = [held[i] for i in equal], by[equal], norms[equal]
    if not held:
        return ""
    left, values, _ = np.linalg.svd(by / norms[:, None])
    rank = int((values > DEPENDENT).sum())
    if rank == len(held):
        return ""
    share = np.abs(left[:, rank:]).max(axis=1)
    named = [f"{one.name} at node {one.node}" for one, part in zip(held, share, strict=True)
             if part > SHARE * share.max()]  # fmt: skip
    return (
        "bounds depend on each other, so that their multipliers have no limit: "
        f"{', '.join(named)}; leave out those that follow from others"
    )


def _without_slope(last: LastIterate, one: HeldRow) -> str:
    """The sentence on a row whose gradient vanishes."""
    what = f"{one.name} is at its limit at node {one.node}, where its gradient vanishes"
    if one.is_equality:
        return f"{what}: state each part that is to be zero, instead of a square or a product"
    if one.excess > NEAR:  # as in the middle of an obstacle
        return (
            f"{one.name} violates its bound at node {one.node}, where its gradient vanishes: give "
            "a guess= on one side of there, such as a Trajectory"
        )
    remedy = "state the quantity itself instead of its square"
    if one.node == len(last.nodes.u):
        remedy += (
            ', or leave the last node out: at="path", with linear inputs (hold="first") '
            "at=range(0, N) for N steps"
        )
    if one.node == 0:
        remedy = "start elsewhere: no step to first order leaves this limit"
    return f"{what}: {remedy}"


def _by_inputs(last: LastIterate, one: HeldRow) -> np.ndarray:
    """Derivative of a row by all inputs and by the free part of the start, under feedback."""
    model, at, size, K = last.model, last.at, last.size, last.plan["K"]
    n, N, m = model.n, len(last.nodes.u), model.m
    found = np.zeros((N, m))
    slope = one.slope / size
    own = slope[:n].copy()
    if one.node < N:
        found[one.node] = slope[n:]
        own += slope[n:] @ K[one.node]
    for k in range(one.node - 1, -1, -1):
        found[k] = own @ at.B[k]
        own = own @ (at.A[k] + at.B[k] @ K[k])
    return np.r_[(found * size[n:]).ravel(), own[model.free] * size[model.free]]


# -- bounds of one node that no state keeps --------------------------------------------------------


def contradicted(last: LastIterate) -> str:
    """A hard bound that equalities at the same node rule out, such as an obstacle at the goal.

    Equalities are solved at that node alone, without the motion, from its state in the iterate and
    from the start. What they fix, to first order, is compared with its limits.
    """
    sides, active = last.model.sides, last.model.sides.equal_active
    for k in np.flatnonzero(active.any(axis=1))[::-1].tolist():
        equal = np.flatnonzero(active[k])
        with np.errstate(all="ignore"):
            told = [_ruled_out(last, k, equal, last.nodes.x[j]) for j in (k, 0)]
        if k and all(told):
            names = last.model.transcription.rows.names
            row, excess, held = told[0]  # type: ignore[misc]
            fixed = ", ".join(names[sides.equal[i]] for i in held)
            return (
                f"no state was found at node {k} that satisfies {names[row]} and {fixed}: if "
                f"{names[row]} alone is left out, it is beyond its limit by {excess:.3g}; move one "
                "of them, leave one out, or give it soft="
            )
    return ""


def _ruled_out(
    last: LastIterate, k: int, equal: np.ndarray, x: np.ndarray
) -> tuple[int, float, np.ndarray] | None:
    """Row that is farthest beyond a limit where equalities hold, how far, and these equalities."""
    model, sides, scale = last.model, last.model.sides, last.size[: last.model.n]
    states = last.nodes.x.copy()
    states[k] = x
    nodes, own = last.nodes._replace(x=states), sides.equal[equal]
    for _ in range(MOST_NEWTON):
        at = model.expand(nodes, last.setting)
        off, slopes = at.rows[k, own] - sides.target[equal], at.row_slopes[k] * last.size
        if not (np.isfinite(off).all() and np.isfinite(slopes[own]).all()):
            return None
        if np.abs(off).max() <= ACTIVE**2:
            break
        step = np.zeros((len(states), model.n))
        step[k] = -scale * (np.linalg.pinv(slopes[own, : model.n]) @ off)
        held = np.zeros_like(last.nodes.u[:, model.controls])
        nodes = model.transcription.move(nodes, step, held, last.setting)
    else:
        return None
    hard = sides.active[k] & np.isinf(sides.weight)
    excess = np.where(hard, sides.sign * (at.rows[k, sides.row] - sides.limit), -np.inf)
    for c in np.argsort(-excess):
        row, slope = int(sides.row[c]), slopes[sides.row[c]]
        if not excess[c] > ACTIVE * max(1.0, abs(sides.limit[c])):
            return None
        share = np.linalg.lstsq(slopes[own].T, slope, rcond=None)[0]
        size = np.abs(slope).max()
        if not size > NEAR * excess[c]:  # as in the middle of an obstacle
            if _is_fixed(last, k, row, nodes, slopes[own]):
                return row, float(excess[c]), equal
        elif np.abs(slopes[own].T @ share - slope).max() <= ACTIVE * size:
            involved = np.abs(share) > SHARE * np.abs(share).max()
            return row, float(excess[c]), equal[involved]
    return None


def _is_fixed(last: LastIterate, k: int, row: int, nodes: Nodes, slopes: np.ndarray) -> bool:
    """Whether a row stays as it is at displacements of the state that equalities allow."""
    model, n = last.model, last.model.n
    _, values, basis = np.linalg.svd(slopes[:, :n])
    left = basis[int((values > DEPENDENT * values.max(initial=0.0)).sum()) :]
    held = np.zeros_like(last.nodes.u[:, model.controls])

    def value(along: np.ndarray) -> float:
        step = np.zeros((len(nodes.x), n))
        step[k] = PROBES[0] * last.size[:n] * along
        moved = model.transcription.move(nodes, step, held, last.setting)
        return float(model.expand(moved, last.setting).rows[k, row])

    before = value(np.zeros(n))
    return all(abs(value(along) - before) <= DEPENDENT * PROBES[0] for along in left)


# -- steps that are too long ----------------------------------------------------------------------


def _too_long(last: LastIterate) -> str:
    """A step that multiplies changes of the state as none does that follows its motion."""
    steps = np.where(np.isfinite(last.at.A), last.at.A, 0.0)
    values, vectors = np.linalg.eig(steps)
    k, i = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    if not abs(values[k, i]) > TOO_LONG:
        return ""
    shares = vectors[k, :, i] * np.linalg.pinv(vectors[k])[i]  # participation in the mode
    return (
        f"the steps are too long for {last.motion}: that from node {k} multiplies changes of "
        f"{last.names[int(np.abs(shares).argmax())]} by {abs(values[k, i]):.1e}: {_shorter(last)}"
    )


def proves_nothing(last: LastIterate) -> bool:
    """Whether steps are off their motion where the violation that is left depends on them.

    The multipliers of the dynamics weigh the states: a certificate holds for the motion, too, if
    only what does not change the violation is off.
    """
    weights = np.abs(last.plan["lam"])
    with np.errstate(all="ignore"):
        ends, slopes = (
            (weights * parts).sum(axis=1) / np.maximum((weights * whole).sum(axis=1), TINY)
            for parts, whole in _off(last)
        )
    return bool((np.maximum(ends, slopes) > 1).any())


def _off_their_motion(last: LastIterate) -> str:
    """The step that ends, or answers to changes, most otherwise than shorter ones in its place."""
    with np.errstate(all="ignore"):
        share = np.maximum(*(parts / whole for parts, whole in _off(last)))
    share = np.where(np.isfinite(share), share, np.inf)
    k, i = np.unravel_index(int(share.argmax()), share.shape)
    if not share[k, i] > 1:
        return ""
    return (
        f"the steps are too long for {last.motion}: that from node {k} moves {last.names[i]} "
        f"otherwise than {PARTS} in its place, so that this plan tells nothing of the motion: "
        f"{_shorter(last)}"
    )


def _shorter(last: LastIterate) -> str:
    """What to do where steps are too long; those of phases have no substeps."""
    ways = ["take shorter ones"]
    if not last.model.problem.system.is_discrete:
        ways.append("more substeps")
    if not last.model.is_implicit:
        ways.append('an implicit method, method="radau_iia5"')
    return ", or ".join(ways)


def _off(last: LastIterate) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """How far ends of steps, and their answers to changes, are off those of shorter ones (N, n).

    Each beside what is allowed.
    """
    model, nodes, p = last.model, last.nodes, last.setting.p
    problem, system, size = model.problem, model.problem.system, last.size

    def ends(at: Nodes, parts: int) -> np.ndarray:
        return ends_of_steps(problem, at.t, at.x, at.u, p, parts)

    with np.errstate(all="ignore"):
        span = np.abs(system.error(nodes.x, nodes.x[0])).max(axis=0)
        span = np.maximum(span, LEAST_SPAN * max(span.max(), size.min()))
        off = np.abs(system.error(ends(nodes, PARTS), ends(nodes, 1)))
        up, down = (_pattern(last, MOVED, sign, size) for sign in (1.0, -1.0))
        long, short = (system.error(ends(up, n), ends(down, n)) for n in (1, PARTS))
        slopes = np.abs(np.concatenate([last.at.A, last.at.B], axis=2))
        answer = np.einsum("kij,kj->ki", slopes, (_shares(last) * size)[:-1])
        answer = 2 * MOVED * np.maximum(answer, LEAST_SLOPE * size[: model.n])
    return (off, OFF * np.broadcast_to(span, off.shape)), (np.abs(long - short), OFF_SLOPE * answer)


# -- kinks -----------------------------------------------------------------------------------------


def _kink(last: LastIterate) -> str:
    """A derivative that jumps next to the iterate, however near."""
    at, rows = last.at, last.model.transcription.rows
    jumps = [_jumps(last, share, _moved(last)) for share in PROBES]
    known = np.concatenate([at.A, at.B], axis=2), at.G, at.G_end[None], at.g, at.g_end[None]
    worst: tuple[float, str, int] = 0.0, "", 0
    for part, values in enumerate(known):
        usual = np.abs(values).max(axis=0, initial=0.0) + 1e-9
        for wide, near in zip(jumps[:-1], jumps[1:], strict=True):
            a, b = np.abs(wide[part]), np.abs(near[part])
            share = np.where((b > STAYS * a) & (b > KINK * usual), b / usual, 0.0)
            if part in (1, 2):
                on = rows.active[:-1] if part == 1 else rows.active[-1:]
                share = np.where(on[:, :, None], share, 0.0)
            if not share.max(initial=0.0) > worst[0]:
                continue
            k, *place = np.unravel_index(int(share.argmax()), share.shape)
            if part == 0:
                what = f"{last.motion}, {last.names[place[0]]},"
            elif part in (1, 2):
                what = f"the bounded quantity {rows.names[place[0]]}"
            else:
                what = ""
            worst = float(share.max()), what, int(k) + (len(last.nodes.u) if part in (2, 4) else 0)
    if not worst[0]:
        return ""
    _, what, k = worst
    what = what or _kinked_cost(last, k)
    return (
        f"{what} is not differentiable next to node {k}: state it smoothly, as sqrt(a² + 1e-4) for "
        "|a| or a norm, tanh(a / 0.01) for a sign, and keep divisors away from zero by a bound"
    )


def _moved(last: LastIterate) -> np.ndarray:
    """Sizes within which a smooth function is nearly linear: of a mean, how far the state goes."""
    own = np.where(last.is_mean, last.aside, last.size[: last.model.n])
    return np.r_[own, last.size[last.model.n :]]


def _pattern(last: LastIterate, share: float, sign: float, size: np.ndarray) -> Nodes:
    """The iterate, displaced by a share of the sizes, without symmetry."""
    model = last.model
    move = sign * share * _shares(last) * size
    z = move[:, : model.n].copy()
    return model.transcription.move(last.nodes, z, move[:-1, model.n :], last.setting)


def _shares(last: LastIterate) -> np.ndarray:
    """Shares (N + 1, n + m) of a displacement between 0.5 and 1.5."""
    shape = len(last.nodes.x), last.model.n + last.model.m
    return 0.5 + (GOLDEN * np.arange(1, np.prod(shape) + 1) % 1.0).reshape(shape)


def _jumps(last: LastIterate, share: float, size: np.ndarray) -> tuple[np.ndarray, ...]:
    """Differences of derivatives between both sides of the iterate."""
    model = last.model
    up, down = (model.expand(_pattern(last, share, s, size), last.setting) for s in (1.0, -1.0))
    return (
        np.concatenate([up.A - down.A, up.B - down.B], axis=2),
        up.G - down.G,
        (up.G_end - down.G_end)[None],
        up.g - down.g,
        (up.g_end - down.g_end)[None],
    )


def _kinked_cost(last: LastIterate, k: int) -> str:
    """The term of the cost whose derivative jumps most at a node."""
    best, worst = "the cost", 0.0
    sides = [_pattern(last, PROBES[1], sign, _moved(last)) for sign in (1.0, -1.0)]
    for name, function, on in _terms(last):
        if not on[k] > 0:
            continue
        slope = _slope(function)
        up, down = (np.asarray(slope(*_given(replace(last, nodes=s), k))) for s in sides)
        jump = float(np.abs(up - down).max(initial=0.0))
        if jump > worst:
            best, worst = name, jump
    return best


Rule: TypeAlias = Callable[[LastIterate], str]
# Rules in order, the most certain first; a solve that failed, or is infeasible, asks fewer.
ALL_RULES: tuple[Rule, ...] = (
    _not_finite, _fold, _too_long, _diverged, _off_their_motion, _dependent, _kink, _without_size,
    _sizes,
)  # fmt: skip
RULES: dict[SolveStatus, tuple[Rule, ...]] = {
    SolveStatus.FAILED: (_not_finite,),
    SolveStatus.INFEASIBLE: (_not_finite, _fold, _too_long, _dependent),
}
ALONE = _not_finite, _fold, _too_long, _diverged  # nothing else can be told next to these
