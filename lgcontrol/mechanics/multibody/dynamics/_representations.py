"""Inverse dynamics by recursion with body-fixed, spatial, hybrid and mixed twists.

Müller, "Screw and Lie group theory in multibody dynamics" (2018), section 4: eq. 67–68, 71–72,
76–77, and the mixed form, for which the paper has the equations of one body only (57–58). Here
joints are groups of any dimension: ``J q̇`` is ``J v`` with the joint's own body-fixed velocity,
and ``J̇ v = ad_V J v``, because the motion subspace is constant in the node it moves.

Two mends of the paper: external wrenches are what acts on the bodies and count negative in eq.
68a, 72b and 77b, as in eq. 78, and the recursions for the wrenches start at the last body, i = n.

The recursion of `inverse_dynamics` is a fifth one, with the accelerations of points in place of
rates of twists; it has the fewest operations of all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..._reference import Reference, check_reference
from .._spatial import Pose, couple, cross, point_accelerations, twist_cross
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import Declaration, TreeFunction, function_of, takes_names
from ..compiled._joint_forces import joint_forces
from ..kinematics._recursions import accelerations, transmitted_wrenches, twists
from ..tree._tree import Tree


@takes_names
def inverse_dynamics_by_recursion(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """(q, v, a[, wrenches]) → tau as `inverse_dynamics`, with twists in a representation.

    All give the same forces, to rounding: drives, losses, springs, weight and external
    wrenches are in them (the latter in body frames, as everywhere). These are for study, for
    comparison, and as a start for algorithms that need one of the representations;
    `inverse_dynamics` takes fewer operations. For 64 bodies in general places on hinges a body
    takes 214 instructions with that, and with twists 250 (body), 288 (mixed), 316 (hybrid)
    and 373 (spatial): frames on the bodies keep the zeros of joint screws and inertias.
    "spatial" loses digits where a tree is far from the world's origin, compared to its size.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}
        What the twists and wrenches in the recursion are measured at and resolved in; see
        `lgcontrol.mechanics.representations`.

    Returns
    -------
    TreeFunction

    Raises
    ------
    ValueError
        If there is no such representation; the message lists them.

    References
    ----------
    Müller 2018, section 4: eq. 67–68 (body), 71–72 (spatial), 76–77 (hybrid), 57–58 (mixed).

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> pendulum = Multibody("pendulum").add_body("rod", rod, "revolute", axis="y")
    >>> pendulum.inverse_dynamics_by_recursion("hybrid")([0.0], [0.0], [3.0]).round(12)
    array([2.])
    """
    check_reference(reference)
    declaration = Declaration(
        "inverse_dynamics_by_recursion",
        "q v a",
        {"tau": "v"},
        partial(_by_recursion, reference=reference),
        regrouped=True,
        wrenches=True,
        about=f"{reference} twists",
        is_rigid=True,
    )
    return function_of(tree, declaration, reference)


def _body(tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None) -> list[Value]:
    """Forces of each node's joint with body-fixed twists (eq. 67b, 67c, 68)."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=True)
    W = transmitted_wrenches(tree, poses, V, A, wrenches)
    return [node.S.T @ wrench for node, wrench in zip(tree.nodes, W, strict=True)]


def _spatial(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None
) -> list[Value]:
    """Forces of each node's joint with spatial twists (eq. 71, 72).

    Twists and wrenches of different bodies add as they are; screws and inertias are what changes
    frames.
    """
    world = tree.world_poses(q)
    V: dict[int, Value] = {-1: ca.DM(6, 1)}
    A: dict[int, Value] = {-1: ca.vertcat(-tree.gravity, ca.DM(3, 1))}
    screws, W = [], []
    loads = tree.node_wrenches(wrenches)
    for k, node in enumerate(tree.nodes):
        J = world[k].push(node.S)
        joint = J @ v[node.v]
        V[k] = V[node.parent] + joint
        A[k] = A[node.parent] + J @ a[node.v]
        if node.parent >= 0:
            A[k] = A[k] + twist_cross(V[node.parent], joint)
        own = node.inertia.moved(world[k]).force(V[k], A[k])
        W.append(own if loads[k] is None else own - world[k].push_wrench(loads[k]))
        screws.append(J)
    for k, parent in _upwards(tree):
        W[parent] = W[parent] + W[k]
    return [J.T @ wrench for J, wrench in zip(screws, W, strict=True)]


class _PointMotion(NamedTuple):
    """What moves on from node to node where twists are measured at the nodes' origins.

    Attributes
    ----------
    w, dw : angular velocity and acceleration
    U : ``ω̇^ + ω^ ω^``
    acc : acceleration of the origin, world axes, less gravity
    """

    w: Value
    dw: Value
    U: Value
    acc: Value

    @classmethod
    def of_world(cls, tree: CompiledTree) -> _PointMotion:
        """The world, which accelerates upwards instead of the bodies being pulled down."""
        return cls(ca.DM(3, 1), ca.DM(3, 1), ca.DM(3, 3), -tree.gravity)


