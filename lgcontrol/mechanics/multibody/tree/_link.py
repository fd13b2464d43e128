"""What a tree is made of: links, each with the joint that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from ....codegen import named_options
from ....codegen._internal import check_shape
from ....groups import LieGroup
from ....io._internal import LARGEST_MULTIPLIER
from ....scene import BodyShape
from ....scene._internal import MeshFile
from ...inertia._inertia import SpatialInertia
from ._joint import Joint, as_placement, as_position

WORLD = "world"

_FINITE = ("armature", "damping", "friction", "stiffness")

FRICTION_SPEED = 0.1  # m/s or rad/s: slow enough to resemble dry friction, not yet stiff


@named_options
@dataclass(frozen=True)
class JointProperties:
    """Drive, losses, spring and limits of a joint: one number, or one for each degree of freedom.

    Parameters
    ----------
    armature : float or sequence
        Inertia of the drive seen at the joint [kg m² or kg]: gear ratio² × rotor inertia.
    damping : float or sequence
        Viscous friction [N m s/rad or N s/m].
    friction : float or sequence
        Dry friction [N m or N], smoothed as ``friction · tanh(v / friction_speed)``.
    friction_speed : float
        Speed over which dry friction changes sign [rad/s or m/s].
    stiffness : float or sequence
        Spring [N m/rad or N/m] towards `rest`.
    rest : sequence, optional
        Coordinates at which the spring is slack, length nq; the identity by default. Checked
        where the joint is known (see `check_element`).
    lower, upper : float or sequence
        Position limits in tangent coordinates from the identity (angles, travels).
    velocity, effort : float or sequence
        Largest speed and largest force or torque; infinite by default.

    Examples
    --------
    >>> JointProperties(damping=0.1, effort=87.0).filled(1).effort
    (87.0,)
    """

    armature: float | Sequence[float] = 0.0
    damping: float | Sequence[float] = 0.0
    friction: float | Sequence[float] = 0.0
    friction_speed: float = FRICTION_SPEED
    stiffness: float | Sequence[float] = 0.0
    rest: Sequence[float] | None = None
    lower: float | Sequence[float] = -inf
    upper: float | Sequence[float] = inf
    velocity: float | Sequence[float] = inf
    effort: float | Sequence[float] = inf

    def __post_init__(self) -> None:
        numbers = {key: np.asarray(getattr(self, key), dtype=float) for key in _CHECKED}
        for key, value in numbers.items():
            if key not in ("lower", "upper") and (value < 0).any():
                raise ValueError(f"{key} must not be negative, got {getattr(self, key)}")
        if (np.shape(self.lower) == np.shape(self.upper)) and (
            numbers["lower"] > numbers["upper"]
        ).any():
            raise ValueError(
                f"lower limit {self.lower} is above the upper {self.upper}: the lower comes first"
            )

    def filled(self, dim: int, where: str = "joint") -> JointProperties:
        """The same with one number for each degree of freedom, checked."""
        changes: dict[str, Any] = {}
        for entry in fields(self):
            if entry.name in ("friction_speed", "rest"):
                continue
            given = getattr(self, entry.name)
            if type(given) is float and given == _DEFAULTS[entry.name]:
                changes[entry.name] = (given,) * dim
                continue
            value = np.asarray(given, dtype=float)
            if value.shape not in ((), (dim,)):
                raise ValueError(
                    f"{where}: {entry.name} has shape {value.shape}, expected one number "
                    f"or {dim} (one for each degree of freedom)"
                )
            if np.isnan(value).any() or entry.name in _FINITE and np.isinf(value).any():
                raise ValueError(f"{where}: {entry.name} is not finite: {value.tolist()}")
            if entry.name not in ("lower", "upper") and (value < 0).any():
                raise ValueError(f"{where}: {entry.name} is negative: {value.tolist()}")
            changes[entry.name] = tuple(float(x) for x in np.broadcast_to(value, (dim,)))
        if not 0 < self.friction_speed < inf:
            raise ValueError(
                f"{where}: friction_speed must be positive and finite, got {self.friction_speed}"
            )
        if any(a > b for a, b in zip(changes["lower"], changes["upper"], strict=True)):
            raise ValueError(
                f"{where}: lower limit {changes['lower']} is above the upper {changes['upper']}"
            )
        return replace(self, **changes)

    @classmethod
    def geared(cls, rotor_inertia: float, gear_ratio: float, **others: Any) -> JointProperties:
        """With the armature of a rotor behind a gear: ``gear_ratio² · rotor_inertia``.

        The rotor's mass belongs to the link that carries the motor; its gyroscopic moment is
        neglected, which is right for fast gears.

        Parameters
        ----------
        rotor_inertia : float
            Inertia of the rotor about its axis [kg m²].
        gear_ratio : float
            Motor turns per joint turn (rad/m for a slide).
        **others
            Remaining properties.

        Examples
        --------
        >>> JointProperties.geared(1e-4, 100.0).armature
        1.0
        """
        return cls(armature=gear_ratio**2 * rotor_inertia, **others)


# What needs no check.
_CHECKED = (
    "armature", "damping", "friction", "stiffness", "lower", "upper", "velocity", "effort",
)  # fmt: skip
_DEFAULTS = {entry.name: entry.default for entry in fields(JointProperties)}


@named_options
@dataclass(frozen=True)
class Mimic:
    """Exact linear coupling of a joint with one coordinate: ``q = multiplier · q_leader + offset``.

    Parameters
    ----------
    joint : str
        Name of the leader, a joint with one coordinate that follows none.
    multiplier : float
    offset : float
        In rad or m.

    Examples
    --------
    >>> Mimic("finger_joint1", multiplier=-1.0).offset
    0.0
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for key in ("multiplier", "offset"):
            value = check_shape(f"{key} of the mimic of {self.joint!r}", getattr(self, key), ())
            object.__setattr__(self, key, float(value))
        if abs(self.multiplier) > LARGEST_MULTIPLIER:
            raise ValueError(
                f"multiplier of the mimic of {self.joint!r} is {self.multiplier:g}: no gear has a "
                f"factor above {LARGEST_MULTIPLIER:g}; give rad or m of this joint per rad or m of "
                "its leader"
            )


