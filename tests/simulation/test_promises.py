"""What calls, sensors and references that fail on the way do to a run, and that it says so."""

import contextlib
import signal
import threading
import warnings

import numpy as np
import pytest

from lgcontrol.groups import SO2, Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.simulation import (
    CallStatus,
    Cascade,
    RunStatus,
    SimulationError,
    SimulationResult,
    simulate,
)
from lgcontrol.systems import Sensor, System, Trajectory

from ._plants import Feedback, cart


class Planner(Feedback):
    """Says how each call ended."""

    def __init__(self, *statuses):
        super().__init__([1.0, 1.0], 0.1)
        self.statuses, self.info = statuses, {}

    def __call__(self, t, x, reference):
        status = self.statuses[len(self.calls) % len(self.statuses)]
        self.info = {"status": status, "message": f"{status} here" if status != "ok" else ""}
        return super().__call__(t, x, None)


@pytest.mark.parametrize(
    ("statuses", "good"),
    [
        ([CallStatus.OK], True),
        ([CallStatus.SATURATED], True),
        ([CallStatus.INFEASIBLE, CallStatus.OK], True),
        ([CallStatus.INFEASIBLE], False),
        ([CallStatus.UNSOLVED], False),
        ([CallStatus.HELD, CallStatus.UNSOLVED], False),
    ],
)
def test_a_controller_without_an_answer_all_the_time_is_no_success(statuses, good, tmp_path):
    run = simulate(cart(), Planner(*statuses), x0=[1, 0], seconds=1)
    assert run.status == RunStatus.COMPLETED and run.is_success is good
    text = "\n".join(run.summary())
    assert ("Planner was" in text and "at every call: " in text) is not good
    counts = run.controllers["Planner"].calls
    assert sum(counts.values()) == 10 and set(counts) == set(statuses)
    bad = [status for status in statuses if not status.is_success]
    assert (f"{bad[-1]} here" in text) if bad else "here" not in text
    back = SimulationResult.load(run.save(tmp_path / "run"))
    assert back.is_success is good and back.summary() == run.summary()


def test_controllers_with_words_of_their_own_are_not_judged():
    run = simulate(cart(), Planner("thinking"), x0=[1, 0], seconds=1)
    assert run.is_success and run.controllers["Planner"].calls == {}


def test_a_sensor_that_delivers_nothing_is_warned_about_and_counted():
    sensor = Sensor("gps", dt=0.1, dropout=1.0)
    with pytest.warns(RuntimeWarning, match="no measurement of gps was delivered: .* saw the sta"):
        run = simulate(cart(), Feedback([1, 1], 0.1), x0=[1, 0], seconds=1, sensors=[sensor])
    assert "gps: 11 measurements, 11 lost" in run.summary()
    assert "calls before any measurement: 10 of 10" in run.summary()


class Blind:
    """An estimator that believes in the origin."""

    def __init__(self):
        self.x = np.zeros(2)

    def predict(self, t, u, dt):
        """Believe on."""

    def update(self, sensor, y):
        raise AssertionError("nothing is delivered")


def test_an_estimator_without_measurements_is_warned_about():
    sensor = Sensor("gps", dt=0.1, dropout=1.0)
    told = r"no measurement of gps was delivered: the estimator only predicted$"
    with pytest.warns(RuntimeWarning, match=told):
        run = simulate(cart(), x0=[1, 0], seconds=1, dt=0.1, sensors=[sensor], estimator=Blind())
    assert run.is_success


