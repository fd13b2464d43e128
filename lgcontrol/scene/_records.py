"""Records of a scene: shapes of bodies, meshes from files, paths, goals, arrows, plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ..groups import SE3, SO3
from ..io._internal import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    SphereShape,
    decimated,
    read_bytes,
    read_mesh,
    resolve_mesh,
)

MOST_DRAWN = 20_000  # triangles of a mesh
ENCODED = (".dae", ".glb")  # what the page's own loaders read
UPRIGHT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
_BOX_FACES = np.array(
    [[0, 2, 1], [1, 2, 3], [4, 5, 6], [5, 7, 6], [0, 1, 4], [1, 5, 4],
     [2, 6, 3], [3, 6, 7], [0, 4, 2], [2, 4, 6], [1, 3, 5], [3, 7, 5]], dtype=np.int32,
)  # fmt: skip


@dataclass(frozen=True)
class MeshFile:
    """A mesh that a robot file names; `read` opens it when it is to be drawn.

    Nothing outside of the folders of packages (`resolve_mesh`) and of the robot file, the source,
    is read.
    """

    filename: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    source: Path | None = None
    packages: Mapping[str, str | PathLike[str]] | Iterable[str | PathLike[str]] = field(
        default=(), hash=False
    )

    def read(self) -> Mesh | EncodedMesh:
        """Triangles, or the bytes of a format that only pages read.

        Refused are names that lead outside, and files that are broken, too large or of another
        kind.
        """
        path = resolve_mesh(self.filename, self.packages, source=self.source)
        kind = path.suffix.lower()
        if kind in ENCODED:
            return EncodedMesh(kind[1:], read_bytes(path), self.scale)
        vertices, faces = decimated(*read_mesh(path), MOST_DRAWN)
        mirrored = np.prod(self.scale) < 0
        return Mesh(vertices * self.scale, faces[:, ::-1] if mirrored else faces)


Color: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue, opacity, each from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles as arrays.

    Vertices are in m; faces are rows of them, counter-clockwise seen from outside.
    """

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        vertices = check_shape("vertices", self.vertices, (None, 3))
        faces = np.asarray(self.faces, dtype=np.int32).reshape(-1, 3)
        if len(faces) and not (0 <= faces.min() and faces.max() < len(vertices)):
            raise ValueError(
                f"faces name vertices {faces.min()} to {faces.max()}; there are {len(vertices)}"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)


@dataclass(frozen=True, eq=False)
class EncodedMesh:
    """A mesh as the bytes of its file, for formats that only the page's own loaders read.

    Formats are "dae" and "glb".
    """

    format: str
    data: bytes
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class ConeShape:
    """All points within an angle of z seen from the origin, to a distance.

    The half angle is in rad, from 0 to π, the length in m.
    """

    half_angle: float
    length: float


Geometry: TypeAlias = (
    BoxShape | CylinderShape | CapsuleShape | SphereShape | ConeShape | Mesh | EncodedMesh
)


@dataclass(frozen=True, eq=False)
class BodyShape:
    """Geometry fixed to a body.

    Parameters
    ----------
    geometry : BoxShape, CylinderShape, CapsuleShape, SphereShape, ConeShape, Mesh or EncodedMesh
        Cylinders, capsules and cones are about z; all but cones and meshes are centred.
    pose : ndarray, shape (7,)
        SE3 coordinates in the axes of the body.
    color : tuple of float, shape (4,), optional
        Red, green, blue, opacity; that of the body's role if left out.
    """

    geometry: Geometry
    pose: np.ndarray = field(default_factory=lambda: UPRIGHT)
    color: Color | None = None

    def moved(self, pose: np.ndarray) -> BodyShape:
        """The same in other axes, in which the old ones have a pose, shape (7,)."""
        return replace(self, pose=SE3.compose(pose, self.pose))

    def surface(self, around: int = 16) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n, 3) in the axes of the body and faces (k, 3).

        Parameters
        ----------
        around : int
            Number of corners of what is round.

        Raises
        ------
        ValueError
            For meshes whose triangles are not known.
        """
        vertices, faces = _surface(self.geometry, around)
        return SE3.act(self.pose, vertices), faces


def between(start: Any, end: Any, radius: float, color: Color | None = None) -> BodyShape:
    """Capsule about a segment; a ball where both ends are one point."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(end - start))
    if length < 1e-9:
        return BodyShape(SphereShape(radius), SE3.from_position(start), color)
    pose = np.concatenate([(start + end) / 2, turn_z_to(end - start)])
    return BodyShape(CapsuleShape(radius, length), pose, color)


