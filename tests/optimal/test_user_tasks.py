"""Tasks that a user would set, at the default start and options, against IPOPT's optima.

Costs are those of `tests/benchmarks/results/user_tasks.json`, where all tasks stand; these are the
ones that take no second.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lgcontrol.optimal import InteriorPointSolver
from tests.optimal.user_tasks import TASKS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "user_tasks.json"


@pytest.mark.usually(name=("parking",))
@pytest.mark.parametrize("name", ["minimum time", "parking", "double pendulum, saved"])
def test_ends_where_ipopt_does(name):
    task, peer = TASKS[name](), json.loads(RESULTS.read_text())[name]["IPOPT"]
    plan = InteriorPointSolver(task.problem).prepare().solve(task.x0)
    assert peer["status"] == "converged" and plan.status == "converged"
    assert plan.cost <= 1.001 * peer["cost"] and plan.kkt <= 1e-6


def test_the_pendulum_that_cannot_be_saved_says_why():
    task = TASKS["double pendulum, lost"]()
    plan = InteriorPointSolver(task.problem).prepare().solve(task.x0)
    assert plan.status == "infeasible"
    assert "rail" in plan.message and "force" in plan.message
