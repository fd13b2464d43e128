"""Where panels, strips and tables stand in a figure; matplotlib only through what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ._panels import Panel, Strip, VerdictTable

Item: TypeAlias = Panel | Strip | VerdictTable

COLUMN_HEIGHT, PART_HEIGHT, STRIP_HEIGHT, LINE_HEIGHT = 1.3, 1.15, 0.32, 0.15  # inches
ROW_GAP = 0.42  # inches between rows: titles and numbers of times
NARROW_WIDTH, WIDE_WIDTH = 7.0, 11.0  # inches
FEW = 3  # panels that stand in one column
ACROSS = 8  # small axes side by side


@dataclass(frozen=True)
class Cell:
    """An item with its axes.

    Attributes
    ----------
    item : Panel, Strip or VerdictTable
    axes : list
        One, or one for each signal.
    bottom, left : range or set of int
        Which of the axes have numbers below and beside them.
    is_named : bool
        Whether the axis of times has its name.
    names_events : bool
        Whether events are named here.
    """

    item: Item
    axes: list[Any]
    bottom: set[int]
    left: set[int]
    is_named: bool
    names_events: bool


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
