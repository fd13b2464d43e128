"""Tasks from the literature at default options, beside IPOPT and fatrop on the same transcription.

    python -m tests.benchmarks.literature [--scales 1 1e3 1e-3] [NAME ...]

All get the same problem, from the starts that are their defaults. Status, cost, iterations and
seconds of the processor are stored: of the solve alone, with what is set up for it. A task counts
as solved if the status is a success and the cost is at most 1e-4 above the best that any of the
three found. Each solve runs in a process of its own, which ends after `SECONDS`: fatrop has no
limit of time. With `--scales` all numbers of the tasks are multiplied by a factor, without fatrop.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lgcontrol.optimal import NLPSolver, PhasedProblem
from lgcontrol.optimal.phases._phases import MIDDLE
from tests.optimal.literature import TASKS, in_units
from tests.optimal.literature._task import Statement

RESULTS = Path(__file__).parent / "results" / "literature.json"
SOLVERS = ("ours", "ipopt", "fatrop")
SECONDS, MOST_ITERATIONS = 15.0, 1000
NOT_RUN = {"status": "not run", "success": False, "cost": None, "iterations": None, "CPU [s]": None}
# Share by which a cost may exceed the best one; what counts as zero.
DEARER, SMALL = 1e-4, 1e-3


def main() -> None:
    """Run the tasks, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", nargs="*", type=float, default=[1.0], help="factors of units")
    parser.add_argument("names", nargs="*", help="tasks; all of them if left out")
    options = parser.parse_args()
    for scale in options.scales:
        rows = {name: row for name, row in stored().get(f"{scale:g}", {}).items() if name in TASKS}
        for name in options.names or TASKS:
            row = measured(name, scale)
            if row is None:
                continue
            rows[name] = row
            print(told(name, row), flush=True)
        print(f"units times {scale:g}:", summary(rows), flush=True)
        RESULTS.write_text(json.dumps(stored() | {f"{scale:g}": rows}, indent=1) + "\n")


def stored() -> dict[str, Any]:
    """Results of earlier runs, by the factor of the units."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def measured(name: str, scale: float) -> dict[str, Any] | None:
    """What each solver makes of a task; None where its units cannot be changed."""
    if scale != 1 and in_units(TASKS[name].state(), scale) is None:
        return None
    row: dict[str, Any] = {"known": TASKS[name].optimum}
    for solver in SOLVERS:
        is_run = scale == 1 or solver != "fatrop"
        row[solver] = apart(_solve, (name, scale, solver), SECONDS) if is_run else NOT_RUN
    costs = [row[s]["cost"] for s in SOLVERS if row[s]["success"]]
    best = min(costs) if costs else None
    for solver in SOLVERS:
        of = row[solver]
        solved = of["success"] and of["cost"] - best <= DEARER * max(abs(best), SMALL)
        row[solver] = of | {"solved": bool(solved)}
    return row


def apart(run: Callable[..., None], arguments: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    """What a run sends by its pipe from a process of its own, which ends after so long."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(theirs, *arguments))
    process.start()
    theirs.close()  # the end of a process, by its limit of the processor's time, is one of the pipe
    try:
        found = mine.recv() if mine.poll(seconds) else {"status": "time limit"}
    except EOFError:
        process.join()
        is_limit = process.exitcode == -signal.SIGXCPU
        found = {"status": "time limit" if is_limit else f"ended with {process.exitcode}"}
    process.kill()
    process.join()
    return {"success": False, "cost": None, "iterations": None, "CPU [s]": None} | found


def _solve(pipe: Any, name: str, scale: float, solver: str) -> None:
    task = TASKS[name]
    statement = task.state()
    if scale != 1:
        statement = in_units(statement, scale)
    assert statement is not None
    plan, found = solved(statement, solver)
    if plan is not None:
        found |= {"cost": plan.cost / scale, "value": float(task.value(plan) / scale)}
    pipe.send(found)


def solved(statement: Statement, solver: str) -> tuple[Any, dict[str, Any]]:
    """A plan, or None of a solver that raises, and what the tables say of it."""
    warnings.simplefilter("ignore")
    chosen = None if solver == "ours" else NLPSolver(plugin=solver)
    more: dict[str, Any] = {} if solver == "ours" else {"max_iterations": MOST_ITERATIONS}
    if solver != "ours" and isinstance(statement.problem, PhasedProblem):
        # their own search: ours tries other durations where one leads nowhere
        more["durations"] = statement.problem._longer(MIDDLE)
    before = time.process_time()
    try:
        plan = statement.problem.solve(statement.x0, solver=chosen, **more)
    except Exception as error:  # of whatever a peer's library raises
        return None, {"status": type(error).__name__, "message": str(error)}
    inner = getattr(plan, "solution", plan)  # of phases it is that of their one problem
    return plan, {
        "status": str(plan.status), "success": bool(plan.is_success), "cost": float(plan.cost),
        "iterations": inner.iterations[-1].number if inner.iterations else 0,
        "CPU [s]": round(time.process_time() - before, 3),
    }  # fmt: skip


def told(name: str, row: dict[str, Any]) -> str:
    """A line of the table."""
    parts = [f"{name:26} {row['known']:12.6g}"]
    for solver in SOLVERS:
        of = row[solver]
        value = of.get("value")
        shown = "" if value is None else f"{value:.7g}"
        mark = "+" if of["solved"] else " "
        parts.append(f"{mark}{of['status'][:11]:11} {shown:>11} {of['iterations'] or 0:5d}")
    return " | ".join(parts)


def summary(rows: dict[str, Any]) -> str:
    """How many each solver solved, of those that any did."""
    any_ = [row for row in rows.values() if any(row[s]["solved"] for s in SOLVERS)]
    both = [r for r in any_ if r["ours"]["solved"] and r["ipopt"]["solved"]]
    ratio = [r["ours"]["iterations"] / max(1, r["ipopt"]["iterations"]) for r in both]
    shares = ", ".join(f"{s} {sum(r[s]['solved'] for r in any_)}" for s in SOLVERS)
    ended = ", ".join(f"{s} {sum(r[s]['success'] for r in any_)}" for s in SOLVERS)
    false = [
        name for name, r in rows.items()
        if r["ours"]["status"] == "infeasible" and any(r[s]["success"] for s in SOLVERS)
    ]  # fmt: skip
    middle = f"{np.median(ratio):.2f}" if ratio else "none"
    return (
        f"{len(rows)} tasks, {len(any_)} solved by any; solved: {shares}; ended with success: "
        f"{ended}; median of our iterations by IPOPT's {middle}; called infeasible though "
        f"another solver has a plan: {', '.join(false) or 'none'}"
    )


if __name__ == "__main__":
    main()
