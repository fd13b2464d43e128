"""Bodies on groups: Newton's laws for points, conservation, frames, parameters, systems."""

import json
import pickle
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn, Translation
from lgcontrol.mechanics import (
    Actuators,
    Buoyancy,
    Current,
    Gravity,
    LinearDrag,
    QuadraticDrag,
    RigidBody,
    Rotor,
    SpatialInertia,
    Spring,
    Thruster,
    WrenchInput,
)
from lgcontrol.systems import Input

from ._bodies import (
    AXIS,
    GROUPS,
    USUAL,
    body_of,
    inertia_of_cloud,
    name_of,
    random_cloud,
    random_inertia,
    random_matrix,
)

pytestmark = pytest.mark.usually(group=USUAL)

ROUNDING = 1e-11  # some hundred roundings of numbers up to a hundred
DIFFERENCE = (
    1e-6  # second central differences of order six with steps of 0.01, of numbers up to 100
)

every_group = pytest.mark.parametrize("group", GROUPS, ids=name_of)


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(np.array(a), b, rtol=tolerance, atol=tolerance)


# Sixth-order central differences.
STEPS = np.arange(-3, 4)
FIRST = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180


def random_motion(group, rng):
    """A smooth curve on the group, with its body-fixed velocity and acceleration at 0."""
    start, c1, c2, c3 = group.random(rng), *0.7 * rng.normal(size=(3, group.dim))

    def at(t):
        t = np.asarray(t)[..., None]
        return group.compose(start, group.exp(c1 * t + c2 * t**2 + c3 * t**3))

    # With φ(0) = 0, S = 1 and S' = −½ ad: v = c1 and, as ad_c1 c1 = 0, a = 2 c2.
    return at, c1, 2 * c2


def in_world(group, X, points):
    """Where points of the body are at poses X, shape (poses, points, 3)."""
    return SE3.act(group.embed(X)[:, None], points)


@every_group
def test_newtons_laws_for_the_points_of_a_body(group, rng):
    """Forces on points in the world, by differencing where they are, against inverse dynamics."""
    masses, points = random_cloud(rng)
    body = RigidBody("body", group, inertia_of_cloud(masses, points), [Gravity()])
    at, v, a = random_motion(group, rng)
    h = 1e-2
    X = at(h * STEPS)
    world = in_world(group, X, points)
    acceleration = np.einsum("t,tnk->nk", SECOND, world) / h**2
    force = masses[:, None] * (acceleration - [0, 0, -9.81])
    T = group.homogeneous(X[3])
    arms = world[3] - T[:3, 3]
    wrench = np.concatenate(
        [T[:3, :3].T @ force.sum(axis=0), T[:3, :3].T @ np.cross(arms, force).sum(axis=0)]
    )
    close(body.inverse_dynamics(X[3], v, a), group.selection.T @ wrench, DIFFERENCE)


@every_group
def test_energy_and_momentum_of_the_points_of_a_body(group, rng):
    masses, points = random_cloud(rng)
    body = RigidBody("body", group, inertia_of_cloud(masses, points), [Gravity()])
    at, v, _ = random_motion(group, rng)
    h = 1e-2
    X = at(h * STEPS)
    world = in_world(group, X, points)
    velocity = np.einsum("t,tnk->nk", FIRST, world) / h
    kinetic = masses @ (velocity**2).sum(axis=1) / 2
    close(body.kinetic_energy(X[3], v), kinetic, DIFFERENCE)
    close(body.potential_energy(X[3]), 9.81 * masses @ world[3, :, 2])
    # Spatial momentum in directions of the group: about the world's origin.
    linear = masses @ velocity
    angular = masses @ np.cross(world[3], velocity)
    spatial = group.selection.T @ np.concatenate([linear, angular])
    close(body.momentum("spatial")(X[3], v), spatial, DIFFERENCE)


# Conservation


