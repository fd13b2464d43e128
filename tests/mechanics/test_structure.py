"""What systems of bodies carry: their structure, and derivatives in closed form."""

import pickle
from functools import cache

import numpy as np
import pytest

import lgcontrol.models as models
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import (
    Actuators,
    BodyWrench,
    Buoyancy,
    Current,
    Gravity,
    GyroscopicWheels,
    Gyrostat,
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

from ._bodies import GROUPS, USUAL, name_of, random_inertia, random_matrix

# Models of one kind of structure each: a body, wheels, an arm, a base, water.
pytestmark = pytest.mark.usually(
    group=USUAL, name=("heavy_top", "quadrotor", "satellite", "scara", "underwater_vehicle")
)

# Roundings of a few thousand operations, next to the largest entry.
EXACT = 1e-12

MODELS = (
    *(
        (name, {})
        for name in (
            "free_box",
            "heavy_top",
            "panda",
            "pick_and_place_head",
            "quadrotor",
            "satellite",
            "scara",
            "space_arm",
            "surface_vessel",
            "underwater_vehicle",
            "underwater_vehicle_arm",
            "ur5",
        )
    ),
    ("satellite", {"wheels": True}),
    ("quadrotor", {"drag": (0.1, 0.1, 0.2, 0.01, 0.01, 0.01), "symbolic": ("mass", "inertia")}),
    ("satellite", {"wheels": True, "symbolic": ("inertia",)}),
    ("underwater_vehicle", {"current": (0.3, -0.1, 0.05), "symbolic": ("added_mass", "current")}),
    ("surface_vessel", {"symbolic": ("drag", "center_of_mass.x")}),
    ("heavy_top", {"torques": True, "symbolic": ("center_of_mass", "gravity")}),
    ("scara", {"symbolic": ("tool.mass", "slide.damping", "bend.armature", "gravity.z")}),
)


@cache
def nominal(name):
    return getattr(models, name)()


def every_force():
    rotors = [Rotor([0.1, 0.2, 0.3], torque_coefficient=0.02), Thruster([1, 0, 0], [0, 1, 1])]
    return (
        Gravity((1.0, 2.0, -9.0)),
        Buoyancy(0.02, [0.1, 0.2, 0.3]),
        LinearDrag(np.arange(36.0).reshape(6, 6) / 40 + 3 * np.eye(6)),
        QuadraticDrag([1.0, 2, 3, 4, 5, 6]),
        Spring(3.0, [1, 2, 3], [0.1, 0.2, 0.3], rest_length=0.7),
        BodyWrench([1, 2, 3, 4, 5, 6], [0.3, 0.2, 0.1]),
        WorldWrench([1, 2, 3, 4, 5, 6], [0.3, 0.2, 0.1]),
        Actuators(rotors, "rotor"),
        WrenchInput(frame="world", point=(0.1, 0.0, 0.2), name="push"),
    )


@pytest.mark.parametrize(
    ("name", "options"), MODELS, ids=[f"{name}{'-' * bool(o)}{'-'.join(o)}" for name, o in MODELS]
)
def test_derivatives_of_models_are_those_of_differentiation(name, options, rng, closed_form_error):
    system = getattr(models, name)(**options) if options else nominal(name)
    assert closed_form_error(system, rng) < EXACT
    assert closed_form_error(system, rng, balance=True, samples=1) < EXACT


@pytest.mark.parametrize("group", GROUPS, ids=name_of)
@pytest.mark.filterwarnings("ignore:.*controls along axes that")
def test_derivatives_of_bodies_with_every_force(group, rng, closed_form_error):
    body = RigidBody(
        "body",
        group,
        random_inertia(rng),
        every_force(),
        added_mass=random_matrix(rng, 6),
        current=Current((0.3, -0.2, 0.1), is_input=True),
    )
    assert closed_form_error(body.system(generalized_force=True), rng) < EXACT
    if group not in (SE3, GROUPS[2]):
        return
    symbolic = body.symbolic("mass", "linear_drag.damping", "added_mass", "current", "push")
    assert closed_form_error(symbolic.system(), rng, samples=1) < EXACT
    wheels = GyroscopicWheels(rng.normal(size=(4, 3)), 1e-3, friction=0.01)
    assert closed_form_error(Gyrostat(body, wheels).system(), rng, samples=1) < EXACT


def structure_holds(system, rng):
    """M v̇ = F and F by the inputs, from what the field does."""
    x, u = system.state.random(rng), rng.normal(size=system.n_inputs)
    at = system.state.tangent_slice(system.structure.velocity)
    M, F = system.structure.mass_matrix(x), system.structure.force(0.0, x, u)
    a = system.f(0.0, x, u)[at]
    np.testing.assert_allclose(M @ a, F, atol=1e-9 * np.abs(M).max() * (1 + np.abs(a).max()))
    B = system.structure.input_map(0.0, x, u)
    step = 0.5 * np.eye(system.n_inputs)
    there = system.structure.force(0.0, x, u + step)
    back = system.structure.force(0.0, x, u - step)
    return np.abs((there - back).T - B).max(initial=0.0) / np.abs(B).max(initial=1.0)


@pytest.mark.parametrize("name", [name for name, options in MODELS if not options])
def test_structure_is_that_of_the_field(name, rng):
    system = nominal(name)
    # The current, an input too, does not act linearly.
    linear = not name.startswith("underwater")
    assert structure_holds(system, rng) < (1e-12 if linear else np.inf)
    assert next(iter(system.state.blocks)) == system.structure.configuration


@pytest.mark.thorough
def test_plain_systems_are_those_with_nothing_but_weight_and_constant_inputs():
    plain = {name: nominal(name).structure.is_plain for name, options in MODELS if not options}
    others = {"underwater_vehicle", "underwater_vehicle_arm", "surface_vessel", "quadrotor"}
    assert {name for name, yes in plain.items() if not yes} == others | {"pick_and_place_head"}
    ball = SpatialInertia.sphere(2.0, 0.1)
    pushed = RigidBody("ball", SE3, ball, [Gravity(), WrenchInput()])
    assert pushed.system(generalized_force=True).structure.is_plain
    for other in every_force()[1:7]:
        assert not pushed.with_forces(other).system().structure.is_plain, other.name
    turned = pushed.with_forces(WrenchInput(frame="world", name="push"))
    assert not turned.system().structure.is_plain
    worn = RigidBody("ball", SE3, ball, [Actuators([Rotor([1, 0, 0])], "rotor")])
    assert worn.system().structure.is_plain
    assert not worn.symbolic("rotor.gain").system().structure.is_plain
    in_wind = RigidBody("ball", SE3, ball, [Gravity()], current=(1.0, 0.0, 0.0))
    assert not in_wind.system().structure.is_plain


def test_structure_knows_the_body_it_was_made_of():
    body = RigidBody("ball", SO3, SpatialInertia.sphere(2.0, 0.1))
    structure = body.system().structure
    assert structure.model is body and structure.loss_jacobian is None
    assert (structure.configuration, structure.velocity) == ("pose", "twist")
    wheels = Gyrostat(body, GyroscopicWheels([[0.0, 0.0, 1.0]], 1e-3))
    assert wheels.system().structure.model is wheels


def test_structure_pickles(rng):
    system = models.underwater_vehicle()
    copy = pickle.loads(pickle.dumps(system))
    x, u, a = system.state.random(rng), rng.normal(size=system.n_inputs), rng.normal(size=6)
    for ours, other in zip(
        system.structure.balance_derivatives(0.0, x, a, u),
        copy.structure.balance_derivatives(0.0, x, a, u),
        strict=True,
    ):
        assert np.array_equal(ours, other)


BUDGETS = {
    "panda": 5_750,
    "ur5": 2_930,
    "quadrotor": 390,
    "underwater_vehicle": 1_170,
    "space_arm": 15_000,
    "underwater_vehicle_arm": 22_300,
}


@pytest.mark.usually(name=BUDGETS)
@pytest.mark.parametrize(("name", "budget"), BUDGETS.items())
def test_derivatives_keep_within_their_operations(name, budget):
    """Counted: accelerations and both derivatives, every zero of the results stored."""
    assert nominal(name).derivatives.function.n_instructions() <= budget
