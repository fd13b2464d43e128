"""Equations of motion in closed form: Euler–Jourdain, Lagrange, momenta."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from ...codegen import Value
from ._drives import armature, drive_forces
from ._forward_dynamics import forward_dynamics
from ._kinematics import accelerations, twists
from ._mass_matrix import factor, mass_matrix, solve
from ._plan import Plan
from ._system_matrices import (
    body_inertias,
    body_poses,
    body_twists,
    bracket_matrix,
    gravity_wrench,
    inertial_bias,
    system_jacobian,
    system_jacobian_rate,
    twist_from,
    wrench_in,
)


def euler_jourdain_equations(
    plan: Plan, q: Value, v: Value, wrenches: Value | None = None, *, reference: str
) -> tuple[Value, ...]:
    """Jacobian, its rate, inertias, bias wrenches, applied wrenches, armature, joint forces."""
    inertias, poses, V = body_inertias(plan), body_poses(plan, q), body_twists(plan, q, v)
    inertia, bias = [ca.SX(0, 0)], [ca.SX(0, 1)]
    for body, T, twist in zip(inertias, poses, V, strict=True):
        P = twist_from(T, reference)
        inertia.append(P.T @ (body @ P))
        bias.append(wrench_in(T, inertial_bias(body, twist, reference), reference))
    return (
        system_jacobian(plan, q, reference),
        system_jacobian_rate(plan, q, v, reference),
        ca.diagcat(*inertia),
        ca.vertcat(*bias),
        _applied(plan, poses, wrenches, reference),
        armature(plan),
        drive_forces(plan, q, v, ca.SX(plan.nv, 1)),
    )


def inverse_dynamics_by_projection(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None, *, reference: str
) -> Value:
    """Newton–Euler equations of all bodies, projected on the motions the joints allow."""
    J, J_rate, inertia, bias, applied, drives, own = euler_jourdain_equations(
        plan, q, v, wrenches, reference=reference
    )
    return J.T @ (inertia @ (J @ a + J_rate @ v) + bias - applied) + drives * a + own


def lagrange_equations(
    plan: Plan, q: Value, v: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """M, C and Q with ``M v̇ + C v = Q + τ``, from the stacked Jacobian.

    ``C = Jᵀ (𝖬 J̇ − 𝖻ᵀ 𝖬 J)``; of eq. 84 and 85 the matrices are equal, not only their products
    with v, once J̇ leaves out the joints' own brackets (zero for one degree of freedom).
    """
    inertias, poses = body_inertias(plan), body_poses(plan, q)
    J, rate = system_jacobian(plan, q, "body"), system_jacobian_rate(plan, q, v, "body")
    M: Value = ca.diag(armature(plan))
    C: Value = ca.SX(plan.nv, plan.nv)
    for i, (inertia, V) in enumerate(zip(inertias, body_twists(plan, q, v), strict=True)):
        at = slice(6 * i, 6 * i + 6)
        momenta = inertia @ J[at, :]
        M = M + J[at, :].T @ momenta
        C = C + J[at, :].T @ (inertia @ rate[at, :] - bracket_matrix(V).T @ momenta)
    Q = J.T @ _applied(plan, poses, wrenches, "body")
    return M, C, Q - drive_forces(plan, q, v, ca.SX(plan.nv, 1))


def body_momenta(plan: Plan, q: Value, v: Value, *, reference: str) -> Value:
    """Momentum of every moving body in a reference, 6 × bodies."""
    columns = [
        wrench_in(T, inertia @ V, reference)
        for inertia, T, V in zip(
            body_inertias(plan), body_poses(plan, q), body_twists(plan, q, v), strict=True
        )
    ]
    return ca.horzcat(ca.SX(6, 0), *columns)


def momentum_dynamics(
    plan: Plan, q: Value, momenta: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value]:
    """Velocity v and the rates of the spatial momenta (6 × bodies).

    With the projections ``Jᵀ Π`` on the joints, ``v = M⁻¹ Jᵀ Π`` by the sparse factor: the block
    triangular structure of J. Spatial momenta of carried bodies just add.
    """
    world, motions = plan.world_motions(q), plan.motions(q)
    carried: list[Value] = [ca.SX(6, 1)] * len(plan.nodes)
    for column, (_, k) in enumerate(plan.bodies):
        carried[k] = momenta[:, column]
    p = ca.SX(plan.nv, 1)
    for k in reversed(range(len(plan.nodes))):
        node = plan.nodes[k]
        p[node.v] += node.S.T @ world[k].pull_wrench(carried[k])
        if node.parent >= 0:
            carried[node.parent] = carried[node.parent] + carried[k]
    v = solve(*factor(mass_matrix(replace(plan, drives=[]), q)), p)
    a = forward_dynamics(plan, q, v, tau, wrenches)
    V = twists(plan, motions, v)
    A = accelerations(plan, motions, V, v, a, gravity=False)
    rates = [world[k].push_wrench(plan.nodes[k].inertia.force(V[k], A[k])) for _, k in plan.bodies]
    return v, ca.horzcat(ca.SX(6, 0), *rates)


def _applied(plan: Plan, poses: list, wrenches: Value | None, reference: str) -> Value:
    """Weight and external wrenches of all bodies on top of each other, in a reference."""
    rows = [ca.SX(0, 1)]
    for i, (inertia, T) in enumerate(zip(body_inertias(plan), poses, strict=True)):
        W = gravity_wrench(plan, inertia, T)
        rows.append(wrench_in(T, W if wrenches is None else W + wrenches[:, i], reference))
    return ca.vertcat(*rows)
