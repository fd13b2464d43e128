"""Time derivatives of twists and Jacobians of any order, by recursion along the path of a frame.

A vector of components that a motion carries along changes by a bracket on top of what its own
components do. Differentiating that again and again with Leibniz' rule gives every order from
brackets of known derivatives (Müller 2018, section 2; eq. 66 and its derivatives).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import casadi as ca

from ....codegen import Value
from ..plan._plan import Plan
from ..plan._spatial import Motion, cross, twist_cross
from ._frames import frame_pose, poses_seen_from


def carried(components: Sequence[Value], bracket: Callable[[int, Value], Value]) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` for ``(A x)˙ = A ẋ + bracket(0, A x)``.

    Parameters
    ----------
    components : sequence of n + 1 columns
        Derivatives of x, already mapped by A.
    bracket : callable
        ``(i, y) →`` what the i-th derivative of A's rate does to y.
    """
    known: dict[tuple[int, int], Value] = {}

    def derivative(k: int, m: int) -> Value:
        """m-th derivative of ``A x^(k)``, with one bracket for each derivative of A's rate."""
        if (k, m) not in known:
            total = components[k + m]
            for i in range(m):
                terms = [
                    comb(m - 1 - n, i) * derivative(k + n, m - 1 - i - n) for n in range(m - i)
                ]
                total = total + bracket(i, sum(terms[1:], terms[0]))
            known[k, m] = total
        return known[k, m]

    return [derivative(0, m) for m in range(len(components))]


def body_twists(plan: Plan, q: Value, rates: Sequence[Value], seat: tuple[int, Motion]) -> list:
    """Body twist of a frame and its derivatives, as many as there are rates."""
    k, T = seat
    V: list[Value] = [ca.SX(6, 1) for _ in rates]
    for i in reversed(plan.path(k)):
        node = plan.nodes[i]
        motion = node.motion(q)
        joint = [node.S @ rate[node.v] for rate in rates]
        pulled = carried(
            [motion.pull(x) for x in V], lambda m, x, own=joint: -twist_cross(own[m], x)
        )
        V = [x + own for x, own in zip(pulled, joint, strict=True)]
    return [T.pull(x) for x in V]


def twist_derivative(
    plan: Plan, q: Value, *rates: Value, seat: tuple[int, Motion], reference: str
) -> Value:
    """Derivative of a frame's twist in a reference; the highest that the rates give."""
    V = body_twists(plan, q, rates, seat)
    if reference == "body":
        return V[-1]
    return _in_reference(frame_pose(plan, q, seat), V, reference)


def jacobian_time_derivative(
    plan: Plan, q: Value, *rates: Value, seat: tuple[int, Motion], reference: str
) -> Value:
    """Derivative of a frame's Jacobian in a reference, of as high an order as there are rates."""
    if reference == "body":
        return _body_jacobian(plan, q, rates, seat)
    if reference == "spatial":
        world = plan.world_motions(q, [seat[0]] if seat[0] >= 0 else [])
        return _world_jacobians(plan, rates, seat[0], world)[0][-1]
    # About the point of the world where the frame's origin is now: exact however far that is.
    J, V = _world_jacobians(plan, rates, seat[0], poses_seen_from(plan, q, seat))
    order, p = len(rates), _displacements(V)
    linear = J[-1][:3, :]
    for i in range(order):
        linear = linear - comb(order, i) * cross(p[order - i], J[i][3:, :])
    if reference == "hybrid":
        return ca.vertcat(linear, J[-1][3:, :])
    return ca.vertcat(linear, _body_jacobian(plan, q, rates, seat)[3:, :])


def jacobian_rate(
    plan: Plan, q: Value, v: Value, seat: tuple[int, Motion], reference: str
) -> Value:
    """Time derivative of a frame's Jacobian at the velocity v."""
    return jacobian_time_derivative(plan, q, v, seat=seat, reference=reference)


