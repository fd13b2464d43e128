"""What a URDF file says is what the description holds."""

import math
import pickle

import numpy as np
import pytest

from lgcontrol.io import RobotDescription, UrdfError, parse_urdf, read_urdf
from lgcontrol.io._internal import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    InertialDescription,
    JointDescription,
    JointDynamics,
    JointLimits,
    JointMimic,
    LinkDescription,
    MeshShape,
    Origin,
    Shape,
    SphereShape,
)

# Products of cosines and sines of exact angles.
ROUNDING = 1e-15


@pytest.fixture
def arm(urdf_data):
    return read_urdf(urdf_data / "arm.urdf")


def test_robot(arm, urdf_data):
    assert arm.name == "arm"
    assert arm.root == "stand"
    assert arm.source == urdf_data / "arm.urdf"
    assert arm.findings == ()
    assert arm.mass == pytest.approx(3.5 + 1.25 + 0.05 + 0.05, abs=1e-15)
    assert [link.name for link in arm.links] == [
        *("stand", "upper_arm", "forearm", "tool_frame", "left_finger", "right_finger")
    ]
    assert repr(arm) == (
        '<RobotDescription "arm": 6 links, 5 joints (1 continuous, 1 revolute, 2 prismatic, '
        '1 fixed), 4.85 kg, root "stand">'
    )


def test_children_come_in_file_order(arm):
    assert [joint.name for joint in arm.children("tool_frame")] == ["right_slide", "left_slide"]
    assert arm.children("left_finger") == ()


def test_links_without_inertial_stay_massless(arm):
    assert arm.link("tool_frame") == LinkDescription("tool_frame")
    assert arm.link("tool_frame").inertial is None
    assert arm.link("tool_frame").mass == 0.0


def test_inertial(arm):
    inertial = arm.link("forearm").inertial
    assert inertial.mass == 1.25
    assert inertial.line == 28
    assert inertial.origin.xyz == (0.0, 0.0, 0.2)
    np.testing.assert_array_equal(
        inertial.inertia, [[0.017, 1e-4, -2e-5], [1e-4, 0.017, 5e-6], [-2e-5, 5e-6, 0.0008]]
    )


def test_joint(arm):
    assert arm.joint("shoulder") == JointDescription(
        "shoulder",
        "continuous",
        "stand",
        "upper_arm",
        Origin((0.0, 0.0, 1.0), (0.0, 0.0, math.pi / 2)),
        (0.0, 1.0, 0.0),
        JointLimits(effort=80.0, velocity=2.0),
        JointDynamics(damping=0.7, friction=0.1),
    )
    assert arm.joint("shoulder").line == 60
    assert arm.joint("elbow").limits == JointLimits(-2.4, 2.4, 3.0, 40.0)
    assert arm.joint("elbow").axis == (0.6, 0.8, 0.0)


def test_fixed_joints_have_no_axis(arm):
    assert arm.joint("tool").axis is None
    assert arm.joint("tool").freedom == 0


def test_shapes(arm):
    upper, forearm = arm.link("upper_arm"), arm.link("forearm")
    lifted = Origin((0.0, 0.0, 0.25))
    assert upper.visuals == (Shape(CylinderShape(0.04, 0.5), lifted, "tube", (0.6, 0.6, 0.7, 1.0)),)
    assert upper.collisions == (Shape(BoxShape((0.08, 0.08, 0.5)), lifted),)
    mesh, ball = forearm.visuals
    assert mesh.geometry == MeshShape("package://arm/meshes/forearm.stl", (0.001, 0.001, 0.001))
    assert ball.geometry == SphereShape(0.05)
    # The second visual names the material that the first defines.
    assert mesh.color == ball.color == (1.0, 0.0, 0.0, 1.0)


