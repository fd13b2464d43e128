"""The policy of multirotors: it points the thrust first, keeps bounds, and gets there."""

import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.mechanics import thrust_policy
from lgcontrol.models import quadrotor, satellite

QUAD = quadrotor()
HOVER = QUAD.trim()


def at(rotation=(0.0, 0.0, 0.0), position=(0.0, 0.0, 0.0), twist=(0.0,) * 6):
    return np.r_[position, SO3.exp(np.array(rotation)), twist]


def test_at_the_reference_it_is_the_reference():
    u = QUAD.policy(0.0, HOVER.x, HOVER.x, HOVER.u)
    np.testing.assert_allclose(u, HOVER.u[:4], atol=1e-12)


def test_small_errors_decay_as_asked():
    """Against the linear law: a tilt error is turned by −ω² e, a height error lifts by −ω² e."""
    eps = 1e-6
    policy = QUAD.with_policy(thrust_policy(QUAD, position_frequency=2.0, attitude_frequency=7.0))
    for x, entry, wanted in (
        (at(position=(0, 0, eps)), 8, -(2.0**2) * eps),
        (at(rotation=(eps, 0, 0)), 9, -(7.0**2) * eps),
        (at(rotation=(0, eps, 0)), 10, -(7.0**2) * eps),
        (at(rotation=(0, 0, eps)), 11, -(7.0**2) * eps),
        (at(twist=np.array([0, 0, 0, eps, 0, 0])), 9, -2 * 7.0 * eps),
    ):
        u = QUAD.full_input(policy.policy(0.0, x, HOVER.x, HOVER.u))
        np.testing.assert_allclose(QUAD.f(0.0, x, u)[entry], wanted, rtol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_kept_and_tilt_goes_first(seed):
    rng = np.random.default_rng(seed)
    free = quadrotor(max_thrust=1e6)
    x = QUAD.state.plus(HOVER.x, rng.normal(size=12) * np.r_[np.ones(3), 2 * np.ones(9)])
    u = QUAD.policy(0.0, x, HOVER.x, HOVER.u)
    assert (u >= -1e-12).all() and (u <= 6 + 1e-12).all()
    # Where bounds are met the tilt keeps its direction, by the same share about both axes.
    rates = [s.f(0.0, x, s.full_input(s.policy(0.0, x, HOVER.x, HOVER.u)))[9:11]
             - s.f(0.0, x, s.full_input(np.zeros(4)))[9:11] for s in (QUAD, free)]  # fmt: skip
    assert abs(np.linalg.det(rates)) <= 1e-9 * np.linalg.norm(rates[0]) * np.linalg.norm(rates[1])
    assert rates[0] @ rates[1] > 0


def test_it_recovers_from_upside_down():
    x = at(rotation=(np.pi, 0, 0))
    step, goal = QUAD.step("rk4"), HOVER.x + np.r_[1.0, np.zeros(12)]
    for _ in range(200):
        x = step(0.0, x, QUAD.full_input(QUAD.policy(0.0, x, goal, HOVER.u)), dt=0.03)
    assert np.linalg.norm(QUAD.error(x, goal)) < 0.05


def test_other_systems_are_refused_by_name():
    with pytest.raises(ValueError, match="satellite: thrust_policy is for systems whose structure"):
        thrust_policy(satellite())
