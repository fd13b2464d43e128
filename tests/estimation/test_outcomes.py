"""What becomes of late, unlikely, broken and impossible ones: told and counted."""

import re
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.estimation import EKF, UKF, Log, MovingHorizon, UpdateStatus, gnss, odometry
from lgcontrol.groups import SE2, SO2, Rn
from lgcontrol.simulation import HeldNoise, simulate
from lgcontrol.simulation._internal import FullEstimator
from lgcontrol.systems import Input, Sensor, System

from ._models import ATTITUDE, CART, FIELD, GRAVITY, PLACE, SPEED

RNG = np.random.default_rng(0)
PLANAR = odometry()
FIX = gnss(PLANAR, std_discrete=0.1)


# One entry for each estimator. Tests of options that not all have (a gate, a memory for late
# measurements, other noise) are of `FILTERS`.
FILTERS = {"EKF": EKF, "UKF": UKF}


def window(system, measurements, x0=None, **options):
    """A window of 0.3 s with noise at least on the last input, of measurements that have some."""
    usual = {"noise": {system.input_names[-1]: 0.1}, "dt": 0.1, "horizon": 3}
    return MovingHorizon(system, measurements, x0, **usual | options)


ESTIMATORS = {**FILTERS, "MovingHorizon": window}
every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
every_filter = pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)


def cart_filter(make=EKF, **options):
    return make(CART, [PLACE, SPEED], std0=1.0, noise={"push": 0.3}, **options)


def drive(ekf, events):
    """Predict 0.1 s a step; events: step at whose end something comes, name, value, time taken."""
    for k in range(20):
        ekf.predict(0.1 * k, [np.sin(k), 0.0], 0.1)
        for when, name, value, taken in events:
            if when == k:
                ekf.update(name, [value], t=taken)


@every_filter
def test_late_and_disordered_measurements_give_what_ordered_ones_give(make):
    ordered, late = cart_filter(make), cart_filter(make, window=1.0)
    drive(ordered, [(5, "place", 0.3, None), (7, "speed", 0.2, None), (9, "place", 0.5, None),
                    (12, "place", 0.4, None)])  # fmt: skip
    drive(late, [(9, "place", 0.5, None), (11, "speed", 0.2, 0.8), (11, "place", 0.3, 0.6),
                 (14, "place", 0.4, 1.3)])  # fmt: skip
    np.testing.assert_allclose(late.x, ordered.x, atol=1e-14)
    np.testing.assert_allclose(late.P, ordered.P, atol=1e-14)
    assert late.t == pytest.approx(ordered.t) and late.counts["place"] == {"used": 3}


@every_filter
def test_a_measurement_between_two_events_divides_the_interval(make):
    whole, divided = cart_filter(make, window=1.0), cart_filter(make)
    whole.predict(0.0, [1.0, 0.0], 0.5)
    whole.update("place", [0.1], t=0.2)
    divided.predict(0.0, [1.0, 0.0], 0.2)
    divided.update("place", [0.1])
    divided.predict(0.2, [1.0, 0.0], 0.3)
    np.testing.assert_allclose(whole.x, divided.x, atol=1e-15)
    np.testing.assert_allclose(whole.P, divided.P, atol=1e-15)


@every_filter
def test_the_delay_of_a_measurement_says_when_it_was_taken(make):
    slow = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1, delay=0.2,
                       validity=0.5)  # fmt: skip
    told, untold = (make(CART, [m], std0=1.0, noise={"push": 0.3}, window=0.6)
                    for m in (PLACE, slow))  # fmt: skip
    for ekf, taken in ((told, 0.4), (untold, None)):
        for k in range(6):
            ekf.predict(0.1 * k, [1.0, 0.0], 0.1)
        ekf.update("place", [0.3], t=taken)
    np.testing.assert_array_equal(told.x, untold.x)
    untold.update("place", [0.3], t=0.05)
    assert untold.info["status"] == "stale" and untold.counts["place"] == {"used": 1, "stale": 1}


