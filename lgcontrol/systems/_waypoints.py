"""Waypoints: polynomial motions through points of a group, stopping there or passing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, factorial
from typing import Any

import casadi as ca
import numpy as np
import scipy

from ..codegen import ModelFunction, named_options, trace
from ..codegen._internal import MOST_ORDER, check_count, check_shape
from ..groups import LieGroup, check_element
from ._smooth_reference import DERIVATIVES, SmoothReference, check_knots, velocity_of_exponential

# Orders of motions that pass: their derivatives at waypoints are at most the snap.
PASSING = (1, 3, 5, 7, 9)
# Newton steps, which converge in three or four, and where they are done, as a share of the largest.
MOST_WAYPOINT_STEPS = 50
WAYPOINTS_CONVERGED = 1e-11


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

    Parameters
    ----------
    order : int
        Odd; ``(order − 1)/2`` derivatives are zero at 0 and at 1.

    Returns
    -------
    ndarray, shape (order + 1,)

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
