"""Underwater vehicle: a rigid body on SE(3) with added mass, drag, buoyancy and thrusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import (
    Actuators,
    Buoyancy,
    Current,
    Gravity,
    LinearDrag,
    QuadraticDrag,
    RigidBody,
    SpatialInertia,
    Thruster,
    WrenchInput,
)
from lgcontrol.systems import System

from ._system_of import system_of

# The source has z down and y right: half a turn about x gives z up and y left. Diagonal matrices
# stay what they are under it, positions and directions change the signs of y and z.
FLU_FRD = np.diag([1.0, -1.0, -1.0])

CENTER_OF_BUOYANCY_FRD = (0.0, 0.0, -0.01)

# Positions [m] and directions of the thrusters: four in the horizontal plane at the corners, front
# right, front left, back right, back left; four vertical ones in the same order.
THRUSTERS_FRD = (
    ((0.156, 0.111, 0.085), (1.0, -1.0, 0.0)),
    ((0.156, -0.111, 0.085), (1.0, 1.0, 0.0)),
    ((-0.156, 0.111, 0.085), (-1.0, -1.0, 0.0)),
    ((-0.156, -0.111, 0.085), (-1.0, 1.0, 0.0)),
    ((0.12, 0.218, 0.0), (0.0, 0.0, -1.0)),
    ((0.12, -0.218, 0.0), (0.0, 0.0, -1.0)),
    ((-0.12, 0.218, 0.0), (0.0, 0.0, -1.0)),
    ((-0.12, -0.218, 0.0), (0.0, 0.0, -1.0)),
)


@named_options
def underwater_body(
    *,
    mass: float = 13.5,
    inertia: Sequence[float] = (0.26, 0.23, 0.37),
    added_mass: Sequence[float] = (6.36, 7.12, 18.68, 0.189, 0.135, 0.222),
    linear_drag: Sequence[float] = (13.7, 0.0, 33.0, 0.0, 0.8, 0.0),
    quadratic_drag: Sequence[float] = (141.0, 217.0, 190.0, 1.19, 0.47, 1.5),
    volume: float = 0.0134,
    density: float = 1000.0,
    max_thrust: float = 30.4,
    current: Sequence[float] = (0.0, 0.0, 0.0),
    symbolic: Sequence[str] = (),
) -> RigidBody:
    """Body of `underwater_vehicle`, for systems that carry it.

    Parameters
    ----------
    mass : float
        Mass [kg], without that of the water that moves along.
    inertia : sequence of 3 floats
        Moments of inertia about the body axes [kg m²].
    added_mass : sequence of 6 floats
        Mass and inertia of the water that moves along, along and about the body axes [kg, kg m²].
    linear_drag, quadratic_drag : sequence of 6 floats
        Drag along and about the body axes [N s/m, N m s/rad and N s²/m², N m s²/rad²].
    volume : float
        Displaced volume [m³]: the vehicle is 0.1 kg heavier than the water it displaces.
    density : float
        Density of the water [kg/m³].
    max_thrust : float
        Largest thrust of a thruster, forwards and backwards [N]: the source's thrust curve at full
        command.
    current : sequence of 3 floats
        Velocity of the water in world axes [m/s]; the disturbance inputs add to it.
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "mass",
        "linear_drag.damping", "current", ….
    """
    thrusters = [
        Thruster(FLU_FRD @ position, FLU_FRD @ direction, lower=-max_thrust, upper=max_thrust)
        for position, direction in THRUSTERS_FRD
    ]
    return RigidBody(
        "underwater_vehicle",
        SE3,
        SpatialInertia(mass, np.zeros(3), np.diag(inertia)),
        [
            Gravity(),
            Buoyancy(volume, FLU_FRD @ CENTER_OF_BUOYANCY_FRD, density),
            LinearDrag(linear_drag),
            QuadraticDrag(quadratic_drag),
            Actuators(thrusters, "thruster"),
            WrenchInput(("x", "y", "z"), frame="world", role="disturbance", name="force"),
            WrenchInput(("rx", "ry", "rz"), role="disturbance", name="torque"),
        ],
        added_mass=np.diag(added_mass),
        current=Current(current, is_input=True),
    ).symbolic(*as_names(symbolic))


@system_of(underwater_body)
def underwater_vehicle(body: RigidBody) -> System[Product]:
    """Underwater vehicle on SE(3), driven by eight thrusters (BlueROV2 Heavy).

    The body frame sits at the centre of mass, x forward, y left, z up. The published values have z
    down and y right; they are converted here.

    Returns
    -------
    System
        State: pose (SE3) and body twist. Inputs: eight thrusts, and as disturbances a force in
        world axes and a torque in body axes at the centre of mass, and the current's velocity.

    References
    ----------
    M. von Benzon, F. F. Sørensen, E. Uth, J. Jouffroy, J. Liniger, S. Pedersen: An open-source
    benchmark simulator: control of a BlueROV2 underwater robot. J. Mar. Sci. Eng. 10(12), 1898,
    2022, table A1.

    Examples
    --------
    >>> auv = underwater_vehicle()
    >>> cruise = auv.trim(where={"twist.vx": 0.5, "twist.vy": 0.0, "twist.vz": 0.0})
    >>> cruise.kind
    'relative equilibrium'
    """
    return body.system()
