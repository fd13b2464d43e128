"""The dynamics of large trees: functions of one node, called in loops over all nodes.

Written out operation by operation, the code for a matrix of a tree grows with the square of its
depth, that for derivatives of forward dynamics with the cube. Here one function of one node, an SX
function, is called for every node in turn (`codegen` makes a table of the calls): code grows with
the number of nodes. The recursions are those of the unrolled functions. Where these walk from a
node to the root, here columns of all nodes are taken to one frame, that of the root node, and
multiplied as matrices: entry (i, k) of the mass matrix is ``J_iᵀ F_k``, and so on. Only entries of
nodes on one path are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import casadi as ca

from ...codegen import Value
from ._drives import armature, drive_forces, force_rates
from ._forward_dynamics import _blocks, _eliminate, _joined
from ._inverse_dynamics import node_wrenches
from ._loop_table import (
    INERTIA,
    PLACEMENT,
    Kind,
    LoopTable,
    atom,
    inertia,
    inertia_column,
    pose,
    pose_column,
)
from ._mass_matrix import solve
from ._spatial import (
    Inertia,
    Motion,
    Velocity,
    couple,
    cross,
    point_accelerations,
    twist_cross,
    wrench_cross,
)

_COMPOSITE = INERTIA + 12 + 6
"""Numbers of a composite: inertia, velocity moments [p; Q by columns], transmitted wrench."""

_ARTICULATED = 9 + 9 + 9 + 6
"""Numbers of an articulated body: blocks A, B, C of its inertia by columns, force."""


# -- inverse dynamics -------------------------------------------------------------------------


def inverse_dynamics(
    table: LoopTable, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces; the recursion of `_inverse_dynamics.rigid_forces`."""
    motions = table.motions(q)
    T = ca.horzsplit(motions)
    start = ca.vertcat(ca.MX(6, 1), table.gravity[:3])
    states = _outwards(table, _point_step(), start, T, table.joint_twists(v), table.joint_twists(a))
    W = _point_wrench().map(len(T))(table.inertias, ca.horzcat(*states)) - _loads(table, wrenches)
    W = ca.horzcat(*_inwards(table, _wrench_step(), T, ca.horzsplit(W)))
    return table.project(W) + _drive_forces(table, q, v, a)


@cache
def _point_step() -> ca.Function:
    """Angular velocity and its rate, classical acceleration of the origin of the next node."""

    def build(T, twist, rate, state):
        T, w, dw, acc = pose(T), state[:3], state[3:6], state[6:]
        carried = T.R.T @ w
        point = acc + point_accelerations(w, dw) @ T.p
        return ca.vertcat(
            carried + twist[3:],
            T.R.T @ dw + rate[3:] + cross(carried, twist[3:]),
            T.R.T @ point + cross(2 * carried + twist[3:], twist[:3]) + rate[:3],
        )

    return atom("point_step", {"T": PLACEMENT, "twist": 6, "rate": 6, "state": 9}, build)


@cache
def _point_wrench() -> ca.Function:
    """Inertial wrench of a node."""

    def build(own, state):
        m, h, Sigma = inertia(own)
        U, acc = point_accelerations(state[:3], state[3:6]), state[6:]
        return ca.vertcat(m * acc + U @ h, couple(Sigma, U) + cross(h, acc))

    return atom("point_wrench", {"own": INERTIA, "state": 9}, build)


@cache
def _wrench_step() -> ca.Function:
    return atom(
        "wrench_step",
        {"T": PLACEMENT, "W": 6, "carrier": 6},
        lambda T, W, carrier: carrier + pose(T).push_wrench(W),
    )


# -- mass matrix ------------------------------------------------------------------------------


def mass_matrix(table: LoopTable, q: Value) -> Value:
    """Joint-space mass matrix by composite bodies."""
    T = ca.horzsplit(table.motions(q))
    composites = _inwards(table, _inertia_step(), T, ca.horzsplit(table.inertias))
    roots, composites = _root_motions(table, T), ca.horzcat(*composites)
    J, F = _columns(table, _inertia_columns, composites, roots)
    return _symmetric(table, J, F.T)


@cache
def _inertia_step() -> ca.Function:
    def build(T, own, carrier):
        return carrier + inertia_column(inertia(own).moved(pose(T)))

    return atom("inertia_step", {"T": PLACEMENT, "own": INERTIA, "carrier": INERTIA}, build)


def _inertia_columns(kind: Kind) -> ca.Function:
    """Motion subspace J and momenta F of a joint, in the root's frame."""

    def build(own, root):
        root = pose(root)
        return root.push(kind.S), root.push_wrench(inertia(own) @ kind.S)

    return atom("inertia_columns", {"own": INERTIA, "root": PLACEMENT}, build)


