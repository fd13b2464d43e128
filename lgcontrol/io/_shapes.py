"""Shapes of links, kept for drawing."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._pose import Origin, Vector3


@dataclass(frozen=True, slots=True)
class BoxShape:
    """Box centred on its origin.

    Parameters
    ----------
    size : tuple of float, shape (3,)
        Edge lengths along x, y, z, metres.

    Examples
    --------
    >>> from lgcontrol.io._shapes import BoxShape
    >>> BoxShape((0.1, 0.2, 0.3)).size
    (0.1, 0.2, 0.3)
    """

    size: Vector3


@dataclass(frozen=True, slots=True)
class CylinderShape:
    """Cylinder about z, centred on its origin.

    Parameters
    ----------
    radius, length : float
        Metres.

    Examples
    --------
    >>> from lgcontrol.io._shapes import CylinderShape
    >>> CylinderShape(radius=0.05, length=0.4).length
    0.4
    """

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class CapsuleShape:
    """Cylinder about z with half-spheres on its ends, centred on its origin (URDF 1.1).

    Parameters
    ----------
    radius, length : float
        Metres; the length is that of the cylinder without the half-spheres.

    Examples
    --------
    >>> from lgcontrol.io._shapes import CapsuleShape
    >>> CapsuleShape(radius=0.05, length=0.4).radius
    0.05
    """

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class SphereShape:
    """Sphere about its origin.

    Parameters
    ----------
    radius : float
        Metres.

    Examples
    --------
    >>> from lgcontrol.io._shapes import SphereShape
    >>> SphereShape(0.1).radius
    0.1
    """

    radius: float


@dataclass(frozen=True, slots=True)
class MeshShape:
    """Mesh in a file of its own.

    Parameters
    ----------
    filename : str
        As written in the file, such as ``package://robot/meshes/arm.stl``; `resolve_mesh` finds
        the file.
    scale : tuple of float, shape (3,)
        Factors along x, y, z.

    Examples
    --------
    >>> from lgcontrol.io._shapes import MeshShape
    >>> MeshShape("package://robot/meshes/arm.stl").scale
    (1.0, 1.0, 1.0)
    """

    filename: str
    scale: Vector3 = (1.0, 1.0, 1.0)


Geometry = BoxShape | CylinderShape | CapsuleShape | SphereShape | MeshShape


@dataclass(frozen=True, slots=True)
class Shape:
    """Geometry fixed to a link.

    Parameters
    ----------
    geometry : BoxShape, CylinderShape, CapsuleShape, SphereShape or MeshShape
        What to draw.
    origin : Origin
        Frame of the geometry in the link frame.
    name : str, optional
        Name of the shape.
    color : tuple of float, shape (4,), optional
        Red, green, blue, opacity, each from 0 to 1.
    line : int, optional
        Line in the file; not compared.

    Examples
    --------
    >>> from lgcontrol.io._pose import Origin
    >>> from lgcontrol.io._shapes import Shape, SphereShape
    >>> Shape(SphereShape(0.1), Origin(xyz=(0.0, 0.0, 0.5))).origin.xyz
    (0.0, 0.0, 0.5)
    """

    geometry: Geometry
    origin: Origin = Origin()
    name: str | None = None
    color: tuple[float, float, float, float] | None = None
    line: int | None = field(default=None, compare=False)
