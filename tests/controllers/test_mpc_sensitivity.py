"""How the answer of an MPC depends on state, reference, parameters and weights."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from lgcontrol import MPC
from lgcontrol.controllers import RealTime
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
    """Along a loop that leaves one limit after the other, by all that it is given.

    Four steps at the limit of the push reach a speed of 0.4: as a limit of the speed that would be
    a kink, with one active limit more than inputs.
    """
    slow = Bound("x1", -0.45, 0.45)
    mpc, x = loop_of(slow).symbolic("R", "push.upper"), np.array([1.0, 0.0])
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


HELD = {
    "held": {},
    "held for less than a step": {"rates": Rates(weight=0.05), "real_time": RealTime(period=0.05)},
    "rates": {"rates": Rates(weight=0.05)},
    "limited rates": {"rates": Rates(weight=0.05, limit=1.5)},
    "linear": {"hold": "first"},
    "linear with rates": {"hold": "first", "rates": Rates(weight=0.05)},
}


def check_against(answer, slopes, has_acting):
    """By state, input that acts, goal and mass, against differences; and backward."""

    def slope(**way):
        ahead, back = ({key: h * np.array(one) for key, one in way.items()} for h in (STEP, -STEP))
        return (answer(**ahead) - answer(**back)) / (2 * STEP)

    by_x0 = [slope(state=way) for way in np.eye(2)] + [slope(acting=1.0)] * has_acting
    by_goal = [slope(goal=way) for way in np.eye(2)]
    pairs = (
        (slopes.by("x0").u[0], np.stack(by_x0, axis=-1)),
        (slopes.by("reference").u[0][:, :2], np.stack(by_goal, axis=-1)),
        (slopes.by("mass").u[0], slope(mass=1.0)),
    )
    size = max(1.0, *(np.abs(want).max() for _, want in pairs))  # of the largest change
    for have, want in pairs:
        assert np.abs(have - want).max() < CLOSE * size
    rng, along = np.random.default_rng(2), slopes.by("x0")
    of_x, of_u = rng.normal(size=along.x.shape[:2]), rng.normal(size=along.u.shape[:2])
    told = np.einsum("ki,kij->j", of_x, along.x) + np.einsum("ki,kij->j", of_u, along.u)
    back = slopes.adjoint(x=of_x, u=of_u)
    assert np.allclose(back["x0"], told, rtol=1e-7, atol=1e-9)
    by_mass = slopes.by("mass")
    assert back["mass"] == pytest.approx((of_x * by_mass.x).sum() + (of_u * by_mass.u).sum())


@pytest.mark.parametrize("name", HELD)
def test_derivatives_are_those_of_calls_however_inputs_are_held(name):
    """Without limits calls are exact once they converge."""
    mpc = MPC(CART, 20, 0.1, Q=1.0, R=0.3, reference=[0.0, 0.0], **HELD[name])

    def answer(state=STILL, goal=STILL, mass=0.0, acting=0.0):
        mpc.reset()
        mpc.parameters = {"mass": 1.0 + mass}
        x = state + [0.6, 0.1]
        for k in range(3):
            mpc.applied = [0.05 + acting]
            mpc(0.1 * k, x, reference=goal)
        mpc.applied = [0.05 + acting]
        return mpc(0.3, x, reference=goal)

    answer()
    check_against(answer, mpc.sensitivities(), bool(HELD[name]))


@pytest.mark.parametrize("name", HELD)
def test_derivatives_at_limits_are_those_of_solves_however_inputs_are_held(name):
    mpc = loop_of(SLOW, **HELD[name])
    mpc.applied = [-0.2]
    called = mpc(0.0, [1.2, -0.35])
    slopes, held = mpc.sensitivities(), mpc.dt
    x0, u_ref = slopes.solution.x[0], slopes.solution._setting.u_ref[0]

    def answer(state=STILL, goal=STILL, mass=0.0, acting=0.0):
        apart = bool(HELD[name])
        found = mpc.problem.solve(
            x0 + (np.append(state, acting) if apart else state),
            reference=SimpleNamespace(x=np.append(goal, [0.0] * apart), u=u_ref),
            p={"mass": 1.0 + mass}, tolerance=1e-10, guess=slopes.solution,
        )  # fmt: skip
        return found.x[0, 2:] + held * found.u[0] if apart else found.u[0]

    assert slopes.active
    assert not slopes.message
    assert np.allclose(answer(), called, atol=2e-3)
    check_against(answer, slopes, bool(HELD[name]))


def test_plans_with_delay_have_derivatives_by_the_state_that_they_begin_with():
    delayed = loop_of(delay=0.05)
    for k in range(3):
        delayed(0.1 * k, [0.9, 0.0])
    plan = delayed.sensitivities()
    assert not np.allclose(plan.solution.x[0], [0.9, 0.0], atol=1e-3)
    assert np.allclose(plan.by("x0").x[0], np.eye(2))


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
