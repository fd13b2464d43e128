"""Laws of series-elastic arms under errors of the model and of measurements: a table of tip errors.

``python -m tests.benchmarks.elastic_robustness`` (``--arm ur5``, ``--move 0``) runs every law in
every case and keeps the table: largest error of the tip, and its mean over the last 0.1 s of both
rests, in mm. Sampling at 1 kHz; a run that leaves 1 m is lost. Rows are stored one by one, and
those that are stored with as many seeds are not run again (``--again`` runs them).

Moves: a 9th-order polynomial there in 0.7 s, 0.3 s at rest, and back. Noise: encoders of 16 bit a
turn on both sides of the springs, speeds by differences through a low-pass of 120 Hz, torques that
come 1 ms later, with noise of 0.5 % of their limit. On the Panda laws that use the torque of the
springs have a sensor of 0.02 N m (assumed); by encoders it would step by 1 N m.

Move 2 of the Panda is faster than its motors: the flat map asks for 105 % of what joint 2 has, for
125 % with a fifth more mass and for 320 ms (`asked`). Rows of that move show what laws do at the
bounds of the torque, 3 mm off at best and 100 mm with more mass; all other moves take at most 78 %.

`SpringTorqueControl` follows torques and has no row. PD with desired gravity and the impedance at
the tip know no motion, they get its places (and the tip's twist) as goals that go by.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.controllers import (
    ComputedTorque,
    ElasticImpedance,
    ElasticPD,
    ElasticStructurePreserving,
    FeedbackLinearization,
    FlatFeedforward,
)
from lgcontrol.mechanics import JointProperties, Motor, Multibody, SeriesElastic
from lgcontrol.models import panda_tree, ur5_tree
from lgcontrol.systems import Waypoints
from lgcontrol.systems._internal import MotionPoint

RESULTS = Path(__file__).parent / "results" / "elastic_robustness.json"
IS_COMPILED = True  # else functions are interpreted, for a few runs
DT, SUBSTEPS, SEEDS, LOST = 0.001, 4, 5, 1.0
STEP, CUTOFF, TORQUE_NOISE, SENSOR = 2 * np.pi / 2**16, 120.0, 0.005, 0.02


class Arm(NamedTuple):
    """An arm of the table."""

    tree: Callable[[], Multibody]
    tip: str
    stiffness: tuple[float, ...]
    inertia: tuple[float, ...]
    moves: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    frequency: float
    senses: bool
    frame: tuple[float, float]  # stiffness asked for at the tip, N/m and N m/rad


ARMS = {
    "ur5": Arm(
        ur5_tree, "tool0", (900, 1000, 800, 300, 250, 200), (0.5, 0.6, 0.4, 0.1, 0.09, 0.08),
        (((0, -1.2, 1.0, -1.3, -1.5, 0), (1.2, -0.7, 1.6, -1.9, -0.8, 0.8)),
         ((0.4, -1.6, 1.8, -1.0, -1.2, 0.5), (-0.6, -1.0, 1.1, -1.6, -0.5, -0.4)),
         ((-1.0, -0.9, 0.8, -0.6, 0.6, 0.0), (0.0, -1.5, 1.7, -1.2, 1.3, 0.7))),
        40.0, False, (400.0, 40.0),
    ),
    "panda": Arm(
        panda_tree, "panda_hand_tcp", (1e4,) * 4 + (5e3,) * 3,
        (0.606,) * 2 + (0.462,) * 2 + (0.206,) * 3,
        (((0, -0.4, 0, -2.2, 0, 1.8, 0.6), (0.8, 0.2, 0.3, -1.6, 0.3, 2.2, 1.2)),
         ((0.5, 0.3, -0.4, -1.8, 0.2, 2.0, 0.0), (-0.4, -0.3, 0.2, -2.4, -0.3, 2.5, 0.8)),
         ((-0.6, 0.0, 0.5, -1.2, 0.4, 1.6, -0.5), (0.3, 0.5, -0.1, -2.0, -0.2, 2.3, 0.4))),
        60.0, True, (2000.0, 100.0),
    ),
}  # fmt: skip


def arm_of(name: str, stiffness: float = 1.0, mass: float = 1.0) -> SeriesElastic:
    """The arm with all springs and all masses times a factor."""
    case, tree = ARMS[name], heavier(ARMS[name].tree(), mass)
    pairs = zip(tree.joints, case.inertia, case.stiffness, strict=True)
    return SeriesElastic(tree, {joint: Motor(B, stiffness * K) for joint, B, K in pairs})


def heavier(tree: Multibody, factor: float) -> Multibody:
    """All masses and inertias times a factor."""
    if factor == 1.0:
        return tree
    values = {}
    for key, entry in tree.named_numbers.items():
        if key.endswith(".mass") or ".inertia." in key:
            values[key] = factor * entry.nominal
    return tree.with_parameters(values)


def reference(name: str, move: int) -> Waypoints:
    """There, rest, back, rest."""
    a, b = (np.array(q, float) for q in ARMS[name].moves[move])
    group = arm_of_cached(name).tree.configuration
    return Waypoints(group, [0, 0.7, 1.0, 1.7, 2.0], [a, b, b, a, a], 9)


def asked(name: str, move: int, mass: float = 1.0) -> float:
    """Largest torque that a move takes, as a share of its joint's limit."""
    arm = arm_of_cached(name, 1.0, mass)
    u = arm.flat_map()(*reference(name, move)(DT * np.arange(2001))).u
    return float((np.abs(u) / [entry.upper for entry in arm.system().inputs]).max())


