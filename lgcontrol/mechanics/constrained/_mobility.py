"""Mobility: degrees of freedom, redundant rows and singular positions; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import scipy

from ...codegen._internal import refuse_attribute
from ...systems import Trajectory
from ._constraint import RANK_OF_ROWS, SHORT, Constraints, RankOfRows
from ._equations import MechanismEquations
from ._marker_forces import COINCIDE
from ._system import OFF, ConstrainedMechanics

# How far neighbours are, in m and rad.
NEARBY = 1e-2
# Steps back onto the constraints from there, and the gap that may be left.
RETURNS, RETURNED = 8, 1e-9
# On a motion, conditioning below this share of the best one counts as singular.
NEARLY = 1e-3
# Share of the weakest combination that a row must have to be named there.
NAMED_COORDINATES = 0.1


@dataclass(frozen=True)
class SingularPosition:
    """A time at which constraints depend on each other that else do not, or nearly so.

    Attributes
    ----------
    time : float
        In s.
    rows : tuple of str
        Rows of the dependence, drives first: the drive at a dead point, the joints of a stretched
        loop.
    conditioning : float
        Smallest singular value of the rows that are usually independent, next to the largest.
    remedy : str
    """

    time: float
    rows: tuple[str, ...]
    conditioning: float
    remedy: str

    def __str__(self) -> str:
        """Sentence."""
        return (
            f"singular at t = {self.time:.6g} s (conditioning {self.conditioning:.2g}): "
            f"{', '.join(self.rows)}; {self.remedy}"
        )


@dataclass(frozen=True, eq=False)
class Mobility:
    """How a mechanism can move in one configuration, and where on a motion it is singular.

    Attributes
    ----------
    degrees_of_freedom : int
        Velocities that the joints leave free, drives counted as joints, in configurations nearby.
    here : int
        The same in this configuration alone: more than that where it is singular.
    undriven : int
        Degrees of freedom without the drives.
    positions : int
        Directions in which the configuration can be displaced: more than `degrees_of_freedom` where
        rows on velocities (rolling without slip) leave positions free.
    removable : tuple of str
        Rows that may be left out: those before them say the same, also nearby.
    dependent : tuple of str
        Rows that take part in such a dependence: their reactions are not unique.
    singular_positions : tuple of SingularPosition
        This configuration, if it is one; those of a motion, one for each passage.
    conditioning : float
        Smallest singular value of the independent rows next to the largest, rows scaled to one.
    gap : float
        Largest row on positions [m, rad].
    """

    if not TYPE_CHECKING:  # a type checker takes it for every name
        __getattr__ = refuse_attribute

    degrees_of_freedom: int
    here: int
    undriven: int
    positions: int
    removable: tuple[str, ...]
    dependent: tuple[str, ...]
    singular_positions: tuple[SingularPosition, ...]
    conditioning: float
    gap: float

    @property
    def is_singular(self) -> bool:
        """Whether rows depend on each other here and not nearby, or somewhere on the motion."""
        return bool(self.singular_positions)

    @property
    def singular(self) -> tuple[str, ...]:
        """Rows of all singular positions."""
        return tuple(dict.fromkeys(row for each in self.singular_positions for row in each.rows))

    def __str__(self) -> str:
        """Sentences."""
        many = "degree of freedom" if self.degrees_of_freedom == 1 else "degrees of freedom"
        parts = [f"{self.degrees_of_freedom} {many} ({self.undriven} without drives)"]
        if self.positions > self.degrees_of_freedom:
            parts[0] += f", {self.positions} of positions"
        if self.removable:
            parts.append(f"redundant: {', '.join(self.removable)}")
            parts.append(f"reactions not unique: {', '.join(self.dependent)}")
        if self.gap > OFF:
            parts.append(f"not closed here: rows are off by {self.gap:.3g}, assemble() closes them")
        return "; ".join([*parts, *(str(each) for each in self.singular_positions)])


def mobility(
    mechanics: ConstrainedMechanics,
    q: np.ndarray | Trajectory,
    t: float = 0.0,
    p: np.ndarray | None = None,
    hint: Callable[[np.ndarray], str] = lambda q: "",
) -> Mobility:
    """What `Linkage.mobility` says, of a configuration that keeps the constraints, or of a motion.

    `hint` says of q why coordinates are singular there, nothing where they are not.
    """
    p = mechanics.base.nominal_parameters if p is None else p
    if isinstance(q, Trajectory):
        start = q.x[0][: mechanics.configuration.nq]
        return _Judged(mechanics, start, float(q.t[0]), p, hint).found(q)
    return _Judged(mechanics, q, t, p, hint).found(None)


def remedy_of(constraints: Constraints, rows: list[int], G: np.ndarray, hint: str) -> str:
    """What to do about rows that depend on each other."""
    driven, names = driven_rows(constraints), constraints.row_names
    drivers = [i for i in rows if i < len(driven) and driven[i]]
    lengths = np.linalg.norm(G, axis=1)
    vanishing = [i for i in drivers if lengths[i] < SHORT * np.median(lengths)]
    if hint:
        return hint
    if vanishing:
        driver = names[vanishing[0]].rpartition(".")[0]
        return f"drive {driver} by an angle_drive, which has no dead points"
    if drivers:
        return (
            "a dead point of the mechanism for this drive: drive another joint, or turn back before"
        )
    return "a dead point of the mechanism itself: keep away from it, or change lengths"


def driven_rows(constraints: Constraints) -> np.ndarray:
    """Which rows on positions depend on the time, bool of shape (n_position,)."""
    t, q = ca.SX.sym("t"), ca.SX.sym("q", constraints.group.nq)
    phi = constraints.position(t, q, ca.SX.sym("p", constraints.n_parameters))
    found = np.zeros(constraints.n_position, dtype=bool)
    found[ca.jacobian(phi, t).sparsity().row()] = True
    return found


def drives_first(constraints: Constraints, rows: set[int]) -> list[int]:
    """Rows in the order in which they are named."""
    driven = driven_rows(constraints)
    return sorted(rows, key=lambda i: (not (i < len(driven) and driven[i]), i))


@dataclass(frozen=True, eq=False)
class _Judged:
    """A configuration beside its neighbours."""

    mechanics: ConstrainedMechanics
    q: np.ndarray
    t: float
    p: np.ndarray
    hint: Callable[[np.ndarray], str]
    constraints: Constraints = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", self.mechanics.constraints)

    def found(self, motion: Trajectory | None) -> Mobility:
        """All of it."""
        own, dim, names = self.mechanics, self.constraints.group.dim, self.constraints.row_names
        is_driven = driven_rows(self.constraints)
        still = np.ones(len(names), dtype=bool)
        still[: len(is_driven)] = ~is_driven
        states = [own.complete(q, t=self.t) for q in (self.q, *self._neighbours(is_driven))]
        every = [own.rank(x, self.p) for x in states]
        here, usual = every[0], max(every, key=lambda found: found.rank)
        held = slice(0, self.constraints.n_position)

        def rank_of(rows: np.ndarray | slice) -> int:
            return max(own.rank(x, self.p, rows).rank for x in states)

        positions: tuple[SingularPosition, ...] = ()
        if motion is not None:
            positions = tuple(self._along(motion, usual.rank))
        elif here.rank < usual.rank:
            rows = set(here.dependent) - set(usual.dependent) or set(here.dependent)
            positions = (self._position(self.q, self.t, _ratio(here, usual.rank), rows),)
        phi = own.terms_of(states[0], self.p)[0]
        return Mobility(
            dim - usual.rank,
            dim - here.rank,
            dim - rank_of(still),
            dim - rank_of(held),
            tuple(names[i] for i in usual.removable),
            tuple(names[i] for i in usual.dependent),
            positions,
            _ratio(here, usual.rank),
            float(np.abs(phi).max(initial=0.0)),
        )

    def _position(
        self, q: np.ndarray, t: float, conditioning: float, rows: set[int]
    ) -> SingularPosition:
        order, names = drives_first(self.constraints, rows), self.constraints.row_names
        G = self.mechanics.terms_of(self.mechanics.complete(q, t=t), self.p)[1]
        remedy = remedy_of(self.constraints, order, G, self.hint(q))
        return SingularPosition(t, tuple(names[i] for i in order), conditioning, remedy)

    def _along(self, motion: Trajectory, usual: int) -> Iterator[SingularPosition]:
        """Where a motion comes near to a singular position; its steps do not notice."""
        own, nq = self.mechanics, self.constraints.group.nq
        states = [own.complete(x[:nq], t=float(t)) for t, x in zip(motion.t, motion.x, strict=True)]
        every = [own.rank(x, self.p) for x in states]
        usual = max([usual, *(found.rank for found in every)])
        ratio = np.array([_ratio(found, usual) for found in every])
        near = (ratio < NEARLY * ratio.max()) | _passes(ratio)
        edges = np.flatnonzero(np.diff(np.r_[False, near, False].astype(int)))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            k = start + int(ratio[start:stop].argmin())
            share = np.abs(every[k].combinations[:, usual - 1])
            rows = set(np.flatnonzero(share > NAMED_COORDINATES * share.max(initial=0.0)).tolist())
            yield self._position(states[k][:nq], float(motion.t[k]), float(ratio[k]), rows)

    def _neighbours(self, is_driven: np.ndarray) -> Iterator[np.ndarray]:
        """Configurations nearby that keep the rows without a drive."""
        group, own = self.constraints.group, self.mechanics
        kept = np.flatnonzero(~is_driven)

        def rows(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            phi, G, _ = own.terms_of(own.complete(q, t=self.t), self.p)
            return phi[kept], G[kept]

        rng, G = np.random.default_rng(1), rows(self.q)[1]
        basis = scipy.linalg.null_space(G, rcond=RANK_OF_ROWS) if G.size else np.eye(group.dim)
        for _ in range(3):
            away = basis @ rng.normal(size=basis.shape[1])
            away *= NEARBY / max(np.linalg.norm(away), 1e-300)
            place = group.plus(self.q, away)
            for _ in range(RETURNS):
                phi, G = rows(place)
                step = np.linalg.lstsq(G, phi, rcond=RANK_OF_ROWS)[0] if phi.size else 0 * away
                place = group.normalize(group.plus(place, -step))
            if np.abs(rows(place)[0]).max(initial=0.0) < RETURNED:
                yield place


def _ratio(found: RankOfRows, usual: int) -> float:
    """Smallest singular value of rows that are usually independent, next to the largest."""
    return float(found.values[usual - 1] / max(found.values[0], 1e-300)) if usual else 1.0


def _passes(ratio: np.ndarray) -> np.ndarray:
    """Smallest samples of something that falls to zero and rises again, within a sample."""
    padded = np.pad(ratio, 1, constant_values=np.inf)
    before, after = padded[:-2] - ratio, padded[2:] - ratio
    largest = np.maximum(*(np.where(np.isfinite(x), x, 0.0) for x in (before, after)))
    return (before >= 0) & (after > 0) & (ratio < largest)


# Where |sin θ| of an Euler angle is smaller, a march that failed is put down to that.
SINGULAR_ANGLE = 1e-3
# Smallest eigenvalue of M, its diagonal scaled to one, that counts as zero.
SINGULAR_MASS = 1e-13


def refuse_singular_mass(
    own: MechanismEquations, mechanics: ConstrainedMechanics, q: np.ndarray
) -> None:
    """Say why M has no inverse in a configuration: names the body, and what it lacks."""
    M = mechanics.terms_of(mechanics.complete(q), mechanics.base.nominal_parameters)[2]
    size = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    if np.linalg.eigvalsh(M / np.outer(size, size))[0] > SINGULAR_MASS:
        return
    name, angles = mechanics.base.name, singular_angles(own, q)
    if angles:
        raise ValueError(f"{name}: {angles}")
    weak = [
        body
        for body, inertia in own.inertias.items()
        if not (inertia.mass > 0 and np.linalg.eigvalsh(inertia.inertia)[0] > 0)
    ]
    raise ValueError(
        f"{name}: the mass matrix is singular, since joints do not hold all turns or "
        f"displacements without inertia of {', '.join(weak) or 'its bodies'}; give a mass and "
        "moments of inertia (SpatialInertia.box, SpatialInertia.sphere), small ones will do"
    )


def refuse_zero_lengths(own: MechanismEquations, q: np.ndarray) -> None:
    """Say which spring has points that coincide, and so no direction."""
    for force in own.forces:
        if force.is_direct and float(own.measured[force.name](q)[0]) <= COINCIDE:
            raise ValueError(
                f"force {force.name!r} has no direction: its points on {force.i.body!r} and "
                f"{force.j.body!r} coincide; move one of them, or take a spring of length 0"
            )


def refuse_march(
    mechanics: ConstrainedMechanics, x: np.ndarray, p: np.ndarray, remedy: str
) -> None:
    """Say which rows a start breaks, or which depend on others there and have no multipliers."""
    name = mechanics.base.name
    gap = np.abs(np.asarray(mechanics.gap(ca.DM(x), ca.DM(p)))).ravel()
    names = mechanics.constraints.row_names
    worst = int(gap.argmax()) if len(gap) else 0
    if gap.max(initial=0.0) > OFF:
        what = ("position", "velocity")[worst >= mechanics.constraints.n_position]
        row = names[worst % len(names)]
        raise ValueError(
            f"{name}: x0 does not keep the constraints, the {what} of {row} is off by "
            f"{gap[worst]:.3g}; state() makes one that does"
        )
    q = x[: mechanics.configuration.nq]
    if not mechanics.rank(x, p).removable:
        return
    t = float(x[-1]) if mechanics.constraints.is_driven else 0.0
    found = mobility(mechanics, q, t, p)
    raise ValueError(
        f"{name}: a march needs independent rows, at x0 there are others ({found}); "
        f"{remedy}, start beside a singular position, or take system(), which allows both"
    )


def refuse_open(
    mechanics: ConstrainedMechanics, t: np.ndarray, q: np.ndarray, p: np.ndarray
) -> None:
    """Say which row on positions configurations (..., nq) break most at times (...)."""
    own, shape = mechanics.constraints, np.broadcast_shapes(np.shape(t), q.shape[:-1])
    times = np.broadcast_to(t, shape).ravel()
    each = np.broadcast_to(q, (*shape, q.shape[-1])).reshape(-1, q.shape[-1])
    if not own.n_position or not len(each):
        return
    phi = own.position(ca.DM(times).T, ca.DM(each.T), ca.DM(p)).full()
    refuse_gap(mechanics.base.name, times, phi, own.row_names, own.units)


def refuse_gap(
    name: str, t: np.ndarray, phi: np.ndarray, rows: Sequence[str], units: Sequence[str]
) -> None:
    """Say where rows are open, or have no value; φ has a column for each time."""
    gap = np.abs(phi)
    if not gap.size or (gap <= OFF).all():
        return
    row, k = divmod(int(gap.argmax()), gap.shape[1])  # NaN comes first
    raise ValueError(
        f"{name}: q does not keep the joints at t = {t[k]:g} s: {rows[row]} is off by "
        f"{gap[row, k]:.3g} {units[row]}".rstrip()
        + "; close them first: assemble(q, t=…)"
    )


def singular_angles(own: MechanismEquations, q: np.ndarray) -> str:
    """Name the body whose coordinates are singular in a configuration; empty if there is none."""
    for body, chosen in own.formulations.items():
        measure = chosen.regularity
        if measure and abs(float(measure(ca.DM(q[own.places[body][0]])))) < SINGULAR_ANGLE:
            return (
                f'Euler angles of {body!r} are singular there; "SO3xR3" and "SE3" have no such '
                "position"
            )
    return ""
