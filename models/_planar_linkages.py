"""Planar linkages in the x-z plane: four-bar and five-bar, as trees with one loop."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.mechanics.constrained import ClosedTree
from lgcontrol.systems import System


def bar(mass: float, length: float) -> SpatialInertia:
    """Bar of square section, a twentieth as thick as long, along x from the origin."""
    thick = length / 20
    return SpatialInertia.box(mass, [length, thick, thick], center_of_mass=[length / 2, 0, 0])


@named_options
def four_bar_tree(
    lengths: Sequence[float] = (0.3, 0.8, 0.6),
    ground: float = 0.9,
    masses: Sequence[float] = (0.5, 1.2, 0.9),
    *,
    torque: float = 20.0,
    joint: str = "spherical",
    symbolic: Sequence[str] = (),
) -> ClosedTree:
    """Crank, coupler and rocker between two pivots on the ground; all turn about −y.

    Parameters
    ----------
    lengths : sequence of 3 floats
        Of crank, coupler, rocker [m]. As given it is a crank-rocker: shortest plus longest bar are
        no longer than the others together (Grashof).
    ground : float
        Distance of the pivots along x [m].
    masses : sequence of 3 floats
        Of the bars [kg], which are uniform.
    torque : float
        Limit of the drive of the crank [N m].
    joint : str
        What closes the loop between coupler and rocker: "spherical" has one redundant row in a
        plane, "revolute" three, "point_on_line" none.
    symbolic : sequence of str
        Numbers that stay symbolic, see `Multibody.symbolic`.

    Returns
    -------
    ClosedTree
        Joints crank, coupler, rocker; angles upwards from the x axis, the coupler's from the crank.
    """
    crank, coupler, rocker = lengths
    drive = JointProperties(effort=torque)
    tree = (
        Multibody("four_bar")
        .add_body("crank", bar(masses[0], crank), "revolute", axis="-y", properties=drive)
        .add_body("coupler", bar(masses[1], coupler), "revolute", "crank", [crank, 0, 0], axis="-y")
        .add_body("rocker", bar(masses[2], rocker), "revolute", placement=[ground, 0, 0], axis="-y")
        .add_frame("coupler_end", "coupler", [coupler, 0, 0])
        .add_frame("rocker_end", "rocker", [rocker, 0, 0])
    )
    if symbolic:
        tree = tree.symbolic(*as_names(symbolic))
    linkage = ClosedTree(tree, {"coupler": 0.3, "rocker": 1.5})
    return linkage.close_loop("loop", "coupler_end", "rocker_end", joint, axis="y")


@named_options
def four_bar(*, torque: float = 20.0, joint: str = "spherical") -> System[Product]:
    """Crank-rocker driven at its crank, on the manifold of its loop.

    Parameters
    ----------
    torque, joint
        See `four_bar_tree`, which has further numbers.

    Returns
    -------
    System
        State: three angles and rates; errors: angle and rate of the crank.

    Examples
    --------
    >>> four_bar().error_names
    ('configuration.crank.r', 'velocity.crank.r')
    """
    linkage = four_bar_tree(torque=torque, joint=joint)
    at = linkage.assemble(where={"crank": 0.5})
    return linkage.system(["crank"], at=at, independent=["crank"])


@named_options
def five_bar_tree(
    proximal: float = 0.25,
    distal: float = 0.35,
    base: float = 0.2,
    masses: Sequence[float] = (0.6, 0.4),
    *,
    torque: float = 8.0,
    gravity: bool = True,
) -> ClosedTree:
    """Two arms of two bars that meet in a point "tip": a planar robot with two drives.

    Parameters
    ----------
    proximal, distal : float
        Lengths of the driven bars and of the others [m].
    base : float
        Distance of the drives along x, which are at −base/2 and base/2 [m].
    masses : sequence of 2 floats
        Of a driven bar and of another one [kg]; all are uniform.
    torque : float
        Limit of both drives [N m].
    gravity : bool
        Whether the plane of motion is upright; else it lies flat.

    Returns
    -------
    ClosedTree
        Joints left, left_elbow, right, right_elbow; angles upwards from the x axis, those of
        elbows from the driven bar.
    """
    drive = JointProperties(effort=torque)
    tree = Multibody("five_bar", gravity=(0, 0, -9.81) if gravity else (0, 0, 0))
    for side, x in (("left", -base / 2), ("right", base / 2)):
        tree = tree.add_body(
            side,
            bar(masses[0], proximal),
            "revolute",
            placement=[x, 0, 0],
            axis="-y",
            properties=drive,
        ).add_body(
            f"{side}_elbow", bar(masses[1], distal), "revolute", side, [proximal, 0, 0], axis="-y"
        )
    tree = tree.add_frame("tip", "left_elbow", [distal, 0, 0])
    tree = tree.add_frame("right_tip", "right_elbow", [distal, 0, 0])
    start = {"left": 2.4, "left_elbow": -1.3, "right": 0.7, "right_elbow": 1.3}
    robot = ClosedTree(tree, start)
    return robot.close_loop("closure", "tip", "right_tip", "point_on_line", axis="y")


@named_options
def five_bar(*, torque: float = 8.0, gravity: bool = True) -> System[Product]:
    """Five-bar robot driven at both of its arms, on the manifold of its loop.

    Parameters
    ----------
    torque, gravity
        See `five_bar_tree`, which has further numbers.

    Returns
    -------
    System
        State: four angles and rates; errors: those of the two drives.

    Examples
    --------
    >>> five_bar().n_errors
    4
    """
    drives = ["left", "right"]
    return five_bar_tree(torque=torque, gravity=gravity).system(drives, independent=drives)
