"""What an MPC goes on with from call to call, as one value over one column of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.optimal import Plan, PlanLayout, SolveStatus
from lgcontrol.optimal._internal import recalled

from ._restarts import Usual

# Why the next plan is to begin anew, by number.
CAUSES = ("", "reference", "parameters", "state")
STATUSES = tuple(SolveStatus)


def state_layout(mpc: Any) -> PlanLayout:
    """Parts of an MPC's state: those of its solver's plans, then those of the loop.

    Parameters
    ----------
    mpc : MPC

    Returns
    -------
    PlanLayout
    """
    system, m = mpc.system, len(mpc._controls)
    queued = 2 * int(np.ceil(mpc.delay / mpc.dt)) + 2
    loop = {
        "status": (), "substeps": (), "clock": (), "answer": (m,),
        "call_t": (), "queue_t": (queued,), "queue_u": (queued, m),
        "seen_t": (), "seen_x": (system.state.nq,),
        "recent_cost": (), "largest_cost": (), "recent_p": mpc._p.shape, "cause": (),
        "checked_p": (system.n_parameters,),
        "disturbance": (0 if mpc._bias is None else mpc._bias.numbers().size,),
    }  # fmt: skip
    own = mpc.solver.plan_layout
    return PlanLayout(f"MPC of {own.problem}", (*own.shapes, *loop.items()))


def state_of(mpc: Any) -> Plan:
    """The state of an MPC between two calls.

    Parameters
    ----------
    mpc : MPC

    Returns
    -------
    Plan
    """
    found, usual, layout = mpc._loop.found, mpc._loop.usual, state_layout(mpc)
    parts: dict[str, Any] = {
        "status": np.nan if found is None else STATUSES.index(found.status),
        "substeps": mpc.problem.substeps, "clock": mpc._time,
        "recent_cost": usual.lately, "largest_cost": usual.most,
        "cause": CAUSES.index(mpc._loop.due),
    }  # fmt: skip
    known = {
        "answer": mpc._last, "recent_p": usual.p, "checked_p": mpc._loop.checked,
        "call_t": mpc._loop.clock,
        "seen_t": None if mpc._loop.seen is None else mpc._loop.seen[0],
        "seen_x": None if mpc._loop.seen is None else mpc._loop.seen[1],
        "disturbance": None if mpc._bias is None else mpc._bias.numbers(),
    }  # fmt: skip
    for name, value in known.items():
        shape = layout.places[name][1]
        is_there = value is not None and np.shape(value) == shape
        parts[name] = value if is_there else np.full(shape, np.nan)
    times = np.full(layout.places["queue_t"][1], np.nan)
    inputs = np.zeros(layout.places["queue_u"][1])
    for k, (when, u) in enumerate(mpc._loop.sent[-len(times) :]):
        times[k], inputs[k] = when, u
    parts |= {"queue_t": times, "queue_u": inputs}
    if found is not None:
        parts |= found.plan.check(mpc.solver.plan_layout).parts()
    return Plan.of(layout, **parts)


def take_state(mpc: Any, state: Plan) -> None:
    """Let an MPC that was reset go on from a state.

    Parameters
    ----------
    mpc : MPC
    state : Plan
    """

    def known(name: str) -> Any:
        value = state[name]
        return None if np.isnan(value).any() else value.copy()

    mpc._time = state.number("clock")
    last, seen = known("answer"), known("seen_t")
    call = known("call_t")
    mpc._loop.clock = None if call is None else float(call)
    mpc._last = last if last is not None and last.size else None
    mpc._loop.seen = None if seen is None else (float(seen), state["seen_x"].copy())
    there = ~np.isnan(state["queue_t"])
    times, inputs = state["queue_t"][there].tolist(), state["queue_u"][there].copy()
    mpc._loop.sent = list(zip(times, inputs, strict=True))
    p, checked = known("recent_p"), known("checked_p")
    lately, most = state.number("recent_cost"), state.number("largest_cost")
    mpc._loop.usual = Usual(lately, most, np.zeros(0) if p is None else p)
    mpc._loop.due = CAUSES[int(state.number("cause"))]
    mpc._loop.checked = np.zeros(0) if checked is None else checked
    if mpc._bias is not None:
        mpc._bias.take(state["disturbance"])
    if not np.isnan(state["status"]):
        own = mpc.solver.plan_layout
        plan = Plan.of(own, **{name: state[name] for name in own.places})
        mpc._loop.found = recalled(mpc.problem, plan, STATUSES[int(state.number("status"))])