@every_group
def test_free_motion_keeps_energy_and_spatial_momentum(group, rng):
    for M in (random_matrix(rng, group.dim), None):
        body = RigidBody("body", group, random_inertia(rng)) if M is None else body_of(group, M)
        system = body.system()
        x0 = np.concatenate([group.random(rng), rng.normal(size=group.dim)])
        x = system.rollout(x0, np.zeros(0), 0.01, steps=100, method="rk4").x
        X, v = x[:, : group.nq], x[:, group.nq :]
        for conserved in (body.kinetic_energy(X, v), body.momentum("spatial")(X, v)):
            # Order four with steps of 0.01 s at rates of up to ten per second.
            close(conserved, np.broadcast_to(conserved[0], conserved.shape), 1e-5)


@every_group
def test_energy_changes_by_the_power_of_the_generalized_force(group, rng):
    body = RigidBody("body", group, random_inertia(rng), [Gravity((1.0, 2.0, -9.0))])
    X, v, tau = ca.SX.sym("X", group.nq), ca.SX.sym("v", group.dim), rng.normal(size=group.dim)
    energy = body.kinetic_energy(X, v) + body.potential_energy(X)
    a = body.forward_dynamics(X, v, ca.SX(ca.DM(tau)))
    d = ca.SX.sym("d", group.dim)
    moved = ca.substitute(energy, X, group.plus(X, d))
    rate = ca.substitute(ca.jtimes(moved, d, v), d, ca.SX.zeros(group.dim))
    rate += ca.jtimes(energy, v, a)
    x, w = group.random(rng), rng.normal(size=group.dim)
    close(ca.Function("rate", [X, v], [rate])(x, w), tau @ w)


@every_group
def test_gravity_forces_are_the_slope_of_the_potential(group, rng):
    forces = [Gravity((1.0, 2.0, -9.0)), Spring(3.0, [1, 2, 3], [0.1, 0.2, 0.3], 0.5)]
    body = RigidBody("body", group, random_inertia(rng), forces)
    X, d = ca.SX.sym("X", group.nq), ca.SX.sym("d", group.dim)
    slope = ca.gradient(body.potential_energy(group.plus(X, d)), d)
    slope_at_0 = ca.Function("slope", [X, d], [slope])
    x = group.random(rng)
    close(slope_at_0(x, np.zeros(group.dim)).full()[:, 0], body.gravity_forces(x))
    held = body.inverse_dynamics(x, np.zeros(group.dim), np.zeros(group.dim))
    close(held, body.gravity_forces(x))


REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "rotating_bodies.json").read_text())


@pytest.mark.parametrize("case", REFERENCE["heavy_top"]["cases"], ids=lambda c: f"g={c['gravity']}")
def test_a_heavy_top_on_so3_against_reference_numbers(case):
    """A body turning about a point that is not its centre of mass, at 70 rad/s."""
    top = REFERENCE["heavy_top"]
    inertia = SpatialInertia.about_origin(
        top["mass"], top["centre_of_mass"], np.diag(top["inertia_about_pivot"])
    )
    body = RigidBody("top", SO3, inertia, [Gravity((0, 0, -case["gravity"]))])
    samples = [sample for sample in case["samples"] if sample["t"] <= 0.1]
    x0 = np.concatenate([SO3.identity, case["omega0"]])
    run = body.system().rollout(x0, np.zeros(0), 1e-4, steps=1000)
    assert len(samples) == 2
    for sample in samples:
        x = run.x[round(sample["t"] / 1e-4)]
        # rk4 with steps of 7 mrad: 1e-10 a turn of a radian, 7 radians.
        close(SO3.matrix(x[:4]), sample["R"], 1e-7)
        close(x[4:], sample["omega"], 1e-7)
        energy = body.kinetic_energy(x[:4], x[4:]) + body.potential_energy(x[:4])
        close(energy, sample["energy"], 1e-7)


