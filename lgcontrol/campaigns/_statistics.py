"""Numbers from samples: intervals of shares, rank correlations, Sobol' indices, paired tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen._internal import UnknownNameError, unknown_name

INTERVALS = {"wilson": "wilson", "clopper-pearson": "exact"}
RESAMPLINGS = 200  # of the bootstrap


@dataclass(frozen=True)
class Share:
    """How many of some cases, with the confidence interval of the probability.

    Attributes
    ----------
    passed, count : int
    low, high : float
        Ends of the interval.
    confidence : float
    """

    passed: int
    count: int
    low: float
    high: float
    confidence: float

    @property
    def value(self) -> float:
        """Share of the cases."""
        return self.passed / self.count if self.count else float("nan")

    def __str__(self) -> str:
        return (
            f"{self.passed} of {self.count} ({100 * self.value:.4g} %, with {self.confidence:.0%} "
            f"confidence between {100 * self.low:.4g} and {100 * self.high:.4g} %)"
        )


def share(
    passed: int, count: int, confidence: float = 0.95, method: str = "wilson"
) -> Share:  # fmt: skip
    """Share with its interval: Wilson's, or the wider one of Clopper and Pearson.

    Examples
    --------
    >>> print(share(95, 100))
    95 of 100 (95 %, with 95% confidence between 88.82 and 97.85 %)
    """
    if method not in INTERVALS:
        raise UnknownNameError(unknown_name("method", method, list(INTERVALS)))
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if count == 0:
        return Share(0, 0, 0.0, 1.0, confidence)
    from scipy.stats import binomtest  # here and below where needed: its import takes a second

    found = binomtest(int(passed), int(count)).proportion_ci(confidence, INTERVALS[method])
    return Share(int(passed), int(count), float(found.low), float(found.high), confidence)


def rank_correlation(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Spearman's correlation and its p-value; NaN for constants and fewer than three pairs."""
    use = np.isfinite(x) & np.isfinite(y)
    x, y = x[use], y[use]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), float("nan")
    from scipy.stats import spearmanr

    found: Any = spearmanr(x, y)
    return float(found.statistic), float(found.pvalue)


@dataclass(frozen=True)
class SobolIndex:
    """How much of the variance of a criterion comes from one variation.

    Attributes
    ----------
    first, total : float
        By itself, and with all that it does together with others.
    first_std, total_std : float
        Standard deviations, by resampling.
    """

    first: float
    total: float
    first_std: float
    total_std: float


def sobol_indices(values: np.ndarray, rows: int, names: tuple[str, ...]) -> dict[str, SobolIndex]:
    """First-order and total indices of values at a Saltelli scheme.

    Estimators of Saltelli (2010) and Jansen (1999), on rows that are finite.

    Parameters
    ----------
    values : ndarray, shape ((len(names) + 2) rows,)
    rows : int
    names : tuple of str
    """
    table = values.reshape(len(names) + 2, rows)
    table = table[:, np.isfinite(table).all(axis=0)]
    if table.shape[1] < 2:
        return {name: SobolIndex(*[float("nan")] * 4) for name in names}
    rng = np.random.default_rng(0)
    picks = rng.integers(0, table.shape[1], (RESAMPLINGS, table.shape[1]))
    first, total = _indices(table)
    spread = np.array([_indices(table[:, pick]) for pick in picks])
    std = np.nanstd(spread, axis=0)
    return {
        name: SobolIndex(float(first[k]), float(total[k]), float(std[0, k]), float(std[1, k]))
        for k, name in enumerate(names)
    }


def _indices(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    A, B, mixed = table[0], table[1], table[2:]
    variance = np.var(table[:2])
    if variance == 0:
        return np.full(len(mixed), np.nan), np.full(len(mixed), np.nan)
    centred = B - np.mean(table[:2])
    first = np.mean(centred * (mixed - A), axis=1) / variance
    return first, np.mean((A - mixed) ** 2, axis=1) / (2 * variance)


@dataclass(frozen=True)
class Comparison:
    """Two campaigns case by case.

    Attributes
    ----------
    both, only_first, only_second, neither : int
        Cases in which they succeed.
    p_value : float
        Probability of a difference at least as large if both succeed equally often: McNemar's
        exact test.
    success : (float, float, float)
        Difference of the shares of success, second minus first, with its 95 % interval by
        `paired_share`.
    differences : dict of str to (float, float, float)
        Mean of second minus first of each criterion, and its 95 % interval.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float
    success: tuple[float, float, float]
    differences: dict[str, tuple[float, float, float]]

    def __str__(self) -> str:
        lines = [
            f"both succeed in {self.both} cases, the first alone in {self.only_first}, the second "
            f"alone in {self.only_second}, neither in {self.neither} (p = {self.p_value:.2g})",
            f"  second minus first, success: {difference_in_words(self.success, percent=True)}",
        ]
        lines += [
            f"  {name}: {difference_in_words(difference)}"
            for name, difference in self.differences.items()
        ]
        return "\n".join(lines)


def difference_in_words(difference: tuple[float, float, float], *, percent: bool = False) -> str:
    """A mean with its 95 % interval; it says where the interval holds zero.

    Examples
    --------
    >>> difference_in_words((0.1, -0.2, 0.4), percent=True)
    '+10 % (-20 to +40 %), no difference shown'
    """
    factor, unit = (100.0, " %") if percent else (1.0, "")
    mean, low, high = (factor * one for one in difference)
    text = f"{mean:+.4g}{unit} ({low:+.4g} to {high:+.4g}{unit})"
    return text if shown(difference) else f"{text}, no difference shown"


def shown(difference: tuple[float, float, float]) -> int:
    """1 where an interval is above zero, -1 where it is below, 0 where it holds zero or is none."""
    _, low, high = difference
    return (low > 0) - (high < 0)


def paired_share(only_first: int, only_second: int, count: int) -> tuple[float, float, float]:
    """Share of success of the second minus the first in the same cases, and its 95 % interval.

    It holds zero exactly where McNemar's test has p > 0.05. Its ends are those of the probability
    that the second succeeds where the two differ, times that of the share of cases that differ.

    Examples
    --------
    >>> mean, low, high = paired_share(1, 9, 50)
    >>> round(mean, 2), round(low, 3), round(high, 3)
    (0.16, 0.011, 0.335)
    """
    differing = only_first + only_second
    if not count:
        return float("nan"), float("nan"), float("nan")
    part = share(differing, count, method="clopper-pearson")
    second = share(only_second, differing, method="clopper-pearson")
    low, high = 2 * second.low - 1, 2 * second.high - 1
    return (
        (only_second - only_first) / count,
        low * (part.low if low > 0 else part.high),
        high * (part.high if high > 0 else part.low),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact p-value of McNemar's test."""
    from scipy.stats import binomtest

    count = only_first + only_second
    return float(binomtest(only_first, count).pvalue) if count else 1.0


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean with its 95 % interval by Student's distribution."""
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    from scipy.stats import sem, t

    half = float(t.ppf(0.975, len(values) - 1) * sem(values))
    return mean, mean - half, mean + half
