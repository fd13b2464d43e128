"""control.flatsys plans for our plants; its plans come back as trajectories that they follow."""

import warnings

import casadi as ca
import control
import control.flatsys as flatsys
import control.optimal as optimal
import numpy as np
import pytest

from lgcontrol.controllers.designs._car import car
from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia, to_flat_system
from lgcontrol.models import quadrotor, rover, satellite, surface_vessel
from lgcontrol.systems import System, Trajectory

ROUNDING = 1e-9

# Plant, state and controls at both ends, seconds.
ENDS = {
    "quadrotor": (
        quadrotor, ([0, 0, 1], [2, 1, 1.5]), None, 2.0,
    ),
    "kinematic rover": (
        lambda: rover(kinematic=True), ([0, 0, 1, 0], [3, 2, 0, 1]), ([1, 0], [1, 0.2]), 4.0,
    ),
    "rover": (rover, ([0, 0, 1, 0, 1, 0], [3, 2, 0, 1, 1, 0.1]), ([0, 0], [1, 2]), 4.0),
    "car": (car, ([0, 0, 1, 0, 5, 0], [20, 8, 1, 0, 4, 0.1]), ([0, 0], [0.5, 0]), 4.0),
}  # fmt: skip


def ends_of(name):
    make, states, controls, seconds = ENDS[name]
    plant = make()
    if controls is None:
        rests = [plant.trim(position=place) for place in states]
        states, controls = [rest.x for rest in rests], [rest.u[:4] for rest in rests]
    return plant, [np.array(x, float) for x in states], controls, seconds


def sample(name, rng):
    """A state with controls that the plant may have."""
    plant = ends_of(name)[0]
    x = plant.state.random(rng)
    if name == "quadrotor":
        return plant, x, rng.uniform(1, 3, 4)
    x[4:] = 0.3 * x[4:]
    x[4:5] = 1 + np.abs(x[4:5])
    return plant, x, np.array([1.5, 0.4]) * rng.uniform(0.5, 1, 2)


@pytest.mark.parametrize("name", ENDS)
def test_states_and_controls_come_back_from_their_flag(name, rng):
    for _ in range(3):
        plant, x, u = sample(name, rng)
        flat = to_flat_system(plant)
        again, controls = flat.reverse(flat.forward(x, u))
        np.testing.assert_allclose(plant.state.minus(again, x), 0, atol=ROUNDING)
        np.testing.assert_allclose(controls, u, atol=1e-8)


@pytest.mark.parametrize("name", ENDS)
def test_flags_are_derivatives_along_the_motion(name, rng):
    """Against differences of a fine rollout with the controls held."""
    plant, x, u = sample(name, rng)
    flag = to_flat_system(plant).forward(x, u)
    h, steps = 1e-3, 8
    full = plant.full_input(u)
    ahead = plant.rollout(x, full, h, steps=steps).x[:, :3]
    fitted = np.polynomial.polynomial.polyfit(h * np.arange(steps + 1), ahead, 6)
    # Of a car the derivative with both controls in it takes the next one of the speed as zero.
    count = 4 if name == "quadrotor" else len(flag[0]) - 1
    for k in range(count):
        wanted = fitted[k] * np.prod(np.arange(1, k + 1))
        told = [values[k] for values in flag[: 3 if name == "quadrotor" else 2]]
        np.testing.assert_allclose(told, wanted[: len(told)], rtol=1e-3, atol=1e-3 * 10**k)


@pytest.mark.filterwarnings("ignore:the plan exceeds limits of inputs")
@pytest.mark.parametrize("name", ENDS)
def test_plans_come_back_as_trajectories_that_the_plant_follows(name):
    plant, (start, end), (first, last), seconds = ends_of(name)
    flat = to_flat_system(plant)
    plan = flatsys.point_to_point(
        flat, seconds, start, first, end, last, basis=flatsys.PolyFamily(10)
    )
    off = []
    for count in (25, 50):
        t = np.linspace(0, seconds, count + 1)
        path = Trajectory.from_control(plan, plant, t)
        assert path.inputs == plant.inputs and path.u.shape == (count, plant.n_inputs)
        run = plant.rollout(start, path.u, seconds / count)
        off.append(np.abs(plant.state.minus(run.x, path.x)).max())
    np.testing.assert_allclose(plant.state.minus(path.x[0], start), 0, atol=1e-6)
    np.testing.assert_allclose(plant.state.minus(path.x[-1], end), 0, atol=1e-6)
    assert off[0] < 0.5 and off[1] == pytest.approx(off[0] / 4, rel=0.15)  # held inputs: order 2