def test_the_trim_of_an_underwater_vehicle_is_a_helix():
    """Steady turn: all forces balance while the pose moves with a constant twist."""
    thrusters = [
        Thruster([-0.7, 0, 0], direction, -50, 50, name)
        for direction, name in (([1, 0, 0], "surge"), ([0, 1, 0], "yaw"), ([0, 0, 1], "pitch"))
    ]
    body = RigidBody(
        "vehicle",
        SE3,
        SpatialInertia.cylinder(30, 0.1, 1.5, [1, 0, 0], [0, 0, -0.02]),
        [
            Gravity(),
            Buoyancy.neutral(30.0),
            LinearDrag([2, 20, 20, 0.5, 5, 5]),
            QuadraticDrag([4, 60, 60, 0.1, 10, 10]),
            Actuators(thrusters),
        ],
        added_mass=np.diag([1.0, 30, 30, 0, 5, 5]),
    )
    system = body.system()
    point = system.trim(where={"twist.vx": 1.5, "twist.wz": 0.1}, moving=True)
    assert point.kind == "relative equilibrium"
    x, v = point.x, point.x[7:]
    close(v[[0, 5]], [1.5, 0.1], 1e-9)  # the solver's own tolerance
    close(body.forward_dynamics(x[:7], v, np.zeros(6), point.u), np.zeros(6), 1e-8)
    # Two seconds on: the same twist, the pose moved by the exponential.
    end = system.rollout(x, point.u, 0.02, steps=100).x[-1]
    close(SE3.minus(end[:7], SE3.compose(x[:7], SE3.exp(2.0 * v))), np.zeros(6), 1e-6)


def test_an_unstable_axis_turns_over(rng):
    """The body of the intermediate-axis theorem: reverses about y, not about x or z."""
    body = RigidBody("body", SO3, SpatialInertia.box(1.0, [1.0, 2.0, 3.0]))
    for axis, turns_over in ((0, False), (1, True), (2, False)):
        omega = 1e-3 * np.ones(3)
        omega[axis] = 5.0
        x = body.system().rollout([0, 0, 0, 1, *omega], np.zeros(0), 0.005, steps=2000).x
        assert (x[:, 4 + axis].min() < -4.0) == turns_over


# Groups against each other


@every_group
def test_a_subgroup_is_the_free_body_with_what_guides_it(group, rng):
    """Guides do no work: the projected wrench of the free body is the generalized force."""
    inertia, forces = random_inertia(rng), [Gravity(), LinearDrag(np.arange(1.0, 7.0))]
    X, H = group.random(rng), group.selection
    v, a = rng.normal(size=(2, group.dim))
    free = RigidBody("free", SE3, inertia, forces)
    guided = RigidBody("guided", group, inertia, forces)
    wrench = free.inverse_dynamics(group.embed(X), H @ v, H @ a)
    close(guided.inverse_dynamics(X, v, a), H.T @ wrench)


def test_another_body_frame_gives_the_same_motion(rng):
    """Frame off the centre of mass against frame at it, turned to the principal axes."""
    inertia = random_inertia(rng)
    T = inertia.principal().T_body_principal
    at_centre = inertia.transformed(SE3.inverse(T))
    close(at_centre.center_of_mass, np.zeros(3))
    a_body = RigidBody("a", SE3, inertia, [Gravity()])
    b_body = RigidBody("b", SE3, at_centre, [Gravity()])
    X, v, tau = SE3.random(rng), rng.normal(size=6), rng.normal(size=6)
    to_b = SE3.Ad(SE3.inverse(T))
    Y, w, tau_b = SE3.compose(X, T), to_b @ v, SE3.Ad(T).T @ tau
    close(to_b @ a_body.forward_dynamics(X, v, tau), b_body.forward_dynamics(Y, w, tau_b))
    close(a_body.kinetic_energy(X, v), b_body.kinetic_energy(Y, w))
    close(a_body.potential_energy(X), b_body.potential_energy(Y))
    close(a_body.momentum("spatial")(X, v), b_body.momentum("spatial")(Y, w))
    x = a_body.system().rollout([*X, *v], np.zeros(0), 0.01, steps=50).x[-1]
    y = b_body.system().rollout([*Y, *w], np.zeros(0), 0.01, steps=50).x[-1]
    close(SE3.distance(SE3.compose(x[:7], T), y[:7]), 0.0, 1e-7)  # order four, steps of 0.01 s


