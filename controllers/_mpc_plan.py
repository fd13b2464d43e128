"""Planner: plans that go on from call to call, and begin anew where something has jumped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import (
    OptimalControlProblem,
    OptimalSolution,
    Plan,
    Settings,
    Solver,
    SolveStatus,
)
from lgcontrol.optimal._internal import ACCEPTABLE_RESIDUAL
from lgcontrol.systems import ReferenceLike, Trajectory

from ._base import Controller
from ._lqr import EARLY
from ._mpc_info import MPCInfo
from ._real_time import RealTime


class WarmStarts(NamedTuple):
    """Recent cost of warm starts, so that a jump of reference, parameters or state shows.

    A jump is a rise of that cost over the recent one by a factor. Compared with converged plans
    instead, goals that come into view look like jumps in every call.

    Attributes
    ----------
    recent, largest : float
        Largest cost of a warm start, older ones counting less; and of all.
    p : ndarray
        Parameters of the last.
    reference : object
        Of the last, as given.
    """

    recent: float = 0.0
    largest: float = 0.0
    p: np.ndarray = np.zeros(0)
    reference: Any = None

    def jump(self, cost: float, fading: float, ask: Ask, settings: Settings) -> str:
        """Name of what jumped, empty if nothing did."""
        recent = max(fading * self.recent, settings.jump_noise * self.largest)
        if cost <= settings.jump * recent:
            return ""
        if not is_same(ask.reference, self.reference):
            return "reference"
        return "state" if np.array_equal(self.p, ask.p) else "parameters"

    def later(self, cost: float, fading: float, ask: Ask) -> WarmStarts:
        """With another plan."""
        return WarmStarts(
            max(cost, fading * self.recent), max(cost, self.largest), ask.p, ask.reference
        )


class PlanState(NamedTuple):
    """What planning goes on with from call to call.

    Attributes
    ----------
    found : OptimalSolution or None
        Of the last call, whose plan the next one goes on from.
    usual : WarmStarts
    due : str
        Why the next plan is to begin anew.
    """

    found: OptimalSolution | None = None
    usual: WarmStarts = WarmStarts()
    due: str = ""


class Ask(NamedTuple):
    """What a plan is asked for.

    Attributes
    ----------
    x : ndarray
        State of the problem when the plan takes effect.
    start : float
        That time, s.
    reference : object
        As given.
    aim : object
        The reference of the problem.
    p : ndarray
    began, budget : float
        Clock reading at the beginning of the call, and what it may take, s.
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
    """One plan a call: ``(PlanState, Ask) → (PlanState, MPCInfo)``.

    Parameters
    ----------
    problem : OptimalControlProblem
    solver : Solver
        For this problem.
    settings : Settings
    real_time : RealTime
    guess : Controller, Trajectory or str
        Initial guess of new plans.
    """

    def __init__(
        self,
        problem: OptimalControlProblem,
        solver: Solver,
        settings: Settings,
        real_time: RealTime,
        guess: Controller | Trajectory | str,
    ) -> None:
        self.problem, self.solver, self.settings = problem, solver, settings
        self.real_time, self.guess = real_time, guess

    def for_problem(self, problem: OptimalControlProblem) -> Planner:
        """A planner with the same settings for another problem."""
        solver = self.solver.for_problem(problem)
        return Planner(problem, solver, self.settings, self.real_time, self.guess)

    def as_firmware(self, word: str) -> Planner:
        """One that starts from a word; without rules in C, it does not look for jumps either."""
        work = self.real_time
        work = work if self.solver.has_loop else replace(work, restarts=False)
        return Planner(self.problem, self.solver, self.settings, work, word)

    @property
    def word(self) -> str:
        """Initial guess of plans, in a word that solvers know."""
        if isinstance(self.guess, str) and self.guess != "auto":
            return self.guess
        return "cheapest" if self.problem.system.policy is None else "policy"

    def plan(self, state: PlanState, ask: Ask) -> tuple[PlanState, MPCInfo]:
        """Go on from the last plan, or plan anew where there is none or something jumped."""
        last = state.found
        if last is None or last.status is SolveStatus.FAILED:  # a plan that leads nowhere
            return self.first(state, ask, "first" if last is None else "failed")
        work, rules = self.real_time, self.settings
        found = self._step(ask, last.plan, work.at_most(work.iterations))
        if state.due:
            return self._compared(state, ask, found)
        if not work.restarts or self.problem.costs:
            return state._replace(found=found), MPCInfo.of(found, ask.spent)
        fading = fading_of(last, found, rules)
        going_on = found.iterations[-1].cost  # after the steps that a change took
        taken = found.iterations[-1].number
        due = state.usual.jump(going_on, fading, ask, rules)
        if due and ask.spent < ask.budget:
            if work.restarts == "at once":
                return self.first(state._replace(found=found), ask, due, going_on, taken)
            if found.iterations[-1].number == work.iterations:
                more = self._step(ask, found.plan, rules.real_time_more)
                taken += more.iterations[-1].number
                found = found if more.status is SolveStatus.FAILED else more
        dearest = max(found.iterations[0].cost, going_on)
        usual = state.usual.later(dearest, fading, ask)
        info = replace(MPCInfo.of(found, ask.spent), iterations=taken)
        return PlanState(found, usual, due), info

    def first(
        self, state: PlanState, ask: Ask, cause: str, going_on: float = 0.0, taken: int = 0
    ) -> tuple[PlanState, MPCInfo]:
        """Plan anew: the best of the initial guesses, iterated to convergence.

        Where that gains little over the last plan, what going on costs is usual from now on.
        """
        last, best, work = state.found, None, self.real_time
        for guess in self.guesses(state):
            other = self._solve(ask, guess, 0)
            if guess is last is not None:
                last = other
            if best is None or is_better(other, best):
                best = other
            if ask.spent > ask.budget:
                break
        limit = max(ask.budget - ask.spent, 0.0) if np.isfinite(ask.budget) else None
        found = self._solve(ask, best, work.at_most(work.first_iterations), limit)
        is_gain = last is None or (best is not last and self.settings.jump * found.cost < last.cost)
        usual = state.usual.later(max(found.cost, 0.0 if is_gain else going_on), 0.0, ask)
        info = MPCInfo.of(found, ask.spent, cause)
        return PlanState(found, usual), replace(info, iterations=taken + info.iterations)

    def guesses(
        self, state: PlanState
    ) -> Iterator[OptimalSolution | Controller | Trajectory | str]:
        """Initial guesses of a new plan: the last plan first."""
        if state.found is not None:
            yield state.found
        yield self.word if isinstance(self.guess, str) else self.guess

    def _compared(
        self, state: PlanState, ask: Ask, found: OptimalSolution
    ) -> tuple[PlanState, MPCInfo]:
        """The better of a plan that went on and of one from a new initial guess."""
        other = self._step(ask, self._at_a_guess(ask), max(1, self.real_time.iterations - 1))
        taken = found.iterations[-1].number + other.iterations[-1].number
        # What going on costs is usual from now on, so that noise is no jump again and again.
        usual = state.usual.later(found.cost, 0.0, ask)
        restart = ""
        if is_better(other, found):
            found, restart = other, state.due
        info = MPCInfo.of(found, ask.spent, restart)
        return PlanState(found, usual), replace(info, iterations=taken)

    def _step(self, ask: Ask, plan: Plan, iterations: int) -> OptimalSolution:
        return self.solver.step(
            ask.x, plan=plan, reference=ask.aim, t0=ask.start, p=ask.p, iterations=iterations,
            time_limit=ask.budget - ask.spent,
        )  # fmt: skip

    def _solve(
        self, ask: Ask, guess: Any, iterations: int, time_limit: float | None = None
    ) -> OptimalSolution:
        limits: dict[str, Any] = {} if time_limit is None else {"time_limit": time_limit}
        return self.solver.solve(
            ask.x, guess=guess, reference=ask.aim, t0=ask.start, p=ask.p,
            max_iterations=iterations, **limits,
        )  # fmt: skip

    def _at_a_guess(self, ask: Ask) -> Plan:
        """The plan of the initial guess."""
        other = self._solve(ask, self.word, 0)
        if other.iterations[-1].defect > ACCEPTABLE_RESIDUAL:
            # States with defects, as those at rest, cost little: what counts is where their inputs
            # lead.
            inputs, last = other.u[:, self.problem.input_limits.controls], len(other.u) - 1

            def rolled_out(t: float, x: np.ndarray, reference: Any) -> np.ndarray:
                return inputs[min(int((t - ask.start) / self.problem.dt + EARLY), last)]

            other = self._solve(ask, rolled_out, 0)
        return other.plan


