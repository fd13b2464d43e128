"""Trajectories: interpolation on the group, pieces, resampling; waypoints with their rates."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.systems import Trajectory, Waypoints

SAME = 1e-12


def path(rng, n=6, inputs=2):
    t = np.cumsum(rng.uniform(0.1, 1.0, size=n))
    return Trajectory(SE3, t, SE3.random(rng, (n,)), rng.normal(size=(n - 1, inputs)))


def test_nodes_and_held_inputs(rng):
    run = path(rng)
    at_nodes = run(run.t)
    np.testing.assert_allclose(SE3.minus(at_nodes.x, run.x), 0, atol=SAME)
    np.testing.assert_array_equal(at_nodes.u, run.input_at_nodes)
    middle = run((run.t[2] + run.t[3]) / 2)
    np.testing.assert_array_equal(middle.u, run.u[2])
    half = SE3.minus(run.x[3], run.x[2]) / 2
    np.testing.assert_allclose(SE3.minus(middle.x, run.x[2]), half, atol=SAME)


def test_the_ends_are_held(rng):
    run = path(rng)
    np.testing.assert_allclose(run(run.t[0] - 5).x, run.x[0], atol=SAME)
    np.testing.assert_allclose(SE3.minus(run(run.t[-1] + 5).x, run.x[-1]), 0, atol=SAME)
    np.testing.assert_array_equal(run(run.t[-1] + 5).u, run.u[-1])


def test_batches_keep_their_axes(rng):
    t, x, u = [0.0, 1.0, 3.0], SO3.random(rng, (4, 5, 3)), rng.normal(size=(4, 5, 2, 7))
    run = Trajectory(SO3, t, x, u)
    assert run(0.5).x.shape == (4, 5, 4) and run(0.5).u.shape == (4, 5, 7)
    assert run([0.5, 0.7]).x.shape == (4, 5, 2, 4) and run([0.5, 0.7]).u.shape == (4, 5, 2, 7)
    np.testing.assert_allclose(
        run(0.5).x[2, 3], Trajectory(SO3, t, x[2, 3], u[2, 3])(0.5).x, atol=SAME
    )
    assert run[1:].x.shape == (4, 5, 2, 4)


def test_a_constant_reference():
    hold = Trajectory.constant(SO2, [0.0, 1.0], [2.0])
    for t in (-1.0, 0.0, 100.0):
        np.testing.assert_array_equal(hold(t).x, [0.0, 1.0])
        np.testing.assert_array_equal(hold(t).u, [2.0])
    assert hold.duration == 0.0
    assert Trajectory.constant(SO2, [1.0, 0.0]).u.shape == (1, 0)


def test_functions_are_sampled():
    run = Trajectory.from_functions(
        SO2, np.linspace(0, 2, 5), lambda t: SO2.exp([t]), lambda t: [t, 2 * t]
    )
    np.testing.assert_allclose(SO2.log(run(0.75).x), [0.75])
    np.testing.assert_allclose(run.u[:, 1], [0, 1, 2, 3, 4])


def test_slices_and_shifts(rng):
    run = path(rng)
    part = run[2:5]
    np.testing.assert_array_equal(part.t, run.t[2:5])
    np.testing.assert_array_equal(part.u, run.u[2:5])
    assert len(run[::2]) == 3
    np.testing.assert_allclose(run.shift(3.0)(run.t[1] + 3.0).x, run(run.t[1]).x, atol=SAME)
    with pytest.raises(TypeError, match="with a slice of nodes, call it with a time"):
        run[2]


def test_laps_follow_one_another(rng):
    lap = path(rng)
    two = Trajectory.concatenate([lap, lap])
    assert two.duration == pytest.approx(2 * lap.duration)
    assert len(two) == 2 * len(lap) - 1
    for s in (0.3, 1.1):
        later = two(lap.t[0] + lap.duration + s)
        np.testing.assert_allclose(SE3.minus(later.x, lap(lap.t[0] + s).x), 0, atol=SAME)
        np.testing.assert_array_equal(later.u, lap(lap.t[0] + s).u)
    with pytest.raises(ValueError, match="cannot join SO2 to SE3"):
        Trajectory.concatenate([lap, Trajectory.constant(SO2, SO2.identity)])
    with pytest.raises(ValueError, match="at least one"):
        Trajectory.concatenate([])


def test_resampling_keeps_the_motion(rng):
    run = path(rng)
    fine = run.resample(0.05)
    assert fine.t[0] == run.t[0] and fine.t[-1] == pytest.approx(run.t[-1])
    np.testing.assert_allclose(np.diff(fine.t)[:-1], 0.05)
    np.testing.assert_allclose(SE3.minus(fine.x, run(fine.t).x), 0, atol=SAME)
    whole = Trajectory(SO2, [0.0, 1.0], [SO2.identity] * 2).resample(0.1)
    assert len(whole) == 11
    assert len(run.resample([run.t[0], run.t[-1]])) == 2
    with pytest.raises(ValueError, match="spacing > 0"):
        run.resample(-0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.0], np.ones((2, 2))), "t must hold at least one time and increase"),
        (([], np.ones((0, 2))), "at least one time"),
        (([0.0, 1.0], np.ones((3, 2))), "x has 3 states for 2 times"),
        (([0.0, 1.0], np.ones((2, 3))), r"x has shape \(2, 3\), expected \(..., n, 2\)"),
        (([0.0, np.nan], np.ones((2, 2))), "t is not finite"),
        (([0.0, 1.0], np.ones((2, 2)), np.ones((5, 1))), "u has 5 rows, expected 1 .* or 2"),
        (([0.0, 1.0], np.ones((2, 2)), [[np.inf]]), "u is not finite"),
    ],
)
def test_faults_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trajectory(SO2, *arguments)


# Waypoints


@pytest.mark.parametrize("profile", ["smooth", "constant"])
def test_rates_and_accelerations_are_those_of_the_motion(profile, rng):
    motion = Waypoints(SE3, [0.0, 1.0, 3.0], SE3.random(rng, (3,)), profile)
    h = 1e-5
    for t in (0.2, 0.7, 1.4, 2.9):
        here = motion(t)
        step = SE3.minus(motion(t + h).x, motion(t - h).x) / (2 * h)
        np.testing.assert_allclose(step, here.rate, atol=1e-7)
        change = (motion(t + h).rate - motion(t - h).rate) / (2 * h)
        np.testing.assert_allclose(change, here.acceleration, atol=1e-7)


def test_waypoints_are_reached_at_rest(rng):
    poses, t = SE3.random(rng, (3,)), np.array([0.0, 1.0, 3.0])
    motion = Waypoints(SE3, t, poses)
    np.testing.assert_allclose(SE3.minus(motion(t).x, poses), 0, atol=SAME)
    for time in (-1.0, 0.0, 1.0, 3.0, 5.0):
        np.testing.assert_allclose(motion(time).rate, 0, atol=SAME)
        np.testing.assert_allclose(motion(time).acceleration, 0, atol=SAME)
    steady = Waypoints(SE3, t, poses, "constant")
    np.testing.assert_array_equal(steady([-1.0, 5.0]).rate, 0)


def test_waypoints_make_a_reference_whose_twist_fits_its_pose(rng):
    motion = Waypoints(SE3, [0.0, 2.0], SE3.random(rng, (2,)))
    state = Product(pose=SE3, twist=Rn(6))
    reference = Trajectory.from_functions(
        state, np.linspace(0, 2, 201), lambda t: state.join(pose=motion(t).x, twist=motion(t).rate)
    )
    pose, twist = reference.x[:, :7], reference.x[:, 7:]
    steps = SE3.minus(pose[1:], pose[:-1]) / 0.01
    np.testing.assert_allclose(steps, (twist[1:] + twist[:-1]) / 2, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [SO2.identity]), "at least two times"),
        (([1.0, 0.0], [SO2.identity] * 2), "increase"),
        (([0.0, 1.0], [SO2.identity]), r"x has shape \(1, 2\), expected \(2, 2\)"),
        (([0.0, 1.0], [SO2.identity] * 2, "cubic"), "unknown profile 'cubic'; valid names are"),
    ],
)
def test_waypoint_faults_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Waypoints(SO2, *arguments)
