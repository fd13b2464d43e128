"""Several solves by one solver: from several guesses, or for many starts on all cores."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from numpy.typing import ArrayLike

from ...codegen._internal import check_shape, thread_count
from .._outcome import Ends
from .._solution import OptimalSolution


def best_of(
    solver: Any, x0: ArrayLike, guesses: tuple[Any, ...], seconds: float, options: dict[str, Any]
) -> OptimalSolution:
    """The best of solves from several guesses, as far as there is time for them."""
    if not guesses:
        raise ValueError("guess is an empty tuple: give one guess or more")
    began, best, ends = time.perf_counter(), None, Ends(options)
    for guess in guesses:
        left = seconds - (time.perf_counter() - began)
        if best is not None and (left <= 0 or ends.is_asked):
            break
        other = solver.solve(x0, guess=guess, time_limit=max(left, 0.0), **options)
        found = [one for one in (best, other) if one is not None]
        best = min(found, key=lambda one: (not one.is_success, one.cost))
    assert best is not None
    solver.plan = best.plan
    spent = time.perf_counter() - began
    best.times.update({"total": spent, "model": spent})
    return best


def solved_side_by_side(solver: Any, x0: ArrayLike, **options: Any) -> list[OptimalSolution]:
    """See `InteriorPointSolver.solve_many`."""
    starts = check_shape("x0", x0, (None, solver.problem.system.state.nq))
    guesses = options.pop("guess", None)
    if not isinstance(guesses, list):
        guesses = [guesses] * len(starts)
    if len(guesses) != len(starts):
        raise ValueError(
            f"guess is a list of {len(guesses)} for {len(starts)} starts: give one for all, or one "
            "for each"
        )
    solver._take_built()
    count = min(thread_count(), len(starts))
    found: list[Any] = [None] * len(starts)
    left = iter(range(len(starts)))  # taken from by whoever is free
    lock = Lock()

    def work(own: Any) -> None:
        while True:
            with lock:
                k = next(left, None)
            if k is None:
                return
            found[k] = own.solve(starts[k], guess=guesses[k], **options)

    if count <= 1:
        work(solver._twin())
        return found
    with ThreadPoolExecutor(count, thread_name_prefix="lgcontrol") as pool:
        try:
            for future in [pool.submit(work, solver._twin()) for _ in range(count)]:
                future.result()
        except BaseException:  # as Ctrl-C: the others end with the solve that they are at
            with lock:
                left = iter(())
            raise
    return found
