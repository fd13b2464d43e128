"""Runs of the interior point: iterations in C or NumPy, what they leave and what ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ..codegen._internal import Progress
from ._interior_point import Barrier, InteriorPoint, Point, Residuals
from ._kernel import CONVERGED, ITERATIONS, NOT_FINITE, REAL_TIME, RESUME, STALLED, Memory
from ._least_violation import Look
from ._outcome import Iteration, SolveStatus
from ._plan import GAINS, MULTIPLIERS, NODES, Plan, PlanLayout
from ._settings import Settings
from ._transcription import Nodes

# Seconds that a kernel iterates before Python looks whether it was interrupted.
LONGEST_CALL = 0.1
# Parts of a plan that are those of `Point`, in its order.
POINT = ("x", "u", "below", "above", "slack", "price", "excess", "relief", "equal_price")


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
        point, K, rows = memory.keep()
        about = memory.about
        return cls(status, point, rows, K, steps, log.copy(), about.mu, about.step)

    def after(self, look: Look) -> Run:
        """The same, or one that ends where equalities are missed least if they cannot be kept."""
        lost = look.at(self.point, self.log)
        if lost is None:
            return self
        point, rows, log = lost
        return self._replace(status=STALLED, point=point, rows=rows, log=log, is_lost=True)

    def is_best(self, settings: Settings) -> bool:
        """Whether the last iterate is optimal for its barrier, so that no step is needed."""
        _, stationarity, violation, products, _, _, mu = self.log[-1].tolist()
        return max(stationarity, violation, products - mu) <= settings.acceptable

    def is_settled(self, settings: Settings) -> bool:
        """Whether real-time steps ended next to an optimum: what they exceed is exceeded there."""
        _, stationarity, violation, *_ = self.log[-1].tolist()
        off = max(stationarity, violation)
        return off <= settings.acceptable or (
            off <= settings.far and self.step >= settings.step_good
        )

    @classmethod
    def of_plan(cls, plan: Plan) -> Run | None:
        """What a plan goes on from; None where it is of nodes alone."""
        if plan.number("content") == NODES:
            return None
        K = plan["K"].transpose(0, 2, 1) if plan.number("content") == GAINS else None
        log = np.array([[plan.number("cost")]])
        mu, step = plan.number("mu"), plan.number("step")
        point = Point(*(plan[name] for name in POINT))
        return cls(ITERATIONS, point, plan["rows"], K, 0, log, mu, step)

    def plan(self, layout: PlanLayout, t: float, mu_most: float, *, is_penalised: bool) -> Plan:
        """What the next solve or step goes on from."""
        point, numbers = self.point, np.zeros(layout.size)
        K, content = (None, MULTIPLIERS) if self.K is None else (self.K.transpose(0, 2, 1), GAINS)
        parts: dict[str, Any] = {
            **dict(zip(POINT, vars(point).values(), strict=True)), "K": K, "rows": self.rows,
            "t": t, "mu": self.mu, "step": self.step, "cost": self.log[-1][0],
            "is_penalised": float(is_penalised), "mu_most": mu_most, "content": content,
        }  # fmt: skip
        for name, value in parts.items():
            if value is not None:
                numbers[layout.places[name][0]] = np.ravel(value)
        return Plan._taking(layout, numbers)

    def later(self, steps: int) -> Run:
        """With gains and multipliers of that many steps later; the last ones are held."""

        def moved(v: np.ndarray) -> np.ndarray:
            return v[np.clip(np.arange(len(v)) + steps, 0, len(v) - 1)]

        point = self.point
        names = ("below", "above", "price", "relief", "equal")
        later = replace(point, **{name: moved(getattr(point, name)) for name in names})
        return self._replace(K=None if self.K is None else moved(self.K), point=later)


class Kept(NamedTuple):
    """What a kernel left in its memory until its next run: loops read little of it.

    Attributes
    ----------
    memory : Memory
    status, steps : int
    log : ndarray
    step : float
        As of `Run`.
    """

    memory: Memory
    status: int
    steps: int
    log: np.ndarray
    step: float

    @classmethod
    def of(cls, status: int, memory: Memory) -> Kept:
        """Of real-time steps."""
        about, log = memory.about, told(status, memory)
        if status == NOT_FINITE and not about.iterations:
            log[:] = np.nan
        return cls(memory, status, about.iterations, log, about.step)

    @property
    def rows(self) -> np.ndarray:
        """Values of rows."""
        return self.memory.arrays["rows"]

    def run(self) -> Run:
        """All of it, copied."""
        return Run.of(self.status, self.memory, self.steps, self.log)


def told(status: int, memory: Memory) -> np.ndarray:
    """A copy of the log of real-time steps: up to an iterate from which no step leads on."""
    count = memory.about.iterations + (status == STALLED)
    return memory.arrays["log"][: max(1, count)].copy()


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
        self.left = most
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
        (last,) = iterations_of(entry[None], number, spent)
        if self.progress is not None:
            self.progress.tell(lambda: f"{number} iterations, residual {last.kkt:.1e}")
        if self.callback is not None and self.callback(last):
            self.ended = SolveStatus.STOPPED
        elif number < self.left and spent > self.time_limit:
            self.ended = SolveStatus.TIME_LIMIT
        return self.ended is None and number < self.left


def iterations_of(
    log: np.ndarray, first: int, seconds: float, *, price: float = 0.0, is_real_time: bool = False
) -> tuple[Iteration, ...]:
    """What rows of a log say, in the words of all solvers.

    Parameters
    ----------
    log : ndarray, shape (k, columns)
        As `LOG` names them.
    first : int
        Number of the first.
    seconds : float
    price : float
        Of soft bounds, on top of the cost.
    is_real_time : bool
        Whether nobody asked for a residual.

    Returns
    -------
    tuple of Iteration
    """
    return tuple(
        Iteration(
            number,
            cost + price,
            violation,
            violation,
            np.nan if is_real_time else max(stationarity, violation, products),
            step,
            damping,
            seconds,
        )
        for number, (cost, stationarity, violation, products, step, damping, _) in enumerate(
            log.tolist(), first
        )
    )


def run_in_c(
    memory: Memory, x0: np.ndarray, mode: int, watch: Watch, look: Look, **options: Any
) -> Run:
    """Iterations of a kernel from what its memory holds, with looks at the watch in between.

    Parameters
    ----------
    memory : Memory
    x0 : ndarray, shape (nq,)
    mode : int
        FREE_STATES or ROLL_OUT.
    watch : Watch
    look : Look
    **options
        Of `Memory.run`.

    Returns
    -------
    Run
    """
    status, spent = memory.run(x0, mode, max_iterations=0, **options), LONGEST_CALL
    log = [*memory.arrays["log"][: memory.about.iterations + 1].copy()]
    while status == ITERATIONS and watch.goes_on(log[-1], len(log) - 1):
        if look.is_due(log):
            run = Run.of(status, memory, len(log) - 1, np.array(log)).after(look)
            if run.is_lost:
                return run
        most = 1
        if not watch.is_needed:
            left = int(min(look.due, watch.left)) - (len(log) - 1)
            most = max(1, min(left, int(LONGEST_CALL / max(spent, 1e-9))))
        began = time.perf_counter()
        status = memory.run(x0, mode, max_iterations=most, resume=RESUME, **options)
        spent = (time.perf_counter() - began) / most
        log.extend(memory.arrays["log"][1 : memory.about.iterations + 1].copy())
    return Run.of(status, memory, len(log) - 1, np.array(log))


def run_in_numpy(
    point: InteriorPoint,
    mode: int,
    barrier: Barrier,
    tolerance: float,
    watch: Watch,
    before: Run | None = None,
    look: Look | None = None,
) -> Run:
    """Iterations in NumPy: those of the kernel in C, slower.

    Parameters
    ----------
    point : InteriorPoint
        Where they start.
    mode : int
        FREE_STATES, ROLL_OUT or REAL_TIME.
    barrier : Barrier
    tolerance : float
    watch : Watch
    before : Run, optional
        What real-time steps go on from.
    look : Look, optional

    Returns
    -------
    Run
    """
    log: list[np.ndarray] = []
    settings = point.settings
    step, status, taken = 1.0, ITERATIONS, 0
    kept: Run | None = None  # the last of real-time steps that keeps hard rows
    K = None if before is None else before.K

    def entry(found: Residuals, step: float) -> np.ndarray:
        return np.array([point.expansion.cost, *found, step, point.damping, point.mu])

    while True:
        found, taken = point.expand(), len(log)
        if mode == REAL_TIME and np.isfinite(point.expansion.cost) and point.is_worth_keeping:
            own = point.point, point.rows, K, taken, entry(found, step)[None]
            kept = Run(status, *own, point.mu, step)
        if before is not None and not log:
            if point.settle(found, barrier, before.step):
                found = point.expand()
            point.weigh_violations()
        if mode != REAL_TIME and not log and point.start_lower():
            found = point.expand()
        log.append(entry(found, step))
        if not np.isfinite(log[-1][0]):
            status = NOT_FINITE
            break
        if mode != REAL_TIME:
            is_met = point.mu <= barrier.last and found.largest <= tolerance
            if is_met and point.has_followed(found, barrier):
                status = CONVERGED
                break
            if point.look(found) and point.mu <= barrier.last:
                status = CONVERGED if is_met else STALLED
                break
            if not watch.goes_on(log[-1], len(log) - 1):
                break
            if look is not None and look.is_due(log):
                run = Run(status, point.point, point.rows, K, taken, np.array(log), point.mu, step)
                run = run.after(look)
                if run.is_lost:
                    return run
            point.lower_before(found, barrier)
        outcome = point.iterate()
        step = outcome.step
        if step == 0:
            status = STALLED
            break
        assert outcome.sweep is not None
        K = outcome.sweep.K
        if mode != REAL_TIME:
            point.lower_after(barrier, step)
        elif len(log) >= watch.left + (settings.steps_more if point.is_far(found, step) else 0) or (
            watch.is_over()
        ):
            taken = len(log)
            break
    cost = np.nan if before is None else before.log[-1][0]
    is_kept = kept is not None and kept.log[-1][0] <= cost + settings.cost_kept * abs(cost)
    if kept is not None and is_kept and status != NOT_FINITE and point.exceeds:
        log = [*log[:-1], *kept.log]
        return kept._replace(status=status, steps=taken, log=np.array(log), step=step)
    return Run(status, point.point, point.rows, K, taken, np.array(log), point.mu, step)
