"""plot_run: which panels there are and what their lines are."""

import io
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.image import imread
from PIL import Image

from lgcontrol.controllers import MPC
from lgcontrol.controllers.designs._car import car
from lgcontrol.groups import SE2, SE3, SO2, SO3, Helical, Product, Rn, Translation
from lgcontrol.groups._internal import SO3Group
from lgcontrol.optimal import (
    Bound,
    OptimalControlProblem,
    PathTask,
    Phase,
    PhasedProblem,
    Sphere,
    keep_out,
)
from lgcontrol.plotting import plot_run, plot_trajectory
from lgcontrol.plotting._internal import new_figure
from lgcontrol.plotting._panels import input_panels, kept_panels
from lgcontrol.plotting._style import head
from lgcontrol.simulation import Kick, RunStatus, SimulationResult, simulate
from lgcontrol.systems import Input, Parameter, System, Trajectory, Waypoints
from lgcontrol.systems._internal import with_input_rates

from ._runs import T, drive, flight, joints, result, turn


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def panel(figure, title):
    return next(ax for ax in figure.axes if ax.get_title(loc="left") == title)


def names(ax):
    """Names beside lines."""
    return [text.get_text() for text in ax.texts if text.get_gid() == "label"]


def parts(figure, title):
    """Small axes of the panel with a title, by the name of their signal."""
    first = figure.axes.index(panel(figure, title))
    found = {}
    for ax in figure.axes[first:]:
        own = [text.get_text() for text in ax.texts if text.get_gid() == "name"]
        if not own:
            break
        if ax is not figure.axes[first] and ax.get_title(loc="left"):
            break
        found[own[0]] = ax
    return found


def solid(ax):
    return [line for line in ax.lines if line.get_linestyle() == "-" and line.get_gid() is None]


def strips(figure):
    """What is said of what nobody judges."""
    return [ax.get_title(loc="left") for ax in figure.axes if not len(ax.get_yticks())]


def dashed(ax):
    return [line for line in ax.lines if line.get_linestyle() == "--"]


def dotted(ax):
    return [line for line in ax.lines if line.get_linestyle() == ":"]


def key(figure):
    return figure.texts[-1].get_text()


def test_panels_by_block_and_unit():
    figure = plot_run(flight())
    assert titles(figure) == [
        "pose: position",
        "pose: attitude error",
        "twist: velocity",
        "twist: angular velocity",
        "inputs",
        "disturbances: wind_x up to 1 N; push_z up to 1 N m",
        "calls: median 1.95 ms, longest 2.9 ms, one each 100 ms",
    ]
    units = [ax.get_ylabel() for ax in figure.axes]
    assert units == ["[m]", "[rad]", "[m/s]", "[rad/s]", "[N]", "", ""]
    # Times are named below the last panel of each column, and below the last of all.
    assert [ax.get_xlabel() for ax in figure.axes] == [""] * 2 + ["time [s]"] * 2 + [""] * 2 + [
        "time [s]"
    ]
    assert key(figure) == "dashed: reference    dotted: limits"


def test_lines_are_the_run_and_its_reference():
    run = flight()
    ax = panel(plot_run(run), "pose: position")
    assert names(ax) == ["x", "y", "z"]
    for k, line in enumerate(solid(ax)):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([T, run.x[:, k]]))
    for k, line in enumerate(dashed(ax)):
        np.testing.assert_array_equal(line.get_ydata(), run.reference[:, k])
        assert line.get_color() == solid(ax)[k].get_color()
    assert len(solid(ax)) == len(dashed(ax)) == 3


def test_attitude_is_the_error_or_without_reference_the_rotation_vector():
    run = flight()
    error = panel(plot_run(run), "pose: attitude error")
    np.testing.assert_allclose(
        np.column_stack([line.get_ydata() for line in solid(error)]), run.error[:, 3:6]
    )
    free = flight(reference=None)
    vector = panel(plot_run(free), "pose: rotation vector")
    assert not dashed(vector)
    half = T < np.pi / 1.5  # from there on the shortest vector points the other way
    np.testing.assert_allclose(solid(vector)[2].get_ydata()[: half.sum()], 1.5 * T[half])


def test_a_rotation_vector_that_passes_a_half_turn_is_shown_as_its_angle():
    ax = plot_run(turn(reference=np.tile(SO3.identity, (41, 1)))).axes[0]
    assert ax.get_title(loc="left") == "attitude error (angle)"
    (line,) = solid(ax)
    np.testing.assert_allclose(line.get_ydata(), np.minimum(2 * T, 2 * np.pi - 2 * T), atol=1e-9)


def test_a_single_value_between_gaps_is_a_dot():
    values = np.ones((41, 1))
    values[[1, 40]] = np.nan
    run = result(Rn(1), values)
    dots = [line for line in plot_run(run).axes[0].lines if line.get_marker() == "o"]
    assert dots[0].get_xydata().tolist() == [[0.0, 1.0]]


