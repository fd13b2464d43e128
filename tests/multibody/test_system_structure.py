"""Derivatives in closed form of systems of trees with all that acts on them, by differentiation."""

import numpy as np
import pytest

from lgcontrol.mechanics import (
    Actuators,
    Buoyancy,
    Current,
    Gravity,
    JointProperties,
    LinearDrag,
    Multibody,
    QuadraticDrag,
    RigidBody,
    Spring,
    Thruster,
    WrenchInput,
)

from . import zoo

# Roundings of up to some hundred thousand operations, next to the largest entry.
EXACT = 1e-12

# Files with the bases that they may stand on; "root" is a link that cannot move.
ROBOTS = {
    "borinot_flying_arm_2": ("fixed", "free"),
    "double_pendulum_continuous": ("fixed",),
    "falcon_bravo7_no_ee": ("fixed", "free"),
    "hyq_no_sensors": ("free",),
    "iris": ("free",),
    "panda": ("free",),
    "solo12": ("free",),
    "talos_reduced": ("free",),
    "tiago": ("fixed",),
    "ur5_robot": ("fixed",),
    "z1": ("fixed",),
}


def forces():
    return [
        Buoyancy(2e-2, (0.1, 0.2, 0.1)),
        LinearDrag(np.arange(36.0).reshape(6, 6) / 40 + 3 * np.eye(6)),
        QuadraticDrag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3]),
        Spring(30.0, anchor=[0, 0, 2], rest_length=0.5),
        Actuators([Thruster([0, 1, 0], [1, 1, 0]), Thruster([0, 0, 1], [0, 0, 1])], "thruster"),
        WrenchInput(("x", "rz"), frame="world", name="push"),
    ]


def in_water(tree, rng, **options):
    """Everything at once on the last two links: forces, added mass, current, wrenches."""
    A = rng.normal(size=(6, 6))
    last, other = tree.bodies[-1], tree.bodies[0]
    return tree.system(
        forces={last: forces(), other: forces()[1:3]},
        added_mass={last: 0.1 * A @ A.T, other: np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])},
        current=Current((0.3, -0.2, 0.1), is_input=True),
        wrenches={last: "hybrid", tree.frames[-1]: "spatial", other: "mixed", "world": "body"},
        **options,
    )


@pytest.mark.usually(kind=("free",))
@pytest.mark.parametrize("kind", ["revolute", "universal", "spherical", "planar", "free"])
def test_trees_in_water_with_wrenches(kind, rng, closed_form_error):
    system = in_water(zoo.pair(kind, rng), rng)
    assert not system.structure.is_plain
    assert closed_form_error(system, rng, balance=True) < EXACT


@pytest.mark.usually(make=(zoo.driven,))
@pytest.mark.parametrize("make", [zoo.branched, zoo.driven, zoo.two_roots])
def test_branches_losses_springs_and_mimics(make, rng, closed_form_error):
    tree = make(rng)
    assert tree.system().structure.is_plain and tree.system().structure.model is tree
    assert closed_form_error(tree.system(), rng) < EXACT
    B = rng.normal(size=(tree.nv, 2))
    through = tree.system(input_matrix=B)
    assert np.array_equal(through.structure.input_map(0.0, through.state.random(rng)), B)


