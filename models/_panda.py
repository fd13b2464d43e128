"""Panda: Franka Emika's seven-joint arm with its hand."""

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
def panda_tree(
    *,
    fingers: float | None = 0.0,
    losses: bool = True,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    symbolic: Sequence[str] = (),
) -> Multibody:
    """Tree of the Panda: seven revolute joints and a hand; its tool frame is "panda_hand_tcp".

    Parameters
    ----------
    fingers : float or None
        Opening of each finger at which both are held [m]; None leaves them free, the second
        following the first.
    losses : bool
        Whether the joints have their viscous friction.
    gravity : sequence of 3 floats
        In the arm's base frame [m/s²].
    symbolic : sequence of str
        Numbers that stay symbolic, see `Multibody.symbolic`: "panda_link7.mass", ….

    Returns
    -------
    Multibody

    References
    ----------
    C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca: Dynamic identification of the
    Franka Emika Panda robot with retrieval of feasible parameters using penalty-based
    optimization. IEEE Robotics and Automation Letters 4(4), 2019.

    Examples
    --------
    >>> panda_tree()
    Multibody('panda', 7 bodies, 7 degrees of freedom, 16.8221 kg)
    """
    tree = Multibody.from_urdf(
        robot_file("panda"), losses=losses, gravity=gravity, on_finding="raise"
    )
    if fingers is not None:
        tree = tree.lock(panda_finger_joint1=fingers)
    return tree.symbolic(*as_names(symbolic)) if symbolic else tree


@system_of(panda_tree)
def panda(tree: Multibody) -> System[Product]:
    """Panda arm driven by joint torques (Franka Emika).

    Returns
    -------
    System
        State: joint angles and rates. Inputs: joint torques within the arm's limits.

    Examples
    --------
    >>> arm = panda()
    >>> [round(entry.upper) for entry in arm.inputs]
    [87, 87, 87, 87, 12, 12, 12]
    """
    return tree.system(name="panda")
