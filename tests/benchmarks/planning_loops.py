"""Closed loops of real-time steps under disturbances.

    python -m tests.benchmarks.planning_loops [--starts N] [--calls N] [NAME ...]

Plants and starts are those of `tests.benchmarks.planning`. A loop begins at the plan of a solve,
and call after call the plant makes one step of the horizon, moved by disturbances from stored
seeds: small ones each call, a large one every `KICK_EVERY` calls. Stored of each plant: costs of
the closed loops, the largest violation of hard rows, iterations a call, and the thread's time on
the processor a call through Python. A loop whose plant diverges costs infinity.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal._transcription import Nodes
from tests.benchmarks.planning import MOST, SEED, TOLERANCE, Bench, plants

RESULTS = Path(__file__).parent / "results" / "planning_loops.json"
NOISE, KICK, KICK_EVERY = 0.003, 0.1, 20


class Loop(NamedTuple):
    """What a closed loop cost, violated and took."""

    cost: float
    violation: float
    iterations: list[int]
    ms: list[float]


def run(bench: Bench, k: int, calls: int, plan: Any) -> Loop:
    """A closed loop from a start."""
    solver, problem, system = bench.solver, bench.plant.problem, bench.plant.problem.system
    rng, x, cost, worst = np.random.default_rng((SEED, k)), bench.plant.starts[k], 0.0, 0.0
    model, times, first = solver.model, problem.times(), plan.u
    rows = model.transcription.rows
    weights = rows.weights(problem.nominal_parameters) * problem.dt
    soft, hard = np.isfinite(weights), np.isinf(weights)
    u, iterations, ms, t, last = first[0], [], [], 0.0, plan.plan
    for number in range(calls):
        if number:
            began = time.thread_time()
            found = solver.step(x, plan=last, reference=bench.reference, t0=t)
            ms.append(1e3 * (time.thread_time() - began))
            u, last = found.u[0], found.plan
            iterations.append(found.iterations[-1].number)
        setting = solver._given.setting(t + times, bench.reference, None)
        there = Nodes(t + times, np.repeat(x[None], problem.horizon + 1, axis=0), first)
        after, part, _, values = model.advance(0, there, setting, x, u)
        excess = rows.excess(np.repeat(values[None], problem.horizon + 1, axis=0))[1]
        over = excess[soft]
        cost += part + float((weights[soft] * (over + over**2 / 2)).sum())
        worst = max(worst, excess[hard].max(initial=0.0))
        size = KICK if number % KICK_EVERY == KICK_EVERY - 1 else NOISE
        moved = size * rng.normal(size=model.n) * (size == NOISE or rng.random(model.n) < 0.3)
        x = np.asarray(system.retract(after, moved, setting.p[: system.n_parameters]))
        t += problem.dt
        if not (np.isfinite(x).all() and np.isfinite(cost)):  # the plant diverged
            return Loop(np.inf, np.inf, iterations, ms)
    end, _ = model.end(there, setting, x)
    return Loop(cost + end, float(worst), iterations, ms)


def row_of(bench: Bench, calls: int) -> dict[str, Any] | None:
    """Loops from all starts of a plant whose plan is found."""
    runs = []
    for k, x0 in enumerate(bench.plant.starts):
        plan = bench.solver.solve(
            x0, guess=bench.plant.guess, reference=bench.reference, tolerance=TOLERANCE,
            max_iterations=MOST,
        )  # fmt: skip
        if plan.status == "converged":
            runs.append(run(bench, k, calls, plan))
    if not runs:
        return None
    iterations = np.concatenate([one.iterations for one in runs])
    ms = np.concatenate([one.ms for one in runs])
    return {
        "loops": len(runs), "cost": [one.cost for one in runs],
        "violation, median": float(np.median([one.violation for one in runs])),
        "violation": float(max(one.violation for one in runs)),
        "iterations": float(np.mean(iterations)), "most": int(np.max(iterations)),
        "ms": round(float(np.median(ms)), 4), "ms, 99 %": round(float(np.percentile(ms, 99)), 4),
    }  # fmt: skip


def line(name: str, s: dict[str, Any]) -> str:
    """A line for people."""
    text = f"{name:24} {s['loops']:2d} | cost {np.median(s['cost']):9.4g}"
    text += f" | over {s['violation, median']:.4f} {s['violation']:.4f}, "
    return (
        f"{text}{s['iterations']:.2f} it (most {s['most']}), {s['ms']:.3f} {s['ms, 99 %']:.3f} ms"
    )


def main() -> None:
    """Run, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out.exists() and options.names else {}
    for name, make in plants(options.starts):
        if options.names and name not in options.names:
            continue
        row = row_of(Bench(make()), options.calls)
        if row is not None:
            kept[name] = row
            print(line(name, row), flush=True)
    options.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
