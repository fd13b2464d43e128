"""Dynamics of large trees: recursions as calls for every node, not as code written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca

from ....codegen import Value
from .._spatial import (
    Inertia,
    Velocity,
    couple,
    cross,
    point_accelerations,
    twist_cross,
    wrench_cross,
)
from ..compiled._added_forces import armature, joint_force_rates
from ..compiled._compiled_tree import CompiledTree
from ..compiled._sparse import eliminate, join_blocks, single_body_blocks, solve
from ._tables import (
    INERTIA,
    PLACEMENT,
    JointKind,
    NodeTables,
    atom,
    columns,
    forces_of_joints,
    inertia,
    inertia_column,
    inwards,
    loads,
    outwards,
    pose_of,
    product,
    root_poses,
)

# Written out, code runs two to three times as quick as calls for every node up to some 200 000
# operations by the estimates below (Talos' derivatives of forward dynamics, 20 s to compile), and
# no quicker above.
# Up to 30 000 it compiles in seconds; from there on, it is worth the wait, once, for robots (fewer
# than 48 nodes).
_SMALL, _LARGE, _ROBOT = 30_000, 200_000, 48
_COMPOSITE = INERTIA + 12 + 6
"""Numbers of a composite: inertia, velocity moments [p; Q by columns], transmitted wrench."""

_ARTICULATED = 9 + 9 + 9 + 6
"""Numbers of an articulated body: blocks A, B, C of its inertia by columns, force."""


@dataclass(frozen=True)
class LargeTreeFunction:
    """A function of trees in code that does not grow with them.

    `build` is ``(table, q, …) → expressions`` for MX, `operations` about how many there are when
    they are written out.
    """

    build: Callable[..., Any]
    operations: Callable[[CompiledTree], int]

    def suits(self, tree: CompiledTree) -> bool:
        """Whether this is the better way; trees with mimics or added mass have none."""
        if tree.is_coupled or tree.has_added_mass:
            return False
        operations = self.operations(tree)
        return operations > (_SMALL if len(tree.nodes) >= _ROBOT else _LARGE)

    def function(
        self,
        name: str,
        tree: CompiledTree,
        p: ca.SX,
        arguments: dict[str, ca.SX],
        results: list[str],
    ) -> ca.Function:
        """The casadi.Function with arguments like these (p among them, if there are parameters)."""
        symbols = {key: ca.MX.sym(key, *x.shape) for key, x in arguments.items()}
        values = symbols.get("p", ca.MX(0, 1))
        table = NodeTables(tree, p, values)
        built = self.build(table, *(x for key, x in symbols.items() if key != "p"))
        built = built if isinstance(built, tuple) else (built,)
        built = [ca.densify(x) for x in built]
        return ca.Function(name, list(symbols.values()), built, list(symbols), results)


def inverse_dynamics(
    table: NodeTables, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces; the recursion of `rigid_forces`."""
    poses = table.poses(q)
    T = ca.horzsplit(poses)
    start = ca.vertcat(ca.MX(6, 1), table.gravity[:3])
    states = outwards(table, _point_step(), start, T, table.joint_twists(v), table.joint_twists(a))
    W = _point_wrench().map(len(T))(table.inertias, ca.horzcat(*states)) - loads(table, wrenches)
    W = ca.horzcat(*inwards(table, _wrench_step(), T, ca.horzsplit(W)))
    return table.project(W) + forces_of_joints(table, q, v, a)


@cache
def _point_step() -> ca.Function:
    """Angular velocity and its rate, classical acceleration of the origin of the next node."""

    def build(T, twist, rate, state):
        T, w, dw, acc = pose_of(T), state[:3], state[3:6], state[6:]
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
        lambda T, W, carrier: carrier + pose_of(T).push_wrench(W),
    )


def mass_matrix(table: NodeTables, q: Value) -> Value:
    """Joint-space mass matrix by composite bodies."""
    T = ca.horzsplit(table.poses(q))
    composites = inwards(table, _inertia_step(), T, ca.horzsplit(table.inertias))
    roots, composites = root_poses(table, T), ca.horzcat(*composites)
    J, F = columns(table, _inertia_columns, composites, roots)
    return mass_matrix_of(table, J, F.T)


@cache
def _inertia_step() -> ca.Function:
    def build(T, own, carrier):
        return carrier + inertia_column(inertia(own).moved(pose_of(T)))

    return atom("inertia_step", {"T": PLACEMENT, "own": INERTIA, "carrier": INERTIA}, build)


def _inertia_columns(kind: JointKind) -> ca.Function:
    """Motion subspace J and momenta F of a joint, in the root's frame."""

    def build(own, root):
        root = pose_of(root)
        return root.push(kind.S), root.push_wrench(inertia(own) @ kind.S)

    return atom("inertia_columns", {"own": INERTIA, "root": PLACEMENT}, build)


def mass_matrix_of(table: NodeTables, J: Value, Ft: Value) -> Value:
    """Mass matrix with the armature, from J and Fᵀ."""
    below = product(Ft, J, table.strict_pattern())
    armatures = table.evaluate("armature", lambda: ca.densify(armature(table.tree)))
    own = product(Ft, J, table.block_pattern()) + ca.diag(armatures)
    return ca.densify(below + own) + ca.densify(below).T


