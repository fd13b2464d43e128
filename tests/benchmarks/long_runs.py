"""A million steps: what integrators keep of energy and momentum, at what cost and accuracy.

    python -m tests.benchmarks.long_runs [--steps 1000000] [--plants …] [--methods …] [--store]

Free body, heavy top, a free-floating arm of seven joints and closed four-bars, by the methods that
keep momenta next to Runge–Kutta and midpoint rules that do not: largest relative change of momentum
and energy, drift of the energy next to its oscillation, attitude error after a second, CPU time of
a step, error against CPU time. Then a day of a satellite with wheels and of the arm, with losses:
the energy that is lost next to what the model dissipates. `--store` writes numbers and figure
to tests/benchmarks/results, and the tables to docs/integrators.md.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol import codegen, models
from lgcontrol.groups import SE3, SO3
from lgcontrol.integrators import Method, get_method
from lgcontrol.integrators._internal import MomentumMethod
from lgcontrol.mechanics import (
    GyroscopicWheels,
    Gyrostat,
    JointProperties,
    RigidBody,
    SpatialInertia,
)
from lgcontrol.mechanics.constrained import (
    DP1,
    DP2,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    revolute,
)
from lgcontrol.systems import System
from lgcontrol.systems._rollout import rollout_function

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "integrators.md"
CHUNK = 1000


@dataclass(frozen=True)
class Plant:
    """A conservative system, a start and a step, and what stays of its momentum in space.

    Changes are relative to `size`, the length of the whole momentum at the start. `known` is the
    state after a second from elsewhere, and the error of its configuration.
    """

    system: System
    start: np.ndarray
    dt: float
    momentum: Callable[[np.ndarray], np.ndarray]
    size: float
    known: tuple[np.ndarray, float] | None = None

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Kinetic and potential energy."""
        quantities = self.system.quantities
        kinetic = quantities["kinetic_energy"](0.0, x)
        potential = quantities.get("potential_energy")
        return (kinetic if potential is None else kinetic + potential(0.0, x))[..., 0]


def free_body() -> Plant:
    """Near its middle axis: it tumbles."""
    body = RigidBody("free_body", SO3, SpatialInertia(1.0, np.zeros(3), np.diag([2.0, 3.0, 4.5])))
    start = body.state.join(pose=SO3.identity, twist=[0.3, 1.0, 0.6])
    momentum = body.momentum("spatial")
    size = float(np.linalg.norm(momentum(start[:4], start[4:])))
    return Plant(body.system(), start, 0.05, lambda x: momentum(x[..., :4], x[..., 4:]), size)


def heavy_top() -> Plant:
    """That of Müller and Terze; only its vertical momentum stays."""
    system = models.heavy_top()
    start = system.state.join(pose=SO3.identity, twist=[0, 20 * np.pi, 10 * np.pi])
    momentum = system.structure.model.momentum("spatial")
    size = float(np.linalg.norm(momentum(start[:4], start[4:])))
    data = json.loads((ROOT / "tests" / "data" / "rotating_bodies.json").read_text())
    case = next(c for c in data["heavy_top"]["cases"] if c["gravity"])
    end = next(sample for sample in case["samples"] if sample["t"] == 1.0)
    pose = SO3.from_matrix(np.array(end["R"]))
    known = system.state.join(pose=pose, twist=end["omega"]), case["error_estimate"]["R"]

    def vertical(x: np.ndarray) -> np.ndarray:
        return momentum(x[..., :4], x[..., 4:])[..., 2:]

    return Plant(system, start, 0.005, vertical, size, known)


def space_arm(damping: float = 0.0) -> Plant:
    """Free-floating, its centre of mass at rest."""
    tree = models.space_arm_tree()
    drive = JointProperties(damping=damping)
    tree = tree.with_properties(**{name: drive for name in tree.joints if name != "base"})
    system, rng = tree.system(tree.joints, name="space_arm"), np.random.default_rng(2)
    start = system.state.identity.copy()
    q, v = start[: tree.nq], start[tree.nq :]
    q[7:], v[3:] = rng.uniform(-1, 1, 7), rng.uniform(-0.2, 0.2, 10)
    v[:3] -= SE3.act(SE3.inverse(q[:7]), tree.center_of_mass_velocity(q, v))

    def momentum(x: np.ndarray) -> np.ndarray:
        q, v = x[..., : tree.nq], x[..., tree.nq :]
        central, place = tree.centroidal_momentum(q, v), tree.center_of_mass(q)
        turned = central[..., 3:] + np.cross(place, central[..., :3])
        return np.concatenate([central[..., :3], turned], axis=-1)

    return Plant(system, start, 0.05, momentum, float(np.linalg.norm(momentum(start))))


