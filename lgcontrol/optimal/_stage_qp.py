"""StageQP: a quadratic program with the structure of optimal control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class StageQP:
    """Quadratic program over a horizon of N stages; the first state is given.

    Minimise ``Σₖ ½ [x; u]ᵀ [[Q, Sᵀ], [S, R]] [x; u] + qᵀ x + rᵀ u`` (the last stage without u),
    subject to ``x₀`` given, ``xₖ₊₁ = A x + B u + c``, ``u_lower ≤ u ≤ u_upper`` and ``lower ≤ C x +
    D u ≤ upper`` where `active`. A row with a finite weight w in `soft` may be violated by s with
    the penalty ``w (s + s²/2)``. Arrays have the stages in front.
    """

    x0: np.ndarray
    A: np.ndarray
    B: np.ndarray
    c: np.ndarray
    Q: np.ndarray
    S: np.ndarray
    R: np.ndarray
    q: np.ndarray
    r: np.ndarray
    u_lower: np.ndarray
    u_upper: np.ndarray
    C: np.ndarray
    D: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    active: np.ndarray
    soft: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon N, states n, inputs m."""
        return self.B.shape
