"""Designs of campaigns that take milliseconds: a cart, what goes wrong with it, an estimator."""

import os
import signal
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.codegen import set_compile_policy
from lgcontrol.estimation import EKF
from lgcontrol.groups import Rn
from lgcontrol.models import quadrotor
from lgcontrol.simulation import Criterion, HeldNoise, Task, Vary
from lgcontrol.systems import Input, Parameter, Sensor, System

IS_WORKER = "LGCONTROL_CAMPAIGN_WORKER" in os.environ
if IS_WORKER:
    set_compile_policy("off")  # a compiler takes longer than these runs


def plant() -> System:
    return System(
        "cart",
        Rn(2, ("place", "speed"), ("m", "m/s")),
        lambda t, x, u, p: ca.vertcat(x[1], (u[0] + u[1]) / p[0]),
        inputs=[Input("push", "N"), Input("wind", "N", role="disturbance")],
        parameters=[Parameter("load", "kg", 1.0)],
    )


class PD:
    dt, offset, delay = 0.1, 0.0, 0.0

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def __call__(self, t, x, reference=None):
        return -self.gain * x[:1] - 2.0 * x[1:]


def place(run):
    return np.abs(run.x[:, 0])


def effort(run):
    return float(np.square(run.u[:, 0]).sum() * 0.1)


def draw(seed: int) -> dict:
    return {"x0": np.array([np.random.default_rng(seed).uniform(0.5, 1.5), 0.0])}


CRITERIA = (
    Criterion("place at the end", place, 0.25, "m", last=0.0),
    Criterion("effort", effort, unit="N² s"),
)


def design(seed: int = 0, gain: float = 2.0) -> Task:
    """Cart comes to rest."""
    return Task(
        plant(),
        PD(gain),
        **draw(seed),
        seconds=3.0,
        options={"disturbances": [HeldNoise({"wind": 0.2}, 0.1)], "max_step": 0.1, "method": "rk4"},
        criteria=CRITERIA,
        variations=(Vary("load", 0.5, 3.0, unit="kg"), Vary("input.wind", -0.5, 0.5, unit="N")),
        draw=draw,
    )


def stepped(seed: int = 0, steps: int = 2) -> Task:
    """A design that takes a whole number."""
    return design(seed, gain=float(len(range(steps))))


def deadly(seed: int = 0, once: str = "", poison: bool = False) -> Task:
    """Cart whose process dies: once, at the case that finds a file, or always."""
    if poison and IS_WORKER:
        os.kill(os.getpid(), signal.SIGKILL)
    if once and IS_WORKER and Path(once).exists():
        Path(once).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return design(seed)


def raising(seed: int = 0, fails: bool = False) -> Task:
    if fails:
        raise RuntimeError("no such <cart>")
    return design(seed)


def plain(seed: int = 0) -> Task:
    """Without a draw: the seed makes the whole task."""
    return Task(
        plant(), PD(1.0 + seed), np.array([1.0, 0.0]), 1.0,
        options={"max_step": 0.1, "method": "rk4"}, criteria=CRITERIA,
    )  # fmt: skip


def estimating(seed: int = 0) -> Task:
    """Cart that knows of itself what a filter says."""
    cart, rng = plant(), np.random.default_rng(seed)
    sensor = Sensor("gps", lambda t, x, u, p: x[:1], Rn(1), std_discrete=0.1, dt=0.1)
    x0 = np.array([1.0, 0.0])
    return Task(
        cart, PD(2.0), x0, 1.0,
        options={
            "sensors": [sensor],
            "estimator": EKF(
                cart, [sensor], x0 + 0.1 * rng.normal(size=2), 0.01 * np.eye(2),
                noise={"wind": 0.2},
            ),
            "disturbances": [HeldNoise({"wind": 0.2 / np.sqrt(0.1)}, 0.1)],
        },
        criteria=CRITERIA,
    )  # fmt: skip


def troubled(seed: int = 0) -> Task:
    """Cart with a filter; some seeds fail at the start, in the run, or when they are judged."""

    def control(t, x, reference=None):
        if x[0] > 1.2:
            raise RuntimeError("too far out")
        return PD(2.0)(t, x)

    def drawn(seed: int) -> dict:
        if seed % 5 == 1:
            raise RuntimeError("no start")
        return draw(seed)

    def judged(run):
        if run.x[0, 0] < 0.8:
            raise RuntimeError("too near")
        return float(run.x[-1, 0])

    task = estimating(seed)
    options = {**task.options, "dt": 0.1}
    return Task(
        task.plant, control, np.array([1.0, 0.0]), 1.0, options=options, draw=drawn,
        criteria=(*CRITERIA, Criterion("nearness", judged)),
    )  # fmt: skip


def flying(seed: int = 0) -> Task:
    """A body in free fall, which has a look."""
    quad = quadrotor()
    x0 = quad.state.random(seed=seed)
    return Task(quad, None, x0, 0.02, options={"dt": 0.01}, criteria=CRITERIA[1:])


def empty(seed: int = 0) -> Task:
    return Task(plant(), PD(1.0), np.zeros(2), 1.0)
