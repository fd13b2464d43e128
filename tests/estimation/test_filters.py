"""Filters: textbook, left against right, with and without reset, by hand, one by one, in a loop."""

import numpy as np
import pytest
import scipy

from lgcontrol.estimation import EKF, UKF, EstimationResult, Log, gnss, zero_velocity
from lgcontrol.groups import SE23, SO3, Rn
from lgcontrol.systems import Sensor, System

from ._models import ATTITUDE, FIELD, GRAVITY, NAVIGATION, PLACE, attitude_log

ROUNDING = 1e-12
DT, PUSH = 0.1, 0.3


def cart_matrices():
    """Exact step of the cart for held inputs, by the matrix exponential."""
    M = scipy.linalg.expm(DT * np.array([[0, 1, 0], [0, -0.3, 1], [0, 0, 0]]))
    return M[:2, :2], M[:2, 2]


def increment(t, x, u, p):
    A, B = cart_matrices()
    return A @ x + B * (u[0] + u[1]) - x


EXACT = System("exact", Rn(2), increment, inputs=["force", "push"], dt=DT)
VARIANTS = {"EKF": (EKF, {}), "UKF": (UKF, {}), "iterated": (EKF, {"iterations": 3}),
            "without reset": (EKF, {"reset": False}),
            "square root": (EKF, {"square_root": True})}  # fmt: skip


