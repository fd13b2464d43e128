"""The planning kernel by the contract of solvers: solves, steps, plans as values, messages."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import set_compile_policy
from lgcontrol.controllers import MPC, RealTime
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Plan,
    Rates,
    with_rates,
)
from lgcontrol.optimal._guess import STARTS, make_guess
from lgcontrol.optimal._settings import DEFAULT, Settings
from lgcontrol.optimal._stage_model import StageModel
from lgcontrol.optimal.kernel._table import LOG, OF_STEPS, WARM
from lgcontrol.systems import Input, Parameter, System

from .examples import pendulum
from .literature import TASKS as LITERATURE
from .test_interior_point import PROBLEMS, in_numpy, slew, turned
from .test_phases import parked, posts
from .user_tasks import TASKS

pytestmark = pytest.mark.compiled
FAST = turned(2.0, 2) + np.r_[np.zeros(4), 1.5, 0.0, 0.0]  # beyond its limit at the first node


@pytest.fixture(scope="module")
def soft():
    problem, x0 = PROBLEMS["swing, soft"]
    return InteriorPointSolver(problem).prepare(), x0


@pytest.mark.parametrize("word", ["rest", "screw", "reference", "regulators", "cheapest", "policy"])
def test_starts_are_those_of_numpy(word):
    problem, x0 = PROBLEMS["slew, slow"]
    if word == "policy":
        task = TASKS["cylinder"]()
        problem, x0 = task.problem, task.x0
        if problem.system.policy is None:
            pytest.skip("no policy")
    solver, times = InteriorPointSolver(problem), problem.times()
    found = solver.solve(x0, guess=word, max_iterations=0)
    setting = solver._given.setting(times, None, None, None)
    nodes = make_guess(solver.transcription, word, x0, times, setting, None, DEFAULT)
    np.testing.assert_allclose(found.x, nodes.x, atol=1e-12)
    controls = solver.model.controls
    np.testing.assert_allclose(found.u[:, controls], nodes.u[:, controls], atol=1e-12)
    assert word in STARTS or word == "cheapest"


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_the_cheapest_start_costs_least_as_plans_do(makes):
    """Feedback leaves a soft limit for less than rest costs; weights of 1 s and a step differ."""
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "", -3, 3)])
    solver = makes(
        OptimalControlProblem(
            point, 10, 0.1, Q=1.0, R=0.01, terminal=0.0, reference=[0.0],
            bounds=[Bound("x0", 0.5, soft=0.3)],
        )
    )  # fmt: skip
    words = "rest", "regulators", "cheapest"
    rest, fed, chosen = (solver.solve([1.0], guess=one, max_iterations=0).cost for one in words)
    assert fed < 0.5 * rest and chosen == fed


def test_a_callback_sees_every_iteration_and_changes_nothing(soft):
    solver, x0 = soft
    seen = []
    plain = solver.solve(x0)
    watched = solver.solve(x0, callback=lambda entry: seen.append(entry))
    assert plain.status == watched.status == "converged"
    assert np.array_equal(plain.plan.numbers, watched.plan.numbers)
    assert [entry.number for entry in seen] == list(range(len(watched.iterations) - 1))
    assert [entry.kkt for entry in seen] == [entry.kkt for entry in watched.iterations[:-1]]


def test_a_solve_is_stopped(soft):
    solver, x0 = soft
    stopped = solver.solve(x0, callback=lambda entry: entry.number == 3)
    assert stopped.status == "stopped" and stopped.iterations[-1].number == 3
    late = solver.solve(x0, time_limit=0.0)
    assert late.status == "time limit" and late.iterations[-1].number == 0
    few = solver.solve(x0, max_iterations=2)
    assert few.status == "iteration limit" and "residual" in few.message

    def broken(entry):
        raise RuntimeError("the licence ran out")

    with pytest.raises(RuntimeError, match="the licence ran out"):
        solver.solve(x0, callback=broken)
    assert solver.solve(x0).status == "converged"


def test_a_plan_is_a_value(soft):
    solver, x0 = soft
    plan = solver.solve(x0).plan
    moved = np.array(solver.problem.system.retract(x0, [0.02, -0.01], []))
    first = solver.step(moved, plan=plan, t0=0.1)
    solver.solve(np.array(solver.problem.system.home))  # something else in between
    other = InteriorPointSolver(solver.problem).prepare()
    copies = pickle.loads(pickle.dumps(plan)), Plan.from_column(solver.plan_layout, plan.column())
    for copied in copies:
        again = other.step(moved, plan=copied, t0=0.1)
        assert np.array_equal(again.plan.numbers, first.plan.numbers)
    with pytest.raises(ValueError, match="the plan is of"):
        InteriorPointSolver(PROBLEMS["slew, slow"][0]).step(x0, plan=plan)


@pytest.mark.parametrize("late", [0.0, 0.1, 0.03, 0.17, 0.4, -1.0, 1e6])
def test_steps_at_any_time_go_on_from_a_plan(soft, late):
    solver, x0 = soft
    plan = solver.solve(x0).plan
    found = solver.step(x0, plan=plan, t0=late, iterations=3)
    assert found.status == "iteration limit" and np.isfinite(found.u).all()
    values = solver.transcription.values(_nodes(found), _setting(solver, found))
    assert np.abs(values.gaps).max() < 1e-4
    assert found.t[0] == late


def _nodes(found):
    from lgcontrol.optimal._transcription import Nodes

    return Nodes(found.t, found.x, found.u)


def _setting(solver, found):
    return solver._given.setting(found.t, None, None, None)


def test_what_cannot_be_kept_is_named():
    problem = slew(bounds=[Bound("rate", -0.5, 0.5)])
    found = InteriorPointSolver(problem).prepare().solve(FAST)
    assert found.status == "infeasible" and found.defect < 1e-6
    assert "exceeds its bound by" in found.message
    assert "at their limits" in found.message
    worst = found.violations[0]
    assert worst.name.startswith("rate") and worst.amount > 0.1


@pytest.mark.parametrize("is_one_of_several", [False, True])
def test_a_second_attempt_that_is_cut_short_keeps_the_verdict_of_the_first(is_one_of_several):
    solver = InteriorPointSolver(slew(bounds=[Bound("rate", -0.5, 0.5)]))
    seen = []
    whole = solver.solve(FAST, guess="rest", callback=lambda entry: seen.append(entry))
    first = len(whole.iterations)
    assert whole.status == "infeasible" and len(seen) > first  # there was a second attempt
    guess = ("rest", "cheapest", "screw") if is_one_of_several else "rest"
    asked = []
    cut = solver.solve(FAST, guess=guess, callback=lambda entry: (
        asked.append(entry) or len(asked) > first + 3))  # fmt: skip
    assert len(asked) == first + 4
    assert cut.status == "infeasible" and len(cut.iterations) == first
    assert np.array_equal(cut.x, whole.x) and cut.violations == whole.violations
    verdict, _, second = whole.message.rpartition("; ")
    assert second == "a second attempt from guess='cheapest' ends infeasible"
    assert cut.message.startswith(verdict)
    assert cut.message.endswith("a second attempt from guess='cheapest' was cut short: stopped")


@pytest.mark.parametrize(
    ("makes", "most"), [(InteriorPointSolver, 20), (InteriorPointSolver, 80), (in_numpy, 20)]
)
def test_all_attempts_share_the_iterations(makes, most):
    """Two ways from each of two guesses take 141; the second guess gets what the first one left."""
    solver, seen = makes(slew(bounds=[Bound("rate", -0.5, 0.5)])), []
    found = solver.solve(
        FAST, guess="rest", max_iterations=most, callback=lambda entry: seen.append(entry)
    )
    assert len(seen) == most
    assert found.status == ("iteration limit" if most == 20 else "infeasible")
    cut = "a second attempt from guess='cheapest' was cut short: iteration limit"
    assert found.message.endswith(cut) == (most == 80)


@pytest.mark.parametrize("is_phased", [False, True])
def test_nothing_follows_a_callback_that_ended_a_second_attempt(is_phased):
    """The first attempt, infeasible, is the answer: no refinement follows, no other duration."""
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("speed", "m/s", -1, 1)])
    there, asked, most = [Bound("x0", 5.0, 6.0, at="terminal")], [], np.inf
    stated = (
        PhasedProblem([Phase(cart, 5, (0.1, 0.5), bounds=there)]) if is_phased
        else OptimalControlProblem(cart, 5, 0.1, Q=0.0, bounds=there)
    )  # fmt: skip

    def ask(entry):
        asked.append(entry)
        return len(asked) == most + 1  # once: nobody asks again

    whole = stated.solve([0.0], guess="rest", callback=ask)
    most = len((whole.solution if is_phased else whole).iterations) + 3
    assert whole.status == "infeasible" and len(asked) > most + 1
    asked.clear()
    found = stated.solve([0.0], guess="rest", refine=1e-3, callback=ask)
    assert found.status == "infeasible"
    assert "cut short: stopped" in found.message
    assert len(asked) == most + 1


def test_what_led_to_no_plan_is_named():
    """The policy and the guess end next to −1, where x³ − 3x has its maximum below the limit."""

    def made(**more):
        system = System(
            "cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("pull", "m/s", -20, 20)], **more
        )
        end = Bound(lambda t, x, u, p: x**3 - 3 * x, 3.0, at="terminal", name="end")
        return InteriorPointSolver(
            OptimalControlProblem(system, 20, 0.1, Q=0, R=1, reference=[0.0], bounds=[end])
        )

    away = made(policy=lambda t, x, x_ref, u_ref, p: -5 * (x + 1.1))
    text = "leads to no plan; this one begins at guess='cheapest'"
    found = away.solve([1.5])
    assert found.status == "converged" and f"; the system's policy {text}" in found.message
    found = made().solve([1.5], guess=lambda t, x, reference: -5 * (x + 1.1))
    assert found.status == "converged" and f"; the guess {text}" in found.message
    assert "guess" not in made().solve([1.5]).message


@pytest.mark.usually(unit=("x",))
@pytest.mark.parametrize("unit", ["x", "u", "t", "cost"])
def test_a_certificate_takes_as_many_iterations_in_all_units(unit):
    """The end at 3 is out of a disc of radius 2; one of radius 4 is kept."""

    def solved(radius=2.0, x=1.0, u=1.0, t=1.0, cost=1.0):
        cart = System(
            "cart", Rn(2), lambda time, s, v, p: [s[1] / t, v * x / u / t],
            inputs=[Input("push", "", -5 * u, 5 * u)],
        )  # fmt: skip
        disc = Bound(lambda time, s, v, p: (s[0] / x) ** 2 + (s[1] / x) ** 2 / 10, upper=radius**2)
        there = Bound("x0", 3.0 * x, 3.0 * x, at="terminal")
        problem = OptimalControlProblem(
            cart, 20, 0.2 * t, Q=0.1 * cost / x**2 / t, R=cost / u**2 / t,
            reference=[3.0 * x, 0.0], bounds=[disc, there],
        )  # fmt: skip
        return InteriorPointSolver(problem).solve([0.0, 0.0])

    known = solved()
    assert known.status == "infeasible" and solved(4.0).status == "converged"
    for scale in (1e3, 1e-3):
        found = solved(**{unit: scale})
        assert found.status == "infeasible" and len(found.iterations) == len(known.iterations)


def test_parameters_limits_and_prices_are_those_of_the_call():
    cart = System(
        "cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u / p[0]],
        inputs=[Input("push", "N", -5, 5)], parameters=[Parameter("mass", "kg", 1.0)],
    )  # fmt: skip
    problem = OptimalControlProblem(
        cart, 20, 0.1, Q={"x": 4.0, "v": 1.0}, R=0.1, reference=[1.0, 0.0],
        bounds=[Bound("v", -1.0, 0.5, soft="price"), Bound("push", -5.0, "most")],
        parameters=[Parameter("price", "1", 10.0), Parameter("most", "N", 2.0)],
    )  # fmt: skip
    solver = InteriorPointSolver(problem).prepare()
    fastest = [
        solver.solve([0.0, 0.0], p={"price": price}).x[:, 1].max() for price in (0.01, 1.0, 100.0)
    ]
    assert fastest[0] > 0.6 and fastest[0] > fastest[1] > fastest[2]
    plan = solver.solve([0.0, 0.0])
    assert 1.9 < plan.u.max() <= 2.0 + 1e-6
    for most in (1.0, 3.0):  # steps take limits as they are now
        found = solver.step([0.0, 0.0], plan=plan.plan, t0=0.0, p={"most": most}, iterations=15)
        want = solver.solve([0.0, 0.0], p={"most": most})
        np.testing.assert_allclose(found.u, want.u, atol=0.2)  # of a barrier that stays
        assert found.u.max() <= most + 1e-6


def test_an_mpc_runs_with_it():
    pendulum = System(
        "pendulum", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: [x[2], u - x[1]], inputs=[Input("torque", "N m", -2, 2)],
    )  # fmt: skip
    mpc = MPC(
        pendulum, 20, 0.05, Q={"angle": 1, "rate": 0.1}, R=0.1, delay=0.07,
        real_time=RealTime(split=True),
        bounds=[Bound("rate", -1.0, 1.0, soft=10.0)], reference=[-1.0, 0.0, 0.0],
        solver=InteriorPointSolver(),
    )  # fmt: skip
    mpc.prepare(0.0, [1.0, 0.0, 0.0])
    x, fastest = np.array([1.0, 0.0, 0.0]), 0.0
    for k in range(140):
        u = mpc(0.05 * k, x)
        assert mpc.info.status == "ok", (k, mpc.info)
        x = pendulum.step("rk4", 2)(0.0, x, u, [], 0.05)
        fastest = max(fastest, abs(x[2]))
    assert np.abs(pendulum.error(x, [-1.0, 0.0, 0.0])).max() < 0.02
    assert fastest <= 1.0 + 0.1


def test_a_call_without_time_says_so(soft):
    solver, x0 = soft
    plan = solver.solve(x0).plan
    late = solver.step(x0, plan=plan, t0=0.15, iterations=5, time_limit=0.0)
    assert late.status == "time limit" and "more were due" in late.message
    assert late.iterations[-1].number == 1
    assert solver.step(x0, plan=plan, t0=0.15, iterations=1).status == "iteration limit"


def test_a_step_is_asked_for_a_state_and_iterations(soft):
    solver, x0 = soft
    plan = solver.solve(x0).plan
    for wrong in ([0.5], 0.5, [*x0, 0.0], np.full_like(x0, np.nan)):
        with pytest.raises(ValueError, match="x0"):
            solver.step(wrong, plan=plan)
    for few in (0, -3, 1.5):
        with pytest.raises(ValueError, match="iterations must be a whole number, at least 1"):
            solver.step(x0, plan=plan, iterations=few)


def test_an_interrupted_step_leaves_no_callback_behind(soft, monkeypatch):
    solver, x0 = soft
    plan, memory = solver.solve(x0).plan, solver.memory

    def interrupted(*_, **__):
        assert memory.task.watch
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(memory, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solver.step(x0, plan=plan, time_limit=1.0)
    assert not memory.task.watch


def test_rows_that_cannot_be_kept_are_said_so_by_the_second_call():
    solver = InteriorPointSolver(slew(bounds=[Bound("rate", -0.5, 0.5)])).prepare()
    kept = solver.solve(turned(2.0, 2) + np.zeros(7))
    first = solver.step(FAST, plan=kept.plan, t0=0.0, iterations=30)
    second = solver.step(FAST, plan=first.plan, t0=0.0, iterations=30)
    assert first.status == "iteration limit"
    assert "ended before the plan kept its hard bounds" in first.message
    assert "the start itself violates rate.x0 by 1.1" in first.message
    assert second.status == "infeasible" and "exceeds its bound by" in second.message


def test_nothing_is_derived_for_machine_code_that_exists(monkeypatch):
    problem, x0 = PROBLEMS["swing, stopped"]
    wanted = InteriorPointSolver(problem).prepare().solve(x0)
    fresh = InteriorPointSolver(problem)

    def derived(*_):
        raise AssertionError("functions were derived")

    for name in ("stage", "curvature", "bend_places", "step", "composes"):
        monkeypatch.setattr(StageModel, name, property(derived))
    found = fresh.prepare().solve(x0)
    assert fresh.is_compiled and np.array_equal(found.plan.numbers, wanted.plan.numbers)


def test_a_problem_with_rates_plans_the_same_after_pickling():
    problem = OptimalControlProblem(
        pendulum(), 8, 0.1, reference=[-1.0, 0.0, 0.0], Q=1.0, R=0.1, terminal=10.0
    )
    problem = with_rates(problem, Rates(0.01, 5.0))
    plan, other = (
        each.solve([1.0, 0.0, 0.0, 0.0], solver="interior_point")
        for each in (problem, pickle.loads(pickle.dumps(problem)))
    )
    assert plan.is_success and np.array_equal(plan.x, other.x)


@pytest.mark.parametrize("name", ["swing, soft", "swing, stopped", "slew, far", "slew, too fast"])
def test_without_a_kernel_numpy_goes_the_same_way(name):
    problem, x0 = PROBLEMS[name] if name in PROBLEMS else (PROBLEMS["slew, slow"][0], FAST)
    own = InteriorPointSolver(problem)
    known = own.solve(x0)
    later = own.step(known.x[1], t0=problem.dt)
    set_compile_policy("off")
    solver = InteriorPointSolver(problem)
    found = solver.solve(x0)
    assert own.has_loop and not solver.has_loop
    assert found.status is known.status and len(found.iterations) == len(known.iterations)
    np.testing.assert_allclose(found.u, known.u, atol=1e-6)
    step = solver.step(known.x[1], t0=problem.dt)
    assert step.status is later.status
    np.testing.assert_allclose(step.u, later.u, atol=1e-6)
    set_compile_policy("auto")  # what NumPy found is a plan that machine code goes on from
    again = InteriorPointSolver(problem).step(known.x[1], t0=problem.dt, plan=found.plan)
    if known.is_success:  # multipliers of penalised rows, a difference from the penalty, are noise
        np.testing.assert_allclose(again.u, later.u, atol=1e-6)


@pytest.mark.parametrize("made", [InteriorPointSolver, in_numpy])
def test_a_plan_in_the_scales_of_loops_has_the_same_multipliers(made):
    """Those of the cost and the rows as they are stated, and slacks and barrier, there and back."""
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -8e3, 8e3)]
    )  # fmt: skip
    fast = Bound("x1", upper=500.0)
    lean = Bound("x0", lower=-100.0, soft=3.0)
    there = Bound("x0", 900.0, 900.0, at="terminal")
    problem = OptimalControlProblem(
        cart, 10, 0.5, Q=1.0, R=1e-3, reference=[900.0, 0.0], bounds=[fast, lean, there]
    )
    solver = made(problem)
    solver.solve([0.0, 0.0], max_iterations=8)
    memory, sides = solver.memory, solver.model.sides
    nr, row = len(solver.transcription.rows.names), np.r_[sides.row, sides.equal].astype(int)

    def stated():
        parts, scale = memory.parts, memory.task.scale
        d = parts["scales"][0, :nr]
        z = [parts[name] * d[row] / scale for name in ("z", "y")]
        slacks = [parts[name] / d[row] for name in ("s", "e")]
        equal = parts["nu"] * d[sides.equal] / scale
        rest = [parts[name] / scale for name in ("lam", "zl", "zu")] + [memory.kept[:1] / scale]
        return np.concatenate([part.ravel() for part in (*z, *slacks, equal, *rest)])

    before, scale = stated(), memory.task.scale
    way = {"resume": WARM, "max_iterations": 0, "tolerance": 1e9}
    for options in ({"of": OF_STEPS}, {}):
        memory.run("plan", **way, **options)
        np.testing.assert_allclose(stated(), before, rtol=1e-12)
        assert (memory.task.scale == scale) == (not options)
    now, other = memory.parts["scales"]
    assert (np.abs(np.log(now / other)) > 0.5).sum() > 2


def test_functions_that_are_not_of_scalars_are_called_by_the_kernel():
    """A table between whose points CasADi interpolates; IPOPT goes another way."""
    speeds = np.linspace(-2, 2, 9)
    drag = ca.interpolant("drag", "bspline", [speeds], speeds * np.abs(speeds))
    sled = System(
        "sled", Rn(2), lambda t, x, u, p: [x[1], u - drag(x[1])], inputs=[Input("F", "N", -1, 1)]
    )
    problem = OptimalControlProblem(
        sled, 8, 0.1, Q=1.0, R=1.0, reference=np.zeros(2), bounds=[Bound("x1", -0.3)]
    )
    solver = InteriorPointSolver(problem).prepare()
    assert not solver.is_compiled and solver.has_loop
    found, expected = solver.solve([1.0, 0.0]), problem.solve([1.0, 0.0], solver="ipopt")
    assert found.status == "converged"
    assert found.cost == pytest.approx(expected.cost, rel=1e-5)
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-3)
    step = solver.step([1.0, 0.0], plan=found.plan)
    np.testing.assert_allclose(step.u, found.u, atol=1e-3)


@pytest.mark.usually(name=("slew, slow",))
@pytest.mark.parametrize("name", ["swing, slow", "slew, slow"])
def test_a_solve_from_a_solution_begins_with_its_multipliers(name):
    problem, x0 = PROBLEMS[name]
    solver = InteriorPointSolver(problem).prepare()
    known = solver.solve(x0)
    again = solver.solve(x0, guess=known)
    assert again.is_success and len(again.iterations) == 1
    np.testing.assert_array_equal(solver.feedback(again.plan), solver.feedback(known.plan))
    near = np.asarray(problem.system.retract(x0, np.full(problem.system.n_errors, 1e-4), []))
    warm, cold = solver.solve(near, guess=known), solver.solve(near, guess=known.trajectory)
    assert warm.is_success and len(warm.iterations) <= 0.6 * len(cold.iterations)
    np.testing.assert_allclose(warm.u, cold.u, atol=1e-5)
    later = solver.solve(near, guess=known, t0=problem.dt)  # of another time: nodes alone
    assert later.is_success
    set_compile_policy("off")
    numpy_warm = InteriorPointSolver(problem).solve(near, guess=known)
    assert len(numpy_warm.iterations) == len(warm.iterations)
    np.testing.assert_allclose(numpy_warm.u, warm.u, atol=1e-6)


def test_a_solve_takes_as_many_iterations_as_it_may(soft):
    """More than the 1000 that a log holds at first; without that patience it ends before."""
    solver, x0 = soft
    assert solver.solve(x0, tolerance=0.0, max_iterations=2000).status == "acceptable"
    patient = InteriorPointSolver(solver.problem, settings=Settings(tiny_most=1000)).prepare()
    found = patient.solve(x0, tolerance=0.0, max_iterations=1003)
    assert len(found.iterations) == 1004


def test_an_end_within_the_tolerance_has_converged_however_many_iterations_there_may_be():
    """The barrier goes on falling there: who asks for fewer iterations has the answer sooner."""
    early = []
    for name in ("swing, soft", "swing, light", "slew", "slew, slow"):
        problem, x0 = PROBLEMS[name]
        solver = InteriorPointSolver(problem)
        most = solver.solve(x0).iterations[-1].number
        ends = [solver.solve(x0, max_iterations=count) for count in range(most + 1)]
        is_met = [entry.kkt <= 1e-6 for entry in ends]
        assert not is_met[0] and is_met[-1]
        assert [entry.is_success for entry in ends] == is_met
        early += is_met[:-1]
    assert any(early)


def test_a_solve_from_the_solution_of_another_solver_stays_near_it():
    """Between parked cars, where longer plans are farther from all limits."""
    task, x0 = parked(*posts())
    peer = task.solve(x0, solver="ipopt")
    plan = task.solve(x0, guess=peer, solver=InteriorPointSolver())
    assert peer.is_success and plan.is_success and len(plan.solution.iterations) < 20
    assert plan.cost < 1.0001 * peer.cost


@pytest.mark.parametrize("policy", ["auto", "off"])
def test_a_start_that_runs_away_is_answered(policy):
    burst = System("burst", Rn(1), lambda t, x, u, p: x**9 + u, inputs=["push"])
    problem = OptimalControlProblem(burst, 10, 0.1, reference=[0.0])
    set_compile_policy(policy)
    assert InteriorPointSolver(problem).solve([10.0]).status in ("failed", "stalled")


@pytest.mark.parametrize("policy", ["auto", "off"])
def test_a_free_start_stays_strictly_within_its_own_limits(policy):
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=["push"])
    problem = OptimalControlProblem(
        cart, 10, 0.1, reference=[0.0, 0.0], free="x0", bounds=[Bound("x0", 0.5, at="start")]
    )
    set_compile_policy(policy)
    found = InteriorPointSolver(problem).solve([1.0, 0.0])
    assert found.is_success and 0.5 <= found.x[0, 0] < 0.5 + 1e-5


def test_many_are_each_as_alone_in_machine_code(soft):
    solver, x0 = soft
    starts = np.array([x0, SO2.exp([0.3]).tolist() + [0.1], SO2.exp([2.0]).tolist() + [-0.2]])
    assert solver.is_compiled and solver._twin().is_compiled
    for one, x in zip(solver.solve_many(starts), starts, strict=True):
        alone = solver.solve(x)
        assert one.status is alone.status
        np.testing.assert_array_equal(one.u, alone.u)


def test_limits_of_controls_alone_let_the_barrier_fall_at_every_good_step():
    """Also where the error grew; with other constraints it must have halved."""
    task = TASKS["circle"]()
    solver = InteriorPointSolver(task.problem)
    found = solver.solve(task.x0)
    assert found.is_success and len(found.iterations) - 1 <= 15
    log = dict(zip(LOG, solver.memory.arrays["log"][: len(found.iterations)].T, strict=True))
    before, after = log["mu"][1:-1], log["mu"][2:]
    good = (log["step"] >= DEFAULT.fast_step) & (log["regularization"] == 0)
    grew = log["stationarity"][1:] > log["stationarity"][:-1]
    assert np.all((after < before) | (before <= 1e-7) | ~good[1:-1])
    assert np.any(good[1:-1] & (after < before) & grew[:-1])


EITHER = InteriorPointSolver, pytest.param(in_numpy, marks=pytest.mark.thorough)


@pytest.mark.parametrize("makes", EITHER)
def test_an_iterate_from_which_no_regularization_gives_a_step_is_left(makes):
    """With regularizations of at most 1 a solve gets nowhere without that; the optimum is 3.031."""
    task = TASKS["minimum time"]()
    found = makes(task.problem, settings=Settings(regularization_most=1.0)).solve(task.x0)
    lengths = np.array([entry.step_length for entry in found.iterations])
    assert found.status == "converged" and abs(found.cost - 3.03107) < 1e-4
    (backs,) = np.nonzero(lengths[:9] == 0)
    assert backs.tolist() == [2, 4, 6, 8]
    costs = np.array([entry.cost for entry in found.iterations])
    np.testing.assert_array_equal(costs[backs], costs[0])  # the same iterate four times
    np.testing.assert_allclose(lengths[[5, 7]], lengths[1] / [2, 4])


@pytest.mark.parametrize("makes", EITHER)
def test_steps_that_the_filter_cuts_again_and_again_are_taken_whole(makes):
    """Across a river: five steps of a sixtieth; without the rule they take 30 iterations."""
    statement = LITERATURE["across_a_river"].state()
    solver = makes(statement.problem.problem)
    found = statement.problem.solve(statement.x0, solver=solver).solution
    lengths = np.array([entry.step_length for entry in found.iterations])
    creeps = lengths < DEFAULT.creeping
    assert found.is_success and len(lengths) <= 20
    assert creeps[1:6].all() and lengths[6] == 1


@pytest.mark.parametrize("makes", EITHER)
def test_a_whole_step_that_does_not_pay_is_taken_back(makes):
    """A cart past a limit of speed: its solve is that without the rule, with eight trials in it."""

    def limit(t, x, u, p):
        return x[1] - 2 + 0.4 * (ca.tanh((x[0] - 4) / 0.1) - ca.tanh((x[0] - 6) / 0.1))

    drag = System(
        "cart", Rn(2, ("place", "speed")),
        lambda t, x, u, p: [x[1], u[0] - 0.1 * x[1] - 0.02 * x[1] ** 2],
        inputs=[Input("drive", "", -1, 1)],
    )  # fmt: skip
    bounds = [
        Bound("speed", lower=0.0), Bound(limit, upper=0.0, name="limit"),
        Bound(lambda t, x, u, p: x - ca.DM([10, 0]), 0, 0, at="terminal", name="end"),
    ]  # fmt: skip
    cost = Cost(lambda t, x, u, p: u * x[1])
    problem = OptimalControlProblem(drag, 40, 9 / 40, Q=0, costs=[cost], bounds=bounds)
    without, found = (
        makes(problem, settings=Settings(creeping=creeping)).solve([0.0, 0.0])
        for creeping in (0.0, DEFAULT.creeping)
    )
    own, costs = (np.array([entry.cost for entry in each.iterations]) for each in (without, found))
    k = int(np.argmax(own != costs[: len(own)]))
    assert k > 6 and len(costs) == len(own) + 8
    np.testing.assert_allclose(costs[k + 8 :], own[k:], rtol=1e-12)
