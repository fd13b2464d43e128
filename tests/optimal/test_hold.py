"""Inputs that are linear in each step, next to held ones."""

from typing import Literal

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import TVLQR
from lgcontrol.groups import Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
)
from lgcontrol.simulation import simulate
from lgcontrol.systems import Input, System, Trajectory

from .examples import pendulum

AWAY = [np.cos(0.7), np.sin(0.7), 0.0]
SECONDS = 2.0
CART = System("cart", Rn(2), lambda t, x, u, p: [x[1], u - 0.3 * ca.sin(x[0])], inputs=["push"])


def cart(horizon: int, **options) -> OptimalControlProblem:
    return OptimalControlProblem(
        CART, horizon, SECONDS / horizon, Q=[1.0, 0.1], R=0.1, terminal=1.0, reference=[0.0, 0.0],
        **options,
    )  # fmt: skip


def swing(**options) -> OptimalControlProblem:
    terms = {"Q": {"angle": 1.0, "rate": 0.1}, "R": 0.01, "reference": [1.0, 0.0, 0.0]}
    return OptimalControlProblem(pendulum(), 25, 0.16, hold="first", **(terms | options))


@pytest.mark.parametrize(("hold", "order"), [("zero", 2), ("first", 4)])
def test_the_cost_converges_two_orders_faster_than_with_held_inputs(hold, order):
    least = cart(320, hold="first").solve([1.0, 0.0], tolerance=1e-10).cost
    found = [
        cart(horizon, hold=hold, quadrature="gauss").solve([1.0, 0.0], tolerance=1e-10)
        for horizon in (5, 10, 20)
    ]
    errors = np.array([plan.cost - least for plan in found])
    assert np.allclose(np.log2(errors[:-1] / errors[1:]), order, atol=0.1)
    # What the plan says of itself.
    told = found[-1].transcription_error()
    assert told.held_inputs - told.cost_change == pytest.approx(errors[-1], rel=0.1)
    assert told.states.shape == (20, 2)


def by_ipopt(horizon: int, limit: float) -> tuple[float, np.ndarray]:
    """The pendulum's angle and rate and the input at all nodes as variables, written out."""
    h = 4.0 / horizon
    x, u = ca.MX.sym("x", 2, horizon + 1), ca.MX.sym("u", 1, horizon + 1)

    def rate(y, v):
        return ca.vertcat(y[1], v - ca.sin(y[0]))

    def step(y, a, b, length):  # inputs from a to b
        m = (a + b) / 2
        k1 = rate(y, a)
        k2 = rate(y + length / 2 * k1, m)
        k3 = rate(y + length / 2 * k2, m)
        k4 = rate(y + length * k3, b)
        return y + length / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    cost, rows = 2.0 * (x[0, -1] ** 2 + 0.1 * x[1, -1] ** 2), [x[:, 0] - ca.DM([0.7, 0.0])]
    for k in range(horizon):
        a, b, y, before = u[k], u[k + 1], x[:, k], 0.0
        for c in (0.5 - 3**-0.5 / 2, 0.5 + 3**-0.5 / 2):
            y = step(y, a + before * (b - a), a + c * (b - a), (c - before) * h)
            v, before = a + c * (b - a), c
            cost += h / 4 * (y[0] ** 2 + 0.1 * y[1] ** 2 + 0.01 * v**2)
        rows.append(x[:, k + 1] - step(x[:, k], a, b, h))
    z = ca.vertcat(ca.vec(x), ca.vec(u))
    most = np.r_[np.full(2 * horizon + 2, np.inf), np.full(horizon + 1, limit)]
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    solver = ca.nlpsol("solver", "ipopt", {"x": z, "f": cost, "g": ca.vertcat(*rows)}, quiet)
    found = solver(x0=0, lbx=-most, ubx=most, lbg=0, ubg=0)
    return float(found["f"]), np.asarray(found["x"])[2 * horizon + 2 :]


def test_a_plan_with_limits_is_that_of_ipopt_on_its_own_transcription():
    cost, u = by_ipopt(25, 0.5)
    for solver in ("interior_point", "ipopt"):
        found = swing().solve(AWAY, solver=solver, tolerance=1e-9)
        assert found.is_success
        assert found.problem.hold == found.trajectory.hold == "first"
        assert found.cost == pytest.approx(cost, rel=1e-6)
        assert np.allclose(found.u, u, atol=1e-3)
        assert np.abs(found.u).max() <= 0.5
    assert (np.abs(u) > 0.499).sum() >= 4  # limits matter


def test_the_motion_is_that_of_the_system_under_linear_inputs():
    found = swing().solve(AWAY)
    plan = found.trajectory

    def rate(t, y):
        return [y[1], float(plan(t).u[0]) - np.sin(y[0])]

    end = solve_ivp(rate, (0.0, 4.0), [0.7, 0.0], max_step=0.02, rtol=1e-9).y[:, -1]
    x = found.x[-1]
    assert np.allclose([np.arctan2(x[1], x[0]), x[2]], end, atol=1e-4)


