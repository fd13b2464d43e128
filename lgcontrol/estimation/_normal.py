"""Normal distributions in expressions: whitened vectors, log-determinants, triangular factors."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy

from ..codegen import Value
from ..codegen._internal import factor_symmetric

LIKELY = 0.95  # probability up to which robust costs and weights are those of a normal density
IMPOSSIBLE = 1e-9  # probability of an innovation that is no noise
DEPENDENT_ROW = 1e-30  # share of a row's square left where it depends on others: rounding


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


def chi_squared_quantile(probability: float, m: int) -> float:
    """Squared length that a whitened vector of m entries stays below with a probability."""
    # scipy.stats has it by name, and takes seconds to import
    return float(2 * scipy.special.gammaincinv(m / 2, probability))


def likely_square(m: int) -> float:
    """Squared length that a whitened vector of m entries stays below in 95 % of all cases."""
    return chi_squared_quantile(LIKELY, m)


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


def triangular(M: Value) -> Value:
    """Lower triangular L with ``L Lᵀ = M Mᵀ``, by Gram and Schmidt on the rows of M.

    The condition of L is that of M: half as many digits are lost as in a factor of ``M Mᵀ``. Rows
    that depend on those before them give zeros on the diagonal.
    """
    rows = ca.vertsplit(ca.densify(M))
    n = len(rows)
    directions: list[Value] = []
    columns: list[list[Value]] = [[] for _ in range(n)]
    for i, row in enumerate(rows):
        size = ca.sumsqr(row)
        for j, direction in enumerate(directions):
            entry = ca.dot(direction, row)  # of what is left, which is the stabler way
            columns[j].append(entry)
            row = row - entry * direction
        square = ca.sumsqr(row)
        is_new = square > DEPENDENT_ROW * size
        length = ca.sqrt(ca.if_else(is_new, square, 1.0))
        columns[i].append(ca.if_else(is_new, length, 0.0))
        directions.append(ca.if_else(is_new, row / length, 0 * row))
    packed = ca.vertcat(*(entry for column in columns for entry in column))
    return ca.SX(ca.Sparsity.lower(n), packed)
