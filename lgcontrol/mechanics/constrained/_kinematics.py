"""Kinematics over time: motions that drives decide, with forces, and where they turn singular."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ...codegen._internal import Result, Status, check_increasing
from ...groups import Product, Rn
from ...systems import Trajectory
from ._constraint import Constraints, RankOfRows
from ._mobility import SingularPosition, drives_first, mobility, remedy_of
from ._system import ConstrainedMechanics

Key = TypeVar("Key", bound=Hashable)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Below this share of the largest, the smallest singular value of the rows counts as zero.
SINGULAR_POSITION = 1e-7
# Near a dead point the smallest singular value dips below this share of its median.
DIP = 0.1
# Share of the weakest combination that a row must have to be named.
NAMED_DIRECTIONS = 0.05
MOST_ITERATIONS = 30
# Singular values below this share of the largest are left out of solutions: rows that say what
# others say have some 1e-16 of rounding, and a dead point is reported long before,
# at `SINGULAR_POSITION`.
CUT = 1e-11
# A solution may be another assembly if it is further from its prediction than this ratio to the
# predicted displacement. Corrections below the first limit never are, those above the second one
# always [rad or m]. The interval is halved then.
FAR_FROM_PREDICTION, SMALL_CORRECTION, LARGE_CORRECTION = 0.25, 0.02, 0.2
HALVED_INTERVALS = 8  # a jump over 1/256 of an interval is one of the drive, or of the assembly
# Residuals that no longer fall are rounding up to this multiple of the tolerance.
ROUNDED_GAPS = 100


class KinematicsStatus(Status, StrEnum):
    """How a run along the drives ended.

    ``SINGULAR``: solved, with singular positions on the way. ``FAILED``: positions could not be
    solved; the motion ends before the first of them.
    """

    SOLVED = "solved"
    SINGULAR = "singular"
    FAILED = "failed"

    @property
    def is_success(self) -> bool:
        """Whether all positions are solved and none is singular."""
        return self is KinematicsStatus.SOLVED


@dataclass(frozen=True, eq=False)
class KinematicsResult(Result):
    """A motion that drives decide.

    Attributes
    ----------
    t : ndarray, shape (N,)
        Times [s].
    q : ndarray, shape (N, nq)
    v, a : ndarray, shape (N, nv)
        Velocities and accelerations.
    multipliers : ndarray, shape (N, m)
        λ of ``M a + Gᵀ λ = F``: inverse dynamics along the motion.
    iterations : ndarray of int, shape (N,)
    conditioning : ndarray, shape (N,)
        Smallest singular value of the rows next to the largest.
    singular : tuple of SingularPosition
    status : KinematicsStatus
    message : str
    state : Product
        Group of configuration and velocity.
    rows : tuple of str
        Names of the rows that multipliers belong to.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    multipliers: np.ndarray
    iterations: np.ndarray
    conditioning: np.ndarray
    singular: tuple[SingularPosition, ...]
    status: KinematicsStatus
    message: str
    state: Product
    rows: tuple[str, ...]

    @classmethod
    def of_rows(
        cls,
        t: np.ndarray,
        found: Sequence[tuple[np.ndarray, ...]],
        message: str,
        state: Product,
        rows: tuple[str, ...],
    ) -> KinematicsResult:
        """Of q, v, a and λ that sparse steps find: without a measure of conditioning, NaN.

        `found` ends before the first time that could not be solved, and the message says why.
        """
        (configuration, velocity), done = state.blocks.values(), len(found)
        sizes = (configuration.nq, velocity.dim, velocity.dim, len(rows))
        columns: Any = (
            np.array([row[i] for row in found]).reshape(done, size) for i, size in enumerate(sizes)
        )
        counts, unknown = np.zeros(done, dtype=int), np.full(done, np.nan)
        status = KinematicsStatus.FAILED if done < len(t) else KinematicsStatus.SOLVED
        q, v, a, multipliers = columns
        return cls(
            t[:done], q, v, a, multipliers, counts, unknown, (), status, message, state, rows
        )

    def plot(self, *, figure: Any = None) -> Figure:
        """Configuration, velocity and multipliers over time, as `Trajectory.plot` draws them.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Axes to draw on; new ones if left out.
        """
        group = Product(**self.state.blocks, multipliers=Rn(len(self.rows), self.rows))
        drawn = np.concatenate([self.q, self.v, self.multipliers], axis=-1)
        return Trajectory(group, self.t, drawn).plot(figure=figure)

    def __repr__(self) -> str:
        """Status, times, sizes and what was singular."""
        span = f"{len(self.t)} times" + (f" to {self.t[-1]:g} s" if len(self.t) else "")
        sizes = f"{self.q.shape[-1]} coordinates, {self.multipliers.shape[-1]} multipliers"
        singular = f", {len(self.singular)} singular positions" if self.singular else ""
        message = f": {self.message}" if self.message else ""
        return f"KinematicsResult({self.status}, {span}, {sizes}{singular}){message}"


