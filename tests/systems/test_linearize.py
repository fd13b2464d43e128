"""Exact linearization at a point, against flows and differences; what kind of motion it is."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO3, Product, Rn
from lgcontrol.systems import Input, System, step_derivatives
from lgcontrol.systems._internal import field_derivatives

from ._examples import RATE, account, pendulum, quadrotor, satellite, turn, underwater

# Central differences with step h: h² f''' and rounding / h, nested twice below.
STEP = 1e-4
NUMERIC = 1e-5

BUILDERS = [pendulum, quadrotor, satellite, underwater]


def flow(system, x, u, seconds):
    """State after a very short time, forwards or backwards, by one step of order 5."""
    return system.step("dormand_prince5")(0.0, x, u, dt=seconds)


def numeric_error_rate(system, x, u):
    """Derivative of ``d/dt minus(X, X̄)`` with respect to the error at the start, by two flows."""

    def error_rate(error):
        start = system.state.plus(x, error)
        ahead, back = (
            system.state.minus(flow(system, start, u, h), flow(system, x, u, h))
            for h in (STEP, -STEP)
        )
        return (ahead - back) / (2 * STEP)

    steps = STEP * np.eye(system.state.dim)
    return np.stack([(error_rate(d) - error_rate(-d)) / (2 * STEP) for d in steps], axis=-1)


@pytest.mark.parametrize("build", BUILDERS)
def test_error_dynamics_are_those_of_two_solutions(build, rng):
    system = build()
    x = system.state.random(rng)
    u = rng.normal(size=system.n_inputs)
    lin = system.linearize(x, u)
    numeric = numeric_error_rate(system, x, u)
    scale = 1 + np.abs(numeric).max()
    assert np.abs(lin.A - numeric).max() < NUMERIC * scale
    if not system.state.is_commutative:
        half = lin.A + system.state.ad(lin.rate) / 2  # the rate in a fixed chart
        assert np.abs(half - numeric).max() > 100 * NUMERIC * scale
    for k in range(system.n_inputs):
        du = STEP * np.eye(system.n_inputs)[k]
        column = (system.f(0.0, x, u + du) - system.f(0.0, x, u - du)) / (2 * STEP)
        assert np.abs(lin.B[:, k] - column).max() < NUMERIC * scale


@pytest.mark.usually(build=(pendulum, satellite))
@pytest.mark.parametrize("build", [pendulum, quadrotor, satellite])
def test_discrete_linearization_has_a_closed_form(build, rng):
    """``A = Ad(exp −f) + J_r(f) Df``, ``B = J_r(f) ∂f/∂u`` for ``X⁺ = X exp f``."""
    system = build().discretize(0.05)
    state = system.state
    x, u = state.random(rng), rng.normal(size=system.n_inputs)
    lin = system.linearize(x, u)
    f = system.f(0.0, x, u)
    np.testing.assert_allclose(lin.rate, f, atol=1e-12)
    slope = np.stack(
        [
            (system.f(0.0, state.plus(x, d), u) - system.f(0.0, state.plus(x, -d), u)) / (2 * STEP)
            for d in STEP * np.eye(state.dim)
        ],
        axis=-1,
    )
    A = state.Ad(state.exp(-f)) + state.right_jacobian(f) @ slope
    assert np.abs(lin.A - A).max() < NUMERIC * (1 + np.abs(A).max())
    du = STEP * np.eye(system.n_inputs)
    by_u = np.stack([(system.f(0.0, x, u + d) - f) / STEP for d in du], axis=-1)
    assert np.abs(lin.B - state.right_jacobian(f) @ by_u).max() < 10 * STEP


def test_the_linearization_of_a_discretized_system_is_that_of_the_step():
    system = quadrotor()
    x, u = system.state.random(3), np.array([1.0, 2.0, 3.0, 4.0])
    step = step_derivatives(system, "rk4")(0.0, x, u, dt=0.02)
    lin = system.discretize(0.02).linearize(x, u)
    np.testing.assert_allclose(step.A, lin.A, atol=1e-12)
    np.testing.assert_allclose(step.B, lin.B, atol=1e-12)
    np.testing.assert_array_equal(step.x_next, system.step()(0.0, x, u, dt=0.02))


def test_the_default_output_has_the_identity_as_its_matrix(rng):
    for build in BUILDERS:
        system = build()
        lin = system.linearize(system.state.random(rng))
        np.testing.assert_allclose(lin.C, np.eye(system.state.dim), atol=1e-14)
        assert not lin.D.any()


def test_derivative_functions_take_batches():
    system = quadrotor()
    x = system.state.random(0, (6,))
    result = field_derivatives(system)(np.linspace(0, 1, 6), x, np.ones(4))
    assert result.A.shape == (6, 12, 12)
    np.testing.assert_array_equal(result.A[4], system.linearize(x[4], np.ones(4), t=0.8).A)


def test_linearizing_at_other_parameters():
    system = pendulum()
    lin = system.linearize([1.0, 0.0, 0.0], p=system.parameter_values({"inertia": 2.0}))
    np.testing.assert_allclose(lin.A, [[0, 1], [-9.81, -0.05]])
    np.testing.assert_allclose(lin.B, [[0], [0.5]])


def test_a_point_with_its_own_input_is_taken_as_it_is():
    point = SimpleNamespace(x=[1.0, 0.0, 0.0], u=[0.5])
    assert pendulum().linearize(point).u.tolist() == [0.5]
    with pytest.raises(TypeError, match="its own input, and u as well"):
        pendulum().linearize(point, [0.1])


# What kind of motion it is


def kind(system, *arguments, **options):
    return system.linearize(*arguments, **options).kind


def test_kinds_of_motion():
    top = pendulum()
    assert kind(top, [1.0, 0.0, 0.0]) == "equilibrium"
    assert kind(top, [-1.0, 0.0, 0.0]) == "equilibrium"
    assert kind(top, [0.0, 1.0, 0.0]) == "none"
    assert kind(top, [1.0, 0.0, 1.0]) == "none"
    free = satellite()
    spinning = free.state.join(attitude=SO3.random(1), wheel_speed=[0.0, 0.0, 50.0])
    assert kind(free, spinning) == "equilibrium"
    about_z = free.state.join(attitude=SO3.random(1), rate=[0.0, 0.0, 0.3])
    assert kind(free, about_z) == "relative equilibrium"
    assert kind(free, free.state.join(rate=[0.3, 0.1, 0.2])) == "none"
    assert kind(free.discretize(0.1), about_z) == "relative equilibrium"


def test_a_field_that_depends_on_time_is_no_equilibrium():
    wave = System("wave", Rn(1), lambda t, x, u, p: ca.sin(t) - 0 * x)
    assert kind(wave, [0.0]) == "none"


def test_a_motion_through_a_varying_medium_is_no_symmetry():
    medium = System("medium", Rn(2), lambda t, x, u, p: [1.0, x[1] * ca.sin(x[0])])
    assert kind(medium, [0.0, 0.0]) == "none"  # f stays (1, 0), its derivative does not


def test_inputs_and_outputs_fixed_in_the_world_vary_along_a_turn():
    def field(t, x, u, p):
        gust = turn(ca.vertcat(-x[3:6], x[6]), ca.vertcat(u[2], 0, 0))
        return ca.vertcat(u[0] + gust[0], gust[1:], 0, 0, u[1])

    car = System(
        "car",
        SE3,
        field,
        inputs=["speed", "turn", Input("gust", "m/s", role="disturbance")],
        h=lambda t, x, u, p: x[:3],
        output=Rn(3, ("x", "y", "z")),
    )
    turning = car.linearize(SE3.identity, [1.0, 0.5, 0.0])
    assert turning.kind == "relative equilibrium"
    assert turning.varying == ("gust", "x", "y")
    assert not turning.is_time_invariant
    assert turning.controls().varying == ("x", "y")
    straight = car.linearize(SE3.identity, [1.0, 0.0, 0.0])
    assert straight.is_time_invariant


def test_a_feedthrough_fixed_in_the_world_varies_along_a_turn():
    def wind_in_body_axes(t, x, u, p):
        return turn(ca.vertcat(-x[3:6], x[6]), ca.vertcat(u, 0, 0))

    vane = System(
        "vane",
        SE3,
        lambda t, x, u, p: [1, 0, 0, 0, 0, 0.5],
        inputs=["wind"],
        h=wind_in_body_axes,
        output=Rn(3, ("x", "y", "z")),
    )
    assert vane.linearize(SE3.identity).varying == ("wind", "x", "y")


def test_inputs_by_role():
    lin = satellite().linearize(satellite().state.identity)
    assert lin.B.shape == (9, 6)
    assert lin.controls().input_names == ("motor_x", "motor_y", "motor_z")
    np.testing.assert_array_equal(lin.with_inputs("disturbance").B, lin.B[:, 3:])
    assert lin.with_inputs("noise").B.shape == (9, 0)
    np.testing.assert_array_equal(lin.with_inputs("all").B, lin.B)
    with pytest.raises(ValueError, match="unknown choice of inputs 'controls'.*mean 'control'"):
        lin.with_inputs("controls")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 0.0],), r"x has shape \(2,\), expected \(3,\)"),
        (([1.0, 0.0, np.nan],), r"x is not finite: entry \(2,\) is nan"),
        (([1.0, 0.0, 0.0], [1.0, 2.0]), r"u has shape \(2,\), expected \(1,\)"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        pendulum().linearize(*arguments)


def test_a_derivative_that_is_not_finite_is_named():
    tank = System(
        "tank", Product(level=Rn(1, ("h",)), rate=RATE), lambda t, x, u, p: [ca.sqrt(x[0]), 0, 0, 0]
    )
    with pytest.raises(ValueError, match="tank: A of the linearization is not finite at level.h"):
        tank.linearize([0.0, 0.0, 0.0, 0.0])


def test_discrete_models_linearize():
    lin = account().linearize([1.0, 2.0], [3.0])
    np.testing.assert_allclose(lin.A, [[0.9, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(lin.B, [[0.5], [0.0]])


def test_planar_groups_linearize():
    unicycle = System("unicycle", SE2, lambda t, x, u, p: [u[0], 0, u[1]], inputs=["speed", "turn"])
    lin = unicycle.linearize(SE2.random(1), [1.0, 0.5])
    assert lin.kind == "relative equilibrium"
    assert lin.is_time_invariant
    np.testing.assert_allclose(lin.A, [[0, 0.5, 0], [-0.5, 0, 1], [0, 0, 0]], atol=1e-14)


def test_poles_come_slowest_last():
    """Inertia 0.5 and damping 0.1: s² + 0.2 s + 9.81 = 0, upright s² + 0.2 s − 9.81 = 0."""
    system = pendulum()
    hanging = system.linearize([1.0, 0.0, 0.0])
    swing = np.sqrt(9.81 - 0.01)
    np.testing.assert_allclose(hanging.poles, [-0.1 - 1j * swing, -0.1 + 1j * swing], rtol=1e-12)
    upright = system.linearize([-1.0, 0.0, 0.0])
    fall = np.sqrt(9.81 + 0.01)
    np.testing.assert_allclose(upright.poles, [-0.1 - fall, -0.1 + fall], rtol=1e-12)
    sampled = system.discretize(0.1).linearize([-1.0, 0.0, 0.0])
    expected = np.exp(0.1 * np.array([-0.1 - fall, -0.1 + fall]))
    np.testing.assert_allclose(sampled.poles, expected, rtol=1e-4)  # RK4: (0.1 · 3.2)⁵ / 5!


def test_a_linearization_shows_in_a_line_what_it_is():
    system = pendulum()
    assert repr(system.linearize([1.0, 0.0, 0.0])) == (
        "Linearization('pendulum', equilibrium, 2 states, 1 inputs, 2 outputs, t=0 s)"
    )
    assert "no equilibrium" in repr(system.linearize([0.0, 1.0, 0.0]))
    along = system.linearize(system.rollout([1.0, 0.0, 0.0], dt=0.1, steps=4))
    assert repr(along).startswith("TrajectoryLinearization('pendulum', 5 nodes from 0 to 0.4 s")


def many_small_steps(system, x, u, dt, count):
    A, B = np.eye(system.state.dim), np.zeros((system.state.dim, system.n_inputs))
    for _ in range(count):
        one = step_derivatives(system, "rk4")(0.0, x, u, dt=dt / count)
        x, A, B = one.x_next, one.A @ A, one.A @ B + one.B
    return A, B


def test_the_held_step_is_exact():
    """Against a very fine integration; a single step of rk4 is beyond its interval here."""
    quick = pendulum().augment(lag=2e-3)
    lin = quick.linearize(np.append(pendulum().state.identity, 0.0))
    A, B = lin.discrete(0.02)
    fine = many_small_steps(quick, lin.x, lin.u, 0.02, 400)
    np.testing.assert_allclose(A, fine[0], atol=1e-8)
    np.testing.assert_allclose(B, fine[1], atol=1e-8)
    coarse = step_derivatives(quick, "rk4")(0.0, lin.x, lin.u, dt=0.02)
    assert np.abs(coarse.A).max() > 100 > 2 * np.abs(A).max()
    sampled = account().linearize([0.0, 0.0])
    np.testing.assert_array_equal(sampled.discrete(0.1)[0], sampled.A)
    with pytest.raises(ValueError, match="sample time 0.1 s, not dt = 0.2 s"):
        sampled.discrete(0.2)


def test_the_held_step_is_exact_along_a_steady_turn():
    system = underwater()
    turning = system.trim(where={"twist.vx": 1.0, "twist.wz": 0.3})
    A, B = system.linearize(turning).discrete(0.1)
    fine = many_small_steps(system, turning.x, turning.u, 0.1, 50)
    np.testing.assert_allclose(A, fine[0], atol=1e-7)
    np.testing.assert_allclose(B, fine[1], atol=1e-7)


def test_an_explicit_time_counts_before_that_of_a_point():
    wave = System("wave", Rn(1), lambda t, x, u, p: ca.sin(t) * x)
    point = SimpleNamespace(x=[0.0], u=[], t=0.5)
    assert wave.linearize(point).t == 0.5
    assert wave.linearize(point, t=2.0).A == pytest.approx(np.sin(2.0))
    assert wave.linearize([0.0]).t == 0.0


def test_columns_of_b_are_told_from_those_of_d():
    sled = System(
        "sled",
        SE2,
        lambda t, x, u, p: [1.0, 0.0, 0.5 + u[0]],
        inputs=["turn", "push"],
        h=lambda t, x, u, p: [x[2] * u[1]],
        output=Rn(1),
    )
    lin = sled.linearize(SE2.identity)
    assert "push" in lin.varying and lin.varying_columns() == ()
    pushed = System(
        "pushed",
        SE2,
        lambda t, x, u, p: [1 + x[2] * u[0] + x[3] * u[1], x[2] * u[1] - x[3] * u[0], 0.5],
        inputs=["fx", "fy"],
    )
    assert pushed.linearize(SE2.identity).varying_columns() == ("fx", "fy")
    assert pushed.linearize(SE2.identity).with_inputs("noise").varying_columns() == ()


def test_what_a_state_space_cannot_hold_is_said():
    free = System("free", Rn(1), lambda t, x, u, p: -x, inputs=[Input("w", role="disturbance")])
    with pytest.raises(ValueError, match="free has no inputs of the choice 'control'"):
        free.linearize([0.0]).to_control()
    assert free.linearize([0.0]).to_control("all").ninputs == 1
    twins = System("twins", Rn(1), lambda t, x, u, p: u[0] + u[1], inputs=["x.y", "x_y"])
    with pytest.raises(ValueError, match="inputs 'x.y' and 'x_y' are both 'x_y'"):
        twins.linearize([0.0]).to_control()
    with pytest.raises(ValueError, match="rename one of them"):
        twins.to_nlsys()
