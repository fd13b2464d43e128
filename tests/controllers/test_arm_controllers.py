"""Controllers of trees, each against what it promises, computed another way."""

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

from lgcontrol.controllers import ComputedTorque, GravityPD, Impedance, OperationalSpace
from lgcontrol.groups import SE3, Schoenflies
from lgcontrol.mechanics import FrameTask, Multibody, SpatialInertia
from lgcontrol.models import (
    panda,
    panda_tree,
    scara_tree,
    space_arm,
    space_arm_tree,
    underwater_vehicle_arm,
    underwater_vehicle_arm_tree,
    ur5_tree,
)
from lgcontrol.simulation import simulate
from lgcontrol.systems import Trajectory

READY = np.array([0, -0.785, 0, -2.356, 0, 1.571, 0.785])
TREES = {
    "panda": (panda_tree, Multibody.system, "panda_hand_tcp"),
    "ur5": (ur5_tree, Multibody.system, "tool0"),
    "space_arm": (space_arm_tree, lambda tree: space_arm(), "tool"),
    "underwater_vehicle_arm": (
        underwater_vehicle_arm_tree, lambda tree: underwater_vehicle_arm(), "tool",
    ),
}  # fmt: skip
# Accelerations of order 100, through mass matrices of condition 1e3.
ROUNDING = 1e-8
# Central differences of energies of order 10 with steps of 1e-5.
DIFFERENCE = 1e-6


def spherical_tree() -> Multibody:
    """A ball joint, a wheel and a slide, with springs nowhere."""
    rod = SpatialInertia.box(2.0, [0.1, 0.2, 0.5], [0.1, 0.0, -0.3])
    tree = Multibody("mixed").add_body("ball", rod, "spherical")
    tree = tree.add_body("wheel", rod, "continuous", "ball", [0, 0, -0.5], axis="x")
    return tree.add_body("slide", rod, "prismatic", "wheel", [0.1, 0, 0], axis="y")


def near(tree, rng, size=0.3):
    """A configuration away from singularities, and a velocity."""
    middle = {"panda": READY, "ur5": np.array([0.3, -1.2, 1.5, -0.8, 1.2, 0.4])}
    bent = {
        "space_arm": [0.2, 0.3, -0.8, 1.4, 0.6, 0.7, 0.1],
        "underwater_vehicle_arm": [0.3, 0.5, 0.9, 0.2],
    }
    q = middle.get(tree.name)
    if q is None:
        q = np.concatenate([SE3.random(rng), bent[tree.name]])
    q = tree.configuration.plus(q, rng.normal(scale=0.1, size=tree.nv))
    return q, rng.normal(scale=size, size=tree.nv)


@cache
def tree_of(name):
    return TREES[name][0]()


@cache
def system_of(name):
    """Tree, system and frame of the tool; made once, so that functions are traced once."""
    tree, (_, make, frame) = tree_of(name), TREES[name]
    return tree, make(tree), frame


def acceleration(system, tree, q, v, u):
    x = np.concatenate([q, v])
    full = system.nominal_input
    full[system.input_index("control")] = u
    return system.f(0.0, x, full)[tree.nv :]


# -- computed torque ------------------------------------------------------------------------------


@pytest.mark.usually(name=("ur5", "space_arm"))
@pytest.mark.parametrize("name", TREES)
def test_computed_torque_commands_the_acceleration(name, rng):
    """Inertia, Coriolis forces, weight, and water where there is some, are cancelled."""
    tree, system, _ = system_of(name)
    control = ComputedTorque(tree, system=system, frequency=2.0, damping_ratio=0.7, saturate=False)
    q, v = near(tree, rng)
    goal = tree.configuration.plus(q, rng.normal(scale=0.1, size=tree.nv))
    got = acceleration(system, tree, q, v, control(0.0, np.concatenate([q, v]), goal))
    e = tree.configuration.minus(q, goal)
    group = tree.configuration
    expected = -group.right_jacobian_inverse(e).T @ (4.0 * e) - 2.8 * v
    np.testing.assert_allclose(got, expected, atol=ROUNDING)