def test_headings_are_unwrapped_next_to_their_reference():
    run = drive(reference=drive().x)
    ax = panel(plot_run(run), "heading")
    np.testing.assert_allclose(solid(ax)[0].get_ydata(), 4 * T)
    np.testing.assert_allclose(dashed(ax)[0].get_ydata(), 4 * T)


def test_a_reference_on_the_other_side_of_a_half_turn_is_drawn_near():
    """From 3.1 rad to -3.1 rad is 0.08 rad, not nearly a turn."""
    run = result(SE2, SE2.exp(np.tile([0, 0, 3.1], (41, 1))), reference=SE2.exp(
        np.tile([0, 0, -3.1], (41, 1))))  # fmt: skip
    ax = panel(plot_run(run), "heading")
    np.testing.assert_allclose(dashed(ax)[0].get_ydata(), 2 * np.pi - 3.1)


def test_a_reference_of_an_angle_is_on_the_turn_of_the_signal():
    """Upright after one turn and after two: the difference is the error on the group."""
    angle = np.linspace(0.0, 4 * np.pi, 41)[:, None]
    ax = plot_run(result(SO2, SO2.exp(angle), reference=np.tile(SO2.identity, (41, 1)))).axes[0]
    goal = dashed(ax)[0].get_ydata()
    there = np.isfinite(goal)
    assert {*np.round(goal[there] / (2 * np.pi), 9)} == {0.0, 1.0, 2.0} and (~there).sum() == 2
    assert np.abs(goal - angle[:, 0])[there].max() < np.pi + 1e-9


def test_a_reference_shared_by_all_signals_is_one_line():
    run = flight()
    ax = panel(plot_run(run), "twist: velocity")
    assert len(dashed(ax)) == 1 and not dashed(ax)[0].get_ydata().any()


def test_inputs_are_steps_with_near_bounds_dotted():
    run = flight()
    ax = panel(plot_run(run), "inputs")
    first = solid(ax)[0]
    assert first.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(first.get_xdata(), T)
    np.testing.assert_array_equal(first.get_ydata(), [*run.u[:, 0], run.u[-1, 0]])
    assert sorted(line.get_ydata()[0] for line in dotted(ax)) == [0.0, 3.0]  # shared by all four

    bounds = run.input_bounds.copy()
    bounds[1, :4] = [3.0, 3.5, 1e6, np.inf]
    ax = panel(plot_run(flight(input_bounds=bounds)), "inputs")
    assert sorted(line.get_ydata()[0] for line in dotted(ax)) == [0, 0, 0, 0, 3.0, 3.5]
    low, high = ax.get_ylim()
    assert high - low < 5  # a bound of 1e6 N does not flatten the rest

    far = bounds + np.array([[-1e6], [1e6]])
    assert "dotted" not in key(plot_run(flight(input_bounds=far)))


def test_disturbances_fold_into_a_strip_of_those_that_act():
    run = flight()
    quiet = run.u.copy()
    quiet[:, 5] = 0.0
    (acting,) = [text for text in strips(plot_run(flight(u=quiet))) if "disturbance" in text]
    assert acting == "disturbances: wind_x up to 1 N"
    quiet[:, 4] = 0.0
    assert not any("disturbance" in text for text in strips(plot_run(flight(u=quiet))))
    quiet[:, 4] = 5.0
    quiet[:, 5] = 2.0
    figure = plot_run(flight(input_units=("N",) * 6, u=quiet))
    ax = panel(figure, "disturbances: wind_x, push_z up to 5 N")
    assert [line.get_ydata()[0] for line in solid(ax)] == [1.0, 0.4]
    assert names(ax) == ["wind_x", "push_z"]
    assert ax.get_position().height < 0.5 * panel(figure, "inputs").get_position().height


def test_estimation_errors_come_with_their_band_in_an_axes_each():
    """The band is grey between two lines, which are seen in black and white."""
    run = flight()
    off = run.group.plus(run.x, np.full(12, 0.1))
    figure = plot_run(flight(estimate=off, estimate_std=np.full((41, 12), 0.2)))
    mine = [t for t in titles(figure) if "estimation error" in t]
    assert mine == [
        "pose: position, estimation error",
        "pose: angle, estimation error",
        "twist: velocity, estimation error",
        "twist: angular velocity, estimation error",
    ]
    found = parts(figure, mine[3])
    assert list(found) == ["wx", "wy", "wz"]
    for ax in found.values():
        np.testing.assert_allclose(solid(ax)[0].get_ydata(), -0.1)
        low, high = (line for line in ax.lines if line.get_gid() == "band")
        np.testing.assert_allclose([low.get_ydata()[0], high.get_ydata()[0]], [-0.4, 0.4])
        edges = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == (-0.4, 0.4)  # twice the deviation
        assert ax.get_ylim() == found["wx"].get_ylim()
    assert "grey: ±2σ" in key(figure)
    bare = plot_run(flight(estimate=off))
    assert not panel(bare, mine[3]).collections and "σ" not in key(bare)
    # An estimator with another state: nothing to compare.
    assert titles(plot_run(flight(estimate=np.zeros((41, 20))))) == titles(plot_run(run))


