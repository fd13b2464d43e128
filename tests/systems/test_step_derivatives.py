"""Derivatives of steps through the stages of every method, against automatic differentiation."""

import pickle
import warnings
from functools import cache
from inspect import isfunction

import casadi as ca
import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.groups import SE3, Product, Rn
from lgcontrol.integrators import METHODS
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import System, choose_method, stable_substeps, step_derivatives

from ..integrators._problems import with_losses
from ._examples import account, pendulum, quadrotor

EXACT = 1e-12
SOLVED = 2e-11  # wheels have 1e-4 of the body's inertia: rounding of the equations counts that more
NEAR_HOME = 0.1  # of errors: from random states far away no projection finds the loops closed
MODELS = [
    name
    for name, make in vars(models).items()
    if isfunction(make) and not name.endswith(("_tree", "_mechanism", "__"))
]
ROBOTS = [("double_pendulum_continuous", "free"), ("solo12", "fixed"), ("z1", "fixed")]


def error(system, method="rk4", substeps=1, dt=0.01, backwards=False) -> float:
    """Off from the derivative of the step along random seeds, relative to its largest entry."""
    rng = np.random.default_rng(5)
    state, m, k = system.state, system.n_inputs, system.n_parameters
    x, u = state.random(rng), system.nominal_input + 0.1 * rng.normal(size=m)
    if (system.home != state.identity).any():
        x = system.retract(system.home, NEAR_HOME * rng.normal(size=system.n_errors))
    if system.project is not None:
        x = np.asarray(system.project(x))
    p = system.nominal_parameters * (1 + 0.01 * rng.normal(size=k))
    e, du, dp = rng.normal(size=system.n_errors), rng.normal(size=m), p * rng.normal(size=k)
    dt = system.dt or dt
    step = system.step(method, substeps).function
    after = step(0.3, x, u, p, dt)
    along = state.rate_matrix(x) @ np.asarray(system.error_basis(x, p)) @ e
    moved = step.forward(1)(0.3, x, u, p, dt, after, 0, along, du, dp, 0)
    exact = state.tangent_matrix(np.asarray(after).ravel()) @ np.asarray(moved).ravel()
    exact = system.error_selection @ exact
    made = step_derivatives(system, method, substeps, parameters=True, backwards=backwards)
    made = made(0.3, x, u, p, dt)
    np.testing.assert_allclose(made.x_next, np.asarray(after).ravel(), rtol=0, atol=1e-11)
    return np.abs(made.A @ e + made.B @ du + made.P @ dp - exact).max() / np.abs(exact).max()


@pytest.mark.usually(name=("heavy_top", "rover", "satellite", "underwater_vehicle"))
@pytest.mark.parametrize("name", MODELS)
def test_all_models(name):
    system = getattr(models, name)()
    assert error(system, "heun" if system.state.dim < 14 else "euler") < EXACT  # seconds each


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("robot", "base"), ROBOTS)
def test_robot_files(robot, base, robot_file):
    system = Multibody.from_urdf(robot_file(f"{robot}.urdf"), base=base).system()
    assert error(system, "linearly_implicit_euler", dt=1e-3) < EXACT


