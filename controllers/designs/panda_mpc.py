"""The Panda reaches several poses with predictive control of its torques."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import panda, panda_tree
from lgcontrol.optimal import Bound, Residual
from lgcontrol.simulation import Criterion, Kick, SimulationResult, Task

from ._bodies import drawn
from ._criteria import failed_calls
from ._panda import BODIES, HAND, READY, noisy_panda

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

    The cost weighs the logarithm of the pose error on SE(3), nothing in joint space but a weak
    posture: the arm finds its own way. Torques keep the arm's limits (12 N m in the wrist), angles
    and rates theirs as far as noise allows. All torques are noisy by 2 % of their limits, and at
    1 s a blow changes every joint's rate by 0.5 rad/s. The first pose, the noise, the blow and what
    counts as success are those of a benchmark; the weights are ours, since it leaves the way
    between poses open.

    Parameters
    ----------
    seed : int
        Of the start; the poses are always the same.

    Returns
    -------
    Task
    """
    arm, tree = panda(losses=False), panda_tree(losses=False)
    plant, noise = noisy_panda(tree, NOISE, dt=DT)
    place = tree.placement(HAND)
    targets = place(READY + np.array(POSES))
    limits = tree.limits

    def pose_error(t: Value, x: Value, u: Value, p: Value) -> Value:
        """The first pose is a step; between the others the hand moves along screws."""
        wanted = ca.DM(targets[0])
        for k, target in enumerate(targets[1:], 1):
            s = ca.fmax(0.0, ca.fmin((t - k * STAY) / MOVE, 1.0))
            wanted = SE3.interpolate(wanted, ca.DM(target), s**2 * (3 - 2 * s))
        return SE3.minus(place(x[: tree.nq]), wanted)

    mpc = MPC(
        arm,
        horizon=HORIZON,
        dt=DT,
        Q={"configuration": 0.1, "velocity": 0.1},
        R=1e-3,
        terminal={"configuration": 0.1, "velocity": 1.0},
        residuals=[
            Residual(pose_error, weight=300.0, terminal=100.0, name="pose of the hand", group=SE3)
        ],
        bounds=[
            Bound("configuration", limits["lower"], limits["upper"], soft=100.0),
            Bound("velocity", -limits["velocity"], limits["velocity"], soft=30.0),
        ],
    )
    rest = np.concatenate([READY, np.zeros(tree.nv)])
    start = READY + np.random.default_rng(seed).uniform(-SPREAD, SPREAD, tree.nv)
    criteria = [
        criterion
        for k, target in enumerate(targets)
        for criterion in (
            Criterion(
                f"position error at pose {k + 1}",
                _error_at((k + 1) * STAY, place, target, slice(0, 3)),
                0.015,
                "m",
            ),
            Criterion(
                f"rotation error at pose {k + 1}",
                _error_at((k + 1) * STAY, place, target, slice(3, 6)),
                0.05,
                "rad",
            ),
        )
    ]
    return Task(
        plant=plant,
        controller=mpc,
        x0=np.concatenate([start, np.zeros(tree.nv)]),
        seconds=STAY * len(POSES),
        reference=rest,
        options={"disturbances": [noise, KICK]},
        criteria=(*criteria, failed_calls()),
        goals=tuple(targets),
        bodies=drawn(tree, BODIES),
    )


def _error_at(
    time: float, place: Callable[..., Value], target: np.ndarray, part: slice
) -> Callable[[SimulationResult], float]:
    """Length of some components of the hand's error just before a time."""

    def value(run: SimulationResult) -> float:
        at = int(np.searchsorted(run.t, min(time, run.t[-1]) - DT / 2))
        q = run.x[at, : len(READY)]
        return float(np.linalg.norm(SE3.minus(place(q), target)[part]))

    return value
