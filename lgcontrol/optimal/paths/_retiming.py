"""retime: the fastest way along a path under limits of velocity, acceleration, torque and more."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from ...codegen import named_options
from ...codegen._internal import (
    MOST_ORDER,
    Progress,
    check_count,
    check_quotient,
    check_shape,
    interruptible,
    level_outside,
)
from ...systems import BSpline, SmoothReference, System, Trajectory
from .._reference import sample_reference
from ._path_limits import PathGrid, PathLimit, PathRow, path_limits

# A linear program about the last profile; affine rows need two, losses in joints some more.
MOST_INTERVALS = 1_000_000  # of a path, and pieces of what smooths it
MOST_PROGRAMS = 30
# Profiles a quarter as fast to draw on from, before limits are said to leave none.
MOST_SLOWER = 5
# Change of the profile, as a share of its largest value, at which it is found.
SETTLED = 1e-7
# What rows may be exceeded by, as a share of their range, without a warning.
KEPT = 1e-4
# Slack, as a share of its range, below which a row binds.
BINDING = 1e-3
ONE_END = 1e-2  # share of the slack at an interval's freer end that counts
STILL = 1e-6  # share of a path's fastest derivative up to which it stands still
SLOWEST = 1e-12  # squared speed at which nothing moves any more
LEAST_INTERVALS = 8  # of a span of the path, so that corners at rest leave time between them


@dataclass(frozen=True, eq=False)
class Retiming:
    """What `retime` found.

    Attributes
    ----------
    path : SmoothReference
        Path that was to be followed; its time is the path parameter s.
    motion : SmoothReference
        The path in time, with exact derivatives; its acceleration jumps where limits change.
    s : ndarray, shape (N + 1,)
        Path parameters.
    speed : ndarray, shape (N + 1,)
        ṡ there.
    acceleration : ndarray, shape (N,)
        s̈ between them, constant.
    t : ndarray, shape (N + 1,)
        Times in s at which they are passed.
    binding : tuple of str
        Which limit binds between them, empty where none does.
    excess : float
        Largest violation of a limit at a path parameter, as a share of its range.
    """

    path: SmoothReference
    motion: SmoothReference
    s: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    t: np.ndarray
    binding: tuple[str, ...]
    excess: float

    @property
    def duration(self) -> float:
        """Time from start to end, s."""
        return float(self.t[-1] - self.t[0])

    def trajectory(self, system: System, spacing: float) -> Trajectory:
        """States of a system and the inputs that move it so, about every `spacing` s.

        Parameters
        ----------
        system : System
        spacing : float

        Returns
        -------
        Trajectory
        """
        t = self.motion.sampled(spacing).t
        x, u = sample_reference(system, self.motion, t)
        return Trajectory(system.state, t, x, u, inputs=system.inputs)

    @interruptible
    def smooth(self, spacing: float, degree: int = 5) -> BSpline:
        """Motion near this one without jumps of acceleration, jerk and snap.

        Its control points are places of this motion, so that its velocities and accelerations are
        averages of those around: nothing overshoots. It leaves the path by less than the spacing
        squared times the acceleration. An end at rest stays at rest, two spacings longer.

        Parameters
        ----------
        spacing : float
            Of knots, in s, about. Wide ones take time, narrow ones leave large jerk and snap.
        degree : int
            5 has a continuous snap.

        Returns
        -------
        BSpline

        References
        ----------
        I. J. Schoenberg: On spline functions. In: Inequalities, Academic Press (1967): control
        points at the means of knots diminish variation.

        Examples
        --------
        >>> from lgcontrol.groups import Translation
        >>> from lgcontrol.systems import Waypoints
        >>> line = Waypoints(Translation("x"), [0, 1], [[0.0], [1.0]], order=1)
        >>> soft = retime(line, velocity=1.0, acceleration=2.0).smooth(0.05)
        >>> round(soft.duration, 6), soft.smoothness
        (1.7, 4)
        """
        spacing = float(check_shape("spacing", spacing, ()))
        if not 0 < spacing <= self.duration:
            raise ValueError(
                "spacing must be positive and no longer than the motion, "
                f"{self.duration:.4g} s, got {spacing:g} s"
            )
        check_count("degree", degree, most=MOST_ORDER)
        check_quotient("control points", self.duration / spacing, MOST_INTERVALS)
        still = self.speed[[0, -1]] == 0.0  # a control point more for each derivative up to snap
        spans = max(1, round(self.duration / spacing))
        width = self.duration / spans
        start, end = self.t[[0, -1]] + 2 * width * still * [-1, 1]
        knots = np.linspace(start, end, 1 + spans + 2 * int(still.sum()))
        clamped = np.concatenate([[start] * degree, knots, [end] * degree])
        means = sliding_window_view(clamped[1:-1], degree).mean(axis=-1)
        points = self.motion(np.clip(means, self.t[0], self.t[-1])).x
        return BSpline(self.motion.group, knots, points, degree)

    def __str__(self) -> str:
        """Duration, and what binds from when to when."""
        lines = [f"{self.duration:.4g} s along {self.path.duration:g} of the path"]
        k = 0
        for name, run in groupby(self.binding):
            count = len(list(run))
            lines.append(f"{self.t[k]:8.3f} – {self.t[k + count]:.3f} s  {name or '–'}")
            k += count
        return "\n".join(lines)


@named_options(own="rows motion path")
def retime(
    path: SmoothReference,
    *,
    velocity: ArrayLike | Mapping[str, float] | None = None,
    acceleration: ArrayLike | Mapping[str, float] | None = None,
    system: System | None = None,
    rows: Sequence[PathRow] = (),
    start_speed: float = 0.0,
    end_speed: float = 0.0,
    intervals: int = 200,
    t0: float = 0.0,
) -> Retiming:
    """Move along a path in the least time that limits allow.

    The squared speed ``y = ṡ²`` is linear between path parameters, s̈ constant. Velocities are
    ``X'(s) ṡ``, accelerations, torques and other rows affine in ``(s̈, ṡ²)``: the profile that is
    largest everywhere solves a linear program. Losses that grow with the speed are linearised about
    the profile until it settles.

    Parameters
    ----------
    path : SmoothReference
        X(s), its time being s. It must move everywhere: a path that rests at its ends has its own
        profile. Take ``Waypoints(…, order=1)``, at whose corners the motion stops, one that passes
        with ``start=`` and ``end=`` velocities, or a `BSpline`.
    velocity, acceleration : float, array_like or mapping, optional
        Largest absolute values, body-fixed: one, one a tangent coordinate, or by its name.
    system : System, optional
        Limits of its inputs, and of velocities where it knows them: a robot's joint torques and
        speeds. Its structure moves the path's group, or a block on it. If further blocks follow
        from that motion (motors behind springs), the limits of all states and quantities are kept
        as well. These are speeds of motors, deflections and torques of springs; see Notes.
    rows : sequence of PathRow
        Further limits.
    start_speed, end_speed : float
        ṡ at the ends.
    intervals : int
        Of the path parameter, about: the knots of the path are among its values.
    t0 : float
        Time of the start in s.

    Returns
    -------
    Retiming

    Raises
    ------
    ValueError
        If nothing limits the speed, the path stands still somewhere, or the limits leave no
        profile. The message says which limit is broken at rest, and where.

    Warns
    -----
    RuntimeWarning
        If rows that are not affine are exceeded by more than 0.01 % of their range.

    Notes
    -----
    Limits are kept at the path parameters of the result, `Retiming.s`, on both sides of each.
    Between them a curved path exceeds them by the square of an interval. With 200 intervals, joints
    of a Panda limited to 2.175 rad/s and 15 rad/s² exceed them by 5e-4 rad/s and 3e-3 rad/s²; with
    400, by a quarter of that. ``slowed(found.motion, system=arm)`` takes that back, for 0.03 % of
    the time there.

    Motors behind springs take the jerk and the snap of the links. Between path parameters s̈ is
    constant, and rows are those of that; where s̈ jumps, such motors would have to jump as well.
    `Retiming.smooth` is a motion that they can follow, and `slowed` takes back by what it exceeds
    the limits still: ``slowed(found.smooth(0.02), system=arm)``.

    References
    ----------
    J. E. Bobrow, S. Dubowsky, J. S. Gibson: Time-optimal control of robotic manipulators along
    specified paths. IJRR 4 (1985); H. Pham, Q.-C. Pham: A new approach to time-optimal path
    parameterization based on reachability analysis. IEEE T-RO 34 (2018), whose rows at both ends of
    an interval these are, with one sparse program in place of two passes of small ones.

    Examples
    --------
    One metre with 2 m/s² and at most 1 m/s: half a second to speed up and to brake, half between.

    >>> from lgcontrol.groups import Translation
    >>> from lgcontrol.systems import Waypoints
    >>> line = Waypoints(Translation("x"), [0, 1], [[0.0], [1.0]], order=1)
    >>> found = retime(line, velocity=1.0, acceleration=2.0)
    >>> print(found)
    1.5 s along 1 of the path
       0.000 – 0.500 s  acceleration x upper
       0.500 – 1.000 s  velocity x upper
       1.000 – 1.500 s  acceleration x lower
    """
    grid = _grid(path, start_speed, end_speed, intervals)
    limits = path_limits(grid, path, velocity, acceleration, system, rows)
    y, a = _solve(grid, limits)
    excesses = [float(_excess(limit, y, a)[0].max(initial=0.0)) for limit in limits]
    excess = max(excesses)
    if excess > KEPT:
        worst = limits[excesses.index(excess)]
        warnings.warn(
            f"{worst.kind} is exceeded by {excess:.2g} of its range: it is far from affine in ṡ² "
            "and s̈; take more intervals, or a wider margin",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    speed = np.sqrt(y)
    steps = 2 * np.diff(grid.s) / (speed[1:] + speed[:-1])
    t = t0 + np.concatenate([[0.0], np.cumsum(steps)])
    motion = _in_time(path, grid.s, speed, a, t)
    return Retiming(path, motion, grid.s, speed, a, t, _binding(limits, y, a), excess)


@named_options(own="rows motion path")
def slowed(
    motion: SmoothReference,
    *,
    velocity: ArrayLike | Mapping[str, float] | None = None,
    acceleration: ArrayLike | Mapping[str, float] | None = None,
    system: System | None = None,
    rows: Sequence[PathRow] = (),
    intervals: int = 1000,
) -> SmoothReference:
    """The same motion, slower all along by the least factor with which limits are kept.

    For motions that come close to limits: what is fitted to a retimed path, or waypoints whose
    times were guessed.

    Parameters
    ----------
    motion : SmoothReference
    velocity, acceleration, system, rows
        As for `retime`, kept at both ends of all intervals; s of rows is the motion's time, and
        ṡ one over the factor.
    intervals : int
        Of the time, about.

    Returns
    -------
    SmoothReference
        With the same start; the motion itself where it keeps the limits.

    Raises
    ------
    ValueError
        If limits are broken even at rest; the message says which, and where.

    Examples
    --------
    >>> from lgcontrol.groups import Translation
    >>> from lgcontrol.systems import Waypoints
    >>> move = Waypoints(Translation("x"), [0, 1], [[0.0], [1.0]], order=5)
    >>> slowed(move, velocity=1.0).t.round(6)  # 1.875 m/s in the middle
    array([0.   , 1.875])
    """
    grid = _nodes(motion, intervals)
    limits = path_limits(grid, motion, velocity, acceleration, system, rows)
    count = len(grid.s)

    def is_kept(y: float) -> bool:
        profile = np.full(count, y), np.zeros(count - 1)
        return all((_excess(limit, *profile)[0] <= 0).all() for limit in limits)

    if is_kept(1.0):
        return motion
    if not is_kept(0.0):
        raise ValueError(_why_not(grid, limits))
    low, high = 0.0, 1.0
    while high - low > SETTLED * low and high > SLOWEST:
        middle = (low + high) / 2
        low, high = (middle, high) if is_kept(middle) else (low, middle)
    if low == 0.0:
        raise ValueError("the limits leave no speed: they are met at rest; widen them")
    t = motion.t[0] + (motion.t - motion.t[0]) / np.sqrt(low)
    return SmoothReference(motion.group, t, motion.anchors, motion.coefficients)


def _nodes(path: SmoothReference, intervals: int) -> PathGrid:
    """Path parameters, the path's knots among them."""
    if not isinstance(path, SmoothReference):
        remedy = "BSpline.fitted(trajectory, …) makes one of a Trajectory"
        if isinstance(path, Retiming):
            remedy = "give its motion, retiming.motion, or its path, retiming.path"
        raise TypeError(
            f"what is to be followed must be a SmoothReference, not {type(path).__name__}: {remedy}"
        )
    check_count("intervals", intervals, most=MOST_INTERVALS)
    spans = np.diff(path.t)
    counts = np.maximum(np.round(intervals * spans / spans.sum()).astype(int), LEAST_INTERVALS)
    pieces = [
        np.linspace(a, b, n + 1)[:-1]
        for a, b, n in zip(path.t[:-1], path.t[1:], counts, strict=True)
    ]
    s = np.concatenate([*pieces, path.t[-1:]])
    return PathGrid(s, (path(s[:-1]), path(s[1:], "before")), {})


