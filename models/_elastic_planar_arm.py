"""Elastic planar arm: two links in a vertical plane, the example of textbooks."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import (
    JointProperties,
    LinearSpring,
    Motor,
    Multibody,
    SeriesElastic,
    SpatialInertia,
)
from lgcontrol.systems import System

from ._system_of import system_of


@named_options
def elastic_planar_arm_tree(
    *,
    masses: Sequence[float] = (4.0, 3.0),
    lengths: Sequence[float] = (0.5, 0.4),
    stiffness: Sequence[float] = (400.0, 250.0),
    motor_inertia: Sequence[float] = (0.3, 0.15),
    spring_damping: Sequence[float] = (0.0, 0.0),
    torque: Sequence[float] = (80.0, 40.0),
    gravity: float = 9.81,
    symbolic: Sequence[str] = (),
) -> SeriesElastic:
    """Two rods that hang from each other, swinging in the x–z plane; its tool is "tool".

    Parameters
    ----------
    masses : sequence of 2 floats
        Of the rods [kg].
    lengths : sequence of 2 floats
        [m]
    stiffness : sequence of 2 floats
        At the joints [N m/rad].
    motor_inertia : sequence of 2 floats
        Behind the gears [kg m²].
    spring_damping : sequence of 2 floats
        Parallel to the springs [N m s/rad].
    torque : sequence of 2 floats
        Largest torques of the motors behind the gears [N m].
    gravity : float
        Downwards [m/s²].
    symbolic : sequence of str
        Numbers of motors and springs that stay symbolic: "shoulder.spring.stiffness", ….

    Returns
    -------
    SeriesElastic

    Notes
    -----
    All numbers are made up, of a size that a table-top arm would have.

    Examples
    --------
    >>> elastic_planar_arm_tree().joints
    ('shoulder', 'elbow')
    """
    tree = Multibody("elastic_planar_arm", gravity=(0.0, 0.0, -gravity))
    parent, at = "world", [0.0, 0.0, 0.0]
    for name, mass, length in zip(("upper_arm", "forearm"), masses, lengths, strict=True):
        joint = {"upper_arm": "shoulder", "forearm": "elbow"}[name]
        tree = tree.add_body(
            name,
            SpatialInertia.rod(mass, length=length, center_of_mass=[0.0, 0.0, -length / 2]),
            "revolute",
            parent,
            at,
            axis="y",
            joint_name=joint,
            properties=JointProperties(velocity=6.0),
        )
        parent, at = name, [0.0, 0.0, -length]
    tree = tree.add_frame("tool", parent, at)
    motors = {
        name: Motor(B, LinearSpring(K, damping=D), torque=bound)
        for name, B, K, D, bound in zip(
            tree.joints, motor_inertia, stiffness, spring_damping, torque, strict=True
        )
    }
    return SeriesElastic(tree, motors).symbolic(*as_names(symbolic))


@system_of(elastic_planar_arm_tree)
def elastic_planar_arm(arm: SeriesElastic) -> System[Product]:
    """Two-link planar arm with series-elastic joints.

    Returns
    -------
    System
        State: joint angles and rates of the links, those of the motors. Inputs: motor torques.

    Examples
    --------
    >>> elastic_planar_arm().n_inputs
    2
    """
    return arm.system("elastic_planar_arm")
