"""Responses to whole input sequences, inside one CasADi function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, check_shape
from ._trajectory import Trajectory

if TYPE_CHECKING:
    from ._system import System


def rollout(
    system: System,
    x0: Any,
    u: Any,
    dt: float | None,
    *,
    steps: int | None,
    t0: float,
    p: Any,
    method: str,
    substeps: int,
) -> Trajectory:
    """See `System.rollout`."""
    dt = _step_length(system, dt)
    x0 = check_shape("x0", x0, (system.state.nq,), batch=True)
    u = np.asarray(u, dtype=np.float64)
    if u.ndim == 1 and steps is not None:
        u = np.broadcast_to(u, (steps, *u.shape))
    u = check_shape("u", u, (None, system.n_inputs), batch=True)
    if steps is not None and u.shape[-2] != steps:
        raise ValueError(f"u has {u.shape[-2]} rows for {steps} steps")
    count = u.shape[-2]
    if count == 0:
        raise ValueError("u holds no step: give at least one row, or steps=N with a constant u")
    p = system.nominal_parameters if p is None else p
    p = check_shape("p", p, (system.n_parameters,), batch=True)
    t = t0 + dt * np.arange(count + 1)
    run = rollout_function(system, count, method, substeps)
    states = np.swapaxes(run(t[None, :-1], x0, np.swapaxes(u, -1, -2), p, dt), -1, -2)
    start = np.broadcast_to(x0, (*states.shape[:-2], system.state.nq))[..., None, :]
    inputs = np.broadcast_to(u, (*states.shape[:-2], count, system.n_inputs))
    return Trajectory(system.state, t, np.concatenate([start, states], axis=-2), inputs)


def rollout_function(
    system: System, count: int, method: str = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x0, u, p, dt) → x`` with t, u and x one column a step."""
    key = ("rollout", count, method, substeps)
    if key not in system._steps:
        step = system.step(method, substeps).function
        t, x = ca.MX.sym("t"), ca.MX.sym("x", system.state.nq)
        u, p = ca.MX.sym("u", system.n_inputs), ca.MX.sym("p", system.n_parameters)
        dt = ca.MX.sym("dt")
        one = ca.Function("one", [x, t, u, p, dt], [step(t, x, u, p, dt)])
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
        system._steps[key] = ModelFunction(
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
    return system._steps[key]


def _step_length(system: System, dt: float | None) -> float:
    if system.is_discrete:
        if dt is not None and abs(dt - system.dt) > 1e-12 * system.dt:
            raise ValueError(f"{system.name} has the sample time {system.dt:g} s, not {dt:g} s")
        return system.dt
    if dt is None or not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"{system.name} is continuous: give dt > 0 in s, got {dt}")
    return float(dt)
