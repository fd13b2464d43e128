"""Laws of series-elastic arms under errors of the model and of measurements: a table of tip errors.

``python -m tests.benchmarks.elastic_robustness`` (``--arm ur5``, ``--move 0``) runs every law in
every case and keeps the table: largest error of the tip, and its mean over the last 0.1 s of both
rests, in mm. Sampling at 1 kHz; a run that leaves 1 m is lost.

Moves: a 9th-order polynomial there in 0.7 s, 0.3 s at rest, and back. Noise: encoders of 16 bit a
turn on both sides of the springs, speeds by differences through a low-pass of 120 Hz, torques that
come 1 ms later, with noise of 0.5 % of their limit. On the Panda laws that use the torque of the
springs have a sensor of 0.02 N m (assumed); by encoders it would step by 1 N m.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.controllers import (
    ComputedTorque,
    ElasticLaw,
    ElasticStructurePreserving,
    FeedbackLinearization,
    FlatFeedforward,
)
from lgcontrol.mechanics import JointProperties, Motor, Multibody, SeriesElastic
from lgcontrol.models import panda_tree, ur5_tree
from lgcontrol.systems import MotionPoint, Waypoints

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


ARMS = {
    "ur5": Arm(
        ur5_tree, "tool0", (900, 1000, 800, 300, 250, 200), (0.5, 0.6, 0.4, 0.1, 0.09, 0.08),
        (((0, -1.2, 1.0, -1.3, -1.5, 0), (1.2, -0.7, 1.6, -1.9, -0.8, 0.8)),
         ((0.4, -1.6, 1.8, -1.0, -1.2, 0.5), (-0.6, -1.0, 1.1, -1.6, -0.5, -0.4)),
         ((-1.0, -0.9, 0.8, -0.6, 0.6, 0.0), (0.0, -1.5, 1.7, -1.2, 1.3, 0.7))),
        40.0, False,
    ),
    "panda": Arm(
        panda_tree, "panda_hand_tcp", (1e4,) * 4 + (5e3,) * 3,
        (0.606,) * 2 + (0.462,) * 2 + (0.206,) * 3,
        (((0, -0.4, 0, -2.2, 0, 1.8, 0.6), (0.8, 0.2, 0.3, -1.6, 0.3, 2.2, 1.2)),
         ((0.5, 0.3, -0.4, -1.8, 0.2, 2.0, 0.0), (-0.4, -0.3, 0.2, -2.4, -0.3, 2.5, 0.8)),
         ((-0.6, 0.0, 0.5, -1.2, 0.4, 1.6, -0.5), (0.3, 0.5, -0.1, -2.0, -0.2, 2.3, 0.4))),
        60.0, True,
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


@cache
def arm_of_cached(name: str, stiffness: float = 1.0, mass: float = 1.0) -> SeriesElastic:
    """One of each."""
    return arm_of(name, stiffness, mass)


class RigidOnMotors:
    """Computed torque of the rigid arm, with motor inertias as armatures, fed with motor angles."""

    def __init__(self, arm: SeriesElastic, frequency: float, side: str) -> None:
        drives = {
            name: JointProperties(
                armature=motor.reflected_inertia,
                damping=arm.tree.link(arm.tree.bodies[i]).properties.damping,
            )
            for i, (name, motor) in enumerate(arm.motors.items())
        }
        tree = arm.tree.with_properties(**drives)
        self.law = ComputedTorque(tree, frequency=frequency, saturate=False)
        self.n, self.side = len(arm.joints), side

    def __call__(self, t: float, x: np.ndarray, reference: Any) -> np.ndarray:
        n = self.n
        return self.law(t, x[2 * n :] if self.side == "motor" else x[: 2 * n], reference)

    def reset(self) -> None:
        self.law.reset()


LAWS: dict[str, Callable[[SeriesElastic, float], Any]] = {
    "rigid computed torque, motor angles": lambda arm, w: RigidOnMotors(arm, 20.0, "motor"),
    "rigid computed torque, link angles": lambda arm, w: RigidOnMotors(arm, 20.0, "link"),
    "flat feedforward, motor PD": lambda arm, w: FlatFeedforward(arm, check=False),
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
    function = made.law if isinstance(made, ElasticLaw) else made.law.law.function
    if IS_COMPILED:
        function.compiled(batch=False)
    return made


@cache
def step_of(name: str, stiffness: float, mass: float) -> Any:
    """Step of the plant."""
    step = arm_of_cached(name, stiffness, mass).system().step("rk4", SUBSTEPS)
    return step.compiled(batch=False) if IS_COMPILED else step


class Encoders:
    """Positions in steps and filtered differences; with a sensor, deflections by torque."""

    def __init__(self, x: np.ndarray, n: int, K: np.ndarray | None, rng: Any) -> None:
        self.n, self.K, self.rng = n, K, rng
        self.decay = np.exp(-2 * np.pi * CUTOFF * DT)
        self.before: np.ndarray | None = None
        self.rate = np.zeros(2 * n)

    def __call__(self, x: np.ndarray, torque: np.ndarray) -> np.ndarray:
        n = self.n
        q, theta = (STEP * np.round(part / STEP) for part in (x[:n], x[2 * n : 3 * n]))
        if self.K is not None:
            q = theta - (torque + SENSOR * self.rng.normal(size=n)) / self.K
        at = np.concatenate([q, theta])
        if self.before is not None:
            self.rate = self.decay * self.rate + (1 - self.decay) * (at - self.before) / DT
        self.before = at
        return np.concatenate([q, self.rate[:n], theta, self.rate[n:]])


def run(name: str, law: str, case: tuple[float, float, bool], seed: int, move: int = 0
        ) -> tuple[float, float]:  # fmt: skip
    """Largest error of the tip and its mean at rest, in mm; infinite for runs that are lost."""
    stiffness, mass, noisy = case
    control, step = law_of(name, law), step_of(name, stiffness, mass)
    plant, known, n = arm_of_cached(name, stiffness, mass), arm_of_cached(name), len(
        arm_of_cached(name).joints
    )  # fmt: skip
    path, rng = reference(name, move), np.random.default_rng(seed)
    control.reset()
    start = path(0.0)
    # The links start where they should; the motors where the plant's own springs need them.
    x = plant.flat_map()(start.x, *np.zeros((4, n))).x
    K = np.array(ARMS[name].stiffness)
    senses = ARMS[name].senses and not isinstance(control, FlatFeedforward | RigidOnMotors)
    sensors = Encoders(x, n, K if senses else None, rng)
    effort = np.array([entry.upper for entry in known.system().inputs])
    u = plant.tree.gravity_forces(start.x)
    late = known.tree.gravity_forces(start.x)
    tip, q = known.tree.position(ARMS[name].tip), np.empty((2001, n))
    t = DT * np.arange(2001)
    goals = path(t)
    for k in range(2000):
        q[k] = x[:n]
        goal = (
            MotionPoint(*(part[k] for part in goals)) if isinstance(control, ElasticLaw) else path
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            torque = stiffness * K * (x[2 * n : 3 * n] - x[:n])
            u = np.clip(control(t[k], sensors(x, torque) if noisy else x, goal), -effort, effort)
            sent = late + TORQUE_NOISE * effort * rng.normal(size=n) if noisy else u
            x, late = step(t[k], x, sent, [], DT), u
        if not np.abs(x[:n] - q[0]).max() < 10:
            return np.inf, np.inf
    q[2000] = x[:n]
    away = 1e3 * np.linalg.norm(tip(q) - tip(goals.x), axis=1)
    rest = ((t > 0.9) & (t <= 1.0)) | (t > 1.9)
    worst = float(away.max())
    return (worst, float(away[rest].mean())) if worst < 1e3 * LOST else (np.inf, np.inf)


def cell(name: str, law: str, case: str, move: int = 0, seeds: int = SEEDS) -> tuple[float, float]:
    """Worst of all variants and seeds of a case."""
    found = [
        run(name, law, variant, seed, move)
        for variant in CASES[case]
        for seed in range(seeds if variant[2] else 1)
    ]
    return max(f[0] for f in found), max(f[1] for f in found)


def main() -> None:
    """Run the table, print it, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arm", choices=sorted(ARMS), action="append")
    parser.add_argument("--move", type=int, action="append")
    parser.add_argument("--law", choices=list(LAWS), action="append")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.arm or sorted(ARMS):
        for move in options.move or range(3):
            print(f"{name}, move {move}: largest / at rest, mm", flush=True)
            rows = kept.setdefault(name, {}).setdefault(f"move {move}", {})
            rows["seeds"] = options.seeds
            for law in options.law or LAWS:
                row = {case: cell(name, law, case, move, options.seeds) for case in CASES}
                rows[law] = {c: [_rounded(v) for v in pair] for c, pair in row.items()}
                print(f"{law:36}", "  ".join(f"{a:.3g}/{b:.2g}" for a, b in row.values()),
                      flush=True)  # fmt: skip
                RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def _rounded(value: float) -> float | str:
    return float(f"{value:.3g}") if np.isfinite(value) else "lost"


if __name__ == "__main__":
    main()
