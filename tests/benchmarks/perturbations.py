"""Every design with a plant that its controller does not know: the largest factor that passes.

    python -m tests.benchmarks.perturbations [NAME ...] [--seeds N]

A factor of one is 20 % more, then less, mass and inertia, twice the drag, and a sample of delay
that the controller does not know of, or what the design says. Told line by line; stored by design,
so that it goes on where it was stopped: without names those that have no results are tried. The
start and the disturbances are drawn with seeds 0 to N - 1. What limits is told of seed 0, factors
and their median of all seeds.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from lgcontrol.simulation import robustness

RESULTS = Path(__file__).parent / "results" / "perturbations.json"


def main() -> None:
    """Try all designs, keep what was found of each at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="designs; those without results if left out")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from 0 on (1)")
    options = parser.parse_args()
    found = {e.name: e for e in entry_points(group="lgcontrol.designs") if "lgcontrol" in e.value}
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names or sorted({*found} - {*rows}):
        print(name, flush=True)
        rows[name] = _measure(found[name].load(), options.seeds)
        print(f"  {rows[name]}", flush=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


def _measure(design: Any, seeds: int) -> dict[str, Any]:
    """What a design stands with the first seed, and its factors with all seeds."""
    started = perf_counter()

    def tell(text: str) -> None:
        print(f"  {perf_counter() - started:5.0f} s  {text}", flush=True)

    results = [robustness(design(seed=k), seed=k, progress=tell) for k in range(seeds)]
    first, factors = results[0], [one.factor for one in results]
    row = {"factor": first.factor, "limiting": first.limiting, "runs": first.runs}
    return row if seeds == 1 else {**row, "factors": factors, "median": median(factors)}


if __name__ == "__main__":
    main()
