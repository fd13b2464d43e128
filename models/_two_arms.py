"""Two UR5 arms that hold one bar: a loop through both arms and the ground."""

from __future__ import annotations

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.mechanics.constrained import ClosedTree
from lgcontrol.systems import System

from ._system_of import system_of
from ._ur5 import ur5_tree

# Angles of both arms where they grip the bar: elbows up, hands forward.
GRIP = (0.0, -1.2, 1.6, -0.4, 1.57, 0.0)


@named_options
def two_arms_tree(*, distance: float = 0.8, mass: float = 2.0) -> ClosedTree:
    """Tree of two UR5 arms side by side whose hands hold the ends of a bar.

    Parameters
    ----------
    distance : float
        Of the arms' bases along y, and length of the bar [m].
    mass : float
        Of the bar [kg], which is uniform and thin.

    Returns
    -------
    ClosedTree
        Joints of both arms, with ``left_`` and ``right_`` before their names. The bar belongs to
        the left hand; the grip of the right one closes the loop.

    Examples
    --------
    >>> arms = two_arms_tree()
    >>> arms.mobility(arms.assemble()).degrees_of_freedom
    6
    """
    arm = ur5_tree()
    hand = SE3.matrix(arm.placement("tool0")(np.array(GRIP)))
    along = hand[:3, :3].T @ [0.0, -1.0, 0.0]  # from the left hand to the right one, in the hand
    tree = Multibody("two_arms")
    for side, y in (("left", distance / 2), ("right", -distance / 2)):
        tree = tree.attach(arm, "world", [0, y, 0], prefix=f"{side}_")
    bar = SpatialInertia.rod(mass, distance, along, along * distance / 2)
    tree = tree.add_body("bar", bar, parent="left_tool0")
    tree = tree.add_frame("bar_end", "bar", along * distance)
    grip = {
        f"{side}_{joint}": angle
        for side in ("left", "right")
        for joint, angle in zip(arm.joints, GRIP, strict=True)
    }
    return ClosedTree(tree, grip).close_loop("grip", "bar_end", "right_tool0", "fixed")


@system_of(two_arms_tree)
def two_arms(arms: ClosedTree) -> System[Product]:
    """Two UR5 arms that hold one bar, all joints driven, on the manifold of the loop.

    Returns
    -------
    System
        Errors: angles and rates of the left arm; the right one follows.

    Examples
    --------
    >>> arms = two_arms()
    >>> arms.n_inputs, arms.n_errors
    (12, 12)
    """
    return arms.system(independent=[x for x in arms.tree.joints if x.startswith("left_")])
