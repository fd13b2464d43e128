"""Loops over the nodes of a tree, and products of matrices with the pattern of a tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca

from ....codegen import Value
from ..dynamics._inverse_dynamics import node_wrenches
from ..plan._drives import drive_forces
from ..plan._spatial import Motion
from ._table import PLACEMENT, Kind, LoopTable, atom, pose, pose_column


def outwards(
    table: LoopTable, step: ca.Function, start: Value, T: list[Value], *tables: Value
) -> list[Value]:
    """States of all nodes: ``step(T, …, state of the carrier)``, from the world on."""
    split = [ca.horzsplit(x) for x in tables]
    states: dict[int, Value] = {-1: start}
    for k, parent in enumerate(table.parents):
        states[k] = step(T[k], *(x[k] for x in split), states[parent])
    return [states[k] for k in range(len(T))]


def inwards(table: LoopTable, step: ca.Function, T: list[Value], own: list[Value]) -> list[Value]:
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


def root_motions(table: LoopTable, T: list[Value]) -> Value:
    """T_root_node of all nodes, 12 × nodes; the root is the first node that the world carries."""
    step, still = _root_step(), ca.MX(ca.densify(pose_column(Motion.identity())))
    roots: list[Value] = []
    for k, parent in enumerate(table.parents):
        roots.append(still if parent < 0 else step(roots[parent], T[k]))
    return ca.horzcat(*roots)


def columns(
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
    return tuple(table.by_dof(list(found)) for found in zip(*parts, strict=True))


def product(left: Value, right: Value, pattern: ca.Sparsity) -> Value:
    """Entries of a matrix product where the pattern has some."""
    return ca.mac(left, right, ca.MX.zeros(pattern))


def loads(table: LoopTable, wrenches: Value | None) -> Value:
    """External wrenches on the nodes, 6 × nodes."""
    if wrenches is None:
        return ca.MX.zeros(6, len(table.parents))

    def build(wrenches):
        found = node_wrenches(table.plan, wrenches)
        return ca.densify(ca.horzcat(*(ca.SX(6, 1) if x is None else x for x in found)))

    return table.evaluate("loads", build, wrenches)


def joint_forces(table: LoopTable, q: Value, v: Value, a: Value) -> Value:
    return table.evaluate(
        "drive_forces", lambda q, v, a: ca.densify(drive_forces(table.plan, q, v, a)), q, v, a
    )