def test_a_pendulum_about_an_odd_axis(rng):
    """SO2 about any axis: the compound pendulum ``J_o θ̈ = −m g r sin θ`` in its plane."""
    axis = np.array(AXIS) / np.linalg.norm(AXIS)
    group = SO2.about(AXIS)
    inertia = random_inertia(rng)
    body = RigidBody("pendulum", group, inertia, [Gravity()])
    for angle in (0.0, 0.4, 2.0):
        X = group.exp([angle])
        R = group.homogeneous(X)[:3, :3]
        moment = axis @ np.cross(R @ inertia.center_of_mass, [0, 0, -9.81 * inertia.mass])
        J = axis @ inertia.inertia_about_origin @ axis
        close(body.forward_dynamics(X, [0.7], [0.0]), [moment / J])


@every_group
def test_inverse_and_forward_dynamics_are_inverse(group, rng):
    body = RigidBody(
        "body",
        group,
        random_inertia(rng),
        [Gravity(), LinearDrag(np.ones(6)), WrenchInput()],
        added_mass=random_matrix(rng, 6),
        current=(0.3, -0.2, 0.1),
    )
    X, u = group.random(rng), rng.normal(size=6)
    v, tau = rng.normal(size=(2, group.dim))
    a = body.forward_dynamics(X, v, tau, u)
    close(body.inverse_dynamics(X, v, a, u), tau)
    M, C = body.mass_matrix(X), body.coriolis_matrix(X, v)
    close(M, M.T)
    assert np.linalg.eigvalsh(M)[0] > 0
    still = RigidBody("body", group, random_inertia(rng), added_mass=random_matrix(rng, group.dim))
    M, C = still.mass_matrix(X), still.coriolis_matrix(X, v)
    close(still.inverse_dynamics(X, v, a), M @ a + C @ v)


# Values


@every_group
def test_batches_and_expressions_give_the_same(group, rng):
    body = RigidBody("body", group, random_inertia(rng), [Gravity(), LinearDrag(np.ones(6))])
    X = group.random(rng, (2, 3))
    v, tau = rng.normal(size=(2, 2, 3, group.dim))
    a = body.forward_dynamics(X, v, tau)
    assert a.shape == (2, 3, group.dim)
    assert body.coriolis_matrix(X, v).shape == (2, 3, group.dim, group.dim)
    assert body.kinetic_energy(X, v).shape == (2, 3)
    for symbol in (ca.SX, ca.MX):
        names = [symbol.sym("X", group.nq), symbol.sym("v", group.dim), symbol.sym("t", group.dim)]
        f = ca.Function("f", names, [body.forward_dynamics(*names)])
        close(f(X[1, 2], v[1, 2], tau[1, 2]).full()[:, 0], a[1, 2])
    close(a[1, 2], body.forward_dynamics(X[1, 2], v[1, 2], tau[1, 2]))


@every_group
def test_derivatives_exist_at_rest_at_the_identity(group, rng):
    body = RigidBody("body", group, random_inertia(rng), [Gravity(), QuadraticDrag(np.ones(6))])
    d, v = ca.SX.sym("d", group.dim), ca.SX.sym("v", group.dim)
    X = group.exp(d)
    a = body.forward_dynamics(X, v, np.zeros(group.dim))
    z = ca.vertcat(d, v)
    J = ca.jacobian(a, z)
    second = ca.jacobian(ca.vec(J), z)
    f = ca.Function("f", [z], [a, J, second])
    for value in f(np.zeros(2 * group.dim)):
        assert np.isfinite(value.full()).all()


def test_functions_are_named():
    body = RigidBody("body", SE3, SpatialInertia.sphere(1.0, 1.0), [WrenchInput()])
    f = body.forward_dynamics.function
    assert f.name() == "forward_dynamics"
    assert f.name_in() == ["X", "v", "tau", "u", "p"]
    assert f.name_out() == ["a"]
    assert body.configuration is SE3 and (body.nq, body.nv) == (7, 6)


def test_bodies_pickle(rng):
    body = RigidBody("body", SE3, random_inertia(rng), [Gravity()]).symbolic("mass")
    X, v = SE3.random(rng), rng.normal(size=6)
    expected = body.forward_dynamics(X, v, np.ones(6))
    copy = pickle.loads(pickle.dumps(body))
    close(copy.forward_dynamics(X, v, np.ones(6)), expected)


