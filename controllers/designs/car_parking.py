"""A car parks backwards between two others."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2
from lgcontrol.optimal import Bound
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task

from ._car import HALF_WIDTH, HULL, STEERING, WHEELBASE, Overlap, around, car, named, standing
from ._criteria import error_at_end, failed_calls

GAP = 7.5  # m between the cars
ASIDE = 2.4  # m from the street to the row of cars
KERB = 0.4  # m beyond the outline of a parked car
SPEED = 1.5  # m/s
MARGIN = 0.1  # m


def design(seed: int = 0) -> Task:
    """Car parks backwards into a gap of 7.5 m between two cars by MPC, in ten seconds.

    Its outline is 4.5 m long and 1.8 m wide. It comes to a stand beside the front car and sets back
    at no more than 1.5 m/s. It touches neither of the cars and not the kerb, and ends parallel to
    it.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    plant = car()
    middle = WHEELBASE / 2
    half = GAP / 2 + HALF_WIDTH
    others = [standing([half, -ASIDE]), standing([-half - WHEELBASE, -ASIDE])]
    goal = np.r_[-middle, -ASIDE, 1.0, 0.0, 0.0, 0.0]
    mpc = MPC(
        plant,
        horizon=60,
        dt=0.15,
        Q={"pose": [1.0, 1.0, 2.0], "speed": 0.1, "steering": 0.1},
        R={"acceleration": 0.1, "steering_rate": 0.1},
        terminal={"pose": [100.0, 100.0, 200.0], "speed": 20.0, "steering": 5.0},
        bounds=[
            Bound("speed", -SPEED, SPEED, soft=100.0),
            Bound("steering", -STEERING, STEERING, soft=100.0),
            Bound("pose.y", lower=-ASIDE - KERB, soft=1000.0, name="kerb"),
            *(around(other, MARGIN, f"car{k}") for k, other in enumerate(others)),
        ],
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        start = SE2.exp([half + rng.uniform(-0.5, 0.5), rng.uniform(-0.2, 0.2), 0.0])
        return {"x0": np.r_[start, 0.0, 0.0]}

    return Task(
        plant=plant,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=15.0,
        reference=goal,
        options={"disturbances": [HeldNoise({"slip": 0.02, "slope": 0.05}, dt=0.3)]},
        criteria=(
            Criterion("overlap with other cars", Overlap(tuple(others)), 0.0, "m"),
            Criterion("over the kerb", beyond_kerb, KERB + 0.1, "m"),
            error_at_end("position error", "pose", slice(0, 2), "m", 0.1, over=1.0),
            error_at_end("heading error", "pose", slice(2, 3), "rad", 0.05, over=1.0),
            failed_calls(),
        ),
        obstacles=named(others),
        hull=HULL,
    )


def beyond_kerb(run: SimulationResult) -> np.ndarray:
    """How far the car is to the right of its place [m], shape (N,)."""
    pose = run.block("pose")
    front = pose[:, 1] + WHEELBASE * pose[:, 3]
    return -ASIDE - np.minimum(pose[:, 1], front)
