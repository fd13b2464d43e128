"""PlanPart: the steps of one system in a plan. A problem is one part, each phase is one."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .._bounds import ALONG
from .._plan import SCALE
from .._problem import OptimalControlProblem
from .._rows import seen_bounds, unit_named
from .._solution import OptimalSolution
from .._transcription import Nodes, Setting
from ..phases._flat_phases import FlatPhases, least_effort
from ..phases._phase_motions import nodes_of
from ..phases._phased_solution import PhasedSolution


class PlanPart(NamedTuple):
    """Steps of one system, of a problem or (by `name`) of a phase.

    Of a phase, `problem` may be no more than the motion between the nodes needs. `prices` (N, n)
    are multipliers of the dynamics. `steps` and `motion` are places in the plan's flat problem;
    `kind` is that of `PhaseShape`. A state of the plan has so many `errors`, with inputs behind
    them.
    """

    name: str
    problem: Any
    nodes: Nodes
    setting: Setting
    prices: np.ndarray
    steps: slice
    motion: slice
    is_after_jump: bool = False
    kind: str = "plain"
    errors: int | None = None

    @property
    def system(self) -> Any:
        """The system that moves."""
        return self.problem.system

    def cost_of(self, off: np.ndarray) -> np.ndarray:
        """What errors of the ends of the steps cost, in tangent coordinates, for each step."""
        E = self.system.error_selection
        own = off if self.prices.shape == off.shape else off @ E.T
        return np.einsum("ki,ki->k", self.prices, own)


def flat_of(found: OptimalSolution | PhasedSolution) -> OptimalSolution:
    """The solution of the one problem that was solved."""
    return found.solution if isinstance(found, PhasedSolution) else found


def as_solved(found: Any) -> Any:
    """A plan with the controls that were solved for: rates, or values at collocation points."""
    if isinstance(found, OptimalSolution) and found.problem.hold != "zero":
        return found._inner or found
    return found


def parts_of(found: OptimalSolution | PhasedSolution, *, is_whole: bool = False) -> list[PlanPart]:
    """Parts of a plan, without phases that vanished; without costs in a tenth of the time."""
    prices, setting = prices_of(flat_of(found)), flat_of(found)._setting
    if isinstance(found, OptimalSolution):
        problem = found.problem
        whole, every = slice(0, problem.horizon), slice(0, problem.system.state.nq)
        own = prices[:, : problem.system.n_errors]
        nodes = Nodes(found.t, found.x, found.u)
        return [PlanPart("", problem, nodes, setting, own, whole, every)]
    flat, whole, parts = found.problem._flat, found.solution, []
    times = found.times
    for i, name in enumerate(found.parts):
        phase, steps = flat.phases[i], slice(*flat.starts[i : i + 2])
        nodes = nodes_of(flat, i, times, whole.x, whole.u, setting.p)
        if len(nodes.t) != phase.steps + 1:  # it vanished
            continue
        problem = (_alone if is_whole else _stretch)(flat, i, np.diff(nodes.t))
        box: Any = problem.input_limits.at(setting.p) if is_whole else None
        none, shape = np.zeros((phase.system.n_errors,) * 2), flat.shapes[i]
        x_ref, u_ref = (np.tile(values, (phase.steps + 1, 1)) for values in flat.points[i])
        own = Setting(x_ref, u_ref, setting.p, none, none, box)
        part = PlanPart(
            name, problem, nodes, own, prices[steps, flat.tangent_of(i)], steps, flat.own[i],
            flat.begins_anew(i), shape.kind, shape.phase.system.n_errors,
        )  # fmt: skip
        parts.append(part)
    return parts


def _alone(flat: FlatPhases, i: int, steps: np.ndarray) -> OptimalControlProblem:
    """The steps of a phase as a problem of its own, without its end: costs and bounds."""
    phase = flat.phases[i]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # on its substeps, which are given
        return OptimalControlProblem(
            phase.system, phase.steps, steps, Q=0.0 if phase.Q is None else phase.Q,
            R=least_effort(phase.system) if phase.R is None else phase.R, terminal=0.0,
            reference=flat.points[i], costs=phase.costs, residuals=phase.residuals,
            bounds=[bound for bound in phase.bounds if bound.at in ALONG],
            parameters=flat.extra, method=flat.method, substeps=1, quadrature=flat.quadrature,
            free="all" if i == 0 and flat.is_open and not flat.is_periodic else (),
            _is_refined=phase._is_refined,
        )  # fmt: skip


def _stretch(flat: FlatPhases, i: int, steps: np.ndarray) -> Any:
    """What of `_alone` the motion between its nodes needs."""
    phase, names = flat.phases[i], flat.problem.parameter_names
    bounds = [one for one in phase.known_bounds if one.at in ALONG]
    return SimpleNamespace(
        system=phase.system, horizon=phase.steps, steps=steps, method=flat.method, substeps=1,
        parameter_names=names, _seen=seen_bounds(phase.system, bounds, names),
        bound_unit=lambda name: unit_named(phase.system, bounds, name),
    )  # fmt: skip


def prices_of(solution: OptimalSolution) -> np.ndarray:
    """Multipliers (N, n) of the dynamics: what an error of a step's end costs."""
    if solution._prices is not None:
        return solution._prices
    plan = solution.plan
    parts = plan.layout.places
    if "lam" not in parts or plan.number("is_elastic") or not plan["kept"][SCALE] > 0:
        return np.zeros((solution.problem.horizon, solution.problem.system.n_errors))
    return plan["lam"] / plan["kept"][SCALE]
