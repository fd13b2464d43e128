"""Estimator: what simulate asks of the object that estimates the state."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Estimator(Protocol):
    """Any object with these: ``simulate(plant, controller, …, estimator=…)`` calls them in turn.

    It need not inherit from this class. Two more are used where they are there: ``P``, the
    covariance of ``minus(state, x)`` of shape (dim, dim), for the ±2σ bands of plots, and
    ``reset()``, called before a run.

    Attributes
    ----------
    x : ndarray, shape (nq,)
        The estimate; controllers see it unless ``feedback`` says otherwise.

    Examples
    --------
    A wheel whose speed is known badly, and a sensor of its angle. The error ``minus(y, x)`` is on
    the group, so that the estimate may start anywhere on the circle:

    >>> from lgcontrol import SO2, Input, Sensor, System, simulate
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=[Input("speed", "rad/s")])
    >>> class Observer:
    ...     def __init__(self, x, gain):
    ...         self.x, self.gain = x, gain
    ...     def predict(self, u, dt):
    ...         self.x = SO2.plus(self.x, dt * u)
    ...     def update(self, sensor, y):
    ...         self.x = SO2.plus(self.x, self.gain * SO2.minus(y, self.x))
    >>> run = simulate(
    ...     wheel, lambda t, x, reference: [1.0], dt=0.1, x0=SO2.identity, seconds=5,
    ...     sensors=[Sensor("angle", 0.1)], estimator=Observer(SO2.exp([3.0]), gain=0.3))
    >>> bool(abs(run.estimation_error[-1, 0]) < 1e-6)
    True
    """

    x: np.ndarray

    def predict(self, u: np.ndarray, dt: float) -> None:
        """Move the estimate over an interval.

        Parameters
        ----------
        u : ndarray, shape (n_inputs,)
            All inputs as far as they are known: the controls applied, disturbances nominal.
        dt : float
            Length of the interval in s; intervals differ where events fall between samples.
        """
        ...

    def update(self, sensor: str, y: np.ndarray) -> None:
        """Correct the estimate by a measurement.

        Parameters
        ----------
        sensor : str
            Name of the sensor that delivers.
        y : ndarray
            Coordinates on the group of the sensor's output.
        """
        ...
