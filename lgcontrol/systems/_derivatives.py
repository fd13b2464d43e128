"""Exact derivatives of fields, outputs and steps in left-invariant error coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from ..codegen import ModelFunction, Value
from ..groups import LieGroup
from ..integrators import Method
from ._tracing import shapes_of, symbols_of

if TYPE_CHECKING:
    from ._system import System


def field_derivatives(system: System) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization.

    With ``X = X̄ exp(ε)`` and ``Y = Ȳ exp(δy)``: continuous ``A = Df − ad_f``, ``B = ∂f/∂u``;
    discrete ``A, B`` of ``ε⁺ = A ε + B δu``, projection included.

    Parameters
    ----------
    system : System

    Returns
    -------
    ModelFunction
        ``rate`` is f itself.
    """
    key = ("field_derivatives",)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        rate, y = system.f(t, x, u, p), system.h(t, x, u, p)
        if system.is_discrete:
            A, B = _map_derivatives(system.state, x, u, system.step()(t, x, u, p, system.dt))
        else:
            A = ca.jacobian(rate, x) @ system.state.rate_matrix(x) - system.state.ad(rate)
            B = ca.jacobian(rate, u)
        drop = system.output.tangent_matrix(y)
        C = drop @ (ca.jacobian(y, x) @ system.state.rate_matrix(x))
        D = drop @ ca.jacobian(y, u)
        results = {"A": A, "B": B, "C": C, "D": D, "rate": rate}
        system._cache[key] = _function(system, "linearization", [t, x, u, p], results)
    return system._cache[key]


def step_derivatives(
    system: System, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, A, B`` of one step: ``ε⁺ = A ε + B δu``.

    Parameters
    ----------
    system : System
    method, substeps
        See `System.step`.

    Returns
    -------
    ModelFunction
    """
    step = system.step(method, substeps)
    key = ("step_derivatives", step)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        dt = system.symbol.sym("dt")
        after = step(t, x, u, p, dt)
        A, B = _map_derivatives(system.state, x, u, after)
        results = {"x_next": after, "A": A, "B": B}
        system._cache[key] = _function(system, "step_derivatives", [t, x, u, p, dt], results)
    return system._cache[key]


def _map_derivatives(group: LieGroup, x: Value, u: Value, after: Value) -> tuple[Value, Value]:
    """Derivatives of a map x → after between tangent spaces, and with respect to u."""
    drop = group.tangent_matrix(after)
    return drop @ (ca.jacobian(after, x) @ group.rate_matrix(x)), drop @ ca.jacobian(after, u)


def _function(
    system: System, name: str, symbols: list[Value], results: dict[str, Any]
) -> ModelFunction:
    expressions: Any = [system.symbol(value) for value in results.values()]
    if system.symbol is ca.SX:
        expressions = ca.cse(expressions)
    n, m, r = system.state.dim, system.n_inputs, system.output.dim
    shapes = shapes_of(system) | {"dt": (), "A": (n, n), "B": (n, m), "C": (r, n), "D": (r, m)}
    names = ["t", "x", "u", "p", "dt"][: len(symbols)]
    used = {key: value for key, value in shapes.items() if key in names or key in results}
    return ModelFunction(
        ca.Function(name, symbols, expressions, names, list(results)),
        shapes=used,
        defaults={"p": system.nominal_parameters},
    )
