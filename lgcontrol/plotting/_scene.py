"""A scene that moves: bodies, trails and a clock in one axes. Imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.patches import Polygon
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from ._figure import new_figure
from ._plot_path import set_box
from ._poses import axes_of, extent_of
from ._solids import (
    DARKEST,
    PLAIN,
    RoundObstacle,
    Solids,
    corners_of,
    draw_in_plane,
    draw_in_space,
    draw_solids,
    polygons,
)
from ._style import (
    AXIS_COLORS,
    DASHES,
    FAINT,
    INK,
    line_colors,
    style_axes,
    style_space,
)

# A dart that points along x with its fin along z: corners in units of its length, and faces.
_CORNERS = np.array(
    [[0.6, 0, 0], [-0.4, 0.34, 0], [-0.22, 0, 0.06], [-0.4, -0.34, 0], [-0.4, 0, 0.26]]
)
_FACES = ((0, 1, 2), (0, 2, 3), (0, 2, 4))
_OUTLINE = _CORNERS[[0, 1, 2, 3], :2]


MOST_COLORS = 8  # of bodies, that a film tells apart


class MovingBodies:
    """Bodies at one time; `show` moves them to another.

    Parameters
    ----------
    poses : ndarray, shape (F, k, 7)
        Poses on SE(3) in each of F frames.
    goal : ndarray, shape (F, k, 7), optional
        Poses to follow.
    times : ndarray, shape (F,)
        In s.
    speed : float
        Simulated seconds per second, shown unless it is 1.
    linked : bool
        Whether each body is joined to the one before by a line, as in an arm.
    planar, attitude : bool
        Whether all stays in the plane, or only turns.
    solids : Solids, optional
        Bodies with shapes, in place of darts and frames.
    rows : ndarray of int, shape (F,), optional
        Frames of the scene of the solids at the times of the film.
    """

    def __init__(
        self,
        poses: np.ndarray,
        goal: np.ndarray | None,
        times: np.ndarray,
        title: str,
        *,
        speed: float = 1.0,
        linked: bool,
        planar: bool,
        attitude: bool,
        solids: Solids | None = None,
        rows: np.ndarray | None = None,
        obstacles: Sequence[RoundObstacle] = (),
    ) -> None:
        self.poses, self.goal, self.times = poses, goal, times
        self.pace = "" if speed == 1.0 else f"  ({speed:.3g}×)"
        self.size = 2 if planar else 3
        self.figure = new_figure(5.6, 4.6 if planar else 5.0)
        self.ax: Any = self.figure.add_subplot(projection=None if planar else "3d")
        self.solids = solids.at_end(1.5) if solids is not None and attitude else solids
        self.rows = np.zeros(0, dtype=int) if rows is None else rows
        shown = [poses[..., :3].reshape(-1, 3)]
        shown += [] if goal is None else [goal[..., :3].reshape(-1, 3)]
        shown += [] if self.solids is None or attitude else [self.solids.points()]
        shown += [] if attitude else corners_of(obstacles)
        everything = np.concatenate(shown)
        self.length = 1.0 if attitude else 0.16 * extent_of(everything)
        if planar:
            style_axes(self.ax, xlabel="x [m]", ylabel="y [m]")
            self._fit_plane(everything.reshape(-1, 3)[:, :2])
        else:
            style_space(self.ax, unit="" if attitude else "m")
            set_box(self.ax, everything, margin=self.length)
        head = {"x": 0.01, "ha": "left", "fontsize": 11, "color": INK}
        self.figure.suptitle(title or " ", parse_math=False, fontweight="bold", **head)
        self.clock = self.figure.text(
            0.99, 0.985, "", ha="right", va="top", fontsize=10, color=INK, family="monospace"
        )
        if goal is not None:
            self._draw_goal(goal)
        extent = extent_of(everything)
        if planar:
            draw_in_plane(self.ax, obstacles, extent)
        elif not attitude:
            draw_in_space(self.ax, obstacles, everything, extent)
        count = poses.shape[1]
        self.colors = [INK] if count == 1 else line_colors(count)
        self.trails = [self._line(color=color, lw=1.4) for color in self.colors]
        link = {"color": FAINT, "lw": 4.0, "marker": "o", "ms": 6, "solid_capstyle": "round"}
        self.links = self._line(**link) if linked else None
        self.bodies = None if self.solids is None else self._solid(self.solids)
        is_dart = not linked and self.solids is None
        self.glyphs = [self._glyph(color) for color in self.colors] if is_dart else []
        self.axes_lines = [
            [self._line(color=color, lw=1.6) for color in AXIS_COLORS[: self.size]]
            for _ in (self.colors if self.solids is None else ())
        ]
        self.show(0)
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")  # the places of all things are settled

    def show(self, k: int) -> None:
        """Move everything to frame k."""
        self.clock.set_text(f"{self.times[k]:6.2f} s{self.pace}")
        for i, pose in enumerate(self.poses[k]):
            _place(self.trails[i], self.poses[: k + 1, i, : self.size])
            axes, start = axes_of(pose)[: self.size, : self.size], pose[: self.size]
            if self.glyphs:
                self._move_glyph(self.glyphs[i], start, axes)
            lines = self.axes_lines[i] if self.axes_lines else ()
            for line, axis in zip(lines, axes.T, strict=False):
                _place(line, np.stack([start, start + 0.6 * self.length * axis]))
        if self.solids is not None and self.bodies is not None:
            corners, colors = polygons(self.solids, int(self.rows[k]), self.size)
            self.bodies.set_verts(corners)
            self.bodies.set_facecolor(colors)
        if self.links is not None:
            _place(self.links, self.poses[k, :, : self.size])

    def body_colors(self) -> np.ndarray:
        """Colours of bodies at their darkest and lightest, shape (n, 3)."""
        if self.solids is None:
            return np.zeros((0, 3))
        shapes = [shape for body in self.solids.moving for shape in body.shapes]
        known = np.unique([(shape.color or PLAIN)[:3] for shape in shapes], axis=0)[:MOST_COLORS]
        return np.concatenate([DARKEST * known, (1 + DARKEST) / 2 * known, known])

    def moving(self) -> list[Any]:
        """Everything that `show` changes, in the order to draw it."""
        links = [] if self.links is None else [self.links]
        lines = [line for lines in self.axes_lines for line in lines]
        bodies = [] if self.bodies is None else [self.bodies]
        return [*self.trails, *links, *bodies, *self.glyphs, *lines, self.clock]

    def _move_glyph(self, glyph: Any, start: np.ndarray, axes: np.ndarray) -> None:
        if self.size == 2:
            glyph.set_xy(_OUTLINE @ axes.T * self.length + start)
        else:
            corners = _CORNERS @ axes.T * self.length + start
            glyph.set_verts([corners[list(face)] for face in _FACES])

    def _draw_goal(self, goal: np.ndarray) -> None:
        for i in range(goal.shape[1]):
            path = goal[:, i]
            if np.ptp(path[:, :3], axis=0).any():
                self.ax.plot(*path[:, : self.size].T, color=FAINT, lw=1.1, ls=DASHES)
                continue
            start, axes = path[0, : self.size], axes_of(path[0])[: self.size, : self.size]
            for axis, color in zip(axes.T, AXIS_COLORS, strict=False):
                ends = np.stack([start, start + self.length * axis])
                self.ax.plot(*ends.T, color=color, lw=1.0, ls=DASHES, alpha=0.8)

    def _fit_plane(self, points: np.ndarray) -> None:
        low, high = points.min(axis=0) - self.length, points.max(axis=0) + self.length
        self.ax.set_xlim(low[0], high[0])
        self.ax.set_ylim(low[1], high[1])
        self.ax.set_aspect("equal", adjustable="box")

    def _line(self, **options: Any) -> Any:
        return self.ax.plot(*[[]] * self.size, **options)[0]

    def _solid(self, solids: Solids) -> Any:
        """What moves, as one artist; what stays and what is to be reached is drawn for good."""
        draw_solids(self.ax, solids._replace(moving=()), self.size)
        corners, colors = polygons(solids, 0, self.size)
        if self.size == 2:
            return self.ax.add_collection(PolyCollection([*corners], facecolors=colors, lw=0))
        return self.ax.add_collection3d(Poly3DCollection(corners, facecolors=colors, lw=0))

    def _glyph(self, color: Any) -> Any:
        if self.size == 2:
            patch = Polygon(_OUTLINE, facecolor=color, alpha=0.25, edgecolor=color, lw=1.0)
            return self.ax.add_patch(patch)
        faces = [_CORNERS[list(face)] for face in _FACES]
        glyph = Poly3DCollection(faces, facecolors=color, edgecolors=INK, lw=0.6, alpha=0.3)
        return self.ax.add_collection3d(glyph)


def _place(line: Any, points: np.ndarray) -> None:
    if points.shape[1] == 3:
        line.set_data_3d(*points.T)
    else:
        line.set_data(*points.T)
