"""The Panda with noisy torques, its limits, the error of its hand, and its outline as capsules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import LinkCapsules, Multibody
from lgcontrol.optimal import Bound, Residual
from lgcontrol.simulation import Criterion, HeldNoise
from lgcontrol.systems import Input, System

from ._criteria import ATTITUDE, POSITION, FrameError

HAND = "panda_hand_tcp"
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # rad
# Ends and radii in the links' frames, in m: about the covers of the manufacturer's drawings.
OUTLINE = {
    "panda_link1": ([0.0, 0.0, -0.28], [0.0, 0.0, 0.0], 0.08),
    "panda_link3": ([0.0, 0.0, -0.22], [0.0, 0.0, -0.07], 0.08),
    "panda_link5": ([0.0, 0.02, -0.31], [0.0, 0.05, -0.07], 0.07),
    "panda_link7": ([0.0, 0.0, -0.05], [0.0, 0.0, 0.10], 0.06),
    "panda_hand": ([0.0, -0.07, 0.04], [0.0, 0.07, 0.04], 0.04),
    HAND: ([0.0, 0.0, -0.05], [0.0, 0.0, 0.0], 0.02),
}


def noisy_panda(
    tree: Multibody, share: float, *, dt: float, effort: float = 1.0
) -> tuple[System[Product], HeldNoise]:
    """The arm with further torques of role "disturbance", and their noise, held for dt in s.

    The deviation of the noise is a share of the largest torques; the arm may use `effort` of those.
    """
    noise = {
        f"noise.{joint}": share * most
        for joint, most in zip(tree.joints, tree.limits["effort"], strict=True)
    }
    arm = tree.system(
        [*_torques(tree, effort), *(Input(name, "N m", role="disturbance") for name in noise)],
        input_matrix=np.hstack([np.eye(tree.nv)] * 2),
        name="panda",
    )
    return arm, HeldNoise(noise, dt=dt)


def _torques(tree: Multibody, effort: float) -> list[Input]:
    return [
        replace(one, lower=effort * one.lower, upper=effort * one.upper)
        for one in tree.system().inputs
    ]


def arm_limits(tree: Multibody, penalty: float, *, share: float = 1.0) -> list[Bound]:
    """Angles within the arm's limits, and rates within a fraction of theirs, by a penalty."""
    limits, most = tree.limits, share * tree.limits["velocity"]
    return [
        Bound("configuration", limits["lower"], limits["upper"], soft=100.0),
        Bound("velocity", -most, most, soft=penalty),
    ]


def hand_error(
    tree: Multibody, wanted: Callable[[Value, Value], Value], weight: float, terminal: float
) -> Residual:
    """The logarithm of the hand's pose relative to ``wanted(t, p)``, to be weighed."""
    place = tree.placement(HAND)

    def error(t: Value, x: Value, u: Value, p: Value) -> Value:
        return SE3.minus(place(x[: tree.nq]), wanted(t, p))

    return Residual(error, weight=weight, terminal=terminal, name="pose of the hand", group=SE3)


def hand_criteria(
    tree: Multibody, wanted: np.ndarray, when: str, *, goal: int = 0, **counting: Any
) -> tuple[Criterion, Criterion]:
    """Mean errors of the hand's place, within 15 mm, and attitude, within 50 mrad.

    `wanted` is the pose of one of the task's goals, `when` a word for the names; ``since``,
    ``until`` or ``last`` of `Criterion` say which samples count.
    """
    place = tree.placement(HAND)
    return (
        Criterion(
            f"position error{when}",
            FrameError(place, wanted, POSITION),
            0.015,
            "m",
            take="mean",
            goal=goal,
            **counting,
        ),
        Criterion(
            f"rotation error{when}",
            FrameError(place, wanted, ATTITUDE),
            0.05,
            "rad",
            take="mean",
            **counting,
        ),
    )


def panda_capsules(tree: Multibody) -> LinkCapsules:
    """Outline of the arm."""
    return LinkCapsules(tree, OUTLINE)
