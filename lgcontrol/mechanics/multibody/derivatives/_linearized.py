"""Linearized equations of motion in closed form."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..plan._plan import Plan
from ._first import inverse_dynamics_derivatives


def linearized_equations(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """M, D, K and the bracket ad_v of the joints' groups."""
    K, D, M = inverse_dynamics_derivatives(plan, q, v, a, wrenches)
    return M, D, K, joint_brackets(plan, v)


def linearized_error_equations(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """Coefficients of ε̈, ε̇ and ε: with ``δv = ε̇ + ad_v ε`` put in."""
    K, D, M = inverse_dynamics_derivatives(plan, q, v, a, wrenches)
    turn, turn_rate = joint_brackets(plan, v), joint_brackets(plan, a)
    return M, D + M @ turn, K + D @ turn + M @ turn_rate


def joint_brackets(plan: Plan, v: Value) -> Value:
    """Block diagonal ``ad_v`` of the configuration group, nv × nv."""
    ad = ca.SX(plan.nv, plan.nv)
    for node in plan.nodes:
        if not node.group.is_commutative:
            ad[node.v, node.v] = node.group._ad(v[node.v])
    return ad
