"""Which parts of a state are bodies in space, and where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..codegen._internal import check_shape
from ..groups import SE3, LieGroup
from ..scene._internal import moving_blocks

Bodies: TypeAlias = Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]]
"""``x of shape (N, nq) → poses of shape (N, k, 7) or (N, 7)``, or one ``→ (N, 7)`` by name."""


def body_names(group: LieGroup, bodies: Bodies | None) -> list[str]:
    """Names of the bodies of a state, where there are several that have any."""
    if isinstance(bodies, Mapping):
        return [*bodies]
    names = [] if bodies is not None else [name for name, _, _ in moving_blocks(group)]
    return names if len(names) > 1 else []


def body_poses(group: LieGroup, x: np.ndarray, bodies: Bodies | None = None) -> np.ndarray:
    """Poses of the bodies of a state: coordinates on SE(3).

    Parameters
    ----------
    x : ndarray, shape (N, nq)
    bodies : callable or mapping of str to callable, optional
        ``x of shape (N, nq) → poses of shape (N, k, 7) or (N, 7)``, or one ``→ (N, 7)`` by name; if
        left out, the blocks of the state that are motions of a body.

    Returns
    -------
    ndarray, shape (N, k, 7)

    Raises
    ------
    ValueError
        If the state has no such block.
    """
    if isinstance(bodies, Mapping):
        given = [np.asarray(place(x), dtype=np.float64) for place in bodies.values()]
        for name, poses in zip(bodies, given, strict=True):
            check_shape(f"the pose of {name!r} from bodies", poses, (len(x), 7))
        return np.stack(given, axis=1)
    if bodies is not None and not callable(bodies):
        raise TypeError(
            "bodies must be a function from states (N, nq) to poses (N, k, 7) on SE(3), or one "
            "(N, 7) by name, as in {'tool': lambda x: tree.placement('tool')(x[:, : tree.nq])}; "
            f"got {bodies!r}"
        )
    if bodies is not None:
        poses = np.asarray(bodies(x), dtype=np.float64)
        if poses.ndim == 2:
            poses = poses[:, np.newaxis]
        return check_shape("what bodies(x) returned", poses, (len(x), None, 7))
    found = [block.embed(x[:, where]) for _, block, where in moving_blocks(group)]
    if not found:
        raise ValueError(
            f"the state {group} has no block that moves a body in space: give bodies=function, "
            "from states (N, nq) to poses (N, k, 7) on SE(3)"
        )
    return np.stack(found, axis=1)


def has_bodies(group: LieGroup) -> bool:
    """Whether a block of a state moves a body in space, so that it has a path without `bodies`.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Rn
    >>> has_bodies(SE2), has_bodies(Rn(2))
    (True, False)
    """
    return bool(moving_blocks(group))


def is_planar(poses: np.ndarray) -> bool:
    """Whether all poses stay in the plane z = 0 and turn about z only."""
    return not poses[..., 2:5].any()


def axes_of(poses: np.ndarray) -> np.ndarray:
    """Body axes as columns, shape (..., 3, 3)."""
    return SE3.homogeneous(poses)[..., :3, :3]


def extent_of(points: np.ndarray) -> float:
    """Largest side of the box around points (..., 3); 1 m for a body that stays in place."""
    flat = points.reshape(-1, points.shape[-1])
    return float(np.ptp(flat, axis=0).max()) or 1.0


def spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of about `count` points at equal distances along a path (N, 3), ends included."""
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    if length[-1] == 0.0:
        return np.array([0])
    return np.unique(
        np.searchsorted(length, np.linspace(0, length[-1], count)).clip(max=len(points) - 1)
    )
