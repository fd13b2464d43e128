"""plot_path: paths, frames, scales."""

import dataclasses
from inspect import signature

import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO3, Helical, Product, Rn, Schoenflies, Translation
from lgcontrol.optimal import Capsule, HalfSpace, Sphere
from lgcontrol.plotting import animate_run, plot_path
from lgcontrol.plotting._plot_path import cap, surface
from lgcontrol.plotting._poses import body_poses, spread
from lgcontrol.plotting._style import AXIS_COLORS
from lgcontrol.simulation import SimulationResult
from lgcontrol.systems import Trajectory

from ._runs import T, drive, flight, joints, result, turn

# Where records are few, others are drawn between them: 8 parts of each interval of these runs.
PARTS, MANY = 8, 8 * 40 + 1


def in_space(line):
    return np.column_stack(line.get_data_3d())


def test_a_reference_that_jumps_is_a_frame_at_each_of_its_places():
    goals = np.where(np.arange(41)[:, np.newaxis] < 20, SE2.exp([1.0, 0, 0]), SE2.exp([2.0, 3, 1]))
    lines = plot_path(drive(reference=goals), frames=2).axes[0].lines
    dashed = [line.get_xydata() for line in lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose([axis[0] for axis in dashed], goals[[0, 0, -1, -1], :2])
    assert {len(axis) for axis in dashed} == {2}  # axes, no way from one place to the other


def test_a_path_in_space_with_frames_and_reference():
    run = flight()
    figure = plot_path(run, frames=5)
    ax = figure.axes[0]
    assert [ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()] == ["x [m]", "y [m]", "z [m]"]
    paths = [in_space(line) for line in ax.lines if len(line.get_data_3d()[0]) == MANY]
    np.testing.assert_allclose(paths[0][::PARTS], run.reference[:, :3])
    np.testing.assert_allclose(paths[1][::PARTS], run.x[:, :3])
    reference = next(line for line in ax.lines if len(line.get_data_3d()[0]) == MANY)
    assert reference.get_linestyle() == "--"
    frames = [line for line in ax.lines if len(line.get_data_3d()[0]) == 2]
    assert len(frames) == 3 * 5
    assert [line.get_color() for line in frames[:3]] == list(AXIS_COLORS)


def test_frames_point_along_the_body_axes():
    run = flight(reference=None)
    lines = plot_path(run, frames=2).axes[0].lines
    frames = [in_space(line) for line in lines if len(line.get_data_3d()[0]) == 2]
    at_end = np.column_stack([end - start for start, end in frames[3:]])
    np.testing.assert_allclose(
        at_end / np.linalg.norm(at_end, axis=0), SE3.matrix(run.x[-1, :7])[:3, :3], atol=1e-12
    )
    np.testing.assert_allclose(frames[3][0], run.x[-1, :3])


def test_scales_are_equal_in_space_and_in_the_plane():
    ax = plot_path(flight()).axes[0]
    sides = np.array([np.ptp(getattr(ax, f"get_{name}lim")()) for name in "xyz"])
    np.testing.assert_allclose(ax._box_aspect / ax._box_aspect[0], sides / sides[0])
    assert plot_path(drive()).axes[0].get_aspect() == 1.0


def test_everything_is_inside_the_box():
    run = flight()
    ax = plot_path(run).axes[0]
    for line in ax.lines:
        for values, name in zip(line.get_data_3d(), "xyz", strict=True):
            low, high = getattr(ax, f"get_{name}lim")()
            assert low <= np.min(values) and np.max(values) <= high


def test_a_path_in_the_plane():
    run = drive(reference=np.tile(SE2.identity, (41, 1)))
    ax = plot_path(run).axes[0]
    assert ax.name == "rectilinear"
    path = next(line for line in ax.lines if len(line.get_xdata()) == MANY)
    np.testing.assert_allclose(path.get_xydata()[::PARTS], run.x[:, :2])
    # A constant reference is a dashed frame.
    goal = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(goal) == 2 and goal[0].get_xydata()[0].tolist() == [0.0, 0.0]


def test_a_flat_path_of_a_body_that_tilts_is_drawn_in_space():
    tilted = SE3.exp(T[:, np.newaxis] * [1.0, 0, 0, 0.5, 0, 0])
    assert plot_path(result(SE3, tilted)).axes[0].name == "3d"
    flat = SE3.exp(T[:, np.newaxis] * [1.0, 0, 0, 0, 0, 0.5])
    assert plot_path(result(SE3, flat)).axes[0].name == "rectilinear"


def test_attitudes_are_paths_on_the_unit_sphere():
    run = turn(reference=np.tile(SO3.identity, (41, 1)))
    ax = plot_path(run).axes[0]
    paths = [in_space(line) for line in ax.lines if len(line.get_data_3d()[0]) == MANY]
    for axis, path in enumerate(paths):
        np.testing.assert_allclose(path[::PARTS], SO3.matrix(run.x)[:, :, axis], atol=1e-12)
    assert len(paths) == 3 and ax.get_xlabel() == "x"


def test_attitudes_that_end_in_nan_are_drawn_until_then():
    t, x = np.arange(4.0), np.tile(SO3.identity, (4, 1))
    x[-1] = np.nan
    assert plot_path(Trajectory.unchecked(SO3, t, x, np.zeros((4, 0)))).axes


@pytest.mark.thorough  # others draw several bodies, by name
def test_trajectories_and_several_bodies():
    pair = Product(a=Translation("xyz"), b=Schoenflies, rate=Rn(2), hinge=Helical(0.0))
    x = np.tile(pair.identity, (41, 1)) + np.linspace(0, 1, 41)[:, np.newaxis] * (
        [1, 2, 3] + [0] * 8
    )
    poses = body_poses(pair, x)
    assert poses.shape == (41, 2, 7)
    np.testing.assert_allclose(poses[-1, 0], [1, 2, 3, 0, 0, 0, 1])
    ax = plot_path(Trajectory(pair, T, x)).axes[0]
    lines = [line for line in ax.lines if len(line.get_data_3d()[0]) == MANY]
    assert len({line.get_color() for line in lines}) == 2


def test_states_without_poses_need_a_function():
    with pytest.raises(ValueError, match=r"no block that moves a body.*give bodies=function"):
        plot_path(joints(2))

    def bodies(x):
        poses = np.tile(SE3.identity, (len(x), 2, 1))
        poses[:, 1, :2] = x
        return poses

    ax = plot_path(joints(2), bodies=bodies).axes[0]
    paths = [line for line in ax.lines if len(line.get_xdata()) == MANY]
    np.testing.assert_allclose(paths[1].get_xydata()[::PARTS], joints(2).x)
    one = plot_path(joints(2), bodies=lambda x: bodies(x)[:, 1]).axes[0]
    assert sum(len(line.get_xdata()) == MANY for line in one.lines) == 1
    with pytest.raises(ValueError, match=r"what bodies\(x\) returned has shape \(321, 1, 3\), "):
        plot_path(joints(2), bodies=lambda x: np.zeros((len(x), 3)))
    with pytest.raises(TypeError, match=r"bodies must be a function .*placement.*got \['tip'\]"):
        plot_path(joints(2), bodies=["tip"])


def test_bodies_goals_and_obstacles_are_named():
    """Names of bodies in their colours, of obstacles beside them; goals replace the reference."""
    place = {"left": lambda x: SE3.exp(np.pad(x, [(0, 0), (0, 4)])),
             "right": lambda x: SE3.exp(np.pad(-x, [(0, 0), (2, 2)]))}  # fmt: skip
    goal = SE3.from_position([1.0, 2.0, 3.0])
    run = dataclasses.replace(joints(2), reference=np.zeros((41, 2)))
    figure = plot_path(run, bodies=place, goals=[goal], obstacles={"post": ([0, 0, 0], 0.1)},
                       linked=True)  # fmt: skip
    ax = figure.axes[0]
    paths = [line for line in ax.lines if len(line.get_data_3d()[0]) == MANY]
    named = {text.get_text(): text.get_color() for text in figure.texts}
    assert [named["left"], named["right"]] == [line.get_color() for line in paths]
    assert "post" in {text.get_text() for text in ax.texts}
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(dashed) == 3 and in_space(dashed[0])[0].tolist() == [1.0, 2.0, 3.0]
    assert any("dashed: goal" in text for text in named)
    joined = [in_space(line) for line in ax.lines if line.get_linewidth() == 2.2]
    np.testing.assert_allclose(joined[1], [place[k](run.x[-1:])[0, :3] for k in place], atol=1e-12)
    with pytest.raises(ValueError, match="the pose of 'left' from bodies"):
        plot_path(run, bodies={"left": lambda x: x})


def test_a_body_that_stays_in_place():
    ax = plot_path(result(SE3, np.tile(SE3.random(1), (41, 1)))).axes[0]
    assert np.ptp(ax.get_xlim()) > 0.1


def test_a_coarse_path_is_round():
    """Between records the body moves along the group: a circle of 41 points is no polygon."""
    ax = plot_path(drive()).axes[0]
    path = next(line for line in ax.lines if len(line.get_xdata()) == MANY).get_xydata()
    np.testing.assert_allclose(np.linalg.norm(path - [0.0, 0.25], axis=1), 0.25, atol=1e-12)


def test_frames_are_at_equal_distances_along_the_path():
    """Not at equal times: most of the time is spent near the end."""
    s = 1 - np.exp(-5 * np.linspace(0, 1, 2001))
    at = spread(np.column_stack([s, 0 * s, 0 * s]), 6)
    np.testing.assert_allclose(np.diff(s[at]), (s[-1] - s[0]) / 5, atol=0.006)
    assert at[0] == 0 and at[-1] == 2000


def test_obstacles_are_drawn_and_fit_into_the_picture():
    from matplotlib.patches import Polygon

    ball, capsule = ([3.0, 1.0], 0.5), ([[0.0, 4.0], [3.0, 8.0]], 0.2)
    figure = plot_path(drive(), obstacles=[ball, capsule])
    ax = figure.axes[0]
    assert any("grey: obstacles" in text.get_text() for text in figure.texts)
    first, second = (patch.get_xy() for patch in ax.patches if isinstance(patch, Polygon))
    np.testing.assert_allclose(np.linalg.norm(first - [3.0, 1.0], axis=1), 0.5)
    along = np.clip((second - [0.0, 4.0]) @ [0.6, 0.8], 0.0, 5.0)[:, np.newaxis] * [0.6, 0.8]
    np.testing.assert_allclose(np.linalg.norm(second - [0.0, 4.0] - along, axis=1), 0.2)
    assert np.ptp(second @ [0.6, 0.8]) == pytest.approx(5.4)
    assert ax.get_xlim()[1] > 3.5 and ax.get_ylim()[1] > 8.0
    flying = result(SE3, SE3.exp(T[:, np.newaxis] * [1.0, 0, 0.5, 0.5, 0, 0]))
    space = plot_path(flying, obstacles=[([0, 0, 5], 1.0), ([[0, 0, 5], [0, 3, 8]], 0.5)]).axes[0]
    assert space.get_zlim()[1] > 8.4
    with pytest.raises(ValueError, match="an obstacle is .center of 2 or 3 numbers, or both ends"):
        plot_path(drive(), obstacles=[([3.0, 1.0], -1.0)])


def test_obstacles_of_plans_are_drawn_as_they_are():
    """What `keep_out` takes is drawn like its numbers; what moves or has no end is refused."""
    pairs = [([3.0, 1.0], 0.5), ([[0.0, 4.0], [3.0, 8.0]], 0.2)]
    told = [Sphere(*pairs[0]), Capsule(*pairs[1][0], pairs[1][1])]
    drawn = [plot_path(drive(), obstacles=one).axes[0].patches for one in (pairs, told)]
    for patch, same in zip(*drawn, strict=True):
        np.testing.assert_array_equal(patch.get_path().vertices, same.get_path().vertices)
    plot_path(drive(), obstacles={"post": told[0]}, hull=told[0])
    moving = Sphere(lambda t, p: p[:2], 0.5)
    for wrong, text in (
        (moving, "the center of Sphere is a function .t, p."),
        (HalfSpace([0, 0], [0, 1]), "an obstacle is .*a Sphere or a Capsule; got HalfSpace"),
        (Sphere, "a Capsule; got <class"),
        (3.0, "a Capsule; got 3.0"),
    ):
        with pytest.raises(TypeError, match=text):
            plot_path(drive(), obstacles=[wrong])


def test_surfaces_of_obstacles_are_where_they_say():
    ends = np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 3.0]])
    points = np.moveaxis(surface(ends, 0.5), 0, -1)
    nearest = np.stack(
        [points[..., 0] * 0 + 1, np.clip(points[..., 1], 2, 4), points[..., 2] * 0 + 3], -1
    )
    np.testing.assert_allclose(np.linalg.norm(points - nearest, axis=-1), 0.5)
    sun = np.array([0.6, 0.0, 0.8])
    points = np.moveaxis(cap(sun, 0.5), 0, -1)
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 1.0)
    assert np.linalg.norm(points - sun, axis=-1).max() == pytest.approx(0.5)