def test_calls_fold_into_a_strip_with_rare_statuses_marked():
    run = flight()
    ax = panel(plot_run(run), "calls: median 1.95 ms, longest 2.9 ms, one each 100 ms")
    assert names(ax) == ["solved: 18", "failed: 1", "max_iter: 1"]
    usual, failed, late = ax.lines[:3]
    assert failed.get_xydata().tolist() == [[pytest.approx(1.9), pytest.approx(1.0)]]
    assert len({line.get_marker() for line in (usual, failed, late)}) == 3
    assert usual.get_markersize() < late.get_markersize()

    log = run.controllers["mpc"]
    slow = replace(log, t=100 * log.t, info={"call_time": 50 * log.info["call_time"]})
    told = strips(plot_run(flight(controllers={"a": slow, "b": log})))
    assert "calls of a: median 97.5 ms, longest 145 ms, one each 10 s" in told


@pytest.mark.parametrize("count", [7, 10])
def test_more_than_six_signals_have_an_axes_each(count):
    run = joints(count)
    limits = {f"q.joint{i + 1}": (-1.5, 1.5 + 0.1 * i) for i in range(count)}
    figure = plot_run(run, limits=limits)
    found = parts(figure, "q")
    assert list(found) == [f"joint{i + 1}" for i in range(count)]
    for i, ax in enumerate(found.values()):
        np.testing.assert_array_equal(solid(ax)[0].get_ydata(), run.x[:, i])
        assert ax.get_ylim() == found["joint1"].get_ylim()
        shown = [line.get_ydata()[0] for line in dotted(ax)]
        assert shown == pytest.approx([-1.5, 1.5 + 0.1 * i])
    assert found["joint1"].get_ylabel() == "[rad]"
    figure.draw_without_rendering()


def test_a_great_many_joints_share_an_axes_with_a_scale_of_colours():
    figure = plot_run(joints(30))
    ax = panel(figure, "q")
    assert len(solid(ax)) == len({line.get_color() for line in solid(ax)}) == 30
    assert not names(ax)
    scale = figure.axes[-1] if figure.axes[-1].get_yticklabels() else figure.axes[-2]
    ticks = [text.get_text() for text in scale.get_yticklabels()]
    assert ticks[0] in ("joint1", "tau1") and len(ticks) <= 6


def test_what_went_wrong_stands_above():
    figure = plot_run(
        flight(status=RunStatus.DIVERGED, message="the state is not finite after t = 2 s")
    )
    assert figure.get_suptitle() == "toy: the state is not finite after t = 2 s"
    assert plot_run(flight()).get_suptitle() == "toy"
    plain, wrong = plot_run(flight()), figure
    assert plain._suptitle.get_color() != wrong._suptitle.get_color()


def test_runs_with_next_to_nothing_in_them():
    still = result(Rn(1), np.zeros((1, 1)), t=np.zeros(1), u=np.zeros((0, 0)))
    assert titles(plot_run(still)) == ["state (x0)"]
    calls = {"pd": flight().controllers["mpc"].__class__(np.zeros(0), None, {})}
    assert titles(plot_run(drive(controllers=calls))) == ["position", "heading"]


def test_a_group_of_ones_own_is_drawn_by_its_logarithm():
    class Spinor(SO3Group):
        name = "Spinor"
        tangent_units = ("", "", "")

    run = result(Spinor(), turn().x)
    assert titles(plot_run(run)) == ["logarithm (angle)"]
    assert titles(plot_run(result(Spinor(), turn().x, reference=turn().x))) == ["error"]


def test_nested_blocks_are_named_with_their_path():
    group = Product(configuration=Product(base=SE3, arm=Rn(2)), speed=Rn(1))
    figure = plot_run(result(group, np.tile(group.identity, (41, 1))))
    assert titles(figure) == [
        "configuration.base: position",
        "configuration.base: rotation vector",
        "configuration.arm",
        "speed",
    ]


def test_long_noisy_runs_are_thinned_to_what_can_be_seen(rng):
    """All of it would break matplotlib's renderer; extremes, ends and gaps stay."""
    t = np.linspace(0, 100, 150_001)
    noise = rng.normal(size=(len(t), 1))
    noise[123_456], noise[7] = 9.0, -9.0
    run = result(
        Rn(1), noise, t=t, u=noise[:-1], input_names=("u",), reference=np.zeros_like(noise),
        estimate=noise, estimate_std=np.ones_like(noise),
    )  # fmt: skip
    figure = plot_run(run)
    figure.draw_without_rendering()
    figure._repr_png_()
    for title in ("state (x0)", "inputs (u)"):
        x, y = solid(panel(figure, title))[0].get_data()
        assert len(x) < 8000 and (x[0], x[-1]) == (0, 100) and (np.diff(x) > 0).all()
        assert y.max() == 9.0 and y.min() == -9.0 and t[123_456] in x


