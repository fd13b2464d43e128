"""Innovations: densities, weights, tests of consistency, and what speaks against a filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np
import scipy

from ..codegen import Value
from ..codegen._internal import check_shape, factor_symmetric
from ._status import UpdateStatus

LIKELY = 0.95  # probability up to which robust costs and weights are those of a normal density
IMPOSSIBLE = 1e-9  # probability of an innovation that is no noise
DEPENDENT_ROW = 1e-30  # share of a row's square left where it depends on others: rounding
PROBABILITY = 0.95  # of bands of means
# Means of NIS that are doubted: deviations that are off by a fifth, and more than chance leaves
# once in a thousand runs. KITTI has 1.08 with densities by its likelihood, to a factor of two.
SMALLEST, LARGEST, CHANCE = 1 / 1.5, 1.5, 1e-3
CORRELATED = 0.4  # of innovations with those before; more than five deviations from none, too
FEW_INNOVATIONS = 20  # innovations that are too few for a mean
LOST = 10.0  # usual intervals without a measurement that is used
HOLE_SHARE = 0.05  # of the log's time, that such a hole takes at least
# Factor of a recovery on the threshold of a gate: twice the distance, in deviations. KITTI's fixes
# with gate=0.999: 0.26 m with 4, 0.60 m with 1 (test_a_gate_costs_kitti_next_to_nothing).
WIDER = 4.0


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


class Whitened(NamedTuple):
    """A vector in units of its deviations."""

    vector: Value
    squared: Value  # its squared length, ``νᵀ S⁻¹ ν``
    log_density: Value
    is_definite: Value


def chi_squared_quantile(probability: float, m: int) -> float:
    """Squared length that a whitened vector of m entries stays below with a probability."""
    # scipy.stats has it by name, and takes seconds to import
    return float(2 * scipy.special.gammaincinv(m / 2, probability))


def likely_square(m: int) -> float:
    """Squared length that a whitened vector of m entries stays below in 95 % of all cases."""
    return chi_squared_quantile(LIKELY, m)


def whiten(S: Value, nu: Value) -> Whitened:
    """``ν`` with covariance S, by ``S = Lᵀ D L``; numbers are NaN where S is not definite."""
    L, D = factor_symmetric(S)
    m = nu.shape[0]
    rows = ca.vertsplit(nu)
    for k in reversed(range(m)):
        for j in range(k):
            if L.has_nz(k, j):
                rows[j] = rows[j] - L[k, j] * rows[k]
    white = ca.vertcat(*rows) / ca.sqrt(D)
    squared = ca.sumsqr(white)
    definite = D[0] > 0
    for k in range(1, m):
        definite = ca.logic_and(definite, D[k] > 0)
    density = -(squared + ca.sum1(ca.log(D)) + m * float(np.log(2 * np.pi))) / 2
    return Whitened(white, squared, density, definite)


def cholesky(P: Value) -> Value:
    """Lower triangular L with ``L Lᵀ = P``, by columns; NaN where P is not positive definite."""
    n = P.shape[0]
    rows: list[list[Value]] = [[] for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            entry = P[i, j]
            for a, b in zip(rows[i], rows[j], strict=False):
                entry = entry - a * b
            rows[i].append(ca.sqrt(entry) if i == j else entry / rows[j][j])
    columns = [rows[i][j] for j in range(n) for i in range(j, n)]
    return ca.SX(ca.Sparsity.lower(n), ca.vertcat(*columns))


def triangular(M: Value) -> Value:
    """Lower triangular L with ``L Lᵀ = M Mᵀ``, by Gram and Schmidt on the rows of M.

    The condition of L is that of M: half as many digits are lost as in a factor of ``M Mᵀ``. Rows
    that depend on those before them give zeros on the diagonal.
    """
    rows = ca.vertsplit(ca.densify(M))
    n = len(rows)
    directions: list[Value] = []
    columns: list[list[Value]] = [[] for _ in range(n)]
    for i, row in enumerate(rows):
        size = ca.sumsqr(row)
        for j, direction in enumerate(directions):
            entry = ca.dot(direction, row)  # of what is left, which is the stabler way
            columns[j].append(entry)
            row = row - entry * direction
        square = ca.sumsqr(row)
        is_new = square > DEPENDENT_ROW * size
        length = ca.sqrt(ca.if_else(is_new, square, 1.0))
        columns[i].append(ca.if_else(is_new, length, 0.0))
        directions.append(ca.if_else(is_new, row / length, 0 * row))
    packed = ca.vertcat(*(entry for column in columns for entry in column))
    return ca.SX(ca.Sparsity.lower(n), packed)


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
        correlation[name], pairs = _correlation(said)
        band[name] = 1.96 / pairs**0.5 if pairs else np.inf
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


def doubts(innovations: Mapping[str, Innovations], end: float) -> list[str]:
    """One line for each thing that speaks against a measurement or its noise up to the end."""
    lines = []
    for name, said in innovations.items():
        if said.is_used.any():
            found = [*_size_and_order(said), *_holes(said, end)]
            lines += [f"{name}: {text}" for text in found]
    return lines


def window_doubts(
    total: float, count: int, independent: float, solved: int, unlikely: int, least: bool
) -> list[str]:
    """The same of the windows of a `MovingHorizon`, by what their costs are left with.

    `total` is the sum of twice the costs of `solved` windows. `count` is the number of entries of
    all measurements in them; `independent` of these are independent. If `least`, costs that are
    too small count as well: no weight makes them so.
    """
    found = []
    if independent >= FEW_INNOVATIONS:
        mean = total / count
        low, high = (chi_squared_quantile(p, round(independent)) / independent
                     for p in (CHANCE, 1 - CHANCE))  # fmt: skip
        if mean > max(LARGEST, high) or (least and mean < min(SMALLEST, low)):
            found.append(
                f"windows: costs are {mean:.3g} times what noise as stated leaves; check units, "
                "signs, axes and std_discrete of the measurements, and the noise of the inputs"
            )
    if unlikely:
        found.append(
            f"windows: {unlikely} of {solved} have a cost that is no noise: outliers, or an "
            "estimate that was off"
        )
    return found


def _size_and_order(said: Innovations) -> list[str]:
    used, m, found = said.is_used, said.whitened.shape[-1], []
    squares = np.where(used, said.nis, np.nan) * said.lasting
    n = int(used.sum())
    if size := of_size(float(np.nansum(squares)), n, m, said.lasting):
        found.append(size)
    correlation, _ = _correlation(said)
    if (
        said.lasting == 1
        and n >= FEW_INNOVATIONS
        and abs(correlation) > max(CORRELATED, 5 / np.sqrt(n))
    ):
        found.append(
            f"innovations correlate by {correlation:+.2f} with those before, expected 0: an "
            "offset, a delay, or noise of the inputs that is too small (+) or too large (−)"
        )
    is_odd = squares > chi_squared_quantile(1 - IMPOSSIBLE, m)
    odd = np.flatnonzero(is_odd.reshape(-1, used.shape[-1]).any(axis=0))
    if len(odd) and said.lasting == 1:
        found.append(
            f"{is_odd.sum()} of {n} innovations are no noise (NIS up to "
            f"{np.nanmax(squares) / m:.3g}, the first at {said.t[odd[0]]:.6g} s): outliers, or an "
            "estimate that was off"
        )
    return found


def of_size(squares: float, n: int, m: int, lasting: float) -> str:
    """What the sum of n squares of m innovations says against their noise; empty for nothing.

    Each square (NIS) is times `lasting`, see `Innovations.lasting`.
    """
    if n < FEW_INNOVATIONS * lasting:
        return ""
    mean = squares / (n * m)
    low, high = (chi_squared_quantile(p, n * m) / (n * m) for p in (CHANCE, 1 - CHANCE))
    text = f"NIS {mean:.3g}, expected 1: innovations are {np.sqrt(mean):.2g} times as large as "
    if mean > max(LARGEST, high):
        return (
            f"{text}stated; check its unit, sign, axes and std_discrete, and the noise of the "
            "inputs"
        )
    if mean < min(SMALLEST, low) and lasting == 1:
        return f"{text}stated; lower its std_discrete or the noise of the inputs"
    return ""


def of_unlikely(count: int) -> str:
    """Return the remedy for measurements that were used and are no noise."""
    return (
        f"{count} innovations are no noise and were used; keep outliers out by gate=0.999 or "
        "robust='huber', or check its unit, its frame and P0"
    )


def _correlation(said: Innovations) -> tuple[float, int]:
    """Largest of the entries' correlations with the innovation before, from −1 to 1; its pairs."""
    both = (said.is_used[..., 1:] & said.is_used[..., :-1])[..., None]
    before = np.where(both, said.whitened[..., :-1, :], 0.0)
    after = np.where(both, said.whitened[..., 1:, :], 0.0)
    axes = tuple(range(before.ndim - 1))
    size = np.sqrt((before**2).sum(axis=axes)) * np.sqrt((after**2).sum(axis=axes))
    found = (before * after).sum(axis=axes) / np.maximum(size, np.finfo(float).tiny)
    return float(found[np.argmax(np.abs(found))]), int(both.sum())


