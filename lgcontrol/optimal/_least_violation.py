"""Look: whether hard rows can be kept at all, and where they are missed least, next to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from ._interior_point import Barrier, InteriorPoint, Point
from ._stage_model import Expansion, Sides, StageModel
from ._transcription import Nodes, Setting, Values


class Lost(NamedTuple):
    """Where equalities that cannot be kept are missed least.

    Attributes
    ----------
    point : Point
    rows : ndarray, shape (N + 1, rows)
        Values there.
    log : ndarray
        That of the solve, its last entry with the cost and the miss found there.
    """

    point: Point
    rows: np.ndarray
    log: np.ndarray


class Look:
    """Asks in the middle of a solve, and at its end, whether equalities can be kept at all.

    Kernels and NumPy ask after the same iterations, and are told the same.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    t : ndarray, shape (N + 1,)
        Times of the nodes.
    """

    def __init__(self, model: StageModel, setting: Setting, t: np.ndarray) -> None:
        self.model, self.setting, self.t = model, setting, t
        self.due = model.settings.restoration_after if len(model.sides.equal) else np.inf

    def is_due(self, log: Sequence[np.ndarray]) -> bool:
        """Whether it is time, and what is violated has hardly fallen lately."""
        number = len(log) - 1
        if number < self.due:
            return False
        self.due = 2 * number
        violation = np.array(log)[:, 2]
        half = number // 2
        return bool(
            violation[half:].min()
            > self.model.settings.restoration_decrease * violation[:half].min()
        )

    def at(self, point: Point, log: np.ndarray) -> Lost | None:
        """Where they are missed least, if they cannot be kept near an iterate."""
        model = self.model
        if not len(model.sides.equal) or not log[-1][2] > model.settings.acceptable:
            return None
        found = least_violation(model, self.setting, Nodes(self.t, point.x, point.u))
        if found is None:
            return None
        values, last = model.values(found, self.setting), log[-1].copy()
        last[0], last[2] = values.cost, np.abs(missed_by(model.sides, values.rows)).max()
        return Lost(replace(point, x=found.x, u=found.u), values.rows, np.vstack([log[:-1], last]))


def missed_by(sides: Sides, rows: np.ndarray) -> np.ndarray:
    """What hard rows miss, with its sign.

    Parameters
    ----------
    sides : Sides
    rows : ndarray, shape (N + 1, rows)

    Returns
    -------
    ndarray, shape (N + 1, rows)
        Zero where they are kept, idle or soft.
    """
    found = np.zeros_like(rows)
    off = np.where(sides.equal_active, rows[:, sides.equal] - sides.target, 0.0)
    np.add.at(found.T, sides.equal, off.T)
    h = sides.sign * (rows[:, sides.row] - sides.limit)
    over = np.where(sides.active & np.isinf(sides.weight), np.maximum(h, 0.0), 0.0)
    np.add.at(found.T, sides.row, (sides.sign * over).T)
    return found


def is_stationary(model: StageModel, setting: Setting, nodes: Nodes) -> bool:
    """Whether no small change of controls, or of a free start, reduces what hard rows miss.

    Controls stay within their limits, a free start within those of it alone. Half the sum of
    squares has a derivative along motions that is next to nothing, measured by what it would be if
    no terms cancelled, but where something at a limit had to go beyond. Where rows are missed whose
    own derivative vanishes, as the square of a distance from a point does at that point, controls
    a little off decide.

    Parameters
    ----------
    model : StageModel
        Of a given start.
    setting : Setting
    nodes : Nodes
        A motion of the system; of others it is False.
    """
    at, n = model.expand(nodes, setting), model.n
    if not np.abs(at.gaps).max(initial=0.0) <= model.settings.defect_closed:
        return False
    missed = missed_by(model.sides, at.rows)
    is_off, slopes = np.abs(missed) > model.settings.acceptable, [*at.G, at.G_end]
    if any((off & ~G.any(axis=1)).any() for off, G in zip(is_off, slopes, strict=True)):
        return not _falls(model, setting, nodes, missed)
    v, apart = (
        nodes.u[:, model.controls],
        model.settings.restoration_near * (setting.box.upper - setting.box.lower),
    )
    price, size = at.G_end.T @ missed[-1], np.abs(at.G_end.T) @ np.abs(missed[-1])
    most = largest = 0.0
    for k in range(len(v) - 1, -1, -1):
        F = np.hstack([at.A[k], at.B[k]])
        along = at.G[k].T @ missed[k] + F.T @ price
        sizes = np.abs(at.G[k].T) @ np.abs(missed[k]) + np.abs(F.T) @ size
        held = np.where(
            along[n:] > 0, v[k] <= setting.box.lower + apart, v[k] >= setting.box.upper - apart
        )
        most = max(most, np.abs(np.where(held, 0.0, along[n:])).max(initial=0.0))
        largest = max(largest, sizes[n:].max(initial=0.0))
        price, size = along[:n], sizes[:n]
    by_start = _left_of_start(model, at, price)
    most = max(most, np.abs(by_start).max(initial=0.0))
    largest = max(largest, size[model.free].max(initial=0.0))
    return bool(most <= model.settings.restoration_stationary * largest)


def _left_of_start(model: StageModel, at: Expansion, slope: np.ndarray) -> np.ndarray:
    """Of the slope by what is free at the start, what its rows at their limits do not hold."""
    sides, rows, own = model.sides, model.transcription.rows, model.of_start
    row, sign, limit = sides.row[own], sides.sign[own], sides.limit[own]
    width = rows.upper[row] - rows.lower[row]
    apart = model.settings.restoration_near * np.where(
        np.isfinite(width), width, np.maximum(1.0, np.abs(limit))
    )
    is_near = sign * (at.rows[0, row] - limit) >= -apart
    held = (sign[:, None] * at.G[0][row][:, model.free])[is_near]
    wanted = -slope[model.free]
    if not held.size:
        return wanted
    return wanted - held.T @ scipy.optimize.nnls(held.T, wanted)[0]


def _falls(model: StageModel, setting: Setting, nodes: Nodes, missed: np.ndarray) -> bool:
    """Whether the motion under controls that are a little off misses less."""
    u, rows, random = nodes.u.copy(), [], np.random.default_rng(0)
    v, apart = (
        u[:, model.controls],
        model.settings.restoration_near * (setting.box.upper - setting.box.lower),
    )
    move = np.where(
        np.isfinite(apart), apart, model.settings.restoration_near * np.maximum(1.0, np.abs(v))
    )
    off, first = move * random.normal(size=v.shape), np.zeros(model.n)
    first[model.free] = model.settings.restoration_near * random.normal(size=len(model.free))
    x = np.asarray(model.retract(nodes.x[0], first, setting.p))
    u[:, model.controls] = np.clip(v + off, *setting.box[:2])
    for k in range(len(u)):
        x, _, _, found = model.advance(k, nodes, setting, x, u[k])
        rows.append(found)
    rows.append(model.end(nodes, setting, x)[1])
    after = missed_by(model.sides, np.array(rows))
    return bool(np.vdot(after, after) < np.vdot(missed, missed))


def least_violation(model: StageModel, setting: Setting, nodes: Nodes) -> Nodes | None:
    """A motion near nodes that misses hard rows by the least sum of squares, if any are missed.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    nodes : Nodes

    Returns
    -------
    Nodes or None
        None where all hard rows can be kept, or nobody can say: no motion that is stationary was
        found.
    """
    if not np.isfinite(model.values(nodes, setting).rows).all():
        return None
    missed, settings = _Missed(model, setting, nodes), model.settings
    barrier = Barrier.of_rollouts(settings, settings.restoration_barrier_last)._replace(
        first=settings.restoration_barrier
    )
    point = InteriorPoint(
        missed,
        setting._replace(arrival=model.settings.restoration_move * np.eye(model.n)),
        nodes,
        nodes.x[0],
        barrier.first,
        is_feasible=False,
        curved=False,
    )
    for _ in range(model.settings.restoration_iterations):
        found = point.expand()
        if not np.isfinite(found.largest) or missed.is_kept(point.expansion.rows):
            return None
        if point.mu <= barrier.last and found.largest <= settings.restoration_tolerance:
            break
        point.lower_before(found, barrier)
        if point.iterate().step == 0:
            break
    end = Nodes(nodes.t, point.point.x, point.point.u)
    if missed.is_kept(model.values(end, setting).rows):
        return None
    return end if is_stationary(model, setting, end) else None


class _Missed(StageModel):
    """A problem whose cost is what hard rows miss, in squares.

    It has no rows but those of the start that can always be kept.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    nodes : Nodes
        Where the largest miss is one, and controls are held as far as nothing is gained.
    """

    def __init__(self, model: StageModel, setting: Setting, nodes: Nodes) -> None:
        self.__dict__.update(model.__dict__ | {"retract": model.retract})
        self.whole, self.held = model, nodes.u[:, model.controls]
        self.size = max(self._largest(model.values(nodes, setting).rows), model.settings.acceptable)
        self.move = (
            model.settings.restoration_move / np.maximum(1.0, np.abs(self.held).max(axis=0)) ** 2
        )
        full, own = model.sides, model.of_start
        self.sides = Sides(
            full.row[own], full.sign[own], full.limit[own], full.weight[own], full.active[:, own],
            full.equal[:0], full.target[:0], full.equal_active[:, :0],
        )  # fmt: skip

    def _largest(self, rows: np.ndarray) -> float:
        return float(np.abs(missed_by(self.whole.sides, rows)).max(initial=0.0))

    def is_kept(self, rows: np.ndarray) -> bool:
        """Whether rows are kept as well as plans that are acceptable keep them."""
        return self._largest(rows) <= self.settings.acceptable

    def _cost(self, rows: np.ndarray, u: np.ndarray) -> float:
        missed = missed_by(self.whole.sides, rows) / self.size
        moved = u[:, self.controls] - self.held
        return float((missed**2).sum() + (self.move * moved**2).sum()) / 2

    def values(self, nodes: Nodes, setting: Setting) -> Values:
        """What rows miss for a cost, and gaps."""
        found = self.whole.values(nodes, setting)
        return found._replace(cost=self._cost(found.rows, nodes.u))

    def expand(self, nodes: Nodes, setting: Setting) -> Expansion:
        """The same to first order, and the curvature of Gauss and Newton."""
        at, n = self.whole.expand(nodes, setting), self.n
        missed = missed_by(self.whole.sides, at.rows) / self.size**2
        weight = (missed != 0) / self.size**2
        weight[:, self.whole.sides.equal] = self.whole.sides.equal_active / self.size**2
        g = np.einsum("kri,kr->ki", at.G, missed[:-1])
        H = np.einsum("kri,kr,krj->kij", at.G, weight[:-1], at.G)
        g[:, n:] += self.move * (nodes.u[:, self.controls] - self.held)
        H[:, range(n, n + self.m), range(n, n + self.m)] += self.move
        return at._replace(
            cost=self._cost(at.rows, nodes.u),
            g=g,
            H=H,
            g_end=at.G_end.T @ missed[-1],
            H_end=at.G_end.T @ (weight[-1][:, None] * at.G_end),
        )
