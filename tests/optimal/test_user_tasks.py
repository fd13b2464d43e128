"""Tasks that a user would set, at the default start and options, against IPOPT's optima.

Costs are those of `tests/benchmarks/results/user_tasks.json`, where all tasks stand; these are the
ones that take no second.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.optimal import InteriorPointSolver
from tests.optimal.user_tasks import TASKS, turned

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "user_tasks.json"


@pytest.mark.usually(name=("parking",))
@pytest.mark.parametrize(
    "name",
    ["minimum time", "parking", "double pendulum, near"],
)
def test_ends_where_ipopt_does(name):
    task, peer = TASKS[name](), json.loads(RESULTS.read_text())[name]["IPOPT"]
    plan = InteriorPointSolver(task.problem).solve(task.x0)
    assert peer["status"] == "converged" and plan.status == "converged"
    assert plan.cost <= 1.001 * peer["cost"] and plan.kkt <= 1e-6


@pytest.mark.usually(angle=(3.0,))
@pytest.mark.parametrize("angle", [2.0, 2.6, 2.8, 3.0])
def test_rotors_that_take_time_turn_a_quadrotor_over(angle):
    """From here IPOPT finds no optimum, from another start one of 66.5; smaller turns cost less."""
    task = TASKS["input rates"]()
    plan = InteriorPointSolver(task.problem).solve(np.r_[turned(angle), task.x0[13:]])
    assert plan.status == "converged" and plan.kkt <= 1e-6
    assert plan.cost <= 66.5
    thrusts, rates = plan.x[:, 13:], plan.u[:, :4]
    assert thrusts.min() >= -1e-6 and thrusts.max() <= 6 + 1e-6 and np.abs(rates).max() <= 40


def test_the_pendulum_that_ipopt_loses_is_saved():
    task = TASKS["double pendulum, far"]()
    plan = InteriorPointSolver(task.problem).solve(task.x0, tolerance=1e-8)
    assert plan.status == "converged"
    # Unstable: defects of 5e-8, within the default tolerance, grow to 2.5e-6 along a rollout.
    step, x = task.problem.system.step(task.problem.method), task.x0
    for t, u in zip(plan.t, plan.u, strict=False):
        x = step(t, x, u, [], 0.02)
        assert abs(x[0]) <= 0.8 + 1e-6  # the rollout of its inputs keeps the rail


def test_the_pendulum_that_cannot_be_saved_says_why():
    task = TASKS["double pendulum, near"]()
    thrown = task.x0 + [0.79, 0, 0, 5.0, 0, 0]  # 1 cm from the end of the rail, at 5 m/s
    # By rounding of the start it takes 396 to 985 iterations.
    plan = InteriorPointSolver(task.problem).prepare().solve(thrown, max_iterations=2000)
    assert plan.status == "infeasible"
    assert "rail" in plan.message and "force" in plan.message
