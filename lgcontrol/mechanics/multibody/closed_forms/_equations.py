"""Equations of motion in closed form: Euler–Jourdain, Lagrange, momenta."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from ....codegen import Value
from ..dynamics._forward_dynamics import forward_dynamics
from ..dynamics._mass_matrix import factor, mass_matrix, solve
from ..kinematics._kinematics import accelerations, twists
from ..plan._drives import armature, drive_forces
from ..plan._plan import Plan
from ._system_matrices import (
    BodyState,
    body_states,
    bracket_matrix,
    gravity_wrench,
    inertial_bias,
    twist_from,
    wrench_in,
)


def euler_jourdain_equations(
    plan: Plan, q: Value, v: Value, wrenches: Value | None = None, *, reference: str
) -> tuple[Value, ...]:
    """Jacobian, its rate, inertias, bias wrenches, applied wrenches, armature, joint forces."""
    J, rate = [ca.SX(0, plan.nv)], [ca.SX(0, plan.nv)]
    inertia, bias, applied = [ca.SX(0, 0)], [ca.SX(0, 1)], [ca.SX(0, 1)]
    for i, body in enumerate(body_states(plan, q, v)):
        P = twist_from(body.pose, reference)
        inertia.append(P.T @ (body.inertia @ P))
        own = inertial_bias(body.inertia, body.twist, reference)
        bias.append(wrench_in(body.pose, own, reference))
        applied.append(wrench_in(body.pose, _applied(plan, body, wrenches, i), reference))
        own, own_rate = body.jacobians(reference)
        J.append(own)
        rate.append(own_rate)
    return (
        ca.vertcat(*J),
        ca.vertcat(*rate),
        ca.diagcat(*inertia),
        ca.vertcat(*bias),
        ca.vertcat(*applied),
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

    ``C = Jᵀ (𝖬 J̇ − bᵀ 𝖬 J)``; of eq. 84 and 85 the matrices are equal, not only their products
    with v, once J̇ leaves out the joints' own brackets (zero for one degree of freedom).
    """
    M: Value = ca.diag(armature(plan))
    C: Value = ca.SX(plan.nv, plan.nv)
    Q = -drive_forces(plan, q, v, ca.SX(plan.nv, 1))
    for i, body in enumerate(body_states(plan, q, v)):
        momenta = body.inertia @ body.J
        M = M + body.J.T @ momenta
        turned = bracket_matrix(body.twist).T @ momenta
        C = C + body.J.T @ (body.inertia @ body.J_rate - turned)
        Q = Q + body.J.T @ _applied(plan, body, wrenches, i)
    return M, C, Q


def body_momenta(plan: Plan, q: Value, v: Value, *, reference: str) -> Value:
    """Momentum of every moving body in a reference, 6 × bodies."""
    columns = [
        wrench_in(body.pose, body.inertia @ body.twist, reference)
        for body in body_states(plan, q, v)
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


def _applied(plan: Plan, body: BodyState, wrenches: Value | None, i: int) -> Value:
    """Weight and external wrench of a body, in its frame."""
    W = gravity_wrench(plan, body.inertia, body.pose)
    return W if wrenches is None else W + wrenches[:, i]
