"""The attitude filter of an IMU with a magnetometer, on a made-up log."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.signal import lfilter

from lgcontrol.estimation import AttitudeHeading, Log
from lgcontrol.groups import SO3

NORTH = np.array([0.0, 17.0, -42.0])  # µT, x to the east


@cache
def ahrs(dt):
    """One for all logs, and its filter, which is traced once."""
    model = AttitudeHeading(dt)
    rest = np.zeros((1, 3)), [[0.0, 0.0, 9.81]], NORTH[None]
    return model, model.filter(*model.start(*rest))


def recording(seconds, dt, rate, disturbed=()):
    """Turns about a tilted axis from a rest of two seconds; gyroscope with a bias and noise."""
    rng, count = np.random.default_rng(0), round(seconds / dt)
    t = dt * np.arange(count)
    omega = np.where(t[:, None] > 2, rate * np.array([0.6, 0.0, 0.8]), 0.0)
    q = [SO3.exp([0.3, -0.2, 1.0])]
    for k in range(1, count):
        q.append(SO3.plus(q[-1], dt * omega[k]))
    q = np.array(q)
    back = SO3.matrix(q).swapaxes(-1, -2)
    field = np.where((t[:, None] > 3) & (t[:, None] < 6) & bool(disturbed), disturbed or 0.0, 0.0)
    return q, (
        omega + [0.004, -0.003, 0.002] + 2e-3 * rng.normal(size=(count, 3)),
        back @ [0.0, 0.0, 9.81] + 0.05 * rng.normal(size=(count, 3)),
        np.einsum("nij,nj->ni", back, NORTH + field) + 0.5 * rng.normal(size=(count, 3)),
    )


@pytest.mark.usually(disturbed=[(15.0, 0.0, 10.0)])
@pytest.mark.parametrize("disturbed", [(), (15.0, 0.0, 10.0)], ids=["plain", "disturbed"])
def test_it_keeps_attitude_heading_and_bias(disturbed):
    """In degrees; a magnet near the sensor for three seconds may move the heading a little."""
    q, signals = recording(8.0, 0.02, 1.5, disturbed)
    model, ekf = ahrs(0.02)
    run = ekf.run(model.log(*signals), *model.start(*(one[:5] for one in signals)))
    error = SO3.log(SO3.compose(run.x[-len(q) :, :4], SO3.inverse(q)))  # in the world
    assert np.degrees(np.abs(error[:, :2])).max() < 1.0
    assert np.degrees(np.abs(error[50:, 2])).max() < (3.0 if disturbed else 2.0)
    assert np.abs(run.x[-1, 7:10] - [0.004, -0.003, 0.002]).max() < 2e-3
    # at rest from 1.5 s to 2 s
    rest = run.innovations["zero_rate"].t
    assert 1.4 < rest[0] < 1.6 and 1.9 < rest[-1] < 2.1


def lose(samples, how):
    if how == "frozen":
        samples[:] = samples[0]
    else:
        samples[:] = {"zeros": 0.0}.get(how, np.nan)


def heading_and_deviation(q, run):
    """Errors about the vertical and their stated deviations at the times of the log, degrees."""
    x, P = run.x[-len(q) :], run.P[-len(q) :, :3, :3]
    R = SO3.matrix(x[:, :4])
    turned = np.einsum("nij,nj->ni", R, SO3.minus(q, x[:, :4]))[:, 2]
    return np.degrees(turned), np.degrees(np.sqrt((R @ P @ R.swapaxes(-1, -2))[:, 2, 2]))


@pytest.mark.usually(how=["zeros"])
@pytest.mark.parametrize("how", ["not finite", "zeros", "frozen"])
def test_a_lost_magnetometer_leaves_the_heading_to_the_gyroscope(how):
    """Sixty seconds of a slow turn, the last 56 without a reading; its last one is 12° to 25° off.

    The deviation that is stated stays, and the error is below it; what was lost is counted.
    """
    q, signals = recording(60.0, 0.02, 0.15)
    model, ekf = ahrs(0.02)
    first = model.start(*(one[:5] for one in signals))
    lose(signals[2][200:], how)
    with pytest.warns(RuntimeWarning, match=r"magnetometer: \d+ of 3000 samples, the first at row"):
        log = model.log(*signals)
    run = ekf.run(log, *first)
    error, deviation = heading_and_deviation(q, run)
    assert np.abs(error[200:]).max() < 2.0 and (np.abs(error) < deviation).all()
    assert deviation[-1] > 0.95 * deviation[200]
    assert run.counts["magnetic_heading"]["not finite"] > 2700
    # the field that is usual is not that of zeros: once it is back, the heading is at once
    usual = model.system.state.split(run.x[-1])["field"]
    np.testing.assert_allclose(usual[:2], [17.0, -42.0], atol=1.0)


@pytest.mark.usually(how=["frozen"])
@pytest.mark.parametrize("how", ["not finite", "zeros", "frozen"])
def test_a_lost_accelerometer_leaves_the_vertical_to_the_gyroscope(how):
    q, signals = recording(20.0, 0.02, 0.5)
    model, ekf = ahrs(0.02)
    first = model.start(*(one[:5] for one in signals))
    lose(signals[1][200:], how)
    with pytest.warns(RuntimeWarning, match=r"accelerometer: \d+ of 1000 samples"):
        log = model.log(*signals)
    run = ekf.run(log, *first)
    e, P = SO3.minus(q, run.x[-len(q) :, :4]), run.P[-len(q) :, :3, :3]
    assert np.degrees(np.linalg.norm(e, axis=1)).max() < (4.0 if how == "frozen" else 2.0)
    assert (np.einsum("ni,nij,nj->n", e, np.linalg.inv(P), e)[250:] < 11.3).all()  # 99 % of χ²
    assert run.counts["no_drift"]["not finite"] > 700


def test_a_magnetometer_of_zeros_corrects_nothing_in_calls_either():
    _, ekf = ahrs(0.02)
    ekf.reset()
    u = np.zeros(18)
    u[3:6] = 0.0, 0.0, 9.81
    ekf.predict(0.0, u, 0.02)
    before = ekf.x.copy(), ekf.P.copy()
    ekf.update("magnetic_heading", [0.0, 1.0])
    np.testing.assert_allclose(ekf.x, before[0], atol=1e-9)
    np.testing.assert_allclose(ekf.P, before[1], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g, a, m: m.fill(0.0), "magnetometer: none of the first samples is finite and not"),
        (lambda g, a, m: a.fill(0.0), "accelerometer: none of the first samples is finite and not"),
        (lambda g, a, m: np.copyto(m, [0.0, 0.0, -42.0]), "is parallel to the mean acceleration"),
        (lambda g, a, m: np.copyto(a, a / 9.81), "accelerometer shows 1 m/s² on average"),
        (lambda g, a, m: np.copyto(a, [[9806.65, 0, 0]]), "accelerometer shows 9807 m/s²"),
    ],
    ids=["no field", "no gravity", "vertical field", "g", "mg"],
)
def test_a_start_without_north_or_gravity_is_refused_or_warned_about(change, message):
    signals = np.zeros((5, 3)), np.tile([0.0, 0.0, 9.81], (5, 1)), np.tile(NORTH, (5, 1))
    change(*signals)
    with pytest.raises((ValueError, RuntimeWarning), match=message), warnings.catch_warnings():
        warnings.simplefilter("error")
        ahrs(0.02)[0].start(*signals)


def test_rates_in_degrees_are_warned_about():
    _, (gyro, *vectors) = recording(4.0, 0.02, 1.5)
    with pytest.warns(RuntimeWarning, match="gyro turns at up to 8.* rad/s, more than a sensor"):
        ahrs(0.02)[0].log(np.degrees(gyro), *vectors)


def test_the_bias_is_taken_from_the_rate():
    """A gyroscope that shows its bias stands still; without a heading, ten seconds on it show."""
    model, ekf = ahrs(0.02)
    bias = np.array([0.02, -0.03, 0.025])
    x, u = model.system.state.join(gyro_bias=bias), np.zeros(18)
    u[:3] = bias
    np.testing.assert_array_equal(model.system.f(0.0, x, u, [])[:3], 0.0)
    north, up = np.tile(NORTH, (900, 1)), np.tile([0.0, 0.0, 9.81], (900, 1))
    north[400:] = np.nan
    gyro = bias + 1e-3 * np.random.default_rng(0).normal(size=(900, 3))
    with pytest.warns(RuntimeWarning, match="magnetometer: 500 of 900"):
        log = model.log(gyro, up, north)
    rest = {name: (t[t < 8], y[t < 8]) for name, (t, y) in log.measurements.items()}
    run = ekf.run(Log(log.t, log.u, rest), *model.start(gyro[:5], up[:5], north[:5]))
    assert np.abs(run.x[-1, 7:10] - bias).max() < 1e-3
    assert np.degrees(np.linalg.norm(SO3.log(run.x[-1, :4]))) < 1.0  # 50° with the other sign


def test_rest_is_found_beside_a_bias_and_after_a_broken_sample():
    rng, dt = np.random.default_rng(0), 0.01
    gyro = np.radians([1.2, 1.1, -0.2]) + 2e-3 * rng.normal(size=(600, 3))
    acceleration = [0.0, 0.0, 9.81] + 0.05 * rng.normal(size=(600, 3))
    gyro[300, 1] = np.nan
    model = AttitudeHeading(dt)
    log = model.log(gyro, acceleration, np.tile(NORTH, (600, 1)))
    found = np.round(log.measurements["zero_rate"][0] / dt).astype(int)
    np.testing.assert_array_equal(found, np.r_[149:300, 451:600])
    gyro += np.radians(3.0)  # a turn that is steady is none
    log = model.log(gyro, acceleration, NORTH + rng.normal(size=(600, 3)))
    assert not len(log.measurements["zero_rate"][0])


def test_a_first_state_needs_a_finite_sample():
    samples, still = np.array([[np.nan, 0.0, 9.8], [0.0, 0.0, 9.8]]), np.zeros((2, 3))
    first, _ = AttitudeHeading(0.01).start(still, samples, np.tile(NORTH, (2, 1)))
    np.testing.assert_allclose(first[:4], [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    with pytest.raises(ValueError, match="accelerometer: none of the first samples is finite and"):
        AttitudeHeading(0.01).start(still[:1], samples[:1], NORTH[None])


def test_a_start_in_motion_is_as_far_off_as_it_says(rng):
    """Turns at 3 rad/s with speeds of the usual size that change all the time, 60 starts."""
    dt, runs, model = 0.01, 60, AttitudeHeading(0.01, attitude_std0=1e-3)
    keep = np.exp(-dt / 0.5)
    scores = {}
    for count in (10, 100, 200):
        scores[count] = []
        for _ in range(runs):
            omega = rng.normal(size=3)
            omega *= 3 / np.linalg.norm(omega)
            q = SO3.plus(SO3.random(rng), np.outer(np.arange(count) * dt, omega))
            # speeds of 0.5 m/s with a correlation of 0.5 s, as `velocity_std` means them
            pushes = 0.5 * np.sqrt(1 - keep**2) * rng.normal(size=(count + 300, 3))
            v = lfilter([1.0], [1.0, -keep], pushes, axis=0)
            v = lfilter(np.full(50, 0.02), [1.0], v, axis=0)[-count - 1 :]  # hands have a mass
            back = SO3.matrix(q).swapaxes(-1, -2)
            force = np.diff(v, axis=0) / dt + [0.0, 0.0, 9.81]
            x0, P0 = model.start(
                np.tile(omega, (count, 1)), np.einsum("nij,nj->ni", back, force), back @ NORTH
            )
            e = SO3.minus(q[-1], x0[:4])
            world = SO3.matrix(x0[:4])
            P, e = (world @ P0[:3, :3] @ world.T)[:2, :2], (world @ e)[:2]
            scores[count].append([e @ np.linalg.solve(P, e) / 2, e @ e])
        scores[count] = np.mean(scores[count], axis=0)
    assert scores[100][1] < 0.5 * scores[10][1] and scores[200][1] < 0.5 * scores[100][1]
    assert 0.3 < scores[100][0] < 1.2 and 0.3 < scores[200][0] < 1.2
