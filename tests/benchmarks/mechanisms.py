"""Mechanisms of both papers: tables 8 and 10, cost of a step, large chains.

    python -m tests.benchmarks.mechanisms [--store] [--authors FOLDER] [--mechanism NAME] [PART …]

Parts are speed (tables 8 and 10 of Kissel, Taves and Negrut, on arrays and compiled), large,
and peers: a compiled step beside Exudyn's generalized-α at equal error, in an environment that this
makes, and beside the code of Kissel, Taves and Negrut, whose folder `--authors` names
(2021/ASME/rA-formulation/C1 of github.com/uwsbel/sbel-reproducibility). Without parts all are run.
`lgcontrol paper` has the figures.
`--store` writes numbers to tests/benchmarks/results.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lgcontrol import models
from lgcontrol.codegen import set_compile_policy
from lgcontrol.groups import SO3
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics.constrained.rotation_comparison import DirectAnalysis
from lgcontrol.models.papers._kissel import DRIVEN, as_in_the_paper
from tests.benchmarks._solver_peers import environment

RESULTS = Path(__file__).parent / "results"
ATTITUDES = ("rp", "rA", "re")
OPTIONS = {"authors": None, "mechanism": None}
CLOSED = 1e-9  # gap of joints that counts as kept beside Exudyn [m]
END = 0.6  # of the runs whose orders are fitted [s]


def chosen(*names):
    """Those that are asked for."""
    wanted = OPTIONS["mechanism"]
    return [name for name in names if wanted in (None, name)]


def cpu(run):
    begin = time.process_time()
    found = run()
    return time.process_time() - begin, found


def speed(seconds=25.0, steps=12):
    """Tables 8 and 10: CPU time of a step next to Euler parameters, on arrays and compiled.

    With the rules of the paper: matrices made once a step; kinematics from the last positions to
    1e-10, dynamics to 1e-3 on accelerations, h = 1e-3 s. All are run by turns, as often as the time
    allows, and the least of each counts.
    """
    set_compile_policy("eager")
    t, runs, found = 1e-3 * np.arange(steps), {}, {}
    for name, attitude in itertools.product(chosen(*DRIVEN, "double_pendulum"), ATTITUDES):
        rows = found.setdefault(name, {}).setdefault(attitude, {})
        mechanism = (DRIVEN.get(name) or models.double_pendulum_mechanism)()
        if name in DRIVEN:
            made = as_in_the_paper(name, attitude, matrix="step", is_predicted=False)
            runs[name, attitude, "kinematics_ms", 1e3] = partial(made.kinematics, t, 1e-10)
            made = as_in_the_paper(name, attitude, matrix="step")
        else:
            made = DirectAnalysis(mechanism, attitude, matrix="step")
        runs[name, attitude, "dynamics_ms", 1e3] = partial(made.dynamics, 1e-3, steps, 1e-3)
        rows["dynamics_iterations"] = float(made.dynamics(1e-3, 200, 1e-3).iterations.mean())
        strict = replace(made, matrix="iteration").dynamics(1e-3, 200, 1e-5)
        rows["iterations_to_1e-5"] = float(strict.iterations.mean())
        own = mechanism.formulated(attitude)
        march = partial(own.march, own.state(), 1e-3)
        rows["compiled_solved"] = bool(march(2000, implicit_euler3()).is_success)
        runs[name, attitude, "compiled_us", 1e6] = partial(march, 10 * steps, implicit_euler3())
    print("ready")
    least, begin = dict.fromkeys(runs, np.inf), time.monotonic()
    while time.monotonic() < begin + seconds:
        for key, run in runs.items():
            least[key] = min(least[key], cpu(run)[0])
    for (name, attitude, key, unit), spent in least.items():
        rows = found[name][attitude]
        rows[key] = spent * unit / (10 * steps if key == "compiled_us" else steps)
        rows[f"{key}_speedup"] = least[name, "rp", key, unit] / spent
    for name, attitude in itertools.product(found, ATTITUDES):
        print(name, attitude, {k: round(v, 2) for k, v in found[name][attitude].items()})
    return found


def compiled(mechanism, method, steps, h=1e-3):
    """CPU time of a compiled step in s, the motion, and the largest last correction of a step."""
    x0 = mechanism.state()
    run = mechanism.march(x0, h, steps, method)
    seconds = min(cpu(lambda: mechanism.march(x0, h, steps, method))[0] for _ in range(25)) / steps
    sizes = np.maximum(
        np.abs(run.a[1:]).max(axis=1), np.abs(run.multipliers[1:]).max(axis=1, initial=0.0)
    )
    return seconds, run, float((run.residual * 1e-6 * (1 + sizes)).max())


def stated(mechanism):
    """Bodies and joints for Exudyn: where each joint is, its axes, and what it holds."""
    bodies = {}
    for name, body in mechanism.bodies.items():
        bodies[name] = {
            "mass": body.inertia.mass,
            "inertia": body.inertia.inertia.tolist(),
            "position": body.pose[:3].tolist(),
            "rotation": SO3.matrix(body.pose[3:]).tolist(),
            "velocity": body.rates[:3].tolist(),
            "angular_velocity": body.rates[3:].tolist(),
        }
    joints = []
    for joint in mechanism.joints.values():
        body, point = joint.point
        r, A = (np.array(bodies[body][key]) for key in ("position", "rotation"))
        # Revolute joints of the double pendulum turn about the z axis of their last body.
        held = [1, 1, 1, 0, 0, 0] if len(joint.rows) == 3 else [1, 1, 1, 1, 1, 0]
        others = [other for other in joint.bodies if other not in ("ground", body)]
        names = [*(others or ["ground"]), body]
        joints.append(
            {
                "bodies": names,
                "point": (r + A @ np.asarray(point)).tolist(),
                "axes": A.tolist(),
                "held": held,
            }
        )
    return {"bodies": bodies, "joints": joints, "gravity": mechanism.gravity.tolist()}


def exudyn(name, steps=2000, h=1e-3, radius=0.8):
    """The same motion by both programs at the same step, and how far each is from a fine one."""
    mechanism = getattr(models, f"{name}_mechanism")()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mechanism.json"
        file.write_text(json.dumps(stated(mechanism)))
        own = [str(Path(__file__).with_name("_exudyn_peer.py")), str(file)]
        try:
            python = str(environment("exudyn", ("exudyn",)))
            told = subprocess.run(
                [python, *own, str(h), str(steps), str(radius)], check=True, capture_output=True
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            return {"exudyn": f"not run: {error}"}
    peer = json.loads(told.splitlines()[-1])
    size = 7 * len(mechanism.bodies)

    def places(run):
        return np.array([pose[:3] for pose in mechanism.poses(run.x[-1][:size]).values()])

    fine = mechanism.march(mechanism.state(), h / 10, 10 * steps, generalized_alpha(0.95))
    exact = places(fine)

    def off(r):
        return float(np.abs(np.asarray(r) - exact).max())

    found = {"exudyn": peer["version"], "exudyn_us": 1e6 * peer["seconds"]}
    found["exudyn_error_m"] = off([peer["end"][body][0] for body in mechanism.bodies])
    for iterations in (1, 2, 3):
        method = generalized_alpha(radius, iterations=iterations)
        seconds, run, last = compiled(mechanism, method, steps, h)
        error = off(places(run))
        gap = float(np.abs(mechanism.dynamics(0.0, run.x[-1][:size], 0 * run.a[-1]).phi).max())
        own = {"us": 1e6 * seconds, "error_m": error, "gap_m": gap, "correction": last}
        found[f"here_{iterations}"] = own
        if gap <= CLOSED and "here_us" not in found:
            # Both are of order two: steps of this length make the errors equal.
            longer = np.sqrt(found["exudyn_error_m"] / error)
            found |= {"here_us": own["us"], "here_error_m": error}
            found["exudyn_over_here"] = peer["seconds"] / seconds * longer
    return found


def authors(folder, name, steps=300):
    """A step of the paper's scheme by its authors' code, and compiled to the same tolerance."""
    if folder is None:
        return {"authors": "not run: --authors names no folder"}
    mechanism = (DRIVEN.get(name) or models.double_pendulum_mechanism)()
    script = str(Path(__file__).with_name("_kissel_peer.py"))
    theirs = {"pendulum": "single_pendulum"}.get(name, name)
    found = {}
    for form in ("rA", "rp"):
        given = [sys.executable, script, str(folder), theirs, form, str(steps)]
        try:
            told = subprocess.run(given, check=True, capture_output=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            return {"authors": f"not run: {error}"}
        peer = json.loads(told.splitlines()[-1])
        found[f"authors_{form}_ms"] = 1e3 * peer["seconds"]
        found[f"authors_{form}_iterations"] = peer["iterations"]
    for iterations in (1, 2, 3, 4, 5):
        method = implicit_euler3(iterations=iterations)
        seconds, run, last = compiled(mechanism, method, 10 * steps)
        if run.is_success and last <= 1e-5:
            found |= {"here_us": 1e6 * seconds, "here_iterations": iterations, "correction": last}
            found["authors_rA_over_here"] = 1e3 * found["authors_rA_ms"] / found["here_us"]
            break
    return found


def peers():
    """Beside Exudyn and the authors' code, each in this run."""
    set_compile_policy("eager")
    found = {}
    for name in chosen("double_pendulum", "three_bar"):
        found[f"exudyn {name}"] = exudyn(name)
        print("exudyn", name, found[f"exudyn {name}"])
    for name in chosen(*DRIVEN, "double_pendulum"):
        found[f"authors {name}"] = authors(OPTIONS["authors"], name)
        print("authors", name, found[f"authors {name}"])
    return found


