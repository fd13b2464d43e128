"""Tolerance: errors of tangent vectors in units of what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..groups import LieGroup, Rn
from ..groups._internal import leaves

# Newton's corrections fall quadratically: after a last one of this size, next to the unknowns, what
# is left is of the order of rounding.
TOLERATED = 1e-6


class Tolerance:
    """Norm of errors in units of what is allowed: ``atol + rtol · magnitude`` in each entry.

    The magnitude is that of the state in Rn blocks, and 1 (m, rad) in blocks of motions.

    Parameters
    ----------
    group : LieGroup
    rtol : float
        Share of the magnitude.
    atol : float or array_like of shape (dim,)

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> tolerance = Tolerance(Rn(1), 1e-3, 1e-6)
    >>> round(tolerance.norm(np.array([2e-3]), np.array([1.0])), 3)
    1.998
    """

    def __init__(self, group: LieGroup, rtol: float, atol: Any) -> None:
        atol = np.asarray(atol, dtype=np.float64)
        self.atol = check_shape("atol", atol, () if atol.ndim == 0 else (group.dim,))
        self.rtol = float(check_shape("rtol", rtol, ()))
        if self.rtol < 0 or (self.atol <= 0).any():
            raise ValueError(f"need rtol >= 0 and atol > 0, got rtol = {rtol}, atol = {atol}")
        vectors = [leaf for leaf in leaves(group) if isinstance(leaf.group, Rn)]
        self._vectors = (
            np.r_[np.zeros(0, int), *(leaf.coordinates for leaf in vectors)],
            np.r_[np.zeros(0, int), *(leaf.tangent for leaf in vectors)],
        )
        self._magnitude = np.ones(group.dim)

    def norm(self, d: np.ndarray, *states: np.ndarray) -> float:
        """Root mean square of a tangent vector near some states; NaN if anything is not finite."""
        if d.size == 0:
            return 0.0
        if not (np.isfinite(d).all() and all(np.isfinite(x).all() for x in states)):
            return np.nan
        return float(np.linalg.norm(d / self._scale(*states)) / np.sqrt(d.size))

    def _scale(self, *states: np.ndarray) -> np.ndarray:
        magnitude = self._magnitude
        if self._vectors[0].size:
            magnitude = magnitude.copy()
            coordinates, entries = self._vectors
            magnitude[entries] = np.max([np.abs(x[coordinates]) for x in states], axis=0)
        return self.atol + self.rtol * magnitude
