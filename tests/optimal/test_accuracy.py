"""Steps of different lengths, integrals over a step, and what a plan misses between its nodes."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import MPC
from lgcontrol.groups import SO3, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Rates,
    Residual,
    Sphere,
    keep_out,
)
from lgcontrol.optimal._solution import DERIVED
from lgcontrol.optimal._transcription import Nodes, Transcription
from lgcontrol.optimal.accuracy import _refine
from lgcontrol.optimal.accuracy._parts import parts_of
from lgcontrol.systems import Input, Parameter, System

from .examples import pendulum, satellite
from .literature import TASKS
from .test_interior_point import in_numpy

START, END = 1.0, 1.5
HYPER = System("hyper", Rn(1), lambda t, x, u, p: -(x**3) + u, inputs=["u"])
# Lengths of steps that vary by a factor of ten.
UNEQUAL = 0.01 + 0.09 * np.sin(np.linspace(0.1, 3.0, 24)) ** 2


def hypersensitive(seconds: float, horizon: int, **options) -> OptimalControlProblem:
    """Along the stable way to the origin, rest, and along the unstable one to the end."""
    there = Bound("x0", END, END, at="terminal")
    return OptimalControlProblem(
        HYPER, horizon, seconds / horizon, Q=1.0, R=1.0, terminal=0.0, reference=[0.0],
        bounds=[there], **options,
    )  # fmt: skip


def least_cost() -> float:
    """Of the Hamilton-Jacobi-Bellman equation ``½(x² + V'²) = V' x³ + V'²``, over all times."""

    def slope(x: float, side: float) -> float:
        return float(np.sqrt(x**6 + x**2) + side * x**3)

    return quad(slope, 0, START, args=(-1.0,))[0] + quad(slope, 0, END, args=(1.0,))[0]


def test_nodes_go_where_they_are_needed():
    coarse = hypersensitive(50.0, 200).solve([START])
    assert coarse.cost / least_cost() > 1.15  # and says so:
    error = coarse.transcription_error()
    told = coarse.cost + error.cost_change - error.held_inputs
    assert told == pytest.approx(least_cost(), rel=0.02)
    assert "cost would change by -4" in str(error)
    fine = hypersensitive(50.0, 200).solve([START], refine=1e-3)
    assert fine.is_success
    assert abs(fine.cost / least_cost() - 1) < 1e-3
    assert fine.problem.horizon <= 200
    steps = fine.problem.steps
    longest = int(steps.argmax())
    assert steps[longest] > 10 * max(steps[0], steps[-1])
    assert 5.0 < fine.t[longest] < 45.0
    assert "states off by" in fine.message
    assert "not reached" not in fine.message


@pytest.mark.thorough
@pytest.mark.parametrize(("seconds", "steps"), [(1000.0, 10), (10_000.0, 100)])
def test_long_times_are_solved_to_a_thousandth(seconds, steps):
    found = hypersensitive(seconds, steps).solve([START], refine=1e-3)
    assert found.is_success
    assert abs(found.cost / least_cost() - 1) < 1e-3


def test_steps_that_do_not_solve_their_equations_are_divided_and_no_others(monkeypatch):
    """Five of Newton's steps end a step of 100 s of ``ẋ = u − x³`` at rest, not one from 50."""
    found = hypersensitive(1000.0, 10)._solved([START], max_iterations=1)
    (part,) = parts_of(found)
    x = np.zeros((11, 1))
    x[3] = 50.0
    far = part._replace(nodes=Nodes(found.t, x, np.zeros((10, 1))))
    monkeypatch.setattr(_refine, "parts_of", lambda found: [far])
    assert np.flatnonzero(_refine._missed(found)).tolist() == [3]


@pytest.mark.parametrize("hold", ["first", "collocation"])
def test_failed_steps_are_found_where_inputs_vary_in_them(hold):
    """The two ends, where states move: the middle rests."""
    coarse = hypersensitive(1000.0, 10, hold=hold, method="radau_iia5")
    missed = _refine._missed(coarse._solved([START], max_iterations=3))
    assert missed.shape == (10,)
    assert missed[0] and missed[-2:].any() and not missed[3:7].any()


def test_a_refinement_that_ends_early_says_so(monkeypatch):
    monkeypatch.setattr("lgcontrol.optimal.accuracy._refine.MOST_NODES", 100)
    found = hypersensitive(50.0, 100).solve([START], refine=1e-6, guess="rest")
    assert "refine=1e-06 is not reached with" in found.message


def test_a_time_limit_counts_for_all_rounds_of_a_refinement():
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    problem = OptimalControlProblem(cart, 5, 0.2, Q=1, R=1, reference=[0, 0])
    found = problem.solve([1, 0], refine=1e-6, time_limit=0.0)
    assert found.problem.horizon == 5
    assert "is not reached" in found.message and "in the time limit of 0 s" in found.message


def test_a_refinement_whose_solves_fail_answers_with_its_last_plan(monkeypatch):
    solved, seen = OptimalControlProblem._solved, []

    def once(self, start, **options):
        seen.append(self.horizon)
        return solved(self, start, **options | ({"max_iterations": 1} if len(seen) > 1 else {}))

    monkeypatch.setattr(OptimalControlProblem, "_solved", once)
    found = hypersensitive(20.0, 60).solve([START], refine=1e-5)
    assert found.is_success and found.problem.horizon == 60
    assert len(seen) == 2 + _refine.MOST_FAILURES  # and no more
    assert f"not reached with {seen[-1]} steps, whose solve ends iteration limit" in found.message
    seen += [0]
    lost = hypersensitive(20.0, 60).solve([START], refine=1e-5)
    assert not lost.is_success and "none of 3 solves ends with a plan" in lost.message


def test_inputs_that_a_limit_of_states_holds_save_nothing_by_switching():
    """At its lowest speed a cart gains nothing: by steps alone it would be a third."""
    car = System(
        "car", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -8, 8)]
    )  # fmt: skip
    pulled = Cost(lambda t, x, u, p: 5.0 * x[0] + 1e-4 * u**2)
    lengths = 0.1 * (1 + 0.5 * np.cos(np.arange(20)))
    problem = OptimalControlProblem(
        car, 20, lengths, Q=0.0, R=1e-6, terminal=0.0, costs=[pulled], bounds=[Bound("v", -0.5)],
        quadrature="gauss",
    )  # fmt: skip
    found = problem.solve([0.0, 0.0])
    error, end, full = found.transcription_error(), lengths.sum(), 0.5 / 8
    assert error.inputs_of_steps[2:].sum() < 1e-2 * abs(found.cost)
    exact = 5 * (-4 / 3 * full**3 - 4 * full**2 * (end - full) - 0.25 * (end - full) ** 2)
    told = found.cost + error.cost_change - error.held_inputs
    assert told == pytest.approx(exact + 64e-4 * full, rel=0.03)


