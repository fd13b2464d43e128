"""The look of all figures: colours, grids, letters. Set on each axes, never globally."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

# Red, green, blue for x, y, z, dark enough for lines on white and told apart without colour vision
# by their lightness; then further ones.
COLORS = (
    "#c8433a",
    "#3a9a5b",
    "#2b5fa8",
    "#e0952b",
    "#7d5ba6",
    "#22a3b0",
    "#8c564b",
    "#5f6b73",
)
AXIS_COLORS = COLORS[:3]
ODD_COLORS = (COLORS[0], COLORS[3])  # statuses that are rare
INK, FAINT, GRID, WARN = "#23282d", "#767f87", "#dfe3e6", "#b3261e"
GOOD = "#1d7a3e"
SMALL = 8.0
MOST_OF_KEY = 3  # entries in one line of a figure's head
TITLE_LETTERS = (9.0, 6.0)  # of its title for each inch, without a key and beside one
DASHES = (0, (4, 2))
FEW_LINES = len(COLORS)  # lines that a legend can tell apart


def line_colors(count: int) -> list[Any]:
    """Distinct colours for a few lines, a scale for many."""
    if count <= FEW_LINES:
        return list(COLORS[:count])
    from matplotlib import colormaps

    scale = colormaps["viridis"]
    return [scale(0.92 * i / (count - 1)) for i in range(count)]


def style_axes(ax: Any, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Light grid, thin frame without top and right, small letters."""
    ax.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=INK, labelsize=SMALL, color=FAINT, width=0.8, length=3)
    ax.yaxis.get_offset_text().set_fontsize(SMALL - 1)
    ax.set_title(
        title, loc="left", fontsize=SMALL + 1, fontweight="bold", color=INK, pad=4, parse_math=False
    )
    ax.set_xlabel(xlabel, fontsize=SMALL, color=INK, parse_math=False)
    ax.set_ylabel(ylabel, fontsize=SMALL, color=INK, parse_math=False)


def style() -> dict[Any, Any]:
    """Settings of matplotlib that give figures of one's own the look of those made here.

    Returns
    -------
    dict of str to object
        For ``pyplot.style.use``, ``pyplot.style.context`` or ``pyplot.rcParams.update``.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> with pyplot.style.context(style()):
    ...     figure, ax = pyplot.subplots()
    >>> ax.spines["top"].get_visible(), figure.get_constrained_layout()
    (False, True)
    >>> pyplot.close(figure)
    """
    from cycler import cycler

    letters = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor",
               "ytick.labelcolor")  # fmt: skip
    frame = ("axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(letters, INK),
        **dict.fromkeys(frame, FAINT),
        "axes.prop_cycle": cycler(color=COLORS),
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": SMALL + 1,
        "axes.titlepad": 4.0,
        "axes.labelsize": SMALL,
        "figure.constrained_layout.use": True,
        "figure.titlesize": 11.0,
        "figure.titleweight": "bold",
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "legend.fontsize": SMALL - 0.5,
        "legend.frameon": False,
        "legend.title_fontsize": SMALL - 0.5,
        "lines.linewidth": 1.2,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "xtick.major.width": 0.8,
        "ytick.major.width": 0.8,
        "xtick.major.size": 3.0,
        "ytick.major.size": 3.0,
    }


def inches(figure: Any) -> tuple[float, float]:
    """Width and height of a figure or a part of one."""
    return figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi


def draw_band(ax: Any, t: np.ndarray, half: np.ndarray) -> None:
    """Grey about zero between edges that are seen without colours."""
    ax.fill_between(t, -half, half, color=GRID, lw=0, zorder=0.8)
    for side in (-half, half):
        ax.plot(t, side, color=FAINT, lw=0.7, zorder=0.9, gid="band")


def halo() -> list[Any]:
    """White around letters, so that lines do not run through them."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.0, foreground="white")]


def name_lines(
    ax: Any, ends: Sequence[float], labels: Sequence[str], colors: Sequence[Any], height: float
) -> None:
    """Names of lines at their ends, beside axes of a height in inches, without covering others."""
    shown = ax.transAxes.inverted().transform(
        [ax.transData.transform((ax.get_xlim()[1], end)) for end in ends]
    )[:, 1]
    order = np.argsort(shown, kind="stable")
    places = np.zeros(len(labels))
    places[order] = _apart(shown[order].clip(0.0, 1.0), 1.15 * (SMALL - 0.5) / 72 / height)
    for y, label, color in zip(places, labels, colors, strict=True):
        ax.text(1.01, y, label, parse_math=False, transform=ax.transAxes, color=color, va="center",
                fontsize=SMALL - 0.5, gid="label")  # fmt: skip


def _apart(places: np.ndarray, gap: float) -> np.ndarray:
    """Ascending places that are a gap apart, as near as can be to the given ones, from 0 up."""
    steps = gap * np.arange(len(places))
    pools: list[list[float]] = []  # sums and counts of those that push each other
    for value in places - steps:
        pools.append([float(value), 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1] = [pools[-1][0] + total, pools[-1][1] + count]
    level = np.concatenate([np.full(int(count), total / count) for total, count in pools])
    return level.clip(0.0, max(0.0, 1.0 - float(steps[-1]))) + steps


def legend(ax: Any, **options: Any) -> None:
    """Names beside the axes, so that they never cover lines."""
    made = ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.0, 1.03),
        fontsize=SMALL - 0.5,
        frameon=False,
        handlelength=1.3,
        handletextpad=0.5,
        borderaxespad=0.2,
        labelspacing=0.3,
        labelcolor=INK,
        **options,
    )
    for text in made.get_texts():
        text.set_parse_math(False)


def head(figure: Any, title: str, key: list[str], color: str = INK) -> None:
    """Title at the left, what line styles mean at the right."""
    figure.suptitle(
        textwrap.fill(title, int(TITLE_LETTERS[bool(key)] * inches(figure)[0])) or " ",
        parse_math=False,
        x=0.01,
        ha="left",
        fontsize=11,
        fontweight="bold",
        color=color,
    )
    rows = [key] if len(key) <= MOST_OF_KEY else [key[:2], key[2:]]
    text = "\n".join("    ".join(row) for row in rows)
    figure.text(0.995, 0.993, text, ha="right", va="top", fontsize=SMALL - 0.5, color=FAINT)


def style_space(ax: Any, unit: str = "m") -> None:
    """Three-dimensional axes: pale panes, thin grid, units."""
    from matplotlib.ticker import MaxNLocator

    for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), "xyz", strict=True):
        axis.pane.set_facecolor("#f6f7f8")
        axis.pane.set_edgecolor(GRID)
        axis._axinfo["grid"].update(color=GRID, linewidth=0.6)  # there is no public setter
        axis.line.set_color(FAINT)
        axis.set_tick_params(labelsize=SMALL - 0.5, colors=INK)
        axis.set_major_locator(MaxNLocator(6))
        getattr(ax, f"set_{name}label")(
            f"{name} [{unit}]" if unit else name, fontsize=SMALL, color=INK
        )
