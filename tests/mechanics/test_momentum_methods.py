"""Variational, spatial-momentum and energy–momentum steps: their definitions, and what they keep.

``python -m tests.benchmarks.long_runs`` takes a million steps of each.
"""

import gc
import weakref
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3, SO2, SO3, Helical, Rn
from lgcontrol.integrators import Composition, get_method
from lgcontrol.mechanics import (
    Buoyancy,
    Gravity,
    GyroscopicWheels,
    Gyrostat,
    JointProperties,
    LinearDrag,
    Multibody,
    RigidBody,
    SpatialInertia,
    WorldWrench,
    WrenchInput,
)
from lgcontrol.systems import System
from tests.benchmarks.long_runs import METHODS, OTHERS, PLANTS, follow

METHOD_NAMES = ("variational_verlet", "spatial_momentum_midpoint", "energy_momentum")
STEPS = 2000


@cache
def body():
    """Weight, buoyancy elsewhere, drag and inputs on SE(3), with products of inertia."""
    inertia = SpatialInertia(
        2.0, [0.1, -0.2, 0.3], [[0.5, 0.02, 0.01], [0.02, 0.4, 0.03], [0.01, 0.03, 0.6]]
    )
    forces = [
        Gravity(),
        Buoyancy(0.0015, [0.0, 0.1, 0.2]),
        LinearDrag(np.diag([1.0, 1.2, 1.4, 0.3, 0.2, 0.1])),
        WrenchInput(("x", "rz"), name="push"),
    ]
    return RigidBody("body", SE3, inertia, forces)