@pytest.mark.parametrize("solver", ["interior_point", "ipopt"])
@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_the_change_of_the_cost_is_that_of_a_finer_transcription(method, solver):
    def problem(parts: int, **options) -> OptimalControlProblem:
        return OptimalControlProblem(
            pendulum(), 60, 0.05, Q={"angle": 1.0, "rate": 0.1}, R=0.1, terminal=1.0,
            reference=[1.0, 0.0, 0.0], substeps=parts, **options,
        )  # fmt: skip

    start = [np.cos(0.8), np.sin(0.8), 0.0]
    found = problem(1, method=method).solve(start, solver=solver)
    exact = problem(4, method="rk4", quadrature="gauss").solve(start)
    change = exact.cost - found.cost
    # What is left is of second order in the errors.
    assert found.transcription_error().cost_change == pytest.approx(change, rel=0.1)


def test_states_between_the_nodes_are_those_of_another_integrator():
    system = satellite()
    problem = OptimalControlProblem(
        system, 6, 0.4, Q=1.0, R=0.1, reference=system.state.identity, method="euler"
    )
    x0 = np.concatenate([SO3.exp([0.3, -0.5, 0.4]), [0.8, -0.4, 0.6]])
    found = problem.solve(x0)
    error = found.transcription_error()
    k = int(np.abs(error.states).max(axis=1).argmax())

    def rate(t, x):
        return np.asarray(system.state.rate_matrix(x) @ system.f(t, x, found.u[k], [])).ravel()

    end = solve_ivp(rate, (0.0, 0.4), found.x[k], rtol=1e-11, atol=1e-12).y[:, -1]
    end[:4] /= np.linalg.norm(end[:4])
    assert np.allclose(error.states[k], system.error(end, found.x[k + 1]), atol=1e-7)
    assert error.state > 0.01


def test_held_inputs_cost_what_finer_ones_save():
    def carts(horizon: int) -> float:
        system = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
        problem = OptimalControlProblem(
            system, horizon, 2.0 / horizon, Q=[1.0, 0.1], R=0.1, terminal=1.0,
            reference=[0.0, 0.0], quadrature="gauss",
        )  # fmt: skip
        return problem.solve([1.0, 0.0])

    coarse, fine = carts(20), carts(320)
    saved = coarse.cost - fine.cost
    assert coarse.transcription_error().held_inputs == pytest.approx(saved, rel=0.2)


@pytest.mark.parametrize(("quadrature", "order"), [("left", 1), ("gauss", 4)])
def test_integrals_have_their_order(quadrature, order):
    system = System(
        "lag",
        Rn(1),
        lambda t, x, u, p: -p * x + u,
        inputs=["u"],
        parameters=[Parameter("k", "", 2)],
    )
    terms = {
        "residuals": [Residual(lambda t, x, u, p: x * ca.sin(t), weight=2.0)],
        "costs": [Cost(lambda t, x, u, p: ca.exp(-t) * x)],
    }
    x0, u = 1.0, 0.5

    def state(t):
        return u / 2 + (x0 - u / 2) * np.exp(-2 * t)

    def rate(t):  # of Q, of R, of the residual, of the cost
        x = state(t)
        return x**2 / 2 + 3 * u**2 / 2 + (x * np.sin(t)) ** 2 + np.exp(-t) * x

    wanted, errors = quad(rate, 0, 2, epsabs=1e-13)[0], []
    for horizon in (8, 16, 32):
        problem = OptimalControlProblem(
            system, horizon, 2 / horizon, Q=1.0, R=3.0, terminal=0.0, reference=[0.0],
            quadrature=quadrature, **terms,
        )  # fmt: skip
        once = Transcription(problem)
        t = problem.times()
        setting = InteriorPointSolver(problem)._given.setting(t)
        nodes = Nodes(t, state(t)[:, None], np.full((horizon, 1), u))
        errors.append(abs(once.values(nodes, setting).cost - wanted))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.allclose(slopes, order, atol=0.25)