BAD = {
    "NaN": ("fix", [np.nan, 0.0], None, "not finite"),
    "infinite": ("fix", [0.0, np.inf], None, "not finite"),
    "from the future": ("fix", [0.0, 0.0], 2.0, "future"),
    "of an unknown time": ("fix", [0.0, 0.0], np.nan, "future"),
    "from before the memory": ("fix", [0.0, 0.0], 0.1, "stale"),
    "degrees for [cos, sin]": ("heading", [30.0, 0.0], None, "off group"),
    "at the end of its range": ("fix", [0.0, 50.0], None, "saturated"),
    "without any noise, twice": ("exact", [0.0, 0.0], None, "singular"),
}


@cache
def planar_filter(make):
    heading = Sensor("heading", lambda t, x, u, p: x[2:4], SO2, std_discrete=0.1)
    exact = Sensor("exact", lambda t, x, u, p: x[:1] * np.ones((2, 1)), Rn(2),
                        std_discrete=1.0, scale=lambda t, x, u, p: 0.0)  # fmt: skip
    fix = gnss(PLANAR, name="fix", std_discrete=0.1, limits=(-np.inf, 50.0))
    all_three = [fix, heading, exact] if make is not window else [fix, heading]
    return make(PLANAR, all_three, std0=1.0, noise={"velocity": 0.1})


@pytest.mark.usually(make=[EKF, window])
@every_estimator
@pytest.mark.parametrize("case", BAD)
def test_bad_measurements_change_nothing_and_are_counted(case, make):
    name, y, taken, status = BAD[case]
    ekf, is_filter = planar_filter(make), make is not window
    if name not in ekf.sensors:  # refused before there is any
        exact = Sensor(name, lambda t, x, u, p: x[:2], Rn(2))
        with pytest.raises(ValueError, match="sensor 'exact' has no noise in"):
            make(PLANAR, [exact], std0=1.0)
        return
    ekf.reset()
    ekf.predict(0.0, [1.0, 0.0, 0.2], 0.5)
    x, P = ekf.x.copy(), ekf.P.copy()
    ekf.update(name, y, t=taken)
    assert np.array_equal(ekf.x, x) and np.array_equal(ekf.P, P)
    assert ekf.counts[name] == {status: 1}
    assert f"{name}: 1 {status.replace('_', ' ')}" in ekf.summary()
    if is_filter:
        assert ekf.info["status"] == status and np.isnan(ekf.info["nis"])
    if taken is None:
        if is_filter:
            ekf.compile()
        ekf.update(name, y)
        assert np.array_equal(ekf.x, x) and ekf.counts[name] == {status: 2}
        run = ekf.run(Log([0.0, 0.5], np.zeros((2, 3)), {name: ([0.5], [y])}))
        assert np.isfinite(run.x).all()
        assert (run if is_filter else ekf).counts[name] == {status: 1}
        if is_filter:
            assert np.isnan(ekf.info["nis"]) and run.log_likelihood == 0
            said = run.innovations[name]
            assert all(np.isnan(v).all() for v in (said.nis, said.whitened, said.log_likelihood))


@every_estimator
def test_a_simulated_sensor_shows_no_more_than_its_range(make):
    near = replace(PLACE, limits=(-1.0, 1.0), dt=0.1)
    ekf = make(CART, [near], std0=1.0, noise={"push": 0.3})
    run = simulate(CART, estimator=ekf, sensors=[near], x0=[0.0, 2.0], dt=0.1, seconds=3.0)
    assert run.x[-1, 0] > 2
    assert ekf.counts["place"]["saturated"] > 15 and ekf.counts["place"]["used"] > 3
    with pytest.raises(ValueError, match="limits must rise"):
        replace(PLACE, limits=(1.0, -1.0)).bind(CART)


