"""Joints: chains of subgroups of SE(3), each with a constant motion subspace; placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import Value
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
from .._spatial import Pose, constant, twist_cross

PLACEMENT_ROUNDING = 1e-12  # what products of a few rotation matrices in doubles leave


def as_placement(name: str, value: Any) -> np.ndarray:
    """Homogeneous matrix of a placement, shape (4, 4), not writable.

    Parameters
    ----------
    name : str
        What the value is, for messages.
    value : None, array_like of shape (7,), (4, 4) or (3,)
        SE3 coordinates, a homogeneous matrix, or a position [m]; None is the identity.

    Raises
    ------
    ValueError
        If the shape is wrong, an entry is not finite or the matrix is no rotation. Coordinates and
        matrices with missing digits are taken: see `check_element` and `LieGroup.from_matrix`.
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

        Returns
        -------
        Joint

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
                raise TypeError(
                    f"a {kind} joint takes {', '.join(taken) or 'no options'}; {error}"
                ) from None
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

        Returns
        -------
        Joint

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
