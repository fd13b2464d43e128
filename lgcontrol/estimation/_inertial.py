"""Inertial navigation: models that an IMU or odometry drives, and samples as one motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, chain, named_options, trace
from ..codegen._internal import check_shape, interruptible
from ..groups import SE2, SE23, SO3, LieGroup, Product, Rn
from ..groups._internal import held_motion
from ..systems import Input, System
from ..systems._internal import GRAVITY

_VECTOR = ("x", "y", "z")
_UP = ca.DM([0, 0, 1])
LEAST_SAMPLES = 16  # samples of the shortest loop
SHORTEST = 1e-15  # s; white noise over no time is none
_TRIANGLE = ca.Sparsity.lower(9)
_LOWER = tuple(np.array(part) for part in (_TRIANGLE.row(), np.repeat(range(9), range(9, 0, -1))))
_FIRST = np.concatenate([SE23.identity, np.zeros(54 + 45)])


@named_options
def inertial_navigation(
    *,
    gravity: float = GRAVITY,
    gyro_bias: bool = True,
    accelerometer_bias: bool = True,
    bias_time: float = inf,
    scale_noise: bool = False,
) -> System[Any]:
    """Position, velocity and attitude of a body, driven by its gyroscope and accelerometer.

    ``ṗ = v``, ``v̇ = R (a − b_a) + g``, ``Ṙ = R (ω − b_g)^`` on the extended pose SE23 (block
    "body": world frame, z up), with biases as further blocks. Without biases it is group-affine.
    At rest, the accelerometer shows +g along the upward axis.

    Parameters
    ----------
    gravity : float
        m/s².
    gyro_bias, accelerometer_bias : bool
        Whether the biases are states.
    bias_time : float
        Correlation time of the biases, s: random walks if infinite, else Gauss–Markov.
    scale_noise : bool
        Whether there is noise in proportion to the measured vector (inputs "gyro_scale.x", …). It
        stands for scale errors and misalignment, which a motion turns into errors that come and go
        with it.

    Returns
    -------
    System
        Measured inputs "gyro.x" … [rad/s], "accelerometer.x" … [m/s²]; noise inputs
        "gyro_bias_walk.x" … [rad/s²], "accelerometer_bias_walk.x" … [m/s³].

    Examples
    --------
    >>> from lgcontrol.systems import is_group_affine
    >>> is_group_affine(inertial_navigation(gyro_bias=False, accelerometer_bias=False))
    True
    """
    biases = [
        name
        for name, wanted in (("gyro_bias", gyro_bias), ("accelerometer_bias", accelerometer_bias))
        if wanted
    ]
    units = {"gyro_bias": "rad/s", "accelerometer_bias": "m/s²"}
    state = Product(body=SE23, **{name: Rn(3, _VECTOR, (units[name],) * 3) for name in biases})
    inputs = [
        *_inputs("gyro", "rad/s", "measured"),
        *_inputs("accelerometer", "m/s²", "measured"),
        *(entry for name in biases for entry in _inputs(f"{name}_walk", units[name] + "/s")),
    ]
    if scale_noise:
        inputs += [*_inputs("gyro_scale", ""), *_inputs("accelerometer_scale", "")]

    def rate(t: Value, x: Value, u: Value, p: Value) -> Value:
        parts, at = state.split(x), {entry.name: i for i, entry in enumerate(inputs)}

        def given(name: str) -> Value:
            return u[at[f"{name}.x"] : at[f"{name}.x"] + 3]

        omega, a = given("gyro"), given("accelerometer")
        if scale_noise:
            # of the whole length: a misaligned axis shows a share of the others
            omega = omega + _length(omega) * given("gyro_scale")
            a = a + _length(a) * given("accelerometer_scale")
        omega = omega - parts.get("gyro_bias", 0)
        a = a - parts.get("accelerometer_bias", 0)
        R = SO3.matrix(SE23.rotation(parts["body"]))
        v = SE23.vector(parts["body"], 1)
        down = R.T @ ca.vertcat(0, 0, -gravity)
        walks = [given(f"{name}_walk") - parts[name] / bias_time for name in biases]
        return ca.vertcat(R.T @ v, a + down, omega, *walks)

    return System("inertial_navigation", state, rate, inputs=inputs)


@named_options
def odometry(group: LieGroup = SE2, *, scale: bool = False) -> System[Any]:
    """Pose driven by a measured body velocity: wheels, a DVL, visual odometry.

    ``Ẋ = X v^``; with a scale state ``s``, a linear velocity of ``(1 + s) v``.

    Parameters
    ----------
    group : LieGroup
        SE2 or SE3, for example.
    scale : bool
        Whether the scale error of the linear velocity is a state, block "scale".

    Returns
    -------
    System
        Measured inputs "velocity.x", …, one for each entry of the tangent vector. Noise is on
        these (densities of `EKF`).

    Examples
    --------
    >>> odometry().input_names
    ('velocity.x', 'velocity.y', 'velocity.rz')
    """
    inputs = [
        Input(f"velocity.{name}", f"{unit}/s", role="measured")
        for name, unit in zip(group.tangent_names, group.tangent_units, strict=True)
    ]
    blocks = {"pose": group, **({"scale": Rn(1, ("scale",))} if scale else {})}

    def rate(t: Value, x: Value, u: Value, p: Value) -> Value:
        if not scale:
            return u
        linear = [unit != "rad" for unit in group.tangent_units]
        parts = [u[i] * (1 + x[-1]) if linear[i] else u[i] for i in range(group.dim)]
        return ca.vertcat(*parts, 0)

    return System("odometry", Product(**blocks), rate, inputs=inputs)


def _inputs(name: str, unit: str, role: Any = "noise") -> list[Input]:
    return [Input(f"{name}.{axis}", unit, role=role) for axis in _VECTOR]


def _length(v: Value) -> Value:
    """Length of a vector, whose derivative at zero is never taken: noise is about zero."""
    square = ca.sumsqr(v)
    return ca.sqrt(ca.fmax(square, 1e-300))


@dataclass(frozen=True, eq=False)
class Preintegration:
    """What an IMU says between two times, whatever the state at the first of them.

    With the extended poses ``X_i``, ``X_j`` on SE23, ``X_j = Γ Φ(X_i) Υ(b)``. Γ is the fall under
    gravity, and Φ moves by the velocity. ``Υ(b) = Υ(b₀) exp(J (b − b₀))`` is integrated from the
    samples once, for biases near the assumed b₀. Group-affine, so that neither Υ nor its covariance
    depends on ``X_i``.

    Attributes
    ----------
    duration : float
        s.
    delta : ndarray, shape (10,)
        Υ(b₀): position and velocity without gravity, rotation, in the frame of the start.
    bias : ndarray, shape (6,)
        b₀: of the gyroscope [rad/s], of the accelerometer [m/s²].
    jacobian : ndarray, shape (9, 6)
        J.
    covariance : ndarray, shape (9, 9)
        Of the error ``minus(truth, Υ)``.

    Examples
    --------
    One second at rest, seen by a gyroscope that is off by 0.1 rad/s:

    >>> rest = np.tile([0, 0, 0.1, 0, 0, 9.81], (100, 1))
    >>> made = Preintegration.of(rest[:, :3], rest[:, 3:], 0.01, noise={"gyro": 1e-3})
    >>> X = made.predict(SE23.identity, bias=[0, 0, 0.1, 0, 0, 0])
    >>> bool(np.abs(X - SE23.identity).max() < 1e-9)
    True

    References
    ----------
    Forster, Carlone, Dellaert and Scaramuzza, On-manifold preintegration for real-time
    visual-inertial odometry, IEEE T-RO 33(1), 2017. Brossard, Barrau, Chauchat and Bonnabel,
    Associating uncertainty to extended poses for on Lie group IMU preintegration with rotating
    Earth, IEEE T-RO 38(2), 2022.
    """

    duration: float
    delta: np.ndarray
    bias: np.ndarray
    jacobian: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(
        cls, gyro: Any, accelerometer: Any, dt: Any, *, bias: Any = None,
        noise: Mapping[str, float] | None = None,
    ) -> Preintegration:  # fmt: skip
        """Preintegrate samples, each held until the next.

        Parameters
        ----------
        gyro, accelerometer : array_like, shape (N, 3)
            rad/s, m/s².
        dt : float or array_like, shape (N,)
            s.
        bias : array_like, shape (6,), optional
            b₀; none if left out.
        noise : mapping of str to float, optional
            Densities of "gyro" [rad/s/√Hz] and "accelerometer" [m/s²/√Hz].
        """
        gyro = check_shape("gyro", gyro, (None, 3))
        accelerometer = check_shape("accelerometer", accelerometer, (len(gyro), 3))
        dt = np.asarray(dt, dtype=np.float64)
        dt = check_shape("dt", np.broadcast_to(dt, (len(gyro),)) if not dt.ndim else dt,
                         (len(gyro),))  # fmt: skip
        if not len(gyro) or (dt <= 0).any():
            raise ValueError("there must be a sample, and each must last: dt > 0")
        bias = np.zeros(6) if bias is None else check_shape("bias", bias, (6,))
        given = dict(noise or {})
        unknown = set(given) - {"gyro", "accelerometer"}
        if unknown:
            raise ValueError(f"noise of {', '.join(unknown)}: there are gyro and accelerometer")
        q = np.repeat([given.get("gyro", 0.0), given.get("accelerometer", 0.0)], 3)
        # intervals without length change nothing: loops of few lengths serve all
        count = max(1 << (len(gyro) - 1).bit_length(), LEAST_SAMPLES)
        samples = np.zeros((count, 7))
        samples[: len(gyro), :6] = np.concatenate([gyro, accelerometer], axis=1) - bias
        samples[: len(gyro), 6] = dt
        z = _loop(count)(_FIRST, samples, q)[-1]
        P = np.zeros((9, 9))
        P[_LOWER] = z[64:]
        P = P + np.tril(P, -1).T
        return cls(float(dt.sum()), z[:10], bias, z[10:64].reshape(6, 9).T, P)

    def corrected(self, bias: Any) -> np.ndarray:
        """``Υ(b)`` to first order in the biases, shape (10,)."""
        away = check_shape("bias", bias, (6,)) - self.bias
        return SE23.plus(self.delta, self.jacobian @ away)

    def predict(self, X: Any, bias: Any = None, *, gravity: float = GRAVITY) -> np.ndarray:
        """``X_j`` from ``X_i``, shape (10,).

        Parameters
        ----------
        X : array_like, shape (10,)
            Position, velocity and attitude at the first time.
        bias : array_like, shape (6,), optional
            b₀ if left out.
        gravity : float
            m/s².
        """
        X = check_shape("X", X, (10,))
        data = self.data()
        made = _moved()(X, self.bias if bias is None else bias, data, gravity)
        return SE23.normalize(made)

    def data(self) -> np.ndarray:
        """What `preintegrated` needs of it, shape (71,): a row of the data of `Factors`."""
        return np.concatenate([[self.duration], self.delta, self.bias, self.jacobian.T.ravel()])


@interruptible
def preintegrated(
    X_i: Value, X_j: Value, bias: Value, data: Value, gravity: float = GRAVITY
) -> Value:
    """Residual ``minus(X_j, Γ Φ(X_i) Υ(b))`` of a `FactorGraph`, shape (9,).

    Parameters
    ----------
    X_i, X_j : casadi column, shape (10,)
        Extended poses (SE23).
    bias : casadi column, shape (6,)
    data : casadi column, shape (71,)
        `Preintegration.data`; its covariance is that of the residual.
    gravity : float
        m/s².
    """
    return SE23.minus(X_j, _predicted(X_i, bias, data, gravity))


def _predicted(X: Value, bias: Value, data: Value, gravity: Value) -> Value:
    T, delta, first = data[0], data[1:11], data[11:17]
    J = ca.reshape(data[17:], 9, 6)
    Y = SE23.plus(delta, J @ (bias - first))
    p, v, q = X[:3], X[3:6], X[6:]
    fall = -gravity * _UP
    moved = ca.vertcat(p + v * T + fall * T**2 / 2, v + fall * T, q)
    return SE23.compose(moved, Y)


@cache
def _moved() -> ModelFunction:
    return trace(
        "preintegrated", _predicted, {"X": (10,), "bias": (6,), "data": (71,), "gravity": ()},
        {"X_next": (10,)},
    )  # fmt: skip


@cache
def _loop(count: int) -> ModelFunction:
    """All samples; compiled, as it is called again and again."""
    return chain(_step(), count, carry=("z", "z_next"), each=["u"]).compiled(batch=False)


@cache
def _step() -> ModelFunction:
    """One sample: Υ, J (by columns) and the lower triangle of the covariance, in one column.

    ``Υ⁺ = Φ(Υ) U`` with the motion U that the sample makes from rest, which is all of it that
    depends on the sample, and ``Φ(Υ exp ε) = Φ(Υ) exp(F ε)``; U changes by ``exp(B δ)`` with its
    rate and acceleration. So the error becomes ``Ad(U⁻¹) F ε + B δ``.
    """

    def build(z: Value, u: Value, q: Value) -> Value:
        Y, J = z[:10], ca.reshape(z[10:64], 9, 6)
        P = ca.tril2symm(ca.SX(_TRIANGLE, z[64:]))
        read = ca.SX.sym("read", 6)
        dt = u[6]
        symbolic = held_motion(read[:3], read[3:], dt)
        slope = SE23.tangent_matrix(symbolic) @ ca.jacobian(symbolic, read)
        U, B = ca.substitute([symbolic, slope], [read], [u[:6]])
        F = ca.SX.eye(9)
        F[:3, 3:6] = dt * ca.SX.eye(3)
        A = SE23.Ad(SE23.inverse(U)) @ F
        J = A @ J - B
        P = A @ P @ A.T + B @ ca.diag(q * q / ca.fmax(dt, SHORTEST)) @ B.T
        along = ca.vertcat(Y[:3] + dt * Y[3:6], Y[3:])
        made = SE23.normalize(SE23.compose(along, U))
        return ca.vertcat(made, ca.densify(J)[:], ca.project(P, _TRIANGLE).nz[:])

    shapes = {"z": (109,), "u": (7,), "q": (6,)}
    return trace("preintegration", build, shapes, {"z_next": (109,)})
