"""The look of all figures: colours, grids, letters. Set on each axes, never globally."""

from __future__ import annotations

from typing import Any

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
CALL_COLORS = (COLORS[2], COLORS[4], COLORS[5])  # controllers, by their usual status
ODD_COLORS = (COLORS[0], COLORS[3])  # other statuses
INK, FAINT, GRID, WARN = "#23282d", "#8a939b", "#dfe3e6", "#b3261e"
SMALL = 8.0
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
    ax.set_title(title, loc="left", fontsize=SMALL + 1, fontweight="bold", color=INK, pad=4)
    ax.set_xlabel(xlabel, fontsize=SMALL, color=INK)
    ax.set_ylabel(ylabel, fontsize=SMALL, color=INK)


def legend(ax: Any, **options: Any) -> None:
    """Names beside the axes, so that they never cover lines."""
    ax.legend(
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


def head(figure: Any, title: str, key: list[str], color: str = INK) -> None:
    """Title at the left, what line styles mean at the right."""
    figure.suptitle(title or " ", x=0.01, ha="left", fontsize=11, fontweight="bold", color=color)
    figure.text(
        0.995, 0.993, "    ".join(key), ha="right", va="top", fontsize=SMALL - 0.5, color=FAINT
    )


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
