"""Plans and solutions of a problem: put together from what solvers found, and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen._internal import read_only
from ..systems import Trajectory
from ..systems._internal import resolved_step, step_residuals, unsolved
from ._outcome import Iteration, SolveStatus
from ._plan import NUMBERS, Plan, PlanLayout
from ._problem import OptimalControlProblem
from ._solution import OptimalSolution
from ._transcription import Nodes, Setting


def plan_layout(
    problem: OptimalControlProblem, iterate: Mapping[str, tuple[int, ...]] | None = None
) -> PlanLayout:
    """Layout of the plans of a problem.

    Parameters
    ----------
    problem : OptimalControlProblem
    iterate : mapping, optional
        Shapes of the parts that a solver iterates on; states x and inputs u if left out.

    Returns
    -------
    PlanLayout
    """
    system, N = problem.system, problem.horizon
    names = ", ".join((*system.state.coordinate_names, *system.input_names))
    nodes = {"x": (N + 1, system.state.nq), "u": (N, system.n_inputs)}
    shapes = dict.fromkeys(NUMBERS, ()) | dict(nodes if iterate is None else iterate)
    text = f"{system.name} ({names}), {problem.grid}"
    return PlanLayout(text, tuple(shapes.items()))


def nodes_of(problem: OptimalControlProblem, plan: Plan) -> Nodes:
    """Times, states and inputs of a plan of this problem, whichever solver it is from."""
    layout, own = plan_layout(problem), dict(plan.layout.shapes)
    if plan.layout.problem != layout.problem or any(own.get(k) != v for k, v in layout.shapes):
        plan.check(layout)
    return Nodes(problem.times(plan.number("t")), plan["x"], plan["u"])


def solution_at(
    problem: OptimalControlProblem, nodes: Nodes, setting: Setting, t: np.ndarray, last: Iteration,
    later: Callable[[], dict[str, Any]] | None = None, **known: Any,
) -> OptimalSolution:  # fmt: skip
    """A solution at nodes, with cost, residual and defect of the last iterate.

    `later` makes attributes when somebody reads one, as the trajectories are; `known` are others.
    """

    def make() -> dict[str, Any]:
        own, x, u = map(read_only, nodes)
        when, x_ref, u_ref = map(read_only, (t, setting.x_ref, setting.u_ref))
        group = problem.system.state
        return {
            "trajectory": Trajectory.unchecked(group, own, x, u, problem.system.inputs),
            "reference": Trajectory.unchecked(group, when, x_ref, u_ref),
        } | ({} if later is None else later())

    known.setdefault("defect", last.defect)
    if "plan" not in known:  # of solvers that go on from nothing but nodes
        known["plan"] = Plan.of(plan_layout(problem), t=nodes.t[0], x=nodes.x, u=nodes.u)
    return OptimalSolution._later(
        make, problem=problem, cost=last.cost, kkt=last.kkt, _t=read_only(nodes.t),
        _u=read_only(nodes.u), _setting=setting, **known,
    )  # fmt: skip


def recalled(problem: OptimalControlProblem, plan: Plan, status: SolveStatus) -> OptimalSolution:
    """A solution as far as its plan tells it: the plan is its reference, too."""
    nodes = nodes_of(problem, plan)
    group, inputs = problem.system.state, problem.system.inputs

    def make() -> dict[str, Any]:
        t, x, u = map(read_only, nodes)
        made = Trajectory.unchecked(group, t, x, u, inputs)
        return {"trajectory": made, "reference": made}

    return OptimalSolution._later(
        make, problem=problem, status=status, message="", cost=plan.number("cost"), kkt=np.nan,
        defect=0.0, violations=(), iterations=(), times={}, plan=plan,
        _t=read_only(nodes.t), _u=read_only(nodes.u),
    )  # fmt: skip


def judged(solution: OptimalSolution, setting: Setting) -> OptimalSolution:
    """The solution; failed where it claims something and its steps do not solve their equations.

    If limits of controls contradict each other, it is infeasible and says so.
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
    if not solution.is_success and solution.status is not SolveStatus.ITERATION_LIMIT:
        return solution
    system, method = problem.system, problem.method
    if resolved_step(system, method, problem.substeps) is None:
        return solution
    x, u = solution.x[:-1], solution.u
    at = solution.t[:-1], x, u, setting.p[: system.n_parameters], problem.steps
    text = unsolved(system, method, step_residuals(system, method, problem.substeps, *at))
    return replace(solution, status=SolveStatus.FAILED, message=text) if text else solution
