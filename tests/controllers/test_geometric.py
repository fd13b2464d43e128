"""Geometric tracking on every group: energy falls, motions of the system are followed."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import GeometricPD, ThrustVectorPD
from lgcontrol.controllers._tracking import blocks_of, tracking_acceleration
from lgcontrol.groups import SE2, SE3, SO3, Cylindrical, Product, Rn, Schoenflies
from lgcontrol.systems import Input, System, Trajectory

from ..optimal.examples import mechanical
from .problem_a import GOAL, HOVER, attitudes, from_neutral, quadrotor

GROUPS = {
    "SO3": SO3,
    "SE3": SE3,
    "SE2": SE2,
    "Schoenflies": Schoenflies,
    "Cylindrical": Cylindrical,
}


def body(group, limit=np.inf, names=("pose", "twist")):
    """Anything that can be pushed in all directions, with a drag that couples them."""
    n = group.dim
    mixing = np.eye(n) + 0.2 * np.diag(np.ones(n - 1), 1)

    def field(t, x, u, p):
        v = x[group.nq :]
        return ca.vertcat(v, ca.DM(mixing) @ u - 0.3 * v * ca.fabs(v) + ca.sin(x[0] ** 2))

    state = Product(**{names[0]: group, names[1]: Rn(n)})
    return System(
        "body",
        state,
        field,
        inputs=[Input(f"u{i}", "N", -limit, limit) for i in range(n)],
        structure=mechanical(state, field, n),
    )


def closed_loop(system, control, x, seconds, reference, dt=None):
    """States at the controller's calls."""
    dt = control.dt if dt is None else dt
    states = [x]
    for k in range(round(seconds / dt)):
        u = control(k * dt, states[-1], reference)
        states.append(system.step()(k * dt, states[-1], u, [], dt))
    return np.array(states)


@pytest.mark.parametrize("name", GROUPS)
def test_energy_of_the_error_falls_at_the_rate_of_the_damping(name, rng):
    """d/dt (½ eᵀKe + ½ νᵀν) = −νᵀDν, for any K, by differentiating along the motion."""
    group = GROUPS[name]
    n = group.dim
    K, D = rng.uniform(0.5, 3, n), rng.uniform(0.5, 2, n)
    q, v = group.random(rng, ()), rng.normal(size=n)
    q_ref, v_ref, rate_ref = group.random(rng, ()), rng.normal(size=n), rng.normal(size=n)
    columns = [ca.DM(value) for value in (q, v, q_ref, v_ref, rate_ref)]
    rate = tracking_acceleration(group, *columns[:2], tuple(columns[2:]), ca.DM(K), ca.DM(D))
    rate = np.array(rate).ravel()

    def state(s):
        q_s = group.plus(q, s * v + s**2 / 2 * rate)
        ref_s = group.plus(q_ref, s * v_ref + s**2 / 2 * rate_ref)
        e = group.minus(q_s, ref_s)
        back = group.Ad(group.compose(group.inverse(q_s), ref_s))
        return e, (v + s * rate) - back @ (v_ref + s * rate_ref)

    def energy(s):
        e, relative = state(s)
        return (e @ (K * e) + relative @ relative) / 2

    h = 1e-5
    slope = (energy(h) - energy(-h)) / (2 * h)
    relative = state(0.0)[1]
    assert abs(slope + relative @ (D * relative)) < 1e-5 * (1 + abs(slope))


@pytest.mark.usually(name=("SE3", "Cylindrical"))
@pytest.mark.parametrize("name", GROUPS)
def test_reaches_a_state_at_rest_from_anywhere(name, rng):
    system = body(GROUPS[name])
    control = GeometricPD(system, frequency=2.0, dt=0.01)
    goal = system.state.join(pose=GROUPS[name].random(rng, ()))
    start = system.state.random(rng, ())
    final = closed_loop(system, control, start, 8.0, goal)[-1]
    assert np.abs(system.state.minus(final, goal)).max() < 1e-3
    assert control.info.status == "ok"


