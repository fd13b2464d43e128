"""Heavy top: a body on SO(3) that turns about a fixed point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import SO3, Product
from lgcontrol.mechanics import Gravity, RigidBody, SpatialInertia, WrenchInput
from lgcontrol.systems import System


@named_options
def heavy_top(
    *,
    mass: float = 21.6,
    center_of_mass: Sequence[float] = (0.5, 0.0, 0.0),
    inertia: Sequence[float] = (0.36, 0.306, 0.09),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    torques: bool = False,
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Heavy top on SO(3): a box that turns about a fixed point.

    The body frame sits at the pivot, a point of the box's x axis. Without torques the energy is an
    invariant of the system.

    Parameters
    ----------
    mass : float
        Mass [kg].
    center_of_mass : sequence of 3 floats
        Centre of mass from the pivot, in the body frame [m].
    inertia : sequence of 3 floats
        Moments of inertia about the centre of mass, along the body axes [kg m²].
    gravity : sequence of 3 floats
        Acceleration of free fall in world axes [m/s²].
    torques : bool
        Whether a torque about the pivot, in body axes, is an input.
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "mass", ….

    Returns
    -------
    System
        State: pose (SO3) and twist (body rates).

    References
    ----------
    A. Müller, Z. Terze: Is there an optimal choice of configuration space for Lie group integration
    schemes applied to constrained MBS? ASME IDETC/CIE 2013, DETC2013-12151, section 5.1.

    Examples
    --------
    >>> top = heavy_top()
    >>> start = top.state.join(pose=SO3.identity, twist=[0, 20 * np.pi, 10 * np.pi])
    >>> top.quantities["kinetic_energy"](0.0, start).round(1)
    array([13972.4])
    """
    body = RigidBody(
        "heavy_top",
        SO3,
        SpatialInertia(mass, np.array(center_of_mass), np.diag(inertia)),
        [Gravity(gravity), *([WrenchInput(("rx", "ry", "rz"), name="torque")] if torques else [])],
    ).symbolic(*as_names(symbolic))
    return body.system()
