"""Rates of inputs in one word: plans, loops, and what is refused."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from lgcontrol import simulate
from lgcontrol.controllers import LQR, MPC, RealTime
from lgcontrol.groups import Product, Rn
from lgcontrol.optimal import Bound, OptimalControlProblem, Rates, Residual, with_rates
from lgcontrol.optimal.kernel._export import STATUSES
from lgcontrol.systems import Input, Parameter, System
from lgcontrol.systems._internal import with_input_rates

from ..codegen.test_export import needs_compiler
from .test_export import printed, ran

LIMIT, DT = 5.0, 0.1
# What interior points leave to limits, and what a residual of 1e-6 leaves to the inputs.
ROOM, SAME = 1e-6, 1e-4
WEIGHTS = {"Q": {"place": 1, "speed": 0.1}, "R": 1e-6, "rates": Rates(weight=0.01, limit=LIMIT)}


def trolley() -> System:
    return System(
        "trolley", Product(place=Rn(1), speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u[0] + u[1]),
        inputs=[Input("push", "N", -2, 2), Input("wind", "N", role="disturbance")],
    )  # fmt: skip


def loop(**options) -> MPC:
    return MPC(trolley(), 20, DT, reference=[0.0, 0.0], **(WEIGHTS | options))


def test_the_plan_is_that_of_least_squares():
    """Of an integrator whose inputs are held: the unknowns are its rates, within their limit."""
    integrator = System("integrator", Rn(1), lambda t, x, u, p: u, inputs=["flow"])
    N, q, r, w, start, now, most = 15, 1.0, 0.02, 0.01, 1.0, 0.3, 4.0
    problem = OptimalControlProblem(
        integrator, N, DT, Q=q, R=r, terminal=2.0, reference=[0.0], residuals=[]
    )
    plan = with_rates(problem, Rates(w, most)).solve([start, now], tolerance=1e-9)
    inputs = DT * np.tril(np.ones((N, N)))  # in step k, from the rates
    places = np.vstack([np.zeros(N), DT * np.cumsum(inputs, axis=0)])  # at node k
    first = start + DT * now * np.arange(N + 1)
    before = np.vstack([np.zeros(N), inputs[:-1]])  # what acts until node k
    A = np.vstack([
        np.sqrt(q * DT) * places[:-1], np.sqrt(2.0) * places[-1:], np.sqrt(r * DT) * before,
        np.sqrt(w * DT) * np.eye(N),
    ])  # fmt: skip
    b = np.concatenate([
        np.sqrt(q * DT) * first[:-1], np.sqrt(2.0) * first[-1:], np.sqrt(r * DT) * np.full(N, now),
        np.zeros(N),
    ])  # fmt: skip
    best = lsq_linear(A, -b, (-most, most), tol=1e-14)
    assert (np.abs(best.x) > most - 1e-9).any() and (np.abs(best.x) < most / 2).any()
    assert plan.cost == pytest.approx(best.cost, rel=1e-6)
    assert np.abs(plan.u[:, 0] - best.x).max() < SAME * most
    assert np.abs(plan.x[:, 0] - first - places @ best.x).max() < SAME


def test_plans_are_those_of_the_system_with_rates_and_those_of_ipopt():
    """Where an input is hardly held at all, those of three words; its terms are as they were."""
    bounds = [Bound("speed", -1, 1), Bound("push", upper=1.5)]
    energy = Residual(lambda t, x, u, p: x[1] * u[0], 0.1, name="power")
    problem = OptimalControlProblem(
        trolley(), 20, DT, Q=WEIGHTS["Q"], R=0.02, reference=[0.0, 0.0], bounds=bounds,
        residuals=[energy],
    )  # fmt: skip
    rates = Rates({"push": 0.01}, {"push": LIMIT})
    found = with_rates(problem, rates, period=1e-9).solve([2.0, 0.0, 0.5])
    words = OptimalControlProblem(
        with_input_rates(trolley(), LIMIT), 20, DT, Q=WEIGHTS["Q"] | {"input": 0.02},
        terminal={"place": 2.0, "speed": 0.2}, R=0.01, reference=np.zeros(3),
        bounds=[Bound("speed", -1, 1), Bound("input", -2, 1.5)],
        residuals=[Residual(lambda t, x, u, p: x[1] * x[2], 0.1)],
    ).solve([2.0, 0.0, 0.5])  # fmt: skip
    assert found.cost == pytest.approx(words.cost, rel=1e-6)
    assert np.abs(found.x - words.x).max() < SAME
    held = with_rates(problem, rates)
    ours, ipopt = held.solve([2.0, 0.0, 0.5]), held.solve([2.0, 0.0, 0.5], solver="ipopt")
    assert ours.cost == pytest.approx(ipopt.cost, rel=1e-5)
    assert ours.x[:, 1].min() == pytest.approx(-1.0, abs=1e-4)
    assert abs(ours.cost / found.cost - 1) > 1e-3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"real_time": RealTime(period=0.05)},
        {"delay": 0.13},
        {"real_time": RealTime(split=True)},
    ],
)
def test_a_loop_of_the_plant_keeps_limits_of_inputs_and_rates(options):
    mpc = loop(bounds=[Bound("push", upper=1.2)], **options)
    run = simulate(trolley(), mpc, x0=[2.0, 0.0], seconds=6.0)
    assert run.is_success and np.abs(run.x[-1]).max() < 0.02
    period = mpc.dt
    assert run.input_names == ("push", "wind") and run.x.shape[1] == 2
    assert (run.u[:, 0] <= 1.2).all() and (run.u[:, 0] >= -2).all()
    steps = np.abs(np.diff(run.u[:, 0], prepend=0.0))
    assert steps.max() <= LIMIT * period + ROOM
    assert steps.max() == pytest.approx(LIMIT * period, rel=1e-2)
    assert run.u[:, 0].min() < -1.8  # it takes several periods to get there
    assert mpc.Q.shape == (2, 2) and mpc.plan is not None
    assert mpc.plan.x.shape == (21, 2) and mpc.plan.u.shape == (20, 2)


def test_plans_tell_what_inputs_that_are_held_do():
    """To the third power of the step: inside of one the input is not the ramp that is planned."""
    mpc, x, off = loop(), np.array([2.0, 0.0]), []
    for k in range(15):
        u = mpc(DT * k, x)
        assert mpc.plan.u[0, 0] == pytest.approx(u[0], abs=ROOM)
        planned = mpc.plan.x[1]
        x = trolley().step()(0.0, x, [*u, 0.0], [], DT)
        off.append(np.abs(planned - x).max())
    assert max(off) == pytest.approx(LIMIT * DT**3 / 12, rel=1e-3)


def test_rates_begin_at_what_was_applied():
    mpc = loop()
    first = mpc(0.0, [2.0, 0.0])
    assert first == pytest.approx([-LIMIT * DT], abs=1e-3)
    assert np.array_equal(mpc.applied, first)
    assert np.array_equal(mpc(0.1, [np.nan, 0.0]), first) and mpc.info.status == "held"
    assert mpc(0.2, [2.0, 0.0]) == pytest.approx(first - LIMIT * DT, abs=1e-3)
    mpc.applied = [1.0]  # somebody took over
    assert mpc(0.3, [2.0, 0.0]) == pytest.approx([1.0 - LIMIT * DT], abs=1e-3)
    mpc.reset()
    assert np.array_equal(mpc.applied, [0.0])
    assert mpc(0.0, [2.0, 0.0]) == pytest.approx(first, abs=1e-6)


def test_limits_goals_and_loads_change_between_calls():
    mpc = loop(
        Q={"speed": 0.1}, residuals=[Residual(lambda t, x, u, p: x[0] - p[0], 2.0, 4.0)],
        parameters=[Parameter("goal", "m", 1.0)],
    ).symbolic("push.upper")  # fmt: skip
    assert mpc.parameters == {"goal": 1.0, "push.upper": 2.0}
    x, answers = np.zeros(2), [0.0]
    for k in range(60):
        u = mpc(DT * k, x, p={"goal": 2.0, "push.upper": 0.8})
        x = trolley().step()(0.0, x, [*u, 0.0], [], DT)
        answers.append(u[0])
    assert x == pytest.approx([2.0, 0.0], abs=0.02)
    assert max(answers) == pytest.approx(0.8, abs=1e-3) and max(answers) <= 0.8
    assert np.abs(np.diff(answers)).max() <= LIMIT * DT + ROOM


def test_a_preview_answers_as_the_whole_call():
    whole, early = loop(rates=Rates(0.05)), loop(rates=Rates(0.05))
    x = np.array([0.4, 0.1])
    for mpc in (whole, early):
        u = mpc(0.0, x)
    early.preview(0.1)
    after = trolley().step()(0.0, x, [*u, 0.0], [], DT) + [0.01, -0.02]
    answer = early.feedback(after)
    assert early.info.is_feedback
    assert answer == pytest.approx(whole(0.1, after), abs=1e-3)
    assert abs(answer - u)[0] > 0.01


@needs_compiler
def test_the_exported_controller_takes_measured_states_and_answers_inputs(tmp_path):
    mpc = loop()
    folder = mpc.export_c(tmp_path / "cart", name="cart", x0=[2.0, 0.0], calls=4)
    code, text = ran(folder, tmp_path)
    assert code == 0, text
    header = " ".join((folder / "cart.h").read_text().split())
    assert "CART_NS 2 " in header and "CART_U_PUSH" in header and "CART_U_PUSH_RATE" not in header
    body = (  # where there is no state what acts is held
        "  double x[CART_NS] = {2, 0}, u[CART_NU];\n  cart_init(&m);\n"
        "  for (int k = 0; k < 3; k++) {\n"
        "    const int status = cart_step(&m, CART_PERIOD * k, x, u);\n"
        '    printf("%d %.17g\\n", status, u[0]);\n    if (k == 1) x[0] = NAN;\n  }\n'
    )
    first, second, third = printed(folder, body, tmp_path)
    assert [STATUSES[int(row[0])] for row in (first, second, third)] == ["OK", "OK", "HELD"]
    assert first[1] == pytest.approx(-LIMIT * DT, abs=1e-3)
    assert abs(second[1] - first[1]) <= LIMIT * DT + ROOM and third[1] == second[1] != first[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": 5.0}, r"rates must be Rates\(weight=…, limit=…\), not 5.0"),
        ({"rates": Rates(limit={"pull": 1.0})}, "unknown control 'pull'; valid: push|pull"),
        ({"rates": Rates(limit=-1.0)}, "the limit of rates must be positive, got -1.0"),
        ({"rates": Rates(weight=0.0)}, "weight of the rates"),
        ({"bounds": [Bound("speed", upper="most")]}, "most"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises((TypeError, ValueError, KeyError), match=message):
        loop(**options)


def test_what_plans_of_rates_cannot_do_is_said():
    with pytest.raises(ValueError, match="weights that are parameters do not go together.*Q"):
        loop().symbolic("Q.place")
    law = LQR(trolley(), trolley().state.identity)
    with pytest.raises(TypeError, match="with rates plans start from a word"):
        loop(guess=law)
