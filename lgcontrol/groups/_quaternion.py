"""Quaternion columns [x, y, z, w] and rotation matrices: the formulas of SO(3)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..codegen import Value
from . import _series


def compose_quaternions(X: Value, Y: Value) -> Value:
    """Product of two quaternion columns [x, y, z, w]."""
    v, w, u, z = X[:3], X[3], Y[:3], Y[3]
    return ca.vertcat(w * u + z * v + ca.cross(v, u), w * z - ca.dot(v, u))


def rotate(X: Value, p: Value) -> Value:
    """Rotate a point by a unit quaternion: ``p + 2w v×p + 2v×(v×p)``."""
    t = 2 * ca.cross(X[:3], p)
    return p + X[3] * t + ca.cross(X[:3], t)


def quaternion_exp(d: Value) -> Value:
    """Unit quaternion of a rotation vector."""
    quarter = ca.sumsqr(d) / 4
    return ca.vertcat(_series.sinc(quarter) / 2 * d, _series.cosine(quarter))


def quaternion_log(X: Value) -> Value:
    """Rotation vector of length at most π, the same for both signs of the quaternion."""
    sign = ca.if_else(X[3] < 0, -1.0, 1.0)
    v, w = sign * X[:3], sign * X[3]
    return _series.angle_per_sine(ca.sumsqr(v), w) * v


def rotation_from_quaternion(X: Value) -> Value:
    """Rotation matrix of a unit quaternion."""
    x, y, z, w = X[0], X[1], X[2], X[3]
    return ca.blockcat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_from_rotation(R: Value) -> Value:
    """Unit quaternion of a rotation matrix, dividing by the largest component (Shepperd)."""
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    by_x = ca.vertcat(1 + a - b - c, xy, xz, wx)
    by_y = ca.vertcat(xy, 1 - a + b - c, yz, wy)
    by_z = ca.vertcat(xz, yz, 1 - a - b + c, wz)
    by_w = ca.vertcat(wx, wy, wz, 1 + a + b + c)
    x_or_y = ca.if_else(a > b, by_x, by_y)
    largest = ca.if_else(ca.fmax(a, b) > c, x_or_y, by_z)
    q = ca.if_else(a + b + c > 0, by_w, largest)
    return q / ca.sqrt(ca.sumsqr(q))


def nearest_rotation(M: np.ndarray) -> np.ndarray:
    """Rotation matrix nearest to M in the Frobenius norm, shape (..., 3, 3)."""
    U, _, Vt = np.linalg.svd(M)
    mirrored = (np.linalg.det(U @ Vt) < 0)[..., None, None]
    U = U * np.where(mirrored, [1.0, 1.0, -1.0], 1.0)
    return U @ Vt
