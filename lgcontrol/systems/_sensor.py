"""Sensor: what it measures, on which group, how noisy, when; derivatives in errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, named_options
from ..codegen._internal import (
    UnknownNameError,
    check_semidefinite,
    check_shape,
    is_symbolic,
    unknown_name,
)
from ..groups import LieGroup, check_element
from ..groups._internal import not_a_group
from ._definition import SystemDefinition
from ._signals import check_name
from ._step import output_derivatives
from ._tracing import matrix_function, symbols_of, trace_field


@named_options
@dataclass(frozen=True, eq=False)
class Sensor:
    """A sensor, whose measurement is ``y = plus(h(t, x, u, p), bias + noise)`` on a group, as data.

    Simulations and estimators share it: a simulation draws noise, bias and losses, an estimator
    weighs the measurement by its noise. In a simulation it sees the inputs that were held until
    the time of measurement, not those that start then.

    Parameters
    ----------
    name : str
    h : callable, ModelFunction or str, optional
        ``(t, x, u, p) → coordinates on output`` on CasADi columns; or the name of a block of the
        state. The system's output if left out.
    output : LieGroup, optional
        Group of the measurement, with a function h.
    std_discrete : float or array_like, shape (output.dim,)
        Standard deviation of each measurement's error, in tangent coordinates.
    covariance_discrete : array_like, shape (output.dim, output.dim), optional
        Covariance of each measurement's error, instead of deviations.
    density : float or array_like, shape (output.dim,)
        White noise as data sheets give it, unit/√Hz: adds the variance ``density² / dt``.
    scale : callable, optional
        ``(t, x, u, p) → factor`` on the deviations, a number or one for each entry: errors that
        grow with a speed, a field that is known to be disturbed.
    correlation_time : float
        Of the errors, s: a first-order Gauss–Markov sequence. Filters, which take errors for
        independent, weigh by the white-equivalent covariance, ``2 correlation_time / dt`` times
        larger.
    directions : callable, optional
        ``(t, x, u, p) → matrix`` of orthonormal columns, shape (n_errors, k): the errors of the
        state that a filter takes this measurement to show, and corrects by it directly. A compass
        that is not to touch the tilt has the vertical here.
    dt : float, optional
        Sample time in s; needed in a simulation, and with a density or a correlation time.
    offset : float
        Time of the first measurement, s.
    delay : float
        Time from measurement to delivery, s.
    validity : float
        Age in s, at delivery, from which on a measurement is of no use; a simulation counts calls
        of controllers that have nothing newer.
    bias : float or array_like, shape (output.dim,)
        Constant error in a simulation, in tangent coordinates; an estimator that is to know it
        has it in the state, or in h.
    dropout : float
        Probability that a measurement is lost in a simulation.
    limits : tuple of two array_like, optional
        Ends of the range of the sensor, in coordinates of the measurement. A simulated one delivers
        no more than them; a filter does not use what is at an end or beyond.

    Examples
    --------
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Sensor, System
    >>> wheel = System("wheel", Product(angle=SO2, rate=Rn(1)), lambda t, x, u, p: [x[2], u],
    ...                inputs=["torque"])
    >>> gyro = Sensor("gyro", "rate", density=0.01, dt=0.01).bind(wheel)
    >>> gyro.covariance, gyro.derivatives(0.0, wheel.state.identity, [0.0], []).C
    (array([[0.01]]), array([[0., 1.]]))
    """

    name: str
    h: str | Callable[[Any, Any, Any, Any], Any] | None = None
    output: LieGroup | None = None
    _: KW_ONLY
    std_discrete: Any = 0.0
    covariance_discrete: Any = None
    density: Any = 0.0
    scale: Any = None
    correlation_time: float = 0.0
    directions: Any = None
    dt: float | None = None
    offset: float = 0.0
    delay: float = 0.0
    validity: float = inf
    bias: Any = 0.0
    dropout: float = 0.0
    limits: Any = None

    def __post_init__(self) -> None:
        check_name("sensor", self.name)
        if not (self.h is None or isinstance(self.h, str) or callable(self.h)):
            raise TypeError(
                f"{self._who}: h must be a function (t, x, u, p) → y or the name of a block of the "
                f"state, got {self.h!r}; the sample time is dt=…"
            )
        for what in ("std_discrete", "density"):
            value = getattr(self, what)
            if (check_shape(f"{what} of {self._who}", value, np.shape(value)) < 0).any():
                raise ValueError(f"{what} of {self._who} must not be negative, got {value}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(
                f"dropout of {self._who} is a probability from 0 to 1, got {self.dropout}"
            )
        if self.dt is not None and not (np.isfinite(self.dt) and self.dt > 0):
            raise ValueError(
                f"dt of {self._who} must be a positive number of seconds, got {self.dt}"
            )
        for key in ("correlation_time", "offset", "delay", "validity"):
            value = getattr(self, key)
            if not (value >= 0 and (np.isfinite(value) or key == "validity")):
                raise ValueError(f"{key} of {self._who} must be 0 or more seconds, got {value}")
        if self.delay >= self.validity:
            raise ValueError(
                f"{self._who}: every measurement would be too old when it is delivered: "
                f"validity {self.validity:g} s, delay {self.delay:g} s"
            )
        if self.covariance_discrete is not None and np.any(self.std_discrete):
            raise ValueError(f"{self._who}: give std_discrete or covariance_discrete, not both")
        for what in ("density", "correlation_time"):
            if np.any(getattr(self, what)) and self.dt is None:
                raise ValueError(f"{self._who}: {what} needs dt, the sample time in s")
        if (self.output is None) != (self.h is None or isinstance(self.h, str)):
            raise ValueError(
                f"{self._who}: a function h and output, the group of what it returns, go together"
            )
        if self.output is not None and not isinstance(self.output, LieGroup):
            raise TypeError(not_a_group(f"{self._who}: output", self.output))

    @property
    def _who(self) -> str:
        return f"sensor {self.name!r}"

    def bind(self, system: SystemDefinition) -> BoundSensor:
        """The sensor on a system: its function traced, its noise checked."""
        kept: BoundSensor | None = self.__dict__.get("_kept")
        if kept is None or kept.system is not system:
            function, group = self._measured(system)
            factor, scale = self._noise_factor(group.dim), self._scale(system, group)
            ends = self._ends(group.nq)
            kept = BoundSensor(self, system, function, group, factor, scale, ends)
            object.__setattr__(self, "_kept", kept)
        return kept

    def __getstate__(self) -> dict[str, Any]:
        """Without the system that it was bound to last."""
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def _ends(self, size: int) -> tuple[np.ndarray, np.ndarray] | None:
        if self.limits is None:
            return None
        if len(self.limits) != 2:
            raise ValueError(f"{self._who}: limits are two, lower and upper, got {self.limits}")
        lower, upper = (
            check_shape(f"limits of {self._who}", np.broadcast_to(end, (size,)), (size,),
                        finite=False)
            for end in self.limits
        )  # fmt: skip
        if not (lower < upper).all():
            raise ValueError(f"{self._who}: limits must rise, got {lower} and {upper}")
        return lower, upper

    def _measured(self, system: SystemDefinition) -> tuple[ModelFunction, LieGroup]:
        """The function and the group it maps to."""
        if self.h is None:
            return system.h, system.output
        if isinstance(self.h, str):
            blocks: dict[str, LieGroup] = getattr(system.state, "blocks", {})
            if self.h not in blocks:
                raise UnknownNameError(
                    f"{self._who}: {unknown_name('block of the state', self.h, blocks)}"
                )
            where = system.state.coordinate_slice(self.h)  # type: ignore[attr-defined]
            group = blocks[self.h]
            return trace_field(system, "measure", lambda t, x, u, p: x[where], group.nq), group
        assert self.output is not None  # with a function
        try:
            return trace_field(system, "measure", self.h, self.output.nq), self.output
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self._who} of {error}") from error

    def _scale(self, system: SystemDefinition, group: LieGroup) -> ModelFunction | None:
        if self.scale is None:
            return None
        scale = trace_field(system, "scale", self.scale, None)
        if scale.result_shapes[0] not in ((1,), (group.dim,)):
            raise ValueError(
                f"{self._who}: scale returned {scale.result_shapes[0][0]} factors, expected one, "
                f"or {group.dim}, one for each entry of the error"
            )
        return scale

    def _noise_factor(self, dim: int) -> np.ndarray:
        """Lower triangular (or symmetric) L with ``L Lᵀ`` the covariance of one measurement."""
        density = self._deviation("density", dim)
        white = density**2 / (self.dt or 1.0)
        if self.covariance_discrete is None:
            return np.diag(np.sqrt(self._deviation("std_discrete", dim) ** 2 + white))
        what = f"covariance_discrete of {self._who}"
        R = check_shape(what, self.covariance_discrete, (dim, dim))
        R = check_semidefinite(what, R)
        values, vectors = np.linalg.eigh(R + np.diag(white))
        return vectors * np.sqrt(np.maximum(values, 0.0))

    def _deviation(self, key: str, dim: int) -> np.ndarray:
        given = np.asarray(getattr(self, key))
        what = f"{key} of {self._who}"
        array = check_shape(what, np.broadcast_to(given, (dim,)) if given.shape == () else given,
                            (dim,))  # fmt: skip
        if (array < 0).any():
            raise ValueError(f"{what} must not be negative, got {getattr(self, key)}")
        return array


@dataclass(frozen=True, eq=False)
class BoundSensor:
    """A sensor on a system."""

    sensor: Sensor
    system: SystemDefinition
    function: ModelFunction  # `(t, x, u, p) → y`, without noise
    group: LieGroup  # of y
    noise_factor: np.ndarray  # (dim, dim) L with `L Lᵀ` the covariance
    scale: ModelFunction | None = None  # `(t, x, u, p) → factor` on the rows of L
    limits: tuple[np.ndarray, np.ndarray] | None = None  # both ends of its range, (nq,)

    def __getstate__(self) -> dict[str, Any]:
        """With the sensor as `traced`: functions of Python do not all pickle."""
        return self.__dict__ | {"sensor": self.traced}

    @cached_property
    def identity(self) -> str:
        """Text that says which function it is."""
        return self.function.function.serialize()

    @property
    def traced(self) -> Sensor:
        """The sensor with CasADi functions, of this system, in place of Python's."""
        changes: dict[str, Any] = {"scale": self.scale}
        if callable(self.sensor.h):
            changes["h"] = self.function
        if self.sensor.directions is not None:
            point = symbols_of(self.system)
            shown: Any = [_directions(self, *point)]
            changes["directions"] = ca.Function("directions", [*point], shown)
        return replace(self.sensor, **changes)

    @property
    def white_factor(self) -> np.ndarray:
        """``L √(2 τ / dt)`` for errors of correlation time τ > dt / 2, else L."""
        return self.noise_factor * np.sqrt(self.lasting)

    @property
    def lasting(self) -> float:
        """``2 τ / dt`` for errors of correlation time τ > dt / 2, else one."""
        sensor = self.sensor
        return max(1.0, 2 * sensor.correlation_time / (sensor.dt or inf))

    def white_factor_at(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """`white_factor` times the scale at a state, as an expression of shape (dim, dim)."""
        L = ca.sparsify(ca.DM(self.white_factor))
        if self.scale is None:
            return L
        return ca.diag(self.scale(t, x, u, p) * ca.DM.ones(self.group.dim)) @ L

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of one measurement's error in tangent coordinates where its scale is one."""
        return self.noise_factor @ self.noise_factor.T

    @cached_property
    def deviations(self) -> np.ndarray | None:
        """Deviations of the entries of an error, (dim,); None where these are not independent."""
        deviations = np.diagonal(self.noise_factor)
        return None if np.any(self.noise_factor - np.diag(deviations)) else deviations

    @cached_property
    def derivatives(self) -> ModelFunction:
        """``(t, x, u, p) → y, C, D``: ``minus(y, ȳ) = C z + D δu`` to first order.

        z are the error coordinates of the system, ``z = E minus(x, x̄)``; where the measurement
        has directions, C is that of errors in these.
        """
        system = self.system
        t, x, u, p = symbols_of(system)
        y = self.function(t, x, u, p)
        C, D = output_derivatives(system.state, self.group, x, u, y)
        if system.errors is not None:
            C = C @ system.errors.basis(x, p)
        if self.sensor.directions is not None:
            V = _directions(self, t, x, u, p)
            C = C @ V @ V.T
        return matrix_function(
            system, "measurement_derivatives", [t, x, u, p], {"y": y, "C": C, "D": D}
        )

    def noise(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an error where the scale is one, shape (dim,)."""
        return self.noise_factor @ rng.normal(size=self.group.dim)

    def scaled(self, error: np.ndarray, t: float, x: Any, u: Any, p: Any) -> np.ndarray:
        """An error drawn by `noise`, at a state, shape (dim,)."""
        return error if self.scale is None else self.scale(t, x, u, p) * error

    def draw(self, t: float, x: Any, u: Any, p: Any, rng: np.random.Generator) -> np.ndarray:
        """One measurement with its noise, ``plus(h(t, x, u, p), noise)``."""
        return self.read(self.scaled(self.noise(rng), t, x, u, p), t, x, u, p)

    def read(self, error: np.ndarray, t: float, x: Any, u: Any, p: Any) -> np.ndarray:
        """What the sensor shows with an error, within its range."""
        y = self.group.plus(self.function(t, x, u, p), error)
        return y if self.limits is None else np.clip(y, *self.limits)

    def innovation(self, y: Any, t: Any, x: Any, u: Any, p: Any) -> np.ndarray:
        """``minus(y, h(t, x, u, p))``: what a measurement says beyond the state, (..., dim)."""
        if not is_symbolic(y):
            y = check_element(f"measurement {self.sensor.name}", y, self.group, batch=True)
        return self.group.minus(y, self.function(t, x, u, p))


def _directions(bound: BoundSensor, t: Value, x: Value, u: Value, p: Value) -> Value:
    assert bound.sensor.directions is not None
    V = bound.sensor.directions(t, x, u, p)
    rows = bound.system.n_errors
    if V.shape[0] != rows:
        raise ValueError(
            f"{bound.sensor._who}: directions returned a matrix of shape {V.shape}, expected "
            f"({rows}, k): a row for each of {', '.join(bound.system.error_names)}"
        )
    return V
