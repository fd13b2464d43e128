"""squared_distance: between points and segments, for obstacles and links that are capsules."""

from __future__ import annotations

from typing import Any

import casadi as ca

# Squared lengths are divided by, m²: segments shorter than a nanometre are points.
TINY_SEGMENT = 1e-18


def squared_distance(a: Any, b: Any) -> Any:
    """Least squared distance of two segments, or a segment and a point, or two points.

    Its slope is continuous, but for parallel segments side by side, where the nearest points are
    not unique. One column is a point, two are the ends of a segment.

    References
    ----------
    C. Ericson: Real-time collision detection. Morgan Kaufmann 2005, section 5.1.9, with no branch.

    Examples
    --------
    >>> float(squared_distance(ca.DM([[0, 1], [0, 0]]), ca.DM([[0.5, 0.5], [2, 1]])))
    1.0
    """
    start_a, along_a = a[:, 0], a[:, -1] - a[:, 0]
    start_b, along_b = b[:, 0], b[:, -1] - b[:, 0]
    between = start_a - start_b
    if a.shape[1] == 1 and b.shape[1] == 1:
        return ca.sumsqr(between)
    if a.shape[1] == 1:
        share = _share(ca.dot(along_b, between), ca.sumsqr(along_b))
        return ca.sumsqr(between - share * along_b)
    if b.shape[1] == 1:
        return squared_distance(b, a)
    aa, bb, ab = ca.sumsqr(along_a), ca.sumsqr(along_b), ca.dot(along_a, along_b)
    da, db = ca.dot(along_a, between), ca.dot(along_b, between)
    # Nearest points of the lines; then of the segments, first along a, then along b, then a again.
    s = _share(ab * db - da * bb, aa * bb - ab**2)
    r = _share(ab * s + db, bb)
    s = _share(ab * r - da, aa)
    return ca.sumsqr(between + s * along_a - r * along_b)


def _share(dividend: Any, divisor: Any) -> Any:
    """Quotient within 0 and 1; 0 where the divisor vanishes."""
    safe = ca.if_else(divisor > TINY_SEGMENT, divisor, 1.0)
    return ca.if_else(divisor > TINY_SEGMENT, ca.fmin(ca.fmax(dividend / safe, 0.0), 1.0), 0.0)
