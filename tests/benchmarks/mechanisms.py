"""Mechanisms of both papers: tables 8 to 10, orders, drifts, cost of a step, large chains.

    python -m tests.benchmarks.mechanisms [--store] [--authors FOLDER] [--mechanism NAME] [PART …]

Parts are iterations (table 9), speed (tables 8 and 10, on arrays and compiled), orders (figures 3
and 5 to 7 of Kissel, Taves and Negrut), convergence (their figures 2 and 4), heavy_top (figures 2
and 3 of Müller and Terze), drifts (their figures 5 to 15), systems (their figures 1, 4, 8, 11),
large, and peers: a compiled step beside Exudyn's generalized-α at equal error, in an environment
that this makes, and beside the code of Kissel, Taves and Negrut, whose folder `--authors` names
(2021/ASME/rA-formulation/C1 of github.com/uwsbel/sbel-reproducibility). Without parts all are run.
`--store` writes numbers and figures to tests/benchmarks/results.
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

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from lgcontrol import models
from lgcontrol.codegen import set_compile_policy
from lgcontrol.groups import SO3
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics.constrained.rotation_comparison import DirectAnalysis
from tests.benchmarks._solver_peers import environment
from tests.mechanics.test_index3 import DRIVEN, TABLE_9, as_in_the_paper

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


def iterations():
    """Table 9: mean number of iterations of the position analysis, h = 1e-3 s, 1e-10."""
    found = {}
    for name, (seconds, paper) in TABLE_9.items():
        t = 1e-3 * np.arange(round(seconds / 1e-3) + 1)
        run = as_in_the_paper(name, "rA", matrix="step", is_predicted=False).kinematics(t, 1e-10)
        found[name] = {"paper": paper, "here": float(run.iterations[1:].mean())}
        print("table 9", name, found[name], run.status.value)
    return found


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


def orders():
    """Velocity errors at the end against h: the driven mechanisms, and the double pendulum."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.8), constrained_layout=True)
    hs, found = [8e-3, 4e-3, 2e-3, 1e-3], {}
    for axis, name in zip(axes, DRIVEN, strict=False):
        mechanism = DRIVEN[name]()
        exact = mechanism.kinematics(np.linspace(0, END, 31))
        wanted = mechanism.rates(exact.q[-1], exact.v[-1])
        for word, style in (("SO3xR3", "o-"), ("rp", "s--"), ("re", "^:")):
            own = mechanism.formulated(word)
            x0, errors = own.state(), []
            for h in hs:
                run = own.march(x0, h, round(END / h), implicit_euler3(iterations=5))
                nq, n = own.mechanics.configuration.nq, own.mechanics.configuration.dim
                rates = own.rates(run.x[-1][:nq], run.x[-1][nq : nq + n])
                off = max(np.abs(rates[b] - wanted[b])[:3].max() for b in rates)
                errors.append(off if run.is_success else np.nan)
            slope = float(np.polyfit(np.log(hs), np.log(errors), 1)[0])
            told = f"order {slope:.2f}" if np.isfinite(slope) else "singular on the way"
            found[f"{name} {word}"] = {"errors": errors, "order": slope}
            label = {"SO3xR3": "rA", "re": "rε"}.get(word, word)
            axis.loglog(hs, errors, style, label=f"{label} ({told})")
            print("order", name, word, round(slope, 3))
        axis.set(title=name.replace("_", " "), xlabel="h [s]", ylabel="error of ṙ [m/s]")
    mechanism = models.double_pendulum_mechanism()
    x0, ends = mechanism.state(), {}
    fine = mechanism.march(x0, 5e-4, 1200, generalized_alpha(0.95)).x[-1][9]
    for label, method in (
        ("rA, implicit Euler", implicit_euler3()),
        ("generalized-α", generalized_alpha()),
    ):
        ends[label] = [
            abs(mechanism.march(x0, h, round(END / h), method).x[-1][9] - fine) for h in hs
        ]
        slope = float(np.polyfit(np.log(hs), np.log(ends[label]), 1)[0])
        axes[3].loglog(hs, ends[label], "o-", label=f"{label} (order {slope:.2f})")
        found[f"double_pendulum {label}"] = {"errors": ends[label], "order": slope}
        print("order double pendulum", label, round(slope, 3))
    axes[3].set(title="double pendulum", xlabel="h [s]", ylabel="Δz of the second rod [m]")
    for axis in axes:
        axis.legend(fontsize=8)
        axis.grid(True, which="both", alpha=0.3)
        axis.set_xticks(hs, [f"{1e3 * h:g}e-3" for h in hs])
        axis.minorticks_off()
    return found, figure


