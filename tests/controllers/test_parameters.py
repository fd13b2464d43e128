"""Parameters that change while a loop runs, and what is never built again for them."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import _backend
from lgcontrol.controllers import LQR, MPC, Adapted, ComputedTorque, GeometricPD, GravityPD
from lgcontrol.groups import Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.optimal import (
    Bound,
    OptimalControlProblem,
    Residual,
)
from lgcontrol.simulation import simulate
from lgcontrol.systems import Input, Parameter, System

from ..benchmarks._sqp_peer import SQPSolver
from ..optimal.examples import pendulum
from .test_export import ran

pytestmark = pytest.mark.interpreted

# Interpreted and compiled functions add in other orders.
ROUNDING = 1e-9


def cart():
    return System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], (u - p[1] * x[1]) / p[0]),
        inputs=[Input("push", "N", -2.0, 2.0)],
        parameters=[Parameter("mass", "kg", 1.0), Parameter("drag", "N s/m", 0.1)],
    )  # fmt: skip


def goal_seeker(**options):
    """Drives to a place that is a parameter, slower than a limit that is one, too."""
    return MPC(
        cart(), horizon=20, dt=0.1, Q=0.0, R=0.1, terminal=0.0, reference=[0.0, 0.0],
        residuals=[Residual(lambda t, x, u, p: ca.vertcat(x[0] - p[2], x[1]), 1.0, 20.0)],
        bounds=[Bound("x1", upper=1.0, name="speed")], parameters=[Parameter("goal", "m", 1.0)],
        **options,
    )  # fmt: skip


def driven(mpc, p, steps=55):
    """Where the cart is, and its largest speed, with the parameters of a plant."""
    x, fastest, model = np.zeros(2), 0.0, cart()
    plant = [p.get("mass", 1.0), p.get("drag", 0.1)]
    for k in range(steps):
        x = model.step()(0.0, x, mpc(0.1 * k, x, p=p), plant, 0.1)
        fastest = max(fastest, x[1])
    return x[0], fastest


def test_goals_limits_and_masses_change_without_another_build(monkeypatch):
    mpc = goal_seeker().symbolic("speed.upper")
    mpc.prepare()
    mpc(0.0, np.zeros(2))
    mpc(0.1, np.zeros(2))
    builds, functions = [], mpc.solver.transcription._functions
    load = _backend.get_kernel
    monkeypatch.setattr(_backend, "get_kernel", lambda *a, **k: builds.append(a) or load(*a, **k))
    for p in ({"goal": 2.0}, {"goal": -1.0, "mass": 3.0}, {"goal": 1.2, "speed.upper": 0.4}):
        mpc._loop = mpc._loop._replace(plan=type(mpc._loop.plan)())
        place, fastest = driven(mpc, p)
        assert place == pytest.approx(p["goal"], abs=0.02)
        assert fastest < p.get("speed.upper", 1.0) + 0.01
    assert not builds
    assert mpc.solver.transcription._functions is functions
    assert mpc.parameters == {"mass": 1.0, "drag": 0.1, "goal": 1.0, "speed.upper": 1.0}


def test_a_call_a_setting_and_a_copy_say_the_same():
    called, set_, fresh = (goal_seeker() for _ in range(3))
    copied = fresh.with_parameters({"goal": 0.3, "mass": 2.0})
    set_.parameters = {"goal": 0.3}
    set_.parameters = {"mass": 2.0}
    made = goal_seeker(p={"goal": 0.3, "mass": 2.0})
    x = np.array([0.1, 0.2])
    answers = [called(0.0, x, p={"goal": 0.3, "mass": 2.0})]
    answers += [mpc(0.0, x) for mpc in (set_, copied, made)]
    assert np.ptp(answers, axis=0).max() < ROUNDING
    assert called.parameters["goal"] == fresh.parameters["goal"] == 1.0
    with pytest.raises(ValueError, match="unknown parameter 'gaol'.*Did you mean 'goal'"):
        called(0.0, x, p={"gaol": 1.0})
    with pytest.raises(ValueError, match="parameter 'goal' is not finite"):
        called.parameters = {"goal": np.nan}


def test_parameters_are_read_by_name_and_set_by_assignment():
    mpc = goal_seeker()
    with pytest.raises(TypeError, match="does not support item assignment"):
        mpc.parameters["goal"] = 0.3  # type: ignore[index]
    nominal = dict(mpc.parameters)
    mpc.parameters = {"goal": 0.3}
    mpc.parameters = {}
    assert mpc.parameters == nominal | {"goal": 0.3}
    mpc.parameters = None
    assert mpc.parameters == nominal


def test_limits_are_named_one_by_one():
    mpc = goal_seeker()
    for owner in (mpc, mpc.problem):
        with pytest.raises(TypeError, match=r"one by one, symbolic\('a', 'b'\), got \['speed"):
            owner.symbolic(["speed.upper"])


def test_problems_take_names_and_have_the_two_verbs():
    problem = OptimalControlProblem(
        pendulum(3.0), 20, 0.1, reference=[1.0, 0.0, 0.0], R=0.1,
        bounds=[Bound("rate", -1.0, 1.0, name="rate")],
    )  # fmt: skip
    x0 = [0.0, 1.0, 0.0]
    weak = problem.solve(x0, p={"gravity": 0.5})
    assert weak.cost == pytest.approx(problem.solve(x0, p=[0.5]).cost, rel=ROUNDING)
    assert weak.cost == pytest.approx(
        problem.with_parameters({"gravity": 0.5}).solve(x0).cost, rel=ROUNDING
    )
    limited = problem.symbolic("rate.lower", "rate.upper")
    assert limited.parameter_names == ("gravity", "rate.lower", "rate.upper")
    solver = SQPSolver(limited)
    for speed in (0.3, 0.6):
        found = solver.solve(x0, p={"rate.lower": -speed, "rate.upper": speed})
        assert found.is_success
        assert np.abs(found.x[:, 2]).max() == pytest.approx(speed, abs=1e-5)
    with pytest.raises(
        ValueError, match="unknown limit or weight 'rate.most'.*rate.lower, rate.upper"
    ):
        problem.symbolic("rate.most")


def rod():
    body = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    properties = JointProperties(effort=50.0)
    return Multibody().add_body("rod", body, "revolute", axis="y", properties=properties)


def test_laws_of_trees_follow_the_parameters_of_their_system():
    """``tree.symbolic(…).system()``, and one with other numbers, are systems of the tree."""
    tree = rod()
    system = tree.symbolic("rod.mass").system()
    heavy = system.with_parameters({"rod.mass": 3.0})
    aside, still = [np.pi / 2], [np.pi / 2, 0.0]
    for law in (
        GravityPD(tree, system=system, stiffness=20.0, damping=5.0),
        ComputedTorque(tree, system=system),
    ):
        for mass in (2.0, 5.0):
            weight = law(0.0, still, aside, p={"rod.mass": mass})
            assert weight == pytest.approx([mass * 9.81 / 2], rel=ROUNDING)
        assert law(0.0, still, aside) == pytest.approx([9.81])
    law = GravityPD(tree, system=heavy, stiffness=20.0, damping=5.0)
    assert law(0.0, still, aside) == pytest.approx([3 * 9.81 / 2])


def test_references_are_asked_once_a_period():
    tree, asked = rod(), []

    def reference(t):
        asked.append(t)
        return [np.sin(t)]

    law = ComputedTorque(tree, dt=0.01)
    fresh = [ComputedTorque(tree, dt=0.01)(0.01 * k, [0.1, 0.0], reference) for k in range(5)]
    asked.clear()
    kept = [law(0.01 * k, [0.1, 0.0], reference) for k in range(5)]
    assert np.allclose(kept, fresh, rtol=ROUNDING)
    assert len(asked) == 5 + 2  # once a period, and what is before and at the first
    goal = np.array([0.2])
    first = law(0.05, [0.1, 0.0], goal)
    goal[0] = 0.3  # a reference that is changed in place is not the one that was checked
    assert not np.array_equal(law(0.06, [0.1, 0.0], goal), first)


def test_gains_stay_and_inputs_follow():
    arm = pendulum(5.0)
    aside = arm.state.join(angle=[np.cos(0.4), np.sin(0.4)])
    law = LQR(arm, aside)
    other = law.with_parameters({"gravity": 2.0})
    assert np.array_equal(other.regulator.K, law.regulator.K)
    near = arm.state.plus(aside, [0.1, 0.0])
    held = law(0.0, near, aside), law(0.0, near, aside, p={"gravity": 2.0})
    assert held[1] - held[0] == pytest.approx(np.sin(0.4), rel=ROUNDING)
    assert np.array_equal(other(0.0, near, aside), held[1])
    direct = GeometricPD(arm, configuration="angle", velocity="rate", p={"gravity": 2.0})
    assert direct.parameters == {"gravity": 2.0}


def lag_mpc(**options):
    lag = System(
        "lag", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], p[0] * (u - x[1])),
        inputs=[Input("speed", "m/s", -5.0, 5.0)], parameters=[Parameter("rate", "1/s", 1.0)],
    )  # fmt: skip
    return MPC(lag, 10, 0.1, Q=1.0, R=0.1, reference=[0.0, 0.0], **options)


FAST = {"rate": 200.0}


@pytest.mark.usually(solver=("interior_point",))
@pytest.mark.parametrize("solver", ["sqp", "interior_point"])
def test_nothing_is_built_in_a_call_for_parameters_that_make_modes_too_fast(solver):
    mpc, slow = lag_mpc(solver=solver), lag_mpc(solver=solver)
    start = [1.0, 0.0]
    assert mpc(0.0, start) == slow(0.0, start)
    own, solves = mpc.solver, mpc.substeps
    expected = slow(0.1, start)
    assert mpc(0.1, start, p=FAST) == pytest.approx(expected, abs=ROUNDING)
    assert mpc.solver is own and mpc.substeps == solves
    assert mpc.info.status == "unsolved"
    assert "lag: the fastest modes need 8 substeps of rk4" in mpc.info.message
    assert "prepare()" in mpc.info.message
    mpc(0.2, start)
    assert mpc.info.status == "ok"


@pytest.mark.usually(solver=("interior_point",))
@pytest.mark.parametrize("solver", ["sqp", "interior_point"])
def test_preparing_takes_the_substeps_that_parameters_need(solver):
    mpc, fresh = lag_mpc(solver=solver), lag_mpc(solver=solver, p=FAST)
    start = [1.0, 0.0]
    expected = fresh(0.0, start)
    mpc(0.0, start)
    mpc.parameters = FAST
    mpc.prepare(0.1, start)
    assert mpc.substeps == fresh.substeps > 1
    for k in range(1, 6):
        asked = mpc(0.1 * k, start)
        assert mpc.info.status == "ok"
    assert asked == pytest.approx(expected, abs=0.01)  # the barrier of real-time steps stays


def test_parameters_may_be_functions_of_time():
    """In a call, set, in a copy and in a run: the same as the numbers they return."""
    moving = goal_seeker(p={"goal": lambda t: 1.0 + t, "mass": 2.0})
    numbers, called, set_ = goal_seeker(p={"mass": 2.0}), goal_seeker(), goal_seeker()
    set_.parameters = {"goal": lambda t: 1.0 + t}
    set_.parameters = {"mass": 2.0}  # the function stays
    copied = goal_seeker(p={"goal": 7.0}).with_parameters(
        {"goal": lambda t: 1.0 + t, "mass": lambda t: 2.0}
    )
    for k in range(5):
        x, t = np.array([0.02 * k, 0.1]), 0.1 * k
        expected = numbers(t, x, p={"goal": 1.0 + t})
        answers = [moving(t, x), set_(t, x), copied(t, x)]
        answers.append(called(t, x, p={"goal": lambda t: 1.0 + t, "mass": 2.0}))
        assert np.abs(np.array(answers) - expected).max() < ROUNDING
    assert callable(set_.parameters["goal"]) and set_.parameters["mass"] == 2.0
    set_.parameters = {"goal": 1.0}
    assert set_.parameters == {"mass": 2.0, "drag": 0.1, "goal": 1.0}
    with pytest.raises(ValueError, match="parameter 'goal' at t = 0 s is not finite"):
        goal_seeker(p={"goal": lambda t: np.nan})
    with pytest.raises(ValueError, match="unknown parameter 'gaol'"):
        set_.parameters = {"gaol": lambda t: 1.0}


def test_a_function_that_ends_holds_the_input():
    mpc = goal_seeker(p={"goal": lambda t: 1.0 if t < 0.25 else np.nan})
    x = np.zeros(2)
    before = [mpc(0.1 * k, x) for k in range(3)][-1]
    assert np.array_equal(mpc(0.3, x), before)
    assert mpc.info.status == "held"
    assert "parameter 'goal' at t = 0.3 s is not finite" in mpc.info.message


def test_a_run_follows_parameters_that_move():
    """An arm that takes up a load: the law that is told follows better than one that is not."""
    tree = rod()
    plant = tree.symbolic("rod.mass").system()
    load = {"rod.mass": lambda t: 2.0 if t < 0.5 else 4.0}
    ends = []
    for p in (load, None):
        law = ComputedTorque(tree, dt=0.01, system=plant, frequency=2.0, p=p)
        run = simulate(plant, law, x0=[0.5, 0.0], reference=[0.5], seconds=1.5, p=load)
        ends.append(abs(run.x[-1, 0] - 0.5))
    assert ends[0] < 1e-3 < 0.1 < ends[1]


@pytest.mark.thorough
def test_input_bounds_may_be_parameters():
    made = goal_seeker().symbolic("push.upper", "push.lower")
    assert made.parameters["push.upper"] == 2.0
    most = 1.5 - 0.25 * np.arange(5)
    for mpc in (made, goal_seeker(solver="interior_point").symbolic("push.upper")):
        pushes = [mpc(0.1 * k, [0, 0], p={"push.upper": most[k]}).item() for k in range(5)]
        assert pushes == pytest.approx(most, abs=0.02)
        assert (pushes <= most).all()
    for owner in (made, made.problem):
        with pytest.raises(ValueError, match="unknown limit or weight 'pull.upper'"):
            owner.symbolic("pull.upper")


def independent_controller(name):
    """A controller, other parameters, a goal and a state."""
    if name == "LQR":
        arm = pendulum(5.0)
        aside = arm.state.join(angle=[np.cos(0.4), np.sin(0.4)])
        return LQR(arm, aside), {"gravity": 2.0}, aside, arm.state.plus(aside, [0.1, 0.0])
    if name in ("MPC", "Adapted"):
        law = goal_seeker() if name == "MPC" else Adapted(goal_seeker())
        return law, {"goal": 0.3}, [0.0, 0.0], [0.1, 0.0]
    tree = rod()
    plant = tree.symbolic("rod.mass").system()
    if name == "GravityPD":
        law = GravityPD(tree, system=plant, stiffness=20.0, damping=5.0)
    else:
        law = ComputedTorque(tree, system=plant)
    return law, {"rod.mass": 3.0}, [0.2], [0.1, 0.0]


@pytest.mark.usually(name=("LQR", "ComputedTorque", "Adapted"))
@pytest.mark.parametrize("name", ["LQR", "GravityPD", "ComputedTorque", "MPC", "Adapted"])
def test_copies_are_independent(name):
    """Calls of one, with another moving reference, leave the other's answers as they are."""
    law, values, goal, x = independent_controller(name)
    alone, _, _, _ = independent_controller(name)
    copied = law.with_parameters(values)
    still = np.asarray(goal, dtype=float)
    for k in range(4):
        t = 0.1 * k
        other = copied(t, x, lambda t: still) if name in ("GravityPD", "ComputedTorque") else None
        if other is None:
            copied(t, x, goal)
        assert np.array_equal(law(t, x, goal), alone(t, x, goal))
    assert dict(law.parameters) == dict(alone.parameters) != dict(copied.parameters)
    mine, its = (getattr(one, "controller", one) for one in (law, copied))
    for key, value in vars(mine).items():
        if isinstance(value, np.ndarray | list | dict):
            assert value is not vars(its)[key], key
    assert not {id(goal) for goal in mine._goals} & {id(goal) for goal in its._goals}


