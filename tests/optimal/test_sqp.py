"""Solutions against linear theory, general optimisers, symmetry; what a solve says of itself."""

import casadi as ca
import control
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

from lgcontrol.controllers import LQR, ThrustVectorPD
from lgcontrol.groups import SO2, SO3, Rn
from lgcontrol.optimal import (
    Bound,
    OptimalControlProblem,
    Residual,
    lqr,
)
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._guess import moved_on
from lgcontrol.optimal._internal import Nodes, make_solver
from lgcontrol.systems import Parameter, System, Trajectory

from ..benchmarks._sqp_peer import SQPSolver
from ..controllers.problem_a import GOAL, HOVER, quadrotor
from ..systems.test_error_coordinates import absolute, minimal, states
from .examples import double_integrator, pendulum, satellite, vessel

UP = np.array([-1.0, 0.0, 0.0])
DOWN = np.array([1.0, 0.0, 0.0])
WEIGHT = {"angle": 1, "rate": 0.1}
# The solver's own default: residuals below 1e-6, costs then agree to its square.
TOLERANCE = 1e-6
# Steps of two forms of the same equations differ by their errors, of the fifth order in dt.
PROJECTED = 1e-5


@pytest.fixture(autouse=True)
def by_sqp(monkeypatch):
    """Problems that name no solver are solved by SQP here, whichever is the default."""
    monkeypatch.setattr("lgcontrol.optimal._solver.DEFAULT_SOLVER", "sqp")


def swing_up(**options):
    arguments = {"Q": WEIGHT, "R": 0.1, "terminal": 50.0, "reference": UP} | options
    return OptimalControlProblem(pendulum(), 100, 0.1, **arguments)


def replayed(problem, solution):
    """Cost of the planned inputs on the system itself."""
    run = problem.system.rollout(solution.x[0], solution.u, dt=problem.dt)
    return path_cost(problem, run, solution.reference)


def path_cost(problem, run, reference):
    """Cost by its definition."""
    group, dt = problem.system.state, problem.dt
    e = group.minus(run.x, reference.x)
    du = (run.u - reference.u[:-1])[:, problem.system.input_index("control")]
    stages = np.einsum("ki,ij,kj", e[:-1], problem.Q, e[:-1]) + np.einsum(
        "ki,ij,kj", du, problem.R, du
    )
    return dt / 2 * stages + e[-1] @ problem.terminal @ e[-1] / 2


def test_linear_problems_take_one_step_and_agree_with_riccati(rng):
    system = double_integrator()
    problem = OptimalControlProblem(
        system, 30, 0.1, Q=[1, 2, 0.1, 0.1], R=0.5, terminal="riccati", reference=np.zeros(4)
    )
    x0 = rng.normal(size=4)
    assert len(problem.solve(x0).iterations) == 1  # the start is the regulator's motion already
    solution = problem.solve(x0, guess=Trajectory.constant(system.state, x0, [0.0, 0.0]))
    assert solution.is_success
    assert len(solution.iterations) == 2
    discrete = system.discretize(0.1).linearize(np.zeros(4))
    P = solve_discrete_are(discrete.A, discrete.B, 0.1 * problem.Q, 0.1 * problem.R)
    assert abs(solution.cost - x0 @ P @ x0 / 2) < 1e-9 * solution.cost
    regulator = lqr(system, np.zeros(4), problem.Q, problem.R, dt=0.1)
    assert np.allclose(solution.u[0], -regulator.K @ x0, atol=1e-8)


@pytest.mark.usually(qp=("daqp", "ipqp"))
@pytest.mark.parametrize("qp", ["daqp", "piqp", "ipqp"])
def test_swing_up_is_a_minimum_among_its_neighbours(qp, rng):
    problem = swing_up()
    solution = problem.solve(DOWN, solver=SQPSolver(qp=qp))
    assert solution.is_success
    assert solution.defect < TOLERANCE
    assert abs(replayed(problem, solution) - solution.cost) < 1e-5 * solution.cost
    assert np.abs(problem.system.state.minus(solution.x[-1], UP)).max() < 0.05
    for size in (1e-2, 1e-1):
        for _ in range(20):
            u = np.clip(solution.u + size * rng.normal(size=solution.u.shape), -0.5, 0.5)
            run = problem.system.rollout(DOWN, u, dt=0.1)
            assert path_cost(problem, run, solution.reference) > solution.cost - 1e-9


