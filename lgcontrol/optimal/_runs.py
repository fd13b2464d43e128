"""Run: how iterations of the interior point went, what they leave behind and what ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from ..codegen import Progress
from ._interior_point import FAR, GOOD_STEP, Point
from ._kernel import NOT_FINITE, STALLED, Memory
from ._least_violation import Look
from ._outcome import ACCEPTABLE_RESIDUAL, Iteration, SolveStatus
from ._transcription import Nodes

MOST_ITERATIONS = 1000


class Run(NamedTuple):
    """How some iterations went, in memory of its own.

    Attributes
    ----------
    status : int
    point : Point
        The last iterate with its multipliers.
    rows : ndarray, shape (N + 1, rows)
        Values there.
    K : ndarray or None
        Feedback (N, m, n) of the last step that was taken; that of the start where none was.
    steps : int
        How many were taken.
    log : ndarray
        A row of `LOG` for each iteration.
    mu : float
        The barrier's last weight.
    step : float
        Share of the last step that was taken.
    is_lost : bool
        Whether it ended where equalities are missed as little as anywhere near.
    """

    status: int
    point: Point
    rows: np.ndarray
    K: np.ndarray | None
    steps: int
    log: np.ndarray
    mu: float
    step: float
    is_lost: bool = False

    @classmethod
    def of(cls, status: int, memory: Memory, steps: int, log: np.ndarray) -> Run:
        """Copies of what a kernel leaves in its memory, which the next run writes over."""
        point, K, rows = memory.parts(memory.keep())
        about = memory.about
        return cls(status, point, rows, K, steps, log.copy(), about.mu, about.step)

    def after(self, look: Look) -> Run:
        """The same, or one that ends where equalities are missed least if they cannot be kept."""
        lost = look.at(self.point, self.log)
        if lost is None:
            return self
        point, rows, log = lost
        return self._replace(status=STALLED, point=point, rows=rows, log=log, is_lost=True)

    @property
    def is_best(self) -> bool:
        """Whether the last iterate is optimal for its barrier, so that no step is needed."""
        _, stationarity, violation, products, _, _, mu = self.log[-1].tolist()
        return max(stationarity, violation, products - mu) <= ACCEPTABLE_RESIDUAL

    @property
    def is_settled(self) -> bool:
        """Whether real-time steps ended next to an optimum: what they exceed is exceeded there."""
        _, stationarity, violation, *_ = self.log[-1].tolist()
        off = max(stationarity, violation)
        return off <= ACCEPTABLE_RESIDUAL or (off <= FAR and self.step >= GOOD_STEP)

    def later(self, steps: int) -> Run:
        """With gains and multipliers of that many steps later; the last ones are held."""

        def moved(v: np.ndarray) -> np.ndarray:
            return v[np.clip(np.arange(len(v)) + steps, 0, len(v) - 1)]

        point = self.point
        names = ("below", "above", "price", "relief", "equal")
        later = replace(point, **{name: moved(getattr(point, name)) for name in names})
        return self._replace(K=None if self.K is None else moved(self.K), point=later)


class Kept(NamedTuple):
    """What a kernel left, copied but not yet taken apart: loops read little of it.

    Attributes
    ----------
    memory : Memory
    iterate : ndarray
    status, steps : int
    log : ndarray
    mu, step : float
        As of `Run`.
    """

    memory: Memory
    iterate: np.ndarray
    status: int
    steps: int
    log: np.ndarray
    mu: float
    step: float

    @classmethod
    def of(cls, status: int, memory: Memory) -> Kept:
        """Of real-time steps."""
        about, log = memory.about, memory.arrays["log"]
        steps = about.iterations
        found = log[: max(1, steps)].copy()
        if status == NOT_FINITE and not steps:
            found[:] = np.nan
        return cls(memory, memory.keep(), status, steps, found, about.mu, about.step)

    @property
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """States and inputs."""
        return self.memory.nodes(self.iterate)

    @property
    def rows(self) -> np.ndarray:
        """Values of rows, until the next run of the kernel."""
        return self.memory.arrays["rows"]

    def run(self) -> Run:
        """All of it."""
        point, K, rows = self.memory.parts(self.iterate)
        return Run(self.status, point, rows, K, self.steps, self.log, self.mu, self.step)


class Start(NamedTuple):
    """Where real-time steps start.

    Attributes
    ----------
    nodes : Nodes
        At the times of the plan, with states and inputs before a kernel shifts them.
    run : Run or None
        Whose gains and multipliers go on.
    shift : int
        Steps by which a kernel is still to move all that on.
    """

    nodes: Nodes
    run: Run | None
    shift: int


class Watch:
    """What ends a solve early, time, iterations or the callback; says how far it is."""

    def __init__(
        self,
        started: float,
        time_limit: float,
        callback: Callable[[Iteration], bool | None] | None,
        most: int,
        progress: Progress | None = None,
    ) -> None:
        self.started, self.time_limit, self.callback = started, time_limit, callback
        self.progress = progress
        self.most = self.left = min(most, MOST_ITERATIONS)
        self.ended: SolveStatus | None = None

    @property
    def is_needed(self) -> bool:
        """Whether every iteration is to be looked at."""
        return self.callback is not None or isfinite(self.time_limit)

    def is_over(self) -> bool:
        """Whether the time is up, in the middle of what real-time steps still have to do."""
        if time.perf_counter() - self.started > self.time_limit:
            self.ended = SolveStatus.TIME_LIMIT
        return self.ended is not None

    def goes_on(self, entry: np.ndarray, number: int) -> bool:
        """Whether there is another iteration after this one."""
        spent = time.perf_counter() - self.started
        cost, stationarity, violation, products, step, damping, *_ = entry.tolist()
        kkt = max(stationarity, violation, products)
        if self.progress is not None:
            self.progress.tell(lambda: f"{number} iterations, residual {kkt:.1e}")
        if self.callback is not None and self.callback(
            Iteration(number, cost, violation, violation, kkt, step, damping, spent)
        ):
            self.ended = SolveStatus.STOPPED
        elif number < self.left and spent > self.time_limit:
            self.ended = SolveStatus.TIME_LIMIT
        return self.ended is None and number < self.left
