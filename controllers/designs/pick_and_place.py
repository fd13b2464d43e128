"""A pick-and-place head carries its load over a wall in the least time that drives allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgcontrol.controllers import GeometricPD
from lgcontrol.groups import Schoenflies
from lgcontrol.models import pick_and_place_head
from lgcontrol.optimal import retime
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import BSpline

from ._criteria import Known, error_at_end, failed_calls

FLOOR, SPAN, TURN = -0.8, 0.6, 2.5  # m, m, rad: of the way from one side to the other
WALL, SIZE, LIFT = (
    0.08,
    0.06,
    0.3,
)  # m: radii of wall and load, height of the way
ACCELERATION, TORQUE = 165.0, 5.0  # m/s², N m: the head's own
SHARE = 0.8  # of the drives that the plan uses; feedback has the rest
SECONDS = 0.3  # with the rest at the end


def design(seed: int = 0) -> Task:
    """Head on Schönflies motions carries its load over a wall in the least time.

    A spline over the wall turns the load by 2.5 rad on the way; it is followed as fast as 80 % of
    the drives allow. Feedback along it on the group works against noisy forces and the millimetres
    by which the head starts elsewhere.

    Parameters
    ----------
    seed : int
        Of the place and of the start.
    """
    head, rng = pick_and_place_head(), np.random.default_rng(seed)
    modest = pick_and_place_head(max_acceleration=SHARE * ACCELERATION, max_torque=SHARE * TORQUE)
    far = np.array([SPAN / 2, rng.uniform(-0.1, 0.1), FLOOR])
    near = np.array([-SPAN / 2, 0.0, FLOOR])
    up = np.array([0.0, 0.0, LIFT])
    ways = [near, near + 0.4 * up, near + up, (near + far) / 2 + up, far + up, far + 0.4 * up, far]
    turns = np.array([0.0, 0.0, 0.2, 0.5, 0.8, 1.0, 1.0]) * TURN
    corners = [
        np.r_[way, Schoenflies.exp([0, 0, 0, turn])[3:]]
        for way, turn in zip(ways, turns, strict=True)
    ]
    path = BSpline(Schoenflies, [0.0, 1.0, 2.0, 3.0, 4.0], np.array(corners), degree=3)
    found = retime(path, system=modest)
    carrying = float(found.t[-1])
    control = GeometricPD(head, frequency=100.0, dt=1e-3)

    off = np.r_[rng.uniform(-0.003, 0.003, 3), 0.02]

    return Task(
        plant=head,
        controller=control,
        x0=np.r_[Schoenflies.plus(corners[0], off), np.zeros(4)],
        seconds=SECONDS,
        reference=found.motion,
        options={"disturbances": [HeldNoise({f"force.{a}": 2.0 for a in "xyz"}, dt=0.005)]},
        criteria=(
            Criterion("time of the way", Known(carrying), 0.25, "s"),
            Criterion("off its place from then on", Away(far), 0.005, "m", since=carrying),
            Criterion("load inside of the wall", inside, -SIZE, "m"),
            error_at_end("turned off", "pose", slice(3, 4), "rad", 0.02, over=0.02),
            failed_calls(),
        ),
        obstacles={"wall": (np.array([[0.0, y, FLOOR] for y in (-0.2, 0.2)]), WALL)},
        hull=(np.zeros(3), SIZE),
    )


@dataclass(frozen=True, eq=False)
class Away:
    """Distance [m] of the head from a place."""

    place: np.ndarray

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return np.linalg.norm(run.x[:, :3] - self.place, axis=1)


def inside(run: SimulationResult) -> np.ndarray:
    """How deep the middle of the load is in the wall [m], shape (N,)."""
    x, z = run.block("pose")[:, 0], run.block("pose")[:, 2]
    return WALL - np.hypot(x, z - FLOOR)