def test_agrees_with_a_general_optimiser_over_the_inputs(rng):
    system = satellite(limit=0.6)
    goal = system.state.identity
    problem = OptimalControlProblem(
        system, 5, 0.4, Q={"attitude": 2, "rate": 0.5}, R=0.2, reference=goal
    )
    x0 = np.concatenate([SO3.exp([1.5, -1.0, 0.7]), [0.3, 0.0, -0.4]])
    solution = problem.solve(x0)
    assert solution.is_success

    def cost(v):
        run = system.rollout(x0, v.reshape(5, 3), dt=0.4)
        return path_cost(problem, run, solution.reference)

    found = minimize(cost, np.zeros(15), bounds=[(-0.6, 0.6)] * 15, method="L-BFGS-B")
    # L-BFGS-B with differences stops at a relative decrease of 1e-9.
    assert abs(found.fun - solution.cost) < 1e-6 * solution.cost
    assert np.abs(found.x.reshape(5, 3) - solution.u).max() < 5e-3


def test_both_signs_of_a_quaternion_are_one_problem():
    system = quadrotor()
    problem = OptimalControlProblem(
        system, 15, 0.05, Q={"pose": 10, "twist": 1}, R=0.1, reference=GOAL
    )
    solver = SQPSolver(problem)
    x0 = np.concatenate([[1.5, 1, 1], SO3.exp([2.0, 1.0, -0.5]), np.zeros(6)])
    other = x0.copy()
    other[3:7] *= -1
    a, b = solver.solve(x0), solver.solve(other)
    assert a.is_success
    assert abs(a.cost - b.cost) < 1e-9 * a.cost
    assert np.allclose(a.u, b.u, atol=1e-7)


def test_a_common_motion_of_start_and_reference_changes_nothing(rng):
    """A satellite in space: costs and inputs depend on the error alone."""
    system = satellite(limit=1.0)
    problem = OptimalControlProblem(system, 12, 0.2, Q={"attitude": 5, "rate": 1}, R=0.1)
    solver = SQPSolver(problem)
    attitude = SO3.random(rng, ())
    x0 = np.concatenate([SO3.exp([1.0, 0.5, -1.2]), 0.2 * rng.normal(size=3)])
    turned = np.concatenate([SO3.compose(attitude, x0[:4]), x0[4:]])
    goal = np.concatenate([attitude, np.zeros(3)])
    a = solver.solve(x0, reference=system.state.identity)
    b = solver.solve(turned, reference=goal)
    assert a.is_success
    assert np.allclose(a.u, b.u, atol=1e-7)


# Exactly half a turn about x may be the identity with w first, and rollouts ask.
@pytest.mark.filterwarnings("ignore:.*is w first")
@pytest.mark.usually(axis=([1, 2, -1],))
@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [1, 2, -1]])
def test_exactly_half_a_turn_is_like_nearly_half_a_turn(axis):
    system = satellite(limit=1.0)
    problem = OptimalControlProblem(
        system, 30, 0.2, Q={"attitude": 5, "rate": 1}, R=0.1, reference=system.state.identity
    )
    solver = SQPSolver(problem)
    unit = np.array(axis) / np.linalg.norm(axis)
    half = np.concatenate([unit, [0.0], np.zeros(3)])
    nearly = np.concatenate([SO3.exp((np.pi - 1e-6) * unit), np.zeros(3)])
    a, b = solver.solve(half), solver.solve(nearly)
    assert a.is_success and b.is_success
    assert abs(a.cost - b.cost) < 1e-4 * b.cost
    assert SO3.distance(a.x[-1, :4], SO3.identity) < 0.2


def test_converges_to_the_best_known_cost_from_a_followed_controller():
    system = quadrotor()
    problem = OptimalControlProblem(
        system, 40, 0.05, Q={"pose": 10, "twist": 1}, R=0.1, reference=GOAL
    )
    upside_down = np.concatenate([np.zeros(3), SO3.exp([np.pi, 0, 0]), np.zeros(6)])
    solution = problem.solve(
        upside_down, guess=ThrustVectorPD(system), tolerance=1e-4, max_iterations=100
    )
    assert solution.is_success, solution
    assert solution.kkt <= 1e-4
    assert np.abs(system.state.minus(solution.x[-1], GOAL)).max() < 0.1
    costs = [entry.cost for entry in solution.iterations]
    assert costs[-1] < costs[0]


