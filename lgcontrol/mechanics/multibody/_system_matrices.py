"""Twists, Jacobians and inertias of all bodies stacked: the matrices of the closed forms.

Rows are the moving bodies in the order of `Multibody.bodies`, six each, in the bodies' link frames.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ...codegen import Value
from . import _frames as frames
from ._kinematics import twists
from ._plan import Plan
from ._spatial import Inertia, Motion, cross, hat, twist_cross


class SystemMatrices(NamedTuple):
    """Factors of the body-fixed system Jacobian ``J = A X`` (Müller 2018, eq. 9, 10, 83, 112)."""

    A: Value
    X: Value
    X_rate: Value
    ad_joints: Value
    ad_bodies: Value
    M: Value


def system_jacobian(plan: Plan, q: Value, reference: str) -> Value:
    """Jacobians of all bodies on top of each other, 6 bodies × nv."""
    seats = [plan.seats[name] for name, _ in plan.bodies]
    return ca.vertcat(
        ca.SX(0, plan.nv), *(frames.jacobian(plan, q, seat, reference) for seat in seats)
    )


def system_jacobian_rate(plan: Plan, q: Value, v: Value, reference: str) -> Value:
    """Time derivative of `system_jacobian`."""
    seats = [plan.seats[name] for name, _ in plan.bodies]
    return ca.vertcat(
        ca.SX(0, plan.nv), *(frames.jacobian_rate(plan, q, v, seat, reference) for seat in seats)
    )


def system_matrices(plan: Plan, q: Value, v: Value) -> SystemMatrices:
    """A, X, Ẋ, a, b and the inertias, body-fixed."""
    number = {k: i for i, (_, k) in enumerate(plan.bodies)}
    rows: list[list[Value]] = []
    X, X_rate, V = [], [], []
    for name, _ in plan.bodies:
        parent, T, own, rate = _joint(plan, q, v, plan.seats[name], set(number))
        i = number.get(parent, -1)
        if i >= 0:
            T = plan.seats[plan.bodies[i][0]][1].inverse() @ T
        row = [T.pull(block) for block in rows[i]] if i >= 0 else []
        row += [ca.SX(6, 6)] * (len(rows) - len(row)) + [ca.DM.eye(6)]
        rows.append(row)
        V.append(own @ v + (T.pull(V[i]) if i >= 0 else 0))
        X.append(own)
        X_rate.append(rate)
    count = len(rows)
    full = [row + [ca.SX(6, 6)] * (count - len(row)) for row in rows]
    return SystemMatrices(
        ca.blockcat(full) if full else ca.SX(0, 0),
        ca.vertcat(ca.SX(0, plan.nv), *X),
        ca.vertcat(ca.SX(0, plan.nv), *X_rate),
        ca.diagcat(ca.SX(0, 0), *(bracket_matrix(own @ v) for own in X)),
        ca.diagcat(ca.SX(0, 0), *(bracket_matrix(twist) for twist in V)),
        ca.diagcat(ca.SX(0, 0), *(inertia @ ca.DM.eye(6) for inertia in body_inertias(plan))),
    )


def bracket_matrix(V: Value) -> Value:
    """Matrix ``ad_V``."""
    return twist_cross(V, ca.DM.eye(6))


def body_inertias(plan: Plan) -> list[Inertia]:
    """Inertia of every moving body, with what is fixed to it, in its link frame."""
    return [plan.nodes[k].inertia.moved(plan.seats[name][1].inverse()) for name, k in plan.bodies]


def body_poses(plan: Plan, q: Value) -> list[Motion]:
    """T_world_body of every moving body."""
    world = plan.world_motions(q)
    return [world[k] @ plan.seats[name][1] for name, k in plan.bodies]


def body_twists(plan: Plan, q: Value, v: Value) -> list[Value]:
    """Body twist of every moving body, in its link frame."""
    V = twists(plan, plan.motions(q), v)
    return [plan.seats[name][1].pull(V[k]) for name, k in plan.bodies]


def wrench_in(T: Motion, W: Value, reference: str) -> Value:
    """Body wrenches (columns) in a reference, for the body's pose T_world_body."""
    if reference == "body":
        return W
    if reference == "spatial":
        return T.push_wrench(W)
    f, m = T.R @ W[:3, :], W[3:, :]
    return ca.vertcat(f, T.R @ m if reference == "hybrid" else m)


def twist_from(T: Motion, reference: str) -> Value:
    """6 × 6 matrix P with body twist ``P V`` for twists V in a reference."""
    if reference == "body":
        return ca.DM.eye(6)
    if reference == "spatial":
        return T.pull(ca.DM.eye(6))
    return ca.diagcat(T.R.T, T.R.T if reference == "hybrid" else ca.DM.eye(3))


def inertial_bias(inertia: Inertia, V: Value, reference: str) -> Value:
    """``W − I P V̇`` in body axes, for the body twist V and the rate V̇ of its form in a reference.

    The matrix P of `twist_from` has the rate ``−β P``: β V is 0 for body and spatial twists,
    [ω × v; 0] for hybrid and mixed ones.
    """
    turned = ca.vertcat(cross(V[3:], V[:3]), ca.SX(3, 1))
    A = ca.SX(6, 1) if reference in ("body", "spatial") else -turned
    return inertia.force(V, A)


def gravity_wrench(plan: Plan, inertia: Inertia, T: Motion) -> Value:
    """Weight of a body, in its own axes and about its origin."""
    g = T.R.T @ plan.gravity
    return ca.vertcat(inertia.m * g, hat(inertia.h) @ g)


def _joint(
    plan: Plan, q: Value, v: Value, seat: tuple[int, Motion], bodies: set[int]
) -> tuple[int, Motion, Value, Value]:
    """Of the joint that carries a body: the carrying node, the motion from it, X and Ẋ.

    Ẋ is zero unless the joint is a chain: its first axes then turn in the body's frame.
    """
    k, T = seat
    X, rate, relative = ca.SX(6, plan.nv), ca.SX(6, plan.nv), ca.SX(6, 1)
    while True:
        node = plan.nodes[k]
        column = T.pull(node.S)
        X[:, node.v] += column
        if relative.nnz():
            rate[:, node.v] -= twist_cross(relative, column)
        relative = relative + column @ v[node.v]
        T = node.motion(q) @ T
        k = node.parent
        if k < 0 or k in bodies:
            return k, T, X, rate
