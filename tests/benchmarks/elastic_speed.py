"""Times of what elastic arms compute: τ, τ̇, τ̈ and the flat map, beside AD in the same run.

    python -m tests.benchmarks.elastic_speed [--rounds 15] [--build] [--no-mpc] [--out FILE]

Everything is compiled first (``--build`` ends there, so that a quiet minute is for measuring). One
call from Python in place (`ModelFunction.in_place`), and a batch of 1,000 points on one thread. AD
is CasADi's along the motion, of the same inverse dynamics, with common subexpressions eliminated.
The predictive control is that of ``elastic-ur5`` with ``law="mpc"``: 0.15 s ahead every 10 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, set_threads
from lgcontrol.controllers.designs.elastic_ur5 import design
from lgcontrol.mechanics import Multibody, SeriesElastic
from lgcontrol.models import elastic_panda_tree, elastic_ur5_tree

from ._timing import Contender, measure

RESULTS = Path(__file__).parent / "results" / "elastic_speed.json"
BATCH = 1000
ARMS = {"panda": elastic_panda_tree, "ur5": elastic_ur5_tree}


def by_differentiation(tree: Multibody) -> ModelFunction:
    """τ, τ̇, τ̈ by automatic differentiation along the motion."""
    names, sizes = ("q", "v", "a", "j", "s"), (tree.nq, *(tree.nv,) * 4)
    q, *rates = (ca.SX.sym(name, n) for name, n in zip(names, sizes, strict=True))
    onward = tree.configuration.rate_matrix(q) @ rates[0]
    tau = [tree.inverse_dynamics(q, *rates[:2])]
    for k in range(2):
        own, rate = ca.vertcat(q, *rates[: k + 2]), ca.vertcat(onward, *rates[1 : k + 3])
        tau.append(ca.jtimes(tau[-1], own, rate))
    results = ca.cse([ca.densify(x) for x in tau])
    outputs = ["tau", "tau_dot", "tau_ddot"]
    return ModelFunction(ca.Function("by_ad", [q, *rates], results, list(names), outputs))


def functions(arm: SeriesElastic) -> dict[str, ModelFunction]:
    """What is timed, by name."""
    tree = arm.tree
    return {
        "tau, its two derivatives": tree.inverse_dynamics_time_derivatives(2),
        "the same by AD": by_differentiation(tree),
        "two velocities, two derivatives": tree.two_velocity_dynamics(2),
        "flat map": arm.flat_map(),
        "inverse dynamics": tree.inverse_dynamics,
    }


def contenders(arm: SeriesElastic, made: dict[str, ModelFunction]) -> list[Contender]:
    """One call and a batch of each."""
    rng, found = np.random.default_rng(0), []
    for name, function in made.items():
        for kind, batch in (("one call", None), ("batch", BATCH)):
            call = function.in_place(batch)
            for values in call.inputs.values():
                values[:] = rng.normal(size=values.shape)
            found.append(Contender(f"{name}: {kind}", call, batch or 1))
    return found


def predictive() -> dict[str, float]:
    """Times of calls along the first 1.5 s of the design, in ms."""
    task = design(law="mpc")
    law, step = task.controller, task.plant.step("rk4", 4)
    law.reset()
    law.prepare(0.0, task.x0)
    x, times = task.x0, []
    for k in range(150):
        u = law(0.01 * k, x)
        times.append(1e3 * law.info.solve_time)
        x = step(0.01 * k, x, u, [], 0.01)
    late = np.array(times[1:])
    return {
        "median": float(np.median(late)),
        "99 %": float(np.percentile(late, 99)),
        "largest": float(late.max()),
    }


def main() -> None:
    """Compile, measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--no-mpc", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    set_threads(1)
    everything: dict[str, Any] = {}
    for name, make in ARMS.items():
        arm = make()
        made = functions(arm)
        for function in made.values():
            function.compiled()
        everything[name] = arm, made
    if options.build:
        if not options.no_mpc:
            predictive()
        return
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    for name, (arm, made) in everything.items():
        times = measure(contenders(arm, made), rounds=options.rounds)
        found[name] = {
            "operations": {key: f.instructions for key, f in made.items()},
            "µs": {key: round(value, 3) for key, value in times.items()},
        }
    if not options.no_mpc:
        found["predictive control of the UR5, ms a call"] = {
            key: round(value, 2) for key, value in predictive().items()
        }
    found["load"] = round(os.getloadavg()[0], 1)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
