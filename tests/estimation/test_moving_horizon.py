"""Moving horizon: the Kalman filter where nothing limits it, better where something does."""

from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.estimation import EKF, Log, MovingHorizon
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound
from lgcontrol.simulation import FullEstimator
from lgcontrol.systems import Input, Measurement, System

from ._models import ATTITUDE, FIELD, GRAVITY, PLACE, SPEED, attitude_log
from .test_filters import DT, EXACT, PUSH, cart_log

pytestmark = pytest.mark.interpreted

EQUAL = 1e-9
P0 = np.array([[1.0, 0.3], [0.3, 0.5]])


@pytest.mark.usually(horizon=[6], iterations=[None])
@pytest.mark.parametrize("horizon", [1, 6])
@pytest.mark.parametrize("iterations", [None, 1])
def test_linear_problems_have_the_kalman_filter(horizon, iterations):
    """Estimates and covariances, the cost of arrival included; measurements are missing."""
    t, u, places, speeds = cart_log(np.random.default_rng(0), 30)
    log = Log(t, u, {"place": (t[1:], places), "speed": (t[3::3], speeds)})
    given = ([PLACE, SPEED], [0.5, 0.2], P0)
    kalman = EKF(EXACT, *given, noise={"push": PUSH}).run(log)
    mhe = MovingHorizon(EXACT, *given, noise={"push": PUSH}, horizon=horizon, iterations=iterations)
    found = mhe.run(log)
    np.testing.assert_allclose(found.x, kalman.x, atol=EQUAL)
    np.testing.assert_allclose(found.P, kalman.P, atol=EQUAL)
    assert mhe.counts["speed"] == {"used": 10} and mhe.info["status"] is not None
    # the window is the smoother of its steps
    late = kalman.smooth()
    np.testing.assert_allclose(mhe.window.x, late.x[-1 - horizon :], atol=EQUAL)


def test_late_measurements_go_where_they_belong():
    t, u, places, _ = cart_log(np.random.default_rng(1), 12)

    def run(order):
        mhe = MovingHorizon(EXACT, [PLACE], [0.5, 0.2], P0, noise={"push": PUSH}, horizon=6)
        assert "6 steps of 0.1 s, measurements=[place])" in repr(mhe)
        for k in range(12):
            mhe.predict(t[k], u[k], DT)
            for due in order.get(k, []):
                mhe.update("place", places[due], t=t[due + 1])
        return mhe

    ordered = run({k: [k] for k in range(12)})
    late = run({2: [0, 1, 2], 3: [3], 6: [6], 7: [7], 9: [5, 4, 9, 8], 11: [10, 11]})
    np.testing.assert_allclose(late.x, ordered.x, atol=EQUAL)
    np.testing.assert_allclose(late.P, ordered.P, atol=EQUAL)


def test_on_groups_it_is_as_good_as_the_iterated_filter(rng):
    """Large first errors; one iteration a step is as good as all."""
    truth, u, seen = attitude_log(rng, 25, 0.05, std=0.05, bias_std=0.05)
    start = ATTITUDE.state.plus(truth[0], [0.8, -0.5, 0.6, 0.0, 0.0, 0.0])
    start[4:] = 0.0
    given = {"std0": {"attitude": 0.7, "bias": 0.05}, "noise": {"gyro": 0.01, "walk": 1e-3}}
    measurements = [GRAVITY, FIELD]
    makers = [
        lambda: EKF(ATTITUDE, measurements, start, iterations=6, **given),
        lambda: MovingHorizon(ATTITUDE, measurements, start, horizon=4, dt=0.05, **given),
        lambda: MovingHorizon(
            ATTITUDE, measurements, start, horizon=4, dt=0.05, iterations=1, **given
        ),
    ]
    errors = []
    for make in makers:
        estimator, own = make(), []
        for k in range(25):
            estimator.predict(0.05 * k, [*u[k], 0.0, 0.0, 0.0], 0.05)
            for name in ("gravity", "field"):
                estimator.update(name, seen[name][k])
            own.append(np.linalg.norm(ATTITUDE.error(truth[k + 1], estimator.x)[:3]))
        errors.append(own)
    iterated, whole, one = np.array(errors)
    assert np.sqrt((whole[3:] ** 2).mean()) < 1.05 * np.sqrt((iterated[3:] ** 2).mean())
    assert np.abs(one[5:] - whole[5:]).max() < 2e-3
    assert isinstance(makers[1](), FullEstimator)


def tank():
    """Level and inflow, which is never negative; the level is seen, sometimes wrongly."""
    return System(
        "tank", Rn(2, ("level", "flow")), lambda t, x, u, p: [x[1] - 0.2 * x[0], u - 0.5 * x[1]],
        inputs=[Input("rain", lower=0.0, role="noise")],
    )  # fmt: skip


