"""Boltzmann–Hamel equations in velocities of one's own against Lagrange's equations and trees."""

import pickle

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.groups import SE2, SE3, SO3, Schoenflies, Translation
from lgcontrol.mechanics import (
    Gravity,
    QuasiVelocity,
    RigidBody,
    ad_tilde,
    boltzmann_hamel_matrix,
)

from ._bodies import GROUPS, USUAL, name_of, random_inertia, random_matrix

ROUNDING = 1e-10  # some thousand roundings of numbers up to a hundred
APART = 1e-2  # a wrong formula is off by numbers of order one


def close(a, b):
    np.testing.assert_allclose(np.array(a), b, rtol=ROUNDING, atol=ROUNDING)


def euler_rates(q):
    """S of roll, pitch and yaw: body angular velocity ``ω = S(q) q̇``."""
    c, s = ca.cos, ca.sin
    return ca.vertcat(
        ca.horzcat(1, 0, -s(q[1])),
        ca.horzcat(0, c(q[0]), s(q[0]) * c(q[1])),
        ca.horzcat(0, -s(q[0]), c(q[0]) * c(q[1])),
    )


def odd_transformation(q):
    """S of no group: its γ depends on q."""
    return ca.vertcat(
        ca.horzcat(1 + q[0] ** 2, q[1], 0.2),
        ca.horzcat(0.3 * q[2], 2 + ca.sin(q[0]), q[1] * q[2]),
        ca.horzcat(q[0] * q[1], 0.1, 3 - ca.cos(q[2])),
    )


def pendulum_like(q, v):
    """A Lagrangian whose inertia depends on q."""
    M = ca.diag(ca.vertcat(2 + ca.cos(q[1]), 1 + q[0] ** 2, 3)) + 0.1
    return ca.dot(v, M @ v) / 2 - ca.sin(q[0]) - q[1] * q[2]


@pytest.mark.parametrize("transformation", [euler_rates, odd_transformation])
def test_they_are_lagranges_equations(transformation, rng):
    """Eq. 26 is eq. 18 with ``L̄(q, q̇) = L(q, S q̇)`` and ``B = Sᵀ``."""
    q, rate, second = (ca.SX.sym(name, 3) for name in ("q", "rate", "second"))
    v = transformation(q) @ rate
    L = pendulum_like(q, v)
    change = ca.jtimes(
        ca.gradient(L, rate), ca.vertcat(q, rate), ca.vertcat(rate, second)
    ) - ca.gradient(L, q)
    a = ca.jtimes(v, ca.vertcat(q, rate), ca.vertcat(rate, second))
    f = ca.Function("lagrange", [q, rate, second], [change, v, a, transformation(q)])
    ours = QuasiVelocity(3, transformation).inverse_dynamics(pendulum_like)
    for _ in range(5):
        at = 0.4 * rng.normal(size=3)
        force, v, a, S = (value.full() for value in f(at, rng.normal(size=3), rng.normal(size=3)))
        close(S.T @ ours(at, v[:, 0], a[:, 0]), force[:, 0])


def test_coefficients_are_their_definition(rng):
    """Eq. 46 by finite differences of S."""
    quasi = QuasiVelocity(3, odd_transformation)
    q, h = 0.4 * rng.normal(size=3), 1e-6
    D = np.stack([quasi.matrix(q + h * e) - quasi.matrix(q - h * e) for e in np.eye(3)], -1) / 2 / h
    inverse = np.linalg.inv(quasi.matrix(q))
    first = np.einsum("li,jlm,mk->ijk", inverse, D, inverse)
    second = np.einsum("li,jml,mk->ijk", inverse, D, inverse)
    gamma = quasi.coefficients(q)
    assert gamma.shape == (3, 3, 3)
    np.testing.assert_allclose(gamma, first - second, atol=1e-8)  # differences of step 1e-6
    assert np.abs(gamma - (first - np.einsum("li,jlm,mk->ijk", inverse, D, inverse))).max() > APART
    p, v = rng.normal(size=(2, 3))
    C = quasi.coriolis_matrix(q, p)
    close(C @ v, np.einsum("ijk,k,j->i", gamma, v, p))
    close(C + C.T, 0.0)


