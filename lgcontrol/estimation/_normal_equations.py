"""NormalEquations: sparse ``JᵀJ d = −Jᵀr`` of factors on many small variables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy

RESIDUAL = 1e-3  # share of an inverse that may be rounding; more says that there is none
FLAT = 1e-12  # share of the largest curvature that every direction is taken to have, if damped

# SuperLU on symmetric definite matrices: no pivoting, one ordering of rows and columns
_SYMMETRIC: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}


class NormalEquations:
    """Places of each variable in the step, and of each product of two in the sparse matrix.

    The matrix is stored by columns. Its blocks are in an order of little fill-in: minimum degree on
    the graph of the variables. This graph is some forty times smaller than the matrix.

    Parameters
    ----------
    dims : ndarray of int, shape (N,)
        Of the variables.
    is_free : ndarray of bool, shape (N,)
        Those that are not are left out.
    nodes : list of list of ndarray
        By kind of factor and argument, shape (M,): which variables they are of.

    Attributes
    ----------
    begins : ndarray of int, shape (N,)
        First row of each variable; -1 of those that are not free.
    size : int
    pointers, indices : ndarray of int
        Compressed columns.
    """

    def __init__(
        self, dims: np.ndarray, is_free: np.ndarray, nodes: list[list[np.ndarray]]
    ) -> None:
        self.nodes = nodes
        self.dims = [[int(dims[place[0]]) for place in own] for own in nodes]
        free = np.flatnonzero(is_free)
        number = np.full(len(dims), -1)
        number[free] = np.arange(len(free))
        pairs = [
            number[np.column_stack([a, b])[is_free[a] & is_free[b]]]
            for own in nodes for a in own for b in own
        ]  # fmt: skip
        together = np.concatenate([np.repeat(number[free, None], 2, axis=1), *pairs])
        rank = np.empty(len(free), dtype=int)
        order = _order(together, len(free))
        rank[order] = np.arange(len(free))
        begins = np.concatenate([[0], np.cumsum(dims[free][order])])
        self.size, self._heads = int(begins[-1]), begins
        self.begins = np.full(len(dims), -1)
        self.begins[free] = begins[rank]
        self._rank = np.full(len(dims), -1)
        self._rank[free] = rank
        self._lay_out(rank[together], dims[free][order], begins)
        self._products: list[tuple[int, int, int, np.ndarray]] = []
        self._slopes: list[tuple[int, int, np.ndarray]] = []
        place, slope = [], []
        for kind, own in enumerate(nodes):
            for i, a in enumerate(own):
                here = np.flatnonzero(is_free[a])
                self._slopes.append((kind, i, here))
                slope.append((self.begins[a[here], None] + np.arange(self.dims[kind][i])).ravel())
                for j, b in enumerate(own):
                    some = np.flatnonzero(is_free[a] & is_free[b])
                    self._products.append((kind, i, j, some))
                    place.append(self._entries(a[some], b[some], *self._shape(kind, i, j)).ravel())
        self._place, self._slope_place = np.concatenate(place), np.concatenate(slope)

    def _shape(self, kind: int, i: int, j: int) -> tuple[int, int]:
        return self.dims[kind][i], self.dims[kind][j]

    def _lay_out(self, blocks: np.ndarray, sizes: np.ndarray, begins: np.ndarray) -> None:
        """Pointers and indices; at which height of its columns each block begins."""
        count = len(sizes)
        self._keys = np.unique(blocks[:, 1] * count + blocks[:, 0])  # by columns, then rows
        self._count = count
        columns, rows = self._keys // count, self._keys % count
        heights = np.bincount(columns, weights=sizes[rows], minlength=count).astype(int)
        tops = np.concatenate([[0], np.cumsum(heights)])
        self._above = np.cumsum(sizes[rows]) - sizes[rows] - tops[columns]
        self.pointers = np.concatenate([[0], np.cumsum(np.repeat(heights, sizes))])
        # a column of a block column holds the rows of all its blocks
        inside = np.concatenate([[0], np.cumsum(sizes[rows])])
        stacked = np.arange(inside[-1]) - np.repeat(inside[:-1] - begins[rows], sizes[rows])
        parts = np.split(stacked, inside[np.searchsorted(columns, np.arange(1, count))])
        self.indices = np.concatenate(
            [np.tile(part, size) for part, size in zip(parts, sizes, strict=True)]
        ).astype(int) if count else np.zeros(0, dtype=int)  # fmt: skip

    def _entries(self, a: np.ndarray, b: np.ndarray, d: int, e: int) -> np.ndarray:
        """Places of the entries of blocks (a, b) of shape d × e, shape (M, d, e)."""
        block = np.searchsorted(self._keys, self._rank[b] * self._count + self._rank[a])
        tops = self.pointers[self.begins[b][:, None] + np.arange(e)]
        return tops[:, None, :] + self._above[block][:, None, None] + np.arange(d)[:, None]

    def assembled(self, made: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Entries of ``JᵀJ`` as they are stored, and ``Jᵀr``, of residuals and derivatives.

        Parameters
        ----------
        made : list of (r, J)
            Shapes (M, m) and (M, m, dims of all arguments), by kind of factor.
        """
        parts = [
            np.split(J, np.cumsum(dims)[:-1], axis=-1)
            for (_, J), dims in zip(made, self.dims, strict=True)
        ]
        values = [
            np.swapaxes(parts[kind][i][some], -1, -2) @ parts[kind][j][some]
            for kind, i, j, some in self._products
        ]
        slopes = [
            np.einsum("kmi,km->ki", parts[kind][i][here], made[kind][0][here])
            for kind, i, here in self._slopes
        ]
        flat = np.concatenate([value.ravel() for value in values])
        H = np.bincount(self._place, weights=flat, minlength=len(self.indices))
        flat = np.concatenate([slope.ravel() for slope in slopes])
        return H, np.bincount(self._slope_place, weights=flat, minlength=self.size)

    def rank(self, variable: int) -> int:
        """Place of a variable in the order of elimination; -1 if it is not free."""
        return int(self._rank[variable])

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Row of each entry of ``JᵀJ``, and where each column begins."""
        return self.indices, self.pointers

    @cached_property
    def blocks(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """First row of each variable in order of elimination, and the later ones it stands with."""
        columns, rows = self._keys // self._count, self._keys % self._count
        later = rows > columns
        bounds = np.searchsorted(columns[later], np.arange(1, self._count))
        return self._heads, np.split(rows[later], bounds)

    @cached_property
    def _diagonal(self) -> np.ndarray:
        columns = np.repeat(np.arange(self.size), np.diff(self.pointers))
        return np.flatnonzero(self.indices == columns)

    def _matrix(self, H: np.ndarray) -> Any:
        return scipy.sparse.csc_matrix((H, self.indices, self.pointers), (self.size,) * 2)

    def solve(self, H: np.ndarray, right: np.ndarray, damping: float = 0.0) -> np.ndarray | None:
        """Solution of ``(H + damping diag H) d = right``; None where there is none."""
        if damping:
            diagonal = H[self._diagonal]
            H = H.copy()
            H[self._diagonal] += damping * np.maximum(diagonal, FLAT * diagonal.max(initial=0.0))
        made = self._factor(H)
        d = None if made is None else made.solve(right)
        return d if d is not None and np.isfinite(d).all() else None

    def _factor(self, H: np.ndarray) -> Any:
        try:
            return scipy.sparse.linalg.splu(self._matrix(H), permc_spec="NATURAL", **_SYMMETRIC)
        except RuntimeError:  # singular
            return None

    def inverse_columns(self, H: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Columns of the inverse; None where there is none."""
        unit = np.zeros((self.size, len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        made = self._factor(H)
        if made is None:
            return None
        found = made.solve(unit)
        # a round of refinement tells how much of the result is rounding
        change = made.solve(unit - self._matrix(H) @ found)
        if not np.abs(change).max() <= RESIDUAL * np.abs(found).max():  # NaN is not
            return None
        return found


def _order(together: np.ndarray, count: int) -> np.ndarray:
    """Order of elimination with little fill-in, of pairs of variables that are in a factor."""
    if count < 3:
        return np.arange(count)
    # SuperLU's minimum degree, on a matrix with this pattern that is surely definite
    ones = np.ones(len(together))
    pattern = scipy.sparse.csc_matrix((ones, (together[:, 0], together[:, 1])), (count, count))
    pattern.data[:] = -1.0
    definite = (pattern + scipy.sparse.diags(np.diff(pattern.indptr) + 1.0)).tocsc()
    made = scipy.sparse.linalg.splu(definite, permc_spec="MMD_AT_PLUS_A", **_SYMMETRIC)
    return np.argsort(made.perm_c)


def solve_definite(matrix: Any, right: np.ndarray) -> np.ndarray:
    """``matrix⁻¹ right`` of a sparse symmetric definite matrix."""
    made = scipy.sparse.linalg.splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", **_SYMMETRIC)
    return made.solve(right)
