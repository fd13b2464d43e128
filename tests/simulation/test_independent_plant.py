"""A closed loop against another program: quaternions and world velocities, its own integrator."""

import importlib.util
import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.simulation import InputSignal, Kick, simulate
from lgcontrol.systems import Input, System

# Both take five RK4 steps of 10 ms a period, one on the group, the other on quaternions that it
# normalises. At the 3.7 rad/s of the push they differ by the error of RK4, (0.037)^5 / 120 a step,
# times 50 steps in which the rates decay and the positions gather it.
RK4_ERROR = 1e-6

DAMPING = -np.array([[1, -1, 12], [1, 1, -12], [-1, 1, 12], [-1, -1, -12]]) * 0.15


@pytest.fixture(scope="module")
def judge(shared):
    """The neutral plant and loop of problem A."""
    spec = importlib.util.spec_from_file_location("judge", shared / "specs" / "plant.py")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its JSON file open
        spec.loader.exec_module(module)
    return module


def quadrotor(judge) -> System:
    names = [f"{kind}_{axis}" for kind in ("force", "torque") for axis in "xyz"]

    def f(t, x, u, p):
        R, v, w = SO3.matrix(x[3:7]), x[7:10], x[10:13]
        wrench = ca.DM(judge.MIX) @ u[:4]
        world = u[4:7] - ca.vertcat(0, 0, judge.m * judge.g)
        force = ca.vertcat(0, 0, wrench[0]) + R.T @ world
        inertia = ca.DM(judge.J)
        turn = wrench[1:] + u[7:10] - ca.cross(w, inertia * w)
        return ca.vertcat(v, w, force / judge.m - ca.cross(w, v), turn / inertia)

    return System(
        "quadrotor",
        Product(pose=SE3, twist=Rn(6)),
        f,
        inputs=[
            *(Input(f"rotor_{i}", "N", 0.0, 6.0) for i in range(4)),
            *(Input(name, role="disturbance") for name in names),
        ],
    )


def from_theirs(x: np.ndarray) -> np.ndarray:
    """Position, quaternion xyzw, body twist; from the order wxyz and a velocity in the world."""
    q = np.roll(x[..., 3:7], -1, axis=-1)
    v = np.einsum("...ji,...j->...i", SO3.matrix(q), x[..., 7:10])
    return np.concatenate([x[..., :3], q, v, x[..., 10:13]], axis=-1)


@pytest.mark.usually(seed=[1])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_loop_of_problem_a(judge, seed):
    """Rate damping with saturated rotors, gusts, and the push at 1.5 s."""
    theirs = judge.closed_loop(
        lambda x, k: judge.UH + DAMPING @ x[10:13], judge.X0, T=2.5, seed=seed
    )["X"]
    rng = np.random.default_rng(seed)
    gusts = [np.concatenate([rng.normal(0, 0.5, 3), rng.normal(0, 0.01, 3)]) for _ in range(50)]
    plant = quadrotor(judge)

    def gust(t):
        return dict(zip(plant.input_names[4:], gusts[round(t / 0.05)], strict=True))

    # Their push is in world axes; those of the body at that time are known from their run.
    R = SO3.matrix(from_theirs(theirs[30])[3:7])
    push = Kick(1.5, {"twist": [*(R.T @ [1.0, 0.0, -1.0]), 3.0, -2.0, 1.0]})
    run = simulate(
        plant,
        lambda t, x, reference: judge.UH + DAMPING @ x[10:13],
        x0=from_theirs(judge.X0),
        seconds=2.5,
        dt=0.05,
        disturbances=[InputSignal(gust, dt=0.05), push],
        max_step=0.01,
    )
    assert len(run.t) == len(theirs) == 51
    difference = plant.state.minus(run.x, from_theirs(theirs))
    assert abs(difference).max() < RK4_ERROR
    assert run.saturation() > 0 and abs(run.x[:, 10:]).max() > 2
