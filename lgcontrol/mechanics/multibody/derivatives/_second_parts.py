"""What second derivatives of the dynamics are made of, for every degree of freedom of a tree.

All is resolved in the frame of the first node of each branch from the world, where twists of
different nodes meet without change of frame. A displacement of the degree of freedom S_k turns all
it carries rigidly: a wrench W of that changes by ``S_k ×* W``. On top of that twists change by
``Ψ̇_k = V_λ × S_k`` and accelerations by ``Ψ̈_k + Ψ̇_k × V`` (see `_derivatives`). Repeated, this
leads to products of three twists X, Y, Z which all are sums over particles,
``Xᵀ 2 B(Y) Z = 2 Σ m ω_Z · (ṙ_Y × ṙ_X)``: antisymmetric in X and Y, and linear in the angular part
of Z alone. For other recursions to the same tensors see Singh, Russell and Wensing, "On
second-order derivatives of rigid-body dynamics" (2023).
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..dynamics._inverse_dynamics import node_wrenches
from ..dynamics._mass_matrix import Entries
from ..plan._drives import force_rates
from ..plan._plan import Plan
from ..plan._spatial import Inertia, Motion, Velocity, twist_cross, wrench_cross


class Freedom(NamedTuple):
    """One degree of freedom.

    Attributes
    ----------
    place, node : int
        Its place in v and its node.
    S, first, second : Value
        S, Ψ̇ and Ψ̈.
    fast : Value
        ``Ψ̇ + Ṡ``: its velocity adds this to the accelerations of all it carries.
    momentum : Value
        ``I S`` of the composite it carries.
    position, rate : Value
        First derivatives of the wrench through its joint by its own position and velocity.
    """

    place: int
    node: int
    S: Value
    first: Value
    second: Value
    fast: Value
    momentum: Value
    position: Value
    rate: Value


class States(NamedTuple):
    """Of every node, in the root's frame.

    `weights` are accelerations of the world (upwards, for weight), `bodies` the nodes' own
    inertias; inertias, velocities and wrenches are with all that the node carries.
    """

    V: list[Value]
    A: list[Value]
    S: list[Value]
    weights: list[Value]
    bodies: list[Inertia]
    inertias: list[Inertia]
    velocities: list[Velocity]
    wrenches: list[Value]


def freedoms(plan: Plan, v: Value, states: States) -> list[list[Freedom]]:
    """Degrees of freedom of every node."""
    found: list[list[Freedom]] = []
    for k, node in enumerate(plan.nodes):
        i = node.parent
        carrier_V = ca.DM(6, 1) if i < 0 else states.V[i]
        carrier_A = states.weights[k] if i < 0 else states.A[i]
        S, inertia, velocity = states.S[k], states.inertias[k], states.velocities[k]
        own = []
        for j in range(S.shape[1]):
            s = S[:, j]
            first = twist_cross(carrier_V, s)
            second = twist_cross(carrier_A, s) + twist_cross(carrier_V, first)
            twice = fast = 2 * first
            if S.shape[1] > 1:  # otherwise S v × S is zero, but not structurally
                fast = fast + twist_cross(S @ v[node.v], s)
            position = velocity.half(twice) + inertia @ second
            rate = velocity.half(2 * s) + inertia @ fast
            position = position + wrench_cross(s, states.wrenches[k])
            place = node.v.start + j
            own.append(Freedom(place, k, s, first, second, fast, inertia @ s, position, rate))
        found.append(own)
    return found


def states(plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None) -> States:
    """Go through the tree from the root and back."""
    loads = node_wrenches(plan, wrenches)
    T: list[Motion] = []
    found = States([], [], [], [], [], [], [], [])
    for k, node in enumerate(plan.nodes):
        motion, i = node.motion(q), node.parent
        if i < 0:
            T.append(Motion.identity())
            weight = ca.vertcat(motion.R.T @ -plan.gravity, ca.DM(3, 1))
            carrier_V, carrier_A = ca.DM(6, 1), weight
        else:
            T.append(motion if plan.nodes[i].parent < 0 else T[i] @ motion)
            weight = found.weights[i]
            carrier_V, carrier_A = found.V[i], found.A[i]
        S = T[k].push(node.S)
        joint = S @ v[node.v]
        V = carrier_V + joint
        A = carrier_A + S @ a[node.v] + twist_cross(carrier_V, joint)
        body = node.inertia if i < 0 else node.inertia.moved(T[k])
        W = body.force(V, A)
        if loads[k] is not None:
            W = W - T[k].push_wrench(loads[k])
        found.V.append(V)
        found.A.append(A)
        found.S.append(S)
        found.weights.append(weight)
        found.bodies.append(body)
        found.inertias.append(body)
        found.velocities.append(body.velocity(V))
        found.wrenches.append(W)
    for values in (found.inertias, found.velocities, found.wrenches):
        sum_up(plan, values)
    return found


def sum_up(plan: Plan, values: list) -> None:
    """Add to every node's value those of all it carries."""
    for k in reversed(range(len(values))):
        i = plan.nodes[k].parent
        if i >= 0:
            values[i] = values[i] + values[k]


def pure_couple(moment: Value) -> Value:
    """A wrench without force."""
    return ca.vertcat(ca.DM(3, moment.shape[1]), moment)


def first_derivatives(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value]:
    """∂τ/∂q and ∂τ/∂v from the same parts."""
    state = states(plan, q, v, a, wrenches)
    found = freedoms(plan, v, state)
    dq, dv = Entries(plan.nv, plan.nv), Entries(plan.nv, plan.nv)
    for k, own in enumerate(found):
        path = [f for i in plan.path(k) for f in found[i]]
        for c in own:
            half, at = 2 * state.velocities[k].half_transposed(c.S), slice(c.place, c.place + 1)
            for b in path:
                of = slice(b.place, b.place + 1)
                dq.add(at, of, half.T @ b.first[3:] + c.momentum.T @ b.second)
                dv.add(at, of, half.T @ b.S[3:] + c.momentum.T @ b.fast)
                if b.node < k:
                    dq.add(of, at, b.S.T @ c.position)
                    dv.add(of, at, b.S.T @ c.rate)
    losses_q, losses_v = force_rates(plan, q, v)
    return dq.matrix() + losses_q, dv.matrix() + losses_v
