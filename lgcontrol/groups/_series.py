"""Series in θ², and quaternions: the formulas that rotations share.

Each coefficient is a Taylor series in s below ``s = 1`` and its closed form above. The argument of
the branch that is not taken is replaced by a harmless one, so that values, gradients and Hessians
stay finite everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, factorial
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value

_ROUNDING = 2.0**-55
_NEAR = 0.06  # (n/w)² below which the arc tangent is a series


def _truncated(
    coefficient: Callable[[int], Fraction], derivatives: int = 2, reach: float = 1.0
) -> list[Fraction]:
    """Coefficients up to where the rest and its derivatives are below a rounding at reach."""
    series = [coefficient(0)]
    while True:
        k = len(series)
        rest = abs(coefficient(k))
        if k > derivatives and rest * k**derivatives * reach ** (k - derivatives) < _ROUNDING:
            return series
        series.append(coefficient(k))


def _derivative(series: Sequence[Fraction]) -> list[Fraction]:
    return [k * c for k, c in enumerate(series)][1:]


def _bernoulli(number: int) -> list[Fraction]:
    numbers = [Fraction(1)]
    for m in range(1, number):
        total = sum((comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0))
        numbers.append(-total / (m + 1))
    return numbers


def _alternating(offset: int, derivatives: int) -> list[Fraction]:
    return _truncated(lambda k: Fraction((-1) ** k, factorial(2 * k + offset)), derivatives)


# Two derivatives of each count (gradients and Hessians), of some also those of their rates.
_COSINE = _alternating(0, 2)
_SINC = _alternating(1, 2)
_VERSINE = _alternating(2, 3)
_REMAINDER = _alternating(3, 3)
_VERSINE_REMAINDER = _alternating(4, 2)
_BERNOULLI = _bernoulli(60)  # more than the slowest series takes, which falls like 1/39
_COTANGENT = _truncated(lambda k: abs(_BERNOULLI[2 * k + 2]) / factorial(2 * k + 2), 3)
_ARC_TANGENT = _truncated(lambda k: Fraction((-1) ** k, 2 * k + 1), 2, _NEAR)


def _horner(series: Sequence[Fraction], s: Any) -> Any:
    value = float(series[-1])
    for coefficient in reversed(series[:-1]):
        value = value * s + float(coefficient)
    return value


def _switch(s: Any, series: Sequence[Fraction], closed: Callable[[Any, Any], Any]) -> Any:
    small = s < 1
    above = ca.if_else(small, 1.0, s)
    return ca.if_else(
        small, _horner(series, ca.if_else(small, s, 0.0)), closed(above, ca.sqrt(above))
    )


def cosine(s: Any) -> Any:
    """``cos θ``."""
    return _switch(s, _COSINE, lambda s, a: ca.cos(a))


def sinc(s: Any) -> Any:
    """``sin θ / θ``."""
    return _switch(s, _SINC, lambda s, a: ca.sin(a) / a)


def versine(s: Any) -> Any:
    """``(1 − cos θ) / θ²``."""
    return _switch(s, _VERSINE, lambda s, a: (1 - ca.cos(a)) / s)


def remainder(s: Any) -> Any:
    """``(θ − sin θ) / θ³``."""
    return _switch(s, _REMAINDER, lambda s, a: (a - ca.sin(a)) / (a * s))


def versine_remainder(s: Any) -> Any:
    """``(θ²/2 − 1 + cos θ) / θ⁴``."""
    return _switch(s, _VERSINE_REMAINDER, lambda s, a: (s / 2 - 1 + ca.cos(a)) / (s * s))


def cotangent(s: Any) -> Any:
    """``(1 − θ/2 cot θ/2) / θ²``; singular where θ is a multiple of 2π.

    The cotangent is cos/sin: derivatives of ``1 / tan`` cancel to nothing near θ = π.
    """
    return _switch(s, _COTANGENT, lambda s, a: (1 - a / 2 * ca.cos(a / 2) / ca.sin(a / 2)) / s)


def versine_rate(s: Any) -> Any:
    """Derivative of `versine` with respect to s."""
    return _switch(
        s,
        _derivative(_VERSINE),
        lambda s, a: (ca.sin(a) / a - 2 * (1 - ca.cos(a)) / s) / (2 * s),
    )


def remainder_rate(s: Any) -> Any:
    """Derivative of `remainder` with respect to s."""
    return _switch(
        s,
        _derivative(_REMAINDER),
        lambda s, a: ((1 - ca.cos(a)) - 3 * (1 - ca.sin(a) / a)) / (2 * s * s),
    )


def cotangent_rate(s: Any) -> Any:
    """Derivative of `cotangent` with respect to s."""

    def closed(s: Any, a: Any) -> Any:
        half = a / 2
        c = half * ca.cos(half) / ca.sin(half)
        return -((c - (half / ca.sin(half)) ** 2) / 2 + (1 - c)) / (s * s)

    return _switch(s, _derivative(_COTANGENT), closed)


def angle_per_sine(vector_squared: Any, scalar: Any) -> Any:
    """θ / n for a quaternion with scalar part w = r cos(θ/2) ≥ 0, vector norm n = r sin(θ/2).

    Independent of the norm r of the quaternion. Below n/w = 0.25 the series of
    ``2 atan(n/w) / n`` in ``(n/w)²``, above it the closed form.
    """
    small = vector_squared < _NEAR * scalar * scalar
    w = ca.if_else(small, scalar, 1.0)
    ratio = ca.if_else(small, vector_squared, 0.0) / (w * w)
    n = ca.sqrt(ca.if_else(small, 1.0, vector_squared))
    return ca.if_else(small, 2 * _horner(_ARC_TANGENT, ratio) / w, 2 * ca.atan2(n, scalar) / n)


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
    return ca.vertcat(sinc(quarter) / 2 * d, cosine(quarter))


def quaternion_log(X: Value) -> Value:
    """Rotation vector of length at most π, the same for both signs of the quaternion."""
    sign = ca.if_else(X[3] < 0, -1.0, 1.0)
    v, w = sign * X[:3], sign * X[3]
    return angle_per_sine(ca.sumsqr(v), w) * v


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
