"""A five-bar robot reaches past a singularity that a bound on its conditioning keeps it from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import Translation
from lgcontrol.mechanics.constrained import ClosedTree
from lgcontrol.models import five_bar_tree
from lgcontrol.optimal import Bound, Residual
from lgcontrol.simulation import Criterion, SimulationResult, Task

from ._criteria import failed_calls

DRIVES = ("left", "right")
BASE = 0.4  # m, between the drives: wide, so that the distal bars can be in line
START, GOAL = (-0.2, 0.21), (0.2, 0.21)  # m, of the tip: x and z
MOVE = 1.2  # s that the straight way takes
TORQUE = 4.0  # N m
PROXIMAL, DISTAL = 0.25, 0.35  # m, of the bars
STOPS = (0.3, 2.8)  # rad, of the elbows: both stay outwards
LEAST = 0.15  # of the mobility of the drives that the loop leaves
BODIES = {
    "left drive": "left", "left elbow": "left_elbow", "tip": "tip", "right elbow": "right_elbow",
    "right drive": "right",
}  # fmt: skip
DT = 0.02
HORIZON = 40
SECONDS = 2.0
SPREAD = 0.01  # m


def design(seed: int = 0) -> Task:
    """Five-bar robot goes round the position where its distal bars align.

    There the drives do not decide the tip, whatever their torques. The wanted way is straight and
    passes 1 cm beside it. The plan keeps "conditioning", the share of the drives' mobility that the
    loop leaves (0 where the bars align), above a limit. It keeps the elbows outwards, so the tip
    goes round above it. The bars of the true robot are a tenth heavier.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    robot = five_bar_tree(PROXIMAL, DISTAL, BASE, torque=TORQUE)
    goal = configuration(robot, *GOAL)

    def draw(seed: int) -> dict[str, Any]:
        x, z = np.array(START) + np.random.default_rng(seed).uniform(-SPREAD, SPREAD, 2)
        return {"x0": np.concatenate([configuration(robot, x, z), np.zeros(4)])}

    model = robot.system(DRIVES, independent=DRIVES, at=goal)
    heavy = five_bar_tree(PROXIMAL, DISTAL, BASE, (0.66, 0.44), torque=TORQUE)
    plant = heavy.system(DRIVES, independent=DRIVES, at=goal)
    rest = model.trim(np.concatenate([goal, np.zeros(4)]))
    tip, nq = robot.tree.position("tip"), robot.tree.nq

    def away(t: Value, x: Value, u: Value, p: Value) -> Value:
        s = ca.fmax(0.0, ca.fmin(t / MOVE, 1.0))
        along = s**3 * (10 - 15 * s + 6 * s**2)
        wanted = ca.DM(START) + along * (ca.DM(GOAL) - ca.DM(START))
        return tip(x[:nq])[[0, 2]] - wanted

    mpc = MPC(
        model,
        horizon=HORIZON,
        dt=DT,
        Q=1e-3,
        R=1e-3,
        residuals=[Residual(away, weight=3e3, terminal=1e2, name="tip", group=Translation("xz"))],
        bounds=[
            Bound("conditioning", lower=LEAST, soft=3e4),
            Bound("configuration.left_elbow.angle", -STOPS[1], -STOPS[0], soft=3e3),
            Bound("configuration.right_elbow.angle", *STOPS, soft=3e3),
        ],
    )

    return Task(
        plant=plant,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=SECONDS,
        reference=rest,
        criteria=(
            Criterion(
                "distance from the goal at the end", TipDistance(tip), 0.01, "m", last=0.0, goal=0
            ),
            Criterion(
                "conditioning at its worst",
                Conditioning(plant.quantities["conditioning"]),
                least=0.9 * LEAST,
                take="least",
            ),
            failed_calls(),
        ),
        goals=(robot.tree.placement("tip")(goal),),
    )


def configuration(robot: ClosedTree, x: float, z: float) -> np.ndarray:
    """Angles that put the tip at a point, with the elbows outwards."""
    q = np.zeros(4)
    for k, side in enumerate((-1.0, 1.0)):
        dx = x - side * BASE / 2
        reach = np.hypot(dx, z)
        corner = np.arccos((PROXIMAL**2 + reach**2 - DISTAL**2) / (2 * PROXIMAL * reach))
        drive = np.arctan2(z, dx) - side * corner
        end = np.arctan2(z - PROXIMAL * np.sin(drive), dx - PROXIMAL * np.cos(drive))
        q[2 * k : 2 * k + 2] = drive, (end - drive + np.pi) % (2 * np.pi) - np.pi
    return robot.assemble(q)


@dataclass(frozen=True)
class TipDistance:
    """Distance [m] of the tip from the goal."""

    tip: ModelFunction

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        nq = self.tip.function.numel_in(0)
        return np.linalg.norm(self.tip(run.x[:, :nq]) - [GOAL[0], 0.0, GOAL[1]], axis=1)


@dataclass(frozen=True)
class Conditioning:
    """Share of the drives' mobility that the loop leaves."""

    share: ModelFunction

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return self.share(0.0, run.x)[:, 0]
