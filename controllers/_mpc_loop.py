"""Loop: what an MPC goes on with from call to call, as one value, and as a column of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ulp
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Plan, PlanLayout, SolveStatus
from lgcontrol.optimal._internal import WarmStarts, queue_size, recalled

from ._lqr import EARLY
from ._mpc_delay import Sent
from ._mpc_info import MPCInfo, lost_plan
from ._steady_disturbance import DisturbanceEstimate

# Why the next plan is to begin anew, by number.
CAUSES = ("", "reference", "parameters", "state")
STATUSES = tuple(SolveStatus)


class PlanState(NamedTuple):
    """Solution of the last call, the next warm start; why the next plan is `due` to begin anew."""

    found: OptimalSolution | None = None
    usual: WarmStarts = WarmStarts()
    due: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Preview:
    """A plan from an expected `state` for the call at t, which acts from `start` on, s.

    `K` (m, n) is the derivative of its first controls by the error of the state.
    """

    t: float
    start: float
    state: np.ndarray
    plan: OptimalSolution
    K: np.ndarray
    reference: Any
    p: np.ndarray
    info: MPCInfo

    def fits(self, t: float, reference: Any, p: np.ndarray) -> bool:
        """Whether a call is the one that was expected."""
        is_then = abs(t - self.t) <= max(EARLY, 4 * ulp(t)) and np.array_equal(p, self.p)
        return is_then and is_same(reference, self.reference)

    def answer(self, problem: OptimalControlProblem, state: np.ndarray) -> np.ndarray:
        """Controls for the state that came."""
        first = self.plan.u[0, problem.input_limits.controls]
        return first + self.K @ problem.system.error(state, self.state)


class Loop(NamedTuple):
    """What changes from call to call, besides what all controllers remember.

    `sent` are answers with the times of their effect, `seen` the last time and state, `clock` the
    time of the last call, s. For the parameters in `checked` there are enough substeps.
    """

    disturbance: DisturbanceEstimate
    plan: PlanState = PlanState()
    sent: Sent = ()
    seen: tuple[float, np.ndarray] | None = None
    clock: float | None = None
    preview: Preview | None = None
    checked: np.ndarray = np.zeros(0)

    def at(self, t: float, horizon: float) -> Loop:
        """At the time of a call; after a jump of the clock only the last answer counts."""
        if self.clock is None or follows(self.clock, t, horizon):
            return self._replace(clock=t)
        sent = tuple((t, u) for _, u in self.sent[-1:])  # as one that acts from now on
        return self._replace(clock=t, sent=sent, seen=None, preview=None)


def follows(before: float, t: float, horizon: float) -> bool:
    """Whether a time can follow another: clocks that go back or on by a horizon have jumped."""
    return -EARLY <= t - before <= horizon + EARLY


def is_same(one: Any, other: Any) -> bool:
    """Whether two references are the same as given: one object, or equal states and inputs."""
    if one is other or callable(one) or callable(other):
        return one is other
    return all(
        np.array_equal(getattr(one, name, own), getattr(other, name, its))
        for name, own, its in (("x", one, other), ("u", 0, 0))
    )


def state_layout(mpc: Any) -> PlanLayout:
    """Parts of an MPC's state: those of its solver's plans, then those of the loop."""
    system, m = mpc.system, len(mpc._controls)
    queued = queue_size(mpc.delay, mpc.dt, mpc.hold == "first")
    loop = {
        "status": (), "substeps": (), "clock": (), "answer": (m,),
        "call_t": (), "queue_t": (queued,), "queue_u": (queued, m),
        "seen_t": (), "seen_x": (system.state.nq,),
        "recent_cost": (), "largest_cost": (), "certified": (), "cause": (),
        "recent_p": mpc._p.shape, "checked_p": (system.n_parameters,),
        "disturbance": estimate_of(mpc, mpc._loop).shape,
    }  # fmt: skip
    own = mpc.solver.plan_layout
    return PlanLayout(f"MPC of {own.problem}", (*own.shapes, *loop.items()))


def estimate_of(mpc: Any, loop: Loop) -> np.ndarray:
    """The estimate of disturbances as numbers."""
    estimator = mpc._parts.estimator
    return np.zeros(0) if estimator is None else estimator.numbers(loop.disturbance)


def state_of(mpc: Any) -> Plan:
    """The state of an MPC between two calls."""
    loop, layout = mpc._loop, state_layout(mpc)
    found, usual, due = loop.plan
    status = np.nan
    if found is not None:  # defects are no part of a state
        status = STATUSES.index(SolveStatus.FAILED if lost_plan(found) else found.status)
    parts: dict[str, Any] = {
        "status": status,
        "substeps": mpc.problem.substeps, "clock": mpc._time,
        "recent_cost": usual.recent, "largest_cost": usual.largest, "cause": CAUSES.index(due),
        "certified": usual.certified,
    }  # fmt: skip
    seen_t, seen_x = (None, None) if loop.seen is None else loop.seen
    known = {
        "answer": mpc._last, "recent_p": usual.p, "checked_p": loop.checked, "call_t": loop.clock,
        "seen_t": seen_t, "seen_x": seen_x, "disturbance": estimate_of(mpc, loop),
    }  # fmt: skip
    for name, value in known.items():
        shape = layout.places[name][1]
        is_there = value is not None and np.shape(value) == shape
        parts[name] = value if is_there else np.full(shape, np.nan)
    times = np.full(layout.places["queue_t"][1], np.nan)
    inputs = np.zeros(layout.places["queue_u"][1])
    for k, (when, u) in enumerate(loop.sent):
        times[k], inputs[k] = when, u
    parts |= {"queue_t": times, "queue_u": inputs}
    if found is not None:
        parts |= found.plan.check(mpc.solver.plan_layout).parts()
    return Plan.of(layout, **parts)


def loop_of(mpc: Any, state: Plan) -> tuple[float, np.ndarray | None, Loop]:
    """The clock, the last answer and the loop of a state, for an MPC that was reset."""

    def known(name: str) -> Any:
        value = state[name]
        return None if np.isnan(value).any() else value.copy()

    last, seen, call, checked = map(known, ("answer", "seen_t", "call_t", "checked_p"))
    there = ~np.isnan(state["queue_t"])
    sent = zip(state["queue_t"][there].tolist(), state["queue_u"][there].copy(), strict=True)
    p, found = known("recent_p"), None
    recent, largest = state.number("recent_cost"), state.number("largest_cost")
    if not np.isnan(state["status"]):
        own = mpc.solver.plan_layout
        plan = Plan.of(own, **{name: state[name] for name in own.places})
        found = recalled(mpc.problem, plan, STATUSES[int(state.number("status"))])
    p, certified = np.zeros(0) if p is None else p, state.number("certified")
    usual = WarmStarts(recent, largest, p, certified=certified)
    loop = mpc._loop._replace(
        plan=PlanState(found, usual, CAUSES[int(state.number("cause"))]),
        sent=tuple(sent),
        seen=None if seen is None else (float(seen), state["seen_x"].copy()),
        clock=None if call is None else float(call),
        checked=np.zeros(0) if checked is None else checked,
    )
    if mpc._parts.estimator is not None:
        loop = loop._replace(disturbance=mpc._parts.estimator.estimate(state["disturbance"]))
    return state.number("clock"), last if last is not None and last.size else None, loop
