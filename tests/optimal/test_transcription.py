"""The stage QP against differences of the functions it linearizes."""

import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.controllers.designs import panda_mpc
from lgcontrol.groups import Rn
from lgcontrol.mechanics import Multibody
from lgcontrol.optimal import (
    Bound,
    OptimalControlProblem,
    Residual,
)
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._internal import Nodes
from lgcontrol.systems import Input, System

from ..benchmarks._sqp_peer import SQPSolver, StageQP
from ..controllers.problem_a import quadrotor
from .examples import SYSTEMS

ALL = SYSTEMS | {"quadrotor": quadrotor}
STEP = 1e-5
# Central differences of functions of order one to a hundred with this step.
DIFFERENCE_TOLERANCE = 2e-6


def residual(t, x, u, p):
    return ca.vertcat(ca.sin(x[0]) * u[0] + t, x[1] ** 2)


@pytest.fixture(params=ALL)
def case(request, rng):
    system = ALL[request.param]()
    group = system.state
    problem = OptimalControlProblem(
        system,
        5,
        0.1,
        Q=np.diag(rng.uniform(0.5, 2, group.dim)),
        R=rng.uniform(0.5, 2),
        residuals=[Residual(residual, [1.0, 2.0], terminal=3.0)],
        bounds=[
            Bound(residual, upper=[1.0, 2.0]),
            Bound(group.tangent_names[0], -1, 1),
            Bound(group.coordinate_names[-1], -5, 5),
        ],
    )
    solver = SQPSolver(problem)
    goal = group.random(rng)
    times = problem.times(0.3)
    near = group.plus(goal, 0.5 * rng.normal(size=(6, group.dim)))
    nodes = Nodes(times, near, rng.uniform(0.1, 0.4, (5, system.n_inputs)))
    return solver, nodes, Given(problem).setting(times, goal), rng


def moved(solver, nodes, x, u):
    """Nodes displaced without clipping of the inputs."""
    inputs = nodes.u.copy()
    inputs[:, solver.transcription.controls] += u
    return Nodes(nodes.t, solver.problem.system.state.plus(nodes.x, x), inputs)


