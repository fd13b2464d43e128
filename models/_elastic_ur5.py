"""Elastic UR5: the arm with a soft spring in every joint, of assumed stiffness."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import Motor, SeriesElastic
from lgcontrol.systems import System

from ._system_of import system_of
from ._ur5 import ur5_tree

STIFFNESS = (900.0, 1000.0, 800.0, 300.0, 250.0, 200.0)  # N m/rad, assumed
MOTOR_INERTIA = (0.5, 0.6, 0.4, 0.1, 0.09, 0.08)  # kg m² behind the gear, assumed


@named_options
def elastic_ur5_tree(
    *,
    stiffness: Sequence[float] = STIFFNESS,
    motor_inertia: Sequence[float] = MOTOR_INERTIA,
    deflection: float = 0.25,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    symbolic: Sequence[str] = (),
) -> SeriesElastic:
    """UR5 with series-elastic joints; its flange frame is "tool0".

    Parameters
    ----------
    stiffness : sequence of 6 floats
        At the joints [N m/rad].
    motor_inertia : sequence of 6 floats
        Of the motors, behind their gears [kg m²].
    deflection : float
        Largest deflection of every spring [rad].
    gravity : sequence of 3 floats
        In the arm's base frame [m/s²].
    symbolic : sequence of str
        Numbers of motors and springs that stay symbolic: "elbow_joint.spring.stiffness", ….

    Returns
    -------
    SeriesElastic

    Notes
    -----
    Links and limits are those of `ur5_tree`. Stiffness and motor inertia are **assumed**: nothing
    is published for this arm. 200–1000 N m/rad is the class of arms with springs on purpose; its
    own gears are stiffer by an order of magnitude. The deflection is assumed as well.

    Examples
    --------
    >>> elastic_ur5_tree().joints[0]
    'shoulder_pan_joint'
    """
    tree = ur5_tree(gravity=gravity)
    motors = {
        name: Motor(B, K, deflection=deflection)
        for name, B, K in zip(tree.joints, motor_inertia, stiffness, strict=True)
    }
    return SeriesElastic(tree, motors).symbolic(*as_names(symbolic))


@system_of(elastic_ur5_tree)
def elastic_ur5(arm: SeriesElastic) -> System[Product]:
    """UR5 with series-elastic joints, driven by motor torques; stiffness assumed.

    Returns
    -------
    System
        State: joint angles and rates of the links, those of the motors. Inputs: motor torques
        behind the gears.

    Examples
    --------
    >>> list(elastic_ur5().state.blocks)
    ['configuration', 'velocity', 'motor', 'motor_velocity']
    """
    return arm.system("elastic_ur5")
