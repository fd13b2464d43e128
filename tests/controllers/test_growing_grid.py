"""Loops whose steps grow along the horizon: warm starts, cost and firmware."""

import numpy as np
import pytest

from lgcontrol import simulate
from lgcontrol.controllers import MPC
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, InteriorPointSolver, NLPSolver, OptimalControlProblem
from lgcontrol.optimal.kernel._export import STATUSES
from lgcontrol.systems import Input, System

from ..codegen.test_export import needs_compiler
from ..optimal.examples import pendulum
from ..optimal.test_interior_point import in_numpy
from .test_export import printed, ran

GROWING = np.array([0.05] * 6 + [0.1] * 4 + [0.2] * 4 + [0.4] * 4)
UP, DOWN = [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]
SWING = {"Q": {"angle": 1.0, "rate": 0.1}, "R": 0.01, "terminal": 10.0, "reference": UP}
# Different order of the same operations.
ROUNDING = 1e-9


def cart(**options) -> OptimalControlProblem:
    system = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=["push"])
    return OptimalControlProblem(
        system, len(GROWING), GROWING, Q=[1.0, 0.1], R=0.1, terminal=1.0, reference=[0.0, 0.0],
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("later", [0.05, 0.12, 0.0, 1.0, 9.0])
def test_one_step_from_a_shifted_plan_is_optimal_where_all_is_linear(later):
    solver = InteriorPointSolver(cart())
    plan = solver.solve([1.0, 0.0]).plan
    x = [0.9, -0.3]
    stepped = solver.step(x, plan=plan, t0=later, iterations=2)
    fresh = cart().solve(x, t0=later, tolerance=1e-9)
    assert np.allclose(stepped.u, fresh.u, atol=1e-6)
    assert np.allclose(stepped.x, fresh.x, atol=1e-6)


@pytest.mark.parametrize("later", [0.05, 0.12, 0.37, 2.0])
def test_the_kernel_shifts_as_numpy_does(later):
    limited = [Bound("rate", -1.2, 1.2)]
    problem = OptimalControlProblem(pendulum(), len(GROWING), GROWING, bounds=limited, **SWING)
    x, found = [np.cos(0.2), np.sin(0.2), 0.3], []
    for solver in (InteriorPointSolver(problem), in_numpy(problem)):
        plan = solver.solve(DOWN, max_iterations=12).plan
        found.append(solver.step(x, plan=plan, t0=later))
    assert np.allclose(found[0].x, found[1].x, rtol=0, atol=ROUNDING)
    assert np.allclose(found[0].u, found[1].u, rtol=0, atol=ROUNDING)


def test_other_solvers_shift_too():
    solver = NLPSolver(cart())
    plan = solver.solve([1.0, 0.0]).plan
    stepped = solver.step([0.9, -0.3], plan=plan, t0=0.05, iterations=20)
    assert np.allclose(stepped.u, cart().solve([0.9, -0.3]).u, atol=1e-4)


def swung(horizon: int, dt) -> tuple[float, float]:
    """Cost of a run and iterations of its calls, of a pendulum that must swing to get up."""
    mpc = MPC(pendulum(), horizon, dt, **SWING)
    run = simulate(pendulum(), mpc, x0=DOWN, seconds=12.0, record_dt=0.02)
    error = pendulum().state.minus(np.tile(UP, (len(run.x), 1)), run.x)
    info = run.controllers["MPC"].info
    assert (info["status"] == "ok").all()
    return float((error**2 @ [1.0, 0.1]).sum()) * 0.01, float(np.mean(info["iterations"][1:]))


def test_few_growing_steps_do_what_many_equal_ones_do():
    grid = np.concatenate([np.full(10, 0.05), np.full(8, 0.1), np.full(8, 0.2), np.full(8, 0.4)])
    many, few = round(grid.sum() / 0.05), len(grid)
    assert (many, few) == (122, 34)
    equal, _ = swung(many, 0.05)
    growing, iterations = swung(few, grid)
    short, _ = swung(few, 0.05)
    assert growing < 1.05 * equal
    assert short > 1.3 * equal  # what as many equal steps see is too short
    assert iterations < 2.5


def test_the_period_is_the_first_step():
    mpc = MPC(pendulum(), len(GROWING), GROWING, **SWING)
    assert mpc.dt == 0.05
    assert "0.05 to 0.4 s" in repr(mpc)
    mpc(0.0, DOWN)
    assert mpc.plan.t[-1] == pytest.approx(GROWING.sum())
    assert np.allclose(np.diff(mpc.plan.t), GROWING)


@needs_compiler
def test_firmware_has_the_same_grid(tmp_path):
    system = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=[Input("push", "N", -1, 1)]
    )
    mpc = MPC(system, len(GROWING), GROWING, Q=[1.0, 0.1], R=0.1, reference=[0.0, 0.0])
    folder = mpc.export_c(tmp_path / "cart", name="cart", x0=[1.0, 0.0], calls=6)
    code, text = ran(folder, tmp_path)
    assert code == 0, text
    assert "in the mean; lg_steps has them" in (folder / "cart.h").read_text()
    body = (
        "  double x[CART_NS] = {1, 0}, u[CART_NU];\n  cart_init(&m);\n"
        "  for (int k = 0; k < 4; k++) {\n"
        "    const int status = cart_step(&m, CART_PERIOD * k, x, u);\n"
        '    printf("%d %.17g\\n", status, u[0]);\n    x[0] -= 0.05, x[1] -= 0.1;\n  }\n'
    )
    rows = printed(folder, body, tmp_path)
    mpc.prepare()
    mpc.reset()
    x, wanted = np.array([1.0, 0.0]), []
    for k in range(4):
        wanted.append(mpc(mpc.dt * k, x)[0])
        assert STATUSES[int(rows[k][0])] == mpc.info.status.name
        x = x - [0.05, 0.1]
    assert np.allclose([row[1] for row in rows], wanted, rtol=0, atol=ROUNDING)
