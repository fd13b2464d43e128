"""A task from the literature: where it stands, its optimum, and the function that states it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, Cost, PhasedProblem

# Relative difference between a plan's cost and the known optimum that the steps of a plan explain.
WITHIN = 1e-3


class Statement(NamedTuple):
    """A problem and its start."""

    problem: PhasedProblem
    x0: Any


@dataclass(frozen=True)
class LiteratureTask:
    """A task that others have solved.

    Attributes
    ----------
    name : str
    source : str
        Where the task stands, and its optimum.
    optimum : float
        As the source gives it: of a maximum the maximum.
    state : callable
        Makes the problem; whatever is not said there is left at its default.
    sign : float
        −1 where the source maximises.
    within : float
        Relative difference from the optimum that the steps of the plan explain.
    is_time : bool
        Whether the source names the duration, to which a plan's least effort adds.
    note : str
        How the statement differs from the source.
    """

    name: str
    source: str
    optimum: float
    state: Callable[[], Statement]
    sign: float = 1.0
    within: float = WITHIN
    is_time: bool = False
    note: str = ""

    def value(self, plan: Any) -> float:
        """What the source calls the optimum, of a plan."""
        return float(plan.switches[-1] if self.is_time else self.sign * plan.cost)


TASKS: dict[str, LiteratureTask] = {}


def task(source: str, optimum: float, **more: Any) -> Callable[[Callable[[], Statement]], Any]:
    """Enter a function that states a task under its own name."""

    def entered(state: Callable[[], Statement]) -> Callable[[], Statement]:
        name = state.__name__
        assert name not in TASKS, f"two tasks are called {name}"
        TASKS[name] = LiteratureTask(name, source, optimum, state, **more)
        return state

    return entered


def line(names: str) -> Rn:
    """States that are numbers, by their names."""
    parts = tuple(names.split())
    return Rn(len(parts), parts)


def ends(**values: float) -> list[Bound]:
    """Values of states at the end of a phase."""
    return [Bound(name, value, value, at="terminal") for name, value in values.items()]


def last(index: int, weight: float = 1.0) -> Cost:
    """A coordinate of the last state as the cost, or with the weight −1 as what is earned."""
    return Cost(lambda t, x, u, p: x[index], None, weight)
