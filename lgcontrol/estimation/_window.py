"""WindowInputs: noise, known inputs and measurements as the inputs of a window's steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..systems import System
from ..systems._internal import BoundSensor


@dataclass(frozen=True, eq=False)
class WindowInputs:
    """Places of noise among the inputs of a window, and of known inputs, measurements, flags.

    Attributes
    ----------
    system : System
    noisy : list of int
        Inputs of the system with noise, which comes first, in deviations.
    deviation : ndarray
        Of the noise over a step.
    names : list of str
        Of the data behind it: what is known of each input, then the measurements.
    places : dict of str to (slice, int)
        Values and flag of each measurement, among all inputs of the window.
    empty : ndarray
        Data of a node without measurements.
    """

    system: System[Any]
    noisy: list[int]
    deviation: np.ndarray
    names: list[str]
    places: dict[str, tuple[slice, int]]
    empty: np.ndarray

    @classmethod
    def of(
        cls, system: System[Any], noisy: list[int], deviation: np.ndarray,
        sensors: Mapping[str, BoundSensor],
    ) -> WindowInputs:  # fmt: skip
        """For a system and its measurements."""
        names = [f"known.{name}" for name in system.input_names]
        empty = list(system.nominal_input)
        places: dict[str, tuple[slice, int]] = {}
        for name, bound in sensors.items():
            begin = len(noisy) + len(names)
            names += [f"y.{name}.{i}" for i in range(bound.group.nq)] + [f"has.{name}"]
            empty += [*bound.group.identity, 0.0]
            places[name] = slice(begin, begin + bound.group.nq), begin + bound.group.nq
        return cls(system, noisy, deviation, names, places, np.array(empty))

    @property
    def offset(self) -> int:
        """Number of noisy inputs, behind which the data stand."""
        return len(self.noisy)

    @property
    def size(self) -> int:
        """Number of all inputs of the window."""
        return self.offset + len(self.names)

    @property
    def known(self) -> slice:
        """Places of the system's known inputs among those of the window."""
        return slice(self.offset, self.offset + self.system.n_inputs)

    @property
    def flags(self) -> list[int]:
        """Whether there is each measurement, among the inputs of the window."""
        return [flag for _, flag in self.places.values()]

    def given(self, u: Any) -> Any:
        """All inputs of the system, from those of the window."""
        full: list[Any] = [u[self.offset + i] for i in range(self.system.n_inputs)]
        for k, i in enumerate(self.noisy):
            full[i] = full[i] + float(self.deviation[k]) * u[k]
        return ca.vertcat(*full)
