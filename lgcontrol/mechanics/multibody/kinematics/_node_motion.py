"""How a node of a tree moves, and how that changes with the coordinates and velocities."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, twist_cross
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ._frames import frame_pose, frame_twist


class NodeMotion(NamedTuple):
    """Pose and body twist of a node, and their derivatives in its axes.

    Attributes
    ----------
    pose : Pose
        In the world.
    twist : CasADi column, shape (6,)
    J : CasADi matrix, shape (6, nv)
        Body Jacobian: by v of the twist, by tangent coordinates q of the pose.
    twist_by_q : CasADi matrix, shape (6, nv)
    """

    pose: Pose
    twist: Value
    J: Value
    twist_by_q: Value


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
