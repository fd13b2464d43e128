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

    Ticks are Python integers: times that have little in common cost nothing but larger numbers.

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
        """The longest tick that divides all given times; zeros do not matter."""
        times = [as_fraction(value) for value in seconds if value]
        if not times:
            raise ValueError("no time step given")
        denominator = lcm(*(value.denominator for value in times))
        numerator = gcd(*(int(value * denominator) for value in times))
        return cls(Fraction(numerator, denominator))

    def ticks(self, name: str, seconds: float) -> int:
        """Whole number of ticks of a time; a time that is no multiple of the tick is refused."""
        count = as_fraction(seconds) / self.tick
        if count.denominator != 1:
            raise ValueError(f"{name} = {seconds} s is no multiple of the tick {self.tick} s")
        return int(count)

    def seconds(self, ticks: int) -> float:
        """Time of a tick in s, correctly rounded: nothing accumulates."""
        return ticks * self.tick.numerator / self.tick.denominator


@dataclass(frozen=True)
class Timing:
    """Period, first time and delay of something, in ticks."""

    period: int
    offset: int
    delay: int

    @classmethod
    def of(cls, clock: Clock, what: str, thing: Any, dt: float | None = None) -> Timing:
        """Timing of an object with ``dt`` and, if it likes, ``offset`` and ``delay``."""
        return cls(*(clock.ticks(name, value) for name, value in check_times(what, thing, dt)))


def as_fraction(seconds: float) -> Fraction:
    """A time as an exact ratio: 0.1 is 1/10, 1/3 is 1/3."""
    ratio = Fraction(seconds).limit_denominator(_RESOLUTION)
    if not ratio and seconds:
        raise ValueError(f"{seconds} s is too short: times are resolved to 1e-9 s")
    return ratio


def check_times(what: str, thing: Any, dt: Any = None) -> list[tuple[str, float]]:
    """``dt`` (unless given), ``offset`` and ``delay`` of an object, checked, with their names."""
    period = getattr(thing, "dt", None) if dt is None else dt
    times = [(f"dt of {what}", check_period(f"dt of {what}", period))]
    for key in ("offset", "delay"):
        name = f"{key} of {what}"
        times.append((name, check_time(name, getattr(thing, key, 0.0))))
    return times


def check_period(name: str, value: Any) -> float:
    """A positive, finite number of seconds."""
    number = _as_number(name, value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number of seconds, got {value}")
    return number


def check_time(name: str, value: Any) -> float:
    """A finite number of seconds that is not negative."""
    number = _as_number(name, value)
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be 0 or more seconds, got {value}")
    return number


def _as_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number of seconds, got {value!r}") from None
