"""Derivatives of the dynamics by inertial parameters, and by those of the geometry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import casadi as ca
import numpy as np

from ....codegen import Value
from .._spatial import Inertia, Pose, carried_along, cross, hat, point_accelerations
from ..compiled._compiled_tree import CompiledTree, compiled
from ..compiled._functions import Declaration, TreeFunction, declared, function_of, takes_names
from ..compiled._sparse import Entries, factor, solve
from ..dynamics._dynamics import (
    composites,
    forward_dynamics_by_factor,
    mass_matrix,
    refuse_singular,
)
from ..dynamics._momentum import velocity_composites
from ..kinematics._jacobian_derivatives import displaced_joints, placement_directions
from ..kinematics._recursions import accelerations, transmitted_wrenches, twists
from ..tree._tree import Tree


@declared("q v a", {"Y": "vp"}, is_rigid=True)
def inverse_dynamics_regressor(tree: CompiledTree, q: Value, v: Value, a: Value) -> Value:
    """(q, v, a) → Y with ``tau = Y inertial_parameters`` for the bodies, (..., nv, 10 n)."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=True)
    blocks = []
    for name, k in tree.bodies:
        T = tree.frames[name].pose
        F = T.push_wrench(_body_regressor(T.pull(V[k]), T.pull(A[k])))
        columns = ca.SX(tree.nv, 10)
        while k >= 0:
            node = tree.nodes[k]
            columns[node.v, :] += node.S.T @ F
            F = poses[k].push_wrench(F)
            k = node.parent
        blocks.append(columns)
    return ca.horzcat(ca.SX(tree.nv, 0), *blocks)


@declared(
    "q v tau", {"d_a_d_parameters": "vp"}, regrouped=True, wrenches=True, check=refuse_singular
)
def forward_dynamics_parameter_derivatives(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, tau[, wrenches]) → ∂a/∂φ by `inertial_parameters`, shape (..., nv, 10 n_bodies).

    The sensitivity ``−M⁻¹ Y`` of accelerations to masses, first moments and inertia tensors, Y
    being `inverse_dynamics_regressor`: for parameter estimation from measured motions.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> slope = pendulum.forward_dynamics_parameter_derivatives([0.0], [0.0], [4.0])
    >>> slope[0, 6].round(3)  # by Iyy about the axis: −tau / Iyy²
    np.float64(-1.0)
    """
    a = forward_dynamics_by_factor(tree, q, v, tau, wrenches)
    Y = ca.sparsify(inverse_dynamics_regressor(tree, q, v, a))
    return solve(*factor(mass_matrix(tree, q)), -Y)


def inertial_parameters(tree: Tree) -> np.ndarray:
    """Parameters φ of `inverse_dynamics_regressor`, shape (10 bodies,).

    For each body m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about its frame's origin, with what is
    fixed to it.
    """
    made, parts = compiled(tree), [np.zeros(0)]
    for name, k in made.bodies:
        own = made.nodes[k].inertia.moved(made.frames[name].pose.inverse())
        parts.append(np.array(ca.DM(_parameters(own))).ravel())
    return np.concatenate(parts)


def _parameters(inertia: Inertia) -> Value:
    """m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame origin, column of 10."""
    J = inertia.J
    return ca.densify(
        ca.vertcat(inertia.m, inertia.h, J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2])
    )


def _body_regressor(V: Value, A: Value) -> Value:
    w, dw = V[3:], A[3:]
    lift = A[:3] + cross(w, V[:3])
    turn, rate = hat(w), hat(dw)
    return ca.blockcat(
        [
            [lift, rate + turn @ turn, ca.SX(3, 6)],
            [ca.SX(3, 1), -hat(lift), _tensor_times(dw) + turn @ _tensor_times(w)],
        ]
    )


def _tensor_times(w: Value) -> Value:
    """3 × 6 matrix L with ``J w = L [Jxx, Jxy, Jyy, Jxz, Jyz, Jzz]``."""
    x, y, z = w[0], w[1], w[2]
    o = ca.SX(1, 1)
    return ca.blockcat([[x, y, o, z, o, o], [o, x, y, o, z, o], [o, o, o, x, y, z]])


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
    """∂τ/∂π, sparse nv × 6 joints; drives, losses and springs do not depend on geometry.

    A displacement U of a joint's frame is that of a joint that does not move (Müller 2018, section
    6.2): it turns all it carries, and on top of that the bodies see the twist and the acceleration
    of the carrying node change by ``V × U`` and ``A × U + V × (V × U)``, as in the derivatives by
    coordinates. Everything is told in the carrier's frame, where V and A are at hand and U is
    constant; a generalized force then has one covector for all six displacements of a joint.
    """
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
