"""Problem A, open loop: the interior point against SQP and IPOPT, in one run.

    python -m tests.benchmarks.solver [--instances 101] [--ipopt 5] [--out FILE.json]

All start from the motion under a geometric controller, whose time is told apart. Costs are those
of the neutral plant, relative to the best that is known. Then the time of an iteration over the
length of the horizon. Peers that are not installed are stated as not run.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.controllers import ThrustVectorPD
from lgcontrol.groups import SO3
from lgcontrol.optimal import (
    InteriorPointSolver,
    NLPSolver,
    OptimalControlProblem,
    Residual,
    SQPSolver,
)
from tests.controllers import problem_a

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE, GOOD = 1e-4, 1.10
REPEATS = 3  # of which the quickest counts: others share the machine


def problem_of(plant, horizon: int = 40) -> OptimalControlProblem:
    """Problem A with the weights of its specification."""

    def residual(t, x, u, p):
        position = x[:3] - problem_a.GOAL[:3]
        return ca.vertcat(position, SO3.log(x[3:7]), SO3.matrix(x[3:7]) @ x[7:10], x[10:])

    term = Residual(residual, plant.wx, terminal=plant.wN)
    return OptimalControlProblem(
        problem_a.quadrotor(), horizon, 0.05, Q=0, R=0.1, terminal=0, residuals=[term],
        reference=problem_a.GOAL,
    )  # fmt: skip


def open_loop(plant, best: list[dict], count: int, with_ipopt: int) -> dict:
    """Every solver from every start, one after the other."""
    problem = problem_of(plant)
    ours, sqp = InteriorPointSolver(problem).prepare(), SQPSolver(problem).prepare()
    peer = NLPSolver(problem, plugin="ipopt").prepare()
    controller = ThrustVectorPD(problem.system, position_frequency=2.5)
    rows: dict[str, list] = {"interior point": [], "SQP": [], "IPOPT": []}
    starts = []
    for number, entry in enumerate(best[-count:]):
        drawn = entry["kind"] == "random attitude"
        neutral = plant.x0_of(plant.attitudes()[entry["instance"]]) if drawn else plant.X0
        x0 = problem_a.from_neutral(neutral)
        began = time.perf_counter()
        guess = sqp.solve(x0, guess=controller, max_iterations=0).trajectory
        starts.append(time.perf_counter() - began)

        def note(name, u, good, iterations, spent, neutral=neutral, entry=entry):
            cost, _ = plant.neutral_cost(neutral, u)
            rows[name].append((good, cost / entry["J"], iterations, 1e3 * spent))

        limits = {"tolerance": TOLERANCE, "max_iterations": 300}
        found = [ours.solve(x0, guess=guess, **limits) for _ in range(REPEATS)]
        quickest = min(entry.times["total"] for entry in found)
        last = found[-1]
        note("interior point", last.u, last.success, last.iterations[-1].number, quickest)
        other = sqp.solve(x0, guess=guess, **limits)
        note("SQP", other.u, other.success, other.iterations[-1].number, other.times["total"])
        if number < with_ipopt:
            other = peer.solve(x0, guess=guess, **limits)
            note("IPOPT", other.u, other.success, other.iterations[-1].number, other.times["qp"])
    result = {"start, median [ms]": 1e3 * float(np.median(starts))}
    for name, entries in rows.items():
        if entries:
            result[name] = summary(entries)
            print(f"{name}: {json.dumps(result[name])}", flush=True)
    for name in ("acados_template", "crocoddyl"):
        if importlib.util.find_spec(name) is None:
            result[name] = "not run: not installed"
    return result


def summary(entries: list[tuple]) -> dict:
    """Numbers of one solver."""
    good, ratio, iterations, spent = map(np.array, zip(*entries, strict=True))
    return {
        "instances": len(entries),
        "converged within 1.10 of the best known": int((good & (ratio <= GOOD)).sum()),
        "worst ratio": float(ratio.max()),
        "median iterations": float(np.median(iterations)),
        "median [ms]": float(np.median(spent)),
        "worst [ms]": float(spent.max()),
    }


def over_horizons(plant, horizons: tuple[int, ...] = (20, 40, 100, 200, 400)) -> dict:
    """Milliseconds of an iteration, the quickest of some, by the number of steps."""
    found = {}
    for horizon in horizons:
        problem = replace(problem_of(plant), horizon=horizon)
        solver = InteriorPointSolver(problem, shooting="rollout").prepare()
        x0 = problem_a.from_neutral(plant.X0)
        guess = solver.solve(x0, max_iterations=0).trajectory
        runs = [solver.solve(x0, guess=guess, max_iterations=k) for k in (2, 12) for _ in range(9)]
        low = min(run.times["total"] for run in runs[:9])
        high = min(run.times["total"] for run in runs[9:])
        taken = len(runs[-1].iterations) - len(runs[0].iterations)
        found[str(horizon)] = 1e3 * (high - low) / taken
    print(f"an iteration [ms] by steps: {json.dumps(found)}", flush=True)
    return found


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=101)
    parser.add_argument("--ipopt", type=int, default=5, help="instances that IPOPT solves")
    default = ROOT / "tests/benchmarks/results/solver.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    shared = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    if not shared.is_dir():
        sys.exit(f"no reference data at {shared}; set LGCONTROL_SHARED to its folder")
    plant = problem_a.load_neutral(shared)
    best = json.loads((shared / "specs" / "best_known.json").read_text())
    result = {
        "open loop": open_loop(plant, best, options.instances, options.ipopt),
        "iteration by steps [ms]": over_horizons(plant),
        "load of the machine at the end": os.getloadavg()[0],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
