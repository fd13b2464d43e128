"""Bridges to python-control: state-space models, nonlinear systems, LQR."""

import pickle

import control
import numpy as np
import pytest

from lgcontrol.groups import SE3, Product, Rn
from lgcontrol.systems import System
from lgcontrol.systems._internal import not_a_system

from ._examples import RIGID, account, pendulum, quadrotor, satellite, underwater

# python-control differentiates by one-sided differences of step 1e-5 here: that step times second
# derivatives of up to ten.
FORWARD = 1e-4
STEP = 1e-5
SOLVER = 1e-6  # scipy's integrator at the tolerances given below

POINTS = {
    "hover": (quadrotor, {"position": [2, 1, 1]}),
    "turn": (underwater, {"where": {"twist.vx": 1.0, "twist.wz": 0.3}}),
    "tilted pendulum": (pendulum, {"where": {"torque": 1.0}}),
    "discrete hover": (lambda: quadrotor().discretize(0.02), {}),
    "discrete model": (account, {"where": {"now": 2.0}}),
}


def test_state_space_models_have_names_and_the_control_inputs():
    lin = satellite().linearize(satellite().state.identity)
    model = lin.to_control()
    assert (model.nstates, model.ninputs, model.noutputs) == (9, 3, 9)
    assert model.input_labels == ["motor_x", "motor_y", "motor_z"]
    assert model.state_labels[0] == "attitude.rx"
    assert model.output_labels[0] == "attitude_rx"
    assert lin.to_control("disturbance").input_labels == ["torque_x", "torque_y", "torque_z"]
    assert lin.to_control("all").ninputs == 6
    assert quadrotor().discretize(0.02).linearize(RIGID.identity).to_control().dt == 0.02


def test_lqr_stabilizes_the_quadrotor_from_any_attitude():
    quad = quadrotor()
    hover = quad.trim(position=[2, 1, 1])
    K, _, poles = control.lqr(quad.linearize(hover).to_control(), np.eye(12), np.eye(4))
    assert poles.real.max() < 0
    x = quad.state.join(
        pose=SE3.from_euler("ZYX", [2.0, 0.5, -0.6], [1, 2, 0]), twist=0.2 * np.ones(6)
    )
    lower, upper = quad.input_bounds
    for _ in range(1000):
        u = hover.u - K @ quad.state.minus(x, hover.x)
        x = quad.step()(0.0, x, np.clip(u, lower, upper), dt=0.01)
    assert np.abs(quad.state.minus(x, hover.x)).max() < 1e-2


def test_stored_coordinates_are_not_controllable_and_lqr_fails_there():
    quad = quadrotor()
    hover = quad.trim(position=[2, 1, 1])
    stored = control.linearize(quad.to_nlsys(), hover.x, hover.u)
    assert stored.nstates == 13
    assert np.linalg.matrix_rank(control.ctrb(stored.A, stored.B), tol=1e-6) == 12
    with pytest.raises(np.linalg.LinAlgError):
        control.lqr(stored, np.eye(13), np.eye(4))


@pytest.mark.parametrize("name", POINTS)
def test_error_coordinates_linearize_to_the_exact_matrices(name):
    build, wishes = POINTS[name]
    system = build()
    point = system.trim(**wishes)
    plant = system.to_nlsys("error", about=point)
    model = control.linearize(
        plant, np.zeros(plant.nstates), np.zeros(plant.ninputs), t=0.37, eps=STEP
    )
    exact = system.linearize(point)
    for matrix in "ABCD":
        off = np.abs(getattr(model, matrix) - getattr(exact, matrix)).max(initial=0.0)
        assert off < FORWARD
    assert model.dt == system.dt


