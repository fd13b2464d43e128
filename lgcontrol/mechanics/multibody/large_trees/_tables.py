"""What code that visits a large tree's nodes one by one needs: tables, kinds of joints, patterns.

One small function a step is called for every node, instead of expressions that are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import Value
from .._spatial import Inertia, Pose
from ..compiled._added_forces import joint_forces
from ..compiled._compiled_tree import CompiledTree, Node

PLACEMENT, INERTIA = 12, 13
"""Numbers of a pose [R by columns; p] and of an inertia [m; h; Σ by columns]."""


def atom(
    name: str, sizes: Mapping[str, int | tuple[int, int]], build: Callable[..., Any]
) -> ca.Function:
    """SX function of dense columns (or matrices), which loops call many times."""
    symbols = [
        ca.SX.sym(key, *(size if isinstance(size, tuple) else (size,)))
        for key, size in sizes.items()
    ]
    built = build(*symbols)
    built = built if isinstance(built, tuple) else (built,)
    return ca.Function(name, symbols, ca.cse([ca.densify(ca.SX(x)) for x in built]))


def pose_of(X: Value) -> Pose:
    """Motion of a column [R by columns; p]."""
    return Pose(ca.reshape(X[:9], 3, 3), X[9:12])


def pose_column(T: Pose) -> Value:
    """Column [R by columns; p] of a motion."""
    return ca.vertcat(ca.vec(ca.densify(T.R)), ca.densify(T.p))


def inertia(X: Value) -> Inertia:
    """Inertia of a column [m; h; Σ by columns]."""
    return Inertia(X[0], X[1:4], ca.reshape(X[4:13], 3, 3))


def inertia_column(own: Inertia) -> Value:
    """Column [m; h; Σ by columns] of an inertia."""
    return ca.vertcat(*(ca.vec(ca.densify(moment)) for moment in own))


@dataclass
class JointKind:
    """Nodes whose joints move alike."""

    pose: ca.Function  # ``(placement, q) → T_parent_node`` as columns
    S: ca.DM  # motion subspace, 6 × dim
    nodes: list[int]

    @property
    def dim(self) -> int:
        """Degrees of freedom of each."""
        return self.S.shape[1]


class NodeTables:
    """A compiled tree (without mimics) as tables, with one column a node.

    Its parameters are the symbols p in it, and `values` as arguments of the function that is made.
    """

    def __init__(self, tree: CompiledTree, p: ca.SX, values: ca.MX) -> None:
        self.tree = tree
        self._p, self._values = p, values
        self.parents = [node.parent for node in tree.nodes]
        self.kinds = _kinds(tree.nodes)
        self.nodes = [k for kind in self.kinds for k in kind.nodes]
        self.dofs = [i for k in self.nodes for i in _range(tree.nodes[k].v)]
        self.kind_of = {k: kind for kind in self.kinds for k in kind.nodes}

    def evaluate(self, name: str, build: Callable[..., Value], *arguments: Value) -> Value:
        """A straight-line function of the parameters and other arguments, O(n) of it."""
        symbols = [ca.SX.sym("x", *x.shape) for x in arguments]
        expression = ca.SX(build(*symbols))
        if not ca.symvar(expression):
            return ca.MX(ca.evalf(expression))
        function = ca.Function(name, [self._p, *symbols], [ca.cse(expression)])
        return function(self._values, *arguments)

    @cached_property
    def placements(self) -> Value:
        """Placements of all nodes, 12 × nodes."""
        return self._numbers("placements", lambda node: pose_column(node.placement))

    @cached_property
    def inertias(self) -> Value:
        """Inertias of all nodes, 13 × nodes."""
        return self._numbers("inertias", lambda node: inertia_column(node.inertia))

    @cached_property
    def gravity(self) -> Value:
        """Acceleration of the world's frame when weight is replaced by it, 6 × 1."""
        return self.evaluate(
            "gravity", lambda: ca.densify(ca.vertcat(-self.tree.gravity, ca.DM(3, 1)))
        )

    def _numbers(self, name: str, column: Callable[[Node], Value]) -> Value:
        return self.evaluate(
            name, lambda: ca.densify(ca.horzcat(*(ca.SX(column(n)) for n in self.tree.nodes)))
        )

    def of_kind(self, kind: JointKind, table: Value) -> Value:
        """Columns of a table for the nodes of a kind."""
        if kind.nodes == list(range(table.shape[1])):
            return table
        return table[:, kind.nodes]

    def coordinates(self, kind: JointKind, q: Value) -> Value:
        """Coordinates of the nodes of a kind, nq × nodes."""
        own = [i for k in kind.nodes for i in _range(self.tree.nodes[k].q)]
        return ca.reshape(_take(q, own), -1, len(kind.nodes))

    def velocities(self, kind: JointKind, v: Value) -> Value:
        """Entries of a column of nv for the nodes of a kind, dim × nodes."""
        own = [i for k in kind.nodes for i in _range(self.tree.nodes[k].v)]
        return ca.reshape(_take(v, own), kind.dim, len(kind.nodes))

    def by_node(self, parts: list[Value]) -> Value:
        """A table with a column a node, from its parts by kind."""
        return _sorted_columns(ca.horzcat(*parts), self.nodes)

    def by_dof(self, parts: list[Value]) -> Value:
        """A table with a column a degree of freedom, from its parts by kind."""
        return _sorted_columns(ca.horzcat(*parts), self.dofs)

    def poses(self, q: Value) -> Value:
        """T_parent_node of all nodes, 12 × nodes."""
        return self.by_node(
            [
                kind.pose.map(len(kind.nodes))(
                    self.of_kind(kind, self.placements), self.coordinates(kind, q)
                )
                for kind in self.kinds
            ]
        )

    def joint_twists(self, v: Value) -> Value:
        """Twist of every node on its parent, 6 × nodes."""
        return self.by_node(
            [ca.mtimes(ca.MX(ca.densify(kind.S)), self.velocities(kind, v)) for kind in self.kinds]
        )

    def project(self, wrenches: Value) -> Value:
        """Generalized forces of wrenches on the nodes, 6 × nodes → nv."""
        parts = []
        for kind in self.kinds:
            forces = ca.mtimes(ca.MX(ca.densify(kind.S.T)), self.of_kind(kind, wrenches))
            parts.append(ca.reshape(forces, 1, -1))
        return ca.vec(self.by_dof(parts))

    def strict_pattern(self) -> ca.Sparsity:
        """Places in column i of the rows of the nodes that node i carries, without its own."""
        nodes = self.tree.nodes
        end = [node.v.stop for node in nodes]
        for k in reversed(range(len(nodes))):
            if nodes[k].parent >= 0:
                end[nodes[k].parent] = max(end[nodes[k].parent], end[k])
        return self._pattern([range(n.v.stop, e) for n, e in zip(nodes, end, strict=True)])

    def block_pattern(self) -> ca.Sparsity:
        """Places in column i of the rows of its own node."""
        return self._pattern([_range(node.v) for node in self.tree.nodes])

    def _pattern(self, rows_of: list[range]) -> ca.Sparsity:
        rows, columns = [], []
        for node, own in zip(self.tree.nodes, rows_of, strict=True):
            for i in _range(node.v):
                rows += own
                columns += [i] * len(own)
        return ca.Sparsity.triplet(self.tree.nv, self.tree.nv, rows, columns)