def slopes(solver, nodes, setting, x, u):
    """Central differences of the cost, the gaps and the rows along a displacement."""
    ends = [
        solver.transcription.values(moved(solver, nodes, s * x, s * u), setting)
        for s in (STEP, -STEP)
    ]
    return [(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]


def test_derivatives_of_cost_gaps_and_rows(case):
    solver, nodes, setting, rng = case
    values, qp = StageQP.about(solver.transcription, nodes, setting, nodes.x[0])
    same = solver.transcription.values(nodes, setting)
    assert np.isclose(values.cost, same.cost)
    assert np.allclose(values.gaps, same.gaps)
    assert np.allclose(values.rows, same.rows)
    for _ in range(3):
        x, u = rng.normal(size=qp.q.shape), rng.normal(size=qp.r.shape)
        cost, gaps, rows = slopes(solver, nodes, setting, x, u)
        scale = 1 + abs(cost)
        assert abs(np.vdot(qp.q, x) + np.vdot(qp.r, u) - cost) < DIFFERENCE_TOLERANCE * scale
        predicted = np.einsum("kij,kj->ki", qp.A, x[:-1]) + np.einsum("kij,kj->ki", qp.B, u)
        # The gap runs from the next node: where that moves by e it changes by −J_l(c)⁻¹ e, which
        # the QP replaces by −e in the equation of the next node's own tangent vector.
        group = solver.problem.system.state
        own = np.einsum("kij,kj->ki", group.left_jacobian_inverse(values.gaps), x[1:])
        assert np.abs(predicted - own - gaps).max() < DIFFERENCE_TOLERANCE * 10
        linear = np.einsum("kij,kj->ki", qp.C, x)
        linear[:-1] += np.einsum("kij,kj->ki", qp.D, u)
        error = np.where(qp.active, linear - rows, 0.0)
        assert np.abs(error).max() < DIFFERENCE_TOLERANCE * 10


def test_the_curvature_is_that_of_the_residuals(case):
    """Gauss-Newton: the Hessian is dt Σ JᵀWJ, which no negative direction spoils."""
    solver, nodes, setting, rng = case
    _, qp = StageQP.about(solver.transcription, nodes, setting, nodes.x[0])
    for k in range(5):
        H = np.block([[qp.Q[k], qp.S[k].T], [qp.S[k], qp.R[k]]])
        assert np.allclose(H, H.T)
        assert np.linalg.eigvalsh(H).min() > -1e-12
    assert np.linalg.eigvalsh(qp.Q[-1]).min() > -1e-12


def test_at_a_zero_residual_gauss_newton_is_the_exact_hessian(rng):
    system = ALL["quadrotor"]()
    problem = OptimalControlProblem(system, 5, 0.1, Q={"pose": 10, "twist": 1}, R=0.1)
    solver = SQPSolver(problem)
    goal = system.state.random(rng)
    times = problem.times()
    setting = Given(problem).setting(times, goal)
    nodes = Nodes(times, np.tile(goal, (6, 1)), setting.u_ref[:-1].copy())
    qp = StageQP.about(solver.transcription, nodes, setting, goal)[1]
    x, u = rng.normal(size=qp.q.shape), rng.normal(size=qp.r.shape)
    h = 1e-3
    cost = [
        solver.transcription.values(moved(solver, nodes, s * x, s * u), setting).cost
        for s in (h, 0, -h)
    ]
    second = (cost[0] - 2 * cost[1] + cost[2]) / h**2
    model = 2 * (qp.cost(x, u) - np.vdot(qp.q, x) - np.vdot(qp.r, u))
    # The log is cubic in its argument beyond the first order: relative error of order h².
    assert abs(second - model) < 1e-4 * abs(model)


def test_moving_stays_on_the_group_and_within_the_bounds(case):
    solver, nodes, setting, rng = case
    x = rng.normal(size=(6, solver.problem.system.state.dim))
    u = 100 * rng.normal(size=(5, len(solver.transcription.controls)))
    found = solver.transcription.move(nodes, x, u, setting)
    lower, upper = solver.problem.system.input_bounds
    assert (found.u >= lower).all() and (found.u <= upper).all()
    group = solver.problem.system.state
    assert np.allclose(group.normalize(found.x), found.x)
    assert np.allclose(group.minus(found.x, group.plus(nodes.x, x)), 0, atol=1e-9)


@pytest.mark.thorough
def test_a_stage_of_the_panda_stays_within_its_budget():
    """Closed forms go through the stages of the method: 126,000 instructions by AD of the step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plans that know no joint limits
        mpc = panda_mpc.design().controller
    functions = mpc.solver.transcription._functions
    assert functions.stage.function.n_instructions() <= 48_000
    assert functions.stage_values.function.n_instructions() <= 8_000


@pytest.mark.thorough
def test_losses_too_fast_for_explicit_steps_are_planned_with(robot_file):
    """The wrist of z1 needs 677 substeps of rk4 in 0.05 s; with the linearly implicit step, one."""
    arm = Multibody.from_urdf(robot_file("z1.urdf")).system()
    lower, upper = (limit[:7] for limit in arm.state_limits)
    rest = arm.state.join(configuration=np.clip(0.05, lower, upper))
    goal = arm.state.join(configuration=np.clip(0.35, lower, upper))
    problem = OptimalControlProblem(
        arm, 10, 0.05, Q={"configuration": 10, "velocity": 0.1}, R=1e-3, reference=goal
    )
    assert (problem.method, problem.substeps) == ("linearly_implicit_euler", 1)
    solution = problem.solve(rest, max_iterations=30)
    assert solution.is_success
    assert np.abs(arm.state.minus(solution.x[-1], goal))[:7].max() < 0.1
    with pytest.raises(ValueError, match="need 677 substeps of rk4"):
        OptimalControlProblem(arm, 10, 0.05, method="rk4")


@pytest.mark.usually(solver=("interior_point",))
@pytest.mark.parametrize("bounds", [(), (Bound("x1", -0.3), Bound(lambda t, x, u, p: x[0], 0.8))])
@pytest.mark.parametrize("solver", ["sqp", "interior_point"])
def test_steps_that_solve_equations_are_planned_with(bounds, solver):
    """The plan is that for the discretized system, whose functions are of MX throughout."""
    belt = System(
        "belt", Rn(2), lambda t, x, u, p: [x[1], -1e6 * (x[1] - u)], inputs=[Input("v", "", -1, 1)]
    )
    given = {"R": 0.01, "reference": np.zeros(2), "bounds": bounds}
    problem = OptimalControlProblem(belt, 8, 0.05, method="radau_iia5", **given)
    plan = problem.solve([1.0, 0.0], solver=solver)
    sampled = OptimalControlProblem(belt.discretize(0.05, "radau_iia5"), 8, **given)
    expected = sampled.solve([1.0, 0.0], solver=solver)
    assert plan.is_success and expected.is_success
    np.testing.assert_allclose(plan.x, expected.x, rtol=0, atol=1e-6)
    assert plan.cost == pytest.approx(expected.cost, rel=1e-6)
    # A lag of 1 µs is none: the position is the sum of the speeds.
    np.testing.assert_allclose(np.diff(plan.x[:, 0]), 0.05 * plan.u[:, 0], rtol=0, atol=1e-5)
    if bounds:
        assert plan.x[1:, 1].min() > -0.3 - 1e-6 and plan.x[:, 0].min() > 0.8 - 1e-6
    chosen = MPC(belt, horizon=8, dt=0.05, solver="sqp", **given)
    assert chosen.problem.method == "radau_iia5" and chosen.problem.substeps == 1
    np.testing.assert_allclose(chosen(0.0, [1.0, 0.0]), plan.u[0], rtol=0, atol=1e-4)
