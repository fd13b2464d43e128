"""The axioms of a Lie group, for every group and every kind of sample."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from ._samples import GROUPS, KINDS, USUAL, USUAL_KINDS, elements, name_of, samples, times

ROUNDING = 3e-13  # some hundred roundings of numbers up to ten; spins by 100 rad lose two digits
UNIT = ("cos", "sin", "qx", "qy", "qz", "qw")  # coordinates that a constraint ties together
DIFFERENCE = 1e-9  # central differences with step 1e-5 of functions of order one to ten

pytestmark = [
    pytest.mark.usually(G=USUAL, kind=USUAL_KINDS),
    pytest.mark.parametrize("G", GROUPS, ids=name_of),
    pytest.mark.parametrize("kind", KINDS),
]


def same(G, X, Y):
    """Compare elements as matrices, which do not show the sign of a quaternion."""
    np.testing.assert_allclose(G.matrix(X), G.matrix(Y), rtol=ROUNDING, atol=ROUNDING)


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_identity_and_inverse(G, kind):
    X = elements(G, kind)
    same(G, G.compose(X, G.identity), X)
    same(G, G.compose(G.identity, X), X)
    identity = np.broadcast_to(G.identity, X.shape)
    same(G, G.compose(X, G.inverse(X)), identity)
    same(G, G.compose(G.inverse(X), X), identity)
    same(G, G.inverse(G.inverse(X)), X)


def test_product_is_associative_and_that_of_matrices(G, kind):
    X, Y, Z = elements(G, kind, 1), elements(G, kind, 2), elements(G, kind, 3)
    same(G, G.compose(G.compose(X, Y), Z), G.compose(X, G.compose(Y, Z)))
    close(G.matrix(G.compose(X, Y)), G.matrix(X) @ G.matrix(Y))


def test_exponential_is_that_of_matrices(G, kind):
    d = samples(G, kind)
    by_matrix = np.array([expm(m) for m in G.hat(d)])
    # SciPy scales and squares: its own error grows with the norm
    tolerance = 1e-11 if kind == "fast spin" else ROUNDING
    close(G.matrix(G.exp(d)), by_matrix, tolerance)


def test_logarithm_inverts_the_exponential(G, kind):
    X = elements(G, kind)
    d = G.log(X)
    assert np.isfinite(d).all()
    same(G, G.exp(d), X)
    if kind in ("uniform", "small turns", "near zero", "zero", "near π"):
        close(G.log(G.exp(samples(G, kind))), samples(G, kind))


def test_logarithm_does_not_see_the_sign_of_a_quaternion(G, kind):
    X = elements(G, kind)
    flipped, plain = np.split(X, 2)
    if kind != "π":  # where both directions are shortest
        close(G.log(flipped), G.log(plain))
    for block in (flipped, plain):
        same(G, G.exp(G.log(block)), plain)


def test_plus_and_minus_undo_each_other(G, kind):
    X = elements(G, kind)
    # an unwrapped angle has no short way round: stay away from differences by full turns
    Y = np.resize(G.exp(0.3 * samples(G, "uniform", 2)), X.shape)
    same(G, G.plus(Y, G.minus(X, Y)), X)
    d = np.resize(samples(G, "uniform"), (len(X), G.dim))
    close(G.minus(G.plus(X, d), X), d)


def test_hat_and_vee(G, kind):
    d = samples(G, kind)
    close(G.vee(G.hat(d)), d)
    close(G.hat(2.0 * d + samples(G, kind, 5)), 2.0 * G.hat(d) + G.hat(samples(G, kind, 5)))


def test_adjoint_carries_tangent_vectors_over(G, kind):
    X, d = elements(G, kind), samples(G, "uniform")[:1]
    M, inverse = G.matrix(X), G.matrix(G.inverse(X))
    close(M @ G.hat(d) @ inverse, G.hat(times(G.Ad(X), d)))
    same(G, G.compose(X, G.exp(d)), G.compose(G.exp(times(G.Ad(X), d)), X))


def test_bracket_is_the_commutator(G, kind):
    d, e = samples(G, kind), samples(G, "uniform", 7)[:1]
    a, b = G.hat(d), G.hat(e)
    close(G.hat(times(G.ad(d), e)), a @ b - b @ a)
    close(times(G.ad(d), e), -times(G.ad(e), d))


def test_jacobians_are_tied_and_inverse_to_each_other(G, kind):
    d = samples(G, kind)
    right, left = G.right_jacobian(d), G.left_jacobian(d)
    close(left, G.right_jacobian(-d))
    close(left, G.Ad(G.exp(d)) @ right)
    # near turns by 2π the inverses are large and their errors with them
    size = np.abs(G.right_jacobian_inverse(d)).max(initial=1.0)
    one = np.broadcast_to(np.eye(G.dim), right.shape)
    close(G.right_jacobian_inverse(d) @ right, one, size * ROUNDING)
    close(G.left_jacobian_inverse(d) @ left, one, size * ROUNDING)


def test_right_jacobian_is_the_derivative_of_the_exponential(G, kind):
    """By automatic differentiation of the definition, at the sample itself."""
    d, e = ca.SX.sym("d", G.dim), ca.SX.sym("e", G.dim)
    moved = G.minus(G.exp(d + e), G.exp(d))
    derivative = ca.substitute(ca.jacobian(moved, e), e, ca.DM.zeros(G.dim, 1))
    function = ca.Function("derivative", [d], [ca.densify(derivative)], ["d"], ["J"])
    for row in samples(G, kind):
        close(np.asarray(function(row)), G.right_jacobian(row))


def test_right_jacobian_against_central_differences(G, kind):
    h = 1e-5
    for d in samples(G, kind)[:3]:
        X = G.exp(d)
        for step, column in zip(np.eye(G.dim), G.right_jacobian(d).T, strict=True):
            up, down = G.minus(G.exp(d + h * step), X), G.minus(G.exp(d - h * step), X)
            close((up - down) / (2 * h), column, DIFFERENCE)


def test_action_follows_the_product(G, kind):
    X, Y = elements(G, kind, 1), elements(G, kind, 2)
    points = np.random.default_rng(3).normal(size=(len(X), G.point_size))
    close(G.act(G.compose(X, Y), points), G.act(X, G.act(Y, points)))
    close(G.act(G.identity, points), points)


def test_coordinate_rates_of_a_velocity(G, kind):
    X = elements(G, kind)
    E, F = G.rate_matrix(X), G.tangent_matrix(X)
    close(F @ E, np.broadcast_to(np.eye(G.dim), (len(X), G.dim, G.dim)))
    h = 1e-5
    for i, step in enumerate(np.eye(G.dim)):
        close((G.plus(X, h * step) - G.plus(X, -h * step)) / (2 * h), E[..., i], DIFFERENCE)


def test_normalize_leaves_elements_alone_and_repairs_drift(G, kind):
    X = elements(G, kind)
    close(G.normalize(X), X)
    unit = [i for i, name in enumerate(G.coordinate_names) if name.split(".")[-1] in UNIT]
    drifted = X.copy()
    drifted[:, unit] *= 1.0 + 1e-3
    close(G.normalize(drifted), X)


def test_matrix_round_trip(G, kind):
    X = elements(G, kind)
    same(G, G.from_matrix(G.matrix(X)), X)
