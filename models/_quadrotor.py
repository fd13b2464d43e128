"""Quadrotor: a rigid body on SE(3) with four rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names, check_known
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import (
    Actuators,
    Gravity,
    LinearDrag,
    RigidBody,
    Rotor,
    SpatialInertia,
    WrenchInput,
    thrust_policy,
)
from lgcontrol.systems import System

Layout = Literal["plus", "x"]
FIRST_ROTOR = {"plus": 0.0, "x": np.pi / 4}  # its angle from the x axis [rad]


@named_options
def quadrotor(
    *,
    mass: float = 0.716,
    inertia: Sequence[float] = (0.007, 0.007, 0.012),
    arm: float = 0.17,
    torque_coefficient: float = 0.016,
    max_thrust: float = 6.0,
    layout: Layout = "plus",
    drag: Sequence[float] | None = None,
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Quadrotor on SE(3), driven by four rotors (AscTec Hummingbird).

    The body frame sits at the centre of mass, x forward, y left, z up along the thrusts. Rotors
    are counted counter-clockwise seen from above, beginning at the front (front left for "x");
    the first and third turn clockwise, the others counter-clockwise.

    Parameters
    ----------
    mass : float
        Mass [kg]: 0.68 kg and four rotors of 9 g.
    inertia : sequence of 3 floats
        Moments of inertia about the body axes [kg m²]: those of the airframe, as published.
    arm : float
        Distance of the rotors from the z axis [m].
    torque_coefficient : float
        Rotor torque over thrust [m].
    max_thrust : float
        Largest thrust of a rotor [N]: 8.54858e-6 N s² at 838 rad/s; the smallest is 0.
    layout : {"plus", "x"}
        Rotors on the body axes, or on the diagonals between them.
    drag : sequence of 6 floats, optional
        Linear drag along and about the body axes [N s/m, N m s/rad]; none if left out.
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "mass", "inertia.xx".

    Returns
    -------
    System
        State: pose (SE3) and body twist. Inputs: four thrusts, and as disturbances a force in world
        axes and a torque in body axes, both at the centre of mass. Its policy is a `thrust_policy`.

    References
    ----------
    F. Furrer, M. Burri, M. Achtelik, R. Siegwart: RotorS, a modular Gazebo MAV simulator framework.
    Robot Operating System (ROS), Springer 2016: rotors_description/urdf/hummingbird.xacro, after
    J. Wang et al., Novel dynamic inversion architecture design for quadrocopter control.

    Examples
    --------
    >>> quad = quadrotor()
    >>> quad.trim(position=[2, 1, 1]).u[:4].round(4)  # a quarter of the weight each
    array([1.756, 1.756, 1.756, 1.756])
    >>> racer = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x")
    >>> racer.input_names[:4]
    ('rotor.0', 'rotor.1', 'rotor.2', 'rotor.3')
    """
    check_known("layout", get_args(Layout), layout, where="quadrotor")
    cos, sin = np.cos(FIRST_ROTOR[layout]), np.sin(FIRST_ROTOR[layout])
    # Quarter turns of the first one, exact: no moments of 1e-15 N m at hover.
    directions = [(cos, sin, 0.0), (-sin, cos, 0.0), (-cos, -sin, 0.0), (sin, -cos, 0.0)]
    rotors = [
        Rotor(
            arm * np.array(direction),
            torque_coefficient=torque_coefficient,
            spin=spin,
            upper=max_thrust,
        )
        for direction, spin in zip(directions, (-1, 1, -1, 1), strict=True)
    ]
    body = RigidBody(
        "quadrotor",
        SE3,
        SpatialInertia(mass, np.zeros(3), np.diag(inertia)),
        [
            Gravity(),
            Actuators(rotors, "rotor"),
            *([] if drag is None else [LinearDrag(drag)]),
            WrenchInput(("x", "y", "z"), frame="world", role="disturbance", name="force"),
            WrenchInput(("rx", "ry", "rz"), role="disturbance", name="torque"),
        ],
    ).symbolic(*as_names(symbolic))
    system = body.system()
    return system.with_policy(thrust_policy(system))
