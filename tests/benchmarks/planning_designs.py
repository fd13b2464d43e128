"""Designs that plan: criteria, calls that did not end well, iterations and times of calls.

    python -m tests.benchmarks.planning_designs [--seeds N] [--seconds S] [NAME ...]

Stored of each design and seed: its criteria, the statuses of calls, iterations a call, the mean
cost of the plans, and the wall time of calls.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "planning_designs.json"
DESIGNS = (
    "auv-arm-reach", "auv-helix", "auv-usbl", "car-lane-change", "car-parking", "delta-pick",
    "elastic-ur5", "five-bar-reach", "panda-mpc", "panda-reach", "quadrotor-field",
    "quadrotor-flip", "quadrotor-gnss", "quadrotor-recovery", "satellite-slew", "vessel-docking",
)  # fmt: skip


def run(name: str, seed: int, seconds: float | None) -> dict[str, Any]:
    """One run of a design."""
    (entry,) = (e for e in entry_points(group="lgcontrol.designs") if e.name == name)
    task = entry.load()(seed=seed)
    result = task.run(seed=seed, seconds=seconds)
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
            row = run(name, seed, options.seconds)
            kept.setdefault(name, {})[str(seed)] = row
            print(name, seed, flush=True)
            for criterion, value in row["criteria"].items():
                print(f"   {criterion:44} {value:11.4g}{' ' if row['ok'][criterion] else '!'}")
            for key, value in row.items():
                if key not in ("criteria", "ok", "end"):
                    print(f"   {key}: {value}", flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
