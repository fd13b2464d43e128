"""simulate: plant, controllers, sensors, estimator and disturbances in closed loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen import check_shape
from ..systems import System
from ._clock import Clock, Schedule, check_times, schedule
from ._disturbances import Kick, input_positions
from ._record import Recorder
from ._result import SimulationResult
from ._sensor import Sensor


class SimulationError(RuntimeError):
    """A controller or estimator raised in the loop.

    Attributes
    ----------
    result : SimulationResult
        The run up to then.
    """

    result: SimulationResult


def simulate(
    plant: System,
    controller: Any = None,
    *,
    x0: Any,
    seconds: float,
    reference: Any = None,
    dt: float | None = None,
    sensors: Sequence[Sensor] = (),
    estimator: Any = None,
    disturbances: Sequence[Any] = (),
    p: Any = None,
    saturate: bool = True,
    method: str = "rk4",
    max_step: float = 0.01,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> SimulationResult:
    """Simulate a closed loop; everything in it runs at its own rate.

    All periods, offsets and delays are whole multiples of one integer tick, so that nothing drifts.
    At a time when several things are due, the order is: kicks, deliveries of sensors, estimator,
    controllers from the outer to the inner, disturbances. Inputs are held in between.

    Parameters
    ----------
    plant : System
    controller : callable, optional
        ``controller(t, x, reference) → controls`` with ``dt``, and if it likes ``offset``, ``delay``
        (from call to effect), ``reset()`` and ``info``. A `Cascade` runs several in a chain. Without
        one the controls stay nominal.
    x0 : array_like, shape (nq,)
    seconds : float
        Simulated time.
    reference : optional
        Handed to the controller: a constant state, a TrimPoint, or a Trajectory.
    dt : float, optional
        Period in s of a controller that has none of its own; of the record without a controller.
    sensors : sequence of Sensor
        With an estimator. A single sensor that measures the whole state may go without.
    estimator : optional
        ``predict(u, dt)``, ``update(sensor, y)``, ``x``; the controller then gets its ``x``.
    disturbances : sequence
        `HeldNoise`, `WhiteNoise`, `InputSignal`, `Kick`.
    p : array_like, shape (n_parameters,), optional
        The plant's parameters; nominal if left out.
    saturate : bool
        Whether controls are clipped to the plant's bounds.
    method : str
        Integrator of the plant.
    max_step : float
        Longest integration step in s.
    seed : int
        Seed; every source of randomness has its own stream.
    progress : callable, optional
        Called with the fraction done, about a hundred times.

    Returns
    -------
    SimulationResult
        Also when the state diverges or the run is interrupted: see its ``status``.

    Raises
    ------
    SimulationError
        If a controller or estimator raises; its ``result`` is the run up to then.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input, System
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])), inputs=[Input("torque", "N m")])
    >>> damper = lambda t, x, reference: [-2.0 * x[2]]
    >>> run = simulate(pendulum, damper, x0=[1.0, 0.0, 1.0], seconds=20, dt=0.1)
    >>> bool(abs(run.block("rate")[-1, 0]) < 1e-3)
    True
    """
    loop = _Loop(
        plant, controller, x0, seconds, reference, dt, sensors, estimator, disturbances, p, saturate,
        method, max_step, seed,
    )  # fmt: skip
    return loop.run(progress)


class Cascade:
    """Controllers in a chain: what one returns is the reference of the next.

    Parameters
    ----------
    *controllers : callable
        From the outer (slow) to the inner (fast); only the last one returns plant inputs.

    Examples
    --------
    >>> outer = lambda t, x, reference: reference
    >>> len(Cascade(outer, outer).controllers)
    2
    """

    def __init__(self, *controllers: Any) -> None:
        if len(controllers) < 2:
            raise ValueError("a cascade needs at least two controllers")
        self.controllers = controllers

    def reset(self) -> None:
        """Reset every controller."""
        for controller in self.controllers:
            getattr(controller, "reset", lambda: None)()


class _Timed:
    """A plain callable with a period."""

    def __init__(self, call: Callable[..., Any], dt: float | None) -> None:
        if dt is None:
            raise ValueError("the controller has no dt: give simulate(..., dt=period in s)")
        self.call, self.dt = call, dt

    def __call__(self, t: float, x: np.ndarray, reference: Any) -> Any:
        return self.call(t, x, reference)


class _Stage:
    """One controller of the chain: its schedule, and results on their way to take effect."""

    def __init__(self, controller: Any, clock: Clock, name: str) -> None:
        self.controller = controller
        self.schedule = schedule(clock, controller, name)
        self.delay = clock.ticks(f"delay of {name}", getattr(controller, "delay", 0.0))
        self.pending: list[tuple[int, Any]] = []
        self.output: Any = None

    def deliver(self, now: int) -> bool:
        arrived = False
        while self.pending and self.pending[0][0] <= now:
            self.output = self.pending.pop(0)[1]
            arrived = True
        return arrived


class _Loop:
    """State of a run."""

    def __init__(
        self, plant, controller, x0, seconds, reference, dt, sensors, estimator, disturbances, p,
        saturate, method, max_step, seed,
    ) -> None:  # fmt: skip
        if not (np.isfinite(seconds) and seconds > 0):
            raise ValueError(f"seconds must be positive, got {seconds}")
        if not (np.isfinite(max_step) and max_step > 0):
            raise ValueError(f"max_step must be positive, got {max_step}")
        self.plant, self.reference, self.estimator = plant, reference, estimator
        self.saturate, self.method, self.max_step = saturate, method, max_step
        self.x = plant.state.normalize(check_shape("x0", x0, (plant.state.nq,)))
        self.p = (
            plant.nominal_parameters if p is None else check_shape("p", p, (plant.n_parameters,))
        )
        chain = _chain(controller, dt)
        kicks = [entry for entry in disturbances if isinstance(entry, Kick)]
        self.sources = [entry for entry in disturbances if not isinstance(entry, Kick)]
        self._check_sensors(sensors, estimator)
        self.clock = self._make_clock(chain, sensors, kicks, dt, seconds)
        self.stages = [_Stage(entry, self.clock, _label(entry)) for entry in chain]
        self.sensors = [entry.bind(plant) for entry in sensors]
        self.sensor_schedules = [schedule(self.clock, s, f"sensor {s.name!r}") for s in sensors]
        self.source_schedules = [schedule(self.clock, s, type(s).__name__) for s in self.sources]
        self.record_schedule = Schedule(self.clock.ticks("dt", dt), 0) if not chain and dt else None
        self.kicks = sorted(
            (self.clock.ticks("time of a kick", kick.time), i, kick.tangent(plant))
            for i, kick in enumerate(kicks)
        )
        self.end = max(1, self.clock.ticks("seconds", seconds))
        streams = np.random.default_rng(seed).spawn(len(self.sensors) + len(self.sources))
        self.sensor_rngs = streams[: len(self.sensors)]
        self.source_rngs = streams[len(self.sensors) :]
        self.u = plant.nominal_input.copy()
        self.controls = plant.input_index("control")
        self.bounds = tuple(bound[self.controls] for bound in plant.input_bounds)
        self.deliveries: list[tuple[int, int, int, np.ndarray, float]] = []
        self.measured: np.ndarray | None = None
        self.predicted_until = 0
        self.record = Recorder(plant, reference, estimator is not None, [s.name for s in sensors])

    # -- set-up -----------------------------------------------------------------------------------

    def _check_sensors(self, sensors: Sequence[Sensor], estimator: Any) -> None:
        names = [sensor.name for sensor in sensors]
        if len(set(names)) != len(names):
            raise ValueError(f"two sensors have the same name: {', '.join(names)}")
        if sensors and estimator is None:
            bound = sensors[0].bind(self.plant)
            if len(sensors) > 1 or bound.group != self.plant.state:
                raise ValueError(
                    "sensors that do not measure the whole state need an estimator: "
                    "simulate(..., estimator=...)"
                )
        if estimator is not None and not sensors:
            raise ValueError("an estimator needs sensors: simulate(..., sensors=[Sensor(...)])")

    def _make_clock(self, chain, sensors, kicks, dt, seconds) -> Clock:
        times = [] if dt is None else [dt]
        for entry in chain:
            times += check_times(_label(entry), entry)
        for sensor in sensors:
            times += check_times(f"sensor {sensor.name!r}", sensor)
        for source in self.sources:
            times += check_times(type(source).__name__, source)
        times += [kick.time for kick in kicks]
        if self.plant.is_discrete:
            times.append(self.plant.dt)
        elif not times:
            times.append(min(self.max_step, seconds))
        clock = Clock.dividing([*times, seconds])
        if self.plant.is_discrete:
            sample = clock.ticks("dt of the plant", self.plant.dt)
            for value in [*times, seconds]:
                if clock.ticks("a time", value) % sample:
                    raise ValueError(
                        f"{self.plant.name} moves in samples of {self.plant.dt:g} s, "
                        f"{value:g} s is no multiple"
                    )
        return clock

    # -- the run ----------------------------------------------------------------------------------

    def run(self, progress: Callable[[float], None] | None) -> SimulationResult:
        for stage in self.stages:
            getattr(stage.controller, "reset", lambda: None)()
        now, shown = 0, -1
        status, message = "completed", ""
        try:
            while True:
                self._events(now)
                self.record.state(self.clock.seconds(now), self.x, self._estimate())
                if now >= self.end:
                    break
                after = self._next(now)
                self._advance(now, after)
                if not np.isfinite(self.x).all():
                    status = "diverged"
                    message = f"the state is not finite after t = {self.clock.seconds(now):g} s"
                    self.record.drop_last_input()
                    break
                now = after
                if progress is not None and 100 * now // self.end > shown:
                    shown = 100 * now // self.end
                    progress(now / self.end)
        except KeyboardInterrupt:
            status, message = "interrupted", f"stopped at t = {self.clock.seconds(now):g} s"
        except _CallError as error:
            failure = SimulationError(
                f"{error.who} raised at t = {self.clock.seconds(now):g} s: {error.__cause__}"
            )
            failure.result = self.record.finish("interrupted", str(failure))
            raise failure from error.__cause__
        return self.record.finish(status, message)

    def _events(self, now: int) -> None:
        t = self.clock.seconds(now)
        while self.kicks and self.kicks[0][0] <= now:
            self.x = self.plant.state.plus(self.x, self.kicks.pop(0)[2])
        self._sense(now, t)
        for i, stage in enumerate(self.stages):
            if stage.schedule.advance(now):
                goal = self.reference if i == 0 else self.stages[i - 1].output
                if i == 0 or goal is not None:
                    self._call(stage, now, t, goal, last=i == len(self.stages) - 1)
            if stage.deliver(now) and i == len(self.stages) - 1:
                self.u[self.controls] = stage.output
        for source, due, rng in zip(
            self.sources, self.source_schedules, self.source_rngs, strict=True
        ):
            if due.advance(now):
                values = source.sample(t, rng)
                where = input_positions(self.plant, values, type(source).__name__)
                self.u[where] = [float(value) for value in values.values()]
        if self.record_schedule is not None:
            self.record_schedule.advance(now)

    def _sense(self, now: int, t: float) -> None:
        for i, (sensor, due) in enumerate(zip(self.sensors, self.sensor_schedules, strict=True)):
            if due.advance(now):
                y = sensor.measure(t, self.x, self.u, self.p, self.sensor_rngs[i])
                if y is not None:
                    late = self.clock.ticks("delay of a sensor", sensor.sensor.delay)
                    self.deliveries.append((now + late, now, i, y, t))
                    self.deliveries.sort(key=lambda entry: entry[:3])
        while self.deliveries and self.deliveries[0][0] <= now:
            _, _, i, y, taken = self.deliveries.pop(0)
            name = self.sensors[i].sensor.name
            self.record.measurement(name, taken, y)
            if self.estimator is None:
                self.measured = y
            else:
                self._guard("the estimator", lambda: self._update(now, name, y))

    def _update(self, now: int, name: str, y: np.ndarray) -> None:
        self._predict(now)
        self.estimator.update(name, y)

    def _predict(self, now: int) -> None:
        if now > self.predicted_until:
            gap = self.clock.seconds(now) - self.clock.seconds(self.predicted_until)
            self.estimator.predict(self.record.last_input(self.u), gap)
            self.predicted_until = now

    def _estimate(self) -> np.ndarray | None:
        return None if self.estimator is None else np.asarray(self.estimator.x)

    def _call(self, stage: _Stage, now: int, t: float, goal: Any, *, last: bool) -> None:
        x = self.x if self.measured is None else self.measured
        if self.estimator is not None:
            self._guard("the estimator", lambda: self._predict(now))
            x = np.asarray(self.estimator.x)
        label = _label(stage.controller)
        started = time.perf_counter()
        value = self._guard(label, lambda: stage.controller(t, x.copy(), goal))
        elapsed = time.perf_counter() - started
        if last:
            value = check_shape(
                f"the result of {label}", value, (len(self.controls),), finite=False
            )
            if not np.isfinite(value).all():
                raise _CallError(label) from ValueError(f"it returned {value}")
            self.record.call(t, value, elapsed, getattr(stage.controller, "info", None))
            value = np.clip(value, *self.bounds) if self.saturate else value.copy()
        stage.pending.append((now + stage.delay, value))

    def _guard(self, who: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (KeyboardInterrupt, _CallError):
            raise
        except Exception as error:
            raise _CallError(who) from error

    def _next(self, now: int) -> int:
        due = [self.end]
        due += [stage.schedule.due for stage in self.stages]
        due += [stage.pending[0][0] for stage in self.stages if stage.pending]
        due += [entry.due for entry in (*self.sensor_schedules, *self.source_schedules)]
        due += [self.deliveries[0][0]] if self.deliveries else []
        due += [self.kicks[0][0]] if self.kicks else []
        due += [self.record_schedule.due] if self.record_schedule else []
        return min(tick for tick in due if tick > now)

    def _advance(self, now: int, after: int) -> None:
        t, dt = self.clock.seconds(now), self.clock.seconds(after - now)
        if self.estimator is not None and self.predicted_until < now:
            self._guard("the estimator", lambda: self._predict(now))
        self.record.input(self.u)
        if self.plant.is_discrete:
            step = self.plant.step()
            for k in range(round(dt / self.plant.dt)):
                self.x = step(t + k * self.plant.dt, self.x, self.u, self.p, self.plant.dt)
        else:
            substeps = max(1, int(np.ceil(dt / self.max_step - 1e-9)))
            step = self.plant.step(self.method, substeps)
            self.x = step(t, self.x, self.u, self.p, dt)


class _CallError(Exception):
    """Something in the loop raised; the cause tells what."""

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self.who = who


def _chain(controller: Any, dt: float | None) -> list[Any]:
    if controller is None:
        return []
    entries = controller.controllers if isinstance(controller, Cascade) else [controller]
    return [entry if getattr(entry, "dt", None) else _Timed(entry, dt) for entry in entries]


def _label(controller: Any) -> str:
    inner = controller.call if isinstance(controller, _Timed) else controller
    return getattr(inner, "__name__", type(inner).__name__)
