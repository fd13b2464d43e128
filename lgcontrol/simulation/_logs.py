"""Records of single parts of a loop: what a sensor delivered, what a controller answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..groups import LieGroup
from ._contract import CallStatus

VOUCHED = {status.value for status in CallStatus if status.is_success}


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
    taken, lost, late : int
        Number of measurements taken, of those that were lost on the way, and of those that came
        only after the next one had been taken. A measurement that is neither lost nor delivered was
        still under way at the end.
    """

    t: np.ndarray
    y: np.ndarray
    group: LieGroup
    taken: int = 0
    lost: int = 0
    late: int = 0


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
        Plain values of its ``info`` after each call; "call_time", the wall time in s; where it does
        not see the true state, "measurement_age", the time since the newest measurement that it
        knew of was taken, in s (NaN before there was one).
    unstable : str
        Reason why errors grow in the controller's sampled loop, with the remedy, as it knew before
        the run. Empty if they do not grow, or it did not look.
    """

    t: np.ndarray
    command: np.ndarray | None
    info: Mapping[str, np.ndarray]
    unstable: str = ""

    @property
    def calls(self) -> dict[CallStatus, int]:
        """How many calls ended how; empty for controllers with words of their own."""
        texts = self.info.get("status", np.zeros(0)).astype(str)
        words, first, counts = np.unique(texts, return_index=True, return_counts=True)
        if not {*words.tolist()} <= {*map(str, CallStatus)}:
            return {}
        return {CallStatus(words[k]): int(counts[k]) for k in np.argsort(first)}

    @property
    def period(self) -> float:
        """Shortest time between two calls in s, 0 of less than two."""
        return float(np.diff(self.t).min()) if len(self.t) > 1 else 0.0

    @property
    def overruns(self) -> int:
        """How many calls took longer than a period: on a clock their answers come too late."""
        return int((self.info["call_time"] > self.period).sum()) if self.period else 0

    @property
    def is_unanswered(self) -> bool:
        """Whether the controller did not vouch for any of its answers."""
        texts = self.info.get("status", np.zeros(0))
        if len(texts) and texts[0] in VOUCHED:
            return False
        calls = self.calls
        return bool(calls) and not any(status.is_success for status in calls)

    @property
    def last_message(self) -> str:
        """What the controller said last."""
        said = [text for text in self.info.get("message", np.zeros(0)).astype(str) if text]
        return said[-1] if said else ""


@dataclass(frozen=True, eq=False, repr=False)
class BoundedQuantity:
    """Something that has limits, at all times of a run.

    Attributes
    ----------
    values : ndarray, shape (N + 1,)
    lower, upper : float
    unit : str
    """

    values: np.ndarray
    lower: float
    upper: float
    unit: str = ""

    def __repr__(self) -> str:
        """Range and limits."""
        low, high = self.values.min(), self.values.max()
        return f"BoundedQuantity({low:.4g} to {high:.4g} in [{self.lower:g}, {self.upper:g}])"


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
