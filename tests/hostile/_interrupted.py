"""Long operations of every room, and Ctrl-C at random moments of them.

    python -m tests.hostile._interrupted [--moments 200] [--seed 0] [--only NAME …]

An interrupt is lost where the operation returns, or raises something else, after it was sent.
"""

import argparse
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import lgcontrol as lg
from lgcontrol import models
from lgcontrol.controllers import MPC
from lgcontrol.estimation import EKF, UKF, Log, MovingHorizon, gnss, inertial_navigation
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.mechanics import InverseKinematics
from lgcontrol.optimal import retime
from tests.benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS

LATE = 2.0  # s from which an interrupt that arrives is late: people press the keys again
NOISE = {
    "gyro": 1e-3, "accelerometer": 1e-2, "gyro_bias_walk": 1e-5, "accelerometer_bias_walk": 1e-4,
}  # fmt: skip


def _pendulum():
    return lg.System(
        "pendulum",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: [x[2], -9.81 * x[1] - 0.1 * x[2] + u[0]],
        inputs=[lg.Input("torque", lower=-4.0, upper=4.0)],
    )


def _swing_up():
    return lg.OptimalControlProblem(
        _pendulum(), horizon=60, dt=0.05, Q={"angle": 10.0, "rate": 1.0}, R=0.1,
        terminal={"angle": 100.0, "rate": 10.0}, reference=[-1.0, 0.0, 0.0],
    )  # fmt: skip


def _solve(solver):
    return lambda: _swing_up().solve([1.0, 0.0, 0.0], solver=solver)


def _solve_many():
    starts = np.tile([1.0, 0.0, 0.0], (200, 1))
    starts[:, 2] = np.linspace(-3, 3, 200)
    return _swing_up().solve_many(starts)


def _rollout():
    return _pendulum().rollout([1.0, 0.0, 0.0], [0.1], dt=1e-3, steps=500_000, substeps=60)


def _batch():
    starts = np.tile([1.0, 0.0, 0.0], (3000, 1))
    return _pendulum().rollout(starts, [0.1], dt=1e-3, steps=1_000, substeps=10)


def _construct():
    arm = models.panda()
    return arm.linearize(arm.home, arm.nominal_input)


def _trim():
    return models.quadrotor().trim(where={"twist.vx": 3.0, "twist.wz": 0.5})


def _retime():
    tree = models.panda_tree()
    path = lg.Waypoints(tree.configuration, [0, 1], [np.zeros(7), 0.3 * np.ones(7)], order=1)
    return retime(path, system=tree.system(), acceleration=20.0)


def _inverse_kinematics():
    tree = models.panda_tree()
    goal = tree.placement(tree.frames[-1])(np.full(7, 0.3))
    for _ in range(10):
        InverseKinematics(tree, tree.frames[-1]).solve(goal, restarts=20)


def _log(seconds):
    t, at = np.arange(0, seconds, 0.01), np.arange(1, seconds)
    given = np.tile([0, 0, 0, 0, 0, 9.81], (len(t), 1))
    return Log(t, given, {"gnss": (at, np.tile([0.3, 0, 0.5], (len(at), 1)))})


def _filter(kind):
    def run():
        ins = inertial_navigation()
        antenna = gnss(ins, lever_arm=[0.3, 0, 0.5], std_discrete=0.5)
        std = {"body": 0.3, "gyro_bias": 0.01, "accelerometer_bias": 0.1}
        return kind(ins, [antenna], std0=std, noise=NOISE).run(_log(100)).smooth()

    return run


def _window():
    quad = models.quadrotor()
    fix = lg.Sensor("fix", dt=0.02, h="pose", std_discrete=0.01)
    made = MovingHorizon(
        quad, [fix], quad.home, std0=0.1, noise={"force": 0.1, "torque": 0.01}, horizon=4, dt=0.02,
        bounds=[lg.Bound("pose.z", lower=-1.0)], iterations=1,
    )  # fmt: skip
    for k in range(50):
        made.predict(0.02 * k, quad.trim().u, 0.02)
        made.update("fix", quad.home[:7])


def _predictive():
    quad = models.quadrotor()
    mpc = MPC(quad, horizon=20, dt=0.05, Q={"pose": 10, "twist": 1}, R=0.1)
    for k in range(50):
        mpc(0.05 * k, quad.home, quad.home)


OPERATIONS: dict[str, Callable[[], object]] = {
    "solve: interior point": _solve("interior_point"),
    "solve: SQP": _solve("sqp"),
    "solve: IPOPT": _solve("ipopt"),
    "solve_many": _solve_many,
    "rollout": _rollout,
    "rollout of a batch": _batch,
    "construct and linearize": _construct,
    "trim": _trim,
    "retime": _retime,
    "inverse kinematics": _inverse_kinematics,
    "EKF over a log": _filter(EKF),
    "UKF over a log": _filter(UKF),
    "moving horizon": _window,
    "MPC": _predictive,
}


# Those whose code is quickly built.
QUICK = ("solve: SQP", "construct and linearize", "trim")


class Moment(NamedTuple):
    """What an interrupt at a random moment did.

    Attributes
    ----------
    operation : str
    share : float
        Of the operation's time after which it was sent.
    outcome : str
        ``arrived``, ``late``, ``lost`` or ``other``.
    delay : float
        s from the signal to the end of the operation.
    told : str
        The traceback of another exception.
    """

    operation: str
    share: float
    outcome: str
    delay: float
    told: str


def interrupt(name: str, after: float) -> Moment:
    """Carry one operation out and send the interrupt so many seconds after its start."""
    sent, is_over = [], threading.Event()

    def press():
        if not is_over.wait(after):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    outcome, told, ended = "lost", "", time.perf_counter()
    try:
        try:
            thread.start()
            OPERATIONS[name]()
        finally:
            ended = time.perf_counter()
            is_over.set()
            thread.join()
    except KeyboardInterrupt:
        outcome = "arrived"
    except Exception:
        outcome, told = "other", traceback.format_exc()
    if not sent:
        return Moment(name, after, "over", 0.0, told)
    delay = ended - sent[0]
    if outcome == "arrived" and delay > LATE:
        outcome = "late"
    if outcome == "lost" and delay < 0:
        outcome = "over"
    return Moment(name, after, outcome, delay, told)


def duration(name: str) -> float:
    """Seconds that an operation takes, once its code is compiled."""
    for _ in range(2):  # the first builds
        began = time.perf_counter()
        OPERATIONS[name]()
        spent = time.perf_counter() - began
    return spent


def moments(name: str, count: int, rng: np.random.Generator) -> list[Moment]:
    """Interrupts at so many random moments of an operation."""
    spent = duration(name)
    return [interrupt(name, spent * rng.uniform(0, 0.95)) for _ in range(count)]


def main() -> None:
    """Print a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(OPERATIONS))
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    total = {}
    for name in given.only:
        made = moments(name, -(-given.moments // len(given.only)), rng)
        counts = {}
        for one in made:
            counts[one.outcome] = counts.get(one.outcome, 0) + 1
            total[one.outcome] = total.get(one.outcome, 0) + 1
            if one.outcome not in ("arrived", "over"):
                print(
                    f"   {one.outcome} at {one.share:.3f} s, {one.delay:.2f} s\n{one.told[-600:]}"
                )
        slow = max(one.delay for one in made)
        print(f"{name:30s} {counts}  longest {slow:.2f} s", flush=True)
    print(total)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
