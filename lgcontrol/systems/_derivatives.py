"""Exact derivatives of fields, outputs and steps in left-invariant error coordinates."""

from __future__ import annotations

import casadi as ca

from ..codegen import ModelFunction, Value
from ..codegen._internal import memoized
from ..groups import LieGroup
from ._definition import SystemDefinition
from ._step import group_derivatives
from ._tracing import matrix_function, symbols_of


@memoized
def field_derivatives(system: SystemDefinition) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization.

    In tangent coordinates of the whole group, constrained or not: `linearize` and
    `step_derivatives` are in the error coordinates of the system. With ``X = X̄ exp(ε)`` and
    ``Y = Ȳ exp(δy)``: continuous ``A = Df − ad_f``, ``B = ∂f/∂u``; discrete ``A, B`` of
    ``ε⁺ = A ε + B δu``, projection included.

    Returns
    -------
    ModelFunction
        ``rate`` is f itself.
    """
    t, x, u, p = symbols_of(system)
    rate, y = system.f(t, x, u, p), system.h(t, x, u, p)
    if system.is_discrete:
        A, B = group_derivatives(system, t, x, u, p)
    else:
        Df, B = system.derivatives(t, x, u, p)
        A = Df - system.state.ad(rate)
    C, D = output_derivatives(system.state, system.output, x, u, y)
    results = {"A": A, "B": B, "C": C, "D": D, "rate": rate}
    # f and its derivatives, each shared within, have a tenth in common.
    return matrix_function(system, "linearization", [t, x, u, p], results, is_shared=False)


def output_derivatives(
    state: LieGroup, output: LieGroup, x: Value, u: Value, y: Value
) -> tuple[Value, Value]:
    """Derivatives of y between tangent spaces for displacements of x, and with respect to u.

    Parameters
    ----------
    state, output : LieGroup
        Of x and y.
    x, u : casadi.SX or casadi.MX
    y : casadi.SX or casadi.MX
        Coordinates on the output group, an expression of x and u.

    Returns
    -------
    C, D : casadi.SX or casadi.MX
    """
    drop = output.tangent_matrix(y)
    return drop @ (ca.jacobian(y, x) @ state.rate_matrix(x)), drop @ ca.jacobian(y, u)
