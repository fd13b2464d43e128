"""Rover: a wheeled vehicle on SE(2) that cannot slip sideways."""

from __future__ import annotations

from typing import Any

import casadi as ca

from lgcontrol.codegen import named_options
from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.scene import wheeled_body
from lgcontrol.systems import Input, Parameter, System

CHASSIS_MASS, CHASSIS_INERTIA, CHASSIS_X = 16.523, 0.4485, 0.012  # kg, kg m², m
WHEEL_MASS, WHEEL_SPIN, WHEEL_YAW = 0.477, 0.0024, 0.0013  # kg, kg m², kg m²
WHEEL_RADIUS, WHEELBASE, TRACK = 0.098, 0.262, 0.37559  # m
FRICTION = 0.5  # of the tyres
SHAPES = wheeled_body(
    body=(0.42, 0.31, 0.18), wheelbase=WHEELBASE, track=TRACK, wheel=(WHEEL_RADIUS, 0.08)
)


@named_options
def rover(
    *,
    kinematic: bool = False,
    payload: float = 0.0,
    max_speed: float = 2.0,
    max_turn_rate: float = 4.0,
) -> System[Product]:
    """Rover on SE(2) without sideslip, driven by its wheels (Clearpath Jackal).

    The pose is that of the middle between the wheels, x forward, y left; it moves with
    ``Ẋ = X [v, 0, ω]``. The wheels' spin counts as inertia. With the centre of mass a distance d
    ahead of the middle,

        m_e v̇ = F_l + F_r + m d ω²,    J_e ω̇ = (F_r − F_l) b/2 − m d v ω.

    Parameters
    ----------
    kinematic : bool
        Whether speed and turn rate themselves are the inputs.
    payload : float
        Mass added at the centre of mass [kg].
    max_speed, max_turn_rate : float
        Bounds of the inputs of the kinematic rover [m/s, rad/s]. The forces of the other one are
        bounded by the friction of the tyres.

    Returns
    -------
    System
        State: pose (SE2) and twist (speed, turn_rate); the pose alone if kinematic. The parameters
        are m, d, m_e, J_e and b.

    References
    ----------
    Clearpath Robotics: jackal_description/urdf/jackal.urdf.xacro (masses, inertias, geometry,
    friction) and jackal_control/config/control.yaml (largest speeds). The real one has four wheels,
    which slip when it turns.

    Examples
    --------
    >>> jackal = rover()
    >>> circle = jackal.trim(where={"twist.speed": 1.0, "twist.turn_rate": 0.5})
    >>> circle.kind
    'relative equilibrium'
    >>> rover(kinematic=True).state
    Product(pose=SE2)
    """
    if kinematic:
        return System(
            "kinematic_rover",
            Product(pose=SE2),
            lambda t, x, u, p: ca.vertcat(u[0], 0, u[1]),
            inputs=[
                Input("speed", "m/s", -max_speed, max_speed),
                Input("turn_rate", "rad/s", -max_turn_rate, max_turn_rate),
            ],
            look=SHAPES,
        )

    def f(t: Any, x: Any, u: Any, p: Any) -> Any:
        v, w = x[4], x[5]
        mass, offset, moved_mass, turned_inertia, track = ca.vertsplit(p)
        speed_rate = (u[0] + u[1] + mass * offset * w**2) / moved_mass
        turn_rate_rate = ((u[1] - u[0]) * track / 2 - mass * offset * v * w) / turned_inertia
        return ca.vertcat(v, 0, w, speed_rate, turn_rate_rate)

    mass = CHASSIS_MASS + 4 * WHEEL_MASS + payload
    offset = CHASSIS_X * (CHASSIS_MASS + payload) / mass
    # What rolls along: a force at the rim of the wheels spins them, too.
    spin = 4 * WHEEL_SPIN / WHEEL_RADIUS**2
    inertia = (
        CHASSIS_INERTIA
        + (CHASSIS_MASS + payload) * CHASSIS_X**2
        + 4 * (WHEEL_YAW + WHEEL_MASS * (WHEELBASE**2 + TRACK**2) / 4)
    )
    bound = FRICTION * mass * 9.81 / 2
    return System(
        "rover",
        Product(pose=SE2, twist=Rn(2, ("speed", "turn_rate"), ("m/s", "rad/s"))),
        f,
        inputs=[Input(f"{side}.force", "N", -bound, bound) for side in ("left", "right")],
        parameters=[
            Parameter("mass", "kg", mass, lower=0.0),
            Parameter("offset", "m", offset),
            Parameter("moved_mass", "kg", mass + spin, lower=0.0),
            Parameter("turned_inertia", "kg m²", inertia + spin * (TRACK / 2) ** 2, lower=0.0),
            Parameter("track", "m", TRACK, lower=0.0),
        ],
        look=SHAPES,
        quantities={"kinetic_energy": lambda t, x, u, p: (p[2] * x[4] ** 2 + p[3] * x[5] ** 2) / 2},
    )
