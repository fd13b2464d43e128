"""A quadrotor that knows of itself what IMU, GNSS and magnetometer say flies by MPC."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.estimation import (
    EKF,
    SensorDriven,
    gnss,
    imu,
    inertial_navigation,
    magnetometer,
)
from lgcontrol.groups import SE3, SE23, SO3
from lgcontrol.models import quadrotor
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task, Vary
from lgcontrol.systems import Sensor, System

from ._criteria import ATTITUDE, POSITION, error_at_end, failed_calls

GUSTS = HeldNoise({f"force.{axis}": 0.2 for axis in "xyz"}, dt=0.05)
GYRO, ACCELEROMETER = 1e-3, 1e-2  # densities, rad/s/√Hz and m/s²/√Hz
IMU_STEP, FIX_STEP, FIELD_STEP = 0.005, 0.1, 0.02  # s
ANTENNA, FIELD = (0.0, 0.0, 0.1), (0.0, 0.43, -0.9)  # field in units of its strength, z up
GRAVITY = 9.81


def design(seed: int = 0) -> Task:
    """Quadrotor flies to a hover by MPC on estimates from IMU, GNSS, magnetometer.

    An invariant filter on the extended pose is driven by the IMU at 200 Hz. Fixes with σ = 5 cm
    come at 10 Hz from an antenna off the centre, the field at 50 Hz. The first estimate is off by
    about 0.2 m, 0.2 m/s and 6°, the biases are unknown. After four seconds position and attitude
    have to be within 0.3 m and 0.3 rad, the estimate within 0.15 m.

    Parameters
    ----------
    seed : int
        Of the start and of the first estimate.
    """
    quad = quadrotor()

    def inertial(vehicle: System[Any]) -> Sensor:
        density = [GYRO] * 3 + [ACCELEROMETER] * 3
        return imu(vehicle, gravity=GRAVITY, dt=IMU_STEP, density=density)

    def sensors(vehicle: System[Any]) -> list[Sensor]:
        return [inertial(vehicle), fix, field]

    fix = gnss(quad, lever_arm=ANTENNA, std_discrete=0.05, dt=FIX_STEP)
    field = magnetometer(quad, FIELD, std_discrete=0.02, dt=FIELD_STEP)
    mpc = MPC(
        quad,
        horizon=40,
        dt=0.05,
        Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        R=0.1,
        terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        tilt = SE3.from_rotation_vector(np.radians(40) * _direction(rng))
        x0 = np.concatenate([tilt, 0.5 * rng.normal(size=6)])
        estimator = SensorDriven(
            _filter(quad.state.split(x0), rng),
            inertial(quad),
            ["gyro", "accelerometer"],
            quad,
            _state,
        )
        options = {"disturbances": [GUSTS], "sensors": sensors, "estimator": estimator}
        return {"x0": x0, "options": options}

    return Task(
        plant=quad,
        controller=mpc,
        **draw(seed),
        seconds=4.0,
        reference=quad.trim(position=[2.0, 1.0, 1.0]),
        criteria=(
            error_at_end("position error", "pose", POSITION, "m", 0.3),
            error_at_end("attitude error", "pose", ATTITUDE, "rad", 0.3),
            Criterion(
                "position error of the estimate at the end", estimate_error, 0.15, "m", last=0.0
            ),
            failed_calls(),
        ),
        variations=(
            Vary("mass", 0.8, 1.2, relative=True),
            Vary("delay", 0.0, 0.03, unit="s"),
            Vary("noise", 0.5, 2.0, relative=True, log=True),
            Vary("bias.gnss", -0.1, 0.1, unit="m"),
        ),
        draw=draw,
    )


def _filter(start: dict[str, Any], rng: np.random.Generator) -> EKF:
    """Inertial navigation from about where the quadrotor is."""
    model: System[Any] = inertial_navigation(gravity=GRAVITY)
    R = SE3.as_rotation_matrix(start["pose"])
    body = SE23.from_rotation(
        SE3.rotation(start["pose"]), [SE3.position(start["pose"]), R @ start["twist"][:3]]
    )
    first = SE23.plus(body, np.array([0.1] * 6 + [0.06] * 3) * rng.normal(size=9))
    return EKF(
        model,
        [gnss(model, lever_arm=ANTENNA, std_discrete=0.05),
         magnetometer(model, FIELD, std_discrete=0.02)],
        model.state.join(body=first),
        std0={"body": 0.1, "gyro_bias": 0.01, "accelerometer_bias": 0.1},
        noise={"gyro": GYRO, "accelerometer": ACCELEROMETER, "gyro_bias_walk": 1e-5,
               "accelerometer_bias_walk": 1e-4},
        method="euler",
        gate=0.9999,
    )  # fmt: skip


def _state(t: Value, x: Value, u: Value, p: Value) -> Value:
    """Pose and twist of the quadrotor, from extended pose, rates and their bias."""
    R = SO3.matrix(x[6:10])
    return ca.vertcat(x[:3], x[6:10], R.T @ x[3:6], u[:3] - x[10:13])


def _direction(rng: np.random.Generator) -> np.ndarray:
    heading = rng.uniform(0, 2 * np.pi)
    return np.array([np.cos(heading), np.sin(heading), 0.0])


def estimate_error(run: SimulationResult) -> np.ndarray:
    """Distance [m] of the estimated position from the true one, shape (N,)."""
    return np.linalg.norm(run.estimation_error[:, POSITION], axis=1)
