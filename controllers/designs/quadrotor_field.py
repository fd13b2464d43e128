"""A quadrotor flies through a field of balloons at 8 m/s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import quadrotor
from lgcontrol.optimal import Bound, Sphere, keep_out
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import Parameter, ScrewMotion

from ._criteria import POSITION, error_at_end, failed_calls

SPEED, SECONDS, HEIGHT = 8.0, 4.0, 2.0  # m/s, s, m
SIZE, MARGIN = 0.25, 0.1  # m: of the vehicle, and what gusts may take
COUNT, RADIUS, SPACING = 4, 0.8, 6.0  # balloons, m, m between them along the way


def design(seed: int = 0) -> Task:
    """Quadrotor keeps 8 m/s by MPC with preview, around four balloons in its way.

    Balloons of 0.8 m radius stand every six metres, up to 0.3 m beside the line; the start is some
    0.8 m off it, at 8 m/s; gusts push with 0.3 N. On the mean it keeps 8 m/s to 1 %, and
    is never slower along the line than 7.2, though it dodges. After four seconds the vehicle is
    back on it, and never came nearer to a balloon than 0.25 m, its own size.

    Parameters
    ----------
    seed : int
        Of the start and the places of the balloons.
    """
    quad = quadrotor()
    rng = np.random.default_rng(seed)
    centers = np.array([[SPACING * (k + 1), 0.0, HEIGHT] for k in range(COUNT)])
    centers[:, 1:] += rng.uniform(-0.3, 0.3, (COUNT, 2))
    # Parameters: other places are other numbers for the same code.
    places = [
        Parameter(f"balloon{k}.{axis}", "m", value)
        for k, center in enumerate(centers.tolist())
        for axis, value in zip("xyz", center, strict=True)
    ]

    def around(k: int) -> Bound:
        balloon = Sphere(lambda t, p: p[p.shape[0] - 3 * (COUNT - k) :][:3], RADIUS)
        return keep_out(
            lambda t, x, u, p: x[:3], balloon, radius=SIZE + MARGIN, soft=1000, name=f"balloon{k}"
        )

    line = ScrewMotion(
        SE3, SE3.from_position([0, 0, HEIGHT]), [SPEED, 0, 0, 0, 0, 0], SECONDS + 5.0
    )
    mpc = MPC(
        quad,
        horizon=20,
        dt=0.05,
        Q={"pose": [5, 5, 5, 2, 2, 2], "twist": [2, 0.5, 0.5, 0.1, 0.1, 0.1]},
        R=0.05,
        bounds=[around(k) for k in range(COUNT)],
        parameters=places,
    )

    x0 = line.states(quad, 0.0)[0]
    x0[1:3] += rng.choice([-0.6, 0.6], 2) * rng.uniform(0.9, 1.1, 2)
    return Task(
        plant=quad,
        controller=mpc,
        x0=x0,
        seconds=SECONDS,
        reference=line,
        options={"disturbances": [HeldNoise({f"force.{axis}": 0.3 for axis in "xyz"}, dt=0.05)]},
        criteria=(
            Criterion(
                "clearance of the balloons", Clearance(centers), unit="m", least=0.0, take="least"
            ),
            Criterion("mean speed", mean_speed, unit="m/s", least=0.99 * SPEED),
            Criterion("lowest speed", speed_ahead, unit="m/s", least=0.9 * SPEED, take="least"),
            error_at_end("position error", "pose", POSITION, "m", 0.3),
            failed_calls(),
        ),
        obstacles={f"balloon {k + 1}": (one, RADIUS) for k, one in enumerate(centers)},
        hull=(np.zeros(3), SIZE),
    )


@dataclass(frozen=True, eq=False)
class Clearance:
    """Distance [m] of the vehicle to the nearest balloon."""

    centers: np.ndarray

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        gaps = np.linalg.norm(run.block("pose")[:, None, :3] - self.centers, axis=2)
        return gaps.min(axis=1) - RADIUS - SIZE


def mean_speed(run: SimulationResult) -> float:
    """Along the line [m/s]."""
    x = run.block("pose")[:, 0]
    return float((x[-1] - x[0]) / run.t[-1])


def speed_ahead(run: SimulationResult) -> np.ndarray:
    """Speed along the line [m/s], shape (N,)."""
    pose = run.block("pose")
    return (SE3.act(pose, run.block("twist")[:, :3]) - pose[:, :3])[:, 0]
