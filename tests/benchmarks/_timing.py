"""Times of several contenders measured in turns, so that a busy moment hits all of them."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """Something to time.

    Attributes
    ----------
    name : str
    call : callable
        Does the work once.
    items : int
        How many evaluations that is.
    """

    name: str
    call: Callable[[], object]
    items: int = 1


def measure(
    contenders: list[Contender],
    *,
    reference: str | None = None,
    rounds: int = 15,
    seconds: float = 0.004,
) -> dict[str, float]:
    """Median time of one evaluation in µs, by name.

    Parameters
    ----------
    contenders : list of Contender
    reference : str, optional
        Name of one whose time over that of each other, median over the rounds, is returned too, as
        ``"reference / name"``: slow moments of the machine slow both.
    rounds : int
        How often each has its turn.
    seconds : float
        Length of a turn, about.
    """
    repeats = {}
    for contender in contenders:
        contender.call()
        once = min(_timed(contender.call, 1) for _ in range(3))
        repeats[contender.name] = max(1, round(seconds / max(once, 1e-9)))
    samples: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            count = repeats[contender.name]
            samples[contender.name].append(
                _timed(contender.call, count) / (count * contender.items) * 1e6
            )
    results = {name: statistics.median(values) for name, values in samples.items()}
    if reference in samples:
        for name, values in samples.items():
            if name != reference:
                pairs = zip(samples[reference], values, strict=True)
                results[f"{reference} / {name}"] = statistics.median(a / b for a, b in pairs)
    return results


def _timed(call: Callable[[], object], count: int) -> float:
    turns = range(count)
    start = time.perf_counter()
    for _ in turns:
        call()
    return time.perf_counter() - start
