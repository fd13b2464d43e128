"""Laws sampled far above the time in which joints lose their speed, and loops that cannot be."""

import warnings
from functools import cache, partial

import numpy as np
import pytest
import scipy

from lgcontrol.controllers import (
    LQR,
    TVLQR,
    ComputedTorque,
    ElasticStructurePreserving,
    FeedbackLinearization,
    FlatFeedforward,
    GeometricPD,
    GravityPD,
    Impedance,
    OperationalSpace,
    SpringTorqueControl,
    ThrustVectorPD,
)
from lgcontrol.controllers._law_function import (
    Feedback,
    differences,
    largest_mode,
    loop_matrix,
    plant_about,
)
from lgcontrol.controllers._losses import joint_damping, velocity_eigenvalue
from lgcontrol.controllers.designs import auv_arm
from lgcontrol.groups import SO3, Rn
from lgcontrol.mechanics import (
    JointProperties,
    LinearDrag,
    LinearSpring,
    Motor,
    Multibody,
    RigidBody,
    SeriesElastic,
    SpatialInertia,
    WrenchInput,
)
from lgcontrol.models import quadrotor
from lgcontrol.simulation import Cascade, SimulationResult, simulate
from lgcontrol.systems import Input, System, Waypoints

# Of the issue that a user had: 0.2 to 0.35 rad at the end where losses were cancelled as measured.
REACHED = 1e-2  # rad or m
LINK = SpatialInertia.rod(3.0, length=0.4, axis=[1, 0, 0], center_of_mass=[0.2, 0, 0])
LIGHT = SpatialInertia(0.1, [0, 0, 0], 1e-4 * np.eye(3))
START = np.array([0.3, -0.5, 1.0, 0.3, 0.6, -0.2])
MOVE = np.array([0.4, 0.3, -0.3, 0.7, -0.6, 0.5])


@cache
def arm(damping=2.0, friction=1.0, base_damping=0.0, base_friction=0.0, effort=np.inf):
    """Three links and a wrist of three joints, which settle within 1e-5 s to 1e-2 s."""
    base = JointProperties(damping=base_damping, friction=base_friction, effort=effort)
    wrist = JointProperties(damping=damping, friction=friction, effort=effort)
    tree = Multibody("arm").add_body("b0", LINK, "revolute", axis="z", properties=base)
    tree = tree.add_body("b1", LINK, "revolute", "b0", [0, 0, 0.2], axis="y", properties=base)
    tree = tree.add_body("b2", LINK, "revolute", "b1", [0.4, 0, 0], axis="y", properties=base)
    tree = tree.add_body("w0", LIGHT, "revolute", "b2", [0.4, 0, 0], axis="x", properties=wrist)
    tree = tree.add_body("w1", LIGHT, "revolute", "w0", axis="y", properties=wrist)
    tree = tree.add_body("w2", LIGHT, "revolute", "w1", axis="x", properties=wrist)
    return tree.add_frame("hand", "w2", [0.08, 0, 0])


@cache
def short_arm(damping=2.0, friction=1.0):
    """A link and a light wrist."""
    own = JointProperties(damping=damping, friction=friction)
    tree = Multibody("short").add_body("link", LINK, "revolute", axis="y")
    return tree.add_body("wrist", LIGHT, "revolute", "link", [0.4, 0, 0], axis="x", properties=own)


def answer(law, goal, x):
    return law(0.0, x, goal)


