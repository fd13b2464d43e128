"""Obstacles in figures: capsules, balls and half-spaces, however they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..groups import SE3
from ..scene import SceneBody
from ..scene._internal import ConeShape, obstacle_bodies
from ._poses import axes_of
from ._style import FAINT, GRID, INK, SMALL, halo

Obstacles: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""What `keep_out` takes, or (centre or both ends of an axis, radius) in m; by name if any."""


LABELS = 100  # their order: above all that axes in space sort by depth


class RoundObstacle(NamedTuple):
    """Capsule in space, a ball where both ends are the same, or a half-space.

    Attributes
    ----------
    ends : ndarray, shape (2, 3)
        Of the axis, m; of a half-space a point of its plane twice.
    radius : float
        m, 0 of a half-space.
    name : str
    normal : ndarray, shape (3,), or None
        Out of a half-space.
    is_past : bool
        Whether one that moves was there at the start.
    is_gate : bool
        Whether it is to be kept in, not out of.
    """

    ends: np.ndarray
    radius: float
    name: str = ""
    normal: np.ndarray | None = None
    is_past: bool = False
    is_gate: bool = False


def obstacles_of(given: Obstacles, t: np.ndarray) -> list[RoundObstacle]:
    """Obstacles as they are given, with the names that they were given.

    Raises
    ------
    TypeError, ValueError
        If one is none of the kinds, or its radius is not positive.
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


_WANTED = "an obstacle is (center of 2 or 3 numbers or both ends of an axis, radius > 0)"


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
