"""Ready measurements: values by hand, Jacobians against differences on the group."""

import numpy as np
import pytest

from lgcontrol import estimation as est
from lgcontrol.groups import SE2, SE3, SO2, SO3
from lgcontrol.simulation import simulate
from lgcontrol.systems import Sensor

from ._models import CAR, NAVIGATION, VEHICLE

DIFFERENCES = 1e-8  # central differences with steps of 1e-5
ARM, ARM2, BEACON = np.array([0.3, -0.2, 0.5]), np.array([0.3, -0.2]), np.array([4.0, 3.0, 2.0])


def pose(x):
    return SE3.position(x[:7]), SE3.as_rotation_matrix(x[:7])


def plane(x):
    return x[:2], SO2.matrix(x[2:4])


def in_space(function):
    return lambda x, u: function(*pose(x), x)


def in_plane(function):
    return lambda x, u: function(*plane(x), x)


def extended(function):
    return lambda x, u: function(x[:3], SO3.matrix(x[6:10]), x, u)


def unit(v):
    return v / np.linalg.norm(v)


# Measurement -> system, the measurement, its value by hand.
TABLE = {
    "gnss": (VEHICLE, est.gnss(VEHICLE, lever_arm=ARM),
             in_space(lambda p, R, x: p + R @ ARM)),
    "gnss in the plane": (CAR, est.gnss(CAR, lever_arm=ARM2),
                          in_plane(lambda p, R, x: p + R @ ARM2)),
    "gnss on the extended pose": (NAVIGATION, est.gnss(NAVIGATION, lever_arm=ARM),
                                  extended(lambda p, R, x, u: p + R @ ARM)),
    "altimeter": (VEHICLE, est.altimeter(VEHICLE, lever_arm=ARM, bias="bias"),
                  in_space(lambda p, R, x: (p + R @ ARM)[2:] + x[13])),
    "depth": (VEHICLE, est.depth(VEHICLE), in_space(lambda p, R, x: -p[2:])),
    "magnetometer": (VEHICLE, est.magnetometer(VEHICLE, BEACON, bias="beacon"),
                     in_space(lambda p, R, x: R.T @ BEACON + x[15:18])),
    "dvl": (VEHICLE, est.dvl(VEHICLE, lever_arm=ARM),
            in_space(lambda p, R, x: x[7:10] + np.cross(x[10:13], ARM))),
    "dvl in the plane": (CAR, est.dvl(CAR, lever_arm=ARM2),
                         in_plane(lambda p, R, x: x[4:6] + x[6] * np.array([-ARM2[1], ARM2[0]]))),
    "dvl on the extended pose": (NAVIGATION, est.dvl(NAVIGATION, lever_arm=ARM),
                                 extended(lambda p, R, x, u: R.T @ x[3:6]
                                          + np.cross(u[:3] - x[10:13], ARM))),
    "imu": (VEHICLE, est.imu(VEHICLE, gravity=9.8),
            lambda x, u: np.r_[x[10:13], u[:3] + np.cross(x[10:13], x[7:10])
                               + 9.8 * pose(x)[1][2]]),
    "zero velocity": (NAVIGATION, est.zero_velocity(NAVIGATION, axes="yz"),
                      extended(lambda p, R, x, u: (R.T @ x[3:6])[1:])),
    "zero velocity in the world": (VEHICLE, est.zero_velocity(VEHICLE, frame="world"),
                                   in_space(lambda p, R, x: R @ x[7:10])),
    "wheel odometry": (CAR, est.wheel_odometry(CAR, 0.1, 0.6),
                       in_plane(lambda p, R, x: np.array([x[4] - 0.3 * x[6],
                                                          x[4] + 0.3 * x[6]]) / 0.1)),
    "beacon range": (VEHICLE, est.beacon_range(VEHICLE, BEACON, lever_arm=ARM, bias="bias",
                                               scale="scale"),
                     in_space(lambda p, R, x: (1 + x[14]) * np.linalg.norm(
                         BEACON - p - R @ ARM, keepdims=True) + x[13])),
    "range of an unknown beacon": (CAR, est.beacon_range(CAR, "beacon"),
                                   in_plane(lambda p, R, x: np.linalg.norm(x[7:] - p,
                                                                           keepdims=True))),
    "bearing": (VEHICLE, est.bearing(VEHICLE, BEACON),
                in_space(lambda p, R, x: unit(R.T @ (BEACON - p)))),
    "bearing in the plane": (CAR, est.bearing(CAR, "beacon"),
                             in_plane(lambda p, R, x: unit(R.T @ (x[7:] - p)))),
    "landmark": (CAR, est.landmark_position(CAR, "beacon"),
                 in_plane(lambda p, R, x: R.T @ (x[7:] - p))),
    "relative pose": (VEHICLE, est.relative_pose(VEHICLE, "pose", "other"),
                      lambda x, u: SE3.compose(SE3.inverse(x[:7]), x[18:25])),
    "encoders": (VEHICLE, est.encoders(VEHICLE, "arm", resolution=0.01), lambda x, u: x[25:]),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_values_by_hand_and_jacobians_against_differences(case):
    system, measurement, by_hand = TABLE[case]
    bound, step = measurement.bind(system), 1e-5
    rng = np.random.default_rng(0)
    for seed in range(3):
        x, u = system.state.random(seed), rng.normal(size=system.n_inputs)
        made = bound.derivatives(0.0, x, u, [])
        np.testing.assert_allclose(bound.group.minus(made.y, by_hand(x, u)), 0, atol=1e-11)
        C = [
            bound.group.minus(
                bound.function(0.0, system.retract(x, step * e), u, []),
                bound.function(0.0, system.retract(x, -step * e), u, []),
            )
            / (2 * step)
            for e in np.eye(system.n_errors)
        ]
        np.testing.assert_allclose(made.C, np.transpose(C), atol=DIFFERENCES)


def test_a_compass_sees_yaw_and_nothing_else():
    system = est.inertial_navigation()
    compass = _with_field(system)
    bound = est.magnetic_heading(compass).bind(compass)
    x, step = compass.state.random(3), 1e-5
    R = SO3.matrix(x[6:10])
    u = np.concatenate([np.zeros(system.n_inputs), R.T @ [0.0, 20.0, -45.0]])
    made = bound.derivatives(0.0, x, u, [])
    np.testing.assert_allclose(SO2.log(made.y), np.pi / 2)  # from x to y: north of an ENU frame
    yaw = np.zeros(15)
    yaw[6:9] = R.T @ [0.0, 0.0, 1.0]
    turned = bound.function(0.0, compass.state.plus(x, step * yaw), u, [])
    np.testing.assert_allclose(made.C @ yaw, SO2.minus(turned, made.y) / step, atol=1e-4)
    tilts = np.linalg.svd(made.C)[2][1:]
    np.testing.assert_allclose(tilts @ yaw, 0, atol=1e-12)  # the one row is along yaw
    np.testing.assert_allclose(np.abs(made.C @ yaw), 1.0)


def _with_field(system):
    from lgcontrol.systems import Input, System

    field = [Input(f"magnetometer.{axis}", "µT", role="measured") for axis in "xyz"]
    n = system.n_inputs
    return System(
        "with_field", system.state, lambda t, x, u, p: system.f(t, x, u[:n], p),
        inputs=[*system.inputs, *field],
    )  # fmt: skip


def test_noise_that_depends_on_the_state_and_correlated_noise():
    """Drawn with the factor and the correlation they are weighed by."""
    far = Sensor(
        "fix", "pose", std_discrete=0.1, scale=lambda t, x, u, p: 1 + x[0] ** 2, dt=0.1,
        correlation_time=1.0,
    )  # fmt: skip
    bound = far.bind(CAR)
    np.testing.assert_allclose(bound.white_factor, 0.1 * np.sqrt(20) * np.eye(3))
    rng, x = np.random.default_rng(0), CAR.state.identity
    x[0] = 2.0
    drawn = [bound.draw(0.0, x, np.zeros(3), [], rng) for _ in range(2000)]
    spread = SE2.minus(np.array(drawn), x[:4]).std(axis=0)
    np.testing.assert_allclose(spread, 0.5, rtol=4 / np.sqrt(2 * 2000))
    run = simulate(CAR, None, x0=CAR.state.identity, seconds=400, dt=0.1, sensors=[far])
    error = SE2.log(run.measurements["fix"].y)
    lag = (error[1:] * error[:-1]).mean(axis=0) / (error**2).mean(axis=0)
    np.testing.assert_allclose(lag, np.exp(-0.1), atol=0.05)  # 4000 samples of 20 correlated ones
    np.testing.assert_allclose(error.std(axis=0), 0.1, rtol=0.2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: est.gnss(VEHICLE, "pos"), "Did you mean 'pose'"),
        (lambda: est.gnss(VEHICLE, "twist"), "is on Rn\\(6\\), expected one of SE2"),
        (lambda: est.altimeter(CAR), "has no block on SE3, SE23, SO3"),
        (lambda: est.gnss(CAR, lever_arm=ARM), "lever_arm"),
        (lambda: est.zero_velocity(CAR, axes="q"), "letters of 'xy'"),
        (lambda: est.zero_velocity(VEHICLE, frame="hybrid"), "valid names are body, world"),
        (lambda: est.relative_pose(VEHICLE, "pose", "arm"), "not the same group"),
        (lambda: est.beacon_range(VEHICLE, BEACON, bias="bais"), "Did you mean 'bias'"),
        (lambda: est.dvl(VEHICLE, twist="arm"), "not a twist of SE3"),
        (lambda: Sensor("a", "pose", correlation_time=1.0), "correlation_time needs dt"),
        (
            lambda: Sensor("a", "pose", scale=lambda t, x, u, p: x[:2]).bind(CAR),
            "scale returned 2 factors",
        ),
        (
            lambda: Sensor("a", "pose", directions=lambda t, x, u, p: x[:2]).bind(CAR)
            .derivatives,
            "a row for each of pose.x",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(make, message):
    with pytest.raises((ValueError, KeyError), match=message):
        make()