def test_limits_and_outliers_are_what_it_is_for(rng):
    """Rain comes in showers and never from below; every eighth reading is off by metres."""
    system, dt = tank(), 0.2
    seen = Measurement("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
    x, truth, y = np.zeros(2), [], []
    step = system.step()
    for k in range(60):
        rain = np.abs(rng.normal()) * 0.8 / np.sqrt(dt) * (rng.random() < 0.3)
        x = step(0.0, x, [rain], [], dt)
        truth.append(x)
        y.append(x[0] + 0.1 * rng.normal() + (3.0 * rng.normal() if k % 8 == 5 else 0.0))
    log = Log(dt * np.arange(61), np.zeros((61, 1)), {"seen": (dt * np.arange(1, 61), y)})
    given = (system, [seen], [0.0, 0.0])
    noise = {"std0": 0.5, "noise": {"rain": 0.6}}

    def error(run):
        return np.sqrt(((run.x[1:61] - truth) ** 2).mean())

    plain, robust = (
        error(EKF(*given, **noise, robust=weight).run(log)) for weight in (None, "huber")
    )
    bounds = [Bound("flow", lower=0.0), Bound("level", lower=0.0)]
    mhe = MovingHorizon(*given, **noise, horizon=8, dt=dt, robust="huber", bounds=bounds)
    run = mhe.run(log)
    assert error(run) < 0.8 * robust and robust < plain
    assert run.x.min() > -1e-6 and mhe.window.u.min() > -1e-6
    free = MovingHorizon(*given, **noise, horizon=8, dt=dt, robust="huber",
                         bounds=[Bound("rain", -np.inf, np.inf)])  # fmt: skip
    assert free.problem.system.input_bounds[0][0] == 0  # the system's own limit stays


def test_data_beyond_a_limit_are_no_trouble():
    """All readings are 20 deviations below the least level: the window stays there, and solves."""
    mhe = MovingHorizon(
        tank(), [Measurement("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)], [0.5, 0.0],
        std0=0.5, noise={"rain": 0.6}, horizon=5, dt=0.2, bounds=[Bound("level", lower=0.0)],
    )  # fmt: skip
    for k in range(8):
        mhe.predict(0.2 * k, [0.0], 0.2)
        mhe.update("seen", [-2.0])
        assert -1e-9 < mhe.x[0] < 1e-6
        assert mhe.info["status"] == "converged" and mhe.info["iterations"] < 45


def test_bad_measurements_and_intervals_have_an_outcome():
    place = replace(PLACE, limits=(-1.0, 1.0))
    mhe = MovingHorizon(EXACT, [place], [0.5, 0.2], P0, noise={"push": PUSH}, horizon=3)
    for k in range(5):
        mhe.predict(DT * k, [0.1, 0.0], DT)
        mhe.update("place", [0.3])
    x, P = mhe.x, mhe.P
    for y, taken in (([np.nan], None), ([0.3], 9.0), ([0.3], 0.0), ([0.3], np.nan), ([1.0], None)):
        mhe.update("place", y, t=taken)
    np.testing.assert_array_equal(mhe.x, x)
    np.testing.assert_array_equal(mhe.P, P)
    assert mhe.counts["place"] == {"used": 5, "not_finite": 1, "future": 2, "stale": 1,
                                   "saturated": 1}  # fmt: skip
    mhe.update("place", [0.4])
    assert mhe.counts["place"]["replaced"] == 1 and mhe.x[0] > x[0]
    mhe.predict(np.nan, [0.1, 0.0], DT)
    mhe.predict(DT * 5, [np.nan, 0.0], DT)
    mhe.predict(DT * 8, [0.1, 0.0], DT)  # after a hole
    mhe.predict(DT * 8, [0.1, 0.0], DT)  # again
    assert mhe.counts["predict"] == {"predicted": 6, "refused": 1, "held": 1, "gap": 1,
                                     "overlap": 1}  # fmt: skip
    assert mhe.t == pytest.approx(DT * 9) and np.isfinite(mhe.x).all()
    assert "place: 5 used, 1 not finite" in mhe.summary()
    mhe.reset()
    assert mhe.t is None and (mhe.x == [0.5, 0.2]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": {}}, "a density above zero"),
        ({"P0": np.zeros((2, 2))}, "must be positive definite"),
        ({"robust": "tukey"}, "valid names are huber"),
        ({"measurements": [Measurement("place", lambda t, x, u, p: x[0], Rn(1))]}, "needs noise"),
        ({"bounds": [Bound("known.push", -1, 1)]},
         r"unknown bounded state or noise 'known\.push'; valid names are (?!.*known).*push\."),
        ({"system": tank(), "noise": {"rain": 1.0}, "measurements": []}, "give dt"),
    ],
)  # fmt: skip
def test_what_is_refused(options, message):
    given = {"system": EXACT, "measurements": [PLACE], "x0": [0.5, 0.2], "P0": P0,
             "noise": {"push": 1.0}, "horizon": 3} | options  # fmt: skip
    with pytest.raises((ValueError, KeyError), match=message):
        MovingHorizon(**given)


def test_what_a_window_does_not_take_is_refused():
    given = {"noise": {"push": PUSH}, "horizon": 3}
    with pytest.raises(ValueError, match="iterations must be a whole number, at least 1"):
        MovingHorizon(EXACT, [PLACE], [0.5, 0.2], P0, **given, iterations=0)
    window = MovingHorizon(EXACT, [PLACE], [0.5, 0.2], P0, **given)
    t, u, places, _ = cart_log(np.random.default_rng(2))
    with pytest.raises(ValueError, match=r"P0 has shape \(3, 3\)"):
        window.run(Log(t, u, {"place": (t[1:], places)}), P0=np.eye(3))
