"""plot_run: what was asked of a run is drawn: tolerances, verdicts, ways to goals, events."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot

from lgcontrol.groups import SE3, Rn
from lgcontrol.plotting import plot_run, style
from lgcontrol.simulation import Criterion, RunStatus
from lgcontrol.simulation._internal import ControllerLog, TaskError

from ._runs import T, result

DECAY = np.exp(-5 * T)


def decaying(**fields):
    """An error that decays, with a spike at the end of some."""
    return result(Rn(1, ("e",), ("m",)), DECAY[:, np.newaxis], **fields)


def error(run):
    return run.x[:, 0]


def twice(run):
    return 2 * run.x[:, 0]


def marked(ax, gid):
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def panel(figure, title):
    return next(ax for ax in figure.axes if ax.get_title(loc="left") == title)


def words(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def test_a_criterion_is_drawn_as_a_band_over_its_window():
    late = Criterion("error at rest", error, 0.02, "m", since=1.0, until=1.5)
    figure = plot_run(decaying(), criteria=[late])
    ax = panel(figure, "error at rest")
    assert ax.get_ylabel() == "[m]" and ax.get_yscale() == "log"  # 1 m is far above 0.02 m
    (band,) = marked(ax, "tolerance")
    corners = band.get_paths()[0].vertices
    assert (corners[:, 0].min(), corners[:, 0].max()) == (1.0, 1.5)
    assert corners[:, 1].max() == 0.02
    (value,) = marked(ax, "value")
    np.testing.assert_allclose(value.get_xydata(), [[1.0, np.exp(-5.0)]])
    assert "at most 0.02 m" in words(figure)
    assert "shaded: what passes, while it counts" in figure.texts[-1].get_text()


def test_a_mean_is_a_line_over_its_window_and_a_least_value_a_band_above():
    mean = Criterion("mean", error, 0.5, "m", take="mean", last=0.5)
    least = Criterion("lowest", lambda run: run.x[:, 0] + 1.0, unit="m", least=0.9, take="least")
    figure = plot_run(decaying(), criteria=[mean, least])
    (value,) = marked(panel(figure, "mean"), "value")
    assert value.get_xdata().tolist() == [1.5, 2.0]
    np.testing.assert_allclose(value.get_ydata(), DECAY[T >= 1.5].mean())
    (band,) = marked(panel(figure, "lowest"), "tolerance")
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == 0.9 and corners[:, 1].max() > 2.0


def test_the_header_says_ok_or_what_failed_with_numbers():
    kept = Criterion("error at the end", error, 0.1, "m", last=0.0)
    broken = Criterion("largest error", twice, 0.5, "m")
    told = Criterion("effort", lambda run: 3.0, unit="J")
    figure = plot_run(decaying(), criteria=[kept, told])
    assert figure.get_suptitle() == "toy: ok"
    assert "effort: 3 J" in words(figure)
    figure = plot_run(decaying(), criteria=[kept, broken, told])
    assert figure.get_suptitle() == "toy: FAILED 1 of 2"
    texts = words(figure)
    assert texts[texts.index("FAILED") + 1] == "largest error: 2 m (at most 0.5 m)"
    assert marked(panel(figure, "largest error"), "tolerance")[0].get_hatch() == "////"
    assert marked(panel(figure, "error at the end"), "tolerance")[0].get_hatch() is None


def test_criteria_of_one_signal_share_a_panel():
    both = [Criterion(f"error after {t:g} s", error, 0.3, "m", since=t) for t in (0.5, 1.0)]
    figure = plot_run(decaying(), criteria=both)
    ax = panel(figure, "error after 0.5 s, 1 s")
    assert len(marked(ax, "tolerance")) == 2
    assert [a.get_title(loc="left") for a in figure.axes[1:]] == ["error after 0.5 s, 1 s"]


def test_a_run_that_ended_early_is_drawn_without_what_it_lacks():
    def missing(run):
        raise ValueError("no such time")

    run = decaying(status=RunStatus.DIVERGED, message="it diverged")
    figure = plot_run(run, criteria=[Criterion("late error", missing, 1.0)])
    assert figure.get_suptitle() == "toy: it diverged"
    assert "late error: nan (at most 1)" in words(figure)
    with pytest.raises(ValueError, match="no such time"):
        plot_run(decaying(), criteria=[Criterion("late error", missing, 1.0)])


def test_the_way_to_a_goal_takes_the_place_of_a_reference_that_is_none():
    """A controller that tracks a hand weighs the state next to a posture, not to a goal."""
    group = Rn(2, ("shoulder", "elbow"), ("rad", "rad"))
    x, posture = np.column_stack([T, T]), np.zeros((41, 2))
    off = SE3.exp(np.outer(2 - T, [1.0, 0, 0, 0, 0, 0.1]))
    task = TaskError(SE3.log(off), SE3)
    with_goal = plot_run(result(group, x, reference=posture, tasks={"hand": task}))
    assert [ax.get_title(loc="left") for ax in with_goal.axes][:2] == [
        "hand: position from its goal", "hand: angle from its goal",
    ]  # fmt: skip
    for figure, expected in ((with_goal, 0), (plot_run(result(group, x, reference=posture)), 1)):
        (angles,) = (ax for ax in figure.axes if ax.get_title(loc="left") == "angle")
        assert sum(line.get_linestyle() == "--" for line in angles.lines) == expected


def kicked(height):
    """Values within one but for a moment after a kick at 1 s."""
    x = np.sin(3 * T)
    x[20:22] = height
    events = [SimpleNamespace(t=1.0, name="kick")]
    return result(Rn(1, ("x",), ("N",)), x[:, np.newaxis], scenery=SimpleNamespace(events=events))


def test_kicks_and_new_starts_are_named_lines_in_all_panels():
    calls = ControllerLog(
        T[:-1:10],
        None,
        {"call_time": np.full(4, 1e-3), "restart": np.array(["first", "", "", "state"])},
    )
    figure = plot_run(replace(kicked(0.5), controllers={"mpc": calls}))
    for ax in figure.axes:
        lines = [artist for artist in marked(ax, "event") if hasattr(artist, "get_xdata")]
        assert [line.get_xdata()[0] for line in lines] == [1.0, 1.5]
    named = [text.get_text() for text in figure.axes[0].texts if text.get_gid() == "event"]
    assert named == ["kick", "new start: state"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_names_of_events_stand_above_what_is_drawn(sign):
    """All of them, those that would cover each other below each other."""
    events = [SimpleNamespace(t=t, name=name) for t, name in ((0.0, "push: x"), (0.1, "kick"))]
    run = result(
        Rn(1, ("x",), ("N",)), sign * np.exp(-(T**2))[:, np.newaxis],
        scenery=SimpleNamespace(events=events),
    )  # fmt: skip
    figure = plot_run(run)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    names = [text for text in ax.texts if text.get_gid() == "event"]
    assert [name.get_text() for name in names] == ["push: x", "kick"]
    boxes = [name.get_window_extent() for name in names]
    highest = ax.transData.transform((0.0, max(ax.lines[0].get_ydata())))[1]
    assert boxes[0].y0 > boxes[1].y1 - 1 and boxes[1].y0 > highest


def test_what_briefly_follows_a_kick_does_not_flatten_the_rest():
    figure = plot_run(kicked(80.0))
    low, high = figure.axes[0].get_ylim()
    assert -2 < low < -0.5 and 1 < high < 2
    (said,) = marked(figure.axes[0], "beyond")
    assert said.get_text() == "beyond the axis: 80 N"
    tame = plot_run(kicked(1.5)).axes[0]
    assert tame.get_ylim()[1] > 1.5 and not marked(tame, "beyond")[0].get_text()


def test_a_limit_that_a_kick_comes_near_stays_in_view():
    limited = replace(kicked(80.0), state_limits=np.array([[-80.0], [80.0]]))
    ax = plot_run(limited).axes[0]
    assert ax.get_ylim()[1] > 80 and not marked(ax, "beyond")[0].get_text()
    assert {line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"} == {-80, 80}
    first = replace(kicked(80.0), scenery=SimpleNamespace(events=[SimpleNamespace(t=0, name="a")]))
    x = first.x.copy()
    x[:2] = 80.0  # what begins with the run is not what follows an event
    assert plot_run(replace(first, x=x)).axes[0].get_ylim()[1] > 80


def test_the_style_of_ones_own_figures_is_that_of_ours():
    ours = plot_run(decaying()).axes[0]
    before = dict(pyplot.rcParams)
    with pyplot.style.context(style()):
        figure, ax = pyplot.subplots()
        (line,) = ax.plot([0, 1])
        ax.set_title("a title")
        for part in ("top", "right", "left", "bottom"):
            assert ax.spines[part].get_visible() == ours.spines[part].get_visible()
        assert line.get_linewidth() == 1.2
        assert ax.get_title(loc="left") == "a title"
        assert ax.xaxis.label.get_size() == ours.xaxis.label.get_size()
    pyplot.close(figure)
    assert dict(pyplot.rcParams) == before