def test_hard_bounds_are_kept_and_cost_something():
    free = swing_up().solve(DOWN)
    bounded = swing_up(bounds=[Bound("rate", -1.1, 1.1)]).solve(DOWN)
    assert free.is_success and bounded.is_success
    assert np.abs(free.x[1:, 2]).max() > 1.3
    assert np.abs(bounded.x[1:, 2]).max() < 1.1 + TOLERANCE
    assert bounded.cost > free.cost
    assert not bounded.violations


def test_soft_bounds_cost_their_weight():
    hard = swing_up(bounds=[Bound("rate", -1.1, 1.1)]).solve(DOWN)
    free = swing_up().solve(DOWN)
    costs, excess = [], []
    for weight in (0.1, 1.0, 1e4):
        solution = swing_up(bounds=[Bound("rate", -1.1, 1.1, soft=weight)]).solve(DOWN)
        assert solution.is_success
        costs.append(solution.cost)
        excess.append(np.maximum(np.abs(solution.x[1:, 2]) - 1.1, 0).sum())
    assert free.cost < costs[0] < costs[1] < costs[2]
    assert excess[0] > excess[1] > 0.0
    # The penalty is exact: past the multipliers' size nothing is exceeded any more.
    assert excess[2] < TOLERANCE
    assert abs(costs[2] - hard.cost) < 1e-5 * hard.cost


@pytest.mark.parametrize(
    ("bounds", "limits", "kinds"),
    [
        ([Bound("rate", -0.2, 0.2, at="path"), Bound("rate", 3, 4, at="terminal")], (),
         ("path", "terminal")),
        ([Bound(lambda t, x, u, p: x[2], upper=-0.2, name="rate"), Bound("rate", lower=0.2)],
         (), ("upper", "lower")),
        ([Bound("rate", 0.2, 0.2)], ("rate.lower", "rate.upper"), ("lower", "upper")),
    ],
)  # fmt: skip
def test_violated_bounds_of_one_name_are_told_apart(bounds, limits, kinds):
    problem = swing_up(bounds=bounds).symbolic(*limits)
    if limits:
        problem = problem.with_parameters({"rate.lower": 0.2, "rate.upper": -0.2})
    solution = problem.solve(DOWN, max_iterations=10)
    assert {entry.kind for entry in solution.violations} == set(kinds)
    for kind in kinds:
        verb = "falls below" if kind.endswith("lower") else "exceeds"
        assert f"rate {verb} its {kind} bound by" in solution.message


def test_gates_that_are_too_far_apart_are_named_by_their_nodes():
    gates = [
        Bound("rate", 0.5, 0.5, at=range(5, 6)), Bound("rate", -0.5, -0.5, at=range(6, 8)),
        Bound("rate", 2.0, 2.0, at=range(8, 12, 2)),
    ]  # fmt: skip
    problem = swing_up(bounds=gates)
    found = problem.solve(DOWN, max_iterations=3)
    kinds = {entry.kind for entry in found.violations}
    assert kinds <= {"node 5", "nodes 6 to 7", "nodes 8 to 10 in steps of 2"} and len(kinds) > 1
    assert "rate misses its bound at node" in found.message
    text = repr(problem)
    assert text.startswith("OptimalControlProblem('") and "bounds=[rate, rate, rate]" in text
    assert len(text) < 200


def test_infeasible_bounds_are_named():
    problem = swing_up(
        bounds=[Bound("rate", -0.2, 0.2), Bound("angle.rz", -1.0, 1.0, at="terminal")]
    )
    solution = problem.solve(DOWN)
    assert not solution.is_success
    assert solution.status in ("infeasible", "iteration limit")
    assert {entry.name for entry in solution.violations} & {"angle.rz", "rate"}
    assert "exceeds its bound by" in solution.message
    assert np.isfinite(solution.x).all()
    assert (np.abs(solution.u) <= 0.5).all()


def test_end_constraints_by_bounds():
    problem = swing_up(
        bounds=[Bound("angle.rz", 0, 0, at="terminal"), Bound("rate", 0, 0, at="terminal")]
    )
    solution = problem.solve(DOWN)
    assert solution.is_success
    assert np.abs(problem.system.state.minus(solution.x[-1], UP)).max() < TOLERANCE


def test_residuals_say_the_same_as_weights():
    def error(t, x, u, p):
        return ca.vertcat(ca.atan2(-x[1], -x[0]), x[2])

    weights = np.array([1.0, 0.1])
    stated = swing_up()
    residual = Residual(error, weights, terminal=stated.terminal)
    other = swing_up(Q=0, terminal=0, residuals=[residual])
    assert abs(stated.solve(DOWN).cost - other.solve(DOWN).cost) < 1e-7


