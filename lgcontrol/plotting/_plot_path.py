"""plot_path: where bodies go, in space or in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import as_numbers, check_shape
from ..groups import SE3
from ..scene import Scene, SceneBody
from ..scene._internal import (
    SceneGoal,
    Scenery,
    goals_of,
    is_attitude,
    jumps,
    obstacle_bodies,
    scene_of_states,
    smooth,
    smooth_motion,
)
from ._run import (
    Bodies,
    axes_of,
    body_names,
    body_poses,
    check_run,
    extent_of,
    has_bodies,
    is_planar,
    spread,
)
from ._solids import (
    LABELS,
    Obstacles,
    RoundObstacle,
    Solids,
    cap,
    cap_of,
    corners_of,
    draw_in_plane,
    draw_in_space,
    draw_solids,
    is_cone,
    is_round,
    label,
    obstacles_of,
    outline,
    round_obstacles,
    solids_of,
    surface,
)
from ._style import (
    AXIS_COLORS,
    COLORS,
    DASHES,
    FAINT,
    GOOD,
    INK,
    SMALL,
    head,
    inches,
    line_colors,
    style_axes,
    style_space,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_HIGH = 7.5  # inches, of a figure
FLATTEST = 0.22  # share of the longest side that each side of a box in space has at least
MOST_TICKS = 6  # of the longest side of such a box
# Padding of a label in points: that by the ratio of the sides, less the second one. In a cube it is
# 4, as by default.
LABEL_GAP, TICK_GAP = 9.0, 5.0
SPHERE_BODY = 0.7  # size of a body within the unit sphere
WAY_PARTS, PALE = 60, 0.7  # pieces of a path by time, and share of white in the first


@named_options(own="bodies hull")
def plot_path(
    run: Any,
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

    In the plane where the bodies stay in it, otherwise in space. Bodies look as their system knows
    them, and paths get darker with time. If no shapes are known, the body axes x, y, z are red,
    green, blue. The reference is dashed. Obstacles, goals and hull are those of the run unless they
    are given. A state of attitudes alone is drawn as the paths of the tips of the body axes on the
    unit sphere.

    Parameters
    ----------
    run : SimulationResult, plan, Trajectory or Scene
        Or anything with ``group``, ``x`` and, if it likes, ``name`` and ``reference``. A trajectory
        does not know its system: give ``system.scene(trajectory)``.
    bodies : callable or mapping of str to callable, optional
        ``x of shape (N, nq) → poses of shape (N, k, 7)`` on SE(3), for states that are no poses,
        such as the joints of an arm, or one ``→ (N, 7)`` for each body by its name; the state's
        blocks that are poses if left out.
    frames : int
        About how many frames to draw along each path; at least 2. They are fewer where they would
        cover each other.
    goals : sequence of poses, shape (7,)
        Goals of a body, drawn dashed in place of the reference.
    obstacles : sequence of Sphere, Capsule or (center, radius), or mapping of str to those
        Circles in the plane or spheres in space to be drawn, m. Centres have two or three numbers;
        the axis of a capsule has both ends, (2, 2) or (2, 3). Obstacles of `lgcontrol.optimal` are
        drawn if they stay where they are. With attitudes alone, what balls about points of the unit
        sphere cut out of it: cones of directions. Names are written beside.
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

    run, known, around, title = _subject(run)
    is_scene = run is known
    turns = bodies is None and not is_scene and is_attitude(run.group)
    scene = known if bodies is None else None
    given = as_numbers("goals", goals) if len(goals) else np.zeros((0, 7))
    given = check_shape("goals", given[None] if given.ndim == 1 else given, (None, 7))
    goal = given[None] if len(given) else None
    t = getattr(run, "t", np.zeros(1))
    capsules = obstacles_of(obstacles, t)
    hulls = [] if hull is None else obstacles_of([hull], t)
    frames = max(2, frames)
    solids = None if scene is None else solids_of(scene, frames)
    if not capsules:
        capsules += [o for one in around if is_round(one) for o in round_obstacles(one, one.name)]
    if scene is not None:
        if turns:
            cones = [one for one in scene.bodies if is_cone(one)]
            capsules += [cap_of(one) for one in cones]
        own = [replace(one, poses=SE3.identity[None]) for one in scene.bodies if one.role == "hull"]
        hulls += [] if hulls else [o for one in own for o in round_obstacles(one, "")]
    if scene is None or turns:
        reference = getattr(run, "reference", None)
        poses = body_poses(run.group, smooth(run.group, run.x), bodies)
        names = body_names(run.group, bodies)
        if goal is None and reference is not None:
            goal = body_poses(run.group, smooth(run.group, reference), bodies)
    else:
        poses, goal, names = poses_of_scene(scene, goal)
    spreads = (
        None if covariances is None else _spreads(poses, len(getattr(run, "x", poses)), covariances)
    )
    marked = goals_of(list(given)) if len(given) else [] if scene is None else scene.goals
    shown = _PathPicture(poses, goal, marked, capsules, hulls, spreads, solids)
    ax = None
    if turns:
        figure = figure or new_figure(6.0, 5.6)
        _draw_attitudes(figure, poses, goal, capsules, solids)
    elif is_planar(poses) and (goal is None or is_planar(goal)) and _is_flat(solids):
        figure = figure or new_figure(7.0, _height(shown.points()))
        ax = _draw_plane(figure, shown, frames)
        _join(ax, poses, 2, linked)
    else:
        own = figure is None
        figure = figure or new_figure(7.0, 6.2)
        ax, half = _draw_space(figure, shown, frames)
        _join(ax, poses, 3, linked)
        if own:
            fill(figure, ax, half)
    dashed = ["dashed: goal" if marked else "dashed: reference"] * (goal is not None)
    key = [
        *["pale: early, dark: late"] * (len(t) > 1),
        *dashed,
        *["grey: obstacles"] * (len(capsules) > 0),
    ]
    key += ["ellipses: 2σ"] * (spreads is not None)
    key += ["rings: goals"] * bool(marked and not turns)
    is_gated = solids is not None and any(one.role == "gate" for one in solids.gates)
    key += ["green: gates"] * is_gated
    if solids is not None and solids.scale > 1.0:
        key.append(f"bodies {solids.scale:.2g}× as large as they are")
    head(figure, title, key)
    if scene is not None and ax is not None and len(scene.t) == 1:
        for body in scene.bodies if len(scene.bodies) > 1 else ():
            label(ax, body.points(0).mean(axis=0), body.name)
    _name_paths(figure, names, _path_colors(poses))
    return figure


class _PathPicture(NamedTuple):
    """All that is in a picture of paths."""

    poses: np.ndarray
    goal: np.ndarray | None
    marked: Sequence[SceneGoal]
    capsules: list[RoundObstacle]
    hulls: list[RoundObstacle]
    spreads: np.ndarray | None
    solids: Solids | None

    def points(self) -> np.ndarray:
        """All points that the picture must hold, shape (N, 3)."""
        points = [self.poses[..., :3].reshape(-1, 3)]
        points += [] if self.goal is None else [self.goal[..., :3].reshape(-1, 3)]
        points += corners_of(self.capsules)
        points += [] if self.solids is None else [self.solids.points()]
        return np.concatenate([np.atleast_2d(some) for some in points])


class _Subject(NamedTuple):
    """What a picture is of: a run, a plan, or a scene itself."""

    path: Any  # what has times
    scene: Scene | None  # if it is known
    obstacles: Sequence[SceneBody]
    title: str


def _subject(run: Any) -> _Subject:
    if isinstance(run, Scene):
        return _Subject(run, run, run.bodies, run.title)
    if hasattr(run, "problem") and hasattr(type(run), "trajectory"):
        path, whole = run.trajectory, run.problem
        flat = getattr(whole, "problem", whole)  # of phases
        system = whole.system if flat is whole else whole.phases[0].system
        t, x = smooth_motion(system.state, path.t, path.x)
        around = obstacle_bodies(whole.obstacles, t, flat.nominal_parameters)
        seen = Scenery(system.look, around)
        scene = scene_of_states(system.name, system.state, t, x, seen) if system.look else None
        return _Subject(path, scene, around, system.name)
    check_run(run)
    scene, title = known_scene(run), getattr(run, "title", getattr(run, "name", ""))
    around = scene.bodies if scene else getattr(getattr(run, "scenery", None), "obstacles", ())
    return _Subject(run, scene, around, title)


def known_scene(run: Any) -> Scene | None:
    """The scene of a run whose plant knows how it looks."""
    known = getattr(run, "scenery", None)
    if known is None or (not isinstance(known, Scene) and known.look is None):
        return None
    scene = run.scene()
    has_trails = any(path.role == "trail" for path in scene.paths)
    return scene if has_trails or is_attitude(run.group) else None


def can_be_seen(run: Any) -> bool:
    """Whether a run has a path without `bodies`."""
    return has_bodies(run.group) or known_scene(run) is not None


def poses_of_scene(
    scene: Scene, goal: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Poses of what has a trail (F, k, 7), goals in place of a reference, and names."""
    trails = [path for path in scene.paths if path.role == "trail"]
    by_name = {body.name: body for body in scene.bodies if body.role == "body"}
    ways = [_along(path.points, by_name[path.name].poses) for path in trails]
    poses = np.stack(ways, axis=1) if ways else np.zeros((len(scene.t), 0, 7))
    if goal is None and scene.goals:
        goal = np.stack([one.pose for one in scene.goals])[None]
    wanted = [path.points for path in scene.paths if path.role == "reference"]
    places = [body.poses[0] for body in scene.bodies if body.role == "reference" and body.is_fixed]
    if goal is None and wanted:
        goal = np.stack([_along(way, SE3.identity[None]) for way in wanted], axis=1)
    elif goal is None and places:
        goal = np.stack(places)[None]
    names = [path.name for path in trails]
    return poses, goal, names if len(names) > 1 else []


