"""What a tree is made of: links, each with the joint that carries it, and kinds of joints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import Value, named_options
from ....codegen._internal import (
    UnknownNameError,
    ask_degrees,
    check_shape,
    in_degrees,
    unknown_name,
)
from ....groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    LieGroup,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
    check_element,
)
from ....io._internal import LARGEST_MULTIPLIER
from ....scene import BodyShape
from ....scene._internal import MeshFile
from ...inertia._inertia import SpatialInertia
from .._spatial import Pose, constant, twist_cross

PLACEMENT_ROUNDING = 1e-12  # what products of a few rotation matrices in doubles leave


def as_placement(name: str, value: Any) -> np.ndarray:
    """Homogeneous matrix of a placement, shape (4, 4), not writable.

    From SE3 coordinates, a homogeneous matrix, or a position [m]; None is the identity. Coordinates
    and matrices with missing digits are taken: see `check_element` and `LieGroup.from_matrix`.
    """
    if value is None:
        return IDENTITY
    array = check_shape(name, value, (), batch=True)
    if array.shape == (3,):
        return freeze(SE3.homogeneous(SE3.from_position(array)))
    if array.shape == (7,):
        return freeze(SE3.homogeneous(SE3.normalize(check_element(name, array, SE3))))
    if array.shape == (4, 4):
        try:
            repaired = SE3.homogeneous(SE3.from_matrix(array))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        # Exact zeros and ones of a matrix that needs no repair make sparse expressions.
        is_exact = np.abs(repaired - array).max() < PLACEMENT_ROUNDING
        return freeze(array.copy() if is_exact else repaired)
    raise ValueError(
        f"{name} has shape {array.shape}, expected SE3 coordinates (7,), a homogeneous "
        "matrix (4, 4) or a position (3,)"
    )


def as_position(name: str, value: Any, group: LieGroup) -> np.ndarray:
    """Coordinates of a joint's group, shape (nq,); where there is one, a plain number will do."""
    found = check_element(name, [value] if np.ndim(value) == 0 else value, group)
    for entry, unit in zip(found, group.coordinate_units, strict=True):
        if unit == "rad" and in_degrees(entry):
            ask_degrees(name, float(entry))
    return found


def freeze(array: np.ndarray) -> np.ndarray:
    """The array, not writable from now on."""
    array.flags.writeable = False
    return array


IDENTITY = freeze(np.eye(4))
"""No motion."""


Axis = Any
"""Three numbers, or one of "x", "y", "z", "-x", "-y", "-z"."""


def _universal(axis: Axis, axis2: Axis) -> Joint:
    return Joint.chain([Helical(0.0).about(axis), Helical(0.0).about(axis2)])


# A subgroup of SE(3) becomes a joint by its line here (or by being passed to `Joint.of`).
_KINDS: dict[str, Callable[..., Any]] = {
    "fixed": lambda: Joint(()),
    "revolute": lambda axis="z": Helical(0.0).about(axis),
    "continuous": lambda axis="z": SO2.about(axis),
    "prismatic": lambda axis="z": Translation("z").about(axis),
    "helical": lambda pitch, axis="z": Helical(pitch).about(axis),
    "cylindrical": lambda axis="z": Cylindrical.about(axis),
    "planar": lambda axis="z": SE2.about(axis),
    "planar_helical": lambda pitch, axis="z": PlanarHelical(pitch).about(axis),
    "spherical": lambda: SO3,
    "translation": lambda: Translation("xyz"),
    "schoenflies": lambda axis="z": Schoenflies.about(axis),
    "free": lambda: SE3,
    "universal": lambda axis="x", axis2="y": _universal(axis, axis2),
    "spherical_zyx": lambda: Joint.chain([Helical(0.0).about(a) for a in "zyx"]),
}

# Names of kinds in URDF, MJCF and SDFormat.
_NAMES_ELSEWHERE = {
    "floating": "free",
    "freejoint": "free",
    "hinge": "revolute",
    "slide": "prismatic",
    "slider": "prismatic",
    "screw": "helical",
    "ball": "spherical",
}


