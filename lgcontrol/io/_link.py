"""A link of a robot: a body, or a bare frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ._pose import Origin
from ._shapes import Shape


@dataclass(frozen=True, slots=True)
class InertialDescription:
    """Mass, centre of mass and inertia about it.

    Parameters
    ----------
    mass : float
        Kilograms.
    origin : Origin
        Inertial frame in the link frame; its origin is the centre of mass.
    ixx, ixy, ixz, iyy, iyz, izz : float
        Inertia about the centre of mass in the axes of the inertial frame, kg m². The products
        are the entries of the matrix (ixy = -∫ x y dm).
    line : int, optional
        Line in the file; not compared.

    Examples
    --------
    >>> from lgcontrol.io._link import InertialDescription
    >>> InertialDescription(mass=2.0, ixx=0.1, iyy=0.1, izz=0.05).inertia
    array([[0.1 , 0.  , 0.  ],
           [0.  , 0.1 , 0.  ],
           [0.  , 0.  , 0.05]])
    """

    mass: float
    origin: Origin = Origin()
    ixx: float = 0.0
    ixy: float = 0.0
    ixz: float = 0.0
    iyy: float = 0.0
    iyz: float = 0.0
    izz: float = 0.0
    line: int | None = field(default=None, compare=False)

    @property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass, axes of the inertial frame, shape (3, 3), kg m²."""
        return np.array(
            [
                [self.ixx, self.ixy, self.ixz],
                [self.ixy, self.iyy, self.iyz],
                [self.ixz, self.iyz, self.izz],
            ]
        )


@dataclass(frozen=True, slots=True)
class LinkDescription:
    """A link: a body with mass and shapes, or a bare frame without.

    Parameters
    ----------
    name : str
        Unique among the links.
    inertial : InertialDescription, optional
        None where the file gives none: the link has no mass.
    visuals, collisions : tuple of Shape
        Shapes to draw and to collide.
    line : int, optional
        Line in the file; not compared.

    Examples
    --------
    >>> from lgcontrol.io._link import LinkDescription
    >>> LinkDescription("tool_frame").mass
    0.0
    """

    name: str
    inertial: InertialDescription | None = None
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()
    line: int | None = field(default=None, compare=False)

    @property
    def mass(self) -> float:
        """Mass in kilograms, zero without an inertial description."""
        return 0.0 if self.inertial is None else self.inertial.mass
