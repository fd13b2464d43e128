"""Allocation: controls within bounds that come nearest to wanted accelerations, by priority."""

from __future__ import annotations

import numpy as np
import scipy

# Controls that the wanted quantities leave open stay small, at a price that changes what is met by
# less than this share.
REGULARIZATION = 1e-6


def allocate(
    effect: np.ndarray,
    wanted: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    priority: np.ndarray | None = None,
) -> np.ndarray:
    """Controls u with ``effect @ u`` as near to `wanted` as bounds allow.

    Without active bounds this is the pseudo-inverse. Otherwise rows with a higher priority are met
    first: they count by the square of their priority, each relative to the largest effect that the
    controls can have on it.

    Parameters
    ----------
    effect : ndarray, shape (k, m)
        Effect of each control on each wanted quantity.
    wanted : ndarray, shape (k,)
    lower, upper : ndarray, shape (m,)
        Bounds of the controls.
    priority : ndarray, shape (k,), optional
        All alike if left out.

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    Two rotors lift and turn; lift gives way:

    >>> effect = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> allocate(effect, [2.5, 1.0], np.zeros(2), np.ones(2), np.array([1, 100])).round(2)
    array([1., 0.])
    """
    wanted, lower, upper = (np.asarray(v, dtype=np.float64) for v in (wanted, lower, upper))
    u = np.linalg.pinv(effect) @ wanted
    if ((u >= lower) & (u <= upper)).all():
        return u
    span = upper - lower
    span = np.where(np.isfinite(span) & (span > 0), span, 1.0)
    reach = np.abs(effect) @ span
    scale = np.where(reach > 0, reach, 1.0)
    weight = (np.ones(len(wanted)) if priority is None else np.asarray(priority)) / scale
    rows = np.vstack([weight[:, None] * effect, REGULARIZATION * np.diag(1.0 / span)])
    target = np.concatenate([weight * wanted, np.zeros(len(u))])
    # The solver refuses equal bounds: it gets a little room.
    room = np.maximum(upper, np.nextafter(lower, np.inf))
    found = scipy.optimize.lsq_linear(rows, target, bounds=(lower, room), method="bvls")
    return np.clip(found.x, lower, upper)
