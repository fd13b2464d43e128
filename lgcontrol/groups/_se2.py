"""Planar motions: SE(2) as [x, y, cos, sin], and the planar-helical group Y(p)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Shape, check_shape
from . import _series
from ._axis import Z_AXIS, Axis, axis_frame, constant, rotation_about
from ._element import check_element
from ._so2 import AboutAxis, circle, compose_circle, normalize_circle


class PlanarMotions(AboutAxis):
    """What motions in a plane share, whether or not they rise along its normal."""

    dim = 3
    tangent_units = ("m", "m", "rad")
    pitch = 0.0

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """In the plane and about its normal, (y, z, rx) about x."""
        return self._own(("x", "y", "rz"))

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix, shape (6, 3): the plane, and the screw along its normal."""
        frame = axis_frame(self.axis)
        H = np.zeros((6, 3))
        H[:3, :2], H[:3, 2], H[3:, 2] = frame[:, :2], self.pitch * frame[:, 2], frame[:, 2]
        return H

    def _ad(self, d: Value) -> Value:
        """Lie bracket of planar twists (From 2012, eq. 78)."""
        return ca.blockcat([[_J * d[2], ca.vertcat(d[1], -d[0])], [ca.DM(1, 2), ca.DM(1, 1)]])

    def _rotation_squared(self, d: Value) -> Value:
        return d[2] ** 2


@dataclass(frozen=True, repr=False)
class SE2Group(PlanarMotions):
    """Motions in a plane: ``[x, y, cos, sin]``, tangent ``[vx, vy, ω]``, 3 × 3 matrices.

    The plane is normal to the axis: (x, y) for z, (y, z) for x, (z, x) for y.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Normal of the plane, of any length; z unless given.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> SE2.exp([1.0, 0.0, np.pi / 2]).round(6)
    array([0.63662, 0.63662, 0.     , 1.     ])
    """

    axis: Axis = Z_AXIS

    nq = 4
    coordinate_units = ("m", "m", "", "")
    unit_parts = (slice(2, 4),)
    matrix_size, point_size = 3, 2

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Places in the plane, (y, z) about x, and the circle."""
        return self._own(("x", "y", "cos", "sin"))

    def from_angle(
        self, angle: Any, position: Any = (0.0, 0.0), *, degrees: bool = False
    ) -> np.ndarray:
        """Coordinates of poses from headings and positions.

        Parameters
        ----------
        angle : array_like, shape (...)
            In rad, or in degrees.
        position : array_like, shape (..., 2)
            In the plane, in m.
        degrees : bool

        Returns
        -------
        ndarray, shape (..., 4)

        Examples
        --------
        >>> SE2.from_angle(90, [1, 2], degrees=True).round(12)
        array([1., 2., 0., 1.])
        """
        turn = circle(angle, degrees)
        position = check_shape("position", position, (2,), batch=True)
        batch = np.broadcast_shapes(turn.shape[:-1], position.shape[:-1])
        parts = (np.broadcast_to(part, (*batch, 2)) for part in (position, turn))
        return np.concatenate(list(parts), axis=-1)

    def from_position(self, position: Any) -> np.ndarray:
        """Coordinates of poses that are not turned, from positions of shape (..., 2) in m."""
        return self.from_angle(0.0, position)

    def as_angle(self, X: Any, *, degrees: bool = False) -> np.ndarray:
        """Headings of poses, shape (...), in (−π, π] rad or in degrees."""
        X = check_element("X", X, self, batch=True)
        angle = np.arctan2(X[..., 3], X[..., 2])
        return np.degrees(angle) if degrees else angle

    @property
    def identity(self) -> np.ndarray:
        """No motion, [0, 0, 1, 0]."""
        return np.array([0.0, 0.0, 1.0, 0.0])

    def _compose(self, X: Value, Y: Value) -> Value:
        return ca.vertcat(X[:2] + _turn(X[2], X[3]) @ Y[:2], compose_circle(X[2:], Y[2:]))

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(-_turn(X[2], -X[3]) @ X[:2], X[2], -X[3])

    def _exp(self, d: Value) -> Value:
        return ca.vertcat(planar_exp(d), ca.cos(d[2]), ca.sin(d[2]))

    def _log(self, X: Value) -> Value:
        return planar_log(X[:2], ca.atan2(X[3], X[2]))

    def _hat(self, d: Value) -> Value:
        return ca.blockcat([[_J * d[2], d[:2]], [ca.DM(1, 2), ca.DM(1, 1)]])

    def _vee(self, M: Value) -> Value:
        return ca.vertcat(M[:2, 2], M[1, 0])

    def _matrix(self, X: Value) -> Value:
        return ca.blockcat([[_turn(X[2], X[3]), X[:2]], [ca.DM(1, 2), ca.DM(1)]])

    def _from_matrix(self, M: Value) -> Value:
        circle = ca.vertcat(M[0, 0] + M[1, 1], M[1, 0] - M[0, 1])
        return ca.vertcat(M[:2, 2], normalize_circle(circle))

    def _act(self, X: Value, p: Value) -> Value:
        return X[:2] + _turn(X[2], X[3]) @ p

    def _Ad(self, X: Value) -> Value:
        return planar_Ad(X[:2], X[2], X[3])

    def _pose(self, X: Value) -> tuple[Value, Value]:
        plane = constant(axis_frame(self.axis)[:, :2])
        return rotation_about(self.axis, X[2], X[3]), plane @ X[:2]


@dataclass(frozen=True, repr=False)
class PlanarHelical(PlanarMotions):
    """Motions in a plane coupled to a screw along its normal: ``[x, y, angle]``.

    Tangent ``[vx, vy, ω]``; the body rises by ``pitch`` metres a radian along the axis. The angle
    is unwrapped, since every turn is another height.

    Parameters
    ----------
    pitch : float
        Rise in m/rad.
    axis : array_like, shape (3,)

    Notes
    -----
    As for the universal cover of SE(2), some elements are not exponentials. They have an angle of
    2π, 4π, … and a displacement in the plane. `log` is singular there.

    Examples
    --------
    >>> PlanarHelical(0.1).homogeneous([0.0, 0.0, 2 * np.pi])[2, 3].round(6)
    np.float64(0.628319)
    """

    pitch: float
    axis: Axis = Z_AXIS

    nq = 3
    coordinate_units = ("m", "m", "rad")

    def __post_init__(self) -> None:
        object.__setattr__(self, "pitch", float(check_shape("pitch", self.pitch, ())))
        super().__post_init__()

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Places in the plane, (y, z) about x, and the angle."""
        return self._own(("x", "y", "angle"))

    @property
    def _stem(self) -> str:
        return f"PlanarHelical({self.pitch:g})"

    @property
    def identity(self) -> np.ndarray:
        """No motion, [0, 0, 0]."""
        return np.zeros(3)

    def _compose(self, X: Value, Y: Value) -> Value:
        return ca.vertcat(X[:2] + _turn(ca.cos(X[2]), ca.sin(X[2])) @ Y[:2], X[2] + Y[2])

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(-_turn(ca.cos(X[2]), -ca.sin(X[2])) @ X[:2], -X[2])

    def _exp(self, d: Value) -> Value:
        return ca.vertcat(planar_exp(d), d[2])

    def _log(self, X: Value) -> Value:
        return planar_log(X[:2], X[2])

    def _vee(self, M: Value) -> Value:
        frame = constant(axis_frame(self.axis))
        linear = frame.T @ M[:3, 3]
        angular = frame[:, 2].T @ ca.vertcat(M[2, 1], M[0, 2], M[1, 0])
        return ca.vertcat(linear[:2], angular)

    def _from_matrix(self, M: Value) -> Value:
        frame = constant(axis_frame(self.axis))
        local = frame.T @ M[:3, 3]
        return ca.vertcat(local[:2], angle_about(self.axis, M, local[2], self.pitch))

    def _Ad(self, X: Value) -> Value:
        return planar_Ad(X[:2], ca.cos(X[2]), ca.sin(X[2]))

    def _pose(self, X: Value) -> tuple[Value, Value]:
        rotation = rotation_about(self.axis, ca.cos(X[2]), ca.sin(X[2]))
        shift = ca.vertcat(X[:2], self.pitch * X[2])
        return rotation, constant(axis_frame(self.axis)) @ shift

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        angle = rng.uniform(-np.pi, np.pi, size=(*shape, 1))
        return np.concatenate([rng.normal(size=(*shape, 2)), angle], axis=-1)


