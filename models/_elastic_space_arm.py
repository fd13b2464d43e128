"""Elastic space arm: a flying base whose arm has springs in its joints."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.mechanics import Motor, SeriesElastic
from lgcontrol.systems import System

from ._space_arm import space_arm_tree
from ._system_of import system_of

STIFFNESS = (200.0, 200.0, 200.0, 150.0, 60.0, 60.0, 30.0)  # N m/rad, assumed


@named_options
def elastic_space_arm_tree(
    *,
    stiffness: Sequence[float] = STIFFNESS,
    motor_inertia: float = 0.2,
    base_force: float = 20.0,
    base_torque: float = 5.0,
    is_driven: bool = True,
) -> SeriesElastic:
    """Tree of the space arm with a spring in every joint of the arm; its tool is "tool".

    Parameters
    ----------
    stiffness : sequence of 7 floats
        Of the joints of the arm [N m/rad].
    motor_inertia : float
        Of every motor, behind its gear [kg m²].
    base_force, base_torque : float
        Largest force [N] and torque [N m] along each axis of the base.
    is_driven : bool
        Whether the base has its thrusters; without them it floats.

    Returns
    -------
    SeriesElastic

    Notes
    -----
    Base and links are those of `space_arm_tree`; stiffness and motor inertia are **assumed**, of
    the size of small arms with strain-wave gears on soft couplings.

    Examples
    --------
    >>> elastic_space_arm_tree().rigid_joints
    ('base',)
    """
    tree = space_arm_tree(base_force=base_force, base_torque=base_torque)
    names = [name for name in tree.joints if name != "base"]
    motors = {name: Motor(motor_inertia, K) for name, K in zip(names, stiffness, strict=True)}
    return SeriesElastic(tree, motors, inputs=["base"] if is_driven else [])


@system_of(elastic_space_arm_tree)
def elastic_space_arm(arm: SeriesElastic) -> System[Product]:
    """Flying or floating base with a seven-joint arm on springs.

    Returns
    -------
    System
        State: pose of the base (SE3) and joint angles, their velocities, angles and speeds of the
        motors. Inputs: force and torque on the base in its axes, motor torques.

    Examples
    --------
    >>> elastic_space_arm().n_inputs
    13
    """
    return arm.system("elastic_space_arm")
