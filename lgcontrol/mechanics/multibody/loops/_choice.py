"""Which trees are large: loops over nodes instead of code that is written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ....codegen import Value
from ..plan._plan import Plan
from . import _derivatives as derivatives
from . import _forward as forward
from . import _loops as loops
from ._table import LoopTable

# Written out, code runs two to three times as quick as loops up to some 200 000 operations by the
# estimates below (Talos' derivatives of forward dynamics, 20 s to compile), and no quicker above.
# Up to 30 000 it compiles in seconds; from there on, it is worth the wait, once, for robots (fewer
# than 48 nodes).
_SMALL, _LARGE, _ROBOT = 30_000, 200_000, 48


@dataclass(frozen=True)
class Loops:
    """A function of large trees.

    Parameters
    ----------
    build : callable
        ``(table, q, …) → expressions``, for MX.
    operations : callable
        ``plan → count``: operations when written out, about.
    """

    build: Callable[..., Any]
    operations: Callable[[Plan], int]

    def suit(self, plan: Plan) -> bool:
        """Whether loops are the better way; trees with mimics have none."""
        if plan.is_coupled:
            return False
        operations = self.operations(plan)
        return operations > (_SMALL if len(plan.nodes) >= _ROBOT else _LARGE)

    def function(
        self,
        name: str,
        plan: Plan,
        p: ca.SX,
        arguments: dict[str, ca.SX],
        results: list[str],
    ) -> ca.Function:
        """The casadi.Function with arguments like these (p among them, if there are parameters)."""
        symbols = {key: ca.MX.sym(key, *x.shape) for key, x in arguments.items()}
        values = symbols.get("p", ca.MX(0, 1))
        table = LoopTable(plan, p, values)
        built = self.build(table, *(x for key, x in symbols.items() if key != "p"))
        built = built if isinstance(built, tuple) else (built,)
        built = [ca.densify(x) for x in built]
        return ca.Function(name, list(symbols.values()), built, list(symbols), results)


# Counts of what the unrolled functions have, fitted to chains, branched trees and robots: a few
# operations a node, or a pair of degrees of freedom on one path, or the cost of elimination.


def _of_nodes(each: int) -> Callable[[Plan], int]:
    return lambda plan: each * len(plan.nodes)


def _of_pairs(each: int, elimination: int = 0) -> Callable[[Plan], int]:
    return lambda plan: (each + elimination * plan.nv) * _pairs(plan)


def _pairs(plan: Plan) -> int:
    """Pairs of degrees of freedom of which one carries the other, each with itself too."""
    carrying: list[int] = []
    for node in plan.nodes:
        above = carrying[node.parent] if node.parent >= 0 else 0
        carrying.append(above + node.v.stop - node.v.start)
    sizes = [node.v.stop - node.v.start for node in plan.nodes]
    return sum(size * above for size, above in zip(sizes, carrying, strict=True))


def _bias_forces(table: LoopTable, q: Value, v: Value, wrenches: Value | None = None) -> Value:
    return loops.inverse_dynamics(table, q, v, ca.MX.zeros(table.plan.nv, 1), wrenches)


def _gravity_forces(table: LoopTable, q: Value) -> Value:
    none = ca.MX.zeros(table.plan.nv, 1)
    return loops.inverse_dynamics(table, q, none, none)


INVERSE_DYNAMICS = Loops(loops.inverse_dynamics, _of_nodes(140))
BIAS_FORCES = Loops(_bias_forces, _of_nodes(120))
GRAVITY_FORCES = Loops(_gravity_forces, _of_nodes(60))
FORWARD_DYNAMICS = Loops(forward.forward_dynamics, _of_nodes(430))
MASS_MATRIX = Loops(loops.mass_matrix, _of_pairs(35))
MASS_MATRIX_INVERSE = Loops(forward.mass_matrix_inverse, _of_pairs(35, 3))
INVERSE_DYNAMICS_DERIVATIVES = Loops(derivatives.inverse_dynamics_derivatives, _of_pairs(107))
FORWARD_DYNAMICS_DERIVATIVES = Loops(forward.forward_dynamics_derivatives, _of_pairs(107, 9))
