"""Actuator lag, delays, biases and integrators as further blocks of the state."""

import control
import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.groups import SE3, SO3, Rn
from lgcontrol.systems import System, check_system, step_derivatives

from ._examples import account, heavy_top, lift, pendulum, quadrotor, satellite

SAME = 1e-12


def test_blocks_are_named_and_inputs_and_output_stay():
    quad = quadrotor()
    more = quad.augment(
        delay={"rotor1": 0.02}, lag=0.05, bias=["rotor2", "pose.x"], integrate="pose.z"
    )
    assert list(more.state.blocks) == ["pose", "twist", "delay", "actuator", "bias", "integral"]
    assert more.state.blocks["actuator"].names == ("rotor1", "rotor2", "rotor3", "rotor4")
    assert more.state.tangent_names[-3:] == ("bias.rotor2", "bias.pose.x", "integral.pose.z")
    assert more.state.tangent_units[-3:] == ("N", "m", "m s")
    assert (more.inputs, more.output) == (quad.inputs, quad.output)
    assert more.nominal_parameters[:2].tolist() == [0.02, 0.05]
    check_system(more)


def test_a_state_without_blocks_becomes_one():
    assert list(account().augment(bias="deposit").state.blocks) == ["state", "bias"]


def test_augmenting_twice_adds_second_blocks():
    twice = lift().augment(lag=0.1).augment(lag=0.2)
    assert list(twice.state.blocks) == ["height", "speed", "actuator", "actuator2"]
    assert twice.parameter_names[1:] == ("thrust.time_constant", "thrust.time_constant2")
    poles = np.linalg.eigvals(twice.linearize(twice.trim()).A)
    np.testing.assert_allclose(sorted(poles.real)[:2], [-10, -5], rtol=1e-6)


def test_lag_is_a_first_order_response():
    lagged = lift().augment(lag={"thrust": 0.3})
    run = lagged.rollout([0, 0, 0], [10.0], 0.01, steps=100)
    np.testing.assert_allclose(run.x[:, 2], 10 * (1 - np.exp(-run.t / 0.3)), atol=1e-6)
    other = lagged.parameter_values({"thrust.time_constant": 0.6})
    slow = lagged.rollout([0, 0, 0], [10.0], 0.01, steps=100, p=other)
    np.testing.assert_allclose(slow.x[:, 2], 10 * (1 - np.exp(-slow.t / 0.6)), atol=1e-6)


def test_one_input_may_be_slower_than_the_others_in_whatever_order_they_are_named():
    quad = models.quadrotor()
    for lag in ({"rotor": 0.1, "rotor.2": 0.2}, {"rotor.2": 0.2, "rotor": 0.1}):
        assert quad.augment(lag=lag).nominal_parameters.tolist() == [0.1, 0.1, 0.2, 0.1]


def test_lag_of_a_discrete_system_is_exact_for_held_inputs():
    lagged = lift().discretize(0.1).augment(lag=0.3)
    run = lagged.rollout([0, 0, 0], [10.0], steps=10)
    np.testing.assert_allclose(run.x[:, 2], 10 * (1 - np.exp(-run.t / 0.3)), atol=SAME)


def test_delay_of_a_discrete_system_is_exact(rng):
    plain = pendulum().discretize(0.05)
    delayed = plain.augment(delay=0.15)
    u = rng.normal(size=(20, 1))
    run = delayed.rollout([1.0, 0, 0, 0, 0, 0], u)
    expected = plain.rollout([1.0, 0, 0], np.vstack([np.zeros((3, 1)), u[:-3]]))
    np.testing.assert_allclose(run.x[:, :3], expected.x, atol=SAME)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_delay_of_a_continuous_system_is_a_pade_approximant(order):
    wire = System(
        "wire", Rn(1), lambda t, x, u, p: u - x, inputs=["u"], h=lambda t, x, u, p: u, output=Rn(1)
    )
    delayed = wire.augment(delay=0.5, delay_order=order)
    model = delayed.linearize(delayed.state.identity).to_control()
    frequencies = np.array([0.1, 1.0, 3.0, 10.0, 30.0])
    ours = model(1j * frequencies)
    numerator, denominator = control.pade(0.5, order, order - 1)
    reference = control.tf(numerator, denominator)(1j * frequencies)
    np.testing.assert_allclose(ours, reference, atol=1e-9)


def test_a_constant_input_passes_a_delay_unchanged():
    delayed = lift().augment(delay=0.2)
    point = delayed.trim()
    np.testing.assert_allclose(point.u, 2 * 9.81)
    np.testing.assert_allclose(point.x[2:], [2 * 9.81, 0, 0, 0], atol=1e-9)


