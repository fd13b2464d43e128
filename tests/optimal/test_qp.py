"""Every back-end against an assembly of its own, and against the others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from lgcontrol.groups import SO3
from lgcontrol.optimal import (
    Bound,
    OptimalControlProblem,
)

from ..benchmarks._sqp_peer import QP_SOLVERS, QPSolver, SQPSolver, StageQP
from ..benchmarks._sqp_peer._qp import MOST_PROGRAMS, Condensed, Places, Sparse, with_slacks
from ..controllers.problem_a import GOAL, quadrotor
from .examples import random_qp

BACKENDS = [*QP_SOLVERS, "auto"]
# First-order and interior-point back-ends stop at residuals of 1e-6 to 1e-9 of their own.
ANSWER_TOLERANCE = 2e-4
SHAPES = {
    "free": {"width": np.inf},
    "box": {},
    "one stage": {"horizon": 1},
    "hard rows": {"rows": 2, "width": 3.0},
    "soft rows": {"rows": 2, "soft": 0.5},
    "heavy soft rows": {"rows": 2, "soft": 20.0, "width": 3.0},
}


def trial(seed: int, shape: str) -> StageQP:
    qp = random_qp(np.random.default_rng(seed), **SHAPES[shape])
    if shape == "hard rows":  # around a point that can be reached, so that it is feasible
        u = 0.3 * np.ones(qp.r.shape)
        values = qp.rows(qp.states(u), u)
        qp = replace(qp, lower=values - 0.2, upper=values + 0.4)
    return qp


def reference(qp: StageQP) -> np.ndarray:
    """Inputs by a general optimiser on the inputs and slacks, with matrices from unit inputs."""
    horizon, _, m = qp.sizes
    size = horizon * m

    def rows(v):
        u = v.reshape(horizon, m)
        return qp.rows(qp.states(u), u)[qp.active]

    zero = np.zeros(size)
    matrix = np.array([rows(e) - rows(zero) for e in np.eye(size)]).T
    weight = np.broadcast_to(qp.soft, qp.active.shape)[qp.active]
    is_soft = np.isfinite(weight)
    slack = np.eye(len(weight))[:, is_soft]
    constraints = []
    for sign, limit in ((1.0, qp.upper), (-1.0, qp.lower)):
        if len(weight):
            full = np.hstack([sign * matrix, -slack])
            top = sign * (limit[qp.active] - rows(zero))
            constraints.append(LinearConstraint(full, -np.inf, top))

    core = replace(qp, soft=np.full(qp.soft.shape, np.inf))

    def at(v):
        u = v.reshape(horizon, m)
        return core.cost(core.states(u), u)

    # Gradient and Hessian of a quadratic function from its values at unit inputs.
    unit, origin = np.eye(size), at(zero)
    single = np.array([at(e) for e in unit])
    opposite = np.array([at(-e) for e in unit])
    pairs = np.array([[at(e + f) for f in unit] for e in unit])
    H = pairs - single[:, None] - single[None, :] + origin
    g = (single - opposite) / 2
    price = weight[is_soft]

    def cost(v):
        z, s = v[:size], v[size:]
        return z @ H @ z / 2 + g @ z + (price * (s + s**2 / 2)).sum()

    def gradient(v):
        return np.concatenate([H @ v[:size] + g, price * (1 + v[size:])])

    lower = np.concatenate([qp.u_lower.ravel(), np.zeros(is_soft.sum())])
    upper = np.concatenate([qp.u_upper.ravel(), np.full(is_soft.sum(), np.inf)])
    found = minimize(
        cost,
        np.concatenate([zero + 0.1, np.ones(is_soft.sum())]),
        jac=gradient,
        method="SLSQP",
        bounds=list(zip(lower, upper, strict=True)),
        constraints=constraints,
        options={"ftol": 1e-11, "maxiter": 500},
    )
    assert found.success, found.message
    return found.x[:size].reshape(horizon, m)


# SLSQP stops where the cost changes by less than 1e-11, its square root in the inputs.
OPTIMISER_TOLERANCE = 1e-5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_daqp_agrees_with_a_general_optimiser(seed, shape):
    qp = trial(seed, shape)
    found = QPSolver("daqp").solve(qp)
    assert found.solved
    assert np.abs(found.u - reference(qp)).max() < OPTIMISER_TOLERANCE


@pytest.mark.parametrize("soft", [np.inf, 5.0])
def test_bounds_that_come_and_go_are_found(soft):
    """One solver for problems in which none, some and all rows limit the solution."""
    solver, exact, limiting = QPSolver(), QPSolver("daqp"), set()
    for seed in range(12):
        qp = random_qp(np.random.default_rng(seed), rows=4, width=np.inf)
        free = exact.solve(replace(qp, active=qp.active & False))
        values = qp.rows(free.x, free.u)
        room = np.where(np.arange(4) < seed % 5, -0.1, 1.0)  # the first rows are in the way
        qp = replace(
            qp, lower=values - 3.0, upper=values + room, soft=np.full(4, soft), active=qp.active
        )
        found, wanted = solver.solve(qp), exact.solve(qp)
        if not wanted.solved:
            continue
        assert found.solved
        assert np.abs(found.u - wanted.u).max() < ANSWER_TOLERANCE
        limiting.add(int((np.abs(wanted.row_multipliers) > 1e-9).any(axis=0).sum()))
    assert {0, 4} <= limiting


@pytest.mark.parametrize("name", BACKENDS)
def test_back_ends_agree(name):
    solver, exact = QPSolver(name), QPSolver("daqp")
    for shape in SHAPES:
        for seed in range(10, 16):
            qp = trial(seed, shape)
            found, best = solver.solve(qp), exact.solve(qp)
            assert found.solved, (shape, seed, found.error)
            assert np.abs(found.u - best.u).max() < ANSWER_TOLERANCE, (shape, seed)
            assert np.abs(found.x - qp.states(found.u)).max() < ANSWER_TOLERANCE


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[StageQP]]:
    """QPs of solves: a quadrotor that turns over, with bounds of each kind."""
    quad = quadrotor()
    start = quad.state.join(pose=np.concatenate([np.zeros(3), SO3.exp([0.0, 2.0, 0.5])]))
    kinds = {
        "rotors": [],
        "soft": [Bound("twist", -2.5, 2.5, soft=100.0)],
        "hard": [Bound("twist", [-4] * 3 + [-8] * 3, [4] * 3 + [8] * 3)],
    }
    found = {}
    for kind, bounds in kinds.items():
        problem = OptimalControlProblem(
            quad, 12, 0.1, Q={"pose": 10, "twist": 1}, R=0.1, reference=GOAL, bounds=bounds
        )
        solver, seen = SQPSolver(problem), []
        solve = solver.qp.solve
        solver.qp.solve = lambda qp, seen=seen, solve=solve: seen.append(qp) or solve(qp)
        assert np.isfinite(solver.solve(start, max_iterations=6).cost)
        found[kind] = seen
    return found


# The least curvature of these problems is 5e-3 (the weight of a rotor over a step): residuals of
# 1e-6 in the gradient move an input by 2e-4 and more.
REAL_TOLERANCE = 5e-3


@pytest.mark.usually(kind=("rotors", "hard"))
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("kind", ["rotors", "soft", "hard"])
def test_back_ends_agree_on_the_problems_of_a_solve(name, kind, recorded):
    solver, exact = QPSolver(name), QPSolver("daqp")
    for qp in recorded[kind]:
        found, best = solver.solve(qp), exact.solve(qp)
        if best.solved:
            assert found.solved, found.error
            assert np.abs(found.u - best.u).max() < REAL_TOLERANCE
        else:
            assert not found.solved


@pytest.mark.parametrize("name", BACKENDS)
def test_data_that_are_not_finite_are_refused_and_forgotten(name):
    solver, qp = QPSolver(name), trial(0, "box")
    broken = replace(qp, A=np.where(np.arange(4) == 1, np.nan, qp.A))
    assert not solver.solve(broken).solved
    assert solver.solve(qp).solved


@pytest.mark.parametrize("name", BACKENDS)
def test_a_repeated_program_answers_the_second_problem(name):
    solver = QPSolver(name)
    first, second = trial(0, "box"), trial(1, "box")
    solver.solve(first)
    assert np.abs(solver.solve(second).u - QPSolver(name).solve(second).u).max() < ANSWER_TOLERANCE


@pytest.mark.parametrize("name", BACKENDS)
def test_multipliers_have_the_sign_of_the_limit(name):
    qp = trial(3, "box")
    found = QPSolver(name).solve(qp)
    at_upper = found.u > qp.u_upper - 1e-6
    at_lower = found.u < qp.u_lower + 1e-6
    assert at_upper.any() and at_lower.any()
    assert (found.bound_multipliers[at_upper] > -1e-6).all()
    assert (found.bound_multipliers[at_lower] < 1e-6).all()
    assert np.abs(found.bound_multipliers[~at_upper & ~at_lower]).max() < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
def test_infeasible_is_reported_not_raised(name):
    qp = trial(0, "hard rows")
    apart = replace(qp, lower=qp.upper + 50.0, upper=qp.upper + 51.0)
    found = QPSolver(name).solve(apart)
    assert not found.solved
    relaxed = QPSolver(name).solve(apart.softened(10.0))
    assert relaxed.solved


@pytest.mark.parametrize("form", [Condensed(), Sparse()], ids=["condensed", "sparse"])
def test_flattened_cost_and_rows_are_those_of_the_stages(form, rng):
    qp = random_qp(rng, rows=3)
    structure, flat = form.structure(qp), form.flatten(qp)

    def dense(places: Places, values, shape):
        matrix = np.zeros(shape)
        np.add.at(matrix, (places.rows, places.columns), values)
        return matrix

    H = dense(structure.H, flat.H, (structure.unknowns, structure.unknowns))
    A = dense(structure.A, flat.A, (structure.rows, structure.unknowns))
    assert np.allclose(H, H.T)
    costs = []
    for _ in range(3):
        u = rng.normal(size=qp.r.shape)
        x = qp.states(u)
        z = u.ravel()
        if isinstance(form, Sparse):
            z = np.concatenate([u, x[1:]], axis=1).ravel()
            dynamics = slice(0, structure.first)
            assert np.allclose(A[dynamics] @ z, flat.row_lower[dynamics])
        costs.append(z @ H @ z / 2 + flat.g @ z - qp.cost(x, u))
        own = slice(structure.first, None)
        assert np.allclose(
            (A @ z)[own] - flat.row_lower[own], (qp.rows(x, u) - qp.lower)[qp.active]
        )
        assert np.allclose(
            (A @ z)[own] - flat.row_upper[own], (qp.rows(x, u) - qp.upper)[qp.active]
        )
    assert np.ptp(costs) < 1e-10 * (1 + abs(costs[0]))  # alike up to a constant


def test_stationarity_is_the_gradient_of_the_cost(rng):
    qp = random_qp(rng)
    u, direction = rng.normal(size=(2, *qp.r.shape))
    solution = replace(
        QPSolver().solve(qp),
        u=u,
        x=qp.states(u),
        bound_multipliers=np.zeros_like(u),
        row_multipliers=np.zeros((len(u) + 1, 0)),
        dynamics_multipliers=qp.adjoints(qp.states(u), u, np.zeros((len(u) + 1, 0))),
    )
    by_x, by_u = qp.stationarity(solution)
    assert np.abs(by_x).max() < 1e-12
    h = 1e-5
    ends = [qp.cost(qp.states(u + s * direction), u + s * direction) for s in (h, -h)]
    slope = (ends[0] - ends[1]) / (2 * h)
    assert abs(slope - np.vdot(by_u, direction)) < 1e-7 * (1 + abs(slope))


@pytest.mark.parametrize("name", ["piqp", "auto"])
def test_long_horizons_of_an_unstable_system(name, rng):
    """Errors grow by 1.3^100 = 2e11 from start to end: nothing may be computed by rolling out."""
    qp = random_qp(rng, horizon=100, width=3.0)
    A, B = np.diag([1.3, 1.1, 0.9, 0.5]), rng.normal(size=(4, 2))
    qp = replace(
        qp, A=np.tile(A, (100, 1, 1)), B=np.tile(B, (100, 1, 1)), x0=0.1 * qp.x0, Q=qp.Q + np.eye(4)
    )
    found = QPSolver(name).solve(qp)
    assert found.solved
    assert np.abs(found.x).max() < 5
    assert np.abs(qp.gaps(found.x, found.u)).max() < 1e-6


def test_unknown_back_end_lists_the_others():
    with pytest.raises(
        ValueError, match=r"unknown QP solver 'dapq'.*auto.*daqp.*Did you mean 'daqp'"
    ):
        QPSolver("dapq")


def test_a_back_end_of_ones_own_needs_hard_rows_only():
    """It solves the conditions of a problem without rows; rows and slacks are not its business."""
    exact, seen = QPSolver("daqp"), []

    def mine(qp):
        seen.append(qp)
        assert np.isinf(qp.soft).all()
        return exact.solve(qp)

    solver = QPSolver(mine)
    for shape in SHAPES:
        qp = trial(2, shape)
        found = solver.solve(qp)
        assert found.solved
        assert np.abs(found.u - exact.solve(qp).u).max() < ANSWER_TOLERANCE
    assert solver.name == "mine" and len(seen) >= len(SHAPES)
    liar = QPSolver(lambda qp: replace(exact.solve(qp), u=qp.u_lower, solved=True))
    assert not liar.solve(trial(2, "box")).solved
    with pytest.raises(TypeError, match="returned ndarray, expected a StageQPSolution"):
        QPSolver(lambda qp: qp.x0).solve(trial(2, "box"))


@pytest.mark.parametrize("seed", range(3))
def test_slacks_are_inputs_of_the_same_problem(seed):
    """Prices, rows at the end and multipliers: what is hard with slacks is what was soft."""
    qp = random_qp(np.random.default_rng(seed), rows=3, soft=0.05)
    active = qp.active.copy()
    active[-1] = True
    qp = replace(qp, active=active, upper=np.where(np.arange(3) == 1, np.inf, qp.upper))
    hard = with_slacks(qp)
    assert np.isinf(hard.soft).all() and hard.sizes[0] == qp.sizes[0] + 1
    found = QPSolver("daqp").solve(hard)
    assert found.solved
    horizon, _, m = qp.sizes
    x, u = found.x[: horizon + 1], found.u[:horizon, :m]
    assert hard.cost(found.x, found.u) == pytest.approx(qp.cost(x, u), rel=1e-8)
    assert qp.excess(x, u).max() > 0.1
    same = QPSolver("piqp").solve(qp)
    assert same.solved
    assert np.abs(same.u - u).max() < ANSWER_TOLERANCE


def test_set_ups_do_not_pile_up(rng):
    qp = random_qp(rng, rows=8, width=np.inf)
    solver = QPSolver("piqp")
    for _ in range(20):
        rows = rng.random(8) < 0.5
        free = replace(qp, active=qp.active & rows, lower=qp.lower * 0 - 50, upper=qp.upper * 0)
        solver.solve(free)
    assert len(solver._backends["piqp"]._programs) <= MOST_PROGRAMS
