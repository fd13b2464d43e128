"""Cases on executors: few in flight, none lost with a worker, none blamed before it ran alone."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ._case import CaseOutcome, CaseSetting, CaseStatus, begin_worker, run_case
from ._design import CampaignError
from ._sampling import Case

PER_WORKER = 2  # cases in flight
FOREIGN = 64  # cases in flight on an executor that does not say how many workers it has
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
        with _without_main():
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


def capacity_of(executor: Any) -> int:
    """Cases that an executor may hold at a time."""
    for name in ("workers", "_max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int):
            return PER_WORKER * count
    with suppress(Exception):  # a client of dask.distributed knows the threads of each worker
        return max(PER_WORKER * sum(executor.nthreads().values()), 1)
    return FOREIGN


def drive(
    executor: Any,
    setting: CaseSetting,
    cases: Iterable[tuple[str, Case]],
    deliver: Callable[[str, Case, CaseOutcome], None],
) -> None:
    """Run cases and deliver each outcome as it comes.

    The first case runs by itself: it compiles what all need. When a worker dies, its cases and
    those next to them run again one at a time. A case that takes its process with it three times
    alone is delivered as "killed".
    """
    waiting, suspects = iter(cases), deque[tuple[str, Case]]()
    flying: dict[str, tuple[Case, Any]] = {}
    blamed: Counter[str] = Counter()
    inbox: SimpleQueue[str] = SimpleQueue()
    capacity, is_first = capacity_of(executor), True

    def submit(key: str, case: Case) -> None:
        flying[key] = (case, None)
        try:
            future = executor.submit(run_case, setting, case)
        except BrokenExecutor:  # it broke before it was asked
            inbox.put(key)
            return
        flying[key] = (case, future)
        future.add_done_callback(lambda _: inbox.put(key))

    while True:
        if suspects:
            if not flying:
                if isinstance(executor, LocalPool):
                    executor.start()
                submit(*suspects.popleft())
        else:
            if is_first and not flying and isinstance(executor, LocalPool):
                executor.start()
            room = (1 if is_first else capacity) - len(flying)
            for key, case in islice(waiting, max(room, 0)):
                submit(key, case)
        if not flying:
            return
        key = _next(inbox, flying)
        if key not in flying or not _is_done(flying[key][1]):  # of a pool that is no more
            continue
        was_alone = len(flying) == 1
        case, future = flying.pop(key)
        outcome = _outcome(future)
        if outcome is not None:
            is_first = False
            deliver(key, case, outcome)
            continue
        if not isinstance(executor, LocalPool) and _has_ended(future):
            raise CampaignError(
                "the executor ended or lost its scheduler: what was done is in the store; run the "
                "campaign again with another executor"
            )
        if isinstance(executor, LocalPool):  # all its processes are lost
            for other, (another, one) in flying.items():
                done = _outcome(one) if _is_done(one) else None
                if done is not None:
                    deliver(other, another, done)
                else:
                    suspects.append((other, another))
            flying.clear()
            executor.remake()
        blamed[key] += was_alone
        if blamed[key] < ALONE:
            suspects.append((key, case))
            continue
        text = f"its process died {ALONE} times when it ran alone"
        deliver(key, case, CaseOutcome(CaseStatus.KILLED, False, text, {}))


def _next(inbox: SimpleQueue[str], flying: dict[str, tuple[Case, Any]]) -> str | None:
    """Key of a future that is done."""
    try:
        return inbox.get(timeout=POLL)
    except Empty:  # a lost scheduler calls nobody back
        done = (key for key, (_, one) in flying.items() if one is not None and one.done())
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


def _outcome(future: Any) -> CaseOutcome | None:
    """CaseOutcome of a case; None where its process died."""
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
