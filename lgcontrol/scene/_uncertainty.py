"""Ellipsoids of two deviations about estimated positions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..groups import SE3, LieGroup, Product
from ._look import moving_blocks
from ._records import SceneBody
from ._shapes import BodyShape, Mesh, ellipsoid

DRAWN_DEVIATIONS = 2.0
MOST_ELLIPSOIDS = 15  # along a path
THINNEST_AXIS = 0.02  # of the longest, so that those in the plane can be seen


def position_ellipsoids(
    name: str, poses: np.ndarray, covariances: np.ndarray, most: int = MOST_ELLIPSOIDS
) -> list[SceneBody]:
    """Ellipsoids of 2σ at some poses, at equal distances along their path.

    Parameters
    ----------
    name : str
    poses : ndarray, shape (N, 7)
    covariances : ndarray, shape (N, 3, 3)
        Of the positions in the axes of the poses, m².
    most : int
    """
    good = np.isfinite(poses).all(axis=1) & np.isfinite(covariances).all(axis=(1, 2))
    poses, covariances = poses[good], covariances[good]
    steps = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    if len(poses) > most:
        wanted = np.linspace(0.0, length[-1], most)
        rows = np.unique(np.searchsorted(length, wanted).clip(max=len(poses) - 1))
        poses, covariances = poses[rows], covariances[rows]
    return [
        SceneBody(f"{name}, 2σ", [shape], pose[np.newaxis], role="estimate")
        for pose, P in zip(poses, covariances, strict=True)
        if (shape := _ellipsoid(P)) is not None
    ]


def state_ellipsoids(group: LieGroup, x: np.ndarray, P: np.ndarray) -> list[SceneBody]:
    """Ellipsoids of the blocks of a state that move a body.

    Parameters
    ----------
    group : LieGroup
    x : ndarray, shape (N, nq)
    P : ndarray, shape (N, dim, dim)
        Covariances of the errors, in the tangent coordinates of the group.
    """
    found: list[SceneBody] = []
    for name, block, at in moving_blocks(group):
        own = _tangent(group, name, block)
        H = np.asarray(block.selection)[:3]
        positions = H @ P[:, own, own] @ H.T
        found += position_ellipsoids(name or "body", np.asarray(block.embed(x[:, at])), positions)
    return found


def place_bodies(
    places: Mapping[str, np.ndarray], covariances: Mapping[str, np.ndarray]
) -> list[SceneBody]:
    """Estimated points by name, m: ellipsoids of 2σ in world axes.

    Parameters
    ----------
    places : mapping of str to ndarray, shape (2,) or (3,)
    covariances : mapping of str to ndarray, shape (2, 2) or (3, 3)
    """
    found = []
    for name, place in places.items():
        P, middle = np.zeros((3, 3)), np.zeros(3)
        own = np.asarray(covariances[name])
        P[: len(own), : len(own)] = own
        middle[: len(place)] = place
        found += position_ellipsoids(name, SE3.from_position(middle)[np.newaxis], P[np.newaxis])
    return found


def _ellipsoid(P: np.ndarray) -> BodyShape | None:
    values, axes = np.linalg.eigh(P)
    half = DRAWN_DEVIATIONS * np.sqrt(np.maximum(values, 0.0))
    if half.max() <= 1e-9:
        return None
    made = ellipsoid(axes * np.maximum(half, THINNEST_AXIS * half.max()), np.zeros(3))
    assert isinstance(made.geometry, Mesh)
    return made if np.linalg.det(axes) > 0 else BodyShape(_flipped(made.geometry))


def _flipped(mesh: Mesh) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


def _tangent(group: LieGroup, name: str, block: LieGroup) -> slice:
    """Where a block at any depth is in tangent vectors."""
    start = 0
    for key in name.split(".") if name else ():
        assert isinstance(group, Product)
        start += group.tangent_slice(key).start
        group = group.blocks[key]
    return slice(start, start + block.dim)
