"""EstimationResult: estimates over a log, what the measurements said, and how consistent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import check_shape
from ..systems import BoundMeasurement, System
from ._consistency import Consistency, consistency, nees
from ._innovations import Innovations, Said
from ._log import Rows
from ._status import PredictStatus, UpdateStatus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class EstimationResult:
    """Estimates over a log; made by `Filter.run`.

    Attributes
    ----------
    system : System
    t : ndarray, shape (N,)
        Ends of the intervals; times at which several measurements of a kind were taken come
        several times.
    x : ndarray, shape (..., N, nq)
        Estimates, the measurements at t included.
    innovations : dict of str to Innovations
    counts : dict of str to Counter
        What became of the intervals and of the measurements of each kind.
    """

    system: System
    t: np.ndarray
    x: np.ndarray
    innovations: dict[str, Innovations]
    counts: dict[str, Counter[str]]
    _covariances: Callable[[np.ndarray], np.ndarray]
    _z: np.ndarray

    @classmethod
    def of(
        cls,
        system: System,
        measurements: Mapping[str, BoundMeasurement],
        covariances: Callable[[np.ndarray], np.ndarray],
        rows: Rows,
        z: np.ndarray,
        said: np.ndarray,
    ) -> EstimationResult:
        """From what the loop returned."""
        ends = rows.t + rows.dt
        counts = rows.counts
        for status, n in zip(*np.unique(said[..., 0], return_counts=True), strict=True):
            counts["predict"][PredictStatus(int(status)).word] += int(n)
        innovations, column = {}, 1
        for name, bound in measurements.items():
            size = Said.size(bound.group.dim)
            places, numbers = rows.places[name]
            parts = Said.of(said[..., places, column : column + size])
            column += size
            status = parts.status.astype(int)
            unknown = status >= UpdateStatus.NOT_FINITE
            innovations[name] = Innovations(
                ends[places],
                numbers,
                np.where(unknown[..., None], np.nan, parts.innovation),
                np.where(unknown[..., None], np.nan, parts.whitened),
                np.where(unknown, np.nan, parts.nis),
                np.where(unknown, np.nan, parts.log_likelihood),
                status,
            )
            for value, n in zip(*np.unique(status, return_counts=True), strict=True):
                counts[name][UpdateStatus(int(value)).word] += int(n)
        x = z[..., : system.state.nq]
        counts = {name: Counter({k: n for k, n in c.items() if n}) for name, c in counts.items()}
        return cls(system, ends, x, innovations, counts, covariances, z)

    @cached_property
    def P(self) -> np.ndarray:
        """Covariances of ``system.error(truth, x)``, shape (..., N, n, n)."""
        return self._covariances(self._z)

    @property
    def std(self) -> np.ndarray:
        """Deviations of the error, shape (..., N, n)."""
        return np.sqrt(np.maximum(np.diagonal(self.P, axis1=-2, axis2=-1), 0.0))

    @property
    def log_likelihood(self) -> np.ndarray:
        """Logarithm of the likelihood of all measurements that were used, shape (...)."""
        total = np.zeros(self.x.shape[:-2])
        for said in self.innovations.values():
            total = total + np.where(said.is_used, said.log_likelihood, 0.0).sum(axis=-1)
        return total

    def index(self, t: Any) -> np.ndarray:
        """Row of the estimate at times t, or last before them."""
        found = np.searchsorted(self.t, np.asarray(t) + 1e-9, side="right") - 1
        if np.any(found < 0):
            raise ValueError(f"the estimates begin at {self.t[0]:g} s, got {np.min(t):g} s")
        return found

    def error(self, t: Any, truth: Any) -> np.ndarray:
        """``system.error(truth, x)`` at times t, shape (..., K, n)."""
        truth = check_shape("truth", truth, (self.system.state.nq,), batch=True, finite=False)
        return self.system.error(truth, self.x[..., self.index(t), :])

    def nees(self, t: Any, truth: Any, entries: Any = slice(None)) -> np.ndarray:
        """Normalised estimation error squared, divided by its dimension, at times t.

        Parameters
        ----------
        t : array_like, shape (K,)
        truth : array_like, shape (..., K, nq)
        entries : slice or sequence of int
            Entries of the error that count.

        Returns
        -------
        ndarray, shape (..., K)
            One on average, if the covariance is right.
        """
        rows = self.index(t)
        covariance = self._covariances(self._z[..., rows, :])
        return nees(self.error(t, truth), covariance, entries)

    def consistency(self, t: Any = None, truth: Any = None) -> Consistency:
        """NEES (with a truth), NIS and whiteness of the innovations, with their bands."""
        errors = None if truth is None else self.nees(t, truth)
        return consistency(errors, self.system.n_errors, self.innovations)

    def summary(self) -> str:
        """Say how often what became of intervals and measurements."""
        lines = []
        for name, counter in self.counts.items():
            parts = [f"{n} {word.replace('_', ' ')}" for word, n in counter.items()]
            lines.append(f"{name}: {', '.join(parts) or 'none'}")
        return "\n".join(lines)

    def plot(self, t: Any = None, truth: Any = None) -> Figure:
        """Errors within ±2σ (with a truth), and the whitened innovations.

        Parameters
        ----------
        t, truth : array_like, optional
            Times (K,) and states (K, nq).

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plotting import plot_estimation

        if self.x.ndim != 2:
            raise ValueError(f"plot one log at a time, these are {self.x.shape[:-2]}")
        rows = slice(None) if t is None else self.index(t)
        times = self.t if t is None else np.asarray(t)
        error = np.full((len(times), self.system.n_errors), np.nan)
        if truth is not None:
            error = self.error(times, truth)
        names, units = self.system.error_names, self.system.error_units
        said = {name: (v.t, v.whitened) for name, v in self.innovations.items()}
        return plot_estimation(times, error, self.std[rows], names, units, said)
