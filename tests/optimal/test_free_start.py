"""First states that are found: against analytic optima and IPOPT, in C as in NumPy."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    OptimalControlProblem,
)
from lgcontrol.systems import Input, System, Trajectory

from ..benchmarks._sqp_peer import SQPSolver
from .test_interior_point import SATELLITE, STILL, in_numpy, turned


def cart(limit: float = np.inf) -> System:
    return System(
        "cart",
        Product(position=Rn(1), speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "m/s²", -limit, limit)],
    )


def test_a_linear_problem_ends_at_the_solution_of_its_normal_equations():
    N, dt, arrival = 8, 0.3, np.array([[2.0, 0.3], [0.3, 0.5]])
    Q, R, terminal = np.diag([1.0, 0.1]), 0.2, np.diag([3.0, 1.0])
    problem = OptimalControlProblem(
        cart(), N, dt, Q=Q, R=R, terminal=terminal, reference=[1, 0], free="all", arrival=arrival
    )
    prior = np.array([-0.5, 0.7])
    found = InteriorPointSolver(problem).solve(prior)
    # Unknowns are the first state and the inputs.
    A, B = np.array([[1, dt], [0, 1]]), np.array([dt**2 / 2, dt])
    states = [np.hstack([np.eye(2), np.zeros((2, N))])]
    for k in range(N):
        states.append(A @ states[-1])
        states[-1][:, 2 + k] += B
    H = arrival_H = states[0].T @ arrival @ states[0]
    g = -arrival_H @ np.r_[prior, np.zeros(N)]
    for k, S in enumerate(states):
        W = dt * Q if k < N else terminal
        H, g = H + S.T @ W @ S, g - S.T @ W @ [1.0, 0.0]
    H[2:, 2:] += dt * R * np.eye(N)
    best = -np.linalg.solve(H, g)
    assert found.status == "converged"
    assert np.abs(np.r_[found.x[0], found.u[:, 0]] - best).max() < 1e-6
    e = found.x[0] - prior
    motion = OptimalControlProblem(cart(), N, dt, Q=Q, R=R, terminal=terminal, reference=[1, 0])
    assert found.cost == pytest.approx(motion.solve(found.x[0]).cost + e @ arrival @ e / 2)


def test_a_free_time_is_a_state_that_stays():
    """Least time from rest to rest over a distance d: 2 √d at unit acceleration."""
    N, distance = 20, 2.25
    timed = System(
        "timed",
        Product(position=Rn(1), speed=Rn(1), duration=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2] * x[1], x[2] * u, 0),
        inputs=[Input("push", "m/s²", -1, 1)],
    )
    problem = OptimalControlProblem(
        timed, N, 1 / N, Q={"duration": 1.0}, R=1e-6, terminal=0.0, reference=[distance, 0, 0],
        free="duration",
        bounds=[
            Bound("duration", 0.2, 10.0, at="start"),
            Bound("position", distance, distance, at="terminal"),
            Bound("speed", 0.0, 0.0, at="terminal"),
        ],
    )  # fmt: skip
    found = problem.solve([0.0, 0.0, 2.0])
    assert found.is_success, found.message
    assert np.ptp(found.x[:, 2]) < 1e-9 and (found.x[0, :2] == 0).all()
    assert found.x[0, 2] == pytest.approx(2 * np.sqrt(distance), rel=2e-3)
    other = problem.solve([0.0, 0.0, 2.0], solver="ipopt", tolerance=1e-8)
    assert found.cost == pytest.approx(other.cost, rel=1e-4)


def slews() -> dict[str, OptimalControlProblem]:
    given = {
        "system": SATELLITE, "horizon": 12, "dt": 0.3, "Q": {"attitude": 3, "rate": 1}, "R": 0.1,
        "reference": STILL,
    }  # fmt: skip
    prior = {"attitude": 20.0, "rate": 5.0}
    return {
        "all": OptimalControlProblem(**given, free="all", arrival=prior),
        "rate": OptimalControlProblem(**given, free="rate", arrival={"rate": 5.0}),
        "bounded": OptimalControlProblem(
            **given, free="rate", bounds=[Bound("rate", -0.4, 0.4)]
        ),
        "row": OptimalControlProblem(
            **given, free="all", arrival=prior,
            bounds=[Bound(lambda t, x, u, p: x[4] + x[5] - x[0], 0.2, 0.2, at="start", name="sum")],
        ),
    }  # fmt: skip


@pytest.mark.usually(name=("bounded", "row"))
@pytest.mark.parametrize("name", slews())
def test_finds_the_start_that_ipopt_finds(name):
    problem, x0 = slews()[name], turned(2.0)
    found = InteriorPointSolver(problem).solve(x0, tolerance=1e-7)
    assert found.status == "converged", found.message
    shaken = problem.system.state.plus(found.x, 1e-2 * np.random.default_rng(1).normal(size=6))
    other = problem.solve(
        x0, solver="ipopt", guess=Trajectory(problem.system.state, found.t, shaken, found.u),
        tolerance=1e-8,
    )  # fmt: skip
    assert other.status == "converged", other.message
    assert found.cost == pytest.approx(other.cost, rel=1e-6)
    assert np.abs(problem.system.state.minus(other.x, found.x)).max() < 1e-4
    moved = problem.system.state.minus(found.x[0], x0)
    assert np.abs(moved[problem.free_start]).min() > 1e-3
    assert np.abs(np.delete(moved, problem.free_start)).max(initial=0.0) < 1e-12


def drive() -> tuple[OptimalControlProblem, np.ndarray]:
    """A start that pays for being elsewhere, with limits that are met: builds in a second."""
    problem = OptimalControlProblem(
        cart(1.0), 12, 0.3, Q={"position": 3, "speed": 1}, R=0.1, reference=[0, 0], free="all",
        arrival={"position": 20.0, "speed": 5.0}, bounds=[Bound("speed", -0.4, 0.4)],
    )  # fmt: skip
    return problem, np.array([1.0, 0.3])


@pytest.mark.usually(name=("drive",))
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["drive", "all", "bounded"])
def test_c_and_numpy_take_the_same_steps(name):
    problem, x0 = drive() if name == "drive" else (slews()[name], turned(2.0))
    plain, built = in_numpy(problem), InteriorPointSolver(problem).prepare()
    assert built.is_compiled and not plain.is_compiled
    for count in (1, 3):
        a, b = (s.solve(x0, guess="rest", max_iterations=count) for s in (plain, built))
        assert np.abs(a.x - b.x).max() <= 1e-10 and np.abs(a.u - b.u).max() <= 1e-10
    a, b = (s.solve(x0, tolerance=1e-7) for s in (plain, built))
    assert a.status == b.status == "converged"
    assert a.cost == pytest.approx(b.cost, rel=1e-8)
    n = problem.system.state.dim
    heavy = 1e4 * np.eye(n)  # another weight, a step later, about another start
    moved = problem.system.state.plus(a.x[1], 0.05 * np.ones(n))
    a, b = (s.step(moved, t0=problem.dt, arrival=heavy) for s in (plain, built))
    assert np.abs(a.x - b.x).max() < 1e-8
    if name != "bounded":
        assert np.abs(problem.system.state.minus(a.x[0], moved)).max() < 1e-3


def test_a_loop_closes_where_the_start_is_carried_along():
    """Periodic: the end is the start, which is carried along as a state that stays."""

    def field(t, x, u, p):
        return ca.vertcat(x[1], u - x[0] + ca.cos(2 * np.pi * t), 0, 0)

    system = System("loop", Product(now=Rn(2), first=Rn(2)), field, inputs=["force"])

    def opened(t, x, u, p):
        return x[:2] - x[2:]

    problem = OptimalControlProblem(
        system, 12, 1 / 12, Q={"now": [1.0, 0.1]}, R=1.0, terminal=0.0, free="all",
        reference=np.zeros(4),
        bounds=[Bound(opened, 0, 0, at=at, name="gap") for at in ("start", "terminal")],
    )  # fmt: skip
    found = problem.solve(np.zeros(4))
    other = problem.solve(np.zeros(4), solver="ipopt", tolerance=1e-8)
    assert found.status == "converged", found.message
    assert np.abs(found.x[0, :2] - found.x[-1, :2]).max() < 1e-6
    assert np.abs(found.x[0, :2]).max() > 1e-3
    assert found.cost == pytest.approx(other.cost, rel=1e-6)


def test_what_is_free_is_told_by_name():
    craft = System("craft", Product(pose=SE2, T=Rn(1)), lambda t, x, u, p: 0 * x[1:], inputs=["u"])

    def free(*names, **options):
        problem = OptimalControlProblem(craft, 3, 0.1, free=names, **options)
        return problem.free_start.tolist()

    assert free() == [] and free("all") == [0, 1, 2, 3]
    assert free("T", "pose.rz") == [2, 3]
    assert free("pose.x", "pose.y") == [0, 1]
    with pytest.raises(ValueError, match=r"also change pose\.y"):
        free("pose.x", "pose.rz")
    with pytest.raises(ValueError, match="unknown free initial state 'time'.*valid names are all"):
        free("time")
    with pytest.raises(TypeError, match=r"free\[0\] must be a text, got 2.0"):
        free(2.0)
    with pytest.raises(TypeError, match="free names the initial states"):
        OptimalControlProblem(craft, 3, 0.1, free={"T": "free"})
    with pytest.raises(ValueError, match="name them, free="):
        free(arrival=1.0)
    with pytest.raises(ValueError, match="nothing that it depends on is free"):
        OptimalControlProblem(
            craft, 3, 0.1, free="T", bounds=[Bound("pose.x", upper=1.0, at="start")],
            reference=craft.state.identity,
        ).solve(craft.state.identity)  # fmt: skip
    with pytest.raises(ValueError, match="'interior_point', 'ipopt'"):
        SQPSolver(OptimalControlProblem(craft, 3, 0.1, free="all"))


def test_solves_refuse_weights_and_limits_that_say_nothing():
    wheel = System("wheel", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    problem = OptimalControlProblem(wheel, 3, 0.1, free="all", reference=[0, 0])
    for options, message in (
        ({"arrival": [[1, 5], [0, 1]]}, "arrival must be symmetric"),
        ({"arrival": -np.eye(2)}, "arrival must be positive semidefinite"),
        ({"tolerance": np.nan}, "tolerance must be at least 0"),
        ({"time_limit": np.nan}, "time_limit must be at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            problem.solve([1, 0], **options)
    with pytest.raises(ValueError, match="max_iterations must be a whole number"):
        problem.solve([1, 0], max_iterations=1.5)
    with pytest.raises(TypeError, match="guess must be a word"):
        problem.solve([1, 0], guess=3)
