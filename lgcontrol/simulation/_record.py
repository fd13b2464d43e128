"""Recorder: collects a run and turns it into a SimulationResult."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..systems import System, Trajectory
from ._result import Measurements, SimulationResult


class Recorder:
    """Lists that grow during a run."""

    def __init__(self, plant: System, reference: Any, estimated: bool, sensors: list[str]) -> None:
        self.plant, self.reference, self.estimated = plant, reference, estimated
        self.t: list[float] = []
        self.x: list[np.ndarray] = []
        self.u: list[np.ndarray] = []
        self.estimates: list[np.ndarray] = []
        self.measurements: dict[str, list[tuple[float, np.ndarray]]] = {s: [] for s in sensors}
        self.commands: list[np.ndarray] = []
        self.calls: list[dict[str, Any]] = []

    def state(self, t: float, x: np.ndarray, estimate: np.ndarray | None) -> None:
        """Keep a state, and what was thought of it."""
        self.t.append(t)
        self.x.append(x)
        if estimate is not None:
            self.estimates.append(np.array(estimate))

    def input(self, u: np.ndarray) -> None:
        """Keep the input of the interval that starts."""
        self.u.append(u.copy())

    def last_input(self, nominal: np.ndarray) -> np.ndarray:
        """Input of the interval that ended."""
        return self.u[-1] if self.u else nominal

    def drop_last_input(self) -> None:
        """Forget the interval whose end is not finite."""
        self.u.pop()

    def measurement(self, sensor: str, t: float, y: np.ndarray) -> None:
        """Keep a measurement."""
        self.measurements[sensor].append((t, y))

    def call(self, t: float, command: np.ndarray, elapsed: float, info: Any) -> None:
        """Keep a controller's answer and what it says of it: the plain values of its info."""
        self.commands.append(command)
        values = info if isinstance(info, Mapping) else getattr(info, "__dict__", {})
        plain = {
            key: value
            for key, value in values.items()
            if isinstance(value, bool | int | float | str | np.number)
        }
        self.calls.append({"t": t, "call_time": elapsed} | plain)

    def finish(self, status: str, message: str) -> SimulationResult:
        """Everything as arrays."""
        plant, count = self.plant, len(self.t)
        keys = list(dict.fromkeys(key for call in self.calls for key in call))
        return SimulationResult(
            name=plant.name,
            group=plant.state,
            t=np.array(self.t),
            x=np.array(self.x).reshape(count, plant.state.nq),
            u=np.array(self.u[: max(count - 1, 0)]).reshape(-1, plant.n_inputs),
            input_names=plant.input_names,
            input_units=tuple(entry.unit for entry in plant.inputs),
            input_roles=tuple(entry.role for entry in plant.inputs),
            input_bounds=np.array(plant.input_bounds).reshape(2, plant.n_inputs),
            reference=self._references(),
            estimate=np.array(self.estimates) if self.estimated else None,
            measurements={
                name: Measurements(
                    np.array([t for t, _ in entries]), np.array([y for _, y in entries])
                )
                for name, entries in self.measurements.items()
            },
            command=np.array(self.commands).reshape(len(self.commands), -1),
            control={key: _column([call.get(key) for call in self.calls]) for key in keys},
            status=status,
            message=message,
        )

    def _references(self) -> np.ndarray | None:
        nq, count = self.plant.state.nq, len(self.t)
        reference = getattr(self.reference, "x", self.reference)
        if isinstance(self.reference, Trajectory):
            if self.reference.group != self.plant.state:
                return None
            reference = self.reference(np.array(self.t)).x
        try:
            states = np.asarray(reference, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        if states.shape not in ((nq,), (count, nq)):
            return None
        return np.broadcast_to(states, (count, nq)).copy()


def _column(values: list[Any]) -> np.ndarray:
    """Numbers as floats, texts as texts; calls that said nothing are NaN or empty."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else float(value) for value in values])
