"""Planner: plans that go on from call to call."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, Settings, Solver
from lgcontrol.systems import ReferenceLike, Trajectory

from ._base import Controller
from ._mpc_info import MPCInfo, lost_plan
from ._mpc_loop import PlanState, WarmStarts
from ._real_time import RealTime


class Ask(NamedTuple):
    """What a plan is asked for: from the state x of the problem, when it takes effect, at `start`.

    `aim` is the reference of the problem, `began` a reading of the clock, `budget` what the call
    may take, s.
    """

    x: np.ndarray
    start: float
    reference: ReferenceLike | None
    aim: Any
    p: np.ndarray
    began: float
    budget: float

    @property
    def spent(self) -> float:
        """Time since the call began, s."""
        return time.perf_counter() - self.began


class Planner:
    """One solve or step a call: ``(PlanState, Ask) → (PlanState, MPCInfo)``.

    It makes first plans, and the plans of solvers without a loop of their own. The rules by which
    plans begin anew are those of the kernel.
    """

    def __init__(
        self, problem: OptimalControlProblem, solver: Solver, settings: Settings,
        real_time: RealTime, guess: Controller | Trajectory | str,
    ) -> None:  # fmt: skip
        self.problem, self.solver, self.settings = problem, solver, settings
        self.real_time, self.guess = real_time, guess

    def for_problem(self, problem: OptimalControlProblem) -> Planner:
        """A planner with the same settings for another problem."""
        solver = self.solver.for_problem(problem)
        return Planner(problem, solver, self.settings, self.real_time, self.guess)

    def from_word(self, word: str) -> Planner:
        """One whose plans start from a word."""
        return Planner(self.problem, self.solver, self.settings, self.real_time, word)

    @property
    def word(self) -> str:
        """Initial guess of plans, in a word that solvers know."""
        if isinstance(self.guess, str) and self.guess != "auto":
            return self.guess
        return "cheapest" if self.problem.system.policy is None else "policy"

    def plan(self, state: PlanState, ask: Ask) -> tuple[PlanState, MPCInfo]:
        """Go on from the last plan, or plan anew where there is none, or one that leads nowhere."""
        last, work = state.found, self.real_time
        if last is None or lost_plan(last):
            return self.first(ask, "first" if last is None else "failed")
        found = self.solver.step(
            ask.x, plan=last.plan, reference=ask.aim, t0=ask.start, p=ask.p,
            iterations=work.at_most(work.iterations), time_limit=ask.budget - ask.spent,
        )  # fmt: skip
        return state._replace(found=found), MPCInfo.of(found, ask.spent)

    def first(self, ask: Ask, cause: str) -> tuple[PlanState, MPCInfo]:
        """Plan anew from the initial guess, to convergence."""
        limits: dict[str, Any] = {}
        if np.isfinite(ask.budget):
            limits["time_limit"] = max(ask.budget - ask.spent, 0.0)
        work = self.real_time
        found = self.solver.solve(
            ask.x, guess=self.word if isinstance(self.guess, str) else self.guess,
            reference=ask.aim, t0=ask.start, p=ask.p,
            max_iterations=work.at_most(work.first_iterations), for_steps=True, **limits,
        )  # fmt: skip
        cost = found.cost if np.isfinite(found.cost) else 0.0
        usual = WarmStarts(cost, cost, ask.p, ask.reference)
        return PlanState(found, usual), MPCInfo.of(found, ask.spent, cause)
