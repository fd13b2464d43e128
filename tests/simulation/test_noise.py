"""Noise: its statistics, its streams, its repetition."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO3, Rn
from lgcontrol.simulation import HeldNoise, InputSignal, WhiteNoise, simulate
from lgcontrol.simulation._random import _key, stream
from lgcontrol.systems import Input, Sensor, System

from ._plants import Feedback, cart, drone

# Sample standard deviations of n normal numbers scatter by 1/√(2n): 4 of those.
SAMPLES = 500
SCATTER = 4 / np.sqrt(2 * SAMPLES)


def walk() -> System:
    """Ẋ = w: a random walk under white noise."""
    return System("walk", Rn(1), lambda t, x, u, p: u, inputs=[Input("w", role="noise")])


def test_held_noise_has_the_given_deviation():
    noise = HeldNoise({"wind": 0.7}, dt=0.01)
    run = simulate(cart(), x0=[0, 0], seconds=0.01 * SAMPLES, disturbances=[noise], max_step=1.0)
    values = run.input("wind")
    assert values.std() == pytest.approx(0.7, rel=SCATTER)
    assert abs(values.mean()) < 4 * 0.7 / np.sqrt(SAMPLES)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / np.sqrt(SAMPLES)


@pytest.mark.parametrize("dt", [0.01, 0.04])
def test_white_noise_makes_a_walk_that_does_not_depend_on_the_hold_time(dt):
    """The variance of the walk after T is density² T, whatever dt."""
    density, T, walks = 0.3, 0.2, 100
    noise = WhiteNoise({"w": density}, dt=dt)
    run = simulate(walk(), x0=[0], seconds=walks * T, disturbances=[noise], dt=T, max_step=1.0)
    at = np.searchsorted(run.t, T * np.arange(walks + 1.0) - 1e-9)
    steps = np.diff(run.x[at, 0])
    assert steps.std() == pytest.approx(density * np.sqrt(T), rel=4 / np.sqrt(2 * walks))
    assert run.u.std() == pytest.approx(density / np.sqrt(dt), rel=4 / np.sqrt(2 * len(run.u)))


def test_sensor_noise_is_drawn_in_tangent_coordinates():
    still = System("still", SO3, lambda t, x, u, p: ca.DM.zeros(3))
    x0 = SO3.random(1)
    sensor = Sensor("star", dt=0.01, std_discrete=[0.01, 0.02, 0.03], bias=[0.1, 0.0, -0.1])
    run = simulate(still, x0=x0, seconds=0.01 * SAMPLES, sensors=[sensor], max_step=1.0)
    errors = SO3.minus(run.measurements["star"].y, x0)
    np.testing.assert_allclose(errors.std(axis=0), [0.01, 0.02, 0.03], rtol=SCATTER)
    np.testing.assert_allclose(
        errors.mean(axis=0), [0.1, 0.0, -0.1], atol=4 * 0.03 / np.sqrt(SAMPLES)
    )


def test_density_of_a_sensor_depends_on_its_rate():
    """0.02 per √Hz at 100 Hz is 0.2, and adds to 0.15 by squares."""
    sensor = Sensor("x", dt=0.01, std_discrete=0.15, density=0.02)
    run = simulate(cart(), x0=[0, 0], seconds=0.01 * SAMPLES, sensors=[sensor], max_step=1.0)
    assert run.measurements["x"].y.std(axis=0) == pytest.approx([0.25, 0.25], rel=SCATTER)


def test_dropout_loses_the_given_share_and_leaves_the_noise_alone():
    whole = Sensor("x", dt=0.01, std_discrete=1.0)
    some = Sensor("x", dt=0.01, std_discrete=1.0, dropout=0.3)
    options = {"x0": [0, 0], "seconds": 0.01 * SAMPLES, "max_step": 1.0}
    all_of_them = simulate(cart(), sensors=[whole], **options).measurements["x"]
    kept = simulate(cart(), sensors=[some], **options).measurements["x"]
    share = len(kept.t) / len(all_of_them.t)
    assert share == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / SAMPLES))
    np.testing.assert_array_equal(kept.y, all_of_them.y[np.isin(all_of_them.t, kept.t)])
    # Which ones are lost has nothing to do with their errors.
    assert abs(kept.y.mean(axis=0)).max() < 4 / np.sqrt(0.7 * SAMPLES)
    np.testing.assert_allclose(kept.y.std(axis=0), 1.0, rtol=SCATTER / np.sqrt(0.7))


def test_the_same_seed_repeats_a_run_bit_by_bit():
    def run(seed):
        return simulate(
            drone(),
            Feedback(np.zeros((4, 13)), dt=0.03),
            x0=drone().state.random(1),
            seconds=0.3,
            sensors=[Sensor("all", dt=0.02, std_discrete=0.1, dropout=0.2)],
            disturbances=[WhiteNoise({"wind_x": 1.0, "wind_y": 1.0}, dt=0.01)],
            seed=seed,
        )

    first, second, other = run(5), run(5), run(6)
    assert first.x.tobytes() == second.x.tobytes()
    assert first.u.tobytes() == second.u.tobytes()
    assert first.measurements["all"].y.tobytes() == second.measurements["all"].y.tobytes()
    assert not np.allclose(first.x[-1], other.x[-1])


def test_sources_do_not_disturb_each_other():
    """Each has its stream: adding, removing, reordering others changes nothing."""
    gps, imu = Sensor("gps", dt=0.1, std_discrete=1.0), Sensor("imu", dt=0.02, std_discrete=1.0)
    wind, push = HeldNoise({"wind": 1.0}, dt=0.05), HeldNoise({"force": 1.0}, dt=0.05)
    swell = InputSignal(lambda t: {"wind": 0.0}, dt=0.03)

    def noises(sensors, disturbances):
        run = simulate(
            cart(), x0=[0, 0], seconds=1, sensors=sensors, disturbances=disturbances, max_step=1.0
        )
        errors = {}
        for name, entry in run.measurements.items():
            true = run.x[np.searchsorted(run.t, entry.t - 1e-9)]
            errors[name] = (entry.y - true).round(9).tolist()
        at = np.searchsorted(run.t, np.arange(20) * 0.05 - 1e-9)
        return errors, run.input("wind")[at].round(9).tolist()

    alone, wind_alone = noises([gps], [wind])
    both, wind_both = noises([imu, gps], [push, swell, wind])
    assert alone["gps"] == both["gps"]
    assert wind_alone == wind_both
    assert both["imu"][:5] != both["gps"][:5]


@pytest.mark.parametrize("seed", [0, 7, 2**32 + 1, 2**128 - 1, 2**130 + 5])
def test_a_stream_is_spawned_from_its_seed(seed):
    known = np.random.SeedSequence(seed, spawn_key=_key(("sensor", "gps")))
    expected = np.random.default_rng(known).integers(2**63, size=4)
    assert stream(seed, "sensor", "gps").integers(2**63, size=4).tolist() == expected.tolist()


def test_a_bias_that_changes_between_runs_is_seen():
    bias = np.zeros(2)

    def run(bias):
        sensor = Sensor("all", dt=0.1, std_discrete=0.1, bias=bias)
        return lambda: simulate(cart(), x0=[0, 0], seconds=1, sensors=[sensor]).measurements["all"]

    again = run(bias)
    first = again().y
    bias[:] = 3.0, -2.0
    np.testing.assert_array_equal(again().y, run([3.0, -2.0])().y)
    np.testing.assert_allclose(again().y - first, np.tile(bias, (len(first), 1)), atol=1e-12)


def test_two_sources_of_one_kind_on_one_input_are_independent():
    two = [HeldNoise({"wind": 1.0}, dt=0.01), HeldNoise({"wind": 1.0}, dt=0.01)]
    run = simulate(cart(), x0=[0, 0], seconds=0.01 * SAMPLES, disturbances=two, max_step=1.0)
    assert run.input("wind").std() == pytest.approx(np.sqrt(2), rel=SCATTER)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        simulate(cart(), x0=[0, 0], seconds=1, seed=seed)
