"""Smoothing: textbook, on groups, with a fixed lag, one call at a time, singular covariances."""

import numpy as np
import pytest

from lgcontrol.estimation import EKF, UKF, Log, gnss
from lgcontrol.groups import SE2, Rn
from lgcontrol.systems import Sensor

from ._models import PLACE, PLANAR, SPEED
from .test_filters import DT, EXACT, PUSH, cart_log, cart_matrices

ROUNDING = 1e-11
P0 = np.array([[1.0, 0.3], [0.3, 0.5]])
FIX = gnss(PLANAR, lever_arm=[0.5, 0.2], std_discrete=0.3)


def textbook():
    """Log of the cart and its Rauch–Tung–Striebel smoother, written out."""
    t, u, places, speeds = cart_log(np.random.default_rng(2))
    A, B = cart_matrices()
    Q = np.outer(B, B) * PUSH**2 / DT
    x, P = np.array([0.5, 0.2]), P0
    filtered, predicted = [(x, P)], []
    for k in range(60):
        x, P = A @ x + B * u[k, 0], A @ P @ A.T + Q
        predicted.append((x, P))
        rows = [(0, places[k], 0.01)] + ([(1, speeds[k // 3], 0.04)] if k % 3 == 2 else [])
        for row, y, R in rows:
            C = np.eye(2)[row : row + 1]
            K = P @ C.T / (C @ P @ C.T + R)
            x, P = x + K @ (y - C @ x), P - K @ C @ P
        filtered.append((x, P))
    smoothed = [filtered[-1]]
    for k in reversed(range(60)):
        (x, P), (x_next, P_next), (x_later, P_later) = filtered[k], predicted[k], smoothed[-1]
        K = P @ A.T @ np.linalg.inv(P_next)
        smoothed.append((x + K @ (x_later - x_next), P + K @ (P_later - P_next) @ K.T))
    log = Log(t, u, {"place": (t[1:], places), "speed": (t[3::3], speeds)})
    return log, [np.array(part) for part in zip(*smoothed[::-1], strict=True)]


@pytest.mark.parametrize("make", [EKF, UKF])
@pytest.mark.parametrize("error", ["left", "right"])
def test_linear_systems_have_the_textbook_smoother(make, error):
    log, (x, P) = textbook()
    kalman = make(EXACT, [PLACE, SPEED], [0.5, 0.2], P0, noise={"push": PUSH}, error=error)
    found = kalman.run(log).smooth()
    assert repr(found).startswith(
        f"Estimates({kalman.system.name!r}, {len(found.t)} estimates from "
    )
    np.testing.assert_allclose(found.x, x, atol=ROUNDING)
    np.testing.assert_allclose(found.P, P, atol=ROUNDING)


def drive(rng, steps=80, runs=()):
    """A cart on the plane, its log, and first errors."""
    truth, u = [np.array([0.0, 0.0, 1.0, 0.0])], np.array([1.0, 0.0, 0.4])
    for _ in range(steps):
        truth.append(SE2.plus(truth[-1], 0.1 * u))
    truth = np.array(truth)
    t = 0.1 * np.arange(steps + 1)
    noisy = u + 0.2 / np.sqrt(0.1) * rng.normal(size=(*runs, steps + 1, 3))
    R, p = SE2.matrix(truth[5::5])[:, :2, :2], truth[5::5, :2]
    fixes = p + R @ [0.5, 0.2] + 0.3 * rng.normal(size=(*runs, len(p), 2))
    start = SE2.plus(truth[0], 0.3 * rng.normal(size=(*runs, 3)))
    return truth, Log(t, noisy, {"gnss": (t[5::5], fixes)}), start


def test_left_and_right_errors_smooth_alike(rng):
    _, log, start = drive(rng)
    left, right = (
        EKF(PLANAR, [FIX], start, std0=0.3, noise={"velocity": 0.2}, error=error, reset=True)
        .run(log)
        .smooth()
        for error in ("left", "right")
    )
    assert np.abs(PLANAR.error(left.x, right.x)).max() < 1e-9
    np.testing.assert_allclose(left.P, right.P, atol=1e-9)


@pytest.mark.usually(make=[EKF])
@pytest.mark.parametrize("make", [EKF, UKF])
def test_a_smoother_is_better_and_as_good_as_it_says(make, rng):
    truth, log, starts = drive(rng, runs=(60,))
    run = make(PLANAR, [FIX], std0=0.3, noise={"velocity": 0.2}).run(log, starts)
    late = run.smooth()
    at = np.broadcast_to(truth, (60, *truth.shape))
    filtered, smoothed = (np.sqrt((r.error(log.t, at) ** 2).mean()) for r in (run, late))
    assert smoothed < 0.75 * filtered
    assert 0.9 < late.nees(log.t, at).mean() < 1.12
    assert (late.std <= run.std + 1e-9).mean() > 0.95
    assert run.smooth().P.shape == (60, 81, 3, 3)


def test_a_fixed_lag_is_the_smoother_of_the_log_up_to_then(rng):
    _, log, start = drive(rng)
    ekf = EKF(PLANAR, [FIX], start, std0=0.3, noise={"velocity": 0.2}, window=3.0)
    lagged = ekf.run(log).smooth(lag=1.5)
    for k in (0, 22, 40, 79):
        keep = min(k + 15, 80) + 1
        times, fixes = log.measurements["gnss"]
        known = times <= log.t[keep - 1] + 1e-9
        part = Log(log.t[:keep], log.u[:keep], {"gnss": (times[known], fixes[known])})
        whole = ekf.run(part).smooth()
        row = lagged.index(log.t[k])
        np.testing.assert_allclose(lagged.x[row], whole.x[whole.index(log.t[k])], atol=1e-12)
        np.testing.assert_allclose(lagged.P[row], whole.P[whole.index(log.t[k])], atol=1e-12)
    some = ekf.run(log).smooth(lag=1.5, at=[40, 22])
    np.testing.assert_array_equal(some.x, lagged.x[[40, 22]])
    np.testing.assert_array_equal(some.t, lagged.t[[40, 22]])
    # the same, one call at a time
    times, fixes = log.measurements["gnss"]
    for k in range(55):
        ekf.predict(log.t[k], log.u[k], 0.1)
        if (k + 1) % 5 == 0:
            ekf.update("gnss", fixes[k // 5])
    online = ekf.smoothed(ekf.t - 1.5)
    np.testing.assert_allclose(online.x[0], lagged.x[40], atol=1e-12)
    np.testing.assert_allclose(online.P[0], lagged.P[40], atol=1e-12)
    with pytest.raises(ValueError, match="remembers, 2.4 to 5.5 s; window is 3 s"):
        ekf.smoothed(0.5)


def test_certain_directions_stay_certain():
    """No noise and no doubt on one entry, and perfect correlation of two: P is singular."""
    log, _ = textbook()
    sure = EKF(EXACT, [PLACE], [0.5, 0.2], np.diag([1.0, 0.0]), noise={})
    twins = EKF(EXACT, [PLACE], [0.5, 0.2], np.ones((2, 2)), noise={})
    places = {"place": log.measurements["place"]}
    for kalman in (sure, twins):
        run = kalman.run(Log(log.t, log.u, places))
        late = run.smooth()
        assert np.isfinite(late.x).all()
        # nothing is random but the start: one trajectory, that through the last estimate
        for k in range(60):
            onwards = EXACT.step()(0.0, late.x[k], log.u[k], [])
            np.testing.assert_allclose(late.x[k + 1], onwards, atol=1e-9)
        assert (np.linalg.eigvalsh(late.P) > -1e-12).all()


def test_refused_intervals_and_batches_of_logs():
    """An interval whose prediction is not finite is passed over, as the filter did."""
    burst = Sensor("y", lambda t, x, u, p: x, Rn(1), std_discrete=1.0)
    from lgcontrol.systems import System

    system = System("burst", Rn(1), lambda t, x, u, p: u[0] + u[1], inputs=["rate", "noise"])
    ekf = EKF(system, [burst], std0=1.0, noise={"noise": 1.0})
    u = np.zeros((3, 2))
    u[1, 0] = 1e290
    run = ekf.run(Log([0.0, 0.1, 0.2], u, {"y": ([0.1, 0.2], [1.0, 1.0])}))
    assert run.counts["predict"]["refused"] == 1
    late = run.smooth()
    np.testing.assert_allclose(late.x[1:], run.x[[-1, -1]])
    assert late.plot() is not None


def test_a_lag_into_the_past_is_refused():
    log, _ = textbook()
    result = EKF(EXACT, [PLACE, SPEED], [0.5, 0.2], P0, noise={"push": PUSH}).run(log)
    for lag in (-1.0, np.nan):
        with pytest.raises(ValueError, match="lag must be at least 0 s"):
            result.smooth(lag=lag)
    assert (result.smooth(lag=np.inf).x == result.smooth().x).all()
