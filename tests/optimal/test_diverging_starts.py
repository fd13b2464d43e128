"""Plants that diverge under the initial guess: the guess is bounded, and the solve converges."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem
from lgcontrol.optimal._guess import make_guess
from lgcontrol.optimal._settings import DEFAULT
from lgcontrol.systems import Input, System

# Costs of two solvers to their tolerances.
SAME_COST = 1e-6


def plan(system, horizon, dt, x0, end, **more):
    """Least effort to an end."""
    bounds = [Bound(end, 0, 0, at="terminal", name="end")]
    return OptimalControlProblem(system, horizon, dt, Q=0, R=1e-2, bounds=bounds, **more), x0


def reactor():
    """An exothermic reaction that runs away: the guess heats it."""

    def field(t, x, u, p):
        rate = 0.072 * x[0] * ca.exp(x[1])
        return ca.vertcat(1 - x[0] - rate, 8 * rate - 1.3 * x[1] + 0.3 * u)

    state = Rn(2, ("c", "theta"))
    system = System("reactor", state, field, inputs=[Input("heating", "", -30, 30)])
    steady = plan(system, 40, 0.1, [0.6, 3.5], lambda t, x, u, p: x - ca.DM([0.5, 2.75]))
    return *steady, lambda t, x, reference: np.array([30.0])


def runaway():
    system = System(
        "runaway",
        Rn(1),
        lambda t, x, u, p: ca.exp(x) - 1 + u,
        inputs=[Input("cooling", "", -60, 60)],
    )
    return *plan(system, 50, 0.05, [3.0], lambda t, x, u, p: x), "reference"


def actuator():
    """A fast actuator, which explicit steps of 50 ms make unstable."""

    def field(t, x, u, p):
        return ca.vertcat(x[1], x[2] - ca.sin(x[0]), 1000 * (u - x[2]))

    system = System("actuator", Rn(3), field, inputs=[Input("command", "N", -2, 2)])
    with pytest.warns(RuntimeWarning, match="substeps"):
        steps = plan(
            system, 40, 0.05, [0.0, 0.0, 0.1], lambda t, x, u, p: x[:2] - ca.DM([0.5, 0.0]),
            method="rk4", substeps=1,
        )  # fmt: skip
    return *steps, "reference"


def tumbler():
    """A body on SO(3) whose rate grows as its cube."""

    def field(t, x, u, p):
        return ca.vertcat(x[4:], x[4:] * 3 * ca.sumsqr(x[4:]) + u)

    inputs = [Input(axis, "N m", -40, 40) for axis in "abc"]
    system = System("tumbler", Product(attitude=SO3, rate=Rn(3)), field, inputs=inputs)

    def end(t, x, u, p):
        return ca.vertcat(SO3.minus(x[:4], ca.DM([0, 0, 1, 0])), x[4:])

    return *plan(system, 40, 0.05, [0, 0, 0, 1, 1, 1, 0.5], end), "reference"


def spring():
    """A spring that pushes away, as the controller of the guess does."""
    system = System(
        "spring", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], x[0] ** 3 + 5 * x[1] + u),
        inputs=[Input("push", "N", -50, 50)],
    )  # fmt: skip
    steps = plan(system, 60, 0.05, [1.5, 1.0], lambda t, x, u, p: x)
    return *steps, lambda t, x, reference: np.array([50.0])


def carried():
    """A policy of the system's own that drives it away."""
    system = System(
        "carried", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], 50 * x[1] + ca.sin(x[0]) + u),
        inputs=[Input("push", "N", -50, 50)], policy=lambda t, x, x_ref, u_ref, p: 50 * x[1],
    )  # fmt: skip
    return *plan(system, 60, 0.05, [0.1, 0.1], lambda t, x, u, p: x), None


PLANTS = {made.__name__: made for made in (reactor, runaway, actuator, tumbler, spring, carried)}
# IPOPT needs 500 iterations and more there.
ALONE = ("tumbler",)


@pytest.mark.parametrize("name", PLANTS)
def test_a_solve_whose_guess_diverges_ends_where_ipopt_does(name):
    problem, x0, guess = PLANTS[name]()
    solver = InteriorPointSolver(problem)
    found = solver.solve(x0, guess=guess)
    assert found.status == "converged" and len(found.iterations) <= 20
    first = solver.solve(x0, guess=guess, max_iterations=0)
    assert np.abs(first.x).max() <= 100 and first.defect < 1e5
    if name not in ALONE:
        peer = problem.solve(x0, solver="ipopt", guess=guess)
        assert peer.status == "converged"
        assert found.cost == pytest.approx(peer.cost, rel=SAME_COST)


@pytest.mark.parametrize("name", PLANTS)
def test_bounded_starts_are_those_of_numpy(name):
    problem, x0, guess = PLANTS[name]()
    if callable(guess):
        pytest.skip("made by Python alone")
    solver, times = InteriorPointSolver(problem), problem.times()
    found = solver.solve(x0, guess=guess, max_iterations=0)
    setting = solver._given.setting(times, None, None, None)
    nodes = make_guess(
        solver.transcription, guess, np.asarray(x0, float), times, setting, None, DEFAULT
    )
    assert (nodes.x[-1] == nodes.x[-2]).all()  # it was cut
    np.testing.assert_allclose(found.x, nodes.x, rtol=1e-12)
    np.testing.assert_allclose(found.u, nodes.u, rtol=1e-12)
