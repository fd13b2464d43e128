"""The unstable rotation in unified velocity coordinates: error table, cost of a step.

    python -m tests.benchmarks.unified_velocity [--store]

A box about its middle axis (Holzinger, Gerstmayr, Schöberl, section 6) by RK4 with h = 1/10 …
1/5120, in both sets of points and in twists: errors of the angular velocity and det R at t = 1
next to the stored table, and the time of a step in the three coordinates, plain and with a mass
that is a parameter. What of the errors is truncation and what rounding: the same operations with
40 digits, and in doubles from starts that differ in their last digits. `--store` writes numbers
to tests/benchmarks/results; `lgcontrol paper` draws the figures.
"""

import argparse
import json
import operator
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import casadi as ca
import mpmath
import numpy as np

from lgcontrol import codegen
from lgcontrol.codegen._internal import solve_symmetric
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import RigidBody, SpatialInertia
from lgcontrol.mechanics.representations import UnifiedVelocity
from lgcontrol.systems import System
from lgcontrol.systems._rollout import rollout_function

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[2]
DATA = json.loads((ROOT / "tests" / "data" / "rotating_bodies.json").read_text())
DATA = DATA["unstable_rotation"]
END = DATA["samples"][-1]
STEPS = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120)
SETS = {
    "twist": "twist",
    "hexahedral": UnifiedVelocity.hexahedral(),
    "tetrahedral": UnifiedVelocity.tetrahedral(),
    "own": UnifiedVelocity(*np.random.default_rng(8).normal(size=(2, 6, 3))),
}
TWIST = [0.0, 0.0, 0.0, 0.01, 0.0, 100.0]


def box(symbolic: bool = False) -> RigidBody:
    inertia = SpatialInertia(1.0, np.zeros(3), np.diag(DATA["inertia"]))
    return RigidBody("box", SE3, inertia).symbolic(*(["mass"] if symbolic else []))


def spatial(body: RigidBody) -> System:
    """The same body in spatial twists, whose inertia changes with the pose (Müller 2018)."""

    def f(t, x, u, p):
        pose, V = x[:7], x[7:]
        own = body.equations.mass_matrix(body.equations.bind(p))
        turn = SE3.Ad(SE3.inverse(pose))
        M = turn.T @ own @ turn
        return ca.vertcat(turn @ V, solve_symmetric(M, SE3.ad(V).T @ (M @ V)))

    return System("spatial", body.state, f, parameters=body.parameters)


def run(unified: object, steps: int) -> np.ndarray:
    """States in twist coordinates at all steps of a second; NaN after an overflow."""
    body = box()
    x = body.state.join(pose=SE3.identity, twist=TWIST)
    if unified == "twist":
        return body.system().rollout(x, None, 1 / steps, steps=steps, method="rk4").x
    form = body.velocity_form(unified)
    system = body.system(velocity=unified)
    made = system.rollout(form.from_velocity(x), None, 1 / steps, steps=steps, method="rk4")
    return form.to_velocity(made.x)


OPERATIONS: dict[int, Callable] = {
    ca.OP_ADD: operator.add,
    ca.OP_SUB: operator.sub,
    ca.OP_MUL: operator.mul,
    ca.OP_DIV: operator.truediv,
    ca.OP_NEG: operator.neg,
    ca.OP_SQ: lambda a: a * a,
    ca.OP_TWICE: lambda a: 2 * a,
}


def rate_at_digits(system: System) -> Callable[[list], list]:
    """The operations of a field as ``w → ẇ`` on numbers of any precision, at the identity."""
    f = system.f.function
    tape = [
        (f.instruction_id(k), f.instruction_output(k), f.instruction_input(k))
        for k in range(f.n_instructions())
    ]

    def rate(w: list) -> list:
        x, held, made = [*SE3.identity, *w], {}, [mpmath.mpf(0)] * 12
        for k, (code, output, given) in enumerate(tape):
            if code == ca.OP_CONST:
                held[output[0]] = mpmath.mpf(f.instruction_constant(k))
            elif code == ca.OP_INPUT:
                held[output[0]] = x[given[1]] if given[0] == 1 else mpmath.mpf(0)
            elif code == ca.OP_OUTPUT:
                made[output[1]] = held[given[0]]
            else:
                held[output[0]] = OPERATIONS[code](*(held[i] for i in given))
        return made[6:]

    return rate


