"""Derivatives of inverse dynamics by the placements of joints (Müller 2018, section 6.2).

A displacement U of a joint's frame is that of a joint that does not move: it turns all it carries,
and on top of that the bodies see the twist and the acceleration of the carrying node change by
``V_λ × U`` and ``A_λ × U + V_λ × (V_λ × U)``, as in the derivatives by coordinates.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import casadi as ca

from ...codegen import Value
from ._derivatives import carried_along
from ._kinematics import accelerations, transmitted_wrenches, twists
from ._mass_matrix import Entries, composites
from ._momentum import velocity_composites
from ._path_screws import placement_directions
from ._plan import Plan
from ._spatial import twist_cross


class _Displacement(NamedTuple):
    """Six displacements in a joint's first node, and what they do to twists and their rates."""

    parameters: slice
    U: Value
    first: Value
    second: Value


def inverse_dynamics_geometry_derivatives(
    plan: Plan,
    q: Value,
    v: Value,
    a: Value,
    wrenches: Value | None = None,
    *,
    joints: tuple[str, ...],
) -> Value:
    """∂τ/∂π, sparse nv × 6 joints; drives, losses and springs do not depend on geometry."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    A = accelerations(plan, motions, V, v, a, gravity=True)
    W = transmitted_wrenches(plan, motions, V, A, wrenches)
    inertias = composites(plan, motions)
    velocities = velocity_composites(plan, motions, V, 2.0)
    world = ca.vertcat(-plan.gravity, ca.DM(3, 1))
    at: dict[int, list[_Displacement]] = defaultdict(list)
    tau = Entries(plan.nv, 6 * len(joints))
    for number, joint in enumerate(joints):
        k, parent, *_ = plan.rests[joint]
        still = parent < 0
        twist = ca.DM(6, 1) if still else motions[k].pull(V[parent])
        rest = motions[k].pull(world if still else A[parent])
        U = motions[k].pull(placement_directions(plan, joint))
        first = twist_cross(twist, U)
        second = twist_cross(rest, U) + twist_cross(twist, first)
        own = _Displacement(slice(6 * number, 6 * number + 6), U, first, second)
        at[k].append(own)
        wrench = inertias[k] @ second + velocities[k].half(first) + carried_along(U, W[k])
        i = k
        while plan.nodes[i].parent >= 0:
            wrench = motions[i].push_wrench(wrench)
            i = plan.nodes[i].parent
            tau.add(plan.nodes[i].v, own.parameters, plan.nodes[i].S.T @ wrench)
    for k, node in enumerate(plan.nodes):
        F, G = inertias[k] @ node.S, velocities[k].half_transposed(node.S)
        i = k
        while True:
            for own in at[i]:
                block = G.T @ own.first[3:, :] + F.T @ own.second
                tau.add(node.v, own.parameters, block)
            if plan.nodes[i].parent < 0:
                break
            F, G = motions[i].push_wrench(F), motions[i].R @ G
            i = plan.nodes[i].parent
    return tau.matrix()
