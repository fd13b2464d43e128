"""The interior point: against IPOPT, differences and SQP; in C as in NumPy; where it gives up."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from time import sleep

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import set_compile_policy
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    NLPSolver,
    OptimalControlProblem,
    OptimalSolution,
    Residual,
    Settings,
    SolveStatus,
)
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._internal import make_solver
from lgcontrol.optimal._stage_model import StageModel
from lgcontrol.optimal._transcription import Nodes, Transcription
from lgcontrol.optimal.kernel._library import pattern_of
from lgcontrol.systems import Input, System, Trajectory

from ..benchmarks._sqp_peer import SQPSolver
from ..systems.test_error_coordinates import absolute, minimal, states
from .residuals import kkt_residual

INERTIA = np.array([1.0, 2.0, 3.0])


def pendulum() -> System:
    return System(
        "pendulum",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u - p * ca.sin(x[1])),
        inputs=[Input("torque", "N m", -0.8, 0.8)],
        parameters=["pull"],
    ).with_parameters({"pull": 1.0})


def satellite() -> System:
    def field(t, x, u, p):
        w = x[4:]
        return ca.vertcat(w, (u - ca.cross(w, INERTIA * w)) / INERTIA)

    torques = [Input(f"torque{i}", "N m", -1.0, 1.0) for i in range(3)]
    return System("satellite", Product(attitude=SO3, rate=Rn(3)), field, inputs=torques)


UP = [-1.0, 0.0, 0.0]
STILL = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
PENDULUM, SATELLITE = pendulum(), satellite()
HANGING = np.array([1.0, 0.0, 0.0])


def turned(angle: float, seed: int = 0) -> np.ndarray:
    axis = np.random.default_rng(seed).normal(size=3)
    return np.r_[SO3.exp(angle * axis / np.linalg.norm(axis)), 0.1, -0.2, 0.3]


def swing(**options):
    given = {"Q": {"angle": 1, "rate": 0.1}, "R": 0.1, "reference": UP} | options
    return OptimalControlProblem(PENDULUM, 12, 0.15, **given)


def slew(**options):
    given = {"Q": {"attitude": 3, "rate": 1}, "R": 0.1, "reference": STILL} | options
    return OptimalControlProblem(SATELLITE, 12, 0.3, **given)


def in_numpy(problem: OptimalControlProblem, **options) -> InteriorPointSolver:
    """A solver on a machine without a kernel."""
    set_compile_policy("off")
    solver = InteriorPointSolver(problem, **options)
    assert not solver.memory.has_kernel
    set_compile_policy("auto")
    return solver


PROBLEMS = {
    "swing": (swing(), HANGING),
    "swing, light": (swing(R=0.01), HANGING),
    "swing, moving": (swing(Q=2.0), np.array([0.0, 1.0, 1.0])),
    "swing, up": (swing(), np.array([-1.0, 0.0, 0.8])),
    "swing, slow": (swing(bounds=[Bound("rate", -0.6, 0.6)]), HANGING),
    "swing, soft": (swing(bounds=[Bound("rate", -0.3, 0.3, soft=3.0)]), HANGING),
    "swing, stopped": (swing(bounds=[Bound("rate", 0.0, 0.0, at="terminal")]), HANGING),
    "swing, power": (
        swing(bounds=[Bound(lambda t, x, u, p: u * x[2], upper=0.2, name="power")]),
        HANGING,
    ),
    "slew": (slew(), turned(2.0)),
    "slew, far": (slew(R=0.01), turned(3.1, 1)),
    "slew, slow": (slew(bounds=[Bound("rate", -0.5, 0.5)]), turned(2.0, 2)),
    "slew, residual": (
        slew(residuals=[Residual(lambda t, x, u, p: x[4] * x[5] - 0.1, 5.0, terminal=1.0)]),
        turned(1.0, 3),
    ),
}


# Less is not to be had everywhere: distances to limits of 1e-9 have seven digits.
TIGHT, SAME_COST, SAME_STATES = 1e-7, 1e-7, 1e-4


@pytest.mark.usually(name=("swing, soft", "swing, stopped", "swing, power", "slew, residual"))
@pytest.mark.parametrize("name", PROBLEMS)
def test_finds_the_optimum_that_ipopt_finds(name):
    problem, x0 = PROBLEMS[name]
    # Solves are judged by the cost as it is scaled, by a gradient of 3 at most.
    solution = InteriorPointSolver(problem).solve(x0, tolerance=TIGHT / 3)
    assert solution.status == "converged", solution.message
    assert solution.kkt <= TIGHT / 3
    group, rng = problem.system.state, np.random.default_rng(1)
    shaken = group.plus(solution.x, 1e-2 * rng.normal(size=(*solution.x.shape[:1], group.dim)))
    shaken[0] = x0
    ipopt = NLPSolver(problem)
    guess = Trajectory(group, solution.t, shaken, solution.u)
    other = ipopt.solve(x0, guess=guess, tolerance=1e-8)
    assert other.status == "converged", other.message
    assert kkt_residual(solution, x0, TIGHT, ipopt) < TIGHT
    assert kkt_residual(replace(solution, trajectory=guess), x0, TIGHT, ipopt) > 1e3 * TIGHT
    # A barrier of weight μ, half of the tolerance in the end, costs μ for each limit that is met.
    limits = 2 * solution.u.size + 2 * np.count_nonzero(Transcription(problem).rows.active)
    assert solution.cost == pytest.approx(other.cost, rel=SAME_COST, abs=TIGHT / 2 * limits)
    assert np.abs(group.minus(other.x, solution.x)).max() < SAME_STATES


def test_no_free_input_lowers_the_cost():
    """The gradient by differences of the cost of a simulated motion, apart from the solver."""
    problem, x0 = PROBLEMS["slew, far"]
    solution = InteriorPointSolver(problem).solve(x0, tolerance=1e-7)
    step, group = problem.system.step("rk4", 1), problem.system.state

    def cost(u):
        x, total = x0, 0.0
        for row in u:
            e = group.minus(x, STILL)
            total += 0.5 * problem.dt * (e @ problem.Q @ e + row @ problem.R @ row)
            x = step(0.0, x, row, [], problem.dt)
        e = group.minus(x, STILL)
        return total + 0.5 * e @ problem.terminal @ e

    gradient = np.zeros_like(solution.u)
    for place in np.ndindex(*gradient.shape):
        move = np.zeros_like(gradient)
        move[place] = 1e-5
        gradient[place] = (cost(solution.u + move) - cost(solution.u - move)) / 2e-5
    free = np.abs(solution.u) < 0.99
    assert free.any() and not free.all()
    assert np.abs(gradient[free]).max() < 1e-4
    assert (gradient[~free] * solution.u[~free] < 0).all()
    assert solution.cost == pytest.approx(cost(solution.u), rel=1e-8)  # limits are relaxed


def damped_arm(method: str) -> OptimalControlProblem:
    """Losses in the joints so fast that an explicit step would be far off."""
    properties = JointProperties(damping=2.0, friction=1.0, effort=20.0)
    rod = SpatialInertia.rod(0.05, length=0.1, center_of_mass=[0, 0, -0.05])
    tree = Multibody().add_body("a", rod, "revolute", axis="y", properties=properties)
    tree = tree.add_body("b", rod, "revolute", axis="x", parent="a", properties=properties)
    weights = {"configuration": 10.0, "velocity": 0.1}
    return OptimalControlProblem(
        tree.system(), 12, 0.05, Q=weights, R=1e-3, reference=[0.8, -0.5, 0, 0], method=method
    )


# The classical method in coordinates is that on the group to dt⁵; differences are exact to h².
@pytest.mark.parametrize(
    ("problem", "x0"),
    [
        PROBLEMS["slew, residual"],
        (slew().with_arguments(dt=0.1, method="heun", substeps=2), turned(1.0, 3)),
        (slew().with_arguments(method="crouch_grossman3", substeps=1), turned(1.0, 3)),
        (damped_arm("linearly_implicit_euler"), np.array([0.2, -0.3, 0.4, 0.5])),
    ],
    ids=["rk4", "heun", "crouch_grossman3", "linearly_implicit_euler"],
)
def test_second_derivatives_are_those_of_the_lagrangian(problem, x0):
    model, rng = StageModel(Transcription(problem)), np.random.default_rng(2)
    setting = Given(problem).setting(problem.times())
    group, n = model.group, model.n
    x = group.plus(np.tile(x0, (13, 1)), 0.3 * rng.normal(size=(13, n)))
    m = model.m
    u = rng.uniform(-0.5, 0.5, (12, m))
    step = problem.system.step(problem.method, problem.substeps)
    for k in range(12):
        x[k + 1] = step(0.0, x[k], u[k], setting.p, problem.dt)  # gaps vanish, as in motions
    nodes = Nodes(problem.times(), x, u)
    prices = rng.normal(size=(12, n))
    at = model.expand(nodes, setting)
    W, _ = model.hessians(nodes, setting, prices, np.zeros((13, 0)), at)
    W += at.H
    once = model.transcription._functions

    def lagrangian(d):
        cost, gap, _ = once.stage_values(
            0.0, group.plus(x[3], d[:n]), u[3] + d[n:], x[4], setting.x_ref[3], setting.u_ref[3],
            setting.p, model.transcription.path_weights, problem.dt,
        )  # fmt: skip
        return cost + prices[3] @ gap

    h, size = 1e-3, n + m
    found = np.empty((size, size))
    E = h * np.eye(size)
    for i in range(size):
        for j in range(size):
            found[i, j] = (
                lagrangian(E[i] + E[j]) - lagrangian(E[i] - E[j])
                - lagrangian(E[j] - E[i]) + lagrangian(-E[i] - E[j])
            ) / (4 * h * h)  # fmt: skip
    assert np.abs(W[3] - found).max() < 1e-3 * np.abs(found).max()


@pytest.mark.compiled
@pytest.mark.parametrize(("count", "kept"), [(1, (0, 0)), (2, (2, 2))])
def test_zeros_of_a_step_are_left_out_of_the_sweep_in_c(count, kept, rng):
    """Positions under explicit Euler, and with accelerations all: the steps are those of NumPy."""
    push = rng.normal(size=(2, 2))

    def field(t, x, u, p):
        force = ca.DM(push) @ u - ca.vertcat(ca.sin(x[0] + x[1]), ca.sin(x[1] - x[0]))
        force -= x[2] * x[3] * ca.DM.ones(2)
        return ca.vertcat(x[2:], u if count == 1 else force)

    system = System("two", Product(place=Rn(2), speed=Rn(2)), field, inputs=["a", "b"])
    power = Bound(lambda t, x, u, p: u[0] * x[2], upper=0.5, name="power", at="path")
    problem = OptimalControlProblem(
        system, 12, 0.1, Q=1.0, R=0.1, method="euler", bounds=[power], reference=np.zeros(4)
    )
    plain, built = in_numpy(problem), InteriorPointSolver(problem).prepare()
    found = pattern_of(built.model, built.model.stage)
    assert tuple(found["counts"][1:]) == kept
    assert built.is_compiled and not plain.is_compiled
    x0 = np.array([1.0, -0.5, 0.3, 0.2])
    for limits in ({"max_iterations": 1}, {"max_iterations": 3}, {"tolerance": 1e-8}):
        a, b = (solver.solve(x0, guess="rest", **limits) for solver in (plain, built))
        np.testing.assert_allclose(a.x, b.x, atol=1e-10)
        np.testing.assert_allclose(a.u, b.u, atol=1e-10)
    assert a.status == b.status == "converged"


def before_a_wall(soft):
    fast = System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -1e3, 1e3)],
    )  # fmt: skip
    return OptimalControlProblem(
        fast, 4, 0.1, Q=[1.0, 0.0], R=1e-6, terminal=[10.0, 0.0], reference=[3.0, 0.0],
        bounds=[Bound("x0", upper=1.0, soft=soft)],
    )  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize("soft", [None, 1e4])
def test_c_and_numpy_move_a_plan_on_beside_a_wall_alike(soft):
    """With a goal beyond the wall: an input that holds on, or goes for the goal, crosses it."""
    problem, steps = before_a_wall(soft), []
    plan = InteriorPointSolver(problem).prepare().solve([0.84, 0.5], guess="rest", tolerance=1e-8)
    for solver in (in_numpy(problem), InteriorPointSolver(problem).prepare()):
        solver.plan = plan.plan
        steps.append(solver.step(plan.x[1], t0=problem.dt))
    a, b = steps
    told = [
        [(entry.cost, entry.defect, entry.step_length) for entry in plan.iterations]
        for plan in steps
    ]
    np.testing.assert_allclose(*told, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(a.u, b.u, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(a.x, b.x, rtol=1e-6)
    assert a.x[:, 0].max() < 1.0 + 1e-3


@pytest.mark.compiled
def test_where_a_call_stalls_its_last_iterate_is_told():
    """In C, looked at after every step or not, and in NumPy: with the cost of the answer's plan."""
    cart = System(
        "cart", Product(p=Rn(1), v=Rn(1)), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("u", "N", -2, 2)],
    )  # fmt: skip
    problem = OptimalControlProblem(
        cart, 15, 0.1, Q={"p": 10, "v": 0.1}, R=0.01, reference=[1, 0],
        bounds=[Bound("p", upper=0.5)],
    )  # fmt: skip
    told = []
    for is_built, limit in ((True, np.inf), (True, 1e3), (False, np.inf)):
        solver = InteriorPointSolver(problem).prepare() if is_built else in_numpy(problem)
        solver.solve([0.1, 0.92])
        step = solver.step([0.17, 1.26], t0=0.1, iterations=2, time_limit=limit)
        told.append([(entry.cost, entry.violation, entry.step_length) for entry in step.iterations])
        errors = (step.x - [1, 0]) ** 2 @ [10, 0.1]
        cost = (0.1 * errors[:-1].sum() + 1.5 * errors[-1] + 0.001 * (step.u**2).sum()) / 2
        assert step.cost == pytest.approx(cost, rel=1e-9)
    for other in told[1:]:
        np.testing.assert_allclose(other, told[0], rtol=1e-8, atol=1e-10)


