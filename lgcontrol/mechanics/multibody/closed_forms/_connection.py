"""Christoffel symbols, connection coefficients, and derivatives of the mass matrix.

The kinetic energy is a metric on the configurations: the one that the bodies' inertias, metrics of
SE(3) that are the same at all poses, induce on the motions the joints allow. Its connection is the
bodies' own, projected: ``Γ(x, y) = Σ Jᵀ (I D_x (J y) + ∇_{J x} J y)`` with, for one body,
``∇_X Y = ∫ [1; r×] (ω_X × (v_Y + ω_Y × r)) dm``, the force on particles that turn with X while
they move with Y.

D_x J y vanishes unless x moves a joint that y's joint carries; the other order then follows, as
velocities of different joints commute. Sums over bodies are composites: all entries are
``R_ijm = J_i · ∇_{J_j} S_m`` with m the deepest joint, for which `Velocity` has the matrix, or
``−R_kjm = S_m · ∇_{J_j} J_k``, because turning keeps products.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from ....codegen import Value
from ..dynamics._mass_matrix import Entries, composites, factor, inverse, mass_matrix
from ..plan._plan import Node, Plan

Triple = tuple[int, int, int]


def connection_coefficients(plan: Plan, q: Value) -> Value:
    """Γ_ijk of the bodies' kinetic energy in the frame of the joints' velocities, as slices."""
    return _slices(plan.nv, _coefficients(plan, q))


def mass_matrix_derivatives(plan: Plan, q: Value) -> Value:
    """∂M_ij/∂q_k = Γ_ikj + Γ_jki in tangent coordinates, as slices.

    They are zero where joint k carries both i and j: the whole then turns as one.
    """
    slopes: dict[Triple, Value] = {}
    carried = _carried(plan)
    for (i, k, j), value in _coefficients(plan, q).items():
        if k in carried[i] or k in carried[j]:
            _add(slopes, (i, j, k), value)
            _add(slopes, (j, i, k), value)
    return _slices(plan.nv, slopes)


def mass_matrix_inverse_parts(plan: Plan, q: Value) -> tuple[Value, Value]:
    """M⁻¹ and ∂M/∂q, for `mass_matrix_inverse_tensors`."""
    return inverse(*factor(mass_matrix(plan, q))), mass_matrix_derivatives(plan, q)


def mass_matrix_inverse_tensors(M_inverse: Value, slices: Value) -> tuple[Value, Value]:
    """M⁻¹ and ``∂M⁻¹/∂q_k = −M⁻¹ ∂M/∂q_k M⁻¹``, in products of matrices."""
    n = M_inverse.shape[0]
    slopes = ca.vertcat(slices[:0, :n], *(slices[:, k * n : (k + 1) * n] for k in range(n)))
    by_force = [m * n + k for k in range(n) for m in range(n)]
    return M_inverse, inverse_slopes(M_inverse, slopes)[:, by_force]


def inverse_slopes(M_inverse: Value, slopes: Value) -> Value:
    """Derivatives of ``M⁻¹ τ`` by q and then τ, as slices by τ.

    Parameters
    ----------
    slopes : matrix, shape (nv², nv)
        ∂M/∂q_k for all k, one below the other.
    """
    return -(M_inverse @ times_slopes(slopes, M_inverse))


def times_slopes(slopes: Value, matrix: Value) -> Value:
    """``∂M/∂q_k matrix`` for all k, as slices by the columns of the matrix."""
    n = slopes.shape[1]
    return ca.reshape(slopes @ matrix, n, n * n)


def _coefficients(plan: Plan, q: Value) -> dict[Triple, Value]:
    """Entries of Γ that are not zero for every q."""
    Gamma: dict[Triple, Value] = {}
    for (i, at_i), (j, at_j), (m, deepest), value in _products(plan, q):
        _add(Gamma, (i, j, m), value)
        if at_j != deepest:
            _add(Gamma, (i, m, j), value)
        if at_j <= at_i != deepest:
            _add(Gamma, (m, j, i), -value)
            if at_j != at_i:
                _add(Gamma, (m, i, j), -value)
    return Gamma


_Place = tuple[int, int]
"""Degree of freedom and its node."""


def _products(plan: Plan, q: Value) -> Iterator[tuple[_Place, _Place, _Place, Value]]:
    """``R_ijm = J_i · ∇_{J_j} S_m`` for all i and j on the way from m to the root.

    Where joint i is carried by joint j, it is a couple, turned upwards, times the axis of j; else
    a wrench, pushed upwards, times the twist of i.
    """
    motions = plan.motions(q)
    for deepest, inertia in enumerate(composites(plan, motions)):
        for m, S in _freedoms(plan.nodes[deepest]):
            velocity = inertia.velocity(S)
            couples: list[tuple[_Place, Value]] = []
            wrenches: list[tuple[_Place, Value]] = []
            k = deepest
            while k >= 0:
                own = [((i, k), Z) for i, Z in _freedoms(plan.nodes[k])]
                couples += [(place, velocity.half_transposed(Z)) for place, Z in own]
                for place, Z in own:
                    for other, couple in couples:
                        yield other, place, (m, deepest), couple.T @ Z[3:]
                    for other, wrench in wrenches:
                        yield place, other, (m, deepest), Z.T @ wrench
                wrenches += [(place, velocity.half(Z)) for place, Z in own]
                T = motions[k]
                velocity = velocity.moved(T)
                couples = [(place, T.R @ couple) for place, couple in couples]
                wrenches = [(place, T.push_wrench(wrench)) for place, wrench in wrenches]
                k = plan.nodes[k].parent


def _freedoms(node: Node) -> list[tuple[int, Value]]:
    return [(node.v.start + c, node.S[:, c]) for c in range(node.S.shape[1])]


def _carried(plan: Plan) -> list[set[int]]:
    """For each degree of freedom: those of the joints that it carries."""
    carried: list[set[int]] = [set() for _ in range(plan.nv)]
    for k, node in enumerate(plan.nodes):
        for above in plan.path(k)[1:]:
            for i, _ in _freedoms(plan.nodes[above]):
                carried[i].update(range(node.v.start, node.v.stop))
    return carried


def _add(entries: dict[Triple, Value], key: Triple, value: Value) -> None:
    if value.nnz():
        old = entries.get(key)
        entries[key] = value if old is None else old + value


def _slices(nv: int, entries: dict[Triple, Value]) -> Value:
    """A tensor as the slices T[:, :, k] side by side."""
    matrix = Entries(nv, nv * nv)
    for (i, j, k), value in entries.items():
        column = k * nv + j
        matrix.add(slice(i, i + 1), slice(column, column + 1), value)
    return matrix.matrix()
