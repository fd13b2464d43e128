"""Forward dynamics of large trees, its derivatives and the inverse of the mass matrix, by loops."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import casadi as ca

from ....codegen import Value
from ..dynamics._forward_dynamics import eliminate, join_blocks, single_body_blocks
from ..dynamics._mass_matrix import solve
from ..plan._drives import armature
from ..plan._spatial import twist_cross, wrench_cross
from ._derivatives import slopes
from ._steps import columns, joint_forces, loads, outwards, root_motions
from ._table import INERTIA, PLACEMENT, Kind, LoopTable, atom, inertia, pose

_ARTICULATED = 9 + 9 + 9 + 6
"""Numbers of an articulated body: blocks A, B, C of its inertia by columns, force."""


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
    roots = root_motions(table, T)
    a, gains, inverses = _articulated(table, q, v, tau, wrenches, T)
    parts, J, _ = slopes(table, q, v, a, wrenches, T, roots)
    gains = columns(table, _gain_columns, gains, roots)[0]
    # A row for each set of forces: what is needed are the transposes.
    dq, dv = (ca.densify(-above) + ca.densify(-below).T for below, above in parts)
    unit = ca.MX(ca.densify(ca.DM.eye(n)))
    answers = [_respond(table, J, gains, inverses, forces) for forces in (dq, dv, unit)]
    return answers[0].T, answers[1].T, answers[2]


def mass_matrix_inverse(table: LoopTable, q: Value) -> Value:
    """``M⁻¹``, by the answers to unit forces."""
    T = ca.horzsplit(table.motions(q))
    none = ca.MX.zeros(table.plan.nv, 1)
    roots = root_motions(table, T)
    _, gains, inverses = _articulated(table, q, none, none, None, T)
    gains = columns(table, _gain_columns, gains, roots)[0]
    J = columns(table, _joint_columns, roots)[0]
    return _respond(table, J, gains, inverses, ca.MX(ca.densify(ca.DM.eye(table.plan.nv))))


def _articulated(
    table: LoopTable, q: Value, v: Value, tau: Value, wrenches: Value | None, T: list[Value]
) -> tuple[Value, Value, list[Value]]:
    """Accelerations, gains of all nodes (by columns, a row each) and inverses of their inertias."""
    plan = table.plan
    none = ca.MX.zeros(plan.nv, 1)
    tau = tau - joint_forces(table, q, v, none)
    drives = table.evaluate("armature", lambda: ca.densify(armature(plan)))
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
        blocks = [ca.vec(ca.densify(ca.SX(x))) for x in single_body_blocks(own)]
        return ca.vertcat(*blocks, wrench_cross(V, own @ V)), twist_cross(V, twist)

    return atom("articulated_own", {"own": INERTIA, "V": 6, "twist": 6}, build)


def _articulated_step(kind: Kind) -> ca.Function:
    """Take a joint out of its articulated body; what is left is joined with the carrier."""

    def build(T, own, bias, tau, drive, carrier):
        T, force = pose(T), own[27:]
        node = SimpleNamespace(S=kind.S, parent=0)
        step = eliminate(node, _matrices(own), drive)  # type: ignore[arg-type]
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