# -- what an unaware user is told ----------------------------------------------------------------


def test_a_plan_that_is_off_says_so():
    assert "; coarse steps: " not in hypersensitive(50.0, 1000).solve([START]).message
    told = hypersensitive(50.0, 200).solve([START]).message
    assert "coarse steps: the cost would change by -0.44, 11%, states are off by 4.2e-02 " in told
    assert "solve(…, refine=1e-3) puts nodes where" in told
    through = over_a_pole(3).solve([0.0, 0.2])
    assert "coarse steps: pole falls below its lower bound by 0.3 m at t = 2 s" in through.message
    # A refined plan tells its error, and a plan of IPOPT tells the same.
    assert "coarse" not in hypersensitive(50.0, 200).solve([START], refine=1e-3).message
    other = hypersensitive(50.0, 200).solve([START], solver="ipopt")
    assert "coarse steps: the cost would change by -0.44, 11%" in other.message


def test_a_way_through_an_obstacle_is_told_by_its_radius():
    """A lane that a rock blocks: nodes lie before and behind it, and clearances reach 18 m."""
    inputs = [Input(name, "m/s", -10.0, 10.0) for name in ("vx", "vy")]
    point = System("point", Rn(2, ("x", "y"), "m"), lambda t, x, u, p: u, inputs=inputs)
    rock = keep_out(lambda t, x, u, p: x[:2], Sphere([20.0, 0.0], 2.0), name="rock")
    bounds = [rock, Bound("y", -1.9, 1.9), Bound("x", 40.0, 40.0, at="terminal")]
    problem = OptimalControlProblem(point, 20, 0.4, Q=0, R=1.0, bounds=bounds)
    found = problem.solve([0.0, 0.1])
    assert found.is_success
    assert "coarse steps: rock falls below its lower bound by 0.1" in found.message
    error = found.transcription_error()
    (worst,) = error.violations
    assert worst.amount / 2.0 == pytest.approx(error.violations_of_steps.max(), rel=0.01)


def test_a_plan_of_phases_that_is_off_says_so():
    def planned(horizon: int, **options) -> str:
        there = Bound("x0", END, END, at="terminal")
        phase = Phase(HYPER, horizon, (49.9, 50.1), Q=1.0, R=1.0, bounds=[there])
        return PhasedProblem(phase, time_weight=1e-3, **options).solve([START]).message

    told = planned(200)
    assert "coarse steps: the cost would change by -0.4" in told
    assert "states are off by 4" in told
    assert "coarse" not in planned(1000)
    # The state after a jump is not the node where its phase begins.
    drop = Phase(CART, 10, 2.0, R=1.0, jump=lambda t, x, p: [x[0], x[1] - 0.3], Q=1.0)
    ends = Phase(CART, 10, 2.0, R=1.0, Q=1.0, bounds=STOP, name="last")
    found = PhasedProblem([drop, ends], quadrature="gauss").solve([0.0, 0.0])
    assert found.is_success
    assert "coarse" not in found.message


def test_a_cost_of_rounding_has_no_share():
    """A cart that is to rest where it is: least effort is none."""
    there = [Bound(name, 0, 0, at="terminal") for name in CART.state.coordinate_names]
    phase = Phase(CART, 2, (0.5, 2.0), Q=1.0, R=0.1, bounds=there)
    found = PhasedProblem(phase).solve([1e-8, 0.0])
    assert found.is_success and 0 < found.cost < 1e-12
    assert "the cost would change" not in found.message


def test_long_steps_are_drawn_as_they_are_integrated():
    """A step of 3 s from rest under a held push: half way a fourth of the distance."""
    cart = System(
        "cart", Rn(2, ("x", "v")), lambda t, x, u, p: ca.vertcat(x[1], u[0]), inputs=["u"]
    )
    goal = [Bound("x", 9.0, 9.0, at="terminal"), Bound("v", 0.0, 0.0, at="terminal")]
    alone = OptimalControlProblem(cart, 2, 3.0, Q=0.0, R=1.0, reference=[0.0, 0.0], bounds=goal)
    phased = PhasedProblem(Phase(cart, 2, 6.0, R=1.0, bounds=goal))
    for problem in (alone, phased, alone.with_arguments(hold="first")):
        found = problem.solve([0.0, 0.0])
        drawn = max((line for ax in found.plot().axes for line in ax.lines), key=_points)
        t, x = map(np.asarray, (drawn.get_xdata(), drawn.get_ydata()))
        share = np.interp(1.5, t, x) / np.interp(3.0, t, x)
        wanted = 0.25 if found.trajectory.hold == "zero" else 0.25 * 1.25
        assert share == pytest.approx(wanted, rel=1e-2)


