"""Equations of motion with multipliers, regularised; ranks of constraints, and what depends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy

from ...codegen import Value, factor_symmetric, solve_factored, solve_linear

# Share of the compliance that regularises, and of its mean that rows without any get.
EPSILON = 1e-10
GUARD = 1e-3
# Unknowns above which the whole matrix is factored sparsely, not the compliance.
LARGEST_DENSE = 150
# Singular values below this share of the largest count as zero.
RANK = 1e-8
# Rows shorter than this share of an upper quartile are left short: they are about to vanish.
SHORT, USUAL = 0.3, 0.75
# Share of a null vector that a row must have to be in the dependent set.
SHARE = 1e-6


class Saddle:
    """``[[M, Gᵀ], [G, −ε S]]`` as factors, for ``M a + Gᵀ λ = F``, ``G a = γ``.

    The compliance ``G M⁻¹ Gᵀ`` is regularised by ε times its own diagonal S, so that rows of
    different units count alike and nothing decides a rank. One step of refinement brings the
    error of independent rows to ε²; multipliers of dependent rows are those of the smallest norm,
    and the accelerations do not feel the difference. Smooth in M and G, also where a row of G
    vanishes.

    Parameters
    ----------
    M : SX, MX or DM, shape (n, n)
        Positive definite.
    G : SX, MX or DM, shape (m, n)

    Examples
    --------
    The same row twice: each multiplier takes its half.

    >>> a, multipliers = Saddle(ca.SX.eye(2), ca.SX([[1, 0], [1, 0]])).solve([3, 5], [0, 0])
    >>> ca.evalf(multipliers).full().ravel().round(9).tolist()
    [1.5, 1.5]
    """

    def __init__(self, M: Value, G: Value) -> None:
        self.n, self.m = G.shape[1], G.shape[0]
        self.is_written_out = not (isinstance(M, ca.MX) or isinstance(G, ca.MX))
        self.is_sparse = not self.is_written_out and self.n + self.m > LARGEST_DENSE
        if self.is_sparse:
            # Lengths of the rows by the diagonal of M suffice for a scale.
            S = ca.sum2((G / ca.repmat(ca.diag(M).T, self.m, 1)) * G)
            own = EPSILON * ca.diag(_guarded(S))
            self._bare = ca.blockcat([[M, G.T], [G, ca.MX(self.m, self.m)]])
            self._full = self._bare - ca.diagcat(ca.MX(self.n, self.n), own)
            return
        if self.is_written_out:
            kind: Any = ca.SX
            M, G = ca.sparsify(kind(M)), ca.sparsify(kind(G))
            self._by_M = _factored(M)
        else:
            self._by_M = lambda b: solve_linear(M, b, symmetric=True)
        if not self.m:
            return
        self._G, self._across = G, self._by_M(G.T)
        compliance = self._compliance = ca.densify(G @ self._across)
        own = EPSILON * ca.diag(_guarded(ca.diag(compliance)))
        if self.is_written_out:
            self._by_S = _factored(compliance + own)
        else:
            self._by_S = lambda b: solve_linear(compliance + own, b, symmetric=True)

    def solve(self, F: Any, gamma: Any) -> tuple[Any, Any]:
        """Accelerations and multipliers for right-hand sides, one a column.

        Parameters
        ----------
        F : value, shape (n, k)
        gamma : value, shape (m, k)

        Returns
        -------
        a : value, shape (n, k)
        multipliers : value, shape (m, k)
        """
        if self.is_sparse:
            right = ca.vertcat(F, gamma)
            found = solve_linear(self._full, right, symmetric=True)
            found += solve_linear(self._full, right - self._bare @ found, symmetric=True)
            return found[: self.n, :], found[self.n :, :]
        kind: Any = ca.SX if self.is_written_out else ca.MX
        F, gamma = (
            kind(value if isinstance(value, kind) else ca.DM(value)) for value in (F, gamma)
        )
        free = self._by_M(F)
        if not self.m:
            return free, kind(0, free.shape[1])
        right = self._G @ free - gamma
        multipliers = self._by_S(right)
        multipliers += self._by_S(right - self._compliance @ multipliers)
        return free - self._across @ multipliers, multipliers


def _factored(M: Any) -> Callable[[Any], Any]:
    factors = factor_symmetric(M)
    return lambda b: solve_factored(*factors, b)


def _guarded(S: Value) -> Value:
    """Diagonal of the compliance, where rows that vanish have a share of the others'."""
    return S + GUARD * ca.sum1(S) / max(S.shape[0], 1) + np.finfo(float).tiny


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
    W = scipy.linalg.solve_triangular(np.linalg.cholesky(M), G.T, lower=True).T
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
        rank = int((s > RANK * max(s[0], 1e-300)).sum())
        null = U[:, rank:]
        dependent = np.flatnonzero(np.linalg.norm(null, axis=1) > SHARE).tolist()
        removable, kept = [], np.zeros((0, W.shape[1]))
        if rank < len(W):
            for i, row in enumerate(W):
                rest = row - kept.T @ (kept @ row)
                rest = rest - kept.T @ (kept @ rest)
                size = np.linalg.norm(rest)
                if size > 10 * RANK:
                    kept = np.vstack([kept, rest / size])
                else:
                    removable.append(i)
        padded = np.concatenate([s, np.zeros(len(W) - len(s))])
        return cls(rank, tuple(dependent), tuple(removable), padded, U)
