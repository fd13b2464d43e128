"""Trees at given numbers are those of the symbolic functions."""

import numpy as np
import pytest

from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia

from . import zoo

ROUNDING = 1e-12


def names_of(tree):
    joints = [
        f"{link.joint_name}.{key}"
        for link in map(tree.link, tree.moving_links)
        for key in ("placement",)
    ]
    return [*tree.bodies, *joints, "gravity"]


@pytest.mark.usually(kind=("universal",))
@pytest.mark.parametrize("kind", ["revolute_any", "helical", "spherical", "universal", "composite"])
def test_functions_at_the_numbers(kind, rng):
    plain = zoo.pair(kind, rng)
    tree = plain.symbolic(*names_of(plain))
    p = tree.parameter_values + rng.uniform(0, 0.01, len(tree.parameters))
    fixed = tree.with_parameters(p)
    assert fixed.parameters == tree.parameters
    q, v, a, _, _ = zoo.state(tree, rng, (5,))
    expected = tree.inverse_dynamics(q, v, a, p=p)
    assert np.allclose(fixed.inverse_dynamics(q, v, a), expected, rtol=ROUNDING, atol=1e-11)
    assert not np.allclose(tree.inverse_dynamics(q, v, a), expected, rtol=1e-4)
    frame = tree.bodies[-1]
    assert np.allclose(fixed.placement(frame)(q), tree.placement(frame)(q, p=p), atol=ROUNDING)
    named = plain.with_parameters(dict(zip(tree.parameters, p, strict=True)))
    assert np.allclose(named.inverse_dynamics(q, v, a), expected, rtol=ROUNDING, atol=1e-11)


def test_properties_of_joints_and_symbols_that_stay(rng):
    tree = zoo.driven(rng)
    joint = tree.joints[0]
    mixed = tree.symbolic(f"{joint}.damping", f"{joint}.armature", "gravity.z")
    damping = [name for name in mixed.parameters if "damping" in name]
    changed = mixed.with_parameters(dict.fromkeys(damping, 0.7))
    assert changed.parameters == mixed.parameters  # a symbol stays one
    p = np.array(
        [
            0.7 if n in damping else x
            for n, x in zip(mixed.parameters, mixed.parameter_values, strict=True)
        ]
    )
    q, v, a, _, _ = zoo.state(tree, rng, ())
    assert np.allclose(changed.inverse_dynamics(q, v, a), mixed.inverse_dynamics(q, v, a, p=p))


def test_nothing_changes_without_changes(rng):
    tree = zoo.driven(rng)
    everything = tree.symbolic(*tree.bodies)
    same = everything.with_parameters(everything.parameter_values)
    assert same.links == tree.links
    assert all(same.link(name) is tree.link(name) for name in tree.links)


def test_frames_and_results_belong_to_the_numbers():
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = (
        Multibody().add_body("rod", rod, "revolute", axis="y").add_frame("tip", "rod", [0, 0, -1])
    )
    heavy = tree.with_parameters({"rod.mass": 5.0, "rod.placement.x": 1.0})
    assert heavy.mass == 5.0
    assert heavy.position("tip")([0.0]).tolist() == [1.0, 0.0, -1.0]
    assert dict(zip(heavy.base_parameters().names, heavy.base_parameters().values, strict=True))[
        "rod.mc.z"
    ] == pytest.approx(-2.5)


def test_wrong_numbers_are_refused():
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = Multibody().add_body("rod", rod, "revolute", properties=JointProperties(damping=1.0))
    with pytest.raises(KeyError, match="Did you mean 'rod.mass'"):
        tree.with_parameters({"rod.mas": 1.0})
    with pytest.raises(ValueError, match=r"'rod.damping' = -1 is outside its range \[0, inf\]"):
        tree.with_parameters({"rod.damping": -1.0})
    with pytest.raises(ValueError, match="not finite"):
        tree.with_parameters({"rod.mass": np.nan})
    with pytest.raises(ValueError, match="shape"):
        tree.symbolic("rod.mass").with_parameters([1.0, 2.0])
    with pytest.raises(ValueError, match=r"'rod.mass' = -1 kg is outside its range \[0, inf\] kg"):
        tree.with_parameters({"rod.mass": -1.0})
    with pytest.raises(ValueError, match=r"'rod.mass' = -1 kg"):
        tree.symbolic("rod.mass").with_parameters([-1.0])
    with pytest.warns(UserWarning, match="inertia"):
        tree.with_parameters({"rod.inertia.xx": 100.0})


def test_old_spellings_name_the_new_ones():
    tree = Multibody().add_body("rod", SpatialInertia.sphere(1.0, 0.1), "revolute")
    with pytest.raises(KeyError, match="'rod.com.x' is called 'rod.center_of_mass.x' here"):
        tree.symbolic("rod.com.x")
    with pytest.raises(KeyError, match="'gravity.acceleration.z' is called 'gravity.z' here"):
        tree.with_parameters({"gravity.acceleration.z": -1.6})