@dataclass(frozen=True, eq=False)
class LinkShape:
    """A shape of a link, with the file of its mesh where it is one that is read when it is drawn.

    Parameters
    ----------
    shape : Shape
        Its geometry stands for the mesh until that is read.
    file : MeshFile, optional
    """

    shape: BodyShape
    file: MeshFile | None = None


@dataclass(frozen=True, eq=False)
class Link:
    """A link and the joint by which its parent carries it.

    ``T_parent_link(q) = placement · joint.transform(q) · offset``.

    Parameters
    ----------
    name : str
    joint : Joint
    parent : str
        Name of the link that carries it, or "world".
    placement : ndarray, shape (4, 4)
        Joint frame at rest in the parent link's frame.
    inertia : SpatialInertia, optional
        None for a link without mass.
    joint_name : str
    properties : JointProperties
    mimic : Mimic, optional
    offset : ndarray, shape (4, 4)
        Link frame in the joint frame after the motion; the identity for most descriptions.
    added_mass : ndarray, shape (6, 6), optional
        Inertia of the fluid that moves along, in the link's frame; see `Multibody.with_added_mass`.
    visuals, collisions : tuple of Shape
        How it looks, and what it collides with, in its axes; the first are drawn.

    Raises
    ------
    TypeError
        If inertia, properties or mimic are something else.
    ValueError
        If the properties do not fit the joint.
    """

    name: str
    joint: Joint
    parent: str
    placement: np.ndarray
    inertia: SpatialInertia | None
    joint_name: str
    properties: JointProperties = field(default_factory=JointProperties)
    mimic: Mimic | None = None
    offset: np.ndarray = field(default_factory=lambda: np.eye(4))
    added_mass: np.ndarray | None = None
    visuals: tuple[LinkShape, ...] = ()
    collisions: tuple[LinkShape, ...] = ()

    def __post_init__(self) -> None:
        where = f"joint {self.joint_name!r}"
        self._check_kind("inertia", self.inertia, SpatialInertia, "SpatialInertia.point_mass(…)")
        self._check_kind("properties", self.properties, JointProperties, "JointProperties(…)")
        self._check_kind("mimic", self.mimic, Mimic, "Mimic(joint, …)")
        self.filled  # noqa: B018  refuses what does not fit the joint
        if self.properties.rest is not None:
            rest = as_position(f"{where}: rest", self.properties.rest, self.joint.group)
            checked = replace(self.properties, rest=tuple(rest.tolist()))
            object.__setattr__(self, "properties", checked)

    @cached_property
    def filled(self) -> JointProperties:
        """Properties with one number for each degree of freedom."""
        return self.properties.filled(self.joint.dim, f"joint {self.joint_name!r}")

    @property
    def moves_alone(self) -> bool:
        """Whether the joint has coordinates of its own."""
        return not self.joint.is_fixed and self.mimic is None

    def numbers_of(self, key: str) -> list[str]:
        """Names of a joint property's numbers: with an index where there are several."""
        dim, base = self.joint.dim, f"{self.joint_name}.{key}"
        return [base] if dim == 1 else [f"{base}.{i}" for i in range(dim)]

    def _check_kind(self, key: str, value: Any, kind: type, example: str) -> None:
        if value is None and key != "properties" or isinstance(value, kind):
            return
        raise TypeError(
            f"link {self.name!r}: {key} must be a {kind.__name__}, for example {example}, not "
            f"{value!r} of type {type(value).__name__}"
        )


@dataclass(frozen=True, eq=False)
class AddedFrame:
    """A named frame on a link, besides the link's own and its joint's.

    Parameters
    ----------
    name : str
    link : str
    placement : ndarray, shape (4, 4)
        T_link_frame.
    """

    name: str
    link: str
    placement: np.ndarray


def make_link(
    name: str,
    inertia: SpatialInertia | None = None,
    joint: str | LieGroup | Joint = "fixed",
    parent: str = WORLD,
    placement: Any = None,
    *,
    joint_name: str | None = None,
    properties: JointProperties | None = None,
    mimic: Mimic | None = None,
    offset: Any = None,
    visuals: tuple[LinkShape, ...] = (),
    collisions: tuple[LinkShape, ...] = (),
    **options: Any,
) -> Link:
    """Link from what `Multibody.add_body` takes."""
    return Link(
        name,
        Joint.of(joint, **options),
        parent,
        as_placement(f"placement of {name!r}", placement),
        inertia,
        joint_name or name,
        properties or JointProperties(),
        mimic,
        as_placement(f"offset of {name!r}", offset),
        visuals=visuals,
        collisions=collisions,
    )
