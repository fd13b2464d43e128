"""Inverse dynamics and its time derivatives: Newton–Euler recursion in body frames.

Inertial wrenches are linear in the acceleration p̈ of a body's origin and in the field of
accelerations about it, ``U = ω̇^ + ω^ ω^``, with constant numbers in body axes. Their derivatives
are the same wrenches of derivatives of p̈ and U; those of ω and p̈ follow from the parent's, and
those of the wrenches from the children's, by brackets with the joint's own twist (`carried`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import comb

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, couple, cross, point_accelerations, wrench_cross
from ..compiled._added_mass import force as added_mass_force
from ..compiled._compiled_tree import CompiledTree, Node
from ..compiled._functions import (
    Declaration,
    TreeFunction,
    check_order,
    declared,
    function_of,
    rate_names,
    takes_names,
)
from ..compiled._joint_forces import joint_force_derivatives, joint_forces
from ..kinematics._frames import carried, seen_at_rest
from ..kinematics._recursions import accelerations, twists
from ..large_trees import _recursions as large
from ..tree._tree import Tree


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


@takes_names
def inverse_dynamics_time_derivatives(tree: Tree, order: int = 1) -> TreeFunction:
    """(q, v, a, j, …[, wrenches]) → tau, tau_dot, tau_ddot, …, shape (..., nv) each.

    Forces that a motion needs and how they change along it, all orders in one call because
    they share their work. Flatness-based control of series-elastic arms takes order 2: motors
    of inertias B behind springs K stand at ``θ = q + K⁻¹ tau`` and give ``B θ̈ + tau``, with
    ``θ̈ = a + K⁻¹ tau_ddot``.

    Parameters
    ----------
    order : int
        At least 1. Order 1 takes (q, v, a, j), order 2 (q, v, a, j, s), and so on.

    Returns
    -------
    TreeFunction
        Results are a named tuple: tau (that of `inverse_dynamics`), tau_dot, tau_ddot, then
        tau_3, tau_4, ….

    Raises
    ------
    ValueError
        If the order is not an integer of at least 1.

    Notes
    -----
    Weight, drives, losses (smooth dry friction, too) and springs are in. External wrenches
    are constant in their bodies' frames; those that change are added by Leibniz' rule with
    `jacobian_time_derivative`. Dry friction over a small `friction_speed` gives large
    derivatives where a joint turns back.

    For the UR5, orders up to 1 take 784 operations and up to 2 take 1424 (378 for tau alone);
    automatic differentiation along the motion 1340 and 4446. For the Panda 1459 and 2530
    (705) instead of 2567 and 8555.

    References
    ----------
    Müller 2018, section 6.3: Newton–Euler recursion (eq. 67, 68) differentiated in time.

    Examples
    --------
    A ball of 2 kg on a level hinge, 1 m below it, at jerk 1:

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> tree.inverse_dynamics_time_derivatives()([0.0], [3.0], [0.0], [1.0]).tau_dot.round(2)
    array([60.86])
    """
    order = check_order(order, "tree.inverse_dynamics")
    names = ["tau", "tau_dot", "tau_ddot", *(f"tau_{n}" for n in range(3, order + 1))]
    declaration = Declaration(
        "inverse_dynamics_time_derivatives",
        " ".join(["q", *rate_names(order + 2)]),
        dict.fromkeys(names[: order + 1], "v"),
        partial(_time_derivatives, order=order),
        regrouped=True,
        wrenches=True,
        is_rigid=True,
    )
    return function_of(tree, declaration, order)


def body_forces(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces of the bodies alone, and of the fluid that moves along.

    Newton–Euler with the classical acceleration of the frame origins: the linear velocity of a
    body never appears, only that of a joint. With ``U = ω̇^ + ω^ ω^`` the points of a body
    accelerate by ``p̈ + U r``; the moment of these is a contraction of U with the second moments
    Σ = ∫ r rᵀ dm, fewer operations than ``J ω̇ + ω × J ω``. (Müller 2018, section 4.1, has the
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


def _time_derivatives(
    tree: CompiledTree, q: Value, *values: Value, order: int
) -> tuple[Value, ...]:
    """Generalized forces and their time derivatives up to an order.

    `values` are v, a, … (order + 2 of them), then wrenches, constant in their bodies, or none.
    """
    rates, wrenches = values[: order + 2], values[order + 2 :]
    bodies = _rigid_derivatives(tree, q, rates, wrenches[0] if wrenches else None)
    armatures = joint_force_derivatives(tree, q, rates)
    return tuple(own + drive for own, drive in zip(bodies, armatures, strict=True))


def _rigid_derivatives(
    tree: CompiledTree, q: Value, rates: Sequence[Value], wrenches: Value | None
) -> list[Value]:
    """Generalized forces of the bodies alone, and their time derivatives."""
    orders, poses = range(len(rates) - 1), tree.poses(q)
    W = _inertial_wrenches(tree, poses, rates)
    for own, load in zip(W, tree.node_wrenches(wrenches), strict=True):
        if load is not None:
            own[0] = own[0] - load
    tau = [ca.SX(tree.nv, 1) for _ in orders]
    for k in reversed(range(len(W))):
        node, T = tree.nodes[k], poses[k]
        twist = [node.S @ rate[node.v] for rate in rates]
        for n in orders:
            tau[n][node.v] += node.S.T @ W[k][n]
        if node.parent >= 0:
            at_rest = seen_at_rest(W[k], lambda m, x, own=twist: wrench_cross(own[m], x))
            for n in orders:
                W[node.parent][n] = W[node.parent][n] + T.push_wrench(at_rest[n])
    return tau


def _inertial_wrenches(
    tree: CompiledTree, poses: list[Pose], rates: Sequence[Value]
) -> list[list[Value]]:
    """Derivatives of what every node's mass needs to accelerate and to be held against weight."""
    orders, none = range(len(rates) - 1), ca.DM(3, 1)
    w: dict[int, list[Value]] = {-1: [none for _ in rates]}
    acc: dict[int, list[Value]] = {-1: [-tree.gravity, *(none for _ in orders[1:])]}
    U: dict[int, list[Value]] = {-1: [ca.DM(3, 3) for _ in orders]}
    W: list[list[Value]] = []
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        i, twist = node.parent, [node.S @ rate[node.v] for rate in rates]
        linear, spin = [x[:3] for x in twist], [x[3:] for x in twist]

        def turned(m: int, x: Value, spin: list[Value] = spin) -> Value:
            return -cross(spin[m], x)

        lever = _lever_derivatives(T, linear, spin)
        rest = [
            sum((comb(n, m) * (U[i][n - m] @ lever[m]) for m in range(n + 1)), acc[i][n])
            for n in orders
        ]
        base = carried([T.R.T @ x for x in w[i]], turned)
        w[k] = [x + own for x, own in zip(base, spin, strict=True)]
        acc[k] = carried([T.R.T @ x for x in rest], turned)
        for n in orders:
            acc[k][n] = acc[k][n] + linear[n + 1]
            for m in range(n + 1):
                shear = 2 * base[m] + spin[m]
                acc[k][n] = acc[k][n] + comb(n, m) * cross(shear, linear[n - m])
        U[k] = [_field(w[k], n) for n in orders]
        W.append([_wrench(node, acc[k][n], U[k][n]) for n in orders])
    return W


