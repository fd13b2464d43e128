"""One integer tick for everything that runs at its own rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

_RESOLUTION = 10**9  # denominators up to a nanosecond; decimals and simple ratios come out exact


@dataclass(frozen=True)
class Clock:
    """Converts seconds to ticks of a length that divides all given times.

    Parameters
    ----------
    tick : Fraction
        Length of a tick in s.

    Examples
    --------
    >>> clock = Clock.dividing([0.02, 0.005, 0.0125])
    >>> clock.tick, clock.ticks("dt", 0.02)
    (Fraction(1, 400), 8)
    """

    tick: Fraction

    @classmethod
    def dividing(cls, seconds: Iterable[float]) -> Clock:
        """The longest tick that divides all given times."""
        times = [as_fraction(value) for value in seconds if value]
        if not times:
            raise ValueError("no time step given")
        denominator = lcm(*(value.denominator for value in times))
        numerator = gcd(*(int(value * denominator) for value in times))
        return cls(Fraction(numerator, denominator))

    def ticks(self, name: str, seconds: float) -> int:
        """Whole number of ticks of a time, rounded down for ends that fall between ticks."""
        count = as_fraction(seconds) / self.tick
        if count.denominator != 1:
            raise ValueError(f"{name} = {seconds} s is no multiple of the tick {self.tick} s")
        return int(count)

    def seconds(self, ticks: int) -> float:
        """Time of a tick in s."""
        return float(self.tick * ticks)


@dataclass
class Schedule:
    """When something periodic is due next, in ticks."""

    period: int
    due: int

    def advance(self, now: int) -> bool:
        """Whether it is due now; moves on to the next time if so."""
        if self.due != now:
            return False
        self.due += self.period
        return True


def schedule(clock: Clock, thing: Any, what: str) -> Schedule:
    """Schedule of an object with ``dt`` and, if it likes, ``offset``."""
    return Schedule(
        clock.ticks(f"dt of {what}", thing.dt),
        clock.ticks(f"offset of {what}", getattr(thing, "offset", 0.0)),
    )


def as_fraction(seconds: float) -> Fraction:
    """A time as an exact ratio: 0.1 is 1/10, 1/3 is 1/3."""
    return Fraction(seconds).limit_denominator(_RESOLUTION)


def check_times(what: str, thing: Any) -> list[float]:
    """``dt``, ``offset`` and ``delay`` of an object, checked."""
    dt = getattr(thing, "dt", None)
    if dt is None or not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"{what} needs dt > 0 in s, got {dt}")
    times = [float(dt)]
    for name in ("offset", "delay"):
        value = getattr(thing, name, 0.0)
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} of {what} must be 0 or more seconds, got {value}")
        times.append(float(value))
    return times
