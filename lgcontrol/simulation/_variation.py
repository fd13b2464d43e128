"""Variations of a task: what may differ from the nominal loop, and the loop in which it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from importlib import import_module
from math import isfinite, log
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, unknown_name
from ..systems import Sensor, System
from ..systems._internal import ParameterValues
from ._disturbances import HeldNoise, InputSignal, Kick, Pulse, WhiteNoise
from ._scaled_plant import DRAG, HEAVINESS, Late, scaled_inertia

LEAST_MASS = 0.1  # share of the masses that "perturb" has to leave
# Names of variations that every task has; the others name what they concern after a point.
FACTOR_NAMES = ("mass", "drag", "disturbances", "noise")
PERTURBED_MASS = 0.2  # share by which "perturb" changes masses and inertias at a factor of one
PARTS = ("start", "input", "noise", "bias", "delay")


@named_options
@dataclass(frozen=True)
class Vary:
    """Something that differs from case to case of a campaign, and how.

    Parameters
    ----------
    name : str
        A parameter of the plant; "mass" and "drag", factors on all masses and inertias and on the
        drag (see `scaled_inertia`); "start.COMPONENT", added to the start in the state's tangent
        coordinates, or "start.BLOCK" for a block of one component; "input.NAME", a constant input
        on top of the others; "disturbances", a factor on those of the task; "noise" or
        "noise.SENSOR", a factor on deviations; "bias.SENSOR" or "bias.SENSOR.COMPONENT", added to
        the bias; "delay" of the controller or "delay.SENSOR", in s on top of its own; "perturb",
        the factor of `robustness`: at 1 masses 20 % larger, twice the drag and answers one sample
        late, at -1 the same with masses 20 % smaller; "plant", with ``values`` that name functions
        as "module:function"; or an argument of the design.
    low, high : float, optional
        Ends of a uniform distribution.
    values : sequence, optional
        Values taken instead, each as often: a list of numbers, texts or true and false.
    mean, std : float, optional
        Of a normal distribution instead.
    relative : bool
        Whether numbers are factors on the nominal value. "mass", "drag", "disturbances" and
        "noise" are factors anyway.
    log : bool
        Whether the logarithm is distributed uniformly between ``low`` and ``high``.
    unit : str
        For people; compared with the plant's where it has one.

    Examples
    --------
    >>> Vary("mass", 0.8, 1.2, relative=True).quantile(0.25)
    0.9
    >>> print(Vary("start.pose.x", mean=0.0, std=0.5, unit="m"))
    start.pose.x: normal, mean 0 m, deviation 0.5 m
    """

    name: str
    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    values: tuple[Any, ...] = ()
    mean: float | None = None
    std: float | None = None
    relative: bool = False
    log: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        plain = [one.item() if isinstance(one, np.generic) else one for one in self.values]
        for one in plain:
            if not isinstance(one, int | float | str | None):
                raise TypeError(
                    f"Vary({self.name!r}) takes values that are numbers, texts, true and false or "
                    f"None, got {type(one).__name__}: give their names, or numbers from 0 on, and "
                    "let the design choose"
                )
        object.__setattr__(self, "values", tuple(plain))
        ranged, normal = self.low is not None, self.mean is not None
        if (
            ranged + normal + bool(self.values) != 1
            or ranged != (self.high is not None)
            or normal != (self.std is not None)
        ):
            raise ValueError(
                f"Vary({self.name!r}) takes low and high, or mean and std, or values: give one of "
                "the three"
            )
        numbers = [
            float(one) for one in (self.low, self.high, self.mean, self.std) if one is not None
        ]
        if not all(map(isfinite, numbers)):
            raise ValueError(f"Vary({self.name!r}) must have finite numbers, got {numbers}")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(
                f"Vary({self.name!r}) must have low < high, got {self.low:g} and {self.high:g}"
            )
        if self.std is not None and not self.std > 0:
            raise ValueError(f"Vary({self.name!r}) must have std > 0, got {self.std:g}")
        if self.log and not (self.low is not None and self.low > 0):
            raise ValueError(f"Vary({self.name!r}, log=True) must have 0 < low, got {self.low}")

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else " × nominal" if self.relative else ""
        if self.values:
            what = f"one of {', '.join(map(str, self.values))}"
        elif self.mean is not None:
            what = f"normal, mean {self.mean:g}{unit}, deviation {self.std:g}{unit}"
        else:
            what = f"{self.low:g} to {self.high:g}{unit}{', by its logarithm' if self.log else ''}"
        return f"{self.name}: {what}"

    def quantile(self, share: float) -> Any:
        """Value below which a share of the distribution lies; of a list the entry.

        Parameters
        ----------
        share : float
            From 0 to 1, exclusive for normal distributions.
        """
        if self.values:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        if self.mean is not None and self.std is not None:
            return float(self.mean + self.std * ndtri(share))
        assert self.low is not None and self.high is not None
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return float(self.low + share * (self.high - self.low))

    def deviation(self, value: Any) -> float:
        """How far a value is from the middle: 1 at the ends of a range, or at three deviations.

        Lists of other things than numbers have none: 0.
        """
        if self.values:
            numbers = [v for v in self.values if isinstance(v, float | int)]
            if len(numbers) != len(self.values) or min(numbers) == max(numbers):
                return 0.0
            return (2 * value - min(numbers) - max(numbers)) / (max(numbers) - min(numbers))
        if self.mean is not None and self.std is not None:
            return (value - self.mean) / (3 * self.std)
        assert self.low is not None and self.high is not None
        low, high, value = (
            (log(v) for v in (self.low, self.high, value)) if self.log
            else (self.low, self.high, value)
        )  # fmt: skip
        return (2 * value - low - high) / (high - low)


def vary(task: Any, values: Mapping[str, Any], relative: Collection[str]) -> Any:
    """What `Task.varied` does."""
    left, options = dict(values), dict(task.options)
    plant, controller, x0 = task.plant, task.controller, task.x0
    if "plant" in left:
        plant = _made(left.pop("plant"), plant)
    _check_values(plant, left)
    given = ParameterValues(plant.parameters, plant.nominal_parameters, options.get("p"))
    numbers: dict[str, Any] = dict(given.by_name())
    own = {name: value for name, value in left.items() if name in plant.parameter_names}
    for name, value in own.items():
        numbers[name] = value * numbers[name] if name in relative else value
        del left[name]
    _refuse_relative(left, relative)
    if "perturb" in left:  # of factors: the plant's own "mass" and "drag" are taken out above
        _perturb(left, float(getattr(controller, "dt", 0.0)))
    if "mass" in left or "drag" in left:
        share, drag = left.pop("mass", 1.0) - 1.0, left.pop("drag", 1.0) - 1.0
        if task.perturbed is None:
            plant, further = _weaker(plant), {HEAVINESS: 1.0 + share, DRAG: 1.0 + drag}
        else:
            plant, further = task.perturbed(share, drag)
        numbers |= further
    if numbers:
        options["p"] = numbers
    pushes: Any = options.get("disturbances", ())
    pushes = list(pushes) if isinstance(pushes, list | tuple) else [pushes]
    if "disturbances" in left:
        factor = left.pop("disturbances")
        if not pushes:
            raise ValueError("'disturbances' varies those of the task, which has none")
        pushes = [_scaled(one, factor) for one in pushes]
    if "delay" in left:
        controller = Late(controller, left.pop("delay"))
    change, sensing = np.zeros(plant.n_errors), {}
    for name, value in left.items():
        kind, _, part = name.partition(".")
        if kind == "start":
            change[plant.error_names.index(_component(plant, part))] = value
        elif kind == "input":
            if part not in plant.input_names:
                raise UnknownNameError(unknown_name("input", part, list(plant.input_names)))
            pushes.append(Pulse({part: value}, 0.0))
        else:
            sensing[name] = value
    if pushes:
        options["disturbances"] = pushes
    if sensing:
        options["sensors"] = _sensors(options.get("sensors", ()), plant, sensing)
    x0 = plant.retract(x0, change) if change.any() else x0
    return with_fields(task, plant=plant, controller=controller, x0=x0, options=options)


def _component(plant: System[Any], name: str) -> str:
    """Component of the start's error that a name means: its own, or its block's if that has one."""
    names = list(plant.error_names)
    if name in names:
        return name
    parts = [one for one in names if one.startswith(f"{name}.")]
    if len(parts) == 1:
        return parts[0]
    if parts:
        told = ", ".join(f"start.{one}" for one in parts)
        raise ValueError(
            f"the start's {name!r} has {len(parts)} components, and a variation is one number: "
            f"vary {told}"
        )
    raise UnknownNameError(unknown_name("component of the start", name, names))


def with_fields(one: Any, **fields: Any) -> Any:
    """Copy of a record with other fields that its constructor does not look at.

    Campaigns make thousands: `dataclasses.replace` takes ten times as long.
    """
    made = object.__new__(type(one))
    vars(made).update({name: getattr(one, name) for name in type(one).__dataclass_fields__})
    vars(made).update(fields)
    return made


def _perturb(values: dict[str, Any], dt: float) -> None:
    """Put masses, drag and delay in place of the factor of a perturbation."""
    factor = values.pop("perturb")
    mass = 1 + PERTURBED_MASS * factor
    if mass <= LEAST_MASS:
        raise ValueError(
            f"'perturb' = {factor:g} leaves {mass:.2g} of the masses: give at least "
            f"{(LEAST_MASS - 1) / PERTURBED_MASS:g}"
        )
    values["mass"] = values.get("mass", 1.0) * mass
    values["drag"] = values.get("drag", 1.0) * (1 + abs(factor))
    values["delay"] = values.get("delay", 0.0) + abs(factor) * dt


def _check_values(
    plant: System[Any], values: Mapping[str, Any], arguments: Collection[str] = ()
) -> None:
    """Refuse names that neither plant nor design has, and values that are no numbers."""
    for name, value in values.items():
        kind, _, part = name.partition(".")
        known = [*plant.parameter_names, *FACTOR_NAMES, "bias", "delay", "perturb"]
        if name not in known and not (kind in PARTS and part):
            known += ["plant", *(f"{kind}.…" for kind in PARTS), *arguments]
            raise UnknownNameError(unknown_name("variation", name, known))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(
                f"{name!r} varies by numbers, got {value!r}: give a range such as 0.8:1.2, or a "
                "list of numbers"
            )


def _refuse_relative(left: Mapping[str, Any], relative: Collection[str]) -> None:
    wrong = sorted(
        name
        for name in left
        if name in relative and name.partition(".")[0] not in FACTOR_NAMES
    )  # fmt: skip
    if wrong:
        raise ValueError(
            f"{wrong[0]!r} has no nominal value to be relative to: give numbers in its unit"
        )


@lru_cache(maxsize=4)
def _weaker(plant: System[Any]) -> System[Any]:
    """Plant whose masses and drag are parameters: made and compiled once."""
    return scaled_inertia(plant)


@lru_cache(maxsize=8)
def _made(name: str, nominal: System[Any]) -> System[Any]:
    """Plant that a text "module:function" names; "nominal" is the task's own."""
    if name == "nominal":
        return nominal
    module, colon, function = str(name).partition(":")
    if not colon:
        raise ValueError(f'a plant must be "nominal" or "module:function", got {name!r}')
    return getattr(import_module(module), function)()


