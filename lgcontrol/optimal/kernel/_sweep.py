"""Riccati sweeps in NumPy: the Newton system of all stages, factorized and solved from the end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._stage_model import Expansion
from ._table import FIXED


class RiccatiFactors(NamedTuple):
    """A factorization of the Newton system.

    Attributes
    ----------
    P : list of ndarray
        Cost to go of nodes 1 to N.
    K : ndarray, shape (N, m, n)
    inverse : list of ndarray
        Of the reduced Hessians.
    F : ndarray, shape (N, n, n + m)
    first : ndarray or None
        Inverse of the cost to go of what is free at the start.
    """

    P: list[np.ndarray]
    K: np.ndarray
    inverse: list[np.ndarray]
    F: np.ndarray
    first: np.ndarray | None


def riccati_factor(
    ex: Expansion, metric: np.ndarray, free: np.ndarray, H: np.ndarray, H_end: np.ndarray,
    W: np.ndarray, box: Any, dw: float,
) -> RiccatiFactors | None:  # fmt: skip
    """Riccati sweep; None unless the reduced Hessian is positive definite."""
    N, n, m = ex.B.shape
    M0 = H + dw * np.diag(metric) + ex.G.transpose(0, 2, 1) @ (W[:-1, :, None] * ex.G)
    M0[:, range(n, n + m), range(n, n + m)] += box
    P = H_end + dw * np.diag(metric[:n]) + ex.G_end.T @ (W[-1][:, None] * ex.G_end)
    F = np.concatenate([ex.A, ex.B], axis=2)
    costs: list[Any] = [None] * N
    inverse: list[Any] = [None] * N
    K = np.empty((N, m, n))
    for k in range(N - 1, -1, -1):
        costs[k] = P
        M = M0[k] + F[k].T @ P @ F[k]
        C = cholesky(M[n:, n:])
        if C is None:
            return None
        Y = np.linalg.solve(C, M[n:, :n])
        K[k] = -np.linalg.solve(C.T, Y)
        over = np.linalg.inv(C)
        inverse[k] = over.T @ over
        P = M[:n, :n] - Y.T @ Y
        P = (P + P.T) / 2
    if not np.isfinite(P).all():
        return None
    first = None
    if len(free):
        P0 = P[np.ix_(free, free)]
        C = cholesky(P0)
        if C is None or (np.diag(C) ** 2 <= FIXED.singular * np.diag(P0)).any():
            return None
        first = np.linalg.inv(P0)
    return RiccatiFactors(costs, K, inverse, F, first)


def riccati_back(
    fac: RiccatiFactors, free: np.ndarray, g: np.ndarray, g_end: np.ndarray, gaps: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps and multipliers of the dynamics for a gradient and defects."""
    N, m, n = fac.K.shape
    p, ps, ks = g_end, np.empty((N, n)), np.empty((N, m))
    for k in range(N - 1, -1, -1):
        ps[k] = p
        q = g[k] + fac.F[k].T @ (p + fac.P[k] @ gaps[k])
        ks[k] = -fac.inverse[k] @ q[n:]
        p = q[:n] + fac.K[k].T @ q[n:]
    eps, du, lam = np.zeros((N + 1, n)), np.empty((N, m)), np.empty((N, n))
    if fac.first is not None:
        eps[0, free] = -fac.first @ p[free]
    for k in range(N):
        du[k] = ks[k] + fac.K[k] @ eps[k]
        eps[k + 1] = fac.F[k] @ np.r_[eps[k], du[k]] + gaps[k]
        lam[k] = fac.P[k] @ eps[k + 1] + ps[k]
    return eps, du, lam


def cholesky(M: np.ndarray) -> np.ndarray | None:
    """The lower factor; None of a matrix that is not positive definite."""
    try:
        C = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return None
    return C if np.isfinite(C).all() else None
