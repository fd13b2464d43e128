"""Recorder: collects a run and turns it into a SimulationResult."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from ..codegen._internal import level_outside
from ..groups import LieGroup
from ..scene import SceneBody
from ..scene._internal import Scenery, obstacle_bodies
from ..systems import ReferenceLike, System, TrimPoint
from ..systems._internal import is_motion
from ._contract import RunStatus
from ._controllers import ControlStage, reference_states
from ._logs import BoundedQuantity, ControllerLog, Measurements, TaskError
from ._result import SimulationResult, failures
from ._run import SimulationSetup
from ._run_scene import events_of


@dataclass
class SensorRecord:
    """What became of a sensor's measurements."""

    group: LieGroup
    taken: int = 0
    lost: int = 0
    late: int = 0
    delivered: list[tuple[float, np.ndarray]] = field(default_factory=list)

    def finish(self) -> Measurements:
        """Everything as arrays."""
        return Measurements(
            t=np.array([t for t, _ in self.delivered], dtype=np.float64),
            y=np.array([y for _, y in self.delivered]).reshape(-1, self.group.nq),
            group=self.group,
            taken=self.taken,
            lost=self.lost,
            late=self.late,
        )


class ControllerRecord:
    """What a controller answered, and what it says of it."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, Any, dict[str, Any]]] = []

    def call(self, t: float, answer: Any, elapsed: float, info: object, age: float | None) -> None:
        """Keep an answer and the plain values of the controller's info."""
        values = {"call_time": elapsed}
        if age is not None:
            values["measurement_age"] = age
        if info is not None:
            values |= plain_values(info)
        self._calls.append((t, answer, values))

    def finish(self, unstable: str) -> ControllerLog:
        """Everything as arrays, with what the controller knew of its loop."""
        keys = dict.fromkeys(key for _, _, values in self._calls for key in values)
        return ControllerLog(
            t=np.array([t for t, _, _ in self._calls], dtype=np.float64),
            command=as_commands([answer for _, answer, _ in self._calls]),
            info={
                key: as_column([values.get(key) for _, _, values in self._calls]) for key in keys
            },
            unstable=unstable,
        )


class Recorder:
    """Lists that grow during a run."""

    def __init__(self, run: SimulationSetup) -> None:
        self.run = run
        self._rows: list[tuple[float, np.ndarray, np.ndarray | None, np.ndarray | None]] = []
        self._inputs: list[np.ndarray] = []
        self._sensors = {s.sensor.name: SensorRecord(s.group) for s in run.sensors}
        self._controllers = {stage.name: ControllerRecord() for stage in run.stages}

    def __len__(self) -> int:
        """Number of recorded states."""
        return len(self._rows)

    @property
    def last_time(self) -> float:
        """Time of the last recorded state in s."""
        return self._rows[-1][0] if self._rows else 0.0

    @property
    def last_state(self) -> np.ndarray:
        """The last recorded state, shape (nq,)."""
        return self._rows[-1][1]

    def state(
        self,
        t: float,
        x: np.ndarray,
        estimate: np.ndarray | None = None,
        deviation: np.ndarray | None = None,
    ) -> None:
        """Keep a state, and what was thought of it; one step, so that no row is ever half there."""
        self._rows.append((t, x, estimate, deviation))

    def input(self, u: np.ndarray) -> None:
        """Keep the input of the interval that starts."""
        self._inputs.append(u)

    def taken(self, sensor: str, *, lost: bool) -> None:
        """Count a measurement, and those that never come."""
        self._sensors[sensor].taken += 1
        self._sensors[sensor].lost += lost

    def measurement(self, sensor: str, t: float, y: np.ndarray, *, late: bool) -> None:
        """Keep a delivered measurement taken at t; late ones come after the next was taken."""
        self._sensors[sensor].delivered.append((t, y))
        self._sensors[sensor].late += late

    def call(
        self,
        controller: str,
        t: float,
        answer: Any,
        elapsed: float,
        info: object,
        age: float | None,
    ) -> None:
        """Keep a call of a controller: its answer, wall time, info, age of what it saw in s."""
        self._controllers[controller].call(t, answer, elapsed, info, age)

    def finish(self, status: RunStatus, message: str, execution: str) -> SimulationResult:
        """Everything as arrays; the input of an interval that was not finished is left out."""
        count, n = len(self._rows), self.run.plant.n_inputs
        return make_result(
            self.run,
            t=np.array([row[0] for row in self._rows]),
            x=np.array([row[1] for row in self._rows]),
            u=np.array(self._inputs[: count - 1]).reshape(count - 1, n),
            estimate=_rows([row[2] for row in self._rows]),
            estimate_std=_rows([row[3] for row in self._rows]),
            measurements={name: record.finish() for name, record in self._sensors.items()},
            controllers={
                stage.name: self._controllers[stage.name].finish(stage.unstable)
                for stage in self.run.stages
            },
            status=status,
            message=message,
            execution=execution,
        )