def test_parameters_reach_residuals_and_model():
    problem = swing_up(
        Q={"rate": 0.1},
        residuals=[Residual(lambda t, x, u, p: ca.sin(ca.atan2(x[1], x[0]) - p[1]), 1.0, 10.0)],
        parameters=[Parameter("target", "rad", 0.2)],
        terminal=0.0,
    )
    solver = SQPSolver(problem)
    assert np.array_equal(solver.problem.nominal_parameters, [1.0, 0.2])
    for target in (0.1, -0.3):
        solution = solver.solve(DOWN, p=[1.0, target], reference=DOWN)
        assert solution.is_success
        assert abs(SO2.log(solution.x[-1, :2])[0] - target) < 0.05
    with pytest.raises(ValueError, match=r"p has shape \(1,\), expected \(2,\)"):
        solver.solve(DOWN, p=[1.0])


def test_a_reference_is_seen_in_advance():
    system = vessel()
    problem = OptimalControlProblem(system, 20, 0.2, Q={"pose": 10, "twist": 0.1}, R=0.01)
    path = system.rollout(system.state.identity, [1.0, 0.3, 0.0], dt=0.2, steps=30)
    solver = SQPSolver(problem)
    solution = solver.solve(path.x[5], reference=path, t0=1.0)
    assert solution.is_success
    assert solution.cost < 1e-10  # the start is on a motion of the system
    assert np.allclose(solution.u, path.u[5:25], atol=1e-5)


def test_other_inputs_follow_the_reference():
    """A known current is compensated, not fought with."""
    system = vessel()
    problem = OptimalControlProblem(system, 20, 0.2, Q={"pose": 10, "twist": 0.1}, R=0.01)
    goal = system.trim(where={"pose": system.state.identity[:4]}, u=[0, 0, -0.4])
    solution = problem.solve(goal.x, reference=goal)
    assert solution.is_success
    assert solution.cost < 1e-10
    assert np.allclose(solution.u[:, 2], -0.4)


def test_discrete_systems_and_mx_systems_give_the_same_plan():
    plain = swing_up().solve(DOWN)
    discrete = OptimalControlProblem(
        pendulum().discretize(0.1), 100, Q=WEIGHT, R=0.1, terminal=50.0, reference=UP
    ).solve(DOWN)
    assert abs(discrete.cost - plain.cost) < 1e-6
    source = pendulum()
    as_mx = System(
        "pendulum",
        source.state,
        source.f.function,
        inputs=source.inputs,
        parameters=source.parameters,
        symbol=ca.MX,
    )
    graph = OptimalControlProblem(as_mx, 100, 0.1, Q=WEIGHT, R=0.1, terminal=50.0, reference=UP)
    assert abs(graph.solve(DOWN).cost - plain.cost) < 1e-6


def test_a_solution_is_the_best_guess_for_itself():
    solver = SQPSolver(swing_up())
    first = solver.solve(DOWN)
    again = solver.solve(DOWN, guess=first)
    assert len(again.iterations) <= 3 < len(first.iterations)
    nearby = np.concatenate([SO2.exp([0.1]), [0.05]])
    assert len(solver.solve(nearby, guess=first).iterations) < len(first.iterations)


def test_limits_and_callbacks_end_a_solve_with_its_best_iterate():
    solver, seen = SQPSolver(swing_up()), []
    short = solver.solve(DOWN, max_iterations=3)
    assert short.status == "iteration limit"
    assert "after 3 iterations" in short.message
    assert solver.solve(DOWN, time_limit=0.0).status == "time limit"
    stopped = solver.solve(DOWN, callback=lambda entry: seen.append(entry) or entry.number == 2)
    assert stopped.status == "stopped"
    assert [entry.number for entry in seen] == [0, 1, 2]
    assert all(seen[i].time <= seen[i + 1].time for i in range(2))
    assert np.isfinite(short.x).all()
    assert not short.is_success
    assert "iteration limit" in repr(short)


@pytest.fixture(scope="module")
def crossing():
    quad = quadrotor()
    return OptimalControlProblem(
        quad, 60, 0.05, Q={"pose": 1, "twist": 0.1}, R=0.01, terminal=1000.0,
        reference=quad.trim(position=[2, 0, 0]),
    )  # fmt: skip


