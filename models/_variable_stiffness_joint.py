"""Variable-stiffness joint: a link on a spring that a second motor stiffens."""

from __future__ import annotations

from functools import partial
from typing import Any

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.mechanics import (
    AdjustedSpring,
    JointProperties,
    Motor,
    Multibody,
    SeriesElastic,
    SpatialInertia,
)
from lgcontrol.systems import System

from ._system_of import system_of


def _stiffness(phi: Any, least: float, growth: float) -> Any:
    return least + growth * phi * phi


@named_options
def variable_stiffness_joint_tree(
    *,
    mass: float = 1.5,
    length: float = 0.4,
    motor_inertia: float = 0.02,
    least_stiffness: float = 20.0,
    stiffness_growth: float = 180.0,
    stiffness_inertia: float = 2e-3,
    torque: float = 30.0,
    stiffness_torque: float = 8.0,
    gravity: float = 0.0,
) -> SeriesElastic:
    """One rod on a spring of stiffness ``least + growth φ²``, 0.1 ≤ φ ≤ 1.5; its tip is "tip".

    Parameters
    ----------
    mass, length : float
        Of the rod [kg], [m].
    motor_inertia : float
        Of the motor that moves the joint, behind its gear [kg m²].
    least_stiffness : float
        [N m/rad]
    stiffness_growth : float
        [N m/rad³]
    stiffness_inertia : float
        Of the motor that sets the stiffness, at φ [kg m²].
    torque, stiffness_torque : float
        Largest torques of the two motors [N m].
    gravity : float
        Downwards along −z; the axis of the joint is y [m/s²].

    Returns
    -------
    SeriesElastic

    Notes
    -----
    All numbers are made up, of the size of published actuators with two motors
    (20–400 N m/rad, 30 N m).

    Examples
    --------
    >>> arm = variable_stiffness_joint_tree()
    >>> list(arm.state.blocks)[-2:]
    ['stiffness_motor', 'stiffness_motor_velocity']
    """
    rod = SpatialInertia.rod(mass, length=length, center_of_mass=[0.0, 0.0, -length / 2])
    tree = Multibody("variable_stiffness_joint", gravity=(0.0, 0.0, -gravity)).add_body(
        "rod",
        rod,
        "revolute",
        axis="y",
        joint_name="joint",
        properties=JointProperties(velocity=20.0),
    )
    tree = tree.add_frame("tip", "rod", [0.0, 0.0, -length])
    spring = AdjustedSpring(
        partial(_stiffness, least=least_stiffness, growth=stiffness_growth),
        lower=0.1,
        upper=1.5,
        motor_inertia=stiffness_inertia,
        motor_damping=5e-3,
        torque_limit=stiffness_torque,
        speed_limit=30.0,
    )
    return SeriesElastic(tree, {"joint": Motor(motor_inertia, spring, torque=torque)})


@system_of(variable_stiffness_joint_tree)
def variable_stiffness_joint(arm: SeriesElastic) -> System[Product]:
    """Link on a spring whose stiffness a second motor sets.

    Returns
    -------
    System
        State: angle and rate of the link, of the motor, and of the motor that sets the stiffness.
        Inputs: torques of the two motors.

    Examples
    --------
    >>> variable_stiffness_joint().input_names
    ('joint', 'joint.stiffness_motor')
    """
    return arm.system("variable_stiffness_joint")
