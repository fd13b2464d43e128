"""Inverse dynamics as a matrix times the inertial parameters; accelerations by them."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ....codegen import Value
from .._spatial import Inertia, cross, hat
from ..compiled._compiled_tree import CompiledTree, compiled
from ..compiled._functions import declared
from ..compiled._sparse import factor, solve
from ..dynamics._forward_dynamics import forward_dynamics_by_factor
from ..dynamics._mass_matrix import mass_matrix, refuse_singular
from ..kinematics._recursions import accelerations, twists
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
