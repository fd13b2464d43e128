"""Forces of joints on themselves: armature, friction, springs; and their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import casadi as ca

from ....codegen import Value
from ._compiled_tree import CompiledTree, JointImpedance


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
