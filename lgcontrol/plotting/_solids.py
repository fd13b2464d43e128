"""Bodies of a scene in figures: shaded triangles in space, seen from above in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..groups import SE3
from ..scene import Scene, SceneBody
from ._obstacles import is_cone
from ._poses import is_planar, spread
from ._style import GOOD, WARN

AROUND = 12  # corners of what is round
PLAIN = (0.46, 0.53, 0.60, 1.0)  # bodies without a colour of their own
LIGHT = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])
DARKEST = 0.6  # share of a colour on the side away from the light
GATE = 0.18  # opacity of gates and cones
GHOST = 0.25  # opacity of what is to be reached, and of an arm at its start
PALEST = 0.55  # share of white in the colours of the first of many places
SMALLEST_BODY = 0.1  # share of the picture that a single body takes at least
SMALLEST_AMONG = 0.04  # and among obstacles, which it may not seem to touch
TOLD_SCALE = 1.15  # a smaller one is none
FEW_PLACES = 4  # places of an arm among which the farthest counts
CLOSE = 0.3  # sizes of an arm between two of its places
APART = 0.9  # sizes of a body between two of its places


class Solids(NamedTuple):
    """Bodies at some times of a scene.

    Attributes
    ----------
    moving, still, wanted, gates : sequence of SceneBody
        Bodies that move, stay, are to be reached; gates, and cones about the last place.
    places : ndarray of int
        Frames at which those that move are drawn.
    scale : float
        Times as large as they are.
    """

    moving: Sequence[SceneBody]
    still: Sequence[SceneBody]
    wanted: Sequence[SceneBody]
    gates: Sequence[SceneBody]
    places: np.ndarray
    scale: float

    @property
    def is_planar(self) -> bool:
        """Whether all that moves stays in the plane and turns about z only."""
        return bool(self.moving) and all(is_planar(body.poses) for body in self.moving)

    def at_end(self, size: float) -> Solids:
        """Only the last place, of a size in m."""
        last = int(self.places[-1])
        corners = [triangles(body, last, 1.0)[0].reshape(-1, 3) for body in self.moving]
        own = float(np.ptp(np.concatenate(corners), axis=0).max()) or 1.0
        return self._replace(
            still=(), wanted=(), gates=(), places=self.places[-1:], scale=size / own
        )

    def points(self) -> np.ndarray:
        """Corners of all that is drawn, shape (N, 3)."""
        parts = [
            triangles(body, int(k), self.scale)[0].reshape(-1, 3)
            for body in self.moving
            for k in self.places
        ]
        parts += [triangles(body, 0, 1.0)[0].reshape(-1, 3) for body in self.still]
        parts += [triangles(body, 0, self.scale)[0].reshape(-1, 3) for body in self.wanted]
        parts += [triangles(body, -1, 1.0)[0].reshape(-1, 3) for body in self.gates]
        return np.concatenate([*parts, np.zeros((0, 3))])


def solids_of(scene: Scene, frames: int) -> Solids | None:
    """Bodies with shapes, those that move at places that do not cover each other."""
    drawn = [body for body in scene.bodies if _is_drawn(body)]
    moving = [body for body in drawn if body.role == "body" and not body.is_fixed]
    still = [body for body in drawn if body.role == "body" and body.is_fixed]
    gates = [body for body in drawn if body.role == "gate" or is_cone(body)]
    if not moving:
        return Solids((), still, (), gates, np.zeros(0, dtype=int), 1.0) if still else None
    wanted = [body for body in drawn if body.role == "reference" and body.is_fixed]
    at_start = np.concatenate([triangles(one, 0, 1.0)[0].reshape(-1, 3) for one in moving])
    size = float(np.ptp(at_start, axis=0).max()) or 1.0
    ways = [one.poses[:, :3] for one in moving]
    lengths = [float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum()) for way in ways]
    way = ways[int(np.argmax(lengths))]
    extent = float(
        np.ptp(np.concatenate([way, *(one.poses[:, :3] for one in wanted)]), axis=0).max()
    )
    is_one = len(moving) == 1 and not still
    is_alone = not any(body.role in ("obstacle", "hull") for body in drawn)
    least = SMALLEST_BODY if is_alone else SMALLEST_AMONG
    scale = least * extent / size if is_one else 1.0
    scale = scale if scale > TOLD_SCALE else 1.0
    count = max(2, min(frames, 1 + int(max(lengths) / (APART * size * scale))))
    places = spread(way, count)
    if not is_one:
        places = _of_assembly(way, places, CLOSE * size)
    return Solids(moving, still, wanted, gates, places, scale)


def _of_assembly(way: np.ndarray, places: np.ndarray, least: float) -> np.ndarray:
    """Places of an arm: few, the farthest if it comes back, none that only covers the next."""
    if len(places) < FEW_PLACES:
        away = np.linalg.norm(way - way[0], axis=1)
        places = np.unique([0, int(np.argmax(away)), len(way) - 1])
    kept = [int(places[-1])]
    for place in places[-2::-1]:
        if np.linalg.norm(way[place] - way[kept], axis=1).min() > least:
            kept.insert(0, int(place))
    return np.array(kept)


def polygons(solids: Solids, frame: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, size) of all that moves at one frame and colours, the highest last."""
    parts = [triangles(body, frame, solids.scale) for body in solids.moving]
    corners, colors = (np.concatenate(some) for some in zip(*parts, strict=True))
    if size == 3:
        return corners, colors
    order = np.argsort(corners[..., 2].max(axis=1), kind="stable")
    return corners[order, :, :2], colors[order]