@pytest.mark.usually(turn=(1.0,), axis=([0, 0, 1],))
@pytest.mark.parametrize(
    ("turn", "axis"),
    [(0.5, [0.6, 0.8, 0.0]), (0.9, [1.0, 0.0, 0.0]), (1.0, [0.6, 0.8, 0.0]), (1.0, [0, 0, 1])],
)
def test_tilted_starts_need_no_guess(turn, axis, crossing):
    problem, quad = crossing, crossing.system
    x0 = quad.state.join(pose=np.r_[0, 0, 0, SO3.exp(turn * np.pi * np.array(axis))])
    solution = problem.solve(x0, max_iterations=40)
    assert solution.is_success
    followed = problem.solve(x0, guess=ThrustVectorPD(quad))
    assert solution.cost == pytest.approx(followed.cost, rel=1e-5)


@pytest.mark.thorough
def test_steps_that_lead_nowhere_end_a_solve_with_a_hint(crossing):
    problem, quad = crossing, crossing.system
    x0 = quad.state.join(pose=np.r_[0, 0, 0, SO3.exp([0.9 * np.pi, 0, 0])])
    solution = problem.solve(x0, guess=Trajectory.constant(quad.state, x0, HOVER))
    assert solution.status == "stalled"
    assert "guess=" in solution.message


def test_one_real_time_step_is_one_iteration(rng):
    system = satellite(limit=1.0)
    problem = OptimalControlProblem(
        system, 20, 0.2, Q={"attitude": 5, "rate": 1}, R=0.1, reference=system.state.identity
    )
    solver = SQPSolver(problem)
    x0 = np.concatenate([SO3.exp([2.0, 1.0, -1.0]), np.zeros(3)])
    solution = solver.solve(x0, tolerance=1e-9)
    direction = rng.normal(size=6)
    ratios = []
    for size in (0.1, 0.01):
        moved = system.state.plus(x0, size * direction)
        solver.solve(x0, guess=solution, tolerance=1e-9)
        step = solver.step(moved)
        assert step.status == "iteration limit"
        assert np.allclose(system.state.minus(step.x[0], moved), 0, atol=1e-12)
        best = solver.solve(moved, guess=solution, tolerance=1e-9)
        before, after = (np.abs(u - best.u).max() for u in (solution.u, step.u))
        ratios.append(after / before)
    # Gauss-Newton leaves a share of the error that does not shrink with it, and the second order.
    assert max(ratios) < 0.5


