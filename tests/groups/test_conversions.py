"""Quaternions, Euler angles, matrices and rotation vectors against SciPy and by hand."""

from itertools import permutations, product

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lgcontrol.groups import SE2, SE3, SO2, SO3

ROUNDING = 1e-14
ANGLES = 1e-13  # Euler angles lose a digit where the middle one is 0.3 rad from gimbal lock

SEQUENCES = [
    "".join(s)
    for s in [*permutations("XYZ"), *((a, b, a) for a, b in product("XYZ", repeat=2) if a != b)]
]


def elementary(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i = "XYZ".index(axis.upper())
    j, k = (i + 1) % 3, (i + 2) % 3
    R = np.eye(3)
    R[j, j], R[j, k], R[k, j], R[k, k] = c, -s, s, c
    return R


def by_hand(sequence, angles):
    """Intrinsic rotations multiply from left to right, extrinsic ones the other way."""
    factors = [elementary(axis, angle) for axis, angle in zip(sequence, angles, strict=True)]
    return np.linalg.multi_dot(factors if sequence.isupper() else factors[::-1])


def draw(sequence, rng, count=20):
    angles = rng.uniform(-np.pi, np.pi, size=(count, 3))
    middle = rng.uniform(0.3, np.pi - 0.3, size=count)
    angles[:, 1] = middle if sequence[0] == sequence[2] else middle - np.pi / 2
    return angles


def test_there_are_twelve_sequences():
    assert len(set(SEQUENCES)) == 12


@pytest.mark.parametrize("sequence", SEQUENCES + [s.lower() for s in SEQUENCES])
def test_euler_angles(sequence, rng):
    angles = draw(sequence, rng)
    X = SO3.from_euler(sequence, angles)
    hand = np.array([by_hand(sequence, row) for row in angles])
    np.testing.assert_allclose(SO3.matrix(X), hand, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(SO3.as_euler(X, sequence), angles, rtol=0, atol=ANGLES)
    np.testing.assert_allclose(SO3.as_euler(-X, sequence), angles, rtol=0, atol=ANGLES)
    degrees = SO3.from_euler(sequence, np.degrees(angles), degrees=True)
    np.testing.assert_allclose(SO3.matrix(degrees), hand, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        SO3.as_euler(X, sequence, degrees=True), np.degrees(angles), rtol=0, atol=100 * ANGLES
    )
    pose = SE3.from_euler(sequence, angles, position=[1, 2, 3])
    np.testing.assert_allclose(SE3.as_euler(pose, sequence), angles, rtol=0, atol=ANGLES)
    np.testing.assert_array_equal(SE3.position(pose), np.broadcast_to([1, 2, 3], (20, 3)))


def test_batches_of_euler_angles_keep_their_shape(rng):
    angles = rng.uniform(-1, 1, size=(4, 5, 3))
    X = SE3.from_euler("ZYX", angles, position=np.zeros((5, 3)))
    assert X.shape == (4, 5, 7) and SE3.as_euler(X, "ZYX").shape == (4, 5, 3)
    np.testing.assert_allclose(SE3.as_euler(X, "ZYX"), angles, rtol=0, atol=ANGLES)
    assert SO3.from_euler("z", [0.3]).shape == (4,)


def test_operations_are_those_of_scipy(rng):
    X, Y = SO3.random(rng, 30), SO3.random(rng, 30)
    A, B = Rotation.from_quat(X), Rotation.from_quat(Y)
    points = rng.normal(size=(30, 3))
    for ours, theirs in (
        (SO3.matrix(SO3.compose(X, Y)), (A * B).as_matrix()),
        (SO3.matrix(SO3.inverse(X)), A.inv().as_matrix()),
        (SO3.act(X, points), A.apply(points)),
        (SO3.log(X), A.as_rotvec()),
        (SO3.as_rotation_vector(-X), A.as_rotvec()),
        (SO3.matrix(SO3.from_rotation_vector(points)), Rotation.from_rotvec(points).as_matrix()),
        (SO3.as_quaternion(X), A.as_quat(canonical=True)),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING)


def test_scalar_first_quaternions(rng):
    X = SO3.random(rng, 10)
    x, y, z, w = X.T
    scalar_first = 2.5 * np.stack([w, x, y, z], axis=-1)
    np.testing.assert_allclose(
        SO3.from_quaternion(scalar_first, order="wxyz"), X, rtol=0, atol=ROUNDING
    )
    canonical = np.where(X[:, 3:] < 0, -X, X)
    np.testing.assert_array_equal(SO3.as_quaternion(X, "wxyz"), np.roll(canonical, 1, axis=-1))
    pose = SE3.from_quaternion(scalar_first, [1, 2, 3], "wxyz")
    np.testing.assert_allclose(SE3.rotation(pose), X, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        SE3.as_quaternion(pose, "wxyz"), np.roll(canonical, 1, axis=-1), rtol=0, atol=ROUNDING
    )


def test_poses_from_parts(rng):
    R, p = Rotation.random(8, rng=rng), rng.normal(size=(8, 3))
    X = SE3.from_rotation_matrix(R.as_matrix(), p)
    np.testing.assert_allclose(SE3.as_rotation_matrix(X), R.as_matrix(), rtol=0, atol=ROUNDING)
    T = np.tile(np.eye(4), (8, 1, 1))
    T[:, :3, :3], T[:, :3, 3] = R.as_matrix(), p
    np.testing.assert_allclose(SE3.matrix(X), T, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(SE3.homogeneous(X), T, rtol=0, atol=ROUNDING)
    turned = SE3.from_rotation_vector(R.as_rotvec(), p)
    np.testing.assert_allclose(SE3.matrix(turned), T, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(SE3.as_rotation_vector(X), R.as_rotvec(), rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(SE3.from_position([1, 2, 3]), [1, 2, 3, 0, 0, 0, 1])
    symbol = ca.SX.sym("X", 7)
    assert SE3.position(symbol).shape == (3, 1) and SE3.rotation(symbol).shape == (4, 1)


def test_what_is_refused():
    with pytest.raises(ValueError, match="unknown quaternion order 'xwyz'; valid names are xyzw"):
        SO3.from_quaternion([0, 0, 0, 1], "xwyz")
    with pytest.raises(ValueError, match="quaternion must not be zero"):
        SO3.from_quaternion(np.zeros(4))
    with pytest.raises(ValueError, match="quaternion is too large: 1e\\+200, its square"):
        SO3.from_quaternion([1e200, 0, 0, 0])
    with pytest.raises(ValueError, match=r"quaternion has shape \(3,\), expected \(..., 4\)"):
        SO3.from_quaternion([0, 0, 1])
    with pytest.raises(ValueError, match=r"rotation = .* is no element .* has norm 2, not 1"):
        SE3.from_rotation([0, 0, 0, 2.0])
    with pytest.raises(ValueError, match=r"angles has shape \(2,\), expected \(..., 3\)"):
        SO3.from_euler("ZYX", [0.1, 0.2])
    with pytest.raises(ValueError, match="position is not finite"):
        SE3.from_position([0, np.inf, 0])
    with pytest.raises(ValueError, match=r"coordinates on SE3 has shape \(6,\)"):
        SE3.position(np.zeros(6))
    with pytest.raises(ValueError, match="not a matrix of SO3"):
        SE3.from_rotation_matrix(np.diag([1.0, 1.0, -1.0]))


def test_gimbal_lock_warns_and_keeps_the_rotation():
    X = SO3.from_euler("ZYX", [0.4, np.pi / 2, 0.1])
    with pytest.warns(UserWarning, match="Gimbal lock"):
        angles = SO3.as_euler(X, "ZYX")
    np.testing.assert_allclose(
        SO3.matrix(SO3.from_euler("ZYX", angles)), SO3.matrix(X), rtol=0, atol=1e-7
    )


# Angles in the plane


def test_angles_make_rotations_and_poses(rng):
    angles, places = rng.uniform(-3, 3, size=(4, 1)), rng.normal(size=(5, 2))
    turns, poses = SO2.from_angle(angles), SE2.from_angle(angles, places)
    assert turns.shape == (4, 1, 2) and poses.shape == (4, 5, 4)
    np.testing.assert_allclose(turns, SO2.exp(angles[..., None]), atol=ROUNDING)
    # A pose is a shift, then a turn.
    shift = SE2.from_position(places)
    turn = SE2.exp(np.concatenate([np.zeros((4, 1, 2)), angles[..., None]], axis=-1))
    np.testing.assert_allclose(poses, SE2.compose(shift, turn), atol=ROUNDING)
    np.testing.assert_allclose(SO2.as_angle(turns), angles, atol=ROUNDING)
    np.testing.assert_allclose(SE2.as_angle(poses), angles + np.zeros(5), atol=ROUNDING)


def test_angles_in_degrees_and_at_half_a_turn():
    np.testing.assert_allclose(SE2.from_angle(-90, [1, 2], degrees=True), [1, 2, 0, -1], atol=1e-15)
    assert SO2.as_angle([0.0, -1.0], degrees=True) == -90
    assert SE2.as_angle([1.0, 2.0, -1.0, 0.0]) == np.pi


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SO2.as_angle([3.0, 0.0]), "X = .* is no element of SO2: .* has norm 3, not 1"),
        (lambda: SE2.from_angle(0.0, [1, 2, 3]), r"position has shape \(3,\), expected \(..., 2\)"),
        (lambda: SO2.from_angle(np.nan), "angle is not finite"),
    ],
)
def test_faults_in_the_plane_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
