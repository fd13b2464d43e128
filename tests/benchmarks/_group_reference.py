"""Group operations and their derivatives to fifty digits, by routes the package does not take.

Everything is defined on SE(3) through power series (which need no case distinction), and restricted
to the other groups by their selection matrices. Derivatives are central differences with a step of
1e-25 in eighty-digit arithmetic. Arrays stand left of numbers: mpmath's numbers, multiplied with an
array on their right, first try to read its text as a number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

DIGITS = 80
STEP = "1e-25"  # differences are then good to about 1e-30, whatever the order

Array = np.ndarray  # of mpmath numbers


@dataclass(frozen=True)
class Reference:
    """A group about z: how its tangent vectors and coordinates sit in SE(3).

    ``pack(p, q, angle)`` makes coordinates of a position, a quaternion [x, y, z, w] and the angle
    about z; ``unpack(X)`` makes position and rotation vector of coordinates.
    """

    selection: np.ndarray
    pack: Callable[[Array, Array, Any], list]
    unpack: Callable[[Array], tuple[list, list]]

    def exp(self, d: Array) -> Array:
        twist = self.selection @ d
        v, w = twist[:3], twist[3:]
        s = w @ w
        turn = _cross(w, v)
        p = v + turn * _entire(s, 2) + _cross(w, turn) * _entire(s, 3)
        q = np.append(w * (_entire(s / 4, 1) / 2), _entire(s / 4, 0))
        return np.array(self.pack(p, q, w[2]))

    def log(self, X: Array) -> Array:
        p, w = (np.array(part) for part in self.unpack(X))
        s = w @ w
        W = _skew(w)
        J = _eye(3) + W * _entire(s, 2) + W @ W * _entire(s, 3)
        return self._left_inverse @ np.concatenate([_solve(J, p), w])

    def left_jacobian(self, d: Array) -> Array:
        return self._left_inverse @ _dexp(self.selection @ d) @ self.selection

    def right_jacobian(self, d: Array) -> Array:
        return self.left_jacobian(-d)

    def left_jacobian_inverse(self, d: Array) -> Array:
        return _solve(self.left_jacobian(d), _eye(len(d)))

    def right_jacobian_inverse(self, d: Array) -> Array:
        return _solve(self.left_jacobian(-d), _eye(len(d)))

    @property
    def _left_inverse(self) -> np.ndarray:
        return np.linalg.pinv(self.selection).round(12)


def _columns(*columns: int) -> np.ndarray:
    return np.eye(6)[:, columns]


def _pitched(pitch: float) -> np.ndarray:
    H = _columns(0, 1, 5)
    H[2, 2] = pitch
    return H


PITCH = 0.25  # exact in binary

REFERENCES = {
    "SO3": Reference(_columns(3, 4, 5), lambda p, q, a: [*q], lambda X: ([0, 0, 0], _vector(X))),
    "SE3": Reference(
        _columns(0, 1, 2, 3, 4, 5), lambda p, q, a: [*p, *q], lambda X: (X[:3], _vector(X[3:]))
    ),
    "SE2": Reference(
        _columns(0, 1, 5),
        lambda p, q, a: [p[0], p[1], mpmath.cos(a), mpmath.sin(a)],
        lambda X: ([X[0], X[1], 0], [0, 0, mpmath.atan2(X[3], X[2])]),
    ),
    "Schoenflies": Reference(
        _columns(0, 1, 2, 5),
        lambda p, q, a: [*p, mpmath.cos(a), mpmath.sin(a)],
        lambda X: (X[:3], [0, 0, mpmath.atan2(X[4], X[3])]),
    ),
}


def exact(values: Any) -> Array:
    """Doubles as multiple-precision numbers, without rounding."""
    return np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(values)


def derivatives(function: Callable[[Array], Array], x: Any, orders: int = 2) -> list[np.ndarray]:
    """Value, first and second derivatives at x, rounded to doubles; derivative axes are last."""
    with mpmath.workdps(DIGITS):
        x, h = exact(x), mpmath.mpf(STEP)
        steps = _eye(len(x)) * h
        centre = function(x)
        results = [centre]
        if orders >= 1:
            plus = [function(x + step) for step in steps]
            minus = [function(x - step) for step in steps]
            first = [(a - b) / (2 * h) for a, b in zip(plus, minus, strict=True)]
            results.append(np.stack(first, axis=-1))
        if orders >= 2:
            rows = [[centre] * len(x) for _ in x]
            for i, e in enumerate(steps):
                rows[i][i] = (plus[i] - 2 * centre + minus[i]) / h**2
                for j, f in enumerate(steps[:i]):
                    mixed = function(x + e + f) - plus[i] - plus[j] + 2 * centre
                    mixed = mixed - minus[i] - minus[j] + function(x - e - f)
                    rows[i][j] = rows[j][i] = mixed / (2 * h**2)
            results.append(np.stack([np.stack(row, axis=-1) for row in rows], axis=-1))
        return [np.vectorize(float, otypes=[float])(result) for result in results]


def _eye(n: int) -> Array:
    return np.vectorize(mpmath.mpf, otypes=[object])(np.eye(n, dtype=int))


def _entire(s: Any, offset: int) -> Any:
    """``Σ (−s)ᵏ / (2k + offset)!``: cos, sinc, versine, remainder for offsets 0 to 3."""
    term, total, k = 1 / mpmath.factorial(offset), mpmath.mpf(0), 0
    while k == 0 or abs(term) > mpmath.mpf(10) ** (-DIGITS - 10):
        total += term
        term = -term * s / ((2 * k + offset + 1) * (2 * k + offset + 2))
        k += 1
    return total


def _dexp(twist: Array) -> Array:
    """``Σ adⁿ/(n+1)!`` of se(3), with powers reduced by ``ad⁵ = −2s ad³ − s² ad``."""
    v, w = _skew(twist[:3]), _skew(twist[3:])
    zero = 0 * v
    ad = np.block([[w, v], [zero, w]])
    s = twist[3:] @ twist[3:]
    power = [mpmath.mpf(1), 0, 0, 0, 0]  # coefficients of adⁿ on ad⁰ … ad⁴
    total, factor = [mpmath.mpf(0)] * 5, mpmath.mpf(1)
    least, n = mpmath.mpf(10) ** (-DIGITS - 10), 0
    while n < 5 or factor * max(map(abs, power)) > least:
        total = [a + factor * b for a, b in zip(total, power, strict=True)]
        n += 1
        factor /= n + 1
        a0, a1, a2, a3, a4 = power
        power = [0, a0 - s * s * a4, a1, a2 - 2 * s * a4, a3]
    square = ad @ ad
    return (
        _eye(6) * total[0]
        + ad * total[1]
        + square * total[2]
        + square @ ad * total[3]
        + square @ square * total[4]
    )


def _vector(q: Array) -> Array:
    """Rotation vector of a quaternion of any length; the hemisphere is that of ``w ≥ 0``."""
    v, w = np.array(q[:3]), q[3]
    ratio = (v @ v) / (w * w) if w else mpmath.inf
    if ratio < mpmath.mpf("1e-4"):
        series = sum((-ratio) ** k / (2 * k + 1) for k in range(DIGITS // 4 + 5))
        return v * (2 * series / w)
    n = mpmath.sqrt(v @ v)
    return v * (2 * mpmath.atan2(n, w) / n)


def _skew(v: Array) -> Array:
    x, y, z = v
    o = 0 * x
    return np.array([[o, -z, y], [z, o, -x], [-y, x, o]])


def _cross(a: Array, b: Array) -> Array:
    return _skew(a) @ b


def _solve(A: Array, B: Array) -> Array:
    """Gauss–Jordan elimination with row pivots."""
    n = len(A)
    M = np.concatenate([A, np.reshape(B, (n, -1))], axis=1)
    for k in range(n):
        pivot = k + int(np.argmax([abs(entry) for entry in M[k:, k]]))
        M[[k, pivot]] = M[[pivot, k]]
        M[k] = M[k] / M[k, k]
        for i in range(n):
            if i != k:
                M[i] = M[i] - M[k] * M[i, k]
    return M[:, n:].reshape(np.shape(B))