def drifts(seconds=1.0):
    """Gaps of the joints by components, and drift of the energy, by index 1 with RK4."""
    names = ("heavy_top", "spherical_double_pendulum", "floating_pair", "three_bar")
    figure, axes = plt.subplots(4, 4, figsize=(15, 11), constrained_layout=True)
    found = {}
    for column, name in zip(axes.T, names, strict=True):
        for word, style in (("SE3", "-"), ("SO3xR3", "--")):
            mechanism = getattr(models, f"{name}_mechanism")().formulated(word)
            q = mechanism.coordinates()
            system = mechanism.system(stabilization="none", at=q)
            x0 = np.concatenate([q, mechanism.velocities(q)])
            run = system.rollout(x0, dt=1e-3, steps=round(seconds / 1e-3))
            joints = list(mechanism.joints)
            gaps = system.invariants(run.x)[:, : 3 * len(joints)].reshape(-1, len(joints), 3)
            energy = sum(
                system.quantities[kind](0.0, run.x).ravel()
                for kind in ("kinetic_energy", "potential_energy")
            )
            column[0].plot(run.t, energy - energy[0], style, color="C3", label=word)
            for k, joint in enumerate(joints):
                for i, axis in enumerate("xyz"):
                    label = f"{axis}, {word}"
                    column[1 + k].plot(run.t, gaps[:, k, i], style, color=f"C{i}", label=label)
                column[1 + k].set(title=f"joint {joint}", ylabel="gap [m]")
            norms = np.linalg.norm(gaps, axis=2)
            found[f"{name} {word}"] = {
                "gap": dict(zip(joints, norms.max(axis=0).tolist(), strict=True)),
                "energy": float(np.abs(energy - energy[0]).max()),
            }
            print("drift", name, word, found[f"{name} {word}"])
        column[0].set(title=name.replace("_", " "), ylabel="drift of the energy [J]")
        for axis in column[1 + len(joints) :]:
            axis.set_axis_off()
        for axis in column[: 1 + len(joints)]:
            axis.set_xlabel("t [s]")
            axis.legend(fontsize=7)
            axis.grid(True, alpha=0.3)
    return found, figure


def heavy_top(seconds=5.0):
    """Figures 2 and 3 of Müller and Terze: the pivot's gap by components, and the energy."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), constrained_layout=True)
    found = {}
    for k, word in enumerate(("SE3", "SO3xR3")):
        mechanism = models.heavy_top_mechanism().formulated(word)
        q = mechanism.coordinates()
        system = mechanism.system(stabilization="none", at=q)
        x0 = np.concatenate([q, mechanism.velocities(q)])
        for h, style in ((1e-3, "-"), (2e-3, "--"), (4e-3, ":")):
            run = system.rollout(x0, dt=h, steps=round(seconds / h))
            gap = system.invariants(run.x)[:, :3]
            energy = system.quantities["kinetic_energy"](0.0, run.x).ravel()
            share = np.abs(energy / energy[0] - 1)
            axes[2 + k].semilogy(run.t[1:], share[1:], style, color="C3", label=f"h = {h:g} s")
            found[f"{word} {h:g}"] = {
                "gap": float(np.abs(gap).max()),
                "energy_J": float(np.abs(energy - energy[0]).max()),
                "energy_share": float(share.max()),
            }
            if h == 1e-3:
                for i, axis in enumerate("xyz"):
                    axes[k].plot(run.t, gap[:, i], color=f"C{i}", label=axis)
            print("heavy top", word, h, found[f"{word} {h:g}"])
        axes[k].set(title=f"Fig. 2: pivot, {word}, h = 1e-3 s", ylabel="gap [m]")
        axes[2 + k].set(title=f"Fig. 3: energy, {word}", ylabel="|T − T₀| / T₀", ylim=(1e-10, 1e-3))
    for axis in axes:
        axis.set_xlabel("t [s]")
        axis.legend(fontsize=8)
        axis.grid(True, alpha=0.3)
    return found, figure


def convergence(seconds=2.0):
    """Figures 2 and 4 of Kissel, Taves and Negrut: iterations of the four-link over a turn."""
    hs = [4e-2, 2e-2, 1e-2, 5e-3]
    found = {}
    for attitude in ATTITUDES:
        kinematics, dynamics = [], []
        for h in hs:
            t = h * np.arange(round(seconds / h) + 1)
            made = as_in_the_paper("four_link", attitude, matrix="step", is_predicted=False)
            run = made.kinematics(t, 1e-11)
            solved = len(run.iterations) == len(t)
            kinematics.append(float(run.iterations[1:].mean()) if solved else np.nan)
            made = as_in_the_paper("four_link", attitude, matrix="step")
            run = made.dynamics(h, len(t) - 1, 1e-11 / h**2)
            solved = run.is_success
            dynamics.append(float(run.iterations[1:].mean()) if solved else np.nan)
            print("iterations", attitude, h, kinematics[-1], dynamics[-1], run.status.value)
        found[attitude] = {"h": hs, "kinematics": kinematics, "dynamics": dynamics}
    return found, drawn_convergence(found)


def drawn_convergence(found):
    """Iterations against the step."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), constrained_layout=True)
    titles = {
        "kinematics": "Fig. 2: four link, kinematics, to 1e-11",
        "dynamics": "Fig. 4: four link, dynamics, Θ h² = 1e-11",
    }
    for axis, (kind, title) in zip(axes, titles.items(), strict=True):
        for (attitude, each), style in zip(found.items(), ("s--", "o-", "^:"), strict=True):
            label = {"re": "rε"}.get(attitude, attitude)
            axis.semilogx(each["h"], each[kind], style, label=label)
        axis.set(title=title, xlabel="h [s]", ylabel="iterations of a step", ylim=(0, None))
        axis.set_xticks(each["h"], [f"{h:g}" for h in each["h"]])
        axis.minorticks_off()
        axis.legend()
        axis.grid(True, alpha=0.3)
    return figure


