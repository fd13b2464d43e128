"""Tasks that a user would set, at the default start and options, against IPOPT in the same run.

    python -m tests.benchmarks.user_tasks [--ipopt SECONDS] [NAME ...]

IPOPT (tolerance 1e-6) gets the same transcription and the nodes at which our solver begins. Costs,
residuals and iterations are stored, and whether what is asked holds: where IPOPT succeeds ours ends
with at most 1.001 of its cost and a residual of at most 1e-4. Where it reports another optimum, or
none, only the status is asked to fit the residual. Times are of the processor, functions compiled
for ours and interpreted for IPOPT: they are no comparison. The robots' tasks have a stage that is
too large for IPOPT's exact derivatives in reasonable time; it is not run there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lgcontrol.optimal import InteriorPointSolver, NLPSolver, OptimalSolution
from tests.benchmarks import _solver_problems as problems
from tests.optimal.user_tasks import TASKS, UserTask

RESULTS = Path(__file__).parent / "results" / "user_tasks.json"
DEARER, RESIDUAL, CONVERGED = 1.001, 1e-4, 1e-6


def main() -> None:
    """Run all tasks, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ipopt", type=float, default=60.0, help="most seconds for IPOPT")
    parser.add_argument("names", nargs="*", help="tasks; all of them if left out")
    options = parser.parse_args()
    robots: dict[str, Callable[[], UserTask]] = {
        "Talos": lambda: of_case(problems.talos()),
        "Solo12": lambda: of_case(problems.solo()),
    }
    every = TASKS | robots
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and options.names else {}
    for name in options.names or every:
        kept[name] = measured(every[name](), options.ipopt if name in TASKS else 0.0)
        print(f"{name:24}", kept[name], flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def of_case(case: problems.Case) -> UserTask:
    """A task of a case that is compared elsewhere, from its first start."""
    return UserTask(case.problem, case.starts[0])


def measured(task: UserTask, seconds: float) -> dict[str, Any]:
    """Our solve and IPOPT's."""
    ours = InteriorPointSolver(task.problem)
    if (
        seconds
    ):  # the robots' functions take minutes to compile: they run as users' first solve does
        ours.prepare()
    plan, cpu = timed(lambda: ours.solve(task.x0))
    row = {"ours": told(plan, cpu), "message": plan.message}
    if not seconds:
        row["IPOPT"] = "not run"
        row["as asked"] = fits(plan)
        return row
    start = ours.solve(task.x0, max_iterations=0).trajectory
    ipopt = NLPSolver(task.problem, plugin="ipopt").prepare()
    limits = {"max_iterations": 1000, "time_limit": seconds}
    peer, cpu = timed(lambda: ipopt.solve(task.x0, guess=start, **limits))
    row["IPOPT"] = told(peer, cpu)
    good = fits(plan)
    if not task.is_feasible:
        good &= plan.status == "infeasible"
    elif peer.is_success:
        row["cost, ours / IPOPT"] = round(plan.cost / peer.cost, 6)
        good &= plan.cost <= DEARER * peer.cost and plan.kkt <= RESIDUAL
    row["as asked"] = bool(good)
    return row


def fits(plan: OptimalSolution) -> bool:
    """Whether the status says what the residual does."""
    if plan.status == "infeasible":
        return bool(plan.violations)
    if plan.kkt <= CONVERGED:
        return plan.status == "converged"
    return plan.status == "acceptable" if plan.kkt <= RESIDUAL else plan.status == "stalled"


def timed(call: Callable[[], OptimalSolution]) -> tuple[OptimalSolution, float]:
    """A result and its seconds of the processor."""
    before = time.process_time()
    return call(), time.process_time() - before


def told(plan: OptimalSolution, cpu: float) -> dict[str, Any]:
    """What a table says of a plan; IPOPT counts its own iterations in the message."""
    return {
        "status": str(plan.status),
        "cost": float(np.round(plan.cost, 5)),
        "kkt": float(f"{plan.kkt:.2g}"),
        "iterations": plan.iterations[-1].number,
        "CPU [s]": round(cpu, 3),
    }


if __name__ == "__main__":
    main()
