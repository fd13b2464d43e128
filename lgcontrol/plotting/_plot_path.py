"""plot_path: where bodies go, in space or in the plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import as_numbers, check_shape
from ..groups import SE3
from ._poses import (
    Bodies,
    axes_of,
    body_names,
    body_poses,
    extent_of,
    is_attitude,
    is_planar,
    jumps,
    smooth,
    spread,
)
from ._run import PlottedRun, check_run
from ._style import (
    AXIS_COLORS,
    COLORS,
    DASHES,
    FAINT,
    GRID,
    INK,
    SMALL,
    head,
    line_colors,
    style_axes,
    style_space,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Obstacles: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Balls, capsules, or (centre or both ends of an axis, radius) in m; by name if they have any."""

MOST_HIGH = 7.5  # inches, of a figure


@named_options(own="bodies hull")
def plot_path(
    run: PlottedRun,
    *,
    bodies: Bodies | None = None,
    frames: int = 12,
    goals: Sequence[ArrayLike] = (),
    obstacles: Obstacles = (),
    hull: tuple[ArrayLike, float] | None = None,
    linked: bool = False,
    covariances: ArrayLike | None = None,
    figure: Any = None,
) -> Figure:
    """Paths of the bodies with their frames along them, in m with equal axes.

    In the plane where the bodies stay in it, otherwise in space. The body axes x, y, z are red,
    green, blue; the reference is dashed. A state of attitudes alone is drawn as the paths of the
    tips of the body axes on the unit sphere.

    Parameters
    ----------
    run : SimulationResult or Trajectory
        Or anything with ``group``, ``x`` and, if it likes, ``name`` and ``reference``.
    bodies : callable or mapping of str to callable, optional
        ``x of shape (N, nq) → poses of shape (N, k, 7)`` on SE(3), for states that are no poses,
        such as the joints of an arm, or one ``→ (N, 7)`` for each body by its name; the state's
        blocks that are poses if left out.
    frames : int
        About how many frames to draw along each path; at least 2. They are fewer where they would
        cover each other.
    goals : sequence of poses, shape (7,)
        Where a body is to go, drawn dashed in place of the reference.
    obstacles : sequence of Sphere, Capsule or (center, radius), or mapping of str to those
        Circles in the plane or spheres in space to be drawn, m; centres of two or three numbers, or
        both ends (2, 2) or (2, 3) of the axis of a capsule. Those of `lgcontrol.optimal` are drawn
        if they stay where they are. With attitudes alone, what balls about
        points of the unit sphere cut out of it: cones of directions. Names are written beside.
    hull : (center, radius), optional
        What the bodies take of space, in their own axes and as obstacles are given: drawn pale
        where their frames are. Not with attitudes alone.
    linked : bool
        Whether each body is joined to the one before by a line, at the start and at the end.
    covariances : array_like, shape (N, n, n), optional
        Of the errors of each pose of one body in its own axes, linear part first, as estimators
        have them: ellipses of 2σ of the positions about the frames. Not with attitudes alone.
    figure : optional
        See `plot_run`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If nothing in the state is a pose and there is no `bodies`, or if there are covariances of
        several bodies.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> from lgcontrol.systems import Trajectory
    >>> t = np.linspace(0, 1, 50)
    >>> circle = Trajectory(SE2, t, SE2.exp(np.outer(t, [6.28, 0, 6.28])))
    >>> figure = plot_path(circle)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_aspect()
    ('x [m]', 1.0)
    """
    from ._figure import new_figure

    check_run(run)
    reference = getattr(run, "reference", None)
    poses = body_poses(run.group, smooth(run.group, run.x), bodies)
    goal = None
    if len(goals):
        given = as_numbers("goals", goals)
        goal = check_shape("goals", given[None] if given.ndim == 1 else given, (None, 7))[None]
    elif reference is not None:
        goal = body_poses(run.group, smooth(run.group, reference), bodies)
    frames, capsules = max(2, frames), _capsules(obstacles)
    hulls = [] if hull is None else _capsules([hull])
    spreads = None if covariances is None else _spreads(poses, len(run.x), covariances)
    if bodies is None and is_attitude(run.group):
        figure = figure or new_figure(6.0, 5.6)
        _draw_attitudes(figure, poses, goal, capsules)
    elif is_planar(poses) and (goal is None or is_planar(goal)):
        figure = figure or new_figure(7.0, _height(poses, goal, capsules))
        ax = _draw_plane(figure, poses, goal, frames, capsules, hulls, spreads)
        _join(ax, poses, 2, linked)
    else:
        own = figure is None
        figure = figure or new_figure(7.0, 6.2)
        ax, half = _draw_space(figure, poses, goal, frames, capsules, hulls, spreads)
        _join(ax, poses, 3, linked)
        if own:
            fill(figure, ax, half)
    dashed = ["dashed: goal" if len(goals) else "dashed: reference"] * (goal is not None)
    key = ["hollow: start", "full: end", *dashed, *["grey: obstacles"] * (len(obstacles) > 0)]
    key += ["ellipses: 2σ"] * (spreads is not None)
    head(figure, getattr(run, "name", ""), key)
    _name_paths(figure, body_names(run.group, bodies), _path_colors(poses))
    return figure


