"""Plots of estimation and of solves: deviations, consistency, maps, convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ._style import (
    COLORS,
    FAINT,
    GRID,
    INK,
    SMALL,
    draw_band,
    head,
    legend,
    line_colors,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAGS, LAG_TICKS = 20, 3  # measurements up to which correlations are drawn, and between ticks
DEVIATIONS = 2.0
ROUND = np.linspace(0, 2 * np.pi, 61)
_MARKERS = "os^Dv<>P"


class Squares(NamedTuple):
    """Normalised squares over time, and where 95 % of them should be.

    They are divided by their dimension.
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


def plot_map(
    robot: np.ndarray,
    ahead: np.ndarray,
    covariance: np.ndarray,
    landmarks: Mapping[int, np.ndarray],
    covariances: Mapping[int, np.ndarray],
) -> Figure:
    """Places in the plane of x and y [m], each in an ellipse of two deviations.

    Parameters
    ----------
    robot, ahead : ndarray, shape (2,) or (3,)
        Its position, and the direction of its x axis, in the world.
    covariance : ndarray, shape (2, 2) or (3, 3)
        Of its position in world axes.
    landmarks, covariances : mapping of int to ndarray
        By number.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from ._figure import new_figure

    figure = new_figure(5.0, 5.0)
    ax = figure.subplots()
    ax.set_aspect("equal", adjustable="datalim")
    for k, place in landmarks.items():
        ax.plot(*_ellipse(place, covariances[k]), color=COLORS[2], linewidth=0.8)
        ax.plot(*place[:2], "o", color=COLORS[2], markersize=3, label=f"landmark {k}")
        ax.annotate(
            str(k),
            (place[0], place[1]),
            (4, 4),
            textcoords="offset points",
            fontsize=SMALL,
            color=FAINT,
        )
    ax.plot(*_ellipse(robot, covariance), color=COLORS[0], linewidth=0.8)
    turn = np.degrees(np.arctan2(ahead[1], ahead[0])) - 90.0
    ax.plot(*robot[:2], marker=(3, 0, turn), color=INK, markersize=9, label="robot")
    style_axes(ax, xlabel="x [m]", ylabel="y [m]")
    head(figure, "Map", [f"triangle: robot, ellipses: {DEVIATIONS:g}σ"])
    return figure


def _ellipse(center: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Points around a place, two rows."""
    values, axes = np.linalg.eigh(covariance[:2, :2])
    lengths = DEVIATIONS * np.sqrt(np.maximum(values, 0.0))
    return center[:2, None] + (axes * lengths) @ [np.cos(ROUND), np.sin(ROUND)]


@named_options
def plot_convergence(
    errors: Mapping[str, Any],
    steps: Any = None,
    *,
    orders: Mapping[str, float] | None = None,
    tolerance: float | None = None,
    xlabel: str = "",
    ylabel: str = "error",
    title: str = "",
    figure: Any = None,
) -> Figure:
    """Errors over the iterations of a solver, or over the step size of an integrator.

    Parameters
    ----------
    errors : mapping of str to array_like, shape (K,)
        By method; values that are zero or not finite are left out.
    steps : array_like of shape (K,), or mapping of str to such, optional
        Step sizes: both axes are then logarithmic, and the legend names the slope that fits.
        Without them the errors are counted from 0.
    orders : mapping of str to float, optional
        Declared order by method, with steps: drawn as a dotted line through its smallest error
        above the rounding.
    tolerance : float, optional
        A level to reach, dotted.
    xlabel, ylabel, title : str
        Labels; the default x label is "iteration" or "step [s]".
    figure : optional
        See `plot_run`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If nothing can be drawn on a logarithmic axis, or lengths differ.

    Examples
    --------
    >>> h = np.array([0.1, 0.05, 0.025])
    >>> figure = plot_convergence({"euler": 3 * h, "heun": h**2}, h, orders={"heun": 2})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['euler (slope 1.0)', 'heun (slope 2.0)']
    """
    from ._figure import new_figure

    curves = {name: _curve(name, values, steps) for name, values in errors.items()}
    if not any(len(e) for _, e in curves.values()):
        raise ValueError("no positive, finite error to draw on a logarithmic axis")
    for name in orders or {}:
        if name not in curves:
            raise KeyError(f"orders: {name!r} is none of {', '.join(curves)}")
    figure = figure or new_figure(6.2, 4.2)
    ax = figure.add_subplot()
    style_axes(ax, "", xlabel or ("iteration" if steps is None else "step [s]"), ylabel)
    ax.set_yscale("log")
    if steps is not None:
        ax.set_xscale("log")
    else:
        ax.xaxis.get_major_locator().set_params(integer=True)
    for k, ((name, (h, e)), color) in enumerate(
        zip(curves.items(), line_colors(len(curves)), strict=True)
    ):
        slope = _slope(h, e) if steps is not None else None
        label = name if slope is None else f"{name} (slope {slope:.1f})"
        ax.plot(h, e, color=color, lw=1.3, marker=_MARKERS[k % 8], ms=4, mew=0, label=label)
        if steps is not None and orders and name in orders and len(e):
            _draw_order(ax, h, e, orders[name], color)
    if tolerance is not None:
        ax.axhline(tolerance, color=FAINT, lw=1.0, ls=":")
    ax.tick_params(which="minor", labelsize=SMALL - 2, color=FAINT)
    if len(curves) > 1 or steps is not None:
        legend(ax)
    head(figure, title, ["dotted: declared order"] * bool(orders), INK)
    return figure


def _curve(name: str, values: Any, steps: Any) -> tuple[np.ndarray, np.ndarray]:
    """Abscissae and errors that a logarithmic axis can show, by increasing abscissa."""
    e = check_shape(f"errors of {name}", values, (None,), finite=False)
    given = np.arange(len(e)) if steps is None else steps
    if isinstance(given, Mapping):
        if name not in given:
            raise KeyError(f"steps lack {name!r}; they are for {', '.join(map(str, given))}")
        given = given[name]
    h = check_shape(f"steps of {name}", given, (len(e),))
    if steps is not None and (h <= 0).any():
        raise ValueError(f"steps of {name} must be positive, got {h.min():g}")
    shown = np.isfinite(e) & (e > 0)
    order = np.argsort(h[shown], kind="stable")
    return h[shown][order], e[shown][order]


def _slope(h: np.ndarray, e: np.ndarray) -> float | None:
    """Slope of the logarithms, without the part where rounding rules: there errors do not fall."""
    falling = e > 3 * e.min() if len(e) > 3 else np.ones(len(e), dtype=bool)
    if falling.sum() < 2 or np.ptp(h[falling]) == 0:
        return None
    return float(np.polyfit(np.log(h[falling]), np.log(e[falling]), 1)[0])


def _draw_order(ax: Any, h: np.ndarray, e: np.ndarray, order: float, color: Any) -> None:
    above = e > 30 * e.min()
    anchor = int(np.argmax(above)) if above.any() else 0
    ends = np.array([h[anchor], h[-1]])
    ax.plot(ends, 0.5 * e[anchor] * (ends / h[anchor]) ** order, color=color, lw=1.0, ls=":")
