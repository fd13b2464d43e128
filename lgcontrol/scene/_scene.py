"""Scene: what can be seen of a model, a plan, a run or a map, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ..groups import SE3
from ._shapes import BodyShape

BodyRole: TypeAlias = Literal["body", "reference", "obstacle", "estimate", "hull"]
PathRole: TypeAlias = Literal["trail", "reference", "plan", "estimate"]


@named_options
@dataclass(frozen=True, eq=False)
class SceneBody:
    """A body with its shapes, and where it is at the times of the scene.

    Parameters
    ----------
    name : str
    shapes : sequence of BodyShape
        In the axes of the body; none for a mere frame.
    poses : ndarray, shape (F, 7) or (1, 7)
        SE3 coordinates in the world at each time, or once for a body that stays.
    role : {"body", "reference", "obstacle", "estimate", "hull"}
        References, estimates and hulls are drawn pale; obstacles and hulls have no frame.
    """

    name: str
    shapes: Sequence[BodyShape]
    poses: np.ndarray
    role: BodyRole = "body"

    @property
    def is_fixed(self) -> bool:
        """Whether it stays where it is."""
        return len(self.poses) == 1

    def points(self, frame: int) -> np.ndarray:
        """Vertices of all surfaces in the world at one frame, shape (n, 3)."""
        pose = self.poses[0 if self.is_fixed else frame]
        known = [s for s in self.shapes if not hasattr(s.geometry, "format")]
        own = [s.surface(8)[0] for s in known] or [np.zeros((1, 3))]
        return SE3.act(pose, np.concatenate(own))


@named_options
@dataclass(frozen=True, eq=False)
class ScenePath:
    """Where a point goes.

    Parameters
    ----------
    name : str
    points : ndarray, shape (n, 3)
        In m.
    role : {"trail", "reference", "plan", "estimate"}
        Trails have a point for each time of the scene; others are drawn whole.
    """

    name: str
    points: np.ndarray
    role: PathRole = "trail"


@named_options
@dataclass(frozen=True, eq=False)
class SceneGoal:
    """A pose where something is to be, with its tolerance.

    Parameters
    ----------
    name : str
    pose : ndarray, shape (7,)
    tolerance : float
        Radius of the ball of positions that pass, m; 0 where there is none.
    """

    name: str
    pose: np.ndarray
    tolerance: float = 0.0


@named_options
@dataclass(frozen=True, eq=False)
class SceneArrow:
    """A force that acts at a point.

    Parameters
    ----------
    name : str
    starts, vectors : ndarray, shape (F, 3)
        Where it acts, m, and the force in world axes, in the unit.
    unit : str
    """

    name: str
    starts: np.ndarray
    vectors: np.ndarray
    unit: str = "N"


@named_options
@dataclass(frozen=True)
class SceneEvent:
    """Something that happened.

    Parameters
    ----------
    t : float
        In s.
    name : str
    """

    t: float
    name: str


@named_options
@dataclass(frozen=True, eq=False)
class ScenePlot:
    """Lines over time of one unit, to be drawn below the scene.

    Parameters
    ----------
    title, unit : str
    names : tuple of str
        Of the lines.
    t : ndarray, shape (n,)
    values : ndarray, shape (n, len(names))
    lower, upper : float
        Limits that are drawn; infinite where there are none.
    """

    title: str
    unit: str
    names: tuple[str, ...]
    t: np.ndarray
    values: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf


@named_options
@dataclass(frozen=True, eq=False)
class Scene:
    """Bodies that move, and what else there is to see with them; figures and pages draw it.

    Parameters
    ----------
    title : str
    t : ndarray, shape (F,)
        Increasing times in s; one for what does not move.
    bodies : sequence of SceneBody
    paths : sequence of ScenePath
    goals : sequence of SceneGoal
    arrows : sequence of SceneArrow
    events : sequence of SceneEvent
    plots : sequence of ScenePlot
    camera : ndarray, shape (2, 3), optional
        Where it stands and where it looks, m; found from the bodies if left out.
    notices : sequence of str
        What is not shown, and why: missing meshes, frames left out.

    Raises
    ------
    ValueError
        If times do not increase, or a body has neither one pose nor one for each time.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> from lgcontrol.io._shapes import SphereShape
    >>> rise = SE3.from_position(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> ball = SceneBody("ball", [BodyShape(SphereShape(0.1))], rise)
    >>> Scene("lift", np.array([0.0, 1.0]), [ball])
    Scene('lift', 2 frames, bodies: ball)
    """

    title: str
    t: np.ndarray
    bodies: Sequence[SceneBody] = ()
    paths: Sequence[ScenePath] = ()
    goals: Sequence[SceneGoal] = ()
    arrows: Sequence[SceneArrow] = ()
    events: Sequence[SceneEvent] = ()
    plots: Sequence[ScenePlot] = ()
    camera: np.ndarray | None = None
    notices: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        t = check_shape("t", self.t, (None,))
        if len(t) < 1 or (np.diff(t) <= 0).any():
            raise ValueError(f"times of a scene must increase, got {len(t)} from {t[:1]}")
        for body in self.bodies:
            check_shape(f"poses of {body.name!r}", body.poses, (None, 7))
            if len(body.poses) not in (1, len(t)):
                raise ValueError(
                    f"{body.name!r} has {len(body.poses)} poses; expected 1, or one for each of "
                    f"{len(t)} times"
                )

    def __repr__(self) -> str:
        """Title, number of frames, and bodies by name."""
        names = ", ".join(body.name for body in self.bodies)
        frames = "1 frame" if len(self.t) == 1 else f"{len(self.t)} frames"
        return f"Scene({self.title!r}, {frames}, bodies: {names or 'none'})"

    def frame_at(self, t: float) -> int:
        """Number of the frame nearest to a time."""
        return int(np.abs(self.t - t).argmin())

    @property
    def extent(self) -> np.ndarray:
        """Lower and upper corner of the box around all that is drawn, shape (2, 3), m."""
        some = np.unique(np.linspace(0, len(self.t) - 1, 25).astype(int))
        points = [
            body.points(int(k))
            for body in self.bodies
            for k in (some[:1] if body.is_fixed else some)
        ]
        points += [path.points for path in self.paths if len(path.points)]
        points += [goal.pose[None, :3] for goal in self.goals]
        every = np.concatenate([*points, np.zeros((0, 3))])
        every = every[np.isfinite(every).all(axis=1)]
        if not len(every):
            return np.array([[-1.0] * 3, [1.0] * 3])
        return np.stack([every.min(axis=0), every.max(axis=0)])
