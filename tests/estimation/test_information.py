"""What logs show of their first state: against the filter without noise, and by hand."""

import numpy as np
import pytest

from lgcontrol.estimation import (
    EKF,
    Log,
    gnss,
    inertial_navigation,
    landmark_position,
    observability_along,
)
from lgcontrol.groups import SEK2, SEK3, Product
from lgcontrol.systems import System

from ._models import PLACE, SPEED
from .test_filters import DT, EXACT, cart_log

P0 = np.array([[1.0, 0.3], [0.3, 0.5]])


def test_without_noise_the_gramian_is_what_the_filter_learns():
    """Its covariance at the end, moved back to the start."""
    t, u, places, speeds = cart_log(np.random.default_rng(0), 9)
    log = Log(t, u, {"place": (t[1:], places), "speed": (t[3::3], speeds)})
    ekf = EKF(EXACT, [PLACE, SPEED], [0.5, 0.2], P0, noise={})
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
    u = np.tile([0.0, 0, 0, 0, 0, 9.81], (60, 1))
    if is_turning:  # 2 m/s, half a radian a second
        u[:, 2], u[:, 4] = 0.5, 1.0
    start = ins.state.identity
    start[3] = 2.0 * is_turning
    # fixes where it comes by without noise: the linearization stays on its way
    ekf = EKF(ins, [gnss(ins, std_discrete=0.1)], start, std0=0.3, noise={})
    way = ekf.run(Log(t, u)).x[1:]
    log = Log(t, u, {"gnss": (t[5::5], way[4::5, :3])})
    unseen = observability_along(ekf, log).unseen()
    assert unseen == ([] if is_turning else ["body.rz"])


@pytest.mark.usually(group=(SEK2(3),))
@pytest.mark.parametrize("group", [SEK2(3), SEK3(3)], ids=str)
def test_what_turns_and_moves_the_whole_map_is_seen_by_nobody(group, rng):
    """A robot and two landmarks; only the right error without a reset knows that."""
    count = group.dim
    mapping = System(
        "mapping", Product(map=group), lambda t, x, u, p: u,
        inputs=[f"motion.{name}" for name in group.tangent_names],
    )  # fmt: skip
    seen = [landmark_position(mapping, k, name=f"l{k}", std_discrete=0.1) for k in (1, 2)]
    P0 = 0.25 * np.eye(count)
    truth = group.random(rng)
    x0 = group.plus(truth, 0.3 * rng.normal(size=count))
    size = group.point_size // 3
    turns = count - 3 * size
    moved = np.vstack([np.tile(np.eye(size), (3, 1)), np.zeros((turns, size))])
    turned = np.vstack([np.zeros((3 * size, turns)), np.eye(turns)])
    whole = np.hstack([moved, turned])  # of errors on the right

    def known(ekf):
        to_right = group.Ad(ekf.x)
        P = to_right @ ekf.P @ to_right.T
        return np.einsum("ik,ij,jk->k", whole, np.linalg.inv(P), whole)

    def gained(**options):
        ekf = EKF(mapping, seen, x0, P0, noise={}, **options)
        before, x = known(ekf), truth
        own = np.random.default_rng(1)
        for k in range(6):
            step = np.r_[0.5 * own.normal(size=size), np.zeros(2 * size), 0.3 * np.ones(turns)]
            x = group.plus(x, 0.5 * step)
            ekf.predict(0.5 * k, step, 0.5)
            for measurement in seen:
                y = ekf.sensors[measurement.name].function(0.0, x, step, [])
                ekf.update(measurement.name, y + 0.1 * own.normal(size=size))
        return (known(ekf) - before) / before

    assert np.abs(gained(error="right")).max() < 1e-9
    assert gained(error="right", reset=True).max() > 1e-3
    assert gained(error="left", reset=False).max() > 1e-3