def make_result(
    run: SimulationSetup,
    *,
    t: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    controllers: Mapping[str, ControllerLog],
    message: str,
    execution: str,
    **columns: Any,
) -> SimulationResult:
    """The result of a run, from the columns of its record."""
    plant, motion = run.plant, run.motion
    units, roles = plant.memo(("units and roles",), lambda: tuple(
        tuple(getattr(entry, name) for entry in plant.inputs) for name in ("unit", "role")
    ))  # fmt: skip
    followed = states_followed(plant, run.stages, run.reference, t)
    return SimulationResult(
        name=plant.name,
        group=plant.state,
        t=t,
        x=x,
        u=u,
        input_names=plant.input_names,
        input_units=units,
        input_roles=roles,
        input_bounds=np.array(plant.input_bounds).reshape(2, plant.n_inputs),
        reference=followed,
        tracked=tracked_errors(plant, run.stages),
        state_limits=np.array(plant.state_limits) if plant.limits else None,
        tasks=task_errors(plant, run.stages, run.reference, t, x),
        bounds=bounded_quantities(plant, run.stages, t, x, u, followed),
        limited=limited_quantities(plant, t, x, u, run.parameters.at(0.0)),
        controllers=controllers,
        scenery=Scenery(
            plant.look,
            obstacles_kept(plant, run.stages, t),
            events=events_of(run.disturbances.events()),
        ),
        settings={
            **run.settings,
            "shortest_step": motion.shortest if motion.steps else None,
            "longest_step": motion.longest if motion.steps else None,
            "steps": motion.steps,
            "rejected_steps": motion.rejected,
            "method": motion.method,
            "execution": execution,
        },
        message=message or "; ".join(failures(controllers)),
        **columns,
    )


def states_followed(
    plant: System, stages: Sequence[ControlStage], reference: ReferenceLike | None, t: np.ndarray
) -> np.ndarray | None:
    """States that a reference stands for, as far as it or the outermost controller says them."""
    tell = stages[0].told_by("reference_states", plant) if stages else None
    if not isinstance(reference, TrimPoint | np.ndarray) and is_motion(reference):
        # A controller may know more than a motion of some blocks says: where motors go, for one.
        for say in (tell, lambda t, motion: motion.states(plant, t)[0]):
            try:
                states = None if say is None else say(t, reference)
            except ValueError:  # a motion of something else, such as a frame
                continue
            if states is not None and states.shape == (len(t), plant.state.nq):
                return states
    states = _told("reference", lambda: reference_states(plant.state, reference, t))
    if tell is not None and states is None:
        states = _told("reference", lambda: tell(t, reference))
    return None if states is None or states.shape != (len(t), plant.state.nq) else states


def tracked_errors(plant: System, stages: Sequence[ControlStage]) -> np.ndarray | None:
    """Errors of the plant's state that the outermost controller weighs; None where it is silent."""
    tell = stages[0].told_by("tracked_errors", plant) if stages else None
    found = None if tell is None else _told("choice of tracked errors", tell)
    if found is None or np.shape(found) != (plant.state.dim,):
        return None
    return np.array(found, dtype=bool)