def _name_paths(figure: Any, names: Sequence[str], colors: Sequence[Any]) -> None:
    """Names of the bodies in the colours of their paths, below the title."""
    top = 1.0 - 0.36 / figure.get_figheight()
    for k, (name, color) in enumerate(zip(names, colors, strict=False)):
        y = top - 0.17 * k / figure.get_figheight()
        figure.text(0.012, y, name, color=color, fontsize=SMALL + 0.5, va="top", fontweight="bold")


def _join(ax: Any, poses: np.ndarray, size: int, linked: bool) -> None:
    """Lines through the bodies at the start, pale, and at the end."""
    for row, alpha in ((0, 0.35), (-1, 0.8)) if linked else ():
        ax.plot(*poses[row, :, :size].T, color=INK, lw=2.2, alpha=alpha, zorder=1.5)


class _Obstacle(NamedTuple):
    """Both ends of an axis in space, shape (2, 3), the same twice for a ball."""

    ends: np.ndarray
    radius: float
    name: str


def _capsules(obstacles: Obstacles) -> list[_Obstacle]:
    """Obstacles as capsules, with their names."""
    named = (
        obstacles.items() if isinstance(obstacles, Mapping) else [("", one) for one in obstacles]
    )
    found = []
    for name, one in named:
        center, radius = _round_body(one)
        given = as_numbers("center of an obstacle", center)
        if given.shape not in ((2,), (3,), (2, 2), (2, 3)) or not radius > 0:
            raise ValueError(f"{_WANTED}, got ({center}, {radius})")
        ends = np.zeros((2, 3))
        ends[:, : given.shape[-1]] = given
        found.append(_Obstacle(ends, float(radius), name))
    return found


_WANTED = (
    "an obstacle is (center of 2 or 3 numbers, or both ends of an axis, radius > 0), a Sphere or a "
    "Capsule"
)


def _round_body(one: Any) -> tuple[Any, Any]:
    """Centre or both ends, and radius, of a ball or a capsule however it is given."""
    if isinstance(one, tuple | list) and len(one) == 2:
        return one[0], one[1]
    for ends in (("center",), ("start", "end")):
        if isinstance(one, type) or not all(hasattr(one, name) for name in (*ends, "radius")):
            continue
        values = {name: getattr(one, name) for name in (*ends, "radius")}
        for name, value in values.items():
            if callable(value):
                raise TypeError(
                    f"the {name} of {type(one).__name__} is a function (t, p), which has no one "
                    f"place: draw it where it is at some time, (center, radius) in numbers"
                )
        places = [values[name] for name in ends]
        return (places[0] if len(places) == 1 else places), values["radius"]
    raise TypeError(f"{_WANTED}; got {one!r}")


def _label(ax: Any, place: np.ndarray, name: str) -> None:
    """A name in small letters, in the plane or in space."""
    if name:
        from matplotlib.patheffects import withStroke

        halo = withStroke(linewidth=2.0, foreground="white", alpha=0.8)
        ax.text(
            *place, name, fontsize=SMALL - 1, color=INK, ha="center", va="bottom", zorder=5,
            path_effects=[halo],
        )  # fmt: skip


def _everything(
    poses: np.ndarray, goal: np.ndarray | None, capsules: list[_Obstacle]
) -> np.ndarray:
    """All points that the picture must hold, shape (N, 3)."""
    points = [poses[..., :3].reshape(-1, 3)]
    points += [] if goal is None else [goal[..., :3].reshape(-1, 3)]
    points += [ends + sign * radius for ends, radius, _ in capsules for sign in (-1.0, 1.0)]
    return np.concatenate([np.atleast_2d(some) for some in points])


def _height(poses: np.ndarray, goal: np.ndarray | None, capsules: list[_Obstacle]) -> float:
    """Height in inches of a figure of a path in the plane, 7 wide, without empty margins."""
    wide, high = np.ptp(_everything(poses, goal, capsules)[:, :2], axis=0)
    return float(np.clip(0.9 + 6.2 * (high + 0.12 * wide) / (wide or high or 1.0), 2.0, MOST_HIGH))


