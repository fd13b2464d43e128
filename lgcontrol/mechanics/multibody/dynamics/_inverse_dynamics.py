"""Inverse dynamics: Newton–Euler recursion in body frames."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from .._spatial import couple, cross, point_accelerations
from ..compiled._added_mass import force as added_mass_force
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import declared
from ..compiled._joint_forces import joint_forces
from ..kinematics._recursions import accelerations, twists
from ..large_trees import _recursions as large


@declared("q v a", {"tau": "v"}, regrouped=True, wrenches=True, large=large.INVERSE_DYNAMICS)
def inverse_dynamics(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, a[, wrenches]) → tau: forces that the accelerations need, shape (..., nv).

    Their time derivatives: `inverse_dynamics_time_derivatives`.
    """
    return body_forces(tree, q, v, a, wrenches) + joint_forces(tree, q, v, a)


@declared("q v", {"tau": "v"}, regrouped=True, wrenches=True, large=large.BIAS_FORCES)
def bias_forces(tree: CompiledTree, q: Value, v: Value, wrenches: Value | None = None) -> Value:
    """(q, v[, wrenches]) → tau at a = 0: Coriolis, centrifugal, weight, losses, springs."""
    return inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1), wrenches)


@declared("q", {"tau": "v"}, regrouped=True, large=large.GRAVITY_FORCES)
def gravity_forces(tree: CompiledTree, q: Value) -> Value:
    """``q`` → tau that holds the tree at rest against weight and springs, shape (..., nv)."""
    none = ca.SX(tree.nv, 1)
    return inverse_dynamics(tree, q, none, none)


def body_forces(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces of the bodies alone, and of the fluid that moves along.

    Newton–Euler with the classical acceleration of the frame origins: the linear velocity of a
    body never appears, only that of a joint. With ``U = ω̇^ + ω^ ω^`` the points of a body
    accelerate by ``p̈ + U r``. Their moment is a contraction of U with the second moments Σ = ∫ r
    rᵀ dm. It takes fewer operations than ``J ω̇ + ω × J ω``. (Müller 2018, section 4.1, has the
    recursion with twists: the two agree.)
    """
    nodes, poses = tree.nodes, tree.poses(q)
    U: dict[int, Value] = {-1: ca.DM(3, 3)}
    w: dict[int, Value] = {-1: ca.DM(3, 1)}
    dw: dict[int, Value] = {-1: ca.DM(3, 1)}
    acc: dict[int, Value] = {-1: -tree.gravity}
    force, moment = [], []
    loads = tree.node_wrenches(wrenches)
    if tree.has_added_mass:
        V = twists(tree, poses, v)
        A = accelerations(tree, poses, V, v, a, gravity=False)
        for k, node in enumerate(nodes):
            if node.added_mass.nnz():
                own = -added_mass_force(node.added_mass, V[k], A[k])
                loads[k] = own if loads[k] is None else loads[k] + own
    for k, (node, T) in enumerate(zip(nodes, poses, strict=True)):
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
    tau = ca.SX(tree.nv, 1)
    for k in reversed(range(len(nodes))):
        node, T = nodes[k], poses[k]
        tau[node.v] += node.S.T @ ca.vertcat(force[k], moment[k])
        if node.parent >= 0:
            f = T.R @ force[k]
            force[node.parent] = force[node.parent] + f
            moment[node.parent] = moment[node.parent] + T.R @ moment[k] + cross(T.p, f)
    return tau
