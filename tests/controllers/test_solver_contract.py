"""A solver that a user writes, by the contract alone: MPC asks it for nothing else."""

import numpy as np
import pytest

from lgcontrol.controllers import MPC, RealTime
from lgcontrol.groups import Rn
from lgcontrol.optimal import (
    SOLVERS,
    Iteration,
    OptimalSolution,
    Plan,
    SolveStatus,
    lqr,
    plan_layout,
)
from lgcontrol.optimal._internal import make_solver
from lgcontrol.simulation import simulate
from lgcontrol.systems import Input, System, Trajectory

CART = System(
    "cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -5, 5)]
)
GOAL = np.array([1.0, 0.0])


class Regulated:
    """Plans are motions under a regulator: right where nothing is bounded, and quick."""

    has_feedback, has_export, has_loop, is_prepared = True, False, False, True

    def __init__(self, problem=None):
        self._problem, self.asked = problem, []
        if problem is not None:
            self.K = lqr(problem.system, GOAL, problem.Q, problem.R, dt=problem.dt).K
            self.plan_layout = plan_layout(problem)

    @property
    def problem(self):
        if self._problem is None:
            raise ValueError("Regulated has no problem yet")
        return self._problem

    def for_problem(self, problem):
        return type(self)(problem)

    def prepare(self, *, wait=True):
        return self

    def reset(self):
        self.asked.clear()

    def solve(self, x0, *, guess=None, reference=None, t0=0.0, p=None, **limits):
        self.asked.append(("solve", guess if isinstance(guess, str) else type(guess).__name__))
        problem, x, u = self.problem, [np.array(x0)], []
        for _ in range(problem.horizon):
            u.append(-self.K @ (x[-1] - GOAL))
            x.append(CART.step()(0.0, x[-1], u[-1], [], problem.dt))
        t, x, u = problem.times(t0), np.array(x), np.array(u)
        cost = float(np.square(x - GOAL).sum())
        return OptimalSolution(
            status=SolveStatus.CONVERGED,
            message="",
            trajectory=Trajectory(CART.state, t, x, u),
            reference=Trajectory(CART.state, t, np.tile(GOAL, (len(t), 1))),
            cost=cost,
            kkt=0.0,
            defect=0.0,
            violations=(),
            iterations=(Iteration(1, cost, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0),),
            times={},
            problem=problem,
            plan=Plan.of(self.plan_layout, t=t0, x=x, u=u, cost=cost),
        )

    def step(self, x0, *, plan=None, **options):
        plan.check(self.plan_layout)
        self.asked.append(("step", plan.number("t")))
        options.pop("iterations")
        return self.solve(x0, **options)

    def feedback(self, plan):
        self.asked.append(("feedback", plan.number("t")))
        return -self.K

    def export_c(self, folder, **options):
        raise NotImplementedError("Regulated has no C")


def mpc(solver, **options):
    given = {"Q": {"x": 4.0, "v": 1.0}, "R": 0.5, "reference": GOAL} | options
    return MPC(CART, 15, 0.1, solver=solver, **given)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delay": 0.05},
        {"real_time": RealTime(split=True)},
        {"real_time": RealTime(restarts="at once")},
    ],
)
def test_an_mpc_runs_with_it(options):
    controller = mpc(Regulated(), **options)
    run = simulate(CART, controller, x0=[0.0, 0.0], seconds=6.0)
    assert run.is_success and np.abs(run.x[-1] - GOAL).max() < 1e-2
    words = {word for word, _ in controller.solver.asked}
    assert words == {"solve", "step"} | ({"feedback"} if controller.real_time.split else set())


def test_it_goes_on_from_the_plan_that_it_is_given():
    controller = mpc(Regulated())
    controller(0.0, [0.0, 0.0])
    state = controller.state
    controller(0.1, [0.1, 0.5])
    other = mpc(Regulated())
    other.reset(state)
    assert np.array_equal(other(0.1, [0.1, 0.5]), controller(0.1, [0.1, 0.5]))
    assert [entry for entry in other.solver.asked if entry[0] == "step"] == [("step", 0.0)]


def test_one_that_raises_loses_nothing():
    controller = mpc(Regulated())
    controller(0.0, [0.0, 0.0])
    before, step = controller.state, controller.solver.step

    def broken(*values, **options):
        raise RuntimeError("the licence ran out")

    controller.solver.step = broken
    with pytest.raises(RuntimeError, match="the licence ran out"):
        controller(0.1, [0.1, 0.5])
    for part in ("x", "u", "t", "answer", "recent_cost", "queue_u"):
        assert np.array_equal(controller.state[part], before[part]), part
    controller.solver.step = step
    assert controller(0.2, [0.1, 0.5]) == pytest.approx(-controller.solver.K @ [-0.9, 0.5])


def test_one_that_answers_nonsense_is_held_and_told():
    class Lost(Regulated):
        def feedback(self, plan):
            return np.full((1, 2), np.nan)

        def step(self, x0, **options):
            found = super().step(x0, **options)
            found.trajectory.u.flags.writeable = True
            found.trajectory.u[:] = np.nan
            return found

    controller = mpc(Lost())
    first = controller(0.0, [0.0, 0.0])
    assert np.array_equal(controller(0.1, [0.1, 0.5]), first)
    assert controller.info.status == "held" and "not finite" in controller.info.message


def test_names_and_refusals(tmp_path, monkeypatch):
    monkeypatch.setitem(SOLVERS, "regulated", Regulated)
    controller = mpc("regulated")
    assert isinstance(controller.solver, Regulated)
    with pytest.raises(NotImplementedError, match="Regulated has no C"):
        controller.export_c(tmp_path / "none")
    with pytest.raises(TypeError, match="solver must be a name .* or a solver"):
        make_solver(object(), controller.problem)

    class Open(Regulated):
        has_feedback = False

    with pytest.raises(ValueError, match="split=True needs the feedback of a plan, which Open"):
        mpc(Open(), real_time=RealTime(split=True))
