"""Manipulability of a frame: how far it is from where it cannot move along some axes."""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca

from ....codegen import Value
from ....codegen._internal import UnknownNameError, as_names, factor_symmetric, unknown_name
from ....groups import SE3
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ..compiled._functions import TreeFunction, frame_function, takes_names
from ..tree._tree import Tree
from ._frames import frame_jacobian

# Above this a pivot of a factor stands for one that is rounding.
_PIVOT = 1e100


@takes_names
def manipulability(
    tree: Tree, frame: str, axes: str | Iterable[str] = SE3.tangent_names
) -> TreeFunction:
    """``q`` → w = √det(J Jᵀ): how easily a frame moves along axes of the world, shape (...).

    The product of the singular values of those rows of the Jacobian; zero in a singular pose. With
    fewer joints than axes that of the joints, √det(Jᵀ J).

    Parameters
    ----------
    frame : str
    axes : str or iterable of str
        Rows of ``jacobian(frame, "hybrid")``: x, y, z of the frame's origin [m], rx, ry, rz [rad].
        All six mix metres and radians; ("x", "y", "z") do not.

    Returns
    -------
    TreeFunction
        Unit m for each of x, y, z. For terms and bounds of a problem:
        ``tree.system(quantities={"manipulability": tree.manipulability("tool")})``.

    Notes
    -----
    Near a singular pose w goes to zero like a distance does: its slope jumps. Values below 3e-8 of
    their scale are zero with slope zero. A search that begins in a singular pose so stays finite,
    but finds no way out.

    References
    ----------
    T. Yoshikawa: Manipulability of robotic mechanisms. Int. J. Robotics Research 4 (1985), eq. 7.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(1.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    >>> tree = Multibody().add_body("upper", rod, "revolute")
    >>> tree = tree.add_body("lower", rod, "revolute", "upper", [1, 0, 0])
    >>> tree = tree.add_frame("tip", "lower", [1, 0, 0])
    >>> easy = tree.manipulability("tip", ("x", "y"))
    >>> float(easy([0.3, np.pi / 6]).round(9))  # the sine of the elbow for links of 1 m
    0.5
    """
    chosen = as_names(axes)
    for axis in chosen:
        if axis not in SE3.tangent_names:
            raise UnknownNameError(unknown_name("axis", axis, SE3.tangent_names))
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"axes of the manipulability must differ, at least one: got {chosen}")
    rows = [SE3.tangent_names.index(axis) for axis in chosen]

    def build(made: CompiledTree, q: Value, frame: NodeFrame) -> Value:
        J = frame_jacobian(made, q, frame, "hybrid")[rows, :]
        return _volume(J if len(rows) <= tree.nv else J.T)

    return frame_function(tree, "manipulability", "q", {"w": ""}, build, frame, None, chosen)


def _volume(J: Value) -> Value:
    """√det(J Jᵀ), with slope zero where it is zero."""
    square = ca.SX(1)
    for pivot in ca.vertsplit(factor_symmetric(J @ J.T, singular=True)[1]):
        square *= ca.if_else(pivot < _PIVOT, pivot, 0)
    return ca.if_else(square > 0, ca.sqrt(ca.if_else(square > 0, square, 1)), 0)