@cache
def arm_of_cached(name: str, stiffness: float = 1.0, mass: float = 1.0) -> SeriesElastic:
    """One of each."""
    return arm_of(name, stiffness, mass)


class RigidLaw:
    """Computed torque of the rigid arm, with motor inertias as armatures, fed with one side."""

    def __init__(self, arm: SeriesElastic, frequency: float, side: str) -> None:
        drives = {
            name: JointProperties(
                armature=motor.reflected_inertia,
                damping=arm.tree.link(arm.tree.bodies[i]).properties.damping,
            )
            for i, (name, motor) in enumerate(arm.motors.items())
        }
        self.law = ComputedTorque(arm.tree.with_properties(**drives), frequency=frequency)
        self.n, self.side = len(arm.joints), side

    def __call__(self, x: np.ndarray, goal: MotionPoint) -> np.ndarray:
        own, law = x[:, 2 * self.n :] if self.side == "motor" else x[:, : 2 * self.n], self.law
        gains = law.stiffness, law.damping
        return sum(law.law(0.0, own, np.zeros(0), *goal[:3], *gains))


class Lanes:
    """Inputs that a law gives to many arms at once, each with its own integral."""

    def __init__(self, law: Any, arm: SeriesElastic, tip: str, goals: MotionPoint) -> None:
        self.law, self.goals, self.sums = law, goals, np.zeros(arm.tree.nv)
        self.bound = np.array([entry.upper for entry in arm.system().inputs])
        if isinstance(law, ElasticImpedance):
            J = arm.tree.jacobian(tip)(goals.x)
            self.poses = arm.tree.placement(tip)(goals.x)
            self.twists = (J @ goals.velocity[..., None])[..., 0]

    def __call__(self, k: int, x: np.ndarray) -> np.ndarray:
        law, goal = self.law, MotionPoint(*(part[k] for part in self.goals))
        if isinstance(law, RigidLaw):
            u = law(x, goal)
        elif isinstance(law, ElasticImpedance):
            gains = law.stiffness, law.damping, law.joint_damping
            u = law.law(x, self.poses[k], self.twists[k], *gains, np.zeros(0)).u
        else:
            u = law.law(x, *goal, self.sums, np.zeros(0), *law.gains.values())
        given = np.clip(u, -self.bound, self.bound)
        if getattr(law, "has_integral", False):  # what is at a bound does not wind up
            free = (given == u).all(axis=1, keepdims=True)
            self.sums = self.sums + DT * free * (x[:, : len(goal.x)] - goal.x)
        return given


def impedance(arm: SeriesElastic) -> ElasticImpedance:
    """A spring at the tip that its arm carries, and dampers."""
    case = next(case for case in ARMS.values() if case.tree().name == arm.tree.name)
    stiffness = np.repeat(case.frame, 3)
    inertia = np.array([motor.reflected_inertia for motor in arm.motors.values()])
    return ElasticImpedance(
        arm, case.tip, stiffness=stiffness, damping=stiffness / 30, joint_damping=10.0 * inertia
    )


