"""Scenery: obstacles, uncertainty, trails and bodies as records of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen._internal import as_numbers
from ..groups import SE3, SO3, LieGroup, check_element
from ..io._internal import BoxShape
from ._look import DrawnBody, ModelLook, coordinates_of, look_for, moving_blocks, smooth
from ._records import (
    UPRIGHT,
    BodyShape,
    ConeShape,
    Mesh,
    PathRole,
    SceneArrow,
    SceneBody,
    SceneEvent,
    SceneGoal,
    ScenePath,
    ScenePlot,
    between,
    ellipsoid,
    turn_z_to,
)
from ._scene import Scene

PLATE = 0.005  # thickness of half-spaces and gates, as a share of their sides
CUT_BEYOND = 1.2  # sides of what has no end, as a share of the largest side of what else is seen
CONE_REACH = 1.5  # length of a cone, in sizes of the body that it is about
DRAWN_DEVIATIONS = 2.0
MOST_ELLIPSOIDS = 15  # along a path
THINNEST_AXIS = 0.02  # of the longest, so that those in the plane can be seen
FRAMES = 2000  # of a scene; more make a page larger and its motion no smoother
POSE_NUMBERS = 400_000  # of all poses of a scene: 1.6 MB in single precision


@dataclass(frozen=True, eq=False)
class Inside:
    """What a bound keeps a body or a direction in, not out of."""

    of: Any


@dataclass(frozen=True, eq=False)
class GateBox:
    """Box along the axes of the world that a body passes through.

    Corners are in m, infinite where it has no end.
    """

    lower: np.ndarray
    upper: np.ndarray


def obstacle_bodies(
    obstacles: Sequence[Any] | Mapping[str, Any], t: np.ndarray, p: np.ndarray | None = None
) -> list[SceneBody]:
    """Obstacles and gates as bodies, which move if their places are functions of time.

    Half-spaces, cones and gates without an end have infinite sizes, which `fitted` cuts. They are
    obstacles of `lgcontrol.optimal`, or (center or both ends, radius), perhaps by name; `Inside`
    for gates and for cones that a direction stays in. Those that move are placed at the times t, by
    the parameters p.
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

    The extent are corners of what else is in the scene, m. Cones of directions are about the
    carrier, or the origin.
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


def position_ellipsoids(
    name: str, poses: np.ndarray, covariances: np.ndarray, most: int = MOST_ELLIPSOIDS
) -> list[SceneBody]:
    """Ellipsoids of 2σ at some poses, at equal distances along their path.

    Covariances of the positions are in the axes of the poses, m².
    """
    good = np.isfinite(poses).all(axis=1) & np.isfinite(covariances).all(axis=(1, 2))
    poses, covariances = poses[good], covariances[good]
    steps = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    if len(poses) > most:
        wanted = np.linspace(0.0, length[-1], most)
        rows = np.unique(np.searchsorted(length, wanted).clip(max=len(poses) - 1))
        poses, covariances = poses[rows], covariances[rows]
    return [
        SceneBody(f"{name}, 2σ", [shape], pose[np.newaxis], role="estimate")
        for pose, P in zip(poses, covariances, strict=True)
        if (shape := _ellipsoid(P)) is not None
    ]


def state_ellipsoids(group: LieGroup, x: np.ndarray, P: np.ndarray) -> list[SceneBody]:
    """Ellipsoids of the blocks of a state that move a body.

    Covariances of the errors are in the tangent coordinates of the group.
    """
    found: list[SceneBody] = []
    for name, block, at, own in moving_blocks(group):
        H = np.asarray(block.selection)[:3]
        positions = H @ P[:, own, own] @ H.T
        found += position_ellipsoids(name or "body", np.asarray(block.embed(x[:, at])), positions)
    return found


def place_bodies(
    places: Mapping[str, np.ndarray], covariances: Mapping[str, np.ndarray]
) -> list[SceneBody]:
    """Estimated points by name, m: ellipsoids of 2σ in world axes.

    Points and covariances have two or three axes.
    """
    found = []
    for name, place in places.items():
        P, middle = np.zeros((3, 3)), np.zeros(3)
        own = np.asarray(covariances[name])
        P[: len(own), : len(own)] = own
        middle[: len(place)] = place
        found += position_ellipsoids(name, SE3.from_position(middle)[np.newaxis], P[np.newaxis])
    return found


