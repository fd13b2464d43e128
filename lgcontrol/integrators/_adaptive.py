"""integrate: adaptive steps, explicit or stiff, with dense output and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ..groups import check_element
from ._embedded_step import trial_function
from ._events import Crossing, Crossings, EventWatch, as_events
from ._method import Method, Trial
from ._methods import METHODS, get_method
from ._problem import Problem
from ._solution import IntegrationStatus, Solution, Statistics, polynomial
from ._step_control import MIN_ROUNDINGS, StepControl
from ._stiffness import decay_rate
from ._tolerance import Tolerance

# The explicit pair is stable for real modes up to 3.3 / dt: steps that long are held back by
# stability, not by the error.
STABLE = 2.8


@named_options
def integrate(
    problem: Problem,
    x0: Any,
    span: Sequence[float],
    *,
    u: Any = (),
    p: Any = (),
    method: str | Method = "auto",
    rtol: float = 1e-6,
    atol: Any = 1e-6,
    events: Any = (),
    dense: bool = True,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int = 1_000_000,
    progress: Callable[[float], Any] | None = None,
) -> Solution:
    """Integrate ``Ẋ = X · f(t, X, u, p)`` with error control, for accurate simulation.

    The error of a step is a tangent vector. Each entry is at most ``atol + rtol · s``. In Rn
    blocks (speeds, loads) s is the magnitude of the entry. For poses s is 1 (m or rad), so the
    steps do not depend on the origin of the world.

    Parameters
    ----------
    problem : Problem
        ``system.problem``, or ``Problem.of(group, f)`` for ``f(t, x) → d``, body-fixed velocity of
        shape (dim,). A ModelFunction (see `lgcontrol.codegen.trace`) or casadi.Function runs about
        ten times faster than a Python function.
    x0 : array_like, shape (nq,)
        State at the start (see `lgcontrol.groups.check_element`).
    span : (float, float)
        Times [s] of start and end; the end may be the earlier one.
    u, p : array_like
        Inputs, which are held, and parameters.
    method : str or Method
        A method with an error estimate: "dormand_prince5", or "ros34pw2" for stiff problems.
        "auto" begins with the explicit method and changes to the other if decaying modes limit the
        step. The test is made at the start, when steps are rejected, and at intervals. Fields that
        are plain NumPy functions keep the explicit method.
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
    Equations I, sections II.4 and II.6; Rang, Angermann 2005.

    Examples
    --------
    A body that turns about z at a growing rate:

    >>> from lgcontrol.groups import SO3
    >>> turn = Problem.of(SO3, lambda t, x: np.array([0, 0, t]))
    >>> motion = integrate(turn, SO3.identity, (0, 2))
    >>> motion.status.value, SO3.log(motion(1.0)).round(9)
    ('finished', array([0. , 0. , 0.5]))
    """
    group = problem.group
    t0, t1 = map(float, check_shape("span", span, (2,)))
    x = check_element("x0", x0, group)
    tolerance = Tolerance(group, rtol, atol)
    for name, value in (("first_step", first_step), ("max_step", max_step)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    u = check_shape("u", u, (problem.n_inputs,))
    p = check_shape("p", p, (problem.n_parameters,))
    run = _Integration(problem, u, p, method, tolerance, t0, t1, x, dense, as_events(events))
    run.advance(first_step, float(max_step), max_steps, progress)
    return run.solution()


class _Integration:
    """State of an integration under way."""

    def __init__(
        self,
        problem: Problem,
        u: np.ndarray,
        p: np.ndarray,
        method: str | Method,
        tolerance: Tolerance,
        t0: float,
        t1: float,
        x: np.ndarray,
        dense: bool,
        events: tuple[Any, ...],
    ) -> None:
        self.problem, self.u, self.p = problem, u, p
        self.group, self.tolerance = problem.group, tolerance
        self.may_change = method == "auto" and problem.is_symbolic
        self._use(StepControl.EXPLICIT if method == "auto" else get_method(method))
        self.t, self.end, self.x = t0, t1, x
        self.forward = 1.0 if t1 >= t0 else -1.0
        self.times, self.states = [t0], [x]
        self.keep_dense = dense
        self.dense: list[np.ndarray] = []
        self.lengths: list[float] = []
        self.watch = EventWatch(events, t0, x)
        self.crossings: list[Crossing] = []
        self.status = IntegrationStatus.FINISHED
        self.rejected = self.evaluations = 0

    def _use(self, method: Method) -> None:
        """Go on with a method."""
        if not method.has_error:
            known = ", ".join(name for name, one in METHODS.items() if one.has_error)
            raise ValueError(
                f"{method.name} does not estimate errors, which adaptive steps need; take {known}"
            )
        self.method = method
        self.velocity_at, self.step = trial_function(self.problem, method, self.u, self.p)

    def _change_if_stiff(self, dt: float) -> bool:
        """Change where a step is longer than decaying modes let it be; whether it did."""
        if not self.may_change or not self.forward > 0:
            return False
        if not dt * decay_rate(self.problem, self.t, self.x, self.u, self.p) > STABLE:
            return False
        self.may_change = False
        self._use(StepControl.STIFF)
        return True

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
            self.status = IntegrationStatus.NOT_FINITE
            return
        h = min(first_step or self._first_step(velocity), max_step)
        self._change_if_stiff(h)
        control = StepControl()
        while self.forward * (self.end - self.t) > 0:
            if len(self.times) - 1 + self.rejected >= max_steps:
                self.status = IntegrationStatus.MAX_STEPS
                return
            shortest = StepControl.shortest(self.t, self.end)
            remaining = abs(self.end - self.t)
            last = h >= remaining - shortest
            dt = self.forward * (remaining if last else h)
            with np.errstate(over="ignore", invalid="ignore"):  # a trial may overflow: rejected
                trial = self.step(self.t, self.x, velocity, dt)
            self.evaluations += self.method.stages
            order = self.method.order
            error = self.tolerance.norm(trial.error, self.x, trial.x)
            if not (error <= 1.0 and trial.residual <= 1.0):
                self.rejected += 1
                shorter = abs(dt) * control.rejected(error, order)
                if self._change_if_stiff(abs(dt)):
                    continue
                h = shorter
                if h < shortest:
                    status, finite = IntegrationStatus, np.isfinite(error)
                    self.status = status.STEP_TOO_SMALL if finite else status.NOT_FINITE
                    return
                continue
            velocity = trial.velocity
            if self._accept(trial, dt, self.end if last else self.t + dt):
                self.status = IntegrationStatus.EVENT
                return
            h = min(abs(dt) * control.accepted(error, order), max_step)
            if len(self.lengths) % StepControl.LOOK_EVERY == 0:
                self._change_if_stiff(h)
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
        guess = (0.01 / fastest) ** (1 / self.method.order) if fastest > 1e-15 else 1e-3 * span
        return max(min(100 * short, guess, span), MIN_ROUNDINGS * np.spacing(abs(self.t)))

    def _accept(self, trial: Trial, dt: float, t: float) -> bool:
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
            Statistics(count, self.rejected, self.evaluations, self._shortest(), self.method.name),
            np.array(self.dense).reshape(count, dim, 4) if self.keep_dense else None,
            np.array(self.lengths) if self.keep_dense else None,
        )

    def _shortest(self) -> float:
        lengths = np.abs(self.lengths)
        if len(lengths) > 1 and self.status is IntegrationStatus.FINISHED:
            lengths = lengths[:-1]
        return float(lengths.min()) if len(lengths) else np.nan

    def _message(self) -> str:
        t = f"t = {self.t:.6g}"
        if self.status is IntegrationStatus.EVENT:
            return f"the event {self.watch.events[self.crossings[-1].event].name!r} ended it at {t}"
        status = IntegrationStatus
        return {
            status.FINISHED: f"the end was reached at {t}",
            status.STEP_TOO_SMALL: f"at {t} no step meets the tolerances: a singularity, or loosen "
            "them",
            status.MAX_STEPS: f"the limit of steps was reached at {t}: raise max_steps, or the "
            "problem is stiff",
            status.NOT_FINITE: f"the field is not finite at or just after {t}",
        }[self.status]
