"""Run: what takes part in a simulation, checked, and the checks themselves."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np

from ..codegen._internal import check_list, check_quotient, level_outside
from ..groups import LieGroup, Product
from ..groups._internal import group_difference
from ..systems import ReferenceLike, Sensor, System, Trajectory
from ..systems._internal import ParameterValues
from ._clock import Clock, as_fraction
from ._contract import Estimator, fault_of_call
from ._controllers import ControlStage
from ._disturbances import Disturbances
from ._motion import PlantMotion
from ._ramp import Ramp
from ._sensing import SimulatedSensor

FEEDBACKS = ("state", "measurement", "estimate")
# A motion that is slower at its end, next to its mean, has come to rest.
AT_REST = 1e-3


@dataclass(frozen=True)
class Batch:
    """Runs that belong together.

    Attributes
    ----------
    runs : int
        How many are to come, which decides what is worth compiling.
    stop : threading.Event
        Set when those that are under way are to end.
    """

    runs: int = 1
    stop: Event = field(default_factory=Event)


batch_here: ContextVar[Batch] = ContextVar("batch", default=Batch())  # noqa: B039 - never set


@contextmanager
def one_of(runs: int) -> Iterator[None]:
    """Simulations of this block are among so many alike."""
    token = batch_here.set(Batch(runs))
    try:
        yield
    finally:
        batch_here.reset(token)


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulationSetup:
    """What takes part in a simulation; made and checked by `simulate`, carried out by `RunLoop`.

    Attributes
    ----------
    plant : System
    start : ndarray, shape (nq,)
    motion : PlantMotion
        How the plant moves between events.
    ramp : Ramp or None
        Controls that are linear from one answer to the next.
    clock : Clock
    end, record_period : int
        In ticks; 0 where only what happens is recorded.
    stages : tuple of ControlStage
        Controllers from the outer to the inner.
    reference : object
        What the outermost is to follow.
    sensors : tuple of SimulatedSensor
    estimator : Estimator or None
    feedback : str
        What the controllers see of the state.
    disturbances : Disturbances
    parameters : ParameterValues
    bounds : tuple of ndarray, or None
        Lower and upper bounds that controls are clipped to.
    settings : mapping
        What the result keeps of all this.
    batch : Batch
        What it is one of.
    progress : callable or None
        Told the fraction done.
    """

    plant: System
    start: np.ndarray
    motion: PlantMotion
    ramp: Ramp | None
    clock: Clock
    end: int
    record_period: int
    stages: tuple[ControlStage, ...]
    reference: ReferenceLike | None
    sensors: tuple[SimulatedSensor, ...]
    estimator: Estimator | None
    feedback: str
    disturbances: Disturbances
    parameters: ParameterValues
    bounds: tuple[np.ndarray, np.ndarray] | None
    settings: Mapping[str, Any]
    batch: Batch
    progress: Callable[[float], None] | None = None


def bind_sensors(
    sensors: Sequence[Sensor], plant: System, seed: int
) -> tuple[SimulatedSensor, ...]:
    """Sensors on the plant; their names must differ."""
    check_list("sensors", sensors, Sensor, "Sensor(…)")
    names = [sensor.name for sensor in sensors]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two sensors are called {name!r}; names are {', '.join(names)}")
    return tuple(SimulatedSensor(sensor, plant, seed) for sensor in sensors)


def check_estimator(
    estimator: object, plant: System, sensors: Sequence[SimulatedSensor], feedback: str | None
) -> None:
    """Refuse what is no estimator, one of another plant, and one that nothing is measured for."""
    if estimator is None:
        return
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an estimator, not the class {estimator.__name__}: make one, "
            f"{estimator.__name__}(…)"
        )
    for name, arguments in (("predict", "t, u, dt"), ("update", "sensor, y")):
        method = getattr(estimator, name, None)
        if not callable(method):
            raise TypeError(f"{type(estimator).__name__} is no estimator: it lacks {name}()")
        if fault_of_call(method, len(arguments.split(", "))):
            raise TypeError(
                f"{type(estimator).__name__}.{name}{inspect.signature(method)} must take "
                f"({arguments})"
            )
    if not sensors:
        raise ValueError("an estimator needs sensors: simulate(..., sensors=[Sensor(...)])")
    model = getattr(estimator, "plant", getattr(estimator, "system", None))
    if isinstance(model, System) and model is not plant:
        _check_estimated(type(estimator).__name__, model, plant, feedback)


def _check_estimated(who: str, model: System, plant: System, feedback: str | None) -> None:
    """Refuse a model whose inputs, or whose state where it is fed back, are not the plant's."""
    remedy = (
        f"Make the estimator of the model of {plant.name}, or wrap it: SensorDriven where a sensor "
        "drives the model, OffsetFree where the model has more states"
    )
    if model.input_names != plant.input_names:
        raise ValueError(
            f"estimator: {who} is of {model.name}, whose inputs are "
            f"{', '.join(model.input_names) or 'none'}; those of the plant {plant.name} are "
            f"{', '.join(plant.input_names) or 'none'}. {remedy}"
        )
    if feedback == "estimate" and model.state != plant.state:
        raise ValueError(
            f"estimator: {who} is of {model.name}, whose state is not that of the plant "
            f"{plant.name}: {group_difference(model.state, plant.state)}. {remedy}"
        )


