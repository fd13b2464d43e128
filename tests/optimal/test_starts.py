"""Solves from several starts: the cheapest plan, and where the others ended."""

from threading import Barrier

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
    Sphere,
    keep_out,
)
from lgcontrol.optimal.kernel import _planner, _several
from lgcontrol.optimal.kernel._several import _RandomGuesses
from lgcontrol.systems import Input, System

from ..benchmarks._unseen_vehicles import race_line
from .test_interior_point import in_numpy
from .user_tasks import swing_up

TASK = swing_up()


def slide(**options):
    """A mass with its goal on a hill between two valleys at ±1, that of -1 the deeper one."""
    mass = System("mass", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -4, 4)])
    return OptimalControlProblem(
        mass, 30, 0.1, Q=[0, 0.1], R=0.01, reference=[0.0, 0.0],
        residuals=[Residual(lambda t, x, u, p: ca.vertcat(x[0] ** 2 - 1, 0.4 * (x[0] + 1)), 10.0)],
        **options,
    )  # fmt: skip


def test_a_swing_up_from_several_starts_is_cheaper_than_from_one():
    one, found = TASK.problem.solve(TASK.x0), TASK.problem.solve(TASK.x0, starts=8)
    assert found.is_success
    assert found.cost < 0.8 * one.cost
    costs = [entry.cost for entry in found.optima]
    assert costs == sorted(costs)
    assert costs[0] == found.cost
    assert one.cost in costs  # the first start is that of a plain solve
    assert sum(entry.count for entry in found.optima) == 8
    assert "8 starts: cost" in found.message
    for entry in found.optima[:2]:  # optima: solves from them stay there
        assert TASK.problem.solve(TASK.x0, guess=entry.solution).cost == pytest.approx(entry.cost)


def test_a_pillar_between_start_and_goal_is_passed_at_its_side():
    """The default guess stands still: what leads around on both sides helps alike."""
    push = [Input("along", "N", -1, 1), Input("across", "N", -1, 1)]
    point = System("point", Rn(4), lambda t, x, u, p: ca.vertcat(x[2:], u), inputs=push)
    pillar = Bound(lambda t, x, u, p: (x[0] - 2) ** 2 + x[1] ** 2, lower=0.64, name="pillar")
    goal = Bound(lambda t, x, u, p: x - ca.DM([4, 0, 0, 0]), 0, 0, at="terminal", name="goal")
    problem = OptimalControlProblem(point, 20, 0.5, Q=0, R=1.0, terminal=0, bounds=[pillar, goal])
    phases = PhasedProblem(Phase(point, 20, 10.0, R=1.0, bounds=[pillar, goal]))
    assert InteriorPointSolver(problem).solve(np.zeros(4)).status == "infeasible"  # one search
    for found in (problem.solve(np.zeros(4)), phases.solve(np.zeros(4)).solution):
        assert found.is_success and "random change" in found.message
        x = found.x[:, :4]
        assert (np.square(x[:, :2] - [2, 0]).sum(axis=1) >= 0.64 - 1e-6).all()
        np.testing.assert_allclose(x[-1], [4, 0, 0, 0], atol=1e-6)


def test_further_searches_that_lead_to_no_plan_are_told():
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=[Input("u", "", -1, 1)])
    far = Bound("x0", lower=3.0, at="terminal")
    found = OptimalControlProblem(point, 4, 0.5, reference=[0.0], bounds=[far]).solve([0.0])
    assert found.status == "infeasible"
    told = "nor was a plan found from random changes of the guess (4 infeasible)"
    assert found.message.endswith(told)


