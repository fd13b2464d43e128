"""Derivatives of inverse dynamics by the placements of joints (Müller 2018, section 6.2).

A displacement U of a joint's frame is that of a joint that does not move: it turns all it carries,
and on top of that the bodies see the twist and the acceleration of the carrying node change by
``V × U`` and ``A × U + V × (V × U)``, as in the derivatives by coordinates. Everything is told in
the carrier's frame, where V and A are at hand and U is constant; a generalized force then has one
covector for all six displacements of a joint.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..dynamics._mass_matrix import Entries, composites
from ..dynamics._momentum import velocity_composites
from ..kinematics._kinematics import accelerations, transmitted_wrenches, twists
from ..kinematics._path_screws import placement_directions
from ..plan._plan import Plan
from ..plan._spatial import Motion, carried_along, cross, hat, point_accelerations


class _Drag(NamedTuple):
    """What a displaced composite sees of its carrier's motion.

    ``V × U = [*; ω × u]`` and ``A × U + V × (V × U) = [X l + Y u; X u]`` for U = [l; u].
    """

    w: Value
    X: Value
    Y: Value

    @classmethod
    def of(cls, V: Value, A: Value) -> _Drag:
        """For a carrier with the twist V and its rate A."""
        v, w = hat(V[:3]), hat(V[3:])
        return cls(V[3:], point_accelerations(V[3:], A[3:]), hat(A[:3]) + w @ v + v @ w)

    def transposed(self, F: Value, G: Value) -> Value:
        """Covectors of displacements for wrenches F = I S and couples G = 2 Bᵀ S (columns)."""
        f, m = F[:3, :], F[3:, :]
        return ca.vertcat(self.X.T @ f, self.Y.T @ f + self.X.T @ m - cross(self.w, G))


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
    world = ca.DM(6, 1), ca.vertcat(-plan.gravity, ca.DM(3, 1))
    tau = Entries(plan.nv, 6 * len(joints))
    subspaces = _Subspaces(plan, motions)
    displaced: dict[int, tuple[slice, Value, _Drag]] = {}
    for number, joint in enumerate(joints):
        k, i, *_ = plan.rests[joint]
        U, place = placement_directions(plan, joint), slice(6 * number, 6 * number + 6)
        drag = _Drag.of(*(world if i < 0 else (V[i], A[i])))
        displaced[k] = place, U, drag
        if i < 0:
            continue
        T = motions[k]
        inertia, velocity, wrench = (
            inertias[k].moved(T),
            velocities[k].moved(T),
            T.push_wrench(W[k]),
        )
        for j, S in subspaces[i].items():
            D = drag.transposed(inertia @ S, velocity.half_transposed(S))
            D = D - carried_along(S, wrench)
            tau.add(plan.nodes[j].v, place, D.T @ U)
    for k, node in enumerate(plan.nodes):
        F, G = inertias[k] @ node.S, velocities[k].half_transposed(node.S)
        i = k
        while i >= 0:
            F, G = motions[i].push_wrench(F), motions[i].R @ G
            if i in displaced:
                place, U, drag = displaced[i]
                tau.add(node.v, place, drag.transposed(F, G).T @ U)
            i = plan.nodes[i].parent
    return tau.matrix()


class _Subspaces:
    """Motion subspaces of a node and of all that carry it, in the node's frame, each made once."""

    def __init__(self, plan: Plan, motions: list[Motion]) -> None:
        self._plan, self._motions = plan, motions
        self._seen: dict[int, dict[int, Value]] = {-1: {}}

    def __getitem__(self, k: int) -> dict[int, Value]:
        for j in reversed(self._plan.path(k)):
            if j not in self._seen:
                node, T = self._plan.nodes[j], self._motions[j]
                carried = self._seen[node.parent].items()
                self._seen[j] = {i: T.pull(S) for i, S in carried} | {j: node.S}
        return self._seen[k]
