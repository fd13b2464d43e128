"""Terminal sets: against the closed form of a linear plant, and by following the regulator."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.optimal import Bound, OptimalControlProblem, terminal_set
from lgcontrol.systems import Input, System

from .examples import pendulum, satellite


def cart():
    push = Input("push", "N", -1, 2)
    return System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[push])


def followed(region, x, steps):
    """Inputs and states of the regulator from states (k, nq)."""
    problem, inputs, states = region.problem, [], [x]
    step = problem.system.step(problem.method, problem.substeps)
    for _ in range(steps):
        u = region.feedback(states[-1])
        inputs.append(u)
        states.append(step(0.0, states[-1], u, problem.system.nominal_parameters, problem.dt))
    return np.array(states), np.array(inputs)


@pytest.mark.parametrize(("bounds", "limit"), [((), "push"), ((Bound("v", -0.1, 9),), "v")])
def test_the_largest_level_of_a_linear_plant(bounds, limit):
    """Most of ``c e`` where ``½ eᵀPe ≤ level`` is ``√(2 level cᵀP⁻¹c)``: level = d²/(2 cᵀP⁻¹c)."""
    problem = OptimalControlProblem(cart(), 20, 0.1, R=0.1, reference=[0.0, 0.0], bounds=bounds)
    region = terminal_set(problem)
    c, d = (region.K[0], 1.0) if limit == "push" else (np.array([0.0, 1.0]), 0.1)
    assert region.level == pytest.approx(d**2 / (2 * c @ np.linalg.solve(region.P, c)), rel=1e-6)
    assert region.limit.startswith(limit)
    # The worst point of the boundary just keeps the limit, one further out does not.
    worst = np.linalg.solve(region.P, c)
    worst *= np.sqrt(2 * region.level / (worst @ region.P @ worst))
    assert abs(c @ worst) == pytest.approx(d, rel=1e-6)
    assert region.contains(0.999 * worst) and not region.contains(1.001 * worst)


@pytest.mark.parametrize("make", ["upright", "body"])
def test_the_regulator_stays_inside_and_pays_less_than_the_cost_falls(make):
    if make == "upright":
        plant, rest = pendulum(1.5), np.array([-1.0, 0.0, 0.0])
        bounds = [Bound("rate", -0.8, 0.8)]
    else:
        plant = satellite(limit=0.6)
        rest, bounds = plant.state.identity, [Bound("rate", -0.7, 0.7)]
    problem = OptimalControlProblem(plant, 10, 0.1, R=0.5, reference=rest, bounds=bounds)
    region = terminal_set(problem, samples=300)
    assert region.level > 1e-2
    rng = np.random.default_rng(5)  # other points than those it was checked at
    e = rng.normal(size=(40, plant.n_errors))
    e *= np.sqrt(region.level / region.value(plant.retract(rest, 1e-4 * e)))[:, None] * 1e-4
    x = plant.retract(rest, e)
    assert region.value(x) == pytest.approx(region.level, rel=1e-3)
    x = plant.retract(rest, 0.999 * e)
    states, inputs = followed(region, x, 60)
    lower, upper = plant.input_bounds
    assert (inputs >= lower - 1e-6).all() and (inputs <= upper + 1e-6).all()
    rates = states[..., -plant.state.blocks["rate"].nq :]
    assert abs(rates).max() <= bounds[0].upper + 1e-6
    value = region.value(states)
    error = plant.error(states[:-1], rest)
    effort = inputs - region.u
    stage = 0.05 * (np.sum(error @ problem.Q * error, -1) + np.sum(effort @ problem.R * effort, -1))
    assert (value[1:] <= value[:-1] - stage + 1e-6 * region.level).all()
    assert (value[-1] < 0.2 * value[0]).all()


def test_a_larger_bounds_room_is_a_larger_set_until_the_model_bends():
    levels, limits = [], []
    for torque in (0.4, 1.0, 50.0):
        plant = pendulum(torque)
        problem = OptimalControlProblem(plant, 10, 0.1, R=0.1, reference=[-1.0, 0.0, 0.0])
        region = terminal_set(problem, samples=200, margin=0.02)
        levels.append(region.level)
        limits.append(region.limit)
    assert levels[0] < levels[1] < levels[2]
    assert limits == ["torque", "torque", "the model's curvature"]


def test_what_has_no_terminal_set_is_refused():
    problem = OptimalControlProblem(cart(), 20, 0.1, reference=[0.0, 0.0])
    with pytest.raises(ValueError, match="does not stay at the reference, a step moves it by 0.1"):
        terminal_set(problem, [0.0, 1.0])
    with pytest.raises(ValueError, match="the reference moves"):
        terminal_set(problem, lambda t: [t, 1.0])
    with pytest.raises(ValueError, match="margin must be positive"):
        terminal_set(problem, margin=0.0)
    tight = OptimalControlProblem(
        cart(), 20, 0.1, reference=[0.0, 0.0], bounds=[Bound("v", lower=0.0)]
    )
    with pytest.raises(ValueError, match="v is 0 at the reference, and .*leave no room.*soft=100"):
        terminal_set(tight)


def test_the_bound_says_what_contains_says():
    plant = System(
        "body", Product(q=SO3, w=Rn(3)), lambda t, x, u, p: ca.vertcat(x[4:], u),
        inputs=[Input(f"m{i}", "", -1, 1) for i in range(3)],
    )  # fmt: skip
    problem = OptimalControlProblem(plant, 5, 0.2, reference=plant.state.identity)
    region = terminal_set(problem, samples=100)
    x = plant.state.plus(plant.state.identity, np.random.default_rng(0).normal(size=6) * 0.1)
    share = float(region.bound.of(0.0, ca.DM(x), None, None))
    assert share == pytest.approx(region.value(x) / region.level, rel=1e-9)
    assert region.terms["bounds"][-1].at == "terminal"
