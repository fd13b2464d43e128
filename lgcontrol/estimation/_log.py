"""Log: inputs and measurements over time, and the intervals a filter goes through."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ulp
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import as_numbers, check_known, check_shape, level_outside
from ..systems import System
from ..systems._internal import SAME_TIME, BoundSensor
from ._given import known_inputs

GAP = 5.0  # intervals longer than this many usual ones are gaps, and divided
MOST_PIECES = 1000  # that a gap is divided into
ULPS = 4  # of two times that are the same, reached by different sums


@named_options
@dataclass(frozen=True, eq=False)
class Log:
    """Inputs and measurements over time.

    Parameters
    ----------
    t : array_like, shape (N,)
        Times of the inputs, s. Rows whose times do not increase are left out, and counted.
    u : array_like, shape (..., N, k)
        Inputs from each time to the next: all of the system, or its controls and measured inputs.
    measurements : mapping of str to (times, values)
        By sensor: times (K,) when they were taken, in any order; values (..., K, nq).
    at : array_like, optional
        Further times at which the estimate is wanted.

    Warns
    -----
    RuntimeWarning
        If times go back: says where first, and how many rows are left out. If measurements are
        there twice: the message has their name and number.
    """

    t: Any
    u: Any
    measurements: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    at: Any = ()

    def __post_init__(self) -> None:
        t = check_shape("t of a log", self.t, (None,), finite=False)
        u = as_numbers("u of a log", self.u)
        u = u.reshape(-1, 1) if u.ndim < 2 else u
        if not len(t):
            raise ValueError("a log needs at least one time")
        if u.shape[-2] != len(t):
            raise ValueError(f"u of a log has shape {u.shape}, expected (..., {len(t)}, k)")
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "u", u)
        object.__setattr__(self, "at", np.asarray(self.at, dtype=np.float64))
        kept = {}
        for name, pair in self.measurements.items():
            if not (isinstance(pair, list | tuple) and len(pair) == 2):
                raise TypeError(
                    f"{name!r} of a log must be (times, values), got {type(pair).__name__} of "
                    f"length {np.size(pair)}"
                )
            times, values = pair
            times = check_shape(f"times of {name!r}", times, (None,), finite=False)
            values = np.asarray(values, dtype=np.float64)
            values = values[:, None] if values.ndim == 1 else values
            if values.shape[-2] != len(times):
                raise ValueError(
                    f"values of {name!r} have shape {values.shape}, expected (..., {len(times)}, n)"
                )
            _warn_of_copies(name, times, values)
            kept[name] = (times, values)
        object.__setattr__(self, "measurements", kept)
        _warn_of_times_that_go_back(t)

    def __repr__(self) -> str:
        """Times of the inputs, and how many measurements of each kind."""
        t, k = self.t, self.u.shape[-1]
        counts = "".join(
            f", {name}: {len(times)}" for name, (times, _) in self.measurements.items()
        )
        return f"Log({len(t)} times from {t[0]:g} to {t[-1]:g} s, {k} inputs{counts})"


@dataclass(frozen=True, eq=False)
class Rows:
    """Intervals with the measurements at their ends: what one compiled loop goes through."""

    t: np.ndarray  # (N,) start of each
    dt: np.ndarray
    u: np.ndarray  # (..., N, n_inputs)
    y: np.ndarray  # (..., N, ny), measurements side by side
    present: np.ndarray  # (N, M), which there are
    places: dict[str, tuple[np.ndarray, np.ndarray]]  # rows and numbers in the log
    counts: dict[str, Counter[str]]  # of samples left out or divided

    @property
    def ends(self) -> np.ndarray:
        """Ends of the intervals, shape (N,)."""
        return self.t + self.dt

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch axes of the log."""
        return np.broadcast_shapes(self.u.shape[:-2], self.y.shape[:-2])

    @classmethod
    def of(cls, log: Log, system: System, bounds: Mapping[str, BoundSensor]) -> Rows:
        """Rows of a log for the measurements of a filter."""
        if not isinstance(log, Log):
            raise TypeError(
                f"log must be a Log, as Log(t, u, {{{next(iter(bounds), 'name')!r}: (times, "
                f"values)}}) makes it of arrays, not {type(log).__name__}"
            )
        check_known("sensor", bounds, *log.measurements)
        counts: dict[str, Counter[str]] = {name: Counter() for name in ("predict", *bounds)}
        t, u = _increasing(log.t, known_inputs("u of the log", system, log.u), counts["predict"])
        first, last = t[0], t[-1] + (np.median(np.diff(t)) if len(t) > 1 else 0.0)
        taken: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for name in bounds:
            times = np.asarray(log.measurements.get(name, (np.zeros(0), None))[0])
            usable = np.isfinite(times) & (times >= first - SAME_TIME) & (times <= last + SAME_TIME)
            counts[name]["outside the log"] += int((~usable).sum())
            if len(times) and not usable.any():
                _warn_of_another_clock(name, times, first, last)
            numbers = np.flatnonzero(usable)
            numbers = numbers[np.argsort(times[numbers], kind="stable")]
            taken[name] = (times[numbers], numbers)
        at = log.at[(log.at >= first)]
        if system.is_discrete:
            moments = np.concatenate([t, at, *(own for own, _ in taken.values())]) - first
            at = first + system.dt * np.arange(max(whole_steps(system, s) for s in moments) + 1)
        ends, ranks = _ends(t, taken, at, counts["predict"])
        starts = np.concatenate([ends[:1], ends[:-1]])
        held = np.clip(np.searchsorted(t, starts + SAME_TIME, side="right") - 1, 0, None)
        sizes = [bound.group.nq for bound in bounds.values()]
        batch = np.broadcast_shapes(*(v.shape[:-2] for _, v in log.measurements.values()))
        y = np.full((*batch, len(ends), sum(sizes)), np.nan)
        present = np.zeros((len(ends), len(bounds)))
        places, column = {}, 0
        for k, name in enumerate(bounds):
            times, numbers = taken[name]
            rows = _rows_of(ends, times, ranks[name])
            if len(numbers):
                values = log.measurements[name][1]
                if values.shape[-1] != sizes[k]:
                    raise ValueError(
                        f"values of {name!r} have shape {values.shape}, expected (..., K, "
                        f"{sizes[k]}): coordinates on {bounds[name].group}"
                    )
                y[..., rows, column : column + sizes[k]] = values[..., numbers, :]
                present[rows, k] = 1.0
            places[name] = (rows, numbers)
            column += sizes[k]
        dt = np.diff(ends, prepend=ends[0])
        return cls(starts, dt, u[..., held, :], y, present, places, counts)


