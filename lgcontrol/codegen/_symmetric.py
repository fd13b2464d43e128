"""Equations with symmetric positive definite matrices of expressions, written out sparsely."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ._types import Value


def factor_symmetric(M: Value) -> tuple[Value, Value]:
    """``M = Lᵀ D L`` with L unit lower triangular and sparse, D its diagonal (column).

    Elimination begins with the last row. In the mass matrix of a tree that is from the leaves to
    the root, which fills nothing in: an entry of L is there where one joint carries the other
    (Featherstone 2008, section 6.5).

    Parameters
    ----------
    M : SX, shape (n, n)
        Positive definite.

    Returns
    -------
    L : SX, shape (n, n)
    D : SX, shape (n,)
    """
    n = M.shape[0]
    rows = [{j: M[i, j] for j in range(i + 1) if M.has_nz(i, j)} for i in range(n)]
    D = [ca.SX(1, 1)] * n
    for k in reversed(range(n)):
        D[k] = rows[k].pop(k, ca.SX(1, 1))
        scaled = {i: x / D[k] for i, x in rows[k].items()}
        for i, x in scaled.items():
            for j, y in rows[k].items():
                if j <= i:
                    rows[i][j] = rows[i].get(j, ca.SX(1, 1)) - x * y
        rows[k] = scaled
    entries = {(i, i): ca.SX(1) for i in range(n)}
    entries |= {(j, i): x for i, row in enumerate(rows) for j, x in row.items()}
    keys = sorted(entries)  # by columns, as they are stored
    pattern = ca.Sparsity.triplet(n, n, [i for _, i in keys], [j for j, _ in keys])
    L = ca.SX(pattern, ca.vertcat(*(entries[key] for key in keys))) if n else ca.SX(0, 0)
    return L, ca.vertcat(*D) if D else ca.SX(0, 1)


def solve_factored(L: Value, D: Value, B: Value) -> Value:
    """``M⁻¹ B`` from the factors of M; zeros at the top of the columns of B are made use of.

    Parameters
    ----------
    L, D : SX
        See `factor_symmetric`.
    B : SX, shape (n, m)

    Returns
    -------
    SX, shape (n, m)
    """
    n, m = B.shape
    rows = [{j: L[i, j] for j in range(i) if L.has_nz(i, j)} for i in range(n)]
    columns = []
    for c in range(m):
        x: list[Value | None] = [B[i, c] if B.has_nz(i, c) else None for i in range(n)]
        for k in reversed(range(n)):  # Lᵀ y = b
            if x[k] is not None:
                for j, entry in rows[k].items():
                    x[j] = -entry * x[k] if x[j] is None else x[j] - entry * x[k]
        x = [None if y is None else y / D[i] for i, y in enumerate(x)]
        for k in range(n):  # L x = D⁻¹ y
            for j, entry in rows[k].items():
                if x[j] is not None:
                    x[k] = -entry * x[j] if x[k] is None else x[k] - entry * x[j]
        columns.append([ca.SX(1, 1) if y is None else y for y in x])
    units = {_unit_row(B[:, c]): c for c in range(m)}
    units.pop(None, None)
    for i, c in units.items():  # M⁻¹ is symmetric
        for k, other in units.items():
            if k < i:
                columns[other][i] = columns[c][k]
    return ca.horzcat(*(ca.vertcat(*x) for x in columns)) if columns else ca.SX(n, 0)


def solve_symmetric(M: Value, B: Value) -> Value:
    """``M⁻¹ B``: by the inverse where M is constant, else by its sparse factors.

    Parameters
    ----------
    M : SX, MX or DM, shape (n, n)
        Positive definite.
    B : SX, MX or DM, shape (n, m)

    Returns
    -------
    SX, MX or DM, shape (n, m)

    Examples
    --------
    >>> solve_symmetric(ca.DM([[2, 0], [0, 4]]), ca.DM([1, 1]))
    DM([0.5, 0.25])
    """
    if isinstance(M, ca.MX):
        return ca.solve(M, B)
    if M.is_constant():
        return ca.sparsify(ca.DM(np.linalg.inv(ca.evalf(ca.SX(M)).full()))) @ B
    return solve_factored(*factor_symmetric(M), ca.SX(B))


def _unit_row(column: Value) -> int | None:
    """Where a column of the identity has its one; None for other columns."""
    if column.nnz() != 1 or not column.is_constant():
        return None
    row = column.sparsity().row()[0]
    return row if column[row].is_one() else None
