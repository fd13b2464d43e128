"""Sensors: what is measured, how often, how late, how noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import ModelFunction, check_shape
from ..groups import LieGroup
from ..systems import System


@dataclass(frozen=True, eq=False)
class Sensor:
    """A measurement ``y = plus(h(t, x, u, p), noise)`` at its own rate.

    Parameters
    ----------
    name : str
    dt : float
        Sample time in s.
    h : callable or ModelFunction, optional
        ``(t, x, u, p) → coordinates on output``, traced once; the system's output if left out.
    output : LieGroup, optional
        Group of the measurement, with `h`.
    std_discrete : float or array_like, shape (output.dim,)
        Standard deviation of each measurement's error, in tangent coordinates.
    bias : float or array_like, shape (output.dim,)
        Constant error.
    delay : float
        Time from measurement to delivery, s.
    offset : float
        Time of the first measurement, s.
    dropout : float
        Probability that a measurement is lost.

    Examples
    --------
    >>> Sensor("mocap", dt=0.01, std_discrete=1e-3).delay
    0.0
    """

    name: str
    dt: float
    h: Any = None
    output: LieGroup | None = None
    std_discrete: Any = 0.0
    bias: Any = 0.0
    delay: float = 0.0
    offset: float = 0.0
    dropout: float = 0.0

    def bind(self, system: System) -> BoundSensor:
        """The sensor on a system: its function traced, its noise checked."""
        if self.h is None:
            function, group = system.h, system.output
        else:
            if self.output is None:
                raise ValueError(f"sensor {self.name!r}: with h, give output, the group of y")
            group = self.output
            function = self.h if isinstance(self.h, ModelFunction) else _trace(self, system, group)
        std, bias = (
            np.broadcast_to(np.asarray(value, dtype=float), (group.dim,))
            for value in (self.std_discrete, self.bias)
        )
        check_shape(f"std_discrete of sensor {self.name!r}", std, (group.dim,))
        check_shape(f"bias of sensor {self.name!r}", bias, (group.dim,))
        if (std < 0).any() or not 0 <= self.dropout <= 1:
            raise ValueError(f"sensor {self.name!r}: std_discrete >= 0 and 0 <= dropout <= 1")
        return BoundSensor(self, function, group, std, bias)


@dataclass(frozen=True, eq=False)
class BoundSensor:
    """A sensor on a system."""

    sensor: Sensor
    function: ModelFunction
    group: LieGroup
    std: np.ndarray
    bias: np.ndarray

    def measure(
        self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray | None:
        """One measurement, or None if it is lost."""
        noise = self.bias + self.std * rng.normal(size=self.group.dim)
        lost = self.sensor.dropout > 0 and rng.random() < self.sensor.dropout
        return None if lost else self.group.plus(self.function(t, x, u, p), noise)


def _trace(sensor: Sensor, system: System, group: LieGroup) -> ModelFunction:
    measured = system._like(system.f, h=sensor.h, output=group, quantities=None)
    return measured.h
