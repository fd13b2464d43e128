"""Calls that no loop should make, of all controllers and estimators, in Python and in C.

    python -m tests.benchmarks.hostile_calls [--calls 1000000] [--processes 2] [--growth]

Each caller gets random states, measurements, inputs, intervals and clocks: most are usual ones, the
rest is not finite, absurdly large, off its group, late, early, of another clock, or of no clock.
Counted are exceptions, answers that are not finite, controls beyond their bounds, covariances that
are not finite. Slow callers get a share of the calls. Exported C runs under the sanitizers of the
compiler, which end it at the first fault. `--growth` measures memory over a million calls of an EKF
and 100,000 of an MPC. Prints a table, writes it as JSON.
"""

import argparse
import json
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from lgcontrol.controllers import MPC, TVLQR, GeometricPD, PathFollowing, RealTime, ThrustVectorPD
from lgcontrol.estimation import (
    EKF,
    UKF,
    AttitudeHeading,
    LandmarkMap,
    MomentumObserver,
    MovingHorizon,
    gnss,
)
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, PathTask
from lgcontrol.systems import Waypoints
from tests.controllers import test_export as exported
from tests.controllers import test_hostile as loops
from tests.estimation import _models as models
from tests.estimation.test_filters import EXACT
from tests.hostile import firmware

from . import _sqp_peer  # noqa: F401  # enters itself in SOLVERS

RESULTS = Path(__file__).with_name("results") / "hostile_calls.json"
ODD = [np.nan, np.inf, -np.inf, 1e5, -1e5, 1e20, -1e160, 1e300, 0.0]
CLOCKS = [np.nan, np.inf, -1e300, 1e300, 1.7e9, -1e6, 0.0, 3600.0]
PARTS = 4  # of the calls of each, with seeds of their own
USUAL = 0.85  # share of calls of which nothing is wrong


def path_law():
    """A mass along a line."""
    line = Waypoints(Rn(2), [0, 2], [[0.0, 0.0], [2.0, 0.0]], order=3)
    task = PathTask(loops.pushed().__class__(
        "mass", loops.Product(place=loops.Translation("xy"), speed=Rn(2)),
        lambda t, x, u, p: loops.ca.vertcat(x[2:], u),
        inputs=[loops.Input("fx", "N", -1, 1), loops.Input("fy", "N", -1, 1)]),
        Waypoints(loops.Translation("xy"), line.t, [[0, 0], [2, 0]], order=3),
        weight=100.0, speed=0.5)  # fmt: skip
    return PathFollowing(task, 8, 0.1, R=0.01)


def mpc(**options):
    """A cart, pushed by an unknown gust."""
    given = {"Q": 1.0, "R": 1.0, "reference": [0.0, 0.0], **options}
    return MPC(loops.pushed(), horizon=8, dt=0.1, **given)


QUAD, BOAT = exported.QUAD, exported.BOAT
HOVER = QUAD.trim(position=[1, 0, 2])
# How to make each, what it is to follow, and the share of the calls that it gets.
CONTROLLERS = {
    "LQR": (exported.LAWS["LQR"], None, 1.0),
    "TVLQR": (lambda: TVLQR(QUAD, HOVER.trajectory(2.0, 0.05), Q=1, R=1), None, 1.0),
    "GeometricPD": (lambda: GeometricPD(BOAT, frequency=2.0), BOAT.trim().x, 1.0),
    "ThrustVectorPD": (lambda: ThrustVectorPD(QUAD), HOVER.x, 1.0),
    **{name: (exported.TREE_LAWS[name], exported.REST, 1.0)
       for name in ("ComputedTorque", "GravityPD")},
    **{name: (exported.TREE_LAWS[name], exported.ARM.position("tip")(exported.REST), 1.0)
       for name in ("Impedance", "OperationalSpace")},
    **{name: (make, None, 0.3) for name, make in exported.ELASTIC_LAWS.items()
       if "at the links" not in name},
    "MPC": (mpc, None, 0.05),
    "MPC, delay": (lambda: mpc(delay=0.25), None, 0.05),
    "MPC, bias": (lambda: mpc(disturbance="gust", delay=0.1), None, 0.05),
    "MPC, split": (lambda: mpc(real_time=RealTime(split=True)), None, 0.03),
    "MPC, hard bound": (lambda: mpc(bounds=[Bound("x0", -0.5, 0.5)]), None, 0.03),
    "MPC, SQP": (lambda: mpc(solver="sqp"), None, 0.01),
    "PathFollowing": (path_law, None, 0.01),
}  # fmt: skip


