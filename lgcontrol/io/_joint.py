"""A joint of a robot and the joint types."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from ._pose import Origin, Vector3


@dataclass(frozen=True, slots=True)
class JointType:
    """What a joint type has.

    Parameters
    ----------
    freedom : int
        Degrees of freedom.
    axis : bool
        Whether the joint has an axis.
    bounds : {"required", "optional", "none"}
        Whether lower and upper limits belong to it.
    angle : bool
        Whether its coordinate is an angle.
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
    """Limits of a joint; None where the file gives none.

    Parameters
    ----------
    lower, upper : float, optional
        Least and greatest position, m or rad.
    velocity : float, optional
        Greatest speed, m/s or rad/s.
    effort : float, optional
        Greatest force or torque, N or N m.
    acceleration, deceleration, jerk : float, optional
        Greatest magnitudes (URDF 1.2), in SI units and radians.

    Examples
    --------
    >>> from lgcontrol.io._joint import JointLimits
    >>> JointLimits(lower=-1.5, upper=1.5).effort is None
    True
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None
    acceleration: float | None = None
    deceleration: float | None = None
    jerk: float | None = None


@dataclass(frozen=True, slots=True)
class JointDynamics:
    """Losses of a joint.

    Parameters
    ----------
    damping : float
        Viscous damping, N s/m or N m s/rad.
    friction : float
        Dry friction, N or N m.

    Examples
    --------
    >>> from lgcontrol.io._joint import JointDynamics
    >>> JointDynamics(damping=0.5)
    JointDynamics(damping=0.5, friction=0.0)
    """

    damping: float = 0.0
    friction: float = 0.0


LARGEST_MULTIPLIER = 1e6  # of a mimic: a worm gear behind another has 1e4, squares stay numbers


@dataclass(frozen=True, slots=True)
class JointMimic:
    """q = multiplier · q_leader + offset.

    Parameters
    ----------
    joint : str
        The leader, a joint that mimics none.
    multiplier : float
        Factor on the leader's position.
    offset : float
        Position at the leader's zero, m or rad.
    line : int, optional
        Line in the file; not compared.

    Examples
    --------
    >>> from lgcontrol.io._joint import JointMimic
    >>> JointMimic("left_finger", multiplier=-1.0).offset
    0.0
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0
    line: int | None = field(default=None, compare=False)


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

    Examples
    --------
    >>> from lgcontrol.io._joint import JointDescription
    >>> elbow = JointDescription("elbow", "continuous", "arm", "forearm", axis=(0.0, 1.0, 0.0))
    >>> elbow.freedom
    1
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
