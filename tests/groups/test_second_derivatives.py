"""Second derivatives by automatic differentiation, exact at the identity."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3

from ._samples import GROUPS, MOTIONS, SMALL, USUAL, name_of, samples

EXACT = 1e-14  # a few roundings of numbers of order one

pytestmark = [pytest.mark.usually(G=USUAL), pytest.mark.parametrize("G", GROUPS, ids=name_of)]


def derivatives_at(G, build, at=None):
    """Value and derivatives of a matrix-valued function of d; derivative axes are last."""
    d = ca.SX.sym("d", G.dim)
    value = ca.densify(ca.SX(build(d)))
    first = ca.jacobian(ca.vec(value), d)
    second = ca.jacobian(ca.vec(first), d)
    function = ca.Function("derivatives", [d], [ca.densify(e) for e in (value, first, second)])
    a, b, c = (np.asarray(e) for e in function(np.zeros(G.dim) if at is None else at))
    n = G.dim
    shape = value.shape
    return (
        a,
        b.reshape((*shape, n), order="F"),
        c.reshape((*shape, n, n), order="F"),
    )


def symmetrised(matrices):
    """``(Eᵢ Eⱼ + Eⱼ Eᵢ)`` of matrices in a list, derivative axes last."""
    pairs = np.einsum("aij,bjk->ikab", matrices, matrices)
    return pairs + np.swapaxes(pairs, -1, -2)


def basis(G, operation):
    return operation(np.eye(G.dim)) if G.dim else operation(np.zeros((0, G.dim)))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=EXACT)


def test_exponential(G):
    """``exp(d) = 1 + d^ + d^²/2 + …``."""
    E = basis(G, G.hat)
    value, first, second = derivatives_at(G, lambda d: G.matrix(G.exp(d)))
    close(value, np.eye(G.matrix_size))
    close(first, np.moveaxis(E, 0, -1))
    close(second, symmetrised(E) / 2)


def test_logarithm(G):
    value, first, second = derivatives_at(G, lambda d: G.log(G.exp(d)))
    close(value[:, 0], 0)
    close(first[:, 0], np.eye(G.dim))
    close(second, 0)


@pytest.mark.parametrize(
    ("operation", "first_power", "second_power"),
    [
        ("right_jacobian", -1 / 2, 1 / 6),
        ("left_jacobian", 1 / 2, 1 / 6),
        ("right_jacobian_inverse", 1 / 2, 1 / 12),
        ("left_jacobian_inverse", -1 / 2, 1 / 12),
    ],
)
def test_jacobians(G, operation, first_power, second_power):
    """``J = 1 + a ad + b ad² + …``."""
    ad = basis(G, G.ad)
    value, first, second = derivatives_at(G, getattr(G, operation))
    close(value, np.eye(G.dim))
    close(first, first_power * np.moveaxis(ad, 0, -1))
    close(second, second_power * symmetrised(ad))


def test_squared_error_has_the_identity_as_hessian_everywhere(G):
    """At a minimum the Hessian is the weight: what Gauss–Newton and LQR on a group stand on."""
    for X in (G.identity, *G.random(3, 3)):
        value, first, second = derivatives_at(
            G, lambda d, X=X: ca.sumsqr(G.minus(G.plus(ca.SX(X), d), ca.SX(X))) / 2
        )
        close(value, 0)
        close(first, 0)
        close(second[0, 0], np.eye(G.dim))


def test_second_derivatives_are_continuous_at_the_identity(G):
    """Near zero they differ from those at zero by no more than the distance."""
    for operation in ("right_jacobian", "left_jacobian_inverse"):
        *_, at_zero = derivatives_at(G, getattr(G, operation))
        for scale, d in zip(np.repeat(SMALL, 2), samples(G, "near zero"), strict=True):
            *_, near = derivatives_at(G, getattr(G, operation), d)
            assert np.abs(near - at_zero).max(initial=0.0) <= EXACT + 10 * scale


def test_distance_is_differentiable_except_at_zero_where_it_is_flat(G):
    X = G.random(5)
    value, first, _ = derivatives_at(G, lambda d: G.distance(G.plus(ca.SX(X), d), ca.SX(X)))
    close(value, 0)
    close(first, 0)


def test_embedding_has_the_selection_as_derivative(G):
    if G not in MOTIONS:
        return
    for X in (G.identity, *G.random(7, 3)):
        pose = G.embed(X)
        _, first, _ = derivatives_at(
            G, lambda d, X=X, pose=pose: SE3.minus(G.embed(G.plus(ca.SX(X), d)), ca.SX(pose))
        )
        close(first[:, 0], G.selection)
