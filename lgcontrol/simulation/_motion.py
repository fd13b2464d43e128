"""Motion of the plant between events: to a tolerance, or in equal steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from math import ceil, inf

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, chain, prepare, trace
from ..codegen._internal import exactly, memoized
from ..groups import LieGroup, Product, Rn
from ..integrators import Method, get_method
from ..integrators._internal import StepControl, decay_rate, embedded_step, nan_as_infinite
from ..systems import System
from ..systems._internal import resolved_step
from ._contract import RunStatus

# States beyond have nothing to do with what was to be simulated; doubles have few digits left.
LARGEST_STATE = 1e12
# A state that has grown by this much where steps become too short runs away; else it is stiff.
RUNAWAY = 1e9
# Errors of single steps add up over a run: each may have this part of the tolerance.
MOTION_SHARE = 0.01
# Explicit steps are as long as stability allows from about half of 3.3 over the fastest decay on;
# steps of the stiff method cost about four of them, and pay from this number of decay times on.
STABLE_STEP, MANY_STABLE = 0.6, 15.0
MOST_PIECE_STEPS = 100_000  # in 0.01 s, or between two events: a run that needs more does not end
LONGEST_CALL = 256  # equal steps in one call: more save nothing, and Ctrl-C waits for it
FIXED_STEP = 0.01  # s, of equal steps unless asked otherwise


class PlantMotion(ABC):
    """Moves a plant over intervals in which inputs and parameters are held.

    Attributes
    ----------
    method : str
        Name of the method.
    function : ModelFunction
        What makes a step.
    calls : int
        Steps of the whole run, about.
    shortest, longest : float
        Of the steps taken so far, s.
    steps, rejected : int
        Number of steps taken, and of those that were too long.
    status : RunStatus
        ``COMPLETED`` as long as the plant could be followed.
    trouble : str
        Any other trouble.
    """

    method: str
    function: ModelFunction
    calls: int
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
        elif np.abs(x).max(initial=0.0) > LARGEST_STATE:
            name = plant.state.coordinate_names[int(np.abs(x).argmax())]
            self.status, self.trouble = RunStatus.DIVERGED, f"{name} is beyond {LARGEST_STATE:g}"


class EqualSteps(PlantMotion):
    """Equal steps of one method, the fewest that are short enough; errors are not watched.

    Equations that steps solve are: a step that does not solve them ends the run.

    Parameters
    ----------
    plant : System
        A discrete one makes its own steps.
    method : Method
    max_step : float
        Longest step in s.
    seconds : float
        Of the whole run: a long one is worth compiling the steps for.

    Attributes
    ----------
    longest_step : float
        In s.
    solves : bool
        Whether steps solve equations, whose residual they return.
    """

    def __init__(self, plant: System, method: Method, max_step: float, seconds: float) -> None:
        self.plant, self.method = plant, method.name
        self.longest_step = plant.dt if plant.is_discrete else max_step
        resolved = resolved_step(plant, method, 1)
        self.solves, step = resolved is not None, resolved or plant.step(method)
        # The steps of a run do not depend on who takes them; those of others may be fused.
        self.function = plant.memo(("exact step", step), lambda: exactly(copy(step)))
        self.calls = ceil(seconds / self.longest_step)
        prepare(self.function, calls=self.calls)

    def advance(
        self, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float, seconds: float
    ) -> np.ndarray:
        """State after an interval, in as few calls as may be."""
        # Intervals and steps are ratios of short decimals: rounding must not add a step.
        count = max(1, ceil(seconds / self.longest_step * (1 - 1e-12)))
        dt = seconds / count
        for done in range(0, count, LONGEST_CALL):
            some = min(LONGEST_CALL, count - done)
            times = t + dt * (done + np.arange(some))
            if some == 1:
                made = self.function(times[0], x, u, p, dt)
            else:
                made = self._chain(some)(times[:, None], x, u, p, dt)
            states, residuals = (made.x_next, made.residual) if self.solves else (made, 0.0)
            x = states if some == 1 else states[-1]
            self.check(self.plant, x)
            self.judge(times, np.ravel(residuals), dt)
        self.took(dt, count)
        return x

    def judge(self, times: np.ndarray, residuals: np.ndarray, dt: float) -> None:
        """Note the first step that did not solve its equations."""
        missed = np.flatnonzero(~(residuals <= 1))
        if self.status != RunStatus.COMPLETED or not missed.size:
            return
        first = int(missed[0])
        self.status = RunStatus.UNRESOLVED
        self.trouble = (
            f"{self.method} did not solve the equations of {self.plant.name}'s step of {dt:.2g} s "
            f"at t = {times[first]:g} s: the residual is {residuals[first]:.2g} times what is "
            "tolerated (a shorter max_step helps, or no method: then steps are chosen)"
        )

    def _chain(self, count: int) -> ModelFunction:
        """A number of steps as one function, kept with the plant for the runs to come."""

        def make() -> ModelFunction:
            made = chain(self.function, count, carry=("x", "x_next"), each=["t"])
            prepare(made, calls=-(-self.calls // count))
            return made

        return self.plant.memo(("simulate", self.function, count), make)


class Adaptive(PlantMotion):
    """Steps whose errors stay within a tolerance, explicit or, where the plant is stiff, implicit.

    Each entry of the error of a step, a tangent vector, may be as large as a hundredth of the
    tolerance times a magnitude. In Rn blocks this is the magnitude of the entry, but at least one
    of its unit. For motions it is 1 m or 1 rad: the steps do not depend on where the origin of the
    world is.

    A plant is stiff if stability keeps explicit steps shorter than errors do. Its fastest decay is
    looked at in the beginning, when a step was rejected, and now and then. Steps of the stiff
    method that are not much longer than the explicit ones could be do not pay.

    Parameters
    ----------
    plant : System
        Continuous.
    tolerance : float
    max_step : float
        Longest step in s, or infinite.
    seconds : float
        Of the whole run.

    Attributes
    ----------
    h : float
        Length of the next step, s.
    start : float
        Smallest size of the state so far.
    control : StepControl
    look_at, patience : int
        Number of steps at which the fastest decay is looked at again, and after how many more.
    """

    def __init__(self, plant: System, tolerance: float, max_step: float, seconds: float) -> None:
        self.plant, self.tolerance, self.max_step = plant, tolerance, max_step
        self.calls = ceil(seconds / min(max_step, FIXED_STEP))
        self.h = min(max_step, FIXED_STEP)
        self.start = LARGEST_STATE
        self.control = StepControl()
        self._choose(StepControl.EXPLICIT)
        self.look_at, self.patience = 0, StepControl.LOOK_EVERY  # in steps

    @property
    def method(self) -> str:  # type: ignore[override]
        """Names of the methods used."""
        return " and ".join(self._used)

    @property
    def order(self) -> int:
        """Order of the method of the moment."""
        return self._scheme.order

    @property
    def is_explicit(self) -> bool:
        """Whether the method of the moment is that of plants that are not stiff."""
        return self._scheme is StepControl.EXPLICIT

    def _choose(self, scheme: Method) -> None:
        self._scheme, self.function = scheme, error_step(self.plant, scheme)
        self._used = list(dict.fromkeys([*getattr(self, "_used", []), scheme.name]))
        if not self.function.is_compiled:
            prepare(self.function, calls=self.calls)

    def advance(
        self, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float, seconds: float
    ) -> np.ndarray:
        """State after an interval, in steps as long as the tolerance lets them be."""
        allowed = MOTION_SHARE * self.tolerance
        least = StepControl.shortest(t, t + seconds)
        most = MOST_PIECE_STEPS * max(1.0, seconds / FIXED_STEP)
        h, done, count = self.h, 0.0, 0
        self.start = min(self.start, max(1.0, float(np.abs(x).max(initial=0.0))))
        while done < seconds:
            if self.steps >= self.look_at and seconds > 2 * h:
                h = self.look(t + done, x, u, p, h, seconds)
            rest = seconds - done
            parts = ceil(rest / h * (1 - 1e-9))  # equal parts: no tiny step at the end
            dt = rest / parts
            after, error = self.function(t + done, x, u, p, dt)
            ratio, order = float(error) / allowed, self.order
            if ratio <= 1.0:
                x, done, count = after, (seconds if parts == 1 else done + dt), count + 1
                self.took(dt)
                factor = self.control.accepted(ratio, order)
                # A step that the end of the interval made short says little of longer ones.
                h = min(dt * factor if factor < 1.0 else max(h, dt * factor), self.max_step)
            else:  # or it is not finite
                self.rejected += 1
                self.look_at = min(self.look_at, self.steps + 1)
                h = dt * self.control.rejected(ratio, order)
            if (h < least and done < seconds) or count > most:
                self.give_up(x, dt)
                return x
        self.h = h
        self.check(self.plant, x)
        return x

    def look(
        self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray, h: float, seconds: float
    ) -> float:
        """Choose the method for the steps to come; the length of the next one."""
        self.look_at = self.steps + self.patience
        rate = decay_rate(self.plant.problem, t, x, u, p)
        if self._scheme is StepControl.EXPLICIT:
            if STABLE_STEP * h * rate > 1.0 and seconds * rate > MANY_STABLE:
                self._choose(StepControl.STIFF)
        elif h * rate < MANY_STABLE:
            self._choose(StepControl.EXPLICIT)
            # What did not pay is tried more rarely; the loop in C counts in 64 bits.
            self.patience = min(4 * self.patience, StepControl.LOOK_RARELY)
            h = min(h, 1.0 / rate) if rate else h
        return h

    def give_up(self, x: np.ndarray, dt: float) -> None:
        """Say whether the state runs away, or moves too fast for any step."""
        self.check(self.plant, x)
        if self.status != RunStatus.COMPLETED:
            return
        if np.abs(x).max(initial=0.0) > RUNAWAY * self.start:
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
) -> PlantMotion:
    """Equal steps where a method is asked for or the plant is discrete, else to the tolerance."""
    if method is not None or plant.is_discrete:
        scheme = get_method("rk4" if method is None else method)
        return EqualSteps(plant, scheme, FIXED_STEP if max_step is None else max_step, seconds)
    return Adaptive(plant, tolerance, inf if max_step is None else max_step, seconds)


@memoized
def error_step(plant: System, method: Method) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, error``: a step and its largest error in units of magnitudes.

    Kept with the plant for the runs to come.
    """
    group, step = plant.state, embedded_step(plant.problem, method)
    symbol = ca.SX if step.function.is_a("SXFunction") else ca.MX

    def build(t: Value, x: Value, u: Value, p: Value, dt: Value) -> list[Value]:
        after, error, _ = step(t, x, u, p, dt)
        scales = _magnitudes(group, x, after)
        ratios = [ca.fabs(error[i]) / scale for i, scale in enumerate(scales)]
        largest = ca.mmax(ca.vertcat(*map(nan_as_infinite, ratios))) if ratios else symbol(0)
        if plant.project is not None:
            after = plant.project(after, p)
        return [after, largest]

    made = trace(
        "error_step",
        build,
        {
            "t": (),
            "x": (group.nq,),
            "u": (plant.n_inputs,),
            "p": (plant.n_parameters,),
            "dt": (),
        },
        {"x_next": (group.nq,), "error": ()},
        symbol=symbol,
    )
    return exactly(made)  # the steps of a run do not depend on who takes them


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
