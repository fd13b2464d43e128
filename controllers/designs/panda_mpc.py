"""The Panda reaches several poses with predictive control of its torques."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import panda, panda_tree
from lgcontrol.simulation import Kick, Task

from ._criteria import failed_calls
from ._panda import HAND, READY, arm_limits, hand_criteria, hand_error, noisy_panda

# Joint angles [rad] from READY at which the hand has the poses to reach: the first is that of the
# benchmark; the second is on the other side; the last is the start.
POSES = (
    np.array([0.5, 0.4, -0.4, 0.5, 0.3, 0.4, -0.6]),
    np.array([-0.7, 0.3, -0.3, 0.2, -0.5, 0.6, 0.8]),
    np.zeros(7),
)
STAY = 2.0  # s for each pose
MOVE = 1.2  # s of it that the way from the last one takes
DT = 0.02
HORIZON = 30
SPREAD = 0.1  # rad, of the start about READY
NOISE = 0.02  # of the largest torques
KICK = Kick(1.0, {"velocity": np.full(7, 0.5)})


def design(seed: int = 0) -> Task:
    """Panda reaches three poses of its hand by MPC of the joint torques.

    The cost weighs the logarithm of the pose error on SE(3), and in joint space only a weak
    posture: the arm finds its own way. Torques keep the arm's limits (12 N m in the wrist), angles
    and rates theirs as far as noise allows. All torques are noisy by 2 % of their limits, and at 1
    s a blow changes every joint's rate by 0.5 rad/s. The first pose, the noise, the blow and the
    criterion of success are those of a benchmark. The weights are ours, since it leaves the way
    between poses open.

    Parameters
    ----------
    seed : int
        Of the start; the poses are always the same.
    """
    arm, tree = panda(losses=False), panda_tree(losses=False)
    plant, noise = noisy_panda(tree, NOISE, dt=DT)
    targets = tree.placement(HAND)(READY + np.array(POSES))

    def wanted(t: Value, p: Value) -> Value:
        """The first pose is a step; between the others the hand moves along screws."""
        pose = ca.DM(targets[0])
        for k, target in enumerate(targets[1:], 1):
            s = ca.fmax(0.0, ca.fmin((t - k * STAY) / MOVE, 1.0))
            pose = SE3.interpolate(pose, ca.DM(target), s**2 * (3 - 2 * s))
        return pose

    mpc = MPC(
        arm,
        horizon=HORIZON,
        dt=DT,
        Q={"configuration": 0.1, "velocity": 0.1},
        R=1e-3,
        terminal={"configuration": 0.1, "velocity": 1.0},
        residuals=[hand_error(tree, wanted, weight=300.0, terminal=100.0)],
        bounds=arm_limits(tree, 30.0),
    )
    rest = np.concatenate([READY, np.zeros(tree.nv)])

    def draw(seed: int) -> dict[str, Any]:
        start = READY + np.random.default_rng(seed).uniform(-SPREAD, SPREAD, tree.nv)
        return {"x0": np.concatenate([start, np.zeros(tree.nv)])}

    criteria = [
        criterion
        for k, target in enumerate(targets)
        for criterion in hand_criteria(
            tree,
            target,
            f" at pose {k + 1}",
            goal=k,
            since=(k + 1) * STAY - DT / 2,
            until=(k + 1) * STAY,
        )  # fmt: skip
    ]
    return Task(
        plant=plant,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=STAY * len(POSES),
        reference=rest,
        options={"disturbances": [noise, KICK]},
        criteria=(*criteria, failed_calls()),
        goals=tuple(targets),
    )
