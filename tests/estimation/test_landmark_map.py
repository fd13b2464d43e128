"""Landmarks that join a map at first sight."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.estimation import LandmarkMap
from lgcontrol.groups import SE2, SE3, SO2, Product, Rn

EXACT = 1e-12
VAGUE = 3e3  # m; some 1e-8 of a measurement is the prior's, and the rounding of its square
AS_VAGUE = 1e-6
NOISE = {"velocity.x": 0.1, "velocity.y": 0.2}


def test_with_a_known_heading_it_is_the_textbook_filter():
    """Position and landmarks are linear then; a first sight is what a vague prior tends to."""
    rng, seen, dt = np.random.default_rng(0), 0.3, 0.5
    std0 = {"x": 0.4, "y": 0.7, "rz": 0.0}
    pose = [1.0, -2.0, np.cos(0.6), np.sin(0.6)]
    slam = LandmarkMap(3, x0=pose, std0=std0, noise=NOISE, std_discrete=seen, method="euler")
    R = SO2.matrix(np.array(pose[2:]))
    x = np.concatenate([pose[:2], np.zeros(6)])
    rotated = R @ np.diag([0.4**2, 0.7**2]) @ R.T
    P = np.diag(np.r_[np.zeros(2), np.full(6, VAGUE**2)])
    P[:2, :2] = rotated
    for k in range(12):
        u = np.r_[rng.normal(size=2), 0.0]
        slam.predict(k * dt, u, dt)
        x[:2] += R @ u[:2] * dt
        P[:2, :2] += R @ np.diag([0.01, 0.04]) @ R.T * dt
        one, y = int(rng.integers(3)), 3 * rng.normal(size=2)
        slam.update(one, y)
        C = np.zeros((2, 8))
        C[:, :2], C[:, 2 + 2 * one : 4 + 2 * one] = -R.T, R.T
        K = P @ C.T @ np.linalg.inv(C @ P @ C.T + seen**2 * np.eye(2))
        keep = np.eye(8) - K @ C
        x, P = x + K @ (y - C @ x), keep @ P @ keep.T + seen**2 * K @ K.T
    assert set(slam.landmarks) == {0, 1, 2}
    np.testing.assert_allclose(slam.pose[:2], x[:2], atol=AS_VAGUE)
    for k, place in slam.landmarks.items():
        own = slice(2 + 2 * k, 4 + 2 * k)
        np.testing.assert_allclose(place, x[own], atol=AS_VAGUE)
        np.testing.assert_allclose(slam.landmark_covariances[k], P[own, own], atol=AS_VAGUE)
    np.testing.assert_allclose(R @ slam.pose_covariance[:2, :2] @ R.T, P[:2, :2], atol=AS_VAGUE)


def test_a_first_sight_by_range_and_bearing():
    """``l = p + R b(y)`` and its derivatives by pose and measurement, written out."""
    std0, std = {"x": 0.1, "y": 0.2, "rz": 0.3}, np.array([0.05, 0.02])
    pose = np.array([1.0, 2.0, np.cos(2.0), np.sin(2.0)])
    slam = LandmarkMap(
        4, x0=pose, std0=std0, noise=NOISE, std_discrete=std,
        sees=lambda b: ca.vertcat(ca.norm_2(b), ca.atan2(b[1], b[0])),
        places=lambda y: y[0] * ca.vertcat(ca.cos(y[1]), ca.sin(y[1])),
    )  # fmt: skip
    r, a = 3.0, 0.7
    slam.update(2, [r, a])
    R, b = SO2.matrix(pose[2:]), r * np.array([np.cos(a), np.sin(a)])
    by_y = R @ np.array([[np.cos(a), -r * np.sin(a)], [np.sin(a), r * np.cos(a)]])
    by_pose = R @ np.array([[1, 0, -b[1]], [0, 1, b[0]]])
    P = by_pose @ np.diag([0.01, 0.04, 0.09]) @ by_pose.T + by_y @ np.diag(std**2) @ by_y.T
    np.testing.assert_allclose(slam.landmarks[2], pose[:2] + R @ b, atol=EXACT)
    np.testing.assert_allclose(slam.landmark_covariances[2], P, atol=EXACT)
    np.testing.assert_allclose(slam.pose_covariance, np.diag([0.01, 0.04, 0.09]), atol=EXACT)
    before = slam.pose_covariance
    slam.update(2, [r, a])  # a second look says where the landmark is, of the robot nothing
    np.testing.assert_allclose(slam.pose_covariance, before, atol=EXACT)
    assert slam.counts["landmark"] == {"added": 1, "used": 1}


@pytest.mark.usually(group=[SE2])
@pytest.mark.parametrize(("group", "count"), [(SE2, 3), (SE3, 2)])
def test_numbers_of_landmarks_are_names(group, count):
    rng, d = np.random.default_rng(1), group.point_size
    slams = [LandmarkMap(count, group=group, std0=0.1, noise=NOISE, std_discrete=0.1,
                         method="euler") for _ in range(2)]  # fmt: skip
    names = [list(range(count)), list(reversed(range(count)))]
    u = 0.3 * rng.normal(size=group.dim)
    for k in range(4):
        for slam in slams:
            slam.predict(0.1 * k, u, 0.1)
        y = rng.normal(size=(count, d)) * 0.1 + np.arange(d)
        for i in range(count):
            for slam, own in zip(slams, names, strict=True):
                slam.update(own[i], y[i])
    np.testing.assert_allclose(slams[0].pose, slams[1].pose, atol=EXACT)
    np.testing.assert_allclose(slams[0].pose_covariance, slams[1].pose_covariance, atol=EXACT)
    for a, b in zip(*names, strict=True):
        np.testing.assert_allclose(slams[0].landmarks[a], slams[1].landmarks[b], atol=EXACT)


def test_noise_of_what_is_measured_of_the_motion():
    """A robot that moves and then turns: the turn's error moves it no way, as an arc's would."""
    slam = LandmarkMap(
        1, std0=0.0, noise={"speed": 0.1, "turn": 0.2}, std_discrete=0.1, method="euler",
        inputs=["speed", "turn"],
        velocity=lambda u: SE2.log(ca.vertcat(u[0], 0, ca.cos(u[1]), ca.sin(u[1]))),
    )  # fmt: skip
    slam.predict(0.0, [2.0, 0.7], 1.0)
    np.testing.assert_allclose(slam.pose, [2.0, 0.0, np.cos(0.7), np.sin(0.7)], atol=EXACT)
    back = SO2.matrix(slam.pose[2:]).T @ [1.0, 0.0]  # the way it came, seen from where it looks
    expected = np.diag([0.0, 0.0, 0.04])
    expected[:2, :2] = 0.01 * np.outer(back, back)
    np.testing.assert_allclose(slam.pose_covariance, expected, atol=EXACT)


def test_a_single_input_may_be_a_name_alone():
    slam = LandmarkMap(
        1, std0=0.0, noise={"speed": 0.1}, std_discrete=0.1,
        inputs="speed", velocity=lambda u: ca.vertcat(u, 0, 0),
    )  # fmt: skip
    assert slam.system.input_names == ("speed",)


def test_what_is_not_usable_adds_nothing():
    slam = LandmarkMap(2, std0=0.1, noise=NOISE, std_discrete=0.1)
    before = slam.x.copy()
    slam.update(1, [np.nan, 1.0])
    assert not slam.landmarks and slam.counts["landmark"] == {"not finite": 1}
    assert np.isnan(slam.info["nis"])
    np.testing.assert_array_equal(slam.x, before)
    slam.update(1, [2.0, 1.0])
    slam.update(1, [np.nan, 1.0])
    assert slam.counts["landmark"] == {"not finite": 2, "added": 1}
    assert np.isnan(slam.info["nis"]) and "1 of 2 landmarks" in repr(slam)
    assert "1 added" in slam.summary() and list(slam.landmarks) == [1]
    for of_map in (slam.landmarks, slam.landmark_covariances):
        with pytest.raises(KeyError, match="landmark 0 has not been seen: the map has 1"):
            of_map[0]
    slam.reset()
    assert not slam.landmarks and not slam.counts["landmark"]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"count": 0}, ValueError, "a whole number, at least 1"),
        ({"std0": {"x": 1.0}}, ValueError, "expected each of x, y, rz"),
        ({"sees": lambda b: b}, ValueError, "go together"),
        ({"inputs": ["left", "right"]}, ValueError, "inputs and velocity"),
        ({"output": SE2}, ValueError, "must say where a landmark is"),
        ({"group": SO2}, ValueError, "SE2 or SE3"),
        ({"std0": -1.0}, ValueError, "must not be negative"),
        ({"std0": [1.0, 1.0, 1.0]}, ValueError, "std0 has shape"),
        ({"sees": lambda b: 2 * b, "places": lambda y: y}, ValueError, "places must take back"),
        ({"square_root": True}, ValueError, "keeps its covariance"),
        ({"window": 1.0}, ValueError, "when they are seen"),
    ],
)
def test_refused(given, error, words):
    options = {"count": 2, "std0": 0.1, "noise": NOISE, "std_discrete": 0.1} | given
    with pytest.raises(error, match=words):
        LandmarkMap(options.pop("count"), **options)


def test_landmarks_beyond_the_map_are_refused():
    slam = LandmarkMap(2, std0=0.1, noise=NOISE, std_discrete=0.1)
    with pytest.raises(IndexError, match="landmarks 0 … 1"):
        slam.update(2, [1.0, 1.0])
    with pytest.raises(TypeError, match="whole number, 0 … 1, got 'oak'"):
        slam.update("oak", [1.0, 1.0])


def test_the_map_is_drawn_with_its_deviations():
    slam = LandmarkMap(
        3, std0={"x": 0.5, "y": 0.25, "rz": 0.0}, noise=NOISE, std_discrete=1e-4, x0=[1, 2, 0, 1]
    )
    slam.update(2, [2.0, 1.0])
    lines = {line.get_label(): line.get_xydata() for line in slam.plot().axes[0].lines}
    np.testing.assert_allclose(lines["landmark 2"], [[0.0, 4.0]], atol=1e-12)
    np.testing.assert_allclose(lines["robot"], [[1.0, 2.0]], atol=1e-12)
    seen, own = (path for path in lines.values() if len(path) > 1)
    for path, place in ((seen, [0.0, 4.0]), (own, [1.0, 2.0])):  # the robot faces y
        np.testing.assert_allclose(np.ptp(path, axis=0), [4 * 0.25, 4 * 0.5], rtol=1e-2)
        np.testing.assert_allclose(path[:-1].mean(axis=0), place, atol=1e-9)


def test_a_bearing_behind_does_not_jump():
    """A landmark behind the robot, just left of its axis and then just right of it."""
    slam = LandmarkMap(
        2, std0=0.0, noise=NOISE, std_discrete=[0.05, 0.02],
        sees=lambda b: ca.vertcat(ca.norm_2(b), b / ca.norm_2(b)),
        places=lambda y: y[0] * y[1:], output=Product(range=Rn(1), bearing=SO2),
    )  # fmt: skip
    for angle in (np.pi - 0.01, 0.01 - np.pi):
        slam.update(1, [3.0, np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(slam.landmarks[1], [-3.0, 0.0], atol=1e-3)
    assert slam.info["status"] == "used" and slam.info["nis"] < 1.0
