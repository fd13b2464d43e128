"""assemble: the configuration nearest to a guess that keeps constraints, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy

from ._system import ConstrainedMechanics

# Closure error of an assembled mechanism [m, rad]: rounding of coordinates of size one.
CLOSED = 1e-13
ASSEMBLY_STEPS = 200
# Gap below which any decrease counts, and the share of it that a step must gain above.
NEARLY_CLOSED = 1e-6
PROGRESS = 1e-5
# Damping that a failing step starts from, next to the largest curvature, and where it gives up.
ASSEMBLY_DAMPING = 1e-4
LARGEST_ASSEMBLY_DAMPING = 1e10
# Displacements of the guess that are tried, one after the other.
SPREADS = (0.0, 1e-3, 0.1, 0.5)
# A row keeps the mechanism open if it has this share of the largest gap.
ASSEMBLY_SHARE = 0.05


class AssemblyError(RuntimeError):
    """No configuration keeps the constraints.

    Attributes
    ----------
    q : ndarray
        The nearest one found.
    rows : tuple of str
        Rows that stay open there.
    """

    def __init__(self, message: str, q: np.ndarray, rows: tuple[str, ...]) -> None:
        super().__init__(message)
        self.q, self.rows = q, rows


@dataclass(frozen=True, eq=False)
class HeldCoordinate:
    """A coordinate that assembly gives a value."""

    name: str
    value: float
    unit: str
    off: Any  # what it lacks from the value, of the symbols q


@dataclass(frozen=True, eq=False)
class _Assembling:
    """Steps towards ``φ = 0`` and given coordinates, shortest in the metric of M at the guess."""

    mechanics: ConstrainedMechanics
    held: Sequence[HeldCoordinate]
    wished: ca.Function
    t: float
    p: np.ndarray

    def rows(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What must vanish, its derivative, and M."""
        x = self.mechanics.complete(q, t=self.t)
        phi, G, M = self.mechanics.terms_of(x, self.p)
        wished, slope = (value.full() for value in self.wished(q))
        return np.r_[phi, wished.ravel()], np.vstack([G[: len(phi)], slope]), M


def assemble(
    mechanics: ConstrainedMechanics,
    guess: np.ndarray,
    *,
    q: ca.SX | None = None,
    held: Sequence[HeldCoordinate] = (),
    t: float = 0.0,
    p: np.ndarray | None = None,
) -> np.ndarray:
    """Configuration near a guess that keeps the constraints on positions to rounding.

    Damped Gauss–Newton on the group, the steps shortest in the metric of the mass matrix. Held
    coordinates, expressions of the symbols q, choose the branch. See `Linkage.assemble`.
    """
    p = mechanics.base.nominal_parameters if p is None else p
    q = ca.SX.sym("q", mechanics.configuration.nq) if q is None else q
    off = ca.SX(ca.vertcat(ca.SX(0, 1), *(entry.off for entry in held)))
    slope = ca.jacobian(off, q) @ mechanics.configuration.rate_matrix(q)
    descent = _Assembling(mechanics, held, ca.Function("held", [q], [off, slope]), t, p)
    rng, first = np.random.default_rng(0), None
    for spread in SPREADS:  # a guess with bars in line may be a saddle
        move = spread * rng.normal(size=mechanics.configuration.dim)
        found, is_closed = _descend(descent, mechanics.configuration.plus(guess, move))
        if is_closed:
            return found
        first = found if first is None else first
    assert first is not None
    raise _refusal(descent, first)


def _descend(descent: _Assembling, guess: np.ndarray) -> tuple[np.ndarray, bool]:
    """Nearest configuration found, and whether it is closed."""
    group = descent.mechanics.configuration
    q = group.normalize(guess)
    rows, slope, M = descent.rows(q)
    if not np.isfinite(rows).all() or not np.isfinite(slope).all():
        raise _not_finite(descent, q, rows, slope)
    L = np.linalg.cholesky(M)
    damping = 0.0
    for _ in range(ASSEMBLY_STEPS):
        gap = np.abs(rows).max(initial=0.0)
        W = scipy.linalg.solve_triangular(L, slope.T, lower=True)  # (n, m)
        move = scipy.linalg.solve_triangular(L, _step(W, rows, damping), lower=True, trans="T")
        tried = group.normalize(group.plus(q, move))
        new_rows, new_slope, _ = descent.rows(tried)
        # Far from closed a step must do more than crawl along a valley that does not close.
        share = 1.0 if gap < NEARLY_CLOSED else 1.0 - PROGRESS
        if np.linalg.norm(new_rows) < share * np.linalg.norm(rows):
            q, rows, slope, damping = tried, new_rows, new_slope, damping / 10
            damping = 0.0 if damping < ASSEMBLY_DAMPING / 100 else damping
        elif gap <= CLOSED:
            return q, True
        else:
            damping = max(10 * damping, ASSEMBLY_DAMPING)
            if damping > LARGEST_ASSEMBLY_DAMPING or np.abs(move).max() < np.finfo(float).eps:
                break
    return q, bool(np.abs(rows).max(initial=0.0) <= CLOSED)


def _not_finite(
    descent: _Assembling, q: np.ndarray, rows: np.ndarray, slope: np.ndarray
) -> AssemblyError:
    """Say which rows have no value."""
    ill = ~(np.isfinite(rows) & np.isfinite(slope).all(axis=1))
    names = [*descent.mechanics.constraints.row_names, *["held coordinates"] * len(rows)]
    named = tuple(names[i] for i in np.flatnonzero(ill))
    return AssemblyError(
        f"{descent.mechanics.base.name} cannot be assembled: {', '.join(named)} or its derivatives "
        f"are not finite at t = {descent.t:g} s in the guess",
        q,
        named,
    )


def _refusal(descent: _Assembling, q: np.ndarray) -> AssemblyError:
    """Say which rows stay open in the nearest configuration."""
    mechanics, held = descent.mechanics, descent.held
    rows = descent.rows(q)[0]
    gap = np.abs(rows)
    names = [*mechanics.constraints.row_names[: len(rows) - len(held)]]
    names += [f"{entry.name} held at {entry.value:g}" for entry in held]
    units = [*mechanics.constraints.units[: len(rows) - len(held)]]
    units += [entry.unit for entry in held]
    open_rows = [i for i in np.argsort(-gap) if gap[i] >= ASSEMBLY_SHARE * gap.max()]
    listed = ", ".join(f"{names[i]} = {rows[i]:.3g} {units[i]}".rstrip() for i in open_rows[:6])
    return AssemblyError(
        f"{mechanics.base.name} cannot be assembled from this guess: the nearest configuration "
        f"found leaves {listed}; these rows contradict one another there, or the bodies do not "
        "reach: check lengths and frames, hold other coordinates, or start nearer",
        q,
        tuple(names[i] for i in open_rows),
    )


def _step(W: np.ndarray, rows: np.ndarray, damping: float) -> np.ndarray:
    """Damped least squares ``−W (Wᵀ W + μ)⁻¹ r``, of the smallest norm where rows depend."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    if not len(s) or not s[0]:
        return np.zeros(len(W))
    mu = damping * s[0] ** 2
    keep = s > 1e-10 * s[0]
    gain = np.where(keep, s / np.where(keep, s**2 + mu, 1.0), 0.0)
    return -U @ (gain * (Vt @ rows))
