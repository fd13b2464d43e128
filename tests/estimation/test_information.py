"""What logs show of their first state: against the filter without noise, and by hand."""

import numpy as np
import pytest

from lgcontrol.estimation import EKF, Log, gnss, inertial_navigation, observability_along

from ._models import PLACE, SPEED
from .test_filters import DT, EXACT, cart_log

P0 = np.array([[1.0, 0.3], [0.3, 0.5]])


def test_without_noise_the_gramian_is_what_the_filter_learns():
    """Its covariance at the end, moved back to the start."""
    t, u, places, speeds = cart_log(np.random.default_rng(0), 9)
    log = Log(t, u, {"place": (t[1:], places), "speed": (t[3::3], speeds)})
    ekf = EKF(EXACT, [PLACE, SPEED], [0.5, 0.2], P0)
    shown = observability_along(ekf, log)
    A = np.linalg.matrix_power(EXACT.linearize(np.zeros(2), np.zeros(2)).A, 9)
    back = np.linalg.inv(A)
    end = ekf.run(log).P[-1]
    first = np.linalg.inv(np.linalg.inv(P0) + shown.gramian)
    np.testing.assert_allclose(first, back @ end @ back.T, atol=1e-12)
    # one deviation along each direction, and what is left of it
    np.testing.assert_allclose(shown.directions @ shown.directions.T, P0, atol=1e-14)
    kept = shown.directions * shown.ratios
    np.testing.assert_allclose(kept @ kept.T, first, atol=1e-14)
    assert DT == 0.1 and not shown.unseen() and "is left along" in str(shown)


@pytest.mark.parametrize("is_turning", [False, True])
def test_yaw_of_an_inertial_system_needs_acceleration(is_turning):
    """At rest, fixes show the tilt but never the heading; on a circle they show both."""
    ins = inertial_navigation(gyro_bias=False, accelerometer_bias=False)
    t = 0.1 * np.arange(60)
    u = np.tile([0.0, 0, 0, 0, 0, 9.80665], (60, 1))
    if is_turning:  # 2 m/s, half a radian a second
        u[:, 2], u[:, 4] = 0.5, 1.0
    start = ins.state.identity
    start[3] = 2.0 * is_turning
    # fixes where it comes by without noise: the linearization stays on its way
    ekf = EKF(ins, [gnss(ins, std_discrete=0.1)], start, std0=0.3)
    way = ekf.run(Log(t, u)).x[1:]
    log = Log(t, u, {"gnss": (t[5::5], way[4::5, :3])})
    unseen = observability_along(ekf, log).unseen()
    assert unseen == ([] if is_turning else ["body.rz"])
