"""What adds to the dynamics of rigid bodies: drives, losses and springs of joints, and fluids.

Trees without added mass have nothing of fluids in their code. Weight does not act on the fluid that
moves along, so that its accelerations are those of the bodies themselves, where recursions carry
accelerations less gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, carried_along, moved_matrix, twist_cross, wrench_cross
from ._compiled_tree import CompiledTree, JointImpedance
from ._sparse import Entries


def joint_forces(tree: CompiledTree, q: Value, v: Value, a: Value) -> Value:
    """What drives, losses and springs add to inverse dynamics."""
    tau = ca.SX(tree.nv, 1)
    for joint in tree.impedances:
        inertial = joint.armature * (joint.scale * a[joint.v])
        own = inertial + _friction(joint, v) + spring_force(joint, q)
        tau[joint.v] += joint.scale * own
    return tau


def joint_losses(tree: CompiledTree, v: Value) -> Value:
    """Damping and friction of all joints, as they stand in `joint_forces`."""
    tau = ca.SX(tree.nv, 1)
    for joint in tree.impedances:
        if joint.damping.nnz() or joint.friction.nnz():
            tau[joint.v] += joint.scale * _friction(joint, v)
    return ca.sparsify(tau)


def armature(tree: CompiledTree) -> Value:
    """What drives add to the diagonal of the mass matrix, column of nv."""
    total = ca.SX(tree.nv, 1)
    for joint in tree.impedances:
        total[joint.v] += joint.scale**2 * joint.armature
    return ca.sparsify(total)


def spring_energy(tree: CompiledTree, q: Value) -> Value:
    """Energy of all springs [J]."""
    energy = ca.SX(1, 1)
    for joint in tree.impedances:
        if joint.stiffness.nnz():
            d = _stretch(joint, joint.coordinates.of(q))
            energy += ca.dot(joint.stiffness, d * d) / 2
    return energy


def joint_force_rates(tree: CompiledTree, q: Value, v: Value) -> tuple[Value, Value]:
    """Derivatives of `joint_forces` in tangent coordinates and in v, sparse nv × nv."""
    dq, dv = ca.SX(tree.nv, tree.nv), ca.SX(tree.nv, tree.nv)
    for joint in tree.impedances:
        if joint.stiffness.nnz():
            d = ca.SX.sym("d", joint.group.dim)
            X = joint.coordinates.of(q)
            moved = joint.group.plus(X, joint.scale * d)
            slope = ca.jacobian(_spring_at(joint, moved), d)
            dq[joint.v, joint.v] += joint.scale * ca.substitute(slope, d, ca.DM.zeros(d.shape))
        if joint.damping.nnz() or joint.friction.nnz():
            own = ca.SX.sym("v", joint.group.dim)
            slope = ca.jacobian(_loss(joint, own), own)
            dv[joint.v, joint.v] += joint.scale**2 * ca.substitute(
                slope, own, joint.scale * v[joint.v]
            )
    return dq, dv


def joint_force_curvatures(
    tree: CompiledTree, q: Value, v: Value
) -> list[tuple[slice, Value, Value]]:
    """Second derivatives of every drive's forces: place in v, by tangent coordinates, by v.

    Tensors dim × dim × dim as slices by the last index side by side.
    """
    found = []
    for joint in tree.impedances:
        n = joint.group.dim
        d, own = ca.SX.sym("d", n), ca.SX.sym("v", n)
        moved = joint.group.plus(joint.coordinates.of(q), joint.scale * d)
        bent, dry = ca.SX(n, n * n), ca.SX(n, n * n)
        if joint.stiffness.nnz():
            bent = _curvature(joint.scale * _spring_at(joint, moved), d, ca.DM.zeros(n))
        if joint.friction.nnz():
            loss = joint.scale * _loss(joint, joint.scale * own)
            dry = _curvature(loss, own, v[joint.v])
        found.append((joint.v, bent, dry))
    return found


def _curvature(f: Value, x: Value, at: Value) -> Value:
    slope = ca.jacobian(f, x)
    slices = [ca.jacobian(slope[:, j], x) for j in range(x.shape[0])]
    # The slices are by the first variable; the tensor is symmetric in the two.
    return ca.sparsify(ca.substitute(ca.horzcat(*slices), x, at))


def joint_force_derivatives(
    tree: CompiledTree, q: Value, rates: Sequence[Value], references: Sequence[Value] | None = None
) -> list[Value]:
    """Time derivatives 0, 1, … of `joint_forces`, for the rates v, a, … (one more than these).

    With `references` v_r, a_r, … drives accelerate as these say, losses and springs stay those of
    the motion.
    """
    references = rates if references is None else references
    orders = range(len(references) - 1)
    totals = [ca.SX(tree.nv, 1) for _ in orders]
    for joint in tree.impedances:
        own = [joint.scale * rates[n][joint.v] for n in orders]
        dry, springs = _friction_derivatives(joint, own), _spring_derivatives(joint, q, own)
        for n, total in enumerate(totals):
            inertial = joint.armature * (joint.scale * references[n + 1][joint.v])
            force = inertial + joint.damping * own[n] + dry[n] + springs[n]
            total[joint.v] += joint.scale * force
    return totals


def _friction_derivatives(joint: JointImpedance, own: Sequence[Value]) -> list[Value]:
    """Of ``f tanh(v / speed)``: the slope of y = tanh x is z = 1 − y²; both by Leibniz' rule."""
    if joint.friction.nnz() == 0:
        return [ca.SX(joint.group.dim, 1) for _ in own]
    x = [rate / joint.link.properties.friction_speed for rate in own]
    y, z = [ca.tanh(x[0])], []
    for n in range(len(x) - 1):
        square = sum(comb(n, i) * y[i] * y[n - i] for i in range(n + 1))
        z.append((1 if n == 0 else 0) - square)
        y.append(sum(comb(n, i) * z[i] * x[n + 1 - i] for i in range(n + 1)))
    return [joint.friction * value for value in y]