@pytest.mark.parametrize(("metre", "second"), [(1e3, 1.0), (1.0, 1e3)])
def test_a_car_at_rest_finds_a_way_past_discs_in_any_unit(metre, second):
    """Its guess stands still: heading and speed have no size there, and wheels do not turn it."""
    most = [Input("push", "", -3 * metre / second**2, 3 * metre / second**2),
            Input("steer", "rad", -0.5, 0.5)]  # fmt: skip
    car = System(
        "car", Rn(4, ("x", "y", "heading", "speed")),
        lambda t, x, u, p: [x[3] * ca.cos(x[2]), x[3] * ca.sin(x[2]),
                            x[3] * ca.tan(u[1]) / (2.5 * metre), u[0]], inputs=most,
    )  # fmt: skip
    end = np.array([9.118 * metre, 3.604 * metre, 0.0, 0.0])
    speed = 3 * metre / second
    bounds = [Bound(lambda t, x, u, p: x, end, end, at="terminal"), Bound("speed", -speed, speed)]
    for at, radius in (([7.51, 3.057], 1.245), ([4.51, 1.932], 1.178), ([3.997, 1.708], 0.773)):
        away = keep_out(lambda t, x, u, p: x[:2], Sphere(np.array(at) * metre, radius * metre))
        bounds.append(away)
    found = OptimalControlProblem(
        car, 40, 0.22 * second, Q=0, R=np.array([0.1 * second**4 / metre**2, 1.0]) / second,
        reference=end, bounds=bounds,
    ).solve(np.zeros(4))  # fmt: skip
    assert found.is_success, found.message


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
@pytest.mark.parametrize(("metre", "second"), [(1e3, 1.0), (1e-3, 60.0)])
def test_a_lane_change_from_rest_to_rest_takes_as_many_iterations_in_any_unit(makes, metre, second):
    """The way across gives the heading its size, and the way ahead gives it to the speed."""

    def plan(metre: float, second: float):
        push = Input("push", "", -3 * metre / second**2, 3 * metre / second**2)
        car = System(
            "car", Rn(4, ("x", "y", "heading", "speed")),
            lambda t, x, u, p: [x[3] * ca.cos(x[2]), x[3] * ca.sin(x[2]),
                                x[3] * u[1] / (2.5 * metre), u[0]],
            inputs=[push, Input("steer", "rad", -0.5, 0.5)],
        )  # fmt: skip
        end = np.array([15 * metre, 3.5 * metre, 0.0, 0.0])
        weights = np.array([1 / metre**2, 1 / metre**2, 0.1, 0.1 * second**2 / metre**2])
        problem = OptimalControlProblem(
            car, 40, 0.15 * second, Q=weights / second, reference=end,
            R=np.array([0.1 * second**4 / metre**2, 1.0]) / second,
            bounds=[Bound(lambda t, x, u, p: x, end, end, at="terminal")],
        )  # fmt: skip
        return makes(problem).solve(np.zeros(4), tolerance=1e-4)

    usual, found = plan(1.0, 1.0), plan(metre, second)
    assert usual.is_success and found.is_success
    assert abs(len(found.iterations) - len(usual.iterations)) <= 1
    assert found.cost == pytest.approx(usual.cost, rel=1e-5)


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_sizes_of_states_at_their_reference(makes):
    """2 m along in 5 s, none across: speeds of 1.2 m/s, but 0.2 N add 1 m/s to a mass of 1 kg."""
    inputs = [Input("along", "N", -1, 1), Input("across", "N", -0.2, 0.2)]
    state = Rn(4, units=("m", "m", "m/s", "m/s"))
    body = System("body", state, lambda t, x, u, p: [x[2], x[3], u[0], u[1]], inputs=inputs)
    end = np.array([2.0, 0.0, 0.0, 0.0])
    bounds = [Bound(lambda t, x, u, p: x, end, end, at="terminal")]
    problem = OptimalControlProblem(body, 20, 0.25, Q=0, reference=end, bounds=bounds)
    scales = makes(problem).solve(np.zeros(4)).plan["scales"][0]
    np.testing.assert_allclose(scales[4:8], [2, 2, 1.2, 1], rtol=1e-12)


def test_a_race_line_is_found_from_the_state_that_stays():
    """Inputs of zero leave the road, whose coordinates are singular beside it."""
    task = race_line()
    lost = task.problem.solve(task.x0, max_iterations=20)  # one search
    assert lost.status == "iteration limit" and 'guess="rest"' not in lost.message
    found = task.problem.solve(task.x0)
    assert found.status == "converged"
    assert 'the first search led to no plan, one from guess="rest" did' in found.message
    assert found.cost == pytest.approx(16.1376, rel=1e-4)


def test_no_search_follows_a_callback_that_ends_one():
    point = System("point", Rn(1), lambda t, x, u, p: u, inputs=[Input("u", "", -1, 1)])
    far = Bound("x0", lower=3.0, at="terminal")
    problem, numbers = OptimalControlProblem(point, 4, 0.5, reference=[0.0], bounds=[far]), []

    def is_second(entry):
        numbers.append(entry.number)
        return numbers.count(0) == 2

    found = problem.solve([0.0], callback=is_second)
    assert found.status == "infeasible"
    assert found.message.endswith("random changes of the guess (1 stopped)")
    assert numbers[-1] == 0