def test_optimal_plans_come_back_too():
    plant, (start, _), (first, _), _ = ends_of("kinematic rover")
    goal, flat, t = np.array([3.0, 2.0]), to_flat_system(plant), np.linspace(0, 4, 11)

    def effort(x, u):
        return float((u - [0.9, 0]) @ (u - [0.9, 0]))

    def far(x, u):
        return float((x[:2] - goal) @ (x[:2] - goal))

    plan = flatsys.solve_flat_ocp(
        flat, t, start, first, effort, terminal_cost=lambda x, u: 100 * far(x, u),
        trajectory_constraints=optimal.input_range_constraint(flat, [0.5, -1.0], [1.5, 1.0]),
        basis=flatsys.BezierFamily(6, T=4), initial_guess=np.outer(goal, t / 4),
    )  # fmt: skip
    path = Trajectory.from_control(plan, plant, np.linspace(0, 4, 101))
    run = plant.rollout(start, path.u, 0.04)
    assert plan.success and np.linalg.norm(run.x[-1, :2] - goal) < 0.1
    assert path.u[:, 0].min() > 0.45 and np.abs(path.u[:, 1]).max() < 1.1
    assert np.abs(plant.state.minus(run.x, path.x)).max() < 5e-3


def test_a_car_plans_backwards():
    plant = rover(kinematic=True)
    flat = to_flat_system(plant, backwards=True)
    plan = flatsys.point_to_point(
        flat, 3.0, [0, 0, 1, 0], [-1, 0], [-2, 1, 1, 0], [-1, 0], basis=flatsys.PolyFamily(8)
    )
    path = Trajectory.from_control(plan, plant, np.linspace(0, 3, 61))
    assert path.u[:, 0].max() < 0
    np.testing.assert_allclose(path.x[-1], [-2, 1, 1, 0], atol=1e-8)


def test_elastic_arms_have_the_same_verb_and_way_back():
    ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    tree = Multibody(name="swing").add_body("ball", ball, "revolute", axis="y")
    arm = SeriesElastic(tree, {"ball": Motor(0.5, 100.0)})
    flat, system, weight = to_flat_system(arm), arm.system(), arm.tree.gravity_forces
    ends = [np.array([0.0]), np.array([1.0])]
    states = [np.concatenate([q, [0], q + weight(q) / 100, [0]]) for q in ends]
    plan = flatsys.point_to_point(
        flat, 1.5, states[0], weight(ends[0]), states[1], weight(ends[1]),
        basis=flatsys.PolyFamily(10),
    )  # fmt: skip
    path, of_system = (
        Trajectory.from_control(plan, plant, np.linspace(0, 1.5, 151)) for plant in (arm, system)
    )
    np.testing.assert_array_equal(path.u, of_system.u)
    run = system.rollout(path.x[0], path.u, 0.01)
    assert np.abs(system.state.minus(run.x, path.x)).max() < 2e-3


def test_responses_come_back_and_go_forth():
    plant = rover(kinematic=True)
    run = plant.rollout(SE2.identity, [[1.0, 0.1 * k] for k in range(20)], 0.1)
    back = Trajectory.from_control(run.to_control(), plant)
    np.testing.assert_allclose(back.x, run.x)
    np.testing.assert_allclose(back.u[:-1], run.u)
    t = np.linspace(0, 1, 21)
    response = control.input_output_response(plant.to_nlsys(), t, [1 + 0 * t, t], SE2.identity)
    path = Trajectory.from_control(response, plant, [0.0, 0.5, 1.0])
    assert len(path) == 3 and path.u[1, 1] == pytest.approx(0.5)


def test_the_field_of_a_flat_system_is_that_of_the_plant(rng):
    plant, x, u = sample("quadrotor", rng)
    flat = to_flat_system(plant, name="mine")
    assert flat.name == "mine" and flat.input_labels[0] == "rotor_0"
    rate = plant.state.rate_matrix(x) @ plant.f(0.0, x, plant.full_input(u))
    np.testing.assert_allclose(flat.dynamics(0.0, x, u), rate, atol=1e-12)


def lagging():
    """Three states besides the pose, and controls that reach two of them."""
    return System(
        "lagging", Product(pose=SE2, z=Rn(3)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[5], u[0], u[1], -x[6]), inputs=["a", "b"],
    )  # fmt: skip


