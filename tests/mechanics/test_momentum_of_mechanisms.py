"""Variational and energy–momentum steps of mechanisms: RATTLE, and constraints with a gradient.

``python -m tests.benchmarks.long_runs`` takes a million steps of closed four-bars.
"""

import pickle
from functools import cache

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol import models
from lgcontrol.controllers import MPC
from lgcontrol.groups import SO3
from lgcontrol.integrators import Composition, get_method
from lgcontrol.integrators._momentum_methods import _solve_regular
from lgcontrol.integrators._motion import slack
from lgcontrol.mechanics import LinearDrag, SpatialInertia
from lgcontrol.mechanics.constrained import (
    DP2,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
    angle_drive,
    knife_edge,
    revolute,
    spherical,
)
from lgcontrol.systems import step_derivatives
from tests.benchmarks.long_runs import METHODS, follow, linkage, momentum_in_space, plant_of

NAMES = ("variational_verlet", "energy_momentum")
BOX = SpatialInertia.box(2.0, [0.8, 0.2, 0.1])
ANCHOR, TIP = Marker("ground"), Marker("bob", [-0.4, 0, 0])


@cache
def top(word="SO3xR3"):
    """A box that swings about one of its points in all directions, with a symbolic mass."""
    bob = MechanismBody("bob", BOX, pose=[0.4, 0, 0, 0, 0, 0, 1])
    made = Mechanism("top", [bob], [spherical("ball", ANCHOR, TIP)]).symbolic("bob.mass")
    made = made.formulated(word)
    return made, made.system()


@cache
def pendulum(drag=0.0):
    """The box on a hinge along y, with a motor."""
    losses = [LinearDrag(drag * np.eye(6))] if drag else []
    bob = MechanismBody("bob", BOX, pose=[0.4, 0, 0, 0, 0, 0, 1], forces=losses)
    axis = Marker("ground", z=[0, 1, 0]), Marker("bob", [-0.4, 0, 0], z=[0, 1, 0])
    motor = MechanismMotor("motor", *axis)
    made = Mechanism("pendulum", [bob], [revolute("hinge", *axis)], motors=[motor])
    return made, made.system(independent=["bob.attitude.ry"])


def turning(mechanism, rate=(1.0, 2.0, 3.0)):
    return mechanism.state(speeds={"bob": [*np.cross(rate, [0.4, 0, 0]), *rate]})


def energy_of(system, x):
    quantities = system.quantities
    return (quantities["kinetic_energy"](0.0, x) + quantities["potential_energy"](0.0, x))[..., 0]


@pytest.mark.parametrize("word", ["SO3xR3", "SE3"])
@pytest.mark.parametrize("name", [*NAMES, "variational4"])
@pytest.mark.usually(word=("SO3xR3",))
def test_orders_symmetry_and_constraints(name, word):
    mechanism, system = top(word)
    x, u = turning(mechanism), system.nominal_input
    reference = system.rollout(x, u, 0.2 / 800, steps=800, method="rk4").x[-1]
    counts, errors = np.array([8, 16, 32]), []
    for n in counts:
        run = system.rollout(x, u, 0.2 / n, steps=n, method=name).x
        assert np.abs(system.quantities["constraint_gap"](0.0, run)).max() < 1e-11
        errors.append(np.abs(system.state.minus(run[-1], reference)).max())
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(get_method(name).order, abs=0.2), errors
    step = system.step(name)
    back = step(0.02, step(0.0, x, u, dt=0.02), u, dt=-0.02)
    assert np.abs(system.state.minus(back, x)).max() < 1e-11


@pytest.mark.parametrize("word", ["SO3xR3", "SE3"])
@pytest.mark.usually(word=("SO3xR3",))
def test_energy_momentum_keeps_the_energy(word):
    mechanism, system = top(word)
    run = system.rollout(turning(mechanism), None, 0.02, steps=200, method="energy_momentum")
    energy = energy_of(system, run.x)
    assert np.ptp(energy) < 1e-11 * np.ptp(system.quantities["kinetic_energy"](0.0, run.x))
    other = system.rollout(turning(mechanism), None, 0.02, steps=200, method="rk4")
    assert np.ptp(energy_of(system, other.x)) > 1e-6  # what would not do