def test_titles_of_many_long_names_end_before_the_next_panel():
    """Seven joints, one of a hand: the titles of the two panels of inputs stand side by side."""
    sides = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3", "finger")
    u = np.sin(np.outer(T[:-1], np.arange(1, 8))) * np.array([100.0] * 6 + [0.1])
    state = Rn(2, ("a", "b"), ("m", "rad"))
    run = result(state, np.zeros((41, 2)), u=u, input_names=tuple(f"{s}_joint" for s in sides))
    figure = plot_run(run)
    assert titles(figure)[2:] == [
        "inputs (shoulder_pan_joint, shoulder_lift_joint, 4 more)",
        "inputs (finger_joint)",
    ]
    figure.draw_without_rendering()
    left, right = (ax._left_title.get_window_extent() for ax in figure.axes[2:4])
    assert left.x1 < right.x0
    assert names(figure.axes[2]) == list(run.input_names[:6])


def test_joints_of_one_parent_share_a_panel():
    """As in the state of an arm: a block for each joint, rotating, sliding or turning freely."""
    arm = Product(
        configuration=Product(
            base=SE3,
            shoulder=Helical(0.0),
            slide=Translation("z"),
            elbow=Helical(0.0),
            wrist=SO2,
        ),
        velocity=Rn(4),
    )
    d = np.outer(np.sin(T), np.arange(14.0))
    x = arm.exp(d)
    goal = np.tile(arm.identity, (41, 1))
    figure = plot_run(result(arm, x, reference=goal, estimate=goal, estimate_std=np.ones((41, 14))))
    assert titles(figure) == [
        "configuration.base: position",
        "configuration.base: attitude error (angle)",
        "configuration: angle",
        "configuration.slide (z)",
        "velocity",
        "configuration.slide, estimation error (z)",
        "configuration.base: position, estimation error",
        "configuration.base: angle, estimation error",
        "configuration: angle, estimation error",
        "velocity, estimation error",
    ]
    angles = panel(figure, "configuration: angle")
    assert names(angles) == ["shoulder", "elbow", "wrist"]
    for line, column in zip(solid(angles), (6, 8, 9), strict=True):
        np.testing.assert_allclose(line.get_ydata(), d[:, column])
    errors = parts(figure, "configuration: angle, estimation error")
    for (name, ax), column in zip(errors.items(), (6, 8, 9), strict=True):
        wrapped = (d[:, column] + np.pi) % (2 * np.pi) - np.pi if column == 9 else d[:, column]
        np.testing.assert_allclose(solid(ax)[0].get_ydata(), wrapped, atol=1e-9, err_msg=name)


def test_nothing_is_kept_and_nothing_is_set():
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    figure = plot_run(flight())
    assert isinstance(figure, Figure) and plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_a_figure_can_be_given():
    figure = Figure(layout="constrained")
    left, right = figure.subfigures(1, 2)
    assert plot_run(drive(), figure=left) is left
    plot_run(turn(), figure=right)
    assert len(left.axes) == 2 and len(right.axes) == 1
    figure.draw_without_rendering()


def test_notebooks_get_a_picture():
    image = Image.open(io.BytesIO(plot_run(drive())._repr_png_()))
    assert image.format == "PNG" and image.width > 500