REFUSED = {
    "drag": (lambda: quadrotor(drag=[0.1] * 6), "quadrotor is not flat .* Drag, or a centre"),
    "slip": (surface_vessel, "surface_vessel .*(slips|controls)"),
    "unknown": (satellite, "satellite: to_flat_system knows systems that move a pose"),
    "discrete": (lambda: rover().discretize(0.1), "discrete: make a flat system of the continuous"),
    "too many states": (lagging, "tell 2 numbers of the state besides the pose, which has 3"),
    "unreached": (
        lambda: System("blind", Product(pose=SE2), lambda t, x, u, p: [1, 0, u[0] + u[1]],
                       inputs=["a", "b"]), "controls do not reach speed or turn rate",
    ),
    "wind": (
        lambda: System("blown", Product(pose=SE2), lambda t, x, u, p: [u[0] + x[2], 0, u[1]],
                       inputs=["a", "b"]), "its field depends on its pose",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_flat_is_refused(case):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        to_flat_system(make())


def test_trees_and_the_systems_of_arms_are_told_what_is_known():
    """No advice is one that the next call refuses."""
    ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    tree = Multibody(name="swing").add_body("ball", ball, "revolute", axis="y")
    arm = SeriesElastic(tree, {"ball": Motor(0.5, 100.0)})
    for plant in (tree, tree.system(), arm.system()):
        with pytest.raises(
            (TypeError, ValueError), match=r"SeriesElastic itself.*rigid joints are not among them"
        ) as refused:
            to_flat_system(plant)
        assert "give its .system()" not in str(refused.value)


def test_plans_without_a_heading_or_an_attitude_are_refused():
    flat = to_flat_system(rover(kinematic=True))
    with pytest.raises(ValueError, match="stands still.*begin and end the plan with a speed"):
        flat.forward([0, 0, 1, 0], [0, 0])
    with pytest.raises(ValueError, match=r"backwards at an end.*backwards=True"):
        flat.forward([0, 0, 1, 0], [-1, 0])
    with pytest.raises(ValueError, match="stands still"):
        flat.reverse([[0, 0, 1], [0, 0, 0]])
    limited = System(
        "limited", Product(pose=SE2),
        lambda t, x, u, p: ca.vertcat(u[0], 0, ca.tanh(u[1])), inputs=["speed", "turn"],
    )  # fmt: skip
    with pytest.raises(ValueError, match="the turn rate 2 rad/s .* too narrow"):
        to_flat_system(limited).reverse([[0, 1, 0], [0, 0, 2]])
    with pytest.raises(ValueError, match="has no attitude where its push is .*falls freely"):
        to_flat_system(quadrotor()).reverse([[0] * 5, [0] * 5, [0, 0, -9.81, 0, 0], [0] * 5])
    with pytest.raises(TypeError, match="plant must be a System or a SeriesElastic, not str"):
        to_flat_system("quadrotor")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="backwards"):
        to_flat_system(rover(), backwards="yes")  # type: ignore[arg-type]


def test_what_is_no_plan_of_a_system_is_refused():
    plant = rover(kinematic=True)
    plan = flatsys.point_to_point(
        to_flat_system(plant), 1.0, [0, 0, 1, 0], [1, 0], [1, 0, 1, 0], [1, 0],
        basis=flatsys.PolyFamily(6),
    )  # fmt: skip
    with pytest.raises(ValueError, match="does not say when it ends: give t"):
        Trajectory.from_control(plan, plant)
    with pytest.raises(ValueError, match="t must increase"):
        Trajectory.from_control(plan, plant, [0.0, 0.0])
    with pytest.raises(ValueError, match="the plan has 4 states, rover has 6: plan with"):
        Trajectory.from_control(plan, rover(), [0.0, 1.0])
    with pytest.raises(TypeError, match="plan must be a plan of control.flatsys .* not list"):
        Trajectory.from_control([1], plant, [0.0, 1.0])
    with pytest.raises(TypeError, match="system must be a System, not str"):
        Trajectory.from_control(plan, "rover", [0.0, 1.0])


def test_plans_beyond_limits_of_inputs_are_told():
    """Three metres in 0.4 s: python-control plans know no limits of the rover."""
    plant = rover(kinematic=True)
    ends = [0, 0, 1, 0], [1, 0], [3, 2, 1, 0], [1, 0]
    family = flatsys.PolyFamily(8)
    for seconds, is_told in ((0.4, True), (4.0, False)):
        plan = flatsys.point_to_point(to_flat_system(plant), seconds, *ends, basis=family)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Trajectory.from_control(plan, plant, np.linspace(0, seconds, 41))
        told = [str(w.message) for w in caught if "exceeds limits of inputs" in str(w.message)]
        assert bool(told) == is_told
        assert not is_told or "speed = 1" in told[0] and "its limits are -2 to 2" in told[0]
