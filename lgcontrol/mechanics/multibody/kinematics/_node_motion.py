"""How a node of a tree moves, and how that changes with the coordinates and velocities."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, twist_cross
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ._frames import frame_pose, frame_twists


class NodeMotion(NamedTuple):
    """Pose, body twist, its rate, and their derivatives, everything in the axes of the node.

    Attributes
    ----------
    pose : Pose
        In the world.
    twist, rate : CasADi column, shape (6,)
    J : CasADi matrix, shape (6, nv)
        Body Jacobian: by v of the twist, by a of its rate, by tangent coordinates q of the pose.
    twist_by_q, rate_by_q, rate_by_v : CasADi matrix, shape (6, nv)
    """

    pose: Pose
    twist: Value
    rate: Value
    J: Value
    twist_by_q: Value
    rate_by_q: Value
    rate_by_v: Value


def node_motion(tree: CompiledTree, q: Value, v: Value, a: Value, k: int) -> NodeMotion:
    """Motion of a node (−1: the world, which stands) at the accelerations a.

    A displacement of a joint by S turns all it carries rigidly; on top of that twists change by
    ``Ψ̇ = V_λ × S`` and their rates by ``Ψ̈ + Ψ̇ × V`` with ``Ψ̈ = V̇_λ × S + V_λ × Ψ̇`` (V_λ: twist of
    the carrying node; see `derivatives._first`). V_λ is what is left of V without the joint.
    """
    frame = NodeFrame(k, Pose.identity())
    V, A = frame_twists(tree, q, [v, a], frame)
    columns = [ca.SX(6, tree.nv) for _ in range(4)]
    T, twist, rate = frame.pose, V, A
    for i in tree.path(k):
        node = tree.nodes[i]
        S = T.pull(node.S)
        joint, whole = S @ v[node.v], twist
        if node.parent >= 0:
            rate = rate - S @ a[node.v] - twist_cross(twist, joint)
            twist = twist - joint
        else:
            twist = rate = ca.SX(6, 1)
        first = twist_cross(twist, S)
        second = twist_cross(rate, S) + twist_cross(twist, first)
        fast = first + twist_cross(whole, S)
        parts = S, first, second - twist_cross(V, first), fast - twist_cross(V, S)
        for column, part in zip(columns, parts, strict=True):
            column[:, node.v] += part
        T = node.pose(q) @ T
    J, twist_by_q, rate_by_q, rate_by_v = map(ca.sparsify, columns)
    return NodeMotion(frame_pose(tree, q, frame), V, A, J, twist_by_q, rate_by_q, rate_by_v)