def fading_of(last: OptimalSolution, found: OptimalSolution, settings: Settings) -> float:
    """Factor by which costs count less from one plan to a later one; never more than one."""
    t, before = found.t, last.t
    return settings.jump_fading ** -max(0.0, float((t[0] - before[0]) / (t[-1] - t[0])))


def rank(plan: OptimalSolution) -> tuple[float, float]:
    """What plans are compared by: the violation of their hard constraints, then cost."""
    if not np.isfinite(plan.cost):
        return np.inf, np.inf
    off = sum(entry.amount for entry in plan.violations if entry.amount > ACCEPTABLE_RESIDUAL)
    return off, plan.cost


def is_better(one: OptimalSolution, other: OptimalSolution) -> bool:
    """Whether a plan violates hard constraints by less than another, or costs less."""
    (off, cost), (its_off, its_cost) = rank(one), rank(other)
    return off < its_off if abs(off - its_off) > ACCEPTABLE_RESIDUAL else cost < its_cost


def is_same(one: Any, other: Any) -> bool:
    """Whether two references are the same as given: one object, or equal states and inputs."""
    if one is other or callable(one) or callable(other):
        return one is other
    return all(
        np.array_equal(getattr(one, name, own), getattr(other, name, its))
        for name, own, its in (("x", one, other), ("u", 0, 0))
    )
