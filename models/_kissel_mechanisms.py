"""The four mechanisms of Kissel, Taves and Negrut: pendulum, double pendulum, four-link, crank."""

from __future__ import annotations

from typing import Any, Literal

import casadi as ca
import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.groups import SO3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    CD,
    DP1,
    DP2,
    D,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
    angle_drive,
)

DriveKind = Literal["regular", "paper", "motor"]
"""What moves the first body: an angle without dead points, the DP1 of the paper, or a torque."""

AXES = ("x", "y", "z")
AT_REST = (0.0,) * 6
Attachment = tuple[str, list[float]]


def _coincident(i: Attachment, j: Attachment) -> list[Any]:
    """CD along x, y, z from a point of i to one of j."""
    axes = zip(AXES, np.eye(3), strict=True)
    return [CD(f"cd_{axis}", c, *i, *j) for axis, c in axes]


def _body(
    name: str, mass: float, moments: list[float], r: Any, A: Any, rates: Any = AT_REST
) -> MechanismBody:
    inertia = SpatialInertia(mass, [0, 0, 0], np.diag(moments), check="ignore")
    return MechanismBody(name, inertia, [*r, *SO3.from_matrix(A)], rates=rates)


def _moved(
    name: str,
    bodies: list[MechanismBody],
    joints: list[MechanismJoint],
    drive: DriveKind,
    paper: Any,
    axis: tuple[Marker, Marker],
    angle: Any,
) -> Mechanism:
    """Mechanism with one of its drives."""
    if drive == "motor":
        return Mechanism(name, bodies, joints, motors=[MechanismMotor("torque", *axis)])
    if drive not in ("regular", "paper"):
        raise ValueError(f'drive must be "regular", "paper" or "motor", not {drive!r}')
    chosen = angle_drive("driver", *axis, angle)
    if drive == "paper":
        chosen = MechanismJoint("driver", [paper])
    return Mechanism(name, bodies, [*joints, chosen])


@named_options
def pendulum_mechanism(*, drive: DriveKind = "regular") -> Mechanism:
    """Slender rod of 4 m that swings about x of the world, 45° below the horizontal at the start.

    Parameters
    ----------
    drive : {"regular", "paper", "motor"}
        The angle from −z of the world to the rod is ``(π/4) cos 2t``, or a torque.

    Returns
    -------
    Mechanism

    References
    ----------
    Kissel, Taves, Negrut: section 4.2.
    """
    s = np.sqrt(0.5)
    A = [[0, 0, 1], [s, s, 0], [-s, s, 0]]
    rod = _body("rod", 78.0, [0.0325, 104.01625, 104.01625], [0, 2 * s, -2 * s], A)
    rows = [
        DP1("dp1_x", "rod", [1, 0, 0], "ground", [1, 0, 0]),
        DP1("dp1_y", "rod", [0, 1, 0], "ground", [1, 0, 0]),
        *_coincident(("rod", [-2, 0, 0]), ("ground", [0, 0, 0])),
    ]

    def swing(t: Any) -> Any:
        return np.pi / 4 * ca.cos(2 * t)

    paper = DP1(
        "angle", "rod", [0, 1, 0], "ground", [0, 0, -1], lambda t: ca.cos(np.pi / 2 + swing(t))
    )
    axis = (
        Marker("ground", z=[1, 0, 0], x=[0, 0, -1]),
        Marker("rod", [-2, 0, 0], z=[0, 0, 1], x=[1, 0, 0]),
    )
    return _moved("pendulum", [rod], [MechanismJoint("rev", rows)], drive, paper, axis, swing)


