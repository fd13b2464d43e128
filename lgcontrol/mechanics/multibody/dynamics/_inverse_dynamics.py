"""Inverse dynamics: Newton–Euler recursion in body frames."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..plan._drives import drive_forces
from ..plan._plan import Plan
from ..plan._spatial import couple, cross, point_accelerations


def inverse_dynamics(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces for the accelerations a, with drives, losses and springs."""
    return rigid_forces(plan, q, v, a, wrenches) + drive_forces(plan, q, v, a)


def rigid_forces(plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None) -> Value:
    """Generalized forces of the bodies alone.

    Newton–Euler with the classical acceleration of the frame origins: the linear velocity of a
    body never appears, only that of a joint. With ``U = ω̇^ + ω^ ω^`` the points of a body
    accelerate by ``p̈ + U r``; the moment of these is a contraction of U with the second moments
    Σ = ∫ r rᵀ dm, fewer operations than ``J ω̇ + ω × J ω``. (Müller 2018, section 4.1, has the
    recursion with twists: the two agree.)
    """
    nodes, motions = plan.nodes, plan.motions(q)
    U: dict[int, Value] = {-1: ca.DM(3, 3)}
    w: dict[int, Value] = {-1: ca.DM(3, 1)}
    dw: dict[int, Value] = {-1: ca.DM(3, 1)}
    acc: dict[int, Value] = {-1: -plan.gravity}
    force, moment = [], []
    loads = node_wrenches(plan, wrenches)
    for k, (node, T) in enumerate(zip(nodes, motions, strict=True)):
        i, back = node.parent, T.R.T
        twist, rate = node.S @ v[node.v], node.S @ a[node.v]
        carried = back @ w[i]
        w[k] = carried + twist[3:]
        dw[k] = back @ dw[i] + rate[3:] + cross(carried, twist[3:])
        acc[k] = back @ (acc[i] + U[i] @ T.p) + cross(2 * carried + twist[3:], twist[:3]) + rate[:3]
        U[k] = point_accelerations(w[k], dw[k])
        m, h, Sigma = node.inertia
        force.append(m * acc[k] + U[k] @ h)
        moment.append(couple(Sigma, U[k]) + cross(h, acc[k]))
        load = loads[k]
        if load is not None:
            force[k] = force[k] - load[:3]
            moment[k] = moment[k] - load[3:]
    tau = ca.SX(plan.nv, 1)
    for k in reversed(range(len(nodes))):
        node, T = nodes[k], motions[k]
        tau[node.v] += node.S.T @ ca.vertcat(force[k], moment[k])
        if node.parent >= 0:
            f = T.R @ force[k]
            force[node.parent] = force[node.parent] + f
            moment[node.parent] = moment[node.parent] + T.R @ moment[k] + cross(T.p, f)
    return tau


def node_wrenches(plan: Plan, wrenches: Value | None) -> list[Value | None]:
    """External wrenches (6 × bodies, body frames) in the frames of the nodes."""
    loads: list[Value | None] = [None] * len(plan.nodes)
    if wrenches is not None:
        for column, (name, k) in enumerate(plan.bodies):
            loads[k] = plan.seats[name][1].push_wrench(wrenches[:, column])
    return loads
