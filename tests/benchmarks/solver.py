"""The interior point on the problems of the reference data, against other solvers in the same run.

    python -m tests.benchmarks.solver [--only PART ...] [--instances 101] [--peers 7]
                                      [--out FILE.json]

Parts: open, starts, closed (problem A), reach (B), arm (C), large, horizons, checks, first, memory.

Contenders take turns, and a ratio is the peer's median over ours. Times are those of the thread's
processor, since others may be at work, and those of the clock beside them. Peers are SQP and IPOPT
(`NLPSolver`, its functions compiled) of this package and Crocoddyl, in an environment that this
program makes in ``build/solver_peers``; a peer that cannot be had is stated as not run. Costs of
problem A are those of the neutral plant, relative to the best that is known.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.controllers.designs.panda_mpc import HAND, POSES, READY
from lgcontrol.groups import SE3, SO3
from lgcontrol.models import panda_tree
from lgcontrol.optimal import (
    InteriorPointSolver,
    NLPSolver,
)
from tests.benchmarks import _solver_problems as problems
from tests.benchmarks._solver_peers import Crocoddyl, compiled_ipopt
from tests.benchmarks.hostile_calls import resident
from tests.benchmarks.mpc import END, STAGE
from tests.controllers import problem_a
from tests.optimal.residuals import kkt_residual
from tests.optimal.user_tasks import TASKS

from ._sqp_peer import SQPSolver

RESULTS = Path(__file__).parent / "results" / "solver.json"
TOLERANCE, GOOD = 1e-4, 1.10
COMPLEMENTARITY = 1e-6  # products of multipliers and distances, ten times the tolerance asked for
LIMITS = {"tolerance": TOLERANCE, "max_iterations": 300}
# Words for guesses, as of `InteriorPointSolver.solve`; the first ones are tried together.
GUESSES, SEVERAL = ("policy", "cheapest", "screw", "regulators", "rest"), 3
GIVEN = "interior point, start given"
ARMS = ("free-flying", "momentum-bounded", "free-floating")
# Users' tasks whose optimum is compared with IPOPT's to the last digits.
CHECKED = (
    "soft twist", "cylinder", "terminal equality", "circle", "input rates", "parking",
    "minimum time", "double pendulum, near",
)  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a call returns, its seconds of this thread's processor and of the clock."""
    wall, cpu = time.perf_counter(), time.thread_time()
    found = call()
    return found, time.thread_time() - cpu, time.perf_counter() - wall


def spread(seconds: list[float]) -> dict[str, float]:
    """Percentiles in ms."""
    low, middle, high = np.percentile(1e3 * np.array(seconds), [10, 50, 99])
    names = ("10 % [ms]", "median [ms]", "99 % [ms]", "worst [ms]")
    return dict(zip(names, map(rounded, (low, middle, high, 1e3 * max(seconds))), strict=True))


