"""Motion of the plant between events."""

from __future__ import annotations

import numpy as np

from ..integrators import Method
from ..systems import System
from ..systems._rollout import rollout_function
from ._clock import Clock, as_fraction

_LONGEST_CALL = 256  # steps in one call: more save nothing, and Ctrl-C and progress wait for it


class Motion:
    """Moves a plant over intervals: equal steps no longer than `max_step`, the inputs held.

    Parameters
    ----------
    plant : System
    clock : Clock
    p : ndarray, shape (n_parameters,)
    method : str or Method
    max_step : float
        In s; discrete plants make their own steps.
    """

    def __init__(
        self, plant: System, clock: Clock, p: np.ndarray, method: str | Method, max_step: float
    ) -> None:
        self.plant, self.clock, self.p, self.method = plant, clock, p, method
        self._step = plant.step(method)
        # Steps in n ticks: n · ratio, rounded up.
        longest = as_fraction(plant.dt if plant.is_discrete else max_step)
        self._ratio = clock.tick / longest

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
            x = self._chain(x, u, t + done * dt, dt, some)[:, -1]
        return x

    def states(self, x: np.ndarray, u: np.ndarray, now: int, period: int, count: int) -> np.ndarray:
        """States after each of some equal intervals, shape (count, nq)."""
        each = self.steps(period)
        dt = self.clock.seconds(period) / each
        path = self._chain(x, u, self.clock.seconds(now), dt, count * each)
        return path[:, each - 1 :: each].T

    def _chain(self, x: np.ndarray, u: np.ndarray, t: float, dt: float, count: int) -> np.ndarray:
        """States after each of some steps in one call, shape (nq, count)."""
        times = (t + dt * np.arange(count)).reshape(1, count)
        inputs = np.repeat(u[:, np.newaxis], count, axis=1)
        return rollout_function(self.plant, count, self.method)(times, x, inputs, self.p, dt)
