"""Interior point on the group: one barrier Newton step by a Riccati sweep, repeated.

This is the readable form of the algorithm; `_interior_point.c` is the same, line by line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ._input_limits import ControlBox
from ._settings import Settings
from ._stage_model import Expansion, StageModel
from ._transcription import Nodes, Setting, Values


class Barrier(NamedTuple):
    """How the barrier parameter μ decreases.

    Attributes
    ----------
    first, last : float
    factor, power : float
        ``μ ← max(last, min(factor μ, μ^power))``; where iterates are to be central, with their
        residual for the second μ if that is more, and last for what is within a factor of it.
    """

    first: float
    last: float
    factor: float
    power: float

    @classmethod
    def of_rollouts(cls, settings: Settings, last: float) -> Barrier:
        """That of rollouts whose controls alone have limits."""
        factor, power = settings.barrier_rollout_factor, settings.barrier_rollout_power
        return cls(settings.barrier_rollout, last, factor, power)

    @classmethod
    def of_central(cls, settings: Settings, last: float) -> Barrier:
        """That which waits for iterates to be central."""
        return cls(settings.barrier, last, settings.barrier_factor, settings.barrier_power)

    @classmethod
    def of_real_time(cls, settings: Settings) -> Barrier:
        """That of real-time steps, which decreases by the factor alone."""
        first, last = settings.real_time_barrier, settings.real_time_barrier_last
        return cls(first, last, settings.real_time_barrier_factor, 1.0)

    def lowered(self, mu: float, residual: float = 0.0) -> float:
        """The next weight, less far below this one where an iterate is less central."""
        return max(self.last, min(self.factor * mu, max(mu, residual) ** self.power))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate: nodes, distances to limits and multipliers.

    Attributes
    ----------
    x, u : ndarray
        States (N + 1, nq), inputs (N, n_inputs).
    below, above : ndarray, shape (N, m)
        Multipliers of the lower and upper bounds of the controls.
    slack, price : ndarray, shape (N + 1, sides)
        ``s > 0`` with ``h − e + s = 0`` and its multiplier.
    excess, relief : ndarray, shape (N + 1, sides)
        ``e > 0`` of soft sides and its multiplier; zero for hard ones.
    equal : ndarray, shape (N + 1, equalities)
        Multipliers of equalities.
    """

    x: np.ndarray
    u: np.ndarray
    below: np.ndarray
    above: np.ndarray
    slack: np.ndarray
    price: np.ndarray
    excess: np.ndarray
    relief: np.ndarray
    equal: np.ndarray


class Sweep(NamedTuple):
    """Feedback ``δu = k + K ε`` of the linear-quadratic subproblem.

    Attributes
    ----------
    k, K : ndarray
        Shapes (N, m), (N, m, n).
    first : ndarray, shape (n,)
        Step of the first state.
    """

    k: np.ndarray
    K: np.ndarray
    first: np.ndarray


class Residuals(NamedTuple):
    """How far the conditions of optimality are off at an iterate.

    Attributes
    ----------
    stationarity : float
        Relative to one plus the largest derivative of the cost.
    violation : float
        Largest gap, excess over a hard row, or missed equality.
    complementarity : float
        Largest product of a multiplier and its distance, relative as the first.
    """

    stationarity: float
    violation: float
    complementarity: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self)


class Outcome(NamedTuple):
    """Result of an iteration.

    Attributes
    ----------
    point : Point
        The new iterate; the old one where no step was found.
    sweep : Sweep or None
    step : float
        Share of the direction, 0 where none was found.
    """

    point: Point
    sweep: Sweep | None
    step: float


