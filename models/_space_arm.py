"""Space arm: a free-flying base that carries an arm of seven joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import System

from ._system_of import system_of

# Axis of each joint in the link before it, length [m] and mass [kg] of the link it moves. Shoulder
# roll, yaw, pitch; elbow pitch; wrist pitch, yaw, roll: the order of the station's arms.
JOINTS = (
    ("shoulder_roll", "x", 0.10, 1.0),
    ("shoulder_yaw", "z", 0.10, 1.0),
    ("shoulder_pitch", "y", 0.60, 3.0),
    ("elbow_pitch", "y", 0.60, 2.5),
    ("wrist_pitch", "y", 0.10, 0.8),
    ("wrist_yaw", "z", 0.10, 0.8),
    ("wrist_roll", "x", 0.15, 0.6),
)
RADIUS = 0.04  # m, of the links


@named_options
def space_arm_tree(
    *,
    base_mass: float = 50.0,
    base_inertia: Sequence[float] = (2.0, 2.0, 2.5),
    mount: Sequence[float] = (0.3, 0.0, 0.2),
    base_force: float = 20.0,
    base_torque: float = 5.0,
    joint_torque: float = 3.0,
    symbolic: Sequence[str] = (),
) -> Multibody:
    """Tree of a free-flying base with a seven-joint arm, without gravity; its tool is "tool".

    Parameters
    ----------
    base_mass : float
        Of the base [kg].
    base_inertia : sequence of 3 floats
        Moments of inertia of the base about its axes [kg m²].
    mount : sequence of 3 floats
        Position of the arm on the base [m]; at rest it points along the base's x axis.
    base_force, base_torque, joint_torque : float
        Largest force [N] and torque [N m] along each axis of the base, and in each joint.
    symbolic : sequence of str
        Numbers that stay symbolic, see `Multibody.symbolic`: "base.mass", ….

    Returns
    -------
    Multibody

    Notes
    -----
    The base and its thrusters are those of a published free-flyer benchmark with a three-joint arm.
    The arm's links are cylinders with numbers of our own, in the joint order of the space station's
    arms.

    Examples
    --------
    >>> space_arm_tree()
    Multibody('space_arm', 8 bodies, 13 degrees of freedom, 59.7 kg)
    """
    thrust = JointProperties(effort=[base_force] * 3 + [base_torque] * 3)
    base = SpatialInertia(base_mass, np.zeros(3), np.diag(base_inertia))
    tree = Multibody("space_arm", gravity=(0.0, 0.0, 0.0))
    tree = tree.add_body("base", base, "free", properties=thrust)
    drive = JointProperties(lower=-2.9, upper=2.9, velocity=1.5, effort=joint_torque)
    parent, at = "base", list(mount)
    for name, axis, length, mass in JOINTS:
        link = SpatialInertia.cylinder(
            mass, RADIUS, length, axis=[1, 0, 0], center_of_mass=[length / 2, 0.0, 0.0]
        )
        tree = tree.add_body(
            f"{name}_link",
            link,
            "revolute",
            parent,
            at,
            axis=axis,
            joint_name=name,
            properties=drive,
        )
        parent, at = f"{name}_link", [length, 0.0, 0.0]
    tree = tree.add_frame("tool", parent, at)
    return tree.symbolic(*as_names(symbolic)) if symbolic else tree


@system_of(space_arm_tree)
def space_arm(tree: Multibody) -> System[Product]:
    """Free-flying base with a seven-joint arm, driven by base thrusters and joint torques.

    Returns
    -------
    System
        State: pose of the base (SE3) and joint angles, their velocities. Inputs: force and torque
        on the base in its axes, joint torques.

    Examples
    --------
    >>> space_arm().n_inputs
    13
    """
    return tree.system(inputs=tree.joints, name="space_arm")
