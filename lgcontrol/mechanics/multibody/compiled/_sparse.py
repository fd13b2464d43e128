"""Sparse symmetric matrices of trees: built block by block, factored without fill-in, solved."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value


class Entries:
    """A sparse matrix that grows block by block."""

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = rows, columns
        self._values: dict[tuple[int, int], Value] = {}

    def add(self, rows: slice, columns: slice, block: Value) -> None:
        """Add a block; structural zeros stay zeros."""
        for j, column in enumerate(range(columns.start, columns.stop)):
            for i, row in enumerate(range(rows.start, rows.stop)):
                if block.has_nz(i, j):
                    key = column, row
                    old = self._values.get(key)
                    self._values[key] = block[i, j] if old is None else old + block[i, j]

    def add_diagonal(self, column: Value) -> None:
        """Add a column to the diagonal."""
        for i in range(column.shape[0]):
            self.add(slice(i, i + 1), slice(i, i + 1), column[i])

    def matrix(self) -> Value:
        """The matrix."""
        keys = sorted(self._values)
        pattern = ca.Sparsity.triplet(*self.shape, [r for _, r in keys], [c for c, _ in keys])
        values = [ca.SX(self._values[key]) for key in keys]
        return ca.SX(pattern, ca.vertcat(*values)) if values else ca.SX(*self.shape)


def factor(M: Value) -> tuple[Value, Value]:
    """``M = Lᵀ D L`` with L unit lower triangular and sparse, D its diagonal (column).

    Elimination from the leaves to the root fills nothing in: an entry of L is there where one
    joint carries the other (Featherstone 2008, section 6.5).
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
    L = Entries(n, n)
    for i, row in enumerate(rows):
        L.add(slice(i, i + 1), slice(i, i + 1), ca.SX(1))
        for j, x in row.items():
            L.add(slice(i, i + 1), slice(j, j + 1), x)
    return L.matrix(), ca.vertcat(*D) if D else ca.SX(0, 1)


def solve(L: Value, D: Value, B: Value) -> Value:
    """``M⁻¹ B`` from the factor; zeros at the top of the columns of B are made use of."""
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
        columns.append(ca.vertcat(*(ca.SX(1, 1) if y is None else y for y in x)))
    return ca.horzcat(*columns) if columns else ca.SX(n, 0)


def inverse(L: Value, D: Value) -> Value:
    """``M⁻¹`` from the factor, symmetric."""
    return ca.triu2symm(ca.triu(solve(L, D, ca.DM.eye(D.shape[0]))))
