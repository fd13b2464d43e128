"""Loops with move blocking: warm starts, cost, calls in C and NumPy, firmware, refusals."""

import numpy as np
import pytest

from lgcontrol import simulate
from lgcontrol.controllers import MPC, RealTime
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem, Rates, with_rates
from lgcontrol.optimal._guess import moved_on
from lgcontrol.optimal._internal import with_free_rates
from lgcontrol.optimal._transcription import Nodes
from lgcontrol.optimal.kernel._export import STATUSES

from ..codegen.test_export import needs_compiler
from ..optimal.examples import pendulum
from ..optimal.test_interior_point import in_numpy
from .test_export import printed, ran

BLOCKS = [1] * 4 + [2] * 4 + [4] * 4
STEPS, DT = sum(BLOCKS), 0.15
UP, DOWN = [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]
SWING = {"Q": {"angle": 1.0, "rate": 0.1}, "R": 0.01, "terminal": 10.0, "reference": UP}
LIMITED = Bound("rate", -1.8, 1.8)
ROUNDING = 1e-9  # different order of the same operations


def swing(**options) -> MPC:
    return MPC(pendulum(), STEPS, DT, **(SWING | {"blocks": BLOCKS} | options))


def swung(mpc: MPC, seconds: float = 9.0):
    """A run and its cost, of a pendulum that must swing to get up."""
    run = simulate(pendulum(), mpc, x0=DOWN, seconds=seconds, record_dt=0.05)
    error = pendulum().state.minus(np.tile(UP, (len(run.x), 1)), run.x)
    return run, float((error**2 @ [1.0, 0.1]).sum()) * 0.025


def test_a_loop_in_blocks_costs_what_one_of_all_steps_does():
    (_, free), (run, blocked) = swung(swing(blocks=None)), swung(swing())
    info = run.controllers["MPC"].info
    assert (info["status"] == "ok").all()
    assert blocked < 1.01 * free
    assert np.mean(info["iterations"][1:]) < 2.5
    assert np.abs(run.u).max() <= 0.5
    assert "interpreted: the controller" not in run.execution


def test_blocks_stay_where_they_are_and_a_plan_moves_on_to_them():
    mpc = swing(bounds=[LIMITED], Q={"angle": 2.0, "rate": 0.1})
    x, may = np.array(DOWN), mpc._stated.may_change[:, 0]
    for k in range(6):
        u = mpc(k * DT, x)
        plan = mpc.plan
        assert u == pytest.approx(plan.u[0, :1], abs=1e-9)
        assert np.abs(np.diff(plan.u[:, 0])[may[1:] == 0]).max() < 1e-9
        fresh = OptimalControlProblem(
            pendulum(), STEPS, DT, blocks=BLOCKS, bounds=[LIMITED],
            **(SWING | {"Q": {"angle": 2.0, "rate": 0.1}}),
        ).solve(x, guess=plan)  # fmt: skip
        assert u == pytest.approx(fresh.u[0, :1], abs=0.02)
        x = pendulum().step("rk4", 4)(0.0, x, u, {}, DT)


@pytest.mark.parametrize("later", [0.0, DT, 0.4 * DT, 3.3 * DT])
@pytest.mark.parametrize("dt", [DT, DT * np.geomspace(0.5, 2.0, STEPS)], ids=["equal", "growing"])
def test_the_kernel_moves_blocks_as_numpy_does(dt, later):
    stated = OptimalControlProblem(pendulum(), STEPS, dt, blocks=BLOCKS, bounds=[LIMITED], **SWING)
    problem, found = with_free_rates(stated), []
    x = [np.cos(0.2), np.sin(0.2), 0.3, 0.1]
    for solver in (InteriorPointSolver(problem), in_numpy(problem)):
        plan = solver.solve([*DOWN, 0.0], max_iterations=15).plan
        found.append(solver.step(x, plan=plan, t0=later))
    assert np.allclose(found[0].x, found[1].x, rtol=0, atol=ROUNDING)
    assert np.allclose(found[0].u, found[1].u, rtol=0, atol=ROUNDING)


def test_a_plan_that_moved_on_has_the_mean_of_each_block():
    problem = with_free_rates(OptimalControlProblem(pendulum(), STEPS, DT, blocks=4, **SWING))
    found = problem.solve([*DOWN, 0.0])
    acts, x0 = found.x[1:, -1], np.array([*DOWN, 0.2])
    last = Nodes(found.t, found.x, found.u)
    for later, wanted in (
        (DT, np.append(acts[1:], acts[-1])),
        (0.25 * DT, 0.75 * acts + 0.25 * np.append(acts[1:], acts[-1])),
    ):
        moved = moved_on(problem, last, problem.times(later), found._setting, x0)
        means = np.repeat(wanted.reshape(-1, 4).mean(axis=1), 4)
        assert np.allclose(moved.x[1:, -1], means, atol=1e-9)
        changes = np.diff(np.append(0.2, means)) / DT
        assert np.allclose(moved.u[:, 0], changes, atol=1e-7)
    assert np.abs(np.diff(acts)).max() > 0.2


