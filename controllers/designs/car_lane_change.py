"""A car changes its lane for one that stands in its way, and comes back."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2
from lgcontrol.optimal import Bound
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import Trajectory

from ._car import HALF_WIDTH, HULL, STEERING, WHEELBASE, Overlap, around, car, named, standing
from ._criteria import error_at_end, failed_calls

SPEED, SECONDS = 14.0, 8.0  # m/s, s
LANE = 3.5  # m
EDGES = -LANE / 2 + HALF_WIDTH, 1.5 * LANE - HALF_WIDTH  # m, of the road to the right and left
SIDEWAYS = 4.0  # m/s², largest acceleration across
SHARE = 0.85  # of it that the plan uses
MARGIN = 0.2  # m


def design(seed: int = 0) -> Task:
    """Car changes its lane at 14 m/s for a standing car and comes back, by MPC.

    The car that stands in the lane is some 50 m ahead, half a metre beside its middle. Another one
    stands in the left lane 45 m behind that. Lateral acceleration stays below 4 m/s², the car
    between the edges of the road. It starts too slow and beside its lane's middle; side wind lets
    it slip. The first plan reaches beyond the first car and is searched from the left lane. From
    its own lane half of the starts lead round the other side, beyond the edge.

    Parameters
    ----------
    seed : int
        Of the start and of where the cars stand.
    """
    plant, rng = car(), np.random.default_rng(seed)
    place = 50.0 + rng.uniform(-4.0, 4.0)
    others = [standing([place, rng.uniform(-0.5, 0.5)]), standing([place + 45.0, LANE])]
    t = np.array([0.0, SECONDS + 10.0])
    ends = [SE2.exp([SPEED * time, 0.0, 0.0]) for time in t]
    lane, left = (
        Trajectory(
            plant.state,
            t,
            [np.r_[end, SPEED, 0.0] + np.r_[0.0, y, np.zeros(4)] for end in ends],
            np.zeros((1, plant.n_inputs)),
        )
        for y in (0.0, LANE)
    )

    def sideways(t: Any, x: Any, u: Any, p: Any) -> Any:
        return x[4] ** 2 * ca.tan(x[5]) / p[0]

    mpc = MPC(
        plant,
        horizon=50,
        dt=0.1,
        Q={"pose": [0.05, 1.0, 5.0], "speed": 1.0, "steering": 1.0},
        R={"acceleration": 0.2, "steering_rate": 2.0},
        bounds=[
            Bound(
                sideways, -SHARE * SIDEWAYS, SHARE * SIDEWAYS, soft=100.0,
                name="lateral acceleration",
            ),
            Bound("steering", -STEERING, STEERING, soft=100.0),
            Bound("pose.y", *EDGES, soft=100.0, name="road"),
            *(around(other, MARGIN, f"car{k}") for k, other in enumerate(others)),
        ],
        guess=left,
    )  # fmt: skip

    start = SE2.exp([0.0, rng.choice([-0.6, 0.6]), 0.0])
    return Task(
        plant=plant,
        controller=mpc,
        x0=np.r_[start, SPEED - 4.0, 0.0],
        seconds=SECONDS,
        reference=lane,
        options={"disturbances": [HeldNoise({"slip": 0.1, "slope": 0.2}, dt=0.2)]},
        criteria=(
            Criterion("overlap with other cars", Overlap(tuple(others)), 0.0, "m"),
            Criterion("lateral acceleration", sideways_acceleration, SIDEWAYS + 0.5, "m/s²"),
            Criterion("beyond the edges of the road", beyond_edges, 0.0, "m"),
            error_at_end("off the lane's middle", "pose", slice(1, 2), "m", 0.3),
            error_at_end("off the speed", "speed", slice(0, 1), "m/s", 1.0),
            failed_calls(),
        ),
        obstacles=named(others),
        hull=HULL,
    )


def sideways_acceleration(run: SimulationResult) -> np.ndarray:
    """Size of the lateral acceleration [m/s²], shape (N,)."""
    speed, angle = run.block("speed")[:, 0], run.block("steering")[:, 0]
    return np.abs(speed**2 * np.tan(angle) / WHEELBASE)


def beyond_edges(run: SimulationResult) -> np.ndarray:
    """How far the rear axle is beyond the edges of the road [m], shape (N,)."""
    y = run.block("pose")[:, 1]
    return np.maximum(EDGES[0] - y, y - EDGES[1])
