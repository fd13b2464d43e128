"""MovingHorizon: the states of the last N steps by optimal control, their noise as inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from math import isfinite, ulp
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import compile as compile_functions
from ..codegen import named_options
from ..codegen._internal import (
    MOST_SUBSTEPS,
    UnknownNameError,
    c_default_name,
    check_count,
    check_known,
    interruptible,
    read_only,
    unknown_name,
)
from ..integrators import Method
from ..optimal import Bound, InteriorPointSolver, OptimalControlProblem, Residual, SolveStatus
from ..optimal._internal import ReferenceSamples
from ..systems import Input, Sensor, System, Trajectory
from ..systems._internal import (
    BoundSensor,
    block_slices,
    check_start,
    complete_parameters,
    place_of,
)
from ._arrival import ArrivalCost, WindowInputs
from ._estimates import Estimates, flattened, symmetric_of
from ._export_window import ExportedWindow, export_window
from ._given import (
    OFF_UNIT,
    bind_all,
    first_covariance,
    first_estimate,
    for_each,
    interval_inputs,
    measured,
    noise_densities,
)
from ._innovations import IMPOSSIBLE, Uses, chi_squared_quantile, likely_square, window_doubts
from ._log import MOST_PIECES, SAME_TIME, Log, Rows
from ._status import (
    LARGEST_SQUARED,
    LAST_TIME,
    MOST_GAP_STEPS,
    NODE_ROUNDING,
    Interval,
    PredictStatus,
    UpdateStatus,
    new_part,
    no_counts,
    rounding_of,
    summary_of,
    warn_of_interval,
)

CONVERGED = 1e-10  # optimality residual of solves to the end
# The same with limits: where data push against one, distances to it are rounding before 1e-8.
LIMITED = 1e-7
MOST = 100  # iterations of these
REPLAYED = 4  # steps that the run of an export goes on for when the window is full
# What calls change: an interrupted one leaves it as it was.
_CARRIED = (
    "_squares", "_used",
    "t", "info", "_behind", "_prior", "_begin", "_count", "_u", "_partial", "_x", "_after",
    "_is_new", "_has_moved", "_has_plan",
)  # fmt: skip
FIRST = "reference"  # a solve starts from motion without noise: last states may be at limits


@named_options
class MovingHorizon:
    """Moving horizon estimation: the last N steps are estimated together, limits kept.

    Minimises ``½ e₀ᵀ P₀⁻¹ e₀ + ½ Σ vᵀ v + ½ Σ ρ(rᵀ R⁻¹ r)`` over the first state of the window and
    the noise of its steps (``v`` in deviations). r are the innovations of the measurements in it.
    It is an `OptimalControlProblem` with a free start, solved like any other. The cost of arrival
    follows the window by a Kalman filter's step about the smoothed states, carried from chart to
    chart. A linear problem without limits therefore gives the Kalman filter's estimate.

    Measurements count at the node of the window that is nearest to their time, also late ones. It
    is an `Estimator` of `simulate`.

    Longer intervals and gaps than the window move the prior alone, as a filter would. If a solution
    is not finite, the states of the prior without noise take its place ("unsolved" in the counts of
    "predict"). If the cost of arrival is not finite or not positive, the prior does, moved on or as
    it is ("fallback"). `PredictStatus` says what may become of intervals.

    Parameters
    ----------
    system, sensors, x0, P0, std0, noise, p
        See `Filter`; P0 must be positive definite.
    horizon : int
        Steps N of the window.
    dt : float, optional
        Length of a step in s; may be left out for discrete systems.
    bounds : iterable of Bound
        Limits along the window, of states as in control, of noise by the name of its input, or of
        functions of ``(t, x, u, p)``. u are all inputs of the system, noise included.
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
    >>> from lgcontrol.systems import Sensor, System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u[0] + u[1], inputs=["speed", "slip"])
    >>> hand = Sensor("hand", std_discrete=0.1)
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
        sensors: Iterable[Sensor],
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
        self.sensors: dict[str, BoundSensor] = bind_all(system, sensors)
        self._robust = for_each(robust, list(self.sensors))
        check_known("robust", ("huber",), *self._robust.values())
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
        if iterations is not None:
            check_count("iterations", iterations)
        self.dt = float(dt)
        check_count("horizon", horizon, most=MOST_SUBSTEPS, remedy="remember a shorter time")
        self.horizon, self.method, self.iterations = horizon, method, iterations
        deviation = densities[kept] / np.sqrt(self.dt)
        noisy = [places[i] for i in kept]
        self._inputs = WindowInputs.of(system, noisy, deviation, self.sensors)
        self.p: np.ndarray = complete_parameters(system, p)
        self._arrival = ArrivalCost(
            self._inputs, self.sensors, set(self._robust), method, self.dt, horizon
        )
        self.problem = self._problem(tuple(bounds))
        self._solver = InteriorPointSolver(self.problem)
        lower, upper = self.problem.system.input_bounds
        is_limited = len(self.problem.bounds) or np.isfinite([lower, upper]).any()
        self._tolerance = LIMITED if is_limited else CONVERGED
        self.x0: np.ndarray = first_estimate(system, x0, self.p)
        self.P0: np.ndarray = first_covariance(system, self.x0, P0, std0)
        _check_positive(self.P0)
        self.reset()

    # The problem

    def _problem(self, bounds: tuple[Bound, ...]) -> OptimalControlProblem:
        system, columns = self.system, self._inputs
        noisy = [system.inputs[i] for i in columns.noisy]
        # what is known of a measured input or a control limits that, not its noise
        limits = [
            (entry.lower, entry.upper) if entry.role in ("noise", "disturbance")
            else (-np.inf, np.inf)
            for entry in noisy
        ]  # fmt: skip
        scaled = np.array(limits) / columns.deviation[:, None]
        inputs = [Input(entry.name, "σ", *pair) for entry, pair in zip(noisy, scaled, strict=True)]
        inputs += [Input(name, role="measured") for name in columns.names]
        given = columns.given

        def field(t: Any, x: Any, u: Any, p: Any) -> Any:
            return system.f(t, x, given(u), p)

        def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
            Df, B = system.derivatives(t, x, given(u), p)
            scaled = B[:, columns.noisy] @ ca.diag(ca.DM(columns.deviation))
            return Df, ca.horzcat(scaled, type(B)(B.shape[0], len(columns.names)))

        moved = System(
            f"{system.name}_window", system.state, field, inputs=inputs,
            parameters=system.parameters, project=system.project,
            project_derivative=system.project_derivative, errors=system.errors, dt=system.dt,
            derivatives=None if system.is_discrete else derivatives, symbol=system.symbol,
        )  # fmt: skip
        residuals = [
            Residual(self._residual(name), weight=1 / self.dt, terminal=1.0, name=name)
            for name in self.sensors
        ]
        return OptimalControlProblem(
            moved, self.horizon, self.dt,
            Q=0.0, R=1 / self.dt, terminal=0.0, residuals=residuals, free="all",
            bounds=[self._scaled(bound) for bound in bounds], method=self.method, substeps=1,
        )  # fmt: skip

    def _residual(self, name: str) -> Any:
        bound, part, flag = self.sensors[name], *self._inputs.places[name]
        whitening = np.linalg.inv(bound.white_factor)
        knee = likely_square(bound.group.dim)

        def residual(t: Any, x: Any, u: Any, p: Any) -> Any:
            u_full = self._inputs.given(u)
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
        names = [self.system.input_names[i] for i in self._inputs.noisy]
        if callable(bound.of):
            function: Any = bound.of
            return Bound(
                lambda t, x, u, p: function(t, x, self._inputs.given(u), p),
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
        deviation = self._inputs.deviation[names.index(name)]
        lower, upper = (np.asarray(v, dtype=float) / deviation for v in (bound.lower, bound.upper))
        return Bound(f"input.{name}", lower, upper, bound.soft, bound.at, bound.label)

    # The loop

    def reset(self) -> None:
        """Back to the first estimate; counts begin anew."""
        self._warned: set[PredictStatus] = set()
        self.t: float | None = None
        self.counts: dict[str, Counter[str]] = no_counts(self.sensors)
        self.info: dict[str, Any] = {}
        self._behind = 0
        self._squares: tuple[float, int, int, int] = 0.0, 0, 0, 0  # see `_doubt`
        self._used: dict[str, Uses] = {}
        self._begin_at(0.0, self.x0, self.P0)

    def _begin_at(self, t: float, x0: np.ndarray, P0: np.ndarray) -> None:
        """An empty window at a time, with this prior."""
        N, n, columns = self.horizon, self.system.n_errors, self._inputs
        weight = np.linalg.inv(P0)
        self._prior = x0.copy(), self._arrival.pack(P0), (weight + weight.T) / 2
        self._begin = t  # time of the first node
        self._count = 0  # complete steps in the window
        # all inputs of the window's nodes: noise as it is estimated, then the data
        self._u = np.zeros((N + 1, columns.size))
        self._u[:, columns.offset :] = columns.empty
        self._partial = np.zeros(self.system.n_inputs), 0.0
        self._x = np.tile(x0, (N + 1, 1))
        self._after = np.zeros((N + 1, n + self._arrival.triangle))
        self._after[:, n:] = self._arrival.pack(P0)
        self._solver.reset()
        self._is_new, self._has_moved, self._has_plan = False, False, False

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of a call or nothing of it: an interrupted one leaves the estimator as it was."""
        kept = {name: getattr(self, name) for name in _CARRIED}
        kept |= {name: kept[name].copy() for name in ("_u", "_x", "_after")}
        counts = {name: counter.copy() for name, counter in self.counts.items()}
        try:
            yield
        except BaseException:
            self.__dict__.update(kept, counts=counts, _has_plan=False)
            self._solver.reset()
            raise

    @interruptible
    def prepare(self) -> MovingHorizon:
        """Compile what a loop calls, and return the estimator."""
        self._solver.prepare()
        arrival = self._arrival
        parts = [arrival.first, arrival.steps, arrival.moved, arrival.alone]
        compile_functions(parts, batch=False)
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
        u = interval_inputs("MovingHorizon.predict: u", self.system, u)
        new = new_part(self.t, t, dt, self._behind)
        if new.status is not PredictStatus.REFUSED and ulp(t) >= NODE_ROUNDING * self.dt:
            new = Interval(0.0, 0.0, PredictStatus.REFUSED, self._behind)
        warn_of_interval(self._warned, "MovingHorizon", new, t, dt, self.t)
        with self._whole():
            self._behind, said = new.behind, self.counts["predict"]
            if new.status is not None:
                said[new.status.text] += 1
            if new.status is PredictStatus.REFUSED:
                return
            if new.status in (None, PredictStatus.JUMP):  # sums drift from a clock by rounding
                self._begin += float(t) - (0.0 if self.t is None else self.t)
                self.t = float(t)
            is_fine = new.gap == 0 or self._advance(self._held(), new.gap)
            u, status = self._usable(u)
            if is_fine and new.dt > 0:
                is_fine = self._advance(u, new.dt)
            if not is_fine:
                said[PredictStatus.REFUSED.text] += 1
            elif new.dt > 0:
                said[status.text] += 1

    def _usable(self, u: np.ndarray) -> tuple[np.ndarray, PredictStatus]:
        """Inputs that can be used, and what had to be done for it."""
        status, finite = PredictStatus.PREDICTED, np.abs(u) < LARGEST_SQUARED
        if not finite.all():
            status, u = PredictStatus.HELD, np.where(finite, u, self._held())
        rows = self.system.input_index("measured")
        lower, upper = (limit[rows] for limit in self.system.input_bounds)
        if ((u[rows] <= lower) | (u[rows] >= upper)).any():
            status, u = PredictStatus.SATURATED, u.copy()
            u[rows] = np.clip(u[rows], lower, upper)
        return u, status

    def _held(self) -> np.ndarray:
        if self._partial[1] > 0:
            return self._partial[0] / self._partial[1]
        if self._count == 0:
            return self.system.nominal_input
        return self._u[self._count - 1, self._inputs.known]

    def _advance(self, u: np.ndarray, dt: float) -> bool:
        """Go on with some inputs; False where that is not finite, and nothing changed."""
        assert self.t is not None  # since `predict`
        end = self.t + dt
        if dt > self.horizon * self.dt + rounding_of(end):
            return self._leap(u, dt)
        rounding = rounding_of(end)
        while end - self.t > rounding:
            node = self._begin + (self._count + 1) * self.dt
            if self._partial[1] == 0 and self._count == self.horizon:
                self._shift()  # a step that has begun has its node, for measurements next to it
            step = min(end, node) - self.t
            total, length = self._partial
            self._partial = total + step * u, length + step
            self.t += step
            if node - self.t > rounding:
                continue
            self.t = node
            total, length = self._partial
            self._u[self._count, self._inputs.known] = total / length
            self._count += 1
            self._partial = np.zeros(self.system.n_inputs), 0.0
            self._is_new = True
        return True

    def _leap(self, u: np.ndarray, dt: float) -> bool:
        """Beyond the horizon: the prior, with what the window says, and an empty window after."""
        assert self.t is not None  # since `predict`
        self._solve()
        arrival, system = self._arrival, self.system
        mean, prior, _ = self._sound(self._count, 0.0)
        total, length = self._partial
        pieces = [(total / length, length, 1)] if length > SAME_TIME else []
        if system.is_discrete:
            pieces = [(u, self.dt, min(MOST_GAP_STEPS, round((length + dt) / self.dt)))]
        else:
            count = min(MOST_PIECES, round(dt / self.dt))
            pieces.append((u, dt / count, count))
        t = self.t - length
        for given, step, count in pieces:
            for _ in range(count):
                mean, prior = arrival.alone(mean, prior, t, given, self.p, step)
                t += step
        P = arrival.covariance(prior)
        if not (np.isfinite(mean).all() and is_positive(P)):
            return False
        self.t += dt
        self._begin_at(self.t, mean, P)
        return True

    def _sound(self, k: int, dt: float) -> tuple[np.ndarray, ...]:
        """What the window says of node k, as a prior; else its own prior, moved on by dt."""
        made = tuple(self._arrival.moved(self._after[k], self._x[k], self.p))
        if _is_prior(self._arrival, made):
            return made
        self.counts["predict"]["fallback"] += 1
        self._has_plan = False
        self._solver.reset()
        if dt > 0:
            given = self._u[0, self._inputs.known]
            mean, prior = self._arrival.alone(*self._prior[:2], self._begin, given, self.p, dt)
            P = self._arrival.covariance(prior)
            if np.isfinite(mean).all() and is_positive(P):
                weight = np.linalg.inv(P)
                made = mean, prior, (weight + weight.T) / 2
                if _is_prior(self._arrival, made):
                    return made
        return self._prior

    def _shift(self) -> None:
        """Drop the first step; what it says becomes the cost of arrival at the second node."""
        self._solve()
        self._prior = self._sound(1, self.dt)
        self._begin += self.dt
        self._count -= 1
        self._has_moved = True
        for rows in (self._u, self._x, self._after):
            rows[:-1] = rows[1:]
        self._u[-1, self._inputs.offset :] = self._inputs.empty
        # measurements at the first node are in the cost of arrival
        self._u[0, self._inputs.flags] = 0.0

    def update(self, sensor: str, y: Any, *, t: float | None = None) -> None:
        """Take a measurement to the node nearest to when it was taken; see `UpdateStatus`.

        Parameters
        ----------
        sensor : str
            Its name.
        y : array_like
            Coordinates on its group.
        t : float, optional
            When it was taken, s; the time of the estimate less its delay if left out.
        """
        bound, y = measured(self.sensors, sensor, y)
        stamp = 0.0 if t is None else float(t)
        taken = (self.t or 0.0) - bound.sensor.delay if t is None else stamp
        if self.t is None and abs(stamp) < LAST_TIME:  # the first of all tells the time
            self.t = self._begin = taken = stamp
        self.counts[sensor][self._take(sensor, bound, y, taken)] += 1

    def _take(self, name: str, bound: BoundSensor, y: np.ndarray, taken: float) -> str:
        if not (np.abs(y) < LARGEST_SQUARED).all():
            return UpdateStatus.NOT_FINITE.text
        lengths = [(y[part] ** 2).sum() for part in bound.group.unit_parts]
        if any(abs(length - 1) > OFF_UNIT for length in lengths):
            return UpdateStatus.OFF_GROUP.text
        if bound.limits and ((y <= bound.limits[0]) | (y >= bound.limits[1])).any():
            return UpdateStatus.SATURATED.text
        if self.t is None or not taken <= self.t + rounding_of(self.t):  # NaN as well
            return UpdateStatus.FUTURE.text
        since = taken - self._begin
        if self.t - taken >= bound.sensor.validity or since < -self.dt / 2:
            return UpdateStatus.STALE.text
        node = round(since / self.dt)
        if node == 0 and self._has_moved:
            return UpdateStatus.STALE.text
        part, flag = self._inputs.places[name]
        row = self._u[node]
        word = "replaced" if row[flag] else UpdateStatus.USED.text
        row[part] = bound.group.normalize(y)
        row[flag] = 1.0
        self._is_new = True
        self._used = self._used | {name: self._used.get(name, Uses()).with_one(taken)}
        return word

    # Solutions

    def _solve(self) -> None:
        if self._is_new:
            with self._whole():
                self._solve_anew()

    def _solve_anew(self) -> None:
        n, known = self._count, self._inputs.known
        self._u[n:, known] = self._held()  # of the step that has begun, and later ones
        mean, _, weight = self._prior
        u = self._u.copy()
        u[:, : self._inputs.offset] = 0.0
        reference = ReferenceSamples(np.broadcast_to(mean, self._x.shape), u)
        given = {"reference": reference, "t0": self._begin, "arrival": weight, "p": self.p}
        if not self._has_plan or self.iterations is None:
            found = self._solver.solve(
                mean, guess=FIRST, tolerance=self._tolerance, max_iterations=MOST, **given
            )
        else:
            found = self._solver.step(mean, iterations=self.iterations, **given)
        self._is_new, self._has_plan = False, n > 0
        self.info = {"status": found.status, "iterations": len(found.iterations),
                     "cost": found.cost}  # fmt: skip
        is_finite = (np.abs(found.x) < LARGEST_SQUARED).all() and (
            np.abs(found.u) < LARGEST_SQUARED
        ).all()
        if found.status is SolveStatus.FAILED or not is_finite:
            self.counts["predict"]["unsolved"] += 1
            self._u[:, : self._inputs.offset] = 0.0
            self._x, self._has_plan = self._without_noise(), False
            self._solver.reset()
        else:
            self._x = found.x.copy()
            self._u[:-1, : self._inputs.offset] = found.u[:, : self._inputs.offset]
            self._doubt(2 * float(found.cost))
        self._carry()

    def _doubt(self, square: float) -> None:
        """Add up the squares that windows are left with: χ² of as many as they have measured."""
        flags = ((self.sensors[name].group.dim, self._inputs.places[name][1])
                 for name in self.sensors)  # fmt: skip
        rows = sum(dim * int(self._u[:, flag].sum()) for dim, flag in flags)
        if rows:
            total, count, solved, unlikely = self._squares
            is_unlikely = square > chi_squared_quantile(1 - IMPOSSIBLE, rows)
            self._squares = total + square, count + rows, solved + 1, unlikely + is_unlikely

    def _without_noise(self) -> np.ndarray:
        """States that follow from the prior alone; from where they are not finite the last one."""
        x = np.tile(self._prior[0], (self.horizon + 1, 1))
        for k in range(self.horizon):
            x[k + 1] = self._moved(self._begin, x[k], self._u[k, self._inputs.known], self.dt)
        return x

    def _moved(self, t: float, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """State after a time, or this one where that is not finite."""
        later = self.system.step(self.method)(t, x, u, self.p, dt)
        return later if (np.abs(later) < LARGEST_SQUARED).all() else x

    def _carry(self) -> None:
        """What the window says of each state, from the cost of arrival on."""
        mean, prior, _ = self._prior
        first = self._arrival.first(mean, prior, self._x[0], self._u[0], self.p)
        self._after[0] = first
        self._after[1:] = self._arrival.steps(
            first, self._x[:-1], self._x[1:], self._u[:-1], self._u[1:], self.p
        )
        for k, column in enumerate(self._after):
            fine = (np.abs(column) < LARGEST_SQUARED).all()
            if not (fine and is_positive(self._arrival.covariance(column))):
                self._after[k] = np.concatenate([np.zeros(self.system.n_errors), prior])
                self.counts["predict"]["fallback"] += 1

    def __repr__(self) -> str:
        """System, window, measurements."""
        return (
            f"MovingHorizon({self.system.name!r}, {self.horizon} steps of {self.dt:g} s, "
            f"sensors=[{', '.join(self.sensors)}])"
        )

    # The estimate

    @property
    def x(self) -> np.ndarray:
        """The estimate at time t, shape (nq,)."""
        self._solve()
        k, (total, length) = self._count, self._partial
        if length <= SAME_TIME or self.system.is_discrete:
            return read_only(self._x[k].copy())
        u = total / length
        u[self._inputs.noisy] += self._inputs.deviation * self._u[k, : self._inputs.offset]
        assert self.t is not None  # since `predict`
        return read_only(self._moved(self.t - length, self._x[k], u, length).copy())

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``system.error(truth, x)`` at the last node; limits are not in it."""
        self._solve()
        return read_only(self._arrival.covariance(self._after[self._count]))

    @property
    def window(self) -> Trajectory:
        """States and all inputs of the window, noise included: the smoothed estimates."""
        self._solve()
        n = self._count
        inputs = self._inputs
        u = self._u[:n, inputs.known].copy()
        u[:, inputs.noisy] += self._u[:n, : inputs.offset] * inputs.deviation
        times = self._begin + self.dt * np.arange(n + 1)
        return Trajectory(
            self.system.state, times, self._x[: n + 1], u if n else None,
            inputs=self.system.inputs if n else None,
        )  # fmt: skip

    @interruptible
    def run(self, log: Log, x0: Any = None, P0: Any = None) -> Estimates:
        """Estimates over a log, measurements of a time included; the estimator begins anew.

        Parameters
        ----------
        log : Log
        x0, P0 : array_like, optional
            First estimate instead of the estimator's.
        """
        rows = Rows.of(log, self.system, self.sensors)
        if rows.batch:
            raise ValueError("a MovingHorizon takes one log at a time")
        self.reset()
        first = self.x0 if x0 is None else check_start(self.system, "x0", x0, self.p)
        if P0 is not None:
            P0 = first_covariance(self.system, first, P0, None)
            _check_positive(P0)
        self._begin_at(0.0, first, self.P0 if P0 is None else P0)
        for name, counter in rows.counts.items():
            self.counts[name] += counter
        starts = np.cumsum([0, *(b.group.nq for b in self.sensors.values())])
        x, P = [], []
        for k in range(len(rows.t)):
            self.predict(rows.t[k], rows.u[k], rows.dt[k])
            for i, name in enumerate(self.sensors):
                if rows.present[k, i]:
                    self.update(name, rows.y[k, starts[i] : starts[i + 1]])
            x.append(self.x)
            P.append(self.P)
        return Estimates(
            self.system, rows.ends, np.array(x), symmetric_of, flattened(np.array(P))
        )  # fmt: skip

    @interruptible
    def export_c(self, folder: str | Path, *, name: str | None = None) -> Path:
        """Write the estimator as plain C99 that needs nothing else, for firmware.

        The folder holds a struct with functions that start, predict an interval, take each
        measurement (also late ones), and tell estimate and covariance. It also holds the solver of
        the window, an example that replays a run with noise and compares it with Python, and a
        CMakeLists.txt. Each interval is to begin where the one before ended. Parameters are those
        of now.

        Parameters
        ----------
        folder : path
            New, empty, or exported before; it appears whole or not at all.
        name : str, optional
            Of the files, the functions and the struct; names of system and class if left out.
        """

        def write_solver(target: Path, own: str) -> Path:
            held = ReferenceSamples(np.tile(self.x0, (len(self._x), 1)), 0.0 * self._u)
            return self._solver.export_c(
                target, name=own, reference=held, p=self.p, iterations=self.iterations or 1,
                first_iterations=MOST, tolerance=self._tolerance, guess=FIRST, restarts=0,
            )  # fmt: skip

        made = ExportedWindow(
            self._arrival, self.system.step(self.method), write_solver, self.iterations is None,
            self.x0, self.P0, self.p, self._replay(),
        )  # fmt: skip
        return export_window(made, folder, name or c_default_name(self.system.name, self))

    def _replay(self) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Events of a run with noise, for the test of an export; one measurement is broken."""
        twin, system, rng = copy(self), self.system, np.random.default_rng(0)
        twin._solver = InteriorPointSolver(self.problem)
        twin.reset()
        x = system.state.plus(self.x0, 0.01 * rng.normal(size=system.state.dim))
        if system.project is not None:
            x = system.project(x, self.p)
        step, events = system.step(self.method), []
        noisy = self._inputs.noisy
        for k in range(self.horizon + REPLAYED):
            u = system.nominal_input.copy()
            real = u.copy()
            real[noisy] += self._inputs.deviation * rng.normal(size=len(noisy))
            x = step(k * self.dt, x, real, self.p, self.dt)
            twin.predict(k * self.dt, u, self.dt)
            events.append((0, u, twin.x, twin.P))
            for i, (name, bound) in enumerate(self.sensors.items()):
                y = bound.draw(k * self.dt, x, u, self.p, rng)
                if k == self.horizon:
                    y = np.full_like(y, np.nan)
                twin.update(name, y, t=twin.t)
                events.append((i + 1, y, twin.x, twin.P))
        return events

    def summary(self) -> str:
        """Say how often what became of intervals and measurements, and what speaks against them.

        The cost of a window is half of χ² of what was measured in it, if all noise is as stated.
        """
        total, count, solved, unlikely = self._squares
        # windows share measurements: as many are independent as fit beside each other
        independent = count / (1 + self.horizon)
        plain = not self._robust and all(b.lasting == 1 for b in self.sensors.values())
        found = window_doubts(total, count, independent, solved, unlikely, plain)
        for name, uses in self._used.items():
            found += [f"{name}: {hole}" for hole in uses.holes(self.t or 0.0)]
        return "\n".join([summary_of(self.counts), *found])


def is_positive(P: np.ndarray) -> bool:
    """Whether a covariance is finite and has an inverse."""
    try:
        return bool(np.isfinite(np.linalg.cholesky(P)).all())
    except np.linalg.LinAlgError:
        return False


def _is_prior(arrival: ArrivalCost, made: tuple[np.ndarray, ...]) -> bool:
    """Whether a mean, its covariance and the weight are what a window can begin with."""
    mean, prior, weight = made
    if not all((np.abs(part) < LARGEST_SQUARED).all() for part in made):
        return False
    return is_positive(arrival.covariance(prior)) and is_positive(weight)


def _check_positive(P0: np.ndarray) -> None:
    if not np.linalg.eigvalsh(P0)[0] > 0:
        raise ValueError("P0 of a MovingHorizon must be positive definite")
