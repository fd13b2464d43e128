"""Real logs: the numbers that benchmarks report, and the files read."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.estimation import EKF, AttitudeHeading
from lgcontrol.io import read_broad, read_kitti_imu_gnss, read_plaza, read_wifibot
from lgcontrol.io._internal import Recording

from ..benchmarks import _estimation_cases as cases
from ..benchmarks._slam import run_slam, step_by_step

EXCERPTS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture
def data(shared):
    folder = shared / "data"
    if not folder.is_dir():
        pytest.skip(f"no logs at {folder}")
    return folder


def test_excerpts_that_come_with_the_project():
    """What the notebook shows: VQF with its defaults has 2.6° and 1.5° on the first."""
    recording = read_broad(EXCERPTS / "broad_07.npz")
    total, inclination = cases.attitude_errors(recording, cases.run_broad(recording))
    assert total < 1.7 and inclination < 1.5
    found = cases.run_plaza(read_plaza(EXCERPTS / "plaza_2.npz"))
    assert found["rmse [m]"] < 0.4 and 0.3 < found["NEES"] < 1.5


def test_attitude_of_broad(data):
    """VQF with its defaults: 1.77° and 1.04° of inclination on fast turns, in the benchmark."""
    recording = read_broad(data / "broad" / "07_undisturbed_fast_rotation_B.npz")
    total, inclination = cases.attitude_errors(recording, cases.run_broad(recording))
    assert total < 1.8 and inclination < 1.1


@pytest.mark.thorough
def test_the_default_of_the_gyroscope_is_that_of_the_highest_likelihood(data):
    """Of the headings of four files, without their truth; the errors fall with it."""
    recordings = [read_broad(path) for path in sorted((data / "broad").glob("*.npz"))]
    default = inspect.signature(AttitudeHeading).parameters["gyro_scale"].default
    rows = cases.gyro_scale_study(recordings, (default / 2, default, 2 * default))
    likelihoods = [row["log-likelihood, field by file"] for row in rows.values()]
    assert np.argmax(likelihoods) == 1
    assert rows[default]["mean error"] < 1.55 and max(rows[default]["NEES"]) < 1


@pytest.mark.usually(k=[1])
@pytest.mark.parametrize(("k", "bound"), [(1, 0.084), (5, 0.065)])
def test_wifibot_is_as_good_as_the_published_invariant_filter(data, k, bound):
    """On the same noise, over 20 seeds; first and last sequence."""
    recording = read_wifibot(data / "wifibot_se2" / f"wifibot{k}.npz")
    ours = cases.run_wifibot(recording, **cases.UNKNOWN_HEADING).mean()
    assert ours < bound
    assert ours < cases.published_wifibot(recording).mean()


@pytest.mark.thorough  # its first half is among the excerpts
def test_ranges_of_plaza_with_scale_and_bias(data):
    found = cases.run_plaza(read_plaza(data / "plaza_range" / "Plaza2_.npz"))
    assert found["rmse [m]"] < 0.45 and 0.3 < found["NEES"] < 1.5
    assert found["scale"] == pytest.approx(0.07, abs=0.01)  # that of a fit to the truth


KITTI = Path("kitti_imu_gps", "kitti_imu_gps.npz")


def test_the_first_minute_of_kitti(data):
    """At the fixes that are not used, as well as on all of it; so short a log is not compiled."""
    whole = read_kitti_imu_gnss(data / KITTI)
    (t, fixes), early = whole.measurements["gnss"], whole.t < 60
    case = cases.Kitti.of(
        Recording(
            whole.t[early], {name: values[early] for name, values in whole.signals.items()},
            {"gnss": (t[t < 60], fixes[t < 60])},
        )
    )  # fmt: skip
    run = case.run()
    assert case.score(run) < 0.27
    assert run.log_likelihood > case.run(gyro=0.25).log_likelihood + 10


@pytest.mark.thorough
def test_a_gate_costs_kitti_next_to_nothing(data):
    """Good fixes that the noise does not cover: 3.7 m with a lockout of five and gates that stay as
    they are, 0.60 m with a lockout of two and such gates, 0.25 m without a gate."""
    case = cases.Kitti.of(read_kitti_imu_gnss(data / KITTI), gate=0.999)
    run = case.run()
    assert case.score(run) < 0.3
    assert run.counts["gnss"]["recovered"] and run.counts["gnss"]["rejected"] < 5


@pytest.mark.thorough
def test_imu_and_gnss_of_kitti(data):
    """At the fixes that are not used; noise by the likelihood of those that are."""
    case = cases.Kitti.of(read_kitti_imu_gnss(data / KITTI))
    run = case.run()
    assert case.score(run) < 0.27
    assert case.score(run.smooth()) < 0.12
    assert 0.8 < run.consistency().nis["gnss"] < 1.3
    assert run.log_likelihood > case.run(gyro=0.25).log_likelihood + 10
    assert run.log_likelihood > case.run(fix=4.0).log_likelihood + 10


@pytest.mark.parametrize("read", [read_broad, read_wifibot, read_plaza, read_kitti_imu_gnss])
def test_files_that_lack_something_are_refused_by_name(read, tmp_path):
    np.savez(tmp_path / "some.npz", other=np.zeros(3))
    with pytest.raises(ValueError, match=r"some\.npz: lacks .*; it holds other"):
        read(tmp_path / "some.npz")


def test_large_first_errors_need_the_iterated_filter():
    """100 runs, errors of σ 60° per axis cut at 120°: consistent, where the plain one fails."""
    iterated, first = cases.run_turning(EKF, 60, steps=50, iterations=5)
    assert iterated.nees_inside >= 0.95 and 0.9 < iterated.nees < 1.1
    assert 0.8 < first["NEES"] < 1.2
    plain, first = cases.run_turning(EKF, 60, steps=50, iterations=1)
    assert plain.nees > 3 and plain.nees_inside < 0.2 and first["NEES"] > 10


def test_moderate_first_errors_need_the_reset():
    """100 runs at σ 20°: consistent as it stands, not after one round, less without the reset."""
    given, first = cases.run_turning(EKF, 20, steps=50)
    assert given.nees_inside >= 0.95
    assert 0.8 < min(first.values()) and max(first.values()) < 1.25
    once, first_once = cases.run_turning(EKF, 20, steps=50, iterations=1)
    without, _ = cases.run_turning(EKF, 20, steps=50, reset=False)
    assert first_once["NEES"] > 2 and first_once["NIS gravity"] > 3
    assert given.nees + 0.02 < once.nees < without.nees - 0.1


@pytest.mark.interpreted
def test_a_reset_takes_what_nobody_saw_for_knowledge():
    """Planar SLAM: right errors keep the unobservable directions, unless a reset moves them."""
    kept, moved = (run_slam(3, 300, 8, reset=reset, iterations=1) for reset in (False, True))
    assert max(np.mean(kept.nees), np.mean(kept.nees_heading)) < 1.3
    assert min(np.mean(moved.nees), np.mean(moved.nees_heading)) > 2
    assert np.mean(kept.position) < np.mean(moved.position)
    assert EKF(cases.ODOMETRY, [], std0=1.0, noise={}).has_reset
    assert not EKF(cases.ODOMETRY, [], std0=1.0, error="right", noise={}).has_reset
    # the benchmark takes all runs together: the first one is that of a user's calls
    alone = step_by_step(60, 8, iterations=1, reset=False)
    together = run_slam(2, 60, 8, iterations=1, reset=False)
    for one, several in zip(alone, together, strict=True):
        np.testing.assert_allclose(several[0], one[0], rtol=1e-9)