@pytest.mark.usually(name=("SE3",))
@pytest.mark.parametrize("name", ["SO3", "SE3", "SE2"])
def test_follows_a_motion_of_the_system_from_its_start(name, rng):
    """Feedforward: without it the error would be of the size of the acceleration over K."""
    group, dt = GROUPS[name], 0.005
    system = body(group)
    u = np.repeat(rng.normal(size=(4, group.dim)), 100, axis=0)
    run = system.rollout(system.state.random(rng, ()), u, dt=dt)
    control = GeometricPD(system, frequency=2.0, dt=dt)
    states = closed_loop(system, control, run.x[0], 2.0, run)
    error = np.abs(system.state.minus(states, run.x[: len(states)])).max()
    assert error < 0.01
    # The rate of a motion with held inputs is known to first order in the period only.
    states_only = Trajectory(system.state, run.t, run.x)
    states = closed_loop(system, control, run.x[0], 2.0, states_only)
    assert np.abs(system.state.minus(states, run.x[: len(states)])).max() < 0.01


def test_half_a_turn_and_both_signs_of_the_quaternion():
    system = body(SO3)
    control = GeometricPD(system, frequency=2.0, reference=system.state.identity)
    half = system.state.join(pose=[0, 1, 0, 0])
    u = control(0.0, half)
    assert np.abs(u).max() > 10
    assert SO3.distance(closed_loop(system, control, half, 6.0, None)[-1, :4], SO3.identity) < 1e-3
    x = system.state.random(3)
    flipped = np.concatenate([-x[:4], x[4:]])
    assert np.allclose(control(0.0, x), control(0.0, flipped))


def test_saturation_is_kept_and_reported():
    system = body(SE3, limit=0.5)
    far = system.state.join(pose=np.concatenate([[5, 0, 0], SO3.exp([2.0, 0, 0])]))
    control = GeometricPD(system, frequency=2.0, reference=system.state.identity)
    u = control(0.0, far)
    assert (np.abs(u) <= 0.5).all()
    assert control.info.status == "saturated"
    free = GeometricPD(system, frequency=2.0, reference=system.state.identity, saturate=False)
    assert np.abs(free(0.0, far)).max() > 1.0


def test_blocks_are_those_of_the_structure_or_said():
    known = body(SE2, names=("place", "speed"))
    blocks = blocks_of(known)
    assert (blocks.name, blocks.rate_name) == ("place", "speed")
    bare = System("bare", known.state, known.f, inputs=known.inputs)
    assert blocks_of(bare, "place", "speed") == blocks
    with pytest.raises(ValueError, match="bare has no structure: .*structure=Mechanical"):
        GeometricPD(bare)
    with pytest.raises(ValueError, match="'place' is SE2, and the velocity of 'speed'"):
        blocks_of(bare, "speed", "place")
    with pytest.raises(ValueError, match=r"Product\(pose=SE3, twist=Rn\(6\)\)"):
        blocks_of(System("flat", SO3, lambda t, x, u, p: u, inputs=["x", "y", "z"]))
    with pytest.raises(ValueError, match="unknown block 'attitude'"):
        blocks_of(known, "attitude")
    x, goal = known.state.random(0), known.state.identity
    told = GeometricPD(bare, configuration="place", velocity="speed")
    assert np.allclose(told(0.0, x, goal), GeometricPD(known)(0.0, x, goal))


def test_each_law_refuses_the_other_vehicles():
    with pytest.raises(ValueError, match="in 4 of 6 directions; ThrustVectorPD"):
        GeometricPD(quadrotor())
    with pytest.raises(ValueError, match="exactly one body axis; .*GeometricPD"):
        ThrustVectorPD(body(SE3))
    with pytest.raises(ValueError, match="'pose' must be a pose on SE3"):
        ThrustVectorPD(body(SE2))
    with pytest.raises(ValueError, match="frequency and damping_ratio must be positive"):
        GeometricPD(body(SE2), frequency=-1.0)
    with pytest.raises(ValueError, match="tilt_limit must be between"):
        ThrustVectorPD(quadrotor(), tilt_limit=2.0)


def test_hover_is_an_equilibrium_of_thrust_vectoring():
    control = ThrustVectorPD(quadrotor(), reference=GOAL)
    assert np.allclose(control(0.0, GOAL), HOVER)
    assert np.allclose(control.axis, [0, 0, 1])
    assert control.info.status == "ok"


