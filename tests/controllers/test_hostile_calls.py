"""A few hundred of the calls of `tests.benchmarks.hostile_calls`, whose results stand beside it."""

import numpy as np
import pytest

from ..benchmarks import hostile_calls as hostile
from ..codegen.test_export import needs_compiler

pytestmark = pytest.mark.interpreted

WRONG = ("exceptions", "answers not finite", "beyond bounds", "off its group")
FEW, SLOW = 200, 20
# One of a kind; the others run with the thorough tests.
CONTROLLERS = ("LQR", "TVLQR", "GravityPD", "OperationalSpace", "ElasticPD",
               "FeedbackLinearization, held torques", "MPC, bias", "PathFollowing")  # fmt: skip
ESTIMATORS = ("EKF", "EKF, square root", "EKF, discrete", "UKF", "MovingHorizon")


def nothing_wrong(tally):
    assert not any(tally[word] for word in WRONG), (tally, tally.first)


@pytest.mark.usually(name=CONTROLLERS)
@pytest.mark.parametrize("name", hostile.CONTROLLERS)
def test_controllers_answer_whatever_they_are_asked(name):
    make, goal, share = hostile.CONTROLLERS[name]
    tally, _ = hostile.call_controller(make(), goal, FEW if share > 0.1 else SLOW, seed=1)
    nothing_wrong(tally)
    assert tally["ok"] + tally["saturated"] > tally["held"]


@pytest.mark.filterwarnings(r"ignore:[\s\S]*(left out|already):RuntimeWarning")  # told once
@pytest.mark.usually(name=ESTIMATORS)
@pytest.mark.parametrize("name", hostile.ESTIMATORS)
def test_estimators_stay_finite_whatever_they_are_told(name, monkeypatch):
    make, share = hostile.ESTIMATORS[name]
    estimator = make()
    monkeypatch.setattr(type(estimator), "compile", lambda self: None, raising=False)
    tally, _ = hostile.call_estimator(estimator, FEW if share > 0.1 else SLOW, seed=1)
    nothing_wrong(tally)
    assert tally["predicted"] > 0 and tally["used"] > 0


@pytest.mark.parametrize("name", hostile.OBSERVERS)
def test_observers_stay_finite_whatever_they_are_told(name):
    nothing_wrong(hostile.call_observer(name, FEW, seed=1)[0])


@pytest.mark.thorough
@needs_compiler
def test_exported_c_takes_them_under_sanitizers(tmp_path):
    for tally in hostile.call_firmware(2000, 1, tmp_path).values():
        assert tally["calls"] == 2000
        nothing_wrong(tally)


def test_a_memory_that_overflowed_begins_anew():
    """Torques of rigid joints are integrated: one absurd state held them at infinity for ever."""
    law = hostile.exported.ELASTIC_LAWS["FeedbackLinearization, held torques"]()
    x = law.reference_states(np.zeros(1))[0]
    for k, scale in enumerate((1.0, 1e300, 1e300, 1.0, 1.0, 1.0)):
        u = law(k * law.dt, scale * x + (scale - 1.0))
        assert np.isfinite(u).all()
    assert law.info.status in ("ok", "saturated")


@pytest.mark.thorough
def test_loops_take_no_memory():
    found = hostile.growth(20_000, 4_000)
    assert all(entry["kB"] < 200 for entry in found.values()), found
