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
from ._stage_qp import StageQP
from ._transcription import Nodes, Setting, Transcription

Feedback = Callable[[int, np.ndarray], np.ndarray]
"""Controls by the number of a node and its state."""

# Starts that a word asks for, and what `start.c`, which makes the same ones, calls them.
STARTS = {"rest": 1, "screw": 16, "reference": 2, "regulators": 4, "policy": 8}
# Those of which the cheapest is taken where nobody asks. States on the way to the goal are none:
# they cost little and are no motions.
CHEAPEST = ("rest", "reference", "regulators", "policy")


def make_guess(
    transcription: Transcription,
    guess: Any,
    x0: np.ndarray,
    times: np.ndarray,
    setting: Setting,
    reference: Any,
    settings: Settings = DEFAULT,
) -> Nodes:
    """Nodes of a guess: None, a word, a Trajectory (or solution) or a controller."""
    problem = transcription.problem
    system = problem.system
    inputs = setting.u_ref[:-1].copy()
    if guess is None or isinstance(guess, str):
        return best_start(transcription, starts_of(system, guess), x0, times, setting, settings)
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
    transcription: Transcription,
    which: tuple[str, ...],
    x0: np.ndarray,
    times: np.ndarray,
    setting: Setting,
    settings: Settings,
) -> Nodes:
    """The cheapest of some starts.

    "rest" stays at x0, "screw" goes to the end of the reference as `interpolate` does. These states
    are not dynamically feasible, but serve if rollouts diverge. "reference" is the motion under its
    inputs, "regulators" those under feedback about it, "policy" that under the system's own.
    Controls keep as far off their limits as the interior point begins: moved there afterwards,
    those of an unstable system would lead elsewhere.
    """
    inputs = _allowed(transcription, setting, settings)
    system = transcription.problem.system
    starts: list[Nodes] = []
    if "rest" in which:
        starts.append(Nodes(times, np.repeat(x0[None], len(times), axis=0), inputs))
    if "screw" in which:
        share = np.linspace(0.0, 1.0, len(times))
        states = system.state.interpolate(x0, setting.x_ref[-1], share)
        starts.append(Nodes(times, states, inputs))
    feedbacks: list[Feedback | None] = [None] if "reference" in which else []
    if "regulators" in which:
        here = Nodes(times, setting.x_ref.copy(), setting.u_ref[:-1].copy())
        _, qp = transcription.linearize(here, setting, setting.x_ref[0])
        for k in range(int(settings.regulator_guesses)):
            gains = _gains(qp, settings.regulator_caution**k)
            feedbacks.append(_regulator(transcription, setting, gains))
    if "policy" in which:
        feedbacks.append(_policy(transcription, times, setting, settings))
    starts += [_rolled_out(transcription, x0, times, setting, law, settings) for law in feedbacks]
    costs = []
    for nodes in starts:
        values = transcription.values(nodes, setting)
        cost = values.cost + transcription.penalty(values, transcription.rows.weights(setting.p))
        costs.append(np.inf if transcription.not_finite(values) else cost)
    return starts[int(np.argmin(np.nan_to_num(costs, nan=np.inf)))]


def _allowed(transcription: Transcription, setting: Setting, settings: Settings) -> np.ndarray:
    """Inputs of the reference, the controls inside of their limits."""
    inputs = np.clip(setting.u_ref[:-1], *transcription.problem.system.input_bounds)
    controls = transcription.controls
    inputs[:, controls] = np.clip(inputs[:, controls], *setting.box.inside(settings.push))
    return inputs


def _gains(qp: StageQP, caution: float) -> np.ndarray:
    """Gains (N, m, n) of the linear-quadratic regulator, controls costing more by a factor."""
    horizon, n, m = qp.sizes
    gains, P = np.zeros((horizon, m, n)), qp.Q[-1]
    for k in range(horizon - 1, -1, -1):
        A, B = qp.A[k], qp.B[k]
        own, cross = caution * qp.R[k] + B.T @ P @ B, B.T @ P @ A + qp.S[k]
        if not (np.isfinite(own).all() and np.isfinite(cross).all()):
            break  # the reference is where the model is singular: no feedback before it
        gains[k] = np.linalg.solve(own, cross)
        P = qp.Q[k] + A.T @ P @ A - gains[k].T @ cross
        P = (P + P.T) / 2
    return gains


def _regulator(transcription: Transcription, setting: Setting, gains: np.ndarray) -> Feedback:
    """``(k, x) → u_ref − K error(x, x_ref)``."""
    error, controls = transcription.problem.system.error, transcription.controls
    return lambda k, x: setting.u_ref[k, controls] - gains[k] @ error(x, setting.x_ref[k])


def _policy(
    transcription: Transcription, times: np.ndarray, setting: Setting, settings: Settings
) -> Feedback:
    """Mean of what the system's policy does in a step."""
    problem, system = transcription.problem, transcription.problem.system
    policy, p = system.policy, setting.p[: system.n_parameters]
    assert policy is not None
    asked = (
        1 if system.is_discrete else int(np.ceil(problem.dt / settings.policy_period - ROUNDING))
    )
    parts = max(1, asked)
    step, h = system.step(problem.method, problem.substeps), problem.steps / parts
    lower, upper = setting.box.inside(settings.push)
    inputs = _allowed(transcription, setting, settings)

    def mean(k: int, x: np.ndarray) -> np.ndarray:
        u, total = inputs[k].copy(), 0.0
        for j in range(parts):
            t = times[k] + j * h[k]
            asked = policy(t, x, setting.x_ref[k], setting.u_ref[k], p)
            u[transcription.controls] = np.clip(asked, lower, upper)
            total = total + u[transcription.controls] / parts
            if parts > 1:
                x = step(t, x, u, p, h[k])
        return np.asarray(total)

    return mean


