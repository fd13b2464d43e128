"""Christoffel symbols, connection coefficients, derivatives of the mass matrix."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia

from . import zoo

pytestmark = pytest.mark.usually(kind=zoo.FEW, tree=zoo.FEW)

EXACT = 1e-11  # all routes are exact: rounding of sums of a few hundred products
SLOPE = 2e-10  # differences of fourth order with steps of 1e-3
FAILS = 1e-2  # a wrong formula is off by more than this, relative


def trees():
    rng = np.random.default_rng(12)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "branched": zoo.branched(rng),
        "driven": zoo.driven(rng),
    }


TREES = trees()
TURNING = ("planar", "planar_helical", "spherical", "schoenflies", "free", "branched", "driven")


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


def error(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


def structure_constants(tree):
    """``[e_j, e_k] = Σ_l c[l, j, k] e_l``."""
    ad = tree.configuration.ad
    return np.stack([ad(e) for e in np.eye(tree.nv)], axis=1)


def bodies_mass_matrix(tree, q):
    """Mass matrix without the drives' armature."""
    s = tree.system_matrices()(q, np.zeros(tree.nv))
    J = tree.system_jacobian()(q)
    return J.T @ s.M @ J


def test_mass_matrix_derivatives_against_differences_and_ad(tree, rng):
    q = zoo.state(tree, rng)[0]
    D, h = tree.mass_matrix_derivatives(q), 1e-3
    plus, M = tree.configuration.plus, tree.mass_matrix
    for k, e in enumerate(np.eye(tree.nv)):
        near, far = M(plus(q, [h * e, -h * e])), M(plus(q, [2 * h * e, -2 * h * e]))
        slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h)
        assert error(D[..., k], slope) < SLOPE
    d = ca.SX.sym("d", tree.nv)
    moved = tree.configuration.plus(ca.DM(q), d)
    slope = ca.Function("slope", [d], [ca.jacobian(ca.vec(M(moved)), d)])(np.zeros(tree.nv))
    assert error(D, np.array(slope).reshape(tree.nv, tree.nv, tree.nv)) < EXACT
    inverse = tree.mass_matrix_inverse_derivatives(q)
    moved = tree.mass_matrix_inverse(moved)
    slope = ca.Function("slope", [d], [ca.jacobian(ca.vec(moved), d)])(np.zeros(tree.nv))
    assert error(inverse.M_inverse, tree.mass_matrix_inverse(q)) < EXACT
    slope = np.array(slope).reshape(tree.nv, tree.nv, tree.nv)
    assert error(inverse.d_M_inverse_d_q, slope) < EXACT


def test_connection_keeps_the_metric(tree, rng):
    """D_j M_ik = Γ_ijk + Γ_kji."""
    q = zoo.state(tree, rng)[0]
    G, D = tree.connection_coefficients(q), tree.mass_matrix_derivatives(q)
    assert error(np.einsum("ijk->ikj", G) + np.einsum("kji->ikj", G), D) < EXACT


def test_connection_has_no_torsion(tree, rng):
    """Γ_ijk − Γ_ikj = Σ_l M_il c_ljk."""
    q = zoo.state(tree, rng)[0]
    G = tree.connection_coefficients(q)
    c = np.einsum("il,ljk->ijk", bodies_mass_matrix(tree, q), structure_constants(tree))
    assert error(G - G.swapaxes(1, 2), c) < EXACT


def test_connection_by_koszuls_formula(tree, rng):
    q = zoo.state(tree, rng)[0]
    D, c = tree.mass_matrix_derivatives(q), structure_constants(tree)
    lowered = np.einsum("il,ljk->ijk", bodies_mass_matrix(tree, q), c)  # [i, j, k]: ⟨e_i, [j, k]⟩
    twice = np.einsum("ikj->ijk", D) + D - np.einsum("jki->ijk", D)
    twice += lowered + np.einsum("jik->ijk", lowered) + np.einsum("kij->ijk", lowered)
    assert error(tree.connection_coefficients(q), twice / 2) < EXACT


