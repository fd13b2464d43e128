"""An underwater vehicle that knows of itself what DVL, depth and USBL say dives along a helix."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.estimation import EKF, OffsetFree, depth, dvl, gnss
from lgcontrol.groups import SE3, Rn
from lgcontrol.models import underwater_vehicle
from lgcontrol.simulation import Criterion, InputSignal, SimulationResult, Task
from lgcontrol.systems import Sensor, System

from ._criteria import ATTITUDE, POSITION, failed_calls, largest_error

FORWARD, DOWN, TURN = 0.5, 0.1, 0.2  # m/s, m/s, rad/s: 2.5 m radius, 3.1 m a turn
CURRENT, SWELL = (0.15, -0.1), 0.05  # m/s
FLOW = ("current.x", "current.y", "current.z")
HEAD = (0.2, 0.0, -0.12)  # DVL below the bow, m
TRANSPONDER = (-0.2, 0.0, 0.15)  # above the stern, m
STEP = 0.2  # s
RATES = Rn(3, ("x", "y", "z"), ("rad/s",) * 3)
POSITION_STD, ANGLE_STD = 0.5, np.radians(10)  # of the first estimate, m, rad
# What the model does not know of forces, as noise: a twentieth of the 40 N and 4 N m that thrusters
# and water exert, over about a second.
FORCE, TORQUE = 2.0, 0.2  # N/√Hz, N m/√Hz


def current(t: float) -> dict[str, float]:
    """Water that flows steadily, and heaves with a swell of eight seconds."""
    return {
        "current.x": CURRENT[0],
        "current.y": CURRENT[1],
        "current.z": SWELL * np.sin(2 * np.pi * t / 8.0),
    }


def design(seed: int = 0) -> Task:
    """Underwater vehicle dives along a helix on estimates from DVL, depth, USBL.

    No compass: a filter on the model of the vehicle finds heading and tilt. It takes the velocity
    over ground in the body frame (5 Hz, σ = 1 cm/s) and rates of turn (10 Hz, σ = 0.01 rad/s). The
    depth (5 Hz, σ = 2 cm) and acoustic fixes (1 Hz, σ = 0.2 m) that come 0.4 s late complete it.
    The flow of the water is a state of it, and the MPC counts with it. The vehicle starts at rest,
    1 m away from the helix; the first estimate is off by 0.5 m and 10° an axis.

    Parameters
    ----------
    seed : int
        Of the start and of the first estimate.
    """
    auv = underwater_vehicle()
    level = {"pose.qx": 0.0, "pose.qy": 0.0}
    helix = auv.trim(where={"twist": [FORWARD, 0.0, -DOWN, 0.0, 0.0, TURN], **level})
    rng = np.random.default_rng(seed)
    away = rng.normal(size=3)
    start = SE3.compose(
        helix.x[:7], SE3.from_rotation_vector(np.zeros(3), position=away / np.linalg.norm(away))
    )
    off = np.repeat([POSITION_STD, ANGLE_STD], 3) * rng.normal(size=6)

    model = auv.augment(bias=FLOW, bias_walk=True)
    mpc = MPC(
        model,
        horizon=20,
        dt=STEP,
        Q={"pose": [100, 100, 100, 50, 50, 50], "twist": [5, 5, 5, 50, 50, 50]},
        R=0.01,
    )
    both = OffsetFree(mpc, _filter(model, SE3.plus(start, off)), auv)
    return Task(
        plant=auv,
        controller=both,
        x0=np.concatenate([start, np.zeros(6)]),  # pose and twist
        seconds=40.0,
        reference=helix,
        options={
            "disturbances": [InputSignal(current, dt=STEP)],
            "sensors": _sensors(auv),
            "estimator": both,
        },
        criteria=(
            largest_error(
                "distance from the helix after 15 s", "pose", POSITION, "m", 0.5, since=15
            ),
            largest_error("attitude error after 15 s", "pose", ATTITUDE, "rad", 0.3, since=15),
            Criterion(
                "mean square of the estimated pose's errors, in deviations", _pose_squares, 3.0, ""
            ),
            failed_calls(),
        ),
    )


def _sensors(system: System[Any]) -> list[Sensor]:
    return [
        dvl(system, lever_arm=HEAD, std_discrete=0.01, dt=STEP),
        Sensor("gyro", _rates, RATES, std_discrete=0.01, dt=STEP / 2),
        depth(system, lever_arm=TRANSPONDER, std_discrete=0.02, dt=STEP),
        gnss(system, lever_arm=TRANSPONDER, name="usbl", std_discrete=0.2, dt=1.0, delay=0.4),
    ]


def _rates(t: Value, x: Value, u: Value, p: Value) -> Value:
    return x[10:13]  # behind pose and linear velocity


def _filter(model: System[Any], pose: np.ndarray) -> EKF:
    """Filter on the vehicle's own model, from about where it is, in water of unknown flow."""
    tangent = [*[POSITION_STD] * 3, *[ANGLE_STD] * 3]
    names = [f"pose.{name}" for name in SE3.tangent_names]
    return EKF(
        model,
        _sensors(model),
        model.state.join(pose=pose),
        std0={**dict(zip(names, tangent, strict=True)), "twist": 0.05, "bias": 0.2},
        noise={"force": FORCE, "torque": TORQUE, **{f"{name}.walk": 0.02 for name in FLOW}},
    )


def _pose_squares(run: SimulationResult) -> float:
    """Mean square of the errors of the pose in their deviations."""
    error, std = run.estimation_error, run.estimate_std
    if std is None:
        return float("nan")
    return float(np.mean((error[1:, :6] / std[1:, :6]) ** 2))
