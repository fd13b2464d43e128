"""Solutions of an integration, and the events that end or mark it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy

from ..codegen._internal import Result, Status, check_shape
from ..groups import LieGroup

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

        `state` interpolates between them.
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


class IntegrationStatus(Status, StrEnum):
    """How an integration ended: the first two are successes.

    "finished" is the end of the time span, "event" a terminal event, "max steps" the limit of
    steps. "step too small" means that no step meets the tolerances, "not finite" that the field is
    not finite.
    """

    FINISHED = "finished"
    EVENT = "event"
    STEP_TOO_SMALL = "step too small"
    MAX_STEPS = "max steps"
    NOT_FINITE = "not finite"

    @property
    def is_success(self) -> bool:
        """Whether the end or a terminal event was reached."""
        return self in (IntegrationStatus.FINISHED, IntegrationStatus.EVENT)


class Statistics(NamedTuple):
    """Effort of an integration.

    Attributes
    ----------
    steps, rejected : int
        Steps that met the tolerance, and that did not.
    evaluations : int
        Evaluations of the field.
    shortest : float
        Shortest step made [s]; the remainder before the end does not count, unless it is the only
        step. NaN if there was no step.
    method : str
        Method at the end; "auto" may have changed it on the way.
    """

    steps: int
    rejected: int
    evaluations: int
    shortest: float
    method: str


@dataclass(frozen=True, eq=False)
class Solution(Result):
    """Motion on a group, callable at any time it covers.

    Attributes
    ----------
    group : LieGroup
    t : ndarray, shape (n,)
        Times [s] of the accepted steps.
    x : ndarray, shape (n, nq)
        States there.
    events : mapping of str to Crossings
        Times and states of each event.
    status : IntegrationStatus
        How it ended. The part that was integrated is kept in every case.
    message : str
        The status in a sentence.
    statistics : Statistics
    """

    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    events: Mapping[str, Crossings]
    status: IntegrationStatus
    message: str
    statistics: Statistics
    _dense: np.ndarray | None = field(default=None, repr=False)
    _steps: np.ndarray | None = field(default=None, repr=False)

    def __call__(self, t: Any) -> np.ndarray:
        """State at times between the first and the last, interpolated on the group.

        Parameters
        ----------
        t : array_like, shape (...)
            Times [s].

        Returns
        -------
        ndarray, shape (..., nq)

        Raises
        ------
        ValueError
            If a time is outside, or no dense output was kept.
        """
        if self._dense is None or self._steps is None:
            raise ValueError("dense output has not been kept; integrate with dense=True")
        times = check_shape("t", t, (), batch=True)
        low, high = sorted((self.t[0], self.t[-1]))
        outside = times[(times < low) | (times > high)]
        if outside.size:
            raise ValueError(f"t = {outside.flat[0]} is outside of the solution: {low} to {high}")
        if len(self._steps) == 0:
            return np.broadcast_to(self.x[0], (*times.shape, self.group.nq)).copy()
        forward = np.sign(self._steps[0])
        k = np.searchsorted(forward * self.t, forward * times, side="right") - 1
        k = np.clip(k, 0, len(self._steps) - 1)
        s = (times - self.t[k]) / self._steps[k]
        return self.group.plus(self.x[k], polynomial(self._dense[k], s))


def polynomial(coefficients: np.ndarray, s: Any) -> np.ndarray:
    """``s (c₀ + (1 − s)(c₁ + s (c₂ + (1 − s) c₃)))``: the tangent vector at the fraction s."""
    c = np.moveaxis(coefficients, -1, 0)
    s = np.asarray(s)[..., None]
    return s * (c[0] + (1 - s) * (c[1] + s * (c[2] + (1 - s) * c[3])))
