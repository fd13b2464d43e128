"""Loops whose controls are linear in time: plans, the plant under them, firmware, refusals."""

import re

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgcontrol import simulate
from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import MPC, RealTime, SteadyDisturbance, _mpc_export
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.optimal import Bound, OptimalControlProblem, Rates
from lgcontrol.optimal.kernel._export import STATUSES
from lgcontrol.simulation import Pulse
from lgcontrol.systems import Input, System

from ..codegen.test_export import needs_compiler
from .test_export import printed, ran

DT = 0.4
WEIGHTS = {"Q": [1.0, 0.1], "R": 0.05, "terminal": 1.0, "reference": [0.0, 0.0]}
# What the interior point leaves to limits, and a residual of 1e-6 to the inputs.
SAME = 1e-3
ONE_STEP = 2e-4  # rk4 in one step of 0.4 s


def cart() -> System:
    return System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1] - 0.3 * ca.sin(x[0])],
        inputs=[Input("push", "N", -1.5, 1.5), Input("wind", "N", role="disturbance")],
    )  # fmt: skip


def loop(**options) -> MPC:
    return MPC(cart(), 12, DT, **(WEIGHTS | {"hold": "first"} | options))


def test_the_first_plan_is_that_of_ipopt_from_the_input_that_acts():
    mpc = loop()
    mpc.applied = np.array([0.4])
    u = mpc(0.0, [1.0, 0.0])
    start = Bound("push", 0.4, 0.4, at="start")
    problem = OptimalControlProblem(cart(), 12, DT, hold="first", bounds=[start], **WEIGHTS)
    wanted = problem.solve([1.0, 0.0], solver="ipopt", tolerance=1e-9)
    assert np.allclose(mpc.plan.u[:, 0], wanted.u[:, 0], atol=SAME)
    assert np.allclose(mpc.plan.x, wanted.x, atol=SAME)
    assert mpc.plan.hold == "first" and len(mpc.plan.u) == 13
    assert u == pytest.approx(mpc.plan.u[1, :1])
    assert (np.abs(wanted.u) > 1.5 - SAME).any()  # limits matter


def test_the_plant_moves_as_planned():
    """By another integrator under the ramps between answers, with wind beside."""
    mpc, plant = loop(), cart()
    run = simulate(plant, mpc, x0=[1.0, 0.0], seconds=5 * DT, tolerance=1e-9)
    answers = np.concatenate([[0.0], run.controllers["MPC"].command[:, 0]])

    def rate(t, y, wind=0.0):
        u = np.interp(t, DT * np.arange(len(answers)), answers)
        return [y[1], u + wind - 0.3 * np.sin(y[0])]

    wanted = solve_ivp(rate, (0.0, 5 * DT), [1.0, 0.0], max_step=0.01, rtol=1e-10)
    assert np.allclose(run.x[-1], wanted.y[:, -1], atol=1e-5)
    # Answers between nodes of the plan are ramps of it: every period the state is the planned one.
    mpc.reset()
    mpc(0.0, [1.0, 0.0])
    assert np.allclose(run.x[run.t.searchsorted(DT)], mpc.plan.x[1], atol=ONE_STEP)
    # The mean of each ramp is on record.
    held = run.u[run.t.searchsorted(0.0), 0]
    assert held == pytest.approx((answers[0] + answers[1]) / 2, abs=1e-9)


def test_rates_are_those_of_the_ramps():
    mpc = loop(rates=Rates(weight=1e-3, limit=1.0))
    run = simulate(cart(), mpc, x0=[1.0, 0.0], seconds=4.0)
    answers = np.concatenate([[0.0], run.controllers["MPC"].command[:, 0]])
    steps = np.abs(np.diff(answers)) / DT
    assert steps.max() <= 1.0 + 1e-6 and (steps > 1.0 - 1e-3).any()
    assert np.abs(run.x[-1]).max() < 0.05