def test_rattle_solves_the_discrete_equations_of_the_constrained_motion():
    """``Nᵀ (D₂ L_d(q₀, q₁) + D₁ L_d(q₁, q₂)) = 0`` across the constraints, by AD of L_d."""
    mechanism, system = top("SE3")
    group, h, p = system.state.blocks["configuration"], 0.02, ca.DM(system.nominal_parameters)
    free = mechanism.free_system()
    a, b, e = ca.SX.sym("a", group.nq), ca.SX.sym("b", group.nq), ca.SX.sym("e", group.dim)

    def energy(kind, q, v):
        return free.quantities[f"{kind}_energy"](0.0, ca.vertcat(q, v), ca.SX(0, 1), p)

    def discrete(q0, q1):
        w = group.minus(q1, q0) / h
        still = ca.SX(group.dim, 1)
        heights = energy("potential", q0, still) + energy("potential", q1, still)
        return h * energy("kinetic", q0, w) - h / 2 * heights

    zero = ca.DM.zeros(group.dim)
    D1 = ca.substitute(ca.gradient(discrete(group.plus(a, e), b), e), e, zero)
    D2 = ca.substitute(ca.gradient(discrete(a, group.plus(b, e)), e), e, zero)
    slopes = ca.Function("slopes", [a, b], [D1, D2])
    x = system.rollout(turning(mechanism), None, h, steps=2, method="variational_verlet").x
    q = x[:, : group.nq]
    total = np.asarray(slopes(q[0], q[1])[1] + slopes(q[1], q[2])[0]).ravel()
    G = np.asarray(mechanism.constraints.velocity(0.0, ca.DM(q[1]), p)[0])
    along = np.linalg.svd(G)[2][len(G) :]
    assert np.abs(total).max() > 1e-2  # the forces of the joint
    assert np.abs(along @ total).max() < 1e-12


def test_rattle_keeps_areas():
    """Of angle and rate of one freedom with constant inertia: the derivative's determinant is 1."""
    mechanism, system = pendulum()
    x = turning(mechanism, rate=(0.0, 3.0, 0.0))
    u, dt = system.nominal_input, 0.05
    determinants = {
        name: np.linalg.det(step_derivatives(system, name)(0.0, x, u, dt=dt).A)
        for name in ("variational_verlet", "rk4")
    }
    assert determinants["variational_verlet"] == pytest.approx(1, abs=1e-12)
    assert abs(determinants["rk4"] - 1) > 1e-8


@pytest.mark.usually(name=("variational_verlet",))
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_equations(name):
    """Against differences along the manifold, by states, inputs and parameters."""
    mechanism, system = top()
    x, u, p, dt = turning(mechanism), system.nominal_input, system.nominal_parameters, 0.05
    made = step_derivatives(system, name, parameters=True)(0.0, x, u, p, dt=dt)
    step, eps, E = system.step(name), 1e-5, system.errors.selection
    np.testing.assert_allclose(made.x_next, step(0.0, x, u, p, dt), rtol=0, atol=1e-14)
    A = np.zeros_like(made.A)
    for k in range(system.n_errors):
        z = eps * np.eye(system.n_errors)[k]
        ends = [step(0.0, system.retract(x, s * z, p), u, p, dt) for s in (1, -1)]
        A[:, k] = E @ system.state.minus(*ends) / (2 * eps)
    np.testing.assert_allclose(made.A, A, rtol=0, atol=1e-7)
    ends = [step(0.0, x, u, p + s * eps, dt) for s in (1, -1)]
    P = E @ system.state.minus(*ends) / (2 * eps)
    np.testing.assert_allclose(made.P[:, 0], P, rtol=0, atol=1e-8)


@pytest.mark.thorough
@pytest.mark.usually(name=("variational_verlet",))
@pytest.mark.parametrize("name", NAMES)
def test_inputs_losses_and_an_mpc(name):
    mechanism, system = pendulum(0.4)
    x = turning(mechanism, rate=(0.0, 3.0, 0.0))
    run = system.rollout(x, [0.3], 0.01, steps=200, method=name).x
    energy = energy_of(system, run)
    v = run[:, 7:]
    power = 0.3 * v[:, 4] - 0.4 * (v**2).sum(axis=1)
    assert energy[-1] - energy[0] == pytest.approx(np.trapezoid(power, dx=0.01), rel=2e-3)
    made = step_derivatives(system, name)(0.0, x, [0.3], dt=0.05)
    step, eps = system.step(name), 1e-5
    ends = [step(0.0, x, [0.3 + s * eps], dt=0.05) for s in (1, -1)]
    B = system.errors.selection @ system.state.minus(*ends) / (2 * eps)
    np.testing.assert_allclose(made.B[:, 0], B, rtol=0, atol=1e-8)
    rest = mechanism.state()
    options = {"horizon": 4, "dt": 0.05, "Q": 1.0, "R": 0.1}
    first, expected = (MPC(system, method=m, **options)(0.0, x, rest) for m in (name, "rk4"))
    np.testing.assert_allclose(first, expected, rtol=0, atol=0.05 * abs(expected).max())