def _hybrid(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None
) -> list[Value]:
    """Forces of each node's joint with hybrid twists (eq. 76, 77).

    With ``ṙ_i − ṙ_λ`` written as what the turning parent and the joint make of it (eq. 73), the
    linear velocities themselves are not needed.
    """
    poses, world = tree.poses(q), tree.world_poses(q)
    state = {-1: _PointMotion.of_world(tree)}
    screws, force, moment, arms = [], [], [], []
    loads = tree.node_wrenches(wrenches)
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        R, before = world[k].R, state[node.parent]
        X = ca.vertcat(R @ node.S[:3, :], R @ node.S[3:, :])
        joint, rate = X @ v[node.v], X @ a[node.v]
        arm = world[node.parent].R @ T.p
        w = before.w + joint[3:]
        dw = before.dw + rate[3:] + cross(w, joint[3:])
        acc = before.acc + before.U @ arm + cross(before.w + w, joint[:3]) + rate[:3]
        U = point_accelerations(w, dw)
        state[k] = _PointMotion(w, dw, U, acc)
        m, h, Sigma = node.inertia.moved(Pose(R, ca.DM(3, 1)))
        force.append(m * acc + U @ h)
        moment.append(couple(Sigma, U) + cross(h, acc))
        load = loads[k]
        if load is not None:
            force[k] = force[k] - R @ load[:3]
            moment[k] = moment[k] - R @ load[3:]
        screws.append(X)
        arms.append(arm)
    for k, parent in _upwards(tree):
        force[parent] = force[parent] + force[k]
        moment[parent] = moment[parent] + moment[k] + cross(arms[k], force[k])
    return [X.T @ ca.vertcat(f, n) for X, f, n in zip(screws, force, moment, strict=True)]


def _mixed(tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None) -> list[Value]:
    """Forces of each node's joint with mixed twists (eq. 57, 58 for each body)."""
    poses, world = tree.poses(q), tree.world_poses(q)
    state = {-1: _PointMotion.of_world(tree)}
    force, moment = [], []
    loads = tree.node_wrenches(wrenches)
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        R, before = world[k].R, state[node.parent]
        joint, rate = node.S @ v[node.v], node.S @ a[node.v]
        carried = T.R.T @ before.w
        w = carried + joint[3:]
        dw = T.R.T @ before.dw + rate[3:] + cross(carried, joint[3:])
        slid = cross(2 * carried + joint[3:], joint[:3]) + rate[:3]
        acc = before.acc + world[node.parent].R @ (before.U @ T.p) + R @ slid
        U = point_accelerations(w, dw)
        state[k] = _PointMotion(w, dw, U, acc)
        m, h, Sigma = node.inertia
        force.append(m * acc + R @ (U @ h))
        moment.append(couple(Sigma, U) + cross(h, R.T @ acc))
        load = loads[k]
        if load is not None:
            force[k] = force[k] - R @ load[:3]
            moment[k] = moment[k] - load[3:]
    for k, parent in _upwards(tree):
        T = poses[k]
        force[parent] = force[parent] + force[k]
        arm_force = world[parent].R.T @ force[k]
        moment[parent] = moment[parent] + T.R @ moment[k] + cross(T.p, arm_force)
    return [
        node.S[:3, :].T @ (world[k].R.T @ force[k]) + node.S[3:, :].T @ moment[k]
        for k, node in enumerate(tree.nodes)
    ]


def _upwards(tree: CompiledTree) -> list[tuple[int, int]]:
    """Nodes with their parents from the last to the first, without those on the world."""
    parents = [(k, node.parent) for k, node in enumerate(tree.nodes) if node.parent >= 0]
    return parents[::-1]


_JointForces = Callable[[CompiledTree, Value, Value, Value, Value | None], list[Value]]


_RECURSIONS: dict[Reference, _JointForces] = {
    "body": _body,
    "spatial": _spatial,
    "hybrid": _hybrid,
    "mixed": _mixed,
}


def _by_recursion(
    tree: CompiledTree,
    q: Value,
    v: Value,
    a: Value,
    wrenches: Value | None = None,
    *,
    reference: Reference,
) -> Value:
    """Generalized forces for the accelerations a, with drives, losses and springs."""
    tau = joint_forces(tree, q, v, a)
    forces = _RECURSIONS[reference](tree, q, v, a, wrenches)
    for node, force in zip(tree.nodes, forces, strict=True):
        tau[node.v] += force
    return tau
