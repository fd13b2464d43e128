"""KernelCalls: whole calls of an MPC in the planning kernel, by the same rules as in Python."""

from __future__ import annotations

import time
from dataclasses import replace
from math import ulp
from threading import RLock
from typing import Any

import numpy as np

from lgcontrol.optimal._internal import (
    ODD,
    depends_on_time,
    moves,
    sample_reference,
    status_of,
)
from lgcontrol.simulation import CallStatus
from lgcontrol.simulation._internal import KernelLaw
from lgcontrol.systems import ReferenceLike, System
from lgcontrol.systems._internal import ParameterValues

from ._base import CLOCK_ROUNDING
from ._mpc_info import MPCInfo, lost_plan, notice_slow_call
from ._mpc_loop import Loop, PlanState, estimate_of, is_same
from ._steady_disturbance import DisturbanceEstimator

TOLD = "iterations", "cost", "ended", "stepped", "defect"  # what loops in C keep of each call
# What calls of the kernel are worth.
ANSWERS = CallStatus.OK, CallStatus.INFEASIBLE, CallStatus.UNSOLVED, CallStatus.HELD


class KernelCalls:
    """Calls of one loop, whose state is in the memory of the kernel while that `is_ahead`.

    `due` says why the next plan begins anew. Who calls holds `lock`: the kernel works without
    Python's lock.
    """

    def __init__(self) -> None:
        self.calls: Any = None
        self.is_ahead, self.due, self.lock = False, "", RLock()

    def __reduce__(self) -> tuple[type[KernelCalls], tuple[()]]:
        """Without memory of the kernel and its lock."""
        return KernelCalls, ()

    def began_anew(
        self, before: tuple[Any, np.ndarray], reference: ReferenceLike | None, p: np.ndarray
    ) -> str:
        """What made the plan of the last call begin anew, by what the call before was given."""
        calls, was_due = self.calls, self.due
        self.is_ahead = True
        if not calls.begins_anew:
            return ""
        restart = calls.cause
        if restart == "jump" or calls.is_due:
            cause = "state" if np.array_equal(p, before[1]) else "parameters"
            cause = cause if is_same(reference, before[0]) else "reference"
            self.due = cause if calls.is_due else ""
            restart = "" if restart != "jump" else (was_due or cause)
        return restart

    def caught_up(self, loop: Loop, estimator: DisturbanceEstimator | None) -> Loop:
        """The loop after the calls of the kernel."""
        if not self.is_ahead:
            return loop
        self.is_ahead, calls = False, self.calls
        state = calls.state_now()
        plan = PlanState(calls.solution(), state.usual, self.due if state.is_due else "")
        if estimator is not None:
            loop = loop._replace(disturbance=estimator.estimate(state.disturbance))
        seen = None if state.clock is None else (state.clock, calls.x.copy())
        return loop._replace(plan=plan, sent=tuple(state.sent), clock=state.clock, seen=seen)


def plans_in_c(mpc: Any) -> bool:
    """Whether the kernel has all rules that a call of an MPC needs."""
    return (
        mpc.solver.has_loop
        and not mpc.real_time.split
        and (isinstance(mpc.guess, str) or _is_planned(mpc))
        and mpc._rules.preview is None
    )


def _is_planned(mpc: Any) -> bool:
    """Whether there is a plan to go on from."""
    return mpc._kernel.is_ahead or mpc._rules.plan.found is not None


def called(
    mpc: Any, t: float, x: np.ndarray, reference: ReferenceLike | None, began: float
) -> np.ndarray:
    """Controls of a call of the kernel; see `planned_call` for one in Python."""
    start, kernel = t + mpc.delay, mpc._kernel
    if not kernel.is_ahead:
        mpc._rules = begun(mpc, mpc._rules.at(t, mpc._seconds), t, reference)
        if mpc._rules.plan.found is None:  # nobody prepared this loop
            whole = whole_state(mpc, mpc._rules, x, t, reference)
            mpc._rules = keep_up(mpc, mpc._rules, whole, start, reference)
    calls, outrun = _kernel_loop(mpc), ""
    if not kernel.is_ahead:
        _hand_over(mpc)
    if mpc._p is not calls.p:
        mpc._rules, outrun = keep_to_known(mpc, mpc._rules, t, x)
    u = _told(mpc, t, x, reference, began, outrun)
    assert u is not None  # what comes here is a state
    return u


