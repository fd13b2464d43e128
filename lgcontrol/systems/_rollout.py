"""Responses to whole input sequences: one function for all steps, compiled where that pays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..codegen import ModelFunction, chain, check_shape
from ..integrators import Method, get_method
from ._definition import SystemDefinition
from ._step import resolved_step, step_function
from ._tracing import check_state, complete_input, complete_parameters, sample_time
from ._trajectory import Trajectory


def rollout(
    system: SystemDefinition,
    x0: Any,
    u: Any = None,
    dt: float | None = None,
    *,
    steps: int | None = None,
    t0: float = 0.0,
    p: Any = None,
    method: str | Method = "rk4",
    substeps: int = 1,
) -> Trajectory:
    """Response to a whole input sequence in one call, inputs held over each step.

    Parameters
    ----------
    system : System
    x0 : array_like, shape (..., nq)
        Start, with batch axes for many starts at once.
    u : array_like, shape (..., N, n_inputs) or (n_inputs,), optional
        Inputs of each step, or one that is held for `steps` steps (nominal if left out). Controls
        alone will do: disturbances are then nominal.
    dt : float
        Step in s; the sample time for discrete systems.
    steps : int, optional
        Number of steps when u is constant.
    t0 : float
        Start time in s.
    p : array_like, shape (..., n_parameters), optional
        Parameters, with batch axes for a sweep.
    method, substeps
        See `System.step`.

    Returns
    -------
    Trajectory
        With N + 1 states and N inputs; batch axes of x0, u and p broadcast. Where the motion
        diverges, the states are NaN from then on (`Trajectory.diverged`).

    Raises
    ------
    ValueError
        If a shape does not fit, or a start cannot be brought onto the group.

    Warns
    -----
    RuntimeWarning
        If a motion diverges: says which and when. If a step does not solve its equations: says
        which and how far it is off.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> run = clock.rollout(SO2.identity, [0.5], dt=0.1, steps=20)
    >>> SO2.log(run.x[-1]).round(12)
    array([1.])
    """
    dt = sample_time(system, dt)
    start = check_state(system, "x0", x0, batch=True)
    u = _input_sequence(system, u, steps)
    count = u.shape[-2]
    p = complete_parameters(system, p, batch=True)
    t = check_shape("t0", t0, ()) + dt * np.arange(count + 1)
    axes = {"x0": start.shape[:-1], "u": u.shape[:-2], "p": p.shape[:-1]}
    try:
        batch = np.broadcast_shapes(*axes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in axes.items())
        raise ValueError(f"batch axes do not broadcast: {listed}") from None
    x = np.empty((*batch, count + 1, system.state.nq))
    x[..., 0, :] = start
    run = rollout_function(system, count, method, substeps)
    made = run(t[:-1, None], start, u, p, dt)
    residual = None if isinstance(made, np.ndarray) else made.residual[..., 0]
    x[..., 1:, :] = made if isinstance(made, np.ndarray) else made.x_next
    gone = np.logical_or.accumulate(~np.isfinite(x).all(axis=-1), axis=-1)
    x[gone] = np.nan
    u = np.broadcast_to(u, (*batch, count, system.n_inputs))
    made = Trajectory._of(system.state, t, x, u, system.inputs)
    if gone.any():
        warnings.warn(_divergence(system, made), RuntimeWarning, stacklevel=2)
    elif residual is not None and not (residual <= 1).all():
        warnings.warn(_unsolved(system, method, residual), RuntimeWarning, stacklevel=2)
    return made


def rollout_function(
    system: SystemDefinition, count: int, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next`` with one row a step in t, u and x_next.

    Methods that solve equations have a second result, ``residual``.
    """
    step = resolved_step(system, method, substeps) or step_function(system, method, substeps)
    key = ("rollout", count, step)
    if key not in system._cache:
        system._cache[key] = chain(step, count, carry=("x", "x_next"), each=["t", "u"])
    return system._cache[key]


def _unsolved(system: SystemDefinition, method: str | Method, residual: np.ndarray) -> str:
    """Say where the equations of a step were not solved."""
    first = int(np.argmax((~(residual <= 1)).any(axis=tuple(range(residual.ndim - 1)))))
    name = get_method(method).name
    return (
        f"{system.name}: {(~(residual <= 1)).sum()} of {residual.size} steps of {name} did not "
        f"solve their equations, the first is step {first}; the largest residual is "
        f"{residual.max():.2g} times what is tolerated; use a shorter dt, more substeps, or "
        "dataclasses.replace(method, iterations=…)"
    )


def _divergence(system: SystemDefinition, made: Trajectory) -> str:
    """Say which motion came first to an end, and when."""
    ends = made.diverged_at
    first = tuple(int(i) for i in np.unravel_index(int(np.argmin(ends)), ends.shape))
    remedy = "" if system.is_discrete else "; use a shorter dt or more substeps"
    if not ends.shape:
        text = f"the rollout diverged at t = {ends:g} s, its states are NaN from then on"
    else:
        index = first[0] if len(first) == 1 else first
        text = (
            f"{np.isfinite(ends).sum()} of {ends.size} rollouts diverged, the first, number "
            f"{index}, at t = {ends[first]:g} s; their states are NaN from then on "
            "(see Trajectory.diverged)"
        )
    return f"{system.name}: {text}{remedy}"


def _input_sequence(system: SystemDefinition, u: Any, steps: int | None) -> np.ndarray:
    """Inputs of shape (..., N, n_inputs)."""
    u = system.nominal_input if u is None else np.asarray(u, dtype=np.float64)
    if u.ndim == 1:
        if steps is None:
            raise ValueError(
                f"a constant input of shape {u.shape} needs steps=N; "
                f"a sequence has shape (..., N, {system.n_inputs})"
            )
        u = np.broadcast_to(u, (steps, *u.shape))
    u = complete_input(system, "u", u, (None,), batch=True)
    if steps is not None and u.shape[-2] != steps:
        raise ValueError(f"u has {u.shape[-2]} rows for {steps} steps")
    if u.shape[-2] == 0:
        raise ValueError("u holds no step: give at least one row, or steps=N with a constant u")
    return u
