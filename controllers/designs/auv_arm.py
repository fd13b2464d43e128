"""An underwater vehicle holds its arm's tool still while it moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import OperationalSpace
from lgcontrol.groups import SE3
from lgcontrol.models import underwater_vehicle_arm, underwater_vehicle_arm_tree
from lgcontrol.simulation import Criterion, InputSignal, SimulationResult, Task

from ._criteria import ATTITUDE, POSITION, FrameError

TOOL = "tool"
BENT = np.array([0.0, 0.7, 0.6, 0.0])  # rad: the arm reaches forward and down
SWAY, RISE, PERIOD = 0.15, 0.06, 10.0  # m, m, s: how the vehicle is asked to move
SURGE, CURRENT = 6.0, 0.15  # N, m/s: waves that push the vehicle, water that flows past
WAVES = 4.0  # s
SETTLED = 5.0  # s, from when the tool has to be still


def sea(t: float) -> dict[str, float]:
    """Pushes of waves on the vehicle, and a steady current, neither known to the controller."""
    phase = 2 * np.pi * t / WAVES
    return {
        "force.x": SURGE * np.sin(phase),
        "force.y": SURGE * np.cos(phase),
        "torque.rz": 0.5 * np.sin(phase),
        "current.y": CURRENT,
    }


def design(seed: int = 0) -> Task:
    """Underwater vehicle holds its arm's tool in place while it sways in waves.

    The tool's pose on SE(3) is the task of an operational-space controller that drives thrusters
    and joints together. The vehicle's sway and heave are the posture. The vehicle follows it as far
    as four joints and its own heading and tilt leave the tool alone. Waves push the vehicle and a
    current flows across, neither known to the controller. At the start the tool is some centimetres
    and degrees off.

    Parameters
    ----------
    seed : int
        Of the error at the start.
    """
    plant, tree = underwater_vehicle_arm(), underwater_vehicle_arm_tree()
    ready = np.concatenate([SE3.identity, BENT])
    place = tree.placement(TOOL)
    held = place(ready)

    def posture(t: float) -> np.ndarray:
        phase = 2 * np.pi * t / PERIOD
        away = [0.0, SWAY * np.sin(phase), RISE * (1 - np.cos(phase)) / 2, 0.0, 0.0, 0.0]
        sway, rise = SWAY * np.cos(phase), RISE * np.sin(phase) / 2
        speed = np.array([0.0, sway, rise, 0.0, 0.0, 0.0]) * 2 * np.pi / PERIOD
        return np.concatenate([SE3.exp(away), BENT, speed, np.zeros(len(BENT))])

    control = OperationalSpace(
        tree,
        TOOL,
        system=plant,
        frequency=8.0,
        posture=posture,
        posture_frequency=[1.0] * 6 + [0.5] * 4,
        dt=0.02,
        reference=held,
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        q = tree.configuration.plus(ready, rng.uniform(-0.1, 0.1, tree.nv))
        return {"x0": np.concatenate([q, np.zeros(tree.nv)])}

    return Task(
        plant=plant,
        controller=control,
        **draw(seed),
        draw=draw,
        seconds=30.0,
        options={"disturbances": [InputSignal(sea, dt=0.05)]},
        criteria=(
            Criterion(
                "tool off its place after 5 s",
                FrameError(place, held, POSITION),
                0.02,
                "m",
                since=SETTLED,
                goal=0,
            ),
            Criterion(
                "tool turned after 5 s",
                FrameError(place, held, ATTITUDE),
                0.05,
                "rad",
                since=SETTLED,
            ),
            Criterion("way of the vehicle meanwhile", _way, unit="m"),
        ),
        goals=(held,),
    )


def _way(run: SimulationResult) -> float:
    """Diagonal of the box in which the vehicle moves once the tool has settled."""
    late = run.x[run.t >= min(SETTLED, run.t[-1]), :3]
    return float(np.linalg.norm(np.ptp(late, axis=0)))
