"""Twists, accelerations and wrenches of all nodes by recursion; motion of one node."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ....codegen._internal import check_known
from .._spatial import Pose, twist_cross
from ..compiled._added_forces import fluid_force, weights
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ..compiled._functions import Declaration, TreeFunction, declared, function_of, takes_names
from ..tree._tree import Tree
from ._frames import frame_pose, frame_twist


def twists(tree: CompiledTree, poses: list[Pose], v: Value) -> list[Value]:
    """Body twist of every node (Müller 2018, eq. 67b)."""
    V: dict[int, Value] = {-1: ca.DM(6, 1)}
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        V[k] = T.pull(V[node.parent]) + node.S @ v[node.v]
    return [V[k] for k in range(len(tree.nodes))]


def accelerations(
    tree: CompiledTree, poses: list[Pose], V: list[Value], v: Value, a: Value, *, gravity: bool
) -> list[Value]:
    """Rate of the body twist of every node (Müller 2018, eq. 67c).

    With `gravity`, the world accelerates upwards instead of the bodies being pulled down.
    """
    start = ca.vertcat(-tree.gravity, ca.DM(3, 1)) if gravity else ca.DM(6, 1)
    A: dict[int, Value] = {-1: start}
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        A[k] = T.pull(A[node.parent]) + node.S @ a[node.v]
        if node.parent >= 0:
            A[k] = A[k] + twist_cross(V[k], node.S @ v[node.v])
    return [A[k] for k in range(len(tree.nodes))]


def transmitted_wrenches(
    tree: CompiledTree,
    poses: list[Pose],
    V: list[Value],
    A: list[Value],
    wrenches: Value | None = None,
    *,
    gravity: bool = True,
    fluid: bool = True,
) -> list[Value]:
    """Wrench on every node through its joint, in the node's frame (Müller 2018, eq. 68a).

    `gravity` says whether the accelerations are less gravity, which the fluid of added mass does
    not feel; without `fluid`, its forces are left out.
    """
    loads = tree.node_wrenches(wrenches)
    has_fluid = fluid and tree.has_added_mass
    lift = weights(tree, poses) if has_fluid and gravity else [ca.DM(6, 1)] * len(tree.nodes)
    W = []
    for k, node in enumerate(tree.nodes):
        own = node.inertia.force(V[k], A[k])
        if has_fluid and node.added_mass.nnz():
            own = own + fluid_force(node.added_mass, V[k], A[k] + lift[k])
        W.append(own if loads[k] is None else own - loads[k])
    return tree.summed(W, lambda k, wrench: poses[k].push_wrench(wrench))


@declared("q v", {"twists": "b6"})
def body_velocities(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → body twists [v; ω] of all bodies, shape (..., n_bodies, 6)."""
    V = twists(tree, tree.poses(q), v)
    return _in_bodies(tree, V)


@declared("q v a", {"rates": "b6"})
def body_accelerations(tree: CompiledTree, q: Value, v: Value, a: Value) -> Value:
    """(q, v, a) → rates of the body twists, shape (..., n_bodies, 6)."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    return _in_bodies(tree, accelerations(tree, poses, V, v, a, gravity=False))


@declared("q v a", {"wrenches_out": "b6"}, wrenches=True)
def joint_wrenches(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, a[, wrenches]) → wrench on each body through its joint, (..., n, 6)."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=True)
    W = transmitted_wrenches(tree, poses, V, A, wrenches)
    return ca.horzcat(
        ca.SX(6, 0), *(tree.frames[name].pose.pull_wrench(W[k]) for name, k in tree.bodies)
    )


@takes_names
def joint_wrench(tree: Tree, joint: str) -> TreeFunction:
    """(q, v, a[, wrenches]) → wrench on the child through one joint, fixed ones too, (..., 6).

    It is what a force-torque sensor in the joint measures: in the joint frame after the
    motion, about its origin. External wrenches act on the body frame's link: beyond a fixed
    joint only those on moving bodies count.

    Raises
    ------
    KeyError
        If there is no such joint; the message lists them.
    """
    joints = [link.joint_name for link in tree._links]
    check_known("joint", joints, joint)
    declaration = Declaration(
        "joint_wrench",
        "q v a",
        {"wrench_out": "6"},
        partial(_joint_wrench, joint=joint),
        wrenches=True,
        about=joint,
        keep=(joint,),
    )
    return function_of(tree, declaration, joint)


def _joint_wrench(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None, *, joint: str
) -> Value:
    """Wrench through a joint, in the frame after its motion."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=True)
    k, T = tree.joints[joint]
    return T.pull_wrench(transmitted_wrenches(tree, poses, V, A, wrenches)[k])


def _in_bodies(tree: CompiledTree, twists: list[Value]) -> Value:
    return ca.horzcat(
        ca.SX(6, 0), *(tree.frames[name].pose.pull(twists[k]) for name, k in tree.bodies)
    )


class NodeMotion(NamedTuple):
    """Pose and body twist of a node, and their derivatives in its axes."""

    pose: Pose  # in the world
    twist: Value  # (6,)
    J: Value  # (6, nv) body Jacobian: by v of the twist, by tangent coordinates q of the pose
    twist_by_q: Value  # (6, nv)


def node_motion(tree: CompiledTree, q: Value, v: Value, k: int) -> NodeMotion:
    """Motion of a node (−1: the world, which stands).

    A displacement of a joint by S moves its whole subtree rigidly. In addition twists change by
    ``V_λ × S``. V_λ is the twist of the carrying node: V without the joint's own part.
    """
    frame = NodeFrame(k, Pose.identity())
    V = frame_twist(tree, q, v, frame)
    J, twist_by_q = ca.SX(6, tree.nv), ca.SX(6, tree.nv)
    T, twist = frame.pose, V
    for i in tree.path(k):
        node = tree.nodes[i]
        S = T.pull(node.S)
        J[:, node.v] += S
        if node.parent >= 0:
            twist = twist - S @ v[node.v]
            twist_by_q[:, node.v] += twist_cross(twist, S)
        T = node.pose(q) @ T
    pose = frame_pose(tree, q, frame)
    return NodeMotion(pose, V, ca.sparsify(J), ca.sparsify(twist_by_q))