def _scaled(one: Any, factor: float) -> Any:
    """A disturbance as many times as large."""

    def times(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {key: times(value) for key, value in values.items()}
        return factor * np.asarray(values, dtype=np.float64)

    if isinstance(one, HeldNoise | WhiteNoise):
        sizes = getattr(one, one.size)
        made = with_fields(
            one, **{one.size: dict(zip(sizes, times([*sizes.values()]), strict=True))}
        )
        _ = made.deviations  # which refuses negative ones
        return made
    if isinstance(one, Pulse):
        return with_fields(one, values=times(one.values))
    if isinstance(one, Kick):
        return with_fields(one, change=times(one.change))
    if isinstance(one, InputSignal):
        return replace(one, function=_ScaledFunction(one.function, factor))
    raise ValueError(
        f"'disturbances' scales HeldNoise, WhiteNoise, InputSignal, Pulse and Kick, not "
        f"{type(one).__name__}: vary an argument of the design instead"
    )


@dataclass(frozen=True)
class _ScaledFunction:
    """A function of time that gives inputs by name, as many times as large."""

    function: Callable[[float], Mapping[str, float]]
    factor: float

    def __call__(self, t: float) -> dict[str, float]:
        return {name: self.factor * value for name, value in self.function(t).items()}


def _sensors(given: Any, plant: System[Any], values: Mapping[str, float]) -> list[Sensor]:
    """Sensors with other noise, bias and delay."""
    found: Any = given(plant) if callable(given) else given
    sensors = {one.name: one for one in ([found] if isinstance(found, Sensor) else found)}
    if not sensors:
        raise ValueError(f"{next(iter(values))!r} varies a sensor, and the task has no sensors")
    for name, value in values.items():
        kind, _, part = name.partition(".")
        sensor, _, component = part.partition(".")
        chosen = [sensor] if sensor else list(sensors)
        for one in chosen:
            if one not in sensors:
                raise UnknownNameError(unknown_name("sensor", one, list(sensors)))
            sensors[one] = _changed(sensors[one], plant, kind, component, value)
    return list(sensors.values())


def _changed(sensor: Sensor, plant: System[Any], kind: str, component: str, value: float) -> Sensor:
    if kind == "delay":
        return replace(sensor, delay=sensor.delay + value)
    if kind == "noise":
        covariance = sensor.covariance_discrete
        return replace(
            sensor,
            std_discrete=value * np.asarray(sensor.std_discrete),
            density=value * np.asarray(sensor.density),
            covariance_discrete=None if covariance is None else value**2 * np.asarray(covariance),
        )
    group = sensor.bind(plant).group
    bias = np.array(np.broadcast_to(sensor.bias, group.dim), dtype=np.float64)
    names = list(group.tangent_names)
    if component and component not in names:
        raise UnknownNameError(unknown_name(f"component of {sensor.name}", component, names))
    bias[[names.index(component)] if component else slice(None)] += value
    return replace(sensor, bias=bias)


def check_variations(
    task: Any, variations: Sequence[Vary], arguments: Collection[str] = ()
) -> None:
    """Refuse names that a task does not have, and units that are not those of its plant.

    The message lists the arguments of the design, too.

    Raises
    ------
    ValueError
    """
    names = [one.name for one in variations]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is varied twice: give one Vary for it")
    values = {one.name: one.quantile(0.5) for one in variations}
    if "plant" not in values:
        _check_values(task.plant, values, arguments)
    vary(
        task,
        values,
        {one.name for one in variations if one.relative},
    )
    plant = task.plant
    units = {one.name: one.unit for one in plant.parameters} | {"delay": "s"}
    units |= {
        f"start.{name}": unit
        for name, unit in zip(plant.error_names, plant.error_units, strict=True)
    }
    units |= {f"input.{one.name}": one.unit for one in plant.inputs}
    for one in variations:
        name = one.name
        if name.startswith("start."):
            name = f"start.{_component(plant, name.removeprefix('start.'))}"
        unit = units.get(name, "s" if name.startswith("delay.") else "")
        if one.unit and unit and one.unit != unit and not one.relative:
            raise ValueError(
                f"{one.name!r} varies in {one.unit}, the plant has it in {unit}: give numbers in "
                f"{unit}"
            )
