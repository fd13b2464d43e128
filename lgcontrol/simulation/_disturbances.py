"""What pushes the plant: noise, pulses and functions of time on its inputs, kicks of its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..codegen import check_shape
from ._clock import check_period, check_time, check_times
from ._random import check_deviation


@dataclass(frozen=True)
class HeldNoise:
    """Normal random inputs, drawn anew every dt and held between.

    Parameters
    ----------
    std_discrete : mapping of str to float
        Standard deviation of each value by input name, in the input's unit.
    dt : float
        Hold time in s.
    offset : float
        Time of the first draw in s.

    Examples
    --------
    >>> HeldNoise({"force_x": 0.5}, dt=0.05).inputs
    ('force_x',)
    """

    std_discrete: Mapping[str, float]
    dt: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_times("HeldNoise", self)
        _ = self._std

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it acts on."""
        return tuple(self.std_discrete)

    def sample(self, t: float, rng: np.random.Generator) -> Mapping[str, float]:
        """Draw one value per input, at time t in s."""
        return _draw(self.inputs, self._std, rng)

    @cached_property
    def _std(self) -> np.ndarray:
        values = list(self.std_discrete.values())
        return check_deviation("std_discrete of HeldNoise", values, (len(values),))


@dataclass(frozen=True)
class WhiteNoise:
    """White noise of a density, held over dt: standard deviation ``density / √dt``.

    Parameters
    ----------
    density : mapping of str to float
        Square root of the two-sided power spectral density by input name, unit·√s (which is
        unit/√Hz).
    dt : float
        Hold time in s.
    offset : float
        Time of the first draw in s.

    Examples
    --------
    >>> WhiteNoise({"force_x": 1e-3}, dt=0.01).density["force_x"]
    0.001
    """

    density: Mapping[str, float]
    dt: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_times("WhiteNoise", self)
        _ = self._std

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it acts on."""
        return tuple(self.density)

    def sample(self, t: float, rng: np.random.Generator) -> Mapping[str, float]:
        """Draw one value per input, at time t in s."""
        return _draw(self.inputs, self._std, rng)

    @cached_property
    def _std(self) -> np.ndarray:
        values = list(self.density.values())
        density = check_deviation("density of WhiteNoise", values, (len(values),))
        return density / np.sqrt(self.dt)


@dataclass(frozen=True)
class InputSignal:
    """Inputs as a function of time, sampled every dt and held between.

    Parameters
    ----------
    function : callable
        ``function(t) → {input name: value}``; inputs left out are not pushed.
    dt : float
        Hold time in s.
    offset : float
        Time of the first sample in s.

    Examples
    --------
    >>> swell = InputSignal(lambda t: {"force_x": 2.0 * np.sin(t)}, dt=0.1)
    >>> swell.sample(0.0, None)
    {'force_x': np.float64(0.0)}
    """

    function: Callable[[float], Mapping[str, float]]
    dt: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_times("InputSignal", self)

    def sample(self, t: float, rng: np.random.Generator | None) -> Mapping[str, float]:
        """Values at time t in s."""
        return self.function(t)


@dataclass(frozen=True)
class Pulse:
    """Constant inputs from one time to another, both exact.

    Parameters
    ----------
    values : mapping of str to float
        Value by input name, in the input's unit.
    start : float
        When it begins, in s.
    duration : float
        How long it lasts, in s; infinite for a step.

    Examples
    --------
    >>> gust = Pulse({"force_x": 1.0}, start=1.0, duration=0.5)
    >>> gust.inputs
    ('force_x',)
    """

    values: Mapping[str, float]
    start: float
    duration: float = np.inf

    def __post_init__(self) -> None:
        check_time("start of a Pulse", self.start)
        if self.duration != np.inf:
            check_period("duration of a Pulse", self.duration)
        for name, value in self.values.items():
            check_shape(f"value of {name!r} of a Pulse", value, ())

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it acts on."""
        return tuple(self.values)


@dataclass(frozen=True)
class Kick:
    """A sudden change of the state: ``X ← plus(X, d)`` at one time.

    Parameters
    ----------
    time : float
        When, in s from the start of the run.
    change : mapping of str to array_like, or array_like of shape (dim,)
        Tangent vector by block of the state (blocks left out are not changed), or of the whole
        state.

    Examples
    --------
    >>> Kick(1.5, {"twist": [1, 0, -1, 3, -2, 1]}).time
    1.5
    """

    time: float
    change: Any

    def __post_init__(self) -> None:
        check_time("time of a Kick", self.time)


def _draw(
    names: tuple[str, ...], std: np.ndarray, rng: np.random.Generator
) -> dict[str, np.float64]:
    return dict(zip(names, std * rng.normal(size=len(names)), strict=True))