@cache
def tree():
    """A free base, a ball joint and a revolute one with armature, damping, a spring and weight."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    box = SpatialInertia.box(1.0, [0.2, 0.3, 0.4], center_of_mass=[0.1, 0, -0.2])
    drive = JointProperties(damping=0.2, armature=0.1, stiffness=3.0)
    made = Multibody("tree").add_body("base", SpatialInertia.box(4.0, [0.5, 0.4, 0.3]), "free")
    made = made.add_body("upper", box, "spherical", "base", [0, 0, -0.2])
    return made.add_body(
        "lower", rod, "revolute", "upper", [0, 0, -0.4], axis="y", properties=drive
    )


def plants():
    return {
        "body": body().system(),
        "gyrostat": Gyrostat(
            RigidBody("craft", SO3, SpatialInertia.box(100.0, [1.0, 1.1, 1.5])),
            GyroscopicWheels(np.eye(3), 0.5, friction=0.05),
        ).system(),
        "tree": tree().system(),
    }


SYSTEMS = plants()
# The composition of steps is tested on a body, and on wheels, by default.
THOROUGH = (("tree", "variational4"),)
CASES = [
    pytest.param(name, method, marks=pytest.mark.thorough if (name, method) in THOROUGH else ())
    for name in SYSTEMS
    for method in (*METHOD_NAMES, "variational4")
    if (name, method) != ("tree", "energy_momentum")
]
every_case = pytest.mark.parametrize(("name", "method"), CASES)


def start(system, seed=3, speed=0.5):
    x = system.state.random(np.random.default_rng(seed))
    x[list(system.state.blocks.values())[0].nq :] *= speed
    return x


# Definitions


@every_case
def test_order(name, method):
    system, u = SYSTEMS[name], 0.3 * np.ones(SYSTEMS[name].n_inputs)
    counts = np.array([20, 40, 80]) // (4 if name == "gyrostat" else 1)  # above rounding
    x = start(system)
    reference = system.rollout(x, u, 0.5 / 2000, steps=2000, method="rk4").x[-1]
    errors = [
        np.abs(
            system.state.minus(
                system.rollout(x, u, 0.5 / n, steps=n, method=method).x[-1], reference
            )
        ).max()
        for n in counts
    ]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(get_method(method).order, abs=0.2), errors


@every_case
def test_steps_are_symmetric(name, method):
    """A step back undoes a step; not of spatial momenta of trees, which are read anew each time."""
    system = SYSTEMS[name]
    x, u = start(system), 0.3 * np.ones(system.n_inputs)
    step = system.step(method)
    back = step(0.05, step(0.0, x, u, dt=0.05), u, dt=-0.05)
    off = np.abs(system.state.minus(back, x)).max()
    if (name, method) == ("tree", "spatial_momentum_midpoint"):
        assert 1e-9 < off < 1e-2
    else:
        assert off < 1e-11


@pytest.mark.parametrize("group", [SO2, Helical(0.35)], ids=lambda group: group.name)
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_bodies_of_one_degree_of_freedom_move_as_their_force_says(group, method):
    """A constant force on one coordinate: methods of second order are exact."""
    made = RigidBody("screw", group, SpatialInertia.box(2.0, [0.1, 0.2, 0.3]))
    system, x, dt = made.system(generalized_force=True), np.append(group.exp([0.4]), 0.7), 0.05
    after = system.rollout(x, [0.3], dt, steps=4, method=method).x[-1]
    a = made.forward_dynamics(group.identity, [0.0], [0.3])[0]
    t = 4 * dt
    moved = system.state.minus(after, x)
    np.testing.assert_allclose(moved, [0.7 * t + a * t**2 / 2, a * t], rtol=0, atol=1e-12)
    linear = system.discretize(dt, method).linearize(x, [0.3])
    np.testing.assert_allclose(linear.A, [[1.0, dt], [0.0, 1.0]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["body", "tree"])
def test_variational_steps_solve_the_discrete_euler_lagrange_equations(name):
    """``D₂ L_d(q₀, q₁) + D₁ L_d(q₁, q₂) + forces = 0`` by AD of the discrete Lagrangian."""
    system, h, u = SYSTEMS[name], 0.05, np.zeros(SYSTEMS[name].n_inputs)
    if name == "body":  # what has a potential: the drag has none
        system = replace(body(), forces=body().forces[:2]).system()
        u = u[:0]
    group = system.state.blocks["pose" if name == "body" else "configuration"]
    q0, q1, e = ca.SX.sym("q0", group.nq), ca.SX.sym("q1", group.nq), ca.SX.sym("e", group.dim)

    def energy(kind, q, v):
        return system.quantities[f"{kind}_energy"](0.0, ca.vertcat(q, v), ca.SX(u), ca.SX(0, 1))

    def discrete(a, b):
        d = group.minus(b, a)
        middle = group.plus(a, d / 2)
        still = ca.SX(group.dim, 1)
        heights = energy("potential", a, still) + energy("potential", b, still)
        return h * energy("kinetic", middle, d / h) - h / 2 * heights

    zero = ca.DM.zeros(group.dim)
    D1 = ca.substitute(ca.gradient(discrete(group.plus(q0, e), q1), e), e, zero)
    D2 = ca.substitute(ca.gradient(discrete(q0, group.plus(q1, e)), e), e, zero)
    slopes = ca.Function("slopes", [q0, q1], [D1, D2])
    x = system.rollout(start(system), u, h, steps=2, method="variational_verlet").x
    q = x[:, : group.nq]
    total = np.asarray(slopes(q[0], q[1])[1] + slopes(q[1], q[2])[0]).ravel()
    if name == "tree":  # damping acts in halves at both ends, at the mean velocities
        v = [group.minus(q[k + 1], q[k])[-1] / h for k in (0, 1)]
        total[-1] -= 0.2 * h / 2 * (v[0] + v[1])
    assert np.abs(total).max() < 1e-12


def test_spatial_momenta_of_a_tree_move_by_eq_80():
    """``Jᵀ (2 Π(q_m, w) − 2 Π₀ − h W) = 0`` in the middle, with momenta and Jacobians of bodies."""
    h, system, made = 0.05, SYSTEMS["tree"], replace_springs()
    plain = made.system()
    x = plain.state.random(np.random.default_rng(4))
    nq, group = made.nq, made.configuration
    after = plain.step("spatial_momentum_midpoint")(0.0, x, np.zeros(plain.n_inputs), dt=h)
    d = group.minus(after[:nq], x[:nq])
    middle, w = group.plus(x[:nq], d / 2), d / h
    momenta, J = made.body_momenta(), made.system_jacobian("spatial")
    before, mean = momenta(x[:nq], x[nq:]), momenta(middle, w)
    weight = np.zeros_like(mean)
    for k, name in enumerate(made.bodies):
        inertia = made.link(name).inertia
        place = made.placement(name)(middle)
        force = inertia.mass * np.array([0, 0, -9.81])
        weight[k] = [*force, *np.cross(SE3.act(place, inertia.center_of_mass), force)]
    off = J(middle).T @ (2 * mean - 2 * before - h * weight).ravel()
    assert np.abs(off).max() < 1e-11
    ended = momenta(after[:nq], after[nq:])
    kept = J(after[:nq]).T @ (2 * mean - before - ended).ravel()
    assert np.abs(kept).max() < 1e-11
    assert system.n_inputs == plain.n_inputs


def replace_springs():
    """The tree with nothing but weight."""
    return tree().with_properties(lower=JointProperties())


# What is kept; the bounds are those of the benchmark's million steps, which are longer


# Closed four-bars are those of `test_momentum_of_mechanisms`; the space arm's steps of fourth order
# take half a minute to compile. By default each method goes on a body in space, and what keeps
# energy where there is a potential as well.
KEPT = [
    pytest.param(
        plant,
        name,
        marks=()
        if (plant, name) == ("heavy top", "energy_momentum")
        or (plant == "free body" and name != "variational4")
        else pytest.mark.thorough,
    )
    for plant in PLANTS
    for name, bounds in METHODS.items()
    if plant in bounds
    and "four-bar" not in plant
    and (plant, name) != ("space arm", "variational4")
]


@pytest.mark.parametrize(("plant", "name"), KEPT)
def test_what_is_kept(plant, name):
    found = follow(plant, name, STEPS, samples=200)
    assert found["residual"] <= 1
    for key, bound in METHODS[name][plant].items():
        assert found[key] <= bound, (key, found)


@pytest.mark.usually(name=("spatial_momentum_midpoint",))
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_momentum_in_space_does_not_wait_for_newton(name):
    """It is kept whatever the mean velocity: with one iteration as with six."""
    rough = replace(get_method(name), iterations=1)
    found = follow("free body", rough, 500, samples=10)
    assert found["momentum"] < 1e-13
    assert found["residual"] > 1  # and it says that the equation is not solved


# One that loses the momentum, one that loses the energy.
@pytest.mark.usually(
    method=[m for m in OTHERS if m.name in ("rk4", "midpoint without discrete gradient")]
)
@pytest.mark.parametrize("method", OTHERS, ids=lambda method: method.name)
def test_what_others_do_not_keep(method):
    """Negative examples: in 2,000 steps they lose more than the others may in a million."""
    found = follow("heavy top", method, STEPS, samples=200)
    if method.name == "midpoint without discrete gradient":
        assert found["energy"] > 1e-6
    else:
        assert found["momentum"] > 1e-5


# Losses


@pytest.mark.usually(method=METHOD_NAMES[:1])
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_energy_lost_is_what_the_wheels_dissipate(method):
    system, dt = SYSTEMS["gyrostat"], 0.5
    x = system.state.join(
        pose=SO3.identity, twist=[0.1, 0.2, -0.1], wheel_speed=[20.0, -10.0, 30.0]
    )
    made = system.rollout(x, None, dt, steps=STEPS, method=method).x
    energy = system.quantities["kinetic_energy"](0.0, made)[:, 0]
    power = 0.05 * np.sum(made[:, 7:] ** 2, axis=-1)
    work = np.trapezoid(power, dx=dt)
    assert energy[0] - energy[-1] == pytest.approx(work, rel=0.01)
    assert energy[-1] < 0.5 * energy[0]


@pytest.mark.thorough
def test_energy_lost_is_what_the_joints_dissipate():
    """A space arm with damped joints; its momentum stays."""
    drive = JointProperties(damping=0.3)
    made = models.space_arm_tree()
    made = made.with_properties(**{name: drive for name in made.joints if name != "base"})
    system, nq = made.system(), made.nq
    rng, dt = np.random.default_rng(2), 0.05
    x = system.state.identity
    x[7:nq], x[nq:] = rng.uniform(-1, 1, 7), rng.uniform(-0.3, 0.3, 13)
    motion = system.rollout(x, None, dt, steps=400, method="variational_verlet").x
    energy = system.quantities["kinetic_energy"](0.0, motion)[:, 0]
    mean = made.configuration.minus(motion[1:, :nq], motion[:-1, :nq])[:, 6:] / dt
    work = 0.3 * dt * np.sum(mean**2)
    assert energy[0] - energy[-1] == pytest.approx(work, rel=0.01)


# Plants that are taken and refused


def test_other_plants_are_refused_by_name():
    plain = System("lag", Rn(1), lambda t, x, u, p: -x)
    for method in METHOD_NAMES:
        with pytest.raises(ValueError, match=f"{method} is for mechanical systems"):
            plain.step(method)
        with pytest.raises(ValueError, match=f"{method} takes bodies.*actuator as well"):
            body().system().augment(lag=0.1).step(method)
        momentum = body().system(velocity="momentum")
        with pytest.raises(ValueError, match=f"{method} is for mechanical systems"):
            momentum.discretize(0.1, method)
    with pytest.raises(ValueError, match="energy_momentum takes bodies.*not trees"):
        SYSTEMS["tree"].step("energy_momentum")


def test_values_of_every_kind():
    system = SYSTEMS["body"]
    x, u = start(system), np.zeros(system.n_inputs)
    for method in METHOD_NAMES:
        scheme, problem = get_method(method), system.problem
        expected = system.step(method)(0.0, x, u, dt=0.1)
        made = scheme.step(problem, 0.0, x, u, (), 0.1)
        np.testing.assert_allclose(made.state, expected, rtol=0, atol=1e-14)
        assert made.residual <= 1 and made.memory == ()
        np.testing.assert_allclose(
            np.asarray(scheme.step(problem, 0.0, ca.DM(x), ca.DM(u), (), 0.1).state).ravel(),
            expected,
            rtol=0,
            atol=1e-14,
        )
        with pytest.raises(TypeError, match="give MX, DM or NumPy values, not SX"):
            scheme.step(problem, 0.0, ca.SX(x), u, (), 0.1)
        still = scheme.step(problem, 0.0, x, u, (), 0.0)
        np.testing.assert_allclose(still.state, x, rtol=0, atol=1e-14)


@pytest.mark.thorough
def test_an_mpc_plans_with_them():
    """As with rk4, up to the errors of the steps."""
    craft = models.satellite()
    goal = craft.state.identity
    x = craft.state.plus(goal, [0.2, -0.1, 0.3, 0, 0, 0])
    options = {"horizon": 4, "dt": 1.0, "Q": {"pose": 10, "twist": 100}, "R": 1.0}
    expected = MPC(craft, method="rk4", **options)(0.0, x, goal)
    found = MPC(craft, method="variational_verlet", **options)(0.0, x, goal)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def test_compositions_are_checked():
    verlet = get_method("variational_verlet")
    with pytest.raises(ValueError, match="must sum to one and read the same"):
        Composition("odd", verlet, (0.4, 0.4), 2)
    with pytest.raises(ValueError, match="to the power 3 must vanish for order 4"):
        Composition("low", verlet, (0.25, 0.5, 0.25), 4)


@pytest.mark.usually(method=METHOD_NAMES[:1])
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_force_of_the_world(method):
    """It turns in the body, against small steps of rk4."""
    wind = WorldWrench([1.0, -2.0, 0.5, 0.1, 0.2, -0.1], [0.1, 0, 0.2], name="wind")
    inertia = SpatialInertia.box(3.0, [0.2, 0.3, 0.4])
    pushed = RigidBody("pushed", SE3, inertia, [wind]).system()
    x = start(pushed)
    reference = pushed.rollout(x, None, 0.001, steps=500, method="rk4").x[-1]
    errors = [
        np.abs(
            pushed.state.minus(
                pushed.rollout(x, None, 0.5 / n, steps=n, method=method).x[-1], reference
            )
        ).max()
        for n in (50, 100)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.3)


@pytest.mark.usually(method=METHOD_NAMES[:1])
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_functions_of_a_method_are_freed_with_their_system(method):
    system = body.__wrapped__().system()
    system.discretize(0.01, method=method).linearize(start(system), np.zeros(system.n_inputs))
    gone = weakref.ref(system.problem)
    del system
    gc.collect()
    assert gone() is None