def _places(path: np.ndarray, frames: int, length: float) -> np.ndarray:
    """Indices of frames along a path (N, 3) that do not cover each other."""
    way = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    return spread(path, max(2, min(frames, 1 + int(way / (1.4 * length)))))


def _draw_plane(
    figure: Any,
    poses: np.ndarray,
    goal: np.ndarray | None,
    frames: int,
    capsules: list[_Obstacle],
    hulls: list[_Obstacle],
    spreads: np.ndarray | None,
) -> Any:
    from matplotlib.patches import Polygon

    ax = figure.add_subplot()
    style_axes(ax, xlabel="x [m]", ylabel="y [m]")
    length = 0.06 * extent_of(_everything(poses, goal, capsules)[:, :2])
    for ends, radius, _ in hulls:  # a body that is small beside its way has short axes
        length = min(length, 2.0 * radius + float(np.linalg.norm(np.diff(ends, axis=0))))
    for ends, radius, name in capsules:
        ax.add_patch(Polygon(_outline(ends, radius), facecolor=GRID, edgecolor=FAINT, lw=1.0))
        _label(ax, ends.mean(axis=0)[:2], name)
    if goal is not None:
        _draw_reference(ax, goal, length, 2)
    for k, color in enumerate(_path_colors(poses)):
        path = poses[:, k]
        ax.plot(*path[:, :2].T, color=color, lw=1.5)
        _ends(ax, path[:, :2], color)
        for i in _places(path[:, :3], frames, length):
            draw_frame(ax, path[i], length, 2)
            for ends, radius, _ in hulls:
                around = _outline(SE3.act(path[i], ends), radius)
                ax.add_patch(Polygon(around, fc="none", ec=color, lw=0.8, alpha=0.45))
            _draw_ellipses(ax, path, i, spreads, 2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
    return ax


def _draw_space(
    figure: Any,
    poses: np.ndarray,
    goal: np.ndarray | None,
    frames: int,
    capsules: list[_Obstacle],
    hulls: list[_Obstacle],
    spreads: np.ndarray | None,
) -> tuple[Any, tuple[float, ...]]:
    ax = figure.add_subplot(projection="3d")
    style_space(ax)
    everything = _everything(poses, goal, capsules)
    length = 0.09 * extent_of(everything)
    for ends, radius, name in capsules:
        ax.plot_surface(*surface(ends, radius), color=FAINT, alpha=0.3, lw=0)
        _label(ax, ends[np.argmax(ends[:, 2])] + [0.0, 0.0, radius], name)
    if goal is not None:
        _draw_reference(ax, goal, length, 3)
    for k, color in enumerate(_path_colors(poses)):
        path = poses[:, k]
        ax.plot(*path[:, :3].T, color=color, lw=1.5)
        _ends(ax, path[:, :3], color)
        for i in _places(path[:, :3], frames, length):
            draw_frame(ax, path[i], length)
            for ends, radius, _ in hulls:
                around = surface(SE3.act(path[i], ends), radius)
                ax.plot_surface(*around, color=color, alpha=0.12, lw=0)
            _draw_ellipses(ax, path, i, spreads, 3)
    return ax, set_box(ax, everything, margin=length)


def _spreads(poses: np.ndarray, count: int, covariances: ArrayLike) -> np.ndarray:
    """Covariances of the positions of one body in world axes, shape (N, 3, 3)."""
    P = np.asarray(covariances, dtype=np.float64)
    if poses.shape[1] != 1 or P.ndim != 3 or len(P) != count or P.shape[1:] not in _SIZES:
        raise ValueError(
            f"covariances must have shape ({count}, n, n) with n = 3 on SE2 and 6 on SE3, of "
            f"one body; got {P.shape} for {poses.shape[1]}"
        )
    size = P.shape[1] // 2 + (P.shape[1] == 3)  # of a position in the plane or in space
    own = np.zeros((len(P), 3, 3))
    own[:, :size, :size] = P[:, :size, :size]
    turn = axes_of(poses[:: _parts(poses, own), 0])
    return turn @ own @ np.swapaxes(turn, -1, -2)


_SIZES = ((3, 3), (6, 6))


def _parts(poses: np.ndarray, spreads: np.ndarray) -> int:
    """Poses of a smooth path for each of those that it is drawn through."""
    return (len(poses) - 1) // max(len(spreads) - 1, 1) or 1


_ROUND = np.linspace(0, 2 * np.pi, 61)


def _draw_ellipses(
    ax: Any, path: np.ndarray, i: int, spreads: np.ndarray | None, size: int
) -> None:
    """At the pose next to the one numbered i, of those that have a covariance."""
    if spreads is None:
        return
    parts = _parts(path, spreads)
    k = round(i / parts)
    for ring in _rings(path[k * parts, :size], spreads[k, :size, :size]):
        ax.plot(*ring.T, color=COLORS[0], lw=0.8)


def _rings(center: np.ndarray, covariance: np.ndarray) -> list[np.ndarray]:
    """Ellipses of 2σ through each two of the principal axes, points of shape (N, 2) or (N, 3)."""
    values, axes = np.linalg.eigh(covariance)
    lengths = 2.0 * np.sqrt(np.maximum(values, 0.0)) * axes
    circle = np.stack([np.cos(_ROUND), np.sin(_ROUND)])
    pairs = combinations(range(len(center)), 2)
    return [center + (lengths[:, list(pair)] @ circle).T for pair in pairs]


def _outline(ends: np.ndarray, radius: float) -> np.ndarray:
    """Points around a capsule in the plane, shape (N, 2)."""
    along = (ends[1] - ends[0])[:2]
    heading = np.arctan2(along[1], along[0])
    turns = heading + np.pi / 2 * np.array([[-1.0], [1.0]]) + np.linspace(0, np.pi, 37)
    round_ends = ends[::-1, np.newaxis, :2] + radius * np.stack([np.cos(turns), np.sin(turns)], -1)
    return round_ends.reshape(-1, 2)


def surface(ends: np.ndarray, radius: float) -> np.ndarray:
    """Points of the surface of a capsule, shape (3, M, N), its axis along the rows."""
    along = ends[1] - ends[0]
    x, y, z = _triad(along if along.any() else np.array([0.0, 0.0, 1.0]))
    tilt = np.r_[np.linspace(np.pi, np.pi / 2, 7), np.linspace(np.pi / 2, 0.0, 7)]
    turn = np.linspace(0, 2 * np.pi, 25)
    start = np.repeat(ends, 7, axis=0) + radius * np.cos(tilt)[:, np.newaxis] * z
    ring = np.cos(turn)[:, np.newaxis] * x + np.sin(turn)[:, np.newaxis] * y
    points = start[:, np.newaxis] + radius * np.sin(tilt)[:, np.newaxis, np.newaxis] * ring
    return np.moveaxis(points, -1, 0)


def cap(center: np.ndarray, radius: float) -> np.ndarray:
    """Points of the unit sphere within a distance of one of them, shape (3, M, N)."""
    x, y, z = _triad(center)
    tilt = np.linspace(0.0, 2 * np.arcsin(min(radius, 2.0) / 2), 13)[:, np.newaxis, np.newaxis]
    turn = np.linspace(0, 2 * np.pi, 37)[:, np.newaxis]
    points = np.cos(tilt) * z + np.sin(tilt) * (np.cos(turn) * x + np.sin(turn) * y)
    return np.moveaxis(points, -1, 0)


def _triad(along: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three directions at right angles, the last along a vector."""
    z = along / np.linalg.norm(along)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return x, np.cross(z, x), z


def _draw_attitudes(
    figure: Any,
    poses: np.ndarray,
    goal: np.ndarray | None,
    caps: list[_Obstacle],
) -> None:
    """Tips of the body axes on the unit sphere."""
    ax = figure.add_subplot(projection="3d")
    style_space(ax, unit="")
    turn = np.linspace(0, 2 * np.pi, 73)
    for axis in range(3):
        ring = np.roll(np.stack([np.cos(turn), np.sin(turn), 0 * turn]), axis, axis=0)
        ax.plot(*ring, color=FAINT, lw=0.6, alpha=0.6)
    for ends, radius, name in caps:
        ax.plot_surface(*cap(ends[0], radius), color=FAINT, alpha=0.5, lw=0)
        _label(ax, 1.05 * ends[0] / np.linalg.norm(ends[0]), name)
    for k in range(poses.shape[1]):
        tips = axes_of(poses[:, k])
        for axis, color in enumerate(AXIS_COLORS):
            path = tips[:, :, axis]
            ax.plot(*path.T, color=color, lw=1.4)
            _ends(ax, path, color)
            ax.plot(*np.stack([np.zeros(3), path[-1]]).T, color=color, lw=1.0, alpha=0.7)
            ax.text(*(1.2 * path[-1]), "xyz"[axis], fontsize=SMALL + 1, color=color)
            if goal is not None:
                end = axes_of(goal[-1, k])[:, axis]
                ax.plot(*np.stack([np.zeros(3), 1.12 * end]).T, color=color, lw=1.0, ls=DASHES)
    set_box(ax, np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]), margin=0.15)


def draw_frame(ax: Any, pose: np.ndarray, length: float, size: int = 3, **options: Any) -> None:
    """Lines along the body axes of a pose, in space or, with size 2, in the plane."""
    start = pose[:size]
    tips = start[:, np.newaxis] + length * axes_of(pose)[:size, :size]
    for tip, color in zip(tips.T, AXIS_COLORS, strict=False):
        ax.plot(*np.stack([start, tip]).T, color=color, **({"lw": 1.3} | options))


def set_box(ax: Any, points: np.ndarray, margin: float) -> tuple[float, ...]:
    """Limits around points with the same scale on all axes; flat paths keep some height.

    Returns the sides of the box, for `fill`.
    """
    flat = points.reshape(-1, 3)
    low, high = flat.min(axis=0) - margin, flat.max(axis=0) + margin
    least = 0.35 * (high - low).max()
    half = np.maximum(high - low, least) / 2
    middle = (low + high) / 2
    for name, center, reach in zip("xyz", middle, half, strict=True):
        getattr(ax, f"set_{name}lim")(center - reach, center + reach)
    ax.set_box_aspect(tuple(half), zoom=0.9)  # the layout does not know of labels in space
    return tuple(half)


def fill(figure: Any, ax: Any, half: tuple[float, ...]) -> None:
    """Make axes in space fill a figure, and the figure no higher than they need."""
    width, top, zoom = figure.get_figwidth(), 0.35, 0.9  # inches; above is the title
    figure.set_layout_engine("none")
    ax.set_position((0.0, 0.0, 1.0, 1.0))
    for _ in range(3):  # labels do not grow with the box
        seen = _seen(figure, ax)
        height = figure.get_figheight()
        scale = 0.96 * min(width / seen.width, (MOST_HIGH - top) / seen.height)
        after = min(scale * seen.height + top + 0.1, MOST_HIGH)
        # The scale of axes in space follows the shorter side of the figure.
        zoom *= scale * min(width, height) / min(width, after)
        figure.set_figheight(after)
        ax.set_box_aspect(half, zoom=zoom)
    seen, height = _seen(figure, ax), figure.get_figheight()
    aside, up = width / 2 - (seen.x0 + seen.x1) / 2, (height - top) / 2 - (seen.y0 + seen.y1) / 2
    ax.set_position((aside / width, up / height, 1.0, 1.0))
    for artist in (*ax.lines, *ax.collections, *ax.texts):
        artist.set_clip_on(False)  # the place of the axes, which moved, ends within the figure


def _seen(figure: Any, ax: Any) -> Any:
    """What axes in space cover, in inches: their edges and all their letters."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    figure.draw_without_rendering()
    canvas = figure.canvas
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.set_canvas(canvas)
    parts = [axis.get_tightbbox(renderer) for axis in (ax.xaxis, ax.yaxis, ax.zaxis)]
    corners = np.stack(np.meshgrid(ax.get_xlim(), ax.get_ylim(), ax.get_zlim())).reshape(3, -1)
    flat = np.stack(proj_transform(corners[0], corners[1], corners[2], ax.get_proj())[:2], axis=-1)
    places = ax.transData.transform(flat)
    parts.append(Bbox([places.min(axis=0), places.max(axis=0)]))
    return Bbox.union(parts).transformed(figure.dpi_scale_trans.inverted())


def _path_colors(poses: np.ndarray) -> list[Any]:
    """Dark for one body, told apart for several."""
    count = poses.shape[1]
    return [INK] if count == 1 else line_colors(count)


def _draw_reference(ax: Any, poses: np.ndarray, length: float, size: int) -> None:
    """A dashed path, or the dashed frame of a body that is to stay in place; between jumps."""
    for k in range(poses.shape[1]):
        steps = np.linalg.norm(np.diff(poses[:, k, :3], axis=0), axis=1)
        for path in np.split(poses[:, k], 1 + np.flatnonzero(jumps(steps))):
            if np.ptp(path[:, :3], axis=0).any():
                ax.plot(*path[:, :size].T, color=FAINT, lw=1.2, ls=DASHES)
            else:
                draw_frame(ax, path[0], 1.6 * length, size, ls=(0, (2.5, 1.2)), lw=1.4)


def _ends(ax: Any, path: np.ndarray, color: Any) -> None:
    """A hollow mark at the start, a full one at the end."""
    ax.plot(*path[:1].T, color=color, marker="o", ms=5, mfc="white", mew=1.2)
    ax.plot(*path[-1:].T, color=color, marker="o", ms=5, mew=0)
