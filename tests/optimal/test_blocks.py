"""Move blocking: inputs that change only in some steps."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.groups import Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Rates,
    with_rates,
)
from lgcontrol.optimal._internal import with_free_rates
from lgcontrol.optimal._transcription import Nodes, Transcription
from lgcontrol.systems import Input, System

from .examples import pendulum

STEPS, DT = 24, 0.16
BLOCKS = [1, 1, 2, 4, 8, 8]
UNEQUAL = DT * np.geomspace(0.4, 2.5, STEPS)
AWAY = [np.cos(2.0), np.sin(2.0), 0.0]
# Two axes; the second input turns slowly.
TABLE = System(
    "table", Rn(4), lambda t, x, u, p: ca.vertcat(x[2], x[3], u[0] - 0.2 * x[0], u[1]),
    inputs=[Input("fast", "N", -1, 1), Input("slow", "N", -0.5, 0.5), Input("wind", "N",
            role="disturbance")],
)  # fmt: skip


def swing(**options) -> OptimalControlProblem:
    terms = {"Q": {"angle": 1.0, "rate": 0.1}, "R": 0.01, "reference": [1.0, 0.0, 0.0]}
    return OptimalControlProblem(pendulum(), STEPS, **({"dt": DT} | terms | options))


def table(**options) -> OptimalControlProblem:
    return OptimalControlProblem(
        TABLE, 20, 0.2, Q=[1.0, 2.0, 0.1, 0.1], R=0.05, reference=np.zeros(4), **options
    )


def by_ipopt(
    blocks: list[int], dt: np.ndarray, weight: float = 0.0, limit: float = np.inf
) -> tuple[float, np.ndarray]:
    """The pendulum with one variable for each block, written out in angles.

    A change from block to block, from nothing at first, over the first step of the block has a
    weight per s and a limit.
    """
    x, v = ca.MX.sym("x", 2, STEPS + 1), ca.MX.sym("v", len(blocks))
    u = [v[i] for i in np.repeat(np.arange(len(blocks)), blocks).tolist()]
    cost = dt.sum() / 2 * (x[0, -1] ** 2 + 0.1 * x[1, -1] ** 2)
    rows = [x[:, 0] - ca.DM([2.0, 0.0])]
    for k, h in enumerate(dt.tolist()):
        y = x[:, k]

        def rate(y, k=k):
            return ca.vertcat(y[1], u[k] - ca.sin(y[0]))

        cost += h / 2 * (y[0] ** 2 + 0.1 * y[1] ** 2 + 0.01 * u[k] ** 2)
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        rows.append(x[:, k + 1] - y - h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3)))
    first = dt[np.r_[0, np.cumsum(blocks)[:-1]]]
    rates = (v - ca.vertcat(0.0, v[:-1])) / first
    cost += weight / 2 * ca.dot(first, rates**2)
    count, far = 2 * STEPS + 2, np.full(len(blocks), limit)
    z, most = ca.vertcat(ca.vec(x), v), np.r_[np.full(count, np.inf), [0.5] * len(blocks)]
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    program = {"x": z, "f": cost, "g": ca.vertcat(*rows, rates)}
    solver, none = ca.nlpsol("solver", "ipopt", program, quiet), np.zeros(count)
    found = solver(x0=0, lbx=-most, ubx=most, lbg=np.r_[none, -far], ubg=np.r_[none, far])
    return float(found["f"]), np.repeat(np.asarray(found["x"])[2 * STEPS + 2 :], blocks)


@pytest.mark.parametrize("dt", [DT, UNEQUAL], ids=["equal", "unequal"])
def test_a_plan_in_blocks_is_that_of_ipopt_with_a_variable_for_each(dt):
    problem = swing(blocks=BLOCKS, dt=dt)
    cost, u = by_ipopt(BLOCKS, problem.steps)
    for solver in ("interior_point", "ipopt"):
        found = problem.solve(AWAY, solver=solver, tolerance=1e-8)
        assert found.is_success
        assert found.cost == pytest.approx(cost, rel=1e-6)
        assert np.allclose(found.u[:, 0], u, atol=1e-3)
        assert found.u.shape == (STEPS, 1)
        held = np.diff(found.u[:, 0])[problem.may_change[1:, 0] == 0]
        assert np.abs(held).max() < 1e-7
    assert cost > swing(dt=dt).solve(AWAY).cost + 1e-3


@pytest.mark.parametrize("dt", [DT, UNEQUAL], ids=["equal", "unequal"])
def test_rates_of_blocks_are_weighed_and_bounded_as_ipopt_does(dt):
    rates, problem = Rates(weight=0.02, limit=0.9), swing(blocks=BLOCKS, dt=dt)
    cost, u = by_ipopt(BLOCKS, problem.steps, rates.weight, rates.limit)
    found = with_free_rates(problem, rates).solve([*AWAY, 0.0], tolerance=1e-9)
    assert found.is_success
    assert found.cost == pytest.approx(cost, rel=1e-6)
    assert np.allclose(found.x[1:, -1], u, atol=1e-3)
    changes = np.diff(u, prepend=0.0) / problem.steps
    assert (np.abs(changes) > rates.limit - 1e-4).any()  # a limit decides the plan


@pytest.mark.parametrize("quadrature", ["left", "gauss"])
def test_blocks_of_one_step_are_the_plan_without(quadrature):
    plain = swing(quadrature=quadrature).solve(AWAY, tolerance=1e-9)
    problem = swing(quadrature=quadrature, blocks=2)
    problem._set(may_change=np.ones((STEPS, 1)), _kept={})  # what is rated as free is not blocked
    found = problem.solve(AWAY, tolerance=1e-9)
    assert found.cost == pytest.approx(plain.cost, abs=1e-8)
    # The last input costs little: at a residual of 1e-9 it is known to 1e-5.
    assert np.allclose(found.u, plain.u, atol=1e-4)
    assert np.allclose(found.x, plain.x, atol=1e-5)
    assert swing(blocks=1).may_change is None


def test_one_input_may_be_slower_than_the_others():
    x0 = [1.0, -1.0, 0.0, 0.0]
    found = table(blocks={"slow": 5}).solve(x0, tolerance=1e-8)
    assert found.is_success
    changes = np.abs(np.diff(found.u, axis=0)) > 1e-6
    assert set(np.flatnonzero(changes[:, 1]) + 1) <= {5, 10, 15}
    assert changes[:, 0].sum() >= 15
    both, none = (table(blocks=b).solve(x0).cost for b in (5, None))
    assert none < found.cost < both
    # The two axes are apart: the fast one moves as if nothing were blocked.
    assert np.allclose(found.u[:, 0], table().solve(x0, tolerance=1e-8).u[:, 0], atol=1e-4)


def test_bounds_and_terms_see_what_acts():
    bounds = [
        Bound("fast", upper=0.3, at=range(8, 10)),
        Bound(lambda t, x, u, p: u[0] + u[1], -1.0, 0.7, name="sum"),
    ]
    cost = Cost(lambda t, x, u, p: 0.3 * u[0])
    problem = table(blocks=4, bounds=bounds, costs=[cost])
    found = problem.solve([-1.5, -1.0, 0.0, 0.0], tolerance=1e-8)
    assert found.is_success
    assert (found.u[8:12, 0] <= 0.3 + 1e-6).all()
    assert (found.u[:, 0] + found.u[:, 1]).max() == pytest.approx(0.7, abs=1e-5)
    # The plan costs on the plain problem what it says.
    plain = table(bounds=bounds, costs=[cost])
    once = Transcription(plain)
    values = once.values(Nodes(found.t, found.x, found.u), found._setting)
    assert values.cost == pytest.approx(found.cost, rel=1e-6)
    assert np.abs(values.gaps).max() < 1e-7


def test_plans_in_blocks_go_on_and_tell_their_errors():
    problem = swing(blocks=BLOCKS, quadrature="gauss")
    found = problem.solve(AWAY, tolerance=1e-8)
    for guess in (found, found.trajectory, swing().solve(AWAY)):
        again = problem.solve(AWAY, guess=guess, tolerance=1e-8)
        assert again.cost == pytest.approx(found.cost, rel=1e-7)
    error, plain = found.transcription_error(), swing(quadrature="gauss").solve(AWAY)
    assert error.state < 1e-3
    assert error.states.shape == plain.transcription_error().states.shape
    later = problem.solve(AWAY, t0=7.0, tolerance=1e-8)  # the system does not depend on time
    assert np.allclose(later.u, found.u, atol=1e-6)
    both = problem.solve_many(np.array([AWAY, AWAY]), tolerance=1e-8)
    assert all(np.allclose(one.u, found.u, atol=1e-5) for one in both)
    goal = [np.cos(0.3), np.sin(0.3), 0.0]
    moved = problem.solve(AWAY, reference=goal, tolerance=1e-8)
    again = problem.with_arguments(reference=goal).solve(AWAY, tolerance=1e-8)
    assert moved.cost == pytest.approx(again.cost, rel=1e-7)
    assert abs(moved.cost - found.cost) > 0.01


def test_blocks_that_do_not_fit_are_refused_by_name():
    with pytest.raises(ValueError, match="blocks have 3 steps, the horizon has 24: lengthen"):
        swing(blocks=[1, 2])
    with pytest.raises(UnknownNameError, match="unknown control 'push'; .*torque"):
        swing(blocks={"push": 2})
    with pytest.raises(ValueError, match="blocks of 'torque' must be"):
        swing(blocks={"torque": 0})
    with pytest.raises(ValueError, match="give one of the two"):
        swing(blocks=2, hold="first")
    with pytest.raises(ValueError, match="refine moves nodes, and blocks count them"):
        swing(blocks=2).solve(AWAY, refine=1e-3)
    with pytest.raises(ValueError, match="neither hold nor blocks"):
        InteriorPointSolver(swing(blocks=2)).solve(AWAY)
    counter = System("counter", Rn(1), lambda t, x, u, p: u, inputs=[Input("u")], dt=0.1)
    with pytest.raises(ValueError, match="counter is discrete"):
        OptimalControlProblem(counter, 4, reference=[0.0], blocks=2)


@pytest.mark.parametrize("order", [1, -1])
def test_the_narrower_name_of_blocks_counts_in_any_order(order):
    system = System("two", Rn(2), lambda t, x, u, p: u, inputs=["a.0", "a.1"])
    blocks = dict([("a", 2), ("a.0", 5)][::order])
    problem = OptimalControlProblem(system, 10, 0.1, reference=[0.0, 0.0], blocks=blocks)
    assert problem.may_change.sum(axis=0).tolist() == [2.0, 5.0]


def test_rates_take_neither_blocks_nor_collocated_inputs():
    for given in ({"blocks": 5}, {"hold": "collocation"}):
        with pytest.raises(ValueError, match='leave blocks and hold="collocation" out'):
            with_rates(swing(**given), Rates(weight=0.01))


def test_phases_say_which_integrals_they_know():
    with pytest.raises(UnknownNameError, match="valid names are left, gauss, collocation"):
        PhasedProblem(Phase(TABLE, 5, 1.0), quadrature="middle")