def attitude_heading():
    """The filter of its model."""
    model = AttitudeHeading(0.01)
    return EKF(model.system, model.sensors, **model.options)


def window(**options):
    """Attitudes, five steps."""
    given = {"std0": 0.1, "noise": {"gyro": 0.01, "walk": 1e-3}, "horizon": 5, "dt": 0.05}
    return MovingHorizon(models.ATTITUDE, [models.GRAVITY, models.FIELD], **given | options)


def planar(make, **options):
    """Fixes of a vehicle in the plane."""
    fix = gnss(models.PLANAR, lever_arm=[0.5, 0.2], std_discrete=0.3)
    return make(models.PLANAR, [fix], std0=0.3, noise={"velocity": 0.2}, **options)


ESTIMATORS = {
    "EKF": (lambda: planar(EKF, gate=0.99, window=0.3), 1.0),
    "EKF, right": (lambda: planar(EKF, error="right", robust="huber"), 1.0),
    "EKF, square root": (lambda: planar(EKF, square_root=True), 1.0),
    "EKF, iterated": (lambda: planar(EKF, iterations=3), 1.0),
    "EKF, discrete": (
        lambda: EKF(EXACT, [models.PLACE], std0=1.0, noise={"push": 0.3}, window=0.5), 1.0),
    "UKF": (lambda: planar(UKF), 1.0),
    "AttitudeHeading": (attitude_heading, 0.3),
    "MovingHorizon": (lambda: window(iterations=1), 0.01),
    "MovingHorizon, whole": (lambda: planar(MovingHorizon, horizon=4, dt=0.1), 0.003),
}  # fmt: skip
OBSERVERS = {"LandmarkMap": 0.3, "MomentumObserver": 0.3}


class Tally(Counter):
    """Counts of what must not be, with the first exception as text."""

    first = ""

    def failed(self):
        """Keep the exception that is being handled."""
        self["exceptions"] += 1
        self.first = self.first or traceback.format_exc(limit=-3)


def clocks(rng, count, dt):
    """Times of calls, with jumps."""
    now = 0.0
    for _ in range(count):
        now += dt * (1.0 if rng.random() < 0.97 else rng.uniform(0.0, 3.0))
        if rng.random() < 0.01:
            now = float(rng.choice([0.0, -1e4, 1.7e9, now - dt, now + 30 * dt]))
        yield float(rng.choice(CLOCKS)) if rng.random() < 0.01 else now


def odd(rng, values):
    """The values, mostly as they are."""
    if rng.random() < USUAL:
        return values
    values = values.copy()
    if rng.random() < 0.5:
        values[rng.integers(len(values))] = rng.choice(ODD)
    else:
        values *= 10.0 ** rng.uniform(-3, 12)
    return values


def call_controller(law, goal, count, seed):
    """Tally of so many calls of a controller, and the longest in s."""
    rng, tally, longest = np.random.default_rng(seed), Tally(), 0.0
    state, lower, upper = law.system.state, law._lower, law._upper
    law.prepare(0.0)
    target = goal if goal is not None and len(goal) == state.nq else None
    states = law.reference_states(np.zeros(1)) if target is None and goal is None else None
    base = target if target is not None else states[0] if states is not None else state.identity
    for t in clocks(rng, count, law.dt):
        near = state.plus(base, 10.0 ** rng.uniform(-3, 1) * rng.normal(size=state.dim))
        x, began = odd(rng, near), time.perf_counter()
        try:
            u = law(t, x, goal)
        except Exception:
            tally.failed()
            continue
        longest = max(longest, time.perf_counter() - began)
        tally["answers not finite"] += not np.isfinite(u).all()
        tally["beyond bounds"] += bool(((u < lower) | (u > upper)).any())
        tally[str(law.info.status)] += 1
    return tally, longest


