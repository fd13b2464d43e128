"""Closed loops of the planning kernel beside those of the solver in use.

    python -m tests.benchmarks.planning_loops [--starts N] [--calls N] [NAME ...]

Plants and starts are those of `tests.benchmarks.planning`. Both contenders begin at the plan that
the solver in use finds, and call after call the plant makes one step of the horizon, moved by
disturbances from stored seeds: small ones each call, a large one every `KICK_EVERY` calls. Stored
of each plant: the ratio of costs of the closed loops (median and worst), the largest violation of
hard rows, iterations a call, and the thread's time on the processor a call through Python.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal._transcription import Nodes
from lgcontrol.optimal.kernel._settings import NewtonSettings
from lgcontrol.optimal.kernel._solver import NewtonKKTSolver
from tests.benchmarks.planning import MOST, SEED, TOLERANCE, Bench, plants

RESULTS = Path(__file__).parent / "results" / "planning_loops.json"
NOISE, KICK, KICK_EVERY = 0.003, 0.1, 20


class Loop(NamedTuple):
    """What a closed loop cost, violated and took."""

    cost: float
    violation: float
    iterations: list[int]
    ms: list[float]


class Old:
    """Calls of the solver in use."""

    def __init__(self, bench: Bench) -> None:
        self.solver, self.reference = bench.old, bench.reference

    def begin(self, nodes: Nodes, x0: np.ndarray, plan: Any) -> None:
        self.solver.plan = plan

    def call(self, t: float, setting: Any, x: np.ndarray) -> tuple[np.ndarray, int, float]:
        began = time.thread_time()
        plan = self.solver.step(x, reference=self.reference, t0=t)
        return plan.trajectory.u[0], plan.iterations[-1].number, time.thread_time() - began


class New:
    """Calls of the kernel."""

    def __init__(self, bench: Bench, settings: NewtonSettings | None = None) -> None:
        self.bench, self.solver = bench, NewtonKKTSolver(bench.model, settings, most=MOST)

    def begin(self, nodes: Nodes, x0: np.ndarray, plan: Any) -> None:
        self.solver.solve(nodes, self.bench.setting, x0, tolerance=TOLERANCE, max_iterations=100)

    def call(self, t: float, setting: Any, x: np.ndarray) -> tuple[np.ndarray, int, float]:
        began = time.thread_time()
        plan = self.solver.step(t + self.bench.times, setting, x)
        return plan.u[0], plan.iterations, time.thread_time() - began


def run(bench: Bench, contender: Old | New, k: int, calls: int, plan: Any, first: Nodes) -> Loop:
    """A closed loop from a start."""
    model, problem, system = bench.model, bench.plant.problem, bench.plant.problem.system
    rng, x, cost, worst = np.random.default_rng((SEED, k)), bench.plant.starts[k], 0.0, 0.0
    contender.begin(first, x, plan)
    rows = model.transcription.rows
    weights = rows.weights(bench.setting.p) * problem.dt
    soft, hard = np.isfinite(weights), model.hard_limits
    u, iterations, ms, t = first.u[0], [], [], 0.0
    for number in range(calls):
        setting = bench.old._setting(t + bench.times, bench.reference, None, None)
        if number:
            u, count, seconds = contender.call(t, setting, x)
            iterations.append(count)
            ms.append(1e3 * seconds)
        there = Nodes(t + bench.times, np.repeat(x[None], problem.horizon + 1, axis=0), first.u)
        after, part, _, values = model.advance(0, there, setting, x, u)
        excess = rows.excess(np.repeat(values[None], problem.horizon + 1, axis=0))[1]
        over = excess[soft]
        cost += part + float((weights[soft] * (over + over**2 / 2)).sum())
        worst = max(worst, excess[hard].max(initial=0.0))
        size = KICK if number % KICK_EVERY == KICK_EVERY - 1 else NOISE
        moved = size * rng.normal(size=model.n) * (size == NOISE or rng.random(model.n) < 0.3)
        x = np.asarray(system.retract(after, moved, setting.p[: system.n_parameters]))
        t += problem.dt
    end, _ = model.end(there, setting, x)
    return Loop(cost + end, float(worst), iterations, ms)


def compare(bench: Bench, calls: int, **settings: float) -> dict[str, Any] | None:
    """Both contenders from all starts of a plant whose plan is found."""
    old, new, pairs = Old(bench), New(bench, NewtonSettings(**settings)), []
    for k in range(len(bench.plant.starts)):
        plan = bench.old.solve(
            bench.plant.starts[k], guess=bench.plant.guess, reference=bench.reference,
            tolerance=TOLERANCE, max_iterations=MOST,
        )  # fmt: skip
        if str(plan.status) != "converged":
            continue
        first = Nodes(bench.times, plan.trajectory.x.copy(), plan.trajectory.u.copy())
        pairs.append([run(bench, each, k, calls, plan.plan, first) for each in (old, new)])
    return table(pairs) if pairs else None


def table(pairs: list[Any]) -> dict[str, Any]:
    """Both contenders' loops as counts and ratios."""
    ratio = [b.cost / a.cost if a.cost > 0 else np.nan for a, b in pairs]
    told: dict[str, Any] = {
        "loops": len(pairs), "cost, median": float(np.nanmedian(ratio)),
        "cost, worst": float(np.nanmax(ratio)), "cost, least": float(np.nanmin(ratio)),
    }  # fmt: skip
    for i, name in enumerate(("in use", "kernel")):
        runs = [pair[i] for pair in pairs]
        told[name] = {
            "violation, median": float(np.median([one.violation for one in runs])),
            "violation": float(max(one.violation for one in runs)),
            "iterations": float(np.mean([one.iterations for one in runs])),
            "most": int(np.max([one.iterations for one in runs])),
            "ms": round(float(np.median([one.ms for one in runs])), 4),
            "ms, 99 %": round(float(np.percentile([one.ms for one in runs], 99)), 4),
        }
    return told


def line(name: str, row: dict[str, Any]) -> str:
    """A line for people."""
    text = f"{name:24} {row['loops']:2d} | cost {row['cost, least']:7.3f}"
    text += f" {row['cost, median']:7.3f} {row['cost, worst']:8.3f}"
    for key in ("in use", "kernel"):
        s = row[key]
        text += f" | {key} over {s['violation, median']:.4f} {s['violation']:.4f}, "
        text += f"{s['iterations']:.2f} it (most {s['most']}), {s['ms']:.3f} {s['ms, 99 %']:.3f} ms"
    return text


def main() -> None:
    """Run, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and options.names else {}
    for name, make in plants(options.starts):
        if options.names and name not in options.names:
            continue
        row = compare(Bench(make()), options.calls)
        if row is not None:
            kept[name] = row
            print(line(name, row), flush=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
