"""MPCInfo: what an MPC says of its last call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.optimal import OptimalSolution, SolveStatus
from lgcontrol.optimal._internal import ACCEPTABLE_RESIDUAL
from lgcontrol.simulation import CallStatus

from ._base import ControlInfo


@dataclass(frozen=True, repr=False)
class MPCInfo(ControlInfo):
    """What an MPC says of its last call.

    Parameters
    ----------
    status : CallStatus
        ``OK`` when the plan keeps its hard bounds from its second node on. Its first is the state
        that was measured, or predicted over the delay, where no input helps any more: a plant that
        does not do what was planned exceeds them though all calls are ``OK``, and summaries of runs
        say by how much. ``INFEASIBLE`` when bounds on the state cannot all be kept (they are
        exceeded as little as possible) or limits of an input contradict each other; ``UNSOLVED``
        when the input is that of the last plan, when the first plan, the budget or the steps of a
        call ended before they kept hard bounds that perhaps can be kept, when the first plan
        stalled before it was a motion of the system, or when the plan could not follow the system's
        new parameters, whose modes are too fast for its substeps: nothing is built in a call, so
        that it keeps the last ones; ``HELD`` as in `ControlInfo`.
    solve_time : float
        In s.
    message : str
    iterations : int
        Steps taken.
    cost : float
        Of the plan before the last step.
    qp_time : float
        Part of the solve time that the QP solver took, s.
    solve : SolveStatus or None
        What the solver says; None where it was not asked. ``TIME_LIMIT`` where the budget ended it.
    restart : str
        Why the plan begins anew instead of going on from the last one: "first", "failed" (so was
        the last one), "reference", "parameters" or "state" (it jumped); empty otherwise.
    is_feedback : bool
        Whether the input is the feedback of a plan that `MPC.preview` made.
    preview_time : float
        In s, of the preview for the next call, where calls make one.
    """

    iterations: int = 0
    cost: float = np.nan
    qp_time: float = 0.0
    solve: SolveStatus | None = None
    restart: str = ""
    is_feedback: bool = False
    preview_time: float = 0.0

    @classmethod
    def of(cls, solution: OptimalSolution, seconds: float, restart: str = "") -> MPCInfo:
        """What a solution means for the call."""
        violations = solution.violations
        if solution.status is SolveStatus.FAILED:
            status = CallStatus.UNSOLVED
        elif solution.status is SolveStatus.INFEASIBLE:
            status = CallStatus.INFEASIBLE
        elif violations and max(entry.amount for entry in violations) > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # nothing says that they must be
        elif solution.status is SolveStatus.STALLED and solution.defect > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # not dynamically feasible
        else:
            status = CallStatus.OK
        made = object.__new__(cls)  # setting them one by one takes three times as long
        made.__dict__.update(
            status=status,
            solve_time=seconds,
            message="" if status is CallStatus.OK else solution.message,
            iterations=solution.iterations[-1].number,
            cost=float(solution.cost),
            qp_time=solution.times.get("qp", 0.0),
            solve=solution.status,
            restart=restart,
        )
        return made

    @classmethod
    def of_call(cls, status: CallStatus, calls: Any, seconds: float, restart: str) -> MPCInfo:
        """What a call of the kernel means."""
        made = object.__new__(cls)
        made.__dict__.update(
            status=status, solve_time=seconds, message="", qp_time=0.0, restart=restart,
            iterations=calls.struct.iterations, cost=calls.struct.cost, solve=calls.ended,
        )  # fmt: skip
        return made
