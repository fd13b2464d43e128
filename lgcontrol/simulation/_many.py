"""simulate_many: runs of one loop from many starts, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import check_count, thread_count
from ..systems import System
from ._contract import ControlLaw, Estimator
from ._controllers import Cascade, another
from ._result import SimulationResult
from ._run import Batch, batch_here
from ._simulate import simulate

RUNS_AHEAD = 4  # runs for each thread that may be done before they are taken


def simulate_many(
    plant: System,
    controller: ControlLaw | Cascade | None = None,
    *,
    x0: ArrayLike,
    seconds: float,
    seeds: Iterable[int] | None = None,
    each: Mapping[str, Sequence[Any]] | None = None,
    threads: int | None = None,
    estimator: Estimator | None = None,
    **options: Any,
) -> Iterator[SimulationResult]:
    """Simulate a loop from many starts, in threads; runs come one by one, in the order of starts.

    Loops in C run side by side: see the notes of `simulate`. What Python does of them takes turns.
    Each thread has a controller and an estimator of its own: ``controller.another()`` where there
    is such a method, else a deep copy. Functions are shared. A run has the same bits whatever the
    number of threads.

    Parameters
    ----------
    plant, controller, seconds, estimator
        As for `simulate`.
    x0 : array_like, shape (n, nq)
        Starts; one for each run.
    seeds : iterable of int, optional
        Of the runs; 0, 1, 2, … if left out.
    each : mapping of str to sequence, optional
        Options of `simulate` that differ, by name: a value for each run.
    threads : int, optional
        As many as `lgcontrol.codegen.set_threads` says if left out.
    **options
        Of `simulate`, the same for all runs.

    Yields
    ------
    SimulationResult
        Those after a Ctrl-C are not made.

    Raises
    ------
    ValueError, TypeError
        If the arguments do not fit together.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["speed"])
    >>> law = lambda t, x, reference: -x
    >>> runs = simulate_many(cart, law, x0=[[1.0], [2.0]], seconds=5.0, dt=0.1)
    >>> [round(float(run.x[-1, 0]), 3) for run in runs]
    [0.005, 0.01]
    """
    starts = np.asarray(x0, dtype=np.float64)
    if starts.ndim != 2:
        raise ValueError(
            f"x0 has shape {starts.shape}, expected (n, {plant.state.nq}), a row for each run; "
            "one run takes simulate(…, x0=x)"
        )
    count = len(starts)
    numbers = list(range(count)) if seeds is None else list(islice(seeds, count))
    rows = {name: list(values) for name, values in (each or {}).items()}
    for name, values in {"seeds": numbers, **rows}.items():
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} entries for {count} runs: give one each")
    workers = thread_count() if threads is None else check_count("threads", threads)
    batch = Batch(count)
    parts: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
    for k in range(max(1, min(workers, count))):
        parts.put((controller, estimator) if k == 0 else (another(controller), another(estimator)))

    def run(k: int) -> SimulationResult:
        law, filter_ = own = parts.get()
        try:
            batch_here.set(batch)
            given = {name: values[k] for name, values in rows.items()}
            return simulate(
                plant, law, x0=starts[k], seconds=seconds, seed=numbers[k], estimator=filter_,
                **options, **given,
            )  # fmt: skip
        finally:
            parts.put(own)

    return _in_turn(run, count, workers, batch)


def _in_turn(run: Any, count: int, workers: int, batch: Batch) -> Iterator[SimulationResult]:
    """Results one by one, some of the next under way meanwhile."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="simulate")
    waiting: deque[Future[SimulationResult]] = deque()
    numbers = iter(range(count))
    try:
        while True:
            for k in islice(numbers, RUNS_AHEAD * workers - len(waiting)):
                waiting.append(pool.submit(copy_context().run, run, k))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        batch.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
