"""UR5: Universal Robots' six-joint arm."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import Multibody
from lgcontrol.systems import System

from ._system_of import system_of
from .data import robot_file


@named_options
def ur5_tree(
    *, gravity: Sequence[float] = (0.0, 0.0, -9.81), symbolic: Sequence[str] = ()
) -> Multibody:
    """Tree of the UR5: six revolute joints; its flange frame is "tool0".

    Parameters
    ----------
    gravity : sequence of 3 floats
        In the arm's base frame [m/s²].
    symbolic : sequence of str
        Numbers that stay symbolic, see `Multibody.symbolic`: "forearm_link.mass", ….

    Returns
    -------
    Multibody

    References
    ----------
    Universal Robots: UR5 technical specifications; the masses, lengths and limits of the
    manufacturer's ur_description.

    Examples
    --------
    >>> ur5_tree()
    Multibody('ur5', 6 bodies, 6 degrees of freedom, 16.9939 kg)
    """
    tree = Multibody.from_urdf(robot_file("ur5"), gravity=gravity, on_finding="raise")
    return tree.symbolic(*as_names(symbolic)) if symbolic else tree


@system_of(ur5_tree)
def ur5(tree: Multibody) -> System[Product]:
    """UR5 arm driven by joint torques (Universal Robots).

    Returns
    -------
    System
        State: joint angles and rates. Inputs: joint torques within the arm's limits.

    Examples
    --------
    >>> ur5().inputs[0].upper
    150.0
    """
    return tree.system(name="ur5")
