"""plot_path: paths, frames, scales."""

import dataclasses
import re
from dataclasses import replace
from inspect import signature

import casadi as ca
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, SE3, SO2, SO3, Helical, Product, Rn, Schoenflies, Translation
from lgcontrol.models import panda_tree, quadrotor, surface_vessel
from lgcontrol.optimal import (
    Capsule,
    HalfSpace,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Sphere,
    keep_out,
)
from lgcontrol.plotting import animate_run, plot_path, plot_run, plot_trajectory
from lgcontrol.plotting._run import body_poses, spread
from lgcontrol.plotting._solids import cap, surface
from lgcontrol.plotting._style import AXIS_COLORS
from lgcontrol.scene import Scene, SceneBody, box
from lgcontrol.scene._internal import ScenePath, between
from lgcontrol.simulation import Criterion, SimulationResult, Task, simulate
from lgcontrol.systems import Input, System, Trajectory

from ._runs import T, drive, flight, joints, result, turn

# Where records are few, others are drawn between them: 8 parts of each interval of these runs.
PARTS, MANY = 8, 8 * 40 + 1


def in_space(line):
    return np.column_stack(line.get_data_3d())


def ways(ax):
    """Points of the paths, which are drawn in pieces that get darker."""
    found = []
    for drawn in ax.collections:
        if drawn.get_gid() == "way":
            is_space = hasattr(drawn, "_segments3d")
            pieces = list(drawn._segments3d) if is_space else drawn.get_segments()
            found.append(np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])]))
    return found


def last_color(ax, k):
    drawn = [one for one in ax.collections if one.get_gid() == "way"]
    return to_hex(drawn[k].get_colors()[-1] if hasattr(drawn[k], "get_colors") else 0)


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
    (path,) = ways(ax)
    np.testing.assert_allclose(path[::PARTS], run.x[:, :3])
    reference = next(line for line in ax.lines if len(line.get_data_3d()[0]) == MANY)
    assert reference.get_linestyle() == "--"
    np.testing.assert_allclose(in_space(reference)[::PARTS], run.reference[:, :3])
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
    np.testing.assert_allclose(ways(ax)[0][::PARTS], run.x[:, :2])
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
    assert len(ways(ax)) == 2 and last_color(ax, 0) != last_color(ax, 1)


def test_states_without_poses_need_a_function():
    with pytest.raises(ValueError, match=r"no block that moves a body.*give bodies=function"):
        plot_path(joints(2))

    def bodies(x):
        poses = np.tile(SE3.identity, (len(x), 2, 1))
        poses[:, 1, :2] = x
        return poses

    ax = plot_path(joints(2), bodies=bodies).axes[0]
    np.testing.assert_allclose(ways(ax)[1][::PARTS], joints(2).x)
    one = plot_path(joints(2), bodies=lambda x: bodies(x)[:, 1]).axes[0]
    assert len(ways(one)) == 1
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
    named = {text.get_text(): text.get_color() for text in figure.texts}
    assert [named["left"], named["right"]] == [last_color(ax, 0), last_color(ax, 1)]
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
    (path,) = ways(ax)
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
    with pytest.raises(ValueError, match="an obstacle is .center of 2 or 3 numbers or both ends"):
        plot_path(drive(), obstacles=[([3.0, 1.0], -1.0)])


def test_obstacles_of_plans_are_drawn_as_they_are():
    """What `keep_out` takes is drawn like its numbers; what moves or has no end is refused."""
    pairs = [([3.0, 1.0], 0.5), ([[0.0, 4.0], [3.0, 8.0]], 0.2)]
    told = [Sphere(*pairs[0]), Capsule(*pairs[1][0], pairs[1][1])]
    drawn = [plot_path(drive(), obstacles=one).axes[0].patches for one in (pairs, told)]
    for patch, same in zip(*drawn, strict=True):
        np.testing.assert_array_equal(patch.get_path().vertices, same.get_path().vertices)
    plot_path(drive(), obstacles={"post": told[0]}, hull=told[0])
    for wrong, text in (
        (Sphere(lambda t, p: p[:2], 0.5), "the place of Sphere .*depends on parameters"),
        (Sphere, "a Sphere, Capsule, HalfSpace or Cone, or .*; got <class"),
        (3.0, "a Sphere, Capsule, HalfSpace or Cone, or .*; got 3.0"),
    ):
        with pytest.raises(TypeError, match=text):
            plot_path(drive(), obstacles=[wrong])


