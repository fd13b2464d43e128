"""Christoffel symbols, connection coefficients, and derivatives of the mass matrix.

The kinetic energy is a metric on the configurations: the one that the bodies' inertias, metrics of
SE(3) that are the same at all poses, induce on the motions the joints allow. Its connection is the
bodies' own, projected: ``Γ(x, y) = Σ Jᵀ (I D_x (J y) + ∇_{J x} J y)`` with, for one body,
``∇_X Y = ∫ [1; r×] (ω_X × (v_Y + ω_Y × r)) dm``, the force on particles that turn with X while
they move with Y.

D_x J y vanishes unless x moves a joint that y's joint carries; the other order then follows, as
velocities of different joints commute. Sums over bodies are composites: all entries are
``R_ijm = J_i · ∇_{J_j} S_m`` with m the deepest joint, for which `Velocity` has the matrix, or
``−R_kjm = S_m · ∇_{J_j} J_k``, because turning keeps products.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from ....codegen import Value
from ..compiled._compiled_tree import CompiledTree, Node
from ..compiled._functions import declared
from ..compiled._sparse import Entries, factor, inverse
from ..dynamics._dynamics import composites, mass_matrix, refuse_singular
from ..tree._tree import Tree

_PRODUCTS = "coriolis_matrix has their products with a velocity for a fraction of that"
_WEIGHTED = "{}_dynamics_hessian has weighted sums over the first index ({}) for a fraction of that"

Triple = tuple[int, int, int]


def _refuse_groups_that_do_not_commute(tree: Tree) -> None:
    for link in tree._moving_links:
        for _, group in link.joint.steps:
            if not group.is_commutative:
                raise ValueError(
                    f"joint {link.joint_name!r} ({link.joint}) has velocities that are no "
                    "derivatives of coordinates: there are no Christoffel symbols. Use "
                    "connection_coefficients, which are the same thing in the frame of the "
                    "velocities"
                )


@declared(
    "q",
    {"Gamma": "vvv"},
    regrouped=True,
    check=_refuse_groups_that_do_not_commute,
    instead=_PRODUCTS,
    is_rigid=True,
)
def christoffel_symbols(tree: CompiledTree, q: Value) -> Value:
    """``q`` → Γ[i, j, k] of the first kind, ``M a + Γ v v + … = tau``, (..., nv, nv, nv).

    ``Γ_ijk = ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) = Γ_ikj``; the first index is the
    equation's. ``C_ij = Σ_k Γ_ijk v_k`` is `coriolis_matrix`.

    Raises
    ------
    ValueError
        If a joint's group does not commute (planar, spherical, free, …): its velocities are no
        derivatives of coordinates; `connection_coefficients` are what there is instead.

    References
    ----------
    Müller 2018, eq. 86 to 88, with misprints mended and for bodies with frames anywhere.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0)
    >>> arm = Multibody().add_body("turn", None, "revolute")
    >>> arm = arm.add_body("ball", ball, "prismatic", "turn", axis="x")
    >>> Gamma = arm.christoffel_symbols([0.3, 0.5])  # centrifugal force −m r ω²
    >>> Gamma[1].tolist()
    [[-1.0, 0.0], [0.0, 0.0]]
    """
    return connection_coefficients(tree, q)


@declared("q", {"Gamma": "vvv"}, regrouped=True, instead=_PRODUCTS, is_rigid=True)
def connection_coefficients(tree: CompiledTree, q: Value) -> Value:
    """``q`` → Γ[i, j, k] with ``M ∇_x y = M D_x y + Γ x y``, shape (..., nv, nv, nv).

    Coefficients of the Levi-Civita connection of the bodies' kinetic energy in the frame of
    body-fixed joint velocities, first kind. j is the direction of differentiation, k the field:
    ``(∇_{e_j} e_k)·e_i``. By the frame's derivatives D_j (those of ``d ↦ f(plus(q, d))``) and
    structure constants ``[e_j, e_k] = Σ_l c^l_jk e_l``, twice Γ_ijk is
    ``D_j M_ik + D_k M_ij − D_i M_jk + Σ_l (c^l_jk M_li + c^l_ik M_lj + c^l_ij M_lk)``;
    here it is evaluated without derivatives or structure constants.

    - ``Γ v v`` are the velocity-dependent forces of bodies: ``M a + Γ v v + … = tau``.
    - ``C_ik = Σ_j Γ_ijk v_j`` is `coriolis_matrix`. For joints with one degree of freedom the
      last two indices commute, and these are `christoffel_symbols`.
    - The connection keeps the metric: ``D_j M_ik = Γ_ijk + Γ_kji``, hence ``Ṁ − 2 C`` is skew;
      and has no torsion: ``Γ_ijk − Γ_ikj = Σ_l M_il c^l_jk``.

    Armatures of drives are constant and not in Γ; M is that of the bodies.

    References
    ----------
    Müller 2018, eq. 87 and 88, which are the case of one degree of freedom for each joint.
    Bullo and Lewis, Geometric Control of Mechanical Systems (2005), section 4.5.

    Examples
    --------
    Euler's equations of a free rotor: ``Γ ω ω = ω × J ω``.

    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rotor = SpatialInertia(1.0, [0, 0, 0], np.diag([1.0, 2.0, 2.5]))
    >>> tree = Multibody().add_body("rotor", rotor, "spherical")
    >>> Gamma, w = tree.connection_coefficients(tree.neutral), np.array([1.0, 2.0, 3.0])
    >>> np.einsum("ijk,j,k", Gamma, w, w).tolist()
    [3.0, -4.5, 2.0]
    """
    return _slices(tree.nv, _coefficients(tree, q))


@declared(
    "q",
    {"d_M_d_q": "vvv"},
    regrouped=True,
    instead=_WEIGHTED.format("inverse", "H_qa"),
    is_rigid=True,
)
def mass_matrix_derivatives(tree: CompiledTree, q: Value) -> Value:
    """``q`` → ∂M[i, j] / ∂q[k], shape (..., nv, nv, nv).

    By q as in `inverse_dynamics_derivatives`: derivatives of ``d ↦ M(plus(q, d))`` at 0.

    References
    ----------
    Müller 2018, eq. 6 and 82.
    """
    # ∂M_ij/∂q_k = Γ_ikj + Γ_jki: zero where joint k carries i and j, as the whole turns as one.
    slopes: dict[Triple, Value] = {}
    carried = _carried(tree)
    for (i, k, j), value in _coefficients(tree, q).items():
        if k in carried[i] or k in carried[j]:
            _add(slopes, (i, j, k), value)
            _add(slopes, (j, i, k), value)
    return _slices(tree.nv, slopes)


def _inverse_tensors(M_inverse: Value, slices: Value) -> tuple[Value, Value]:
    """M⁻¹ and ``∂M⁻¹/∂q_k = −M⁻¹ ∂M/∂q_k M⁻¹``, in products of matrices."""
    n = M_inverse.shape[0]
    slopes = ca.vertcat(slices[:0, :n], *(slices[:, k * n : (k + 1) * n] for k in range(n)))
    by_force = [m * n + k for k in range(n) for m in range(n)]
    return M_inverse, inverse_slopes(M_inverse, slopes)[:, by_force]


@declared(
    "q",
    {"M_inverse": "vv", "d_M_inverse_d_q": "vvv"},
    regrouped=True,
    check=refuse_singular,
    assemble=_inverse_tensors,
    instead=_WEIGHTED.format("forward", "H_qtau"),
    is_rigid=True,
)
def mass_matrix_inverse_derivatives(tree: CompiledTree, q: Value) -> tuple[Value, Value]:
    """``q`` → M_inverse (..., nv, nv), and its derivatives by q[k], shape (..., nv, nv, nv).

    ``∂M⁻¹/∂q_k = −M⁻¹ ∂M/∂q_k M⁻¹``: how the answer to a force changes with the pose. With its
    last two indices exchanged it is the ``d2_a_d_q_d_tau`` of
    `forward_dynamics_second_derivatives`. Take that function if other second derivatives are
    needed too, and `forward_dynamics_hessian` for a weighted sum.

    References
    ----------
    Müller 2018, section 6.1.
    """
    return inverse(*factor(mass_matrix(tree, q))), mass_matrix_derivatives(tree, q)


def inverse_slopes(M_inverse: Value, slopes: Value) -> Value:
    """Derivatives of ``M⁻¹ τ`` by q and then τ, slices by τ, of ∂M/∂q_k below each other."""
    return -(M_inverse @ times_slopes(slopes, M_inverse))


def times_slopes(slopes: Value, matrix: Value) -> Value:
    """``∂M/∂q_k matrix`` for all k, as slices by the columns of the matrix."""
    n = slopes.shape[1]
    return ca.reshape(slopes @ matrix, n, n * n)


def _coefficients(tree: CompiledTree, q: Value) -> dict[Triple, Value]:
    """Entries of Γ that are not zero for every q."""
    Gamma: dict[Triple, Value] = {}
    for (i, at_i), (j, at_j), (m, deepest), value in _products(tree, q):
        _add(Gamma, (i, j, m), value)
        if at_j != deepest:
            _add(Gamma, (i, m, j), value)
        if at_j <= at_i != deepest:
            _add(Gamma, (m, j, i), -value)
            if at_j != at_i:
                _add(Gamma, (m, i, j), -value)
    return Gamma


_Freedom = tuple[int, int]
"""Degree of freedom and its node."""


def _products(tree: CompiledTree, q: Value) -> Iterator[tuple[_Freedom, _Freedom, _Freedom, Value]]:
    """``R_ijm = J_i · ∇_{J_j} S_m`` for all i and j on the way from m to the root.

    Where joint i is carried by joint j, it is a couple, turned upwards, times the axis of j; else
    a wrench, pushed upwards, times the twist of i.
    """
    poses = tree.poses(q)
    for deepest, inertia in enumerate(composites(tree, poses)):
        for m, S in _freedoms(tree.nodes[deepest]):
            velocity = inertia.velocity(S)
            couples: list[tuple[_Freedom, Value]] = []
            wrenches: list[tuple[_Freedom, Value]] = []
            k = deepest
            while k >= 0:
                own = [((i, k), Z) for i, Z in _freedoms(tree.nodes[k])]
                couples += [(place, velocity.half_transposed(Z)) for place, Z in own]
                for place, Z in own:
                    for other, couple in couples:
                        yield other, place, (m, deepest), couple.T @ Z[3:]
                    for other, wrench in wrenches:
                        yield place, other, (m, deepest), Z.T @ wrench
                wrenches += [(place, velocity.half(Z)) for place, Z in own]
                T = poses[k]
                velocity = velocity.moved(T)
                couples = [(place, T.R @ couple) for place, couple in couples]
                wrenches = [(place, T.push_wrench(wrench)) for place, wrench in wrenches]
                k = tree.nodes[k].parent


def _freedoms(node: Node) -> list[tuple[int, Value]]:
    return [(node.v.start + c, node.S[:, c]) for c in range(node.S.shape[1])]


def _carried(tree: CompiledTree) -> list[set[int]]:
    """For each degree of freedom: those of the joints that it carries."""
    carried: list[set[int]] = [set() for _ in range(tree.nv)]
    for k, node in enumerate(tree.nodes):
        for above in tree.path(k)[1:]:
            for i, _ in _freedoms(tree.nodes[above]):
                carried[i].update(range(node.v.start, node.v.stop))
    return carried


def _add(entries: dict[Triple, Value], key: Triple, value: Value) -> None:
    if value.nnz():
        old = entries.get(key)
        entries[key] = value if old is None else old + value


def _slices(nv: int, entries: dict[Triple, Value]) -> Value:
    """A tensor as the slices T[:, :, k] side by side."""
    matrix = Entries(nv, nv * nv)
    for (i, j, k), value in entries.items():
        column = k * nv + j
        matrix.add(slice(i, i + 1), slice(column, column + 1), value)
    return matrix.matrix()
