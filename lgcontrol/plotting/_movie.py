"""Films: bodies, trails and a clock in one axes, as GIF or MP4. Imports matplotlib."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from PIL import Image

from ._figure import new_figure
from ._plot_path import set_box
from ._run import axes_of, extent_of
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
    GRID,
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
DPI = 100


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


def write(scene: MovingBodies, path: Path, fps: int) -> Path:
    """Write a file of the kind its name ends in; it appears complete or not at all."""
    part = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(scene, part, fps)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def gif_bytes(scene: MovingBodies, fps: int) -> bytes:
    """Content of a GIF file."""
    buffer = BytesIO()
    _write_gif(scene, buffer, fps)
    return buffer.getvalue()


def _write_gif(scene: MovingBodies, target: Any, fps: int) -> None:
    """One palette for all frames; GIF counts in hundredths of a second, so the ends are rounded."""
    palette = _palette(scene)
    images = [_reduce(pixels, palette) for pixels in _frames(scene)]
    ends = np.round(100 * np.arange(len(images) + 1) / fps).astype(int)
    durations = (10 * np.diff(ends)).tolist()
    durations[-1] += 1000  # rest on the last one before it starts again
    images[0].save(
        target, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0
    )


def _frames(scene: MovingBodies) -> Iterator[np.ndarray]:
    """Pixels of each frame: what moves is drawn anew over what stays, ten times faster than all."""
    canvas = FigureCanvasAgg(scene.figure)
    scene.figure.set_dpi(DPI)
    moving = scene.moving()
    for artist in moving:
        artist.set_animated(True)
    canvas.draw()
    background = canvas.copy_from_bbox(scene.figure.bbox)
    for k in range(len(scene.times)):
        scene.show(k)
        canvas.restore_region(background)
        for artist in moving:
            if hasattr(artist, "do_3d_projection"):
                artist.do_3d_projection()
            artist.draw(canvas.get_renderer())
        yield np.array(canvas.buffer_rgba())[..., :3]


def _reduce(pixels: np.ndarray, palette: Image.Image) -> Image.Image:
    """An image in the colours of a palette whose first one is white."""
    image = Image.fromarray(pixels).quantize(palette=palette, dither=Image.Dither.NONE)
    indices = np.array(image)
    indices[(pixels == 255).all(axis=2)] = 0  # Pillow looks colours up coarsely
    exact = Image.fromarray(indices)
    exact.putpalette(palette.getpalette() or [])
    return exact


def _palette(scene: MovingBodies) -> Image.Image:
    """The scene's colours fading into white: what thin lines are made of.

    A palette chosen from the pixels would spend itself on the background.
    """
    own = [to_rgb(color) for color in (*AXIS_COLORS, INK, FAINT, GRID, *scene.colors)]
    base = np.array([*own, *scene.body_colors()])
    shades = 256 // len(base)
    fade = np.linspace(0, 1, shades)[:, np.newaxis, np.newaxis]
    colors = np.round(255 * (1 - fade * (1 - base))).astype(np.uint8).reshape(-1, 3)
    image = Image.new("P", (1, 1))
    image.putpalette(np.resize(colors, (256, 3)).tobytes())
    return image


def _write_mp4(scene: MovingBodies, path: Path, fps: int) -> None:
    writer = FFMpegWriter(fps=fps, bitrate=2400)
    with writer.saving(scene.figure, str(path), DPI):
        for k in range(len(scene.times)):
            scene.show(k)
            writer.grab_frame()


def can_write_mp4() -> bool:
    """Whether ffmpeg is there."""
    return bool(FFMpegWriter.isAvailable())