@pytest.mark.compiled
def test_c_and_numpy_move_a_plan_on_alike():
    """C and NumPy extend it in the same way."""
    problem, x0 = PROBLEMS["slew"]
    problem = problem.with_arguments(horizon=30)
    steps = []
    for solver in (in_numpy(problem), InteriorPointSolver(problem).prepare()):
        plan = solver.solve(x0, guess="rest", tolerance=1e-8)
        steps.append(solver.step(plan.x[1], t0=problem.dt))
    a, b = steps
    assert len(a.iterations) == len(b.iterations)
    assert np.abs(a.u - b.u).max() <= 1e-8 and np.abs(a.x - b.x).max() <= 1e-8


def test_agrees_with_sqp_on_a_bounded_problem():
    problem, x0 = PROBLEMS["slew, slow"]
    other = SQPSolver(problem).solve(x0)
    assert problem.solve(x0, solver="interior_point").cost == pytest.approx(other.cost, rel=1e-5)


@pytest.mark.parametrize("effort", [1e-4, 1.0])
@pytest.mark.parametrize("seconds", [2.1, 3.0])
def test_an_end_is_reached_however_little_the_way_costs(effort, seconds):
    """From rest, where the cost has no slope; with little effort the barrier decides the step."""
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -1.0, 1.0)]
    )
    ends = [Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    problem = OptimalControlProblem(
        cart, 10, seconds / 10, Q=0.0, R=effort, terminal=0.0, reference=[0, 0], bounds=ends
    )
    found = InteriorPointSolver(problem).solve([0.0, 0.0])
    assert found.status is SolveStatus.CONVERGED, found.message
    least = SQPSolver(problem).solve([0.0, 0.0]).cost  # a quadratic program
    assert found.cost == pytest.approx(least, rel=1e-6, abs=2e-7)


def test_a_limit_of_iterations_says_nothing_about_bounds():
    problem = swing(bounds=[Bound("rate", 1.0, 1.0, at="terminal")])
    found = InteriorPointSolver(problem).solve(HANGING, max_iterations=1, guess="rest")
    assert found.status is SolveStatus.ITERATION_LIMIT and found.violations[0].amount > 0.01


def test_says_which_bound_cannot_be_kept():
    problem = swing(bounds=[Bound("rate", 2.0, 3.0, at="terminal")])
    solution = InteriorPointSolver(problem).solve(HANGING)
    assert solution.status in (SolveStatus.INFEASIBLE, SolveStatus.ITERATION_LIMIT)
    assert solution.violations[0].name == "rate"
    assert solution.violations[0].node == problem.horizon
    assert np.isfinite(solution.u).all() and (np.abs(solution.u) <= 0.8).all()


@pytest.mark.usually(is_built=(False,))
@pytest.mark.parametrize("is_built", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_comes_back_from_outside_of_a_hard_bound_as_fast_as_can_be(is_built):
    cart = System(
        "cart",
        Product(p=Rn(1), v=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("u", "N", -2, 2)],
    )
    weights, bounds = {"Q": {"p": 10, "v": 0.1}, "R": 0.01}, [Bound("p", upper=0.5)]
    problem = OptimalControlProblem(cart, 15, 0.1, **weights, reference=[1, 0], bounds=bounds)

    def excess(solution):
        return np.maximum(solution.x[1:, 0] - 0.5, 0.0).sum()

    outside, solver = [0.8, 0.0], InteriorPointSolver(problem)
    if is_built:
        solver.prepare()
    least = excess(SQPSolver(problem).solve(outside))
    found = solver.solve(outside)
    assert found.status is SolveStatus.INFEASIBLE and found.violations[0].name == "p"
    assert "the start itself violates p by 0.3" in found.message
    assert "at their limits: u" in found.message
    assert excess(found) == pytest.approx(least, rel=1e-3)
    step = solver.step(outside)  # its barrier keeps away from the inputs' bounds
    assert step.status is SolveStatus.INFEASIBLE
    assert excess(step) == pytest.approx(least, rel=0.03)
    # Back inside the bound is hard again.
    assert solver.solve([0.3, 0.0]).status is SolveStatus.CONVERGED


def test_soft_limits_neither_cut_steps_short_nor_take_many():
    """Kinks of soft rows: with excesses of their own, steps cross them."""
    problem, x0 = slew(bounds=[Bound("rate", -0.4, 0.4, soft=100.0)]), turned(2.0, 2)
    solver, step = InteriorPointSolver(problem), SATELLITE.step()
    first = solver.solve(x0)
    assert first.status == "converged" and first.iterations[-1].number <= 30
    x, rng, taken = x0, np.random.default_rng(3), []
    for k in range(10):
        found = solver.step(x, t0=k * problem.dt)
        taken.append(found.iterations[-1].number)
        x = step(0.0, x, found.u[0], [], problem.dt)
        x = SATELLITE.state.plus(x, 2e-3 * rng.normal(size=6))
    assert max(taken) <= 5  # none had to solve
    assert np.abs(x[4:]).max() < 0.4 + 0.05


def test_of_several_guesses_the_best_result_is_the_answer():
    problem, x0 = PROBLEMS["swing, moving"]
    solver = InteriorPointSolver(problem)
    ends = {guess: solver.solve(x0, guess=guess) for guess in ("rest", "reference", "screw")}
    best = solver.solve(x0, guess=tuple(ends))
    assert best.cost == min(entry.cost for entry in ends.values() if entry.is_success)
    assert np.array_equal(solver.plan["x"], best.x) and solver.plan is best.plan
    with pytest.raises(ValueError, match="empty tuple"):
        solver.solve(x0, guess=())


def test_an_idle_row_that_is_no_number_at_the_start_stops_nothing():
    problem = OptimalControlProblem(
        PENDULUM, 15, 0.15, Q={"angle": 1, "rate": 0.1}, R=0.05, reference=UP, method="heun",
        bounds=[Bound(lambda t, x, u, p: ca.log(x[0]), lower=-9.0, soft=3.0, name="height")],
    )  # fmt: skip
    turned_past = [np.cos(1.6), np.sin(1.6), -1.1]  # log of a negative number, of a given start
    assert InteriorPointSolver(problem).solve(turned_past).status is SolveStatus.CONVERGED


def test_where_rows_have_no_slope_they_are_kept_all_the_same():
    """The violation is largest at the start: a saddle, which the solve leaves."""
    hanging = OptimalControlProblem(
        PENDULUM, 10, 0.2, Q={"angle": 0, "rate": 0.1}, R=0.1, reference=HANGING,
        bounds=[Bound("angle.cos", 0.8, 0.8, at="terminal")],
    )  # fmt: skip
    for start in (HANGING, [np.cos(0.1), np.sin(0.1), 0.0]):
        plan = InteriorPointSolver(hanging).solve(start)
        assert plan.status is SolveStatus.CONVERGED
        assert plan.x[-1, 0] == pytest.approx(0.8, abs=1e-6)


@pytest.mark.thorough
def test_what_no_step_improves_is_acceptable_and_close():
    problem, x0 = PROBLEMS["slew"]
    found = InteriorPointSolver(problem).solve(x0, tolerance=1e-15)
    assert found.status is SolveStatus.ACCEPTABLE and found.kkt <= 1e-4 and found.is_success
    assert found.cost == pytest.approx(InteriorPointSolver(problem).solve(x0).cost, rel=1e-6)


@pytest.mark.compiled
def test_a_solve_that_is_watched_gives_up_where_one_that_is_not_does():
    problem, x0 = PROBLEMS["swing, light"]
    solver = InteriorPointSolver(problem).prepare()
    alone = solver.solve(x0, tolerance=1e-15)
    assert alone.is_success
    for options in ({"time_limit": 1e3}, {"callback": lambda entry: None}):
        watched = solver.solve(x0, tolerance=1e-15, **options)
        assert watched.status is alone.status
        assert len(watched.iterations) == len(alone.iterations)
        np.testing.assert_array_equal(watched.u, alone.u)


def test_survives_a_cost_that_is_not_finite():
    broken = Residual(lambda t, x, u, p: ca.log(x[2] - 5.0), 1.0, name="height")
    solution = InteriorPointSolver(swing(residuals=[broken])).solve(HANGING)
    assert solution.status is SolveStatus.FAILED
    assert np.isfinite(solution.u).all() and (np.abs(solution.u) <= 0.8).all()
    assert "the residual 'height' is not finite at node 0" in solution.message


@pytest.mark.parametrize("what", ["the cost 'price'", "the motion of cart", "the residual 'end'"])
def test_a_solve_that_fails_says_what_is_not_finite_and_when(what):
    def late(t, x, u, p):
        return ca.log(0.25 - t)  # from the fourth node on

    def field(t, x, u, p):
        return ca.vertcat(x[1], u + (ca.log(1 - 4 * x[0]) if "motion" in what else 0))

    cart = System("cart", Rn(2), field, inputs=["push"])
    price = Cost(late if "cost" in what else lambda t, x, u, p: u**2, name="price")
    end = Residual(
        late if "residual" in what else lambda t, x, u, p: x[0], None, terminal=1.0, name="end"
    )
    problem = OptimalControlProblem(
        cart, 5, 0.1, Q=1, R=1, reference=[0, 0], residuals=[end], costs=[price], method="euler"
    )
    found = InteriorPointSolver(problem).solve([0.5, 0.0])
    node = {"cost": 3, "motion": 0, "residual": 5}[what.split()[1]]
    what = what.replace("the motion of", "the rate of x1 in")
    assert found.status == "failed"
    assert f"{what} is not finite at node {node}" in found.message


def test_stops_where_it_is_told_to():
    problem, x0 = PROBLEMS["slew"]
    seen = []
    solver = InteriorPointSolver(problem)
    stopped = solver.solve(x0, callback=lambda entry: seen.append(entry) or len(seen) == 3)
    assert stopped.status is SolveStatus.STOPPED and len(seen) == 3
    late = solver.solve(x0, time_limit=0.0)
    assert late.status is SolveStatus.TIME_LIMIT and "at the time limit, after" in late.message
    assert solver.solve(x0, max_iterations=2).status is SolveStatus.ITERATION_LIMIT


def test_an_end_within_the_tolerance_has_converged_however_many_iterations_there_may_be():
    problem, x0 = PROBLEMS["swing, soft"]
    solver = InteriorPointSolver(problem)
    most = solver.solve(x0).iterations[-1].number
    ends = [solver.solve(x0, max_iterations=count) for count in range(most + 1)]
    is_met = [entry.kkt <= 1e-6 for entry in ends]
    assert not is_met[0] and is_met[-1]
    assert [entry.is_success for entry in ends] == is_met


@pytest.mark.compiled
def test_real_time_steps_in_c_are_those_in_numpy():
    problem, x0 = PROBLEMS["slew, far"]
    step = SATELLITE.step()
    answers = []
    for solver in (in_numpy(problem), InteriorPointSolver(problem).prepare()):
        x = x0
        solver.solve(x, tolerance=1e-4)
        applied = []
        for k in range(4):
            found = solver.step(x, t0=k * problem.dt)
            assert found.status == "iteration limit"
            applied.append(found.u[0])
            x = step(0.0, x, found.u[0], [], problem.dt)
        answers.append(np.array(applied))
    assert np.abs(answers[0] - answers[1]).max() < 1e-8
    assert (np.abs(answers[0]) < 1.0).all()


@pytest.mark.compiled
def test_calls_next_to_an_optimum_leave_second_derivatives_out():
    problem, x0 = PROBLEMS["slew, far"]
    exact = InteriorPointSolver(problem).prepare()
    plain = InteriorPointSolver(problem, second_derivatives=False).prepare()
    found = exact.solve(x0, tolerance=1e-4)

    def apart(solver, move, plan):
        """How far inputs of a call are from those of a Gauss–Newton step."""
        x = np.asarray(SATELLITE.retract(x0, np.full(6, move)))
        answers = [each.step(x, plan=plan).u for each in (solver, plain)]
        return np.abs(answers[0] - answers[1]).max()

    assert apart(exact, 1e-3, found.plan) < 1e-9
    assert apart(exact, 0.1, found.plan) > 1e-5  # far off
    for most, is_exact in ((10.0, False), (0.0, True)):  # of a gain that is other than predicted
        solver = InteriorPointSolver(problem, settings=Settings(real_time_gain=most)).prepare()
        later = solver.step(x0, plan=found.plan).plan
        assert (apart(solver, 1e-3, later) > 1e-6) == is_exact


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["hard row", "cost"])
def test_calls_with_hard_rows_or_costs_that_are_no_squares_are_exact(kind):
    given = {"bounds": [Bound("rate", -3.0, 3.0)]} if kind == "hard row" else {
        "costs": [Cost(lambda t, x, u, p: 0.1 * x[4] ** 4)]
    }  # fmt: skip
    problem, x0 = slew(R=0.01, **given), PROBLEMS["slew, far"][1]
    exact = InteriorPointSolver(problem).prepare()
    plain = InteriorPointSolver(problem, second_derivatives=False).prepare()
    found = exact.solve(x0, tolerance=1e-4)
    x = np.asarray(SATELLITE.retract(found.x[1], np.full(6, 1e-3)))
    answers = [each.step(x, t0=problem.dt, plan=found.plan).u for each in (exact, plain)]
    assert np.abs(answers[0] - answers[1]).max() > 1e-6


def test_a_step_goes_on_from_the_plan_if_its_rollout_has_no_cost():
    """A push towards a logarithm's end: under the gains of rest the cart would pass it."""
    cart = System("cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"])
    wall = Cost(lambda t, x, u, p: -0.1 * ca.log(1 - x[0] ** 2))
    problem = OptimalControlProblem(
        cart, 20, 0.05, Q=[0.01, 1e-3], R=1.0, reference=[0, 0], costs=[wall]
    )
    answers, pushed = [], [0.8, 0.5]
    best = problem.solve(pushed)
    for solver in (in_numpy(problem), InteriorPointSolver(problem).prepare()):
        solver.solve([0.1, 0.0])
        found = solver.step(pushed, iterations=2)
        assert np.isfinite(found.cost)
        answers.append(found)
    assert np.abs(answers[0].u - answers[1].u).max() < 1e-8
    assert answers[0].cost == pytest.approx(best.cost, rel=0.01)


