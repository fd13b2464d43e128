"""Designs that plan with the planning kernel beside the solver in use: criteria and call times.

    python -m tests.benchmarks.planning_designs [--seeds N] [--seconds S] [NAME ...]

Each design runs once with each solver, from the same seeds, in turns. Stored of each: its criteria
with the share of their limit that is used, calls that did not end well, iterations a call, the
mean cost of the plans, and the wall time of calls.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

import lgcontrol.optimal.kernel._planner  # noqa: F401  enters the solver by its name
from lgcontrol.optimal import _problem

RESULTS = Path(__file__).parent / "results" / "planning_designs.json"
DESIGNS = (
    "auv-arm-reach", "auv-helix", "auv-usbl", "car-lane-change", "car-parking", "delta-pick",
    "elastic-ur5", "five-bar-reach", "panda-mpc", "panda-reach", "quadrotor-field",
    "quadrotor-flip", "quadrotor-gnss", "quadrotor-recovery", "satellite-slew", "vessel-docking",
)  # fmt: skip
SOLVERS = {"in use": "interior_point", "kernel": "newton"}


def run(name: str, solver: str, seed: int, seconds: float | None) -> dict[str, Any]:
    """One run of a design."""
    (entry,) = (e for e in entry_points(group="lgcontrol.designs") if e.name == name)
    before, _problem.DEFAULT_SOLVER = _problem.DEFAULT_SOLVER, solver
    try:
        task = entry.load()(seed=seed)
        result = task.run(seed=seed, seconds=seconds)
    finally:
        _problem.DEFAULT_SOLVER = before
    told: dict[str, Any] = {
        "criteria": {v.criterion.name: v.value for v in task.judge(result)},
        "ok": {v.criterion.name: bool(v.passed) for v in task.judge(result)},
        "end": str(result.status),
    }
    for key, log in result.controllers.items():
        info = log.info
        if "iterations" not in info:
            continue
        status = [str(s) for s in info["status"]]
        times, iterations = 1e3 * np.asarray(info["call_time"]), np.asarray(info["iterations"])
        told[key] = {
            "calls": len(status),
            "not ok": {s: status.count(s) for s in sorted(set(status)) if s != "ok"},
            "restarts": int(sum(bool(r) for r in info["restart"])),
            "iterations": float(iterations[1:].mean()) if len(iterations) > 1 else 0.0,
            "most": int(iterations[1:].max(initial=0)),
            "cost": float(np.nanmean(np.asarray(info["cost"], dtype=float))),
            "ms": round(float(np.median(times[1:])), 4) if len(times) > 1 else None,
            "ms, 99 %": round(float(np.percentile(times[1:], 99)), 4) if len(times) > 1 else None,
        }
    return told


def main() -> None:
    """Run, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and options.names else {}
    for name in options.names or DESIGNS:
        for seed in range(options.seeds):
            row = kept.setdefault(name, {}).setdefault(str(seed), {})
            for word, solver in SOLVERS.items():
                row[word] = run(name, solver, seed, options.seconds)
            print(name, seed, flush=True)
            for criterion, value in row["in use"]["criteria"].items():
                other = row["kernel"]["criteria"][criterion]
                marks = [" " if row[w]["ok"][criterion] else "!" for w in SOLVERS]
                print(f"   {criterion:44} {value:11.4g}{marks[0]} {other:11.4g}{marks[1]}")
            for key in row["in use"]:
                if key in ("criteria", "ok", "end"):
                    continue
                for word in SOLVERS:
                    print(f"   {key} {word}: {row[word].get(key)}", flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
