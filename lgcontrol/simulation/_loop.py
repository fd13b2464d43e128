"""The closed loop in time: events, motion, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..codegen import check_shape
from ..integrators import Method
from ..systems import System
from ..systems._system import not_a_system
from ._agenda import CONTROL, DELIVER, MEASURE, Agenda
from ._clock import Timing, check_period, check_times
from ._controllers import Chain, check_model, make_stages
from ._motion import Motion
from ._random import check_seed
from ._record import Recorder, reference_of
from ._result import SimulationResult
from ._sensor import BoundSensor, Sensor
from ._setup import bind_sensors, choose_feedback, make_clock, start_state, warn_beyond_limits
from ._sources import Disturbances

# States beyond have nothing to do with what was to be simulated; doubles have no digits left there.
LARGEST = 1e15


class SimulationError(RuntimeError):
    """A controller, an estimator or a disturbance failed in the loop.

    Attributes
    ----------
    result : SimulationResult
        The run up to then.
    """

    result: SimulationResult


class Loop:
    """A run: what takes part in it and where it stands; see `simulate` for the arguments."""

    def __init__(
        self,
        plant: System,
        controller: Any,
        *,
        x0: Any,
        seconds: float,
        reference: Any,
        dt: float | None,
        record_dt: float | None,
        sensors: Sequence[Sensor],
        estimator: Any,
        feedback: str | None,
        disturbances: Sequence[Any],
        p: Any,
        saturate: bool,
        method: str | Method,
        max_step: float,
        seed: int,
    ) -> None:
        if not isinstance(plant, System):
            raise TypeError(not_a_system("plant", plant))
        check_period("seconds", seconds)
        check_period("max_step", max_step)
        seed = check_seed(seed)
        self.plant, self.reference, self.estimator = plant, reference, estimator
        self.x = start_state(plant, x0)
        p = plant.nominal_parameters if p is None else check_shape("p", p, (plant.n_parameters,))
        self.p = p
        stages = make_stages(controller, dt)
        if stages and estimator is None:
            check_model(plant, stages[-1].controller)
        self.disturbances = Disturbances(plant, disturbances, seed)
        self.sensors = bind_sensors(sensors, plant, seed)
        self.feedback = choose_feedback(feedback, plant, bool(stages), self.sensors, estimator)
        if not stages and record_dt is None:
            record_dt = dt or (plant.dt if plant.is_discrete else max_step)
        times = [("seconds", float(seconds)), *self.disturbances.times()]
        times += [time for stage in stages for time in stage.times()]
        times += [t for s in sensors for t in check_times(f"sensor {s.name!r}", s)]
        if record_dt is not None:
            times.append(("record_dt", check_period("record_dt", record_dt)))
        self.clock = make_clock(plant, times)
        self.end = self.clock.ticks("seconds", seconds)
        self.record_period = self.clock.ticks("record_dt", record_dt) if record_dt else 0
        self.max_step = float(max_step)
        self.motion = Motion(plant, self.clock, self.end, p, method, max_step)
        self.acting, self.t = "the set-up", 0.0  # who to blame when something raises, and when
        self.known = plant.nominal_input.copy()  # inputs without disturbances
        self.u = self.known
        self.measured = self.x  # until the first measurement, the start is what is known
        controls = plant.input_index("control")
        bounds = tuple(bound[controls] for bound in plant.input_bounds) if saturate else None

        def apply(values: np.ndarray) -> None:
            self.known = self.known.copy()
            self.known[controls] = values if bounds is None else np.clip(values, *bounds)

        self.chain = Chain(stages, reference, len(controls), self._seen, apply, self._blame)
        self.record = Recorder(plant, {s.sensor.name: s.group for s in self.sensors})
        self.settings = {
            "seed": seed,
            "method": getattr(method, "name", str(method)),
            "max_step": float(max_step),
            "p": [float(value) for value in p],
            "feedback": self.feedback,
        }
        self.agenda = Agenda()
        self.disturbances.schedule(self.agenda, self.clock, self._blame, self._kick)
        for sensor in self.sensors:
            what = f"sensor {sensor.sensor.name!r}"
            timing = Timing.of(self.clock, what, sensor.sensor)
            measure = partial(self._measure, sensor, what, timing.delay)
            self.agenda.every(timing.period, timing.offset, MEASURE, measure)
        self.chain.schedule(self.agenda, self.clock)
        self.disturbances.warn_of_late_ones(float(seconds))
        warn_beyond_limits(plant, "x0", self.x)
        if reference is not None and not isinstance(reference, FunctionType | MethodType):
            leader = stages[0].controller if stages else None
            times = getattr(reference, "t", np.zeros(1))
            goal = reference_of(plant, leader, reference, np.atleast_1d(times).astype(float))
            if goal is not None:
                warn_beyond_limits(plant, "reference", goal)

    # The run

    def run(self, progress: Callable[[float], None] | None) -> SimulationResult:
        """Run to the end, divergence or an interruption."""
        status, message = "completed", ""
        try:
            message = self._run(progress)
            if message:
                status = "diverged"
        except KeyboardInterrupt:
            status, message = "interrupted", f"stopped at t = {self.t:g} s"
        except Exception as cause:
            message = f"{self.acting} failed at t = {self.t:g} s: {type(cause).__name__}: {cause}"
            error = SimulationError(message)
            error.result = self._finish("failed", message)
            raise error from cause
        return self._finish(status, message)

    def _run(self, progress: Callable[[float], None] | None) -> str:
        """Run to the end; what diverged, if anything did."""
        if self.estimator is not None:
            self._blame("the estimator")
            getattr(self.estimator, "reset", lambda: None)()
        self.chain.begin()
        now, shown = 0, 0
        while True:
            last, self.t = now >= self.end, self.clock.seconds(now)
            self.agenda.run(now, CONTROL if last else None)
            self._keep()
            if last:
                return ""
            now = self._move(now, self.agenda.next(self.end))
            trouble = self._trouble()
            if trouble:
                return trouble
            if self.estimator is not None and not np.isfinite(self.estimator.x).all():
                return f"the estimate is not finite after t = {self.record.last_time:g} s"
            if progress is not None and 100 * now // self.end > shown:
                shown = 100 * now // self.end
                self._blame("progress")
                progress(now / self.end)

    def _trouble(self) -> str:
        """What is wrong with the state, if anything is."""
        after = f"after t = {self.record.last_time:g} s"
        if not np.isfinite(self.x).all():
            return f"the state is not finite {after}"
        if np.abs(self.x).max(initial=0.0) > LARGEST:
            name = self.plant.state.coordinate_names[int(np.abs(self.x).argmax())]
            return f"{name} is beyond {LARGEST:g} {after}"
        if self.motion.fails:
            return (
                f"{self.plant.name} moves too fast for steps of {self.shortest_step:.2g} s "
                f"{after}: it runs away, or has modes to leave out of the plant (stiff springs, "
                f"short lags, dry friction on small inertias); else give a shorter max_step"
            )
        return ""

    @property
    def shortest_step(self) -> float:
        """Shortest integration steps of the run so far, in s."""
        return self.max_step / self.motion.finer

    def _move(self, now: int, target: int) -> int:
        """Move the plant towards the next event, at most to the next time to record."""
        self._blame(self.plant.name)
        self.u = self.known + self.disturbances.total
        period = self.record_period
        if period and now % period == 0 and self.estimator is None:
            count = min((target - now) // period, self.motion.at_once(period))
            if count > 1:
                return self._move_far(now, period, count)
        if period:
            target = min(target, now - now % period + period)
        self.record.input(self.u)
        self.x = self.motion.advance(self.x, self.u, now, target)
        if self.estimator is not None:
            self._blame("the estimator")
            self.estimator.predict(self.known.copy(), self.clock.seconds(target - now))
        return target

    def _move_far(self, now: int, period: int, count: int) -> int:
        """Several recorded intervals in one call; the last state is left to the caller."""
        states = self.motion.states(self.x, self.u, now, period, count)
        if self.motion.fails and np.isfinite(states).all():
            count = 1  # what follows is not what happens
        for k, x in enumerate(states, start=1):
            self.record.input(self.u)
            self.x = x
            if k == count or not np.isfinite(x).all():
                break
            self.record.state(self.clock.seconds(now + k * period), x)
        return now + count * period

    def _keep(self) -> None:
        """Record state and estimate."""
        estimator = self.estimator
        if estimator is None:
            self.record.state(self.t, self.x)
            return
        P = getattr(estimator, "P", None)
        deviation = None if P is None else np.sqrt(np.maximum(np.diagonal(P), 0.0))
        self.record.state(self.t, self.x, np.array(estimator.x, dtype=np.float64), deviation)

    def _finish(self, status: str, message: str) -> SimulationResult:
        if not len(self.record):
            self.estimator = None  # it may be what failed
            self._keep()
        logs = {stage.name: stage.record.finish() for stage in self.chain.stages}
        self.settings["shortest_step"] = self.shortest_step
        leader = self.chain.stages[0].controller if self.chain.stages else None
        return self.record.finish(self.reference, logs, self.settings, status, message, leader)

    # Events

    def _blame(self, who: str) -> None:
        self.acting = who

    def _seen(self) -> np.ndarray:
        """What the controllers know of the state."""
        if self.estimator is not None and self.feedback == "estimate":
            return np.array(self.estimator.x, dtype=np.float64)
        return (self.measured if self.feedback == "measurement" else self.x).copy()

    def _kick(self, change: np.ndarray) -> None:
        self.x = self.plant.state.plus(self.x, change)

    def _measure(self, sensor: BoundSensor, what: str, delay: int, now: int) -> None:
        self._blame(what)
        y = sensor.measure(self.t, self.x, self.u, self.p)
        if y is not None:
            deliver = partial(self._deliver, sensor.sensor.name, self.t, y)
            self.agenda.at(now + delay, DELIVER, deliver)

    def _deliver(self, name: str, t: float, y: np.ndarray, now: int) -> None:
        self.record.measurement(name, t, y)
        self.measured = y
        if self.estimator is not None:
            self._blame("the estimator")
            self.estimator.update(name, y.copy())
