"""Inverse kinematics: targets reached, limits kept, and what happens out of reach."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Schoenflies
from lgcontrol.mechanics import (
    FrameTask,
    InverseKinematics,
    JointProperties,
    Multibody,
    random_configuration,
)
from lgcontrol.mechanics.multibody.tasks._inverse_kinematics import damped_step
from lgcontrol.models import panda_tree, scara_tree, space_arm_tree, ur5_tree

ARMS = {"panda": (panda_tree(), "panda_hand_tcp"), "ur5": (ur5_tree(), "tool0")}
# Solvers stop at 1e-8; from there the next step would square the error.
REACHED = 1e-7


def within(tree, q) -> bool:
    d = tree.configuration.log(q)
    return bool((d >= tree.limits["lower"]).all() and (d <= tree.limits["upper"]).all())


@pytest.mark.usually(name=("ur5",))
@pytest.mark.parametrize("name", ARMS)
def test_random_reachable_poses_are_reached_within_limits(name, rng):
    """Random restarts find nearly every pose; both signs of the quaternion are the same target."""
    tree, frame = ARMS[name]
    solver = InverseKinematics(tree, frame)
    found = 0
    for k in range(40):
        target = tree.placement(frame)(random_configuration(tree, rng))
        target[3:] *= (-1) ** k
        result = solver.solve(target, restarts=30, seed=k)
        assert within(tree, result.q)
        found += result.is_success
        if result.is_success:
            reached = SE3.homogeneous(tree.placement(frame)(result.q))
            np.testing.assert_allclose(reached, SE3.homogeneous(target), atol=REACHED)
    assert found >= 39


def elbow() -> Multibody:
    """Two links of a metre about y, the second bent by half a radian at most."""
    bend = JointProperties(lower=-0.5, upper=0.5)
    tree = Multibody().add_body("upper", None, "revolute", axis="y")
    tree = tree.add_body("lower", None, "revolute", "upper", [1, 0, 0], axis="y", properties=bend)
    return tree.add_frame("tip", "lower", [1, 0, 0])


def test_what_is_not_reached_says_why():
    """Limits that hold, reach, or too few iterations: by name, with how far it stays off."""
    solver = InverseKinematics(elbow(), FrameTask("tip", "position"))
    far = solver.solve([3.0, 0.0, 0.0], guess=[0.1, 0.1])
    assert far.status == "stationary" and far.at_limits == ()
    assert "no joint moves frame 'tip' nearer to the target, it stays 1 m off" in far.message
    assert "out of reach" in far.message and "restarts=20" in far.message
    tried = solver.solve([3.0, 0.0, 0.0], guess=[0.1, 0.1], restarts=3)
    assert "4 starts came no nearer" in tried.message
    bent = solver.solve([1.0, 0.0, -1.0], guess=[0.1, 0.1])
    assert bent.status == "stationary" and bent.at_limits == ("lower",)
    assert "the upper limit of lower (0.5 rad) keeps frame 'tip'" in bent.message
    assert f"{np.linalg.norm(bent.errors[0]):.4g} m off" in bent.message
    free = InverseKinematics(elbow(), FrameTask("tip", "position"), limits=False)
    met = free.solve([1.0, 0.0, -1.0], guess=[0.1, 0.1])
    assert met.is_success and met.message == "" and met.at_limits == ()
    short = InverseKinematics(elbow(), FrameTask("tip", "position"), max_iterations=1)
    short = short.solve([1.6, 0.0, -0.9], guess=[3.0, 0.1])
    assert short.status == "iteration limit" and "a larger max_iterations" in short.message


@pytest.mark.parametrize("axis", np.eye(3))
def test_half_a_turn_is_no_obstacle(axis):
    """The hand turned by 180° about each of its axes, from where it is."""
    tree, frame = ARMS["panda"]
    start = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.8, 0.4])
    solver = InverseKinematics(tree, FrameTask(frame, "orientation"))
    pose = tree.placement(frame)(start)
    target = SO3.plus(pose[3:], np.pi * axis)
    result = solver.solve(target, start, restarts=10)
    assert result.status == "converged"
    assert SO3.distance(tree.placement(frame)(result.q)[3:], target) < REACHED


def test_from_nearby_it_converges_quadratically(rng):
    tree, frame = ARMS["ur5"]
    start = np.array([0.3, -1.2, 1.5, -0.8, 1.2, 0.4])
    target = tree.placement(frame)(start + rng.normal(scale=0.05, size=6))
    assert InverseKinematics(tree, frame).solve(target, start).iterations <= 6


@pytest.mark.parametrize("name", ARMS)
def test_out_of_reach_the_best_iterate_is_returned(name):
    """A point 3 m away: the arm stretches towards it, as no small motion would get nearer."""
    tree, frame = ARMS[name]
    target = np.array([3.0, 0.5, 0.4])
    start = random_configuration(tree, 3)
    solver = InverseKinematics(tree, FrameTask(frame, "position"), max_iterations=1000)
    result = solver.solve(target, start)
    assert result.status == "stationary"
    assert within(tree, result.q)
    p = tree.position(frame)
    miss = np.linalg.norm(p(result.q) - target)
    assert result.error == np.abs(result.errors[0]).max() > 1.0
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.clip(
            result.q + rng.normal(scale=1e-3, size=tree.nv),
            tree.limits["lower"], tree.limits["upper"],
        )  # fmt: skip
        assert np.linalg.norm(p(other) - target) > miss - 1e-9


def test_limits_hold_exactly_where_they_are_active(rng):
    """A pose from beyond a limit: without limits it is reached, with them the joint stops there."""
    tree, frame = ARMS["panda"]
    beyond = np.array([0.0, -0.5, 0.0, 0.15, 0.0, 1.5, 0.0])  # joint 4 ends at -0.0698
    target = tree.placement(frame)(beyond)
    start = np.array([0.0, -0.5, 0.0, -0.3, 0.0, 1.5, 0.0])
    free = InverseKinematics(tree, frame, limits=False).solve(target, start)
    held = InverseKinematics(tree, frame).solve(target, start)
    assert free.status == "converged" and not within(tree, free.q)
    assert held.status != "converged" and within(tree, held.q)
    assert held.q[3] == tree.limits["upper"][3]


def test_several_frames_share_one_configuration():
    """The hand at a position with the elbow up: two tasks, solved together."""
    tree, frame = ARMS["panda"]
    q = np.array([0.4, -0.3, 0.3, -1.9, 0.2, 1.7, 0.5])
    tasks = [FrameTask(frame, "pose"), FrameTask("panda_link4", "position")]
    targets = [tree.placement(frame)(q), tree.position("panda_link4")(q)]
    result = InverseKinematics(tree, tasks).solve(targets, q + 0.2)
    assert result.status == "converged"
    for task, target, error in zip(tasks, targets, result.errors, strict=True):
        pose = tree.placement(task.frame)(result.q)
        now = pose if task.kind == "pose" else pose[:3]
        np.testing.assert_allclose(error, task.group.minus(now, target), atol=1e-15)
        assert np.abs(error).max() < REACHED


def test_weights_decide_between_tasks_that_disagree():
    """A hand asked to be in two places comes nearer to the one with more weight."""
    tree, frame = ARMS["ur5"]
    start = np.array([0.3, -1.2, 1.5, -0.8, 1.2, 0.4])
    here = tree.position(frame)(start)
    other = here + [0.1, 0.0, 0.0]
    tasks = [FrameTask(frame, "position", weight=3.0), FrameTask(frame, "position")]
    result = InverseKinematics(tree, tasks).solve([here, other], start)
    np.testing.assert_allclose(tree.position(frame)(result.q), here + [0.025, 0, 0], atol=1e-6)


def test_an_entry_without_weight_is_free():
    """A pose whose heading does not matter."""
    tree, frame = ARMS["ur5"]
    q = np.array([0.3, -1.2, 1.5, -0.8, 1.2, 0.4])
    turned = SE3.plus(tree.placement(frame)(q), [0, 0, 0, 0, 0, 1.0])
    task = FrameTask(frame, "pose", weight=[1, 1, 1, 1, 1, 0])
    result = InverseKinematics(tree, task).solve(turned, q)
    assert result.iterations == 0 and result.status == "converged"


def test_scara_on_its_own_group(rng):
    """Four joints, four coordinates: closed-form geometry says what is reachable."""
    tree = scara_tree()
    solver = InverseKinematics(tree, FrameTask("tool", Schoenflies))
    for _ in range(10):
        target = Schoenflies.from_matrix(
            SE3.homogeneous(tree.placement("tool")(random_configuration(tree, rng)))
        )
        result = solver.solve(target, restarts=20)
        assert result.status == "converged"
        pose = tree.placement("tool")(result.q)
        np.testing.assert_allclose(
            SE3.homogeneous(pose), Schoenflies.homogeneous(target), atol=REACHED
        )


def test_a_free_base_counts_as_a_joint(rng):
    """A floating tree: base and arm share the way; quaternions stay normalised."""
    tree = space_arm_tree()
    target = SE3.random(rng)
    result = InverseKinematics(tree, "tool").solve(target)
    assert result.status == "converged"
    assert np.linalg.norm(result.q[3:7]) == pytest.approx(1.0, abs=1e-14)


def test_step_is_the_best_within_bounds(rng):
    """Against exhaustive search over all sets of active bounds."""
    for _ in range(30):
        A, r = rng.normal(size=(4, 3)), rng.normal(size=4)
        lower, upper = -rng.uniform(0, 0.5, 3), rng.uniform(0, 0.5, 3)
        H, g = A.T @ A + 0.1 * np.eye(3), A.T @ r

        def value(d, H=H, g=g):
            return d @ H @ d / 2 + g @ d

        candidates = []
        for code in np.ndindex(3, 3, 3):
            held = np.array(code) > 0
            d = np.where(np.array(code) == 1, lower, upper) * held
            free = ~held
            if free.any():
                d[free] = np.linalg.solve(
                    H[np.ix_(free, free)], -g[free] - H[np.ix_(free, held)] @ d[held]
                )
            if (d >= lower - 1e-12).all() and (d <= upper + 1e-12).all():
                candidates.append(value(d))
        step = damped_step(A, r, 0.1, lower, upper)
        assert (step >= lower).all() and (step <= upper).all()
        assert value(step) == pytest.approx(min(candidates), rel=1e-9)


def test_wrong_arguments_are_named():
    tree, frame = ARMS["ur5"]
    with pytest.raises(KeyError, match="tool0"):
        InverseKinematics(tree, "tool")
    with pytest.raises(ValueError, match="2 targets for 1 tasks"):
        InverseKinematics(tree, [FrameTask(frame)]).solve([SE3.identity, SE3.identity])
    with pytest.raises(ValueError, match=r"target of the task on 'tool0'.*\(7,\)"):
        InverseKinematics(tree, frame).solve([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not finite|finite"):
        InverseKinematics(tree, frame).solve(np.full(7, np.nan))
    with pytest.raises(ValueError, match="weight"):
        FrameTask(frame, weight=-1.0)
    with pytest.raises(ValueError, match="at least one task"):
        InverseKinematics(tree, [])
    with pytest.raises(ValueError, match="leaves"):
        InverseKinematics(tree, FrameTask(frame, Schoenflies))


def test_a_tree_without_limits_has_none():
    tree = Multibody().add_body("a", None, "revolute").add_frame("tip", "a", [1, 0, 0])
    solver = InverseKinematics(tree, FrameTask("tip", "position"))
    assert solver.solve([-1.0, 0.0, 0.0], guess=[3.0]).is_success


def test_targets_that_are_no_poses_are_refused():
    tree, frame = ARMS["ur5"]
    solver = InverseKinematics(tree, frame)
    for quaternion, message in (
        ([0, 0, 0, 0], "target of the task on 'tool0' = .* cannot be normalised"),
        ([0, 0, 0, 2], "target of the task on 'tool0' = .* has norm 2, not 1"),
    ):
        with pytest.raises(ValueError, match=message):
            solver.solve([1.0, 0.0, 0.0, *quaternion])
