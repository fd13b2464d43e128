"""Sensors: what is measured, how often, how late, how noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, UnknownNameError, check_shape, trace, unknown_name
from ..groups import LieGroup
from ..systems import System
from ._clock import check_times
from ._random import check_deviation, stream


@dataclass(frozen=True, eq=False)
class Sensor:
    """A measurement ``y = plus(h(t, x, u, p), bias + noise)`` at its own rate.

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
    density : float or array_like, shape (output.dim,)
        White noise as data sheets give it, unit/√Hz: adds the deviation ``density / √dt``.
    bias : float or array_like, shape (output.dim,)
        Constant error, in tangent coordinates.
    delay : float
        Time from measurement to delivery, s.
    offset : float
        Time of the first measurement, s.
    dropout : float
        Probability that a measurement is lost.

    Examples
    --------
    >>> gyro = Sensor("gyro", dt=0.005, h="rate", density=1e-4)
    >>> gyro.delay
    0.0
    """

    name: str
    dt: float
    h: Any = None
    output: LieGroup | None = None
    std_discrete: Any = 0.0
    density: Any = 0.0
    bias: Any = 0.0
    delay: float = 0.0
    offset: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"the name of a sensor must be a non-empty text, got {self.name!r}")
        check_times(f"sensor {self.name!r}", self)
        for what in ("std_discrete", "density"):
            value = getattr(self, what)
            check_deviation(f"{what} of sensor {self.name!r}", value, np.shape(value))
        if not 0 <= self.dropout <= 1:
            raise ValueError(
                f"dropout of sensor {self.name!r} is a probability from 0 to 1, got {self.dropout}"
            )
        if (self.output is None) != (self.h is None or isinstance(self.h, str)):
            raise ValueError(
                f"sensor {self.name!r}: a function h and output, the group of what it returns, "
                "go together"
            )

    def bind(self, system: System, seed: int) -> BoundSensor:
        """The sensor on a system: its function traced, its noise checked, its streams found."""
        function, group = _measured(self, system)
        shape = (group.dim,)
        std = check_deviation(f"std_discrete of sensor {self.name!r}", self.std_discrete, shape)
        density = check_deviation(f"density of sensor {self.name!r}", self.density, shape)
        bias = np.asarray(self.bias)
        if bias.shape == ():
            bias = np.broadcast_to(bias, shape)
        return BoundSensor(
            self,
            function,
            group,
            np.sqrt(std**2 + density**2 / self.dt),
            check_shape(f"bias of sensor {self.name!r}", bias, shape),
            stream(seed, "sensor", self.name),
            stream(seed, "dropout", self.name),
        )


@dataclass(frozen=True, eq=False)
class BoundSensor:
    """A sensor on a system, with its random streams."""

    sensor: Sensor
    function: ModelFunction
    group: LieGroup
    std: np.ndarray
    bias: np.ndarray
    noise: np.random.Generator
    losses: np.random.Generator

    def measure(self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray | None:
        """One measurement, or None if it is lost; both draws are made in any case."""
        error = self.bias + self.std * self.noise.normal(size=self.group.dim)
        if self.losses.random() < self.sensor.dropout:
            return None
        return self.group.plus(self.function(t, x, u, p), error)


def _measured(sensor: Sensor, system: System) -> tuple[ModelFunction, LieGroup]:
    """The function of a sensor and the group it maps to."""
    who, h, group = f"sensor {sensor.name!r}", sensor.h, sensor.output
    if h is None:
        return system.h, system.output
    if isinstance(h, str):
        blocks = getattr(system.state, "blocks", {})
        if h not in blocks:
            raise UnknownNameError(f"{who}: {unknown_name('block of the state', h, blocks)}")
        where = system.state.coordinate_slice(h)  # type: ignore[attr-defined]
        h, group = (lambda t, x, u, p: x[where]), blocks[h]
    if not isinstance(group, LieGroup):
        raise TypeError(f"{who}: output must be a LieGroup, not {type(group).__name__}")
    if not isinstance(h, ModelFunction):
        arguments = {
            "t": (),
            "x": (system.state.nq,),
            "u": (system.n_inputs,),
            "p": (system.n_parameters,),
        }
        h = trace("measure", _column(h), arguments, {"y": (group.nq,)}, symbol=system.symbol)
    have = (h.argument_shapes[1:], h.result_shapes)
    want = (((system.state.nq,), (system.n_inputs,), (system.n_parameters,)), ((group.nq,),))
    if have != want:
        raise ValueError(
            f"{who}: h is {h!r}, expected arguments (t, x, u, p) of {system.name} and one result "
            f"of shape ({group.nq},)"
        )
    return h, group


def _column(h: Any) -> Any:
    """`h` with lists of scalars joined to a column."""

    def joined(*arguments: Any) -> Any:
        value = h(*arguments)
        return ca.vertcat(*value) if isinstance(value, list | tuple) else value

    return joined
