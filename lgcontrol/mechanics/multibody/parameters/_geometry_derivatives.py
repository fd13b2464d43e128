"""Derivatives of inverse dynamics by the placements of joints (Müller 2018, section 6.2).

A displacement U of a joint's frame is that of a joint that does not move: it turns all it carries,
and on top of that the bodies see the twist and the acceleration of the carrying node change by
``V × U`` and ``A × U + V × (V × U)``, as in the derivatives by coordinates. Everything is told in
the carrier's frame, where V and A are at hand and U is constant; a generalized force then has one
covector for all six displacements of a joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, carried_along, cross, hat, point_accelerations
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import Declaration, TreeFunction, function_of, takes_names
from ..compiled._sparse import Entries
from ..dynamics._mass_matrix import composites
from ..dynamics._momentum import velocity_composites
from ..kinematics._jacobian_derivatives import displaced_joints, placement_directions
from ..kinematics._recursions import accelerations, transmitted_wrenches, twists
from ..tree._tree import Tree


@takes_names
def inverse_dynamics_geometry_derivatives(tree: Tree, joints: Sequence[str] = ()) -> TreeFunction:
    """(q, v, a[, wrenches]) → derivatives of τ by the geometry, shape (..., nv, n_parameters).

    Bodies keep their inertias and what acts on them in their own frames; drives, losses and
    springs do not depend on the geometry. Forward dynamics change by ``−M⁻¹`` times this.

    Parameters
    ----------
    joints : sequence of str
        As in `calibration_jacobian`.

    References
    ----------
    Müller 2018, section 6.2.

    Examples
    --------
    A ball at 1 m on a level hinge: raising the pivot along the rod changes nothing, turning
    it by an angle swings the weight.

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> slope = tree.inverse_dynamics_geometry_derivatives()([0.0], [0.0], [0.0])
    >>> dict(zip(tree.geometric_parameters(), slope[0].round(2).tolist()))["ball.placement.ry"]
    19.62
    """
    names = displaced_joints(tree, joints)
    declaration = Declaration(
        "inverse_dynamics_geometry_derivatives",
        "q v a",
        {"d_tau_d_placement": ("v", 6 * len(names))},
        partial(_geometry_derivatives, joints=names),
        wrenches=True,
        keep=names,
        instead="name fewer joints",
        is_rigid=True,
    )
    return function_of(tree, declaration, names)


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


def _geometry_derivatives(
    tree: CompiledTree,
    q: Value,
    v: Value,
    a: Value,
    wrenches: Value | None = None,
    *,
    joints: tuple[str, ...],
) -> Value:
    """∂τ/∂π, sparse nv × 6 joints; drives, losses and springs do not depend on geometry."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=True)
    W = transmitted_wrenches(tree, poses, V, A, wrenches)
    inertias = composites(tree, poses)
    velocities = velocity_composites(tree, poses, V, 2.0)
    world = ca.DM(6, 1), ca.vertcat(-tree.gravity, ca.DM(3, 1))
    tau = Entries(tree.nv, 6 * len(joints))
    subspaces = _Subspaces(tree, poses)
    displaced: dict[int, tuple[slice, Value, _Drag]] = {}
    for number, joint in enumerate(joints):
        k, i, *_ = tree.joint_frames[joint]
        U, place = placement_directions(tree, joint), slice(6 * number, 6 * number + 6)
        drag = _Drag.of(*(world if i < 0 else (V[i], A[i])))
        displaced[k] = place, U, drag
        if i < 0:
            continue
        T = poses[k]
        inertia, velocity, wrench = (
            inertias[k].moved(T),
            velocities[k].moved(T),
            T.push_wrench(W[k]),
        )
        for j, S in subspaces[i].items():
            D = drag.transposed(inertia @ S, velocity.half_transposed(S))
            D = D - carried_along(S, wrench)
            tau.add(tree.nodes[j].v, place, D.T @ U)
    for k, node in enumerate(tree.nodes):
        F, G = inertias[k] @ node.S, velocities[k].half_transposed(node.S)
        i = k
        while i >= 0:
            F, G = poses[i].push_wrench(F), poses[i].R @ G
            if i in displaced:
                place, U, drag = displaced[i]
                tau.add(node.v, place, drag.transposed(F, G).T @ U)
            i = tree.nodes[i].parent
    return tau.matrix()


class _Subspaces:
    """Motion subspaces of a node and of all that carry it, in the node's frame, each made once."""

    def __init__(self, tree: CompiledTree, poses: list[Pose]) -> None:
        self._tree, self._poses = tree, poses
        self._seen: dict[int, dict[int, Value]] = {-1: {}}

    def __getitem__(self, k: int) -> dict[int, Value]:
        for j in reversed(self._tree.path(k)):
            if j not in self._seen:
                node, T = self._tree.nodes[j], self._poses[j]
                carried = self._seen[node.parent].items()
                self._seen[j] = {i: T.pull(S) for i, S in carried} | {j: node.S}
        return self._seen[k]
