"""Signals of a run in panels: their layout, their lines, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ._panels import MOST_PARTS, Panel, PassingBand, Strip, VerdictTable
from ._style import (
    DASHES,
    FAINT,
    GOOD,
    INK,
    ODD_COLORS,
    SMALL,
    WARN,
    draw_band,
    halo,
    inches,
    line_colors,
    name_lines,
    style_axes,
)

OK_MARK, FAILED_MARK, REPORTED_MARK = "ok", "FAILED", ""
SHORTEST_PREFIX = 8  # letters that the names of criteria of one signal share
FEW_LETTERS = 8  # fewer may follow them in a title
COLUMN_HEIGHT, PART_HEIGHT, STRIP_HEIGHT, LINE_HEIGHT = 1.3, 1.15, 0.32, 0.15  # inches
ROW_GAP = 0.42  # inches between rows: titles and numbers of times
NARROW_WIDTH, WIDE_WIDTH = 7.0, 11.0  # inches
FEW = 3  # panels that stand in one column
ACROSS = 8  # small axes side by side
# A bound further from the data than this many spans would flatten the signals it bounds.
BOUND_REACH = 1.0
MANY = 8000  # points of a line
# Units of a time axis: length in s, and the least span in s that is told in it; others are in s.
TIMES = {"d": (86400.0, 3 * 86400.0), "h": (3600.0, 3 * 3600.0), "min": (60.0, 20 * 60.0)}
LOG_RANGE = 30.0  # times its tolerance that a signal is drawn on a linear axis
DECADES = 1e3  # next to a tolerance, that are drawn below it
NARROW = 0.012  # share of the time axis that a band covers at least
AFTER_EVENT = 0.1  # share of a run after an event that may not flatten the rest
FLATTENED = 10.0  # times as high a panel is with what follows an event
LETTERS = 0.35  # share of the time axis that the words of a limit take
FEW_TICKS = 4  # of a small axes
LETTER, LETTER_HEIGHT = 0.055, 0.15  # inches that a letter of the name of an event takes
NAME_ROWS = 3  # of such names above each other
# Signals that vary by less than UNMOVED of their size and of the range of their limits, as inputs
# at a limit, are drawn in a view of UNMOVED_VIEW of the smaller of both on each side.
UNMOVED, UNMOVED_VIEW = 1e-3, 0.05


class JudgedNumber(NamedTuple):
    """A criterion with what it says of a run.

    NaN where a run that ended early lacks what the criterion looks at.
    """

    criterion: Any
    value: float

    @property
    def mark(self) -> str:
        """Whether the value is within the limits; empty without any."""
        if not self.criterion.range:
            return REPORTED_MARK
        return (
            OK_MARK if self.criterion.least <= self.value <= self.criterion.limit else FAILED_MARK
        )


def judged(run: Any, criteria: Sequence[Any]) -> list[JudgedNumber]:
    """Criteria with their values."""
    return [JudgedNumber(one, _value(run, one)) for one in criteria]


def _value(run: Any, criterion: Any) -> float:
    try:
        return float(criterion.value(run))
    except Exception:  # a run that ended early may lack what a criterion looks at
        if run.status.is_success:
            raise
        return np.nan


def verdict(found: Sequence[JudgedNumber]) -> str:
    """All verdicts in a word or two; empty where nothing was judged."""
    marks = [one.mark for one in found if one.mark]
    failed = marks.count(FAILED_MARK)
    if not marks:
        return ""
    return OK_MARK if not failed else f"{FAILED_MARK} {failed} of {len(marks)}"


def verdict_table(found: Sequence[JudgedNumber]) -> VerdictTable:
    """A line for each criterion: its mark, name, value and what passes."""
    return VerdictTable(tuple((one.mark, _line(one)) for one in found))


def _line(one: JudgedNumber) -> str:
    criterion = one.criterion
    number = f"{one.value:.3g} {criterion.unit}".rstrip()
    told = f" ({criterion.range})" if criterion.range else ""
    return f"{criterion.name}: {number}{told}"


def judged_panels(run: Any, found: Sequence[JudgedNumber]) -> list[Panel]:
    """The signals that criteria with limits look at; those of one signal share a panel."""
    groups: list[tuple[np.ndarray, list[JudgedNumber]]] = []
    for one in found:
        history = one.criterion.history(run) if one.mark and np.isfinite(one.value) else None
        if history is None:
            continue
        unit = one.criterion.unit
        same = (
            group
            for values, group in groups
            if group[0].criterion.unit == unit and np.array_equal(values, history, equal_nan=True)
        )
        group = next(same, None)
        if group is None:
            groups.append((history, [one]))
        else:
            group.append(one)
    return [
        Panel(
            _name([one.criterion.name for one in group]),
            group[0].criterion.unit,
            ("",),
            run.t,
            history[:, np.newaxis],
            tolerances=tuple(_tolerance(run, one, history) for one in group),
        )
        for history, group in groups
    ]


def _name(names: Sequence[str]) -> str:
    """What the criteria of one signal have in common."""
    shared = commonprefix(list(names)).rstrip(" ,(")
    if len(names) == 1:
        return names[0]
    if len(shared) < SHORTEST_PREFIX:
        return "; ".join(names)
    rest = [name[len(shared) :].strip() for name in names]
    return f"{shared} {', '.join(rest)}" if all(len(one) < FEW_LETTERS for one in rest) else shared


def _tolerance(run: Any, one: JudgedNumber, history: np.ndarray) -> PassingBand:
    criterion = one.criterion
    counts = np.flatnonzero(criterion.counts(run))
    place = {"largest": np.nanargmax, "least": np.nanargmin}.get(criterion.take)
    at = None if place is None else float(run.t[counts[place(history[counts])]])
    return PassingBand(
        float(run.t[counts[0]]),
        float(run.t[counts[-1]]),
        criterion.least,
        criterion.limit,
        at,
        one.value,
        one.mark == OK_MARK,
        criterion.range,
    )


Item: TypeAlias = Panel | Strip | VerdictTable


@dataclass(frozen=True)
class Cell:
    """An item with its axes."""

    item: Item
    axes: list[Any]  # one, or one for each signal
    bottom: set[int]  # which of the axes have numbers below and beside them
    left: set[int]
    is_named: bool  # whether the axis of times has its name
    names_events: bool  # whether events are named here


@dataclass(frozen=True)
class _Row:
    """Items side by side."""

    items: list[Item]
    height: float


def lay_out(items: Sequence[Item]) -> list[_Row]:
    """Rows: tables, panels in pairs, those with many axes, strips."""
    tables = [item for item in items if isinstance(item, VerdictTable)]
    plain = [item for item in items if isinstance(item, Panel) and not item.is_split]
    split = [item for item in items if isinstance(item, Panel) and item.is_split]
    strips = [item for item in items if isinstance(item, Strip)]
    columns = 1 if len(plain) + 2 * len(split) <= FEW else 2
    rows = [_Row([one], LINE_HEIGHT * -(-len(one.lines) // columns)) for one in tables]
    rows += [
        _Row(list(plain[k : k + columns]), COLUMN_HEIGHT) for k in range(0, len(plain), columns)
    ]
    for one in split:
        deep = -(-len(one.labels) // _across(one))
        rows.append(_Row([one], PART_HEIGHT * deep + ROW_GAP * (deep - 1)))
    return rows + [_Row([one], STRIP_HEIGHT) for one in strips]


def _across(panel: Panel) -> int:
    """Axes side by side, in rows that are as long as each other."""
    count = len(panel.labels)
    return -(-count // -(-count // ACROSS))


def is_wide(rows: Sequence[_Row]) -> bool:
    """Whether there are several axes side by side."""
    return any(
        len(row.items) > 1 or (isinstance(row.items[0], Panel) and row.items[0].is_split)
        for row in rows
    )


def figure_size(rows: Sequence[_Row]) -> tuple[float, float]:
    """Size of a figure in inches."""
    gaps = sum(ROW_GAP if not isinstance(row.items[0], VerdictTable) else 0.1 for row in rows)
    return (
        WIDE_WIDTH if is_wide(rows) else NARROW_WIDTH,
        0.55 + gaps + sum(row.height for row in rows),
    )


def make_cells(figure: Any, rows: Sequence[_Row]) -> list[Cell]:
    """Axes for all items, with one axis of times."""
    columns = 2 if any(len(row.items) > 1 for row in rows) else 1
    grid = figure.add_gridspec(len(rows), columns, height_ratios=[row.height for row in rows])
    cells: list[Cell] = []
    share = None
    timed = [k for k, row in enumerate(rows) if not isinstance(row.items[0], VerdictTable)]
    for k, row in enumerate(rows):
        below = rows[k + 1] if k + 1 < len(rows) else None
        for column, item in enumerate(row.items):
            place = grid[k, :] if len(row.items) == 1 else grid[k, column]
            if isinstance(item, VerdictTable):
                cells.append(Cell(item, [figure.add_subplot(place)], set(), {0}, False, False))
                continue
            axes = _make_axes(figure, place, item, share)
            share = share or (axes[0] if len(axes) == 1 else None)
            across = _across(item) if len(axes) > 1 and isinstance(item, Panel) else 1
            ends = {i for i in range(len(axes)) if i + across >= len(axes)}
            is_last = below is None or not _aligned(row, below)
            cells.append(
                Cell(
                    item,
                    axes,
                    ends if is_last or len(axes) > 1 else set(),
                    {i for i in range(len(axes)) if i % across == 0},
                    is_last,
                    k == timed[0],
                )
            )
    return cells


def _aligned(row: _Row, below: _Row) -> bool:
    """Whether the times of a row stand exactly above those of the one below."""
    parts = [isinstance(r.items[0], Panel) and r.items[0].is_split for r in (row, below)]
    return not any(parts) and len(row.items) == len(below.items)


def _make_axes(figure: Any, place: Any, item: Item, share: Any) -> list[Any]:
    if not (isinstance(item, Panel) and item.is_split):
        return [figure.add_subplot(place, sharex=share)]
    across = _across(item)
    grid = place.subgridspec(-(-len(item.labels) // across), across)
    axes: list[Any] = []
    for k in range(len(item.labels)):
        first = axes[0] if axes else None
        axes.append(figure.add_subplot(grid[divmod(k, across)], sharex=first, sharey=first))
    return axes


Events = Sequence[tuple[float, str]]


def draw(cell: Cell, events: Events, phases: Events = ()) -> list[str]:
    """What a cell holds into its axes, and what styles of lines it needs explained.

    Phases begin at times, as events happen; but what follows belongs to the signals.
    """
    if isinstance(cell.item, VerdictTable):
        draw_table(cell.axes[0], cell.item)
        return []
    if isinstance(cell.item, Strip):
        draw_strip(cell.axes[0], cell.item)
        drawn = [(cell.axes[0], cell.item.t)]
        used = []
    elif cell.item.is_split:
        used = _draw_parts(cell, events)
        drawn = [(ax, cell.item.t) for ax in cell.axes]
    else:
        used = draw_panel(cell.axes[0], cell.item, events)
        drawn = [(cell.axes[0], cell.item.t)]
    for k, (ax, t) in enumerate(drawn):
        named = k in cell.bottom
        ax.tick_params(labelbottom=named)
        ax.set_xlabel(_name_times(ax, t) if named and cell.is_named else "", fontsize=SMALL)
        _draw_events(ax, [*events, *phases], named=cell.names_events and k == 0)
    if isinstance(cell.item, Panel) and not cell.item.is_split:
        _name_signals(cell.axes[0], cell.item)
    return used


def _draw_parts(cell: Cell, events: Events) -> list[str]:
    """A small axes for each signal, all with the same axes and the limits of their own."""
    panel, used = cell.item, []
    assert isinstance(panel, Panel)
    drawn = list(zip(cell.axes, panel.parts(), strict=True))
    for k, (ax, part) in enumerate(drawn):
        used += _draw_lines(ax, part)
        ax.set_title(
            panel.title if k == 0 else "", loc="left", fontsize=SMALL + 1, fontweight="bold",
            color=INK, pad=15, parse_math=False,
        )  # fmt: skip
        ax.text(0.0, 1.03, part.title, parse_math=False,
                transform=ax.transAxes, fontsize=SMALL - 0.5, color=INK,
                va="bottom", gid="name")  # fmt: skip
        ax.xaxis.get_major_locator().set_params(nbins=FEW_TICKS)
        if k not in cell.left:
            ax.tick_params(labelleft=False)
            ax.set_ylabel("")
    beyond = _keep_in_view(cell.axes[0], panel, events)
    cell.axes[-1].set_title(beyond, loc="right", fontsize=SMALL - 1.5, color=FAINT, pad=15)
    near = [_draw_bounds(ax, part, [INK]) for ax, part in drawn]
    return [*used, *["bounds"] * any(near)]


def draw_panel(ax: Any, panel: Panel, events: Events = ()) -> list[str]:
    """Lines or steps, what they follow, their bounds and tolerances.

    Returns the styles of lines that were used, of "reference", "bounds" and "±2σ".
    """
    used = _draw_lines(ax, panel)
    if panel.tolerances:
        _draw_tolerances(ax, panel)
    beyond = _keep_in_view(ax, panel, events)
    ax.text(0.98, 0.05, beyond, transform=ax.transAxes, ha="right", va="bottom",
            fontsize=SMALL - 1.5, color=FAINT, path_effects=halo(), gid="beyond")  # fmt: skip
    if _draw_bounds(ax, panel, _colors(panel)):
        used.append("bounds")
    return used


def _name_signals(ax: Any, panel: Panel) -> None:
    """Names at the ends of lines, in the view that the axes have by then."""
    if len(panel.labels) > MOST_PARTS:
        _name_scale(ax, panel.labels)
    elif len(panel.labels) > 1:
        ends = [_last(panel.values[:, k]) for k in range(len(panel.labels))]
        name_lines(ax, ends, panel.labels, _colors(panel), COLUMN_HEIGHT)


def _colors(panel: Panel) -> list[Any]:
    return [INK] if len(panel.labels) == 1 else line_colors(len(panel.labels))


def _draw_lines(ax: Any, panel: Panel) -> list[str]:
    """Values and what they follow; see `draw_panel`."""
    single = len(panel.labels) == 1 and panel.labels[0] and not _says(panel.title, panel.labels[0])
    title = f"{panel.title} ({panel.labels[0]})" if single else panel.title
    style_axes(ax, title, "", _unit(panel.unit))
    width = 0.8 if len(panel.labels) > MOST_PARTS else 1.2
    shared = panel.dashed is not None and bool((panel.dashed == panel.dashed[:, :1]).all())
    used = ["reference"] * (panel.dashed is not None)
    if panel.dashed is not None and shared:
        goal = thin(panel.t, panel.dashed[:, 0])
        ax.plot(*goal, color=INK, lw=0.9, ls=DASHES, alpha=0.6)
    curve = panel.curve
    for k, (label, color) in enumerate(zip(panel.labels, _colors(panel), strict=True)):
        values = panel.values[:, k]
        if panel.band is not None:
            draw_band(ax, *thin(panel.t, panel.band[:, k]))
            used.append("±2σ")
        if panel.steps:
            held = np.append(values, values[-1:])[: len(panel.t)]
            ax.plot(*thin(panel.t[: len(held)], held), color=color, lw=width, label=label,
                    drawstyle="steps-post")  # fmt: skip
        elif curve is not None:
            ax.plot(*thin(curve[0], curve[1][:, k]), color=color, lw=width, label=label)
        elif panel.t_between is not None and panel.between is not None:
            pieces = thin(panel.t_between, panel.between[:, k])
            ax.plot(*pieces, color=color, lw=width, label=label)
            ax.plot(panel.t, values, color=color, ls="none", marker="o", ms=2.5, mew=0)
            used.append("between")
        else:
            ax.plot(*thin(panel.t, values), color=color, lw=width, label=label)
            _mark_lone(ax, panel.t, values, color)
        if panel.dashed is not None and not shared:
            goal = thin(panel.t, panel.dashed[:, k])
            ax.plot(*goal, color=color, lw=0.9, ls=DASHES, alpha=0.75)
    if panel.t[-1] > panel.t[0]:
        ax.set_xlim(panel.t[0], panel.t[-1])
    return used


def _says(title: str, label: str) -> bool:
    """Whether a title names its only signal already."""
    return title.endswith(label) or title.partition(",")[0].endswith(label)


def _last(values: np.ndarray) -> float:
    good = values[np.isfinite(values)]
    return float(good[-1]) if len(good) else 0.0


def _draw_tolerances(ax: Any, panel: Panel) -> None:
    """Bands of what passes while the signal counts, and what was compared with them."""
    values = panel.values[np.isfinite(panel.values)]
    limits = [side for one in panel.tolerances for side in (one.lower, one.upper)]
    known = np.array([side for side in limits if np.isfinite(side)])
    positive = values.size and values.min() >= 0 and known.size and known.min() > 0
    if positive and values.max() > LOG_RANGE * known.min():
        deciding = [one.value for one in panel.tolerances if one.value > 0]
        floor = max(min([*known, *deciding]) / 5, known.min() / DECADES)
        ax.set_yscale("log")
        ax.set_ylim(floor, 2 * values.max())
        ax.tick_params(axis="y", which="minor", left=False, labelleft=False)
    else:
        low, high = (float(f(np.r_[values, known])) for f in (np.min, np.max))
        margin = 0.08 * (high - low) or 1.0
        ax.set_ylim(low - margin, high + margin)
    bottom, top = ax.get_ylim()
    first, last = ax.get_xlim()
    least = NARROW * (last - first)
    for one in panel.tolerances:
        start = max(first, min(one.start, one.end - least))
        end = min(last, max(one.end, start + least))
        start = max(first, min(start, end - least))
        low, high = max(one.lower, bottom), min(one.upper, top)
        color = GOOD if one.passed else WARN
        look = {} if one.passed else {"hatch": "////"}
        ax.fill_between([start, end], low, high, facecolor=(color, 0.16), edgecolor=(color, 0.6),
                        lw=0, zorder=0.8, gid="tolerance", **look)  # fmt: skip
        for side in (one.lower, one.upper):
            if np.isfinite(side):
                ax.plot([start, end], [side, side], color=color, lw=1.1, zorder=1.2, gid="limit")
        if one.at is None:
            ax.plot([start, end], [one.value] * 2, color=color, lw=2.2, zorder=2.5, gid="value")
        else:
            ax.plot([one.at], [one.value], "o", color=color, ms=3.5, zorder=2.5, gid="value",
                    clip_on=False)  # fmt: skip
    words = list(dict.fromkeys(one.text for one in panel.tolerances))
    place = _free_height(ax, panel, known)
    color = GOOD if all(one.passed for one in panel.tolerances) else WARN
    ax.text(0.99, place, "; ".join(words), transform=ax.transAxes, ha="right", va="center",
            fontsize=SMALL - 0.5, color=color, path_effects=halo(), gid="limit")  # fmt: skip


def _free_height(ax: Any, panel: Panel, limits: np.ndarray) -> float:
    """Height at the right of an axes, as a share of its own, where letters cover least."""
    first, last = ax.get_xlim()
    late = panel.values[panel.t >= last - LETTERS * (last - first), 0]
    levels = np.r_[late[np.isfinite(late)], limits]
    points = np.column_stack([np.full(len(levels), last), levels])
    heights = ax.transAxes.inverted().transform(ax.transData.transform(points))[:, 1]
    return max((0.9, 0.5, 0.1), key=lambda place: np.abs(heights - place).min())


def _keep_in_view(ax: Any, panel: Panel, events: Events) -> str:
    """Limits of the axis without what briefly follows an event, if that flattens the rest.

    Signals that come near a limit stay in view, and so does the limit. Returns what is beyond the
    axis, in words.
    """
    t = panel.t[: len(panel.values)]
    span = panel.t[-1] - panel.t[0]
    brief = np.zeros(len(t), dtype=bool)
    for time, _ in events:
        brief |= (t >= time) & (t <= time + AFTER_EVENT * span) & (time > t[0])
    if panel.tolerances or brief.all() or not brief.any():
        return ""
    parts = [panel.values[~brief]]
    parts += [] if panel.dashed is None else [panel.dashed[:: max(1, len(panel.dashed) // MANY)]]
    rest = np.concatenate([part.ravel() for part in parts])
    low, high = np.nanmin(rest), np.nanmax(rest)
    least, most = np.nanmin(panel.values[brief]), np.nanmax(panel.values[brief])
    view = min(least, low), max(most, high)
    if np.ptp(view) <= FLATTENED * (high - low):
        return ""
    if panel.bounds is not None and _is_near(panel.bounds, *view).any():
        return ""
    margin = 0.2 * (high - low)
    ax.set_ylim(low - margin, high + margin)
    seen = zip((least, most), (least < low - margin, most > high + margin), strict=True)
    told = " and ".join(f"{value:.3g}" for value, is_beyond in seen if is_beyond)
    return f"beyond the axis: {told} {panel.unit}".rstrip()


def _is_near(bounds: np.ndarray, low: float, high: float) -> np.ndarray:
    """Which limits do not flatten a view from `low` to `high` that has them, too."""
    reach = BOUND_REACH * (high - low)
    return (bounds >= low - reach) & (bounds <= high + reach)


def _draw_events(ax: Any, events: Events, *, named: bool) -> None:
    """Thin lines with their names above all that is drawn, in rows that have room."""
    for time, _ in events:
        ax.axvline(time, color=INK, lw=0.7, alpha=0.55, zorder=1.1, gid="event")
    if not named:
        return
    first, last = ax.get_xlim()
    width, height = inches(ax.figure)
    letter = LETTER / (ax.get_position().width * width) * (last - first)
    ends: list[float] = []  # of the last name of each row
    names: list[tuple[float, str, int, bool]] = []
    for time, name in sorted(events):
        length = (len(name) + 2) * letter
        right = time + length > last
        start = time - length if right else time
        row = next((k for k, end in enumerate(ends) if end <= start), len(ends))
        if row < NAME_ROWS:
            ends[row : row + 1] = [start + length]
            names.append((time, name, row, right))
    share = len(ends) * LETTER_HEIGHT / (ax.get_position().height * height)
    top = (ax.transScale + ax.transLimits).inverted().transform((0.0, 1.0 / (1.0 - share)))[1]
    ax.set_ylim(ax.get_ylim()[0], top)
    for time, name, row, right in names:
        ax.annotate(name, (time, 1.0), parse_math=False,
                    xytext=(-3 if right else 3, -2 - 72 * LETTER_HEIGHT * row),
                    textcoords="offset points", xycoords=ax.get_xaxis_transform(),
                    ha="right" if right else "left", va="top", fontsize=SMALL - 1, color=INK,
                    path_effects=halo(), gid="event")  # fmt: skip


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


def _instants(line: np.ndarray) -> np.ndarray:
    """Where a limit that is steady before has another value for one time alone, as at the end."""
    changes = (line[1:] != line[:-1]) & ~(np.isnan(line[1:]) & np.isnan(line[:-1]))
    steady = np.concatenate([[False, False], ~changes[:-1]])[: len(line)]
    return steady & np.append(False, changes) & np.append(changes, True)


def _draw_bounds(ax: Any, panel: Panel, colors: Sequence[Any]) -> bool:
    """Dotted lines, dashes at an instant; grey where all signals share them, far ones left out."""
    if panel.bounds is None:
        return False
    low, high = ax.get_ylim()
    ranges = np.ptp(panel.bounds, axis=0)
    widest = float(ranges[np.isfinite(ranges)].max(initial=0.0))
    size = min(widest, max(abs(low), abs(high)))
    if high - low < UNMOVED * size:
        low, high = ((low + high) / 2 + side * UNMOVED_VIEW * size for side in (-1.0, 1.0))
        ax.set_ylim(low, high)
    bounds = panel.bounds if panel.bounds.ndim == 3 else panel.bounds[:, None]
    shared = np.array_equal(bounds, np.broadcast_to(bounds[..., :1], bounds.shape), equal_nan=True)
    is_near = _is_near(bounds, low, high)
    lines = [
        (np.where(is_near[side, :, k], bounds[side, :, k], np.nan), FAINT if shared else color)
        for side in range(2)
        for k, color in enumerate(colors[: 1 if shared else None])
        if is_near[side, :, k].any()
    ]
    for line, color in lines:
        if np.ptp(line) == 0.0:  # all of it, and the same
            ax.axhline(line[0], color=color, lw=1.0, ls=":", zorder=1.5)
        else:
            at = _instants(line)
            along = np.where(at, np.roll(line, 1), line)
            if not np.isnan(along).all():
                ax.plot(panel.t, along, color=color, lw=1.0, ls=":", zorder=1.5, gid="limit")
            if at.any():
                ax.plot(
                    panel.t[at], line[at], color=color, ls="none", marker="_", ms=9, mew=1.6,
                    clip_on=False, zorder=1.5, gid="instant",
                )  # fmt: skip
    return bool(lines)


def _name_scale(ax: Any, labels: Sequence[str]) -> None:
    """A narrow colour scale with some names in place of a legend of many lines."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    count = len(labels)
    shown = np.unique(np.linspace(0, count - 1, 6).round().astype(int))
    scale = ScalarMappable(cmap=ListedColormap(line_colors(count)))
    scale.set_clim(-0.5, count - 0.5)
    bar = ax.figure.colorbar(scale, ax=ax, ticks=shown, aspect=25, pad=0.015, fraction=0.04)
    bar.ax.set_yticklabels([labels[i] for i in shown], fontsize=SMALL - 1.5, parse_math=False)
    bar.ax.invert_yaxis()
    bar.ax.tick_params(length=2, color=FAINT)
    bar.outline.set_visible(False)