def bias_forces(table: NodeTables, q: Value, v: Value, wrenches: Value | None = None) -> Value:
    return inverse_dynamics(table, q, v, ca.MX.zeros(table.tree.nv, 1), wrenches)


def gravity_forces(table: NodeTables, q: Value) -> Value:
    none = ca.MX.zeros(table.tree.nv, 1)
    return inverse_dynamics(table, q, none, none)


def inverse_dynamics_derivatives(
    table: NodeTables, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂τ/∂q (tangent coordinates), ∂τ/∂v and ∂τ/∂a = M; see `derivatives`."""
    T = ca.horzsplit(table.poses(q))
    roots = root_poses(table, T)
    parts, J, Ft = slopes(table, q, v, a, wrenches, T, roots)
    dq, dv = (ca.densify(below) + ca.densify(above).T for below, above in parts)
    return dq, dv, mass_matrix_of(table, J, Ft)


def slopes(
    table: NodeTables,
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
        table.evaluate(
            f"losses_{i}", lambda q, v, i=i: joint_force_rates(table.tree, q, v)[i], q, v
        )
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
        T = pose_of(T)
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
        T = pose_of(T)
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


def _slope_columns(kind: JointKind) -> ca.Function:
    """Columns whose products are the derivatives, in the root's frame; names as in `derivatives`.

    J, [G; F], [Ψ̇_ω; Ψ̈], [J_ω; Ψ̇ + V × S], position with and without the wrench that is carried
    along, rate.
    """

    def build(own, state, root):
        root, S = pose_of(root), kind.S
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


def forward_dynamics(
    table: NodeTables, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """Accelerations by articulated bodies."""
    return _articulated(table, q, v, tau, wrenches, ca.horzsplit(table.poses(q)))[0]


def forward_dynamics_derivatives(
    table: NodeTables, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """∂v̇/∂q (tangent coordinates), ∂v̇/∂v and ∂v̇/∂τ = M⁻¹."""
    n = table.tree.nv
    T = ca.horzsplit(table.poses(q))
    roots = root_poses(table, T)
    a, gains, inverses = _articulated(table, q, v, tau, wrenches, T)
    parts, J, _ = slopes(table, q, v, a, wrenches, T, roots)
    gains = columns(table, _gain_columns, gains, roots)[0]
    # A row for each set of forces: what is needed are the transposes.
    dq, dv = (ca.densify(-above) + ca.densify(-below).T for below, above in parts)
    unit = ca.MX(ca.densify(ca.DM.eye(n)))
    answers = [_respond(table, J, gains, inverses, forces) for forces in (dq, dv, unit)]
    return answers[0].T, answers[1].T, answers[2]


def mass_matrix_inverse(table: NodeTables, q: Value) -> Value:
    """``M⁻¹``, by the answers to unit forces."""
    T = ca.horzsplit(table.poses(q))
    none = ca.MX.zeros(table.tree.nv, 1)
    roots = root_poses(table, T)
    _, gains, inverses = _articulated(table, q, none, none, None, T)
    gains = columns(table, _gain_columns, gains, roots)[0]
    J = columns(table, _joint_columns, roots)[0]
    return _respond(table, J, gains, inverses, ca.MX(ca.densify(ca.DM.eye(table.tree.nv))))


def _articulated(
    table: NodeTables, q: Value, v: Value, tau: Value, wrenches: Value | None, T: list[Value]
) -> tuple[Value, Value, list[Value]]:
    """Accelerations, gains of all nodes (by columns, a row each) and inverses of their inertias."""
    tree = table.tree
    none = ca.MX.zeros(tree.nv, 1)
    tau = tau - forces_of_joints(table, q, v, none)
    armatures = table.evaluate("armature", lambda: ca.densify(armature(tree)))
    twists = table.joint_twists(v)
    V = outwards(table, _velocity_step(), ca.MX.zeros(6, 1), T, twists)
    states = _articulated_own().map(len(T))(table.inertias, ca.horzcat(*V), twists)
    bias = ca.horzsplit(states[1])
    force = ca.vertcat(ca.MX.zeros(_ARTICULATED - 6, len(T)), loads(table, wrenches))
    bodies = ca.horzsplit(states[0] if wrenches is None else states[0] - force)
    steps = {id(kind): _articulated_step(kind) for kind in table.kinds}
    ends = {id(kind): _acceleration_step(kind) for kind in table.kinds}
    nothing = ca.MX.zeros(_ARTICULATED, 1)
    found: list[Any] = [None] * len(T)
    for k in reversed(range(len(T))):
        i, own = tree.nodes[k].parent, tree.nodes[k].v
        carrier = nothing if i < 0 else bodies[i]
        step = steps[id(table.kind_of[k])]
        joined, *found[k] = step(T[k], bodies[k], bias[k], tau[own], armatures[own], carrier)
        if i >= 0:
            bodies[i] = joined
    rates: dict[int, Value] = {-1: table.gravity}
    a: list[Value] = []
    for k in range(len(T)):
        end = ends[id(table.kind_of[k])]
        rates[k], own = end(T[k], bias[k], *found[k], rates[tree.nodes[k].parent])
        a.append(own)
    return ca.vertcat(*a), [gain for gain, _, _ in found], [inverse for _, inverse, _ in found]


@cache
def _velocity_step() -> ca.Function:
    return atom(
        "velocity_step",
        {"T": PLACEMENT, "twist": 6, "V": 6},
        lambda T, twist, V: pose_of(T).pull(V) + twist,
    )


@cache
def _articulated_own() -> ca.Function:
    """Articulated inertia and force of a single body, and its velocity-product acceleration."""

    def build(own, V, twist):
        own = inertia(own)
        blocks = [ca.vec(ca.densify(ca.SX(x))) for x in single_body_blocks(own)]
        return ca.vertcat(*blocks, wrench_cross(V, own @ V)), twist_cross(V, twist)

    return atom("articulated_own", {"own": INERTIA, "V": 6, "twist": 6}, build)


def _articulated_step(kind: JointKind) -> ca.Function:
    """Take a joint out of its articulated body; what is left is joined with the carrier."""

    def build(T, own, bias, tau, drive, carrier):
        T, force = pose_of(T), own[27:]
        step = eliminate(kind.S, _matrices(own), drive, is_carried=True)
        u = tau - kind.S.T @ force
        f = T.push_wrench(force + step.rest @ bias + step.gain.T @ u)
        blocks = join_blocks(_matrices(carrier), step.rest, T)
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


def _acceleration_step(kind: JointKind) -> ca.Function:
    def build(T, bias, gain, inverse, u, rate):
        carried = pose_of(T).pull(rate) + bias
        own = inverse @ u - ca.reshape(gain, 6, kind.dim).T @ carried
        return carried + kind.S @ own, own

    d = kind.dim
    sizes = {"T": PLACEMENT, "bias": 6, "gain": 6 * d, "inverse": (d, d), "u": d, "rate": 6}
    return atom("acceleration_step", sizes, build)


def _matrices(X: Value) -> tuple[Value, Value, Value]:
    A, B, C = (ca.reshape(X[9 * i : 9 * i + 9], 3, 3) for i in range(3))
    return A, B, C


def _joint_columns(kind: JointKind) -> ca.Function:
    return atom("joint_columns", {"root": PLACEMENT}, lambda root: pose_of(root).push(kind.S))


def _gain_columns(kind: JointKind) -> ca.Function:
    """Gain of a joint, taken to the root's frame: it maps twists, so it moves like wrenches."""

    def build(gain, root):
        return pose_of(root).push_wrench(ca.reshape(gain, 6, kind.dim))

    return atom("gain_columns", {"gain": 6 * kind.dim, "root": PLACEMENT}, build)


def _respond(
    table: NodeTables, J: Value, gains: Value, inverses: list[Value], forces: Value
) -> Value:
    """Accelerations from rest for many sets of generalized forces: a row each, N × nv.

    The articulated-body recursion with everything in the root's frame: nothing changes frames.
    """
    nodes = table.tree.nodes
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


def _of_nodes(each: int) -> Callable[[CompiledTree], int]:
    return lambda tree: each * len(tree.nodes)


def _of_pairs(each: int, elimination: int = 0) -> Callable[[CompiledTree], int]:
    return lambda tree: (each + elimination * tree.nv) * _pairs(tree)


def _pairs(tree: CompiledTree) -> int:
    """Pairs of degrees of freedom of which one carries the other, each with itself too."""
    carrying: list[int] = []
    for node in tree.nodes:
        above = carrying[node.parent] if node.parent >= 0 else 0
        carrying.append(above + node.v.stop - node.v.start)
    sizes = [node.v.stop - node.v.start for node in tree.nodes]
    return sum(size * above for size, above in zip(sizes, carrying, strict=True))


# Counts of what the written-out functions have, fitted to chains, branched trees and robots: a few
# operations a node, or a pair of degrees of freedom on one path, or the cost of elimination.
INVERSE_DYNAMICS = LargeTreeFunction(inverse_dynamics, _of_nodes(140))
BIAS_FORCES = LargeTreeFunction(bias_forces, _of_nodes(120))
GRAVITY_FORCES = LargeTreeFunction(gravity_forces, _of_nodes(60))
FORWARD_DYNAMICS = LargeTreeFunction(forward_dynamics, _of_nodes(430))
MASS_MATRIX = LargeTreeFunction(mass_matrix, _of_pairs(35))
MASS_MATRIX_INVERSE = LargeTreeFunction(mass_matrix_inverse, _of_pairs(35, 3))
INVERSE_DYNAMICS_DERIVATIVES = LargeTreeFunction(inverse_dynamics_derivatives, _of_pairs(107))
FORWARD_DYNAMICS_DERIVATIVES = LargeTreeFunction(forward_dynamics_derivatives, _of_pairs(107, 9))