@pytest.mark.parametrize("soft", [1000.0, None])
def test_a_loop_at_rest_beside_a_wall_settles_at_the_optimum(soft):
    """What its barrier leaves of every plan does not keep the barrier up; nor a call far off."""
    cart = System(
        "cart", Rn(2, ("p", "v")), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -1, 1)],
    )  # fmt: skip
    wall = Bound("p", upper=0.02, soft=soft)
    problem = OptimalControlProblem(
        cart, 20, 0.2, Q=[1, 1], R=0.1, terminal=[20, 100], reference=[0, 0], bounds=[wall]
    )
    step, answers = cart.step(), []
    for solver in (in_numpy(problem), InteriorPointSolver(problem).prepare()):
        x, applied = np.array([-1.0, 0.0]), []
        solver.solve(x, max_iterations=3)
        for k in range(160):
            if k == 80:  # it is pushed
                assert np.abs(x).max() < 1e-5
                x = x - [0.05, 0.05]
            found = solver.step(x, t0=k * problem.dt)
            assert found.status == "iteration limit"
            applied.append(found.u[0])
            x = step(0.0, x, found.u[0], [], problem.dt)
        assert np.abs(x).max() < 1e-5
        answers.append(np.array(applied))
    assert np.abs(answers[0] - answers[1]).max() < 1e-10


