"""Systems whose errors are autonomous, and the extended pose that makes navigation one of them."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SE23, SEK3, SO3, Product, Rn
from lgcontrol.systems import System, is_group_affine

GRAVITY = ca.DM([0.0, 0.0, -9.81])
IMU = [f"{kind}.{axis}" for kind in ("gyro", "accelerometer") for axis in "xyz"]


def extended(t, x, u, p):
    """Rates on SE_2(3): ``[Rᵀ v; a + Rᵀ g; ω]``."""
    R = SO3.matrix(x[6:10])
    return ca.vertcat(R.T @ x[3:6], u[3:] + R.T @ GRAVITY, u[:3])


def separate(t, x, u, p):
    """The same motion on R³ × R³ × SO(3)."""
    R = SO3.matrix(x[6:10])
    return ca.vertcat(x[3:6], R @ u[3:] + GRAVITY, u[:3])


NAVIGATION = System("navigation", SE23, extended, inputs=IMU)
APART = System("apart", Product(position=Rn(3), velocity=Rn(3), attitude=SO3), separate, inputs=IMU)
WITH_BIAS = System(
    "with_bias", Product(body=SE23, bias=Rn(3)),
    lambda t, x, u, p: ca.vertcat(
        extended(t, x[:10], u - ca.vertcat(x[10:], 0, 0, 0), p), ca.DM(3, 1)
    ),
    inputs=IMU,
)  # fmt: skip
LINEAR = System("linear", Rn(2), lambda t, x, u, p: [x[1], -x[0] + u], inputs=["push"])
PENDULUM = System("pendulum", Rn(2), lambda t, x, u, p: [x[1], -ca.sin(x[0])])
TWIST = System("twist", SE3, lambda t, x, u, p: u, inputs=[f"v{k}" for k in range(6)])
CURRENT = System(  # a field that is right-invariant: a frame that drifts and turns
    "current", SE2, lambda t, x, u, p: SE2.Ad(SE2.inverse(x)) @ ca.DM([0.3, 0.1, 0.2])
)


@pytest.mark.parametrize("system", [NAVIGATION, LINEAR, TWIST, CURRENT], ids=lambda s: s.name)
def test_errors_of_any_size_move_as_the_linear_equation_says(system):
    """By integrating two states: the log of the error is the matrix exponential's."""
    assert is_group_affine(system)
    rng = np.random.default_rng(1)
    u, error = rng.normal(size=system.n_inputs), 0.8 * rng.normal(size=system.state.dim)
    ends = []
    for x in system.state.random(rng, 3):
        pair = np.stack([x, system.state.plus(x, error)])
        run = system.rollout(pair, u, 0.01, steps=50, method="rk4")
        ends.append(system.state.minus(run.x[1, -1], run.x[0, -1]))
    np.testing.assert_allclose(ends, [ends[0]] * 3, atol=1e-8)  # that of the steps


@pytest.mark.parametrize("system", [APART, WITH_BIAS, PENDULUM], ids=lambda s: s.name)
def test_others_are_told_apart(system):
    assert not is_group_affine(system)


def test_both_ways_of_writing_navigation_are_one_motion():
    x, u = SE23.random(0), np.array([0.3, -0.2, 0.5, 1.0, 2.0, 9.0])
    ends = [s.rollout(x, u, 1e-3, steps=200, method="rk4").x[-1] for s in (NAVIGATION, APART)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


def test_discretized_navigation_is_group_affine_to_the_error_of_its_step():
    assert is_group_affine(TWIST.discretize(0.01, "rk4"))


def test_each_vector_with_the_rotation_is_a_pose():
    """SE_K(3) by SE(3), operation by operation."""
    for K in (1, 2, 3):
        G = SEK3(K)
        X, Y, d = G.random(0), G.random(1), G.log(G.random(2))
        for k in range(K):
            some = [*range(3 * k, 3 * k + 3), *range(3 * K, 3 * K + 4)]
            some_d = some[:6]
            np.testing.assert_allclose(G.compose(X, Y)[some], SE3.compose(X[some], Y[some]))
            np.testing.assert_allclose(G.exp(d)[some], SE3.exp(d[some_d]))
            np.testing.assert_allclose(
                G.right_jacobian(d)[np.ix_(some_d, some_d)], SE3.right_jacobian(d[some_d])
            )
            np.testing.assert_allclose(G.vector(X, k), SE3.position(X[some]))
            np.testing.assert_allclose(G.rotation(X), SE3.rotation(X[some]))
    with pytest.raises(ValueError, match="K >= 1"):
        SEK3(0)
    with pytest.raises(IndexError, match="vectors 0 … 1, not 2"):
        SE23.vector(SE23.identity, 2)
