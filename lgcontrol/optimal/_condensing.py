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
        k, own = np.arange(horizon), np.arange(total).reshape(horizon, m)
        # All is affine in the inputs; the last column is what does not depend on them.
        G = np.zeros((horizon + 1, n, total + 1))
        G[0, :, -1] = qp.x0
        G[k[:, None] + 1, :, own] = qp.B.swapaxes(1, 2)
        G[1:, :, -1] = qp.c
        for i in range(horizon):
            G[i + 1, :, : i * m] = qp.A[i] @ G[i, :, : i * m]
            G[i + 1, :, -1] += qp.A[i] @ G[i, :, -1]
        # Derivatives of the cost by each state and input alone, then those through later states.
        by_x, by_u = qp.Q @ G, qp.S @ G[:-1]
        by_x[:, :, -1] += qp.q
        by_u[:, :, -1] += qp.r
        by_x[k[:, None], :, own] += qp.S
        by_u[k[:, None], :, own] += qp.R.swapaxes(1, 2)
        back = np.concatenate([qp.A, qp.B], axis=2).swapaxes(1, 2)
        for i in range(horizon - 1, -1, -1):
            through = back[i] @ by_x[i + 1]
            by_x[i] += through[:n]
            by_u[i] += through[n:]
        rows = by_u.reshape(total, total + 1)
        H, g = rows[:, :-1], rows[:, -1]
        stage, row = np.nonzero(qp.active)
        A = np.einsum("ri,riz->rz", qp.C[stage, row], G[stage])
        A, offset = A[:, :-1], A[:, -1]
        inside = stage < horizon
        for j in range(m):
            A[inside, stage[inside] * m + j] += qp.D[stage[inside], row[inside], j]
        return FlatQP(
            (H + H.T).ravel() / 2,
            A.ravel(),
            g.copy(),
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
