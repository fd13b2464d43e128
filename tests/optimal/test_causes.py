"""Messages of solves that do not converge: each names its cause, and its advice solves the task."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
    Sphere,
    keep_out,
)
from lgcontrol.optimal.kernel import _results
from lgcontrol.systems import Input, Parameter, System, Trajectory


def cart(limit=1.0):
    return System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u[0]),
        inputs=[Input("push", "N", -limit, limit)],
    )  # fmt: skip


def lander():
    return System(
        "lander", Rn(6), lambda t, x, u, p: ca.vertcat(x[3:], u - ca.DM([0, 0, 9.81])),
        inputs=["east", "north", "up"],
    )  # fmt: skip


def bike(guard=0.0):
    """A bicycle that turns by a lateral acceleration: yaw rate = acceleration / speed."""

    def field(t, x, u, p):
        over = x[2] / (x[2] ** 2 + guard)
        return ca.vertcat(x[2] * ca.cos(x[3]), x[2] * ca.sin(x[3]), u[0], u[1] * over)

    state = Rn(4, ("x", "y", "speed", "yaw"))
    return System("bike", state, field, inputs=[Input("a", "", -1, 1), Input("side", "", -1, 1)])


def short(longest):
    end = Bound(lambda t, x, u, p: x - ca.DM([10, 0]), 0, 0, at="terminal", name="end")
    phase = Phase(cart(), 20, (0.2, longest), bounds=[end])
    return PhasedProblem(phase, time_weight=1).solve([0, 0])


def ride(x0, guard=0.0, most=500, **more):
    near = Residual(lambda t, x, u, p: x[:2] - ca.DM([3, 1]), 1.0, terminal=10.0, name="near")
    problem = OptimalControlProblem(bike(guard), 40, 0.1, Q=0, R=0.1, residuals=[near], **more)
    return problem.solve(x0, max_iterations=most)


def stop(guard):
    """With a guarded divisor it ends in 13 iterations, without one in 94."""
    rest = Bound("speed", 0, 0, at="terminal")
    return ride([0.0, 0.0, 1.0, 0.0], guard, most=50, bounds=[rest])


def far(distance):
    cost = Cost(distance, name="distance")
    problem = OptimalControlProblem(cart(2.0), 60, 0.1, Q=0, R=1e-4, costs=[cost])
    return problem.solve([1.0, 0.0])


def land(end):
    rest = Bound(end, 0, 0, at="terminal", name="landed")
    problem = OptimalControlProblem(lander(), 30, 1 / 3, Q=0, R=1.0, bounds=[rest])
    return problem.solve([100.0, 50.0, 150.0, -20.0, 5.0, -10.0])


def still(*rows):
    """A cart beside something that no input moves."""
    pair = System("pair", Rn(3), lambda t, x, u, p: ca.vertcat(x[1], u, 0 * x[2]), inputs=["push"])
    end = Bound(
        lambda t, x, u, p: (x - ca.DM([1, 0, 0.5]))[list(rows)], 0, 0, at="terminal", name="end"
    )
    problem = OptimalControlProblem(pair, 30, 0.1, Q=0, R=1, bounds=[end])
    return problem.solve([0.0, 0.0, 0.0])


def angle(*rows):
    """A position told by its sine and its cosine, which contradict each other a little."""
    aim = np.array([np.sin(1.0), np.cos(1.0) + 1e-4])[list(rows)]
    end = Bound(
        lambda t, x, u, p: ca.vertcat(ca.sin(x[0]), ca.cos(x[0]))[list(rows)], aim, aim,
        at="terminal", name="end",
    )  # fmt: skip
    problem = OptimalControlProblem(cart(5.0), 30, 0.1, Q=0, R=1, bounds=[end])
    return problem.solve([0.0, 0.0])


def fade(**at):
    """The largest push falls to zero before the end, where its square is too large by 0.005."""
    cone = Bound(lambda t, x, u, p: u[0] ** 2 - (3 - t) ** 2, upper=-0.005, name="fades", **at)
    problem = OptimalControlProblem(
        cart(), 30, 0.1, Q=1.0, R=0.1, bounds=[cone], hold="first", reference=[9, 0]
    )
    return problem.solve([0.0, 0.0])


def behind(x0, **soft):
    wall = [Bound("x0", 0.0, **soft), Bound(lambda t, x, u, p: x[0], -0.5, name="gap", **soft)]
    problem = OptimalControlProblem(cart(), 20, 0.1, Q=1, R=0.1, bounds=wall, reference=[1, 0])
    return problem.solve(x0)


def hurry(method):
    """A servo of 0.3 ms in steps that are a hundred times as long.

    Its speed is off the command at first. Without that rounding decides whether speeds grow.
    """
    servo = System(
        "servo", Rn(2, ("angle", "speed")), lambda t, x, u, p: [x[1], 3000 * (u - x[1])],
        inputs=[Input("command", "", -1, 1)],
    )  # fmt: skip
    there = [Bound("angle", 1.0, 1.0, at="terminal")]
    effort = Cost(lambda t, x, u, p: u**2, 1.0)
    phase = Phase(servo, 20, (1.0, 10.0), bounds=there, costs=[effort])
    return PhasedProblem(phase, time_weight=0.1, method=method).solve([0.0, 0.3])


def long(steps):
    """Down to rest, and up at the end, in 100 s: steps of 10 s are far too long."""
    decay = System("decay", Rn(1), lambda t, x, u, p: -(x**3) + u, inputs=["u"])
    there = [Bound("x0", 1.5, 1.5, at="terminal")]
    cost = [Cost(lambda t, x, u, p: x**2 + u**2)]
    problem = OptimalControlProblem(
        decay, steps, 100 / steps, Q=0, R=1e-6, costs=cost, bounds=there, reference=[0.0]
    )
    return problem.solve([1.0])


def drain(end, make):
    """A tank whose outflow is the root of its level, which has none below the bottom."""
    tank = System.from_dae(
        "tank", Rn(1, ("level",)), lambda t, x, z, u, p: u - z, lambda t, x, z, u, p: z**2 - x,
        [Parameter("flow", "", 0.5)], inputs=[Input("feed", "", -1, 1)],
    )  # fmt: skip
    there = Bound("level", end, end, at="terminal")
    if make is PhasedProblem:
        return PhasedProblem(Phase(tank, 5, (0.2, 3.0), bounds=[there]), time_weight=1).solve([0.5])
    return OptimalControlProblem(tank, 5, 0.3, Q=0, R=1, bounds=[there]).solve([0.5])


def pass_by(least):
    """On to 1 m at 0.5 m/s or more, which takes 2 s or less."""
    bounds = [Bound("x1", lower=0.5), Bound("x0", 1, 1, at="terminal")]
    phase = Phase(cart(), 5, (least, 5.0), bounds=bounds)
    return PhasedProblem(phase, time_weight=1).solve([0.0, 0.6])


CAUSES = {
    "a fold": (
        lambda: drain(-0.2, OptimalControlProblem), lambda: drain(0.1, OptimalControlProblem),
        ["next to node ", ", at level = -0.0", "entry 0 of g is"],
    ),
    "a fold in a phase": (
        lambda: drain(-0.2, PhasedProblem), lambda: drain(0.1, PhasedProblem),
        ["phase 'phase0', next to t = ", ", at level = -0.0", "entry 0 of g is"],
    ),
    "a duration at its least": (
        lambda: pass_by(3.0), lambda: pass_by(1.0),
        ["give one of them soft=, allow a shorter time, or", "duration.phase0 (lower, 3)"],
    ),
    "a duration at its limit": (
        lambda: short(1.0), lambda: short(10.0),
        ["at their limits: push, duration.phase0 (upper, 1)"],
    ),
    "a division by zero": (
        lambda: ride([0.0] * 4),
        lambda: ride([0.0, 0.0, 0.5, 0.0], bounds=[Bound("speed", 0.3)]),
        ["the rate of yaw in bike is not finite at node 0 with speed = 0", "bound this away"],
    ),
    "a division by zero, guarded": (
        lambda: ride([0.0] * 4), lambda: ride([0.0] * 4, 1e-2), ["with a guard"]
    ),
    "a division by next to nothing": (
        lambda: stop(0.0), lambda: stop(1e-2),
        ["the motion of bike", "not differentiable next to node", "divisors away from zero"],
    ),
    "steps that are too long for a stiff motion": (
        lambda: hurry("rk4"), lambda: hurry("radau_iia5"),
        ["the steps are too long for the motion of servo", "multiplies changes of speed by",
         'method="radau_iia5"'],
    ),
    "long steps whose violation is at its least": (
        lambda: long(10), lambda: long(400),
        ["the steps are too long for the motion of decay", "moves x0 otherwise than 4 in its"],
    ),
    "a norm": (
        lambda: far(lambda t, x, u, p: ca.norm_2(x)),
        lambda: far(lambda t, x, u, p: ca.sqrt(ca.sumsqr(x) + 1e-4)),
        ["the cost 'distance' is not differentiable", "sqrt(a² + 1e-4)"],
    ),
    "a size": (
        lambda: far(lambda t, x, u, p: ca.fabs(x[0]) + ca.fabs(u[0])),
        lambda: far(lambda t, x, u, p: ca.sqrt(x[0] ** 2 + 1e-4) + ca.sqrt(u[0] ** 2 + 1e-4)),
        ["the cost 'distance' is not differentiable", "sqrt(a² + 1e-4)"],
    ),
    "a square that is to be zero": (
        lambda: land(lambda t, x, u, p: ca.sumsqr(x)), lambda: land(lambda t, x, u, p: x),
        ["landed is at its limit at node 30, where its gradient vanishes", "state each part"],
    ),
    "what no input changes": (
        lambda: still(0, 1, 2), lambda: still(0, 1),
        ["no input changes end[2] at node 30", "leave this bound out"],
    ),
    "a cone of linear inputs with its apex at the end": (
        lambda: fade(), lambda: fade(at=range(0, 30)),
        ["fades is at its limit at node 30, where its gradient vanishes", "at=range(0, N)"],
    ),
    "a start behind a wall": (
        lambda: behind([-1.0, 0.0]), lambda: behind([0.5, 0.0]),
        ["the start itself violates x0 by 1, gap by 0.5: start within, or give soft="],
    ),
    "a start behind a wall that is soft": (
        lambda: behind([-1.0, 0.0]), lambda: behind([-1.0, 0.0], soft=100.0), ["or give soft="]
    ),
    "bounds that depend on each other": (
        lambda: angle(0, 1), lambda: angle(0),
        ["bounds depend on each other", "end[0] at node 30", "leave out those"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_a_message_names_the_cause_and_its_advice_solves_the_task(name):
    fails, followed, words = CAUSES[name]
    found = fails()
    assert not found.status.is_success
    for text in words:
        assert text in found.message
    assert "start elsewhere, guess=" not in found.message
    assert followed().status == "converged"


def test_what_steps_that_are_too_long_prove_is_no_promise():
    """The violation is at its least, of a task that more steps solve."""
    found = long(10)
    assert found.status == "stalled"  # not "infeasible"
    assert found.defect < 1e-9 and found.kkt < 1e-6  # though its solve has ended


def test_a_fed_batch_says_that_its_steps_are_too_long(monkeypatch):
    """A fermenter eats the last sugar in a minute; steps of explicit methods are an hour.

    The message is that of a guess that has no sugar from three hours on: rounding decides whether a
    whole solve converges.
    """
    monkeypatch.setattr(_results, "SEVERAL", -1)

    def field(t, x, u, p):
        growth = 0.4 * x[1] / (0.05 + x[1]) * x[0]
        thin = u / x[2]
        return [growth - thin * x[0], -2 * growth + thin * (200 - x[1]), u]

    names = Rn(3, ("cells", "sugar", "volume"))
    reactor = System("reactor", names, field, inputs=[Input("feed", "l/h", 0, 0.5)])
    made = Cost(lambda t, x, u, p: x[0] * x[2], None, -1.0)
    phase = Phase(reactor, 10, 10.0, costs=[made], bounds=[Bound("volume", upper=10)])
    t = np.arange(11.0)
    x = np.column_stack([1 + 2.9 * t, np.where(t < 3, 5 - 0.5 * t, 0.01), 5 + 0.4 * t])
    guess = Trajectory(reactor.state, t, x, np.full((10, 1), 0.4))
    found = PhasedProblem(phase).solve([1.0, 5.0, 5.0], guess=guess, max_iterations=0)
    assert "the steps are too long for the motion of reactor: that from t = " in found.message


def test_a_tolerance_below_rounding_ends_where_rounding_ends():
    problem = OptimalControlProblem(lander(), 30, 1 / 3, Q=1.0, R=1.0, reference=[0.0] * 6)
    x0 = [100.0, 50.0, 150.0, -20.0, 5.0, -10.0]
    found = InteriorPointSolver(problem).solve(x0, tolerance=1e-16)
    assert found.status == "acceptable" and "rounding" in found.message
    reached = float(found.message.partition("tolerance=")[2].split()[0])
    assert found.kkt < reached < 100 * found.kkt
    assert InteriorPointSolver(problem).solve(x0, tolerance=reached).status == "converged"


def test_an_obstacle_over_the_goal_is_named():
    """The goal is within 0.2 m of 3 m, and the wall ends at 2 m."""
    goal = Bound(lambda t, x, u, p: (x[0] - 3) ** 2, upper=0.2**2, at="terminal", name="goal")
    bounds = [goal, Bound("x0", upper=2.0, name="wall")]
    found = OptimalControlProblem(cart(), 20, 0.2, Q=0, bounds=bounds).solve([0, 0])
    assert found.status == "infeasible"
    assert "goal exceeds its bound by 0.96" in found.message
    assert "; in conflict with the bound on wall; nor was a plan found from " in found.message


def drives_to(place, *bounds, off=SE2.minus):
    """A body that drives at most 9 m to a pose, or to what is zero there, within bounds."""
    goal = SE2.exp([place, 0.0, 0.0])
    end = Bound(lambda t, x, u, p: off(x, goal), 0, 0, at="terminal", name="goal")
    inputs = [Input(name, "m/s", -1, 1) for name in ("ahead", "aside", "turn")]
    body = System("body", SE2, lambda t, x, u, p: u, inputs=inputs)
    problem = OptimalControlProblem(body, 20, 0.3, Q=0, R=1.0, bounds=[end, *bounds])
    return problem.solve([0.0, 0.1, 1.0, 0.0])


@pytest.mark.parametrize("middle", [[3.0, 0.3], [3.0, 0.0]])
def test_an_obstacle_at_a_goal_that_is_one_pose_is_named_with_it(middle):
    """Also in its very middle, where its gradient vanishes."""
    post = keep_out(lambda t, x, u, p: x[:2], Sphere(middle, 0.5), name="post")
    found = drives_to(3.0, post)
    assert not found.is_success
    assert "no state was found at node 20 that satisfies post and goal[" in found.message
    assert "move one of them, leave one out, or give it soft=" in found.message
    assert "allow more time" not in found.message and "in conflict" not in found.message


def test_only_bounds_that_no_state_satisfies_are_said_to_contradict():
    """A wall before the goal does, and not a goal too far away, or one with a way round."""
    wall = Bound(lambda t, x, u, p: x[0], upper=2.0, name="wall")
    told = "satisfies wall and goal[0]: if wall alone is left out, it is beyond its limit by 1;"
    assert told in drives_to(3.0, wall).message

    def ahead(x, goal):
        return ca.exp(x[0] - goal[0]) - 1.0

    for middle, off in (([15.0, 3.0], SE2.minus), ([15.0, 0.0], ahead)):
        post = keep_out(lambda t, x, u, p: x[:2], Sphere(middle, 0.5), name="post")
        far = drives_to(15.0, post, off=off)
        assert not far.is_success and "no state was found" not in far.message


def test_an_obstacle_over_the_start_says_so_first():
    """Its middle is where the cart stands: no small change of the plan leads out of there."""
    wall = Bound(lambda t, x, u, p: x[0] ** 2, lower=1.0, name="pillar")
    found = OptimalControlProblem(cart(), 20, 0.1, Q=0, R=0.1, bounds=[wall]).solve([0.0, 0.0])
    first, second, *_ = found.message.split("; ")[1:]
    assert first == "the start itself violates pillar by 1: start within, or give soft="
    assert "pillar violates its bound at node" in second and "guess= on one side" in second
    assert 'solver="ipopt"' not in found.message


def test_a_ship_in_newtons_goes_to_its_berth_or_is_said_to_have_speeds_without_a_size():
    """From rest to rest. Straight ahead past a buoy nothing tells how fast it turns."""

    def berth(newton, end, *bounds):
        most = np.array([8e5, 4e5, 3e7]) * newton
        names = "surge", "sway", "yaw"

        def field(t, x, u, p):
            v, c, s = x[3:], ca.cos(x[2]), ca.sin(x[2])
            drag = v * ca.sqrt(v**2 + ca.DM([1e-4, 1e-4, 1e-6])) * ca.DM([1.5e4, 2e5, 2e10])
            drag += v * ca.DM([2e4, 5e4, 5e8])
            push = (u / newton - drag) / ca.DM([6e6, 7e6, 2e10])
            turn = ca.vertcat(7 / 6 * v[1] * v[2], -6 / 7 * v[0] * v[2], -5e-5 * v[0] * v[1])
            return ca.vertcat(c * v[0] - s * v[1], s * v[0] + c * v[1], v[2], push + turn)

        inputs = [Input(*one) for one in zip(names, ["N", "N", "N m"], -most, most, strict=True)]
        ship = System("ship", Rn(6, ("x", "y", "heading", "u", "v", "r")), field, inputs=inputs)
        berthed = Bound(lambda t, x, u, p: x, end, end, at="terminal", name="berth")
        return OptimalControlProblem(
            ship,
            60,
            4.0,
            Q=0,
            R=1 / most**2 * [1, 0.25, 1],
            reference=end,
            bounds=[berthed, *bounds],
        )

    aside, ahead = np.array([200.0, 60.0, np.pi / 2, 0, 0, 0]), np.array([200.0, 0, 0, 0, 0, 0])
    buoy = Bound(lambda t, x, u, p: (x[0] - 100) ** 2 + (x[1] - 5) ** 2, lower=900.0)
    plans = [berth(newton, aside).solve(np.zeros(6)) for newton in (1e-6, 1.0)]
    assert all(plan.is_success for plan in plans)
    assert abs(len(plans[0].iterations) - len(plans[1].iterations)) <= 1
    assert berth(1e-6, ahead, buoy).solve(np.zeros(6)).is_success
    lost = berth(1.0, ahead, buoy).solve(np.zeros(6), max_iterations=100)
    assert not lost.is_success
    assert "not differentiable" not in lost.message
    assert "moves by" in lost.message and "choose units" in lost.message


def test_a_loop_that_does_not_close_names_the_coordinate():
    forward = Phase(cart(), 10, (1.0, 5.0), bounds=[Bound("x1", 0.5, 2.0)])
    found = PhasedProblem(forward, time_weight=1, is_periodic=True).solve([0.0, 1.0])
    assert "x0 where the loop closes misses its bound by" in found.message
    assert found.kkt == found.solution.kkt and found.violations == found.solution.violations


def test_a_plan_that_runs_away_has_not_converged():
    """Far enough out rounding closes a loop that moves on."""
    forward = Phase(cart(), 3, (1.0, 5.0), bounds=[Bound("x1", lower=0.5)])
    found = PhasedProblem(forward, time_weight=1, is_periodic=True).solve([0.0, 1.0])
    assert not found.is_success


def test_nodes_of_phases_are_told_by_their_times():
    near = Residual(lambda t, x, u, p: x[:2] - ca.DM([3, 1]), 1.0, terminal=10.0, name="near")
    found = PhasedProblem(Phase(bike(), 10, (1.0, 4.0), residuals=[near])).solve([0.0] * 4)
    assert found.status == "failed"
    assert "is not finite at t = 0 s with" in found.message and "node" not in found.message
    assert found.message in str(found)


def test_a_phase_that_asks_for_nothing_says_so():
    found = PhasedProblem(Phase(cart(), 3, (0.5, 5.0))).solve([0.0, 0.0])
    assert found.is_success and "no phase has a cost or a bound" in found.message


def test_a_bound_that_bends_along_one_state_alone_keeps_its_gradient():
    """A limit of speed that falls within a step: its derivative by the speed is 1 everywhere."""
    limit = Bound(lambda t, x, u, p: x[1] - 2 + ca.tanh((x[0] - 5) / 0.05), upper=0.0, name="limit")
    goal = Bound(lambda t, x, u, p: x - ca.DM([9, 0]), 0, 0, at="terminal", name="end")
    problem = OptimalControlProblem(cart(), 20, 0.25, Q=0, R=0.1, bounds=[limit, goal])
    found = problem.solve([0.0, 0.0], max_iterations=30)
    assert not found.is_success and "vanishes" not in found.message
