"""A satellite turns to a new attitude with its reaction wheels, and does not look into the sun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.controllers import MPC, GeometricPD
from lgcontrol.groups import SO3
from lgcontrol.models import satellite
from lgcontrol.optimal import Bound, Cone
from lgcontrol.simulation import Criterion, SimulationResult, Task
from lgcontrol.systems import Parameter

from ._criteria import error_at_end, failed_calls

TOP_SPEED = 6000 * 2 * np.pi / 60  # of the wheels [rad/s]
WHEEL_INERTIA = 50.0 / TOP_SPEED  # kg m²
STORED = 43.0  # N m s in the wheel that has most at the start
INSTRUMENT = np.array([0.0, 0.0, 1.0])  # its axis in the body
TURN = np.radians(150)
SUN = np.radians(25)  # the instrument stays as far away from it
MARGIN = np.radians(2)  # of the plan
SHARE = 0.95  # of the wheels' speed that the plan uses


def design(seed: int = 0) -> Task:
    """Satellite turns by 150° by MPC around the sun, with wheels that saturate.

    From rest, with motor torques of at most 0.2 N m. The sun stands a few degrees beside the direct
    way of an instrument's axis, which keeps 25° away from it. The wheels already store some 43 N m
    s about the axis of the turn and saturate at 50. The torques alone would therefore allow a
    faster turn than their speeds do. Body and wheels keep their common angular momentum.

    Parameters
    ----------
    seed : int
        Of the axis, the sun's place and what the wheels store.
    """
    craft, rng = satellite(wheels=True), np.random.default_rng(seed)
    azimuth, height = rng.uniform(-np.pi, np.pi), rng.uniform(-0.5, 0.5)
    axis = np.array([np.cos(azimuth), np.sin(azimuth), np.tan(height)]) * np.cos(height)
    turned = SO3.exp(TURN * axis)
    halfway = SO3.act(SO3.exp(TURN / 2 * axis), INSTRUMENT)
    ahead = np.cross(axis, halfway)
    aside = rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(3.0, 10.0))
    sun = SO3.act(SO3.exp(aside * ahead / np.linalg.norm(ahead)), halfway)
    stored = STORED * axis / np.abs(axis).max() + rng.normal(0.0, 1.0, 3)

    def boresight(t: Any, x: Any, u: Any, p: Any) -> Any:
        return SO3.act(x[:4], INSTRUMENT)

    mpc = MPC(
        craft,
        horizon=50,
        dt=5.0,
        Q={"pose": 1.0, "twist": 20.0, "wheel_speed": 0.0},
        R=0.2,
        terminal={"pose": 100.0, "twist": 3e4, "wheel_speed": 0.0},
        bounds=[
            # A parameter: another sun is other numbers for the same code.
            Cone(lambda t, p: p[p.shape[0] - 3 :], SUN + MARGIN).outside(
                boresight, soft=1000.0, name="sun"
            ),
            Bound("wheel_speed", -SHARE * TOP_SPEED, SHARE * TOP_SPEED, soft=1.0),
        ],
        parameters=[Parameter(f"sun.{a}", "", c) for a, c in zip("xyz", sun, strict=True)],
        guess=GeometricPD(craft, frequency=0.02, dt=5.0),
    )

    return Task(
        plant=craft,
        controller=mpc,
        x0=np.concatenate([turned, np.zeros(3), stored / WHEEL_INERTIA]),
        seconds=600.0,
        reference=craft.state.identity,
        options={"max_step": 1.0},
        criteria=(
            error_at_end("attitude error", "pose", slice(0, 3), "rad", 0.01, over=10),
            Criterion(
                "angle to the sun", SunAngle(sun), unit="°", least=np.degrees(SUN), take="least"
            ),
            Criterion("highest wheel speed", wheel_speed, TOP_SPEED, "rad/s"),
            error_at_end("rate", "twist", slice(0, 3), "rad/s", 1e-4, over=10),
            failed_calls(),
        ),
    )


@dataclass(frozen=True, eq=False)
class SunAngle:
    """Angle [°] between the instrument's axis and the sun."""

    sun: np.ndarray

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        along = SO3.act(run.block("pose"), INSTRUMENT) @ self.sun
        return np.degrees(np.arccos(np.clip(along, -1.0, 1.0)))


def wheel_speed(run: SimulationResult) -> np.ndarray:
    """Speed of the fastest wheel [rad/s], shape (N,)."""
    return np.abs(run.block("wheel_speed")).max(axis=1)
