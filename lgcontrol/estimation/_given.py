"""What a filter is given: measurements, densities, covariances by name; checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import (
    UnknownNameError,
    check_list,
    check_semidefinite,
    check_shape,
    unknown_name,
)
from ..systems import (
    BoundMeasurement,
    Measurement,
    System,
    narrower_later,
    not_a_system,
)
from ._normal import chi_squared_quantile

OFF_UNIT = 0.1  # squared length of a unit vector is off by more: no rounding, another unit or order


def bind_all(system: System, measurements: Iterable[Measurement]) -> dict[str, BoundMeasurement]:
    """Measurements on a system, by name."""
    if not isinstance(system, System):
        raise TypeError(not_a_system("system", system))
    found: dict[str, BoundMeasurement] = {}
    for measurement in check_list("measurements", measurements, Measurement, "Measurement(…)"):
        if measurement.name in (*found, "predict"):
            raise ValueError(f"two measurements are called {measurement.name!r}")
        found[measurement.name] = measurement.bind(system)
    return found


def measured(
    measurements: Mapping[str, BoundMeasurement], name: str, y: ArrayLike
) -> tuple[BoundMeasurement, np.ndarray]:
    """Measurement of a name with what it measured, of the right size; that may be no number."""
    if name not in measurements:
        raise UnknownNameError(unknown_name("measurement", name, measurements))
    bound, y = measurements[name], np.asarray(y, dtype=np.float64)
    if y.shape != (bound.group.nq,):
        raise ValueError(
            f"measurement {name!r} has shape {y.shape}, expected ({bound.group.nq},): "
            f"coordinates on {bound.group}"
        )
    return bound, y


def known_inputs(what: str, system: System, u: ArrayLike) -> np.ndarray:
    """Inputs of an interval, shape (n_inputs,); those that are no number are the filter's to hold.

    Parameters
    ----------
    what : str
        Of which call they are, for the message.
    system : System
    u : array_like, shape (n_inputs,)
    """
    u = np.asarray(u, dtype=np.float64)
    if u.shape != (system.n_inputs,):
        raise ValueError(
            f"{what} has shape {u.shape}, expected ({system.n_inputs},): "
            f"{', '.join(system.input_names)}"
        )
    return u


def for_each(value: Any, names: list[str]) -> dict[str, Any]:
    """Values by measurement, from one for all or a mapping."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    for name in value:
        if name not in names:
            raise UnknownNameError(unknown_name("measurement", name, names))
    return dict(value)


def gate_threshold(name: str, probability: float, m: int) -> float:
    """Squared distance, in deviations, that a good measurement keeps with a probability."""
    if isinstance(probability, str) or not 0 < probability < 1:
        raise ValueError(f"gate of {name!r} is a probability between 0 and 1, got {probability!r}")
    return chi_squared_quantile(probability, m)


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
    for name in narrower_later("noise", places):
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
        for name in narrower_later("std0", places):
            given = std0[name]
            deviation[places[name]] = check_shape(f"std0[{name!r}]", given, [None] * np.ndim(given))
        missing = [system.error_names[i] for i in np.flatnonzero(np.isnan(deviation))]
        if missing:
            raise ValueError(f"std0 lacks {', '.join(missing)}")
    else:
        given = np.asarray(std0, dtype=np.float64)
        deviation = check_shape("std0", np.broadcast_to(given, (n,)) if not given.ndim else given,
                                (n,))  # fmt: skip
    if (deviation < 0).any():
        raise ValueError(f"std0 must not be negative, got {std0}")
    return np.diag(deviation**2)
