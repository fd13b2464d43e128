"""Cases on executors: few in flight, none lost with a worker, none blamed before it ran alone.

Cases travel in chunks of 0.6 s: what a hand-over costs is that of many cases.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ._case import CaseOutcome, CaseSetting, CaseStatus, begin_worker, run_cases
from ._design import CampaignError
from ._sampling import Case

PER_WORKER = 2  # chunks in flight
FOREIGN = 64  # chunks in flight on an executor that does not say how many workers it has
CHUNK = 0.6  # s that a chunk takes, about: what a killed worker has to repeat
MOST_CASES = 100  # of a chunk
ALONE = 3  # times that a case must take its process with it, alone, to be set aside
MOST_STARTS = 10  # processes that may die before one answers
POLL = 1.0  # s, after which futures that never called back are looked at


class Executor(Protocol):
    """Anything that runs a function elsewhere and returns a future of its result."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Future with ``result()`` and ``add_done_callback``."""


class LocalPool:
    """Spawned processes of this machine, made again when one of them dies.

    Parameters
    ----------
    workers : int
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, mp_context=context, initializer=begin_worker)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Future of a call."""
        with _without_main(), _without_interrupts():
            return self._pool.submit(function, *arguments)

    def remake(self) -> None:
        """Begin anew after a worker died."""
        self.stop()
        self._pool = self._made()

    def start(self) -> None:
        """Wait for a process that answers: what dies before did not die of a case."""
        for _ in range(MOST_STARTS):
            try:
                self.submit(os.getpid).result()
                return
            except BrokenExecutor:
                self.remake()
        raise CampaignError(
            f"worker processes died {MOST_STARTS} times as they started: see what they wrote, and "
            "whether there is memory for them"
        )

    def stop(self) -> None:
        """End the processes, whatever they do."""
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for one in processes:
            one.kill()
        for one in processes:
            one.join(10.0)


@contextmanager
def _without_main() -> Iterator[None]:
    """Let workers not import the program's own file: they need the design's alone."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__spec__ = None
    if "__file__" in kept:
        del main.__file__
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let workers that begin here not see a Ctrl-C while they import: it is the parent's."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def capacity_of(executor: Any) -> int:
    """Chunks that an executor may hold at a time."""
    for name in ("workers", "_max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int):
            return PER_WORKER * count
    with suppress(Exception):  # a client of dask.distributed knows the threads of each worker
        return max(PER_WORKER * sum(executor.nthreads().values()), 1)
    return FOREIGN


Keyed = tuple[str, Case]


class ChunkSize:
    """How many cases make a chunk, by the time that those before took.

    Parameters
    ----------
    capacity : int
        Chunks in flight.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity, self._cases, self._seconds = capacity, 0, 0.0

    def learn(self, outcomes: Sequence[CaseOutcome]) -> None:
        """Know what cases took; the first one compiles, and tells nothing."""
        if self._cases:
            self._seconds += sum(one.seconds for one in outcomes)
        self._cases += len(outcomes)

    def of(self, left: int) -> int:
        """Size of the next chunk; the last ones are small, so that all workers end together."""
        if self._seconds <= 0.0:
            return 1
        most = int(CHUNK * (self._cases - 1) / self._seconds)
        return max(1, min(MOST_CASES, most, left // self._capacity))


def drive(
    executor: Any,
    setting: CaseSetting,
    cases: Sequence[Keyed],
    deliver: Callable[[Sequence[tuple[str, Case, CaseOutcome]]], None],
) -> None:
    """Run cases and deliver outcomes as they come.

    The first case runs by itself: it compiles what all need. When a worker dies, its cases and
    those next to them run again one at a time. A case that takes its process with it three times
    alone is delivered as "killed".
    """
    waiting, suspects = deque(cases), deque[Keyed]()
    flying: dict[int, tuple[list[Keyed], Any]] = {}
    blamed: Counter[str] = Counter()
    inbox: SimpleQueue[int] = SimpleQueue()
    capacity, is_first = capacity_of(executor), True
    numbers, size = itertools.count(), ChunkSize(capacity)

    def submit(chunk: list[Keyed]) -> None:
        number = next(numbers)
        flying[number] = (chunk, None)
        try:
            future = executor.submit(run_cases, setting, [case for _, case in chunk])
        except BrokenExecutor:  # it broke before it was asked
            inbox.put(number)
            return
        flying[number] = (chunk, future)
        future.add_done_callback(lambda _: inbox.put(number))

    def land(chunk: list[Keyed], outcomes: list[CaseOutcome]) -> None:
        size.learn(outcomes)
        deliver([(*one, outcome) for one, outcome in zip(chunk, outcomes, strict=True)])

    while True:
        if suspects:
            if not flying:
                if isinstance(executor, LocalPool):
                    executor.start()
                submit([suspects.popleft()])
        else:
            if is_first and not flying and isinstance(executor, LocalPool):
                executor.start()
            while waiting and len(flying) < (1 if is_first else capacity):
                submit([waiting.popleft() for _ in range(size.of(len(waiting)))])
        if not flying:
            return
        number = _next(inbox, flying)
        if number not in flying or not _is_done(flying[number][1]):  # of a pool that is no more
            continue
        chunk, future = flying.pop(number)
        was_alone = not flying and len(chunk) == 1
        outcomes = _outcomes(future)
        if outcomes is not None:
            is_first = False
            land(chunk, outcomes)
            continue
        if not isinstance(executor, LocalPool) and _has_ended(future):
            raise CampaignError(
                "the executor ended or lost its scheduler: what was done is in the store; run the "
                "campaign again with another executor"
            )
        if isinstance(executor, LocalPool):  # all its processes are lost
            for other, one in flying.values():
                done = _outcomes(one) if _is_done(one) else None
                if done is not None:
                    land(other, done)
                else:
                    suspects.extend(other)
            flying.clear()
            executor.remake()
        if was_alone:
            key, case = chunk[0]
            blamed[key] += 1
            if blamed[key] == ALONE:
                text = f"its process died {ALONE} times when it ran alone"
                deliver([(key, case, CaseOutcome(CaseStatus.KILLED, False, text, {}))])
                continue
        suspects.extend(chunk)


def _next(inbox: SimpleQueue[int], flying: dict[int, tuple[list[Keyed], Any]]) -> int | None:
    """Number of a chunk that is done."""
    try:
        return inbox.get(timeout=POLL)
    except Empty:  # a lost scheduler calls nobody back
        done = (number for number, (_, one) in flying.items() if one is not None and one.done())
        return next(done, None)


def _is_done(future: Any) -> bool:
    return future is None or future.done()


def _has_ended(future: Any) -> bool:
    """Whether a future failed since its executor is no more."""
    return isinstance(_failure(future), BrokenExecutor | CancelledError)


def _failure(future: Any) -> BaseException | None:
    """Why a future has no result."""
    if future is None:
        return BrokenExecutor()
    try:
        future.result()
    except CancelledError as error:
        return error
    except Exception as error:
        return CancelledError() if "Cancelled" in type(error).__name__ else error
    return None


def _outcomes(future: Any) -> list[CaseOutcome] | None:
    """Outcomes of a chunk; None where its process died."""
    error = _failure(future)
    if error is None:
        return future.result()
    if isinstance(error, BrokenExecutor | CancelledError) or "Killed" in type(error).__name__:
        return None
    if isinstance(error, CampaignError):
        raise error
    raise CampaignError(
        f"a case cannot run in its process: {type(error).__name__}: {error}; designs and criteria "
        "must be in modules or files that it can import, no lambdas or functions in functions"
    ) from error