def _lever_derivatives(T: Pose, linear: list[Value], spin: list[Value]) -> list[Value]:
    """Derivatives of the node's origin in its parent's axes: one fewer than the joint's rates."""
    moved = seen_at_rest(linear[:-2], lambda m, x: cross(spin[m], x))
    return [T.p, *(T.R @ x for x in moved)]


def _field(w: list[Value], n: int) -> Value:
    """n-th derivative of ``U = ω̇^ + ω^ ω^``."""

    def product(a: int, b: int) -> Value:
        return sum(comb(n, i) * (w[i][a] * w[n - i][b]) for i in range(n + 1))

    def square(a: int) -> Value:
        twice = sum(comb(n, i) * (w[i][a] * w[n - i][a]) for i in range((n + 1) // 2))
        return 2 * twice + (comb(n, n // 2) * w[n // 2][a] ** 2 if n % 2 == 0 else 0)

    x, y, z = (w[n + 1][a] for a in range(3))
    xx, yy, zz = (square(a) for a in range(3))
    xy, xz, yz = product(0, 1), product(0, 2), product(1, 2)
    return ca.sparsify(
        ca.blockcat(
            [
                [-(yy + zz), xy - z, xz + y],
                [xy + z, -(xx + zz), yz - x],
                [xz - y, yz + x, -(xx + yy)],
            ]
        )
    )


def _wrench(node: Node, acc: Value, U: Value) -> Value:
    """Inertial wrench of a node for the acceleration of its origin and the field about it."""
    m, h, Sigma = node.inertia
    return ca.vertcat(m * acc + U @ h, couple(Sigma, U) + cross(h, acc))
