"""What further states state: limited integrals, largest values, delays, parameters to be found."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

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
from lgcontrol.systems import Input, Parameter, System

CART = System(
    "cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u[0]], inputs=[Input("push", "N", -1, 1)]
)
N, DT = 20, 0.1
NEAR = 1e-5


def test_a_limited_integral():
    """As far as ∫ u² dt ≤ ½ leads: u is proportional to the time that is left."""
    cart = CART.augment(integrate={"effort": lambda t, x, u, p: u[0] ** 2})
    assert cart.state.coordinate_names[-1] == "integral.effort"
    problem = OptimalControlProblem(
        cart, N, DT, Q=0.0, R=1e-9, terminal=0.0,
        bounds=[Bound("integral.effort", upper=0.5, at="terminal")],
        costs=[Cost(lambda t, x, u, p: -x[0], None, terminal=1.0)],
    )  # fmt: skip
    left = DT * (N - 0.5 - np.arange(N))  # of a push that is held over a step
    far = np.sqrt(0.5 * DT * np.sum(left**2))
    for solver in (None, "ipopt"):
        found = problem.solve([0.0, 0.0, 0.0], solver=solver)
        assert found.is_success
        assert found.x[-1, 0] == pytest.approx(far, abs=NEAR)
        np.testing.assert_allclose(found.u[:, 0], left * far / (DT * np.sum(left**2)), atol=1e-4)


def test_the_least_largest_speed():
    """From rest to rest over a metre in 3 s at the least largest speed, a linear program."""
    cart = CART.augment(constant="peak")
    problem = OptimalControlProblem(
        cart, 30, 0.1, Q=0.0, R=1e-9, terminal=0.0, free="constant",
        costs=[Cost(lambda t, x, u, p: x[2], None, terminal=1.0)],
        bounds=[Bound(lambda t, x, u, p: x[1] - x[2], upper=0.0),
                Bound("state", [1.0, 0.0], [1.0, 0.0], at="terminal")],
    )  # fmt: skip
    after = np.tril(np.full((30, 30), 0.1))  # speeds of the nodes by the pushes
    way = 0.1 * (after.sum(axis=0) - 0.05)
    best = linprog(
        np.r_[np.zeros(30), 1.0], np.c_[after, -np.ones(30)], np.zeros(30),
        np.r_[[np.r_[way, 0.0]], [np.r_[after[-1], 0.0]]], [1.0, 0.0],
        bounds=[(-1, 1)] * 30 + [(None, None)],
    )  # fmt: skip
    for solver in (None, "ipopt"):
        found = problem.solve([0.0, 0.0, 0.5], solver=solver)
        assert found.is_success
        assert found.x[0, 2] == pytest.approx(best.fun, abs=NEAR)
    assert best.fun == pytest.approx((3 - np.sqrt(5)) / 2, abs=1e-2)  # of a trapezoid


def test_a_price_follows_a_table(tmp_path):
    """A tank is filled where water is cheap: a linear program. Scalars call CasADi's table."""
    prices = np.array([3.0, 1.0, 4.0, 2.0, 5.0, 2.5, 3.5, 1.5, 4.0])
    price = ca.interpolant("price", "linear", [np.arange(9.0)], prices)
    tank = System("tank", Rn(1), lambda t, x, u, p: u - 1.0, inputs=[Input("inflow", "", 0, 3)])
    problem = OptimalControlProblem(
        tank, 8, 1.0, Q=0.0, R=1e-7, terminal=0.0, reference=[1.0],
        costs=[Cost(lambda t, x, u, p: price(t) * u)], bounds=[Bound("x0", 0.0, 4.0)],
    )  # fmt: skip
    level = np.tril(np.ones((8, 8)))
    least = linprog(
        prices[:8], np.vstack([-level, level]),
        np.r_[1.0 - np.arange(1, 9), 3.0 + np.arange(1, 9)], bounds=(0, 3),
    )  # fmt: skip
    for solver in (None, "ipopt"):
        found = problem.solve([1.0], solver=solver)
        assert found.is_success
        assert found.cost == pytest.approx(least.fun, abs=1e-4)
        np.testing.assert_allclose(found.u[:, 0], least.x, atol=1e-3)
    with pytest.raises(NotImplementedError, match="it holds an interpolant.*scalar operations"):
        InteriorPointSolver(problem).export_c(tmp_path / "tank")


