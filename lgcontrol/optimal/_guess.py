"""Where a solve starts: a constant, a trajectory, or what a controller does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen import check_shape
from ..systems import System, Trajectory
from ._problem import OptimalControlProblem
from ._solution import OptimalSolution
from ._transcription import Nodes, Setting


def make_guess(
    problem: OptimalControlProblem,
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
    system = problem.system
    inputs = setting.u_ref[:-1].copy()
    lower, upper = system.input_bounds
    if guess is None:
        states = np.repeat(x0[None], len(times), axis=0)
        return Nodes(times, states, np.clip(inputs, lower, upper))
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
    return follow(system, guess, x0, times, inputs, p, reference)


def follow(
    system: System,
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
    system : System
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
    controls = system.input_index("control")
    lower, upper = (bound[controls] for bound in system.input_bounds)
    span = times[1] - times[0]
    period = getattr(controller, "dt", None) or span
    substeps = 1 if system.is_discrete else max(1, round(span / period))
    step, h = system.step(), span / substeps
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