def test_velocity_forces_and_coriolis_matrix(tree, rng):
    q, v, _, _, _ = zoo.state(tree, rng)
    G, C = tree.connection_coefficients(q), tree.coriolis_matrix(q, v)
    assert error(np.einsum("ijk,j->ik", G, v), C) < EXACT
    lagrange = tree.lagrange_equations(q, v).C @ v
    assert error(np.einsum("ijk,j,k->i", G, v, v), lagrange) < EXACT


@pytest.mark.parametrize("kind", [kind for kind in TREES if kind not in TURNING])
def test_christoffel_symbols_are_their_definition(kind, rng):
    tree = TREES[kind]
    q = zoo.state(tree, rng, (4,))[0]
    D, Gamma = tree.mass_matrix_derivatives(q), tree.christoffel_symbols(q)
    definition = (D + D.swapaxes(-1, -2) - np.moveaxis(D, -1, -3)) / 2
    assert error(Gamma, definition) < EXACT
    assert error(Gamma, tree.connection_coefficients(q)) == 0.0


@pytest.mark.parametrize("kind", TURNING)
def test_no_christoffel_symbols_for_turning_frames(kind):
    with pytest.raises(ValueError, match="connection_coefficients"):
        TREES[kind].christoffel_symbols  # noqa: B018


def test_symbols_and_numbers_agree(rng):
    tree = TREES["spherical"]
    q = zoo.state(tree, rng)[0]
    n = tree.nv
    for function in (tree.connection_coefficients, tree.mass_matrix_derivatives):
        x = ca.SX.sym("q", tree.nq)
        slices = np.array(ca.Function("f", [x], [function(x)])(q))
        assert slices.shape == (n, n * n)
        stacked = np.stack([slices[:, k * n : (k + 1) * n] for k in range(n)], axis=-1)
        assert error(function(q), stacked) < EXACT


# -- misprints of the paper -----------------------------------------------------------------------


def chain(rng, *, at_center):
    """A chain of one-degree-of-freedom joints; link frames at the centres of mass if wanted."""
    tree, parent = Multibody("chain"), "world"
    kinds = ("revolute_any", "prismatic_any", "helical", "revolute", "continuous")
    for i, kind in enumerate(kinds):
        inertia = zoo.random_inertia(rng)
        offset = None
        if at_center:
            offset = inertia.center_of_mass
            inertia = SpatialInertia(inertia.mass, [0, 0, 0], inertia.inertia)
        place = zoo.pose(rng)
        tree = tree.add_body(str(i), inertia, zoo.JOINTS[kind], parent, place, offset=offset)
        parent = str(i)
    return tree


def columns(tree, q):
    """Body Jacobians J[l, :, i] and inertias M[l]."""
    n = tree.nv
    J = tree.system_jacobian()(q).reshape(n, 6, n)
    M = tree.system_matrices()(q, np.zeros(n)).M
    return J, np.stack([M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(n)])


def bracket(X, Y):
    linear = np.cross(X[3:], Y[:3]) + np.cross(X[:3], Y[3:])
    return np.r_[linear, np.cross(X[3:], Y[3:])]


def test_mass_matrix_derivatives_by_brackets(rng):
    """Müller 2018, eq. 6: ∂J_i/∂q_k = [J_i, J_k] where i < k on a chain, else zero."""
    tree = chain(rng, at_center=False)
    q = zoo.state(tree, rng)[0]
    J, M = columns(tree, q)
    n = tree.nv
    slopes = np.zeros((n, n, n))
    for i in range(n):
        for k in range(i + 1, n):
            for m, Jl in zip(M[k:], J[k:], strict=True):
                change = bracket(Jl[:, i], Jl[:, k]) @ m @ Jl
                slopes[i, :, k] += change
                slopes[:, i, k] += change
    assert error(tree.mass_matrix_derivatives(q), slopes) < EXACT