def kinematics(
    mechanics: ConstrainedMechanics,
    dynamics: Callable[..., Any],
    t: Any,
    start: Callable[[float], np.ndarray],
    u: np.ndarray,
    p: np.ndarray,
    *,
    tolerance: float,
    remedy: str,
    hint: Callable[[np.ndarray], str] = lambda q: "",
) -> KinematicsResult:
    """Positions, velocities, accelerations and multipliers at given times, as `Linkage.kinematics`.

    `dynamics` is ``(t, q, v, u, p) → phi, G, nu, gamma, M, F`` on arrays. `start` gives a
    configuration near that at the first time. `remedy` says what to add where no drive decides a
    degree of freedom, and `hint` why coordinates are singular in a configuration.
    """
    constraints, name = mechanics.constraints, mechanics.base.name
    t = check_increasing("t", t)
    rolling = constraints.row_names[constraints.n_position :]
    if rolling:
        raise ValueError(
            f"{name}: kinematics is of joints that hold positions, {', '.join(rolling)} hold "
            "velocities; simulate its system()"
        )
    q = start(float(t[0]))
    free = mobility(mechanics, q, float(t[0]), p, hint)
    if free.degrees_of_freedom:
        raise ValueError(
            f"{name}: no drive decides {free.degrees_of_freedom} of its degrees of freedom "
            f"({free}); add {remedy}, or simulate its system()"
        )
    group, n = constraints.group, constraints.group.dim
    rows: list[tuple[np.ndarray, ...]] = []
    counts, measures, signs, weakest = [], [], [], []
    rest, unsolved = np.zeros(n), (np.zeros(0), np.zeros((0, n)), q)
    message, status = "", KinematicsStatus.SOLVED

    def attempt(found: tuple[Any, ...] | None, last: float, time: float) -> Attempt:
        nonlocal unsolved
        q0, v, a = (q, rest, rest) if found is None else found[:3]
        h = time - last
        move = h * v + h * h / 2 * a
        ahead = here = group.normalize(group.plus(q0, move))
        at = dynamics(time, here, rest, u, p)
        count = 0
        while np.abs(at.phi).max(initial=0.0) > tolerance and count < MOST_ITERATIONS:
            before = np.abs(at.phi).max()
            here = group.normalize(group.plus(here, -_least(at.G, at.phi)))
            at = dynamics(time, here, rest, u, p)
            count += 1
            gap = np.abs(at.phi).max()
            if before / 2 <= gap <= ROUNDED_GAPS * tolerance:
                break
        G, correction = at.G, group.minus(here, ahead)
        if not np.abs(at.phi).max(initial=0.0) <= ROUNDED_GAPS * tolerance:
            unsolved = at.phi, G, here
            return Attempt(None, move, correction)
        v = _least(G, at.nu)
        at = dynamics(time, here, v, u, p)
        a = _least(at.G, at.gamma)
        multipliers = _least(at.G.T, at.F - at.M @ a)
        return Attempt((here, v, a, multipliers, G, count), move, correction)

    def measure(q: np.ndarray, G: np.ndarray) -> None:
        rank = RankOfRows.of(G)
        measures.append(rank.values[n - 1] / max(rank.values[0], 1e-300) if len(G) >= n else 0.0)
        signs.append(float(np.linalg.slogdet(G)[0]) if len(G) == n else 1.0)
        weakest.append((rank, G, q))

    jumps = []
    for found, jumped in followed(t, attempt):
        *row, G, count = found
        counts.append(count)
        rows.append(tuple(row))
        measure(row[0], G)
        jumps += [float(t[len(rows) - 1])] * jumped
    done = len(rows)
    if done < len(t):
        phi, G, here = unsolved
        measure(here, G)
        status, message = _failed(constraints, float(t[done]), phi)
    else:
        message = jump_text(jumps)
    found = _singular(constraints, t, np.array(measures), np.array(signs), weakest, hint)
    if found and status is KinematicsStatus.SOLVED:
        told = [str(entry) for entry in found] + [message] * bool(message)
        status, message = KinematicsStatus.SINGULAR, "; ".join(told)
    elif found:
        message = f"{message}; {found[-1]}"
    sizes = (constraints.group.nq, n, n, constraints.n_rows)
    columns: Any = [
        np.array([row[i] for row in rows]).reshape(done, size) for i, size in enumerate(sizes)
    ]
    q, v, a, multipliers = columns
    return KinematicsResult(
        t[:done],
        q,
        v,
        a,
        multipliers,
        np.array(counts[:done]),
        np.array(measures[:done]),
        found,
        status,
        message,
        mechanics.base.state,
        tuple(constraints.row_names),
    )


