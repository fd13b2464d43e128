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

from functools import cache

import casadi as ca

from ....codegen import Value
from ..plan._drives import armature
from ..plan._spatial import couple, cross, point_accelerations
from ._steps import columns, inwards, joint_forces, loads, outwards, product, root_motions
from ._table import INERTIA, PLACEMENT, Kind, LoopTable, atom, inertia, inertia_column, pose


def inverse_dynamics(
    table: LoopTable, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces; the recursion of `_inverse_dynamics.rigid_forces`."""
    motions = table.motions(q)
    T = ca.horzsplit(motions)
    start = ca.vertcat(ca.MX(6, 1), table.gravity[:3])
    states = outwards(table, _point_step(), start, T, table.joint_twists(v), table.joint_twists(a))
    W = _point_wrench().map(len(T))(table.inertias, ca.horzcat(*states)) - loads(table, wrenches)
    W = ca.horzcat(*inwards(table, _wrench_step(), T, ca.horzsplit(W)))
    return table.project(W) + joint_forces(table, q, v, a)


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


def mass_matrix(table: LoopTable, q: Value) -> Value:
    """Joint-space mass matrix by composite bodies."""
    T = ca.horzsplit(table.motions(q))
    composites = inwards(table, _inertia_step(), T, ca.horzsplit(table.inertias))
    roots, composites = root_motions(table, T), ca.horzcat(*composites)
    J, F = columns(table, _inertia_columns, composites, roots)
    return mass_matrix_of(table, J, F.T)


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


def mass_matrix_of(table: LoopTable, J: Value, Ft: Value) -> Value:
    """Mass matrix with the armature, from J and Fᵀ."""
    below = product(Ft, J, table.strict_pattern())
    drives = table.evaluate("armature", lambda: ca.densify(armature(table.plan)))
    own = product(Ft, J, table.block_pattern()) + ca.diag(drives)
    return ca.densify(below + own) + ca.densify(below).T