@named_options
def double_pendulum_mechanism(*, printed_inertia: bool = False) -> Mechanism:
    """Rods of 4 m and 2 m in the y-z plane, the first horizontal, the second hanging, at rest.

    Parameters
    ----------
    printed_inertia : bool
        Whether moments are those printed, 104 and 13.01 kg m², not those of rods of that density,
        104.01625 and 13.008125 kg m².

    Returns
    -------
    Mechanism
        Joints rev1, on the ground, and rev2.

    References
    ----------
    Kissel, Taves, Negrut: section 4.2.
    """
    first, second = (104.0, 13.01) if printed_inertia else (104.01625, 13.008125)
    along = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])  # x of the rod along y of the world
    down = np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    bodies = [
        _body("rod1", 78.0, [0.0325, first, first], [0, 2, 0], along),
        _body("rod2", 39.0, [0.01625, second, second], [0, 4, -1], down),
    ]
    joints = []
    for name, j, tip, i, base, normal in (
        ("rev1", "rod1", [-2.0, 0.0, 0.0], "ground", [0.0, 0.0, 0.0], [1, 0, 0]),
        ("rev2", "rod2", [-1.0, 0.0, 0.0], "rod1", [2.0, 0.0, 0.0], [0, 0, 1]),
    ):
        rows = [
            DP1("dp1_x", j, [1, 0, 0], i, normal),
            DP1("dp1_y", j, [0, 1, 0], i, normal),
            *_coincident((j, tip), (i, base)),
        ]
        joints.append(MechanismJoint(name, rows, (j, tip)))
    return Mechanism("double_pendulum", bodies, joints)


@named_options
def four_link_mechanism(*, drive: DriveKind = "regular", moments: Any = None) -> Mechanism:
    """Spatial four-link of Haug: rotor, coupler between universal and spherical joint, rocker.

    Parameters
    ----------
    drive : {"regular", "paper", "motor"}
        The rotor turns with π rad/s about its z axis, or by a torque.
    moments : array_like of shape (3, 3), optional
        Moments of inertia [kg m²] of each body; those of the paper if left out. These belong to no
        body: one moment is zero, the others differ.

    Returns
    -------
    Mechanism
        Bodies rotor, coupler, rocker.

    References
    ----------
    Kissel, Taves, Negrut: section 4.2; Haug 1989, chapter 10.
    """
    J = np.array([[4, 2, 0], [12.4, 0.01, 0], [4.54, 0.01, 0]] if moments is None else moments)
    D = np.array([-4.0, -8.5, 0.0])
    pin = np.array([0.0, 0.0, 2.0])  # of rotor and coupler at the start
    # The rocker swings in the x-z plane at y = −8.5, its tip at 12.2 m from the coupler's pin.
    rise = pin - D
    reach = np.hypot(rise[0], rise[2])
    level = np.sqrt(12.2**2 - rise[1] ** 2)
    share = (reach**2 + 7.4**2 - level**2) / (2 * reach)
    across = np.sqrt(7.4**2 - share**2)
    e = np.array([rise[0], 0.0, rise[2]]) / reach
    tip = D + share * e + across * np.array([-e[2], 0.0, e[0]])
    y2 = (pin - tip) / 12.2
    u = np.array([0.75, -0.662, 0.0])  # arm of the cross at the start, in world axes
    z2 = np.cross(u, y2) / np.linalg.norm(np.cross(u, y2))
    y3 = (D - tip) / 7.4
    bodies = [
        _body(
            "rotor",
            2.0,
            J[0],
            [0, 0, 0],
            [[0, 0, 1], [0, 1, 0], [-1, 0, 0]],
            [0, 0, 0, 0, 0, np.pi],
        ),
        _body("coupler", 1.0, J[1], (pin + tip) / 2, np.column_stack([np.cross(y2, z2), y2, z2])),
        _body(
            "rocker",
            1.0,
            J[2],
            (D + tip) / 2,
            np.column_stack([[0, -1, 0], y3, np.cross([0, -1, 0], y3)]),
        ),
    ]
    joints = [
        MechanismJoint(
            "revA",
            [
                DP1("dp1_x", "rotor", [1, 0, 0], "ground", [1, 0, 0]),
                DP1("dp1_y", "rotor", [0, 1, 0], "ground", [1, 0, 0]),
                *_coincident(("rotor", [0, 0, 0]), ("ground", [0, 0, 0])),
            ],
        ),
        MechanismJoint(
            "revD",
            [
                DP1("dp1_z", "rocker", [0, 0, 1], "ground", [0, 1, 0]),
                DP1("dp1_y", "rocker", [0, 1, 0], "ground", [0, 1, 0]),
                *_coincident(("rocker", [0, 3.7, 0]), ("ground", [-4.0, -8.5, 0.0])),
            ],
        ),
        MechanismJoint(
            "spherical", _coincident(("rocker", [0, -3.7, 0]), ("coupler", [0, -6.1, 0]))
        ),
        MechanismJoint(
            "univ",
            [
                *_coincident(("rotor", [-2, 0, 0]), ("coupler", [0, 6.1, 0])),
                DP1("dp1", "rotor", [0, -0.662, 0.75], "coupler", [0, 0, 1]),
            ],
        ),
    ]
    paper = DP1("angle", "rotor", [-1, 0, 0], "ground", [0, 1, 0], lambda t: -ca.sin(np.pi * t))
    axis = (
        Marker("ground", z=[1, 0, 0], x=[0, 0, -1]),
        Marker("rotor", z=[0, 0, 1], x=[1, 0, 0]),
    )
    return _moved("four_link", bodies, joints, drive, paper, axis, lambda t: np.pi * t)


