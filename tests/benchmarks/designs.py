"""Every design from several starts: criteria met, wall time of a run, time of a controller's call.

Run with ``python -m tests.benchmarks.designs [NAME …]`` (``--seeds 5`` for fewer starts); results
are kept by design. The first run includes what is made once, from the cache of compiled code where
it has been there before; ``--cold`` measures one with an empty cache instead.
"""

from __future__ import annotations

import argparse
import json
import os
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
                os.environ["LGCONTROL_CACHE"] = folder
                row: dict[str, object] = {"cold_run_s": _measure(found[name], 1)["first_run_s"]}
        else:
            row = _measure(found[name], options.seeds)
        rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        rows[name] = rows.get(name, {}) | row
        RESULTS.write_text(json.dumps(dict(sorted(rows.items())), indent=1) + "\n")


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
    row = {
        "passed": f"{passed} of {seeds}",
        "first_run_s": round(times[0], 2),
        "median_run_s": round(float(np.median(times[1:] or times)), 2),
        "median_call_ms": round(float(np.median(ms)), 3),
        "call_99_ms": round(float(np.quantile(ms, 0.99)), 3),
    }
    print(f"{entry.name:20}", *(f"{key} {value}  " for key, value in row.items()), flush=True)
    return row


if __name__ == "__main__":
    main()
