"""Assembly: a configuration that keeps all constraints, from a rough guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ._constraint import Constraints

# Rows with less than this share of the largest gap do not take part in a contradiction.
PART = 0.05
# Steps longer than this, in m and rad, are shortened: linearized joints know no further.
LONGEST = 0.5
# Singular values below this share of the largest count as zero.
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class Assembly:
    """A configuration found from a guess, and whether it keeps the constraints.

    Attributes
    ----------
    q : ndarray, shape (nq,)
    gap : float
        Largest entry of φ.
    is_assembled : bool
    iterations : int
        Steps of all attempts.
    contradicting : tuple of str
        Rows that cannot be kept together, where it is not assembled: those that the closest
        configuration breaks.
    """

    q: np.ndarray
    gap: float
    is_assembled: bool
    iterations: int
    contradicting: tuple[str, ...]

    def checked(self, name: str) -> Assembly:
        """Return this assembly if it is one.

        Parameters
        ----------
        name : str
            Of the mechanism, for the message.

        Raises
        ------
        ValueError
            If it is not assembled: says which rows contradict each other, and by how much.
        """
        if self.is_assembled:
            return self
        raise ValueError(
            f"{name} cannot be assembled: the closest configuration that was found is off by "
            f"{self.gap:.3g} in {', '.join(self.contradicting)}; these equations contradict each "
            "other, or the guess is too far away: correct lengths, points and drives of these "
            "joints, or give poses nearer to the branch that is meant"
        )


class GapFunction:
    """φ and G of constraints at a time, as a function of q, on arrays."""

    def __init__(self, constraints: Constraints, t: float, p: np.ndarray) -> None:
        self.constraints, self.t, self.p = constraints, t, ca.DM(p)
        self.rest = ca.DM(constraints.group.dim, 1)

    def __call__(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ and the rows of G that belong to it."""
        at = self.constraints.terms(ca.DM(self.t), ca.DM(q), self.rest, self.p)
        rows = self.constraints.n_position
        return np.asarray(at.phi).ravel(), np.asarray(at.G)[:rows]


def assemble(
    constraints: Constraints,
    guess: np.ndarray,
    t: float = 0.0,
    p: Sequence[float] = (),
    *,
    held: Iterable[int] = (),
    tolerance: float = 1e-13,
    attempts: int = 12,
) -> Assembly:
    """Nearest configuration to a guess that keeps φ(t, q) = 0.

    Damped steps of Gauss and Newton lead onto the constraints, then along them towards the guess;
    where they end in a contradiction, further attempts start from places around it.

    Parameters
    ----------
    constraints : Constraints
    guess : ndarray, shape (nq,)
    t : float
        Time of the drives [s].
    p : sequence of float
        Parameters.
    held : iterable of int
        Entries of the tangent vector that stay as they are in the guess.
    tolerance : float
        Of φ.
    attempts : int
        Starts around the guess, where the guess itself leads nowhere.

    Returns
    -------
    Assembly
    """
    gap = GapFunction(constraints, t, np.asarray(p, dtype=np.float64))
    free = np.ones(constraints.group.dim)
    free[list(held)] = 0.0
    group, rng = constraints.group, np.random.default_rng(0)
    best: np.ndarray | None = None
    count = 0
    for attempt in range(attempts):
        away = free * rng.normal(size=group.dim) * 0.1 * attempt
        q, steps = _onto(gap, group.plus(guess, away) if attempt else guess, free, tolerance)
        count += steps
        phi = gap(q)[0]
        if best is None or np.abs(phi).max(initial=0.0) < np.abs(gap(best)[0]).max(initial=0.0):
            best = q
        if np.abs(phi).max(initial=0.0) <= tolerance:
            best, steps = _towards(gap, q, guess, free, tolerance)
            count += steps
            break
    assert best is not None
    phi = gap(best)[0]
    largest = float(np.abs(phi).max(initial=0.0))
    names = constraints.row_names[: constraints.n_position]
    broken = tuple(
        name for name, value in zip(names, phi, strict=True) if abs(value) > PART * largest
    )
    return Assembly(
        best, largest, largest <= tolerance, count, () if largest <= tolerance else broken
    )


def _onto(
    gap: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    q: np.ndarray,
    free: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, int]:
    """Damped steps of Gauss and Newton from q until φ vanishes or nothing helps."""
    group = gap.constraints.group  # type: ignore[attr-defined]
    damping, (phi, G) = 0.0, gap(q)
    for step in range(200):
        size = np.linalg.norm(phi)
        if np.abs(phi).max(initial=0.0) <= tolerance:
            return _polished(gap, q, free), step
        d = _shortest(G * free, phi, damping)
        d = -d * free * min(1.0, LONGEST / max(np.abs(d).max(), 1e-300))
        moved = group.normalize(group.plus(q, d))
        new_phi, new_G = gap(moved)
        if np.linalg.norm(new_phi) < size * (1 - 1e-10):
            q, phi, G, damping = moved, new_phi, new_G, damping / 10
            damping = 0.0 if damping < 1e-12 else damping
        elif damping > 1e6:
            return q, step
        else:
            damping = max(10 * damping, 1e-9)
    return q, 200


def _polished(gap: Any, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """One further step, where it makes the gap smaller."""
    group = gap.constraints.group
    phi, G = gap(q)
    moved = group.normalize(group.plus(q, -free * _shortest(G * free, phi, 0.0)))
    better = np.abs(gap(moved)[0]).max(initial=0.0) < np.abs(phi).max(initial=0.0)
    return moved if better else q


def _towards(
    gap: Any, q: np.ndarray, guess: np.ndarray, free: np.ndarray, tolerance: float
) -> tuple[np.ndarray, int]:
    """Move along the constraints towards the guess, as long as that leads nearer."""
    group, count = gap.constraints.group, 0
    for _ in range(20):
        _, G = gap(q)
        back = free * group.minus(guess, q)
        along = free * (back - _shortest(G * free, G @ back, 0.0))
        if np.abs(along).max(initial=0.0) < 1e-6:
            break
        moved, steps = _onto(gap, group.plus(q, along), free, tolerance)
        count += steps
        if np.abs(gap(moved)[0]).max(initial=0.0) > tolerance:
            break
        if np.linalg.norm(free * group.minus(guess, moved)) >= np.linalg.norm(back):
            break
        q = moved
    return q, count


def _shortest(G: np.ndarray, phi: np.ndarray, damping: float) -> np.ndarray:
    """Shortest d with ``G d ≈ φ``; damped where damping is positive."""
    if not G.size:
        return np.zeros(G.shape[1])
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    kept = s > FLAT * max(s[0], 1e-300)
    gain = np.where(kept, s / (s * s + damping + ~kept), 0.0)
    return Vt.T @ (gain * (U.T @ phi))