@pytest.mark.thorough
def test_error_coordinates_follow_the_true_error():
    """``X̄(t) exp ε`` with ε from python-control is the solution in stored coordinates."""
    system = underwater()
    turn = system.trim(where={"twist.vx": 1.0, "twist.wz": 0.3})
    error = 0.3 * np.ones(12)
    T = np.linspace(0, 2, 41)
    du = 0.5 * np.sin(np.outer(np.arange(1, 6), T))
    options = {"solve_ivp_kwargs": {"rtol": 1e-10, "atol": 1e-10}}
    eps = control.input_output_response(
        system.to_nlsys("error", about=turn), T, du, error, **options
    )
    x0 = system.state.plus(turn.x, error)
    stored = control.input_output_response(
        system.to_nlsys(), T, turn.u[:, None] + du, x0, **options
    )
    expected = system.state.minus(system.state.normalize(stored.states.T), turn(T).x)
    assert np.abs(eps.states.T - expected).max() < SOLVER


def test_stored_coordinates_simulate_as_a_rollout():
    quad = quadrotor()
    x0, u = quad.state.random(2), np.array([2.0, 3.0, 2.5, 3.0])
    T = np.linspace(0, 1, 101)
    response = control.input_output_response(
        quad.to_nlsys(),
        T,
        np.outer(u, np.ones_like(T)),
        x0,
        solve_ivp_kwargs={"rtol": 1e-10, "atol": 1e-10},
    )
    run = quad.rollout(x0, u, 0.01, steps=100, substeps=5)
    ours = quad.state.minus(quad.state.normalize(response.states.T), run.x)
    assert np.abs(ours).max() < SOLVER
    assert quad.to_nlsys().state_labels[3] == "pose.qx"


