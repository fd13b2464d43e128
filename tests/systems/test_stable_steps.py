"""Stable steps: factors against exponentials, counted substeps against the steps themselves."""

import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.integrators import METHODS
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import (
    System,
    _stable_steps,
    choose_method,
    stable_substeps,
    step_derivatives,
)
from lgcontrol.systems._internal import rollout_derivatives, sample_time, step_factor

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
    size = 0.02 if METHODS[name].order < 6 else 0.06  # above rounding
    z = size * np.exp(1j * np.linspace(0, np.pi, 5))
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


@pytest.mark.usually(name=("euler", "rk4", "crouch_grossman3"))
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


@pytest.mark.parametrize("accuracy", [None, 0.1])
@pytest.mark.parametrize("name", GENERAL)
def test_modes_that_need_no_look_are_modes_that_one_step_keeps_up_with(name, accuracy):
    """At random in the disc, and where damping begins: there methods of low order fail first."""
    method, rng = METHODS[name], np.random.default_rng(0)
    size = _stable_steps._slow_modes(method, accuracy)
    assert size > 0 or method.order == 1
    angles = np.concatenate(
        [rng.uniform(-np.pi, np.pi, 2000), np.pi / 2 + rng.normal(size=500) / 99]
    )
    z = size * np.sqrt(rng.random(2500)) * np.exp(1j * angles)
    assert _stable_steps.substeps_for(z, method, accuracy) == 1


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


def belt(rate):
    """Position and speed, which follows its set value at a rate in 1/s."""
    return System(
        "belt", Rn(2), lambda t, x, u, p: [x[1], -rate * (x[1] - u)], inputs=["set speed"]
    )


def belt_after(rate, time):
    """From (1, 0) m, m/s with a set speed of 1 m/s."""
    lag = np.exp(-rate * time)
    return np.array([1 + time - (1 - lag) / rate, 1 - lag])


@pytest.mark.parametrize("rate", [1e3, 1e6])
def test_stiff_systems_without_a_structure_take_an_implicit_method(rate):
    system = belt(rate)
    assert choose_method(system, 0.05) == "radau_iia5"
    assert choose_method(system, 8 * 2.78 / rate) == "rk4"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = [
            system.discretize(0.05).rollout([1.0, 0.0], [1.0], steps=10),
            system.rollout([1.0, 0.0], [1.0], 0.05, steps=10, method="auto"),
            rollout_derivatives(system, [1.0, 0.0], [1.0], 0.05, steps=10, method="auto")[0],
        ]
    for run in runs:
        # R(z) = O(1/z) falls a few times a step where the exact factor vanishes.
        np.testing.assert_allclose(
            run.x[-1], belt_after(rate, 0.5), rtol=0, atol=1e-9 + 1e-3 / rate
        )


def test_springs_that_losses_leave_explicit_take_an_implicit_method():
    """ω = 2000 rad/s: 25 substeps of the linearly implicit step in 0.05 s, which needs ω dt < 2."""
    rod = SpatialInertia.rod(3.0, length=1.0, center_of_mass=[0, 0, -0.5])  # 1 kg m² about the end
    tree = Multibody(gravity=(0, 0, 0)).add_body(
        "rod",
        rod,
        "revolute",
        axis="y",
        properties=JointProperties(stiffness=4e6, damping=1.0),
    )
    system = tree.system()
    assert stable_substeps(system, [0.0, 0.0], None, 0.05, "linearly_implicit_euler") > 20
    assert choose_method(system, 0.05) == "radau_iia5"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = system.discretize(0.05).rollout([0.1, 0.0], steps=20)
    assert np.abs(run.x[:, 0]).max() < 0.101


def test_warnings_name_the_remedy():
    stiff, lag = belt(1e3), belt(100.0)
    with pytest.warns(RuntimeWarning, match=r'substeps=18, method="auto" .here radau_iia5., or'):
        stiff.discretize(0.05, "rk4")
    with pytest.warns(RuntimeWarning, match=r'substeps=2, method="radau_iia5", or a shorter dt'):
        lag.discretize(0.05)


def test_rollouts_that_grow_by_their_steps_are_warned_of():
    system = belt(1e3)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"1 step of rk4 in 0.05 s .* start; .*\"auto\""):
            run = system.rollout([[1.0, 1.0], [1.0, 0.0]], [1.0], 0.05, steps=3)
        assert np.abs(run.x).max() > 1e9
    growing = System("growing", Rn(1), lambda t, x, u, p: 10 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert growing.rollout([1.0], dt=0.05, steps=20).x[-1, 0] > 1e4
        system.rollout([1.0, 0.0], [1.0], 0.05, steps=3, substeps=18)


def test_a_step_of_unknown_length_cannot_choose():
    for build in (System.step, step_derivatives):
        with pytest.raises(
            ValueError, match=r'belt: "auto" chooses by the length .* choose_method'
        ):
            build(belt(1e3), "auto")
    assert account().rollout([0.0, 0.0], steps=2, method="auto").x.shape == (3, 2)