def _along(points: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Poses with their positions at given points."""
    return np.hstack([points, np.broadcast_to(poses[:, 3:], (len(points), 4))])


def _is_flat(solids: Solids | None) -> bool:
    return solids is None or solids.is_planar


def _name_paths(figure: Any, names: Sequence[str], colors: Sequence[Any]) -> None:
    """Names of the bodies in the colours of their paths, below the title."""
    height = inches(figure)[1]
    for k, (name, color) in enumerate(zip(names, colors, strict=False)):
        y = 1.0 - (0.36 + 0.17 * k) / height
        figure.text(
            0.012,
            y,
            name,
            parse_math=False,
            color=color,
            fontsize=SMALL + 0.5,
            va="top",
            fontweight="bold",
        )


def _join(ax: Any, poses: np.ndarray, size: int, linked: bool) -> None:
    """Lines through the bodies at the start, pale, and at the end."""
    for row, alpha in ((0, 0.35), (-1, 0.8)) if linked else ():
        ax.plot(*poses[row, :, :size].T, color=INK, lw=2.2, alpha=alpha, zorder=1.5)


def _height(everything: np.ndarray) -> float:
    """Height in inches of a figure of a path in the plane, 7 wide, without empty margins."""
    wide, high = np.ptp(everything[:, :2], axis=0)
    return float(np.clip(0.9 + 6.2 * (high + 0.12 * wide) / (wide or high or 1.0), 2.0, MOST_HIGH))


def _places(path: np.ndarray, frames: int, length: float) -> np.ndarray:
    """Indices of frames along a path (N, 3) that do not cover each other."""
    way = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    return spread(path, max(2, min(frames, 1 + int(way / (1.4 * length)))))


def _draw_plane(figure: Any, shown: _PathPicture, frames: int) -> Any:
    ax = figure.add_subplot()
    style_axes(ax, xlabel="x [m]", ylabel="y [m]")
    everything = shown.points()
    length = 0.06 * extent_of(everything[:, :2])
    for ends, radius, *_ in shown.hulls:  # a body that is small beside its way has short axes
        length = min(length, 2.0 * radius + float(np.linalg.norm(np.diff(ends, axis=0))))
    _draw_bodies(ax, shown, frames, length, 2)
    ax.update_datalim(everything[:, :2])
    draw_in_plane(ax, shown.capsules, extent_of(everything[:, :2]))
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
    return ax


def _draw_space(figure: Any, shown: _PathPicture, frames: int) -> tuple[Any, tuple[float, ...]]:
    ax = figure.add_subplot(projection="3d")
    style_space(ax)
    everything = shown.points()
    length = 0.09 * extent_of(everything)
    draw_in_space(ax, shown.capsules, everything, extent_of(everything))
    _draw_bodies(ax, shown, frames, length, 3)
    return ax, set_box(ax, everything, margin=length)


def _draw_bodies(ax: Any, shown: _PathPicture, frames: int, length: float, size: int) -> None:
    """References, goals, solids, and paths with frames, hulls and ellipses along them."""
    from matplotlib.patches import Polygon

    if shown.goal is not None:
        _draw_reference(ax, shown.goal, length, size)
    _mark_goals(ax, shown.marked, size)
    if shown.solids is not None:
        draw_solids(ax, shown.solids, size)
    for k, color in enumerate(_path_colors(shown.poses)):
        path = shown.poses[:, k]
        _draw_way(ax, path[:, :size], color)
        places = _places(path[:, :3], frames, length) if shown.solids is None else (
            shown.solids.places
        )  # fmt: skip
        for i in places:
            if shown.solids is None:
                draw_frame(ax, path[i], length, size)
            for ends, radius, *_ in shown.hulls:
                ends = SE3.act(path[i], ends)
                if size == 2:
                    around = outline(ends, radius)
                    ax.add_patch(Polygon(around, fc="none", ec=color, lw=0.8, alpha=0.45))
                else:
                    ax.plot_surface(*surface(ends, radius), color=color, alpha=0.12, lw=0)
            _draw_ellipses(ax, path, i, shown.spreads, size)


def _draw_way(ax: Any, path: np.ndarray, color: Any) -> None:
    """A path that gets darker with time, a hollow mark at its start and a full one at its end."""
    _ends(ax, path, color)
    parts = min(WAY_PARTS, max(len(path) - 1, 1))
    starts = np.linspace(0, len(path) - 1, parts + 1).astype(int)
    pieces = [path[a : b + 1] for a, b in zip(starts, starts[1:], strict=False)]
    shades = [_paler(color, PALE * (1.0 - k / max(parts - 1, 1))) for k in range(parts)]
    options = {"colors": shades, "linewidths": 1.6, "gid": "way", "zorder": 2.4}
    if path.shape[1] == 2:
        from matplotlib.collections import LineCollection

        ax.add_collection(LineCollection(pieces, **options))
        ax.update_datalim(path)
        return
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    ax.add_collection3d(Line3DCollection(pieces, **options))


def _paler(color: Any, white: float) -> np.ndarray:
    from matplotlib.colors import to_rgb

    own = np.array(to_rgb(color))
    return own + white * (1.0 - own)


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


def _draw_attitudes(
    figure: Any,
    poses: np.ndarray,
    goal: np.ndarray | None,
    caps: list[RoundObstacle],
    solids: Solids | None,
) -> None:
    """Tips of the body axes on the unit sphere, and the body at its end."""
    ax = figure.add_subplot(projection="3d")
    style_space(ax, unit="")
    turn = np.linspace(0, 2 * np.pi, 73)
    for axis in range(3):
        ring = np.roll(np.stack([np.cos(turn), np.sin(turn), 0 * turn]), axis, axis=0)
        ax.plot(*ring, color=FAINT, lw=0.6, alpha=0.6)
    for one in caps:
        ax.plot_surface(
            *cap(one.ends[0], one.radius), color=GOOD if one.is_gate else FAINT,
            alpha=0.15 if one.is_gate else 0.5, lw=0,
        )  # fmt: skip
        label(ax, 1.05 * one.ends[0] / np.linalg.norm(one.ends[0]), one.name)
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
    if solids is not None:
        draw_solids(ax, solids.at_end(SPHERE_BODY), 3)
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
    least = FLATTEST * (high - low).max()
    half = np.maximum(high - low, least) / 2
    middle = (low + high) / 2
    for name, center, reach in zip("xyz", middle, half, strict=True):
        getattr(ax, f"set_{name}lim")(center - reach, center + reach)
        count = max(2, round(MOST_TICKS * float(reach / half.max())))
        axis = getattr(ax, f"{name}axis")
        axis.get_major_locator().set_params(nbins=count)
        # Matplotlib moves a label away from its axis by a share of the other two sides.
        others = half[["xyz".index(one) for one in "xyz" if one != name]]
        axis.labelpad = LABEL_GAP * float(half.max() / others.max()) - TICK_GAP
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


def _mark_goals(ax: Any, goals: Sequence[SceneGoal], size: int) -> None:
    """A ring of one size on the paper, and the ball of positions that pass."""
    for goal in goals:
        place = goal.pose[:size, np.newaxis]
        ax.plot(*place, ls="none", marker="o", ms=9, mfc="none", mec=GOOD, mew=1.3, zorder=LABELS,
                gid="goal")  # fmt: skip
        if goal.tolerance > 0 and size == 3:
            ball = surface(np.tile(goal.pose[:3], (2, 1)), goal.tolerance)
            ax.plot_surface(*ball, color=GOOD, alpha=0.25, lw=0)
        elif goal.tolerance > 0:
            turn = np.linspace(0, 2 * np.pi, 49)
            ring = goal.tolerance * np.stack([np.cos(turn), np.sin(turn)])
            ax.fill(*(place + ring), color=GOOD, alpha=0.25, lw=0)


def _ends(ax: Any, path: np.ndarray, color: Any) -> None:
    """A hollow mark at the start, a full one at the end."""
    ax.plot(*path[:1].T, color=color, marker="o", ms=5, mfc="white", mew=1.2)
    ax.plot(*path[-1:].T, color=color, marker="o", ms=5, mew=0)
