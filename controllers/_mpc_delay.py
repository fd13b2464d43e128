"""Delay: answers that are on their way, and the state when a new one takes effect."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lgcontrol.optimal import OptimalControlProblem
from lgcontrol.optimal._internal import queue_size
from lgcontrol.systems import System

from ._lqr import EARLY
from ._steady_disturbance import Piece

Sent: TypeAlias = tuple[tuple[float, np.ndarray], ...]
"""Answers with the times of their effect; the first acts now."""


class Delay:
    """Time in s from a call to its effect, and between calls. The state is what was sent."""

    def __init__(self, system: System, seconds: float, period: float) -> None:
        self.system, self.seconds = system, seconds
        self._most = queue_size(seconds, period)
        self._controls = system.input_index("control")
        lower, upper = system.input_bounds
        self._limits = lower[self._controls], upper[self._controls]

    def arrive(self, sent: Sent, t: float) -> Sent:
        """What still acts, or will: without answers that a later one has replaced."""
        while self.seconds and len(sent) > 1 and sent[1][0] <= t + EARLY:
            sent = sent[1:]
        return sent

    def send(self, sent: Sent, start: float, u: np.ndarray) -> Sent:
        """With another answer, that acts from a time on; the last one again where it is full."""
        if not self.seconds:
            return ((start, u),)
        if self.is_full(sent, start):
            return sent
        is_again = bool(sent) and start <= sent[-1][0] + EARLY
        return (*(sent[:-1] if is_again else sent), (start, u))

    def is_full(self, sent: Sent, start: float) -> bool:
        """Whether another answer that acts from a time on has no place."""
        return len(sent) == self._most and start > sent[-1][0] + EARLY if self.seconds else False

    def pieces(self, sent: Sent, t: float, end: float) -> list[Piece]:
        """Starts, inputs and lengths of what answers do until then; before the first nominal."""
        nominal = np.clip(self.system.nominal_input[self._controls], *self._limits)
        pieces = [(t, nominal), *((min(max(when, t), end), u) for when, u in sent)]
        ends = [start for start, _ in pieces[1:]] + [end]
        return [
            (start, self.system.full_input(u), stop - start)
            for (start, u), stop in zip(pieces, ends, strict=True)
            if stop - start > EARLY
        ]

    def predict(
        self,
        sent: Sent,
        t: float,
        x: np.ndarray,
        end: float,
        push: np.ndarray | float,
        problem: OptimalControlProblem,
        p: np.ndarray,
    ) -> np.ndarray:
        """State later, by the steps of a problem, with answers and a steady disturbance."""
        for start, u, length in self.pieces(sent, t, end):
            x = moved(self.system, problem, start, x, u + push, length, p)
        return x


def moved(
    system: System,
    problem: OptimalControlProblem,
    t: float,
    x: np.ndarray,
    u: np.ndarray,
    seconds: float,
    p: np.ndarray,
) -> np.ndarray:
    """State after a time with a constant input, by the steps of a problem."""
    if system.is_discrete:
        for k in range(round(seconds / system.dt)):
            x = system.step()(t + k * system.dt, x, u, p)
        return x
    steps = problem.substeps * int(np.ceil(seconds / problem.dt - EARLY))
    return system.step(problem.method, steps)(t, x, u, p, seconds)
