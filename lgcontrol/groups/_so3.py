"""SO(3): rotations of space, as unit quaternions [x, y, z, w]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca
import numpy as np
import scipy

from ..codegen import Value
from ..codegen._internal import Shape, UnknownNameError, ask_degrees, check_shape, unknown_name
from ._axis import LARGEST_COORDINATE, cross_matrix
from ._base import LieGroup
from ._series import (
    compose_quaternions,
    nearest_rotation,
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    rotate,
    rotation_from_quaternion,
)

QuaternionOrder = Literal["xyzw", "wxyz"]


@dataclass(frozen=True, repr=False)
class SO3Group(LieGroup):
    """Rotations: unit quaternion ``[x, y, z, w]``, tangent ``[ωx, ωy, ωz]``, 3 × 3 matrices.

    A quaternion and its negative are the same rotation; every operation treats them alike.

    Examples
    --------
    >>> from lgcontrol.groups import SO3
    >>> X = SO3.from_euler("xyz", [10, 20, 30], degrees=True)
    >>> SO3.as_euler(-X, "xyz", degrees=True).round(12)
    array([10., 20., 30.])
    """

    name = "SO3"
    dim, nq = 3, 4
    coordinate_names, coordinate_units = ("qx", "qy", "qz", "qw"), ("", "", "", "")
    tangent_names, tangent_units = ("rx", "ry", "rz"), ("rad", "rad", "rad")
    matrix_size, point_size = 3, 3
    unit_parts = (slice(0, 4),)

    @property
    def identity(self) -> np.ndarray:
        """No rotation, [0, 0, 0, 1]."""
        return np.array([0.0, 0.0, 0.0, 1.0])

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix [0; I], shape (6, 3)."""
        return np.eye(6)[:, 3:]

    def _compose(self, X: Value, Y: Value) -> Value:
        return compose_quaternions(X, Y)

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(-X[:3], X[3])

    def _exp(self, d: Value) -> Value:
        return quaternion_exp(d)

    def _log(self, X: Value) -> Value:
        return quaternion_log(X)

    def _hat(self, d: Value) -> Value:
        return cross_matrix(d)

    def _vee(self, M: Value) -> Value:
        return ca.vertcat(M[2, 1], M[0, 2], M[1, 0])

    def _matrix(self, X: Value) -> Value:
        return rotation_from_quaternion(X)

    def _from_matrix(self, M: Value) -> Value:
        return quaternion_from_rotation(M)

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        return nearest_rotation(M)

    def _act(self, X: Value, p: Value) -> Value:
        return rotate(X, p)

    def _Ad(self, X: Value) -> Value:
        return rotation_from_quaternion(X)

    def _ad(self, d: Value) -> Value:
        return cross_matrix(d)

    def _rotation_squared(self, d: Value) -> Value:
        return ca.sumsqr(d)

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return rotation_from_quaternion(X), ca.DM(3, 1)

    def _embed(self, X: Value) -> Value:
        return ca.vertcat(ca.DM(3, 1), X)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        q = rng.normal(size=(*shape, 4))
        return q / np.linalg.norm(q, axis=-1, keepdims=True)

    def from_quaternion(self, quaternion: Any, order: QuaternionOrder = "xyzw") -> np.ndarray:
        """Coordinates from a quaternion of any non-zero length, which is normalised.

        Parameters
        ----------
        quaternion : array_like, shape (..., 4)
        order : {"xyzw", "wxyz"}
            Position of the scalar part.

        Returns
        -------
        ndarray, shape (..., 4)
        """
        q = check_shape("quaternion", quaternion, (4,), batch=True)
        if (np.abs(q) > LARGEST_COORDINATE).any():
            raise ValueError(f"quaternion is too large: {np.abs(q).max():g}, its square overflows")
        norm = np.linalg.norm(q, axis=-1, keepdims=True)
        if (norm < 1e-12).any():
            raise ValueError("quaternion must not be zero")
        return np.roll(q / norm, _order_shift(order), axis=-1)

    def as_quaternion(self, X: Any, order: QuaternionOrder = "xyzw") -> np.ndarray:
        """Quaternion with non-negative scalar part, shape (..., 4)."""
        q = check_shape("rotation", X, (4,), batch=True)
        q = np.where(q[..., 3:] < 0, -q, q)
        return np.roll(q, -_order_shift(order), axis=-1)

    def from_euler(self, sequence: str, angles: Any, *, degrees: bool = False) -> np.ndarray:
        """Coordinates from Euler angles, as `scipy.spatial.transform.Rotation.from_euler`.

        Parameters
        ----------
        sequence : str
            Axes, for example "ZYX" (intrinsic, capitals) or "xyz" (extrinsic).
        angles : array_like, shape (..., len(sequence))
            Angles in rad; beyond 2π a warning asks whether they are degrees.
        degrees : bool
            Whether angles are in degrees.

        Returns
        -------
        ndarray, shape (..., 4)
        """
        angles = check_shape("angles", angles, (len(sequence),), batch=True)
        largest = float(np.abs(angles).max(initial=0.0))
        if not degrees:
            remedy = (
                "Then give degrees=True; turns that are meant go by np.remainder(angles, 2 * np.pi)"
            )
            ask_degrees("an angle", largest, remedy, beyond=2 * np.pi)
        flat = scipy.spatial.transform.Rotation.from_euler(
            sequence, angles.reshape(-1, len(sequence)), degrees=degrees
        )
        return flat.as_quat().reshape(*angles.shape[:-1], 4)

    def as_euler(self, X: Any, sequence: str, *, degrees: bool = False) -> np.ndarray:
        """Euler angles of the sequence (see `from_euler`) in rad, shape (..., 3).

        In gimbal lock SciPy warns and sets the third angle to zero.
        """
        q = check_shape("rotation", X, (4,), batch=True)
        angles = scipy.spatial.transform.Rotation.from_quat(q.reshape(-1, 4)).as_euler(
            sequence, degrees=degrees
        )
        return angles.reshape(*q.shape[:-1], 3)

    def from_rotation_vector(self, vector: Any) -> np.ndarray:
        """Coordinates of the rotation by ``|vector|`` rad about ``vector``: same as `exp`."""
        return self.exp(check_shape("rotation vector", vector, (3,), batch=True))

    def as_rotation_vector(self, X: Any) -> np.ndarray:
        """Rotation vector [rad] of length at most π: same as `log`."""
        return self.log(check_shape("rotation", X, (4,), batch=True))


def _order_shift(order: str) -> int:
    shifts = {"xyzw": 0, "wxyz": -1}
    if not isinstance(order, str) or order not in shifts:
        raise UnknownNameError(unknown_name("quaternion order", order, shifts))
    return shifts[order]


SO3 = SO3Group()
"""Rotations of space."""
