"""Closed loops in C next to those in Python, many of them in threads, and rollouts.

    python -m tests.benchmarks.closed_loops [--rounds 15] [--runs 200] [--out FILE]

Processor time of whole calls of `simulate`, set-up and record included, in turns; the machine code
is there before. The results beside the script are of two shared cores: "load" is the number of
processes that waited for them. The aims were 6 ms with an MPC, 1.5 ms with LQR and EKF, 40 s for
10,000 runs with an MPC on two cores; 4 million steps a second of a quadrotor, 2 of a Panda.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run by its path
    sys.path.insert(0, str(ROOT))
from lgcontrol.codegen import chain, set_compile_policy, set_threads  # noqa: E402
from lgcontrol.controllers import LQR, MPC  # noqa: E402
from lgcontrol.controllers.designs import quadrotor_recovery  # noqa: E402
from lgcontrol.estimation import EKF  # noqa: E402
from lgcontrol.models import panda, quadrotor  # noqa: E402
from lgcontrol.simulation import _compiled_loop, simulate, simulate_many  # noqa: E402
from lgcontrol.systems import Sensor, System  # noqa: E402

RESULTS = Path(__file__).with_name("results") / "closed_loops.json"


def with_mpc() -> tuple[System, dict[str, Any]]:
    """The design quadrotor-recovery: 80 calls, gusts, a kick."""
    task = quadrotor_recovery.design()
    mpc = MPC(
        task.plant, horizon=40, dt=0.05, R=0.1,
        Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
    )  # fmt: skip
    return task.plant, {
        "controller": mpc, "x0": task.x0, "seconds": task.seconds, "reference": task.reference,
        **task.options,
    }  # fmt: skip


def with_filter() -> tuple[System, dict[str, Any]]:
    """LQR at 50 Hz on the estimate of an EKF, poses at 50 Hz, 4 s: 200 calls and corrections."""
    quad = quadrotor()
    hover = quad.trim(position=[2.0, 1.0, 1.0])
    start = quad.state.plus(hover.x, 0.1 * np.ones(12))
    pose = Sensor("pose", "pose", std_discrete=0.02, dt=0.02)
    noise = {f"force.{a}": 0.1 for a in "xyz"} | {f"torque.r{a}": 0.01 for a in "xyz"}
    ekf = EKF(quad, [pose], start, std0=0.1, noise=noise)
    return quad, {
        "controller": LQR(quad, hover, dt=0.02), "x0": start, "seconds": 4.0, "sensors": [pose],
        "estimator": ekf,
    }  # fmt: skip


def times_of(plant: System, options: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Processor time of a run in ms, in Python and in C, in turns."""
    driver: Callable[..., Any] = _compiled_loop.find_driver
    ways = {"Python": lambda build: None, "C": driver}
    set_compile_policy("eager")
    spent: dict[str, list[float]] = {name: [] for name in ways}
    states = {}
    for k in range(rounds + 1):
        for name, find in ways.items():
            _compiled_loop.find_driver = find
            began = time.thread_time()
            run = simulate(plant, **options)
            if k:  # what is built is built
                spent[name].append(1e3 * (time.thread_time() - began))
            states[name] = run.x
    _compiled_loop.find_driver = driver
    found: dict[str, Any] = {
        f"{name} [ms]": {"least": min(own), "median": statistics.median(own)}
        for name, own in spent.items()
    }
    found["execution"] = run.execution
    found["largest difference of a state"] = float(np.abs(states["C"] - states["Python"]).max())
    return found


def many(plant: System, options: dict[str, Any], runs: int) -> dict[str, Any]:
    """Seconds of many runs in one and in two threads."""
    options = dict(options)
    starts = np.tile(options.pop("x0"), (runs, 1))
    found: dict[str, Any] = {"runs": runs}
    for threads in (1, 2):
        began, spent = time.perf_counter(), time.process_time()
        for run in simulate_many(plant, x0=starts, threads=threads, **options):
            assert run.is_success, run
        wall, spent = time.perf_counter() - began, time.process_time() - spent
        found[f"{threads} thread{'s' * (threads > 1)}"] = {
            "wall [s]": wall, "processor [s]": spent, "10,000 runs, wall [s]": wall / runs * 1e4,
            "10,000 runs on two cores, by processor [s]": spent / runs * 1e4 / 2,
        }  # fmt: skip
    return found


def rollouts() -> dict[str, float]:
    """Steps a second of RK4 on one thread, many starts."""
    found = {}
    set_threads(1)
    for name, plant in (("quadrotor", quadrotor()), ("panda", panda())):
        step = chain(plant.step("rk4"), 100, carry=("x", "x_next"), each=[]).compiled()
        starts = np.tile(plant.home, (2000, 1))
        given = 0.0, starts, plant.nominal_input, plant.nominal_parameters, 1e-3
        step(*given)
        spent = []
        for _ in range(5):
            began = time.thread_time()
            step(*given)
            spent.append(time.thread_time() - began)
        found[f"{name} [steps/s]"] = len(starts) * 100 / min(spent)
    set_threads(None)
    return found


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    mpc = with_mpc()
    result = {
        "load": os.getloadavg()[0],
        "quadrotor with MPC": times_of(*mpc, options.rounds),
        "quadrotor with LQR and EKF": times_of(*with_filter(), options.rounds),
        "many runs with MPC": many(*mpc, options.runs),
        "rollouts": rollouts(),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
