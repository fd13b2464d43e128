"""Forward dynamics: articulated bodies in O(n), or a factor of the mass matrix."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..plan._drives import armature, drive_forces
from ..plan._plan import Node, Plan
from ..plan._spatial import Inertia, Motion, cross, hat, symmetric, twist_cross, wrench_cross
from ._inverse_dynamics import inverse_dynamics, node_wrenches
from ._mass_matrix import factor, mass_matrix, solve

FACTOR_SIZE = 24  # above, the cube of the factor is never cheaper than the recursion


def forward_dynamics(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """The way with fewer operations, counted; the recursion where the factor cannot win."""
    if plan.is_coupled:
        return forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    recursion = forward_dynamics_by_recursion(plan, q, v, tau, wrenches)
    if plan.nv > FACTOR_SIZE:
        return recursion
    by_factor = forward_dynamics_by_factor(plan, q, v, tau, wrenches)
    fewer = _operations(by_factor) <= _operations(recursion)
    return by_factor if fewer else recursion


def accelerations_with(M: Value, forces: Value) -> Value:
    """``M⁻¹ forces`` for a symmetric sparse M."""
    return solve(*factor(M), forces)


def _operations(expression: Value) -> int:
    expression = ca.cse(ca.SX(expression))  # a tree without joints has no symbols
    return ca.Function("count", ca.symvar(expression), [expression]).n_instructions()


def forward_dynamics_by_factor(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """Accelerations from ``M a = τ − h``, M by composite bodies and factored sparsely."""
    bias = inverse_dynamics(plan, q, v, ca.SX(plan.nv, 1), wrenches)
    return solve(*factor(mass_matrix(plan, q)), tau - bias)


def forward_dynamics_by_recursion(
    plan: Plan, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """Accelerations by articulated bodies (Featherstone 2008, section 7.3), body frames.

    Work and code grow linearly with the number of joints. Joints that share a coordinate would
    close loops: `Plan.is_coupled` trees need the factor.
    """
    nodes, motions = plan.nodes, plan.motions(q)
    drives = armature(plan)
    tau = tau - drive_forces(plan, q, v, ca.SX(plan.nv, 1))
    loads = node_wrenches(plan, wrenches)
    zero = ca.DM(6, 1)
    V: dict[int, Value] = {-1: zero}
    bias, inertia, force = [], [], []
    for k, (node, T) in enumerate(zip(nodes, motions, strict=True)):
        joint = node.S @ v[node.v]
        V[k] = T.pull(V[node.parent]) + joint
        bias.append(twist_cross(V[k], joint) if node.parent >= 0 else zero)
        inertia.append(single_body_blocks(node.inertia))
        force.append(wrench_cross(V[k], node.inertia @ V[k]))
        if loads[k] is not None:
            force[k] = force[k] - loads[k]
    eliminated = []
    for k in reversed(range(len(nodes))):
        node, T = nodes[k], motions[k]
        own = tau[node.v] - node.S.T @ force[k]
        step = eliminate(node, inertia[k], drives[node.v])
        eliminated.append((step, own))
        if node.parent >= 0:
            i = node.parent
            f = force[k] + step.rest @ bias[k] + step.gain.T @ own
            force[i] = force[i] + T.push_wrench(f)
            inertia[i] = join_blocks(inertia[i], step.rest, T)
    eliminated.reverse()
    acceleration: dict[int, Value] = {-1: ca.vertcat(-plan.gravity, ca.DM(3, 1))}
    a = ca.SX(plan.nv, 1)
    for k, (node, T) in enumerate(zip(nodes, motions, strict=True)):
        step, own = eliminated[k]
        carried = T.pull(acceleration[node.parent]) + bias[k]
        a[node.v] = solve(step.L, step.D, own) - step.gain @ carried
        acceleration[k] = carried + node.S @ a[node.v]
    return a


def pivots(plan: Plan, q: Value) -> Value:
    """Articulated inertia of every degree of freedom, column of nv: zero where nothing resists."""
    nodes, motions, drives = plan.nodes, plan.motions(q), armature(plan)
    inertia = [single_body_blocks(node.inertia) for node in nodes]
    D = ca.SX(plan.nv, 1)
    for k in reversed(range(len(nodes))):
        step = eliminate(nodes[k], inertia[k], drives[nodes[k].v])
        D[nodes[k].v] = step.D
        i = nodes[k].parent
        if i >= 0:
            inertia[i] = join_blocks(inertia[i], step.rest, motions[k])
    return D


class _Step(NamedTuple):
    """A joint taken out of an articulated inertia: what is left, and how the joint answers."""

    gain: Value
    L: Value
    D: Value
    rest: Value


_Blocks = tuple[Value, Value, Value]
"""Blocks A, B, C of an articulated inertia [[A, B], [Bᵀ, C]]."""


def single_body_blocks(inertia: Inertia) -> _Blocks:
    return inertia.m * ca.DM.eye(3), -hat(inertia.h), inertia.J


def eliminate(node: Node, inertia: _Blocks, drive: Value) -> _Step:
    A, B, C = inertia
    whole = ca.blockcat([[A, B], [B.T, C]])
    columns = whole @ node.S
    L, D = factor(node.S.T @ columns + ca.diag(drive))
    gain = solve(L, D, columns.T)
    return _Step(gain, L, D, ca.DM(6, 6) if node.parent < 0 else whole - columns @ gain)


def join_blocks(inertia: _Blocks, rest: Value, T: Motion) -> _Blocks:
    A, B, C = _moved(symmetric(rest[:3, :3]), rest[:3, 3:], symmetric(rest[3:, 3:]), T)
    return inertia[0] + A, inertia[1] + B, inertia[2] + C


def _moved(A: Value, B: Value, C: Value, T: Motion) -> tuple[Value, Value, Value]:
    """Blocks of an articulated inertia [[A, B], [Bᵀ, C]] seen from the parent's frame."""
    R, p = T
    A, B, C = symmetric(R @ A @ R.T), R @ B @ R.T, symmetric(R @ C @ R.T)
    pA = cross(p, A) if p.nnz() else ca.DM(3, 3)
    pB = cross(p, B) if p.nnz() else ca.DM(3, 3)
    # With P = p̂: B' = B − A P,  C' = C + P B + (P B)ᵀ − P A P.
    pAp = cross(p, pA.T) if p.nnz() else ca.DM(3, 3)
    return A, B + pA.T, symmetric(C + pB + pB.T + pAp)
