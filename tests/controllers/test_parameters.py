"""Parameters that change while a loop runs, and what is never built again for them."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import _backend
from lgcontrol.controllers import LQR, MPC, ComputedTorque, GeometricPD, GravityPD
from lgcontrol.groups import Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.optimal import Bound, OptimalControlProblem, Residual, SQPSolver
from lgcontrol.systems import Input, Parameter, System

from ..optimal.examples import pendulum

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


def driven(mpc, p, steps=80):
    """Where the cart is, and its largest speed, with the parameters of a plant."""
    x, fastest, model = np.zeros(2), 0.0, cart()
    plant = [p.get("mass", 1.0), p.get("drag", 0.1)]
    for k in range(steps):
        x = model.step()(0.0, x, mpc(0.1 * k, x, p=p), plant, 0.1)
        fastest = max(fastest, x[1])
    return x[0], fastest


def test_goals_limits_and_masses_change_without_another_build(monkeypatch):
    mpc = goal_seeker().parametric("speed.upper")
    mpc.prepare()
    mpc(0.0, np.zeros(2))
    mpc(0.1, np.zeros(2))
    builds, functions = [], mpc.solver.transcription._functions
    load = _backend.get_kernel
    monkeypatch.setattr(_backend, "get_kernel", lambda *a, **k: builds.append(a) or load(*a, **k))
    for p in ({"goal": 2.0}, {"goal": -1.0, "mass": 3.0}, {"goal": 1.5, "speed.upper": 0.4}):
        mpc._found = None
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
        with pytest.raises(TypeError, match=r"one by one, parametric\('a', 'b'\), got \['speed"):
            owner.parametric(["speed.upper"])


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
    limited = problem.parametric("rate.lower", "rate.upper")
    assert limited.parameter_names == ("gravity", "rate.lower", "rate.upper")
    solver = SQPSolver(limited)
    for speed in (0.3, 0.6):
        found = solver.solve(x0, p={"rate.lower": -speed, "rate.upper": speed})
        assert found.success
        assert np.abs(found.x[:, 2]).max() == pytest.approx(speed, abs=1e-5)
    with pytest.raises(ValueError, match="unknown limit 'rate.most'.*rate.lower, rate.upper"):
        problem.parametric("rate.most")


def rod():
    body = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    properties = JointProperties(effort=50.0)
    return Multibody().add_body("rod", body, "revolute", axis="y", properties=properties)


def test_laws_of_trees_follow_the_parameters_of_their_system():
    """``tree.parametric(…).system()``, and one with other numbers, are systems of the tree."""
    tree = rod()
    system = tree.parametric("rod.mass").system()
    heavy = system.with_parameters(**{"rod.mass": 3.0})
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


@pytest.mark.parametrize("solver", ["sqp", "interior_point"])
def test_a_parameter_that_makes_modes_fast_gets_substeps_in_the_next_call(solver):
    lag = System(
        "lag", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], p[0] * (u - x[1])),
        inputs=[Input("speed", "m/s", -5.0, 5.0)], parameters=[Parameter("rate", "1/s", 1.0)],
    )  # fmt: skip

    def made(**options):
        return MPC(lag, 10, 0.1, Q=1.0, R=0.1, reference=[0.0, 0.0], solver=solver, **options)

    fast = {"rate": 200.0}
    mpc, fresh = made(), made(p=fast)
    start, expected = [1.0, 0.0], fresh(0.0, [1.0, 0.0])
    mpc(0.0, start)
    assert mpc.substeps < fresh.substeps
    asked = mpc(0.1, start, p=fast)
    assert mpc.substeps == fresh.substeps
    assert asked == pytest.approx(expected, abs=1e-3)
    mpc(0.2, start)  # the slow one again, with steps that are short enough for both
    mpc.parameters = fast
    for k in range(3, 8):
        asked = mpc(0.1 * k, start)
    assert asked == pytest.approx(expected, abs=0.01)  # the barrier of real-time steps stays
