"""LoopParts: what an MPC is put together of: delay, bias, plan, limits and rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lgcontrol.codegen._internal import MOST_SUBSTEPS, check_quotient
from lgcontrol.optimal import InteriorPointSolver, OptimalControlProblem, Rates, Settings, Solver
from lgcontrol.optimal._internal import (
    depends_on_time,
    make_solver,
    moves,
    sample_reference,
    starts_of,
)
from lgcontrol.systems import ReferenceLike, System, Trajectory

from ._base import Controller
from ._lqr import EARLY
from ._mpc_delay import Delay
from ._mpc_info import MPCInfo
from ._mpc_loop import Loop, PlanState
from ._mpc_plan import Ask, Planner
from ._mpc_rates import InputRates
from ._real_time import RealTime
from ._steady_disturbance import DisturbanceEstimate, DisturbanceEstimator, SteadyDisturbance

SETTINGS = Settings()  # where none are given


@dataclass(frozen=True, eq=False, slots=True)
class LoopParts:
    """Parts of an MPC, and what they do in a call: each takes the `Loop` and hands it on."""

    system: System
    rates: InputRates
    delay: Delay
    planner: Planner
    estimator: DisturbanceEstimator | None

    def of(self, problem: OptimalControlProblem) -> LoopParts:
        """The same parts for another problem that is solved."""
        return replace(self, planner=self.planner.for_problem(problem))

    def began(self) -> Loop:
        """A loop that knows nothing of earlier calls."""
        return Loop(DisturbanceEstimate(np.zeros(self.system.n_inputs)))

    def observed(self, loop: Loop, t: float, x: np.ndarray, own: np.ndarray) -> Loop:
        """With what a state says of the disturbances, after the one that was seen before."""
        if self.estimator is None or loop.seen is None or not t > loop.seen[0] + EARLY:
            return loop
        before, state = loop.seen
        pieces = self.delay.pieces(loop.sent, before, t)
        known = self.estimator.observe(loop.disturbance, state, pieces, x, own)
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
        return self.delay.predict(loop.sent, t, x, end, push, self.planner.problem, own)

    def aim(
        self, loop: Loop, reference: ReferenceLike | None, start: float, own: np.ndarray
    ) -> tuple[DisturbanceEstimate, Any]:
        """The reference, or what meets it in spite of the disturbances that are known."""
        known = loop.disturbance
        is_off = self.estimator is not None and bool(known.inputs.any())
        if not is_off and self.rates.is_plain:
            return known, reference
        times = self.planner.problem.times(start)
        samples = sample_reference(self.system, reference, times, own)
        if self.estimator is not None:
            known, samples = self.estimator.target(known, samples, times, own)
        return known, self.rates.reference(samples, times)

    def first(self, loop: Loop, ask: Ask) -> tuple[Loop, MPCInfo]:
        """The first plan, to convergence."""
        loop, ask = self._aimed(loop, ask)
        plan, info = self.planner.first(ask, "first")
        return loop._replace(plan=plan), info

    def planned(self, loop: Loop, ask: Ask) -> tuple[Loop, MPCInfo]:
        """The next plan."""
        loop, ask = self._aimed(loop, ask)
        plan, info = self.planner.plan(loop.plan, ask)
        return loop._replace(plan=plan), info

    def _aimed(self, loop: Loop, ask: Ask) -> tuple[Loop, Ask]:
        """With the reference of the problem."""
        own = ask.p[: self.system.n_parameters]
        known, aim = self.aim(loop, ask.reference, ask.start, own)
        return loop._replace(disturbance=known), ask._replace(aim=aim)

    def kept_to_known(
        self, loop: Loop, t: float, x: np.ndarray, p: np.ndarray
    ) -> tuple[Loop, np.ndarray, str]:
        """Parameters the plan's steps keep up with at a state, and why they are not the given ones.

        Nothing is built in a call: where modes became too fast for the substeps there are, the
        system's parameters stay as they were in the last call.
        """
        own, problem = p[: self.system.n_parameters], self.planner.problem
        at = x, problem.system.nominal_input, t
        text = problem.too_few_substeps(*at, own)
        if not text or problem.too_few_substeps(*at, loop.checked):  # the state is to blame
            return loop._replace(checked=own.copy()), p, ""
        p = np.concatenate([loop.checked, p[len(loop.checked) :]])
        text += (
            ". The plan keeps the system's last parameters that it can follow: prepare() with the "
            "new ones between calls, or make the MPC with substeps=…"
        )
        return loop, p, text

    def keeping_up(
        self, loop: Loop, x: np.ndarray, start: float, reference: Any, own: np.ndarray
    ) -> tuple[Loop, LoopParts]:
        """Before the first plan: more substeps where modes at its start or goal are too fast."""
        times = self.planner.problem.times(start)
        is_still = not (moves(reference) or depends_on_time(self.system))
        if is_still and not self.rates.in_blocks:
            times = times[:2]  # all are alike
        goal = sample_reference(self.system, reference, times, own)
        goal = self.rates.reference(goal, times)
        finer = self.planner.problem.keeping_up(goal.x, goal.u, times, own)
        finer = finer.keeping_up(x, goal.u[0], times[0], own)
        parts = self
        if finer is not self.planner.problem:
            parts = self.of(finer)
            plan = PlanState(loop.plan.found)
            loop = self.began()._replace(
                plan=plan, sent=loop.sent, seen=loop.seen, clock=loop.clock
            )
            if self.planner.solver.is_prepared:
                parts.planner.solver.prepare()
        return loop._replace(checked=own.copy()), parts


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
            _check_multiple(system, name, value)
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
            system, disturbance, numbers.bias_settling * period, method=planned.method,
            substeps=planned.substeps,
            Q=stated.weight("Q").at(stated.nominal_parameters),
            unobservable=numbers.bias_unobservable, ramps=hold == "first",
        )  # fmt: skip
    planner = Planner(planned, chosen, numbers, work, guess)
    moving = Delay(system, delay, period, period if hold == "first" else 0.0)
    return LoopParts(system, view, moving, planner, estimator)


def _check_multiple(system: System, name: str, seconds: float) -> None:
    """Refuse times that a discrete system does not know."""
    samples = seconds / system.dt
    if abs(samples - round(samples)) > EARLY / system.dt:
        raise ValueError(
            f"{name} = {seconds:g} s is no multiple of {system.dt:g} s, the sample time of "
            f"{system.name}"
        )
