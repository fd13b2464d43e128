"""from_matrix repairs what rounding and printing do to a matrix and refuses the rest."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
)

from ._samples import GROUPS, name_of

ROUNDING = 1e-14
REPAIRED = 3e-8  # noise of 1e-8 an entry, and the projection's share


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_small_errors_are_repaired(G, rng):
    X = G.random(rng, (50,))
    M = G.matrix(X)
    repaired = G.from_matrix(M + rng.uniform(-1e-8, 1e-8, size=M.shape))
    np.testing.assert_allclose(G.normalize(repaired), repaired, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(G.matrix(repaired), M, rtol=0, atol=REPAIRED)


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_large_errors_are_refused(G, rng):
    M = G.matrix(G.random(rng, (5,)))
    if G.dim == 0:
        return
    M[3, 0, 0] += 1e-3
    with pytest.raises(ValueError, match=r"not a matrix of .* differs by .* at most 1e-06"):
        G.from_matrix(M)


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_wrong_shapes_and_nan_are_refused_by_name(G):
    M = G.matrix(G.identity)
    n = G.matrix_size
    with pytest.raises(ValueError, match=rf"matrix of .* has shape \({n + 1}, {n + 1}\)"):
        G.from_matrix(np.eye(n + 1))
    with pytest.raises(ValueError, match="is not finite: entry"):
        G.from_matrix(np.where(np.eye(n, dtype=bool), np.nan, M))
    with pytest.raises(TypeError, match="array of numbers"):
        G.from_matrix("eye")


def rotation(axis, angle):
    return SO3.matrix(SO3.exp(angle * np.array(axis)))


def homogeneous(R, p=(0.0, 0.0, 0.0)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


@pytest.mark.parametrize(
    ("G", "matrix"),
    [
        (SO3, np.diag([1.0, 1.0, -1.0])),
        (SO3, 2 * np.eye(3)),
        (SO3, np.zeros((3, 3))),
        (SO3, np.array([[1.0, 1e-4, 0], [0, 1, 0], [0, 0, 1]])),
        (SO2, np.diag([1.0, -1.0])),
        (SE2, np.diag([1.0, 1.0, 2.0])),
        (SE3, np.diag([1.0, 1.0, 1.0, 0.999])),
        (SE3, homogeneous(rotation((0, 0, 1), 0.3).T @ np.diag([1, 1, -1.0]))),
        (Schoenflies, homogeneous(rotation((1, 0, 0), 0.1))),
        (Cylindrical, homogeneous(np.eye(3), (0.1, 0, 0))),
        (Translation("xz"), homogeneous(np.eye(3), (0, 0.1, 0))),
        (Helical(0.1), homogeneous(rotation((0, 0, 1), 0.5), (0, 0, 0.06))),
        (Helical(0.0), homogeneous(np.eye(3), (0, 0, 0.1))),
        (PlanarHelical(0.1), homogeneous(rotation((0, 0, 1), 0.5), (1, 2, 0.06))),
        (Rn(2), np.array([[1.0, 0, 3], [0, 1, 4], [0, 1e-3, 1]])),
        (Product(SO3, Rn(1)), np.ones((5, 5))),
    ],
)
def test_matrices_of_other_groups_are_refused(G, matrix):
    with pytest.raises(ValueError, match="not a matrix of"):
        G.from_matrix(matrix)


def test_a_far_away_body_does_not_excuse_a_bad_rotation():
    far = homogeneous(rotation((0, 0, 1), 0.3), (1e7, 0, 0))
    assert np.allclose(SE3.position(SE3.from_matrix(far)), [1e7, 0, 0])
    far[0, 1] += 1e-4
    with pytest.raises(ValueError, match="not a matrix of SE3"):
        SE3.from_matrix(far)
    with pytest.raises(ValueError, match="not a matrix of SE3"):
        SE3.from_matrix(np.stack([homogeneous(np.eye(3), (1e9, 0, 0)), far]))


@pytest.mark.parametrize("pitch", [0.3, -0.2, 1e-6, -1e-6])
@pytest.mark.parametrize("angle", [0.0, 3.0, np.pi, -np.pi, 7.0, -50.0])
def test_turns_come_from_the_height_and_the_angle_from_the_rotation(pitch, angle):
    for G, X in ((Helical(pitch), [angle]), (PlanarHelical(pitch), [1.0, 2.0, angle])):
        M = G.matrix(X)
        np.testing.assert_allclose(G.from_matrix(M), X, rtol=ROUNDING, atol=ROUNDING)
        M[2, 3] += 1e-9
        bound = 1e-13 + (1e-9 / abs(pitch) if abs(pitch) > 1e-3 else 0)
        np.testing.assert_allclose(G.from_matrix(M)[-1], angle, rtol=0, atol=bound)


def test_casadi_matrices_are_taken_as_they_are():
    M = ca.DM(np.diag([1.0, 1.0, -1.0]))
    assert SO3.from_matrix(M).shape == (4, 1)


@pytest.mark.parametrize("turn", [0.0, 1e-9, 1.0, 2.0, 2.1, 3.0, np.pi - 1e-9, np.pi])
def test_rotation_matrices_give_every_quaternion(turn, rng):
    """Each component is the largest for some axis, each branch is accurate."""
    axes = np.concatenate([np.eye(3), -np.eye(3), rng.normal(size=(30, 3))])
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    X = SO3.exp(turn * axes)
    back = SO3.from_matrix(SO3.matrix(X))
    same = np.abs(np.sum(X * back, axis=-1))
    np.testing.assert_allclose(same, 1.0, rtol=0, atol=ROUNDING)
