"""What loops over a tree's nodes need: tables of numbers, kinds of joints, patterns of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import Value
from ..plan._plan import Node, Plan
from ..plan._spatial import Inertia, Motion

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


def pose(X: Value) -> Motion:
    """Motion of a column [R by columns; p]."""
    return Motion(ca.reshape(X[:9], 3, 3), X[9:12])


def pose_column(T: Motion) -> Value:
    """Column [R by columns; p] of a motion."""
    return ca.vertcat(ca.vec(ca.densify(T.R)), ca.densify(T.p))


def inertia(X: Value) -> Inertia:
    """Inertia of a column [m; h; Σ by columns]."""
    return Inertia(X[0], X[1:4], ca.reshape(X[4:13], 3, 3))


def inertia_column(own: Inertia) -> Value:
    """Column [m; h; Σ by columns] of an inertia."""
    return ca.vertcat(*(ca.vec(ca.densify(moment)) for moment in own))


@dataclass
class Kind:
    """Nodes whose joints move alike.

    Attributes
    ----------
    motion : casadi.Function
        ``(placement, q) → T_parent_node`` as columns.
    S : DM
        Motion subspace, 6 × dim.
    nodes : list of int
    """

    motion: ca.Function
    S: ca.DM
    nodes: list[int]

    @property
    def dim(self) -> int:
        """Degrees of freedom of each."""
        return self.S.shape[1]


class LoopTable:
    """A plan as tables, with one column a node.

    Parameters
    ----------
    plan : Plan
        Of a tree without mimics.
    p : SX
        Its parameters, as they occur in the plan.
    values : MX
        The same, as arguments of the function that is made.
    """

    def __init__(self, plan: Plan, p: ca.SX, values: ca.MX) -> None:
        self.plan = plan
        self._p, self._values = p, values
        self.parents = [node.parent for node in plan.nodes]
        self.kinds = _kinds(plan.nodes)
        self.nodes = [k for kind in self.kinds for k in kind.nodes]
        self.dofs = [i for k in self.nodes for i in _range(plan.nodes[k].v)]
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
            "gravity", lambda: ca.densify(ca.vertcat(-self.plan.gravity, ca.DM(3, 1)))
        )

    def _numbers(self, name: str, column: Callable[[Node], Value]) -> Value:
        return self.evaluate(
            name, lambda: ca.densify(ca.horzcat(*(ca.SX(column(n)) for n in self.plan.nodes)))
        )

    def of_kind(self, kind: Kind, table: Value) -> Value:
        """Columns of a table for the nodes of a kind."""
        if kind.nodes == list(range(table.shape[1])):
            return table
        return table[:, kind.nodes]

    def coordinates(self, kind: Kind, q: Value) -> Value:
        """Coordinates of the nodes of a kind, nq × nodes."""
        own = [i for k in kind.nodes for i in _range(self.plan.nodes[k].q)]
        return ca.reshape(_take(q, own), -1, len(kind.nodes))

    def velocities(self, kind: Kind, v: Value) -> Value:
        """Entries of a column of nv for the nodes of a kind, dim × nodes."""
        own = [i for k in kind.nodes for i in _range(self.plan.nodes[k].v)]
        return ca.reshape(_take(v, own), kind.dim, len(kind.nodes))

    def by_node(self, parts: list[Value]) -> Value:
        """A table with a column a node, from its parts by kind."""
        return _sorted_columns(ca.horzcat(*parts), self.nodes)

    def by_dof(self, parts: list[Value]) -> Value:
        """A table with a column a degree of freedom, from its parts by kind."""
        return _sorted_columns(ca.horzcat(*parts), self.dofs)

    def motions(self, q: Value) -> Value:
        """T_parent_node of all nodes, 12 × nodes."""
        return self.by_node(
            [
                kind.motion.map(len(kind.nodes))(
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
        """Where column i has the rows of all that node i carries, without its own."""
        nodes = self.plan.nodes
        end = [node.v.stop for node in nodes]
        for k in reversed(range(len(nodes))):
            if nodes[k].parent >= 0:
                end[nodes[k].parent] = max(end[nodes[k].parent], end[k])
        return self._pattern([range(n.v.stop, e) for n, e in zip(nodes, end, strict=True)])

    def block_pattern(self) -> ca.Sparsity:
        """Where column i has the rows of its own node."""
        return self._pattern([_range(node.v) for node in self.plan.nodes])

    def _pattern(self, rows_of: list[range]) -> ca.Sparsity:
        rows, columns = [], []
        for node, own in zip(self.plan.nodes, rows_of, strict=True):
            for i in _range(node.v):
                rows += own
                columns += [i] * len(own)
        return ca.Sparsity.triplet(self.plan.nv, self.plan.nv, rows, columns)


def _kinds(nodes: list[Node]) -> list[Kind]:
    kinds: dict[tuple[str, bytes], Kind] = {}
    for k, node in enumerate(nodes):
        X, q = ca.SX.sym("X", PLACEMENT), ca.SX.sym("q", node.group.nq)
        T = pose(X) @ Motion(*(ca.sparsify(x) for x in node.group._pose(q)))
        motion = ca.Function("motion", [X, q], ca.cse([ca.SX(pose_column(T))]))
        key = motion.serialize(), np.array(ca.densify(node.S)).tobytes()
        kinds.setdefault(key, Kind(motion, node.S, [])).nodes.append(k)
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