@named_options
@dataclass(frozen=True, eq=False)
class Joint:
    """A joint: how a child moves on its parent, as a chain of motions of subgroups of SE(3).

    Most joints are one subgroup, whose motion subspace is constant. Universal and composite joints
    chain several, the next one mounted on the last with a placement between. Their motion subspace
    depends on the coordinates. Every algorithm walks through the chain and so treats that exactly.

    Parameters
    ----------
    steps : tuple of (ndarray of shape (4, 4), LieGroup)
        Placement before each motion, and its group. `Joint.of` and `Joint.chain` make them.

    Attributes
    ----------
    group : LieGroup
        Coordinates and tangent vectors of the joint: the group itself, or the Product of the
        chain's.
    dim, nq : int
        Degrees of freedom and number of coordinates.

    Examples
    --------
    >>> elbow = Joint.of("revolute", axis="y")
    >>> elbow
    Joint(revolute about y)
    >>> elbow.motion_subspace([0.3]).ravel()
    array([0., 0., 0., 0., 1., 0.])
    >>> Joint.of("universal", axis="x", axis2="y").group
    Product(0=Helical(0).about((1, 0, 0)), 1=Helical(0).about((0, 1, 0)))
    """

    steps: tuple[tuple[np.ndarray, LieGroup], ...]

    @classmethod
    def of(cls, kind: str | LieGroup | Joint, **options: Any) -> Joint:
        """Joint by the name of its kind, or from a group.

        Parameters
        ----------
        kind : str, LieGroup or Joint
            "fixed", "revolute" (one unwrapped angle), "continuous" ([cos, sin]), "prismatic",
            "helical", "cylindrical", "planar", "planar_helical", "spherical", "translation",
            "schoenflies", "free", "universal", "spherical_zyx"; or any group of body motions.
        **options
            ``axis`` (three numbers or "x", "-y", …) where the kind has one, default z; ``pitch``
            [m/rad] of helical kinds; ``axis2`` of a universal joint.

        Raises
        ------
        ValueError
            If the kind is unknown (the message lists them).
        TypeError
            If an option does not belong to the kind, or the group has no embedding in SE(3).
        """
        if isinstance(kind, str):
            if kind not in _KINDS:
                elsewhere = _NAMES_ELSEWHERE.get(kind)
                hint = f" {kind!r} is called {elsewhere!r} here." if elsewhere else ""
                raise UnknownNameError(unknown_name("kind of joint", kind, _KINDS) + hint)
            try:
                made = _KINDS[kind](**options)
            except TypeError as error:
                taken = _KINDS[kind].__code__.co_varnames
                wrong = [unknown_name("option", key, taken) for key in options if key not in taken]
                text = (
                    wrong[0]
                    if wrong
                    else f"it takes {', '.join(taken)}; {str(error).replace('<lambda>() ', '')}"
                )
                raise TypeError(f"a {kind} joint: {text}") from None
            return made if isinstance(made, Joint) else cls.chain([made])
        if options:
            raise TypeError(
                f"{', '.join(options)}: options go with the name of a kind; "
                f"give {kind} its axis with .about(axis)"
            )
        return kind if isinstance(kind, Joint) else cls.chain([kind])

    @classmethod
    def chain(cls, parts: Iterable[LieGroup | Joint | tuple[Any, LieGroup | Joint]]) -> Joint:
        """Composite joint: motions one after the other.

        Parameters
        ----------
        parts : iterable
            Groups or joints, each alone or as ``(placement, motion)``: the placement (SE3
            coordinates, a homogeneous matrix or a position [m]) acts before the motion.

        Examples
        --------
        >>> from lgcontrol.groups import SO2, Translation
        >>> Joint.chain([Translation("z"), ([0, 0, 0.1], SO2)]).dim
        2
        """
        steps: list[tuple[np.ndarray, LieGroup]] = []
        for part in parts:
            placement, motion = part if isinstance(part, tuple) else (None, part)
            before = as_placement("placement of a joint's part", placement)
            if isinstance(motion, Joint):
                inner = motion.steps
            elif isinstance(motion, LieGroup):
                motion.selection  # noqa: B018  refuses groups that move no body
                inner = ((np.eye(4), motion),)
            else:
                raise TypeError(f"a joint is made of groups or joints, not {motion!r}")
            for first, (own, group) in enumerate(inner):
                steps.append((freeze(before @ own if first == 0 else own), group))
        return cls(tuple(steps))

    @property
    def group(self) -> LieGroup:
        """Group of the coordinates."""
        if not self.steps:
            return Rn(0)
        return self.steps[0][1] if len(self.steps) == 1 else Product(*(g for _, g in self.steps))

    @property
    def dim(self) -> int:
        """Degrees of freedom."""
        return sum(group.dim for _, group in self.steps)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(group.nq for _, group in self.steps)

    @property
    def is_fixed(self) -> bool:
        """Whether the joint does not move."""
        return not self.steps

    def transform(self, q: Value) -> Value:
        """Homogeneous matrix T_joint_child(q), shape (4, 4)."""
        symbolic, q = _columns(q)
        T = Pose.identity()
        for motion in self._motions(q):
            T = T @ motion
        T = ca.densify(ca.blockcat([[T.R, T.p], [ca.DM(1, 3), ca.DM(1)]]))
        return T if symbolic else np.array(ca.evalf(T))

    def motion_subspace(self, q: Value) -> Value:
        """Matrix S with child twist ``V = S v`` in the child's frame, shape (6, dim)."""
        symbolic, q = _columns(q)
        S = ca.densify(self._subspace(q, None)[0])
        return S if symbolic else np.array(ca.evalf(S))

    def motion_subspace_rate(self, q: Value, v: Value) -> Value:
        """Rate of `motion_subspace` at the velocity v, shape (6, dim); zero for single groups."""
        symbolic, q = _columns(q)
        also, v = _columns(v)
        rate = ca.densify(self._subspace(q, v)[1])
        return rate if symbolic or also else np.array(ca.evalf(rate))

    def _motions(self, q: Value) -> list[Pose]:
        motions, start = [], 0
        for placement, group in self.steps:
            motions.append(
                Pose.from_matrix(placement) @ Pose.of(group, q[start : start + group.nq])
            )
            start += group.nq
        return motions

    def _subspace(self, q: Value, v: Value | None) -> tuple[Value, Value]:
        S, rate, start = ca.DM(6, 0), ca.DM(6, 0), 0
        for motion, (_, group) in zip(self._motions(q), self.steps, strict=True):
            H = constant(group.selection)
            S, rate = motion.pull(S), motion.pull(rate)
            if v is not None:
                # Ad⁻¹ of a motion with body velocity V changes at the rate −ad_V Ad⁻¹.
                rate = rate - twist_cross(H @ v[start : start + group.dim], S)
            S, rate = ca.horzcat(S, H), ca.horzcat(rate, ca.DM(6, group.dim))
            start += group.dim
        return S, rate

    def __repr__(self) -> str:
        """Kind and axis, those of each part of a chain."""
        return f"Joint({name_of_steps(self.steps)})"


