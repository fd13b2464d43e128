"""The four systems of Müller and Terze: heavy top, double pendulum, floating pair, three bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import SO3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, spherical

# Flat box of 0.2 × 0.1 × 0.05 m; the density, that of aluminium, cancels in the motion.
BOX = SpatialInertia.box(2.7, [0.2, 0.1, 0.05])
LEFT, RIGHT = [-0.1, 0.0, 0.0], [0.1, 0.0, 0.0]


@named_options
def heavy_top_mechanism(*, gravity: float = 0.0) -> Mechanism:
    """Box of 0.1 × 0.2 × 0.4 m that turns about a point 0.5 m from its centre of mass.

    Parameters
    ----------
    gravity : float
        In m/s², downwards; the paper has none.

    Returns
    -------
    Mechanism

    References
    ----------
    Müller, Terze 2013: section 5.1.
    """
    omega = np.array([0.0, 20 * np.pi, 10 * np.pi])
    inertia = SpatialInertia(21.6, [0, 0, 0], np.diag([0.36, 0.306, 0.09]))
    arm = np.array([0.5, 0.0, 0.0])
    top = MechanismBody("top", inertia, [*arm, 0, 0, 0, 1], rates=[*np.cross(omega, arm), *omega])
    pivot = spherical("pivot", Marker("ground"), Marker("top", -arm))
    return Mechanism("heavy_top", [top], [pivot], gravity=[0, 0, -gravity])


@named_options
def spherical_double_pendulum_mechanism() -> Mechanism:
    """Two flat boxes on spherical joints, in a row along x at the start, and turning fast.

    Returns
    -------
    Mechanism
        Joints base and middle.

    References
    ----------
    Müller, Terze 2013: section 5.2; density and weight, which it leaves open, as in the reference
    data.
    """
    turning = [[10.0, 0.0, 0.0], [10 * np.pi, 10 * np.pi, 20 * np.pi]]
    first = np.cross(turning[0], RIGHT)
    second = 2 * first + np.cross(turning[1], RIGHT)
    bodies = [
        MechanismBody("box1", BOX, [0.1, 0, 0, 0, 0, 0, 1], rates=[*first, *turning[0]]),
        MechanismBody("box2", BOX, [0.3, 0, 0, 0, 0, 0, 1], rates=[*second, *turning[1]]),
    ]
    joints = [
        spherical("base", Marker("ground"), Marker("box1", LEFT)),
        spherical("middle", Marker("box1", RIGHT), Marker("box2", LEFT)),
    ]
    return Mechanism("spherical_double_pendulum", bodies, joints)


@named_options
def floating_pair_mechanism() -> Mechanism:
    """Two flat boxes on one spherical joint, free and without weight.

    Returns
    -------
    Mechanism
        Their linear momentum, which the paper leaves open, is zero.

    References
    ----------
    Müller, Terze 2013: section 5.3.
    """
    turning = [[0.0, 0.0, -10.0], [1.0, -1.0, 2 * np.pi]]
    relative = np.cross(turning[0], RIGHT) + np.cross(turning[1], RIGHT)
    bodies = [
        MechanismBody("box1", BOX, [0.1, 0, 0, 0, 0, 0, 1], rates=[*(-relative / 2), *turning[0]]),
        MechanismBody("box2", BOX, [0.3, 0, 0, 0, 0, 0, 1], rates=[*(relative / 2), *turning[1]]),
    ]
    middle = spherical("middle", Marker("box1", RIGHT), Marker("box2", LEFT))
    return Mechanism("floating_pair", bodies, [middle], gravity=[0, 0, 0])


@named_options
def three_bar_mechanism() -> Mechanism:
    """Two flat boxes between two points of the ground, 0.2 m apart: a closed loop.

    Returns
    -------
    Mechanism
        Joints base, middle and end; parameters, which the paper leaves open, as in the reference
        data: the boxes turn about the line of the base with 5 rad/s, and about their own x axes
        with 10 and −2π rad/s.

    References
    ----------
    Müller, Terze 2013: section 5.4.
    """
    base, spins = np.array([5.0, 0.0, 0.0]), (10.0, -2 * np.pi)
    bodies = []
    for k, (spin, sign) in enumerate(zip(spins, (1.0, -1.0), strict=True)):
        angle = sign * np.pi / 3
        c, s = np.cos(angle), np.sin(angle)
        A = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        r = np.array([0.05 + 0.1 * k, 0.1 * np.sin(np.pi / 3), 0.0])
        omega: Any = A.T @ base + [spin, 0, 0]
        rates = [*np.cross(base, r), *omega]
        bodies.append(MechanismBody(f"box{k + 1}", BOX, [*r, *SO3.from_matrix(A)], rates=rates))
    joints = [
        spherical("base", Marker("ground"), Marker("box1", LEFT)),
        spherical("middle", Marker("box1", RIGHT), Marker("box2", LEFT)),
        spherical("end", Marker("ground", [0.2, 0, 0]), Marker("box2", RIGHT)),
    ]
    return Mechanism("three_bar", bodies, joints)
