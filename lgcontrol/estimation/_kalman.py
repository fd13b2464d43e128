"""Kalman filters on groups: extended and unscented."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import check_count, congruence, solve_symmetric
from ..groups import Rn
from ..integrators import Method
from ..systems import Sensor, System
from ..systems._internal import BoundSensor, symbols_of
from ._filter import Filter, FilterOptions, Reading, Span
from ._innovations import cholesky, triangular, whiten
from ._smoothing import symmetric

EKF_ROUNDS = 5  # tests/benchmarks/filter_rounds.py: more change nothing there, fewer do
COST_ROUNDING = 1e-9  # relative rise of a cost that does not count
SHORTER_STEP = 0.25  # factor on a step whose cost is higher


class EKF(Filter):
    """Extended Kalman filter with an invariant error: ``X = X̂ exp(ε)`` or ``X = exp(ε) X̂``.

    On SO(3) with ``error="left"`` it is the multiplicative attitude filter. With the reset (the
    default of left errors) both give the same estimates to rounding; without it they differ.

    Parameters
    ----------
    system, sensors, x0, P0
        See `Filter`.
    covariance_method : str or Method, optional
        Step whose derivatives move the covariance; that of the state if left out. "euler" is three
        times faster and served logs from 10 Hz on, where the errors of a step are those of the
        covariance alone.
    iterations : int, optional
        Largest number of rounds of Gauss–Newton at each measurement. If left out, 5 with a reset:
        by then they have settled for all kinds of sensors that were studied. One round, the
        textbook filter, is too sure from first errors of 5° on where sensors are precise. A round
        that would raise the cost is shortened instead, and measurements that are affine in the
        error take one round. Without a reset 1, as invariant filters are published: another round
        looks along other directions that nothing shows.
    square_root : bool
        Whether it carries a triangular factor of the covariance. The covariance is then never
        indefinite and keeps twice the digits, at some three times the operations. Use it for
        precise sensors beside vague ones, and for single precision.
    std0, noise, method, error, reset, p, gate, robust, lockout, settle, window
        See `Filter`.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import Sensor, System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> hand = Sensor("hand", std_discrete=0.1)
    >>> ekf = EKF(clock, [hand], std0=1.0, noise={"speed": 0.1})
    >>> for k in range(100):
    ...     ekf.predict(0.1 * k, [1.0], 0.1)
    ...     ekf.update("hand", SO2.exp([0.1 * (k + 1) + 2.0]))
    >>> SO2.minus(ekf.x, SO2.exp([12.0])).round(6), ekf.counts["hand"]["used"]
    (array([0.]), 100)

    References
    ----------
    Barrau and Bonnabel, The invariant extended Kalman filter as a stable observer, IEEE TAC 62(4),
    2017. Mueller, Hehn and D'Andrea, Covariance correction step for Kalman filtering with an
    attitude, JGCD 40(9), 2017: the reset. Bell and Cathey, The iterated Kalman filter update as a
    Gauss-Newton method, IEEE TAC 38(2), 1993.
    """

    def __init__(
        self,
        system: System[Any],
        sensors: Iterable[Sensor],
        x0: Any = None,
        P0: Any = None,
        *,
        covariance_method: str | Method | None = None,
        iterations: int | None = None,
        square_root: bool = False,
        **options: Unpack[FilterOptions],
    ) -> None:
        if iterations is not None:
            check_count("iterations", iterations)
        self.square_root, self.covariance_method = square_root, covariance_method
        super().__init__(system, sensors, x0, P0, **options)
        usual = EKF_ROUNDS if self.has_reset else 1
        self.iterations: int = usual if iterations is None else iterations

    def _covariance(self, lower: np.ndarray) -> np.ndarray:
        if self.square_root:
            return lower @ np.swapaxes(lower, -1, -2)
        return symmetric(lower)

    def _variances(self, z: np.ndarray) -> np.ndarray:
        if self.square_root or self.error != "left":
            return super()._variances(z)
        return z.take(self.layout.diagonal, axis=-1)

    def _lower(self, P: np.ndarray) -> np.ndarray:
        if not self.square_root:
            return P
        values, vectors = np.linalg.eigh(P)  # P may be singular, which Cholesky's may not
        root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        lower = np.swapaxes(np.linalg.qr(np.swapaxes(root, -1, -2))[1], -1, -2)
        return lower * np.where(np.diagonal(lower, axis1=-2, axis2=-1) < 0, -1, 1)[..., None, :]

    def _witnesses(self, lower: Value) -> Value:
        if self.square_root:
            return super()._witnesses(lower)
        return ca.diag(lower)  # what enters a row of ``A P Aᵀ`` enters its diagonal

    def _inflated(self, lower: Value, factor: Value) -> Value:
        return (ca.sqrt(factor) if self.square_root else factor) * lower

    def _predicted(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value]:
        if not self.square_root:
            x_next, P, _ = self._crossed(lower, span, noise)
            return x_next, P
        x_next, A, G = self._moved(span)
        return x_next, triangular(ca.horzcat(A @ lower, G @ ca.sqrt(noise)))

    def _moved(self, span: Span) -> tuple[Value, Value, Value]:
        """State after an interval, and derivatives by the error and by the noisy inputs."""
        x_next, A, G = self._step(self.covariance_method or self.method, span)
        if self.covariance_method is not None:
            x_next = self.system.step(self.method)(*span)
        return x_next, A, G

    def _full(self, lower: Value) -> Value:
        return lower @ lower.T if self.square_root else ca.tril2symm(lower)

    def _crossed(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value, Value]:
        P = self._full(lower)
        x_next, A, G = self._moved(span)
        return x_next, congruence(A, P) + G @ noise @ G.T, P @ A.T

    def _innovation(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        P = self._full(lower)
        nu, C, _ = self._last_round(P, seen)
        return nu, C @ (P @ C.T) + seen.R

    def _last_round(self, P: Value, seen: Reading) -> tuple[Value, Value, Value]:
        """Innovation and its derivative as the last round of Gauss–Newton sees them from x; d.

        Each round linearizes at the present correction d. If the cost of the next one,
        ``½ dᵀ P⁻¹ d + ½ νᵀ R⁻¹ ν``, is higher, d stays and the step from it is shortened. The last
        step is taken if its cost is not higher.
        """
        x, p, R = seen.x, seen.p, seen.R
        nu, C = self._residual(seen)
        pull = _pull(P, C, R, nu)
        if self.iterations == 1 or self._is_affine(seen.bound):
            return nu, C, P @ pull
        # the pull is P⁻¹ d, which needs no inverse of P
        held = 0 * pull
        cost, length = whiten(R, nu).squared, ca.SX(1)
        for _ in range(self.iterations - 1):
            held_next = held + length * (pull - held)
            d_next = P @ held_next
            x_next = self._errors.retracted(x, d_next, p)
            nu_next, C_next = self._residual(seen._replace(x=x_next))
            cost_next = ca.dot(d_next, held_next) + whiten(R, nu_next).squared
            # the error about x is d + J⁻¹ (that about the present point)
            C_next = C_next @ self._errors.reset_jacobian(x, d_next, p)
            nu_next = nu_next + C_next @ d_next
            is_worse = cost_next > cost * (1 + COST_ROUNDING)
            held, cost, nu, C = (
                ca.if_else(is_worse, old, new)
                for old, new in ((held, held_next), (cost, cost_next), (nu, nu_next), (C, C_next))
            )
            length = ca.if_else(is_worse, SHORTER_STEP * length, 1.0)
            pull = _pull(P, C, R, nu)
        held_next = held + length * (pull - held)
        d_next = P @ held_next
        x_next = self._errors.retracted(x, d_next, p)
        nu_next = self._residual(seen._replace(x=x_next))[0]
        cost_next = ca.dot(d_next, held_next) + whiten(R, nu_next).squared
        is_worse = cost_next > cost * (1 + COST_ROUNDING)
        return nu, C, P @ ca.if_else(is_worse, held, held_next)

    def _is_affine(self, bound: BoundSensor) -> bool:
        """Whether the innovation is affine in d, so that one round is exact."""
        if not isinstance(bound.group, Rn):
            return False
        t, x, u, p = symbols_of(self.system)
        d = ca.SX.sym("d", self.system.n_errors)
        C = bound.derivatives(t, x, u, p).C @ self._errors.to_left(x)
        C = C @ self._errors.reset_jacobian(x, d, p)
        return not ca.depends_on(C, ca.vertcat(x, d))

    def _residual(self, seen: Reading) -> tuple[Value, Value]:
        made = seen.bound.derivatives(*seen.at)
        C = ca.sparsify(made.C @ self._errors.to_left(seen.x))
        return seen.bound.group.minus(seen.y, made.y), C

    def _corrected(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        P = self._full(lower)
        x, p, R = seen.x, seen.p, seen.R
        _, C, d = self._last_round(P, seen)
        PC = P @ C.T
        K = solve_symmetric(C @ PC + R, PC.T).T
        x_next = self.system.state.normalize(self._errors.retracted(x, d, p))
        keep = ca.DM.eye(P.shape[0]) - K @ C
        if self.has_reset:
            J = self._errors.reset_jacobian(x, d, p)
            keep, K = J @ keep, J @ K
        # Joseph's form: positive semidefinite for any gain
        if self.square_root:
            return x_next, triangular(ca.horzcat(keep @ lower, K @ cholesky(R)))
        return x_next, congruence(keep, P) + K @ R @ K.T


def _pull(P: Value, C: Value, R: Value, nu: Value) -> Value:
    """``P⁻¹ K ν``, where ``K ν`` is the correction."""
    return C.T @ solve_symmetric(C @ (P @ C.T) + R, nu)


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

    def _points(self, lower: Value, at: Span | Reading) -> tuple[list[Value], list[Value]]:
        spread, _, _ = self._weights_of_points
        errors = [sign * spread * column for column in ca.horzsplit(lower) for sign in (1, -1)]
        return errors, [self._errors.retracted(at.x, e, at.p) for e in errors]

    def _covariance(self, lower: np.ndarray) -> np.ndarray:
        return lower @ np.swapaxes(lower, -1, -2)

    def _lower(self, P: np.ndarray) -> np.ndarray:
        try:
            return np.linalg.cholesky(P)
        except np.linalg.LinAlgError as error:
            raise ValueError("P0 of a UKF must be positive definite") from error

    def _inflated(self, lower: Value, factor: Value) -> Value:
        return ca.sqrt(factor) * lower

    def _predicted(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value]:
        x_next, P, _ = self._crossed(lower, span, noise)
        return x_next, cholesky(P)

    def _full(self, lower: Value) -> Value:
        return lower @ lower.T

    def _crossed(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value, Value]:
        step = self.system.step(self.method)
        x_next, _, G = self._step(self.method, span)
        errors, points = self._points(lower, span)
        after = [self._errors.difference(step(*span._replace(x=point)), x_next) for point in points]
        _, P = self._moments(after, after)
        _, cross = self._moments(errors, after)
        return x_next, P + G @ noise @ G.T, cross

    def _moments(self, a: list[Value], b: list[Value]) -> tuple[Value, Value]:
        """Mean of b, and covariance of a with b; both are zero in the middle."""
        _, weight, middle = self._weights_of_points
        all_a, all_b = ca.horzcat(*a), ca.horzcat(*b)
        mean_a, mean_b = weight * ca.sum2(all_a), weight * ca.sum2(all_b)
        away_a = ca.horzcat(*(entry - mean_a for entry in a))
        away_b = ca.horzcat(*(entry - mean_b for entry in b))
        return mean_b, weight * away_a @ away_b.T + middle * (mean_a @ ca.transpose(mean_b))

    def _moments_of(self, lower: Value, seen: Reading) -> tuple[Value, Value, Value]:
        """Innovation, its covariance, and that of the error with it."""
        sensor, minus = seen.bound.function, seen.bound.group.minus
        expected = sensor(*seen.at)
        errors, points = self._points(lower, seen)
        away = [minus(sensor(*seen._replace(x=point).at), expected) for point in points]
        mean, S = self._moments(away, away)
        _, cross = self._moments(errors, away)
        return minus(seen.y, expected) - mean, S + seen.R, cross

    def _innovation(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        return self._moments_of(lower, seen)[:2]

    def _corrected(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        x, p = seen.x, seen.p
        nu, S, cross = self._moments_of(lower, seen)
        K = solve_symmetric(S, cross.T).T
        d = K @ nu
        P = lower @ lower.T - K @ cross.T
        if self.has_reset:
            J = self._errors.reset_jacobian(x, d, p)
            P = J @ P @ J.T
        x_next = self.system.state.normalize(self._errors.retracted(x, d, p))
        return x_next, cholesky(P)
