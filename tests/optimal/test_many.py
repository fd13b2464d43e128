"""Many starts at once, and starts in machine code: the same as one by one in NumPy."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread
from time import sleep

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import set_threads
from lgcontrol.groups import SO2, Rn
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem
from lgcontrol.systems import Input, System

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS
from .examples import pendulum


def spring(t, x, x_ref, u_ref, p):
    return u_ref - 3 * SO2.minus(x[:2], x_ref[:2]) - x[2]


PROBLEM = OptimalControlProblem(
    pendulum(0.8, policy=spring), 12, 0.15, Q={"angle": 1, "rate": 0.1}, R=0.1,
    reference=[-1.0, 0.0, 0.0], bounds=[Bound("rate", -1.0, 1.0)], method="heun",
)  # fmt: skip
# The last ones are faster than allowed: hard bounds are tried at a price, each in its thread.
STATES = np.array(
    [[np.cos(a), np.sin(a), v] for a, v in zip(np.linspace(0, 3, 12), np.linspace(0, 1.5, 12),
                                               strict=True)]
)  # fmt: skip


@pytest.mark.compiled
def test_many_are_each_as_alone():
    solver = InteriorPointSolver(PROBLEM).prepare()
    assert solver.is_compiled
    alone = [solver.solve(x) for x in STATES]
    solver.reset()
    try:
        for threads in (1, 3):
            set_threads(threads)
            many = solver.solve_many(STATES)
            assert [entry.status for entry in many] == [entry.status for entry in alone]
            for one, other in zip(alone, many, strict=True):
                np.testing.assert_array_equal(one.x, other.x)
                np.testing.assert_array_equal(one.u, other.u)
                assert one.cost == other.cost and one.violations == other.violations
    finally:
        set_threads(None)
    assert {str(entry.status) for entry in alone} == {"converged", "infeasible"}
    with pytest.raises(ValueError, match="solve first"):  # nothing of it is kept
        solver.step(STATES[0])


@pytest.mark.compiled
def test_many_run_side_by_side_as_soon_as_a_build_beside_is_done(monkeypatch):
    """Nothing else may have asked for it before."""
    solver, names = InteriorPointSolver(PROBLEM).prepare(wait=False), set()
    if solver._build is not None:
        solver._build.wait()
    one = InteriorPointSolver.solve

    def told(self, *given, **options):
        names.add(current_thread().name)
        sleep(0.01)  # the others come to take theirs
        return one(self, *given, **options)

    monkeypatch.setattr(InteriorPointSolver, "solve", told)
    try:
        set_threads(3)
        solver.solve_many(STATES)
    finally:
        set_threads(None)
    assert len(names) == 3


@pytest.mark.thorough
def cart_to_rest():
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=[Input("force", "N")]
    )
    return OptimalControlProblem(
        cart, 30, 0.1, Q=[1.0, 0.1], R=0.1, reference=[0.0, 0.0], bounds=[Bound("force", -1.0, 1.0)]
    )


def test_threads_that_share_a_solver_wait_for_each_other(rng):
    solver, starts = InteriorPointSolver(cart_to_rest()), rng.normal(0, 2, (20, 2))
    alone = [solver.solve(x) for x in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(solver.solve, starts))
        plan = alone[0].plan
        stepped = list(pool.map(lambda x: solver.step(x, plan=plan), starts))
    for one, other in zip(alone, together, strict=True):
        assert one.status == other.status == "converged"
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.u, other.u)
    for x, other in zip(starts, stepped, strict=True):
        np.testing.assert_array_equal(solver.step(x, plan=plan).u, other.u)


def test_a_callback_cannot_call_its_own_solver():
    solver, x0 = InteriorPointSolver(cart_to_rest()), [1.0, 0.0]
    expected = solver.solve(x0)
    for call in (solver.solve, solver.step):
        with pytest.raises(RuntimeError, match="'cart'.* for another solver"):
            solver.solve(x0, callback=lambda _, call=call: call([2.0, 0.0]))
    other = solver.for_problem(solver.problem)
    found = solver.solve(x0, callback=lambda _: other.solve([2.0, 0.0]) is None)
    np.testing.assert_array_equal(found.u, expected.u)
    for twin in (copy.copy(solver), copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
        found = solver.solve(x0, callback=lambda _, twin=twin: twin.solve([2.0, 0.0]) is None)
        np.testing.assert_array_equal(found.u, expected.u)


def test_any_solver_takes_many(tmp_path):
    for name in ("sqp", "interior_point"):
        many = PROBLEM.solve_many(STATES[:2], solver=name, max_iterations=3)
        for x0, entry in zip(STATES[:2], many, strict=True):
            alone = PROBLEM.solve(x0, solver=name, max_iterations=3)
            np.testing.assert_allclose(entry.u, alone.u, atol=1e-6)


def test_what_is_wrong_is_said_before_anything_is_solved():
    solver = InteriorPointSolver(PROBLEM)
    with pytest.raises(ValueError, match="a list of 3 for 2 starts"):
        solver.solve_many(STATES[:2], guess=["rest"] * 3)
    with pytest.raises(ValueError, match="x0 has shape"):
        solver.solve_many(STATES[0])
    with pytest.raises(ValueError, match="unknown guess 'screww'"):
        solver.solve_many(STATES, guess="screww")
