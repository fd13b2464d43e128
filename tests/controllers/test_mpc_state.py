"""The state of an MPC is a value: copied, pickled, saved, stacked, refused by another task."""

import io
import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC, RealTime
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    NLPSolver,
    Plan,
    Rates,
)
from lgcontrol.systems import Input, System

from ..benchmarks._sqp_peer import SQPSolver

UP = np.array([-1.0, 0.0, 0.0])
PENDULUM = System(
    "pendulum", Product(angle=SO2, rate=Rn(1)),
    lambda t, x, u, p: ca.vertcat(x[2], 2 * u[0] + u[1] - ca.sin(x[1]) * p),
    inputs=[Input("torque", "N m", -1, 1), Input("push", "N m", role="disturbance")],
    parameters=["gravity"],
)  # fmt: skip


def swing(**options):
    options = {"horizon": 12, "reference": UP, "p": [1.0]} | options
    return MPC(PENDULUM, dt=0.1, Q={"angle": 1, "rate": 0.1}, R=0.05, **options)


LOOPS = {
    "plain": {},
    "late, disturbed, limited": {
        "delay": 0.15, "disturbance": "push", "bounds": [Bound("rate", -0.6, 0.6)],
    },
    "rates": {"rates": Rates(weight=0.1, limit=4.0)},
    "restarts at once": {"real_time": RealTime(restarts="at once")},
}  # fmt: skip


def run(mpc, x, first, last):
    """Calls along a loop that is pushed, and whose goal jumps."""
    answers = []
    for k in range(first, last):
        goal = UP if k < 7 else [np.cos(2.5), np.sin(2.5), 0.0]
        u = mpc(0.1 * k, x, goal)
        answers.append(np.r_[u, mpc.info.iterations, mpc.info.cost])
        x = PENDULUM.step()(0.0, x, np.r_[u, 0.3], [1.0], 0.1)
    return x, answers


@pytest.mark.usually(name=("late, disturbed, limited",))
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_goes_on_from_its_state_to_the_last_bit(name):
    mpc = swing(**LOOPS[name])
    mpc.reset()  # compiled, as the others are
    x, _ = run(mpc, np.array([np.cos(2.2), np.sin(2.2), 0.0]), 0, 5)
    state = mpc.state
    _, want = run(mpc, x, 5, 10)
    saved = io.BytesIO()
    np.save(saved, state.column())
    saved.seek(0)
    taken = {
        "itself": state,
        "pickled": pickle.loads(pickle.dumps(state)),
        "saved": Plan.from_column(state.layout, np.load(saved)),
        "one of a batch": Plan.from_column(state.layout, np.stack([state.column()] * 3)[1]),
    }
    for how, other in taken.items():
        again = swing(**LOOPS[name])
        again.reset(other)
        assert np.array_equal(again.state.column(), state.column(), equal_nan=True), how
        _, have = run(again, x, 5, 10)
        assert np.array_equal(have, want), how
    mpc.reset(state)  # the same loop goes back
    assert np.array_equal(run(mpc, x, 5, 10)[1], want)
    mpc.reset()
    assert np.isnan(mpc.state["status"]) and mpc.plan is None


@pytest.mark.compiled
def test_states_of_python_and_of_machine_code_are_the_same():
    """A loop that began interpreted goes on compiled, and its memory keeps two loops apart."""
    x0 = np.array([np.cos(2.2), np.sin(2.2), 0.0])
    plain, built = swing(), swing()
    built.reset()
    assert built.solver.is_compiled
    x, _ = run(plain, x0, 0, 4)
    state = plain.state
    built.reset(state)
    _, want = run(plain, x, 4, 9)
    _, have = run(built, x, 4, 9)
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)
    a, b = swing(), swing(bounds=[Bound("rate", -0.6, 0.6)])
    for mpc in (a, b):
        mpc.reset()
        run(mpc, x0, 0, 3)
    first = a._loop.plan.found.plan
    ends = [
        a.solver.step(x, plan=first, reference=UP, t0=0.3) for _ in range(2)
    ]  # the memory moved on
    assert np.array_equal(ends[0].plan.numbers, ends[1].plan.numbers)


def test_a_state_of_another_task_and_a_damaged_one_are_refused():
    mpc, other = swing(), swing(horizon=15)
    run(mpc, UP, 0, 2)
    state = mpc.state
    with pytest.raises(ValueError, match="MPC of pendulum .* 12 steps .* expected .* 15 steps"):
        other.reset(state)
    with pytest.raises(ValueError, match="expected one of MPC of pendulum"):
        swing(delay=0.1).reset(state)
    assert other.state.number("clock") == 0.0  # nothing was lost
    for place, message in ((0, "of version 4"), (1, "of another problem"), (40, "was damaged")):
        column = state.column()
        column[place] += 1.0
        with pytest.raises(ValueError, match=message):
            Plan.from_column(state.layout, column)
    with pytest.raises(ValueError, match=r"has \d+ numbers of another problem"):
        Plan.from_column(state.layout, state.column()[:-1])
    with pytest.raises(ValueError, match="of version 0"):
        Plan.from_column(state.layout, [])
    with pytest.raises(ValueError, match="unknown part of a plan 'xx'"):
        state["xx"]
    with pytest.raises(ValueError, match="read-only"):
        state["x"][0] = 0.0


def test_a_plan_is_refused_by_a_solver_of_another_problem():
    small, large = swing().problem, swing(horizon=15).problem
    for solver in (InteriorPointSolver, SQPSolver, NLPSolver):
        plan = solver(small).solve(UP, reference=UP).plan
        with pytest.raises(ValueError, match="12 steps .* expected one of .* 15 steps"):
            solver(large).step(UP, plan=plan, reference=UP)
    bounded = swing(bounds=[Bound("rate", -0.6, 0.6)]).problem
    with pytest.raises(ValueError, match="expected one of"):
        InteriorPointSolver(bounded).step(UP, plan=plan, reference=UP)
    with pytest.raises(ValueError, match="no feedback yet"):
        InteriorPointSolver(small).feedback(Plan.of(InteriorPointSolver(small).plan_layout))


@pytest.mark.parametrize("solver", [SQPSolver, NLPSolver])
def test_other_solvers_go_on_from_a_plan_that_is_theirs(solver):
    problem = swing().problem
    one, other = solver(problem), solver(problem)
    found = one.solve([np.cos(0.3), np.sin(0.3), 0.0], reference=UP)
    plan, x = pickle.loads(pickle.dumps(found.plan)), found.x[1]
    mine, its = (s.step(x, plan=plan, reference=UP, t0=0.1) for s in (one, other))
    assert np.array_equal(mine.u, its.u)
    with pytest.raises(NotImplementedError, match=f"{solver.__name__} has no feedback"):
        one.feedback(plan)


def test_states_of_other_loops_are_refused_by_what_differs():
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1]],
                  inputs=["force", Input("push", role="disturbance")])  # fmt: skip
    plain = MPC(cart, horizon=4, dt=0.1, Q=1.0, R=1.0)
    biased = MPC(cart, horizon=4, dt=0.1, Q=1.0, R=1.0, disturbance="push")
    for control in (plain, biased):
        control.reset()
        control(0.0, [1.0, 0.0], np.zeros(2))
    with pytest.raises(
        ValueError, match=r"other parts \(disturbance\), made with the same options"
    ):
        biased.reset(plain.state)
    with pytest.raises(TypeError, match=r"what mpc\.state returned, not str"):
        plain.reset("state.npz")
    with pytest.raises(AttributeError, match=r"mpc\.reset\(state\) goes on from a state"):
        plain.state = biased.state
