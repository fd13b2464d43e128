"""Ramp: controls that move linearly from one answer of a controller to the next."""

from __future__ import annotations

import numpy as np

from ..systems import System
from ..systems._internal import with_point_inputs


class Ramp:
    """Controls that are linear in time, as inputs of `ramped`.

    Parameters
    ----------
    plant : System
    period : float
        Time in s from an answer until it is reached.
    """

    def __init__(self, plant: System, period: float) -> None:
        self.period, self.begin = period, 0.0
        self._controls = plant.input_index("control")
        self.others = np.setdiff1d(np.arange(plant.n_inputs), self._controls)
        self.before = self.after = plant.nominal_input[self._controls]

    def turn(self, t: float, before: np.ndarray, after: np.ndarray) -> None:
        """Begin at some controls, towards others."""
        self.begin, self.before, self.after = t, before, after

    def controls(self, t: float) -> np.ndarray:
        """Controls at a time; at the last answer where no other one came."""
        share = min(max((t - self.begin) / self.period, 0.0), 1.0)
        return self.before + share * (self.after - self.before)

    def inputs(self, u: np.ndarray, t: float, seconds: float) -> np.ndarray:
        """Inputs of `ramped` for an interval, by those of the plant in its middle."""
        middle = t + seconds / 2
        push = u[self._controls] - self.controls(middle)
        ends = [self.controls(when) + push for when in (t, t + seconds)]
        return np.concatenate([*ends, u[self.others], [t, seconds]])


def ramped(plant: System) -> System:
    """The plant, with the controls at the start and at the end of an interval as inputs."""
    if plant.is_discrete or plant.errors is not None or plant.project is not None:
        why = "is discrete" if plant.is_discrete else "has constraints"
        raise ValueError(
            f"{plant.name} {why}: its controls cannot be linear in time; make the controller "
            'with hold="zero"'
        )
    return with_point_inputs(plant, [0.0, 1.0])