def test_sparse_bodies_cost_little():
    """Structural zeros reach the code: a ball's translation needs no inertia tensor."""
    ball = RigidBody("ball", SE3, SpatialInertia.sphere(1.0, 0.1), [Gravity()])
    lump = RigidBody("lump", SE3, random_inertia(np.random.default_rng(1)), [Gravity()])
    assert ball.forward_dynamics.instructions < lump.forward_dynamics.instructions / 2


# Parameters


def test_parameters_are_what_the_numbers_would_be(rng):
    light, heavy = random_inertia(rng), random_inertia(rng)
    A, B = random_matrix(rng, 6), random_matrix(rng, 6)

    def make(inertia, added, damping, g, current):
        forces = [LinearDrag(damping, name="drag"), Gravity(g), WrenchInput(("x",))]
        return RigidBody("body", SE3, inertia, forces, added_mass=added, current=current)

    names = ["mass", "center_of_mass", "inertia", "added_mass", "current"]
    names += ["drag.damping", "gravity"]
    numbers = (np.arange(1.0, 7.0), (0.1, 0.2, -9.0), (0.3, 0.1, 0.2))
    others = (np.diag(np.arange(2.0, 8.0)), (0.0, 0.5, -3.0), (0.0, 0.7, -0.2))
    symbolic = make(light, A, *numbers).symbolic(*names)
    plain = make(heavy, B, *others)
    p = dict.fromkeys((entry.name for entry in symbolic.parameters), 0.0)
    p["mass"] = heavy.mass
    for i, x in enumerate("xyz"):
        p[f"center_of_mass.{x}"] = heavy.center_of_mass[i]
        p[f"gravity.{x}"] = others[1][i]
        p[f"current.{x}"] = others[2][i]
        for j in range(i, 3):
            p[f"inertia.{x}{'xyz'[j]}"] = heavy.inertia[i, j]
    for i, row in enumerate(SE3.tangent_names):
        for j, column in enumerate(SE3.tangent_names):
            p[f"drag.damping.{row}.{column}"] = others[0][i, j]
            if i <= j:
                p[f"added_mass.{row}.{column}"] = B[i, j]
    X, v, tau, u = SE3.random(rng), rng.normal(size=6), rng.normal(size=6), [0.4]
    values = list(p.values())
    assert len(p) == len(symbolic.parameters) == 1 + 3 + 6 + 21 + 3 + 36 + 3
    close(symbolic.forward_dynamics(X, v, tau, u, values), plain.forward_dynamics(X, v, tau, u))
    close(symbolic.mass_matrix(X, values), plain.mass_matrix(X))
    nominal = make(light, A, *numbers)
    close(symbolic.forward_dynamics(X, v, tau, u), nominal.forward_dynamics(X, v, tau, u))


def test_single_entries_can_be_parameters(rng):
    inertia = random_inertia(rng)
    body = RigidBody("body", SE3, inertia, [Gravity()]).symbolic("inertia.xz", "mass")
    assert [(e.name, e.unit) for e in body.parameters] == [("mass", "kg"), ("inertia.xz", "kg m²")]
    assert body.parameters[1].nominal == inertia.inertia[0, 2]
    whole = RigidBody("body", SE3, inertia, [LinearDrag(np.ones(6)), Gravity()]).symbolic("gravity")
    assert [e.name[-2:] for e in whole.parameters] == [".x", ".y", ".z"]
    more = body.symbolic("gravity.z")
    assert [e.name for e in more.parameters][2:] == ["gravity.z"]
    changed = inertia.inertia.copy()
    changed[0, 2] = changed[2, 0] = 0.1
    plain = RigidBody("body", SE3, SpatialInertia(3.0, inertia.center_of_mass, changed))
    close(body.mass_matrix(SE3.identity, [3.0, 0.1]), plain.mass_matrix(SE3.identity))