def _grid(path: SmoothReference, start: float, end: float, intervals: int) -> PathGrid:
    s, ends, _ = _nodes(path, intervals)
    for name, value in (("start_speed", start), ("end_speed", end)):
        if not float(check_shape(name, value, ())) >= 0:
            raise ValueError(f"{name} must be a number, at least 0, got {value}")
    for where, point in zip((s[:-1], s[1:]), ends, strict=True):
        size = np.abs(point.velocity).max(axis=-1, initial=0.0)
        still = size <= STILL * size.max(initial=0.0)
        if still.any():
            raise ValueError(
                f"the path stands still at s = {where[np.argmax(still)]:.4g}: give one that moves "
                "everywhere, such as Waypoints(…, order=1), one that passes (stops=False) with "
                "start= and end= velocities, or a BSpline"
            )
    corners = [jump.t for jump in path.jumps if jump.derivative == "velocity"]  # ends among them
    fixed = {int(np.argmin(np.abs(s - at))): 0.0 for at in corners}
    return PathGrid(s, ends, fixed | {0: start**2, len(s) - 1: end**2})


def _solve(grid: PathGrid, limits: Sequence[PathLimit]) -> tuple[np.ndarray, np.ndarray]:
    """Squared speeds at the path parameters and accelerations between them."""
    count, step = len(grid.s) - 1, np.diff(grid.s)
    size = (grid.s[-1] - grid.s[0]) ** 2  # ṡ² of one second for the whole path
    places, known, slower = [*grid.fixed], np.array([*grid.fixed.values()]), 0

    def profile(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared speeds, those that are known at their places, with the accelerations."""
        y[places] = known
        return y, np.diff(y) / (2 * step)

    y, a = profile(np.full(count + 1, size))
    progress = Progress("retiming")
    for k in range(MOST_PROGRAMS):
        progress.tell(lambda k=k: f"{k} of at most {MOST_PROGRAMS} linear programs")
        scale = max(y.max(), known.max(), 1e-300)
        rows, right = _program(grid, limits, y, a, scale)
        bounds = np.tile([0.0, np.inf], (count + 1, 1))
        bounds[places] = known[:, None] / scale
        found = scipy.optimize.linprog(
            -np.ones(count + 1), rows, right, bounds=bounds, method="highs"
        )
        if found.status == 3:
            raise ValueError("the limits leave the speed unbounded somewhere: add velocity=")
        if found.x is None:
            if slower == MOST_SLOWER:
                raise ValueError(_why_not(grid, limits))
            # Rows that bend, drawn on from a fast profile, may leave nothing of a slow one.
            slower += 1
            y, a = profile(y / 4)
            continue
        new = np.maximum(found.x, 0.0) * scale
        change, y = np.abs(new - y).max() / max(new.max(), 1e-300), new
        a = np.diff(y) / (2 * step)
        if change < SETTLED:
            break
    return y, a


def _program(
    grid: PathGrid, limits: Sequence[PathLimit], y: np.ndarray, a: np.ndarray, scale: float
) -> tuple[csr_matrix, np.ndarray]:
    """Rows and right sides about a profile, in shares of their range and of a squared speed."""
    count, half = len(a), 1 / (2 * np.diff(grid.s))
    node = np.arange(count)
    data, row, column, right, total = [], [], [], [], 0
    for limit in limits:
        for side, here in enumerate((y[:-1], y[1:])):
            g, by_y, by_a = _linear(limit, side, here, a, scale)
            for sign, bound in ((1.0, limit.upper), (-1.0, limit.lower)):
                kept = np.isfinite(bound)
                if not kept.any():
                    continue
                size = limit.range[kept]
                slope_a = sign * by_a[:, kept] / size * half[:, None] * scale
                slope_y = sign * by_y[:, kept] / size * scale
                first = -slope_a + (slope_y if side == 0 else 0.0)
                second = slope_a + (slope_y if side == 1 else 0.0)
                value = sign * (g[:, kept] - bound[kept]) / size
                right.append((first * y[:-1, None] + second * y[1:, None]) / scale - value)
                rows = total + np.arange(value.size).reshape(value.shape)
                total += value.size
                for entries, at in ((first, node), (second, node + 1)):
                    data.append(np.broadcast_to(entries, value.shape).ravel())
                    row.append(rows.ravel())
                    column.append(np.broadcast_to(at[:, None], value.shape).ravel())
    matrix = csr_matrix(
        (np.concatenate(data), (np.concatenate(row), np.concatenate(column))),
        shape=(total, count + 1),
    )
    return matrix, np.concatenate([entry.ravel() for entry in right])


def _linear(
    limit: PathLimit, side: int, y: np.ndarray, a: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of rows and their slopes by y and by a, by differences: rows are nearly affine."""
    g = limit.values(side, y, a)
    h = 1e-6 * np.maximum(y, scale)
    below = np.minimum(h, y)  # squared speeds are not negative
    by_y = limit.values(side, y + h, a) - limit.values(side, y - below, a)
    step = 1e-3 * max(np.abs(a).max(initial=0.0), 1.0)
    by_a = (limit.values(side, y, a + step) - limit.values(side, y, a - step)) / (2 * step)
    return g, by_y / (h + below)[:, None], by_a


def _excess(limit: PathLimit, y: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far rows of intervals are outside, and their slack at both ends, in shares of a range."""
    outside, slack = [], []
    for side, here in enumerate((y[:-1], y[1:])):
        g = limit.values(side, here, a)
        over = np.stack([g - limit.upper, limit.lower - g], axis=-1) / limit.range[:, None]
        outside.append(np.maximum(over, 0.0).max(axis=-1))
        slack.append(-over)
    return np.maximum(*outside), np.stack(slack)


def _binding(limits: Sequence[PathLimit], y: np.ndarray, a: np.ndarray) -> tuple[str, ...]:
    """Name of the row with the least slack of each interval, empty where none binds."""
    slack, names = [], []
    for limit in limits:
        slack.append(_excess(limit, y, a)[1].reshape(2, len(a), -1))
        names += [
            " ".join(filter(None, [limit.kind, name, side]))
            for name in limit.names
            for side in ("upper", "lower")
        ]
    ends = np.concatenate(slack, axis=2)
    ends[np.isnan(ends)] = np.inf
    table = ends.min(axis=0)
    # A row that binds at both ends comes before one that binds at one.
    least = np.argmin(table + ONE_END * ends.max(axis=0), axis=1)
    return tuple(names[i] if table[k, i] < BINDING else "" for k, i in enumerate(least.tolist()))


def _why_not(grid: PathGrid, limits: Sequence[PathLimit]) -> str:
    """Which limit is broken at rest first."""
    still = np.zeros(len(grid.s))
    for limit in limits:
        over, _ = _excess(limit, still, still[:-1])
        if (over > 0).any():
            k, row = np.argwhere(over > 0)[0]
            name = f"{limit.kind} {limit.names[row]}".strip()
            return (
                f"the limits leave no profile: {name} is exceeded at rest, at s = {grid.s[k]:.4g}; "
                "widen it, or move the path"
            )
    return (
        "the limits leave no profile between the speeds at the ends: lower start_speed or "
        "end_speed, or widen the limits"
    )


def _in_time(
    path: SmoothReference, s: np.ndarray, speed: np.ndarray, a: np.ndarray, t: np.ndarray
) -> SmoothReference:
    """The path with ``s(t)`` quadratic between its parameters, as polynomials in time."""
    k = np.clip(np.searchsorted(path.t, s[:-1], side="right") - 1, 0, len(path.t) - 2)
    span, h = np.diff(path.t)[k], np.diff(t)
    share = np.stack([s[:-1] - path.t[k], speed[:-1] * h, a * h**2 / 2], axis=-1) / span[:, None]
    rows = path.coefficients[k]
    total = np.zeros((*rows.shape[:-1], 1))
    for column in np.moveaxis(rows, -1, 0)[::-1]:  # Horner, with a polynomial for the argument
        longer = np.zeros((*total.shape[:-1], total.shape[-1] + 2))
        for i in range(3):
            longer[..., i : i + total.shape[-1]] += share[:, i, None, None, None] * total
        longer[..., 0] += column
        total = longer
    return SmoothReference(path.group, t, path.anchors[k], total)
