"""Mobility: freedoms, redundant rows and singular positions of a mechanism, by name."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy

from ._constraint import Constraints

# Singular values below this share of the largest count as zero.
RANK_TOLERANCE = 1e-8
# Share of a null vector that a row must have to be named.
SHARE = 1e-6
# Rows shorter than this share of the median are left short: they are about to vanish.
SHORT = 0.3
# How far neighbours are, in m and rad.
NEARBY = 1e-2
# Steps back onto the constraints from there, and the gap that may be left.
RETURNS, CLOSE = 8, 1e-9


@dataclass(frozen=True, eq=False)
class Mobility:
    """How a mechanism can move in one configuration.

    Attributes
    ----------
    freedoms : int
        Velocities that the joints leave free, drives counted as joints, in configurations nearby.
    undriven : int
        The same without the drives.
    removable : tuple of str
        Rows that may be left out: the others say the same, also nearby.
    dependent : tuple of str
        Rows that take part in such a dependence: their reactions are not unique.
    is_singular : bool
        Whether rows depend on each other here and not nearby: a singular position.
    singular : tuple of str
        These rows: the drive at a dead point, the joints of a stretched loop.
    conditioning : float
        Smallest singular value of the independent rows next to the largest, rows scaled to one.
    """

    freedoms: int
    undriven: int
    removable: tuple[str, ...]
    dependent: tuple[str, ...]
    is_singular: bool
    singular: tuple[str, ...]
    conditioning: float

    def __str__(self) -> str:
        """Sentences."""
        parts = [f"{self.freedoms} freedoms ({self.undriven} without drives)"]
        if self.removable:
            parts.append(f"redundant: {', '.join(self.removable)}")
            parts.append(f"reactions not unique: {', '.join(self.dependent)}")
        if self.is_singular:
            parts.append(f"singular position: {', '.join(self.singular)}")
        return "; ".join(parts)


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


@dataclass(frozen=True, eq=False)
class RankOfRows:
    """Rank of rows scaled to a length of about one, with dependent and removable ones."""

    rank: int
    dependent: tuple[int, ...]
    removable: tuple[int, ...]
    values: np.ndarray
    weakest: np.ndarray

    @classmethod
    def of(cls, G: np.ndarray) -> RankOfRows:
        """By singular values; the last rows that depend on those before them are removable."""
        lengths = np.linalg.norm(G, axis=1)
        W = G / np.maximum(lengths, SHORT * np.median(lengths) + 1e-300)[:, None]
        if not W.size:
            none = np.zeros(len(W))
            return cls(0, tuple(range(len(W))), tuple(range(len(W))), none, none)
        U, s, _ = np.linalg.svd(W)
        rank = int((s > RANK_TOLERANCE * max(s[0], 1e-300)).sum())
        null = U[:, rank:]
        dependent = np.flatnonzero(np.linalg.norm(null, axis=1) > SHARE).tolist()
        removable, kept = [], np.zeros((0, W.shape[1]))
        if rank < len(W):
            for i, row in enumerate(W):
                rest = row - kept.T @ (kept @ row)
                rest = rest - kept.T @ (kept @ rest)
                size = np.linalg.norm(rest)
                if size > RANK_TOLERANCE * 10:
                    kept = np.vstack([kept, rest / size])
                else:
                    removable.append(i)
        padded = np.concatenate([s, np.zeros(len(W) - len(s))])
        return cls(rank, tuple(dependent), tuple(removable), padded, U[:, len(s) - 1])


def mobility(
    constraints: Constraints, q: np.ndarray, t: float = 0.0, p: np.ndarray | None = None
) -> Mobility:
    """Freedoms and dependent rows in a configuration that keeps the constraints.

    Parameters
    ----------
    constraints : Constraints
    q : ndarray, shape (nq,)
    t : float
        Time of the drives [s].
    p : ndarray, optional
        Parameters.

    Returns
    -------
    Mobility
    """
    p = np.zeros(constraints.n_parameters) if p is None else p
    gap, names = GapFunction(constraints, t, p), constraints.row_names
    here = RankOfRows.of(gap(q)[1])
    is_driven = driven_rows(constraints)
    slopes = [gap(place)[1] for place in [q, *_neighbours(constraints, q, is_driven, p)]]
    usual = max((RankOfRows.of(G) for G in slopes), key=lambda found: found.rank)
    dim = constraints.group.dim
    undriven = max(RankOfRows.of(G[~is_driven]).rank for G in slopes)
    singular = sorted(set(here.dependent) - set(usual.dependent)) or list(here.dependent)
    is_singular = here.rank < usual.rank
    return Mobility(
        dim - usual.rank,
        dim - undriven,
        tuple(names[i] for i in usual.removable),
        tuple(names[i] for i in usual.dependent),
        is_singular,
        tuple(names[i] for i in singular) if is_singular else (),
        float(here.values[usual.rank - 1] / here.values[0]) if usual.rank else 1.0,
    )


def driven_rows(constraints: Constraints) -> np.ndarray:
    """Which rows on positions depend on the time, bool of shape (n_position,)."""
    t, q = ca.SX.sym("t"), ca.SX.sym("q", constraints.group.nq)
    phi = constraints.position(t, q, ca.SX.sym("p", constraints.n_parameters))
    found = np.zeros(constraints.n_position, dtype=bool)
    found[ca.jacobian(phi, t).sparsity().row()] = True
    return found


def _neighbours(
    constraints: Constraints, q: np.ndarray, is_driven: np.ndarray, p: np.ndarray
) -> list[np.ndarray]:
    """Configurations nearby that keep the rows without a drive."""
    still = [
        entry
        for entry in constraints.members
        if entry.kind == "position" and not is_driven[constraints.rows_of(entry.name)].any()
    ]
    left = Constraints(constraints.group, still, constraints.n_parameters)
    rng, group, found = np.random.default_rng(1), constraints.group, []
    gap = GapFunction(left, 0.0, p)
    _, G = gap(q)
    basis = scipy.linalg.null_space(G, rcond=RANK_TOLERANCE) if G.size else np.eye(group.dim)
    for _ in range(3):
        away = basis @ rng.normal(size=basis.shape[1])
        away *= NEARBY / max(np.linalg.norm(away), 1e-300)
        place = group.plus(q, away)
        for _ in range(RETURNS):
            phi, G = gap(place)
            step = np.linalg.lstsq(G, phi, rcond=RANK_TOLERANCE)[0] if phi.size else 0 * away
            place = group.normalize(group.plus(place, -step))
        if np.abs(gap(place)[0]).max(initial=0.0) < CLOSE:
            found.append(place)
    return found
