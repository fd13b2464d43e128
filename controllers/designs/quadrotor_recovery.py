"""A quadrotor thrown upside down recovers and goes to a hover."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import quadrotor
from lgcontrol.simulation import HeldNoise, Kick, Task, Vary

from ._criteria import ATTITUDE, POSITION, error_at_end, failed_calls

GUSTS = HeldNoise(
    {f"force.{axis}": 0.5 for axis in "xyz"} | {f"torque.r{axis}": 0.01 for axis in "xyz"}, dt=0.05
)
PUSH = Kick(1.5, {"twist": [1.0, 0.0, -1.0, 3.0, -2.0, 1.0]})


def design(seed: int = 0) -> Task:
    """Quadrotor recovers by MPC from upside down, tilted by 170°, to a hover.

    The axis of the tilt is random in the horizontal plane. Gusts of force and torque change every
    50 ms; a push at 1.5 s changes the velocity by 1.4 m/s and the rates by 3.7 rad/s. The rotors
    can only push, with 6 N each at most. After four seconds position and attitude have to be within
    0.3 m and 0.3 rad.

    Parameters
    ----------
    seed : int
        Of the axis.
    """
    quad = quadrotor()
    hover = quad.trim(position=[2.0, 1.0, 1.0])
    mpc = MPC(
        quad,
        horizon=40,
        dt=0.05,
        Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        R=0.1,
        terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
    )

    def draw(seed: int) -> dict[str, Any]:
        heading = np.random.default_rng(seed).uniform(0, 2 * np.pi)
        axis = np.array([np.cos(heading), np.sin(heading), 0.0])
        tilted = SE3.from_rotation_vector(np.radians(170) * axis)
        return {"x0": np.concatenate([tilted, np.zeros(6)])}  # pose and twist

    return Task(
        plant=quad,
        controller=mpc,
        **draw(seed),
        seconds=4.0,
        reference=hover,
        options={"disturbances": [GUSTS, PUSH]},
        criteria=(
            error_at_end("position error", "pose", POSITION, "m", 0.3),
            error_at_end("attitude error", "pose", ATTITUDE, "rad", 0.3),
            failed_calls(),
        ),
        variations=(
            Vary("mass", 0.8, 1.2, relative=True),
            Vary("drag", 0.0, 2.0, relative=True),
            Vary("delay", 0.0, 0.03, unit="s"),
            Vary("disturbances", 0.0, 2.0, relative=True),
        ),
        draw=draw,
    )
