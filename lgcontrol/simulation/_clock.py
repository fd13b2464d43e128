"""One integer tick for everything that runs at its own rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from math import gcd, inf, isfinite, lcm
from typing import Generic, TypeVar

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
        return cls(_longest_tick(frozenset(seconds)))

    def ticks(self, name: str, seconds: float) -> int:
        """Whole number of ticks of a time; a time that is no multiple of the tick is refused."""
        time, tick = as_fraction(seconds), self.tick
        count, rest = divmod(time.numerator * tick.denominator, time.denominator * tick.numerator)
        if rest:
            raise ValueError(f"{name} = {seconds} s is no multiple of the tick {self.tick} s")
        return count

    def seconds(self, ticks: int) -> float:
        """Time of a tick in s, correctly rounded: nothing accumulates."""
        return ticks * self.tick.numerator / self.tick.denominator


@dataclass(frozen=True)
class Times:
    """Period, first time and delay of something in s, checked, and what it is called.

    Parameters
    ----------
    what : str
    dt, offset, delay : float

    Raises
    ------
    TypeError, ValueError
        If one of them is no time; the message names it.
    """

    what: str
    dt: float
    offset: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        check_period(f"dt of {self.what}", self.dt)
        for key in ("offset", "delay"):
            check_time(f"{key} of {self.what}", getattr(self, key))

    @cached_property
    def named(self) -> list[tuple[str, float]]:
        """All times with their names, for the clock."""
        return [(f"{key} of {self.what}", getattr(self, key)) for key in ("dt", "offset", "delay")]

    def on(self, clock: Clock) -> Timing:
        """The same in ticks."""
        return Timing(*(clock.ticks(name, value) if value else 0 for name, value in self.named))


@dataclass(frozen=True)
class Timing:
    """Period, first time and delay of something, in ticks."""

    period: int
    offset: int
    delay: int

    def is_due(self, now: int) -> bool:
        """Whether it happens at a tick."""
        return now >= self.offset and (now - self.offset) % self.period == 0

    def after(self, now: int) -> int:
        """The first tick later than now at which it happens."""
        return max(self.offset, now + self.period - (now - self.offset) % self.period)


Item = TypeVar("Item")


class Queue(Generic[Item]):
    """Items under way: taken out when due, the older ones first.

    Examples
    --------
    >>> mail = Queue()
    >>> mail.put(3, "slow")
    >>> mail.put(2, "fast")
    >>> list(mail.due(2)), mail.next
    (['fast'], 3)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._count = 0

    def put(self, tick: int, item: Item) -> None:
        """Add something that arrives at a tick."""
        self._count += 1
        heappush(self._heap, (tick, self._count, item))

    def due(self, now: int) -> Iterator[Item]:
        """Take out what has arrived."""
        while self._heap and self._heap[0][0] <= now:
            yield heappop(self._heap)[2]

    @property
    def next(self) -> float:
        """Tick of the next arrival, infinite without one."""
        return self._heap[0][0] if self._heap else inf

    def __len__(self) -> int:
        """Count what is still under way."""
        return len(self._heap)


@lru_cache(maxsize=256)
def _longest_tick(seconds: frozenset[float]) -> Fraction:
    times = {as_fraction(value) for value in seconds if value}
    if not times:
        raise ValueError("no time step given")
    denominator = lcm(*(value.denominator for value in times))
    numerator = gcd(*(value.numerator * denominator // value.denominator for value in times))
    return Fraction(numerator, denominator)


@lru_cache(maxsize=256)
def as_fraction(seconds: float) -> Fraction:
    """A time as an exact ratio: 0.1 is 1/10, 1/3 is 1/3."""
    ratio = Fraction(seconds).limit_denominator(_RESOLUTION)
    if not ratio and seconds:
        raise ValueError(f"{seconds} s is too short: times are resolved to 1e-9 s")
    return ratio


def check_period(name: str, value: object) -> float:
    """A positive, finite number of seconds."""
    number = _as_number(name, value)
    if not (isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number of seconds, got {value}")
    return number


def check_time(name: str, value: object) -> float:
    """A finite number of seconds that is not negative."""
    number = _as_number(name, value)
    if not (isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be 0 or more seconds, got {value}")
    return number


def _as_number(name: str, value: object) -> float:
    try:
        if isinstance(value, str):  # which Python would read
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number of seconds, got {value!r}") from None
