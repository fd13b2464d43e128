"""Solutions: put together from what solvers found, and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..systems import resolved_step, step_residuals, unsolved
from ._outcome import Iteration, SolveStatus, Violation, plan_of, read_only
from ._problem import OptimalControlProblem, OptimalSolution
from ._transcription import Nodes, Setting


def solution_at(
    problem: OptimalControlProblem,
    nodes: Nodes,
    setting: Setting,
    *,
    t: np.ndarray,
    status: SolveStatus,
    last: Iteration,
    tell: Callable[[], tuple[str, Sequence[Iteration]]],
    violations: tuple[Violation, ...],
    times: dict[str, float],
    gap: float | None = None,
) -> OptimalSolution:
    """A solution at nodes; what nobody reads of it is not made.

    Parameters
    ----------
    problem : OptimalControlProblem
    nodes : Nodes
    setting : Setting
    t : ndarray, shape (N + 1,)
        Times of the setting.
    status : SolveStatus
    last : Iteration
        Whose cost, residual and gap are the solution's.
    tell : callable
        ``() → message, iterations``.
    violations : tuple of Violation
    times : dict of str to float
    gap : float, optional
        Instead of the last iterate's.

    Returns
    -------
    OptimalSolution
    """

    def make() -> dict[str, Any]:
        group, (message, iterations) = problem.system.state, tell()
        return {
            "message": message,
            "iterations": tuple(iterations),
            "trajectory": plan_of(group, *nodes, problem.system.inputs),
            "reference": plan_of(group, t, setting.x_ref, setting.u_ref),
        }

    return OptimalSolution._later(
        make,
        status=status,
        cost=last.cost,
        kkt=last.kkt,
        gap=last.gap if gap is None else gap,
        violations=violations,
        times=times,
        problem=problem,
        _t=read_only(nodes.t),
        _u=read_only(nodes.u),
    )


def judged(solution: OptimalSolution, setting: Setting) -> OptimalSolution:
    """The solution; failed where it claims something and its steps do not solve their equations.

    Where limits of controls contradict each other it is infeasible and says so.

    Parameters
    ----------
    solution : OptimalSolution
    setting : Setting

    Returns
    -------
    OptimalSolution
    """
    problem = solution.problem
    off = [entry._replace(time=float(solution.t[0])) for entry in setting.box.contradictions]
    if off and solution.status is not SolveStatus.FAILED:
        found = [f"limits contradict each other: {', '.join(map(str, off))}", solution.message]
        text = "; ".join(filter(None, found))
        solution = replace(
            solution, status=SolveStatus.INFEASIBLE, message=text,
            violations=(*solution.violations, *off),
        )  # fmt: skip
    if not solution.success and solution.status is not SolveStatus.ITERATION_LIMIT:
        return solution
    system, method = problem.system, problem.method
    if resolved_step(system, method, problem.substeps) is None:
        return solution
    x, u = solution.x[:-1], solution.u
    at = solution.t[:-1], x, u, setting.p[: system.n_parameters], problem.dt
    text = unsolved(system, method, step_residuals(system, method, problem.substeps, *at))
    return replace(solution, status=SolveStatus.FAILED, message=text) if text else solution
