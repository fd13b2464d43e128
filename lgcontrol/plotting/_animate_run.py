"""animate_run: bodies with their frames and trails, moving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..systems import Trajectory
from ._poses import body_poses, is_attitude, is_planar
from ._run import Run

SUFFIXES = (".gif", ".mp4")


def animate_run(
    run: Run,
    path: str | Path | None = None,
    fps: int = 25,
    *,
    speed: float = 1.0,
    bodies: Callable[[np.ndarray], Any] | None = None,
    linked: bool = False,
) -> Any:
    """Bodies with their frames and trails, moving in real time; the reference is dashed.

    Parameters
    ----------
    run : SimulationResult or Trajectory
        Or anything with ``group``, ``t``, ``x`` and, if it likes, ``name`` and ``reference``.
    path : str or Path, optional
        A ``.gif`` (through Pillow) or ``.mp4`` file (needs ffmpeg) to write.
    fps : int
        Frames per second of the film, 1 to 100.
    speed : float
        Simulated seconds per second of the film.
    bodies : callable, optional
        See `plot_path`.
    linked : bool
        Whether each body is joined to the one before, as the links of an arm.

    Returns
    -------
    Path or matplotlib.animation.FuncAnimation
        The file written; without a path an animation, which notebooks play.

    Raises
    ------
    ValueError
        If nothing in the state is a pose, or the name has another ending.
    RuntimeError
        If an MP4 file is asked for and there is no ffmpeg.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> t = np.linspace(0, 1, 50)
    >>> circle = Trajectory(SE2, t, SE2.exp(np.outer(t, [6.28, 0, 6.28])))
    >>> animate_run(circle, "circle.gif", fps=10).name
    'circle.gif'
    """
    if not 1 <= fps <= 100:
        raise ValueError(f"fps must be from 1 to 100, got {fps}")
    if not (np.isfinite(speed) and speed > 0):
        raise ValueError(f"speed must be positive, got {speed}")
    target = None if path is None else _target(Path(path))
    from ._movie import can_write_mp4, play, write
    from ._scene import Scene

    if target is not None and target.suffix.lower() == ".mp4" and not can_write_mp4():
        raise RuntimeError(
            f"{target}: MP4 files need the program ffmpeg, which is not on PATH; install it, or "
            "write a .gif file"
        )
    count = int(np.floor(fps * (run.t[-1] - run.t[0]) / speed + 1e-9)) + 1
    times = run.t[0] + speed * np.arange(count) / fps
    poses = _at(run, run.x, times, bodies)
    reference = getattr(run, "reference", None)
    goal = None if reference is None else _at(run, reference, times, bodies)
    scene = Scene(
        poses,
        goal,
        times,
        getattr(run, "name", ""),
        linked=linked,
        planar=is_planar(poses) and (goal is None or is_planar(goal)),
        attitude=bodies is None and is_attitude(run.group),
    )
    return play(scene, fps) if target is None else write(scene, target, fps)


def _at(
    run: Any, x: np.ndarray, times: np.ndarray, bodies: Callable[[np.ndarray], Any] | None
) -> np.ndarray:
    """Poses at the times of the frames, interpolated on the group of the state."""
    return body_poses(run.group, Trajectory(run.group, run.t, x)(times).x, bodies)


def _target(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: an animation is written as {' or '.join(SUFFIXES)}")
    return path