@every_estimator
def test_bad_intervals_and_inputs_have_an_outcome(make):
    limited = System("limited", SO2, lambda t, x, u, p: u,
                     inputs=[Input("gyro", "rad/s", -2.0, 2.0, role="measured")])  # fmt: skip
    ekf = make(limited, [], std0=0.1, noise={"gyro": 0.1})

    def turned(t, u, dt):
        before = ekf.x
        ekf.predict(t, [u], dt)
        return SO2.minus(ekf.x, before).item()

    assert turned(0.0, 1.0, 0.1) == pytest.approx(0.1)
    assert turned(0.1, np.nan, 0.1) == pytest.approx(0.1)  # the last usable one
    assert turned(0.2, 50.0, 0.1) == pytest.approx(0.2)  # saturated
    assert turned(0.5, 1.0, 0.1) == pytest.approx(0.2 * 2 + 0.1)  # a gap: held, then on
    assert turned(0.55, 1.0, 0.1) == pytest.approx(0.05)  # half of it is known already
    with pytest.warns(RuntimeWarning, match="is left out"):
        assert turned(0.0, 1.0, 0.1) == 0.0  # all of it is
    with pytest.warns(RuntimeWarning, match="dt = -0.1 s is negative"):
        assert turned(0.65, 1.0, -0.1) == 0.0
    assert turned(np.nan, 1.0, 0.1) == turned(0.65, 1.0, np.inf) == 0.0
    assert ekf.t == pytest.approx(0.65)
    assert ekf.counts["predict"] == {"predicted": 3, "held": 1, "saturated": 1, "gap": 1,
                                     "overlap": 2, "refused": 3}  # fmt: skip
    with pytest.raises(ValueError, match=r"u has shape \(2,\), expected \(1,\): gyro"):
        ekf.predict(0.7, [1.0, 2.0], 0.1)
    burst = System("burst", Rn(1), lambda t, x, u, p: x**9, inputs=["none"])
    without = {} if make is window else {"noise": {}}
    ekf, unknown = make(burst, [], [10.0], std0=0.1, **without), ("refused", "unsolved")
    for k in range(50):
        ekf.predict(0.1 * k, [0.0], 0.1)
    assert np.isfinite(ekf.x).all() and np.isfinite(ekf.P).all()
    assert sum(ekf.counts["predict"][word] for word in unknown) > 40


@pytest.mark.usually(make=[EKF, window])
@every_estimator
def test_logs_with_holes_and_times_that_go_back_are_mended_and_counted(make):
    t = np.r_[np.arange(10), np.nan, 8, 9, 10, 30, 31] * 0.1
    u = np.ones((len(t), 3))
    fixes = ([-1.0, 0.55, 0.2, 99.0, np.nan, 0.55], 1e-3 * np.arange(12).reshape(6, 2))
    with pytest.warns(RuntimeWarning, match="row 11 .* at 0.8 s after one at 0.9 s; 1 of 16 rows"):
        log = Log(t, u, {"gnss": fixes})
    ekf = make(PLANAR, [FIX], std0=1.0, noise={"velocity": 0.1})
    run = ekf.run(log)
    counts = getattr(run, "counts", ekf.counts)
    assert counts["predict"].items() >= {"time not finite": 1, "time back": 2, "gap": 1}.items()
    # a window has one of a kind at a node: two of one time are one there
    assert counts["gnss"]["outside the log"] == 3
    assert counts["gnss"]["used"] + counts["gnss"]["replaced"] == 3
    assert (np.diff(run.t) >= 0).all() and np.diff(run.t).max() < 0.11
    if make is not window:
        np.testing.assert_array_equal(run.innovations["gnss"].number, [2, 1, 5])
    assert run.x[-1] == pytest.approx(SE2.plus(run.x[-2], 0.1 * np.ones(3)))
    # a hole is one hole, also where measurements come in it
    ahead = np.sort(t[np.isfinite(t)])
    held = ekf.run(Log(ahead, u[: len(ahead)], {"gnss": ([1.7, 2.4], np.zeros((2, 2)))}))
    assert getattr(held, "counts", ekf.counts)["predict"]["gap"] == 1
    assert np.diff(held.t).max() < 0.11


