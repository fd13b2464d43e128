"""Panels drawn into a figure; imports matplotlib only through the axes it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._panels import Panel
from ._style import (
    CALL_COLORS,
    DASHES,
    FAINT,
    FEW_LINES,
    INK,
    ODD_COLORS,
    SMALL,
    legend,
    line_colors,
    style_axes,
)

# A bound further from the data than this many spans would flatten the signals it bounds.
BOUND_REACH = 1.0
MANY = 8000  # points of a line
HOUR = 3600.0  # s
LONG_RUN = 3 * HOUR  # runs that are told in hours


def make_grid(figure: Any, count: int) -> list[Any]:
    """Axes for some panels, in two columns when there are many, with one time axis."""
    columns = 1 if count <= 3 else 2
    grid = figure.add_gridspec(-(-count // columns), columns)
    axes: list[Any] = []
    for k in range(count):
        share = axes[0] if axes else None
        row, column = divmod(k, columns)
        # An odd one at the end takes its whole row.
        place = grid[row, :] if k == count - 1 and column == 0 else grid[row, column]
        axes.append(figure.add_subplot(place, sharex=share))
        if not shows_times(k, count):  # the one below does
            axes[-1].tick_params(labelbottom=False)
    return axes


def shows_times(k: int, count: int) -> bool:
    """Whether nothing is below panel k of some panels that has its time axis at the same place."""
    if count <= 3:
        return k == count - 1
    return k + 2 + count % 2 >= count  # the row above a wide panel, and that one


def grid_size(count: int) -> tuple[float, float]:
    """Size of a figure of some panels in inches."""
    columns = 1 if count <= 3 else 2
    return (7.0 if columns == 1 else 11.0), 0.6 + 1.75 * -(-count // columns)


def draw_panel(ax: Any, panel: Panel, *, last: bool) -> bool:
    """Lines or steps, what they follow, their bounds and their names.

    Returns whether a bound is near enough to be drawn.
    """
    single = len(panel.labels) == 1 and not panel.title.endswith(panel.labels[0])
    title = f"{panel.title} ({panel.labels[0]})" if single else panel.title
    style_axes(ax, title, _name_times(ax, panel.t) if last else "", _unit(panel.unit))
    colors = line_colors(len(panel.labels))
    many = len(panel.labels) > FEW_LINES
    width = 0.8 if many else 1.2
    shared = panel.dashed is not None and bool((panel.dashed == panel.dashed[:, :1]).all())
    if panel.dashed is not None and shared:
        goal = thin(panel.t, panel.dashed[:, 0])
        ax.plot(*goal, color=INK, lw=0.9, ls=DASHES, alpha=0.6)
    for k, (label, color) in enumerate(zip(panel.labels, colors, strict=True)):
        values = panel.values[:, k]
        if panel.steps:
            held = np.append(values, values[-1:])[: len(panel.t)]
            ax.plot(*thin(panel.t[: len(held)], held), color=color, lw=width, label=label,
                    drawstyle="steps-post")  # fmt: skip
        else:
            ax.plot(*thin(panel.t, values), color=color, lw=width, label=label)
            _mark_lone(ax, panel.t, values, color)
        if panel.dashed is not None and not shared:
            goal = thin(panel.t, panel.dashed[:, k])
            ax.plot(*goal, color=color, lw=0.9, ls=DASHES, alpha=0.75)
        if panel.band is not None:
            t, half = thin(panel.t, panel.band[:, k])
            ax.fill_between(t, -half, half, color=color, alpha=0.13, lw=0)
    if panel.t[-1] > panel.t[0]:
        ax.set_xlim(panel.t[0], panel.t[-1])
    bounded = _draw_bounds(ax, panel, colors)
    if many:
        _name_scale(ax, panel.labels)
    elif len(panel.labels) > 1:
        legend(ax)
    return bounded


def thin(t: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest of many values in each of some thousand spans, and all gaps.

    More than that no figure shows, and matplotlib fails on hundreds of thousands of jagged points.
    """
    if len(values) <= MANY:
        return t, values
    spans = MANY // 4
    size = -(-len(values) // spans)
    padded = np.full(spans * size, np.nan)
    padded[: len(values)] = values
    rows = padded.reshape(spans, size)
    start = size * np.arange(spans)
    low = start + np.argmin(np.where(np.isnan(rows), np.inf, rows), axis=1)
    high = start + np.argmax(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    gaps = np.flatnonzero(np.isnan(values))
    chosen = np.concatenate([[0, len(values) - 1], low, high, gaps])
    kept = np.unique(chosen[chosen < len(values)])
    return t[kept], values[kept]


def _mark_lone(ax: Any, t: np.ndarray, values: np.ndarray, color: Any) -> None:
    """Dots where there are gaps on both sides: a line would not show them."""
    gap = np.concatenate([[True], np.isnan(values), [True]])
    lone = ~gap[1:-1] & gap[:-2] & gap[2:]
    if lone.any():
        ax.plot(
            t[lone], values[lone], color=color, ls="none", marker="o", ms=2.5, mew=0, clip_on=False
        )


def _draw_bounds(ax: Any, panel: Panel, colors: Sequence[Any]) -> bool:
    """Dotted lines, grey where all signals share them; far ones are left out."""
    if panel.bounds is None:
        return False
    low, high = ax.get_ylim()
    reach = BOUND_REACH * (high - low)
    shared = bool((panel.bounds == panel.bounds[:, :1]).all())
    near = [
        (bound, FAINT if shared else color)
        for row in panel.bounds
        for bound, color in list(zip(row, colors, strict=True))[: 1 if shared else None]
        if low - reach <= bound <= high + reach
    ]
    for bound, color in near:
        ax.axhline(bound, color=color, lw=1.0, ls=":", zorder=1.5)
    return bool(near)


def _name_scale(ax: Any, labels: Sequence[str]) -> None:
    """A narrow colour scale with some names in place of a legend of many lines."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    count = len(labels)
    shown = np.unique(np.linspace(0, count - 1, 6).round().astype(int))
    scale = ScalarMappable(cmap=ListedColormap(line_colors(count)))
    scale.set_clim(-0.5, count - 0.5)
    bar = ax.figure.colorbar(scale, ax=ax, ticks=shown, aspect=25, pad=0.015, fraction=0.04)
    bar.ax.set_yticklabels([labels[i] for i in shown], fontsize=SMALL - 1.5)
    bar.ax.invert_yaxis()
    bar.ax.tick_params(length=2, color=FAINT)
    bar.outline.set_visible(False)


def draw_calls(ax: Any, controllers: Mapping[str, Any], *, last: bool) -> bool:
    """Wall time of each call by controller, rare statuses marked.

    Returns whether a sample time is near enough to be drawn (dotted).
    """
    called = np.concatenate([log.t for log in controllers.values()])
    style_axes(ax, "controller calls", _name_times(ax, called) if last else "", "wall time [ms]")
    rare = iter(zip("D^svP*", ODD_COLORS * 3, strict=True))
    times = [1e3 * log.info["call_time"] for log in controllers.values()]
    for (name, log), ms, color in zip(controllers.items(), times, CALL_COLORS * 9, strict=False):
        status = log.info.get("status", np.full(len(ms), "")).astype(str)
        values, counts = np.unique(status, return_counts=True)
        for k, value in enumerate(values[np.argsort(-counts, kind="stable")]):
            mine = status == value
            label = " ".join(part for part in (name if len(times) > 1 else "", value) if part)
            marker, shade = ("o", color) if k == 0 else next(rare, ("x", color))
            ax.plot(log.t[mine], ms[mine], ls="none", marker=marker, ms=2.4 if k == 0 else 4.0,
                    mew=0, color=shade, alpha=0.6 if k == 0 else 1.0, label=label,
                    zorder=2 + (k > 0))  # fmt: skip
    low, high = min(ms.min() for ms in times), max(ms.max() for ms in times)
    if low > 0 and high > 20 * low:
        ax.set_yscale("log")
        ax.tick_params(axis="y", which="minor", labelsize=SMALL - 2, color=FAINT)
    else:
        ax.set_ylim(0, 1.15 * high or 1.0)
    limited = False
    for log, color in zip(controllers.values(), CALL_COLORS * 9, strict=False):
        period = 1e3 * float(np.median(np.diff(log.t))) if len(log.t) > 1 else np.inf
        if period < 3 * high:
            ax.axhline(period, color=color, lw=1.0, ls=":")
            limited = True
    if ax.get_legend_handles_labels()[0]:
        legend(ax)
    return limited


def _name_times(ax: Any, t: np.ndarray) -> str:
    """What a time axis says; times of many hours are told in hours."""
    if not len(t) or t.max() < LONG_RUN:
        return "time [s]"
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    hours = MaxNLocator(8, steps=[1, 2, 3, 4, 6, 10])
    places = HOUR * np.asarray(hours.tick_values(t.min() / HOUR, t.max() / HOUR))
    ax.xaxis.set_major_locator(FixedLocator(places.tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / HOUR:g}"))
    return "time [h]"


def _unit(unit: str) -> str:
    return f"[{unit}]" if unit else ""
