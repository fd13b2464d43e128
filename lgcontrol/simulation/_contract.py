"""What a loop asks of controllers and estimators, and the words in which calls and runs end."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import FunctionType, MethodType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import Status


def fault_of_call(function: Callable[..., Any], count: int) -> str:
    """Why a callable does not take so many arguments; empty if it does.

    Empty, too, for callables without a signature, as some compiled ones.
    """
    if isinstance(function, MethodType):
        plain, count = function.__func__, count + 1
    elif isinstance(function, FunctionType):
        plain = function
    else:
        plain, count = type(function).__call__, count + 1
        kind: type = type(function)
        owners = (getattr(function, "__dict__", {}), *map(vars, kind.__mro__))
        if any("__signature__" in owner for owner in owners):
            return _fault(function, count - 1)
    if isinstance(plain, FunctionType):
        return _fault_of_call(plain, count)
    return _fault(function, count - (plain is not function))


@lru_cache(maxsize=256)
def _fault_of_call(function: FunctionType, count: int) -> str:
    """Kept, since runs of the same parts follow each other."""
    return _fault(function, count)


def _fault(function: Callable[..., Any], count: int) -> str:
    try:
        inspect.signature(function).bind(*[None] * count)
    except ValueError:
        return ""
    except TypeError as error:
        return str(error)
    return ""


class CallStatus(Status, StrEnum):
    """How one call of a controller ended; every answer is finite and within the bounds.

    ``OK`` and ``SATURATED`` (bounds changed the answer) are answers the controller vouches for.
    ``HELD``: the measurement was no state, an earlier input goes on. ``INFEASIBLE``: no plan keeps
    all hard bounds, the answer violates the least that was found. ``UNSOLVED``: the solver ended
    without a plan it can vouch for; the controller's info holds the solver's own status.
    """

    OK = "ok"
    SATURATED = "saturated"
    HELD = "held"
    INFEASIBLE = "infeasible"
    UNSOLVED = "unsolved"

    @property
    def is_success(self) -> bool:
        """Whether the controller vouches for its answer."""
        return self in (CallStatus.OK, CallStatus.SATURATED)


class RunStatus(Status, StrEnum):
    """How a simulation ended.

    ``UNRESOLVED``: steps could not be made to keep the stated tolerance, or did not solve their
    equations. ``DIVERGED``: the state left all bounds although it was resolved.
    """

    COMPLETED = "completed"
    DIVERGED = "diverged"
    UNRESOLVED = "unresolved"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def is_success(self) -> bool:
        """Whether the end was reached; `SimulationResult.is_success` asks more."""
        return self is RunStatus.COMPLETED


class ControlLaw(Protocol):
    """``controller(t, x, reference) → controls``: all that a controller must be.

    What else an object has is used by `simulate`, once, before the run: ``dt`` (its period in s),
    ``offset`` (time of its first call), ``delay`` (from a call to its effect), ``reset()``,
    ``prepare(t, x, reference)``; and after each call ``info``, whose numbers and texts are kept:
    a ``status`` of `CallStatus` and a ``message`` reach the summary. A text ``unstable`` says why
    errors grow in its sampled loop: the run is no success then.
    """

    def __call__(self, t: float, x: np.ndarray, reference: Any, /) -> ArrayLike:
        """Controls for a state at a time.

        Parameters
        ----------
        t : float
            Time in s.
        x : ndarray, shape (nq,)
            What is known of the state.
        reference : object
            As given to `simulate`, or the answer of the outer controller in a `Cascade`.

        Returns
        -------
        array_like, shape (n_controls,)
            Finite; a number where there is one control. An outer controller returns what the next
            one is to follow.
        """
        ...


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

    def predict(self, t: float, u: np.ndarray, dt: float, /) -> None:
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

    def update(self, name: str, y: np.ndarray, /) -> None:
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


class Disturbance(Protocol):
    """Inputs that something else than the controllers pushes, sampled and held."""

    @property
    def dt(self) -> float:
        """Hold time in s; ``offset``, the time of the first sample, may be there too."""
        ...

    def sample(self, t: float, rng: np.random.Generator, /) -> Mapping[str, float]:
        """Values by input name, at time t in s, from a random stream of its own."""
        ...