def test_obstacles_of_a_system_without_a_look_are_drawn():
    """Of a loop, of its plan, and of a plan of two phases, where one obstacle is drawn once."""

    def place(t, x, u, p):
        return x[:2]

    post = keep_out(place, Sphere([2.0, 3.0], 0.5), name="post")
    tree = keep_out(place, Sphere([-1.0, 3.0], 0.4), name="tree")
    inputs = [Input("v", "m/s", -1, 1), Input("w", "rad/s", -1, 1)]
    cart = System("cart", SE2, lambda t, x, u, p: ca.vertcat(u[0], 0, u[1]), inputs=inputs)
    start, goal = SE2.identity, SE2.exp([1.0, 0, 0])
    mpc = MPC(cart, 3, 0.1, bounds=[post])
    run = simulate(cart, mpc, x0=start, reference=goal, seconds=0.3)
    problem = OptimalControlProblem(cart, 3, 0.1, reference=goal, bounds=[post])
    phases = [Phase(cart, 2, 1.0, R=1.0, bounds=own) for own in ([post], [post, tree])]
    plan = PhasedProblem(phases).solve(start, max_iterations=3)
    for shown, names in ((run, {"post"}), (problem.solve(start, max_iterations=3), {"post"}),
                         (plan, {"post", "tree"})):  # fmt: skip
        figure = shown.plot_path()
        ax = figure.axes[0]
        told = {text.get_text() for text in ax.texts}
        assert len(ax.patches) == len(names) and names <= told
        assert figure.texts[0].get_text() == "cart"
        first = ax.patches[0].get_path().vertices
        np.testing.assert_allclose(np.linalg.norm(first - [2.0, 3.0], axis=1), 0.5)


def test_obstacles_that_move_or_have_no_end_are_drawn_like_those_of_plans():
    """One that moves is paler where it was; a plane does not widen the picture."""
    moving = Sphere(lambda t, p: ca.vertcat(1.0 + t, 0.0), 0.5)
    figure = plot_path(drive(), obstacles={"boat": moving})
    early, late = figure.axes[0].patches
    for patch, x in ((early, 1.0), (late, 3.0)):
        np.testing.assert_allclose(np.linalg.norm(patch.get_xy() - [x, 0.0], axis=1), 0.5)
    assert early.get_alpha() < late.get_alpha()

    plain = plot_path(drive()).axes[0]
    wall = plot_path(drive(), obstacles={"quay": HalfSpace([0.0, -0.1], [0.0, 2.0])}).axes[0]
    (patch,) = wall.patches
    assert patch.get_xy()[:, 1].max() == pytest.approx(-0.1)  # what is kept out of is below
    assert wall.get_xlim() == plain.get_xlim()
    assert "quay" in {text.get_text() for text in wall.texts}
    space = plot_path(flight(), obstacles=[HalfSpace([0.0, 0, -0.1], [0.0, 0, 1.0])]).axes[0]
    (plate,) = (one for one in space.collections if one.get_gid() == "obstacle")
    assert np.ptp(np.asarray(plate._faces)[..., 2]) == pytest.approx(0.0, abs=1e-12)


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


@pytest.mark.parametrize("along", [0, 1, 2])
def test_labels_of_a_long_box_do_not_cover_the_numbers_beside_them(along):
    path = np.tile(SE3.identity, (30, 1))
    path[:, :3] = np.linspace(0.0, 1.0, 30)[:, np.newaxis]
    path[:, along] = np.linspace(-16.0, 16.0, 30)  # a number is in the middle
    figure = plot_path(Trajectory(SE3, np.arange(30.0), path))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    axis = (ax.xaxis, ax.yaxis, ax.zaxis)[along]
    label = axis.label.get_window_extent()
    numbers = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_text()]
    assert len(numbers) > 3
    assert not any(label.overlaps(one.get_window_extent()) for one in numbers)


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
    assert len(ax.collections) == 2 + len(ways(ax))


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


def corners(drawn):
    """Of the triangles of bodies, in order, (n, 3) or (n, 2)."""
    return [
        np.asarray(one._faces).reshape(-1, 3) if hasattr(one, "_faces") else
        np.concatenate([path.vertices[:3] for path in one.get_paths()])
        for one in drawn.collections if one.get_gid() == "body"
    ]  # fmt: skip


