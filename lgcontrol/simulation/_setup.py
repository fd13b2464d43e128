"""Checks before a run, and what follows from them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..groups import check_element
from ..systems import System
from ._clock import Clock, as_fraction
from ._sensor import BoundSensor, Sensor

FEEDBACKS = ("state", "measurement", "estimate")


def start_state(plant: System, x0: Any) -> np.ndarray:
    """The start as coordinates on the group; a TrimPoint has them as ``x``."""
    return check_element("x0", getattr(x0, "x", x0), plant.state, tolerance=np.inf)


def warn_beyond_limits(plant: System, name: str, states: np.ndarray) -> None:
    """Warn of states, shape (..., nq), beyond limits of the plant, which nothing keeps."""
    if not plant.limits:
        return
    x = np.atleast_2d(states)
    lower, upper = plant.state_limits
    for i in np.flatnonzero(((x < lower) | (x > upper)).any(axis=0)):
        worst = x[np.argmax(np.maximum(x[:, i] - upper[i], lower[i] - x[:, i])), i]
        warnings.warn(
            f"{name} is beyond the limits of {plant.state.coordinate_names[i]}: {worst:g}, allowed "
            f"are {lower[i]:g} … {upper[i]:g}; the simulation does not stop there",
            RuntimeWarning,
            stacklevel=4,
        )


def bind_sensors(sensors: Sequence[Sensor], plant: System, seed: int) -> list[BoundSensor]:
    """Sensors on the plant; their names must differ."""
    for sensor in sensors:
        if not isinstance(sensor, Sensor):
            raise TypeError(f"sensors must be a list of Sensor, got {type(sensor).__name__}")
    names = [sensor.name for sensor in sensors]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two sensors are called {name!r}; names are {', '.join(names)}")
    return [sensor.bind(plant, seed) for sensor in sensors]


def choose_feedback(
    wish: str | None,
    plant: System,
    controlled: bool,
    sensors: list[BoundSensor],
    estimator: Any,
) -> str:
    """Where the controllers have the state from."""
    if wish is not None and wish not in FEEDBACKS:
        raise ValueError(f"feedback must be one of {', '.join(FEEDBACKS)}, not {wish!r}")
    if estimator is not None:
        for name in ("predict", "update"):
            if not callable(getattr(estimator, name, None)):
                raise TypeError(f"{type(estimator).__name__} is no estimator: it lacks {name}()")
        if not sensors:
            raise ValueError("an estimator needs sensors: simulate(..., sensors=[Sensor(...)])")
    elif wish == "estimate":
        raise ValueError("feedback='estimate' needs an estimator: simulate(..., estimator=...)")
    if wish is None:
        wish = "estimate" if estimator is not None else "measurement" if sensors else "state"
    if wish == "measurement" and controlled:
        if len(sensors) != 1 or sensors[0].group != plant.state:
            raise ValueError(
                f"measurements are fed back only from a single sensor of the whole state "
                f"({plant.state}), there are: "
                + (", ".join(f"{s.sensor.name} ({s.group})" for s in sensors) or "none")
                + "; give an estimator, or feedback='state' to feed back the true state"
            )
    return wish


def make_clock(plant: System, times: list[tuple[str, float]]) -> Clock:
    """Clock of all times; those of a discrete plant must be multiples of its sample time."""
    if plant.is_discrete:
        sample = as_fraction(plant.dt)
        for name, value in times:
            if (as_fraction(value) / sample).denominator != 1:
                raise ValueError(
                    f"{name} = {value:g} s is no multiple of {plant.dt:g} s, the sample time of "
                    f"{plant.name}"
                )
        times = [*times, ("dt", plant.dt)]
    return Clock.dividing(value for _, value in times)
