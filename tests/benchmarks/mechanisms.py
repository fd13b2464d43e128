"""Mechanisms of both papers: tables 8 to 10, orders, drifts, cost of a step, large chains.

    python -m tests.benchmarks.mechanisms [--store] [PART …]

Parts are iterations (table 9), speed (tables 8 and 10, on arrays and compiled), orders (figures 3
and 5 to 7 of Kissel, Taves and Negrut), drifts (figures 2 to 15 of Müller and Terze), large.
Without parts all are run. `--store` writes numbers and figures to tests/benchmarks/results.
"""

import argparse
import json
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from lgcontrol import models
from lgcontrol.codegen import set_compile_policy
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from tests.mechanics.test_large_mechanisms import chain

RESULTS = Path(__file__).parent / "results"
DRIVEN = {
    "pendulum": models.pendulum_mechanism,
    "four_link": models.four_link_mechanism,
    "slider_crank": models.slider_crank_mechanism,
}
ATTITUDES = ("rp", "rA", "re")
END = 0.6  # of the runs whose orders are fitted [s]
SPEEDS = {"four_link": np.pi, "slider_crank": 2 * np.pi}  # of the drivers, for the switch


def cpu(run):
    begin = time.process_time()
    found = run()
    return time.process_time() - begin, found


def direct(name, attitude, **options):
    """The paper's set-up: its driver, and another one where that is near a dead point."""
    mechanism = DRIVEN[name](drive="paper")
    if name in SPEEDS:
        rate = SPEEDS[name]
        other = DRIVEN[name]().joints["driver"]
        options["switched"] = (other, lambda t: abs(abs(np.sin(rate * t)) - 1) < 0.1)
    return mechanism.direct(attitude, **options)


def iterations():
    """Table 9: mean number of iterations of the position analysis, h = 1e-3 s, 1e-10."""
    paper = {"pendulum": 3.80, "four_link": 4.50, "slider_crank": 4.70}
    seconds = {"pendulum": 3.0, "four_link": 2.0, "slider_crank": 1.0}
    found = {}
    for name in DRIVEN:
        t = 1e-3 * np.arange(round(seconds[name] / 1e-3) + 1)
        run = direct(name, "rA", matrix="step", is_predicted=False).kinematics(t, 1e-10)
        found[name] = {"paper": paper[name], "here": float(run.iterations[1:].mean())}
        print("table 9", name, found[name], run.status.value)
    return found