@pytest.mark.usually(group=USUAL)
@pytest.mark.parametrize("group", GROUPS, ids=name_of)
def test_a_groups_own_are_left_trivialised_everywhere(group, rng):
    """The sums do not depend on φ: the frame is left-invariant, and γ are structure constants."""
    quasi = QuasiVelocity.of_group(group)
    p, v, phi = rng.normal(size=(3, group.dim))
    for at in (0 * phi, phi):
        close(quasi.coriolis_matrix(at, p) @ v, -group.ad(v).T @ p)
        close(np.einsum("ijk,k,j->i", quasi.coefficients(at), v, p), -group.ad(v).T @ p)
        close(quasi.coriolis_matrix(at, p), ad_tilde(group, p))
    close(boltzmann_hamel_matrix(group, p, phi), quasi.coriolis_matrix(phi, p))


@pytest.mark.parametrize("group", [SE3, SO3, SE2, Schoenflies, Translation("xyz")], ids=name_of)
def test_a_body_moves_as_on_its_group(group, rng):
    """``τ`` in exponential coordinates about any pose Q is that of RigidBody at ``Q exp φ``."""
    body = RigidBody("body", group, random_inertia(rng), [Gravity()])
    Q = group.random(rng)
    where = ca.SX(ca.DM(Q))

    def lagrangian(phi, v):
        X = group.compose(where, group.exp(phi))
        return body.kinetic_energy(X, v) - body.potential_energy(X)

    ours = QuasiVelocity.of_group(group).inverse_dynamics(lagrangian)
    phi, v, a = 0.7 * rng.normal(size=(3, group.dim))
    close(ours(phi, v, a), body.inverse_dynamics(group.compose(Q, group.exp(phi)), v, a))


def test_euler_angles_and_a_group_simulate_alike(rng):
    """A spinning body by roll, pitch, yaw and by SO3: the same motion away from gimbal lock."""
    J = random_matrix(rng, 3)
    system = QuasiVelocity(3, euler_rates).system(
        "euler", lambda q, omega: ca.dot(omega, ca.DM(J) @ omega) / 2
    )
    omega = np.array([0.3, -0.2, 0.4])
    tau = np.zeros((100, 3))
    by_angles = system.rollout(np.r_[np.zeros(3), omega], tau, dt=0.01).x
    nothing = lg.mechanics.SpatialInertia(0.0, np.zeros(3), np.zeros((3, 3)))
    body = RigidBody("body", SO3, nothing, added_mass=J).system(generalized_force=True)
    by_group = body.rollout(np.r_[SO3.identity, omega], tau, dt=0.01).x
    np.testing.assert_allclose(by_angles[-1, 3:], by_group[-1, 4:], atol=1e-9)  # RK4 at 10 ms
    roll, pitch, yaw = by_angles[-1, :3]
    attitude = SO3.from_euler("ZYX", [yaw, pitch, roll])
    np.testing.assert_allclose(SO3.minus(attitude, by_group[-1, :4]), np.zeros(3), atol=1e-9)


def test_systems_have_inputs_of_ones_own_and_pickle(rng):
    quasi = QuasiVelocity(3, odd_transformation)
    system = quasi.system(
        "odd",
        pendulum_like,
        inputs=[lg.Input("push", "N")],
        force=lambda q, v, u: ca.vertcat(u, 0, -0.1 * v[2]),
    )
    x, u = 0.3 * rng.normal(size=6), [2.0]
    rate = system.f(0.0, x, u)
    q, v = x[:3], x[3:]
    close(quasi.matrix(q) @ rate[:3], v)
    close(quasi.inverse_dynamics(pendulum_like)(q, v, rate[3:]), [2.0, 0.0, -0.1 * v[2]])
    close(pickle.loads(pickle.dumps(system)).f(0.0, x, u), rate)


def test_messages():
    with pytest.raises(ValueError, match="dim, the number of coordinates, must be 1 or more"):
        QuasiVelocity(0, euler_rates)
    with pytest.raises(ValueError, match="S\\(q\\) must be a 2 × 2 matrix"):
        QuasiVelocity(2, lambda q: ca.vertcat(q[0], q[1]))
    quasi = QuasiVelocity(3, euler_rates)
    with pytest.raises(ValueError, match="1 inputs for 3 velocities need force="):
        quasi.system("short", pendulum_like, inputs=[lg.Input("push", "N")])
    with pytest.raises(ValueError, match="Lagrangian must be one number"):
        quasi.inverse_dynamics(lambda q, v: v)
