"""Equations with symmetric positive definite matrices of expressions, written out sparsely."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ._types import Value

_INFINITE = 1e300  # as a pivot; products with rounding stay finite


def factor_symmetric(M: Value, *, singular: bool = False) -> tuple[Value, Value]:
    """``M = Lᵀ D L`` with L unit lower triangular and sparse, D its diagonal (column).

    Elimination begins with the last row. In the mass matrix of a tree this order runs from the
    leaves to the root and causes no fill-in. An entry of L is nonzero only if one joint carries
    the other (Featherstone 2008, section 6.5).

    Parameters
    ----------
    M : SX, shape (n, n)
        Positive definite.
    singular : bool
        Whether M may be semidefinite: pivots that are rounding count as infinite, so that
        `solve_factored` has a generalized inverse.

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
        if singular:
            least = 4 * n * np.finfo(float).eps * M[k, k]
            D[k] = ca.if_else(D[k] > least, D[k], _INFINITE)
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
    n = B.shape[0]
    rows = [{j: L[i, j] for j in range(i) if L.has_nz(i, j)} for i in range(n)]
    x = ca.vertsplit(ca.SX(B)) if n else []  # sparse rows of all columns
    for k in reversed(range(n)):  # Lᵀ y = B
        for j, entry in rows[k].items():
            x[j] = x[j] - entry * x[k]
    x = [row / D[i] for i, row in enumerate(x)]
    for k in range(n):  # L x = D⁻¹ y
        for j, entry in rows[k].items():
            x[k] = x[k] - entry * x[j]
    X = ca.vertcat(*x) if n else ca.SX(*B.shape)
    rows = ((_unit_row(B[:, c]), c) for c in range(B.shape[1]))
    units = sorted({row: c for row, c in rows if row is not None}.items())
    if units:  # M⁻¹ is symmetric
        order, columns = (list(numbers) for numbers in zip(*units, strict=True))
        X[order, columns] = ca.triu2symm(ca.triu(X[order, columns]))
    return X


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


def congruence(A: Value, P: Value) -> Value:
    """``A P Aᵀ`` of a symmetric P, without products that symmetry or zeros of A spare.

    Parameters
    ----------
    A : SX, shape (m, n)
    P : SX, shape (n, n)
        Symmetric and dense.

    Returns
    -------
    SX, shape (m, m)

    Examples
    --------
    >>> congruence(ca.SX([[1, 2]]), ca.SX([[1, 3], [3, 1]]))
    SX(17)
    """
    A = ca.sparsify(A)
    made = ca.densify((A @ P) @ A.T)
    m = A.shape[0]
    filled = np.diff(A.T.sparsity().colind())  # of each row
    columns, rows = np.triu_indices(m)  # of the lower triangle, column by column
    # an entry comes from two rows of A; of the first all of A P is there already
    swap = filled[columns] > filled[rows]
    first, second = np.where(swap, columns, rows), np.where(swap, rows, columns)
    lower = ca.SX(ca.Sparsity.lower(m), made[(first + m * second).tolist()])
    return ca.tril2symm(lower)


def _unit_row(column: Value) -> int | None:
    """Where a column of the identity has its one; None for other columns."""
    if column.nnz() != 1 or not column.is_constant():
        return None
    row = column.sparsity().row()[0]
    return row if column[row].is_one() else None