def cart_log(rng, steps=60):
    t = DT * np.arange(steps + 1)
    u = np.stack([np.sin(t), 0 * t], axis=1)
    return t, u, rng.normal(size=(steps, 1)), rng.normal(size=(steps // 3, 1))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("error", ["left", "right"])
def test_linear_systems_have_the_textbook_filter(variant, error):
    make, options = VARIANTS[variant]
    t, u, places, speeds = cart_log(np.random.default_rng(0))
    place = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
    speed = Sensor("speed", lambda t, x, u, p: x[1], Rn(1), std_discrete=0.2)
    P0 = np.array([[1.0, 0.3], [0.3, 0.5]])
    kalman = make(EXACT, [place, speed], [0.5, 0.2], P0, noise={"push": PUSH}, error=error,
                  **options)  # fmt: skip
    A, B = cart_matrices()
    x, P, H = np.array([0.5, 0.2]), P0, np.eye(2)
    for k in range(60):
        kalman.predict(t[k], u[k], DT)
        x, P = A @ x + B * u[k, 0], A @ P @ A.T + np.outer(B, B) * PUSH**2 / DT
        for name, due, row, y, R in (
            ("place", True, 0, places[k], 0.01),
            ("speed", k % 3 == 2, 1, speeds[k // 3], 0.04),
        ):
            if due:
                kalman.update(name, y)
                C = H[row : row + 1]
                K = P @ C.T / (C @ P @ C.T + R)
                x, P = x + K @ (y - C @ x), P - K @ C @ P
        np.testing.assert_allclose(kalman.x, x, atol=ROUNDING)
        np.testing.assert_allclose(kalman.P, P, atol=ROUNDING)
    log = Log(t, u, {"place": (t[1:], places), "speed": (t[3::3], speeds)})
    run = kalman.run(log)
    np.testing.assert_allclose(run.x[-1], x, atol=ROUNDING)
    np.testing.assert_allclose(run.P[-1], P, atol=ROUNDING)


@pytest.mark.parametrize("make", [EKF, UKF])
def test_log_likelihoods_add_up_to_that_of_all_measurements_at_once(make):
    """The density of all of them together, from the covariance of the whole motion."""
    t, u, places, _ = cart_log(np.random.default_rng(1), 20)
    P0 = np.diag([1.0, 0.5])
    kalman = make(EXACT, [PLACE], P0=P0, noise={"push": PUSH})
    run = kalman.run(Log(t, u, {"place": (t[1:], places)}))
    A, B = cart_matrices()
    x, factor = np.zeros(2), np.linalg.cholesky(P0)
    means, rows = [], []
    for k in range(20):
        x = A @ x + B * u[k, 0]
        factor = np.column_stack([A @ factor, B * PUSH / np.sqrt(DT)])
        means.append(x[0])
        rows.append(factor[0])
    L = np.zeros((20, 22))
    for k, row in enumerate(rows):
        L[k, : len(row)] = row
    S = L @ L.T + 0.01 * np.eye(20)
    off = places.ravel() - means
    expected = -(off @ np.linalg.solve(S, off) + np.linalg.slogdet(2 * np.pi * S)[1]) / 2
    assert abs(run.log_likelihood - expected) < 1e-9


def navigation_filter(cls=EKF, **options):
    return cls(
        NAVIGATION,
        [gnss(NAVIGATION, lever_arm=[0.3, 0.1, 0.5], std_discrete=0.3),
         zero_velocity(NAVIGATION, axes="yz", std_discrete=0.1)],
        NAVIGATION.state.join(body=SE23.random(3)),
        std0={"body": 0.3, "gyro_bias": 0.05, "accelerometer_bias": 0.2},
        noise={"gyro": 0.01, "accelerometer": 0.05, "gyro_bias_walk": 1e-3,
               "accelerometer_bias_walk": 1e-2},
        method="euler", **options,
    )  # fmt: skip


def navigation_log(steps=40):
    rng = np.random.default_rng(2)
    t = 0.05 * np.arange(steps)
    u = np.concatenate([0.3 * rng.normal(size=(steps, 3)), rng.normal(size=(steps, 3))], axis=1)
    fixes = NAVIGATION.state.join(body=SE23.random(3))[:3] + rng.normal(size=(steps // 4, 3))
    slips = 0.1 * rng.normal(size=(steps // 2, 2))
    return Log(t, u, {"gnss": (t[3::4], fixes), "zero_velocity": (t[1::2], slips)})


@pytest.mark.usually(options=[{"gate": 0.9, "robust": "huber"}])
@pytest.mark.parametrize("options", [{}, {"iterations": 3}, {"gate": 0.9, "robust": "huber"}])
def test_with_the_reset_left_and_right_are_one_filter(options):
    """States and covariances, which are reported about the same error."""
    log = navigation_log()
    left, right = (
        navigation_filter(error=e, reset=True, **options).run(log) for e in ("left", "right")
    )
    assert np.abs(NAVIGATION.error(left.x, right.x)).max() < 1e-10
    scale = np.abs(left.P).max()
    assert np.abs(left.P - right.P).max() < 1e-11 * scale
    np.testing.assert_array_equal(left.innovations["gnss"].status, right.innovations["gnss"].status)


def test_without_the_reset_they_are_not():
    _, gyro, seen = attitude_log(np.random.default_rng(2), 15, 0.05, std=0.3, bias_std=0.1)
    t = 0.05 * np.arange(15)
    log = Log(t, np.concatenate([gyro, 0 * gyro], axis=1),
              {name: (t + 0.05, y) for name, y in seen.items()})  # fmt: skip
    runs = [
        EKF(ATTITUDE, [GRAVITY, FIELD], std0=0.5, noise={"gyro": 0.01, "walk": 1e-3},
            method="euler", **options).run(log).x[-1]
        for options in ({"reset": False}, {"reset": False, "error": "right"}, {})
    ]  # fmt: skip
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(ATTITUDE.error(runs[a], runs[b])).max() > 1e-4


@pytest.mark.usually(make=[EKF])
@pytest.mark.parametrize("make", [EKF, UKF])
def test_calls_one_at_a_time_and_the_loop_over_the_log_agree(make):
    rng = np.random.default_rng(7)
    _, gyro, seen = attitude_log(rng, 30, 0.02, std=0.3, bias_std=0.1)
    t, u = 0.02 * np.arange(30), np.concatenate([gyro, 0 * gyro], axis=1)
    single = make(ATTITUDE, [GRAVITY, FIELD], std0=0.5, noise={"gyro": 0.01, "walk": 1e-3},
                  method="euler", gate=0.5, robust="cauchy")  # fmt: skip
    log = Log(
        t, u, {"gravity": (t + 0.02, seen["gravity"]), "field": (t[1::3], seen["field"][::3])}
    )
    whole = single.run(log)
    single.compile()
    for k in range(30):
        if k % 3 == 1:
            single.update("field", seen["field"][k // 3 * 3], t=t[k])
        single.predict(t[k], u[k], 0.02)
        single.update("gravity", seen["gravity"][k])
    np.testing.assert_allclose(single.x, whole.x[-1], atol=1e-11)
    np.testing.assert_allclose(single.P, whole.P[-1], atol=1e-11)
    assert single.counts["field"] == whole.counts["field"]
    assert single.counts["gravity"] == whole.counts["gravity"]
    assert "rejected" in single.summary() and "rejected" in whole.summary()
    single.reset()
    assert single.t is None and np.array_equal(single.x, single.x0)
    assert repr(single) == (
        f"{make.__name__}('attitude', state={ATTITUDE.state}, errors=6 on the left, "
        "sensors=[gravity, field])"
    )
    for told in (whole, log, whole.innovations["gravity"]):
        assert len(repr(told)) < 400 and "gravity" in repr(whole) and "gravity" in repr(log)


def test_on_attitudes_it_is_the_multiplicative_filter():
    """Quaternion times small rotation, bias added: written out with cross products."""
    rng = np.random.default_rng(4)
    _, gyro, seen = attitude_log(rng, 50, 0.02, std=0.3, bias_std=0.1)
    x0 = ATTITUDE.state.random(5)
    x0[4:] = 0.0
    ekf = EKF(ATTITUDE, [GRAVITY, FIELD], x0, std0={"attitude": 0.5, "bias": 0.1},
              noise={"gyro": 0.01, "walk": 1e-3}, method="euler", iterations=1)  # fmt: skip
    t = 0.02 * np.arange(51)
    u = np.concatenate([gyro, gyro[-1:]])
    run = ekf.run(Log(t, np.concatenate([u, 0 * u], axis=1),
                      {name: (t[1:], y) for name, y in seen.items()}))  # fmt: skip

    def cross(w):
        return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])

    q, b, P = x0[:4], np.zeros(3), np.diag([0.25] * 3 + [0.01] * 3)
    for k in range(50):
        omega = gyro[k] - b
        q = SO3.plus(q, 0.02 * omega)
        A, G = np.eye(6), np.zeros((6, 6))
        A[:3, :3] = scipy.linalg.expm(-0.02 * cross(omega))
        # the gyroscope's error and the bias act through the right Jacobian of the turn
        J = SO3.right_jacobian(0.02 * omega)
        A[:3, 3:], G[:3, :3], G[3:, 3:] = -0.02 * J, 0.02 * J, 0.02 * np.eye(3)
        P = A @ P @ A.T + G @ np.diag([1e-4] * 3 + [1e-6] * 3) @ G.T / 0.02
        for name, direction in (("gravity", [0.0, 0.0, 1.0]), ("field", [0.0, 0.6, -0.8])):
            h = SO3.matrix(q).T @ direction
            C = np.hstack([cross(h), np.zeros((3, 3))])
            K = P @ C.T @ np.linalg.inv(C @ P @ C.T + 0.05**2 * np.eye(3))
            d = K @ (seen[name][k] - h)
            q, b = SO3.plus(q, d[:3]), b + d[3:]
            J = scipy.linalg.block_diag(SO3.right_jacobian(d[:3]), np.eye(3))
            P = J @ (P - K @ C @ P) @ J.T
        np.testing.assert_allclose(SO3.minus(run.x[k + 1, :4], q), 0, atol=1e-10)
        np.testing.assert_allclose(run.P[k + 1], P, atol=1e-10)


def test_a_batch_of_logs_is_the_logs_one_by_one():
    rng = np.random.default_rng(6)
    x, gyro, seen = attitude_log(rng, 20, 0.02, std=0.3, bias_std=0.1, runs=(3,))
    t = 0.02 * np.arange(20)
    ekf = EKF(ATTITUDE, [GRAVITY, FIELD], std0=0.5, noise={"gyro": 0.01, "walk": 1e-3})
    u = np.concatenate([gyro, 0 * gyro], axis=-1)
    both = ekf.run(Log(t, u, {k: (t + 0.02, y) for k, y in seen.items()}), x[:, 0])
    for i in range(3):
        one = ekf.run(Log(t, u[i], {k: (t + 0.02, y[i]) for k, y in seen.items()}), x[i, 0])
        np.testing.assert_allclose(both.x[i], one.x, atol=1e-12)
        np.testing.assert_allclose(both.log_likelihood[i], one.log_likelihood)
    assert both.consistency(t + 0.02, x[:, 1:]).nees is not None


@pytest.mark.usually(options=[{"iterations": 3, "error": "right"}])
@pytest.mark.parametrize("options", [{}, {"iterations": 3, "error": "right"}])
def test_the_square_root_form_is_the_same_filter(options):
    _, gyro, seen = attitude_log(np.random.default_rng(4), 15, 0.05, std=0.1, bias_std=0.05)
    t = 0.05 * np.arange(15)
    log = Log(t, np.concatenate([gyro, 0 * gyro], axis=-1), {
        name: (t + 0.05, y) for name, y in seen.items()
    })  # fmt: skip
    plain, root = (
        EKF(ATTITUDE, [GRAVITY, FIELD], std0=0.3, noise={"gyro": 0.01, "walk": 1e-3},
            square_root=r, **options).run(log)
        for r in (False, True)
    )  # fmt: skip
    assert np.abs(ATTITUDE.error(plain.x, root.x)).max() < 1e-9
    np.testing.assert_allclose(root.P, plain.P, atol=1e-11 * np.abs(plain.P).max())


def test_the_square_root_form_keeps_digits_that_the_covariance_loses():
    """A sensor a hundred million times better than what is known, on a sum; then on a part."""
    pair = System("pair", Rn(2), lambda t, x, u, p: 0 * x, inputs=["none"])
    both = Sensor("both", lambda t, x, u, p: x[0] + x[1], Rn(1), std_discrete=1e-9)
    first = Sensor("first", lambda t, x, u, p: x[0], Rn(1), std_discrete=1e-9)
    exact = 2e-18  # of x1 = both - first: the variances add up
    errors = []
    for root in (False, True):
        ekf = EKF(pair, [both, first], std0=1e3, noise={}, square_root=root)
        ekf.update("both", [3.0], t=0.0)
        ekf.update("first", [1.0])
        errors.append(abs(ekf.P[1, 1] / exact - 1))
    assert errors[1] < 1e-2 < errors[0]


def test_the_square_root_form_takes_singular_covariances():
    ekf = EKF(EXACT, [PLACE], P0=np.ones((2, 2)), noise={"push": PUSH}, square_root=True)
    ekf.update("place", [0.3], t=0.0)
    np.testing.assert_allclose(ekf.P, np.ones((2, 2)) / 101, atol=1e-14)


def test_a_single_number_needs_no_brackets():
    system = System("sub", Rn(1), lambda t, x, u, p: u, inputs=["push"])
    depth = Sensor("depth", lambda t, x, u, p: x, Rn(1), std_discrete=0.1)
    bare, listed = (EKF(system, [depth], [0.0], std0=1.0, noise={}) for _ in range(2))
    bare.predict(0.0, 0.3, 0.1)
    bare.update("depth", 0.5)
    listed.predict(0.0, [0.3], 0.1)
    listed.update("depth", [0.5])
    assert bare.x == listed.x and bare.P == listed.P


def test_loading_without_the_system_says_so(tmp_path):
    with pytest.raises(TypeError, match=r"load\(\) lacks system: give system="):
        EstimationResult.load(tmp_path / "run.npz")
