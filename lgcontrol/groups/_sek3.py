"""SE_K(3): K vectors that share a rotation; with position and velocity the extended pose."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Shape, Value, check_shape
from ._base import LieGroup
from ._element import check_element
from ._quaternion import nearest_rotation, quaternion_from_rotation, rotation_from_quaternion
from ._se3 import SE3
from ._so3 import SO3


@dataclass(frozen=True, repr=False)
class SEK3(LieGroup):
    """K vectors and a rotation: ``(R, p₁ … p_K)(R', p'₁ …) = (R R', p₁ + R p'₁ …)``.

    Coordinates ``[p₁; …; p_K; quaternion]``, tangent ``[ρ₁; …; ρ_K; ω]``, matrices of 3 + K rows.
    Each vector with the rotation is an element of SE(3). An element acts on K points, each as that
    element of SE(3) does.

    Inertial navigation (K = 2, `SE23`: position and velocity) and the mapping of landmarks are
    group-affine on it.

    Parameters
    ----------
    vectors : int
        K ≥ 1.

    Examples
    --------
    >>> from lgcontrol.groups import SE23, SO3
    >>> X = SE23.from_rotation(SO3.exp([0.0, 0.0, np.pi / 2]), [[1, 2, 3], [0.5, 0, 0]])
    >>> SE23.vector(X, 1), SEK3(4).dim
    (array([0.5, 0. , 0. ]), 15)

    References
    ----------
    Barrau and Bonnabel, The invariant extended Kalman filter as a stable observer, IEEE TAC 62(4),
    2017, section V.
    """

    vectors: int

    is_commutative = False

    def __post_init__(self) -> None:
        if index(self.vectors) < 1:
            raise ValueError(f"SE_K(3) needs K >= 1 vectors, got {self.vectors}")

    @property
    def name(self) -> str:  # type: ignore[override]
        """SE23 for the extended pose, SEK3(K) for others."""
        return "SE23" if self.vectors == 2 else f"SEK3({self.vectors})"

    @property
    def dim(self) -> int:  # type: ignore[override]
        """3 K + 3."""
        return 3 * self.vectors + 3

    @property
    def nq(self) -> int:  # type: ignore[override]
        """3 K + 4."""
        return 3 * self.vectors + 4

    @property
    def matrix_size(self) -> int:  # type: ignore[override]
        """3 + K."""
        return 3 + self.vectors

    @property
    def point_size(self) -> int:  # type: ignore[override]
        """3 K."""
        return 3 * self.vectors

    @property
    def unit_parts(self) -> tuple[slice, ...]:  # type: ignore[override]
        """The quaternion."""
        return (slice(3 * self.vectors, 3 * self.vectors + 4),)

    @property
    def _vector_names(self) -> tuple[str, ...]:
        prefixes = ("", "v") if self.vectors == 2 else tuple(f"p{k}" for k in range(self.vectors))
        return tuple(f"{prefix}{axis}" for prefix in prefixes for axis in "xyz")

    @property
    def _vector_units(self) -> tuple[str, ...]:
        units = ("m", "m/s") if self.vectors == 2 else ("m",) * self.vectors
        return tuple(unit for unit in units for _ in range(3))

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """x, y, z, vx, vy, vz for the extended pose, p0x … for others; then qx … qw."""
        return (*self._vector_names, "qx", "qy", "qz", "qw")

    @property
    def coordinate_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of the coordinates."""
        return (*self._vector_units, "", "", "", "")

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the vectors, then rx, ry, rz."""
        return (*self._vector_names, "rx", "ry", "rz")

    @property
    def tangent_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of tangent vectors."""
        return (*self._vector_units, "rad", "rad", "rad")

    @property
    def identity(self) -> np.ndarray:
        """Zero vectors, no rotation."""
        return np.concatenate([np.zeros(3 * self.vectors), SO3.identity])

    def _poses(self, X: Value) -> list[Value]:
        """The element of SE(3), or its tangent vector, that each vector makes with the rotation."""
        n = 3 * self.vectors
        return [ca.vertcat(X[k : k + 3], X[n:]) for k in range(0, n, 3)]

    def _joined(self, poses: list[Value]) -> Value:
        return ca.vertcat(*(pose[:3] for pose in poses), poses[0][3:])

    def _compose(self, X: Value, Y: Value) -> Value:
        pairs = zip(self._poses(X), self._poses(Y), strict=True)
        return self._joined([SE3._compose(a, b) for a, b in pairs])

    def _inverse(self, X: Value) -> Value:
        return self._joined([SE3._inverse(pose) for pose in self._poses(X)])

    def _exp(self, d: Value) -> Value:
        return self._joined([SE3._exp(pose) for pose in self._poses(d)])

    def _log(self, X: Value) -> Value:
        return self._joined([SE3._log(pose) for pose in self._poses(X)])

    def _hat(self, d: Value) -> Value:
        n = 3 * self.vectors
        top = ca.horzcat(SO3._hat(d[n:]), ca.reshape(d[:n], 3, self.vectors))
        return ca.vertcat(top, ca.DM(self.vectors, 3 + self.vectors))

    def _vee(self, M: Value) -> Value:
        return ca.vertcat(ca.vec(M[:3, 3:]), SO3._vee(M[:3, :3]))

    def _matrix(self, X: Value) -> Value:
        n, K = 3 * self.vectors, self.vectors
        top = ca.horzcat(rotation_from_quaternion(X[n:]), ca.reshape(X[:n], 3, K))
        return ca.vertcat(top, ca.horzcat(ca.DM(K, 3), ca.DM.eye(K)))

    def _from_matrix(self, M: Value) -> Value:
        return ca.vertcat(ca.vec(M[:3, 3:]), quaternion_from_rotation(M[:3, :3]))

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        repaired = np.array(M)
        repaired[..., :3, :3] = nearest_rotation(M[..., :3, :3])
        return repaired

    def _act(self, X: Value, p: Value) -> Value:
        pairs = zip(self._poses(X), range(0, self.point_size, 3), strict=True)
        return ca.vertcat(*(SE3._act(pose, p[k : k + 3]) for pose, k in pairs))

    def _bordered(self, matrices: list[Value]) -> Value:
        """Matrices of SE(3), whose diagonal blocks are all the same, as one."""
        n = 3 * self.vectors
        turn = matrices[0][3:, 3:]
        shifts = ca.vertcat(*(matrix[:3, 3:] for matrix in matrices))
        left = ca.diagcat(*[turn] * self.vectors)
        return ca.vertcat(ca.horzcat(left, shifts), ca.horzcat(ca.DM(3, n), turn))

    def _Ad(self, X: Value) -> Value:
        return self._bordered([SE3._Ad(pose) for pose in self._poses(X)])

    def _ad(self, d: Value) -> Value:
        return self._bordered([SE3._ad(pose) for pose in self._poses(d)])

    def _right_jacobian(self, d: Value) -> Value:
        return self._bordered([SE3._right_jacobian(pose) for pose in self._poses(d)])

    def _right_jacobian_inverse(self, d: Value) -> Value:
        return self._bordered([SE3._right_jacobian_inverse(pose) for pose in self._poses(d)])

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        vectors = rng.normal(size=(*shape, 3 * self.vectors))
        return np.concatenate([vectors, SO3.random(rng, shape)], axis=-1)

    def from_rotation(self, rotation: Any, vectors: Any) -> np.ndarray:
        """Coordinates from a rotation (SO3 coordinates) and the vectors.

        Parameters
        ----------
        rotation : array_like, shape (..., 4)
            Unit quaternion [x, y, z, w].
        vectors : array_like, shape (..., K, 3)

        Returns
        -------
        ndarray, shape (..., nq)
        """
        q = check_element("rotation", rotation, SO3, batch=True)
        p = check_shape("vectors", vectors, (self.vectors, 3), batch=True)
        batch = np.broadcast_shapes(q.shape[:-1], p.shape[:-2])
        flat = np.broadcast_to(p, (*batch, self.vectors, 3)).reshape(*batch, self.point_size)
        return np.concatenate([flat, np.broadcast_to(q, (*batch, 4))], axis=-1)

    def vector(self, X: Value, k: int) -> Value:
        """Vector k of X, counted from 0, shape (..., 3)."""
        if not 0 <= k < self.vectors:
            raise IndexError(f"{self.name} has vectors 0 … {self.vectors - 1}, not {k}")
        return self._entries(X, slice(3 * k, 3 * k + 3))

    def rotation(self, X: Value) -> Value:
        """Rotation of X as SO3 coordinates, shape (..., 4)."""
        return self._entries(X, slice(3 * self.vectors, self.nq))

    def _entries(self, X: Value, part: slice) -> Value:
        if isinstance(X, ca.SX | ca.MX | ca.DM):
            return X[part]
        where = f"coordinates on {self.name}"
        return check_shape(where, X, (self.nq,), batch=True, finite=False)[..., part]


SE23 = SEK3(2)
"""Extended poses: position, velocity and rotation of a body."""
