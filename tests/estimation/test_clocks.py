"""Clocks of estimators: set back, far forward, in epoch seconds, of no number; never a failure."""

import numpy as np
import pytest

from lgcontrol.estimation import EKF, UKF, Log, gnss
from lgcontrol.groups import Rn
from lgcontrol.systems import System

from ._models import CART, PLACE, PLANAR
from .test_filters import EXACT
from .test_outcomes import ESTIMATORS, FILTERS

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
every_filter = pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)

quiet = pytest.mark.filterwarnings("ignore:.*is left out")  # clocks that go back are warned of


def cart(make, system=CART):
    return make(system, [PLACE], [0.0, 0.0], std0=1.0, noise={"push": 0.3})


def moved(estimator, times, dt=0.1):
    for t in times:
        estimator.predict(t, [0.0, 0.0], dt)
        estimator.update("place", [1.0])


@quiet
@every_estimator
@pytest.mark.parametrize("system", [CART, EXACT], ids=["continuous", "discrete"])
def test_clocks_that_jump_have_one_outcome(make, system):
    """A log that starts again, epoch seconds once, an hour of silence: the estimate goes on."""
    estimator = cart(make, system)
    moved(estimator, 0.1 * np.arange(20))
    x = estimator.x.copy()
    moved(estimator, [1.7e9])
    assert estimator.t == pytest.approx(1.7e9 + 0.1)
    moved(estimator, 0.1 * np.arange(20, 30))  # back: ignored four times, then believed
    assert estimator.t == pytest.approx(3.0)
    moved(estimator, 3603.0 + 0.1 * np.arange(5))
    moved(estimator, 0.1 * np.arange(8))
    assert estimator.t == pytest.approx(0.8)
    assert np.abs(estimator.x - x).max() < 0.3 and np.linalg.eigvalsh(estimator.P)[0] > 0
    said = estimator.counts["predict"]
    assert (said["jump"], said["overlap"], said["gap"]) == (4, 8, 0)
    for t, dt in ((np.nan, 0.1), (np.inf, 0.1), (-1e300, 0.1), (2e12, 0.1), (0.8, np.nan)):
        x, t_before = estimator.x.copy(), estimator.t
        estimator.predict(t, [0.0, 0.0], dt)
        assert np.array_equal(estimator.x, x) and estimator.t == t_before
    assert said["refused"] == 5


@every_estimator
def test_epoch_seconds_are_a_clock_like_others(make):
    """Half a minute: no gap and no late measurement by rounding, and the same estimate."""
    plain, epoch = cart(make), cart(make)
    for k in range(300):
        for estimator, start in ((plain, 0.0), (epoch, 1.7e9)):
            t = start + 0.1 * k
            estimator.predict(t, [np.sin(0.1 * k), 0.0], 0.1)
            if k % 10 == 0:
                estimator.update("place", [1.0], t=t + 0.1)
    assert epoch.counts == plain.counts == {"predict": {"predicted": 300}, "place": {"used": 30}}
    np.testing.assert_allclose(epoch.x, plain.x, atol=1e-5)


@every_filter
def test_a_refused_interval_is_a_gap_to_the_next(make):
    cubed = System("cubed", Rn(1), lambda t, x, u, p: u**9, inputs=["rate"])
    ekf = make(cubed, [], [0.0], std0=0.1, noise={"rate": 0.1})
    ekf.predict(0.0, [1.0], 0.1)
    ekf.predict(0.1, [1e100], 0.1)  # 1e900 m/s
    assert ekf.t == pytest.approx(0.1) and ekf.x[0] == pytest.approx(0.1)
    ekf.predict(0.2, [1.0], 0.1)
    assert ekf.t == pytest.approx(0.3) and ekf.x[0] == pytest.approx(0.3)
    assert ekf.counts["predict"] == {"predicted": 2, "refused": 1, "gap": 1}


