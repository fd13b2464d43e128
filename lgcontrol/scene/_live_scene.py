"""LiveScene: a scene that a running program moves, in a browser through viser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._records import SceneBody
from ._scene import Scene

LINK_COLOR = (210, 215, 222)
ROLE_COLORS = {"obstacle": (204, 107, 92), "reference": (64, 158, 97), "hull": (102, 140, 191)}
ROLE_OPACITIES = {"reference": 0.3, "estimate": 0.3, "hull": 0.15}


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
