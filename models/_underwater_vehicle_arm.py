"""Underwater vehicle with an arm: the vehicle of `underwater_vehicle` and four joints in water."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.mechanics import (
    Buoyancy,
    Current,
    Force,
    Gravity,
    JointProperties,
    Multibody,
    QuadraticDrag,
    SpatialInertia,
)
from lgcontrol.systems import System

from ._underwater_vehicle import underwater_body

# Joint, its axis in the link before it, length [m], radius [m] and mass [kg] of the link it moves.
JOINTS = (
    ("arm_yaw", "z", 0.08, 0.030, 0.35),
    ("arm_shoulder", "y", 0.25, 0.025, 0.60),
    ("arm_elbow", "y", 0.20, 0.025, 0.50),
    ("arm_wrist", "x", 0.15, 0.020, 0.25),
)
MOUNT = (0.20, 0.0, -0.10)  # m, on the vehicle
CROSS_FLOW_DRAG = 1.1  # drag coefficient of a long cylinder across the flow


@named_options
def underwater_vehicle_arm_tree() -> Multibody:
    """Tree of the underwater vehicle with a four-joint arm below its bow; the tool is "tool".

    Weight is part of the tree; what the water does is part of `underwater_vehicle_arm`.

    Returns
    -------
    Multibody

    Notes
    -----
    The vehicle's numbers are those of `underwater_vehicle`. The arm's links are cylinders with
    numbers of our own, in the proportions of small electric arms for such vehicles. The armature of
    their geared drives outweighs the links.

    Examples
    --------
    >>> underwater_vehicle_arm_tree()
    Multibody('underwater_vehicle_arm', 5 bodies, 10 degrees of freedom, 15.2 kg)
    """
    tree = Multibody("underwater_vehicle_arm")
    tree = tree.add_body("vehicle", underwater_body().inertia, "free")
    drive = JointProperties(
        lower=-2.0, upper=2.0, velocity=2.0, effort=10.0, armature=0.02, damping=0.1
    )
    parent, at = "vehicle", list(MOUNT)
    for name, axis, length, radius, mass in JOINTS:
        link = SpatialInertia.cylinder(
            mass, radius, length, axis=[1, 0, 0], center_of_mass=[length / 2, 0.0, 0.0]
        )
        tree = tree.add_body(
            f"{name}_link", link, "revolute", parent, at, axis=axis, joint_name=name,
            properties=drive,
        )  # fmt: skip
        tree = tree.add_body(
            f"{name}_middle", parent=f"{name}_link", placement=[length / 2, 0.0, 0.0]
        )
        parent, at = f"{name}_link", [length, 0.0, 0.0]
    return tree.add_frame("tool", parent, at)


@named_options
def underwater_vehicle_arm(
    *,
    density: float = 1000.0,
    current: Sequence[float] = (0.0, 0.0, 0.0),
) -> System[Product]:
    """Underwater vehicle with a four-joint arm, in water that drags, lifts and moves along.

    Parameters
    ----------
    density : float
        Of the water [kg/m³].
    current : sequence of 3 floats
        Velocity of the water in world axes [m/s]; the disturbance inputs add to it.

    Returns
    -------
    System
        State: pose of the vehicle (SE3) and joint angles, their velocities. Inputs: joint torques,
        eight thrusts; as disturbances a force in world axes and a torque on the vehicle, and the
        current's velocity.

    Notes
    -----
    On each link act its buoyancy, the added mass of a long cylinder across its axis (strip
    theory: ``ρ π r²`` a metre), and drag that grows with the square of the cross flow at the middle
    of the link.

    Examples
    --------
    >>> model = underwater_vehicle_arm()
    >>> model.input_names[:5]
    ('arm_yaw', 'arm_shoulder', 'arm_elbow', 'arm_wrist', 'thruster.0')
    """
    tree = underwater_vehicle_arm_tree()
    body = underwater_body(density=density)
    forces: dict[str, list[Force]] = {
        "vehicle": [force for force in body.forces if not isinstance(force, Gravity)]
    }
    added_mass = {"vehicle": body.added_mass}
    for name, _, length, radius, _ in JOINTS:
        volume = np.pi * radius**2 * length
        added_mass[f"{name}_link"] = _strips(density * volume, length)
        across = CROSS_FLOW_DRAG * density * radius * length
        turning = across * length**3 / 32
        forces[f"{name}_middle"] = [
            Buoyancy(volume, density=density),
            QuadraticDrag([0.0, across, across, 0.0, turning, turning]),
        ]
    return tree.system(
        forces=forces,
        added_mass=added_mass,
        current=Current(current, is_input=True),
        name="underwater_vehicle_arm",
    )


def _strips(mass: float, length: float) -> np.ndarray:
    """Added mass of a cylinder along x from the origin: water that moves along across it."""
    A = np.zeros((6, 6))
    for linear, angular, sign in ((1, 5, 1.0), (2, 4, -1.0)):
        A[linear, linear] = mass
        A[linear, angular] = A[angular, linear] = sign * mass * length / 2
        A[angular, angular] = mass * length**2 / 3
    return A
