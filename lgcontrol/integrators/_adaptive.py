"""Adaptive integration: embedded steps, their control, stiffness, and the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, named_options, trace
from ..codegen._internal import Shape, check_shape, memoized
from ..groups import check_element
from ._method import Method, Trial
from ._methods import METHODS, get_method
from ._motion import Motion
from ._problem import Problem
from ._solution import (
    Crossing,
    Crossings,
    EventWatch,
    IntegrationStatus,
    Solution,
    Statistics,
    as_events,
    polynomial,
)
from ._tolerance import Tolerance

SAFETY = 0.9
SHRINK, GROW = 0.2, 10.0  # limits on the change of the step
# Gustafsson's exponents of the error and of the one before, next to 1 / order: smooth sequences of
# steps with few rejections, at 0.7 of the longest step that is allowed.
INTEGRAL, PROPORTIONAL = 0.7, 0.4
MIN_ROUNDINGS = 10  # a step is at least this many spacings of the time
# The explicit pair is stable for real modes up to 3.3 / dt: steps that long are held back by
# stability, not by the error.
STABLE = 2.8


class StepControl:
    """Factors from one step to the next, of errors next to what is allowed.

    Attributes
    ----------
    EXPLICIT, STIFF : Method
        What steps are made with, and where the decay of fast modes keeps those short.
    LOOK_EVERY, LOOK_RARELY : int
        Steps between looks at the fastest decay, at first and at most; rejections are looked at,
        too.
    before : float
        Error of the step before.

    References
    ----------
    Hairer, Wanner: Solving Ordinary Differential Equations II, section IV.2, eq. (2.43c).

    Examples
    --------
    >>> control = StepControl()
    >>> control.rejected(32.0, order=5), control.accepted(0.0, order=5)
    (0.45, 10.0)
    """

    EXPLICIT, STIFF = METHODS["dormand_prince5"], METHODS["ros34pw2"]
    LOOK_EVERY, LOOK_RARELY = 25, 10**9

    def __init__(self) -> None:
        self.before = 1.0

    def accepted(self, error: float, order: int) -> float:
        """Factor to the next step after one with an error up to 1."""
        factor = SAFETY * max(error, 1e-12) ** (-INTEGRAL / order)
        factor *= self.before ** (PROPORTIONAL / order)
        self.before = max(error, 1e-4)
        return min(GROW, max(SHRINK, factor))

    def rejected(self, error: float, order: int) -> float:
        """Factor to the next try after a step that was too long, or is not finite."""
        self.before = 1.0
        if not (isfinite(error) and error > 1.0):
            return SHRINK
        return max(SHRINK, SAFETY * error ** (-1.0 / order))

    @staticmethod
    def shortest(t: float, end: float) -> float:
        """Length in s below which rounding of the time is all there is."""
        return float(MIN_ROUNDINGS * np.spacing(max(abs(t), abs(end))))


def decay_rate(problem: Problem, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> float:
    """Largest rate [1/s] at which a mode decays about a state; 0 where the Jacobian is not finite.

    Fast modes that do not decay count little: no method may take long steps there.
    """
    if not problem.group.dim:
        return 0.0
    A = error_matrix(problem)(t, x, u, p)
    if not np.isfinite(A).all():
        return 0.0
    return float(max(0.0, -np.linalg.eigvals(A).real.min()))


@memoized
def error_matrix(problem: Problem) -> ModelFunction:
    """``Df − ad_f``, the matrix of the errors' equation."""
    group = problem.group

    def build(t: Value, x: Value, u: Value, p: Value) -> Value:
        motion = Motion(problem, u, p)
        return motion.jacobian(t, x, u, p) - group.ad(motion.field(t, x))

    return trace(
        "error_matrix",
        build,
        _arguments(problem),
        {"A": (group.dim, group.dim)},
        symbol=problem.symbol,
        is_shared=False,
    )


