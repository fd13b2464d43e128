"""plot_estimation: errors of an estimate within its bands, and what its measurements said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._style import COLORS, FAINT, INK, draw_band, head, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_estimation(
    t: np.ndarray,
    error: np.ndarray,
    deviation: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    whitened: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> Figure:
    """Each error within ±2 deviations, and the whitened innovations within ±2.

    Parameters
    ----------
    t : ndarray, shape (N,)
        Times, s.
    error, deviation : ndarray, shape (N, n)
        Errors that are not finite are left out: the bands remain.
    names, units : sequence of str
        Of the n entries.
    whitened : mapping of str to (times, values)
        Times (K,) and innovations (K, m) in units of their deviations, by measurement.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from ._figure import new_figure

    count = len(names) + len(whitened)
    columns = min(3, count)
    rows = -(-count // columns)
    figure = new_figure(3.6 * columns, 1.6 * rows + 0.5)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        ax = axes[i]
        draw_band(ax, t, 2 * deviation[:, i])
        ax.plot(t, error[:, i], color=INK, linewidth=0.9)
        style_axes(ax, name, ylabel=f"[{unit}]" if unit else "")
    for ax, (name, (times, values)) in zip(axes[len(names) :], whitened.items(), strict=False):
        draw_band(ax, np.array([t[0], t[-1]]), np.full(2, 2.0))
        for k, column in enumerate(values.T):
            ax.plot(times, column, ".", color=COLORS[k % len(COLORS)], markersize=1.5)
        style_axes(ax, f"{name}: whitened innovations", ylabel="σ")
    for ax in axes[count:]:
        ax.set_visible(False)
    for ax in axes[max(count - columns, 0) : count]:
        ax.set_xlabel("time [s]", fontsize=8, color=FAINT)
    head(figure, "Estimation", ["line: error", "band: ±2σ"])
    return figure
