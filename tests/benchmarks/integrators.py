"""Conservation and cost of the integrators: a free asymmetric body for a million steps.

    python -m tests.benchmarks.integrators [--steps 1000000] [--json FILE]

For each method and three step lengths: the largest deviation of the quaternion from unit length,
the drift rates of energy and spatial angular momentum (relative, per second, by least squares over
a hundred samples), the order with which the rates fall, and the time of a step in CasADi's
interpreter. A second table gives the error of a heavy top after one second against the number of
evaluations of the field, for the fixed-step methods and for `integrate`.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.groups import SO3
from lgcontrol.integrators import METHODS, Method
from lgcontrol.integrators._internal import Problem

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run by its path
    sys.path.insert(0, str(ROOT))
from tests.integrators._problems import (  # noqa: E402
    BODY,
    energy,
    free_body,
    heavy_top,
    integrate,
    momentum,
    run,
    slope,
    stepper,
)

INERTIA = np.array([2.0, 3.0, 4.5])
START = np.concatenate([SO3.identity, [0.3, 1.0, 0.6]])  # near the intermediate axis: it tumbles

# Step lengths [s] by order: after a million steps the drift is above rounding and below a percent.
LENGTHS = {1: (2e-4, 1e-4, 5e-5), 2: (0.02, 0.01, 0.005), 3: (0.02, 0.01, 0.005)}
DEFAULT_LENGTHS = (0.1, 0.05, 0.025)
SAMPLES = 100


# Those for any field; steps for mechanical systems alone have none here.
GENERAL = [method for method in METHODS.values() if not (method.needs_structure or method.solves)]


def lengths(method: Method) -> tuple[float, ...]:
    return LENGTHS.get(method.order, DEFAULT_LENGTHS)


def drift(method: Method, dt: float, steps: int, samples: int = SAMPLES) -> dict:
    """Follow the free body; rates are relative and per second."""
    many = stepper(method, Problem.of(BODY, free_body(INERTIA))).fold(steps // samples)
    state, states = ca.DM([*START, 0.0]), [START]
    started = time.perf_counter()
    for _ in range(samples):
        state = many(state, dt)
        states.append(np.asarray(state).ravel()[:-1])
    seconds = time.perf_counter() - started
    x = np.array(states)
    t = dt * (steps // samples) * np.arange(samples + 1)
    E, L = energy(INERTIA, x), momentum(INERTIA, x)
    lost, moved = E / E[0] - 1, (L - L[0]) / np.linalg.norm(L[0])
    return {
        "method": method.name,
        "order": method.order,
        "dt": dt,
        "steps": steps,
        "unit_norm_error": float(np.abs(np.linalg.norm(x[:, :4], axis=-1) - 1).max()),
        "energy_drift": float(abs(lost[-1])),
        "momentum_drift": float(np.linalg.norm(moved[-1])),
        # lines through signed values: what oscillates within a period averages out
        "energy_rate": float(abs(np.polyfit(t, lost, 1)[0])),
        "momentum_rate": float(np.linalg.norm(np.polyfit(t, moved, 1)[0])),
        "nanoseconds": 1e9 * seconds / steps,
    }


def rate_orders(rows: list[dict]) -> tuple[float, float]:
    """Orders with which the drift rates of energy and momentum fall with the step."""
    inverse = [1 / row["dt"] for row in rows]
    return (
        slope(inverse, [row["energy_rate"] for row in rows]),
        slope(inverse, [row["momentum_rate"] for row in rows]),
    )


def work_precision() -> list[dict]:
    """Errors of the heavy top after one second against evaluations of the field."""
    data = json.loads((ROOT / "tests" / "data" / "rotating_bodies.json").read_text())["heavy_top"]
    case = data["cases"][1]
    field = heavy_top(
        data["mass"], data["inertia_about_pivot"], data["centre_of_mass"], case["gravity"]
    )
    start = np.concatenate([SO3.identity, case["omega0"]])
    end = next(s for s in case["samples"] if s["t"] == 1.0)
    rows = []

    def add(name: str, evaluations: int, x: np.ndarray) -> None:
        attitude = float(np.abs(SO3.matrix(x[:4]) - end["R"]).max())
        rows.append({"method": name, "evaluations": evaluations, "error_R": attitude})

    for method in GENERAL:
        for count in (1000, 10000):
            x = run(method, BODY, field, start, 1.0, count)
            add(method.name, count * method.stages, x)
    for tolerance in (1e-6, 1e-9, 1e-12):
        motion = integrate(BODY, field, start, (0, 1), rtol=tolerance, atol=tolerance)
        add(f"integrate {tolerance:.0e}", motion.statistics.evaluations, motion.x[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    options = parser.parse_args()
    report = {"drift": [], "rate_orders": {}, "heavy_top": work_precision()}
    print(f"{options.steps} steps of a free body; rates are relative and per second")
    print(
        f"{'method':<18}{'dt':>8}{'|q| − 1':>10}{'E rate':>10}{'L rate':>10}{'E lost':>10}"
        f"{'L moved':>10}{'ns/step':>9}"
    )
    for method in GENERAL:
        rows = [drift(method, dt, options.steps) for dt in lengths(method)]
        for r in rows:
            print(
                f"{method.name:<18}{r['dt']:>8g}{r['unit_norm_error']:>10.1e}"
                f"{r['energy_rate']:>10.1e}{r['momentum_rate']:>10.1e}{r['energy_drift']:>10.1e}"
                f"{r['momentum_drift']:>10.1e}{r['nanoseconds']:>9.0f}"
            )
        of_energy, of_momentum = rate_orders(rows)
        print(
            f"{'':<18}declared order {method.order}; rates fall with order "
            f"{of_energy:.2f} (energy), {of_momentum:.2f} (momentum)"
        )
        report["drift"] += rows
        report["rate_orders"][method.name] = {"energy": of_energy, "momentum": of_momentum}
    print(f"\nheavy top after 1 s\n{'method':<18}{'evaluations':>12}{'error of R':>12}")
    for row in report["heavy_top"]:
        print(f"{row['method']:<18}{row['evaluations']:>12}{row['error_R']:>12.1e}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
