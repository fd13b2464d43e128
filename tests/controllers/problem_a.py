"""Benchmark problem A as a System, and the way to and from the coordinates of its neutral plant.

The plant is a program of its own (NumPy, quaternions w first, velocity in world axes); nothing of
it is used here but what `problems.json` beside it states.
"""

import importlib.util
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

import casadi as ca
import numpy as np

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.systems import Input, System

from ..optimal.examples import mechanical

MASS, GRAVITY = 1.0, 9.81
INERTIA = np.array([0.01, 0.01, 0.02])
ARM = 0.17 / np.sqrt(2)
ROTORS = ARM * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
SPIN = 0.016 * np.array([1, -1, 1, -1])
HOVER = np.full(4, MASS * GRAVITY / 4)
MIX = np.vstack([np.ones(4), ROTORS[:, 1], -ROTORS[:, 0], SPIN])  # lift and torques of the rotors
GOAL = np.array([2.0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
HORIZON, STEP = 40, 0.05


@cache  # its functions are traced once
def quadrotor() -> System:
    """Quadrotor on SE(3) with its body-fixed twist."""

    def field(t, x, u, p):
        v, w = x[7:10], x[10:]
        wrench = ca.DM(MIX) @ u
        weight = SO3.matrix(x[3:7]).T @ ca.DM([0, 0, -GRAVITY])
        dv = weight + ca.vertcat(0, 0, wrench[0] / MASS) - ca.cross(w, v)
        return ca.vertcat(x[7:], dv, (wrench[1:] - ca.cross(w, INERTIA * w)) / INERTIA)

    rotors = [Input(f"rotor{i}", "N", 0.0, 6.0, HOVER[i]) for i in range(4)]
    state = Product(pose=SE3, twist=Rn(6))
    return System("quadrotor", state, field, inputs=rotors, structure=mechanical(state, field, 4))


def from_neutral(x: np.ndarray) -> np.ndarray:
    """[p, q wxyz, v world, w] to [p, q xyzw, v body, w]."""
    q = x[[4, 5, 6, 3]]
    return np.concatenate([x[:3], q, SO3.matrix(q).T @ x[7:10], x[10:]])


def to_neutral(x: np.ndarray) -> np.ndarray:
    """[p, q xyzw, v body, w] to [p, q wxyz, v world, w]."""
    return np.concatenate([x[:3], x[[6, 3, 4, 5]], SO3.matrix(x[3:7]) @ x[7:10], x[10:]])


def load_neutral(shared: Path) -> ModuleType:
    """The neutral plant, cost and judge."""
    spec = importlib.util.spec_from_file_location("problem_a_plant", shared / "specs" / "plant.py")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its JSON file open
        spec.loader.exec_module(module)
    return module


def attitudes(count: int = 100, seed: int = 0) -> np.ndarray:
    """Random unit quaternions w first, signs as drawn; seed 0 gives those of the benchmark."""
    q = np.random.default_rng(seed).normal(size=(100, 4))
    return (q / np.linalg.norm(q, axis=1, keepdims=True))[:count]


def closed_loop(
    plant: ModuleType,
    controller,
    x0: np.ndarray,
    *,
    canon: bool = True,
    dist: bool = True,
    limits: tuple[float, float] = (0.0, 6.0),
) -> dict:
    """The judge's loop, for controllers that run faster than it and for other rotor limits.

    For a controller at the judge's rate and its limits the result is the judge's.
    """
    controller.reset()
    rng, calls = np.random.default_rng(1), round(STEP / controller.dt)
    x, states, statuses, times = np.array(x0, dtype=float), [], [], []
    for k in range(80):
        force = rng.normal(0, 0.5, 3) if dist else np.zeros(3)
        torque = rng.normal(0, 0.01, 3) if dist else np.zeros(3)
        for j in range(calls):
            measured = x.copy()
            if canon and measured[3] < 0:
                measured[3:7] *= -1
            u = controller(k * STEP + j * controller.dt, from_neutral(measured), GOAL)
            statuses.append(controller.info.status)
            times.append(controller.info.solve_time)
            x = plant.step(
                x, np.clip(u, *limits), h=STEP / calls, n=max(1, 5 // calls), Fd=force, Td=torque
            )
        if dist and k == 29:
            x[7:10] += [1, 0, -1]
            x[10:13] += [3, -2, 1]
        states.append(x)
    errors = np.array([plant.err(state) for state in states[-6:]])
    position = float(np.linalg.norm(errors[:, :3], axis=1).mean())
    angle = float(np.linalg.norm(errors[:, 3:6], axis=1).mean())
    return {
        "success": position < 0.3 and angle < 0.3,
        "perr": position,
        "aerr": angle,
        "statuses": statuses,
        "times": times,
    }
