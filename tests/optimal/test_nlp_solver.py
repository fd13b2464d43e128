"""IPOPT and fatrop on the group: the same optima as the interior point, honest about the rest."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.optimal import SOLVERS, Bound, InteriorPointSolver, NLPSolver, OptimalControlProblem

from ..systems.test_error_coordinates import minimal
from .examples import pendulum, satellite, vessel

PLUGINS = [name for name in ("ipopt", "fatrop") if ca.has_nlpsol(name)]
UP, HANGING = [-1.0, 0.0, 0.0], np.array([1.0, 0.0, 0.0])
STILL = satellite().state.identity
# Costs differ by the barrier's last weight times the number of limits.
BARRIER = 1e-4


def swing(**options):
    given = {"Q": {"angle": 1, "rate": 0.1}, "R": 0.1, "reference": UP, "method": "heun"} | options
    return OptimalControlProblem(pendulum(0.8), 12, 0.15, **given)


PROBLEMS = {
    "hard limit": (swing(bounds=[Bound("rate", -0.6, 0.6)]), HANGING),
    "soft limit": (swing(bounds=[Bound("rate", -0.3, 0.3, soft=3.0)]), HANGING),
    "ends at rest": (swing(bounds=[Bound("rate", 0.0, 0.0, at="terminal")]), HANGING),
    "far, disturbed": (
        OptimalControlProblem(vessel(), 10, 0.3, reference=vessel().state.identity, R=0.1),
        np.array([1.0, 0.5, -0.8, 0.6, 0.3, 0.0, 0.2]),
    ),
}


@pytest.mark.usually(name=("soft limit", "ends at rest"))
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_finds_the_optimum_that_the_interior_point_finds(plugin, name):
    problem, x0 = PROBLEMS[name]
    ours = InteriorPointSolver(problem).solve(x0, tolerance=1e-6)
    other = problem.solve(x0, solver=plugin, tolerance=1e-6)
    assert ours.status == other.status == "converged", (ours.message, other.message)
    assert other.cost == pytest.approx(ours.cost, abs=BARRIER)
    assert np.abs(problem.system.error(other.x, ours.x)).max() < 1e-2
    assert other.kkt <= 1e-6 and other.defect <= 1e-6
    np.testing.assert_array_equal(other.x[0], x0)
    step = problem.system.step(problem.method, problem.substeps)
    after = step(other.t[:-1], other.x[:-1], other.u, dt=problem.dt)
    assert np.abs(problem.system.error(after, other.x[1:])).max() < 1e-6
    assert other.iterations[-1].number >= 1 and other.times["total"] >= other.times["qp"] > 0


@pytest.mark.usually(plugin=("ipopt",))
@pytest.mark.parametrize("plugin", PLUGINS)
def test_half_a_turn_needs_no_other_coordinates(plugin):
    """From the antipode, where the chart about the guess ends: the solve is centred anew."""
    problem = OptimalControlProblem(satellite(2.0), 10, 0.4, Q=1, R=0.1, reference=STILL)
    x0 = np.array([1.0, 0, 0, 0, 0, 0, 0])
    ours = InteriorPointSolver(problem).solve(x0, guess="rest")
    other = problem.solve(x0, solver=plugin, guess="rest", max_iterations=500)
    assert other.status == "converged", other.message
    assert len(other.iterations) > 2  # more than one round
    assert other.cost <= ours.cost + BARRIER


def test_fewer_error_coordinates_than_the_groups():
    system = minimal()
    problem = OptimalControlProblem(system, 8, 0.05, Q=1, R=0.1, reference=system.state.identity)
    x0 = system.retract(system.state.identity, 0.2 * np.ones(system.n_errors))
    ours = InteriorPointSolver(problem).solve(x0)
    other = problem.solve(x0, solver="ipopt")
    assert other.status == "converged", other.message
    assert other.cost == pytest.approx(ours.cost, abs=BARRIER)


def test_what_cannot_be_solved_is_said():
    problem, x0 = PROBLEMS["hard limit"]
    fast = problem.solve([1.0, 0.0, 0.9], solver="ipopt", tolerance=1e-6)
    assert fast.status == "infeasible"
    assert fast.violations[0].name == "rate" and fast.violations[0].time > 0
    assert "rate" in fast.message and np.isfinite(fast.u).all()
    short = problem.solve(x0, solver="ipopt", max_iterations=2)
    assert short.status == "iteration limit" and short.iterations[-1].number == 2
    assert "iterations=2" in repr(short)
    assert (
        f"the plan is not dynamically feasible: defects up to {short.defect:.2g}" in short.message
    )
    assert " iterations; " in short.message and "rounds" not in short.message
    late = problem.solve(x0, solver="ipopt", time_limit=1e-3)
    assert "at the time limit" in late.message and "which the set-up took" in late.message
    assert problem.solve(x0, solver="ipopt", max_iterations=0).iterations[-1].number == 0
    stopped = problem.solve(x0, solver="ipopt", callback=lambda entry: True)
    assert stopped.status in ("stopped", "converged") and len(stopped.iterations) == 2
    broken = problem.with_arguments(bounds=[Bound(lambda t, x, u, p: ca.sqrt(u - 9), upper=1.0)])
    assert broken.solve(x0, solver="ipopt").status == "failed"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_loop_runs_with_it(plugin):
    plant = pendulum(0.8)
    mpc = MPC(plant, 12, 0.15, Q={"angle": 1, "rate": 0.1}, R=0.1, reference=UP, solver=plugin,
              method="heun")  # fmt: skip
    x = np.array([-0.8, 0.6, 0.0])
    for k in range(16):
        x = plant.step("rk4")(0.0, x, mpc(0.15 * k, x), dt=0.15)
        assert mpc.info.status == "ok"
    assert np.abs(plant.error(x, np.array(UP))).max() < 0.2


def test_names_and_settings():
    assert {"ipopt", "fatrop"} <= {*SOLVERS}
    with pytest.raises(ValueError, match="unknown NLP solver 'snopt'"):
        NLPSolver(plugin="snopt")
    with pytest.raises(ValueError, match="has no problem yet"):
        NLPSolver().solve(HANGING)
    with pytest.raises(ValueError, match="solve first"):
        NLPSolver(swing()).step(HANGING)
    with pytest.raises(NotImplementedError, match="ipopt is a library of its own"):
        NLPSolver(swing()).export_c("folder")
    solver = NLPSolver(swing(), options={"ipopt": {"max_iter": 1}})
    assert solver.solve(HANGING).status != "converged"
    copy = pickle.loads(pickle.dumps(NLPSolver(swing()).prepare()))
    assert copy.solve(HANGING).status == "converged"
    assert "pendulum" in repr(copy)


@pytest.mark.parametrize("name", ["soft limit", "ends at rest"])
def test_derivatives_of_the_program_are_those_of_differences(name):
    """Gradient, Jacobian and Hessian that IPOPT is given, at random points of the program."""
    program, layout = NLPSolver(PROBLEMS[name][0])._program()
    rng, count = np.random.default_rng(0), len(layout.lower[1])
    z, prices = rng.normal(size=len(layout.lower[0])), rng.normal(size=count)
    given = rng.normal(size=program["nlp"]["p"].shape[0])
    h = 1e-6

    def differences(values):
        columns = [values(z + h * e) - values(z - h * e) for e in np.eye(len(z))]
        return np.stack(columns, axis=-1) / (2 * h)

    def called(name, *arguments):
        return [value.full().squeeze() for value in program[name].call([*arguments])]

    cost, gradient = called("grad_f", z, given)
    g, jacobian = called("jac_g", z, given)
    np.testing.assert_allclose(
        gradient, differences(lambda at: called("grad_f", at, given)[0]), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(
        jacobian, differences(lambda at: called("jac_g", at, given)[0]), rtol=1e-6, atol=1e-7
    )

    def slope(at):
        return 0.7 * called("grad_f", at, given)[1] + called("jac_g", at, given)[1].T @ prices

    (upper,) = called("hess_lag", z, given, 0.7, prices)
    hessian = upper + np.triu(upper, 1).T
    np.testing.assert_allclose(hessian, differences(slope), rtol=1e-6, atol=1e-6)
    assert np.abs(hessian).max() > 0.1
    of_check = called("check", z, given, prices)
    np.testing.assert_array_equal(of_check[0], cost)
    np.testing.assert_array_equal(of_check[1], g)
