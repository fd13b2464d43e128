"""Unified local velocity coordinates: six speeds of points of a body in place of its twist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from ...codegen import ModelFunction, Value, trace
from ...codegen._internal import Shape, check_shape
from ...groups import SE3, LieGroup
from ..inertia._inertia import SpatialInertia


@dataclass(frozen=True, repr=False)
class UnifiedMotions(LieGroup):
    """Motions of a body whose tangent vectors are ``w = D [v; ω]``: SE(3) in another basis.

    Elements, products and matrices are those of SE(3). ``exp(w)`` is ``exp(D⁻¹ w)`` of SE(3), and
    Jacobians and adjoints are those of SE(3) between D and D⁻¹.

    References
    ----------
    S. Holzinger, J. Gerstmayr, J. Schöberl: eq. 54 and 72.
    """

    rows: tuple[tuple[float, ...], ...]  # D, row by row, so that groups compare by value

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


# Above this the speeds tell the twist with fewer than half of its digits.
WORST_CONDITION = 1e8

# Rows count as dependent with a larger share than this in what vanishes.
UNIFIED_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class UnifiedVelocity:
    """``w = D v``: speeds of six points of a body along six directions, in place of [v; ω].

    Row i of D is ``[bᵢᵀ, (yᵢ × bᵢ)ᵀ]`` with the point yᵢ and the direction bᵢ, in the body frame.
    All coordinates are translational velocities; none is told from the others. The inertia and
    the equations of motion in them are constant combinations of the usual ones,
    ``M_w ẇ + Γ(w) w = Q`` with ``M_w = D⁻ᵀ M D⁻¹``.

    Parameters
    ----------
    points : array_like, shape (6, 3)
        Points yᵢ from the origin of the body frame [m].
    directions : array_like, shape (6, 3)
        Directions bᵢ; lengths count: a direction of length 2 doubles its speed.

    Attributes
    ----------
    matrix : ndarray, shape (6, 6)
        D.
    inverse : ndarray, shape (6, 6)
        D⁻¹; for `hexahedral` and `tetrahedral` of size 1 it is Dᵀ.
    condition : float
        Condition number of D.

    Raises
    ------
    ValueError
        If some of the speeds follow from the others: the condition number is above 1e8. The message
        names the rows that depend on each other.

    References
    ----------
    S. Holzinger, J. Gerstmayr, J. Schöberl: A rigid body formulation with non-redundant unified
    local velocity coordinates. Its equation numbers are used here; what they misprint is in
    ``docs/theory/misprints.md``.

    Examples
    --------
    >>> w = UnifiedVelocity.hexahedral()
    >>> w.from_twist([0, 0, 0, 0, 0, 1.0]).round(4).tolist()
    [0.7071, 0.7071, 0.0, 0.0, 0.0, 0.0]
    >>> round(w.condition, 12)
    1.0
    """

    points: Any
    directions: Any

    block = "unified_velocity"

    def __post_init__(self) -> None:
        for name in ("points", "directions"):
            value = check_shape(f"UnifiedVelocity: {name}", getattr(self, name), (6, 3))
            value = np.array(value)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        if not self.condition <= WORST_CONDITION:
            raise ValueError(
                f"UnifiedVelocity: {_dependent_rows(self.matrix)}: the condition number of D is "
                f"{self.condition:.3g}, expected at most {WORST_CONDITION:.0e}; move one of these "
                "points off the line that its direction makes, or turn its direction"
            )

    @classmethod
    def hexahedral(cls, lengths: Any = (1.0, 1.0, 1.0)) -> UnifiedVelocity:
        """Centres of the sides of a box, each moving along its side.

        Parameters
        ----------
        lengths : array_like, shape (3,)
            Half the sides of the box [m]; with ones D is orthogonal.

        References
        ----------
        Eq. 19 to 24.
        """
        lengths = check_shape("UnifiedVelocity.hexahedral: lengths", lengths, (3,))
        at, along = (1, 2, 0), (0, 1, 2)
        points, directions = np.zeros((6, 3)), np.zeros((6, 3))
        for k in range(3):
            points[2 * k, at[k]], points[2 * k + 1, at[k]] = -lengths[at[k]], lengths[at[k]]
            directions[2 * k, along[k]], directions[2 * k + 1, along[k]] = 1, -1
        return cls(points, directions / np.sqrt(2))

    @classmethod
    def tetrahedral(cls, size: float = 1.0) -> UnifiedVelocity:
        """Midpoints of the edges of a regular tetrahedron, each moving along its edge.

        Its corners are four corners of a cube about the origin, so the midpoints are the centres
        of the cube's sides.

        Parameters
        ----------
        size : float
            Half the side of the cube [m]; with 1 D is orthogonal.

        References
        ----------
        Figure 4b: the degrees of freedom of Nédélec's first tetrahedral element.
        """
        corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float64)
        edges = [(i, j) for i in range(4) for j in range(i + 1, 4)]
        points = np.array([(corners[i] + corners[j]) / 2 for i, j in edges])
        directions = np.array([(corners[j] - corners[i]) / 4 for i, j in edges])
        return cls(size * points, directions)

    # w and twists

    @cached_property
    def matrix(self) -> np.ndarray:
        """D of ``w = D [v; ω]`` (eq. 54)."""
        return np.hstack([self.directions, np.cross(self.points, self.directions)])

    @cached_property
    def inverse(self) -> np.ndarray:
        """``D⁻¹``."""
        return np.linalg.inv(self.matrix)

    @cached_property
    def condition(self) -> float:
        """Condition number of D in the 2-norm; infinite where D is singular."""
        singular = np.linalg.svd(self.matrix, compute_uv=False)
        return float(singular[0] / singular[-1]) if singular[-1] > 0 else np.inf

    @cached_property
    def group(self) -> UnifiedMotions:
        """SE(3) with tangent vectors w: errors, integrators and mechanisms in these coordinates."""
        return UnifiedMotions(tuple(map(tuple, self.matrix.tolist())))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return UnifiedMotions.tangent_names

    @cached_property
    def from_twist(self) -> ModelFunction:
        """``w = D [v; ω]`` [m/s] of body twists: (twist) → (..., 6)."""
        return self._function("coordinates", "twist", (6,), lambda v: ca.DM(self.matrix) @ v)

    @cached_property
    def to_twist(self) -> ModelFunction:
        """``[v; ω] = D⁻¹ w``, the left-trivialised twist: (w) → (..., 6)."""
        return self._function("twist", "w", (6,), lambda w: ca.DM(self.inverse) @ w)

    @cached_property
    def interpolation(self) -> ModelFunction:
        """N of the velocity ``v(y) = N(y) w`` of a point, in body axes: (point) → (..., 3, 6).

        References
        ----------
        Eq. 26 and 27, there for the box.
        """
        return self._function("interpolation", "point", (3, 6), self._interpolation)

    @cached_property
    def basis_rates(self) -> ModelFunction:
        """Rates of the body's axes in body axes, columns of E(w), the hat of ω: (w) → (..., 3, 3).

        References
        ----------
        Eq. 37 to 40, there for the box.
        """
        return self._function("basis_rates", "w", (3, 3), self._basis_rates)

    @cached_property
    def point_acceleration(self) -> ModelFunction:
        """Acceleration ``N(y) ẇ + E(w) N(y) w`` of a point: (point, w, w_rate) → (..., 3).

        In body axes [m/s²], of the point against the inertial frame, without gravity.

        References
        ----------
        Eq. 41 and 42.
        """
        return trace(
            "point_acceleration",
            lambda y, w, rate: (
                self._interpolation(y) @ rate + self._basis_rates(w) @ self._interpolation(y) @ w
            ),
            {"point": (3,), "w": (6,), "w_rate": (6,)},
            {"acceleration": (3,)},
        )

    # Equations of motion

    def gibbs_function(self, inertia: SpatialInertia) -> ModelFunction:
        """Energy of acceleration ``G = ½ ∫ |v̇|² dm`` [W/s]: (w, w_rate) → (...).

        Its derivative by ẇ is the generalized force Q: the equations of Gibbs and Appell.

        Parameters
        ----------
        inertia : SpatialInertia

        References
        ----------
        Eq. 44 and 45: ``½ ẇᵀ M_w ẇ + ẇᵀ Γ w + G₃``, where G₃ does not depend on ẇ.
        """
        M = ca.DM(self.mass_matrix(inertia))
        gamma = self.coriolis_matrix(inertia)
        moment, second = inertia.mass * inertia.center_of_mass, _second_moments(inertia)

        def build(w: Value, rate: Value) -> Value:
            v, spin = ca.vertsplit(ca.DM(self.inverse) @ w, [0, 3, 6])
            turning = ca.skew(spin)
            squared = turning.T @ turning
            centripetal = (
                inertia.mass * ca.dot(v, squared @ v)
                + 2 * ca.dot(v, squared @ turning @ ca.DM(moment))
                + ca.trace(turning.T @ squared @ turning @ second)
            )
            return ca.dot(rate, M @ rate) / 2 + ca.dot(rate, gamma(w) @ w) + centripetal / 2

        return trace("gibbs_function", build, {"w": (6,), "w_rate": (6,)}, {"G": ()})

    def mass_matrix(self, inertia: SpatialInertia | np.ndarray) -> np.ndarray:
        """``M_w = ∫ Nᵀ N dm = D⁻ᵀ M D⁻¹``.

        Parameters
        ----------
        inertia : SpatialInertia, or array_like of shape (6, 6)
            Inertia about the origin of the body frame.

        Returns
        -------
        ndarray, shape (6, 6)

        References
        ----------
        Eq. 48; eq. 56 has D for D⁻ᵀ, which is the same where D is orthogonal.
        """
        M = inertia.matrix if isinstance(inertia, SpatialInertia) else inertia
        M = check_shape("UnifiedVelocity.mass_matrix: inertia", M, (6, 6))
        return self.inverse.T @ M @ self.inverse

    def coriolis_matrix(self, inertia: SpatialInertia) -> ModelFunction:
        """``Γ(w) = ∫ Nᵀ ω̂ N dm``, skew-symmetric: (w) → (..., 6, 6).

        Parameters
        ----------
        inertia : SpatialInertia

        References
        ----------
        Eq. 49. The matrix of eq. 56 is another one with the same ``Γ w``.
        """
        m, moment = inertia.mass, inertia.mass * np.array(ca.skew(inertia.center_of_mass))
        second = _second_moments(inertia)

        def build(w: Value) -> Value:
            spin = (ca.DM(self.inverse) @ w)[3:]
            turning = ca.skew(spin)
            middle = ca.blockcat(
                [[m * turning, -turning @ moment], [moment @ turning, ca.skew(second @ spin)]]
            )
            return ca.DM(self.inverse.T) @ middle @ ca.DM(self.inverse)

        return self._function("coriolis_matrix", "w", (6, 6), build)

    @cached_property
    def generalized_force(self) -> ModelFunction:
        """``Q = Nᵀ(y) f`` of a force f along body axes on a point: (point, force) → (..., 6).

        References
        ----------
        Eq. 53.
        """
        return trace(
            "generalized_force",
            lambda y, f: self._interpolation(y).T @ f,
            {"point": (3,), "force": (3,)},
            {"Q": (6,)},
        )

    @cached_property
    def inverse_tangent(self) -> ModelFunction:
        """``T⁻¹(n) D⁻¹`` of ``ṅ = T⁻¹(n) D⁻¹ w`` for poses ``H exp(n)``: (n) → (..., 6, 6).

        References
        ----------
        Eq. 72 with eq. 13, 16 and 17 mended: T⁻¹ is the inverse right Jacobian of SE(3).
        """

        def build(n: Value) -> Value:
            return SE3.right_jacobian_inverse(n) @ ca.DM(self.inverse)

        return self._function("inverse_tangent", "n", (6, 6), build)

    def _basis_rates(self, w: Value) -> Value:
        return ca.skew((ca.DM(self.inverse) @ w)[3:])

    def _interpolation(self, y: Value) -> Value:
        return ca.horzcat(ca.DM.eye(3), -ca.skew(y)) @ ca.DM(self.inverse)

    def _function(
        self, name: str, argument: str, result: Shape, build: Callable[..., Value]
    ) -> ModelFunction:
        count = 3 if argument == "point" else 6
        return trace(name, build, {argument: (count,)}, {"result": result})


def _second_moments(inertia: SpatialInertia) -> ca.DM:
    """``∫ y yᵀ dm`` about the origin of the body frame."""
    J = inertia.matrix[3:, 3:]
    return ca.DM(np.trace(J) / 2 * np.eye(3) - J)


def _dependent_rows(D: np.ndarray) -> str:
    """Say which rows make up what vanishes."""
    rows = np.linalg.norm(D, axis=1)
    empty = np.flatnonzero(rows == 0)
    if empty.size:
        return f"the direction of point {empty[0]} is zero"
    unit = D / rows[:, None]
    factors: tuple[Any, ...] = scipy.linalg.qr(unit.T, pivoting=True)
    _, R, order = factors
    sizes = np.abs(np.diag(R))
    rank = min(5, int((sizes > sizes[0] / WORST_CONDITION).sum()))
    shares = np.abs(np.linalg.lstsq(unit[order[:rank]].T, unit[order[rank:]].T)[0])
    groups = []
    for row, share in zip(order[rank:], shares.T, strict=True):
        others = order[:rank][share > UNIFIED_SHARE * share.max()]
        groups.append(", ".join(map(str, sorted([int(row), *others.tolist()]))))
    found = "; of points ".join(sorted(groups))
    return f"the speeds of points {found} (counted from 0) depend on each other"