def test_stored_coordinates_off_the_group_count_as_the_state_they_belong_to():
    """Solvers let the norm of a quaternion drift; forces must not grow with it."""
    quad = quadrotor()
    x, u = quad.state.random(7), np.array([2.0, 3.0, 2.5, 3.0])
    off = x.copy()
    off[3:7] *= 1.01
    plant = quad.to_nlsys()
    np.testing.assert_allclose(
        plant.dynamics(0.0, off, u), plant.dynamics(0.0, x, u), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(plant.output(0.0, off, u), x, rtol=1e-12)


def test_discrete_systems_simulate_as_a_rollout():
    system = account()
    T = 0.1 * np.arange(6)
    response = control.input_output_response(system.to_nlsys(), T, np.ones((1, 6)), [0.0, 0.0])
    np.testing.assert_allclose(response.states.T, system.rollout([0, 0], [1.0], steps=5).x)


def test_parameters_are_params_by_name():
    system = pendulum()
    plant = system.to_nlsys()
    assert plant.params == {"inertia": 0.5, "damping": 0.1}
    T = np.linspace(0, 1, 11)
    options = {"solve_ivp_kwargs": {"rtol": 1e-9, "atol": 1e-9}}
    response = control.input_output_response(
        plant, T, np.zeros((1, 11)), [0.0, 1.0, 0.0], params={"damping": 2.0, "else": 1}, **options
    )
    run = system.rollout(
        [0.0, 1.0, 0.0], [0.0], 0.01, steps=100, p=system.parameter_values({"damping": 2.0})
    )
    np.testing.assert_allclose(response.states[:, -1], run.x[-1], atol=SOLVER)


def test_interconnected_with_a_linear_controller():
    system = pendulum()
    up = system.trim([-1.0, 0.0, 0.0], where={"torque": 0.0})
    plant = system.to_nlsys("error", about=up)
    K, _, _ = control.lqr(system.linearize(up).to_control(), np.eye(2), [[1.0]])
    law = control.ss([], [], [], -K, inputs=plant.output_labels, outputs=["torque"], name="law")
    loop = control.interconnect([plant, law], inplist=["torque"], outputs=plant.output_labels)
    response = control.input_output_response(loop, np.linspace(0, 8, 50), 0, [0.4, 0.0])
    assert np.abs(response.states[:, -1]).max() < 1e-3


@pytest.mark.parametrize("coordinates", ["group", "error"])
def test_they_pickle(coordinates):
    system = quadrotor()
    point = system.trim()
    plant = system.to_nlsys(coordinates, about=point if coordinates == "error" else None)
    copy = pickle.loads(pickle.dumps(plant))
    x, u = 0.1 * np.ones(plant.nstates), np.ones(4)
    np.testing.assert_array_equal(
        copy.dynamics(0.0, x, u, params={}), plant.dynamics(0.0, x, u, params={})
    )
    np.testing.assert_array_equal(
        copy.output(0.0, x, u, params={}), plant.output(0.0, x, u, params={})
    )


def test_other_inputs_stay_at_their_values():
    system = satellite()
    assert system.to_nlsys().ninputs == 3
    assert system.to_nlsys(inputs="all").ninputs == 6
    pushed = system.to_nlsys(inputs="disturbance")
    rate = pushed.dynamics(0.0, system.state.identity, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(
        rate[4:7], system.f(0.0, system.state.identity, [0, 0, 0, 1.0, 0, 0])[3:6]
    )


def test_error_outputs_on_a_group():
    system = System(
        "tracker",
        Product(pose=SE3, twist=Rn(6)),
        lambda t, x, u, p: [*(x[7 + i] for i in range(6)), *(u[i] for i in range(6))],
        inputs=list("abcdef"),
        h=lambda t, x, u, p: x[:7],
        output=SE3,
    )
    point = system.trim(
        system.state.join(pose=SE3.random(4), twist=[1, 0, 0, 0, 0, 0.5]), moving=True
    )
    plant = system.to_nlsys("error", about=point)
    assert plant.output_labels == ["x", "y", "z", "rx", "ry", "rz"]
    error = 0.1 * np.arange(12)
    np.testing.assert_allclose(plant.output(3.0, error, np.zeros(6)), error[:6], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinates": "errors"}, "unknown coordinates 'errors'; valid names are group, error"),
        ({"coordinates": "error"}, "error coordinates need about"),
        ({"about": [1.0, 0.0, 0.0]}, "about is for coordinates='error'"),
        ({"coordinates": "error", "about": [0.0, 1.0, 0.0]}, "no equilibrium .*trim"),
        ({"inputs": "ctrl"}, "unknown choice of inputs 'ctrl'"),
    ],
)
def test_faults_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        pendulum().to_nlsys(**arguments)


@pytest.mark.parametrize("dt", [0, 0.1])
def test_a_state_space_becomes_a_system_and_comes_back(dt, rng):
    A, B, C, D = (rng.normal(size=shape) for shape in ((3, 3), (3, 2), (2, 3), (2, 2)))
    model = control.ss(A, B, C, D, dt, name="plant", inputs=["left", "right"], outputs=["a", "b"])
    system = System.from_control(model)
    x, u = rng.normal(size=3), rng.normal(size=2)
    assert (system.dt, system.input_names, system.name) == (dt, ("left", "right"), "plant")
    np.testing.assert_allclose(system.h(0.0, x, u), C @ x + D @ u, atol=1e-14)
    back = system.linearize(x, u).to_control()
    for matrix in "ABCD":
        np.testing.assert_allclose(getattr(back, matrix), getattr(model, matrix), atol=1e-14)


def test_a_nonlinear_model_of_python_control_becomes_a_system():
    def update(t, x, u, params):
        return np.array([x[1], u[0] - params["stiffness"] * np.sin(x[0])])

    model = control.nlsys(
        update, lambda t, x, u, params: x[0], inputs=1, outputs=1, states=2,
        params={"stiffness": 9.81}, name="swing",
    )  # fmt: skip
    with pytest.warns(FutureWarning, match="calls NumPy functions on CasADi values"):
        system = System.from_control(model)
    x, u = np.array([0.4, 0.2]), np.array([0.7])
    np.testing.assert_allclose(system.f(0.0, x, u), update(0.0, x, u, {"stiffness": 9.81}))
    np.testing.assert_allclose(system.f(0.0, x, u, {"stiffness": 2.0})[1], 0.7 - 2 * np.sin(0.4))
    assert system.trim([0.1, 0.0], where={"u[0]": 0.0}).x[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (control.tf([1], [1, 1]), TypeError, r"control\.ss\(model\)"),
        (control.ss(1, 1, 1, 0, True), ValueError, "sample time open"),
        ("ss", TypeError, "takes a StateSpace or NonlinearIOSystem, not str"),
    ],
)
def test_what_cannot_become_a_system_is_said(model, error, message):
    with pytest.raises(error, match=message):
        System.from_control(model)


