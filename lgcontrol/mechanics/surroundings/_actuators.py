"""Thrusters and rotors: body-fixed forces that are linear in their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...systems import Input
from .._coefficients import Coefficient, freeze, set_field, unit_vector
from ._forces import BodyMotion, Force


@named_options
@dataclass(frozen=True, eq=False)
class Thruster:
    """A force along a fixed direction of the body at a fixed point; the input is the thrust.

    Parameters
    ----------
    position : array_like, shape (3,)
        Point at which it acts, in the body frame [m].
    direction : array_like, shape (3,)
        Direction of the force on the body; its length does not matter.
    lower, upper : float
        Bounds of the thrust [N].
    name : str
        Name of its input; empty for a number.

    Examples
    --------
    >>> Thruster([0, -0.5, 0], direction=[1, 0, 0]).column
    array([1. , 0. , 0. , 0. , 0. , 0.5])
    """

    position: Any
    direction: Any
    lower: float = -np.inf
    upper: float = np.inf
    name: str = ""

    def __post_init__(self) -> None:
        freeze(self, position=(3,))
        set_field(self, "direction", unit_vector("Thruster: direction", self.direction))

    @property
    def column(self) -> np.ndarray:
        """Body wrench of a unit thrust, shape (6,)."""
        return wrench_column(self.direction, self.position, 0.0)


@named_options
@dataclass(frozen=True, eq=False)
class Rotor:
    """A propeller: thrust along its axis, and the reaction to the torque that drives it.

    Parameters
    ----------
    position : array_like, shape (3,)
        Hub in the body frame [m].
    axis : array_like, shape (3,)
        Direction of the thrust on the body; its length does not matter.
    torque_coefficient : float
        Driving torque over thrust [m]: N m per N.
    spin : {1, -1}
        Sense of rotation about the axis: 1 is counter-clockwise seen from the tip. The body
        feels the driving torque in the opposite sense.
    lower, upper : float
        Bounds of the thrust [N].
    name : str
        Name of its input; empty for a number.

    Examples
    --------
    >>> Rotor([0.2, 0, 0], torque_coefficient=0.01, spin=-1).column
    array([ 0.  ,  0.  ,  1.  ,  0.  , -0.2 ,  0.01])
    """

    position: Any
    axis: Any = (0.0, 0.0, 1.0)
    torque_coefficient: float = 0.0
    spin: int = 1
    lower: float = 0.0
    upper: float = np.inf
    name: str = ""

    def __post_init__(self) -> None:
        freeze(self, position=(3,), torque_coefficient=())
        set_field(self, "axis", unit_vector("Rotor: axis", self.axis))
        if self.spin not in (1, -1):
            raise ValueError(
                f"Rotor: spin must be 1 (counter-clockwise about the axis) or -1, got {self.spin!r}"
            )
        if self.torque_coefficient < 0.0:
            raise ValueError(
                "Rotor: torque_coefficient must not be negative, got "
                f"{self.torque_coefficient:g} m; the sense of rotation is `spin`"
            )

    @property
    def column(self) -> np.ndarray:
        """Body wrench of a unit thrust, shape (6,)."""
        return wrench_column(self.axis, self.position, -self.spin * self.torque_coefficient)


@named_options
@dataclass(frozen=True, eq=False)
class Actuators(Force):
    """Thrusters and rotors of a body: ``W = B u`` with an allocation matrix B.

    Parameters
    ----------
    actuators : sequence of Thruster and Rotor
        In the order of the inputs, which are their thrusts [N].
    name : str
        Name of the force; inputs without a name of their own are called ``name.0``, ….

    Examples
    --------
    >>> arms = [(0.2, 0, 1), (0, 0.2, -1), (-0.2, 0, 1), (0, -0.2, -1)]
    >>> rotors = Actuators(
    ...     [Rotor([x, y, 0], torque_coefficient=0.01, spin=spin) for x, y, spin in arms], "rotor")
    >>> rotors.allocation.shape
    (6, 4)
    >>> [entry.name for entry in rotors.inputs]
    ['rotor.0', 'rotor.1', 'rotor.2', 'rotor.3']
    """

    actuators: Sequence[Thruster | Rotor]
    name: str = "actuators"

    def __post_init__(self) -> None:
        object.__setattr__(self, "actuators", tuple(self.actuators))

    @property
    def allocation(self) -> np.ndarray:
        """Body wrench of unit thrusts, shape (6, m)."""
        return np.column_stack([np.zeros((6, 0)), *(a.column for a in self.actuators)])

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Thrusts."""
        return tuple(
            Input(a.name or f"{self.name}.{k}", "N", a.lower, a.upper)
            for k, a in enumerate(self.actuators)
        )

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Gains: true over commanded thrust, 1 unless an actuator is worn or badly known."""
        labels = tuple(str(k) for k in range(len(self.actuators)))
        return {"gain": Coefficient(np.ones(len(labels)), labels=labels)}

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return ca.sparsify(ca.DM(self.allocation)) @ (c["gain"] * u)


def wrench_column(direction: np.ndarray, position: np.ndarray, couple: float) -> np.ndarray:
    """Wrench of a unit force at a position, with a couple [m] about its direction, shape (6,)."""
    moment = np.cross(position, direction) + couple * direction
    return np.concatenate([direction, moment]) + 0.0  # turns −0 into 0
