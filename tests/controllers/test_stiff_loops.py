"""Loops of stiff plants: implicit steps in calls of the kernel, IPOPT, and what is refused."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol import simulate
from lgcontrol.codegen._internal import find_compiler
from lgcontrol.controllers import MPC
from lgcontrol.groups import Rn
from lgcontrol.integrators import get_method
from lgcontrol.optimal import InteriorPointSolver, OptimalControlProblem
from lgcontrol.optimal._internal import with_linear_inputs
from lgcontrol.optimal.kernel import _planner
from lgcontrol.optimal.kernel._library import iterations_of_a_build
from lgcontrol.systems import Input, System

FAST, DT, GOAL = 1000.0, 0.1, [1.0, 1.0]
CLOSE = 1e-3  # the first plan of a loop ends at a residual of 1e-6, and R is small
# A lag of 1 ms, which bends, drives a slow state; 100 times shorter than a step.
PLANT = System(
    "stiff", Rn(2, ("slow", "fast")),
    lambda t, x, u, p: ca.vertcat(x[1] - x[0] ** 3, FAST * (u[0] - x[1]) + 50 * ca.sin(5 * x[0])),
    inputs=[Input("push", "N", -3, 3)],
)  # fmt: skip
TERMS = {"Q": [1.0, 0.0], "R": 0.01, "reference": GOAL, "method": "radau_iia5"}


@pytest.mark.parametrize("hold", ["zero", pytest.param("first", marks=pytest.mark.thorough)])
def test_a_loop_of_a_stiff_plant_plans_as_ipopt_does(hold):
    mpc, x0 = MPC(PLANT, 8, DT, hold=hold, **TERMS), np.array([-1.0, 0.0])
    acting = mpc.applied
    mpc(0.0, x0)
    stated = OptimalControlProblem(PLANT, 8, DT, hold=hold, **TERMS)
    if hold == "first":
        wanted = with_linear_inputs(stated).solve([*x0, *acting], solver="ipopt", tolerance=1e-9)
        values = wanted.x[:, 2:]
    else:
        wanted = stated.solve(x0, solver="ipopt", tolerance=1e-9)
        values = wanted.u
    assert wanted.is_success and np.ptp(values) > 1.0
    assert mpc.plan.x == pytest.approx(wanted.x[:, :2], abs=CLOSE)
    assert mpc.plan.u == pytest.approx(values, abs=CLOSE)
    loop = MPC(PLANT, 8, DT, hold=hold, **TERMS)
    run = simulate(PLANT, loop, x0=x0, seconds=2.0)
    assert loop.solver.is_compiled == (find_compiler() is not None)
    info = run.controllers["MPC"].info
    assert (info["status"] == "ok").all() and np.mean(info["iterations"][1:]) < 2.5
    rest = run.x[-1]
    assert rest[0] == pytest.approx(1.0, abs=0.1)
    assert np.abs(PLANT.f(0.0, rest, run.u[-1], [])[0]) < 1e-2  # at rest


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_a_long_solve_goes_on_with_machine_code(monkeypatch):
    problem, x0 = OptimalControlProblem(PLANT, 8, DT, **TERMS), [-1.0, 0.0]
    plain, long = InteriorPointSolver(problem), InteriorPointSolver(problem)
    _ = plain.memory, long.memory
    needed = iterations_of_a_build(long.model, long._stages)
    assert 100 < needed < 1000  # a step of the horizon is a tenth of a millisecond, a build 1 s
    monkeypatch.setattr(_planner, "iterations_of_a_build", lambda *_: 3)
    wanted, found = plain.solve(x0, time_limit=1e3), long.solve(x0)
    assert long.is_compiled and not plain.is_compiled
    assert len(found.iterations) == len(wanted.iterations) > 5
    assert found.x == pytest.approx(wanted.x, abs=1e-9)
    whole = InteriorPointSolver(problem).prepare()  # which calls the code alike
    assert whole.memory.model.joint == long.memory.model.joint


def test_a_plan_whose_steps_do_not_solve_their_equations_is_no_answer():
    method = replace(get_method("radau_iia5"), iterations=1)
    mpc = MPC(PLANT, 8, DT, **TERMS | {"method": method})
    mpc(0.0, [-1.0, 0.0])
    assert mpc.info.status == "unsolved" and "did not solve their equations" in mpc.info.message


def test_a_loop_refuses_collocation_of_inputs():
    with pytest.raises(ValueError, match='one number a period.*method="radau_iia5": the steps'):
        MPC(PLANT, 8, DT, hold="collocation", **TERMS)


def test_an_input_held_at_its_mean_misses_the_end_of_a_linear_one():
    A, B, h, slope = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([0.0, 1.0]), 1e-3, 3.0
    plant = System("spring", Rn(2), lambda t, x, u, p: ca.DM(A) @ x + ca.DM(B) * u, inputs=["u"])
    ramp = System(
        "ramp", Rn(2), lambda t, x, u, p: ca.DM(A) @ x + ca.DM(B) * slope * t, inputs=["none"]
    )
    moved = ramp.step("rk4", 8)(0.0, [0.3, 0.1], [0.0], [], h)
    held = plant.step("rk4", 8)(0.0, [0.3, 0.1], [slope * h / 2], [], h)
    assert held - moved == pytest.approx(A @ B * slope * h**3 / 12, rel=1e-2)
