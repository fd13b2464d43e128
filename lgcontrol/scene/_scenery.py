"""Scenery: what a run's scene is made of besides its states, and the scene of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..groups import SE3, SO3, LieGroup, check_element
from ._look import DrawnBody, ModelLook, coordinates_of, look_for
from ._obstacles import fitted, round_shapes
from ._records import SceneArrow, SceneBody, SceneEvent, SceneGoal, ScenePath, ScenePlot
from ._scene import Scene
from ._smooth import smooth
from ._uncertainty import state_ellipsoids

FRAMES = 2000  # of a scene; more make a page larger and its motion no smoother
POSE_NUMBERS = 400_000  # of all poses of a scene: 1.6 MB in single precision


@dataclass(frozen=True, eq=False)
class Scenery:
    """Knowledge of how a run looks, besides its states.

    Parameters
    ----------
    look : ModelLook, optional
        Of the plant.
    obstacles : sequence of SceneBody
        With one pose, or one for each state of the run; see `obstacle_bodies`.
    goals : sequence of SceneGoal
        Drawn in place of the reference.
    hull : (center or ends, radius), optional
        What a body takes of space, in its axes.
    events : sequence of SceneEvent
    """

    look: ModelLook | None = None
    obstacles: Sequence[SceneBody] = ()
    goals: Sequence[SceneGoal] = ()
    hull: tuple[Any, float] | None = None
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
    title : str
    group : LieGroup
    t : ndarray, shape (N,)
    x : ndarray, shape (N, nq)
    scenery : Scenery
    reference, estimate : ndarray, shape (N, nq), optional
    covariances : ndarray, shape (N, dim, dim), optional
        Of the errors of the estimate.
    inputs : mapping of str to ndarray, shape (N,), optional
        Those that are forces on a body are drawn as arrows.
    plan : ndarray, shape (M, nq), optional
        States of a plan, which is drawn dashed, on the group between its nodes.
    plots : sequence of ScenePlot
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
        bodies, paths = _placed(drawn, poses, "body")
        if reference is not None and not scenery.goals:
            wanted = look.poses(coordinates_of(look, group, reference[chosen]))
            bodies_wanted, ways = _followed(drawn, wanted)
            bodies, paths = bodies + bodies_wanted, paths + ways
        if estimate is not None and estimate.shape[1:] == (group.nq,):
            guessed = look.poses(coordinates_of(look, group, estimate[good][chosen]))
            paths += [
                ScenePath(f"{b.name}, estimate", _way(b.tip, guessed[:, k]), role="estimate")
                for k, b in enumerate(drawn)
                if b.tip is not None
            ]
            if covariances is not None and covariances.shape[1] == group.dim:
                bodies += state_ellipsoids(group, estimate[good], covariances[good])
        arrows = _arrows(drawn, poses, {k: u[good][chosen] for k, u in (inputs or {}).items()})
        if plan is not None:
            places = look.poses(coordinates_of(look, group, smooth(group, plan)))
            paths += [
                ScenePath(f"{b.name}, plan", _way(b.tip, places[:, k]), role="plan")
                for k, b in enumerate(drawn)
                if b.tip is not None
            ]
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


def _placed(
    drawn: Sequence[Any], poses: np.ndarray, role: Any
) -> tuple[list[SceneBody], list[ScenePath]]:
    bodies = [
        SceneBody(b.name, b.shapes, poses[:1, k] if b.is_fixed else poses[:, k], role=role)
        for k, b in enumerate(drawn)
        if b.shapes or not b.is_fixed
    ]
    paths = [
        ScenePath(b.name, _way(b.tip, poses[:, k]))
        for k, b in enumerate(drawn)
        if b.tip is not None and len(poses) > 1
    ]
    return bodies, paths


def _followed(drawn: Sequence[Any], wanted: np.ndarray) -> tuple[list[SceneBody], list[ScenePath]]:
    """A reference: the bodies where they are to stay, or the way they are to go."""
    if np.ptp(wanted, axis=0).max(initial=0.0) < 1e-9:
        some = [(k, b) for k, b in enumerate(drawn) if not b.is_fixed]
        return [
            SceneBody(f"{b.name}, reference", b.shapes, wanted[:1, k], role="reference")
            for k, b in some
        ], []
    return [], [
        ScenePath(f"{b.name}, reference", _way(b.tip, wanted[:, k]), role="reference")
        for k, b in enumerate(drawn)
        if b.tip is not None
    ]


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


def _way(tip: np.ndarray, poses: np.ndarray) -> np.ndarray:
    return SE3.act(poses, tip)