def test_symbolic_numbers_of_trees_and_of_what_acts_on_them(rng, closed_form_error):
    tree = zoo.driven(rng).symbolic("a.mass", "a.damping", "ball.center_of_mass", "gravity")
    numbers = (
        "follower.linear_drag.damping",
        "current",
        "a.linear_drag.damping.x.x",
    )
    system = tree.system(
        forces={"follower": forces(), "a": forces()[1:2]},
        added_mass={"follower": np.eye(6)},
        current=Current((0.3, -0.2, 0.1)),
        symbolic=numbers,
    )
    names = system.parameter_names
    assert names[: len(tree.parameters)] == tree.parameters
    assert all(any(name.startswith(number) for name in names) for number in numbers)
    assert closed_form_error(system, rng, samples=2) < EXACT
    fixed = zoo.driven(np.random.default_rng(20120531)).system(
        forces={"follower": forces(), "a": forces()[1:2]},
        added_mass={"follower": np.eye(6)},
        current=Current((0.3, -0.2, 0.1)),
    )
    x, u = system.state.random(rng), rng.normal(size=system.n_inputs)
    np.testing.assert_allclose(system.f(0.0, x, u), fixed.f(0.0, x, u), rtol=1e-11, atol=1e-11)
    with pytest.raises(KeyError, match="unknown parameter .follower.added_mass.x.x"):
        tree.system(
            added_mass={"follower": np.eye(6)},
            current=Current(),
            symbolic=["follower.added_mass.x.x"],
        )
    with pytest.raises(KeyError, match="follower.linear_drag"):
        tree.system(forces={"follower": forces()}, symbolic=["follower.drag"])


def test_losses_are_what_damping_and_friction_take(rng):
    tree = zoo.driven(rng)
    system = tree.system()
    free = tree.with_properties(
        **{
            link.joint_name: JointProperties(
                armature=link.properties.armature,
                stiffness=link.properties.stiffness,
                rest=link.properties.rest,
            )
            for link in map(tree.link, tree.links)
        }
    ).system()
    assert free.structure.loss_jacobian is None
    x, a, u = system.state.random(rng), rng.normal(size=tree.nv), rng.normal(size=system.n_inputs)
    with_losses, without = (
        s.structure.balance_derivatives(0.0, x, a, u)[0][:, tree.nv :] for s in (system, free)
    )
    D = system.structure.loss_jacobian(x)
    assert D == pytest.approx(without - with_losses, abs=1e-12)
    assert np.linalg.eigvalsh(D)[0] > 0


def test_two_forces_of_a_link_have_two_names():
    tree = Multibody().add_body("hull", zoo.random_inertia(np.random.default_rng(0)), "free")
    with pytest.raises(ValueError, match="hull: two forces are called 'linear_drag'"):
        tree.system(forces={"hull": [LinearDrag(np.ones(6)), LinearDrag(np.ones(6))]})
    with pytest.raises(TypeError, match="is not a Force"):
        tree.system(forces={"hull": [Buoyancy]})


def test_a_tree_of_one_body_has_the_derivatives_of_the_body(rng):
    inertia = zoo.random_inertia(rng)
    A = rng.normal(size=(6, 6))
    water = {"added_mass": A @ A.T, "current": Current((0.3, -0.2, 0.1), is_input=True)}
    body = RigidBody("hull", zoo.SE3, inertia, [Gravity(), *forces()], **water).system()
    tree = Multibody().add_body("hull", inertia, "free")
    ours = tree.system(
        forces={"hull": forces()}, added_mass={"hull": A @ A.T}, current=water["current"]
    )
    x, u = body.state.random(rng), rng.normal(size=body.n_inputs)
    for one, other in zip(body.derivatives(0.0, x, u), ours.derivatives(0.0, x, u), strict=True):
        assert one == pytest.approx(other, abs=1e-11 * np.abs(one).max())


@pytest.mark.usually(name=("borinot_flying_arm_2",), base=("free",))
@pytest.mark.parametrize(
    ("name", "base"), [(name, base) for name, bases in ROBOTS.items() for base in bases]
)
def test_robots_with_the_losses_of_their_files(name, base, robot_file, rng, closed_form_error):
    path = robot_file(f"{name}.urdf")
    tree = Multibody.from_urdf(path, base=base, on_finding="ignore")
    system = tree.system(
        wrenches={tree.bodies[-1]: "hybrid"},
        forces={tree.bodies[0]: [LinearDrag(np.ones(6)), QuadraticDrag(np.ones(6))]},
        current=Current((0.3, -0.2, 0.1), is_input=True),
    )
    assert closed_form_error(system, rng, balance=True, samples=2) < EXACT
    if tree.nv < 8:
        assert closed_form_error(tree.system(), rng, samples=2) < EXACT
