"""Forces: power, frames, fluids, actuators, and derivatives where formulas have corners."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Schoenflies
from lgcontrol.mechanics import (
    Actuators,
    BodyWrench,
    Buoyancy,
    Current,
    Force,
    Gravity,
    GyroscopicWheels,
    LinearDrag,
    QuadraticDrag,
    RigidBody,
    Rotor,
    SpatialInertia,
    Spring,
    Thruster,
    WorldWrench,
    WrenchInput,
)
from lgcontrol.systems import Input

from ._bodies import (
    GROUPS,
    USUAL,
    inertia_of_cloud,
    name_of,
    random_cloud,
    random_inertia,
    random_matrix,
)

pytestmark = pytest.mark.usually(group=USUAL)

ROUNDING = 1e-11  # some hundred roundings of numbers up to a hundred

every_group = pytest.mark.parametrize("group", GROUPS, ids=name_of)

CONSERVATIVE = (
    Gravity((1.0, 2.0, -9.0)),
    Buoyancy(0.02, [0.1, 0.2, 0.3], 1025.0, (1.0, -0.5, -9.0)),
    Spring(3.0, [1, 2, 3], [0.1, 0.2, 0.3]),
    Spring(3.0, [1, 2, 3], [0.1, 0.2, 0.3], rest_length=0.7),
    WorldWrench([1, 2, 3, 0, 0, 0], [0.3, 0.2, 0.1]),
)
OTHER = (
    LinearDrag(np.diag([1.0, 2, 3, 4, 5, 6])),
    QuadraticDrag([1.0, 2, 3, 4, 5, 6]),
    BodyWrench([1, 2, 3, 4, 5, 6], [0.3, 0.2, 0.1]),
    WorldWrench([1, 2, 3, 4, 5, 6], [0.3, 0.2, 0.1]),
)


def kind_of(force):
    return type(force).__name__


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(np.array(a), b, rtol=tolerance, atol=tolerance)


def body_with(*forces, group=SE3, **others):
    cube = SpatialInertia.box(2.0, [0.1, 0.2, 0.3], [0.05, 0.02, -0.04])
    return RigidBody("body", group, cube, forces, **others)


def skewless(rotation, wrench):
    """Wrench turned into other axes."""
    return np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])


# Power


@every_group
@pytest.mark.parametrize("force", CONSERVATIVE, ids=kind_of)
def test_the_potential_falls_by_the_power(group, force, rng):
    body = RigidBody("body", group, random_inertia(rng), [force])
    X, d = ca.SX.sym("X", group.nq), ca.SX.sym("d", group.dim)
    slope = ca.Function("slope", [X, d], [ca.jacobian(body.potential_energy(group.plus(X, d)), d)])
    x, v = group.random(rng), rng.normal(size=group.dim)
    power = body.wrench(force.name)(x, v) @ group.selection @ v
    close(-slope(x, np.zeros(group.dim)).full()[0] @ v, power)


@every_group
@pytest.mark.parametrize("force", CONSERVATIVE + OTHER, ids=kind_of)
def test_kinetic_energy_grows_by_the_power(group, force, rng):
    """d/dt ½ vᵀ M v = v·M v̇ = V·W, on whatever group: the Coriolis force has no power."""
    body = RigidBody("body", group, random_inertia(rng), [force])
    x, v = group.random(rng), rng.normal(size=group.dim)
    a = body.forward_dynamics(x, v, np.zeros(group.dim))
    power = body.wrench(force.name)(x, v) @ group.selection @ v
    close(v @ body.mass_matrix(x) @ a, power)


@pytest.mark.parametrize("force", OTHER, ids=kind_of)
def test_other_forces_have_no_potential(force):
    body = body_with(force)
    assert body.potential_energy(SE3.identity) == 0.0
    close(body.gravity_forces(SE3.random(1)), np.zeros(6))
    assert body.system().invariants is None


def test_drag_takes_energy_out(rng):
    for drag in (LinearDrag(random_matrix(rng, 6)), QuadraticDrag(np.arange(1.0, 7.0))):
        V = rng.normal(size=(50, 6))
        power = np.einsum("ni,ni->n", body_with(drag).wrench(drag.name)(SE3.identity, V), V)
        assert (power < 0).all()


# Definitions


def test_gravity_and_buoyancy_are_sums_over_points(rng):
    masses, points = random_cloud(rng)
    T = SE3.random(rng)
    R = SO3.matrix(SE3.rotation(T))
    g = np.array([1.0, 2.0, -9.0])
    pull = masses[:, None] * (R.T @ g)
    expected = np.concatenate([pull.sum(axis=0), np.cross(points, pull).sum(axis=0)])
    body = RigidBody("body", SE3, inertia_of_cloud(masses, points), [Gravity(g)])
    close(body.wrench("gravity")(T, np.zeros(6)), expected)
    # The same points as volumes of a fluid of density 2, which would carry them if they were away.
    center = masses @ points / masses.sum()
    lift = Buoyancy(masses.sum() / 2.0, center, density=2.0, acceleration=g)
    close(body_with(lift).wrench("buoyancy")(T, np.zeros(6)), -expected)


def test_a_submerged_body_rights_itself():
    """Centre of buoyancy above that of mass: heeled to starboard, the moment heels back."""
    inertia = SpatialInertia.box(10.0, [1.0, 0.5, 0.3])
    body = RigidBody(
        "vehicle", SE3, inertia, [Gravity(), Buoyancy.neutral(10.0, center=[0, 0, 0.1])]
    )
    heeled = SE3.from_euler("x", [0.2])
    a = body.forward_dynamics(heeled, np.zeros(6), np.zeros(6))
    close(a[:3], np.zeros(3))
    close(a[3], -10.0 * 9.81 * 0.1 * np.sin(0.2) / inertia.inertia[0, 0])


def test_drag_by_component():
    V = np.array([1.0, -2.0, 3.0, -0.1, 0.2, 0.0])
    D = np.array([1.0, 2, 3, 4, 5, 6])
    close(body_with(LinearDrag(D)).wrench("linear_drag")(SE3.identity, V), -D * V)
    quadratic = body_with(QuadraticDrag(D)).wrench("quadratic_drag")(SE3.identity, V)
    close(quadratic, -D * np.abs(V) * V)
    full = np.arange(36.0).reshape(6, 6) + 100 * np.eye(6)
    close(
        body_with(QuadraticDrag(full)).wrench("quadratic_drag")(SE3.identity, V),
        -full @ (np.abs(V) * V),
    )


def test_wrenches_at_a_point_have_its_moment(rng):
    f, m, point = rng.normal(size=(3, 3))
    T = SE3.random(rng)
    R = SO3.matrix(SE3.rotation(T))
    wrench = np.concatenate([f, m])
    body = body_with(BodyWrench(wrench, point), WorldWrench(wrench, point))
    close(body.wrench("body_wrench")(T, np.zeros(6)), [*f, *(np.cross(point, f) + m)])
    expected = [*(R.T @ f), *(np.cross(point, R.T @ f) + R.T @ m)]
    close(body.wrench("world_wrench")(T, np.zeros(6)), expected)


@pytest.mark.parametrize("frame", ["body", "world"])
def test_wrench_inputs_are_the_constant_wrenches(frame, rng):
    wrench, point, T = rng.normal(size=6), rng.normal(size=3), SE3.random(rng)
    constant = (BodyWrench if frame == "body" else WorldWrench)(wrench, point, name="constant")
    body = body_with(constant, WrenchInput(frame=frame, point=point, name="input"))
    expected = body.wrench("constant")(T, np.zeros(6))
    close(body.wrench("input")(T, np.zeros(6), wrench), expected)
    some = body_with(WrenchInput(("rx", "y"), frame, point, name="some"))
    reduced = np.array([0, wrench[1], 0, wrench[3], 0, 0])
    expected = body_with(type(constant)(reduced, point, name="constant")).wrench("constant")
    close(some.wrench("some")(T, np.zeros(6), wrench[[3, 1]]), expected(T, np.zeros(6)))
    assert [entry.unit for entry in some.inputs] == ["N m", "N"]


def test_a_spring_pulls_back_by_its_stretch():
    spring = Spring(100.0, anchor=[0, 0, 2], point=[0, 0.5, 0], rest_length=1.0)
    body = body_with(spring)
    # The end of the spring at (0, 0.5, 0): 2.0616 m from its anchor.
    length = np.hypot(0.5, 2.0)
    pull = 100.0 * (length - 1.0) * np.array([0, -0.5, 2.0]) / length
    expected = [*pull, *np.cross([0, 0.5, 0], pull)]
    close(body.wrench("spring")(SE3.identity, np.zeros(6)), expected)
    close(body.potential_energy(SE3.identity), 50.0 * (length - 1.0) ** 2)


# The world can be turned


@pytest.mark.parametrize("force", CONSERVATIVE + OTHER, ids=kind_of)
def test_a_turned_world_gives_the_same_wrench(force, rng):
    """Vectors fixed in the world turn along; the body does not notice."""
    G = SE3.from_rotation(SO3.random(rng), [0.0, 0.0, 0.0])
    R = SO3.matrix(SE3.rotation(G))
    if isinstance(force, Gravity):
        turned = Gravity(R @ force.acceleration)
    elif isinstance(force, Buoyancy):
        turned = Buoyancy(force.volume, force.center, force.density, R @ force.acceleration)
    elif isinstance(force, Spring):
        turned = Spring(force.stiffness, R @ force.anchor, force.point, force.rest_length)
    elif isinstance(force, WorldWrench):
        turned = WorldWrench(skewless(R, force.wrench), force.point)
    else:
        turned = force
    current = np.array([0.3, 0.2, -0.1])
    here, there = body_with(force, current=current), body_with(turned, current=R @ current)
    X, V = SE3.random(rng), rng.normal(size=6)
    Y = SE3.compose(G, X)
    close(here.wrench(force.name)(X, V), there.wrench(force.name)(Y, V))
    close(here.potential_energy(X), there.potential_energy(Y))


def test_gravity_is_the_same_everywhere_and_about_the_vertical(rng):
    body = body_with(Gravity(), LinearDrag(np.ones(6)))
    X, V, tau = SE3.random(rng), rng.normal(size=6), rng.normal(size=6)
    G = SE3.from_euler("z", [0.7], [1.0, -2.0, 3.0])
    a = body.forward_dynamics(X, V, tau)
    close(body.forward_dynamics(SE3.compose(G, X), V, tau), a)


# Fluids


def test_drag_vanishes_when_drifting_with_the_current(rng):
    velocity, X = np.array([0.5, -0.3, 0.1]), SE3.random(rng)
    R = SO3.matrix(SE3.rotation(X))
    drags = (LinearDrag(random_matrix(rng, 6)), QuadraticDrag(np.arange(1.0, 7.0)))
    body = body_with(*drags, current=velocity, added_mass=random_matrix(rng, 6))
    V = np.concatenate([R.T @ velocity, np.zeros(3)])
    close(body.forward_dynamics(X, V, np.zeros(6)), np.zeros(6))


def test_a_current_is_a_frame_that_moves_along(rng):
    """Galilei: relative to a frame carried by the current, the fluid is at rest.

    Weight and buoyancy do not change; drag, added mass and inertia see the relative motion.
    """
    velocity, X, V, tau = (
        np.array([0.5, -0.3, 0.1]),
        SE3.random(rng),
        rng.normal(size=6),
        rng.normal(size=6),
    )
    forces = (
        Gravity(),
        Buoyancy(0.003, [0, 0, 0.1]),
        LinearDrag(random_matrix(rng, 6)),
        QuadraticDrag(np.arange(1.0, 7.0)),
    )
    A = random_matrix(rng, 6)
    flowing = body_with(*forces, added_mass=A, current=velocity)
    still = body_with(*forces, added_mass=A)
    stream = SO3.matrix(SE3.rotation(X)).T @ velocity
    V_r = V - np.concatenate([stream, np.zeros(3)])
    # Velocity of the frame in body axes turns with −ω ×, so relative and true acceleration differ.
    turning = np.concatenate([np.cross(V[3:], stream), np.zeros(3)])
    close(flowing.forward_dynamics(X, V, tau) + turning, still.forward_dynamics(X, V_r, tau))


def test_a_current_as_input_adds_to_the_constant_one(rng):
    drag, X, V = LinearDrag(np.arange(1.0, 7.0)), SE3.random(rng), rng.normal(size=6)
    A = random_matrix(rng, 6)
    push = WrenchInput(("x",))
    by_input = body_with(push, drag, current=Current((0.1, 0, 0), is_input=True), added_mass=A)
    constant = body_with(push, drag, current=(0.3, -0.2, 0.5), added_mass=A)
    assert [(e.name, e.role) for e in by_input.inputs][1:] == [
        ("current.x", "disturbance"),
        ("current.y", "disturbance"),
        ("current.z", "disturbance"),
    ]
    close(
        by_input.forward_dynamics(X, V, np.zeros(6), [0.7, 0.2, -0.2, 0.5]),
        constant.forward_dynamics(X, V, np.zeros(6), [0.7]),
    )


def test_a_current_acts_on_every_group(rng):
    group = Schoenflies
    drag = LinearDrag(np.arange(1.0, 7.0))
    body = body_with(drag, group=group, current=(1.0, 0.0, 0.0), added_mass=random_matrix(rng, 6))
    free = body_with(drag, current=(1.0, 0.0, 0.0), added_mass=body.added_mass)
    X, H = group.random(rng), group.selection
    v, a = rng.normal(size=(2, 4))
    close(
        body.inverse_dynamics(X, v, a),
        H.T @ free.inverse_dynamics(group.embed(X), H @ v, H @ a),
    )


# Corners


def derivatives(body, z_of):
    """Value, Jacobian and second derivatives of the total wrench at z = 0."""
    z = ca.SX.sym("z", 6)
    X, V = z_of(z)
    W = body.wrench(body.forces[0].name)(X, V)
    J = ca.jacobian(W, z)
    return ca.Function("W", [z], [W, J, ca.jacobian(ca.vec(J), z)])


def test_quadratic_drag_is_smooth_enough_at_standstill():
    D = np.arange(1.0, 7.0)
    body = body_with(QuadraticDrag(D))
    f = derivatives(body, lambda z: (ca.SX(SE3.identity), z))
    for value in f(np.zeros(6)):
        close(value.full(), np.zeros(value.shape))
    V = np.array([1e-3, -2.0, 3.0, -4.0, 1e-9, 6.0])
    _, J, H = (value.full() for value in f(V))
    close(J, -2 * np.diag(D * np.abs(V)))
    expected = np.zeros((36, 6))
    for i in range(6):
        expected[7 * i, i] = -2 * D[i] * np.sign(V[i])
    close(H, expected)


@pytest.mark.parametrize("rest_length", [0.0, 0.5])
def test_springs_have_derivatives_without_a_length(rest_length):
    spring = Spring(10.0, anchor=[0, 0, 0], rest_length=rest_length)
    f = derivatives(body_with(spring), lambda z: (SE3.exp(z), ca.SX.zeros(6)))
    for value in f(np.zeros(6)):
        assert np.isfinite(value.full()).all()
    close(f(np.zeros(6))[0].full(), np.zeros((6, 1)))
    energy = body_with(spring).potential_energy(SE3.identity)
    close(energy, 5.0 * rest_length**2)


# Actuators


def test_allocation_is_force_and_moment(rng):
    positions, directions = rng.normal(size=(2, 5, 3))
    thrusters = [Thruster(r, d) for r, d in zip(positions, directions, strict=True)]
    group = Actuators(thrusters, "thruster")
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    close(group.allocation, np.vstack([unit.T, np.cross(positions, unit).T]))
    body = body_with(Gravity(), group)
    u = rng.normal(size=5)
    close(body.wrench("thruster")(SE3.random(rng), np.zeros(6), u), group.allocation @ u)
    close(body.input_matrix(SE3.identity, np.zeros(6)), group.allocation)


def test_the_body_feels_the_reaction_to_a_rotors_torque():
    """A rotor driven counter-clockwise pushes the body clockwise: yaw by spins alone."""
    for spin in (1, -1):
        column = Rotor([0, 0, 0.1], torque_coefficient=0.02, spin=spin).column
        close(column, [0, 0, 1, 0, 0, -0.02 * spin])
    tilted = Rotor([0, 0, 0], axis=[0, 3, 0], torque_coefficient=0.02)
    close(tilted.column, [0, 1, 0, 0, -0.02, 0])


def test_a_quadrotor_turns_as_pilots_expect():
    arms = [(1, 0, 1), (0, 1, -1), (-1, 0, 1), (0, -1, -1)]  # front, left, back, right
    rotors = [Rotor([0.2 * x, 0.2 * y, 0], torque_coefficient=0.01, spin=s) for x, y, s in arms]
    B = Actuators(rotors).allocation
    front, left, back, right = np.eye(4)
    close(B @ np.ones(4), [0, 0, 4, 0, 0, 0])
    close(B @ (left - right), [0, 0, 0, 0.4, 0, 0])  # left up: roll to the right, about +x
    close(B @ (front - back), [0, 0, 0, 0, -0.4, 0])  # front up: nose up, about −y
    close(B @ (left + right - front - back), [0, 0, 0, 0, 0, 0.04])  # slow CCW ones: yaw left


def test_inputs_have_names_units_and_bounds():
    body = body_with(
        Actuators([Thruster([0, 0, 0], [1, 0, 0], -5, 8, "bow"), Rotor([0, 0, 0])], "motor")
    )
    assert [(e.name, e.unit, e.lower, e.upper) for e in body.system().inputs] == [
        ("bow", "N", -5.0, 8.0),
        ("motor.1", "N", 0.0, np.inf),
    ]


def test_gains_are_parameters(rng):
    thrusters = Actuators([Thruster(rng.normal(size=3), rng.normal(size=3)) for _ in range(3)], "T")
    body = body_with(thrusters).symbolic("T.gain.1")
    W = body.wrench("T")(SE3.identity, np.zeros(6), [1.0, 2.0, 3.0], [0.5])
    close(W, thrusters.allocation @ [1.0, 1.0, 3.0])


# Forces of your own, and mistakes


class Wind(Force):
    """Push in proportion to an input, along the world's x axis."""

    name = "wind"

    @property
    def inputs(self):
        return (Input("gust", "m/s", role="disturbance"),)

    def _wrench(self, motion, u, c):
        return motion.wrench_of_world_force(ca.vertcat(2.0 * u, 0, 0), ca.DM([0, 0, 0.5]))


