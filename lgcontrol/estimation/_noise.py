"""What a log shows: of the noise, and of the first state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, as_numbers, check_shape, unknown_name
from ..systems import step_derivatives
from ._filter import Filter
from ._given import named
from ._log import Log, Rows

PER_DECADE = 10  # averaging times
FEWEST = 9  # averages that the longest time leaves
FARTHEST = np.log(1e4)  # a density is sought within this factor of what was given
DENSITY_STEP = 1e-3  # of logarithms of densities, for differences
LARGE_SHARE = 0.3  # of the largest entry of a direction, to be named


@dataclass(frozen=True, eq=False)
class AllanDeviation:
    """Deviation of neighbouring averages of a signal at rest, by averaging time.

    Attributes
    ----------
    tau : ndarray, shape (K,)
        Averaging times, s.
    deviation : ndarray, shape (K, n)
        In the unit of the signal.
    density : ndarray, shape (n,)
        White noise, unit/√Hz: ``σ(τ) = density / √τ``. What filters take as noise of the input.
    walk : ndarray, shape (n,)
        Random walk of the bias, unit/s/√Hz: ``σ(τ) = walk √(τ/3)``. What filters take as noise of
        the bias.
    instability : ndarray, shape (n,)
        Flicker floor between the two, ``σ(τ) = instability √(2 ln 2 / π)``.
    """

    tau: np.ndarray
    deviation: np.ndarray
    density: np.ndarray
    walk: np.ndarray
    instability: np.ndarray


@named_options
def allan_deviation(signal: Any, dt: float) -> AllanDeviation:
    """Allan deviation of a signal at rest, and the noise that explains it.

    Overlapping averages at times up to a ninth of the record, ten a decade. Densities follow by
    least squares in shares of the variance, none below zero.

    Parameters
    ----------
    signal : array_like, shape (N,) or (N, n)
        Equally spaced samples, for example of a gyroscope; hours for a random walk.
    dt : float
        s.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> white = 0.02 / np.sqrt(0.01) * rng.normal(size=100_000)  # 0.02 unit/√Hz at 100 Hz
    >>> round(allan_deviation(white, 0.01).density.item(), 3)
    0.02

    References
    ----------
    IEEE Std 952-1997, annex C.
    """
    signal = as_numbers("signal", signal)
    samples = check_shape("signal", signal[:, None] if signal.ndim == 1 else signal, (None, None))
    if not dt > 0:
        raise ValueError(f"dt must be positive seconds, got {dt}")
    N = len(samples)
    longest = N // FEWEST
    if longest < 1:
        raise ValueError(f"{N} samples are too few for an Allan deviation, which needs {FEWEST}")
    count = max(1, int(PER_DECADE * np.log10(longest)) + 1)
    m = np.unique(np.round(np.geomspace(1, longest, count)).astype(int))
    angle = np.vstack([np.zeros(samples.shape[1]), np.cumsum(samples - samples.mean(axis=0), 0)])
    variance = np.array([
        ((angle[2 * k :] - 2 * angle[k:-k] + angle[: -2 * k]) ** 2).mean(axis=0) / (2 * k**2)
        for k in m
    ])  # fmt: skip
    tau = m * dt
    parts = np.column_stack([1 / tau, np.full(len(m), 2 * np.log(2) / np.pi), tau / 3])
    # an average over a time that fits a few times into the record is itself uncertain
    trust = np.sqrt(N / m)
    found = np.array([
        scipy.optimize.nnls(parts / own[:, None] * trust[:, None], trust)[0]
        for own in np.maximum(variance, 1e-300).T
    ])  # fmt: skip
    density, instability, walk = np.sqrt(found).T
    return AllanDeviation(tau, np.sqrt(variance), density, walk, instability)


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """Noise of highest likelihood; made by `fit_noise`.

    Attributes
    ----------
    densities : dict of str to float
        By the names that were asked for: inputs, unit/√Hz.
    factors : dict of str to float
        Of the deviations of measurements, by name.
    uncertainty : dict of str to float
        Deviation of the logarithm of each: 0.1 is 10 %. Infinite where the logs say nothing.
    log_likelihood, first_log_likelihood : float
        With these, and with what was given.
    evaluations : int
        Runs over all logs.
    filter : Filter
        A copy with this noise.
    """

    densities: dict[str, float]
    factors: dict[str, float]
    uncertainty: dict[str, float]
    log_likelihood: float
    first_log_likelihood: float
    evaluations: int
    filter: Filter


@named_options
def fit_noise(
    filter: Filter, logs: Log | Sequence[Log], names: Iterable[str], *,
    x0: Any = None, P0: Any = None, max_iterations: int = 30,
) -> NoiseFit:  # fmt: skip
    """Noise under which the innovations of a filter are most likely; no truth is needed.

    Parameters
    ----------
    filter : Filter
        Its densities are the guess.
    logs : Log or sequence of Log
    names : iterable of str
        What to find: inputs with noise (``"gyro"`` stands for ``"gyro.x"``, …, in the ratio they
        have), and measurements, whose deviations get a factor.
    x0, P0 : array_like, optional
        First estimates of `Filter.run`, for all logs.
    max_iterations : int
        Of BFGS on the logarithms.

    Examples
    --------
    A drift of 0.5 unit/√Hz, and readings with a deviation of 0.2, guessed ten times off:

    >>> from lgcontrol.estimation import EKF
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Sensor, System
    >>> rng, t = np.random.default_rng(0), 0.1 * np.arange(1000)
    >>> drift = System("drift", Rn(1), lambda t, x, u, p: u, inputs=["push"])
    >>> x = np.cumsum(0.5 * np.sqrt(0.1) * rng.normal(size=1000))
    >>> log = Log(t, np.zeros((1000, 1)), {"y": (t + 0.1, x + 0.2 * rng.normal(size=1000))})
    >>> ekf = EKF(drift, [Sensor("y", std_discrete=2.0)], std0=1.0, noise={"push": 0.05})
    >>> fit = fit_noise(ekf, log, ["push", "y"])
    >>> round(fit.densities["push"], 1), round(2.0 * fit.factors["y"], 1)
    (0.5, 0.2)
    """
    all_logs = [logs] if isinstance(logs, Log) else list(logs)
    wanted = list(names)
    noisy = [filter.system.input_names[i] for i in filter._noisy]
    measurements = list(filter.sensors)
    rows: list[tuple[list[int], bool]] = []
    for name in wanted:
        if name in measurements:
            rows.append(([measurements.index(name)], True))
            continue
        some = [i for i in named(name, noisy) if filter.densities[i] > 0]
        if not some:
            known = (*noisy, *measurements)
            raise UnknownNameError(unknown_name("noise or measurement", name, known))
        rows.append((some, False))
    if not wanted or len({(i, kind) for some, kind in rows for i in some}) < sum(
        len(some) for some, _ in rows
    ):
        raise ValueError(f"fit_noise needs names that do not overlap, got {wanted}")
    evaluations = 0

    def with_noise(logarithms: np.ndarray, expected_runs: int = max_iterations) -> Filter:
        densities, noise_scale = filter.densities.copy(), filter.noise_scale.copy()
        for (some, is_measurement), value in zip(rows, np.exp(logarithms), strict=True):
            (noise_scale if is_measurement else densities)[some] *= value
        return filter.with_noise(densities, noise_scale, expected_runs=expected_runs)

    def cost(logarithms: np.ndarray) -> float:
        nonlocal evaluations
        evaluations += 1
        made = with_noise(logarithms)
        total = sum(np.sum(made.run(log, x0, P0).log_likelihood) for log in all_logs)
        return -float(total) if np.isfinite(total) else 1e12

    zero = np.zeros(len(wanted))
    first = cost(zero)

    def slope(at: np.ndarray) -> np.ndarray:
        steps = DENSITY_STEP * np.eye(len(at))
        return np.array([(cost(at + d) - cost(at - d)) / (2 * DENSITY_STEP) for d in steps])

    found = scipy.optimize.minimize(
        cost, zero, jac=slope, method="L-BFGS-B", bounds=[(-FARTHEST, FARTHEST)] * len(wanted),
        options={"maxiter": max_iterations, "ftol": 1e-10, "gtol": 1e-2},
    )  # fmt: skip
    best = found.x if found.fun < first else zero
    h = 20 * DENSITY_STEP  # second differences need longer steps
    steps = h * np.eye(len(zero))
    curvature = np.array([(slope(best + d) - slope(best - d)) / (2 * h) for d in steps])
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    spread = vectors**2 @ np.where(values > 0, 1 / np.maximum(values, 1e-300), np.inf)
    made = with_noise(best, expected_runs=1)
    factors = dict(zip(wanted, np.exp(best).tolist(), strict=True))
    inputs = [(n, some) for n, (some, kind) in zip(wanted, rows, strict=True) if not kind]
    return NoiseFit(
        {name: float(made.densities[some[0]]) for name, some in inputs},
        {name: factors[name] for name in wanted if name in measurements},
        dict(zip(wanted, np.sqrt(spread).tolist(), strict=True)),
        -float(min(found.fun, first)), -first, evaluations, made,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LogObservability:
    """Directions of the first error, from the one a log shows least; made by `observability_along`.

    Attributes
    ----------
    gramian : ndarray, shape (n, n)
        ``Σ Φᵀ Cᵀ R⁻¹ C Φ``: information of all measurements on the first error, in the error
        coordinates of the system, if nothing were random in between.
    ratios : ndarray, shape (n,)
        Deviation that is left of each direction, by that before: one where nothing is shown.
    directions : ndarray, shape (n, n)
        Columns: one deviation of the first estimate along each.
    names : tuple of str
        Of the error coordinates.
    """

    gramian: np.ndarray
    ratios: np.ndarray
    directions: np.ndarray
    names: tuple[str, ...]

    def unseen(self, ratio: float = 0.9) -> list[str]:
        """Directions whose deviation stays above a share, by their largest error coordinates."""
        found = []
        for value, direction in zip(self.ratios, self.directions.T, strict=True):
            if value > ratio:
                large = np.abs(direction) >= LARGE_SHARE * np.abs(direction).max()
                found.append(" ".join(n for n, is_large in zip(self.names, large, strict=True)
                                      if is_large))  # fmt: skip
        return found

    def __str__(self) -> str:
        """One line a direction."""
        lines = []
        for value, direction in zip(self.ratios, self.directions.T, strict=True):
            order = np.argsort(-np.abs(direction))[:3]
            parts = ", ".join(f"{self.names[i]} {direction[i]:+.2g}" for i in order)
            lines.append(f"{value:.3g} of the deviation is left along {parts}")
        return "\n".join(lines)


@named_options
def observability_along(filter: Filter, log: Log, x0: Any = None) -> LogObservability:
    """Which directions of the first state the measurements of a log show, and how well.

    Linearized along the filter's estimates, without noise of the model: what motions excite
    (biases, scales, lever arms) is told from what they do not. Directions are independent in the
    first covariance of the filter.

    Parameters
    ----------
    filter : Filter
        Its first covariance must be positive definite.
    log : Log
        One, without batch axes.
    x0 : array_like, optional
        First estimate instead of the filter's.

    Examples
    --------
    Driving straight, ranges to a beacon ahead do not show the heading; nor the way across:

    >>> from lgcontrol.estimation import EKF, beacon_range, odometry
    >>> cart = odometry()
    >>> ranges = beacon_range(cart, [20.0, 0.0], std_discrete=0.1)
    >>> ekf = EKF(cart, [ranges], std0=0.5, noise={"velocity": 0.1})
    >>> t = 0.1 * np.arange(50)
    >>> log = Log(t, np.tile([1.0, 0, 0], (50, 1)), {"range": (t, (20 - t)[:, None])})
    >>> shown = observability_along(ekf, log)
    >>> shown.unseen(), bool(shown.ratios[-1] < 0.05)
    (['pose.y', 'pose.rz'], True)
    """
    rows = Rows.of(log, filter.system, filter.sensors)
    if rows.batch:
        raise ValueError("observability_along takes one log at a time")
    system, p = filter.system, filter.p
    run = filter.run(log, x0)
    n = system.n_errors
    made = step_derivatives(system, filter.method)
    given = np.where(np.isfinite(rows.u), rows.u, system.nominal_input)
    A = np.broadcast_to(np.eye(n), (len(rows.t), n, n)).copy()
    moves = np.flatnonzero(rows.dt[1:] > 0) + 1
    A[moves] = made(rows.t[moves], run.x[moves - 1], given[moves], p, rows.dt[moves]).A
    information = np.zeros((len(rows.t), n, n))
    for name, bound in filter.sensors.items():
        said = run.innovations[name]
        places = rows.places[name][0][said.is_used]
        if not len(places):
            continue
        C = bound.derivatives(run.t[places], run.x[places], given[places], p).C
        L = np.broadcast_to(bound.white_factor, (len(places), *bound.white_factor.shape))
        if bound.scale is not None:
            scale = bound.scale(run.t[places], run.x[places], given[places], p)
            L = np.reshape(scale, (len(places), -1))[..., None] * L
        white = np.linalg.solve(L, C)
        np.add.at(information, places, np.swapaxes(white, -1, -2) @ white)
    gramian, Phi = np.zeros((n, n)), np.eye(n)
    for own, step in zip(information, A, strict=True):
        Phi = step @ Phi
        gramian += Phi.T @ own @ Phi
    L = np.linalg.cholesky(filter.P0)
    values, vectors = np.linalg.eigh(L.T @ gramian @ L)
    ratios = 1 / np.sqrt(1 + np.maximum(values, 0.0))
    return LogObservability(gramian, ratios, L @ vectors, system.error_names)