def _points(line) -> int:
    """Of lines of the position."""
    is_position = abs(np.asarray(line.get_ydata())[-1] - 9.0) < 1e-6
    return len(line.get_xdata()) if is_position else 0


def test_a_refinement_that_fails_tells_no_change_of_the_cost():
    """Ten metres in 2 s are out of reach: multipliers of no optimum say nothing of the cost."""
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=[Input("u", "", -1, 1)])
    stop = [Bound("x0", 10.0, 10.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    problem = PhasedProblem(Phase(cart, 4, (0.5, 2.0), bounds=stop), time_weight=1.0)
    found = problem.solve([0.0, 0.0], refine=1e-3)
    assert not found.is_success
    assert "none of 3 solves ends with a plan" in found.message
    assert "change of the cost unknown: the plan is not optimal" in str(found.transcription_error())
    assert "would change" not in found.message


def test_figures_show_steps_that_end_off_their_node():
    """A piece from every node, on a group; one line where pieces end at the next node."""

    def drawn(method: str):
        system = satellite()
        problem = OptimalControlProblem(
            system, 6, 0.5, Q=1.0, R=0.1, reference=system.state.identity, method=method
        )
        return problem.solve(np.concatenate([SO3.exp([0.3, -0.5, 0.4]), [0.8, -0.4, 0.6]]))

    found, smooth = drawn("euler"), drawn("rk4")
    pieces = [in_pieces(ax) for ax in found.plot().axes]
    assert [len(lines) for lines in pieces] == [3, 3, 0]
    assert all(np.isnan(line.get_ydata()).sum() == 6 for lines in pieces for line in lines)
    rates = pieces[1][1].get_ydata().reshape(6, -1)[:, :-1]
    assert np.allclose(rates[:, 0], found.x[:-1, 5])
    off = rates[:, -1] - found.x[1:, 5]
    assert np.allclose(off, found.transcription_error().states[:, 4], atol=3e-3)
    assert np.abs(off).max() > 1e-2
    assert not any(in_pieces(ax) for ax in smooth.plot().axes)


def in_pieces(ax):
    """Lines with gaps."""
    return [line for line in ax.get_lines() if np.isnan(line.get_ydata()).any()]


def test_figures_of_phases_show_them_too():
    parts = [
        Phase(HYPER, n, T, Q=1.0, R=1.0, name=name) for n, T, name in ((5, 2.0, "a"), (4, 1.0, "b"))
    ]
    for method, count in (("euler", 1), ("rk4", 0)):
        plan = PhasedProblem(parts, method=method).solve([START])
        pieces = in_pieces(plan.plot().axes[0])
        assert len(pieces) == count
        if pieces:
            values = pieces[0].get_ydata().reshape(9, -1)[:, :-1]
            assert np.allclose(values[:, 0], plan.trajectory.x[:-1, 0])


@pytest.mark.parametrize("shape", ["first", "blocks"])
def test_figures_of_phases_with_inputs_as_states(shape):
    """Inputs that are linear or in blocks are states of the solver, not of the figure."""
    blocks = [2, 3] if shape == "blocks" else None
    phase = Phase(HYPER, 5, 2.0, Q=1.0, R=1.0, blocks=blocks)
    hold = "first" if shape == "first" else "zero"
    plan = PhasedProblem(phase, method="euler", hold=hold).solve([START])
    lines = plan.plot().axes[0].get_lines()
    wanted = np.repeat(plan.trajectory.x[:, 0], 2)[1:-1]  # a step has its own two ends
    shown = [line.get_ydata() for line in lines if len(line.get_ydata()) == len(wanted)]
    assert any(np.allclose(values, wanted) for values in shown)


def test_calls_of_a_loop_and_solvers_of_ones_own_are_not_asked(monkeypatch):
    def refuse(*_):
        raise AssertionError("asked")

    monkeypatch.setitem(DERIVED, "coarseness", refuse)
    problem = hypersensitive(50.0, 20)
    assert InteriorPointSolver(problem).solve([START]).status
    mpc = MPC(pendulum(), 10, 0.1, reference=[1.0, 0.0, 0.0])
    assert np.isfinite(mpc(0.0, AWAY)).all()
    with pytest.raises(AssertionError, match="asked"):
        problem.solve([START])


# -- phases ----------------------------------------------------------------------------------------

CART = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("u", "", -1, 1)])
STOP = Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")


@pytest.mark.parametrize("steps", [5, 21])
def test_a_switch_within_a_step_is_told_and_gets_short_steps(steps):
    """The least time is two seconds, with a switch in the middle: that of the middle step."""
    problem = PhasedProblem(Phase(CART, steps, (0.5, 5.0), bounds=STOP), time_weight=1.0)
    coarse = problem.solve([0.0, 0.0])
    error = coarse.transcription_error()
    assert coarse.cost - 2.0 > 1e-3
    assert error.held_inputs == pytest.approx(coarse.cost - 2.0, rel=0.1)
    assert int(error.inputs_of_steps.argmax()) == steps // 2
    assert error.state < 1e-6
    fine = problem.solve([0.0, 0.0], refine=1e-4)
    assert fine.cost == pytest.approx(2.0, abs=2e-4)
    lengths = fine.problem.phases[0].shares
    times = np.cumsum(lengths) * fine.durations["phase0"]
    assert lengths[np.abs(times - 1.0).argmin()] < 0.5 * lengths.max()


