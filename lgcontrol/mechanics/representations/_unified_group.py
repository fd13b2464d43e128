"""SE(3) with tangent vectors in unified velocity coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import Shape
from ...groups import SE3, LieGroup


@dataclass(frozen=True, repr=False)
class UnifiedMotions(LieGroup):
    """Motions of a body whose tangent vectors are ``w = D [v; ω]``: SE(3) in another basis.

    Elements, products and matrices are those of SE(3). ``exp(w)`` is ``exp(D⁻¹ w)`` of SE(3), and
    Jacobians and adjoints are those of SE(3) between D and D⁻¹.

    Parameters
    ----------
    rows : tuple of tuple of float
        D, row by row, so that groups compare by value.

    References
    ----------
    S. Holzinger, J. Gerstmayr, J. Schöberl: eq. 54 and 72.
    """

    rows: tuple[tuple[float, ...], ...]

    name = "UnifiedMotions"
    dim, nq = SE3.dim, SE3.nq
    coordinate_names, coordinate_units = SE3.coordinate_names, SE3.coordinate_units
    tangent_names = tuple(f"w{k + 1}" for k in range(SE3.dim))
    tangent_units = ("m",) * SE3.dim
    unit_parts = SE3.unit_parts

    @property
    def identity(self) -> np.ndarray:
        """No motion."""
        return SE3.identity

    @property
    def selection(self) -> np.ndarray:
        """``D⁻¹``, shape (6, 6): body twist ``[v; ω] = D⁻¹ w``."""
        return np.linalg.inv(self.rows)

    @property
    def _D(self) -> ca.DM:
        return ca.sparsify(ca.DM(np.array(self.rows)))

    @property
    def _back(self) -> ca.DM:
        return ca.sparsify(ca.DM(self.selection))

    def _compose(self, X: Value, Y: Value) -> Value:
        return SE3._compose(X, Y)

    def _inverse(self, X: Value) -> Value:
        return SE3._inverse(X)

    def _exp(self, d: Value) -> Value:
        return SE3._exp(self._back @ d)

    def _log(self, X: Value) -> Value:
        return self._D @ SE3._log(X)

    def _hat(self, d: Value) -> Value:
        return SE3._hat(self._back @ d)

    def _vee(self, M: Value) -> Value:
        return self._D @ SE3._vee(M)

    def _matrix(self, X: Value) -> Value:
        return SE3._matrix(X)

    def _from_matrix(self, M: Value) -> Value:
        return SE3._from_matrix(M)

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return SE3._pose(X)

    def _Ad(self, X: Value) -> Value:
        return self._D @ SE3._Ad(X) @ self._back

    def _ad(self, d: Value) -> Value:
        return self._D @ SE3._ad(self._back @ d) @ self._back

    def _right_jacobian(self, d: Value) -> Value:
        return self._D @ SE3._right_jacobian(self._back @ d) @ self._back

    def _right_jacobian_inverse(self, d: Value) -> Value:
        return self._D @ SE3._right_jacobian_inverse(self._back @ d) @ self._back

    def _rotation_squared(self, d: Value) -> Value:
        return SE3._rotation_squared(self._back @ d)

    def _project_matrix(self, M: Any) -> np.ndarray:
        return SE3._project_matrix(M)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return SE3._random(rng, shape)
