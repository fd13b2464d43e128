"""Pulses, signals and kicks: when, where, how much."""

import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.simulation import (
    HeldNoise,
    InputSignal,
    Kick,
    Pulse,
    SimulationError,
    WhiteNoise,
    simulate,
)
from lgcontrol.systems import Input, Sensor, System

from ._plants import Feedback, cart, drone, swinging

ROUNDING = 1e-12


def test_a_pulse_acts_exactly_as_long_as_it_should():
    """Edges off every grid: the momentum is force times duration."""
    pulse = Pulse({"wind": 3.0}, start=0.1234, duration=0.0555)
    run = simulate(cart(), x0=[0, 0], seconds=1, disturbances=[pulse], dt=0.1)
    assert 2.0 * run.x[-1, 1] == pytest.approx(3.0 * 0.0555, abs=ROUNDING)
    # The record goes on at its own times after an event between them.
    np.testing.assert_allclose(run.t, sorted([*np.arange(11) / 10, 0.1234, 0.1789]))


def test_a_step_stays_and_pulses_on_one_input_add_up():
    pulses = [Pulse({"wind": 1.0}, start=0.2), Pulse({"wind": 2.0}, start=0.4, duration=0.2)]
    run = simulate(cart(), x0=[0, 0], seconds=1, disturbances=pulses, dt=0.2)
    np.testing.assert_allclose(run.input("wind"), [0, 1, 3, 1, 1])


def test_disturbances_add_to_nominal_values():
    plant = System(
        "boat", Rn(1), lambda t, x, u, p: u, inputs=[Input("w", nominal=5.0, role="disturbance")]
    )
    run = simulate(plant, x0=[0], seconds=1, disturbances=[Pulse({"w": -1.0}, 0.5)], dt=0.5)
    np.testing.assert_allclose(run.u[:, 0], [5.0, 4.0])


def test_a_disturbance_on_a_control_adds_to_it_after_saturation():
    wear = Pulse({"force": -0.5}, start=0.0)
    run = simulate(cart(), lambda t, x, r: 7.0, x0=[0, 0], seconds=1, dt=0.5, disturbances=[wear])
    np.testing.assert_allclose(run.input("force"), [4.5, 4.5])
    np.testing.assert_allclose(run.command[:, 0], [7.0, 7.0])


def test_signals_are_sampled_and_held_and_may_leave_inputs_out():
    signal = InputSignal(lambda t: {"wind": 10 * t} if t < 0.3 else {}, dt=0.2)
    run = simulate(cart(), x0=[0, 0], seconds=0.8, disturbances=[signal], dt=0.1)
    np.testing.assert_allclose(run.input("wind"), [0, 0, 2, 2, 0, 0, 0, 0])


def test_a_signal_may_start_late():
    signal = InputSignal(lambda t: {"wind": 1.0}, dt=0.2, offset=0.3)
    run = simulate(cart(), x0=[0, 0], seconds=0.6, disturbances=[signal], dt=0.1)
    np.testing.assert_allclose(run.input("wind"), [0, 0, 0, 1, 1, 1])


def test_a_source_of_ones_own():
    class Ramp:
        dt = 0.25
        inputs = ("wind",)

        def sample(self, t, rng):
            return {"wind": t + 0 * rng.normal()}

    run = simulate(cart(), x0=[0, 0], seconds=1, disturbances=[Ramp()], dt=0.25)
    np.testing.assert_allclose(run.input("wind"), [0, 0.25, 0.5, 0.75])


def test_a_kick_is_a_right_perturbation_of_the_state():
    plant = drone()
    x0 = plant.state.random(4)
    change = {"pose": [0.1, 0.2, 0.3, 0.4, -0.5, 0.6], "twist": [1, 0, -1, 3, -2, 1]}
    run = simulate(plant, x0=x0, seconds=0.2, disturbances=[Kick(0.1, change)], dt=0.1)
    before = simulate(plant, x0=x0, seconds=0.1, dt=0.1).x[-1]
    expected = np.concatenate(list(change.values()))
    np.testing.assert_allclose(plant.state.minus(run.x[1], before), expected, atol=1e-9)


def test_a_kick_of_a_state_without_blocks_is_a_vector():
    run = simulate(swinging(), x0=[0.1, 0], seconds=1, disturbances=[Kick(0.0, [0.0, 1.0])], dt=1)
    np.testing.assert_allclose(run.x[0], [0.1, 1.0])


