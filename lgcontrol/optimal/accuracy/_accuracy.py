"""Error of a transcription: what a plan misses between its nodes, told and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ...codegen._internal import check_shape
from ...systems import System
from .._bounds import ALONG
from .._causes import OFF
from .._outcome import TranscriptionError, Violation
from .._problem import OptimalControlProblem
from .._solution import DERIVED, OptimalSolution
from .._statement import AT_POINTS
from .._transcription import Transcription
from ..phases._phased_solution import PhasedSolution
from ._between import Between, mapped
from ._parts import PlanPart, as_solved, flat_of, parts_of

MOST_NAMED = 3  # violations in a sentence
# Inputs with the second derivative c are off linear ones by c² h⁵ / 720 in the square, in a step of
# length h; what `_saved` says of their rates is twenty times as much.
RATES_SAVE = 1 / 20
# The same by what inputs of phases are between nodes; polynomials are taken as they are.
SAVED_BY = {"plain": 1.0, "blocks": 1.0, "linear": RATES_SAVE, "points": 0.0}
# Messages tell of steps whose parts end this share of the range of a state elsewhere, violate a
# bound by this share of the range of the bounded quantity, or change the cost by that share. The
# experiment is in docs/settings.md; plans do not depend on them.
COARSE_STATE, COARSE_COST, FEW_PARTS = 1e-2, 5e-2, 4
# Weights of Simpson's rule at the ends of so many parts.
SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12
# Share of the cost from which its change is told to be one to first order: an oscillator in steps
# of 2 rad, with Gauss points, costs 64 % more than its plan, and 39 % are told.
ROUGH = 0.25
NO_COST = 1e-12  # what solvers leave of a cost whose least is zero
DRAWN_PARTS = 12  # of a step in a figure
WITHIN = 0.998  # share of a step of phases whose times belong to its first node


def transcription_error(
    found: OptimalSolution | PhasedSolution, tolerance: float = 1e-8
) -> TranscriptionError:
    """See `OptimalSolution.transcription_error` and that of `PhasedSolution`."""
    if isinstance(found, PhasedSolution):
        return _of_parts(found, tolerance)
    stated, solution = found, as_solved(found)
    error = _of_parts(solution, tolerance)
    if stated is solution:
        return error
    states, held = error.states[:, : stated.problem.system.n_errors], error.inputs_of_steps
    varies = stated.problem.hold == AT_POINTS
    held = 0.0 * held if varies else RATES_SAVE * held
    worst, saved = _worst(stated.problem.system, found.t, states), None if varies else held.sum()
    text = _sentence(worst, error.cost_change, saved, solution, error.violations)
    return replace(error, states=states, inputs_of_steps=held, text=text)


def _of_parts(found: OptimalSolution | PhasedSolution, tolerance: float) -> TranscriptionError:
    """Errors of all parts of a plan, one after the other."""
    if flat_of(found)._setting is None:
        raise ValueError(
            "the solution was read without what it was solved for: ask the one that solve() returns"
        )
    tolerance = float(check_shape("tolerance", tolerance, ()))
    parts = parts_of(found, is_whole=True)
    errors = [_of_part(part, found, tolerance) for part in parts]
    if isinstance(found, OptimalSolution):
        return errors[0]
    columns = max((one.states.shape[1] for one in errors), default=0)
    states = [np.pad(one.states, ((0, 0), (0, columns - one.states.shape[1]))) for one in errors]
    of_steps, held, beyond = (
        np.concatenate([getattr(one, name) for one in errors])
        for name in ("cost_of_steps", "inputs_of_steps", "violations_of_steps")
    )
    violations = tuple(
        violation._replace(name=f"{violation.name} of {part.name}") if len(parts) > 1 else violation
        for part, one in zip(parts, errors, strict=True)
        for violation in one.violations
    )
    worst = [
        _worst(part.system, part.nodes.t, one.states)
        for part, one in zip(parts, errors, strict=True)
    ]
    text = _sentence(
        max(worst, key=lambda one: one[0]), of_steps.sum(), held.sum(), found, violations
    )
    by_name = {part.name: one for part, one in zip(parts, errors, strict=True)}
    return TranscriptionError(
        np.concatenate(states), of_steps, held, violations, beyond, found.cost, text, by_name
    )


def _of_part(
    part: PlanPart, found: OptimalSolution | PhasedSolution, tolerance: float
) -> TranscriptionError:
    """Errors of the steps of a part."""
    problem, nodes, N = part.problem, part.nodes, part.problem.horizon
    system = problem.system
    if problem.may_change is not None:
        problem = problem.with_arguments(blocks=None)
        part = part._replace(problem=problem)
    once = Transcription(problem)
    stage = once._stages("stage", nodes, part.setting)
    states, of_steps, held = np.zeros((N, system.n_errors)), np.zeros(N), np.zeros(N)
    violations, beyond = (), np.zeros(N)
    if not system.is_discrete:
        between = Between(part)
        ends, costs = between.integrated(tolerance)
        off = np.asarray(system.state.minus(ends, nodes.x[1:]))
        states = np.asarray(system.error(ends, nodes.x[1:]))
        of_steps = costs - stage.cost + part.cost_of(off)
        held = SAVED_BY[part.kind] * _saved(part, stage, once)
        motion = between.sampled()
        violations, beyond = between.violations(motion)
        end = once._end("terminal_values", nodes, part.setting)
        rows = np.concatenate([stage.rows, end.rows[None]])
        of_steps += between.soft_costs(once, rows, motion)
    states = states[:, : part.errors]
    worst = _worst(system, nodes.t, states)
    text = _sentence(worst, of_steps.sum(), held.sum(), found, violations)
    return TranscriptionError(states, of_steps, held, violations, beyond, found.cost, text)


def coarseness(
    solver: Any, found: OptimalSolution | PhasedSolution, *, of_motion: bool = False
) -> str:
    """What a plan's message says of coarse steps, from parts of them; empty if they are fine.

    Or what of it is no matter of accuracy: only `of_motion`, states and bounds, that are far off.
    """
    flat, once = flat_of(found), getattr(solver, "transcription", None)
    if not found.is_success or once is None or once.problem is not flat.problem:
        return ""
    if flat._setting is None:
        return ""
    parts = parts_of(found)
    if any(part.system.is_discrete for part in parts):
        return ""
    at = np.repeat(flat.x[None, :-1], FEW_PARTS + 1, axis=0)
    told, by_states, by_integrals = [], 0.0, 0.0
    for part in parts:
        between = Between(part)
        motion = list(between.motion(FEW_PARTS))
        minus = part.system.state.function("minus").function
        (off,) = mapped(minus, motion[-1][1], part.nodes.x[1:])
        by_states += float(part.cost_of(off).sum())
        errors = off @ part.system.error_selection.T
        told += _between_told(between, motion, errors, OFF if of_motion else COARSE_STATE)
        # The node where a phase begins has the state before the jump.
        jumps = int(part.is_after_jump)
        for own, (_, x) in zip(at, motion, strict=True):
            own[part.steps][jumps:, part.motion] = x[jumps:]
    if of_motion:
        return _coarse(told, 0.0, found.cost)
    if _counts_first_nodes(found):
        by_integrals = _change_of_integrals(once, found, at)
    change = by_states + by_integrals
    if abs(change) <= COARSE_COST * abs(found.cost):  # one may take away what the other adds
        change = max(by_states, by_integrals, key=abs)
    return _other_branch(parts) + _coarse(told, change, found.cost)


def _other_branch(parts: Sequence[PlanPart]) -> str:
    """What a plan's message says of algebraic states that change their branch."""
    for part in parts:
        t, x, u = part.nodes
        held = np.concatenate([u, u[-1:]])[: len(t)]
        system, p = part.system, part.setting.p
        if told := system.other_branch(t, x, held, p[: system.n_parameters]):
            return f"; {told}"
    return ""