def test_lost_late_and_stale_measurements_are_counted(tmp_path):
    lossy = Sensor("lossy", dt=0.1, dropout=0.5)
    run = simulate(cart(), Feedback([1, 1], 0.1), x0=[1, 0], seconds=4, sensors=[lossy], seed=1)
    entry = run.measurements["lossy"]
    assert entry.taken == 41 and entry.lost + len(entry.t) == 41 and 10 < entry.lost < 31
    assert f"lossy: 41 measurements, {entry.lost} lost" in run.summary()
    # A call sees the newest delivery: its age counts the periods since.
    ages = [t - entry.t[entry.t <= t + 1e-9][-1] for t in run.control["t"] if t >= entry.t[0]]
    np.testing.assert_allclose(run.control["measurement_age"][-len(ages) :], ages, atol=1e-9)
    stale = sum(age > 0.1 + 1e-6 for age in ages)
    assert any(f"100 ms: {stale} of 40, the oldest {max(ages):.3g} s" in s for s in run.summary())
    late = Sensor("late", dt=0.1, delay=0.25)
    run = simulate(cart(), Feedback([1, 1], 0.1), x0=[1, 0], seconds=1, sensors=[late])
    assert "late: 11 measurements, 8 late, 3 still under way at the end" in run.summary()
    assert SimulationResult.load(run.save(tmp_path / "late")).summary() == run.summary()
    fine = simulate(
        cart(), Feedback([1, 1], 0.1), x0=[1, 0], seconds=1, sensors=[Sensor("fine", dt=0.1)]
    )
    assert not any("measurement" in line for line in fine.summary())


def test_a_sensor_is_a_measurement_for_estimators():
    sensor = Sensor("p", "position", dt=0.1, density=0.2, bias=0.1)
    assert isinstance(sensor, Sensor)
    np.testing.assert_allclose(sensor.bind(cart()).covariance, [[0.04 / 0.1]])


def test_one_controller_in_two_loops_at_once_is_refused():
    shared = Feedback([1.0, 1.0], 0.1)

    class Rash(Feedback):
        def __call__(self, t, x, reference):
            simulate(cart(), self, x0=x, seconds=0.1)

    with pytest.raises(SimulationError, match="Rash failed .* Rash is in a loop already: .* make"):
        simulate(cart(), Rash([0.0, 0.0], 0.1), x0=[1, 0], seconds=0.2)
    with pytest.raises(RuntimeError, match="Feedback is in a loop already: .* make one for each"):
        simulate(cart(), Cascade(shared, shared), x0=[1, 0], seconds=0.2)
    simulate(cart(), shared, x0=[1, 0], seconds=0.2)  # and is free again after that


def test_one_controller_in_two_threads_is_refused():
    begun, done, found = threading.Event(), threading.Event(), []

    class Slow(Feedback):
        def __call__(self, t, x, reference):
            begun.set()
            done.wait(10)
            return [0.0]

    slow = Slow([0.0, 0.0], 0.5)
    thread = threading.Thread(
        target=lambda: found.append(simulate(cart(), slow, x0=[1, 0], seconds=1).is_success)
    )
    thread.start()
    begun.wait(10)
    with pytest.raises(RuntimeError, match="Slow is in a loop already"):
        simulate(cart(), slow, x0=[1, 0], seconds=1)
    done.set()
    thread.join()
    assert found == [True]


def test_a_moving_reference_that_ends_says_so():
    plant = cart()
    path = Trajectory(plant.state, [0.0, 1.0], [[0.0, 2.0], [2.0, 2.0]])
    options = {"x0": [0.0, 2.0], "reference": path, "dt": 0.1}

    def control(t, x, reference):
        return 0.0

    with pytest.warns(RuntimeWarning, match="the reference ends at 1 s while it moves, the run at"):
        run = simulate(plant, control, seconds=2, **options)
    assert any("reference ends at 1 s" in line for line in run.summary())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = simulate(plant, control, seconds=1, **options)
        resting = Trajectory(plant.state, [0.0, 1.0, 1.5], [[0, 0], [2, 0], [2, 0]])
        simulate(plant, control, seconds=2, dt=0.1, x0=[0, 0], reference=resting)
    assert not any("ends" in line for line in run.summary())


def test_a_reference_is_asked_once_about_each_time():
    asked = []

    def ramp(t):
        asked.append(t)
        return [t, 1.0]

    def curious(t, x, reference):
        ahead, now, back = reference(t + 0.1), reference(t), reference(t - 0.1)
        assert ahead[0] > now[0] > back[0]
        return 0.0

    run = simulate(cart(), curious, x0=[0, 1], seconds=1, dt=0.1, reference=ramp)
    assert len(asked) == 12 == len(set(np.round(asked, 6)))  # −0.1 s to 1 s
    np.testing.assert_allclose(run.reference[:, 0], run.t, atol=1e-12)


