"""OffsetFree: a controller that counts with the constant disturbances its estimator finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..codegen._internal import read_only
from ..optimal._internal import points_of
from ..systems import System


class OffsetFree:
    """Output feedback without steady errors: controller and estimator of a plant, in one.

    The model is the plant with biases, ``plant.augment(bias="force.z", bias_walk=True)``; an
    estimator of it finds the biases from the plant's measurements. The controller, of the same
    model, gets the whole estimate. Its reference is the wanted states with these biases, so that
    its inputs at rest hold against them.

    Give it to `simulate` twice, as controller and as estimator.

    Parameters
    ----------
    controller : Controller
        Of the model, for example ``MPC(model, …)``.
    estimator : Estimator
        Of the model, with `system`: a `Filter`, a `MovingHorizon`.
    plant : System
        Its blocks come first in the model.

    Examples
    --------
    A cart that is pushed by 0.5 N all the time stops where it should:

    >>> import lgcontrol as lg
    >>> from lgcontrol.controllers import MPC
    >>> from lgcontrol.estimation import EKF
    >>> cart = lg.System(
    ...     "cart", lg.Rn(2, ("place", "speed")), lambda t, x, u, p: [x[1], u[0] + u[1]],
    ...     inputs=["force", lg.Input("push", role="disturbance")])
    >>> model = cart.augment(bias="push", bias_walk=True)
    >>> place = lg.Sensor(
    ...     "place", lambda t, x, u, p: x[0], lg.Rn(1), dt=0.1, std_discrete=1e-4)
    >>> both = OffsetFree(
    ...     MPC(model, horizon=15, dt=0.1, Q={"state": [1, 0.1]}, R=0.1),
    ...     EKF(model, [place], std0=1.0, noise={"push.walk": 0.1}), cart)
    >>> run = lg.simulate(cart, both, estimator=both, sensors=[place], x0=[1, 0], seconds=8,
    ...                   reference=[0, 0], disturbances=[lg.Pulse({"push": 0.5}, start=0.0)])
    >>> bool(abs(run.x[-1, 0]) < 2e-3), bool(abs(both.bias[0] - 0.5) < 0.03)
    (True, True)

    References
    ----------
    Pannocchia and Rawlings, Disturbance models for offset-free model-predictive control, AIChE
    Journal 49(2), 2003.
    """

    def __init__(self, controller: Any, estimator: Any, plant: System[Any]) -> None:
        model = estimator.system
        if model.state.nq <= plant.state.nq:
            raise ValueError(
                f"the model {model.name} has no state beyond those of {plant.name}: make it by "
                "plant.augment(bias=…, bias_walk=True)"
            )
        self.controller, self.estimator, self.plant = controller, estimator, plant
        self._nq, self._n = plant.state.nq, plant.n_errors

    # As controller

    @property
    def dt(self) -> float:
        """Sample time of the controller, s."""
        return self.controller.dt

    @property
    def offset(self) -> float:
        """Time of its first call, s."""
        return getattr(self.controller, "offset", 0.0)

    @property
    def delay(self) -> float:
        """Time from its call to its input, s."""
        return getattr(self.controller, "delay", 0.0)

    @property
    def info(self) -> Any:
        """What the controller says of its last call."""
        return self.controller.info

    def __call__(self, t: float, x: Any, reference: Any) -> np.ndarray:
        """Controls for a state of the plant, with the biases as they are estimated.

        Parameters
        ----------
        t : float
        x : array_like, shape (nq,)
            Of the plant.
        reference : optional
            Of the plant: state, TrimPoint, Trajectory or function of time; its inputs are not read.
        """
        return self.controller(
            t, np.concatenate([np.asarray(x), self.bias]), self._wanted(reference)
        )

    def prepare(self, t: float = 0.0, x: Any = None, reference: Any = None) -> Self:
        """Get the controller ready for its first call, if it knows how to.

        Parameters
        ----------
        t, x, reference
            As in a call; without x or reference nothing is planned.
        """
        known = None if x is None or reference is None else np.concatenate([x, self.bias])
        wanted = None if reference is None else self._wanted(reference)
        getattr(self.controller, "prepare", lambda *_: None)(t, known, wanted)
        return self

    def _wanted(self, reference: Any) -> Callable[[float], np.ndarray]:
        """States of the model: a reference of the plant, and the biases of now."""
        rest = self.bias

        def wanted(time: float) -> np.ndarray:
            point = points_of(reference, np.array([time]))
            state = np.asarray(getattr(point, "x", point), dtype=np.float64)
            return np.concatenate([state.reshape(-1)[: self._nq], rest])

        return wanted

    # As estimator

    @property
    def x(self) -> np.ndarray:
        """Estimate of the plant's state."""
        return read_only(np.array(self.estimator.x)[: self._nq])

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``plant.error(truth, x)``."""
        return read_only(np.array(self.estimator.P)[: self._n, : self._n])

    @property
    def bias(self) -> np.ndarray:
        """Estimate of what the model has beyond the plant."""
        return read_only(np.array(self.estimator.x)[self._nq :])

    def predict(self, t: float, u: Any, dt: float) -> None:
        """Move the estimate over an interval; u are inputs of the plant."""
        full = np.array(self.estimator.system.nominal_input)
        full[: len(u)] = u
        self.estimator.predict(t, full, dt)

    def update(self, name: str, y: Any) -> None:
        """Correct the estimate by a measurement."""
        self.estimator.update(name, y)

    def reset(self) -> None:
        """Back to the first estimate; the controller begins anew."""
        self.estimator.reset()
        getattr(self.controller, "reset", lambda: None)()