# Pins of a crank-rocker in the x-z plane [m], masses [kg] of the bars from each to the next.
PINS = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.28], [0.85, 0.0, 0.55], [0.9, 0.0, 0.0]])
BARS = {"crank": 0.5, "coupler": 1.2, "rocker": 0.9, "frame": 1.5}


def linkage(*, is_free: bool) -> Mechanism:
    """Four-bar in absolute coordinates, its frame on the ground under its weight or free in space.

    Three rows of its four pins depend on the others. Between bodies in space the pins are written
    in axes of a body: rows that do not change when all turn have no moment off their zeros, too.
    """
    bodies, ends = [], {}
    for k, (name, mass) in enumerate(BARS.items()):
        a, b = PINS[k], PINS[(k + 1) % 4]
        along = b - a
        length, tilt = float(np.linalg.norm(along)), -np.arctan2(along[2], along[0]) / 2
        ends[name] = [-length / 2, 0, 0], [length / 2, 0, 0]
        inertia = SpatialInertia.box(mass, [length, length / 10, length / 20])
        pose = [*((a + b) / 2), 0, np.sin(tilt), 0, np.cos(tilt)]
        bodies.append(MechanismBody(name, inertia, pose=pose))
    joints, names = [], [*BARS]
    for k, name in enumerate(names):
        last, axis = names[k - 1], [0, 1, 0]
        i, j = (last, ends[last][1]), (name, ends[name][0])
        if is_free:
            rows = [DP2(e, i[0], np.eye(3)[n], i[1], *j) for n, e in enumerate("xyz")]
            rows += [DP1(f"y_{e}", name, axis, last, np.eye(3)["xyz".index(e)]) for e in "xz"]
            joints.append(MechanismJoint(f"pin{k}", rows))
        else:
            i, j = (("ground", PINS[k]) if end[0] == "frame" else end for end in (i, j))
            joints.append(revolute(f"pin{k}", Marker(*i, z=axis), Marker(*j, z=axis)))
    if is_free:
        return Mechanism("four_bar", bodies, joints, gravity=[0, 0, 0])
    return Mechanism("four_bar", bodies[:3], joints)


def momentum_in_space(mechanism: Mechanism) -> Callable[[np.ndarray], np.ndarray]:
    """``x → [p; L]`` of all bodies about the origin, of states in "SE3"."""
    n = len(mechanism.bodies)

    def momentum(x: np.ndarray) -> np.ndarray:
        q, total = x[..., : 7 * n].reshape(*x.shape[:-1], n, 7), 0.0
        v, A = x[..., 7 * n :].reshape(*x.shape[:-1], n, 6), SO3.matrix(q[..., 3:])
        for k, body in enumerate(mechanism.bodies.values()):
            own = np.stack(
                [body.inertia.mass * v[..., k, :3], v[..., k, 3:] @ body.inertia.inertia]
            )
            force, turn = np.einsum("...ij,s...j->s...i", A[..., k, :, :], own)
            turn = turn + np.cross(q[..., k, :3], force)
            total = total + np.concatenate([force, turn], axis=-1)
        return total

    return momentum


def four_bar() -> Plant:
    """It turns over under its weight: its energy stays."""
    mechanism = linkage(is_free=False)
    start = mechanism.state(speeds={"crank": [0, 0, 0, 0, 200.0, 0]})  # 6.4 rad/s are left
    return Plant(mechanism.system(), start, 0.002, lambda x: x[..., :0], 1.0)


