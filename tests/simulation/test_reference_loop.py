"""simulate against loops written out by hand with nothing but plant steps."""

import numpy as np
import pytest

from lgcontrol.simulation import simulate

from ._plants import Feedback, cart, drone, swinging

# The same CasADi instructions on both sides; compiled with fused multiply-adds they may round
# differently.
ROUNDING = 1e-12


def test_one_controller_each_period():
    plant, dt, count = swinging(), 0.05, 40
    control = Feedback([3.0, 1.0], dt)
    run = simulate(
        plant, control, x0=[1.0, 0.0], seconds=count * dt, reference=[0.2, 0.0], method="rk4"
    )

    step, x, states, inputs = plant.step("rk4"), np.array([1.0, 0.0]), [], []
    for k in range(count):
        states.append(x)
        u = -control.gain @ (x - [0.2, 0.0])
        inputs.append(u)
        for j in range(5):  # the longest step is 0.01 s
            x = step(k * dt + j * 0.01, x, u, [], 0.01)
    states.append(x)

    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(run.u, inputs, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(run.t, [k / 20 for k in range(count + 1)])
    assert control.calls == run.t[:-1].tolist()  # none at the end


def test_delay_offset_wind_and_saturation():
    """A controller each 30 ms from 20 ms on, in effect 45 ms later; wind from 0.1 s to 0.255 s."""
    from lgcontrol.simulation import Pulse

    plant, ms = cart(), 1e-3
    control = Feedback([40.0, 8.0], dt=0.03, offset=0.02, delay=0.045)
    run = simulate(
        plant,
        control,
        x0=[0.3, -0.1],
        seconds=0.5,
        disturbances=[Pulse({"wind": 3.0}, start=0.1, duration=0.155)],
        max_step=1.0,
    )

    # Every 5 ms of the clock in turn; simulate moves from event to event.
    step, x, force = plant.step("rk4"), np.array([0.3, -0.1]), 0.0
    arriving: dict[int, float] = {}
    states = {}
    for tick in range(0, 500, 5):
        states[tick] = x
        if tick >= 20 and (tick - 20) % 30 == 0:
            arriving[tick + 45] = float(np.clip(-control.gain @ x, -5.0, 5.0)[0])
        force = arriving.get(tick, force)
        wind = 3.0 if 100 <= tick < 255 else 0.0
        x = step(tick * ms, x, [force, wind], [2.0], 5 * ms)
    states[500] = x

    ticks = np.round(run.t * 1000).astype(int)
    assert set(ticks) > {0, 20, 50, 65, 95, 100, 255, 500}
    # The plant is a double integrator, which RK4 solves exactly whatever the steps.
    expected = [states[tick] for tick in ticks]
    np.testing.assert_allclose(run.x, expected, rtol=0, atol=ROUNDING)
    assert abs(run.u[:, 0]).max() == 5.0 and abs(run.command).max() > 5.0


def test_rates_without_a_common_decimal():
    """A controller at 30 Hz, a disturbance every 10 ms: 300 Hz is the tick of both."""
    from lgcontrol.simulation import InputSignal

    plant = cart()
    control = Feedback([4.0, 3.0], dt=1 / 30)
    wind = InputSignal(lambda t: {"wind": np.sin(7 * t)}, dt=0.01)
    run = simulate(plant, control, x0=[1.0, 0.0], seconds=2, disturbances=[wind], max_step=1.0)

    step, x, u, states = plant.step("rk4"), np.array([1.0, 0.0]), np.zeros(2), []
    for tick in range(600):
        if tick % 10 == 0:
            u = np.array([(-control.gain @ x)[0], u[1]])
        if tick % 3 == 0:
            u = np.array([u[0], np.sin(7 * (tick / 300))])
        if tick % 10 == 0 or tick % 3 == 0:
            states.append(x)
        x = step(tick / 300, x, u, [2.0], 1 / 300)
    states.append(x)

    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING)
    assert control.calls == [k / 30 for k in range(60)]


