"""Where a solve starts: what is known without asking, a trajectory, a controller, the last plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import ulp
from typing import Any, NamedTuple

import numpy as np

from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..systems import System, Trajectory
from ..systems._internal import changes_in_blocks
from ._bounds import ROUNDING
from ._problem import OptimalControlProblem
from ._reference import SAME_NODE, SAME_NODE_ROUNDINGS
from ._settings import DEFAULT, Settings
from ._solution import OptimalSolution
from ._transcription import Nodes, Setting, Transcription

Feedback = Callable[[int, np.ndarray], np.ndarray]
"""Controls by the number of a node and its state."""

# Starts that a word asks for, and what `start.c`, which makes the same ones, calls them.
STARTS = {"rest": 1, "screw": 16, "reference": 2, "regulators": 4, "policy": 8}
# Those of which the cheapest is taken where nobody asks. States on the way to the goal are none:
# they cost little and are no motions.
CHEAPEST = ("rest", "reference", "regulators", "policy")


def make_guess(
    transcription: Transcription, guess: Any, x0: np.ndarray, times: np.ndarray, setting: Setting,
    reference: Any, settings: Settings = DEFAULT,
) -> Nodes:  # fmt: skip
    """Nodes of a guess: None, a word, a Trajectory (or solution), a controller, or nodes."""
    problem = transcription.problem
    system = problem.system
    inputs = setting.u_ref[:-1].copy()
    if guess is None or isinstance(guess, str):
        return best_start(transcription, starts_of(system, guess), x0, times, setting, settings)
    if isinstance(guess, Nodes):
        return guess
    if isinstance(guess, OptimalSolution):
        guess = guess.trajectory
    if isinstance(guess, Trajectory):
        states = check_shape("states of the guess", guess(times).x, (len(times), system.state.nq))
        if guess.u.shape[-1]:
            controls = system.input_index("control")
            given = guess(times[:-1]).u
            if given.shape[-1] != len(controls):  # all inputs, else the controls alone
                given = check_shape("inputs of the guess", given, inputs.shape)[:, controls]
            inputs[:, controls] = given
        return Nodes(times, states.copy(), _within(problem, inputs, setting))
    if isinstance(guess, type):
        raise TypeError(f"guess is the class {guess.__name__}: make one, {guess.__name__}(…)")
    if not callable(guess):
        raise TypeError(
            "guess must be a word, a Trajectory, a solution, a controller or a tuple of these, not "
            f"{guess!r}"
        )
    try:
        inspect.signature(guess).bind(0.0, x0, None)
    except ValueError:  # no signature, as of some compiled callables
        pass
    except TypeError as error:
        raise TypeError(f"guess must take (t, x, reference): {error}") from None
    return follow(problem, guess, x0, times, inputs, setting, reference, settings)


def _within(problem: OptimalControlProblem, inputs: np.ndarray, setting: Setting) -> np.ndarray:
    """Inputs (N, n_inputs) within the bounds of the system, controls within their limits."""
    moved, controls = np.clip(inputs, *problem.system.input_bounds), problem.input_limits.controls
    moved[:, controls] = np.clip(moved[:, controls], *setting.box[:2])
    return moved


def starts_of(system: System, word: str | None) -> tuple[str, ...]:
    """Which starts a word stands for: one of `STARTS`, for "cheapest" several.

    None is the policy of a system that carries one, which knows its way better than a cost before
    the first step tells. For other systems None is "cheapest".
    """
    if word is None and system.policy is not None:
        return ("policy",)
    if word is None or word == "cheapest":
        return CHEAPEST if system.policy is not None else CHEAPEST[:-1]
    if word not in STARTS:
        raise UnknownNameError(unknown_name("guess", word, ("cheapest", *STARTS)))
    if word == "policy" and system.policy is None:
        raise ValueError(
            f"{system.name} carries no policy to start from: give System(…, policy=…), or "
            "guess='cheapest', a Trajectory or a controller"
        )
    return (word,)


def best_start(
    transcription: Transcription, which: tuple[str, ...], x0: np.ndarray, times: np.ndarray,
    setting: Setting, settings: Settings,
) -> Nodes:  # fmt: skip
    """The cheapest of some starts.

    "rest" stays at x0, "screw" goes to the end of the reference as `interpolate` does. These states
    are not dynamically feasible, but serve if rollouts diverge. "reference" is the motion under its
    inputs, "regulators" those under feedback about it, "policy" that under the system's own.
    Controls keep as far off their limits as the interior point begins: moved there afterwards,
    those of an unstable system would lead elsewhere.
    """
    here = _Rollouts(transcription, x0, times, setting, settings)
    starts: list[Nodes] = []
    if "rest" in which:
        starts.append(Nodes(times, np.repeat(x0[None], len(times), axis=0), here.inputs))
    if "screw" in which:
        share = np.linspace(0.0, 1.0, len(times))
        states = here.system.state.interpolate(x0, setting.x_ref[-1], share)
        starts.append(Nodes(times, states, here.inputs))
    laws: list[Feedback | None] = [None] if "reference" in which else []
    laws += here.regulators() if "regulators" in which else []
    laws += [here.policy] if "policy" in which else []
    starts += map(here.under, laws)
    costs = []
    for nodes in starts:
        values, rows = transcription.values(nodes, setting), transcription.rows
        cost = values.cost + rows.penalty(values.rows, rows.weights(setting.p))
        costs.append(np.inf if rows.not_finite(values.rows) else cost)
    return starts[int(np.argmin(np.nan_to_num(costs, nan=np.inf)))]


class _Rollouts:
    """Motions from x0 with inputs of the reference, controls inside of their limits."""

    def __init__(
        self, transcription: Transcription, x0: np.ndarray, times: np.ndarray, setting: Setting,
        settings: Settings,
    ) -> None:  # fmt: skip
        self.transcription, self.x0, self.times = transcription, x0, times
        self.setting, self.settings, self.controls = setting, settings, transcription.controls
        self.problem, self.system = transcription.problem, transcription.problem.system
        self.step = self.system.step(self.problem.method, self.problem.substeps)
        self.p = setting.p[: self.system.n_parameters]
        self.limits = setting.box.inside(settings.push)
        self.inputs = np.clip(setting.u_ref[:-1], *self.system.input_bounds)
        self.inputs[:, self.controls] = np.clip(self.inputs[:, self.controls], *self.limits)

    def under(self, feedback: Feedback | None) -> Nodes:
        """The motion under feedback within the limits, or under the inputs of the reference."""
        inputs, problem = self.inputs.copy(), self.problem

        def advance(k: int, x: np.ndarray) -> np.ndarray:
            if feedback is not None:
                inputs[k, self.controls] = np.clip(feedback(k, x), *self.limits)
            return self.step(self.times[k], x, inputs[k], self.p, problem.steps[k])

        nodes = Nodes(self.times, self.x0[None], inputs)
        return _rolled_out(problem, nodes, self.inputs, advance, self.setting, self.settings)

    def regulators(self) -> list[Feedback]:
        """Laws ``u_ref − K error(x, x_ref)``, each with inputs that cost more than before."""
        once, setting, settings = self.transcription, self.setting, self.settings
        nodes = Nodes(self.times, setting.x_ref, setting.u_ref[:-1])
        stage, last = once._stages("stage", nodes, setting), once._end("terminal", nodes, setting)
        A, B, H = (part.copy(order="C") for part in (stage.A, stage.B, stage.H))
        cautions = [settings.regulator_caution**k for k in range(int(settings.regulator_guesses))]
        return [self._regulator(_gains(A, B, H, last.H, caution)) for caution in cautions]

    def _regulator(self, gains: np.ndarray) -> Feedback:
        error, x_ref = self.system.error, self.setting.x_ref
        u_ref = self.setting.u_ref[:, self.controls]
        return lambda k, x: u_ref[k] - gains[k] @ error(x, x_ref[k])

    def policy(self, k: int, x: np.ndarray) -> np.ndarray:
        """Mean of what the system's policy does in a step."""
        policy, setting, parts = self.system.policy, self.setting, 1
        assert policy is not None
        if not self.system.is_discrete:
            asked = self.problem.dt / self.settings.policy_period
            parts = max(1, int(np.ceil(asked - ROUNDING)))
        u, total, h = self.inputs[k].copy(), 0.0, self.problem.steps[k] / parts
        for j in range(parts):
            t = self.times[k] + j * h
            given = policy(t, x, setting.x_ref[k], setting.u_ref[k], self.p)
            u[self.controls] = np.clip(given, *self.limits)
            total = total + u[self.controls] / parts
            if parts > 1:
                x = self.step(t, x, u, self.p, h)
        return np.asarray(total)


