"""plot_convergence: errors over iterations or step sizes, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ._style import FAINT, INK, SMALL, head, legend, line_colors, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "os^Dv<>P"


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
