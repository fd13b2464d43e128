"""Every design with a plant that its controller does not know: the largest factor that passes.

    python -m tests.benchmarks.perturbations [NAME ...]

A factor of one is 20 % more, then less, mass and inertia, twice the drag, and a sample of delay
that the controller does not know of, or what the design says. Told line by line; stored by design,
so that it goes on where it was stopped: without names those that have no results are tried.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path
from time import perf_counter

from lgcontrol.simulation import robustness

RESULTS = Path(__file__).parent / "results" / "perturbations.json"


def main() -> None:
    """Try all designs, keep what was found of each at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="designs; those without results if left out")
    options = parser.parse_args()
    found = {e.name: e for e in entry_points(group="lgcontrol.designs") if "lgcontrol" in e.value}
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names or sorted({*found} - {*rows}):
        started = perf_counter()

        def tell(text: str, started: float = started) -> None:
            print(f"  {perf_counter() - started:5.0f} s  {text}", flush=True)

        print(name, flush=True)
        result = robustness(found[name].load()(seed=0), progress=tell)
        rows[name] = {"factor": result.factor, "limiting": result.limiting, "runs": result.runs}
        tell(str(rows[name]))
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