@every_filter
def test_a_gate_keeps_outliers_out_and_does_not_lock_the_filter_out(make):
    """Three metres off for a moment; then the cart is carried away by a hundred."""
    ekf = cart_filter(make, gate=0.999, lockout=4)
    rng, status = np.random.default_rng(0), []
    for k in range(120):
        ekf.predict(0.1 * k, [0.0, 0.0], 0.1)
        place = 3.0 if k == 40 else 100.0 if k >= 80 else 0.0
        ekf.update("place", [place + 0.1 * rng.normal()])
        status.append(ekf.info["status"])
        if k == 40:
            assert abs(ekf.x[0]) < 0.2
    assert status[40] == "rejected" and status[41] == "used"
    assert status[80:84] == ["rejected"] * 3 + ["recovered"]
    assert ekf.counts["place"]["rejected"] == 4 and abs(ekf.x[0] - 100) < 0.3
    # a first estimate far away is not the measurement's fault: the gate waits
    lost = make(CART, [PLACE], [50.0, 0.0], std0=0.5, noise={"push": 0.3}, gate=0.999)
    lost.update("place", [0.0], t=0.0)
    assert lost.info["status"] == "unlikely" and lost.x[0] < 5


@pytest.mark.usually(make=[EKF])
@every_filter
@pytest.mark.parametrize("weight", ["huber", "cauchy"])
def test_robust_weights_bound_what_an_outlier_does(make, weight):
    moved = []
    for off in (10.0, 1e5, 1e6):
        ekf = cart_filter(make, robust={"place": weight})
        ekf.update("place", [off], t=0.0)
        assert ekf.info["status"] == "weighted"
        moved.append(ekf.x[0])
    # pull: constant for Huber's weights, falling for Cauchy's, once R outweighs P
    ratio = moved[2] / moved[1]
    assert ratio == pytest.approx({"huber": 1.0, "cauchy": 0.1}[weight], rel=0.2)
    plain = cart_filter(make)
    plain.update("place", [1000.0], t=0.0)
    assert plain.x[0] > 900


@pytest.mark.usually(make=[EKF])
@every_filter
def test_noise_that_is_wrong_shows(make):
    """Ten times too small: NIS says so, and by how much."""
    rng = np.random.default_rng(3)
    t = 0.1 * np.arange(400)
    log = Log(t, np.zeros((400, 2)), {"place": (t, 1.0 * rng.normal(size=400))})
    run = make(CART, [PLACE], std0=1.0, noise={"push": 1e-3}).run(log)
    wrong = run.consistency()
    assert wrong.nis["place"] > 50 and wrong.nis_inside["place"] < 0.4
    assert "NIS" in str(wrong)
    ekf = make(CART, [PLACE], std0=1.0, noise={"push": 1e-3})
    ekf.noise_scale = np.array([10.0])
    right = ekf.run(log)
    assert 0.8 < right.consistency().nis["place"] < 1.2
    assert right.log_likelihood > run.log_likelihood + 1000
    assert run.plot(t, np.zeros((400, 2))) is not None
    figure = run.plot_consistency(t, np.zeros((400, 2)))
    assert [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()] == [
        "errors: NEES", "place: NIS", "place: correlation of innovations",
    ]  # fmt: skip


@pytest.mark.usually(make=[EKF])
@every_filter
def test_it_plugs_into_a_simulation(make):
    """Correct by its own word: errors are as large as it says."""
    drift = System("drift", ATTITUDE.state, ATTITUDE.f, inputs=[
        *(Input(f"gyro.{a}") for a in "xyz"),
        *(Input(f"walk.{a}", role="disturbance") for a in "xyz"),
    ])  # fmt: skip
    sensors = [Sensor(m.name, m.h, m.output, dt=0.1, std_discrete=0.05, delay=0.04)
               for m in (GRAVITY, FIELD)]  # fmt: skip
    x0 = drift.state.random(1)
    ekf = make(drift, sensors, drift.state.plus(x0, 0.1 * np.ones(6)), std0=0.1,
              noise={"gyro": 1e-3, "walk": 0.05})  # fmt: skip
    assert isinstance(ekf, FullEstimator)
    run = simulate(
        drift, lambda t, x, r: [0.3, 0.5, -0.2], dt=0.05, x0=x0, seconds=20, sensors=sensors,
        estimator=ekf, disturbances=[HeldNoise({f"walk.{a}": 0.05 / np.sqrt(0.1) for a in "xyz"},
                                               dt=0.1)],
    )  # fmt: skip
    assert run.settings["feedback"] == "estimate"
    off = run.estimation_error[100:] / run.estimate_std[100:]
    assert 0.6 < off.std() < 1.4
    assert ekf.counts["gravity"]["used"] > 195


