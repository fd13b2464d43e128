"""Error of a transcription: what a plan misses between its nodes, and grids that miss less."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..systems import choose_method
from ._bounds import place_text
from ._outcome import SolveStatus, TranscriptionError, Violation
from ._problem import DERIVED, OptimalControlProblem, OptimalSolution
from ._rows import rows_along
from ._transcription import Nodes, Setting, Transcription

# Steps are halved up to this number of parts until their ends do not move.
MOST_PARTS = 4096
# Bounds are looked at in at least so many parts of a step. An excess below a share of the range of
# the bounded quantity is rounding. That range is at least a share of its size.
SAMPLES, LEAST_SHARE, LEAST_RANGE = 32, 1e-6, 1e-3
MOST_NAMED = 3  # violations in a sentence
# Grids: rounds of a refinement, nodes of the last one, growth in a round, and the share of the
# mean density that a step has at least.
MOST_ROUNDS, MOST_NODES, MOST_GROWTH, LEAST_DENSITY = 10, 4000, 4.0, 0.1
# Inputs with the second derivative c are off linear ones by c² h⁵ / 720 in the square, in a step of
# length h; what `_saved` says of their rates is twenty times as much.
RATES_SAVE = 1 / 20
# A grid is made for this share of the error that is allowed.
AIM = 0.5


def transcription_error(solution: OptimalSolution, tolerance: float = 1e-8) -> TranscriptionError:
    """See `OptimalSolution.transcription_error`."""
    stated = solution
    if stated.problem.hold == "first":  # controls are rates, and the state ends with the inputs
        solution = stated._inner or stated
    problem, setting = solution.problem, solution._setting
    if problem.may_change is not None:
        problem = problem.with_arguments(blocks=None)
    if setting is None:
        raise ValueError(
            "the solution was read without what it was solved for: ask the one that solve() returns"
        )
    system, N = problem.system, problem.horizon
    nodes = Nodes(solution.t, solution.x, solution.u)
    stage = Transcription(problem)._stages("stage", nodes, setting)
    states, of_steps, held = np.zeros((N, system.n_errors)), np.zeros(N), np.zeros(N)
    violations, beyond = (), np.zeros(N)
    if not system.is_discrete:
        between = _Between(problem, nodes, setting)
        ends, costs = between.integrated(float(check_shape("tolerance", tolerance, ())))
        states = np.asarray(system.error(ends, nodes.x[1:]))
        of_steps = (
            costs
            - stage.cost
            + np.einsum("ki,ki->k", _prices(solution)[:, : system.n_errors], states)
        )
        held = _saved(problem, nodes, stage.H[:, system.n_errors :, system.n_errors :])
        violations, beyond = between.violations()
    if stated is not solution:
        states, held = states[:, : stated.problem.system.n_errors], RATES_SAVE * held
    text = _sentence(
        stated.problem, nodes.t, states, of_steps.sum(), held.sum(), solution.cost, violations
    )
    return TranscriptionError(states, of_steps, held, violations, beyond, solution.cost, text)


class _Between:
    """Motion between nodes: every step from its first node, with its input held."""

    def __init__(self, problem: OptimalControlProblem, nodes: Nodes, setting: Setting) -> None:
        self.problem, self.nodes, self.setting = problem, nodes, setting
        system, self.own = problem.system, setting.p[: problem.system.n_parameters]
        method = choose_method(
            system, problem.dt, nodes.x[:-1], nodes.u, p=self.own, t=nodes.t[:-1]
        )
        self.method = method if method == "rk4" else "radau_iia5"
        self.step, self.parts = system.step(self.method, 1), 1

    def integrated(self, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends of all steps and their integrals, in ever more parts until they do not change."""
        problem, nodes, setting = self.problem, self.nodes, self.setting
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # parts of a step are shorter
            fine = problem.with_arguments(
                quadrature="gauss", method=self.method, substeps=1, bounds=()
            )
        once = Transcription(fine)
        values, before, parts = once._functions.stage_values, None, 1
        over_steps, of_nodes = once.path_weights - once.node_weights, np.zeros(problem.horizon)
        if once.node_weights.any():
            of_nodes = values(
                nodes.t[:-1], nodes.x[:-1], nodes.u, nodes.x[:-1], setting.x_ref[:-1],
                setting.u_ref[:-1], setting.p, once.node_weights, problem.steps,
            )[0]  # fmt: skip
        while True:
            h, total = problem.steps / parts, of_nodes
            *starts, (_, x) = self._motion(parts)
            for t, start in starts:
                total = total + values(
                    t, start, nodes.u, start, setting.x_ref[:-1], setting.u_ref[:-1], setting.p,
                    over_steps, h,
                )[0]  # fmt: skip
            if before is not None:
                size = 1.0 + np.abs(nodes.x).max()
                moved = np.abs(x - before[0]).max() / size
                change = np.abs(total - before[1]).sum() / max(np.abs(total).sum(), 1e-300)
                if not (max(moved, change) > tolerance) or parts >= MOST_PARTS:
                    self.parts = parts
                    return x, total
            before, parts = (x, total), 2 * parts

    def _motion(self, parts: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Times and states of all steps at the ends of their parts, the first nodes included."""
        t, x, h = self.nodes.t[:-1], self.nodes.x[:-1], self.problem.steps / parts
        yield t, x
        for j in range(parts):
            x = self.step(t + j * h, x, self.nodes.u, self.own, h)
            yield t + (j + 1) * h, x

    def violations(self) -> tuple[tuple[Violation, ...], np.ndarray]:
        """Bounds that are violated within steps by more than at their nodes, the worst first.

        And the largest violation within each step, as a share of the range of what is bounded.
        """
        problem, worst = self.problem, np.zeros(self.problem.horizon)
        if not problem._seen:
            return (), worst
        parts = self.parts * -(-SAMPLES // self.parts)
        t, x = (np.array(each) for each in zip(*self._motion(parts), strict=True))
        steps = np.arange(problem.horizon)
        shares = np.repeat(np.arange(parts + 1) / parts, len(steps))
        every = self._rows(np.tile(steps, parts + 1), shares, t.ravel(), x.reshape(shares.size, -1))
        found: list[tuple[float, Violation]] = []
        for i, (seen, label, values, low, high) in enumerate(every):
            over = _over(values, low, high).reshape(parts + 1, -1)
            at_nodes, within = over[0], over[1:]
            if not seen.needs_input:
                at_nodes, within = (
                    np.maximum(over[0], np.append(over[0, 1:], over[-1, -1])),
                    over[1:-1],
                )
            finite = over[np.isfinite(over)]
            size = (
                max(np.ptp(finite), LEAST_RANGE * np.abs(finite).max(), 1e-300)
                if finite.size
                else 1.0
            )
            excess = within.max(axis=0)
            is_beyond = excess > np.maximum(at_nodes, 0.0) + LEAST_SHARE * size
            if not is_beyond.any():
                continue
            worst = np.maximum(worst, np.where(is_beyond, excess / size, 0.0))
            k = int(np.where(is_beyond, excess, 0.0).argmax())
            j = 1 + int(within[:, k].argmax())
            time, amount = self._peak(i, k, j, t, x, over[:, k])
            violation = Violation(
                label, time, k, amount, _side(low, high), problem.bound_unit(label)
            )
            found.append((amount / size, violation))
        found.sort(key=lambda pair: -pair[0])
        return tuple(violation for _, violation in found), worst

    def _rows(
        self, k: np.ndarray, share: np.ndarray, t: np.ndarray, x: np.ndarray
    ) -> Iterator[Any]:
        """`rows_along` at shares of steps k, references between those of the nodes."""
        problem, group, given = self.problem, self.problem.system.state, self.setting.x_ref
        moved = share[:, None] * np.asarray(group.minus(given[k + 1], given[k]))
        points = t, x, self.nodes.u[k], self.setting.p, np.asarray(group.plus(given[k], moved))
        return rows_along(problem._seen, problem.parameter_names, points)

    def _peak(
        self, i: int, k: int, j: int, t: np.ndarray, x: np.ndarray, over: np.ndarray
    ) -> tuple[float, float]:
        """Time and excess of the largest violation by row i near sample j of step k."""
        time, amount, parts = float(t[j, k]), float(over[j]), len(over) - 1
        if not (j < parts and np.isfinite(over[j - 1 : j + 2]).all()):
            return time, amount
        before, here, after = over[j - 1 : j + 2]
        bend = before - 2 * here + after
        move = 1.0 + ((before - after) / (2 * bend) if bend < 0 else 0.0)  # of samples, from j - 1
        h = self.problem.steps[k] / parts
        start = t[j - 1, k], x[j - 1, k]
        end = np.asarray(self.step(*start, self.nodes.u[k], self.own, move * h))
        there = np.array([k]), np.array([(j - 1 + move) / parts]), np.array([start[0] + move * h])
        for row, (_, _, values, low, high) in enumerate(self._rows(*there, end.reshape(1, -1))):
            found = float(_over(values, low, high)[0])
            if row == i and found > amount:
                time, amount = float(there[2][0]), found
        return time, amount


def _over(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """How far values are outside of limits, negative inside; infinite if not a number."""
    over = np.maximum(values - high, low - values)
    return np.where(np.isnan(over), np.inf, over)


def _side(low: float, high: float) -> str:
    """Which bound a violation is of, where there is only one."""
    return "lower" if np.isinf(high) else "upper" if np.isinf(low) else ""


def _prices(solution: OptimalSolution) -> np.ndarray:
    """Multipliers (N, n) of the dynamics: what an error of a step's end costs."""
    if solution._prices is not None:
        return solution._prices
    plan = solution.plan
    parts = plan.layout.places
    if "lam" not in parts or plan.number("is_elastic"):
        return np.zeros((solution.problem.horizon, solution.problem.system.n_errors))
    return plan["lam"] / plan["kept"][SCALE]


# Place of the factor of the cost among what the kernel goes on with.
SCALE = 3


def _saved(problem: OptimalControlProblem, nodes: Nodes, H: np.ndarray) -> np.ndarray:
    """What inputs linear in each step save, with the Hessian of a step by its controls.

    Their slope s against a held input has the gradient ``H s (τ − ½)`` at the share τ of the step,
    so that following it saves ``sᵀ H s / 24``.
    """
    controls = problem.system.input_index("control")
    u, middle = nodes.u[:, controls], (nodes.t[1:] + nodes.t[:-1]) / 2
    if len(u) < 2:
        return np.zeros(len(u))
    slopes = np.gradient(u, middle, axis=0) * problem.steps[:, None]
    return np.einsum("ki,kij,kj->k", slopes, H, slopes) / 24


def _sentence(
    problem: OptimalControlProblem, t: np.ndarray, states: np.ndarray, change: float, held: float,
    cost: float, violations: Sequence[Violation],
) -> str:  # fmt: skip
    if not np.isfinite(states).all():
        return "the motion from a node is not finite: shorten dt"
    k, i = np.unravel_index(np.abs(states).argmax(), states.shape)
    name, unit = problem.system.error_names[i], problem.system.error_units[i]
    share = f" ({abs(change / cost):.1e} of it)" if cost else ""
    return (
        f"states off by {abs(states[k, i]):.1e} {unit}".rstrip()
        + f" ({name} at t = {t[k + 1]:g} s), cost would change by {change:.1e}{share}; inputs that "
        f"vary within steps would save {held:.1e}"
        + "".join(f"; between the nodes {one}" for one in violations[:MOST_NAMED])
    )


def refined(
    problem: OptimalControlProblem, x0: Any, tolerance: float, options: dict[str, Any]
) -> OptimalSolution:
    """See ``refine`` of `OptimalControlProblem.solve`."""
    tolerance = float(check_shape("refine", tolerance, ()))
    if not 0 < tolerance < 1:
        raise ValueError(f"refine must be a share between 0 and 1, got {tolerance:g}: such as 1e-3")
    if problem.system.is_discrete:
        raise ValueError(
            f"refine: {problem.system.name} is discrete, its steps are exact: leave refine out"
        )
    placed = [(f"the bound on {bound.label} holds", bound.at) for bound in problem.bounds]
    placed += [
        (f"the {type(term).__name__.lower()} {term.name!r} counts", term.at)
        for term in (*problem.residuals, *problem.costs)
    ]
    for text, at in placed:
        if isinstance(at, range):
            raise ValueError(
                f"refine moves nodes, and {text} at {place_text(at)}: state it along the horizon, "
                'at="start", at="terminal", or as the end of a Phase'
            )
    weights: list[tuple[str, Any, int]] = [("Q", problem.Q, 2), ("R", problem.R, 2)]
    weights += [(f"weight of residual {one.name!r}", one.weight, 2) for one in problem.residuals]
    weights += [(f"weight of cost {one.name!r}", one.weight, 0) for one in problem.costs]
    for name, weight, most in weights:
        if np.ndim(weight) > most:
            raise ValueError(
                f"refine moves nodes, and {name} has an entry for each step: multiply the function "
                "of a Residual or a Cost by a function of t instead"
            )
    finer = problem.with_arguments(quadrature="gauss")
    found = finer.solve(x0, **options)
    for _ in range(MOST_ROUNDS):
        error = found.transcription_error()
        off, beyond = _off(found, error), error.violations_of_steps
        if _is_met(off, beyond, tolerance) or found.status is SolveStatus.STOPPED:
            break
        grid = _grid(found.t, off, beyond, tolerance)
        if grid is None:
            break
        finer = finer.with_arguments(horizon=len(grid) - 1, dt=np.diff(grid))
        guess: Any = found.trajectory if np.isfinite(found.cost) else options.get("guess")
        found = finer.solve(x0, **(options | {"guess": guess}))
    error = found.transcription_error()
    text = f"{found.message}; {error}"
    if not _is_met(_off(found, error), error.violations_of_steps, tolerance):
        text += f"; refine={tolerance:g} is not reached with {found.problem.horizon} steps"
    return found._with_message(text)


def _off(found: OptimalSolution, error: TranscriptionError) -> np.ndarray:
    """Shares of the cost, and of the range of the states, by which each step is off."""
    size = max(abs(found.cost), 1e-12)
    own = (np.abs(error.cost_of_steps) + np.abs(error.inputs_of_steps)) / size
    group = found.problem.system
    span = np.abs(group.error(found.x, found.x[0])).max(axis=0)
    states = np.abs(error.states) / np.maximum(span, 1e-3 * max(span.max(), 1e-12))
    return np.nan_to_num(own + states.max(axis=1), nan=1.0, posinf=1.0)


def _is_met(off: np.ndarray, beyond: np.ndarray, tolerance: float) -> bool:
    return bool(off.sum() <= tolerance and beyond.max(initial=0.0) <= tolerance)


def _grid(
    t: np.ndarray, off: np.ndarray, beyond: np.ndarray, tolerance: float
) -> np.ndarray | None:
    """Nodes at equal shares of the cube root of the error, whose sum falls with their square.

    Violations within steps fall with the square of their length; those next to them get as many
    nodes.
    """
    if len(off) >= MOST_NODES:
        return None
    root = np.cbrt(np.minimum(off, 1.0))
    count = root * np.sqrt(root.sum() / (AIM * tolerance))
    around = np.pad(np.minimum(beyond, 1.0), 1)
    near = np.maximum(around[1:-1], np.maximum(around[:-2], around[2:]))
    count = np.maximum(count, np.sqrt(near / (AIM * tolerance)))
    if not count.sum() > 0:
        return None
    count = np.maximum(count, LEAST_DENSITY * count.mean())
    most = min(MOST_GROWTH * len(off), MOST_NODES)
    nodes = int(np.clip(np.ceil(count.sum()), 0.5 * len(off), most))
    reached = np.concatenate([[0.0], np.cumsum(count)])
    return np.interp(np.linspace(0.0, reached[-1], nodes + 1), reached, t)


DERIVED["transcription_error"] = transcription_error
DERIVED["refined"] = refined
