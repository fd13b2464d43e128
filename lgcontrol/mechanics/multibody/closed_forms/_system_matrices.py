"""Twists, Jacobians and inertias of all bodies stacked: the matrices of the closed forms.

Rows are the moving bodies in the order of `Multibody.bodies`, six each, in the bodies' link frames.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..plan._plan import Plan
from ..plan._spatial import Inertia, Motion, cross, hat, twist_cross


class SystemMatrices(NamedTuple):
    """Factors of the body-fixed system Jacobian ``J = A X`` (Müller 2018, eq. 9, 10, 83, 112)."""

    A: Value
    X: Value
    X_rate: Value
    ad_joints: Value
    ad_bodies: Value
    M: Value


class BodyState(NamedTuple):
    """One moving body: inertia in its link frame, pose, body twist, body Jacobian and its rate."""

    inertia: Inertia
    pose: Motion
    twist: Value
    J: Value
    J_rate: Value

    def jacobians(self, reference: str) -> tuple[Value, Value]:
        """Jacobian and rate in a reference."""
        if reference == "body":
            return self.J, self.J_rate
        if reference == "spatial":
            rate = self.J_rate + twist_cross(self.twist, self.J)
            return self.pose.push(self.J), self.pose.push(rate)
        R, J, turn = self.pose.R, self.J, hat(self.twist[3:])
        linear, linear_rate = R @ J[:3, :], R @ (self.J_rate[:3, :] + turn @ J[:3, :])
        if reference == "mixed":
            return ca.vertcat(linear, J[3:, :]), ca.vertcat(linear_rate, self.J_rate[3:, :])
        angular, angular_rate = R @ J[3:, :], R @ (self.J_rate[3:, :] + turn @ J[3:, :])
        return ca.vertcat(linear, angular), ca.vertcat(linear_rate, angular_rate)


class _Carried(NamedTuple):
    """How a body moves on the one that carries it (−1: the world)."""

    parent: int
    motion: Motion
    X: Value
    X_rate: Value


def body_states(plan: Plan, q: Value, v: Value) -> list[BodyState]:
    """All moving bodies, by recursion from the root (Müller 2018, eq. 7 and 8)."""
    states: list[BodyState] = []
    for inertia, (i, T, X, X_rate) in zip(body_inertias(plan), _joints(plan, q, v), strict=True):
        pose, own, J, rate = T, X @ v, X, X_rate
        twist = own
        if i >= 0:
            parent = states[i]
            carried = T.pull(parent.J)
            pose, twist, J = parent.pose @ T, T.pull(parent.twist) + own, carried + X
            rate = T.pull(parent.J_rate) - twist_cross(own, carried) + X_rate
        states.append(BodyState(inertia, pose, twist, J, rate))
    return states


def system_jacobian(plan: Plan, q: Value, reference: str) -> Value:
    """Jacobians of all bodies on top of each other, 6 bodies × nv."""
    still = ca.SX(plan.nv, 1)
    blocks = [state.jacobians(reference)[0] for state in body_states(plan, q, still)]
    return ca.vertcat(ca.SX(0, plan.nv), *blocks)


def system_jacobian_rate(plan: Plan, q: Value, v: Value, reference: str) -> Value:
    """Time derivative of `system_jacobian`."""
    blocks = [state.jacobians(reference)[1] for state in body_states(plan, q, v)]
    return ca.vertcat(ca.SX(0, plan.nv), *blocks)


def system_matrices(plan: Plan, q: Value, v: Value) -> SystemMatrices:
    """A, X, Ẋ, the brackets and the inertias, body-fixed."""
    joints, states = _joints(plan, q, v), body_states(plan, q, v)
    rows: list[list[Value]] = []
    for i, T, _, _ in joints:
        row = [T.pull(block) for block in rows[i]] if i >= 0 else []
        rows.append(row + [ca.SX(6, 6)] * (len(rows) - len(row)) + [ca.DM.eye(6)])
    full = [row + [ca.SX(6, 6)] * (len(rows) - len(row)) for row in rows]
    none, empty = ca.SX(0, plan.nv), ca.SX(0, 0)
    return SystemMatrices(
        ca.blockcat(full) if full else empty,
        ca.vertcat(none, *(joint.X for joint in joints)),
        ca.vertcat(none, *(joint.X_rate for joint in joints)),
        ca.diagcat(empty, *(bracket_matrix(joint.X @ v) for joint in joints)),
        ca.diagcat(empty, *(bracket_matrix(state.twist) for state in states)),
        ca.diagcat(empty, *(state.inertia @ ca.DM.eye(6) for state in states)),
    )


def bracket_matrix(V: Value) -> Value:
    """Matrix ``ad_V``."""
    return twist_cross(V, ca.DM.eye(6))


def body_inertias(plan: Plan) -> list[Inertia]:
    """Inertia of every moving body, with what is fixed to it, in its link frame."""
    return [plan.nodes[k].inertia.moved(plan.seats[name][1].inverse()) for name, k in plan.bodies]


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


def _joints(plan: Plan, q: Value, v: Value) -> list[_Carried]:
    """Of every moving body: how its joint carries it.

    Ẋ is zero unless the joint is a chain: its first axes then turn in the body's frame.
    """
    number = {k: i for i, (_, k) in enumerate(plan.bodies)}
    joints = []
    for name, _ in plan.bodies:
        k, T = plan.seats[name]
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
            if k < 0 or k in number:
                break
        i = number.get(k, -1)
        if i >= 0:
            T = plan.seats[plan.bodies[i][0]][1].inverse() @ T
        joints.append(_Carried(i, T, ca.sparsify(X), ca.sparsify(rate)))
    return joints