def _body_jacobian(plan: Plan, q: Value, rates: Sequence[Value], seat: tuple[int, Motion]) -> Value:
    """Highest derivative of the body Jacobian, walking from the frame to the root.

    Column j changes by its bracket with the twist of the frame relative to node j (Müller 2018,
    eq. 8, for any subgroup joint): the sum of the joints beyond j, whose derivatives are known
    when the walk comes to j.
    """
    (k, T), order = seat, len(rates)
    J = ca.SX(6, plan.nv)
    relative: list[Value] = [ca.SX(6, 1) for _ in rates]
    while k >= 0:
        node = plan.nodes[k]
        columns: list[Value] = [T.pull(node.S)]
        for m in range(order):
            columns.append(-_leibniz(m, relative, columns, node.S.shape))
        J[:, node.v] += columns[-1]
        relative = _joined(relative, columns, [rate[node.v] for rate in rates])
        T = node.motion(q) @ T
        k = node.parent
    return J


def _world_jacobians(
    plan: Plan, rates: Sequence[Value], k: int, world: dict[int, Motion]
) -> tuple[list[Value], list[Value]]:
    """Derivatives of the Jacobian and of the twist of node k about a fixed point, in world axes.

    A column changes by its bracket with the twist of its node (Müller 2018, eq. 17). `world` has
    the poses of the nodes relative to the point.
    """
    order = len(rates)
    J = [ca.SX(6, plan.nv) for _ in range(order + 1)]
    V: list[Value] = [ca.SX(6, 1) for _ in rates]
    for i in reversed(plan.path(k)):
        node = plan.nodes[i]
        columns: list[Value] = [world[i].push(node.S)]
        own, twist = [rate[node.v] for rate in rates], V
        for m in range(order):
            # The bracket of a screw with itself vanishes: with one the carrying twist will do.
            if node.S.shape[1] > 1:
                twist = _joined(V, columns, own)
            columns.append(_leibniz(m, twist, columns, node.S.shape))
        V = _joined(V, columns, own)
        for total, column in zip(J, columns, strict=True):
            total[:, node.v] += column
    return J, V


def _displacements(V: list[Value]) -> list[Value]:
    """Derivatives 0 … n of a point that V carries and that is at the point V is about."""
    p: list[Value] = [ca.SX(3, 1)]
    for m, own in enumerate(V):
        turns = [comb(m, i) * cross(V[i][3:], p[m - i]) for i in range(m)]
        p.append(sum(turns, own[:3]))
    return p


def _leibniz(m: int, V: list[Value], X: list[Value], shape: tuple[int, int]) -> Value:
    """m-th derivative of ``[V, X]``."""
    terms = [comb(m, i) * twist_cross(V[m - i], X[i]) for i in range(m + 1) if V[m - i].nnz()]
    return sum(terms, ca.SX(*shape))


def _joined(V: list[Value], J: list[Value], rates: list[Value]) -> list[Value]:
    """Derivatives of ``V + J v``, those that the derivatives of J known so far give."""
    joined = list(V)
    for m in range(len(rates)):
        for i in range(min(m + 1, len(J))):
            joined[m] = joined[m] + comb(m, i) * (J[i] @ rates[m - i])
    return joined


def _in_reference(pose: Motion, V: Sequence[Value], reference: str) -> Value:
    """Highest derivative of a twist in a reference, from those of its body components."""
    if reference == "spatial":
        return pose.push(seen_at_rest(V[1:], lambda m, x: twist_cross(V[m], x))[-1])
    spin = [rate[3:] for rate in V]
    linear = pose.R @ seen_at_rest([x[:3] for x in V], lambda m, x: cross(spin[m], x))[-1]
    if reference == "mixed":
        return ca.vertcat(linear, spin[-1])
    angular = pose.R @ seen_at_rest(spin[1:], lambda m, x: cross(spin[m], x))[-1]
    return ca.vertcat(linear, angular)


def seen_at_rest(
    components: Sequence[Value], bracket: Callable[[int, Value], Value]
) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` in moving axes, for ``(A x)˙ = A (ẋ + bracket(0, x))``.

    For the rate of A itself the first bracket vanishes: it may start with its derivative.
    """
    row, found = list(components), list(components[:1])
    while len(row) > 1:
        row = [
            sum((comb(k, i) * bracket(i, row[k - i]) for i in range(k + 1)), row[k + 1])
            for k in range(len(row) - 1)
        ]
        found.append(row[0])
    return found