def test_starts_are_the_same_in_every_run_and_more_of_them_begin_alike():
    few, again, more = (TASK.problem.solve(TASK.x0, starts=k) for k in (3, 3, 5))
    assert np.array_equal(few.x, again.x)
    assert {entry.cost for entry in few.optima} <= {entry.cost for entry in more.optima}


@pytest.mark.parametrize("options", [{}, {"hold": "first"}, {"blocks": [2, 3, 5, 5, 5, 5, 5]}])
def test_both_valleys_are_found(options):
    found = slide(**options).solve([0.3, 0.0], starts=12)
    ends = {round(entry.solution.x[-1, 0]) for entry in found.optima}
    assert ends == {-1, 1}  # with long blocks a third optimum visits one before the other
    assert found.x[-1, 0] == pytest.approx(-1, abs=0.1)
    assert {entry.solution.x.shape[1] for entry in found.optima} == {2}
    if not options:  # a figure has both over each other
        figure = found.plot()
        told = [entry.get_text() for entry in figure.legends[0].get_texts()]
        assert told[0].startswith(f"cost {found.cost:.6g}")
        assert len(told) == len(found.optima)
        first = figure.axes[0].lines
        assert all(
            np.array_equal(line.get_ydata(), entry.solution.x[:, 0])
            for line, entry in zip(first, found.optima, strict=True)
        )


def test_ipopt_takes_the_same_starts():
    ours, ipopt = (
        slide().solve([0.3, 0.0], starts=4, solver=solver) for solver in ("interior_point", "ipopt")
    )
    assert ipopt.cost == pytest.approx(ours.cost, rel=1e-6)
    assert "4 starts: cost" in ipopt.message


def test_phases_start_from_other_durations_and_go_both_ways():
    inputs = [Input("steer", "rad", -0.6, 0.6), Input("push", "m/s²", -2.0, 2.0)]
    car = System(
        "car", Product(pose=SE2, speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(u[0]) / 2.5, u[1]), inputs=inputs,
    )  # fmt: skip
    pole = keep_out(lambda t, x, u, p: x[:2], Sphere([4.0, 0.1], 1.0), radius=0.5)
    ends = {"pose.x": 8.0, "pose.y": 0.0, "speed": 0.0}
    stop = [Bound(name, value, value, at="terminal") for name, value in ends.items()]
    phase = Phase(car, 20, (0.2, 60.0), R={"steer": 0.1, "push": 0.01}, bounds=[pole, *stop])
    problem = PhasedProblem(phase, time_weight=1.0)
    found = problem.solve([0.0, 0.0, 1.0, 0.0, 0.0], starts=4)
    assert found.is_success
    assert found.cost == found.optima[0].cost
    middle = [entry.solution.trajectory.x[10, 1] for entry in found.optima]
    assert min(middle) < 0 < max(middle)  # right of the pole and left of it
    assert found.trajectory.x[10, 1] < 0  # which is shorter
    assert found.durations["phase0"] == found.optima[0].solution.durations["phase0"]


def test_time_and_callbacks_end_them():
    found = TASK.problem.solve(TASK.x0, starts=4, time_limit=0.0)
    assert "no time for 3" in found.message
    seen = []
    found = TASK.problem.solve(TASK.x0, starts=4, callback=lambda entry: seen.append(entry) or True)
    assert len(seen) == 1
    assert not found.optima


def test_a_failing_guess_is_no_second_start_from_elsewhere():
    solver = InteriorPointSolver(TASK.problem)
    found = solver.problem.solve(TASK.x0, starts=3, solver=solver, max_iterations=3)
    assert found.optima == ()
    assert "3 without a plan" in found.message
    assert len(found.iterations) == 4


def test_starts_are_counted():
    with pytest.raises(ValueError, match="starts"):
        TASK.problem.solve(TASK.x0, starts=0)


