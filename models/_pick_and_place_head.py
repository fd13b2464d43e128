"""Head of a pick-and-place robot: Schönflies motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product, Schoenflies
from lgcontrol.mechanics import Gravity, LinearDrag, RigidBody, SpatialInertia, WrenchInput
from lgcontrol.systems import Input, System


@named_options
def pick_and_place_head(
    *,
    mass: float = 1.0,
    inertia: float = 0.002,
    payload: float = 0.5,
    payload_offset: Sequence[float] = (0.02, 0.0, -0.05),
    max_acceleration: float = 165.0,
    max_torque: float = 5.0,
    friction: Sequence[float] = (2.0, 2.0, 2.0, 0.01),
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Head of a pick-and-place robot on Schönflies motions, driven by forces and a torque.

    The arms' reflected masses are left out. The payload hangs off the axis, so turning the head
    pushes it aside. Masses and friction are round numbers, not those of a product; the largest
    acceleration is that reached by the prototype of the reference.

    Parameters
    ----------
    mass : float
        Mass of the empty head [kg], with the centre of mass on its axis.
    inertia : float
        Its moment of inertia about the axis [kg m²].
    payload : float
        Mass of what it carries, a point [kg].
    payload_offset : sequence of 3 floats
        Position of the load in the head's frame [m].
    max_acceleration : float
        Bounds the forces: what they can give the loaded head [m/s²].
    max_torque : float
        Largest torque [N m].
    friction : sequence of 4 floats
        Viscous friction along x, y, z and about z [N s/m, N m s/rad].
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "mass", ….

    Returns
    -------
    System
        State: pose (Schönflies) and twist. Inputs: forces in world axes, torque about z, and a
        disturbance force in world axes.

    References
    ----------
    F. Pierrot, V. Nabat, O. Company, S. Krut, P. Poignet: Optimal design of a 4-DOF parallel
    manipulator: from academia to industry. IEEE Trans. Robotics 25(2), 2009.

    Examples
    --------
    >>> head = pick_and_place_head()
    >>> head.trim(position=[0.1, 0.0, -0.8]).u[2].round(3)  # carries its weight
    np.float64(14.715)
    """
    empty = SpatialInertia(mass, np.zeros(3), np.diag([inertia, inertia, inertia]))
    loaded = empty + SpatialInertia.point_mass(payload, payload_offset)
    body = RigidBody(
        "pick_and_place_head",
        Schoenflies,
        loaded,
        [
            WrenchInput(("x", "y", "z", "rz"), frame="world", name="drive"),
            WrenchInput(("x", "y", "z"), frame="world", role="disturbance", name="force"),
            Gravity(),
            LinearDrag([*friction[:3], 0.0, 0.0, friction[3]], name="friction"),
        ],
    ).symbolic(*as_names(symbolic))
    bound = loaded.mass * max_acceleration
    forces = [Input(f"drive.{axis}", "N", -bound, bound) for axis in "xyz"]
    torque = Input("drive.rz", "N m", -max_torque, max_torque)
    return body.system(inputs=[*forces, torque, *body.inputs[4:]])