def disc(
    center: Any, axis: Any, radius: float, thickness: float, color: Color | None = None
) -> BodyShape:
    """Cylinder about an axis."""
    pose = np.concatenate([np.asarray(center, dtype=float), turn_z_to(axis)])
    return BodyShape(CylinderShape(radius, thickness), pose, color)


def box(size: Sequence[float], center: Any = (0, 0, 0), color: Color | None = None) -> BodyShape:
    """Box along the axes of the body.

    Parameters
    ----------
    size : sequence of 3 floats
        Lengths of its sides, m.
    center : array_like, shape (3,)
        In the axes of the body, m.
    color : tuple of float, shape (4,), optional
        Red, green, blue, opacity, each from 0 to 1.
    """
    a, b, c = (float(length) for length in size)
    return BodyShape(BoxShape((a, b, c)), SE3.from_position(np.asarray(center, dtype=float)), color)


def hull(
    length: float, beam: float, depth: float, color: Color | None = None, top: float = 0.0
) -> BodyShape:
    """Hull of a ship along x, pointed at the bow, its deck at the height `top`."""
    half, mid = length / 2, beam / 2
    outline = np.array(
        [[-half, -0.8 * mid], [-half, 0.8 * mid], [0.0, mid], [0.6 * half, 0.75 * mid],
         [half, 0.0], [0.6 * half, -0.75 * mid], [0.0, -mid]]
    )  # fmt: skip
    deck = np.column_stack([outline, np.full(len(outline), top)])
    keel = np.column_stack([outline * [0.85, 0.55], np.full(len(outline), top - depth)])
    n = len(outline)
    sides = [(i, (i + 1) % n, n + i) for i in range(n)]
    sides += [((i + 1) % n, n + (i + 1) % n, n + i) for i in range(n)]
    caps = [(0, i + 1, i) for i in range(1, n - 1)]  # the outline runs clockwise seen from above
    bottom = [(n, n + i, n + i + 1) for i in range(1, n - 1)]
    return BodyShape(
        Mesh(np.concatenate([deck, keel]), np.array([*sides, *caps, *bottom])), color=color
    )


def wheeled_body(
    *,
    body: tuple[float, float, float],
    wheelbase: float,
    track: float,
    wheel: tuple[float, float],
    ahead: float = 0.0,
    color: Color = (0.93, 0.62, 0.16, 1.0),
    cabin: float = 0.0,
) -> tuple[BodyShape, ...]:
    """A body on four wheels, on the ground z = 0.

    Parameters
    ----------
    body : (length, width, height)
    wheelbase, track : float
        Between the wheels along and across, m.
    wheel : (radius, width)
    ahead : float
        Middle between the axles ahead of the origin, m.
    color : tuple
        Of the body.
    cabin : float
        Height of windows and roof above the body, m.
    """
    radius, width = wheel
    dark = (0.16, 0.17, 0.19, 1.0)
    length, _, height = body
    wheels = [
        disc((ahead + i * wheelbase / 2, k * track / 2, radius), (0, 1, 0), radius, width, dark)
        for i in (1, -1)
        for k in (1, -1)
    ]
    low = 0.6 * radius
    nose = (ahead + 0.5 * length, 0.0, low + 0.6 * height)
    top = low + height
    return (
        box(body, (ahead, 0.0, low + height / 2), color),
        box((0.04 * length, 0.5 * body[1], 0.25 * height), nose, dark),
        *(_cabin(0.55 * length, 0.84 * body[1], cabin, (ahead - 0.08 * length, 0.0, top), color)
          if cabin else ()),
        *wheels,
    )  # fmt: skip