def test_frames_grow_with_the_picture_and_do_not_cover_each_other():
    """The same path beside a far goal is drawn with longer frames, and fewer."""
    near = plot_path(drive()).axes[0]
    far = plot_path(drive(reference=np.tile(SE2.exp([30.0, 0, 0]), (41, 1)))).axes[0]

    def frames(ax):
        pieces = [line.get_xydata() for line in ax.lines if line.get_linestyle() == "-"]
        return [float(np.linalg.norm(np.diff(p, axis=0))) for p in pieces if len(p) == 2]

    assert max(frames(far)) > 10 * max(frames(near))
    assert len(frames(far)) < len(frames(near))


def test_a_picture_in_space_fills_its_figure():
    figure = plot_path(result(SE3, SE3.exp(T[:, np.newaxis] * [1.0, 0, 0.3, 0.5, 0, 0])))
    figure.set_dpi(50)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ink = np.asarray(canvas.buffer_rgba())[..., :3].min(axis=2) < 250
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    height, width = ink.shape
    assert rows[-1] > 0.93 * height and columns[0] < 0.07 * width and columns[-1] > 0.93 * width


def test_the_hull_goes_along_with_the_frames():
    run = drive()
    ends = np.array([[-0.4, 0.0], [0.8, 0.0]])
    ax = plot_path(run, hull=(ends, 0.1), frames=2).axes[0]
    first, last = ax.patches
    for patch, pose in ((first, run.x[0]), (last, run.x[-1])):
        own = SE2.act(SE2.inverse(pose), patch.get_xy())
        np.testing.assert_allclose([own.min(axis=0), own.max(axis=0)], [[-0.5, -0.1], [0.9, 0.1]],
                                   atol=1e-12)  # fmt: skip
    ax = plot_path(flight(), hull=(np.zeros(3), 0.3), frames=2).axes[0]
    assert len(ax.collections) == 2