def choose_feedback(
    wish: str | None,
    plant: System,
    controlled: bool,
    sensors: Sequence[SimulatedSensor],
    estimated: bool,
) -> str:
    """Source of the state that controllers see."""
    if wish is not None and wish not in FEEDBACKS:
        raise ValueError(f"feedback must be one of {', '.join(FEEDBACKS)}, not {wish!r}")
    if wish == "estimate" and not estimated:
        raise ValueError("feedback='estimate' needs an estimator: simulate(..., estimator=...)")
    if wish is None:
        wish = "estimate" if estimated else "measurement" if sensors else "state"
    if wish == "measurement" and controlled:
        if len(sensors) != 1 or sensors[0].group != plant.state:
            raise ValueError(
                f"measurements are fed back only from a single sensor of the whole state "
                f"({plant.state}), there are: "
                + (", ".join(f"{s.sensor.name} ({s.group})" for s in sensors) or "none")
                + "; give an estimator, or feedback='state' to feed back the true state"
            )
    return wish


def check_step_count(seconds: float, times: list[tuple[str, float]], longest: float | None) -> None:
    """Refuse runs of more steps than anybody can wait for, or keep."""
    periods = [time for time in times if not time[0].startswith(("offset", "delay"))]
    times = [*periods, ("max_step", longest or seconds)]
    name, step = min((time for time in times if time[1] > 0), key=lambda time: time[1])
    check_quotient(
        f"steps of {name} = {step:g} s in seconds = {seconds:g}", seconds / step,
        remedy=f"shorten the run or give a longer {name}",
    )  # fmt: skip


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


def warn_beyond_limits(plant: System, name: str, states: np.ndarray) -> None:
    """Warn of states, shape (..., nq), beyond limits of the plant, which nothing keeps.

    Limited quantities are judged with the nominal input.
    """
    if not plant.limits:
        return
    x = np.atleast_2d(states)
    parts = [(plant.state.coordinate_names, x, *plant.state_limits)]
    limited = plant.limited_quantities
    if limited is not None:
        values = limited.function(0.0, x, plant.nominal_input, plant.nominal_parameters)
        parts.append((limited.names, values, limited.lower, limited.upper))
    for names, values, lower, upper in parts:
        excess = np.maximum(values - upper, lower - values)
        for i in np.flatnonzero((excess > 0).any(axis=0)):
            worst = values[np.argmax(excess[:, i]), i]
            warnings.warn(
                f"{name} is beyond the limits of {names[i]}: {worst:g}, allowed are "
                f"{lower[i]:g} … {upper[i]:g}, exceeded by {excess[:, i].max():.3g}; the "
                "simulation does not stop there",
                RuntimeWarning,
                stacklevel=level_outside(),
            )


def early_end(reference: object, seconds: float) -> float | None:
    """When a reference ends that still moves, if that is before the end of a run."""
    if not isinstance(reference, Trajectory) or len(reference) < 2 or reference.x.ndim != 2:
        return None
    end = float(reference.t[-1])
    if end >= seconds * (1 - 1e-9):
        return None
    group: LieGroup = reference.group
    steps = group.minus(reference.x[1:], reference.x[:-1]) / np.diff(reference.t)[:, None]
    speeds = np.linalg.norm(steps, axis=1)
    return end if speeds[-1] > AT_REST * speeds.mean() else None


def fast_losses(plant: System, t: float, x: np.ndarray, p: np.ndarray, period: float) -> str:
    """Name the joint whose losses settle fastest, if that is within a period; empty otherwise."""
    structure = plant.structure
    if structure is None or structure.loss_jacobian is None or not isinstance(plant.state, Product):
        return ""
    M, D = (np.asarray(f(x, p)) for f in (structure.mass_matrix, structure.loss_jacobian))
    inertia = 1.0 / np.diagonal(np.linalg.inv(M))
    rates = np.diagonal(D) / inertia
    worst = int(np.argmax(rates))
    if not rates[worst] * period > 1.0:
        return ""
    name = plant.state.blocks[structure.velocity].tangent_names[worst]
    return (
        f"joint {name!r} has losses of {D[worst, worst]:.3g} N m s/rad (damping and friction) on "
        f"an inertia of {inertia[worst]:.3g} kg m²: they settle within {1 / rates[worst]:.2g} s, "
        f"the loop runs every {period:g} s; leave them out (Multibody.from_urdf(…, losses=False)), "
        "add the motor's inertia (JointProperties(armature=…)), or run the loop faster"
    )