def test_a_discrete_plant_moves_in_its_samples():
    plant = swinging(dt=0.02)
    control = Feedback([1.0, 0.5], dt=0.1, delay=0.02)
    run = simulate(plant, control, x0=[1.0, 0.0], seconds=1.0, record_dt=0.02)

    x, u, arriving, states = np.array([1.0, 0.0]), np.zeros(1), {}, []
    for k in range(50):
        states.append(x)
        if k % 5 == 0:
            arriving[k + 1] = -control.gain @ x
        u = arriving.get(k, u)
        drive = u[0] + 0.3 * np.cos(3 * 0.02 * k) - np.sin(x[0])
        x = x + 0.02 * np.array([x[1], drive])
    states.append(x)
    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING)


@pytest.mark.usually(max_step=[0.1, 0.004])
@pytest.mark.parametrize("max_step", [0.1, 0.004, 1e-4])
def test_free_motion_in_few_calls_equals_single_steps(max_step):
    """Several steps go through one call; the states are those of single ones."""
    plant, x0 = drone(), drone().state.random(3)
    run = simulate(plant, x0=x0, seconds=0.32, dt=0.02, method="rk4", max_step=max_step)

    each = int(np.ceil(0.02 / max_step))
    step, x, states = plant.step("rk4"), plant.state.normalize(x0), []
    for k in range(16):
        states.append(x)
        for j in range(each):
            x = step(k * 0.02 + j * 0.02 / each, x, plant.nominal_input, [], 0.02 / each)
    states.append(x)
    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING * each)
    np.testing.assert_allclose(run.t, 0.02 * np.arange(17), rtol=1e-15)


def test_more_steps_than_go_into_one_call():
    """300 steps between calls of the controller, in a field that depends on time."""
    plant, control = swinging(), Feedback([3.0, 1.0], dt=0.3)
    run = simulate(plant, control, x0=[1.0, 0.0], seconds=0.6, max_step=0.001, method="rk4")
    step, x = plant.step("rk4"), np.array([1.0, 0.0])
    for k in range(600):
        if k % 300 == 0:
            u = -control.gain @ x
        x = step(0.001 * k, x, u, [], 0.001)
    np.testing.assert_allclose(run.x[-1], x, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("max_step", "steps"), [(0.1, 1), (0.0999, 2), (0.03, 4), (0.025, 4)])
def test_steps_are_equal_and_the_fewest_that_are_short_enough(max_step, steps):
    run = simulate(
        swinging(), Feedback([3.0, 1.0], 0.1), x0=[1.0, 0.0], seconds=0.1, max_step=max_step,
        method="euler",
    )  # fmt: skip
    x, dt = np.array([1.0, 0.0]), 0.1 / steps
    for k in range(steps):
        x = x + dt * np.array([x[1], -3.0 + 0.3 * np.cos(3 * k * dt) - np.sin(x[0])])
    np.testing.assert_allclose(run.x[-1], x, rtol=0, atol=ROUNDING)


def test_a_denser_record_changes_nothing():
    plant, control = swinging(), Feedback([3.0, 1.0], dt=0.05)
    coarse = simulate(plant, control, x0=[1.0, 0.0], seconds=1.0, max_step=0.01)
    fine = simulate(plant, control, x0=[1.0, 0.0], seconds=1.0, max_step=0.01, record_dt=0.01)
    assert len(fine.t) == 101
    np.testing.assert_allclose(fine.x[::5], coarse.x, rtol=0, atol=ROUNDING)


def test_a_record_out_of_step_with_the_controller():
    """Recorded each 40 ms from 0 on, whatever else happens: nothing is lost or doubled."""
    control = Feedback([3.0, 1.0], dt=0.05)
    run = simulate(swinging(), control, x0=[1.0, 0.0], seconds=0.4, record_dt=0.04)
    expected = sorted({*range(0, 401, 50), *range(0, 401, 40)})
    assert np.round(1000 * run.t).astype(int).tolist() == expected


def test_parameters_and_method_reach_the_plant():
    plant = cart()
    heavy = simulate(plant, lambda t, x, r: 1.0, x0=[0, 0], seconds=1, dt=0.1, p=[4.0])
    assert heavy.x[-1] == pytest.approx([0.125, 0.25], abs=ROUNDING)
    euler = simulate(
        plant, lambda t, x, r: 1.0, x0=[0, 0], seconds=1, dt=0.5, method="euler", max_step=0.5
    )
    assert euler.x[-1] == pytest.approx([0.125, 0.5], abs=ROUNDING)  # x lags by a step
