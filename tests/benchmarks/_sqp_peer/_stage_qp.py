"""StageQP: a quadratic program with the structure of optimal control; its solution and residual."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lgcontrol.optimal._transcription import Nodes, Setting, Transcription, Values


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

    @classmethod
    def about(
        cls, once: Transcription, nodes: Nodes, setting: Setting, x0: np.ndarray
    ) -> tuple[Values, StageQP]:
        """Cost and gaps of the nodes, and the QP in the steps from them."""
        n, rows = once.problem.system.n_errors, once.rows
        stage, last = once._stages("stage", nodes, setting), once._end("terminal", nodes, setting)
        # The next evaluation overwrites the results; contiguous copies are quicker to work with.
        values, gaps = np.concatenate([stage.rows, last.rows[None]]), stage.gap.copy()
        controls = nodes.u[:, once.controls]
        qp = cls(
            x0=once.problem.system.error(x0, nodes.x[0]),
            A=stage.A.copy(order="C"),
            B=stage.B.copy(order="C"),
            c=gaps,
            Q=np.concatenate([stage.H[:, :n, :n], last.H[None]]),
            S=stage.H[:, n:, :n].copy(order="C"),
            R=stage.H[:, n:, n:].copy(order="C"),
            q=np.concatenate([stage.g[:, :n], last.g[None]]),
            r=stage.g[:, n:].copy(),
            u_lower=setting.box.lower - controls,
            u_upper=setting.box.upper - controls,
            C=np.concatenate([stage.G[:, :, :n], last.G[None]]),
            D=stage.G[:, :, n:].copy(order="C"),
            lower=rows.lower - values,
            upper=rows.upper - values,
            active=rows.active,
            soft=rows.weights(setting.p) * once.problem.dt,
        )
        return Values(float(stage.cost.sum() + last.cost), gaps, values), qp

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon N, states n, inputs m."""
        return self.B.shape

    def damped(self, amount: float) -> StageQP:
        """Add ``amount/2 (|x|² + |u|²)`` to the cost of every stage (Levenberg)."""
        if amount == 0:
            return self
        _, n, m = self.sizes
        return replace(self, Q=self.Q + amount * np.eye(n), R=self.R + amount * np.eye(m))

    def softened(self, weight: float) -> StageQP:
        """Make hard rows soft with a weight."""
        return replace(self, soft=np.where(np.isinf(self.soft), weight, self.soft))

    def states(self, u: np.ndarray) -> np.ndarray:
        """States (N + 1, n) that inputs (N, m) lead to."""
        x = np.empty((len(u) + 1, len(self.x0)))
        x[0] = self.x0
        drive = np.einsum("kij,kj->ki", self.B, u) + self.c
        for k in range(len(u)):
            x[k + 1] = self.A[k] @ x[k] + drive[k]
        return x

    def rows(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values ``C x + D u`` of the rows, shape (N + 1, rows)."""
        values = np.einsum("kij,kj->ki", self.C, x)
        values[:-1] += np.einsum("kij,kj->ki", self.D, u)
        return values

    def excess(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """How far active rows are outside of their limits, shape (N + 1, rows)."""
        values = self.rows(x, u)
        over = np.maximum(np.maximum(values - self.upper, self.lower - values), 0.0)
        return np.where(self.active, over, 0.0)

    def cost(self, x: np.ndarray, u: np.ndarray) -> float:
        """Objective, penalties on soft rows included."""
        quadratic = (
            np.einsum("ki,kij,kj", x, self.Q, x)
            + np.einsum("ki,kij,kj", u, self.R, u)
            + 2 * np.einsum("ki,kij,kj", u, self.S, x[:-1])
        )
        soft = np.isfinite(self.soft)
        s = self.excess(x, u)[:, soft]
        penalty = (self.soft[soft] * (s + s**2 / 2)).sum()
        return float(quadratic / 2 + np.vdot(self.q, x) + np.vdot(self.r, u) + penalty)

    def gaps(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """``A x + B u + c`` less the next state, shape (N, n)."""
        moved = np.einsum("kij,kj->ki", self.A, x[:-1]) + np.einsum("kij,kj->ki", self.B, u)
        return moved + self.c - x[1:]

    def adjoints(self, x: np.ndarray, u: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Multipliers (N, n) of the dynamics for which the derivative by the states vanishes."""
        own = self._by_states(x, u, rows)
        prices = np.empty_like(own[1:])
        prices[-1] = own[-1]
        for k in range(len(u) - 1, 0, -1):
            prices[k - 1] = own[k] + prices[k] @ self.A[k]
        return prices

    def stationarity(self, solution: StageQPSolution) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the Lagrangian by the states after the first, and by the inputs."""
        x, u, rows = solution.x, solution.u, solution.row_multipliers
        prices = solution.dynamics_multipliers
        by_x = self._by_states(x, u, rows)[1:] - prices
        by_x[:-1] += np.einsum("kji,kj->ki", self.A[1:], prices[1:])
        by_u = (
            np.einsum("kij,kj->ki", self.S, x[:-1])
            + np.einsum("kij,kj->ki", self.R, u)
            + self.r
            + np.einsum("kji,kj->ki", self.B, prices)
            + np.einsum("kji,kj->ki", self.D, rows[:-1])
            + solution.bound_multipliers
        )
        return by_x, by_u

    def _by_states(self, x: np.ndarray, u: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Derivatives (N + 1, n) of cost and rows by the states."""
        own = np.einsum("kij,kj->ki", self.Q, x) + self.q + np.einsum("kji,kj->ki", self.C, rows)
        own[:-1] += np.einsum("kji,kj->ki", self.S, u)
        return own


@dataclass(frozen=True, eq=False)
class StageQPSolution:
    """Solution of a `StageQP`, or what the back-end had when it gave up.

    Attributes
    ----------
    x, u : ndarray
        Shapes (N + 1, n), (N, m); u within its bounds.
    dynamics_multipliers : ndarray, shape (N, n)
        λ of ``λᵀ (A x + B u + c − x⁺)`` in the Lagrangian.
    bound_multipliers : ndarray, shape (N, m)
        Of the bounds on u: positive at an upper bound, negative at a lower one.
    row_multipliers : ndarray, shape (N + 1, rows)
        Of the rows, with the same signs.
    solved : bool
        Whether the optimality conditions hold, checked on the result itself.
    error : float
        How far they are off, relative to the size of the gradient.
    time : float
        Wall time in s.
    """

    x: np.ndarray
    u: np.ndarray
    dynamics_multipliers: np.ndarray
    bound_multipliers: np.ndarray
    row_multipliers: np.ndarray
    solved: bool = False
    error: float = np.inf
    time: float = 0.0


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
