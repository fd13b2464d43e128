"""Filter: what all filters on groups share: state, noise, gates, replay, compiled loops."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, chain, named_options, trace
from ..codegen import compile as compile_functions
from ..codegen._internal import (
    c_default_name,
    check_known,
    exactly,
    factor_symmetric,
    interruptible,
    read_only,
    refuse_attribute,
    solve_factored,
)
from ..integrators import Method
from ..simulation._internal import CompiledFilter
from ..systems import Sensor, System, step_derivatives
from ..systems._internal import BoundSensor, check_start, complete_parameters
from ._error_side import Error, ErrorSide
from ._estimates import Estimates, EstimationResult
from ._export import ExportedFilter, export_filter
from ._given import (
    OFF_UNIT,
    bind_all,
    first_covariance,
    first_estimate,
    for_each,
    interval_inputs,
    measured,
    noise_densities,
    warn_of_no_noise,
)
from ._innovations import Gate, Said, Weight, of_size, of_unlikely, weigh, whiten
from ._log import SAME_TIME, ULPS, Log, Rows, whole_steps
from ._smoothing import LONG_LOG, BackwardPass, FilterColumn, symmetric
from ._status import (
    LAST_TIME,
    PredictStatus,
    UpdateStatus,
    new_part,
    no_counts,
    pieces_of,
    rounding_of,
    summary_of,
    warn_of_interval,
)

LARGEST_FINITE = 1e300  # values not below this limit, including NaN, are treated as non-finite
SMALLEST_STEP = 1e-15  # s; white noise over no time is none
SUCCESSES = sum(1 << int(status) for status in UpdateStatus if status.is_success)  # bits


class FilterOptions(TypedDict, total=False):
    """Arguments that every filter takes besides its own; see `Filter`."""

    std0: Any
    noise: Mapping[str, float] | None
    method: str | Method
    error: Error
    reset: bool | None
    p: Any
    gate: float | Mapping[str, float] | None
    robust: Weight | Mapping[str, Weight] | None
    lockout: int
    settle: int
    window: float | None


class Span(NamedTuple):
    """A state, and the interval that it moves over: the arguments of a step."""

    t: Value
    x: Value
    u: Value
    p: Value
    dt: Value


class Reading(NamedTuple):
    """A measurement y with covariance R, and the state that it is compared with."""

    bound: BoundSensor
    t: Value
    x: Value
    u: Value
    p: Value
    y: Value
    R: Value

    @property
    def at(self) -> tuple[Value, Value, Value, Value]:
        """Arguments of the sensor."""
        return self.t, self.x, self.u, self.p


class Filter(ABC):
    """Estimator of a state on a group with its covariance; `EKF` and `UKF` say how.

    It is an `Estimator` of `simulate`. ``x`` is the estimate, ``P`` its covariance in error
    coordinates of the system (of ``system.error(truth, x)``) and ``t`` its time.

    Parameters
    ----------
    system : System
        Its known inputs (controls, measured ones) drive the prediction.
    sensors : iterable of Sensor
    x0 : array_like, shape (nq,), optional
        First estimate; the home of the system if left out.
    P0 : array_like, shape (n, n), optional
        Covariance of ``system.error(truth, x0)``.
    std0 : float, array_like of shape (n,), or mapping of str to float, optional
        Deviations instead of P0; a mapping by names of blocks or entries of the error names all.
    noise : mapping of str to float, optional
        White noise on inputs of any role, as density in unit/√Hz by name; ``"gyro"`` stands for
        ``"gyro.x"``, ``"gyro.y"``, … An input is held over a step, so its variance is
        ``density² / dt``. If left out there is a warning, since the covariance shrinks to zero; an
        empty mapping says that the model is exact.
    method : str or Method
        Of the step.
    error : {"left", "right"}
        Side of the error, in whose coordinates the covariance is.
    reset : bool, optional
        Whether a correction carries the covariance over to the corrected estimate. If left out it
        does with left errors, and not with right ones. With a reset both give the same filter.
        Without it, right errors preserve the unobservable subspace, as SLAM needs.
    p : array_like or mapping, optional
        Parameters of the system.
    gate : float or mapping of str to float, optional
        Probability up to which a measurement is believed; 0.999 rejects one in a thousand good
        ones. By name of the measurement, or for all; none if left out. Each recovery (``lockout``)
        makes it twice as wide, in deviations; ``1 / (1 - gate)`` used measurements take that back.
    robust : {"huber", "cauchy"} or mapping, optional
        Less weight for unlikely measurements, instead of a gate or besides.
    lockout : int
        This rejection in a row makes the filter doubt itself. It inflates the covariance of the
        state until the measurement is likely, and uses it. The estimate runs away between two
        rejections: more than two cost an inertial system meters at each manoeuvre that its noise
        does not cover.
    settle : int
        Measurements of a sensor that are used before its gate begins to act.
    window : float, optional
        Time in s the filter remembers, so that measurements taken in it are put in where they
        belong. The longest delay of a measurement if left out.

    Attributes
    ----------
    column : ndarray, shape (layout.size,)
        All that it carries from call to call; a new one takes the place of the estimate.
    layout : FilterColumn
        Places of state, covariance (or its factor), counters and last inputs in the column.
    """

    _own_checks = "sensors noise gate"  # arguments that filters refuse with better words

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every filter say what its options are called."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            named_options(own=cls._own_checks)(cls)

    def __init__(
        self,
        system: System,
        sensors: Iterable[Sensor],
        x0: Any = None,
        P0: Any = None,
        *,
        std0: Any = None,
        noise: Mapping[str, float] | None = None,
        method: str | Method = "rk4",
        error: Error = "left",
        reset: bool | None = None,
        p: Any = None,
        gate: float | Mapping[str, float] | None = None,
        robust: Weight | Mapping[str, Weight] | None = None,
        lockout: int = 2,
        settle: int = 10,
        window: float | None = None,
    ) -> None:
        self._errors = ErrorSide(system, error)
        self.system = system
        self.sensors: dict[str, BoundSensor] = bind_all(system, sensors)
        self.error: Error = error
        self.has_reset: bool = error == "left" if reset is None else reset
        self._repeats = 1  # runs that are to be expected of each log
        self.method = method
        self.p: np.ndarray = complete_parameters(system, p)
        names = list(self.sensors)
        self._numbers = {name: k for k, name in enumerate(names)}
        self._gates = {k: Gate.of(k, v, self._dim(k)) for k, v in for_each(gate, names).items()}
        self._weights = for_each(robust, names)
        check_known("robust", ("huber", "cauchy"), *self._weights.values())
        if lockout < 1 or settle < 0:
            raise ValueError(f"lockout must be at least 1, settle 0; got {lockout}, {settle}")
        self.lockout, self.settle = lockout, settle
        self._noisy, self.densities = noise_densities(system, {} if noise is None else noise)
        self.noise_scale: np.ndarray = np.ones(len(names))
        delays = [bound.sensor.delay for bound in self.sensors.values()]
        self.window = max(delays, default=0.0) if window is None else float(window)
        self.layout = FilterColumn(system.state.nq, system.n_errors, len(names), system.n_inputs)
        self.x0: np.ndarray = first_estimate(system, x0, self.p)
        self.P0: np.ndarray = first_covariance(system, self.x0, P0, std0)
        if noise is None:
            warn_of_no_noise(type(self).__name__, system)
        self.reset()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.system.name!r}, state={self.system.state}, "
            f"errors={self.system.n_errors} on the {self.error}, "
            f"sensors=[{', '.join(self.sensors)}])"
        )

    # The estimate

    @property
    def x(self) -> np.ndarray:
        """The estimate, shape (nq,); a read-only view of the filter's own."""
        return read_only(self.column[: self.layout.nq])

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``system.error(truth, x)``, shape (n, n); read-only."""
        return read_only(self.covariances(self.column))

    def covariances(self, z: np.ndarray) -> np.ndarray:
        """Covariances of carried columns, shape (..., n, n)."""
        x, lower = self.layout.unpack(z)
        return self._errors.to_system(x, self._covariance(lower))

    def start(self, x0: Any = None, P0: Any = None) -> np.ndarray:
        """Carried column of a first estimate, shape (..., size)."""
        x = self.x0 if x0 is None else check_start(self.system, "x0", x0, self.p, batch=True)
        P = self.P0 if P0 is None else np.asarray(P0, dtype=np.float64)
        P = self._errors.from_system(x, P)
        batch, lower, inputs = x.shape[:-1], self._lower(P), self.system.nominal_input
        if not batch and lower.ndim == 2:
            return self.layout.pack(x, lower, inputs, -float(self.settle))
        lower = np.broadcast_to(lower, (*batch, *P.shape[-2:]))
        rows = [
            self.layout.pack(a, b, inputs, -float(self.settle))
            for a, b in zip(x.reshape(-1, x.shape[-1]), lower.reshape(-1, *P.shape[-2:]),
                            strict=True)
        ]  # fmt: skip
        return np.reshape(rows, (*batch, self.layout.size))

    def reset(self) -> None:
        """Back to the first estimate; counts begin anew."""
        self.column: np.ndarray = self.start()
        self.t: float | None = None
        self.counts: dict[str, Counter[str]] = no_counts(self.sensors)
        self.info: dict[str, Any] = {}
        self._past: deque[_LogEntry] = deque()
        self._behind, self._usual = 0, 0.0  # see `Interval`; length of the last interval, s
        self._squares: dict[str, tuple[float, int]] = dict.fromkeys(self.sensors, (0.0, 0))
        self._warned: set[PredictStatus] = set()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say where smoothing is: of logs, and of what the filter remembers."""
            if name == "smooth":
                who = type(self).__name__
                raise AttributeError(
                    f"{who} has no 'smooth'; smooth a whole log by {who}.run(log).smooth(), the "
                    f"last seconds of a loop by {who}(…, window=seconds).smoothed(t)",
                    name=name,
                    obj=self,
                )
            return refuse_attribute(self, name)

    # One call at a time

    @named_options
    def predict(self, t: float, u: Any, dt: float) -> None:
        """Move the estimate over an interval; see `PredictStatus` for what may become of it.

        Parameters
        ----------
        t : float
            Start of the interval in s.
        u : array_like, shape (n_inputs,)
            Known inputs; those of noise and disturbances nominal. Or the controls and measured
            inputs alone, as in a `Log`.
        dt : float
            Length of the interval in s.

        Warns
        -----
        RuntimeWarning
            Once, if an interval is negative, or lies before the time of the estimate altogether.
        """
        u = interval_inputs(f"{type(self).__name__}.predict: u", self.system, u)
        if self.system.is_discrete and isfinite(t) and isfinite(dt):
            whole_steps(self.system, dt, t)  # which refuses other intervals
        new = new_part(self.t, t, dt, self._behind, self.system.dt)
        warn_of_interval(self._warned, type(self).__name__, new, t, dt, self.t)
        self._behind = new.behind
        if new.status is not None:
            self._count("predict", new.status)
        if new.status is PredictStatus.REFUSED:
            return
        if self.t is None or new.status is PredictStatus.JUMP:
            self._go_to(float(t))
        elif new.status is None and not self.system.is_discrete:
            self.t = float(t)  # sums of intervals drift from a clock by their rounding
        if new.status is PredictStatus.GAP and self._bridge(new.gap) is PredictStatus.REFUSED:
            self._count("predict", PredictStatus.REFUSED)
        elif new.status is not PredictStatus.OVERLAP or new.dt > 0:
            self._count("predict", self._advance(u, new.dt))
            self._usual = new.dt

    @named_options
    def update(self, sensor: str, y: Any, *, t: float | None = None) -> None:
        """Correct the estimate by a measurement; see `UpdateStatus` for what may become of it.

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
        now = stamp if self.t is None else self.t
        taken = now - bound.sensor.delay if t is None else stamp
        if self.t is None and abs(stamp) < LAST_TIME:
            self.t = taken = now
        rounding = rounding_of(now)
        if self.t is None or not taken <= now + rounding:  # NaN as well
            status = UpdateStatus.FUTURE
        elif now - taken >= bound.sensor.validity:
            status = UpdateStatus.STALE
        elif taken < now - rounding:
            status = self._replay(sensor, y, taken)
        else:
            status = self._correct(sensor, y)
        self._count(sensor, status)
        if status.is_success:
            total, count = self._squares[sensor]
            self._squares[sensor] = total + self.info["nis"], count + 1

    def compiled_filter(self) -> CompiledFilter | None:
        """The filter without Python, for loops; None where measurements may come late."""
        own = type(self)
        is_other = own.predict is not Filter.predict or own.update is not Filter.update
        is_late = self.window > 0 or any(one.sensor.delay for one in self.sensors.values())
        if is_other or is_late or self.system.is_discrete:
            return None
        scales = dict(zip(self.sensors, self.noise_scale.tolist(), strict=True))
        return CompiledFilter(
            predict=exactly(self._predict),
            updates={name: exactly(update) for name, update in self._updates.items()},
            p=self.p, q=self.densities, scales=scales, successes=SUCCESSES,
            rounding=(SAME_TIME, ULPS), state=lambda: (self.column, self.t, self._usual),
            took=self._took, deviations=self._deviations,
        )  # fmt: skip

    def _took(
        self,
        z: np.ndarray,
        t: float | None,
        usual: float,
        predicted: dict[int, int],
        corrected: dict[str, tuple[dict[int, int], float, int, np.ndarray | None]],
    ) -> None:
        """Go on from where a loop in C has come."""
        self.column, self.t, self._usual = z, t, usual
        if predicted:
            self._behind = 0
        for status, count in predicted.items():
            self.counts["predict"][PredictStatus(status).text] += count
        for name, (counts, squares, used, said) in corrected.items():
            for status, count in counts.items():
                self.counts[name][UpdateStatus(status).text] += count
            total, before = self._squares[name]
            self._squares[name] = total + squares, before + used
            if said is not None:
                status = UpdateStatus(int(said[-1]))
                self.info = {"sensor": name, "status": status.text, "nis": float(said[-3])}

    def _deviations(self, z: np.ndarray) -> np.ndarray:
        """Standard deviations of carried columns, shape (k, n)."""
        return np.sqrt(np.maximum(self._variances(z), 0.0))

    def _variances(self, z: np.ndarray) -> np.ndarray:
        """Diagonals of the covariances of carried columns, shape (k, n)."""
        return np.diagonal(self.covariances(z), axis1=-2, axis2=-1)

    def _advance(self, u: np.ndarray, dt: float) -> PredictStatus:
        steps = 1
        if self.system.is_discrete:
            steps, dt = round(dt / self.system.dt), self.system.dt
        status, t = PredictStatus.PREDICTED, self.t or 0.0
        for _ in range(steps):
            column, said = self._predict(self.column, t, u, self.p, dt, self.densities)
            status = max(status, PredictStatus(int(said)))
            if status is PredictStatus.REFUSED:
                break
            self._remember(_LogEntry(t, self.column, None, u, dt))
            t += dt
            self.column, self.t = column, t
        return status

    def _bridge(self, gap: float) -> PredictStatus:
        """Hold the last inputs over a gap, in steps as long as the last interval or longer."""
        held = self.column[self.layout.size - self.system.n_inputs :]
        if self.system.is_discrete:
            return self._advance(held, gap)
        pieces, status = pieces_of(gap, self._usual), PredictStatus.PREDICTED
        for _ in range(pieces):
            status = self._advance(held, gap / pieces)
            if status is PredictStatus.REFUSED:
                break
        return status

    def _go_to(self, t: float) -> None:
        """The estimate as it is, at the time of another clock."""
        later = t - (t if self.t is None else self.t)
        self._past = deque(entry._replace(t=entry.t + later) for entry in self._past)
        self.t = t

    def _correct(self, name: str, y: np.ndarray) -> UpdateStatus:
        self._remember(_LogEntry(self.t or 0.0, self.column, name, y, 0.0))
        k = self._numbers[name]
        self.column, said = self._updates[name](self.column, self.t, self.p, y, self.noise_scale[k])
        status = UpdateStatus(int(said[-1]))
        self.info = {"sensor": name, "status": status.text, "nis": float(said[-3])}
        return status

    def _remember(self, event: _LogEntry) -> None:
        if self.window <= 0:
            return
        self._past.append(event)
        while self._past and self._past[0].end < event.t - self.window - SAME_TIME:
            self._past.popleft()

    def _replay(self, name: str, y: np.ndarray, taken: float) -> UpdateStatus:
        """Go back to when a measurement was taken, and forth again with it."""
        now, sample = self.t or 0.0, self.system.dt
        if not self._past or taken < self._past[0].t - max(SAME_TIME, sample / 2):
            return UpdateStatus.STALE
        if sample:  # a discrete system is nowhere between two steps
            taken = now - round((now - taken) / sample) * sample
        kept = self.column, self.t, self._past.copy()
        later: list[_LogEntry] = []
        # corrections at the very time stay in front of it: they came first
        while self._past and (
            self._past[-1].end > taken + SAME_TIME or self._past[-1].t > taken + SAME_TIME
        ):
            later.append(self._past.pop())
        if not later:
            return self._correct(name, y)
        first, is_refused = later[-1], False
        self.column, self.t = first.z, first.t
        if first.name is None and taken > first.t + SAME_TIME:
            later.pop()
            is_refused = self._advance(first.value, taken - first.t) is PredictStatus.REFUSED
            later.append(_LogEntry(taken, self.column, None, first.value, first.end - taken))
        status = self._correct(name, y)
        said = self.info
        for event in reversed(later):
            if event.name is None:
                is_refused |= self._advance(event.value, event.dt) is PredictStatus.REFUSED
                self.t = event.end
            else:
                self._correct(event.name, event.value)
        self.info = said
        if is_refused:  # with it, an interval after it has no finite prediction
            self.column, self.t, self._past = kept
            status = UpdateStatus.SINGULAR
            self.info = {"sensor": name, "status": status.text, "nis": np.nan}
        return status

    def _count(self, what: str, status: PredictStatus | UpdateStatus) -> None:
        self.counts[what][status.text] += 1
        if status in (UpdateStatus.STALE, UpdateStatus.FUTURE):
            self.info = {"sensor": what, "status": status.text, "nis": np.nan}

    def summary(self) -> str:
        """Say how often what became of intervals and measurements, and what speaks against them.

        A line for each measurement whose innovations are larger or smaller than its noise, or are
        outliers, as in `EstimationResult.summary`.
        """
        lines = [summary_of(self.counts)]
        for name, bound in self.sensors.items():
            squares, n = self._squares[name]
            unlikely = self.counts[name][UpdateStatus.UNLIKELY.text]
            if size := of_size(squares * bound.lasting, n, bound.group.dim, bound.lasting):
                lines.append(f"{name}: {size}")
            if unlikely:
                lines.append(f"{name}: {of_unlikely(unlikely)}")
        return "\n".join(lines)

    @property
    def mean_nis(self) -> dict[str, tuple[float, int, int]]:
        """Mean normalised innovation squared of each measurement, its dimension and their number.

        Of those since the last ``reset()``; the mean of a filter that is right is the dimension.
        """
        return {
            name: (total / count, self.sensors[name].group.dim, count)
            for name, (total, count) in self._squares.items()
            if count
        }

    # A whole log

    @interruptible
    def run(self, log: Log, x0: Any = None, P0: Any = None) -> EstimationResult:
        """Filter a whole log in one compiled loop; the filter itself stays as it is.

        Parameters
        ----------
        log : Log
            Its inputs and measurements may have leading batch axes: many logs at once.
        x0 : array_like, shape (..., nq), optional
            First estimates instead of the filter's.
        P0 : array_like, shape (..., n, n), optional
        """
        rows = Rows.of(log, self.system, self.sensors)
        start = self.start(x0, P0)
        whole = self._loop(len(rows.t))
        items = int(np.prod(np.broadcast_shapes(start.shape[:-1], rows.batch), dtype=int))
        if items * len(rows.t) * self._repeats >= LONG_LOG:
            compile_functions(whole, batch=items > 1)
        made = self._evaluate(whole, rows, start)
        back = BackwardPass(self._backward, self.layout, self.p, self.densities.copy())
        refused = made.said[..., 0] == PredictStatus.REFUSED
        smooth = partial(self._smoothed_log, back, rows, made.z_next, refused)
        return EstimationResult.of(
            self.system, self.sensors, self.covariances, rows, made.z_next, made.said, smooth
        )

    def with_noise(
        self, densities: np.ndarray, noise_scale: np.ndarray, *, expected_runs: int = 1
    ) -> Self:
        """Copy at its first estimate with other noise: an argument of functions, which are shared.

        Parameters
        ----------
        densities : ndarray, shape (k,)
            Of the noisy inputs.
        noise_scale : ndarray, shape (M,)
            Factors on the deviations of the measurements.
        expected_runs : int
            How often it is to run, which decides what is worth compiling.
        """
        _ = self._row  # derived once
        made = copy.copy(self)
        made.densities, made.noise_scale = densities, noise_scale
        made._repeats = expected_runs
        made.reset()
        return made

    def another(self) -> Self:
        """A filter like this one, at its first estimate, for another loop at the same time."""
        return self.with_noise(self.densities, self.noise_scale)

    def _loop(self, count: int) -> ModelFunction:
        each = ["t", "dt", "u", "y", "present"]
        return chain(self._row, count, carry=("z", "z_next"), each=each)

    def _evaluate(self, whole: ModelFunction, rows: Rows, start: np.ndarray) -> Any:
        return whole(
            start, rows.t[:, None], rows.dt[:, None], rows.u, rows.y, rows.present, self.p,
            self.densities, self.noise_scale,
        )  # fmt: skip

    # Expressions

    @cached_property
    def _predict(self) -> ModelFunction:
        return self._traced("predict", self._predict_column, ["z", "t", "u", "p", "dt", "q"],
                            {"z_next": (self.layout.size,), "status": ()})  # fmt: skip

    @cached_property
    def _updates(self) -> dict[str, ModelFunction]:
        made = {}
        for k, name in enumerate(self.sensors):
            made[name] = self._traced(
                f"update_{k}",
                lambda z, t, p, y, r, k=k: self._update_column(k, z, t, p, y, r),
                ["z", "t", "p", "y", "r"],
                {"z_next": (self.layout.size,), "said": (Said.size(self._dim(name)),)},
                y=(self.sensors[name].group.nq,),
                r=(),
            )
        return made

    @cached_property
    def _row(self) -> ModelFunction:
        """An interval, then the measurements at its end."""
        bounds = list(self.sensors.values())
        sizes = [bound.group.nq for bound in bounds]
        starts = np.cumsum([0, *sizes]).tolist()

        def row(z, t, dt, u, y, present, p, q, r):
            z, status = self._predict_column(z, t, u, p, dt, q)
            told = [status]
            for k in range(len(bounds)):
                own = y[starts[k] : starts[k + 1]]
                after, said = self._update_column(k, z, t + dt, p, own, r[k])
                here = present[k] > 0
                z = ca.if_else(here, after, z)
                told.append(ca.if_else(here, said, 0.0))
            return [z, ca.vertcat(*told)]

        total = 1 + sum(Said.size(bound.group.dim) for bound in bounds)
        return self._traced(
            "row", row, ["z", "t", "dt", "u", "y", "present", "p", "q", "r"],
            {"z_next": (self.layout.size,), "said": (total,)},
            y=(sum(sizes),), present=(len(bounds),), r=(len(bounds),),
        )  # fmt: skip

    # Backwards

    def smoothed(self, t: float) -> Estimates:
        """The estimate at an earlier time with all that came since: fixed-lag smoothing.

        Parameters
        ----------
        t : float
            Time in s, not longer ago than the filter remembers (``window``); the state at the last
            event before it is returned.

        Returns
        -------
        Estimates
            Of one time.

        Examples
        --------
        >>> from lgcontrol.estimation import EKF
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.systems import Sensor, System
        >>> drift = System("drift", Rn(1), lambda t, x, u, p: u, inputs=["noise"])
        >>> ekf = EKF(drift, [Sensor("y", std_discrete=1.0)], std0=1.0, noise={"noise": 0.1},
        ...           window=2.0)
        >>> for k in range(30):
        ...     ekf.predict(0.1 * k, [0.0], 0.1)
        ...     ekf.update("y", [1.0])
        >>> early, late = ekf.smoothed(1.5), ekf.smoothed(3.0)
        >>> bool(late.x[0, 0] == ekf.x[0]), bool(early.std[0, 0] < late.std[0, 0])
        (True, True)
        """
        now = self.t if self.t is not None else t
        if not (self._past and self._past[0].t - SAME_TIME <= t <= now + SAME_TIME):
            begin = self._past[0].t if self._past else now
            raise ValueError(
                f"{type(self).__name__}.smoothed: t = {t:g} s is not in what the filter remembers, "
                f"{begin:g} to {now:g} s; window is {self.window:g} s"
            )
        back = BackwardPass(self._backward, self.layout, self.p, self.densities)
        after, found, time = self.column, back.last(self.column, self._covariance), now
        for event in reversed(self._past):
            if time <= t + SAME_TIME:
                break
            if event.name is None:
                dt = 0.0 if np.array_equal(after, event.z) else event.dt
                found = back.step_at(event.z, event.t, dt, after, found)
            after, time = event.z, event.t
        return Estimates(
            self.system, np.array([time]), found[None, : self.layout.nq],
            self._plain_covariances, found[None],
        )  # fmt: skip

    def _smoothed_log(
        self, back: BackwardPass, rows: Rows, z: np.ndarray, is_refused: np.ndarray,
        lag: float | None, at: Any,
    ) -> Estimates:  # fmt: skip
        """See `EstimationResult.smooth`."""
        column = back.over(rows, z, is_refused, self._covariance, lag, at)
        t = rows.ends if at is None else rows.ends[at]
        x = column[..., : self.layout.nq]
        return Estimates(self.system, t, x, self._plain_covariances, column)

    def _plain_covariances(self, column: np.ndarray) -> np.ndarray:
        """Covariances in error coordinates of the system, of columns of states and triangles."""
        x, lower = self.layout.unpack(column)
        return self._errors.to_system(x, symmetric(lower))

    @cached_property
    def _backward(self) -> ModelFunction:
        """From the smoothed state after an interval to that before it; states and triangles."""
        size = self.layout.nq + self.layout.triangle
        return self._traced(
            "backward", self._backward_column, ["z", "later", "t", "u", "p", "dt", "q"],
            {"earlier": (size,)}, later=(size,),
        )  # fmt: skip

    def _backward_column(
        self, z: Value, later: Value, t: Value, u: Value, p: Value, dt: Value, q: Value
    ) -> Value:
        x, lower, _, _ = self.layout.split(z)
        x_later, packed = ca.vertsplit(later, [0, self.layout.nq, later.shape[0]])
        P_later = ca.tril2symm(self.layout.lower(packed))
        P = self._full(lower)
        h: Value = self.system.dt or dt
        noise = self._noise_covariance(q, h)
        x_next, P_next, cross = self._crossed(lower, Span(t, x, u, p, h), noise)
        if self.system.is_discrete:
            stepped = dt > h / 2
            x_next = ca.if_else(stepped, x_next, x)
            P_next, cross = (ca.if_else(stepped, M, P) for M in (P_next, cross))
        d_next = self._errors.difference(x_later, x_next)
        # the smoothed error in the chart of the prediction, and at the end back to its own
        J = self._errors.reset_jacobian_inverse(x_next, d_next, p)
        L, D = factor_symmetric(P_next, singular=True)
        K = solve_factored(L, D, cross.T).T
        P = P + K @ (J @ P_later @ J.T - P_next) @ K.T
        d = K @ d_next
        J = self._errors.reset_jacobian(x, d, p)
        x_new = self.system.state.normalize(self._errors.retracted(x, d, p))
        made = ca.vertcat(x_new, ca.project(J @ P @ J.T, ca.Sparsity.lower(P.shape[0])).nz[:])
        return made

    @interruptible
    def export_c(self, folder: str | Path, *, name: str | None = None) -> Path:
        """Write the filter as plain C99 that needs nothing else, for firmware.

        The folder holds a struct with functions that start, predict, correct by each measurement
        and tell the covariance. It also holds an example that replays a run with noise and compares
        it with Python, and a CMakeLists.txt. Gates, weights and statuses are in it; late
        measurements are the caller's to put in order. Noise and parameters are those of now.

        Parameters
        ----------
        folder : path
            New, empty, or exported before; it appears whole or not at all.
        name : str, optional
            Of the files, the functions and the struct; names of system and class if left out.
        """

        def covariance(z: Value) -> Value:
            x, lower, _, _ = self.layout.split(z)
            T = self._errors.to_left(x)
            return ca.densify(T @ self._full(lower) @ T.T)

        n = self.system.n_errors
        P = self._traced("covariance", covariance, ["z"], {"P": (n, n)})
        made = ExportedFilter(
            self.system, self.sensors, self._predict, self._updates, P, self.start(),
            self.p, self.densities, self.noise_scale,
        )  # fmt: skip
        return export_filter(made, folder, name or c_default_name(self.system.name, self))

    def compile(self) -> None:
        """Build machine code for calls one at a time; worth a second where there are thousands."""
        compile_functions([self._predict, *self._updates.values()], batch=False)

    def _traced(
        self, name: str, build: Any, arguments: list[str], results: Any, **shapes: Any
    ) -> ModelFunction:
        system = self.system
        known = {
            "z": (self.layout.size,),
            "t": (),
            "dt": (),
            "u": (system.n_inputs,),
            "p": (system.n_parameters,),
            "q": (len(self._noisy),),
            **shapes,
        }
        label = f"{type(self).__name__}_{name}"
        return trace(label, build, {key: known[key] for key in arguments}, results)

    def _dim(self, name: str) -> int:
        return self.sensors[name].group.dim

    def _predict_column(
        self, z: Value, t: Value, u: Value, p: Value, dt: Value, q: Value
    ) -> list[Value]:
        """Next column, and a `PredictStatus`."""
        x, lower, gates, held = self.layout.split(z)
        usable = [ca.fabs(u[i]) < LARGEST_FINITE for i in range(self.system.n_inputs)]
        taken = [ca.if_else(ok, u[i], held[i]) for i, ok in enumerate(usable)]
        saturated: Value = ca.SX(0)
        for i in self.system.input_index("measured"):
            entry = self.system.inputs[i]
            if isfinite(entry.lower) or isfinite(entry.upper):
                beyond = ca.logic_or(taken[i] <= entry.lower, taken[i] >= entry.upper)
                saturated = ca.logic_or(saturated, beyond)
                taken[i] = ca.fmin(ca.fmax(taken[i], entry.lower), entry.upper)
        given = ca.vertcat(*taken) if taken else held
        h: Value = self.system.dt or dt
        noise = self._noise_covariance(q, h)
        x_next, lower_next = self._predicted(lower, Span(t, x, given, p, h), noise)
        made = self.layout.join(x_next, lower_next, gates, given)
        if self.system.is_discrete:  # its step knows no length: intervals of none are no step
            stays = self.layout.join(x, lower, gates, given)
            made = ca.if_else(dt > h / 2, made, stays)
        fine = self._is_finite(x_next, lower_next)
        missing = ca.logic_not(_all(usable))
        status = ca.if_else(missing, int(PredictStatus.HELD), int(PredictStatus.PREDICTED))
        status = ca.if_else(saturated, int(PredictStatus.SATURATED), status)
        status = ca.if_else(fine, status, int(PredictStatus.REFUSED))
        return [ca.if_else(fine, made, z), status]

    def _update_column(
        self, k: int, z: Value, t: Value, p: Value, y: Value, r: Value
    ) -> list[Value]:
        """Next column, and what is said of the measurement; see `Said`."""
        name = list(self.sensors)[k]
        bound = self.sensors[name]
        x, lower, gates, u = self.layout.split(z)
        at = k + self.layout.sensors
        expected = bound.function(t, x, u, p)
        finite = ca.sumsqr(y) < LARGEST_FINITE
        usable = ca.if_else(finite, y, expected)
        parts = [ca.sumsqr(usable[part]) for part in bound.group.unit_parts]
        on_group = _all([ca.fabs(square - 1) < OFF_UNIT for square in parts])
        usable = bound.group.normalize(usable)
        inside: Value = ca.SX(1)
        if bound.limits is not None:
            inside = _all([*ca.vertsplit(y > bound.limits[0]), *ca.vertsplit(y < bound.limits[1])])
        L = bound.white_factor_at(t, x, u, p) * r
        seen = Reading(bound, t, x, u, p, usable, L @ L.T)
        nu, S = self._innovation(lower, seen)
        said = whiten(S, nu)
        weighed = weigh(
            said, self._dim(name), gates[k], gates[at], self._weights.get(name),
            self._gates.get(name), self.lockout,
        )  # fmt: skip
        x_next, lower_next = self._corrected(
            self._inflated(lower, weighed.inflation), seen._replace(R=weighed.R * seen.R)
        )
        gates[k], gates[at] = weighed.counter, weighed.width
        made = self.layout.join(x_next, lower_next, gates, u)
        stays = self.layout.join(x, lower, gates, u)
        fine = ca.logic_and(said.is_definite, self._is_finite(x_next, lower_next))
        given = _all([finite, on_group, inside])
        status = ca.if_else(fine, weighed.status, int(UpdateStatus.SINGULAR))
        status = ca.if_else(inside, status, int(UpdateStatus.SATURATED))
        status = ca.if_else(on_group, status, int(UpdateStatus.OFF_GROUP))
        status = ca.if_else(finite, status, int(UpdateStatus.NOT_FINITE))
        good = ca.logic_and(given, fine)
        after = ca.if_else(weighed.is_rejected, stays, made)
        told = ca.vertcat(nu, said.vector, said.squared, said.log_density)
        return [ca.if_else(good, after, z), ca.vertcat(ca.if_else(good, told, np.nan), status)]

    # Steps

    def _noise_covariance(self, q: Value, dt: Value) -> Value:
        """Covariance of the noisy inputs, held over dt."""
        return ca.diag(q * q / ca.fmax(dt, SMALLEST_STEP))

    def _step(self, method: str | Method, span: Span) -> tuple[Value, Value, Value]:
        """State after a step; A of the filter's error, and its derivative by the noisy inputs."""
        made = _expanded(step_derivatives(self.system, method, backwards=True))(*span)
        A, G = ca.sparsify(made.A), ca.sparsify(made.B[:, self._noisy])
        if self.error == "right":
            forth = self.system.state.Ad(made.x_next)
            A, G = forth @ A @ self._errors.to_left(span.x), forth @ G
        return made.x_next, A, G

    def _is_finite(self, x: Value, lower: Value) -> Value:
        # not of squares: that of a root is taken for its argument, which may be negative
        return ca.norm_1(ca.vertcat(x, self._witnesses(lower))) < np.sqrt(LARGEST_FINITE)

    # What a filter says

    @abstractmethod
    def _covariance(self, lower: np.ndarray) -> np.ndarray:
        """Covariance of the kept triangle, in the filter's errors."""

    @abstractmethod
    def _lower(self, P: np.ndarray) -> np.ndarray:
        """Triangle to keep of a covariance."""

    def _witnesses(self, lower: Value) -> Value:
        """Entries of a triangle of which one is not finite where any is not."""
        return lower.nz[:]

    @abstractmethod
    def _inflated(self, lower: Value, factor: Value) -> Value:
        """Triangle of the covariance times a factor."""

    @abstractmethod
    def _predicted(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value]:
        """State and triangle after an interval."""

    @abstractmethod
    def _full(self, lower: Value) -> Value:
        """Covariance of the kept triangle, as an expression."""

    @abstractmethod
    def _crossed(self, lower: Value, span: Span, noise: Value) -> tuple[Value, Value, Value]:
        """State and covariance after an interval, and that of the error before with that after."""

    @abstractmethod
    def _innovation(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        """Innovation and its covariance."""

    @abstractmethod
    def _corrected(self, lower: Value, seen: Reading) -> tuple[Value, Value]:
        """State and triangle after a measurement."""


class _LogEntry(NamedTuple):
    """What happened at a time: an interval (no name; inputs), or a measurement; z before it."""

    t: float
    z: np.ndarray
    name: str | None
    value: np.ndarray
    dt: float

    @property
    def end(self) -> float:
        return self.t + self.dt


def _all(claims: list[Value]) -> Value:
    holds: Value = ca.SX(1)
    for claim in claims:
        holds = ca.logic_and(holds, claim)
    return holds


def _expanded(function: ModelFunction) -> Any:
    """The function as one of SX expressions."""
    if function.function.is_a("SXFunction"):
        return function
    try:
        plain = function.function.expand()
    except RuntimeError as error:
        raise ValueError(
            f"{function.name} solves equations, which a filter does not: take an explicit method, "
            'for example method="rk4"'
        ) from error
    return ModelFunction(plain)