def test_the_hypersensitive_plan_of_a_phase_is_refined_to_a_thousandth():
    there = Bound("x0", END, END, at="terminal")
    problem = PhasedProblem(Phase(HYPER, 40, 50.0, Q=1.0, R=1.0, bounds=[there]))
    found = problem.solve([START], refine=1e-3)
    assert found.is_success
    assert abs(found.cost / least_cost() - 1) < 1e-3
    assert found.problem.phases[0].steps < 200
    shares = found.problem.phases[0].shares
    assert shares.max() > 10 * shares[-1]
    assert "states off by" in found.message


@pytest.mark.parametrize("name", ["brachistochrone", "goddard", "bryson_denham", "catalyst_mixing"])
def test_few_steps_of_known_tasks_are_refined(name):
    task = TASKS[name]
    statement = task.state()
    (phase,) = statement.problem.phases
    coarse = statement.problem.with_phases([replace(phase, steps=16)])
    found = coarse.solve(statement.x0, refine=1e-3)
    assert found.is_success
    assert task.value(found) == pytest.approx(task.optimum, rel=1.5e-3)
    assert "not reached" not in found.message


def test_phases_of_different_lengths_keep_their_nodes_and_their_error():
    """Steps of a given ratio, against IPOPT and against a problem with the same steps."""
    lengths = np.array([1.0, 1.0, 3.0, 3.0, 3.0, 2.0])
    terms = {"Q": 1.0, "R": 0.1, "bounds": STOP}
    one = PhasedProblem(Phase(CART, 6, 3.0, lengths=lengths, **terms))
    found, other = one.solve([0.0, 0.0]), one.solve([0.0, 0.0], solver="ipopt")
    assert np.allclose(np.diff(found.trajectory.t), 3.0 * lengths / lengths.sum())
    assert found.cost == pytest.approx(other.cost, rel=1e-6)
    flat = OptimalControlProblem(
        CART, 6, 3.0 * lengths / 13.0, Q=1.0, R=0.1, terminal=0.0, reference=[0.0, 0.0],
        bounds=STOP,
    )  # fmt: skip
    same = flat.solve([0.0, 0.0])
    assert found.cost == pytest.approx(same.cost, rel=1e-5)  # and next to nothing on inputs
    mine, theirs = found.transcription_error(), same.transcription_error()
    assert mine.cost_change == pytest.approx(theirs.cost_change, rel=1e-4)
    assert mine.held_inputs == pytest.approx(theirs.held_inputs, rel=1e-4)
    with pytest.raises(ValueError, match="lengths must be positive, got 0 for step 1"):
        Phase(CART, 2, 1.0, lengths=[1.0, 0.0])


@pytest.mark.parametrize("quadrature", ["left", "gauss"])
def test_the_change_of_the_cost_of_phases_is_that_of_finer_steps(quadrature):
    """Two phases on different groups, a jump between them, a cost of each; the second is free."""
    fast = System("fast", Rn(1), lambda t, x, u, p: u - x**2, inputs=["u"])
    slow = System("slow", Rn(2), lambda t, x, u, p: [x[1], u - ca.sin(x[0])], inputs=["u"])

    def problem(factor: int, quadrature: str) -> PhasedProblem:
        first = Phase(
            fast, 8 * factor, 1.0, costs=[Cost(lambda t, x, u, p: t * x**2 + u**2)],
            jump=lambda t, x, p: [x, 0.2],
        )  # fmt: skip
        last = Phase(
            slow, 10 * factor, (0.5, 4.0), Q=[1.0, 0.1], R=0.5,
            bounds=[Bound("x0", 0.1, 0.1, at="terminal")], name="last",
        )  # fmt: skip
        return PhasedProblem([first, last], time_weight=0.3, quadrature=quadrature)

    found, exact = problem(1, quadrature).solve([1.5]), problem(16, "gauss").solve([1.5])
    assert found.is_success
    assert exact.is_success
    error = found.transcription_error()
    assert list(error.parts) == ["phase0", "last"]
    assert error.states.shape == (18, 2)
    told = error.cost_change - error.held_inputs
    assert told == pytest.approx(exact.cost - found.cost, rel=0.2)
    assert abs(told) > 1e-4


def test_between_the_nodes_of_phases_violations_have_their_phase():
    point = System("point", Rn(2, ("x", "y"), "m"), lambda t, x, u, p: u, inputs=["vx", "vy"])
    pole = keep_out(lambda t, x, u, p: x[:2], Sphere([2.0, 0.0], 0.5), name="pole")
    ends = [
        [Bound("x", at, at, at="terminal"), Bound("y", 0.2, 0.2, at="terminal")]
        for at in (0.0, 4.0)
    ]
    problem = PhasedProblem(
        [Phase(point, 2, 1.0, R=1.0, bounds=ends[0]),
         Phase(point, 3, 4.0, R=1.0, bounds=[pole, *ends[1]], name="across")],
    )  # fmt: skip
    (told,) = problem.solve([-1.0, 0.2]).transcription_error().violations
    assert told.name == "pole of across"
    assert told.amount == pytest.approx(0.3, abs=1e-6)
    assert told.time == pytest.approx(3.0, abs=1e-6)


