"""Delay: answers that are on their way, and the state when a new one takes effect."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lgcontrol.optimal import OptimalControlProblem
from lgcontrol.optimal._internal import queue_size
from lgcontrol.systems import System

from ._lqr import EARLY

Sent: TypeAlias = tuple[tuple[float, np.ndarray], ...]
"""Answers with the times of their effect; the first acts now."""
Piece: TypeAlias = tuple[float, np.ndarray, float, np.ndarray]
"""Start in s, inputs, seconds and last inputs of a stretch with constant or linear inputs."""


class Delay:
    """Time in s from a call to its effect, and between calls. The state is what was sent, `Sent`.

    With a ramp in s, controls move that long from where they are to an answer that takes effect.
    Then the first answer is where they were before.
    """

    def __init__(self, system: System, seconds: float, period: float, ramp: float = 0.0) -> None:
        self.system, self.seconds, self.ramp = system, seconds, ramp
        self._most = queue_size(seconds, period, ramp > 0)
        self._keeps = bool(seconds or ramp)
        self._controls = system.input_index("control")
        lower, upper = system.input_bounds
        self._limits = lower[self._controls], upper[self._controls]

    def begun(self, sent: Sent, t: float, acting: np.ndarray) -> Sent:
        """With what acts before the first answer, where controls move from there."""
        return ((t - self.ramp, acting),) if self.ramp and not sent else sent

    def arrive(self, sent: Sent, t: float) -> Sent:
        """What still acts, or will: without answers that a later one has replaced."""
        if self.ramp:
            while len(sent) > 2 and sent[2][0] <= t + EARLY:
                second = sent[2][0]
                sent = ((sent[1][0], self.position(sent[:2], second)), *sent[2:])
            return sent
        while self.seconds and len(sent) > 1 and sent[1][0] <= t + EARLY:
            sent = sent[1:]
        return sent

    def send(self, sent: Sent, start: float, u: np.ndarray) -> Sent:
        """With another answer, that acts from a time on; the last one again where it is full."""
        if not self._keeps:
            return ((start, u),)
        if self.is_full(sent, start):
            return sent
        is_again = bool(sent) and start <= sent[-1][0] + EARLY
        return (*(sent[:-1] if is_again else sent), (start, u))

    def is_full(self, sent: Sent, start: float) -> bool:
        """Whether another answer that acts from a time on has no place."""
        return len(sent) == self._most and start > sent[-1][0] + EARLY if self._keeps else False

    def position(self, sent: Sent, t: float) -> np.ndarray:
        """Where controls are at a time: the last answer, or on the way to it."""
        if not self.ramp:
            return sent[-1][1]
        u = sent[0][1]
        for k in range(1, len(sent)):
            begin, after = sent[k]
            if begin > t:
                break
            passed = min(t, sent[k + 1][0] if k + 1 < len(sent) else t) - begin
            done = passed >= self.ramp - EARLY
            u = after if done else u + max(passed, 0.0) / self.ramp * (after - u)
        return u

    def pieces(self, sent: Sent, t: float, end: float) -> list[Piece]:
        """Starts, inputs, lengths and last inputs of what answers do until then.

        Before the first they are nominal.
        """
        if self.ramp:
            return self._ramps(sent, t, end)
        nominal = np.clip(self.system.nominal_input[self._controls], *self._limits)
        pieces = [(t, nominal), *((min(max(when, t), end), u) for when, u in sent)]
        ends = [start for start, _ in pieces[1:]] + [end]
        return [
            (start, every := self.system.full_input(u), stop - start, every)
            for (start, u), stop in zip(pieces, ends, strict=True)
            if stop - start > EARLY
        ]

    def _ramps(self, sent: Sent, t: float, end: float) -> list[Piece]:
        """Pieces of controls that move to each answer, then stay."""
        whens, now, found = [when for when, _ in sent], t, []
        for k, when in enumerate(whens):
            until = min(max(whens[k + 1], t), end) if k + 1 < len(whens) else end
            there = min(max(when + self.ramp, now), until) if k else now
            for stop in (there, until):
                if stop - now > EARLY:
                    ends = (self.system.full_input(self.position(sent, at)) for at in (now, stop))
                    before, after = ends
                    found.append((now, before, stop - now, after))
                    now = stop
        return found

    def predict(
        self, sent: Sent, t: float, x: np.ndarray, end: float, push: np.ndarray | float,
        problem: OptimalControlProblem, p: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """State later, by the steps of a problem, with answers and a steady disturbance.

        Or several states, each with a disturbance of its own.
        """
        for start, u, length, after in self.pieces(sent, t, end):
            last = after + push if self.ramp else None
            x = moved(self.system, problem, start, x, u + push, length, p, last)
        return x


def moved(
    system: System, problem: OptimalControlProblem, t: float, x: np.ndarray, u: np.ndarray,
    seconds: float, p: np.ndarray, last: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """State after a time with a constant input, by the steps of a problem.

    Controls move linearly to last inputs, if these are given; the problem is that of the rates.
    """
    if system.is_discrete:
        for k in range(round(seconds / system.dt)):
            x = system.step()(t + k * system.dt, x, u, p)
        return x
    steps = problem.substeps * int(np.ceil(seconds / problem.dt - EARLY))
    if last is None:
        return system.step(problem.method, steps)(t, x, u, p, seconds)
    controls = system.input_index("control")
    others = np.setdiff1d(np.arange(system.n_inputs), controls)
    rates = np.concatenate([(last - u)[..., controls] / seconds, u[..., others]], axis=-1)
    both = np.concatenate([x, u[..., controls]], axis=-1)
    after = problem.system.step(problem.method, steps)(t, both, rates, p, seconds)
    return after[..., : x.shape[-1]]