def test_values_take_the_place_of_symbols(rng):
    """Body with the numbers of p: the same functions, whichever numbers were symbols."""
    forces = [LinearDrag(np.arange(1.0, 7.0), name="drag"), Gravity()]
    body = RigidBody(
        "body", SE3, random_inertia(rng), forces, random_matrix(rng, 6), (0.3, 0.1, 0.2)
    )
    names = "center_of_mass", "mass", "inertia", "gravity", "drag", "added_mass", "current"
    symbolic = body.symbolic(*names)
    X, v, tau = SE3.random(rng), rng.normal(size=6), rng.normal(size=6)
    p = np.array([1.05 * entry.nominal + 0.001 for entry in symbolic.parameters])
    fixed = symbolic.with_parameters(p)
    assert [entry.nominal for entry in fixed.parameters] == pytest.approx(p)
    close(fixed.forward_dynamics(X, v, tau), symbolic.forward_dynamics(X, v, tau, p=p))
    given = {entry.name: x for entry, x in zip(symbolic.parameters, p, strict=True)}
    close(
        body.with_parameters(given).forward_dynamics(X, v, tau), fixed.forward_dynamics(X, v, tau)
    )
    some = symbolic.with_parameters({"gravity.z": -1.6})
    assert {e.name: e.nominal for e in some.parameters}["gravity.z"] == -1.6
    assert len(some.parameters) == len(symbolic.parameters)
    with pytest.raises(ValueError, match="parameter values"):
        symbolic.with_parameters([1.0])
    gains = RigidBody("b", SE3, body.inertia, [Actuators([Rotor(np.zeros(3))], "rotors")])
    with pytest.raises(KeyError, match="force 'rotors' has no field for 'gain'"):
        gains.with_parameters({"rotors.gain.0": 2.0})


def test_old_spellings_name_the_new_ones():
    ball = SpatialInertia.sphere(1.0, 1.0)
    body = RigidBody("body", SE3, ball, [Gravity()])
    with pytest.raises(
        TypeError,
        match=r"unknown argument 'symbolic'; valid names .*current.*is now .*RigidBody.symbolic",
    ):
        RigidBody("body", SE3, ball, symbolic=["mass"])
    with pytest.raises(KeyError, match="'gravity.acceleration.z' is called 'gravity.z' here"):
        body.symbolic("gravity.acceleration.z")
    with pytest.raises(KeyError, match="'com.x' is called 'center_of_mass.x' here"):
        body.with_parameters({"com.x": 0.1})


def test_unknown_parameters_are_refused_at_once():
    ball = SpatialInertia.sphere(1.0, 1.0)
    with pytest.raises(KeyError, match="unknown parameter 'inertia.yx'.*inertia.xy"):
        RigidBody("body", SE3, ball).symbolic("inertia.yx")
    with pytest.raises(KeyError, match="Did you mean 'linear_drag.damping"):
        RigidBody("body", SE3, ball, [LinearDrag(np.ones(6))]).symbolic("linear_drag.dampin")
    body = RigidBody("body", SE3, ball)
    with pytest.raises(TypeError, match=r"one by one, symbolic\('a', 'b'\), got \['mass'\]"):
        body.symbolic(["mass"])
    with pytest.raises(ValueError, match="body: parameter 'mass' = -1 kg is outside"):
        body.with_parameters({"mass": -1.0})


def test_units_of_added_mass():
    body = RigidBody("body", SE2, SpatialInertia.sphere(1, 1), added_mass=np.eye(3)).symbolic(
        "added_mass"
    )
    units = {entry.name: entry.unit for entry in body.parameters}
    assert units == {
        "added_mass.x.x": "kg",
        "added_mass.x.y": "kg",
        "added_mass.x.rz": "kg m",
        "added_mass.y.y": "kg",
        "added_mass.y.rz": "kg m",
        "added_mass.rz.rz": "kg m²",
    }


# What is refused


