"""First derivatives of inverse and forward dynamics, and the Coriolis matrix, in closed form.

A displacement of joint k by S_k turns all it carries rigidly; on top of that the body twists
change by ``Ψ̇ = V_λ × S`` and the accelerations by ``Ψ̈ + Ψ̇ × V`` with ``Ψ̈ = A_λ × S + V_λ × Ψ̇``
(V_λ, A_λ: the carrying node, gravity in A). The inertial wrenches of a composite then change by
``I Ψ̈ + 2 B Ψ̇``: two matrices that sum over bodies. See Singh, Russell and Wensing, "Efficient
analytical derivatives of rigid-body dynamics using spatial vector algebra" (2022); here in body
frames, where most entries of S are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import scipy.linalg

from ....codegen import Value
from ....codegen._internal import check_shape
from .._spatial import Inertia, Pose, Velocity, carried_along, twist_cross
from ..compiled._added_forces import (
    add_coriolis_matrix,
    add_derivatives,
    joint_force_rates,
    joint_forces,
)
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import declared
from ..compiled._sparse import Entries, factor, inverse, solve
from ..dynamics._dynamics import composites, mass_matrix_of, refuse_singular
from ..dynamics._momentum import velocity_composites
from ..kinematics._recursions import accelerations, transmitted_wrenches, twists
from ..large_trees import _recursions as large
from ..tree._tree import Tree


class _Velocities(NamedTuple):
    """What depends on q and v alone."""

    poses: list[Pose]
    inertias: list[Inertia]
    V: list[Value]
    carried: list[Value]
    velocities: list[Velocity]


@declared(
    "q v a",
    {"d_tau_d_q": "vv", "d_tau_d_v": "vv", "d_tau_d_a": "vv"},
    regrouped=True,
    wrenches=True,
    large=large.INVERSE_DYNAMICS_DERIVATIVES,
)
def inverse_dynamics_derivatives(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """(q, v, a[, wrenches]) → d_tau_d_q, d_tau_d_v, d_tau_d_a, shape (..., nv, nv) each.

    Derivatives by q are those of ``d ↦ f(plus(q, d))`` at 0; wrenches stay fixed in their
    bodies.
    """
    state = _prepare(tree, q, v, 2.0)
    M = mass_matrix_of(tree, state.poses, state.inertias)
    return *_position_and_velocity(tree, q, v, a, wrenches, state), M


@declared(
    "q v tau",
    {"d_a_d_q": "vv", "d_a_d_v": "vv", "d_a_d_tau": "vv"},
    regrouped=True,
    wrenches=True,
    check=refuse_singular,
    large=large.FORWARD_DYNAMICS_DERIVATIVES,
)
def forward_dynamics_derivatives(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """(q, v, tau[, wrenches]) → d_a_d_q, d_a_d_v, d_a_d_tau = M⁻¹, (..., nv, nv) each.

    ``∂a/∂x = −M⁻¹ ∂τ/∂x`` at the accelerations the forces cause, with the factor of M.
    """
    state = _prepare(tree, q, v, 2.0)
    L, D = factor(mass_matrix_of(tree, state.poses, state.inertias))
    none = ca.SX(tree.nv, 1)
    A = accelerations(tree, state.poses, state.V, v, none, gravity=True)
    W = transmitted_wrenches(tree, state.poses, state.V, A, wrenches)
    bias = joint_forces(tree, q, v, none)
    for node, wrench in zip(tree.nodes, W, strict=True):
        bias[node.v] += node.S.T @ wrench
    a = solve(L, D, tau - bias)
    dq, dv = _position_and_velocity(tree, q, v, a, wrenches, state)
    return solve(L, D, -dq), solve(L, D, -dv), inverse(L, D)


@declared("q v", {"C": "vv"}, regrouped=True)
def coriolis_matrix(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → C with ``C v`` the velocity-dependent forces of bodies, ``Ṁ − 2 C`` skew.

    Of the many such C it is the one of the kinetic energy's own connection:
    ``C_ik = Σ_j Γ_ijk v_j`` with `connection_coefficients` Γ, `christoffel_symbols` for joints
    with one degree of freedom.

    ``C = Σ Jᵀ (I J̇ + B J)`` with the B of `Velocity` (Echeandia and Wensing 2021).
    """
    state = _prepare(tree, q, v, 1.0)
    C = Entries(tree.nv, tree.nv)
    rates = [twist_cross(state.V[k], node.S) for k, node in enumerate(tree.nodes)]
    for k, node in enumerate(tree.nodes):
        inertia, velocity = state.inertias[k], state.velocities[k]
        F, G = inertia @ node.S, velocity.half_transposed(node.S)
        H = velocity.half(node.S) + inertia @ rates[k]
        C.add(node.v, node.v, node.S.T @ H)
        i = k
        while tree.nodes[i].parent >= 0:
            T = state.poses[i]
            F, H, G = T.push_wrench(F), T.push_wrench(H), T.R @ G
            i = tree.nodes[i].parent
            other = tree.nodes[i]
            C.add(other.v, node.v, other.S.T @ H)
            C.add(node.v, other.v, G.T @ other.S[3:, :] + F.T @ rates[i])
    if tree.has_added_mass:
        add_coriolis_matrix(C, tree, state.poses, state.V)
    return C.matrix()


