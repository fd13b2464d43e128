"""Recorders: collect a run and turn it into a SimulationResult."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from ..groups import LieGroup
from ..systems import System, Trajectory, TrimPoint
from ._logs import ControllerLog, Measurements, TaskError
from ._result import SimulationResult


class ControllerRecorder:
    """What a controller answered, and what it says of it."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, Any, dict[str, Any]]] = []

    def call(self, t: float, answer: Any, elapsed: float, info: Any) -> None:
        """Keep an answer and the plain values of the controller's info."""
        values = {"call_time": elapsed}
        if info is not None:
            values |= _plain(info)
        self._calls.append((t, answer, values))

    def finish(self) -> ControllerLog:
        """Everything as arrays."""
        keys = dict.fromkeys(key for _, _, values in self._calls for key in values)
        return ControllerLog(
            t=np.array([t for t, _, _ in self._calls], dtype=np.float64),
            command=_commands([answer for _, answer, _ in self._calls]),
            info={key: _column([values.get(key) for _, _, values in self._calls]) for key in keys},
        )


class Recorder:
    """Lists that grow during a run."""

    def __init__(self, plant: System, sensors: Mapping[str, LieGroup]) -> None:
        self.plant = plant
        self._groups = dict(sensors)
        self._rows: list[tuple[float, np.ndarray, np.ndarray | None, np.ndarray | None]] = []
        self._inputs: list[np.ndarray] = []
        self._measurements: dict[str, list[tuple[float, np.ndarray]]] = {s: [] for s in sensors}

    def __len__(self) -> int:
        """Number of recorded states."""
        return len(self._rows)

    @property
    def last_time(self) -> float:
        """Time of the last recorded state in s."""
        return self._rows[-1][0] if self._rows else 0.0

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

    def measurement(self, sensor: str, t: float, y: np.ndarray) -> None:
        """Keep a measurement taken at t."""
        self._measurements[sensor].append((t, y))

    def finish(
        self,
        reference: Any,
        controllers: Mapping[str, ControllerLog],
        settings: Mapping[str, Any],
        status: str,
        message: str,
        leader: Any = None,
    ) -> SimulationResult:
        """Everything as arrays; the input of an interval that was not finished is left out.

        `leader` is the outermost controller, which may know what the reference means.
        """
        plant, count = self.plant, len(self._rows)
        t = np.array([row[0] for row in self._rows])
        x = np.array([row[1] for row in self._rows])
        u = np.array(self._inputs[: count - 1]).reshape(count - 1, plant.n_inputs)
        return SimulationResult(
            name=plant.name,
            group=plant.state,
            t=t,
            x=x,
            u=u,
            input_names=plant.input_names,
            input_units=tuple(entry.unit for entry in plant.inputs),
            input_roles=tuple(entry.role for entry in plant.inputs),
            input_bounds=np.array(plant.input_bounds).reshape(2, plant.n_inputs),
            reference=reference_of(plant, leader, reference, t),
            state_limits=np.array(plant.state_limits) if plant.limits else None,
            tasks={
                name: TaskError(error, group)
                for name, (error, group) in task_errors(plant, leader, t, x, reference).items()
            },
            estimate=_rows([row[2] for row in self._rows]),
            estimate_std=_rows([row[3] for row in self._rows]),
            measurements={
                name: Measurements(
                    np.array([t for t, _ in entries]),
                    np.array([y for _, y in entries]).reshape(-1, self._groups[name].nq),
                    self._groups[name],
                )
                for name, entries in self._measurements.items()
            },
            controllers=controllers,
            settings=settings,
            status=status,
            message=message,
        )


def reference_of(plant: System, leader: Any, reference: Any, t: np.ndarray) -> np.ndarray | None:
    """States that a reference stands for, as far as it or the controller says them."""
    states = reference_states(plant.state, reference, t)
    if states is None and _is_of(plant, leader, "reference_states"):
        try:
            states = leader.reference_states(t, reference)
        except Exception:  # as below: the run is worth more than this record
            return None
        if states is not None and states.shape != (len(t), plant.state.nq):
            return None
    return states


def task_errors(
    plant: System, leader: Any, t: np.ndarray, x: np.ndarray, reference: Any
) -> Mapping[str, tuple[np.ndarray, LieGroup]]:
    """Errors of what a controller tracks besides the state, by name, with their groups."""
    if not _is_of(plant, leader, "task_errors"):
        return {}
    try:
        return leader.task_errors(t, x, reference)
    except Exception:  # as below
        return {}


def _is_of(plant: System, leader: Any, method: str) -> bool:
    """Whether a controller has a method itself (adapters hand theirs on) and the plant's state."""
    own = getattr(type(leader), method, None)
    system = getattr(leader, "system", None)
    return own is not None and getattr(system, "state", None) == plant.state


def reference_states(group: LieGroup, reference: Any, t: np.ndarray) -> np.ndarray | None:
    """A reference at all times, shape (N + 1, nq), if it is a state of the group."""
    if isinstance(reference, Trajectory | TrimPoint):
        own = reference.group if isinstance(reference, Trajectory) else reference.system.state
        return reference(t).x if own == group else None
    if callable(reference):
        try:
            values = [_state(reference(time)) for time in t.tolist()]
        except Exception:  # it may want other arguments; the run is worth more than this record
            return None
        if any(value is None or value.shape != (group.nq,) for value in values):
            return None
        return np.array(values)
    value = _state(reference)
    if value is None or value.shape != (group.nq,):
        return None
    return np.tile(value, (len(t), 1))


def _state(reference: Any) -> np.ndarray | None:
    try:
        return np.asarray(getattr(reference, "x", reference), dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _rows(values: list[np.ndarray | None]) -> np.ndarray | None:
    return None if values[0] is None else np.array(values)


def _plain(info: Any) -> dict[str, Any]:
    """Numbers and texts of a mapping, named tuple or object."""
    if not isinstance(info, Mapping):
        info = info._asdict() if hasattr(info, "_asdict") else getattr(info, "__dict__", {})
    named = {key: v.name if isinstance(v, Enum) else v for key, v in info.items()}
    kinds = bool | int | float | str | np.number | np.bool_
    return {str(key): value for key, value in named.items() if isinstance(value, kinds)}


def _commands(answers: list[Any]) -> np.ndarray | None:
    """Answers as one array, if they are vectors of one length."""
    try:
        array = np.array(answers)
    except (TypeError, ValueError):  # of different shapes, or trajectories for an inner controller
        return None
    return array.astype(np.float64) if array.ndim == 2 and array.dtype.kind in "fiu" else None


def _column(values: list[Any]) -> np.ndarray:
    """Numbers as floats, texts as texts; calls that said nothing are NaN or empty."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else float(value) for value in values])