@pytest.mark.parametrize(
    ("group", "inertia", "message"),
    [
        (SO3, SpatialInertia.rod(1.0, 1.0, axis=[1, 0, 0]), r"velocity \(rx 1\) has .* energy 0 J"),
        (
            SO2.about((1, 1, 0)),
            SpatialInertia.rod(1.0, 1.0, axis=[1, 1, 0]),
            "not positive definite",
        ),
        (SE3, SpatialInertia.point_mass(1.0, [0.0, 0.0, 2.0]), "not positive definite"),
        (Translation("x"), SpatialInertia.point_mass(0.0), r"velocity \(x 1\)"),
    ],
)
def test_bodies_without_inertia_for_a_motion_are_refused(group, inertia, message):
    with pytest.raises(ValueError, match=message):
        RigidBody("body", group, inertia)


def test_thin_rods_move_where_they_have_inertia():
    rod = SpatialInertia.rod(1.0, 1.0, axis=[1, 0, 0])
    assert RigidBody("rod", SE2, rod).mass_matrix(SE2.identity).shape == (3, 3)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (np.eye(4), r"added_mass has shape \(4, 4\), expected \(6, 6\) or \(3, 3\)"),
        (np.ones(6), r"has shape \(6,\).*numpy.diag"),
        (np.triu(np.ones((3, 3))), r"not symmetric: entries \(0, 1\) and \(1, 0\) are 1 and 0"),
        (np.diag([-1.0, 1, 1]), "smallest eigenvalue is -1; published"),
        (np.diag([np.nan, 1, 1]), "added_mass is not finite"),
    ],
)
def test_impossible_added_masses_are_refused(added, message):
    with pytest.raises(ValueError, match=message):
        RigidBody("body", SE2, SpatialInertia.sphere(1.0, 1.0), added_mass=added)


def test_other_mistakes_are_named():
    ball = SpatialInertia.sphere(1.0, 1.0)
    with pytest.raises(TypeError, match="group must be a LieGroup, not str"):
        RigidBody("body", "SE3", ball)
    with pytest.raises(TypeError, match="inertia must be a SpatialInertia, got 1.0"):
        RigidBody("body", SE3, 1.0)
    with pytest.raises(ValueError, match="non-empty"):
        RigidBody("", SE3, ball)
    with pytest.raises(TypeError, match="no embedding in SE"):
        RigidBody("body", Rn(3), ball)
    with pytest.raises(TypeError, match="must be a Force, got"):
        RigidBody("body", SE3, ball, [(0, 0, -9.81)])
    with pytest.raises(ValueError, match="two forces are called 'gravity'"):
        RigidBody("body", SE3, ball, [Gravity(), Gravity()])
    with pytest.raises(ValueError, match=r"in a current the added mass must be \(6, 6\)"):
        RigidBody("body", SE2, ball, added_mass=np.eye(3), current=Current())
    body = RigidBody("body", SE3, ball, [Gravity()])
    with pytest.raises(KeyError, match="unknown force 'drag'; valid names are gravity"):
        body.wrench("drag")
    with pytest.raises(ValueError, match="unknown Coriolis form 'christoffel'"):
        body.coriolis("christoffel")
    with pytest.raises(ValueError, match="unknown frame 'world'; valid names are body, spatial"):
        body.momentum("world")


# Added mass


@every_group
def test_added_mass_of_the_free_body_is_projected(group, rng):
    inertia, A, X = random_inertia(rng), random_matrix(rng, 6), group.random(rng)
    v, tau = rng.normal(size=(2, group.dim))
    H = group.selection
    whole = RigidBody("body", group, inertia, added_mass=A)
    own = RigidBody("body", group, inertia, added_mass=H.T @ A @ H)
    close(whole.forward_dynamics(X, v, tau), own.forward_dynamics(X, v, tau))
    close(whole.mass_matrix(X), H.T @ (inertia.matrix + A) @ H)


def test_gravity_does_not_act_on_added_mass():
    ball = SpatialInertia.sphere(2.0, 0.1)
    body = RigidBody("ball", SE3, ball, [Gravity()], added_mass=np.diag([2.0, 2, 2, 0, 0, 0]))
    close(body.forward_dynamics(SE3.identity, np.zeros(6), np.zeros(6))[2], -9.81 / 2)


# System