def test_unknown_names_list_the_known_ones(arm):
    with pytest.raises(KeyError, match=r'no link "forarm" \(did you mean "forearm"\?\).*"stand"'):
        arm.link("forarm")
    with pytest.raises(KeyError, match='no joint "wrist".*"shoulder"'):
        arm.joint("wrist")
    with pytest.raises(KeyError, match='no link "elbow"'):
        arm.children("elbow")


def test_axis_defaults_to_x():
    robot = parse_urdf(two_links('<joint name="j" type="continuous">'))
    assert robot.joint("j").axis == (1.0, 0.0, 0.0)


def test_joint_types(urdf_data):
    robot = read_urdf(urdf_data / "joint_types.urdf")
    expected = {
        "fixed": ("fixed", 0, None),
        "revolute": ("revolute", 1, (1.0, 0.0, 0.0)),
        "continuous": ("continuous", 1, (1.0, 0.0, 0.0)),
        "prismatic": ("prismatic", 1, (0.0, 0.0, -1.0)),
        "planar": ("planar", 3, (0.0, 0.0, 1.0)),
        "floating": ("floating", 6, None),
        "spherical": ("spherical", 3, None),
        "helical": ("helical", 1, (0.0, 0.0, 1.0)),
        "ball": ("spherical", 3, None),
        "screw": ("helical", 1, (0.0, 1.0, 0.0)),
        "universal": ("universal", 2, None),
    }
    assert {j.name: (j.type, j.freedom, j.axis) for j in robot.joints} == expected
    assert robot.joint("revolute").limits == JointLimits(-1.0, 1.0, 6.0, 5.0, 7.0, 8.0, 9.0)
    assert robot.link("k").collisions[0].geometry == CapsuleShape(0.1, 0.3)


def test_pitch_is_in_metres_per_radian(urdf_data):
    robot = read_urdf(urdf_data / "joint_types.urdf")
    assert robot.joint("helical").pitch == 0.002
    # Drake's thread pitch is metres per turn.
    assert robot.joint("screw").pitch == 0.005 / (2.0 * math.pi)
    assert robot.joint("revolute").pitch is None


