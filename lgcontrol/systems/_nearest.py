"""Gauss–Newton on a group: the solution of equations that is nearest to a given point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ..groups import LieGroup

# Weights of the distance from the given point, decreasing: the last equations are solved alone,
# with the shortest steps, so that the solution is nearest up to the square of the one before.
WEIGHTS = (0.3, 0.03, 1e-3, 1e-5, 0.0)
MAX_STEPS = 40  # each weight starts where the one before ended, and most take three
SOLVED = 1e-9  # scaled residual; quadratic convergence leaves 1e-14 where the equations are regular

# Entries of gradients (SI) below this are rounding: the row does not depend on that variable. The
# slowest orbits about the earth have 1e-9, a constraint force that cancels leaves 1e-13.
NO_GRADIENT = 1e-11

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""``(x, u) → r, J`` with columns of J for a displacement of x, then for the free inputs."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """Where Gauss–Newton stopped.

    Attributes
    ----------
    x, u : ndarray
    residual : ndarray
        Of the equations.
    scaled : ndarray
        The same divided by the length of each equation's gradient: about the displacement that is
        missing.
    """

    x: np.ndarray
    u: np.ndarray
    residual: np.ndarray
    scaled: np.ndarray

    @property
    def solved(self) -> bool:
        """Whether every equation holds."""
        return bool(np.abs(self.scaled).max(initial=0.0) <= SOLVED)


def solve_nearest(
    group: LieGroup,
    equations: Evaluate,
    start: tuple[np.ndarray, np.ndarray],
    target: tuple[np.ndarray, np.ndarray],
    free: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    scale: np.ndarray,
    row_scale: np.ndarray,
) -> Nearest:
    """Solve ``r(x, u) = 0`` near a target, the free inputs within bounds.

    Parameters
    ----------
    group : LieGroup
        Of x.
    equations : callable
    start, target : pair of ndarray
        x and u to start from, and to stay near to.
    free : ndarray of int
        Positions of the free inputs in u.
    bounds : pair of ndarray
        Of the free inputs.
    scale : ndarray
        Size of a change of each free input that counts like one rad, m, m/s of the state.
    row_scale : ndarray
        Factor of each equation; see `row_scales`.

    Returns
    -------
    Nearest
    """
    problem = _Problem(group, equations, target, free, bounds, scale, row_scale)
    x, u = start[0], start[1].copy()
    u[free] = np.clip(u[free], *bounds)
    residual, jacobian = equations(x, u)
    if not (np.isfinite(residual).all() and np.isfinite(jacobian).all()):
        return Nearest(x, u, residual, np.full(residual.shape, np.inf))
    for weight in WEIGHTS:
        x, u = problem.descend(x, u, weight)
    residual, _ = equations(x, u)
    return Nearest(x, u, residual, residual * problem.row_scale)


def row_scales(
    equations: Evaluate, points: Sequence[tuple[np.ndarray, np.ndarray]], scale: np.ndarray
) -> np.ndarray:
    """One over the length of each equation's gradient, the longest at some points.

    Each row has its own, so that a fast state does not loosen the equations of the others. At
    several points, because a gradient may vanish at one of them; where it does at all of them, 1.

    Parameters
    ----------
    equations : callable
    points : sequence of (x, u)
    scale : ndarray
        See `solve_nearest`.

    Returns
    -------
    ndarray
    """
    gradients = [in_scaled_variables(equations(x, u)[1], scale) for x, u in points]
    lengths = np.linalg.norm(gradients, axis=-1)
    length = np.where(np.isfinite(lengths), lengths, 0.0).max(axis=0)
    return 1.0 / np.where(length > NO_GRADIENT, length, 1.0)


def in_scaled_variables(jacobian: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Derivatives with respect to the free inputs, in the last columns, times their scale."""
    states = jacobian.shape[1] - len(scale)
    return np.hstack([jacobian[:, :states], jacobian[:, states:] * scale])


@dataclass
class _Problem:
    group: LieGroup
    equations: Evaluate
    target: tuple[np.ndarray, np.ndarray]
    free: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    scale: np.ndarray
    row_scale: np.ndarray

    def descend(self, x: np.ndarray, u: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """Levenberg–Marquardt steps for one weight of the distance."""
        damping = 0.0
        rows, jacobian = self._rows(x, u, weight)
        cost = rows @ rows
        for _ in range(MAX_STEPS):
            move = self._move(rows, jacobian, u, damping)
            new_x, new_u = self._moved(x, u, move)
            new_rows, new_jacobian = self._rows(new_x, new_u, weight)
            new_cost = new_rows @ new_rows
            if np.isfinite(new_cost) and np.isfinite(new_jacobian).all() and new_cost < cost:
                gained = cost - new_cost
                x, u, rows, jacobian, cost = new_x, new_u, new_rows, new_jacobian, new_cost
                damping = damping / 10 if damping > 1e-6 else 0.0
                if gained <= 1e-14 * cost:
                    break
            elif np.abs(move).max(initial=0.0) < 1e-12 or damping > 1e8:
                break
            else:
                damping = max(10 * damping, 1e-4)
        return x, u

    def _scaled_equations(self, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, jacobian = self.equations(x, u)
        return residual, in_scaled_variables(jacobian, self.scale)

    def _rows(self, x: np.ndarray, u: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        residual, jacobian = self._scaled_equations(x, u)
        residual, jacobian = residual * self.row_scale, jacobian * self.row_scale[:, None]
        if not weight:
            return residual, jacobian
        away = self.group.minus(x, self.target[0])
        n, k = self.group.dim, len(self.free)
        distance = np.concatenate([away, (u - self.target[1])[self.free] / self.scale])
        slope = np.eye(n + k)
        slope[:n, :n] = self.group.right_jacobian_inverse(away)
        return (
            np.concatenate([residual, weight * distance]),
            np.vstack([jacobian, weight * slope]),
        )

    def _move(
        self, rows: np.ndarray, jacobian: np.ndarray, u: np.ndarray, damping: float
    ) -> np.ndarray:
        """Damped Gauss–Newton step in scaled variables, the inputs kept within their bounds."""
        count = jacobian.shape[1]
        if damping:
            jacobian = np.vstack([jacobian, np.sqrt(damping) * np.eye(count)])
            rows = np.concatenate([rows, np.zeros(count)])
        move = np.linalg.lstsq(jacobian, -rows, rcond=1e-12)[0]
        lower, upper = (np.full(count, sign * np.inf) for sign in (-1.0, 1.0))
        lower[self.group.dim :] = (self.bounds[0] - u[self.free]) / self.scale
        upper[self.group.dim :] = (self.bounds[1] - u[self.free]) / self.scale
        if (move < lower).any() or (move > upper).any():
            # An input that is at its bound cannot move at all: bounds of zero width.
            still = upper - lower <= 0
            move = np.zeros(count)
            move[~still] = scipy.optimize.lsq_linear(
                jacobian[:, ~still], -rows, (lower[~still], upper[~still]), method="bvls"
            ).x
        return move

    def _moved(
        self, x: np.ndarray, u: np.ndarray, move: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        n = self.group.dim
        moved = u.copy()
        moved[self.free] = np.clip(u[self.free] + move[n:] * self.scale, *self.bounds)
        return self.group.normalize(self.group.plus(x, move[:n])), moved
