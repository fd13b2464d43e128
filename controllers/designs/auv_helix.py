"""An underwater vehicle follows a helix."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import underwater_vehicle
from lgcontrol.simulation import InputSignal, Task

from ._criteria import ATTITUDE, POSITION, failed_calls, largest_error

FORWARD, UP, TURN = 0.4, 0.1, 0.2  # m/s, m/s, rad/s: 2 m radius, 3.1 m a turn
CURRENT, SWELL = 0.1, 0.05  # m/s


def current(t: float) -> dict[str, float]:
    """Water that flows to +x, with a swell of eight seconds to and fro along y and z."""
    phase = 2 * np.pi * t / 8.0
    return {
        "current.x": CURRENT,
        "current.y": SWELL * np.sin(phase),
        "current.z": SWELL * np.cos(phase),
    }


def design(seed: int = 0) -> Task:
    """Underwater vehicle climbs along a helix by MPC, in a current it does not know.

    The helix is a relative equilibrium: level, with constant thrusts in water at rest. The vehicle
    starts at rest, 1 m away from it in a random direction and turned by 90° about a random axis.

    Parameters
    ----------
    seed : int
        Of the direction and the axis.
    """
    auv = underwater_vehicle()
    level = {"pose.qx": 0.0, "pose.qy": 0.0}
    helix = auv.trim(where={"twist": [FORWARD, 0.0, UP, 0.0, 0.0, TURN], **level})
    mpc = MPC(
        auv,
        horizon=20,
        dt=0.2,
        Q={"pose": [100, 100, 100, 50, 50, 50], "twist": [5, 5, 5, 50, 50, 50]},
        R=0.01,
        disturbance=("current.x", "current.y", "current.z"),
    )

    def draw(seed: int) -> dict[str, Any]:
        drawn = np.random.default_rng(seed).normal(size=(2, 3))
        away, axis = (v / np.linalg.norm(v) for v in drawn)
        offset = SE3.from_rotation_vector(np.pi / 2 * axis, position=away)
        start = SE3.compose(helix.x[:7], offset)
        return {"x0": np.concatenate([start, np.zeros(6)])}  # pose and twist

    return Task(
        plant=auv,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=60.0,
        reference=helix,
        options={"disturbances": [InputSignal(current, dt=0.2)]},
        criteria=(
            largest_error(
                "distance from the helix after 10 s", "pose", POSITION, "m", 0.2, since=10
            ),
            largest_error("attitude error after 10 s", "pose", ATTITUDE, "rad", 0.2, since=10),
            failed_calls(),
        ),
    )
