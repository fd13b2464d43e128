"""The interior point on many plants from many starts, beside IPOPT.

    python -m tests.benchmarks.planning [--starts N] [--ipopt N] [--seconds S] [NAME ...]
    python -m tests.benchmarks.planning --rules [--starts N] [NAME ...]

Plants are problems A, B and C, the users' tasks, the designs that plan, and the test problems.
Their first start is the task's own; the others are drawn around it with stored seeds. Stored of
each plant: how many solves converge or are said to be infeasible, the median of iterations and of
the thread's time on the processor, and where the costs of converged solves differ. IPOPT runs on
the first `--ipopt` starts of a plant, from the same nodes. With ``--rules`` one setting is changed
at a time: how many more solves converge, by how much iterations change (geometric mean over
plants), and how many plans end at another optimum.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.optimal import InteriorPointSolver, NLPSolver, OptimalControlProblem, Settings
from tests.benchmarks import _solver_problems as problems
from tests.controllers import problem_a
from tests.optimal.test_interior_point import PROBLEMS
from tests.optimal.user_tasks import TASKS

RESULTS = Path(__file__).parent / "results" / "planning.json"
TOLERANCE, MOST, SPREAD, SEED = 1e-6, 500, 0.3, 29
CHEAPER = 1e-3  # relative difference of costs that counts as another optimum
DESIGNS = (
    "auv-arm-reach", "auv-helix", "car-lane-change", "car-parking", "five-bar-reach", "panda-mpc",
    "panda-reach", "quadrotor-field", "quadrotor-gnss", "quadrotor-recovery", "satellite-slew",
    "vessel-docking",
)  # fmt: skip

# What each rule of its own, and numbers that differ from IPOPT's, are worth: without or as IPOPT.
RULES: dict[str, dict[str, float]] = {
    "no fast fall of the barrier": {"fast_step": 2.0},
    "no rollout of steps": {"rollout": 0.0},
    "rollout of all steps": {"rollout": 2.0},
    "barrier from 0.1": {"mu_first": 0.1},
    "barrier to 0.1 of the tolerance": {"mu_last": 0.1},
    "penalty 1e3": {"penalty_first": 1e3},
    "compliance 1e-8": {"compliance": 1e-8},
}


class Plant(NamedTuple):
    """A problem and its starts.

    Attributes
    ----------
    problem : OptimalControlProblem
    starts : ndarray, shape (k, nq)
    guess : object
        As for `InteriorPointSolver.solve`.
    reference : object
        Of the first call, where a design moves it.
    """

    problem: OptimalControlProblem
    starts: np.ndarray
    guess: Any = None
    reference: Any = None


def around(problem: OptimalControlProblem, x0: np.ndarray, count: int) -> np.ndarray:
    """A start and others around it, in error coordinates."""
    rng, system = np.random.default_rng(SEED), problem.system
    z = SPREAD * rng.normal(size=(count, system.n_errors))
    z[0] = 0.0
    x = np.repeat(np.asarray(x0, dtype=float)[None], count, axis=0)
    return np.asarray(system.retract(x, z, problem.nominal_parameters[: system.n_parameters]))


def plants(count: int) -> Iterator[tuple[str, Callable[[], Plant]]]:
    """All of them by name."""

    def attitudes() -> Plant:
        case = problems.quadrotor_flip(problem_a.load_neutral(problems.shared_folder()))
        picked = np.linspace(0, len(case.starts) - 1, min(count, len(case.starts))).astype(int)
        return Plant(case.problem, case.starts[picked], case.guess)

    def of_case(make: Callable[[], problems.Case]) -> Plant:
        case = make()
        return Plant(case.problem, around(case.problem, case.starts[0], count), case.guess)

    def of_user(name: str) -> Plant:
        task = TASKS[name]()
        return Plant(task.problem, around(task.problem, task.x0, count))

    def of_design(name: str) -> Plant:
        (entry,) = (e for e in entry_points(group="lgcontrol.designs") if e.name == name)
        task = entry.load()(seed=0)
        control = task.controller
        assert isinstance(control, MPC)
        system, x0 = control.problem.system, task.x0
        if system.state != task.plant.state:
            x0 = control.problem.system.home
        return Plant(control.problem, around(control.problem, x0, count), None, task.reference)

    def of_test(name: str) -> Plant:
        problem, x0 = PROBLEMS[name]
        return Plant(problem, around(problem, x0, count))

    yield "A", attitudes
    yield "B", lambda: of_case(problems.panda_reach)
    yield "B by accelerations", lambda: of_case(problems.panda_by_accelerations)
    yield "C", lambda: of_case(problems.space_arm)
    yield "C, momentum", lambda: of_case(lambda: problems.space_arm("momentum-bounded"))
    for name in TASKS:
        yield name, lambda name=name: of_user(name)
    for name in DESIGNS:
        yield name, lambda name=name: of_design(name)
    for name in PROBLEMS:
        yield name, lambda name=name: of_test(name)


class Bench:
    """Solvers of one plant, made ready once."""

    def __init__(self, plant: Plant) -> None:
        self.plant, self.ipopt = plant, None
        self.reference = plant.problem.reference if plant.reference is None else plant.reference
        self.solver = InteriorPointSolver(plant.problem).prepare()

    def of_kernel(self, k: int, **settings: float) -> dict[str, Any]:
        """The interior point, with other settings where some are given."""
        solver = self.solver
        if settings:
            own = Settings(**settings)
            solver = InteriorPointSolver(self.plant.problem, settings=own).prepare()
        began = time.thread_time()
        plan = solver.solve(
            self.plant.starts[k], guess=self.plant.guess, reference=self.reference,
            tolerance=TOLERANCE, max_iterations=MOST,
        )  # fmt: skip
        return told(str(plan.status), plan.cost, plan.iterations[-1].number, began)

    def of_ipopt(self, k: int, seconds: float) -> dict[str, Any]:
        """IPOPT on the same transcription."""
        if self.ipopt is None:
            self.ipopt = NLPSolver(self.plant.problem, plugin="ipopt").prepare()
        start = self.solver.solve(
            self.plant.starts[k], guess=self.plant.guess, reference=self.reference, max_iterations=0
        ).trajectory
        began = time.thread_time()
        plan = self.ipopt.solve(
            self.plant.starts[k], guess=start, reference=self.reference, tolerance=TOLERANCE,
            max_iterations=MOST, time_limit=seconds,
        )  # fmt: skip
        return told(str(plan.status), plan.cost, plan.iterations[-1].number, began)


def told(status: str, cost: float, iterations: int, began: float) -> dict[str, Any]:
    """What is kept of a solve."""
    seconds = time.thread_time() - began
    return {"status": status, "cost": cost, "iterations": iterations, "ms": 1e3 * seconds}


def summary(runs: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, medians, and where costs differ from those of another contender."""
    good = [run for run in runs if run["status"] == "converged"]
    pairs = [
        (run["cost"], other["cost"])
        for run, other in zip(runs, others, strict=False)
        if run["status"] == other["status"] == "converged"
    ]
    apart = [(a - b) / max(abs(a), abs(b), 1e-12) for a, b in pairs]
    both = [
        run["iterations"]
        for run, other in zip(runs, others, strict=False)
        if run["status"] == other["status"] == "converged"
    ]
    return {
        "solves": len(runs),
        "converged": len(good),
        "infeasible": sum(run["status"] == "infeasible" for run in runs),
        "iterations": float(np.median(both)) if both else None,
        "ms": round(float(np.median([run["ms"] for run in good])), 3) if good else None,
        "ms an iteration": round(
            sum(run["ms"] for run in runs) / max(1, sum(run["iterations"] for run in runs)), 4
        ),
        "cheaper": sum(a < -CHEAPER for a in apart),
        "dearer": sum(a > CHEAPER for a in apart),
    }