def systems():
    """Figures 1, 4, 8 and 11 of Müller and Terze: the four systems, and how their centres move."""
    names = ("heavy_top", "spherical_double_pendulum", "floating_pair", "three_bar")
    figure = plt.figure(figsize=(15, 4), constrained_layout=True)
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    edges = [(a, b) for a, b in itertools.combinations(range(8), 2) if (a ^ b) in (1, 2, 4)]
    for k, name in enumerate(names):
        mechanism = getattr(models, f"{name}_mechanism")()
        axis = figure.add_subplot(1, 4, k + 1, projection="3d")
        q = mechanism.coordinates()
        run = mechanism.system(at=q).rollout(mechanism.state(q), dt=2e-3, steps=500)
        for i, body in enumerate(mechanism.bodies.values()):
            J, m = np.diag(body.inertia.inertia), body.inertia.mass
            sides = np.sqrt(6 * (J.sum() - 2 * J) / m)  # of a box with these moments
            at = body.pose[:3] + (corners * sides) @ SO3.matrix(body.pose[3:]).T
            for edge in edges:
                axis.plot(*at[list(edge)].T, color=f"C{i}", linewidth=1.2)
            axis.plot(*run.x[:, 7 * i : 7 * i + 3].T, color=f"C{i}", linewidth=0.6, alpha=0.7)
        for joint in stated(mechanism)["joints"]:
            axis.plot(*np.array([joint["point"]]).T, "ko", markersize=5)
        axis.set(title=name.replace("_", " "), xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
        axis.set_aspect("equal")
        axis.locator_params(nbins=4)
    return {"drawn": list(names)}, figure


def large():
    """CPU time and memory of marches of chains, by sparse steps and by written-out ones.

    Each in a process of its own: until the first step is done (set-up), and a step after that.
    """
    found = {}
    for n in (10, 20, 50, 100, 200, 500):
        for kind in ("sparse", "written out"):
            if kind == "written out" and n > 100:
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
from lgcontrol.integrators import generalized_alpha
from lgcontrol.mechanics.constrained import _mechanism
from tests.mechanics.test_large_mechanisms import chain
n = int(sys.argv[1])
_mechanism.LARGE = 0 if sys.argv[2] == "sparse" else n + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mechanism = chain(n)
x0 = np.r_[mechanism.coordinates(), np.zeros(6 * n)]
marks = [time.process_time()]
for steps in (1, 10):
    assert mechanism.march(x0, 1e-3, steps, generalized_alpha()).is_success
    marks.append(time.process_time())
print(json.dumps({
    "set_up_s": marks[1] - marks[0],
    "step_ms": 100 * (marks[2] - marks[1]),
    "memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
}))
"""


PARTS = {
    "iterations": iterations,
    "speed": speed,
    "orders": orders,
    "drifts": drifts,
    "heavy_top": heavy_top,
    "convergence": convergence,
    "systems": systems,
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
        if isinstance(found, tuple):
            found, figure = found
            if given.store:
                figure.savefig(RESULTS / f"mechanisms_{part}.png", dpi=110)
        if given.store:
            results = json.loads(store.read_text()) if store.exists() else {}
            results[part] = results.get(part, {}) | found if given.mechanism else found
            store.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
