"""Which configuration space: every integrator on every one, at equal error and at equal cost.

    python -m tests.benchmarks.configuration_spaces [--store] [--table] [--stabilizations]
        [EXAMPLE …]

The question of Müller and Terze (2013), for SE(3)ⁿ, (SO(3) × R³)ⁿ, SE(3) for the bodies at the
ground alone, and the choice that `Mechanism.formulated("auto")` makes. Examples are the four of the
paper, an arm of six joints, a slider-crank and a satellite with two panels. Systems keep their
constraints by projection; the last tables compare plain steps, Baumgarte's stabilization, index 2,
projection and steps in charts of the manifold, and `--stabilizations` makes these alone. An error
is the largest of all centres of mass at the end, beside RK4 with steps sixteen times as short; a
cost is CPU time of compiled steps for a second of motion. Both follow ``C hᵖ`` of two steps, of
which the ratios at equal error and at equal cost are taken.
`--store` writes tests/benchmarks/results.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lgcontrol import models
from lgcontrol.codegen import set_compile_policy
from lgcontrol.groups import SE3
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, revolute

STORE = Path(__file__).parent / "results" / "configuration_spaces.json"
# "grounded": SE(3) for every body whose joints to the ground leave a subgroup, as "auto" has it for
# bodies that are tied to the ground alone.
SPACES = ("SO3xR3", "SE3", "grounded", "auto")
METHODS = {  # and by how much their steps are shorter
    "rk4": ("rk4", 1),
    "variational_verlet": ("variational_verlet", 1),
    "energy_momentum": ("energy_momentum", 1),
    "implicit_euler3": (implicit_euler3(iterations=4), 8),
    "generalized_alpha": (generalized_alpha(0.9), 2),
}
STABILIZATIONS = {  # and what the page calls them
    "none": "none",
    "baumgarte": "Baumgarte, α = β = 1/(2h)",
    "velocity": "velocities alone (index 2)",
    "projection": "projection",
    "charts": "charts",
}
# Orders outside of this are of rounding, or of steps that are too long to say.
ORDERS = (0.7, 5.5)
ROUNDING = 1e-14  # of coordinates below one metre


def arm(seed=3):
    """UR5, every link with six degrees of freedom, let fall from a bent configuration."""
    tree = models.ur5().structure.model
    q = np.array([0.3, -1.2, 1.4, -0.6, 0.8, 0.2])
    bodies, joints, places = [], [], {"ground": SE3.identity}
    for k, name in enumerate(tree.bodies):
        inertia = tree.link(name).inertia
        center = [*np.asarray(inertia.center_of_mass), 0, 0, 0, 1]
        frame = np.asarray(tree.placement(name)(q))
        places[name] = SE3.compose(frame, center)
        own = SpatialInertia(inertia.mass, [0, 0, 0], np.asarray(inertia.inertia), check="ignore")
        bodies.append(MechanismBody(name, own, places[name]))
        parent = tree.link(name).parent if tree.link(name).parent in places else "ground"
        axis = np.asarray(tree.jacobian(name, "body")(q))[3:, k]
        markers = []
        for body in (parent, name):
            seen = SE3.matrix(SE3.compose(SE3.inverse(places[body]), frame))
            markers.append(Marker(body, seen[:3, 3], z=seen[:3, :3] @ axis))
        joints.append(revolute(f"on_{name}", *markers))
    return Mechanism("arm", bodies, joints)


def satellite():
    """A hub that turns, with two panels on hinges, free and without weight."""
    hub = SpatialInertia.box(50.0, [1.0, 1.0, 1.2])
    panel = SpatialInertia.box(6.0, [2.0, 0.8, 0.03])
    omega = np.array([0.5, 2.0, 1.0])
    bodies = [MechanismBody("hub", hub, rates=[0, 0, 0, *omega])]
    joints = []
    for side, sign in (("left", -1), ("right", 1)):
        r = np.array([1.5 * sign, 0, 0])
        spin = omega + [0, 1.5 * sign, 0]
        arm_in, arm_out = np.array([0.5 * sign, 0, 0]), np.array([1.0 * sign, 0, 0])
        rates = [*(np.cross(omega, arm_in) + np.cross(spin, arm_out)), *spin]
        bodies.append(MechanismBody(side, panel, [*r, 0, 0, 0, 1], rates=rates))
        ends = Marker("hub", arm_in, [0, 1, 0]), Marker(side, -arm_out, [0, 1, 0])
        joints.append(revolute(f"hinge_{side}", *ends))
    return Mechanism("satellite", bodies, joints, gravity=[0, 0, 0])


EXAMPLES = {  # mechanism, seconds, and the longer one of the steps
    "heavy_top": (models.heavy_top_mechanism, 0.5, 1e-3),
    "spherical_double_pendulum": (models.spherical_double_pendulum_mechanism, 0.2, 1e-3),
    "floating_pair": (models.floating_pair_mechanism, 0.5, 2e-3),
    "three_bar": (models.three_bar_mechanism, 0.5, 2e-3),
    "slider_crank": (lambda: models.slider_crank_mechanism(drive="motor"), 0.2, 1e-3),
    "satellite": (satellite, 1.0, 1e-2),
    "arm": (arm, 0.3, 2e-3),
}


def moved(mechanism, system, x0, method, h, steps):
    """Centres of mass at the end, and a call that repeats the motion."""
    nq, u = mechanism.mechanics.configuration.nq, system.nominal_input

    def run():
        if method == "charts" or getattr(method, "memory", ""):
            return mechanism.march(x0, h, steps, method, u=u).x[-1]
        return system.rollout(x0, u, h, steps=steps, method=method).x[-1]

    end = run()
    return np.array([pose[:3] for pose in mechanism.poses(end[:nq]).values()]), run


def cpu(run, rounds=5):
    spent = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return min(spent)


def measured(mechanism, method, seconds, h, exact):
    """Errors at both steps, order, and CPU time of a step."""
    q = mechanism.coordinates()
    system, x0, errors = mechanism.system(at=q), mechanism.state(q), []
    for step in (h, h / 2):
        end, run = moved(mechanism, system, x0, method, step, round(seconds / step))
        errors.append(float(np.abs(end - exact).max()))
    order = float(np.log2(errors[0] / errors[1]))
    return {"errors": errors, "order": order, "step_us": 1e6 * cpu(run) / round(2 * seconds / h)}


def ratios(own, other):
    """Cost at equal error and error at equal cost, next to those of another space."""
    orders = own["order"], other["order"]
    is_rounding = min(own["errors"][1], other["errors"][1]) < ROUNDING
    if is_rounding or not all(ORDERS[0] < order < ORDERS[1] for order in orders):
        return {"cost_at_equal_error": None, "error_at_equal_cost": None}
    dearer, aim = own["step_us"] / other["step_us"], other["errors"][1]
    longer = (aim / own["errors"][1]) ** (1 / orders[0])  # its step at the other one's error
    there = own["errors"][1] * dearer ** orders[0]  # its error at the other one's cost
    return {"cost_at_equal_error": dearer / longer, "error_at_equal_cost": there / aim}


def grounded(plain):
    return {body: "SE3" if plain._keeps_subgroup(body) else "SO3xR3" for body in plain.bodies}


def compare(name, found, stabilizations_alone):
    make, seconds, h = EXAMPLES[name]
    plain = make()
    q = plain.coordinates()
    system, x0 = plain.system(at=q), plain.state(q)
    exact, _ = moved(plain, system, x0, "rk4", h / 32, round(32 * seconds / h))
    for label, (method, shorter) in METHODS.items() if not stabilizations_alone else ():
        rows = found[label] = {}
        for space in SPACES:
            mechanism = plain.formulated(grounded(plain) if space == "grounded" else space)
            chosen = [each.name for each in mechanism.formulations.values()]
            same = [s for s in rows if rows[s]["bodies"] == chosen]
            rows[space] = (
                dict(rows[same[0]])
                if same
                else measured(mechanism, method, seconds, h / shorter, exact) | {"bodies": chosen}
            )
            rows[space] |= ratios(rows[space], rows["SO3xR3"])
            print(name, label, space, {k: shown(v) for k, v in rows[space].items()}, flush=True)
    found["stabilization"] = stabilizations(plain, seconds, h, exact)
    return found


def stabilizations(plain, seconds, h, exact):
    """Steps of order four with each: error, gaps and CPU time of a step, on both spaces."""
    found = {}
    for space in SPACES[:2]:
        mechanism = plain.formulated(space)
        q = mechanism.coordinates()
        x0, rows, steps = mechanism.state(q), mechanism.constraints.n_position, round(seconds / h)
        for kind in STABILIZATIONS:
            rates, is_charted = (0.5 / h, 0.5 / h), kind == "charts"
            own = "projection" if is_charted else kind
            system = mechanism.system(stabilization=own, at=q, rates=rates)
            method = "charts" if is_charted else "rk4"
            end, run = moved(mechanism, system, x0, method, h, steps)
            # What a call costs besides its steps, such as the checks of a march, is left out.
            _, longer = moved(mechanism, system, x0, method, h, 16 * steps)
            step_us = 1e6 * (cpu(longer) - cpu(run)) / (15 * steps)
            gap = np.abs(system.invariants(run()))
            found[f"{space} {kind}"] = {
                "error_m": float(np.abs(end - exact).max()),
                "gap_m": float(gap[:rows].max()),
                "velocity_gap": float(gap[rows:].max()),
                "step_us": step_us,
            }
            if is_charted:
                found[f"{space} {kind}"]["changes"] = mechanism.march(x0, h, steps, method).changes
            own = found[f"{space} {kind}"]
            print(" ", space, kind, {k: shown(v) for k, v in own.items()}, flush=True)
    return found


def shown(value):
    return f"{value:.3g}" if isinstance(value, float) else value


def table(results):
    """What the page prints: cost at equal error next to (SO(3) × R³)ⁿ, by integrator."""
    print("| example | " + " | ".join(METHODS) + ' | "auto" |')
    for name, found in results.items():
        cells = []
        for method in METHODS:
            both = [found[method][space]["cost_at_equal_error"] for space in ("SE3", "grounded")]
            cells.append(", ".join("–" if value is None else f"{value:.2f}" for value in both))
        same = found["rk4"]["auto"]["bodies"] == found["rk4"]["SE3"]["bodies"]
        print(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + f" | {'SE3' * same} |")
    for name, found in results.items():
        print(f"| {name.replace('_', ' ')} | error | gap | gap of velocities | step |")
        for key, row in found["stabilization"].items():
            space, kind = key.split()
            cells = f"{row['error_m']:.1e} m | {row['gap_m']:.0e} m | {row['velocity_gap']:.0e} m/s"
            print(f"| {STABILIZATIONS[kind]}, {space} | {cells} | {row['step_us']:.1f} µs |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", nargs="*", choices=[*EXAMPLES, []])
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--table", action="store_true", help="print what is stored")
    parser.add_argument("--stabilizations", action="store_true", help="make these tables alone")
    given = parser.parse_args()
    set_compile_policy("eager")
    results = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name in () if given.table else given.examples or EXAMPLES:
        results[name] = compare(name, results.get(name, {}), given.stabilizations)
        if given.store:
            STORE.write_text(json.dumps(results, indent=1) + "\n")
    table(results)


if __name__ == "__main__":
    main()
