"""Line search on an ℓ₁ merit function: cost, prices of soft bounds, gaps and hard excesses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._stage_qp import StageQP, StageQPSolution
from ._transcription import Nodes, Setting, Transcription, Values

SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 2.0**-12
# A weight on violations exceeds what the descent condition asks for by this share.
SAFETY = 0.5
# Rounding in a sum over the horizon: differences below this share of the merit say nothing.
ROUNDING = 1e-14


class Merit:
    """Merit of nodes about one linearization.

    Parameters
    ----------
    transcription : Transcription
    setting : Setting
    qp : StageQP
        Its `soft` says which rows have a price.
    values : Values
        Of the nodes the QP is built about.
    """

    def __init__(
        self, transcription: Transcription, setting: Setting, qp: StageQP, values: Values
    ) -> None:
        self.transcription, self.setting, self.qp = transcription, setting, qp
        self.cost, self.violation = self._parts(values)

    def _parts(self, values: Values) -> tuple[float, float]:
        """Cost with prices, and the sum of what must vanish."""
        priced = values.cost + self.transcription.penalty(values, self.qp.soft)
        hard = self.transcription.excess(values)[:, np.isinf(self.qp.soft)]
        return priced, float(np.abs(values.gaps).sum() + hard.sum())

    def at(self, nodes: Nodes) -> tuple[float, float]:
        """Cost with prices and violation of nodes."""
        return self._parts(self.transcription.values(nodes, self.setting))


class Step(NamedTuple):
    """A step that lowers the merit enough.

    Attributes
    ----------
    nodes : Nodes
    length : float
        Share of the direction.
    weight : float
        On violations.
    agreement : float
        Decrease of the merit over what the QP promised for the full direction.
    """

    nodes: Nodes
    length: float
    weight: float
    agreement: float


def search(
    merit: Merit, nodes: Nodes, direction: StageQPSolution, weight: float = 0.0
) -> Step | None:
    """Longest halved step that lowers the merit enough; None if there is none.

    Parameters
    ----------
    merit : Merit
    nodes : Nodes
        About which the QP was built.
    direction : StageQPSolution
    weight : float
        Least weight on violations. It is raised to where the direction descends (Nocedal and Wright
        2006, equation 18.36) and must not fall during a solve, or the merit would go in circles.

    Returns
    -------
    Step or None
    """
    qp = merit.qp
    now = qp.cost(np.zeros_like(direction.x), np.zeros_like(direction.u))
    model = qp.cost(direction.x, direction.u) - now
    if merit.violation > 0:
        weight = max(weight, model / ((1 - SAFETY) * merit.violation))
    promised = model - weight * merit.violation
    slope = promised - _curvature(qp, direction)
    if not slope < 0:
        return None
    start = merit.cost + weight * merit.violation
    length = 1.0
    while length >= SMALLEST_STEP:
        trial = merit.transcription.move(nodes, length * direction.x, length * direction.u)
        cost, violation = merit.at(trial)
        change = cost + weight * violation - start
        if change <= SUFFICIENT_DECREASE * length * slope + ROUNDING * abs(start):
            return Step(trial, length, weight, change / promised if promised < 0 else 0.0)
        length /= 2
    return None


def _curvature(qp: StageQP, direction: StageQPSolution) -> float:
    """Half the second-order term of the cost along the direction."""
    x, u = direction.x, direction.u
    return 0.5 * float(
        np.einsum("ki,kij,kj", x, qp.Q, x)
        + np.einsum("ki,kij,kj", u, qp.R, u)
        + 2 * np.einsum("ki,kij,kj", u, qp.S, x[:-1])
    )
