"""Satellite and its wheels: Euler's equations, momentum, what the wheels can and cannot reach."""

import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.models import satellite

ROUNDING = 1e-12
J = np.diag([900.0, 800.0, 600.0])
J_WHEEL = 50.0 / (6000 * 2 * np.pi / 60)

# RK4 with 0.1 s over 100 s of tumbling at about 0.3 rad/s.
MOMENTUM_TOLERANCE = 1e-7


def test_rates_obey_euler(rng):
    model = satellite()
    for _ in range(10):
        x, torque = model.state.random(rng), rng.normal(size=6)
        w = x[4:]
        expected = np.linalg.solve(J, torque[:3] + torque[3:] - np.cross(w, J @ w))
        np.testing.assert_allclose(model.f(0.0, x, torque)[3:], expected, atol=ROUNDING)


def test_wheels_obey_the_balance_of_momentum(rng):
    """d/dt (J ω + J_w Ω) = −ω × (J ω + J_w Ω) + disturbance, and J_w (Ω̇ + ω̇) = motor torque."""
    model = satellite(wheels=True)
    for _ in range(10):
        x, u = model.state.random(rng), rng.normal(size=6)
        w, speed = x[4:7], 100 * x[7:]
        x[7:] = speed
        disturbance, motor = (
            [u[model.input_names.index(f"{name}{axis}")] for axis in axes]
            for name, axes in (("disturbance.", ("rx", "ry", "rz")), ("wheel.", "012"))
        )
        rates = model.f(0.0, x, u)
        body, wheels = rates[3:6], rates[6:]
        total = J @ w + J_WHEEL * speed
        change = J @ body + J_WHEEL * wheels
        np.testing.assert_allclose(change, np.array(disturbance) - np.cross(w, total), atol=1e-10)
        np.testing.assert_allclose(J_WHEEL * (wheels + body), motor, atol=1e-10)


def test_wheels_turn_the_body_and_keep_the_momentum(rng):
    model = satellite(wheels=True)
    x0 = model.state.join(
        pose=SO3.random(rng), twist=0.3 * rng.normal(size=3), wheel_speed=[0, 50, -90]
    )
    torque = model.full_input([0.2, -0.1, 0.15])
    run = model.rollout(x0, torque, dt=0.1, steps=1000)
    body = run.x[:, 4:7] @ J + J_WHEEL * run.x[:, 7:]
    world = SO3.act(run.x[:, :4], body)
    assert np.abs(run.x[-1, 7:] - run.x[0, 7:]).min() > 50  # the wheels did work
    off = np.abs(world - world[0]).max()
    assert off < MOMENTUM_TOLERANCE * np.linalg.norm(world[0])


def test_torques_reach_everything_and_wheels_all_but_the_momentum():
    assert satellite().linearize(satellite().state.identity).controllability().is_controllable
    model = satellite(wheels=True)
    wheels = model.linearize(model.trim()).controllability()
    assert not wheels.is_controllable
    assert wheels.rank == 6


def test_a_slew_with_wheels_alone_ends_at_rest():
    """Bang-bang about z: the wheel speeds up and down again, the body has turned."""
    model = satellite(wheels=True)
    x = model.state.identity
    for sign in (-1, 1):
        u = model.full_input([0.0, 0.0, 0.2 * sign])
        x = model.rollout(x, u, dt=0.5, steps=150).x[-1]
    # J ω + J_w Ω = 0 gives (J − J_w) ω̇ = −torque.
    angle = 0.2 / (600 - J_WHEEL) * 75**2
    np.testing.assert_allclose(SO3.log(x[:4]), [0, 0, angle], atol=1e-8)
    np.testing.assert_allclose(x[4:], 0.0, atol=1e-10)


def test_a_wheel_stays_below_its_top_speed_for_250_seconds_at_full_torque():
    """50 N m s at 0.2 N m: what the source's wheel stores."""
    assert J_WHEEL * 6000 * 2 * np.pi / 60 / 0.2 == pytest.approx(250)
    assert satellite(wheels=True).inputs[-1].upper == 0.2
