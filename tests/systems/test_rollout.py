"""Steps, rollouts and discrete systems."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.integrators import METHODS
from lgcontrol.systems import Input, Parameter, System, step_derivatives
from lgcontrol.systems._internal import rollout_derivatives
from lgcontrol.systems._step import resolved_step

from ._examples import account, pendulum, quadrotor, satellite, underwater

SAME = 1e-13
GENERAL = [name for name, method in METHODS.items() if not method.needs_structure]


@pytest.mark.parametrize("build", [pendulum, quadrotor, satellite])
@pytest.mark.parametrize("substeps", [1, 3])
def test_a_rollout_is_a_loop_of_steps(build, substeps, rng):
    system = build()
    x = system.state.random(rng)
    u = rng.normal(size=(7, system.n_inputs))
    run = system.rollout(x, u, 0.02, t0=1.0, method="heun", substeps=substeps)
    step = system.step("heun", substeps)
    for k in range(7):
        np.testing.assert_allclose(run.x[k], x, atol=SAME)
        x = step(1.0 + 0.02 * k, x, u[k], dt=0.02)
    np.testing.assert_allclose(run.x[7], x, atol=SAME)
    np.testing.assert_allclose(run.t, 1.0 + 0.02 * np.arange(8))


@pytest.mark.parametrize("substeps", [1, 3])
def test_time_reaches_the_field(substeps):
    clock = System("clock", Rn(1), lambda t, x, u, p: 2 * t)
    run = clock.rollout([0.0], dt=0.1, steps=20, t0=3.0, substeps=substeps)
    np.testing.assert_allclose(run.x[:, 0], run.t**2 - 9, atol=SAME * 100)


def test_batches_of_starts_inputs_and_parameters_broadcast(rng):
    system = pendulum()
    x = system.state.random(rng, (4, 1))
    u = rng.normal(size=(3, 5, 1))
    run = system.rollout(x, u, 0.1)
    assert run.x.shape == (4, 3, 6, 3)
    assert run.u.shape == (4, 3, 5, 1)
    one = system.rollout(x[2, 0], u[1], 0.1)
    np.testing.assert_array_equal(run.x[2, 1], one.x)


def test_a_parameter_sweep_in_one_call():
    system = pendulum()
    p = np.array([system.parameter_values({"damping": d}) for d in (0.0, 0.2, 1.0)])
    run = system.rollout([0.0, 1.0, 0.0], dt=0.05, steps=100, p=p)
    for k in range(3):
        damped = system.with_parameters({"damping": p[k, 1]})
        alone = damped.rollout([0.0, 1.0, 0.0], dt=0.05, steps=100)
        np.testing.assert_allclose(run.x[k], alone.x, atol=SAME)
    assert np.abs(run.x[0, -1] - run.x[2, -1]).max() > 0.1


@pytest.mark.usually(method=("rk4", "crouch_grossman3", "ros34pw2"))
@pytest.mark.parametrize("method", GENERAL)
def test_a_discretized_system_makes_the_same_steps(method, rng):
    system = underwater()
    discrete = system.discretize(0.05, method, substeps=2)
    assert discrete.dt == 0.05
    x, u = system.state.random(rng), rng.normal(size=(10, 5))
    here, there = system.rollout(x, u, 0.05, method=method, substeps=2), discrete.rollout(x, u)
    np.testing.assert_allclose(
        system.state.minus(here.x, there.x), 0.0, atol=1e3 * SAME
    )  # exp(log()) of each step rounds, drag of 40 N/(m/s)² amplifies
    np.testing.assert_array_equal(here.t, there.t)


def test_a_discrete_model_moves_in_samples():
    run = account().rollout([0.0, 0.0], [1.0], steps=3)
    np.testing.assert_allclose(run.x, [[0, 0], [0.5, 0], [0.95, 0.5], [1.355, 0.95]])
    np.testing.assert_allclose(run.t, [0.0, 0.1, 0.2, 0.3])


def test_long_rollouts_are_the_same_motion():
    run = account().rollout([1.0, 0.0], [[0.2]] * 3000, t0=5.0)
    k = np.arange(3001)
    np.testing.assert_allclose(run.x[:, 0], 1 + 0 * k, rtol=1e-12)  # 0.9 + 0.5 · 0.2 = 1
    np.testing.assert_allclose(run.t, 5.0 + 0.1 * k)
    clock = System("clock", Rn(1), lambda t, x, u, p: 2 * t + u, inputs=["speed"])
    u = np.sin(np.arange(2500))[:, None]
    run = clock.rollout([0.0], u, 0.01)
    expected = run.t**2 + np.concatenate([[0], 0.01 * np.cumsum(u)])
    np.testing.assert_allclose(run.x[:, 0], expected, atol=1e-9)


def test_a_start_that_diverges_leaves_the_others_alone():
    """ẋ = x² + u from x₀ > 0 is at infinity when t = 1 / x₀."""
    burst = System("burst", Rn(1), lambda t, x, u, p: x**2 + u, inputs=["push"])
    starts = [[-1.0], [2.0], [0.1], [4.0]]
    with pytest.warns(
        RuntimeWarning,
        match="burst: 2 of 4 rollouts diverged, the first, number 3, at t = 0.[23].* NaN from then "
        "on .see Trajectory.diverged.; use a shorter dt or more substeps",
    ) as caught:
        run = burst.rollout(starts, dt=0.01, steps=100)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(run.diverged, [False, True, False, True])
    assert 0.25 < run.diverged_at[3] < 0.3 and 0.5 < run.diverged_at[1] < 0.55
    before = run.t < 0.2
    np.testing.assert_allclose(run.x[3, before, 0], 1 / (0.25 - run.t[before]), rtol=1e-3)
    assert np.isnan(run.x[3, run.t >= run.diverged_at[3]]).all()
    alone = burst.rollout([0.1], dt=0.01, steps=100)
    np.testing.assert_allclose(run.x[2], alone.x, rtol=SAME)
    assert not alone.diverged


def test_one_start_that_diverges_is_told_with_its_time():
    doubling = System("doubling", Rn(1), lambda t, x, u, p: 1e30 * x, dt=1.0)
    with pytest.warns(RuntimeWarning, match="doubling: the rollout diverged at t = 11 s, .* on$"):
        run = doubling.rollout([1.0], steps=20)
    assert run.diverged and run.diverged_at == 11.0


def pushed_cart():
    """A cart pushed by two motors, in wind and with noise."""
    return System(
        "cart",
        Rn(1),
        lambda t, x, u, p: u[0] + 2 * u[2] + 10 * u[1] + 100 * u[3],
        inputs=[
            Input("left"),
            Input("wind", nominal=0.5, role="disturbance"),
            Input("right"),
            Input("hum", role="noise"),
        ],
    )


def test_controls_alone_will_do(rng):
    cart, u = pushed_cart(), rng.normal(size=(5, 4, 2))
    run = cart.rollout([0.0], u, 0.1)
    np.testing.assert_array_equal(run.u, cart.full_input(u))
    np.testing.assert_allclose(run.x[..., -1, 0], 0.1 * (u @ [1, 2] + 5).sum(axis=-1), atol=SAME)
    np.testing.assert_array_equal(cart.rollout([0.0], [1, 2], 0.1, steps=3).u[0], [1, 0.5, 2, 0])
    np.testing.assert_array_equal(cart.linearize([0.0], [1.0, 2.0]).u, [1, 0.5, 2, 0])
    with pytest.raises(
        ValueError,
        match=r"u has shape \(4, 3\), expected \(\.\.\., n, 4\): cart has 2 controls \+ 1 "
        r"disturbance \+ 1 noise input; system\.full_input\(controls\) fills in the nominal others",
    ):
        cart.rollout([0.0], np.ones((4, 3)), 0.1)
    with pytest.raises(ValueError, match=r"u has shape \(3,\), expected \(4,\): cart has 2 contr"):
        cart.linearize([0.0], [1.0, 2.0, 3.0])


def test_substeps_raise_the_accuracy():
    system = quadrotor()
    x, u = system.state.random(4), np.array([3.0, 2.0, 1.0, 3.0])
    exact, coarse, fine = (system.step("rk4", n)(0.0, x, u, dt=0.2) for n in (16, 1, 4))
    errors = [np.abs(system.state.minus(y, exact)).max() for y in (coarse, fine)]
    assert errors[1] < errors[0] / 4**3.5


def test_projection_ends_every_step():
    circle = System(
        "circle",
        Rn(2),
        lambda t, x, u, p: [-x[1], x[0]],
        parameters=[Parameter("radius", "m", 2.0)],
        project=lambda x, p: p * x / (x[0] ** 2 + x[1] ** 2) ** 0.5,
    )
    run = circle.rollout([2.0, 0.0], dt=0.1, steps=50, method="euler")
    np.testing.assert_allclose(np.linalg.norm(run.x, axis=1), 2.0, rtol=SAME)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": [1.0, 0.0]}, r"x0 has shape \(2,\), expected \(..., 3\)"),
        ({"x0": [0.0, 0.0, 1.0]}, r"x0 = \[0. 0. 1.\] is no element of .* cannot be normalised"),
        ({"x0": [1.0, 0.0, np.nan]}, r"x0 is not finite: entry \(2,\) is nan"),
        ({"u": np.ones((4, 2))}, r"u has shape \(4, 2\), expected \(..., n, 1\)"),
        ({"u": [1.0], "steps": None}, r"needs steps=N; a sequence has shape \(..., N, 1\)"),
        ({"u": np.ones((4, 1))}, "u has 4 rows for 5 steps"),
        ({"u": np.zeros((0, 1)), "steps": None}, "u holds no step"),
        ({"dt": None}, "pendulum is continuous: give dt > 0 in s, got None"),
        ({"dt": -0.1}, "pendulum: dt must be positive, got -0.1 s"),
        ({"p": [1.0]}, r"p has shape \(1,\), expected \(..., 2\)"),
        ({"method": "rk5"}, "unknown integration method 'rk5'; valid names are euler"),
        ({"substeps": 0}, "substeps must be a whole number, at least 1, got 0"),
        ({"t0": np.inf}, "t0 is not finite"),
        (
            {"x0": np.tile([1.0, 0.0, 1.0], (2, 1)), "u": np.ones((4, 5, 1))},
            r"batch axes do not broadcast: x0 \(2,\), u \(4,\), p \(\)",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    given = {"x0": [1.0, 0.0, 0.0], "u": [0.0], "dt": 0.1, "steps": 5} | arguments
    with pytest.raises(ValueError, match=message):
        pendulum().rollout(**given)


def test_discrete_systems_refuse_another_sample_time():
    with pytest.raises(ValueError, match="account has the sample time 0.1 s, not dt = 0.2 s"):
        account().rollout([0.0, 0.0], [1.0], 0.2, steps=1)
    with pytest.raises(ValueError, match="account is discrete already"):
        account().discretize(0.1)
    with pytest.raises(ValueError, match="dt must be a positive sample time in s, got 0"):
        pendulum().discretize(0)


def test_two_turns_are_seen_by_an_unwrapped_angle_only():
    group = Product(wrapped=SO2, unwrapped=Rn(1))
    spin = System("spin", group, lambda t, x, u, p: [1.0, 1.0])
    end = spin.rollout(group.identity, dt=0.1, steps=200).x[-1]
    np.testing.assert_allclose(group.log(end), [20.0 - 6 * np.pi, 20.0], atol=1e-11)


@pytest.mark.parametrize("method", ["heun", "radau_iia5"])
def test_derivatives_of_a_rollout_are_those_of_its_steps(method, rng):
    system = pendulum()
    x, u = system.state.random(rng, (3,)), rng.normal(size=(5, 1))
    made = rollout_derivatives(system, x, u, 0.05, method=method, substeps=2, parameters=True)
    plain = system.rollout(x, u, 0.05, method=method, substeps=2)
    np.testing.assert_allclose(made.trajectory.x, plain.x, rtol=0, atol=SAME)
    step = step_derivatives(system, method, 2, parameters=True)
    for i in range(3):
        for k in range(5):
            one = step(0.05 * k, plain.x[i, k], u[k], dt=0.05)
            np.testing.assert_allclose(made.A[i, k], one.A, rtol=0, atol=SAME)
            np.testing.assert_allclose(made.B[i, k], one.B, rtol=0, atol=SAME)
            np.testing.assert_allclose(made.P[i, k], one.P, rtol=0, atol=SAME)
    assert rollout_derivatives(system, x, u, 0.05).P is None


def test_unsolved_equations_are_told():
    bent = System("bent", Rn(1), lambda t, x, u, p: -1e6 * x**3)
    with pytest.warns(RuntimeWarning, match=r"bent: 3 of 3 steps of radau_iia5 .* first is step 0"):
        bent.rollout([1e3], dt=1.0, steps=3, method="radau_iia5")
    for batch in ([1e3], [[1.0], [1e3]]):
        with pytest.warns(RuntimeWarning, match="steps of radau_iia5 .* first is step 0"):
            rollout_derivatives(bent, batch, dt=1.0, steps=3, method="radau_iia5")


@pytest.mark.parametrize("substeps", [1, 2])
def test_a_residual_that_is_not_a_number_counts_as_unsolved(substeps):
    root = System("root", Rn(2), lambda t, x, u, p: ca.vertcat(-x[0], ca.sqrt(x[1])))
    step = resolved_step(root, "radau_iia5", substeps)
    assert step(0.0, [1.0, 1.0], [], dt=0.1).residual <= 1
    assert not step(0.0, [1.0, -1.0], [], dt=0.1).residual <= 1