def test_inputs_are_given_or_bounded_at_any_node():
    bounds = [
        Bound("torque", 0.0, 0.0, at="start"),
        Bound("torque", 0.1, 0.1, at="terminal"),
        Bound("torque", upper=-0.2, at=range(3, 5)),
    ]
    found = swing(bounds=bounds).solve(AWAY, tolerance=1e-8)
    assert found.is_success
    u = found.u[:, 0]
    assert np.allclose([u[0], u[-1]], [0.0, 0.1], atol=1e-7)
    assert (u[3:5] <= -0.2 + 1e-7).all()
    # Rows with inputs hold at both ends.
    power = Bound(lambda t, x, u, p: u[0] * x[2], -0.02, 0.02, name="power")
    found = swing(bounds=[power]).solve(AWAY)
    assert found.is_success
    assert np.abs(found.u[:, 0] * found.x[:, 2]).max() < 0.02 + 1e-6


def landing(
    at: Literal["path", "both"], *, is_timed: bool
) -> OptimalControlProblem | PhasedProblem:
    """A lander whose thrust has a least and a greatest norm; a row of the height beside it."""
    lander = System(
        "lander", Rn(4), lambda t, x, u, p: [x[2], x[3], u[0], u[1] - 3.7], inputs=["ax", "az"]
    )
    stated = [
        Bound(lambda t, x, u, p: ca.vertcat(ca.sumsqr(u), x[1]), [16.0, -np.inf], [256.0, 150.0],
              at=at),
        Bound(lambda t, x, u, p: x, 0.0, 0.0, at="terminal"),
    ]  # fmt: skip
    if is_timed:
        phase = Phase(lander, 20, (1, 20), R=1e-3, bounds=stated)
        return PhasedProblem(phase, hold="first", time_weight=1.0)
    return OptimalControlProblem(
        lander, 20, 0.31, Q=np.zeros(4), R=1e-2, reference=np.zeros(4), bounds=stated, hold="first"
    )


@pytest.mark.parametrize("is_timed", [False, True])
def test_bounds_of_inputs_along_the_path_hold_at_the_last_node(is_timed):
    above = [20.0, 100.0, 2.0, -10.0]
    path = landing("path", is_timed=is_timed)
    found, checked = path.solve(above), path.solve(above, solver="ipopt")
    whole = landing("both", is_timed=is_timed).solve(above)
    for plan in (found, checked):
        assert plan.is_success
        thrust = np.linalg.norm(plan.trajectory.u, axis=1)
        assert len(thrust) == 21
        assert 4.0 - 1e-6 < thrust.min() < thrust.max() < 16.0 + 1e-6
        assert plan.cost == pytest.approx(whole.cost, rel=1e-6)
    assert np.allclose(found.trajectory.u, whole.trajectory.u, atol=1e-6)


def test_a_landing_with_linear_inputs_takes_as_many_iterations_in_any_unit_of_time():
    """Linear inputs are states with a free start, next to their reference."""

    def landed(second: float) -> tuple[int, float]:
        g = 3.7 / second**2
        lander = System(
            "lander", Rn(4), lambda t, x, u, p: [x[2], x[3], u[0], u[1] - g], inputs=["ax", "az"]
        )
        stated = [
            Bound(lambda t, x, u, p: ca.sumsqr(u) * second**4, 16.0, 256.0, at="path"),
            Bound(lambda t, x, u, p: x, 0.0, 0.0, at="terminal"),
        ]
        problem = OptimalControlProblem(
            lander, 20, 0.31 * second, Q=np.zeros(4), R=1e-2 * second**3, reference=np.zeros(4),
            bounds=stated, hold="first",
        )  # fmt: skip
        found = problem.solve([20.0, 100.0, -5.0 / second, -10.0 / second])
        assert found.is_success
        return found.iterations[-1].number, found.cost

    usual, cost = landed(1.0)
    for second in (1e-3, 1e3):
        iterations, own = landed(second)
        assert abs(iterations - usual) <= 0.2 * usual
        assert own == pytest.approx(cost, rel=1e-6)


def test_bounds_of_inputs_hold_where_a_later_phase_begins():
    """A mass in the plane, pushed within a disc in the second of two phases alone."""
    mass = System("mass", Rn(4), lambda t, x, u, p: ca.vertcat(x[2:], u), inputs=["a", "b"])
    disc = Bound(lambda t, x, u, p: ca.sumsqr(u), upper=16.0, name="disc")
    rest = Bound(lambda t, x, u, p: x, 0.0, 0.0, at="terminal")
    problem = PhasedProblem(
        [Phase(mass, 8, 0.8, R=10.0), Phase(mass, 12, 1.6, R=0.1, bounds=[disc, rest])],
        hold="first",
    )
    away = [3.0, 1.0, 0.0, 0.0]
    found, peer = problem.solve(away), problem.solve(away, solver="ipopt")
    for plan in (found, peer):
        pushes = np.linalg.norm(plan.parts["phase1"].u, axis=1)
        assert len(pushes) == 13
        assert 3.9 < pushes[0] < 4.0 + 1e-6
        assert pushes.max() < 4.0 + 1e-6
    assert found.cost == pytest.approx(peer.cost, rel=1e-6)


