"""Bounds whose quantity is not finite at nodes where they do not hold."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
)
from lgcontrol.systems import Input, System, Trajectory

from .test_planning_kernel import SAME_LOG, SAME_NODES, Ready

N, DT, START = 12, 0.1, [0.0, 1.0]
SAME_COST = 1e-7  # two routes to one optimum, both to a residual of 1e-8
SAME_PLAN = 1e-5
CART = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -9, 9)])
# Where the roots begin: the start is at 0, so that the first half of a plan is outside of a domain.
EDGE = 0.3


def root(edge, guard):
    """A root of the way beyond an edge; with a guard it is finite everywhere."""
    return lambda t, x, u, p: ca.sqrt(x[0] - edge if guard is None else ca.fmax(x[0] - edge, guard))


def power(t, x, u, p):
    return x[1] * u + x[0]


CASES = {
    "start": lambda g: [Bound(root(0.0, g), upper=0.8)],
    "end": lambda g: [Bound(root(EDGE, g), upper=0.5, at="terminal")],
    "nodes": lambda g: [Bound(root(EDGE, g), upper=0.5, at=range(8, 10))],
    "soft": lambda g: [Bound(root(EDGE, g), upper=0.5, soft=0.3, at=range(8, 10))],
    "equal": lambda g: [Bound(root(EDGE, g), 0.4, 0.4, at="terminal")],
    "with others": lambda g: [
        Bound(root(EDGE, g), upper=0.5, at=range(8, 10)), Bound(power, upper=1.2, at="path"),
        Bound(lambda t, x, u, p: 1 / t, upper=9.0, at=range(3, 9)) if g is None else
        Bound(lambda t, x, u, p: 1 / ca.fmax(t, 1e-3), upper=9.0, at=range(3, 9)),
    ],
}  # fmt: skip


def stated(name, guard=None, **options):
    return OptimalControlProblem(
        CART, N, DT, Q=1.0, R=0.1, reference=[1.0, 0.0], bounds=CASES[name](guard), **options
    )  # fmt: skip


PLANS = [
    *[(name, "zero", "ipopt") for name in CASES],
    *[("nodes", hold, None) for hold in ("first", "collocation")],
    *[pytest.param(name, "collocation", "ipopt", marks=pytest.mark.thorough) for name in CASES],
]


@pytest.mark.parametrize(("name", "hold", "other"), PLANS)
def test_bounds_need_not_be_finite_where_they_do_not_hold(name, hold, other):
    found = stated(name, hold=hold).solve(START, tolerance=1e-9)
    wanted = stated(name, 1e-6, hold=hold).solve(START, tolerance=1e-9, solver=other)
    assert found.is_success
    assert found.cost == pytest.approx(wanted.cost, rel=SAME_COST)
    np.testing.assert_allclose(found.u, wanted.u, atol=SAME_PLAN)
    free = OptimalControlProblem(CART, N, DT, Q=1.0, R=0.1, reference=[1.0, 0.0], hold=hold)
    assert found.cost > 1.0001 * free.solve(START).cost  # bounds decide the plan


@pytest.mark.parametrize("name", ["start", "soft", "with others"])
def test_ipopt_plans_with_such_bounds_too(name):
    found = stated(name).solve(START, tolerance=1e-9, solver="ipopt")
    wanted = stated(name).solve(START, tolerance=1e-9)
    assert found.is_success
    np.testing.assert_allclose(found.u, wanted.u, atol=SAME_PLAN)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["with others"])
def test_such_bounds_are_as_harmless_in_c(name):
    ready = Ready(stated(name), np.array(START))
    ours, oracle = ready.one_way(), ready.in_numpy()
    assert ours.status == "converged" and len(ours.log) == len(oracle.log)
    np.testing.assert_allclose(ours.log[:, 0], oracle.log[:, 0], rtol=SAME_LOG)
    np.testing.assert_allclose(ours.u, oracle.iterate.u, atol=SAME_NODES)


@pytest.mark.compiled
def test_a_gate_at_another_node_compiles_nothing():
    def at(node):
        gate = Bound(root(EDGE, None), upper=0.5, at=range(node, node + 1))
        problem = stated("end").with_arguments(bounds=[gate])
        return InteriorPointSolver(problem).transcription.identity

    assert at(8) == at(10) is not None
    assert at(8) != InteriorPointSolver(stated("end")).transcription.identity


def test_a_bound_that_is_no_number_at_the_end_of_the_guess_says_what_to_do():
    """The bound alone is not finite at x = −1; from a guess that ends within it there is a plan."""
    ends = [
        Bound(root(0.0, None), 2.0, at="terminal", name="root"),
        Bound("x1", 0, 0, at="terminal"),
    ]
    problem = PhasedProblem(Phase(CART, 20, (0.5, 5.0), R=1.0, bounds=ends), time_weight=1.0)
    lost = problem.solve([-1.0, 0.0])
    assert lost.status == "failed"
    told = "the bounded quantity root is not a number at t = 1.581 s: start"
    assert lost.message.startswith(told)
    assert "guess=" in lost.message
    found = problem.solve([-1.0, 0.0], guess=Trajectory.constant(CART.state, [4.0, 0.0], [0.0]))
    # ½ u² over T seconds by d = 5 m from rest to rest costs 6 d² / (T³ (1 − 1/N²)), and T a second.
    T = (450 / (1 - 1 / 20**2)) ** 0.25
    assert found.durations == {"phase0": pytest.approx(T, abs=1e-5)}
    assert found.cost == pytest.approx(4 / 3 * T, abs=1e-6)