def test_no_axis_ends_where_the_place_of_the_axes_does():
    path = np.tile(SE3.identity, (30, 1))
    path[:, 0], path[:, 2] = np.linspace(0.0, 36.0, 30), np.linspace(0.0, 4.0, 30)
    ax = plot_path(Trajectory(SE3, np.arange(30.0), path)).axes[0]
    assert ax.lines and not any(line.get_clip_on() for line in ax.lines)


def test_axes_of_a_small_body_beside_a_long_way_are_short():
    path = Trajectory(SE2, [0.0, 1.0], SE2.exp([[0.0, 0.0, 0.0], [120.0, 0.0, 0.0]]))

    def longest(**options):
        red = [
            ln
            for ln in plot_path(path, **options).axes[0].lines
            if ln.get_color() == AXIS_COLORS[0]
        ]
        return max(np.linalg.norm(np.ptp(ln.get_xydata(), axis=0)) for ln in red)

    hull = ([[0.0, 0.0], [2.7, 0.0]], 0.9)
    assert longest(hull=hull) == pytest.approx(2.7 + 1.8) and longest() > 6.0


def test_the_methods_of_a_run_show_the_options():
    for method, function in (("plot_path", plot_path), ("animate", animate_run)):
        made = getattr(SimulationResult, method)
        assert signature(made) == signature(function) and made.__doc__ == function.__doc__
    options = set(signature(SimulationResult.plot_path).parameters)
    assert {"goals", "obstacles", "covariances"} <= options
