"""Exact derivatives of fields, outputs and steps in left-invariant error coordinates."""

from __future__ import annotations

import casadi as ca

from ..codegen import ModelFunction, Value
from ..groups import LieGroup
from ..integrators import Method
from ._definition import SystemDefinition
from ._step import step_function
from ._tracing import matrix_function, symbols_of


def field_derivatives(system: SystemDefinition) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization.

    In tangent coordinates of the whole group, constrained or not: `linearize` and
    `step_derivatives` are in the error coordinates of the system. With ``X = X̄ exp(ε)`` and
    ``Y = Ȳ exp(δy)``: continuous ``A = Df − ad_f``, ``B = ∂f/∂u``; discrete ``A, B`` of
    ``ε⁺ = A ε + B δu``, projection included.

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
        if system._sampled is not None and system.errors is None:
            continuous, method, substeps = system._sampled
            derivatives = step_derivatives(continuous, method, substeps)
            _, A, B = derivatives(t, x, u, p, system.dt)
        elif system.is_discrete and system._given_derivatives is not None and not system.project:
            Df, Bf = system.derivatives(t, x, u, p)  # exp(ε⁺) = exp(−f) exp(ε) exp(f + Df ε)
            J = system.state.right_jacobian(rate)
            A, B = system.state.Ad(system.state.exp(-rate)) + J @ Df, J @ Bf
        elif system.is_discrete:
            after = step_function(system)(t, x, u, p, system.dt)
            A, B = output_derivatives(system.state, system.state, x, u, after)
        else:
            Df, B = system.derivatives(t, x, u, p)
            A = Df - system.state.ad(rate)
        C, D = output_derivatives(system.state, system.output, x, u, y)
        results = {"A": A, "B": B, "C": C, "D": D, "rate": rate}
        system._cache[key] = matrix_function(system, "linearization", [t, x, u, p], results)
    return system._cache[key]


def step_derivatives(
    system: SystemDefinition, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, A, B`` of one step: ``z⁺ = A z + B δu``, in error coordinates.

    Parameters
    ----------
    system : System
    method, substeps
        See `System.step`.

    Returns
    -------
    ModelFunction
    """
    step = step_function(system, method, substeps)
    key = ("step_derivatives", step)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        dt = system.symbol.sym("dt")
        after = step(t, x, u, p, dt)
        A, B = output_derivatives(system.state, system.state, x, u, after)
        if system.errors is not None:
            E = ca.DM(system.errors.selection)
            A, B = E @ A @ system.errors.basis(x, p), E @ B
        results = {"x_next": after, "A": A, "B": B}
        system._cache[key] = matrix_function(system, "step_derivatives", [t, x, u, p, dt], results)
    return system._cache[key]


def output_derivatives(
    state: LieGroup, output: LieGroup, x: Value, u: Value, y: Value
) -> tuple[Value, Value]:
    """Derivatives of y between tangent spaces for displacements of x, and with respect to u."""
    drop = output.tangent_matrix(y)
    return drop @ (ca.jacobian(y, x) @ state.rate_matrix(x)), drop @ ca.jacobian(y, u)