@pytest.fixture(scope="module")
def arm_run():
    arm = panda_tree()
    q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
    x0 = np.concatenate([q, np.zeros(7)])
    plant = arm.system()
    return arm, simulate(plant, x0=x0, seconds=0.3, max_step=0.02, method="rk4")


def test_an_arm_is_drawn_without_being_told_how(arm_run, tmp_path):
    """The links where the joints put them: pale at the start, full at the end."""
    arm, run = arm_run
    for shown in (run, SimulationResult.load(run.save(tmp_path / "fall"))):
        ax = plot_path(shown).axes[0]
        assert ax.name == "3d" and not [ln for ln in ax.lines if ln.get_color() in AXIS_COLORS]
        drawn = [one for one in ax.collections if one.get_gid() == "body"]
        assert drawn[-2].get_facecolor()[:, 3].max() < drawn[-1].get_facecolor()[:, 3].max()
        hand = arm.placement("panda_hand_tcp")(run.x[-1, :7])[:3]
        nearest = np.linalg.norm(corners(ax)[-1] - hand, axis=1).min()
        assert nearest < 0.06  # m, between the fingers
        (path,) = ways(ax)
        np.testing.assert_allclose(path[-1], hand, atol=0.15)


def test_a_vehicle_turns_and_moves_with_its_pose():
    """Seen from above a vessel is where its hull is; earlier ones are paler."""
    vessel = surface_vessel(current=(0, 0, 0))
    x0 = np.concatenate([SE2.exp([0, 0, 0.5]), [0.4, 0.0, 0.2]])
    run = simulate(vessel, x0=x0, seconds=10.0, max_step=0.1, method="rk4")
    ax = plot_path(run).axes[0]
    assert ax.name == "rectilinear"
    first, *_, last = corners(ax)
    for points, pose in ((first, run.x[0, :4]), (last, run.x[-1, :4])):
        own = SE2.act(SE2.inverse(pose), points)
        assert own[:, 0].max() == pytest.approx(-own[:, 0].min(), rel=0.1)
        assert np.ptp(own[:, 0]) > 3 * np.ptp(own[:, 1]) and np.ptp(own[:, 0]) < 1.6
    pale, *_, full = (one.get_facecolor()[:, :3].mean() for one in ax.collections
                      if one.get_gid() == "body")  # fmt: skip
    assert pale > full + 0.1


def test_what_a_run_knows_of_obstacles_and_goals_is_drawn_unasked():
    vessel = surface_vessel(current=(0, 0, 0))
    x0 = np.concatenate([SE2.identity, [0.4, 0.0, 0.0]])
    task = Task(
        plant=vessel, controller=lambda t, x, reference: np.zeros(3), x0=x0, seconds=2.0,
        options={"dt": 0.5}, obstacles={"buoy": Sphere([3.0, 1.0], 0.4)},
        goals=[SE3.from_position([2.0, 0.0, 0.0])],
    )  # fmt: skip
    ax = plot_path(task.run()).axes[0]
    assert "buoy" in {text.get_text() for text in ax.texts}
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert dashed[0].get_xydata()[0].tolist() == [2.0, 0.0]


def test_a_small_vehicle_on_a_long_way_is_enlarged_and_says_so():
    quad = quadrotor()
    x0 = np.concatenate([SE3.identity, [30.0, 0.0, 0.0], np.zeros(3)])
    run = simulate(quad, x0=x0, seconds=1.0, max_step=0.05, method="rk4")
    texts = [text.get_text() for text in plot_path(run).texts]
    assert any(re.search(r"bodies [2-9].*× as large as they are", text) for text in texts)


def test_a_scene_and_a_plan_are_drawn_like_a_run(arm_run):
    arm, run = arm_run
    scene = arm.system().scene(run.trajectory)
    np.testing.assert_allclose(corners(plot_path(scene).axes[0])[-1],
                               corners(plot_path(run).axes[0])[-1])  # fmt: skip
    vessel = surface_vessel(current=(0, 0, 0))
    buoy = keep_out(lambda t, x, u, p: x[:2], Sphere([1.0, 0.5], 0.2), radius=0.3, name="buoy")
    goal = np.concatenate([SE2.exp([2.0, 0, 0]), np.zeros(3)])
    plan = OptimalControlProblem(vessel, 10, 0.5, bounds=[buoy], reference=goal).solve(
        vessel.state.identity
    )
    ax = plot_path(plan).axes[0]
    assert "buoy" in {text.get_text() for text in ax.texts}
    np.testing.assert_allclose(ways(ax)[0][-1], plan.x[-1, :2])
    assert corners(ax)


