"""SE_K(2) and SE_K(3): K vectors that share a rotation; the extended pose is one of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Shape, check_shape
from . import _series
from ._base import LieGroup
from ._element import check_element
from ._se2 import SE2
from ._se3 import SE3
from ._so2 import SO2
from ._so3 import SO3


def _then_rotation(vectors: str, rotation: str) -> Any:
    """Property with the entries of the vectors, then those of the rotation."""

    def joined(self: _SharedRotation) -> tuple[str, ...]:
        return (*getattr(self, vectors), *getattr(self._rotation, rotation))

    return property(joined, doc=f"{rotation.replace('_', ' ').capitalize()}, the rotation's last.")


class _SharedRotation(LieGroup):
    """K vectors and one rotation; each vector with it is a motion of the plane or of space."""

    vectors: int
    _motion: ClassVar[LieGroup]
    _rotation: ClassVar[LieGroup]
    _size: ClassVar[int]

    is_commutative = False

    @property
    @abstractmethod
    def _vector_names(self) -> tuple[str, ...]: ...

    @property
    def _vector_units(self) -> tuple[str, ...]:
        return ("m",) * self.point_size

    def _check_vectors(self) -> None:
        if index(self.vectors) < 1:
            raise ValueError(f"SE_K({self._size}) needs K >= 1 vectors, got {self.vectors}")

    @property
    def dim(self) -> int:  # type: ignore[override]
        """That of the vectors and of the rotation."""
        return self.point_size + self._rotation.dim

    @property
    def nq(self) -> int:  # type: ignore[override]
        """Coordinates of the vectors and of the rotation."""
        return self.point_size + self._rotation.nq

    @property
    def matrix_size(self) -> int:  # type: ignore[override]
        """Size of the space, and a row for each vector."""
        return self._size + self.vectors

    @property
    def point_size(self) -> int:  # type: ignore[override]
        """K points."""
        return self._size * self.vectors

    @property
    def unit_parts(self) -> tuple[slice, ...]:  # type: ignore[override]
        """The coordinates of the rotation."""
        return (slice(self.point_size, self.nq),)

    coordinate_names = _then_rotation("_vector_names", "coordinate_names")
    coordinate_units = _then_rotation("_vector_units", "coordinate_units")
    tangent_names = _then_rotation("_vector_names", "tangent_names")
    tangent_units = _then_rotation("_vector_units", "tangent_units")

    @property
    def identity(self) -> np.ndarray:
        """Zero vectors, no rotation."""
        return np.concatenate([np.zeros(self.point_size), self._rotation.identity])

    def _poses(self, X: Value) -> list[Value]:
        """The motion, or its tangent vector, that each vector makes with the rotation."""
        n, d = self.point_size, self._size
        return [ca.vertcat(X[k : k + d], X[n:]) for k in range(0, n, d)]

    def _joined(self, poses: list[Value]) -> Value:
        d = self._size
        return ca.vertcat(*(pose[:d] for pose in poses), poses[0][d:])

    def _compose(self, X: Value, Y: Value) -> Value:
        pairs = zip(self._poses(X), self._poses(Y), strict=True)
        return self._joined([self._motion._compose(a, b) for a, b in pairs])

    def _inverse(self, X: Value) -> Value:
        return self._joined([self._motion._inverse(pose) for pose in self._poses(X)])

    def _exp(self, d: Value) -> Value:
        return self._joined([self._motion._exp(pose) for pose in self._poses(d)])

    def _log(self, X: Value) -> Value:
        return self._joined([self._motion._log(pose) for pose in self._poses(X)])

    def _hat(self, d: Value) -> Value:
        n, size, K = self.point_size, self._size, self.vectors
        top = ca.horzcat(self._rotation._hat(d[n:]), ca.reshape(d[:n], size, K))
        return ca.vertcat(top, ca.DM(K, size + K))

    def _vee(self, M: Value) -> Value:
        d = self._size
        return ca.vertcat(ca.vec(M[:d, d:]), self._rotation._vee(M[:d, :d]))

    def _matrix(self, X: Value) -> Value:
        n, d, K = self.point_size, self._size, self.vectors
        top = ca.horzcat(self._rotation._matrix(X[n:]), ca.reshape(X[:n], d, K))
        return ca.vertcat(top, ca.horzcat(ca.DM(K, d), ca.DM.eye(K)))

    def _from_matrix(self, M: Value) -> Value:
        d = self._size
        return ca.vertcat(ca.vec(M[:d, d:]), self._rotation._from_matrix(M[:d, :d]))

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        repaired, d = np.array(M), self._size
        repaired[..., :d, :d] = self._rotation._project_matrix(repaired[..., :d, :d])
        return repaired

    def _act(self, X: Value, p: Value) -> Value:
        d = self._size
        pairs = zip(self._poses(X), range(0, self.point_size, d), strict=True)
        return ca.vertcat(*(self._motion._act(pose, p[k : k + d]) for pose, k in pairs))

    def _bordered(self, matrices: list[Value]) -> Value:
        """Matrices of single motions, whose diagonal blocks are all the same, as one."""
        n, d = self.point_size, self._size
        turn = matrices[0][d:, d:]
        shifts = ca.vertcat(*(matrix[:d, d:] for matrix in matrices))
        left = ca.diagcat(*[matrices[0][:d, :d]] * self.vectors)
        return ca.vertcat(ca.horzcat(left, shifts), ca.horzcat(ca.DM(turn.shape[0], n), turn))

    def _Ad(self, X: Value) -> Value:
        return self._bordered([self._motion._Ad(pose) for pose in self._poses(X)])

    def _ad(self, d: Value) -> Value:
        return self._bordered([self._motion._ad(pose) for pose in self._poses(d)])

    def _right_jacobian(self, d: Value) -> Value:
        return self._bordered([self._motion._right_jacobian(pose) for pose in self._poses(d)])

    def _right_jacobian_inverse(self, d: Value) -> Value:
        return self._bordered(
            [self._motion._right_jacobian_inverse(pose) for pose in self._poses(d)]
        )

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        vectors = rng.normal(size=(*shape, self.point_size))
        return np.concatenate([vectors, self._rotation.random(rng, shape)], axis=-1)

    def from_rotation(self, rotation: Any, vectors: Any) -> np.ndarray:
        """Coordinates from a rotation and the vectors.

        Parameters
        ----------
        rotation : array_like, shape (..., 4) or (..., 2)
            Coordinates on SO3 or SO2.
        vectors : array_like, shape (..., K, 3) or (..., K, 2)

        Returns
        -------
        ndarray, shape (..., nq)
        """
        q = check_element("rotation", rotation, self._rotation, batch=True)
        p = check_shape("vectors", vectors, (self.vectors, self._size), batch=True)
        batch = np.broadcast_shapes(q.shape[:-1], p.shape[:-2])
        flat = np.broadcast_to(p, (*batch, self.vectors, self._size))
        flat = flat.reshape(*batch, self.point_size)
        return np.concatenate([flat, np.broadcast_to(q, (*batch, q.shape[-1]))], axis=-1)

    def vector(self, X: Value, k: int) -> Value:
        """Vector k of X, counted from 0, shape (..., 3) or (..., 2)."""
        if not 0 <= k < self.vectors:
            raise IndexError(f"{self.name} has vectors 0 … {self.vectors - 1}, not {k}")
        return self._entries(X, slice(self._size * k, self._size * (k + 1)))

    def rotation(self, X: Value) -> Value:
        """Rotation of X as coordinates on SO3 or SO2."""
        return self._entries(X, slice(self.point_size, self.nq))

    def _entries(self, X: Value, part: slice) -> Value:
        if isinstance(X, ca.SX | ca.MX | ca.DM):
            return X[part]
        where = f"coordinates on {self.name}"
        return check_shape(where, X, (self.nq,), batch=True, finite=False)[..., part]


@dataclass(frozen=True, repr=False)
class SEK3(_SharedRotation):
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

    _motion, _rotation, _size = SE3, SO3, 3

    def __post_init__(self) -> None:
        self._check_vectors()

    @property
    def name(self) -> str:  # type: ignore[override]
        """SE23 for the extended pose, SEK3(K) for others."""
        return "SE23" if self.vectors == 2 else f"SEK3({self.vectors})"

    @property
    def _vector_names(self) -> tuple[str, ...]:
        prefixes = ("", "v") if self.vectors == 2 else tuple(f"p{k}" for k in range(self.vectors))
        return tuple(f"{prefix}{axis}" for prefix in prefixes for axis in "xyz")

    @property
    def _vector_units(self) -> tuple[str, ...]:
        units = ("m", "m/s") if self.vectors == 2 else ("m",) * self.vectors
        return tuple(unit for unit in units for _ in range(3))


@dataclass(frozen=True, repr=False)
class SEK2(_SharedRotation):
    """K vectors of the plane and a rotation, as `SEK3`: a robot and landmarks on its map.

    Coordinates ``[p₁; …; p_K; cos, sin]``, tangent ``[ρ₁; …; ρ_K; ω]``, matrices of 2 + K rows.
    Each vector with the rotation is an element of SE(2).

    Parameters
    ----------
    vectors : int
        K ≥ 1.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> X = SEK2(2).from_rotation(SO2.from_angle(np.pi / 2), [[1, 2], [3, 4]])
    >>> SEK2(2).act(X, [1, 0, 0, 1]).round(12), SEK2(2).tangent_names
    (array([1., 3., 2., 4.]), ('p0x', 'p0y', 'p1x', 'p1y', 'rz'))

    References
    ----------
    Brossard, Barrau and Bonnabel, Exploiting symmetries to design EKFs with consistency properties
    for navigation and SLAM, IEEE Sensors Journal 19(4), 2019.
    """

    vectors: int

    _motion, _rotation, _size = SE2, SO2, 2

    def __post_init__(self) -> None:
        self._check_vectors()

    @property
    def name(self) -> str:  # type: ignore[override]
        """SEK2(K)."""
        return f"SEK2({self.vectors})"

    @property
    def _vector_names(self) -> tuple[str, ...]:
        return tuple(f"p{k}{axis}" for k in range(self.vectors) for axis in "xy")


SE23 = SEK3(2)
"""Extended poses: position, velocity and rotation of a body."""


def held_motion(omega: Value, a: Value, dt: Value) -> Value:
    """Extended pose after a rate and an acceleration in body axes that are held, from identity.

    ``R = exp(φ)`` with ``φ = ω dt``, ``v = ∫₀¹ exp(sφ) ds a dt`` and
    ``p = ∫₀¹ (1 − s) exp(sφ) ds a dt²``: exact for intervals of any length. The result is on SE23;
    the rates are in rad/s and m/s².

    Examples
    --------
    A quarter turn in one second, while 1 m/s² acts along the axis that turns:

    >>> held_motion(ca.DM([0, 0, np.pi / 2]), ca.DM([1, 0, 0]), 1.0).full().ravel()[:5].round(6)
    array([0.405285, 0.231335, 0.      , 0.63662 , 0.63662 ])
    """
    phi = omega * dt
    s = ca.sumsqr(phi)
    once = ca.cross(phi, a)
    twice = ca.cross(phi, once)
    v = a + _series.versine(s) * once + _series.remainder(s) * twice
    p = a / 2 + _series.remainder(s) * once + _series.versine_remainder(s) * twice
    return ca.vertcat(p * dt * dt, v * dt, SO3.exp(phi))