def test_a_factor_that_rounding_made_negative_is_refused():
    """Far away all of a fix cancels: the UKF's root of a pivot was NaN, and stayed."""
    fix = gnss(PLANAR, lever_arm=[0.5, 0.2], std_discrete=0.3)
    ukf, rng = UKF(PLANAR, [fix], std0=0.3, noise={"velocity": 0.2}), np.random.default_rng(5)
    for k in range(60):
        size = 10.0 ** rng.uniform(0, 24) if k % 4 == 0 else 1.0
        ukf.predict(0.05 * k, size * rng.normal(size=3), 0.05)
        ukf.update("gnss", rng.normal(size=2))
        assert np.isfinite(ukf.x).all() and np.isfinite(ukf.P).all()
    assert ukf.counts["gnss"]["singular"] > 0


@every_estimator
@pytest.mark.parametrize("stamp", [np.nan, np.inf, -np.inf, 1e300])
def test_a_first_measurement_of_no_time_sets_no_clock(make, stamp):
    estimator = cart(make)
    estimator.update("place", [1.0], t=stamp)
    assert estimator.t is None and estimator.counts["place"].total() == 1
    moved(estimator, [0.0, 0.1])
    assert estimator.counts["place"]["used"] == 2


@every_filter
def test_gaps_and_late_data_of_a_discrete_system_need_not_be_whole_steps(make):
    """Its clock is that of the data to half a step; nothing is raised where they fall between."""
    ekf = make(EXACT, [PLACE], std0=1.0, noise={"push": 0.3}, window=1.0)
    start = 1.7e9  # whose stamps are 2e-7 s apart
    for k in range(60):
        t, later = start + 0.103 * k, start + 0.103 * k + 0.1
        ekf.predict(t, [0.0, 0.0], later - t)
        ekf.update("place", [1.0], t=t - 0.04)
        assert abs(ekf.t - later) < 0.051
    with pytest.raises(ValueError, match="0.05 s is no multiple"):
        ekf.predict(ekf.t, [0.0, 0.0], 0.05)
    assert ekf.counts["predict"]["gap"] == 2  # 0.177 s in all


def test_a_system_without_inputs_has_gaps_too():
    still = System("still", Rn(1), lambda t, x, u, p: -x)
    ekf = EKF(still, [], [1.0], std0=0.1, noise={})
    ekf.predict(0.0, [], 0.1)
    ekf.predict(0.5, [], 0.1)
    assert ekf.x[0] == pytest.approx(np.exp(-0.6), rel=1e-5)


@pytest.mark.parametrize("system", [CART, EXACT], ids=["continuous", "discrete"])
@every_estimator
def test_the_work_of_a_gap_is_bounded(make, system, monkeypatch):
    """Steps of a prediction: a thousand, ten thousand of a discrete system, whatever the gap."""
    estimator, steps = cart(make, system), []
    estimator.predict(0.0, [0.0, 0.0], 0.001 if system is CART else 0.1)
    is_filter = make in FILTERS.values()
    place, name = (estimator, "_predict") if is_filter else (estimator._arrival, "alone")
    function = getattr(place, name)
    monkeypatch.setitem(place.__dict__, name, lambda *given: steps.append(1) or function(*given))
    now, most = estimator.t, 1000 if system is CART else 10_000
    for gap in (599.0, 1e5, 1e11):
        steps.clear()
        estimator.predict(now + gap, [0.0, 0.0], 0.1)
        now = estimator.t
        assert len(steps) <= most + 1 and np.isfinite(estimator.P).all()
        assert (len(steps) > 900) == (gap < 600.0)


@every_filter
def test_a_log_with_one_absurd_stamp_takes_no_memory_for_the_gap(make):
    t = np.r_[0.1 * np.arange(5), 1.7e9]
    run = cart(make).run(Log(t, np.zeros((6, 2)), {"place": ([0.2], [1.0])}))
    assert len(run.t) < 1100 and np.isfinite(run.x).all()
