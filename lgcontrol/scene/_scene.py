"""Scene: what can be seen of a model, a plan, a run or a map, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ._page import cell_of, open_pages, write_page
from ._plain import from_plain, to_plain
from ._records import (
    SceneArrow,
    SceneBody,
    SceneEvent,
    SceneGoal,
    SceneJoint,
    ScenePath,
    ScenePlot,
)


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
        Its position and the point it looks at, m; found from the bodies if left out.
    joints : sequence of SceneJoint
        Of a robot at rest, which pages move by sliders.
    notices : sequence of str
        Parts that are not shown, and why: missing meshes, frames left out.

    Raises
    ------
    ValueError
        If times do not increase, or a body has neither one pose nor one for each time.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> from lgcontrol.scene import box
    >>> rise = SE3.from_position(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> cube = SceneBody("cube", [box([0.1, 0.1, 0.1])], rise)
    >>> Scene("lift", np.array([0.0, 1.0]), [cube])
    Scene('lift', 2 frames, bodies: cube)
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
    joints: Sequence[SceneJoint] = ()
    notices: Sequence[str] = ()

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

    def view(self, *others: Scene) -> Path | None:
        """Show it, and others over it; see `lgcontrol.scene.view`."""
        return open_pages([self, *others])

    def to_html(self, path: str | Path, *others: Scene) -> Path:
        """Write a page that shows it: one file that needs no network.

        Parameters
        ----------
        path : str or Path
            An ``.html`` file.
        *others : Scene
            Shown over it, such as another run, each in a colour of its own.

        Returns
        -------
        Path
        """
        return write_page(path, [self, *others])

    def _repr_html_(self) -> str:
        """The page as a cell of a notebook."""
        return cell_of([self])

    def to_plain(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Description that JSON can hold, in which texts name arrays, and the arrays."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Scene:
        """The scene that `to_plain` described."""
        return cls(**from_plain(description, arrays))

    def frame_at(self, t: float) -> int:
        """Number of the frame nearest to a time."""
        return int(np.abs(self.t - t).argmin())

    @property
    def extent(self) -> np.ndarray:
        """Lower and upper corner of the box around all that is drawn, shape (2, 3), m."""
        some = np.unique(np.linspace(0, len(self.t) - 1, 25).astype(int))
        points = [body.extent(some).reshape(-1, 3) for body in self.bodies]
        points += [path.points for path in self.paths if len(path.points)]
        points += [goal.pose[None, :3] for goal in self.goals]
        every = np.concatenate([*points, np.zeros((0, 3))])
        every = every[np.isfinite(every).all(axis=1)]
        if not len(every):
            return np.array([[-1.0] * 3, [1.0] * 3])
        return np.stack([every.min(axis=0), every.max(axis=0)])
