"""Wrenches that are given, as numbers or as inputs, and springs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import UnknownNameError, unknown_name
from ...systems import Input
from ...systems._internal import Role
from .._coefficients import TWIST_AXES, Coefficient
from .._fields import freeze, refuse_negative
from ._forces import BodyMotion, Force, wrench_at

Frame = Literal["body", "world"]

WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3


@dataclass(frozen=True, eq=False)
class _ConstantWrench(Force):
    wrench: Any
    point: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        freeze(self, wrench=(6,), point=(3,))

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Wrench and point."""
        return {
            "wrench": Coefficient(self.wrench, np.array(WRENCH_UNITS)),
            "point": Coefficient(self.point, "m"),
        }


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

    def __post_init__(self) -> None:
        if isinstance(self.axes, str):
            raise TypeError(f"WrenchInput: axes must be a tuple of names, got {self.axes!r}")
        for axis in self.axes:
            if axis not in TWIST_AXES:
                raise UnknownNameError(f"WrenchInput: {unknown_name('axis', axis, TWIST_AXES)}")
        if len(set(self.axes)) < len(self.axes):
            raise ValueError(f"WrenchInput: an axis is there twice in {self.axes}")
        if self.frame not in get_args(Frame):
            raise UnknownNameError(
                f"WrenchInput: {unknown_name('frame', self.frame, get_args(Frame))}"
            )
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

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """The point."""
        return {"point": Coefficient(self.point, "m")}

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        rows = [u[self.axes.index(a)] if a in self.axes else ca.DM(1, 1) for a in TWIST_AXES]
        wrench = ca.vertcat(*rows)
        return _moved(wrench if self.frame == "body" else _to_body(motion, wrench), c["point"])


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

    def __post_init__(self) -> None:
        freeze(self, stiffness=(), anchor=(3,), point=(3,), rest_length=())
        refuse_negative(self, stiffness="N/m", rest_length="m")

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """Stiffness, ends and rest length."""
        return {
            "stiffness": Coefficient(np.array(self.stiffness), "N/m", lower=0.0),
            "anchor": Coefficient(self.anchor, "m"),
            "point": Coefficient(self.point, "m"),
            "rest_length": Coefficient(np.array(self.rest_length), "m", lower=0.0),
        }

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
