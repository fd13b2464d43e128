"""Problem A (quadrotor recovery): MPC and geometric control in closed loop, and open-loop costs.

    python -m tests.benchmarks.mpc [--attitudes 100] [--open-loop 101] [--out FILE.json]
                                         [--only step designs closed open]

Times the calls of the designs with predictive control, interpreted and compiled. Runs the neutral
plant, disturbances and judge of the reference data ($LGCONTROL_SHARED) from the benchmark's random
attitudes and as many more, with the quaternion's sign as drawn, flipped, and made canonical at each
measurement. Prints a table, writes it as JSON.
"""

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.codegen import set_compile_policy
from lgcontrol.controllers import MPC, ThrustVectorPD
from lgcontrol.groups import SO3
from lgcontrol.optimal import (
    OptimalControlProblem,
    Residual,
)
from tests.controllers import problem_a

from ._sqp_peer import SQPSolver

ROOT = Path(__file__).resolve().parents[2]

STAGE = {"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]}
END = {"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]}
PARTS = ("step", "designs", "closed", "open")
COLUMNS = ("run", "success", "of", "worst position [m]", "worst angle [rad]", "median call [ms]",
           "99% call [ms]", "first call [ms]", "not ok")  # fmt: skip


def closed_loops(plant, count: int) -> list[dict]:
    """Every controller from every attitude."""
    quad = problem_a.quadrotor()
    weights = {"Q": STAGE, "R": 0.1, "terminal": END}
    controllers = {
        "MPC": (MPC(quad, horizon=40, dt=0.05, **weights), {}),
        "MPC, defaults": (MPC(quad, horizon=40, dt=0.05, Q={"pose": 10, "twist": 1}, R=0.1), {}),
        "geometric, 100 Hz": (ThrustVectorPD(quad, dt=0.01, position_frequency=2.5), {}),
        "geometric, 100 Hz, no rotor limits": (
            ThrustVectorPD(quad, dt=0.01, position_frequency=2.5, saturate=False),
            {"limits": (-np.inf, np.inf)},
        ),
    }
    starts = np.vstack([problem_a.attitudes(count), problem_a.attitudes(count, seed=1)])
    print(f"{'':45s}" + "".join(f"{name:>20s}" for name in COLUMNS[1:]))
    rows = []
    for name, (controller, options) in controllers.items():
        signs = [("canonical", 1, True), ("as drawn", 1, False), ("flipped", -1, False)]
        for label, sign, canon in signs if name == "MPC" else signs[:1]:
            runs = [
                problem_a.closed_loop(
                    plant, controller, plant.x0_of(sign * q), canon=canon, **options
                )
                for q in starts
            ]
            rows.append(summary(f"{name}, {label}", runs))
            print(format_row(rows[-1]), flush=True)
        exact = [problem_a.closed_loop(plant, controller, plant.X0, **options)]
        rows.append(summary(f"{name}, from exactly 180°", exact))
        print(format_row(rows[-1]), flush=True)
    return rows


def summary(name: str, runs: list[dict]) -> dict:
    """One row of the table."""
    calls = np.concatenate([run["times"][1:] for run in runs]) * 1e3
    values = (
        name,
        sum(run["success"] for run in runs),
        len(runs),
        max(run["perr"] for run in runs),
        max(run["aerr"] for run in runs),
        float(np.median(calls)),
        float(np.percentile(calls, 99)),
        float(np.median([run["times"][0] for run in runs]) * 1e3),
        sum(status not in ("ok", "saturated") for run in runs for status in run["statuses"]),
    )
    return dict(zip(COLUMNS, values, strict=True))


def format_row(row: dict) -> str:
    """Values in columns."""
    cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in list(row.values())[1:]]
    return f"{row['run']:45s}" + "".join(f"{cell:>20s}" for cell in cells)


def step_times() -> dict:
    """Median wall time [ms] of a real-time step near the goal, interpreted and compiled."""
    quad = problem_a.quadrotor()
    found = {}
    for name in ("interpreted", "compiled"):
        mpc = MPC(quad, horizon=40, dt=0.05, Q=STAGE, R=0.1, terminal=END)
        if name == "compiled":
            mpc.prepare()
        x, times = quad.state.join(pose=[0, 0, 0, 1, 0, 0, 0]), []
        for k in range(200):
            x = quad.step()(0.0, x, mpc(0.05 * k, x, problem_a.GOAL), [], 0.05)
            times.append(1e3 * mpc.info.solve_time)
        found[name] = float(np.median(times[1:]))
    print("real-time step [ms]:", json.dumps(found), flush=True)
    return found


def design_times() -> dict:
    """Wall times [ms] of the calls in each design's own loop, interpreted and compiled.

    The tenth percentile is what a call takes where nothing else runs on the machine.
    """
    found: dict[str, dict] = {}
    for name in ("quadrotor_recovery", "vessel_docking", "auv_helix", "panda_mpc"):
        module = importlib.import_module(f"lgcontrol.controllers.designs.{name}")
        found[name] = {}
        for kind, policy in (("interpreted", "off"), ("compiled", "auto")):
            set_compile_policy(policy)
            task = module.design()
            log = task.run().control
            calls, qp = 1e3 * log["call_time"], 1e3 * log["qp_time"]
            found[name][kind] = {
                "period": 1e3 * task.controller.dt,
                "first": float(calls[0]),
                "10%": float(np.percentile(calls, 10)),
                "median": float(np.median(calls)),
                "99%": float(np.percentile(calls, 99)),
                "QP, 10%": float(np.percentile(qp, 10)),
            }
            print(f"{name}, {kind} [ms]:", json.dumps(found[name][kind]), flush=True)
    return found


def open_loops(plant, best: list[dict], count: int) -> dict:
    """Costs of the planned inputs on the neutral plant, relative to the best that is known."""
    quad = problem_a.quadrotor()

    def residual(t, x, u, p):
        position = x[:3] - problem_a.GOAL[:3]
        return ca.vertcat(position, SO3.log(x[3:7]), SO3.matrix(x[3:7]) @ x[7:10], x[10:])

    term = Residual(residual, plant.wx, terminal=plant.wN)
    problem = OptimalControlProblem(
        quad, 40, 0.05, Q=0, R=0.1, terminal=0, residuals=[term], reference=problem_a.GOAL
    )
    solver = SQPSolver(problem)
    starts = {"cold": None, "geometric": ThrustVectorPD(quad)}
    found: dict[str, list] = {name: [] for name in starts}
    for entry in best[-count:]:
        attitude = entry["kind"] == "random attitude"
        x0 = plant.x0_of(plant.attitudes()[entry["instance"]]) if attitude else plant.X0
        for name, guess in starts.items():
            began = time.perf_counter()
            solution = solver.solve(
                problem_a.from_neutral(x0), guess=guess, tolerance=1e-4, max_iterations=300
            )
            spent = time.perf_counter() - began
            cost, _ = plant.neutral_cost(x0, solution.u)
            ratio = cost / entry["J"]
            found[name].append((solution.is_success, ratio, len(solution.iterations) - 1, spent))
    result = {}
    for name, rows in found.items():
        success, ratio, iterations, spent = map(np.array, zip(*rows, strict=True))
        result[name] = {
            "instances": len(rows),
            "converged": int(success.sum()),
            "converged within 1.10 of the best known": int((success & (ratio <= 1.1)).sum()),
            "median ratio": float(np.median(ratio)),
            "worst ratio": float(ratio.max()),
            "best ratio": float(ratio.min()),
            "median iterations": float(np.median(iterations)),
            "median time [s]": float(np.median(spent)),
        }
        print(f"open loop, {name} start:", json.dumps(result[name]), flush=True)
    return result


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attitudes", type=int, default=100)
    parser.add_argument("--open-loop", type=int, default=101)
    parser.add_argument("--out", type=Path, default=Path("build/bench_mpc.json"))
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        metavar="PART",
        help=f"some of {', '.join(PARTS)}; the others stay as they are in OUT",
    )
    options = parser.parse_args()
    shared = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    if not shared.is_dir():
        sys.exit(f"no reference data at {shared}; set LGCONTROL_SHARED to its folder")
    plant = problem_a.load_neutral(shared)
    best = json.loads((shared / "specs" / "best_known.json").read_text())
    parts = {
        "step": ("step [ms]", step_times),
        "designs": ("designs [ms]", design_times),
        "closed": ("closed loop", lambda: closed_loops(plant, options.attitudes)),
        "open": ("open loop", lambda: open_loops(plant, best, options.open_loop)),
    }
    result = json.loads(options.out.read_text()) if options.out.is_file() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for part in options.only:
        key, run = parts[part]
        result[key] = run()
        options.out.write_text(json.dumps(result, indent=1))
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
