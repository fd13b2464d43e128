"""What became of intervals and measurements, and the part of an interval that is new."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from math import inf, isfinite, ulp
from typing import NamedTuple

from ..codegen._internal import Status, level_outside
from ._log import MOST_PIECES, SAME_TIME, ULPS

LONGEST_GAP = 600.0  # s; who says nothing for longer has another clock, or has been off
MOST_GAP_STEPS = 10_000  # of a discrete system in a gap
BACK = 5  # intervals in a row whose ends are known already: the clock was set back for good
LARGEST_SQUARED = 1e150  # values not below it, NaN too, are non-finite: they are squared
NODE_ROUNDING = 1e-3  # share of a window's step by which the numbers near a time may be apart
LAST_TIME = 1e12  # s; later ones, 30,000 years, are of no clock


class UpdateStatus(Status, IntEnum):
    """What became of a measurement; each is counted in the summary of a filter.

    ``USED``: as it is. ``WEIGHTED``: with less weight than its covariance says, as it is unlikely.
    ``REJECTED``: not used, as it is more unlikely than the gate allows. ``RECOVERED``: used in
    spite of that, after several rejections in a row. The covariance of the state was inflated until
    the measurement was a likely one. ``UNLIKELY``: used, since no gate acts and there are no robust
    weights, although one of a billion good ones is as far off. It is an outlier, in another unit or
    frame, or the first estimate is worse than its covariance says. Not used, and nothing changes:
    ``NOT_FINITE``; ``OFF_GROUP`` (no element of the group of the measurement: a quaternion that is
    far from unit length); ``SATURATED`` (at an end of the measurement's limits or beyond: it says
    that much alone). Also ``SINGULAR``: its covariance and that of the state leave a combination of
    its entries without any uncertainty, or the correction is not finite. ``STALE`` (older than its
    validity, or than what the filter remembers), ``FUTURE`` (taken after the time of the estimate):
    not used.
    """

    NONE = 0
    USED = 1
    WEIGHTED = 2
    REJECTED = 3
    RECOVERED = 4
    NOT_FINITE = 5
    OFF_GROUP = 6
    SATURATED = 7
    SINGULAR = 8
    STALE = 9
    FUTURE = 10
    UNLIKELY = 11

    @property
    def is_success(self) -> bool:
        """Whether the estimate was corrected."""
        return self in (
            UpdateStatus.USED,
            UpdateStatus.WEIGHTED,
            UpdateStatus.RECOVERED,
            UpdateStatus.UNLIKELY,
        )


class PredictStatus(Status, IntEnum):
    """What became of an interval.

    ``HELD``: an input was not finite, its last usable value took its place. ``SATURATED``: a
    measured input was at or beyond its bounds, and is clipped to them. ``GAP``: time had gone on
    since the interval before; the last inputs were held over the gap. ``OVERLAP``: time went back;
    what was predicted already is left out. ``REFUSED``: the interval is negative or not finite, or
    the prediction is not finite; nothing changes, and the next interval finds a gap. ``JUMP``: the
    clock is another one. It went on by more than 10 min without an interval (10,000 steps of a
    discrete system), or the fifth interval in a row ends at a time that the estimate has already
    reached. The estimate stays as it is and goes on at the new time.
    """

    PREDICTED = 0
    HELD = 1
    SATURATED = 2
    GAP = 3
    OVERLAP = 4
    REFUSED = 5
    JUMP = 6

    @property
    def is_success(self) -> bool:
        """Whether the estimate was predicted over the interval."""
        return self not in (PredictStatus.REFUSED, PredictStatus.JUMP)


def no_counts(sensors: Iterable[str]) -> dict[str, Counter[str]]:
    """Counts of intervals ("predict") and of measurements by name, before there was one."""
    return {name: Counter() for name in ("predict", *sensors)}


def summary_of(counts: Mapping[str, Counter[str]]) -> str:
    """One line for intervals and for each measurement: how often what became of them."""
    lines = []
    for name, counter in counts.items():
        parts = [f"{n} {text}" for text, n in counter.items()]
        lines.append(f"{name}: {', '.join(parts) or 'none'}")
    return "\n".join(lines)


class Interval(NamedTuple):
    """The part of an interval that is to be predicted."""

    gap: float  # time before it that nothing was said of, s
    dt: float  # remaining part of the interval itself, s
    status: PredictStatus | None  # None where it follows on the one before
    behind: int  # intervals in a row whose ends are known already


def rounding_of(t: float) -> float:
    """How far times near t may be apart, in s, and are the same."""
    return max(SAME_TIME, ULPS * ulp(t))


def new_part(now: float | None, t: float, dt: float, behind: int, sample: float = 0.0) -> Interval:
    """What of an interval an estimator has not predicted yet.

    `now` is the time of the estimate, None before there is one; `behind` is that of the interval
    before. Gaps of a discrete system are whole steps of its sample time, 0 of a continuous one.
    """
    if not (isfinite(t) and abs(t) < LAST_TIME and 0 <= dt < inf):
        return Interval(0.0, 0.0, PredictStatus.REFUSED, behind)
    ahead = 0.0 if now is None else t - now
    if abs(ahead) <= rounding_of(t) or (sample and abs(ahead) < sample / 2):
        return Interval(0.0, dt, None, 0)
    if ahead > (min(LONGEST_GAP, MOST_GAP_STEPS * sample) if sample else LONGEST_GAP):
        return Interval(0.0, dt, PredictStatus.JUMP, 0)
    ahead = round(ahead / sample) * sample if sample else ahead
    if ahead > 0:
        return Interval(ahead, dt, PredictStatus.GAP, 0)
    left = dt + ahead
    if left > rounding_of(t):
        return Interval(0.0, left, PredictStatus.OVERLAP, 0)
    if behind + 1 < BACK:
        return Interval(0.0, 0.0, PredictStatus.OVERLAP, behind + 1)
    return Interval(0.0, dt, PredictStatus.JUMP, 0)


def warn_of_interval(
    warned: set[PredictStatus], who: str, new: Interval, t: float, dt: float, now: float | None
) -> None:
    """Warn of an interval that is negative, or known already as a whole: once of each.

    All are counted, and a loop would repeat the warning for ever: `warned` grows by what was told.
    """
    if new.status is PredictStatus.REFUSED and dt < 0:
        message = f"dt = {dt:g} s is negative; give t, its start, and dt, its length"
    elif new.status is PredictStatus.OVERLAP and new.dt == 0 < dt:
        message = (
            f"the estimate is at {now:.9g} s already; predict each interval once, with t its "
            "start, and reset() where another run begins"
        )
    else:
        return
    if new.status not in warned:
        warned.add(new.status)
        warnings.warn(
            f"{who}.predict: the interval from {t:.9g} to {t + dt:.9g} s is left out: {message}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )


def pieces_of(gap: float, usual: float) -> int:
    """Into how many equal pieces a gap is divided, by the length of the last interval in s."""
    return 1 if usual <= 0 else max(1, min(MOST_PIECES, round(gap / usual)))