def test_an_answer_within_a_step_is_where_the_plan_is_then():
    mpc = loop(real_time=RealTime(period=DT / 4))
    mpc.applied = np.array([0.2])
    for k in range(3):
        u = mpc(k * DT / 4, [1.0, 0.0])
        assert u == pytest.approx(mpc.plan((k + 1) * DT / 4).u[:1], abs=1e-9)


@pytest.mark.parametrize("delay, period", [(0.3, DT), (1.0, DT), (0.5, DT / 2)])
def test_plans_begin_where_the_ramps_under_way_lead(delay, period):
    """The predicted state and control against those of the plant, by its own integrator."""
    mpc = loop(substeps=4, delay=delay, real_time=RealTime(period=period))
    run = simulate(cart(), mpc, x0=[1.0, 0.0], seconds=4.0, record_dt=0.1)
    log, known = (
        run.controllers["MPC"],
        {round(10 * t): x for t, x in zip(run.t, run.x, strict=True)},
    )
    took_effect = np.concatenate([[log.t[0] + delay], log.t + delay + period])
    reached = np.concatenate([[0.0], log.command[:, 0]])
    mpc.reset()
    mpc.prepare(0.0, [1.0, 0.0])
    for t, before in zip(log.t, log.command, strict=True):
        u = mpc(t, known[round(10 * t)])
        assert u == pytest.approx(before, abs=1e-9)
        if t + delay < 4.0:
            assert np.allclose(mpc.plan.x[0], known[round(10 * (t + delay))], atol=1e-5)
            at = np.interp(t + delay, took_effect, reached)
            assert mpc.plan.u[0, 0] == pytest.approx(at, abs=1e-9)
    assert np.abs(run.x[-1]).max() < 0.1


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_split_calls_answer_as_whole_ones(delay):
    whole, split = loop(delay=delay), loop(delay=delay, real_time=RealTime(split=True))
    runs = [simulate(cart(), mpc, x0=[1.0, 0.0], seconds=4.0) for mpc in (whole, split)]
    assert np.allclose(runs[0].x, runs[1].x, atol=1e-3)
    assert runs[1].controllers["MPC"].info["is_feedback"][1:].all()


@pytest.mark.parametrize("options", [{}, {"delay": 0.3}, {"rates": Rates(limit=2.0)}])
def test_a_steady_wind_leaves_no_error(options):
    runs = [
        simulate(
            cart(), loop(disturbance=names, **options), x0=[1.0, 0.0], seconds=12.0,
            disturbances=[Pulse({"wind": 0.4}, start=0.0)],
        )
        for names in (SteadyDisturbance("wind", settling=DT), ())
    ]  # fmt: skip
    assert np.abs(runs[0].x[-1]).max() < 2e-3 < 0.05 < np.abs(runs[1].x[-1]).max()
    assert "in Python" not in runs[0].execution


@needs_compiler
def test_firmware_answers_as_python_does(tmp_path):
    mpc = loop(delay=0.5, disturbance="wind")
    folder = mpc.export_c(tmp_path / "cart", name="cart", x0=[1.0, 0.0], calls=5)
    header = (folder / "cart.h").read_text()
    assert "controls, the answer at the end of PERIOD" in header
    assert "let the actuator move from one answer to the" in header
    code, text = ran(folder, tmp_path)
    assert code == 0, text
    vectors = (folder / "cart_test.h").read_text().split("test_x[10] = {")[1].split("}")[0]
    states = np.array([float(value) for value in vectors.split(",") if value.strip()])
    run = simulate(cart(), loop(delay=0.5, disturbance="wind"), x0=[1.0, 0.0], seconds=4 * DT)
    calls = [np.abs(run.t - k * DT).argmin() for k in range(5)]
    assert np.allclose(states.reshape(5, 2), run.x[calls], atol=1e-3)  # ramps, from 0.5 s on
    body = (
        "  double x[CART_NS] = {1, 0}, u[CART_NU];\n  cart_init(&m);\n"
        "  for (int k = 0; k < 3; k++) {\n"
        "    const int status = cart_step(&m, CART_PERIOD * k, x, u);\n"
        '    printf("%d %.17g\\n", status, u[0]);\n    x[0] -= 0.1, x[1] -= 0.3;\n  }\n'
    )
    rows = printed(folder, body, tmp_path)
    mpc.prepare()
    mpc.reset()
    x, wanted = np.array([1.0, 0.0]), []
    for k in range(3):
        wanted.append(mpc(mpc.dt * k, x)[0])
        assert STATUSES[int(rows[k][0])] == mpc.info.status.name
        x = x - [0.1, 0.3]
    assert np.allclose([row[1] for row in rows], wanted, rtol=0, atol=1e-9)


