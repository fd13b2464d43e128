"""Kinematics of frames: placement, Jacobian, velocity, acceleration."""

from __future__ import annotations

from typing import Literal

import casadi as ca

from ....codegen import Value
from ....groups import SE3
from ..._reference import Reference as Reference
from ..._reference import check_reference as check_reference
from ..plan._plan import Plan
from ..plan._spatial import Motion, cross, twist_cross

Acceleration = Literal["spatial", "classical"]
"""Rate of the twist, or the linear acceleration of the frame's origin on top of it."""


def frame_pose(plan: Plan, q: Value, seat: tuple[int, Motion]) -> Motion:
    """T_world_frame, multiplied from the root."""
    k, T = seat
    return plan.world_motions(q, [k])[k] @ T if k >= 0 else T


def poses_seen_from(plan: Plan, q: Value, seat: tuple[int, Motion]) -> dict[int, Motion]:
    """Poses of the nodes that carry a frame in world axes, relative to the frame's origin.

    Positions are walked from the frame, not taken as differences: those lose digits far from the
    world's origin.
    """
    k, T = seat
    path = plan.path(k)
    motions = {i: plan.nodes[i].motion(q) for i in path}
    R: dict[int, Value] = {-1: ca.DM.eye(3)}
    for i in reversed(path):
        R[i] = R[plan.nodes[i].parent] @ motions[i].R
    seen = {k: Motion(R[k], -(R[k] @ T.p))}
    for i in path:
        parent = plan.nodes[i].parent
        seen[parent] = Motion(R[parent], seen[i].p - R[parent] @ motions[i].p)
    return seen


def placement(plan: Plan, q: Value, seat: tuple[int, Motion]) -> Value:
    """SE3 coordinates of a frame."""
    T = frame_pose(plan, q, seat)
    return SE3._from_matrix(ca.SX(homogeneous(T)))


def homogeneous(T: Motion) -> Value:
    """Homogeneous matrix of a pose."""
    return ca.blockcat([[T.R, T.p], [ca.DM(1, 3), ca.DM(1)]])


def body_jacobian(plan: Plan, q: Value, seat: tuple[int, Motion]) -> Value:
    """Body Jacobian of a frame, sparse 6 × nv, walking from the frame to the root."""
    k, T = seat
    J = ca.SX(6, plan.nv)
    while k >= 0:
        node = plan.nodes[k]
        J[:, node.v] += T.pull(node.S)
        T = node.motion(q) @ T
        k = node.parent
    return J


def frame_twist(plan: Plan, q: Value, v: Value, seat: tuple[int, Motion]) -> Value:
    """Body twist of a frame, recursively."""
    k, T = seat
    V = ca.SX(6, 1)
    for i in reversed(plan.path(k)):
        node = plan.nodes[i]
        V = node.motion(q).pull(V) + node.S @ v[node.v]
    return T.pull(V)


def jacobian(plan: Plan, q: Value, seat: tuple[int, Motion], reference: str) -> Value:
    """Jacobian in a reference: ``twist = J v``."""
    J = body_jacobian(plan, q, seat)
    if reference == "body":
        return J
    T = frame_pose(plan, q, seat)
    if reference == "spatial":
        return T.push(J)
    linear, angular = T.R @ J[:3, :], J[3:, :]
    return ca.vertcat(linear, T.R @ angular if reference == "hybrid" else angular)


def wrenches_at(
    plan: Plan, q: Value, wrench: Value, seat: tuple[int, Motion], reference: str
) -> Value:
    """Wrenches on the bodies (6 × bodies) for one wrench on a frame."""
    k, T = seat
    W = T.push_wrench(in_frame(frame_pose(plan, q, seat), wrench, reference))
    columns = [
        plan.seats[name][1].pull_wrench(W) if i == k else ca.SX(6, 1) for name, i in plan.bodies
    ]
    return ca.horzcat(ca.SX(6, 0), *columns)


def in_frame(pose: Motion, wrench: Value, reference: str) -> Value:
    """A wrench in the axes and about the origin of its frame, given in a reference."""
    if reference == "body":
        return wrench
    if reference == "spatial":
        return pose.pull_wrench(wrench)
    f, m = pose.R.T @ wrench[:3], wrench[3:]
    return ca.vertcat(f, pose.R.T @ m if reference == "hybrid" else m)


def velocity(plan: Plan, q: Value, v: Value, seat: tuple[int, Motion], reference: str) -> Value:
    """Twist of a frame in a reference."""
    V = frame_twist(plan, q, v, seat)
    return V if reference == "body" else _expressed(frame_pose(plan, q, seat), V, reference)


def acceleration(
    plan: Plan,
    q: Value,
    v: Value,
    a: Value,
    seat: tuple[int, Motion],
    reference: str,
    kind: str,
) -> Value:
    """Acceleration of a frame.

    "spatial" is the body-frame rate of the twist carried into the reference's axes and point;
    "classical" has the acceleration of the frame's origin for its linear part.
    """
    k, T = seat
    V, A = ca.SX(6, 1), ca.SX(6, 1)
    for i in reversed(plan.path(k)):
        node = plan.nodes[i]
        motion, joint = node.motion(q), node.S @ v[node.v]
        V = motion.pull(V) + joint
        A = motion.pull(A) + node.S @ a[node.v] + twist_cross(V, joint)
    V, A = T.pull(V), T.pull(A)
    pose = frame_pose(plan, q, seat)
    if kind == "classical" and reference == "spatial":
        # The point of the body that is at the world's origin.
        V, A = pose.push(V), pose.push(A)
        return A + ca.vertcat(cross(V[3:], V[:3]), ca.DM(3, 1))
    if kind == "classical":
        A = A + ca.vertcat(cross(V[3:], V[:3]), ca.DM(3, 1))
    return A if reference == "body" else _expressed(pose, A, reference)


def _expressed(T: Motion, V: Value, reference: str) -> Value:
    if reference == "spatial":
        return T.push(V)
    return ca.vertcat(T.R @ V[:3], T.R @ V[3:] if reference == "hybrid" else V[3:])
