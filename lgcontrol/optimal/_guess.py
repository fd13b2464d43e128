"""Where a solve starts: what is known without asking, a trajectory, a controller, the last plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen import check_shape
from ..systems import Trajectory
from ._problem import OptimalControlProblem, OptimalSolution
from ._stage_qp import StageQP
from ._transcription import Nodes, Setting, Transcription

# How much dearer controls are to the regulators of a first guess: far off, where a linear one errs
# and its controls are at their bounds, slow ones get on better.
CAUTIONS = (1.0, 1e2, 1e4)
# Share of a step by which times may miss a node and still mean it.
SAME_NODE = 1e-6


def make_guess(
    transcription: Transcription,
    guess: Any,
    x0: np.ndarray,
    times: np.ndarray,
    setting: Setting,
    reference: Any,
) -> Nodes:
    """Nodes of a guess: None, a Trajectory (or solution) or a controller.

    Raises
    ------
    ValueError
        If a trajectory does not fit the system.
    """
    problem = transcription.problem
    system = problem.system
    inputs = setting.u_ref[:-1].copy()
    lower, upper = system.input_bounds
    if guess is None:
        return _best_start(transcription, x0, times, setting)
    if isinstance(guess, OptimalSolution):
        guess = guess.trajectory
    if isinstance(guess, Trajectory):
        states = check_shape("states of the guess", guess(times).x, (len(times), system.state.nq))
        if guess.u.shape[-1]:
            controls = system.input_index("control")
            given = check_shape("inputs of the guess", guess(times[:-1]).u, inputs.shape)
            inputs[:, controls] = given[:, controls]
        return Nodes(times, states.copy(), np.clip(inputs, lower, upper))
    p = setting.p[: system.n_parameters]
    return follow(problem, guess, x0, times, inputs, p, reference)


def _best_start(
    transcription: Transcription, x0: np.ndarray, times: np.ndarray, setting: Setting
) -> Nodes:
    """The cheapest of some: staying at x0, the reference's inputs, regulators about it.

    All but the first are motions of the system. States that stay at x0 are none, but all there is
    where motions run away.
    """
    inputs = np.clip(setting.u_ref[:-1], *transcription.problem.system.input_bounds)
    starts = [Nodes(times, np.repeat(x0[None], len(times), axis=0), inputs)]
    here = Nodes(times, setting.x_ref.copy(), setting.u_ref[:-1].copy())
    _, qp = transcription.linearize(here, setting, setting.x_ref[0])
    starts += [
        _regulated(transcription, x0, times, setting, gains)
        for gains in (None, *(_gains(qp, caution) for caution in CAUTIONS))
    ]
    costs = []
    for nodes in starts:
        values = transcription.values(nodes, setting)
        cost = values.cost + transcription.penalty(values, transcription.rows.soft)
        costs.append(np.inf if transcription.not_finite(values) else cost)
    return starts[int(np.argmin(np.nan_to_num(costs, nan=np.inf)))]


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


def _regulated(
    transcription: Transcription,
    x0: np.ndarray,
    times: np.ndarray,
    setting: Setting,
    gains: np.ndarray | None,
) -> Nodes:
    """Motion from x0 with ``u = u_ref − K error(x, x_ref)`` within the bounds."""
    problem = transcription.problem
    system, controls = problem.system, transcription.controls
    step = system.step(problem.method, problem.substeps)
    p = setting.p[: system.n_parameters]
    states, inputs = [x0], np.clip(setting.u_ref[:-1], *system.input_bounds)
    for k in range(len(times) - 1):
        x = states[-1]
        if gains is not None:
            correction = gains[k] @ system.error(x, setting.x_ref[k])
            u = setting.u_ref[k, controls] - correction
            inputs[k, controls] = np.clip(u, transcription.u_lower, transcription.u_upper)
        x = step(times[k], x, inputs[k], p, problem.dt)
        states.append(x if np.isfinite(x).all() else states[-1])
    return Nodes(times, np.array(states), inputs)


def follow(
    problem: OptimalControlProblem,
    controller: Any,
    x0: np.ndarray,
    times: np.ndarray,
    inputs: np.ndarray,
    p: np.ndarray,
    reference: Any,
) -> Nodes:
    """Nodes of the closed loop with a controller, which runs at its own rate.

    Each node's input is the mean over its step, so that the gaps between the nodes are small; from
    where the loop diverges the last finite state is kept.

    Parameters
    ----------
    problem : OptimalControlProblem
    controller : callable
        ``controller(t, x, reference) → controls``; its ``dt`` is the step length if it has none.
    x0 : ndarray, shape (nq,)
    times : ndarray, shape (N + 1,)
    inputs : ndarray, shape (N, n_inputs)
        Values of the inputs that are not controls.
    p : ndarray
        The system's parameters.
    reference : optional
        Handed to the controller.

    Returns
    -------
    Nodes
    """
    getattr(controller, "reset", lambda: None)()
    system = problem.system
    controls = system.input_index("control")
    lower, upper = (bound[controls] for bound in system.input_bounds)
    span = times[1] - times[0]
    period = getattr(controller, "dt", None) or span
    substeps = 1 if system.is_discrete else max(1, round(span / period))
    finer = max(1, -(-problem.substeps // substeps))
    step, h = system.step(problem.method, finer), span / substeps
    states, inputs = [x0], inputs.copy()
    for k in range(len(times) - 1):
        x, total = states[-1], np.zeros(len(controls))
        for j in range(substeps):
            t, u = times[k] + j * h, inputs[k].copy()
            u[controls] = np.clip(controller(t, x, reference), lower, upper)
            total += u[controls]
            x = step(t, x, u, p, h)
        alive = np.isfinite(x).all() and np.isfinite(total).all()
        inputs[k, controls] = total / substeps if alive else inputs[max(k - 1, 0), controls]
        states.append(x if alive else states[-1])
    return Nodes(times, np.array(states), inputs)


def moved_on(
    problem: OptimalControlProblem, last: Nodes, times: np.ndarray, p: np.ndarray
) -> Nodes:
    """What was found last at the times of new nodes; beyond its end the last input is held.

    Parameters
    ----------
    problem : OptimalControlProblem
    last : Nodes
    times : ndarray, shape (N + 1,)
    p : ndarray
        The system's parameters.

    Returns
    -------
    Nodes
    """
    steps = (times[0] - last.t[0]) / problem.dt
    whole = round(steps)
    if abs(steps - whole) < SAME_NODE and 0 <= whole <= 1:
        x, u = last.x, last.u
        if whole == 1:
            step = problem.system.step(problem.method, problem.substeps)
            end = step(last.t[-1], x[-1], u[-1], p, problem.dt)
            x, u = np.vstack([x[1:], end]), np.vstack([u[1:], u[-1]])
        return Nodes(times, x.copy(), u.copy())
    plan = Trajectory._of(problem.system.state, *last)
    return Nodes(times, plan(times).x, plan(times[:-1]).u)