def _counts_first_nodes(found: OptimalSolution | PhasedSolution) -> bool:
    """Whether integrals take the values at first nodes, and so would gain by those in between."""
    problem = found.problem
    if isinstance(found, OptimalSolution):
        return problem.quadrature == "left"
    terms = [one for phase in problem.phases for one in (*phase.costs, *phase.residuals)]
    return problem.quadrature == "left" and all(one.at in ALONG for one in terms)


def _change_of_integrals(
    once: Any, found: OptimalSolution | PhasedSolution, at: np.ndarray
) -> float:
    """Change of the cost along the horizon by Simpson's rule over the parts of the steps."""
    flat, is_phased = flat_of(found), isinstance(found, PhasedSolution)
    setting, values, steps = flat._setting, once._functions.stage_values, flat.problem.steps
    weights = once.path_weights - (0.0 if is_phased else once.node_weights)
    length = WITHIN if is_phased else steps
    given = setting.x_ref[:-1], setting.u_ref[:-1], setting.p, weights, steps
    sums = [
        mapped(values.function, flat.t[:-1] + share * length, x, flat.u, x, *given)[0].sum()
        for share, x in zip(np.linspace(0.0, 1.0, len(at)), at, strict=True)
    ]
    return float(SIMPSON @ sums - sums[0])


