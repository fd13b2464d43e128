"""Stable steps: factors against exponentials, counted substeps against the steps themselves."""

import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.integrators import METHODS
from lgcontrol.systems import System, sample_time, stable_substeps, step_factor

from ._examples import account, quadrotor

ROUNDING = 1e-12
GENERAL = [name for name, method in METHODS.items() if not method.needs_structure]
EXPLICIT = [name for name in GENERAL if not METHODS[name].stiff_order]


def motor(lag):
    return System("motor", Rn(1), lambda t, x, u, p: (u - x) / lag, inputs=["voltage"])


def oscillator(rate, damping):
    return System(
        "oscillator", Rn(2), lambda t, x, u, p: [rate * x[1], -rate * (x[0] + damping * x[1])]
    )


@pytest.mark.parametrize("name", GENERAL)
def test_factors_are_those_of_the_order(name):
    z = 0.02 * np.exp(1j * np.linspace(0, np.pi, 5))
    missed = [np.abs(step_factor(name, s * z) - np.exp(s * z)).max() for s in (2.0, 1.0)]
    assert missed[0] / missed[1] == pytest.approx(2 ** (METHODS[name].order + 1), rel=0.1)


# Ends of the real intervals, from the tables of Hairer, Wanner II, section IV.2.
@pytest.mark.parametrize(("name", "end"), [("euler", 2.0), ("heun", 2.0), ("rk4", 2.7853)])
def test_intervals_of_stability(name, end):
    assert abs(step_factor(name, -end * 0.9999)) < 1 < abs(step_factor(name, -end * 1.0001))
    lag = 0.01
    assert stable_substeps(motor(lag), [0.0], None, end * lag * 0.999, name) == 1
    assert stable_substeps(motor(lag), [0.0], None, end * lag * 1.001, name) == 2
    assert stable_substeps(motor(lag), [0.0], None, end * lag * 40.5, name) == 41


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("system", [motor(0.002), oscillator(300.0, 0.3), oscillator(80.0, 0.0213)])
def test_the_counted_substeps_are_the_fewest_that_decay(system, name):
    count = stable_substeps(system, np.zeros(system.state.dim), None, 0.05, name)
    assert count > 1

    def grows(substeps):
        step = system.step(name, substeps)
        x = np.full(system.state.dim, 1e-3)
        sizes = []
        for _ in range(400):
            x = step(0.0, x, np.zeros(system.n_inputs), dt=0.05)
            sizes.append(np.abs(x).max())
            if sizes[-1] > 1e3:
                return True
        return max(sizes[300:]) > max(sizes[:100])

    assert not grows(count)
    assert grows(count - 1)


def test_accuracy_asks_for_more():
    system = oscillator(50.0, 0.0)
    count = stable_substeps(system, [1.0, 0.0], None, 0.1, accuracy=1e-4)
    exact = np.array([np.cos(5.0), -np.sin(5.0)])
    errors = [
        np.abs(system.step("rk4", n)(0.0, [1.0, 0.0], [], dt=0.1) - exact).max()
        for n in (count, count - 1)
    ]
    assert errors[0] < 2e-4 and errors[1] > 0.5e-4
    assert count > stable_substeps(system, [1.0, 0.0], None, 0.1)


def test_slow_systems_need_one_step_and_growing_ones_are_no_obstacle():
    assert stable_substeps(quadrotor(), quadrotor().state.identity, None, 0.05) == 1
    growing = System("growing", Rn(1), lambda t, x, u, p: 30 * x)
    assert stable_substeps(growing, [0.0], None, 0.1, "euler") == 1
    assert stable_substeps(account(), [0.0, 0.0], None, 0.1) == 1


def test_no_number_of_substeps_is_enough_for_absurd_states():
    drag = System("drag", Rn(1), lambda t, x, u, p: -x * ca.fabs(x))
    for x in (1e300, -1e300):
        assert stable_substeps(drag, [x], None, 0.1, accuracy=0.1) >= 2**30


def test_the_fastest_state_of_a_motion_counts():
    drag = System("drag", Rn(1), lambda t, x, u, p: -x * ca.fabs(x))
    assert stable_substeps(drag, [[1.0], [100.0]], None, 0.1) == stable_substeps(
        drag, [100.0], None, 0.1
    )
    root = System("root", Rn(1), lambda t, x, u, p: -ca.sqrt(x))
    assert stable_substeps(root, [[-1.0], [1.0]], None, 0.1) == 1


def test_sample_times_must_agree():
    assert sample_time(account()) == sample_time(account(), 0.3 / 3) == 0.1
    assert sample_time(motor(1.0), 0.2) == 0.2
    with pytest.raises(ValueError, match="account has the sample time 0.1 s, not period = 0.2 s"):
        sample_time(account(), 0.2, "period")
    with pytest.raises(ValueError, match="motor is continuous: give dt > 0 in s, got None"):
        sample_time(motor(1.0))
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match="motor: dt must be positive"):
            sample_time(motor(1.0), wrong)
    with pytest.raises(ValueError, match="dt is not finite"):
        sample_time(motor(1.0), np.nan)


def test_unstable_discretizations_are_warned_of():
    """The integrator behind a lag of 2 ms: one step of rk4 in 20 ms multiplies it by 291."""
    mass = System("mass", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["force"]).augment(lag=0.002)
    with pytest.warns(RuntimeWarning, match=r"mass: 1 step of rk4 in 0.02 s .* give substeps=4"):
        bad = mass.discretize(0.02)
    assert np.abs(np.linalg.eigvals(bad.linearize(np.zeros(3)).A)).max() == pytest.approx(291)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = mass.discretize(0.02, substeps=4)
        quadrotor().discretize(0.05)
    assert np.abs(np.linalg.eigvals(good.linearize(np.zeros(3)).A)).max() < 1 + 1e-9