def _symmetric(table: LoopTable, J: Value, Ft: Value) -> Value:
    """Mass matrix with the armature, from J and Fᵀ."""
    below = _product(Ft, J, table.strict_pattern())
    drives = table.evaluate("armature", lambda: ca.densify(armature(table.plan)))
    own = _product(Ft, J, table.block_pattern()) + ca.diag(drives)
    return ca.densify(below + own) + ca.densify(below).T


# -- derivatives of inverse dynamics ----------------------------------------------------------


def inverse_dynamics_derivatives(
    table: LoopTable, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂τ/∂q (tangent coordinates), ∂τ/∂v and ∂τ/∂a = M; see `_derivatives`."""
    T = ca.horzsplit(table.motions(q))
    roots = _root_motions(table, T)
    slopes, J, Ft = _slopes(table, q, v, a, wrenches, T, roots)
    dq, dv = (ca.densify(below) + ca.densify(above).T for below, above in slopes)
    return dq, dv, _symmetric(table, J, Ft)


def _slopes(
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
        *_outwards(table, _twist_step(), start, T, table.joint_twists(v), table.joint_twists(a))
    )
    own = _composite().map(len(T))(table.inertias, states)
    if wrenches is not None:
        load = _loads(table, wrenches)
        own = own - ca.vertcat(ca.MX.zeros(_COMPOSITE - 6, len(T)), load)
    composites = ca.horzcat(*_inwards(table, _composite_step(), T, ca.horzsplit(own)))
    J, left, right_q, right_v, position, alone, rate = _columns(
        table, _slope_columns, composites, states, roots
    )
    left, strict, block = left.T, table.strict_pattern(), table.block_pattern()
    losses = (
        table.evaluate(f"losses_{i}", lambda q, v, i=i: force_rates(table.plan, q, v)[i], q, v)
        for i in range(2)
    )
    slopes = []
    for right, carried, own, loss in zip(
        (right_q, right_v), (position, rate), (alone, rate), losses, strict=True
    ):
        above = _product(carried.T, J, strict) + _product(own.T, J, block)
        slopes.append((_product(left, right, strict), above + loss.T if loss.nnz() else above))
    return slopes, J, left[:, 3:]


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


# -- forward dynamics -------------------------------------------------------------------------


def forward_dynamics(
    table: LoopTable, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """Accelerations by articulated bodies."""
    return _articulated(table, q, v, tau, wrenches, ca.horzsplit(table.motions(q)))[0]


def forward_dynamics_derivatives(
    table: LoopTable, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂v̇/∂q (tangent coordinates), ∂v̇/∂v and ∂v̇/∂τ = M⁻¹."""
    n = table.plan.nv
    T = ca.horzsplit(table.motions(q))
    roots = _root_motions(table, T)
    a, gains, inverses = _articulated(table, q, v, tau, wrenches, T)
    slopes, J, _ = _slopes(table, q, v, a, wrenches, T, roots)
    gains = _columns(table, _gain_columns, gains, roots)[0]
    # A row for each set of forces: what is needed are the transposes.
    dq, dv = (ca.densify(-above) + ca.densify(-below).T for below, above in slopes)
    unit = ca.MX(ca.densify(ca.DM.eye(n)))
    answers = [_respond(table, J, gains, inverses, forces) for forces in (dq, dv, unit)]
    return answers[0].T, answers[1].T, answers[2]


def mass_matrix_inverse(table: LoopTable, q: Value) -> Value:
    """``M⁻¹``, by the answers to unit forces."""
    T = ca.horzsplit(table.motions(q))
    none = ca.MX.zeros(table.plan.nv, 1)
    roots = _root_motions(table, T)
    _, gains, inverses = _articulated(table, q, none, none, None, T)
    gains = _columns(table, _gain_columns, gains, roots)[0]
    J = _columns(table, _joint_columns, roots)[0]
    return _respond(table, J, gains, inverses, ca.MX(ca.densify(ca.DM.eye(table.plan.nv))))


def _articulated(
    table: LoopTable, q: Value, v: Value, tau: Value, wrenches: Value | None, T: list[Value]
) -> tuple[Value, Value, list[Value]]:
    """Accelerations, gains of all nodes (by columns, a row each) and inverses of their inertias."""
    plan = table.plan
    none = ca.MX.zeros(plan.nv, 1)
    tau = tau - _drive_forces(table, q, v, none)
    drives = table.evaluate("armature", lambda: ca.densify(armature(plan)))
    twists = table.joint_twists(v)
    V = _outwards(table, _velocity_step(), ca.MX.zeros(6, 1), T, twists)
    states = _articulated_own().map(len(T))(table.inertias, ca.horzcat(*V), twists)
    bias = ca.horzsplit(states[1])
    force = ca.vertcat(ca.MX.zeros(_ARTICULATED - 6, len(T)), _loads(table, wrenches))
    bodies = ca.horzsplit(states[0] if wrenches is None else states[0] - force)
    steps = {id(kind): _articulated_step(kind) for kind in table.kinds}
    ends = {id(kind): _acceleration_step(kind) for kind in table.kinds}
    nothing = ca.MX.zeros(_ARTICULATED, 1)
    found: list[Any] = [None] * len(T)
    for k in reversed(range(len(T))):
        i, own = plan.nodes[k].parent, plan.nodes[k].v
        carrier = nothing if i < 0 else bodies[i]
        step = steps[id(table.kind_of[k])]
        joined, *found[k] = step(T[k], bodies[k], bias[k], tau[own], drives[own], carrier)
        if i >= 0:
            bodies[i] = joined
    rates: dict[int, Value] = {-1: table.gravity}
    a: list[Value] = []
    for k in range(len(T)):
        end = ends[id(table.kind_of[k])]
        rates[k], own = end(T[k], bias[k], *found[k], rates[plan.nodes[k].parent])
        a.append(own)
    return ca.vertcat(*a), [gain for gain, _, _ in found], [inverse for _, inverse, _ in found]


@cache
def _velocity_step() -> ca.Function:
    return atom(
        "velocity_step",
        {"T": PLACEMENT, "twist": 6, "V": 6},
        lambda T, twist, V: pose(T).pull(V) + twist,
    )


@cache
def _articulated_own() -> ca.Function:
    """Articulated inertia and force of a single body, and its velocity-product acceleration."""

    def build(own, V, twist):
        own = inertia(own)
        blocks = ca.vertcat(*(ca.vec(ca.densify(ca.SX(block))) for block in _blocks(own)))
        return ca.vertcat(blocks, wrench_cross(V, own @ V)), twist_cross(V, twist)

    return atom("articulated_own", {"own": INERTIA, "V": 6, "twist": 6}, build)


def _articulated_step(kind: Kind) -> ca.Function:
    """Take a joint out of its articulated body; what is left is joined with the carrier."""

    def build(T, own, bias, tau, drive, carrier):
        T, force = pose(T), own[27:]
        node = SimpleNamespace(S=kind.S, parent=0)
        step = _eliminate(node, _matrices(own), drive)  # type: ignore[arg-type]
        u = tau - kind.S.T @ force
        f = T.push_wrench(force + step.rest @ bias + step.gain.T @ u)
        blocks = _joined(_matrices(carrier), step.rest, T)
        inverse = solve(step.L, step.D, ca.DM.eye(kind.dim))
        return (
            ca.vertcat(*(ca.vec(ca.densify(block)) for block in blocks), carrier[27:] + f),
            ca.vec(ca.densify(step.gain.T)),
            inverse,
            u,
        )

    sizes = {
        "T": PLACEMENT,
        "own": _ARTICULATED,
        "bias": 6,
        "tau": kind.dim,
        "drive": kind.dim,
        "carrier": _ARTICULATED,
    }
    return atom("articulated_step", sizes, build)


def _acceleration_step(kind: Kind) -> ca.Function:
    def build(T, bias, gain, inverse, u, rate):
        carried = pose(T).pull(rate) + bias
        own = inverse @ u - ca.reshape(gain, 6, kind.dim).T @ carried
        return carried + kind.S @ own, own

    d = kind.dim
    sizes = {"T": PLACEMENT, "bias": 6, "gain": 6 * d, "inverse": (d, d), "u": d, "rate": 6}
    return atom("acceleration_step", sizes, build)


def _matrices(X: Value) -> tuple[Value, Value, Value]:
    A, B, C = (ca.reshape(X[9 * i : 9 * i + 9], 3, 3) for i in range(3))
    return A, B, C


def _joint_columns(kind: Kind) -> ca.Function:
    return atom("joint_columns", {"root": PLACEMENT}, lambda root: pose(root).push(kind.S))


def _gain_columns(kind: Kind) -> ca.Function:
    """Gain of a joint, taken to the root's frame: it maps twists, so it moves like wrenches."""

    def build(gain, root):
        return pose(root).push_wrench(ca.reshape(gain, 6, kind.dim))

    return atom("gain_columns", {"gain": 6 * kind.dim, "root": PLACEMENT}, build)


def _respond(
    table: LoopTable, J: Value, gains: Value, inverses: list[Value], forces: Value
) -> Value:
    """Accelerations from rest for many sets of generalized forces: a row each, N × nv.

    The articulated-body recursion with everything in the root's frame: nothing changes frames.
    """
    nodes = table.plan.nodes
    opposite, losses = -J, -gains
    wrenches: dict[int, Value] = {}
    left: list[Any] = [None] * len(nodes)
    for k in reversed(range(len(nodes))):
        own, i = nodes[k].v, nodes[k].parent
        left[k] = forces[:, own]
        if k in wrenches:
            left[k] = ca.mac(wrenches[k], opposite[:, own], left[k])
        if i >= 0:
            passed, gain = wrenches.pop(k, None), gains[:, own].T
            passed = left[k] @ gain if passed is None else ca.mac(left[k], gain, passed)
            wrenches[i] = wrenches[i] + passed if i in wrenches else passed
    rates: dict[int, Value] = {}
    found = []
    for k, node in enumerate(nodes):
        answer, joint = left[k] @ inverses[k], J[:, node.v].T
        if node.parent >= 0:
            rate = rates[node.parent]
            answer = ca.mac(rate, losses[:, node.v], answer)
            rates[k] = ca.mac(answer, joint, rate)
        else:
            rates[k] = answer @ joint
        found.append(answer)
    return ca.horzcat(*found)


# -- common -----------------------------------------------------------------------------------


def _outwards(
    table: LoopTable, step: ca.Function, start: Value, T: list[Value], *tables: Value
) -> list[Value]:
    """States of all nodes: ``step(T, …, state of the carrier)``, from the world on."""
    columns = [ca.horzsplit(x) for x in tables]
    states: dict[int, Value] = {-1: start}
    for k, parent in enumerate(table.parents):
        states[k] = step(T[k], *(column[k] for column in columns), states[parent])
    return [states[k] for k in range(len(T))]


def _inwards(table: LoopTable, step: ca.Function, T: list[Value], own: list[Value]) -> list[Value]:
    """Sums of all nodes with what they carry: ``step(T, node, carrier) → carrier``."""
    total = list(own)
    for k in reversed(range(len(T))):
        parent = table.parents[k]
        if parent >= 0:
            total[parent] = step(T[k], total[k], total[parent])
    return total


@cache
def _root_step() -> ca.Function:
    return atom(
        "root_step",
        {"carrier": PLACEMENT, "T": PLACEMENT},
        lambda carrier, T: pose_column(pose(carrier) @ pose(T)),
    )


def _root_motions(table: LoopTable, T: list[Value]) -> Value:
    """T_root_node of all nodes, 12 × nodes; the root is the first node that the world carries."""
    step, still = _root_step(), ca.MX(ca.densify(pose_column(Motion.identity())))
    roots: list[Value] = []
    for k, parent in enumerate(table.parents):
        roots.append(still if parent < 0 else step(roots[parent], T[k]))
    return ca.horzcat(*roots)


def _columns(
    table: LoopTable, make: Callable[[Kind], ca.Function], *tables: Any
) -> tuple[Value, ...]:
    """Tables with a column a degree of freedom, from tables (or lists) with one a node."""
    parts = []
    for kind in table.kinds:
        given = [
            ca.horzcat(*(x[k] for k in kind.nodes))
            if isinstance(x, list)
            else table.of_kind(kind, x)
            for x in tables
        ]
        found = make(kind).map(len(kind.nodes)).call(given)
        parts.append(found)
    return tuple(table.by_dof(list(columns)) for columns in zip(*parts, strict=True))


def _product(left: Value, right: Value, pattern: ca.Sparsity) -> Value:
    """Entries of a matrix product where the pattern has some."""
    return ca.mac(left, right, ca.MX.zeros(pattern))


def _loads(table: LoopTable, wrenches: Value | None) -> Value:
    """External wrenches on the nodes, 6 × nodes."""
    if wrenches is None:
        return ca.MX.zeros(6, len(table.parents))

    def build(wrenches):
        loads = node_wrenches(table.plan, wrenches)
        return ca.densify(ca.horzcat(*(ca.SX(6, 1) if x is None else x for x in loads)))

    return table.evaluate("loads", build, wrenches)


def _drive_forces(table: LoopTable, q: Value, v: Value, a: Value) -> Value:
    return table.evaluate(
        "drive_forces", lambda q, v, a: ca.densify(drive_forces(table.plan, q, v, a)), q, v, a
    )
