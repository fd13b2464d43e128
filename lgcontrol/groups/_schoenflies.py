"""Schönflies motions: translations of space and rotations about one axis."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..codegen import Value
from . import _series
from ._axis import Z_AXIS, Axis, constant, rotation_about, skew
from ._se2 import circle_about
from ._so2 import ALONG, AboutAxis, compose_circle, normalize_circle


@dataclass(frozen=True, repr=False)
class SchoenfliesGroup(AboutAxis):
    """Translations and rotations about an axis: ``[x, y, z, cos, sin]``, tangent ``[v; ω]``.

    x, y, z are along the reference axes whatever the axis of rotation. 4 × 4 matrices.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, of any length; z unless given.

    Examples
    --------
    >>> from lgcontrol.groups import Schoenflies
    >>> Schoenflies.ad([1.0, 2.0, 3.0, 4.0]).shape
    (4, 4)
    """

    axis: Axis = Z_AXIS

    dim, nq = 4, 5
    coordinate_names = ("x", "y", "z", "cos", "sin")
    coordinate_units = ("m", "m", "m", "", "")
    tangent_units = ("m", "m", "m", "rad")
    unit_parts = (slice(3, 5),)

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Along the reference axes and about the axis: "rx" about x, "r" without a letter."""
        return ("x", "y", "z", *self._own(("rz",), ALONG))

    @property
    def identity(self) -> np.ndarray:
        """No motion, [0, 0, 0, 1, 0]."""
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0])

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix, shape (6, 4)."""
        H = np.zeros((6, 4))
        H[:3, :3], H[3:, 3] = np.eye(3), self.axis
        return H

    def _compose(self, X: Value, Y: Value) -> Value:
        rotation, p = self._pose(X)
        return ca.vertcat(p + rotation @ Y[:3], compose_circle(X[3:], Y[3:]))

    def _inverse(self, X: Value) -> Value:
        rotation, p = self._pose(X)
        return ca.vertcat(-rotation.T @ p, X[3], -X[4])

    def _exp(self, d: Value) -> Value:
        s, n = d[3] ** 2, constant(skew(self.axis))
        turn = d[3] * (n @ d[:3])
        p = d[:3] + _series.versine(s) * turn + _series.remainder(s) * d[3] * (n @ turn)
        return ca.vertcat(p, ca.cos(d[3]), ca.sin(d[3]))

    def _log(self, X: Value) -> Value:
        angle, n = ca.atan2(X[4], X[3]), constant(skew(self.axis))
        turn = angle * (n @ X[:3])
        v = X[:3] - turn / 2 + _series.cotangent(angle**2) * angle * (n @ turn)
        return ca.vertcat(v, angle)

    def _vee(self, M: Value) -> Value:
        angular = ca.vertcat(M[2, 1], M[0, 2], M[1, 0])
        return ca.vertcat(M[:3, 3], constant(np.array(self.axis)).T @ angular)

    def _from_matrix(self, M: Value) -> Value:
        return ca.vertcat(M[:3, 3], normalize_circle(ca.vertcat(*circle_about(self.axis, M))))

    def _Ad(self, X: Value) -> Value:
        rotation, p = self._pose(X)
        return ca.blockcat([[rotation, -constant(skew(self.axis)) @ p], [ca.DM(1, 3), ca.DM(1)]])

    def _ad(self, d: Value) -> Value:
        n = constant(skew(self.axis))
        return ca.blockcat([[d[3] * n, -n @ d[:3]], [ca.DM(1, 3), ca.DM(1, 1)]])

    def _rotation_squared(self, d: Value) -> Value:
        return d[3] ** 2

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return rotation_about(self.axis, X[3], X[4]), X[:3]


Schoenflies = SchoenfliesGroup()
"""Translations of space and rotations about z."""