class Attempt(NamedTuple):
    """Positions at a time, from those before it; None if they could not be solved.

    What is found begins with q, v, a. `predicted` is the displacement from the time before to the
    prediction, `correction` that from there to the solution.
    """

    found: tuple[Any, ...] | None
    predicted: np.ndarray
    correction: np.ndarray

    @property
    def leads_elsewhere(self) -> bool:
        """Whether the solution is far from the prediction, as another assembly is."""
        correction = np.abs(self.correction).max(initial=0.0)
        allowed = FAR_FROM_PREDICTION * np.abs(self.predicted).max(initial=0.0)
        return not correction <= np.clip(allowed, SMALL_CORRECTION, LARGE_CORRECTION)


def followed(
    t: np.ndarray, attempt: Callable[[tuple[Any, ...] | None, float, float], Attempt]
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Positions at increasing times, each continued from the one before without a jump.

    `attempt` takes what was found before (None at the first time) and both times. Yields what it
    found, up to the time where positions could not be solved, and whether it jumped on the way.
    """
    found, last = None, float(t[0])
    for time in t:
        jumped, goals = False, [float(time)]
        while goals:
            made = attempt(found, last, goals[-1])
            is_bad = made.found is None or made.leads_elsewhere
            if found is not None and is_bad and len(goals) <= HALVED_INTERVALS:
                goals.append((last + goals[-1]) / 2)
                continue
            if made.found is None:
                return
            jumped |= found is not None and is_bad
            found, last = made.found, goals.pop()
        assert found is not None
        yield found, jumped


def jump_text(times: Sequence[float]) -> str:
    """What to say of jumps before some times, empty if there are none."""
    if not times:
        return ""
    return (
        f"positions jump just before t = {', '.join(f'{time:.6g}' for time in times[:3])} s: the "
        "drive is not continuous there, or the linkage changes into another assembly"
    )


def _least(G: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Shortest x that makes ``G x − right`` shortest."""
    return np.linalg.lstsq(G, right, rcond=CUT)[0]


def _failed(constraints: Constraints, time: float, phi: np.ndarray) -> tuple[KinematicsStatus, str]:
    names = constraints.row_names
    worst = int(np.abs(phi).argmax())
    return KinematicsStatus.FAILED, (
        f"positions at t = {time:.6g} s could not be solved: {names[worst]} is off by "
        f"{abs(phi[worst]):.2g}; the drive leads out of the workspace, or the steps are too long"
    )


def _singular(
    constraints: Constraints,
    t: np.ndarray,
    measures: np.ndarray,
    signs: np.ndarray,
    weakest: Sequence[tuple[RankOfRows, np.ndarray, np.ndarray]],
    hint: Callable[[np.ndarray], str],
) -> tuple[SingularPosition, ...]:
    """Times where rows are dependent, or were between two times."""
    found: list[SingularPosition] = []
    typical = np.median(measures) if len(measures) else 0.0
    for k, value in enumerate(measures):
        flips = k > 0 and signs[k] * signs[k - 1] < 0
        lowest = 0 < k < len(measures) - 1 and value < min(measures[k - 1], measures[k + 1])
        if not (value <= SINGULAR_POSITION or flips or (lowest and value < DIP * typical)):
            continue
        if found and k and t[k] - found[-1].time <= 2 * (t[k] - t[k - 1]) * (1 + 1e-9):
            continue  # the same one, seen from the other side
        rank, G, q = weakest[k]
        share = np.abs(rank.combinations[:, min(constraints.group.dim, len(rank.values)) - 1])
        weak = np.flatnonzero(share > NAMED_DIRECTIONS * share.max(initial=0.0)).tolist()
        rows = set(rank.dependent) | set(weak)
        order, names = drives_first(constraints, rows), constraints.row_names
        remedy = remedy_of(constraints, order, G, hint(q))
        listed = tuple(names[i] for i in order)
        found.append(SingularPosition(float(t[k]), listed, float(value), remedy))
    return tuple(found)
