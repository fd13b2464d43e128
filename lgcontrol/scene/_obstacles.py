"""Obstacles, cones and gates as bodies of a scene; what has no end is cut at what else is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen._internal import as_numbers
from ..groups import SE3
from ..io._internal import BoxShape
from ._records import SceneBody
from ._shapes import UPRIGHT, BodyShape, ConeShape, between, turn_z_to

PLATE = 0.005  # thickness of half-spaces and gates, as a share of their sides
CUT_BEYOND = 1.2  # sides of what has no end, as a share of the largest side of what else is seen
CONE_REACH = 1.5  # length of a cone, in sizes of the body that it is about


@dataclass(frozen=True, eq=False)
class Inside:
    """What a bound keeps a body or a direction in, not out of.

    Parameters
    ----------
    of : GateBox or Cone
    """

    of: Any


@dataclass(frozen=True, eq=False)
class GateBox:
    """Box along the axes of the world that a body passes through.

    Parameters
    ----------
    lower, upper : ndarray, shape (3,)
        Corners, m; infinite where it has no end.
    """

    lower: np.ndarray
    upper: np.ndarray


def obstacle_bodies(
    obstacles: Sequence[Any] | Mapping[str, Any], t: np.ndarray, p: np.ndarray | None = None
) -> list[SceneBody]:
    """Obstacles and gates as bodies, which move if their places are functions of time.

    Half-spaces, cones and gates without an end have infinite sizes, which `fitted` cuts.

    Parameters
    ----------
    obstacles : mapping of str to object, or sequence
        Obstacles of `lgcontrol.optimal`, or (center or both ends, radius); `Inside` for gates and
        for cones that a direction stays in.
    t : ndarray, shape (N,)
        Times at which those that move are placed.
    p : ndarray, optional
        Parameters that their places depend on.
    """
    own = np.zeros(0) if p is None else p
    named = obstacles
    if not isinstance(named, Mapping):
        plain = [type(one).__name__.lower() for one in named]
        kinds = ["obstacle" if kind in ("tuple", "list") else kind for kind in plain]
        named = {
            f"{kind} {k + 1}": one for k, (kind, one) in enumerate(zip(kinds, named, strict=True))
        }
    return [_obstacle_body(name, one, t, own) for name, one in named.items()]


def _obstacle_body(name: str, one: Any, t: np.ndarray, p: np.ndarray) -> SceneBody:
    if isinstance(one, Inside):
        return replace(_obstacle_body(name, one.of, t, p), role="gate")
    if isinstance(one, GateBox):
        ends = np.isfinite([one.lower, one.upper]).all(axis=0)
        lower, upper = (np.where(ends, side, 0.0) for side in (one.lower, one.upper))
        size, middle = np.where(ends, upper - lower, np.inf), (lower + upper) / 2
        shape = BodyShape(BoxShape((size[0], size[1], size[2])))
        return SceneBody(name, [shape], SE3.from_position(middle)[np.newaxis], role="obstacle")
    if hasattr(one, "half_angle"):
        axes = _places(one.axis, t, p)
        angle = float(_places(one.half_angle, t, p)[0, 0])  # drawn with that of the start
        poses = _poses(np.zeros((len(axes), 3)), axes)
        return SceneBody(name, [BodyShape(ConeShape(angle, np.inf))], poses, role="obstacle")
    if hasattr(one, "normal"):
        points, normals = (_places(getattr(one, key), t, p) for key in ("point", "normal"))
        across = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        plate = BodyShape(BoxShape((np.inf, np.inf, 0.0)), color=(0.55, 0.6, 0.65, 0.35))
        return SceneBody(name, [plate], _poses(points, across), role="obstacle")
    ends, radius = ends_and_radius(one)
    ways = [_places(end, t, p) for end in ends]
    size = float(_places(radius, t, p)[0, 0])  # drawn with the radius of the start
    middle, along = np.mean(ways, axis=0), ways[-1] - ways[0]
    length = float(np.linalg.norm(along[0]))
    shape = between([0, 0, -length / 2], [0, 0, length / 2], size)
    return SceneBody(name, [shape], _poses(middle, along), role="obstacle")


def fitted(
    bodies: Sequence[SceneBody], extent: np.ndarray, carrier: SceneBody | None
) -> list[SceneBody]:
    """Bodies whose infinite sizes end with a scene.

    Parameters
    ----------
    bodies : sequence of SceneBody
        Of `obstacle_bodies`.
    extent : ndarray, shape (2, 3)
        Corners of what else is in the scene, m.
    carrier : SceneBody, optional
        Body that cones of directions are about; the origin if left out.
    """
    return [_cut(body, extent, carrier) for body in bodies]


def _cut(body: SceneBody, extent: np.ndarray, carrier: SceneBody | None) -> SceneBody:
    shape = body.shapes[0]
    geometry, low, high = shape.geometry, *extent
    side = CUT_BEYOND * (float((high - low).max()) or 1.0)
    if isinstance(geometry, ConeShape):
        size = float(np.ptp(carrier.extent(np.array([0])), axis=1).max()) if carrier else side
        places = np.zeros((1, 3)) if carrier is None else carrier.poses[:, :3]
        shape = replace(shape, geometry=replace(geometry, length=CONE_REACH * (size or 1.0)))
        count = max(len(places), len(body.poses))
        parts = [
            np.broadcast_to(some, (count, some.shape[1])) for some in (places, body.poses[:, 3:])
        ]
        return replace(body, shapes=[shape], poses=np.hstack(parts))
    if not isinstance(geometry, BoxShape):
        return body
    size = np.asarray(geometry.size)
    poses, turned = np.array(body.poses), SE3.homogeneous(body.poses)[:, :3, :3]
    for k in np.flatnonzero(np.isinf(size)):  # its middle next to that of the scene
        axis = turned[:, :, k]
        poses[:, :3] += axis * np.sum(axis * ((low + high) / 2 - poses[:, :3]), axis=1)[:, None]
    x, y, z = np.maximum(np.where(np.isinf(size), side, size), PLATE * side).tolist()
    if size[2] == 0.0 and body.role == "obstacle":  # a half-space ends at its plane
        poses[:, :3] -= z / 2 * turned[:, :, 2]
    return replace(body, shapes=[replace(shape, geometry=BoxShape((x, y, z)))], poses=poses)


def _poses(places: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Poses whose z is along a direction; one where all are the same."""
    turns = [turn_z_to(way) if way.any() else UPRIGHT[3:] for way in along]
    poses = np.hstack([places, turns])
    return poses if np.ptp(poses, axis=0).any() else poses[:1]


