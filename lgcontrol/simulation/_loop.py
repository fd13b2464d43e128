"""RunLoop: a run carried out event by event in Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any

import numpy as np

from ..codegen._internal import (
    check_interrupt,
    interrupt_is_answered,
    level_outside,
    was_interrupted,
)
from ._clock import Queue
from ._contract import RunStatus
from ._controllers import ControlStage, check_controls
from ._record import Recorder
from ._result import SimulationResult
from ._run import SimulationSetup, fast_losses
from ._sensing import SimulatedSensor

# A run on its way: it yields while it waits for C, is sent what the loop there asks for, and
# returns what makes its result.
Carried = Generator[None, str, Callable[[], SimulationResult]]


class SimulationError(RuntimeError):
    """A controller, an estimator or a disturbance failed in the loop.

    Attributes
    ----------
    result : SimulationResult
        The run up to then.
    """

    result: SimulationResult


class RunLoop:
    """A run under way: where the plant is, what is known of it, what is held and recorded.

    Parameters
    ----------
    run : SimulationSetup
    why : str
        Why it is carried out in Python.
    """

    def __init__(self, run: SimulationSetup, why: str = "") -> None:
        plant = run.plant
        self.run, self._why = run, why
        self.t, self.x, self.p = 0.0, run.start, run.parameters.at(0.0)
        self.acting = "the set-up"  # who to blame when something raises
        self.has_begun = False
        self.known = plant.nominal_input.copy()  # inputs without disturbances
        self.u = self.known
        self.measured, self.measured_at = self.x, np.nan  # the start is what is known at first
        self.answers: list[Any] = [None] * len(run.stages)  # in effect, of each controller
        self.effects: list[Queue[Any]] = [Queue() for _ in run.stages]
        self.deliveries: Queue[tuple[SimulatedSensor, float, np.ndarray]] = Queue()
        self.record = self._recorder()
        self._controls = plant.input_index("control")
        self._calls = [stage.times.on(run.clock) for stage in run.stages]
        self._samples = [sensor.times.on(run.clock) for sensor in run.sensors]

    def carry_out(self, progress: Callable[[float], None] | None) -> Carried:
        """Carry the run out to its end, divergence or an interruption; what makes the result."""
        try:
            self._prepare()
            self.has_begun = True
            yield from self._go(progress)
            check_interrupt()  # one that was swallowed in the last moment
            status, message = self._trouble() or (RunStatus.COMPLETED, "")
        except (KeyboardInterrupt, Exception) as cause:
            status, message = RunStatus.INTERRUPTED, f"stopped at t = {self.t:g} s"
            if not (isinstance(cause, KeyboardInterrupt) or was_interrupted()):
                if not self.has_begun and isinstance(cause, ValueError | TypeError):
                    raise  # what does not fit together is refused before the run
                raise self._failure(cause) from cause
            interrupt_is_answered()
        unseen = self._unseen()
        if unseen:
            warnings.warn(unseen, RuntimeWarning, stacklevel=level_outside())
        return self._made(status, message)

    def _recorder(self) -> Any:
        """What the run is written down with."""
        return Recorder(self.run)

    @property
    def execution(self) -> str:
        """What runs where, for people."""
        return f"in Python: {self._why}"

    def _failure(self, cause: Exception) -> SimulationError:
        """What to raise, with what there is of the run."""
        message = f"{self.acting} failed at t = {self.t:g} s: {type(cause).__name__}: {cause}"
        error = SimulationError(message)
        error.result = self._result(RunStatus.FAILED, message)
        return error

    def _unseen(self) -> str:
        """Who was to see measurements and never saw one, with the consequence; empty for nobody."""
        run = self.run
        if not np.isnan(self.measured_at):
            return ""
        names = " or ".join(sensor.sensor.name for sensor in run.sensors)
        said = []
        if run.estimator is not None:
            said.append("the estimator only predicted")
        if run.stages and run.feedback == "measurement":
            said.append("the controller saw the start all the time")
        return f"no measurement of {names} was delivered: {', '.join(said)}" if said else ""

    def _prepare(self) -> None:
        self.acting = "the estimator"
        getattr(self.run.estimator, "reset", lambda: None)()
        for i, stage in enumerate(self.run.stages):
            self.acting = stage.name
            check = None if i else stage.told_by("check_reference", self.run.plant)
            if check is not None:  # before it builds anything
                check(self.run.reference)
            stage.reset()
            # What an inner controller is to follow comes with the first answer of the outer one.
            state, reference = (None, None) if i else (self._seen(), self.run.reference)
            stage.prepare(state, reference)
        ramp = self.run.ramp
        acting = None if ramp is None else getattr(self.run.stages[-1].law, "applied", None)
        if ramp is not None and acting is not None:
            ramp.turn(0.0, acting, acting)

    def _go(self, progress: Callable[[float], None] | None) -> Generator[None, str, None]:
        """All that happens, in its order."""
        yield from ()  # it waits for nothing
        run, now, shown = self.run, 0, 0
        while True:
            self.t = run.clock.seconds(now)
            check_interrupt()
            if run.batch.stop.is_set():
                raise KeyboardInterrupt
            for change in run.disturbances.kicks(now):
                self.x = run.plant.state.plus(self.x, change)
            self._measure(now)
            self._deliver(now)
            if now < run.end:
                self._command(now)
                run.disturbances.push(now, self.t, self._blame)
            self._keep()
            if now == run.end:
                return
            now = self._move(now, self._next(now))
            if self._trouble():
                return
            if progress is not None and 100 * now // run.end > shown:
                shown = 100 * now // run.end
                self.acting = "progress"
                progress(now / run.end)

    def _trouble(self) -> tuple[RunStatus, str] | None:
        """What keeps the run from going on, if anything does."""
        motion, estimator = self.run.motion, self.run.estimator
        after = f"after t = {self.record.last_time:g} s"
        if motion.status != RunStatus.COMPLETED:
            return motion.status, f"{motion.trouble} {after}{self._hint()}"
        if estimator is not None and not np.isfinite(estimator.x).all():
            return RunStatus.DIVERGED, f"the estimate is not finite {after}"
        return None

    def _hint(self) -> str:
        """What may be behind trouble: losses that controllers are too slow for."""
        if not self.run.stages:
            return ""
        period, rows = self.run.stages[-1].times.dt, self.record
        found = fast_losses(self.run.plant, self.t, rows.last_state, self.p, period)
        return f"; {found}" if found else ""

    def _measure(self, now: int) -> None:
        for sensor, timing in zip(self.run.sensors, self._samples, strict=True):
            if not timing.is_due(now):
                continue
            self.acting = sensor.times.what
            y = sensor.measure(self.t, self.x, self.u, self.p)
            self.record.taken(sensor.sensor.name, lost=y is None)
            if y is not None:
                self.deliveries.put(now + timing.delay, (sensor, self.t, y))

    def _deliver(self, now: int) -> None:
        for sensor, taken, y in self.deliveries.due(now):
            late = sensor.times.delay > sensor.times.dt
            self.record.measurement(sensor.sensor.name, taken, y, late=late)
            self.measured, self.measured_at = y, taken
            if self.run.estimator is not None:
                self.acting = "the estimator"
                self.run.estimator.update(sensor.sensor.name, y.copy())

    def _command(self, now: int) -> None:
        """Call the controllers that are due, from the outer to the inner."""
        for i, (stage, timing) in enumerate(zip(self.run.stages, self._calls, strict=True)):
            goal = self.answers[i - 1] if i else self.run.reference
            if timing.is_due(now) and (i == 0 or goal is not None):
                self.effects[i].put(now + timing.delay, self._call(i, stage, goal))
            for answer in self.effects[i].due(now):
                self.answers[i] = answer
                if stage is self.run.stages[-1]:
                    bounds = self.run.bounds
                    self._take(answer if bounds is None else answer.clip(*bounds))

    def _take(self, controls: np.ndarray) -> None:
        """Hold controls from now on, or move towards them."""
        ramp = self.run.ramp
        if ramp is not None:
            ramp.turn(self.t, ramp.controls(self.t), controls)
            return
        self.known = self.known.copy()
        self.known[self._controls] = controls

    def _call(self, i: int, stage: ControlStage, goal: object) -> Any:
        self.acting = stage.name
        x = self._seen()
        started = perf_counter()
        answer = stage.law(self.t, x, goal)
        elapsed = perf_counter() - started
        if stage is self.run.stages[-1]:
            answer = check_controls(self.run.plant, stage.name, answer)
        elif answer is None:
            raise ValueError("it returned None, expected the reference of the next controller")
        elif isinstance(answer, np.ndarray):
            answer = answer.copy()
        age = None if self.run.feedback == "state" else self.t - self.measured_at
        self.record.call(stage.name, self.t, answer, elapsed, stage.info, age)
        return answer

    def _seen(self) -> np.ndarray:
        """What the controllers know of the state."""
        if self.run.feedback == "estimate" and self.run.estimator is not None:
            return np.array(self.run.estimator.x, dtype=np.float64)
        return (self.measured if self.run.feedback == "measurement" else self.x).copy()

    def _next(self, now: int) -> int:
        """The next tick at which something happens or is recorded."""
        run = self.run
        ticks = [run.end, run.disturbances.after(now), self.deliveries.next]
        ticks += [timing.after(now) for timing in (*self._calls, *self._samples)]
        ticks += [queue.next for queue in self.effects]
        if run.record_period:
            ticks.append(now - now % run.record_period + run.record_period)
        return int(min(ticks))

    def _move(self, now: int, after: int) -> int:
        """Move the plant with the inputs held, or with linear controls whose mean is recorded."""
        run, seconds = self.run, self.run.clock.seconds(after - now)
        self.acting, ramp = run.plant.name, run.ramp
        if ramp is not None:
            self.known = self.known.copy()
            self.known[self._controls] = ramp.controls(self.t + seconds / 2)
        self.u, self.p = self.known + run.disturbances.total, run.parameters.at(self.t)
        self.record.input(self.u)
        moving = self.u if ramp is None else ramp.inputs(self.u, self.t, seconds)
        self.x = run.motion.advance(self.x, moving, self.p, self.t, seconds)
        if run.estimator is not None and run.motion.status == RunStatus.COMPLETED:
            self.acting = "the estimator"
            run.estimator.predict(self.t, self.known.copy(), seconds)
        return after

    def _keep(self) -> None:
        """Record state and estimate."""
        estimator = self.run.estimator
        if estimator is None:
            self.record.state(self.t, self.x)
            return
        P = getattr(estimator, "P", None)
        deviation = None if P is None else np.sqrt(np.maximum(np.diagonal(P), 0.0))
        self.record.state(self.t, self.x, np.array(estimator.x, dtype=np.float64), deviation)

    def _made(self, status: RunStatus, message: str) -> Callable[[], SimulationResult]:
        """What makes the result; all that may change with the next run is asked now."""
        result = self._result(status, message)
        return lambda: result

    def _result(self, status: RunStatus, message: str) -> SimulationResult:
        if not len(self.record):
            self.record.state(self.t, self.x)  # the estimator may be what failed
        return self.record.finish(status, message, self.execution)

    def _blame(self, who: str) -> None:
        self.acting = who
