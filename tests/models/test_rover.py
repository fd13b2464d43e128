"""Rover against a planar body with wheels whose sideslip a multiplier forbids."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.models import rover

ROUNDING = 1e-12

# Data of the URDF file, typed independently of the model.
CHASSIS, WHEEL = 16.523, 0.477
WHEELS = [(x, y) for x in (0.131, -0.131) for y in (0.187795, -0.187795)]


def planar_inertia():
    """Mass, centre of mass and moment of inertia about it, summed over chassis and wheels."""
    bodies = [(CHASSIS, 0.012, 0.0, 0.4485), *((WHEEL, x, y, 0.0013) for x, y in WHEELS)]
    mass = sum(m for m, *_ in bodies)
    center = sum(m * x for m, x, *_ in bodies) / mass
    inertia = sum(J + m * ((x - center) ** 2 + y**2) for m, x, y, J in bodies)
    return mass, center, inertia


def multiplier_acceleration(v, w, left, right):
    """Solve for accelerations of centre of mass, yaw and wheel spins together with the forces.

    Unknowns: a_x, a_y of the centre of mass along the body axes, yaw acceleration, the angular
    acceleration of the left and the right pair of wheels, and the multipliers of three constraints:
    no sideslip of the middle, no slip of the left and of the right wheels.
    """
    mass, d, inertia = planar_inertia()
    spin, radius, half = 2 * 0.0024, 0.098, 0.37559 / 2
    # Velocities of the centre of mass: (v_x, v_y) with v_y = d w. Constraints on velocities:
    # v_y − d w = 0, R q̇_l = v_x − half w, R q̇_r = v_x + half w; their derivatives follow, with the
    # accelerations of body-fixed components a = v̇ + w × v.
    G = np.array(
        [
            [0, 1, -d, 0, 0],
            [1, 0, -half, -radius, 0],
            [1, 0, half, 0, -radius],
        ]
    )
    M = np.diag([mass, mass, inertia, spin, spin])
    # a_x = v̇_x − w v_y, a_y = v̇_y + w v_x: what the constraints of v̇ read in terms of a.
    bias = np.array([w * v, -w * (d * w), -w * (d * w)])
    motors = np.array([0, 0, 0, radius * left, radius * right])
    K = np.block([[M, -G.T], [G, np.zeros((3, 3))]])
    solution = np.linalg.solve(K, np.concatenate([motors, bias]))
    a_x, yaw = solution[0], solution[2]
    return a_x + w * d * w, yaw


def test_accelerations_equal_those_with_multipliers(rng):
    model = rover()
    for _ in range(20):
        v, w, left, right = rng.normal(size=4)
        x = model.state.random(rng)
        x[4:] = v, w
        ours = model.f(0.0, x, [left, right])
        np.testing.assert_allclose(ours[:3], [v, 0, w], atol=ROUNDING)
        expected = multiplier_acceleration(v, w, left, right)
        np.testing.assert_allclose(ours[3:], expected, rtol=1e-11, atol=ROUNDING)


def test_the_energy_changes_by_the_work_of_the_wheels(rng):
    """Without sideslip the constraint does no work: the kinetic energy's rate is force · speed."""
    model = rover()
    t, u, p = ca.SX.sym("t"), ca.SX.sym("u", 2), ca.DM(model.nominal_parameters)
    x = ca.SX.sym("x", model.state.nq)
    energy = model.quantities["kinetic_energy"](t, x, u, p)
    rate = ca.jtimes(energy, x[4:], model.f(t, x, u, p)[3:])
    half = 0.37559 / 2
    power = u[0] * (x[4] - half * x[5]) + u[1] * (x[4] + half * x[5])
    off = ca.Function("off", [x, u], [rate - power])
    for _ in range(10):
        assert abs(float(off(model.state.random(rng), rng.normal(size=2)))) < ROUNDING * 100


def test_a_steady_circle_takes_the_moment_that_turns_the_offset_mass():
    model = rover()
    circle = model.trim(where={"twist.speed": 1.0, "twist.turn_rate": 0.5})
    assert circle.kind == "relative equilibrium"
    mass, d, _ = planar_inertia()
    force, moment = -mass * d * 0.5**2, mass * d * 1.0 * 0.5
    expected = force / 2 + moment / 0.37559 * np.array([-1, 1])
    np.testing.assert_allclose(circle.u, expected, atol=1e-9)


def test_kinematic_rover_draws_the_circle_it_is_told():
    model = rover(kinematic=True)
    run = model.rollout(model.state.identity, [1.0, 0.5], dt=np.pi / 50, steps=100)
    np.testing.assert_allclose(run.x[-1], [0, 4, -1, 0], atol=1e-9)  # half of the circle


def test_cannot_move_sideways_but_reach_everything_while_it_drives():
    """At rest sideways is out of reach of the linearization; along a straight it is not."""
    model = rover()
    assert not model.linearize(model.trim()).controllability().is_controllable
    straight = model.trim(where={"twist.speed": 1.0, "twist.turn_rate": 0.0})
    assert model.linearize(straight).controllability().is_controllable


def test_forces_are_bounded_by_the_friction_of_the_tyres():
    bound = rover().inputs[0].upper
    assert 2 * bound == pytest.approx(0.5 * 9.81 * planar_inertia()[0])
    assert rover(payload=10.0).inputs[0].upper > bound
