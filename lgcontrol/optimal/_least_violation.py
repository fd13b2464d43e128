"""least_violation: where hard rows that cannot all be kept are missed least, next to a plan."""

from __future__ import annotations

import numpy as np

from ._interior_point import Barrier, InteriorPoint
from ._outcome import ACCEPTABLE_RESIDUAL
from ._stage_model import Expansion, Sides, StageModel
from ._transcription import Nodes, Setting, Values

# Derivative of what rows miss, as a share of its terms' sizes, that counts as none, and the share
# of their range by which inputs may be off a limit that they would have to go beyond.
STATIONARY, NEAR_LIMIT = 1e-3, 1e-2
# Gaps of nodes up to which they are a motion of the system.
CLOSED = 1e-6
# The largest miss is one at first: iterations, their barrier, and what a move of controls costs.
MOST, BARRIER, RESIDUAL, MOVE = 40, Barrier(first=1e-2, last=1e-8, factor=0.1), 1e-6, 1e-8


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
    """Whether no small change of controls within their limits reduces what hard rows miss.

    Half the sum of squares has a derivative along motions that is next to nothing, measured by
    what it would be if no terms cancelled, but where controls at a limit had to go beyond. Where
    rows are missed whose own derivative vanishes, as the square of a distance from a point does at
    that point, controls a little off decide.

    Parameters
    ----------
    model : StageModel
        Of a given start.
    setting : Setting
    nodes : Nodes
        A motion of the system; of others it is False.
    """
    at, n = model.expand(nodes, setting), model.n
    if not np.abs(at.gaps).max(initial=0.0) <= CLOSED:
        return False
    missed = missed_by(model.sides, at.rows)
    is_off, slopes = np.abs(missed) > ACCEPTABLE_RESIDUAL, [*at.G, at.G_end]
    if any((off & ~G.any(axis=1)).any() for off, G in zip(is_off, slopes, strict=True)):
        return not _falls(model, setting, nodes, missed)
    v, apart = nodes.u[:, model.controls], NEAR_LIMIT * (model.upper - model.lower)
    price, size = at.G_end.T @ missed[-1], np.abs(at.G_end.T) @ np.abs(missed[-1])
    most = largest = 0.0
    for k in range(len(v) - 1, -1, -1):
        F = np.hstack([at.A[k], at.B[k]])
        along = at.G[k].T @ missed[k] + F.T @ price
        sizes = np.abs(at.G[k].T) @ np.abs(missed[k]) + np.abs(F.T) @ size
        held = np.where(along[n:] > 0, v[k] <= model.lower + apart, v[k] >= model.upper - apart)
        most = max(most, np.abs(np.where(held, 0.0, along[n:])).max(initial=0.0))
        largest = max(largest, sizes[n:].max(initial=0.0))
        price, size = along[:n], sizes[:n]
    return bool(most <= STATIONARY * largest)


def _falls(model: StageModel, setting: Setting, nodes: Nodes, missed: np.ndarray) -> bool:
    """Whether the motion under controls that are a little off misses less."""
    u, x, rows = nodes.u.copy(), nodes.x[0], []
    v, apart = u[:, model.controls], NEAR_LIMIT * (model.upper - model.lower)
    move = np.where(np.isfinite(apart), apart, NEAR_LIMIT * np.maximum(1.0, np.abs(v)))
    off = move * np.random.default_rng(0).normal(size=v.shape)
    u[:, model.controls] = np.clip(v + off, model.lower, model.upper)
    for k in range(len(u)):
        x, _, _, found = model.advance(k, nodes, setting, x, u[k])
        rows.append(found)
    rows.append(model.end(nodes, setting, x)[1])
    after = missed_by(model.sides, np.array(rows))
    return bool(np.vdot(after, after) < np.vdot(missed, missed))


def least_violation(
    model: StageModel, setting: Setting, nodes: Nodes, x0: np.ndarray
) -> Nodes | None:
    """A motion near nodes that misses hard rows by the least sum of squares, if any are missed.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    nodes : Nodes
    x0 : ndarray, shape (nq,)

    Returns
    -------
    Nodes or None
        None where all hard rows can be kept, or nobody can say: no motion that is stationary was
        found.
    """
    if len(model.free) or not np.isfinite(model.values(nodes, setting).rows).all():
        return None
    missed = _Missed(model, setting, nodes)
    point = InteriorPoint(
        missed, setting, nodes, x0, BARRIER.first, is_feasible=False, curved=False
    )
    for _ in range(MOST):
        found = point.expand()
        if not np.isfinite(found.largest) or missed.is_kept(point.expansion.rows):
            return None
        if point.mu <= BARRIER.last and found.largest <= RESIDUAL:
            break
        point.lower_before(found, BARRIER)
        if point.iterate().step == 0:
            break
    end = Nodes(nodes.t, point.point.x, point.point.u)
    if missed.is_kept(model.values(end, setting).rows):
        return None
    return end if is_stationary(model, setting, end) else None


class _Missed(StageModel):
    """A problem whose cost is what hard rows miss, in squares, and that has no rows.

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
        self.size = max(self._largest(model.values(nodes, setting).rows), ACCEPTABLE_RESIDUAL)
        self.move = MOVE / np.maximum(1.0, np.abs(self.held).max(axis=0)) ** 2
        full = model.sides
        self.sides = Sides(
            full.row[:0], full.sign[:0], full.limit[:0], full.weight[:0], full.active[:, :0],
            full.equal[:0], full.target[:0], full.equal_active[:, :0],
        )  # fmt: skip

    def _largest(self, rows: np.ndarray) -> float:
        return float(np.abs(missed_by(self.whole.sides, rows)).max(initial=0.0))

    def is_kept(self, rows: np.ndarray) -> bool:
        """Whether rows are kept as well as plans that are acceptable keep them."""
        return self._largest(rows) <= ACCEPTABLE_RESIDUAL

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
