"""Films: frames of a scene as GIF or MP4. Imports matplotlib."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from PIL import Image

from ._scene import MovingBodies
from ._style import AXIS_COLORS, FAINT, GRID, INK

DPI = 100


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