@pytest.mark.usually(weight=("price",))
@pytest.mark.parametrize("weight", [10.0, "price"])
def test_soft_bounds_of_phases_keep_their_weight_as_nodes_are_added(weight):
    """Refined, a bound costs the integral of its penalty."""
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "", -5, 5)])
    end, named = Bound("x0", 1.0, 1.0, at="terminal"), isinstance(weight, str)
    cap = Bound("x0", upper=0.3, soft=weight, name="cap")
    stated = PhasedProblem(
        Phase(point, 10, 2.0, Q=1.0, R=1.0, bounds=[cap, end]),
        parameters=[Parameter("price", nominal=10.0)] if named else [],
    )
    # By the trapezoidal rule the last node counts half of what a problem counts.
    N = 1000
    fine = OptimalControlProblem(
        point, N, 2.0 / N, Q=1.0, R=1.0, terminal=0.0, reference=[0.0], quadrature="gauss",
        bounds=[replace(cap, soft=10.0), end],
    ).solve([0.0])  # fmt: skip
    wanted = fine.cost - 10.0 * 2.0 / N / 2 * (0.7 + 0.7**2 / 2)
    alone = OptimalControlProblem(
        point, 10, 0.2, Q=1.0, R=1.0, terminal=0.0, reference=[0.0], bounds=[cap, end],
        parameters=[Parameter("price", nominal=10.0)] if named else [],
    )  # fmt: skip
    for problem in (stated, alone):
        for tolerance in (1e-2, 1e-3):
            found = problem.solve([0.0], refine=tolerance)
            assert found.is_success and "not reached" not in found.message
            assert found.cost == pytest.approx(wanted, rel=tolerance)
            assert len(found.trajectory.t) < 60  # of second order: a hundred of first
        # Ten nodes are few, and the estimate has most of what they miss.
        few = problem.with_arguments(quadrature="gauss") if problem is alone else problem
        coarse = few.solve([0.0])
        missed = coarse.cost - wanted
        assert missed > 0.3 * wanted
        assert -coarse.transcription_error().cost_change == pytest.approx(missed, rel=0.2)


def test_soft_bounds_at_an_end_are_not_refined():
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=["push"])
    soft = Bound("x0", upper=0.3, soft=2.0, at="terminal")
    problem = OptimalControlProblem(point, 10, 0.2, reference=[1.0], bounds=[soft])
    with pytest.raises(ValueError, match="soft bound on x0 at 'terminal' counts one: state a Res"):
        problem.solve([0.0], refine=1e-2)


def test_soft_bounds_of_unequal_steps_count_as_in_a_problem():
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "", -5, 5)])
    bounds = [
        Bound("x0", upper=0.3, soft=2.0, name="cap"), Bound("x0", 1.0, 1.0, at="terminal"),
        Bound("push", upper=0.6, soft=0.7),
    ]  # fmt: skip
    lengths = np.array([1.0, 1.0, 2.0, 4.0, 1.0])
    steps = 2.0 * lengths / lengths.sum()
    found = PhasedProblem(Phase(point, 5, 2.0, R=1.0, bounds=bounds, lengths=lengths)).solve([0.0])
    same = OptimalControlProblem(
        point, 5, steps, Q=0.0, R=1.0, terminal=0.0, reference=[0.0], bounds=bounds
    ).solve([0.0])
    assert found.is_success
    assert found.cost == pytest.approx(same.cost, rel=1e-5)
    assert np.allclose(found.trajectory.u, same.u, atol=1e-3)


def over_a_pole(horizon: int, **options) -> OptimalControlProblem:
    """Four metres along the x axis at 1 m/s, past a disc of 0.5 m in the middle."""
    point = System("point", Rn(2, ("x", "y"), "m"), lambda t, x, u, p: u, inputs=["vx", "vy"])
    ends = [Bound("x", 4.0, 4.0, at="terminal"), Bound("y", 0.2, 0.2, at="terminal")]
    pole = keep_out(lambda t, x, u, p: x[:2], Sphere([2.0, 0.0], 0.5), name="pole")
    return OptimalControlProblem(
        point, horizon, 4.0 / horizon, Q=0.0, R=1.0, terminal=0.0, bounds=[pole, *ends], **options
    )  # fmt: skip


