"""What a filter is given: measurements, densities, covariances by name; checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import (
    UnknownNameError,
    as_numbers,
    check_known,
    check_list,
    check_semidefinite,
    check_shape,
    level_outside,
    unknown_name,
)
from ..systems import Sensor, System
from ..systems._internal import BoundSensor, check_start, from_wide_to_narrow, not_a_system

OFF_UNIT = 0.1  # squared length of a unit vector is off by more: no rounding, another unit or order


def bind_all(system: System, sensors: Iterable[Sensor]) -> dict[str, BoundSensor]:
    """Sensors on a system, by name."""
    if not isinstance(system, System):
        raise TypeError(not_a_system("system", system))
    found: dict[str, BoundSensor] = {}
    for sensor in check_list("sensors", sensors, Sensor, "Sensor(…)"):
        if sensor.name in (*found, "predict"):
            raise ValueError(f"two sensors are called {sensor.name!r}")
        found[sensor.name] = sensor.bind(system)
        _check_noise(found[sensor.name])
    return found


def _check_noise(bound: BoundSensor) -> None:
    """Refuse what a filter would take as exact: its covariance would be singular from then on."""
    name, R = bound.sensor.name, bound.covariance
    exact = np.flatnonzero(np.diagonal(R) <= 0)
    if len(exact):
        entries = ", ".join(bound.group.tangent_names[i] for i in exact)
        raise ValueError(
            f"sensor {name!r} has no noise in {entries}, and an estimator would take it as "
            "exact: give std_discrete, the standard deviation of a measurement (or density, or "
            "covariance_discrete)"
        )
    if np.linalg.matrix_rank(bound.noise_factor) < len(R):
        raise ValueError(
            f"covariance_discrete of measurement {name!r} is singular, and an estimator would take "
            f"a combination of its entries as exact: add noise to each of the {len(R)} entries"
        )


def first_estimate(system: System, x0: Any, p: np.ndarray) -> np.ndarray:
    """First estimate, shape (nq,): as given, or the home of the system."""
    return check_start(system, "x0", system.home if x0 is None else x0, p)


def measured(
    sensors: Mapping[str, BoundSensor], name: str, y: ArrayLike
) -> tuple[BoundSensor, np.ndarray]:
    """Sensor of a name with what it measured, of the right size; that may be no number."""
    check_known("sensor", sensors, name)
    bound, y = sensors[name], as_numbers(f"y of {name!r}", y)
    y = y.reshape(1) if y.ndim == 0 and bound.group.nq == 1 else y
    if y.shape != (bound.group.nq,):
        raise ValueError(
            f"measurement {name!r} has shape {y.shape}, expected ({bound.group.nq},): "
            f"coordinates on {bound.group}"
        )
    return bound, y


def known_inputs(what: str, system: System, u: ArrayLike) -> np.ndarray:
    """All inputs, shape (..., n_inputs), from all or from the controls and measured ones.

    Those that are not given are nominal; those that are no number are the filter's to hold. `what`
    is the name of the call, for the message.
    """
    u = np.atleast_1d(as_numbers(f"u of {what}", u))
    if u.shape[-1:] == (system.n_inputs,):
        return u
    known = np.sort(np.concatenate([system.input_index(r) for r in ("control", "measured")]))
    if u.shape[-1:] != (len(known),):
        message = (
            f"{what} has shape {u.shape}, expected ({system.n_inputs},): "
            f"{', '.join(system.input_names)}"
        )
        if 0 < len(known) < system.n_inputs:
            message += (
                f"; or ({len(known)},), the controls and measured inputs: "
                f"{', '.join(system.input_names[i] for i in known)}"
            )
        raise ValueError(message)
    full = np.broadcast_to(system.nominal_input, (*u.shape[:-1], system.n_inputs)).copy()
    full[..., known] = u
    return full


def interval_inputs(what: str, system: System, u: ArrayLike) -> np.ndarray:
    """`known_inputs` of one interval, shape (n_inputs,)."""
    full = known_inputs(what, system, u)
    if full.ndim != 1:
        raise ValueError(
            f"{what} has shape {np.shape(u)}, expected one row of inputs: a whole log goes through "
            "run(Log(t, u, …))"
        )
    return full


def for_each(value: Any, names: list[str]) -> dict[str, Any]:
    """Values by measurement, from one for all or a mapping."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    check_known("sensor", names, *value)
    return dict(value)


