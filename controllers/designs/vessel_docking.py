"""A vessel moves sideways to its berth."""

from __future__ import annotations

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SO2
from lgcontrol.models import surface_vessel
from lgcontrol.optimal import Bound
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task

from ._criteria import error_at_end, failed_calls

QUAY = 0.15  # m beyond the berth
SPEED = 0.3  # m/s


def design(seed: int = 0) -> Task:
    """Surface vessel turns, slows down and docks at a quay by MPC, in gusts.

    The berth is at the origin, the quay 0.15 m to its left. The vessel comes from the right at
    a random heading, keeps below 0.3 m/s along and across, and must not touch.

    Parameters
    ----------
    seed : int
        Of the heading and the distance along the quay.

    Returns
    -------
    Task
    """
    vessel = surface_vessel()
    mpc = MPC(
        vessel,
        horizon=30,
        dt=0.5,
        Q={"pose": [1, 1, 2], "twist": [1, 1, 1]},
        R=0.1,
        terminal={"pose": [20, 20, 20], "twist": [50, 50, 50]},
        bounds=[
            Bound("twist.vx", -SPEED, SPEED, soft=100),
            Bound("twist.vy", -SPEED, SPEED, soft=100),
            Bound("pose.y", upper=QUAY, soft=1000),
        ],
    )
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-3, 3), -4.0, *SO2.exp([rng.uniform(-np.pi, np.pi)])]
    return Task(
        plant=vessel,
        controller=mpc,
        x0=np.concatenate([start, np.zeros(3)]),  # pose and twist
        seconds=60.0,
        reference=vessel.state.identity,
        options={
            "disturbances": [HeldNoise({"force.x": 0.1, "force.y": 0.1, "torque.rz": 0.02}, dt=2.0)]
        },
        criteria=(
            error_at_end("position error", "pose", slice(0, 2), "m", 0.1, over=5),
            error_at_end("heading error", "pose", slice(2, 3), "rad", 0.1, over=5),
            Criterion("nearest to the quay, beyond the berth", _side, QUAY, "m"),
            failed_calls(),
        ),
    )


def _side(run: SimulationResult) -> float:
    return float(run.block("pose")[:, 1].max())
