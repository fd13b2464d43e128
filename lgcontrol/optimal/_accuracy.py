"""Error of a transcription: what a plan misses between its nodes, and grids that miss less."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen._internal import check_shape
from ..systems import System, Trajectory, choose_method
from ._bounds import ALONG, place_text
from ._outcome import SolveStatus, TranscriptionError, Violation
from ._phases import Phase, PhasedProblem, PhasedSolution
from ._plan import SCALE
from ._problem import OptimalControlProblem
from ._rows import rows_along
from ._solution import DERIVED, OptimalSolution
from ._statement import AT_POINTS
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
MOST_FAILURES = 2  # solves one after the other that end without a plan
# Messages tell of steps whose parts end this share of the range of a state elsewhere, violate a
# bound by this share of the range of the bounded quantity, or change the cost by that share.
COARSE_STATE, COARSE_COST, FEW_PARTS = 1e-2, 5e-2, 4
DRAWN_PARTS = 12  # of a step in a figure
HALF_NODE = 0.499  # a time in the middle of a step of phases that belongs to its first node
# A grid is made for this share of the error that is allowed.
AIM = 0.5


def transcription_error(solution: OptimalSolution, tolerance: float = 1e-8) -> TranscriptionError:
    """See `OptimalSolution.transcription_error`."""
    stated = solution
    if stated.problem.hold != "zero":  # controls are rates, and the state ends with the inputs
        solution = stated._inner or stated
    problem, setting = solution.problem, solution._setting
    _check_known(setting)
    if problem.may_change is not None:
        problem = problem.with_arguments(blocks=None)
    nodes = Nodes(solution.t, solution.x, solution.u)
    prices = _prices(solution)[:, : problem.system.n_errors]
    error = _error_at(problem, nodes, setting, prices, solution.cost, tolerance)
    if stated is solution:
        return error
    states, held = error.states[:, : stated.problem.system.n_errors], error.inputs_of_steps
    varies = stated.problem.hold == AT_POINTS
    held = 0.0 * held if varies else RATES_SAVE * held
    worst, saved = _worst(stated.problem.system, nodes.t, states), None if varies else held.sum()
    text = _sentence(worst, error.cost_change, saved, solution.cost, error.violations)
    return replace(error, states=states, inputs_of_steps=held, text=text)


def coarseness(solver: Any, found: OptimalSolution) -> str:
    """What a plan's message says of coarse steps, from parts of them; empty if they are fine."""
    once, problem, setting = getattr(solver, "transcription", None), found.problem, found._setting
    if not found.is_success or once is None or once.problem is not problem or setting is None:
        return ""
    if problem.system.is_discrete:
        return ""
    nodes = Nodes(found.t, found.x, found.u)
    between = _Between(problem, nodes, setting)
    motion = list(between.motion(FEW_PARTS))
    off, change = _errors(problem.system, motion[-1][1], nodes.x[1:]), 0.0
    if problem.quadrature == "left":
        given = setting.x_ref[:-1], setting.u_ref[:-1], setting.p
        weights = once.path_weights - once.node_weights
        values = once._functions.stage_values
        start, middle = (
            _mapped(values, t, x, nodes.u, x, *given, weights, problem.steps)[0].sum()
            for t, x in (motion[0], motion[FEW_PARTS // 2])
        )
        prices = _prices(found)[:, : problem.system.n_errors]
        change = float(middle - start + (prices * off).sum())
    return _coarse(_between_told(between, motion, off), change, found.cost)


def coarseness_of_phases(solver: Any, found: PhasedSolution) -> str:
    """The same of a plan of phases."""
    phased, flat = found.problem, found.solution
    once = getattr(solver, "transcription", None)
    if not found.is_success or once is None or once.problem is not flat.problem:
        return ""
    prices, told, change = _prices(flat), [], 0.0
    x, middle = flat.x, flat.x.copy()
    for i, (phase, part) in enumerate(zip(phased.phases, found.parts.values(), strict=True)):
        first, last = phased.starts[i], phased.starts[i + 1]
        if len(part) != phase.steps + 1:  # it vanished
            continue
        nodes, point = Nodes(part.t, part.x, part.input_at_nodes[:-1]), phased.point_of(i)
        setting = flat._setting._replace(x_ref=np.tile(point.x, (len(part), 1)))
        between = _Between(phased.stretch(i, np.diff(part.t)), nodes, setting)
        motion = list(between.motion(FEW_PARTS))
        off = _mapped(phase.system.state.function("minus"), motion[-1][1], part.x[1:])[0]
        change += float((prices[first:last, phased.tangent_of(i)] * off).sum())
        told += _between_told(between, motion, off @ phase.system.error_selection.T)
        # The node where a phase begins has the state before the jump.
        jumps = int(i > 0 and phased.phases[i - 1].jump is not None)
        middle[first + jumps : last, phased.motion_of(i)] = motion[FEW_PARTS // 2][1][jumps:]
    terms = [one for phase in phased.phases for one in (*phase.costs, *phase.residuals)]
    if phased.quadrature == "left" and all(one.at in ALONG for one in terms):
        setting, values = flat._setting, once._functions.stage_values
        given = setting.x_ref[:-1], setting.u_ref[:-1], setting.p, once.path_weights, np.ones(1)
        start, half = (
            _mapped(values, flat.t[:-1] + share, states[:-1], flat.u, states[:-1], *given)[0].sum()
            for share, states in ((0.0, x), (HALF_NODE, middle))
        )
        change += float(half - start)
    return _coarse(told, change, found.cost)


def _between_told(
    between: _Between, motion: list[tuple[np.ndarray, np.ndarray]], off: np.ndarray
) -> list[str]:
    """What is coarse of states and bounds."""
    system, x = between.problem.system, between.nodes.x
    span = np.abs(_errors(system, x, x[0])).max(axis=0)
    share = np.abs(off) / np.maximum(span, 1e-3 * max(float(span.max()), 1e-12))
    violations, beyond = between.violations(motion)
    told = []
    if not share.max(initial=0.0) <= COARSE_STATE:
        k, i = np.unravel_index(share.argmax(), share.shape)
        told.append(
            f"states are off by {_told_state(system, between.nodes.t, off, int(k), int(i))}"
        )
    return told + [str(one) for one in violations[:1] if beyond.max() > COARSE_STATE]


def _coarse(told: list[str], change: float, cost: float) -> str:
    """See `coarseness`."""
    if cost and abs(change) > COARSE_COST * abs(cost):  # of no cost there is no share
        told = [f"the cost would change by {change:.2g}, {abs(change / cost):.0%}", *told]
    if not told:
        return ""
    return (
        f"; coarse steps: {', '.join(told)}; solve(…, refine=1e-3) puts nodes where they are "
        "needed, transcription_error() tells more"
    )


def motion_between(
    found: OptimalSolution,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Times, states and references within each step, if a step ends visibly off the next node."""
    problem, setting = found.problem, found._setting
    if setting is None or problem.system.is_discrete or not problem.is_plain:
        return None
    system, nodes = problem.system, Nodes(found.t, found.x, found.u)
    motion = list(_Between(problem, nodes, setting).motion(DRAWN_PARTS))
    off, span = _errors(system, motion[-1][1], nodes.x[1:]), _errors(system, found.x, found.x[0])
    if not (np.abs(off).max(axis=0) > COARSE_STATE * np.abs(span).max(axis=0)).any():
        return None
    t, x = (np.stack(each, axis=1) for each in zip(*motion, strict=True))
    return t, x, np.repeat(setting.x_ref[:-1, None], DRAWN_PARTS + 1, axis=1)


def motion_between_phases(found: PhasedSolution) -> tuple[np.ndarray, np.ndarray] | None:
    """The same of the parts of a plan of phases that share their group, without references."""
    phased, setting, pieces, is_off = found.problem, found.solution._setting, [], False
    if setting is None or found.whole is None:
        return None
    for i, (phase, part) in enumerate(zip(phased.phases, found.parts.values(), strict=True)):
        if len(part) != phase.steps + 1:  # it vanished
            continue
        nodes = Nodes(part.t, part.x, part.input_at_nodes[:-1])
        between = _Between(phased.stretch(i, np.diff(part.t)), nodes, setting)
        motion = list(between.motion(DRAWN_PARTS))
        off = _errors(phase.system, motion[-1][1], part.x[1:])
        span = _errors(phase.system, found.whole.x, found.whole.x[0])
        is_off |= bool((np.abs(off).max(axis=0) > COARSE_STATE * np.abs(span).max(axis=0)).any())
        pieces.append(tuple(np.stack(each, axis=1) for each in zip(*motion, strict=True)))
    t, x = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return (t, x) if is_off else None


def _errors(system: System, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`System.error` of many states, in one call of CasADi."""
    return _mapped(system.state.function("minus"), x, other)[0] @ system.error_selection.T


def _check_known(setting: Setting | None) -> None:
    if setting is None:
        raise ValueError(
            "the solution was read without what it was solved for: ask the one that solve() returns"
        )


def _error_at(
    problem: OptimalControlProblem, nodes: Nodes, setting: Setting, prices: np.ndarray, cost: float,
    tolerance: float,
) -> TranscriptionError:  # fmt: skip
    """Errors at nodes, with the prices (N, n) of the ends of their steps."""
    system, N = problem.system, problem.horizon
    stage = Transcription(problem)._stages("stage", nodes, setting)
    states, of_steps, held = np.zeros((N, system.n_errors)), np.zeros(N), np.zeros(N)
    violations, beyond = (), np.zeros(N)
    if not system.is_discrete:
        between = _Between(problem, nodes, setting)
        ends, costs = between.integrated(float(check_shape("tolerance", tolerance, ())))
        states = np.asarray(system.error(ends, nodes.x[1:]))
        priced = states
        if prices.shape != states.shape:  # of all tangent coordinates
            priced = np.asarray(system.state.minus(ends, nodes.x[1:]))
        of_steps = costs - stage.cost + np.einsum("ki,ki->k", prices, priced)
        held = _saved(problem, nodes, setting, prices, stage)
        violations, beyond = between.violations()
    worst = _worst(system, nodes.t, states)
    text = _sentence(worst, of_steps.sum(), held.sum(), cost, violations)
    return TranscriptionError(states, of_steps, held, violations, beyond, cost, text)


def error_of_phases(solution: PhasedSolution, tolerance: float = 1e-8) -> TranscriptionError:
    """See `PhasedSolution.transcription_error`."""
    phased, flat = solution.problem, solution.solution
    _check_known(flat._setting)
    prices, parts, worst = _prices(flat), {}, []
    for i, (name, part) in enumerate(solution.parts.items()):
        if len(part) < 2:  # it vanished
            continue
        problem = phased.alone(i, np.diff(part.t))
        nodes = Nodes(part.t, part.x, part.input_at_nodes[:-1])
        own = prices[phased.starts[i] : phased.starts[i + 1], phased.tangent_of(i)]
        setting = _setting_of(problem, flat._setting.p)
        parts[name] = _error_at(problem, nodes, setting, own, solution.cost, tolerance)
        worst.append(_worst(problem.system, part.t, parts[name].states))
    columns = max((one.states.shape[1] for one in parts.values()), default=0)
    states = [
        np.pad(one.states, ((0, 0), (0, columns - one.states.shape[1]))) for one in parts.values()
    ]
    of_steps, held, beyond = (
        np.concatenate([getattr(one, name) for one in parts.values()])
        for name in ("cost_of_steps", "inputs_of_steps", "violations_of_steps")
    )
    violations = tuple(
        violation._replace(name=f"{violation.name} of {name}") if len(parts) > 1 else violation
        for name, one in parts.items()
        for violation in one.violations
    )
    text = _sentence(
        max(worst, key=lambda one: one[0]), of_steps.sum(), held.sum(), solution.cost, violations
    )
    return TranscriptionError(
        np.concatenate(states), of_steps, held, violations, beyond, solution.cost, text, parts
    )


def _setting_of(problem: OptimalControlProblem, p: np.ndarray) -> Setting:
    """What steps of a problem are given whose reference is constant."""
    n, count, point = problem.system.n_errors, problem.horizon + 1, problem.reference
    x_ref, u_ref = (np.tile(getattr(point, name), (count, 1)) for name in ("x", "u"))
    none = np.zeros((n, n))
    return Setting(x_ref, u_ref, p, none, none, problem.input_limits.at(p))


class _Between:
    """Motion between nodes: every step from its first node, with its input held."""

    def __init__(self, problem: Any, nodes: Nodes, setting: Setting) -> None:
        self.problem, self.nodes, self.setting = problem, nodes, setting
        self.own = setting.p[: problem.system.n_parameters]
        self.step, self.parts = problem.system.step(problem.method, problem.substeps), 1

    def integrated(self, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends of all steps and their integrals, in ever more parts until they do not change."""
        problem, nodes, setting = self.problem, self.nodes, self.setting
        method = choose_method(
            problem.system, problem.dt, nodes.x[:-1], nodes.u, p=self.own, t=nodes.t[:-1]
        )
        method = method if method == "rk4" else "radau_iia5"
        self.step = problem.system.step(method, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # parts of a step are shorter
            fine = problem.with_arguments(quadrature="gauss", method=method, substeps=1, bounds=())
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
            *starts, (_, x) = self.motion(parts)
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

    def motion(self, parts: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Times and states of all steps at the ends of their parts, the first nodes included."""
        t, x, h = self.nodes.t[:-1], self.nodes.x[:-1], self.problem.steps / parts
        yield t, x
        for j in range(parts):
            (x,) = _mapped(self.step, t + j * h, x, self.nodes.u, self.own, h)
            yield t + (j + 1) * h, x

    def violations(
        self, motion: Sequence[tuple[np.ndarray, np.ndarray]] | None = None
    ) -> tuple[tuple[Violation, ...], np.ndarray]:
        """Bounds that are violated within steps by more than at their nodes, the worst first.

        And the largest violation within each step, as a share of the range of what is bounded.
        """
        problem, worst = self.problem, np.zeros(self.problem.horizon)
        if not problem._seen:
            return (), worst
        if motion is None:
            motion = list(self.motion(self.parts * -(-SAMPLES // self.parts)))
        parts, (t, x) = len(motion) - 1, map(np.array, zip(*motion, strict=True))
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
        between = given[k]
        if (given != given[0]).any():
            moved = share[:, None] * np.asarray(group.minus(given[k + 1], given[k]))
            between = np.asarray(group.plus(given[k], moved))
        points = t, x, self.nodes.u[k], self.setting.p, between
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


def _mapped(function: Any, *values: np.ndarray) -> list[np.ndarray]:
    """Results of a function of numbers and vectors for all steps, in one call of CasADi.

    What has one value for all is a vector; of what has one for each step the steps are rows.
    """
    sizes = [function.function.size1_in(i) for i in range(len(values))]
    given = [
        np.reshape(value, (-1, size) if np.size(value) != size else (1, size)).T
        for value, size in zip(values, sizes, strict=True)
    ]
    return [np.asarray(found).T for found in function.function.call(given)]


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


def _saved(
    problem: OptimalControlProblem, nodes: Nodes, setting: Setting, prices: np.ndarray, stage: Any
) -> np.ndarray:
    """What inputs save that vary within each step.

    Inputs that are linear in each step: their slope s against a held input has the gradient
    ``H s (τ − ½)`` at the share τ of the step, with the Hessian H of its Lagrangian by the
    controls, so that following it saves ``sᵀ H s / 24``. A control that changes between its limits
    within the step, if H does not keep it from them: the switching function ``∂(λᵀ f)/∂u`` has the
    slope σ, and the control is at the upper limit for a share a of the step, so that switching
    saves ``|σ| (upper − lower) dt² a (1 − a) / 2``.
    """
    system, n, steps = problem.system, problem.system.n_errors, problem.steps
    controls = system.input_index("control").tolist()
    u, middle = nodes.u[:, controls], (nodes.t[1:] + nodes.t[:-1]) / 2
    gradient, bend = _of_hamiltonian(problem, prices.shape[1])
    own = np.tile(setting.p[: system.n_parameters][:, None], (1, len(u)))
    ends = nodes.t[None, 1:], nodes.x[1:].T, nodes.u.T, own, prices.T
    count, N = len(controls), len(u)
    curved = np.asarray(bend.map(N)(*ends)).reshape(count, N, count)
    H = stage.H[:, n:, n:] + np.moveaxis(curved, 1, 0) * steps[:, None, None]
    slopes = np.gradient(u, middle, axis=0) * steps[:, None] if N > 1 else np.zeros_like(u)
    saved = np.einsum("ki,kij,kj->k", slopes, H, slopes) / 24
    if prices.shape[1] != n:  # multipliers before a step are known in its error coordinates
        return saved
    before = np.einsum("kji,kj->ki", stage.A, prices) + stage.g[:, :n]
    starts = nodes.t[None, :-1], nodes.x[:-1].T, nodes.u.T, own, before.T
    sigma = np.asarray(gradient.map(N)(*ends) - gradient.map(N)(*starts)).T / steps[:, None]
    low, high = setting.box[:2]
    width = high - low
    with np.errstate(invalid="ignore"):  # of controls without limits
        upper = np.clip((u - low) / width, 0.0, 1.0)
        bends = np.abs(np.einsum("kii->ki", H)) * width / steps[:, None]
        switches = np.isfinite(width) & (np.abs(sigma) * steps[:, None] > bends)
        gain = np.abs(sigma) * width * steps[:, None] ** 2 * upper * (1 - upper) / 2
    return saved + np.where(switches, gain, 0.0).sum(axis=1)


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
    worst: tuple[float, str], change: float, held: float | None, cost: float,
    violations: Sequence[Violation],
) -> str:  # fmt: skip
    if np.isinf(worst[0]):
        return "the motion from a node is not finite: shorten dt"
    share = f" ({abs(change / cost):.1e} of it)" if cost else ""
    return (
        f"states off by {worst[1]}, cost would change by {change:.1e}{share}"
        + ("" if held is None else f"; inputs that vary within steps would save {held:.1e}")
        + "".join(f"; between the nodes {one}" for one in violations[:MOST_NAMED])
    )


def refined(
    problem: OptimalControlProblem, x0: Any, tolerance: float, options: dict[str, Any]
) -> OptimalSolution:
    """See ``refine`` of `OptimalControlProblem.solve`."""
    tolerance = _checked(problem, tolerance)
    finer = problem
    if problem.quadrature == "left":
        finer = problem.with_arguments(quadrature="gauss")
    given: dict[str, Any] = options
    rounds = failures = 0
    while True:
        found = finer._solved(x0, **given)
        error = found.transcription_error()
        off, beyond = _off(found, error), error.violations_of_steps
        is_met = _is_met(off, beyond, tolerance)
        rounds, failures = rounds + 1, 0 if found.is_success else failures + 1
        if is_met or _is_last(rounds, failures, found, off):
            break
        grid = _grid(found.problem.times(), _wanted(off, beyond, tolerance, failures))
        finer = finer.with_arguments(horizon=len(grid) - 1, dt=np.diff(grid))
        start: Any = found.trajectory
        given = options | ({"guess": start} if found.is_success else {})
    return found._with_message(_told(found, error, tolerance, is_met))


def refined_phases(
    problem: PhasedProblem, x0: Any, tolerance: float, options: dict[str, Any]
) -> PhasedSolution:
    """See ``refine`` of `PhasedProblem.solve`."""
    for phase in problem.phases:
        tolerance = _checked(phase, tolerance)
        for bound in phase.bounds:
            if bound.soft is not None:
                raise ValueError(
                    f"refine: the soft bound on {bound.label} of phase {phase.name!r} counts at "
                    "nodes, whose number changes: state it as a Cost, or as a hard bound"
                )
    finer = problem.with_phases(problem.phases, quadrature="gauss")
    given: dict[str, Any] = options
    rounds = failures = 0
    while True:
        found = finer._solved(x0, **given)
        error = found.transcription_error()
        off = np.concatenate(
            [
                _off_of(phase.system, found.parts[phase.name], error.parts[phase.name], found.cost)
                for phase in finer.phases
                if phase.name in error.parts
            ]
        )
        beyond = error.violations_of_steps
        is_met = _is_met(off, beyond, tolerance)
        rounds, failures = rounds + 1, 0 if found.is_success else failures + 1
        if is_met or _is_last(rounds, failures, found, off):
            break
        wanted, at, phases = _wanted(off, beyond, tolerance, failures), 0, []
        for phase in finer.phases:
            if phase.name in error.parts:
                count = wanted[at : at + phase.steps]
                at += phase.steps
                lengths = np.diff(_even_grid(phase.nodes, count))
                phase = replace(phase, steps=len(lengths), lengths=lengths)
            phases.append(phase)
        finer = finer.with_phases(phases)
        given = options
        if found.is_success:
            guess: Any = [*found.parts.values()]
            times: Any = [*found.durations.values()]
            given = options | {"guess": guess, "durations": times}
    message = _told(found, error, tolerance, is_met)
    return replace(found, solution=found.solution._with_message(message))


def _checked(stated: OptimalControlProblem | Phase, tolerance: Any) -> float:
    """The tolerance of a refinement; refuse what none can be of."""
    tolerance = float(check_shape("refine", tolerance, ()))
    if not 0 < tolerance < 1:
        raise ValueError(f"refine must be a share between 0 and 1, got {tolerance:g}: such as 1e-3")
    if stated.system.is_discrete:
        raise ValueError(
            f"refine: {stated.system.name} is discrete, its steps are exact: leave refine out"
        )
    placed = [(f"the bound on {bound.label} holds", bound.at) for bound in stated.bounds]
    placed += [
        (f"the {type(term).__name__.lower()} {term.name!r} counts", term.at)
        for term in (*stated.residuals, *stated.costs)
    ]
    for text, at in placed:
        if isinstance(at, range):
            raise ValueError(
                f"refine moves nodes, and {text} at {place_text(at)}: state it along the horizon, "
                'at="start", at="terminal", or as the end of a Phase'
            )
    weights: list[tuple[str, Any, int]] = [("Q", stated.Q, 2), ("R", stated.R, 2)]
    weights += [(f"weight of residual {one.name!r}", one.weight, 2) for one in stated.residuals]
    weights += [(f"weight of cost {one.name!r}", one.weight, 0) for one in stated.costs]
    for name, weight, most in weights:
        if np.ndim(weight) > most:
            raise ValueError(
                f"refine moves nodes, and {name} has an entry for each step: multiply the function "
                "of a Residual or a Cost by a function of t instead"
            )
    return tolerance


def _told(
    found: OptimalSolution | PhasedSolution, error: TranscriptionError, tolerance: float,
    is_met: bool,
) -> str:  # fmt: skip
    """The message of a refined plan."""
    text = f"{found.message}; {error}"
    if not is_met:
        steps = len(error.cost_of_steps)
        text += f"; refine={tolerance:g} is not reached with {steps} steps"
    return text


def _off(found: OptimalSolution, error: TranscriptionError) -> np.ndarray:
    """Shares of the cost, and of the range of the states, by which each step is off."""
    return _off_of(found.problem.system, found.trajectory, error, found.cost)


def _off_of(
    system: System, motion: Trajectory, error: TranscriptionError, cost: float
) -> np.ndarray:
    size = max(abs(cost), 1e-12)
    own = (np.abs(error.cost_of_steps) + np.abs(error.inputs_of_steps)) / size
    span = np.abs(system.error(motion.x, motion.x[0])).max(axis=0)
    states = np.abs(error.states) / np.maximum(span, 1e-3 * max(span.max(), 1e-12))
    return np.nan_to_num(own + states.max(axis=1), nan=1.0, posinf=1.0)


def _is_met(off: np.ndarray, beyond: np.ndarray, tolerance: float) -> bool:
    return bool(off.sum() <= tolerance and beyond.max(initial=0.0) <= tolerance)


def _is_last(
    rounds: int, failures: int, found: OptimalSolution | PhasedSolution, off: np.ndarray
) -> bool:
    """Whether no further round follows."""
    is_over = found.status is SolveStatus.STOPPED or len(off) >= MOST_NODES
    return is_over or rounds > MOST_ROUNDS or failures > MOST_FAILURES


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


DERIVED["transcription_error"] = transcription_error
DERIVED["refined"] = refined
DERIVED["coarseness"] = coarseness
DERIVED["motion_between"] = motion_between
DERIVED["motion_between_phases"] = motion_between_phases
DERIVED["coarseness_of_phases"] = coarseness_of_phases
DERIVED["transcription_error_of_phases"] = error_of_phases
DERIVED["refined_phases"] = refined_phases
