"""Delta robot: three driven arms carry a platform by parallelograms, so that it does not turn."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.mechanics.constrained import ClosedTree
from lgcontrol.systems import System

from ._system_of import system_of

ARMS = ("arm1", "arm2", "arm3")


@named_options
def delta_robot_tree(
    *,
    base_radius: float = 0.2,
    arm: float = 0.235,
    rod: float = 0.8,
    platform_radius: float = 0.045,
    rod_distance: float = 0.09,
    arm_mass: float = 0.5,
    rod_mass: float = 0.07,
    platform_mass: float = 0.35,
    drive_inertia: float = 0.012,
    torque: float = 30.0,
    parallelograms: Literal["merged", "rods"] = "merged",
    load: float = 0.0,
) -> ClosedTree:
    """Tree of a delta robot with its loops.

    Parameters
    ----------
    base_radius, platform_radius : float
        Distance of the drives from the centre, and of the rods' ends on the platform [m].
    arm, rod : float
        Lengths of a driven arm and of the rods below it [m].
    rod_distance : float
        Of the two rods of a parallelogram, for "rods" [m].
    arm_mass, rod_mass, platform_mass : float
        Masses; that of one rod out of six [kg]. Arms and rods are uniform and thin.
    drive_inertia : float
        Of motor and gear, seen at the arm [kg m²].
    torque : float
        Limit of the drives [N m].
    parallelograms : {"merged", "rods"}
        Both rods of a pair move alike, so that one bar of their mass in their middle has the same
        kinetic energy. The platform does not turn: 9 equations, 12 velocities. Or all six rods on a
        platform that is free: 18 equations, 21 velocities.
    load : float
        What the platform carries at its centre [kg].

    Returns
    -------
    ClosedTree
        Joints arm1 to arm3 (angles downwards from the horizontal), rods, and platform.

    Notes
    -----
    The lengths are those usually given for ABB's IRB 360 (upper arm 0.235 m, rods 0.8 m). Masses
    and inertias are round numbers of that size, our own.

    References
    ----------
    R. Clavel: Conception d'un robot parallèle rapide à 4 degrés de liberté, EPFL thesis 925, 1991.

    Examples
    --------
    >>> robot = delta_robot_tree()
    >>> robot.mobility(robot.assemble()).degrees_of_freedom
    3
    """
    drive = JointProperties(effort=torque, armature=drive_inertia)
    is_merged = parallelograms == "merged"
    pairs = {"": 0.0} if is_merged else {"a": rod_distance / 2, "b": -rod_distance / 2}
    mass = 2 * rod_mass if is_merged else rod_mass
    tree, start = Multibody("delta_robot"), {"platform.z": -0.75}
    for name, turn in zip(ARMS, (0.0, 2 * math.pi / 3, 4 * math.pi / 3), strict=True):
        tree = tree.add_body(
            name,
            SpatialInertia.rod(arm_mass, arm, [1, 0, 0], [arm / 2, 0, 0]),
            "revolute",
            placement=about_z(turn, base_radius),
            axis="y",
            properties=drive,
        )
        for side, y in pairs.items():
            link = f"{name}_rod{side}"
            tree = tree.add_body(
                link,
                SpatialInertia.rod(mass, rod, [1, 0, 0], [rod / 2, 0, 0]),
                "universal",
                name,
                [arm, y, 0],
                axis="y",
                axis2="z",
            ).add_frame(f"{link}_end", link, [rod, 0, 0])
            start[f"{link}.0.angle"] = 1.8
    platform = SpatialInertia.cylinder(platform_mass, platform_radius, 0.01)
    platform = platform + SpatialInertia.point_mass(load) if load else platform
    tree = tree.add_body("platform", platform, "translation" if is_merged else "free")
    for name, turn in zip(ARMS, (0.0, 2 * math.pi / 3, 4 * math.pi / 3), strict=True):
        for side, y in pairs.items():
            tree = tree.add_frame(
                f"platform_{name}{side}", "platform", about_z(turn, platform_radius, y)
            )
    robot = ClosedTree(tree, start)
    for name in ARMS:
        for side in pairs:
            robot = robot.close_loop(
                f"{name}{side}", f"platform_{name}{side}", f"{name}_rod{side}_end", "spherical"
            )
    return robot


@system_of(delta_robot_tree)
def delta_robot(robot: ClosedTree) -> System[Product]:
    """Delta robot driven at its three arms, on the manifold of its loops.

    Returns
    -------
    System
        Errors: angles and rates of the three arms.

    Examples
    --------
    >>> delta_robot().error_names[:3]
    ('configuration.arm1.ry', 'configuration.arm2.ry', 'configuration.arm3.ry')
    """
    return robot.system(ARMS, independent=ARMS)


def about_z(turn: float, radius: float, beside: float = 0.0) -> np.ndarray:
    """Frame at a radius from the z axis, its x axis outwards, as a homogeneous matrix."""
    c, s = math.cos(turn), math.sin(turn)
    T = np.eye(4)
    T[:2, :2] = [[c, -s], [s, c]]
    T[:2, 3] = T[:2, :2] @ [radius, beside]
    return T
