"""SO2: rotations in a plane; and what groups about an axis share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Shape, ask_degrees, check_shape, in_degrees
from ._axis import Z_AXIS, Axis, constant, rotation_about, twist_matrix, unit_axis
from ._base import LieGroup
from ._element import check_element

# Names along and about an axis that has no letter.
ALONG = {"z": "d", "rz": "r"}


class AboutAxis(LieGroup):
    """Groups about an axis: what they share is a unit axis, others like them, a name.

    Their matrices are those of SE(3) unless they have smaller ones.
    """

    axis: Axis

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis))

    def about(self, axis: Any) -> Self:
        """The same group about another axis, or in the plane normal to it, shape (3,)."""
        given: Any = self
        return replace(given, axis=axis)

    @property
    def _stem(self) -> str:
        """Name of the group about z."""
        return type(self).__name__.removesuffix("Group")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, with the axis unless it is z."""
        numbers = ", ".join(f"{entry:.6g}" for entry in self.axis)
        return self._stem if self.axis == Z_AXIS else f"{self._stem}.about(({numbers}))"

    def _own(self, names: tuple[str, ...], oblique: Mapping[str, str] | None = None) -> Any:
        """Names about z as they are about this axis: about x, the letters x, y, z are y, z, x.

        About axes that have no letter they are the oblique ones; those about z, in the group's own
        frame, if left out.
        """
        if 1.0 not in self.axis:
            return tuple((oblique or {}).get(name, name) for name in names)
        turn = self.axis.index(1.0) - 2
        letters = {a: "xyz"[(k + turn) % 3] for k, a in enumerate("xyz")}
        letters |= {f"r{a}": f"r{b}" for a, b in letters.items()}
        return tuple(letters.get(name, name) for name in names)

    def _hat(self, d: Value) -> Value:
        return twist_matrix(constant(self.selection) @ d)

    def _matrix(self, X: Value) -> Value:
        return self._homogeneous(X)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """Normal numbers, then a uniform angle where coordinates end with a circle."""
        if not self.unit_parts:
            return super()._random(rng, shape)
        others, angle = rng.normal(size=(*shape, self.nq - 2)), rng.uniform(-np.pi, np.pi, shape)
        return np.concatenate([others, np.cos(angle)[..., None], np.sin(angle)[..., None]], -1)


@dataclass(frozen=True, repr=False)
class SO2Group(AboutAxis):
    """Rotations about an axis: coordinates ``[cos, sin]``, tangent ``[ω]``, 2 × 2 matrices.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, of any length; z unless given.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> SO2.log(SO2.exp([3.0]))
    array([3.])
    """

    axis: Axis = Z_AXIS

    dim, nq = 1, 2
    coordinate_names, coordinate_units = ("cos", "sin"), ("", "")
    tangent_units = ("rad",)
    matrix_size, point_size = 2, 2
    unit_parts = (slice(0, 2),)
    is_commutative = True

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Turn about the axis: "rx" about x, "r" about an axis without a letter."""
        return self._own(("rz",), ALONG)

    def from_angle(self, angle: Any, *, degrees: bool = False) -> np.ndarray:
        """Coordinates of rotations by angles.

        Parameters
        ----------
        angle : array_like, shape (...)
            In rad, or in degrees.
        degrees : bool

        Returns
        -------
        ndarray, shape (..., 2)

        Examples
        --------
        >>> SO2.from_angle(90, degrees=True).round(12)
        array([0., 1.])
        """
        return circle(angle, degrees)

    def as_angle(self, X: Any, *, degrees: bool = False) -> np.ndarray:
        """Angles of rotations, shape (...), in (−π, π] rad or in degrees."""
        angle = self.log(check_element("X", X, self, batch=True))[..., 0]
        return np.degrees(angle) if degrees else angle

    @property
    def identity(self) -> np.ndarray:
        """Zero angle, [1, 0]."""
        return np.array([1.0, 0.0])

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix: ω about the axis, shape (6, 1)."""
        return np.array([[0.0, 0.0, 0.0, *self.axis]]).T

    def _compose(self, X: Value, Y: Value) -> Value:
        return compose_circle(X, Y)

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(X[0], -X[1])

    def _exp(self, d: Value) -> Value:
        return ca.vertcat(ca.cos(d[0]), ca.sin(d[0]))

    def _log(self, X: Value) -> Value:
        return ca.atan2(X[1], X[0])

    def _hat(self, d: Value) -> Value:
        return constant(np.array([[0.0, -1.0], [1.0, 0.0]])) * d[0]

    def _vee(self, M: Value) -> Value:
        return M[1, 0]

    def _matrix(self, X: Value) -> Value:
        return ca.blockcat([[X[0], -X[1]], [X[1], X[0]]])

    def _from_matrix(self, M: Value) -> Value:
        return normalize_circle(ca.vertcat(M[0, 0] + M[1, 1], M[1, 0] - M[0, 1]))

    def _act(self, X: Value, p: Value) -> Value:
        return self._matrix(X) @ p

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return rotation_about(self.axis, X[0], X[1]), ca.DM(3, 1)


def compose_circle(X: Value, Y: Value) -> Value:
    """Product of two [cos, sin] columns."""
    return ca.vertcat(X[0] * Y[0] - X[1] * Y[1], X[1] * Y[0] + X[0] * Y[1])


def normalize_circle(X: Value) -> Value:
    """[cos, sin] scaled to unit length."""
    return X / ca.sqrt(ca.sumsqr(X))


def circle(angle: Any, degrees: bool) -> np.ndarray:
    """Angles (...) as [cos, sin], shape (..., 2)."""
    angle = check_shape("angle", angle, (), batch=True)
    if not degrees and angle.ndim == 0 and in_degrees(angle):
        ask_degrees("an angle", float(angle), "Then give degrees=True")
    angle = np.radians(angle) if degrees else angle
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


SO2 = SO2Group()
"""Rotations about z."""