def test_an_obstacle_between_the_nodes_is_told_and_gets_nodes():
    # Nodes at 4/3 and 8/3 m are outside of it; the line between them is 0.2 m from its centre.
    found = over_a_pole(3).solve([0.0, 0.2])
    assert np.allclose(found.x[:, 1], 0.2, atol=1e-6)
    error = found.transcription_error()
    (told,) = error.violations
    assert (told.name, told.node, told.unit) == ("pole", 1, "m")
    assert told.amount == pytest.approx(0.5 - 0.2, abs=1e-6)
    assert told.time == pytest.approx(2.0, abs=1e-6)
    # Of the radius: the clearance has a larger range, up to √(2² + 0.2²) - 0.5.
    assert np.allclose(error.violations_of_steps, [0.0, 0.3 / 0.5, 0.0])
    assert "between the nodes pole falls below its lower bound by 0.3 m at t = 2 s" in str(error)
    fine = over_a_pole(3).solve([0.0, 0.2], refine=3e-3)
    assert fine.is_success
    assert "not reached" not in fine.message
    assert (
        np.linalg.norm(fine.trajectory(np.linspace(0, 4, 2001)).x - [2, 0], axis=1).min()
        > 0.5 - 3e-3 * 2
    )
    # Where the way touches the disc steps are short.
    k = int(np.abs(fine.x[:, 0] - 2.0).argmin())
    assert fine.problem.steps[k] < 0.5 * fine.problem.steps[0]


def test_a_parabola_over_its_limit_is_told_to_its_peak():
    ball = System(
        "ball", Rn(2, ("h", "v"), ["m", "m/s"]), lambda t, x, u, p: [x[1], u - 9.81], inputs=["up"]
    )
    end = Bound("h", 0.0, 0.0, at="terminal", name="end")
    limits = [Bound("h", upper=3.3), end, Bound("up", -9.0, 9.0)]
    problem = OptimalControlProblem(
        ball, 5, 0.4, Q=0.0, R=1.0, terminal=0.0, bounds=limits[:2]
    ).symbolic("h.upper")
    found = problem.solve([0.0, 9.81])
    (told,) = found.transcription_error().violations
    k, a = told.node, found.u[told.node, 0] - 9.81
    h, v = found.x[k]
    assert told.time == pytest.approx(found.t[k] - v / a, abs=1e-6)
    assert told.amount == pytest.approx(h - v**2 / (2 * a) - 3.3, abs=1e-8)
    assert told.amount > 4e-3
    # At a higher limit nothing is violated. Inputs are held, and their limits with them.
    for made, p in ((problem, {"h.upper": 5.0}), (problem.with_arguments(bounds=limits[1:]), None)):
        error = made.solve([0.0, 9.81], p=p).transcription_error()
        assert error.violations == ()
        assert not error.violations_of_steps.any()


def test_a_row_that_depends_on_inputs_counts_until_the_end_of_its_step():
    cart = System(
        "cart", Rn(1), lambda t, x, u, p: u, inputs=["v"],
        quantities={"power": lambda t, x, u, p: x * u},
    )  # fmt: skip
    problem = OptimalControlProblem(
        cart, 4, 0.5, Q=0.0, R=1.0, terminal=0.0,
        bounds=[Bound("power", upper=1.0), Bound("x0", 3.0, 3.0, at="terminal")],
    )  # fmt: skip
    found = problem.solve([1.0])
    (told,) = found.transcription_error().violations
    powers = found.x[1:, 0] * found.u[:, 0] - 1.0
    assert told.amount == pytest.approx(powers.max())
    assert told.time == pytest.approx(found.t[1:][powers.argmax()])


def unequal(**options) -> OptimalControlProblem:
    """A pendulum with a weak motor, its rate limited."""
    terms = {"Q": {"angle": 1.0, "rate": 0.1}, "R": 0.1, "terminal": 5.0}
    terms["bounds"] = [Bound("rate", -0.4, 0.4)]
    return OptimalControlProblem(
        pendulum(), len(UNEQUAL), UNEQUAL, reference=[1.0, 0.0, 0.0], **(terms | options)
    )  # fmt: skip


AWAY = [np.cos(0.7), np.sin(0.7), 0.0]


@pytest.mark.parametrize("quadrature", ["left", "gauss"])
def test_steps_of_different_lengths_end_where_ipopt_does(quadrature):
    problem = unequal(quadrature=quadrature)
    found, other = problem.solve(AWAY), problem.solve(AWAY, solver="ipopt")
    assert found.is_success
    assert other.is_success
    assert found.cost == pytest.approx(other.cost, rel=1e-6)
    assert np.allclose(found.u, other.u, atol=1e-4)
    assert np.allclose(np.diff(found.t), UNEQUAL)
    # Their motion is that of the system, by another integrator.
    t, x = found.t, found.x
    angle = np.arctan2(x[:, 1], x[:, 0])
    for k in (0, 12):
        end = solve_ivp(
            lambda t, y, k=k: [y[1], found.u[k, 0] - np.sin(y[0])], (t[k], t[k + 1]),
            [angle[k], x[k, 2]], rtol=1e-10,
        ).y[:, -1]  # fmt: skip
        assert np.allclose(end, [angle[k + 1], x[k + 1, 2]], atol=1e-6)


@pytest.mark.usually(substeps=(2,))
@pytest.mark.compiled
@pytest.mark.parametrize("substeps", [1, 2])
def test_machine_code_and_numpy_take_steps_of_different_lengths(substeps):
    problem = unequal(substeps=substeps)
    wanted = problem.solve(AWAY, guess="regulators")
    for solver in (InteriorPointSolver(problem).prepare(), in_numpy(problem)):
        found = solver.solve(AWAY, guess="regulators")
        assert found.is_success
        assert np.allclose(found.u, wanted.u, atol=1e-8)