def covered(n):
    """Index triples that eq. 87 and 88 are for."""
    every = [(i, j, k) for i in range(n) for j in range(n) for k in range(n)]
    return [(i, j, k) for i, j, k in every if i < j <= k or j <= i < k]


def test_misprint_eq_87_order_of_the_third_term(rng):
    tree = chain(rng, at_center=False)
    q = zoo.state(tree, rng)[0]
    J, M = columns(tree, q)
    true = tree.christoffel_symbols(q)

    def symbol(i, j, k, r, s):
        total = 0.0
        for m, Jl in zip(M[k:], J[k:], strict=True):
            total += Jl[:, k] @ m @ bracket(Jl[:, i], Jl[:, j])
            total += Jl[:, j] @ m @ bracket(Jl[:, i], Jl[:, k])
            total += Jl[:, i] @ m @ bracket(Jl[:, s], Jl[:, r])
        return total / 2

    triples = covered(tree.nv)
    scale = np.abs(true).max()
    mended = [symbol(i, j, k, k, j) - true[i, j, k] for i, j, k in triples]
    printed = [symbol(i, j, k, max(i, j), min(i, j)) - true[i, j, k] for i, j, k in triples]
    assert np.abs(mended).max() < EXACT * scale
    assert np.abs(printed).max() > FAILS * scale
    assert symbol(0, 0, 1, 0, 0) == pytest.approx(true[0, 0, 1] / 2)  # half of the true value


def test_misprint_eq_88_binets_tensor(rng):
    tree = chain(rng, at_center=True)
    q = zoo.state(tree, rng)[0]
    J, M = columns(tree, q)
    true = tree.christoffel_symbols(q)
    binet = [np.trace(m[3:, 3:]) / 2 * np.eye(3) - m[3:, 3:] for m in M]

    def mended(i, j, k):
        total = 0.0
        for m, theta, Jl in zip(M[k:], binet[k:], J[k:], strict=True):
            w = Jl[3:]
            total += w[:, j] @ theta @ np.cross(w[:, k], w[:, i])
            total += m[0, 0] * Jl[:3, i] @ np.cross(w[:, j], Jl[:3, k])
        return total

    def printed(i, j, k):
        total = 0.0
        for m, theta, Jl in zip(M[k:], binet[k:], J[k:], strict=True):
            check = np.zeros((6, 6))
            check[:3, :3], check[3:, 3:] = m[0, 0] * np.eye(3), theta
            turn = np.r_[np.zeros(3), Jl[3:, k]]
            total += Jl[:, j] @ check @ bracket(turn, Jl[:, i])
        return total / 2

    triples = covered(tree.nv)
    scale = np.abs(true).max()
    assert np.abs([mended(*t) - true[t] for t in triples]).max() < EXACT * scale
    wrong = np.array([printed(*t) - true[t] for t in triples])
    assert np.abs(wrong).max() > FAILS * scale
    # Not for want of a factor 2 or a sign either.
    for factor in (2.0, -1.0, -2.0):
        wrong = np.array([factor * printed(*t) - true[t] for t in triples])
        assert np.abs(wrong).max() > FAILS * scale


def test_derivatives_of_the_inverse_are_those_of_forward_dynamics(tree, rng):
    q, v, _, tau, _ = zoo.state(tree, rng)
    if tree.nv > 8:
        pytest.skip("the other tensors take long to trace")
    by_force = tree.forward_dynamics_second_derivatives(q, v, tau).d2_a_d_q_d_tau
    function = tree.mass_matrix_inverse_derivatives
    assert error(function(q).d_M_inverse_d_q, by_force.swapaxes(1, 2)) < EXACT
    # The tensor is full: it is multiplied out by matrices, whatever the size of the tree.
    assert function.function.n_instructions() < 30
