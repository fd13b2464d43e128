"""Events: zeros of functions of time and state, located on the interpolated motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy

# Besides the ends of a step, looked at inside it: a function that crosses zero twice between two
# of these is missed.
INTERIOR = tuple(np.linspace(0.0, 1.0, 6)[1:-1])

# A function jumps where it changes by this part of its largest value in a step within a few
# spacings of the time; a cube root, the steepest zero that is likely, changes by 1e-5.
EVENT_JUMP = 1e-3


@dataclass(frozen=True)
class Event:
    """A zero crossing of ``function(t, x)`` to be located.

    Signs are compared at the ends of every step and at four times inside it. An even number of
    crossings between two of these times is missed. The error estimate alone limits the steps. A
    function that changes faster than the state needs a ``max_step`` of `integrate` below five
    times the shortest time between its zeros.

    Parameters
    ----------
    function : callable
        ``(t, x) → number``, x in group coordinates (a NumPy vector). It must be continuous where it
        crosses zero: jumps, as those of a rotation vector at π or of a sign, do not count.
    direction : int
        1 for rising, −1 for falling, 0 for both.
    terminal : bool
        Whether the integration stops there.
    name : str
        Key in `Solution.events`.

    Raises
    ------
    TypeError, ValueError
        If the function is not callable or the direction none of the three.

    Examples
    --------
    >>> Event(lambda t, x: x[2], direction=-1, terminal=True, name="touch down").direction
    -1
    """

    function: Callable[[float, Any], Any]
    direction: int = 0
    terminal: bool = False
    name: str = "event"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"event {self.name!r}: {self.function!r} is not callable")
        if self.direction not in (-1, 0, 1):
            raise ValueError(
                f"event {self.name!r}: direction must be −1, 0 or 1, got {self.direction}"
            )

    def value(self, t: float, x: np.ndarray) -> float:
        """Value of the function; an error names the event if it is not one finite number."""
        value = np.asarray(self.function(t, x), dtype=np.float64)
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError(f"event {self.name!r} returned {value} at t = {t}: need one number")
        return float(value.reshape(()))


class Crossings(NamedTuple):
    """Times and states of the events that occurred.

    Attributes
    ----------
    t : ndarray, shape (n,)
        Times [s].
    x : ndarray, shape (n, nq)
        States.
    """

    t: np.ndarray
    x: np.ndarray


class Crossing(NamedTuple):
    """One crossing: the event's place in the list, its time and state."""

    event: int
    t: float
    x: np.ndarray


def as_events(events: Any) -> tuple[Event, ...]:
    """Events from one or several callables or Event objects; names are made unique."""
    if isinstance(events, Event) or callable(events):
        events = (events,)
    if not isinstance(events, Iterable):
        raise TypeError(f"events must be callables or Event objects, got {events!r}")
    made = [event if isinstance(event, Event) else Event(event) for event in events]
    names = [event.name for event in made]
    return tuple(
        event
        if names.count(event.name) == 1
        else Event(event.function, event.direction, event.terminal, f"{event.name} {i}")
        for i, event in enumerate(made)
    )


class EventWatch:
    """Follows the signs of event functions along a motion.

    A function that is zero at the start does not count as crossing there.
    """

    def __init__(self, events: tuple[Event, ...], t: float, x: np.ndarray) -> None:
        self.events = events
        self._values = [event.value(t, x) for event in events]

    def step(self, t0: float, t1: float, state: Callable[[float], np.ndarray]) -> list[Crossing]:
        """Crossings from t0 to t1 in the order of motion, up to the first terminal one.

        Parameters
        ----------
        t0, t1 : float
        state : callable
            Interpolated state at a time between them.
        """
        found: list[Crossing] = []
        nodes = [t0, *(t0 + s * (t1 - t0) for s in INTERIOR), t1]
        states = [state(t) for t in nodes[1:]]
        for i, event in enumerate(self.events):
            later = [event.value(t, x) for t, x in zip(nodes[1:], states, strict=True)]
            values = [self._values[i], *later]
            size = max(map(abs, values))
            for (a, left), (b, right) in pairwise(zip(nodes, values, strict=True)):
                if _crosses(left, right, event.direction):
                    t = _locate(event, state, a, b, left, right, size)
                    if t is not None:
                        found.append(Crossing(i, t, state(t)))
            self._values[i] = values[-1]
        found.sort(key=lambda crossing: (crossing.t - t0) * np.sign(t1 - t0))
        for k, crossing in enumerate(found):
            if self.events[crossing.event].terminal:
                return found[: k + 1]
        return found


def _crosses(left: float, right: float, direction: int) -> bool:
    rises = left < 0 <= right
    falls = left > 0 >= right
    return (rises and direction >= 0) or (falls and direction <= 0)


def _locate(
    event: Event,
    state: Callable[[float], np.ndarray],
    a: float,
    b: float,
    left: float,
    right: float,
    size: float,
) -> float | None:
    """Time of the zero between a and b; None where a function of that size jumps over it."""
    if right == 0.0:
        return b
    # the end values are known: brentq must not see them with another sign by rounding
    known = {a: left, b: right}

    def value(t: float) -> float:
        return known[t] if t in known else event.value(t, state(t))

    near = 4 * float(np.spacing(max(abs(a), abs(b))))
    root = float(scipy.optimize.brentq(value, a, b, xtol=near))  # type: ignore[arg-type]
    early, late = (min(max(root + s * near, min(a, b)), max(a, b)) for s in (-2, 2))
    # In a short interval a steady function changes by a good part from one of these to the other.
    steady = 10 * (late - early) / abs(b - a)
    jumps = abs(value(late) - value(early)) > max(EVENT_JUMP, steady) * size
    return None if jumps else root
