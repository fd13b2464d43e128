"""What robots are made of: poses, shapes, links and joints, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

NORM_TOLERANCE = 1.5e-2  # few printed digits: (0, 0, 0.7, 0.7) has length 0.99
# Up to this, the norm is 1 to the last bits and dividing by it would only move them.
EXACT_NORM = 1e-15
LARGEST_MULTIPLIER = 1e6  # of a mimic: a worm gear behind another has 1e4, squares stay numbers


@dataclass(frozen=True, slots=True)
class Origin:
    """T_parent_child: where a frame stands in its parent frame.

    Parameters
    ----------
    xyz : tuple of float, shape (3,)
        Origin of the child frame in the parent frame, metres.
    rpy : tuple of float, shape (3,)
        Roll, pitch, yaw in radians, about the fixed axes x, then y, then z of the parent frame.
    quaternion : tuple of float, shape (4,), optional
        Unit quaternion (x, y, z, w), where the file gives one; it then decides the rotation and
        `rpy` is derived from it. Missing digits are made up for: it is normalised.

    Raises
    ------
    ValueError
        If there are not as many numbers, one is not finite, or the quaternion has not length 1.

    Examples
    --------
    >>> import math
    >>> T_base_tool = Origin(xyz=(0.0, 0.0, 0.5), rpy=(0.0, 0.0, math.pi / 2))
    >>> T_base_tool.matrix.round(6)
    array([[ 0. , -1. ,  0. ,  0. ],
           [ 1. ,  0. ,  0. ,  0. ],
           [-0. ,  0. ,  1. ,  0.5],
           [ 0. ,  0. ,  0. ,  1. ]])
    """

    xyz: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)
    quaternion: Quaternion | None = None

    def __post_init__(self) -> None:
        """Check the numbers, normalise the quaternion and derive rpy from it."""
        for name, count in (("xyz", 3), ("rpy", 3), ("quaternion", 4)):
            given = getattr(self, name)
            if name == "quaternion" and given is None:
                continue
            numbers = tuple(float(x) for x in given)
            if len(numbers) != count or not all(map(math.isfinite, numbers)):
                raise ValueError(f"Pose: {name} must be {count} finite numbers, got {given}")
            object.__setattr__(self, name, numbers)
        if self.quaternion is not None:
            unit = _unit_quaternion(self.quaternion)
            object.__setattr__(self, "quaternion", unit)
            rpy = _rpy_from_rotation(_rotation_from_quaternion(unit))
            object.__setattr__(self, "rpy", rpy)

    @property
    def position(self) -> np.ndarray:
        """Origin of the child frame in the parent frame, shape (3,), metres."""
        return np.array(self.xyz)

    @property
    def rotation(self) -> np.ndarray:
        """R_parent_child, shape (3, 3): columns are the child's axes in the parent frame."""
        if self.quaternion is not None:
            return _rotation_from_quaternion(self.quaternion)
        return _rotation_from_rpy(self.rpy)

    @property
    def matrix(self) -> np.ndarray:
        """T_parent_child, shape (4, 4)."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation
        matrix[:3, 3] = self.xyz
        return matrix

    @classmethod
    def from_quaternion(cls, xyz: Vector3, quaternion: Quaternion) -> Origin:
        """Pose with the rotation of a unit quaternion (x, y, z, w).

        Examples
        --------
        >>> Origin.from_quaternion((0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)).rpy[2]
        3.141592653589793
        """
        return cls(xyz, quaternion=quaternion)


def _unit_quaternion(quaternion: Quaternion) -> Quaternion:
    norm = math.hypot(*quaternion)
    if abs(norm - 1.0) > NORM_TOLERANCE:
        raise ValueError(
            f"Pose: the quaternion {quaternion} has length {norm:.6g}, expected 1; divide by it if "
            "the direction is meant"
        )
    if abs(norm - 1.0) <= EXACT_NORM:
        return quaternion
    x, y, z, w = (component / norm for component in quaternion)
    return x, y, z, w


def _rotation_from_rpy(rpy: Vector3) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = (tuple(map(f, rpy)) for f in (math.cos, math.sin))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _rotation_from_quaternion(quaternion: Quaternion) -> np.ndarray:
    """R = I + 2 w [u] + 2 [u]² for the unit quaternion (u, w)."""
    x, y, z, w = quaternion
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def _rpy_from_rotation(rotation: np.ndarray) -> Vector3:
    """Angles with pitch in [-π/2, π/2]; at pitch ±π/2 the yaw is set to zero."""
    r = rotation
    cos_pitch = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], cos_pitch)
    if cos_pitch < 1e-12:
        return math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])


@dataclass(frozen=True, slots=True)
class BoxShape:
    """Box centred on its origin, with its size along x, y, z in metres."""

    size: Vector3


@dataclass(frozen=True, slots=True)
class CylinderShape:
    """Cylinder about z, centred on its origin, in metres."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class CapsuleShape:
    """Cylinder about z with half-spheres on its ends, centred on its origin (URDF 1.1).

    In metres; the length is that of the cylinder without the half-spheres.
    """

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class SphereShape:
    """Sphere about its origin, in metres."""

    radius: float


