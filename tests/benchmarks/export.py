"""Exported controllers of problems A and B, compiled alone, in closed loop with an exported plant.

    python -m tests.benchmarks.export [--problems A B] [--out FILE.json]

A program in C runs controller and plant; Python runs the same loop with the same disturbances.
States are compared, and times of a call, code sizes and memory are told.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.codegen._internal import c_table
from lgcontrol.controllers import MPC
from lgcontrol.controllers.designs.panda_mpc import HAND, POSES, READY
from lgcontrol.groups import SE3, SO3
from lgcontrol.models import panda, panda_tree, quadrotor
from lgcontrol.optimal import Bound, Residual
from tests.controllers import problem_a

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-O2", "-std=c99", "-Wall", "-Wextra", "-Werror")

MAIN = """\
#include "controller.h"
#include "plant.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "loop.h"

int main(void)
{
  static controller m;
#if PLANT_WORK
  static double work[PLANT_WORK];
#endif
  double x[CONTROLLER_NX], after[CONTROLLER_NX], u[CONTROLLER_NU], worst = 0, total = 0;
  memcpy(x, loop_x0, sizeof x);
  controller_init(&m);
  for (int k = 0; k < CALLS; k++) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    const int status = controller_step(&m, k * CONTROLLER_PERIOD, x, u);
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double spent = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) * 1e-6;
    printf("%d %.9g", status, spent);
    for (int i = 0; i < CONTROLLER_NX; i++) printf(" %.17g", x[i]);
    printf("\\n");
    if (k) worst = spent > worst ? spent : worst, total += spent;
    plant(x, u, loop_push + k * PUSHES, loop_kick + k * KICKS, after
#if PLANT_WORK
          , work
#endif
    );
    memcpy(x, after, sizeof x);
  }
  fprintf(stderr, "%lu", (unsigned long)sizeof m);
  return 0;
}
"""


@dataclass
class ClosedLoop:
    """A controller, its plant ``(x, u, push, kick) → x``, and what happens in a run."""

    mpc: MPC
    plant: ModelFunction
    x0: np.ndarray
    push: np.ndarray
    kick: np.ndarray


def stepped(system, controls: int, pushes: int, kicked, dt: float, substeps: int) -> ModelFunction:
    """A step of the plant with a disturbance, and a kick after it."""
    sizes = {"x": system.state.nq, "u": controls, "push": pushes, "kick": 6 if pushes == 6 else 7}
    x, u, push, kick = (ca.SX.sym(name, size) for name, size in sizes.items())
    step = system.step("rk4", substeps).function
    after = kicked(step(0.0, x, ca.vertcat(u, push), system.nominal_parameters, dt), kick)
    function = ca.Function("plant", [x, u, push, kick], [after], [*sizes], ["after"])
    return ModelFunction(function, shapes={name: (size,) for name, size in sizes.items()})


def problem_a_loop() -> ClosedLoop:
    """The quadrotor upside down, pushed, and kicked at 1.5 s."""
    shared = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    neutral = problem_a.load_neutral(shared)
    system = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x")

    def residual(t, x, u, p):
        position = x[:3] - problem_a.GOAL[:3]
        return ca.vertcat(position, SO3.log(x[3:7]), SO3.matrix(x[3:7]) @ x[7:10], x[10:])

    mpc = MPC(
        system, 40, 0.05, Q=0, R=0.1, terminal=0, reference=problem_a.GOAL,
        residuals=[Residual(residual, neutral.wx, terminal=neutral.wN)], solver="interior_point",
    )  # fmt: skip

    def kicked(x, kick):
        speed = x[7:10] + SO3.matrix(x[3:7]).T @ kick[:3]
        return ca.vertcat(x[:7], speed, x[10:] + kick[3:])

    rng = np.random.default_rng(1)
    push = np.array([np.r_[rng.normal(0, 0.5, 3), rng.normal(0, 0.01, 3)] for _ in range(80)])
    kick = np.zeros((80, 6))
    kick[29] = [1, 0, -1, 3, -2, 1]
    x0 = np.r_[0, 0, 0, 1, 0, 0, 0, np.zeros(6)]
    return ClosedLoop(mpc, stepped(system, 4, 6, kicked, 0.05, 5), x0, push, kick)


def problem_b_loop() -> ClosedLoop:
    """The Panda reaches for a pose, its torques noisy, and is kicked at 1 s."""
    arm, tree = panda(losses=False), panda_tree(losses=False)
    noisy = tree.system(
        [*arm.inputs, *(f"noise{i}" for i in range(7))],
        input_matrix=np.hstack([np.eye(7)] * 2), name="noisy",
    )  # fmt: skip
    place = tree.placement(HAND)
    target = place(READY + POSES[0])
    limits = tree.limits
    mpc = MPC(
        arm, 30, 0.02, Q={"configuration": 0.1, "velocity": 0.1}, R=1e-3,
        terminal={"configuration": 0.1, "velocity": 10.0}, method="semi_implicit_euler",
        residuals=[Residual(lambda t, x, u, p: SE3.minus(place(x[:7]), ca.DM(target)), 10.0,
                            terminal=1000.0)],
        bounds=[Bound("configuration", limits["lower"], limits["upper"])],
        reference=np.r_[READY, np.zeros(7)], solver="interior_point",
    )  # fmt: skip
    rng = np.random.default_rng(1)
    push = rng.normal(size=(100, 7)) * 0.02 * limits["effort"]
    kick = np.zeros((100, 7))
    kick[49] = 0.5

    def kicked(x, kick):
        return ca.vertcat(x[:7], x[7:] + kick)

    x0 = np.r_[READY, np.zeros(7)]
    return ClosedLoop(mpc, stepped(noisy, 7, 7, kicked, 0.02, 2), x0, push, kick)


PROBLEMS = {"A": problem_a_loop, "B": problem_b_loop}


def in_python(loop: ClosedLoop) -> tuple[np.ndarray, list[str]]:
    """States and statuses."""
    loop.mpc.reset()
    x, states, statuses = loop.x0, [], []
    for k in range(len(loop.push)):
        u = loop.mpc(k * loop.mpc.dt, x)
        states.append(x)
        statuses.append(str(loop.mpc.info.status))
        x = loop.plant(x, u, loop.push[k], loop.kick[k])
    return np.array(states), statuses


def in_c(loop: ClosedLoop, folder: Path, compiler: str) -> dict:
    """What the program says: states, statuses, times in ms, code and memory."""
    began = time.perf_counter()
    controller = loop.mpc.export_c(folder / "controller", name="controller", x0=loop.x0, calls=2)
    plant = loop.plant.export_c(folder / "plant", name="plant")
    exported = time.perf_counter() - began
    (folder / "loop.h").write_text(
        f"enum {{ CALLS = {len(loop.push)}, PUSHES = {loop.push.shape[1]}, "
        f"KICKS = {loop.kick.shape[1]} }};\n"
        + c_table("double", "loop_x0", loop.x0)
        + c_table("double", "loop_push", loop.push)
        + c_table("double", "loop_kick", loop.kick)
    )
    (folder / "loop.c").write_text("#define _POSIX_C_SOURCE 199309L\n" + MAIN)
    began = time.perf_counter()
    sources = [controller / "controller.c", plant / "plant.c", folder / "loop.c"]
    for source in sources:
        command = [compiler, *FLAGS, f"-I{controller}", f"-I{plant}", "-c", str(source)]
        subprocess.run([*command, "-o", str(folder / f"{source.stem}.o")], check=True)
    objects = [str(folder / f"{source.stem}.o") for source in sources]
    subprocess.run([compiler, *objects, "-o", str(folder / "loop"), "-lm"], check=True)
    compiled = time.perf_counter() - began
    done = subprocess.run([folder / "loop"], capture_output=True, text=True, check=True)
    rows = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
    text = subprocess.run(
        ["size", str(folder / "controller.o")], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    return {
        "states": rows[:, 2:],
        "statuses": rows[:, 0],
        "ms": rows[:, 1],
        "code [bytes]": int(text[1].split()[0]) if len(text) > 1 else None,
        "memory [bytes]": int(done.stderr),
        "export [s]": exported,
        "compile [s]": compiled,
    }


def compared(name: str, compiler: str) -> dict:
    """One problem, both ways."""
    loop = PROBLEMS[name]()
    states, statuses = in_python(loop)
    with tempfile.TemporaryDirectory() as folder:
        found = in_c(loop, Path(folder), compiler)
    off = np.abs(found.pop("states") - states)
    times, codes = found.pop("ms"), found.pop("statuses")
    return {
        "compiler": compiler,
        "largest difference of states": float(off.max()),
        "calls": len(states),
        "calls that are not ok, in C and in Python": [
            int((codes != 0).sum()), sum(status != "ok" for status in statuses)
        ],
        "first call [ms]": float(times[0]),
        "a call, median [ms]": float(np.median(times[1:])),
        "a call, worst [ms]": float(times[1:].max()),
        "error of the state at the end": float(
            np.abs(loop.mpc.system.error(states[-1], loop.mpc.reference)).max()
        ),
        **found,
        "load of the machine at the end": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*PROBLEMS])
    default = ROOT / "tests/benchmarks/results/export.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not compilers:
        sys.exit("no C compiler")
    result = {}
    for name in options.problems:
        for compiler in compilers:
            result[f"{name}, {compiler}"] = found = compared(name, compiler)
            print(f"{name}: {json.dumps(found)}", flush=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