def arm() -> System:
    """Two links with friction and damping, a symbolic mass, on a sliding base."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    ball = SpatialInertia.box(1.0, [0.2, 0.3, 0.4], center_of_mass=[0, 0, -0.2])
    lossy = JointProperties(damping=0.3, friction=0.4, friction_speed=0.2, effort=20.0)
    damped = JointProperties(damping=0.1)
    tree = Multibody().add_body("upper", rod, "revolute", axis="y", properties=lossy)
    tree = tree.add_body("ball", ball, "spherical", parent="upper", properties=damped)
    return tree.symbolic("ball.mass").system()


def constrained() -> System:
    """A pose on a group of its own with a projection after each step."""
    state = Product(pose=SE3, speed=Rn(3))

    def project(x, p):
        return ca.vertcat(x[:2], 0.9 * x[2], x[3:7], x[7:9], 0.5 * x[9])

    def f(t, x, u, p):
        return ca.vertcat(x[7:], ca.sin(t) * x[7:], u - ca.cross(x[7:], x[:3]))

    return System("held", state, f, inputs=["x", "y", "z"], project=project)


def wheel() -> System:
    """A mechanical system with a further block that acts on it and moves by itself."""
    problem = with_losses()
    return System(
        "top", problem.group, lambda *at: problem.field(*at), structure=problem.mechanical
    )


SYSTEMS = {
    "arm": cache(arm),
    "top with a wheel": cache(wheel),
    "held": cache(constrained),
    "pendulum": cache(pendulum),
}


# Every method on the system with most in it, one of each family on the others.
FAMILIES = ("rk4", "crouch_grossman3", "linearly_implicit_euler", "ros34pw2", "radau_iia5")
# By default every method once, and on the others what they alone have: losses and a projection.
USUAL = {"arm": ("linearly_implicit_euler", "ros34pw2"), "held": ("crouch_grossman3",)}
CASES = [
    pytest.param(
        name,
        method,
        marks=() if method.name in USUAL.get(name, METHODS) else pytest.mark.thorough,
    )
    for name in SYSTEMS
    for method in METHODS.values()
    if name == "top with a wheel" or method.name in FAMILIES
]


@pytest.mark.parametrize(("name", "method"), CASES, ids=lambda entry: getattr(entry, "name", entry))
def test_all_methods(name, method):
    system = SYSTEMS[name]()
    if method.needs_structure and system.structure is None:
        with pytest.raises(ValueError, match=f"{method.name} is for mechanical systems"):
            step_derivatives(system, method)
        return
    if method.needs_lagrangian:  # wheels with drives of their own are more than motion
        with pytest.raises(ValueError, match="takes bodies"):
            step_derivatives(system, method)
        return
    assert error(system, method, substeps=1 if name == "arm" else 2) < EXACT


@pytest.mark.usually(name=("arm",), method=("rk4",))
@pytest.mark.parametrize("method", ["rk4", "crouch_grossman3"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_multiplied_out_from_the_end(name, method):
    system = SYSTEMS[name]()
    assert error(system, method, substeps=2, backwards=True) < EXACT


def test_fewer_operations_from_the_end():
    system = quadrotor()
    forth, back = (step_derivatives(system, backwards=b).function for b in (False, True))
    assert back.n_instructions() < 0.8 * forth.n_instructions()


KEEPING = [method.name for method in METHODS.values() if method.needs_lagrangian]
PLANTS = {
    "heavy top": lambda: models.heavy_top(torques=True, symbolic=["mass", "gravity.z"]),
    "gyrostat": lambda: models.satellite(wheels=True, symbolic=["inertia"]),
    "vehicle": models.underwater_vehicle,
    "arm": arm,
}


@pytest.mark.usually(name=("gyrostat",), method=("variational_verlet", "energy_momentum"))
@pytest.mark.parametrize("method", KEEPING)
@pytest.mark.parametrize("name", PLANTS)
def test_methods_that_keep_momenta(name, method):
    system = PLANTS[name]()
    if name == "arm" and method == "energy_momentum":
        with pytest.raises(ValueError, match="energy_momentum takes bodies.*not trees"):
            step_derivatives(system, method)
        return
    assert error(system, method) < SOLVED


@pytest.mark.usually(method=("linearly_implicit_euler",))
@pytest.mark.parametrize("method", ["rk4", "linearly_implicit_euler", "ros34pw2"])
def test_actuators_before_an_arm(method):
    assert error(arm().augment(lag=0.05), method) < EXACT


def test_discrete_systems():
    assert error(account()) < EXACT


@pytest.mark.thorough
def test_discretized_systems_with_a_projection():
    held = constrained().discretize(0.02)
    assert error(held) < EXACT


@pytest.mark.usually(method=("linearly_implicit_euler",))
@pytest.mark.parametrize("method", ["linearly_implicit_euler", "radau_iia5"])
def test_discretized_systems_keep_the_derivatives_of_the_step(method):
    """Df of the increment without differentiating the step again, and after pickling."""
    system = SYSTEMS["arm"]()
    discrete = system.discretize(0.02, method)
    assert error(discrete) < EXACT
    rng = np.random.default_rng(1)
    x, u = system.state.random(rng), rng.normal(size=system.n_inputs)
    step = step_derivatives(system, method)(0.0, x, u, dt=0.02)
    lin = discrete.linearize(x, u)
    np.testing.assert_allclose(lin.A, step.A, rtol=0, atol=1e-11)
    np.testing.assert_allclose(lin.B, step.B, rtol=0, atol=1e-11)
    twin = pickle.loads(pickle.dumps(discrete))
    np.testing.assert_allclose(twin.linearize(x, u).A, lin.A, rtol=0, atol=1e-12)


# Instructions of the derivatives of a step of rk4; by automatic differentiation of the step they
# were 121,885, 53,524, 28,849 and 59,176.
BUDGETS = {"panda": 40_000, "ur5": 20_000, "quadrotor": 15_000, "underwater_vehicle": 30_000}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets(name):
    made = step_derivatives(getattr(models, name)(), "rk4")
    assert made.function.n_instructions() <= BUDGETS[name]


def test_a_linearly_implicit_step_costs_what_an_explicit_one_costs():
    system = models.ur5()
    explicit, implicit = (system.step(m) for m in ("euler", "linearly_implicit_euler"))
    assert implicit.instructions < 1.1 * explicit.instructions
    explicit, implicit = (step_derivatives(system, m) for m in ("euler", "linearly_implicit_euler"))
    assert implicit.instructions < 1.1 * explicit.instructions


@pytest.mark.thorough
def test_fast_losses_choose_the_method(robot_file):
    """z1 with the losses of its file: poles to −4.9e4 1/s, 677 substeps of rk4 in 0.05 s."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        z1 = Multibody.from_urdf(robot_file("z1.urdf")).system()
    x = z1.state.identity
    assert stable_substeps(z1, x, None, 0.05) > 100
    assert choose_method(z1, 0.05) == "linearly_implicit_euler"
    assert stable_substeps(z1, x, None, 0.05, "linearly_implicit_euler") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discrete = z1.discretize(0.05)
        run = discrete.rollout(x, 0.1 * np.ones(z1.n_inputs), steps=20)
    fine = z1.rollout(
        x, 0.1 * np.ones((20 * 100, z1.n_inputs)), 0.0005, method="linearly_implicit_euler"
    )
    assert np.abs(run.x[-1, :6] - fine.x[-1, :6]).max() < 0.1  # order one, joints fall for 1 s
    assert choose_method(quadrotor(), 0.05) == choose_method(models.panda(), 0.01) == "rk4"


def test_substeps_of_a_method_that_treats_losses_apart():
    """The spring that it steps explicitly sets the limit: ω dt < 2."""
    spring = JointProperties(stiffness=400.0, damping=50.0)
    rod = SpatialInertia.rod(3.0, length=1.0, center_of_mass=[0, 0, -0.5])  # 1 kg m² about the end
    tree = Multibody(gravity=(0, 0, 0)).add_body(
        "rod", rod, "revolute", axis="y", properties=spring
    )
    system = tree.system()
    free = stable_substeps(system, [0.0, 0.0], None, 0.4, "semi_implicit_euler")
    held = stable_substeps(system, [0.0, 0.0], None, 0.4, "linearly_implicit_euler")
    assert free > held >= 1
    for method, count in (("semi_implicit_euler", free), ("linearly_implicit_euler", held)):
        run = system.rollout([0.1, 0.0], [0.0], 0.4, steps=100, method=method, substeps=count)
        assert np.abs(run.x[-1]).max() < 0.1
