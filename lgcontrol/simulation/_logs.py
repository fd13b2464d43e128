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
