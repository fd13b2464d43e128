"""First derivatives of inverse and forward dynamics, and the Coriolis matrix, in closed form.

A displacement of joint k by S_k turns all it carries rigidly; on top of that the body twists
change by ``Ψ̇ = V_λ × S`` and the accelerations by ``Ψ̈ + Ψ̇ × V`` with ``Ψ̈ = A_λ × S + V_λ × Ψ̇``
(V_λ, A_λ: the carrying node, gravity in A). The inertial wrenches of a composite then change by
``I Ψ̈ + 2 B Ψ̇``: two matrices that sum over bodies. See Singh, Russell and Wensing, "Efficient
analytical derivatives of rigid-body dynamics using spatial vector algebra" (2022); here in body
frames, where most entries of S are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..dynamics._mass_matrix import Entries, composites, factor, inverse, mass_matrix_of, solve
from ..dynamics._momentum import velocity_composites
from ..kinematics._kinematics import accelerations, transmitted_wrenches, twists
from ..plan._drives import drive_forces, force_rates
from ..plan._plan import Plan
from ..plan._spatial import Inertia, Motion, Velocity, carried_along, twist_cross


class _Motionless(NamedTuple):
    """What depends on q and v alone."""

    motions: list[Motion]
    inertias: list[Inertia]
    V: list[Value]
    carried: list[Value]
    velocities: list[Velocity]


def inverse_dynamics_derivatives(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂τ/∂q (tangent coordinates), ∂τ/∂v and ∂τ/∂a = M, sparse nv × nv."""
    state = _prepare(plan, q, v, 2.0)
    M = mass_matrix_of(plan, state.motions, state.inertias)
    return *_position_and_velocity(plan, q, v, a, wrenches, state), M


def forward_dynamics_derivatives(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂v̇/∂q (tangent coordinates), ∂v̇/∂v and ∂v̇/∂τ = M⁻¹.

    ``∂v̇/∂x = −M⁻¹ ∂τ/∂x`` at the accelerations the forces cause, with the factor of M.
    """
    state = _prepare(plan, q, v, 2.0)
    L, D = factor(mass_matrix_of(plan, state.motions, state.inertias))
    none = ca.SX(plan.nv, 1)
    A = accelerations(plan, state.motions, state.V, v, none, gravity=True)
    W = transmitted_wrenches(plan, state.motions, state.V, A, wrenches)
    bias = drive_forces(plan, q, v, none)
    for node, wrench in zip(plan.nodes, W, strict=True):
        bias[node.v] += node.S.T @ wrench
    a = solve(L, D, tau - bias)
    dq, dv = _position_and_velocity(plan, q, v, a, wrenches, state)
    return solve(L, D, -dq), solve(L, D, -dv), inverse(L, D)


def coriolis_matrix(plan: Plan, q: Value, v: Value) -> Value:
    """Matrix C with ``C v`` the velocity-dependent forces and ``Ṁ − 2 C`` skew.

    ``C = Σ Jᵀ (I J̇ + B J)`` with the B of `Velocity` (Echeandia and Wensing 2021).
    """
    state = _prepare(plan, q, v, 1.0)
    C = Entries(plan.nv, plan.nv)
    rates = [twist_cross(state.V[k], node.S) for k, node in enumerate(plan.nodes)]
    for k, node in enumerate(plan.nodes):
        inertia, velocity = state.inertias[k], state.velocities[k]
        F, G = inertia @ node.S, velocity.half_transposed(node.S)
        H = velocity.half(node.S) + inertia @ rates[k]
        C.add(node.v, node.v, node.S.T @ H)
        i = k
        while plan.nodes[i].parent >= 0:
            T = state.motions[i]
            F, H, G = T.push_wrench(F), T.push_wrench(H), T.R @ G
            i = plan.nodes[i].parent
            other = plan.nodes[i]
            C.add(other.v, node.v, other.S.T @ H)
            C.add(node.v, other.v, G.T @ other.S[3:, :] + F.T @ rates[i])
    return C.matrix()


def _prepare(plan: Plan, q: Value, v: Value, factor: float) -> _Motionless:
    """Common parts; the factor makes B or 2 B of the composites' `Velocity.half`."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    carried = [
        ca.DM(6, 1) if node.parent < 0 else T.pull(V[node.parent])
        for node, T in zip(plan.nodes, motions, strict=True)
    ]
    return _Motionless(
        motions,
        composites(plan, motions),
        V,
        carried,
        velocity_composites(plan, motions, V, factor),
    )


def _position_and_velocity(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None, state: _Motionless
) -> tuple[Value, Value]:
    A = accelerations(plan, state.motions, state.V, v, a, gravity=True)
    W = transmitted_wrenches(plan, state.motions, state.V, A, wrenches)
    world = ca.vertcat(-plan.gravity, ca.DM(3, 1))
    dq, dv = Entries(plan.nv, plan.nv), Entries(plan.nv, plan.nv)
    first, second, fast = [], [], []
    for k, node in enumerate(plan.nodes):
        T, carried = state.motions[k], state.carried[k]
        rest = T.pull(world if node.parent < 0 else A[node.parent])
        inertia, velocity = state.inertias[k], state.velocities[k]
        first.append(twist_cross(carried, node.S))
        second.append(twist_cross(rest, node.S) + twist_cross(carried, first[k]))
        fast.append(first[k] + twist_cross(state.V[k], node.S))
        F, G = inertia @ node.S, velocity.half_transposed(node.S)
        position = velocity.half(first[k]) + inertia @ second[k]
        rate = velocity.half(node.S) + inertia @ fast[k]
        dq.add(node.v, node.v, node.S.T @ position)
        dv.add(node.v, node.v, node.S.T @ rate)
        position = position + carried_along(node.S, W[k])
        i = k
        while plan.nodes[i].parent >= 0:
            T = state.motions[i]
            F, G = T.push_wrench(F), T.R @ G
            position, rate = T.push_wrench(position), T.push_wrench(rate)
            i = plan.nodes[i].parent
            other = plan.nodes[i]
            dq.add(other.v, node.v, other.S.T @ position)
            dv.add(other.v, node.v, other.S.T @ rate)
            dq.add(node.v, other.v, G.T @ first[i][3:, :] + F.T @ second[i])
            dv.add(node.v, other.v, G.T @ other.S[3:, :] + F.T @ fast[i])
    losses_q, losses_v = force_rates(plan, q, v)
    return dq.matrix() + losses_q, dv.matrix() + losses_v
