"""Moving horizon: the Kalman filter where nothing limits it, better where something does."""

from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.estimation import EKF, Log, MovingHorizon
from lgcontrol.groups import SO3, Rn
from lgcontrol.optimal import Bound
from lgcontrol.simulation import simulate
from lgcontrol.simulation._internal import FullEstimator
from lgcontrol.systems import Input, Sensor, System

from ._models import ATTITUDE, CART, FIELD, GRAVITY, PLACE, SPEED, attitude_log
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
        assert "6 steps of 0.1 s, sensors=[place])" in repr(mhe)
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
    seen = Sensor("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
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
        tank(), [Sensor("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)], [0.5, 0.0],
        std0=0.5, noise={"rain": 0.6}, horizon=5, dt=0.2, bounds=[Bound("level", lower=0.0)],
    )  # fmt: skip
    for k in range(8):
        mhe.predict(0.2 * k, [0.0], 0.2)
        mhe.update("seen", [-2.0])
        assert -1e-7 < mhe.x[0] < 1e-6  # bounds are relaxed by 1e-8
        assert mhe.info["status"] == "converged" and mhe.info["iterations"] < 45


@pytest.mark.filterwarnings("ignore:.*is left out")
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
    assert mhe.counts["place"] == {"used": 5, "not finite": 1, "future": 2, "stale": 1,
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


def attitude_window(**options):
    given = {"std0": 0.1, "noise": {"gyro": 0.01, "walk": 1e-3}, "horizon": 5, "dt": 0.05}
    return MovingHorizon(ATTITUDE, [GRAVITY, FIELD], **given | options)


def looking(mhe, times):
    """Intervals up to some times, with what a body at rest sees at their ends."""
    for t in times:
        now = 0.0 if mhe.t is None else mhe.t
        mhe.predict(now, np.zeros(6), t - now)
        mhe.update("gravity", [0.0, 0.0, 1.0])
        mhe.update("field", [0.0, 0.6, -0.8])


def is_usable(mhe):
    """Finite, and a covariance but for rounding."""
    P = mhe.P
    least = np.linalg.eigvalsh(P)[0] / np.abs(P).max() if np.isfinite(P).all() else -np.inf
    return bool(np.isfinite(mhe.x).all() and least > -1e-12)


@pytest.mark.usually(length=(0.07, 0.31))
@pytest.mark.parametrize("length", [0.03, 0.07, 0.16, 0.31])
def test_intervals_and_measurements_need_not_be_aligned_to_the_steps(length):
    """In calls and over a log, no further from the filter than a node is from the data."""
    rng, noise = np.random.default_rng(2), {"push": 0.3}
    mhe = MovingHorizon(CART, [PLACE], [0.0, 0.2], P0, noise=noise, horizon=6, dt=0.1)
    ekf = EKF(CART, [PLACE], [0.0, 0.2], P0, noise=noise)
    t = length * np.arange(40)
    seen, u = 0.2 * t + 0.02 * rng.normal(size=40), np.zeros((40, 2))
    u[:, 0] = 0.3 * 0.2  # a steady 0.2 m/s
    x = []
    for k in range(39):
        for estimator in (mhe, ekf):
            estimator.predict(t[k], u[k], length)
            estimator.update("place", [seen[k + 1]], t=t[k + 1])
        x.append(mhe.x)
        assert mhe.t == pytest.approx(t[k + 1])
    off = np.array(x)[15:] - np.stack([0.2 * t[16:], np.full(24, 0.2)], axis=1)
    assert np.abs(off[:, 0]).max() < 0.05 + 0.5 * 0.1 * 0.2 and is_usable(mhe)
    assert np.abs(mhe.x - ekf.x).max() < 0.05
    run = mhe.run(Log(t, u, {"place": (t[1:] + 0.013, seen[1:])}))
    assert np.isfinite(run.x).all() and mhe.counts["place"].total() == 39


def test_sensors_of_a_simulation_need_not_be_aligned_to_the_steps():
    place = replace(PLACE, dt=0.07)
    mhe = MovingHorizon(CART, [place], std0=1.0, noise={"push": 0.3}, horizon=3, dt=0.1)
    run = simulate(CART, estimator=mhe, sensors=[place], x0=[0.3, 0.1], dt=0.01, seconds=2.0)
    assert run.is_success and abs(run.estimate[-1, 0] - run.x[-1, 0]) < 0.2
    assert sum(mhe.counts["place"].values()) == len(run.measurements["place"].t)


@pytest.mark.usually(iterations=(1,))
@pytest.mark.parametrize("wrong", ["gyro", "gravity", "all"])
@pytest.mark.parametrize("iterations", [None, 1])
def test_an_absurd_value_is_outlived(wrong, iterations):
    """1e5 rad/s for a sample, or a field of 1e70: finite, told, corrected as fast as by an EKF."""
    mhe = attitude_window(iterations=iterations)
    looking(mhe, 0.05 * np.arange(1, 9))
    for size in (1e5, 1e20, 1e70, 1e149) if wrong == "all" else (1e5,):
        u = np.zeros(6)
        u[0] = 0.0 if wrong == "gravity" else size
        mhe.predict(mhe.t, u, 0.05)
        if wrong != "gyro":
            mhe.update("gravity", [size, 0.0, 0.0])
        assert is_usable(mhe)
    for t in mhe.t + 0.05 * np.arange(1, 26 if wrong == "gyro" else 8):
        looking(mhe, [t])
        assert is_usable(mhe) and mhe.t == pytest.approx(t)
    told = mhe.counts["predict"]
    assert told["unsolved"] + told["fallback"] > 0 or wrong == "gravity"
    down = SO3.matrix(mhe.x[:4])[2]
    if wrong == "gyro" and iterations is None:
        assert np.abs(down - [0.0, 0.0, 1.0]).max() < 0.3  # EKF: 0.37


@pytest.mark.filterwarnings("ignore:.*is left out")
def test_beyond_the_horizon_the_prior_moves_alone_as_the_filter_does():
    """Six minutes without a call, an interval of a minute, and what belongs to no clock."""
    given = (CART, [PLACE], [0.5, 0.2], P0)
    mhe = MovingHorizon(*given, noise={"push": 0.3}, horizon=4, dt=0.1)
    ekf = EKF(*given, noise={"push": 0.3})
    for estimator in (mhe, ekf):
        for k in range(6):
            estimator.predict(0.1 * k, [0.1, 0.0], 0.1)
            estimator.update("place", [0.5])
        estimator.predict(360.0, [0.0, 0.0], 0.1)
    np.testing.assert_allclose(mhe.x, ekf.x, atol=1e-6)
    np.testing.assert_allclose(mhe.P, ekf.P, rtol=1e-6)
    assert mhe.counts["predict"] == ekf.counts["predict"] == {"predicted": 7, "gap": 1}
    mhe.update("place", [0.7])  # in a window of its own
    assert abs(mhe.x[0] - 0.7) < 0.02
    mhe.predict(mhe.t, [0.0, 0.0], 60.0)
    assert mhe.t == pytest.approx(420.1) and is_usable(mhe)
    x = mhe.x
    for t in (1e13, -1e300, np.inf):
        mhe.predict(t, [0.0, 0.0], 0.1)
    for taken in (1e300, -1e300, np.inf, -np.inf):
        mhe.update("place", [0.5], t=taken)
    np.testing.assert_array_equal(mhe.x, x)
    assert mhe.counts["predict"]["refused"] == 3
    assert mhe.counts["place"].items() >= {"future": 2, "stale": 2}.items()
    mhe.predict(1.7e9, [0.0, 0.0], 0.1)  # epoch seconds once
    assert mhe.t == pytest.approx(1.7e9 + 0.1) and np.abs(mhe.x - x).max() < 0.2
    for k in range(8):
        mhe.predict(421.0 + 0.1 * k, [0.0, 0.0], 0.1)
    assert mhe.t == pytest.approx(421.8) and mhe.counts["predict"]["jump"] == 2


@pytest.mark.parametrize("part", ["step", "first", "moved", "alone"])
def test_a_call_that_is_interrupted_has_not_been(part, monkeypatch):
    mhe, twin = attitude_window(horizon=3), attitude_window(horizon=3)
    for estimator in (mhe, twin):
        looking(estimator, 0.05 * np.arange(1, 6))
    before, t = {name: counter.copy() for name, counter in mhe.counts.items()}, mhe.t
    length = 1.0 if part == "alone" else 0.05

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if part == "step":
            patch.setattr(mhe._solver, "solve", interrupt)
        else:
            patch.setitem(mhe._arrival.__dict__, part, interrupt)
        with pytest.raises(KeyboardInterrupt):
            mhe.predict(t, np.zeros(6), length)
    assert mhe.counts == before and mhe.t == t
    mhe.predict(t, np.zeros(6), length)
    twin.predict(t, np.zeros(6), length)
    np.testing.assert_allclose(mhe.x, twin.x, atol=1e-12)
    assert mhe.counts == twin.counts


def test_it_begins_at_the_home_of_the_system_as_filters_do():
    away = System("away", CART.state, CART.f, inputs=CART.inputs, home=[3.0, 0.0])
    mhe = MovingHorizon(away, [PLACE], std0=1.0, noise={"push": 0.3}, horizon=3, dt=0.1)
    ekf = EKF(away, [PLACE], std0=1.0, noise={"push": 0.3})
    assert mhe.x[0] == ekf.x[0] == 3.0


def test_priors_are_carried_far_from_chart_to_chart():
    """A radian from where they belong, against differences of the errors themselves."""
    arrival, system = attitude_window()._arrival, ATTITUDE
    rng, n = np.random.default_rng(4), 6
    mean, away = system.state.random(rng), np.r_[0.9, -0.7, 0.5, 0.1, 0.2, -0.1]
    x, A = system.retract(mean, away, []), rng.normal(size=(n, n))
    P, u = A @ A.T, np.zeros(arrival.inputs.size)
    u[arrival.inputs.offset :] = arrival.inputs.empty  # without measurements

    def turned(of, about, at):
        """Derivative of the error about one state by that about another."""
        moves = [system.error(system.retract(of, at + d, []), about)
                 - system.error(system.retract(of, at - d, []), about)
                 for d in 1e-6 * np.eye(n)]  # fmt: skip
        return np.array(moves).T / 2e-6

    column = arrival.first(mean, arrival.pack(P), x, u, [])
    J = turned(mean, x, away)
    assert np.abs(J - np.eye(n)).max() > 0.3
    np.testing.assert_allclose(column[:n], -away, atol=1e-12)
    np.testing.assert_allclose(arrival.covariance(column), J @ P @ J.T, atol=1e-6)
    moved = arrival.moved(np.r_[away, arrival.pack(P)], mean, [])
    np.testing.assert_allclose(moved[0], x, atol=1e-12)
    J = turned(mean, x, away)
    np.testing.assert_allclose(arrival.covariance(moved[1]), J @ P @ J.T, atol=1e-6)
    np.testing.assert_allclose(moved[2] @ arrival.covariance(moved[1]), np.eye(n), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": {}}, "a density above zero"),
        ({"P0": np.zeros((2, 2))}, "must be positive definite"),
        ({"robust": "tukey"}, "valid names are huber"),
        ({"sensors": [Sensor("place", lambda t, x, u, p: x[0], Rn(1))]}, "has no noise"),
        ({"bounds": [Bound("known.push", -1, 1)]},
         r"unknown bounded state or noise 'known\.push'; valid names are (?!.*known).*push\."),
        ({"system": tank(), "noise": {"rain": 1.0}, "sensors": []}, "give dt"),
    ],
)  # fmt: skip
def test_what_is_refused(options, message):
    given = {"system": EXACT, "sensors": [PLACE], "x0": [0.5, 0.2], "P0": P0,
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