@pytest.mark.usually(name=("ur5",))
@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_computed_torque_makes_the_error_linear(name, rng):
    """Simulated error against the solution of ë + 2 ζ ω ė + ω² e = 0, on a moving reference."""
    tree = tree_of(name)
    omega, dt = 8.0, 0.002
    q0, _ = near(tree, rng)
    amplitude = rng.uniform(0.1, 0.3, tree.nv)

    def reference(t):
        return np.concatenate([q0 + amplitude * np.sin(2 * t), 2 * amplitude * np.cos(2 * t)])

    e0 = rng.uniform(-0.05, 0.05, tree.nv)
    start = reference(0.0)
    x0 = np.concatenate([start[: tree.nv] + e0, start[tree.nv :]])
    control = ComputedTorque(tree, frequency=omega, dt=dt, saturate=False)
    run = simulate(
        tree.system(), control, x0=x0, reference=reference, seconds=0.6, saturate=False,
        max_step=dt,
    )  # fmt: skip
    wanted = np.array([reference(t)[: tree.nv] for t in run.t])
    error = run.x[:, : tree.nv] - wanted
    expected = e0 * ((1 + omega * run.t) * np.exp(-omega * run.t))[:, None]
    # Torques are held for dt: the error behaves as if measured dt/2 late.
    assert np.abs(error - expected).max() < 0.02 * np.abs(e0).max() + 2e-3 * amplitude.max()


def test_computed_torque_turns_a_ball_joint_by_the_shortest_way(rng):
    """From 180° and with either sign of the quaternion."""
    tree = spherical_tree()
    system = tree.system()
    control = ComputedTorque(tree, frequency=4.0, dt=0.005)
    start = np.concatenate([[1.0, 0, 0, 0], [1.0, 0.0], [0.0], np.zeros(5)])
    for sign in (1.0, -1.0):
        goal = np.concatenate([sign * np.array([0, 0, 0, 1.0]), [0.0, 1.0], [0.2]])
        run = simulate(system, control, x0=start, reference=goal, seconds=3.0)
        e = tree.configuration.minus(run.x[-1, :7], goal)
        assert np.abs(e).max() < 1e-3


def test_limits_scale_torques_together():
    tree = tree_of("panda")
    x = np.concatenate([READY, np.zeros(7)])
    hard, free = (
        ComputedTorque(tree, frequency=30.0, saturate=saturate) for saturate in (True, False)
    )
    goal = READY + 0.5
    u, wanted = hard(0.0, x, goal), free(0.0, x, goal)
    limit = tree.limits["effort"]
    assert hard.info.status == "saturated" and free.info.status == "ok"
    assert (np.abs(wanted) > limit).any() and (np.abs(u) <= limit).all()
    weight = tree.bias_forces(READY, np.zeros(7))
    share = (u - weight) / (wanted - weight)
    np.testing.assert_allclose(share, share[0], rtol=1e-9)
    assert np.abs(np.abs(u) - limit).min() < 1e-9


# -- gravity compensation -------------------------------------------------------------------------


@pytest.mark.usually(name=("ur5", "space_arm", "mixed"))
@pytest.mark.parametrize("name", ["panda", "ur5", "space_arm", "scara", "mixed"])
def test_gravity_pd_holds_every_tree_at_rest(name, rng):
    trees = {"scara": scara_tree(), "mixed": spherical_tree()}
    tree, system, _ = (trees[name], None, "") if name in trees else system_of(name)
    system = tree.system() if system is None else system
    # At 1 kHz the dampers are too strong for the lightest wrists.
    control = GravityPD(tree, stiffness=50.0, damping=5.0, dt=1e-4, system=system, saturate=False)
    for q in tree.configuration.random(rng, (5,)):
        u = control(0.0, np.concatenate([q, np.zeros(tree.nv)]), q)
        a = acceleration(system, tree, q, np.zeros(tree.nv), u)
        np.testing.assert_allclose(a, np.zeros(tree.nv), atol=ROUNDING)


