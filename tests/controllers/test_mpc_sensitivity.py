"""How the answer of an MPC depends on state, reference, parameters and weights."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lgcontrol import MPC
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, Rates
from lgcontrol.systems import Input, Parameter, System

CART = System(
    "cart", Rn(2), lambda t, x, u, p: [x[1], u / p], inputs=["push"],
    parameters=[Parameter("mass", "kg", 1.0)],
)  # fmt: skip
STILL = np.zeros(2)
A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
STEP, CLOSE = 1e-4, 1e-5  # of differences of solves, and what is left


SLOW = Bound("x1", -0.4, 0.4)


def loop_of(*limits, system=CART, **options):
    return MPC(
        system, 20, 0.1, Q=[1.0, 0.1], R=0.1, reference=[0.0, 0.0],
        bounds=[Bound("push", -1.0, 1.0), *limits], **options,
    )  # fmt: skip


def test_derivatives_of_the_answer_are_those_of_differences():
    """Along a loop that leaves one limit after the other, by all that it is given."""
    mpc, x = loop_of(SLOW).symbolic("R", "push.upper"), np.array([1.0, 0.0])
    seen = set()
    for k in range(8):
        x = A @ x + B @ mpc(0.1 * k, x)
        if k % 2:
            continue
        slopes = mpc.sensitivities()
        seen.add((*slopes.active,))
        plan = slopes.solution

        def answer(h, plan=plan, state=STILL, goal=STILL, **p):
            values = {"mass": 1.0, "R": 0.1} | {name: p[name] + h for name in p}
            return mpc.problem.solve(
                plan.x[0] + h * state, reference=h * goal, p=values, tolerance=1e-10
            ).u[0]

        def slope(answer=answer, **way):
            return (answer(STEP, **way) - answer(-STEP, **way)) / (2 * STEP)

        wanted = {
            "x0": np.stack([slope(state=way) for way in np.eye(2)], axis=-1),
            "reference": np.stack([slope(goal=way) for way in np.eye(2)], axis=-1),
            "mass": slope(mass=1.0), "R": slope(R=0.1),
        }  # fmt: skip
        for name, want in wanted.items():
            assert np.allclose(slopes.by(name).u[0], want, atol=CLOSE), (k, name)
    assert seen == {("push", "x1"), ("x1",)}


def test_a_weight_is_tuned_in_a_closed_loop_by_its_gradient():
    """The plant is twice as heavy as the model: the loop overshoots unless the weight fits."""
    mpc = loop_of().symbolic("R")

    def loop(log_weight):
        weight = np.exp(log_weight[0])
        mpc.reset()
        mpc.parameters = {"R": weight}
        x, dx, cost, slope = np.array([0.5, 0.0]), np.zeros(2), 0.0, 0.0
        for k in range(40):
            mpc(0.1 * k, x)
            slopes = mpc.sensitivities()
            u = slopes.solution.u[0]
            du = slopes.by("x0").u[0] @ dx + slopes.by("R").u[0]
            cost, slope = cost + x @ x + 0.1 * u @ u, slope + 2 * x @ dx + 0.2 * u @ du
            x, dx = A @ x + B @ u / 2, A @ dx + B @ du / 2
        return cost, slope * weight

    ahead, back = loop([-2.0 + STEP])[0], loop([-2.0 - STEP])[0]
    assert loop([-2.0])[1] == pytest.approx((ahead - back) / (2 * STEP), rel=1e-4)
    found = minimize(loop, [np.log(0.1)], jac=True, method="BFGS", tol=1e-3)
    assert found.success
    assert found.nfev <= 8
    assert found.fun < 0.97 * loop([np.log(0.1)])[0]


def test_plans_with_delay_and_rates_have_derivatives_by_the_state_that_they_begin_with():
    delayed = loop_of(delay=0.05)
    for k in range(3):
        delayed(0.1 * k, [0.9, 0.0])
    plan = delayed.sensitivities()
    assert not np.allclose(plan.solution.x[0], [0.9, 0.0], atol=1e-3)
    assert np.allclose(plan.by("x0").x[0], np.eye(2))
    slow = loop_of(rates=Rates(weight=0.1, limit=5.0))
    slow(0.0, [0.9, 0.0])
    slow(0.1, [0.9, 0.0])
    assert slow.sensitivities().by("x0").u[0].shape == (1, 3)  # by the input that acts, too


def test_what_has_no_sensitivities_says_why():
    with pytest.raises(RuntimeError, match="no plan yet: call the controller"):
        loop_of().sensitivities()
    blown = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1]],
        inputs=["push", Input("wind", "N", role="disturbance")],
    )  # fmt: skip
    biased = loop_of(system=blown, disturbance="wind")
    biased(0.0, [0.5, 0.0])
    with pytest.raises(NotImplementedError, match="disturbance= are not there.*mpc.problem.solve"):
        biased.sensitivities()