def call_estimator(estimator, count, seed):
    """Tally of so many calls of an estimator, and the longest `predict` in s."""
    rng, tally, longest = np.random.default_rng(seed), Tally(), 0.0
    getattr(estimator, "compile", lambda: None)()
    system, bounds = estimator.system, estimator.sensors
    names, dt = list(bounds), system.dt or 0.05
    k = 0
    for t in clocks(rng, count // 2, dt):
        u = odd(rng, system.nominal_input + 0.3 * rng.normal(size=system.n_inputs))
        length = dt if system.dt or rng.random() < 0.9 else float(rng.choice([0.03, 0.3, 60, *ODD]))
        name, stamp, k = names[rng.integers(len(names))], None, k + 1
        y = odd(rng, np.atleast_1d(bounds[name].group.random(rng)))
        if rng.random() < 0.3:
            late = rng.uniform(-0.05, 0.4)
            stamp = float(rng.choice(CLOCKS)) if rng.random() < 0.05 else (estimator.t or 0) - late
        try:
            began = time.perf_counter()
            estimator.predict(t, u, length)
            longest = max(longest, time.perf_counter() - began)
            estimator.update(name, y, t=stamp)
            x, P = estimator.x, estimator.P
        except Exception:
            tally.failed()
            continue
        tally["answers not finite"] += not (np.isfinite(x).all() and np.isfinite(P).all())
        tally["off its group"] += not np.abs(system.state.normalize(x) - x).max() < 1e-6
    for counter in estimator.counts.values():
        tally += Counter(counter)
    return tally, longest


def call_observer(name, count, seed):
    """The two that have calls of their own."""
    rng, tally, longest = np.random.default_rng(seed), Tally(), 0.0
    if name == "LandmarkMap":
        slam = LandmarkMap(3, std0=0.0, noise={"velocity.x": 0.1}, std_discrete=0.1)
        for t in clocks(rng, count // 2, 0.05):
            try:
                slam.predict(t, odd(rng, rng.normal(size=3)), 0.05)
                slam.update(int(rng.integers(3)), odd(rng, rng.normal(size=2)))
            except Exception:
                tally.failed()
            tally["answers not finite"] += not (
                np.isfinite(slam.x).all() and np.isfinite(slam.P).all()
            )
        return tally, longest
    arm = exported.ARM.system()
    observer = MomentumObserver(arm, 50.0)
    for t in clocks(rng, count, 0.001):
        try:
            x = odd(rng, rng.normal(size=arm.state.nq))
            r = observer(t, x, odd(rng, rng.normal(size=arm.n_inputs)))
            tally["answers not finite"] += not np.isfinite(r).all()
        except Exception:
            tally.failed()
    return tally, longest


def call_firmware(count, seed, into):
    """Tallies of exported programs under sanitizers."""
    rng, found = np.random.default_rng(seed), {}
    laws = {
        "MPC in C": {"bounds": [Bound("x0", -0.5, 0.5, soft=10.0)]},
        "MPC in C, all rules": {
            "bounds": [Bound("x0", -0.5, 0.5)], "delay": 0.25, "disturbance": "gust",
        },
    }  # fmt: skip
    for name, options in laws.items():
        folder = into / f"mpc{len(found)}"
        folder.mkdir()
        program = firmware.mpc_program(mpc(**options), folder)
        rows = [[t, *odd(rng, rng.normal(size=2))] for t in clocks(rng, count, 0.1)]
        told = firmware.answers_of(program, rows)
        found[name] = Tally({
            "calls": len(told), "answers not finite": int((~np.isfinite(told)).any(axis=1).sum()),
            "beyond bounds": int((np.abs(told[:, 1]) > 1).sum()),
        })  # fmt: skip
    cart = {"std0": 1.0, "noise": {"push": 0.3}}
    makers = {
        "EKF in C": lambda: EKF(models.CART, [models.PLACE], **cart, gate=0.99),
        "MovingHorizon in C": lambda: MovingHorizon(
            models.CART, [models.PLACE], **cart, horizon=4, dt=0.1, iterations=1),
    }  # fmt: skip
    for name, make in makers.items():
        estimator, folder = make(), into / name.split()[0]
        folder.mkdir()
        rows = []
        for t in clocks(rng, count, 0.1):
            kind, values = int(rng.integers(2)), odd(rng, rng.normal(size=2))
            first = 0.1 if rng.random() < 0.9 else float(rng.choice([0.03, 0.3, 7.0, *ODD]))
            rows.append([kind, t if kind else first, *values])
        told = firmware.answers_of(firmware.estimator_program(estimator, folder), rows)
        broken = int((~np.isfinite(told)).any(axis=1).sum())
        found[name] = Tally({"calls": len(told), "answers not finite": broken})
    return found


def resident():
    """Memory of this process in kB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def growth(calls_of_filter=1_000_000, calls_of_mpc=100_000):
    """Memory in kB that loops take after their first tenth."""
    ekf, law, found = planar(EKF), mpc(), {}
    ekf.compile()
    law.prepare(0.0, [0.3, 0.0])

    def filtering(k):
        ekf.predict(0.1 * k, [1.0, 0.0, 0.1], 0.1)
        ekf.update("gnss", [0.0, 0.0])

    def controlling(k):
        law(0.1 * k, [0.3 * np.sin(0.01 * k), 0.0])

    loops_of = {"EKF": (filtering, calls_of_filter // 2), "MPC": (controlling, calls_of_mpc)}
    for name, (call, count) in loops_of.items():
        for k in range(count // 10):
            call(k)
        before = resident()
        for k in range(count // 10, count):
            call(k)
        found[name] = {"calls": 2 * count if name == "EKF" else count, "kB": resident() - before}
    return found


def job(kind, name, count, seed):
    """Tally of one caller, and its longest call in s; for a process of its own."""
    warnings.simplefilter("ignore")
    if kind == "C":
        with tempfile.TemporaryDirectory() as scratch:
            made = call_firmware(count, seed, Path(scratch))
        return {key: (tally.pop("calls"), tally, 0.0) for key, tally in made.items()}
    if kind == "controller":
        make, goal, _ = CONTROLLERS[name]
        tally, longest = call_controller(make(), goal, count, seed)
    elif kind == "estimator":
        tally, longest = call_estimator(ESTIMATORS[name][0](), count, seed)
    else:
        tally, longest = call_observer(name, count, seed)
    return {name: (count, tally, longest)}


def jobs(calls):
    """All callers, with as many calls as are their share, in `PARTS` parts."""
    of = {"controller": {name: entry[-1] for name, entry in CONTROLLERS.items()},
          "estimator": {name: entry[-1] for name, entry in ESTIMATORS.items()},
          "observer": OBSERVERS}  # fmt: skip
    each = calls * 0.8 / sum(sum(shares.values()) for shares in of.values()) / PARTS
    for seed in range(PARTS):
        for kind, shares in of.items():
            for name, share in shares.items():
                yield kind, name, int(each * share) + 1, seed
        yield "C", "", int(calls / 15 / PARTS) + 1, seed


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    table = {}
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for found in as_completed(pool.submit(job, *given) for given in jobs(options.calls)):
            for name, (count, tally, longest) in found.result().items():
                row = table.setdefault(name, Counter())
                ms = max(row.pop("longest [ms]", 0.0), round(1e3 * longest, 2))
                row.update({"calls": count, **tally})
                row["longest [ms]"] = ms
                print(f"{name:45s} {dict(row)}\n{tally.first}", flush=True)
    results = {"callers": {name: table[name] for name in sorted(table)}}
    for word in ("calls", "exceptions", "answers not finite", "beyond bounds", "off its group"):
        results[word] = sum(row[word] for row in table.values())
    if options.growth:
        results["growth"] = growth()
    print({key: value for key, value in results.items() if key != "callers"})
    options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