def _gains(
    A: np.ndarray, B: np.ndarray, H: np.ndarray, P: np.ndarray, caution: float
) -> np.ndarray:
    """Gains (N, m, n) of the linear-quadratic regulator, controls costing more by a factor."""
    horizon, n, m = B.shape
    gains = np.zeros((horizon, m, n))
    for k in range(horizon - 1, -1, -1):
        own = caution * H[k, n:, n:] + B[k].T @ P @ B[k]
        cross = B[k].T @ P @ A[k] + H[k, n:, :n]
        if not (np.isfinite(own).all() and np.isfinite(cross).all()):
            break  # the reference is where the model is singular: no feedback before it
        try:
            gains[k] = np.linalg.solve(own, cross)
        except np.linalg.LinAlgError:
            break  # inputs that neither cost anything nor move anything: no feedback before it
        P = H[k, :n, :n] + A[k].T @ P @ A[k] - gains[k].T @ cross
        P = (P + P.T) / 2
    return gains


def _rolled_out(
    problem: OptimalControlProblem, first: Nodes, others: np.ndarray,
    advance: Callable[[int, np.ndarray], np.ndarray], setting: Setting, settings: Settings,
) -> Nodes:  # fmt: skip
    """Nodes of a rollout from the first state; each step writes its inputs and returns its end.

    If the rollout diverges, the last state that was near stays from there on, under other inputs.
    """
    (times, (x0,), inputs), error = first, problem.system.error
    away = np.abs(error(np.repeat(x0[None], len(times), axis=0), setting.x_ref))
    size = max(1.0, float(away.max(initial=0.0)))
    # Beyond, half of the digits of what it does are lost.
    close, most = settings.size_free * size, size / np.sqrt(np.finfo(float).eps)
    states, near, before = [x0], 0, 0.0
    for k in range(len(times) - 1):
        x, off = advance(k, states[-1]), np.inf
        if np.isfinite(x).all():
            off = np.abs(error(x, setting.x_ref[k + 1])).max(initial=0.0)
        if not off <= most:
            stays = [states[near]] * (len(times) - near)
            u = np.concatenate([inputs[:near], others[near:]])
            return Nodes(times, np.array([*states[:near], *stays]), u)
        near, before = k if max(before, off) <= close else near, off
        states.append(x)
    return Nodes(times, np.array(states), inputs)


