"""Forces on a rigid body: weight, buoyancy, springs, drag, wrenches that are inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_known, check_shape
from ...systems import Input
from ...systems._internal import FREE_FALL, Role
from .._coefficients import TWIST_AXES, Coefficient, freeze, refuse_negative, set_field


@named_options
@dataclass(frozen=True, eq=False)
class BodyMotion:
    """What a force may depend on: where a body is and how it moves, as CasADi columns.

    Parameters
    ----------
    rotation : CasADi matrix, shape (3, 3)
        Rotation of the body frame: maps body to world axes.
    position : CasADi column, shape (3,)
        Origin of the body frame in the world [m].
    twist : CasADi column, shape (6,)
        Body twist ``[v; ω]``.
    relative_twist : CasADi column, shape (6,)
        Body twist relative to the surrounding fluid.
    mass : CasADi scalar
        Mass of the body [kg], without added mass.
    center_of_mass : CasADi column, shape (3,)
        Centre of mass in the body frame [m].
    """

    rotation: Value
    position: Value
    twist: Value
    relative_twist: Value
    mass: Value
    center_of_mass: Value

    def world_point(self, point: Value) -> Value:
        """Position in the world of a point of the body [m]."""
        return self.position + self.rotation @ point

    def wrench_of_world_force(self, force: Value, point: Value) -> Value:
        """Body wrench of a force in world axes [N] that acts at a point of the body."""
        return wrench_at(self.rotation.T @ force, point)


def wrench_at(force: Value, point: Value) -> Value:
    """Body wrench of a force in body axes [N] that acts at a point of the body."""
    return ca.vertcat(force, ca.skew(point) @ force)


class Force(ABC):
    """A force on a rigid body, as a wrench in the body frame.

    A force of your own is a subclass with a `name` and `_wrench`. A conservative one also has
    `_potential_energy`. Add `inputs` and `coefficients` if it has any. The underscored methods get
    and return CasADi columns.

    Attributes
    ----------
    name : str
        Leads the names of its coefficients' names; differs between forces of a body.

    Examples
    --------
    >>> class Kick(Force):
    ...     name = "kick"
    ...     inputs = (Input("kick", "N"),)
    ...     def _wrench(self, motion, u, c):
    ...         return ca.vertcat(u, ca.DM.zeros(5))
    """

    name: str
    _units: ClassVar[Mapping[str, Any]] = {}  # of fields that are coefficients
    _not_negative: ClassVar[tuple[str, ...]] = ()  # of these fields

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs the force depends on."""
        return ()

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Numbers that may stay symbolic, by name without that of the force.

        The only one may have the name ``""``: the force's own.
        """
        lower = dict.fromkeys(self._not_negative, 0.0)
        return {
            key: Coefficient(np.asarray(getattr(self, key)), unit, lower=lower.get(key, -np.inf))
            for key, unit in self._units.items()
        }

    def _refuse_negative(self) -> None:
        refuse_negative(self, **{key: self._units[key] for key in self._not_negative})

    def _with_coefficients(self, values: Mapping[str, np.ndarray]) -> Force:
        """The force with other numbers, by the keys of `coefficients`: fields of those names."""
        own = {entry.name for entry in fields(self)} if is_dataclass(self) else set()
        for key in values:
            if key not in own:
                raise KeyError(
                    f"force {self.name!r} has no field for {key or 'its coefficient'!r}: keep it "
                    "symbolic, or give _with_coefficients to the force"
                )
        return replace(self, **values)  # type: ignore[type-var]

    @abstractmethod
    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        """Wrench ``[f; m]`` about the body frame's origin and in its axes; c: coefficients."""

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value | None:
        """Potential energy [J], or None if the force has none."""
        return None


