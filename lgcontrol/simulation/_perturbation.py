"""How far a task's plant may be from what its controller knows: the largest factor that passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..codegen import named_options
from ._contract import RunStatus
from ._task import Task
from ._variation import LEAST_MASS, PERTURBED_MASS

# The factors that are tried first; between the last that passes and the first that fails, halves.
FACTORS, HALVINGS = (0.5, 1.0, 2.0, 4.0), 3
MOST_RUNS = 1 + 2 * (len(FACTORS) + HALVINGS)  # one as it is, then heavier and lighter


@dataclass(frozen=True)
class Robustness:
    """What `robustness` found.

    Parameters
    ----------
    factor : float
        Largest factor at which all criteria held, and at all smaller ones that were tried.
    limiting : tuple of str
        What failed at the next larger one that was tried; empty where none did.
    runs : int
        How many it took.
    """

    factor: float
    limiting: tuple[str, ...]
    runs: int


@named_options
def robustness(
    task: Task, *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Robustness:
    """Largest factor of a task's perturbations at which all its criteria still hold.

    The factor is the variation "perturb" of `Vary`, which campaigns vary like any other:
    ``Vary("perturb", -1, 1)``.

    Parameters
    ----------
    task : Task
        Its `perturbed` plants; one made by `scaled_inertia` where it has none.
    seed : int
        Of disturbances.
    progress : callable, optional
        Called with a line at the start, one after the first run, and one for each factor. The first
        lines say how many runs there are at most and how long these take.

    Returns
    -------
    Robustness
        Factors of 0 (nothing perturbed), 0.5, 1, 2 and 4, then three halvings.

    Raises
    ------
    KeyboardInterrupt
        If a run was interrupted.
    """
    tell = progress or (lambda text: None)
    runs = 0
    signs = [1.0, -1.0]  # heavier, lighter: the one that failed last goes first

    def failures(factor: float) -> tuple[str, ...]:
        nonlocal runs
        for sign, label, other in _variants(task, factor, tuple(signs)):
            runs += 1
            started = perf_counter()
            run = other.run(seed=seed)
            if runs == 1:
                taken = perf_counter() - started
                tell(f"run 1 took {taken:.1f} s: {MOST_RUNS} would take {MOST_RUNS * taken:.0f} s")
            if run.status == RunStatus.INTERRUPTED:  # no limit of the plant: nothing is found
                raise KeyboardInterrupt
            failed = [] if run.is_success else [run.message or "the run ended early"]
            if run.is_success:
                failed = [v.criterion.name for v in other.judge(run) if not v.passed]
            if failed:
                tell(f"factor {factor:g}, {label}: {failed[0]}")
                signs.sort(key=lambda other: other != sign)
                return (label, *failed)
        tell(f"factor {factor:g}: all criteria hold")
        return ()

    tell(f"at most {MOST_RUNS} runs, the first with nothing perturbed")
    good, bad, why = 0.0, np.inf, failures(0.0)
    if why:
        return Robustness(float("nan"), why, runs)
    for factor in FACTORS:
        found = failures(factor)
        if found:
            bad, why = factor, found
            break
        good = factor
    for _ in range(HALVINGS if np.isfinite(bad) else 0):
        middle = (good + bad) / 2
        found = failures(middle)
        good, bad, why = (middle, bad, why) if not found else (good, middle, found)
    return Robustness(good, why, runs)


def _variants(
    task: Task, factor: float, signs: tuple[float, ...]
) -> Iterator[tuple[float, str, Task]]:
    """Lighter and heavier plants with more drag behind a late controller."""
    if factor == 0:
        yield 1.0, "nothing perturbed", task
        return
    for sign in signs:
        share = sign * PERTURBED_MASS * factor
        if 1 + share <= LEAST_MASS:
            continue
        label = f"{'heavier' if sign > 0 else 'lighter'} by {100 * abs(share):g} %"
        yield sign, label, task.varied({"perturb": sign * factor})
