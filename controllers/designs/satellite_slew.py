"""A satellite turns to a new attitude with its reaction wheels."""

from __future__ import annotations

import numpy as np

from lgcontrol.controllers import GeometricPD
from lgcontrol.groups import SO3
from lgcontrol.models import satellite
from lgcontrol.simulation import Criterion, SimulationResult, Task

from ._criteria import error_at_end, failed_calls

TOP_SPEED = 6000 * 2 * np.pi / 60  # of the wheels [rad/s]


def design(seed: int = 0) -> Task:
    """Satellite turns by 150° with reaction wheels and geometric feedback on SO(3).

    From rest, about a random axis, with motor torques of at most 0.2 N m. The wheels end at rest,
    too, because body and wheels keep their common angular momentum.

    Parameters
    ----------
    seed : int
        Of the axis.

    Returns
    -------
    Task
    """
    craft = satellite(wheels=True)
    axis = np.random.default_rng(seed).normal(size=3)
    turned = SO3.exp(np.radians(150) * axis / np.linalg.norm(axis))
    goal = craft.state.identity
    return Task(
        plant=craft,
        controller=GeometricPD(craft, frequency=0.02, dt=1.0),
        x0=np.concatenate([turned, np.zeros(6)]),  # pose; twist and wheel speeds
        seconds=600.0,
        reference=goal,
        options={"max_step": 0.5},
        criteria=(
            error_at_end("attitude error", "pose", slice(0, 3), "rad", 0.01, over=10),
            Criterion("highest wheel speed", _highest_wheel_speed, TOP_SPEED, "rad/s"),
            Criterion("wheel speed at the end", _final_wheel_speed, 1.0, "rad/s"),
            failed_calls(),
        ),
    )


def _highest_wheel_speed(run: SimulationResult) -> float:
    return float(np.abs(run.block("wheel_speed")).max())


def _final_wheel_speed(run: SimulationResult) -> float:
    return float(np.abs(run.block("wheel_speed")[-1]).max())