def test_a_force_of_your_own(rng):
    body = body_with(Gravity(), Wind())
    X = SE3.random(rng)
    R = SO3.matrix(SE3.rotation(X))
    f = R.T @ [6.0, 0, 0]
    close(body.wrench("wind")(X, np.zeros(6), [3.0]), [*f, *np.cross([0, 0, 0.5], f)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearDrag([1, 1, -1, 1, 1, 1]), "damping feeds energy in.*-1"),
        (lambda: QuadraticDrag([1, 1, -2, 1, 1, 1]), "negative diagonal entry -2"),
        (lambda: LinearDrag(np.ones(3)), r"damping has shape \(3,\), expected \(6,\)"),
        (lambda: LinearDrag(np.ones((3, 3))), r"has shape \(3, 3\), expected \(6, 6\)"),
        (lambda: Gravity((0, 0)), r"acceleration has shape \(2,\), expected \(3,\)"),
        (lambda: Gravity((0, 0, np.nan)), "Gravity: acceleration is not finite"),
        (lambda: Buoyancy(-1.0), "volume must not be negative, got -1 m³"),
        (lambda: Spring(-2.0), "stiffness must not be negative, got -2 N/m"),
        (lambda: Rotor([0, 0, 0], spin=0), "spin must be 1 .* or -1, got 0"),
        (lambda: Rotor([0, 0, 0], torque_coefficient=-1), "must not be negative, got -1 m"),
        (lambda: Rotor([0, 0, 0], axis=[0, 0, 0]), "Rotor: axis must not be zero"),
        (lambda: Thruster([0, 0, 0], [0, 0, 0]), "Thruster: direction must not be zero"),
        (lambda: WrenchInput(("x", "yaw")), "unknown axis 'yaw'; valid names are x, y, z"),
        (lambda: WrenchInput(("x", "x")), "an axis is there twice"),
        (lambda: WrenchInput(frame="hybrid"), "unknown frame 'hybrid'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match="axes must be a tuple of names, got 'rx'"):
        WrenchInput("rx")
    with pytest.raises(
        TypeError, match=r"actuators\[1\] must be a Thruster or a Rotor, got Gravity"
    ):
        Actuators([Rotor([0, 0, 0]), Gravity()])


def test_inputs_along_axes_that_the_group_lacks_are_told():

    def with_inputs(*axes):
        push = WrenchInput(axes, name="push")
        return RigidBody("head", Schoenflies, SpatialInertia.sphere(1.0, 0.1), [push])

    with pytest.warns(
        UserWarning, match=r"head: controls along axes that Schoenflies .*: push.rx, push.ry; leave"
    ):
        with_inputs("x", "rx", "ry").system()
    with_inputs("x", "rz").system()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Gravity(g=9.81), "'g'; valid names are acceleration, name"),
        (lambda: Buoyancy(1.0, centre=[0, 0, 0]), "Did you mean 'center'"),
        (lambda: Spring(10.0, length=1.0), "'length'; valid names are stiffness, anchor"),
        (lambda: LinearDrag(drag=1.0), "'drag'; valid names are damping, name"),
        (lambda: Thruster([0, 0, 0], [1, 0, 0], max=5.0), "'max'; valid names are"),
        (lambda: Current(speed=[1, 0, 0]), "'speed'; valid names are velocity, is_input"),
        (lambda: GyroscopicWheels(np.eye(3), inertia=1.0), "Did you mean 'inertias'"),
    ],
)
def test_unknown_arguments_list_the_valid_ones(make, expected):
    with pytest.raises(TypeError, match=rf"\(\): unknown argument .*{expected}"):
        make()
