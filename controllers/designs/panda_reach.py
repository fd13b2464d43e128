"""The Panda reaches between posts and below a bar, within all its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody
from lgcontrol.models import panda_tree
from lgcontrol.optimal import Bound, Capsule, keep_out
from lgcontrol.simulation import Criterion, SimulationResult, Task, Vary
from lgcontrol.systems import Parameter

from ._criteria import failed_calls
from ._panda import (
    HAND,
    OUTLINE,
    READY,
    arm_limits,
    hand_criteria,
    hand_error,
    noisy_panda,
    panda_capsules,
)

LOW = np.array([0.0, 0.5, 0.0, -0.1, 0.0, 0.5, 0.0])  # rad: the hand low above the table
ASIDE = 0.8  # rad
OBSTACLES = {  # axes and radii, m
    "post": (np.array([[0.45, 0.0, 0.0], [0.45, 0.0, 0.38]]), 0.05),
    "inner post": (np.array([[0.20, 0.0, 0.0], [0.20, 0.0, 0.30]]), 0.04),
    "bar": (np.array([[0.50, -0.4, 0.85], [0.50, 0.4, 0.85]]), 0.04),
}
REACHING = ("panda_link5", "panda_link7", "panda_hand", HAND)  # what may meet obstacles
MEETING = (("panda_hand", "panda_link1"), ("panda_hand", "panda_link3"),
           ("panda_link7", "panda_link1"), ("panda_link7", "panda_link3"))  # fmt: skip
MARGIN = 0.015  # m, of the plan
DT, HORIZON, SECONDS = 0.02, 50, 3.0  # s
SHARE = 0.6  # of the joints' rates that the plan uses: late torques overshoot it
EFFORT = 0.6  # of the arm's largest torques that it may use
NOISE = 0.001  # of the largest torques


def design(seed: int = 0) -> Task:
    """Panda reaches among capsules by MPC of its torques, within all its limits.

    The hand goes from one side of two posts to the other, around them and below a bar. Forearm,
    wrist, hand and fingers keep out of all three, and of the arm's own lower links. Angles and
    rates keep the arm's limits, torques 60 % of theirs. All torques are noisy by 0.1 %; what a
    wrong mass asks of them is found from the prediction error.

    Parameters
    ----------
    seed : int
        Of the start, the goal and the noise.
    """
    tree = panda_tree(losses=False)
    plant, noise = noisy_panda(tree, NOISE, dt=DT, effort=EFFORT)
    outline, limits = panda_capsules(tree), tree.limits
    rng = np.random.default_rng(seed)
    start, end = (
        READY + LOW + np.r_[side * ASIDE, rng.uniform(-0.05, 0.05, 6)] for side in (1.0, -1.0)
    )
    goal = np.r_[end, np.zeros(tree.nv)]
    wanted = tree.placement(HAND)(end)

    def given(t: Value, p: Value) -> Value:
        return p[p.shape[0] - SE3.nq :]

    mpc = MPC(
        plant,
        horizon=HORIZON,
        dt=DT,
        Q={"configuration": 0.5, "velocity": 0.5},
        R={**dict.fromkeys(tree.joints[:4], 0.03), **dict.fromkeys(tree.joints[4:], 0.3)},
        terminal={"configuration": 1.0, "velocity": 1.0},
        residuals=[hand_error(tree, given, weight=100.0, terminal=200.0)],
        bounds=[
            *arm_limits(tree, 1000.0, share=SHARE),
            *(
                keep_out(
                    outline.ends(link), Capsule(axis[0], axis[1], thick),
                    radius=outline.radius(link) + MARGIN, soft=1000.0, name=f"{link} at {name}",
                )
                for name, (axis, thick) in OBSTACLES.items() for link in REACHING
            ),
            Bound(
                outline.self_clearance(MEETING, MARGIN), lower=0.0, soft=1000.0, name="arm itself"
            ),
        ],
        disturbance="noise",  # what a wrong mass asks of the torques
        parameters=[  # another place is other numbers for the same code
            Parameter(f"goal.{name}", "", value)
            for name, value in zip(SE3.coordinate_names, wanted, strict=True)
        ],
    )  # fmt: skip

    return Task(
        plant=plant,
        controller=mpc,
        x0=np.r_[start, np.zeros(tree.nv)],
        seconds=SECONDS,
        reference=goal,
        options={"disturbances": [noise]},
        criteria=(
            *hand_criteria(tree, wanted, ", mean of the last 0.25 s", last=0.25),
            Criterion("clearance of obstacles", Gap(tree), unit="m", least=0.0, take="least"),
            Criterion(
                "clearance of the arm itself", OwnGap(tree), unit="m", least=0.0, take="least"
            ),
            Criterion(
                "angles beyond their limits", Turned(limits["lower"], limits["upper"]), 0.0, "rad"
            ),
            Criterion("largest rate, share of its limit", Rate(limits["velocity"]), 1.0),
            failed_calls(),
        ),
        obstacles=OBSTACLES,
        variations=(
            Vary("mass", 0.9, 1.1, relative=True),
            Vary("delay", 0.0, 0.01, unit="s"),
            Vary("disturbances", 0.0, 3.0, relative=True),
        ),
        goals=(wanted,),
    )


@dataclass(frozen=True, eq=False)
class Gap:
    """Distance [m] of forearm, wrist, hand and fingers to the nearest obstacle."""

    tree: Multibody

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        gaps = [
            _distance(_sweep(self.tree, run, link), _between(axis[0], axis[1], 41))
            - OUTLINE[link][2] - thick
            for axis, thick in OBSTACLES.values() for link in REACHING
        ]  # fmt: skip
        return np.min(gaps, axis=0)


@dataclass(frozen=True, eq=False)
class OwnGap:
    """Distance [m] of hand and wrist to the arm's own lower links."""

    tree: Multibody

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        gaps = [
            _distance(_sweep(self.tree, run, a), _sweep(self.tree, run, b))
            - OUTLINE[a][2] - OUTLINE[b][2]
            for a, b in MEETING
        ]  # fmt: skip
        return np.min(gaps, axis=0)


@dataclass(frozen=True, eq=False)
class Turned:
    """By how much the worst angle is beyond its limits [rad]."""

    lower: np.ndarray
    upper: np.ndarray

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        q = run.x[:, : len(self.lower)]
        return np.maximum(self.lower - q, q - self.upper).max(axis=1)


@dataclass(frozen=True, eq=False)
class Rate:
    """Largest rate of the joints, as a share of its limit."""

    limit: np.ndarray

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return (np.abs(run.x[:, len(self.limit) :]) / self.limit).max(axis=1)


def _sweep(tree: Multibody, run: SimulationResult, link: str) -> np.ndarray:
    """Points of the axis of a link's capsule, shape (N, k, 3)."""
    ends = np.array(OUTLINE[link][:2])
    ends = SE3.act(tree.placement(link)(run.x[:, : tree.nq])[:, np.newaxis], ends)
    return _between(ends[:, 0], ends[:, 1], 25)


def _between(start: Any, end: Any, count: int) -> np.ndarray:
    """Points from one end to the other, shape (..., count, 3)."""
    share = np.linspace(0.0, 1.0, count)[:, np.newaxis]
    start, end = np.asarray(start)[..., np.newaxis, :], np.asarray(end)[..., np.newaxis, :]
    return (1 - share) * start + share * end


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Least distance of points (N, k, 3) and (N, m, 3) or (m, 3) at each time, shape (N,)."""
    apart = one[..., :, np.newaxis, :] - other[..., np.newaxis, :, :]
    return np.linalg.norm(apart, axis=-1).min(axis=(1, 2))