@named_options
@dataclass(frozen=True, eq=False)
class Gravity(Force):
    """Weight of the body in a uniform field.

    Parameters
    ----------
    acceleration : array_like, shape (3,)
        Acceleration of free fall in world axes [m/s²].
    name : str
        Name of the force.

    Examples
    --------
    >>> Gravity((0, 0, -1.62)).name
    'gravity'
    """

    acceleration: Any = FREE_FALL
    name: str = "gravity"

    def __post_init__(self) -> None:
        freeze(self, acceleration=(3,))

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """The acceleration."""
        return {"": Coefficient(self.acceleration, "m/s²")}

    def _with_coefficients(self, values: Mapping[str, np.ndarray]) -> Gravity:
        return replace(self, acceleration=values[""])

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        weight = motion.mass * c[""]
        return motion.wrench_of_world_force(weight, motion.center_of_mass)

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value:
        center = motion.world_point(motion.center_of_mass)
        return -motion.mass * ca.dot(c[""], center)


@named_options
@dataclass(frozen=True, eq=False)
class Buoyancy(Force):
    """Lift of a submerged body: the weight of the displaced fluid, upwards at its centre.

    Parameters
    ----------
    volume : float
        Displaced volume [m³].
    center : array_like, shape (3,)
        Centre of buoyancy in the body frame [m].
    density : float
        Density of the fluid [kg/m³].
    acceleration : array_like, shape (3,)
        Acceleration of free fall in world axes [m/s²].
    name : str
        Name of the force.

    Examples
    --------
    >>> Buoyancy.neutral(12.5).volume
    0.0125
    """

    volume: float
    center: Any = (0.0, 0.0, 0.0)
    density: float = 1000.0
    acceleration: Any = FREE_FALL
    name: str = "buoyancy"
    _units = {"volume": "m³", "center": "m", "density": "kg/m³", "acceleration": "m/s²"}
    _not_negative = ("volume", "density")

    def __post_init__(self) -> None:
        freeze(self, volume=(), center=(3,), density=(), acceleration=(3,))
        self._refuse_negative()

    @classmethod
    def neutral(cls, mass: float, **others: Any) -> Buoyancy:
        """Buoyancy that carries a mass.

        Parameters
        ----------
        mass : float
            Mass it carries [kg].
        **others
            Fields of the class other than the volume.
        """
        return cls(volume=mass / others.get("density", cls.density), **others)

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        lift = -c["density"] * c["volume"] * c["acceleration"]
        return motion.wrench_of_world_force(lift, c["center"])

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value:
        displaced = c["density"] * c["volume"]
        return displaced * ca.dot(c["acceleration"], motion.world_point(c["center"]))


Frame = Literal["body", "world"]

WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3


@dataclass(frozen=True, eq=False)
class _ConstantWrench(Force):
    wrench: Any
    point: Any = (0.0, 0.0, 0.0)
    _units = {"wrench": np.array(WRENCH_UNITS), "point": "m"}

    def __post_init__(self) -> None:
        freeze(self, wrench=(6,), point=(3,))


@named_options
@dataclass(frozen=True, eq=False)
class BodyWrench(_ConstantWrench):
    """A constant wrench that turns with the body.

    Parameters
    ----------
    wrench : array_like, shape (6,)
        ``[f; m]`` in body axes [N, N m].
    point : array_like, shape (3,)
        Point of the body where it acts [m].
    name : str
        Name of the force.

    Examples
    --------
    >>> BodyWrench([1, 0, 0, 0, 0, 0]).name
    'body_wrench'
    """

    name: str = "body_wrench"

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return _moved(c["wrench"], c["point"])


@named_options
@dataclass(frozen=True, eq=False)
class WorldWrench(_ConstantWrench):
    """A constant wrench in world axes that acts at a point of the body.

    A force alone has a potential energy; a moment about a fixed axis has none.

    Parameters
    ----------
    wrench : array_like, shape (6,)
        ``[f; m]`` in world axes [N, N m].
    point : array_like, shape (3,)
        Point of the body where it acts [m].
    name : str
        Name of the force.

    Examples
    --------
    >>> WorldWrench([0, 0, -20, 0, 0, 0], point=[0, 0, -1], name="payload").point
    array([ 0.,  0., -1.])
    """

    name: str = "world_wrench"

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return _moved(_to_body(motion, c["wrench"]), c["point"])

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value | None:
        if c["wrench"][3:].nnz():
            return None
        return -ca.dot(c["wrench"][:3], motion.world_point(c["point"]))