def _hand_over(mpc: Any) -> None:
    """Let the kernel go on from what the rules in Python left."""
    kernel, loop, parts, work = mpc._kernel, mpc._rules, mpc._parts, mpc.real_time
    found, usual, kernel.due = loop.plan
    planned = 0 if found is None else -1 if lost_plan(found) else 1
    kernel.calls.take(
        planned, loop.clock, usual, bool(kernel.due), loop.sent, mpc._last,
        None if found is None else found.plan, loop.seen, estimate_of(mpc, loop),
    )  # fmt: skip
    first, most = work.first_iterations, work.most_iterations
    kernel.calls.set(work.iterations, first, most, parts.word, work.looks)


def answered(
    mpc: Any, t: float, x: np.ndarray, goal: ReferenceLike | None, values: ParameterValues
) -> np.ndarray | None:
    """Controls of a call that only goes on; None where Python has to look at something.

    A kernel that is ahead has all rules that its calls need: what they follow from is fixed.
    """
    kernel = mpc._kernel
    calls = kernel.calls
    if (
        kernel.is_ahead
        and calls.is_current
        and ulp(t) < CLOCK_ROUNDING * mpc.dt
        and not values.functions
        and values.constant is calls.p is mpc._p
        and mpc.system.project is None
    ):
        return _told(mpc, t, x, goal, time.perf_counter(), "")
    return None


def _kernel_loop(mpc: Any) -> Any:
    """The loop of the kernel, made anew where functions were compiled in between."""
    kernel = mpc._kernel
    if kernel.calls is None or not kernel.calls.is_current:
        mpc._rules = kernel.caught_up(mpc._rules, mpc._parts.estimator)
        known = None if mpc._parts.estimator is None else mpc._parts.estimator.in_kernel
        rates, nominal = mpc._parts.rates.in_kernel(mpc._stated), mpc.system.nominal_input
        kernel.calls = mpc.solver.loop(mpc.delay, mpc.dt, nominal, known, rates)
    return kernel.calls


def _told(
    mpc: Any, t: float, x: np.ndarray, reference: ReferenceLike | None, began: float, outrun: str
) -> np.ndarray | None:
    """Ask the kernel; None where that finds no state."""
    kernel, calls, p = mpc._kernel, mpc._kernel.calls, mpc._p
    before = calls.reference, calls.p
    if not calls.keeps(reference, p):
        calls.give(t + mpc.delay, reference, p)
    code = calls.call(t, x, began, mpc._parts.real_time.budget)
    if code == ODD:
        return None
    restart = kernel.began_anew(before, reference, p)
    _tell(mpc, code, time.perf_counter() - began, restart, outrun)
    return calls.u.copy()


def _tell(mpc: Any, code: int, seconds: float, restart: str, outrun: str) -> None:
    """Say what the last call of the kernel is worth."""
    calls = mpc._kernel.calls
    mpc.__dict__["info"] = MPCInfo.of_call(ANSWERS[code], calls, seconds, restart)
    notice_slow_call(mpc, seconds)
    if code or outrun or calls.contradicts:
        status, text = mpc.info.status, calls.why()
        if calls.contradicts and status is not CallStatus.HELD:
            status = CallStatus.INFEASIBLE
        if outrun:
            status, text = CallStatus.UNSOLVED, "; ".join(filter(None, [outrun, text]))
        mpc.info = replace(mpc.info, status=status, message=text)


def whole_state(
    mpc: Any, loop: Loop, x: np.ndarray, t: float, reference: ReferenceLike | None
) -> np.ndarray:
    """State of the problem that is solved, at a time of effect."""
    parts = mpc._parts
    if parts.rates.is_plain:
        return x
    at = parts.delay.position(loop.sent, t) if loop.sent else mpc._resting_input(t, reference)
    return parts.rates.state(x, at)


def begun(mpc: Any, loop: Loop, t: float, reference: ReferenceLike | None) -> Loop:
    """With what acts at the time of the first call, from where controls move."""
    delay = mpc._parts.delay
    if not delay.ramp or loop.sent:
        return loop
    return loop._replace(sent=delay.begun((), t, mpc._resting_input(t, reference)))


def keep_to_known(mpc: Any, loop: Loop, t: float, x: np.ndarray) -> tuple[Loop, str]:
    """Take parameters that the plan's steps keep up with; why they are not the given ones.

    Nothing is built in a call: where modes became too fast for the substeps there are, the system's
    parameters stay as they were in the last call.
    """
    own, problem = mpc._own, mpc.problem
    if not _is_planned(mpc) or own.tobytes() == loop.checked.tobytes():
        return loop, ""
    at = whole_state(mpc, loop, x, t, None), problem.system.nominal_input, t
    text = problem.too_few_substeps(*at, own)
    if not text or problem.too_few_substeps(*at, loop.checked):  # the state is to blame
        return loop._replace(checked=own.copy()), ""
    mpc._p = np.concatenate([loop.checked, mpc._p[len(loop.checked) :]])
    text += (
        ". The plan keeps the system's last parameters that it can follow: prepare() with the new "
        "ones between calls, or make the MPC with substeps=…"
    )
    return loop, text