def error_at_digits(name: str, steps: int, digits: int = 40) -> float:
    """Error of the angular velocity at 1 s by RK4 on the operations of our field."""
    with mpmath.workdps(digits):
        rate, h = rate_at_digits(box().system(velocity=SETS[name])), mpmath.mpf(1) / steps
        D = mpmath.eye(6) if name == "twist" else mpmath.matrix(SETS[name].matrix.tolist())
        w = list(D * mpmath.matrix([mpmath.mpf(str(value)) for value in TWIST]))

        def moved(s: object, k: list) -> list:
            return [a + s * b for a, b in zip(w, k, strict=True)]

        for _ in range(steps):
            k1 = rate(w)
            k2 = rate(moved(h / 2, k1))
            k3 = rate(moved(h / 2, k2))
            k4 = rate(moved(h, k3))
            mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
            w = moved(h, mean)
        omega = list(mpmath.lu_solve(D, mpmath.matrix(w)))[3:]
        return float(mpmath.norm([a - b for a, b in zip(omega, END["omega"], strict=True)]))


def nudged(name: str, steps: int, count: int = 400) -> np.ndarray:
    """Errors in doubles, from starts whose numbers may be the next ones."""
    body, unified, rng = box(), SETS[name], np.random.default_rng(1)
    x = body.state.join(pose=SE3.identity, twist=TWIST)
    if unified != "twist":
        x = body.velocity_form(unified).from_velocity(x)
    starts = np.tile(x, (count, 1))
    starts[:, 7:] += rng.integers(-1, 2, (count, 6)) * np.spacing(np.abs(starts[:, 7:]))
    system = body.system(velocity=unified)
    ends = system.rollout(starts, None, 1 / steps, steps=steps, method="rk4").x[:, -1]
    if unified != "twist":
        ends = body.velocity_form(unified).to_velocity(ends)
    return np.linalg.norm(ends[:, 10:] - END["omega"], axis=-1)


def rounding() -> list[dict]:
    """Errors of truncation alone, and between which numbers rounding puts them."""
    return [
        {
            "h": f"1/{steps}",
            "coordinates": name,
            "stored": DATA["rk4_omega_error_at_1"][f"1/{steps}"],
            "40 digits": error_at_digits(name, steps),
            "doubles": [float(value) for value in np.quantile(nudged(name, steps), [0, 0.5, 1])],
        }
        for steps in STEPS[4:9]
        for name in ("twist", "hexahedral", "tetrahedral")
    ]


def table() -> list[dict]:
    rows = []
    for steps in STEPS:
        row = {"h": f"1/{steps}", "stored": DATA["rk4_omega_error_at_1"].get(f"1/{steps}")}
        for name in ("twist", "hexahedral", "tetrahedral"):
            x = run(SETS[name], steps)[-1]
            row[name] = row[f"det of {name}"] = None
            if np.isfinite(x).all():
                row[name] = float(np.linalg.norm(x[10:] - END["omega"]))
                row[f"det of {name}"] = float(abs(np.linalg.det(SO3.matrix(x[3:7])) - 1))
        rows.append(row)
    return rows


def costs(count: int = 1000) -> list[dict]:
    """Operations and CPU time of an RK4 step; without and with a mass that is a parameter."""
    rows = []
    for symbolic in (False, True):
        body = box(symbolic)
        for name, unified in [*SETS.items(), ("spatial twist", "spatial")]:
            system = spatial(body) if unified == "spatial" else body.system(velocity=unified)
            chain = rollout_function(system, count, "rk4")
            codegen.compile(chain, batch=False)
            x = body.state.join(pose=SE3.identity, twist=TWIST)
            if isinstance(unified, UnifiedVelocity):
                x = body.velocity_form(unified).from_velocity(x)
            given = (
                np.zeros((count, 1)),
                x,
                np.zeros((count, 0)),
                system.nominal_parameters,
                1e-3,
            )
            chain(*given)
            best = np.inf
            for _ in range(20):
                began = time.process_time()
                chain(*given)
                best = min(best, time.process_time() - began)
            rows.append(
                {
                    "coordinates": name,
                    "mass": "parameter" if symbolic else "number",
                    "operations_of_field": system.f.function.n_instructions(),
                    "microseconds": 1e6 * best / count,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", ".*diverged")  # with h ≥ 1/40, as it must
    rows, exact, spent = table(), rounding(), costs()
    print(f"{'h':>8}{'stored':>12}{'twist':>12}{'hexahedral':>12}{'tetrahedral':>12}")
    for row in rows:
        values = [row[key] for key in ("stored", "twist", "hexahedral", "tetrahedral")]
        print(f"{row['h']:>8}" + "".join(f"{v:>12.4g}" if v else f"{'—':>12}" for v in values))
    for row in exact:
        lowest, median, highest = row["doubles"]
        print(
            f"{row['h']:>8} {row['coordinates']:<12} with 40 digits {row['40 digits']:.10g}, "
            f"in doubles {lowest:.4g} to {highest:.4g}, median {median:.4g}"
        )
    for row in spent:
        print(
            f"{row['coordinates']:<12} mass a {row['mass']:<10} "
            f"{row['operations_of_field']:>4} operations, {row['microseconds']:.3f} µs a step"
        )
    if options.store:
        report = {"errors": rows, "rounding": exact, "costs": spent}
        (RESULTS / "unified_velocity.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