def follow(
    problem: OptimalControlProblem, controller: Any, x0: np.ndarray, times: np.ndarray,
    inputs: np.ndarray, setting: Setting, reference: Any, settings: Settings = DEFAULT,
) -> Nodes:  # fmt: skip
    """Nodes of the closed loop with a controller, which runs at its own rate.

    Each node's input is the mean over its step, so that the defects between the nodes are small.
    `inputs` are the values of those that are not controls. If the loop diverges, the last state
    that is near stays from there on.
    """
    getattr(controller, "reset", lambda: None)()
    system = problem.system
    controls, p = system.input_index("control"), setting.p[: system.n_parameters]
    period = getattr(controller, "dt", None) or problem.dt
    given, inputs = inputs, inputs.copy()

    def advance(k: int, x: np.ndarray) -> np.ndarray:
        total, span = np.zeros(len(controls)), problem.steps[k]
        substeps = 1 if system.is_discrete else max(1, round(span / period))
        step = system.step(problem.method, max(1, -(-problem.substeps // substeps)))
        h = span / substeps
        for j in range(substeps):
            t, u = times[k] + j * h, inputs[k].copy()
            u[controls] = np.clip(controller(t, x, reference), *setting.box[:2])
            total += u[controls]
            x = step(t, x, u, p, h)
        inputs[k, controls] = total / substeps
        return x if np.isfinite(total).all() else np.full_like(x, np.nan)

    return _rolled_out(problem, Nodes(times, x0[None], inputs), given, advance, setting, settings)


def steps_between(problem: OptimalControlProblem, before: float, now: float) -> tuple[int, bool]:
    """Steps, rounded, from one plan to another by their starts; if it is none or one exactly."""
    steps = _elapsed(problem, before, now) / problem.dt
    whole, rounding = round(steps), max(SAME_NODE, SAME_NODE_ROUNDINGS * ulp(now) / problem.dt)
    return whole, abs(steps - whole) < rounding and 0 <= whole <= 1


def _elapsed(problem: OptimalControlProblem, before: float, now: float) -> float:
    """Time in s between two plans; a clock that jumped says no more than none, or a horizon."""
    return min(max(now - before, 0.0), problem.horizon * problem.dt)


class LaterGrid(NamedTuple):
    """Which parts of a plan are at the nodes of one that begins later, on its own grid.

    `times` are after the old start, s; `nodes` the nearest old ones, `steps` those in which the
    middles of the new ones are.
    """

    times: np.ndarray
    nodes: np.ndarray
    steps: np.ndarray


def later_grid(problem: OptimalControlProblem, before: float, now: float) -> LaterGrid:
    """As `steps_between`, for steps of different lengths."""
    old, N, slack = problem.times(0.0), problem.horizon, SAME_NODE * problem.dt
    times = old + _elapsed(problem, before, now)

    def step_of(t: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(old, t + slack, "right") - 1, 0, N - 1)

    begun = step_of(times)
    share = (times - old[begun]) / problem.steps[begun]
    return LaterGrid(times, begun + (share >= 0.5), step_of(times[:-1] + problem.steps / 2))


def moved_on(
    problem: OptimalControlProblem, last: Nodes, times: np.ndarray, setting: Setting, x0: np.ndarray
) -> Nodes:
    """Last solution at the times of new nodes; beyond its end the last controls are held.

    Inputs that are no controls follow the reference. If the clock went back, the plan stays as it
    is, at the new times. Inputs in blocks have the mean of the plan in each block from x0 on.
    """
    nodes = _moved_on(problem, last, times, setting)
    if changes_in_blocks(problem.system):
        nodes = _kept_in_blocks(problem, nodes, x0)
    return nodes


def _kept_in_blocks(problem: OptimalControlProblem, nodes: Nodes, x0: np.ndarray) -> Nodes:
    """Nodes whose inputs, the last coordinates of states, change where the reference says so."""
    controls, N = problem.system.input_index("control"), problem.horizon
    m, h, (_, x, u) = len(controls), problem.steps, nodes
    x[0, -m:] = x0[-m:]
    for i in range(m):
        input, rate = x[:, x.shape[1] - m + i], u[:, controls[i]]
        begins = np.flatnonzero(u[:, u.shape[1] - 2 * m + i])
        rate[:] = 0.0
        for k, end in zip(begins, [*begins[1:], N], strict=True):
            length = 0.0
            total = 0.0
            for j in range(k, end):
                length += h[j]
                total += h[j] * input[j + 1]
            rate[k] = (total / length - input[k]) / h[k]
            input[k + 1 : end + 1] = total / length
    return nodes


def _moved_on(
    problem: OptimalControlProblem, last: Nodes, times: np.ndarray, setting: Setting
) -> Nodes:
    """The same without blocks: where inputs may change moves on with the plan."""
    system = problem.system
    controls = system.input_index("control")

    def following(u: np.ndarray) -> np.ndarray:
        made = setting.u_ref[:-1].copy()
        made[:, controls] = u[:, controls]
        return made

    if not problem.has_equal_steps:
        grid = later_grid(problem, float(last.t[0]), float(times[0]))
        plan = Trajectory.unchecked(system.state, problem.times(0.0), last.x, last.u)
        return Nodes(times, plan(grid.times).x, following(last.u[grid.steps]))
    whole, is_shift = steps_between(problem, float(last.t[0]), float(times[0]))
    if is_shift:
        x, u = last.x, following(last.u if whole == 0 else np.vstack([last.u[1:], last.u[-1]]))
        if whole == 1:
            p = setting.p[: system.n_parameters]
            step = system.step(problem.method, problem.substeps)
            x = np.vstack([x[1:], step(last.t[-1], x[-1], u[-1], p, problem.dt)])
        return Nodes(times, x.copy(), u)
    plan = Trajectory.unchecked(system.state, problem.times(0.0), last.x, last.u)
    later = problem.times(_elapsed(problem, float(last.t[0]), float(times[0])))
    # Rounding takes no input of the node before.
    begun = later[:-1] + SAME_NODE * problem.dt
    return Nodes(times, plan(later).x, following(plan(begun).u))
