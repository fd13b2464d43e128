"""Ranks of constraints, and which rows depend on which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Singular values below this share of the largest count as zero.
RANK_OF_ROWS = 1e-8
# Rows shorter than this share of an upper quartile are left short: they are about to vanish.
SHORT, USUAL = 0.3, 0.75
# Share of a null vector that a row must have to be in the dependent set.
RANK_SHARE = 1e-6


def scaled_rows(G: np.ndarray, M: np.ndarray, units: Sequence[str] = ()) -> np.ndarray:
    """``G L⁻ᵀ`` with ``M = L Lᵀ``, rows of one unit divided by the length of the longest.

    A row that vanishes next to others of its unit stays what it is: a loss of rank.

    Parameters
    ----------
    G : ndarray, shape (m, n)
    M : ndarray, shape (n, n)
    units : sequence of str
        Of the rows; all alike if left out.
    """
    W = np.linalg.solve(np.linalg.cholesky(M), G.T).T
    lengths = np.linalg.norm(W, axis=1)
    kinds = np.array(list(units) or [""] * len(W))
    for kind in set(kinds):
        own = kinds == kind
        longest = lengths[own].max(initial=0.0)
        W[own] = W[own] / longest if longest else 0.0
    return W


@dataclass(frozen=True, eq=False)
class RankOfRows:
    """Which rows depend on which, rows scaled to a length of about one.

    Attributes
    ----------
    rank : int
        Number of independent rows.
    dependent : tuple of int
        Rows that take part in a dependence: their multipliers are not unique.
    removable : tuple of int
        Rows that may be left out, the last ones: those before them say the same.
    values : ndarray, shape (m,)
        Singular values, the largest first.
    combinations : ndarray, shape (m, m)
        Of rows, a column for each singular value.
    """

    rank: int
    dependent: tuple[int, ...]
    removable: tuple[int, ...]
    values: np.ndarray
    combinations: np.ndarray

    @classmethod
    def of(cls, G: np.ndarray) -> RankOfRows:
        """By singular values; removable rows by orthogonalization in their order.

        Examples
        --------
        >>> found = RankOfRows.of(np.array([[1.0, 0], [0, 1], [1, 1]]))
        >>> found.rank, found.removable, found.dependent
        (2, (2,), (0, 1, 2))
        """
        if not G.size:
            every, m = tuple(range(len(G))), len(G)
            return cls(0, every, every, np.zeros(m), np.eye(m))
        lengths = np.linalg.norm(G, axis=1)
        W = G / np.maximum(lengths, SHORT * np.quantile(lengths, USUAL) + 1e-300)[:, None]
        U, s, _ = np.linalg.svd(W)
        rank = int((s > RANK_OF_ROWS * max(s[0], 1e-300)).sum())
        null = U[:, rank:]
        dependent = np.flatnonzero(np.linalg.norm(null, axis=1) > RANK_SHARE).tolist()
        removable, kept = [], np.zeros((0, W.shape[1]))
        if rank < len(W):
            for i, row in enumerate(W):
                rest = row - kept.T @ (kept @ row)
                rest = rest - kept.T @ (kept @ rest)
                size = np.linalg.norm(rest)
                if size > 10 * RANK_OF_ROWS:
                    kept = np.vstack([kept, rest / size])
                else:
                    removable.append(i)
        padded = np.concatenate([s, np.zeros(len(W) - len(s))])
        return cls(rank, tuple(dependent), tuple(removable), padded, U)