LAWS: dict[str, Callable[[SeriesElastic, float], Any]] = {
    "rigid computed torque, motor angles": lambda arm, w: RigidLaw(arm, 20.0, "motor"),
    "rigid computed torque, link angles": lambda arm, w: RigidLaw(arm, 20.0, "link"),
    "flat feedforward, motor PD": lambda arm, w: FlatFeedforward(arm, check=False),
    "flat feedforward, motor PD with integral": lambda arm, w: FlatFeedforward(
        arm,
        integral=[2.0 * motor.joint_spring.stiffness for motor in arm.motors.values()],
        check=False,
    ),
    "flat feedforward, link PD": lambda arm, w: FlatFeedforward(arm, side="link", check=False),
    "PD with desired gravity": lambda arm, w: ElasticPD(arm, certify=False, check=False),
    "impedance at the tip": lambda arm, w: impedance(arm),
    "feedback linearization, 4 slow": lambda arm, w: FeedbackLinearization(
        arm, frequency=w / 4, check=False
    ),
    "feedback linearization, 4": lambda arm, w: FeedbackLinearization(
        arm, frequency=w, check=False
    ),
    "feedback linearization, 5": lambda arm, w: FeedbackLinearization(
        arm, frequency=w, integral=True, check=False
    ),
    "structure preserving": lambda arm, w: ElasticStructurePreserving(arm, check=False),
}
CASES: dict[str, list[tuple[float, float, bool]]] = {
    "nominal": [(1.0, 1.0, False)],
    "K -30 %": [(0.7, 1.0, False)],
    "K +30 %": [(1.3, 1.0, False)],
    "M ±20 %": [(1.0, 0.8, False), (1.0, 1.2, False)],
    "noise": [(1.0, 1.0, True)],
    "all": [(K, M, True) for K in (0.7, 1.3) for M in (0.8, 1.2)],
}


@cache
def law_of(name: str, law: str) -> Any:
    """A law that knows the nominal arm."""
    made = LAWS[law](arm_of_cached(name), ARMS[name].frequency)
    function = made.law.law.function if isinstance(made, RigidLaw) else made.law
    if IS_COMPILED:
        function.compiled()
    return made


@cache
def step_of(name: str, stiffness: float, mass: float) -> Any:
    """Step of the plant."""
    step = arm_of_cached(name, stiffness, mass).system().step("rk4", SUBSTEPS)
    return step.compiled() if IS_COMPILED else step


class Lane(NamedTuple):
    """One run: factors on the plant's stiffness and masses, whether there is noise, its seed."""

    stiffness: float
    mass: float
    is_noisy: bool
    seed: int


class Encoders:
    """Positions in steps and filtered differences; with a sensor, deflections by torque."""

    def __init__(self, n: int, K: np.ndarray | None) -> None:
        self.n, self.K = n, K
        self.decay = np.exp(-2 * np.pi * CUTOFF * DT)
        self.before: np.ndarray | None = None
        self.rate: Any = 0.0

    def __call__(self, x: np.ndarray, torque: np.ndarray, noise: np.ndarray) -> np.ndarray:
        n = self.n
        q, theta = (STEP * np.round(x[:, at : at + n] / STEP) for at in (0, 2 * n))
        if self.K is not None:
            q = theta - (torque + SENSOR * noise) / self.K
        at = np.hstack([q, theta])
        if self.before is None:
            self.before, self.rate = at, np.zeros_like(at)
        self.rate = self.decay * self.rate + (1 - self.decay) * (at - self.before) / DT
        self.before = at
        return np.hstack([q, self.rate[:, :n], theta, self.rate[:, n:]])


