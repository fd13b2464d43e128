"""KernelCalls: whole calls of an MPC in the planning kernel, by the same rules as in Python."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np

from lgcontrol.optimal import SolveStatus
from lgcontrol.optimal._internal import status_of
from lgcontrol.simulation import CallStatus
from lgcontrol.simulation._internal import KernelLaw
from lgcontrol.systems import ReferenceLike

from ._mpc_info import MPCInfo
from ._mpc_loop import Loop
from ._mpc_plan import PlanState, WarmStarts, is_same
from ._steady_disturbance import DisturbanceEstimator

ODD = 4  # of a state that is off its group, to be looked at in Python
# What calls of the kernel are worth.
ANSWERS = CallStatus.OK, CallStatus.INFEASIBLE, CallStatus.UNSOLVED, CallStatus.HELD


class KernelCalls:
    """Calls of one loop, whose state is in the memory of the kernel while it `is_ahead`.

    Attributes
    ----------
    calls : KernelLoop or None
    is_ahead : bool
        Whether calls of the kernel came after the last `Loop` in Python.
    due : str
        Why the next plan is to begin anew.
    lock : RLock
        Held by whoever calls: the kernel works without Python's lock.
    """

    def __init__(self) -> None:
        self.calls: Any = None
        self.is_ahead, self.due, self.lock = False, "", RLock()

    def __reduce__(self) -> tuple[type[KernelCalls], tuple[()]]:
        """Without memory of the kernel and its lock."""
        return KernelCalls, ()

    def take(self, loop: Loop, answer: np.ndarray | None, disturbance: np.ndarray) -> None:
        """Let the kernel go on from what the rules in Python left."""
        found, usual, self.due = loop.plan
        planned = 0 if found is None else -1 if found.status is SolveStatus.FAILED else 1
        self.calls.take(
            planned, loop.clock, usual, bool(self.due), loop.sent, answer,
            None if found is None else found.plan, loop.seen, disturbance,
        )  # fmt: skip

    def call(
        self,
        t: float,
        x: np.ndarray,
        start: float,
        reference: ReferenceLike | None,
        p: np.ndarray,
        began: float,
        budget: float,
    ) -> tuple[int, str]:
        """What a call is worth, and what began anew; the answer is in ``calls.u``."""
        calls = self.calls
        before = calls.reference, calls.p
        calls.give(start, reference, p)
        code = calls.call(t, x, began, budget)
        return code, "" if code == ODD else self.began_anew(before, reference, p)

    def began_anew(
        self, before: tuple[Any, np.ndarray], reference: ReferenceLike | None, p: np.ndarray
    ) -> str:
        """What made the plan of the last call begin anew, by what the call before was given."""
        calls, was_due = self.calls, self.due
        self.is_ahead, restart = True, calls.cause
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
        usual = WarmStarts(
            state.lately, state.largest, calls.p.copy(), calls.reference, state.certified
        )
        plan = PlanState(calls.solution(), usual, self.due if state.is_due else "")
        if estimator is not None:
            loop = loop._replace(disturbance=estimator.estimate(state.disturbance))
        seen = None if state.clock is None else (state.clock, calls.x.copy())
        return loop._replace(plan=plan, sent=tuple(state.sent), clock=state.clock, seen=seen)


def kernel_law(
    mpc: Any,
    calls: Any,
    is_ready: Callable[[], bool],
    say: Callable[[float, np.ndarray, float], MPCInfo],
) -> KernelLaw:
    """Calls of a kernel's loop as a law of loops in C.

    Parameters
    ----------
    mpc : MPC
    calls : KernelLoop
    is_ready, say : callable
        As of `KernelLaw`.
    """
    entry, arguments = calls.entry

    def took(t: float, u: np.ndarray, told: np.ndarray, elapsed: float) -> None:
        calls.called(elapsed)
        info = MPCInfo.of_call(CallStatus.OK, calls, elapsed, "")
        vars(mpc).update(_time=t, _last=u, info=info)

    def columns(told: np.ndarray, elapsed: np.ndarray) -> dict[str, np.ndarray]:
        count = len(told)
        ends = [*zip(told[:, 2].tolist(), told[:, 3].tolist(), strict=True)]
        known = {(e, steps): str(status_of(int(e), bool(steps))) for e, steps in {*ends}}
        return {
            "status": np.full(count, str(CallStatus.OK)), "solve_time": elapsed,
            "message": np.full(count, ""), "qp_time": np.zeros(count),
            "restart": np.full(count, ""), "iterations": told[:, 0], "cost": told[:, 1],
            "solve": np.array([known[end] for end in ends]),
        }  # fmt: skip

    return KernelLaw(
        entry=entry, arguments=arguments, x=calls.x.ctypes.data, t=calls.place("now")[0],
        u=calls.u.ctypes.data, odd=ODD,
        watched=[calls.place("cause"), calls.place("crowded"), calls.due],
        told=[calls.place(name) for name in ("iterations", "cost", "ended", "stepped")],
        is_ready=is_ready, say=say, took=took, columns=columns, keep=calls,
    )  # fmt: skip
