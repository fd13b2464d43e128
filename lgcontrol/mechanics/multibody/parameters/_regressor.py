"""Inverse dynamics as a matrix times the inertial parameters."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..kinematics._kinematics import accelerations, twists
from ..plan._plan import Plan
from ..plan._spatial import Inertia, cross, hat


def inverse_dynamics_regressor(plan: Plan, q: Value, v: Value, a: Value) -> Value:
    """Matrix Y with forces of the bodies ``Y φ``, nv × 10 bodies."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    A = accelerations(plan, motions, V, v, a, gravity=True)
    blocks = []
    for name, k in plan.bodies:
        seat = plan.seats[name][1]
        F = seat.push_wrench(_body_regressor(seat.pull(V[k]), seat.pull(A[k])))
        columns = ca.SX(plan.nv, 10)
        while k >= 0:
            node = plan.nodes[k]
            columns[node.v, :] += node.S.T @ F
            F = motions[k].push_wrench(F)
            k = node.parent
        blocks.append(columns)
    return ca.horzcat(ca.SX(plan.nv, 0), *blocks)


def inertial_parameters(inertia: Inertia) -> Value:
    """m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame origin, column of 10."""
    J = inertia.J
    return ca.densify(
        ca.vertcat(inertia.m, inertia.h, J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2])
    )


def _body_regressor(V: Value, A: Value) -> Value:
    w, dw = V[3:], A[3:]
    lift = A[:3] + cross(w, V[:3])
    turn, rate = hat(w), hat(dw)
    return ca.blockcat(
        [
            [lift, rate + turn @ turn, ca.SX(3, 6)],
            [ca.SX(3, 1), -hat(lift), _tensor_times(dw) + turn @ _tensor_times(w)],
        ]
    )


def _tensor_times(w: Value) -> Value:
    """3 × 6 matrix L with ``J w = L [Jxx, Jxy, Jyy, Jxz, Jyz, Jzz]``."""
    x, y, z = w[0], w[1], w[2]
    o = ca.SX(1, 1)
    return ca.blockcat([[x, y, o, z, o, o], [o, x, y, o, z, o], [o, o, o, x, y, z]])
