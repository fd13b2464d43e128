"""Forces between markers: springs, dampers, bushings, friction, own laws; motors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_known, check_shape
from ...groups import SO3
from ...systems import Input
from ...systems._internal import check_name
from .._coefficients import TWIST_AXES, Coefficient
from ._basic import GROUND, Frames, frame_of
from ._expression import recorded
from ._joints import AXIS_DIRECTIONS, JointCoordinate, Marker, passing_velocity, placed, turn_rate

Law = Callable[[Value, Value], Value]
# Distance of points below which a line between them has no direction [m].
COINCIDE = 1e-9


@named_options(own="i j")
@dataclass(frozen=True, eq=False)
class MarkerForce:
    """Efforts e against speeds w of two bodies: the generalized force is ``−(∂w/∂v)ᵀ e(s, w)``.

    `spring_damper`, `torsion_spring`, `bushing` and `joint_friction` make them.

    Parameters
    ----------
    name : str
    i, j : Marker
    displacement : callable
        ``frames → s`` on CasADi values, a column.
    speeds : callable
        ``(frames, rates) → w``, linear in the rates.
    effort : callable
        ``(s, w, c) → e`` with coefficients by name; positive against the speeds.
    energy : callable or None
        ``(s, c) → V`` [J] of the part that does not depend on speeds, where it is known.
    units : tuple of str
        Of e.
    coefficients : mapping of str to Coefficient
        Numbers that may be parameters, "NAME.stiffness".
    is_direct : bool
        Whether s is a distance, which must not vanish.
    """

    name: str
    i: Marker
    j: Marker
    displacement: Callable[[Frames], Any]
    speeds: Callable[[Frames, Frames], Any]
    effort: Callable[[Value, Value, Mapping[str, Value]], Any]
    energy: Callable[[Value, Mapping[str, Value]], Any] | None
    units: tuple[str, ...]
    coefficients: Mapping[str, Coefficient] = field(default_factory=dict)
    is_direct: bool = False
    recipe: tuple[str, Mapping[str, Any]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_name("force", self.name)
        for marker in (self.i, self.j):
            if not isinstance(marker, Marker):
                raise TypeError(
                    f"force {self.name!r} acts between markers such as Marker('ground'), not "
                    f"{marker!r}"
                )
        if self.i.body == self.j.body:
            raise ValueError(
                f"force {self.name!r} acts between {self.i.body!r} and itself, on no body"
            )

    @property
    def bodies(self) -> tuple[str, str]:
        """Names of the bodies, the ground among them."""
        return self.i.body, self.j.body

    def with_coefficients(self, values: Mapping[str, np.ndarray]) -> MarkerForce:
        """The same with other numbers."""
        if not values:
            return self
        new = {
            key: replace(own, value=np.asarray(values.get(key, own.value)))
            for key, own in self.coefficients.items()
        }
        made = replace(self, coefficients=new)
        if self.recipe is not None:
            object.__setattr__(made, "recipe", (self.recipe[0], {**self.recipe[1], **values}))
        return made

    def own(self, c: Mapping[str, Value]) -> dict[str, Value]:
        """Its coefficients among those of the mechanism."""
        return {key: c[f"{self.name}.{key}"] for key in self.coefficients}


@recorded
@named_options(own="i j force torque coordinate")
def spring_damper(
    name: str,
    i: Marker,
    j: Marker,
    *,
    length: float = 0.0,
    stiffness: float = 0.0,
    damping: float = 0.0,
    force: Law | None = None,
) -> MarkerForce:
    """Pull along the line of two points: ``k (l − l₀) + d l̇``, or a function of both.

    Parameters
    ----------
    name : str
    i, j : Marker
        Their axes do not matter.
    length : float
        l₀ [m]; 0 for a spring that pulls its points together, regular where they coincide.
    stiffness, damping : float
        In N/m and N s/m, not negative.
    force : callable, optional
        ``(l, l̇) → pull`` [N] on CasADi values, in place of these numbers.

    Examples
    --------
    >>> strut = spring_damper("strut", Marker("ground"), Marker("wheel"), length=0.3, stiffness=2e4)
    >>> strut.bodies
    ('ground', 'wheel')
    """
    rest = _not_negative(name, "length", length)
    numbers = _numbers(name, stiffness, damping, force, ("N/m", "N s/m"), length=rest)

    def between(frames: Frames) -> Any:
        return placed(j, frames) - placed(i, frames)

    def speed(frames: Frames, rates: Frames) -> Any:
        d = between(frames)
        own = _point_rate(j, frames, rates) - _point_rate(i, frames, rates)
        return own if is_vector else ca.dot(d, own) / ca.sqrt(ca.dot(d, d))

    def displacement(frames: Frames) -> Any:
        d = between(frames)
        return d if is_vector else ca.sqrt(ca.dot(d, d))

    is_vector = force is None and rest == 0.0
    lengths = {} if is_vector or force else {"length": Coefficient(np.array(rest), "m", lower=0.0)}
    return MarkerForce(
        name,
        i,
        j,
        displacement,
        speed,
        *_linear_law(force, rest="length" if lengths else None),
        units=("N",) * (3 if is_vector else 1),
        coefficients=numbers | lengths,
        is_direct=not is_vector,
    )


@recorded
@named_options(own="i j force torque coordinate")
def torsion_spring(
    name: str,
    i: Marker,
    j: Marker,
    *,
    angle: float = 0.0,
    stiffness: float = 0.0,
    damping: float = 0.0,
    torque: Law | None = None,
) -> MarkerForce:
    """Torque about the common z of two markers: ``k (θ − θ₀) + d θ̇``, or a function of both.

    The angle counts from x of i to x of j, the shorter way from θ₀: within half a turn of it.

    Parameters
    ----------
    name : str
    i, j : Marker
        Of a joint about z.
    angle : float
        θ₀ [rad].
    stiffness, damping : float
        In N m/rad and N m s/rad, not negative.
    torque : callable, optional
        ``(θ − θ₀, θ̇) → torque`` [N m] on CasADi values, against the turn, in place of these.
    """
    rest = float(check_shape(f"force {name!r}: angle", angle, ()))
    turn = JointCoordinate("rz", i, j)
    units = ("N m/rad", "N m s/rad")
    return MarkerForce(
        name,
        i,
        j,
        lambda frames: turn.off(rest, frames),
        lambda frames, rates: turn.rate.value(0.0, frames, rates),
        *_linear_law(torque),
        units=("N m",),
        coefficients=_numbers(name, stiffness, damping, torque, units),
    )


@recorded
@named_options(own="i j force torque coordinate")
def bushing(name: str, i: Marker, j: Marker, *, stiffness: Any, damping: Any = 0.0) -> MarkerForce:
    """Six springs and dampers between two markers, in the axes of i.

    Displacements are the point of j seen from i [m], then the rotation vector θ from i to j [rad].
    The springs have the energy ``½ sᵀ K s`` of the displacements s. So the elastic moment on i is
    ``J⁻ᵀ K θ`` with the left Jacobian J of SO(3) at θ; for three equal stiffnesses it is ``K θ``.

    Parameters
    ----------
    name : str
    i, j : Marker
        They coincide where nothing is displaced.
    stiffness, damping : array_like, shape (6,)
        Along x, y, z [N/m, N s/m], then about them [N m/rad, N m s/rad]; not negative.
    """

    def displacement(frames: Frames) -> Any:
        (_, A), (_, B) = frame_of(frames, i.body), frame_of(frames, j.body)
        R = A @ ca.DM(i.axes)
        seen = R.T @ (placed(j, frames) - placed(i, frames))
        turn = R.T @ B @ ca.DM(j.axes)
        return ca.vertcat(seen, SO3.log(SO3.from_matrix(turn)))

    def speeds(frames: Frames, rates: Frames) -> Any:
        R = frame_of(frames, i.body)[1] @ ca.DM(i.axes)
        passing = passing_velocity(i.body, j.body, placed(j, frames), frames, rates)
        return ca.vertcat(
            R.T @ passing, *(turn_rate(i, j, i, axis, frames, rates) for axis in AXIS_DIRECTIONS)
        )

    coefficients = {}
    for key, value, unit in (
        ("stiffness", stiffness, ("N/m", "N m/rad")),
        ("damping", damping, ("N s/m", "N m s/rad")),
    ):
        given = (
            np.broadcast_to(np.asarray(value, dtype=float), (6,)) if np.ndim(value) == 0 else value
        )
        numbers = check_shape(f"force {name!r}: {key}", given, (6,))
        _refuse_negative(name, key, numbers)
        units = np.array([unit[0]] * 3 + [unit[1]] * 3)
        coefficients[key] = Coefficient(numbers, units, labels=TWIST_AXES, lower=0.0)
    _, energy = _linear_law(None)

    def effort(s: Value, w: Value, c: Mapping[str, Value]) -> Any:
        elastic = c["stiffness"] * s
        turned = SO3.left_jacobian_inverse(s[3:]).T @ elastic[3:]
        return ca.vertcat(elastic[:3], turned) + c["damping"] * w

    units = ("N",) * 3 + ("N m",) * 3
    return MarkerForce(name, i, j, displacement, speeds, effort, energy, units, coefficients)


@recorded
@named_options(own="i j force torque coordinate")
def joint_friction(
    name: str,
    i: Marker,
    j: Marker,
    *,
    coordinate: str = "rz",
    coulomb: float = 0.0,
    damping: float = 0.0,
    width: float = 0.05,
) -> MarkerForce:
    """Friction of a joint: ``c tanh(w / w₀) + d w`` against the speed w of its coordinate.

    Parameters
    ----------
    name : str
    i, j : Marker
        Of the joint.
    coordinate : str
        "rz" for a turn about z, "x", "y" or "z" for a slide along an axis of i.
    coulomb, damping : float
        c [N m or N] and d [N m s/rad or N s/m], not negative.
    width : float
        w₀ [rad/s or m/s], positive: friction is smooth below.
    """
    check_known("coordinate", ("rz", *AXIS_DIRECTIONS), coordinate)
    small = float(check_shape(f"force {name!r}: width", width, ()))
    if not small > 0:
        raise ValueError(f"force {name!r}: the width must be positive, got {width}")
    rate, unit = JointCoordinate(coordinate, i, j).rate, "N m" if coordinate == "rz" else "N"
    values = (("coulomb", coulomb, unit), ("damping", damping, f"{unit} s"))
    coefficients = {
        key: Coefficient(np.array(_not_negative(name, key, value)), u, lower=0.0)
        for key, value, u in values
    }

    def effort(s: Value, w: Value, c: Mapping[str, Value]) -> Any:
        return c["coulomb"] * ca.tanh(w / small) + c["damping"] * w

    return MarkerForce(
        name,
        i,
        j,
        lambda frames: ca.DM(0, 1),
        lambda frames, rates: rate.value(0.0, frames, rates),
        effort,
        lambda s, c: 0.0,
        (unit,),
        coefficients,
    )


def _linear_law(
    law: Law | None, rest: str | None = None
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Effort and energy of a function, or of a spring and damper."""
    if law is not None:
        return lambda s, w, c: law(s, w), None

    def stretched(s: Value, c: Mapping[str, Value]) -> Any:
        return s if rest is None else s - c[rest]

    def effort(s: Value, w: Value, c: Mapping[str, Value]) -> Any:
        return c["stiffness"] * stretched(s, c) + c["damping"] * w

    def energy(s: Value, c: Mapping[str, Value]) -> Any:
        own = stretched(s, c)
        return ca.dot(own, c["stiffness"] * own) / 2

    return effort, energy


