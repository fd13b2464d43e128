"""Batches on all cores: compiled code lets Python threads run parts of a batch at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ._kernel import Kernel, Table, run_of

# A part of a batch with fewer operations (about 100 µs; more where they are vectorised) is
# not worth a thread: handing it over takes half as long.
_OPERATIONS_A_THREAD = 500_000

_count: list[int] = []
_pool: list[ThreadPoolExecutor] = []


def set_threads(count: int | None) -> None:
    """Choose how many threads evaluate a batch of a compiled function.

    Parameters
    ----------
    count : int or None
        At least 1; None for all cores this process may use. The environment variable
        LGCONTROL_THREADS sets what a process starts with.

    Raises
    ------
    ValueError
        If the count is less than 1.

    Examples
    --------
    >>> set_threads(1)
    >>> set_threads(None)
    """
    if count is not None and count < 1:
        raise ValueError(f"the number of threads must be at least 1 or None, got {count}")
    _count[:] = [count or _cores()]
    _forget_pool()


def thread_count() -> int:
    """Return the number of threads in force; see `set_threads`."""
    if not _count:
        named = os.environ.get("LGCONTROL_THREADS", "")
        _count[:] = [max(1, int(named)) if named.isdecimal() else _cores()]
    return _count[0]


def run_batch(
    kernel: Kernel,
    steps: int,
    operations: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> int:
    """Evaluate a batch, in several threads where it is long enough; returns the worst status.

    `operations` are those of one step of one item.
    """
    items = len(results[0])
    total = operations * items * steps
    parts = min(
        thread_count(), total // (_OPERATIONS_A_THREAD * kernel.width), -(-items // kernel.width)
    )
    if parts <= 1:
        return Table(items, steps, arguments, results).run(run_of(kernel, total))
    groups = -(-items // kernel.width)
    bounds = [kernel.width * (groups * k // parts) for k in range(parts)] + [items]
    tables = [
        Table(stop - start, steps, arguments, results, start)
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    try:
        futures = [_executor().submit(table.run, kernel.run) for table in tables[1:]]
    except RuntimeError:  # the interpreter is shutting down
        return max(table.run(kernel.run) for table in tables)
    return max([tables[0].run(kernel.run), *(future.result() for future in futures)])


def _executor() -> ThreadPoolExecutor:
    if not _pool:
        _pool.append(ThreadPoolExecutor(thread_count(), thread_name_prefix="lgcontrol"))
    return _pool[0]


def _forget_pool() -> None:
    """Let go of the threads; those of a forked child do not exist."""
    _pool.clear()


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
