"""Sensors: measurements with what goes wrong on the way, and their random streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import ModelFunction, Value, named_options
from ..codegen._internal import check_shape
from ..groups import LieGroup
from ..systems import Measurement, System
from ..systems._internal import BoundMeasurement
from ._clock import Times
from ._random import check_deviation, stream


@named_options(own="dt")
@dataclass(frozen=True, eq=False, init=False)
class Sensor(Measurement):
    """A `Measurement` with a bias and losses: ``y = plus(h(t, x, u, p), bias + noise)``.

    It sees the inputs that were held until the time of measurement, not those that start then.

    Parameters
    ----------
    name : str
    dt : float
        Sample time in s.
    h : callable, ModelFunction or str, optional
        ``(t, x, u, p) → coordinates on output`` on CasADi columns, traced once; or the name of a
        block of the state. The system's output if left out.
    output : LieGroup, optional
        Group of the measurement, with a function h.
    std_discrete : float or array_like, shape (output.dim,)
        Standard deviation of each measurement's error, in tangent coordinates.
    covariance_discrete : array_like, shape (output.dim, output.dim), optional
        Covariance of each measurement's error, instead of deviations.
    density : float or array_like, shape (output.dim,)
        White noise as data sheets give it, unit/√Hz: adds the deviation ``density / √dt``.
    scale : callable, optional
        ``(t, x, u, p) → factor`` on the deviations.
    correlation_time : float
        Of the errors, s.
    directions : callable, optional
        For filters, see `Measurement`.
    bias : float or array_like, shape (output.dim,)
        Constant error, in tangent coordinates.
    delay : float
        Time from measurement to delivery, s.
    offset : float
        Time of the first measurement, s.
    dropout : float
        Probability that a measurement is lost.
    validity : float
        Age in s from which on a measurement is of no use: calls of controllers that have nothing
        newer are counted.
    limits : tuple of two array_like, optional
        Ends of its range, in coordinates of the measurement: it shows no more.

    Examples
    --------
    >>> gyro = Sensor("gyro", dt=0.005, h="rate", density=1e-4)
    >>> gyro.delay
    0.0
    """

    bias: ArrayLike
    dropout: float

    def __init__(
        self,
        name: str,
        dt: float,
        h: Callable[..., Value] | ModelFunction | str | None = None,
        output: LieGroup | None = None,
        *,
        std_discrete: ArrayLike = 0.0,
        covariance_discrete: ArrayLike | None = None,
        density: ArrayLike = 0.0,
        scale: Callable[..., Value] | None = None,
        correlation_time: float = 0.0,
        directions: Callable[..., Value] | None = None,
        bias: ArrayLike = 0.0,
        delay: float = 0.0,
        offset: float = 0.0,
        dropout: float = 0.0,
        validity: float = inf,
        limits: Any = None,
    ) -> None:
        _ = Times(f"sensor {name!r}", dt, offset, delay)
        super().__init__(
            name,
            h,
            output,
            std_discrete=std_discrete,
            covariance_discrete=covariance_discrete,
            density=density,
            scale=scale,
            correlation_time=correlation_time,
            directions=directions,
            dt=dt,
            offset=offset,
            delay=delay,
            validity=validity,
            limits=limits,
        )
        for what, value in (("std_discrete", std_discrete), ("density", density)):
            check_deviation(f"{what} of sensor {name!r}", value, np.shape(value))
        if not 0 <= dropout <= 1:
            raise ValueError(
                f"dropout of sensor {name!r} is a probability from 0 to 1, got {dropout}"
            )
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "dropout", dropout)


def as_sensor(measurement: Measurement) -> Sensor:
    """A measurement as a sensor without a bias or losses; sensors as they are."""
    if isinstance(measurement, Sensor):
        return measurement
    if measurement.dt is None:
        raise ValueError(f"measurement {measurement.name!r} needs dt, the sample time in s")
    data = {
        entry.name: getattr(measurement, entry.name)
        for entry in fields(Measurement)
        if entry.init and entry.name != "_"
    }
    return Sensor(**data)


class BoundSensor:
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
        assert sensor.dt is not None  # it has no default there
        self.times = Times(f"sensor {sensor.name!r}", sensor.dt, sensor.offset, sensor.delay)
        self._measurement: BoundMeasurement = sensor.bind(plant)
        shape, bias = (self.group.dim,), np.asarray(sensor.bias)
        bias = np.broadcast_to(bias, shape) if bias.shape == () else bias
        self._bias = check_shape(f"bias of sensor {sensor.name!r}", bias, shape)
        self._noise = stream(seed, "sensor", sensor.name)
        self._last: np.ndarray | None = None
        self._losses = stream(seed, "dropout", sensor.name)

    @property
    def group(self) -> LieGroup:
        """Where measurements live."""
        return self._measurement.group

    def _error(self) -> np.ndarray:
        """The next error: independent of those before, or a Gauss–Markov sequence."""
        drawn, tau = self._measurement.noise(self._noise), self.sensor.correlation_time
        if tau and self._last is not None:
            kept = np.exp(-self.times.dt / tau)
            drawn = kept * self._last + np.sqrt(1 - kept**2) * drawn
        self._last = drawn
        return drawn

    def measure(self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray | None:
        """One measurement, or None if it is lost; both draws are made in any case."""
        error = self._bias + self._measurement.scaled(self._error(), t, x, u, p)
        if self._losses.random() < self.sensor.dropout:
            return None
        return self._measurement.read(error, t, x, u, p)