def _cabin(
    length: float, width: float, height: float, foot: Sequence[float], color: Color
) -> tuple[BodyShape, BodyShape]:
    """Windows that lean inwards, under a roof in the colour of the body."""

    def ring(share: float, z: float) -> np.ndarray:
        x, y = share * length / 2, (share + 1) / 2 * width / 2
        return np.array([[-x, -y, z], [x, -y, z], [-x, y, z], [x, y, z]])

    roof = 0.14 * height
    corners = np.concatenate([ring(1.0, 0.0), ring(0.62, height - roof)])
    at = np.asarray(foot, dtype=float)
    glass = BodyShape(Mesh(corners, _BOX_FACES), SE3.from_position(at), (0.20, 0.24, 0.29, 1.0))
    over = (0.64 * length, 0.83 * width, roof)
    return glass, box(over, at + [0.0, 0.0, height - roof / 2], color)


def ellipsoid(axes: np.ndarray, center: Any, color: Color | None = None) -> BodyShape:
    """Ellipsoid with half-axes as columns of a matrix (3, 3)."""
    vertices, faces = _ball(16, 1.0)
    return BodyShape(Mesh(vertices @ np.asarray(axes).T + center, faces), color=color)


def turn_z_to(direction: Any) -> np.ndarray:
    """Quaternion that turns z to a direction, shape (4,)."""
    d = np.asarray(direction, dtype=float)
    d = d / np.linalg.norm(d)
    angle_axis = np.cross([0.0, 0.0, 1.0], d)
    if d[2] < -1 + 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    q = np.array([*angle_axis, 1.0 + d[2]])
    return SO3.normalize(q)


