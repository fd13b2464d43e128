"""What users get wrong with estimators: refused, warned of or told, with argument and remedy."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.estimation import (
    EKF,
    UKF,
    LandmarkMap,
    Log,
    MovingHorizon,
    OffsetFree,
    depth,
    gnss,
)
from lgcontrol.groups import SO2, Rn
from lgcontrol.simulation import Estimator, simulate
from lgcontrol.systems import Input, Sensor, System

from ._models import CART, PLACE, PLANAR, SPEED

WINDOW = {"horizon": 3, "dt": 0.1}
MAKERS = {
    "EKF": EKF,
    "UKF": UKF,
    "MovingHorizon": lambda *given, **options: MovingHorizon(*given, **WINDOW, **options),
}
every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
every_filter = pytest.mark.parametrize("make", [EKF, UKF])


def cart(make, *measurements, **options):
    given = {"std0": 1.0, "noise": {"push": 0.3}} | options
    return make(CART, measurements or (PLACE, SPEED), **given)


# -- noise ----------------------------------------------------------------------------------------


@every_estimator
def test_a_measurement_without_noise_is_refused(make):
    exact = Sensor("tape", lambda t, x, u, p: x, Rn(2, ("near", "far")), std_discrete=[0.1, 0])
    with pytest.raises(ValueError, match=r"'tape' has no noise in far.*give std_discrete"):
        cart(make, exact)
    both = Sensor("tape", lambda t, x, u, p: x, Rn(2), covariance_discrete=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"of measurement 'tape' is singular.*add noise"):
        cart(make, both)


@every_filter
def test_a_filter_without_noise_is_warned_of(make):
    with pytest.warns(RuntimeWarning, match=r"of cart has no noise.*noise=\{'force': density\}"):
        cart(make, noise=None)
    cart(make, noise={})  # said so


@every_filter
def test_a_wrong_unit_shows_in_the_summary(make):
    """Places in cm, noise in m; the same in the summaries of a loop and of a log."""
    rng = np.random.default_rng(0)
    y = 10.0 * rng.normal(size=50)
    told = r"place: NIS \S+, expected 1: .* check its unit, sign, axes and std_discrete"
    ekf = cart(make)
    for k, value in enumerate(y):
        ekf.predict(0.1 * k, [0.0, 0.0], 0.1)
        ekf.update("place", [value])
    t = 0.1 * np.arange(51)
    run = cart(make).run(Log(t, np.zeros((51, 2)), {"place": (t[1:], y)}))
    for summary in (ekf.summary(), run.summary()):
        assert re.search(told, summary), summary
        assert "innovations are no noise" in summary
    assert "NIS" not in repr(run)
    ekf.reset()
    assert "NIS" not in ekf.summary()


@every_filter
def test_noise_that_is_right_raises_no_doubt(make):
    rng = np.random.default_rng(1)
    t, x = 0.1 * np.arange(200), np.zeros(2)
    places = []
    for k in range(200):
        x = CART.step()(t[k], x, [0.0, 0.3 / np.sqrt(0.1) * rng.normal()], [], 0.1)
        places.append(x[0] + 0.1 * rng.normal())
    run = cart(make).run(Log(t, np.zeros((200, 2)), {"place": (t + 0.1, np.array(places))}))
    assert run.counts["place"] == {"used": 200} and "NIS" not in run.summary()
    wide = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=10.0)
    vague = cart(make, wide).run(Log(t, np.zeros((200, 2)), {"place": (t, np.zeros(200))}))
    assert "lower its std_discrete" in vague.summary()


@every_filter
def test_an_absurd_innovation_is_told_where_no_gate_keeps_it_out(make):
    """Ten good places and one that is 500 m off, called and as a log."""
    ekf, t = cart(make), 0.1 * np.arange(12)
    y = np.r_[np.zeros(10), 500.0]
    for k, value in enumerate(y):
        ekf.predict(0.1 * k, [0.0, 0.0], 0.1)
        ekf.update("place", [value])
    assert ekf.info["status"] == "unlikely" and ekf.info["nis"] > 1e5
    assert ekf.counts["place"] == {"used": 10, "unlikely": 1} and ekf.x[0] > 1
    run = cart(make).run(Log(t, np.zeros((12, 2)), {"place": (t[1:], y)}))
    assert run.counts["place"] == ekf.counts["place"]
    assert "1 innovations are no noise and were used; keep outliers out by gate" in ekf.summary()


@every_filter
def test_a_recovery_makes_the_gate_wider_for_a_while(make):
    """Two places in a row that are off are good ones: five deviations are no outlier any more."""
    status, probability = [], 0.99
    ekf = cart(make, PLACE, gate=probability, settle=5)

    def takes(deviations):
        """Status of a place that is so many deviations of its innovation off; nothing is kept."""
        before, info = ekf.column.copy(), ekf.info
        for off in (0.0, 1.0):
            ekf.column = before.copy()
            ekf.update("place", [ekf.x[0] + off])
        S = 1 / ekf.info["nis"]
        ekf.column = before.copy()
        ekf.update("place", [ekf.x[0] + deviations * np.sqrt(S)])
        made, ekf.column, ekf.info = ekf.info["status"], before, info
        return made

    for k in range(700):
        ekf.predict(0.1 * k, [0.0, 0.0], 0.1)
        if k in (20, 699):
            assert takes(3.5) == "rejected"  # 2.6 have the probability
        if k == 60:
            assert takes(3.5) == "used" and takes(5.5) == "rejected"
        ekf.update("place", [ekf.x[0] + (10.0 if k in (40, 41) else 0.0)])
        status.append(ekf.info["status"])
    assert status[40:42] == ["rejected", "recovered"]


# -- starts and views -----------------------------------------------------------------------------


@every_estimator
def test_all_estimators_start_at_the_home_of_the_system(make):
    away = System("away", Rn(1), lambda t, x, u, p: u, inputs=["push"], home=[3.0])
    made = make(away, [Sensor("y", std_discrete=1.0)], std0=1.0, noise={"push": 0.1})
    assert made.x0 == made.x == 3.0


def quadrant():
    model = CART.augment(bias=["push"], bias_walk=True)
    place = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
    ekf = EKF(model, [place], std0=1.0, noise={"push.walk": 0.1})
    return OffsetFree(lambda t, x, r: [0.0], ekf, CART)


VIEWS = {
    **{name: lambda make=make: cart(make) for name, make in MAKERS.items()},
    "LandmarkMap": lambda: LandmarkMap(
        2, std0=0.1, noise={"velocity.x": 0.1, "velocity.rz": 0.1}, std_discrete=0.1
    ),
    "OffsetFree": quadrant,
}


@pytest.mark.parametrize("name", VIEWS)
def test_estimates_are_read_only(name):
    """`x` was the memory of the filter: writing to it moved the estimate and left P as it was."""
    made = VIEWS[name]()
    for value in (made.x, made.P):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 1.0


# -- predict --------------------------------------------------------------------------------------

RIDE = System("ride", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1] + u[2]],
              inputs=[Input("wind", role="disturbance", nominal=0.2), "force",
                      Input("shake", role="noise")])  # fmt: skip


@every_estimator
def test_predict_takes_what_a_log_takes(make):
    y = Sensor("y", std_discrete=1.0)
    whole, short = (make(RIDE, [y], std0=1.0, noise={"shake": 0.1}) for _ in range(2))
    whole.predict(0.0, [0.2, 1.5, 0.0], 0.1)
    short.predict(0.0, [1.5], 0.1)
    np.testing.assert_array_equal(whole.x, short.x)
    wanted = (r"predict: u has shape \(2,\), expected \(3,\): wind, force, shake; or \(1,\), the "
              r"controls and measured inputs: force")  # fmt: skip
    with pytest.raises(ValueError, match=wanted):
        whole.predict(0.1, [1.0, 2.0], 0.1)
    with pytest.raises(ValueError, match=r"one row of inputs: a whole log goes through run\(Log"):
        whole.predict(0.1, np.zeros((5, 3)), 0.1)


@every_filter
def test_negative_and_repeated_intervals_are_warned_of_once(make):
    ekf = cart(make)
    ekf.predict(0.0, [0.0, 0.0], 0.1)
    x = ekf.x
    with pytest.warns(RuntimeWarning, match="dt = -0.1 s is negative; give t"):
        ekf.predict(0.1, [1.0, 0.0], -0.1)
    with pytest.warns(RuntimeWarning, match="0.1 s is left out: the estimate is at"):
        ekf.predict(0.0, [1.0, 0.0], 0.1)
    ekf.predict(0.0, [1.0, 0.0], 0.1)  # a loop is not flooded, warnings are errors here
    ekf.predict(0.1, [1.0, 0.0], -0.1)
    np.testing.assert_array_equal(ekf.x, x)
    assert ekf.counts["predict"] == {"predicted": 1, "refused": 2, "overlap": 2}


def test_smoothing_is_found_where_it_is():
    with pytest.raises(AttributeError, match=r"run\(log\)\.smooth\(\).*window=seconds\)\.smoothed"):
        cart(EKF).smooth()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="EKF has no attribute 'state'"):
        _ = cart(EKF).state  # pyright: ignore[reportAttributeAccessIssue]


def test_an_estimator_of_another_system_is_refused():
    place = Sensor("place", lambda t, x, u, p: x[0], Rn(1), dt=0.1, std_discrete=0.1)
    other = System("sledge", Rn(2), CART.f, inputs=["pull", "wind"])
    ekf = EKF(other, [place], std0=1.0, noise={"wind": 0.3})
    with pytest.raises(ValueError, match=r"EKF is of sledge, whose inputs are pull, wind; those of "
                                         r"the plant cart are force, push. Make"):  # fmt: skip
        simulate(CART, estimator=ekf, sensors=[place], x0=[0.0, 0.0], dt=0.1, seconds=1.0)
    turning = System("turning", SO2, lambda t, x, u, p: u[0] + u[1], inputs=["force", "push"])
    heading = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
    ekf = EKF(turning, [heading], std0=1.0, noise={"push": 0.3})
    with pytest.raises(ValueError, match=r"the plant cart: it is SO2, expected .*OffsetFree"):
        simulate(CART, lambda t, x, r: [0.0, 0.0], dt=0.1, estimator=ekf, sensors=[place],
                 x0=[0.0, 0.0], seconds=1.0)  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: gnss(PLANAR, lever_arm=[0.0, 0.0, 1.0], name="roof"),
        lambda: gnss(CART, name="roof"),
        lambda: gnss(PLANAR, "hull", name="roof"),
        lambda: depth(PLANAR, name="roof", std_discrete=0.1),
    ],
)
def test_errors_name_the_sensor(make):
    with pytest.raises((ValueError, LookupError), match="'roof'"):
        make()


# -- what mutations showed ------------------------------------------------------------------------


def test_the_variance_of_a_square_has_the_weight_of_the_middle():
    """``x²`` of a normal x has the mean P and the variance 2 P²: so has the innovation."""
    still = System("still", Rn(1), lambda t, x, u, p: u, inputs=["push"])
    square = Sensor("square", lambda t, x, u, p: x**2, Rn(1), std_discrete=0.3)
    for alpha in (0.2, 0.5, 1.0):
        ukf = UKF(still, [square], [0.0], std0=2.0, noise={}, alpha=alpha)
        ukf.update("square", [7.0], t=0.0)
        assert ukf.info["nis"] == pytest.approx((7 - 4) ** 2 / (2 * 16 + 0.09), rel=1e-9)


# -- types ----------------------------------------------------------------------------------------


def test_filters_have_the_arguments_of_an_estimator():
    """Names of arguments are the filters' own: the contract has them by place."""
    for method in (Estimator.predict, Estimator.update):
        own = list(inspect.signature(method).parameters.values())[1:]
        assert all(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in own)


