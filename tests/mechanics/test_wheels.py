"""Spinning wheels in a body, against points that turn with them."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import (
    Gravity,
    GyroscopicWheels,
    Gyrostat,
    RigidBody,
    SpatialInertia,
    WrenchInput,
)

from ._bodies import AXIS, GROUPS, USUAL, inertia_of_cloud, name_of, random_cloud

pytestmark = pytest.mark.usually(group=USUAL)

ROUNDING = 1e-11  # some hundred roundings of numbers up to a hundred
DIFFERENCE = 1e-6  # sixth-order second differences with steps of 0.01 of numbers up to 100

STEPS = np.arange(-3, 4)
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(np.array(a), b, rtol=tolerance, atol=tolerance)


def satellite(group=SO3, *forces):
    body = RigidBody("satellite", group, SpatialInertia.box(50.0, [1, 0.8, 1.2]), forces)
    axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    return Gyrostat(body, GyroscopicWheels(axes, [0.5, 0.4, 0.3, 0.2], max_torque=0.2))


def ring(axis, center, radius, mass):
    """Four points of a balanced wheel at angle 0, and the inertia about the axis."""
    n = np.array(axis) / np.linalg.norm(axis)
    a = np.cross(n, [0.3, -0.5, 0.8])
    a /= np.linalg.norm(a)
    b = np.cross(n, a)

    def at(angle):
        turns = np.asarray(angle)[..., None] + np.arange(4) * np.pi / 2
        return center + radius * (np.cos(turns)[..., None] * a + np.sin(turns)[..., None] * b)

    return at, mass / 4 * np.ones(4), n, mass * radius**2


@pytest.mark.parametrize("group", GROUPS, ids=name_of)
def test_newtons_laws_for_the_points_of_body_and_wheels(group, rng):
    masses, points = random_cloud(rng)
    wheels = [
        ring(AXIS, np.array([0.1, 0.2, 0.3]), 0.4, 2.0),
        ring([0, 0, 1], np.array([-0.5, 0, 0.1]), 0.3, 3.0),
    ]
    still = [wheel[0](0.0) for wheel in wheels]
    whole = inertia_of_cloud(
        np.concatenate([masses, *(wheel[1] for wheel in wheels)]), np.vstack([points, *still])
    )
    gyrostat = Gyrostat(
        RigidBody("body", group, whole, [WrenchInput(), Gravity()]),
        GyroscopicWheels([wheel[2] for wheel in wheels], [wheel[3] for wheel in wheels]),
    )
    X0, c1, c2 = group.random(rng), *0.5 * rng.normal(size=(2, group.dim))
    speed, gain = rng.normal(size=(2, 2))
    h = 1e-2
    t = h * STEPS
    X = group.compose(X0, group.exp(c1 * t[:, None] + c2 * t[:, None] ** 2))
    force, moment = np.zeros(3), np.zeros(3)
    torques = []
    T = group.homogeneous(X[3])
    for k, (at, mass) in enumerate([(None, masses), *((w[0], w[1]) for w in wheels)]):
        local = (
            np.broadcast_to(points, (7, *points.shape))
            if at is None
            else at(speed[k - 1] * t + gain[k - 1] * t**2)
        )
        world = SE3.act(group.embed(X)[:, None], local)
        acceleration = np.einsum("t,tnk->nk", SECOND, world) / h**2
        needed = mass[:, None] * acceleration
        weight = mass[:, None] * np.array([0, 0, -9.81])
        arms = world[3] - T[:3, 3]
        force += (needed - weight).sum(axis=0)
        moment += np.cross(arms, needed - weight).sum(axis=0)
        if at is not None:
            axis = T[:3, :3] @ wheels[k - 1][2]
            center = world[3].mean(axis=0)
            torques.append(axis @ np.cross(world[3] - center, needed).sum(axis=0))
    wrench = np.concatenate([T[:3, :3].T @ force, T[:3, :3].T @ moment])
    a, spin_up = gyrostat.forward_dynamics(X[3], c1, speed, [*wrench, *torques])
    close(a, 2 * c2, DIFFERENCE)
    close(spin_up, 2 * gain, DIFFERENCE)


def test_momentum_is_kept_whatever_the_motors_do(rng):
    gyrostat = satellite()
    system = gyrostat.system()
    x0 = np.concatenate([SO3.random(rng), 0.1 * rng.normal(size=3), 10 * rng.normal(size=4)])
    u = 0.2 * rng.uniform(-1, 1, (200, 4))
    parts = system.state.split(system.rollout(x0, u, 0.05).x)
    momentum = gyrostat.momentum("spatial")(parts["pose"], parts["twist"], parts["wheel_speed"])
    close(momentum, np.broadcast_to(momentum[0], momentum.shape), 1e-7)  # order four, slow motion
    assert np.ptp(gyrostat.momentum()(*parts.values()), axis=0).max() > 0.1


def test_energy_grows_by_the_power_of_motors_and_bearings(rng):
    body = RigidBody("satellite", SE3, SpatialInertia.box(50.0, [1, 0.8, 1.2], [0.1, 0, 0.2]))
    gyrostat = Gyrostat(body, GyroscopicWheels(np.eye(3), 0.3, friction=[0.1, 0.2, 0.3]))
    X, v, speed, torque = SE3.random(rng), *rng.normal(size=(1, 6)), *rng.normal(size=(2, 3))
    a, spin_up = gyrostat.forward_dynamics(X, v, speed, torque)
    h = 1e-5
    ahead = gyrostat.kinetic_energy(v + h * a, speed + h * spin_up)
    behind = gyrostat.kinetic_energy(v - h * a, speed - h * spin_up)
    # The energy is quadratic: central differences are exact but for rounding.
    close((ahead - behind) / (2 * h), (torque - [0.1, 0.2, 0.3] * speed) @ speed, 1e-8)


def test_locked_wheels_are_part_of_the_body(rng):
    """Motor torques that hold the wheels still give the motion of the rigid body."""
    gyrostat = satellite(SO3, WrenchInput(("rx", "ry", "rz")))
    X, v, push = SO3.random(rng), rng.normal(size=3), rng.normal(size=3)
    expected = gyrostat.body.forward_dynamics(X, v, np.zeros(3), push)
    axes = gyrostat.wheels.axes
    hold = gyrostat.wheels.inertias * (axes @ expected)
    a, spin_up = gyrostat.forward_dynamics(X, v, np.zeros(4), [*push, *hold])
    close(a, expected)
    close(spin_up, np.zeros(4))


def test_a_spinning_wheel_holds_its_axis(rng):
    """A pure moment turns the body about the cross axis: precession ω = m / h."""
    body = RigidBody("gyro", SO3, SpatialInertia.sphere(1.0, 0.1), [WrenchInput(("rx",))])
    gyrostat = Gyrostat(body, GyroscopicWheels([[0, 0, 1]], 1e-3))
    h = 1e-3 * 1e4
    steady = np.array([0.0, 0.1 / h, 0.0])
    a, _ = gyrostat.forward_dynamics(SO3.identity, steady, [1e4], [0.1, 0.0])
    close(a, np.zeros(3), 1e-6)  # up to ω × J ω of the body itself


def test_state_and_inputs_are_named():
    system = satellite().system("cube")
    assert system.name == "cube"
    assert list(system.state.blocks) == ["pose", "twist", "wheel_speed"]
    assert system.input_names == ("wheel.0", "wheel.1", "wheel.2", "wheel.3")
    assert system.inputs[0].unit == "N m"
    assert (system.inputs[0].lower, system.inputs[0].upper) == (-0.2, 0.2)
    assert system.state.tangent_units[-1] == "rad/s"
    x = np.concatenate([SO3.identity, 0.1 * np.ones(3), np.ones(4)])
    energy = satellite().kinetic_energy(x[4:7], x[7:])
    close(system.quantities["kinetic_energy"](0.0, x), [energy])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GyroscopicWheels([[0, 0, 0]], 1.0), "axis 0 must not be zero"),
        (lambda: GyroscopicWheels(np.eye(3), [1.0, 2.0]), r"inertias has shape \(2,\)"),
        (lambda: GyroscopicWheels(np.eye(3), 0.0), "inertias must be positive"),
        (lambda: GyroscopicWheels(np.eye(3), 1.0, friction=-1.0), "friction must not be negative"),
        (
            lambda: Gyrostat(
                RigidBody("ball", SO3, SpatialInertia.sphere(1.0, 0.1)),
                GyroscopicWheels([[0, 0, 1]], 1.0),
            ),
            r"ball without its wheels: .* velocity \(rz 1\)",
        ),
        (lambda: satellite().momentum("world"), "unknown frame 'world'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
