"""Elastic Panda: the arm with its published motor inertias behind assumed gear stiffnesses."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import Motor, SeriesElastic
from lgcontrol.systems import System

from ._panda import panda_tree
from ._system_of import system_of

STIFFNESS = (1e4, 1e4, 1e4, 1e4, 5e3, 5e3, 5e3)  # N m/rad, assumed
MOTOR_INERTIA = (0.606, 0.606, 0.462, 0.462, 0.206, 0.206, 0.206)  # kg m² behind the gear


@named_options
def elastic_panda_tree(
    *,
    stiffness: Sequence[float] = STIFFNESS,
    motor_inertia: Sequence[float] = MOTOR_INERTIA,
    fingers: float = 0.0,
    losses: bool = True,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    symbolic: Sequence[str] = (),
) -> SeriesElastic:
    """Panda with elastic gears; its tool frame is "panda_hand_tcp".

    Parameters
    ----------
    stiffness : sequence of 7 floats
        At the joints [N m/rad].
    motor_inertia : sequence of 7 floats
        Of the motors, behind their gears [kg m²].
    fingers : float
        Opening of each finger at which both are held [m].
    losses : bool
        Whether the links have viscous friction in their joints.
    gravity : sequence of 3 floats
        In the arm's base frame [m/s²].
    symbolic : sequence of str
        Numbers of motors and springs that stay symbolic: "panda_joint4.spring.stiffness", ….

    Returns
    -------
    SeriesElastic

    Notes
    -----
    Links, losses and limits are those of `panda_tree`, which names its source. The motor inertias,
    seen at the joints, are **published** for an arm of this class, by the manufacturer in its
    description of the FR3 (`franka_description`, as in Drake's models). The stiffness is
    **assumed**: 5–10 kN m/rad is the class of harmonic drives of this size.

    Examples
    --------
    >>> elastic_panda_tree().motors["panda_joint1"].reflected_inertia
    0.606
    """
    tree = panda_tree(fingers=fingers, losses=losses, gravity=gravity)
    motors = {
        name: Motor(B, K) for name, B, K in zip(tree.joints, motor_inertia, stiffness, strict=True)
    }
    return SeriesElastic(tree, motors).symbolic(*as_names(symbolic))


@system_of(elastic_panda_tree)
def elastic_panda(arm: SeriesElastic) -> System[Product]:
    """Panda with elastic gears, driven by motor torques; motor inertias published.

    Returns
    -------
    System
        State: joint angles and rates of the links, those of the motors. Inputs: motor torques
        behind the gears.

    Examples
    --------
    >>> elastic_panda().state.dim
    28
    """
    return arm.system("elastic_panda")