_J = constant(np.array([[0.0, -1.0], [1.0, 0.0]]))


def _turn(cos: Value, sin: Value) -> Value:
    return ca.blockcat([[cos, -sin], [sin, cos]])


def planar_exp(d: Value) -> Value:
    """Translation part of the exponential: ``sinc v + versine θ J v``."""
    s = d[2] ** 2
    return _series.sinc(s) * d[:2] + _series.versine(s) * d[2] * (_J @ d[:2])


def planar_log(p: Value, angle: Value) -> Value:
    """Tangent vector for a translation and an angle."""
    along = 1 - _series.cotangent(angle**2) * angle**2
    return ca.vertcat(along * p - angle / 2 * (_J @ p), angle)


def planar_Ad(p: Value, cos: Value, sin: Value) -> Value:
    """Adjoint of a planar motion, 3 × 3."""
    return ca.blockcat([[_turn(cos, sin), ca.vertcat(p[1], -p[0])], [ca.DM(1, 2), ca.DM(1)]])


def angle_about(axis: Axis, M: Value, height: Value, pitch: float) -> Value:
    """Angle of a screw motion about the axis; without pitch it is in (−π, π].

    The rotation tells the angle within a turn. The height (m) along the axis tells only the number
    of turns, so that a small pitch does not magnify errors of the height.
    """
    cos, sin = circle_about(axis, M)
    angle = ca.atan2(sin, cos)
    turns = (height / pitch - angle) / (2 * np.pi) if pitch else 0.0
    return angle + 2 * np.pi * ca.floor(turns + 0.5)


def circle_about(axis: Axis, M: Value) -> tuple[Value, Value]:
    """Cosine and sine (up to scale) of a rotation about the axis."""
    twice_sin = constant(np.array(axis)).T @ ca.vertcat(
        M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]
    )
    return M[0, 0] + M[1, 1] + M[2, 2] - 1, twice_sin


SE2 = SE2Group()
"""Motions in the x-y plane."""
