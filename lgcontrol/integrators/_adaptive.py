"""integrate: adaptive Runge–Kutta–Munthe-Kaas of order 5(4) with dense output and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen import check_shape
from ..groups import LieGroup, check_element
from ._embedded_step import EVALUATIONS, ORDER, EmbeddedStep, StepFunction, step_function
from ._events import Crossing, Crossings, EventWatch, as_events
from ._method import Field
from ._solution import Solution, Statistics, Status, polynomial
from ._tolerance import Tolerance

SAFETY = 0.9
SHRINK, GROW = 0.2, 10.0  # limits on the change of the step
INTEGRAL, PROPORTIONAL = 0.7 / ORDER, 0.4 / ORDER  # Gustafsson's controller: smooth step sequences
MIN_ROUNDINGS = 10  # a step is at least this many spacings of the time


def integrate(
    group: LieGroup,
    field: Callable[..., Any],
    x0: Any,
    span: Sequence[float],
    *,
    args: Sequence[Any] = (),
    rtol: float = 1e-8,
    atol: Any = 1e-10,
    events: Any = (),
    dense: bool = True,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int = 1_000_000,
    progress: Callable[[float], Any] | None = None,
) -> Solution:
    """Integrate ``Ẋ = X · f(t, X)`` with error control, for accurate simulation.

    The error of a step is a tangent vector. Each entry may be as large as ``atol + rtol · s``,
    where s is the magnitude of the entry in Rn blocks (speeds, loads), and 1 for motions (1 m,
    1 rad), whose coordinates have no magnitude of their own: the steps do not depend on where the
    origin of the world is.

    Parameters
    ----------
    group : LieGroup
    field : callable
        ``f(t, x, *args) → d``, body-fixed velocity, shape (dim,). A ModelFunction (see
        `lgcontrol.codegen.trace`) or casadi.Function runs about ten times faster than a Python
        function.
    x0 : array_like, shape (nq,)
        State at the start; it is normalised.
    span : (float, float)
        Times [s] of start and end; the end may be the earlier one.
    args : sequence
        Constant further arguments of the field: inputs, parameters.
    rtol, atol : float, and float or array_like of shape (dim,)
        Relative and absolute tolerance of a step.
    events : Event, callable, or sequence of these
        Functions ``(t, x) → number`` whose zeros are located on the interpolated motion. Two zeros
        within a fifth of a step are missed: limit `max_step` for functions that change faster than
        the motion. Jumps do not count (see `Event`).
    dense : bool
        Whether the solution can be called at any time.
    first_step, max_step : float, optional
        First and longest step [s].
    max_steps : int
        Limit on the number of steps, accepted or not.
    progress : callable, optional
        Called with the fraction done, for each further percent.

    Returns
    -------
    Solution
        Failures are told by `Solution.status`; what was reached is kept.

    Raises
    ------
    ValueError
        If an argument is of the wrong shape, not finite, or out of range.

    References
    ----------
    Munthe-Kaas 1999; Dormand, Prince 1980; Hairer, Nørsett, Wanner: Solving Ordinary Differential
    Equations I, sections II.4 and II.6.

    Examples
    --------
    A body that turns about z at a growing rate:

    >>> from lgcontrol.groups import SO3
    >>> motion = integrate(SO3, lambda t, x: np.array([0, 0, t]), SO3.identity, (0, 2))
    >>> motion.status, SO3.log(motion(1.0)).round(9)
    ('finished', array([0. , 0. , 0.5]))
    """
    t0, t1 = map(float, check_shape("span", span, (2,)))
    x = check_element("x0", x0, group, tolerance=np.inf)
    tolerance = Tolerance(group, rtol, atol)
    for name, value in (("first_step", first_step), ("max_step", max_step)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    velocity_at, step = step_function(group, field, tuple(args))
    run = _Run(group, tolerance, velocity_at, step, t0, t1, x, dense, as_events(events))
    run.advance(first_step, float(max_step), max_steps, progress)
    return run.solution()


class _Run:
    """State of an integration under way."""

    def __init__(
        self,
        group: LieGroup,
        tolerance: Tolerance,
        velocity_at: Field,
        step: StepFunction,
        t0: float,
        t1: float,
        x: np.ndarray,
        dense: bool,
        events: tuple[Any, ...],
    ) -> None:
        self.group, self.tolerance = group, tolerance
        self.velocity_at, self.step = velocity_at, step
        self.t, self.end, self.x = t0, t1, x
        self.forward = 1.0 if t1 >= t0 else -1.0
        self.times, self.states = [t0], [x]
        self.keep_dense = dense
        self.dense: list[np.ndarray] = []
        self.lengths: list[float] = []
        self.watch = EventWatch(events, t0, x)
        self.crossings: list[Crossing] = []
        self.status: Status = "finished"
        self.rejected = self.evaluations = 0

    def advance(
        self,
        first_step: float | None,
        max_step: float,
        max_steps: int,
        progress: Callable[[float], Any] | None,
    ) -> None:
        start, percent = self.t, 0
        velocity = self._velocity(self.t, self.x)
        if not np.isfinite(velocity).all():
            self.status = "not_finite"
            return
        h = min(first_step or self._first_step(velocity), max_step)
        last_error = 1.0
        while self.forward * (self.end - self.t) > 0:
            if len(self.times) - 1 + self.rejected >= max_steps:
                self.status = "max_steps"
                return
            shortest = MIN_ROUNDINGS * np.spacing(max(abs(self.t), abs(self.end)))
            remaining = abs(self.end - self.t)
            last = h >= remaining - shortest
            dt = self.forward * (remaining if last else h)
            with np.errstate(over="ignore", invalid="ignore"):  # a trial may overflow: rejected
                trial = self.step(self.t, self.x, velocity, dt)
            self.evaluations += EVALUATIONS
            error = self.tolerance.norm(trial.error, self.x, trial.x)
            if not error <= 1.0:
                self.rejected += 1
                finite = np.isfinite(error)
                h = abs(dt) * (max(SHRINK, SAFETY * error ** (-1 / ORDER)) if finite else SHRINK)
                if h < shortest:
                    self.status = "step_too_small" if finite else "not_finite"
                    return
                last_error = 1.0
                continue
            velocity = trial.velocity
            if self._accept(trial, dt, self.end if last else self.t + dt):
                self.status = "event"
                return
            factor = SAFETY * max(error, 1e-10) ** -INTEGRAL * last_error**PROPORTIONAL
            last_error = max(error, 1e-4)
            h = min(abs(dt) * min(GROW, max(SHRINK, factor)), max_step)
            done = int(100 * (self.t - start) / (self.end - start))
            if progress is not None and done > percent:
                percent = done
                progress(done / 100)

    def _velocity(self, t: float, x: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        return np.asarray(self.velocity_at(t, x), dtype=np.float64)

    def _first_step(self, velocity: np.ndarray) -> float:
        """Length of the first step from the change of the velocity over a short Euler step."""
        span = abs(self.end - self.t)
        speed = self.tolerance.norm(velocity, self.x)
        unit = self.tolerance.norm(np.ones(self.group.dim), self.x)
        short = min(0.01 * unit / speed if speed > 1e-10 * unit else 1e-6, span)
        dt = self.forward * short
        after = self._velocity(self.t + dt, self.group.plus(self.x, dt * velocity))
        change = self.tolerance.norm(after - velocity, self.x) / short if short > 0 else 0.0
        fastest = max(speed, change) if np.isfinite(change) else np.inf
        guess = (0.01 / fastest) ** (1 / ORDER) if fastest > 1e-15 else 1e-3 * span
        return max(min(100 * short, guess, span), MIN_ROUNDINGS * np.spacing(abs(self.t)))

    def _accept(self, trial: EmbeddedStep, dt: float, t: float) -> bool:
        """Record a step; whether a terminal event ends the integration."""
        start, x_start, x_end = self.t, self.x, trial.x

        def state(time: float) -> np.ndarray:
            if time == t:
                return x_end
            s = (time - start) / dt
            return self.group.normalize(self.group.plus(x_start, polynomial(trial.dense, s)))

        found = self.watch.step(start, t, state) if self.watch.events else []
        self.crossings += found
        stop = bool(found) and self.watch.events[found[-1].event].terminal
        self.t, self.x = (found[-1].t, found[-1].x) if stop else (t, x_end)
        self.times.append(self.t)
        self.states.append(self.x)
        self.lengths.append(dt)
        if self.keep_dense:
            self.dense.append(trial.dense)
        return stop

    def solution(self) -> Solution:
        count, dim = len(self.lengths), self.group.dim
        events = {}
        for i, event in enumerate(self.watch.events):
            own = [crossing for crossing in self.crossings if crossing.event == i]
            events[event.name] = Crossings(
                np.array([crossing.t for crossing in own]),
                np.array([crossing.x for crossing in own]).reshape(-1, self.group.nq),
            )
        return Solution(
            self.group,
            np.array(self.times),
            np.array(self.states),
            events,
            self.status,
            self._message(),
            Statistics(count, self.rejected, self.evaluations),
            np.array(self.dense).reshape(count, dim, 4) if self.keep_dense else None,
            np.array(self.lengths) if self.keep_dense else None,
        )

    def _message(self) -> str:
        t = f"t = {self.t:.6g}"
        if self.status == "event":
            return f"the event {self.watch.events[self.crossings[-1].event].name!r} ended it at {t}"
        return {
            "finished": f"the end was reached at {t}",
            "step_too_small": f"at {t} no step meets the tolerances: a singularity, or loosen them",
            "max_steps": f"the limit of steps was reached at {t}: stiff, or raise max_steps",
            "not_finite": f"the field is not finite at or just after {t}",
        }[self.status]
