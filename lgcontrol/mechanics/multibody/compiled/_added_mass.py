"""Added mass of links in a fluid at rest: general 6 × 6 inertias beside those of rigid bodies.

Trees without it have none of this in their code. Weight does not act on the fluid that moves along,
so that its accelerations are those of the bodies themselves, where recursions carry accelerations
less gravity.
"""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, carried_along, moved_matrix, twist_cross, wrench_cross
from ._compiled_tree import CompiledTree
from ._sparse import Entries


def weights(tree: CompiledTree, poses: list[Pose]) -> list[Value]:
    """What turns accelerations less gravity into accelerations: [Rᵀ g; 0] in each node's axes."""
    world = tree.in_world(dict(enumerate(poses)))
    return [ca.vertcat(world[k].R.T @ tree.gravity, ca.DM(3, 1)) for k in range(len(tree.nodes))]


def force(A: Value, V: Value, acceleration: Value) -> Value:
    """Wrench ``A V̇ − ad_Vᵀ A V`` that accelerates the fluid."""
    return A @ acceleration + wrench_cross(V, A @ V)


def added_composites(tree: CompiledTree, poses: list[Pose]) -> list[Value]:
    """Added mass of every node with that of all it carries, in its frame."""
    own = [node.added_mass for node in tree.nodes]
    return tree.summed(own, lambda k, A: moved_matrix(A, poses[k]))


def velocity_products(tree: CompiledTree, poses: list[Pose], V: list[Value]) -> list[Value]:
    """``2 B = V×* A − A V× + (A V)×̄*`` of every node with all it carries, in its frame.

    The matrix that `Velocity` has for rigid bodies, for any inertia.
    """
    unit, own = ca.DM.eye(6), []
    for node, twist in zip(tree.nodes, V, strict=True):
        A = node.added_mass
        own.append(
            wrench_cross(twist, A) - A @ twist_cross(twist, unit) + carried_along(unit, A @ twist)
            if A.nnz()
            else ca.DM(6, 6)
        )
    return tree.summed(own, lambda k, B: moved_matrix(B, poses[k]))


def momentum_composites(tree: CompiledTree, poses: list[Pose], V: list[Value]) -> list[Value]:
    """Momentum ``A V`` of the fluid around every node and all it carries, in its frame."""
    own = [node.added_mass @ twist for node, twist in zip(tree.nodes, V, strict=True)]
    return tree.summed(own, lambda k, momentum: poses[k].push_wrench(momentum))


def add_coriolis_matrix(C: Entries, tree: CompiledTree, poses: list[Pose], V: list[Value]) -> None:
    """Add ``Jᵀ (A J̇ + B J)``; as in `coriolis_matrix` of rigid bodies."""
    A, B = added_composites(tree, poses), velocity_products(tree, poses, V)
    rates = [twist_cross(V[k], node.S) for k, node in enumerate(tree.nodes)]
    for k, node in enumerate(tree.nodes):
        if not A[k].nnz():
            continue
        F, G = A[k] @ node.S, B[k].T @ node.S / 2
        H = B[k] @ node.S / 2 + A[k] @ rates[k]
        C.add(node.v, node.v, node.S.T @ H)
        i = k
        while tree.nodes[i].parent >= 0:
            F, G, H = (poses[i].push_wrench(x) for x in (F, G, H))
            i = tree.nodes[i].parent
            other = tree.nodes[i]
            C.add(other.v, node.v, other.S.T @ H)
            C.add(node.v, other.v, G.T @ other.S + F.T @ rates[i])


def add_derivatives(
    dq: Entries,
    dv: Entries,
    tree: CompiledTree,
    poses: list[Pose],
    V: list[Value],
    A_less_gravity: list[Value],
) -> None:
    """Add ∂τ/∂q and ∂τ/∂v of the fluid's forces, without the turn of transmitted wrenches.

    The rigid bodies' derivation holds for any inertia. A displacement changes the twist of a body
    by Ψ̇ and its rate by ``Ψ̈ + Ψ̇ × V``. Hence ``A V̇ + V ×* A V`` changes by ``A Ψ̈ + 2 B Ψ̇``.
    """
    inertias, products = added_composites(tree, poses), velocity_products(tree, poses, V)
    gravity = weights(tree, poses)
    first: list[Value] = []
    second: list[Value] = []
    fast: list[Value] = []
    for k, node in enumerate(tree.nodes):
        T, parent = poses[k], node.parent
        carried = ca.DM(6, 1) if parent < 0 else T.pull(V[parent])
        rest = ca.DM(6, 1) if parent < 0 else T.pull(A_less_gravity[parent] + gravity[parent])
        first.append(twist_cross(carried, node.S))
        second.append(twist_cross(rest, node.S) + twist_cross(carried, first[k]))
        fast.append(first[k] + twist_cross(V[k], node.S))
        A, B = inertias[k], products[k]
        if not A.nnz():
            continue
        F, G = A @ node.S, B.T @ node.S
        position, rate = B @ first[k] + A @ second[k], B @ node.S + A @ fast[k]
        dq.add(node.v, node.v, node.S.T @ position)
        dv.add(node.v, node.v, node.S.T @ rate)
        i = k
        while tree.nodes[i].parent >= 0:
            F, G, position, rate = (poses[i].push_wrench(x) for x in (F, G, position, rate))
            i = tree.nodes[i].parent
            other = tree.nodes[i]
            dq.add(other.v, node.v, other.S.T @ position)
            dv.add(other.v, node.v, other.S.T @ rate)
            dq.add(node.v, other.v, G.T @ first[i] + F.T @ second[i])
            dv.add(node.v, other.v, G.T @ other.S + F.T @ fast[i])
