"""Operation counts and times of every tree function: robots, and chains of 1 to 64 bodies.

    python -m tests.benchmarks.multibody [--robots FOLDER] [--json FILE] [--skip-chains]

Counts are CasADi instructions of the function with numbers for all parameters, inputs and outputs
included. Times are interpreted evaluations through a buffer (compiled code is several times
faster) and the time to trace. Robot files are those of ``$LGCONTROL_SHARED/robots`` or
``../shared/robots``; without them only chains are measured.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np

from lgcontrol.mechanics import Multibody, SpatialInertia

ROOT = Path(__file__).resolve().parents[2]

FUNCTIONS = (
    "inverse_dynamics",
    "gravity_forces",
    "mass_matrix",
    "mass_matrix_inverse",
    "coriolis_matrix",
    "forward_dynamics_by_factor",
    "forward_dynamics_by_recursion",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "inverse_dynamics_regressor",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "body_velocities",
    "joint_wrenches",
)
ROBOTS = {
    "ur5": ("ur5_robot.urdf", "fixed", {}),
    "panda": (
        "panda.urdf",
        "fixed",
        {"panda_finger_joint1": 0.0},
    ),
    "solo12": ("solo12.urdf", "free", {}),
    "hyq": ("hyq_no_sensors.urdf", "free", {}),
    "falcon_bravo7": ("falcon_bravo7_no_ee.urdf", "free", {}),
    "talos": ("talos_reduced.urdf", "free", {}),
}
CHAINS = (1, 2, 4, 8, 16, 32, 64)
QUADRATIC = 40_000  # instructions: above, the functions that grow with n² are left out of chains


def chain(n: int) -> Multibody:
    """Rods one on the other, hinges about y and z by turns."""
    tree, parent = Multibody(f"chain{n}"), "world"
    rod = SpatialInertia.cylinder(1.0, 0.05, 0.5, center_of_mass=[0.02, 0.01, 0.25])
    for i in range(n):
        at = [0.0, 0.0, 0.5 if i else 0.0]
        tree = tree.add_body(f"rod{i}", rod, "revolute", parent, at, axis="yz"[i % 2])
        parent = f"rod{i}"
    return tree


def measure(tree: Multibody, name: str, seconds: float = 0.05) -> dict[str, float]:
    """Instructions, trace time and time of one evaluation."""
    start = time.perf_counter()
    function = getattr(tree, name)
    traced = time.perf_counter() - start
    rng = np.random.default_rng(1)
    buffer, evaluate = function.function.buffer()
    values = [np.asarray(tree.configuration.random(rng))]
    values += [rng.normal(size=tree.nv) for _ in function.arguments[1:]]
    results = [np.zeros(function.function.size_out(i)) for i in range(len(function.results))]
    for i, value in enumerate(values):
        buffer.set_arg(i, memoryview(value))
    for i, result in enumerate(results):
        buffer.set_res(i, memoryview(result.ravel()))
    evaluate()
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        evaluate()
        count += 1
    return {
        "instructions": function.instructions,
        "trace_s": round(traced, 4),
        "evaluation_us": round(1e6 * spent / count, 3),
    }


def robots(folder: Path) -> dict[str, dict]:
    """Every function of every robot."""
    found = {}
    for name, (file, base, locked) in ROBOTS.items():
        path = folder / file
        if not path.is_file():
            print(f"{name}: {path} is not there, left out")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = Multibody.from_urdf(path, base=base, locked=locked, losses=False)
        found[name] = {"nv": tree.nv} | {f: measure(tree, f) for f in FUNCTIONS}
    return found


def chains() -> dict[str, dict]:
    """Growth with the number of bodies."""
    found: dict[str, dict] = {}
    large: set[str] = set()
    for n in CHAINS:
        tree = chain(n)
        found[str(n)] = {}
        for name in FUNCTIONS:
            if name in large:
                continue
            found[str(n)][name] = own = measure(tree, name)
            if own["instructions"] > QUADRATIC:
                large.add(name)
    return found


def table(title: str, results: dict[str, dict], key: str) -> str:
    """One row a function, one column a model."""
    lines = [f"{title:34}" + "".join(f"{model:>15}" for model in results)]
    for name in FUNCTIONS:
        cells = [result.get(name, {}).get(key, "") for result in results.values()]
        lines.append(f"{name:34}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    shared = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", type=Path, default=shared / "robots")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "tests/benchmarks/results/multibody.json"
    )
    parser.add_argument("--skip-chains", action="store_true")
    options = parser.parse_args()
    results = {"robots": robots(options.robots)}
    if not options.skip_chains:
        results["chains"] = chains()
    for kind, found in results.items():
        for key in ("instructions", "evaluation_us", "trace_s"):
            print(table(f"{kind}: {key}", found, key), end="\n\n")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