def test_a_delayed_input_acts_as_from_the_state_that_it_meets():
    late = CART.discretize(DT).augment(delay=0.3)
    problem = OptimalControlProblem(late, N, terminal={"state": 5.0}, Q={"state.x": 1.0}, R=0.1,
                                    reference=np.zeros(5))  # fmt: skip
    on_their_way = [0.5, -0.2, 0.1]  # the last one given acts last
    found = problem.solve([1.0, 0.3, *on_their_way], tolerance=1e-9)
    x = np.array([1.0, 0.3])
    for u in on_their_way[::-1]:
        x = np.array([x[0] + DT * x[1] + DT**2 / 2 * u, x[1] + DT * u])
    met = OptimalControlProblem(CART.discretize(DT), N - 3, terminal=5.0, Q={"x": 1.0}, R=0.1,
                                reference=[0, 0]).solve(x, tolerance=1e-9)  # fmt: skip
    np.testing.assert_allclose(found.u[: N - 3], met.u, atol=1e-6)
    assert np.abs(found.u[N - 3 :]).max() < 1e-6  # nothing that counts would answer


def test_a_delayed_state_moves_as_by_the_method_of_steps():
    plant = System("plant", Rn(1), lambda t, x, u, p: u[0] - u[1], inputs=["push", "past"])
    late = plant.augment(delay={"past": 1.0}, delay_order=10)
    closed = System(
        "closed", late.state, lambda t, x, u, p: late.f(t, x, ca.vertcat(u, x[0]), p),
        inputs=["push"], parameters=late.parameters,
    )  # fmt: skip
    start = np.r_[1.0, 1.0, np.zeros(9)]  # the past was 1 as well
    problem = OptimalControlProblem(
        closed, 60, 0.05, Q=0.0, R=1.0, terminal=0.0, reference=np.zeros(11)
    )
    found = problem.solve(start)
    assert np.abs(found.u).max() < 1e-9
    t = found.t
    # x = 1 − t, then 1 − t + (t − 1)²/2, then less (t − 2)³/6.
    wanted = 1 - t + np.maximum(t - 1, 0) ** 2 / 2 - np.maximum(t - 2, 0) ** 3 / 6
    np.testing.assert_allclose(found.x[:, 0], wanted, atol=2e-3)


DECAY = System(
    "decay", Rn(1, ("x",)), lambda t, x, u, p: -p[0] * x[0] + 0 * u[0], inputs=["none"],
    parameters=[Parameter("rate", "1/s", 0.3)],
)  # fmt: skip
SEEN = {2.0: [1.05, 0.55, 0.31], 5.0: [2.8, 1.5, 0.7]}  # after 1, 2 and 3 s, by the start


def test_a_parameter_is_found_from_several_experiments():
    unknown = DECAY.augment(constant="rate")
    assert unknown.parameter_names == () and unknown.home[-1] == 0.3

    def fit(values):
        return [
            Residual(lambda t, x, u, p, y=y: x[0] - y, 1.0, at=range(10 * k + 10, 10 * k + 11))
            for k, y in enumerate(values)
        ]

    phases = [
        Phase(unknown, 30, 3.0, residuals=fit(SEEN[2.0]),
              jump=lambda t, x, p: ca.vertcat(5.0, x[1])),
        Phase(unknown, 30, 3.0, residuals=fit(SEEN[5.0])),
    ]  # fmt: skip
    times = np.array([1.0, 2.0, 3.0])

    def off(rate, prior=0.0):
        found = [np.sum((x0 * np.exp(-rate * times) - y) ** 2) for x0, y in SEEN.items()]
        return (sum(found) + prior * (rate - 0.3) ** 2) / 2

    for prior in (None, 40.0):
        problem = PhasedProblem(phases, free="constant.rate", arrival=prior and {"constant": prior})
        best = minimize_scalar(off, bounds=(0.1, 2.0), method="bounded", args=(prior or 0.0,))
        for solver in (None, "ipopt"):
            found = problem.solve([2.0, 0.3], solver=solver)
            assert found.is_success
            assert found.parts["phase1"].x[-1, 1] == pytest.approx(best.x, abs=1e-4)
            assert found.cost == pytest.approx(best.fun, abs=1e-5)


def test_a_parameter_is_found_together_with_a_free_time():
    # 2 falls to 1.1 in a second, so that the rate is known, and 5 to 0.5 in an unknown time.
    unknown = DECAY.augment(constant="rate")
    phases = [
        Phase(unknown, 20, 1.0, bounds=[Bound("state.x", 1.1, 1.1, at="terminal")],
              jump=lambda t, x, p: ca.vertcat(5.0, x[1])),
        Phase(unknown, 20, (0.5, 20.0), bounds=[Bound("state.x", 0.5, 0.5, at="terminal")]),
    ]  # fmt: skip
    rate = np.log(2 / 1.1)
    for solver in (None, "ipopt"):
        found = PhasedProblem(phases, free="constant").solve([2.0, 0.3], solver=solver)
        assert found.is_success
        assert found.parts["phase0"].x[0, 1] == pytest.approx(rate, abs=1e-5)
        assert found.durations["phase1"] == pytest.approx(np.log(10) / rate, abs=1e-3)
