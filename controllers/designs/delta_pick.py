"""A delta robot picks and places by predictive control of its torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3, Translation
from lgcontrol.models import delta_robot_tree
from lgcontrol.optimal import Bound, Residual
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import Input

from ._criteria import failed_calls

ARMS = ("arm1", "arm2", "arm3")
# Where parts are picked and placed, and how high the platform goes in between [m].
PICK, PLACE, LIFT = (-0.15, -0.05, -0.85), (0.15, 0.08, -0.85), 0.08
MOVE, STAY = 0.35, 0.15  # s from one to the other, and at each
MOVES = 4
DT = 0.01
HORIZON = 20
SPEED = 9.0  # rad/s, of the arms
TORQUE = 12.0  # N m
NOISE = 0.01  # of the largest torques
PART = 0.15  # kg, which the controller does not know
SPREAD = 0.02  # m, of the start about the first pick


def design(seed: int = 0) -> Task:
    """Delta robot carries a part to and fro by MPC of its torques.

    The plan stays on the manifold of the loops: its states are those of the whole mechanism, its
    errors the three driven arms. The cost weighs the distance of the platform from a way that
    rises, crosses and falls; torques and rates of the arms keep their limits. The robot carries a
    part that the model does not know, and its arms and drives are a tenth heavier. Its torques are
    noisy by 1 % of their limits.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    robot = delta_robot_tree(torque=TORQUE)
    model = robot.system(ARMS, independent=ARMS)
    true = delta_robot_tree(torque=TORQUE, load=PART, arm_mass=0.55, drive_inertia=0.0132)
    push = np.eye(true.tree.nv)[:, [0, 3, 6]]  # arms come with the two angles of their rods
    plant = true.system(
        [*model.inputs, *(Input(f"noise.{arm}", "N m", role="disturbance") for arm in ARMS)],
        input_matrix=np.hstack([push, push]),
        independent=ARMS,
    )
    names = model.state.coordinate_names
    place = [names.index(f"configuration.platform.{axis}") for axis in "xyz"]

    def away(t: Value, x: Value, u: Value, p: Value) -> Value:
        return x[place] - way(t)

    mpc = MPC(
        model,
        horizon=HORIZON,
        dt=DT,
        method="midpoint",
        Q=1e-3,
        R=1e-4,
        terminal=1e-2,
        residuals=[
            Residual(away, weight=3e4, terminal=3e2, name="platform", group=Translation("xyz"))
        ],
        bounds=[Bound(f"velocity.{arm}", -SPEED, SPEED, soft=10.0) for arm in ARMS],
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        x, y, z = np.array(PICK) + rng.uniform(-SPREAD, SPREAD, 3)
        start = true.assemble(where={"platform.x": x, "platform.y": y, "platform.z": z})
        return {"x0": np.concatenate([start, np.zeros(true.tree.nv)])}

    criteria = [_arrival(k, place) for k in range(MOVES)]
    return Task(
        plant=plant,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=MOVES * (MOVE + STAY) + STAY,
        reference=model.home,
        options={"disturbances": [HeldNoise({f"noise.{arm}": NOISE * TORQUE for arm in ARMS}, DT)]},
        criteria=(*criteria, failed_calls()),
        goals=(SE3.from_position(PICK), SE3.from_position(PLACE)),
    )


def way(t: Value) -> Value:
    """Position of the platform [m]: to and fro along an arch, at rest at both ends."""
    share: Value = 0.0
    for k in range(MOVES):
        s = ca.fmax(0.0, ca.fmin((t - STAY - k * (MOVE + STAY)) / MOVE, 1.0))
        share += (-1) ** k * s**3 * (10 - 15 * s + 6 * s**2)
    arch = 16 * (share * (1 - share)) ** 2
    pick, away = ca.DM(PICK), ca.DM(PLACE) - ca.DM(PICK)
    return pick + share * away + ca.vertcat(0.0, 0.0, LIFT * arch)


@dataclass(frozen=True)
class Distance:
    """Distance [m] of the platform, whose coordinates have these places, from a point."""

    place: tuple[int, ...]
    point: tuple[float, ...]

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return np.linalg.norm(run.x[:, list(self.place)] - self.point, axis=1)


def _arrival(move: int, place: Sequence[int]) -> Criterion:
    """Distance just before the next move."""
    time = (move + 1) * (MOVE + STAY)
    point = tuple(np.asarray(way(time)).ravel().tolist())
    return Criterion(
        f"distance after move {move + 1}",
        Distance(tuple(place), point),
        0.001,
        "m",
        since=time - DT / 2,
        until=time,
        goal=(move + 1) % 2,  # to PLACE and back to PICK
    )