def test_where_a_system_is_wanted_the_way_is_named():
    with pytest.raises(TypeError, match=r"must be a System, not StateSpace; System\.from_control"):
        raise TypeError(not_a_system("plant", control.ss(1, 1, 1, 0)))


def flown():
    """Quadrotor turned and pushed about: no equilibrium at any of 21 nodes."""
    quad = quadrotor()
    t = 0.05 * np.arange(20)
    thrusts = 1.7 + 0.2 * np.sin(np.outer(3 * t, [1, 2, 1.5, 0.5]))
    return quad, quad.rollout(quad.state.random(seed=2), quad.full_input(thrusts), 0.05)


def test_a_trajectory_becomes_a_time_varying_system():
    """Its response is the difference of two rollouts, up to squares of the disturbance."""
    quad, nominal = flown()
    plant = pickle.loads(pickle.dumps(quad.linearize(nominal).to_control()))
    assert plant.dt == pytest.approx(0.05)
    assert plant.state_labels == list(quad.linearize(nominal)[0].to_control().state_labels)
    rng = np.random.default_rng(4)
    start, push = rng.normal(size=12), rng.normal(size=(20, 4))
    off = []
    for size in (1e-2, 1e-3):
        pushes = quad.full_input(nominal.u[:, :4] + size * push)
        moved = quad.rollout(quad.state.plus(nominal.x[0], size * start), pushes, 0.05)
        told = control.input_output_response(
            plant, nominal.t, size * np.vstack([push, push[-1]]).T, size * start
        )
        off.append(np.abs(told.states.T - quad.state.minus(moved.x, nominal.x)).max())
    assert off[0] < 0.05 and off[1] < 0.02 * off[0]


def test_the_time_varying_system_holds_its_ends_and_follows_the_clock():
    quad, nominal = flown()
    late = quad.linearize(nominal.shift(3.0))
    plant, (A, B) = late.to_control("all"), late.discrete()
    x, u = np.arange(12.0), np.arange(plant.ninputs)
    for t, k in ((0.0, 0), (3.0, 0), (3.25, 5), (3.9500001, 19), (9.0, 19)):
        np.testing.assert_allclose(plant.dynamics(t, x, u), A[k] @ x + B[k] @ u, atol=1e-12)
    np.testing.assert_allclose(plant.output(4.0, x, u), late.C[20] @ x + late.D[20] @ u)


def test_about_an_equilibrium_it_is_the_sampled_state_space():
    system = pendulum()
    rest = system.rollout([1.0, 0.0, 0.0], dt=0.02, steps=3)
    plant = system.linearize(rest).to_control()
    A, B = system.linearize(rest)[1].discrete(0.02)
    space = control.linearize(plant, [0.0, 0.0], [0.0])
    np.testing.assert_allclose(space.A, A, atol=1e-6)
    np.testing.assert_allclose(space.B, B, atol=1e-6)


def test_nodes_of_a_linearized_trajectory_are_linearizations():
    quad, nominal = flown()
    along = quad.linearize(nominal)
    assert len(list(along)) == len(along) == 21
    np.testing.assert_allclose(along[7].A, along.A[7], atol=1e-13)
    np.testing.assert_allclose(along[-1].B, along.B[20], atol=1e-13)
    assert along[7].t == nominal.t[7] and along[7].kind == "none"
    with pytest.raises(IndexError, match="node 21: the trajectory has 21 nodes"):
        along[21]
    with pytest.raises(TypeError, match=r"linearize a part of the trajectory"):
        along[2:4]


def test_what_a_time_varying_system_cannot_be_is_said():
    quad, nominal = flown()
    uneven = nominal.resample([0.0, 0.1, 0.15])
    with pytest.raises(ValueError, match=r"0.05 to 0.1 s apart.*trajectory.resample\(0.075\)"):
        quad.linearize(uneven).to_control()
    with pytest.raises(ValueError, match="at least two nodes"):
        quad.linearize(nominal[:1]).to_control()
    with pytest.raises(ValueError, match="quadrotor has no inputs of the choice 'noise'"):
        quad.linearize(nominal).to_control("noise")