def test_discretized_simulated_and_pickled():
    mechanism, system = pendulum()
    x = turning(mechanism, rate=(0.0, 3.0, 0.0))
    sampled = system.discretize(0.05, "variational_verlet")
    step = system.step("variational_verlet")
    expected = step(0.0, x, [0.1], dt=0.05)
    np.testing.assert_allclose(sampled.step()(0.0, x, [0.1]), expected, rtol=0, atol=1e-13)
    run = lg.simulate(system, x0=x, seconds=0.2, max_step=0.05, method="variational_verlet")
    twice = system.rollout(x, None, 0.05, steps=4, method="variational_verlet").x
    np.testing.assert_allclose(run.x[-1], twice[-1], rtol=0, atol=1e-12)
    again = pickle.loads(pickle.dumps(system))
    made = again.step("variational_verlet")(0.0, x, [0.1], dt=0.05)
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-14)


@pytest.mark.thorough
def test_redundant_rows_and_closed_trees():
    """Three rows of the four-bar depend on others; as a tree it has one loop of three rows."""
    plant = plant_of("four-bar")
    x, u = plant.start, plant.system.nominal_input
    ends = {
        name: plant.system.rollout(x, u, 0.002, steps=40, method=name).x[-1]
        for name in ("rk4", "variational_verlet")
    }
    off = plant.system.state.minus(*ends.values())
    assert np.abs(off).max() < 1e-3
    system = models.four_bar()
    x = system.home + 0.0
    errors = []
    for n in (20, 40):
        run, exact = (
            system.rollout(x, None, 0.4 / n, steps=n, method=m).x[-1]
            for m in ("variational_verlet", "rk4")
        )
        errors.append(np.abs(system.state.minus(run, exact)).max())
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.3), errors


def test_drives_are_met_at_the_end_of_a_step():
    """The clock of the drive goes along; its rate is met as well."""
    bob = MechanismBody("bob", BOX, pose=[0.4, 0, 0, 0, 0, 0, 1])
    axis = Marker("ground", z=[0, 1, 0]), Marker("bob", [-0.4, 0, 0], z=[0, 1, 0])
    drive = angle_drive("drive", *axis, lambda t: 2 * t + ca.sin(3 * t))
    made = Mechanism("driven", [bob], [revolute("hinge", *axis), drive])
    system = made.system()
    run = system.rollout(made.state(), None, 0.05, steps=20, method="variational_verlet").x
    t = run[-1, -1]
    assert t == pytest.approx(1.0)
    turned = SO3.log(run[-1, 3:7])[1]
    assert np.sin(turned - (2 * t + np.sin(3 * t))) == pytest.approx(0, abs=1e-12)
    assert run[-1, 11] == pytest.approx(2 + 3 * np.cos(3 * t), abs=1e-12)


def test_what_is_refused_by_name():
    mechanism, system = top()
    with pytest.raises(ValueError, match="spatial_momentum_midpoint takes no constraints"):
        system.step("spatial_momentum_midpoint")
    with pytest.raises(ValueError, match='takes closed trees, and mechanisms in "SO3xR3"'):
        mechanism.formulated("rp").system().step("variational_verlet")
    point = MechanismBody("bob", SpatialInertia.point_mass(1.0), pose=[0.4, 0, 0, 0, 0, 0, 1])
    light = Mechanism("light", [point], [revolute("hinge", ANCHOR, TIP)])
    with pytest.raises(ValueError, match="moments of inertia about all axes"):
        light.system().step("variational_verlet")
    with pytest.raises(ValueError, match="energy_momentum takes bodies.*not trees"):
        models.four_bar().discretize(0.01, "energy_momentum")
    with pytest.raises(ValueError, match="is for mechanical systems that know their structure"):
        pendulum()[1].augment(lag=0.1).step("variational_verlet")
    box = [MechanismBody("box", BOX)]
    sled = Mechanism("sled", box, [knife_edge("edge", Marker("ground"), Marker("box"))])
    for name in NAMES:
        with pytest.raises(ValueError, match=f"{name} takes .*not on velocities as edge"):
            sled.system(at=sled.coordinates()).step(name)
    yoshida = Composition("yoshida", get_method("spatial_momentum_midpoint"), (0.5, 0.5), 2)
    with pytest.raises(ValueError, match="takes no constraints"):
        MPC(pendulum()[1], horizon=3, dt=0.1, method=yoshida)


