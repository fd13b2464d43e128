"""What measurements say of the estimate, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._status import UpdateStatus


class Said(NamedTuple):
    """What an update says: arrays with the batch axes of the column it came in.

    All but the status is NaN where the measurement says nothing: `UpdateStatus.NOT_FINITE` and on.
    """

    innovation: np.ndarray
    whitened: np.ndarray
    nis: np.ndarray
    log_likelihood: np.ndarray
    status: np.ndarray

    @staticmethod
    def size(m: int) -> int:
        """Entries for a measurement of dimension m."""
        return 2 * m + 3

    @classmethod
    def of(cls, column: np.ndarray) -> Said:
        """Parts of a column (..., size)."""
        m = (column.shape[-1] - 3) // 2
        return cls(
            column[..., :m], column[..., m : 2 * m], *np.moveaxis(column[..., 2 * m :], -1, 0)
        )


@dataclass(frozen=True, eq=False)
class Innovations:
    """What the measurements of one kind said, in the order in which they were taken.

    Numbers are NaN where one said nothing: `UpdateStatus.NOT_FINITE` and those after it.

    Attributes
    ----------
    t : ndarray, shape (K,)
    number : ndarray, shape (K,)
        Place in the log.
    innovation : ndarray, shape (..., K, m)
        ``minus(y, expected)``; of an `EKF` of several rounds, what the last one sees of it from
        the prediction: ``ν + C d`` at the correction d.
    whitened : ndarray, shape (..., K, m)
        In units of its deviations: independent entries of unit variance, if all is well.
    nis : ndarray, shape (..., K)
        Normalised innovation squared, before robust weights.
    log_likelihood : ndarray, shape (..., K)
        Logarithm of the density of the innovation.
    status : ndarray, shape (..., K)
        `UpdateStatus`.
    lasting : float
        How many times the covariance of one measurement they were weighed with, as their errors
        last (`Sensor.correlation_time`); one for independent errors. NIS is as much smaller.
    """

    t: np.ndarray
    number: np.ndarray
    innovation: np.ndarray
    whitened: np.ndarray
    nis: np.ndarray
    log_likelihood: np.ndarray
    status: np.ndarray
    lasting: float = 1.0

    def __repr__(self) -> str:
        """How many there are, and how many corrected the estimate."""
        size, used = self.innovation.shape[-1], self.is_used.sum()
        return f"Innovations({self.status.size} of size {size}, {used} used)"

    @property
    def is_used(self) -> np.ndarray:
        """Whether each corrected the estimate, shape (..., K)."""
        return np.isin(self.status, [status for status in UpdateStatus if status.is_success])
