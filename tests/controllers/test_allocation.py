"""Allocation against a general optimiser and all active sets, and its order of sacrifices."""

import subprocess
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from lgcontrol.controllers._tracking import REGULARIZATION, allocate, bounded_allocation

from ..codegen.test_export import built, needs_compiler
from .problem_a import MIX

# L-BFGS-B on a least-squares problem whose weights differ by 1e4 in the square.
COST_TOLERANCE = 1e-6
# Of controls that the wanted quantities decide, and of those that only their price does.
DECIDED, PRICED = 1e-9, 1e-4


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


def best_of_all(effect, wanted, lower, upper, priority):
    """Least squares for each choice of controls at their bounds; the best that keeps the others."""
    span = np.where(np.isfinite(upper - lower) & (upper > lower), upper - lower, 1.0)
    weight = priority / (np.abs(effect) @ span)
    A = np.vstack([weight[:, None] * effect, REGULARIZATION * np.diag(1 / span)])
    b, found = np.r_[weight * wanted, 0 * span], []
    for choice in product((lower, upper, None), repeat=len(lower)):
        free = [i for i, bound in enumerate(choice) if bound is None]
        u = np.array([0.0 if bound is None else bound[i] for i, bound in enumerate(choice)])
        if not np.isfinite(u).all():
            continue
        u[free] = np.linalg.lstsq(A[:, free], b - A @ u, rcond=None)[0]
        if ((u >= lower - 1e-12) & (u <= upper + 1e-12)).all():
            found.append((np.sum((A @ u - b) ** 2), u))
    return min(found, key=lambda entry: entry[0])[1]


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (6, 4), (2, 4), (1, 1), (2, 1)])
def test_no_choice_of_controls_at_their_bounds_is_better(shape, rng):
    rows, count = shape
    met = 0
    for k in range(30):
        effect, priority = rng.normal(size=shape), 10 ** rng.uniform(0, 2, rows)
        wanted = rng.choice([1, 3, 10]) * rng.normal(size=rows)
        lower, upper = -rng.uniform(0.2, 2, count), rng.uniform(0.2, 2, count)
        if k % 5 == 0:
            upper[0] = np.inf
        elif k % 7 == 0:
            lower[-1] = upper[-1]
        u = allocate(effect, wanted, lower, upper, priority)
        free = np.linalg.pinv(effect) @ wanted
        if ((free >= lower) & (free <= upper)).all():
            continue
        met += 1
        best = best_of_all(effect, wanted, lower, upper, priority)
        assert ((u >= lower) & (u <= upper)).all()
        np.testing.assert_allclose(u, best, atol=DECIDED if rows >= count else PRICED)
    assert met > 5


@needs_compiler
def test_many_controls_are_a_loop_in_c(tmp_path):
    """A table of steps, without a constant among its numbers."""
    folder = bounded_allocation(6, 8).export_c(tmp_path / "mix", name="mix")
    done = subprocess.run(
        [built(folder, into=tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert (folder / "mix.c").stat().st_size < 200_000
