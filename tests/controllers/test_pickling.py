"""What users make survives pickle, as processes of a campaign need it: functions of any kind."""

import os
import pickle
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

from lgcontrol import simulate
from lgcontrol.codegen._internal import compile_policy
from lgcontrol.controllers import MPC, PathFollowing
from lgcontrol.estimation import EKF, AttitudeHeading, Log, MovingHorizon, OffsetFree
from lgcontrol.groups import SE2, SO2, Product, Rn, Translation
from lgcontrol.models import delta_robot_tree, four_bar_tree
from lgcontrol.optimal import (
    Bound,
    Cost,
    OptimalControlProblem,
    PathTask,
    Phase,
    PhasedProblem,
    Rates,
    Residual,
    Sphere,
    keep_out,
    with_rates,
)
from lgcontrol.systems import Input, Quantity, Sensor, System, Waypoints

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself among the solvers
from ..estimation._models import CART, PLACE, SPEED
from ..optimal.examples import pendulum, vessel

pytestmark = pytest.mark.interpreted

DOWN, UP = [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]
WEIGHTS = {"Q": {"angle": 1, "rate": 0.1}, "R": 0.01}


def again(made):
    return pickle.loads(pickle.dumps(made))


def powered() -> System:
    return pendulum().replaced(
        quantities={"power": Quantity(lambda t, x, u, p: x[2] * u, ("motor",), "W")}
    )


TERMS = {
    "rates": {"rates": Rates(0.01, 5.0)},
    "rates and bounds": {
        "rates": Rates(0.01, 5.0),
        "bounds": [
            Bound("rate", -1, 1, soft=10.0), Bound("torque", upper=0.3), Bound("angle", -3, 3),
            Bound(lambda t, x, u, p: x[2] * u, upper=0.5), Bound("power", -2.0, 2.0),
        ],
        "residuals": [Residual(lambda t, x, u, p: x[2] * p[0], name="whirl")],
        "costs": [Cost(lambda t, x, u, p: u**2, 0.01)],
    },
    "functions": {
        "bounds": [
            Bound(lambda t, x, u, p: ca.vertcat(x[2], x[2] - u), -1, 1, name="both"),
            keep_out(lambda t, x, u, p: x[:2], Sphere([0.0, 2.0], 0.1)),
        ],
        "residuals": [
            Residual.from_goal(lambda t, x, u, p: x[:2], lambda t, p: p[1:3], SO2, terminal=2.0),
            Residual("power", function=lambda t, y, u, p: y - 0.1),
            Residual("power", 0.1),
            Residual(
                lambda t, x, u, p: x[2] - 0.1 * t, 0.1,
                derivatives=lambda t, x, u, p: (ca.DM([[0, 1]]), ca.DM(1, 1)),
            ),
        ],
        "costs": [Cost("power", 0.1)],
        "parameters": ["goal.cos", "goal.sin"],
        "p": {"goal.cos": -1.0},
    },
    "implicit": {"method": "radau_iia5", "costs": [Cost(lambda t, x, u, p: u**2, 0.01)]},
}  # fmt: skip


@pytest.mark.parametrize("terms", TERMS)
def test_predictive_controllers_answer_the_same(terms):
    mpc = MPC(powered(), 8, 0.1, reference=UP, **WEIGHTS, **TERMS[terms])
    copy = again(again(mpc))
    assert np.array_equal(copy(0.0, DOWN), mpc(0.0, DOWN))
    assert repr(copy) == repr(mpc)
    ours, theirs = (each.solver.transcription for each in (mpc, copy))
    assert theirs.rows.names == ours.rows.names
    assert theirs.identity == ours.identity  # what was compiled serves both
    assert np.array_equal(again(mpc)(0.1, DOWN), mpc(0.1, DOWN))  # in its loop


@pytest.mark.parametrize("solver", ["interior_point", "ipopt", "fatrop", "sqp"])
def test_each_solver_survives_with_rates_and_so_does_its_plan(solver):
    problem = OptimalControlProblem(pendulum(), 8, 0.1, reference=UP, **WEIGHTS)
    problem = with_rates(problem, Rates(0.01, 5.0))
    plan = problem.solve([*DOWN, 0.0], solver=solver)
    assert np.array_equal(again(problem).solve([*DOWN, 0.0], solver=solver).x, plan.x)
    assert np.array_equal(again(plan).x, plan.x)


def test_another_process_plans_the_same(tmp_path):
    """It has none of the functions that the problem was stated in."""
    mpc = MPC(pendulum(), 8, 0.1, reference=UP, **WEIGHTS, rates=Rates(0.01, 5.0),
              costs=[Cost(lambda t, x, u, p: u**2, 0.01)])  # fmt: skip
    (tmp_path / "mpc").write_bytes(pickle.dumps(mpc))
    program = f"import pickle; mpc = pickle.load(open({str(tmp_path / 'mpc')!r}, 'rb')); "
    done = subprocess.run(
        [sys.executable, "-c", program + f"print(float(mpc(0.0, {DOWN})[0]).hex())"],
        capture_output=True, text=True, check=True,
        env=os.environ | {"LGCONTROL_COMPILE": compile_policy()},
    )  # fmt: skip
    assert float.fromhex(done.stdout) == mpc(0.0, DOWN)[0]