def _is_drawn(body: SceneBody) -> bool:
    return any(not hasattr(shape.geometry, "format") for shape in body.shapes)


def triangles(body: SceneBody, frame: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, 3) in the world at a frame and colours (n, 4), shaded."""
    pose = body.poses[0 if body.is_fixed else frame]
    corners, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 4))]
    for shape in body.shapes:
        if hasattr(shape.geometry, "format"):
            continue
        vertices, faces = shape.surface(AROUND)
        corner = SE3.act(pose, scale * vertices)[faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        size = np.linalg.norm(normal, axis=1)
        good = size > 0
        lit = np.clip(normal[good] @ LIGHT / size[good], 0.0, 1.0)
        color = np.tile(shape.color or PLAIN, (int(good.sum()), 1))
        color[:, :3] *= (DARKEST + (1 - DARKEST) * lit)[:, np.newaxis]
        corners.append(corner[good])
        colors.append(color)
    return np.concatenate(corners), np.concatenate(colors)


def draw_solids(ax: Any, solids: Solids, size: int) -> None:
    """In space or, with size 2, seen from above; earlier places are paler."""
    from matplotlib.colors import to_rgb

    is_one = len(solids.moving) == 1 and not solids.still
    for body in solids.still:
        _draw(ax, *polygons(solids._replace(moving=[body], scale=1.0), 0, size))
    for body in solids.wanted:
        _draw(ax, *polygons(solids._replace(moving=[body]), 0, size), opacity=GHOST)
    for body in solids.gates:
        color = to_rgb(GOOD if body.role == "gate" else WARN)
        corners = triangles(body, -1, 1.0)[0][..., :size]
        _draw(ax, corners, np.tile([*color, GATE], (len(corners), 1)), gid="gate")
    last = len(solids.places) - 1
    for k, place in enumerate(solids.places if solids.moving else ()):
        early = 1.0 - k / last if last else 0.0
        _draw(
            ax,
            *polygons(solids, int(place), size),
            opacity=1.0 if is_one or k == last else GHOST,
            white=PALEST * early if is_one else 0.0,
        )


def _draw(
    ax: Any,
    corners: np.ndarray,
    colors: np.ndarray,
    opacity: float = 1.0,
    white: float = 0.0,
    gid: str = "body",
) -> None:
    colors[:, :3] += white * (1.0 - colors[:, :3])
    colors[:, 3] *= opacity
    if corners.shape[-1] == 2:
        from matplotlib.collections import PolyCollection

        ax.add_collection(
            PolyCollection([*corners], facecolors=colors, edgecolors="face", linewidths=0.2,
                           zorder=2.2, gid=gid),
        )  # fmt: skip
        return
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    ax.add_collection3d(Poly3DCollection(corners, facecolors=colors, lw=0, gid=gid))
