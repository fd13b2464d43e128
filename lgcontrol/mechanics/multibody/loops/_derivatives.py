"""Derivatives of inverse dynamics of large trees, by loops: see `_loops` and `_derivatives`."""

from __future__ import annotations

from functools import cache

import casadi as ca

from ....codegen import Value
from ..plan._drives import force_rates
from ..plan._spatial import Inertia, Velocity, twist_cross, wrench_cross
from ._loops import mass_matrix_of
from ._steps import columns, inwards, loads, outwards, product, root_motions
from ._table import INERTIA, PLACEMENT, Kind, LoopTable, atom, inertia, inertia_column, pose

_COMPOSITE = INERTIA + 12 + 6
"""Numbers of a composite: inertia, velocity moments [p; Q by columns], transmitted wrench."""


def inverse_dynamics_derivatives(
    table: LoopTable, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂τ/∂q (tangent coordinates), ∂τ/∂v and ∂τ/∂a = M; see `_derivatives`."""
    T = ca.horzsplit(table.motions(q))
    roots = root_motions(table, T)
    parts, J, Ft = slopes(table, q, v, a, wrenches, T, roots)
    dq, dv = (ca.densify(below) + ca.densify(above).T for below, above in parts)
    return dq, dv, mass_matrix_of(table, J, Ft)


def slopes(
    table: LoopTable,
    q: Value,
    v: Value,
    a: Value,
    wrenches: Value | None,
    T: list[Value],
    roots: Value,
) -> tuple[list[tuple[Value, Value]], Value, Value]:
    """∂τ/∂q and ∂τ/∂v, each as ``below + aboveᵀ``, and J and Fᵀ for the mass matrix."""
    start = ca.vertcat(ca.MX(6, 1), table.gravity, ca.MX(12, 1))
    states = ca.horzcat(
        *outwards(table, _twist_step(), start, T, table.joint_twists(v), table.joint_twists(a))
    )
    own = _composite().map(len(T))(table.inertias, states)
    if wrenches is not None:
        load = loads(table, wrenches)
        own = own - ca.vertcat(ca.MX.zeros(_COMPOSITE - 6, len(T)), load)
    composites = ca.horzcat(*inwards(table, _composite_step(), T, ca.horzsplit(own)))
    J, left, right_q, right_v, position, alone, rate = columns(
        table, _slope_columns, composites, states, roots
    )
    left, strict, block = left.T, table.strict_pattern(), table.block_pattern()
    losses = (
        table.evaluate(f"losses_{i}", lambda q, v, i=i: force_rates(table.plan, q, v)[i], q, v)
        for i in range(2)
    )
    found = []
    for right, carried, own, loss in zip(
        (right_q, right_v), (position, rate), (alone, rate), losses, strict=True
    ):
        above = product(carried.T, J, strict) + product(own.T, J, block)
        found.append((product(left, right, strict), above + loss.T if loss.nnz() else above))
    return found, J, left[:, 3:]


@cache
def _twist_step() -> ca.Function:
    """Twist V and its rate A of the next node, and what it has of them from its carrier."""

    def build(T, twist, rate, state):
        T = pose(T)
        carried, rest = T.pull(state[:6]), T.pull(state[6:12])
        V = carried + twist
        return ca.vertcat(V, rest + rate + twist_cross(V, twist), carried, rest)

    return atom("twist_step", {"T": PLACEMENT, "twist": 6, "rate": 6, "state": 24}, build)


@cache
def _composite() -> ca.Function:
    """Numbers of a single body's composite."""

    def build(own, state):
        own, V, A = inertia(own), state[:6], state[6:12]
        velocity = Inertia(*(2 * moment for moment in own)).velocity(V)
        return ca.vertcat(inertia_column(own), velocity.p, ca.vec(velocity.Q), own.force(V, A))

    return atom("composite", {"own": INERTIA, "state": 24}, build)


@cache
def _composite_step() -> ca.Function:
    def build(T, own, carrier):
        T = pose(T)
        velocity = _velocity(own).moved(T)
        return carrier + ca.vertcat(
            inertia_column(inertia(own).moved(T)),
            velocity.p,
            ca.vec(velocity.Q),
            T.push_wrench(own[-6:]),
        )

    sizes = {"T": PLACEMENT, "own": _COMPOSITE, "carrier": _COMPOSITE}
    return atom("composite_step", sizes, build)


def _velocity(X: Value) -> Velocity:
    return Velocity(X[INERTIA : INERTIA + 3], ca.reshape(X[INERTIA + 3 : INERTIA + 12], 3, 3))


def _slope_columns(kind: Kind) -> ca.Function:
    """Columns whose products are the derivatives, in the root's frame; names as in `_derivatives`.

    J, [G; F], [Ψ̇_ω; Ψ̈], [J_ω; Ψ̇ + V × S], position with and without the wrench that is carried
    along, rate.
    """

    def build(own, state, root):
        root, S = pose(root), kind.S
        inertial, velocity, W = inertia(own), _velocity(own), own[-6:]
        V, carried, rest = state[:6], state[12:18], state[18:24]
        first = twist_cross(carried, S)
        second = twist_cross(rest, S) + twist_cross(carried, first)
        fast = first + twist_cross(V, S)
        J, F = root.push(S), root.push_wrench(inertial @ S)
        G = root.R @ velocity.half_transposed(S)
        alone = velocity.half(first) + inertial @ second
        along = ca.horzcat(*(wrench_cross(S[:, j], W) for j in range(kind.dim)))
        rate = velocity.half(S) + inertial @ fast
        return (
            J,
            ca.vertcat(G, F),
            ca.vertcat(root.R @ first[3:, :], root.push(second)),
            ca.vertcat(J[3:, :], root.push(fast)),
            root.push_wrench(alone + along),
            root.push_wrench(alone),
            root.push_wrench(rate),
        )

    return atom("slope_columns", {"own": _COMPOSITE, "state": 24, "root": PLACEMENT}, build)
