"""Momenta in the state in place of velocities: bodies and trees with a free base."""

from functools import cache

import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, SE3, SO3
from lgcontrol.mechanics import (
    Buoyancy,
    Current,
    Gravity,
    JointProperties,
    LinearDrag,
    Multibody,
    RigidBody,
    SpatialInertia,
    WrenchInput,
)
from lgcontrol.systems import check_system

ROUNDING = 1e-12
EXACT = 1e-10  # linearizations through the map, relative

WET = RigidBody(
    "hull",
    SE3,
    SpatialInertia(2.0, [0.1, -0.05, 0.2], np.diag([0.3, 0.2, 0.4])),
    [
        Gravity(),
        Buoyancy(0.0021, [0.0, 0.02, 0.1]),
        LinearDrag(np.diag([1, 2, 3, 0.1, 0.2, 0.3])),
        WrenchInput(("x", "y", "z", "rx", "ry", "rz"), name="jet"),
    ],
    added_mass=np.diag([0.5, 1.0, 1.5, 0.1, 0.1, 0.2]),
    current=Current([0.1, 0.2, 0.0]),
)
SLED = RigidBody("sled", SE2, SpatialInertia.box(3.0, [0.3, 0.2, 0.1]), [LinearDrag(np.eye(6))])


def swimmer():
    """A free base with a ball joint, a damped and sprung joint, in water, thruster on the base."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    ball = SpatialInertia.box(1.0, [0.2, 0.3, 0.4], center_of_mass=[0.1, 0, -0.2])
    drive = JointProperties(damping=0.2, armature=0.1, stiffness=3.0, lower=-2, upper=2, velocity=3)
    tree = Multibody("swimmer").add_body("base", SpatialInertia.box(4.0, [0.5, 0.4, 0.3]), "free")
    tree = tree.add_body("upper", ball, "spherical", "base", [0, 0, -0.2])
    tree = tree.add_body(
        "lower", rod, "revolute", "upper", [0, 0, -0.4], axis="y", properties=drive
    )
    return tree, {
        "inputs": ["upper", "lower"],
        "forces": {"base": [WrenchInput(("x", "rz"), name="jet"), Buoyancy(0.005)]},
        "added_mass": {"base": np.diag([1.0, 1.0, 2.0, 0.1, 0.1, 0.1])},
    }


def pairs():
    tree, options = swimmer()
    arm = models.space_arm_tree()
    return {
        "hull": (WET, {}),
        "sled": (SLED, {"generalized_force": True}),
        "swimmer": (tree, options),
        "arm": (arm, {"inputs": arm.joints}),
    }


PAIRS = pairs()
# Both frames of a body and of a tree with a free base: `test_linearizations_at_rest_agree_exactly`.
every_plant = pytest.mark.parametrize(
    ("name", "frame"),
    [
        *(("hull", "body"), ("hull", "spatial"), ("sled", "body"), ("swimmer", "spatial")),
        *(pytest.param(*case, marks=pytest.mark.thorough)
          for case in (("sled", "spatial"), ("swimmer", "body"))),
    ],
)  # fmt: skip


@cache
def made(name, frame):
    plant, options = PAIRS[name]
    form = plant.velocity_form("momentum", frame=frame, **options)
    return plant.system(**options), plant.system(velocity="momentum", frame=frame, **options), form


@every_plant
def test_it_is_the_same_motion(name, frame):
    """Field, inputs, quantities and limits, with v in the state and with p."""
    plain, system, form = made(name, frame)
    rng = np.random.default_rng(1)
    check_system(system, samples=2)
    assert system.inputs == plain.inputs and system.parameters == plain.parameters
    assert list(system.state.blocks)[1] == "momentum" and system.state == form.state
    x, u = plain.state.random(rng), rng.normal(size=plain.n_inputs)
    y = form.from_velocity(x)
    np.testing.assert_allclose(form.to_velocity(y), x, rtol=0, atol=ROUNDING)
    rate = form.velocity_D_state(y) @ system.f(0.0, y, u)
    expected = plain.f(0.0, x, u)
    np.testing.assert_allclose(rate, expected, rtol=0, atol=EXACT * np.abs(expected).max())
    for key, quantity in plain.quantities.items():
        np.testing.assert_allclose(system.quantities[key](0.0, y, u), quantity(0.0, x, u))
    nq = plain.state.nq - plain.state.dim // 2
    np.testing.assert_allclose(system.quantities["velocity"](0.0, y, u), x[nq:], atol=ROUNDING)
    positions = {k: v for k, v in plain.limits.items() if k in system.state.coordinate_names}
    assert system.limits == positions
    assert len(positions) == (name == "swimmer")


@every_plant
def test_linearizations_agree_through_the_map(name, frame):
    """``T A_p = A_v T − Ṫ`` along a motion; at a motion that T follows, like this, by its rate."""
    plain, system, form = made(name, frame)
    rng = np.random.default_rng(2)
    x, u = plain.state.random(rng), rng.normal(size=plain.n_inputs)
    y = form.from_velocity(x)
    T = form.velocity_D_state(y)
    rate, h = system.f(0.0, y, u), 1e-4
    ways = [form.velocity_D_state(system.state.plus(y, s * h * rate)) for s in (-2, -1, 1, 2)]
    T_rate = (ways[0] - 8 * ways[1] + 8 * ways[2] - ways[3]) / (12 * h)
    ours, expected = system.linearize(y, u), plain.linearize(x, u)
    size = np.abs(expected.A @ T).max() + np.abs(T_rate).max()
    np.testing.assert_allclose(
        T @ ours.B, expected.B, rtol=0, atol=EXACT * np.abs(expected.B).max()
    )
    np.testing.assert_allclose(T_rate + T @ ours.A, expected.A @ T, rtol=0, atol=EXACT * size)


@pytest.mark.usually(name=("hull",))
@pytest.mark.parametrize("name", ["arm", "hull"])
def test_linearizations_at_rest_agree_exactly(name):
    """At an equilibrium T does not move: to 1e-10 without differences."""
    for frame in ("body", "spatial"):
        plain, system, form = made(name, frame)
        if name == "hull":  # neutral and upright in still water
            body = RigidBody(
                "hull",
                SE3,
                SpatialInertia.sphere(2.0, 0.1),
                WET.forces[2:],
                added_mass=WET.added_mass,
            )
            plain = body.system()
            system = body.system(velocity="momentum", frame=frame)
            form = body.velocity_form("momentum", frame=frame)
        x, u = plain.state.identity.copy(), np.zeros(plain.n_inputs)
        x[:3] = [1.0, -2.0, 0.5]
        y = form.from_velocity(x)
        T = form.velocity_D_state(y)
        ours, expected = system.linearize(y, u), plain.linearize(x, u)
        size = np.abs(expected.A).max() + 1
        np.testing.assert_allclose(T @ ours.A, expected.A @ T, rtol=0, atol=EXACT * size)
        np.testing.assert_allclose(T @ ours.B, expected.B, rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", ["arm", "box"])
def test_spatial_momentum_stays_to_the_last_bit(name):
    """Its rate is zero by structure, so any Runge–Kutta method keeps it."""
    if name == "box":
        body = RigidBody("box", SE3, SpatialInertia.box(20.0, [1.0, 2.0, 3.0]))
        system = body.system(velocity="momentum", frame="spatial")
        rows = slice(7, 13)
    else:
        tree = models.space_arm_tree()
        system = tree.system(velocity="momentum", frame="spatial")
        rows = slice(tree.nq, tree.nq + 6)
    x = system.state.random(np.random.default_rng(3))
    x[7 if name == "box" else tree.nq :] *= 0.1
    made = system.rollout(x, None, 0.01, steps=200, method="rk4").x
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(made[:, rows] - made[0, rows], 0.0)


@pytest.mark.thorough
def test_weights_cost_the_same():
    """An MPC with converted weights answers as with velocities."""
    plain, system, form = made("hull", "body")
    x0 = plain.state.identity
    goal = form.from_velocity(x0)
    start = plain.state.plus(x0, 0.05 * np.ones(12))
    options = {"horizon": 5, "dt": 0.1, "R": 0.1}
    Q = np.diag([10.0] * 6 + [1.0] * 6)
    own = form.weights(Q, goal)
    expected = MPC(plain, Q=Q, terminal=Q, **options)(0.0, start, x0)
    found = MPC(system, Q=own, terminal=own, **options)(0.0, form.from_velocity(start), goal)
    # errors of p are M times those of v about the reference, off it up to the square of them
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(form.weights(np.diag(Q), goal), own)


def test_what_is_refused():
    with pytest.raises(KeyError, match="unknown frame 'world'"):
        WET.system(velocity="momentum", frame="world")
    fixed = Multibody("arm").add_body(
        "rod", SpatialInertia.rod(1.0, length=1.0), "revolute", axis="y"
    )
    assert fixed.system(velocity="momentum").state.nq == 2
    with pytest.raises(ValueError, match="arm: spatial momenta are those of a free base"):
        fixed.system(velocity="momentum", frame="spatial")
    with pytest.raises(
        ValueError,
        match='velocity must be "velocity", "momentum" or a UnifiedVelocity, not \'twist\'',
    ):
        fixed.system(velocity="twist")
    with pytest.raises(ValueError, match='"twist", "momentum" or a UnifiedVelocity'):
        RigidBody("top", SO3, SpatialInertia.sphere(1.0, 0.1)).velocity_form("twist")