def test_bodies_that_stay_are_named_where_they_are():
    post = SceneBody("post", [box((0.1, 0.1, 2.0))], SE3.from_position([[1.0, 0.0, 1.0]]))
    wall = SceneBody("wall", [box((0.1, 3.0, 2.0))], SE3.from_position([[2.0, 0.0, 1.0]]))
    ax = plot_path(Scene("yard", np.zeros(1), [post, wall])).axes[0]
    assert ax.name == "3d" and [t.get_text() for t in ax.texts][:2] == ["post", "wall"]
    assert len(corners(ax)) == 2


def test_a_part_of_a_figure_can_be_given():
    pair = Product(a=Translation("xyz"), b=Schoenflies)
    x = np.tile(pair.identity, (41, 1)) + np.linspace(0, 1, 41)[:, np.newaxis] * [1, 2, 3, *[0] * 5]
    left, right = Figure(figsize=(9.0, 4.0)).subfigures(1, 2)
    assert plot_path(Trajectory(pair, T, x), figure=left) is left
    assert {"a", "b"} <= {text.get_text() for text in left.texts}
    judged = Criterion("height", lambda run: run.x[:, 2], 5.0, "m")
    assert plot_run(flight(), criteria=[judged], figure=right) is right


def test_the_methods_of_a_run_show_the_options():
    for method, function in (("plot_path", plot_path), ("animate", animate_run)):
        made = getattr(SimulationResult, method)
        assert signature(made) == signature(function) and made.__doc__ == function.__doc__
    options = set(signature(SimulationResult.plot_path).parameters)
    assert {"goals", "obstacles", "covariances"} <= options


def test_goals_have_rings_and_bodies_that_are_nearly_large_enough_stay_so():
    goal = np.array([2.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    scene = quadrotor().scene(goals=[goal])
    figure = plot_path(scene)
    (ring,) = [line for line in figure.axes[0].lines if line.get_gid() == "goal"]
    assert np.allclose(np.ravel(ring.get_data_3d()), goal[:3])
    poses = np.tile(SE3.identity, (9, 1))
    poses[:, 0] = np.linspace(0.0, 9.7, 9)
    way = Scene("way", np.arange(9.0), [SceneBody("cube", [box([0.9] * 3)], poses)],
                paths=[ScenePath("cube", poses[:, :3])])  # fmt: skip
    assert not any("as large" in text.get_text() for text in plot_path(way).texts)
    wall = SceneBody(
        "wall", [between([5.0, 2, 0], [5.0, 2, 2], 0.2)], SE3.identity[None], "obstacle"
    )
    small = replace(way, bodies=[replace(way.bodies[0], shapes=[box([0.1] * 3)]), wall])
    assert any("bodies 3.9× as large" in text.get_text() for text in plot_path(small).texts)


def test_an_angle_of_a_joint_is_no_heading():
    pole = Trajectory(Product(pole=SO2, rate=Rn(1)), T, np.tile([1.0, 0.0, 0.0], (len(T), 1)))
    titles = [ax.get_title(loc="left") for ax in plot_trajectory(pole).axes]
    assert titles[0] == "pole: angle"


@pytest.mark.parametrize("name", ["$\\frac$", "$$", "$x$ </script>"])
def test_names_with_dollars_are_letters(name, tmp_path):
    """Names of obstacles, models and signals are text, whatever a formula looks like."""
    run = System(name, Product(pose=SE2, level=Rn(1, (name,))), lambda t, x, u, p: [1, 0, 0, 0])
    made = simulate(run, x0=run.state.identity, seconds=1)
    for figure in (made.plot(), made.plot_path(obstacles={name: ([0.0, 0.0], 0.1)})):
        figure.savefig(tmp_path / "a.png")
        texts = [text for text in figure.findobj(Text) if name in text.get_text()]
        assert texts and not any(text.get_parse_math() for text in texts)
