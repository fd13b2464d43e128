"""The barrier problem about an iterate, in NumPy: scales, barrier function, errors, Newton step.

Rows of a problem are limited by one-sided constraints ``h = d σ (row − limit) ≤ 0`` with slack s,
multiplier z and, where they are soft or relaxed, an excess e with multiplier y: ``h − e + s = 0``.
Equalities ``c = d (row − target) = 0`` have multipliers ν. The elastic problem relaxes all hard
constraints with a penalty ρ on e; an equality becomes a one-sided constraint whose slack costs ρ as
well. `_newton` has what goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._settings import Settings, tolerance_unit
from .._stage_model import Expansion, StageModel
from .._transcription import Nodes, Setting, Values
from ._sweep import RiccatiFactors, riccati_back, riccati_factor
from ._table import FIXED, OF_PLANS, OF_STEPS

ROUNDING = float(np.finfo(float).eps)  # a unit in the last place


class PlanIterate(NamedTuple):
    """Nodes, slacks and multipliers; or a step of them, error coordinates and controls of nodes."""

    x: np.ndarray
    u: np.ndarray
    s: np.ndarray
    z: np.ndarray
    e: np.ndarray
    y: np.ndarray
    zl: np.ndarray
    zu: np.ndarray
    lam: np.ndarray
    nu: np.ndarray

    @property
    def is_finite(self) -> bool:
        """Whether all of it is."""
        return all(bool(np.isfinite(value).all()) for value in self)


# Of a rollout that changes no multipliers.
NO_STEP = PlanIterate(*[np.zeros(())] * 10)


class ConstraintForm(NamedTuple):
    """Constraints of the problem itself or of the elastic one.

    Attributes
    ----------
    active : ndarray of bool, shape (N + 1, na)
    relaxed : ndarray of bool, shape (N + 1, na)
        Active rows that may be exceeded.
    w1, w2, v : ndarray, shape (N + 1, na)
        The penalty is ``w1 e + ½ w2 e² + v s``.
    """

    active: np.ndarray
    relaxed: np.ndarray
    w1: np.ndarray
    w2: np.ndarray
    v: np.ndarray


class BarrierProblem:
    """The barrier problem of a solve, about its iterate `it`, whose expansion is `ex`.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    nodes : Nodes
        Nodes at which it starts, the first state as it is to be.
    x0 : ndarray, shape (nq,)
        The given start.
    settings : Settings
    tolerance : float
    weight : ndarray, optional
        Penalty weights of one-sided constraints, infinite for hard ones.
    going_on : mapping, optional
        Parts of the plan whose nodes these are, and its numbers, to take real-time steps from.
    of : int
        Which scales it has: those of plans, or those of loops.
    """

    def __init__(
        self,
        model: StageModel,
        setting: Setting,
        nodes: Nodes,
        x0: np.ndarray,
        settings: Settings,
        tolerance: float,
        *,
        weight: np.ndarray | None = None,
        going_on: Mapping[str, Any] | None = None,
        of: int = OF_PLANS,
    ) -> None:
        self.of = of
        self.model, self.setting, self.t, self.x0 = model, setting, nodes.t, x0
        self.o, self.tolerance = settings, tolerance
        self.N, self.n, self.m = len(nodes.u), model.n, model.m
        sides = model.sides
        self.ns, self.ne = len(sides.row), len(sides.equal)
        self.nr = len(model.transcription.rows.names)
        self.row = np.r_[sides.row, sides.equal].astype(int)
        self.sign = np.r_[sides.sign, np.ones(self.ne)]
        self.holds = np.hstack([sides.active, sides.equal_active]).astype(bool)
        own = sides.weight if weight is None else weight
        self.weight = np.r_[own, np.full(self.ne, np.inf)]
        self.soft = np.isfinite(self.weight)
        self.price = np.where(self.soft, self.weight, 0.0)
        self.one_sided = np.arange(len(self.row)) < self.ns
        self.can_give = ~self.soft & ~np.r_[model.of_start, np.zeros(self.ne, dtype=bool)]
        self.equal = self.row[self.ns :]
        self.share = np.hstack([sides.counts, np.ones_like(sides.equal_active, dtype=float)])
        self.factorizations = self.evaluations = 0
        self.is_linear, self.priced, self.gain, self.off = False, 0.0, 1.0, 0.0
        self.spread, self.is_gauss_newton = 0.0, False
        self.taken_steps, self.extends = 0, False
        self.nudges = self.doubts = 0
        if going_on is None:
            self._begin(nodes)
        else:
            self._take_up(nodes, going_on)

    def _set_limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Relaxed limits; which of controls are finite, and how far off them an iterate begins."""
        o, model, box = self.o, self.model, self.setting.box

        def relaxed_by(limit: np.ndarray, size: Any) -> np.ndarray:  # less than what is violated
            allowed = self.tolerance / 10 * tolerance_unit(o, size)
            return np.minimum(o.relax * np.maximum(size, np.abs(limit)), allowed)

        size = self.size[self.n :]
        self.lower = box.lower - relaxed_by(box.lower, size)
        self.upper = box.upper + relaxed_by(box.upper, size)
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        least = np.where(low, o.push * np.maximum(size, np.abs(self.lower)), 0.0)
        most = np.where(high, o.push * np.maximum(size, np.abs(self.upper)), 0.0)
        width = np.where(low & high, o.push * (self.upper - self.lower), np.inf)
        self.own_limit = np.r_[model.sides.limit, model.sides.target]
        hard = self.can_give & self.one_sided
        by = relaxed_by(self.own_limit, 1 / self.d[self.row])
        self.limit = self.own_limit + hard * self.sign * by
        return low, high, np.minimum(least, width), np.minimum(most, width)

    def _take_up(self, nodes: Nodes, parts: Mapping[str, Any]) -> None:
        """The iterate of a plan; controls that are outside of the limits now move in."""
        for name in ("mu", "scale", "other", "penalty", "dw_last", "dw", "alpha", "spread", "K"):
            setattr(self, name, parts[name])
        now, self.other_scales = parts["scales"]
        self.d, self.size = np.split(now, [self.nr])
        names = "s", "z", "e", "y", "zl", "zu", "lam", "nu"
        self.it = PlanIterate(nodes.x.copy(), nodes.u.copy(), *(parts[name] for name in names))
        of, self.of = self.of, parts["of"]
        self.change_scales(of)
        self._set_metric()
        _, _, least, most = self._set_limits()
        controls = self.model.controls
        v = self.it.u[:, controls]
        inside = np.clip(v, self.lower + least, self.upper - most)
        self.it.u[:, controls] = np.where((v > self.lower) & (v < self.upper), v, inside)
        self.elastic, self.tiny, self.left, self.error_before = bool(parts["elastic"]), 0, 0, 0.0
        self._set_form()

    def change_scales(self, of: int) -> bool:
        """The iterate in other scales: multipliers, slacks and barrier as in these.

        Returns whether it had others.
        """
        if self.of == of:
            return False
        (d, size), by, it = np.split(self.other_scales, [self.nr]), self.other / self.scale, self.it
        ratio = (d / self.d)[self.row]
        self.it = it._replace(
            s=it.s * ratio, e=it.e * ratio, z=it.z * (by / ratio), y=it.y * (by / ratio),
            nu=it.nu * (by * self.d / d)[self.equal], zl=it.zl * by, zu=it.zu * by, lam=it.lam * by,
        )  # fmt: skip
        self.mu, self.spread, self.of = self.mu * by, self.spread * by, of
        self.other_scales, self.d, self.size = np.r_[self.d, self.size], d, size
        self.scale, self.other = self.other, self.scale
        return True

    def _begin(self, nodes: Nodes) -> None:
        o, controls, n = self.o, self.model.controls, self.n
        x, u = nodes.x.copy(), nodes.u.copy()
        self.d = np.ones(self.nr)
        self.size = np.ones(n + self.m)
        size = self._known_sizes(self._sizes_of_controls(u), 1.0)
        self.size[n:] = self._counted(size) if self.of == OF_STEPS else size
        low, high, least, most = self._set_limits()
        u[:, controls] = np.clip(u[:, controls], self.lower + least, self.upper - most)
        M, na, one = self.N + 1, self.ns + self.ne, 1.0
        empty = np.zeros((M, na))
        it = PlanIterate(
            x, u, empty, empty, empty, empty, np.zeros((self.N, self.m)),
            np.zeros((self.N, self.m)), np.zeros((self.N, n)), np.zeros((M, self.ne)),
        )  # fmt: skip
        ex = self.ex = self.expand(it)
        is_own = True
        for which in (1 - self.of, self.of):
            self.other_scales, self.other = np.r_[self.d, self.size], getattr(self, "scale", 1.0)
            is_own = self._set_scales(it, which)
        self._set_metric()
        z = one * self.rate[n:] + np.zeros((self.N, self.m))
        it = it._replace(zl=np.where(low, z, 0.0), zu=np.where(high, z, 0.0))
        self._set_limits()
        bounded = na > 0 or low.any() or high.any()
        self.elastic, self.penalty = False, 0.0
        self.dw_last = self.dw = 0.0
        self._set_form()
        self.it = it
        first = o.mu_first if is_own else min(max(self.worth, o.real_time_mu), o.mu_first)
        self.mu = first if bounded else self.last_most
        it = self.fit_slacks(it, ex.rows, with_multipliers=False)
        (active, relaxed, *_), h = self.form, self.h(ex.rows)
        e = np.where(relaxed, np.maximum(h, 0.0) + o.push, 0.0)
        z, y = np.where(active, one, 0.0), np.where(relaxed, one, 0.0)
        it = it._replace(z=z, y=y, e=e, s=np.where(relaxed, e - h, it.s))
        self.it = self.least_squares(it)
        self.alpha, self.tiny, self.left, self.error_before = 1.0, 0, 0, 0.0

    # -- sizes -------------------------------------------------------------------------------------

    def _sizes_of_controls(self, u: np.ndarray) -> np.ndarray:
        """Half of their range; else the largest of limit, reference and first iterate."""
        box, setting, controls = self.setting.box, self.setting, self.model.controls
        low, high = np.isfinite(box.lower), np.isfinite(box.upper)
        one = np.where(low, np.abs(box.lower), np.where(high, np.abs(box.upper), 0.0))
        known = np.abs(np.stack([u[:, controls], setting.u_ref[: self.N, controls]]))
        most = np.maximum(one, known.max(axis=(0, 1), initial=0.0))
        half = (box.upper - box.lower) / 2
        return np.where(low & high, np.where(half > 0, half, 1.0), most)

    def _known_sizes(self, size: np.ndarray, other: float) -> np.ndarray:
        """Sizes, or another one for none."""
        return np.where((size > 0) & np.isfinite(size), size, other)

    def _counted(self, size: np.ndarray) -> np.ndarray:
        """Sizes as loops count them: 1 from 1/30 to 30, continuous beyond."""
        return size / np.clip(size, 1 / self.o.size_free, self.o.size_free)

    def _responses(self, size: np.ndarray, of: int, *, turns: int = 2) -> np.ndarray:
        """Changes of states over the horizon that controls of some sizes cause, to first order.

        Controls add to all steps. In each further turn, these changes add to other states. The
        turns are few: with each, states that drive each other seem to change more. Of plans a
        state does not drive itself: a stiff one would seem to grow without limit.
        """

        def total(by_step: np.ndarray) -> np.ndarray:
            return np.where(np.isfinite(by_step), by_step, 0.0).sum(axis=0)

        found = total(np.abs(self.ex.B) @ size)
        for _ in range(turns):
            others = np.abs(self.ex.A - np.eye(self.n))
            if of == OF_PLANS:
                others[:, range(self.n), range(self.n)] = 0.0
            found = np.maximum(found, total(others @ (found / 2)))
        return found

    def _set_scales(self, it: PlanIterate, of: int) -> bool:
        """Set scales of a kind; returns whether they are.

        If few states have a size, those of plans are those of loops: other states take the mean
        size, of other units, and scales of loops depend less on it.
        """
        is_own = self._measure(it, of) or of == OF_STEPS
        if not is_own:
            of = OF_STEPS
            self._measure(it, of)
        self._scale_cost_and_rows(of)
        return is_own

    def _measure(self, it: PlanIterate, of: int) -> bool:
        """Set sizes of error coordinates and controls: numbers of any unit become of size one.

        States: how far they are from the reference, from what equalities ask for, and what controls
        change. Controls without limits: what changes states by their sizes, of plans the largest
        that one asks for. Whether two fifths of the states have one; others take the mean.
        """
        o, ex, n, N, model = self.o, self.ex, self.n, self.N, self.model
        away = [model.error(x, r) for x, r in zip(it.x, self.setting.x_ref, strict=True)]
        away = np.abs(np.asarray(away).reshape(N + 1, n))
        size = np.where(np.isfinite(away), away, 0.0).max(axis=0)
        controls = self._sizes_of_controls(it.u)
        G = np.concatenate([ex.G[:, :, :n], ex.G_end[None]])[:, self.equal]
        miss = ex.rows[:, self.equal] - self.own_limit[self.ns :]
        own = np.abs(miss[..., None] * G / np.maximum(1e-300, (G**2).sum(axis=2))[..., None])
        own = np.where(self.holds[:, self.ns :, None] & np.isfinite(own), own, 0.0)
        size = np.maximum(size, own.max(axis=(0, 1), initial=0.0))
        rounding = FIXED.by_rounding * largest(it.x, self.setting.x_ref)
        size = np.where(size > rounding, size, 0.0)
        free = controls <= 0
        with_ = self._responses(free.astype(float), of)
        on = (size > 0) & (with_ > 0)
        if of == OF_STEPS:
            ratio = float((size[on] / with_[on]).min(initial=np.inf))
        else:
            on &= (ex.g_end == 0) | (np.diagonal(ex.H_end) != 0)  # what collects a cost has no aim
            ratio = float((size[on] / with_[on]).max(initial=0.0))
        ratio = ratio if 0 < ratio < np.inf else 1.0
        controls = np.where(free, ratio, controls)
        # States next to the reference are moved all the same.
        moved = self._responses(controls, of, turns=0)
        size = np.where(size > o.relax * moved, size, 0.0)
        if of == OF_PLANS:  # free at the start, as linear inputs are: what controls change
            size[model.free] = np.where(size > 0, size, moved)[model.free]
            size = self._derived_sizes(size, moved)
        # What changes of these sizes change, beyond the first order, too: a cost that is a state.
        u, (down, up) = it.u.copy(), self.rooms(it.u)
        rises = np.minimum(controls, up * o.boundary)
        u[:, model.controls] += np.where(
            up >= down, rises, -np.minimum(controls, down * o.boundary)
        )
        gaps = self.values(it._replace(u=u)).gaps
        both = np.abs(np.stack([gaps - ex.gaps, ex.gaps]))
        probed = np.where(np.isfinite(both), both, 0.0).sum(axis=1).max(axis=0)
        integrates = (np.eye(n) == ex.A).all(axis=(0, 1))
        first = np.abs(np.concatenate([ex.A - np.eye(n), ex.B], axis=2)) @ np.r_[size, controls]
        at_first = np.where(np.isfinite(first), first, 0.0).sum(axis=0)
        for reach in (probed, at_first) if of == OF_PLANS else (probed,):
            beyond = (reach > rounding) & (size < o.push * reach)
            size = np.where(beyond & integrates, reach, size)
        sizes = np.r_[size, controls]
        known = sizes[(sizes > 0) & np.isfinite(sizes)]
        mean = float(np.exp(np.log(known).mean())) if len(known) else 1.0
        sizes = self._known_sizes(sizes, mean)
        self.size = self._counted(sizes) if of == OF_STEPS else sizes
        return bool(np.count_nonzero((size > 0) & np.isfinite(size)) >= FIXED.sized * n)

    def _derived_sizes(self, size: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Sizes of states of plans that have none. The second turn has what drives the first's."""
        size = self._sizes_by_unit(size)
        for _ in range(2):
            size = self._sizes_by_unit(self._sizes_by_motion(size, moved))
        return size

    def _sizes_by_unit(self, size: np.ndarray) -> np.ndarray:
        """The mean of sizes of states with the same unit, for states that have none."""
        of_unit = (self.model.alike == self.model.alike[:, None]) & (size > 0)
        logs = np.where(of_unit, np.log(np.where(size > 0, size, 1.0)), 0.0).sum(axis=1)
        count = of_unit.sum(axis=1)
        mean = np.exp(logs / np.maximum(count, 1))
        return np.where((size == 0) & (count > 0), mean, size)

    def _sizes_by_motion(self, size: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """For states that have no size: `driving` times what moves another state by its size.

        It is at most what controls add. Entries that are rounding next to the largest of a row
        move nothing.
        """
        changes = np.abs(self.ex.A - np.eye(self.n))
        of_all = changes.sum(axis=0)
        most = np.nan_to_num(changes, nan=0.0, posinf=np.inf).max(axis=(0, 2), initial=0.0)[:, None]
        drives = (of_all > FIXED.by_rounding * most) & np.isfinite(of_all) & (size > 0)[:, None]
        np.fill_diagonal(drives, False)
        each = FIXED.driving * size[:, None] / np.where(drives, of_all, 1.0)
        least = np.where(drives, each, np.inf).min(axis=0)
        capped = np.where(moved > FIXED.by_rounding * least, np.minimum(least, moved), least)
        return np.where((size == 0) & np.isfinite(least), capped, size)

    def _set_metric(self) -> None:
        """Reciprocals of the sizes, and their squares."""
        self.rate = 1 / self.size
        self.metric = self.rate * self.rate

    def _scale_cost_and_rows(self, of: int) -> None:
        """Set the factors of the cost and of rows by derivatives for changes of the sizes.

        Of plans, the largest derivative of the cost becomes one. Curvature may end a derivative
        within such a change, as that of a square next to its minimum: only the rest counts then, at
        least a share 1 / `gradient_bent`. If there is next to no derivative, the curvature becomes
        one, as constraints lead away from the minimum. Of an equality the derivative at the node
        nearest to the limit becomes one, of other rows `gradient_bent`. If there is next to none,
        as of a square at zero, the distance from the limit takes its place.

        Of loops, the largest derivative of the cost is moved into [1, `gradient_most`]; below one,
        half of the curvature counts, too. Those of rows are at most `gradient_most`, and at least
        one if any size is not one.
        """
        ex, n, o, size = self.ex, self.n, self.o, self.size
        most, least = o.gradient_most, float((size != 1).any())

        def largest_of(values: np.ndarray) -> float:
            return float(values[np.isfinite(values)].max(initial=0.0))

        slope = np.abs(np.r_[(ex.g * size).ravel(), ex.g_end * size[:n]])
        curvature = np.diagonal(ex.H, axis1=1, axis2=2) * size * size
        bent = np.r_[curvature.ravel(), np.diagonal(ex.H_end) * size[:n] * size[:n]]
        if of == OF_STEPS:
            steepest = largest_of(slope)
            if not steepest > 1:  # maybe at an optimum of the cost alone
                steepest = max(steepest, largest_of(bent) / 2)
            aim = float(np.clip(steepest, min(1.0, most), most))
        else:
            steepest, aim = largest_of(np.maximum(slope - bent, slope / o.gradient_bent)), 1.0
            if o.gradient_bent * steepest < o.slope_least * largest_of(bent):
                steepest = largest_of(bent)
        self.scale = aim / steepest if steepest > 0 else 1.0
        along = np.abs(np.concatenate([ex.G[:, :, :n], ex.G_end[None]]) * size[:n])
        slopes = np.where(np.isfinite(along), along, 0.0).max(axis=2, initial=0.0)
        of_controls = np.abs(ex.G[:, :, n:] * size[n:])
        of_controls = np.where(np.isfinite(of_controls), of_controls, 0.0).max(axis=2, initial=0.0)
        slopes[:-1] = np.maximum(slopes[:-1], of_controls)
        off = ex.rows[:, self.row] - self.own_limit
        over = np.where(self.one_sided, self.sign * off, np.abs(off))
        self.d = np.ones(self.nr)
        for r in range(self.nr):
            of_row = np.flatnonzero(self.row == r)
            held = self.holds[:, of_row].T
            slope = np.where(held, slopes[:, r], 0.0)
            far = largest_of(np.where(held, np.abs(off[:, of_row].T), 0.0))
            found = float(slope.max(initial=0.0))
            if of == OF_STEPS:
                found = far if not found > 0 and least > 0 else found
                aim = float(np.clip(found, least, most))
            else:
                where = np.where(held & ~np.isnan(over[:, of_row].T), over[:, of_row].T, -np.inf)
                near = slope.flat[where.argmax()] if where.size and where.max() > -np.inf else 0.0
                found = max(near, o.slope_near * found)
                found = far if found < o.slope_least * far else found
                aim = o.gradient_bent if self.one_sided[of_row].all() else 1.0
            self.d[r] = aim / found if found > 0 else 1.0

    def steepest(self) -> float:
        """The largest derivative of the cost, for changes of the sizes."""
        ex, size = self.ex, self.size
        return float(max(np.abs(ex.g * size).max(), np.abs(ex.g_end * size[: self.n]).max()))

    # -- the problem -------------------------------------------------------------------------------

    def _set_form(self) -> None:
        """Constraints of the problem, or of the elastic one."""
        d = self.d[self.row]
        w1 = self.price * self.scale * self.share / d
        w2, v, gives = w1 / d, np.zeros(len(self.row)), self.soft.copy()
        if self.elastic:
            gives |= self.can_give
            w1[:, self.can_give] = v[self.ns :] = self.penalty
        if self.priced > 0:
            own = self.can_give & self.one_sided
            gives |= own
            w1[:, own] = self.priced
        active = self.holds & (self.one_sided | self.elastic)
        relaxed = active & gives
        parts = relaxed * w1, relaxed * w2, active * v
        self.form = ConstraintForm(active, relaxed, *parts)
        self.held = self.holds[:, self.ns :] & (not self.elastic)

    def expand(self, it: PlanIterate) -> Expansion:
        """The problem about an iterate."""
        ex = self.model.expand(Nodes(self.t, it.x, it.u), self.setting)
        if not len(self.model.free):
            return ex
        arrival = self.model.arrival(it.x[0], self.x0, self.setting.arrival)
        ex.g[0, : self.n] += arrival.g
        ex.H[0, : self.n, : self.n] += arrival.H
        return ex._replace(cost=ex.cost + float(arrival.cost))

    def values(self, it: PlanIterate) -> Values:
        """Cost, defects and rows."""
        self.evaluations += 1
        found = self.model.transcription.values(Nodes(self.t, it.x, it.u), self.setting)
        if not len(self.model.free):
            return found
        arrival = self.model.arrival(it.x[0], self.x0, self.setting.arrival)
        return found._replace(cost=found.cost + float(arrival.cost))

    def over(self, rows: np.ndarray) -> np.ndarray:
        """How far rows (…, rows) are beyond the limits of constraints, (…, na)."""
        return self.sign * (rows[..., self.row] - self.limit)

    def h(self, rows: np.ndarray) -> np.ndarray:
        """Constraints, (N + 1, na)."""
        return self.d[self.row] * self.over(rows)

    def missing(self, over: np.ndarray) -> np.ndarray:
        """Violations of constraints that are so far beyond their limits."""
        return np.where(
            self.holds, np.where(self.one_sided, np.maximum(over, 0.0), np.abs(over)), 0.0
        )

    def priced_cost(self, at: Values | Expansion) -> float:
        """Cost with the penalties of soft rows."""
        e = self.missing(self.over(at.rows))
        return float(at.cost + (self.price * self.share * (e + e**2 / 2)).sum())

    def misses(
        self, it: PlanIterate, at: Values | Expansion
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Defects by their sizes, what slacks leave of one-sided constraints, equalities."""
        h = self.h(at.rows)
        rho = np.where(self.form.active, h - it.e + it.s, 0.0)
        return at.gaps * self.rate[: self.n], rho, np.where(self.held, h[:, self.ns :], 0.0)

    def theta(self, it: PlanIterate, at: Values | Expansion) -> float:
        """Sum of violations."""
        return float(sum(np.abs(part).sum() for part in self.misses(it, at)))

    def rooms(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances of controls from their limits, of one rounding where there is none."""
        v, lower, upper = u[:, self.model.controls], self.lower, self.upper
        below, above = v - lower, upper - v
        return (
            np.where(below == 0, np.abs(lower) * ROUNDING, below),
            np.where(above == 0, np.abs(upper) * ROUNDING, above),
        )

    def pairs(self, it: PlanIterate) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Distances from limits, their multipliers and which there are.

        Of controls from their lower and upper limits, of slacks and of excesses.
        """
        (lower, upper), (active, relaxed, *_) = self.rooms(it.u), self.form
        return [
            (lower, it.zl, np.isfinite(lower)), (upper, it.zu, np.isfinite(upper)),
            (it.s, it.z, active), (it.e, it.y, relaxed),
        ]  # fmt: skip

    def phi(self, it: PlanIterate, cost: float) -> float:
        """The barrier function."""
        form, logs = self.form, sum(np.log(room[on]).sum() for room, _, on in self.pairs(it))
        penalty = form.w1 * it.e + form.w2 * it.e**2 / 2 + form.v * it.s
        return float(self.scale * cost + penalty.sum() - self.mu * logs)

    def of_rows(self, one_sided: Any, equal: Any, by: Any) -> np.ndarray:
        """Sums over the constraints of each row: of those that are active, and of equalities."""
        total = np.zeros((self.N + 1, self.nr))
        own = np.where(self.form.active, by * one_sided, 0.0)
        np.add.at(total.T, self.row, own.T)
        own = np.where(self.held, by[self.ns :] * equal, 0.0)
        np.add.at(total.T, self.equal, own.T)
        return total

    def row_prices(self, z: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """Multipliers of rows from those of constraints."""
        return self.of_rows(z - self.form.v, nu, self.sign * self.d[self.row])

    def gradient(self, price: np.ndarray, of_controls: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of the cost and of rows with multipliers, of stages and of the end."""
        ex = self.ex
        g = self.scale * ex.g + np.einsum("kri,kr->ki", ex.G, price[:-1])
        g[:, self.n :] += of_controls
        return g, self.scale * ex.g_end + ex.G_end.T @ price[-1]

    # -- errors ------------------------------------------------------------------------------------

    def residuals(self) -> None:
        """Stationarity, violation, and what errors are divided by."""
        it, ex, n, size = self.it, self.ex, self.n, self.size
        (active, relaxed, w1, w2, v), (defects, rho, missed) = self.form, self.misses(it, ex)
        r, end = self.gradient(self.row_prices(it.z, it.nu), it.zu - it.zl)
        r[:, n:] += np.einsum("kij,ki->kj", ex.B, it.lam)
        r[:, :n] += np.einsum("kij,ki->kj", ex.A, it.lam)
        r[1:, :n] -= it.lam[:-1]
        r, end = r * size, (end - it.lam[-1]) * size[:n]
        of_e = np.where(relaxed, w1 + v + w2 * it.e - it.z - it.y, 0.0)
        self.stat = largest(r[1:, :n], r[:, n:], end, r[0, self.model.free], of_e)
        self.viol = largest(defects, rho, missed)
        sizes = 1 / self.d
        unit = tolerance_unit(self.o, sizes)[self.row]
        over = self.sign * (ex.rows[:, self.row] - self.own_limit) / unit
        over = over[active & ~relaxed].max(initial=0.0)  # not by the relaxed limit
        own = rho / self.d[self.row] / unit, missed * sizes[self.equal] / unit[self.ns :]
        own = largest(ex.gaps / tolerance_unit(self.o, size[:n]), *own)
        self.own_viol = max(self.viol, over, own)
        by = size[n:], size[n:], 1.0, 1.0
        sizes = [(z * one)[on] for (_, z, on), one in zip(self.pairs(it), by, strict=True)]
        zsum, zcount = sum(np.abs(z).sum() for z in sizes), sum(z.size for z in sizes)
        lsum, lcount = np.abs(it.lam * size[:n]).sum(), it.lam.size
        if not self.elastic:
            lsum, lcount = lsum + np.abs(it.nu).sum(), lcount + it.nu.size
        most = self.o.error_scale
        self.sd = max(most, (zsum + lsum) / max(1, zcount + lcount)) / most
        self.sc = max(most, zsum / max(1, zcount)) / most
        # By a change of the size violations fall by at most the tolerance, relative to them.
        self.unit = max(1.0, self.penalty * min(1.0, self.violated()[1])) if self.elastic else 1.0

    def products(self, mu: float) -> float:
        """Largest distance of complementarity from μ."""
        return largest(*(room[on] * z[on] - mu for room, z, on in self.pairs(self.it)))

    def error(self, mu: float) -> float:
        """The scaled error of the barrier problem, equation (5)."""
        return max(self.stat / self.sd, self.viol, self.products(mu) / self.sc)

    def entry(self) -> np.ndarray:
        """A row of the log; the residual that is compared with the tolerance is in it."""
        sd, sc = (max(scale, self.unit) for scale in (self.sd, self.sc))
        return np.array([
            self.ex.cost, self.stat / sd, self.own_viol, self.products(0.0) / sc,
            self.alpha, self.dw, self.mu, float(self.elastic),
            largest(self.ex.gaps),
        ])  # fmt: skip

    # -- the Newton system -------------------------------------------------------------------------

    def factor(
        self, H: np.ndarray, H_end: np.ndarray, W: np.ndarray, box: Any, dw: float
    ) -> RiccatiFactors | None:
        """Riccati sweep; None unless the reduced Hessian is positive definite."""
        self.factorizations += 1
        return riccati_factor(self.ex, self.metric, self.model.free, H, H_end, W, box, dw)

    def _give(self) -> tuple[np.ndarray, np.ndarray]:
        """What constraints give way: b of excesses and σ of slacks."""
        it, form = self.it, self.form
        b = np.where(form.relaxed, it.e / (it.y + it.e * form.w2), 0.0)
        return b, np.where(form.active, it.z / (it.s + it.z * b), 0.0)

    def regularized(self) -> RiccatiFactors | None:
        """The factorization with the least regularization that algorithm IC finds."""
        o, it, ex, model = self.o, self.it, self.ex, self.model
        H, H_end, (lower, upper) = ex.H, ex.H_end, self.rooms(it.u)
        W = self.of_rows(self._give()[1], 1 / o.compliance, self.d[self.row] ** 2)
        if model.curvature is not None and not self.is_gauss_newton:
            lam, price = it.lam / self.scale, self.row_prices(it.z, it.nu) / self.scale
            along, end = model.hessians(Nodes(self.t, it.x, it.u), self.setting, lam, price, ex)
            H, H_end = H + along, H_end + end
        H = self.scale * (H + H.transpose(0, 2, 1)) / 2
        H_end = self.scale * (H_end + H_end.T) / 2
        dw = 0.0
        while True:
            fac = self.factor(H, H_end, W, it.zl / lower + it.zu / upper, dw)
            if fac is not None:
                self.dw, self.dw_last, self.K = dw, dw or self.dw_last, fac.K
                return fac
            never = self.dw_last == 0
            if dw == 0:
                dw = o.regularization_first if never else o.regularization_fall * self.dw_last
            else:
                dw *= o.regularization_grow_first if never else o.regularization_grow
            if dw > o.regularization_most:
                return None

    def newton_step(self) -> tuple[RiccatiFactors | None, PlanIterate | None]:
        """The factorization and the step; None where there is none that is finite."""
        fac = self.regularized()
        d = None if fac is None else self.direction(fac)
        return fac, d if d is not None and all(np.isfinite(v).all() for v in d) else None

    def direction(self, fac: RiccatiFactors) -> PlanIterate:
        """The step about defects and violations."""
        it, ex, mu, o, held = self.it, self.ex, self.mu, self.o, self.held
        (active, relaxed, w1, w2, v), (b, sigma) = self.form, self._give()
        (_, rho, missed), (lower, upper) = self.misses(it, ex), self.rooms(it.u)
        cost, turn = w1 + v + w2 * it.e, self.sign * self.d[self.row]
        a = np.where(relaxed, (mu - it.e * (cost - it.z)) / (it.y + it.e * w2), 0.0)
        own = (mu - it.s * it.z + it.z * (rho - a)) / (it.s + it.z * b)
        change = np.where(active, own, 0.0)
        aim, hold, left = it.nu, 1 / o.compliance, np.zeros_like(it.nu)
        eps, du, lam, drow = it.x, it.u, it.lam, it.s
        for _ in range(int(o.refinements)):
            aim = aim + hold * left
            price = self.of_rows(it.z - v + change, aim + hold * missed, turn)
            g, g_end = self.gradient(price, mu / upper - mu / lower)
            eps, du, lam = riccati_back(fac, self.model.free, g, g_end, ex.gaps)
            drow = self.row_changes(eps, du)
            left = np.where(held, missed + self.d[self.equal] * drow[:, self.equal], 0.0)
            if not largest(left) > o.relax * max(FIXED.refined, largest(missed)):
                break
        dh = turn * drow[:, self.row]
        dz = np.where(active, change + sigma * dh, 0.0)
        de = np.where(relaxed, a + b * dz, 0.0)
        dy = np.where(relaxed, cost + w2 * de - it.z - dz - it.y, 0.0)
        ds = np.where(active, -rho - dh + de, 0.0)
        dzl = np.where(np.isfinite(lower), (mu - it.zl * du) / lower - it.zl, 0.0)
        dzu = np.where(np.isfinite(upper), (mu + it.zu * du) / upper - it.zu, 0.0)
        dnu = aim + hold * left - it.nu
        return PlanIterate(eps, du, ds, dz, de, dy, dzl, dzu, lam - it.lam, dnu)

    def row_changes(self, eps: np.ndarray, du: np.ndarray) -> np.ndarray:
        """Of rows along a step."""
        along = np.einsum("kri,ki->kr", self.ex.G, np.hstack([eps[:-1], du]))
        return np.concatenate([along, (self.ex.G_end @ eps[-1])[None]])

    def slope(self, d: PlanIterate) -> float:
        """Slope of the barrier function along a step."""
        it, ex, form = self.it, self.ex, self.form
        cost = np.vdot(ex.g, np.hstack([d.x[:-1], d.u])) + np.vdot(ex.g_end, d.x[-1])
        penalty = np.vdot(form.v, d.s) + np.vdot(form.w1 + form.w2 * it.e, d.e)
        moves = zip(self.pairs(it), (d.u, -d.u, d.s, d.e), strict=True)
        logs = sum(np.vdot(1 / room[on], move[on]) for (room, _, on), move in moves)
        return float(self.scale * cost + penalty - self.mu * logs)

    def longest(self, d: PlanIterate, tau: float) -> tuple[float, float]:
        """Largest steps of primal and dual variables to the boundary."""

        def most(values: Any, changes: Any) -> float:
            found = 1.0
            for v, dv in zip(values, changes, strict=True):
                on = (dv < 0) & (v > 0) & np.isfinite(v)
                found = min(found, (-tau * v[on] / dv[on]).min(initial=1.0))
            return float(found)

        rooms, multipliers, _ = zip(*self.pairs(self.it), strict=True)
        primal = most(rooms, (d.u, -d.u, d.s, d.e))
        return primal, most(multipliers, (d.zl, d.zu, d.z, d.y))

    def moved(self, d: PlanIterate, alpha: float) -> PlanIterate:
        """The trial at a share of the step."""
        it, u = self.it, self.it.u.copy()
        u[:, self.model.controls] += alpha * d.u
        x = np.array(self.model.retract(it.x, alpha * d.x, self.setting.p))
        if not len(self.model.free):
            x[0] = it.x[0]
        return it._replace(x=x, u=u, s=it.s + alpha * d.s, e=it.e + alpha * d.e)

    def near(self, z: Any, room: np.ndarray, on: Any, most: float) -> np.ndarray:
        """Multipliers as far as they fit their distances from limits."""
        return np.where(on, np.clip(z, self.mu / (most * room), most * self.mu / room), 0.0)

    def taken(
        self, trial: PlanIterate, d: PlanIterate | None, alpha: float, dual: float
    ) -> PlanIterate:
        """The trial with its multipliers: along the step, or by linearized complementarity."""
        it, mu, step = self.it, self.mu, d or NO_STEP
        most = self.o.real_time_sigma if self.is_linear else self.o.sigma_most
        found: list[Any] = []
        for (before, z, on), (room, *_), dz in zip(
            self.pairs(it), self.pairs(trial), (step.zl, step.zu, step.z, step.y), strict=True
        ):
            own = (mu - z * (room - before)) / before if self.is_linear else z + dual * dz
            found.append(self.near(own, room, on, most))
        zl, zu, z, y = found
        lam, nu = it.lam + alpha * step.lam, it.nu + alpha * step.nu
        return trial._replace(z=z, y=y, zl=zl, zu=zu, lam=lam, nu=nu)

    def least_squares(self, it: PlanIterate) -> PlanIterate:
        """Least-squares multipliers of dynamics and equalities, equation (36)."""
        n, held, d, hold = self.n, self.held, self.d[self.equal], 1 / self.o.compliance
        W = self.of_rows(0.0, hold, self.d[self.row] ** 2)
        identity = np.tile(np.diag(self.metric), (self.N, 1, 1))
        fac = self.factor(identity, np.diag(self.metric[:n]), W, 0.0, 0.0)
        nu, lam = np.zeros_like(it.nu), np.zeros_like(it.lam)
        none = it._replace(lam=lam, nu=nu)
        if fac is None:
            return none
        for _ in range(FIXED.multiplier_sweeps if held.any() else 1):
            g, g_end = self.gradient(self.row_prices(it.z, nu), it.zu - it.zl)
            eps, du, lam = riccati_back(fac, self.model.free, g, g_end, np.zeros_like(lam))
            nu = nu + hold * np.where(held, d * self.row_changes(eps, du)[:, self.equal], 0.0)
        is_small = largest(lam * self.size[:n], nu) <= self.o.multiplier_most
        return it._replace(lam=lam, nu=nu) if is_small else none

    def fit_slacks(
        self, it: PlanIterate, rows: np.ndarray, *, with_multipliers: bool
    ) -> PlanIterate:
        """Slacks that fit rows; those of relaxed constraints by the barrier."""
        (active, relaxed, w1, w2, v), h, mu = self.form, self.h(rows), self.mu
        e, s = split(h, w1 + v, w2, mu, relaxed)
        least = self.o.push * np.maximum(1.0, np.abs(self.limit * self.d[self.row]))
        own = np.maximum(-h, np.where(it.s > 0, np.minimum(it.s, least), least))
        s = np.where(active, np.where(relaxed, s, own), 1.0)
        own = relaxed & with_multipliers
        z, y = np.where(own, mu / s, it.z), np.where(own, mu / e, it.y)
        fitted = it._replace(s=s, e=np.where(relaxed, e, 0.0))
        return fitted._replace(z=np.where(active, z, 0.0), y=np.where(relaxed, y, 0.0))

    def violated(self) -> tuple[float, float]:
        """Sum and maximum of the violations of the problem itself, the sum with defects."""
        h = np.where(self.soft, 0.0, self.missing(self.h(self.ex.rows)))
        gaps = self.ex.gaps * self.rate[: self.n]
        return float(np.abs(gaps).sum() + h.sum()), largest(h)

    @property
    def is_free(self) -> bool:
        """Whether controls have limits alone, which every rollout keeps."""
        return not len(self.row)

    def barriers(self) -> float:
        """Terms of the barrier function."""
        return float(sum(on.sum() for *_, on in self.pairs(self.it)))

    @property
    def worth(self) -> float:
        """Barrier parameter with which all terms of the barrier weigh as much as the cost."""
        return self.scale * abs(self.ex.cost) / max(1.0, self.barriers())

    @property
    def last_most(self) -> float:
        """The last barrier parameter at most."""
        return max(self.o.mu_least, self.o.mu_last * self.tolerance)


def split(
    h: np.ndarray, w1: np.ndarray, w2: np.ndarray, mu: float, on: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Excess e and slack s that minimise ``w1 e + ½ w2 e² − μ log e s`` for ``h − e + s = 0``."""
    over, under = np.maximum(h, 0.0), np.maximum(-h, 0.0)
    w = np.where(on, w1 + w2 * over, 1.0)
    root = np.sqrt(w**2 * h**2 + 4 * mu**2)
    v = (2 * mu + 4 * mu**2 / (root + w * np.abs(h))) / (2 * w)
    for _ in range(FIXED.split_steps):
        a, b = v + over, v + under
        away = w1 + w2 * a - mu / a - mu / b
        v = np.where(w2 > 0, v - away / (w2 + mu / a**2 + mu / b**2), v)
        v = np.where(v > 0, v, np.minimum(a - over, b - under) / 10)
    return v + over, v + under


def rounding_of(phi: float) -> float:
    """What rounding may change of a barrier function."""
    return FIXED.roundings * ROUNDING * abs(phi)


def largest(*parts: np.ndarray) -> float:
    """The largest size of numbers, 0 of none."""
    return max(float(np.abs(part).max(initial=0.0)) for part in parts)
