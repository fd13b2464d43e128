"""Consistency: whether errors are as large as covariances say: NEES, NIS, whiteness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ._innovations import Innovations
from ._normal import chi_squared_quantile

PROBABILITY = 0.95


@dataclass(frozen=True)
class Consistency:
    """How errors compare with covariances.

    Attributes
    ----------
    nees : float or None
        Mean of the normalised estimation error squared by its dimension; one is right.
    nees_inside : float or None
        Share of the steps at which its mean over the runs is in its 95 % band.
    nis : dict of str to float
        The same of the innovations of each measurement.
    nis_inside : dict of str to float
        Share of the steps inside the band of NIS.
    correlation : dict of str to float
        Largest correlation, of an entry of the whitened innovations, with the one before; zero is
        right.
    correlation_band : dict of str to float
        What 95 % of white sequences of this length stay within.
    """

    nees: float | None
    nees_inside: float | None
    nis: dict[str, float]
    nis_inside: dict[str, float]
    correlation: dict[str, float]
    correlation_band: dict[str, float]

    def __str__(self) -> str:
        """One line for each."""
        lines = []
        if self.nees is not None and self.nees_inside is not None:
            lines.append(f"NEES {self.nees:.2f}, inside its band at {self.nees_inside:.0%}")
        for name, value in self.nis.items():
            lines.append(
                f"{name}: NIS {value:.2f}, inside its band at {self.nis_inside[name]:.0%}, "
                f"correlation {self.correlation[name]:+.2f} (white within "
                f"±{self.correlation_band[name]:.2f})"
            )
        return "\n".join(lines)


def nees(error: Any, P: Any, entries: Any = slice(None)) -> np.ndarray:
    """``εᵀ P⁻¹ ε / n``: one on average, if P is the covariance of ε.

    Parameters
    ----------
    error : array_like, shape (..., n)
    P : array_like, shape (..., n, n)
    entries : slice or sequence of int
        Entries that count.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> float(nees([1.0, 2.0], np.diag([1.0, 4.0])))
    1.0
    """
    error = check_shape("error", error, (None,), batch=True, finite=False)[..., entries]
    P = np.asarray(P, dtype=np.float64)[..., entries, :][..., :, entries]
    return np.squeeze(
        error[..., None, :] @ np.linalg.solve(P, error[..., None]) / error.shape[-1], (-2, -1)
    )[()]


def chi_squared_band(dimension: int, runs: int) -> tuple[float, float]:
    """Interval that holds 95 % of the means of ``χ²/dimension`` over some runs.

    Examples
    --------
    >>> lower, upper = chi_squared_band(3, 100)
    >>> round(lower, 2), round(upper, 2)
    (0.85, 1.17)
    """
    m = dimension * runs
    tails = (1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2
    return chi_squared_quantile(tails[0], m) / m, chi_squared_quantile(tails[1], m) / m


def consistency(
    errors: np.ndarray | None, dimension: int, innovations: Mapping[str, Innovations]
) -> Consistency:
    """Summarise NEES, shape (..., K), and innovations."""
    mean = inside = None
    if errors is not None:
        mean, inside = _share(errors * dimension, dimension)
    nis, nis_inside, correlation, band = {}, {}, {}, {}
    for name, said in innovations.items():
        used = said.is_used
        if not used.any():
            continue
        m = said.whitened.shape[-1]
        nis[name], nis_inside[name] = _share(np.where(used, said.nis, np.nan), m)
        correlation[name], band[name] = _correlation(said.whitened, used)
    return Consistency(mean, inside, nis, nis_inside, correlation, band)


def _share(squares: np.ndarray, dimension: int) -> tuple[float, float]:
    """Mean of χ²/dimension, and the share of steps where the mean over runs is in its band."""
    runs = squares.reshape(-1, squares.shape[-1])
    counted = (~np.isnan(runs)).sum(axis=0)
    some = counted > 0
    means = np.nansum(runs[:, some], axis=0) / counted[some] / dimension
    bands = {n: chi_squared_band(dimension, int(n)) for n in np.unique(counted[some])}
    lower, upper = np.array([bands[n] for n in counted[some]]).reshape(-1, 2).T
    within = (lower <= means) & (means <= upper)
    return float(np.nanmean(runs) / dimension), float(within.mean())


def _correlation(whitened: np.ndarray, used: np.ndarray) -> tuple[float, float]:
    """Correlation of neighbours, the largest of the entries, and its band."""
    both = (used[..., 1:] & used[..., :-1])[..., None]
    before, after = whitened[..., :-1, :], whitened[..., 1:, :]
    axes = tuple(range(whitened.ndim - 1))
    product = np.where(both, before * after, 0.0).sum(axis=axes)
    square = np.where(used[..., None], whitened**2, 0.0).sum(axis=axes)
    pairs, count = int(both.sum()), int(used.sum())
    if not pairs:
        return 0.0, np.inf
    found = (product / pairs) / (square / count)
    return float(found[np.argmax(np.abs(found))]), float(1.96 / np.sqrt(pairs))