def test_gravity_pd_loses_energy_by_its_dampers_alone(rng):
    tree = spherical_tree()
    system, group = tree.system(), tree.configuration
    K, D = rng.uniform(10, 50, tree.nv), rng.uniform(1, 5, tree.nv)
    goal = group.random(rng)
    control = GravityPD(tree, stiffness=K, damping=D, reference=goal, saturate=False)

    def energy(x):
        e = group.minus(x[: tree.nq], goal)
        return tree.kinetic_energy(x[: tree.nq], x[tree.nq :]) + e @ (K * e) / 2

    for _ in range(5):
        q = group.plus(goal, rng.normal(scale=0.8, size=tree.nv))
        v = rng.normal(size=tree.nv)
        x = np.concatenate([q, v])
        rate = system.f(0.0, x, control(0.0, x))
        slope = directional(system.state, energy, x, rate)
        assert slope == pytest.approx(-v @ (D * v), rel=DIFFERENCE, abs=DIFFERENCE)


def directional(group, function, x, d, h=1e-5):
    return (function(group.plus(x, h * d)) - function(group.plus(x, -h * d))) / (2 * h)


# -- operational space ----------------------------------------------------------------------------


@pytest.mark.usually(name=("ur5",))
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("kind", ["pose", "position", "orientation"])
def test_the_frame_gets_the_acceleration_it_is_asked_for(name, kind, rng):
    """To rounding away from singularities, whatever the posture asks for."""
    tree, system, frame = system_of(name)
    task = FrameTask(frame, kind)
    q, v = near(tree, rng)
    posture = tree.configuration.plus(q, rng.normal(scale=0.5, size=tree.nv))
    control = OperationalSpace(
        tree, task, system=system, frequency=3.0, damping_ratio=0.8, posture=posture, saturate=False
    )
    X = _coordinates(task, tree.placement(frame)(q))
    goal = task.group.plus(X, rng.normal(scale=0.3, size=task.group.dim))
    u = control(0.0, np.concatenate([q, v]), goal)
    a = acceleration(system, tree, q, v, u)
    if kind == "position":
        V = tree.velocity(frame, "hybrid")(q, v)[:3]
        got = tree.acceleration(frame, "hybrid", "classical")(q, v, a)[:3]
    else:
        part = slice(0, 6) if kind == "pose" else slice(3, 6)
        V = tree.velocity(frame)(q, v)[part]
        got = tree.acceleration(frame, "body", "spatial")(q, v, a)[part]
    e = task.group.minus(X, goal)
    expected = -task.group.right_jacobian_inverse(e).T @ (9.0 * e) - 4.8 * V
    np.testing.assert_allclose(got, expected, atol=ROUNDING)


def _coordinates(task, pose):
    return {"pose": pose, "position": pose[:3], "orientation": pose[3:]}[task.kind]


@pytest.mark.thorough
def test_a_moving_target_is_followed(rng):
    """With its velocity given, acceleration and all: the error stays at what holding leaves."""
    tree = tree_of("panda")
    frame, dt = "panda_hand_tcp", 0.002
    start = tree.placement(frame)(READY)
    twist = np.array([0.1, -0.05, 0.1, 0.3, 0.2, -0.3])

    def target(t):
        """A screw motion that starts and ends gently."""
        s, rate = (1 - np.cos(2 * t)) / 2, np.sin(2 * t)
        return np.concatenate([SE3.plus(start, s * twist), rate * twist])

    control = OperationalSpace(tree, frame, frequency=20.0, posture=READY, dt=dt)
    run = simulate(
        tree.system(), control, x0=np.concatenate([READY, np.zeros(7)]), reference=target,
        seconds=1.5, max_step=dt,
    )  # fmt: skip
    wanted = np.array([target(t)[:7] for t in run.t])
    error = SE3.minus(tree.placement(frame)(run.x[:, :7]), wanted)
    assert np.abs(error).max() < 5e-4