def test_the_command_passes_delay_then_lag_then_bias():
    system = lift().discretize(0.1).augment(delay=0.1, lag=0.5, bias="thrust")
    x = system.state.join(delay=[3.0], actuator=[2.0], bias=[0.5])
    after = system.step()(0.0, x, [7.0])
    parts = system.state.split(after)
    np.testing.assert_allclose(parts["delay"], [7.0])
    share = 1 - np.exp(-0.1 / 0.5)
    np.testing.assert_allclose(parts["actuator"], [2.0 + share * (3.0 - 2.0)])
    np.testing.assert_allclose(parts["speed"], [0.1 * (2.5 / 2 - 9.81)])
    np.testing.assert_allclose(parts["bias"], [0.5])


def test_a_bias_of_an_output_acts_in_its_tangent_space():
    system = satellite().augment(bias=["attitude.rz", "rate.wx"])
    x = system.state.random(1)
    y = system.h(0.0, x)
    attitude = SO3.compose(x[:4], SO3.exp([0, 0, x[-2]]))
    assert np.abs(SO3.minus(y[:4], attitude)).max() < SAME
    np.testing.assert_allclose(y[4:7], x[4:7] + [x[-1], 0, 0], atol=SAME)
    check_system(system)


def test_integrators_take_the_tangent_space_error():
    reference = pendulum().state.join(angle=[0.6, 0.8])
    system = pendulum().augment(integrate=["angle.rz", "rate.w"], reference=reference)
    x = system.state.join(angle=[0.0, 1.0], rate=[0.3], integral=[9.0, 9.0])
    whole = pendulum().augment(integrate=["angle", "rate"], reference=reference)
    np.testing.assert_array_equal(whole.f(0.0, x), system.f(0.0, x))
    np.testing.assert_allclose(
        system.f(0.0, x)[2:], [np.pi / 2 - np.arctan2(0.8, 0.6), 0.3], atol=SAME
    )
    moved = system.parameter_values({"reference.angle.cos": 2.0, "reference.angle.sin": 0.0})
    np.testing.assert_allclose(system.f(0.0, x, [0.0], moved)[2], np.pi / 2, atol=SAME)


def test_integrators_of_a_discrete_system_add_the_error_times_the_sample_time():
    system = lift().discretize(0.1).augment(integrate="height.z", reference=[2.0, 0.0])
    x = system.state.join(height=[5.0], integral=[1.0])
    np.testing.assert_allclose(system.step()(0.0, x, [0.0])[2], 1.0 + 0.1 * 3.0)


def test_integral_action_removes_the_offset_of_an_unknown_bias():
    quad = quadrotor()
    wanted = quad.trim(position=[1, 2, 3])
    system = quad.augment(integrate=["pose.x", "pose.y", "pose.z"], reference=wanted.x)
    point = system.trim(position=[1, 2, 3])
    lin = system.linearize(point)
    assert lin.controllability().is_controllable
    K, _, _ = control.lqr(lin.to_control(), np.eye(15), np.eye(4))
    x = point.x
    for _ in range(2000):
        u = point.u - K @ system.state.minus(x, point.x)
        x = system.step()(0.0, x, u + [0.2, 0.0, -0.1, 0.1], dt=0.01)  # rotors are off
    assert np.abs(x[:3] - [1, 2, 3]).max() < 1e-3


def test_quantities_and_constraints_come_along():
    top = heavy_top()
    pushed = System(
        "pushed top",
        top.state,
        lambda t, x, u, p: top.f(t, x),
        inputs=["push"],
        quantities={"reaction": lambda t, x, u, p: top.quantities["reaction"](t, x)},
        invariants=top.invariants,
        project=top.project,
    ).augment(lag=0.1, integrate="pose.z")
    x = pushed.project(pushed.state.random(3))
    np.testing.assert_array_equal(
        pushed.quantities["reaction"](0.0, x), top.quantities["reaction"](0.0, x[:13])
    )
    assert pushed.invariants is None  # they hold for the nominal input, which is a state now
    np.testing.assert_array_equal(pushed.quantities["invariants"](0.0, x), top.invariants(x[:13]))
    np.testing.assert_allclose(pushed.project(x), x, atol=1e-14)
    check_system(pushed)
    kept = satellite().augment(bias="rate.wx")
    assert kept.invariants is not None and not kept.quantities


