"""Saddle: equations with multipliers, regularised, as factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ._linear import solve_linear
from ._symmetric import factor_symmetric, solve_factored
from ._types import Value

# Share of the compliance that regularises, and of its mean that rows without any get.
EPSILON = 1e-10
GUARD = 1e-3
# Unknowns above which the whole matrix is factored sparsely, not the compliance.
LARGEST_DENSE = 150


class Saddle:
    """``[[M, Gᵀ], [G, −ε S]]`` as factors, for ``M a + Gᵀ λ = F``, ``G a = γ``.

    The compliance ``G M⁻¹ Gᵀ`` is regularised by ε times its own diagonal S, so that rows of
    different units count alike and nothing decides a rank. One step of refinement reduces the
    error of independent rows to ε². Multipliers of dependent rows are those of the smallest norm;
    their choice does not change the accelerations. Smooth in M and G, also where a row of G
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
