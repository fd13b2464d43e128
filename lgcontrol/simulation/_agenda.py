"""Agenda: what happens when, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

Action = Callable[[int], None]
"""What an event does; it is told the tick."""

# Order of what is due at the same tick. Controllers take two ranks each, from the outer to the
# inner: the call, then the effect of an answer, which the next inner one may use at once.
KICK, MEASURE, DELIVER, CONTROL, DISTURB = 0, 1, 2, 3, 10**6


class Agenda:
    """Events by tick, then rank, then the order they were added in.

    Examples
    --------
    >>> agenda, done = Agenda(), []
    >>> agenda.every(3, 1, 0, lambda tick: done.append(("slow", tick)))
    >>> agenda.every(1, 0, 1, lambda tick: done.append(("fast", tick)))
    >>> for tick in range(5):
    ...     agenda.run(tick)
    >>> done
    [('fast', 0), ('slow', 1), ('fast', 1), ('fast', 2), ('fast', 3), ('slow', 4), ('fast', 4)]
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Action]] = []
        self._count = 0

    def at(self, tick: int, rank: int, action: Action) -> None:
        """Add an event; one added for the current tick happens if its rank is still to come."""
        self._add(tick, rank, 0, action)

    def every(self, period: int, first: int, rank: int, action: Action) -> None:
        """Add a periodic event."""
        self._add(first, rank, period, action)

    def _add(self, tick: int, rank: int, period: int, action: Action) -> None:
        self._count += 1
        heappush(self._heap, (tick, rank, self._count, period, action))

    def run(self, now: int, below: int | None = None) -> None:
        """Do what is due, in order; with `below`, only ranks below it, as the last thing."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            tick, rank, order, period, action = heap[0]
            if below is not None and rank >= below:
                return
            if period:
                heapreplace(heap, (tick + period, rank, order, period, action))
            else:
                heappop(heap)
            action(now)

    def next(self, limit: int) -> int:
        """Tick of the next event, at most the limit."""
        return min(self._heap[0][0], limit) if self._heap else limit
