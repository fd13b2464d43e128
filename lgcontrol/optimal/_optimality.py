"""Optimality residual of an iterate, from its linearization and the last multipliers."""

from __future__ import annotations

import numpy as np

from ._stage_qp import StageQP, StageQPSolution


def optimality_residual(qp: StageQP, prices: StageQPSolution) -> float:
    """Largest violation of the first-order conditions at the point about which qp is built.

    The gradient of the Lagrangian and the multipliers are taken relative to the gradient of the
    cost; gaps and excesses count as they are.

    Parameters
    ----------
    qp : StageQP
        Built about the iterate.
    prices : StageQPSolution
        Its multipliers are those of the iterate.

    Returns
    -------
    float
    """
    here = StageQPSolution(
        np.zeros_like(qp.q),
        np.zeros_like(qp.r),
        prices.bound_multipliers,
        prices.row_multipliers,
        True,
        0.0,
        0.0,
    )
    scale = 1.0 + max(np.abs(qp.q).max(), np.abs(qp.r).max())
    parts = [
        np.abs(qp.stationarity(here)) / scale,
        np.abs(qp.c),
        np.abs(qp.x0),
        _slackness(here.bound_multipliers / scale, -qp.u_lower, qp.u_upper),
    ]
    if qp.active.any():
        hard = np.isinf(qp.soft)
        excess = np.maximum(np.maximum(-qp.upper, qp.lower), 0.0)
        row = here.row_multipliers / scale
        idle = _slackness(row, np.maximum(-qp.lower, 0.0), np.maximum(qp.upper, 0.0))
        with np.errstate(invalid="ignore"):
            price = np.abs(np.abs(row) - qp.soft * (1.0 + excess) / scale)
        rows = np.where(hard, np.maximum(excess, idle), np.where(excess > 0, price, idle))
        parts.append(np.where(qp.active, rows, 0.0))
    return float(max(part.max(initial=0.0) for part in parts))


def _slackness(prices: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """How far multipliers and distances to their limits are from not both being positive."""
    distance = np.where(prices > 0, above, below)
    return np.where(prices == 0, 0.0, np.minimum(np.abs(prices), np.abs(distance)))
