"""MovingHorizon: the states of the last N steps by optimal control, their noise as inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, UnknownNameError, chain, solve_symmetric, trace, unknown_name
from ..codegen import compile as compile_functions
from ..groups import check_element
from ..integrators import Method
from ..optimal import (
    Bound,
    InteriorPointSolver,
    OptimalControlProblem,
    ReferenceSamples,
    Residual,
    SolveStatus,
)
from ..systems import (
    BoundMeasurement,
    Input,
    Measurement,
    System,
    Trajectory,
    block_slices,
    complete_parameters,
    place_of,
    step_derivatives,
)
from ._estimates import Estimates
from ._given import (
    OFF_UNIT,
    bind_all,
    first_covariance,
    for_each,
    known_inputs,
    measured,
    noise_densities,
)
from ._log import SAME_TIME, Log, Rows
from ._normal import likely_square
from ._smoothing import symmetric
from ._status import PredictStatus, UpdateStatus, no_counts, summary_of

CONVERGED = 1e-10  # optimality residual of solves to the end
MOST = 100  # iterations of these


class MovingHorizon:
    """Moving horizon estimation: the last N steps are estimated together, limits kept.

    ``min ½ e₀ᵀ P₀⁻¹ e₀ + ½ Σ vᵀ v + ½ Σ ρ(rᵀ R⁻¹ r)`` over the first state of the window and the
    noise of its steps (``v`` in deviations), r being the innovations of the measurements in it. It
    is an `OptimalControlProblem` with a free start, solved like any other. The cost of arrival
    follows the window: a Kalman filter's step about the smoothed states, carried from chart to
    chart, so that a linear problem without limits gives what the Kalman filter gives.

    Measurements count at the node of the window that is nearest to their time, also late ones. It
    is an `Estimator` of `simulate`.

    Parameters
    ----------
    system, measurements, x0, P0, std0, noise, p
        See `Filter`; P0 must be positive definite.
    horizon : int
        Steps N of the window.
    dt : float, optional
        Length of a step in s; may be left out for discrete systems.
    bounds : iterable of Bound
        Limits along the window, of states as in control, of noise by the name of its input, or of
        functions of ``(t, x, u, p)``; u are all inputs of the system, noise included.
    robust : "huber" or mapping, optional
        Cost that grows linearly for unlikely measurements, ``ρ(s) = 2c (√(1 + s/c) − 1)``; by name
        of the measurement, or for all.
    method : str or Method
        Of the steps.
    iterations : int, optional
        Of the solver at each new measurement; to convergence if left out.

    Attributes
    ----------
    problem : OptimalControlProblem
    t : float or None
        Time of the estimate, s.
    info : dict
        "status", "iterations" and "cost" of the last solve.
    counts : dict of str to Counter

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import Measurement, System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u[0] + u[1], inputs=["speed", "slip"])
    >>> hand = Measurement("hand", std_discrete=0.1)
    >>> mhe = MovingHorizon(clock, [hand], std0=1.0, noise={"slip": 0.1}, horizon=5, dt=0.1)
    >>> for k in range(20):
    ...     mhe.predict(0.1 * k, [1.0, 0.0], 0.1)
    ...     mhe.update("hand", SO2.exp([0.1 * (k + 1) + 2.0]))
    >>> bool(abs(SO2.minus(mhe.x, SO2.exp([4.0]))) < 1e-3), mhe.counts["hand"]["used"]
    (True, 20)

    References
    ----------
    Rao, Rawlings and Mayne, Constrained state estimation for nonlinear discrete-time systems:
    stability and moving horizon approximations, IEEE TAC 48(2), 2003. Tenny and Rawlings, Efficient
    moving horizon estimation and nonlinear model predictive control, ACC 2002: smoothed arrival.
    """

    def __init__(
        self,
        system: System[Any],
        measurements: Iterable[Measurement],
        x0: Any = None,
        P0: Any = None,
        *,
        horizon: int,
        dt: float | None = None,
        std0: Any = None,
        noise: Mapping[str, float],
        bounds: Iterable[Bound] = (),
        robust: Any = None,
        method: str | Method = "rk4",
        p: Any = None,
        iterations: int | None = None,
    ) -> None:
        self.system = system
        self.measurements: dict[str, BoundMeasurement] = bind_all(system, measurements)
        self._robust = for_each(robust, list(self.measurements))
        for value in self._robust.values():
            if value != "huber":
                raise UnknownNameError(unknown_name("robust", value, ("huber",)))
        places, densities = noise_densities(system, noise)
        kept = [i for i, q in enumerate(densities) if q > 0]
        if not kept:
            known = ", ".join(system.input_names)
            raise ValueError(f"noise must have a density above zero for one input of {known}")
        dt = system.dt or dt
        if dt is None or not (isfinite(dt) and dt > 0):
            raise ValueError(
                f"{system.name} is continuous: give dt, the length of a step in s, got {dt}"
            )
        if iterations is not None and not (
            isinstance(iterations, int | np.integer) and iterations >= 1
        ):
            raise ValueError(
                f"iterations must be a whole number, at least 1, or None for solves to "
                f"convergence, got {iterations!r}"
            )
        self.dt = float(dt)
        self.horizon, self.method, self.iterations = horizon, method, iterations
        self._noisy = [places[i] for i in kept]
        self._deviation: np.ndarray = densities[kept] / np.sqrt(self.dt)
        self.p: np.ndarray = complete_parameters(system, p)
        self._columns = _DataColumns.of(system, self._noisy, self.measurements)
        self.problem = self._problem(tuple(bounds))
        self._solver = InteriorPointSolver(self.problem)
        start = system.state.identity if x0 is None else x0
        self.x0: np.ndarray = check_element("x0", start, system.state)
        self.P0: np.ndarray = first_covariance(system, self.x0, P0, std0)
        _check_positive(self.P0)
        self.reset()

    # The problem

    def _problem(self, bounds: tuple[Bound, ...]) -> OptimalControlProblem:
        system, columns = self.system, self._columns
        noisy = [system.inputs[i] for i in self._noisy]
        # what is known of a measured input or a control limits that, not its noise
        limits = [
            (entry.lower, entry.upper) if entry.role in ("noise", "disturbance")
            else (-np.inf, np.inf)
            for entry in noisy
        ]  # fmt: skip
        scaled = np.array(limits) / self._deviation[:, None]
        inputs = [Input(entry.name, "σ", *pair) for entry, pair in zip(noisy, scaled, strict=True)]
        inputs += [Input(name, role="measured") for name in columns.names]
        given = self._given_inputs

        def field(t: Any, x: Any, u: Any, p: Any) -> Any:
            return system.f(t, x, given(u), p)

        def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
            Df, B = system.derivatives(t, x, given(u), p)
            scaled = B[:, self._noisy] @ ca.diag(ca.DM(self._deviation))
            return Df, ca.horzcat(scaled, type(B)(B.shape[0], len(columns.names)))

        moved = System(
            f"{system.name}_window", system.state, field, inputs=inputs,
            parameters=system.parameters, project=system.project,
            project_derivative=system.project_derivative, errors=system.errors, dt=system.dt,
            derivatives=None if system.is_discrete else derivatives, symbol=system.symbol,
        )  # fmt: skip
        residuals = [
            Residual(self._residual(name), weight=1 / self.dt, terminal=1.0, name=name)
            for name in self.measurements
        ]
        return OptimalControlProblem(
            moved, self.horizon, self.dt,
            Q=0.0, R=1 / self.dt, terminal=0.0, residuals=residuals, start="free",
            bounds=[self._scaled(bound) for bound in bounds], method=self.method, substeps=1,
        )  # fmt: skip

    def _given_inputs(self, u: Any) -> Any:
        """All inputs of the system, from those of the window."""
        full: list[Any] = [u[self._columns.offset + i] for i in range(self.system.n_inputs)]
        for k, i in enumerate(self._noisy):
            full[i] = full[i] + float(self._deviation[k]) * u[k]
        return ca.vertcat(*full)

    def _residual(self, name: str) -> Any:
        bound, part, flag = self.measurements[name], *self._columns.places[name]
        whitening = np.linalg.inv(_positive(name, bound))
        knee = likely_square(bound.group.dim)

        def residual(t: Any, x: Any, u: Any, p: Any) -> Any:
            u_full = self._given_inputs(u)
            own = p[: self.system.n_parameters]
            nu = bound.group.minus(u[part], bound.function(t, x, u_full, own))
            if bound.scale is not None:
                scale = bound.scale(t, x, u_full, own)
                nu = nu / scale
            r = ca.DM(whitening) @ nu
            if name in self._robust:
                r = r * ca.sqrt(2 / (1 + ca.sqrt(1 + ca.sumsqr(r) / knee)))
            return u[flag] * r

        return residual

    def _scaled(self, bound: Bound) -> Bound:
        """A bound in the inputs of the window; limits of noise in deviations."""
        names = [self.system.input_names[i] for i in self._noisy]
        if callable(bound.of):
            function: Any = bound.of
            return Bound(
                lambda t, x, u, p: function(t, x, self._given_inputs(u), p),
                bound.lower, bound.upper, bound.soft, bound.at, bound.label,
            )  # fmt: skip
        state = self.system.state
        of_state = (*block_slices(state)[0], *state.coordinate_names, *state.tangent_names)
        place, name = place_of(f"bound {bound.label!r}", bound.of, of_state, names)
        if not place:
            known = dict.fromkeys((*of_state, *names))
            raise UnknownNameError(
                f"{unknown_name('bounded state or noise', bound.of, known)} What else is to be "
                "bounded is a function (t, x, u, p) → column"
            )
        if place == "state" or isinstance(bound.lower, str) or isinstance(bound.upper, str):
            return bound
        deviation = self._deviation[names.index(name)]
        lower, upper = (np.asarray(v, dtype=float) / deviation for v in (bound.lower, bound.upper))
        return Bound(f"input.{name}", lower, upper, bound.soft, bound.at, bound.label)

    # The loop

    def reset(self) -> None:
        """Back to the first estimate; counts begin anew."""
        N, columns = self.horizon, self._columns
        self.t: float | None = None
        self.counts: dict[str, Counter[str]] = no_counts(self.measurements)
        self.info: dict[str, Any] = {}
        self._begin = 0.0  # time of the first node
        self._count = 0  # complete steps in the window
        self._data = np.zeros((N + 1, columns.size))
        self._data[:] = columns.empty
        self._partial = np.zeros(self.system.n_inputs), 0.0
        self._prior = self.x0.copy(), self.P0.copy()
        self._x = np.tile(self.x0, (N + 1, 1))
        self._v = np.zeros((N, len(self._noisy)))
        self._after = np.tile(self._pack(np.zeros(self.system.n_errors), self.P0), (N + 1, 1))
        self._solver.reset()
        self._is_new, self._has_moved, self._has_plan = False, False, False

    def prepare(self) -> MovingHorizon:
        """Compile what a loop calls, and return the estimator."""
        self._solver.prepare()
        compile_functions(self._arrivals, batch=False)
        return self

    def predict(self, t: float, u: Any, dt: float) -> None:
        """Go on by an interval; its inputs count by their share of each step.

        Parameters
        ----------
        t : float
            Start of the interval in s.
        u : array_like, shape (n_inputs,)
            Known inputs; those of noise and disturbances nominal.
        dt : float
            Length in s.
        """
        u = known_inputs("MovingHorizon.predict: u", self.system, u)
        if not (isfinite(t) and 0 <= dt < np.inf):
            self.counts["predict"][PredictStatus.REFUSED.word] += 1
            return
        if self.t is None:
            self.t = self._begin = float(t)
        if not np.isfinite(u).all():
            self.counts["predict"][PredictStatus.HELD.word] += 1
            u = np.where(np.isfinite(u), u, self._held())
        ahead = t - self.t
        if ahead > SAME_TIME:
            self.counts["predict"][PredictStatus.GAP.word] += 1
            self._advance(self._held(), ahead)
        elif ahead < -SAME_TIME:
            self.counts["predict"][PredictStatus.OVERLAP.word] += 1
            dt += ahead
        if dt > SAME_TIME:
            self._advance(u, dt)
            self.counts["predict"][PredictStatus.PREDICTED.word] += 1

    def _held(self) -> np.ndarray:
        if self._partial[1] > 0:
            return self._partial[0] / self._partial[1]
        if self._count == 0:
            return self.system.nominal_input
        return self._data[self._count - 1, : self.system.n_inputs]

    def _advance(self, u: np.ndarray, dt: float) -> None:
        assert self.t is not None  # since `predict`
        end = self.t + dt
        while end - self.t > SAME_TIME:
            node = self._begin + (self._count + 1) * self.dt
            step = min(end, node) - self.t
            total, length = self._partial
            self._partial = total + step * u, length + step
            self.t += step
            if node - self.t > SAME_TIME:
                continue
            self.t = node
            if self._count == self.horizon:
                self._shift()
            total, length = self._partial
            self._data[self._count, : self.system.n_inputs] = total / length
            self._count += 1
            self._partial = np.zeros(self.system.n_inputs), 0.0
            self._is_new = True

    def _shift(self) -> None:
        """Drop the first step; what it says becomes the cost of arrival at the second node."""
        self._solve()
        m, P = self._unpack(self._after[1])
        self._prior = self._about(self._x[1], m, P)
        self._begin += self.dt
        self._count -= 1
        self._has_moved = True
        for rows in (self._data, self._x, self._v, self._after):
            rows[:-1] = rows[1:]
        self._data[-1] = self._columns.empty
        # measurements at the first node are in the cost of arrival
        self._data[0, self._columns.flags] = 0.0

    def update(self, measurement: str, y: Any, *, t: float | None = None) -> None:
        """Take a measurement to the node nearest to when it was taken; see `UpdateStatus`.

        Parameters
        ----------
        measurement : str
            Its name.
        y : array_like
            Coordinates on its group.
        t : float, optional
            When it was taken, s; the time of the estimate less its delay if left out.
        """
        bound, y = measured(self.measurements, measurement, y)
        if self.t is None:
            self.t = self._begin = 0.0 if t is None else float(t)
            t = self.t
        taken = self.t - bound.measurement.delay if t is None else float(t)
        self.counts[measurement][self._take(measurement, bound, y, taken)] += 1

    def _take(self, name: str, bound: BoundMeasurement, y: np.ndarray, taken: float) -> str:
        assert self.t is not None  # since `update`
        lengths = [(y[part] ** 2).sum() for part in bound.group.unit_parts]
        if not np.isfinite(y).all():
            return UpdateStatus.NOT_FINITE.word
        if any(abs(length - 1) > OFF_UNIT for length in lengths):
            return UpdateStatus.OFF_GROUP.word
        if not taken <= self.t + SAME_TIME:  # NaN as well
            return UpdateStatus.FUTURE.word
        node = round((taken - self._begin) / self.dt)
        is_lost = taken - self._begin < -self.dt / 2 or (node == 0 and self._has_moved)
        if self.t - taken >= bound.measurement.validity or is_lost:
            return UpdateStatus.STALE.word
        part, flag = self._columns.places[name]
        offset = self._columns.offset
        row = self._data[node]
        word = "replaced" if row[flag - offset] else UpdateStatus.USED.word
        row[part.start - offset : part.stop - offset] = bound.group.normalize(y)
        row[flag - offset] = 1.0
        self._is_new = True
        return word

    # Solutions

    def _solve(self) -> None:
        if not self._is_new:
            return
        N, n = self.horizon, self._count
        u = np.zeros((N + 1, self.problem.system.n_inputs))
        u[:, self._columns.offset :] = self._data
        known = slice(self._columns.offset, self._columns.offset + self.system.n_inputs)
        if n:
            u[n:, known] = u[n - 1, known]
        mean, P = self._prior
        weight = np.linalg.inv(P)
        reference = ReferenceSamples(np.tile(mean, (N + 1, 1)), u)
        given = {"reference": reference, "t0": self._begin, "arrival": (weight + weight.T) / 2,
                 "p": self.p}  # fmt: skip
        if not self._has_plan or self.iterations is None:
            times = self.problem.times(self._begin)
            guess = Trajectory(self.system.state, times, *self._guess(u))
            found = self._solver.solve(
                mean, guess=guess, tolerance=CONVERGED, max_iterations=MOST, **given
            )
        else:
            found = self._solver.step(mean, iterations=self.iterations, **given)
        self._is_new, self._has_plan = False, n > 0
        self.info = {"status": str(found.status), "iterations": len(found.iterations),
                     "cost": found.cost}  # fmt: skip
        if found.status is SolveStatus.FAILED or not np.isfinite(found.x).all():
            self.counts["predict"]["unsolved"] += 1
            self._v = np.zeros_like(self._v)
            self._x, self._has_plan = self._guess(u, self._count)[0], False
            self._solver.reset()
        else:
            self._x, self._v = found.x.copy(), found.u[:, : self._columns.offset].copy()
        self._carry(u)

    def _guess(self, u: np.ndarray, again: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """States and inputs to start from: the last steps and what follows without noise."""
        x, made = self._x.copy(), u[:-1].copy()
        made[:, : self._columns.offset] = self._v
        step = self.problem.system.step(self.method)
        if again >= self._count:
            x[0] = self._prior[0]
        for k in range(max(self._count - again, 0), self.horizon):
            made[k, : self._columns.offset] = 0.0
            x[k + 1] = step(self._begin, x[k], made[k], self.p, self.dt)
        return x, made

    def _carry(self, u: np.ndarray) -> None:
        """Means and covariances of the errors about the solution, from the cost of arrival on."""
        mean, P = self._prior
        e = self.system.error(self._x[0], mean)
        J = self._reset(mean, e)
        first = self._pack(-e, J @ P @ J.T)
        u[:-1, : self._columns.offset] = self._v
        if self._data[0, self._columns.flags].any():
            first = self._measured(first, self._x[0], u[0], self.p)
        made = self._arrivals(first, self._x[:-1], self._x[1:], u[:-1], u[1:], self.p)
        self._after = np.concatenate([first[None], made])

    def _about(self, x: np.ndarray, m: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Estimate and covariance of a mean error about x."""
        J = self._reset(x, m)
        P = J @ P @ J.T
        return self.system.retract(x, m, self.p), (P + P.T) / 2

    def _reset(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        N = self.system.error_basis(x, self.p)
        return self.system.error_selection @ self.system.state.right_jacobian(N @ d) @ N

    def _pack(self, m: np.ndarray, P: np.ndarray) -> np.ndarray:
        columns, rows = np.triu_indices(len(m))
        return np.concatenate([m, P[rows, columns]])

    def _unpack(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = self.system.n_errors
        columns, rows = np.triu_indices(n)
        lower = np.zeros((n, n))
        lower[rows, columns] = column[n:]
        return column[:n], symmetric(lower)

    @cached_property
    def _arrivals(self) -> ModelFunction:
        """Means and covariances of the errors at all nodes but the first."""
        system, size = self.system, self._after.shape[1]

        def build(c: Any, x: Any, x_next: Any, u: Any, u_next: Any, p: Any) -> Any:
            m, P = self._split(c)
            made = step_derivatives(system, self.method)(0.0, x, self._given_inputs(u), p, self.dt)
            A, G = made.A, made.B[:, self._noisy] @ ca.diag(ca.DM(self._deviation))
            v = u[: self._columns.offset]
            m = system.error(made.x_next, x_next) + A @ m - G @ v
            P = A @ P @ A.T + G @ G.T
            return self._corrected(m, P, x_next, u_next, p)

        shapes = {"c": (size,), "x": (system.state.nq,), "x_next": (system.state.nq,),
                  "u": (self.problem.system.n_inputs,), "u_next": (self.problem.system.n_inputs,),
                  "p": (system.n_parameters,)}  # fmt: skip
        step = trace("arrival", build, shapes, {"c_next": (size,)})
        return chain(step, self.horizon, carry=("c", "c_next"), each=["x", "x_next", "u", "u_next"])

    @cached_property
    def _measured(self) -> ModelFunction:
        """Means and covariances with the measurements of a node in them."""
        system, size = self.system, self._after.shape[1]
        shapes = {"c": (size,), "x": (system.state.nq,), "u": (self.problem.system.n_inputs,),
                  "p": (system.n_parameters,)}  # fmt: skip
        return trace(
            "measured", lambda c, x, u, p: self._corrected(*self._split(c), x, u, p), shapes,
            {"c_next": (size,)},
        )  # fmt: skip

    def _split(self, c: Any) -> tuple[Any, Any]:
        n = self.system.n_errors
        return c[:n], ca.tril2symm(type(c)(ca.Sparsity.lower(n), c[n:]))

    def _corrected(self, m: Any, P: Any, x: Any, u: Any, p: Any) -> Any:
        given, eye = self._given_inputs(u), ca.DM.eye(self.system.n_errors)
        for name, bound in self.measurements.items():
            part, flag = self._columns.places[name]
            made = bound.derivatives(0.0, x, given, p)
            r, C = bound.group.minus(u[part], made.y), made.C
            L = bound.white_factor_at(0.0, x, given, p)
            R = L @ L.T
            if name in self._robust:
                knee = likely_square(bound.group.dim)
                R = R * ca.sqrt(1 + ca.dot(r, solve_symmetric(R, r)) / knee)
            K = solve_symmetric(C @ P @ C.T + R, C @ P).T * u[flag]
            m = m + K @ (r - C @ m)
            P = (eye - K @ C) @ P @ (eye - K @ C).T + K @ R @ K.T
        return ca.vertcat(m, ca.project(P, ca.Sparsity.lower(m.shape[0])).nz[:])

    # The estimate

    @property
    def x(self) -> np.ndarray:
        """The estimate at time t, shape (nq,)."""
        self._solve()
        x, (total, length) = self._x[self._count], self._partial
        if length > SAME_TIME and not self.system.is_discrete:
            x = self.system.step(self.method)(self.t, x, total / length, self.p, length)
        return x.copy()

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``system.error(truth, x)`` at the last node; limits are not in it."""
        self._solve()
        return self._unpack(self._after[self._count])[1]

    @property
    def window(self) -> Trajectory:
        """States and all inputs of the window, noise included: the smoothed estimates."""
        self._solve()
        n = self._count
        u = self._data[:n, : self.system.n_inputs].copy()
        u[:, self._noisy] += self._v[:n] * self._deviation
        times = self._begin + self.dt * np.arange(n + 1)
        return Trajectory(
            self.system.state, times, self._x[: n + 1], u if n else None,
            inputs=self.system.inputs if n else None,
        )  # fmt: skip

    def run(self, log: Log, x0: Any = None, P0: Any = None) -> Estimates:
        """Estimates over a log, measurements of a time included; the estimator begins anew.

        Parameters
        ----------
        log : Log
        x0, P0 : array_like, optional
            First estimate instead of the estimator's.

        Returns
        -------
        Estimates
        """
        rows = Rows.of(log, self.system, self.measurements)
        if rows.batch:
            raise ValueError("a MovingHorizon takes one log at a time")
        self.reset()
        first = self.x0 if x0 is None else check_element("x0", x0, self.system.state)
        if P0 is not None:
            P0 = first_covariance(self.system, first, P0, None)
            _check_positive(P0)
        self._prior = first, self.P0 if P0 is None else P0
        self._x[:] = first
        starts = np.cumsum([0, *(b.group.nq for b in self.measurements.values())])
        x, P = [], []
        for k in range(len(rows.t)):
            self.predict(rows.t[k], rows.u[k], rows.dt[k])
            for i, name in enumerate(self.measurements):
                if rows.present[k, i]:
                    self.update(name, rows.y[k, starts[i] : starts[i + 1]])
            x.append(self.x)
            P.append(self.P)
        return Estimates(self.system, rows.ends, np.array(x), lambda z: z, np.array(P))

    def summary(self) -> str:
        """Say how often what became of intervals and measurements."""
        return summary_of(self.counts)


class _DataColumns(NamedTuple):
    """Where known inputs, measurements and flags stand behind the noise among the inputs.

    Attributes
    ----------
    offset : number of noisy inputs, which come first
    names : of all columns: what is known of each input, then the measurements
    places : slice and flag of each measurement, among all inputs
    flags : of all measurements, among the data
    empty : data of a node without measurements
    """

    offset: int
    names: list[str]
    places: dict[str, tuple[slice, int]]
    flags: list[int]
    empty: np.ndarray

    @property
    def size(self) -> int:
        return len(self.names)

    @classmethod
    def of(
        cls, system: System[Any], noisy: list[int], measurements: Mapping[str, BoundMeasurement]
    ) -> _DataColumns:
        """Columns for a system and its measurements."""
        offset = len(noisy)
        names = [f"known.{name}" for name in system.input_names]
        empty = list(system.nominal_input)
        places: dict[str, tuple[slice, int]] = {}
        flags = []
        for name, bound in measurements.items():
            begin = offset + len(names)
            names += [f"y.{name}.{i}" for i in range(bound.group.nq)] + [f"has.{name}"]
            empty += [*bound.group.identity, 0.0]
            places[name] = slice(begin, begin + bound.group.nq), begin + bound.group.nq
            flags.append(begin + bound.group.nq - offset)
        return cls(offset, names, places, flags, np.array(empty))


def _check_positive(P0: np.ndarray) -> None:
    if not np.linalg.eigvalsh(P0)[0] > 0:
        raise ValueError("P0 of a MovingHorizon must be positive definite")


def _positive(name: str, bound: BoundMeasurement) -> np.ndarray:
    """Factor of the covariance, which must have an inverse."""
    L = bound.white_factor
    if np.linalg.matrix_rank(L) < len(L):
        raise ValueError(f"measurement {name!r} needs noise on every entry for a MovingHorizon")
    return L
