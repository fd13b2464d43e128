"""Regulators against python-control, against simulated costs; refusals that name modes."""

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn
from lgcontrol.optimal import OptimalControlProblem, lqr, tvlqr
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._reference import depends_on_time
from lgcontrol.systems import Input, Parameter, System, Trajectory

from ..controllers.problem_a import GOAL, HOVER, quadrotor
from .examples import double_integrator, pendulum, satellite, vessel

UP = np.array([-1.0, 0.0, 0.0])
# Two Riccati solvers on twelve states: relative.
RICCATI_TOLERANCE = 1e-8


@pytest.mark.parametrize(
    ("system", "x"),
    [
        (pendulum, UP),
        (satellite, [0, 0, 0, 1, 0, 0, 0]),
        (quadrotor, GOAL),
        (double_integrator, [0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("dt", [None, 0.05])
def test_agrees_with_python_control(system, x, dt):
    system = system()
    n, m = system.state.dim, len(system.input_index("control"))
    Q, R = np.diag(np.linspace(1, 2, n)), np.diag(np.linspace(0.5, 1, m))
    found = lqr(system, x, Q, R, dt=dt)
    if dt is None:
        lin = system.linearize(x)
        K, P, poles = control.lqr(lin.A, lin.B, Q, R)
        assert (poles.real < 0).all()
    else:
        sampled = control.c2d(system.linearize(x).to_control(), dt)
        K, P, poles = control.dlqr(sampled.A, sampled.B, dt * Q, dt * R)
        assert (np.abs(poles) < 1).all()
    assert np.allclose(found.K, K, rtol=RICCATI_TOLERANCE, atol=1e-7)
    assert np.allclose(found.P, P, rtol=RICCATI_TOLERANCE, atol=1e-7)
    assert np.allclose(np.sort_complex(found.poles), np.sort_complex(poles), atol=1e-5)
    assert found.dt == (dt or 0.0)


def test_weights_by_name_and_points_of_every_kind():
    quad = quadrotor()
    weights = {"Q": {"pose": 10, "twist": 1}, "R": 0.1}
    expected = lqr(quad, GOAL, **weights).K
    hover = quad.trim(position=[2, 1, 1])
    assert np.allclose(lqr(quad, hover, **weights).K, expected, atol=1e-5)
    assert np.allclose(lqr(quad, quad.linearize(hover), **weights).K, expected, atol=1e-5)
    assert np.allclose(lqr(quad, hover, **weights).u, HOVER, atol=1e-6)


def test_a_steady_motion_has_a_regulator():
    craft = vessel()
    turn = craft.trim(where={"twist.x0": 0.5, "twist.x2": 0.2}, moving="pose")
    found = lqr(craft, turn, {"pose": 1, "twist": 1}, 1.0)
    assert (found.poles.real < 0).all()
    x = craft.state.plus(turn.x, 0.1 * np.array([1, -1, 0.5, 0, 0, 0]))
    for i in range(1500):
        goal = turn(0.02 * i)
        u = goal.u.copy()
        u[:2] -= found.K @ craft.state.minus(x, goal.x)
        x = craft.step()(0.0, x, u, [], 0.02)
    assert np.abs(craft.state.minus(x, turn(30.0).x)).max() < 1e-4


def test_a_point_in_passing_is_refused():
    quad = quadrotor()
    falling = quad.linearize(GOAL, np.zeros(4))
    with pytest.raises(ValueError, match="does not stay at this point.*tvlqr"):
        lqr(quad, falling)


def test_modes_that_cannot_be_reached_are_named():
    def field(t, x, u, p):
        return ca.vertcat(x[7:], u[0], u[1] - x[1], -x[9], u[2:], 0.3 * x[12])

    body = System(
        "body",
        Product(pose=SE3, twist=Rn(6)),
        field,
        inputs=["fx", "fy", "tx", "ty"],
    )
    with pytest.raises(ValueError) as caught:
        lqr(body, body.state.identity)
    message = str(caught.value)
    assert "no feedback stabilises body" in message
    assert "twist.x5" in message  # grows, without an input
    assert "pose.z" in message  # drifts
    assert "pose.x," not in message.replace("pose.x)", "")
    assert "twist.x0" not in message


def test_damped_modes_without_an_input_are_no_obstacle():
    falling = System("car", Rn(2), lambda t, x, u, p: ca.vertcat(u, -x[1]), inputs=["force"])
    found = lqr(falling, np.zeros(2))
    assert np.allclose(found.K, [[1.0, 0.0]])


def test_undamped_states_without_weight_are_named():
    body = satellite()
    with pytest.raises(ValueError, match="would not settle: Q gives no weight to attitude"):
        lqr(body, body.state.identity, Q={"rate": 1})


def test_a_refusal_names_each_state_once_and_says_what_to_do():
    """Chains of integrators have many modes of one eigenvalue, which move the same states."""
    quad = quadrotor()
    with pytest.raises(ValueError) as caught:
        lqr(quad, GOAL, Q=0)
    message = str(caught.value)
    assert message.count("eigenvalue 0") == 1
    assert all(message.count(f"{name},") <= 1 for name in quad.error_names)
    assert "Give them a weight each, by name: Q={…, 'pose." in message
    drifting = System(
        "drifting", Product(pose=SE3, twist=Rn(6)),
        lambda t, x, u, p: ca.vertcat(x[7:], u, 0, 0, 0, 0, 0), inputs=["fx"],
    )  # fmt: skip
    with pytest.raises(ValueError, match="design about a motion") as caught:
        lqr(drifting, drifting.state.identity)
    assert str(caught.value).count("twist.x1") == 1


@pytest.mark.parametrize("weights", [(1e20, 1e-30), (1.0, 1e300)])
def test_weights_that_no_equation_bears_are_refused_with_a_remedy(weights):
    with pytest.raises(ValueError, match="weigh states and controls less unequally"):
        lqr(quadrotor(), GOAL, *weights, dt=0.01)


def test_cost_to_go_is_the_cost_of_the_nonlinear_loop(rng):
    """To second order in the error: halving the error quarters the cost."""
    quad = quadrotor()
    dt = 0.02
    found = lqr(quad, GOAL, {"pose": 10, "twist": 1}, 0.1, dt=dt)
    direction = rng.normal(size=12)
    for size, tolerance in ((1e-2, 5e-2), (1e-3, 5e-3)):
        x = quad.state.plus(GOAL, size * direction)
        e = quad.state.minus(x, GOAL)
        expected, cost = e @ found.P @ e / 2, 0.0
        for _ in range(600):
            e = quad.state.minus(x, GOAL)
            du = -found.K @ e
            weight = np.r_[[10.0] * 6, [1.0] * 6]
            cost += dt / 2 * (e @ (weight * e) + 0.1 * du @ du)
            x = quad.step()(0.0, x, HOVER + du, [], dt)
        assert abs(cost - expected) < tolerance * expected


def test_along_a_trajectory_at_rest_the_gain_becomes_the_stationary_one():
    quad, dt = quadrotor(), 0.05
    hover = quad.trim(position=[2, 1, 1])
    weights = {"Q": {"pose": 10, "twist": 1}, "R": 0.1}
    steady = lqr(quad, hover, dt=dt, **weights)
    along = tvlqr(quad, hover.trajectory(15.0, dt), **weights)
    assert np.allclose(along.K[0], steady.K, rtol=1e-5, atol=1e-6)
    assert np.allclose(along.P[0], steady.P, rtol=1e-5, atol=1e-5)


def test_the_finite_horizon_is_the_best_linear_feedback(rng):
    """Against the least-squares solution over all inputs at once."""
    system = satellite()
    run = system.rollout(system.state.random(rng), rng.normal(size=(12, 3)), dt=0.1)
    Q, R, end = {"attitude": 2, "rate": 1}, 0.5, 3.0
    found = tvlqr(system, run, Q, R, terminal=end)
    A, B = system.linearize(run).discrete()
    e0 = rng.normal(size=6)
    maps, base = [np.zeros((6, 36))], [e0]
    for k in range(12):
        step = A[k] @ maps[-1]
        step[:, 3 * k : 3 * k + 3] += B[k]
        maps.append(step)
        base.append(A[k] @ base[-1])
    weights = [0.1 * np.array([2, 2, 2, 1, 1, 1.0])] * 12 + [3 * np.ones(6)]
    rows = [np.sqrt(w)[:, None] * M for w, M in zip(weights, maps, strict=True)]
    rows.append(np.sqrt(0.05) * np.eye(36))
    target = [-np.sqrt(w) * b for w, b in zip(weights, base, strict=True)] + [np.zeros(36)]
    matrix, right = np.vstack(rows), np.concatenate(target)
    u = np.linalg.lstsq(matrix, right, rcond=None)[0]
    assert np.allclose(-found.K[0] @ e0, u[:3], atol=1e-9)
    assert np.isclose(e0 @ found.P[0] @ e0, np.sum((matrix @ u - right) ** 2))


def test_trajectories_without_inputs_are_refused():
    body = satellite()
    x = np.tile(body.state.identity, (3, 1))
    with pytest.raises(ValueError, match="has no inputs"):
        tvlqr(body, Trajectory(body.state, [0, 1, 2], x))
    with pytest.raises(ValueError, match="at least two nodes"):
        tvlqr(body, Trajectory(body.state, [0.0], x[:1], np.zeros((1, 3))))


def test_control_lqr_on_the_error_states_stabilises_from_120_degrees():
    """12 controllable states; the plant's own attitude, the nonlinear plant, limited rotors."""
    quad = quadrotor()
    lin = quad.linearize(quad.trim(position=[2, 1, 1]))
    model = lin.to_control()
    assert model.nstates == 12
    assert np.linalg.matrix_rank(control.ctrb(model.A, model.B)) == 12
    weights = np.diag([4.0, 4, 4, 8, 8, 8, 4, 4, 4, 1, 1, 1])
    K, _, _ = control.lqr(model, weights, 10 * np.eye(4))
    rng = np.random.default_rng(3)
    for axis in np.vstack([[1.0, 0.0, 0.0], rng.normal(size=(2, 3))]):
        tilt = SO3.exp(np.deg2rad(120) * axis / np.linalg.norm(axis))
        x = quad.state.join(pose=np.concatenate([GOAL[:3], tilt]))
        for _ in range(1500):
            u = np.clip(HOVER - K @ quad.state.minus(x, GOAL), 0, 6)
            x = quad.step()(0.0, x, u, [], 0.01)
        assert np.abs(quad.state.minus(x, GOAL)).max() < 1e-2, axis


def test_growing_states_without_weight_are_stabilised():
    growing = System("x", Rn(1), lambda t, x, u, p: x + u, inputs=["u"])
    found = lqr(growing, [0.0], Q=0.0, R=1.0)
    assert np.allclose(found.K, 2.0)
    assert np.allclose(found.poles, -1.0)


def test_a_state_comes_with_the_inputs_that_hold_it():
    hanging = pendulum(2.0)
    aside = np.concatenate([SO2.exp([0.4]), [0.0]])
    found = lqr(hanging, aside)
    assert np.allclose(found.u, np.sin(0.4))
    with pytest.raises(ValueError, match="does not stay at this point"):
        lqr(pendulum(0.1), aside)  # the motor is too weak for it


@pytest.mark.parametrize("lag", [0.002, 1e-4, 1e-6])
def test_modes_that_are_fast_next_to_the_period_do_no_harm(lag):
    """The gain is that without the actuator, but for the lag itself."""
    slow = System("mass", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["force"])
    quick = slow.augment(lag=lag)
    found = lqr(quick, np.zeros(3), Q=[1, 1, 0], dt=0.02)
    assert np.allclose(found.K[0, :2], lqr(slow, np.zeros(2), dt=0.02).K, rtol=4 * lag, atol=1e-6)
    x, exact = (
        np.array([1.0, 0.0, 0.0]),
        control.c2d(quick.linearize(np.zeros(3)).to_control(), 0.02),
    )
    for _ in range(1000):
        x = exact.A @ x - exact.B @ found.K @ x
    assert np.abs(x).max() < 1e-4
    if lag > 1e-5:
        rest = Trajectory(
            quick.state, 0.02 * np.arange(801), np.zeros((801, 3)), np.zeros((800, 1))
        )
        along = tvlqr(quick, rest, Q=[1, 1, 0])
        assert np.allclose(along.K[0], found.K, atol=2e-5)  # its substeps are as accurate


@pytest.mark.parametrize("unit", [1.0, 1e-5])
def test_units_do_not_decide_whether_there_is_a_regulator(unit):
    """A hydraulic cylinder with its pressure in Pa and in bar: the same feedback."""
    A = np.array([[0, 1, 0], [0, -0.5, 1e-5], [0, -1.5e10, 0]])
    scale = np.array([1.0, 1.0, unit])
    A, B = A * scale[:, None] / scale, 1.5e13 * unit * np.eye(3)[:, 2:]
    cylinder = System("cylinder", Rn(3), lambda t, x, u, p: A @ x + B @ u, inputs=["valve"])
    found = lqr(cylinder, np.zeros(3), [1.0, 1.0, 1e-14 / unit**2], 1e6)
    expected = [1e-3, 4.16333913e-04, 1.02738074e-10 / unit]  # K1 = sqrt(Q1 / R)
    assert np.allclose(found.K[0], expected, rtol=1e-6)
    assert np.isclose(found.K[0, 0], np.sqrt(1.0 / 1e6), rtol=1e-9)


def test_periods_of_discrete_systems_are_theirs():
    sampled = double_integrator().discretize(0.02)
    expected = lqr(sampled, np.zeros(4))
    assert np.array_equal(lqr(sampled, np.zeros(4), dt=0.02).K, expected.K)
    with pytest.raises(ValueError, match="has the sample time 0.02 s, not dt = 0.2 s"):
        lqr(sampled, np.zeros(4), dt=0.2)
    sparse = Trajectory(sampled.state, [0.0, 0.2, 0.4], np.zeros((3, 4)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="sample time 0.02 s, not spacing of the nodes = 0.2 s"):
        tvlqr(sampled, sparse)


def test_controls_fixed_in_the_world_are_refused_on_a_body_that_turns():
    def field(t, x, u, p):
        cos, sin = x[2], x[3]
        force = ca.vertcat(cos * u[0] + sin * u[1], -sin * u[0] + cos * u[1], u[2])
        twist = x[4:]
        return ca.vertcat(twist, force - ca.vertcat(-twist[2] * twist[1], twist[2] * twist[0], 0))

    puck = System("puck", Product(pose=SE2, twist=Rn(3)), field, inputs=["fx", "fy", "torque"])
    spin = puck.trim(where={"twist.x2": 1.0})
    assert puck.linearize(spin).varying == ("fx", "fy")
    with pytest.raises(ValueError, match="puck: what fx, fy do changes along this motion"):
        lqr(puck, spin)
    assert (lqr(puck, puck.trim()).poles.real < 0).all()


def test_systems_without_controls_are_refused():
    free = System("free", Rn(1), lambda t, x, u, p: -x + u, inputs=[Input("w", role="disturbance")])
    with pytest.raises(ValueError, match=r"free has no control inputs .*\(inputs: w\)"):
        lqr(free, [0.0])
    with pytest.raises(ValueError, match="free has no control inputs"):
        tvlqr(free, free.rollout([1.0], [0.0], 0.1, steps=3))


def test_sampling_in_step_with_an_oscillation_is_refused():
    rate = 2 * np.pi
    swing = System(
        "swing", Rn(2), lambda t, x, u, p: [rate * x[1], u - rate * x[0]], inputs=["force"]
    )
    for dt in (0.5, 1.0):
        with pytest.raises(ValueError, match="sampled every .* swing do not reach a mode"):
            lqr(swing, np.zeros(2), dt=dt)
    assert (np.abs(lqr(swing, np.zeros(2), dt=0.3).poles) < 0.9).all()


def test_parameters_by_name_are_those_in_order():
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u / p[0]),
        inputs=["push"], parameters=[Parameter("mass", "kg", 1.0)],
    )  # fmt: skip
    line = cart.rollout([0.0, 1.0], [0.0], dt=0.1, steps=5)
    named, listed = {"mass": 2.0}, [2.0]
    assert np.array_equal(lqr(cart, [0, 0], p=named).K, lqr(cart, [0, 0], p=listed).K)
    assert not np.allclose(lqr(cart, [0, 0], p=named).K, lqr(cart, [0, 0]).K)
    assert np.array_equal(tvlqr(cart, line, p=named).K, tvlqr(cart, line, p=listed).K)


def test_a_constant_reference_of_a_field_of_time_is_held_at_each_time():
    tide = System("tide", Rn(1), lambda t, x, u, p: u + ca.sin(t), inputs=["pump"])
    assert not depends_on_time(System("pool", Rn(1), lambda t, x, u, p: u, inputs=["pump"]))
    problem = OptimalControlProblem(tide, 5, 0.1, method="rk4")
    given, state = Given(problem), np.zeros(1)
    for start in (0.0, 1.5):
        times = problem.times(start)
        for reference in (state, [0.0]):
            held = given.setting(times, reference)
            assert np.allclose(held.u_ref[:, 0], -np.sin(times), rtol=0, atol=1e-9)
        assert given.setting(times, [0.0]) is held  # lists are kept, too


def test_one_gain_about_a_trajectory_is_refused_with_the_law_for_it():
    swing = pendulum()
    along = swing.rollout(UP, np.zeros((3, 1)), 0.1)
    for point in (along, swing.linearize(along)):
        with pytest.raises(TypeError, match=r"about a point, not about a Traj.* TVLQR\("):
            lqr(swing, point)
