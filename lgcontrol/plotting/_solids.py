"""Solids and obstacles: bodies in figures, their outlines and their shadows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..groups import SE3
from ..scene import Scene, SceneBody
from ..scene._internal import ConeShape, obstacle_bodies
from ._run import axes_of, is_planar, spread
from ._style import FAINT, GOOD, GRID, INK, SMALL, WARN, halo

Obstacles: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""What `keep_out` takes, or (centre or both ends of an axis, radius) in m; by name if any."""


LABELS = 100  # their order: above all that axes in space sort by depth
_WANTED = "an obstacle is (center of 2 or 3 numbers or both ends of an axis, radius > 0)"
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


class RoundObstacle(NamedTuple):
    """Capsule in space, a ball where both ends are the same, or a half-space."""

    ends: np.ndarray  # (2, 3) of the axis, m; of a half-space a point of its plane twice
    radius: float  # m, 0 of a half-space
    name: str = ""
    normal: np.ndarray | None = None  # (3,) out of a half-space
    is_past: bool = False  # whether one that moves was there at the start
    is_gate: bool = False  # whether it is to be kept in, not out of


def obstacles_of(given: Obstacles, t: np.ndarray) -> list[RoundObstacle]:
    """Obstacles as they are given, with the names that they were given.

    Refused is what is none of the kinds, or has no positive radius.
    """
    named = given.items() if isinstance(given, Mapping) else [("", one) for one in given]
    found = []
    for name, one in named:
        try:
            (body,) = obstacle_bodies({name: one}, t)
        except RuntimeError:  # of CasADi: a function asks for entries of p that are not there
            raise TypeError(
                f"the place of {type(one).__name__} {name!r} depends on parameters, which a "
                "picture does not know: give numbers, or a function of time alone"
            ) from None
        found += round_obstacles(body, name)
    if any(one.normal is None and not one.radius > 0 for one in found):
        raise ValueError(f"{_WANTED}, got {given}")
    return found


def round_obstacles(body: SceneBody, name: str) -> list[RoundObstacle]:
    """An obstacle of a scene: at the end and, if it moves, paler at the start."""
    geometry: Any = body.shapes[0].geometry
    radius = float(getattr(geometry, "radius", 0.0))
    places = body.poses if body.is_fixed else body.poses[[0, -1]]
    found = []
    for k, pose in enumerate(places):
        past = k == 0 and len(places) > 1
        along = axes_of(pose)[:, 2]
        if hasattr(geometry, "radius"):
            half = getattr(geometry, "length", 0.0) / 2
            ends = SE3.act(pose, SE3.act(body.shapes[0].pose, [[0, 0, -half], [0, 0, half]]))
            found.append(RoundObstacle(ends, radius, "" if past else name, is_past=past))
        else:
            face = pose[:3] + geometry.size[2] / 2 * along  # of a thin plate
            found.append(RoundObstacle(np.tile(face, (2, 1)), 0.0, name, along, past))
    return found


def is_cone(body: SceneBody) -> bool:
    """Whether a body of a scene is a cone of directions."""
    return bool(body.shapes) and isinstance(body.shapes[0].geometry, ConeShape)


def is_round(body: SceneBody) -> bool:
    """Whether an obstacle is one of `round_obstacles`: neither a cone nor a gate."""
    return body.role == "obstacle" and not is_cone(body)


def cap_of(body: SceneBody) -> RoundObstacle:
    """What a cone of directions cuts out of the unit sphere at the end: center and chord."""
    geometry: Any = body.shapes[0].geometry
    axis = axes_of(body.poses[-1])[:, 2]
    chord = 2 * np.sin(geometry.half_angle / 2)
    return RoundObstacle(np.tile(axis, (2, 1)), chord, body.name, is_gate=body.role == "gate")


def corners_of(obstacles: Sequence[RoundObstacle]) -> list[np.ndarray]:
    """Points that a picture must hold, of those that end somewhere."""
    return [
        one.ends + sign * one.radius
        for one in obstacles
        if one.normal is None
        for sign in (-1.0, 1.0)
    ]


