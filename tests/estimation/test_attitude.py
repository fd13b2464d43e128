"""The attitude filter of an IMU with a magnetometer, on a made-up log."""

import numpy as np
import pytest
from scipy.signal import lfilter

from lgcontrol.estimation import AttitudeHeading
from lgcontrol.groups import SO3

NORTH = np.array([0.0, 17.0, -42.0])  # µT, x to the east


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
        back @ [0.0, 0.0, 9.80665] + 0.05 * rng.normal(size=(count, 3)),
        np.einsum("nij,nj->ni", back, NORTH + field) + 0.5 * rng.normal(size=(count, 3)),
    )


@pytest.mark.usually(disturbed=[(15.0, 0.0, 10.0)])
@pytest.mark.parametrize("disturbed", [(), (15.0, 0.0, 10.0)], ids=["plain", "disturbed"])
def test_it_keeps_attitude_heading_and_bias(disturbed):
    """In degrees; a magnet near the sensor for three seconds may move the heading a little."""
    q, signals = recording(8.0, 0.01, 1.5, disturbed)
    model = AttitudeHeading(0.01)
    first = model.start(*(one[:5] for one in signals))
    run = model.filter(*first).run(model.log(*signals))
    error = SO3.log(SO3.compose(run.x[-len(q) :, :4], SO3.inverse(q)))  # in the world
    assert np.degrees(np.abs(error[:, :2])).max() < 1.0
    assert np.degrees(np.abs(error[100:, 2])).max() < (8.0 if disturbed else 3.0)
    assert np.abs(run.x[-1, 7:10] - [0.004, -0.003, 0.002]).max() < 2e-3
    # at rest from 1.5 s to 2 s
    rest = run.innovations["zero_rate"].t
    assert 1.4 < rest[0] < 1.6 and 1.9 < rest[-1] < 2.1


def test_rest_is_found_beside_a_bias_and_after_a_broken_sample():
    rng, dt = np.random.default_rng(0), 0.01
    gyro = np.radians([1.2, 1.1, -0.2]) + 2e-3 * rng.normal(size=(600, 3))
    acceleration = [0.0, 0.0, 9.80665] + 0.05 * rng.normal(size=(600, 3))
    gyro[300, 1] = np.nan
    model = AttitudeHeading(dt)
    log = model.log(gyro, acceleration, np.tile(NORTH, (600, 1)))
    found = np.round(log.measurements["zero_rate"][0] / dt).astype(int)
    np.testing.assert_array_equal(found, np.r_[149:300, 451:600])
    gyro += np.radians(3.0)  # a turn that is steady is none
    assert not len(model.log(gyro, acceleration, gyro).measurements["zero_rate"][0])


def test_a_first_state_needs_a_finite_sample():
    samples, still = np.array([[np.nan, 0.0, 9.8], [0.0, 0.0, 9.8]]), np.zeros((2, 3))
    first, _ = AttitudeHeading(0.01).start(still, samples, np.tile(NORTH, (2, 1)))
    np.testing.assert_allclose(first[:4], [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    with pytest.raises(ValueError, match="accelerometer: none of the first samples is finite"):
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
            force = np.diff(v, axis=0) / dt + [0.0, 0.0, 9.80665]
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
