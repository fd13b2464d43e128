"""Interpolation is the screw motion of constant body twist; distance is its length."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn

from ._samples import GROUPS, flip_quaternions, name_of

ROUNDING = 1e-12
EXPM = 1e-11  # SciPy's matrix exponential, on matrices up to ten in size


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_screw_motion(G, rng):
    X, Y = G.random(rng), G.random(rng)
    d = G.minus(Y, X)
    for s in (-0.5, 0.0, 0.25, 1.0, 1.5):
        by_matrix = G.matrix(X) @ expm(s * G.hat(d))
        np.testing.assert_allclose(G.matrix(G.interpolate(X, Y, s)), by_matrix, rtol=0, atol=EXPM)
    same = G.matrix(G.interpolate(X, Y, 1.0))
    np.testing.assert_allclose(same, G.matrix(Y), rtol=0, atol=ROUNDING)
    back, forth = G.interpolate(X, Y, 0.3), G.interpolate(Y, X, 0.7)
    np.testing.assert_allclose(G.matrix(back), G.matrix(forth), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_body_twist_is_constant(G, rng):
    X, Y = G.random(rng), G.random(rng)
    s = ca.SX.sym("s")
    moving = G.interpolate(ca.SX(X), ca.SX(Y), s)
    twist = G.tangent_matrix(moving) @ ca.jacobian(moving, s)
    twist_of = ca.Function("twist", [s], [ca.densify(twist)], ["s"], ["twist"])
    for value in (0.0, 0.4, 1.0):
        np.testing.assert_allclose(
            np.asarray(twist_of(value)).reshape(-1), G.minus(Y, X), rtol=0, atol=ROUNDING
        )


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_the_sign_of_a_quaternion_does_not_matter(G, rng):
    X, Y = G.random(rng), G.random(rng)
    flipped = flip_quaternions(G, Y)
    np.testing.assert_allclose(
        G.matrix(G.interpolate(X, flipped, 0.4)),
        G.matrix(G.interpolate(X, Y, 0.4)),
        rtol=0,
        atol=ROUNDING,
    )
    np.testing.assert_allclose(G.distance(X, flipped), G.distance(X, Y), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("G", (SO2, SO3, SE2, SE3))
def test_it_takes_the_short_way(G, rng):
    X, Y = G.random(rng, 200), G.random(rng, 200)
    turns = [i for i, unit in enumerate(G.tangent_units) if unit == "rad"]
    assert (np.linalg.norm(G.minus(Y, X)[:, turns], axis=-1) <= np.pi + 1e-12).all()


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_distance(G, rng):
    X, Y, Z = G.random(rng, 20), G.random(rng, 20), G.random(rng, 20)
    d = G.distance(X, Y)
    np.testing.assert_allclose(d, G.distance(Y, X), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(d, np.linalg.norm(G.minus(X, Y), axis=-1), rtol=0, atol=ROUNDING)
    moved = G.distance(G.compose(Z, X), G.compose(Z, Y))
    np.testing.assert_allclose(moved, d, rtol=0, atol=10 * ROUNDING)
    assert (G.distance(X, X) < ROUNDING).all()


def test_a_length_weighs_metres_against_radians():
    X = SE3.exp([0.3, 0.0, 0.0, 0.0, 0.0, 0.4])
    d = SE3.log(X)
    expected = np.hypot(np.linalg.norm(d[:3]) / 0.5, 0.4)
    assert SE3.distance(X, SE3.identity, 0.5) == pytest.approx(expected)
    state = Product(pose=SE3, twist=Rn(6))
    x = state.join(pose=X, twist=[0, 0, 0.2, 0, 0, 0])
    assert state.distance(x, state.identity, 0.5) == pytest.approx(np.hypot(expected, 0.2))
