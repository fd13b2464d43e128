"""Twists, accelerations and transmitted wrenches of all nodes, by recursion."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..dynamics._inverse_dynamics import node_wrenches
from ..plan._plan import Plan
from ..plan._spatial import Motion, twist_cross


def twists(plan: Plan, motions: list[Motion], v: Value) -> list[Value]:
    """Body twist of every node (Müller 2018, eq. 67b)."""
    V: dict[int, Value] = {-1: ca.DM(6, 1)}
    for k, (node, T) in enumerate(zip(plan.nodes, motions, strict=True)):
        V[k] = T.pull(V[node.parent]) + node.S @ v[node.v]
    return [V[k] for k in range(len(plan.nodes))]


def accelerations(
    plan: Plan, motions: list[Motion], V: list[Value], v: Value, a: Value, *, gravity: bool
) -> list[Value]:
    """Rate of the body twist of every node (Müller 2018, eq. 67c).

    With `gravity`, the world accelerates upwards instead of the bodies being pulled down.
    """
    start = ca.vertcat(-plan.gravity, ca.DM(3, 1)) if gravity else ca.DM(6, 1)
    A: dict[int, Value] = {-1: start}
    for k, (node, T) in enumerate(zip(plan.nodes, motions, strict=True)):
        A[k] = T.pull(A[node.parent]) + node.S @ a[node.v]
        if node.parent >= 0:
            A[k] = A[k] + twist_cross(V[k], node.S @ v[node.v])
    return [A[k] for k in range(len(plan.nodes))]


def transmitted_wrenches(
    plan: Plan,
    motions: list[Motion],
    V: list[Value],
    A: list[Value],
    wrenches: Value | None = None,
) -> list[Value]:
    """Wrench on every node through its joint, in the node's frame (Müller 2018, eq. 68a)."""
    loads = node_wrenches(plan, wrenches)
    W = []
    for k, node in enumerate(plan.nodes):
        own = node.inertia.force(V[k], A[k])
        W.append(own if loads[k] is None else own - loads[k])
    for k in reversed(range(len(W))):
        parent = plan.nodes[k].parent
        if parent >= 0:
            W[parent] = W[parent] + motions[k].push_wrench(W[k])
    return W


def body_twists(plan: Plan, q: Value, v: Value) -> Value:
    """Body twists of the moving bodies, 6 × bodies."""
    V = twists(plan, plan.motions(q), v)
    return _in_bodies(plan, V)


def body_accelerations(plan: Plan, q: Value, v: Value, a: Value) -> Value:
    """Rates of the body twists of the moving bodies, 6 × bodies."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    return _in_bodies(plan, accelerations(plan, motions, V, v, a, gravity=False))


def joint_wrenches(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Wrench through each moving body's joint, body frames, 6 × bodies."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    A = accelerations(plan, motions, V, v, a, gravity=True)
    W = transmitted_wrenches(plan, motions, V, A, wrenches)
    return ca.horzcat(
        ca.SX(6, 0), *(plan.seats[name][1].pull_wrench(W[k]) for name, k in plan.bodies)
    )


def joint_wrench(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None, *, joint: str
) -> Value:
    """Wrench through a joint, in the frame after its motion."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    A = accelerations(plan, motions, V, v, a, gravity=True)
    k, T = plan.joints[joint]
    return T.pull_wrench(transmitted_wrenches(plan, motions, V, A, wrenches)[k])


def _in_bodies(plan: Plan, twists: list[Value]) -> Value:
    return ca.horzcat(
        ca.SX(6, 0), *(plan.seats[name][1].pull(twists[k]) for name, k in plan.bodies)
    )
