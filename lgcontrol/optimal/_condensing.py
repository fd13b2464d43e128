"""Condensed: the states eliminated, a dense QP in the inputs alone."""

from __future__ import annotations

import numpy as np

from ._form import FlatQP, Form, Places, Structure
from ._stage_qp import StageQP


class Condensed(Form):
    """``x_k = G_k u + h_k``: N·m unknowns, whatever the number of states.

    Errors grow with the powers of A: for unstable systems over long horizons use a sparse form.
    """

    def structure(self, qp: StageQP) -> Structure:
        """Dense matrices."""
        horizon, _, m = qp.sizes
        unknowns, rows = horizon * m, int(qp.active.sum())
        corner = np.zeros(1, dtype=int)
        return Structure(
            unknowns,
            rows,
            0,
            Places.blocks(corner, corner, unknowns, unknowns),
            Places.blocks(corner, corner, rows, unknowns),
        )

    def flatten(self, qp: StageQP) -> FlatQP:
        """Eliminate the states forwards, assemble cost and gradient backwards."""
        horizon, n, m = qp.sizes
        total = horizon * m
        G = np.zeros((horizon + 1, n, total))
        h = np.empty((horizon + 1, n))
        h[0] = qp.x0
        for k in range(horizon):
            past = k * m
            np.matmul(qp.A[k], G[k, :, :past], out=G[k + 1, :, :past])
            G[k + 1, :, past : past + m] = qp.B[k]
            h[k + 1] = qp.A[k] @ h[k] + qp.c[k]
        # The adjoint of each state is linear in all inputs: λ_k = L u + l.
        H, g = np.empty((total, total)), np.empty((horizon, m))
        L = qp.Q[-1] @ G[-1]
        l_ = qp.Q[-1] @ h[-1] + qp.q[-1]
        for k in range(horizon - 1, -1, -1):
            own = slice(k * m, k * m + m)
            row = qp.B[k].T @ L + qp.S[k] @ G[k]
            row[:, own] += qp.R[k]
            H[own] = row
            g[k] = qp.r[k] + qp.S[k] @ h[k] + qp.B[k].T @ l_
            L = qp.A[k].T @ L + qp.Q[k] @ G[k]
            L[:, own] += qp.S[k].T
            l_ = qp.Q[k] @ h[k] + qp.q[k] + qp.A[k].T @ l_
        stage, row = np.nonzero(qp.active)
        A = np.einsum("ri,riz->rz", qp.C[stage, row], G[stage])
        offset = np.einsum("ri,ri->r", qp.C[stage, row], h[stage])
        inside = stage < horizon
        for j in range(m):
            A[inside, stage[inside] * m + j] += qp.D[stage[inside], row[inside], j]
        return FlatQP(
            (H + H.T).ravel() / 2,
            A.ravel(),
            g.ravel(),
            qp.u_lower.ravel(),
            qp.u_upper.ravel(),
            qp.lower[stage, row] - offset,
            qp.upper[stage, row] - offset,
        )

    def inputs(self, qp: StageQP, z: np.ndarray) -> np.ndarray:
        """All unknowns are inputs."""
        horizon, _, m = qp.sizes
        return z[: horizon * m].reshape(horizon, m)

    def states(self, qp: StageQP, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """They follow from the inputs."""
        return qp.states(u)

    def adjoints(
        self, qp: StageQP, x: np.ndarray, u: np.ndarray, prices: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """They follow from the states."""
        return qp.adjoints(x, u, rows)
