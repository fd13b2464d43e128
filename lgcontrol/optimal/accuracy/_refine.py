"""Refinement: a plan is solved again with nodes where its steps are off, until they are not."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ...codegen._internal import Progress, check_shape
from ...systems._internal import step_residuals
from .._bounds import place_text
from .._outcome import Ends, TranscriptionError
from .._problem import OptimalControlProblem
from .._solution import DERIVED, OptimalSolution
from ..phases._phase import Phase
from ..phases._phased_solution import PhasedSolution
from ..phases._phases import PhasedProblem
from ._parts import as_solved, parts_of

# Grids: rounds of a refinement, nodes of the last one, growth in a round, and the share of the
# mean density that a step has at least.
MOST_ROUNDS, MOST_NODES, MOST_GROWTH, LEAST_DENSITY = 11, 4000, 4.0, 0.1
MOST_FAILURES = 2  # solves one after the other that end without a plan
# Steps in place of one that does not solve its equations: the others are not at fault.
MORE_OF_MISSED = 8.0
# Share of the error allowed from which inputs that are held are told to be what needs the nodes.
MOST_OF = 0.25
# A grid is made for this share of the error that is allowed.
AIM = 0.5


def refined(
    problem: OptimalControlProblem | PhasedProblem, x0: Any, tolerance: float,
    options: dict[str, Any],
) -> OptimalSolution | PhasedSolution:  # fmt: skip
    """See ``refine`` of `OptimalControlProblem.solve` and of `PhasedProblem.solve`."""
    is_phased = isinstance(problem, PhasedProblem)
    for stated in problem.phases if is_phased else (problem,):
        tolerance = _checked(stated, tolerance)
    finer: Any = problem
    if problem.quadrature == "left":
        finer = (
            problem.with_phases(problem.phases, quadrature="gauss")
            if is_phased
            else problem.with_arguments(quadrature="gauss")
        )
    ends, progress = Ends(options), Progress(f"refinement to {tolerance:g}")
    given: dict[str, Any] = options
    began, limit = perf_counter(), options.get("time_limit", np.inf)
    rounds = failures = 0
    is_late, ended = False, began
    best: Any = None  # the last plan, and its error
    while True:
        found, rounds = finer._solved(x0, **given), rounds + 1
        steps = sum(phase.steps for phase in finer.phases) if is_phased else finer.horizon
        missed, is_met, error = np.zeros(steps, bool), False, None
        off = beyond = np.ones(steps)
        if found.is_success:
            failures, error = 0, found.transcription_error()
            off, beyond, best = _off(found, error), error.violations_of_steps, (found, error)
            is_met = bool(off.sum() <= tolerance and beyond.max(initial=0.0) <= tolerance)
        else:
            missed = _missed(found)
            failures += not missed.any()
        before, ended = ended, perf_counter()
        is_late = ended - began + (ended - before) >= limit  # the next round takes longer
        is_last = len(off) >= MOST_NODES or rounds >= MOST_ROUNDS or failures > MOST_FAILURES
        if is_met or ends.is_asked or is_late or is_last:
            break
        text = f"round {rounds} of {MOST_ROUNDS} at most, {steps} steps"
        progress.tell(lambda text=text: text)
        wanted = _wanted(off, beyond, tolerance, failures)
        if missed.any():
            wanted = np.where(missed, MORE_OF_MISSED, 1.0)
        finer = (_finer_phases if is_phased else _finer_problem)(finer, found, wanted)
        start: dict[str, Any] = {}
        if found.is_success and is_phased:
            start = {"guess": [*found.parts.values()], "durations": [*found.durations.values()]}
        elif found.is_success:
            start = {"guess": found.trajectory}
        given = options | start
        left = limit - (perf_counter() - began)
        if np.isfinite(limit):
            given["time_limit"] = max(left, 0.0)
        if start:
            given.pop("starts", None)  # the optimum is chosen
    reached = f"refine={tolerance:g} is not reached with {steps} steps"
    if is_late:
        reached += f" in the time limit of {limit:g} s"
    if best is None:
        text = f"{found.message}; {reached}: none of {rounds} solves ends with a plan"
    else:
        last, (found, error) = found, best
        text = f"{found.message}; {error}; {f'{steps} steps' if is_met else reached}"
        if last is not found:
            text += f", whose solve ends {last.status}: this is the plan of the round before"
        if problem.hold == "zero" and error.held_inputs > MOST_OF * tolerance * abs(found.cost):
            text += '; held inputs ask for most steps, hold="first" needs fewer'
    if is_phased:
        return replace(found, solution=found.solution._with_message(text))
    return found._with_message(text)


def _missed(found: OptimalSolution | PhasedSolution) -> np.ndarray:
    """Which steps do not solve their equations."""
    missed = []
    for part in parts_of(as_solved(found)):
        nodes, problem = part.nodes, part.problem
        at = nodes.t[:-1], nodes.x[:-1], nodes.u, part.setting.p[: part.system.n_parameters]
        residual = step_residuals(part.system, problem.method, problem.substeps, *at, problem.steps)
        missed.append(~(residual <= 1))
    return np.concatenate(missed)


def _finer_problem(
    problem: OptimalControlProblem, found: OptimalSolution, wanted: np.ndarray
) -> OptimalControlProblem:
    """The problem with so many steps in place of each."""
    grid = _grid(found.problem.times(), wanted)
    return problem.with_arguments(horizon=len(grid) - 1, dt=np.diff(grid), _is_refined=True)


def _finer_phases(
    problem: PhasedProblem, found: PhasedSolution, wanted: np.ndarray
) -> PhasedProblem:
    """The same of phases; those that vanished keep their steps."""
    at, phases = 0, []
    lasting = {part.name for part in parts_of(found)}
    for phase in problem.phases:
        if phase.name in lasting:
            count = wanted[at : at + phase.steps]
            at += phase.steps
            lengths = np.diff(_even_grid(phase.nodes, count))
            phase = replace(phase, steps=len(lengths), lengths=lengths, _is_refined=True)
        phases.append(phase)
    return problem.with_phases(phases)


def _checked(stated: OptimalControlProblem | Phase, tolerance: Any) -> float:
    """The tolerance of a refinement; refuse what none can be of."""
    tolerance = float(check_shape("refine", tolerance, ()))
    if not 0 < tolerance < 1:
        raise ValueError(f"refine must be a share between 0 and 1, got {tolerance:g}: such as 1e-3")
    if stated.system.is_discrete:
        raise ValueError(
            f"refine: {stated.system.name} is discrete, its steps are exact: leave refine out"
        )
    if stated.blocks is not None:
        raise ValueError("refine moves nodes, and blocks count them: leave one of the two out")
    placed = [(f"the bound on {bound.label} holds", bound.at) for bound in stated.bounds]
    placed += [
        (f"the {term._label} counts", term.at) for term in (*stated.residuals, *stated.costs)
    ]
    for text, at in placed:
        if isinstance(at, range):
            raise ValueError(
                f"refine moves nodes, and {text} at {place_text(at)}: state it along the horizon, "
                'at="start", at="terminal", or as the end of a Phase'
            )
    for bound in stated.bounds:
        if bound.soft is not None and bound.at in ("start", "terminal"):
            raise ValueError(
                f"refine changes lengths of steps, and the soft bound on {bound.label} at "
                f"{bound.at!r} counts one: state a Residual of the excess, at={bound.at!r}"
            )
    weights: list[tuple[str, Any, int]] = [("Q", stated.Q, 2), ("R", stated.R, 2)]
    for terms, most in ((stated.residuals, 2), (stated.costs, 0)):
        weights += [(f"weight of {one._label}", one.weight, most) for one in terms]
    for name, weight, most in weights:
        if np.ndim(weight) > most:
            raise ValueError(
                f"refine moves nodes, and {name} has an entry for each step: multiply the function "
                "of a Residual or a Cost by a function of t instead"
            )
    return tolerance


def _off(found: OptimalSolution | PhasedSolution, error: TranscriptionError) -> np.ndarray:
    """Shares of the cost, and of the range of the states, by which each step is off."""
    if isinstance(found, OptimalSolution):
        parts: list[Any] = [(found.problem, found.trajectory, error)]
    else:
        parts = [
            (phase, found.parts[phase.name], error.parts[phase.name])
            for phase in found.problem.phases
            if phase.name in error.parts
        ]
    size, shares = max(abs(found.cost), 1e-12), []
    for stated, motion, one in parts:
        own = (np.abs(one.cost_of_steps) + np.abs(one.inputs_of_steps)) / size
        span = np.abs(stated.system.error(motion.x, motion.x[0])).max(axis=0)
        states = np.abs(one.states) / np.maximum(span, 1e-3 * max(span.max(), 1e-12))
        shares.append(np.nan_to_num(own + states.max(axis=1), nan=1.0, posinf=1.0))
    return np.concatenate(shares)


def _wanted(off: np.ndarray, beyond: np.ndarray, tolerance: float, failures: int) -> np.ndarray:
    """How many steps are wanted in place of each.

    At equal shares of the cube root of the error, whose sum falls with the square of their number.
    Violations within steps fall with that, too; those next to them get as many. The errors of what
    is no plan tell nothing: twice as many everywhere.
    """
    if failures:
        return np.full(len(off), 2.0)
    root = np.cbrt(np.minimum(off, 1.0))
    count = root * np.sqrt(root.sum() / (AIM * tolerance))
    around = np.pad(np.minimum(beyond, 1.0), 1)
    near = np.maximum(around[1:-1], np.maximum(around[:-2], around[2:]))
    count = np.maximum(count, np.sqrt(near / (AIM * tolerance)))
    count = np.maximum(count, LEAST_DENSITY * count.mean())
    most = min(MOST_GROWTH * len(off), MOST_NODES)
    total = count.sum()
    return count * np.clip(total, 0.5 * len(off), most) / total


def _grid(t: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Nodes, so many in each step."""
    reached = np.concatenate([[0.0], np.cumsum(count)])
    return np.interp(np.linspace(0.0, reached[-1], int(np.ceil(reached[-1])) + 1), reached, t)


def _even_grid(t: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The same with few lengths of steps: densities are powers of the root of two."""
    level = np.ceil(2 * np.log2(count / np.diff(t))) / 2
    first = np.flatnonzero(np.append(True, np.diff(level) != 0))
    ends = np.append(t[first], t[-1])
    steps = np.ceil(2.0 ** level[first] * np.diff(ends)).astype(int)
    parts = [
        np.linspace(low, high, n, endpoint=False)
        for low, high, n in zip(ends[:-1], ends[1:], steps, strict=True)
    ]
    return np.append(np.concatenate(parts), t[-1])


DERIVED["refined"] = refined