def speed(steps=60):
    """Tables 8 and 10: CPU time of a step next to Euler parameters, and compiled."""
    set_compile_policy("eager")
    found = {}
    for name in [*DRIVEN, "double_pendulum"]:
        rows = {}
        for attitude in ATTITUDES:
            if name in DRIVEN:
                made = direct(name, attitude)
                kinematics = min(
                    cpu(lambda made=made: made.kinematics(1e-3 * np.arange(steps)))[0]
                    for _ in range(2)
                )
            else:
                made, kinematics = models.double_pendulum_mechanism().direct(attitude), np.nan
            dynamics = min(
                cpu(lambda made=made: made.dynamics(1e-3, steps, 1e-5))[0] for _ in range(2)
            )
            mechanism = DRIVEN[name]() if name in DRIVEN else models.double_pendulum_mechanism()
            word = "SO3xR3" if attitude == "rA" else attitude
            x0 = mechanism.state(word)
            method = implicit_euler3()
            mechanism.march(x0, 1e-3, 2000, method, word)
            begin = time.process_time()
            run = mechanism.march(x0, 1e-3, 2000, method, word)
            compiled = time.process_time() - begin
            rows[attitude] = {
                "kinematics_ms": kinematics / steps * 1e3,
                "dynamics_ms": dynamics / steps * 1e3,
                "compiled_us": compiled / 2000 * 1e6,
                "compiled_solved": bool(run.is_solved),
            }
        for attitude in ATTITUDES:
            for key in ("kinematics_ms", "dynamics_ms", "compiled_us"):
                ratio = rows["rp"][key] / rows[attitude][key]
                rows[attitude][f"{key}_speedup"] = ratio
            print(name, attitude, {k: round(v, 2) for k, v in rows[attitude].items()})
        found[name] = rows
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
            x0, errors = mechanism.state(word), []
            for h in hs:
                run = mechanism.march(x0, h, round(END / h), implicit_euler3(iterations=5), word)
                nq = len(mechanism.coordinates(word))
                n = mechanism.equations(word).velocity.dim
                rates = mechanism.rates(run.x[-1][:nq], run.x[-1][nq : nq + n], word)
                off = max(np.abs(rates[b] - wanted[b])[:3].max() for b in rates)
                errors.append(off if run.is_solved else np.nan)
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
    """Gaps of the joints and drift of the energy by index 1 with RK4, on both groups."""
    names = ("heavy_top", "spherical_double_pendulum", "floating_pair", "three_bar")
    figure, axes = plt.subplots(2, 4, figsize=(15, 6.5), constrained_layout=True)
    found = {}
    for column, name in zip(axes.T, names, strict=True):
        mechanism = getattr(models, f"{name}_mechanism")()
        for word, style in (("SE3", "-"), ("SO3xR3", "--")):
            q = mechanism.coordinates(word)
            system = mechanism.system(word, stabilization="none", at=q)
            x0 = np.concatenate([q, mechanism.velocities(q, formulation=word)])
            run = system.rollout(x0, dt=1e-3, steps=round(seconds / 1e-3))
            joints = list(mechanism.joints)
            gaps = np.linalg.norm(
                system.invariants(run.x)[:, : 3 * len(joints)].reshape(-1, len(joints), 3), axis=2
            )
            energy = sum(
                system.quantities[kind](0.0, run.x).ravel()
                for kind in ("kinetic_energy", "potential_energy")
            )
            for k, joint in enumerate(joints):
                gap = np.maximum(gaps[:, k], 1e-17)
                column[0].semilogy(run.t, gap, style, color=f"C{k}", label=f"{joint}, {word}")
            column[1].plot(run.t, energy - energy[0], style, color="C3", label=word)
            found[f"{name} {word}"] = {
                "gap": dict(zip(joints, gaps.max(axis=0).tolist(), strict=True)),
                "energy": float(np.abs(energy - energy[0]).max()),
            }
            print("drift", name, word, found[f"{name} {word}"])
        column[0].set(title=name.replace("_", " "), ylabel="gap of the joint [m]")
        column[1].set(xlabel="t [s]", ylabel="drift of the energy [J]")
        for axis in column:
            axis.legend(fontsize=7)
            axis.grid(True, alpha=0.3)
    return found, figure


def large():
    """CPU time of an iteration of chains, whole and of the factor and solve alone."""
    found = {}
    for n in (100, 300, 1000):
        mechanism = chain(n).large()
        mechanism.march(1e-3, 1, generalized_alpha())
        solve, spent = mechanism.solve, []

        def timed(*given, solve=solve, spent=spent):
            seconds, x = cpu(lambda: solve(*given))
            spent.append(seconds)
            return x

        mechanism.solve = timed
        seconds, run = cpu(
            lambda mechanism=mechanism: mechanism.march(1e-3, 5, generalized_alpha())
        )
        found[n] = {
            "iteration_ms": seconds / run.iterations.sum() * 1e3,
            "solve_ms": float(np.median(spent)) * 1e3,
        }
        print("large", n, found[n])
    for key in ("iteration_ms", "solve_ms"):
        found[f"exponent_{key}"] = float(np.log10(found[1000][key] / found[100][key]))
        print("exponent", key, found[f"exponent_{key}"])
    return found


PARTS = {
    "iterations": iterations,
    "speed": speed,
    "orders": orders,
    "drifts": drifts,
    "large": large,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args()
    store = RESULTS / "mechanisms.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    for part in given.parts or PARTS:
        found = PARTS[part]()
        if isinstance(found, tuple):
            found, figure = found
            if given.store:
                figure.savefig(RESULTS / f"mechanisms_{part}.png", dpi=110)
        results[part] = found
    if given.store:
        store.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
