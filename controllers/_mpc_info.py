"""What an MPC says: of its last call, unasked of limits and slow calls, and for records of runs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.codegen import Value, trace
from lgcontrol.codegen._internal import find_compiler, level_outside, notice
from lgcontrol.groups import LieGroup
from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Residual, SolveStatus
from lgcontrol.optimal._internal import ACCEPTABLE_RESIDUAL, diverged
from lgcontrol.simulation import CallStatus

from ._base import ControlInfo

# Names that a message lists before it counts the others.
MOST_NAMED = 8
# Seconds of a call that is slow, and how many without compiled functions lead to a notice.
SLOW, MOST_SLOW = 1e-3, 20


@dataclass(frozen=True, repr=False)
class MPCInfo(ControlInfo):
    """What an MPC says of its last call.

    Parameters
    ----------
    status : CallStatus
        - ``OK``: the plan keeps its hard bounds from its second node on. Its first node is the
          state that was measured, or predicted over the delay, where no input helps any more. A
          plant that does not do what was planned may exceed bounds though all calls are ``OK``:
          summaries of runs say by how much.
        - ``INFEASIBLE``: bounds on the state cannot all be kept, and are exceeded as little as
          possible; or limits of an input contradict each other.
        - ``UNSOLVED``: nobody vouches for the answer, and the message says why. The iterations or
          the time of the call ended before the plan kept all hard bounds; or the plan has defects.
          Or it diverges, and the input is that of the last plan. Or parameters have made modes too
          fast for the substeps, and the plan has the last ones that it could follow.
        - ``HELD``: as in `ControlInfo`.
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
    defect : float
        Largest defect of the plan, in error coordinates: how far a step ends off the next state. A
        call that takes few iterations leaves some, which the next one closes. A watchdog should not
        trust a plan with a large one, such as 0.1, though it keeps its bounds; NaN where there is
        no plan.
    """

    iterations: int = 0
    cost: float = np.nan
    qp_time: float = 0.0
    solve: SolveStatus | None = None
    restart: str = ""
    is_feedback: bool = False
    preview_time: float = 0.0
    defect: float = np.nan

    @classmethod
    def of(cls, solution: OptimalSolution, seconds: float, restart: str = "") -> MPCInfo:
        """What a solution means for the call."""
        violations, defect = solution.violations, float(solution.iterations[-1].defect)
        told = lost_plan(solution)
        if told:
            status = CallStatus.UNSOLVED
        elif solution.defect > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # not dynamically feasible, however it ended
        elif solution.status is SolveStatus.INFEASIBLE:
            status = CallStatus.INFEASIBLE
        elif violations and max(entry.amount for entry in violations) > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # nothing says that they must be
        else:
            status = CallStatus.OK
        made = object.__new__(cls)  # setting them one by one takes three times as long
        made.__dict__.update(
            status=status, solve_time=seconds,
            message="" if status is CallStatus.OK else told or solution.message,
            iterations=solution.iterations[-1].number, cost=float(solution.cost),
            qp_time=solution.times.get("qp", 0.0), solve=solution.status, restart=restart,
            defect=defect,
        )  # fmt: skip
        return made

    @classmethod
    def of_call(cls, status: CallStatus, calls: Any, seconds: float, restart: str) -> MPCInfo:
        """What a call of the kernel means."""
        made = object.__new__(cls)
        made.__dict__.update(
            status=status, solve_time=seconds, message="", qp_time=0.0, restart=restart,
            iterations=calls.struct.iterations, cost=calls.struct.cost, solve=calls.ended,
            defect=calls.struct.defect,
        )  # fmt: skip
        return made


def warn_of_limits(stated: OptimalControlProblem) -> None:
    """Warn of limits that the system knows and no bound mentions."""
    system, ignored = stated.system, stated.ignored_limits
    if not ignored:
        return
    block = ignored[0].partition(".")[0]
    shown = ", ".join(name.removeprefix(f"{block}.") for name in ignored[:MOST_NAMED])
    several = f" and {len(ignored) - MOST_NAMED} more" if ignored[MOST_NAMED:] else ""
    warnings.warn(
        f"plans of {system.name} know nothing of the limits of {shown}{several}: give "
        "bounds=[Bound('limits', soft=100)], whose numbers are those of "
        f"{system.name}.limits, or Bound({block!r}, lower, upper, soft=100) with your own",
        RuntimeWarning,
        stacklevel=level_outside(),
    )


def notice_slow_call(mpc: Any, seconds: float) -> None:
    """After some slow calls without compiled functions, say once what makes them faster."""
    if seconds < SLOW or mpc._slow >= MOST_SLOW or mpc.solver.is_prepared:
        return
    mpc._slow += 1
    if mpc._slow < MOST_SLOW:
        return
    remedy = "mpc.prepare() compiles them, so does simulate before a run"
    if find_compiler() is None:
        remedy = f"install a C compiler, gcc or clang; then {remedy}"
    notice(
        f"slow calls of {mpc.system.name}",
        f"{MOST_SLOW} calls of an MPC of {mpc.system.name} took more than {1e3 * SLOW:g} ms, "
        f"the last {1e3 * seconds:.1f} ms: its functions are interpreted: {remedy}",
    )


def errors_of_residuals(
    stated: OptimalControlProblem, times: np.ndarray, x: np.ndarray, p: np.ndarray
) -> dict[str, tuple[np.ndarray, LieGroup]]:
    """Residuals that say the group of their error, at states (k, nq) with parameters (k, n)."""
    system, found = stated.system, {}
    shapes = {"t": (), "x": (system.state.nq,), "u": (system.n_inputs,), "p": p.shape[1:]}
    for residual in stated.residuals:
        group = residual.group
        if group is None:
            continue

        def build(t: Value, x: Value, u: Value, p: Value, residual: Residual = residual) -> Value:
            return residual.expression(system, t, x, u, p)

        error = trace("task_error", build, shapes, {"error": (group.dim,)}, symbol=system.symbol)
        found[residual.name] = (error(times, x, system.nominal_input, p), group)
    return found


def lost_plan(found: OptimalSolution) -> str:
    """What there is to say of a plan that leads nowhere, behind which the next one begins anew."""
    tried = found.iterations  # of a saved plan none are known
    defect = float(tried[-1].defect if tried else found.defect)
    told = diverged(defect, found.x[0], found.reference.x[0])
    if told or found.status is not SolveStatus.FAILED:
        return told
    return found.message or "the plan leads nowhere"
