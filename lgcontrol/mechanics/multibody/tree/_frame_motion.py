"""How a frame of a tree moves, and how that changes with the coordinates and velocities."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..kinematics._frames import frame_pose
from ..plan._plan import Plan
from ..plan._spatial import Motion, twist_cross


class FrameMotion(NamedTuple):
    """Pose, body twist and rate of the body twist of a frame, and their derivatives.

    Attributes
    ----------
    pose : Motion
        In the world.
    twist, rate : CasADi column, shape (6,)
    J : CasADi matrix, shape (6, nv)
        Body Jacobian: ``∂pose/∂q`` in the frame's tangent coordinates, ``∂twist/∂v`` and
        ``∂rate/∂a``.
    twist_by_q, rate_by_q, rate_by_v : CasADi matrix, shape (6, nv)
    """

    pose: Motion
    twist: Value
    rate: Value
    J: Value
    twist_by_q: Value
    rate_by_q: Value
    rate_by_v: Value


def frame_motion(plan: Plan, q: Value, v: Value, a: Value, seat: tuple[int, Motion]) -> FrameMotion:
    """Motion of a frame on a node, everything in the axes of the frame.

    A displacement of joint k by S_k turns all it carries rigidly; on top of that twists change by
    ``Ψ̇ = V_λ × S`` and their rates by ``Ψ̈ + Ψ̇ × V`` with ``Ψ̈ = V̇_λ × S + V_λ × Ψ̇`` (V_λ: the
    carrying node's; see `derivatives._first`).
    """
    k, T = seat
    V, A = ca.SX(6, 1), ca.SX(6, 1)
    for i in reversed(plan.path(k)):
        node = plan.nodes[i]
        motion, joint = node.motion(q), node.S @ v[node.v]
        V = motion.pull(V) + joint
        A = motion.pull(A) + node.S @ a[node.v] + twist_cross(V, joint)
    V, A = T.pull(V), T.pull(A)
    columns = [ca.SX(6, plan.nv) for _ in range(4)]
    own_twist, own_rate = V, A
    while k >= 0:
        node = plan.nodes[k]
        S = T.pull(node.S)
        joint = S @ v[node.v]
        twist, rate = ca.SX(6, 1), ca.SX(6, 1)  # of the carrying node
        if node.parent >= 0:
            twist = own_twist - joint
            rate = own_rate - S @ a[node.v] - twist_cross(own_twist, joint)
        first = twist_cross(twist, S)
        second = twist_cross(rate, S) + twist_cross(twist, first)
        fast = first + twist_cross(own_twist, S)
        parts = S, first, second - twist_cross(V, first), fast - twist_cross(V, S)
        for column, part in zip(columns, parts, strict=True):
            column[:, node.v] += part
        own_twist, own_rate = twist, rate
        T = node.motion(q) @ T
        k = node.parent
    return FrameMotion(frame_pose(plan, q, seat), V, A, *map(ca.sparsify, columns))
