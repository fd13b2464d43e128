"""Groups inside SE(3): everything agrees with the same motion of a free body."""

import numpy as np
import pytest

from lgcontrol.groups import SE3

from ._samples import KINDS, MOTIONS, USUAL, USUAL_KINDS, elements, name_of, samples

ROUNDING = 3e-13  # as for the axioms
ROUNDINGS = 8  # a sum of six products has at most six, forming d Hᵀ and H f(d) one each
HALF_ULP = 2.0**-53

pytestmark = [
    pytest.mark.usually(G=USUAL, kind=USUAL_KINDS),
    pytest.mark.parametrize("G", MOTIONS, ids=name_of),
    pytest.mark.parametrize("kind", KINDS),
]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


def test_exponential(G, kind):
    d = samples(G, kind)
    T = SE3.matrix(SE3.exp(d @ G.selection.T))
    close(G.homogeneous(G.exp(d)), T)
    close(SE3.matrix(G.embed(G.exp(d))), T)


def test_product_and_inverse(G, kind):
    X, Y = elements(G, kind, 1), elements(G, kind, 2)
    T, S = G.homogeneous(X), G.homogeneous(Y)
    close(G.homogeneous(G.compose(X, Y)), T @ S)
    close(G.homogeneous(G.inverse(X)), np.linalg.inv(T))
    close(SE3.matrix(SE3.compose(G.embed(X), G.embed(Y))), T @ S)


def test_adjoints_and_jacobians_restrict(G, kind):
    d, X, H = samples(G, kind), elements(G, kind), G.selection
    close(H @ G.ad(d), SE3.ad(d @ H.T) @ H)
    close(H @ G.Ad(X), SE3.Ad(G.embed(X)) @ H)
    for ours, theirs in (
        (G.right_jacobian, SE3.right_jacobian),
        (G.right_jacobian_inverse, SE3.right_jacobian_inverse),
    ):
        error = np.abs(H @ ours(d) - theirs(d @ H.T) @ H)
        assert (error <= ROUNDINGS * one_rounding(theirs, d @ H.T, H)).all()


def one_rounding(jacobian, V, H):
    """What rounding each operand once can change in ``J(V) H``, entry by entry.

    The terms of the product cancel (a spin by 100 rad leaves entries of order one of terms of order
    ten thousand), and how much of their rounding remains depends on the kernel of the product: with
    or without fused multiply-add. Near turns by 2π the inverse answers to the last digit of V.
    """
    terms = np.abs(jacobian(V)) @ np.abs(H)
    answer = np.zeros_like(terms)
    for i in range(6):
        change = np.zeros_like(V)
        change[:, i] = 1e-6 * V[:, i]
        answer += np.abs(jacobian(V + change) @ H - jacobian(V - change) @ H) / 2e-6
    return HALF_ULP * (1.0 + terms + answer)


def test_points_move_alike(G, kind):
    if G.point_size != 3:
        return
    X = elements(G, kind)
    points = np.random.default_rng(0).normal(size=(len(X), 3))
    homogeneous = np.concatenate([points, np.ones((len(X), 1))], axis=-1)[..., None]
    moved = (G.homogeneous(X) @ homogeneous)[:, :3, 0]
    close(G.act(X, points), moved)
    close(SE3.act(G.embed(X), points), moved)


def test_interpolation_is_the_same_screw(G, kind):
    if kind in ("π", "near π", "fast spin"):
        return  # the shortest of two ways, and unwrapped angles: tested apart
    X, Y = elements(G, kind, 1), elements(G, kind, 2)
    if np.abs(G.minus(Y, X)).max() > 3:
        X = np.broadcast_to(G.identity, Y.shape)
    ours = G.homogeneous(G.interpolate(X, Y, 0.3))
    close(ours, SE3.matrix(SE3.interpolate(G.embed(X), G.embed(Y), 0.3)))