def _rolled_out(
    transcription: Transcription,
    x0: np.ndarray,
    times: np.ndarray,
    setting: Setting,
    feedback: Feedback | None,
    settings: Settings,
) -> Nodes:
    """Motion from x0 under feedback within the bounds, or under the inputs of the reference."""
    problem = transcription.problem
    system, controls = problem.system, transcription.controls
    step = system.step(problem.method, problem.substeps)
    p = setting.p[: system.n_parameters]
    states, allowed = [x0], _allowed(transcription, setting, settings)
    limits, inputs = setting.box.inside(settings.push), allowed.copy()
    bound = _RolloutBound(system, x0, setting, settings)
    for k in range(len(times) - 1):
        x = states[-1]
        if feedback is not None:
            inputs[k, controls] = np.clip(feedback(k, x), *limits)
        x = step(times[k], x, inputs[k], p, problem.steps[k])
        states.append(x)
        if bound.is_left(x, k + 1):
            break
    return bound.kept(Nodes(times, np.array(states), inputs), allowed)


class _RolloutBound:
    """Tells where a rollout diverges, and ends it where it was near the last time."""

    def __init__(
        self, system: System, x0: np.ndarray, setting: Setting, settings: Settings
    ) -> None:
        self.system, self.setting, self.near, self.left = system, setting, 0, False
        self.before = 0.0
        off = np.abs(system.error(np.repeat(x0[None], len(setting.x_ref), axis=0), setting.x_ref))
        size = max(1.0, float(off.max(initial=0.0)))
        # Beyond, half of the digits of what it does are lost.
        self.close, self.most = settings.size_free * size, size / np.sqrt(np.finfo(float).eps)

    def is_left(self, x: np.ndarray, k: int) -> bool:
        """Whether the state of a node is out of all bounds."""
        off = np.inf
        if np.isfinite(x).all():
            off = np.abs(self.system.error(x, self.setting.x_ref[k])).max(initial=0.0)
        self.left = not off <= self.most
        if not self.left:
            self.near = k - 1 if max(self.before, off) <= self.close else self.near
            self.before = off
        return self.left

    def kept(self, nodes: Nodes, inputs: np.ndarray) -> Nodes:
        """The rollout; if it diverged, its last near state stays, under other inputs."""
        if not self.left:
            return nodes
        x = np.concatenate([nodes.x[: self.near + 1], np.repeat(nodes.x[self.near][None],
                            len(nodes.t) - self.near - 1, axis=0)])  # fmt: skip
        u = np.concatenate([nodes.u[: self.near], inputs[self.near :]])
        return Nodes(nodes.t, x, u)


def follow(
    problem: OptimalControlProblem,
    controller: Any,
    x0: np.ndarray,
    times: np.ndarray,
    inputs: np.ndarray,
    setting: Setting,
    reference: Any,
    settings: Settings = DEFAULT,
) -> Nodes:
    """Nodes of the closed loop with a controller, which runs at its own rate.

    Each node's input is the mean over its step, so that the defects between the nodes are small.
    `inputs` are the values of those that are not controls. If the loop diverges, the last state
    that is near stays from there on.
    """
    getattr(controller, "reset", lambda: None)()
    system = problem.system
    controls, p = system.input_index("control"), setting.p[: system.n_parameters]
    period = getattr(controller, "dt", None) or problem.dt
    states, given, inputs = [x0], inputs, inputs.copy()
    bound = _RolloutBound(system, x0, setting, settings)
    for k in range(len(times) - 1):
        x, total, span = states[-1], np.zeros(len(controls)), problem.steps[k]
        substeps = 1 if system.is_discrete else max(1, round(span / period))
        step = system.step(problem.method, max(1, -(-problem.substeps // substeps)))
        h = span / substeps
        for j in range(substeps):
            t, u = times[k] + j * h, inputs[k].copy()
            u[controls] = np.clip(controller(t, x, reference), *setting.box[:2])
            total += u[controls]
            x = step(t, x, u, p, h)
        inputs[k, controls] = total / substeps
        states.append(x)
        if bound.is_left(x if np.isfinite(total).all() else np.full_like(x, np.nan), k + 1):
            break
    return bound.kept(Nodes(times, np.array(states), inputs), given)


def steps_later(problem: OptimalControlProblem, last: Nodes, times: np.ndarray) -> tuple[int, bool]:
    """By how many steps, rounded, new nodes are later, and whether it is none or one exactly."""
    return steps_between(problem, float(last.t[0]), float(times[0]))


def steps_between(problem: OptimalControlProblem, before: float, now: float) -> tuple[int, bool]:
    """The same by the starts of two plans in s."""
    steps = _elapsed(problem, before, now) / problem.dt
    whole = round(steps)
    rounding = SAME_NODE_ROUNDINGS * ulp(now) / problem.dt
    rounding = max(SAME_NODE, rounding)
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
    """The same for steps of different lengths, by the starts of two plans in s."""
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
    """The same, with blocks that moved on."""
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
    whole, is_shift = steps_later(problem, last, times)
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
