"""Robot files: masses, degrees of freedom, kinematics, limits, couplings, base kinds."""

import warnings

import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3
from lgcontrol.io import RobotDescription, UrdfError, parse_urdf, read_urdf
from lgcontrol.io._internal import JointDescription, LinkDescription
from lgcontrol.mechanics import Joint, Multibody

FILES = {
    "borinot_flying_arm_2": 2,
    "double_pendulum_continuous": 2,
    "falcon_bravo7_no_ee": 6,
    "hyq_no_sensors": 12,
    "iris": 4,
    "panda": 8,
    "solo12": 12,
    "talos_reduced": 32,
    "tiago": 48,
    "ur5_robot": 6,
    "z1": 7,
}
EXACT = 1e-9
# Operations of the derivatives of a humanoid's inverse dynamics on a free base.
MOST_OPERATIONS = 30_173


def robot(robot_file, name, **options):
    path = robot_file(f"{name}.urdf")
    return read_urdf(path), Multibody.from_urdf(path, on_finding="ignore", **options)


@pytest.mark.usually(name=set(FILES) - {"talos_reduced", "tiago"})
@pytest.mark.parametrize("name", FILES)
def test_file_gives_the_tree_it_describes(name, rng, robot_file):
    description, tree = robot(robot_file, name)
    assert tree.nv == FILES[name]
    moving = [link.name for link in map(tree.link, tree.links) if not link.joint.is_fixed]
    assert tree.bodies == tuple(moving)
    assert set(tree.frames) >= {link.name for link in description.links}
    standing = sum(
        description.link(link.name).mass
        for link in map(tree.link, tree.links)
        if _is_on_world(tree, link)
    )
    if description.root == "world":
        standing += description.link("world").mass
    assert tree.mass + standing == pytest.approx(description.mass)
    limits = tree.limits
    velocities = tree.configuration.tangent_slice
    for joint, block in zip(tree.joints, tree.configuration.blocks, strict=True):
        at = velocities(block).start
        own = description.joint(joint).limits
        if own.effort is not None:
            assert limits["effort"][at] == own.effort
        if own.lower is not None and not tree.is_coupled:
            assert limits["lower"][at] == own.lower and limits["upper"][at] == own.upper
    _check_kinematics(description, tree, rng)


def _is_on_world(tree, link):
    by_name = {other.name: other for other in map(tree.link, tree.links)}
    while link.joint.is_fixed:
        if link.parent == "world":
            return True
        link = by_name[link.parent]
    return False


def _check_kinematics(description, tree, rng):
    """Every link's pose against plain products of 4 × 4 matrices from the file."""
    q = tree.configuration.random(rng)
    T = {description.root: np.eye(4)}
    waiting = list(description.children(description.root))
    while waiting:
        joint = waiting.pop()
        T[joint.child] = T[joint.parent] @ joint.origin.matrix @ _motion(joint, tree, q)
        waiting.extend(description.children(joint.child))
    for link, pose in T.items():
        ours = SE3.homogeneous(tree.placement(link)(q))
        assert np.abs(ours - pose).max() < EXACT, link


def _motion(joint, tree, q):
    if joint.freedom == 0:
        return np.eye(4)
    mimic = joint.mimic
    blocks = dict(zip(tree.joints, tree.configuration.blocks, strict=True))
    at = tree.configuration.coordinate_slice(blocks[mimic.joint if mimic else joint.name])
    value = q[at]
    if mimic:
        value = mimic.multiplier * value + mimic.offset
    angle = np.arctan2(value[1], value[0]) if len(value) == 2 else value[0]
    axis = np.array(joint.axis)
    if joint.type == "prismatic":
        return SE3.homogeneous(SE3.from_position(axis * angle))
    return SE3.homogeneous(SE3.from_rotation_vector(axis * angle))


@pytest.mark.usually(name=set(FILES) - {"talos_reduced", "tiago"})
@pytest.mark.parametrize("name", sorted(set(FILES) - {"ur5_robot", "z1"}))
def test_floating_base_carries_the_whole_mass(name, robot_file):
    description, tree = robot(robot_file, name, base="free")
    assert tree.nv == FILES[name] + 6 and tree.joints[0] == "root_joint"
    assert tree.mass == pytest.approx(description.mass)


def test_panda_fingers_move_together(robot_file):
    _, tree = robot(robot_file, "panda")
    q = tree.neutral
    q[tree.joints.index("panda_finger_joint1")] = 0.03
    hand = tree.placement("panda_hand")(q)
    left, right = (
        SE3.act(SE3.inverse(hand), tree.position(f"panda_{side}finger")(q))
        for side in ("left", "right")
    )
    assert left == pytest.approx([0, 0.03, 0.0584], abs=1e-12)
    assert right == pytest.approx([0, -0.03, 0.0584], abs=1e-12)
    _, alone = robot(robot_file, "panda", mimic=False)
    assert alone.nv == 9 and not alone.is_coupled


def test_losses_of_a_file_can_be_left_out(robot_file):
    with_losses, without = (robot(robot_file, "panda", losses=k)[1] for k in (True, False))
    q, v = with_losses.neutral, np.ones(with_losses.nv)
    difference = with_losses.bias_forces(q, v) - without.bias_forces(q, v)
    assert difference[:7] == pytest.approx(0.003 * np.ones(7))  # the file's damping