def draw_in_plane(ax: Any, obstacles: Sequence[RoundObstacle], extent: float) -> None:
    """Outlines, and lines with what is behind them."""
    from matplotlib.patches import Polygon

    for one in obstacles:
        if one.normal is None:
            around = outline(one.ends, one.radius)
            place = one.ends.mean(axis=0)[:2]
        else:
            normal = one.normal[:2] / np.linalg.norm(one.normal[:2])
            side, back = extent * np.array([-normal[1], normal[0]]), -0.06 * extent * normal
            middle = one.ends[0, :2]
            around = np.array([middle - side, middle + side, middle + side + back,
                               middle - side + back])  # fmt: skip
            place = middle + back
        alpha = 0.4 if one.is_past else 1.0
        patch = Polygon(around, facecolor=GRID, edgecolor=FAINT, lw=1.0, alpha=alpha)
        if one.normal is not None:
            patch.set_in_layout(False)
            limits = ax.dataLim.frozen()
            ax.add_patch(patch)
            ax.dataLim.set(limits)  # a plane without an end does not widen the picture
        else:
            ax.add_patch(patch)
        label(ax, place, one.name)


def draw_in_space(
    ax: Any, obstacles: Sequence[RoundObstacle], points: np.ndarray, extent: float
) -> None:
    """Surfaces; of a half-space a square beside what moves."""
    for one in obstacles:
        if one.normal is None:
            around = surface(one.ends, one.radius)
            place = one.ends[np.argmax(one.ends[:, 2])] + [0.0, 0.0, one.radius]
        else:
            x, y, z = triad(one.normal)
            middle = points.mean(axis=0)
            middle = middle - z * float(z @ (middle - one.ends[0]))
            side = 0.6 * extent * np.array([-1.0, 1.0])
            u, v = np.meshgrid(side, side)
            around = (middle + u[..., None] * x + v[..., None] * y).transpose(2, 0, 1)
            place = middle
        alpha = 0.15 if one.is_past or one.normal is not None else 0.3
        ax.plot_surface(*around, color=FAINT, alpha=alpha, lw=0, gid="obstacle")
        label(ax, place, one.name)


def label(ax: Any, place: np.ndarray, name: str) -> None:
    """A name in small letters, in the plane or in space."""
    if name:
        ax.text(
            *place, name, parse_math=False, fontsize=SMALL - 1, color=INK,
            ha="center", va="bottom", zorder=LABELS,
            path_effects=halo(),
        )  # fmt: skip


def outline(ends: np.ndarray, radius: float) -> np.ndarray:
    """Points around a capsule in the plane, shape (N, 2)."""
    along = (ends[1] - ends[0])[:2]
    heading = np.arctan2(along[1], along[0])
    turns = heading + np.pi / 2 * np.array([[-1.0], [1.0]]) + np.linspace(0, np.pi, 37)
    round_ends = ends[::-1, np.newaxis, :2] + radius * np.stack([np.cos(turns), np.sin(turns)], -1)
    return round_ends.reshape(-1, 2)


def surface(ends: np.ndarray, radius: float) -> np.ndarray:
    """Points of the surface of a capsule, shape (3, M, N), its axis along the rows."""
    along = ends[1] - ends[0]
    x, y, z = triad(along if along.any() else np.array([0.0, 0.0, 1.0]))
    tilt = np.r_[np.linspace(np.pi, np.pi / 2, 7), np.linspace(np.pi / 2, 0.0, 7)]
    turn = np.linspace(0, 2 * np.pi, 25)
    start = np.repeat(ends, 7, axis=0) + radius * np.cos(tilt)[:, np.newaxis] * z
    ring = np.cos(turn)[:, np.newaxis] * x + np.sin(turn)[:, np.newaxis] * y
    points = start[:, np.newaxis] + radius * np.sin(tilt)[:, np.newaxis, np.newaxis] * ring
    return np.moveaxis(points, -1, 0)


def cap(center: np.ndarray, radius: float) -> np.ndarray:
    """Points of the unit sphere within a distance of one of them, shape (3, M, N)."""
    x, y, z = triad(center)
    tilt = np.linspace(0.0, 2 * np.arcsin(min(radius, 2.0) / 2), 13)[:, np.newaxis, np.newaxis]
    turn = np.linspace(0, 2 * np.pi, 37)[:, np.newaxis]
    points = np.cos(tilt) * z + np.sin(tilt) * (np.cos(turn) * x + np.sin(turn) * y)
    return np.moveaxis(points, -1, 0)


def triad(along: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three directions at right angles, the last along a vector."""
    z = along / np.linalg.norm(along)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return x, np.cross(z, x), z


class Solids(NamedTuple):
    """Bodies at some times of a scene."""

    moving: Sequence[SceneBody]  # drawn at the frames `places`
    still: Sequence[SceneBody]
    wanted: Sequence[SceneBody]  # to be reached
    gates: Sequence[SceneBody]  # and cones about the last place
    places: np.ndarray  # frames at which those that move are drawn
    scale: float  # times as large as they are

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
