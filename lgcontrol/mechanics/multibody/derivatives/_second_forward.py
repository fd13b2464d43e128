"""Second derivatives of forward dynamics from those of inverse dynamics.

Differentiating ``τ = τ(q, v, a(q, v, τ))`` twice, with x and y any of q, v, τ:
``M ∂²a/∂x∂y = −(∂²τ/∂x∂y + ∂²τ/∂x∂a ∂a/∂y + ∂²τ/∂y∂a ∂a/∂x)``, at the accelerations that the
forces cause.
"""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..closed_forms._connection import inverse_slopes, times_slopes
from ..dynamics._forward_dynamics import forward_dynamics_by_factor
from ..dynamics._mass_matrix import factor, inverse, mass_matrix, solve
from ..parameters._regressor import inverse_dynamics_regressor
from ..plan._plan import Plan
from ._second_parts import first_derivatives
from ._second_tensors import inverse_dynamics_second_derivatives
from ._second_weighted import Blocks, inverse_dynamics_hessian


def forward_dynamics_second_parts(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, ...]:
    """Tensors of inverse dynamics, and ∂a/∂q, ∂a/∂v, ∂a/∂τ: for `forward_dynamics_tensors`."""
    L, D = factor(mass_matrix(plan, q))
    a = forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    tensors = inverse_dynamics_second_derivatives(plan, q, v, a, wrenches)
    tau_q, tau_v = first_derivatives(plan, q, v, a, wrenches)
    return *tensors, solve(L, D, -tau_q), solve(L, D, -tau_v), inverse(L, D)


def forward_dynamics_tensors(
    tau_qq: Value,
    tau_qv: Value,
    tau_vv: Value,
    tau_qa: Value,
    a_q: Value,
    a_v: Value,
    a_tau: Value,
) -> tuple[Value, Value, Value, Value]:
    """∂²a/∂q², ∂²a/∂q∂v, ∂²a/∂v² and ∂²a/∂q∂τ, slices side by side, nv × nv² each.

    They are full: products of matrices, where entry by entry the code would be as long as the
    number of operations.
    """
    n = a_q.shape[0]
    # ∂M/∂q_j for all j, one below the other.
    slopes = ca.vertcat(tau_qa[:0, :n], *(tau_qa[:, j::n] for j in range(n)))
    bent = times_slopes(slopes, a_q)
    halves = [k * n + j for k in range(n) for j in range(k + 1)]
    swapped = [j * n + k for k in range(n) for j in range(k + 1)]
    place = {column: at for at, column in enumerate(halves)}
    whole = [place[max(j, k) * n + min(j, k)] for k in range(n) for j in range(n)]
    qq = a_tau @ (tau_qq[:, halves] + bent[:, halves] + bent[:, swapped])
    qv = a_tau @ (tau_qv + times_slopes(slopes, a_v))
    vv = a_tau @ tau_vv[:, halves]
    return -qq[:, whole], -qv, -vv[:, whole], inverse_slopes(a_tau, slopes)


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