@named_options
@dataclass(frozen=True, eq=False)
class WrenchInput(Force):
    """A wrench that is an input: pushes, gusts, what an ideal actuator does.

    Parameters
    ----------
    axes : tuple of str
        Components that are inputs, of x, y, z (forces) and rx, ry, rz (moments).
    frame : {"body", "world"}
        Axes the components are along.
    point : array_like, shape (3,)
        Point of the body where the wrench acts [m].
    role : {"control", "measured", "disturbance", "noise"}
        Role of the inputs.
    lower, upper : float
        Bounds of each input [N, N m].
    name : str
        Name of the force; inputs are called ``name.x``, ….

    Examples
    --------
    >>> WrenchInput(("rx", "rz"), name="torque").inputs[1].name
    'torque.rz'
    """

    axes: tuple[str, ...] = TWIST_AXES
    frame: Frame = "body"
    point: Any = (0.0, 0.0, 0.0)
    role: Role = "control"
    lower: float = -np.inf
    upper: float = np.inf
    name: str = "wrench"
    _units = {"point": "m"}

    def __post_init__(self) -> None:
        if isinstance(self.axes, str):
            raise TypeError(f"WrenchInput: axes must be a tuple of names, got {self.axes!r}")
        check_known("axis", TWIST_AXES, *self.axes, where="WrenchInput")
        if len(set(self.axes)) < len(self.axes):
            raise ValueError(f"WrenchInput: an axis is there twice in {self.axes}")
        check_known("frame", get_args(Frame), self.frame, where="WrenchInput")
        object.__setattr__(self, "axes", tuple(self.axes))
        freeze(self, point=(3,))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """One input per axis."""
        return tuple(
            Input(
                f"{self.name}.{axis}",
                WRENCH_UNITS[TWIST_AXES.index(axis)],
                self.lower,
                self.upper,
                role=self.role,
            )
            for axis in self.axes
        )

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        rows = [u[self.axes.index(a)] if a in self.axes else ca.DM(1, 1) for a in TWIST_AXES]
        wrench = ca.vertcat(*rows)
        return _moved(wrench if self.frame == "body" else _to_body(motion, wrench), c["point"])


@named_options
@dataclass(frozen=True, eq=False)
class Spring(Force):
    """A spring between a point of the world and a point of the body.

    Parameters
    ----------
    stiffness : float
        Stiffness [N/m].
    anchor : array_like, shape (3,)
        End in the world [m].
    point : array_like, shape (3,)
        End on the body, in the body frame [m].
    rest_length : float
        Length without tension [m].
    name : str
        Name of the force.

    Examples
    --------
    >>> Spring(100.0, anchor=[0, 0, 2], rest_length=0.5).point
    array([0., 0., 0.])
    """

    stiffness: float
    anchor: Any = (0.0, 0.0, 0.0)
    point: Any = (0.0, 0.0, 0.0)
    rest_length: float = 0.0
    name: str = "spring"
    _units = {"stiffness": "N/m", "anchor": "m", "point": "m", "rest_length": "m"}
    _not_negative = ("stiffness", "rest_length")

    def __post_init__(self) -> None:
        freeze(self, stiffness=(), anchor=(3,), point=(3,), rest_length=())
        self._refuse_negative()

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        vector = motion.world_point(c["point"]) - c["anchor"]
        length, is_positive = _length(vector)
        # Without a length there is no direction, so no force of the rest length either.
        ratio = c["rest_length"] / ca.if_else(is_positive, length, 1.0)
        tension = c["stiffness"] * (vector - ca.if_else(is_positive, ratio, 0.0) * vector)
        return motion.wrench_of_world_force(-tension, c["point"])

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value:
        length, _ = _length(motion.world_point(c["point"]) - c["anchor"])
        return c["stiffness"] * (length - c["rest_length"]) ** 2 / 2


