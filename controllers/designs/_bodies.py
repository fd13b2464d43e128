"""Frames of a tree by name, as the paths of pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lgcontrol.groups import SO3
from lgcontrol.mechanics import Multibody

# Of the underwater vehicle with its arm.
VEHICLE_AND_ARM = {
    "vehicle": "vehicle",
    "shoulder": "arm_shoulder_link",
    "elbow": "arm_elbow_link",
    "tool": "tool",
}


def drawn(
    tree: Multibody, frames: Mapping[str, str]
) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Poses of frames as functions of states that begin with the configuration.

    Parameters
    ----------
    tree : Multibody
    frames : mapping of str to str
        Frames by the names they have in pictures.
    """

    def pose(frame: str) -> Callable[[np.ndarray], np.ndarray]:
        place = tree.placement(frame)
        return lambda x: place(x[:, : tree.nq])

    return {name: pose(frame) for name, frame in frames.items()}


def point_of(body: int, point: tuple[float, float, float]) -> Callable[[np.ndarray], np.ndarray]:
    """Poses of a point of a body of a mechanism, with the body's attitude.

    Parameters
    ----------
    body : int
        Its place among the bodies of the mechanism.
    point : (float, float, float)
        In axes of the body [m].
    """

    def poses(x: np.ndarray) -> np.ndarray:
        r, attitude = x[:, 7 * body : 7 * body + 3], x[:, 7 * body + 3 : 7 * body + 7]
        return np.hstack([r + SO3.act(attitude, point), attitude])

    return poses