def _ellipsoid(P: np.ndarray) -> BodyShape | None:
    values, axes = np.linalg.eigh(P)
    half = DRAWN_DEVIATIONS * np.sqrt(np.maximum(values, 0.0))
    if half.max() <= 1e-9:
        return None
    made = ellipsoid(axes * np.maximum(half, THINNEST_AXIS * half.max()), np.zeros(3))
    assert isinstance(made.geometry, Mesh)
    return made if np.linalg.det(axes) > 0 else BodyShape(_flipped(made.geometry))


def _flipped(mesh: Mesh) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


@dataclass(frozen=True, eq=False)
class Scenery:
    """Knowledge of how a run looks, besides its states."""

    look: ModelLook | None = None  # of the plant
    obstacles: Sequence[SceneBody] = ()  # one pose, or one for each state of the run
    goals: Sequence[SceneGoal] = ()  # drawn in place of the reference
    hull: tuple[Any, float] | None = None  # what a body takes of space, in its axes
    events: Sequence[SceneEvent] = ()


def scene_of_states(
    title: str,
    group: LieGroup,
    t: np.ndarray,
    x: np.ndarray,
    scenery: Scenery,
    *,
    reference: np.ndarray | None = None,
    estimate: np.ndarray | None = None,
    covariances: np.ndarray | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    plan: np.ndarray | None = None,
    plots: Sequence[ScenePlot] = (),
    frames: int | None = None,
) -> Scene:
    """Scene of states over time, shape (N, nq), with all that is known besides.

    Parameters
    ----------
    t : ndarray, shape (N,)
    x : ndarray, shape (N, nq)
    reference, estimate : ndarray, shape (N, nq), optional
    covariances : ndarray, shape (N, dim, dim), optional
        Of the errors of the estimate.
    inputs : mapping of str to ndarray, shape (N,), optional
        Those that are forces on a body are drawn as arrows.
    plan : ndarray, shape (M, nq), optional
        States of a plan, which is drawn dashed, on the group between its nodes.
    frames : int, optional
        Largest number of frames; chosen by the number of bodies if left out.

    Raises
    ------
    ValueError
        If nothing in the state moves a body.
    """
    good = np.isfinite(x).all(axis=1)  # runs that diverge end in NaN
    t, x = t[good], x[good]
    reference = None if reference is None else reference[good]
    look = look_for(scenery.look, group, x)
    notices: list[str] = []
    drawn = [] if look is None else list(look.bodies(notices))
    if look is None and not scenery.obstacles:
        raise ValueError(
            f"{title}: the state {group} has no block that moves a body in space, and the system "
            "does not know how it looks: give it a look, as in system.with_look([...])"
        )
    moving = sum(not body.is_fixed for body in drawn)
    most = min(FRAMES, POSE_NUMBERS // (7 * moving or 1)) if frames is None else frames
    chosen = _chosen(t, most)
    if len(chosen) < len(t):
        notices.append(
            f"{len(chosen)} of {len(t)} states are shown, one each "
            f"{(t[-1] - t[0]) / (len(chosen) - 1):.3g} s; scene(frames=…) takes more"
        )
    t, x = t[chosen], x[chosen]
    bodies: list[SceneBody] = []
    paths: list[ScenePath] = []
    arrows: list[SceneArrow] = []
    if look is not None:
        poses = look.poses(coordinates_of(look, group, x))
        bodies = [
            SceneBody(b.name, b.shapes, poses[:1, k] if b.is_fixed else poses[:, k])
            for k, b in enumerate(drawn)
            if b.shapes or not b.is_fixed
        ]
        paths = _ways(drawn, poses, "trail") if len(poses) > 1 else []
        if reference is not None and not scenery.goals:
            wanted = look.poses(coordinates_of(look, group, reference[chosen]))
            bodies_wanted, ways = _followed(drawn, wanted)
            bodies, paths = bodies + bodies_wanted, paths + ways
        if estimate is not None and estimate.shape[1:] == (group.nq,):
            guessed = look.poses(coordinates_of(look, group, estimate[good][chosen]))
            paths += _ways(drawn, guessed, "estimate")
            if covariances is not None and covariances.shape[1] == group.dim:
                bodies += state_ellipsoids(group, estimate[good], covariances[good])
        arrows = _arrows(drawn, poses, {k: u[good][chosen] for k, u in (inputs or {}).items()})
        if plan is not None:
            places = look.poses(coordinates_of(look, group, smooth(group, plan)))
            paths += _ways(drawn, places, "plan")
        if scenery.hull is not None and moving:
            first = next(k for k, body in enumerate(drawn) if not body.is_fixed)
            bodies.append(
                SceneBody("hull", round_shapes(*scenery.hull), poses[:, first], role="hull")
            )
    around = [
        one if one.is_fixed else replace(one, poses=one.poses[good][chosen])
        for one in scenery.obstacles
    ]
    carrier = next((body for body in bodies if body.role == "body" and not body.is_fixed), None)
    extent = Scene("", t, bodies, paths=paths, goals=scenery.goals).extent
    bodies += fitted(around, extent, carrier)
    return Scene(
        title,
        t,
        bodies,
        paths=paths,
        goals=scenery.goals,
        arrows=arrows,
        events=[event for event in scenery.events if t[0] <= event.t <= t[-1]],
        plots=plots,
        joints=look.joints(coordinates_of(look, group, x)[0]) if look and len(t) == 1 else (),
        notices=notices,
    )


def goals_of(goals: Sequence[Any]) -> list[SceneGoal]:
    """Poses as goals; those that are goals stay."""
    names = ["goal"] if len(goals) == 1 else [f"goal {k + 1}" for k in range(len(goals))]
    return [
        one if isinstance(one, SceneGoal) else SceneGoal(name, check_element(name, one, SE3))
        for name, one in zip(names, goals, strict=True)
    ]


def _chosen(t: np.ndarray, most: int) -> np.ndarray:
    """Indices of states that are shown: all, or those next to equal times."""
    if len(t) <= most:
        return np.arange(len(t))
    wanted = np.linspace(t[0], t[-1], max(most, 2))
    after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    return np.unique(np.where(wanted - t[after - 1] < t[after] - wanted, after - 1, after))


def _ways(drawn: Sequence[DrawnBody], poses: np.ndarray, role: PathRole) -> list[ScenePath]:
    """Paths of the points of bodies that have one."""
    said = "" if role == "trail" else f", {role}"
    return [
        ScenePath(f"{body.name}{said}", SE3.act(poses[:, k], body.tip), role=role)
        for k, body in enumerate(drawn)
        if body.tip is not None
    ]


def _followed(drawn: Sequence[Any], wanted: np.ndarray) -> tuple[list[SceneBody], list[ScenePath]]:
    """A reference: the bodies where they are to stay, or the way they are to go."""
    if np.ptp(wanted, axis=0).max(initial=0.0) < 1e-9:
        some = [(k, b) for k, b in enumerate(drawn) if not b.is_fixed]
        return [
            SceneBody(f"{b.name}, reference", b.shapes, wanted[:1, k], role="reference")
            for k, b in some
        ], []
    return [], _ways(drawn, wanted, "reference")


def _arrows(
    drawn: Sequence[DrawnBody], poses: np.ndarray, inputs: Mapping[str, np.ndarray]
) -> list[SceneArrow]:
    """Forces that are inputs and ever act."""
    found, none = [], np.zeros(len(poses))
    for k, body in enumerate(drawn):
        for push in body.pushes:
            force = np.column_stack([inputs.get(name, none) for name in push.inputs])
            if not force.any():
                continue
            turned = force if push.in_world else SO3.act(poses[:, k, 3:], force)
            found.append(SceneArrow(push.name, SE3.act(poses[:, k], push.point), turned))
    return found