# Every weight of one problem: what `symbolic` is told, and the statement with other numbers.
WEIGHTS = {
    "Q.angle": 3.0, "Q.rate": 0.7, "R": 0.4, "terminal.rate": 2.0, "rate.soft": 0.05,
    "turn.weight": 0.3, "turn.terminal": 4.0,
}  # fmt: skip


def swing(weights, make=OptimalControlProblem, **options):
    given = {
        "Q": {"angle": weights["Q.angle"], "rate": weights["Q.rate"]}, "R": weights["R"],
        "bounds": [Bound("rate", -0.4, 0.4, soft=weights["rate.soft"])],
        "residuals": [
            Residual(lambda t, x, u, p: x[0] * x[2], weights["turn.weight"],
                     weights["turn.terminal"], "turn"),
        ],
    }  # fmt: skip
    return make(pendulum(3.0), 15, 0.1, reference=[1.0, 0.0, 0.0], **given | options)


@pytest.mark.usually(solver=("sqp",))
@pytest.mark.parametrize("solver", ["interior_point", "sqp", "ipopt"])
def test_weights_may_be_parameters(solver):
    first = dict.fromkeys(WEIGHTS, 1.0)
    problem, x0 = swing(first).symbolic(*WEIGHTS), [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(problem.terminal, 1.5 * np.eye(2))
    varied = problem.solve(x0, solver=solver, p=WEIGHTS)
    # The weight on the angle at the end goes with Q.
    end = np.diag([15 * 0.1 * WEIGHTS["Q.angle"], WEIGHTS["terminal.rate"]])
    fixed = swing(WEIGHTS, terminal=end).solve(x0, solver=solver)
    assert varied.is_success and fixed.is_success
    assert varied.cost == pytest.approx(fixed.cost, rel=1e-7)
    np.testing.assert_allclose(varied.x, fixed.x, atol=1e-5)
    copied = problem.with_parameters(WEIGHTS)
    np.testing.assert_array_equal(np.diag(copied.Q), [3.0, 0.7])
    np.testing.assert_allclose(np.diag(copied.terminal), [4.5, 2.0])
    assert copied.solve(x0, solver=solver).cost == pytest.approx(varied.cost, rel=ROUNDING)
    for name, number in WEIGHTS.items():  # each counts
        one = problem.solve(x0, solver=solver, p=WEIGHTS | {name: 1.5 * number})
        assert abs(one.cost / varied.cost - 1) > 1e-4, name


def test_weights_change_without_another_build(tmp_path, monkeypatch):
    """In calls, as functions of time in a run; what is exported answers alike."""
    first = dict.fromkeys(WEIGHTS, 1.0)
    mpc = swing(first, MPC, method="heun").symbolic(*WEIGHTS)
    mpc.prepare()
    x = np.array([0.0, 1.0, 0.0])
    mpc(0.0, x)
    mpc(0.1, x)
    builds, functions = [], mpc.solver.transcription._functions
    load = _backend.get_kernel
    monkeypatch.setattr(_backend, "get_kernel", lambda *a, **k: builds.append(a) or load(*a, **k))
    answers = {name: mpc(0.2, x, p={name: 4.0}).item() for name in WEIGHTS}
    assert len({round(u, 4) for u in answers.values()}) == len(WEIGHTS)
    assert not builds and mpc.solver.transcription._functions is functions
    with pytest.raises(ValueError, match=r"parameter 'R' = -1 is outside its range"):
        mpc(0.3, x, p={"R": -1.0})
    assert not builds
    monkeypatch.undo()
    p = {"R": lambda t: 0.2 + 5.0 * t, "rate.soft": lambda t: 0.05 + t}
    run = simulate(pendulum(3.0), mpc.with_parameters(p), x0=x, seconds=0.5)
    by_hand = (
        swing(first, MPC, method="heun")
        .symbolic(*WEIGHTS)
        .with_parameters({name: value(0.0) for name, value in p.items()})
    )
    by_hand.prepare(0.0, x)
    for k in range(5):
        now = {name: value(0.1 * k) for name, value in p.items()}
        u = by_hand(0.1 * k, run.x[np.searchsorted(run.t, 0.1 * k - 1e-9)], p=now)
        applied = run.u[np.searchsorted(run.t, 0.1 * k - 1e-9)]
        assert u == pytest.approx(applied, abs=1e-6)
    folder = mpc.with_parameters(WEIGHTS).export_c(tmp_path / "swing", name="swing", x0=x)
    assert ran(folder, tmp_path)[0] == 0


def test_weights_that_are_not_one_number_are_named():
    problem = swing(dict.fromkeys(WEIGHTS, 1.0) | {"Q.rate": 2.0})
    with pytest.raises(ValueError, match="unknown limit or weight 'Q'.*Q.rate"):
        problem.symbolic("Q")
    with pytest.raises(ValueError, match="'R' and 'R.torque' are parameters of the same place"):
        problem.symbolic("R", "R.torque")
    with pytest.raises(ValueError, match="residual 'turn': unknown parameter 'stiff'"):
        swing(dict.fromkeys(WEIGHTS, 1.0) | {"turn.weight": "stiff"}).solve([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="parameter 'R' = 0 is outside"):
        problem.symbolic("R").solve([1.0, 0.0, 0.0], p={"R": 0.0})


def test_an_infinite_horizon_is_weighed_by_its_parameters():
    given = {"reference": [1.0, 0.0, 0.0], "terminal": "riccati"}
    problem = OptimalControlProblem(pendulum(3.0), 15, 0.1, **given).symbolic("Q", "R")
    x0 = [0.8, 0.6, 0.0]
    for p in ({"Q": 4.0}, {"Q": 4.0, "R": 0.3}):
        weighed = OptimalControlProblem(pendulum(3.0), 15, 0.1, **given, **p)
        expected = weighed.solve(x0).cost
        assert problem.solve(x0, p=p).cost == pytest.approx(expected, rel=1e-6)
