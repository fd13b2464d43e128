"""Writing a robot and reading it again gives the same robot."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.io import RobotDescription, format_urdf, parse_urdf, read_urdf, write_urdf
from lgcontrol.io._internal import (
    InertialDescription,
    JointDescription,
    JointLimits,
    JointMimic,
    LinkDescription,
    MeshShape,
    Origin,
    Shape,
)


@pytest.mark.parametrize("file", ["arm.urdf", "joint_types.urdf"])
def test_round_trip(urdf_data, tmp_path, file):
    robot = read_urdf(urdf_data / file)
    write_urdf(robot, tmp_path / file)
    again = read_urdf(tmp_path / file)
    assert again == robot
    assert again.source == tmp_path / file
    assert [finding.message for finding in again.findings] == [
        finding.message for finding in robot.findings
    ]


def test_numbers_come_back_bit_for_bit():
    rng = np.random.default_rng(7)
    values = [*10.0 ** rng.uniform(-300, 300, size=20), 5e-324, math.pi, 1 / 3]
    for value in values:
        robot = RobotDescription("r", (LinkDescription("a", InertialDescription(float(value))),))
        assert parse_urdf(format_urdf(robot)) == robot


def test_names_that_xml_must_escape():
    name = "a <b> & \"c\" 'd' é\tf\ng"
    shape = Shape(MeshShape("folder/<&>.stl"), name=name)
    robot = RobotDescription(name, (LinkDescription(name, visuals=(shape,)),))
    assert parse_urdf(format_urdf(robot)) == robot


@pytest.mark.parametrize("name", ["a\0", "a\x1b", "a\ud800", "a\ufffe"])
def test_names_that_xml_cannot_hold(name):
    with pytest.raises(ValueError, match="which XML cannot write; rename it"):
        format_urdf(RobotDescription(name, (LinkDescription("a"),)))


def test_a_single_bound_is_refused():
    joint = JointDescription(
        "j", "revolute", "a", "b", axis=(1.0, 0.0, 0.0), limits=JointLimits(lower=-1.0)
    )
    robot = RobotDescription("r", (LinkDescription("a"), LinkDescription("b")), (joint,))
    with pytest.raises(ValueError, match='joint "j" has only one.*give both or none'):
        format_urdf(robot)


def test_the_version_is_the_least_that_has_all(urdf_data):
    arm = read_urdf(urdf_data / "arm.urdf")
    assert "version=" not in format_urdf(arm).splitlines()[1]
    turned = replace(arm.joints[0], origin=Origin.from_quaternion((0, 0, 1), (0.0, 0.6, 0.0, 0.8)))
    newer = replace(arm, joints=(turned, *arm.joints[1:]))
    assert 'version="1.1"' in format_urdf(newer)
    assert parse_urdf(format_urdf(newer)) == newer
    assert 'version="1.2"' in format_urdf(read_urdf(urdf_data / "joint_types.urdf"))


def test_mimics_round_trip(urdf_data):
    arm = read_urdf(urdf_data / "arm.urdf")
    slides = [joint for joint in arm.joints if joint.type == "prismatic"]
    follower = replace(slides[0], mimic=JointMimic("left_slide", multiplier=-0.5, offset=0.04))
    joints = tuple(follower if joint is slides[0] else joint for joint in arm.joints)
    robot = replace(arm, joints=joints)
    assert robot != arm
    assert parse_urdf(format_urdf(robot)) == robot


def test_changed_robots_can_be_written(urdf_data):
    arm = read_urdf(urdf_data / "arm.urdf")
    heavier = replace(
        arm,
        links=tuple(
            replace(link, inertial=replace(link.inertial, mass=2 * link.mass))
            if link.inertial
            else link
            for link in arm.links
        ),
    )
    assert parse_urdf(format_urdf(heavier)).mass == pytest.approx(2 * arm.mass, rel=1e-15)


def test_the_ending_says_what_is_written(tmp_path):
    stand = parse_urdf('<robot name="stand"><link name="base"/></robot>')
    with pytest.raises(ValueError, match=r"this writes \.urdf or \.xml files, 'stand.urdf'"):
        write_urdf(stand, tmp_path / "stand.xacro")
    write_urdf(stand, tmp_path / "stand")
    assert [path.name for path in tmp_path.iterdir()] == ["stand.urdf"]
