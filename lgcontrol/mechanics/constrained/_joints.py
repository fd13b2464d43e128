"""Bodies, and joints: named lists of basic constraints between two markers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from math import gcd
from typing import Any, ParamSpec

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_shape
from ...groups import SE3, check_element
from ...systems._internal import check_name
from .._coefficients import read_only, unit_vector
from ..inertia._inertia import SpatialInertia
from ..surroundings._forces import Force
from ..surroundings._surroundings import check_forces
from ._basic import (
    CD,
    DP1,
    DP2,
    GROUND,
    BasicConstraint,
    Connection,
    D,
    Direction,
    Drive,
    Frames,
    FreeConstraint,
    VelocityConstraint,
    frame_of,
)
from ._expression import motion_of, recorded


@named_options
@dataclass(frozen=True, eq=False)
class MechanismBody:
    """A rigid body whose frame sits at its centre of mass.

    Parameters
    ----------
    name : str
    inertia : SpatialInertia
        With its centre of mass at the origin: points of joints are given from there.
    pose : array_like, shape (7,), optional
        Pose at the start, SE3 coordinates. A rough guess will do (see `Mechanism.assemble`).
    rates : array_like, shape (6,)
        ``[ṙ; ω]`` at the start: ṙ [m/s] in world axes, ω [rad/s] in body axes.
    forces : sequence of Force
        What acts on it besides gravity and joints.

    Examples
    --------
    >>> MechanismBody("door", SpatialInertia.box(20.0, [0.8, 0.04, 2.0])).inertia.mass
    20.0
    """

    name: str
    inertia: SpatialInertia
    pose: Any = tuple(SE3.identity)
    rates: Any = (0.0,) * 6
    forces: Sequence[Force] = ()

    def __post_init__(self) -> None:
        check_name("body", self.name)
        if not self.name.isidentifier() or self.name == GROUND:
            raise ValueError(
                f"body {self.name!r}: the name must be of letters, digits and underscores, and "
                f"{GROUND!r} is the world"
            )
        if not isinstance(self.inertia, SpatialInertia):
            given = type(self.inertia).__name__
            raise TypeError(f"body {self.name!r}: inertia must be a SpatialInertia, not {given}")
        if np.abs(self.inertia.center_of_mass).max() > 0:
            raise ValueError(
                f"body {self.name!r}: its centre of mass is at {self.inertia.center_of_mass} m of "
                "its frame, expected at the origin; give points of joints and the pose from the "
                "centre of mass, and the inertia as SpatialInertia(mass, [0, 0, 0], inertia)"
            )
        pose = check_element(f"pose of body {self.name!r}", self.pose, SE3)
        object.__setattr__(self, "pose", read_only(pose))
        rates = check_shape(f"rates of body {self.name!r}", self.rates, (6,))
        object.__setattr__(self, "rates", read_only(rates))
        object.__setattr__(self, "forces", check_forces(self.name, self.forces))


P = ParamSpec("P")

Row = BasicConstraint | FreeConstraint | VelocityConstraint

AXIS_DIRECTIONS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@named_options
@dataclass(frozen=True, eq=False)
class Marker:
    """A frame on a body, where a joint attaches: a point and three axes, z first.

    Parameters
    ----------
    body : str
        Name of a body, or "ground".
    point : array_like, shape (3,)
        Origin [m] in the body frame.
    z : array_like, shape (3,)
        Axis of the joint, in body axes.
    x : array_like of shape (3,), optional
        Second axis; the part along z does not count. If left out, some direction across z.

    Examples
    --------
    >>> Marker("crank", [0, 0.08, 0], z=[2, 0, 0]).axes.round(12)
    array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 1., 0.]])
    """

    body: str
    point: Any = (0.0, 0.0, 0.0)
    z: Any = (0.0, 0.0, 1.0)
    x: Any = None

    def __post_init__(self) -> None:
        check_name("body", self.body)
        where = f"marker on {self.body!r}"
        point = check_shape(f"{where}: point", self.point, (3,))
        z = unit_vector(f"{where}: z", self.z)
        given = np.roll(np.eye(3)[np.argmax(np.abs(z))], 1) if self.x is None else self.x
        across = check_shape(f"{where}: x", given, (3,))
        across = across - z * (z @ across)
        if np.linalg.norm(across) <= 1e-9 * np.linalg.norm(given):
            raise ValueError(f"{where}: x is along z, expected a direction across it")
        for key, value in (("point", point), ("z", z), ("x", unit_vector(where, across))):
            object.__setattr__(self, key, read_only(value))

    @property
    def y(self) -> np.ndarray:
        """Third axis, ``z × x``."""
        return np.cross(self.z, self.x)

    @property
    def axes(self) -> np.ndarray:
        """x, y, z as columns, shape (3, 3)."""
        return np.column_stack([self.x, self.y, self.z])


@dataclass(frozen=True, eq=False)
class JointCoordinate:
    """What a joint leaves free and has a value: an angle about z, or a place along an axis.

    Parameters
    ----------
    name : str
        "rz": the angle [rad] from x of i to x of j about their common z. "x", "y" or "z": position
        of the point of j along that axis of i, from the point of i [m].
    i, j : Marker
    """

    name: str
    i: Marker
    j: Marker

    @property
    def unit(self) -> str:
        """Of the value."""
        return "rad" if self.name == "rz" else "m"

    @property
    def rate(self) -> VelocityConstraint:
        """Its rate."""
        if self.name == "rz":
            return _turning(self.i, self.j)
        return _sliding(self.name, self.i, self.j)

    def drive(self, motion: Drive) -> BasicConstraint:
        """Equation that gives it a value, or a motion in time; of an angle see `angle_drive`."""
        i, j = self.i, self.j
        if self.name != "rz":
            axis = getattr(i, self.name)
            return DP2("position", i.body, axis, i.point, j.body, j.point, motion)
        x, y = ca.DM(j.x), ca.DM(j.y)

        def turned(t: Value) -> Value:
            f = motion(t) if callable(motion) else motion
            return ca.sin(f) * x + ca.cos(f) * y

        return DP1("angle", i.body, i.x, j.body, turned)

    def off(self, value: float, frames: Frames) -> Any:
        """What it lacks from a value; of an angle the shorter way."""
        if self.name == "rz":
            cos, sin = _turn(self.i, self.j, frames)
            c, s = np.cos(value), np.sin(value)
            return ca.atan2(c * sin - s * cos, c * cos + s * sin)
        return self.drive(value).value(0.0, frames)


@named_options
@dataclass(frozen=True, eq=False)
class MechanismJoint:
    """A named list of equations between bodies.

    Parameters
    ----------
    name : str
        What messages, multipliers and reactions are called after.
    rows : sequence of BasicConstraint, FreeConstraint or VelocityConstraint
        Equations with different names; those on velocities are put last.
    point : tuple of (str, array_like), optional
        Body and point [m] in its axes where the reaction of the joint is reported; the origin of
        its last body if left out.
    degrees_of_freedom : sequence of VelocityConstraint
        Rates that it leaves free, by name: what systems on the manifold take as independent
        coordinates, "hinge.rz" or, of a joint with one alone, "hinge".
    coordinates : sequence of JointCoordinate
        Coordinates of the degrees of freedom with a value, which `Mechanism.drive` and `assemble`
        set.

    Examples
    --------
    >>> hinge = revolute("hinge", Marker("ground"), Marker("door", [0, 0.4, 0]))
    >>> [row.row for row in hinge.rows]
    ['x', 'y', 'z', 'x_z', 'y_z']
    """

    name: str
    rows: Sequence[Row]
    point: tuple[str, Any] | None = None
    degrees_of_freedom: Sequence[VelocityConstraint] = ()
    coordinates: Sequence[JointCoordinate] = ()
    recipe: tuple[str, Mapping[str, Any]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        name, own, valued = self.name, tuple(self.rows), tuple(self.coordinates)
        check_name("joint", name)
        if not name.isidentifier():
            raise ValueError(f"joint {name!r}: the name must be of letters, digits and underscores")
        if not own:
            raise ValueError(f"joint {name!r} has no equations")
        names = {c.name for c in valued}
        left = (
            *(c.rate for c in valued),
            *(free for free in self.degrees_of_freedom if getattr(free, "row", "") not in names),
        )
        own = tuple(sorted(own, key=lambda row: row.kind == "velocity"))
        names = [row.row for row in own]
        twice = sorted({row for row in names if names.count(row) > 1})
        if twice:
            raise ValueError(f"joint {name!r}: two equations are called {', '.join(twice)}")
        for key, value in (("rows", own), ("degrees_of_freedom", left), ("coordinates", valued)):
            object.__setattr__(self, key, value)
        if not set(self.bodies) - {GROUND}:
            raise ValueError(f"joint {name!r} ties the ground to itself, no body")
        for row in own:
            if isinstance(row, BasicConstraint) and row.is_constant:
                raise ValueError(
                    f"joint {name!r} ties {row.w.bodies[0]!r} to itself in {row.row!r}"
                )

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that it ties, the ground among them."""
        return tuple(dict.fromkeys(body for row in self.rows for body in row.bodies))


