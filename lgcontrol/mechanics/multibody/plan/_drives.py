"""Forces of joints on themselves: armature, friction, springs; and their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import casadi as ca

from ....codegen import Value
from ._plan import Drive, Plan


def drive_forces(plan: Plan, q: Value, v: Value, a: Value) -> Value:
    """What drives, losses and springs add to inverse dynamics."""
    tau = ca.SX(plan.nv, 1)
    for drive in plan.drives:
        inertial = drive.armature * (drive.scale * a[drive.v])
        own = inertial + _friction(drive, v) + spring_force(drive, q)
        tau[drive.v] += drive.scale * own
    return tau


def armature(plan: Plan) -> Value:
    """What drives add to the diagonal of the mass matrix, column of nv."""
    total = ca.SX(plan.nv, 1)
    for drive in plan.drives:
        total[drive.v] += drive.scale**2 * drive.armature
    return ca.sparsify(total)


def spring_energy(plan: Plan, q: Value) -> Value:
    """Energy of all springs [J]."""
    energy = ca.SX(1, 1)
    for drive in plan.drives:
        if drive.stiffness.nnz():
            d = _stretch(drive, drive.coordinates(q))
            energy += ca.dot(drive.stiffness, d * d) / 2
    return energy


def force_rates(plan: Plan, q: Value, v: Value) -> tuple[Value, Value]:
    """Derivatives of `drive_forces` in tangent coordinates and in v, sparse nv × nv."""
    dq, dv = ca.SX(plan.nv, plan.nv), ca.SX(plan.nv, plan.nv)
    for drive in plan.drives:
        if drive.stiffness.nnz():
            d = ca.SX.sym("d", drive.group.dim)
            X = drive.coordinates(q)
            moved = drive.group._plus(X, drive.scale * d)
            slope = ca.jacobian(_spring_at(drive, moved), d)
            dq[drive.v, drive.v] += drive.scale * ca.substitute(slope, d, ca.DM.zeros(d.shape))
        if drive.damping.nnz() or drive.friction.nnz():
            own = ca.SX.sym("v", drive.group.dim)
            slope = ca.jacobian(_loss(drive, own), own)
            dv[drive.v, drive.v] += drive.scale**2 * ca.substitute(
                slope, own, drive.scale * v[drive.v]
            )
    return dq, dv


def force_curvatures(plan: Plan, q: Value, v: Value) -> list[tuple[slice, Value, Value]]:
    """Second derivatives of every drive's forces: place in v, by tangent coordinates, by v.

    Tensors dim × dim × dim as slices by the last index side by side.
    """
    found = []
    for drive in plan.drives:
        n = drive.group.dim
        d, own = ca.SX.sym("d", n), ca.SX.sym("v", n)
        moved = drive.group._plus(drive.coordinates(q), drive.scale * d)
        bent, dry = ca.SX(n, n * n), ca.SX(n, n * n)
        if drive.stiffness.nnz():
            bent = _curvature(drive.scale * _spring_at(drive, moved), d, ca.DM.zeros(n))
        if drive.friction.nnz():
            loss = drive.scale * _loss(drive, drive.scale * own)
            dry = _curvature(loss, own, v[drive.v])
        found.append((drive.v, bent, dry))
    return found


def _curvature(f: Value, x: Value, at: Value) -> Value:
    slope = ca.jacobian(f, x)
    slices = [ca.jacobian(slope[:, j], x) for j in range(x.shape[0])]
    # The slices are by the first variable; the tensor is symmetric in the two.
    return ca.sparsify(ca.substitute(ca.horzcat(*slices), x, at))


def drive_force_derivatives(plan: Plan, q: Value, rates: Sequence[Value]) -> list[Value]:
    """Time derivatives 0, 1, … of `drive_forces`, for the rates v, a, … (one more than these)."""
    order = len(rates) - 2
    totals = [ca.SX(plan.nv, 1) for _ in range(order + 1)]
    for drive in plan.drives:
        own = [drive.scale * rate[drive.v] for rate in rates]
        dry, springs = _friction_derivatives(drive, own), _spring_derivatives(drive, q, own)
        for n, total in enumerate(totals):
            force = drive.armature * own[n + 1] + drive.damping * own[n] + dry[n] + springs[n]
            total[drive.v] += drive.scale * force
    return totals


def _friction_derivatives(drive: Drive, own: Sequence[Value]) -> list[Value]:
    """Of ``f tanh(v / speed)``: the slope of y = tanh x is z = 1 − y²; both by Leibniz' rule."""
    if drive.friction.nnz() == 0:
        return [ca.SX(drive.group.dim, 1) for _ in own[1:]]
    x = [rate / drive.link.properties.friction_speed for rate in own[:-1]]
    y, z = [ca.tanh(x[0])], []
    for n in range(len(x) - 1):
        square = sum(comb(n, i) * y[i] * y[n - i] for i in range(n + 1))
        z.append((1 if n == 0 else 0) - square)
        y.append(sum(comb(n, i) * z[i] * x[n + 1 - i] for i in range(n + 1)))
    return [drive.friction * value for value in y]


def _spring_derivatives(drive: Drive, q: Value, own: Sequence[Value]) -> list[Value]:
    """Of a spring's force, a function of the stretch d, whose rate is ``Jr⁻¹(d) v``."""
    dim = drive.group.dim
    if drive.stiffness.nnz() == 0:
        return [ca.SX(dim, 1) for _ in own[1:]]
    d, rates = ca.SX.sym("d", dim), [ca.SX.sym("v", dim) for _ in own]
    slope = drive.group._right_jacobian_inverse(d)
    forces = [slope.T @ (drive.stiffness * d)]
    for n in range(len(own) - 2):
        force = ca.jtimes(forces[n], d, slope @ rates[0])
        for i in range(n):
            force += ca.jtimes(forces[n], rates[i], rates[i + 1])
        forces.append(force)
    stretch = _stretch(drive, drive.coordinates(q))
    return ca.substitute(forces, [d, *rates], [stretch, *own])


def spring_force(drive: Drive, q: Value) -> Value:
    """Force of a joint's spring in inverse dynamics: the gradient of its energy."""
    if drive.stiffness.nnz() == 0:
        return ca.SX(drive.group.dim, 1)
    return _spring_at(drive, drive.coordinates(q))


def _spring_at(drive: Drive, X: Value) -> Value:
    d = _stretch(drive, X)
    return drive.group._right_jacobian_inverse(d).T @ (drive.stiffness * d)


def _stretch(drive: Drive, X: Value) -> Value:
    rest = drive.link.properties.rest
    return drive.group._minus(X, ca.DM(drive.group.identity if rest is None else rest))


def _friction(drive: Drive, v: Value) -> Value:
    return _loss(drive, drive.scale * v[drive.v])


def _loss(drive: Drive, own: Value) -> Value:
    speed = drive.link.properties.friction_speed
    dry = drive.friction * ca.tanh(own / speed) if drive.friction.nnz() else 0
    return drive.damping * own + dry