def test_posture_moves_without_moving_the_frame(rng):
    """A seventh joint's worth of motion: the elbow swings, the hand rests."""
    tree = tree_of("panda")
    frame = "panda_hand_tcp"
    pose = tree.placement(frame)(READY)
    posture = READY + np.array([0.6, 0, 0, 0, 0, 0, 0])
    control = OperationalSpace(
        tree, frame, frequency=30.0, posture=posture, posture_frequency=3.0, dt=0.002
    )
    run = simulate(
        tree.system(), control, x0=np.concatenate([READY, np.zeros(7)]), reference=pose,
        seconds=2.0, max_step=0.002,
    )  # fmt: skip
    q = run.x[:, :7]
    assert np.abs(SE3.minus(tree.placement(frame)(q), pose)).max() < 2e-4
    assert np.linalg.norm(q[-1] - READY) > 0.2
    # What is left of the posture's error cannot be seen by joints that keep the frame at rest.
    null = np.linalg.svd(tree.jacobian(frame)(q[-1]))[2][-1]
    M = tree.mass_matrix(q[-1])
    assert abs(null @ M @ (q[-1] - posture)) < 0.02


def test_a_singular_arm_is_asked_for_no_more_than_it_can(rng):
    """A target straight out of a stretched arm's reach: torques and motion stay small."""
    tree = tree_of("ur5")
    stretched = np.array([0.0, -1.2, 0.0, -0.4, 1.0, 0.0])
    pose = tree.placement("tool0")(stretched)
    out = SE3.compose(SE3.exp([0.3, 0.0, 0.6, 0, 0, 0]), pose)
    control = OperationalSpace(tree, "tool0", frequency=5.0, dt=0.004, posture=stretched)
    x0 = np.concatenate([stretched + [0, 0, 1e-3, 0, 0, 0], np.zeros(6)])
    run = simulate(tree.system(), control, x0=x0, reference=out, seconds=3.0, max_step=0.004)
    assert run.x.shape[0] == 751
    assert np.abs(run.x[:, 6:]).max() < 3.0  # rad/s: within the arm's own limit
    assert np.abs(run.x[-50:, 6:]).max() < 0.01  # it comes to rest


def test_the_posture_gives_way_before_the_frame():
    tree = tree_of("panda")
    frame = "panda_hand_tcp"
    x = np.concatenate([READY, np.zeros(7)])
    pose = tree.placement(frame)(READY)
    far = READY + np.array([1.5, 0, -1.5, 0, 1.5, 0, 0])
    control = OperationalSpace(tree, frame, posture=far, posture_frequency=60.0)
    goal = SE3.plus(pose, [0.02, 0.01, 0, 0, 0.05, 0])
    u = control(0.0, x, goal)
    assert control.info.status == "saturated"
    a = tree.forward_dynamics(READY, np.zeros(7), u)
    e = SE3.minus(pose, goal)
    expected = -SE3.right_jacobian_inverse(e).T @ (100.0 * e)
    np.testing.assert_allclose(tree.jacobian(frame)(READY) @ a, expected, atol=ROUNDING)


def test_scara_tool_on_the_schoenflies_group():
    tree = scara_tree()
    task = FrameTask("tool", Schoenflies)
    control = OperationalSpace(tree, task, frequency=20.0, dt=0.001)
    x0 = np.concatenate([[0.3, 0.8, -0.05, 0.0], np.zeros(4)])
    angle = 2.0
    goal = np.array([0.25, -0.15, 0.05, np.cos(angle), np.sin(angle)])
    run = simulate(tree.system(), control, x0=x0, reference=goal, seconds=1.0, max_step=0.001)
    pose = tree.placement("tool")(run.x[-1, :4])
    np.testing.assert_allclose(SE3.homogeneous(pose), Schoenflies.homogeneous(goal), atol=1e-4)


# -- impedance ------------------------------------------------------------------------------------


@cache
def easy_arm():
    """The Panda without losses, and its system."""
    tree = panda_tree(losses=False)
    return tree, tree.system()


def impedance(rng, **options):
    tree, _ = easy_arm()
    K = rng.uniform(50, 500, 6)
    D = rng.uniform(5, 30, 6)
    # At 1 kHz the dampers are too strong for the wrist.
    control = Impedance(
        tree, "panda_hand_tcp", stiffness=K, damping=D, dt=1e-4, saturate=False, **options
    )
    return tree, control, K, D