@every_group
@pytest.mark.filterwarnings("ignore:.*controls along axes that")
def test_the_system_is_the_field(group, rng):
    body = RigidBody(
        "body",
        group,
        random_inertia(rng),
        [Gravity(), WrenchInput(("x", "rz"))],
    ).symbolic("mass")
    system = body.system(generalized_force=True)
    assert isinstance(system.state, Product)
    assert list(system.state.blocks) == ["pose", "twist"]
    X, v, u, p = group.random(rng), rng.normal(size=group.dim), rng.normal(size=2), [2.5]
    tau, x = rng.normal(size=group.dim), np.concatenate([X, v])
    a = body.forward_dynamics(X, v, tau, u, p)
    close(system.f(0.0, x, [*u, *tau], p), [*v, *a])
    close(
        system.quantities["kinetic_energy"](0.0, x, [*u, *tau], p), body.kinetic_energy([X], v, p)
    )
    close(
        system.quantities["potential_energy"](0.0, x, [*u, *tau], p), body.potential_energy([X], p)
    )
    assert system.input_names[:2] == ("wrench.x", "wrench.rz")
    assert system.input_names[2:] == tuple(f"tau.{n}" for n in group.tangent_names)


def test_names_and_units_of_the_state():
    state = RigidBody("body", SE2, SpatialInertia.sphere(1.0, 1.0)).state
    assert state.tangent_names == (
        *("pose.x", "pose.y", "pose.rz"),
        *("twist.vx", "twist.vy", "twist.wz"),
    )
    assert state.coordinate_units[4:] == ("m/s", "m/s", "rad/s")


def test_inputs_can_be_declared_otherwise():
    body = RigidBody("body", SE3, SpatialInertia.sphere(1.0, 1.0), [WrenchInput(("x", "y"))])
    system = body.system("ball", inputs=[Input("push", "N", -1, 1), Input("gust", "N")])
    assert system.name == "ball"
    assert system.input_names == ("push", "gust")
    with pytest.raises(ValueError, match="1 inputs given, expected 2: wrench.x, wrench.y"):
        body.system(inputs=[Input("push")])


def test_energy_is_invariant_only_if_it_is():
    ball = SpatialInertia.sphere(1.0, 1.0)
    conservative = RigidBody("body", SE3, ball, [Gravity(), Spring(1.0)])
    assert conservative.system().invariants is not None
    x = np.concatenate([SE3.identity, np.ones(6)])
    energy = conservative.kinetic_energy(x[:7], x[7:]) + conservative.potential_energy(x[:7])
    close(conservative.system().invariants(x), [energy])
    for forces in ([LinearDrag(np.ones(6))], [WrenchInput()]):
        assert conservative.with_forces(*forces).system().invariants is None
    assert conservative.system(generalized_force=True).invariants is None


def test_outputs_can_be_given():
    body = RigidBody("body", SE3, SpatialInertia.sphere(1.0, 1.0))
    system = body.system(h=lambda t, x, u, p: x[:3], output=Rn(3))
    close(system.h(0.0, np.arange(13.0)), [0, 1, 2])


def test_linearization_of_a_quadrotor_at_hover():
    arms = [(0.2, 0, 1), (0, 0.2, -1), (-0.2, 0, 1), (0, -0.2, -1)]
    rotors = [Rotor([x, y, 0], torque_coefficient=0.01, spin=s) for x, y, s in arms]
    body = RigidBody(
        "quadrotor",
        SE3,
        SpatialInertia(1.2, np.zeros(3), np.diag([0.01, 0.01, 0.02])),
        [Gravity(), Actuators(rotors, "rotor")],
    )
    system = body.system()
    x, u = np.concatenate([SE3.identity, np.zeros(6)]), np.full(4, 1.2 * 9.81 / 4)
    close(system.f(0.0, x, u), np.zeros(12))
    lin = system.linearize(x, u)
    assert (
        np.linalg.matrix_rank(
            np.hstack([np.linalg.matrix_power(lin.A, k) @ lin.B for k in range(12)])
        )
        == 12
    )
    B = body.input_matrix(SE3.identity, np.zeros(6))
    close(lin.B[6:], np.linalg.solve(body.mass_matrix(SE3.identity), B))
