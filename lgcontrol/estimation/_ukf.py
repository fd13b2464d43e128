"""UKF: the unscented Kalman filter on groups, in square-root form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import solve_symmetric
from ..systems import Sensor, System
from ..systems._internal import BoundSensor
from ._filter import Filter, FilterOptions
from ._innovations import cholesky


class UKF(Filter):
    """Unscented Kalman filter: points spread by the covariance stand for the derivatives.

    The filter stores the triangular factor of the covariance, which is therefore never indefinite.
    Noise of inputs enters by its derivative, as in the EKF.

    Parameters
    ----------
    system, sensors, x0, P0
        See `Filter`; P0 must be positive definite.
    alpha : float
        Spread of the points: √n alpha deviations along each column of the factor.
    std0, noise, method, error, reset, p, gate, robust, lockout, settle, window
        See `Filter`.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import Sensor, System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> ukf = UKF(clock, [Sensor("hand", std_discrete=0.1)], std0=1.0, noise={"speed": 0.1})
    >>> ukf.update("hand", SO2.exp([0.5]), t=0.0)
    >>> SO2.log(ukf.x).round(3), ukf.P.round(4)
    (array([0.495]), array([[0.0099]]))

    References
    ----------
    Brossard, Barrau and Bonnabel, A code for unscented Kalman filtering on manifolds (UKF-M),
    ICRA 2020, algorithms 1 and 2.
    """

    def __init__(
        self,
        system: System[Any],
        sensors: Iterable[Sensor],
        x0: Any = None,
        P0: Any = None,
        *,
        alpha: float = 0.5,
        **options: Unpack[FilterOptions],
    ) -> None:
        if not 0 < alpha <= 1:
            raise ValueError(f"alpha must be positive and at most 1, got {alpha}")
        self.alpha = alpha
        super().__init__(system, sensors, x0, P0, **options)
        if self.system.errors is not None:
            raise ValueError(
                f"{self.system.name} has constraints: its points would not keep them; use EKF"
            )

    @property
    def _weights_of_points(self) -> tuple[float, float, float]:
        """Spread of the points, the weight of each, and that of the middle in covariances."""
        scaled = self.alpha**2 * self.system.n_errors
        return np.sqrt(scaled), 1 / (2 * scaled), 4 - self.alpha**2 - 1 / self.alpha**2

    def _points(self, x: Value, lower: Value, p: Value) -> tuple[list[Value], list[Value]]:
        spread, _, _ = self._weights_of_points
        errors = [sign * spread * column for column in ca.horzsplit(lower) for sign in (1, -1)]
        return errors, [self._errors.retracted(x, e, p) for e in errors]

    def _covariance(self, lower: np.ndarray) -> np.ndarray:
        return lower @ np.swapaxes(lower, -1, -2)

    def _lower(self, P: np.ndarray) -> np.ndarray:
        try:
            return np.linalg.cholesky(P)
        except np.linalg.LinAlgError as error:
            raise ValueError("P0 of a UKF must be positive definite") from error

    def _inflated(self, lower: Value, factor: Value) -> Value:
        return ca.sqrt(factor) * lower

    def _predicted(
        self, t: Value, x: Value, lower: Value, u: Value, p: Value, dt: Value, q: Value
    ) -> tuple[Value, Value]:
        x_next, P, _ = self._crossed(t, x, lower, u, p, dt, q)
        return x_next, cholesky(P)

    def _full(self, lower: Value) -> Value:
        return lower @ lower.T

    def _crossed(
        self, t: Value, x: Value, lower: Value, u: Value, p: Value, dt: Value, q: Value
    ) -> tuple[Value, Value, Value]:
        step = self.system.step(self.method)
        x_next, _, G = self._step(self.method, t, x, u, p, dt)
        errors, points = self._points(x, lower, p)
        after = [self._errors.difference(step(t, point, u, p, dt), x_next) for point in points]
        _, P = self._moments(after, after)
        _, cross = self._moments(errors, after)
        return x_next, P + G @ ca.diag(self._noise_covariance(q, dt)) @ G.T, cross

    def _moments(self, a: list[Value], b: list[Value]) -> tuple[Value, Value]:
        """Mean of b, and covariance of a with b; both are zero in the middle."""
        _, weight, middle = self._weights_of_points
        all_a, all_b = ca.horzcat(*a), ca.horzcat(*b)
        mean_a, mean_b = weight * ca.sum2(all_a), weight * ca.sum2(all_b)
        away_a = ca.horzcat(*(entry - mean_a for entry in a))
        away_b = ca.horzcat(*(entry - mean_b for entry in b))
        return mean_b, weight * away_a @ away_b.T + middle * (mean_a @ ca.transpose(mean_b))

    def _seen(
        self, bound: BoundSensor, t: Value, x: Value, lower: Value, u: Value, p: Value,
        y: Value, R: Value,
    ) -> tuple[Value, Value, Value]:  # fmt: skip
        """Innovation, its covariance, and that of the error with it."""
        expected = bound.function(t, x, u, p)
        errors, points = self._points(x, lower, p)
        seen = [bound.group.minus(bound.function(t, point, u, p), expected) for point in points]
        mean, S = self._moments(seen, seen)
        _, cross = self._moments(errors, seen)
        return bound.group.minus(y, expected) - mean, S + R, cross

    def _innovation(
        self, bound: BoundSensor, t: Value, x: Value, lower: Value, u: Value, p: Value,
        y: Value, R: Value,
    ) -> tuple[Value, Value]:  # fmt: skip
        nu, S, _ = self._seen(bound, t, x, lower, u, p, y, R)
        return nu, S

    def _corrected(
        self, bound: BoundSensor, t: Value, x: Value, lower: Value, u: Value, p: Value,
        y: Value, R: Value,
    ) -> tuple[Value, Value]:  # fmt: skip
        nu, S, cross = self._seen(bound, t, x, lower, u, p, y, R)
        K = solve_symmetric(S, cross.T).T
        d = K @ nu
        P = lower @ lower.T - K @ cross.T
        if self.has_reset:
            J = self._errors.reset_jacobian(x, d, p)
            P = J @ P @ J.T
        x_next = self.system.state.normalize(self._errors.retracted(x, d, p))
        return x_next, cholesky(P)