def test_wrench_is_the_gradient_of_the_potential(rng):
    """At rest, torques beyond the weight against differences of ½ eᵀ K e by every joint."""
    tree, control, K, _ = impedance(rng)
    goal = tree.placement("panda_hand_tcp")(READY)
    for _ in range(5):
        q = READY + rng.normal(scale=0.5, size=7)
        u = control(0.0, np.concatenate([q, np.zeros(7)]), goal)

        def potential(q):
            e = SE3.minus(tree.placement("panda_hand_tcp")(q), goal)
            return e @ (K * e) / 2

        slopes = [directional(tree.configuration, potential, q, d) for d in np.eye(7)]
        np.testing.assert_allclose(u - tree.gravity_forces(q), -np.array(slopes), atol=1e-5)


def test_energy_falls_by_the_power_of_the_dampers(rng):
    """Passivity: with both dampers, exactly their power and nothing else."""
    ease = rng.uniform(0.5, 2.0, 7)
    tree, control, K, D = impedance(rng, posture_damping=ease)
    frame, (_, system) = "panda_hand_tcp", easy_arm()
    goal = SE3.plus(tree.placement(frame)(READY), rng.normal(scale=0.3, size=6))

    def energy(x):
        e = SE3.minus(tree.placement(frame)(x[:7]), goal)
        return tree.kinetic_energy(x[:7], x[7:]) + e @ (K * e) / 2

    for _ in range(5):
        x = np.concatenate([READY + rng.normal(scale=0.2, size=7), rng.normal(size=7)])
        q, v = x[:7], x[7:]
        slope = directional(system.state, energy, x, system.f(0.0, x, control(0.0, x, goal)))
        J, M = tree.jacobian(frame)(q), tree.mass_matrix(q)
        V = J @ v
        inverse = np.linalg.solve(M, J.T) @ np.linalg.inv(J @ np.linalg.solve(M, J.T))
        left = v - inverse @ V
        expected = -V @ (D * V) - left @ (ease * left)
        assert slope == pytest.approx(expected, rel=1e-5)


def test_a_push_is_balanced_by_the_spring(rng):
    """The arm rests where the outer wrench equals the gradient of ½ eᵀ K e in the frame's axes."""
    tree, control, K, _ = impedance(rng)
    frame = "panda_hand_tcp"
    goal = tree.placement(frame)(READY)
    rest = np.zeros(7)
    for _ in range(5):
        q = READY + rng.normal(scale=0.2, size=7)
        e = SE3.minus(tree.placement(frame)(q), goal)
        push = SE3.right_jacobian_inverse(e).T @ (K * e)
        u = control(0.0, np.concatenate([q, rest]), goal)
        wrenches = tree.wrenches_at(frame)(q, push)
        np.testing.assert_allclose(
            tree.forward_dynamics(q, rest, u, wrenches), rest, atol=1e-7
        )  # the wrist's inertia is 1e-3 kg m²


# -- what is refused ------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_with_a_reason():
    panda = tree_of("panda")
    with pytest.raises(ValueError, match="drive 7 of 13"):
        ComputedTorque(tree_of("space_arm"))
    with pytest.raises(ValueError, match="generalized forces"):
        GravityPD(
            tree_of("underwater_vehicle_arm"), stiffness=1.0, damping=1.0,
            system=system_of("underwater_vehicle_arm")[1],
        )  # fmt: skip
    with pytest.raises(ValueError, match="cannot move frame 'tool' in all 6"):
        OperationalSpace(scara_tree(), "tool")
    with pytest.raises(ValueError, match="leaves"):
        OperationalSpace(panda, FrameTask("panda_hand_tcp", Schoenflies))
    with pytest.raises(KeyError, match="panda_hand_tcp"):
        OperationalSpace(panda, "hand")
    with pytest.raises(ValueError, match="pose, position, orientation"):
        FrameTask("panda_hand_tcp", "place")
    with pytest.raises(ValueError, match="stiffness must not be negative"):
        Impedance(panda, "panda_hand_tcp", stiffness=-1.0)
    with pytest.raises(ValueError, match=r"reference has shape \(3,\), expected \(7,\)"):
        Impedance(panda, "panda_hand_tcp", stiffness=1.0)(0.0, np.zeros(14), np.zeros(3))
    with pytest.raises(ValueError, match="no reference"):
        ComputedTorque(panda)(0.0, np.zeros(14))
    with pytest.raises(ValueError, match="configuration"):
        ComputedTorque(panda, system=system_of("ur5")[1])