_MARKED = """
    Parameters
    ----------
    name : str
    i, j : Marker
    """


def _between_markers(make: Callable[P, MechanismJoint]) -> Callable[P, MechanismJoint]:
    """Joint whose second and third arguments are refused where they are no markers.

    Where a docstring has no Parameters it gets those that all joints have.
    """
    kept = recorded(make)
    if "Parameters" not in (make.__doc__ or ""):
        make.__doc__ = f"{make.__doc__}\n{_MARKED}"

    @wraps(make)
    def checked(*values: P.args, **named: P.kwargs) -> MechanismJoint:
        for given in (*values[1:3], *(named[key] for key in ("i", "j") if key in named)):
            if not isinstance(given, Marker):
                name = values[0] if values else named.get("name")
                raise TypeError(
                    f"joint {name!r} attaches to markers such as Marker('ground'), not {given!r}"
                )
        return kept(*values, **named)

    return checked


@_between_markers
def spherical(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """Both points coincide: CD along x, y and z of the world.

    Parameters
    ----------
    name : str
    i, j : Marker
        Their axes do not matter.
    """
    turns = [_turn_rate(f"r{a}", i, j, j, a) for a in AXIS_DIRECTIONS]
    return _joint(name, _same_point(i, j), j, turns)


@_between_markers
def universal(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """Both points coincide, and the z axes stay perpendicular: those of the cross."""
    cross = DP1("z_z", i.body, i.z, j.body, j.z)
    turns = [_turn_rate("rz_i", i, j, i), _turn_rate("rz_j", i, j, j)]
    return _joint(name, [*_same_point(i, j), cross], j, turns)


@_between_markers
def revolute(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """Both points and z axes coincide."""
    return _joint(name, [*_same_point(i, j), *_parallel(i, j)], j, valued=_valued(i, j, "rz"))


@_between_markers
def cylindrical(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """The z axes are one line: turning and sliding are free."""
    rows = [*_parallel(i, j), *_on_line(i, j)]
    return _joint(name, rows, j, valued=_valued(i, j, "z", "rz"))


@_between_markers
def translational(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """The z axes are one line, and the x axes are parallel: sliding is free."""
    rows = [*_parallel(i, j), *_on_line(i, j), _no_turn(i, j)]
    return _joint(name, rows, j, valued=_valued(i, j, "z"))


@_between_markers
def fixed(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """Both markers coincide."""
    return _joint(name, [*_same_point(i, j), *_parallel(i, j), _no_turn(i, j)], j)


@_between_markers
def planar(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """The point of j stays in the x-y plane of i, and the z axes are parallel."""
    height = DP2("height", i.body, i.z, i.point, j.body, j.point)
    return _joint(name, [*_parallel(i, j), height], j, valued=_valued(i, j, "x", "y", "rz"))


@_between_markers
def distance(name: str, i: Marker, j: Marker, length: Drive) -> MechanismJoint:
    """Both points keep a distance, as by a rod without mass with ball ends.

    Parameters
    ----------
    name : str
    i, j : Marker
        Their axes do not matter.
    length : float or callable of t
        In m, not zero.
    """
    if not callable(length) and not length > 0:
        raise ValueError(
            f"joint {name!r}: a length must be positive, got {length} m; points that coincide are "
            "tied by spherical"
        )
    squared: Any = (lambda t: length(t) ** 2) if callable(length) else float(length) ** 2
    return _joint(name, [D("length", i.body, i.point, j.body, j.point, squared)], j)


@_between_markers
def screw(name: str, i: Marker, j: Marker, pitch: float) -> MechanismJoint:
    """The z axes are one line, and j advances along it by the pitch with every radian.

    Both markers coincide at the start of the thread, or a whole number of turns away from it. The
    equation ``pitch · sin(s/pitch − θ)`` is smooth and regular, without a jump of the angle.

    Parameters
    ----------
    name : str
    i, j : Marker
    pitch : float
        In m/rad, not zero; negative for a left-hand thread.
    """
    h = float(pitch)
    if not (np.isfinite(h) and h):
        raise ValueError(
            f"joint {name!r}: the pitch must be a finite number of m/rad other than 0, got {pitch}"
        )

    def thread(t: Value, frames: Frames) -> Value:
        cos, sin = _turn(i, j, frames)
        along = Direction(i.body, i.z).world(t, frames)
        between = Connection(i.body, i.point, j.body, j.point).world(t, frames)
        s = ca.dot(along, between) / h
        return h * (ca.sin(s) * cos - ca.cos(s) * sin)

    rows = [*_parallel(i, j), *_on_line(i, j), FreeConstraint("thread", _two(i, j), thread, "m")]
    return _joint(name, rows, j, valued=_valued(i, j, "rz"))


@recorded
def gear(
    name: str,
    first: tuple[Marker, Marker],
    second: tuple[Marker, Marker],
    teeth: tuple[int, int],
) -> MechanismJoint:
    """``n₁ θ₁ = n₂ θ₂`` of the angles at two axes, for whole numbers of teeth.

    An angle counts from the first marker of a pair to its second one, about z. All x axes meet at
    the start, or whole teeth away. Whole numbers make ``sin(n₁ θ₁ − n₂ θ₂)`` smooth: no jump of
    the angles is in it, however often they turn. The axes themselves are joints of their own.

    Parameters
    ----------
    name : str
    first, second : tuple of Marker
        Markers of the axes, with a common z each; turn a z around for wheels that turn oppositely.
    teeth : tuple of int
        n₁, n₂, not zero; negative for the opposite sense.
    """
    if len(teeth) != 2 or any(not float(n).is_integer() or n == 0 for n in teeth):
        raise ValueError(
            f"joint {name!r}: numbers of teeth must be two, whole and not zero, got {tuple(teeth)}"
        )
    common = gcd(int(teeth[0]), int(teeth[1]))
    n1, n2 = (int(n) // common for n in teeth)
    bodies = tuple(dict.fromkeys(marker.body for pair in (first, second) for marker in pair))

    def mesh(t: Value, frames: Frames) -> Value:
        (c1, s1), (c2, s2) = _turn(*first, frames), _turn(*second, frames)
        return ca.sin(n1 * ca.atan2(s1, c1) - n2 * ca.atan2(s2, c2)) / max(abs(n1), abs(n2))

    return _joint(name, [FreeConstraint("mesh", bodies, mesh)], second[1])


@_between_markers
def angle_drive(
    name: str, i: Marker, j: Marker, angle: Callable[[Any], Any] | float
) -> MechanismJoint:
    """The angle about z from x of i to x of j is f(t): regular in every position.

    ``x_i · (sin f x_j + cos f y_j) = sin(f − θ)`` has the slope −1 at its root for every angle.
    The paper writes drivers as a DP1 between two fixed directions, which is singular twice in a
    turn. The axis itself is a joint of its own.

    Parameters
    ----------
    name : str
    i, j : Marker
        With a common z.
    angle : callable of t, or float
        In rad.
    """
    return _joint(name, [JointCoordinate("rz", i, j).drive(_driven(name, "angle", angle))], j)


@_between_markers
def position_drive(name: str, i: Marker, j: Marker, position: Drive) -> MechanismJoint:
    """The point of j is at f(t) along z of i, measured from the point of i.

    Parameters
    ----------
    name : str
    i, j : Marker
    position : callable of t, or float
        In m.
    """
    return _joint(name, [JointCoordinate("z", i, j).drive(_driven(name, "position", position))], j)


@_between_markers
def rolling_disk(name: str, i: Marker, j: Marker, radius: float) -> MechanismJoint:
    """A thin disk rolls on the x-y plane of i, above it, and does not slip.

    Its lowest point touches the plane, a row on positions; two rows on velocities hold the
    material points in contact together. Singular where the disk lies flat.

    Parameters
    ----------
    name : str
    i : Marker
        Of the plane, z upwards.
    j : Marker
        Centre of the disk, z along its axis.
    radius : float
        In m.

    Examples
    --------
    >>> coin = rolling_disk("contact", Marker("ground"), Marker("coin"), 0.01)
    >>> [row.row for row in coin.rows]
    ['height', 'slip_x', 'slip_y']
    """

    def outward(n: Value, frames: Frames) -> Value:
        """From the centre to the lowest point, over the radius."""
        axis = Direction(j.body, j.z).world(0.0, frames)
        tilt = ca.dot(n, axis)
        return -(n - tilt * axis) / ca.sqrt(1 - tilt**2)

    return _rolling(name, i, j, radius, outward)


@_between_markers
def rolling_sphere(name: str, i: Marker, j: Marker, radius: float) -> MechanismJoint:
    """A ball rolls on the x-y plane of i, above it, and does not slip.

    Parameters
    ----------
    name : str
    i : Marker
        Of the plane, z upwards.
    j : Marker
        Centre of the ball; its axes do not matter.
    radius : float
        In m.
    """
    return _rolling(name, i, j, radius, lambda n, frames: -n)


@_between_markers
def knife_edge(name: str, i: Marker, j: Marker) -> MechanismJoint:
    """The point of j does not move along y of j, as seen from i: a blade along x, a wheel.

    Parameters
    ----------
    name : str
    i, j : Marker
        Only the body of i matters.
    """

    def across(t: Value, frames: Frames, rates: Frames) -> Value:
        point = placed(j, frames)
        blade = Direction(j.body, j.y).world(t, frames)
        return ca.dot(blade, passing_velocity(i.body, j.body, point, frames, rates))

    return _joint(name, [VelocityConstraint("across", _two(i, j), across)], j)


def _rolling(
    name: str, i: Marker, j: Marker, radius: float, outward: Callable[..., Value]
) -> MechanismJoint:
    """Contact of a body with a plane at ``outward(normal, frames)`` times the radius."""
    R = float(check_shape(f"joint {name!r}: radius", radius, ()))
    if not R > 0:
        raise ValueError(f"joint {name!r}: the radius must be positive, got {radius} m")

    def contact(frames: Frames) -> Value:
        n = Direction(i.body, i.z).world(0.0, frames)
        return placed(j, frames) + R * outward(n, frames)

    def height(t: Value, frames: Frames) -> Value:
        n = Direction(i.body, i.z).world(t, frames)
        return ca.dot(n, contact(frames) - placed(i, frames))

    def slip(along: Any) -> Callable[..., Value]:
        def rate(t: Value, frames: Frames, rates: Frames) -> Value:
            passing = passing_velocity(i.body, j.body, contact(frames), frames, rates)
            return ca.dot(Direction(i.body, along).world(t, frames), passing)

        return rate

    bodies = _two(i, j)
    rows = [
        FreeConstraint("height", bodies, height, "m"),
        VelocityConstraint("slip_x", bodies, slip(i.x)),
        VelocityConstraint("slip_y", bodies, slip(i.y)),
    ]
    return _joint(name, rows, j)


def placed(marker: Marker, frames: Frames) -> Value:
    """Origin of a marker in the world."""
    r, A = frame_of(frames, marker.body)
    return r + A @ ca.DM(marker.point)


def passing_velocity(i: str, j: str, point: Value, frames: Frames, rates: Frames) -> Value:
    """Velocity of the material point of j at a place, as seen from that of i, in world axes."""

    def carried(body: str) -> Value:
        (r, A), (v, w) = frame_of(frames, body), rates[body]
        return v + ca.cross(A @ w, point - r)

    return carried(j) - carried(i)


def _joint(
    name: str,
    rows: Sequence[Any],
    j: Marker,
    degrees_of_freedom: Sequence[VelocityConstraint] = (),
    *,
    valued: Sequence[JointCoordinate] = (),
) -> MechanismJoint:
    return MechanismJoint(name, rows, (j.body, j.point), degrees_of_freedom, valued)


def _driven(name: str, key: str, motion: Any) -> Drive:
    """A motion of a drive, or a number."""
    if callable(motion) or isinstance(motion, str):
        return motion_of(f"joint {name!r}", motion, "a number")
    return float(check_shape(f"joint {name!r}: {key}", motion, ()))


def _valued(i: Marker, j: Marker, *names: str) -> list[JointCoordinate]:
    return [JointCoordinate(name, i, j) for name in names]


def _turning(i: Marker, j: Marker) -> VelocityConstraint:
    """Rate of the angle about z, which both bodies have in common: constant in their axes."""

    def rate(t: Value, frames: Frames, rates: Frames) -> Value:
        return ca.dot(ca.DM(j.z), rates[j.body][1]) - ca.dot(ca.DM(i.z), rates[i.body][1])

    return VelocityConstraint("rz", _two(i, j), rate, "rad/s")


def turn_rate(
    i: Marker, j: Marker, about: Marker, axis: str, frames: Frames, rates: Frames
) -> Value:
    """Rate of turn of j, as seen from i, about an axis of a marker."""
    seen = [frame_of(frames, m.body)[1] @ rates[m.body][1] for m in (i, j)]
    along = Direction(about.body, getattr(about, axis)).world(0.0, frames)
    return ca.dot(along, seen[1] - seen[0])


def _turn_rate(name: str, i: Marker, j: Marker, about: Marker, axis: str = "z") -> Any:
    def rate(t: Value, frames: Frames, rates: Frames) -> Value:
        return turn_rate(i, j, about, axis, frames, rates)

    return VelocityConstraint(name, _two(i, j), rate, "rad/s")


def _sliding(axis: str, i: Marker, j: Marker) -> VelocityConstraint:
    """Velocity of the point of j along an axis of i."""

    def rate(t: Value, frames: Frames, rates: Frames) -> Value:
        passing = passing_velocity(i.body, j.body, placed(j, frames), frames, rates)
        return ca.dot(Direction(i.body, getattr(i, axis)).world(t, frames), passing)

    return VelocityConstraint(axis, _two(i, j), rate)


def _same_point(i: Marker, j: Marker) -> list[BasicConstraint]:
    return [CD(axis, c, i.body, i.point, j.body, j.point) for axis, c in AXIS_DIRECTIONS.items()]


def _parallel(i: Marker, j: Marker) -> list[BasicConstraint]:
    """Perpendicular 1 of the paper: z of j is across x and y of i."""
    return [
        DP1("x_z", i.body, i.x, j.body, j.z),
        DP1("y_z", i.body, i.y, j.body, j.z),
    ]


def _on_line(i: Marker, j: Marker) -> list[BasicConstraint]:
    """Perpendicular 2 of the paper: the connection is across x and y of i."""
    return [
        DP2("x", i.body, i.x, i.point, j.body, j.point),
        DP2("y", i.body, i.y, i.point, j.body, j.point),
    ]


def _no_turn(i: Marker, j: Marker) -> BasicConstraint:
    return DP1("x_y", i.body, i.x, j.body, j.y)


def _two(i: Marker, j: Marker) -> tuple[str, ...]:
    return tuple(dict.fromkeys((i.body, j.body)))


def _turn(i: Marker, j: Marker, frames: Frames) -> tuple[Any, Any]:
    """Cosine and sine of the angle about z from x of i to x of j."""
    (_, A_i), (_, A_j) = frame_of(frames, i.body), frame_of(frames, j.body)
    x = A_j @ ca.DM(j.x)
    return ca.dot(A_i @ ca.DM(i.x), x), ca.dot(A_i @ ca.DM(i.y), x)