def free_four_bar() -> Plant:
    """It tumbles in space, its centre of mass at rest."""
    mechanism = linkage(is_free=True).formulated("SE3")
    rates = {name: [0, 0, 0, 0.8, 1.0, 1.5] for name in BARS}
    for name, (x, _, z) in zip(BARS, (PINS + np.roll(PINS, -1, axis=0)) / 2, strict=True):
        rates[name][:3] = np.cross(rates[name][3:], [x, 0, z])
    rates["crank"][4] += 5.0
    start = mechanism.state(speeds=rates)
    momentum, n = momentum_in_space(mechanism), len(BARS)
    A = SO3.matrix(start[: 7 * n].reshape(n, 7)[:, 3:])
    v = start[7 * n :].reshape(n, 6)
    drift = momentum(start)[:3] / sum(BARS.values())
    v[:, :3] -= np.einsum("kji,j->ki", A, drift)
    size = float(np.linalg.norm(momentum(start)))
    return Plant(mechanism.system(), start, 0.005, momentum, size)


PLANTS = {
    "free body": free_body,
    "heavy top": heavy_top,
    "space arm": space_arm,
    "four-bar": four_bar,
    "free four-bar": free_four_bar,
}
BODIES = ("free body", "heavy top")
plant_of = cache(lambda name: PLANTS[name]())

# Largest changes, relative to the first value, that a million steps may make; variational4 makes
# five million.
EXACT = {"momentum": 1e-12}
OF_MANY = {"momentum": 1e-10}
METHODS: dict[str, dict[str, dict[str, float]]] = {
    "variational_verlet": {
        "free body": EXACT,
        "heavy top": EXACT,
        "space arm": OF_MANY,
        "four-bar": {},
        "free four-bar": OF_MANY,
    },
    "variational4": {
        "free body": {"momentum": 1e-11},
        "heavy top": {"momentum": 1e-11},
        "space arm": OF_MANY,
    },
    "spatial_momentum_midpoint": {
        "free body": {"momentum": 1e-10},
        "heavy top": {"momentum": 1e-10},
        "space arm": {"momentum": 1e-8},
    },
    "energy_momentum": {
        "free body": {"momentum": 1e-10, "energy": 1e-9},
        "heavy top": {"momentum": 1e-10, "energy": 1e-9},
        "four-bar": {"energy": 1e-7},
        "free four-bar": {"momentum": 1e-8, "energy": 1e-7},
    },
}
REFERENCE = 1e-12  # what halving the steps of a reference may change
BOUNDED = ("variational_verlet", "variational4")  # drift of the energy below 0.1 of its oscillation


def body_midpoint(terms: Any) -> tuple[Any, Any]:
    """Implicit midpoint rule for the momentum in the body."""
    before, mean = terms.momentum, terms.inertial(terms.state(0.5))
    n = terms.group.dim
    turned = terms.group.ad(terms.w[:n]).T @ mean[:n]
    change = terms.action(0.5) + ca.vertcat(turned, 0 * mean[n:])
    after = before + terms.h * change
    return 2 * mean - before - after, after


def plain_midpoint(terms: Any) -> tuple[Any, Any]:
    """Energy–momentum step with the force in the middle in place of the discrete gradient."""
    before, mean = terms.momentum, terms.inertial(terms.state(0.5))
    after = terms.carried(1.0, before) + terms.h * terms.carried(0.5, terms.action(0.5))
    return 2 * mean - before - after, after


# Negative examples: what they do not keep.
OTHERS = (
    get_method("rk4"),
    get_method("commutator_free4"),
    MomentumMethod("midpoint in body form", body_midpoint, takes_trees=False),
    MomentumMethod("midpoint without discrete gradient", plain_midpoint, takes_trees=False),
)