def round_shapes(ends: Any, radius: float) -> list[BodyShape]:
    """A ball about a centre, or a capsule between two ends, shape (3,) or (2, 3)."""
    still = np.zeros(1)
    places = [_places(end, still, still)[0] for end in ends_and_radius((ends, radius))[0]]
    return [between(places[0], places[-1], float(radius))]


def ends_and_radius(one: Any) -> tuple[list[Any], Any]:
    """Centre or both ends, and radius, of a ball or a capsule however it is given."""
    if isinstance(one, tuple | list) and len(one) == 2:
        places = np.atleast_2d(as_numbers("center of a ball or ends of a capsule", one[0]))
        return [*places], one[1]
    for names in (("center", "radius"), ("start", "end", "radius")):
        if not isinstance(one, type) and all(hasattr(one, key) for key in names):
            *ends, radius = (getattr(one, key) for key in names)
            return ends, radius
    raise TypeError(
        "an obstacle is a Sphere, Capsule, HalfSpace or Cone, or (center of 2 or 3 numbers or both "
        f"ends of an axis, radius); got {one!r}"
    )


def _places(value: Any, t: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Numbers at all times, (N, 3), or (N, 1) of a radius; points of the plane get z = 0."""
    if callable(value):
        time = ca.SX.sym("t")
        given: Any = value(time, ca.DM(p))
        place = ca.Function("place", [time], [ca.vec(ca.SX(given))])
        found = np.asarray(place(ca.DM(t).T)).T
    else:
        found = np.broadcast_to(np.atleast_1d(as_numbers("place of an obstacle", value)),
                                (len(t), np.size(value)))  # fmt: skip
    if found.shape[1] != 2:
        return np.array(found)
    return np.hstack([found, np.zeros((len(t), 1))])
