"""A task of `unseen`: its field, the function that states it, and why it has no plan, if so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.optimal.literature._task import Statement


@dataclass(frozen=True)
class UnseenTask:
    """A task as its user wrote it first.

    Attributes
    ----------
    field : str
        "aerospace", "chemical", "vehicles" or "robots".
    state : callable
        Makes the problem; whatever is not said there is left at its default.
    impossible : str
        The reason why no plan exists; empty if one does.
    """

    field: str
    state: Callable[[], Statement]
    impossible: str = ""


UNSEEN: dict[str, UnseenTask] = {}


def unseen(field: str, *, impossible: str = "") -> Callable[[Callable[[], Statement]], Callable]:
    """Enter a function that states a task under its own name."""

    def entered(state: Callable[[], Statement]) -> Callable[[], Statement]:
        name = state.__name__
        assert name not in UNSEEN, f"two tasks are called {name}"
        UNSEEN[name] = UnseenTask(field, state, impossible)
        return state

    return entered