def test_a_loop_in_blocks_keeps_limits_of_rates():
    limit, wanted = 0.5, None
    for blocks in (None, BLOCKS):
        run, cost = swung(swing(blocks=blocks, rates=Rates(weight=1e-3, limit=limit)))
        changes = np.abs(np.diff(run.u[:, 0], prepend=0.0))
        assert (run.controllers["MPC"].info["status"] == "ok").all()
        assert changes.max() <= limit * DT + 1e-6
        assert changes.max() == pytest.approx(limit * DT, rel=1e-2)
        assert np.abs(run.u).max() <= 0.5
        wanted = wanted or cost
    assert cost < 1.03 * wanted


@needs_compiler
@pytest.mark.parametrize(
    "rates", [pytest.param(None, marks=pytest.mark.thorough), Rates(weight=1e-3, limit=0.5)]
)
def test_firmware_answers_as_python_does(tmp_path, rates):
    mpc = swing(bounds=[LIMITED], delay=0.2, rates=rates)
    # From rest it may swing to either side.
    x0 = [np.cos(0.2), np.sin(0.2), 0.1]
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=x0, calls=6)
    code, text = ran(folder, tmp_path)
    assert code == 0, text
    assert "not step.begin, step.length and *.may_change" in (folder / "swing.h").read_text()
    body = (
        f"  double x[SWING_NS] = {{{x0[0]!s}, {x0[1]!s}, {x0[2]}}}, u[SWING_NU];\n"
        "  double x_ref[SWING_NX], u_ref[SWING_NI] = {0};\n"
        "  swing_init(&m);\n  for (int i = 0; i < SWING_NX; i++) x_ref[i] = m.x_ref[0][i];\n"
        "  swing_hold(&m, x_ref, u_ref);\n"
        "  for (int k = 0; k < 4; k++) {\n"
        "    const int status = swing_step(&m, 50 + SWING_PERIOD * k, x, u);\n"
        '    printf("%d %.17g\\n", status, u[0]);\n    x[2] += 0.1;\n  }\n'
    )
    rows = printed(folder, body, tmp_path)
    mpc.prepare()
    mpc.reset()
    x, wanted = np.array(x0), []
    for k in range(4):
        wanted.append(mpc(50 + mpc.dt * k, x)[0])
        assert STATUSES[int(rows[k][0])] == mpc.info.status.name
        x = x + [0.0, 0.0, 0.1]
    assert np.allclose([row[1] for row in rows], wanted, rtol=0, atol=ROUNDING)


def test_derivatives_of_the_answer_are_those_of_differences():
    mpc = swing(blocks=5, Q={"angle": 1.0, "rate": 1.0}, R=1.0, reference=DOWN)
    x = np.array([np.cos(0.1), np.sin(0.1), 0.0])
    mpc(0.0, x)
    slope = mpc.sensitivities().by("x0").u[0, 0]

    def answer(rate: float) -> float:
        other = swing(blocks=5, Q={"angle": 1.0, "rate": 1.0}, R=1.0, reference=DOWN)
        return other(0.0, x + [0.0, 0.0, rate])[0]

    assert slope[1] == pytest.approx((answer(1e-3) - answer(-1e-3)) / 2e-3, rel=1e-3)


def test_what_blocks_cannot_do_is_refused():
    with pytest.raises(ValueError, match="blocks have 3 steps, the horizon has 28"):
        swing(blocks=[1, 2])
    with pytest.raises(ValueError, match="give one of the two"):
        swing(hold="first")
    problem = OptimalControlProblem(pendulum(), STEPS, DT, blocks=BLOCKS, **SWING)
    with pytest.raises(ValueError, match=r"MPC\(…, rates=…, blocks=…\) plans in blocks"):
        with_rates(problem, Rates(weight=0.1))
    with pytest.raises(ValueError, match=r"the period is 0.1 s: .* Begin with .* dt=\[0.1, …\]"):
        swing(rates=Rates(weight=0.1), real_time=RealTime(period=0.1))
    assert swing(blocks=1)._stated.may_change is None
    plan = OptimalControlProblem(pendulum(), STEPS, DT, **SWING).solve(DOWN).trajectory
    with pytest.raises(TypeError, match="with blocks plans start from a word"):
        swing(guess=plan)
    assert swing(real_time=RealTime(period=0.1)).dt == 0.1