def test_the_controller_sees_the_state_after_a_kick():
    run = simulate(
        cart(), Feedback([1.0, 0.0], dt=0.5), x0=[0, 0], seconds=1,
        disturbances=[Kick(0.5, {"position": [2.0]})],
    )  # fmt: skip
    np.testing.assert_allclose(run.input("force"), [0.0, -2.0])


def test_kicks_and_pulses_after_the_end_do_not_matter():
    late = [Kick(2.0, {"speed": [1.0]}), Pulse({"wind": 1.0}, start=1.5)]
    with pytest.warns(RuntimeWarning) as told:
        run = simulate(cart(), x0=[0, 0], seconds=1, disturbances=late, dt=0.5)
    assert [str(entry.message) for entry in told] == [
        "the Kick at 2 s has no effect: the run ends at 1 s",
        "the Pulse at 1.5 s has no effect: the run ends at 1 s",
    ]
    assert not run.x.any()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: HeldNoise({"gust": 1.0}, dt=0.1), KeyError, "HeldNoise: unknown input 'gust'; "
         "valid names are force, wind"),
        (lambda: Pulse({"winf": 1.0}, 0.0), KeyError, "Pulse: unknown input.*Did you mean 'wind'"),
        (lambda: Kick(0.1, {"sped": [1.0]}), KeyError, "unknown block 'sped'; valid names are "
         "position, speed"),
        (lambda: Kick(0.1, {"speed": [1.0, 2.0]}), ValueError, r"block 'speed' has shape \(2,\)"),
        (lambda: Kick(0.1, [1.0]), ValueError, r"change of a Kick has shape \(1,\), expected"),
        (lambda: Kick(-0.1, [1.0]), ValueError, "time of a Kick must be 0 or more seconds"),
        (lambda: HeldNoise({"wind": -1.0}, dt=0.1), ValueError, "must not be negative"),
        (lambda: HeldNoise({"wind": 1.0}, dt=0.0), ValueError, "dt of HeldNoise must be a pos"),
        (lambda: WhiteNoise({"wind": 1.0}, dt=0.0), ValueError, "dt of WhiteNoise must be a pos"),
        (lambda: WhiteNoise({"wind": np.nan}, dt=0.1), ValueError, "not finite"),
        (lambda: Pulse({"wind": np.inf}, 0.0), ValueError, "value of 'wind' of a Pulse is not fin"),
        (lambda: Pulse({"wind": 1.0}, 0.0, -1.0), ValueError, "duration of a Pulse must be a pos"),
        (lambda: "storm", TypeError, "'storm' is no disturbance: it needs dt and sample"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_before_the_run(make, error, text):
    with pytest.raises(error, match=text):
        simulate(cart(), x0=[0, 0], seconds=1, disturbances=[make()])


def test_blocks_of_a_state_without_blocks_are_refused():
    with pytest.raises(TypeError, match=r"without named blocks: give the Kick a tangent vector"):
        simulate(swinging(), x0=[0, 0], seconds=1, disturbances=[Kick(0.1, {"rate": [1.0]})])


def test_a_single_disturbance_needs_no_list():
    for one in (
        Kick(0.5, {"speed": [1.0]}),
        Pulse({"wind": 1.0}, 0.5),
        HeldNoise({"wind": 1}, 0.1),
    ):
        runs = [
            simulate(cart(), x0=[0, 0], seconds=1, disturbances=given, dt=0.5)
            for given in (one, [one])
        ]
        assert np.array_equal(runs[0].x, runs[1].x) and runs[0].x[-1].any()


def test_what_a_signal_gives_must_name_inputs():
    with pytest.raises(SimulationError, match="must give a mapping from inputs to values.*not 1.0"):
        simulate(cart(), x0=[0, 0], seconds=1, disturbances=InputSignal(lambda t: 1.0, 0.1))


def test_deviations_are_checked_where_they_are_given():
    with pytest.raises(ValueError, match="std_discrete of sensor 'gps' must not be negative"):
        Sensor("gps", dt=0.1, std_discrete=-1)
    with pytest.raises(ValueError, match="density of sensor 'gps' is not finite"):
        Sensor("gps", dt=0.1, density=[0.1, np.nan])