def test_a_state_that_is_not_finite_holds_the_last_torques():
    tree = tree_of("panda")
    control = GravityPD(tree, stiffness=10.0, damping=1.0, reference=READY)
    x = np.concatenate([READY + 0.1, np.zeros(7)])
    u = control(0.0, x)
    np.testing.assert_array_equal(control(0.0, np.full(14, np.nan)), u)
    assert control.info.status == "held"


def test_trajectories_of_states_are_followed():
    """A Trajectory's velocity counts; beyond its end it rests."""
    tree = tree_of("panda")
    t = np.linspace(0, 1, 51)
    s, rate = t**2 * (3 - 2 * t), 6 * t * (1 - t)
    q = READY + 0.3 * s[:, None]
    path = Trajectory(tree.system().state, t, np.hstack([q, np.tile(0.3 * rate[:, None], (1, 7))]))
    control = ComputedTorque(tree, frequency=15.0, dt=0.002, reference=path)
    with pytest.warns(RuntimeWarning, match="the reference ends at 1 s while it moves"):
        run = simulate(
            tree.system(), control, x0=path.x[0], reference=path, seconds=1.4, max_step=0.002
        )
    assert np.abs(tree.configuration.minus(run.x[:, :7], path(run.t).x[:, :7])).max() < 1e-3
    np.testing.assert_allclose(run.x[-1], np.concatenate([READY + 0.3, np.zeros(7)]), atol=1e-3)


REST = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])


@pytest.mark.thorough
def test_runs_of_arms_have_errors_and_tell_limits():
    """Joint 1 ends at ±2.9 rad and 2.175 rad/s, and nothing holds it there."""
    tree = tree_of("panda")
    goal = np.r_[4.0, REST[1:]]
    for reference in (goal, lambda t: goal):
        warned = isinstance(reference, np.ndarray)
        expected = pytest.warns(RuntimeWarning, match="reference is beyond the limits of .*joint1")
        with expected if warned else nullcontext():
            run = simulate(
                panda(), ComputedTorque(tree), x0=np.r_[REST, np.zeros(7)], reference=reference,
                seconds=0.5,
            )  # fmt: skip
        assert np.allclose(run.error[0, :7], np.r_[-4.0, np.zeros(6)])
        beyond = run.beyond_limits()
        assert beyond["configuration.panda_joint1.angle"] > 0.5
        assert beyond["velocity.panda_joint1.rz"] > 0.5
        assert any(
            line.startswith("beyond the limits of configuration.panda_joint1.angle from ")
            for line in run.summary()
        )
        assert np.array_equal(run.block("panda_joint1")[:, 0], run.x[:, 0])


def test_runs_with_frame_tasks_have_the_error_of_the_frame():
    tree, frame = tree_of("panda"), "panda_link8"
    place = tree.placement(frame)
    target = SE3.plus(place(REST), [0.05, 0.0, 0.02, 0.0, 0.1, 0.0])
    for control in (
        OperationalSpace(tree, frame, posture=REST),
        Impedance(tree, frame, stiffness=200.0, posture=REST),
    ):
        run = simulate(
            system_of("panda")[1], control, x0=np.r_[REST, np.zeros(7)], reference=target,
            seconds=0.1,
        )  # fmt: skip
        assert run.reference is None
        assert np.allclose(run.tasks[frame].error, SE3.minus(place(run.x[:, :7]), target))
        assert any(line.startswith(f"final error of {frame}: position") for line in run.summary())
