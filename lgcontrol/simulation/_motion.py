"""Motion of the plant between events: to a tolerance, or in equal steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil, inf

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, chain, prepare
from ..groups import LieGroup, Product, Rn
from ..integrators import Method, get_method
from ..integrators._embedded_step import ORDER, embedded_step
from ..systems import System
from ._contract import RunStatus

# States beyond have nothing to do with what was to be simulated; doubles have few digits left.
LARGEST = 1e12
# A state that has grown by this much where steps become too short runs away; else it is stiff.
RUNAWAY = 1e9
# Errors of single steps add up over a run: each may have this part of the tolerance.
SHARE = 0.1
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
MIN_ROUNDINGS = 10  # a step is at least this many spacings of the time
MOST_STEPS = 1_000_000  # between two events: a run that needs more does not end
LONGEST_CALL = 256  # equal steps in one call: more save nothing, and Ctrl-C waits for it
FIXED_STEP = 0.01  # s, of equal steps unless asked otherwise


class Motion(ABC):
    """Moves a plant over intervals in which inputs and parameters are held.

    Attributes
    ----------
    method : str
        Name of the method.
    shortest, longest : float
        Of the steps taken so far, s.
    steps, rejected : int
        Number of steps taken, and of those that were too long.
    status : RunStatus
        ``COMPLETED`` as long as the plant could be followed.
    trouble : str
        What is wrong otherwise.
    """

    method: str
    shortest = inf
    longest = 0.0
    steps = rejected = 0
    status = RunStatus.COMPLETED
    trouble = ""

    @abstractmethod
    def advance(
        self, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float, seconds: float
    ) -> np.ndarray:
        """State after an interval that starts at t, shape (nq,)."""

    def took(self, dt: float, count: int = 1) -> None:
        """Note steps of a length."""
        self.shortest, self.longest = min(self.shortest, dt), max(self.longest, dt)
        self.steps += count

    def check(self, plant: System, x: np.ndarray) -> None:
        """Note a state that is not finite, or beyond all bounds."""
        if self.status != RunStatus.COMPLETED:
            return
        if not np.isfinite(x).all():
            self.status, self.trouble = RunStatus.DIVERGED, "the state is not finite"
        elif np.abs(x).max(initial=0.0) > LARGEST:
            name = plant.state.coordinate_names[int(np.abs(x).argmax())]
            self.status, self.trouble = RunStatus.DIVERGED, f"{name} is beyond {LARGEST:g}"


class EqualSteps(Motion):
    """Equal steps of one method, the fewest that are short enough; errors are not watched.

    Parameters
    ----------
    plant : System
        A discrete one makes its own steps.
    method : Method
    max_step : float
        Longest step in s.
    seconds : float
        Of the whole run: a long one is worth compiling the steps for.
    """

    def __init__(self, plant: System, method: Method, max_step: float, seconds: float) -> None:
        self.plant, self.method = plant, method.name
        self._longest = plant.dt if plant.is_discrete else max_step
        self._step = plant.step(method)
        self._total = ceil(seconds / self._longest)
        prepare(self._step, calls=self._total)

    def advance(
        self, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float, seconds: float
    ) -> np.ndarray:
        """State after an interval, in as few calls as may be."""
        # Intervals and steps are ratios of short decimals: rounding must not add a step.
        count = max(1, ceil(seconds / self._longest * (1 - 1e-12)))
        dt = seconds / count
        for done in range(0, count, LONGEST_CALL):
            some = min(LONGEST_CALL, count - done)
            if some == 1:
                x = self._step(t + done * dt, x, u, p, dt)
            else:
                times = (t + dt * (done + np.arange(some))).reshape(some, 1)
                x = self._chain(some)(times, x, u, p, dt)[-1]
        self.took(dt, count)
        self.check(self.plant, x)
        return x

    def _chain(self, count: int) -> ModelFunction:
        """A number of steps as one function, kept with the plant for the runs to come."""
        kept, key = self.plant._cache, ("simulate", self._step, count)
        if key not in kept:
            kept[key] = chain(self._step, count, carry=("x", "x_next"), each=["t"])
            prepare(kept[key], calls=-(-self._total // count))
        return kept[key]


class Adaptive(Motion):
    """Steps of Dormand and Prince whose errors stay within a tolerance.

    Each entry of the error of a step, a tangent vector, may be as large as a tenth of the tolerance
    times the magnitude of the entry in Rn blocks, but at least one of its unit, and 1 m or 1 rad
    for motions: the steps do not depend on where the origin of the world is.

    Parameters
    ----------
    plant : System
        Continuous.
    tolerance : float
    max_step : float
        Longest step in s, or infinite.
    seconds : float
        Of the whole run.
    """

    method = "dormand_prince5"

    def __init__(self, plant: System, tolerance: float, max_step: float, seconds: float) -> None:
        self.plant, self.tolerance, self._max_step = plant, tolerance, max_step
        self._function = error_step(plant)
        prepare(self._function, calls=ceil(seconds / min(max_step, FIXED_STEP)))
        self._h = min(max_step, FIXED_STEP)
        self._start = LARGEST

    def advance(
        self, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float, seconds: float
    ) -> np.ndarray:
        """State after an interval, in steps as long as the tolerance lets them be."""
        allowed = SHARE * self.tolerance
        least = MIN_ROUNDINGS * np.spacing(t + seconds)
        h, done, count = self._h, 0.0, 0
        self._start = min(self._start, max(1.0, float(np.abs(x).max(initial=0.0))))
        while done < seconds:
            rest = seconds - done
            parts = ceil(rest / h * (1 - 1e-9))  # equal parts: no tiny step at the end
            dt = rest / parts
            with np.errstate(over="ignore", invalid="ignore"):
                after, error = self._function(t + done, x, u, p, dt)
            ratio = error / allowed
            if ratio <= 1.0:
                x, done, count = after, (seconds if parts == 1 else done + dt), count + 1
                self.took(dt)
                factor = min(GROW, SAFETY * max(ratio, 1e-12) ** (-1 / ORDER))
                # A step that the end of the interval made short says little of longer ones.
                h = min(dt * factor if factor < 1.0 else max(h, dt * factor), self._max_step)
            else:  # or it is not finite
                self.rejected += 1
                h = dt * (max(SHRINK, SAFETY * ratio ** (-1 / ORDER)) if ratio < inf else SHRINK)
                if h < least:
                    self._give_up(x, dt)
                    return x
            if count > MOST_STEPS:
                self._give_up(x, dt)
                return x
        self._h = h
        self.check(self.plant, x)
        return x

    def _give_up(self, x: np.ndarray, dt: float) -> None:
        """Say whether the state runs away, or moves too fast for any step."""
        self.check(self.plant, x)
        if self.status != RunStatus.COMPLETED:
            return
        if np.abs(x).max(initial=0.0) > RUNAWAY * self._start:
            self.status = RunStatus.DIVERGED
            self.trouble = f"{self.plant.name} runs away: steps of {dt:.2g} s do not follow it"
            return
        self.status = RunStatus.UNRESOLVED
        self.trouble = (
            f"{self.plant.name} moves too fast for steps of {dt:.2g} s to keep the tolerance "
            f"{self.tolerance:g}: it has jumps, or modes to leave out of the plant (stiff springs, "
            f"short lags, dry friction on small inertias); else give a larger tolerance"
        )


def make_motion(
    plant: System,
    method: str | Method | None,
    tolerance: float,
    max_step: float | None,
    seconds: float,
) -> Motion:
    """Equal steps where a method is asked for or the plant is discrete, else to the tolerance."""
    if method is not None or plant.is_discrete:
        scheme = get_method("rk4" if method is None else method)
        return EqualSteps(plant, scheme, FIXED_STEP if max_step is None else max_step, seconds)
    return Adaptive(plant, tolerance, inf if max_step is None else max_step, seconds)


def error_step(plant: System) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, error``: a step and its largest error in units of magnitudes.

    Kept with the plant for the runs to come.
    """
    kept, key = plant._cache, ("error step",)
    if key not in kept:
        kept[key] = _build(plant)
    return kept[key]