def _moved(wrench: Value, point: Value) -> Value:
    """Body wrench about the origin of one given at a point, both in body axes."""
    return wrench_at(wrench[:3], point) + ca.vertcat(ca.DM(3, 1), wrench[3:])


def _to_body(motion: BodyMotion, wrench: Value) -> Value:
    """Wrench in body axes of one in world axes, about the same point."""
    back = motion.rotation.T
    return ca.vertcat(back @ wrench[:3], back @ wrench[3:])


def _length(vector: Value) -> tuple[Value, Value]:
    """Length of a vector with finite derivatives at zero, and whether it is positive."""
    square = ca.sumsqr(vector)
    is_positive = square > 0
    return ca.if_else(is_positive, ca.sqrt(ca.if_else(is_positive, square, 1.0)), 0.0), is_positive


def _damping_units(time: str) -> np.ndarray:
    """Units of a damping matrix: force or moment over a power of velocity or rate."""
    power = time[1:]
    linear, angular = f"{time}/m{power}", f"{time}/rad{power}"
    row = [f"N {linear}"] * 3 + [f"N {angular}"] * 3
    return np.array([row] * 3 + [[unit.replace("N ", "N m ", 1) for unit in row]] * 3)


# Relative to the largest entry: damping matrices printed with nine digits.
DAMPING_TOLERANCE = 1e-9


@named_options
@dataclass(frozen=True, eq=False)
class LinearDrag(Force):
    """``W = −D V_r``: drag linear in the twist relative to the fluid.

    Parameters
    ----------
    damping : array_like, shape (6,) or (6, 6)
        Damping D along ``[v; ω]``, or its diagonal; N s/m and N m s/rad.
    name : str
        Name of the force.

    Raises
    ------
    ValueError
        If D would feed energy into the body.

    Examples
    --------
    >>> LinearDrag([5, 5, 5, 1, 1, 1]).damping.shape
    (6, 6)
    """

    damping: Any
    name: str = "linear_drag"
    _units = {"damping": _damping_units("s")}

    def __post_init__(self) -> None:
        D = _damping(self)
        weakest = float(np.linalg.eigvalsh(D + D.T)[0]) / 2
        if weakest < -DAMPING_TOLERANCE * np.abs(D).max():
            raise ValueError(
                "LinearDrag: damping feeds energy in: the smallest eigenvalue of its symmetric "
                f"part is {weakest:.3g}; give drag with positive sign (W = −D V)"
            )

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return -(c["damping"] @ motion.relative_twist)


@named_options
@dataclass(frozen=True, eq=False)
class QuadraticDrag(Force):
    """``W = −D (|V_r| ∘ V_r)``: drag quadratic in each component of the relative twist.

    Twice differentiable in code at standstill: value, gradient and Hessian are finite there.

    Parameters
    ----------
    damping : array_like, shape (6,) or (6, 6)
        Damping D along ``[v; ω]``, or its diagonal; N s²/m² and N m s²/rad².
    name : str
        Name of the force.

    Raises
    ------
    ValueError
        If an entry of the diagonal is negative.

    Examples
    --------
    >>> QuadraticDrag([18.2, 21.7, 36.9, 1.6, 1.6, 1.6]).name
    'quadratic_drag'
    """

    damping: Any
    name: str = "quadratic_drag"
    _units = {"damping": _damping_units("s²")}
    _not_negative = ("damping",)

    def __post_init__(self) -> None:
        D = _damping(self)
        if (np.diag(D) < 0).any():
            raise ValueError(
                f"QuadraticDrag: damping has the negative diagonal entry {np.diag(D).min():.3g}; "
                "give drag with positive sign (W = −D |V| V)"
            )

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        V = motion.relative_twist
        return -(c["damping"] @ (ca.fabs(V) * V))


def _damping(force: Any) -> np.ndarray:
    """Check the damping and keep it as a matrix."""
    label = f"{type(force).__name__}: damping"
    given = np.asarray(force.damping)
    is_diagonal = given.ndim == 1
    D = np.diag(check_shape(label, given, (6,))) if is_diagonal else given
    set_field(force, "damping", check_shape(label, D, (6, 6)))
    return force.damping