def test_what_fails_in_the_record_is_said():
    def short(t):
        if t > 0.95:
            raise ZeroDivisionError("no way beyond")
        return [t, 1.0]

    with pytest.warns(RuntimeWarning, match="the reference is not in the result: ZeroDivisionErr"):
        run = simulate(cart(), lambda t, x, r: 0.0, x0=[0, 1], seconds=1, dt=0.1, reference=short)
    assert run.reference is None and run.is_success


def test_predict_with_other_arguments_is_refused_before_the_run():
    class Old:
        x = np.zeros(2)

        def predict(self, u, dt):
            pass

        def update(self, sensor, y):
            pass

    with pytest.raises(TypeError, match=r"Old.predict\(u, dt\) must take \(t, u, dt\)"):
        simulate(cart(), x0=[0, 0], seconds=1, estimator=Old(), sensors=[Sensor("a", dt=0.1)])


def test_only_what_the_user_wrote_wrong_raises_out_of_a_run():
    plant = System("still", Rn(1), lambda t, x, u, p: 0 * x, inputs=["u"])
    with pytest.raises(SimulationError, match="law failed at t = 0 s: NameError"):

        def law(t, x, reference):
            return gain * x  # noqa: F821

        simulate(plant, law, x0=[0.0], seconds=1, dt=0.1)


def test_a_controller_is_free_again_after_ctrl_c():
    class Stopped(Feedback):
        def __call__(self, t, x, reference):
            if self.stops:
                raise KeyboardInterrupt
            return [0.0]

    control = Stopped([0.0, 0.0], 0.1)
    control.stops = True
    assert simulate(cart(), control, x0=[1, 0], seconds=1).status == RunStatus.INTERRUPTED
    control.stops = False
    assert simulate(cart(), control, x0=[1, 0], seconds=1).is_success


def test_a_controller_without_a_reference_is_refused_before_the_run():
    class Follower(Feedback):
        def prepare(self, t, x, reference):
            if reference is None:
                raise ValueError("cart has no reference to follow")

    control = Follower([1.0, 1.0], 0.1)
    with pytest.raises(ValueError, match="no reference to follow"):
        simulate(cart(), control, x0=[1, 0], seconds=1)
    assert control.calls == []


def test_losses_too_fast_for_the_loop_are_named():
    """The joint, what it loses, its inertia, and what to do."""
    inertia = SpatialInertia(1.0, [0, 0, 0], np.diag([1e-4] * 3))
    losses = JointProperties(damping=2.0)
    tree = Multibody(gravity=[0, 0, 0]).add_body("hand", inertia, "revolute", axis="z",
                                                 joint_name="wrist", properties=losses)  # fmt: skip

    def fling(t, x, reference):
        return [1e13]

    run = simulate(tree.system(), fling, x0=[0.0, 0.0], seconds=1, dt=0.1)
    assert run.status == RunStatus.DIVERGED
    for part in ("joint 'wrist", "losses of 2 N m s/rad", "inertia of 0.0001 kg m²",
                 "settle within 5e-05 s", "every 0.1 s", "losses=False", "armature"):  # fmt: skip
        assert part in run.message


def test_a_ctrl_c_that_was_swallowed_ends_the_run_all_the_same():
    """Callbacks from C may lose a KeyboardInterrupt."""

    class Deaf:
        dt = 0.1

        def __call__(self, t, x, reference):
            if t > 0.45:
                with contextlib.suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
            return np.zeros(1)

    wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    before = signal.getsignal(signal.SIGINT)
    run = simulate(wheel, Deaf(), x0=SO2.identity, seconds=2)
    assert run.status == "interrupted" and 0.4 < run.t[-1] < 0.8
    assert signal.getsignal(signal.SIGINT) is before