def _holes(said: Innovations, end: float) -> list[str]:
    """The longest time without one that is used.

    Errors that last are those of what is known now and then, as that nothing moves.
    """
    if said.lasting > 1:
        return []
    used = said.is_used.reshape(-1, said.is_used.shape[-1]).any(axis=0)
    t = said.t[used]
    times = np.append(t, max(end, t[-1]))
    gaps = np.diff(times)
    usual = float(np.median(np.diff(said.t))) if len(said.t) > 1 else np.inf
    k = int(np.argmax(gaps))
    return _hole(float(gaps[k]), float(times[k]), usual, float(times[-1] - said.t[0]))


def _hole(length: float, begin: float, usual: float, whole: float) -> list[str]:
    if not length > max(LOST * usual, HOLE_SHARE * whole):
        return []
    return [f"none used for {length:.4g} s from {begin:.6g} s on, every {usual:.3g} s else"]


class Uses(NamedTuple):
    """When measurements of a kind were used, told one after the other."""

    first: float = np.inf  # times in s
    last: float = -np.inf
    longest: float = 0.0  # the longest time between two, and where it began, s
    begin: float = 0.0
    number: int = 0

    def with_one(self, t: float) -> Uses:
        """And one taken at a time."""
        if not self.number:
            return Uses(t, t, 0.0, t, 1)
        longest, begin = max((self.longest, self.begin), (t - self.last, self.last))
        return Uses(self.first, max(self.last, t), longest, begin, self.number + 1)

    def holes(self, now: float) -> list[str]:
        """The longest time without one, up to now."""
        if self.number < FEW_INNOVATIONS:
            return []
        usual = (self.last - self.first - self.longest) / (self.number - 2)
        length, begin = max((self.longest, self.begin), (now - self.last, self.last))
        return _hole(length, begin, usual, now - self.first)


