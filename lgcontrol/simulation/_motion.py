"""Motion of the plant between events."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import ModelFunction, chain, prepare
from ..integrators import Method
from ..systems import System
from ._clock import Clock, as_fraction

_LONGEST_CALL = 256  # steps in one call: more save nothing, and Ctrl-C and progress wait for it


class Motion:
    """Moves a plant over intervals: equal steps no longer than `max_step`, the inputs held.

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
        self._total = self.steps(end)
        plant.step(method)  # an unknown method is told before the run

    def steps(self, ticks: int) -> int:
        """Number of steps in an interval."""
        return -(-ticks * self._ratio.numerator // self._ratio.denominator)

    def at_once(self, ticks: int) -> int:
        """How many intervals of a length `states` takes at once; 0 if they are long themselves."""
        return _LONGEST_CALL // self.steps(ticks)

    def advance(self, x: np.ndarray, u: np.ndarray, now: int, after: int) -> np.ndarray:
        """State at the tick `after`, shape (nq,)."""
        count = self.steps(after - now)
        t, dt = self.clock.seconds(now), self.clock.seconds(after - now) / count
        if count == 1:
            return self._step(t, x, u, self.p, dt)
        for done in range(0, count, _LONGEST_CALL):
            some = min(_LONGEST_CALL, count - done)
            x = self._path(x, u, t + done * dt, dt, some)[-1]
        return x

    def states(self, x: np.ndarray, u: np.ndarray, now: int, period: int, count: int) -> np.ndarray:
        """States after each of some equal intervals, shape (count, nq)."""
        each = self.steps(period)
        dt = self.clock.seconds(period) / each
        return self._path(x, u, self.clock.seconds(now), dt, count * each)[each - 1 :: each]

    def _path(self, x: np.ndarray, u: np.ndarray, t: float, dt: float, count: int) -> np.ndarray:
        """States after each of some steps, in one call, shape (count, nq)."""
        times = (t + dt * np.arange(count)).reshape(count, 1)
        return self._chain(count)(times, x, u, self.p, dt)

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
