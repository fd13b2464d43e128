"""Solves with implicit steps, interpreted and compiled in turns; what the build takes.

    python -m tests.benchmarks.implicit_steps [--only NAME …] [--rounds 3]

Each problem has stages of `radau_iia5`. Times are those of the clock. A build with an empty cache
is without that of the kernel, which is built once a machine. Writes results/implicit_steps.json.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol import codegen
from lgcontrol.groups import Rn
from lgcontrol.models import quadrotor, scara
from lgcontrol.optimal import InteriorPointSolver, OptimalControlProblem
from lgcontrol.optimal.kernel._library import iterations_of_a_build, load_kernel
from lgcontrol.systems import Input, System

OUT = Path(__file__).parent / "results" / "implicit_steps.json"
METHOD = {"method": "radau_iia5"}


def reactor() -> tuple[OptimalControlProblem, Any]:
    """An exothermic reaction, whose jacket follows the coolant in 2 ms."""

    def f(t, x, u, p):
        rate = 0.5 * ca.exp(12 - 12 / x[1]) * x[0]
        warms = 0.9 - x[1] + 0.5 * rate + 2 * (x[2] - x[1])
        return ca.vertcat(1 - x[0] - rate, warms, 500 * (u[0] - x[2]))

    start = [0.8, 0.95, 0.9]
    plant = System(
        "reactor", Rn(3), f, inputs=[Input("coolant", "", 0.5, 1.3, nominal=0.9)], home=start
    )
    goal = [0.4, 1.0, 0.9]
    return OptimalControlProblem(
        plant, 100, 0.05, Q=[1, 1, 0], R=0.01, reference=goal, **METHOD
    ), start


def pendulum() -> tuple[OptimalControlProblem, Any]:
    """A cart swings a rod up; accelerations and the force of the rod are algebraic states."""
    rod, cart, length, gravity = 0.2, 1.0, 0.5, 9.81

    def g(t, x, z, u, p):
        sine, cosine = ca.sin(x[0]), ca.cos(x[0])
        return ca.vertcat(
            cart * z[0] - u[0] - z[2] * sine,
            length * z[1] + z[0] * cosine + gravity * sine + 0.1 * x[1],
            z[2] - rod * (length * x[1] ** 2 + gravity * cosine - z[0] * sine),
        )

    plant = System.from_dae(
        "cart", Rn(4), lambda t, x, z, u, p: ca.vertcat(x[1], z[1], x[3], z[0]), g,
        ["acceleration", "turn", "force"], inputs=[Input("push", "N", -10, 10)],
    )  # fmt: skip
    return OptimalControlProblem(
        plant, 100, 0.02, Q=[10, 1, 1, 0.1], R=0.01, reference=[np.pi, 0, 0, 0],
        terminal=100 * np.eye(4), **METHOD,
    ), np.zeros(4)  # fmt: skip


def arm() -> tuple[OptimalControlProblem, Any]:
    """A SCARA arm, four joints."""
    plant, goal = scara(), np.zeros(8)
    goal[:2] = 0.5, -0.5
    return OptimalControlProblem(plant, 100, 0.01, R=1e-3, reference=goal, **METHOD), np.zeros(8)


def flight() -> tuple[OptimalControlProblem, Any]:
    """A quadrotor to its home."""
    plant = quadrotor()
    start = plant.home.copy()
    start[:3] = 1.0, -1.0, 0.5
    return OptimalControlProblem(plant, 40, 0.05, R=0.1, reference=plant.home, **METHOD), start


PROBLEMS: dict[str, Callable[[], tuple[OptimalControlProblem, Any]]] = {
    "reactor": reactor, "cart and rod, from_dae": pendulum, "SCARA arm": arm, "quadrotor": flight,
}  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    began = time.perf_counter()
    return call(), time.perf_counter() - began


def row(name: str, rounds: int) -> dict[str, Any]:
    """One problem."""
    problem, start = PROBLEMS[name]()
    plain, quick = InteriorPointSolver(problem), InteriorPointSolver(problem)
    _ = plain.memory
    rule = iterations_of_a_build(plain.model, plain._stages)
    _, cold = timed(quick.prepare)
    assert quick.is_compiled
    quick = InteriorPointSolver(PROBLEMS[name]()[0])
    _, warm = timed(quick.prepare)
    seconds: dict[str, list[float]] = {"interpreted": [], "compiled": []}
    for _ in range(rounds):
        slow, taken = timed(lambda: plain.solve(start, time_limit=1e6))  # stays interpreted
        seconds["interpreted"].append(taken)
        fast, taken = timed(lambda: quick.solve(start))
        seconds["compiled"].append(taken)
    count = len(fast.iterations) - 1
    each = {key: 1e3 * median(values) / count for key, values in seconds.items()}
    return {
        "iterations": [len(slow.iterations) - 1, count],
        "ms an iteration": {key: float(f"{value:.3g}") for key, value in each.items()},
        "build [s]": {"empty cache": round(cold, 2), "from disk": round(warm, 2)},
        "pays after": {
            "by the rule": round(rule), "measured": round(1e3 * cold / each["interpreted"])
        },
        "states differ by": float(f"{np.abs(slow.x - fast.x).max():.1g}"),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def main() -> None:
    """Run and write after each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    result = json.loads(OUT.read_text()) if OUT.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LGCONTROL_CACHE"] = folder
        codegen.set_compile_policy("auto")
        load_kernel()
        for name in options.only:
            result[name] = row(name, options.rounds)
            print(f"{name}:", json.dumps(result[name]), flush=True)
            OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
