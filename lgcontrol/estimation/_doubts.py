"""doubts: what innovations over a whole log say against a filter, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ._innovations import Innovations
from ._normal import IMPOSSIBLE, chi_squared_quantile

# Means of NIS that are doubted: deviations that are off by a fifth, and more than chance leaves
# once in a thousand runs. KITTI has 1.08 with densities by its likelihood, to a factor of two.
SMALLEST, LARGEST, CHANCE = 1 / 1.5, 1.5, 1e-3
CORRELATED = 0.4  # of innovations with those before; more than five deviations from none, too
FEW_INNOVATIONS = 20  # innovations that are too few for a mean
LOST = 10.0  # usual intervals without a measurement that is used
HOLE_SHARE = 0.05  # of the log's time, that such a hole takes at least


def doubts(innovations: Mapping[str, Innovations], end: float) -> list[str]:
    """One line for each thing that speaks against a measurement or its noise.

    Parameters
    ----------
    innovations : mapping of str to Innovations
    end : float
        Time of the last estimate, s.
    """
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

    Parameters
    ----------
    total : float
        Sum of twice the costs.
    count : int
        Entries of all measurements in these windows.
    independent : float
        How many of these are independent.
    solved, unlikely : int
        Windows, and those whose cost is no noise.
    least : bool
        Whether costs that are too small count, as no weight makes them so.
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
    correlation = _correlation(said)
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
    """What the sum of n squares of innovations says against their noise; empty for nothing.

    Parameters
    ----------
    squares : float
        Sum of NIS, each times `lasting`.
    n : int
        How many there are.
    m : int
        Entries of each.
    lasting : float
        `Innovations.lasting`.
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


def _correlation(said: Innovations) -> float:
    """Largest of the entries' correlations with the innovation before, from −1 to 1."""
    both = (said.is_used[..., 1:] & said.is_used[..., :-1])[..., None]
    before = np.where(both, said.whitened[..., :-1, :], 0.0)
    after = np.where(both, said.whitened[..., 1:, :], 0.0)
    axes = tuple(range(before.ndim - 1))
    size = np.sqrt((before**2).sum(axis=axes)) * np.sqrt((after**2).sum(axis=axes))
    found = (before * after).sum(axis=axes) / np.maximum(size, np.finfo(float).tiny)
    return float(found[np.argmax(np.abs(found))])


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
    """When measurements of a kind were used, told one after the other.

    Attributes
    ----------
    first, last : float
        Times in s.
    longest, begin : float
        The longest time between two, and where it began, s.
    number : int
    """

    first: float = np.inf
    last: float = -np.inf
    longest: float = 0.0
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