def _build(plant: System) -> ModelFunction:
    sym, group = plant.symbol.sym, plant.state
    t, x, dt = sym("t"), sym("x", group.nq), sym("dt")
    u, p = sym("u", plant.n_inputs), sym("p", plant.n_parameters)

    def field(s: ca.SX, y: ca.SX) -> ca.SX:
        return plant.f(s, y, u, p)

    after, _, error, _ = embedded_step(group, field, t, x, field(t, x), dt)
    ratios = [ca.fabs(error[i]) / scale for i, scale in enumerate(_magnitudes(group, x, after))]
    # Comparisons lose NaN, sums keep it.
    largest = ca.mmax(ca.vertcat(*ratios)) + 0 * ca.sum1(error) if ratios else ca.DM(0.0)
    if plant.project is not None:
        after = plant.project(after, p)
    results = [after, largest]
    if plant.symbol is ca.SX:
        results = ca.cse(results)
    return ModelFunction(
        ca.Function(
            "error_step", [t, x, u, p, dt], results, ["t", "x", "u", "p", "dt"], ["x_next", "error"]
        ),
        shapes={
            "t": (),
            "x": (group.nq,),
            "u": (plant.n_inputs,),
            "p": (plant.n_parameters,),
            "dt": (),
            "x_next": (group.nq,),
            "error": (),
        },
    )


def _magnitudes(group: LieGroup, x: ca.SX, after: ca.SX) -> list[ca.SX | float]:
    """Magnitude of each tangent entry: of the coordinate in Rn blocks, at least 1; else 1."""
    if isinstance(group, Product):
        return [
            magnitude
            for name, block in group.blocks.items()
            for where in [group.coordinate_slice(name)]
            for magnitude in _magnitudes(block, x[where], after[where])
        ]
    if not isinstance(group, Rn):
        return [1.0] * group.dim
    return [ca.fmax(1.0, ca.fmax(ca.fabs(x[i]), ca.fabs(after[i]))) for i in range(group.dim)]
