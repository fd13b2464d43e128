"""Solution: what an adaptive integration returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from ..codegen._internal import Result, Status, check_shape
from ..groups import LieGroup
from ._events import Crossings


class IntegrationStatus(Status, StrEnum):
    """How an integration ended: the first two are successes.

    "finished" is the end of the time span, "event" a terminal event, "max steps" the limit of
    steps. "step too small" means that no step meets the tolerances, "not finite" that the field is
    not finite.
    """

    FINISHED = "finished"
    EVENT = "event"
    STEP_TOO_SMALL = "step too small"
    MAX_STEPS = "max steps"
    NOT_FINITE = "not finite"

    @property
    def is_success(self) -> bool:
        """Whether the end or a terminal event was reached."""
        return self in (IntegrationStatus.FINISHED, IntegrationStatus.EVENT)


class Statistics(NamedTuple):
    """Effort of an integration.

    Attributes
    ----------
    steps, rejected : int
        Steps that met the tolerance, and that did not.
    evaluations : int
        Evaluations of the field.
    shortest : float
        Shortest step made [s]; the remainder before the end does not count, unless it is the only
        step. NaN if there was no step.
    method : str
        Method at the end; "auto" may have changed it on the way.
    """

    steps: int
    rejected: int
    evaluations: int
    shortest: float
    method: str


@dataclass(frozen=True, eq=False)
class Solution(Result):
    """Motion on a group, callable at any time it covers.

    Attributes
    ----------
    group : LieGroup
    t : ndarray, shape (n,)
        Times [s] of the accepted steps.
    x : ndarray, shape (n, nq)
        States there.
    events : mapping of str to Crossings
        Times and states of each event.
    status : IntegrationStatus
        How it ended. The part that was integrated is kept in every case.
    message : str
        The status in a sentence.
    statistics : Statistics
    """

    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    events: Mapping[str, Crossings]
    status: IntegrationStatus
    message: str
    statistics: Statistics
    _dense: np.ndarray | None = field(default=None, repr=False)
    _steps: np.ndarray | None = field(default=None, repr=False)

    def __call__(self, t: Any) -> np.ndarray:
        """State at times between the first and the last, interpolated on the group.

        Parameters
        ----------
        t : array_like, shape (...)
            Times [s].

        Returns
        -------
        ndarray, shape (..., nq)

        Raises
        ------
        ValueError
            If a time is outside, or no dense output was kept.
        """
        if self._dense is None or self._steps is None:
            raise ValueError("dense output has not been kept; integrate with dense=True")
        times = check_shape("t", t, (), batch=True)
        low, high = sorted((self.t[0], self.t[-1]))
        outside = times[(times < low) | (times > high)]
        if outside.size:
            raise ValueError(f"t = {outside.flat[0]} is outside of the solution: {low} to {high}")
        if len(self._steps) == 0:
            return np.broadcast_to(self.x[0], (*times.shape, self.group.nq)).copy()
        forward = np.sign(self._steps[0])
        k = np.searchsorted(forward * self.t, forward * times, side="right") - 1
        k = np.clip(k, 0, len(self._steps) - 1)
        s = (times - self.t[k]) / self._steps[k]
        return self.group.plus(self.x[k], polynomial(self._dense[k], s))


def polynomial(coefficients: np.ndarray, s: Any) -> np.ndarray:
    """``s (c₀ + (1 − s)(c₁ + s (c₂ + (1 − s) c₃)))``: the tangent vector at the fraction s."""
    c = np.moveaxis(coefficients, -1, 0)
    s = np.asarray(s)[..., None]
    return s * (c[0] + (1 - s) * (c[1] + s * (c[2] + (1 - s) * c[3])))
