"""EstimationResult: estimates over a log, what the measurements said, and how consistent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..codegen._internal import interruptible
from ..systems import System
from ..systems._internal import BoundSensor
from ._consistency import Consistency, chi_squared_band, consistency
from ._doubts import doubts
from ._estimates import Estimates
from ._innovations import Innovations, Said
from ._log import Rows
from ._status import PredictStatus, UpdateStatus, summary_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class EstimationResult(Estimates):
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

    innovations: dict[str, Innovations]
    counts: dict[str, Counter[str]]
    _smooth: Callable[[float | None, Any], Estimates]

    def __repr__(self) -> str:
        """System, times, and what became of the measurements."""
        span = f"{len(self.t)} estimates from {self.t[0]:g} to {self.t[-1]:g} s"
        counts = summary_of(self.counts).replace("\n", "; ")
        return f"EstimationResult({self.system.name!r}, {span}; {counts})"

    @classmethod
    def of(
        cls,
        system: System,
        sensors: Mapping[str, BoundSensor],
        covariances: Callable[[np.ndarray], np.ndarray],
        rows: Rows,
        z: np.ndarray,
        said: np.ndarray,
        smooth: Callable[[float | None, Any], Estimates],
    ) -> EstimationResult:
        """From what the loop returned."""
        ends = rows.ends
        counts = rows.counts
        for status, n in zip(*np.unique(said[..., 0], return_counts=True), strict=True):
            counts["predict"][PredictStatus(int(status)).text] += int(n)
        innovations, column = {}, 1
        for name, bound in sensors.items():
            size = Said.size(bound.group.dim)
            places, numbers = rows.places[name]
            parts = Said.of(said[..., places, column : column + size])
            column += size
            status = parts.status.astype(int)
            lasting = bound.lasting
            innovations[name] = Innovations(ends[places], numbers, *parts[:-1], status, lasting)
            for value, n in zip(*np.unique(status, return_counts=True), strict=True):
                counts[name][UpdateStatus(int(value)).text] += int(n)
        x = z[..., : system.state.nq]
        counts = {name: Counter({k: n for k, n in c.items() if n}) for name, c in counts.items()}
        return cls(system, ends, x, covariances, z, innovations, counts, smooth)

    @property
    def log_likelihood(self) -> np.ndarray:
        """Logarithm of the likelihood of all measurements that were used, shape (...)."""
        total = np.zeros(self.x.shape[:-2])
        for said in self.innovations.values():
            total = total + np.where(said.is_used, said.log_likelihood, 0.0).sum(axis=-1)
        return total

    def consistency(self, t: Any = None, truth: Any = None) -> Consistency:
        """NEES (with a truth), NIS and whiteness of the innovations, with their bands."""
        errors = None if truth is None else self.nees(t, truth)
        return consistency(errors, self.system.n_errors, self.innovations)

    def plot_consistency(self, t: Any = None, truth: Any = None) -> Figure:
        """NEES (with a truth) and NIS with their 95 % bands, correlations of the innovations.

        Times and truth as for `plot`.
        """
        from ..plotting import plot_consistency
        from ..plotting._internal import Squares

        self._check_single()
        errors, nis, whitened = None, {}, {}
        if truth is not None:
            n = self.system.n_errors
            errors = Squares(np.asarray(t), self.nees(t, truth), chi_squared_band(n, 1))
        for name, said in self.innovations.items():
            used = said.is_used
            if used.any():
                m = said.whitened.shape[-1]
                nis[name] = Squares(said.t[used], said.nis[used] / m, chi_squared_band(m, 1))
                whitened[name] = said.whitened[used]
        if errors is None and not nis:
            raise ValueError("there is neither a truth nor a measurement that was used")
        return plot_consistency(errors, nis, whitened)

    def summary(self) -> str:
        """Say how often what became of intervals and measurements, and what speaks against them.

        Each measurement whose innovations differ from its noise has a line with the number that
        says so: their size (NIS), their correlation, outliers, holes.
        """
        return "\n".join([summary_of(self.counts), *self.doubts()])

    def doubts(self) -> list[str]:
        """What speaks against the measurements or the noise, one line each; none if all is well."""
        return doubts(self.innovations, float(self.t[-1]))

    @interruptible
    def smooth(self, lag: float | None = None, at: Any = None) -> Estimates:
        """Estimates with all measurements in them (Rauch–Tung–Striebel), or those of a time ahead.

        Parameters
        ----------
        lag : float, optional
            Fixed lag: at each time, measurements up to this many seconds later count; all of them
            if left out.
        at : array_like of int, optional
            Rows that are wanted (`index`); all if left out. With a lag this saves time.

        Returns
        -------
        Estimates

        Raises
        ------
        ValueError
            If they are from a file, which has no filter.
        """
        return self._smooth(lag, at)

    def _said(self) -> tuple[dict[str, Innovations], dict[str, Counter[str]]]:
        return self.innovations, self.counts

    @classmethod
    def _loaded(
        cls,
        found: tuple[Any, ...],
        innovations: dict[str, Innovations],
        counts: dict[str, Counter[str]],
    ) -> Self:
        system, t, x, covariances, z = found
        return cls(system, t, x, covariances, z, innovations, counts, _cannot_smooth)

    def _whitened(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {name: (v.t, v.whitened) for name, v in self.innovations.items()}


def _cannot_smooth(lag: float | None, at: Any) -> Estimates:
    raise ValueError(
        "estimates from a file have no filter to smooth them: run it again, filter.run(log).smooth"
        "(), and save what that returns"
    )