def rules(names: list[str], starts: int) -> None:
    """What each rule is worth, to a file of its own."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {"as it is": {}} | {k: {} for k in RULES}
    for name, make in plants(starts):
        if names and name not in names:
            continue
        bench = Bench(make())
        for rule, changes in ({"as it is": {}} | RULES).items():
            count = range(len(bench.plant.starts))
            found[rule][name] = [bench.of_kernel(k, **changes) for k in count]
    base, told_of = found.pop("as it is"), {}
    for rule, runs in found.items():
        rows = {name: summary(runs[name], base[name]) for name in base}
        counts = {key: sum(row[key] for row in rows.values()) for key in ("cheaper", "dearer")}
        counts["solves"] = sum(row["solves"] for row in rows.values())
        counts["converged more"] = sum(row["converged"] for row in rows.values()) - sum(
            run["status"] == "converged" for own in base.values() for run in own
        )
        shares = [means(runs[name], base[name]) for name in base]
        told_of[rule] = counts | {"iterations": float(np.exp(np.nanmean(np.log(shares))))}
        print(f"{rule:36}", told_of[rule], flush=True)
    RESULTS.with_name("planning_rules.json").write_text(json.dumps(told_of, indent=1) + "\n")


def means(runs: list[dict[str, Any]], others: list[dict[str, Any]]) -> float:
    """Ratio of mean iterations where both converge."""
    both = [
        (run["iterations"], other["iterations"])
        for run, other in zip(runs, others, strict=True)
        if run["status"] == other["status"] == "converged"
    ]
    return float(np.divide(*np.sum(both, axis=0))) if both else np.nan


def table_row(name: str, row: dict[str, Any]) -> str:
    """A line for people."""
    text = f"{name:24}"
    for key in ("kernel", "IPOPT"):
        if key in row:
            s = row[key]
            text += (
                f" | {key} {s['converged']:3d}+{s['infeasible']} of {s['solves']:3d}, "
                f"{s['iterations'] or np.nan:5.1f} it, {s['ms'] or np.nan:8.3f} ms, "
                f"{1e3 * s['ms an iteration']:6.1f} µs"
            )
    kernel = row["kernel"]
    return f"{text} | cheaper {kernel['cheaper']}, dearer {kernel['dearer']}"


def main() -> None:
    """Run, print a table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--ipopt", type=int, default=0, help="starts that IPOPT solves")
    parser.add_argument("--seconds", type=float, default=20.0, help="most for a solve of IPOPT")
    parser.add_argument("--rules", action="store_true", help="what each rule is worth")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.rules:
        rules(options.names, options.starts)
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and options.names else {}
    for name, make in plants(options.starts):
        if options.names and name not in options.names:
            continue
        bench = Bench(make())
        count = range(len(bench.plant.starts))
        own = [bench.of_kernel(k) for k in count]
        peers = [bench.of_ipopt(k, options.seconds) for k in count[: options.ipopt]]
        row = {"kernel": summary(own, peers or own)}
        if peers:
            row["IPOPT"] = summary(peers, own)
        kept[name] = row
        print(table_row(name, row), flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