def draw_strip(ax: Any, strip: Strip) -> None:
    """Marks by status or thin lines; the title has the numbers that matter, the axis has none."""
    style_axes(ax)
    ax.set_title(
        strip.title, loc="left", fontsize=SMALL - 0.5, color=FAINT, pad=2, parse_math=False
    )
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-1.2, 1.2)
    if not strip.marks:
        is_named = 1 < len(strip.labels) <= FEW
        colors = line_colors(len(strip.labels)) if is_named else [FAINT] * len(strip.labels)
        for k, (label, color) in enumerate(zip(strip.labels, colors, strict=True)):
            ax.plot(*thin(strip.t, strip.values[:, k]), color=color, lw=0.8, alpha=0.8,
                    drawstyle="steps-post", label=label)  # fmt: skip
        ax.axhline(0.0, color=FAINT, lw=0.5, ls=DASHES, zorder=0.5, gid="zero")
        if is_named:
            ends = [_last(strip.values[:, k]) for k in range(len(strip.labels))]
            name_lines(ax, ends, strip.labels, colors, STRIP_HEIGHT)
        return
    status = np.array(strip.marks)
    values, counts = np.unique(status, return_counts=True)
    rare = zip("D^svP*", ODD_COLORS * 3, strict=True)
    for k, value in enumerate(values[np.argsort(-counts, kind="stable")]):
        mine = status == value
        marker, color = ("o", FAINT) if k == 0 else next(rare, ("x", INK))
        ax.plot(strip.t[mine], strip.values[mine, 0], ls="none", marker=marker, mew=0,
                ms=2.0 if k == 0 else 4.0, color=color, zorder=2 + (k > 0),
                label=value)  # fmt: skip
    if len(values) > 1:
        lines = ax.get_lines()
        told = [f"{line.get_label()}: {(status == line.get_label()).sum()}" for line in lines]
        heights = np.linspace(1.0, -1.0, len(lines)).tolist()
        name_lines(ax, heights, told, [line.get_color() for line in lines], 0.4)


