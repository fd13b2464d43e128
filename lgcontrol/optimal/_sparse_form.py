"""Sparse: states and inputs kept as unknowns, the dynamics as rows."""

from __future__ import annotations

import numpy as np

from ._form import FlatQP, Form, Places, Structure
from ._stage_qp import StageQP


class Sparse(Form):
    """Unknowns ``u_0, x_1, u_1, x_2, …, x_N``; rows: the dynamics, then the active rows."""

    def structure(self, qp: StageQP) -> Structure:
        """Blocks along the diagonals."""
        horizon, n, m = qp.sizes
        at_u, at_x = _positions(qp)
        step = np.arange(horizon) * n
        stage, _ = np.nonzero(qp.active)
        row = horizon * n + np.arange(len(stage))
        later, inside = stage > 0, stage < horizon
        H = Places.join(
            Places.blocks(at_u, at_u, m, m),
            Places.blocks(at_x, at_x, n, n),
            Places.blocks(at_u[1:], at_x[:-1], m, n),
            Places.blocks(at_x[:-1], at_u[1:], n, m),
        )
        diagonal = Places(np.arange(horizon * n), (at_x[:, None] + np.arange(n)).ravel())
        A = Places.join(
            Places.blocks(step, at_u, n, m),
            Places.blocks(step[1:], at_x[:-1], n, n),
            diagonal,
            Places.blocks(row[later], at_x[stage[later] - 1], 1, n),
            Places.blocks(row[inside], at_u[stage[inside]], 1, m),
        )
        return Structure(horizon * (n + m), horizon * n + len(stage), horizon * n, H, A)

    def flatten(self, qp: StageQP) -> FlatQP:
        """Entries of the blocks; the given first state moves to the right-hand sides."""
        horizon, n, m = qp.sizes
        stage, row = np.nonzero(qp.active)
        later, inside = stage > 0, stage < horizon
        H = [qp.R, qp.Q[1:], qp.S[1:], np.swapaxes(qp.S[1:], 1, 2)]
        C, D = qp.C[stage[later], row[later]], qp.D[stage[inside], row[inside]]
        A = [qp.B, qp.A[1:], -np.ones(horizon * n), C, D]
        r, c = qp.r.copy(), qp.c.copy()
        r[0] += qp.S[0] @ qp.x0
        c[0] += qp.A[0] @ qp.x0
        g = np.concatenate([r, qp.q[1:]], axis=1)
        lower = np.concatenate([qp.u_lower, np.full((horizon, n), -np.inf)], axis=1)
        upper = np.concatenate([qp.u_upper, np.full((horizon, n), np.inf)], axis=1)
        first = np.where(stage == 0, qp.C[0, row] @ qp.x0, 0.0)
        return FlatQP(
            np.concatenate([block.ravel() for block in H]),
            np.concatenate([block.ravel() for block in A]),
            g.ravel(),
            lower.ravel(),
            upper.ravel(),
            np.concatenate([-c.ravel(), qp.lower[stage, row] - first]),
            np.concatenate([-c.ravel(), qp.upper[stage, row] - first]),
        )

    def inputs(self, qp: StageQP, z: np.ndarray) -> np.ndarray:
        """Entries at the places of the inputs."""
        horizon, n, m = qp.sizes
        return z[: horizon * (n + m)].reshape(horizon, n + m)[:, :m]

    def states(self, qp: StageQP, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Entries at the places of the states, after the given one."""
        horizon, n, m = qp.sizes
        later = z[: horizon * (n + m)].reshape(horizon, n + m)[:, m:]
        return np.concatenate([qp.x0[None], later])

    def adjoints(
        self, qp: StageQP, x: np.ndarray, u: np.ndarray, prices: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Multipliers of the first rows."""
        horizon, n, _ = qp.sizes
        return prices[: horizon * n].reshape(horizon, n)


def _positions(qp: StageQP) -> tuple[np.ndarray, np.ndarray]:
    """Where u_k and x_{k+1} start."""
    horizon, n, m = qp.sizes
    at_u = np.arange(horizon) * (n + m)
    return at_u, at_u + m