def _numbers(
    name: str,
    stiffness: float,
    damping: float,
    law: Law | None,
    units: tuple[str, str],
    **numbers: float,
) -> dict[str, Coefficient]:
    """Stiffness and damping, or nothing where a function takes their place."""
    both = {"stiffness": stiffness, "damping": damping}
    if law is not None:
        given = [key for key, value in {**both, **numbers}.items() if value]
        if not callable(law) or given:
            raise TypeError(
                f"force {name!r}: give a function of displacement and speed, or numbers "
                f"({', '.join(both)}), got {law!r}" + (f" and {', '.join(given)}" if given else "")
            )
        return {}
    return {
        key: Coefficient(np.array(_not_negative(name, key, value)), unit, lower=0.0)
        for (key, value), unit in zip(both.items(), units, strict=True)
    }


def _not_negative(name: str, key: str, value: Any) -> float:
    number = float(check_shape(f"force {name!r}: {key}", value, ()))
    _refuse_negative(name, key, np.array([number]))
    return number


def _refuse_negative(name: str, key: str, values: np.ndarray) -> None:
    if values.min() < 0:
        raise ValueError(f"force {name!r}: {key} must not be negative, got {values.min():g}")


def _point_rate(marker: Marker, frames: Frames, rates: Frames) -> Any:
    """Velocity of the point of a marker in world axes."""
    return passing_velocity(GROUND, marker.body, placed(marker, frames), frames, rates)