@pytest.mark.compiled
def test_solutions_read_late_are_those_read_at_once():
    problem = swing(bounds=[Bound("rate", -1.0, 1.0)], reference=None)

    def loop(look):
        """Of a solve, of steps that keep bounds, that exceed them, and with other numbers."""
        solver, goal = InteriorPointSolver(problem).prepare(), np.array(UP)
        kept = [look(solver.solve(HANGING, reference=goal))]
        for k in range(1, 8):
            x = solver.plan["x"][1] + [0.0, 0.0, 2.0 * (k == 3)]
            if k == 6:
                goal[:] = HANGING
            p = np.array([1.0 + 0.1 * (k > 4)])
            kept.append(look(solver.step(x, t0=k * problem.dt, reference=goal, p=p)))
        return kept

    def read(solution):
        entries = [entry._replace(time=0.0) for entry in solution.iterations]
        arrays = solution.t, solution.x, solution.u, solution.reference.x
        said = solution.status, solution.message, solution.cost, solution.violations
        return repr((entries, said)), [array.tobytes() for array in arrays]

    at_once, late = loop(read), [read(solution) for solution in loop(lambda found: found)]
    assert at_once == late
    assert len({said for said, _ in late}) == len(late)
    assert any("exceeded" in said or "violat" in said for said, _ in late)


