"""Allocation against a general optimiser, and its order of sacrifices."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lgcontrol.controllers import allocate

from .problem_a import MIX

# L-BFGS-B on a least-squares problem whose weights differ by 1e4 in the square.
COST_TOLERANCE = 1e-6


def test_without_active_bounds_it_is_the_pseudo_inverse(rng):
    effect = rng.normal(size=(3, 5))
    wanted = 0.1 * rng.normal(size=3)
    u = allocate(effect, wanted, -np.ones(5), np.ones(5))
    assert np.allclose(effect @ u, wanted)
    assert np.allclose(u, np.linalg.pinv(effect) @ wanted)


@pytest.mark.parametrize("seed", range(10))
def test_with_active_bounds_it_is_the_weighted_least_squares_solution(seed):
    rng = np.random.default_rng(seed)
    effect, wanted = rng.normal(size=(3, 4)), 5 * rng.normal(size=3)
    lower, upper, priority = -np.ones(4), rng.uniform(0.5, 2, 4), np.array([10.0, 3.0, 1.0])
    u = allocate(effect, wanted, lower, upper, priority)
    assert ((u >= lower) & (u <= upper)).all()
    weight = priority / (np.abs(effect) @ (upper - lower))

    def cost(v):
        return np.sum((weight * (effect @ v - wanted)) ** 2)

    bounds = list(zip(lower, upper, strict=True))
    best = minimize(cost, np.zeros(4), bounds=bounds, tol=1e-14).fun
    assert cost(u) <= best + COST_TOLERANCE * (1 + best)


def test_tilting_goes_before_lift_and_lift_before_heading():
    """Rotors at their limit: the torque about x is met, lift suffers, heading suffers most."""
    priority = np.array([10.0, 100.0, 100.0, 1.0])
    wanted = np.array([24.0, 0.6, 0.0, 0.1])
    u = allocate(MIX, wanted, np.zeros(4), np.full(4, 6.0), priority)
    got = MIX @ u
    assert abs(got[1] - 0.6) < 0.01
    assert abs(got[2]) < 0.01
    assert 17 < got[0] < 24
    assert abs(got[3] - 0.1) > 0.05
    without = allocate(MIX, wanted, np.zeros(4), np.full(4, 6.0))
    assert abs((MIX @ without)[1] - 0.6) > 0.02


def test_controls_without_limits_and_fixed_controls():
    effect = np.array([[1.0, 1.0, 1.0]])
    u = allocate(effect, [10.0], [-np.inf, 0.0, 0.5], [np.inf, 1.0, 0.5])
    assert np.isclose(u.sum(), 10.0, atol=1e-4)
    assert u[2] == 0.5
