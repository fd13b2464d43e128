"""BSpline: cumulative splines on a group, from control points or fitted; ScrewMotion: one screw."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ..codegen import named_options
from ..codegen._internal import MOST_ORDER, UnknownNameError, check_count, check_shape, unknown_name
from ..groups import LieGroup, Product, check_element
from ._smooth_reference import SmoothReference, check_knots
from ._trajectory import Trajectory

# Corrections of control points, which shrink by the curvature of the group over a few spans, and
# where they are done, in m and rad.
MOST_SPLINE_STEPS = 50
SPLINE_CONVERGED = 1e-10


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