def test_random_durations_are_within_their_limits_whatever_the_start():
    car = System(
        "car", Product(pose=SE2, speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, 0, u), inputs=[Input("push", "m/s²", -2.0, 2.0)],
    )  # fmt: skip
    stop = [Bound(name, 0.0, 0.0, at="terminal") for name in ("pose.x", "speed")]
    problem = PhasedProblem(Phase(car, 5, (2.0, 12.0), R=0.1, bounds=stop), time_weight=1.0).problem
    solver = InteriorPointSolver(problem)
    for speed in (0.0, 5.0):
        x0 = [0, 0, 1, 0, speed, 4.0]
        first = solver.solve(x0, max_iterations=0)
        changed = _RandomGuesses(problem, x0, first, {})
        drawn = [changed(k).x[0, -1] for k in range(20)]
        assert 2.0 <= min(drawn) < 3.0
        assert 9.0 < max(drawn) <= 12.0


def test_threads_that_end_at_one_time_lose_no_plan(monkeypatch):
    class Meeting(_several.Progress):
        def tell(self, how_far):
            together.wait(10)

    together = Barrier(2)
    monkeypatch.setattr(_several, "thread_count", lambda: 2)
    monkeypatch.setattr(_several, "Progress", Meeting)
    ended = TASK.problem.solve(TASK.x0, starts=3)
    monkeypatch.undo()
    alone = TASK.problem.solve(TASK.x0, starts=3, callback=lambda entry: None)
    assert {one.cost for one in ended.optima} == {one.cost for one in alone.optima}
    assert len(ended.optima) == 3


def test_ways_that_differ_across_a_long_one_are_two_optima_and_a_plan_of_no_cost_is_one():
    car = System(
        "car", Rn(2, ("x", "y")), lambda t, x, u, p: u,
        inputs=[Input("vx", "m/s", -20, 20), Input("vy", "m/s", -20, 20)],
    )  # fmt: skip
    pole = keep_out(lambda t, x, u, p: x, Sphere([50.0, 0.0], 1.0))
    options = {"Q": 0.0, "reference": [100.0, 0.0]}
    there = [Bound("x", 100.0, 100.0, at="terminal"), Bound("y", 0.0, 0.0, at="terminal")]
    found = OptimalControlProblem(car, 20, 0.5, bounds=[pole, *there], **options).solve(
        [0.0, 0.0], starts=8
    )
    assert {float(np.sign(one.solution.x[10, 1])) for one in found.optima} == {-1.0, 1.0}
    stays = OptimalControlProblem(car, 5, 0.5, reference=[0.0, 0.0]).solve([0.0, 0.0], starts=4)
    assert [one.count for one in stays.optima] == [4]


def test_solvers_of_threads_build_nothing(monkeypatch):
    monkeypatch.setattr(_planner, "iterations_of_a_build", lambda *given: 5.0)
    solver = InteriorPointSolver(slide())
    twin = solver._twin()
    solver.is_prepared = twin.is_prepared = False
    solver._build = twin._build = None
    assert solver._iterations_of_a_build() == 5.0
    assert twin._iterations_of_a_build() == np.inf


def test_cheaper_plans_that_jump_a_post_come_behind_those_that_do_not():
    post = keep_out(lambda t, x, u, p: ca.vertcat(x[0], 0), Sphere([-0.3, 0.0], 0.05), name="post")
    found = slide(bounds=[post]).solve([0.3, 0.0], starts=12)
    assert "coarse" not in found.message
    assert found.cost == found.optima[0].cost
    cheaper = [one for one in found.optima if one.cost < found.cost - 0.01]
    assert found.optima[-len(cheaper) :] == tuple(cheaper)
    count = sum(one.count for one in cheaper)
    assert f"{count} cheaper on steps that are too long, from {cheaper[0].cost:.6g} on" in (
        found.message
    )
    for one in cheaper:
        assert one.solution.transcription_error().violations[0].amount > 0.01


def test_starts_without_a_plan_are_told_with_one_of_longer_durations(monkeypatch):
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("u", "", -1, 1)])
    stop = [Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")]
    problem = PhasedProblem(Phase(cart, 10, (0.1, 20), bounds=stop), time_weight=1)
    solved = OptimalControlProblem._solved

    def few(self, start, **options):
        return solved(
            self, start, **options, **{"max_iterations": 1} if "starts" in options else {}
        )

    monkeypatch.setattr(OptimalControlProblem, "_solved", few)
    found = problem.solve([0.0, 0.0], starts=2)
    assert found.is_success
    assert "2 starts: 2 without a plan (2 iteration limit)" in found.message
    assert [(one.cost, one.count) for one in found.optima] == [(found.cost, 1)]
    assert found.optima[0].solution.durations == found.durations
