"""How far first-order conditions are off: of a QP's solution, and of an iterate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._stage_qp import StageQP, StageQPSolution


def qp_residual(qp: StageQP, solution: StageQPSolution, scale: float) -> float:
    """Largest violation of the conditions of a QP.

    Parameters
    ----------
    qp : StageQP
    solution : StageQPSolution
        Point and multipliers; the point keeps the bounds of the inputs.
    scale : float
        What derivatives and multipliers are divided by; gaps and excesses count as they are.

    Returns
    -------
    float
        Infinite if the point is not finite.
    """
    x, u = solution.x, solution.u
    if not (np.isfinite(u).all() and np.isfinite(x).all()):
        return np.inf
    by_x, by_u = qp.stationarity(solution)
    parts = [
        np.abs(by_x) / scale,
        np.abs(by_u) / scale,
        np.abs(qp.gaps(x, u)),
        _slackness(solution.bound_multipliers / scale, u - qp.u_lower, qp.u_upper - u),
    ]
    if qp.active.any():
        parts.append(np.where(qp.active, _row_residuals(qp, solution, scale), 0.0))
    return float(max(part.max(initial=0.0) for part in parts))


def optimality_residual(qp: StageQP, prices: StageQPSolution) -> float:
    """Largest violation of the conditions of a problem by the iterate that qp is built about.

    Derivatives and multipliers are taken relative to the gradient of the cost; gaps and excesses
    count as they are.

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
    here = replace(prices, x=np.zeros_like(qp.q), u=np.zeros_like(qp.r))
    start = float(np.abs(qp.x0).max(initial=0.0))
    return max(qp_residual(qp, here, gradient_size(qp)), start)


def gradient_size(qp: StageQP) -> float:
    """One plus the largest derivative of the cost."""
    return 1.0 + float(max(np.abs(qp.q).max(), np.abs(qp.r).max()))


def _row_residuals(qp: StageQP, solution: StageQPSolution, scale: float) -> np.ndarray:
    """Of hard rows the excess; of soft ones a price that is not that of the excess."""
    values = qp.rows(solution.x, solution.u)
    excess = np.maximum(np.maximum(values - qp.upper, qp.lower - values), 0.0)
    prices = solution.row_multipliers / scale
    idle = _slackness(
        prices, np.maximum(values - qp.lower, 0.0), np.maximum(qp.upper - values, 0.0)
    )
    hard = np.isinf(qp.soft)
    due = np.where(hard, 0.0, qp.soft) * (1.0 + excess) / scale
    mispriced = np.minimum(np.abs(np.abs(prices) - due), excess)
    return np.where(hard, np.maximum(excess, idle), np.where(excess > 0, mispriced, idle))


def _slackness(prices: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """How far multipliers and distances to their limits are from not both being positive."""
    distance = np.where(prices > 0, above, below)
    return np.where(prices == 0, 0.0, np.minimum(np.abs(prices), np.abs(distance)))