@pytest.mark.compiled
def test_soft_bounds_count_each_node_as_long_as_its_step():
    soft = Bound("rate", -0.2, 0.2, soft=0.2)
    problem = unequal(bounds=[soft], terminal=0.0)
    found = problem.solve(AWAY, tolerance=1e-8)
    excess = np.maximum(np.abs(found.x[:, 2]) - 0.2, 0.0)
    assert excess.max() > 0.05
    # By the definition: the plan without the bound costs so much less, the penalties so much.
    penalty = 0.2 * (np.append(UNEQUAL, UNEQUAL[-1]) * (excess + excess**2 / 2)).sum()
    once = Transcription(unequal(bounds=[], terminal=0.0))
    values = once.values(Nodes(found.t, found.x, found.u), found._setting)
    assert found.cost == pytest.approx(values.cost + penalty, rel=1e-7)
    wanted = problem.solve(AWAY, solver="ipopt", tolerance=1e-8)
    assert found.cost == pytest.approx(wanted.cost, rel=1e-7)
    assert np.allclose(found.u, wanted.u, atol=1e-4)
    for solver in (InteriorPointSolver(problem).prepare(), in_numpy(problem)):
        again = solver.solve(AWAY, tolerance=1e-8)
        assert again.is_success
        assert np.allclose(again.u, found.u, atol=1e-6)
    # Steps in halves leave the plan where it is, to their order.
    halves = unequal(bounds=[soft], terminal=0.0, quadrature="gauss").with_arguments(
        horizon=48, dt=UNEQUAL.repeat(2) / 2
    )
    assert halves.solve(AWAY).cost == pytest.approx(
        unequal(bounds=[soft], terminal=0.0, quadrature="gauss").solve(AWAY).cost, rel=0.05
    )


def test_equal_steps_are_one_number():
    def solved(dt):
        made = OptimalControlProblem(pendulum(), 10, dt, reference=[1.0, 0.0, 0.0])
        return made, made.solve(AWAY)

    (one, found), (other, same) = solved(0.1), solved(np.full(10, 0.1))
    assert one.has_equal_steps
    assert other.has_equal_steps
    assert np.array_equal(found.u, same.u)
    again = unequal().with_arguments(R=1.0)
    assert np.array_equal(again.steps, UNEQUAL)
    assert unequal().grid != unequal().with_arguments(dt=UNEQUAL[::-1]).grid


def test_grids_that_mean_nothing_are_refused_by_name():
    with pytest.raises(ValueError, match="rates of held controls need steps of one length"):
        MPC(pendulum(), 24, UNEQUAL, rates=Rates())
    with pytest.raises(ValueError, match="dt has 24 lengths for 10 steps"):
        unequal().with_arguments(horizon=10)
    with pytest.raises(ValueError, match="dt must be positive, got 0 s for step 3"):
        unequal().with_arguments(dt=np.where(np.arange(24) == 3, 0.0, UNEQUAL))
    with pytest.raises(UnknownNameError, match="unknown quadrature 'simpson'; .* left, gauss, c"):
        unequal(quadrature="simpson")
    counter = System("counter", Rn(1), lambda t, x, u, p: u, inputs=[Input("u")], dt=0.1)
    for options in ({"quadrature": "gauss"}, {"dt": UNEQUAL}):
        with pytest.raises(ValueError, match="counter"):
            OptimalControlProblem(counter, 24, **({"dt": None} | options))
    with pytest.raises(ValueError, match="counter is discrete, its steps are exact"):
        OptimalControlProblem(counter, 3, reference=[0.0]).solve([1.0], refine=1e-3)
    with pytest.raises(ValueError, match="refine must be a share between 0 and 1, got 2"):
        unequal().solve(AWAY, refine=2.0)
    gate = Bound("rate", 0.0, 0.0, at=range(3, 4))
    with pytest.raises(ValueError, match="refine moves nodes, and the bound on rate holds at nod"):
        unequal().with_arguments(bounds=[gate]).solve(AWAY, refine=1e-3)


def test_what_varying_inputs_save_is_the_same_however_the_effort_is_stated():
    """As R, a residual or a cost, which counted as none; against plans of finer steps."""
    system = System("fast", Rn(1), lambda t, x, u, p: u - x**2, inputs=["u"])
    late, none = Cost(lambda t, x, u, p: t * x**2), 1e-9
    square, own = Cost(lambda t, x, u, p: u**2), Residual(lambda t, x, u, p: u, 2.0)
    saved = []
    for terms in ({"R": 2.0}, {"R": none, "residuals": [own]}, {"R": none, "more": [square]}):
        more = terms.pop("more", [])

        def problem(steps: int, terms=terms, more=more):
            return OptimalControlProblem(
                system, steps, 1 / steps, Q=0.0, terminal=0.0, quadrature="gauss",
                costs=[late, *more], **terms,
            )  # fmt: skip

        found = problem(32).solve([1.5])
        saved.append(found.transcription_error().held_inputs)
    better = found.cost - problem(256).solve([1.5]).cost
    assert saved[0] == pytest.approx(better, rel=0.05)
    np.testing.assert_allclose(saved, saved[0], rtol=1e-4)
