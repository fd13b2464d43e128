"""What a log shows of the first state, along the way that was driven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import named_options
from ..systems import step_derivatives
from ._filter import Filter
from ._log import Log, Rows

LARGE_SHARE = 0.3  # of the largest entry of a direction, to be named


@dataclass(frozen=True, eq=False)
class LogObservability:
    """Directions of the first error, from the one a log shows least; made by `observability_along`.

    Attributes
    ----------
    gramian : ndarray, shape (n, n)
        ``Σ Φᵀ Cᵀ R⁻¹ C Φ``: information of all measurements on the first error, in the error
        coordinates of the system, if nothing were random in between.
    ratios : ndarray, shape (n,)
        Deviation that is left of each direction, by that before: one where nothing is shown.
    directions : ndarray, shape (n, n)
        Columns: one deviation of the first estimate along each.
    names : tuple of str
        Of the error coordinates.
    """

    gramian: np.ndarray
    ratios: np.ndarray
    directions: np.ndarray
    names: tuple[str, ...]

    def unseen(self, ratio: float = 0.9) -> list[str]:
        """Directions whose deviation stays above a share, by their largest error coordinates."""
        found = []
        for value, direction in zip(self.ratios, self.directions.T, strict=True):
            if value > ratio:
                large = np.abs(direction) >= LARGE_SHARE * np.abs(direction).max()
                found.append(" ".join(n for n, is_large in zip(self.names, large, strict=True)
                                      if is_large))  # fmt: skip
        return found

    def __str__(self) -> str:
        """One line a direction."""
        lines = []
        for value, direction in zip(self.ratios, self.directions.T, strict=True):
            order = np.argsort(-np.abs(direction))[:3]
            parts = ", ".join(f"{self.names[i]} {direction[i]:+.2g}" for i in order)
            lines.append(f"{value:.3g} of the deviation is left along {parts}")
        return "\n".join(lines)


@named_options
def observability_along(filter: Filter, log: Log, x0: Any = None) -> LogObservability:
    """Which directions of the first state the measurements of a log show, and how well.

    Linearized along the filter's estimates, without noise of the model: what motions excite
    (biases, scales, lever arms) is told from what they do not. Directions are independent in the
    first covariance of the filter.

    Parameters
    ----------
    filter : Filter
        Its first covariance must be positive definite.
    log : Log
        One, without batch axes.
    x0 : array_like, optional
        First estimate instead of the filter's.

    Returns
    -------
    LogObservability

    Examples
    --------
    Driving straight, ranges to a beacon ahead do not show the heading; nor the way across:

    >>> from lgcontrol.estimation import EKF, beacon_range, odometry
    >>> cart = odometry()
    >>> ranges = beacon_range(cart, [20.0, 0.0], std_discrete=0.1)
    >>> ekf = EKF(cart, [ranges], std0=0.5, noise={"velocity": 0.1})
    >>> t = 0.1 * np.arange(50)
    >>> log = Log(t, np.tile([1.0, 0, 0], (50, 1)), {"range": (t, (20 - t)[:, None])})
    >>> shown = observability_along(ekf, log)
    >>> shown.unseen(), bool(shown.ratios[-1] < 0.05)
    (['pose.y', 'pose.rz'], True)
    """
    rows = Rows.of(log, filter.system, filter.sensors)
    if rows.batch:
        raise ValueError("observability_along takes one log at a time")
    system, p = filter.system, filter.p
    run = filter.run(log, x0)
    n = system.n_errors
    made = step_derivatives(system, filter.method)
    given = np.where(np.isfinite(rows.u), rows.u, system.nominal_input)
    A = np.broadcast_to(np.eye(n), (len(rows.t), n, n)).copy()
    moves = np.flatnonzero(rows.dt[1:] > 0) + 1
    A[moves] = made(rows.t[moves], run.x[moves - 1], given[moves], p, rows.dt[moves]).A
    information = np.zeros((len(rows.t), n, n))
    for name, bound in filter.sensors.items():
        said = run.innovations[name]
        places = rows.places[name][0][said.is_used]
        if not len(places):
            continue
        C = bound.derivatives(run.t[places], run.x[places], given[places], p).C
        L = np.broadcast_to(bound.white_factor, (len(places), *bound.white_factor.shape))
        if bound.scale is not None:
            scale = bound.scale(run.t[places], run.x[places], given[places], p)
            L = np.reshape(scale, (len(places), -1))[..., None] * L
        white = np.linalg.solve(L, C)
        np.add.at(information, places, np.swapaxes(white, -1, -2) @ white)
    gramian, Phi = np.zeros((n, n)), np.eye(n)
    for own, step in zip(information, A, strict=True):
        Phi = step @ Phi
        gramian += Phi.T @ own @ Phi
    L = np.linalg.cholesky(filter.P0)
    values, vectors = np.linalg.eigh(L.T @ gramian @ L)
    ratios = 1 / np.sqrt(1 + np.maximum(values, 0.0))
    return LogObservability(gramian, ratios, L @ vectors, system.error_names)