@pytest.mark.parametrize("solver", ["interior_point", "sqp", "ipopt"])
def test_nobody_writes_to_what_a_solver_goes_on_from(solver):
    problem, x0 = PROBLEMS["swing"]
    chosen = make_solver(solver, problem)
    for found in (chosen.solve(x0, max_iterations=3), chosen.step(x0, t0=problem.dt)):
        for array in (found.x, found.u, found.t, found.trajectory.u, found.reference.x):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.0


def test_threads_may_ask_a_solution_at_once():
    made = Event()

    def make():
        made.set()
        sleep(0.05)
        return {"message": "made"}

    solution = OptimalSolution._later(make)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(getattr, solution, "message")
        assert made.wait(10.0) and solution.message == first.result() == "made"
    with pytest.raises(AttributeError, match="unknown attribute of OptimalSolution .trajectories."):
        solution.trajectories  # noqa: B018


@pytest.mark.usually(is_built=(False,))
@pytest.mark.parametrize("is_built", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_a_real_time_step_that_leads_nowhere_has_failed(is_built):
    # A kink: beyond it no step lowers the cost, whatever the derivatives say.
    kink = Residual(lambda t, x, u, p: ca.sqrt(x[0] ** 2 + (3 * x[0]) ** 2), weight=5.0)
    cart = System(
        "cart",
        Product(p=Rn(1), v=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("u", "N", -1, 1)],
    )
    problem = OptimalControlProblem(
        cart, 10, 0.1, Q={"v": 1}, R=0.1, residuals=[kink], reference=[0, 0]
    )
    solver = InteriorPointSolver(problem)
    if is_built:
        solver.prepare()
    assert solver.solve([0.5, 0.0]).status is not SolveStatus.FAILED
    gains = solver.feedback(solver.plan)
    stuck = solver.step([0.0, 0.0])
    assert stuck.status is SolveStatus.FAILED and stuck.message
    assert np.isfinite(stuck.u).all() and np.array_equal(solver.feedback(solver.plan), gains)


def test_controls_a_satellite():
    mpc = MPC(SATELLITE, 15, 0.3, Q={"attitude": 3, "rate": 1}, R=0.1, solver="interior_point")
    x, step = turned(3.1, 4), SATELLITE.step()
    for k in range(25):
        u = mpc(0.3 * k, x, STILL)
        assert mpc.info.status == "ok"
        x = step(0.0, x, u, [], 0.3)
    assert np.linalg.norm(SATELLITE.state.minus(x, STILL)) < 0.05


@pytest.mark.interpreted
def test_runs_without_a_compiler():
    solver = InteriorPointSolver(swing()).prepare()
    assert not solver.is_compiled
    assert solver.solve(HANGING).is_success


def test_constrained_systems_have_the_plans_of_free_ones():
    (x0, X0), (goal, Goal) = states(0.9, 0.4), states(0.2, 0.0)
    options = {"R": 0.1, "Q": [2.0, 0.3], "terminal": "riccati"}
    solver = InteriorPointSolver()
    small, large = (
        OptimalControlProblem(system, 15, 0.05, reference=end, **options).solve(
            start, solver=solver, tolerance=1e-7
        )
        for system, start, end in ((minimal(), x0, goal), (absolute(), X0, Goal))
    )
    assert small.is_success and large.is_success
    assert large.cost == pytest.approx(small.cost, rel=1e-5)
    assert np.abs(large.u - small.u).max() < 1e-4


@pytest.mark.thorough
@pytest.mark.compiled
def test_inputs_that_are_no_controls_follow_the_reference_in_a_loop():
    """A push that is known and changes from call to call: each plan counts with the new one."""
    cart = System(
        "pushed", Product(place=Rn(1), speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u[0] + u[1]),
        inputs=["force", Input("push", role="disturbance")],
    )  # fmt: skip
    problem = OptimalControlProblem(cart, 6, 0.1, Q=1.0, R=0.1, reference=[0.0, 0.0])
    t, x = 0.1 * np.arange(20), np.zeros((20, 2))
    solvers = [in_numpy(problem), InteriorPointSolver(problem).prepare(),
               SQPSolver(problem)]  # fmt: skip
    for solver in solvers:
        solver.solve([1.0, 0.0])
        for k, push in enumerate((0.5, -0.3, 0.2)):
            u = np.column_stack([np.zeros(20), push * np.cos(t)])
            given = {"t0": 0.1 * k, "reference": Trajectory(cart.state, t - 0.01, x, u)}
            found = solver.step([0.8, 0.1], **given)
            np.testing.assert_array_equal(found.u[:, 1], push * np.cos(t[k : k + 6]))
            exact = solver.for_problem(problem).solve([0.8, 0.1], tolerance=1e-10, **given)
            np.testing.assert_allclose(found.u, exact.u, atol=1e-7)  # linear: one step is all


@pytest.mark.compiled
def test_steps_go_on_beside_a_build_and_in_machine_code_after_it():
    problem, x0 = PROBLEMS["swing"]
    beside = InteriorPointSolver(problem).prepare(wait=False)
    first = beside.solve(x0)
    known = InteriorPointSolver(problem).prepare()
    beside.prepare()  # waits
    assert beside.is_prepared and beside.is_compiled == known.is_compiled
    assert "compiling" not in repr(beside)
    assert first.cost == pytest.approx(known.solve(x0).cost, rel=1e-8)
    x = first.x[1] + 1e-3 * np.array([0.0, 0.0, 1.0])
    there, here = (solver.step(x, t0=problem.dt) for solver in (beside, known))
    assert np.abs(there.u - here.u).max() < 1e-6


def test_a_step_from_a_plan_is_the_same_whoever_has_used_the_memory():
    problem = swing()
    solver = InteriorPointSolver(problem).prepare()
    first = solver.solve(HANGING)
    plans, x = [first.plan] * 3, first.x[1]
    for k in (1, 2, 3):
        t0 = k * problem.dt
        mine = solver.step(x, plan=plans[0], t0=t0)
        again = solver.step(x, plan=plans[1], t0=t0)  # the memory holds what was found since
        looked_at = solver.step(x, plan=plans[2], t0=t0, time_limit=1e3)  # one step at a time
        for found in (again, looked_at):
            assert np.array_equal(found.u, mine.u) and np.array_equal(found.x, mine.x)
            assert found.cost == mine.cost and found.status is mine.status
            assert np.array_equal(found.reference.x, mine.reference.x)
            assert np.array_equal(found.plan.numbers, mine.plan.numbers)
        plans, x = [mine.plan, again.plan, looked_at.plan], mine.x[1]
    copied = copy.copy(solver)  # which builds its own memory
    assert not copied.is_compiled and copied.prepare().is_compiled == solver.is_compiled
    there = copied.step(x, plan=plans[0], t0=4 * problem.dt)
    here = solver.step(x, plan=plans[0], t0=4 * problem.dt)
    assert np.array_equal(there.plan.numbers, here.plan.numbers)


@pytest.mark.compiled
@pytest.mark.parametrize(("method", "substeps"), [("euler", 3), ("rk4", 2)])
@pytest.mark.usually(method="euler")
def test_long_derivatives_of_substeps_are_multiplied_in_c(method, substeps, monkeypatch, rng):
    """As expanded in NumPy, where the stage holds the products; each factor equals AD."""
    monkeypatch.setattr("lgcontrol.optimal._stage_functions.LONGEST_PRODUCT", 0)
    drag = rng.uniform(0.5, 1.0, 6)

    def field(t, x, u, p):
        v = x[7:]
        spin = ca.cross(v[3:], INERTIA * v[3:]) / INERTIA
        return ca.vertcat(
            v, p * ca.vertcat(u, ca.sin(t + x[0])) - drag * v - ca.vertcat(0, 0, 0, spin)
        )

    inputs = [Input(f"push{i}", "N", -2.0, 2.0) for i in range(5)]
    state = Product(pose=SE3, twist=Rn(6))
    body = System("body", state, field, inputs=inputs, parameters=["gain"]).with_parameters(
        {"gain": 1.5}
    )
    goal, x0 = state.identity, state.exp(np.r_[rng.uniform(-1, 1, 6), np.zeros(6)])
    problem = OptimalControlProblem(
        body, 9, 0.1, Q=1.0, R=0.1, terminal=10.0, reference=goal, method=method,
        substeps=substeps, bounds=[Bound("twist", -1.0, 1.0)],
    )  # fmt: skip
    plain, built = in_numpy(problem), InteriorPointSolver(problem).prepare()
    model = built.model
    assert built.is_compiled and not plain.is_compiled and model.composes
    assert built.memory.model.substeps == substeps
    for limits in ({"max_iterations": 1}, {"max_iterations": 3}, {"tolerance": 1e-8}):
        a, b = (solver.solve(x0, guess="rest", **limits) for solver in (plain, built))
        np.testing.assert_allclose(a.x, b.x, atol=1e-10)
        np.testing.assert_allclose(a.u, b.u, atol=1e-10)
    assert a.status == b.status == "converged"
    at = {"t": 0.3, "x": x0, "u": rng.normal(size=5), "p": [1.5], "dt": 0.05}
    d, u = ca.SX.sym("d", 12), ca.SX.sym("u", 5)
    end = body.step(method).function(at["t"], state.plus(ca.DM(x0), d), u, at["p"], at["dt"])
    here = ca.DM(body.step(method)(at["t"], x0, at["u"], at["p"], at["dt"]))
    slopes = ca.jacobian(state.minus(end, here), ca.vertcat(d, u))
    by_ad = ca.Function("by_ad", [d, u], [slopes])(np.zeros(12), at["u"])
    np.testing.assert_allclose(model.substep(*at.values()).F.T, by_ad, atol=1e-10)


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_converges_where_violations_are_of_the_size_of_rounding(makes):
    """The whole step raises the barrier function by the rounding of violations times multipliers.

    The filter took steps of 2⁻¹⁹ there until the limit of iterations.
    """
    A = ca.DM([[0.874, -0.426], [-0.296, 1.387]])
    B = ca.DM([[0.943, -0.302], [0.803, -0.086]])
    system = System(
        "saturated", Rn(2), lambda t, x, u, p: A @ ca.tanh(x) + B @ u,
        inputs=[Input("u0", lower=-2.1, upper=2.1), Input("u1", lower=-2.1, upper=2.1)],
    )  # fmt: skip
    end = Bound(lambda t, x, u, p: x[0], 0.0, 0.0, at="terminal", name="end")
    problem = OptimalControlProblem(
        system, 10, 0.2, Q=0.0, R=1000.0, reference=[0.0, 0.0], bounds=[end]
    )
    found = makes(problem).solve([-0.7, -0.05], tolerance=1e-9, max_iterations=50)
    assert found.status == "converged" and found.kkt <= 1e-9, found.message


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_a_solve_from_a_solution_of_less_tolerance_costs_no_more_than_its_own_asks(makes):
    """The plan meets the residual asked for at once; its barrier is still that of the other one."""
    cart = System(
        "cart",
        Rn(2),
        lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -0.5, 0.5)],
    )
    short = Cost(lambda t, x, u, p: 1.1 - x[0], None, 1.0)  # of what could be reached
    problem = OptimalControlProblem(
        cart, 20, 0.1, Q=0.0, R=1e-6, terminal=0.0, reference=[0.0, 0.0],
        bounds=[Bound("x1", -0.3, 0.3)], costs=[short],
    )  # fmt: skip
    solver, least = makes(problem), InteriorPointSolver(problem).solve([0.5, 0], tolerance=1e-9)
    coarse = solver.solve([0.5, 0], tolerance=1e-4)
    found = solver.solve([0.5, 0], guess=coarse, tolerance=2e-6)
    assert coarse.kkt <= 2e-6 and coarse.cost > (1 + 4e-6) * least.cost
    assert found.is_success and found.cost <= (1 + 2e-6) * least.cost


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_the_unit_of_a_cost_does_not_change_its_optimum(makes):
    """A tolerance that is not relative to the cost ended 25 % above the optimum at 1e-6."""
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=[Input("push", "", -1, 1)])

    def cost(unit):
        problem = OptimalControlProblem(
            cart, 40, 0.1, Q=unit * np.array([1.0, 0.1]), R=0.01 * unit, reference=[0.0, 0.0],
            bounds=[Bound(lambda t, x, u, p: x[1], -0.4, 0.4, name="speed")],
        )  # fmt: skip
        plan = makes(problem).solve([1.0, 0.2])
        assert plan.status == "converged"
        return plan.cost / unit

    assert cost(1e-6) == pytest.approx(cost(1.0), rel=1e-6)


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
@pytest.mark.parametrize("moving", [1, 3, 4])
def test_few_sizes_are_no_measure_for_the_states_without_one(makes, moving):
    """Of eight carts few move; the others, of forces up to 1000 N, would be 100 m off."""
    system = System(
        "carts", Rn(8), lambda t, x, u, p: u - x,
        inputs=[Input(f"force{i}", "N", -1000.0, 1000.0) for i in range(8)],
    )  # fmt: skip
    problem = OptimalControlProblem(system, 4, 0.1, Q=1.0, R=1e-3, reference=np.zeros(8))
    solver = makes(problem)
    found = solver.solve([0.04] * moving + [0.0] * (8 - moving))
    of_plans, of_loops = found.plan["scales"]
    assert (of_plans == of_loops).all() == (moving < 4)
    if moving == 1:  # the barrier begins at what the small cost is worth: at 1 eight iterates
        assert len(found.iterations) == 5


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_distances_by_rounding_are_no_sizes(makes):
    """A goal that a residual alone knows: states are off their reference by 1e-12 at first."""
    system = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "N", -1, 1)])
    there = Residual(lambda t, x, u, p: x[0] - 1.0, 0.0, terminal=100.0, name="there")
    problem = OptimalControlProblem(
        system, 20, 0.1, Q=0.1, R=0.1, reference=np.zeros(2), residuals=[there],
        bounds=[Bound("x1", -0.8, 0.8)],
    )  # fmt: skip
    found = makes(problem).solve([1e-12, -1e-12])
    assert found.is_success and len(found.iterations) <= 20
    assert (found.plan["scales"][:, 1:3] > 0.01).all()


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_rounding_of_a_state_hides_no_other_one(makes):
    """A temperature beside a count of crystals: 1e-8 of the count is more than the temperature."""
    system = System(
        "crystals", Rn(2), lambda t, x, u, p: [u - x[0], 1e9 * x[0]],
        inputs=[Input("heat", "K/s", -1, 1)],
    )  # fmt: skip
    problem = OptimalControlProblem(system, 5, 0.1, Q=[1, 0], R=0.1, reference=[0.0, 0.0])
    plan = makes(problem).solve([0.2, 1e10], max_iterations=0).plan
    assert plan["scales"][0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize("makes", [InteriorPointSolver, in_numpy])
def test_a_motion_by_rounding_is_no_size(makes):
    """Steps of a car at rest move it across by 1e-16 m of rounding: its way along is its size."""
    car = System(
        "car", Product(pose=SE2, speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(u[0]) / 2500, u[1]),
        inputs=[Input("steer", "rad", -0.6, 0.6), Input("push", "m/s²", -2000, 2000)],
    )  # fmt: skip
    ends = {"pose.x": 8000.0, "pose.y": 0.0, "speed": 0.0}
    stop = [Bound(name, end, end, at="terminal") for name, end in ends.items()]
    problem = OptimalControlProblem(car, 20, 0.1, Q=0, R=[0.1, 1e-8], bounds=stop)
    plan = makes(problem).solve([0, 0, 1, 0, 0], max_iterations=0).plan
    along, across, _, speed, *_ = plan["scales"][0][-6:]
    assert along == 8000 and across == pytest.approx(8000)
    assert speed == pytest.approx(2000 * 2.0)  # what pushes add in 2 s


def test_a_success_in_large_units_is_not_said_to_have_defects():
    """The distance to a planet, in m: defects of decimetres are a part in 10¹²."""
    thrust = Input("thrust", "m/s²", -1.0, 1.0)
    ship = System(
        "ship",
        Rn(2, ("x", "v")),
        lambda t, x, u, p: [x[1], u[0] * ca.cos(1e-11 * x[0])],
        inputs=[thrust],
    )
    stop = [Bound("x", 0, 0, at="terminal"), Bound("v", 0, 0, at="terminal")]
    problem = OptimalControlProblem(ship, 20, 5e4, Q=0, R=1.0, bounds=stop)
    found = problem.solve([1e11, 0.0], tolerance=1e-4)
    assert found.is_success
    assert found.defect > 1e-4
    assert "dynamically" not in found.message
