"""Sparse symmetric matrices of trees: built block by block, inverted from their factors."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ....codegen._internal import factor_symmetric, solve_factored

factor, solve = factor_symmetric, solve_factored


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


def inverse(L: Value, D: Value) -> Value:
    """``M⁻¹`` from the factor, symmetric."""
    return solve(L, D, ca.DM.eye(D.shape[0]))
