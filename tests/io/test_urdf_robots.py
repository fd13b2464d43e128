"""Real robots: everything loads, agrees with other programs, and survives being written."""

import json
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.io import format_urdf, parse_urdf, read_urdf

ROOT = Path(__file__).parents[2]
REFERENCE = json.loads((ROOT / "tests" / "data" / "urdf" / "reference.json").read_text())["robots"]

# The reference poses are rounded to ten digits; lengths here are below 10 m.
POSE_ERROR = 1e-9
# Quoted inertias are rounded to ten digits as well, and sum to at most 100 kg m².
INERTIA_ERROR = 1e-8
# A tenth of this is typical; the margin is for machines that do other things at the same time.


@pytest.fixture(params=sorted(REFERENCE))
def name(request):
    return request.param


def placements(robot):
    """T_root_link of every link, movable joints at 0.3, -0.4, 0.5, ... in file order."""
    movable = [joint for joint in robot.joints if joint.type != "fixed"]
    position = {j.name: (0.3 + 0.1 * k) * (-1) ** k for k, j in enumerate(movable)}
    poses = {robot.root: np.eye(4)}
    stack = [robot.root]
    while stack:
        parent = stack.pop()
        for joint in robot.children(parent):
            motion = np.eye(4)
            if joint.type == "prismatic":
                motion[:3, 3] = position[joint.name] * np.array(joint.axis)
            elif joint.type != "fixed":
                motion[:3, :3] = turn(joint.axis, position[joint.name])
            poses[joint.child] = poses[parent] @ joint.origin.matrix @ motion
            stack.append(joint.child)
    return poses


def turn(axis, angle):
    """Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def rotation(quaternion):
    """R = (w² - u·u) I + 2 u uᵀ + 2 w [u] for the unit quaternion (u, w)."""
    *u, w = quaternion
    x, y, z = u
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (w * w - np.dot(u, u)) * np.eye(3) + 2 * np.outer(u, u) + 2 * w * cross


def test_every_robot_has_reference_values(robots):
    assert {path.name for path in robots.glob("*.urdf")} == set(REFERENCE)


def test_joints_and_masses_agree_with_yourdfpy(name, robots):
    robot, expected = read_urdf(robots / name), REFERENCE[name]
    assert len(robot.joints) == len(expected["joints"])
    for joint, row in zip(robot.joints, expected["joints"], strict=True):
        joint_name, kind, parent, child, axis, limit, mimic = row
        assert (joint.name, joint.type, joint.parent, joint.child) == (
            *(joint_name, kind, parent, child),
        )
        if kind == "fixed":
            continue
        np.testing.assert_allclose(joint.axis, axis, atol=1e-15)
        lower, upper, velocity, effort = limit
        if kind == "continuous":
            lower = upper = None
        assert (joint.limits.velocity, joint.limits.effort) == (velocity, effort)
        assert (joint.limits.lower, joint.limits.upper) == (lower, upper)
        if mimic is None:
            assert joint.mimic is None
        else:
            leader, multiplier, offset = mimic
            assert joint.mimic is not None
            assert joint.mimic.joint == leader
            assert joint.mimic.multiplier == (1.0 if multiplier is None else multiplier)
            assert joint.mimic.offset == (offset or 0.0)
    masses = {link.name: link.inertial and link.inertial.mass for link in robot.links}
    assert masses == expected["masses"]


def test_poses_agree_with_pinocchio(name, robots):
    poses = placements(read_urdf(robots / name))
    assert set(poses) == set(REFERENCE[name]["poses"])
    for link, (x, y, z, *quaternion) in REFERENCE[name]["poses"].items():
        np.testing.assert_allclose(poses[link][:3, 3], (x, y, z), atol=POSE_ERROR, err_msg=link)
        np.testing.assert_allclose(
            poses[link][:3, :3], rotation(quaternion), atol=POSE_ERROR, err_msg=link
        )


def test_mass_and_inertia_agree_with_pinocchio(name, robots):
    robot, expected = read_urdf(robots / name), REFERENCE[name]
    bodies = []
    for link_name, pose in placements(robot).items():
        inertial = robot.link(link_name).inertial
        if inertial is not None:
            frame = pose @ inertial.origin.matrix
            turned = frame[:3, :3] @ inertial.inertia @ frame[:3, :3].T
            bodies.append((inertial.mass, frame[:3, 3], turned))
    mass = sum(m for m, _, _ in bodies)
    center = sum(m * p for m, p, _ in bodies) / mass
    about = sum(
        inertia
        + m * (np.dot(p - center, p - center) * np.eye(3) - np.outer(p - center, p - center))
        for m, p, inertia in bodies
    )
    assert mass == pytest.approx(expected["mass"], rel=1e-12)
    assert robot.mass == pytest.approx(expected["mass"], rel=1e-12)
    np.testing.assert_allclose(center, expected["center_of_mass"], atol=POSE_ERROR)
    np.testing.assert_allclose(about, expected["centroidal_inertia"], atol=INERTIA_ERROR)


def test_writing_and_reading_gives_the_same_robot(name, robots):
    robot = read_urdf(robots / name)
    again = parse_urdf(format_urdf(robot))
    assert again == robot
    assert format_urdf(again) == format_urdf(robot)


@pytest.mark.parametrize(
    ("file", "fragments"),
    [
        ("hyq_no_sensors.urdf", ['line 984: warning: link "trunk_imu" <inertial>', "0.018 kg"]),
        ("hyq_no_sensors.urdf", ['"lf_foot"', "principal moments 0, 0, 3e-06"]),
        ("tiago.urdf", ['line 176: warning: link "base_antenna_left_link"', "-3.53486e-08"]),
        (
            "talos_reduced.urdf",
            ['line 1386: note: joint "gripper_left_inner_double_joint" <mimic>'],
        ),
        ("iris.urdf", ["rotor_0_joint", "-1e+16 rad limits nothing"]),
    ],
)
def test_findings_in_real_files(file, fragments, robots):
    findings = [str(finding) for finding in read_urdf(robots / file).findings]
    assert any(all(part in finding for part in fragments) for finding in findings), findings


def test_clean_files_have_no_findings(robots):
    for file in ("panda.urdf", "ur5_robot.urdf", "z1.urdf", "solo12.urdf"):
        assert read_urdf(robots / file, strict=True).findings == ()
