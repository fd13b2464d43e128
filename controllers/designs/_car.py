"""A car on the plane: a single track whose wheels do not slip, and its outline as a capsule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import Bound, Capsule, keep_out
from lgcontrol.scene import wheeled_body
from lgcontrol.simulation import SimulationResult
from lgcontrol.systems import Input, Parameter, System

WHEELBASE, HALF_WIDTH = 2.7, 0.9  # m
STEERING = 0.55  # rad, largest angle
# Ends of the axis of the outline before the rear axle, m.
OUTLINE = (0.0, WHEELBASE)
HULL = (np.array([[ahead, 0.0] for ahead in OUTLINE]), HALF_WIDTH)


def car() -> System[Product]:
    """Car on SE(2) about the middle of its rear axle, with its speed and steering angle.

    Controls are the acceleration (m/s²) and the rate of the steering angle (rad/s). The slip, a
    speed of the rear axle to the left, and the slope, an acceleration, disturb it. The wheelbase is
    a parameter.
    """

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        speed, angle = x[4], x[5]
        return ca.vertcat(speed, u[2], speed * ca.tan(angle) / p[0], u[0] + u[3], u[1])

    return System(
        "car",
        Product(pose=SE2, speed=Rn(1, units="m/s"), steering=Rn(1, units="rad")),
        field,
        inputs=[
            Input("acceleration", "m/s²", -4.0, 2.0),
            Input("steering_rate", "rad/s", -0.6, 0.6),
            Input("slip", "m/s", role="disturbance"),
            Input("slope", "m/s²", role="disturbance"),
        ],
        parameters=[Parameter("wheelbase", "m", WHEELBASE)],
        look=wheeled_body(
            body=(4.2, 1.7, 0.7),
            wheelbase=WHEELBASE,
            track=1.5,
            wheel=(0.31, 0.22),
            ahead=WHEELBASE / 2,
            cabin=0.5,
        ),
    )


def outline(t: Any, x: Any, u: Any, p: Any) -> Any:
    """Ends of the axis of a car's outline, shape (2, 2)."""
    heading = x[2:4]
    return ca.horzcat(*(x[:2] + ahead * heading for ahead in OUTLINE))


def around(obstacle: Any, margin: float, name: str) -> Bound:
    """Bound that keeps the outline off an obstacle, by a margin in m."""
    return keep_out(outline, obstacle, radius=HALF_WIDTH + margin, soft=1000.0, name=name)


def standing(rear: Sequence[float], heading: float = 0.0) -> Capsule:
    """Another car, by the middle of its rear axle (m) and its heading (rad)."""
    start = np.asarray(rear, dtype=np.float64)
    return Capsule(
        start, start + WHEELBASE * np.array([np.cos(heading), np.sin(heading)]), HALF_WIDTH
    )


def named(cars: Sequence[Capsule]) -> dict[str, Capsule]:
    """Standing cars as obstacles of a picture."""
    return {f"car {k + 1}": one for k, one in enumerate(cars)}


@dataclass(frozen=True)
class Overlap:
    """By how much the car is too near to the nearest of standing cars, m; negative if it is not."""

    obstacles: tuple[Capsule, ...]

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        pose = run.block("pose")
        own = np.linspace(*OUTLINE, 12)
        points = pose[:, None, :2] + own[:, None] * pose[:, None, 2:4]
        gaps: list[np.ndarray] = []
        for one in self.obstacles:
            start, end = np.asarray(one.start), np.asarray(one.end)
            along = np.clip(
                (points - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1
            )
            nearest = start + along[..., None] * (end - start)
            gaps.append(np.linalg.norm(points - nearest, axis=-1).min(axis=1) - one.radius)
        return HALF_WIDTH - np.min(gaps, axis=0)
