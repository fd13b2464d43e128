"""Time derivatives of inverse dynamics in closed form: ``τ = Jᵀ W`` by Leibniz' rule.

Body-fixed twists of all nodes are ``V = J v`` with ``J = A X`` (Müller 2018, eq. 9, 112): X has the
motion subspaces, which do not move in their nodes, A what carries twists outwards. As A is the
inverse of ``1 − D`` and D, what goes over one joint, changes by ``Ḋ = −a D`` with the brackets a of
the joints' own twists,

    ``Ȧ = −A a (A − 1)``,

which Leibniz' rule differentiates again and again. All else follows from products: V, the wrenches
``W = M V̇ − ad_Vᵀ M V``, and the forces.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ....codegen import Value
from ..._reference import Reference
from .._spatial import Pose, cross, twist_cross, wrench_cross
from ..compiled._compiled_tree import CompiledTree
from ..compiled._joint_forces import joint_force_derivatives
from ..kinematics._jets import leibniz, seen_at_rest


def projected_time_derivatives(
    tree: CompiledTree,
    q: Value,
    rates: Sequence[Value],
    loads: Sequence[Sequence[Value]],
    *,
    reference: Reference,
) -> list[Value]:
    """Generalized forces and their time derivatives, projected from wrenches in a reference.

    Parameters
    ----------
    rates : sequence of value
        v, a, …; one more than there are results.
    loads : sequence
        For each node the derivatives of the external wrench on it, in its frame.
    """
    orders, count = range(len(rates) - 1), len(tree.nodes)
    tau = joint_force_derivatives(tree, q, rates)
    J = _jacobians(tree, tree.poses(q), rates)
    world = tree.world_poses(q)
    for k in range(count):
        own = [x[6 * k : 6 * k + 6, :] for x in J]
        V = [leibniz(ca.mtimes, own, rates, n) for n in range(len(rates))]
        W = _inertial(tree, k, world[k], V)
        for n, load in enumerate(loads[k]):
            W[n] = W[n] - load
        own, W = _in_reference(world[k], V, own[:-1], W, reference)
        for n in orders:
            tau[n] = tau[n] + leibniz(_paired, own, W, n)
    return tau


def _jacobians(tree: CompiledTree, poses: list[Pose], rates: Sequence[Value]) -> list[Value]:
    """Body-fixed Jacobian of all nodes and its derivatives, 6 nodes × nv."""
    count, place = len(tree.nodes), [slice(6 * k, 6 * k + 6) for k in range(len(tree.nodes))]
    first, X = ca.SX(6 * count, 6 * count), ca.SX(6 * count, tree.nv)
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        if node.parent >= 0:
            first[place[k], :] = T.pull(first[place[node.parent], :])
        first[place[k], place[k]] = ca.DM.eye(6)
        X[place[k], node.v] = node.S
    A, beyond = [ca.sparsify(first)], [ca.sparsify(first - ca.DM.eye(6 * count))]
    brackets = [
        ca.diagcat(*(twist_cross(node.S @ rate[node.v], ca.DM.eye(6)) for node in tree.nodes))
        for rate in rates[:-1]
    ]
    for n in range(len(rates) - 1):
        turned = [leibniz(ca.mtimes, brackets, beyond, m) for m in range(n + 1)]
        A.append(ca.sparsify(-leibniz(ca.mtimes, A, turned, n)))
        beyond.append(A[-1])
    return [ca.sparsify(x @ X) for x in A]


def _inertial(tree: CompiledTree, k: int, pose: Pose, V: Sequence[Value]) -> list[Value]:
    """Inertial wrench of a node less weight, and its derivatives, in its frame."""
    inertia, orders = tree.nodes[k].inertia, range(len(V) - 1)
    lift = [ca.vertcat(-(pose.R.T @ tree.gravity), ca.DM(3, 1))]
    for n in orders[:-1]:
        lift.append(-leibniz(twist_cross, V, lift, n))
    momenta = [inertia @ x for x in V]
    return [inertia @ (V[n + 1] + lift[n]) + leibniz(wrench_cross, V, momenta, n) for n in orders]


def _in_reference(
    pose: Pose, V: Sequence[Value], J: list[Value], W: list[Value], reference: Reference
) -> tuple[list[Value], list[Value]]:
    """Derivatives of a Jacobian and of a wrench, both body-fixed, in a reference."""
    if reference == "body":
        return J, W
    if reference == "spatial":
        J = seen_at_rest(J, lambda m, x: twist_cross(V[m], x))
        W = seen_at_rest(W, lambda m, x: wrench_cross(V[m], x))
        return [pose.push(x) for x in J], [pose.push_wrench(x) for x in W]

    def turned(parts: list[Value], rows: slice) -> list[Value]:
        found = seen_at_rest([x[rows, :] for x in parts], lambda m, x: cross(V[m][3:], x))
        return [pose.R @ x for x in found]

    def both(parts: list[Value]) -> list[Value]:
        linear = turned(parts, slice(0, 3))
        angular = [x[3:, :] for x in parts] if reference == "mixed" else turned(parts, slice(3, 6))
        return [ca.vertcat(*x) for x in zip(linear, angular, strict=True)]

    return both(J), both(W)


def _paired(J: Value, W: Value) -> Value:
    return J.T @ W