def _arguments(problem: Problem) -> dict[str, Shape]:
    """Shapes of t, x, u, p."""
    n, m, k = problem.group.nq, problem.n_inputs, problem.n_parameters
    return {"t": (), "x": (n,), "u": (m,), "p": (k,)}


StepFunction = Callable[[float, np.ndarray, np.ndarray, float], Trial]


def embedded_step(problem: Problem, method: str | Method = "dormand_prince5") -> ModelFunction:
    """Step with an estimate of its error, ``(t, x, u, p, dt) → x_next, error, residual``.

    The cheap entry for loops of one's own: one function for all stages, which `chain` repeats and
    `codegen.prepare` compiles. It is made once for a problem and kept with it.

    Parameters
    ----------
    problem : Problem
        For a System ``system.problem``.
    method : str or Method
        One that estimates errors: "dormand_prince5", or "ros34pw2" for stiff problems.

    Returns
    -------
    ModelFunction
        ``error`` is a tangent vector; `Tolerance.norm` weighs it. A step is short enough where
        that is at most 1, else the next one is ``0.9 norm^(−1/order)`` times as long.

    Raises
    ------
    ValueError
        If the method does not estimate errors.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> turn = Problem(SO2, lambda t, x, u, p: u * t**6, n_inputs=1)
    >>> made = embedded_step(turn)(0.0, SO2.identity, [7.0], [], 1.0)
    >>> SO2.log(made.x_next).round(2), bool(abs(made.error) > 1e-4)
    (array([1.]), True)
    """
    return _embedded_step(problem, get_method(method))


@memoized
def _embedded_step(problem: Problem, scheme: Method) -> ModelFunction:
    group, symbol = problem.group, _symbol(problem, scheme)

    def build(t: Value, x: Value, u: Value, p: Value, dt: Value) -> list[Any]:
        made = scheme.step(problem, t, x, u, p, dt, estimate=True)
        return [made.state, made.error, made.residual]

    return trace(
        "embedded_step",
        build,
        _arguments(problem) | {"dt": ()},
        {"x_next": (group.nq,), "error": (group.dim,), "residual": ()},
        symbol=symbol,
        is_shared=False,  # stages are calls of one field
    )


def trial_function(
    problem: Problem, method: Method, u: np.ndarray, p: np.ndarray
) -> tuple[Callable[[float, np.ndarray], np.ndarray], StepFunction]:
    """The field and its step as functions of NumPy arrays.

    Fields that are CasADi functions are put into one function together with all stages; any other
    callable is evaluated stage by stage.
    """
    if problem.is_symbolic:
        field, compiled = _traced(problem, method)

        def step(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> Trial:
            return Trial(*compiled(t, x, u, p, velocity, dt))

        return lambda t, x: field(t, x, u, p), step

    motion = Motion(problem, u, p)

    def staged(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> Trial:
        made = method.trial(motion, t, x, velocity, dt)
        return made._replace(dense=np.stack(made.dense, axis=-1))

    return motion.field, staged


@memoized
def _traced(problem: Problem, method: Method) -> tuple[ModelFunction, ModelFunction]:
    group, symbol = problem.group, _symbol(problem, method)
    start = _arguments(problem)

    def build(t: Value, x: Value, u: Value, p: Value, velocity: Value, dt: Value) -> list[Any]:
        made = method.trial(Motion(problem, u, p), t, x, velocity, dt)
        return [*made._replace(dense=ca.horzcat(*made.dense))]

    return (
        trace(
            "field",
            lambda t, x, u, p: Motion(problem, u, p).field(t, x),
            start,
            {"velocity": (group.dim,)},
            symbol=problem.symbol,
        ),
        trace(
            "trial",
            build,
            start | {"velocity": (group.dim,), "dt": ()},
            {
                "x_next": (group.nq,),
                "end_velocity": (group.dim,),
                "error": (group.dim,),
                "dense": (group.dim, 4),
                "residual": (),
            },
            symbol=symbol,
        ),
    )


def _symbol(problem: Problem, method: Method) -> Any:
    return ca.MX if method.solves else problem.symbol


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
