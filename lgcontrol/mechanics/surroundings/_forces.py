"""Forces on a rigid body: what a force is, gravity and buoyancy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...systems import Input
from ...systems._internal import FREE_FALL
from .._coefficients import Coefficient
from .._fields import freeze, refuse_negative


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

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs the force depends on."""
        return ()

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Numbers that may stay symbolic, by name without that of the force.

        The only one may have the name ``""``: the force's own.
        """
        return {}

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

    def __post_init__(self) -> None:
        freeze(self, volume=(), center=(3,), density=(), acceleration=(3,))
        refuse_negative(self, volume="m³", density="kg/m³")

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

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Volume, centre, density and acceleration."""
        return {
            "volume": Coefficient(np.array(self.volume), "m³", lower=0.0),
            "center": Coefficient(self.center, "m"),
            "density": Coefficient(np.array(self.density), "kg/m³", lower=0.0),
            "acceleration": Coefficient(self.acceleration, "m/s²"),
        }

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        lift = -c["density"] * c["volume"] * c["acceleration"]
        return motion.wrench_of_world_force(lift, c["center"])

    def _potential_energy(self, motion: BodyMotion, c: Mapping[str, Value]) -> Value:
        displaced = c["density"] * c["volume"]
        return displaced * ca.dot(c["acceleration"], motion.world_point(c["center"]))
