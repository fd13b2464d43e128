"""Trajectories: interpolation on the group, pieces, resampling."""

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.simulation import simulate
from lgcontrol.systems import Input, System, Trajectory

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
    with pytest.raises(ValueError, match="trajectory 1 is not .*: it is SO2, expected SE3"):
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
        (([0.0, 0.0], np.ones((2, 2))), r"t must increase, got t\[0\] = 0 and t\[1\] = 0"),
        (([], np.ones((0, 2))), "at least 1 time"),
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


@pytest.mark.parametrize(
    ("group", "x", "message"),
    [
        (
            SO2,
            [[1.0, 0.0], [2.0, 0.0]],
            r"x\[1\] = \[2\. 0\.\] is no element of SO2: .* has norm 2",
        ),
        (
            SO3,
            [[0.0] * 4] * 2,
            r"x\[0\] = .* is no element of SO3: .*qx.* cannot be norm",
        ),
    ],
)
def test_states_off_the_group_are_refused(group, x, message):
    with pytest.raises(ValueError, match=message):
        Trajectory(group, [0.0, 1.0], x)
    with pytest.raises(ValueError, match=r"x\[0\] = .* is no element of"):
        Trajectory.constant(group, x[1])


def test_states_printed_with_few_digits_are_brought_onto_the_group():
    run = Trajectory(SO2, [0.0], [[0.7071068, 0.7071068]])
    np.testing.assert_allclose(np.linalg.norm(run.x, axis=1), 1.0, atol=SAME)


# A rollout that came to an end


def burst():
    """Three motions; the first diverges at 0.2 s, the last at 0.3 s."""
    t, x = np.linspace(0.0, 0.4, 5), np.ones((3, 5, 1))
    x[0, 2:], x[2, 3:] = np.nan, np.nan
    return Trajectory.unchecked(Rn(1), t, x, np.zeros((3, 4, 0)))


def test_what_diverged_and_when():
    run = burst()
    np.testing.assert_array_equal(run.diverged, [True, False, True])
    np.testing.assert_allclose(run.diverged_at, [0.2, np.inf, 0.3])
    assert repr(run) == (
        "Trajectory(Rn(1): 5 nodes from 0 to 0.4 s, 0 inputs, batch (3,), 2 diverged)"
    )
    still = Trajectory.constant(Product(pose=SE3, twist=Rn(6)), [0.0] * 6 + [1.0] + [0.0] * 6)
    assert repr(still) == "Trajectory(pose, twist: 1 nodes from 0 to 0 s, 0 inputs)"


def test_the_motion_before_it_can_be_used_and_later_parts_stay_marked():
    run = burst()
    assert not run[:2].diverged.any()
    np.testing.assert_array_equal(run.resample(0.05)[2:].diverged, [True, False, True])
    np.testing.assert_allclose(run.shift(1.0).diverged_at, [1.2, np.inf, 1.3])
    assert np.isfinite(run(0.1).x).all() and np.isnan(run(0.25).x[0]).all()
    with pytest.raises(ValueError, match="cannot join anything to a rollout that diverged"):
        Trajectory.concatenate([run, run])


# Files

GROUPS = [SE3, Product(angle=SO2, rate=Rn(2)), Rn(0)]


@pytest.mark.parametrize("group", GROUPS)
def test_files_keep_everything(group, tmp_path, rng):
    inputs = (Input("thrust", "N", 0.0, np.inf), Input("gust", "m/s", role="disturbance"))
    x, u = group.random(rng, (3, 5)), rng.normal(size=(3, 4, 2))
    run = Trajectory(group, np.arange(5.0), x, u, inputs=inputs)
    path = run.save(tmp_path / "run")
    assert path.name == "run.npz"
    back = Trajectory.load(tmp_path / "run")
    assert back.group == group and back.inputs == inputs
    for name in ("t", "x", "u"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))


def test_files_keep_what_diverged(tmp_path):
    back = Trajectory.load(burst().save(tmp_path / "a"))
    np.testing.assert_array_equal(back.x, burst().x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "is damaged: x is missing"),
        ({"x": np.full((5, 1), np.nan)}, "is damaged: x has states of NaN other than at its end"),
        ({"x": np.array([[1.0], [np.nan], [1.0], [1.0], [1.0]])}, "NaN other than at its end"),
        ({"t": np.zeros(5)}, "is damaged: t must increase"),
        ({"inputs": np.zeros((1, 3))}, r"is damaged: inputs has shape \(1, 3\), expected \(0, 3\)"),
        ({"description": np.array("[]")}, "is no saved trajectory"),
        ({"x": np.array([{}], dtype=object)}, "is no saved trajectory: Object arrays cannot be"),
    ],
)
def test_damaged_files_are_told(changes, message, tmp_path):
    path = Trajectory(Rn(1), np.arange(5.0), np.ones((5, 1))).save(tmp_path / "a")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(ValueError, match=message):
        Trajectory.load(path)


def test_results_are_no_trajectories(tmp_path):
    still = System("still", Rn(1), lambda t, x, u, p: 0 * x)
    path = simulate(still, x0=[1.0], seconds=0.1).save(tmp_path / "a")
    with pytest.raises(
        ValueError, match=r"holds 'lgcontrol\.simulation', expected 'lgcontrol\.tra"
    ):
        Trajectory.load(path)


def test_names_of_inputs_are_counted():
    with pytest.raises(ValueError, match="inputs names 1 inputs, u has 2"):
        Trajectory(Rn(1), [0.0], [[1.0]], [[1.0, 2.0]], inputs=["force"])


def test_a_trajectory_goes_to_python_control():
    """A plan or a rollout as a response: times, states, held inputs, names."""
    system = System(
        "pendulum", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u - x[1]), inputs=[Input("torque", "N m")],
    )  # fmt: skip
    run = system.rollout(system.state.identity, [0.3], dt=0.1, steps=5)
    response = run.to_control()
    assert isinstance(response, control.TimeResponseData)
    np.testing.assert_array_equal(response.time, run.t)
    np.testing.assert_array_equal(response.states, run.x.T)
    np.testing.assert_array_equal(response.outputs, run.x.T)
    np.testing.assert_array_equal(response.inputs, run.input_at_nodes.T)
    assert response.input_labels == ["torque"]
    assert response.output_labels == [n.replace(".", "_") for n in run.group.coordinate_names]
    assert Trajectory(Rn(2), [0.0, 1.0], np.eye(2)).to_control().states.shape == (2, 2)
    many = system.rollout(np.tile(system.state.identity, (3, 1)), [0.3], dt=0.1, steps=5)
    with pytest.raises(ValueError, match="is a batch, and a response is one motion"):
        many.to_control()
