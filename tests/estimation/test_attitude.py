"""The attitude filter of an IMU with a magnetometer, on a made-up log."""

import numpy as np
import pytest

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
    first = model.first(signals[1][:5], signals[2][:5])
    run = model.filter(first).run(model.log(*signals))
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
    samples = np.array([[np.nan, 0.0, 9.8], [0.0, 0.0, 9.8]])
    first = AttitudeHeading(0.01).first(samples, np.tile(NORTH, (2, 1)))
    np.testing.assert_allclose(first[:4], [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    with pytest.raises(ValueError, match="accelerometer: none of the first samples is finite"):
        AttitudeHeading(0.01).first(samples[:1], NORTH)