CHECKED = """
import numpy as np
from lgcontrol.estimation import EKF, UKF, Log, MovingHorizon
from lgcontrol.groups import Rn
from lgcontrol.simulation import simulate
from lgcontrol.systems import Sensor
from lgcontrol.systems import System

cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
sensor = Sensor("place", dt=0.1, std_discrete=0.1)
ekf = EKF(cart, [sensor], std0=1.0, noise={"push": 0.3})
simulate(cart, estimator=ekf, sensors=[sensor], x0=[0.0], seconds=1.0)
simulate(cart, estimator=UKF(cart, [sensor], std0=1.0), sensors=[sensor], x0=[0.0], seconds=1.0)
window = MovingHorizon(cart, [sensor], std0=1.0, noise={"push": 0.3}, horizon=3, dt=0.1)
simulate(cart, estimator=window, sensors=[sensor], x0=[0.0], seconds=1.0)
ekf.predict(0.0, [1.0], 0.1)
ekf.update("place", [0.1])
print(ekf.run(Log([0.0], np.zeros((1, 1)))).smooth().std, ekf.x + 1, ekf.P[0], ekf.summary())
"""


@pytest.mark.thorough
def test_documented_calls_type_check(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "calls.py").write_text(CHECKED)
    found = {"extraPaths": [str(Path(__file__).parents[2])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(found))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "calls.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
