"""Predictive control in practice: preview, economy, steady pushes, budgets, splits, jumps."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import _backend, set_compile_policy
from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import MPC, RealTime, SteadyDisturbance
from lgcontrol.groups import SE2, SO2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Residual,
    SolveStatus,
    Sphere,
    keep_out,
    terminal_set,
)
from lgcontrol.optimal._internal import ReferenceSamples
from lgcontrol.optimal.kernel._loop import KernelLoop
from lgcontrol.simulation import CallStatus, Pulse, simulate
from lgcontrol.systems import Input, Parameter, System, Trajectory, Waypoints
from lgcontrol.systems._internal import TrajectoryPoint

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS
from ..optimal.examples import pendulum

ROUNDING = 1e-9
# Second derivatives are most of what a loop computes.
SIMPLE = InteriorPointSolver(second_derivatives=False)


def cart(limit=np.inf):
    return System(
        "cart", Product(place=Rn(1), speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], (u[0] + u[1]) / p[0]),
        inputs=[Input("force", "N", -limit, limit), Input("push", "N", role="disturbance")],
        parameters=[Parameter("mass", "kg", 1.0)],
    )  # fmt: skip


def drone():
    """A planar quadrotor: position is reached by tilting."""
    g, arm = 9.81, 0.2

    def field(t, x, u, p):
        v, spin = x[4:6], x[6]
        push = ca.vertcat(x[2] * u[2] + x[3] * u[3], -x[3] * u[2] + x[2] * u[3])  # to body axes
        weight = p[0] * g * ca.vertcat(x[3], x[2])
        turning = spin * ca.vertcat(v[1], -v[0])
        rate = (ca.vertcat(0, u[0] + u[1]) - weight + push) / p[0] + turning
        return ca.vertcat(x[4:], rate, arm * (u[1] - u[0]) / 0.02)

    inputs = [Input(name, "N", 0.0, 12.0, nominal=4.905) for name in ("left", "right")]
    inputs += [Input(f"force.{axis}", "N", role="disturbance") for axis in "xz"]
    return System(
        "drone", Product(pose=SE2, twist=Rn(3)), field, inputs=inputs,
        parameters=[Parameter("mass", "kg", 1.0)],
    )  # fmt: skip


# Preview


@pytest.mark.interpreted
def test_preview_answers_as_least_squares_do_however_the_reference_is_said():
    """A linear plant without bounds: the whole horizon as one least-squares problem."""
    plant, dt, N = cart(), 0.1, 25
    path = Waypoints(Rn(1), [0.0, 1.0, 3.0], [[0.0], [0.5], [-0.4]], order=7)
    mpc = MPC(plant, N, dt, Q={"place": 10, "speed": 1}, R=0.1, terminal=0.0)

    def states(t):
        here = path(t)
        return np.array([here.x[0], here.velocity[0]])

    times = dt * np.arange(N + 1)
    wanted = np.array([states(t) for t in times])
    forces = np.array([path(t).acceleration[0] for t in times[:-1]])
    x0 = np.array([0.2, -0.3])
    A, B = np.array([[1, dt], [0, 1]]), np.array([dt**2 / 2, dt])
    free, by_u = [x0], [np.zeros((2, N))]
    for k in range(N):
        free.append(A @ free[-1])
        by_u.append(A @ by_u[-1] + np.outer(B, np.eye(N)[k]))
    root = np.sqrt([10.0, 1.0])[:, None]
    rows = [root * by_u[k] for k in range(1, N)] + [np.sqrt(0.1) * np.eye(N)]
    right = [root[:, 0] * (wanted[k] - free[k]) for k in range(1, N)] + [np.sqrt(0.1) * forces]
    best = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    said = {
        "motion": path,
        "function": lambda t: TrajectoryPoint(states(t), path(t).acceleration),
        "trajectory": Trajectory(plant.state, times, wanted, forces[:, None], inputs=["force"]),
    }
    for kind, reference in said.items():
        mpc.reset()
        u = mpc(0.0, x0, reference)
        assert u[0] == pytest.approx(best[0], abs=1e-6), kind


# Economic costs


EASE = 0.3


def pond(**options):
    """Catch u x at a price of 1, with an effort; both are linear, all but R."""
    plant = System(
        "pond", Rn(1, ("fish",)), lambda t, x, u, p: x * (1 - x) - u * x,
        inputs=[Input("catch", "1/s", 0.0, 1.0)],
    )  # fmt: skip
    costs = [Cost(lambda t, x, u, p: p[0] * u - u * x, name="loss")]
    return MPC(
        plant, 40, 0.15, Q=0.0, R=EASE, terminal=0.0, reference=[0.5], costs=costs,
        parameters=[Parameter("effort", "", 0.0)], **options,
    )  # fmt: skip


def test_an_economic_loop_rests_where_resting_pays_most():
    """At rest u = 1 − x: least of (effort − x)(1 − x) + ½ R (½ − x)²."""
    mpc = pond()
    for effort in (0.0, 0.2):
        mpc.reset()
        x = np.array([0.4 + 0.5 * effort])
        for k in range(25):
            u = mpc(0.15 * k, x, p={"effort": effort})
            assert mpc.info.status is CallStatus.OK
            x = mpc.system.step()(0.0, x, u, [], 0.15)
        best = (1 + effort + EASE / 2) / (2 + EASE)
        assert x[0] == pytest.approx(best, abs=5e-3)
        assert u[0] == pytest.approx(1 - best, abs=5e-3)


def test_a_loop_of_costs_alone_is_given_no_reference():
    tank = System("tank", Rn(1), lambda t, x, u, p: u - 0.1 * x, inputs=[Input("in", "", 0, 1)])
    full = Cost(lambda t, x, u, p: (x[0] - 2) ** 2)
    law = MPC(tank, 10, 0.5, Q=0, R=1e-3, costs=[full])
    law.check_reference()  # which `simulate` asks
    assert np.array_equal(law.reference.x, tank.home)
    assert law.reference_states(np.zeros(1)) is None  # nor do figures and records show one
    assert np.array_equal(law.reference_states(np.zeros(1), [1.0]), [[1.0]])
    with pytest.raises(ValueError, match="has no reference to follow"):
        MPC(tank, 10, 0.5, R=1e-3, costs=[full]).check_reference()


def test_second_derivatives_are_what_economic_costs_need():
    """Hardly anything in this cost is a square: Gauss and Newton know no curvature of the rest."""
    problem, iterations = pond().problem, []
    best = problem.solve([0.4], solver="ipopt", reference=[0.5]).cost
    for exact in (True, False):
        solver = InteriorPointSolver(second_derivatives=exact)
        found = problem.solve([0.4], solver=solver, reference=[0.5])
        iterations.append(len(found.iterations))
        assert found.is_success and found.cost == pytest.approx(best, abs=1e-5)
    assert iterations[0] < iterations[1]


# Steady disturbances


@pytest.mark.parametrize("delay", [0.0, 0.15])
def test_a_steady_push_and_a_wrong_mass_leave_no_error(delay):
    mpc = MPC(
        cart(3.0), 10, 0.15, Q={"place": 1, "speed": 0.1}, R=0.1, delay=delay,
        disturbance=SteadyDisturbance("push", settling=0.5),
    )  # fmt: skip
    run = simulate(
        cart(3.0), mpc, x0=[1, 0], reference=[0, 0], seconds=14, p={"mass": 1.4},
        disturbances=[Pulse({"push": 0.5}, start=0.0)],
    )  # fmt: skip
    assert abs(run.x[-1]).max() < 1e-4
    assert mpc.disturbance["push"] == pytest.approx(0.5, abs=1e-3)  # at rest the mass tells nothing
    plain = MPC(cart(3.0), 10, 0.15, Q={"place": 1, "speed": 0.1}, R=0.1, delay=delay)
    run = simulate(
        cart(3.0), plain, x0=[0, 0], reference=[0, 0], seconds=4,
        disturbances=[Pulse({"push": 0.5}, start=0.0)],
    )  # fmt: skip
    assert abs(run.x[-1, 0]) > 0.05


@pytest.mark.interpreted
def test_a_drone_holds_its_place_in_wind_by_tilting():
    """Rest in a force (fx, fz) tilts by atan2(fx, m g − fz): the target is that attitude."""
    plant = drone()
    mpc = MPC(
        plant, 12, 0.08, Q={"pose": [10, 10, 1], "twist": 1}, R=0.05,
        disturbance=SteadyDisturbance("force", settling=0.25),
        reference=plant.state.identity, solver=SIMPLE,
    )  # fmt: skip
    push, mass = {"force.x": 1.0, "force.z": -0.5}, 1.2
    run = simulate(
        plant, mpc, x0=plant.state.identity, seconds=4.5, p={"mass": mass},
        disturbances=[Pulse(push, start=0.0)],
    )  # fmt: skip
    x = run.x[-1]
    assert abs(x[:2]).max() < 2e-3
    tilt = np.arctan2(push["force.x"], mass * 9.81 - push["force.z"])
    assert np.arctan2(x[3], x[2]) == pytest.approx(tilt, abs=2e-3)
    # What is missing from the model's own weight is found as a force.
    assert mpc.disturbance["force.x"] == pytest.approx(1.0, abs=1e-2)
    assert mpc.disturbance["force.z"] == pytest.approx(-0.5 - 0.2 * 9.81, abs=1e-2)
    mpc.reset()
    assert set(mpc.disturbance.values()) == {0.0}


def test_the_target_of_a_push_is_a_rest_and_little_work_where_the_push_stays():
    """Two masses on springs that stiffen; the one that is not held is pushed."""

    def field(t, x, u, p):
        a, b = x[0], x[1]
        hold, push, between = u[0], u[1], (b - a) ** 3
        return ca.vertcat(x[2:], hold - a - a**3 + between, push - b - b**3 - between)

    inputs = [Input("hold", "N", -5, 5), Input("push", "N", role="disturbance")]
    bodies = System("bodies", Product(place=Rn(2), speed=Rn(2)), field, inputs=inputs)
    law = MPC(bodies, 5, 0.1, Q={"place": [1, 3], "speed": 1}, R=0.1, disturbance="push")
    known, times = law._parts.estimator, np.arange(6) * 0.1
    state = law._loop.disturbance

    def rest(b, push):
        a = b - np.cbrt(push - b - b**3)
        return np.array([a, b, 0.0, 0.0]), np.array([a + a**3 - (b - a) ** 3, 0.0])

    goal = ReferenceSamples(*(np.tile(part, (6, 1)) for part in rest(0.4, 0.0)))
    evaluated, rate = [], known._rate
    known._rate = lambda *given: evaluated.append(0) or rate(*given)
    for push, most in ((0.2, 14), (0.2, 3), (0.201, 7)):
        state = state._replace(inputs=np.array([0.0, push]))
        evaluated.clear()
        state, found = known.target(state, goal, times, np.zeros(0))
        assert len(evaluated) <= most
        x, u = found.x[0], found.u[0]
        assert np.abs(bodies.f(0.0, x, u)).max() < 1e-7 and u[1] == push
    # Among the places of rest it costs least: the derivative is zero.
    places = np.array([rest(b, push)[0][:2] for b in x[1] + np.array([-1e-4, 0.0, 1e-4])])
    costs = (places - goal.x[0, :2]) ** 2 @ [1.0, 3.0] / 2
    assert places[1] == pytest.approx(x[:2], abs=1e-7) and costs[1] > 1e-4
    assert (costs[2] - costs[0]) / 2e-4 == pytest.approx(0.0, abs=1e-5)


def test_a_moving_reference_is_followed_in_spite_of_a_push():
    mpc = MPC(
        cart(),
        15,
        0.1,
        Q={"place": 1, "speed": 0.1},
        R=0.1,
        disturbance=SteadyDisturbance("push", settling=0.3),
    )

    def there(t):
        return np.array([np.sin(t), np.cos(t)])

    run = simulate(
        cart(), mpc, x0=there(0.0), reference=there, seconds=5,
        disturbances=[Pulse({"push": 0.5}, start=0.0)],
    )  # fmt: skip
    assert abs(run.x[-1, 0] - np.sin(run.t[-1])) < 5e-3


def test_disturbances_that_are_none_are_named():
    with pytest.raises(UnknownNameError, match="unknown disturbance input 'force'.*push"):
        MPC(cart(), 5, 0.1, disturbance="force")
    with pytest.raises(UnknownNameError, match="pendulum declares none"):
        MPC(pendulum(), 5, 0.1, disturbance="torque")
    with pytest.raises(ValueError, match="settling must be positive"):
        MPC(cart(), 5, 0.1, disturbance=SteadyDisturbance("push", settling=0.0))


# Budget


SWUNG = pendulum(2.0)


def swing(**options):
    options = {"reference": [-1.0, 0.0, 0.0]} | options
    return MPC(SWUNG, 30, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.05, **options)


UPRIGHT, HANGING = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])


@pytest.mark.usually(solver=("interior_point",))
@pytest.mark.parametrize("solver", ["interior_point", "sqp"])
def test_a_call_ends_with_its_budget_and_says_so(solver):
    free = swing(real_time=RealTime(restarts=False, iterations=5), solver=solver)
    tight = swing(real_time=RealTime(restarts=False, iterations=5, budget=1e-6), solver=solver)
    for mpc in (free, tight):
        mpc.prepare(0.0, HANGING)  # not limited
        mpc(0.0, HANGING)
    x = [np.cos(1.0), np.sin(1.0), 0.5]  # far from where it is expected
    answers = [mpc(0.1, x) for mpc in (free, tight)]
    assert tight.info.solve is SolveStatus.TIME_LIMIT
    assert "more were due" in tight._loop.plan.found.message
    assert tight.info.iterations == 1 < free.info.iterations
    assert free.info.solve is SolveStatus.ITERATION_LIMIT
    assert all(abs(u[0]) <= 2.0 for u in answers)
    tight = swing(real_time=replace(tight.real_time, budget=10.0), solver=solver)
    free.reset(), tight.reset()
    for k in range(3):
        np.testing.assert_array_equal(free(0.1 * k, HANGING), tight(0.1 * k, HANGING))


def test_a_first_plan_within_a_budget_is_what_there_was_time_for():
    mpc = swing(real_time=RealTime(budget=1e-6))
    mpc.reset()
    u = mpc(0.0, HANGING)
    assert mpc.info.solve is SolveStatus.TIME_LIMIT and mpc.info.restart == "first"
    assert np.isfinite(u).all() and abs(u[0]) <= 2.0
    hard = swing(
        real_time=RealTime(budget=1e-6), bounds=[Bound("angle", [-1, 0], [-1, 0], at="terminal")]
    )
    hard(0.0, HANGING)
    assert hard.info.status is CallStatus.UNSOLVED  # nobody vouches for such a plan
    with pytest.raises(ValueError, match="budget must be positive"):
        swing(real_time=RealTime(budget=0.0))


# Preview and feedback


def after_calls(mpc, calls=3):
    x = HANGING
    mpc.reset()
    for k in range(calls):
        x = mpc.system.step()(0.0, x, mpc(0.1 * k, x), [1.0], 0.1)
    return x


def test_feedback_is_the_call_to_first_order_and_asks_no_solver(monkeypatch):
    """For the expected state equal; next to it the difference falls with the square."""
    errors = []
    for size in (0.0, 1e-3, 1e-2):
        whole, split = (
            swing(real_time=RealTime(restarts=False)),
            swing(real_time=RealTime(restarts=False)),
        )
        x = after_calls(whole)
        assert after_calls(split) == pytest.approx(x, abs=0)
        split.preview(0.3)
        measured = split.system.state.plus(x, [size, -size])
        expected = whole(0.3, measured)
        monkeypatch.setattr(split.solver, "step", None)  # feedback asks no solver
        errors.append(abs(split.feedback(measured) - expected).item())
        assert split.info.is_feedback and not whole.info.is_feedback
        monkeypatch.undo()
    assert errors[0] == 0.0
    assert errors[1] < 1e-5 and errors[2] < 100 * max(errors[1], 1e-7) * 1.5


def test_a_split_loop_does_as_well_as_a_whole_one():
    ends = []
    for split in (False, True):
        mpc = swing(real_time=RealTime(split=split))
        run = simulate(pendulum(2.0), mpc, x0=HANGING, seconds=4)
        ends.append(run.x[-1])
        if split:
            assert mpc.info.is_feedback and mpc.info.preview_time > 0
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-2)
    assert ends[1] == pytest.approx(UPRIGHT, abs=0.05)


def test_a_preview_for_another_call_is_not_used():
    mpc = swing()
    x = after_calls(mpc)
    for change in ({"reference": [np.cos(3.0), np.sin(3.0), 0.0]}, {"p": {"gravity": 1.2}}):
        mpc.preview(0.3)
        mpc(0.3, x, **change)
        assert not mpc.info.is_feedback
    mpc.preview(0.4)
    mpc(0.5, x)
    assert not mpc.info.is_feedback
    with pytest.raises(RuntimeError, match="no preview waits"):
        mpc.feedback(x)
    with pytest.raises(RuntimeError, match="call the controller first"):
        swing().preview(0.0)
    with pytest.raises(ValueError, match="SQPSolver does not have: take solver='interior_point'"):
        swing(real_time=RealTime(split=True), solver="sqp")


# Jumps


def test_jumps_of_reference_and_state_begin_a_new_plan():
    mpc = swing(real_time=RealTime(restarts="at once"))
    x = after_calls(mpc, 40)
    assert mpc.info.restart == ""
    assert abs(mpc.system.state.minus(x, UPRIGHT)).max() < 0.05
    mpc(4.0, HANGING)  # somebody put it back
    assert mpc.info.restart == "state" and mpc.info.iterations > 5
    fresh = swing()
    fresh.reset()
    fresh(4.0, HANGING)
    assert mpc._loop.plan.found.cost <= fresh._loop.plan.found.cost * (1 + 1e-3)
    x = after_calls(mpc, 40)
    mpc(4.0, x, [0.0, 1.0, 0.0])
    assert mpc.info.restart == "reference"
    patient = swing(real_time=RealTime(restarts=False))
    after_calls(patient, 40)
    patient(4.0, HANGING)
    assert patient.info.restart == ""
    with pytest.raises(ValueError, match="restarts must be True, False or 'at once', got 'soon'"):
        swing(real_time=RealTime(restarts="soon"))


@pytest.mark.parametrize("jump", [HANGING, [1.0, 0.0, 4.0]])
def test_a_jump_costs_no_more_than_calls_do(jump):
    """A step, four more where it began far off, and four for the jump: then the next call's.

    The next plan is the better one of that which went on and of a new start.
    """
    mpc, x, cost, restarts, states = swing(), np.array(jump), [], [], []
    after_calls(mpc, 40)
    for k in range(40):
        u = mpc(4.0 + 0.1 * k, x)
        assert mpc.info.iterations <= 9 and mpc.info.status is CallStatus.OK
        restarts.append(mpc.info.restart)
        cost.append(mpc.info.cost)
        states.append(x)
        x = mpc.system.step()(0.0, x, u, [1.0], 0.1)
    assert not restarts[0] and restarts[1] in ("", "state") and not any(restarts[2:])
    for k, most in ((1, 1.1), (2, 1.01)):
        assert cost[k] <= most * swing().problem.solve(states[k], reference=UPRIGHT).cost
    assert abs(mpc.system.state.minus(x, UPRIGHT)).max() < 0.05


@pytest.mark.usually(is_built=(False,))
@pytest.mark.parametrize("is_built", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_hard_limits_that_are_exceeded_cost_certificates_and_else_what_calls_do(is_built):
    """Put beyond a wall it comes back as fast as it can, by a penalty.

    The first call certifies, and so do those that violate by half of what was certified.
    """
    mpc = MPC(
        cart(2.0), 15, 0.1, Q={"place": 10, "speed": 0.1}, R=0.01, reference=[0.4, 0.0],
        bounds=[Bound("place", upper=0.5)],
    )  # fmt: skip
    if is_built:
        mpc.prepare(0.0, [0.0, 0.0])
    mpc(0.0, [0.0, 0.0])
    x, said, work = np.array([0.8, 0.5]), [], []
    for k in range(1, 25):
        u = mpc(0.1 * k, x)
        work.append(mpc.info.iterations)
        said.append(mpc.info.status)
        assert ("place exceeds" in mpc.info.message) == (said[-1] is not CallStatus.OK)
        x = mpc.system.step()(0.0, x, [*u, 0.0], [1.0], 0.1)
    assert said[0] is CallStatus.INFEASIBLE and said[-1] is CallStatus.OK
    assert CallStatus.UNSOLVED not in said
    assert max(work) <= 60 and sum(count > 10 for count in work) <= 3
    assert x == pytest.approx([0.4, 0.0], abs=1e-2)


@pytest.mark.compiled
def test_a_loop_with_code_from_disk_derives_nothing(monkeypatch):
    """Neither a limit that is exceeded nor a jump costs the seconds that deriving stages takes."""

    def controller():
        return MPC(
            cart(2.0), 15, 0.1, Q={"place": 10, "speed": 0.1}, R=0.01, reference=[0.4, 0.0],
            bounds=[Bound("place", upper=0.5)],
        )  # fmt: skip

    controller().prepare(0.0, [0.0, 0.0])
    mpc = controller()

    def refuse(*given):
        raise AssertionError("stages are derived in the loop")

    monkeypatch.setattr("lgcontrol.optimal._stage_functions.build_functions", refuse)
    mpc.prepare(0.0, [0.0, 0.0])
    for k, x in enumerate([[0.0, 0.0], [0.8, 0.5], [0.8, 0.4], [0.75, 0.0], [-3.0, 0.0]]):
        mpc(0.1 * k, x)


def test_starts_that_break_hard_limits_do_not_win():
    """A goal jumps beyond a wall: the start next to it is the cheapest, and exceeds the wall."""
    mpc = MPC(
        cart(2.0), 10, 0.1, Q={"place": 10, "speed": 0.1}, R=0.01, guess="screw",
        bounds=[Bound("place", upper=0.2)], real_time=RealTime(restarts="at once"),
    )  # fmt: skip
    mpc(0.0, [0.1, 0.0], [0.1, 0.0])
    mpc(0.1, [0.1, 0.0], [1.0, 0.0])
    assert mpc.info.restart == "reference" and mpc.info.status is CallStatus.OK
    assert mpc.plan.x[:, 0].max() <= 0.2 + ROUNDING**0.5


def test_starts_with_defects_are_judged_by_where_their_inputs_lead():
    """A pendulum at rest off its balance costs little, but no torque within its limits holds it."""
    mpc, off = swing(guess="rest"), np.pi / 2 + 0.3
    mpc(0.0, UPRIGHT)
    for k in range(1, 4):
        x = np.array([np.cos(off), np.sin(off), 0.0])
        mpc(0.1 * k, x)
        plan, step = mpc.plan, mpc.system.step(mpc.problem.method, mpc.substeps)
        ends = np.array(
            [step(0.0, *pair, [1.0], 0.1) for pair in zip(plan.x, plan.u, strict=False)]
        )
        assert np.abs(mpc.system.state.minus(ends, plan.x[1:])).max() < 1e-4


def test_noise_and_slow_changes_are_no_jumps():
    rng, mpc, x, restarts = np.random.default_rng(0), swing(), UPRIGHT, []
    mpc.reset()
    for k in range(40):
        noisy = mpc.system.state.plus(x, 0.01 * rng.normal(size=2))
        goal = SO2.exp([np.pi - 0.005 * k])
        u = mpc(0.1 * k, noisy, [*goal, 0.0])
        restarts.append(mpc.info.restart)
        x = mpc.system.step()(0.0, x, u, [1.0], 0.1)
    assert restarts[0] == "first" and sum(map(bool, restarts[1:])) <= 3


# What changes between calls


def reach():
    """A cart in the plane with a goal, an obstacle, a weight, a limit and a payload to change."""
    plane = System(
        "plane", Product(place=Rn(2), speed=Rn(2)),
        lambda t, x, u, p: ca.vertcat(x[2:], u / (1.0 + p[0])),
        inputs=[Input("fx", "N", -3, 3), Input("fy", "N", -3, 3)],
        parameters=[Parameter("payload", "kg", 0.0)],
    )  # fmt: skip
    pole = Sphere(lambda t, p: p[3:5], 0.3)
    return MPC(
        plane, 15, 0.1, Q={"speed": 0.1}, R=0.1, terminal=0.0, reference=np.zeros(4),
        residuals=[Residual(lambda t, x, u, p: x[:2] - p[1:3], 5.0, 20.0, name="goal")],
        bounds=[
            keep_out(lambda t, x, u, p: x[:2], pole, soft=100), Bound("speed", upper=2.0, soft=10),
        ],
        parameters=[Parameter("goal.x", "m", 1.0), "goal.y",
                    Parameter("pole.x", "m", 0.5), Parameter("pole.y", "m", 1.0)],
        solver=SIMPLE,
    ).symbolic("speed.upper", "goal.weight")  # fmt: skip


CHANGES = {
    "goal": {"goal.x": 0.8, "goal.y": 0.3},
    "obstacle": {"pole.x": 0.7, "pole.y": 0.2},
    "weight": {"goal.weight": 8.0},
    "limit": {"speed.upper": 0.8},
    "payload": {"payload": 0.5},
}


@pytest.fixture(scope="module")
def under_way():
    return reach()


@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_calls_compile_nothing_and_cost_a_call(under_way, change, monkeypatch):
    mpc, x = under_way, np.zeros(4)
    mpc.reset()
    for k in range(3):
        x = mpc.system.step()(0.0, x, mpc(0.1 * k, x), [0.0], 0.1)
    builds, made = [], mpc.solver.transcription._functions
    load, function = _backend.get_kernel, ca.Function
    monkeypatch.setattr(_backend, "get_kernel", lambda *a, **k: builds.append(a) or load(*a, **k))
    monkeypatch.setattr(ca, "Function", lambda *a, **k: builds.append(a) or function(*a, **k))
    mpc(0.3, x)
    usual = mpc(0.4, x)
    other = mpc(0.4, x, p=CHANGES[change])
    assert not builds and mpc.solver.transcription._functions is made
    assert abs(other - usual).max() > 1e-4
    # A step, up to four more where the old plan is far off now, and four more where going on is
    # dearer than plans were: as it is with an obstacle that is put in the way.
    assert mpc.info.restart == ""
    assert mpc.info.iterations <= (9 if change == "obstacle" else 5)


# Hard limits on the way


@pytest.mark.usually(horizon=(20, 25, 30))
@pytest.mark.parametrize("horizon", [18, 20, 22, 24, 25, 26, 28, 30, 35])
def test_a_plan_that_keeps_its_rows_is_not_given_up_for_a_lower_cost(horizon):
    """A car past a pole, the model exact: what the first plan keeps every later one can keep.

    Where the plan ends beside the pole the new last node turns it about: steps of a call exceed
    limits on their way, and then the call answers with the last of them that did not.
    """
    car = System(
        "car", Product(pose=SE2, speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(u[0]) / 2.5, u[1]),
        inputs=[Input("steer", "rad", -0.6, 0.6), Input("push", "m/s²", -2, 2)],
    )  # fmt: skip
    pole, away = Sphere([4.0, 0.3], 1.0), 0.5
    bounds = [keep_out(lambda t, x, u, p: x[:2], pole, radius=away), Bound("speed", -1, 3)]
    mpc = MPC(
        car, horizon, 0.1, Q={"pose": 1, "speed": 0.1}, R=0.1, bounds=bounds,
        terminal={"pose": 20, "speed": 5}, reference=[8, 0, 1, 0, 0],
    )  # fmt: skip
    mpc.prepare()
    x, path, step = np.array([0, 0, 1, 0, 0.0]), [], car.step()
    for k in range(45):
        u = mpc(0.1 * k, x)
        assert mpc.info.status is CallStatus.OK, (k, mpc.info)
        x = step(0.1 * k, x, u, [], 0.1)
        path.append(x)
    x, y, *_, v = np.array(path).T
    assert np.hypot(x - 4.0, y - 0.3).min() > 1.0 + away - ROUNDING
    assert -1 - ROUNDING < v.min() and v.max() < 3 + ROUNDING
    assert x[-1] > 7.5  # it is past


def arm():
    """Two links of 1 kg and 0.5 m with motors of 8 N m, which lift 0.3 of their weight."""

    def field(t, x, u, p):
        a, b, d = 5 / 12 + x[2] / 4, 1 / 12 + x[2] / 8, 1 / 12
        h, sum_cos = x[3] / 8, x[0] * x[2] - x[1] * x[3]
        heavy = 0.3 * 9.81 * ca.vertcat(0.75 * x[0] + 0.25 * sum_cos, 0.25 * sum_cos)
        r = u + ca.vertcat(h * (2 * x[4] * x[5] + x[5] ** 2), -h * x[4] ** 2) - heavy
        det = a * d - b * b
        return ca.vertcat(x[4:], (d * r[0] - b * r[1]) / det, (a * r[1] - b * r[0]) / det)

    inputs = [Input(name, "N m", -8, 8) for name in ("shoulder", "elbow")]
    return System("arm", Product(first=SO2, second=SO2, rates=Rn(2)), field, inputs=inputs)


@pytest.mark.usually(speed=(1.5,))
@pytest.mark.parametrize("speed", [1.5, 2.5, 4.0])
def test_no_call_gives_up_what_a_plain_solve_finds(speed):
    """Goals jump, speeds have hard limits, the model is exact: every call has an answer."""
    system, x, dt = arm(), np.array([1.0, 0, 1, 0, 0, 0]), 0.05
    mpc = MPC(
        system, 20, dt, Q={"first": 10, "second": 10, "rates": 0.1}, R=0.01,
        bounds=[Bound("rates", -speed, speed)],
    )  # fmt: skip
    goals = [
        [*SO2.exp([first]), *SO2.exp([second]), 0, 0]
        for first, second in ((2.0, 0.3), (-0.8, 1.5), (1.2, -1.0), (0.3, 0.3))
    ]
    mpc.prepare(0.0, x, goals[0])
    fastest, said = 0.0, []
    for k in range(240):
        u = mpc(dt * k, x, goals[k // 60])
        said.append(str(mpc.info.status))
        x = system.step("rk4", 4)(dt * k, x, u, [], dt)
        fastest = max(fastest, np.abs(x[4:]).max())
    assert set(said) == {"ok"}
    assert speed - 1e-2 < fastest < speed + 0.15  # the model of the plan has longer steps
    assert np.abs(system.error(x, goals[-1])).max() < 0.02


# The end of a plan


@pytest.mark.thorough
def test_plans_that_end_in_the_set_can_always_be_continued():
    """From call to call: feasible, in the set again, and cheaper by the cost of the step."""
    plant = pendulum(2.0)
    options = {"Q": {"angle": 1, "rate": 0.2}, "R": 0.2, "bounds": [Bound("rate", -2.5, 2.5)]}
    region = terminal_set(OptimalControlProblem(plant, 25, 0.1, reference=UPRIGHT, **options))
    mpc = MPC(
        plant,
        25,
        0.1,
        **(options | region.terms),
        reference=UPRIGHT,
        real_time=RealTime(restarts=False),
    )
    x = plant.state.join(angle=SO2.exp([2.0]), rate=[0.5])
    solver, cost = InteriorPointSolver(mpc.problem).prepare(), np.inf
    Q = mpc.problem.Q
    for k in range(12):
        u = mpc(0.1 * k, x)
        assert mpc.info.status is CallStatus.OK
        found = solver.solve(x, guess=mpc._loop.plan.found, reference=UPRIGHT)
        assert found.is_success and region.contains(found.x[-1])
        assert found.cost <= cost + 1e-6  # what the continued plan promised
        later = region.continued(found)
        assert region.contains(later.x[-1]) and abs(later.u).max() <= 2.0
        assert abs(later.x[:, 2]).max() <= 2.5 + 1e-6
        first = plant.state.minus(found.x[0], UPRIGHT)
        stage = 0.05 * (first @ Q @ first + 0.2 * found.u[0, 0] ** 2)
        cost = found.cost - stage
        x = plant.step()(0.0, x, u, [1.0], 0.1)
    assert ROUNDING < cost < 5.0


def test_what_firmware_has_not_is_refused_by_name(tmp_path):
    for options, message in (
        ({"real_time": RealTime(budget=1e-3)}, r"has no budget in seconds: .*most_iterations=…"),
        ({"real_time": RealTime(split=True)}, "has no split"),
        ({"p": {"gravity": lambda t: 1.0 + t}}, "has no parameters that are functions of time"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            swing(**options).export_c(tmp_path / "none")
    path = Trajectory(SWUNG.state, [0.0, 1.0], [HANGING, UPRIGHT])
    for moving in (lambda t: [np.cos(t), np.sin(t), 1.0], path):
        followed = swing(reference=moving)
        with pytest.raises(NotImplementedError, match="sample a reference that moves.*x_ref"):
            followed.export_c(tmp_path / "none")
        with pytest.raises(NotImplementedError, match="does not sample a reference that moves"):
            followed.solver.export_c(tmp_path / "none", reference=moving)
    tide = System("tide", Rn(1), lambda t, x, u, p: u - ca.sin(t), inputs=["pump"])
    with pytest.raises(NotImplementedError, match="hold tide at the reference depend on time"):
        MPC(tide, 5, 0.1, reference=[0.0]).export_c(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_firmware_begins_as_the_first_call_of_a_loop_does(monkeypatch):
    given = {}

    def export_c(solver, folder, **options):
        given.update(options, problem=solver.problem)
        return folder

    monkeypatch.setattr(InteriorPointSolver, "export_c", export_c)
    drag, push = Parameter("drag", "1/s", 0.1), Input("push", role="disturbance")
    slow = System(
        "slow", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1] - p[0] * x[1]],
        inputs=["pull", push], parameters=[drag],
    )  # fmt: skip
    # A parameter that takes more substeps, which the first call finds out.
    fast = MPC(slow, 10, 0.1, R=0.1, reference=[0.0, 0.0], p={"drag": 80.0})
    fast.export_c("nowhere", x0=[0.5, 0.1])
    assert given["problem"].substeps > fast.problem.substeps
    answer = fast(0.0, [0.5, 0.1])
    assert given["cases"][0].u[0] == pytest.approx(answer, abs=1e-9)
    # A loop that has estimated a disturbance leaves the reference alone.
    pushed = MPC(slow, 10, 0.1, R=0.1, reference=[0.0, 0.0], disturbance="push")
    for k in range(5):
        pushed(0.1 * k, [0.1 * k, 0.5])
    pushed.export_c("nowhere")
    assert abs(pushed.disturbance["push"]) > 0.01 and given["reference"] == [0.0, 0.0]


def test_what_is_forgotten_is_said_before_anything_is_compiled(monkeypatch):
    plant, mpc = cart(2.0), MPC(cart(2.0), 12, 0.1)
    monkeypatch.setattr(InteriorPointSolver, "prepare", lambda *a, **k: pytest.fail("compiles"))
    for begin in (
        lambda: simulate(plant, mpc, x0=[1.0, 0.0], seconds=1.0),
        lambda: mpc.prepare(0.0, [1.0, 0.0]),
        lambda: mpc(0.0, [1.0, 0.0]),
    ):
        with pytest.raises(ValueError, match="no reference to follow: give reference="):
            begin()
    told = r"t is the time in s and comes first, controller\(t, x, reference\); got \[1.0, 0.0\]"
    for call in (mpc, mpc.prepare):
        with pytest.raises(TypeError, match=told):
            call([1.0, 0.0], [0.0, 0.0])


def runaway(**options) -> MPC:
    """Of a reactor, whose steps end 1e30 off the next state where it runs away."""
    heat = 7.2e10
    reactor = System(
        "reactor", Rn(2, ("c", "T")),
        lambda t, x, u, p: ca.vertcat(
            1 - x[0] - heat * ca.exp(-8750 / x[1]) * x[0],
            350 - x[1] + 200 * heat * ca.exp(-8750 / x[1]) * x[0] + 2 * (u[0] - x[1]),
        ),
        inputs=[Input("coolant", "K", 280.0, 370.0, nominal=300.0)],
    )  # fmt: skip
    target = {"Q": [1.0, 1e-2], "R": 1e-3, "reference": [0.5, 350.0]}
    return MPC(reactor, 10, 0.1, method="rk4", **target, **options)


@pytest.mark.parametrize("policy", ["auto", "off"])
def test_a_plan_that_has_diverged_is_not_ok(policy):
    """Nothing of it is left: the next plan begins anew, also from a saved state."""
    set_compile_policy(policy)
    try:
        mpc = runaway()
        found, state = [], None
        for k, x in enumerate(([0.5, 350.0], [1.0, 450.0], [1e3, 500.0], [0.5, 350.0])):
            u = mpc(0.1 * k, x)
            assert 280 <= u[0] <= 370
            found.append(mpc.info)
            state = mpc.state if k == 2 else state
        resumed = mpc.another()
        resumed.reset(state)
        again = resumed(0.3, x)
    finally:
        set_compile_policy("auto")
    np.testing.assert_allclose(again, u, rtol=1e-9)
    assert resumed.info.status is CallStatus.OK
    assert [found[0].status, found[3].status] == [CallStatus.OK] * 2
    lost = [one for one in found if not one.defect < 1e10]
    assert lost and all(one.status is CallStatus.UNSOLVED for one in lost)
    assert "the plan has diverged, a step ends off the next state by" in lost[0].message


def test_a_preview_whose_plan_has_diverged_is_no_answer():
    mpc = runaway(real_time=RealTime(split=True))
    mpc(0.0, [0.5, 350.0])
    mpc(0.1, [0.8, 380.0])  # the plan that follows runs away
    mpc(0.2, [0.5, 350.0])
    assert not mpc.info.is_feedback
    assert (mpc.info.status, mpc.info.restart) == (CallStatus.OK, "failed")


@pytest.mark.compiled
def test_calls_of_threads_wait_for_each_other(monkeypatch):
    """The kernel works without Python's lock, on memory that belongs to one call."""
    mpc = MPC(cart(2.0), 10, 0.1, Q={"place": 10, "speed": 0.1}, R=0.01, reference=[0.4, 0.0])
    mpc.prepare(0.0, [0.0, 0.0])
    mpc(0.0, [0.0, 0.0])
    call, inside, most = KernelLoop.call, [], []

    def slow(self, *given):
        inside.append(given)
        most.append(len(inside))
        time.sleep(1e-3)
        inside.pop()
        return call(self, *given)

    monkeypatch.setattr(KernelLoop, "call", slow)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda k: mpc(0.1 * k, [0.01 * k, 0.0]), range(1, 21)))
    assert len(most) == 20 and max(most) == 1
    assert np.isfinite(answers).all()
    assert pickle.loads(pickle.dumps(mpc)).info.status == mpc.info.status
