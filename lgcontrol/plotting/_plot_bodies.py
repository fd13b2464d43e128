"""plot_bodies: frames of bodies in space, and lines to the points that joints hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..groups import SE3
from ._style import line_colors

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_bodies(
    poses: Mapping[str, np.ndarray], points: Mapping[str, np.ndarray], *, figure: Any = None
) -> Figure:
    """Draw bodies in space: the frame of each, with lines to points on it.

    Parameters
    ----------
    poses : mapping of str to ndarray, shape (7,)
        SE3 coordinates by body.
    points : mapping of str to ndarray, shape (k, 3)
        Points [m] in world axes by body.
    figure : matplotlib.figure.Figure, optional
        Where to draw; a new one if left out.
    """
    from ._figure import new_figure

    figure = new_figure(6.0, 5.0) if figure is None else figure
    ax = figure.add_subplot(projection="3d")
    every = np.vstack([*(pose[:3] for pose in poses.values()), *points.values()])
    size = max(float(np.ptp(every, axis=0).max()), 1e-3)
    for color, (name, pose) in zip(line_colors(len(poses)), poses.items(), strict=True):
        ax.plot([], [], [], color=color, label=name)
        for point in points.get(name, ()):
            ax.plot(*np.stack([pose[:3], point], axis=1), color=color)
            ax.plot(*point[:, None], "o", color=color, markersize=3)
        for axis, tint in zip(SE3.matrix(pose)[:3, :3].T, ("C3", "C2", "C0"), strict=True):
            ends = np.stack([pose[:3], pose[:3] + 0.08 * size * axis], axis=1)
            ax.plot(*ends, color=tint, linewidth=0.8)
    ax.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", fontsize="small")
    return figure