def test_terms_of_users_see_the_input_of_the_moment():
    plain = swing().solve(AWAY, tolerance=1e-9)
    terms = {
        "Q": 0.0, "R": 1e-8, "terminal": {"angle": 4.0, "rate": 0.4},
        "residuals": [Residual(lambda t, x, u, p: x[2], weight=0.1),
                      Residual(lambda t, x, u, p: u[0], weight=0.01)],
        "costs": [Cost(lambda t, x, u, p: ca.atan2(x[1], x[0]) ** 2 / 2)],
    }  # fmt: skip
    found = swing(**terms).solve(AWAY, tolerance=1e-9)
    assert found.cost == pytest.approx(plain.cost, rel=1e-5)
    assert np.allclose(found.u, plain.u, atol=1e-3)


def test_a_plan_goes_on_from_plans_of_either_kind():
    found = swing().solve(AWAY, tolerance=1e-9)
    held = swing().with_arguments(hold="zero").solve(AWAY)
    assert held.u.shape == (25, 1)
    for guess in (found, found.trajectory, held, ("rest", held)):
        again = swing().solve(AWAY, guess=guess, tolerance=1e-9)
        assert again.cost == pytest.approx(found.cost, rel=1e-6)
        assert guess is not found or len(again.iterations) < len(found.iterations)
    both = swing().solve_many(np.array([AWAY, AWAY]), tolerance=1e-9)
    assert all(np.allclose(one.u, found.u, atol=1e-5) for one in both)
    fine = swing().solve(AWAY, refine=1e-4)
    assert fine.is_success
    assert fine.problem.hold == "first"
    assert "not reached" not in fine.message


def test_a_regulator_holds_the_mean_of_a_period():
    found = swing().with_arguments(horizon=100, dt=0.04).solve(AWAY)
    system = pendulum()
    for factor in (1.0, 0.25):
        law = TVLQR(system, found.trajectory, dt=factor * 0.04)
        run = simulate(system, law, x0=AWAY, seconds=4.0)
        off = system.error(run.x, found.trajectory(run.t).x)
        assert np.abs(off[:: round(1 / factor)]).max() < 1e-3
        assert np.allclose(law(0.08, found.x[2]), found.trajectory(0.08 + factor * 0.02).u)
    law = TVLQR(system, found.trajectory, dt=0.01)
    with pytest.raises(ValueError, match=r"linear between nodes, the period is 0\.01 s"):
        law._exported_schedule()


def test_trajectories_interpolate_inputs_and_keep_that(tmp_path):
    line = Trajectory(Rn(1), [0.0, 1.0, 3.0], [[0.0], [1.0], [2.0]], [[0.0], [4.0], [2.0]],
                      inputs=["u"], hold="first")  # fmt: skip
    assert np.allclose(line([-1.0, 0.25, 1.0, 2.0, 3.0, 9.0]).u[:, 0], [0, 1, 4, 3, 2, 2])
    assert line(0.25).u.shape == (1,)
    for made in (
        line.resample(0.5), line[:], line.shift(0.0), Trajectory.load(line.save(tmp_path / "a")),
        Trajectory.concatenate([line, line]),
    ):  # fmt: skip
        assert made.hold == "first"
        assert np.allclose(made(0.25).u, 1.0)
    line.plot()
    held = Trajectory(Rn(1), line.t, line.x, line.u, inputs=["u"])
    assert held(2.0).u == 4.0
    with pytest.raises(ValueError, match="trajectory 1 has hold='first'"):
        Trajectory.concatenate([held, line])
    with pytest.raises(ValueError, match="needs the input at each of the 3 times, u has 2"):
        Trajectory(Rn(1), line.t, line.x, line.u[:2], hold="first")
    with pytest.raises(UnknownNameError, match="unknown hold 'second'; .*zero, first"):
        Trajectory(Rn(1), line.t, line.x, line.u, hold="second")


def test_what_needs_held_inputs_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="unknown hold 'linear'; .*zero, first"):
        cart(5, hold="linear")
    with pytest.raises(ValueError, match='quadrature="left" takes the input at the start'):
        cart(5, hold="first", quadrature="left")
    with pytest.raises(ValueError, match="solver of its own and terminal sets take neither"):
        InteriorPointSolver(cart(5, hold="first")).solve([1.0, 0.0])
    with pytest.raises(ValueError, match='terminal="riccati" is of inputs held in each'):
        cart(5, hold="first").with_arguments(terminal="riccati").solve([1.0, 0.0])
    with pytest.raises(ValueError, match='parameters do not go together with hold="first": R'):
        cart(5, hold="first").symbolic("R").solve([1.0, 0.0])
    with pytest.raises(TypeError, match="start from a word, a Trajectory or a solution"):
        cart(5, hold="first").solve([1.0, 0.0], guess=lambda t, x, reference: [0.0])
    counter = System("counter", Rn(1), lambda t, x, u, p: u, inputs=[Input("u")], dt=0.1)
    with pytest.raises(ValueError, match="counter is discrete and has no inputs within a step"):
        OptimalControlProblem(counter, 3, reference=[0.0], hold="first")
