"""animate_run: bodies with their frames and trails, moving."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import named_options
from ..scene._internal import is_attitude
from ._plot_path import known_scene, poses_of_scene
from ._run import Bodies, PlottedRun, body_poses, is_planar
from ._solids import is_round, round_obstacles, solids_of

SUFFIXES = (".gif", ".mp4")
LONGEST_FILM = 30.0  # seconds a film takes unless asked otherwise


class Movie:
    """A film that is not written yet: notebooks play it, `save` writes it.

    Parameters
    ----------
    scene : object
        Bodies that can be shown at each of its times; made by `animate_run`.
    fps : int
        Frames per second.

    Attributes
    ----------
    times : ndarray, shape (F,)
        Simulated time of each frame, s.
    """

    def __init__(self, scene: Any, fps: int) -> None:
        self._scene, self.times, self.fps = scene, scene.times, fps

    def save(self, path: str | Path) -> Path:
        """Write a ``.gif`` (through Pillow) or ``.mp4`` file (needs ffmpeg).

        Raises
        ------
        ValueError
            If the name has another ending.
        RuntimeError
            If an MP4 file is asked for and there is no ffmpeg.
        """
        from ._movie import write

        return write(self._scene, _target(Path(path)), self.fps)

    def _repr_html_(self) -> str:
        from ._movie import gif_bytes

        picture = b64encode(gif_bytes(self._scene, self.fps)).decode()
        return f'<img src="data:image/gif;base64,{picture}">'


@named_options
def animate_run(
    run: PlottedRun,
    path: str | Path | None = None,
    fps: int = 25,
    *,
    speed: float | None = None,
    bodies: Bodies | None = None,
    linked: bool = False,
) -> Movie | Path:
    """Bodies with their trails, moving; the reference is dashed.

    Bodies look as the plant knows them; those without shapes are darts with their frames.

    Parameters
    ----------
    run : SimulationResult or Trajectory
        Or anything with ``group``, ``t``, ``x`` and, if it likes, ``name`` and ``reference``.
    path : str or Path, optional
        A ``.gif`` (through Pillow) or ``.mp4`` file (needs ffmpeg) to write.
    fps : int
        Frames per second of the film, 1 to 100.
    speed : float, optional
        Simulated seconds per second of the film: real time if left out, but faster for runs that
        would take more than 30 s.
    bodies : callable, optional
        See `plot_path`.
    linked : bool
        Whether each body is joined to the one before, as the links of an arm.

    Returns
    -------
    Path or Movie
        The file written; without a path a film that notebooks play.

    Raises
    ------
    ValueError
        If nothing in the state is a pose, or the name has another ending.
    RuntimeError
        If an MP4 file is asked for and there is no ffmpeg.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> from lgcontrol.systems import Trajectory
    >>> t = np.linspace(0, 1, 50)
    >>> circle = Trajectory(SE2, t, SE2.exp(np.outer(t, [6.28, 0, 6.28])))
    >>> animate_run(circle, "circle.gif", fps=10).name
    'circle.gif'
    """
    if not 1 <= fps <= 100:
        raise ValueError(f"fps must be from 1 to 100, got {fps}")
    duration = float(run.t[-1] - run.t[0])
    if speed is None:
        speed = max(1.0, duration / LONGEST_FILM)
    if not (np.isfinite(speed) and speed > 0):
        raise ValueError(f"speed must be positive, got {speed}")
    target = None if path is None else _target(Path(path))
    from ._movie import MovingBodies

    times = run.t[0] + speed * np.arange(int(fps * duration / speed + 1e-9) + 1) / fps
    look = known_scene(run) if bodies is None else None
    solids = None if look is None else solids_of(look, 2)
    standing = [] if look is None else [one for one in look.bodies if is_round(one)]
    around = [part for one in standing for part in round_obstacles(one, one.name)]
    rows = None
    if look is None or is_attitude(run.group):
        poses = _at(run, run.x, times, bodies)
        reference = getattr(run, "reference", None)
        goal = None if reference is None else _at(run, reference, times, bodies)
    else:
        poses, goal, _ = poses_of_scene(look, None)
    if look is not None:
        rows = np.array([look.frame_at(time) for time in times])
        if not is_attitude(run.group):
            poses = poses[rows]
    scene = MovingBodies(
        poses,
        goal,
        times,
        getattr(run, "name", ""),
        speed=speed,
        linked=linked,
        planar=is_planar(poses)
        and (goal is None or is_planar(goal))
        and (solids is None or solids.is_planar),
        attitude=bodies is None and is_attitude(run.group),
        solids=solids,
        rows=rows,
        obstacles=around,
    )
    movie = Movie(scene, fps)
    return movie if target is None else movie.save(target)


def _at(run: Any, x: np.ndarray, times: np.ndarray, bodies: Bodies | None) -> np.ndarray:
    """Poses at the times of the frames, interpolated on the group of the state."""
    last = len(run.t) - 1
    k = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, max(last - 1, 0))
    after = np.minimum(k + 1, last)
    span = np.where(after > k, run.t[after] - run.t[k], 1.0)
    share = np.clip((times - run.t[k]) / span, 0.0, 1.0)
    return body_poses(run.group, run.group.interpolate(x[k], x[after], share), bodies)


def _target(path: Path) -> Path:
    """The path, if a film can be written there."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: an animation is written as {' or '.join(SUFFIXES)}")
    if path.suffix.lower() == ".mp4":
        from ._movie import can_write_mp4

        if not can_write_mp4():
            raise RuntimeError(
                f"{path}: MP4 files need the program ffmpeg, which is not on PATH; install it, or "
                "write a .gif file"
            )
    return path
