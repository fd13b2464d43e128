"""Records of single parts of a loop: what a sensor delivered, what a controller answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..groups import LieGroup


@dataclass(frozen=True, eq=False)
class Measurements:
    """Deliveries of one sensor.

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times of measurement, s.
    y : ndarray, shape (K, nq)
        Coordinates on the sensor's group.
    group : LieGroup
        The sensor's group.
    """

    t: np.ndarray
    y: np.ndarray
    group: LieGroup


@dataclass(frozen=True, eq=False)
class ControllerLog:
    """Calls of one controller.

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times of the calls, s.
    command : ndarray, shape (K, n), or None
        What it returned, before saturation; None where that is no vector (a trajectory, say).
    info : dict of str to ndarray, shape (K,)
        Plain values of its ``info`` after each call, and "call_time", the wall time in s.
    """

    t: np.ndarray
    command: np.ndarray | None
    info: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class TaskError:
    """Error of something a controller tracks that is no state, at all times of a run.

    Attributes
    ----------
    error : ndarray, shape (N + 1, dim)
        Tangent vectors on the task's group.
    group : LieGroup
    """

    error: np.ndarray
    group: LieGroup

    def __repr__(self) -> str:
        """Group, number of times and the last error."""
        return f"TaskError({self.group}, {len(self.error)} times, last={self.error[-1].round(5)})"