FAULTS = {
    "nothing": ({}, ValueError, "give delay, lag, bias, integrate or constant"),
    "lag": ({"lag": -0.1}, ValueError, "lag of 'rotor1' must be positive seconds, got -0.1"),
    "delay": ({"delay": np.nan}, ValueError, "delay of 'rotor1' must be positive seconds"),
    "order": (
        {"delay": 0.1, "delay_order": 0},
        ValueError,
        "delay_order must be a whole number, at least 1",
    ),
    "input": ({"lag": {"rotor5": 1}}, KeyError, "unknown input 'rotor5'; valid names are rotor1"),
    "bias": ({"bias": "pose.w"}, KeyError, "unknown input or output error 'pose.w'"),
    "output": ({"integrate": "pose.qx"}, KeyError, "unknown output error 'pose.qx'"),
    "twice": ({"bias": ["rotor1", "rotor1"]}, ValueError, "bias: 'rotor1' is given twice"),
    "reference": ({"lag": 1.0, "reference": SE3.identity}, ValueError, "give integrate as well"),
    "shape": (
        {"integrate": "pose.x", "reference": SE3.identity},
        ValueError,
        r"reference has shape \(7,\), expected \(13,\)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    arguments, error, message = FAULTS[fault]
    with pytest.raises(error, match=message):
        quadrotor().augment(**arguments)


def test_a_discrete_delay_must_be_a_multiple_of_the_sample_time():
    with pytest.raises(ValueError, match="0.03 s is not a multiple .* 0.02 s; the nearest is 0.0"):
        quadrotor().discretize(0.02).augment(delay=0.03)


@pytest.mark.parametrize("dt", [0.0, 0.02])
def test_biases_that_walk_and_return_have_the_variance_of_their_equation(dt):
    """By the covariance that A and B propagate: density² t, and density² τ/2 in the end."""
    for seconds, expected in ((np.inf, 0.3**2 * 40.0), (2.0, 0.3**2 * 2.0 / 2)):
        system = lift().discretize(0.02) if dt else lift()
        more = system.augment(bias="thrust", bias_walk=True, bias_time=seconds)
        assert more.input_names[-1] == "thrust.walk" and more.inputs[-1].role == "noise"
        assert more.inputs[-1].unit == "N/s" and more.n_inputs == system.n_inputs + 1
        check_system(more)
        step = step_derivatives(more)(0.0, more.state.identity, more.nominal_input, dt=0.02)
        row = more.state.tangent_names.index("bias.thrust")
        P = 0.0
        for _ in range(2000):
            P = step.A[row, row] ** 2 * P + step.B[row, -1] ** 2 * 0.3**2 / 0.02
        assert P == pytest.approx(expected, rel=0.011)  # noise is held over a step


def test_walks_of_a_mechanical_system_keep_its_closed_forms(closed_form_error, rng):
    plain = models.quadrotor()
    driven = plain.input_names[1]
    more = plain.augment(bias=["pose.z", driven], bias_walk=True, bias_time=5.0)
    assert more.input_names[-2:] == (f"{driven}.walk", "pose.z.walk")
    assert closed_form_error(more, rng) < 1e-9
    check_system(more)


def test_walks_need_biases():
    with pytest.raises(ValueError, match="give bias as well"):
        lift().augment(lag=0.1, bias_walk=True)
    with pytest.raises(ValueError, match="bias_time must be positive"):
        lift().augment(bias="thrust", bias_time=0.0)


def test_parameters_become_constant_states():
    craft = lift()
    name = craft.parameter_names[0]
    found = craft.augment(constant=[name, "spare"])
    assert list(found.state.blocks)[-1] == "constant"
    assert found.parameter_names == craft.parameter_names[1:]
    assert found.home[-2:].tolist() == [craft.nominal_parameters[0], 0.0]
    check_system(found)
    x, other = found.home.copy(), craft.nominal_parameters.copy()
    x[-2] = other[0] = 1.7 * other[0]
    u = craft.nominal_input + 0.3
    inside = np.asarray(craft.f(0.2, x[:-2], u, other))
    np.testing.assert_allclose(np.asarray(found.f(0.2, x, u, other[1:])), [*inside, 0, 0])


def test_derivatives_by_constants_are_those_of_differences():
    quad = quadrotor()
    name = quad.parameter_names[0] if quad.parameter_names else "spare"
    found = quad.augment(constant=name, lag=0.1)
    check_system(found)
    assert list(found.state.blocks)[-2:] == ["actuator", "constant"]


def test_functions_are_integrated_under_their_names(rng):
    craft = lift().augment(lag=0.2, integrate={"work": lambda t, x, u, p: x[1] * u[0] + t})
    assert craft.state.coordinate_names[-1] == "integral.work"
    check_system(craft)
    x = rng.normal(size=craft.state.nq)
    rate = np.asarray(craft.f(0.5, x, [9.0], craft.nominal_parameters))
    assert rate[-1] == pytest.approx(x[1] * x[2] + 0.5)  # of what arrives behind the lag
    sampled = lift().discretize(0.1).augment(integrate={"work": lambda t, x, u, p: x[1]})
    change = np.asarray(sampled.f(0.0, [0.0, 2.0, 0.0], [9.0], sampled.nominal_parameters))
    assert change[-1] == pytest.approx(0.2)
