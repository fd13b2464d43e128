"""LoopParts: what an MPC is put together of: delay, bias, plan, limits and rates; what these do."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lgcontrol.codegen._internal import MOST_SUBSTEPS, check_quotient
from lgcontrol.optimal import InteriorPointSolver, OptimalControlProblem, Rates, Settings, Solver
from lgcontrol.optimal._internal import WarmStarts, make_solver, sample_reference, starts_of
from lgcontrol.systems import ReferenceLike, System, Trajectory

from ._base import Controller
from ._lqr import EARLY
from ._mpc_delay import Delay
from ._mpc_info import MPCInfo, lost_plan
from ._mpc_loop import Loop, PlanState
from ._mpc_rates import InputRates
from ._real_time import RealTime
from ._steady_disturbance import DisturbanceEstimate, DisturbanceEstimator, SteadyDisturbance

SETTINGS = Settings()  # where none are given


@dataclass(frozen=True, eq=False, slots=True)
class LoopParts:
    """Parts of an MPC, and what they do in a call: each takes the `Loop` and hands it on.

    `problem` is the one that is solved, with rates that of the rates; `guess` is where new plans
    start.
    """

    system: System
    rates: InputRates
    delay: Delay
    estimator: DisturbanceEstimator | None
    problem: OptimalControlProblem
    solver: Solver
    settings: Settings
    real_time: RealTime
    guess: Controller | Trajectory | str

    def of(self, problem: OptimalControlProblem) -> LoopParts:
        """The same parts for another problem that is solved."""
        return replace(self, problem=problem, solver=self.solver.for_problem(problem))

    @property
    def word(self) -> str:
        """Initial guess of plans, in a word that solvers know."""
        if isinstance(self.guess, str) and self.guess != "auto":
            return self.guess
        return "cheapest" if self.problem.system.policy is None else "policy"

    def began(self) -> Loop:
        """A loop that knows nothing of earlier calls."""
        return Loop(DisturbanceEstimate(np.zeros(self.system.n_inputs)))

    def observed(self, loop: Loop, t: float, x: np.ndarray, own: np.ndarray) -> Loop:
        """With what a state says of the disturbances, after the one that was seen before."""
        if self.estimator is None or loop.seen is None or not t > loop.seen[0] + EARLY:
            return loop
        before, state = loop.seen

        def predicted(push: np.ndarray) -> np.ndarray:
            states = np.tile(state, (len(push), 1))
            return self.delay.predict(loop.sent, before, states, t, push, self.problem, own)

        known = self.estimator.observe(loop.disturbance, predicted, t - before, x)
        return loop._replace(disturbance=known)

    def at_effect(
        self, loop: Loop, t: float, x: np.ndarray, own: np.ndarray
    ) -> tuple[float, Loop, np.ndarray]:
        """Time at which an answer takes effect, and the state then."""
        loop = loop._replace(sent=self.delay.arrive(loop.sent, t))
        if not self.delay.seconds:
            return t, loop, x
        return t + self.delay.seconds, loop, self.predicted(loop, t, x, t + self.delay.seconds, own)

    def predicted(
        self, loop: Loop, t: float, x: np.ndarray, end: float, own: np.ndarray
    ) -> np.ndarray:
        """State later, with the answers that take effect until then."""
        push = 0.0 if self.estimator is None else loop.disturbance.inputs
        return self.delay.predict(loop.sent, t, x, end, push, self.problem, own)

    def aim(
        self, loop: Loop, reference: ReferenceLike | None, start: float, own: np.ndarray
    ) -> tuple[DisturbanceEstimate, Any]:
        """The reference, or what meets it in spite of the disturbances that are known."""
        known = loop.disturbance
        is_off = self.estimator is not None and bool(known.inputs.any())
        if not is_off and self.rates.is_plain:
            return known, reference
        times = self.problem.times(start)
        samples = sample_reference(self.system, reference, times, own)
        if self.estimator is not None:
            known, samples = self.estimator.target(known, samples, times, own)
        return known, self.rates.sampled(samples, times, None)

    def planned(
        self, loop: Loop, x: np.ndarray, start: float, reference: ReferenceLike | None,
        p: np.ndarray, began: float, budget: float,
    ) -> tuple[Loop, MPCInfo]:  # fmt: skip
        """The next plan, of one solve or step: for solvers without a loop, and first plans.

        It is from the state x of the problem at `start`, when it takes effect. It goes on from the
        last plan; where there is none, or one that leads nowhere, the initial guess is solved to
        convergence. The call `began` at a reading of the clock, and has a budget in s.
        """
        known, aim = self.aim(loop, reference, start, p[: self.system.n_parameters])
        loop, last, work = loop._replace(disturbance=known), loop.plan.found, self.real_time
        given: dict[str, Any] = {"reference": aim, "t0": start, "p": p}
        left = budget - (time.perf_counter() - began)
        if last is not None and not lost_plan(last):
            found = self.solver.step(
                x, plan=last.plan, iterations=work.at_most(work.iterations), time_limit=left,
                **given,
            )  # fmt: skip
            plan, restart = loop.plan._replace(found=found), ""
        else:
            found = self.solver.solve(
                x, guess=self.word if isinstance(self.guess, str) else self.guess,
                max_iterations=work.at_most(work.first_iterations), time_limit=max(left, 0.0),
                for_steps=True, **given,
            )  # fmt: skip
            cost = found.cost if np.isfinite(found.cost) else 0.0
            plan = PlanState(found, WarmStarts(cost, cost, p, reference))
            restart = "first" if last is None else "failed"
        info = MPCInfo.of(found, time.perf_counter() - began, restart)
        return loop._replace(plan=plan), info


def put_together(
    stated: OptimalControlProblem, rates: Rates | None, period: float, delay: float, work: RealTime,
    guess: Controller | Trajectory | str, solver: Solver | str | None, settings: Settings | None,
    disturbance: str | Iterable[str] | SteadyDisturbance,
) -> LoopParts:  # fmt: skip
    """Parts of an MPC by its options, as it takes them; what does not go together is refused."""
    system, hold, first = stated.system, stated.hold, float(stated.steps[0])
    in_blocks = stated.may_change is not None
    if rates is not None and in_blocks and abs(period - first) > EARLY:
        raise ValueError(
            f"rates of blocks are changes over the first step, {first:g} s, and the period is "
            f"{period:g} s: a limit would count per period. Begin with a step of the period, "
            f"dt=[{period:g}, …]"
        )
    if rates is not None and hold == "zero" and not (stated.has_equal_steps or in_blocks):
        raise ValueError(
            f"rates of held controls need steps of one length, got {stated.grid}: give dt as "
            'one number, or hold="first"'
        )
    is_estimated = isinstance(disturbance, SteadyDisturbance) or bool(disturbance)
    if hold == "first" and period > first * (1 + EARLY):
        raise ValueError(
            'hold="first" moves controls to the end of the first step, and a period longer than dt '
            'is for held ones: leave it out, lengthen dt, or take hold="zero"'
        )
    view = InputRates(stated, rates, period)
    planned = view.problem(stated)
    if system.is_discrete:
        for name, value in (("period", period), ("delay", delay)):
            samples = value / system.dt
            if abs(samples - round(samples)) > EARLY / system.dt:
                raise ValueError(
                    f"{name} = {value:g} s is no multiple of {system.dt:g} s, the sample time of "
                    f"{system.name}"
                )
    check_quotient("steps of the delay", delay / planned.dt, MOST_SUBSTEPS)
    if isinstance(guess, str) and guess != "auto":
        starts_of(planned.system, guess)
    if not view.is_plain and not isinstance(guess, str):
        raise TypeError(
            f"with {view.what} plans start from a word, as guess='cheapest', not {guess!r}"
        )
    if settings is not None and solver in (None, "interior_point"):
        solver = InteriorPointSolver(settings=settings)
    numbers = SETTINGS if settings is None else settings
    chosen = make_solver(solver, planned)
    if work.split and not chosen.has_feedback:
        raise ValueError(
            f"split=True needs the feedback of a plan, which {type(chosen).__name__} does "
            "not have: take solver='interior_point'"
        )
    estimator = None
    if is_estimated:
        if not isinstance(disturbance, SteadyDisturbance):
            disturbance = SteadyDisturbance(disturbance)
        estimator = DisturbanceEstimator(
            system,
            disturbance,
            numbers.bias_settling * period,
            Q=stated.weight("Q").at(stated.nominal_parameters),
            unobservable=numbers.bias_unobservable,
        )
    moving = Delay(system, delay, period, period if hold == "first" else 0.0)
    return LoopParts(system, view, moving, estimator, planned, chosen, numbers, work, guess)
