"""Tableau: the coefficients of an explicit Runge–Kutta method, and its order conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import prod

import numpy as np

Row = tuple[float, ...]
Tree = tuple["Tree", ...]

MAX_ORDER = 8  # 200 rooted trees in all; published explicit methods rarely go further

# Decimal coefficients are rounded to 16 digits and order conditions multiply a few of them.
COEFFICIENT_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit Runge–Kutta method: a table of numbers, checked once.

    Parameters
    ----------
    A : sequence of rows
        Row i weights the slopes of the stages before stage i. Entries on and above the diagonal
        must be zero or left out; the first row is ``()``.
    b : sequence of float
        Weights of the slopes in the step.
    c : sequence of float, optional
        Times of the stages as fractions of the step; the default is the row sums of A.
    b_embedded : sequence of float, optional
        Weights of a second solution of another order, for error estimates.

    Raises
    ------
    ValueError
        If the lengths disagree, the method is implicit, or an entry is not finite. Also if the
        weights do not sum to one, or a stage time is not its row sum.

    Examples
    --------
    >>> midpoint = Tableau(A=[(), (1 / 2,)], b=(0, 1))
    >>> midpoint.order
    2
    """

    A: tuple[Row, ...]
    b: Row
    c: Row = ()
    b_embedded: Row = ()

    def __init__(
        self,
        A: Sequence[Sequence[float]],
        b: Sequence[float],
        c: Sequence[float] | None = None,
        b_embedded: Sequence[float] | None = None,
    ) -> None:
        stages = len(b)
        rows = tuple(_explicit_row(i, row) for i, row in enumerate(A))
        if len(rows) != stages or stages == 0:
            raise ValueError(f"tableau: A has {len(rows)} rows and b {stages} weights")
        sums = tuple(float(sum(row)) for row in rows)
        values = {
            "A": rows,
            "b": tuple(map(float, b)),
            "c": sums if c is None else tuple(map(float, c)),
            "b_embedded": tuple(map(float, b_embedded or ())),
        }
        for name in ("c", "b_embedded"):
            if values[name] and len(values[name]) != stages:
                raise ValueError(f"tableau: {name} has length {len(values[name])}, b {stages}")
        flat = [*values["b"], *values["c"], *values["b_embedded"], *(a for r in rows for a in r)]
        if not np.isfinite(flat).all():
            raise ValueError("tableau: a coefficient is not finite")
        for name in ("b", "b_embedded"):
            total = sum(values[name])
            if values[name] and abs(total - 1) > COEFFICIENT_TOLERANCE:
                raise ValueError(f"tableau: {name} sums to {total:.15g}, expected 1")
        for i, (time, total) in enumerate(zip(values["c"], sums, strict=True)):
            if abs(time - total) > COEFFICIENT_TOLERANCE:
                raise ValueError(
                    f"tableau: c[{i}] is {time:.15g} but row {i} of A sums to {total:.15g}"
                )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def stages(self) -> int:
        """Number of slopes a step evaluates (trailing stages without any weight are left out)."""
        return max(i for i, weight in enumerate(self.b) if weight) + 1

    @property
    def order(self) -> int:
        """Order of the step: the largest p whose order conditions all hold."""
        return _order(self.A, self.b)

    @property
    def embedded_order(self) -> int:
        """Order of the embedded solution; 0 when there is none."""
        return _order(self.A, self.b_embedded) if self.b_embedded else 0


def check_tableau(tableau: Tableau, order: int) -> dict[str, float]:
    """Check ``Σ bᵢ φᵢ(τ) = 1/γ(τ)`` for every rooted tree τ up to an order.

    Parameters
    ----------
    order : int
        Claimed order, 1 to 8.

    Returns
    -------
    dict of str to float
        Violation of each order condition. Trees are written with brackets: ``[]`` is the node
        alone, ``[[][]]`` a root with two leaves.

    Raises
    ------
    ValueError
        If a condition is violated; the message lists all that are, the lowest order first.

    References
    ----------
    Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, theorem II.2.13.

    Examples
    --------
    >>> heun = Tableau(A=[(), (1,)], b=(1 / 2, 1 / 2))
    >>> check_tableau(heun, 2)
    {'[]': 0.0, '[[]]': 0.0}
    """
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"order conditions are checked for orders 1 to {MAX_ORDER}, got {order}")
    violations = {
        _write(tree): abs(_weight(tableau.A, tableau.b, tree) - 1 / _density(tree))
        for size in range(1, order + 1)
        for tree in _trees(size)
    }
    failed = {tree: off for tree, off in violations.items() if off > COEFFICIENT_TOLERANCE}
    if failed:
        lines = "; ".join(f"{tree} is off by {off:.2g}" for tree, off in failed.items())
        raise ValueError(f"tableau is of order {tableau.order}, not {order}: {lines}")
    return violations


def _explicit_row(i: int, row: Sequence[float]) -> Row:
    entries = tuple(map(float, row))
    if any(entries[i:]):
        raise ValueError(
            f"tableau: row {i} of A uses stages from {i} on; only explicit methods are supported"
        )
    return entries[:i] + (0.0,) * (i - len(entries))


@cache
def _trees(size: int) -> tuple[Tree, ...]:
    """Rooted trees with a number of nodes, each as the tuple of its subtrees."""
    return tuple(_forests(size - 1, size - 1))


def _forests(nodes: int, largest: int) -> list[Tree]:
    """Multisets of trees with a number of nodes in all, none larger than a bound."""
    if nodes == 0:
        return [()]
    found = []
    for size in range(min(nodes, largest), 0, -1):
        for count in range(1, nodes // size + 1):
            rest = _forests(nodes - count * size, size - 1)
            for chosen in combinations_with_replacement(_trees(size), count):
                found.extend(chosen + others for others in rest)
    return found


def _size(tree: Tree) -> int:
    return 1 + sum(map(_size, tree))


def _density(tree: Tree) -> int:
    return _size(tree) * prod(map(_density, tree))


def _write(tree: Tree) -> str:
    return "[" + "".join(map(_write, tree)) + "]"


def _weight(A: tuple[Row, ...], b: Row, tree: Tree) -> float:
    return float(np.dot(b, _stage_weights(_square(A), tree)))


def _stage_weights(A: np.ndarray, tree: Tree) -> np.ndarray:
    weights = np.ones(len(A))
    for branch in tree:
        weights = weights * (A @ _stage_weights(A, branch))
    return weights


def _square(A: tuple[Row, ...]) -> np.ndarray:
    matrix = np.zeros((len(A), len(A)))
    for i, row in enumerate(A):
        matrix[i, : len(row)] = row
    return matrix


@cache
def _order(A: tuple[Row, ...], b: Row) -> int:
    for order in range(1, MAX_ORDER + 1):
        for tree in _trees(order):
            if abs(_weight(A, b, tree) - 1 / _density(tree)) > COEFFICIENT_TOLERANCE:
                return order - 1
    return MAX_ORDER