@dataclass(frozen=True, slots=True)
class MeshShape:
    """Mesh in a file of its own.

    The name is as written in the file, such as ``package://robot/meshes/arm.stl``: `resolve_mesh`
    finds the mesh. Factors of scale are along x, y, z.
    """

    filename: str
    scale: Vector3 = (1.0, 1.0, 1.0)


Geometry = BoxShape | CylinderShape | CapsuleShape | SphereShape | MeshShape


@dataclass(frozen=True, slots=True)
class Shape:
    """Geometry fixed to a link."""

    geometry: Geometry  # what to draw
    origin: Origin = Origin()  # of the geometry in the link frame
    name: str | None = None
    color: tuple[float, float, float, float] | None = None  # red, green, blue, opacity, 0 to 1
    line: int | None = field(default=None, compare=False)  # in the file


@dataclass(frozen=True, slots=True)
class InertialDescription:
    """Mass, centre of mass and inertia about it.

    Examples
    --------
    >>> InertialDescription(mass=2.0, ixx=0.1, iyy=0.1, izz=0.05).inertia
    array([[0.1 , 0.  , 0.  ],
           [0.  , 0.1 , 0.  ],
           [0.  , 0.  , 0.05]])
    """

    mass: float  # kg
    origin: Origin = Origin()  # inertial frame in the link frame, at the centre of mass
    ixx: float = 0.0  # about the centre of mass, kg m²
    ixy: float = 0.0  # entry of the matrix, -∫ x y dm
    ixz: float = 0.0
    iyy: float = 0.0
    iyz: float = 0.0
    izz: float = 0.0
    line: int | None = field(default=None, compare=False)  # in the file

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
    """A link: a body with mass and shapes, or a bare frame without."""

    name: str  # unique among the links
    inertial: InertialDescription | None = None  # None: the link has no mass
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()
    line: int | None = field(default=None, compare=False)  # in the file

    @property
    def mass(self) -> float:
        """Mass in kilograms, zero without an inertial description."""
        return 0.0 if self.inertial is None else self.inertial.mass


@dataclass(frozen=True, slots=True)
class JointType:
    """What a joint type has.

    Bounds are "required", "optional" or "none": whether lower and upper limits belong to it.
    """

    freedom: int
    axis: bool = False
    bounds: str = "optional"
    angle: bool = False


JOINT_TYPES = MappingProxyType(
    {
        "fixed": JointType(0),
        "revolute": JointType(1, axis=True, bounds="required", angle=True),
        "continuous": JointType(1, axis=True, bounds="none", angle=True),
        "prismatic": JointType(1, axis=True, bounds="required"),
        "helical": JointType(1, axis=True, angle=True),
        "universal": JointType(2),
        "planar": JointType(3, axis=True),
        "spherical": JointType(3),
        "floating": JointType(6),
    }
)


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Limits of a joint; None where the file gives none."""

    lower: float | None = None  # position, m or rad
    upper: float | None = None
    velocity: float | None = None  # m/s or rad/s
    effort: float | None = None  # N or N m
    acceleration: float | None = None  # greatest magnitudes (URDF 1.2), SI units and radians
    deceleration: float | None = None
    jerk: float | None = None


@dataclass(frozen=True, slots=True)
class JointDynamics:
    """Losses of a joint.

    Viscous damping in N s/m or N m s/rad, dry friction in N or N m.
    """

    damping: float = 0.0
    friction: float = 0.0


@dataclass(frozen=True, slots=True)
class JointMimic:
    """q = multiplier · q_leader + offset."""

    joint: str  # the leader, which mimics none
    multiplier: float = 1.0
    offset: float = 0.0  # m or rad
    line: int | None = field(default=None, compare=False)  # in the file


@dataclass(frozen=True, slots=True)
class JointDescription:
    """A joint: how a child link moves on its parent link.

    The child's frame is the joint frame after the motion:
    ``T_parent_child(q) = T_parent_joint · motion(q)``.

    Parameters
    ----------
    name : str
        Unique among the joints.
    type : str
        fixed, revolute, continuous, prismatic, planar or floating; the extensions are helical
        (also written screw), spherical (also written ball) and universal (about x, then y).
    parent, child : str
        Names of the links.
    origin : Origin
        T_parent_joint, the joint frame at q = 0 in the parent link's frame.
    axis : tuple of float, shape (3,), optional
        Unit axis in the joint frame; the normal of a planar joint; None where the type has none.
    limits : JointLimits
        Limits; each is None where the file gives none.
    dynamics : JointDynamics
        Damping and friction, zero where the file gives none.
    mimic : JointMimic, optional
        The joint this one follows.
    pitch : float, optional
        Advance of a helical joint, m/rad; None for other types.
    line : int, optional
        Line in the file; not compared.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Origin = Origin()
    axis: Vector3 | None = None
    limits: JointLimits = JointLimits()
    dynamics: JointDynamics = JointDynamics()
    mimic: JointMimic | None = None
    pitch: float | None = None
    line: int | None = field(default=None, compare=False)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the joint type (mimicking removes them from the robot)."""
        return JOINT_TYPES[self.type].freedom
