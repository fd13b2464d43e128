"""The Panda with noisy torques, and its outline as capsules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lgcontrol.groups import Product
from lgcontrol.mechanics import LinkCapsules, Multibody
from lgcontrol.simulation import HeldNoise
from lgcontrol.systems import Input, System

HAND = "panda_hand_tcp"
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # rad
BODIES = {
    "base": "panda_link0",
    "shoulder": "panda_link2",
    "elbow": "panda_link4",
    "wrist": "panda_link6",
    "hand": HAND,
}
# Ends and radii in the links' frames, in m: about the covers of the manufacturer's drawings.
OUTLINE = {
    "panda_link1": ([0.0, 0.0, -0.28], [0.0, 0.0, 0.0], 0.08),
    "panda_link3": ([0.0, 0.0, -0.22], [0.0, 0.0, -0.07], 0.08),
    "panda_link5": ([0.0, 0.02, -0.31], [0.0, 0.05, -0.07], 0.07),
    "panda_link7": ([0.0, 0.0, -0.05], [0.0, 0.0, 0.10], 0.06),
    "panda_hand": ([0.0, -0.07, 0.04], [0.0, 0.07, 0.04], 0.04),
    HAND: ([0.0, 0.0, -0.05], [0.0, 0.0, 0.0], 0.02),
}


def panda_system(tree: Multibody, *, effort: float = 1.0) -> System[Product]:
    """The arm with a share of its largest torques."""
    return tree.system(_torques(tree, effort), input_matrix=np.eye(tree.nv), name="panda")


def noisy_panda(
    tree: Multibody, share: float, *, dt: float, effort: float = 1.0
) -> tuple[System[Product], HeldNoise]:
    """The arm with further torques of role "disturbance", and their noise.

    Parameters
    ----------
    tree : Multibody
    share : float
        Of the largest torques: the deviation of the noise.
    dt : float
        For how long it is held, s.
    effort : float
        Share of its largest torques that the arm may use.
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


def panda_capsules(tree: Multibody) -> LinkCapsules:
    """Outline of the arm."""
    return LinkCapsules(tree, OUTLINE)
