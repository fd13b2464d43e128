"""Sensors in a simulation: errors, losses, times, and their random streams."""

from __future__ import annotations

import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import check_shape, exactly
from ..groups import LieGroup
from ..systems import Sensor, System
from ..systems._internal import BoundSensor
from ._clock import Times
from ._random import stream


class SimulatedSensor:
    """A sensor on a plant, with its random streams.

    Parameters
    ----------
    sensor : Sensor
    plant : System
    seed : int

    Attributes
    ----------
    sensor : Sensor
    times : Times
    """

    def __init__(self, sensor: Sensor, plant: System, seed: int) -> None:
        self.sensor, self._plant = sensor, plant
        if sensor.dt is None:
            raise ValueError(f"sensor {sensor.name!r} needs dt, the sample time in s")
        self.times = Times(f"sensor {sensor.name!r}", sensor.dt, sensor.offset, sensor.delay)
        self._bound: BoundSensor = sensor.bind(plant)
        shape = (self.group.dim,) if np.ndim(sensor.bias) else ()
        self._bias = check_shape(f"bias of sensor {sensor.name!r}", sensor.bias, shape)
        self._noise = stream(seed, "sensor", sensor.name)
        self._last: np.ndarray | None = None
        self._losses = stream(seed, "dropout", sensor.name) if sensor.dropout else None

    @property
    def group(self) -> LieGroup:
        """Group of the measurements."""
        return self._bound.group

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends of its range."""
        return self._bound.limits

    @property
    def reading(self) -> ModelFunction | None:
        """``(error, t, x, u, p) → y`` within no range; None where errors depend on the state."""
        bound, plant = self._bound, self._plant
        if bound.scale is not None:
            return None
        key = "reading", bound.group, bound.identity
        return plant.memo(key, lambda: _reading(plant, bound))

    def _error(self) -> np.ndarray:
        """The next error: independent of those before, or a Gauss–Markov sequence."""
        drawn, tau = self._bound.noise(self._noise), self.sensor.correlation_time
        if tau and self._last is not None:
            kept = np.exp(-self.times.dt / tau)
            drawn = kept * self._last + np.sqrt(1 - kept**2) * drawn
        self._last = drawn
        return drawn

    def draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The next errors of `measure`, shape (count, dim); draws, a loss where below `dropout`."""
        deviations = self._bound.deviations
        if self.sensor.correlation_time or deviations is None:
            errors = np.array([self._error() for _ in range(count)]).reshape(count, -1)
        else:  # the same numbers, all at once
            errors = deviations * self._noise.normal(size=(count, self.group.dim))
        chances = np.zeros(count) if self._losses is None else self._losses.random(count)
        return self._bias + errors, chances

    def measure(self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray | None:
        """One measurement, or None if it is lost; both draws are made in any case."""
        error = self._bias + self._bound.scaled(self._error(), t, x, u, p)
        if self._losses is not None and self._losses.random() < self.sensor.dropout:
            return None
        return self._bound.read(error, t, x, u, p)


def _reading(plant: System, bound: BoundSensor) -> ModelFunction:
    def build(error: Value, t: Value, x: Value, u: Value, p: Value) -> Value:
        return bound.group.plus(bound.function(t, x, u, p), error)

    shapes = {
        "error": (bound.group.dim,), "t": (), "x": (plant.state.nq,), "u": (plant.n_inputs,),
        "p": (plant.n_parameters,),
    }  # fmt: skip
    made = trace("reading", build, shapes, {"y": (bound.group.nq,)}, symbol=plant.symbol)
    return exactly(made)
