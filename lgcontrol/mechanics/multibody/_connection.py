"""Christoffel symbols, connection coefficients, and derivatives of the mass matrix.

The kinetic energy is a metric on the configurations: the one that the bodies' inertias, metrics of
SE(3) that are the same at all poses, induce on the motions the joints allow. Its connection is the
bodies' own, projected: ``Γ(x, y) = Σ Jᵀ (I D_x (J y) + ∇_{J x} J y)`` with, for one body,
``∇_X Y = ∫ [1; r×] (ω_X × (v_Y + ω_Y × r)) dm``, the force on particles that turn with X while
they move with Y. D_x J vanishes unless x moves a joint that y's joint carries; the other order then
follows from the torsion, and the sums over bodies are composite inertias.
"""

from __future__ import annotations

import casadi as ca

from ...codegen import Value
from ._mass_matrix import Entries, composites, factor, inverse, mass_matrix
from ._plan import Plan
from ._spatial import Inertia, Motion, couple, cross, hat, twist_cross


class _Tensor:
    """Slices of an nv × nv × nv tensor side by side, the last index numbering the slices."""

    def __init__(self, nv: int) -> None:
        self._nv, self._entries = nv, Entries(nv, nv * nv)

    def add(self, i: int, j: int, k: int, value: Value) -> None:
        """Add to one entry, unless nothing is there to add."""
        column = k * self._nv + j
        self._entries.add(slice(i, i + 1), slice(column, column + 1), value)

    def matrix(self) -> Value:
        """The slices."""
        return self._entries.matrix()


_Column = tuple[int, int, Value]
"""Depth of the node, degree of freedom, twist in the frame of the deepest node."""


def connection_wrench(inertia: Inertia, X: Value, Y: Value) -> Value:
    """``∇_X Y`` of a body, as a wrench: particles that turn with X while they move with Y."""
    lift, U = cross(X[3:], Y[:3]), hat(X[3:]) @ hat(Y[3:])
    force = inertia.m * lift + U @ inertia.h
    return ca.vertcat(force, couple(inertia.Sigma, ca.SX(U)) + cross(inertia.h, lift))


def connection_coefficients(plan: Plan, q: Value) -> Value:
    """Γ_ijk of the bodies' kinetic energy in the frame of the joints' velocities."""
    motions = plan.motions(q)
    Gamma = _Tensor(plan.nv)
    for inertia, columns in _paths(plan, motions, composites(plan, motions)):
        for x in columns:
            for y in columns:
                if x[0] > y[0]:
                    continue
                _add_pair(Gamma, inertia, columns, x, y)
    return Gamma.matrix()


def _add_pair(
    Gamma: _Tensor, inertia: Inertia, columns: list[_Column], x: _Column, y: _Column
) -> None:
    """Entries (i, x, y) and (i, y, x), where x's joint carries y's or is the same."""
    (above, j, X), (below, k, Y) = x, y
    deepest = max(depth for depth, _, _ in columns)
    F = connection_wrench(inertia, X, Y)
    for depth, i, Z in columns:
        if deepest in (depth, below):
            value = Z.T @ F
            Gamma.add(i, j, k, value)
            if above < below:
                Gamma.add(i, k, j, value)


def mass_matrix_derivatives(plan: Plan, q: Value) -> Value:
    """∂M_ij/∂q_k in tangent coordinates, by brackets of body Jacobians.

    ``∂J_i/∂q_k = [J_i, J_k]`` where joint i carries joint k, else zero (Müller 2018, eq. 6).
    """
    motions = plan.motions(q)
    slopes = _Tensor(plan.nv)
    for inertia, columns in _paths(plan, motions, composites(plan, motions)):
        deepest = max(depth for depth, _, _ in columns)
        momenta = [(depth, j, inertia @ Y) for depth, j, Y in columns]
        for above, i, X in columns:
            for below, k, Z in columns:
                if above >= below:
                    continue
                bracket = twist_cross(X, Z)
                for depth, j, F in momenta:
                    if deepest in (depth, below):
                        value = bracket.T @ F
                        slopes.add(i, j, k, value)
                        slopes.add(j, i, k, value)
    return slopes.matrix()


def mass_matrix_inverse_derivatives(plan: Plan, q: Value) -> tuple[Value, Value]:
    """M⁻¹ and ``∂M⁻¹/∂q_k = −M⁻¹ ∂M/∂q_k M⁻¹``."""
    n = plan.nv
    inverted = inverse(*factor(mass_matrix(plan, q)))
    slopes = mass_matrix_derivatives(plan, q)
    slices = [-(inverted @ slopes[:, k * n : (k + 1) * n] @ inverted) for k in range(n)]
    return inverted, ca.horzcat(ca.SX(n, 0), *slices)


def _paths(plan: Plan, motions: list[Motion], total: list[Inertia]):
    """Of every node: its composite inertia, and the columns of all joints that carry it."""
    for m in range(len(plan.nodes)):
        columns: list[_Column] = []
        T = Motion.identity()
        for k in plan.path(m):
            node = plan.nodes[k]
            S = T.pull(node.S)
            columns += [(k, node.v.start + c, S[:, c]) for c in range(S.shape[1])]
            T = motions[k] @ T
        yield total[m], columns
