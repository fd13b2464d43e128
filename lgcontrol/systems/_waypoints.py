"""Motions through waypoints: with stops at each, and as splines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, factorial
from typing import Any

import casadi as ca
import numpy as np
import scipy

from ..codegen import ModelFunction, named_options, trace
from ..codegen._internal import MOST_ORDER, UnknownNameError, check_count, check_shape, unknown_name
from ..groups import LieGroup, Product, check_element
from ._smooth_reference import DERIVATIVES, SmoothReference, check_knots, velocity_of_exponential
from ._trajectory import Trajectory

# Orders of motions that pass: their derivatives at waypoints are at most the snap.
PASSING = (1, 3, 5, 7, 9)
# Newton steps, which converge in three or four, and where they are done, as a share of the largest.
MOST_WAYPOINT_STEPS = 50
WAYPOINTS_CONVERGED = 1e-11
# Corrections of control points, which shrink by the curvature of the group over a few spans, and
# where they are done, in m and rad.
MOST_SPLINE_STEPS = 50
SPLINE_CONVERGED = 1e-10


@named_options(own="order")
class Waypoints(SmoothReference):
    """Motion ``X_k exp(φ(t))`` from each waypoint to the next, with a polynomial φ of odd order.

    One that stops is a screw motion from each waypoint to the next, at rest there with
    ``(order − 1)/2`` derivatives zero. One that passes has those derivatives continuous, such that
    ``∫ |φ^(m)|² dt`` with ``m = (order + 1)/2`` is least. Order 3 is the cubic spline, 5 has
    minimum jerk, 7 minimum snap. On vector spaces ``order − 1`` derivatives are continuous.

    Parameters
    ----------
    group : LieGroup
        Group of the waypoints: SE3 for poses.
    t : array_like, shape (N + 1,)
        Increasing times in s.
    x : array_like, shape (N + 1, nq)
        Waypoints.
    order : int
        Odd. The default, 5, rests with velocity and acceleration zero; 1 keeps the velocity from
        one waypoint to the next.
    stops : bool
        Whether the motion rests at every waypoint, or passes those between the first and the last.
    start, end : sequence of array_like, shape (dim,) each
        Velocity, acceleration, … at the first and the last waypoint of a motion that passes; what
        is left out is zero.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Translation
    >>> path = Waypoints(SE3, [0, 2], SE3.from_position([[0, 0, 0], [1, 0, 0]]))
    >>> path(1.0).velocity
    array([0.9375, 0.    , 0.    , 0.    , 0.    , 0.    ])
    >>> path.jumps[0].derivative
    'jerk'
    >>> across = Waypoints(Translation("xy"), [0, 1, 2], [[0, 0], [1, 1], [2, 0]], 7, stops=False)
    >>> across(1.0).velocity.round(2) + 0.0
    array([2.19, 0.  ])
    """

    x: np.ndarray
    order: int
    stops: bool

    def __init__(
        self,
        group: LieGroup,
        t: Any,
        x: Any,
        order: int = 5,
        *,
        stops: bool = True,
        start: Sequence[Any] = (),
        end: Sequence[Any] = (),
    ) -> None:
        times = check_knots(group, t)
        x = check_element("x", check_shape("x", x, (len(times), group.nq)), group, batch=True)
        _check_order(order, stops, len(start) + len(end))
        screws, spans = group.minus(x[1:], x[:-1]), np.diff(times)
        if stops or order == 1:
            coefficients = screws[:, None, :, None] * rest_to_rest(order)
        else:
            count = (order - 1) // 2
            first = _derivatives("start", start, count, group.dim)
            last = _derivatives("end", end, count, group.dim)
            coefficients = _passing(group, screws, spans, count, first, last)[:, None]
        super().__init__(group, times, x[:-1], coefficients)
        self._set(x=x, order=order, stops=stops)


def rest_to_rest(order: int) -> np.ndarray:
    """Ascending coefficients of the polynomial from 0 to 1 that is flattest at both ends.

    The order is odd; ``(order − 1)/2`` derivatives are zero at 0 and at 1.

    Examples
    --------
    >>> rest_to_rest(5)
    array([  0.,   0.,   0.,  10., -15.,   6.])
    """
    m = (order + 1) // 2
    late = [(-1) ** k * comb(m - 1 + k, k) * comb(order, m - 1 - k) for k in range(m)]
    return np.array([0] * m + late, dtype=np.float64)


def _check_order(order: Any, stops: bool, given: int) -> None:
    if not isinstance(order, int | np.integer) or order < 1 or order % 2 == 0:
        raise ValueError(f"order must be odd, 1, 3, 5, …, got {order!r}")
    check_count("order", order, most=MOST_ORDER)
    if not stops and order not in PASSING:
        raise ValueError(
            f"order of a motion that passes must be one of {', '.join(map(str, PASSING))}, got "
            f"{order}: derivatives are continuous up to the snap with 9"
        )
    if given and (stops or order == 1):
        raise ValueError("start and end are for motions that pass: give stops=False, order=3 …")


def _derivatives(name: str, given: Sequence[Any], count: int, dim: int) -> np.ndarray:
    """Derivatives of the velocity at one end, the first `count` of them, shape (dim, count)."""
    if len(given) and np.ndim(given[0]) == 0:
        raise ValueError(
            f"{name} has numbers, expected a list of derivatives of {dim} numbers each: "
            f"{name}=[velocity]"
        )
    if len(given) > count:
        known = ", ".join(DERIVATIVES[:count])
        raise ValueError(f"{name} has {len(given)} derivatives, this order takes {known}")
    columns = np.zeros((dim, count))
    for i, value in enumerate(given):
        columns[:, i] = check_shape(f"{name}[{i}], the {DERIVATIVES[i]},", value, (dim,))
    return columns


def _passing(
    group: LieGroup,
    screws: np.ndarray,
    spans: np.ndarray,
    count: int,
    start: np.ndarray,
    end: np.ndarray,
) -> np.ndarray:
    """Coefficients (N, dim, 2 m) of the motion of least ``∫ |φ^(m)|²``, by Gauss and Newton.

    Unknown are the derivatives of the velocity at the inner waypoints. In φ they are linear at the
    start of a span, where φ = 0 up to brackets, and curved at its end.
    """
    dim, N, free = group.dim, len(spans), count * group.dim
    hermite, cost = _hermite(count + 1)
    # Rows of a span: the end of φ, then its derivatives by the share of the span at both ends.
    power = spans[:, None] ** np.arange(1, count + 1)
    weight = spans ** (-(2 * count + 1) / 2)
    rates = np.zeros((N + 1, dim, count))
    rates[0], rates[-1] = start, end
    change = _derivatives_of_log(group, count)
    root, each = cost * weight[:, None, None], np.repeat(power, dim, axis=0)
    each = each.reshape(N, dim, count).transpose(0, 2, 1)
    size, steps = np.inf, MOST_WAYPOINT_STEPS if N > 1 else 0
    while True:
        left, dleft = change(np.zeros_like(screws), rates[:-1])
        right, dright = change(screws, rates[1:])
        data = _data(screws, left, right, power)
        if not steps or size < WAYPOINTS_CONVERGED * np.abs(rates).max():
            return np.einsum("ij,naj->nai", hermite, data)
        # Sensitivities by the free derivatives at each end, one block of columns each.
        slopes = np.zeros((N, 2, dim, 2 * count + 2, free))
        for side, D in ((0, dleft), (1, dright)):
            # Rows and columns of D are stacked by derivative: derivative · dim + coordinate.
            own = D.reshape(N, count, dim, free) * each[..., None]
            at = slice(1 + side * (count + 1), 1 + side * (count + 1) + count)
            slopes[:, side, :, at] = own.transpose(0, 2, 1, 3)
        value = np.einsum("nij,naj->nai", root, data).reshape(N, -1)
        slope = np.einsum("nij,nsajf->nsaif", root, slopes).reshape(N, 2, -1, free)
        step = _least_squares(value, slope, N, free).reshape(N - 1, count, dim)
        rates[1:-1] += step.transpose(0, 2, 1)
        size, steps = np.abs(step).max(), steps - 1


def _data(screws: np.ndarray, left: np.ndarray, right: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Values and derivatives of φ by the share of a span at its ends, (N, dim, 2 m)."""
    zero = np.zeros((*screws.shape, 1))
    scaled = [side * power[:, None] for side in (left, right)]
    return np.concatenate([zero, scaled[0], screws[..., None], scaled[1]], axis=-1)