def whole_steps(system: System, seconds: float, t: float = 0.0) -> int:
    """Steps of a discrete system in an interval, which may be a difference of times near t."""
    steps = round(seconds / system.dt)
    if abs(steps * system.dt - seconds) > max(1e-6 * system.dt, ULPS * ulp(t)):
        raise ValueError(
            f"{system.name} is discrete with dt = {system.dt:g} s: {seconds:g} s is no multiple"
        )
    return steps


def _latest_before(t: np.ndarray) -> np.ndarray:
    """The latest time before each, −∞ at the first."""
    known = np.where(np.isfinite(t), t, -np.inf)
    return np.concatenate([[-np.inf], np.maximum.accumulate(known)[:-1]])


def _warn_of_times_that_go_back(t: np.ndarray) -> None:
    latest = _latest_before(t)
    back = np.flatnonzero(t < latest - SAME_TIME)
    if len(back):
        k = back[0]
        warnings.warn(
            f"times of the log go back: row {k} (the first is 0) is at {t[k]:g} s after one at "
            f"{latest[k]:g} s; {len(back)} of {len(t)} rows are behind and left out with their "
            "inputs. Sort the rows by time, or make a log of each part where a clock was set",
            RuntimeWarning,
            stacklevel=level_outside(),
        )


def _warn_of_another_clock(name: str, times: np.ndarray, first: float, last: float) -> None:
    """A sensor none of whose measurements counts is no detail of a summary."""
    known = times[np.isfinite(times)]
    span = f"from {known.min():g} to {known.max():g} s" if len(known) else "at no finite time"
    warnings.warn(
        f"all {len(times)} measurements of {name!r} are outside of the log: they were taken {span},"
        f" the intervals of the log are from {first:g} to {last:g} s. None is used; give both in "
        "seconds of one clock",
        RuntimeWarning,
        stacklevel=level_outside(),
    )


def _warn_of_copies(name: str, times: np.ndarray, values: np.ndarray) -> None:
    """A copy of a measurement counts as another one, whose error is independent."""
    order = np.argsort(times, kind="stable")
    t, y = times[order], values[..., order, :]
    same = (np.diff(t) == 0) & (y[..., 1:, :] == y[..., :-1, :]).all(axis=-1)
    count = int(same.reshape(-1, same.shape[-1]).all(axis=0).sum()) if len(t) > 1 else 0
    if count:
        warnings.warn(
            f"{name!r} has {count} of {len(t)} measurements twice, with the same time and value; "
            "each counts as another measurement. Leave the copies out",
            RuntimeWarning,
            stacklevel=level_outside(),
        )


def _increasing(t: np.ndarray, u: np.ndarray, counts: Counter[str]) -> tuple[Any, Any]:
    """Times that increase, and their inputs."""
    finite = np.isfinite(t)
    keep = finite & (t > _latest_before(t) + SAME_TIME)
    if not keep.any():
        raise ValueError("no time of the log is finite")
    counts["time not finite"] += int((~finite).sum())
    counts["time back"] += int((finite & ~keep).sum())
    return t[keep], u[..., keep, :]


def _ends(
    t: np.ndarray, taken: Mapping[str, tuple[np.ndarray, Any]], at: np.ndarray,
    counts: Counter[str],
) -> tuple[np.ndarray, dict[str, np.ndarray]]:  # fmt: skip
    """Ends of the intervals, and which of several measurements at one time each is."""
    times = np.sort(np.concatenate([t, *(own for own, _ in taken.values()), at]))
    ends = times[np.concatenate([[True], np.diff(times) > SAME_TIME])]
    usual = float(np.median(np.diff(t))) if len(t) > 1 else np.inf
    gaps = np.flatnonzero(np.diff(ends) > GAP * usual)
    inside = [
        np.linspace(ends[i], ends[i + 1], _pieces(ends[i + 1] - ends[i], usual) + 1)[1:-1]
        for i in gaps
    ]
    counts["gap"] += int(np.count_nonzero(np.diff(t) > GAP * usual))
    ends = np.sort(np.concatenate([ends, *inside]))
    ranks, most = {}, np.ones(len(ends), dtype=int)
    for name, (own, _) in taken.items():
        place = np.searchsorted(ends, own - SAME_TIME)
        begins = np.searchsorted(place, place, side="left")
        ranks[name] = np.arange(len(place)) - begins
        np.maximum.at(most, place, ranks[name] + 1)
    return np.repeat(ends, most), ranks


def _pieces(gap: float, usual: float) -> int:
    return int(min(np.ceil(gap / usual), MOST_PIECES))


def _rows_of(ends: np.ndarray, times: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    return np.searchsorted(ends, times - SAME_TIME) + ranks
