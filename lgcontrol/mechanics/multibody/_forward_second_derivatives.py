"""Second derivatives of forward dynamics from those of inverse dynamics.

Differentiating ``τ = τ(q, v, a(q, v, τ))`` twice, with x and y any of q, v, τ:
``M ∂²a/∂x∂y = −(∂²τ/∂x∂y + ∂²τ/∂x∂a ∂a/∂y + ∂²τ/∂y∂a ∂a/∂x)``, at the accelerations that the
forces cause.
"""

from __future__ import annotations

import casadi as ca

from ...codegen import Value
from ._forward_dynamics import forward_dynamics_by_factor
from ._hessians import Blocks, inverse_dynamics_hessian
from ._mass_matrix import factor, inverse, mass_matrix, solve
from ._plan import Plan
from ._regressor import inverse_dynamics_regressor
from ._second_derivatives import inverse_dynamics_second_derivatives
from ._second_order import first_derivatives


def forward_dynamics_second_derivatives(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """∂²a/∂q², ∂²a/∂q∂v, ∂²a/∂v² and ∂²a/∂q∂τ, slices side by side, nv × nv² each."""
    n = plan.nv
    L, D = factor(mass_matrix(plan, q))
    a = forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    tau_qq, tau_qv, tau_vv, tau_qa = inverse_dynamics_second_derivatives(plan, q, v, a, wrenches)
    tau_q, tau_v = first_derivatives(plan, q, v, a, wrenches)
    a_q, a_v, a_tau = solve(L, D, -tau_q), solve(L, D, -tau_v), inverse(L, D)
    M_q = [tau_qa[:, j::n] for j in range(n)]
    bent = [slope @ a_q for slope in M_q]
    turned = [slope @ a_v for slope in M_q]
    pushed = [slope @ a_tau for slope in M_q]
    qq, qv, vv, qt = ([ca.SX(n, 1)] * n**2 for _ in range(4))
    for k in range(n):
        for j in range(n):
            at = k * n + j
            qv[at] = solve(L, D, -(tau_qv[:, at] + turned[j][:, k]))
            qt[at] = solve(L, D, -pushed[j][:, k])
            if j <= k:
                both = tau_qq[:, at] + bent[k][:, j] + bent[j][:, k]
                qq[at] = qq[j * n + k] = solve(L, D, -both)
                vv[at] = vv[j * n + k] = solve(L, D, -tau_vv[:, at])
    return ca.horzcat(*qq), ca.horzcat(*qv), ca.horzcat(*vv), ca.horzcat(*qt)


def forward_dynamics_hessian(
    plan: Plan,
    q: Value,
    v: Value,
    tau: Value,
    weights: Value,
    wrenches: Value | None = None,
) -> Blocks:
    """Second derivatives of ``weightsᵀ a(q, v, τ)`` by q q, q v, v v and q τ."""
    L, D = factor(mass_matrix(plan, q))
    a = forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    own = inverse_dynamics_hessian(plan, q, v, a, solve(L, D, weights), wrenches)
    tau_q, tau_v = first_derivatives(plan, q, v, a, wrenches)
    by_force = -solve(L, D, own.qa.T).T
    bent = by_force @ tau_q
    return Blocks(-own.qq - (bent + bent.T), -own.qv - by_force @ tau_v, -own.vv, by_force)


def forward_dynamics_parameter_derivatives(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """``∂a/∂φ = −M⁻¹ Y`` by the inertial parameters φ of the bodies, nv × 10 bodies."""
    a = forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    Y = ca.sparsify(inverse_dynamics_regressor(plan, q, v, a))
    return solve(*factor(mass_matrix(plan, q)), -Y)
