"""Limits of controls: boxes whose numbers may be parameters, as rows would keep them."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem
from lgcontrol.optimal._input_limits import LEAST_WIDTH, ControlBox
from lgcontrol.optimal._internal import make_solver
from lgcontrol.optimal._transcription import Transcription
from lgcontrol.systems import Input, System

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS

# Solvers end at residuals of 1e-6, interior points off their limits by about as much; where an
# input leaves its limit it is determined to the root of that.
SAME_COST, SAME_INPUT = 1e-5, 1e-3
START, NUMBERS = [1.0, 0.0], {"gentle.lower": -0.8, "gentle.upper": 0.6}


def cart(*bounds: Bound, lower: float = -3, upper: float = 3, **options) -> OptimalControlProblem:
    system = System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u[0] + u[1]),
        inputs=[Input("push", "N", lower, upper), Input("wind", "N", role="disturbance")],
    )  # fmt: skip
    return OptimalControlProblem(
        system, 20, 0.1, Q=1.0, R=0.1, reference=[0, 0], bounds=bounds, **options
    )


def gentle() -> OptimalControlProblem:
    problem = cart(Bound("push", -1.0, 1.0, name="gentle"), Bound("x1", -0.5, 0.5))
    return problem.symbolic("gentle.lower", "gentle.upper")


@pytest.mark.parametrize(
    ("bound", "is_row"),
    [
        (Bound("push", upper=0.5), False),
        (Bound("input.push", upper=0.5, at="path"), False),
        (Bound("push", 0.5, 0.5, at=range(20)), False),
        (Bound("push", upper=0.5, soft=1.0), True),
        (Bound("push", upper=0.5, at=range(19)), True),
        (Bound("push", upper=0.5, at="start"), True),
        (Bound("wind", upper=0.5), True),
        (Bound(lambda t, x, u, p: u[0], upper=0.5), True),
    ],
)
def test_what_a_control_keeps_throughout_is_no_row(bound, is_row):
    problem = cart(bound)
    if bound.at == "start" or bound.of == "wind":
        assert problem.input_limits.exactly(np.zeros(0)).upper == 3
    if bound.at != "start":
        assert len(Transcription(problem).rows.names) == is_row
    assert (problem.input_limits.exactly(np.zeros(0)).upper == 3) == is_row


@pytest.fixture(scope="module")
def by_rows():
    """The optimum that IPOPT finds with the limits as functions, which are rows."""
    function = lambda t, x, u, p: u[0]  # noqa: E731
    problem = cart(Bound(function, -0.8, 0.6), Bound("x1", -0.5, 0.5))
    return problem.solve(START, solver="ipopt")


@pytest.mark.parametrize("solver", ["interior_point", "compiled", "sqp", "ipopt"])
def test_limits_that_are_parameters_are_kept_by_all_solvers(solver, by_rows):
    problem = gentle()
    if solver == "compiled":
        made = InteriorPointSolver(problem).prepare()
    else:
        made = make_solver(solver, problem)
    wide = made.solve(START)
    assert np.ptp(wide.u[:, 0]) == pytest.approx(2.0, abs=SAME_INPUT)
    found = made.solve(START, p=NUMBERS)
    assert found.status == "converged"
    assert found.cost == pytest.approx(by_rows.cost, rel=SAME_COST)
    assert np.abs(found.u - by_rows.u).max() < SAME_INPUT
    assert found.cost > wide.cost * 1.001
    both = made.solve(START, p={"gentle.lower": -0.2, "gentle.upper": -0.2})
    assert both.status == "converged"
    assert both.u[:, 0] == pytest.approx(np.full(20, -0.2), abs=LEAST_WIDTH)
    crossed = made.solve(START, p={"gentle.lower": 0.2, "gentle.upper": -0.1})
    assert crossed.status == "infeasible"
    assert {(v.name, v.kind, round(v.amount, 9)) for v in crossed.violations} == {
        ("gentle", "lower", 0.15), ("gentle", "upper", 0.15),
    }  # fmt: skip
    assert crossed.message.startswith("limits contradict each other: gentle falls below its lower")
    assert crossed.u[:, 0] == pytest.approx(np.full(20, 0.05), abs=LEAST_WIDTH)
    if solver != "ipopt":  # whose steps are solves
        step = made.step(crossed.x[1], t0=0.1, p={"gentle.lower": 0.2, "gentle.upper": -0.1})
        assert step.status == "infeasible" and len(step.violations) == 2
        again = made.step(crossed.x[1], t0=0.1, p=NUMBERS, iterations=5)
        assert not again.violations and (again.u[:, 0] <= 0.6).all()
        assert (again.u[:, 0] >= -0.8).all()


def test_a_contradiction_stays_within_what_the_system_allows():
    problem = cart(Bound("push", lower=0.2), upper=1.0).symbolic("push.lower")
    found = problem.solve(START, p={"push.lower": 4.0})
    assert found.status == "infeasible"
    assert [(v.name, v.kind, v.amount) for v in found.violations] == [("push", "lower", 3.0)]
    assert found.u[:, 0] == pytest.approx(np.ones(20), abs=LEAST_WIDTH)


def test_a_control_without_a_range_is_held():
    found = cart(lower=0.0, upper=0.0).solve(START)
    assert found.status == "converged"
    assert found.u[:, 0] == pytest.approx(np.zeros(20), abs=LEAST_WIDTH)


def test_messages_say_which_of_several_limits_is_met():
    goal = Bound("x0", -0.01, 0.01, at="terminal")
    slow = Bound("push", -0.4, 0.4, name="gentle")
    for bounds, name in ((([goal]), "push"), ([goal, slow], "gentle"), ([slow, goal], "gentle")):
        problem = cart(*bounds, lower=-0.45, upper=0.45)
        found = problem.solve([3.0, 0.0])
        assert found.status == "infeasible"
        assert f"; at their limits: {name};" in found.message


@pytest.mark.filterwarnings("error")
def test_ranges_that_overflow_have_an_inside():
    most = np.array([1.7e308, 2.0, np.inf])
    lower, upper = ControlBox(-most, most, ()).inside(0.25)
    np.testing.assert_allclose(lower[:2], -most[:2] / 2)
    np.testing.assert_allclose(upper[:2], most[:2] / 2)
