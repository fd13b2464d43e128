"""SensorDriven: a filter whose inputs a sensor measures, for a plant with another state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codegen._internal import UnknownNameError, read_only, unknown_name
from ..systems import Sensor, System
from ..systems._internal import matrix_function, output_derivatives, symbols_of, trace_field
from ._filter import Filter
from ._given import named


class SensorDriven:
    """A filter that an IMU drives, as the estimator of a plant: an `Estimator` of `simulate`.

    What the sensor delivers is held as input of the filter's model until the next delivery; other
    measurements correct the estimate. The inputs of the plant are not used. The state of the plant
    is a function of the filter's state and inputs.

    Parameters
    ----------
    filter : Filter
    sensor : Sensor
        Its name is that of a sensor in the simulation; its covariance that of the inputs.
    inputs : sequence of str
        Inputs of the filter's model in the order of the sensor; ``"gyro"`` stands for
        ``"gyro.x"``, ``"gyro.y"``, ….
    plant : System
    state : callable
        ``(t, x, u, p) → coordinates on plant.state``, of the filter's model.
    """

    def __init__(
        self, filter: Filter, sensor: Sensor, inputs: Sequence[str], plant: System[Any],
        state: Any,
    ) -> None:  # fmt: skip
        model = filter.system
        self._rows: list[int] = []
        for name in inputs:
            some = named(name, model.input_names)
            if not some:
                raise UnknownNameError(unknown_name("input", name, model.input_names))
            self._rows += some
        self.filter, self.plant, self.sensor = filter, plant, sensor
        bound = sensor.bind(plant)
        if bound.group.dim != len(self._rows):
            raise ValueError(
                f"sensor {sensor.name!r} has {bound.group.dim} entries, {len(self._rows)} inputs "
                f"are named: {', '.join(model.input_names[i] for i in self._rows)}"
            )
        self._covariance = bound.covariance
        self._state = trace_field(model, "plant_state", state, plant.state.nq)
        t, x, u, p = symbols_of(model)
        J, D = output_derivatives(model.state, plant.state, x, u, self._state(t, x, u, p))
        if model.errors is not None:
            J = J @ model.errors.basis(x, p)
        E = plant.error_selection
        self._derivatives = matrix_function(
            model, "plant_state_derivatives", [t, x, u, p], {"J": E @ J, "D": E @ D}
        )
        self.reset()

    @property
    def x(self) -> np.ndarray:
        """State of the plant."""
        return read_only(self._state(*self._here))

    @property
    def P(self) -> np.ndarray:
        """Covariance of the plant's error: that of the estimate and that of the sensor."""
        made = self._derivatives(*self._here)
        D = made.D[:, self._rows]
        return read_only(made.J @ self.filter.P @ made.J.T + D @ self._covariance @ D.T)

    @property
    def _here(self) -> tuple[Any, ...]:
        return self.filter.t or 0.0, self.filter.x, self._held, self.filter.p

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """What became of intervals and measurements."""
        return self.filter.counts

    def predict(self, t: float, u: Any, dt: float) -> None:
        """Move the estimate over an interval with what the sensor measured last."""
        self.filter.predict(t, self._held, dt)

    def update(self, name: str, y: Any) -> None:
        """Take a delivery of the sensor as input; correct the estimate by others."""
        if name == self.sensor.name:
            self._held = self._held.copy()
            self._held[self._rows] = y
        else:
            self.filter.update(name, y)

    def reset(self) -> None:
        """Back to the first estimate."""
        self.filter.reset()
        self._held = self.filter.system.nominal_input.copy()
