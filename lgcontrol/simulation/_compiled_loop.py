"""CompiledLoop: a run carried out by the loop in C, which asks for what only Python knows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NoReturn

import numpy as np

from ..codegen import ModelFunction
from ..codegen._internal import MachineCall, address_of, check_interrupt, was_interrupted
from ..integrators._internal import error_matrix
from ._compiled_memory import LoopFrame, LoopMemory, kept_loops
from ._compiled_parts import CompiledFilter, FunctionLaw, KernelLaw
from ._compiled_record import CompiledRecord
from ._compiled_table import ASKS, SensorStruct, SourceStruct
from ._contract import RunStatus
from ._controllers import ControlStage, own_offer
from ._driver import Driver, find_driver
from ._loop import RunLoop
from ._motion import MOTION_SHARE, Adaptive, EqualSteps
from ._result import SimulationResult
from ._run import FEEDBACKS, SimulationSetup
from ._scaled_plant import Late

NEVER = 2**60  # ticks: no loop is as long
BUDGET = 0.05  # s, of one call of the loop: Ctrl-C waits for it
MOST_NOISE = 1024  # values of noise that are drawn at once
FIRST_ROOM = 4096  # rows of a record that there is memory for at first
MOST_NUMBER = 2**53  # whole numbers that doubles hold
STATUSES = 16
# Methods of controllers that tell about the states of a run.
TELLS = "reference_states", "tracked_errors", "task_errors", "bounded_quantities", "obstacles"
# What is asked for that calls nobody's code: the controller stays as it is.
QUIET = frozenset({"kick", "noise", "switch", "more", "look", "told"})
SENSED, CALLED = 7, -1  # places in the sizes of a loop


class CompiledLoop(RunLoop):
    """A run under way in C.

    Parameters
    ----------
    run : SimulationSetup
    driver : Driver
    """

    def __init__(self, run: SimulationSetup, driver: Driver) -> None:
        super().__init__(run)
        self.driver, self._kept = driver, kept_loops(run.plant)
        self._law: FunctionLaw | KernelLaw | None = None
        self._filter: CompiledFilter | None = None
        sizes = self._sizes()
        self._user = id(_unwrapped(run.stages[0])) if run.stages else 0
        frame = self._kept.take(sizes, self._user)
        self._use(LoopFrame(sizes) if frame is None else frame)

    def _sizes(self) -> tuple[Any, ...]:
        """All that memory depends on which is there before the first call."""
        run, motion, end = self.run, self.run.motion, self.run.end
        if isinstance(motion, Adaptive):
            moved: tuple[Any, ...] = motion.h, motion.max_step, motion.start, motion.tolerance
        else:
            assert isinstance(motion, EqualSteps)
            moved = motion.longest_step, motion.solves
        called: tuple[int, ...] = ()
        if run.stages:
            timing = self._calls[0]
            room = max(0, -(-(end - timing.offset) // timing.period))
            called = min(timing.delay, end) // timing.period + 2, min(room + 1, FIRST_ROOM)
        sensed = []
        for sensor, timing in zip(run.sensors, self._samples, strict=True):
            queue = min(timing.delay, end) // timing.period + 2
            room = min(FIRST_ROOM, end // timing.period + 1)
            ends = None if sensor.limits is None else np.array(sensor.limits).tobytes()
            sensed.append((queue, room, sensor.sensor.name, sensor.group, sensor.reading, ends))
        pushes = run.disturbances
        return (
            min(FIRST_ROOM, end + 2), run.bounds is not None, bool(run.parameters.functions),
            motion.function, moved, len(pushes.draws), len(pushes.parts), tuple(sensed),
            run.feedback, run.estimator is not None,
            None if run.ramp is None else run.ramp.period, called,
        )  # fmt: skip

    def _use(self, frame: LoopFrame) -> None:
        """Begin with new memory, or with that of a run before."""
        self._frame, self._loop = frame, frame.loop
        self._sensors, self._sources = frame.sensors, frame.sources
        if frame.is_complete:
            frame.restore()
        else:
            self._set_plant()
            self._set_motion()
            self._set_disturbances()
            for k in range(len(self.run.sensors)):
                self._set_sensor(k)
            self._set_sensors()
            self._set_calls(0)
        self._begin()
        self.record = CompiledRecord(self.run, self._loop, self._sensors)

    def _recorder(self) -> Any:
        """Nothing yet: records stand in the loop's memory."""
        return None

    # What the loop is told before it begins

    def _begin(self) -> None:
        """Times and values of this run."""
        run, loop, tick, pushes = self.run, self._loop, self.run.clock.tick, self.run.disturbances
        loop.set(
            numerator=float(tick.numerator), denominator=float(tick.denominator), end=run.end,
            record_period=run.record_period, next_kick=_tick(pushes.next_kick(-1)),
            next_switch=_tick(pushes.next_switch(-1)),
        )  # fmt: skip
        arrays, nominal = loop.arrays, run.plant.nominal_input
        arrays["p"][:], arrays["u"][:], arrays["known"][:] = self.p, nominal, nominal
        arrays["x"][:] = arrays["measured"][: len(run.start)] = run.start
        self.x, self.u, self.known, self.p = (arrays[key] for key in ("x", "u", "known", "p"))
        pushes.parts, pushes.total = arrays["part_inputs"], arrays["total"]
        parts = [*zip(self._sources, pushes.draws, strict=True)]
        parts += [*zip(self._sensors, self._samples, strict=True)]
        for memory, timing in parts:
            memory.set(period=_tick(timing.period), offset=_tick(timing.offset))
        for memory, timing, sensor in zip(self._sensors, self._samples, run.sensors, strict=True):
            memory.set(delay=_tick(timing.delay), dropout=sensor.sensor.dropout)
        for timing in self._calls:
            loop.set(period=timing.period, offset=timing.offset, delay=timing.delay)

    def _set_plant(self) -> None:
        run, loop, plant = self.run, self._loop, self.run.plant
        nq, nu, controls = plant.state.nq, plant.n_inputs, self._controls
        loop.set(
            nq=nq, nu=nu, nm=len(controls), saturates=run.bounds is not None, pause=NEVER,
            budget=BUDGET, measured_at=np.nan,
        )  # fmt: skip
        loop.zeros(x=(nq,), u=(nu,), known=(nu,), p=(len(self.p),))
        loop.put("controls", controls, np.int64)
        if run.ramp is not None:
            others, m = run.ramp.others, len(controls)
            loop.set(ramps=1, ramp_period=run.ramp.period, others=len(others))
            loop.put("other", others, np.int64)
            loop.zeros(ramp_from=(m,), ramp_to=(m,), moving=(2 * m + len(others) + 2,))
        lower, upper = run.bounds or (np.zeros(len(controls)), np.zeros(len(controls)))
        loop.put("lower", lower)
        loop.put("upper", upper)
        loop.set(varies=bool(run.parameters.functions))
        room = min(FIRST_ROOM, run.end + 2)
        loop.set(row_room=room)
        loop.zeros(row_t=(room,), row_x=(room, nq), row_u=(room, nu), row_z=(room, 0))

    def _set_motion(self) -> None:
        loop, motion = self._loop, self.run.motion
        loop.zeros(stepped=(loop.struct.nq,), error=(1,))
        loop.set(shortest_taken=inf, missed_t=np.nan)
        if isinstance(motion, Adaptive):
            loop.set(
                adaptive=1, h=motion.h, longest_step=motion.max_step, start=motion.start,
                before=motion.control.before, look_at=motion.look_at,
                allowed=MOTION_SHARE * motion.tolerance,
            )  # fmt: skip
        else:
            assert isinstance(motion, EqualSteps)
            loop.set(longest_step=motion.longest_step, solves=motion.solves)
        self._bind_step()

    def _bind_step(self) -> None:
        """Let the loop take steps of the method that the motion has chosen."""
        loop, motion = self._loop, self.run.motion
        steps = self._frame.steps
        made = steps.get(motion.function)
        if made is None:
            found = loop.arrays["stepped"], loop.arrays["error"]
            memory = dict(zip(motion.function.results, found, strict=False))
            memory |= {"x": loop.arrays["x"], "u": self._moving, "p": loop.arrays["p"]}
            memory |= {"t": loop.at("step_t"), "dt": loop.at("step_dt")}
            made = self._bind("step", motion.function, memory, "the plant", motion.calls)
            steps[motion.function] = made
        loop.struct.step.run, loop.struct.step.table = made.run, made.table
        if isinstance(motion, Adaptive):
            loop.set(order=float(motion.order), patience=motion.patience, looks=motion.is_explicit)
            self._bind_look(motion)

    @property
    def _moving(self) -> np.ndarray:
        """Inputs of the plant's steps."""
        arrays = self._loop.arrays
        return arrays["u" if self.run.ramp is None else "moving"]

    def _bind_look(self, motion: Adaptive) -> None:
        """Let the loop see itself, in most cases, that no decay is fast."""
        loop, dim = self._loop, self.run.plant.state.dim
        if "decays" in loop.arrays or not dim:
            loop.struct.looks = loop.struct.looks and bool(dim)
            return
        memory = {"x": loop.arrays["x"], "u": self._moving, "p": loop.arrays["p"]}
        memory |= {"t": loop.at("step_t"), "A": loop.put("decays", np.zeros(dim * dim))}
        calls = motion.calls // motion.patience
        self._bind("decay", error_matrix(motion.plant.problem), memory, "the plant", calls)
        loop.set(dim=dim)

    def _bind(
        self, name: str, function: ModelFunction, memory: Mapping[str, np.ndarray], what: str,
        calls: int, at: LoopMemory | None = None,
    ) -> MachineCall:  # fmt: skip
        """Let a field be a function on memory, for about so many calls."""
        at = self._loop if at is None else at
        made = MachineCall(function, memory, self.driver.interpret, calls * self.run.batch.runs)
        code = getattr(at.struct, name)
        code.run, code.table = made.run, made.table
        self._frame.bound.append(made)
        if not made.is_compiled and what not in self._frame.interpreted:
            self._frame.interpreted.append(what)
        return made

    def _set_disturbances(self) -> None:
        run, loop = self.run, self._loop
        pushes, nu = run.disturbances, run.plant.n_inputs
        sources = (SourceStruct * max(1, len(pushes.draws)))()
        for k in range(len(pushes.draws)):
            memory = LoopMemory(sources[k])
            memory.put("rows", np.zeros((1, nu)))
            self._sources.append(memory)
        self._frame.structs.append(sources)
        loop.zeros(part_inputs=pushes.parts.shape, total=(nu,))
        loop.set(
            source=ctypes.addressof(sources), sources=len(self._sources), parts=len(pushes.parts)
        )

    def _set_sensors(self) -> None:
        loop, run = self._loop, self.run
        most = max([run.plant.state.nq, *(s.group.nq for s in run.sensors)])
        loop.zeros(measured=(most,))
        loop.set(feedback=FEEDBACKS.index(run.feedback), sensors=len(self._sensors))

    def _set_sensor(self, k: int) -> None:
        run = self.run
        if k == 0:
            self._frame.structs.append((SensorStruct * len(run.sensors))())
            self._loop.set(sensor=ctypes.addressof(self._frame.structs[-1]))
        sensor, timing = run.sensors[k], self._samples[k]
        memory = LoopMemory(self._frame.structs[-1][k])
        self._sensors.append(memory)
        ny, dim = sensor.group.nq, sensor.group.dim
        queue, room = self._frame.sizes[SENSED][k][:2]
        memory.set(ny=ny, dim=dim, queue=queue, room=room)
        memory.zeros(
            errors=(0, dim), chances=(0,), error=(dim,), y=(ny,), taken=(queue,), ys=(queue, ny),
            delivered_t=(room,), delivered_y=(room, ny), y_est=(ny,),
        )  # fmt: skip
        for name, size in (
            ("ticks", queue), ("order", queue), ("counts", STATUSES), ("firsts", STATUSES)
        ):  # fmt: skip
            memory.put(name, np.zeros(size, dtype=np.int64), np.int64)
        read = sensor.reading
        if read is None:
            self._frame.in_python.append(f"the sensor {sensor.sensor.name}")
            return
        loop = self._loop
        given = {
            "error": memory.arrays["error"], "t": loop.at("t"), "y": memory.arrays["y"],
            **{name: loop.arrays[name] for name in ("x", "u", "p")},
        }  # fmt: skip
        try:
            count = run.end // timing.period
            self._bind("read", read, given, f"the sensor {sensor.sensor.name}", count, memory)
        except NotImplementedError:
            self._frame.in_python.append(f"the sensor {sensor.sensor.name}")
            return
        memory.set(here=1)
        if sensor.limits is not None:
            memory.set(limited=1)
            memory.put("lower", sensor.limits[0])
            memory.put("upper", sensor.limits[1])

    def _set_estimator(self, found: CompiledFilter | None) -> None:
        estimator, loop = self.run.estimator, self._loop
        if estimator is None:
            loop.zeros(estimate=self.x.shape)
            return
        loop.set(estimator=2)
        loop.put("estimate", np.array(estimator.x, dtype=np.float64))
        if found is None:
            self._frame.in_python.append("the estimator")
            return
        z, _, _ = found.state()
        rows = loop.struct.row_room
        loop.zeros(
            z=z.shape, z_next=z.shape, est_u=self.u.shape, est_said=(1,), row_z=(rows, z.size)
        )
        for name in ("predicted", "predicted_first"):
            loop.put(name, np.zeros(STATUSES, dtype=np.int64), np.int64)
        shared = {"z": loop.arrays["z"], "z_next": loop.arrays["z_next"], "p": found.p.copy()}
        predict = {
            "t": loop.at("est_t"), "dt": loop.at("est_dt"), "u": loop.arrays["est_u"],
            "q": found.q.copy(), "status": loop.arrays["est_said"],
        }  # fmt: skip
        try:
            self._bind("predict", found.predict, shared | predict, "the estimator", self._intervals)
            for sensor, memory in zip(self.run.sensors, self._sensors, strict=True):
                name = sensor.sensor.name
                update = found.updates.get(name)
                if update is None:  # which raises when it is delivered
                    continue
                own = {
                    "t": loop.at("est_t"), "y": memory.arrays["y_est"],
                    "r": np.array([found.scales[name]]),
                }  # fmt: skip
                count = self.run.end // memory.struct.period
                made = self._bind("correct", update, shared | own, "the estimator", count, memory)
                memory.put("said", made.memory["said"])
                memory.set(says=made.memory["said"].size, updates=1)
        except NotImplementedError:
            self._frame.in_python.append("the estimator")
            return
        loop.put("estimate", loop.arrays["z"])
        loop.set(
            estimator=1, nz=z.size, est_nq=estimator.x.size, successes=found.successes,
            est_same=found.rounding[0], est_ulps=found.rounding[1], statuses=STATUSES,
        )  # fmt: skip
        self._filter = found

    def _set_stage(self, law: FunctionLaw | KernelLaw | None) -> None:
        loop, run = self._loop, self.run
        m = loop.struct.nm
        loop.put("answer", np.zeros(m))
        if not run.stages:
            return
        queue, room = self._frame.sizes[CALLED]
        loop.set(staged=1, effects=queue, call_room=room)
        loop.put("effect_ticks", np.zeros(queue), np.int64)
        loop.put("effect_answers", np.zeros((queue, m)))
        try:
            if isinstance(law, FunctionLaw):
                self._set_function_law(law)
            elif law is not None:
                self._set_kernel_law(law)
        except NotImplementedError:
            law = None
        if law is None:
            self._frame.in_python.append(run.stages[0].name)
        self._law = law
        self._set_calls(room)

    def _set_calls(self, room: int) -> None:
        """Memory for the record of so many calls."""
        loop = self._loop
        loop.zeros(
            call_t=(room,), call_elapsed=(room,), call_age=(room,),
            call_answer=(room, loop.struct.nm), call_told=(room, loop.struct.told + 1),
        )  # fmt: skip
        loop.put("call_here", np.zeros(room, dtype=np.int64), np.int64)

    def _set_function_law(self, law: FunctionLaw) -> None:
        loop, group, function = self._loop, self.run.plant.state, law.function
        loop.put("law_x", np.zeros(loop.struct.nq))
        memory = {"x": loop.arrays["law_x"], function.results[0]: loop.arrays["answer"]}
        count = self.run.end // loop.struct.period
        made = self._bind("feedback_law", function, memory, self.run.stages[0].name, count)
        names = function.arguments[1:]
        tables = self._frame.tables
        tables.update({name: made.memory[name] for name in names})
        loop.put("table_to", [address_of(array) for array in tables.values()], np.int64)
        loop.put("table_sizes", [array.size for array in tables.values()], np.int64)
        parts = group.unit_parts
        loop.put("unit_from", [part.start for part in parts], np.int64)
        loop.put("unit_to", [part.stop for part in parts], np.int64)
        loop.set(law=1, tables=len(names), units=len(parts), odd=1e-9, law_clips=0)
        if law.bounds is not None:
            loop.put("law_lower", law.bounds[0])
            loop.put("law_upper", law.bounds[1])
            loop.set(law_clips=1)

    def _set_kernel_law(self, law: KernelLaw) -> None:
        loop = self._loop
        loop.put("kernel_arguments", law.arguments, np.int64)
        for name, kind, places in (
            ("watch", "watch_kind", law.watched), ("tell", "tell_kind", law.told)
        ):  # fmt: skip
            loop.put(name, [address for address, _ in places], np.int64)
            loop.put(kind, [is_number for _, is_number in places], np.int64)
        loop.set(
            law=2, kernel=law.entry, kernel_x=law.x, kernel_t=law.t, kernel_u=law.u,
            kernel_odd=law.odd, watched=len(law.watched), told=len(law.told),
        )  # fmt: skip

    @property
    def _intervals(self) -> int:
        """Intervals of the run, about."""
        run = self.run
        periods = [timing.period for timing in (*self._calls, *self._samples)]
        periods += [timing.period for timing in run.disturbances.draws]
        periods += [run.record_period] if run.record_period else []
        return max([run.end // period for period in periods], default=1)

    # The run

    @property
    def execution(self) -> str:
        """What runs where, for people."""
        parts = "compiled"
        if self._frame.in_python:
            parts += f", except for {' and '.join(self._frame.in_python)}, in Python"
        if self._frame.interpreted:
            parts += f"; interpreted: {', '.join(self._frame.interpreted)}"
        return parts

    @property
    def address(self) -> int:
        """Where C finds the loop."""
        return self._loop.address

    def _go(self, progress: Callable[[float], None] | None) -> Generator[None, str, None]:
        run = self.run
        self._set_parts()
        loop = self._loop.struct
        if run.ramp is not None:
            loop.ramp_begin = run.ramp.begin
            arrays = self._loop.arrays
            arrays["ramp_from"][:], arrays["ramp_to"][:] = run.ramp.before, run.ramp.after
        shown, what = 0, ""
        if progress is not None:
            loop.pause = -(-run.end // 100)
        try:
            while True:
                if self._law is not None and what not in QUIET:
                    loop.law_ready = self._law.is_ready() and self._sees_a_state
                what = yield
                self.t = loop.t
                if what not in ("done", "pause"):
                    getattr(self, f"_on_{what}")()
                    if self._ended:
                        return
                    if was_interrupted():  # what happens at this time is recorded first
                        loop.budget = 0.0
                    continue
                if what == "done":
                    return
                check_interrupt()
                if run.batch.stop.is_set():
                    raise KeyboardInterrupt
                if progress is not None and loop.now >= loop.pause:
                    shown = 100 * loop.now // run.end
                    loop.pause = -(-(shown + 1) * run.end // 100)
                    self.acting = "progress"
                    progress(loop.now / run.end)
        finally:
            self._catch_up()

    def _set_parts(self) -> None:
        """Take estimator and controller into the loop, as far as they need no Python."""
        run, self.acting = self.run, "the estimator"
        offer = own_offer(run.estimator, "compiled_filter", "predict", "update")
        found: CompiledFilter | None = offer() if offer is not None else None
        self.acting = run.stages[0].name if run.stages else run.plant.name
        law = run.stages[0].compiled_law(run.plant, run.reference) if run.stages else None
        functions = _functions_of(found), _functions_of(law)
        before = self._frame
        if before.is_complete and before.functions != functions:
            found_frame = self._kept.take(before.sizes, self._user, functions)
            self._use(found_frame or LoopFrame(before.sizes))
            self._kept.give(before, before.user)
        if self._frame.is_complete:
            self._filter, self._law = found, law
        else:
            self.acting = "the estimator"
            self._set_estimator(found)
            self.acting = run.stages[0].name if run.stages else run.plant.name
            self._set_stage(law)
            self._frame.keep(functions)
        self.record.law, self.record.filter = self._law, self._filter
        if self._filter is not None:
            self._load_filter()
        for k in range(len(self._sources)):
            if run.disturbances.is_noise(k):
                self._draw(k, int(self._sources[k].struct.offset))

    def _result(self, status: RunStatus, message: str) -> SimulationResult:
        """The result; the next run like this one begins with the memory of it."""
        result = super()._result(status, message)
        if self._frame.is_complete and status is not RunStatus.FAILED:
            self._kept.give(self._frame, self._user)
        return result

    def _made(self, status: RunStatus, message: str) -> Callable[[], SimulationResult]:
        """The result is made later where all that tells about it stays as it is."""
        is_known = self._frame.is_complete and len(self.record) > 0
        if not (is_known and all(map(_tells_the_same, self.run.stages))):
            return super()._made(status, message)
        later = self.record.taken(status, message, self.execution)
        self._kept.give(self._frame, self._user)
        return later

    @property
    def _sees_a_state(self) -> bool:
        """Whether what the controllers see has the size of the plant's state."""
        size = self._loop.arrays["estimate"].size
        return self.run.feedback != "estimate" or self._filter is not None or size == self.x.size

    _ended = False

    def _catch_up(self) -> None:
        """Let plant's motion, law and filter know what the loop did."""
        loop, motion = self._loop.struct, self.run.motion
        self.t, self.measured_at = loop.t, loop.measured_at
        motion.shortest, motion.longest = loop.shortest_taken, loop.longest_taken
        motion.steps, motion.rejected = loop.taken, loop.rejected
        self._unload_law()
        self._unload_filter()

    def _unload_law(self) -> None:
        """Let the controller know of its last call, if the loop made it."""
        arrays, last = self._loop.arrays, self._loop.struct.calls - 1
        if self._law is None or last < 0 or last in self.record.infos:
            return
        u, told = arrays["call_answer"][last].copy(), arrays["call_told"][last]
        self._law.took(float(arrays["call_t"][last]), u, told, float(arrays["call_elapsed"][last]))

    def _load_filter(self) -> None:
        loop, found = self._loop.struct, self._filter
        assert found is not None
        z, t, usual = found.state()
        self._loop.arrays["z"][:] = z
        loop.est_has_t, loop.est_usual = t is not None, usual
        loop.est_t = 0.0 if t is None else t

    def _unload_filter(self) -> None:
        loop, found = self._loop.struct, self._filter
        if found is None:
            return
        arrays = self._loop.arrays
        predicted = _in_order(arrays["predicted"], arrays["predicted_first"])
        corrected = {}
        for k, (sensor, memory) in enumerate(zip(self.run.sensors, self._sensors, strict=True)):
            counts = _in_order(memory.arrays["counts"], memory.arrays["firsts"])
            if counts:
                struct, said = memory.struct, memory.arrays["said"]
                last = said if k == loop.last_sensor else None
                corrected[sensor.sensor.name] = counts, struct.squares, struct.used, last
                struct.squares, struct.used = 0.0, 0
        loop.order_of_statuses = 0
        t = loop.est_t if loop.est_has_t else None
        found.took(arrays["z"].copy(), t, loop.est_usual, predicted, corrected)

    # What the loop asks for

    def _on_kick(self) -> None:
        now = self._loop.struct.now
        pushes = self.run.disturbances
        for change in pushes.kicks(now):
            self.x[:] = self.run.plant.state.plus(self.x.copy(), change)
        self._loop.struct.next_kick = _tick(pushes.next_kick(now))

    def _on_measure(self) -> None:
        k = self._loop.struct.asked
        sensor, memory = self.run.sensors[k], self._sensors[k]
        self.acting = sensor.times.what
        y = sensor.measure(self.t, self.x.copy(), self.u.copy(), self.p.copy())
        memory.struct.lost = y is None
        if y is not None:
            memory.arrays["y"][:] = y

    def _on_noise(self) -> None:
        k = self._loop.struct.asked
        sensor, memory = self.run.sensors[k], self._sensors[k]
        self.acting = sensor.times.what
        left = (self.run.end - self._loop.struct.now) // memory.struct.period + 1
        errors, chances = sensor.draw(min(MOST_NOISE, left))
        memory.put("errors", errors)
        memory.put("chances", chances)
        memory.set(stock=len(errors), next=0)

    def _on_update(self) -> None:
        estimator, k = self.run.estimator, self._loop.struct.asked
        assert estimator is not None
        self.acting = "the estimator"
        self._unload_filter()
        y = self._sensors[k].arrays["y_est"].copy()
        estimator.update(self.run.sensors[k].sensor.name, y)
        self._know_estimate()

    def _on_predict(self) -> None:
        estimator, loop = self.run.estimator, self._loop.struct
        assert estimator is not None
        self.acting = "the estimator"
        self._unload_filter()
        estimator.predict(self.t, self.known.copy(), loop.seconds)
        self._know_estimate()
        if not np.isfinite(estimator.x).all():
            self._ended = True

    def _know_estimate(self) -> None:
        if self._filter is not None:
            self._load_filter()
        else:
            x = np.array(self.run.estimator.x, dtype=np.float64)  # type: ignore[union-attr]
            self._loop.put("estimate", x)

    def _on_keep(self) -> None:
        estimator = self.run.estimator
        P = getattr(estimator, "P", None)
        deviation = None if P is None else np.sqrt(np.maximum(np.diagonal(P), 0.0))
        x = np.array(estimator.x, dtype=np.float64)  # type: ignore[union-attr]
        self.record.estimates.append((x, deviation))

    def _on_lost(self) -> None:
        self._ended = True

    def _on_unknown(self) -> NoReturn:
        self.acting = "the estimator"
        raise ValueError(
            f"its compiled function told the status {self._loop.struct.unknown:g}, expected a "
            f"whole number from 0 to {STATUSES - 1}: make the last value that it returns its status"
        )

    def _on_call(self) -> None:
        self._unload_law()
        self.measured_at = self._loop.struct.measured_at
        if self.run.feedback == "measurement":
            self.measured = self._loop.arrays["measured"][: len(self.x)]
        if self._filter is not None:
            self._unload_filter()
        stage = self.run.stages[0]
        self._call(0, stage, self.run.reference)

    def _on_told(self) -> None:
        assert isinstance(self._law, KernelLaw)
        self.acting = self.run.stages[0].name
        loop, u = self._loop.struct, self._loop.arrays["answer"].copy()
        self.record.tell(self._law.say(self.t, u, loop.elapsed))

    def _on_rows(self) -> None:
        loop, run = self._loop, self.run
        assert isinstance(self._law, FunctionLaw)
        self.acting = run.stages[0].name
        period, now = loop.struct.period, loop.struct.now
        left = -(-(run.end - now) // period)
        ticks = now + period * np.arange(min(MOST_NOISE, max(1, left)))
        times = ticks * float(run.clock.tick.numerator) / float(run.clock.tick.denominator)
        try:
            rows = self._law.rows(times)
        except Exception:  # what is wrong with it shows when the controller is called
            loop.set(law=0)
            return
        arrays = [np.ascontiguousarray(rows[name], dtype=float) for name in self._frame.tables]
        loop.put("table_rows", [address_of(array) for array in arrays], np.int64)
        steps = [array[0].size if len(array) > 1 else 0 for array in arrays]
        loop.put("table_steps", steps, np.int64)
        self._rows = arrays
        loop.set(rows_from=loop.struct.calls, rows_to=loop.struct.calls + len(times))

    def _on_draw(self) -> None:
        k, loop = self._loop.struct.asked, self._loop.struct
        self.acting = self.run.disturbances.label(k)
        self._draw(k, loop.now)

    def _draw(self, k: int, now: int) -> None:
        """The next values of a disturbance that is due at a tick."""
        memory = self._sources[k]
        left = max(0, self.run.end - now) // memory.struct.period + 1
        rows = memory.put("rows", self.run.disturbances.draw(k, self.t, min(MOST_NOISE, left)))
        memory.set(stock=len(rows), next=0)

    def _on_switch(self) -> None:
        pushes, now = self.run.disturbances, self._loop.struct.now
        pushes.switch(now)
        self._loop.struct.next_switch = _tick(pushes.next_switch(now))

    def _on_more(self) -> None:
        loop = self._loop
        if loop.struct.asked >= 0:
            memory = self._sensors[loop.struct.asked]
            memory.struct.room *= 2
            memory.grow("delivered_t", "delivered_y", room=memory.struct.room)
        elif loop.struct.asked == -1:
            loop.struct.call_room *= 2
            names = ("call_t", "call_answer", "call_elapsed", "call_age", "call_told", "call_here")
            loop.grow(*names, room=loop.struct.call_room)
        else:
            loop.struct.row_room *= 2
            loop.grow("row_t", "row_x", "row_u", "row_z", room=loop.struct.row_room)

    def _on_parameters(self) -> None:
        self.acting = self.run.plant.name
        self.p[:] = self.run.parameters.at(self.t)

    def _on_look(self) -> None:
        loop, motion = self._loop.struct, self.run.motion
        assert isinstance(motion, Adaptive)
        self.acting = self.run.plant.name
        motion.steps, before = loop.taken, motion.function
        t = self.t + loop.done
        loop.h = motion.look(t, self.x, self._moving, self.p, loop.h, loop.seconds)
        loop.look_at, loop.patience = motion.look_at, motion.patience
        if motion.function is not before:
            self._bind_step()

    def _on_give_up(self) -> None:
        motion, loop = self.run.motion, self._loop.struct
        assert isinstance(motion, Adaptive)
        motion.start = loop.start
        motion.give_up(self.x, loop.step_dt)
        self._ended = True

    def _on_trouble(self) -> None:
        self.run.motion.check(self.run.plant, self.x)
        self._took_all()

    def _on_missed(self) -> None:
        motion, loop = self.run.motion, self._loop.struct
        assert isinstance(motion, EqualSteps)
        motion.judge(np.array([loop.missed_t]), np.array([loop.missed]), loop.step_dt)
        self._took_all()

    def _took_all(self) -> None:
        """Count the equal steps of an interval, of which the first ones were in vain."""
        loop = self._loop.struct
        if not loop.adaptive:
            loop.shortest_taken = min(loop.shortest_taken, loop.step_dt)
            loop.longest_taken = max(loop.longest_taken, loop.step_dt)
            loop.taken += int(loop.most)
        self._ended = True

    def _on_failed(self) -> NoReturn:
        self.acting = self.run.plant.name
        raise RuntimeError(f"a function of {self.run.plant.name} could not be evaluated")


def _functions_of(part: CompiledFilter | FunctionLaw | KernelLaw | None) -> tuple[Any, ...]:
    """What memory is bound to of a part of the loop, with the constants in it."""
    if isinstance(part, CompiledFilter):
        constants = part.p.tobytes(), part.q.tobytes(), part.successes, part.rounding
        return part.predict, *part.updates.items(), *part.scales.items(), *constants
    if isinstance(part, FunctionLaw):
        ends = None if part.bounds is None else np.array(part.bounds).tobytes()
        return part.function, ends
    if isinstance(part, KernelLaw):
        places = *part.watched, *part.told, len(part.told)
        return part.entry, *part.arguments, part.x, part.t, part.u, part.odd, *places
    return ()


def _tells_the_same(stage: ControlStage) -> bool:
    """Whether a controller tells of a run's states what it tells after another run.

    So do classes with a compiled law, whose parameters are no functions of time.
    """
    return own_offer(_unwrapped(stage), "compiled_law", *TELLS) is not None


def _unwrapped(stage: ControlStage) -> object:
    """The controller itself, whose answers may come late."""
    return stage.law.controller if isinstance(stage.law, Late) else stage.law


def _tick(tick: float) -> int:
    """A tick that the loop can add to others: those after its end are all alike."""
    return NEVER if tick >= NEVER else int(tick)


def _in_order(counts: np.ndarray, firsts: np.ndarray) -> dict[int, int]:
    """Counts of statuses in the order in which they came, which begin anew."""
    found = sorted(counts.nonzero()[0].tolist(), key=firsts.__getitem__)
    made = {status: int(counts[status]) for status in found}
    counts[:] = 0
    return made


def carry_out(
    runs: Sequence[SimulationSetup], progress: Callable[[float], None] | None
) -> list[Callable[[], SimulationResult]]:
    """Carry runs out, those in C by calls for all of them; what makes each result, or raises."""
    loops = [make_loop(run) for run in runs]
    made: dict[int, Callable[[], SimulationResult]] = {}
    waiting = {k: loop.carry_out(progress) for k, loop in enumerate(loops)}

    def go_on(k: int, resume: Callable[[Any], None], given: Any) -> None:
        try:
            resume(given)
            return
        except StopIteration as end:
            made[k] = end.value
        except Exception as error:
            made[k] = partial(raise_again, error)
        del waiting[k]

    try:
        for k, run in [*waiting.items()]:
            go_on(k, run.send, None)
        order, places, asked = list[int](), None, (ctypes.c_int64 * 0)()
        while waiting:
            count = len(waiting)
            if count != len(order):
                order, asked = [*waiting], (ctypes.c_int64 * count)()
                at = [loops[k].address for k in order]  # type: ignore[attr-defined]
                places = (ctypes.c_void_p * count)(*at)
            loops[order[0]].driver.go(places, asked, count)  # type: ignore[attr-defined]
            for k, ask in zip(order, asked, strict=True):
                go_on(k, waiting[k].send, ASKS[ask])
    except KeyboardInterrupt as interrupt:
        for k, run in [*waiting.items()]:
            go_on(k, run.throw, interrupt)
    return [made[k] for k in range(len(runs))]


def raise_again(error: Exception) -> NoReturn:
    """Raise an error that came earlier."""
    raise error


def make_loop(run: SimulationSetup) -> RunLoop:
    """The loop in C where there is one for this run, else that in Python."""
    why, loop = "", None
    tick = run.clock.tick
    if len(run.stages) > 1:
        why = "a cascade"
    elif max((run.end + 1) * tick.numerator, tick.denominator) >= MOST_NUMBER:
        why = f"a clock of {tick} s"
    else:
        driver = find_driver(build=True)
        why = "no machine code"
        if driver is not None:
            try:
                loop = CompiledLoop(run, driver)
            except NotImplementedError as error:
                why = str(error)
    if loop is not None:
        return loop
    return RunLoop(run, why)
