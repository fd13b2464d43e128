"""How far a campaign is: rate, time left, failures."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic

from ._case import CaseOutcome
from ._sampling import Case

EVERY = 0.2  # s between lines
WINDOW = 200  # outcomes that the rate is taken of


class CampaignProgress:
    """A line that is rewritten, and a table of failures at the end.

    Parameters
    ----------
    count, done : int
        Cases of the campaign, and those that the store has.
    shown : bool or callable, optional
        See `Campaign.run`.
    """

    def __init__(
        self, count: int, done: int, shown: bool | Callable[[str], None] | None = None
    ) -> None:
        self.count, self.done, self.failed, self.stored = count, done, 0, done
        self.reasons: Counter[str] = Counter()
        self._times: deque[float] = deque([monotonic()], maxlen=WINDOW)
        self._last = -1.0
        self._print: Callable[[str], None] | None = None
        if callable(shown):
            self._print = shown
        elif shown or (shown is None and sys.stderr.isatty()):
            self._print = lambda line: print(f"\r{line:<79}", end="", file=sys.stderr, flush=True)
        self._is_line = self._print is not None and not callable(shown)
        if self._print is not None and done == count:  # no case is left to tell of
            self._print(self.line())

    def tell(self, case: Case, outcome: CaseOutcome) -> None:
        """Count an outcome."""
        now = monotonic()
        self.done += 1
        self._times.append(now)
        if not outcome.is_success:
            self.failed += 1
            self.reasons[outcome.message or outcome.status] += 1
        if self._print is not None and (now - self._last > EVERY or self.done == self.count):
            self._last = now
            self._print(self.line())

    def line(self) -> str:
        """Cases, rate, time left, failures and the most frequent reason."""
        span = self._times[-1] - self._times[0]
        rate = (len(self._times) - 1) / span if span > 0 else 0.0
        left = (self.count - self.done) / rate if rate > 0 else float("inf")
        text = f"{self.done} of {self.count} cases"
        if self.stored:
            text += f", {self.stored} from the store"
        if self.done > self.stored or not self.stored:
            text += f", {rate:.3g}/s, {_duration(left)} left"
        if self.failed:
            (reason, times), *_ = self.reasons.most_common(1)
            text += f"; {self.failed} failed: {times} × {reason}"
        return text[:79]

    def end(self) -> None:
        """Leave the line."""
        if self._is_line:
            print(file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min"
        if hours
        else f"{minutes} min {rest} s"
        if minutes
        else f"{rest} s"
    )
