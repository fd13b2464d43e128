"""One step of a system as a model function."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..codegen import ModelFunction
from ..integrators import Method, get_method
from ._definition import SystemDefinition
from ._tracing import SystemFunction, shapes_of, symbols_of


def step_function(
    system: SystemDefinition, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """See `System.step`."""
    scheme = get_method(method)
    if substeps < 1:
        raise ValueError(f"substeps must be at least 1, got {substeps}")
    key = ("step",) if system.is_discrete else ("step", scheme, substeps)
    if key not in system._cache:
        system._cache[key] = _build(system, scheme, substeps)
    return system._cache[key]


def _build(system: SystemDefinition, scheme: Method, substeps: int) -> ModelFunction:
    t, x, u, p = symbols_of(system)
    dt = system.symbol.sym("dt")
    if system.is_discrete:
        after = system.state.normalize(system.state.plus(x, system.f(t, x, u, p)))
    else:
        after, h = x, dt / substeps
        for k in range(substeps):
            after = scheme.step(
                system.state, lambda s, y: system.f(s, y, u, p), t + k * h, after, h
            )
    if system.project is not None:
        after = system.project(after, p)
    if system.symbol is ca.SX:
        after = ca.cse(after)
    defaults: dict[str, Any] = {"p": system.nominal_parameters}
    if system.is_discrete:
        defaults["dt"] = system.dt
    return SystemFunction(
        system,
        ca.Function("step", [t, x, u, p, dt], [after], ["t", "x", "u", "p", "dt"], ["x_next"]),
        shapes_of(system) | {"x_next": (system.state.nq,)},
        defaults,
    )