def test_what_moving_controls_cannot_do_is_refused():
    with pytest.raises(ValueError, match="a period longer than dt is for held ones"):
        loop(real_time=RealTime(period=2 * DT))
    with pytest.raises(UnknownNameError, match="hold of an MPC"):
        loop(**{"hold": "second"})
    with pytest.raises(ValueError, match="cannot be linear in time"):
        simulate(cart().discretize(DT), loop(), x0=[1.0, 0.0], seconds=DT)


def trolley() -> System:
    """A load that sways on a rope below."""
    return System(
        "trolley", Product(place=Rn(1), speed=Rn(1), sway=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u, x[4], -9.81 * x[3] - u * x[2]),
        inputs=[Input("push", "m/s²", -3, 3)],
    )  # fmt: skip


@needs_compiler
def test_test_vectors_end_where_rounding_alone_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(_mpc_export, "LARGEST_TOLERANCE", 5e-10)  # less than that of any call
    with pytest.warns(RuntimeWarning, match="test vectors end after 0 of 3 calls") as told:
        folder = loop(hold="zero").export_c(tmp_path / "cart", name="cart", calls=3)
    assert told[0].filename == __file__
    assert "test_first[2] = {\n  0, 0\n}" in (folder / "cart_test.h").read_text()
    code, text = ran(folder, tmp_path)
    assert code == 0 and "calls: 0," in text, text


@pytest.mark.thorough
@needs_compiler
def test_code_without_bounds_on_states_builds_without_warnings(tmp_path):
    """Of values that nothing writes, gcc warned if it optimised."""
    folder = loop(hold="zero").export_c(tmp_path / "cart", name="cart", calls=3)
    code, text = ran(folder, tmp_path, level="-O2")
    assert code == 0 and "calls: 3," in text, text


@needs_compiler
@pytest.mark.filterwarnings("ignore:test vectors end after:RuntimeWarning")
def test_test_vectors_know_how_rounding_grows_and_still_find_a_fault(tmp_path):
    """At the limit of its speed the trolley's calls let rounding grow, 1e9 times in 18 calls.

    So the processor decides how many of 24 calls have test vectors: without AVX-512 it is 17.
    """
    mpc = MPC(
        trolley(), 20, 0.1, Q={"place": 2, "speed": 0.5, "sway": 5, "rate": 0.5}, R=0.05,
        reference=[0, 0, 1, 0, 0], hold="first", delay=0.05, bounds=[Bound("speed", -1, 1)],
    )  # fmt: skip
    folder = mpc.export_c(tmp_path / "trolley", name="trolley", x0=[2, 0, 1, 0, 0], calls=24)
    code, text = ran(folder, tmp_path)
    largest = float(re.search(r"from Python: ([^,]+),", text)[1])
    count = int(re.search(r"calls: (\d+)", text)[1])
    assert code == 0 and count >= 12 and largest > 1e-8, text
    source = folder / "trolley.c"
    right = source.read_text(encoding="utf-8")
    wrong = right.replace("c->delay = 0.05", "c->delay = 0.0501")
    assert wrong != right
    source.write_text(wrong, encoding="utf-8")
    code, text = ran(folder, tmp_path)
    assert code == 1, text
