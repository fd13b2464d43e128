"""Motion of the plant between events."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import ModelFunction, chain, prepare
from ..integrators import Method, get_method
from ..systems import System
from ._clock import Clock, as_fraction

_LONGEST_CALL = 256  # steps in one call: more save nothing, and Ctrl-C and progress wait for it
# How far a step of order one may end from the step made, relative to one plus the state. Modes that
# the steps do not keep up with come to it soon, other motions would have to be violent.
_CURVED = 0.05
_FINEST = 1024  # a step is divided into at most this many


class Motion:
    """Moves a plant over intervals: equal steps no longer than `max_step`, the inputs held.

    Where steps differ grossly from those of Euler's method, the interval is done again with steps
    of half the length, and so is the rest of the run. Halved steps of one method would not do for a
    check: some errors, of stiff springs and dry friction, cancel in them. Methods of order one are
    left alone.

    Parameters
    ----------
    plant : System
    clock : Clock
    end : int
        Tick of the end: a long run is worth compiling the steps for.
    p : ndarray, shape (n_parameters,)
    method : str or Method
    max_step : float
        In s; discrete plants make their own steps.

    Attributes
    ----------
    finer : int
        Number of steps made for each that would do.
    fails : bool
        Whether even the shortest steps differ grossly.
    """

    def __init__(
        self,
        plant: System,
        clock: Clock,
        end: int,
        p: np.ndarray,
        method: str | Method,
        max_step: float,
    ) -> None:
        self.plant, self.clock, self.p, self.method = plant, clock, p, method
        # Steps in n ticks: n · ratio, rounded up.
        longest = as_fraction(plant.dt if plant.is_discrete else max_step)
        self._ratio = clock.tick / longest
        self.finer, self.fails = 1, False
        self._is_checked = not plant.is_discrete and get_method(method).order > 1
        self._total = self.steps(end)
        plant.step(method)  # an unknown method is told before the run

    def steps(self, ticks: int) -> int:
        """Number of steps in an interval."""
        return self.finer * -(-ticks * self._ratio.numerator // self._ratio.denominator)

    def at_once(self, ticks: int) -> int:
        """How many intervals of a length `states` takes at once; 0 if they are long themselves."""
        return _LONGEST_CALL // self.steps(ticks)

    def advance(self, x: np.ndarray, u: np.ndarray, now: int, after: int) -> np.ndarray:
        """State at the tick `after`, shape (nq,)."""
        return self.states(x, u, now, after - now, 1)[-1]

    def states(self, x: np.ndarray, u: np.ndarray, now: int, period: int, count: int) -> np.ndarray:
        """States after each of some equal intervals, shape (count, nq)."""
        t = self.clock.seconds(now)
        while True:
            each = self.steps(period)
            dt, total = self.clock.seconds(period) / each, count * each
            if total == 1:
                path = self._step(t, x, u, self.p, dt)[None]
            else:
                path = self._path(x, u, t, dt, total)
            if self._is_sound(np.concatenate([x[None], path]), u, t, dt):
                break
            if self.finer >= _FINEST:
                self.fails = True
                break
            self.finer *= 2
        return path[each - 1 :: each]

    def _is_sound(self, path: np.ndarray, u: np.ndarray, t: float, dt: float) -> bool:
        """Whether no step of a path, shape (steps + 1, nq), is far from one of low order."""
        if not self._is_checked:
            return True
        if not np.isfinite(path[-1]).all():
            return False
        times = t + dt * np.arange(len(path) - 1)
        if len(times) == 1:
            straight = self._check(t, path[0], u, self.p, dt)
        else:
            straight = self._check(times, path[:-1], u, self.p, dt)
        off = np.abs(path[1:] - straight)
        return bool((off <= _CURVED * (1 + np.abs(path[1:]))).all())

    def _path(self, x: np.ndarray, u: np.ndarray, t: float, dt: float, count: int) -> np.ndarray:
        """States after each of some steps, shape (count, nq), in as few calls as may be."""
        pieces = []
        for done in range(0, count, _LONGEST_CALL):
            some = min(_LONGEST_CALL, count - done)
            times = (t + dt * (done + np.arange(some))).reshape(some, 1)
            pieces.append(self._chain(some)(times, x, u, self.p, dt))
            x = pieces[-1][-1]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    @cached_property
    def _check(self) -> ModelFunction:
        step = self.plant.step("euler")
        prepare(step, calls=self._total)
        return step

    @cached_property
    def _step(self) -> ModelFunction:
        step = self.plant.step(self.method)
        prepare(step, calls=self._total)
        return step

    def _chain(self, count: int) -> ModelFunction:
        """A number of steps as one function, kept with the plant for the runs to come."""
        step = self.plant.step(self.method)
        kept, key = self.plant._cache, ("simulate", step, count)
        if key not in kept:
            kept[key] = chain(step, count, carry=("x", "x_next"), each=["t"])
            prepare(kept[key], calls=-(-self._total // count))
        return kept[key]