@pytest.fixture
def windows(tmp_path, monkeypatch):
    """A backend with windows that note what they show."""
    (tmp_path / "window_backend.py").write_text(
        "from matplotlib._pylab_helpers import Gcf\n"
        "from matplotlib.backend_bases import FigureManagerBase\n"
        "from matplotlib.backends.backend_agg import FigureCanvasAgg\n"
        "shown = []\n"
        "class Manager(FigureManagerBase):\n"
        "    @classmethod\n"
        "    def pyplot_show(cls, *, block=None):\n"
        "        for manager in Gcf.get_all_fig_managers():\n"
        "            manager.canvas.draw()\n"
        "            shown.append((manager.canvas.figure, block))\n"
        "class FigureCanvas(FigureCanvasAgg):\n"
        "    manager_class = Manager\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = matplotlib.get_backend()
    pyplot.switch_backend("module://window_backend")
    yield sys.modules["window_backend"].shown
    pyplot.switch_backend(before)


def test_a_script_can_show_a_figure_and_pyplot_keeps_nothing(windows, tmp_path):
    figure = plot_run(drive())
    figure.show()
    assert windows == [(figure, True)]
    assert not pyplot.get_fignums()
    assert figure.savefig(tmp_path / "run.png") is None and (tmp_path / "run.png").exists()
    figure.show()
    assert len(windows) == 2


def test_without_windows_a_file_is_proposed():
    pyplot.switch_backend("agg")
    with pytest.raises(RuntimeError, match=r"no window .* is agg\): .* \.savefig\(path\)"):
        plot_run(drive()).show()
    assert not pyplot.get_fignums()


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_panels_fill_the_figure_and_times_stand_below_each_column(count):
    units = tuple(f"u{k}" for k in range(count))
    figure = plot_run(result(Rn(count, tuple("abcdefgh"[:count]), units), np.zeros((41, count))))
    places = [ax.get_subplotspec() for ax in figure.axes]
    grid = places[0].get_gridspec()
    filled = [(r, c) for p in places for r in p.rowspan for c in p.colspan]
    assert sorted(filled) == [(r, c) for r in range(grid.nrows) for c in range(grid.ncols)]
    below = [
        any(b.rowspan.start > a.rowspan.start and b.colspan == a.colspan for b in places)
        for a in places
    ]
    assert [bool(ax.get_xlabel()) for ax in figure.axes] == [not other for other in below]


def test_labels_do_not_overlap_the_axes_of_others():
    figure = plot_run(flight())
    figure.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    for i, a in enumerate(boxes):
        assert a.x0 >= 0 and a.x1 <= figure.bbox.x1 and a.y1 <= figure.bbox.y1
        for b in boxes[:i]:
            overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert min(overlap) <= 1  # a pixel of rounding


def test_matplotlib_loads_only_when_something_is_drawn():
    code = (
        "import sys, lgcontrol.plotting, lgcontrol.simulation\n"
        "sys.exit(any(name.startswith(('matplotlib', 'PIL')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_trajectory():
    path = Trajectory(SO3, T, turn().x, np.zeros((40, 2)))
    figure = plot_trajectory(path)
    assert titles(figure) == ["rotation vector (angle)", "inputs"]
    assert names(panel(figure, "inputs")) == ["u0", "u1"]
    plot_trajectory(Trajectory(SO3, T, turn().x, np.zeros((41, 2))))  # the last time has one, too

    inputs = [Input("a", "N m", -1.0, 1.0), Input("b", "N m", -1.0, 1.0)]
    body = System("body", SO3, lambda t, x, u, p: [u[0], u[1], 0], inputs=inputs)
    figure = plot_trajectory(path, system=body)
    assert names(panel(figure, "inputs")) == ["a", "b"]
    assert figure.get_suptitle() == "body" and panel(figure, "inputs").get_ylabel() == "[N m]"

    figure = body.rollout(SO3.identity, [1.0, 0.0], 0.1, steps=4).plot()
    assert names(panel(figure, "inputs")) == ["a", "b"]

    with pytest.raises(ValueError, match="body has 2 inputs, the trajectory has 0"):
        plot_trajectory(Trajectory(SO3, T, turn().x), system=body)
    with pytest.raises(ValueError, match=r"x has shape \(3, 41, 4\): draw one trajectory at a"):
        plot_trajectory(Trajectory(SO3, T, np.stack([turn().x] * 3)))


def test_signals_of_unlike_range_do_not_share_a_panel():
    """One that would look like zero beside the others has its own; rounding errors have none."""
    t = np.linspace(0, 1, 41)
    x = np.outer(np.sin(5 * t), [100.0, 1.0, 80.0, 1e-12])
    run = Trajectory(Rn(4, ("a", "b", "c", "d"), ("m",) * 4), t, x)
    shown = {ax.get_title(loc="left"): ax for ax in plot_trajectory(run).axes}
    assert list(shown) == ["position (a, c, d)", "position (b)"]
    assert np.ptp(shown["position (b)"].get_ylim()) < 3


def test_limits_of_the_state_are_dotted():
    t = np.linspace(0, 1, 41)
    group = Rn(1, ("v",), ("m/s",))
    from types import SimpleNamespace

    run = SimpleNamespace(
        name="", group=group, t=t, x=np.sin(5 * t)[:, None], u=np.zeros((0, 0)), reference=None,
        estimate=None, estimate_std=None, controllers={}, status=RunStatus.COMPLETED, message="",
        state_limits=np.array([[-1.2], [np.inf]]),
    )  # fmt: skip
    (ax,) = plot_run(run).axes
    dotted = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert dotted == [-1.2]
    (ax,) = plot_run(run, limits={"v": (-1.1, 0.9)}).axes
    assert {line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"} == {-1.1, 0.9}
    with pytest.raises(KeyError, match="unknown coordinate of the state 'w'"):
        plot_run(run, limits={"w": (0.0, 1.0)})


def corridor():
    """Plans of a cart that keep a speed, a thrust, and a distance that is a function."""
    cart = System(
        "cart", Rn(2, ("x", "v"), ("m", "m/s")), lambda t, x, u, p: [x[1], u],
        inputs=[Input("push", "N", -2.0, 2.0)],
    )  # fmt: skip

    def gap(t, x, u, p):
        return 1.2 - x[0]

    bounds = [
        Bound("v", -0.5, 0.5), Bound("push", upper=1.0), Bound(gap, lower="near"),
        Bound("v", at="terminal", lower=0.0, upper=0.0),
    ]  # fmt: skip
    return OptimalControlProblem(
        cart, 10, 0.2, bounds=bounds, parameters=[Parameter("near", "m", 0.1)],
        reference=[1.0, 0.0],
    )  # fmt: skip


def levels(figure):
    """Heights of the dotted lines of each panel."""
    return {
        ax.get_title(loc="left"): {float(line.get_ydata()[0]) for line in dotted(ax)}
        for ax in figure.axes
    }


def test_what_a_controller_keeps_is_drawn_by_itself(tmp_path):
    problem = corridor()
    law = MPC(
        problem.system, horizon=10, dt=0.2, bounds=problem.bounds, parameters=problem.parameters,
        reference=problem.reference,
    )  # fmt: skip
    law.parameters = {"near": 0.15}
    run = simulate(problem.system, law, x0=[0.0, 0.0], seconds=2.0)
    assert list(run.bounds) == ["v", "push", "gap"]
    np.testing.assert_allclose(run.bounds["gap"].values, 1.2 - run.x[:, 0])
    assert (run.bounds["gap"].lower, run.bounds["v"].upper) == (0.15, 0.5)
    again = SimulationResult.load(run.save(tmp_path / "run"))
    assert repr(again.bounds) == repr(run.bounds)
    assert [entry.unit for entry in again.bounds.values()] == ["m/s", "N", ""]
    drawn = levels(again.plot())
    assert drawn["velocity (v)"] == {-0.5, 0.5}
    assert drawn["gap (at least 0.15)"] == {0.15}
    assert 1.0 in drawn["inputs (push)"]


def test_a_kick_is_a_jump_at_its_time():
    """The speed before it is that of a run without it."""
    cart = corridor().system
    free, run = (
        simulate(cart, x0=[0.0, 0.5], seconds=1.0, dt=0.1, disturbances=pushes)
        for pushes in ((), Kick(0.4, [0.0, 1.0]))
    )
    (line,) = solid(panel(plot_run(run), "velocity (v)"))
    t, v = line.get_data()
    k = int(np.flatnonzero(np.isclose(run.t, 0.4))[0])
    there = v[np.isclose(t, 0.4)]
    np.testing.assert_allclose(there, [free.x[k, 1], free.x[k, 1] + 1.0])


def test_clearances_have_a_unit():
    cart = corridor().system
    post = keep_out(lambda t, x, u, p: ca.vertcat(x[0], 0.5), Sphere([1.0, 0.0], 0.1), name="post")
    plan = OptimalControlProblem(cart, 5, 0.2, bounds=[post], reference=[1.0, 0.0]).solve([0.0, 0])
    ax = panel(plan.plot(), "post (at least 0 m)")
    assert ax.get_ylabel() == "[m]"


@pytest.mark.parametrize("phased", [False, True])
def test_clearances_are_drawn_along_the_motion_between_nodes(phased):
    """A point of constant velocity leaps a post between two nodes, on a straight line."""
    point = System("point", Rn(2, ("x", "y"), "m"), lambda t, x, u, p: u, inputs=["a", "b"])
    post = keep_out(lambda t, x, u, p: x[:2], Sphere([2.0, 0.0], 0.5), name="post")
    ends = [Bound(name, goal, goal, at="terminal") for name, goal in (("x", 4.0), ("y", 0.0))]
    if phased:
        plan = PhasedProblem(Phase(point, 3, 1.0, R=1.0, bounds=[post, *ends])).solve([0.0, 0.1])
    else:
        problem = OptimalControlProblem(point, 3, 1 / 3, Q=0.0, bounds=[post, *ends])
        plan = problem.solve([0.0, 0.1])
    (line,) = solid(panel(plan.plot(), "post (at least 0 m)"))
    t, seen = line.get_data()
    x = plan.trajectory.x
    places = np.column_stack([np.interp(t, plan.trajectory.t, column) for column in x.T])
    np.testing.assert_allclose(
        seen, np.linalg.norm(places - [2.0, 0.0], axis=1) - 0.5, rtol=1e-6, atol=1e-6
    )
    assert seen.min() < -0.1 and np.linalg.norm(x - [2.0, 0.0], axis=1).min() > 0.5 - 1e-6


def test_a_plan_without_a_reference_shows_none():
    cart = corridor().system
    still = [Bound("v", 300.0, 300.0, at="terminal")]
    free = OptimalControlProblem(cart, 3, 0.2, Q=0.0, terminal=0.0, bounds=[*still, Bound("x", 9)])
    assert key(free.solve([10.0, 300.0]).plot()) == "dotted: limits"
    given = free.with_arguments(reference=[0.0, 0.0])
    assert key(given.solve([10.0, 300.0]).plot()) == "dashed: reference    dotted: limits"


def test_signals_of_rounding_have_no_panel():
    t, tiny = np.linspace(0, 1, 41), 1e-16 * np.random.default_rng(0).normal(size=41)
    units = ("m",) * 7 + ("rad",)
    x = np.column_stack([np.sin(k * t) if k % 2 else tiny for k in range(8)])
    x[:, 7] = tiny
    run = result(Rn(8, tuple("abcdefgh"), units), x)
    figure = plot_run(run)
    assert titles(figure) == ["position (b, d, f)"]
    assert titles(plot_run(result(Rn(1, ("a",), ("m",)), tiny[:, None]))) == ["position (a)"]


def test_what_a_plan_keeps_is_drawn_by_itself():
    plan = corridor().solve([0.0, 0.0])
    drawn = levels(plan.plot())
    assert drawn["gap (at least 0.1)"] == {0.1} and 0.5 in drawn["velocity (v)"]


def two_phases(hold="zero", **options):
    """Out with a speed limit and a gap, then back to rest with weaker brakes."""
    system = corridor().system
    gap = Bound(lambda t, x, u, p: 1.2 - x[0], 0.05, name="gap")
    there = [Bound(k, goal, goal, at="terminal") for k, goal in (("x", 1.0), ("v", 0.0))]
    return PhasedProblem(
        [
            Phase(system, 8, (0.2, 9.0), bounds=[gap, Bound("v", upper=0.5)], name="out"),
            Phase(system, 6, (0.2, 9.0), bounds=[gap, Bound("push", -0.4), *there], name="stop"),
        ],
        time_weight=1.0, hold=hold, **options,
    ).solve([0.0, 0.0])  # fmt: skip


def test_bounds_at_the_end_of_a_plan_are_marked_there():
    """The limits along the plan go on to its end."""
    cart = System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u],
                  inputs=[Input("push", "N", -2, 2)])  # fmt: skip
    bounds = [
        Bound("x", 1.0, 1.0, at="terminal"), Bound("v", -0.1, 0.2, at="terminal"),
        Bound("v", -1.0, 0.9),
    ]  # fmt: skip
    plans = (
        OptimalControlProblem(cart, 8, 0.25, Q=0, bounds=bounds).solve([0.0, 0.0]),
        PhasedProblem(Phase(cart, 8, 2.0, bounds=bounds, R=1.0)).solve([0.0, 0.0]),
    )
    for plan in plans:
        lines = plan.plot().axes[0].get_lines()
        ends = [line.get_xydata() for line in lines if line.get_gid() == "instant"]
        assert sorted(tuple(point) for end in ends for point in end) == [
            (2.0, -0.1), (2.0, 0.2), (2.0, 1.0), (2.0, 1.0),
        ]  # fmt: skip
        along = [line.get_ydata() for line in lines if line.get_gid() == "limit"]
        assert {*np.concatenate(along)[~np.isnan(np.concatenate(along))]} == {-1.0, 0.9}


@pytest.mark.parametrize("hold", ["zero", "first"])
def test_plans_of_phases_are_drawn_with_their_limits_and_phases(hold):
    """Inputs that are linear jump where a phase begins; limits end with their phase."""
    plan = two_phases(hold)
    figure, switch = plan.plot(), plan.switches[0]
    assert levels(figure)["gap (at least 0.05)"] == {0.05}
    limits = {
        name: [line.get_xydata() for line in panel(figure, name).get_lines()
               if line.get_gid() == "limit"]
        for name in ("velocity (v)", "inputs (push)")
    }  # fmt: skip
    (speed,) = limits["velocity (v)"]
    assert np.nanmax(speed[:, 0][np.isfinite(speed[:, 1])]) == pytest.approx(switch)
    assert np.nanmax(speed[:, 1]) == 0.5 == np.nanmin(speed[:, 1])
    (brake,) = limits["inputs (push)"]
    assert {*brake[:, 1]} == {-2.0, -0.4}
    assert brake[brake[:, 1] == -0.4, 0].min() == pytest.approx(switch)
    for ax in figure.axes:
        marks = [line.get_xdata()[0] for line in ax.get_lines() if line.get_gid() == "event"]
        assert marks == pytest.approx([0.0, switch])
    told = [text.get_text() for text in figure.axes[0].texts if text.get_gid() == "event"]
    assert told == ["out", "stop"]
    push = max(panel(figure, "inputs (push)").get_lines(), key=lambda line: line.get_linewidth())
    t, u = push.get_data()
    assert u[t < switch][0] == pytest.approx(plan.parts["out"].u[0, 0])
    assert u[-1] == pytest.approx(plan.parts["stop"].u[-1, 0])
    assert panel(figure, "velocity (v)").get_ylabel() == "[m/s]"


def test_phases_of_other_groups_are_drawn_below_each_other():
    cart, rod = corridor().system, System("rod", Rn(1, ("w",), ("rad/s",)), lambda t, x, u, p: -x)
    parts = [Phase(cart, 4, 1.0, R=1.0, jump=lambda t, x, p: x[1]), Phase(rod, 3, 1.0, Q=1.0)]
    figure = PhasedProblem([*parts, Phase(rod, 2, 1.0)]).solve([0.0, 1.0]).plot()
    assert titles(figure)[-2:] == ["inputs (push)", "angular velocity (w)"]  # once for both
    assert figure.axes[0].get_xlim() == pytest.approx((0.0, 1.0))
    assert figure.axes[-1].get_xlim() == pytest.approx((1.0, 3.0))


def test_a_long_message_keeps_clear_of_the_key():
    figure = new_figure(11.0, 3.0)
    head(figure, " ".join(["word"] * 40), ["dashed: reference", "dotted: limits"])
    figure.canvas.draw()
    title, key = figure._suptitle.get_window_extent(), figure.texts[-1].get_window_extent()
    assert title.x1 < key.x0


def test_many_rows_with_the_same_limits_share_panels_nearest_first():
    far, near = np.linspace(1.0, 3.0, 41), np.linspace(2.0, 0.25, 41)
    kept = {f"row{k}": SimpleNamespace(values=far + k, lower=0.0, upper=np.inf) for k in range(9)}
    kept |= {"near": SimpleNamespace(values=near, lower=0.0, upper=np.inf)}
    kept |= {"other": SimpleNamespace(values=near, lower=0.1, upper=5.0)}
    first, alone = kept_panels(T, kept)
    assert (first.title, alone.title) == (
        "kept (at least 0), the tightest of 10", "other (0.1 to 5)",
    )  # fmt: skip
    assert first.labels == ("near", *(f"row{k}" for k in range(5)))
    np.testing.assert_array_equal(first.values[:, 0], near)
    np.testing.assert_array_equal(first.bounds, np.tile([[0.0], [np.inf]], 6))
    two = {f"quay[{k}]": replace_unit(kept["near"]) for k in range(2)}
    (quay,) = kept_panels(T, two)
    assert quay.labels == ("quay, point 1", "quay, point 2")
    assert (quay.title, quay.unit) == ("clearances (at least 0 m)", "m")


def replace_unit(entry):
    return SimpleNamespace(**vars(entry), unit="m")


def test_png_files_are_those_of_matplotlib(tmp_path):
    figure, again = drive().plot(), drive().plot()
    figure.savefig(tmp_path / "one.png", dpi=60)
    again.savefig(tmp_path / "two.png", dpi=60, format="png")  # matplotlib's own way
    one, two = (imread(tmp_path / name) for name in ("one.png", "two.png"))
    np.testing.assert_array_equal(one, two)
    assert figure.dpi == again.dpi


@pytest.mark.parametrize(
    ("span", "unit", "ticks"),
    [(600.0, "s", None), (3600.0, "min", ["0", "10", "20"]), (86400.0, "h", ["0", "3", "6"]),
     (180 * 86400.0, "d", ["0", "30", "60"])],
)  # fmt: skip
def test_a_time_axis_has_the_unit_of_its_span(span, unit, ticks):
    figure = drive(t=T * span / T[-1]).plot()
    figure.draw_without_rendering()
    last = next(ax for ax in figure.axes if ax.get_xlabel())
    assert last.get_xlabel() == f"time [{unit}]"
    assert ticks is None or [text.get_text() for text in last.get_xticklabels()][:3] == ticks
    assert last.get_xlim() == (0.0, span)


def test_what_the_toolkit_and_its_designs_make_of_numbers_has_units():
    """Inputs that are states, progress on paths, durations, a car's speed."""
    moved = with_input_rates(car()).state
    motion = Trajectory(moved, [0.0, 1.0], np.tile(moved.identity, (2, 1)))
    shown = {ax.get_title(loc="left"): ax.get_ylabel() for ax in plot_trajectory(motion).axes}
    assert shown["speed"] == "[m/s]" and shown["steering"] == "[rad]"
    assert moved.blocks["input"].coordinate_units == ("m/s²", "rad/s")
    task = PathTask(car(), Waypoints(SE2, [0, 1], [[0, 0, 1, 0], [1, 0, 1, 0]], order=1), weight=1)
    assert task.system.state.blocks["progress"].coordinate_units == ("", "1/s")
    timed = PhasedProblem(Phase(car(), 2, (0.5, 2.0))).problem.system
    assert timed.state.blocks["duration"].coordinate_units == ("s",)


def test_a_unit_without_a_quantity_stands_at_the_axis_alone():
    u, bounds = np.zeros((3, 2)), np.array([[-1.0, -1.0], [1.0, 1.0]])
    shown = input_panels(
        np.arange(4.0), u, ["force", "rate"], ["kN", "rad/s"], ["control"] * 2, bounds
    )
    assert [(one.title, one.unit) for one in shown] == [
        ("inputs", "kN"),
        ("inputs: angular velocity", "rad/s"),
    ]


def test_times_of_calls_have_a_unit_that_suits_them():
    log = flight().controllers["mpc"]
    quick = replace(log, info=log.info | {"call_time": 1e-3 * log.info["call_time"]})
    run = replace(flight(), controllers={"mpc": quick})
    assert "calls: median 1.95 µs, longest 2.9 µs, one each 100 ms" in titles(plot_run(run))
    assert any("median 1.95 µs, 99 % 2.88 µs, longest 2.90 µs" in line for line in run.summary())
