"""Descent: steps of a solve, safeguarded, until one of its limits or optimality ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..systems import Trajectory
from ._line_search import Merit, search
from ._optimality import gradient_size, optimality_residual
from ._qp import QPSolver
from ._solution import Iteration, OptimalSolution, Status, worst_violations
from ._stage_qp import StageQP, StageQPSolution
from ._transcription import Nodes, Setting, Transcription, Values

# Hard bounds that no step can keep are given prices, raised from the first to the last of these
# (times the size of the gradient) before the problem counts as infeasible.
FIRST_PRICE, LAST_PRICE = 1e2, 1e5
# Levenberg's weight: where it starts once a step fails, and where a solve gives up.
FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e8
# A solve has stalled when in so many iterations neither the residual nor the cost fell to these
# shares of what they were: curvature that Gauss-Newton leaves out allows tiny steps only.
PATIENCE, LEAST_PROGRESS = 40, 0.7
OTHER_START = "start elsewhere: guess=… takes a Trajectory, a solution or a controller"


class Limits(NamedTuple):
    """What ends a solve; see `SQPSolver.solve`.

    Attributes
    ----------
    tolerance : float
    max_iterations : int
    time_limit : float
        In s.
    callback : callable or None
    """

    tolerance: float
    max_iterations: int
    time_limit: float
    callback: Callable[[Iteration], bool | None] | None


class Descent:
    """State of one solve."""

    def __init__(
        self,
        transcription: Transcription,
        qp_solver: QPSolver,
        x0: np.ndarray,
        nodes: Nodes,
        setting: Setting,
        limits: Limits,
    ) -> None:
        self.transcription, self.qp_solver = transcription, qp_solver
        self.x0, self.nodes, self.setting, self.limits = x0, nodes, setting, limits
        self.started = time.perf_counter()
        self.qp_time = 0.0
        self.model_time = 0.0
        self.prices: StageQPSolution | None = None
        self.price = np.inf  # of hard bounds; finite once they cannot all be kept
        self.step_length, self.damping = 1.0, 0.0
        self.weight = 0.0  # on violations in the merit
        self.log: list[Iteration] = []
        self.values: Values
        self.qp: StageQP

    def iterate(self) -> Status:
        """Step until something ends the solve."""
        self._linearize()
        while True:
            number = len(self.log)
            self.log.append(self._report(number))
            stop = self.limits.callback is not None and self.limits.callback(self.log[-1])
            if self.log[-1].kkt <= self.limits.tolerance:
                return "converged"
            if stop:
                return "stopped"
            if self._crawls():
                return self._why_stuck("stalled")
            if number >= self.limits.max_iterations:
                return "iteration limit"
            if self.log[-1].time > self.limits.time_limit:
                return "time limit"
            end = self._advance()
            if end is not None:
                return end
            self._linearize()

    def _advance(self) -> Status | None:
        """One step that lowers the merit; otherwise why there is none, or no need for one."""
        while True:
            qp = self.qp.softened(self.price) if np.isfinite(self.price) else self.qp
            result = self.qp_solver.solve(qp.damped(self.damping))
            self.qp_time += result.time
            if not result.solved:
                if np.isinf(self.price) and self.qp.active[:, np.isinf(self.qp.soft)].any():
                    self.price = FIRST_PRICE * gradient_size(self.qp)
                elif not self._damp():
                    return self._why_stuck("qp failed")
                continue
            # The new multipliers may show that there is nothing left to do.
            kkt = optimality_residual(self.qp, result)
            if kkt <= self.limits.tolerance:
                self.log[-1] = self.log[-1]._replace(kkt=kkt)
                return "converged"
            if np.isfinite(self.price) and optimality_residual(qp, result) <= self.limits.tolerance:
                if not self._raise_price():
                    return self._why_stuck("stalled")
                continue
            began = time.perf_counter()
            merit = Merit(self.transcription, self.setting, qp, self.values)
            found = search(merit, self.nodes, result, self.weight)
            self.model_time += time.perf_counter() - began
            if found is not None:
                self.nodes, self.step_length, self.weight, agreement = found
                self.prices = result
                self._adapt(agreement)
                return None
            if not self._damp():
                return self._why_stuck("stalled")

    def _raise_price(self) -> bool:
        self.price *= 10
        return self.price <= LAST_PRICE * gradient_size(self.qp)

    def _why_stuck(self, otherwise: Status) -> Status:
        return (
            "infeasible"
            if self._hard_excess().max(initial=0.0) > self.limits.tolerance
            else otherwise
        )

    def _crawls(self) -> bool:
        """Whether many iterations of damped steps have led nowhere."""
        if len(self.log) <= 2 * PATIENCE:
            return False
        before, recent = self.log[-PATIENCE - 1], self.log[-PATIENCE:]
        residual = min(entry.kkt for entry in self.log[:-PATIENCE])
        return (
            min(entry.damping for entry in recent) > FIRST_DAMPING
            and min(entry.kkt for entry in recent) > LEAST_PROGRESS * residual
            and recent[-1].cost > LEAST_PROGRESS * before.cost
        )

    def _adapt(self, agreement: float) -> None:
        """Damp more where the QP promised too much: Gauss-Newton leaves out some curvature."""
        if agreement < 0.25:
            self.damping = max(FIRST_DAMPING, 4 * self.damping)
        elif agreement > 0.75:
            self.damping = 0.0 if self.damping <= FIRST_DAMPING else self.damping / 4

    def _damp(self) -> bool:
        self.damping = max(FIRST_DAMPING, 10 * self.damping)
        return self.damping <= LAST_DAMPING

    def _linearize(self) -> None:
        began = time.perf_counter()
        self.values, self.qp = self.transcription.linearize(self.nodes, self.setting, self.x0)
        self.model_time += time.perf_counter() - began

    def _hard_excess(self) -> np.ndarray:
        return np.where(np.isinf(self.qp.soft), self.transcription.excess(self.values), 0.0)

    def _report(self, number: int) -> Iteration:
        cost = self.values.cost + self.transcription.penalty(self.values, self.qp.soft)
        return Iteration(
            number,
            cost,
            float(np.abs(self.values.gaps).max(initial=0.0)),
            float(self._hard_excess().max(initial=0.0)),
            np.inf if self.prices is None else optimality_residual(self.qp, self.prices),
            self.step_length,
            self.damping,
            time.perf_counter() - self.started,
        )

    def finish(self, status: Status) -> OptimalSolution:
        """Put the result together."""
        problem, last = self.transcription.problem, self.log[-1]
        group, nodes = problem.system.state, self.nodes
        excess = self._hard_excess()
        violations = worst_violations(
            self.transcription.rows.names,
            np.where(excess > self.limits.tolerance, excess, 0.0),
            nodes.t,
        )
        message = {
            "converged": f"optimal to {last.kkt:.1e} after {last.number} iterations",
            "iteration limit": f"residual {last.kkt:.1e} after {last.number} iterations"
            + (f"; {OTHER_START}" if last.number >= PATIENCE else ""),
            "time limit": f"residual {last.kkt:.1e} after {last.time:.3g} s",
            "infeasible": "no step reduces the violation of the hard bounds",
            "stalled": "steps hardly lower the cost any further: residual "
            f"{last.kkt:.1e} after {last.number} iterations; {OTHER_START}",
            "qp failed": f"the QP solver {self.qp_solver.name!r} found no step",
            "stopped": "stopped by the callback",
        }[status]
        message = "; ".join([message, *map(str, violations)])
        times = {
            "total": time.perf_counter() - self.started,
            "model": self.model_time,
            "qp": self.qp_time,
        }
        return OptimalSolution(
            status=status,
            message=message,
            trajectory=Trajectory(group, nodes.t, nodes.x, nodes.u),
            reference=Trajectory(group, nodes.t, self.setting.x_ref, self.setting.u_ref),
            cost=last.cost,
            kkt=last.kkt,
            gap=last.gap,
            violations=violations,
            iterations=tuple(self.log),
            times=times,
            problem=problem,
        )
