"""Plans of a problem: their layout, and what all solvers' plans have, times, states and inputs."""

from __future__ import annotations

from collections.abc import Mapping

from ._plan import NUMBERS, Plan, PlanLayout
from ._problem import OptimalControlProblem
from ._transcription import Nodes


def plan_layout(
    problem: OptimalControlProblem, iterate: Mapping[str, tuple[int, ...]] | None = None
) -> PlanLayout:
    """Layout of the plans of a problem.

    `iterate` has shapes of the parts that a solver iterates on; states x and inputs u if left out.
    """
    system, N = problem.system, problem.horizon
    names = ", ".join((*system.state.coordinate_names, *system.input_names))
    nodes = {"x": (N + 1, system.state.nq), "u": (N, system.n_inputs)}
    shapes = dict.fromkeys(NUMBERS, ()) | dict(nodes if iterate is None else iterate)
    text = f"{system.name} ({names}), {problem.grid}"
    return PlanLayout(text, tuple(shapes.items()))


def plan_of(problem: OptimalControlProblem, nodes: Nodes) -> Plan:
    """The plan of nodes alone, of solvers that go on from nothing else."""
    return Plan.of(plan_layout(problem), t=nodes.t[0], x=nodes.x, u=nodes.u)


def nodes_of(problem: OptimalControlProblem, plan: Plan) -> Nodes:
    """Times, states and inputs of a plan of this problem, whichever solver it is from."""
    layout, own = plan_layout(problem), dict(plan.layout.shapes)
    if plan.layout.problem != layout.problem or any(own.get(k) != v for k, v in layout.shapes):
        plan.check(layout)
    return Nodes(problem.times(plan.number("t")), plan["x"], plan["u"])