@pytest.mark.parametrize(
    ("rpy", "expected"),
    [
        # Images of x, y, z under a quarter turn about each axis, then fixed-axis order.
        ((math.pi / 2, 0, 0), [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
        ((0, math.pi / 2, 0), [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
        ((0, 0, math.pi / 2), [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ((math.pi / 2, 0, math.pi / 2), [[0, 0, 1], [1, 0, 0], [0, 1, 0]]),
        ((math.pi / 2, math.pi / 2, 0), [[0, 1, 0], [0, 0, -1], [-1, 0, 0]]),
    ],
)
def test_rpy_turns_about_fixed_axes(rpy, expected):
    np.testing.assert_allclose(Origin(rpy=rpy).rotation, expected, atol=ROUNDING)


def test_quaternion_agrees_with_rpy(urdf_data):
    robot = read_urdf(urdf_data / "joint_types.urdf")
    pose = robot.joint("universal").origin
    assert pose.quaternion == (0.5, 0.5, 0.5, 0.5)
    # A third of a turn about (1, 1, 1) permutes the axes.
    np.testing.assert_allclose(
        pose.matrix, [[0, 0, 1, 1], [1, 0, 0, 2], [0, 1, 0, 3], [0, 0, 0, 1]], atol=ROUNDING
    )
    rng = np.random.default_rng(1)
    for quaternion in [*rng.normal(size=(50, 4)), *np.eye(4), [0, 1, 0, 1], [1, -1, 1, 1]]:
        pose = Origin.from_quaternion((0.0, 0.0, 0.0), quaternion / np.linalg.norm(quaternion))
        np.testing.assert_allclose(Origin(rpy=pose.rpy).rotation, pose.rotation, atol=4e-15)


def test_mimic_chains_end_at_the_leader():
    robot = parse_urdf(mimic_chain())
    # q3 = 2 q2 + 1, q2 = -3 q1 + 0.5
    assert robot.joint("j3").mimic == JointMimic("j1", multiplier=-6.0, offset=2.0)
    assert robot.joint("j2").mimic == JointMimic("j1", multiplier=-3.0, offset=0.5)
    assert robot.joint("j1").mimic is None
    (note,) = [finding for finding in robot.findings if "mimics" in finding.message]
    assert note.severity == "note"
    assert 'resolved to -6 × "j1" + 2' in note.message


def test_mimic_defaults(arm):
    assert arm.joint("right_slide").mimic == JointMimic("left_slide", 1.0, 0.0)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b'<?xml version="1.0" encoding="ISO-8859-1"?>' + text.encode("latin-1"),
        lambda text: b'<?xml version="1.0" encoding="utf8"?>' + text.encode(),
        lambda text: "\ufeff" + text,
        lambda text: '<?xml version="1.0" encoding="ISO-8859-1"?>' + text,
    ],
    ids=["BOM", "UTF-16", "CRLF", "Latin-1", "utf8", "text with BOM", "text with declaration"],
)
def test_encodings(encode):
    robot = parse_urdf(encode('<robot name="bras">\n<link name="poignée"/>\n</robot>'))
    assert robot.root == "poignée"
    assert robot.link("poignée").line == 2


@pytest.mark.parametrize("text", ["1e-3", "1E-03", ".001", "+0.001", "0.001", "1.e-3", "00.0010"])
def test_ways_to_write_a_number(text):
    robot = parse_urdf(
        f'<robot name="r"><link name="a"><inertial><mass value=" {text}\t"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>'
    )
    assert robot.mass == 0.001


def test_descriptions_are_immutable_and_hashable(arm, urdf_data):
    with pytest.raises(AttributeError):
        arm.name = "other"
    with pytest.raises(AttributeError):
        arm.joint("elbow").axis = (0, 0, 1)
    assert hash(arm) == hash(read_urdf(urdf_data / "arm.urdf"))


def test_descriptions_and_errors_pickle(arm):
    again = pickle.loads(pickle.dumps(arm))
    assert again == arm
    assert again.joint("elbow").line == arm.joint("elbow").line
    with pytest.raises(UrdfError) as caught:
        parse_urdf("<robot/>", source="a.urdf")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.line) == (str(caught.value), 1)


def test_a_robot_built_by_hand_is_checked_too():
    links = (LinkDescription("a"), LinkDescription("b"))
    with pytest.raises(UrdfError, match="2 links have no parent"):
        RobotDescription("r", links)
    with pytest.raises(UrdfError, match='type "hinge" is unknown; the types are "fixed"'):
        RobotDescription("r", links, (JointDescription("j", "hinge", "a", "b"),))


def test_explicit_zero_mass_is_kept():
    robot = parse_urdf(
        '<robot name="r"><link name="a"><inertial><mass value="0"/>'
        '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link></robot>'
    )
    assert robot.link("a").inertial == InertialDescription(0.0)
    assert [finding.severity for finding in robot.findings] == ["note"]


def two_links(head: str, body: str = "") -> str:
    return (
        '<robot name="r"><link name="a"/><link name="b"/>'
        f'{head}<parent link="a"/><child link="b"/>{body}</joint></robot>'
    )


def mimic_chain() -> str:
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    mimics = (
        "",
        '<mimic joint="j1" multiplier="-3" offset="0.5"/>',
        '<mimic joint="j2" multiplier="2" offset="1"/>',
    )
    joints = [
        f'<joint name="j{k}" type="prismatic"><parent link="l{k - 1}"/><child link="l{k}"/>'
        f"{limit}{mimic}</joint>"
        for k, mimic in enumerate(mimics, 1)
    ]
    links = [f'<link name="l{k}"/>' for k in range(4)]
    # The chain must not depend on the order in the file.
    return f'<robot name="chain">{"".join(links)}{"".join(reversed(joints))}</robot>'
