"""Forces of joints on themselves: armature, friction, springs; and their derivatives."""

from __future__ import annotations

import casadi as ca

from ...codegen import Value
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