# What is kept; the bounds are those of the benchmark's million steps


@pytest.mark.parametrize("plant", ["four-bar", "free four-bar"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usually(plant=("four-bar",), name=("variational_verlet",))
def test_what_closed_four_bars_keep(plant, name):
    found = follow(plant, name, 2000, samples=200)
    assert found["residual"] <= 1
    for key, bound in METHODS[name][plant].items():
        assert found[key] <= bound, (key, found)


@pytest.mark.thorough
def test_energy_and_momentum_of_a_door_in_space_on_two_balls():
    """One of their six rows says what another one says, and neither is lost by that."""
    bodies = [
        MechanismBody(name, BOX, pose=[x, 0, 0, 0, 0, 0, 1])
        for name, x in (("frame", -0.4), ("door", 0.4))
    ]
    balls = [
        MechanismJoint(
            name,
            [
                DP2(axis, "frame", direction, [0.4, 0, z], "door", [-0.4, 0, z])
                for axis, direction in zip("xyz", np.eye(3), strict=True)
            ],
        )
        for name, z in (("low", -0.3), ("high", 0.3))
    ]
    made = Mechanism("door", bodies, balls, gravity=[0, 0, 0])
    assert made.mobility().removable == ("high.z",)
    made = made.formulated("SE3")
    system, momentum = made.system(), momentum_in_space(made)
    x = made.state(speeds={"frame": [0.1, 0.2, 0.3, 1, 2, 0.5], "door": [0, 0, 0, 0, 1, 3]})
    run = system.rollout(x, None, 0.02, steps=40, method="energy_momentum").x
    assert np.abs(system.state.minus(run[-1], x)).max() > 1  # it turned
    change = np.abs(momentum(run) - momentum(x)).max()
    assert change < 1e-13 * np.linalg.norm(momentum(x))
    energy = system.quantities["kinetic_energy"](0.0, run)[:, 0]
    assert np.ptp(energy) < 1e-13 * energy[0]
    assert np.abs(system.quantities["constraint_gap"](0.0, run)).max() < 1e-13


@pytest.mark.thorough
def test_the_momentum_of_a_free_four_bar():
    """Rows in axes of a body leave momentum alone on the way as well."""
    plant = plant_of("free four-bar")
    steps = {"energy_momentum": 5, "variational_verlet": 50}
    for name, count in steps.items():
        x = plant.system.rollout(plant.start, None, plant.dt, steps=count, method=name).x
        change = plant.momentum(x) - plant.momentum(plant.start)
        assert np.abs(change).max() < 1e-13 * plant.size
    assert linkage(is_free=True).mobility().degrees_of_freedom == 7


@pytest.mark.parametrize("is_redundant", [False, True])
def test_ends_of_steps_keep_their_digits_where_bodies_are_of_unlike_size(is_redundant, rng):
    """LDLᵀ without pivoting left 3e-7 there, its slack being 1e-10."""
    n, m = 12, 5
    L, G = rng.normal(size=(n, n)), rng.normal(size=(m, n))
    scale = np.repeat([1.0, 1e-2], n // 2)
    M = (L @ L.T + np.eye(n)) * np.outer(scale, scale)
    b = rng.normal(size=n + m)
    if is_redundant:
        G[-1], b[-1] = G[0], b[n]
    C = np.block([[M, G.T], [G, np.zeros((m, m))]])
    D = np.zeros((n + m, n + m))
    D[n:, n:] = -slack(ca.DM(M), ca.DM(G))
    at = [ca.MX.sym(name, *value.shape) for name, value in (("C", C), ("D", D), ("b", b))]
    found = ca.Function("end", at, [_solve_regular(*at)])(C, D, b).full().ravel()
    exact = np.linalg.lstsq(C, b, rcond=1e-13)[0]
    assert np.abs(found - exact)[:n].max() <= 1e-11 * np.abs(exact[:n]).max()
