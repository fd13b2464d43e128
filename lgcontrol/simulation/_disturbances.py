"""What pushes the plant: held noise, pulses, sines, functions of time, and kicks of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import unknown_name
from ..systems import System


@dataclass(frozen=True)
class HeldNoise:
    """Normal random inputs, drawn anew every dt and held between.

    Parameters
    ----------
    std_discrete : mapping of str to float
        Standard deviation of each value by input name, in the input's unit.
    dt : float
        Hold time in s.

    Examples
    --------
    >>> HeldNoise({"force_x": 0.5}, dt=0.05).dt
    0.05
    """

    std_discrete: Mapping[str, float]
    dt: float

    def sample(self, t: float, rng: np.random.Generator) -> dict[str, float]:
        """Draw one value per input."""
        return {name: std * rng.normal() for name, std in self.std_discrete.items()}


@dataclass(frozen=True)
class WhiteNoise:
    """White noise of a density, held over dt: standard deviation ``density / √dt``.

    Parameters
    ----------
    density : mapping of str to float
        Square root of the power spectral density by input name, unit·√s.
    dt : float
        Hold time in s.

    Examples
    --------
    >>> WhiteNoise({"gyro": 1e-3}, dt=0.01).density["gyro"]
    0.001
    """

    density: Mapping[str, float]
    dt: float

    def sample(self, t: float, rng: np.random.Generator) -> dict[str, float]:
        """Draw one value per input."""
        return {k: d / np.sqrt(self.dt) * rng.normal() for k, d in self.density.items()}


@dataclass(frozen=True)
class InputSignal:
    """Inputs as a function of time, sampled every dt and held between.

    Parameters
    ----------
    function : callable
        ``function(t) → {input name: value}``.
    dt : float
        Hold time in s.

    Examples
    --------
    >>> gust = InputSignal(lambda t: {"force_x": 1.0 if 1.0 <= t < 1.5 else 0.0}, dt=0.1)
    >>> gust.sample(1.2, None)
    {'force_x': 1.0}
    """

    function: Callable[[float], Mapping[str, float]]
    dt: float

    def sample(self, t: float, rng: np.random.Generator | None) -> dict[str, float]:
        """Values at time t."""
        return dict(self.function(t))


@dataclass(frozen=True)
class Kick:
    """A sudden change of the state: ``X ← plus(X, d)`` at one time.

    Parameters
    ----------
    time : float
        When, in s from the start of the run.
    blocks : mapping of str to array_like
        Tangent vector by block of the state; blocks left out are not changed.

    Examples
    --------
    >>> Kick(1.5, {"twist": [1, 0, -1, 3, -2, 1]}).time
    1.5
    """

    time: float
    blocks: Mapping[str, Any]

    def tangent(self, system: System) -> np.ndarray:
        """The change as one tangent vector of the state."""
        join = getattr(system.state, "join_tangent", None)
        if join is None:
            raise TypeError(f"{system.name}: kicks need a state with named blocks (Product)")
        return join(**{name: np.asarray(d, dtype=float) for name, d in self.blocks.items()})


def input_positions(system: System, names: Any, what: str) -> list[int]:
    """Positions of named inputs in the input vector."""
    for name in names:
        if name not in system.input_names:
            raise KeyError(f"{what}: {unknown_name('input', name, system.input_names)}")
    return [system.input_names.index(name) for name in names]
