"""Delays against linear systems that hold the delayed values as states."""

import numpy as np
import pytest
from scipy.linalg import expm

from lgcontrol.simulation import simulate
from lgcontrol.systems import Sensor

from ._plants import Feedback, cart

ROUNDING = 1e-12  # a few hundred multiplications
GAIN = np.array([[4.0, 3.0]])


def exact_cart(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """The cart with 2 kg over a period with a held force, by the matrix exponential."""
    M = expm(dt * np.array([[0, 1, 0], [0, 0, 0.5], [0, 0, 0]]))
    return M[:2, :2], M[:2, 2:]


@pytest.mark.parametrize("delay", [0, 1, 2, 5])
def test_delay_of_some_periods_equals_an_augmented_system(delay):
    """z = (x, u of the last periods): the oldest one acts, a new one is put in."""
    dt, count = 0.1, 50
    A, B = exact_cart(dt)
    size = 2 + delay
    F = np.zeros((size, size))
    F[:2, :2] = A
    if delay:
        F[:2, 2:3] = B
        F[2:-1, 3:] = np.eye(delay - 1)
        F[-1, :2] = -GAIN
    else:
        F -= B @ GAIN
    z = np.zeros(size)
    z[:2] = [1.0, -0.5]
    expected = [z[:2]]
    for _ in range(count):
        z = F @ z
        expected.append(z[:2])

    run = simulate(
        cart(),
        Feedback(GAIN, dt, delay=delay * dt),
        x0=[1.0, -0.5],
        seconds=count * dt,
        saturate=False,
        max_step=dt,
    )
    np.testing.assert_allclose(run.x, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_delay_of_a_sensor_equals_old_states(delay):
    """The controller sees the state of `delay` periods ago, before that the start."""
    dt, count = 0.1, 30
    A, B = exact_cart(dt)
    states = [np.array([1.0, -0.5])]
    for k in range(count):
        states.append(A @ states[k] - B @ GAIN @ states[max(k - delay, 0)])

    control = Feedback(GAIN, dt)
    run = simulate(
        cart(),
        control,
        x0=states[0],
        seconds=count * dt,
        sensors=[Sensor("late", dt=dt, delay=delay * dt)],
        saturate=False,
        max_step=dt,
    )
    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING)
    # Recorded with the time of measurement; what was still on its way at the end is not there.
    assert len(run.measurements["late"].t) == count + 1 - delay
    np.testing.assert_allclose(run.measurements["late"].y, run.x[: count + 1 - delay])


def test_a_delay_of_a_part_of_a_period():
    """Input of the period before for 40 % of it, the new one for the rest."""
    dt, count, part = 0.1, 30, 0.04
    A1, B1 = exact_cart(part)
    A2, B2 = exact_cart(dt - part)
    x, old, states = np.array([1.0, -0.5]), np.zeros(1), []
    for _ in range(count):
        states.append(x)
        new = -GAIN @ x
        x = A2 @ (A1 @ x + B1 @ old) + B2 @ new
        old = new

    run = simulate(
        cart(), Feedback(GAIN, dt, delay=part), x0=states[0], seconds=count * dt, max_step=dt
    )
    np.testing.assert_allclose(run.x[:-1:2], states, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(run.u[2::2, 0], run.u[1:-1:2, 0])  # held over the next call
