"""Normal distributions in expressions: whitened vectors, log-determinants, triangular factors."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value, factor_symmetric


class Whitened(NamedTuple):
    """A vector in units of its deviations.

    Attributes
    ----------
    vector : column of independent entries of unit variance
    squared : its squared length, ``νᵀ S⁻¹ ν``
    log_density : logarithm of the normal density of ν
    is_definite : whether S is positive definite
    """

    vector: Value
    squared: Value
    log_density: Value
    is_definite: Value


def whiten(S: Value, nu: Value) -> Whitened:
    """``ν`` with covariance S, by ``S = Lᵀ D L``; numbers are NaN where S is not definite."""
    L, D = factor_symmetric(S)
    m = nu.shape[0]
    rows = ca.vertsplit(nu)
    for k in reversed(range(m)):
        for j in range(k):
            if L.has_nz(k, j):
                rows[j] = rows[j] - L[k, j] * rows[k]
    white = ca.vertcat(*rows) / ca.sqrt(D)
    squared = ca.sumsqr(white)
    definite = D[0] > 0
    for k in range(1, m):
        definite = ca.logic_and(definite, D[k] > 0)
    density = -(squared + ca.sum1(ca.log(D)) + m * float(np.log(2 * np.pi))) / 2
    return Whitened(white, squared, density, definite)


def cholesky(P: Value) -> Value:
    """Lower triangular L with ``L Lᵀ = P``, by columns; NaN where P is not positive definite."""
    n = P.shape[0]
    rows: list[list[Value]] = [[] for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            entry = P[i, j]
            for a, b in zip(rows[i], rows[j], strict=False):
                entry = entry - a * b
            rows[i].append(ca.sqrt(entry) if i == j else entry / rows[j][j])
    columns = [rows[i][j] for j in range(n) for i in range(j, n)]
    return ca.SX(ca.Sparsity.lower(n), ca.vertcat(*columns))
