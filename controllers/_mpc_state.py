"""The state of an MPC as one value over one column of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.optimal import Plan, PlanLayout, SolveStatus
from lgcontrol.optimal._internal import queue_size, recalled

from ._mpc_loop import Loop
from ._mpc_plan import PlanState, WarmStarts

# Why the next plan is to begin anew, by number.
CAUSES = ("", "reference", "parameters", "state")
STATUSES = tuple(SolveStatus)


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
        "disturbance": _disturbance(mpc).shape,
    }  # fmt: skip
    own = mpc.solver.plan_layout
    return PlanLayout(f"MPC of {own.problem}", (*own.shapes, *loop.items()))


def _disturbance(mpc: Any) -> np.ndarray:
    """The estimate as numbers."""
    estimator = mpc._parts.estimator
    return np.zeros(0) if estimator is None else estimator.numbers(mpc._loop.disturbance)


def state_of(mpc: Any) -> Plan:
    """The state of an MPC between two calls."""
    loop, layout = mpc._loop, state_layout(mpc)
    found, usual, due = loop.plan
    parts: dict[str, Any] = {
        "status": np.nan if found is None else STATUSES.index(found.status),
        "substeps": mpc.problem.substeps, "clock": mpc._time,
        "recent_cost": usual.recent, "largest_cost": usual.largest, "cause": CAUSES.index(due),
        "certified": usual.certified,
    }  # fmt: skip
    seen_t, seen_x = (None, None) if loop.seen is None else loop.seen
    known = {
        "answer": mpc._last, "recent_p": usual.p, "checked_p": loop.checked, "call_t": loop.clock,
        "seen_t": seen_t, "seen_x": seen_x, "disturbance": _disturbance(mpc),
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