def chunk_of(system: System, method: str | Method, count: int) -> Callable[..., tuple]:
    """``(t, x, dt) → states, residuals`` of so many compiled steps."""
    run = rollout_function(system, count, method)
    codegen.compile(run, batch=False)
    u = np.tile(system.nominal_input, (count, 1))

    def steps(t: float, x: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        made = run(t + dt * np.arange(count)[:, None], x, u, system.nominal_parameters, dt)
        if not get_method(method).solves:
            return made, np.zeros(1)
        return made.x_next, made.residual

    return steps


def follow(name: str, method: str | Method, steps: int, samples: int = 1000) -> dict:
    """Largest relative changes of a conservative plant over many steps, and their shortest time."""
    plant = plant_of(name)
    x, dt, chunk = plant.start, plant.dt, min(CHUNK, steps)
    run = chunk_of(plant.system, method, chunk)
    P, E = plant.momentum(x), float(plant.energy(x))
    thin = max(1, steps // (50 * samples))
    times, means, moved, lowest, highest = [], [], [], E, E
    worst, seconds = 0.0, np.inf
    for k in range(steps // chunk):
        began = time.process_time()
        states, residual = run(k * chunk * dt, x, dt)
        seconds = min(seconds, time.process_time() - began)
        x, worst = states[-1], max(worst, float(residual.max()))
        kept = states[::thin]
        energy = plant.energy(kept)
        lowest, highest = min(lowest, energy.min()), max(highest, energy.max())
        times.append((k + 0.5) * chunk * dt)
        means.append(energy.mean() / E - 1)
        moved.append(np.linalg.norm(plant.momentum(kept) - P, axis=-1).max() / plant.size)
    oscillation = (highest - lowest) / abs(E)
    drift = np.polyfit(times, means, 1)[0] * times[-1] if len(times) > 1 else 0.0
    return {
        "plant": name,
        "method": get_method(method).name,
        "steps": steps,
        "dt": dt,
        "momentum": float(np.max(moved)),
        "energy": float(max(highest - E, E - lowest) / abs(E)),
        "drift_in_oscillations": float(abs(drift) / oscillation),
        "residual": worst,
        "microseconds": 1e6 * seconds / chunk,
        "t": list(np.array(times)[:: max(1, len(times) // 100)]),
        "energy_means": list(np.array(means)[:: max(1, len(times) // 100)]),
        "momentum_changes": list(np.array(moved)[:: max(1, len(times) // 100)]),
    }


def accuracy(name: str, methods: list[Method], seconds: float) -> list[dict]:
    """Errors of configurations after some seconds against CPU time, for several steps."""
    plant = plant_of(name)
    fine = chunk_of(plant.system, "rk4", 1000)

    def reference(substeps: int) -> np.ndarray:
        x, dt = plant.start, seconds / (1000 * substeps)
        for k in range(substeps):
            x = fine(k * 1000 * dt, x, dt)[0][-1]
        return x

    n = plant.system.state.tangent_slice(next(iter(plant.system.state.blocks)))

    def apart(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.linalg.norm(plant.system.state.minus(x, y)[n]))

    if plant.known is not None and seconds == 1.0:
        exact, own = plant.known
    else:
        substeps, exact, own, before = 10, reference(10), np.inf, np.inf
        while own > REFERENCE and substeps < 320 and (own < before / 2 or own == np.inf):
            substeps, rough, before = 2 * substeps, exact, own
            exact = reference(substeps)
            own = apart(exact, rough)
    rows, base = [], round(seconds / plant.dt)
    for method in methods:
        run = chunk_of(plant.system, method, base // 2)
        for factor in (1, 2, 4, 8):
            x, count, spent = plant.start, factor * (base // 2), 0.0
            dt = seconds / count
            run(0.0, x, dt)
            for k in range(factor):
                began = time.process_time()
                x = run(k * (base // 2) * dt, x, dt)[0][-1]
                spent += time.process_time() - began
            error = apart(x, exact)
            rows.append(
                {"plant": name, "method": method.name, "dt": dt, "error": error, "cpu": spent}
                | {"seconds": seconds, "error_of_reference": own}
            )
    return rows


def days(hours: float = 24.0) -> list[dict]:
    """Energy lost over a day of simulated time against what is dissipated."""
    craft = Gyrostat(
        RigidBody("satellite", SO3, SpatialInertia(750.0, np.zeros(3), np.diag([900, 800, 600.0]))),
        GyroscopicWheels(np.eye(3), 0.08, friction=2e-6),
    )
    system = craft.system()
    start = system.state.join(
        pose=SO3.identity, twist=[0.01, 0.03, 0.002], wheel_speed=[300.0, -200.0, 400.0]
    )
    satellite = Plant(system, start, 0.5, lambda x: x, 1.0)
    arm = space_arm(damping=2e-3)
    nq = arm.system.structure.model.nq
    cases = [
        ("satellite with wheels", satellite, "variational_verlet", 2e-6, slice(7, None)),
        ("satellite with wheels", satellite, "energy_momentum", 2e-6, slice(7, None)),
        ("space arm", arm, "variational_verlet", 2e-3, slice(nq + 6, None)),
    ]
    rows = []
    for name, plant, method, loss, speeds in cases:
        run, x, work = chunk_of(plant.system, method, CHUNK), plant.start, 0.0
        E, power = float(plant.energy(x)), loss * float(np.sum(x[speeds] ** 2))
        steps, seconds, worst = round(hours * 3600 / plant.dt / CHUNK) * CHUNK, 0.0, 0.0
        for k in range(steps // CHUNK):
            began = time.process_time()
            states, residual = run(k * CHUNK * plant.dt, x, plant.dt)
            seconds += time.process_time() - began
            powers = loss * np.sum(states[:, speeds] ** 2, axis=-1)
            work += plant.dt * (power / 2 + powers[:-1].sum() + powers[-1] / 2)
            x, power, worst = states[-1], powers[-1], max(worst, float(residual.max()))
        lost = E - float(plant.energy(x))
        rows.append(
            {
                "plant": name,
                "method": method,
                "dt": plant.dt,
                "steps": steps,
                "energy": E,
                "lost": lost,
                "dissipated": work,
                "off": abs(lost / work - 1),
                "residual": worst,
                "cpu": seconds,
            }
        )
    return rows


def checked(rows: list[dict], lost: list[dict]) -> list[str]:
    """What a full run has to keep, and did not."""
    missed = []
    for row in rows:
        bounds = METHODS.get(row["method"], {}).get(row["plant"], {})
        for key, bound in bounds.items():
            if not row[key] <= bound:
                missed.append(f"{row['plant']}, {row['method']}: {key} {row[key]:.1e} > {bound:g}")
        if row["method"] in BOUNDED and not row["drift_in_oscillations"] <= 0.1:
            missed.append(f"{row['plant']}, {row['method']}: the energy drifts")
        if not row["residual"] <= 1:
            missed.append(f"{row['plant']}, {row['method']}: equations not solved")
    missed += [f"{row['plant']}, {row['method']}: losses" for row in lost if not row["off"] <= 0.01]
    return missed


def kept_table(rows: list[dict]) -> list[str]:
    lines = [
        "| plant, step | method | momentum | energy | drift / oscillation | µs a step |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        kept = f"{r['momentum']:.1e}" if r["momentum"] else "–"
        lines.append(
            f"| {r['plant']}, {r['dt']:g} s | `{r['method']}` | "
            f"{kept} | "
            f"{r['energy']:.1e} | {r['drift_in_oscillations']:.2g} | {r['microseconds']:.2f} |"
        )
    return lines


def accuracy_table(rows: list[dict]) -> list[str]:
    lines = [
        "| plant, time | method | error at dt | order | CPU for this error |",
        "|---|---|---|---|---|",
    ]
    for plant, method in dict.fromkeys((r["plant"], r["method"]) for r in rows):
        own = [r for r in rows if (r["plant"], r["method"]) == (plant, method)]
        good = [r for r in own if r["error"] > 10 * r["error_of_reference"]]
        order = -np.polyfit([-np.log(r["dt"]) for r in good], [np.log(r["error"]) for r in good], 1)
        usual = own[1]
        lines.append(
            f"| {plant}, {usual['seconds']:g} s | `{method}` | {usual['error']:.1e} at "
            f"{usual['dt']:g} s | {order[0]:.1f} | {1e3 * usual['cpu']:.2f} ms |"
        )
    return lines


def days_table(rows: list[dict]) -> list[str]:
    lines = [
        "| plant, step | method | energy lost | dissipated | off by | CPU of the day |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['plant']}, {r['dt']:g} s | `{r['method']}` | {r['lost']:.5g} of "
            f"{r['energy']:.5g} J | {r['dissipated']:.5g} J | {100 * r['off']:.2g} % | "
            f"{r['cpu']:.1f} s |"
        )
    return lines


def draw(rows: list[dict], path: Path) -> None:
    """Momentum and energy over a million steps."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in PLANTS if any(row["plant"] == name for row in rows)]
    figure, axes = plt.subplots(
        2, len(names), figsize=(12, 6.5), sharex="col", sharey="row", squeeze=False
    )
    colors = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(r["method"] for r in rows))}
    dt = {row["plant"]: row["dt"] for row in rows}
    for row in rows:
        column, t = names.index(row["plant"]), np.array(row["t"])
        look = {"label": row["method"], "color": colors[row["method"]], "linewidth": 1}
        if row["momentum"]:
            axes[0, column].semilogy(t, row["momentum_changes"], **look)
        axes[1, column].semilogy(t, np.abs(row["energy_means"]) + 1e-17, **look)
    for column, name in enumerate(names):
        axes[0, column].set_title(f"{name}, {dt[name]:g} s")
        axes[1, column].set_xlabel("time [s]")
        if not axes[0, column].lines:
            text = "on the ground:\nno momentum stays"
            axes[0, column].text(0.5, 0.5, text, ha="center", transform=axes[0, column].transAxes)
    axes[0, 0].set_ylabel("change of momentum / its length")
    axes[1, 0].set_ylabel("|change of mean energy| / energy")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylim(1e-15, 1)
    axes[1, 0].set_ylim(1e-15, 1)
    seen = {}
    for axis in axes.flat:
        for line in axis.lines:
            seen.setdefault(line.get_label(), line)
    figure.legend(seen.values(), seen, fontsize=8, ncols=4, loc="lower center")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=90)


def write(page: Path, sections: dict[str, list[str]]) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- end -->``."""
    text = page.read_text(encoding="utf-8")
    for name, lines in sections.items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, tail = rest.partition("<!-- end -->")
        text = f"{head}<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end -->{tail}"
    page.write_text(text, encoding="utf-8")


def merged(stored: list[dict], made: list[dict]) -> list[dict]:
    """Rows of a report, those of plants and methods that have run again in place of the stored."""
    again = {(row["plant"], row["method"]) for row in made}
    plants, names = list(PLANTS), [*METHODS, *(method.name for method in OTHERS)]
    return sorted(
        made + [row for row in stored if (row["plant"], row["method"]) not in again],
        key=lambda row: (plants.index(row["plant"]), names.index(row["method"])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--plants", nargs="+", default=[*PLANTS, "day"], help="others as stored")
    named = [*METHODS, *(method.name for method in OTHERS)]
    parser.add_argument("--methods", nargs="+", default=named, help="others as stored")
    options = parser.parse_args()
    rows, errors = [], []
    for plant in [name for name in PLANTS if name in options.plants]:
        methods = [get_method(name) for name in METHODS if plant in METHODS[name]]
        methods += [m for m in OTHERS if not m.needs_lagrangian or plant in BODIES]
        methods = [method for method in methods if method.name in options.methods]
        for method in methods:
            # What Runge–Kutta loses is seen early, and its steps of linkages are dear.
            early = 10 if method in OTHERS and "four-bar" in plant else 1
            rows.append(follow(plant, method, options.steps // early))
            print(kept_table(rows[-1:])[-1], flush=True)
        errors += accuracy(plant, methods, 10.0 if plant in ("free body", "space arm") else 1.0)
    stored = json.loads((RESULTS / "long_runs.json").read_text())  # others may have come meanwhile
    lost = days(options.hours) if "day" in options.plants else stored["days"]
    rows, errors = (
        merged(stored[key], made) for key, made in (("kept", rows), ("accuracy", errors))
    )
    tables = {"kept": kept_table(rows), "accuracy": accuracy_table(errors), "day": days_table(lost)}
    for lines in list(tables.values())[1:]:
        print("\n" + "\n".join(lines))
    missed = checked(rows, lost)
    print("\n".join(missed) or "all bounds are kept")
    if options.store:
        report = {"kept": rows, "accuracy": errors, "days": lost, "missed": missed}
        (RESULTS / "long_runs.json").write_text(json.dumps(report, indent=1) + "\n")
        draw(rows, RESULTS / "long_runs.png")
        write(PAGE, tables)


if __name__ == "__main__":
    main()