def _kinds(nodes: list[Node]) -> list[JointKind]:
    kinds: dict[tuple[str, bytes], JointKind] = {}
    for k, node in enumerate(nodes):
        X, q = ca.SX.sym("X", PLACEMENT), ca.SX.sym("q", node.group.nq)
        T = pose_of(X) @ Pose.of(node.group, q)
        pose = ca.Function("motion", [X, q], ca.cse([ca.SX(pose_column(T))]))
        key = pose.serialize(), np.array(ca.densify(node.S)).tobytes()
        kinds.setdefault(key, JointKind(pose, node.S, [])).nodes.append(k)
    return list(kinds.values())


def _sorted_columns(table: Value, at: list[int]) -> Value:
    """Columns in their order, from a table whose column j belongs at ``at[j]``."""
    if at == list(range(len(at))):
        return table
    return table[:, [int(j) for j in np.argsort(at)]]


def _take(column: Value, own: list[int]) -> Value:
    return column if own == list(range(column.shape[0])) else column[own]


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def outwards(
    table: NodeTables, step: ca.Function, start: Value, T: list[Value], *tables: Value
) -> list[Value]:
    """States of all nodes: ``step(T, …, state of the carrier)``, from the world on."""
    split = [ca.horzsplit(x) for x in tables]
    states: dict[int, Value] = {-1: start}
    for k, parent in enumerate(table.parents):
        states[k] = step(T[k], *(x[k] for x in split), states[parent])
    return [states[k] for k in range(len(T))]


def inwards(table: NodeTables, step: ca.Function, T: list[Value], own: list[Value]) -> list[Value]:
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
        lambda carrier, T: pose_column(pose_of(carrier) @ pose_of(T)),
    )


def root_poses(table: NodeTables, T: list[Value]) -> Value:
    """T_root_node of all nodes, 12 × nodes; the root is the first node that the world carries."""
    step, still = _root_step(), ca.MX(ca.densify(pose_column(Pose.identity())))
    roots: list[Value] = []
    for k, parent in enumerate(table.parents):
        roots.append(still if parent < 0 else step(roots[parent], T[k]))
    return ca.horzcat(*roots)


def columns(
    table: NodeTables, make: Callable[[JointKind], ca.Function], *tables: Any
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


def loads(table: NodeTables, wrenches: Value | None) -> Value:
    """External wrenches on the nodes, 6 × nodes."""
    if wrenches is None:
        return ca.MX.zeros(6, len(table.parents))

    def build(wrenches):
        found = table.tree.node_wrenches(wrenches)
        return ca.densify(ca.horzcat(*(ca.SX(6, 1) if x is None else x for x in found)))

    return table.evaluate("loads", build, wrenches)


def forces_of_joints(table: NodeTables, q: Value, v: Value, a: Value) -> Value:
    """`joint_forces` of a table's tree."""
    return table.evaluate(
        "drive_forces", lambda q, v, a: ca.densify(joint_forces(table.tree, q, v, a)), q, v, a
    )
