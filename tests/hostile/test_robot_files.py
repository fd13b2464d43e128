"""Robot files that a newcomer brings: mimics in any order, worlds as roots, other units."""

import re
import warnings

import numpy as np
import pytest

from lgcontrol import Multibody
from lgcontrol.io import UrdfError, parse_urdf
from lgcontrol.io._internal import find_faults

INERTIA = '<inertia ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"/>'


def link(name, mass: float | None = 1.0, moment=1.0, at="0 0 0"):
    if mass is None:
        return f'<link name="{name}"/>'
    return (
        f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/>'
        f"{INERTIA.format(moment)}</inertial></link>"
    )


def joint(name, parent, child, kind="continuous", inside="", at="0 0 0"):
    axis = '<axis xyz="0 0 1"/>' if kind != "fixed" else ""
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{at}"/><parent link="{parent}"/>'
        f'<child link="{child}"/>{axis}{inside}</joint>'
    )


def robot(*parts):
    return parse_urdf(f'<robot name="r">{"".join(parts)}</robot>')


def mimic(leader, multiplier):
    return f'<mimic joint="{leader}" multiplier="{multiplier}" offset="0.1"/>'


FOLLOWERS = {
    "behind its leader": ("b a", ""),
    "before its leader": ("a b", ""),
    "a chain, backwards": ("c a b", mimic("a", 3)),
}


@pytest.mark.parametrize("case", FOLLOWERS)
def test_mimics_stand_in_any_order(case):
    order, third = FOLLOWERS[case]
    inside = {"a": mimic("b", 2), "b": "", "c": third}
    joints = [joint(k, "base", f"link_{k}", inside=inside[k]) for k in order.split()]
    tree = Multibody.from_urdf(
        robot(link("base"), *(link(f"link_{k}") for k in order.split()), *joints)
    )
    moving = 1 + 2**2 + (6**2 if "c" in order else 0)  # unit moments by the ratios squared
    np.testing.assert_allclose(tree.mass_matrix([0.3]), [[moving]], rtol=1e-14)


@pytest.mark.parametrize("leader", ["nobody", "a"])
def test_leaders_that_do_not_exist_or_are_the_follower_are_named(leader):
    with pytest.raises(UrdfError, match=rf'joint "a".*{leader}'):
        robot(link("base"), link("l"), joint("a", "base", "l", inside=mimic(leader, 2)))


def arm(world=None, kind="fixed", more=""):
    parts = [link("world", world), link("base"), link("tip")]
    return robot(
        *parts, more, joint("stand", "world", "base", kind, at="0 0 1"), joint("j", "base", "tip")
    )


@pytest.mark.parametrize("name", ["z1.urdf", "ur5_robot.urdf"])
def test_arms_whose_root_is_the_world_get_a_free_base(name, robot_file):
    path = robot_file(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fixed, free = Multibody.from_urdf(path), Multibody.from_urdf(path, base="free")
    assert free.nv == fixed.nv + 6
    q = fixed.configuration.random(1)
    below = free.mass_matrix(np.concatenate([[0, 0, 0, 0, 0, 0, 1], q]))[6:, 6:]
    np.testing.assert_allclose(below, fixed.mass_matrix(q), rtol=1e-12, atol=1e-12)


def test_a_world_without_mass_is_left_out_where_the_base_moves():
    tree = Multibody.from_urdf(arm(), base="free")
    assert tree.joints == ("root_joint", "j") and tree.nv == 7
    assert Multibody.from_urdf(arm(), base="free", root="ground").nv == 7
    assert Multibody.from_urdf(arm(1.0), base="free", root="ground").nv == 7
    assert Multibody.from_urdf(arm()).nv == 1


REFUSED = {
    "it has mass": (lambda: arm(1.0), {}, r"'world' and has mass.*root=\"base\""),
    "its joint moves": (lambda: arm(kind="continuous"), {}, "the joint 'stand', which moves"),
    "two stand on it": (
        lambda: arm(more=link("other") + joint("second", "world", "other", "fixed")),
        {},
        "carries 2 joints",
    ),
    "the new name is taken": (arm, {"root": "tip"}, "root='tip': the name is taken"),
    "the new name is the world": (lambda: robot(link("a")), {"root": "world"}, "is taken"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_roots_that_cannot_move_say_why(case):
    make, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        Multibody.from_urdf(make(), base="free", **options)


UNITS = {
    "a mass of 1e308": (lambda: link("l", 1e308, 1e300), r"1e\+308 kg is more than any robot has"),
    "kg mm²": (lambda: link("l", 2.0, 4e5), r"radius of gyration is 447\.2 m .* kg mm²"),
    "a kilometre": (lambda: link("l", 1.0, 1e6), "radius of gyration is 1000 m"),
    "a center in mm": (lambda: link("l", at="0 250 0"), "center of mass is 250 m away"),
}


@pytest.mark.parametrize("case", UNITS)
def test_units_that_no_robot_has_are_findings(case):
    make, message = UNITS[case]
    described = robot(link("base"), make(), joint("j", "base", "l"))
    for findings in (described.findings, find_faults(described)):
        (found,) = [entry for entry in findings if entry.severity == "warning"]
        assert re.search(message, found.message)
        assert found.element and found.element.startswith('link "l"')
    with pytest.warns(UserWarning, match="1 findings"):
        Multibody.from_urdf(described)


def test_distances_in_other_units_are_findings():
    far = robot(link("base"), link("l"), joint("j", "base", "l", at="0 0 333"))
    assert "joint's origin is 333 m away; lengths are in m: was it mm?" in str(far.findings[0])
    assert not robot(link("base"), link("l"), joint("j", "base", "l", at="0 0 30")).findings
