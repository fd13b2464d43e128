"""Stewart platform: six legs of variable length between a base and a platform."""

from __future__ import annotations

import math

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.mechanics.constrained import ClosedTree
from lgcontrol.systems import System

from ._system_of import system_of

LEGS = tuple(f"leg{k}" for k in range(1, 7))


@named_options
def stewart_platform_tree(
    *,
    base_radius: float = 0.6,
    platform_radius: float = 0.35,
    half_angle: float = math.radians(12.0),
    height: float = 0.7,
    cylinder_mass: float = 2.0,
    rod_mass: float = 0.8,
    platform_mass: float = 15.0,
    force: float = 1500.0,
) -> ClosedTree:
    """Tree of a Stewart platform with its loops.

    Parameters
    ----------
    base_radius, platform_radius : float
        Of the circles on which the joints of the legs are [m].
    half_angle : float
        Half of the angle between two joints of a pair, on both circles [rad].
    height : float
        Of the platform at rest, where all legs have the same length [m].
    cylinder_mass, rod_mass, platform_mass : float
        Masses [kg]: lower and upper part of a leg, and a uniform disc.
    force : float
        Limit of the drives [N].

    Returns
    -------
    ClosedTree
        Joints leg1 to leg6 (extensions from rest [m], driven), their universal joints on the base
        leg1_base to leg6_base, and platform.

    Notes
    -----
    Legs end in spherical joints. A platform between 6 universal, 6 prismatic and 6 spherical joints
    moves freely: 18 equations, 24 velocities. The numbers are our own, those of a small motion
    base.

    References
    ----------
    D. Stewart: A platform with six degrees of freedom, Proceedings of the Institution of Mechanical
    Engineers 180 (1965).

    Examples
    --------
    >>> platform = stewart_platform_tree()
    >>> platform.mobility(platform.assemble()).degrees_of_freedom
    6
    """
    angles = [k * 2 * math.pi / 3 + s * half_angle for k in range(3) for s in (-1, 1)]
    turned = [
        k * 2 * math.pi / 3 + s * (math.pi / 3 - half_angle) for k in range(3) for s in (-1, 1)
    ]
    base = [base_radius * np.array([math.cos(a), math.sin(a), 0.0]) for a in angles]
    top = [platform_radius * np.array([math.cos(a), math.sin(a), 0.0]) for a in turned]
    drive = JointProperties(effort=force)
    tree = Multibody("stewart_platform")
    for leg, foot, head in zip(LEGS, base, top, strict=True):
        along = head + [0, 0, height] - foot
        length = float(np.linalg.norm(along))
        half = length / 2
        tree = tree.add_body(
            f"{leg}_base",
            SpatialInertia.cylinder(cylinder_mass, 0.03, half, center_of_mass=[0, 0, half / 2]),
            "universal",
            placement=leaning(along, foot),
            axis="x",
            axis2="y",
        )
        tree = tree.add_body(
            leg,
            SpatialInertia.cylinder(rod_mass, 0.015, half, center_of_mass=[0, 0, -half / 2]),
            "prismatic",
            f"{leg}_base",
            [0, 0, length],
            axis="z",
            properties=drive,
        )
    tree = tree.add_body(
        "platform", SpatialInertia.cylinder(platform_mass, platform_radius, 0.03), "free"
    )
    for leg, head in zip(LEGS, top, strict=True):
        tree = tree.add_frame(f"platform_{leg}", "platform", head)
    robot = ClosedTree(tree, {"platform.z": height})
    for leg in LEGS:
        robot = robot.close_loop(f"{leg}_top", f"platform_{leg}", leg, "spherical")
    return robot


@system_of(stewart_platform_tree)
def stewart_platform(robot: ClosedTree) -> System[Product]:
    """Stewart platform driven by its six legs, on the manifold of its loops.

    Returns
    -------
    System
        Errors: pose and twist of the platform.

    Examples
    --------
    >>> stewart_platform().n_errors
    12
    """
    names = robot.tree.configuration.tangent_names
    return robot.system(LEGS, independent=[x for x in names if x.startswith("platform.")])


def leaning(along: np.ndarray, foot: np.ndarray) -> np.ndarray:
    """Frame at a foot whose z axis is along a leg, as a homogeneous matrix."""
    z = along / np.linalg.norm(along)
    x = np.cross([0.0, 1.0, 0.0], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    T[:3, 3] = foot
    return T
