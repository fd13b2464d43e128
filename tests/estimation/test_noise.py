"""Noise from data: Allan deviation, likelihood of innovations; preintegrated IMU samples."""

import numpy as np
import pytest

from lgcontrol.estimation import (
    EKF,
    FactorGraph,
    Factors,
    Log,
    Preintegration,
    Variables,
    _inertial,
    allan_deviation,
    fit_noise,
    inertial_navigation,
)
from lgcontrol.estimation._internal import preintegrated
from lgcontrol.groups import SE23, SO3, Rn
from lgcontrol.systems import Sensor, System

from ._models import PLACE


def test_allan_deviation_against_its_definition_and_known_noise(rng):
    dt, N = 0.02, 400_000
    white, walk = np.array([0.01, 0.03]), np.array([2e-3, 5e-4])
    steps = walk * np.sqrt(dt) * rng.normal(size=(N, 2))
    signal = white / np.sqrt(dt) * rng.normal(size=(N, 2)) + np.cumsum(steps, axis=0) + 5.0
    found = allan_deviation(signal, dt)
    for k in (3, 12, 25):  # plain averages next to each other
        m = round(found.tau[k] / dt)
        means = signal[: N // m * m].reshape(-1, m, 2).mean(axis=1)
        plain = np.sqrt((np.diff(means, axis=0) ** 2).mean(axis=0) / 2)
        np.testing.assert_allclose(found.deviation[k], plain, rtol=0.05)
    np.testing.assert_allclose(found.density, white, rtol=0.03)
    np.testing.assert_allclose(found.walk, walk, rtol=0.3)
    assert (found.instability < 5e-3).all() and found.deviation.shape == (len(found.tau), 2)
    with pytest.raises(ValueError, match="too few"):
        allan_deviation(np.zeros(5), dt)
    with pytest.raises(ValueError, match="positive seconds"):
        allan_deviation(np.zeros(50), 0.0)


def drifting(rng, seconds=60.0):
    """A cart that is pushed at random, whose place and speed are measured."""
    dt, push, stds = 0.1, 0.4, (0.1, 0.3)
    system = System("cart", Rn(2, ("place", "speed")), lambda t, x, u, p: [x[1], u],
                    inputs=["push"])  # fmt: skip
    t, x, y = dt * np.arange(int(seconds / dt)), np.zeros(2), []
    for _ in t:
        a = push / np.sqrt(dt) * rng.normal()
        x = x + [dt * x[1] + dt**2 / 2 * a, dt * a]
        y.append(x + stds * rng.normal(size=2))
    y = np.array(y)
    measured = {"place": (t + dt, y[:, 0]), "speed": (t[4::5] + dt, y[4::5, 1])}
    speed = Sensor("speed", lambda t, x, u, p: x[1], Rn(1), std_discrete=0.05)
    ekf = EKF(system, [PLACE, speed], std0=1.0, noise={"push": 0.1})
    return ekf, Log(t, np.zeros((len(t), 1)), measured)


def test_likelihood_finds_the_noise(rng):
    """Densities and deviations within what it says of them; two logs are better than one."""
    ekf, log = drifting(rng)
    fit = fit_noise(ekf, log, ["push", "speed"])
    assert abs(np.log(fit.densities["push"] / 0.4)) < 3 * fit.uncertainty["push"] < 0.5
    assert abs(np.log(0.05 * fit.factors["speed"] / 0.3)) < 3 * fit.uncertainty["speed"] < 0.6
    assert fit.log_likelihood > fit.first_log_likelihood + 50
    run = fit.filter.run(log)
    assert run.log_likelihood == pytest.approx(fit.log_likelihood)
    assert 0.85 < run.consistency().nis["speed"] < 1.15
    assert ekf.densities == 0.1 and ekf.noise_scale[1] == 1.0  # the filter itself stays
    before, counts = ekf.x.copy(), {name: dict(count) for name, count in ekf.counts.items()}
    fit.filter.predict(0.0, ekf.system.nominal_input, 0.1)
    fit.filter.update("speed", log.measurements["speed"][1][0])
    assert ekf.counts == counts != fit.filter.counts and np.array_equal(ekf.x, before)
    both = fit_noise(fit.filter, [log, drifting(rng)[1]], ["push"])
    assert both.uncertainty["push"] < 0.85 * fit.uncertainty["push"]
    with pytest.raises(ValueError, match="unknown noise or measurement 'pull'"):
        fit_noise(ekf, log, ["pull"])
    with pytest.raises(ValueError, match="do not overlap"):
        fit_noise(ekf, log, ["push", "push"])


def samples(rng, N=50):
    """Readings of an IMU on a body that tumbles and accelerates."""
    t = 0.01 * np.arange(N)[:, None]
    gyro = np.sin(3 * t + [0, 1, 2]) + 0.02 * rng.normal(size=(N, 3))
    return gyro, 2 * np.cos(2 * t + [0, 2, 1]) + [0, 0, 9.8] + 0.1 * rng.normal(size=(N, 3))


def moved(X, gyro, accelerometer, bias):
    """The navigation model, sample by sample."""
    model = inertial_navigation()
    x, step = (
        model.state.join(body=X, gyro_bias=bias[:3], accelerometer_bias=bias[3:]),
        model.step(),
    )
    u = np.zeros(model.n_inputs)
    for w, a in zip(gyro, accelerometer, strict=True):
        u[:6] = [*w, *a]
        x = step(0.0, x, u, [], 0.01)
    return x[:10]


def test_preintegration_is_the_motion_from_any_state(rng):
    """To the rounding of RK4 for the assumed biases, to second order for others."""
    gyro, accelerometer = samples(rng)
    bias = 0.05 * rng.normal(size=6)
    made = Preintegration.of(gyro, accelerometer, 0.01, bias=bias)
    for _ in range(3):
        X = SE23.random(rng)
        np.testing.assert_allclose(made.predict(X), moved(X, gyro, accelerometer, bias), atol=2e-8)
    errors = []
    for size in (2e-2, 1e-2):
        other = bias + size * np.array([1, -1, 0.5, 1, -0.5, 1])
        exact = moved(X, gyro, accelerometer, other)
        errors.append(np.abs(SE23.minus(exact, made.predict(X, other))).max())
        plain = np.abs(SE23.minus(exact, made.predict(X))).max()
        assert errors[-1] < 0.1 * plain
    assert 3.5 < errors[0] / errors[1] < 4.5
    exact = Preintegration.of(gyro, accelerometer, 0.01, bias=other)
    np.testing.assert_allclose(made.corrected(other), exact.delta, atol=2e-4)


def test_samples_that_last_are_integrated_exactly(rng):
    """One of 0.4 s is forty of 0.01 s with the same readings, also where it turns by 2 rad."""
    gyro, accelerometer = rng.normal(size=3), rng.normal(size=3)
    for size in (1e-9, 1e-3, 1.0, 5.0):
        once = Preintegration.of([size * gyro], [accelerometer], 0.4)
        many = Preintegration.of(
            np.tile(size * gyro, (40, 1)), np.tile(accelerometer, (40, 1)), 0.01
        )
        np.testing.assert_allclose(once.delta, many.delta, atol=1e-14)
        np.testing.assert_allclose(once.jacobian, many.jacobian, atol=1e-14)
        assert once.duration == pytest.approx(many.duration)


def test_a_second_of_samples_is_one_call_of_compiled_code():
    assert _inertial._loop(128).is_compiled
    assert _inertial._step().function.n_instructions() < 6000


def test_its_covariance_is_that_of_the_filter(rng):
    """From a known state an EKF without biases ends with the same one."""
    gyro, accelerometer = samples(rng)
    noise = {"gyro": 0.02, "accelerometer": 0.1}
    made = Preintegration.of(gyro, accelerometer, 0.01, noise=noise)
    model = inertial_navigation(gyro_bias=False, accelerometer_bias=False)
    ekf = EKF(model, [], SE23.random(rng), std0=0.0, noise=noise)
    for k in range(len(gyro)):
        ekf.predict(0.01 * k, [*gyro[k], *accelerometer[k]], 0.01)
    np.testing.assert_allclose(made.covariance, ekf.P, atol=1e-9)


def test_a_graph_of_preintegrated_motions_finds_biases_and_poses(rng):
    """Five stretches of half a second between known attitudes and positions."""
    bias = np.array([0.03, -0.02, 0.01, 0.1, -0.05, 0.08])
    X = [SE23.from_rotation(SO3.random(rng), rng.normal(size=(2, 3)))]
    made = []
    for _ in range(5):
        gyro, accelerometer = samples(rng)
        X.append(moved(X[-1], gyro + 0.0, accelerometer, np.zeros(6)))
        made.append(Preintegration.of(gyro + bias[:3], accelerometer + bias[3:], 0.01,
                                      noise={"gyro": 1e-3, "accelerometer": 1e-2}))  # fmt: skip
    X = np.array(X)
    information = np.linalg.inv([m.covariance for m in made])
    poses = np.r_[0, 1, 2, 3, 4, 5]
    graph = FactorGraph(
        [Variables("body", SE23, SE23.plus(X, 0.1 * rng.normal(size=(6, 9)))),
         Variables("bias", Rn(6), np.zeros((1, 6)))],
        [
            Factors("imu", preintegrated,
                    [("body", poses[:-1]), ("body", poses[1:]), ("bias", [0] * 5)],
                    [m.data() for m in made], information=information),
            Factors("place", lambda X, y: X[:3] - y, [("body", poses)], X[:, :3], std=1e-3),
            Factors("attitude", lambda X, q: SO3.minus(X[6:], q), [("body", poses)], X[:, 6:],
                    std=1e-3),
        ],
    )  # fmt: skip
    found = graph.solve()
    assert found.status == "converged"
    np.testing.assert_allclose(found.x["bias"][0], bias, atol=2e-3)
    assert np.abs(SE23.minus(found.x["body"], X)).max() < 2e-3
    with pytest.raises(ValueError, match="noise of magnetometer"):
        Preintegration.of(gyro, accelerometer, 0.01, noise={"magnetometer": 1.0})
    with pytest.raises(ValueError, match="dt > 0"):
        Preintegration.of(gyro, accelerometer, 0.0)
