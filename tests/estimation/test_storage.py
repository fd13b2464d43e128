"""Estimates come back from files as they were, for the system they are of."""

import json
import os
from dataclasses import fields

import numpy as np
import pytest

from lgcontrol.estimation import EKF, UKF, EstimationResult, Log, MovingHorizon
from lgcontrol.estimation._internal import Estimates

from ._models import ATTITUDE, CART, FIELD, GRAVITY, PLACE, SPEED, attitude_log

OPTIONS = {"std0": 0.3, "noise": {"gyro": 0.01, "walk": 1e-3}}


def cart_log():
    t = 0.1 * np.arange(8)
    return Log(t, np.zeros((8, 2)), {"place": (t[2:], 0.1 * t[2:]), "speed": ([0.3], [np.nan])})


@pytest.fixture(scope="module", params=["one", "many"])
def result(request):
    runs = () if request.param == "one" else (3,)
    rng = np.random.default_rng(4)
    _, u, seen = attitude_log(rng, 12, 0.1, std=0.3, bias_std=0.01, runs=runs)
    t = 0.1 * np.arange(12)
    u = np.concatenate([u, np.zeros_like(u)], axis=-1)
    log = Log(t, u, {name: (t + 0.1, y) for name, y in seen.items()})
    return EKF(ATTITUDE, [GRAVITY, FIELD], **OPTIONS).run(log)


def test_everything_comes_back(result, tmp_path):
    path = result.save(tmp_path / "estimate")
    assert path.name == "estimate.npz"
    back = EstimationResult.load(path, ATTITUDE)
    for name in ("t", "x", "P", "std", "log_likelihood"):
        np.testing.assert_array_equal(getattr(back, name), getattr(result, name))
    assert back.counts == result.counts and repr(back) == repr(result)
    assert back.summary() == result.summary()
    for name, said in result.innovations.items():
        for field in fields(said):
            mine, own = (getattr(each.innovations[name], field.name) for each in (back, result))
            np.testing.assert_array_equal(mine, own)
            assert np.asarray(mine).dtype == np.asarray(own).dtype
    truth = np.broadcast_to(ATTITUDE.state.identity, (3, 7))
    t = result.t[[1, 4, 9]]
    np.testing.assert_allclose(back.nees(t, truth), result.nees(t, truth), rtol=1e-12)
    assert str(back.consistency(t, truth)) == str(result.consistency(t, truth))
    with pytest.raises(ValueError, match="no filter to smooth them: run it again"):
        back.smooth()


@pytest.mark.parametrize("make", [EKF, UKF, MovingHorizon])
def test_smoothed_estimates_and_those_of_windows_do_too(make, tmp_path):
    extra = {"horizon": 3, "dt": 0.1} if make is MovingHorizon else {}
    found = make(CART, [PLACE, SPEED], std0=1.0, noise={"push": 0.1}, **extra).run(cart_log())
    smoothed = found if make is MovingHorizon else found.smooth()
    back = Estimates.load(smoothed.save(tmp_path / "smooth.npz"), CART)
    np.testing.assert_array_equal(back.x, smoothed.x)
    np.testing.assert_array_equal(back.P, smoothed.P)
    truth, t = np.zeros((4, 2)), found.t[2:6]
    expected = [
        e @ np.linalg.solve(P, e) / 2
        for e, P in zip(smoothed.error(t, truth), smoothed.P[smoothed.index(t)], strict=True)
    ]
    np.testing.assert_allclose(back.nees(t, truth), expected, rtol=1e-9)
    np.testing.assert_allclose(smoothed.nees(t, truth), expected, rtol=1e-9)


def test_estimates_at_no_time_come_back(result, tmp_path):
    none = result.smooth(at=[])
    back = Estimates.load(none.save(tmp_path / "none.npz"), ATTITUDE)
    assert back.x.shape == none.x.shape and back.x.shape[-2] == 0
    assert back.P.shape == none.P.shape


def test_what_does_not_fit_is_refused(result, tmp_path):
    path = result.save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="a.npz has estimates of another system than cart: its"):
        EstimationResult.load(path, CART)
    with pytest.raises(ValueError, match=r"cannot write .*a.csv"):
        result.save(tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError, match="b.npz: no such file"):
        EstimationResult.load(tmp_path / "b.npz", ATTITUDE)
    arrays = dict(np.load(path))
    for wrong in (
        {"P": arrays["P"][..., :-1]},
        {"t": arrays["t"][::-1]},
        {"said_1_nis": arrays["t"]},
    ):
        np.savez(path, **(arrays | wrong))
        with pytest.raises(ValueError, match="a.npz is damaged"):
            EstimationResult.load(path, ATTITUDE)
    description = json.loads(str(arrays["description"]))
    assert description["units"]["P"][:3] == ["rad"] * 3
    newer = {"description": np.array(json.dumps(description | {"version": 2}))}
    np.savez(path, **(arrays | newer))
    with pytest.raises(ValueError, match="install a newer one"):
        EstimationResult.load(path, ATTITUDE)
    assert os.listdir(tmp_path) == ["a.npz"]
