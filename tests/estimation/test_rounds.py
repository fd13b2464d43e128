"""Rounds of the EKF at a measurement: cells of the benchmark `filter_rounds`, and the guard."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.estimation import EKF
from lgcontrol.groups import Rn
from lgcontrol.systems import Sensor, System

from ..benchmarks import _rounds_cases as cases

STILL = System("still", Rn(1), lambda t, x, u, p: u, inputs=["push"])


def nees(name, degrees, **options):
    """Mean over 100 runs, and of the worst run."""
    case = cases.case_of(name)
    log, truth = cases.draw(case, degrees, 100, seed=0)
    run = cases.filter_of(case, degrees, **options).run(log)
    found = run.nees(log.t + case.dt, truth)
    return found.mean(), found.mean(axis=1).max()


@pytest.mark.thorough
def test_rounds_settle_for_bearings():
    """One of 100 runs overshoots with two rounds; five are enough as more change nothing."""
    mean, worst = nees("bearings (planar)", 5)
    assert mean < 1.05 and worst < 3
    assert nees("bearings (planar)", 5, iterations=2)[1] > 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "degrees", "bound", "rounds", "less"),
    [
        ("USBL, depth, DVL (INS)", 5, 1.1, 1, 1.4),
        ("USBL, depth, DVL (INS)", 10, 1.2, 1, 3.0),
        ("fixes with a lever arm (INS)", 20, 1.1, 1, 10.0),
        ("fixes with a lever arm (INS)", 40, 1.2, 2, 1.7),
        ("landmark positions (INS)", 40, 1.1, 2, 2.0),
    ],
)
def test_five_rounds_are_enough_where_fewer_are_not(name, degrees, bound, rounds, less):
    assert nees(name, degrees)[0] < bound
    assert nees(name, degrees, iterations=rounds)[0] > less


def test_a_round_that_would_raise_the_cost_is_shortened():
    """``arctan`` far out: a whole step of Gauss and Newton overshoots further each time."""
    far = Sensor("far", lambda t, x, u, p: 1e-2 * x + x / (1 + x**2) ** 0.5, Rn(1),
                      std_discrete=0.01)  # fmt: skip

    def cost(x):
        return (x - 3.0) ** 2 / 100.0 + ((0.0 - (1e-2 * x + x / np.sqrt(1 + x**2))) / 0.01) ** 2

    ekf = EKF(STILL, [far], [3.0], std0=10.0, noise={}, iterations=20)
    ekf.update("far", [0.0], t=0.0)
    grid = np.linspace(-50, 50, 200_001)
    assert abs(ekf.x[0] - grid[np.argmin(cost(grid))]) < 1e-3
    plain = 3.0
    for _ in range(20):  # what the filter did: no guard
        slope = 1e-2 + (1 + plain**2) ** -1.5
        h = 1e-2 * plain + plain / np.sqrt(1 + plain**2)
        K = 100 * slope / (100 * slope**2 + 1e-4)
        plain = 3.0 + K * (0.0 - h - slope * (3.0 - plain))
    assert abs(plain) > 1


def test_a_measurement_that_is_affine_takes_one_round():
    """Its innovation says all there is: the row is that of one round."""
    place = Sensor("place", lambda t, x, u, p: 2 * x + 1, Rn(1), std_discrete=0.1)
    bent = Sensor("place", lambda t, x, u, p: x**3, Rn(1), std_discrete=0.1)

    def size(measurement, rounds):
        ekf = EKF(STILL, [measurement], std0=1.0, noise={}, iterations=rounds)
        return ekf._updates["place"].function.n_instructions()

    assert size(place, 5) == size(place, 1) and size(bent, 5) > size(bent, 1)


def test_no_round_raises_the_cost(rng):
    """With one more round the cost of the correction is never higher: the last is compared too."""
    worse = 0
    for _ in range(12):
        y, prior = rng.uniform(-3, 3), rng.uniform(-3, 3)
        wave = Sensor("wave", lambda t, x, u, p: 4 * ca.sin(2 * x) + x**2, Rn(1), std_discrete=0.1)
        costs = []
        for rounds in range(2, 8):
            ekf = EKF(STILL, [wave], [prior], std0=1.0, noise={"push": 1.0}, iterations=rounds)
            ekf.update("wave", [y], t=0.0)
            x = ekf.x[0]
            costs.append((x - prior) ** 2 + ((y - 4 * np.sin(2 * x) - x**2) / 0.1) ** 2)
        worse += bool((np.diff(costs) > 1e-9 * np.array(costs[:-1])).any())
    assert worse == 0