def _between_told(
    between: Between, motion: list[tuple[np.ndarray, np.ndarray]], off: np.ndarray, least: float
) -> list[str]:
    """What is coarse of states and bounds, by more than a least share."""
    system, x = between.problem.system, between.nodes.x
    span = np.abs(_errors(system, x, x[0])).max(axis=0)
    share = np.abs(off) / np.maximum(span, 1e-3 * max(float(span.max()), 1e-12))
    violations, beyond = between.violations(motion)
    told = []
    if not share.max(initial=0.0) <= least:
        k, i = np.unravel_index(share.argmax(), share.shape)
        told.append(
            f"states are off by {_told_state(system, between.nodes.t, off, int(k), int(i))}"
        )
    return told + [str(one) for one in violations[:1] if beyond.max() > least]


def _coarse(told: list[str], change: float, cost: float) -> str:
    """See `coarseness`."""
    # Of no cost there is no share.
    if not np.isfinite(change):
        told = ["the cost is not finite between the nodes", *told]
    elif abs(cost) > NO_COST and (share := abs(change / cost)) > COARSE_COST:
        rough = " to first order" if share > ROUGH else ""
        told = [f"the cost would change by {change:.2g}, {share:.0%}{rough}", *told]
    if not told:
        return ""
    return (
        f"; coarse steps: {', '.join(told)}; solve(…, refine=1e-3) puts nodes where they are "
        "needed, transcription_error() tells more"
    )