@declared("q v a", {"M": "vv", "D": "vv", "K": "vv", "ad_v": "vv"}, regrouped=True, wrenches=True)
def linearized_equations(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """(q, v, a[, wrenches]) → M, D, K, ad_v: small motions about a motion, (..., nv, nv) each.

    ``M δv̇ + D δv + K ε = δτ`` with ``X = X̄ exp(ε)``, ``ε̇ = δv − ad_v ε``. D has damping and
    gyroscopic forces, K stiffness: weight, springs, centrifugal forces, external wrenches
    (fixed in their bodies). The state matrix of (ε, δv) is
    ``[[−ad_v, 1], [−M⁻¹ K, −M⁻¹ D]]``, that of ``tree.system().linearize``. ad_v is the bracket
    of the joints' groups: zero for joints with one degree of freedom.

    About an equilibrium v and a are zero: see `normal_modes`.

    References
    ----------
    Müller 2018, section 6.1.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> tree.linearized_equations([0.0], [0.0], [0.0]).K.round(6).tolist()
    [[9.81]]
    """
    K, D, M = inverse_dynamics_derivatives(tree, q, v, a, wrenches)
    return M, D, K, joint_brackets(tree, v)


@declared("q v a", {"M": "vv", "D": "vv", "K": "vv"}, regrouped=True, wrenches=True)
def linearized_error_equations(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """(q, v, a[, wrenches]) → M, D, K with ``M ε̈ + D ε̇ + K ε = δτ``, (..., nv, nv) each.

    `linearized_equations` as one equation of second order in ``ε = minus(X, X̄)``: with
    ``δv = ε̇ + ad_v ε``, ``D + M ad_v`` and ``K + D ad_v + M ad_a`` take the places of D and K.
    """
    K, D, M = inverse_dynamics_derivatives(tree, q, v, a, wrenches)
    turn, turn_rate = joint_brackets(tree, v), joint_brackets(tree, a)
    return M, D + M @ turn, K + D @ turn + M @ turn_rate


def joint_brackets(tree: CompiledTree, v: Value) -> Value:
    """Block diagonal ``ad_v`` of the configuration group, nv × nv."""
    ad = ca.SX(tree.nv, tree.nv)
    for node in tree.nodes:
        if not node.group.is_commutative:
            ad[node.v, node.v] = node.group.ad(v[node.v])
    return ad


def _prepare(tree: CompiledTree, q: Value, v: Value, factor: float) -> _Velocities:
    """Common parts; the factor makes B or 2 B of the composites' `Velocity.half`."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    carried = [
        ca.DM(6, 1) if node.parent < 0 else T.pull(V[node.parent])
        for node, T in zip(tree.nodes, poses, strict=True)
    ]
    return _Velocities(
        poses, composites(tree, poses), V, carried, velocity_composites(tree, poses, V, factor)
    )


def _position_and_velocity(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None, state: _Velocities
) -> tuple[Value, Value]:
    A = accelerations(tree, state.poses, state.V, v, a, gravity=True)
    W = transmitted_wrenches(tree, state.poses, state.V, A, wrenches)
    world = ca.vertcat(-tree.gravity, ca.DM(3, 1))
    dq, dv = Entries(tree.nv, tree.nv), Entries(tree.nv, tree.nv)
    first, second, fast = [], [], []
    for k, node in enumerate(tree.nodes):
        T, carried = state.poses[k], state.carried[k]
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
        while tree.nodes[i].parent >= 0:
            T = state.poses[i]
            F, G = T.push_wrench(F), T.R @ G
            position, rate = T.push_wrench(position), T.push_wrench(rate)
            i = tree.nodes[i].parent
            other = tree.nodes[i]
            dq.add(other.v, node.v, other.S.T @ position)
            dv.add(other.v, node.v, other.S.T @ rate)
            dq.add(node.v, other.v, G.T @ first[i][3:, :] + F.T @ second[i])
            dv.add(node.v, other.v, G.T @ other.S[3:, :] + F.T @ fast[i])
    if tree.has_added_mass:
        add_derivatives(dq, dv, tree, state.poses, state.V, A)
    losses_q, losses_v = joint_force_rates(tree, q, v)
    return dq.matrix() + losses_q, dv.matrix() + losses_v


SYMMETRY = 1e-9  # of K, relative: what rounding of the linearization leaves

STIFFNESS_ROUNDING = 32 * np.finfo(float).eps  # of entries of K per mass, against the largest one


@dataclass(frozen=True, eq=False)
class NormalModes:
    """Small motions about a rest position, in tangent coordinates ε of the joints.

    Attributes
    ----------
    squared_frequencies : ndarray, shape (nv,)
        ω² of the undamped motion ``M ε̈ + K ε = 0``, ascending [rad²/s²]. They are zero for free
        motions (zeros of K off by rounding count as zero), negative for unstable ones.
    shapes : ndarray, shape (nv, nv)
        Modes as columns, with ``shapesᵀ M shapes = 1`` and ``shapesᵀ K shapes = diag(ω²)``.
    poles : ndarray of complex, shape (2 nv,)
        Eigenvalues with damping, of ``M ε̈ + D ε̇ + K ε = 0`` [1/s], by imaginary, then real part.
    M, D, K : ndarray, shape (nv, nv)
        Mass, damping and stiffness.
    """

    squared_frequencies: np.ndarray
    shapes: np.ndarray
    poles: np.ndarray
    M: np.ndarray
    D: np.ndarray
    K: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """Natural frequencies [rad/s], ascending; NaN for unstable modes, shape (nv,)."""
        ok = np.where(self.squared_frequencies >= 0.0, self.squared_frequencies, np.nan)
        return np.sqrt(ok)

    def __repr__(self) -> str:
        """Frequencies."""
        text = ", ".join(f"{w:.6g}" for w in self.frequencies)
        return f"NormalModes({text} rad/s)"


def normal_modes(tree: Tree, q: Any, *, wrenches: Any = None, p: Any = None) -> NormalModes:
    """Natural frequencies and modes about a rest position.

    The joints' forces are those that hold the tree at q, and stay as they are (zero at an
    equilibrium of its own).

    Parameters
    ----------
    q : array_like, shape (nq,)
    wrenches : array_like, shape (n_bodies, 6), optional
        External wrenches, constant in their bodies.
    p : array_like, shape (n_parameters,), optional

    Raises
    ------
    ValueError
        If the stiffness is not symmetric, that is, if the forces have no potential; or if the mass
        matrix is singular.

    Examples
    --------
    Two equal bobs on threads of equal length: ``ω² = (2 ± √2) g / l``.

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> bob = SpatialInertia.point_mass(0.3, [0, 0, -1])
    >>> tree = Multibody().add_body("upper", bob, "revolute", axis="y")
    >>> tree = tree.add_body("lower", bob, "revolute", "upper", [0, 0, -1], axis="y")
    >>> (tree.normal_modes([0, 0]).squared_frequencies / 9.81).round(6).tolist()
    [0.585786, 3.414214]
    """
    q = check_shape("q", q, (tree.nq,))
    refuse_singular(tree)
    still = np.zeros(tree.nv)
    named = {} if wrenches is None else {"wrenches": wrenches}
    if p is not None:
        named["p"] = p
    M, D, K, _ = linearized_equations.of(tree)(q, still, still, **named)
    # In units of each coordinate's own mass stiffnesses are squared frequencies: comparable between
    # metres and radians, grams and tons.
    unit = 1 / np.sqrt(np.diag(M))
    M_own, D_own, K_own = (unit[:, None] * matrix * unit for matrix in (M, D, K))
    largest = np.abs(K_own).max(initial=0.0)
    skew = np.abs(K_own - K_own.T)
    if skew.max(initial=0.0) > SYMMETRY * largest:
        i, j = np.unravel_index(skew.argmax(), skew.shape)
        raise ValueError(
            f"normal_modes: the stiffness is not symmetric (K[{i}, {j}] is {K[i, j]:.6g}, "
            f"K[{j}, {i}] is {K[j, i]:.6g}): forces that turn with a body, or a joint of several "
            "degrees of freedom held by a torque, have no potential. "
            "Use an equilibrium, or the eigenvalues of tree.system().linearize(...)"
        )
    M, K = (M + M.T) / 2, (K + K.T) / 2
    M_own, K_own = (M_own + M_own.T) / 2, (K_own + K_own.T) / 2
    squares, shapes = scipy.linalg.eigh(K_own, M_own)
    rounding = STIFFNESS_ROUNDING * largest * (shapes**2).sum(axis=0)
    squares = np.where(np.abs(squares) <= rounding, 0.0, squares)
    shapes = unit[:, None] * shapes
    damped = np.block(
        [
            [np.zeros_like(M), np.eye(tree.nv)],
            [-scipy.linalg.solve(M_own, X, assume_a="pos") for X in (K_own, D_own)],
        ]
    )
    poles = np.linalg.eigvals(damped)
    order = np.lexsort((poles.real, poles.imag))
    return NormalModes(squares, shapes, poles[order].astype(complex), M, D, K)