@pytest.mark.usually(axis=([1, 2, 3],))
@pytest.mark.parametrize("axis", [[1, 0, 0], [0, -1, 0], [1, 2, 3]])
def test_the_thrust_may_point_along_any_body_axis(axis):
    """A tail sitter is the same vehicle in another body frame."""
    turn = SO3.from_matrix(frame_with(np.array(axis, dtype=float)))
    plain = quadrotor()

    def field(t, x, u, p):
        attitude = SO3.compose(x[3:7], ca.DM(turn))
        inner = ca.vertcat(x[:3], attitude, rotate(turn, x[7:10]), rotate(turn, x[10:]))
        rate = plain.f.function(t, inner, u, p)
        back = [SO3.act(ca.DM(turn), rate[k : k + 3]) for k in (6, 9)]
        return ca.vertcat(x[7:], *back)

    system = System("turned", plain.state, field, inputs=plain.inputs)
    control = ThrustVectorPD(system, configuration="pose", velocity="twist")
    unit = np.array(axis) / np.linalg.norm(axis)
    assert np.allclose(control.axis, unit, atol=1e-9)
    goal = plain.state.join(pose=np.concatenate([GOAL[:3], SO3.inverse(turn)]))
    start = plain.state.join(pose=np.concatenate([np.zeros(3), SO3.inverse(turn)]))
    final = closed_loop(system, control, start, 6.0, goal)[-1]
    assert np.abs(plain.state.minus(final, goal)).max() < 1e-3


def frame_with(axis):
    """Rotation matrix whose third column is an axis."""
    unit = axis / np.linalg.norm(axis)
    Q, _ = np.linalg.qr(np.column_stack([unit, np.eye(3)[np.argmin(np.abs(unit))], np.ones(3)]))
    Q *= np.sign(Q[:, 0] @ unit)
    matrix = np.column_stack([Q[:, 1], Q[:, 2], unit])
    return matrix if np.linalg.det(matrix) > 0 else matrix[:, [1, 0, 2]]


def rotate(turn, v):
    return SO3.act(ca.DM(SO3.inverse(turn)), v)


@pytest.mark.thorough
def test_aerobatic_motions_are_followed_with_feedforward():
    """Fast curves with tilts beyond 60°, from a rollout: an exact motion of the vehicle."""
    quad, dt = quadrotor(), 0.005
    t = dt * np.arange(600)
    roll, pitch = 0.03 * np.cos(4 * t), 0.03 * np.sin(3 * t)
    u = HOVER * 1.2 + np.outer(roll, [1, 1, -1, -1]) + np.outer(pitch, [-1, 1, 1, -1])
    motion = quad.rollout(quad.state.identity, u, dt=dt)
    tilts = np.arccos(SO3.matrix(motion.x[:, 3:7])[:, 2, 2])
    assert tilts.max() > np.pi / 3
    control = ThrustVectorPD(quad, dt=dt, tilt_limit=None)
    states = closed_loop(quad, control, motion.x[0], 3.0, motion)
    assert np.linalg.norm(states[:, :3] - motion.x[:, :3], axis=1).max() < 0.01
    # Without the reference's rates: the same law that only knows where to be.
    place = Trajectory(
        quad.state, motion.t, quad.state.join(pose=motion.x[:, :7], twist=np.zeros((601, 6)))
    )
    blind = closed_loop(quad, control, motion.x[0], 3.0, place)
    assert np.linalg.norm(blind[:, :3] - motion.x[:, :3], axis=1).max() > 0.3


def test_recovers_from_random_attitudes_and_from_upside_down(rng):
    quad = quadrotor()
    control = ThrustVectorPD(quad)
    starts = [from_neutral(np.concatenate([np.zeros(3), q, np.zeros(6)])) for q in attitudes(1)]
    starts.append(quad.state.join(pose=[0, 0, 0, 1, 0, 0, 0]))
    starts += [np.concatenate([x[:3], -x[3:7], x[7:]]) for x in starts[:1]]
    for x in starts:
        final = closed_loop(quad, control, x, 8.0, GOAL)[-1]
        assert np.abs(quad.state.minus(final, GOAL)).max() < 5e-3


def test_the_tilt_stays_within_its_limit():
    quad = quadrotor()
    far = quad.state.join(pose=[-50, 0, 0, 0, 0, 0, 1])
    for limit in (0.3, 0.8):
        control = ThrustVectorPD(quad, tilt_limit=limit)
        states = closed_loop(quad, control, far, 2.0, GOAL)
        tilt = np.arccos(SO3.matrix(states[:, 3:7])[:, 2, 2]).max()
        assert 0.9 * limit < tilt < 1.2 * limit  # the attitude overshoots