def motion_between(
    found: OptimalSolution | PhasedSolution, used: Sequence[str] = ("",)
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool] | None:
    """Times, states and references within each step, and whether straight lines visibly are others.

    Of phases, those that are `used`, on one group. A step that ends off the next node counts, too.
    """
    solved = as_solved(found)  # whose states may end with the inputs
    if flat_of(solved)._setting is None:
        return None
    parts = [part for part in parts_of(solved) if part.name in used]
    if any(part.system.is_discrete for part in parts):
        return None
    pieces, is_seen = [], False
    for part in parts:
        motion = list(Between(part).motion(DRAWN_PARTS))
        x, own = part.nodes.x, part.errors or found.problem.system.n_errors
        middle, end = (_errors(part.system, at, x[:-1]) for at in
                       (motion[DRAWN_PARTS // 2][1], motion[-1][1]))  # fmt: skip
        off = _errors(part.system, motion[-1][1], x[1:])
        span = COARSE_STATE * np.abs(_errors(part.system, x, x[0])).max(axis=0)
        is_seen |= any(bool((np.abs(one) > span)[:, :own].any()) for one in (off, middle - end / 2))
        reference = np.repeat(part.setting.x_ref[:-1, None], DRAWN_PARTS + 1, axis=1)
        pieces.append((*(np.stack(each, axis=1) for each in zip(*motion, strict=True)), reference))
    is_phased = isinstance(found, PhasedSolution)
    drawn = (found.parts[parts[0].name] if is_phased else found.trajectory).group.nq
    t, states, references = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return t, states[..., :drawn], references[..., :drawn], is_seen


def _errors(system: System, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`System.error` of many states, in one call of CasADi."""
    return mapped(system.state.function("minus").function, x, other)[0] @ system.error_selection.T


def _saved(part: PlanPart, stage: Any, once: Transcription) -> np.ndarray:
    """What inputs save that vary within each step.

    Linear inputs of slope s against a held one: the gradient is ``H s (τ − ½)`` at the share τ of
    the step, with the Hessian H of the Lagrangian by the controls, so the saving is ``sᵀ H s /
    24``. Between limits, if H does not keep the control from them: the switching function has the
    slope σ, the control is at the upper limit for a share a of the step, and switching saves ``|σ|
    (upper − lower) dt² a (1 − a) / 2``.
    """
    problem, nodes, setting, prices = part.problem, part.nodes, part.setting, part.prices
    system, n, steps = problem.system, problem.system.n_errors, problem.steps
    controls = system.input_index("control").tolist()
    u, middle = nodes.u[:, controls], (nodes.t[1:] + nodes.t[:-1]) / 2
    gradient, bend = _of_hamiltonian(problem, prices.shape[1])
    own = np.tile(setting.p[: system.n_parameters][:, None], (1, len(u)))
    ends = nodes.t[None, 1:], nodes.x[1:].T, nodes.u.T, own, prices.T
    count, N = len(controls), len(u)
    curved = np.asarray(bend.map(N)(*ends)).reshape(count, N, count)
    H = _bend_of_costs(once, part) + np.moveaxis(curved, 1, 0) * steps[:, None, None]
    slopes = np.gradient(u, middle, axis=0) * steps[:, None] if N > 1 else np.zeros_like(u)
    saved = np.einsum("ki,kij,kj->k", slopes, H, slopes) / 24
    if prices.shape[1] != n:  # multipliers before a step are known in its error coordinates
        return saved
    before = np.einsum("kji,kj->ki", stage.A, prices) + stage.g[:, :n]
    starts = nodes.t[None, :-1], nodes.x[:-1].T, nodes.u.T, own
    at_end, at_start = (np.asarray(gradient.map(N)(*at)).T for at in (ends, (*starts, before.T)))
    sigma = np.abs(at_end - at_start)
    # Along a limit of states multipliers fall back at each node: the bound has them from there to
    # there, and keeps inputs from switching. Steps share what falls at a node by their lengths.
    fallen = np.zeros_like(prices)
    fallen[1:] = (prices[:-1] - before[1:]) / (steps[:-1] + steps[1:])[:, None]
    each = np.asarray(gradient.map(N)(*starts, fallen.T)).T
    after = np.append(each[1:], np.zeros((1, each.shape[1])), axis=0)
    held = at_end - at_start - (each + after) * steps[:, None]
    sigma = np.minimum(sigma, np.abs(held)) / steps[:, None]
    low, high = setting.box[:2]
    width = high - low
    with np.errstate(invalid="ignore"):  # of controls without limits
        upper = np.clip((u - low) / width, 0.0, 1.0)
        bends = np.abs(np.einsum("kii->ki", H)) * width / steps[:, None]
        switches = np.isfinite(width) & (sigma * steps[:, None] > bends)
        gain = sigma * width * steps[:, None] ** 2 * upper * (1 - upper) / 2
    return saved + np.where(switches, gain, 0.0).sum(axis=1)


def _bend_of_costs(once: Transcription, part: PlanPart) -> np.ndarray:
    """Hessians of the costs of all steps by their controls (N, m, m), of every kind of term."""
    nodes, setting = part.nodes, part.setting
    values: Any = once._functions.stage_values.function
    at: Any = values.sx_in() if values.is_a("SXFunction") else values.mx_in()
    controls = part.problem.system.input_index("control").tolist()
    bend = ca.hessian(ca.sum1(values.call(at)[0]), at[2])[0][controls, controls]
    given = (
        nodes.t[:-1], nodes.x[:-1], nodes.u, nodes.x[1:], setting.x_ref[:-1], setting.u_ref[:-1],
        setting.p, once.path_weights, part.problem.steps,
    )  # fmt: skip
    found = ca.Function("bend", at, [ca.densify(ca.vec(bend))])
    return mapped(found, *given)[0].reshape(-1, *2 * (len(controls),))


def _of_hamiltonian(problem: OptimalControlProblem, width: int) -> tuple[ca.Function, ca.Function]:
    """Gradient and Hessian of ``λᵀ f`` by the controls, of multipliers with so many entries."""
    system, sym = problem.system, problem.system.symbol.sym
    t, x, u = sym("t"), sym("x", system.state.nq), sym("u", system.n_inputs)
    given = t, x, u, sym("p", system.n_parameters), sym("price", width)
    change = system.f.function(*given[:4])
    if width != system.state.dim:
        change = ca.DM(system.error_selection) @ change
    bend, gradient = ca.hessian(ca.dot(given[4], change), u)
    controls = system.input_index("control").tolist()
    return (
        ca.Function("gradient", given, [ca.densify(gradient[controls])]),
        ca.Function("bend", given, [ca.densify(bend[controls, controls])]),
    )


def _worst(system: System, t: np.ndarray, states: np.ndarray) -> tuple[float, str]:
    """The largest error of a state, and where it is; infinite where a motion is not finite."""
    if not np.isfinite(states).all():
        return np.inf, ""
    k, i = np.unravel_index(np.abs(states).argmax(), states.shape)
    return abs(float(states[k, i])), _told_state(system, t, states, int(k), int(i))


def _told_state(system: System, t: np.ndarray, states: np.ndarray, k: int, i: int) -> str:
    error = f"{abs(float(states[k, i])):.1e} {system.error_units[i]}".rstrip()
    return f"{error} ({system.error_names[i]} at t = {t[k + 1]:g} s)"


def _sentence(
    worst: tuple[float, str], change: float, held: float | None,
    found: OptimalSolution | PhasedSolution, violations: Sequence[Violation],
) -> str:  # fmt: skip
    """Errors in words; those of the cost follow from multipliers, which only an optimum has."""
    if np.isinf(worst[0]):
        return "the motion from a node is not finite: shorten dt"
    text = f"states off by {worst[1]}"
    if not found.is_success:
        text += ", change of the cost unknown: the plan is not optimal"
    elif not np.isfinite(change):
        text += ", change of the cost unknown: between the nodes it is not finite"
    else:
        share = f" ({abs(change / found.cost):.1e} of it)" if found.cost else ""
        text += f", cost would change by {change:.1e}{share}"
        text += "" if held is None else f"; inputs that vary within steps would save {held:.1e}"
    return text + "".join(f"; between the nodes {one}" for one in violations[:MOST_NAMED])


DERIVED["transcription_error"] = transcription_error
DERIVED["coarseness"] = coarseness
DERIVED["motion_between"] = motion_between
