"""Errors of the motion stay within the stated tolerance, and the settings say how it was kept."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, Product, Rn
from lgcontrol.integrators import integrate
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.simulation import simulate
from lgcontrol.systems import Parameter, System

from ._plants import Feedback, cart, drone, swinging


@pytest.mark.usually(tolerance=[1e-4, 1e-6])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-9])
def test_free_motion_keeps_the_tolerance(tolerance):
    plant, x0 = drone(), drone().state.random(3)
    run = simulate(plant, x0=x0, seconds=2.0, tolerance=tolerance)
    exact = integrate(plant.problem, x0, (0.0, 2.0), u=plant.nominal_input, rtol=1e-12, atol=1e-12)
    error = plant.state.minus(run.x[-1], exact.x[-1])
    assert np.abs(error).max() < tolerance * max(1.0, np.abs(run.x).max())
    assert run.settings["tolerance"] == tolerance


def test_the_settings_have_the_steps_as_they_were():
    run = simulate(swinging(), Feedback([3.0, 1.0], 0.05), x0=[1.0, 0.0], seconds=1.0)
    steps = run.settings
    assert steps["method"] == "dormand_prince5" and steps["steps"] >= 20
    assert steps["shortest_step"] <= steps["longest_step"] <= 0.05
    assert steps["steps"] * steps["shortest_step"] <= 1.0 + 1e-9
    assert steps["steps"] * steps["longest_step"] >= 1.0 - 1e-9
    fixed = simulate(
        swinging(), Feedback([3.0, 1.0], 0.05), x0=[1.0, 0.0], seconds=1.0, method="rk4",
        max_step=0.02,
    ).settings  # fmt: skip
    assert fixed["shortest_step"] == pytest.approx(0.05 / 3) and fixed["steps"] == 60
    limited = simulate(cart(), x0=[0, 1], seconds=1.0, dt=0.5, max_step=0.1).settings
    assert limited["longest_step"] <= 0.1 + 1e-12


def test_a_lag_too_fast_for_the_loop_is_followed():
    carts = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"]).augment(lag=0.001)
    run = simulate(carts, x0=[1.0, 0.0, 0.1], seconds=1)
    # The push dies out as exp(−t / lag): v = lag · 0.1, x = 1 + v (t − lag).
    assert run.x[-1] == pytest.approx([1.0 + 1e-4 * (1 - 0.001), 1e-4, 0.0], abs=1e-6)
    assert run.status == "completed"


def test_dry_friction_on_a_small_rotor_is_followed_to_a_stop():
    """J dv/dt = −tanh(100 v): sinh(100 v) = sinh(100 v₀) exp(−100 t / J)."""
    inertia, start = 1.6e-3, 0.3

    brake = System("brake", Rn(1), lambda t, x, u, p: -ca.tanh(100 * x) / inertia)
    run = simulate(brake, x0=[start], seconds=0.01)
    assert run.status == "completed"
    expected = np.arcsinh(np.sinh(100 * start) * np.exp(-100 * run.t / inertia)) / 100
    np.testing.assert_allclose(run.x[:, 0], expected, rtol=0, atol=1e-6)


def test_a_stable_stiff_plant_is_neither_diverged_nor_slow():
    """A mode of −1e7 1/s beside one of −1: explicit steps would be 3 million a second."""
    plant = System("stiff", Rn(2), lambda t, x, u, p: [-x[0], 1e7 * (x[0] ** 2 - x[1])])
    run = simulate(plant, x0=[1.0, 0.0], seconds=1.0)
    assert run.status == "completed" and run.settings["steps"] < 5000
    assert "ros34pw2" in run.settings["method"]
    slow = np.exp(-run.t)
    fast = slow**2 * 1e7 / (1e7 - 2)
    np.testing.assert_allclose(run.x[1:, 0], slow[1:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(run.x[1:, 1], fast[1:], rtol=0, atol=1e-6)


def wrist() -> Multibody:
    inertia = SpatialInertia(1.0, [0, 0, 0], np.diag([1.32e-4] * 3))
    losses = JointProperties(damping=2.0, friction=1.0, effort=20.0)
    return Multibody(gravity=[0, 0, 0]).add_body(
        "wrist", inertia, "revolute", axis="z", properties=losses
    )


def test_a_wrist_with_losses_of_15000_per_second():
    """Losses cancelled as measured, which is stiff at every sample."""

    def control(t, x, reference):
        asked = 100 * (reference[0] - x[0]) - 20 * x[1]
        return [1.32e-4 * asked + 2.0 * x[1] + np.tanh(x[1] / 0.1)]

    run = simulate(wrist().system(), control, x0=[0.0, 0.0], reference=[0.5], seconds=0.05, dt=1e-4)
    # Steps of 1e-9 s agree with these digits.
    np.testing.assert_allclose(run.x[-1], [0.0156165, 0.763824], rtol=0, atol=1e-6)
    assert run.status == "completed"


def test_z1_with_the_losses_of_its_file(robot_file):
    """Poles to −4.9e4 1/s."""
    tree = Multibody.from_urdf(robot_file("z1.urdf"), on_finding="ignore")
    plant, x0 = tree.system(), np.zeros(tree.nq + tree.nv)
    x0[: tree.nq] = tree.neutral
    run = simulate(plant, x0=x0, seconds=0.1)
    finely = integrate(
        plant.problem, x0, (0.0, 0.1), u=plant.nominal_input, method="dormand_prince5",
        rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    assert run.status == "completed" and run.settings["steps"] < 2000
    error = plant.state.minus(run.x[-1], finely.x[-1])
    assert np.abs(error).max() < 1e-6


def test_the_steps_do_not_depend_on_where_the_origin_is():
    group = Product(pose=SE3, twist=Rn(6))
    spin = System("spin", group, lambda t, x, u, p: ca.vertcat(x[7:], ca.DM([0, 0, 0, 0.3, 0, 0])))
    near = simulate(spin, x0=[*np.zeros(6), 1.0, *np.ones(6)], seconds=1, dt=1.0)
    far = simulate(spin, x0=[1e6, *np.zeros(5), 1.0, *np.ones(6)], seconds=1, dt=1.0)
    assert near.settings["steps"] == far.settings["steps"] > 1


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, np.nan, 1.0, "tight"])
def test_tolerances_that_make_no_sense_are_refused(tolerance):
    with pytest.raises(ValueError, match="tolerance must be from 1e-13 to 0.1, got"):
        simulate(cart(), x0=[0, 0], seconds=1, tolerance=tolerance)


def test_parameters_are_given_by_name_and_may_change_in_time():
    options = {"x0": [0, 0], "seconds": 1.0, "dt": 0.25}

    def push(t, x, reference):
        return 4.0

    by_name = simulate(cart(), push, p={"mass": 4.0}, **options)
    np.testing.assert_array_equal(by_name.x, simulate(cart(), push, p=[4.0], **options).x)
    dropped = simulate(cart(), push, p={"mass": lambda t: 4.0 if t < 0.5 else 1.0}, **options)
    # 1 m/s² for 0.5 s, then 4 m/s² for 0.5 s.
    np.testing.assert_allclose(dropped.x[-1], [0.125 + 0.25 + 0.5, 2.5], rtol=1e-12)
    with pytest.raises(KeyError, match="unknown parameter 'weight'; valid names are mass"):
        simulate(cart(), push, p={"weight": lambda t: 1.0}, **options)


def test_parameters_that_change_are_sampled_without_a_controller():
    grow = System("grow", Rn(1), lambda t, x, u, p: p, parameters=[Parameter("rate")])
    run = simulate(grow, x0=[0.0], seconds=1.0, p={"rate": lambda t: 2 * t})
    held = 2 * run.t[:-1] @ np.diff(run.t)  # piecewise constant between the records
    assert run.x[-1, 0] == pytest.approx(held, rel=1e-9) and len(run.t) == 101


def test_no_step_is_shorter_than_the_rounding_of_the_time():
    """x′ = x² from 1 leaves the finite at 1 s; steps that shrink without a rejection end, too."""
    burst = System("burst", Rn(1), lambda t, x, u, p: x**2)
    run = simulate(burst, x0=[1.0], seconds=3.0)
    assert run.status == "diverged" and "x0 is beyond" in run.message
    assert run.settings["shortest_step"] > np.spacing(1.0)
