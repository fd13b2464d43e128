"""Sensors in a simulation: errors, losses, times, and their random streams."""

from __future__ import annotations

import numpy as np

from ..codegen._internal import check_shape
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
        self.sensor = sensor
        if sensor.dt is None:
            raise ValueError(f"sensor {sensor.name!r} needs dt, the sample time in s")
        self.times = Times(f"sensor {sensor.name!r}", sensor.dt, sensor.offset, sensor.delay)
        self._bound: BoundSensor = sensor.bind(plant)
        shape, bias = (self.group.dim,), np.asarray(sensor.bias)
        bias = np.broadcast_to(bias, shape) if bias.shape == () else bias
        self._bias = check_shape(f"bias of sensor {sensor.name!r}", bias, shape)
        self._noise = stream(seed, "sensor", sensor.name)
        self._last: np.ndarray | None = None
        self._losses = stream(seed, "dropout", sensor.name)

    @property
    def group(self) -> LieGroup:
        """Where measurements live."""
        return self._bound.group

    def _error(self) -> np.ndarray:
        """The next error: independent of those before, or a Gauss–Markov sequence."""
        drawn, tau = self._bound.noise(self._noise), self.sensor.correlation_time
        if tau and self._last is not None:
            kept = np.exp(-self.times.dt / tau)
            drawn = kept * self._last + np.sqrt(1 - kept**2) * drawn
        self._last = drawn
        return drawn

    def measure(self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray | None:
        """One measurement, or None if it is lost; both draws are made in any case."""
        error = self._bias + self._bound.scaled(self._error(), t, x, u, p)
        if self._losses.random() < self.sensor.dropout:
            return None
        return self._bound.read(error, t, x, u, p)
