"""Predictive control: problem A by its own judge, real-time steps, bounds, delays, cascades."""

import inspect
import logging
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import set_compile_policy
from lgcontrol.controllers import LQR, MPC, Adapted, RealTime, ThrustVectorPD
from lgcontrol.controllers._tracking import allocate
from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.models import panda
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem, Residual, lqr
from lgcontrol.optimal._internal import state_weight
from lgcontrol.simulation import Cascade, SimulationError, simulate
from lgcontrol.systems import Input, System, Trajectory

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS
from ..optimal.examples import double_integrator, pendulum, satellite, vessel
from .problem_a import (
    GOAL,
    HOVER,
    INERTIA,
    MASS,
    MIX,
    STEP,
    attitudes,
    closed_loop,
    from_neutral,
    load_neutral,
    quadrotor,
)

pytestmark = pytest.mark.interpreted

WEIGHTS = {
    "Q": {"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
    "R": 0.1,
    "terminal": {"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
}


# What is marked `compiled` is long and shares the code of `recovery` or of a body that turns.
# Elsewhere second derivatives are most of what a loop computes.
SIMPLE = InteriorPointSolver(second_derivatives=False)
ROUNDING = 1e-10  # of a few thousand operations on numbers of order ten


@pytest.fixture(scope="module")
def recovery():
    return MPC(quadrotor(), horizon=40, dt=0.05, **WEIGHTS)


@pytest.fixture
def plant(shared):
    return load_neutral(shared)


@pytest.mark.compiled
@pytest.mark.usually(start=(1, "half a turn"))
@pytest.mark.parametrize(
    ("start", "sign", "canon"),
    [(0, 1, True), (0, -1, False), (1, 1, False), ("half a turn", -1, False)],
)
def test_recovers_on_the_neutral_plant(recovery, plant, start, sign, canon):
    q = np.array([0.0, 1, 0, 0]) if start == "half a turn" else attitudes()[start]
    run = closed_loop(plant, recovery, plant.x0_of(sign * q), canon=canon)
    assert run["success"]
    assert set(run["statuses"]) == {"ok"}


def test_the_loop_here_is_that_of_the_judge(plant):
    q = attitudes()[2]
    control = ThrustVectorPD(quadrotor(), dt=STEP, position_frequency=1.5)
    ours = closed_loop(plant, control, plant.x0_of(q), canon=False)
    control.reset()
    judged = plant.closed_loop(
        lambda x, k: control(k * STEP, from_neutral(x), GOAL), plant.x0_of(q), canon=False
    )
    assert judged["success"]
    assert abs(judged["perr"] - ours["perr"]) < 1e-12
    assert abs(judged["aerr"] - ours["aerr"]) < 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize("limits", [(0.0, 6.0), (-np.inf, np.inf)])
def test_geometric_control_recovers_with_and_without_rotor_limits(plant, limits):
    control = ThrustVectorPD(
        quadrotor(), dt=0.01, position_frequency=2.5, saturate=bool(np.isfinite(limits[0]))
    )
    for q in (*attitudes(1), np.array([0.0, 1, 0, 0])):
        assert closed_loop(plant, control, plant.x0_of(q), limits=limits)["success"]


@pytest.mark.compiled
def test_without_disturbances_it_comes_to_rest_at_the_goal(recovery):
    quad = recovery.system
    recovery.reset()
    x = quad.state.join(pose=[0, 0, 0, 0, 1, 0, 0])
    for k in range(120):
        x = quad.step()(0.0, x, recovery(0.05 * k, x, GOAL), [], 0.05)
    assert np.abs(quad.state.minus(x, GOAL)).max() < 1e-3


def test_a_linear_problem_without_bounds_is_the_regulator(rng):
    system = double_integrator()
    weights = {"Q": [1, 2, 0.1, 0.1], "R": 0.5}
    mpc = MPC(system, horizon=20, dt=0.1, terminal="riccati", reference=np.zeros(4), **weights)
    regulator = LQR(system, np.zeros(4), dt=0.1, **weights)
    x = rng.normal(size=4)
    for k in range(5):
        u = mpc(0.1 * k, x)
        assert np.allclose(u, regulator(0.1 * k, x), atol=1e-6)
        x = system.step()(0.0, x, u, [], 0.1)


def test_near_the_goal_it_is_the_linear_regulator():
    quad = quadrotor()
    weights = {"Q": {"pose": 10, "twist": 1}, "R": 0.1}
    mpc = MPC(quad, horizon=8, dt=0.05, terminal="riccati", reference=GOAL, **weights)
    gain = lqr(quad, GOAL, dt=0.05, **weights).K
    direction = np.random.default_rng(0).normal(size=12)
    errors = []
    for size in (1e-2, 1e-3):
        mpc.reset()
        x = quad.state.plus(GOAL, size * direction)
        linear = -gain @ quad.state.minus(x, GOAL)
        errors.append(np.abs(mpc(0.0, x) - HOVER - linear).max() / np.abs(linear).max())
    # Of second order, unless the plan starts from that regulator and has nothing to add.
    assert errors[1] < 0.3 * errors[0] or max(errors) < ROUNDING
    assert errors[1] < 1e-2


@pytest.mark.thorough
def test_real_time_steps_stay_close_to_the_optimum():
    body = satellite(limit=1.0)
    options = {"horizon": 20, "dt": 0.2, "Q": {"attitude": 5, "rate": 1}, "R": 0.1}
    one = MPC(body, **options)
    many = MPC(body, real_time=RealTime(iterations=8), **options)
    x = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    worst = 0.0
    for k in range(20):
        u, best = one(0.2 * k, x, body.state.identity), many(0.2 * k, x, body.state.identity)
        worst = max(worst, np.abs(u - best).max())
        x = body.step()(0.0, x, best, [], 0.2)
        if k:
            assert (one.info.iterations, many.info.iterations) == (1, 8)
    assert worst < 0.05


@pytest.mark.thorough
def test_soft_and_hard_velocity_bounds():
    body = satellite(limit=1.0)
    options = {"horizon": 20, "dt": 0.2, "Q": {"attitude": 5, "rate": 1}, "R": 0.1}
    options["solver"] = SIMPLE
    start = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    peaks = []
    for bound in ((), [Bound("rate", -0.4, 0.4)], [Bound("rate", -0.4, 0.4, soft=100.0)]):
        mpc = MPC(body, bounds=bound, reference=body.state.identity, **options)
        run = simulate(body, mpc, x0=start, seconds=8.0, reference=body.state.identity)
        peaks.append(np.abs(run.x[:, 4:]).max())
        assert np.abs(body.state.minus(run.x[-1], body.state.identity)).max() < 0.05
    assert peaks[0] > 0.6
    assert peaks[1] < 0.4 + 1e-3
    assert peaks[2] < 0.4 + 1e-2


@pytest.mark.compiled  # the certificate is a rule of the kernel's loop
def test_bounds_that_cannot_be_kept_are_exceeded_as_little_as_possible():
    body = satellite(limit=0.3)
    mpc = MPC(
        body, horizon=10, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1,
        bounds=[Bound("rate", -0.4, 0.4)], reference=body.state.identity,
    )  # fmt: skip
    fast = body.state.join(rate=[2.0, 0.0, 0.0])
    u = mpc(0.0, fast)
    assert u[0] == pytest.approx(-0.3, abs=1e-6)  # brakes with all it has
    assert mpc.info.status == "infeasible"
    u = mpc(0.2, body.step()(0.0, fast, u, [], 0.2))
    assert mpc.info.status == "infeasible"
    assert "rate.x0 exceeds its bound" in mpc.info.message
    assert u[0] == pytest.approx(-0.3, abs=1e-6)


def test_a_failing_solver_leaves_the_plan_in_place_and_planning_starts_anew():
    body = satellite(limit=1.0)
    goal = body.state.identity
    mpc = MPC(body, horizon=10, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1, solver="sqp")
    x = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    mpc(0.0, x, goal)
    planned = mpc.plan.u[1]
    solve = mpc.solver.qp.solve
    mpc.solver.qp.solve = lambda qp: replace(solve(qp), solved=False)
    x = mpc.plan.x[1]
    assert np.array_equal(mpc(0.2, x, goal), planned)
    assert (mpc.info.status, mpc.info.solve) == ("unsolved", "failed")
    assert (np.abs(mpc(0.4, x, goal)) <= 1.0).all()
    mpc.solver.qp.solve = solve
    mpc(0.6, x, goal)
    assert mpc.info.status == "ok"
    assert mpc.info.iterations > 1
    mpc(0.8, x, goal)
    assert mpc.info.iterations == 1


def test_slow_calls_without_compiled_functions_are_told_once(caplog, monkeypatch):
    monkeypatch.setattr("lgcontrol.controllers._mpc_info.SLOW", 0.0)
    monkeypatch.setattr("lgcontrol.codegen._notice._said", set())  # by other tests, on a busy day
    mpc = MPC(pendulum(1.0), horizon=5, dt=0.2, Q={"angle": 5, "rate": 1}, R=0.1)
    caplog.set_level(logging.WARNING, logger="lgcontrol.codegen")
    for k in range(25):
        assert ("mpc.prepare() compiles them" in caplog.text) == (k >= 20)
        mpc(0.2 * k, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert caplog.text.count("interpreted") == 1


@pytest.mark.compiled
def test_compiled_gives_the_same_answers():
    given = {"horizon": 10, "dt": 0.2, "Q": {"angle": 5, "rate": 1}, "R": 0.1}
    plain, quick = (MPC(pendulum(1.0), **given) for _ in range(2))
    quick.prepare()
    assert quick.solver.is_compiled and not plain.solver.is_compiled
    x, goal = np.array([0.0, 1.0, 0.3]), np.array([-1.0, 0.0, 0.0])
    for k in range(3):
        assert np.allclose(plain(0.2 * k, x, goal), quick(0.2 * k, x, goal), atol=1e-8)


@pytest.mark.compiled
def test_loops_compile_calls_do_not():
    body, options = pendulum(1.0), {"Q": {"angle": 5, "rate": 1}, "R": 0.1}
    start, goal = np.array([0.0, 1.0, 0.3]), np.array([-1.0, 0.0, 0.0])
    called, reset, run = (MPC(body, horizon=10, dt=0.2, **options) for _ in range(3))
    called(0.0, start, goal)
    assert not called.solver.is_compiled
    reset.reset()
    assert reset.solver.is_compiled
    simulate(body, run, x0=start, seconds=0.4, reference=goal)
    assert run.solver.is_compiled
    set_compile_policy("off")
    off = MPC(body, horizon=11, dt=0.2, **options)
    off.prepare(0.0, start, goal)
    assert not off.solver.is_compiled


def test_weights_steps_and_bounds_share_compiled_code():
    body = satellite(limit=1.0)
    programs = set()
    for scale, dt, limit in ((1, 0.1, 0.4), (3, 0.2, 0.5)):
        mpc = MPC(
            body, horizon=10, dt=dt, Q={"attitude": 5 * scale, "rate": 1}, R=0.1 * scale,
            residuals=[Residual(lambda t, x, u, p: x[4:], scale, terminal=2 * scale)],
            bounds=[Bound("rate", -limit, limit, soft=scale)],
        )  # fmt: skip
        once = mpc.solver.transcription._functions
        functions = once.stage, once.stage_values, once.terminal, once.terminal_values
        programs.add(tuple(f.program.identity for f in functions))
    assert len(programs) == 1


@pytest.mark.thorough
def test_a_prepared_controller_begins_with_a_plan():
    body = satellite(limit=1.0)
    goal = body.state.identity
    start = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    ready, fresh = (
        MPC(body, horizon=20, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1) for _ in range(2)
    )
    ready.prepare(0.0, start, goal)
    planned = ready.info.cost
    u = ready(0.0, start, goal)
    assert ready.info.iterations == 1
    assert ready.info.cost == pytest.approx(planned, rel=1e-3)
    assert np.allclose(u, fresh(0.0, start, goal), atol=1e-3)
    assert fresh.info.iterations > 1
    run = simulate(body, fresh, x0=start, seconds=1.0, reference=goal)
    assert set(run.control["iterations"]) == {1}
    ready.reset()
    ready.prepare(0.0, np.full(7, np.nan), goal)  # nothing to plan from
    ready.prepare(0.0)
    assert ready.plan is None
    with pytest.raises(ValueError, match="satellite has no reference to follow"):
        ready.prepare(0.0, start)
    with pytest.raises(ValueError, match=r"x has shape \(3,\), expected \(7,\)"):
        ready.prepare(0.0, np.zeros(3), goal)


@pytest.mark.thorough
def test_runs_repeat_bit_by_bit_with_the_same_controller():
    body = satellite(limit=0.3)
    start = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    mpc = MPC(
        body, horizon=20, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1,
        bounds=[Bound("rate", -0.3, 0.3, soft=100)],
    )  # fmt: skip
    first, second = (
        simulate(body, mpc, x0=start, seconds=4.0, reference=body.state.identity) for _ in range(2)
    )
    assert np.array_equal(first.x, second.x)


def test_a_trajectory_is_followed_with_preview(rng):
    craft = vessel()
    inputs = np.zeros((80, 3))
    inputs[:, 0], inputs[:, 1] = 1.0, 0.6 * np.sin(0.3 * np.arange(80))
    path = craft.rollout(craft.state.identity, inputs, dt=0.2)
    mpc = MPC(craft, horizon=15, dt=0.2, Q={"pose": 10, "twist": 1}, R=0.1)
    x = craft.state.plus(path.x[0], [0.0, 0.3, 0.2, 0, 0, 0])
    for k in range(60):
        u = mpc(0.2 * k, x, path)
        x = craft.step()(0.0, x, craft.full_input(u), [], 0.2)
    assert np.abs(craft.state.minus(x, path.x[60])).max() < 1e-2


@pytest.mark.thorough
@pytest.mark.compiled
def test_calls_may_come_at_another_rate_than_the_steps():
    body = satellite(limit=1.0)
    for period in (0.05, 0.3):  # 0.2 everywhere else
        mpc = MPC(
            body, horizon=20, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1,
            real_time=RealTime(period=period),
        )  # fmt: skip
        start = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
        run = simulate(body, mpc, x0=start, seconds=9.0, reference=body.state.identity)
        assert np.abs(body.state.minus(run.x[-1], body.state.identity)).max() < 0.02


@pytest.mark.compiled
@pytest.mark.usually(periods=(2.5,))
@pytest.mark.parametrize("periods", [0.5, 1.0, 2.5])
def test_a_known_delay_is_predicted_over(periods):
    """The same loop with a delay, told and untold; told, the plan's start is what happens."""
    quad, errors = quadrotor(), []
    start = quad.state.plus(GOAL, [0.5, 0, 0, 0.3, 0.2, 0, 0, 0, 0, 1, 0, 0])
    delay = 0.05 * periods
    for told in (True, False):
        mpc = MPC(quad, 20, 0.05, delay=delay if told else 0.0, reference=GOAL, **WEIGHTS)
        mpc.reset()
        starts = {}

        def answer(t, x, reference, mpc=mpc, starts=starts):
            u = mpc(t, x, reference)
            starts[round(mpc.plan.t[0], 6)] = mpc.plan.x[0]
            return u

        answer.dt, answer.delay = 0.05, delay
        run = simulate(quad, answer, x0=start, seconds=1.5, reference=GOAL)
        weights = np.diag(state_weight("Q", WEIGHTS["Q"], quad.state))
        errors.append(np.sum(weights * quad.state.minus(run.x, GOAL) ** 2))
        if told:
            when = {round(t, 6): x for t, x in zip(run.t, run.x, strict=True)}
            shared = sorted(starts.keys() & when.keys())
            assert len(shared) > 10
            for t in shared:
                # One RK4 step of the period against steps of 10 ms.
                assert np.abs(quad.state.minus(starts[t], when[t])).max() < 1e-3
    assert errors[0] < errors[1] if periods >= 1 else errors[0] < 1.1 * errors[1]


@pytest.mark.thorough
@pytest.mark.compiled
def test_the_goal_may_jump():
    quad = quadrotor()
    mpc = MPC(quad, horizon=30, dt=0.05, **WEIGHTS)
    x, other = GOAL, GOAL.copy()
    other[:3] = [-1.0, 2.0, 2.0]
    other[3:7] = SO3.exp([0, 0, 2.5])
    for k in range(120):
        x = quad.step()(0.0, x, mpc(0.05 * k, x, GOAL if k < 10 else other), [], 0.05)
    assert np.abs(quad.state.minus(x, other)).max() < 0.02


@pytest.mark.thorough
def test_systems_no_geometric_controller_fits_start_from_what_holds_them():
    weights = {"Q": {"angle": 1, "rate": 0.1}, "R": 0.1, "terminal": 50.0}
    mpc = MPC(pendulum(0.6), horizon=60, dt=0.1, **weights)
    up = np.array([-1.0, 0.0, 0.0])
    x = np.concatenate([SO2.exp([0.1]), [0.0]])
    for k in range(120):
        x = mpc.system.step()(0.0, x, mpc(0.1 * k, x, up), [1.0], 0.1)
    assert np.abs(mpc.system.state.minus(x, up)).max() < 0.05


@pytest.mark.thorough
def test_initial_guesses_may_be_given():
    quad = quadrotor()
    x = quad.state.join(pose=[0, 0, 0, 1, 0, 0, 0])
    followed = MPC(quad, horizon=40, dt=0.05, guess=ThrustVectorPD(quad), **WEIGHTS)
    u = followed(0.0, x, GOAL)
    stored = MPC(quad, horizon=40, dt=0.05, guess=followed.plan, **WEIGHTS)
    assert np.allclose(stored(0.0, x, GOAL), u, atol=1e-2)
    assert stored.info.iterations <= followed.info.iterations
    with pytest.raises(ValueError, match="unknown guess 'pd'; valid names are cheapest"):
        MPC(quad, horizon=5, dt=0.05, guess="pd")


def test_the_plan_starts_at_the_state_and_ends_a_horizon_later():
    body = satellite(limit=1.0)
    mpc = MPC(body, horizon=20, dt=0.2, Q={"attitude": 5, "rate": 1}, R=0.1)
    assert mpc.plan is None
    x = body.state.join(attitude=SO3.exp([2.0, 1.5, -1.0]))
    u = mpc(1.0, x, body.state.identity)
    assert isinstance(mpc.plan, Trajectory)
    assert np.array_equal(mpc.plan.u[0], u)
    assert np.allclose(body.state.minus(mpc.plan.x[0], x), 0)
    assert (mpc.plan.t[0], mpc.plan.t[-1]) == pytest.approx((1.0, 5.0))


@pytest.mark.thorough
def test_cascade_predictive_control_over_a_rate_loop():
    """The outer model turns as told at once; the inner loop makes the rotors do it."""

    def simple(t, x, u, p):
        weight = SO3.matrix(x[3:7]).T @ ca.DM([0, 0, -9.81])
        return ca.vertcat(x[7:], u[1:], weight + ca.vertcat(0, 0, u[0]) - ca.cross(u[1:], x[7:]))

    outer_model = System(
        "thrust and rates",
        Product(pose=SE3, velocity=Rn(3)),
        simple,
        inputs=[Input("lift", "m/s²", 0, 20, 9.81)]
        + [Input(f"rate{i}", "rad/s", -4, 4) for i in "xyz"],
    )
    goal = outer_model.state.join(pose=GOAL[:7])
    mpc = MPC(
        outer_model, horizon=25, dt=0.08, Q={"pose": 10, "velocity": 1}, R=[0.1, 1, 1, 1],
        solver=SIMPLE,
    )  # fmt: skip
    outer = Adapted(mpc, state=lambda x: x[:10], reference=lambda reference: goal)

    def inner(t, x, wanted):
        turn = 30.0 * (wanted[1:] - x[10:])
        torque = INERTIA * turn + np.cross(x[10:], INERTIA * x[10:])
        priority = np.array([10.0, 100, 100, 1])
        return allocate(
            MIX, np.r_[MASS * wanted[0], torque], np.zeros(4), np.full(4, 6.0), priority
        )

    inner.dt = 0.01
    quad = quadrotor()
    start = quad.state.join(pose=np.concatenate([np.zeros(3), SO3.exp([1.5, 0.5, 0.5])]))
    run = simulate(quad, Cascade(outer, inner), x0=start, seconds=5.0, reference=GOAL)
    assert run.is_success
    assert np.abs(quad.state.minus(run.x[-1], GOAL)).max() < 0.05


@pytest.mark.compiled
def test_cascade_tracking_of_the_plan():
    """The outer loop plans at 10 Hz; the inner one follows the plan at 100 Hz."""
    quad = quadrotor()
    mpc = MPC(
        quad, horizon=40, dt=0.05, real_time=RealTime(period=0.1), **WEIGHTS
    )  # compiled above
    outer = Adapted(mpc, answer=lambda t, x, u: mpc.plan)
    inner = ThrustVectorPD(quad, dt=0.01, tilt_limit=None)
    start = quad.state.join(pose=np.concatenate([np.zeros(3), SO3.exp([2.0, 0.5, 0.5])]))
    run = simulate(quad, Cascade(outer, inner), x0=start, seconds=5.0, reference=GOAL)
    assert run.is_success
    assert np.abs(quad.state.minus(run.x[-1], GOAL)).max() < 0.05


def test_an_end_that_cannot_be_reached_is_said_from_the_first_plan_on():
    craft = vessel()
    goal = craft.state.identity
    berth = Bound("pose.x", -0.1, 0.1, at="terminal")
    work = RealTime(first_iterations=110)  # what a certificate takes, 102
    mpc = MPC(craft, 10, 0.5, R=0.1, bounds=[berth], real_time=work)
    far = craft.state.plus(goal, [8, 3, 1, 0, 0, 0])
    for k in range(2):
        u = mpc(0.5 * k, far, goal)
        assert mpc.info.status == "infeasible"
        assert "pose.x exceeds its bound by" in mpc.info.message
        assert np.isfinite(u).all() and (np.abs(u) <= [2, 1]).all()
        far = mpc.plan.x[1]


def test_a_plan_that_ended_before_it_kept_its_bounds_is_no_answer_to_vouch_for():
    craft = vessel()
    goal = craft.state.identity
    x = craft.state.plus(goal, [3, 1, 0.5, 0, 0, 0])
    berth = [Bound(name, -0.1, 0.1, at="terminal") for name in ("pose.x", "pose.y")]
    found = {}
    for most in (1, 100):
        mpc = MPC(craft, 12, 0.5, R=0.1, bounds=berth, real_time=RealTime(first_iterations=most))
        mpc(0.0, x, goal)
        found[most] = mpc.info
    assert found[1].status == "unsolved"
    assert found[1].solve == "iteration limit"
    assert " exceeds its bound by" in found[1].message
    assert found[100].status == "ok"


def test_bounds_that_contradict_each_other_are_named():
    craft = vessel()
    goal = craft.state.identity
    west = Bound("pose.x", upper=-1.0)
    east = Bound(lambda t, x, u, p: x[0], lower=1.0, name="east")
    mpc = MPC(craft, 10, 0.5, R=0.1, bounds=[west, east])
    for k in range(2):
        mpc(0.5 * k, goal, goal)
        assert mpc.info.status == "infeasible"
        assert "pose.x exceeds" in mpc.info.message and "east exceeds" in mpc.info.message


def test_a_state_off_the_group_is_answered_as_one_that_is_not_finite():
    craft = vessel()
    goal = craft.state.identity
    mpc = MPC(craft, 10, 0.5, R=0.1)
    u = mpc(0.0, craft.state.plus(goal, [1, 0, 0, 0, 0, 0]), goal)
    assert np.array_equal(mpc(0.5, np.zeros(7), goal), u)
    assert mpc.info.status == "held"
    assert "no element of Product(pose=SE2, twist=Rn(3))" in mpc.info.message


def test_a_model_that_changes_with_time_is_predicted_at_its_times():
    ramp = System("ramp", Rn(1), lambda t, x, u, p: 0.1 * t + 0.0 * u, inputs=["push"], dt=0.1)
    mpc = MPC(ramp, horizon=5, delay=0.3, reference=[0.0])
    mpc(1.0, [0.0])
    assert mpc.plan.t[0] == pytest.approx(1.3)
    assert mpc.plan.x[0] == pytest.approx(0.1 * (1.0 + 1.1 + 1.2))
    for wrong in ({"delay": 0.25}, {"real_time": RealTime(period=0.15)}):
        with pytest.raises(ValueError, match="is no multiple of 0.1 s, the sample time of ramp"):
            MPC(ramp, horizon=5, **wrong)


def test_a_prediction_that_runs_away_holds():
    escape = System("escape", Rn(1), lambda t, x, u, p: x * x + u, inputs=["push"])
    mpc = MPC(escape, horizon=5, dt=0.1, delay=0.5, reference=[0.0])
    assert np.isfinite(mpc(0.0, [1e200])).all()
    assert mpc.info.status == "held"
    assert "predicted for t = 0.5 s is not finite" in mpc.info.message


@pytest.mark.thorough
def test_actuators_faster_than_the_steps_get_substeps():
    quad = quadrotor().augment(lag=0.01)
    hover = quad.trim(position=GOAL[:3])
    start = quad.state.plus(hover.x, np.r_[1, 0, 0, 0.5, np.zeros(12)])
    weights = {"Q": {"pose": 10, "twist": 1}, "R": 0.1}
    mpc = MPC(quad, horizon=20, dt=0.05, solver=SIMPLE, **weights)
    assert mpc.substeps > 1
    assert f"{mpc.substeps} substeps" in repr(mpc)
    run = simulate(quad, mpc, x0=start, reference=hover, seconds=3)
    assert np.abs(run.block_error("pose")[-1]).max() < 0.01
    with pytest.warns(RuntimeWarning, match=f"need {mpc.substeps} substeps of rk4 in dt = 0.05"):
        MPC(quad, horizon=20, dt=0.05, substeps=1, **weights)
    fast = quadrotor().augment(lag=1e-4)
    with pytest.raises(ValueError, match='out of the model, shorten dt, take method="radau_iia5"'):
        MPC(fast, horizon=20, dt=0.05, method="rk4", **weights)
    chosen = OptimalControlProblem(fast, 20, 0.05, **weights)
    assert (chosen.method, chosen.substeps) == ("radau_iia5", 1)


def test_modes_that_are_fast_only_at_the_start_get_substeps():
    drag = System("drag", Rn(1), lambda t, x, u, p: u - x * ca.fabs(x), inputs=["push"])
    mpc = MPC(drag, horizon=10, dt=0.1, reference=[0.0])
    assert mpc.substeps == 1
    mpc(0.0, [60.0])
    assert mpc.substeps > 2
    solution = OptimalControlProblem(drag, 10, 0.1, R=1e6, reference=[0.0]).solve([60.0])
    assert solution.is_success
    assert solution.problem.substeps == mpc.substeps
    # x' = −x² from 60, without a push: 60 / 7 after 0.1 s, to the accuracy asked of modes.
    assert solution.x[1, 0] == pytest.approx(60 / 7, rel=0.05)


def test_what_is_built_in_cannot_be_changed_afterwards():
    mpc = MPC(double_integrator(), horizon=20, dt=0.1, Q=2.0, reference=np.zeros(4))
    assert (mpc.horizon, mpc.Q[0, 0], mpc.R[0, 0], mpc.substeps) == (20, 2.0, 1.0, 1)
    assert repr(mpc) == "MPC('carts', 20 steps of 0.1 s, Q=2, R=1, terminal=4, ok)"


@pytest.mark.parametrize("is_subclass", [False, True])
def test_all_but_the_current_state_is_fixed(is_subclass):
    class Own(MPC):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            self.name = "mine"

    kind = Own if is_subclass else MPC
    mpc = kind(double_integrator(), horizon=20, dt=0.1, Q=2.0, reference=np.zeros(4))
    for name in ("horizon", "Q", "problem", "solver", "delay", "guess", "rates", "settings"):
        with pytest.raises(AttributeError, match=f"make a new one, MPC.*{name}="):
            setattr(mpc, name, 50)
    for name in ("iterations", "period", "budget", "restarts", "split"):
        with pytest.raises(AttributeError, match=rf"real_time=RealTime\({name}="):
            setattr(mpc, name, 50)
    known = "parameters, reference, applied" + ", name" * is_subclass
    with pytest.raises(AttributeError, match=f"unknown attribute .* 'refrence'.*{known}"):
        mpc.refrence = np.ones(4)
    mpc.reference = np.ones(4)
    mpc.applied = [0.1, 0.2]
    assert np.array_equal(mpc.applied, [0.1, 0.2])
    if is_subclass:
        mpc.name = "other"
    with pytest.raises(AttributeError):
        mpc.real_time.budget = 0.1


def test_plans_that_know_no_joint_limits_say_so_once():
    arm = panda(losses=False)
    with pytest.warns(
        RuntimeWarning, match="limits of panda_joint1.angle, .*panda_joint7.angle: give"
    ):
        MPC(arm, horizon=5, dt=0.02)
    MPC(arm, horizon=5, dt=0.02, bounds=[Bound("configuration", -3, 3, soft=10)])
    MPC(arm, horizon=5, dt=0.02, bounds=[Bound(lambda t, x, u, p: x[:7], upper=3)])


def test_seconds_for_steps_are_told_in_steps():
    with pytest.raises(ValueError, match="horizon .* got 2.5; 2.5 s are 25 steps of 0.1 s"):
        MPC(pendulum(), horizon=2.5, dt=0.1)


def test_without_a_reference_a_run_does_not_begin():
    """As the inner controller of a cascade it gets one from the outer."""
    system = pendulum()
    mpc = MPC(system, horizon=10, dt=0.1, R=0.1)
    with pytest.raises((ValueError, SimulationError), match="no reference to follow"):
        simulate(system, mpc, x0=[1.0, 0.0, 0.0], seconds=0.2)

    def outer(t, x, reference):
        return np.array([1.0, 0.0, 0.0])

    outer.dt = 0.1
    run = simulate(system, Cascade(outer, mpc), x0=[0.995004165, 0.099833417, 0.0], seconds=0.2)
    assert run.is_success


def test_help_shows_the_options_of_the_problem_as_well():
    names = set(inspect.signature(MPC).parameters)
    assert {"system", "horizon", "Q", "bounds", "substeps", "real_time", "disturbance"} <= names
    assert "problem" not in names and len(names) <= 23
    with pytest.raises(TypeError, match=r"MPC\(\): unknown argument 'residual'.*'residuals'"):
        MPC(double_integrator(), 5, 0.1, residual=[])
