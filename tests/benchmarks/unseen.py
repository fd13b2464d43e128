"""Tasks that a new user wrote from the pages, at default options, beside IPOPT.

    python -m tests.benchmarks.unseen [--out FILE] [--seconds 30] [NAME ...]

The statements are as first written. No unit, weight or guess was changed after a solve.
IPOPT has the same transcription and start, 1,000 iterations and `--seconds` of the processor. Each
solve, with its set-up, runs in a process of its own. A task that has a plan is as asked if the
status is a success and the cost at most 1e-3 above IPOPT's. One that has none, for the reason
beside it, is as asked if the status is `infeasible`.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

from . import _unseen_aerospace, _unseen_chemical, _unseen_robots, _unseen_vehicles
from ._unseen_task import UNSEEN
from .literature import NOT_RUN, SMALL, apart, solved

RESULTS = Path(__file__).parent / "results" / "unseen.json"
FIELDS = (_unseen_aerospace, _unseen_chemical, _unseen_vehicles, _unseen_robots)
SOLVERS = ("ours", "ipopt")
# Share by which a cost may exceed IPOPT's; times the limit that a solve of ours may take.
DEARER, OURS_MAY_TAKE = 1e-3, 4.0
# Seconds of the wall in which a second of the processor comes, on a machine that others share.
LOADED = 20.0


def main() -> None:
    """Run the tasks, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the processor, for IPOPT")
    parser.add_argument("--without", choices=SOLVERS, help="a solver whose rows stay as stored")
    parser.add_argument("names", nargs="*", help="tasks; all of them if left out")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows = {name: row for name, row in rows.items() if name in UNSEEN}
    for name in options.names or UNSEEN:
        before = dict.fromkeys(SOLVERS, NOT_RUN) | rows.get(name, {})
        row: dict[str, Any] = before | {"impossible": UNSEEN[name].impossible}
        for solver in SOLVERS:
            if solver != options.without:
                seconds = options.seconds * (OURS_MAY_TAKE if solver == "ours" else 1.0)
                row[solver] = apart(_solve, (name, solver, seconds), LOADED * seconds)
        rows[name] = row | {"as asked": is_as_asked(row)}
        print(told(name, rows[name]), flush=True)
        ordered = {name: rows[name] for name in UNSEEN if name in rows}
        options.out.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    print(summary(rows))


def _solve(pipe: Any, name: str, solver: str, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    plan, found = solved(UNSEEN[name].state(), solver)
    if plan is not None:
        found["message"] = plan.message
    pipe.send(found)


def is_as_asked(row: dict[str, Any]) -> bool:
    """Whether our verdict is right, and our optimum as good as IPOPT's."""
    ours, peer = row["ours"], row["ipopt"]
    if row["impossible"]:
        return ours["status"] == "infeasible"
    if not ours["success"] or not peer["success"]:
        return ours["success"]
    return ours["cost"] - peer["cost"] <= DEARER * max(abs(peer["cost"]), SMALL)


def told(name: str, row: dict[str, Any]) -> str:
    """A line of the table."""
    parts = [f"{name:24} {'no plan' if row['impossible'] else '':8}"]
    for solver in SOLVERS:
        of = row[solver]
        cost = "" if of["cost"] is None else f"{of['cost']:.6g}"
        seconds = "" if of["CPU [s]"] is None else f"{of['CPU [s]']:.2f} s"
        parts.append(f"{of['status'][:15]:15} {of['iterations'] or 0:5d} {cost:>12} {seconds:>9}")
    return " | ".join([*parts, "as asked" if row["as asked"] else ""])


def summary(rows: dict[str, Any]) -> str:
    """How many of each kind end as asked."""
    plans = [row for row in rows.values() if not row["impossible"]]
    none = [row for row in rows.values() if row["impossible"]]
    counts = [
        f"{solver} {sum(row[solver]['success'] for row in plans)} of {len(plans)}, "
        f"infeasible {sum(row[solver]['status'] == 'infeasible' for row in none)} of {len(none)}"
        for solver in SOLVERS
    ]
    asked = sum(row["as asked"] for row in rows.values())
    return f"ended with a plan: {'; '.join(counts)}; as asked {asked} of {len(rows)}"


if __name__ == "__main__":
    main()