def _surface(geometry: Geometry, around: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(geometry, Mesh):
        return geometry.vertices, geometry.faces
    if isinstance(geometry, BoxShape):
        corners = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])
        return corners * np.array(geometry.size) / 2, _BOX_FACES
    if isinstance(geometry, SphereShape):
        return _ball(around, geometry.radius)
    if isinstance(geometry, CylinderShape):
        half, r = geometry.length / 2, geometry.radius
        return _turned([(0.0, -half), (r, -half), (r, half), (0.0, half)], around)
    if isinstance(geometry, CapsuleShape):
        half, r = geometry.length / 2, geometry.radius
        angles = np.linspace(0, np.pi / 2, max(2, around // 4 + 1))
        low = [(r * np.sin(a), -half - r * np.cos(a)) for a in angles]
        return _turned([*low, *((x, -z) for x, z in reversed(low))], around)
    if isinstance(geometry, ConeShape):
        angles = np.linspace(geometry.half_angle, 0.0, max(3, around // 2))
        cap = [(geometry.length * np.sin(a), geometry.length * np.cos(a)) for a in angles[:-1]]
        return _turned([(0.0, 0.0), *cap, (0.0, geometry.length)], around)
    raise ValueError(
        f"the triangles of a {geometry.format} file are not known here: give an STL or OBJ file"
    )


def _ball(around: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    angles = np.linspace(0, np.pi, max(3, around // 2 + 1))
    return _turned([(radius * np.sin(a), -radius * np.cos(a)) for a in angles], around)


def _turned(profile: Sequence[tuple[float, float]], around: int) -> tuple[np.ndarray, np.ndarray]:
    """Surface of a profile (distance from the axis, height), bottom first, turned about z."""
    angles = 2 * np.pi * np.arange(around) / around
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    vertices = np.concatenate([np.column_stack([r * ring, np.full(around, z)]) for r, z in profile])
    faces = []
    for k in range(len(profile) - 1):
        for i in range(around):
            a, b = k * around + i, k * around + (i + 1) % around
            c, d = a + around, b + around
            if profile[k][0] > 1e-12:
                faces.append((a, b, d if profile[k + 1][0] > 1e-12 else c))
            if profile[k + 1][0] > 1e-12:
                faces.append((a, d, c))
    return vertices, np.array(faces, dtype=np.int32)


BodyRole: TypeAlias = Literal["body", "reference", "obstacle", "gate", "estimate", "hull"]
PathRole: TypeAlias = Literal["trail", "reference", "plan", "estimate"]


@named_options
@dataclass(frozen=True, eq=False)
class SceneBody:
    """A body with its shapes, and where it is at the times of the scene.

    Parameters
    ----------
    name : str
    shapes : sequence of BodyShape
        In the axes of the body; none for a mere frame.
    poses : ndarray, shape (F, 7) or (1, 7)
        SE3 coordinates in the world at each time, or once for a body that stays.
    role : {"body", "reference", "obstacle", "gate", "estimate", "hull"}
        References, gates, estimates and hulls are drawn pale; only bodies have a frame.
    """

    name: str
    shapes: Sequence[BodyShape]
    poses: np.ndarray
    role: BodyRole = "body"

    @property
    def is_fixed(self) -> bool:
        """Whether it stays where it is."""
        return len(self.poses) == 1

    def points(self, frame: int) -> np.ndarray:
        """Vertices of all surfaces in the world at one frame, shape (n, 3)."""
        return SE3.act(self.poses[0 if self.is_fixed else frame], self._vertices)

    def extent(self, frames: np.ndarray) -> np.ndarray:
        """Corners in the world of the box about it in its axes, at some frames, (k, 8, 3)."""
        own = self._vertices
        low, high = own.min(axis=0), own.max(axis=0)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        T = SE3.homogeneous(self.poses[:1] if self.is_fixed else self.poses[frames])
        placed = (low + corners * (high - low)) @ np.swapaxes(T[:, :3, :3], 1, 2)
        return placed + T[:, np.newaxis, :3, 3]

    @property
    def _vertices(self) -> np.ndarray:
        """Of all surfaces in the axes of the body; its origin where there are none."""
        known = [s for s in self.shapes if not hasattr(s.geometry, "format")]
        return np.concatenate([s.surface(8)[0] for s in known] or [np.zeros((1, 3))])


@named_options
@dataclass(frozen=True, eq=False)
class ScenePath:
    """Path of a point.

    Points are in m. Trails have a point for each time of the scene; plans, references and estimates
    are drawn whole.
    """

    name: str
    points: np.ndarray
    role: PathRole = "trail"


@named_options
@dataclass(frozen=True, eq=False)
class SceneGoal:
    """A pose where something is to be, with its tolerance.

    Positions in a ball of the radius `tolerance`, m, pass; 0 where there is none.
    """

    name: str
    pose: np.ndarray
    tolerance: float = 0.0


@named_options
@dataclass(frozen=True, eq=False)
class SceneArrow:
    """A force that acts at a point.

    Starts are points of action, m; vectors are in world axes, in the unit.
    """

    name: str
    starts: np.ndarray
    vectors: np.ndarray
    unit: str = "N"


@named_options
@dataclass(frozen=True)
class SceneEvent:
    """Something that happened.

    A kick has the change of the state that it made, a tangent vector.
    """

    t: float
    name: str
    change: tuple[float, ...] = ()


@named_options
@dataclass(frozen=True, eq=False)
class ScenePlot:
    """Lines over time of one unit, to be drawn below the scene.

    Limits are infinite where none are drawn.
    """

    title: str
    unit: str
    names: tuple[str, ...]
    t: np.ndarray
    values: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf


@named_options
@dataclass(frozen=True, eq=False)
class SceneJoint:
    """How a body is carried, so that a page can move it: ``T = before · exp(q · twist) · after``.

    With ``q = scale · value of the leader + shift``.
    """

    name: str  # of the joint
    body: str  # bodies of the scene; joints of carriers come first
    carrier: str
    before: np.ndarray  # (7,)
    after: np.ndarray  # (7,)
    twist: np.ndarray  # (6,) for a unit of the coordinate; zero for joints that pages do not move
    value: float  # coordinate as the scene shows it
    lower: float  # limits; infinite where there are none
    upper: float
    leader: str  # joint that it follows, or itself
    scale: float = 1.0
    shift: float = 0.0
