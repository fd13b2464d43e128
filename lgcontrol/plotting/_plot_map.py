"""plot_map: landmarks and a robot among them from above, with how well they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ._style import COLORS, FAINT, INK, SMALL, head, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEVIATIONS = 2.0
ROUND = np.linspace(0, 2 * np.pi, 61)


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
