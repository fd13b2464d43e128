"""Every design as its user waits for it, and from several starts: criteria met, time of calls.

Run with ``python -m tests.benchmarks.designs [NAME …]`` (``--seeds 5`` for fewer starts, none to
time the command alone); results are kept by design. What a user waits for is ``lgcontrol run NAME``
in a process of its own, with its pictures, after one that has filled the cache of compiled code;
``--cold`` measures a run with an empty cache instead.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from time import perf_counter

import numpy as np

RESULTS = Path(__file__).parent / "results" / "designs.json"


def main() -> None:
    """Run all designs, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="number of starts")
    parser.add_argument("names", nargs="*", help="designs; all of them if left out")
    parser.add_argument("--cold", action="store_true", help="one run each with an empty cache")
    options = parser.parse_args()
    found = {e.name: e for e in entry_points(group="lgcontrol.designs") if "lgcontrol" in e.value}
    for name in options.names or sorted(found):
        if options.cold:
            with tempfile.TemporaryDirectory() as folder:
                row = _wait(name, "cold", {"LGCONTROL_CACHE": folder})
        else:
            row = _measure(found[name], options.seeds) if options.seeds else {}
            _wait(name, "warm", {})  # fills the cache
            row |= _wait(name, "warm", {})
        print(f"{name:20}", *(f"{key} {value}  " for key, value in row.items()), flush=True)
        rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        rows[name] = rows.get(name, {}) | row
        RESULTS.write_text(json.dumps(dict(sorted(rows.items())), indent=1) + "\n")


def _wait(name: str, kind: str, environment: dict[str, str]) -> dict[str, object]:
    """Clock and processor, compilers included, of the command, and how busy the machine was."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "lgcontrol", "run", name, "--out", out]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        done = subprocess.run(command, env=os.environ | environment, capture_output=True)
        clock, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        f"{kind}_command_s": round(clock, 1),
        f"{kind}_processor_s": round(spent, 1),
        f"{kind}_status": done.returncode,
        f"{kind}_load": round(os.getloadavg()[0], 1),
    }


def _measure(entry, seeds: int) -> dict[str, object]:
    passed, times, calls = 0, [], []
    for seed in range(seeds):
        started = perf_counter()
        task = entry.load()(seed=seed)
        run = task.run(seed=seed)
        times.append(perf_counter() - started)
        passed += all(verdict.passed for verdict in task.judge(run))
        calls.append(run.control["call_time"][1:])
    ms = 1e3 * np.concatenate(calls)
    return {
        "passed": f"{passed} of {seeds}",
        "first_run_s": round(times[0], 2),
        "median_run_s": round(float(np.median(times[1:] or times)), 2),
        "median_call_ms": round(float(np.median(ms)), 3),
        "call_99_ms": round(float(np.quantile(ms, 0.99)), 3),
    }


if __name__ == "__main__":
    main()
