"""Rounds of the EKF at each measurement, for several kinds of sensors and sizes of first errors.

    python -m tests.benchmarks.filter_rounds [--only NAME …] [--runs 100]

A filter that linearizes well enough has a NEES and a NIS of one. Writes results/filter_rounds.json;
`EKF` takes its default from it.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from tests.benchmarks import _rounds_cases as cases

OUT = Path(__file__).parent / "results" / "filter_rounds.json"
ROUNDS, DEGREES = (1, 2, 3, 5), (5, 10, 20, 40)


def row(case, degrees, rounds, runs):
    """NEES of all runs together, of the median step and of the worst run; NIS by sensor."""
    log, truth = cases.draw(case, degrees, runs, seed=0)
    found = cases.filter_of(case, degrees, iterations=rounds).run(log)
    ends = log.t + case.dt
    nees = found.nees(ends, truth)
    nis = found.consistency(ends, truth).nis
    return {
        "NEES": float(nees.mean()),
        "median": float(np.median(nees)),
        "worst run": float(nees.mean(axis=1).max()),
        "NIS": {name: round(value, 3) for name, value in nis.items()},
    }


def main() -> None:
    """Run and write after each filter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(cases.CASES), choices=list(cases.CASES))
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    result = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in options.only:
        case = cases.case_of(name)
        for rounds in ROUNDS:
            for degrees in DEGREES:
                made = row(case, degrees, rounds, options.runs)
                place = result.setdefault(name, {}).setdefault(f"{degrees}°", {})
                place[f"{rounds} rounds"] = made
                print(f"{name}, {degrees}°, {rounds}: {made}", flush=True)
            OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