def large():
    """CPU time and memory of marches of chains, by sparse steps and by written-out ones.

    Each in a process of its own: the set-up, that of the compiler with it, a step after that, and
    what is checked before.
    """
    found = {}
    for n in (3, 5, 10, 20, 50, 100, 200, 500):
        for kind in ("sparse", "written out", "compiled"):
            if n > {"written out": 50, "compiled": 20}.get(kind, n):
                continue  # minutes of set-up
            own = [sys.executable, "-c", LARGE_RUN, str(n), kind]
            told = subprocess.run(own, check=True, capture_output=True).stdout
            found[f"{n} {kind}"] = json.loads(told.splitlines()[-1])
            print("large", n, kind, found[f"{n} {kind}"])
    ratio = found["500 sparse"]["step_ms"] / found["100 sparse"]["step_ms"]
    found["exponent"] = float(np.log(ratio) / np.log(5))
    print("exponent", found["exponent"])
    return found


LARGE_RUN = """
import json, resource, sys, time
import numpy as np
from lgcontrol.codegen import set_compile_policy
from lgcontrol.integrators import generalized_alpha
from lgcontrol.mechanics.constrained import _mechanism
from tests.mechanics.test_large_mechanisms import chain
n = int(sys.argv[1])
if sys.argv[2] == "compiled":
    set_compile_policy("eager")
_mechanism.LARGE_MECHANISM = 0 if sys.argv[2] == "sparse" else n + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mechanism = chain(n)
x0 = np.r_[mechanism.coordinates(), np.zeros(6 * n)]
def spent():
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
marks = [spent()]
for steps in (10, 10, 60, 60):
    assert mechanism.march(x0, 1e-3, steps, generalized_alpha()).is_success
    marks.append(spent())
first, short, _, long = np.diff(marks)
print(json.dumps({
    "set_up_s": first - short,
    "step_ms": 1e3 * (long - short) / 50,
    "checks_s": short - 10 * (long - short) / 50,
    "memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
}))
"""


PARTS = {
    "speed": speed,
    "large": large,
    "peers": peers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--authors", type=Path, metavar="FOLDER")
    parser.add_argument("--mechanism", help="of speed and peers, this one alone")
    given = parser.parse_args()
    OPTIONS.update(authors=given.authors, mechanism=given.mechanism)
    store = RESULTS / "mechanisms.json"
    for part in given.parts or PARTS:
        found = PARTS[part]()
        if given.store:
            results = json.loads(store.read_text()) if store.exists() else {}
            results[part] = results.get(part, {}) | found if given.mechanism else found
            store.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
