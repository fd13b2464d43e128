"""Satellite: attitude on SO(3), turned by torques or by reaction wheels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import SO3, Product
from lgcontrol.mechanics import GyroscopicWheels, Gyrostat, RigidBody, SpatialInertia, WrenchInput
from lgcontrol.systems import System

RPM = 2 * np.pi / 60


@named_options
def satellite(
    *,
    wheels: bool = False,
    mass: float = 750.0,
    inertia: Sequence[float] = (900.0, 800.0, 600.0),
    max_torque: float = 0.2,
    wheel_axes: Sequence[Sequence[float]] = ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    wheel_inertia: float = 50.0 / (6000 * RPM),
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Satellite on SO(3): its attitude, turned by torques or by reaction wheels.

    The wheels' speeds are states, their angles are not; body and wheels together keep their angular
    momentum while nothing disturbs them.

    Parameters
    ----------
    wheels : bool
        Whether reaction wheels turn it instead of external torques.
    mass : float
        Mass [kg]; the attitude does not depend on it.
    inertia : sequence of 3 floats
        Moments of inertia about the body axes [kg m²], wheels included.
    max_torque : float
        Largest torque about each axis or of each wheel motor [N m].
    wheel_axes : sequence of 3-vectors
        Axes of the wheels in the body frame.
    wheel_inertia : float
        Inertia of a wheel about its axis [kg m²]: 50 N m s at 6000 revolutions a minute.
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "inertia", ….

    Returns
    -------
    System
        State: pose (SO3), twist (body rates) and, with wheels, wheel_speed relative to the body.
        Inputs: torques on the body, or motor torques on the wheels; a disturbance torque.

    References
    ----------
    Satellite and Honeywell HR16 wheels (50 N m s, 0.2 N m) of the attitude-feedback examples of
    Basilisk: P. W. Kenneally, S. Piggott, H. Schaub, Basilisk: a flexible, scalable and modular
    astrodynamics simulation framework, J. Aerospace Information Systems 17(9), 2020.

    Examples
    --------
    >>> satellite().input_names
    ('torque.rx', 'torque.ry', 'torque.rz', 'disturbance.rx', 'disturbance.ry', 'disturbance.rz')
    >>> satellite(wheels=True).state
    Product(pose=SO3, twist=Rn(3), wheel_speed=Rn(3))
    """
    axes = ("rx", "ry", "rz")
    torque = WrenchInput(axes, lower=-max_torque, upper=max_torque, name="torque")
    disturbance = WrenchInput(axes, role="disturbance", name="disturbance")
    body = RigidBody(
        "satellite",
        SO3,
        SpatialInertia(mass, np.zeros(3), np.diag(inertia)),
        [disturbance] if wheels else [torque, disturbance],
    ).symbolic(*as_names(symbolic))
    if not wheels:
        return body.system()
    return Gyrostat(
        body, GyroscopicWheels(wheel_axes, wheel_inertia, max_torque=max_torque)
    ).system()