Weight = Literal["huber", "cauchy"]
"""How the weight of an unlikely measurement falls: with its distance, or with its square."""


class Gate(NamedTuple):
    """Probability up to which a measurement is believed, and the squared distance that has it."""

    probability: float
    threshold: float

    @classmethod
    def of(cls, name: str, probability: float, m: int) -> Gate:
        """Gate of a measurement of dimension m."""
        if isinstance(probability, str) or not 0 < probability < 1:
            raise ValueError(
                f"gate of {name!r} is a probability between 0 and 1, got {probability!r}"
            )
        return cls(float(probability), chi_squared_quantile(probability, m))


class Weighed(NamedTuple):
    """Factor on R, factor on P, whether it is rejected, status; the gate's memory from now on."""

    R: Value
    inflation: Value
    is_rejected: Value
    status: Value
    counter: Value
    width: Value


def weigh(
    said: Whitened, m: int, counter: Value, width: Value, weight: Weight | None,
    gate: Gate | None, lockout: int,
) -> Weighed:  # fmt: skip
    """What gate and robust weights make of a measurement of dimension m.

    The counter is negative until the gate acts, and then the number of rejections in a row. The
    width is a factor on the threshold: each recovery shows that good measurements were rejected,
    and makes it `WIDER` times wider. ``1 / (1 - probability)`` used measurements, among which one
    rejection of a good one is to be expected, take that back.
    """
    one = ca.SX(1)
    absurd = said.squared > chi_squared_quantile(1 - IMPOSSIBLE, m)
    if gate is not None:  # what a gate that acts lets through is as it should be
        absurd = ca.logic_and(absurd, counter < 0)
    status = ca.if_else(absurd, int(UpdateStatus.UNLIKELY), int(UpdateStatus.USED))
    R, inflation, rejected, wider = one, one, ca.SX(0), width
    if weight is not None:
        share = said.squared / likely_square(m)
        beyond = share > 1
        grown = ca.sqrt(ca.if_else(beyond, share, 1.0))
        if weight == "cauchy":
            grown = grown * grown
        R = grown
        status = ca.if_else(beyond, int(UpdateStatus.WEIGHTED), int(UpdateStatus.USED))
    if gate is not None:
        unlikely = ca.logic_and(said.squared > width * gate.threshold, counter >= 0)
        lost = ca.logic_and(unlikely, counter + 1 >= lockout)
        rejected = ca.logic_and(unlikely, ca.logic_not(lost))
        inflation = ca.if_else(lost, said.squared / m, 1.0)
        R = ca.if_else(lost, 1.0, R)
        status = ca.if_else(unlikely, int(UpdateStatus.REJECTED), status)
        status = ca.if_else(lost, int(UpdateStatus.RECOVERED), status)
        narrower = ca.fmax(1.0, width * WIDER ** -(1 - gate.probability))
        wider = ca.if_else(lost, WIDER * width, ca.if_else(rejected, width, narrower))
    counter = ca.if_else(rejected, counter + 1, ca.fmin(counter + 1, 0))
    return Weighed(R, inflation, rejected, status, counter, wider)
