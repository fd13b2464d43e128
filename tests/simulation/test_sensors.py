"""Sensors: what they see, when, and what is fed back."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import trace
from lgcontrol.groups import SE3, Rn
from lgcontrol.simulation import Pulse, simulate
from lgcontrol.systems import Sensor

from ._plants import Feedback, cart, drone, swinging


def same(t, x, u, p):
    return x


def test_a_block_by_name():
    plant = drone()
    run = simulate(
        plant, x0=plant.state.random(1), seconds=0.2, sensors=[Sensor("p", "pose", dt=0.1)]
    )
    entry = run.measurements["p"]
    assert entry.group == SE3
    np.testing.assert_allclose(entry.t, [0.0, 0.1, 0.2], rtol=1e-15)
    np.testing.assert_allclose(entry.y, run.block("pose")[[0, 10, 20]])


def test_a_function_of_state_input_time_and_parameters():
    """An accelerometer sees the input held until then, not the one that starts."""
    sensor = Sensor(
        "acceleration",
        dt=0.1,
        h=lambda t, x, u, p: [(u[0] + u[1]) / p[0], t],
        output=Rn(2),
    )
    wind = Pulse({"wind": 3.0}, start=0.2)
    run = simulate(
        cart(), x0=[0, 0], seconds=0.4, sensors=[sensor], disturbances=[wind], p=[4.0]
    )  # fmt: skip
    y = run.measurements["acceleration"].y
    np.testing.assert_allclose(y[:, 0], [0, 0, 0, 0.75, 0.75])
    np.testing.assert_allclose(y[:, 1], [0, 0.1, 0.2, 0.3, 0.4])


def test_a_model_function():
    h = trace("h", lambda t, x, u, p: 2 * x[:1], {"t": (), "x": (2,), "u": (2,), "p": (1,)}, ["y"])
    run = simulate(cart(), x0=[3, 0], seconds=0.1, sensors=[Sensor("x", h, Rn(1), dt=0.1)])
    np.testing.assert_allclose(run.measurements["x"].y, [[6.0], [6.0]])


def test_rates_offsets_and_delays_of_several_sensors():
    """Only what was delivered by the end is there, at the time it was taken."""
    sensors = [
        Sensor("fast", dt=0.02, offset=0.01),
        Sensor("slow", dt=0.1, delay=0.07),
        Sensor("never", dt=0.1, delay=1.0),
    ]
    run = simulate(swinging(), x0=[1, 0], seconds=0.2, sensors=sensors)
    np.testing.assert_allclose(run.measurements["fast"].t, 0.01 + 0.02 * np.arange(10))
    np.testing.assert_allclose(run.measurements["slow"].t, [0.0, 0.1])
    assert run.measurements["never"].t.shape == (0,)
    assert run.measurements["never"].y.shape == (0, 2)
    at = np.searchsorted(run.t, run.measurements["fast"].t - 1e-9)
    np.testing.assert_array_equal(run.measurements["fast"].y, run.x[at])


def test_before_the_first_measurement_the_start_is_what_is_known():
    seen = []

    def control(t, x, reference):
        seen.append(x[0])
        return 1.0

    sensor = Sensor("late", dt=0.2, offset=0.3, bias=[100.0, 0.0])
    simulate(cart(), control, x0=[5, 1], seconds=0.5, dt=0.1, sensors=[sensor])
    np.testing.assert_allclose(seen[:3], 5.0)
    assert seen[3] > 100


def test_the_true_state_can_be_fed_back_beside_sensors():
    control = Feedback([4.0, 3.0], dt=0.1)
    sensors = [Sensor("p", "position", dt=0.05, std_discrete=1.0), Sensor("v", "speed", dt=0.05)]
    options = {"x0": [1, 0], "seconds": 1.0}
    run = simulate(cart(), control, sensors=sensors, feedback="state", **options)
    plain = simulate(cart(), control, **options)
    np.testing.assert_allclose(run.x[-1], plain.x[-1], rtol=0, atol=1e-12)
    assert len(run.measurements["p"].t) == 21


def test_a_controller_cannot_change_the_state_it_is_shown():
    def spiteful(t, x, reference):
        x[:] = 99.0
        return 0.0

    for feedback in ("state", "measurement"):
        run = simulate(
            cart(), spiteful, x0=[1, 0], seconds=0.5, dt=0.1, feedback=feedback,
            sensors=[Sensor("x", dt=0.1)],
        )  # fmt: skip
        assert run.x[-1] == pytest.approx([1.0, 0.0])
        assert run.measurements["x"].y.max() == 1.0


def test_sensors_of_parts_need_an_estimator_to_close_the_loop():
    control, sensors = Feedback([4.0, 3.0], dt=0.1), [Sensor("p", "position", dt=0.1)]
    with pytest.raises(ValueError, match=r"there are: p \(Rn\(1\)\); give an estimator, or feedb"):
        simulate(cart(), control, x0=[1, 0], seconds=1, sensors=sensors)
    run = simulate(cart(), x0=[1, 0], seconds=1, sensors=sensors)  # nothing is fed back
    assert len(run.measurements["p"].t) == 11


@pytest.mark.parametrize(
    ("sensor", "error", "text"),
    [
        (lambda: Sensor("a", "speeed", dt=0.1), KeyError, "sensor 'a': unknown block of the state "
         "'speeed'; valid names are position, speed. Did you mean 'speed'"),
        (lambda: Sensor("a", lambda t, x, u, p: x, dt=0.1), ValueError, "a function h and output"),
        (lambda: Sensor("a", dt=0.1, output=Rn(2)), ValueError, "a function h and output"),
        (lambda: Sensor("a", same, 3, dt=0.1), TypeError, "output must be a LieGroup"),
        (lambda: Sensor("a", same, Rn(3), dt=0.1), ValueError, "sensor 'a' of cart: "
         r"measure returned shape \(2, 1\), expected a column of 3"),
        (lambda: Sensor("a", cart().f, Rn(3), dt=0.1), ValueError, "expected a column of 3"),
        (lambda: Sensor("a", drone().f, Rn(12), dt=0.1), ValueError, r"'x' has shape \(2, 1\)"),
        (lambda: Sensor("a", dt=0.1, std_discrete=[1, 2, 3]), ValueError, r"std_discrete of sensor "
         r"'a' has shape \(3,\), expected \(2,\)"),
        (lambda: Sensor("a", dt=0.1, std_discrete=-1.0), ValueError, "must not be negative"),
        (lambda: Sensor("a", dt=0.1, density=[np.nan, 0]), ValueError, "density of sensor 'a'"),
        (lambda: Sensor("a", dt=0.1, bias="big"), TypeError, "bias of sensor 'a' must be a number"),
        (lambda: Sensor("a", dt=0.1, dropout=1.2), ValueError, "from 0 to 1, got 1.2"),
        (lambda: Sensor("", dt=0.1), ValueError, "names must be non-empty text, got ''"),
        (lambda: "gps", TypeError, r"must be a list of Sensor, as in sensors=\[Sensor"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_before_the_run(sensor, error, text):
    with pytest.raises(error, match=text):
        simulate(cart(), x0=[0, 0], seconds=1, sensors=[sensor()])


def test_two_sensors_of_one_name_are_refused():
    sensors = [Sensor("gps", dt=0.1), Sensor("imu", dt=0.1), Sensor("gps", dt=0.2)]
    with pytest.raises(ValueError, match="two sensors are called 'gps'; names are gps, imu, gps"):
        simulate(cart(), x0=[0, 0], seconds=1, sensors=sensors)


def test_a_function_with_a_stray_symbol_is_refused():
    stray = ca.SX.sym("stray")
    with pytest.raises(ValueError, match="sensor 'a' of cart: .*stray"):
        simulate(
            cart(), x0=[0, 0], seconds=1,
            sensors=[Sensor("a", lambda t, x, u, p: x[:1] + stray, Rn(1), dt=0.1)],
        )  # fmt: skip