def _columns(value: Value) -> tuple[bool, Value]:
    symbolic = isinstance(value, ca.SX | ca.MX | ca.DM)
    return symbolic, value if symbolic else ca.DM(np.asarray(value, dtype=float))


# Axes that agree to this many digits have one name.
_SAME_AXIS = 1e-12


_ABOUT_AN_AXIS = {
    type(SO2): "continuous",
    type(SE2): "planar",
    type(Cylindrical): "cylindrical",
    type(Schoenflies): "schoenflies",
}


_WITHOUT_AXIS = {SO3: "spherical", SE3: "free", Translation("xyz"): "translation"}


def name_of_steps(steps: Sequence[tuple[np.ndarray, LieGroup]]) -> str:
    """Kind and axis of a joint; for a chain those of its parts."""
    if not steps:
        return "fixed"
    at_once = all(np.array_equal(placement, np.eye(4)) for placement, _ in steps)
    axes = [
        name_of_axis(group.axis)
        for _, group in steps
        if isinstance(group, Helical) and group.pitch == 0
    ]
    if at_once and len(steps) == len(axes) == 2:
        return f"universal about {axes[0]} and {axes[1]}"
    if at_once and len(steps) == 3 and axes == ["z", "y", "x"]:
        return "spherical_zyx"
    return ", then ".join(name_of_group(group) for _, group in steps)


def name_of_group(group: LieGroup) -> str:
    """Kind and axis of a joint that moves on a group; the group's own name if it has no kind.

    Examples
    --------
    >>> from lgcontrol.groups import Helical
    >>> name_of_group(Helical(0.0).about([0, 1, 0]))
    'revolute about y'
    """
    if group in _WITHOUT_AXIS:
        return _WITHOUT_AXIS[group]
    axis = name_of_axis(getattr(group, "axis", (0.0, 0.0, 1.0)))
    if isinstance(group, Helical | PlanarHelical):
        kind = "helical" if isinstance(group, Helical) else "planar_helical"
        if kind == "helical" and group.pitch == 0:
            return f"revolute about {axis}"
        return f"{kind} about {axis}, {group.pitch:g} m/rad"
    if isinstance(group, Translation) and group.axes == "z":
        return f"prismatic along {axis}"
    kind = _ABOUT_AN_AXIS.get(type(group))
    return str(group) if kind is None else f"{kind} about {axis}"


def name_of_axis(axis: Sequence[float]) -> str:
    """A letter with its sign where there is one, else three numbers."""
    for i, letter in enumerate("xyz"):
        for sign, text in ((1.0, letter), (-1.0, f"-{letter}")):
            if np.abs(np.asarray(axis) - sign * np.eye(3)[i]).max() < _SAME_AXIS:
                return text
    return f"({', '.join(f'{entry:.4g}' for entry in axis)})"


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
    """A shape of a link, with the file of its mesh if that is read when it is drawn."""

    shape: BodyShape  # its geometry stands for the mesh until that is read
    file: MeshFile | None = None


@named_options(own="inertia properties mimic")
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
    """A named frame on a link, placed by T_link_frame, besides the link's own and its joint's."""

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
