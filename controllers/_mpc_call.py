"""A call of an MPC by its parts in Python, for what the kernel has no rules for; and previews."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.groups import check_element
from lgcontrol.optimal._internal import CROWDED
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import ReferenceLike
from lgcontrol.systems._internal import on_constraints

from ._base import clock_time
from ._mpc_info import MPCInfo, lost_plan, notice_slow_call
from ._mpc_kernel import begun, keep_to_known, keep_up, whole_state
from ._mpc_loop import Loop, PlanState, Preview


def planned_call(
    mpc: Any, t: float, x: np.ndarray, reference: ReferenceLike | None, began: float
) -> np.ndarray:
    """Controls of a call that began at this reading of the clock, from a measured state."""
    loop, parts = begun(mpc, mpc._loop.at(t, mpc._seconds), t, reference), mpc._parts
    preview, loop = loop.preview, loop._replace(preview=None)
    loop, outrun = keep_to_known(mpc, loop, t, x)
    loop = parts.observed(loop, t, x, mpc._own)
    start, loop, state = parts.at_effect(loop, t, x, mpc._own)
    if state is not x and not np.isfinite(state).all():
        mpc._loop = loop
        text = f"the state predicted for t = {start:g} s is not finite"
        return held_from(mpc, start, t, reference, text)
    loop = loop._replace(seen=(t, x))
    if parts.delay.is_full(loop.sent, start):
        mpc._loop = loop
        return mpc._hold(t, reference, CROWDED)
    state = whole_state(mpc, loop, state, start, reference)
    if preview is not None and not outrun and preview.fits(t, reference, mpc._p):
        u = preview.answer(mpc.problem, state)
        spent = time.perf_counter() - began
        mpc.info = replace(preview.info, is_feedback=True, solve_time=spent)
    else:
        budget = mpc.real_time.budget
        loop, mpc.info = _planned(mpc, loop, state, start, reference, began, budget)
        assert loop.plan.found is not None
        u = loop.plan.found.u[0].take(mpc.problem.input_limits.controls)
    if outrun:
        text = "; ".join(filter(None, [outrun, mpc.info.message]))
        mpc.info = replace(mpc.info, status=CallStatus.UNSOLVED, message=text)
    parts = mpc._parts
    u = mpc._stated.input_limits.kept(parts.rates.inputs(state, u), mpc._p)
    mpc._loop = loop._replace(sent=parts.delay.send(loop.sent, start, u))
    if mpc.real_time.split:
        mpc.preview(t + mpc.dt, reference)
    notice_slow_call(mpc, time.perf_counter() - began)
    return u


def plan_before(mpc: Any, t: float, x: ArrayLike, goal: ReferenceLike | None) -> None:
    """Plan from a state to convergence before a loop; nothing if it is none of the system."""
    with np.errstate(all="ignore"):
        try:
            state = check_element("x", x, mpc.system.state)
            state = on_constraints(mpc.system, "x", state, mpc._own, warn=False)
        except ValueError:  # the first call will say so
            return
        loop = begun(mpc, mpc._loop, t, goal)
        start, loop, state = mpc._parts.at_effect(loop, t, state, mpc._own)
        if not np.isfinite(state).all():
            return
        began = time.perf_counter()
        state = whole_state(mpc, loop, state, start, goal)
        loop = loop._replace(plan=PlanState())
        mpc._loop, mpc.info = _planned(mpc, loop, state, start, goal, began)


def make_preview(mpc: Any, t: float, reference: ReferenceLike | None) -> None:
    """Plan from the state that is expected at a call; see `MPC.preview`."""
    goal, loop = mpc.reference if reference is None else reference, mpc._loop
    if loop.seen is None or loop.plan.found is None:
        raise RuntimeError("there is nothing to go on from: call the controller first")
    if not mpc.solver.has_feedback:
        raise RuntimeError(
            f"{type(mpc.solver).__name__} has no feedback: take solver='interior_point'"
        )
    t, began = clock_time(t), time.perf_counter()
    with np.errstate(all="ignore"):
        mpc._p = mpc._values.at(t)
        seen, x = loop.seen
        if not mpc._follows(seen, t):  # nothing says where the state will be then
            return
        start = t + mpc.delay
        state = mpc._parts.predicted(loop, seen, x, start, mpc._own)
        if not np.isfinite(state).all():
            return
        state = whole_state(mpc, loop, state, start, goal)
        loop, info = _planned(mpc, loop, state, start, goal, began)
        found = loop.plan.found
        assert found is not None
        if lost_plan(found):
            mpc._loop = loop
            return
        K = mpc.solver.feedback(found.plan)
    preview = Preview(t, start, state, found, K, goal, mpc._p.copy(), info)
    mpc._loop = loop._replace(preview=preview)
    mpc.info = replace(mpc.info, preview_time=time.perf_counter() - began)


def held_from(
    mpc: Any, start: float, t: float, reference: ReferenceLike | None, message: str
) -> np.ndarray:
    """Controls to go on with when there is no answer, which act from a time on."""
    u = mpc._hold(t, reference, message)
    mpc._loop = mpc._loop._replace(sent=mpc._parts.delay.send(mpc._loop.sent, start, u))
    return u


def _planned(
    mpc: Any, loop: Loop, x: np.ndarray, start: float, reference: ReferenceLike | None,
    began: float, budget: float = np.inf,
) -> tuple[Loop, MPCInfo]:  # fmt: skip
    """The next plan; see `LoopParts.planned`."""
    if loop.plan.found is None:  # nobody prepared this loop
        loop = keep_up(mpc, loop, x, start, reference)
    return mpc._parts.planned(loop, x, start, reference, mpc._p, began, budget)