@named_options(own="i j kind")
@dataclass(frozen=True, eq=False)
class MechanismMotor:
    """A torque about z of a joint, or a force along it: on j as it is, on i the other way.

    Parameters
    ----------
    name : str
        Of the input.
    i, j : Marker
        Markers of the joint; its axis is z of i.
    kind : {"torque", "force"}
        In N m about the axis, or in N along it, through the point of j.
    lower, upper : float
        Bounds.
    curve : callable, optional
        ``(u, w) → effort`` on CasADi values, if the effort depends on the speed w about or along
        the axis [rad/s or m/s]. A direct-current motor with the voltage u has ``lambda u, w: k *
        (u - k * w) / R``. The effort is u if left out.
    unit : str, optional
        Of u; that of the effort if left out.

    Examples
    --------
    >>> MechanismMotor("drive", Marker("ground"), Marker("crank")).input.unit
    'N m'
    """

    name: str
    i: Marker
    j: Marker
    kind: Literal["torque", "force"] = "torque"
    lower: float = -inf
    upper: float = inf
    curve: Callable[[Value, Value], Value] | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_name("motor", self.name)
        if not (isinstance(self.i, Marker) and isinstance(self.j, Marker)):
            raise TypeError(
                f"motor {self.name!r} acts between markers such as Marker('ground'), not "
                f"{self.i!r} and {self.j!r}"
            )
        if {self.i.body, self.j.body} == {GROUND}:
            raise ValueError(f"motor {self.name!r} acts between the ground and itself, on no body")
        check_known("kind of motor", ("torque", "force"), self.kind)

    @property
    def input(self) -> Input:
        """Input of the System."""
        unit = "N m" if self.kind == "torque" else "N"
        return Input(self.name, unit if self.unit is None else self.unit, self.lower, self.upper)

    def speeds(self, frames: Frames, rates: Frames) -> Any:
        """Speed w [rad/s or m/s] that the motor drives: about or along z of i."""
        if self.kind == "torque":
            return turn_rate(self.i, self.j, self.i, "z", frames, rates)
        passing = passing_velocity(self.i.body, self.j.body, placed(self.j, frames), frames, rates)
        return ca.dot(frame_of(frames, self.i.body)[1] @ ca.DM(self.i.z), passing)

    def effort(self, u: Value, w: Value) -> Any:
        """Torque or force at a speed."""
        return u if self.curve is None else self.curve(u, w)