def _least_squares(value: np.ndarray, slope: np.ndarray, N: int, free: int) -> np.ndarray:
    """Step of the inner derivatives that makes the rows of all spans least."""
    rows = value.shape[1]
    entries, place = [], []
    for side in (0, 1):
        # A span's start is inner waypoint k − 1, its end inner waypoint k.
        spans = np.arange(1, N) if side == 0 else np.arange(N - 1)
        column = (spans - 1 if side == 0 else spans)[:, None, None] * free + np.arange(free)
        row = spans[:, None, None] * rows + np.arange(rows)[:, None]
        entries.append(slope[spans, side].ravel())
        place.append([np.broadcast_to(a, (len(spans), rows, free)).ravel() for a in (row, column)])
    J = scipy.sparse.csr_matrix(
        (np.concatenate(entries), np.concatenate(place, axis=1)),
        shape=(N * rows, (N - 1) * free),
    )
    return scipy.sparse.linalg.splu((J.T @ J).tocsc()).solve(-(J.T @ value.ravel()))


@lru_cache(8)
def _hermite(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Ascending coefficients of m derivatives at 0, then at 1, and a root of ``∫ |p^(m)|²``."""
    size = 2 * m
    ends = np.zeros((size, size))
    for k in range(m):
        ends[k, k] = factorial(k)
        ends[m + k, k:] = [factorial(i) / factorial(i - k) for i in range(k, size)]
    coefficients = np.linalg.inv(ends)
    high = np.arange(m, size)
    scale = np.array([factorial(i) / factorial(i - m) for i in high])
    gram = np.outer(scale, scale) / (high[:, None] + high - 2 * m + 1)
    root = np.linalg.cholesky(gram).T @ coefficients[m:]
    return coefficients, root


@lru_cache(256)
def _derivatives_of_log(group: LieGroup, count: int) -> ModelFunction:
    """``(phi, rates) → derivatives, slope``: those of φ with which exp(φ(t)) has given rates.

    ``φ̇ = J_r(φ)⁻¹ v``; a higher derivative enters ``v^(j)`` by ``J_r`` too, all else is known.
    Columns of the slope are those of the rates one below the other, its rows those of the result.
    """

    def build(phi: Any, rates: Any) -> list[Any]:
        forward, back = velocity_of_exponential(group).function, group.right_jacobian_inverse(phi)
        columns = [phi, *(type(phi).zeros(group.dim) for _ in DERIVATIVES)]
        for j in range(count):
            missing = rates[:, j] - forward(ca.horzcat(*columns))[:, j]
            columns[1 + j] = back @ missing
        derivatives = ca.horzcat(*columns[1 : 1 + count])
        return [derivatives, ca.jacobian(ca.vec(derivatives), ca.vec(rates))]

    n = group.dim
    return trace(
        "derivatives_of_log",
        build,
        {"phi": (n,), "rates": (n, count)},
        {"derivatives": (n, count), "slope": (n * count, n * count)},
    )


@named_options
class BSpline(SmoothReference):
    """Motion ``c_k Π exp(B̃_i(t) d_i)`` pulled along by control points c.

    B̃ are sums of B-splines and ``d_i = log(c_{i-1}⁻¹ c_i)``. All derivatives below the degree are
    continuous between the first and the last time. The motion begins in the first control point
    and ends in the last.

    Parameters
    ----------
    group : LieGroup
    t : array_like, shape (K + 1,)
        Increasing times of the knots in s.
    x : array_like, shape (K + degree, nq)
        Control points.
    degree : int
        Of the polynomials; 5 has a continuous snap.

    References
    ----------
    M.-J. Kim, M.-S. Kim, S. Y. Shin: A general construction scheme for unit quaternion curves with
    simple high order derivatives. SIGGRAPH 1995, eq. 5.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> turn = BSpline(SO2, [0, 1], SO2.exp([[0], [0], [1], [1]]), degree=3)
    >>> turn(0.5).velocity
    array([1.5])
    """

    x: np.ndarray
    degree: int

    def __init__(self, group: LieGroup, t: Any, x: Any, degree: int = 5) -> None:
        times = check_knots(group, t)
        _check_degree(degree)
        count = len(times) - 1 + degree
        shown = check_shape("x", x, (None, group.nq))
        if len(shown) != count:
            raise ValueError(
                f"x has {len(shown)} control points, expected {count}: degree {degree} and "
                f"{len(times) - 1} spans"
            )
        x = check_element("x", shown, group, batch=True)
        steps = group.minus(x[1:], x[:-1])
        sums = _cumulative(times, degree)
        spans = np.arange(len(times) - 1)[:, None]
        factors = spans + np.arange(degree)
        coefficients = steps[factors][..., None] * sums[spans, factors + 1][:, :, None]
        super().__init__(group, times, x[:-degree], coefficients)
        self._set(x=x, degree=int(degree))

    @classmethod
    def fitted(
        cls, trajectory: Trajectory, spacing: float, degree: int = 5, *, block: str | None = None
    ) -> BSpline:
        """Motion nearest to the nodes of a trajectory, in the sense of least squares.

        It begins and ends exactly where the trajectory does. With noise or coarse nodes take a
        wide spacing, else one of a few nodes.

        Parameters
        ----------
        trajectory : Trajectory
        spacing : float
            Of knots, in s, about: a whole number of spans is taken.
        degree : int
        block : str, optional
            Block of the trajectory's group to fit, such as "pose"; its velocity is that of the
            result.

        Returns
        -------
        BSpline

        Raises
        ------
        ValueError
            If there are fewer nodes than control points, or some span has none.

        Examples
        --------
        >>> from lgcontrol.groups import SE2
        >>> t = np.linspace(0, 2, 41)
        >>> arc = Trajectory(SE2, t, SE2.exp(t[:, None] * [1.0, 0.0, 0.5]))
        >>> BSpline.fitted(arc, 0.5)(0.73).velocity.round(6) + 0.0
        array([1. , 0. , 0.5])
        """
        if not isinstance(trajectory, Trajectory):
            raise TypeError(f"trajectory must be a Trajectory, not {type(trajectory).__name__}")
        _check_degree(degree)
        group, nodes = _block_of(trajectory, block)
        spacing = float(check_shape("spacing", spacing, ()))
        if spacing <= 0:
            raise ValueError(f"spacing must be positive, in s, got {spacing}")
        start, end = trajectory.t[0], trajectory.t[-1]
        spans = max(1, round((end - start) / spacing)) if end > start else 0
        count, t = spans + degree, trajectory.t
        if spans == 0:
            raise ValueError(f"a motion needs nodes at two times, the trajectory has {len(t)}")
        if len(t) < count:
            raise ValueError(
                f"{len(t)} nodes do not determine {count} control points of degree {degree} with "
                f"spans of {spacing:g} s: {_remedy(len(t), end - start, degree)}"
            )
        knots = np.linspace(start, end, spans + 1)
        basis = scipy.interpolate.BSpline.design_matrix(
            t, _clamped(knots, degree), degree
        ).toarray()
        first = np.interp(np.linspace(start, end, count), t, np.arange(len(t)))
        points = nodes[np.round(first).astype(int)]
        points[0], points[-1] = nodes[0], nodes[-1]
        inner = basis[:, 1:-1]
        if np.linalg.matrix_rank(inner) < count - 2:
            raise ValueError(f"some spans of {spacing:g} s hold no node: take a wider spacing")
        weights = np.linalg.pinv(inner)
        motion = cls(group, knots, points, degree)
        for _ in range(MOST_SPLINE_STEPS):
            step = weights @ group.minus(nodes, motion(t).x)
            points[1:-1] = group.plus(points[1:-1], step)
            motion = cls(group, knots, points, degree)
            if np.abs(step).max(initial=0.0) < SPLINE_CONVERGED:
                break
        return motion


@named_options
class ScrewMotion(SmoothReference):
    """Motion ``X exp(t v)`` with a constant body-fixed velocity: lines, circles, helices.

    Parameters
    ----------
    group : LieGroup
    x : array_like, shape (nq,)
        Start of the motion.
    velocity : array_like, shape (dim,)
        v, body-fixed, per s.
    seconds : float
        How long it lasts; it stops at once.
    t : float
        When it starts, in s.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> ScrewMotion(SE2, SE2.identity, [1, 0, 1], np.pi)(np.pi).x.round(6) + 0.0
    array([ 0.,  2., -1.,  0.])
    """

    def __init__(
        self, group: LieGroup, x: Any, velocity: Any, seconds: float, *, t: float = 0.0
    ) -> None:
        begin, lasting = check_shape("t", t, ()), check_shape("seconds", seconds, ())
        if lasting <= 0:
            raise ValueError(f"seconds, how long the motion lasts, must be positive, got {seconds}")
        times = check_knots(group, [begin, begin + lasting])
        start = check_element("x", check_shape("x", x, (group.nq,)), group)
        velocity = check_shape("velocity", velocity, (group.dim,))
        screw = np.stack([np.zeros(group.dim), velocity * lasting], axis=-1)
        super().__init__(group, times, start[None], screw[None, None])


def _remedy(nodes: int, duration: float, degree: int) -> str:
    """What to change where nodes are fewer than spans and degree together."""
    if nodes > degree:
        return f"take a spacing of {duration / (nodes - degree):.3g} s or more, or a lower degree"
    if nodes > 1:
        return f"take a degree of {nodes - 1} or less, as even one span has more of this degree"
    return "give a trajectory with two nodes at least"


def _check_degree(degree: Any) -> None:
    check_count("degree", degree, most=MOST_ORDER)


def _clamped(knots: np.ndarray, degree: int) -> np.ndarray:
    """Knots with the ends repeated, so that the spline begins and ends in control points."""
    return np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])


def _cumulative(knots: np.ndarray, degree: int) -> np.ndarray:
    """``B̃_i = Σ_{j ≥ i} B_j`` by the share of a span, ascending, (spans, points, degree + 1)."""
    spans, count = len(knots) - 1, len(knots) - 1 + degree
    full = _clamped(knots, degree)
    found = np.zeros((spans, count, degree + 1))
    for i in range(count):
        later = scipy.interpolate.BSpline(full, (np.arange(count) >= i).astype(float), degree)
        pieces = scipy.interpolate.PPoly.from_spline(later).c[::-1, degree : degree + spans]
        found[:, i] = pieces.T * np.diff(knots)[:, None] ** np.arange(degree + 1)
    return found


def _block_of(trajectory: Trajectory, block: str | None) -> tuple[LieGroup, np.ndarray]:
    """Group and states of a trajectory, or of one of its blocks."""
    group, x = trajectory.group, trajectory.x
    if x.ndim != 2 or not np.isfinite(x).all():
        raise ValueError("fitted needs one trajectory that did not diverge, not a batch")
    if block is None:
        return group, x.copy()
    blocks = group.blocks if isinstance(group, Product) else {}
    if block not in blocks:
        raise UnknownNameError(unknown_name("block", block, blocks))
    assert isinstance(group, Product)
    return blocks[block], x[:, group.coordinate_slice(block)].copy()