def quiet(make):
    """What is made, and what was warned of meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return made, [str(entry.message) for entry in caught]


ARMS = {
    "wrist": {},
    "all joints": {"damping": 10.0, "base_damping": 10.0, "base_friction": 1.0},
    "all joints, weak": {"damping": 1.0, "base_damping": 1.0, "base_friction": 1.0, "effort": 40.0},
}


@pytest.mark.usually(name=("wrist",), dt=(0.002,))
@pytest.mark.parametrize("dt", [0.001, 0.002])
@pytest.mark.parametrize("name", ARMS)
def test_joints_that_lose_their_speed_within_a_sample_arrive(name, dt):
    """With losses cancelled as measured they are 0.2 rad off and more, with success."""
    tree = arm(**ARMS[name])
    goal, x0 = START + MOVE, np.concatenate([START, np.zeros(6)])
    law = ComputedTorque(tree, dt=dt)
    run = simulate(tree.system(), law, x0=x0, reference=goal, seconds=1.0)
    assert law.law.commanded[3:].all() and run.is_success
    assert np.abs(run.x[-1, :6] - goal).max() < REACHED


@pytest.mark.usually(name=("wrist",), dt=(0.002,))
@pytest.mark.parametrize("dt", [0.001, 0.002])
@pytest.mark.parametrize("name", ARMS)
def test_frames_of_such_arms_arrive(name, dt):
    tree = arm(**ARMS[name])
    goal, x0 = START + MOVE, np.concatenate([START, np.zeros(6)])
    law = OperationalSpace(tree, "hand", dt=dt, posture=goal)
    target = tree.placement("hand")(goal)
    run = simulate(tree.system(), law, x0=x0, reference=target, seconds=1.0)
    assert law.law.commanded[3:].all() and run.is_success
    assert np.abs(run.tasks["hand"].error[-1]).max() < REACHED


@pytest.mark.usually(share=(0.5,))
@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", [ComputedTorque, GeometricPD])
def test_the_plant_may_lose_half_or_twice_of_what_is_known(kind, share):
    """With losses cancelled as measured, a half of them makes the joint run away."""
    plant = short_arm(2.0 * share, 1.0 * share).system()
    goal = np.array([0.5, -0.7, 0.0, 0.0])
    if kind is ComputedTorque:
        law = ComputedTorque(short_arm(), dt=0.002)
    else:
        law = GeometricPD(short_arm().system(), frequency=10.0, dt=0.002)
    run = simulate(plant, law, x0=np.zeros(4), reference=goal, seconds=1.0 + 0.5 * share)
    assert run.is_success and np.abs(run.x[-1] - goal).max() < REACHED


def test_the_default_loop_decays_as_it_is_designed_to(rng):
    """Its sampled eigenvalues on joints of any loss, at rest and sliding."""
    dt, omega = 0.002, 10.0
    for damping, friction in ((0.0, 0.0), (1e-3, 0.0), (0.02, 0.0), (1.0, 0.5), (50.0, 20.0)):
        tree = short_arm(damping, friction)
        law = ComputedTorque(tree, frequency=omega, dt=dt, saturate=False)
        system = law.system
        for x, goal in law._held_states():
            A, B = plant_about(system, 0.0, x, law(0.0, x, goal), np.zeros(0))
            slopes = differences(system, x, partial(answer, law, goal))
            n, m = len(A), B.shape[1]
            hold = np.zeros((n + m, n + m))
            hold[:n] = dt * np.hstack([A, B])
            step = scipy.linalg.expm(hold)[:n]
            largest = np.abs(np.linalg.eigvals(step[:, :n] + step[:, n:] @ slopes)).max()
            # Half of the designed decay at the least; exact it is exp(−ω T).
            assert largest < np.exp(-omega * dt / 2), (damping, friction, x)


def test_losses_are_cancelled_as_measured_where_that_is_stable():
    """Slow losses keep ``ë + D ė + K e = 0`` to rounding; what decides is an eigenvalue."""
    for z, damping, share in ((0.1, 0.02, 1.0), (3.0, 0.05, 0.7), (1e-6, 0.1, 1.0), (50.0, 0.1, 2)):
        system = np.array([[-share * z, z - damping], [0.0, 0.0]])  # v, and u held, over T = 1
        expected = scipy.linalg.expm(system)[0].sum()
        assert velocity_eigenvalue(np.array(z), damping, share) == pytest.approx(expected, abs=1e-9)
    slow = ComputedTorque(short_arm(damping=1e-3, friction=0.0), dt=0.001)
    assert not slow.law.commanded.any()
    x, goal = np.array([0.1, 0.2, 0.5, -1.0]), np.array([0.0, 0.5])
    rate = slow.system.f(0.0, x, slow(0.0, x, goal))[2:]
    np.testing.assert_allclose(rate, -100 * (x[:2] - goal) - 20 * x[2:], atol=1e-8)


def test_the_damping_of_a_joint_tells_when_its_loss_lets_errors_grow(rng):
    """Errors stay where the loss is the limit, for any law of frame and posture."""
    n, k = 6, 3
    for _ in range(5):
        root, J = rng.normal(size=(n, n)), rng.normal(size=(k, n))
        mobility = root @ root.T + 0.1 * np.eye(n)
        J_bar = mobility @ J.T @ np.linalg.inv(J @ mobility @ J.T)
        frame, rest = np.diag(rng.uniform(5.0, 20.0, k)), 1.0 * np.eye(n)
        damping = J_bar @ frame @ J + rest - J_bar @ J @ rest
        own = joint_damping(damping, mobility)
        assert (own > 1.0).all() and (own < frame.max()).all()
        for i in range(n):
            slope = np.zeros((n, n))
            slope[i, i] = own[i] / mobility[i, i]
            largest = [
                np.linalg.eigvals(share * mobility @ slope - damping).real.max()
                for share in (0.99, 1.0, 1.01)
            ]
            assert largest[0] < 0 < largest[2] and abs(largest[1]) < 1e-6


def test_a_joint_is_judged_by_its_own_damping():
    """Of two joints with the same loss, the one that is damped enough is cancelled as measured."""
    tree = arm(damping=0.0, friction=0.0, base_damping=10.0)
    every = ComputedTorque(tree, frequency=1.0, dt=0.001)
    assert every.law.commanded[:3].all()
    frequency = [40.0, 1.0, 40.0, 10.0, 10.0, 10.0]
    law = ComputedTorque(tree, frequency=frequency, dt=0.001)
    assert law.law.commanded.tolist() == [False, True, False, False, False, False]
    body = GeometricPD(tree.system(), frequency=frequency, dt=0.001)
    assert body.commanded.tolist() == law.law.commanded.tolist()


def test_a_slow_posture_does_not_decide_on_joints_that_the_frame_moves():
    """The posture's 1/s alone stands up to no 30 % of the loss, the frame's 16/s beside it does."""
    law = auv_arm.design().controller
    blocks, system = law.law.blocks, law.system
    assert not law.law.commanded.any()
    x, goal = next(iter(law._held_states()))
    u = system.full_input(law(0.0, x, goal))
    A, B = plant_about(system, 0.0, x, u, law._own)
    loss = system.structure.loss_jacobian(x, law._own)
    rates = np.linalg.solve(system.structure.mass_matrix(x, law._own), loss)
    assert (0.3 * np.diagonal(rates) > 1.0).any()
    velocity = slice(blocks.group.dim, None)
    A[velocity, velocity] += 0.3 * rates  # 30 % less than the law takes it for
    slopes = differences(system, x, partial(answer, law, goal))
    largest, _ = largest_mode(loop_matrix(A, B, Feedback.static(slopes), law.dt, 0.0))
    assert abs(largest) < 1.0


def test_a_fast_loss_is_that_of_the_commanded_velocity():
    """The wrist is held to ``v_ref − λ e``, with ``λ = ω`` for critical damping."""
    tree = short_arm()
    law = ComputedTorque(tree, frequency=8.0, dt=0.002)
    assert law.law.commanded.tolist() == [False, True]
    x, goal, v_ref = np.array([0.1, 0.2, 0.0, 0.3]), np.array([0.1, 0.25]), np.array([0.0, 0.1])
    commanded = v_ref - 8.0 * (x[:2] - goal)
    asked = -64.0 * (x[:2] - goal) - 16.0 * (x[2:] - v_ref)
    expected = tree.inverse_dynamics(x[:2], x[2:], asked)
    expected[1] += 2.0 * (commanded[1] - x[3]) + np.tanh(commanded[1] / 0.1) - np.tanh(x[3] / 0.1)
    np.testing.assert_allclose(law(0.0, x, np.r_[goal, v_ref]), expected, atol=1e-12)


def test_the_function_that_is_exported_holds_the_same_joints(rng):
    """`GeometricPD` in C; those of trees and elastic arms are compared in test_export.py."""
    system = short_arm().system()
    law = GeometricPD(system, frequency=5.0, dt=0.002, saturate=False)
    assert law.commanded.tolist() == [False, True]
    function = law._exported_law()
    for x, x_ref in rng.normal(size=(5, 2, 4)):
        given = {"t": 0.0, "x": x, "x_ref": x_ref, "u_ref": np.zeros(2), "p": [],
                 "rate_ref": np.zeros(4)}  # fmt: skip
        u = function(**{key: given[key] for key in function.arguments})
        np.testing.assert_allclose(u, law(0.0, x, x_ref), rtol=1e-9)


def test_a_light_body_in_a_thick_fluid_arrives(rng):
    """Drag is no loss of a joint, and the same fault: cancelled as measured it is 0.26 rad off."""
    forces = [LinearDrag(np.diag([0, 0, 0, 2.0, 2, 2])), WrenchInput(("rx", "ry", "rz"), name="t")]
    body = RigidBody("body", SO3, LIGHT, forces).system()
    law = GeometricPD(body, frequency=5.0, dt=0.01)
    assert law.commanded.all()
    goal = np.r_[SO3.exp([0.5, 0.2, -0.1]), 0, 0, 0]
    run = simulate(body, law, x0=body.state.identity, reference=goal, seconds=1.5)
    assert run.is_success and np.abs(run.error[-1]).max() < REACHED
    function, x = law._exported_law(), body.state.random(rng)
    given = {"t": 0.0, "x": x, "x_ref": goal, "u_ref": np.zeros(3), "p": [],
             "rate_ref": np.zeros(6)}  # fmt: skip
    u = function(**{key: given[key] for key in function.arguments})
    np.testing.assert_allclose(u, law(0.0, x, goal), rtol=1e-8)


def test_linear_regulators_of_such_arms_are_designed_for_the_sample_time():
    """Their gains are those of the sampled system: no loss is cancelled."""
    system, goal = short_arm().system(), np.array([0.5, -0.7])
    rest = np.r_[goal, 0, 0]
    weights = {"Q": {"configuration": [1e2, 1e5], "velocity": 1.0}, "R": 1e-2}
    held = short_arm().gravity_forces(goal)
    law = LQR(system, system.linearize(rest, held), dt=0.002, **weights)
    x0 = np.r_[goal + [0.1, 0.2], 0, 0]
    run = simulate(system, law, x0=x0, seconds=1.0)
    assert run.is_success and np.abs(run.x[-1] - rest).max() < REACHED
    path = system.rollout(rest, held, dt=0.002, steps=500, method="linearly_implicit_euler")
    along = TVLQR(system, path, **weights)
    run = simulate(system, along, x0=x0, seconds=1.0)
    assert run.is_success and np.abs(run.x[-1] - rest).max() < REACHED


# Loops that no such law makes stable


def elastic_wrist(damping=2.0, friction=1.0):
    """Two links on springs, the second motor light and lossy."""
    tree = Multibody("soft", gravity=[0, 0, 0]).add_body("a", LINK, "revolute", axis="z")
    tree = tree.add_body("b", LINK, "revolute", "a", [0.4, 0, 0], axis="z")
    motors = {
        "a": Motor(0.1, LinearSpring(200.0)),
        "b": Motor(1e-3, LinearSpring(200.0), damping=damping, friction=friction),
    }
    return SeriesElastic(tree, motors)


def pendulum():
    """Unstable without feedback."""
    return System(
        "pendulum", Rn(2), lambda t, x, u, p: [x[1], 10 * x[0] + u[0]], inputs=[Input("torque")]
    )


def too_fast(kind, dt):
    """A law whose gains are too high for 2 ms, and the joint that moves most."""
    lossless = short_arm(0.0, 0.0)
    if kind == "ComputedTorque":
        return ComputedTorque(short_arm(), frequency=900.0, dt=dt), "joint 'link'"
    if kind == "GeometricPD":
        return GeometricPD(short_arm().system(), frequency=900.0, dt=dt), "joint 'link'"
    if kind == "GravityPD":
        return GravityPD(lossless, stiffness=20.0, damping=0.5, dt=dt), "joint 'wrist'"
    if kind == "OperationalSpace":
        return OperationalSpace(arm(), "hand", frequency=900.0, dt=dt), "joint 'b"
    if kind == "Impedance":
        return Impedance(arm(0.0, 0.0), "hand", stiffness=2e3, damping=60.0, dt=dt), "joint 'w"
    return ThrustVectorPD(quadrotor(), attitude_frequency=900.0, dt=dt), "r"


@pytest.mark.parametrize(
    "kind",
    ["ComputedTorque", "GeometricPD", "GravityPD", "OperationalSpace", "Impedance",
     "ThrustVectorPD"],
)  # fmt: skip
def test_a_loop_in_which_errors_grow_is_warned_of(kind):
    """Eigenvalue, joint and a period with which the same gains are stable: it is one."""
    (law, joint), said = quiet(lambda: too_fast(kind, 0.002))
    assert said == [law.unstable] and f"{kind} on " in law.unstable
    assert "errors grow in the loop sampled every 0.002 s; its largest eigenvalue is -" in said[0]
    assert f"and moves {joint}" in said[0]
    dt = float(said[0].split("take dt=")[1].split(",")[0])
    (slower, _), said = quiet(lambda: too_fast(kind, dt))
    assert said == [] and slower.unstable == ""


def test_a_run_with_an_unstable_loop_is_no_success(tmp_path):
    """Summary, message and the file of the run say why; so do cascades."""
    law, (said,) = quiet(lambda: too_fast("GravityPD", 0.002)[0])
    plant, outer = law.system, lambda t, x, reference: reference
    for controller in (law, Cascade(outer, law)):
        run = simulate(
            plant, controller, x0=[0.01, 0.01, 0, 0], reference=np.zeros(2), seconds=0.02,
            dt=None if controller is law else 0.002,
        )  # fmt: skip
        assert run.status == "completed" and not run.is_success
        assert run.message == said and said in run.summary()
        again = SimulationResult.load(run.save(tmp_path / f"{len(run.controllers)}.npz"))
        assert again.unstable == run.unstable and not again.is_success and again.message == said
    # The eigenvalue is that of the run: the wrist's error grows from sample to sample.
    factor = abs(float(said.split("eigenvalue is ")[1].split(",")[0]))
    wrist = run.controllers["GravityPD"].command[:, 1]
    assert abs(wrist[-1] / wrist[-2]) == pytest.approx(factor, rel=0.02)


def test_a_delay_that_no_gain_knows_is_warned_of():
    plant = pendulum()
    good, said = quiet(lambda: LQR(plant, np.zeros(2), dt=0.02, delay=0.02))
    assert said == []
    late, (said,) = quiet(lambda: LQR(plant, np.zeros(2), dt=0.02, delay=0.5))
    assert "with a delay of 0.5 s" in said and "take lower gains or a shorter delay" in said
    runs = [
        simulate(plant, law, x0=[0.01, 0.0], reference=np.zeros(2), seconds=3.0)
        for law in (good, late)
    ]
    ends = [np.abs(run.x[-1]).max() for run in runs]
    assert runs[0].is_success and ends[0] < 1e-3
    assert not runs[1].is_success and not ends[1] < 1.0


@pytest.mark.parametrize("late", [0, 1, 3])
def test_the_matrix_of_a_late_loop_is_that_of_its_samples(late, rng):
    """Controls of two calls act within a period where the delay is no multiple of it."""
    dt, part = 0.1, 0.03
    A, B, K = rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), rng.normal(size=(2, 3))
    plant = System("plant", Rn(3), lambda t, x, u, p: A @ x + B @ u, inputs=["a", "b"])
    step = loop_matrix(A, B, Feedback.static(-K), dt, late * dt + part)
    x = rng.normal(size=3)

    class Law:
        delay = late * dt + part

        def __init__(self):
            self.dt = dt

        def __call__(self, t, x, reference):
            return -K @ x

    run = simulate(plant, Law(), x0=x, seconds=8 * dt, tolerance=1e-11)
    state = np.concatenate([x, np.zeros(len(step) - 3)])
    for k in range(1, 9):
        state = step @ state
        at = np.abs(run.t - k * dt).argmin()
        np.testing.assert_allclose(state[:3], run.x[at], rtol=1e-7, atol=1e-9)


# Laws of elastic arms


ELASTIC = {
    "FeedbackLinearization": lambda dt, **o: FeedbackLinearization(
        elastic_wrist(), frequency=20.0, dt=dt, **o
    ),
    "ElasticStructurePreserving": lambda dt, **o: ElasticStructurePreserving(
        elastic_wrist(), dt=dt, **o
    ),
    "FlatFeedforward": lambda dt, **o: FlatFeedforward(elastic_wrist(), dt=dt, **o),
}


@pytest.mark.parametrize("name", ELASTIC)
def test_motors_that_lose_their_speed_within_a_sample_arrive(name):
    """Feedforward compensates at the speed of the reference, the others at a commanded one."""
    law = ELASTIC[name](0.002)
    assert law.commanded.tolist() == [False, name != "FlatFeedforward"]
    goal = np.array([0.5, -0.4])
    motion = Waypoints(law.arm.tree.configuration, [0.0, 0.8], [np.zeros(2), goal], order=9)
    run = simulate(law.system, law, x0=np.zeros(law.system.state.nq), reference=motion, seconds=1.2)
    assert run.is_success and np.abs(run.x[-1, :2] - goal).max() < REACHED


def test_torques_of_such_motors_follow():
    law = SpringTorqueControl(elastic_wrist(), dt=0.002)
    assert law.commanded.tolist() == [False, True]
    wish = np.array([1.0, 0.5])
    run = simulate(law.system, law, x0=np.zeros(law.system.state.nq), reference=wish, seconds=0.15)
    torque = 200.0 * (run.x[-1, 4:6] - run.x[-1, :2])
    np.testing.assert_allclose(torque, wish, rtol=0, atol=0.03)


def test_an_unstable_elastic_loop_names_the_joint():
    law, (said,) = quiet(
        lambda: FeedbackLinearization(elastic_wrist(0.0, 0.0), frequency=900.0, dt=0.002)
    )
    assert "Its mode moves joint 'a' most" in said
    assert law.unstable == said and law.radii(stiffnesses=(1.0,))[1.0] > 1