def run(name: str, law: str, lanes: list[Lane], move: int = 0) -> list[tuple[float, float]]:
    """Largest error of the tip and its mean at rest, in mm, for each lane; infinite if lost."""
    case, known = ARMS[name], arm_of_cached(name)
    control, n, count = law_of(name, law), len(known.joints), len(lanes)
    path, t = reference(name, move), DT * np.arange(2001)
    goals = path(t)
    inputs = Lanes(control, known, case.tip, goals)
    groups: dict[tuple[float, float], list[int]] = {}
    for i, lane in enumerate(lanes):
        groups.setdefault((lane.stiffness, lane.mass), []).append(i)
    K = np.array([lane.stiffness for lane in lanes])[:, None] * np.array(case.stiffness)
    x, q, rest = np.empty((count, 4 * n)), np.empty((2001, count, n)), np.zeros((4, n))
    for variant, own in groups.items():  # motors start where the plant's own springs need them
        x[own] = arm_of_cached(*(name, *variant)).flat_map()(goals.x[0], *rest).x
    draws = [np.random.default_rng(lane.seed).normal(size=(2, 2000, n)) for lane in lanes]
    sensor, torque_noise = np.moveaxis(np.array(draws), 0, 2)
    is_noisy = np.array([lane.is_noisy for lane in lanes])[:, None]
    sensors = Encoders(n, K[:1] / lanes[0].stiffness if _senses(name, control) else None)
    late = np.tile(known.tree.gravity_forces(goals.x[0]), (count, 1))
    with np.errstate(all="ignore"):
        for k in range(2000):
            q[k] = x[:, :n]
            measured = sensors(x, K * (x[:, 2 * n : 3 * n] - x[:, :n]), sensor[k])
            u = inputs(k, np.where(is_noisy, measured, x))
            noise = TORQUE_NOISE * inputs.bound * torque_noise[k]
            sent, late = np.where(is_noisy, late + noise, u), u
            for variant, own in groups.items():
                x[own] = step_of(name, *variant)(t[k], x[own], sent[own], [], DT)
        q[2000] = x[:, :n]
        tip = known.tree.position(case.tip)
        away = 1e3 * np.linalg.norm(tip(q) - tip(goals.x)[:, None], axis=2)
    at_rest = ((t > 0.9) & (t <= 1.0)) | (t > 1.9)
    worst, mean = away.max(axis=0), away[at_rest].mean(axis=0)
    is_lost = ~(worst < 1e3 * LOST)
    return [
        (np.inf, np.inf) if lost else (float(a), float(b))
        for a, b, lost in zip(worst, mean, is_lost, strict=True)
    ]


def _senses(name: str, control: Any) -> bool:
    """Whether a law gets the torques of the springs measured."""
    needs = isinstance(control, FeedbackLinearization | ElasticStructurePreserving)
    return ARMS[name].senses and needs


def lanes_of(case: str, seeds: int) -> list[Lane]:
    """All runs of a case."""
    return [
        Lane(*variant, seed)
        for variant in CASES[case]
        for seed in range(seeds if variant[2] else 1)
    ]


def row(
    name: str, law: str, move: int = 0, seeds: int = SEEDS, cases: Iterable[str] = CASES
) -> dict[str, tuple[float, float]]:
    """Worst of all variants and seeds of each case."""
    lanes = {case: lanes_of(case, seeds) for case in cases}
    found = iter(run(name, law, [lane for own in lanes.values() for lane in own], move))
    worst = {}
    for case, own in lanes.items():
        errors = [next(found) for _ in own]
        worst[case] = max(e[0] for e in errors), max(e[1] for e in errors)
    return worst


def main() -> None:
    """Run the table, print it, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arm", choices=sorted(ARMS), action="append")
    parser.add_argument("--move", type=int, action="append")
    parser.add_argument("--law", choices=list(LAWS), action="append")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--again", action="store_true", help="also what is stored")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for move in options.move or range(3):
        for name in options.arm or sorted(ARMS):
            share = f"{asked(name, move):.0%} of a motor"
            print(f"{name}, move {move}, takes {share}: largest / at rest, mm", flush=True)
            rows = kept.setdefault(name, {}).setdefault(f"move {move}", {})
            if options.again or rows.get("seeds") != options.seeds:
                rows.clear()
            rows["seeds"] = options.seeds
            for law in options.law or LAWS:
                if law not in rows:
                    found = row(name, law, move, options.seeds)
                    rows[law] = {case: [_rounded(v) for v in e] for case, e in found.items()}
                    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
                told = (f"{largest}/{rest}" for largest, rest in rows[law].values())
                print(f"{law:42}", "  ".join(told), flush=True)


def _rounded(value: float) -> float | str:
    return float(f"{value:.3g}") if np.isfinite(value) else "lost"


if __name__ == "__main__":
    main()
