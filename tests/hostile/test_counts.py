"""Counts and times that nobody can wait for end at once, with a message that names them."""

import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.codegen import chain
from lgcontrol.estimation import LandmarkMap, MovingHorizon
from lgcontrol.groups import Rn
from lgcontrol.mechanics import InverseKinematics
from lgcontrol.models import scara_tree
from lgcontrol.optimal import Phase, retime
from lgcontrol.systems import BSpline, step_derivatives

MANY = 10**30
CART = lg.System("cart", Rn(1), lambda t, x, u, p: u, inputs=["force"])
PATH = lg.Waypoints(Rn(1), [0, 1], [[0.0], [1.0]], order=1)
PLACE = lg.Sensor("place", dt=0.1, std_discrete=0.1)


def problem(**options):
    return lg.OptimalControlProblem(
        CART, **({"horizon": 5, "dt": 0.1, "Q": 1.0, "R": 1.0} | options)
    )


def simulated(**options):
    return lg.simulate(CART, x0=[0.0], **({"seconds": 1.0} | options))


ABSURD = {
    "step": (lambda: CART.step("rk4", MANY), "substeps"),
    "step, by a float": (lambda: CART.step("rk4", 1e30), "substeps"),
    "step_derivatives": (lambda: step_derivatives(CART, "rk4", 10**5), "substeps"),
    "discretize": (lambda: CART.discretize(0.1, substeps=MANY), "substeps"),
    "rollout, substeps": (lambda: CART.rollout([0.0], dt=0.1, steps=3, substeps=MANY), "substeps"),
    "rollout, steps": (lambda: CART.rollout([0.0], dt=0.1, steps=10**12), "steps"),
    "chain": (lambda: chain(CART.step(), MANY, carry=("x", "x_next")), "steps of a chain"),
    "seconds": (lambda: simulated(seconds=1e300), "steps of record_dt = 0.01 s in seconds = 1e"),
    "max_step": (lambda: simulated(max_step=1e-12), "steps of record_dt = 1e-12 s"),
    "max_step of equal steps": (
        lambda: simulated(seconds=1e5, method="rk4", max_step=1e-9, record_dt=1.0), "max_step",
    ),
    "record_dt": (lambda: simulated(seconds=1e5, record_dt=1e-9), "record_dt = 1e-09 s"),
    "sensor": (
        lambda: simulated(seconds=1e5, sensors=[lg.Sensor("a", dt=1e-9, std_discrete=1.0)]),
        "seconds",
    ),
    "delay": (lambda: CART.discretize(0.01).augment(delay=1e5), "delay of 'force'"),
    "delay_order": (lambda: CART.augment(delay=0.1, delay_order=10**5), "delay_order"),
    "horizon": (lambda: problem(horizon=MANY), "horizon"),
    "substeps of a problem": (lambda: problem(substeps=MANY), "substeps"),
    "MPC, horizon": (lambda: lg.MPC(CART, horizon=10**7, dt=0.1, Q=1.0, R=1.0), "horizon"),
    "MPC, delay": (lambda: lg.MPC(CART, horizon=5, dt=0.1, Q=1.0, R=1.0, delay=1e5), "delay"),
    "intervals": (lambda: retime(PATH, velocity=1, intervals=MANY), "intervals"),
    "degree": (lambda: BSpline(Rn(1), [0, 1], np.zeros((9, 1)), degree=MANY), "degree"),
    "order": (lambda: lg.Waypoints(Rn(1), [0, 1], [[0.0], [1.0]], order=10001), "order"),
    "phase": (lambda: Phase(CART, MANY, (0.1, 1.0)), "steps"),
    "window": (
        lambda: MovingHorizon(
            CART, [PLACE], [0.0], std0=1.0, noise={"force": 1.0}, horizon=10**7, dt=0.1
        ),
        "horizon",
    ),
    "landmarks": (
        lambda: LandmarkMap(10**9, std0=0.0, noise={"velocity.x": 0.1}, std_discrete=0.1), "count",
    ),
    "restarts": (
        lambda: InverseKinematics(scara_tree(), scara_tree().frames[-1]).solve(
            lg.SE3.identity, restarts=MANY
        ),
        "restarts",
    ),
    "check_system": (lambda: lg.check_system(CART, samples=MANY), "samples"),
}  # fmt: skip


@pytest.mark.parametrize("case", ABSURD)
def test_counts_without_limit_are_refused(case):
    call, named = ABSURD[case]
    with pytest.raises(ValueError, match=named):
        call()