class InteriorPoint:
    """State of one solve; `expand`, then `residuals`, then `iterate`, and again.

    Parameters
    ----------
    model : StageModel
    setting : Setting
    nodes : Nodes
        Where the search begins; inputs are moved inside of their bounds.
    x0 : ndarray, shape (nq,)
        The given start; what is free of it is taken from the first node.
    mu : float
        First weight of the barrier.
    is_feasible : bool
        Whether iterates are motions of the system, by feedback on the group; otherwise states move
        by tangent vectors of their own and gaps close along the way (multiple shooting).
    curved : bool
        Whether second derivatives of dynamics and cost are used.
    K : ndarray, shape (N, m, n), optional
        Gains of the feedback that leads it along the nodes.
    before : Point, optional
        Whose multipliers are kept, as far as they fit the barrier.
    """

    def __init__(
        self,
        model: StageModel,
        setting: Setting,
        nodes: Nodes,
        x0: np.ndarray,
        mu: float,
        *,
        is_feasible: bool,
        curved: bool = True,
        K: np.ndarray | None = None,
        before: Point | None = None,
    ) -> None:
        self.model, self.setting, self.t, self.mu = model, setting, nodes.t, mu
        self.settings = model.settings
        self.box = setting.box
        self.x0, self.K = x0, K
        self.is_feasible = is_feasible
        self.curved = curved and model.curvature is not None
        self.waiting = 0  # iterations until the curvature is tried again
        self.damping = 0.0
        self.step = 1.0  # share of the last one
        self.weight = 0.0  # on violations in the merit
        self.sweep: Sweep | None = None  # of the last step
        self.best, self.idle = np.inf, 0  # residual at this weight of the barrier, and since when
        self._hessians: dict[bool, tuple[np.ndarray, np.ndarray]] = {}
        share = self.settings.push if before is None else min(self.settings.push, mu)
        first = model.first_state(x0, nodes.x[0], setting.p)
        if is_feasible:
            x, u = self._roll_out(first, nodes, K, share)
        else:
            push = self.settings.push
            x, u = np.vstack([first, nodes.x[1:]]), self._inside(nodes.u, push)
        self.expansion: Expansion
        self.prices: np.ndarray  # of the dynamics, (N, n)
        self.row_prices: np.ndarray
        self.rows = self._rows(Nodes(self.t, x, u))
        self.point = self._first(x, u, share, before)
        # Motions with clipped controls need not be central before the barrier falls; others do.
        self.is_eager = is_feasible and not (len(model.sides.row) or len(model.sides.equal))

    # -- where a solve starts ----------------------------------------------------------------------

    def _roll_out(
        self, x0: np.ndarray, nodes: Nodes, K: np.ndarray | None, share: float
    ) -> tuple[np.ndarray, np.ndarray]:
        model, u = self.model, nodes.u.copy()
        states = [x0]
        error = np.zeros(model.n) if K is None else model.error(x0, nodes.x[0])
        for k in range(len(u)):
            if K is not None:
                u[k, model.controls] += K[k] @ error
            u[k] = self._inside(u[k], share)
            after, _, error, _ = model.advance(k, nodes, self.setting, states[-1], u[k])
            states.append(after)
        return np.array(states), u

    def _inside(self, u: np.ndarray, share: float) -> np.ndarray:
        """Inputs with controls that share of their range, or that far, inside of their limits."""
        moved, controls = u.copy(), self.model.controls
        moved[..., controls] = np.clip(u[..., controls], *self.box.inside(share))
        return moved

    def _rows(self, nodes: Nodes) -> np.ndarray:
        return self.model.values(nodes, self.setting).rows

    def _first(
        self, x: np.ndarray, u: np.ndarray, share: float, before: Point | None = None
    ) -> Point:
        model, mu, sides, rows = self.model, self.mu, self.model.sides, self.rows
        v = u[:, model.controls]
        h = sides.sign * (rows[:, sides.row] - sides.limit)
        apart = share * np.maximum(1.0, np.abs(sides.limit))
        soft = np.isfinite(sides.weight)
        weight, steps = np.where(soft, sides.weight, 1.0), self.settings.soft_newton_steps
        over, away = resolved(h, weight, mu, steps)
        excess = np.where(soft, over, 0.0)
        slack = np.where(soft, away, np.fmax(-h, apart))

        def price(room: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
            own = mu / room
            return (
                own
                if kept is None
                else np.clip(
                    kept, self.settings.multiplier_low * own, self.settings.multiplier_high * own
                )
            )

        if before is not None:
            # Where distances do not fit kept multipliers rows are off at first, as gaps are.
            for room, kept in ((slack, before.price), (excess, before.relief)):
                own = mu / np.where(kept > 0, kept, 1.0)
                fit = np.clip(
                    room, self.settings.multiplier_low * own, self.settings.multiplier_high * own
                )
                np.copyto(room, fit, where=kept > 0)
        relief = price(np.where(soft, excess, 1.0), None if before is None else before.relief)
        return Point(
            x,
            u,
            below=price(v - self.box.lower, None if before is None else before.below),
            above=price(self.box.upper - v, None if before is None else before.above),
            slack=slack,
            price=price(slack, None if before is None else before.price),
            excess=excess,
            relief=np.where(soft, relief, 0.0),
            equal=np.zeros((len(x), len(sides.equal))) if before is None else before.equal,
        )

    def start_lower(self) -> bool:
        """Lower the barrier where a plan costs little, after the first expansion of a solve.

        Weights that add a multiple of the cost lead far from a plan that is nearly optimal, and
        their sum says how far only where the guess keeps its limits: the optimum costs no more.
        Of states that are no motion, what the first step leads to counts, too, and of all whether
        it keeps limits.

        Returns
        -------
        bool
            Whether multipliers are those of a lower weight, to be expanded.
        """
        first, cost = self.mu, abs(self.expansion.cost)
        mu = self._first_weight(first, cost)
        if self.is_eager or not mu < first:
            return False
        self._begin_with(mu)
        predicted, is_inside = self._predicted()
        dearest = cost if self.is_feasible else max(cost, predicted)
        self._begin_with(self._first_weight(first, dearest, is_inside=is_inside))
        return True

    def _begin_with(self, mu: float) -> None:
        """Multipliers and distances of another weight, at the same nodes."""
        self.mu = float(mu)
        self.point = self._first(self.point.x, self.point.u, self.settings.push)

    def _first_weight(self, mu: float, cost: float, *, is_inside: bool = True) -> float:
        """The first weight for a plan of some cost, where the start keeps its limits."""
        sides = self.model.sides
        h = sides.sign * (self.rows[:, sides.row] - sides.limit)
        off = self.rows[:, sides.equal] - sides.target
        is_kept = np.where(sides.active, h, 0.0) <= self.settings.violation_kept
        is_met = np.where(sides.equal_active, np.abs(off), 0.0) <= self.settings.violation_kept
        if not (is_kept.all() and is_met.all()):
            return mu
        most, least = self.settings.barrier_share, self.settings.barrier_share_least
        if not is_inside:
            most, least = (
                self.settings.barrier_share_beyond,
                self.settings.barrier_share_beyond_least,
            )
        return min(mu, max(least, most * cost / number_of_limits(self.model, self.box)))

    def _predicted(self) -> tuple[float, bool]:
        """Where the first step leads in the model of Gauss and Newton: cost, if limits are kept.

        Gaps are closed.
        """
        self.curved, kept = False, self.curved
        newton = self._newton(self.expansion)
        self.curved = kept
        if newton is None:
            return np.inf, False
        at, end, model = self.expansion, newton.eps[-1], self.model
        sides, controls = model.sides, self.point.u[:, model.controls] + newton.du
        h = sides.sign * ((self.rows + newton.rows)[:, sides.row] - sides.limit)
        is_inside = bool(
            (np.where(sides.active, h, 0.0) <= self.settings.violation_kept).all()
            and ((controls >= self.box.lower) & (controls <= self.box.upper)).all()
        )
        z = np.hstack([newton.eps[:-1], newton.du])
        cost = at.cost + np.vdot(at.g, z) + np.einsum("ki,kij,kj", z, at.H, z) / 2
        return float(abs(cost + at.g_end @ end + end @ at.H_end @ end / 2)), is_inside

    def settle(self, found: Residuals, barrier: Barrier, step: float) -> bool:
        """The barrier for a real-time step, by how far its start is from optimal.

        Full steps leave about the square of that: after one it falls down to it, since more may be
        the barrier's own doing.

        Parameters
        ----------
        found : Residuals
        barrier : Barrier
        step : float
            Share of the last step that was taken.

        Returns
        -------
        bool
            Whether that is so far that the start was made anew, further inside, to be expanded.
        """
        off = max(found.stationarity, found.violation)
        if not np.isfinite(off):
            return False
        if off > self.settings.far and self.mu < barrier.first:
            self.mu = barrier.first
            share = min(self.settings.push, self.mu)
            x, u = self._roll_out(self.point.x[0], self._nodes(self.point), self.K, share)
            self.rows = self._rows(Nodes(self.t, x, u))
            self.point = self._first(x, u, share)
            return True
        least = max(barrier.factor * self.mu, off**2 if step == 1.0 else barrier.factor * off)
        self.mu = max(barrier.last, min(barrier.first, self.mu, least))
        return False

    def weigh_violations(self) -> None:
        """So that iterates that keep rows are not given up for a lower cost."""
        self.weight = self._needed_weight()

    def _needed_weight(self) -> float:
        """The largest multiplier of rows that are hard or kept; full steps at an optimum need half.

        Multipliers of rows that are exceeded at a price are that price; rows with at most half of
        it are kept but for what steps are off.
        """
        sides, point = self.model.sides, self.point
        h = sides.sign * (self.rows[:, sides.row] - sides.limit)
        is_kept = (
            np.isinf(sides.weight)
            | (h <= self.settings.violation_kept)
            | (point.relief >= sides.weight / 2)
        )
        prices, equal = point.price[sides.active & is_kept], np.abs(point.equal)
        return float(max(prices.max(initial=0.0), equal.max(initial=0.0)))

    def is_far(self, found: Residuals, step: float) -> bool:
        """Whether a real-time step began far off, was cut short or left hard rows exceeded."""
        off = max(found.stationarity, found.violation)
        return off > self.settings.far or step < self.settings.step_good or self.exceeds

    @property
    def exceeds(self) -> bool:
        """Whether one-sided hard rows are exceeded."""
        sides = self.model.sides
        h = sides.sign * (self.rows[:, sides.row] - sides.limit)
        hard = sides.active & np.isinf(sides.weight)
        return not (np.where(hard, h, 0.0) <= self.settings.violation_kept).all()

    @property
    def is_worth_keeping(self) -> bool:
        """Whether there are one-sided hard rows, and they and equalities are kept."""
        sides = self.model.sides
        missed = self._violations(self.point, self.rows)[1]
        is_met = bool((np.abs(missed) <= self.settings.violation_kept).all())
        return bool(np.isinf(sides.weight).any()) and is_met and not self.exceeds

    def look(self, found: Residuals) -> bool:
        """Whether too many iterations with this weight of the barrier did not help, up to this."""
        self.idle = 0 if found.largest < self.settings.progress * self.best else self.idle + 1
        self.best = min(self.best, found.largest)
        return self.idle > self.settings.idle_most

    def has_followed(self, found: Residuals, barrier: Barrier) -> bool:
        """Whether products of central iterates are within a fall of the barrier's last weight."""
        return self.is_eager or barrier.factor * found.complementarity <= barrier.last

    def lower_before(self, found: Residuals, barrier: Barrier) -> None:
        """Lower the barrier at iterates that are central, or as much so as rounding lets them."""
        is_due = self._is_central(found)
        is_due |= self.idle > self.settings.idle_most and found.largest <= self.settings.acceptable
        if self.is_eager or self.mu <= barrier.last or not is_due:
            return
        self.weight = self._needed_weight() / 2  # that of another barrier is forgotten
        self._lower(barrier, found.largest)
        while self.mu > barrier.last and self._is_central(found):
            self._lower(barrier, found.largest)
        if barrier.factor * self.mu <= barrier.last:  # a part of a fall is not worth it
            self.mu = barrier.last

    def lower_after(self, barrier: Barrier, step: float) -> None:
        """Lower the barrier after a step."""
        if self.is_eager and step > self.settings.step_good and self.mu > barrier.last:
            self._lower(barrier)

    def _is_central(self, found: Residuals) -> bool:
        """Whether the barrier may fall."""
        own = self.settings
        error = own.barrier_error_late if self.mu <= own.barrier_late else own.barrier_error
        return found.largest <= error * self.mu

    def _lower(self, barrier: Barrier, residual: float = 0.0) -> None:
        self.mu, self.best, self.idle = barrier.lowered(self.mu, residual), np.inf, 0

    # -- conditions of optimality ------------------------------------------------------------------

    def expand(self) -> Residuals:
        """Evaluate the problem about the iterate; how far it is from optimal.

        Where states are their own, with those multipliers of two adjoint sweeps that leave less.
        """
        model, point = self.model, self.point
        at = model.expand(self._nodes(point), self.setting)
        if len(model.free):
            first = model.arrival(point.x[0], self.x0, self.setting.arrival)
            at = at._replace(cost=at.cost + float(first.cost))
            at.g[0, : model.n] += first.g
            at.H[0, : model.n, : model.n] += first.H
        self.expansion = at
        rho, missed = self._violations(point, at.rows)
        self.row_prices = self._row_prices(point)
        along = at.g + np.einsum("kri,kr->ki", at.G, self.row_prices[:-1])
        end = at.g_end + at.G_end.T @ self.row_prices[-1]
        self.prices, left = self._adjoint(along, end)
        if self.sweep is not None and not self.is_feasible:
            led, less = self._adjoint(along, end, self.sweep.K)
            if less < left:
                self.prices, left = led, less
        scale = 1.0 + max(np.abs(at.g).max(), np.abs(at.g_end).max())
        v = point.u[:, model.controls]
        products = [
            point.below * _finite(v - self.box.lower),
            point.above * _finite(self.box.upper - v),
        ]
        active, sides = model.sides.active, model.sides
        products += [np.where(active, point.price * point.slack, 0.0)]
        products += [np.where(active, point.relief * point.excess, 0.0)]
        soft = np.isfinite(sides.weight)
        unpriced = np.where(
            active & soft,
            np.where(soft, sides.weight, 0.0) * (1.0 + point.excess) - point.price - point.relief,
            0.0,
        )
        off = (at.gaps, rho, missed)
        return Residuals(
            float(max(left, np.abs(unpriced).max(initial=0.0)) / scale),
            float(max(np.abs(v).max(initial=0.0) for v in off)),
            float(max(p.max(initial=0.0) for p in products) / scale),
        )

    def _adjoint(
        self, along: np.ndarray, end: np.ndarray, K: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Multipliers of the dynamics by an adjoint sweep, and what it leaves of stationarity.

        Under gains states answer for what is left of the controls': off the optimum sweeps through
        an unstable system without them grow from node to node.
        """
        at, point, n = self.expansion, self.point, self.model.n
        prices, price = np.empty_like(at.gaps), end
        by_u, by_x = np.empty_like(point.below), np.zeros_like(at.gaps)
        for k in range(len(prices) - 1, -1, -1):
            prices[k] = price
            by_u[k] = along[k, n:] + at.B[k].T @ price - point.below[k] + point.above[k]
            if K is not None and k > 0:
                by_x[k] = K[k].T @ by_u[k]
            price = along[k, :n] + at.A[k].T @ price + by_x[k]
        missed = by_u, by_x, price[self.model.free]
        return prices, float(max(np.abs(v).max(initial=0.0) for v in missed))

    def _row_prices(self, point: Point) -> np.ndarray:
        sides = self.model.sides
        total = np.zeros((len(point.x), len(self.model.transcription.rows.names)))
        np.add.at(total.T, sides.row, np.where(sides.active, sides.sign * point.price, 0.0).T)
        np.add.at(total.T, sides.equal, np.where(sides.equal_active, point.equal, 0.0).T)
        return total

    def _violations(self, point: Point, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``h − e + s`` of the sides and what equalities miss; zero where they are idle."""
        sides = self.model.sides
        h = sides.sign * (rows[:, sides.row] - sides.limit)
        rho = np.where(sides.active, h - point.excess + point.slack, 0.0)
        missed = np.where(sides.equal_active, rows[:, sides.equal] - sides.target, 0.0)
        return rho, missed

    # -- one iteration -----------------------------------------------------------------------------

    def iterate(self) -> Outcome:
        """One step from the iterate that was expanded, with the barrier's present weight."""
        was_cut, self._hessians = self.step < self.settings.step_good, {}
        self.waiting = 0 if was_cut else max(0, self.waiting - 1)
        raises, undamped = self.settings.regularization_tries if was_cut else 0, self.damping
        while True:
            newton = self._newton(self.expansion)
            if newton is not None:
                found = self._search(newton)
                if found is not None:
                    if (
                        self._has_curvature and found.step < self.settings.step_short
                    ):  # trusted less far
                        self.damping = max(
                            self.settings.regularization_first,
                            self.settings.regularization_growth * self.damping,
                        )
                    else:
                        self.damping = self.damping / self.settings.regularization_growth
                        if self.damping < self.settings.regularization_first:
                            self.damping = 0.0
                    self.point, self.sweep, self.step = found
                    return found
            if self._has_curvature and raises == 0:
                self.waiting, self.damping = self.settings.gauss_newton_iterations + 1, undamped
                continue
            # After a step that was cut short: without curvature the next would be, too.
            raises -= self._has_curvature
            self.damping = max(
                self.settings.regularization_first,
                self.settings.regularization_growth * self.damping,
            )
            if self.damping > self.settings.regularization_last:
                return Outcome(self.point, None, 0.0)

    @property
    def _has_curvature(self) -> bool:
        """Whether steps are those of the Lagrangian's Hessian."""
        return self.curved and self.waiting == 0

    @property
    def _is_bent(self) -> bool:
        """Whether they are, or have what the cost itself bends by."""
        return self._has_curvature or (self.curved and bool(self.model.problem.costs))

    def _newton(self, at: Expansion) -> _Newton | None:
        """Sweeps and the step they lead to; None where a stage is concave.

        What the weight on equalities leaves of them goes to their multipliers, and by further
        sweeps into the step.
        """
        sides = self.model.sides
        aim, found, hold = self.point.equal, None, 0.0
        if len(sides.equal):
            sizes = np.einsum("kii->ki", at.H), np.diag(at.H_end), np.abs(at.g), np.abs(at.g_end)
            hold = self.settings.equality_penalty * max(
                self.mu, *(float(entries.max()) for entries in sizes)
            )
        aims = _Aims(hold, self.settings.equality_same)
        for k in range(self.settings.equality_sweeps_most if len(sides.equal) else 1):
            terms = self._terms(at, aim, hold)
            sweep = self._sweep(at, terms)
            if sweep is None:
                return None
            found = self._direction(at, sweep, terms)
            found = found._replace(aim=aim + hold * found.left)
            left, missed = np.abs(found.left).sum(), np.abs(terms.missed).sum()
            if k + 1 >= self.settings.equality_sweeps_least and left <= max(
                self.settings.violation_least, self.settings.equality_left * missed
            ):
                break
            aim = aims.after(aim, found.left)
        return found

    def _terms(self, at: Expansion, aim: np.ndarray, hold: float) -> _Terms:
        """Barrier terms of rows: a weight Σ and an offset, so that ``z⁺ = offset + Σ h(d)``.

        Equalities are held by a weight, about multipliers that are aimed at.
        """
        point, mu, sides = self.point, self.mu, self.model.sides
        rho, missed = self._violations(point, at.rows)
        soft = np.isfinite(sides.weight)
        w = np.where(soft, sides.weight, 0.0)
        s, z, e, y = point.slack, point.price, point.excess, point.relief
        # e⁺ = e + a + b dz
        unpriced = w * (1.0 + e) - z - y
        by = np.where(soft, y + e * w, 1.0)
        a = np.where(soft, (mu - e * y - e * unpriced) / by, 0.0)
        b = np.where(soft, e / by, 0.0)
        share = s + z * b
        sigma = np.where(sides.active, z / share, 0.0)
        change = np.where(sides.active, (mu - s * z + z * (rho - a)) / share, 0.0)
        return _Terms(rho, missed, aim, hold, a, b, sigma, change)

    def _curved(self) -> tuple[np.ndarray, np.ndarray]:
        """Hessians of the Lagrangian at the iterate; without curvature the cost's convex part.

        Those of Gauss and Newton have nothing of costs that are no squares.
        """
        is_all = self._has_curvature
        if is_all not in self._hessians:
            model, point, setting = self.model, self.point, self.setting
            at, prices = self.expansion, (self.prices, self.row_prices)
            if not is_all:
                prices = np.zeros_like(self.prices), np.zeros_like(self.row_prices)
            H, H_end = model.hessians(self._nodes(point), setting, *prices, at)
            H, H_end = H + at.H, H_end + at.H_end
            self._hessians[is_all] = (H, H_end) if is_all else (convex_part(H), convex_part(H_end))
        return self._hessians[is_all]

    def _sweep(self, at: Expansion, terms: _Terms) -> Sweep | None:
        """Backward Riccati sweep; None if a stage is concave in its controls."""
        model, point, mu = self.model, self.point, self.mu
        sides, n, m = model.sides, model.n, model.m
        H, H_end = self._curved() if self._is_bent else (at.H, at.H_end)
        rows = len(model.transcription.rows.names)
        weight, price = np.zeros((len(point.x), rows)), np.zeros((len(point.x), rows))
        np.add.at(weight.T, sides.row, terms.sigma.T)
        z = np.where(sides.active, sides.sign * (point.price + terms.change), 0.0)
        np.add.at(price.T, sides.row, z.T)
        np.add.at(weight.T, sides.equal, np.where(sides.equal_active, terms.hold, 0.0).T)
        held = np.where(sides.equal_active, terms.aim + terms.hold * terms.missed, 0.0)
        np.add.at(price.T, sides.equal, held.T)
        damped = (
            0.0 if self.is_feasible else self.settings.regularization_states * self.damping
        ) * np.eye(n)
        P = H_end + damped + at.G_end.T @ (weight[-1][:, None] * at.G_end)
        p = at.g_end + at.G_end.T @ price[-1]
        v = point.u[:, model.controls]
        s_l, s_u = v - self.box.lower, self.box.upper - v
        k_all, K_all = np.empty((len(v), m)), np.empty((len(v), m, n))
        for k in range(len(v) - 1, -1, -1):
            F = np.hstack([at.A[k], at.B[k]])
            M = H[k] + F.T @ P @ F
            g = at.g[k] + F.T @ (p + P @ at.gaps[k])
            if rows:
                M += at.G[k].T @ (weight[k][:, None] * at.G[k])
                g = g + at.G[k].T @ price[k]
            M[:n, :n] += damped
            g[n:] += -mu / s_l[k] + mu / s_u[k]
            own = M[n:, n:] + np.diag(point.below[k] / s_l[k] + point.above[k] / s_u[k])
            own += self.damping * np.eye(m)
            L = _factor(own)
            if L is None:
                return None
            # P = M_xx − Yᵀ Y and p = g_x − Yᵀ y with L Y = M_ux, L y = g_u
            Y, y = np.linalg.solve(L, M[n:, :n]), np.linalg.solve(L, g[n:])
            k_all[k], K_all[k] = -np.linalg.solve(L.T, y), -np.linalg.solve(L.T, Y)
            p = g[:n] - Y.T @ y
            P = (M[:n, :n] + M[:n, :n].T) / 2 - Y.T @ Y
        first, free = np.zeros(n), model.free
        L = _factor(P[np.ix_(free, free)] + self.damping * np.eye(len(free)))
        if L is None:
            return None
        first[free] = -np.linalg.solve(L.T, np.linalg.solve(L, p[free]))
        return Sweep(k_all, K_all, first)

    def _direction(self, at: Expansion, sweep: Sweep, terms: _Terms) -> _Newton:
        """The step of the linear model under the feedback of a sweep."""
        model, point = self.model, self.point
        sides, n = model.sides, model.n
        eps, du = np.zeros((len(point.x), n)), np.empty_like(sweep.k)
        eps[0] = sweep.first
        for k in range(len(du)):
            du[k] = sweep.k[k] + sweep.K[k] @ eps[k]
            eps[k + 1] = at.gaps[k] + at.A[k] @ eps[k] + at.B[k] @ du[k]
        rows = np.concatenate(
            [
                np.einsum("kri,ki->kr", at.G, np.hstack([eps[:-1], du])),
                (at.G_end @ eps[-1])[None],
            ]
        )
        dz = terms.change + terms.sigma * sides.sign * rows[:, sides.row]
        de = np.where(sides.active, terms.a + terms.b * dz, 0.0)
        ds = np.where(sides.active, -terms.rho - sides.sign * rows[:, sides.row] + de, 0.0)
        left = np.where(sides.equal_active, terms.missed + rows[:, sides.equal], 0.0)
        return _Newton(sweep, eps, du, rows, ds, de, left, terms.aim)

    def _search(self, newton: _Newton) -> Outcome | None:
        """The longest halved step that lowers the merit enough, or a correction of the first."""
        model, at, point, mu = self.model, self.expansion, self.point, self.mu
        sides, v = model.sides, point.u[:, model.controls]
        eps, du, ds, de = newton.eps, newton.du, newton.ds, newton.de
        soft = np.isfinite(sides.weight) & sides.active
        w = np.where(np.isfinite(sides.weight), sides.weight, 0.0)
        slope = (
            np.vdot(at.g, np.hstack([eps[:-1], du]))
            + np.vdot(at.g_end, eps[-1])
            + np.vdot(-mu / (v - self.box.lower) + mu / (self.box.upper - v), du)
            - np.where(sides.active, mu * ds / point.slack, 0.0).sum()
            + np.vdot(w * (1 + point.excess) - mu / np.where(soft, point.excess, 1.0), soft * de)
        )
        start, violation = self._merit(at.cost, at.gaps, at.rows, point)
        gained = violation - np.abs(newton.left).sum()
        if gained > self.settings.violation_least:
            # Half the curvature counts; with the slope it is what multipliers make of the missed.
            missed = np.where(sides.equal_active, at.rows[:, sides.equal] - sides.target, 0.0)
            bend = float(np.vdot(newton.aim, missed - newton.left)) if missed.size else slope
            self.weight = max(
                self.weight,
                max(slope, (slope + bend) / 2) / ((1 - self.settings.penalty_margin) * gained),
            )
        descent = slope - self.weight * gained
        start += self.weight * violation

        def is_good(share: float, found: tuple[Point, Values] | None) -> bool:
            if found is None:
                return False
            trial, values = found
            there, violation = self._merit(values.cost, values.gaps, values.rows, trial)
            change = there + self.weight * violation - start
            return change <= self.settings.armijo * share * descent + self.settings.rounding * abs(
                start
            )

        step = longest = self._longest(newton)
        while step >= self.settings.step_least:
            found = self._trial(step, newton)
            if is_good(step, found):
                return self._accepted(found, step, newton)
            if step == longest and found is not None:
                other = self._corrected(newton, step, found[1])
                if other is not None:
                    share = min(step, self._longest(other))
                    found = self._trial(share, other)
                    if is_good(share, found):
                        return self._accepted(found, share, other)
            step /= 2
        return None

    def _corrected(self, newton: _Newton, step: float, there: Values) -> _Newton | None:
        """The step about gaps and rows with what a trial found them to bend by, where they can."""
        sides, at = self.model.sides, self.expansion
        if self.is_feasible and not (len(sides.row) or len(sides.equal)):
            return None
        gaps = at.gaps if self.is_feasible else there.gaps + step * at.gaps
        return self._newton(at._replace(gaps=gaps, rows=there.rows - step * newton.rows))

    def _accepted(
        self, found: tuple[Point, Values] | None, step: float, newton: _Newton
    ) -> Outcome:
        assert found is not None
        trial, values = found
        self.rows = values.rows
        return Outcome(self._reprice(trial, step, newton), newton.sweep, step)

    def _longest(self, newton: _Newton) -> float:
        """The largest share of the step that keeps controls and a free start inside.

        Motions clip their controls.
        """
        model, du, ds, longest = self.model, newton.du, newton.ds[0], 1.0
        if len(model.free):
            ends = (ds < 0) & (model.sides.active[0] != 0) & np.isinf(model.sides.weight)
            longest = (-self.settings.boundary * self.point.slack[0, ends] / ds[ends]).min(
                initial=1.0
            )
        if self.is_feasible:
            return float(longest)
        v = self.point.u[:, model.controls]
        shares = [
            (-self.settings.boundary * room[move < 0] / move[move < 0]).min(initial=1.0)
            for room, move in ((v - self.box.lower, du), (self.box.upper - v, -du))
        ]
        return float(min(longest, *shares))

    def _trial(self, step: float, newton: _Newton) -> tuple[Point, Values] | None:
        """The point at a share of the step, and its values; None where they are not finite."""
        sweep, eps, du = newton.sweep, newton.eps, newton.du
        model, point = self.model, self.point
        nodes = self._nodes(point)
        controls = model.controls
        v = point.u[:, controls]
        low = v - self.settings.boundary * (v - self.box.lower)
        high = v + self.settings.boundary * (self.box.upper - v)
        u, first = point.u.copy(), point.x[0]
        if len(model.free):
            first = np.asarray(model.retract(first, step * sweep.first, self.setting.p))
        if self.is_feasible:
            states, cost, all_rows = [first], 0.0, []
            gap = step * sweep.first
            for k in range(len(v)):
                own = v[k] + step * sweep.k[k] + sweep.K[k] @ gap
                u[k, controls] = np.clip(own, low[k], high[k])
                after, part, gap, rows = model.advance(k, nodes, self.setting, states[-1], u[k])
                if not np.isfinite(after).all():
                    return None
                states.append(after)
                cost += part
                all_rows.append(rows)
            part, rows = model.end(nodes, self.setting, states[-1])
            found = Values(cost + part, np.zeros_like(eps[1:]), np.array([*all_rows, rows]))
            x = np.array(states)
        else:
            u[:, controls] = np.clip(v + step * du, low, high)
            x = np.vstack([first, model.retract(point.x[1:], step * eps[1:], self.setting.p)])
            found = model.values(Nodes(self.t, x, u), self.setting)
        if len(model.free):
            arrived = model.arrival(first, self.x0, self.setting.arrival)
            found = found._replace(cost=found.cost + float(arrived.cost))
        if not np.isfinite(found.cost):
            return None
        sides = model.sides
        h = sides.sign * (found.rows[:, sides.row] - sides.limit)
        soft, left = np.isfinite(sides.weight), 1.0 - self.settings.boundary
        slack = np.maximum(point.slack + step * newton.ds, left * point.slack)
        excess = np.maximum(point.excess + step * newton.de, left * point.excess)
        slack = np.where(sides.active & ~soft, np.maximum(slack, -h), slack)
        return replace(point, x=x, u=u, slack=slack, excess=np.where(soft, excess, 0.0)), found

    def _merit(
        self, cost: float, gaps: np.ndarray, rows: np.ndarray, point: Point
    ) -> tuple[float, float]:
        """Cost with barrier and prices of excess, and the sum of violations."""
        model, mu, sides = self.model, self.mu, self.model.sides
        v = point.u[:, model.controls]
        total = cost - mu * sum(
            np.log(_finite(d, 1.0)).sum() for d in (v - self.box.lower, self.box.upper - v)
        )
        active = sides.active
        soft = active & np.isfinite(sides.weight)
        total -= mu * np.log(np.where(active, point.slack, 1.0)).sum()
        e = np.where(soft, point.excess, 1.0)
        w = np.where(np.isfinite(sides.weight), sides.weight, 0.0)
        total += np.where(soft, w * (e + e**2 / 2) - mu * np.log(e), 0.0).sum()
        rho, missed = self._violations(point, rows)
        return float(total), float(sum(np.abs(off).sum() for off in (gaps, rho, missed)))

    def _reprice(self, trial: Point, step: float, newton: _Newton) -> Point:
        """Multipliers by linearized complementarity, near what the new distances ask for."""
        model, old, mu = self.model, self.point, self.mu
        v, new = old.u[:, model.controls], trial.u[:, model.controls]

        def priced(z: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore", divide="ignore"):
                own = mu / after
                z = z + step * (mu / before - z) - z * (after - before) / before
                return np.where(
                    np.isfinite(before),
                    np.clip(
                        z, self.settings.multiplier_low * own, self.settings.multiplier_high * own
                    ),
                    0.0,
                )

        soft = np.isfinite(model.sides.weight)
        relief = priced(
            old.relief, np.where(soft, old.excess, 1.0), np.where(soft, trial.excess, 1.0)
        )
        return replace(
            trial,
            below=priced(old.below, v - self.box.lower, new - self.box.lower),
            above=priced(old.above, self.box.upper - v, self.box.upper - new),
            price=priced(old.price, old.slack, trial.slack),
            relief=np.where(soft, relief, 0.0),
            equal=old.equal + step * (newton.aim - old.equal),
        )

    def _nodes(self, point: Point) -> Nodes:
        return Nodes(self.t, point.x, point.u)


class _Newton(NamedTuple):
    """A full step.

    Attributes
    ----------
    sweep : Sweep
        Feedback that leads to it.
    eps, du, rows, ds, de : ndarray
        Of states, controls, rows, slacks and excesses.
    left, aim : ndarray
        What the linear model leaves of equalities, and their new multipliers.
    """

    sweep: Sweep
    eps: np.ndarray
    du: np.ndarray
    rows: np.ndarray
    ds: np.ndarray
    de: np.ndarray
    left: np.ndarray
    aim: np.ndarray


class _Terms(NamedTuple):
    """Of rows: violations, ``e⁺ = e + a + b dz``, ``z⁺ = z + change + sigma dh``.

    Of equalities what they miss, multipliers aimed at and the weight that holds them.
    """

    rho: np.ndarray
    missed: np.ndarray
    aim: np.ndarray
    hold: float
    a: np.ndarray
    b: np.ndarray
    sigma: np.ndarray
    change: np.ndarray


class _Aims:
    """Multipliers of equalities that sweeps aim at, one after the other.

    What a sweep leaves of equalities is affine in what it aims at: the next one aims at the least
    that multipliers tried so far could leave, and what the weight adds to that. Where the barrier
    is stiff the weight alone would take any number of sweeps.

    Parameters
    ----------
    hold : float
        Weight of squared equalities.
    same : float
        Change of what is left, relative, that is rounding.

    References
    ----------
    S. Eisenstat, H. Elman, M. Schultz: Variational iterative methods for nonsymmetric systems of
    linear equations. SIAM J. Numer. Anal. 20 (1983), the method of generalised conjugate residuals.
    """

    def __init__(self, hold: float, same: float) -> None:
        self.hold, self.same = hold, same
        self._before: tuple[np.ndarray, np.ndarray] | None = None
        self._turns: list[tuple[np.ndarray, np.ndarray]] = []  # orthonormal in what is left

    def after(self, aim: np.ndarray, left: np.ndarray) -> np.ndarray:
        """The next ones after what a sweep left of those it aimed at."""
        if self._before is not None:
            turn, change = self._before[1] - left, aim - self._before[0]
            least = self.same * np.linalg.norm(self._before[1])
            for one, own in self._turns:
                share = np.vdot(one, turn)
                turn, change = turn - share * one, change - share * own
            size = float(np.linalg.norm(turn))
            scale = 1.0 / size if size > least else 0.0
            self._turns.append((scale * turn, scale * change))
        self._before = aim, left
        for one, own in self._turns:
            share = np.vdot(one, left)
            left, aim = left - share * one, aim + share * own
        return aim + self.hold * left


def extended(model: StageModel, setting: Setting, nodes: Nodes, K: np.ndarray | None) -> Nodes:
    """A plan that was moved on by a step, with a better last input than the one before it.

    The cheapest of that, the one of the reference, the same with the last gains' feedback, and a
    Newton step from the best of these.
    """
    k, x, u = len(nodes.u) - 1, nodes.x.copy(), nodes.u.copy()
    gain = np.zeros((model.m, model.n)) if K is None else K[k]
    desired = setting.u_ref[k, model.controls]
    answers = [desired, desired + gain @ model.error(x[k], setting.x_ref[k])]
    choices = [nodes.u[k, model.controls], *np.clip(answers, *setting.box[:2])]
    best = np.inf
    for number in range(4):
        own = nodes.u[k].copy()
        if number == 3:
            moved = _last_newton(model, setting, Nodes(nodes.t, x, u))
            if moved is None:
                break
            choices.append(moved)
        own[model.controls] = choices[number]
        after, part, _, rows = model.advance(k, nodes, setting, x[k], own)
        last, end = model.end(nodes, setting, after)
        cost = part + last + _prices(model, k, rows)[0] + _prices(model, k + 1, end)[0]
        if number == 0 or cost < best:
            best, x[-1], u[-1] = cost, after, own
    return Nodes(nodes.t, x, u)


def _last_newton(model: StageModel, setting: Setting, nodes: Nodes) -> np.ndarray | None:
    """Last controls after a Newton step of them alone; None where the Hessian is not positive.

    Nor where it leaves the limits: that far, what is cheapest until the end is a bad start for what
    comes after.
    """
    at, n, k = model.expand(nodes, setting), model.n, len(nodes.u) - 1
    M = at.H[-1][n:, n:] + at.B[-1].T @ at.H_end @ at.B[-1]
    g = at.g[-1][n:] + at.B[-1].T @ at.g_end
    for node, G in ((k, at.G[-1][:, n:]), (k + 1, at.G_end @ at.B[-1])):
        _, force, weight = _prices(model, node, at.rows[node])
        g = g + G.T @ force
        M = M + G.T @ (weight[:, None] * G)
    L = _factor(M)
    if L is None:
        return None
    down = np.linalg.solve(L, g)
    moved = nodes.u[-1, model.controls] - np.linalg.solve(L.T, down)
    low, high = setting.box[:2]
    return moved if ((moved >= low) & (moved <= high)).all() else None


def _prices(model: StageModel, k: int, rows: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """What rows at node k pay for their excess, their forces, and weights that lead back to limits.

    Hard ones pay `Settings.penalty_last_input`.
    """
    sides = model.sides
    h = np.where(sides.active[k], sides.sign * (rows[sides.row] - sides.limit), 0.0)
    e, w = (
        np.fmax(h, 0.0),
        np.where(np.isfinite(sides.weight), sides.weight, model.settings.penalty_last_input),
    )
    force, weight = np.zeros((2, len(rows)))
    pull = np.where(e > 0, w * (1.0 + e), 0.0)
    np.add.at(force, sides.row, sides.sign * pull)
    np.add.at(weight, sides.row, pull / np.where(e > 0, e, 1.0))
    return float((w * (e + e**2 / 2)).sum()), force, weight


def number_of_limits(model: StageModel, box: ControlBox) -> int:
    """Of controls and rows at all nodes, each with a barrier of its own; at least one."""
    bounds = np.isfinite(box.lower).sum() + np.isfinite(box.upper).sum()
    return max(1, int(model.problem.horizon * bounds + model.sides.active.sum()))


def resolved(
    h: np.ndarray, weight: np.ndarray, mu: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Excess e and distance ``s = e − h`` that minimise ``w (e + e²/2) − μ log e − μ log s``.

    The unknown is the smaller of the two, so that none is a difference. The derivative is concave:
    from the left Newton's steps rise to its root.
    """
    over, under = np.fmax(h, 0.0), np.fmax(-h, 0.0)  # idle rows may be no numbers
    v = mu / (weight * (1.0 + over) + np.sqrt(weight * mu))
    for _ in range(steps):
        e, s = v + over, v + under
        v = v - (weight * (1.0 + e) - mu / e - mu / s) / (weight + mu / e**2 + mu / s**2)
    return v + over, v + under


def convex_part(matrices: np.ndarray) -> np.ndarray:
    """Symmetric matrices, as their upper halves say, with negative eigenvalues at 0."""
    if not np.isfinite(matrices).all():  # what is no number stays so
        return matrices
    values, turns = np.linalg.eigh(matrices, UPLO="U")
    return (turns * np.maximum(values, 0.0)[..., None, :]) @ turns.swapaxes(-1, -2)


def _factor(matrix: np.ndarray) -> np.ndarray | None:
    """Lower triangle L with ``L Lᵀ`` the matrix; None unless that is positive definite."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None


def _finite(distance: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    return np.where(np.isfinite(distance), distance, otherwise)