def test_plans_of_phases_and_along_paths_survive():
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("u", "", -1, 1)])
    phases = [
        Phase(cart, 6, (0.2, 5), jump=lambda t, x, p: [x[0], 0.5 * x[1]],
              bounds=[Bound(lambda t, x, u, p: x[1] - p, upper=0.8)]),
        Phase(cart, 6, (0.2, 5), residuals=[Residual(lambda t, x, u, p: x[1], 0.01)],
              bounds=[Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")]),
    ]  # fmt: skip
    problem = PhasedProblem(phases, time_weight=1.0, parameters=["faster"])
    found, copy = problem.solve([0, 0]), again(problem)
    assert np.array_equal(copy.solve([0, 0]).solution.x, found.solution.x)
    assert copy.solve([0, 0]).switches == pytest.approx(again(found).switches, abs=0)
    mass = System(
        "mass", Product(place=Translation("xy"), speed=Rn(2)),
        lambda t, x, u, p: ca.vertcat(x[2:], u), inputs=["fx", "fy"],
    )  # fmt: skip
    corner = Waypoints(Translation("xy"), [0, 1, 2], [[0, 0], [1, 0], [1, 1]], order=3)
    task = PathTask(mass, corner, weight=10.0, speed=0.5)
    assert again(task).nearest([0.3, 0.1, 0, 0]) == task.nearest([0.3, 0.1, 0, 0])
    law = PathFollowing(task, 6, 0.1)
    assert np.array_equal(again(law)(0.0, np.zeros(4)), law(0.0, np.zeros(4)))


def test_estimators_and_what_they_found_survive():
    log = Log([0.0, 0.1, 0.2], np.zeros((3, 2)), {"place": ([0.1, 0.2], [0.1, 0.2])})
    options = {"std0": 1.0, "noise": {"push": 0.1}}
    scaled = Sensor(
        "speed", lambda t, x, u, p: x[1], Rn(1), std_discrete=0.2,
        scale=lambda t, x, u, p: 1 + x[0] ** 2, directions=lambda t, x, u, p: ca.DM([0, 1]),
    )  # fmt: skip
    log = Log(log.t, log.u, {**log.measurements, "speed": ([0.1], [0.3])})
    for made in (
        EKF(CART, [PLACE, scaled], **options),
        MovingHorizon(CART, [PLACE, SPEED], horizon=3, dt=0.1, **options,
                      bounds=[Bound(lambda t, x, u, p: x[1], -1, 1)]),
    ):  # fmt: skip
        found = made.run(log)
        assert np.array_equal(again(made).run(log).x, found.x)
        assert np.array_equal(again(found).P, found.P)
    found = EKF(CART, [PLACE, scaled], **options).run(log)
    assert np.array_equal(again(found).smooth().x, found.smooth().x)
    heading = AttitudeHeading(0.01)
    signals = np.zeros((4, 3)), np.tile([0, 0, 9.8], (4, 1)), np.tile([0, 17.0, -42.0], (4, 1))
    results = [
        each.filter(*each.start(*signals)).run(each.log(*signals)).x
        for each in (heading, again(heading))
    ]
    assert np.array_equal(*results)


def test_output_feedback_survives_in_its_loop():
    boat = vessel()
    model = boat.augment(bias="current", bias_walk=True)
    both = OffsetFree(
        MPC(model, 5, 0.1, rates=Rates(), disturbance=()),
        EKF(model, [Sensor("fix", lambda t, x, u, p: x[:4], SE2, std_discrete=0.1)],
            std0=1.0, noise={"current.walk": 0.1}), boat,
    )  # fmt: skip
    rest = boat.state.identity
    assert np.array_equal(again(both)(0.0, rest, rest), both(0.0, rest, rest))
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["flow"])
    mpc = MPC(cart, 5, 0.1, rates=Rates(), solver="sqp", reference=[0.0])
    simulate(cart, mpc, x0=[1.0], seconds=0.3)
    assert np.array_equal(again(mpc)(0.3, [0.5]), mpc(0.3, [0.5]))


def test_results_of_functions_and_closed_trees_survive():
    linear = vessel().linearize(vessel().state.identity, [0.0, 0.0, 0.0])
    assert np.array_equal(again(linear).A, linear.A)
    for tree, crank in ((four_bar_tree(), "crank"), (delta_robot_tree(), None)):
        driven = tree if crank is None else tree.couple("gear", "rocker", crank, -1.0)
        q, names = driven.tree.configuration.identity, driven.constraints.row_names
        assert again(driven).constraints.row_names == names
        ours, theirs = (
            each.constraints.terms(0.0, q, np.zeros(each.tree.nv), np.zeros(0))
            for each in (driven, again(driven))
        )
        assert all(np.array_equal(a.full(), b.full()) for a, b in zip(ours, theirs, strict=True))