def draw_table(ax: Any, table: VerdictTable) -> None:
    """Verdicts side by side, in as many columns as the figure has."""
    ax.set_axis_off()
    width = inches(ax.figure)[0]
    columns = 2 if width > 8.0 and len(table.lines) > 1 else 1
    rows = -(-len(table.lines) // columns)
    for k, (mark, text) in enumerate(table.lines):
        column, row = divmod(k, rows)
        x, y = column / columns, 1.0 - (row + 0.5) / rows
        color = {OK_MARK: GOOD, FAILED_MARK: WARN}.get(mark, FAINT)
        place = {"transform": ax.transAxes, "va": "center", "fontsize": SMALL - 0.5}
        ax.text(x, y, mark, color=color, fontweight="bold", **place)
        ax.text(x + 0.5 / width, y, text, color=INK, parse_math=False, **place)


def _name_times(ax: Any, t: np.ndarray) -> str:
    """What a time axis says, in the unit that the span of the times asks for."""
    span = float(np.ptp(t)) if len(t) else 0.0
    unit = next((name for name, (_, least) in TIMES.items() if span >= least), "s")
    if unit != "s":
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

        length, locator = TIMES[unit][0], MaxNLocator(8, steps=[1, 2, 3, 4, 6, 10])
        places = length * np.asarray(locator.tick_values(t.min() / length, t.max() / length))
        ax.xaxis.set_major_locator(FixedLocator(places.tolist()))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / length:g}"))
    return f"time [{unit}]"


def _unit(unit: str) -> str:
    return f"[{unit}]" if unit else ""
