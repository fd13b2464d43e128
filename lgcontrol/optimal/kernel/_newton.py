"""The planning kernel's algorithm in NumPy: one solve, one step; the tests' oracle for the C.

Primal-dual interior point with a filter line search on the barrier problem of `_barrier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._settings import Settings
from .._transcription import Nodes, Values
from ._barrier import NO_STEP, ROUNDING, BarrierProblem, PlanIterate, largest, rounding_of
from ._sweep import RiccatiFactors, riccati_back
from ._table import (
    CONVERGED,
    FIXED,
    INFEASIBLE,
    ITERATIONS,
    NOT_FINITE,
    OF_STEPS,
    STALLED,
)


@dataclass(frozen=True)
class StepFilter:
    """Pairs of violation θ and barrier function φ that no later iterate may be worse than."""

    o: Settings
    most: float
    least: float
    pairs: tuple[tuple[float, float], ...] = ()

    @classmethod
    def at(cls, o: Settings, theta: float) -> StepFilter:
        """An empty one."""
        return cls(o, o.theta_most * max(1.0, theta), o.theta_least * max(1.0, theta))

    def accepts(self, theta: float, phi: float) -> bool:
        """Whether no pair dominates."""
        o = self.o
        return all(
            theta < (1 - o.filter_theta) * t or phi < p - o.armijo * t for t, p in self.pairs
        )

    def added(self, theta: float, phi: float) -> StepFilter:
        """With a pair, in place of those that it dominates."""
        kept = [(t, p) for t, p in self.pairs if not (t >= theta and p >= phi)]
        return replace(self, pairs=(*kept, (theta, phi)))


class LineSearchStart(NamedTuple):
    """What trial points are compared with."""

    theta: float
    phi: float
    slope: float


class NewtonOutcome(NamedTuple):
    """How a solve ended: status, last iterate, log and gains."""

    status: int
    iterate: PlanIterate
    log: np.ndarray
    K: np.ndarray | None


class NewtonKKT(BarrierProblem):
    """One solve, or steps from a plan: what moves the iterate of a barrier problem."""

    before: PlanIterate | None = None  # the iterate that the last step began at
    kept: PlanIterate | None = None  # before a whole step that the filter did not take
    creeps = tried = returns = 0  # short steps in turn; steps since then; those taken back

    def _begin(self, nodes: Nodes) -> None:
        super()._begin(nodes)
        self.empty_filter()

    # -- line search -------------------------------------------------------------------------------

    def judge(self, alpha: float, trial: PlanIterate, found: Values, ref: LineSearchStart) -> bool:
        """Whether the filter takes a trial."""
        o, theta, phi = self.o, self.theta(trial, found), self.phi(trial, found.cost)
        if not (np.isfinite(theta) and np.isfinite(phi)):
            return False
        self.gain = float((phi - ref.phi) / np.float64(alpha * (1 - alpha / 2) * ref.slope))
        fuzz = rounding_of(ref.phi)
        if theta > self.filter.most or not self.filter.accepts(theta, phi - fuzz):
            return False
        switches = ref.slope < 0 and (alpha * (-ref.slope) ** o.switch_phi > ref.theta)
        if ref.theta <= self.filter.least and switches:
            return bool(phi - ref.phi - fuzz <= o.armijo * alpha * ref.slope)
        falls = theta <= (1 - o.filter_theta) * ref.theta
        if not (falls or phi - fuzz <= ref.phi - o.armijo * ref.theta):
            return False
        self.filter = self.filter.added(ref.theta, ref.phi)
        return True

    def reference(self, d: PlanIterate) -> LineSearchStart:
        """What trials of a step are compared with."""
        theta = self.theta(self.it, self.ex)
        return LineSearchStart(theta, self.phi(self.it, self.ex.cost), self.slope(d))

    def empty_filter(self) -> None:
        """Begin a filter at the iterate."""
        self.filter = StepFilter.at(self.o, self.theta(self.it, self.ex))
        self.before, self.tried = None, 0

    def search(self, d: PlanIterate, tau: float, *, of_solve: bool = False) -> Any:
        """The line search: an iterate and the step length, or None."""
        o, ref = self.o, self.reference(d)
        alpha, dual = self.longest(d, tau)
        # Steps that the filter cuts again and again lead nowhere, as along rows of steep curvature:
        # a whole one is tried, and a filter begins there. The iterate and its filter are kept, for
        # if it does not pay.
        creeps, self.creeps, most = self.creeps, 0, alpha
        may_creep = of_solve and not self.elastic and most >= o.creeping
        if may_creep and not self.tried and creeps >= FIXED.creeps << self.returns:
            trial = self.moved(d, most)
            found = self.values(trial)
            theta = self.theta(trial, found)
            if np.isfinite(self.phi(trial, found.cost)) and theta <= self.filter.most:
                self.tried, self.kept = 1, self.it
                self.outer = self.filter.added(ref.theta, ref.phi), self.mu, ref.theta
                self.filter = StepFilter.at(o, theta)
                return self.taken(trial, d, most, dual), most
        # Nothing counts as violated, and yet the step does not descend: the rounding of violations
        # times their multipliers is more than what there is to be gained. Errors tell, then.
        none = FIXED.unviolated * self.tolerance
        is_rounding = of_solve and alpha == 1 and self.dw == 0
        is_rounding = is_rounding and ref.theta <= none and ref.slope >= 0
        least = o.filter_theta
        if ref.slope < 0:
            least = min(least, o.armijo * ref.theta / -ref.slope)
            if ref.theta <= self.filter.least:
                share = ref.theta / (-ref.slope) ** o.switch_phi
                least = min(least, share)
        # A shorter step is lost in rounding; without violation the published least length is zero.
        least = max(least * o.step_least, ROUNDING)
        rolls_first = self.is_linear or alpha < o.rollout
        reach = largest(d.x / self.size[: self.n])  # defects are about its square
        if self.is_linear and alpha == 1 and reach**2 <= self.filter.least:
            trial = self.moved(d, 1.0)
            if self._is_worth(trial, self.values(trial), ref):
                return self.taken(trial, d, 1.0, dual), 1.0
        if rolls_first:
            rolled = self.roll_out(tau, d)
            if rolled is not None and self._is_worth(*rolled, ref):
                return self.taken(rolled[0], d, 1.0, dual), 1.0
        is_first = True
        while alpha >= least or is_first:
            trial = self.moved(d, alpha)
            found = self.values(trial)
            if self.judge(alpha, trial, found, ref):
                if may_creep and alpha < o.creeping * most:
                    self.creeps = creeps + 1
                return self.taken(trial, d, alpha, dual), alpha
            if is_first and is_rounding:
                whole = self.taken(trial, d, 1.0, dual)
                if self._is_nearer(whole):
                    return whole, 1.0
                if self.theta(trial, found) <= none:
                    return None
            rolls = is_first and not rolls_first and self.ne > 0 and self.dw == 0
            if rolls and not self.theta(trial, found) < ref.theta:
                # Defects of curved dynamics shorten the step that meets equalities; a rollout of
                # it has none. Far from the solution it may cost a thousand times as much, from
                # where no search gets back.
                rolled = self.roll_out(tau, d)
                if (
                    rolled is not None
                    and self._is_affordable(*rolled, d, ref)
                    and self.judge(1.0, *rolled, ref)
                ):
                    return self.taken(rolled[0], d, 1.0, dual), 1.0
            is_first, alpha = False, alpha / 2
        return None

    def _is_nearer(self, trial: PlanIterate) -> bool:
        """Whether the error of the barrier problem is lower at a trial."""
        kept, before = (self.it, self.ex), self.error(self.mu)
        self.it, self.ex = trial, self.expand(trial)
        self.residuals()
        is_nearer = self.error(self.mu) < before
        self.it, self.ex = kept
        self.residuals()
        return is_nearer

    def _is_affordable(
        self, trial: PlanIterate, found: Values, d: PlanIterate, ref: LineSearchStart
    ) -> bool:
        """Whether a trial costs at most what violations are worth by the step's multipliers."""
        it = self.it
        price = largest((it.lam + d.lam) * self.size[: self.n], it.nu + d.nu)
        return bool(self.phi(trial, found.cost) - ref.phi <= price * ref.theta)

    def _is_worth(self, trial: PlanIterate, found: Values, ref: LineSearchStart) -> bool:
        """Whether a trial of a whole step without a search is taken."""
        fuzz = rounding_of(ref.phi)
        falls = self.phi(trial, found.cost) - ref.phi - fuzz <= self.o.armijo * ref.slope
        is_kept = self.theta(trial, found) <= max(ref.theta, self.filter.least)
        return bool(falls and is_kept and self.judge(1.0, trial, found, ref))

    # -- restoration -------------------------------------------------------------------------------

    @property
    def can_relax(self) -> bool:
        """Whether there is an elastic problem."""
        return bool(self.can_give.any())

    def begin_elastic(self) -> None:
        """From the problem to the elastic one, about the same nodes."""
        self.outer = self.filter, self.mu, self.theta(self.it, self.ex)
        self.elastic, self.penalty = True, self.o.penalty_first
        self._begin_form(max(self.mu, self.violated()[1]))
        lower, upper = self.rooms(self.it.u)
        self.it = self.least_squares(self.it._replace(zl=self.mu / lower, zu=self.mu / upper))

    def _begin_form(self, mu: float) -> None:
        """Begin the constraints of the problem, or of the elastic one, at a barrier parameter."""
        self.mu, self.tiny = mu, 0
        self._set_form()
        self.it = self.fit_slacks(self.it, self.ex.rows, with_multipliers=True)
        self.empty_filter()

    def end_elastic(self, *, is_optimal: bool) -> None:
        """Back to the problem itself."""
        it, o = self.it, self.o
        nu = np.where(self.form.active, it.z - self.form.v, 0.0)[:, self.ns :]
        self.elastic, self.left, self.tiny, self.before = False, self.left + 1, 0, None
        self.filter, mu, _ = self.outer
        if is_optimal:
            self.filter = replace(self.filter, pairs=())
        else:
            self.mu = mu
        self._set_form()
        active, relaxed, *_ = self.form
        hard = active & ~relaxed
        s = np.where(hard, np.maximum(-self.h(self.ex.rows), it.s), np.where(active, it.s, 1.0))
        z = np.where(relaxed, it.z, self.near(it.z, s, hard, o.sigma_most))
        if not is_optimal:
            z = np.where(hard & (z > o.multiplier_most), 1.0, z)
        e, y = np.where(relaxed, it.e, 0.0), np.where(relaxed, it.y, 0.0)
        self.it = it._replace(s=s, z=z, e=e, y=y, nu=nu)
        if not is_optimal:
            self.it = self.least_squares(self.it)

    def leaves(self) -> bool:
        """Whether the elastic problem may be left where it is; it is, then."""
        share = self.o.elastic_decrease * self.outer[2]
        if self.violated()[0] > share:
            return False
        kept = self.it, self.mu, self.filter, self.tiny, self.left
        self.end_elastic(is_optimal=False)
        theta = self.theta(self.it, self.ex)
        if theta <= share and self.filter.accepts(theta, self.phi(self.it, self.ex.cost)):
            return True
        self.it, self.mu, self.filter, self.tiny, self.left = kept
        self.elastic = True
        self._set_form()
        return False

    def decide(self) -> int:
        """What an elastic problem that is solved says."""
        o, most = self.o, self.violated()[1]
        if most <= self.tolerance:
            self.end_elastic(is_optimal=True)
            return STALLED if self.left > FIXED.most_left else ITERATIONS
        if self.scale * self.steepest() <= o.certificate * self.penalty:
            before, self.dw_last = self.dw_last, 0.0  # the least one that it takes, not earlier
            fac = self.regularized()
            if fac is None:
                return STALLED
            self.dw_last = before
            if self.doubts == 0:  # what another start undoes is no certificate
                self.doubts = 1
                if not self.nudge(*self.least_curved(fac)[:2]):
                    return STALLED
                self.begin_anew()
                return ITERATIONS
            # A maximum tells nothing: a change of the size lowers it by more than is certain.
            return INFEASIBLE if self.dw <= o.certificate * self.penalty * most else STALLED
        if self.penalty >= o.penalty_most:
            return STALLED
        self.penalty = o.penalty_most
        self._begin_form(max(self.mu, min(most, o.mu_first) * FIXED.penalty_mu))
        return ITERATIONS

    def roll_out(
        self, tau: float, d: PlanIterate | None = None, x0: Any = None, *, is_fed: bool = True
    ) -> tuple[PlanIterate, Values] | None:
        """A rollout under feedback with the changes of a step: an iterate and its values, or None.

        It starts at x0 where that is given; controls are clipped at the boundary. Without feedback
        it has the inputs of the iterate.
        """
        it, controls, K = self.it, self.model.controls, self.K
        nodes = Nodes(self.t, it.x, it.u)
        x, u = it.x.copy(), it.u.copy()
        x[0] = it.x[0] if x0 is None else x0
        lower, upper = self.rooms(it.u)
        if d is not None and len(self.model.free):
            x[0] = self.model.retract(it.x[0], d.x[0], self.setting.p)
        for k in range(self.N):
            v = u[k, controls]
            own = v + is_fed * K[k] @ np.asarray(self.model.error(x[k], it.x[k]))
            if d is not None:
                own = own + d.u[k] - K[k] @ d.x[k]
            u[k, controls] = np.clip(own, v - tau * lower[k], v + tau * upper[k])
            if self.extends and k == self.N - 1:
                u[k] = self._extended(nodes, K[k], x[k], u[k], tau)
            x[k + 1] = self.model.advance(k, nodes, self.setting, x[k], u[k])[0]
            if not np.isfinite(x[k + 1]).all():
                return None
        s = it.s if d is None else np.maximum(it.s + d.s, (1 - tau) * it.s)
        rolled = it._replace(x=x, u=u, s=s)
        found = self.values(rolled)
        found = found._replace(gaps=np.zeros_like(found.gaps))  # a motion has no defects
        if not (np.isfinite(found.cost) and np.isfinite(found.rows).all()):
            return None
        return self.fit_slacks(rolled, found.rows, with_multipliers=False), found

    def followed(self, tau: float, x0: np.ndarray) -> PlanIterate | None:
        """The plan rolled out from x0 under its gains; None where that is not finite.

        Gains are stiff next to hard rows. If that rollout exceeds them, the rollout of its inputs
        alone is taken if its merit is lower.
        """
        fed = self.roll_out(tau, x0=x0)
        if not self.has_hard or (fed is not None and not self.exceeds(fed[1].rows)):
            return None if fed is None else fed[0]
        alone = self.roll_out(tau, x0=x0, is_fed=False)
        found = [one for one in (fed, alone) if one is not None]
        return min(found, key=lambda one: self.merit(one[1]))[0] if found else None

    def merit(self, found: Values) -> float:
        """Cost of a rollout with the penalties of all constraints."""
        hard = np.where(self.soft, 0.0, self.missing(self.h(found.rows))).sum()
        return float(self.scale * self.priced_cost(found) + self.priced * hard)

    def _extended(
        self, nodes: Nodes, K: np.ndarray, x: np.ndarray, given: np.ndarray, tau: float
    ) -> np.ndarray:
        """The last input of a plan that moved on.

        The cheapest of holding the one before, that of the reference, and that with the last gains'
        feedback on the error.
        """
        k, setting, controls = self.N - 1, self.setting, self.model.controls
        v, wanted = given[controls], setting.u_ref[k, controls]
        low, high = v - tau * (v - self.lower), v + tau * (self.upper - v)
        inputs, costs = [given, given.copy(), given.copy()], []
        inputs[1][controls] = np.clip(wanted, low, high)
        fed = wanted + K @ np.asarray(self.model.error(x, setting.x_ref[k]))
        inputs[2][controls] = np.clip(fed, low, high)
        for u in inputs:
            after, cost, _, rows = self.model.advance(k, nodes, setting, x, u)
            end, last = self.model.end(nodes, setting, after)
            costs.append(cost + end + self._penalties(rows, k) + self._penalties(last, k + 1))
        return inputs[int(np.argmin(np.nan_to_num(costs, nan=np.inf)))]

    def _penalties(self, rows: np.ndarray, k: int) -> float:
        """Penalties on what rows exceed at a node."""
        e = self.over(rows)
        on = self.holds[k] & self.one_sided & (e > 0)
        weight = np.where(self.soft, self.weight * self.share[k], self.priced / self.scale)
        return float((weight * (e + e * e / 2))[on].sum())

    def restore(self, *, has_gains: bool) -> bool:
        """After a failed line search: a rollout, or the elastic problem."""
        o, theta = self.o, self.theta(self.it, self.ex)
        self.filter = self.filter.added(theta, self.phi(self.it, self.ex.cost))
        rolled = self.roll_out(max(o.boundary, 1 - self.mu)) if has_gains else None
        if rolled is not None:
            trial, found = rolled
            t, p = self.theta(trial, found), self.phi(trial, found.cost)
            good = t <= o.elastic_decrease * theta and t <= self.filter.most
            if np.isfinite(t) and np.isfinite(p) and good and self.filter.accepts(t, p):
                self.it = self.taken(trial, None, 0.0, 0.0)
                self.ex = self.expand(self.it)
                self.it = self.least_squares(self.it)
                return True
        if self.elastic or not self.can_relax:
            return False
        self.begin_elastic()
        return True

    # -- saddles -----------------------------------------------------------------------------------

    def least_curved(self, fac: RiccatiFactors) -> tuple[np.ndarray, np.ndarray, float]:
        """The direction of least curvature: changes of states and controls, and its curvature.

        By inverse iterations on a pattern of controls without symmetry. Its largest control moves
        by a nudge; the curvature is that without the regularization.
        """
        N, n, m = self.N, self.n, self.m
        width = self.upper - self.lower
        own = self.size[n:]
        size = self.o.nudge * np.where(np.isfinite(width), width, own)
        place = np.arange(1, N * m + 1) * FIXED.golden
        du, curvature = (place - np.floor(place) - 0.5).reshape(N, m) * own, 0.0
        eps = np.zeros((N + 1, n))
        for _ in range(FIXED.inverse_iterations):
            g = np.concatenate([eps[:-1], du], axis=1) * self.metric
            end = eps[-1] * self.metric[:n]
            before = np.vdot(g, g / self.metric) + np.vdot(end, eps[-1])
            eps, found, _ = riccati_back(fac, self.model.free, g, end, np.zeros((N, n)))
            both = np.vdot(g, np.concatenate([eps[:-1], found], axis=1)) + np.vdot(end, eps[-1])
            curvature = float(-before / both - self.dw)
            most = largest(found / size)
            eps, du = eps / most, found / most
        return eps, du, curvature

    def nudge(self, eps: np.ndarray, du: np.ndarray) -> bool:
        """Move nodes, each control as far as its limits allow; False where that is no number."""
        most, (lower, upper) = self.o.boundary, self.rooms(self.it.u)
        du = np.clip(du, -most * lower, most * upper)
        trial = self.moved(NO_STEP._replace(x=eps, u=du), 1.0)
        if not all(np.isfinite(part).all() for part in self.values(trial)):
            return False
        self.it, self.ex = trial, self.expand(trial)
        self.empty_filter()
        self.alpha, self.error_before = 1.0, 0.0
        return True

    def begin_anew(self) -> None:
        """Go on from what was moved, at a barrier parameter that leaves room for it."""
        self.mu = max(self.mu, self.o.real_time_mu)
        self.it, self.tiny = self.recentred(), 0
        self.empty_filter()

    def leave_saddle(self, fac: RiccatiFactors, du: np.ndarray | None = None) -> bool:
        """Leave a saddle, which Newton steps do not where it is one by a symmetry.

        The cost falls both ways along a direction in which the step du, if there is one, is
        nothing. Returns whether it was left.
        """
        if not self.dw > 0 or self.nudges >= FIXED.most_left:
            return False
        eps, along, curvature = self.least_curved(fac)
        weighted = along * self.metric[self.n :]
        share = 0.0 if du is None else abs(np.vdot(du, weighted))
        is_straight = share > FIXED.flat * np.vdot(along, weighted)
        if is_straight or not curvature < -FIXED.flat * self.dw:
            return False
        self.nudges += 1
        return self.nudge(eps, along)

    def goes_on(self) -> bool:
        """Whether a solve that would end goes on: it is at a saddle, which it leaves."""
        fac = self.regularized()
        if fac is None or not self.leave_saddle(fac):
            return False
        self.begin_anew()
        return True

    # -- the solve ---------------------------------------------------------------------------------

    @property
    def last(self) -> float:
        """The last barrier parameter: its terms shift the cost by half of the relative tolerance.

        One that is lowered falls to half of that, as the cost may fall, too.
        """
        terms = self.barriers()
        if self.elastic:
            own = self.last_most * self.unit
            return self.mu if self.mu <= own else max(self.last_most, own / 2)
        if not terms > 0 or self.mu > self.last_most:  # first as far as this
            return self.last_most
        own = self.tolerance * self.worth / 2
        least = max(self.o.mu_least, self.o.mu_last * self.last_most)
        return self.mu if self.mu <= own else max(least, min(own / 2, self.last_most))

    def lower_barrier(self, last: float) -> None:
        """The next barrier parameter; an empty filter."""
        o = self.o
        self.mu = max(last, min(o.mu_factor * self.mu, self.mu**o.mu_power))
        self.filter, self.tried = replace(self.filter, pairs=()), 0

    def take_back(self) -> None:
        """Back to before a whole step that did not pay; the next has to wait twice as long."""
        assert self.kept is not None
        self.it, self.ex = self.kept, self.expand(self.kept)
        self.filter, self.alpha, self.before = self.outer[0], 0.0, None
        self.tried, self.creeps, self.returns = 0, 0, self.returns + 1
        self.residuals()

    def advance(self, met: float) -> int:
        """One more step; ITERATIONS where the solve goes on.

        An iterate that met the tolerance at the barrier parameter `met` was kept: a step that did
        not lower its error is one of rounding.
        """
        if met < np.inf:
            self.creeps = self.tried = 0
        if self.tried:
            theta, phi = self.theta(self.it, self.ex), self.phi(self.it, self.ex.cost)
            outer, fuzz = self.outer[0], rounding_of(phi)
            pays = theta <= outer.most and outer.accepts(theta, phi - fuzz)
            is_late = not pays and self.tried >= FIXED.tried
            self.tried = 0 if pays else self.tried + 1
            if is_late:
                self.take_back()
        before = self.error_before  # 0 at the first step: none was taken that could have lowered it
        if met <= self.last_most and 0 < before <= self.error(self.mu):
            return STALLED
        o, last = self.o, self.last
        is_whole = self.alpha == 1 and self.dw == 0
        is_fast = self.alpha >= o.fast_step and self.dw == 0
        error = 0.0
        while self.mu > last:
            error = self.error(self.mu)
            falls = self.is_free or error <= o.fast_error * self.error_before
            is_fast = is_fast and self.error_before > 0 and falls
            if not error <= o.mu_error * self.mu and not is_fast:
                break
            self.lower_barrier(last)
            is_fast = False
        if not self.mu > last:  # whole steps that no longer lower it: rounding
            error = self.error(self.mu)
            self.tiny += is_whole and error >= self.error_before
            if self.tiny > o.tiny_most:
                return STALLED
        self.error_before = error
        # Rounding next to a limit spoils the last steps.
        self.is_linear = self.is_free and self.mu > last
        while True:
            tau = max(o.boundary, 1 - self.mu)
            fac, d = self.newton_step()
            if fac is None and self.before is not None and not self.tried:
                # The filter took an iterate without a step: half of what led here.
                theta, phi = self.theta(self.it, self.ex), self.phi(self.it, self.ex.cost)
                self.filter = self.filter.added(theta, phi)
                self.it, self.ex = self.before, self.expand(self.before)
                self.alpha, self.before = 0.0, None
                return ITERATIONS
            self.before = None
            if fac is not None and d is not None and self.leave_saddle(fac, d.u):
                return ITERATIONS
            found: Any = None if d is None else self.search(d, tau, of_solve=True)
            self.alpha = 0.0 if found is None else found[1]
            if found is not None:
                self.before, self.it = self.it, found[0]
                self.ex = self.expand(self.it)
                return ITERATIONS
            if self.tried:
                self.take_back()
                continue
            is_off = self.theta(self.it, self.ex) > FIXED.unviolated * self.tolerance
            if is_off and self.restore(has_gains=fac is not None):
                return ITERATIONS
            if d is None and not self.taken_steps:
                return NOT_FINITE  # there is no step at all
            self.tiny += 1
            if not self.mu > last or self.tiny > o.tiny_most:
                return STALLED
            self.lower_barrier(last)

    def solve(
        self,
        most: int,
        *,
        is_elastic: bool = False,
        watch: Callable[[np.ndarray], bool] | None = None,
    ) -> NewtonOutcome:
        """Iterate to convergence, so many steps at most; the elastic problem first if asked.

        A watch is asked after every iteration whether it ends the solve.
        """
        log: list[np.ndarray] = []
        self.before, self.creeps, self.tried, self.returns = None, 0, 0, 0
        met, kept = np.inf, self.it  # of an iterate that met the tolerance: barrier parameter
        self.K: Any = None

        def ended(status: int) -> NewtonOutcome:
            return NewtonOutcome(status, self.it, np.array(log), self.K)

        with np.errstate(all="ignore"):
            if is_elastic and self.can_relax:
                self.begin_elastic()
                self.doubts = 1  # this solve puts another to the test
            while True:
                self.residuals()
                log.append(self.entry())
                while True:
                    log[-1] = self.entry()
                    if not (np.isfinite(self.ex.cost) and np.isfinite(self.viol)):
                        return ended(NOT_FINITE)
                    is_met = log[-1][1:4].max() <= self.tolerance
                    if not (is_met and self.mu <= self.last):
                        break
                    if not self.elastic:  # an optimum, unless the last sweep was regularized
                        if not (self.dw > 0 and len(log) <= most and self.goes_on()):
                            return ended(CONVERGED)
                        self.residuals()
                        log.append(self.entry())
                        continue
                    status = self.decide()
                    if status != ITERATIONS:
                        return ended(status)
                    self.residuals()
                if len(log) > most or (watch is not None and watch(log[-1])):
                    return ended(ITERATIONS)
                if self.elastic and self.leaves():
                    self.residuals()
                self.taken_steps = len(log) - 1
                if log[-1][1:4].max() <= self.tolerance and not self.elastic:
                    met, kept = self.mu, self.it  # rounding may end it before the last barrier
                moved = self.nudges + self.doubts
                status = self.advance(met)
                met = met if moved == self.nudges + self.doubts else np.inf
                if status == STALLED and met < np.inf and not self.elastic:
                    self.it, self.ex, met = kept, self.expand(kept), np.inf
                    self.residuals()
                    log[-1] = self.entry()
                    goes_on = len(log) <= most and self.goes_on()
                    status = ITERATIONS if goes_on else CONVERGED
                if status != ITERATIONS:
                    return ended(status)

    def adjoint(self) -> float:
        """How far a motion is from optimal, relative to the derivatives of the cost."""
        it, ex, n = self.it, self.ex, self.n
        (g, lam), stat = self.gradient(self.row_prices(it.z, it.nu), it.zu - it.zl), 0.0
        for k in range(self.N - 1, -1, -1):
            own = g[k] + np.hstack([ex.A[k], ex.B[k]]).T @ lam
            stat = max(stat, largest(own[n:] * self.size[n:]))
            lam = own[:n]
        free = self.model.free
        stat = max(stat, largest(lam[free] * self.size[free]))
        return max(stat / (1 + self.scale * self.steepest()), largest(*self.misses(it, ex)))

    @property
    def has_hard(self) -> bool:
        """Whether there are one-sided hard rows."""
        return bool((~self.soft[: self.ns]).any())

    @property
    def may_be_gauss_newton(self) -> bool:
        """Whether the first step of a call may be a Gauss–Newton step.

        Costs are squares, and nothing is hard but limits of controls. The last step was whole. If
        it was such a step, it gained what its model predicted.
        """
        model = self.model
        if model.problem.costs or model.curvature is None or model.joint is not None:
            return False
        return self.ne == 0 and not self.has_hard and self.alpha == 1 and self.spread >= 0

    def exceeds(self, rows: np.ndarray) -> bool:
        """Whether one-sided hard rows are exceeded."""
        hard = self.holds & ~self.soft & self.one_sided
        return not (self.over(rows)[hard] <= self.tolerance).all()

    def warm(self, trial: PlanIterate) -> PlanIterate:
        """A rollout with the multipliers of the plan; slacks that do not fit them are off."""
        it, mu, most = self.it, self.mu, self.o.real_time_sigma
        (active, relaxed, *_), (lower, upper) = self.form, self.rooms(trial.u)

        def fitting(room: np.ndarray, z: np.ndarray, on: Any) -> tuple[np.ndarray, np.ndarray]:
            fits = np.clip(room, mu / (most * z), most * mu / z)
            room = np.where(on & (z > 0), fits, room)
            return room, self.near(np.where(z > 0, z, mu / room), room, on, most)

        (s, z), (e, y) = fitting(trial.s, it.z, active), fitting(trial.e, it.y, relaxed)
        zl = self.near(it.zl, lower, np.isfinite(lower), most)
        zu = self.near(it.zu, upper, np.isfinite(upper), most)
        return trial._replace(s=s, z=z, e=e, y=y, zl=zl, zu=zu)

    def recentred(self) -> PlanIterate:
        """The iterate at a larger barrier parameter: multipliers of active limits stay."""
        (lower, upper), it, root = self.rooms(self.it.u), self.it, np.sqrt(self.mu)
        zl = np.minimum(self.mu / lower, np.maximum(it.zl, root))
        it = it._replace(zl=zl, zu=np.minimum(self.mu / upper, np.maximum(it.zu, root)))
        it = self.fit_slacks(it, self.ex.rows, with_multipliers=True)
        hard = self.form.active & ~self.form.relaxed
        z = np.minimum(self.mu / it.s, np.maximum(it.z, root))
        return it._replace(z=np.where(hard, z, it.z))

    def begin_warm(self) -> None:
        """Begin a solve at a plan, at the least barrier parameter that it nearly solves."""
        self.ex = self.expand(self.it)
        self.residuals()
        error = self.error(0.0)
        mu = min(self.o.mu_first, error / self.o.mu_error) if error > self.tolerance else 0.0
        if mu > self.mu:
            self.mu = mu
            self.it = self.recentred()
        self.empty_filter()
        self.alpha, self.dw_last = 1.0, 0.0

    def step(
        self,
        x0: np.ndarray,
        steps: int = 1,
        *,
        more: float = np.inf,
        watch: Callable[[np.ndarray], bool] | None = None,
    ) -> bool:
        """Real-time steps from the iterate of a solve; False where a line search failed.

        The iterate is rolled out from x0 under its gains (`followed`) and improved by steps of the
        solve. It takes more steps if the iterate is far off, or the barrier parameter large next to
        hard rows. That parameter follows how far off the iterate is.
        With hard rows only the first step is rolled out, and the last one if defects are large.
        Along curved rows a rollout loses the distances that their multipliers fit.
        Steps may end with a hard row violated. Then the last iterate that kept all of them counts,
        unless it costs much more than the plan at the start.
        """
        o, kept, started = self.o, None, None
        most = steps + int(min(o.real_time_more, more))
        if self.change_scales(OF_STEPS):
            self._set_metric()
            self._set_limits()
        self.priced = o.real_time_penalty
        self._set_form()
        tau = max(o.boundary, 1 - self.mu)
        try:
            with np.errstate(all="ignore"):
                followed = self.followed(tau, x0)
                self.extends = False
                if followed is not None:
                    self.it = self.warm(followed)
                else:
                    self.it.x[0] = x0
                fall = 0.0
                for number in range(1, most + 1):
                    is_calm = number == 1 and followed is not None and self.may_be_gauss_newton
                    self.ex = self.expand(self.it)
                    off, rows, cost = self.adjoint(), self.ex.rows, self.priced_cost(self.ex)
                    started = cost if started is None else started
                    is_whole = largest(self.ex.gaps) <= self.tolerance
                    is_cheap = cost <= started + o.real_time_dearer * abs(started)
                    if self.has_hard and is_whole and is_cheap and not self.exceeds(rows):
                        kept = self.it
                    self.off, self.taken_steps, is_first = off, number, number == 1
                    self.is_gauss_newton = is_calm and off <= o.real_time_far
                    begins = self._follow(off, is_first=is_first)
                    d = self._aimed(begins=begins)
                    if d is not None and is_first:
                        count = max(1.0, self.barriers())
                        fall = max(-self.slope(d), 0.0) / count
                        if self.mu < self.highest and fall > o.mu_error * self.mu:
                            self.mu = min(self.highest, fall)
                            self.it = self.recentred()
                            d = self._aimed(begins=True)
                    if d is None:
                        return False
                    is_open = largest(self.ex.gaps) > o.real_time_far and number >= most
                    self.is_linear = is_first or not self.has_hard or is_open
                    found = self.search(d, max(o.boundary, 1 - self.mu))
                    self.spread = -1.0 if self.is_gauss_newton else 0.0
                    if found is None:
                        self.alpha = 0.0
                        if self.is_gauss_newton and number < most:
                            continue  # the exact step, then
                        return False
                    self.it, self.alpha = found
                    is_modelled = abs(self.gain - 1) <= o.real_time_gain
                    if is_modelled and self.alpha == 1:
                        self.spread = fall
                    is_off = off > o.real_time_far and not is_modelled
                    is_off = is_off or self.alpha < o.real_time_short
                    is_off = is_off or self.exceeds(self.values(self.it).rows)
                    is_off = is_off or (self.has_hard and self.mu > o.real_time_mu)
                    if (number >= steps and not is_off) or (watch and watch(np.zeros(0))):
                        break
                return True
        finally:
            if kept is not None and self.exceeds(self.values(self.it).rows):
                self.it = kept
            self.is_linear, self.priced, self.is_gauss_newton = False, 0.0, False
            self._set_form()

    def _aimed(self, *, begins: bool) -> PlanIterate | None:
        """The step of a call; None where there is none."""
        if begins:
            self.empty_filter()
        return self.newton_step()[1]

    def _follow(self, off: float, *, is_first: bool) -> bool:
        """Set the barrier parameter of a plan so far off; whether that is another problem."""
        o = self.o
        if self.alpha < o.real_time_short and self.mu < self.highest:
            self.mu = max(o.real_time_mu, min(self.highest, o.real_time_rise * self.mu))
            self.it = self.recentred()
            return True
        if is_first:
            known = off * off if self.alpha == 1 else o.mu_factor * off
            least = max(o.mu_factor * self.mu, self.spread if self.spread > 0 else known)
            self.mu = max(o.real_time_mu_last, min(self.mu, least))
        elif self.is_solved() if self.has_hard else self.spread > 0:
            self.mu = max(o.real_time_mu_last, o.mu_factor * self.mu)
        return is_first

    def is_solved(self) -> bool:
        """Whether the barrier problem is solved as far as its parameter asks for."""
        self.residuals()
        return self.error(self.mu) <= self.o.mu_error * self.mu

    @property
    def highest(self) -> float:
        """The same, of real-time steps."""
        return max(self.o.real_time_mu, self.worth)
