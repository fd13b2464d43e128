"""Tasks from the literature at default options: they converge to the known optima.

`python -m tests.benchmarks.literature` runs them beside IPOPT and fatrop.
"""

from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.optimal import (
    InteriorPointSolver,
    OptimalControlProblem,
    PhasedProblem,
    SolveStatus,
)
from lgcontrol.optimal.phases import _phases
from tests.optimal.literature import TASKS, in_units

from .test_interior_point import in_numpy

# The fastest ones of different kinds, by default.
QUICK = (
    "car_stops", "bryson_denham", "goddard", "robot_arm", "van_der_pol_bounded", "tank_of_jensen",
    "moon_lander", "batch_reactor", "zermelo", "oscillator_comes_to_rest", "least_snap",
    "hypersensitive",
)  # fmt: skip
# What the solver does not do yet, with what was measured; strict, so that a mend is seen.
UNSOLVED = {
    "slew": "29.42 s, another optimum, instead of 28.63; IPOPT 34.3",
    "ethanol": "iteration limit; IPOPT neither",
    "penicillin": "stalled; IPOPT neither",
    "alp_rider": "iteration limit; IPOPT neither",
}


def _case(name: str):
    marks = []
    if name not in QUICK:
        marks.append(pytest.mark.thorough)
    if name in UNSOLVED:
        marks.append(pytest.mark.xfail(raises=AssertionError, reason=UNSOLVED[name]))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [_case(name) for name in TASKS])
def test_the_known_optimum_is_found(name):
    """At default options, from the default start; with zermelo a short duration leads nowhere."""
    task = TASKS[name]
    problem, x0 = task.state()
    plan = problem.solve(x0)
    assert plan.is_success, plan.message
    assert task.value(plan) == pytest.approx(task.optimum, rel=task.within)


@pytest.mark.parametrize("name", ["block_moves", "least_jerk"])
def test_linear_quadratic_plans_take_two_steps(name):
    """The cost is a state whose rate is u²: a whole step leaves a defect, its rollout none."""
    problem, x0 = TASKS[name].state()
    assert "after 2 iterations" in problem.solve(x0).message


@pytest.mark.parametrize(
    "name", ["least_fuel", "regulator_below_a_parabola", "robot_arm", "triple_integrator"]
)
def test_costs_are_within_the_tolerance_soon_after_it_is_met(name):
    """Rounding spoils the residual of robot_arm: it took 320 iterations more."""
    problem, x0 = TASKS[name].state()
    plan, tight = problem.solve(x0), problem.solve(x0, tolerance=1e-9)
    assert plan.is_success and tight.is_success
    assert plan.cost == pytest.approx(tight.cost, rel=1e-6)
    entries = plan.solution.iterations
    met = next(entry.number for entry in entries if entry.kkt <= 1e-6)
    assert entries[-1].number <= met + 2


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_a_rollout_that_costs_far_more_than_violations_is_left(makes):
    """The first step, rolled out, costs 5289 with multipliers near one; IPOPT takes 19 steps."""
    problem, x0 = TASKS["hypersensitive"].state()
    found = problem.solve(x0, solver=makes(problem.problem))
    assert found.is_success
    assert found.solution.iterations[-1].number < 25
    assert max(entry.cost for entry in found.solution.iterations) < 100.0


@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("name", ["van_der_pol_bounded", "bryson_denham", "rayleigh_mixed"])
def test_units_change_little(name, factor):
    """Times a factor all numbers of a task mean what they did; without sizes the cost is off."""
    task = TASKS[name]
    found = in_units(task.state(), factor)
    assert found is not None
    plan = found.problem.solve(found.x0)
    assert plan.is_success
    assert task.value(plan) / factor == pytest.approx(task.optimum, rel=task.within)
    usual = task.state()
    most = 2 * usual.problem.solve(usual.x0).solution.iterations[-1].number
    assert plan.solution.iterations[-1].number <= most


@pytest.mark.parametrize("name", ["bryson_denham", "catalyst_mixing", "fishing", "goddard"])
def test_units_change_nothing_but_rounding_and_the_end(name):
    """Limits of states, singular arcs: limits are relaxed within tolerances in the units given."""
    plans = []
    for state in (TASKS[name].state(), in_units(TASKS[name].state(), 1024.0)):
        assert state is not None
        plans.append(state.problem.solve(state.x0).solution)
    own, other = (np.array([entry.cost for entry in plan.iterations]) for plan in plans)
    assert plans[0].is_success and plans[1].is_success
    count = min(len(own), len(other))
    assert max(len(own), len(other)) <= 1.2 * count
    np.testing.assert_allclose(other[:count] / 1024, own[:count], rtol=1e-5, atol=1e-8)


def test_a_way_that_no_duration_allows_says_which_were_tried():
    """The message of the first search, and the durations that further ones began at."""
    task = TASKS["oscillator_comes_to_rest"]
    problem, x0 = task.state()
    (phase,) = problem.phases
    short = PhasedProblem(replace(phase, duration=(0.5, 2.0)), time_weight=1)
    plan = short.solve(x0)
    assert plan.status == "infeasible"
    assert "; nor was a plan found from longer durations, 1, 1.414, 2 s in all; " in plan.message
    found = PhasedProblem(replace(phase, duration=(0.5, 8.0)), time_weight=1).solve(x0)
    assert found.is_success
    assert found.message.endswith("this one begins at durations of at least 4 s in all")
    # Who says where the search begins is taken at his word.
    assert "longer durations" not in short.solve(x0, durations=[1.0]).message


@pytest.mark.parametrize("longer", [(0.5, 0.75, 1.0), (1.0,)])
def test_a_plan_of_longer_durations_undoes_a_verdict(longer, monkeypatch):
    """Searches of the problem itself are made to end infeasible, those of longer limits are not.

    The plan of longer durations is the answer: it keeps all bounds. The longest duration is fixed.
    """
    monkeypatch.setattr(_phases, "LONGER", longer)
    problem, x0 = TASKS["oscillator_comes_to_rest"].state()
    solved = OptimalControlProblem._solved

    def lost(self, start, **options):
        found = solved(self, start, **options)
        return replace(found, status=SolveStatus.INFEASIBLE) if self is problem.problem else found

    monkeypatch.setattr(OptimalControlProblem, "_solved", lost)
    found = problem.solve(x0)
    assert found.status == "stalled"
    assert not found.violations
    np.testing.assert_allclose(found.trajectory.x[-1], 0.0, atol=1e-6)
    least = float(found.message.partition("optimal for durations of at least ")[2].split()[0])
    (phase,) = problem.phases
    assert least == pytest.approx(found.trajectory.duration, rel=1e-3)
    at = found.message.partition("v misses its bound by ")[2].partition("at t = ")[2]
    assert float(at.split()[0]) <= phase.limits[1]  # in seconds, not nodes
    narrowed = replace(phase, duration=(least, phase.limits[1]))
    assert problem.with_phases([narrowed]).solve(x0).is_success