def warn_of_no_noise(who: str, system: System) -> None:
    """Warn of a filter of a class that was given no noise; an empty mapping says that none is."""
    names = system.input_names
    remedy = (
        f"Give noise={{{names[0]!r}: density}} in unit/√Hz (inputs are {', '.join(names)})"
        if names
        else "Give the model an input of role noise, and its density as noise={name: density}"
    )
    warnings.warn(
        f"{who} of {system.name} has no noise: its covariance shrinks to zero, and measurements "
        f"count less and less. {remedy}, or noise={{}} for a model that is exact",
        RuntimeWarning,
        stacklevel=level_outside(),
    )


def noise_densities(system: System, noise: Mapping[str, float]) -> tuple[list[int], np.ndarray]:
    """Places of the noisy inputs, and their densities."""
    if not isinstance(noise, Mapping):
        raise TypeError(f"noise maps names of inputs to their densities, got {noise!r}")
    places: dict[str, list[int]] = {}
    for name, value in noise.items():
        places[name] = named(name, system.input_names)
        if not places[name]:
            raise UnknownNameError(
                unknown_name("input", name, system.input_names)
                + " The noise of a model comes in by its inputs (lg.Input(…, role='noise')), that "
                "of a measurement is its std_discrete."
            )
        if not (isfinite(value) and value >= 0):
            raise ValueError(f"density of the noise of {name!r} must not be negative, got {value}")
    found: dict[int, float] = {}
    for name in from_wide_to_narrow("noise", places):
        found |= dict.fromkeys(places[name], float(noise[name]))
    return list(found), np.array(list(found.values()), dtype=np.float64)


def named(name: str, known: Sequence[str]) -> list[int]:
    """Places of the names that are this one, or begin with it and a dot."""
    return [i for i, entry in enumerate(known) if entry == name or entry.startswith(f"{name}.")]


def first_covariance(system: System, x0: np.ndarray, P0: Any, std0: Any) -> np.ndarray:
    """Covariance of the first estimate, from a matrix or from deviations."""
    n = system.n_errors
    if (P0 is None) == (std0 is None):
        raise ValueError(
            "give P0, the covariance of system.error(truth, x0), or std0, its deviations"
        )
    if P0 is not None:
        return check_semidefinite("P0", check_shape("P0", P0, (n, n)), system.error_names)
    if isinstance(std0, Mapping):
        deviation, known = np.full(n, np.nan), system.error_names
        places = {name: named(name, known) for name in std0}
        for name, some in places.items():
            if not some:
                blocks = dict.fromkeys(entry.rpartition(".")[0] or entry for entry in known)
                raise UnknownNameError(unknown_name("block or error", name, [*blocks, *known]))
        for name in from_wide_to_narrow("std0", places):
            given = std0[name]
            deviation[places[name]] = check_shape(f"std0[{name!r}]", given, [None] * np.ndim(given))
        missing = [system.error_names[i] for i in np.flatnonzero(np.isnan(deviation))]
        if missing:
            raise ValueError(f"std0 lacks {', '.join(missing)}")
    else:
        given = as_numbers("std0", std0)
        deviation = check_shape("std0", np.broadcast_to(given, (n,)) if not given.ndim else given,
                                (n,))  # fmt: skip
    if (deviation < 0).any():
        raise ValueError(f"std0 must not be negative, got {std0}")
    return np.diag(deviation**2)