def test_base_may_be_any_joint(robot_file):
    path = robot_file("double_pendulum_continuous.urdf")
    tree = Multibody.from_urdf(path, base=SE2, on_finding="ignore")
    assert tree.configuration.blocks["root_joint"] == SE2
    tree = Multibody.from_urdf(path, base=Joint.of("universal"), on_finding="ignore")
    assert tree.nv == 4
    _, freed = robot(robot_file, "ur5_robot", base="free")  # its massless root "world" is left out
    assert freed.nv == 12 and "base_link" in freed.links


def test_locked_joints_are_held(robot_file):
    _, tree = robot(robot_file, "panda", locked={"panda_finger_joint1": 0.02})
    assert tree.nv == 7
    _, free = robot(robot_file, "panda")
    q = np.linspace(-1, 1, 7)
    full = np.append(q, 0.02)
    expected = free.placement("panda_rightfinger")(full)
    assert tree.placement("panda_rightfinger")(q) == pytest.approx(expected, abs=1e-12)


BROKEN = """<robot name="broken"><link name="base"/>
<link name="arm"><inertial><mass value="-1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="5"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


def test_inertias_no_body_has_are_reported_by_link():
    description = parse_urdf(BROKEN)
    with pytest.warns(UserWarning, match="arm"):
        Multibody.from_urdf(description)
    with pytest.raises(UrdfError, match="arm"):
        Multibody.from_urdf(description, on_finding="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = Multibody.from_urdf(description, on_finding="ignore")
    assert tree.mass == -1.0
    with pytest.raises(ValueError, match="unknown value of on_finding 'silent'"):
        Multibody.from_urdf(description, on_finding="silent")  # pyright: ignore


def test_descriptions_made_in_code_are_judged_too():
    """What the reader would have found is reported, and found once for those that were read."""
    read = parse_urdf(BROKEN)
    made = RobotDescription(read.name, read.links, read.joints)
    assert made.findings == ()
    with pytest.raises(UrdfError, match='link "arm" <inertial>: the mass -1 kg is negative'):
        Multibody.from_urdf(made, on_finding="raise")
    with pytest.warns(UserWarning, match="broken: 2 findings"):
        Multibody.from_urdf(read)


def test_a_joint_made_in_code_is_named_where_it_is_none():
    links = LinkDescription("base"), LinkDescription("arm")
    hinge = JointDescription("hinge", "continuous", "base", "arm", axis=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="joint 'hinge': axis must not be zero"):
        Multibody.from_urdf(RobotDescription("r", links, (hinge,)), on_finding="ignore")


def test_signs_that_cannot_be_meant(recwarn):
    """Reported; then losses count as none and magnitudes as what they measure."""
    text = BROKEN.replace('"-1"', '"1"').replace('izz="5"', 'izz="1"')
    limits = '<limit effort="-5" velocity="-2"/><dynamics damping="-0.1" friction="-1"/></joint>'
    description = parse_urdf(text.replace("</joint>", limits), source="file.urdf")
    with pytest.raises(UrdfError, match=r"^file\.urdf:4: 4 findings"):
        Multibody.from_urdf(description, on_finding="raise")
    with pytest.warns(UserWarning, match="damping -0.1 is negative and adds energy"):
        Multibody.from_urdf(description)
    tree = Multibody.from_urdf(description, on_finding="ignore")
    assert tree.limits["effort"] == [5.0] and tree.limits["velocity"] == [2.0]
    (drive,) = (link.properties for link in map(tree.link, tree.moving_links))
    assert drive.damping == 0.0 and drive.friction == 0.0


def test_a_text_is_no_file_name():
    with pytest.raises(UrdfError, match="parse_urdf reads text"):
        Multibody.from_urdf(BROKEN)


def test_massless_links_stay_massless():
    text = """<robot name="r"><link name="base"/><link name="arm"/>
    <joint name="hinge" type="continuous">
    <parent link="base"/><child link="arm"/></joint></robot>"""
    tree = Multibody.from_urdf(parse_urdf(text), on_finding="ignore")
    assert tree.mass == 0.0
    with pytest.raises(ValueError, match="joint 'hinge'"):
        _ = tree.forward_dynamics


def test_every_type_of_the_format_becomes_a_joint(rng):
    text = """<robot name="r"><link name="world_link"/>
    {links}{joints}</robot>"""
    kinds = {
        "revolute": ('<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="2" velocity="3"/>', 1),
        "prismatic": (
            '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="2" velocity="3"/>',
            1,
        ),
        "continuous": ('<axis xyz="1 0 0"/>', 1),
        "planar": ('<axis xyz="0 0 1"/>', 3),
        "floating": ("", 6),
        "fixed": ("", 0),
    }
    links = "".join(
        f'<link name="{k}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
        'iyz="0" izz="1"/></inertial></link>'
        for k in kinds
    )
    joints = "".join(
        f'<joint name="j_{k}" type="{k}"><parent link="world_link"/><child link="{k}"/>{x}</joint>'
        for k, (x, _) in kinds.items()
    )
    tree = Multibody.from_urdf(parse_urdf(text.format(links=links, joints=joints)))
    sizes = {link.joint_name: link.joint.dim for link in map(tree.link, tree.links)}
    assert all(sizes[f"j_{kind}"] == dim for kind, (_, dim) in kinds.items())
    assert tree.forward_dynamics(*_at_rest(tree)).shape == (tree.nv,)


def _at_rest(tree):
    return tree.neutral, np.zeros(tree.nv), np.zeros(tree.nv)


def test_derivatives_of_a_humanoid_keep_within_their_operations(robot_file):
    _, tree = robot(robot_file, "talos_reduced", base="free", losses=False)
    assert tree.nv == 38
    assert tree.inverse_dynamics_derivatives.instructions <= MOST_OPERATIONS
