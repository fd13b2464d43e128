"""What scenes are made of: bodies, paths, goals, arrows, events, plots, joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..codegen import named_options
from ..groups import SE3
from ._shapes import BodyShape

BodyRole: TypeAlias = Literal["body", "reference", "obstacle", "gate", "estimate", "hull"]
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
    role : {"body", "reference", "obstacle", "gate", "estimate", "hull"}
        References, gates, estimates and hulls are drawn pale; only bodies have a frame.
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
        return SE3.act(self.poses[0 if self.is_fixed else frame], self._vertices)

    def extent(self, frames: np.ndarray) -> np.ndarray:
        """Corners in the world of the box about it in its axes, at some frames, (k, 8, 3)."""
        own = self._vertices
        low, high = own.min(axis=0), own.max(axis=0)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        T = SE3.homogeneous(self.poses[:1] if self.is_fixed else self.poses[frames])
        placed = (low + corners * (high - low)) @ np.swapaxes(T[:, :3, :3], 1, 2)
        return placed + T[:, np.newaxis, :3, 3]

    @property
    def _vertices(self) -> np.ndarray:
        """Of all surfaces in the axes of the body; its origin where there are none."""
        known = [s for s in self.shapes if not hasattr(s.geometry, "format")]
        return np.concatenate([s.surface(8)[0] for s in known] or [np.zeros((1, 3))])


@named_options
@dataclass(frozen=True, eq=False)
class ScenePath:
    """Path of a point.

    Parameters
    ----------
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
    starts, vectors : ndarray, shape (F, 3)
        Point of action, m, and the force in world axes, in the unit.
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
    """

    t: float
    name: str


@named_options
@dataclass(frozen=True, eq=False)
class ScenePlot:
    """Lines over time of one unit, to be drawn below the scene.

    Parameters
    ----------
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
class SceneJoint:
    """How a body is carried, so that a page can move it: ``T = before · exp(q · twist) · after``.

    With ``q = scale · value of the leader + shift``.

    Parameters
    ----------
    name : str
        Of the joint.
    body, carrier : str
        Bodies of the scene; joints of carriers come first.
    before, after : ndarray, shape (7,)
    twist : ndarray, shape (6,)
        For a unit of the coordinate; zero for joints that pages do not move.
    value : float
        Coordinate as the scene shows it.
    lower, upper : float
        Limits; infinite where there are none.
    leader : str
        Joint that it follows, or itself.
    """

    name: str
    body: str
    carrier: str
    before: np.ndarray
    after: np.ndarray
    twist: np.ndarray
    value: float
    lower: float
    upper: float
    leader: str
    scale: float = 1.0
    shift: float = 0.0