def test_wrong_starts_are_refused():
    solver = SQPSolver(swing_up())
    with pytest.raises(ValueError, match=r"x0 has shape \(2,\), expected \(3,\)"):
        solver.solve([1.0, 0.0])
    with pytest.raises(ValueError, match="x0 is not finite"):
        solver.solve([np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match="states of the guess"):
        solver.solve(DOWN, guess=Trajectory(SO2, [0.0], [[1.0, 0.0]]))
    with pytest.raises(ValueError, match="unknown QP solver 'ipopt'"):
        SQPSolver(qp="ipopt")
    with pytest.raises(ValueError, match="unknown solver 'ipotp'.*sqp"):
        solver.problem.solve(DOWN, solver="ipotp")
    with pytest.raises(TypeError, match=r"or a solver such as NLPSolver\(plugin="):
        solver.problem.solve(DOWN, solver=SQPSolver)
    with pytest.raises(TypeError, match="tolerence"):
        solver.problem.solve(DOWN, tolerence=1.0)


def test_solutions_plot_states_inputs_and_reference():
    solution = swing_up().solve(DOWN)
    figure = solution.plot()
    titles = " ".join(ax.get_title(loc="left") for ax in figure.axes)
    assert "angle" in titles and "inputs" in titles
    assert any(line.get_linestyle() == "--" for ax in figure.axes for line in ax.lines)
    failed = swing_up().solve(DOWN, max_iterations=1).plot()
    shown = [text.get_text() for text in failed.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert any("after 1 iterations" in text.replace("\n", " ") for text in shown)


def test_constrained_systems_are_planned_for_in_their_own_errors():
    """A pendulum in the pose and twist of its body has two error coordinates, and the same plans.

    Its errors are those of the angle where the selection takes the angle and its rate.
    """
    free, bound = minimal(), absolute()
    assert (free.n_errors, bound.n_errors, bound.state.dim) == (2, 2, 6)
    (x0, X0), (goal, Goal) = states(0.9, 0.4), states(0.2, 0.0)
    options = {"R": 0.1, "Q": [2.0, 0.3], "terminal": "riccati"}
    small = OptimalControlProblem(free, 15, 0.05, reference=goal, **options).solve(x0)
    large = OptimalControlProblem(bound, 15, 0.05, reference=Goal, **options).solve(X0)
    assert small.is_success and large.is_success
    assert large.cost == pytest.approx(small.cost, rel=PROJECTED)
    assert np.abs(large.u - small.u).max() < 1e-4
    angles = np.arctan2(large.x[:, 3], large.x[:, 2])
    assert np.abs(angles - np.arctan2(small.x[:, 1], small.x[:, 0])).max() < 1e-5
    with pytest.raises(ValueError, match="unknown entry of Q 'pose.x'"):
        OptimalControlProblem(bound, 15, 0.05, Q={"pose.x": 1.0})


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.05, 0.25, 30.0, -1.0])
def test_a_plan_is_moved_on_to_its_new_times(shift):
    """By one step: each node is the next one, and the model says where the last input leads.

    A clock that went back leaves the plan where it is.
    """
    problem, later = swing_up(), max(shift, 0.0)
    group, horizon = problem.system.state, problem.horizon
    plan = problem.solve(DOWN, max_iterations=5)
    old = Nodes(plan.t + 2.0, plan.x, plan.u)
    p, times = problem.system.nominal_parameters, problem.times(2.0 + shift)
    new = moved_on(problem, old, times, Given(problem).setting(times), old.x[0])
    assert np.allclose(new.t, old.t + shift)
    for k in range(len(new.t)):
        if shift == 0.1 and k == horizon:
            expected = problem.system.step()(old.t[-1], plan.x[-1], plan.u[-1], p, 0.1)
        else:
            expected = plan.trajectory(plan.t[k] + later).x
        assert np.abs(group.minus(new.x[k], expected)).max() < 1e-9, k
    held = plan.trajectory(plan.t[:-1] + later + 1e-9).u
    assert np.allclose(new.u, held)
    if shift == 0.1:
        assert np.abs(new.u - plan.u).max() > 1e-3  # the plan is not the same everywhere
    new.x[:], new.u[:] = 0.0, 0.0  # and it is the caller's own
    assert np.array_equal(old.x, plan.x) and np.abs(plan.x[:, :2]).max() == 1.0


def test_what_gets_no_lower_is_acceptable_where_it_is_low():
    problem = swing_up()
    strict = problem.solve(DOWN, tolerance=1e-16)
    assert strict.status == "acceptable" and strict.is_success
    assert strict.kkt <= 1e-4
    assert "rounding ends it above 1.0e-16" in strict.message


def test_a_solver_without_a_problem_is_its_settings():
    settings = SQPSolver(qp="piqp")
    problem = swing_up()
    assert settings.for_problem(problem).qp.name == "piqp"
    assert repr(settings) == "SQPSolver(qp='piqp')"
    with pytest.raises(ValueError, match=r"SQPSolver\(qp='piqp'\) has no problem yet"):
        settings.solve(DOWN)
    solver = SQPSolver(problem)
    with pytest.raises(ValueError, match="nothing to go on from: solve first"):
        solver.step(DOWN)
    with pytest.raises(NotImplementedError, match="SQPSolver does not export C99"):
        solver.export_c("folder")


def test_systems_of_python_control_are_refused_with_a_remedy():
    plant = control.ss([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    for law in (lqr, LQR):
        with pytest.raises(TypeError, match="not StateSpace; System.from_control.*control.lqr is"):
            law(plant, [0.0])


@pytest.mark.parametrize("solver", ["sqp", "interior_point"])
def test_plans_whose_steps_do_not_solve_their_equations_fail(solver):
    bend = System(
        "bend", Rn(1), lambda t, x, u, p: -1e4 * ca.sinh(x) + 1e3 * u, inputs=["push"],
        symbol=ca.MX,
    )  # fmt: skip
    problem = OptimalControlProblem(
        bend, 3, 0.02, Q=1.0, R=0.1, method="radau_iia5", substeps=1, reference=[0.0]
    )
    made = make_solver(solver, problem)
    for found in (made.solve([30.0]), made.step([30.0], t0=0.0)):
        assert found.status == "failed" and not found.is_success
        assert "steps of radau_iia5 did not solve their equations" in found.message
    assert made.solve([0.1]).is_success
    assert made.step([0.1]).status == "iteration limit"
