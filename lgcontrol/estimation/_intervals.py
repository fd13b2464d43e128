"""What of an interval is new to an estimator, and when its clock is another one."""

from __future__ import annotations

import warnings
from math import inf, isfinite, ulp
from typing import NamedTuple

from ..codegen._internal import level_outside
from ._log import MOST_PIECES, SAME_TIME, ULPS
from ._status import PredictStatus

LONGEST_GAP = 600.0  # s; who says nothing for longer has another clock, or has been off
MOST_GAP_STEPS = 10_000  # of a discrete system in a gap
BACK = 5  # intervals in a row whose ends are known already: the clock was set back for good
LARGEST_SQUARED = 1e150  # values not below it, NaN too, are non-finite: they are squared
NODE_ROUNDING = 1e-3  # share of a window's step by which the numbers near a time may be apart
LAST_TIME = 1e12  # s; later ones, 30,000 years, are of no clock


class Interval(NamedTuple):
    """The part of an interval that is to be predicted.

    Attributes
    ----------
    gap : float
        Time before it that nothing was said of, s.
    dt : float
        Remaining part of the interval itself, s.
    status : PredictStatus or None
        ``GAP``, ``OVERLAP``, ``JUMP`` or ``REFUSED``; None where it follows on the one before.
    behind : int
        Intervals in a row, with this one, whose ends are known already.
    """

    gap: float
    dt: float
    status: PredictStatus | None
    behind: int


def rounding_of(t: float) -> float:
    """How far times near t may be apart, in s, and are the same."""
    return max(SAME_TIME, ULPS * ulp(t))


def new_part(now: float | None, t: float, dt: float, behind: int, sample: float = 0.0) -> Interval:
    """What of an interval an estimator has not predicted yet.

    Parameters
    ----------
    now : float or None
        Time of the estimate in s, None before there is one.
    t, dt : float
        Start and length of the interval in s.
    behind : int
        `Interval.behind` of the one before.
    sample : float
        Sample time of a discrete system, whose gaps are whole steps; 0 of a continuous one.
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

    All are counted, and a loop would repeat the warning for ever.

    Parameters
    ----------
    warned : set of PredictStatus
        Statuses that were warned of before; it grows.
    who : str
        Class of the estimator.
    new : Interval
    t, dt : float
        As they were given.
    now : float or None
        Time of the estimate in s.
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
