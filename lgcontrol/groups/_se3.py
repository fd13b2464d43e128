"""SE(3): rigid-body motions, as [px, py, pz, qx, qy, qz, qw]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Shape, check_shape
from . import _series
from ._axis import cross_matrix, twist_matrix
from ._base import LieGroup
from ._element import check_element
from ._series import (
    compose_quaternions,
    nearest_rotation,
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    rotate,
    rotation_from_quaternion,
)
from ._so3 import SO3, QuaternionOrder


@dataclass(frozen=True, repr=False)
class SE3Group(LieGroup):
    """Motions of a rigid body: position and unit quaternion, tangent ``[v; ω]``, 4 × 4 matrices.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> X = SE3.from_euler("ZYX", [90, 0, 0], position=[1, 2, 3], degrees=True)
    >>> SE3.act(X, [1.0, 0.0, 0.0])
    array([1., 3., 3.])
    """

    name = "SE3"
    dim, nq = 6, 7
    coordinate_names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    coordinate_units = ("m", "m", "m", "", "", "", "")
    tangent_names = ("x", "y", "z", "rx", "ry", "rz")
    tangent_units = ("m", "m", "m", "rad", "rad", "rad")
    unit_parts = (slice(3, 7),)

    @property
    def identity(self) -> np.ndarray:
        """No motion, [0, 0, 0, 0, 0, 0, 1]."""
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix: the identity, shape (6, 6)."""
        return np.eye(6)

    def _compose(self, X: Value, Y: Value) -> Value:
        return ca.vertcat(X[:3] + rotate(X[3:], Y[:3]), compose_quaternions(X[3:], Y[3:]))

    def _inverse(self, X: Value) -> Value:
        back = ca.vertcat(-X[3:6], X[6])
        return ca.vertcat(-rotate(back, X[:3]), back)

    def _exp(self, d: Value) -> Value:
        v, w = d[:3], d[3:]
        s = ca.sumsqr(w)
        turn = ca.cross(w, v)
        p = v + _series.versine(s) * turn + _series.remainder(s) * ca.cross(w, turn)
        return ca.vertcat(p, quaternion_exp(w))

    def _log(self, X: Value) -> Value:
        w = quaternion_log(X[3:])
        turn = ca.cross(w, X[:3])
        v = X[:3] - turn / 2 + _series.cotangent(ca.sumsqr(w)) * ca.cross(w, turn)
        return ca.vertcat(v, w)

    def _hat(self, d: Value) -> Value:
        return twist_matrix(d)

    def _vee(self, M: Value) -> Value:
        return ca.vertcat(M[:3, 3], M[2, 1], M[0, 2], M[1, 0])

    def _matrix(self, X: Value) -> Value:
        return self._homogeneous(X)

    def _from_matrix(self, M: Value) -> Value:
        return ca.vertcat(M[:3, 3], quaternion_from_rotation(M[:3, :3]))

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        repaired = np.array(M)
        repaired[..., :3, :3] = nearest_rotation(M[..., :3, :3])
        return repaired

    def _act(self, X: Value, p: Value) -> Value:
        return X[:3] + rotate(X[3:], p)

    def _Ad(self, X: Value) -> Value:
        R = rotation_from_quaternion(X[3:])
        return ca.blockcat([[R, cross_matrix(X[:3]) @ R], [ca.DM(3, 3), R]])

    def _ad(self, d: Value) -> Value:
        w = cross_matrix(d[3:])
        return ca.blockcat([[w, cross_matrix(d[:3])], [ca.DM(3, 3), w]])

    def _right_jacobian(self, d: Value) -> Value:
        # se(3) is so(3) over the dual numbers: with ω + εv for ω, the Jacobian of SO(3)
        # becomes the diagonal block plus ε times the off-diagonal one.
        s, w, v, both = _dual(d)
        b, c = _series.versine(s), _series.remainder(s)
        db, dc = _series.versine_rate(s), _series.remainder_rate(s)
        ds = 2 * ca.dot(d[:3], d[3:])
        square = w @ w
        turn = ca.DM.eye(3) - b * w + c * square
        shift = -b * v + c * both + ds * (-db * w + dc * square)
        return ca.blockcat([[turn, shift], [ca.DM(3, 3), turn]])

    def _right_jacobian_inverse(self, d: Value) -> Value:
        s, w, v, both = _dual(d)
        c, dc = _series.cotangent(s), _series.cotangent_rate(s)
        ds = 2 * ca.dot(d[:3], d[3:])
        square = w @ w
        turn = ca.DM.eye(3) + w / 2 + c * square
        shift = v / 2 + c * both + ds * dc * square
        return ca.blockcat([[turn, shift], [ca.DM(3, 3), turn]])

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return rotation_from_quaternion(X[3:]), X[:3]

    def _embed(self, X: Value) -> Value:
        return X

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return np.concatenate([rng.normal(size=(*shape, 3)), SO3.random(rng, shape)], axis=-1)

    def from_rotation(self, rotation: Any, position: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Coordinates from a rotation (SO3 coordinates) and a position [m].

        Parameters
        ----------
        rotation : array_like, shape (..., 4)
            Unit quaternion [x, y, z, w]; missing digits are made up for (see `check_element`).
        position : array_like, shape (..., 3)

        Returns
        -------
        ndarray, shape (..., 7)

        Raises
        ------
        ValueError
            If the quaternion is not of unit length; `from_quaternion` normalises.
        """
        q = check_element("rotation", rotation, SO3, batch=True)
        p = check_shape("position", position, (3,), batch=True)
        batch = np.broadcast_shapes(q.shape[:-1], p.shape[:-1])
        return np.concatenate(
            [np.broadcast_to(p, (*batch, 3)), np.broadcast_to(q, (*batch, 4))], axis=-1
        )

    def from_position(self, position: Any) -> np.ndarray:
        """Coordinates of a pure translation [m]."""
        return self.from_rotation(SO3.identity, position)

    def from_quaternion(
        self,
        quaternion: Any,
        position: Any = (0.0, 0.0, 0.0),
        order: QuaternionOrder = "xyzw",
    ) -> np.ndarray:
        """Coordinates from a quaternion (see `SO3.from_quaternion`) and a position [m]."""
        return self.from_rotation(SO3.from_quaternion(quaternion, order), position)

    def from_rotation_matrix(self, rotation: Any, position: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Coordinates from a rotation matrix, shape (..., 3, 3), and a position [m]."""
        return self.from_rotation(SO3.from_matrix(rotation), position)

    def from_euler(
        self,
        sequence: str,
        angles: Any,
        position: Any = (0.0, 0.0, 0.0),
        *,
        degrees: bool = False,
    ) -> np.ndarray:
        """Coordinates from Euler angles (see `SO3.from_euler`) and a position [m]."""
        return self.from_rotation(SO3.from_euler(sequence, angles, degrees=degrees), position)

    def from_rotation_vector(self, vector: Any, position: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Coordinates from a rotation vector [rad] and a position [m]."""
        return self.from_rotation(SO3.from_rotation_vector(vector), position)

    def position(self, X: Value) -> Value:
        """Position [m] of X, shape (..., 3)."""
        return _entries(X, slice(0, 3))

    def rotation(self, X: Value) -> Value:
        """Rotation of X as SO3 coordinates, shape (..., 4)."""
        return _entries(X, slice(3, 7))

    def as_rotation_matrix(self, X: Value) -> Value:
        """Rotation matrix of X, shape (..., 3, 3)."""
        return SO3.matrix(self.rotation(X))

    def as_quaternion(self, X: Any, order: QuaternionOrder = "xyzw") -> np.ndarray:
        """Quaternion of X with non-negative scalar part, shape (..., 4)."""
        return SO3.as_quaternion(self.rotation(X), order)

    def as_euler(self, X: Any, sequence: str, *, degrees: bool = False) -> np.ndarray:
        """Euler angles [rad] of X (see `SO3.as_euler`), shape (..., 3)."""
        return SO3.as_euler(self.rotation(X), sequence, degrees=degrees)

    def as_rotation_vector(self, X: Any) -> np.ndarray:
        """Rotation vector [rad] of X, of length at most π, shape (..., 3)."""
        return SO3.as_rotation_vector(self.rotation(X))


def _dual(d: Value) -> tuple[Value, Value, Value, Value]:
    """Squared angle, ω̂, v̂ and the rate of ω̂² in the direction v."""
    v, w = cross_matrix(d[:3]), cross_matrix(d[3:])
    return ca.sumsqr(d[3:]), w, v, v @ w + w @ v


def _entries(X: Value, part: slice) -> Value:
    if isinstance(X, ca.SX | ca.MX | ca.DM):
        return X[part]
    return check_shape("coordinates on SE3", X, (7,), batch=True, finite=False)[..., part]


SE3 = SE3Group()
"""Motions of a rigid body."""
