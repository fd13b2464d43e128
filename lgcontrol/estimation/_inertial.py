"""Models that an IMU or odometry drives: their measurements are inputs."""

from __future__ import annotations

from math import inf
from typing import Any

import casadi as ca

from ..codegen import Value, named_options
from ..groups import SE2, SE23, SO3, LieGroup, Product, Rn
from ..systems import Input, System
from ..systems._internal import GRAVITY

_VECTOR = ("x", "y", "z")


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