def keep_up(
    mpc: Any, loop: Loop, x: np.ndarray, start: float, reference: ReferenceLike | None
) -> Loop:
    """Before a first plan: more substeps where modes at its start or goal are too fast."""
    parts, own = mpc._parts, mpc._own
    times = parts.problem.times(start)
    is_still = not (moves(reference) or depends_on_time(mpc.system))
    if is_still and not parts.rates.in_blocks:
        times = times[:2]  # all are alike
    goal = parts.rates.sampled(sample_reference(mpc.system, reference, times, own), times, None)
    finer = parts.problem.keeping_up(goal.x, goal.u, times, own)
    finer = finer.keeping_up(x, goal.u[0], times[0], own)
    if finer is not parts.problem:
        mpc._parts, mpc._kernel = parts.of(finer), KernelCalls()
        loop = parts.began()._replace(sent=loop.sent, seen=loop.seen, clock=loop.clock)
        if parts.solver.is_prepared:
            mpc.solver.prepare()
    return loop._replace(checked=own.copy())


def kernel_law(mpc: Any, plant: System, reference: ReferenceLike | None) -> KernelLaw | None:
    """Calls of the kernel as a law of loops in C; None where Python has to look at something."""
    goal = mpc.reference if reference is None else reference
    if isinstance(goal, list):  # calls from Python compare its numbers each time
        goal = np.array(goal, dtype=float)
    if (
        mpc.system.project is not None
        or mpc.system.state != plant.state
        or mpc._values.functions
        or mpc.real_time.budget < np.inf
        or not plans_in_c(mpc)
        or not _kernel_loop(mpc).keeps_still(goal)
    ):
        return None
    calls = _kernel_loop(mpc)
    entry, arguments = calls.entry
    begun: Loop | None = None  # what the kernel has begun with

    def has_begun() -> bool:
        """Whether the kernel knows the plan that was made before the run; else it learns of it."""
        nonlocal begun
        rules = mpc._rules
        found, usual, _ = rules.plan
        if rules is not begun:
            if (
                found is None
                or rules.clock is not None
                or not (np.array_equal(mpc._p, usual.p) and is_same(goal, usual.reference))
                or mpc._own.tobytes() != rules.checked.tobytes()
            ):
                return False
            _hand_over(mpc)
            calls.give(mpc.offset + mpc.delay, goal, mpc._p)
            begun = rules
        return True

    def is_ready() -> bool:
        kernel = mpc._kernel
        return (
            kernel.calls is calls
            and (kernel.is_ahead or has_begun())
            and calls.is_current
            and mpc._values.constant is mpc._p
            and calls.keeps(goal, mpc._p)
            and not calls.contradicts
            and plans_in_c(mpc)
        )

    def say(t: float, u: np.ndarray, elapsed: float) -> MPCInfo:
        calls.called(elapsed)
        restart = mpc._kernel.began_anew((calls.reference, calls.p), goal, mpc._p)
        _tell(mpc, calls.struct.status, elapsed, restart, "")
        vars(mpc).update(_time=t, _last=u)
        return mpc.info

    def took(t: float, u: np.ndarray, told: np.ndarray, elapsed: float) -> None:
        calls.called(elapsed)
        mpc._kernel.is_ahead = True
        info = MPCInfo.of_call(CallStatus.OK, calls, elapsed, "")
        vars(mpc).update(_time=t, _last=u, info=info)

    def columns(told: np.ndarray, elapsed: np.ndarray) -> dict[str, np.ndarray]:
        count, ends = len(told), [*map(tuple, told[:, 2:4].tolist())]
        known = {(e, steps): str(status_of(int(e), bool(steps))) for e, steps in {*ends}}
        return {
            "status": np.full(count, str(CallStatus.OK)), "solve_time": elapsed,
            "message": np.full(count, ""), "qp_time": np.zeros(count),
            "restart": np.full(count, ""), "iterations": told[:, 0], "cost": told[:, 1],
            "solve": np.array([known[end] for end in ends]), "defect": told[:, 4],
        }  # fmt: skip

    return KernelLaw(
        entry=entry, arguments=arguments, x=calls.x.ctypes.data, t=calls.place("now")[0],
        u=calls.u.ctypes.data, odd=ODD,
        watched=[calls.place("cause"), calls.place("crowded"), calls.due],
        told=[calls.place(name) for name in TOLD],
        is_ready=is_ready, say=say, took=took, columns=columns, keep=calls,
    )  # fmt: skip