def test_constrained_systems_keep_their_constraints():
    """A pendulum as a point on a circle: two error coordinates of four, project in every step."""
    from lgcontrol.systems._internal import ErrorCoordinates

    state = Rn(4, ("x", "z", "vx", "vz"))

    def field(t, x, u, p):
        pull = x[2] ** 2 + x[3] ** 2 - 9.81 * x[1]
        return [x[2], x[3], -pull * x[0] + u * x[1], -9.81 - pull * x[1] - u * x[0]]

    def constraints(x, p):
        import casadi as ca

        return ca.vertcat(x[0] ** 2 + x[1] ** 2 - 1, x[0] * x[2] + x[1] * x[3])

    def project(x, p):
        import casadi as ca

        q = x[:2] / ca.sqrt(ca.sumsqr(x[:2]))
        return ca.vertcat(q, x[2:] - q * ca.dot(q, x[2:]))

    system = System(
        "pendulum", state, field, inputs=["torque"], project=project,
        errors=ErrorCoordinates.independent(state, ["x", "vx"], constraints),
    )  # fmt: skip
    place = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.02)
    truth = np.array([0.5, -np.sqrt(0.75), 0.0, 0.0])
    ekf = EKF(system, [place], [0.3, -np.sqrt(0.91), 0.0, 0.0], std0=0.3, noise={"torque": 0.02})
    errors, rng = [], np.random.default_rng(0)
    for k in range(300):
        truth = system.step()(0.0, truth, [0.0], [], 0.02)
        ekf.predict(0.02 * k, [0.0], 0.02)
        ekf.update("place", truth[:1] + 0.02 * rng.normal(size=1))
        errors.append(system.error(truth, ekf.x) / np.sqrt(np.diagonal(ekf.P)))
    assert np.abs(system.project(ekf.x) - ekf.x).max() < 1e-12 and ekf.P.shape == (2, 2)
    assert np.abs(errors[50:]).max() < 4 and np.diagonal(ekf.P).max() < 0.02
    with pytest.raises(ValueError, match='left-invariant; use error="left"'):
        EKF(system, [place], truth, std0=1.0, error="right")
    with pytest.raises(ValueError, match="use EKF"):
        UKF(system, [place], truth, std0=1.0, noise={})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EKF(PLANAR, [FIX]), "give P0, .* or std0"),
        (lambda: EKF(PLANAR, [FIX], std0={"pose.x": 1.0}), "std0 lacks pose.y, pose.rz"),
        (
            lambda: EKF(PLANAR, [FIX], std0={"pose": [1, np.nan, 1]}),
            r"std0\['pose'\] is not finite",
        ),
        (lambda: EKF(PLANAR, [FIX], std0={"psoe": 1.0}), "Did you mean 'pose'"),
        (lambda: EKF(PLANAR, [FIX], P0=-np.eye(3)), r"is -1; it has -1 at \(pose.x"),
        (lambda: EKF(PLANAR, [FIX], P0=2 - np.eye(3)), "are greater than"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, noise={"velocty": 1.0}), "unknown input 'velocty'"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, noise={"gnss": 1.0}), "its std_discrete"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, noise={"velocity": -1.0}), "must not be negative"),
        (lambda: EKF(PLANAR, [FIX, FIX], std0=1.0), "two sensors are called 'gnss'"),
        (lambda: EKF(PLANAR, FIX, std0=1.0), "must be a list"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, error="middle"), "valid names are left, right"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, gate=3.0), "probability between 0 and 1"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, gate="a"), "between 0 and 1, got 'a'"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, gate={"gps": 0.9}), "unknown sensor 'gps'"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, robust="tukey"), "valid names are huber, cauchy"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, iterations=0), "at least 1"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, iterations=1.5), "a whole number"),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, noise=0.1), "names of inputs to their densities"),
        (lambda: UKF(PLANAR, [FIX], std0=1.0, alpha=2.0), "at most 1"),
        (lambda: UKF(PLANAR, [FIX], std0=0.0, noise={}), "positive definite"),
        (
            lambda: EKF(PLANAR, [FIX], std0=1.0, noise={}).update("gps", [0, 0]),
            "unknown sensor",
        ),
        (lambda: EKF(PLANAR, [FIX], std0=1.0, noise={}).update("gnss", [0]), "expected \\(2,\\)"),
        (lambda: Log([0.0, 1.0], np.zeros((3, 3))), "expected \\(..., 2, k\\)"),
        (
            lambda: EKF(PLANAR, [FIX], std0=1.0, noise={}).run(Log([0.0], np.zeros((1, 2)))),
            "velocity.rz",
        ),
        (
            lambda: EKF(PLANAR, [FIX], std0=1.0, noise={}).run(
                Log([0.0], np.zeros((1, 3)), {"gnss": ([0.0], np.zeros((1, 3)))})
            ),
            "coordinates on Rn\\(2\\)",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises((ValueError, KeyError, TypeError), match=message):
        make()


def test_every_status_is_told_apart():
    assert len({status.name for status in UpdateStatus}) == 12
    assert {s.name for s in UpdateStatus if s.is_success} == {
        "USED", "WEIGHTED", "RECOVERED", "UNLIKELY",
    }  # fmt: skip


def test_correlations_of_innovations_are_at_most_one():
    """Exact measurements of a motion that the model lacks: each innovation is larger."""
    t = 0.1 * np.arange(60)
    log = Log(t, np.zeros((60, 2)), {"place": (t, 0.01 * 1.3 ** np.arange(60))})
    text = cart_filter().run(log).summary()
    found = re.search(r"innovations correlate by ([+-][\d.]+)", text)
    assert found and abs(float(found[1])) <= 1.0, text


def test_a_sensor_with_another_clock_is_no_detail():
    t = 0.1 * np.arange(30)
    log = Log(t, np.zeros((30, 2)), {"place": (t + 1.7e9, np.zeros(30)), "speed": (t, 0 * t)})
    told = r"all 30 measurements of 'place' are outside of the log.* from 1.7e\+09 .* 0 to 3 s"
    with pytest.warns(RuntimeWarning, match=told):
        run = cart_filter().run(log)
    assert run.counts["place"] == {"outside the log": 30}


@every_filter
def test_a_late_measurement_after_which_nothing_is_finite_changes_nothing(make):
    """The intervals after it cannot be predicted from where it leads: it is not used."""
    pit = System("pit", Rn(1), lambda t, x, u, p: ca.sqrt(1 - x) + u, inputs=["push"])
    ekf = make(pit, [Sensor("y", std_discrete=0.01)], [-3.0], std0=0.5, noise={"push": 0.1},
               window=1.0)  # fmt: skip
    for k in range(4):
        ekf.predict(0.1 * k, [0.0], 0.1)
    x, P, t = ekf.x.copy(), ekf.P.copy(), ekf.t
    ekf.update("y", [5.0], t=0.2)
    assert ekf.info["status"] == "singular" and ekf.counts["y"] == {"singular": 1}
    assert (ekf.x, ekf.P, ekf.t) == (x, P, t)
    ekf.update("y", [-2.9], t=0.1)  # what it remembers is as before
    assert ekf.counts["y"] == {"singular": 1, "used": 1} and ekf.t == t
