"""How far a campaign is: rate, time left, failures."""

from __future__ import annotations

import shutil
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from time import monotonic

from ._case import CaseOutcome
from ._sampling import Case

EVERY = 0.2  # s between lines
WINDOW = 200  # outcomes that the rate is taken of
BAR = 20  # characters of the bar
SHOWN_REASONS = 3  # lines of the table of failures


class CampaignProgress:
    """A bar that is rewritten, and below it a table of the most frequent failures.

    Parameters
    ----------
    count : int
        Cases of the campaign.
    stored : sequence of str
        Why each case of the store failed, empty for a success.
    shown : bool or callable, optional
        See `Campaign.run`.
    """

    def __init__(
        self,
        count: int,
        stored: Sequence[str],
        shown: bool | Callable[[str], None] | None = None,
    ) -> None:
        self.count, self.done, self.stored = count, len(stored), len(stored)
        self.reasons = Counter(filter(None, stored))
        self.failed = self.reasons.total()
        self._times: deque[float] = deque([monotonic()], maxlen=WINDOW)
        self._last, self._below = -1.0, 0
        self._print: Callable[[str], None] | None = None
        if callable(shown):
            self._print = shown
        elif shown or (shown is None and sys.stderr.isatty()):
            self._print = self._draw
        self._is_block = self._print is not None and not callable(shown)
        if self._print is not None and (self.done == count or self._is_block):
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
        text = self._told()
        if self.failed:
            (reason, times), *_ = self.reasons.most_common(1)
            text += f"; {self.failed} failed: {times} × {reason}"
        return text

    def _told(self) -> str:
        span = self._times[-1] - self._times[0]
        rate = (len(self._times) - 1) / span if span > 0 else 0.0
        left = (self.count - self.done) / rate if rate > 0 else float("inf")
        text = f"{self.done} of {self.count} cases"
        if self.stored:
            text += f", {self.stored} from the store"
        if self.done > self.stored:
            text += f", {rate:.3g}/s, {_duration(left)} left"
        return text

    def _draw(self, _: str) -> None:
        """Rewrite bar and table; lines are never longer than the terminal is wide now."""
        full = BAR * self.done // self.count
        lines = [f"[{'#' * full}{'.' * (BAR - full)}] {self._told()}"]
        if self.failed:
            lines.append(f"{self.failed} failed:")
            lines += [f"{n:6d} × {why}" for why, n in self.reasons.most_common(SHOWN_REASONS)]
        width = max(shutil.get_terminal_size().columns - 1, 10)
        up = f"\x1b[{self._below}A" if self._below else ""
        shown = "\n".join(f"{line[:width]}\x1b[K" for line in lines)
        print(f"\r{up}{shown}", end="", file=sys.stderr, flush=True)
        self._below = len(lines) - 1

    def end(self) -> None:
        """Show the last numbers, and leave the line."""
        if self._is_block:
            self._draw("")
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
