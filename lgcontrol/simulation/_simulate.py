"""simulate: plant, controllers, sensors, estimator and disturbances in closed loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import (
    check_interrupt,
    interrupt_is_answered,
    level_outside,
    was_interrupted,
)
from ..integrators import Method
from ..systems import ReferenceLike, Sensor, System, TrimPoint
from ..systems._internal import Parameters, ParameterValues, check_start, not_a_system
from ._clock import Queue, check_period
from ._contract import ControlLaw, Disturbance, Estimator, RunStatus
from ._controllers import (
    Cascade,
    ControlStage,
    alone_with,
    as_reference,
    check_controls,
    check_model,
    make_stages,
)
from ._disturbances import Disturbances, Kick, Pulse
from ._motion import FIXED_STEP, make_motion
from ._random import check_seed
from ._record import Recorder, states_followed
from ._result import SimulationResult
from ._run import (
    SimulationSetup,
    bind_sensors,
    check_estimator,
    check_step_count,
    choose_feedback,
    early_end,
    fast_losses,
    make_clock,
    warn_beyond_limits,
)
from ._sensing import SimulatedSensor

# Of the motion between events, where none is given.
TOLERANCE = 1e-6
LONG_PERIOD = 5.0  # s, of sensors' periods: longer ones than a run may be rates in Hz


class SimulationError(RuntimeError):
    """A controller, an estimator or a disturbance failed in the loop.

    Attributes
    ----------
    result : SimulationResult
        The run up to then.
    """

    result: SimulationResult


@named_options(own="seconds record_dt max_step tolerance sensors disturbances seed")
def simulate(
    plant: System,
    controller: ControlLaw | Cascade | None = None,
    *,
    x0: ArrayLike | TrimPoint,
    seconds: float,
    reference: ReferenceLike | None = None,
    dt: float | None = None,
    record_dt: float | None = None,
    sensors: Sequence[Sensor] = (),
    estimator: Estimator | None = None,
    feedback: str | None = None,
    disturbances: Sequence[Disturbance | Kick | Pulse] | Disturbance | Kick | Pulse = (),
    p: Parameters | None = None,
    saturate: bool = True,
    tolerance: float | None = None,
    method: str | Method | None = None,
    max_step: float | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> SimulationResult:
    """Simulate a closed loop; everything in it runs at its own rate.

    All periods, offsets and delays are whole multiples of one integer tick, so that nothing drifts.
    What is due at the same time happens in this order: kicks; measurements, with the inputs held
    until then; deliveries of measurements, to the estimator; controllers from the outer to the
    inner; disturbances; record. Inputs are held in between, and the plant moves. At the end nothing
    is commanded any more: N periods make N calls.

    Parameters
    ----------
    plant : System
    controller : callable, optional
        ``controller(t, x, reference) → controls`` with ``dt``, and if it likes more: see
        `ControlLaw`. Before the run its ``reset()`` and ``prepare(t, x, reference)`` are called,
        the second with what the controller will see first, so that no call has to compile or plan
        from nothing. A `Cascade` runs several in a chain. Without one, and until the first answer
        takes effect, the controls are nominal. One that remembers is in one loop at a time.
    x0 : array_like, shape (nq,), or TrimPoint
    seconds : float
        Simulated time.
    reference : optional
        Handed to the controller: a constant state, a TrimPoint, a Trajectory, a function of one
        time (which is asked once about each time). A Trajectory stays where it ends; what
        controllers feed forward from then on holds the plant there.
    dt : float, optional
        Period in s of controllers that have none of their own; without a controller, of the record.
    record_dt : float, optional
        Longest time between recorded states, s. All times at which something happens are recorded
        anyway; without a controller the default is `dt`, `max_step` or 0.01 s (one sample for
        discrete plants).
    sensors : sequence of Sensor or Sensor
    estimator : Estimator, optional
        ``predict(t, u, dt)`` with all inputs as far as they are known (disturbances are nominal)
        after each interval, ``update(sensor, y)`` with the sensor's name at each delivery, the
        estimate ``x`` and, if it likes, the covariance ``P`` and ``reset()``.
    feedback : {"estimate", "measurement", "state"}, optional
        What the controllers see: the estimate (the default with an estimator), the last delivery of
        a single sensor of the whole state (the default with sensors alone; x0 until the first one),
        or the true state.
    disturbances : sequence, or a single one
        `HeldNoise`, `WhiteNoise`, `InputSignal`, `Pulse`, `Kick`, or objects of your own with
        ``dt`` and ``sample(t, rng) → {input: value}``. Those on the same input add up, to its
        nominal value or, on a control, to what the controller says, after saturation.
    p : array_like, shape (n_parameters,), or mapping of str to float or callable, optional
        The plant's parameters: a vector, or values by name, the others nominal. A function of time
        is asked whenever something happens, at least every `record_dt` (0.01 s if left out), and
        held in between.
    saturate : bool
        Whether controls are clipped to the plant's bounds.
    tolerance : float, optional
        Largest error of the motion between events, 1e-6 if left out: relative for coordinates of Rn
        blocks, but not less than this part of their unit, and in m and rad for motions. Steps are
        as long as it allows; each may have a hundredth of it. A run whose steps cannot be made to
        keep it ends as ``UNRESOLVED``.
    method : str or Method, optional
        An integrator, for equal steps no longer than `max_step`, whose errors nothing watches, so
        that a tolerance is refused; a run with a step that does not solve its equations ends as
        ``UNRESOLVED``. Left out, steps keep the tolerance.
    max_step : float, optional
        Longest integration step in s; 0.01 for equal steps, unlimited otherwise. Shorter ones are
        needed for fields that change in time faster than in the state. Of no effect on discrete
        plants.
    seed : int
        Every sensor and disturbance has its own stream: adding one does not change the others.
        The same seed gives the same run bit by bit.
    progress : callable, optional
        Called with the fraction done, at most a hundred times.

    Returns
    -------
    SimulationResult
        Also when the state diverges or the run is interrupted (Ctrl-C): see its ``status``.

    Raises
    ------
    SimulationError
        If a controller, the estimator or a disturbance raises, or a controller returns something
        else than finite controls; its ``result`` is the run up to then.
    RuntimeError
        If a controller or the estimator is in the loop of another simulation.
    TypeError, ValueError, KeyError
        If the arguments do not fit together.

    Warns
    -----
    RuntimeWarning
        If the start or the reference is beyond limits that the plant knows, as those of joints; if
        the start is off the constraints of a closed mechanism, and was put there; if
        a reference ends on its way; if a `Kick` or `Pulse` comes after the end; if a controller was
        to see measurements and never saw one, or the estimator never got one.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input, System
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])), inputs=[Input("torque", "N m")])
    >>> damper = lambda t, x, reference: -2.0 * x[2]
    >>> run = simulate(pendulum, damper, x0=[0.0, 1.0, 1.0], seconds=20, dt=0.1)
    >>> bool(abs(run.block("rate")[-1, 0]) < 1e-3)
    True
    """
    if not isinstance(plant, System):
        raise TypeError(not_a_system("plant", plant))
    seconds = check_period("seconds", seconds)
    max_step = None if max_step is None else check_period("max_step", max_step)
    if tolerance is None:
        tolerance = TOLERANCE
    elif method is not None:
        raise ValueError(
            f"method={method!r} takes equal steps, which keep no tolerance: leave out the method "
            f"to keep tolerance={tolerance!r}, or the tolerance and give max_step=…"
        )
    if not (isinstance(tolerance, float | int) and 1e-13 <= tolerance <= 1e-1):
        raise ValueError(f"tolerance must be from 1e-13 to 0.1, got {tolerance!r}")
    seed = check_seed(seed)
    begin: Any = getattr(x0, "x", x0)
    if np.ndim(begin) > 1 and np.shape(begin)[-1] == plant.state.nq:
        raise ValueError(
            f"x0 has shape {np.shape(begin)}, expected ({plant.state.nq},): a run has one start, "
            "many take [simulate(…, x0=x) for x in starts]; a closed loop that is itself a System "
            "goes through all of them at once by its rollout(starts, dt=…, steps=…)"
        )
    parameters = ParameterValues(plant.parameters, plant.nominal_parameters, p)
    start = check_start(plant, "x0", begin, parameters.at(0.0))
    stages = make_stages(controller, dt)
    if stages and estimator is None:
        check_model(plant, stages[-1])
    pushes = Disturbances(plant, disturbances, seed)
    bound = bind_sensors(sensors, plant, seed)
    feedback = choose_feedback(feedback, plant, bool(stages), bound, estimator is not None)
    check_estimator(estimator, plant, bound, feedback if stages else None)
    if record_dt is not None:
        check_period("record_dt", record_dt)
    elif not stages or parameters.functions:
        record_dt = dt or (plant.dt if plant.is_discrete else max_step or FIXED_STEP)
    times = [("seconds", seconds), *pushes.times()]
    times += [time for part in (*stages, *bound) for time in part.times.named()]
    times += [] if record_dt is None else [("record_dt", record_dt)]
    check_step_count(seconds, times, max_step)
    clock = make_clock(plant, times)
    for sensor in bound:
        if (
            sensor.times.dt > seconds
            and sensor.times.dt >= LONG_PERIOD
            and sensor.times.dt % 1 == 0
        ):
            warnings.warn(
                f"{sensor.times.what} has dt = {sensor.times.dt:g} s, the run takes {seconds:g} s: "
                f"is that a rate in Hz? Then give dt=1/{sensor.times.dt:g}",
                RuntimeWarning,
                stacklevel=level_outside(),
            )
    motion = make_motion(plant, method, float(tolerance), max_step, seconds)
    end = clock.ticks("seconds", seconds)
    pushes.schedule(clock, end)
    controls = plant.input_index("control")
    lower, upper = plant.input_bounds
    goal = as_reference(reference)
    warn_beyond_limits(plant, "x0", start)
    if reference is not None and not isinstance(reference, FunctionType | MethodType):
        nodes = np.atleast_1d(np.asarray(getattr(reference, "t", 0.0), dtype=np.float64))
        states = states_followed(plant, stages, reference, nodes)
        if states is not None:
            warn_beyond_limits(plant, "reference", states)
    until = early_end(reference, seconds)
    if until is not None:
        warnings.warn(
            f"the reference ends at {until:g} s while it moves, the run at {seconds:g} s: in "
            "between it stays at its last state; give a longer one, or a function of time",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    run = SimulationSetup(
        plant=plant,
        start=start,
        motion=motion,
        clock=clock,
        end=end,
        record_period=clock.ticks("record_dt", record_dt) if record_dt else 0,
        stages=stages,
        reference=goal,
        sensors=bound,
        estimator=estimator,
        feedback=feedback,
        disturbances=pushes,
        parameters=parameters,
        bounds=(lower[controls], upper[controls]) if saturate else None,
        settings={
            "seed": seed,
            "method": motion.method,
            "tolerance": None if method is not None or plant.is_discrete else float(tolerance),
            "max_step": max_step,
            "p": parameters.at(0.0).tolist(),
            "feedback": feedback,
            "reference_ends": until,
        },
    )
    users: list[object] = [stage.law for stage in stages]
    if estimator is not None and not any(estimator is law for law in users):  # one may be both
        users.append(estimator)
    with alone_with(users):
        return RunLoop(run).simulate(progress)


class RunLoop:
    """A run under way: where the plant is, what is known of it, what is held and recorded."""

    def __init__(self, run: SimulationSetup) -> None:
        plant = run.plant
        self.run = run
        self.t, self.x, self.p = 0.0, run.start, run.parameters.at(0.0)
        self.acting = "the set-up"  # who to blame when something raises
        self.has_begun = False
        self.known = plant.nominal_input.copy()  # inputs without disturbances
        self.u = self.known
        self.measured, self.measured_at = self.x, np.nan  # the start is what is known at first
        self.answers: list[Any] = [None] * len(run.stages)  # in effect, of each controller
        self.effects: list[Queue[Any]] = [Queue() for _ in run.stages]
        self.deliveries: Queue[tuple[SimulatedSensor, float, np.ndarray]] = Queue()
        self.record = Recorder(run)
        self._controls = plant.input_index("control")
        self._calls = [stage.times.on(run.clock) for stage in run.stages]
        self._samples = [sensor.times.on(run.clock) for sensor in run.sensors]

    def simulate(self, progress: Callable[[float], None] | None) -> SimulationResult:
        """Carry the run out to its end, divergence or an interruption."""
        try:
            self._prepare()
            self.has_begun = True
            self._go(progress)
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
        return self._result(status, message)

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

    def _go(self, progress: Callable[[float], None] | None) -> None:
        """All that happens, in its order."""
        run, now, shown = self.run, 0, 0
        while True:
            self.t = run.clock.seconds(now)
            check_interrupt()
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
                    self.known = self.known.copy()
                    bounds = self.run.bounds
                    self.known[self._controls] = answer if bounds is None else answer.clip(*bounds)

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
        """Move the plant with the inputs held."""
        run, seconds = self.run, self.run.clock.seconds(after - now)
        self.acting = run.plant.name
        self.u, self.p = self.known + run.disturbances.total, run.parameters.at(self.t)
        self.record.input(self.u)
        self.x = run.motion.advance(self.x, self.u, self.p, self.t, seconds)
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

    def _result(self, status: RunStatus, message: str) -> SimulationResult:
        if not len(self.record):
            self.record.state(self.t, self.x)  # the estimator may be what failed
        return self.record.finish(status, message)

    def _blame(self, who: str) -> None:
        self.acting = who
