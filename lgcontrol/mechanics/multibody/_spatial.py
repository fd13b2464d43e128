"""Poses, twists, wrenches and inertias as CasADi columns that keep their structural zeros.

Twists ``[v; ω]`` and wrenches ``[f; m]``, linear part first. Constants are sparse DM, so that a
product with an axis or with a turn by 90° costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value
from ...groups import LieGroup

COSINE_ROUNDING = 1e-15  # entries of rotation matrices below this are rounding of cos(π/2)


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


def carried_along(S: Value, W: Value) -> Value:
    """`wrench_cross` of each column of S with one wrench."""
    columns = [wrench_cross(S[:, j], W) for j in range(S.shape[1])]
    return ca.horzcat(ca.SX(6, 0), *columns)


def symmetric(matrix: Value) -> Value:
    """The symmetric matrix with this upper triangle (the lower one is then never computed)."""
    return ca.triu2symm(ca.triu(matrix))


def constant(array: Any) -> ca.DM:
    """A constant without stored zeros."""
    return ca.sparsify(ca.DM(np.asarray(array, dtype=float)))


def constant_rotation(R: np.ndarray) -> ca.DM:
    """A constant rotation matrix, with 0 and ±1 exact where rounding hid them."""
    R = np.where(np.abs(R) < COSINE_ROUNDING, 0.0, R)
    return constant(np.where(np.abs(np.abs(R) - 1.0) < COSINE_ROUNDING, np.sign(R), R))


def point_accelerations(w: Value, dw: Value) -> Value:
    """``U = ω̇^ + ω^ ω^``: a point at r of a body accelerates by U r against its origin."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return ca.sparsify(
        ca.blockcat(
            [
                [-(yy + zz), xy - dw[2], xz + dw[1]],
                [xy + dw[2], -(xx + zz), yz - dw[0]],
                [xz - dw[1], yz + dw[0], -(xx + yy)],
            ]
        )
    )


def couple(Sigma: Value, U: Value) -> Value:
    """``∫ r × U r dm`` for the second moments Σ = ∫ r rᵀ dm."""
    s, yy_xx = Sigma, U[1, 1] - U[0, 0]
    zz_yy, xx_zz = U[2, 2] - U[1, 1], U[0, 0] - U[2, 2]
    x = s[1, 2] * zz_yy + s[0, 1] * U[2, 0] - s[0, 2] * U[1, 0] + s[1, 1] * U[2, 1]
    y = s[0, 2] * xx_zz + s[1, 2] * U[0, 1] - s[0, 1] * U[2, 1] + s[2, 2] * U[0, 2]
    z = s[0, 1] * yy_xx + s[0, 2] * U[1, 2] - s[1, 2] * U[0, 2] + s[0, 0] * U[1, 0]
    return ca.vertcat(x - s[2, 2] * U[1, 2], y - s[0, 0] * U[2, 0], z - s[1, 1] * U[0, 1])


