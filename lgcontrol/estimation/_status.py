"""UpdateStatus: how a measurement, and the interval before it, were used; and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum

from ..codegen._internal import Status


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
