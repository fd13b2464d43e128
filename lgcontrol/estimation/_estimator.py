"""Estimator: what simulate asks of the object that estimates the state."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Estimator(Protocol):
    """Any object with these: ``simulate(plant, controller, …, estimator=…)`` calls them in turn.

    It need not inherit from this class; `FullEstimator` says what is used where it is there.

    Attributes
    ----------
    x : ndarray, shape (nq,)
        The estimate; controllers see it unless ``feedback`` says otherwise.

    Examples
    --------
    A wheel whose speed is known badly, and a sensor of its angle. The error ``minus(y, x)`` is on
    the group, so that the estimate may start anywhere on the circle:

    >>> from lgcontrol.groups import SO2
    >>> class Observer:
    ...     def __init__(self, x, gain):
    ...         self.x, self.gain = x, gain
    ...     def predict(self, t, u, dt):
    ...         self.x = SO2.plus(self.x, dt * u)
    ...     def update(self, name, y):
    ...         self.x = SO2.plus(self.x, self.gain * SO2.minus(y, self.x))
    >>> observer, truth = Observer(SO2.exp([3.0]), gain=0.3), SO2.identity
    >>> isinstance(observer, Estimator)
    True
    >>> for k in range(50):
    ...     truth = SO2.plus(truth, [0.1])
    ...     observer.predict(0.1 * k, np.array([1.0]), 0.1)
    ...     observer.update("angle", truth)
    >>> bool(abs(SO2.minus(observer.x, truth)[0]) < 1e-6)
    True
    """

    @property
    def x(self) -> np.ndarray:
        """The estimate, coordinates of the state."""
        ...

    def predict(self, t: float, u: np.ndarray, dt: float) -> None:
        """Move the estimate over an interval.

        Parameters
        ----------
        t : float
            Start of the interval in s.
        u : ndarray, shape (n_inputs,)
            All inputs as far as they are known: the controls applied, disturbances nominal.
        dt : float
            Length of the interval in s; intervals differ where events fall between samples.
        """
        ...

    def update(self, name: str, y: np.ndarray) -> None:
        """Correct the estimate by a measurement, at the time up to which it was predicted.

        Parameters
        ----------
        name : str
            Of the measurement: that of the sensor that delivers.
        y : ndarray
            Coordinates on the group of the measurement.
        """
        ...


@runtime_checkable
class FullEstimator(Estimator, Protocol):
    """An estimator that also says how sure it is, and may start again."""

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``system.error(state, x)``, (n_errors, n_errors): bands of plots."""
        ...

    def reset(self) -> None:
        """Back to the first estimate; called before a run."""
        ...
