"""Results of the interior point: what its runs are told as, with a status and a message."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np

from ._kernel import CONVERGED, NOT_FINITE, STALLED
from ._outcome import (
    OTHER_START,
    Iteration,
    SolveStatus,
    Violation,
    sentence,
    worst_violations,
)
from ._plan import Plan
from ._problem import OptimalSolution
from ._runs import Run, Watch, iterations_of
from ._settings import Settings
from ._solutions import judged, solution_at
from ._stage_model import StageModel
from ._transcription import Nodes, Setting, Values

# What the first step that exceeds hard bounds knows of them: the next ones have them at a price.
NOT_YET = "nobody can say yet whether hard bounds could be kept"


class Results:
    """Makes solutions of runs.

    Parameters
    ----------
    model : StageModel
        Of the problem.
    """

    def __init__(self, model: StageModel) -> None:
        self.model = model

    @cached_property
    def _allowed(self) -> np.ndarray:
        """What rows of a step may be exceeded by without a word: soft ones by nothing."""
        return np.where(
            np.isinf(self.model.transcription.rows.soft), self.model.settings.violation_kept, 0.0
        )

    def has_excess(self, values: np.ndarray) -> bool:
        """Whether a step leaves rows exceeded that somebody has to be told of."""
        rows = self.model.transcription.rows
        return bool(rows.names) and not (rows.excess(values) <= self._allowed).all()

    def solution(
        self,
        run: Run,
        nodes: Nodes,
        t: np.ndarray,
        setting: Setting,
        watch: Watch,
        tolerance: float | None,
        is_infeasible: bool,
        plan: Plan,
    ) -> OptimalSolution:
        """What a run led to.

        Parameters
        ----------
        run : Run
        nodes : Nodes
            Where it ended, or those before where it failed.
        t : ndarray, shape (N + 1,)
            Times of the setting.
        setting : Setting
        watch : Watch
        tolerance : float or None
            None for real-time steps.
        is_infeasible : bool
            Whether hard bounds were tried at a price, too.
        plan : Plan
            To go on from.

        Returns
        -------
        OptimalSolution
        """
        transcription, problem = self.model.transcription, self.model.problem
        rows, failed, is_step = transcription.rows, run.status == NOT_FINITE, tolerance is None
        is_plain = not (
            failed or is_infeasible or self.model.is_implicit or setting.box.contradictions
        )
        if is_step and is_plain and not self.has_excess(run.rows):
            status = self._status(run, np.nan, (), watch, None)
            return self.taken(run.log, status, nodes, setting, watch.started, plan)
        penalty, violations, unknown = 0.0, (), ""
        values = Values(0.0, np.zeros(0), run.rows)
        if rows.names:
            unknown = transcription.not_finite(values)
        if rows.names and not failed:
            slack = self.model.settings.violation_kept if tolerance is None else tolerance
            violations = worst_violations(rows, rows.excess(run.rows), t, slack)
            penalty = transcription.penalty(values, rows.weights(setting.p) * problem.dt)
        seconds = time.perf_counter() - watch.started

        def entries(log: np.ndarray, first: int) -> tuple[Iteration, ...]:
            return iterations_of(log, first, seconds, price=penalty, is_real_time=is_step)

        first = 1 if is_step else 0
        (last,) = entries(run.log[-1:], first + len(run.log) - 1)
        status = self._status(run, last.kkt, violations, watch, tolerance)
        stuck = SolveStatus.ITERATION_LIMIT, SolveStatus.STALLED, SolveStatus.FAILED
        if is_infeasible and not failed and status in stuck:  # tried at a price, too
            status = SolveStatus.INFEASIBLE
        gap = 0.0 if is_step else last.defect
        if status in (SolveStatus.INFEASIBLE, SolveStatus.STALLED) and not is_step:
            gap = float(np.abs(transcription.gaps(nodes, setting)).max(initial=0.0))
            if gap > self.model.settings.acceptable:
                status = SolveStatus.STALLED  # what is no motion tells nothing
        if unknown:  # nobody vouches for such a plan
            status = SolveStatus.FAILED

        def later() -> dict[str, Any]:
            message = _message(self.model.settings, status, last, violations, tolerance)
            if status is SolveStatus.STALLED and gap > self.model.settings.acceptable:
                message = (
                    f"{message}; it is not dynamically feasible: defects up to {gap:.2g} remain"
                )
            if violations and is_step and status is SolveStatus.ITERATION_LIMIT:
                message = f"{NOT_YET}; {message}"
            is_short = status is SolveStatus.INFEASIBLE or (
                status is SolveStatus.STALLED and len(violations) > 0
            )
            if is_short and not failed:
                limits = self._at_limits(nodes, setting, run.rows)
                message = "; ".join(filter(None, [message, limits, self._kept_against(run)]))
            return {"message": unknown or message, "iterations": entries(run.log, first)}

        solution = solution_at(
            problem, nodes, setting, t, last, later,
            status=status, violations=violations, times=_times(seconds), defect=gap, plan=plan,
        )  # fmt: skip
        return judged(solution, setting)

    def taken(
        self,
        log: np.ndarray,
        status: SolveStatus,
        nodes: Nodes,
        setting: Setting,
        started: float,
        plan: Plan,
    ) -> OptimalSolution:
        """The result of real-time steps that keep all rows.

        Parameters
        ----------
        log : ndarray
            A row of `LOG` for each of them.
        status : SolveStatus
        nodes : Nodes
        setting : Setting
        started : float
            When they began, s.
        plan : Plan

        Returns
        -------
        OptimalSolution
        """
        seconds = time.perf_counter() - started
        iterations = iterations_of(log, 1, seconds, is_real_time=True)
        last = iterations[-1]
        return solution_at(
            self.model.problem, nodes, setting, nodes.t, last,
            lambda: {"message": _message(self.model.settings, status, last, (), None)},
            status=status, violations=(), iterations=iterations, times=_times(seconds), defect=0.0,
            plan=plan,
        )  # fmt: skip

    def _at_limits(self, nodes: Nodes, setting: Setting, values: np.ndarray) -> str:
        """Limits of controls, and of what is free at the start, that are met, for messages."""
        model, share = self.model, self.model.settings.report_near
        names = setting.box.spent(nodes.u[:, model.controls], share)
        sides, rows, own = model.sides, model.transcription.rows, model.of_start
        for row, sign, limit in zip(sides.row[own], sides.sign[own], sides.limit[own], strict=True):
            width = rows.upper[row] - rows.lower[row]
            near = share * (width if np.isfinite(width) else max(1.0, abs(limit)))
            if sign * (values[0, row] - limit) >= -near:
                names.append(f"{rows.names[row]} ({'upper' if sign > 0 else 'lower'}, {limit:g})")
        return f"at their limits: {', '.join(names)}" if names else ""

    def _kept_against(self, run: Run) -> str:
        """Equalities that are kept at the expense of what is exceeded, for messages."""
        if run.is_lost:  # then they are what is missed
            return ""
        largest = np.abs(run.point.equal).max(axis=0, initial=0.0)
        least = self.model.settings.report_multiplier * np.abs(run.point.price).max(initial=0.0)
        names = [
            self.model.transcription.rows.names[row]
            for row, price in zip(self.model.sides.equal, largest, strict=True)
            if price > least
        ]
        return f"kept against it: {', '.join(names)}" if names else ""

    def _status(
        self,
        run: Run,
        kkt: float,
        violations: tuple[Violation, ...],
        watch: Watch,
        tolerance: float | None,
    ) -> SolveStatus:
        if run.status == NOT_FINITE:
            return SolveStatus.FAILED
        if tolerance is None:
            is_stuck = run.status == STALLED and not (run.steps or run.is_best(self.model.settings))
            if is_stuck and watch.ended is None and not violations:
                return SolveStatus.FAILED
            return watch.ended or SolveStatus.ITERATION_LIMIT
        if run.status == CONVERGED:  # with hard bounds at a price, too
            return SolveStatus.INFEASIBLE if violations else SolveStatus.CONVERGED
        if watch.ended is not None:
            return watch.ended
        if run.status == STALLED and not np.isfinite(kkt):
            return SolveStatus.FAILED
        if kkt <= tolerance and not violations:  # an end before the barrier's last weight
            return SolveStatus.CONVERGED
        worst = max((entry.amount for entry in violations), default=0.0)
        excess = self.model.hard_excess(run.rows)
        if run.status == STALLED and min(worst, excess) > self.model.settings.acceptable:
            return SolveStatus.INFEASIBLE  # where equalities alone miss somebody has to look
        if run.status == STALLED and kkt <= self.model.settings.acceptable:
            return SolveStatus.ACCEPTABLE
        return SolveStatus.STALLED if run.status == STALLED else SolveStatus.ITERATION_LIMIT


def _times(seconds: float) -> dict[str, float]:
    """There is no QP."""
    return {"total": seconds, "model": seconds, "qp": 0.0}


def _message(
    settings: Settings,
    status: SolveStatus,
    last: Iteration,
    violations: tuple[Violation, ...],
    tolerance: float | None,
) -> str:
    if tolerance is None:
        text = ""
        if status is SolveStatus.FAILED:
            text = "the motion from the measured state diverges"
            if np.isfinite(last.cost):
                text = "no step improves the plan that was found last"
        if status is SolveStatus.TIME_LIMIT:
            text = f"{last.number} iterations after {last.time:.3g} s, more were due"
    else:
        text = sentence(
            status,
            last,
            tolerance,
            stalled="no step lowers the cost",
            failed="the motion or its cost is not finite at the guess: start elsewhere",
        )
        if status is SolveStatus.ITERATION_LIMIT and last.number >= settings.restoration_after:
            text = f"{text}; {OTHER_START}"
    return "; ".join(filter(None, [text, *map(str, violations)]))
