"""Time derivatives of inverse dynamics of any order: Newton–Euler recursion and Leibniz' rule.

Inertial wrenches are linear in the acceleration p̈ of a body's origin and in the field of
accelerations about it, ``U = ω̇^ + ω^ ω^``, with constant numbers in body axes. Their derivatives
are the same wrenches of derivatives of p̈ and U; those of ω and p̈ follow from the parent's, and
those of the wrenches from the children's, by brackets with the joint's own twist (`carried`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import casadi as ca

from ....codegen import Value
from ..kinematics._time_derivatives import carried, seen_at_rest
from ..plan._drives import drive_force_derivatives
from ..plan._plan import Node, Plan
from ..plan._spatial import Motion, couple, cross, wrench_cross
from ._inverse_dynamics import node_wrenches


def inverse_dynamics_time_derivatives(
    plan: Plan, q: Value, *values: Value, order: int
) -> tuple[Value, ...]:
    """Generalized forces and their time derivatives up to an order.

    `values` are v, a, … (order + 2 of them), then wrenches, constant in their bodies, or none.
    """
    rates, wrenches = values[: order + 2], values[order + 2 :]
    bodies = _rigid_derivatives(plan, q, rates, wrenches[0] if wrenches else None)
    drives = drive_force_derivatives(plan, q, rates)
    return tuple(own + drive for own, drive in zip(bodies, drives, strict=True))


def _rigid_derivatives(
    plan: Plan, q: Value, rates: Sequence[Value], wrenches: Value | None
) -> list[Value]:
    """Generalized forces of the bodies alone, and their time derivatives."""
    orders, motions = range(len(rates) - 1), plan.motions(q)
    W = _inertial_wrenches(plan, motions, rates)
    for own, load in zip(W, node_wrenches(plan, wrenches), strict=True):
        if load is not None:
            own[0] = own[0] - load
    tau = [ca.SX(plan.nv, 1) for _ in orders]
    for k in reversed(range(len(W))):
        node, T = plan.nodes[k], motions[k]
        twist = [node.S @ rate[node.v] for rate in rates]
        for n in orders:
            tau[n][node.v] += node.S.T @ W[k][n]
        if node.parent >= 0:
            at_rest = seen_at_rest(W[k], lambda m, x, own=twist: wrench_cross(own[m], x))
            for n in orders:
                W[node.parent][n] = W[node.parent][n] + T.push_wrench(at_rest[n])
    return tau


def _inertial_wrenches(
    plan: Plan, motions: list[Motion], rates: Sequence[Value]
) -> list[list[Value]]:
    """Derivatives of what every node's mass needs to accelerate and to be held against weight."""
    orders, none = range(len(rates) - 1), ca.DM(3, 1)
    w: dict[int, list[Value]] = {-1: [none for _ in rates]}
    acc: dict[int, list[Value]] = {-1: [-plan.gravity, *(none for _ in orders[1:])]}
    U: dict[int, list[Value]] = {-1: [ca.DM(3, 3) for _ in orders]}
    W: list[list[Value]] = []
    for k, (node, T) in enumerate(zip(plan.nodes, motions, strict=True)):
        i, twist = node.parent, [node.S @ rate[node.v] for rate in rates]
        linear, spin = [x[:3] for x in twist], [x[3:] for x in twist]

        def turned(m: int, x: Value, spin: list[Value] = spin) -> Value:
            return -cross(spin[m], x)

        lever = _lever_derivatives(T, linear, spin)
        seat = [
            sum((comb(n, m) * (U[i][n - m] @ lever[m]) for m in range(n + 1)), acc[i][n])
            for n in orders
        ]
        base = carried([T.R.T @ x for x in w[i]], turned)
        w[k] = [x + own for x, own in zip(base, spin, strict=True)]
        acc[k] = carried([T.R.T @ x for x in seat], turned)
        for n in orders:
            acc[k][n] = acc[k][n] + linear[n + 1]
            for m in range(n + 1):
                shear = 2 * base[m] + spin[m]
                acc[k][n] = acc[k][n] + comb(n, m) * cross(shear, linear[n - m])
        U[k] = [_field(w[k], n) for n in orders]
        W.append([_wrench(node, acc[k][n], U[k][n]) for n in orders])
    return W


def _lever_derivatives(T: Motion, linear: list[Value], spin: list[Value]) -> list[Value]:
    """Derivatives of the node's origin in its parent's axes: one fewer than the joint's rates."""
    moved = seen_at_rest(linear[:-2], lambda m, x: cross(spin[m], x))
    return [T.p, *(T.R @ x for x in moved)]


def _field(w: list[Value], n: int) -> Value:
    """n-th derivative of ``U = ω̇^ + ω^ ω^``."""

    def product(a: int, b: int) -> Value:
        return sum(comb(n, i) * (w[i][a] * w[n - i][b]) for i in range(n + 1))

    def square(a: int) -> Value:
        twice = sum(comb(n, i) * (w[i][a] * w[n - i][a]) for i in range((n + 1) // 2))
        return 2 * twice + (comb(n, n // 2) * w[n // 2][a] ** 2 if n % 2 == 0 else 0)

    x, y, z = (w[n + 1][a] for a in range(3))
    xx, yy, zz = (square(a) for a in range(3))
    xy, xz, yz = product(0, 1), product(0, 2), product(1, 2)
    return ca.sparsify(
        ca.blockcat(
            [
                [-(yy + zz), xy - z, xz + y],
                [xy + z, -(xx + zz), yz - x],
                [xz - y, yz + x, -(xx + yy)],
            ]
        )
    )


def _wrench(node: Node, acc: Value, U: Value) -> Value:
    """Inertial wrench of a node for the acceleration of its origin and the field about it."""
    m, h, Sigma = node.inertia
    return ca.vertcat(m * acc + U @ h, couple(Sigma, U) + cross(h, acc))
