"""Costs without a lower curvature, whose optima are where limits are, against IPOPT's."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SO2, Product, Rn
from lgcontrol.models import surface_vessel
from lgcontrol.optimal import Bound, Cost, InteriorPointSolver, OptimalControlProblem
from lgcontrol.systems import Input, System

from .test_interior_point import in_numpy

CART = System(
    "cart", Product(place=Rn(1), speed=Rn(1)), lambda t, x, u, p: ca.vertcat(x[1], u),
    inputs=[Input("push", "N", -1, 1)],
)  # fmt: skip
CAR = System(
    "car", Product(pose=SE2, speed=Rn(1)),
    lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(u[0]) / 2.5, u[1]),
    inputs=[Input("steer", "rad", -0.5, 0.5), Input("push", "m/s²", -2, 2)],
)  # fmt: skip
PENDULUM = System(
    "pendulum", Product(angle=SO2, rate=Rn(1)),
    lambda t, x, u, p: ca.vertcat(x[2], u - x[1]), inputs=[Input("torque", "N m", -0.5, 0.5)],
)  # fmt: skip
WALLS = [Bound("place", -1, 1), Bound("speed", -1, 1)]
SOFT = [Bound("place", -1, 1, soft=100), Bound("speed", -1, 1, soft=100)]
TURNED = [0.0, 0.0, np.cos(2.0), np.sin(2.0), 0.0]
# Next to nothing for the inputs: all that bends upwards is their 1e-4.
CASES: dict[str, tuple[System, Any, list[Bound], Any]] = {
    "speed squared": (CART, lambda t, x, u, p: -(x[1] ** 2), WALLS, [0.1, 0.2]),
    "speed squared, soft": (CART, lambda t, x, u, p: -(x[1] ** 2), SOFT, [0.1, 0.2]),
    "input squared": (CART, lambda t, x, u, p: -(u[0] ** 2), WALLS, [0.1, 0.2]),
    "power": (CART, lambda t, x, u, p: u[0] * x[1], WALLS, [0.1, 0.8]),
    "distance": (CAR, lambda t, x, u, p: -x[0], [Bound("speed", -1, 3)], TURNED),
    "distance from a place": (
        CAR,
        lambda t, x, u, p: -ca.sqrt((x[0] - 1) ** 2 + (x[1] - 0.5) ** 2 + 0.01),
        [Bound("speed", -1, 3)],
        [0.0, 0.0, 1.0, 0.0, 0.5],
    ),
    "energy": (PENDULUM, lambda t, x, u, p: -(x[2] ** 2), [Bound("rate", -2, 2)], [1, 0, 0.1]),
}


@pytest.mark.usually(guess=("rest",), case=("speed squared", "power", "distance from a place"))
@pytest.mark.parametrize("guess", [None, "rest"])
@pytest.mark.parametrize("case", CASES)
def test_concave_costs_end_where_ipopt_does_or_lower(case, guess):
    system, earned, bounds, x0 = CASES[case]
    problem = OptimalControlProblem(
        system, 20, 0.1, Q=0.0, R=1e-4, costs=[Cost(earned)], bounds=bounds, reference=system.home
    )
    ours, peer = (
        problem.solve(x0, guess=guess, solver=solver) for solver in ("interior_point", "ipopt")
    )
    assert ours.status == peer.status == "converged" and ours.kkt <= 1e-6
    assert ours.cost <= peer.cost + 1e-5 * abs(peer.cost)
    assert ours.cost < -0.1  # it earns


def test_a_saddle_of_a_cost_that_bends_both_ways_is_left():
    """A vessel earns by its way east and pays for its power: straight on is not its best course."""
    ship = surface_vessel(current=[0, 0, 0])
    start = [0, 0, 1, 0, 0, 0, 0]

    def profit(t, x, u, p):
        return x[3] * x[5] - x[2] * x[4]

    def power(t, x, u, p):
        return 0.3 * ca.sumsqr(u[:3])

    problem = OptimalControlProblem(
        ship, 40, 0.25, Q=0.0, R=1e-3, terminal=0.0, reference=start,
        costs=[Cost(profit), Cost(power)], bounds=[Bound("pose.y", -0.5, 0.5, soft=50.0)],
    )  # fmt: skip
    peer = problem.solve(start, solver="ipopt")
    compiled = InteriorPointSolver(problem).prepare().solve(start)
    plain = InteriorPointSolver(problem).solve(start)
    assert compiled.status == plain.status == peer.status == "converged"
    assert peer.cost == pytest.approx(-0.31775, abs=1e-5)  # IPOPT stays on the straight
    assert compiled.cost < peer.cost - 0.005
    first, other = (  # further iterations are at the level of rounding
        next(entry.number for entry in plan.iterations if entry.kkt < 1e-6)
        for plan in (compiled, plain)
    )
    assert first == other <= 20
    np.testing.assert_allclose(compiled.u, plain.u, atol=1e-10)


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_an_iterate_that_met_the_tolerance_at_a_saddle_is_left(makes):
    """At a maximum the tolerance is met; the error grows as regularized steps lead away from it."""
    ball = System("ball", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "m/s", -1, 1)])
    problem = OptimalControlProblem(
        ball, 10, 0.1, Q=0.0, R=1e-9, terminal=0.0, reference=[0.0],
        costs=[Cost(lambda t, x, u, p: 1e-3 * (x[0] ** 2 - 1) ** 2)],
    )  # fmt: skip
    plan = makes(problem).solve([3e-4])
    assert plan.status == "converged"
    assert plan.cost < 0.6e-3  # 1e-3 where it stays
