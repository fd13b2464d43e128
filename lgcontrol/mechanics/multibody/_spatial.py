"""Poses, twists, wrenches and inertias as CasADi columns that keep their structural zeros.

Twists ``[v; ω]`` and wrenches ``[f; m]``, linear part first. Constants are sparse DM, so that a
product with an axis or with a turn by 90° costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value

ROUNDING = 1e-15  # entries of rotation matrices below this are rounding of cos(π/2)


def hat(v: Value) -> Value:
    """``v̂`` with ``v̂ x = v × x``, without stored zeros."""
    return ca.sparsify(ca.skew(v))


def cross(a: Value, b: Value) -> Value:
    """``a × b`` for a column a and a column or matrix b."""
    return ca.cross(a, b) if b.shape[1] == 1 else hat(a) @ b


def twist_cross(V: Value, X: Value) -> Value:
    """Bracket ``ad_V X`` of twists; X may have several columns."""
    v, w = V[:3], V[3:]
    return ca.vertcat(cross(w, X[:3, :]) + cross(v, X[3:, :]), cross(w, X[3:, :]))


def wrench_cross(V: Value, W: Value) -> Value:
    """``−ad_Vᵀ W``: rate of a wrench carried along by the twist V."""
    v, w = V[:3], V[3:]
    return ca.vertcat(cross(w, W[:3, :]), cross(w, W[3:, :]) + cross(v, W[:3, :]))


def symmetric(matrix: Value) -> Value:
    """The symmetric matrix with this upper triangle (the lower one is then never computed)."""
    return ca.triu2symm(ca.triu(matrix))


def constant(array: Any) -> ca.DM:
    """A constant without stored zeros."""
    return ca.sparsify(ca.DM(np.asarray(array, dtype=float)))


def constant_rotation(R: np.ndarray) -> ca.DM:
    """A constant rotation matrix, with 0 and ±1 exact where rounding hid them."""
    R = np.where(np.abs(R) < ROUNDING, 0.0, R)
    return constant(np.where(np.abs(np.abs(R) - 1.0) < ROUNDING, np.sign(R), R))


class Motion(NamedTuple):
    """Pose of a frame b in a frame a: ``x_a = R x_b + p``."""

    R: Value
    p: Value

    @classmethod
    def identity(cls) -> Motion:
        """No motion."""
        return cls(ca.DM.eye(3), ca.DM(3, 1))

    @classmethod
    def from_matrix(cls, T: np.ndarray) -> Motion:
        """From a numeric homogeneous matrix, shape (4, 4)."""
        return cls(constant_rotation(T[:3, :3]), constant(T[:3, 3]))

    def __matmul__(self, other: Motion) -> Motion:
        """T_a_c = T_a_b T_b_c."""
        return Motion(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> Motion:
        """T_b_a."""
        return Motion(self.R.T, -(self.R.T @ self.p))

    def pull(self, V: Value) -> Value:
        """Twist (columns) in b of a twist in a: ``Ad⁻¹ V``."""
        w = V[3:, :]
        return ca.vertcat(self.R.T @ (V[:3, :] - cross(self.p, w)), self.R.T @ w)

    def push(self, V: Value) -> Value:
        """Twist (columns) in a of a twist in b: ``Ad V``."""
        w = self.R @ V[3:, :]
        return ca.vertcat(self.R @ V[:3, :] + cross(self.p, w), w)

    def push_wrench(self, W: Value) -> Value:
        """Wrench (columns) in a of a wrench in b: ``Ad⁻ᵀ W``."""
        f = self.R @ W[:3, :]
        return ca.vertcat(f, self.R @ W[3:, :] + cross(self.p, f))

    def pull_wrench(self, W: Value) -> Value:
        """Wrench (columns) in b of a wrench in a: ``Adᵀ W``."""
        f = W[:3, :]
        return ca.vertcat(self.R.T @ f, self.R.T @ (W[3:, :] - cross(self.p, f)))


class Inertia(NamedTuple):
    """Spatial inertia about the origin of a frame: mass m, first moment h = m c, tensor J."""

    m: Value
    h: Value
    J: Value

    @classmethod
    def zero(cls) -> Inertia:
        """No mass."""
        return cls(ca.DM(1, 1), ca.DM(3, 1), ca.DM(3, 3))

    @property
    def is_zero(self) -> bool:
        """Whether nothing is stored."""
        return self.m.nnz() == 0 and self.h.nnz() == 0 and self.J.nnz() == 0

    def __add__(self, other: Inertia) -> Inertia:  # type: ignore[override]
        """Two bodies in one frame taken together."""
        return Inertia(self.m + other.m, self.h + other.h, self.J + other.J)

    def __sub__(self, other: Inertia) -> Inertia:
        """One body taken out of another."""
        return Inertia(*(ca.sparsify(a - b) for a, b in zip(self, other, strict=True)))

    def moved(self, T: Motion) -> Inertia:
        """The same body seen from the frame a of ``T = T_a_b``."""
        R, p = T
        h = R @ self.h
        shift = h + self.m * p / 2  # −(p̂ ĥ + ĥ p̂) − m p̂ p̂ with one product
        J = R @ self.J @ R.T - p @ shift.T - shift @ p.T
        J = symmetric(J) + 2 * ca.dot(p, shift) * ca.DM.eye(3)
        return Inertia(self.m, h + self.m * p, J)

    def __matmul__(self, V: Value) -> Value:
        """Momentum [p; L] of twists (columns)."""
        v, w = V[:3, :], V[3:, :]
        return ca.vertcat(self.m * v - cross(self.h, w), cross(self.h, v) + self.J @ w)

    def coriolis(self, V: Value) -> Velocity:
        """``2 B = V×* I − I V× + (I V)×̄*`` (see `Velocity`)."""
        v, w = V[:3], V[3:]
        momentum = self @ V
        p, L = momentum[:3], momentum[3:]
        rate = cross(w, self.J)
        rate = rate + rate.T  # ŵ J − J ŵ = ŵ J + (ŵ J)ᵀ, J being symmetric
        vh = v @ self.h.T
        rate = rate - (vh + vh.T) + 2 * ca.dot(v, self.h) * ca.DM.eye(3)
        return Velocity(p, rate - hat(L))

    def matrix(self) -> Value:
        """6 × 6 matrix."""
        h = hat(self.h)
        return ca.blockcat([[self.m * ca.DM.eye(3), -h], [h, self.J]])


class Velocity(NamedTuple):
    """The 6 × 6 matrix 2 B that velocity products are made of: it maps [v; ω] to [2 ω×p; K ω].

    ``B = ½ (V×* I − I V× + (I V)×̄*)`` makes ``İ − 2 B`` skew and gives the first derivatives of
    a composite's inertial wrench (Echeandia and Wensing 2021). It annihilates translations, so
    the momentum p (3) and a 3 × 3 matrix K are all there is; for composites both add.
    """

    p: Value
    K: Value

    @classmethod
    def zero(cls) -> Velocity:
        """A composite at rest."""
        return cls(ca.DM(3, 1), ca.DM(3, 3))

    def __add__(self, other: Velocity) -> Velocity:  # type: ignore[override]
        """Two bodies in one frame taken together."""
        return Velocity(self.p + other.p, self.K + other.K)

    def moved(self, T: Motion) -> Velocity:
        """The same composite seen from the frame a of ``T = T_a_b``."""
        R, r = T
        p = R @ self.p
        # 2 r̂ p̂ = 2 (p rᵀ − (r·p) E)
        K = R @ self.K @ R.T - 2 * (p @ r.T) + 2 * ca.dot(r, p) * ca.DM.eye(3)
        return Velocity(p, K)

    def __matmul__(self, V: Value) -> Value:
        """``2 B V`` for twists (columns)."""
        w = V[3:, :]
        return ca.vertcat(-2 * cross(self.p, w), self.K @ w)

    def transposed(self, V: Value) -> Value:
        """``(2 B)ᵀ V``: a pure couple, returned as 3 rows."""
        return 2 * cross(self.p, V[:3, :]) + self.K.T @ V[3:, :]
