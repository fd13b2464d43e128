"""plot_consistency: whether errors and innovations are as large as covariances say, and white."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..codegen import named_options
from ._style import COLORS, FAINT, GRID, INK, draw_band, head, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAGS, LAG_TICKS = 20, 3  # measurements up to which correlations are drawn, and between ticks


class Squares(NamedTuple):
    """Normalised squares over time, and where 95 % of them should be.

    Attributes
    ----------
    t : ndarray, shape (K,)
        s.
    values : ndarray, shape (K,)
        Divided by their dimension.
    band : tuple of float
    """

    t: np.ndarray
    values: np.ndarray
    band: tuple[float, float]


@named_options
def plot_consistency(
    nees: Squares | None,
    nis: Mapping[str, Squares],
    whitened: Mapping[str, np.ndarray],
) -> Figure:
    """NEES and NIS with their 95 % bands, and correlations of the whitened innovations.

    Parameters
    ----------
    nees : Squares or None
    nis : mapping of str to Squares
    whitened : mapping of str to ndarray, shape (K, m)
        Innovations in units of their deviations, by the names in `nis`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from ._figure import new_figure

    rows = len(nis) + (nees is not None)
    figure = new_figure(8.0, 1.7 * rows + 0.6)
    axes = figure.subplots(rows, 2, squeeze=False)
    named = ({} if nees is None else {"errors": nees}) | dict(nis)
    for (left, right), (name, squares) in zip(axes, named.items(), strict=True):
        _draw_squares(left, squares)
        style_axes(left, f"{name}: {'NEES' if name not in nis else 'NIS'}", ylabel="1 is right")
        if name not in nis:
            right.set_visible(False)
            continue
        _draw_correlations(right, whitened[name])
        style_axes(right, f"{name}: correlation of innovations", ylabel="0 is white")
    axes[-1, 0].set_xlabel("time [s]", fontsize=8, color=FAINT)
    if nis:
        axes[-1, 1].set_xlabel("lag [measurements]", fontsize=8, color=FAINT)
    head(figure, "Consistency", ["dot: one measurement", "line: mean", "band: 95 %"])
    return figure


def _draw_squares(ax: Axes, squares: Squares) -> None:
    ax.axhspan(*squares.band, facecolor=GRID, edgecolor=FAINT, linewidth=0.7)
    size = np.clip(400 / max(1, len(squares.t)), 0.8, 3)
    ax.plot(squares.t, squares.values, ".", color=COLORS[2], markersize=size)
    good = squares.values[np.isfinite(squares.values)]
    ax.axhline(float(good.mean()) if len(good) else np.nan, color=INK, linewidth=1.2)
    ax.set_ylim(0, 1.1 * max(squares.band[1], *np.quantile(good, [0.99]) if len(good) else [1.0]))


def _draw_correlations(ax: Axes, whitened: np.ndarray) -> None:
    """Correlations with those of later ones, lag by lag, of measurements that were used."""
    known = whitened[np.isfinite(whitened).all(axis=1)]
    count = min(LAGS, len(known) - 1)
    band = 1.96 / np.sqrt(max(1, len(known)))
    draw_band(ax, np.array([0.5, count + 0.5]), np.full(2, band))
    square = (known**2).mean(axis=0)
    lags = np.arange(1, count + 1)
    ax.set_xticks(lags[::LAG_TICKS])
    for k in range(known.shape[1]):
        found = [(known[lag:, k] * known[:-lag, k]).mean() / square[k] for lag in lags]
        ax.plot(lags, found, "o-", color=COLORS[k % len(COLORS)], markersize=2.5, linewidth=0.7)
