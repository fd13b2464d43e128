"""Scene: what can be seen, live as well, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ._page import cell_of, from_plain, open_pages, to_plain, write_page
from ._records import (
    SceneArrow,
    SceneBody,
    SceneEvent,
    SceneGoal,
    SceneJoint,
    ScenePath,
    ScenePlot,
)

LINK_COLOR = (210, 215, 222)
ROLE_COLORS = {"obstacle": (204, 107, 92), "reference": (64, 158, 97), "hull": (102, 140, 191)}
ROLE_OPACITIES = {"reference": 0.3, "estimate": 0.3, "hull": 0.15}


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


class LiveScene:
    """Bodies in a browser, and a goal that a person drags there.

    Parameters
    ----------
    scene : Scene
        Of one state; its shapes and where they begin.
    goal : ndarray, shape (7,), optional
        Pose that can be dragged.
    port : int
        Of this machine; nobody else's is reached.

    Raises
    ------
    ImportError
        If viser is not installed.
    """

    def __init__(self, scene: Scene, goal: np.ndarray | None = None, port: int = 8080) -> None:
        try:
            import viser  # type: ignore[import-not-found]
        except ImportError:
            raise ImportError(
                "live scenes need viser: install lgcontrol with its extra live, or show a run "
                "when it is done, view(run)"
            ) from None
        self._server: Any = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
        low, high = scene.extent
        size = float(np.max(high - low))
        stage = self._server.scene
        stage.set_up_direction("+z")
        stage.add_grid("/grid", 8 * size, 8 * size, cell_size=size / 4, section_size=size)
        # Names in the browser are numbers: slashes in those of bodies would make them parts.
        self._frames = [self._added(f"/body{k}", body) for k, body in enumerate(scene.bodies)]
        self._goal: Any = None
        if goal is not None:
            x, y, z, w = goal[3:]
            self._goal = stage.add_transform_controls(
                "/goal", scale=0.25 * size, position=goal[:3], wxyz=(w, x, y, z)
            )
        middle, away = (low + high) / 2, 6 * size * np.array([0.5, -0.75, 0.4])
        self._server.initial_camera.look_at = tuple(middle)
        self._server.initial_camera.position = tuple(middle + away)
        self._clock = self._server.gui.add_text("time [s]", "0.00", disabled=True)

    @property
    def url(self) -> str:
        """Address for a browser."""
        return f"http://127.0.0.1:{self._server.get_port()}"

    @property
    def goal(self) -> np.ndarray | None:
        """Pose of the goal as it was dragged, shape (7,)."""
        if self._goal is None:
            return None
        w, x, y, z = self._goal.wxyz
        return np.array([*self._goal.position, x, y, z, w])

    def move(self, t: float, bodies: Sequence[SceneBody]) -> None:
        """Put the bodies where they are in a scene of one state, at time t in s."""
        with self._server.atomic():
            for frame, body in zip(self._frames, bodies, strict=True):
                x, y, z, w = body.poses[0, 3:]
                frame.position, frame.wxyz = body.poses[0, :3], (w, x, y, z)
            self._clock.value = f"{t:.2f}"

    def close(self) -> None:
        """End the server."""
        self._server.stop()

    def _added(self, name: str, body: SceneBody) -> Any:
        x, y, z, w = body.poses[0, 3:]
        frame = self._server.scene.add_frame(
            name, show_axes=False, position=body.poses[0, :3], wxyz=(w, x, y, z)
        )
        for k, shape in enumerate(body.shapes):
            if hasattr(shape.geometry, "format"):  # meshes that only pages read
                continue
            vertices, faces = shape.surface(24)
            given = ROLE_COLORS.get(body.role, LINK_COLOR)
            opacity = ROLE_OPACITIES.get(body.role, 1.0)
            if shape.color is not None:
                red, green, blue, own = shape.color
                given = (round(255 * red), round(255 * green), round(255 * blue))
                opacity = min(opacity, own)
            self._server.scene.add_mesh_simple(
                f"{name}/{k}",
                vertices,
                faces,
                color=given,
                opacity=None if opacity >= 1 else opacity,
                flat_shading=True,
                side="double",
            )
        return frame


def view(*things: Any) -> Path | None:
    """Show models, runs and plans, several over each other.

    In a notebook as a cell; elsewhere as a file, which the browser opens.

    Parameters
    ----------
    *things : Scene, or anything with a ``scene()``
        Results, systems, trees: the first decides the camera; what follows has a colour of its own.

    Returns
    -------
    Path or None
        The file; None in a notebook.

    Raises
    ------
    TypeError
        If something has no scene.
    """
    if not things:
        raise TypeError("view() needs something to show, such as view(run) or view(run, other_run)")
    return open_pages([scene_of(thing) for thing in things])


def scene_of(thing: Any) -> Scene:
    """The scene of a thing."""
    if isinstance(thing, Scene):
        return thing
    if isinstance(thing, type) or not callable(getattr(thing, "scene", None)):
        raise TypeError(
            f"{type(thing).__name__} has no scene: give a SimulationResult, a System, a Multibody "
            "or a Scene; of a plan give system.scene(plan.trajectory)"
        )
    return thing.scene()