def _spring_derivatives(joint: JointImpedance, q: Value, own: Sequence[Value]) -> list[Value]:
    """Of a spring's force, a function of the stretch d, whose rate is ``Jr⁻¹(d) v``."""
    dim = joint.group.dim
    if joint.stiffness.nnz() == 0:
        return [ca.SX(dim, 1) for _ in own]
    d, rates = ca.SX.sym("d", dim), [ca.SX.sym("v", dim) for _ in own]
    slope = joint.group.right_jacobian_inverse(d)
    forces = [slope.T @ (joint.stiffness * d)]
    for n in range(len(own) - 1):
        force = ca.jtimes(forces[n], d, slope @ rates[0])
        for i in range(n):
            force += ca.jtimes(forces[n], rates[i], rates[i + 1])
        forces.append(force)
    stretch = _stretch(joint, joint.coordinates.of(q))
    return ca.substitute(forces, [d, *rates], [stretch, *own])


def spring_force(joint: JointImpedance, q: Value) -> Value:
    """Force of a joint's spring in inverse dynamics: the gradient of its energy."""
    if joint.stiffness.nnz() == 0:
        return ca.SX(joint.group.dim, 1)
    return _spring_at(joint, joint.coordinates.of(q))


def _spring_at(joint: JointImpedance, X: Value) -> Value:
    d = _stretch(joint, X)
    return joint.group.right_jacobian_inverse(d).T @ (joint.stiffness * d)


def _stretch(joint: JointImpedance, X: Value) -> Value:
    rest = joint.link.properties.rest
    return joint.group.minus(X, ca.DM(joint.group.identity if rest is None else rest))


def _friction(joint: JointImpedance, v: Value) -> Value:
    return _loss(joint, joint.scale * v[joint.v])


def _loss(joint: JointImpedance, own: Value) -> Value:
    speed = joint.link.properties.friction_speed
    dry = joint.friction * ca.tanh(own / speed) if joint.friction.nnz() else 0
    return joint.damping * own + dry


def weights(tree: CompiledTree, poses: list[Pose]) -> list[Value]:
    """What turns accelerations less gravity into accelerations: [Rᵀ g; 0] in each node's axes."""
    world = tree.in_world(dict(enumerate(poses)))
    return [ca.vertcat(world[k].R.T @ tree.gravity, ca.DM(3, 1)) for k in range(len(tree.nodes))]


def fluid_force(A: Value, V: Value, acceleration: Value) -> Value:
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