class Pose(NamedTuple):
    """Pose of a frame b in a frame a: ``x_a = R x_b + p``."""

    R: Value
    p: Value

    @classmethod
    def identity(cls) -> Pose:
        """No motion."""
        return cls(ca.DM.eye(3), ca.DM(3, 1))

    @classmethod
    def of(cls, group: LieGroup, X: Value) -> Pose:
        """Of a body motion, from its coordinates on a group."""
        T = group.homogeneous(X)
        return cls(T[:3, :3], T[:3, 3])

    @classmethod
    def from_matrix(cls, T: np.ndarray) -> Pose:
        """From a numeric homogeneous matrix, shape (4, 4)."""
        return cls(constant_rotation(T[:3, :3]), constant(T[:3, 3]))

    def __matmul__(self, other: Pose) -> Pose:
        """T_a_c = T_a_b T_b_c."""
        return Pose(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> Pose:
        """T_b_a."""
        return Pose(self.R.T, -(self.R.T @ self.p))

    def pull(self, V: Value) -> Value:
        """Twist (columns) in b of a twist in a: ``Ad⁻¹ V``."""
        w = V[3:, :]
        return ca.vertcat(self.R.T @ (V[:3, :] - cross(self.p, w)), self.R.T @ w)

    def push(self, V: Value) -> Value:
        """Twist (columns) in a of a twist in b: ``Ad V``."""
        w = self.R @ V[3:, :]
        return ca.vertcat(self.R @ V[:3, :] + cross(self.p, w), w)

    def twists_in(self, V: Value, reference: str) -> Value:
        """Twists (columns) of b in a reference, a being the world."""
        return self.push(V) if reference == "spatial" else _turned(self.R, V, reference)

    def wrenches_in(self, W: Value, reference: str) -> Value:
        """Wrenches (columns) of b in a reference, a being the world."""
        return self.push_wrench(W) if reference == "spatial" else _turned(self.R, W, reference)

    def wrenches_from(self, W: Value, reference: str) -> Value:
        """Wrenches (columns) in axes and about the origin of b, given in a reference."""
        return self.pull_wrench(W) if reference == "spatial" else _turned(self.R.T, W, reference)

    def push_wrench(self, W: Value) -> Value:
        """Wrench (columns) in a of a wrench in b: ``Ad⁻ᵀ W``."""
        f = self.R @ W[:3, :]
        return ca.vertcat(f, self.R @ W[3:, :] + cross(self.p, f))

    def pull_wrench(self, W: Value) -> Value:
        """Wrench (columns) in b of a wrench in a: ``Adᵀ W``."""
        f = W[:3, :]
        return ca.vertcat(self.R.T @ f, self.R.T @ (W[3:, :] - cross(self.p, f)))


def _turned(R: Value, X: Value, reference: str) -> Value:
    """Twists or wrenches (columns) with the parts turned that a reference has in other axes."""
    if reference == "body":
        return X
    return ca.vertcat(R @ X[:3, :], R @ X[3:, :] if reference == "hybrid" else X[3:, :])


def _lacking(Q: Value) -> Value:
    """``tr(Q) E − Q``."""
    x, y, z = Q[0, 0], Q[1, 1], Q[2, 2]
    return ca.diag(ca.vertcat(y + z, x + z, x + y)) - (Q - ca.diag(ca.diag(Q)))


def moved_matrix(A: Value, T: Pose) -> Value:
    """Matrix from twists to wrenches (6 × 6) in a frame b, as it is in the frame a of T_a_b."""
    X = T.pull(ca.DM.eye(6))
    return X.T @ A @ X


class Inertia(NamedTuple):
    """Spatial inertia by its moments: m = ∫ dm, h = ∫ r dm, Σ = ∫ r rᵀ dm.

    Second moments change frames with fewer operations than the inertia tensor
    ``J = tr(Σ) E − Σ``.
    """

    m: Value
    h: Value
    Sigma: Value

    @classmethod
    def zero(cls) -> Inertia:
        """No mass."""
        return cls(ca.DM(1, 1), ca.DM(3, 1), ca.DM(3, 3))

    @classmethod
    def from_tensor(cls, m: Value, h: Value, J: Value) -> Inertia:
        """From the inertia tensor about the frame's origin."""
        return cls(m, h, ca.sparsify(ca.trace(J) / 2 * ca.DM.eye(3) - J))

    @property
    def J(self) -> Value:
        """Inertia tensor about the frame's origin."""
        return _lacking(self.Sigma)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is stored."""
        return all(moment.nnz() == 0 for moment in self)

    def __add__(self, other: Inertia) -> Inertia:  # type: ignore[override]
        """Two bodies in one frame taken together."""
        return Inertia(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Inertia) -> Inertia:
        """One body taken out of another."""
        return Inertia(*(ca.sparsify(a - b) for a, b in zip(self, other, strict=True)))

    def moved(self, T: Pose) -> Inertia:
        """The same body seen from the frame a of ``T = T_a_b``."""
        R, p = T
        h = R @ self.h
        shift = p @ (h + self.m * p / 2).T
        return Inertia(self.m, h + self.m * p, symmetric(R @ self.Sigma @ R.T) + (shift + shift.T))

    def __matmul__(self, V: Value) -> Value:
        """Momentum [p; L] of twists (columns)."""
        v, w = V[:3, :], V[3:, :]
        return ca.vertcat(self.m * v - cross(self.h, w), cross(self.h, v) + self.J @ w)

    def force(self, V: Value, A: Value) -> Value:
        """Inertial wrench ``I A − ad_Vᵀ I V`` of a body with the twist V and its rate A."""
        v, w = V[:3], V[3:]
        lift, U = A[:3] + cross(w, v), point_accelerations(w, A[3:])
        force = self.m * lift + U @ self.h
        return ca.vertcat(force, couple(self.Sigma, U) + cross(self.h, lift))

    def velocity(self, V: Value) -> Velocity:
        """`Velocity` of a body with the twist V."""
        v, w = V[:3], V[3:]
        p = self.m * v + cross(w, self.h)
        return Velocity(p, v @ self.h.T + cross(w, self.Sigma))


class Velocity(NamedTuple):
    """First moments of velocity, ``p = ∫ ṙ dm`` and ``Q = ∫ ṙ rᵀ dm``, which add for composites.

    They make up the matrix of velocity products ``2 B = V×* I − I V× + (I V)×̄*``. For a particle
    it maps a twist [v; ω] to the force ``2 m ω × ṙ`` at r. Hence ``2 B [v; ω] = [2 ω × p; 2 (tr(Q)
    E − Q) ω]``. B makes ``İ − 2 B`` skew and gives the derivatives of inertial wrenches (Echeandia
    and Wensing 2021).
    """

    p: Value
    Q: Value

    def __add__(self, other: Velocity) -> Velocity:  # type: ignore[override]
        """Two bodies in one frame taken together."""
        return Velocity(self.p + other.p, self.Q + other.Q)

    def moved(self, T: Pose) -> Velocity:
        """The same composite seen from the frame a of ``T = T_a_b``."""
        p = T.R @ self.p
        return Velocity(p, T.R @ self.Q @ T.R.T + p @ T.p.T)

    @property
    def angular_momentum(self) -> Value:
        """``∫ r × ṙ dm``."""
        Q = self.Q
        return ca.vertcat(Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1])

    @property
    def half_couple(self) -> Value:
        """``tr(Q) E − Q``."""
        return _lacking(self.Q)

    def half(self, V: Value) -> Value:
        """``B V`` for twists (columns)."""
        w = V[3:, :]
        return ca.vertcat(-cross(self.p, w), self.half_couple @ w)

    def half_transposed(self, V: Value) -> Value:
        """``Bᵀ V``: a pure couple, returned as 3 rows."""
        return cross(self.p, V[:3, :]) + self.half_couple.T @ V[3:, :]
