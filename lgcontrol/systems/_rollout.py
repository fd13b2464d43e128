"""Responses to whole input sequences, inside CasADi functions of many steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, check_shape
from ..integrators import Method
from ._trajectory import Trajectory

LONGEST = 1024  # steps in one function: building it takes 0.1 s, the loop over pieces nothing

if TYPE_CHECKING:
    from ._system import System


def rollout(
    system: System,
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
        Inputs of each step, or one that is held for `steps` steps (nominal if left out).
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
        With N + 1 states and N inputs; batch axes of x0, u and p broadcast.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> run = clock.rollout(SO2.identity, [0.5], dt=0.1, steps=20)
    >>> SO2.log(run.x[-1]).round(12)
    array([1.])
    """
    dt = _step_length(system, dt)
    x0 = check_shape("x0", x0, (system.state.nq,), batch=True)
    u = _input_sequence(system, u, steps)
    count = u.shape[-2]
    p = system.nominal_parameters if p is None else p
    p = check_shape("p", p, (system.n_parameters,), batch=True)
    t = check_shape("t0", t0, ()) + dt * np.arange(count + 1)
    start = system.state.normalize(x0)
    axes = {"x0": start.shape[:-1], "u": u.shape[:-2], "p": p.shape[:-1]}
    try:
        batch = np.broadcast_shapes(*axes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in axes.items())
        raise ValueError(f"batch axes do not broadcast: {listed}") from None
    x = np.empty((*batch, count + 1, system.state.nq))
    x[..., 0, :] = start
    for first, last in _pieces(count):
        run = rollout_function(system, last - first, method, substeps)
        inputs = np.swapaxes(u[..., first:last, :], -1, -2)
        states = run(t[None, first:last], x[..., first, :], inputs, p, dt)
        x[..., first + 1 : last + 1, :] = np.swapaxes(states, -1, -2)
    return Trajectory(system.state, t, x, np.broadcast_to(u, (*batch, count, system.n_inputs)))


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Steps in pieces of powers of two: a few functions serve every length, and build quickly."""
    first = 0
    while first < count:
        length = min(LONGEST, 1 << (count - first).bit_length() - 1)
        yield first, first + length
        first += length


def rollout_function(
    system: System, count: int, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x0, u, p, dt) → x`` with t, u and x one column a step."""
    step = system.step(method, substeps)
    key = ("rollout", count, step)
    if key not in system._cache:
        t, x = ca.MX.sym("t"), ca.MX.sym("x", system.state.nq)
        u, p = ca.MX.sym("u", system.n_inputs), ca.MX.sym("p", system.n_parameters)
        dt = ca.MX.sym("dt")
        one = ca.Function("one", [x, t, u, p, dt], [step.function(t, x, u, p, dt)])
        chain = one.mapaccum("chain", count)
        times, inputs = ca.MX.sym("t", 1, count), ca.MX.sym("u", system.n_inputs, count)
        states = chain(x, times, inputs, ca.repmat(p, 1, count), ca.repmat(dt, 1, count))
        function = ca.Function(
            "rollout",
            [times, x, inputs, p, dt],
            [states],
            ["t", "x0", "u", "p", "dt"],
            ["x"],
        )
        system._cache[key] = ModelFunction(
            function,
            shapes={
                "t": (1, count),
                "x0": (system.state.nq,),
                "u": (system.n_inputs, count),
                "p": (system.n_parameters,),
                "dt": (),
                "x": (system.state.nq, count),
            },
        )
    return system._cache[key]


def _input_sequence(system: System, u: Any, steps: int | None) -> np.ndarray:
    """Inputs of shape (..., N, n_inputs)."""
    u = system.nominal_input if u is None else np.asarray(u, dtype=np.float64)
    if u.ndim == 1:
        if steps is None:
            raise ValueError(
                f"a constant input of shape {u.shape} needs steps=N; "
                f"a sequence has shape (..., N, {system.n_inputs})"
            )
        u = np.broadcast_to(u, (steps, *u.shape))
    u = check_shape("u", u, (None, system.n_inputs), batch=True)
    if steps is not None and u.shape[-2] != steps:
        raise ValueError(f"u has {u.shape[-2]} rows for {steps} steps")
    if u.shape[-2] == 0:
        raise ValueError("u holds no step: give at least one row, or steps=N with a constant u")
    return u


def _step_length(system: System, dt: float | None) -> float:
    if system.is_discrete:
        if dt is not None and abs(dt - system.dt) > 1e-12 * system.dt:
            raise ValueError(f"{system.name} has the sample time {system.dt:g} s, not {dt:g} s")
        return system.dt
    if dt is None or not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"{system.name} is continuous: give dt > 0 in s, got {dt}")
    return float(dt)
