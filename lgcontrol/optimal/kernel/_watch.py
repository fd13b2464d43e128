"""Watch: what ends a solve early, asked by the kernel after every iteration."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from ...codegen._internal import Progress
from .._outcome import Iteration, SolveStatus
from ._results import iteration_of
from ._table import LOG, WATCH


class Watch:
    """What ends a solve early, time or the callback; says how far it is.

    The kernel asks it after every iteration. What a callback raises, or Ctrl-C, ends the solve and
    is raised behind it. Behind some iteration it calls `late`, once.
    """

    def __init__(
        self, started: float, time_limit: float,
        callback: Callable[[Iteration], bool | None] | None, progress: Progress | None,
        late: Callable[[], None] | None = None, after: float = inf,
    ) -> None:  # fmt: skip
        self.started, self.time_limit, self.callback = started, time_limit, callback
        self.progress, self.number = progress, 0
        self.late, self.after = late, after
        self.ended: SolveStatus | None = None
        self.error: BaseException | None = None
        self.call = WATCH(self._ask)

    def _ask(self, entry: Any) -> int:
        try:
            spent = time.perf_counter() - self.started

            def last() -> Iteration:
                return iteration_of(entry[: len(LOG)], self.number, spent)

            if self.progress is not None:
                self.progress.tell(lambda: f"{self.number} iterations, residual {last().kkt:.1e}")
            if self.callback is not None and self.callback(last()):
                self.ended = SolveStatus.STOPPED
            elif spent > self.time_limit:
                self.ended = SolveStatus.TIME_LIMIT
            if self.late is not None and self.number >= self.after and not self.is_over:
                late, self.late = self.late, None
                late()
            self.number += 1
        except BaseException as error:  # of the callback, or Ctrl-C
            self.error = error
        return int(self.is_over)

    @property
    def is_over(self) -> bool:
        """Whether it ended the solve."""
        return self.ended is not None or self.error is not None

    @contextmanager
    def over(self, task: Any) -> Iterator[None]:
        """It watches runs of a task; what ended them is raised behind."""
        task.watch = ctypes.cast(self.call, ctypes.c_void_p).value
        try:
            yield
        finally:  # the callback is gone after this call
            task.watch = None
        if self.error is not None:
            raise self.error