def rounded(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


def open_loop(plant: Any, best: list[dict], count: int, peers: int) -> dict:
    """Problem A from rest at 101 attitudes: every solver from every start, in turns.

    Ours makes its start itself, from a word. That is counted in three ways: ours alone pays for it
    (peers are given its motion), all pay for it, or nobody does.
    """
    case = problems.quadrotor_flip(plant)
    ours, sqp = InteriorPointSolver(case.problem).prepare(), SQPSolver(case.problem).prepare()
    ipopt = compiled_ipopt(case.problem, TOLERANCE)
    rows: dict[str, list[tuple]] = {}
    begun: list[float] = []
    for number, entry in enumerate(best[-count:]):
        drawn = entry["kind"] == "random attitude"
        x0 = case.starts[entry["instance"] if drawn else -1]
        start, cpu, _ = timed(lambda x0=x0: ours.solve(x0, guess="policy", max_iterations=0))
        begun.append(cpu)
        guess = start.trajectory
        contenders: dict[str, tuple[Any, Any]] = {"interior point": (ours, "policy")}
        if number < peers:
            contenders |= {GIVEN: (ours, guess), "SQP": (sqp, guess), "IPOPT": (ipopt, guess)}
        for name, (solver, start) in contenders.items():
            tries = [
                timed(
                    lambda solver=solver, x0=x0, start=start: solver.solve(
                        x0, guess=start, **LIMITS
                    )
                )
                for _ in range(1 if solver is ipopt else 3)
            ]
            found = tries[0][0]
            cost, _ = plant.neutral_cost(problem_a.to_neutral(x0), found.u)
            times = [float(np.median([entry[k] for entry in tries])) for k in (1, 2)]
            good = found.is_success and cost / entry["J"] <= GOOD
            rows.setdefault(name, []).append(
                (good, cost / entry["J"], found.iterations[-1].number, *times)
            )
    result: dict[str, Any] = {}
    for name, entries in rows.items():
        good, ratio, iterations, cpu, wall = zip(*entries, strict=True)
        result[name] = {
            "starts": len(entries),
            "within 1.10 of the best known": int(np.sum(good)),
            "median iterations": float(np.median(iterations)),
            "worst ratio of costs": rounded(max(ratio)),
            **spread(cpu),
            "clock, median [ms]": rounded(1e3 * np.median(wall)),
        }
    result["making a start, median [ms]"] = rounded(1e3 * np.median(begun[:peers]))
    mine = np.median([row[3] for row in rows["interior point"][:peers]])
    given = np.median([row[3] for row in rows[GIVEN]]) if peers else np.nan
    for name in ("SQP", "IPOPT") if peers else ():
        other = np.array([row[3] for row in rows[name]])
        result[f"{name} / interior point"] = rounded(np.median(other) / mine)
        with_start = np.median(other + begun[:peers]) / mine
        result[f"{name} / interior point, all make their start"] = rounded(with_start)
        result[f"{name} / interior point, start given to all"] = rounded(np.median(other) / given)
    for name in ("acados_template",):
        if importlib.util.find_spec(name) is None:
            result[name] = "not run: not installed"
    return result


def starts(plant: Any, best: list[dict]) -> dict:
    """Problem A from other guesses than the policy's motion, and from harder states.

    Costs are those of the plan. For the harder states nobody knows the best: the least that any of
    the guesses leads to stands for it.
    """
    case = problems.quadrotor_flip(plant)
    solver = InteriorPointSolver(case.problem).prepare()
    known = [
        (case.starts[entry["instance"] if entry["kind"] == "random attitude" else -1], entry["J"])
        for entry in best[-101:]
    ]
    rng, hard = np.random.default_rng(1), []
    for x in case.starts[:100]:
        speed, spin = rng.uniform(-3, 3, 3), rng.uniform(-8, 8, 3)
        hard.append((np.r_[x[:7], SO3.matrix(x[3:7]).T @ speed, spin], None))
    result: dict[str, Any] = {}
    for label, cases in (("attitudes", known), ("with speed and spin", hard)):
        found: dict[str, list[tuple]] = {word: [] for word in GUESSES}
        for x0, _ in cases:
            for word in GUESSES:
                plan, cpu, _ = timed(
                    lambda x0=x0, word=word: solver.solve(x0, guess=word, **LIMITS)
                )
                found[word].append((plan.cost if plan.is_success else np.inf, cpu))
        costs = np.array([[cost for cost, _ in found[word]] for word in GUESSES])
        least = costs.min(axis=0) if cases is hard else np.array([J for _, J in cases])
        result[label] = {
            word: {
                "starts": len(cases), "within 1.10": int((row <= GOOD * least).sum()),
                "converged": int(np.isfinite(row).sum()),
                **spread([cpu for _, cpu in found[word]]),
            }
            for word, row in zip(GUESSES, costs, strict=True)
        }  # fmt: skip
        several = costs[:SEVERAL].min(axis=0)
        result[label][f"best of {', '.join(GUESSES[:SEVERAL])}"] = {
            "starts": len(cases), "within 1.10": int((several <= GOOD * least).sum()),
        }  # fmt: skip
    return result


def closed_loop(plant: Any, count: int) -> dict:
    """Problem A with disturbances: every call of the loops from all attitudes."""
    case = problems.quadrotor_flip(plant)
    mpc = MPC(case.problem.system, 40, 0.05, Q=STAGE, R=0.1, terminal=END)
    cpu: list[float] = []
    wall: list[float] = []
    good, first = 0, []
    for x0 in case.starts[-count:]:
        neutral, times = problem_a.to_neutral(x0), []

        def control(t: float, x: np.ndarray, goal: np.ndarray) -> np.ndarray:
            u, *spent = timed(lambda: mpc(t, x, goal))
            times.append(spent)  # noqa: B023 - called before the next
            return u

        loop = _Loop(mpc, control)
        mpc.reset()
        good += problem_a.closed_loop(plant, loop, neutral)["success"]
        first.append(times[0][0])
        cpu += [spent for spent, _ in times[1:]]
        wall += [spent for _, spent in times[1:]]
    return {
        "loops": count, "won": good, "calls": len(cpu), "call through Python": spread(cpu),
        "clock": spread(wall), "99 % / median": rounded(np.percentile(cpu, 99) / np.median(cpu)),
        "first call, median [ms]": rounded(1e3 * np.median(first)),
    }  # fmt: skip


class _Loop:
    """What the judge's loop asks of a controller."""

    def __init__(self, mpc: MPC, call: Callable[..., np.ndarray]) -> None:
        self.mpc, self.dt, self._call = mpc, mpc.dt, call

    @property
    def info(self) -> Any:
        return self.mpc.info

    def reset(self) -> None:
        self.mpc.reset()

    def __call__(self, t: float, x: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self._call(t, x, goal)


def reach(crocoddyl: Crocoddyl, rounds: int = 25) -> dict:
    """Problem B: open loop and one call against Crocoddyl's, then closed loops.

    Ours by forward dynamics, with torques as controls, and by inverse dynamics, with accelerations.
    """
    cases = {"": problems.panda_reach(), "accelerations, ": problems.panda_by_accelerations()}
    solvers = {name: InteriorPointSolver(case.problem).prepare() for name, case in cases.items()}
    names = [*cases, *([] if crocoddyl.absent else ["Crocoddyl, "])]
    samples: dict[str, list[float]] = {
        f"{name}{part}": [] for name in names for part in ("open loop", "call")
    }
    answer: dict[str, Any] = {}
    for _ in range(rounds):
        found = {}
        for name, case in cases.items():
            found[name], cpu, _ = timed(
                lambda name=name, case=case: solvers[name].solve(
                    case.starts[0], guess=case.guess, **LIMITS
                )
            )
            samples[f"{name}open loop"].append(cpu)
        if not crocoddyl.absent:
            answer = crocoddyl.ask("B", "solve")
            samples["Crocoddyl, open loop"].append(answer["cpu"])
        for k in range(1, 5):
            x = found[""].x[k]
            for name, solver in solvers.items():
                _, cpu, _ = timed(lambda solver=solver, x=x, k=k: solver.step(x, t0=0.02 * k))
                samples[f"{name}call"].append(cpu)
            if not crocoddyl.absent:
                samples["Crocoddyl, call"].append(crocoddyl.ask("B", "call", x)["cpu"])
    result: dict[str, Any] = {key: spread(seconds) for key, seconds in samples.items()}
    for name, solver in solvers.items():
        best = solver.solve(cases[name].starts[0], guess=cases[name].guess, tolerance=1e-8)
        result[f"{name}open loop"] |= {
            "iterations": found[name].iterations[-1].number, "cost": rounded(found[name].cost),
            "residual": rounded(found[name].kkt), "cost to 1e-8": best.cost,
            "operations of a stage": solver.transcription._functions.stage.instructions,
        }  # fmt: skip
        if not crocoddyl.absent:
            for part in ("open loop", "call"):
                peer = np.median(samples[f"Crocoddyl, {part}"])
                ratio = peer / np.median(samples[f"{name}{part}"])
                label = name or "interior point, "
                result[f"Crocoddyl / {label}{part}"] = rounded(ratio)
    result["closed loop"] = {f"weight × {w:g}": panda_loops(w) for w in (1.0, 30.0)}
    result["accelerations, closed loop"] = {
        f"{steps} steps a call": panda_loops(1.0, by_accelerations=True, iterations=steps)
        for steps in (1, 2)
    }
    if crocoddyl.absent:
        return result | {"Crocoddyl": crocoddyl.absent}
    return result | {
        "Crocoddyl": answer["versions"], "Crocoddyl, cost": rounded(answer["cost"]),
        "Crocoddyl, iterations": answer["iterations"],
    }  # fmt: skip


def panda_loops(weight: float, *, by_accelerations: bool = False, iterations: int = 1) -> dict:
    """Problem B in closed loop with its noise and blow: errors at the end, by seed.

    With plans by accelerations the torque is what the first acceleration takes.
    """
    case, tree = problems.panda_reach(weight), panda_tree(losses=False)
    place = tree.placement(HAND)
    target = place(READY + POSES[0])
    most = np.array([entry.upper for entry in case.problem.system.inputs])
    step = case.problem.system.step("rk4", 4)
    planned = problems.panda_by_accelerations() if by_accelerations else case
    solver, found = InteriorPointSolver(planned.problem).prepare(), {}
    taken = planned.problem.system.quantities["input"] if by_accelerations else None
    cpu: list[float] = []
    for seed in (1, 2, 3):
        rng, x = np.random.default_rng(seed), case.starts[0]
        solver.solve(x, guess=case.guess, tolerance=1e-6)
        for k in range(100):

            def call(x: np.ndarray = x, k: int = k) -> np.ndarray:
                u = solver.step(x, t0=0.02 * k, iterations=iterations).u[0]
                return u if taken is None else np.clip(taken(0.0, x, u), -most, most)

            u, spent, _ = timed(call)
            cpu.append(spent)
            noise = rng.normal(0, 0.02 * most)
            x = step(0.0, x, u + noise, [], 0.02)
            if k == 49:
                x = x + np.r_[np.zeros(7), np.full(7, 0.5)]
        away = SE3.minus(place(x[:7]), target)
        found[f"seed {seed}"] = {
            "position [cm]": rounded(100 * np.linalg.norm(away[:3])),
            "rotation [rad]": rounded(np.linalg.norm(away[3:])),
        }
    return found | {"call": spread(cpu)}


def arm(count: int) -> dict:
    """Problem C and its variants: from all attitudes, and the time of a call."""
    result = {}
    for variant in ARMS:
        case = problems.space_arm(variant)
        solver = InteriorPointSolver(case.problem).prepare()
        rows, calls = [], []
        for x0 in case.starts[:count]:
            found, cpu, _ = timed(lambda x0=x0: solver.solve(x0, **LIMITS))  # noqa: B023
            rows.append((found.is_success, found.iterations[-1].number, cpu))
            for k in range(1, 4):
                calls.append(timed(lambda k=k: solver.step(found.x[k], t0=0.1 * k))[1])  # noqa: B023
        good, iterations, cpu = zip(*rows, strict=True)
        result[variant] = {
            "starts": len(rows), "converged": int(np.sum(good)),
            "median iterations": float(np.median(iterations)),
            "open loop": spread(cpu), "call": spread(calls),
        }  # fmt: skip
    return result


def large(only: tuple[str, ...] = ("Talos", "Solo"), rounds: int = 7) -> dict:
    """Many degrees of freedom: against SQP in the same run, in turns.

    A first run of each is not timed: it meets memory for the first time.
    """
    result = {}
    for make in (problems.talos, problems.solo):
        case = make()
        if case.name not in only:
            continue
        began = time.process_time()
        ours = InteriorPointSolver(case.problem).prepare()
        sqp = SQPSolver(case.problem).prepare()
        built = time.process_time() - began
        x0, mine, other = case.starts[0], [], []
        for _ in range(1 + rounds):
            found, cpu, _ = timed(lambda: ours.solve(x0, guess=case.guess, **LIMITS))  # noqa: B023
            mine.append(cpu)
            peer, cpu, _ = timed(lambda: sqp.solve(x0, guess=case.guess, **LIMITS))  # noqa: B023
            other.append(cpu)
        mine, other = mine[1:], other[1:]
        result[case.name] = {
            "states, controls": [ours.model.n, ours.model.m], "is compiled": ours.is_compiled,
            "build [s]": rounded(built),
            "interior point": spread(mine) | _summary(found),
            "SQP": spread(other) | _summary(peer),
            "SQP / interior point": rounded(np.median(other) / np.median(mine)),
        }  # fmt: skip
        further = [ours.solve(x, guess="rest", **LIMITS) for x in case.starts[1:]]
        if further:
            result[case.name]["other starts, from rest"] = {
                "starts": len(further), "converged": sum(found.is_success for found in further),
                "iterations": [found.iterations[-1].number for found in further],
            }  # fmt: skip
    return result


def _summary(found: Any) -> dict[str, Any]:
    return {
        "status": str(found.status), "iterations": found.iterations[-1].number,
        "cost": rounded(found.cost), "residual": rounded(found.kkt),
    }  # fmt: skip


def over_horizons(plant: Any, horizons: tuple[int, ...] = (20, 40, 100, 200, 400)) -> dict:
    """Time of an iteration, the quickest of some, by the number of steps, next to its flops."""
    found = {}
    for horizon in horizons:
        case = problems.quadrotor_flip(plant, horizon)
        solver = InteriorPointSolver(case.problem).prepare()
        x0 = case.starts[-1]
        guess = solver.solve(x0, max_iterations=0).trajectory
        spent: dict[int, list[float]] = {2: [], 12: []}
        for _ in range(12):
            for most, into in spent.items():
                run, cpu, _ = timed(
                    lambda most=most: solver.solve(x0, guess=guess, max_iterations=most)  # noqa: B023
                )
                into.append(cpu)
        taken = run.iterations[-1].number - 2
        each = (min(spent[12]) - min(spent[2])) / taken
        n, m = solver.model.n, solver.model.m
        flops = horizon * (2 * n * n * (n + m) + 2 * n * (n + m) ** 2 + m**3 / 3 + 3 * m * n * n)
        found[str(horizon)] = {
            "iteration [ms]": rounded(1e3 * each), "a stage [µs]": rounded(1e6 * each / horizon),
            "flops of the sweep": int(flops), "these a second [1e9]": rounded(1e-9 * flops / each),
        }  # fmt: skip
    sizes = np.log([int(N) for N in found])
    slope = np.polyfit(sizes, np.log([entry["iteration [ms]"] for entry in found.values()]), 1)[0]
    return found | {"exponent": rounded(slope)}


def checks(plant: Any) -> dict:
    """Optima of ten problems next to IPOPT's at a tight tolerance, by cost and residual.

    The residual by fit is that of `tests.optimal.residuals`: multipliers that it finds itself.
    """
    flip = problems.quadrotor_flip(plant)
    cases = {f"A, start {k}": (flip.problem, flip.starts[k], flip.guess) for k in (3, 100)}
    tasks = {name: TASKS[name]() for name in CHECKED}
    cases |= {name: (task.problem, task.x0, None) for name, task in tasks.items()}
    result = {}
    for name, (problem, x0, guess) in cases.items():
        ours, ipopt = InteriorPointSolver(problem).prepare(), NLPSolver(problem, plugin="ipopt")
        mine = ours.solve(x0, guess=guess, tolerance=1e-7, max_iterations=500)
        other = ipopt.solve(x0, guess=mine, tolerance=1e-8, max_iterations=500)
        away = problem.system.error(other.x, mine.x)
        result[name] = {
            "residual": rounded(mine.kkt), "status": str(mine.status),
            "residual by fit": rounded(kkt_residual(mine, x0, COMPLEMENTARITY, ipopt)),
            "IPOPT": str(other.status), "IPOPT, residual": rounded(other.kkt),
            "cost": mine.cost, "cost, less IPOPT's": rounded(mine.cost - other.cost),
            "states apart": rounded(np.abs(away).max()),
        }  # fmt: skip
    return result


def first_calls() -> dict:
    """From `MPC(…)` to the first input and to compiled code, in new processes without a cache."""
    result = {}
    for name in ("A", "B"):
        rows = {}
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for kind, folder in (
                ("first input, compiling beside", one),
                ("set-up, nothing cached", other),
                ("set-up, cached", other),
            ):
                run = subprocess.run(
                    [sys.executable, "-m", "tests.benchmarks.solver", "--measure", name, kind],
                    env=os.environ | {"LGCONTROL_CACHE": folder, "OMP_NUM_THREADS": "1"},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                rows[kind] = json.loads(run.stdout.splitlines()[-1])
        result[name] = rows
    return result


def memory(plant: Any, calls: int = 100_000) -> dict:
    """Bytes of a plan, of the state of a loop and of a prepared solver; what calls add to them."""
    result = {}
    for case in (problems.quadrotor_flip(plant), problems.panda_reach(), problems.talos()):
        solver = InteriorPointSolver(case.problem).prepare()
        plan = solver.solve(case.starts[0], guess=case.guess, **LIMITS).plan
        loop = solver.loop(0.0, case.problem.dt, case.problem.system.nominal_input)
        own = solver.memory
        result[case.name] = {
            "plan [bytes]": plan.column().nbytes,
            "loop, besides a solver's memory [bytes]": bytes_of(loop._keep),
            "prepared solver [bytes]": bytes_of(own.arrays) + bytes_of(own.constants),
        }  # fmt: skip
    case = problems.quadrotor_flip(plant)
    mpc = MPC(case.problem.system, 40, 0.05, Q=STAGE, R=0.1, terminal=END)
    mpc.prepare(0.0, case.starts[-1], problem_a.GOAL)
    rng, dt = np.random.default_rng(0), mpc.dt
    before = 0
    for k in range(calls):
        if k == calls // 10:  # what is built when it is first needed is there
            before = resident()
        x = case.problem.system.retract(problem_a.GOAL, 0.1 * rng.normal(size=12))
        mpc(k * dt, np.asarray(x), problem_a.GOAL)
    result["A, closed loop"] = {"calls": calls, "growth [kB]": resident() - before}
    return result


def bytes_of(values: dict[str, Any]) -> int:
    """Memory of arrays, of which several may share one."""
    found = {}
    for value in values.values():
        if isinstance(value, np.ndarray):
            whole = value.base if isinstance(value.base, np.ndarray) else value
            found[id(whole)] = whole.nbytes
    return sum(found.values())


def measure(name: str, kind: str) -> dict:
    """One of the times of `first_calls`, of this process with its children, in s."""
    plant = problem_a.load_neutral(problems.shared_folder())
    case = problems.quadrotor_flip(plant) if name == "A" else problems.panda_reach()
    problem = case.problem
    began, before = time.perf_counter(), os.times()
    if name == "A":
        mpc = MPC(problem.system, 40, 0.05, Q=STAGE, R=0.1, terminal=END)
        goal = problem_a.GOAL
    else:
        mpc = MPC(
            problem.system, 30, 0.02, Q=problem.Q, R=problem.R, terminal=problem.terminal,
            method=problem.method, residuals=problem.residuals, bounds=problem.bounds,
            guess="reference",
        )  # fmt: skip
        goal = problem.reference
    mpc.prepare(wait="set-up" in kind)
    mpc(0.0, case.starts[0], goal)
    after = os.times()
    return {
        "clock [s]": rounded(time.perf_counter() - began),
        "processor, Python [s]": rounded(after.user - before.user + after.system - before.system),
        "processor, compiler [s]": rounded(
            after.children_user - before.children_user
            + after.children_system - before.children_system
        ),
    }  # fmt: skip


def draw(result: dict, path: Path) -> None:
    """Times of the contenders, and of an iteration by the number of steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows: list[tuple[str, dict, str]] = []
    flip, panda = result.get("A, open loop", {}), result.get("B, Panda", {})
    rows += [
        (f"A, solve: {name}", entry, name) for name, entry in flip.items() if _is_spread(entry)
    ]
    if "A, closed loop" in result:
        rows.append(
            ("A, call: interior point", result["A, closed loop"]["call through Python"], "")
        )
    for part in ("open loop", "call"):
        for name in ("", "accelerations, ", "Crocoddyl, "):
            entry = panda.get(f"{name}{part}", {})
            if _is_spread(entry):
                word = "solve" if part == "open loop" else "call"
                label = name[:-2] or "interior point"
                who = name if name == "Crocoddyl, " else ""
                rows.append((f"B, {word}: {label}", entry, who))
    for variant, entry in result.get("C, space arm", {}).items():
        if isinstance(entry, dict):
            rows.append((f"C, {variant}, call", entry["call"], ""))
    for name, entry in result.get("many degrees of freedom", {}).items():
        if isinstance(entry, dict):
            rows += [(f"{name}: {who}", entry[who], who) for who in ("interior point", "SQP")]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 0.32 * len(rows) + 1.6), width_ratios=(3, 2)
    )
    for k, (_, entry, who) in enumerate(reversed(rows)):
        ours = not who or who.startswith("interior point")
        color = "tab:blue" if ours else "tab:orange"
        left.plot([entry["10 % [ms]"], entry["99 % [ms]"]], [k, k], color=color, lw=2)
        left.plot(entry["median [ms]"], k, "o", color=color)
        left.annotate(f"{entry['median [ms]']:g}", (entry["median [ms]"], k), (0, 5),
                      textcoords="offset points", ha="center", fontsize=7)  # fmt: skip
    left.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)], fontsize=8)
    left.set(xscale="log", xlabel="time of the processor [ms]: median, and 10 to 99 % of the times",
             title="blue: interior point, orange: other solvers")  # fmt: skip
    left.xaxis.set_major_formatter("{x:g}")
    left.grid(axis="x", alpha=0.3)
    steps = {int(N): e for N, e in result.get("an iteration by steps", {}).items() if N.isdigit()}
    if steps:
        N, each = np.array([*steps]), np.array([e["iteration [ms]"] for e in steps.values()])
        right.loglog(N, each, "o-", label="problem A")
        right.loglog(N, each[0] * N / N[0], "k:", label="linear")
        right.set(xlabel="steps of the horizon", ylabel="time of an iteration [ms]")
        right.set_xticks(N, map(str, N), minor=False)
        right.set_xticks([], minor=True)
        times = [0.05, 0.1, 0.2, 0.5, 1.0]
        right.set_yticks(times, map(str, times), minor=False)
        right.set_yticks([], minor=True)
        right.legend(fontsize=8)
        right.grid(alpha=0.3, which="both")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _is_spread(entry: Any) -> bool:
    return isinstance(entry, dict) and "median [ms]" in entry


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = (
        "open", "starts", "closed", "reach", "arm", "large", "horizons", "checks", "first",
        "memory",
    )  # fmt: skip
    parser.add_argument("--only", nargs="*", choices=parts, default=parts, metavar="PART")
    parser.add_argument("--instances", type=int, default=101)
    parser.add_argument("--peers", type=int, default=7, help="starts from which peers solve")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--measure", nargs=2, metavar=("PROBLEM", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    shared = problems.shared_folder()
    plant = problem_a.load_neutral(shared)
    best = json.loads((shared / "specs" / "best_known.json").read_text())
    crocoddyl = Crocoddyl(shared) if "reach" in options.only else None
    count = options.instances
    runs: dict[str, tuple[str, Callable[[], dict]]] = {
        "open": ("A, open loop", lambda: open_loop(plant, best, count, options.peers)),
        "starts": ("A, other starts", lambda: starts(plant, best)),
        "closed": ("A, closed loop", lambda: closed_loop(plant, count)),
        "reach": ("B, Panda", lambda: reach(crocoddyl)),  # type: ignore[arg-type]
        "arm": ("C, space arm", lambda: arm(min(count, 100))),
        "large": ("many degrees of freedom", large),
        "horizons": ("an iteration by steps", lambda: over_horizons(plant)),
        "checks": ("next to IPOPT at 1e-8", lambda: checks(plant)),
        "first": ("first call", first_calls),
        "memory": ("memory", lambda: memory(plant)),
    }
    result = json.loads(options.out.read_text()) if options.out.is_file() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for part in options.only:
        name, run = runs[part]
        load = os.getloadavg()[0]
        result[name] = run() | {"load": [rounded(load), rounded(os.getloadavg()[0])]}
        print(f"{name}:", json.dumps(result[name], indent=1, ensure_ascii=False), flush=True)
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    if crocoddyl is not None:
        crocoddyl.close()
    draw(result, options.out.with_suffix(".png"))
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
