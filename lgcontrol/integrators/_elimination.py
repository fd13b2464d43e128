"""Elimination that is written out for a pattern of zeros: factors once, solves several times."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen._internal import solve_linear

# Operations up to which it is written out; compiled, they take a fifth of the time of loops over
# sparse patterns.
_LARGEST = 200_000


def eliminated(A: Any) -> Callable[[Any], Any]:
    """``b ↦ A⁻¹ b`` of columns, for A whose rows may be eliminated in their order.

    Nothing is exchanged: pivots are what the problem makes of them, as the masses first and then
    the mobilities of constraints. Large ones are left to `solve_linear`.

    Parameters
    ----------
    A : SX, MX or DM, shape (n, n)
    """
    pattern = A.sparsity()
    made = _functions(pattern.size1(), tuple(pattern.colind()), tuple(pattern.row()))
    if made is None:
        return lambda b: solve_linear(A, b)
    factors = made.factor(A)
    return lambda b: made.solve(factors, b)


class _Elimination(NamedTuple):
    """``A → factors`` and ``(factors, b) → x``."""

    factor: ca.Function
    solve: ca.Function


@lru_cache(maxsize=32)
def _functions(n: int, starts: tuple[int, ...], rows: tuple[int, ...]) -> _Elimination | None:
    """Functions for a pattern in compressed columns; None where they would be too long."""
    pattern = ca.Sparsity(n, n, starts, rows)
    filled = np.array(ca.DM(pattern, 1)) != 0
    if not _fill(filled):
        return None
    A, b = ca.SX.sym("A", pattern), ca.SX.sym("b", n)
    table: Any = ca.densify(A)
    for k in range(n):
        below, right = _after(filled[:, k], k), _after(filled[k], k)
        table[k, k] = 1 / table[k, k]
        if below:
            table[below, k] = table[below, k] * table[k, k]
        if below and right:
            table[below, right] = table[below, right] - table[below, k] @ table[k, right]
    pattern = ca.sparsify(ca.DM(filled.astype(float))).sparsity()
    factors: Any = ca.SX.sym("factors", pattern)
    x: Any = ca.SX(b)
    for i in range(n):
        left = [int(j) for j in np.flatnonzero(filled[i, :i])]
        if left:
            x[i] = x[i] - factors[i, left] @ x[left]
    for i in reversed(range(n)):
        right = _after(filled[i], i)
        x[i] = (x[i] - factors[i, right] @ x[right] if right else x[i]) * factors[i, i]
    table = ca.project(table, pattern)
    return _Elimination(
        ca.Function("factor", [A], [table], ["A"], ["factors"]),
        ca.Function("solve_by_factors", [factors, b], [x], ["factors", "b"], ["x"]),
    )


def _after(entries: np.ndarray, k: int) -> list[int]:
    """Places of entries behind k."""
    return [int(j) for j in np.flatnonzero(entries) if j > k]


def _fill(filled: np.ndarray) -> bool:
    """Add the entries that elimination makes; false without its pivots or where it is too long."""
    operations = 0
    for k in range(len(filled)):
        if not filled[k, k]:
            return False
        below, right = filled[k + 1 :, k], filled[k, k + 1 :]
        operations += int(below.sum()) * (1 + 2 * int(right.sum()))
        filled[k + 1 :, k + 1 :] |= np.outer(below, right)
    return operations <= _LARGEST