@named_options
def slider_crank_mechanism(*, drive: DriveKind = "regular") -> Mechanism:
    """Spatial slider-crank of Haug: crank, rod, slider; it has all four basic constraints.

    Parameters
    ----------
    drive : {"regular", "paper", "motor"}
        The crank turns with −2π rad/s about its x axis, or by a torque.

    Returns
    -------
    Mechanism
        Bodies crank, rod, slider.

    References
    ----------
    Kissel, Taves, Negrut: section 4.2; Haug 1989, chapter 10.
    """
    pin = np.array([0.0, 0.1, 0.2])
    slide = np.sqrt(0.3**2 - 0.1**2 - 0.2**2)
    x = (np.array([slide, 0.0, 0.0]) - pin) / 0.3
    y = np.array([0.0, -x[2], x[1]]) / np.hypot(x[1], x[2])  # across z of the slider
    bodies = [
        _body(
            "crank",
            0.12,
            [1e-4, 1e-5, 1e-4],
            [0, 0.1, 0.12],
            [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
            [0, 0, 0, -2 * np.pi, 0, 0],
        ),
        _body(
            "rod",
            0.5,
            [4e-3, 4e-4, 4e-3],
            (pin + [slide, 0, 0]) / 2,
            np.column_stack([x, y, np.cross(x, y)]),
        ),
        _body("slider", 2.0, [1e-4] * 3, [slide, 0, 0], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    ]
    joints = [
        MechanismJoint(
            "revA",
            [
                *_coincident(("ground", [0, 0.1, 0.12]), ("crank", [0, 0, 0])),
                DP1("dp1_y", "ground", [0, 1, 0], "crank", [1, 0, 0]),
                DP1("dp1_z", "ground", [0, 0, 1], "crank", [1, 0, 0]),
            ],
        ),
        MechanismJoint("sphB", _coincident(("rod", [-0.15, 0, 0]), ("crank", [0, 0.08, 0]))),
        MechanismJoint(
            "revcylC",
            [
                DP1("dp1", "rod", [0, 1, 0], "slider", [0, 0, 1]),
                DP2("dp2_y", "rod", [0, 1, 0], [0.15, 0, 0], "slider", [0, 0, 0]),
                DP2("dp2_z", "rod", [0, 0, 1], [0.15, 0, 0], "slider", [0, 0, 0]),
                D("d", "rod", [0.15, 0, 0], "slider", [0, 0, 1], 1.0),
            ],
        ),
        MechanismJoint(
            "transD",
            [
                DP1("dp1_1", "slider", [-1, 0, 0], "ground", [1, 0, 0]),
                DP1("dp1_2", "slider", [0, 1, 0], "ground", [1, 0, 0]),
                DP2("dp2_1", "slider", [-1, 0, 0], [0, 0, 0], "ground", [0.2, 0, 0]),
                DP2("dp2_2", "slider", [0, 1, 0], [0, 0, 0], "ground", [0.2, 0, 0]),
                DP1("dp1_3", "slider", [-1, 0, 0], "ground", [0, 1, 0]),
            ],
        ),
    ]
    paper = DP1("angle", "ground", [0, 1, 0], "crank", [0, 1, 0], lambda t: ca.sin(2 * np.pi * t))
    axis = (
        Marker("ground", [0, 0.1, 0.12], z=[-1, 0, 0], x=[0, 0, 1]),
        Marker("crank", z=[-1, 0, 0], x=[0, 1, 0]),
    )
    return _moved("slider_crank", bodies, joints, drive, paper, axis, lambda t: 2 * np.pi * t)