def task_errors(
    plant: System,
    stages: Sequence[ControlStage],
    reference: ReferenceLike | None,
    t: np.ndarray,
    x: np.ndarray,
) -> Mapping[str, TaskError]:
    """Errors of what the outermost controller tracks besides the state, by name."""
    tell = stages[0].told_by("task_errors", plant) if stages else None
    found = None if tell is None else _told("error of the task", lambda: tell(t, x, reference))
    return {name: TaskError(error, group) for name, (error, group) in (found or {}).items()}


def bounded_quantities(
    plant: System,
    stages: Sequence[ControlStage],
    t: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    followed: np.ndarray | None,
) -> Mapping[str, BoundedQuantity]:
    """What the outermost controller keeps within limits besides its inputs, by name."""
    tell = stages[0].told_by("bounded_quantities", plant) if stages else None
    if tell is None or stages[0].system.n_inputs != plant.n_inputs:  # type: ignore[union-attr]
        return {}
    found = _told("bounded quantities", lambda: tell(t, x, u, followed))
    return {name: BoundedQuantity(*entry) for name, entry in (found or {}).items()}


def obstacles_kept(
    plant: System, stages: Sequence[ControlStage], t: np.ndarray
) -> Sequence[SceneBody]:
    """What the outermost controller keeps a body out of."""
    tell = stages[0].told_by("obstacles", plant) if stages else None
    found = (
        None
        if tell is None
        else _told("obstacles", lambda: obstacle_bodies(tell()[0], t, tell()[1]))
    )
    return found or ()


def limited_quantities(
    plant: System, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> dict[str, BoundedQuantity]:
    """Entries of the plant's quantities that have limits, by name."""
    known = plant.limited_quantities
    if known is None:
        return {}
    held = np.concatenate([u, u[-1:] if len(u) else plant.nominal_input[None]])
    values = known.function(t, x, held, p)
    rows = zip(known.names, values.T, known.lower, known.upper, known.units, strict=True)
    return {
        name: BoundedQuantity(row, float(low), float(high), unit)
        for name, row, low, high, unit in rows
    }


Told = TypeVar("Told")


def _told(what: str, tell: Callable[[], Told]) -> Told | None:
    """What a user's function says after a run; the run is worth more than that, but it is said."""
    try:
        return tell()
    except Exception as error:  # of a controller of anybody's, when minutes have been simulated
        warnings.warn(
            f"the {what} is not in the result: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return None


def _rows(values: list[np.ndarray | None]) -> np.ndarray | None:
    return None if values[0] is None else np.array(values)


def plain_values(info: object) -> dict[str, Any]:
    """Numbers and texts of a mapping, named tuple or object."""
    if isinstance(info, Mapping):
        named: Mapping[Any, Any] = info
    else:
        as_dict = getattr(info, "_asdict", None)
        named = as_dict() if as_dict is not None else getattr(info, "__dict__", {})
    plain = {key: _value(value) for key, value in named.items()}
    kinds = bool | int | float | str | np.number | np.bool_
    return {str(key): value for key, value in plain.items() if isinstance(value, kinds)}


def _value(value: object) -> object:
    """Members of an enumeration as text: those that are texts themselves say what they mean."""
    if isinstance(value, Enum):
        return str(value.value) if isinstance(value, str) else value.name
    return value


def as_commands(answers: list[Any]) -> np.ndarray | None:
    """Answers as one array, if they are vectors of one length."""
    try:
        array = np.array(answers)
    except (TypeError, ValueError):  # of different shapes, or trajectories for an inner controller
        return None
    return array.astype(np.float64) if array.ndim == 2 and array.dtype.kind in "fiu" else None


def as_column(values: list[Any]) -> np.ndarray:
    """Numbers as floats, texts as texts; calls that said nothing are NaN or empty."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else float(value) for value in values])
