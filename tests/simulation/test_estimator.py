"""The estimator in the loop: what it is told, when, and what comes of it."""

import numpy as np
import pytest

from lgcontrol.simulation import HeldNoise, Pulse, SimulationError, simulate
from lgcontrol.systems import Sensor

from ._plants import Feedback, cart


class Diary:
    """Writes down what it is told; believes in a fixed state."""

    def __init__(self, x=(0.0, 0.0), P=None):
        self.x, self.P, self.entries, self.resets = np.array(x, dtype=float), P, [], 0

    def reset(self):
        self.resets += 1
        self.entries.clear()

    def predict(self, t, u, dt):
        self.entries.append(("predict", u.tolist(), round(dt, 9)))

    def update(self, sensor, y):
        self.entries.append(("update", sensor))


class Kalman:
    """The Kalman filter of the cart with 2 kg, written out; knows position measurements only."""

    def __init__(self, variance, push):
        self.variance, self.push = variance, push
        self.reset()

    def reset(self):
        self.x, self.P = np.zeros(2), np.diag([1.0, 1.0])

    def predict(self, t, u, dt):
        A, b = np.array([[1, dt], [0, 1]]), np.array([dt**2 / 4, dt / 2])
        self.x = A @ self.x + b * u[0]
        self.P = A @ self.P @ A.T + np.outer(b, b) * self.push**2

    def update(self, sensor, y):
        K = self.P[:, :1] / (self.P[0, 0] + self.variance)
        self.x = self.x + (K * (y - self.x[:1])).ravel()
        self.P = self.P - K @ self.P[:1]


def test_predict_covers_every_interval_once_and_updates_come_at_delivery():
    diary, control = Diary(), Feedback([0.0, 0.0], dt=0.1)
    simulate(
        cart(),
        control,
        x0=[0, 0],
        seconds=0.2,
        sensors=[Sensor("a", dt=0.1, delay=0.05), Sensor("b", dt=0.08, offset=0.05)],
        estimator=diary,
    )
    still = [0.0, 0.0]
    assert diary.entries == [
        ("predict", still, 0.05),
        ("update", "a"),  # taken at 0: the older one first
        ("update", "b"),
        ("predict", still, 0.05),
        ("predict", still, 0.03),
        ("update", "b"),
        ("predict", still, 0.02),
        ("update", "a"),
        ("predict", still, 0.05),
    ]
    assert diary.resets == 1


def test_it_knows_the_controls_as_applied_but_no_disturbance():
    """Saturated, delayed; nothing of the wind or of wear on the control itself."""
    diary = Diary()
    simulate(
        cart(), lambda t, x, r: 9.0, x0=[0, 0], seconds=0.3, dt=0.1, estimator=diary,
        sensors=[Sensor("a", dt=0.3, offset=0.3)],
        disturbances=[Pulse({"wind": 2.0, "force": -1.0}, start=0.0)],
    )  # fmt: skip
    assert [entry for entry in diary.entries if entry[0] == "predict"] == [
        ("predict", [5.0, 0.0], 0.1)
    ] * 3


def test_it_may_use_what_it_is_given_as_its_own():
    class Greedy(Diary):
        def predict(self, t, u, dt):
            u[:] = 99.0

        def update(self, sensor, y):
            y[:] = 99.0

    run = simulate(
        cart(), lambda t, x, r: 1.0, x0=[0, 0], seconds=0.3, dt=0.1, estimator=Greedy(),
        sensors=[Sensor("a", dt=0.1)],
    )  # fmt: skip
    assert run.measurements["a"].y.max() < 1 and run.u.max() == 1.0


def test_the_controller_sees_the_estimate_as_of_now():
    """Corrected by a measurement that arrives at the very time of the call."""

    class Believer(Diary):
        def update(self, sensor, y):
            self.x = y + 1.0

    run = simulate(
        cart(), Feedback([1.0, 0.0], dt=0.1), x0=[2, 0], seconds=0.1,
        sensors=[Sensor("a", dt=0.1)], estimator=Believer([7.0, 0.0]),
    )  # fmt: skip
    assert run.command[0, 0] == -3.0
    np.testing.assert_allclose(run.estimate[0], [3.0, 1.0])
    np.testing.assert_allclose(run.estimation_error, [[-1.0, -1.0]] * 2)
    assert run.estimate_std is None


def test_a_kalman_filter_in_the_loop_is_as_good_as_it_says():
    """Noisy positions, random pushes: the errors' spread is that of the recorded deviations."""
    sigma, push = 0.05, 1.0
    runs = [
        simulate(
            cart(),
            Feedback([6.0, 6.0], dt=0.1),
            x0=[0.0, 0.0],
            seconds=12,
            sensors=[Sensor("p", dt=0.1, h="position", std_discrete=sigma)],
            estimator=Kalman(sigma**2, push),
            disturbances=[HeldNoise({"wind": push}, dt=0.1)],
            max_step=0.1,
            seed=seed,
        )
        for seed in range(20)
    ]
    assert all(run.settings["feedback"] == "estimate" for run in runs)
    settled = np.concatenate([run.estimation_error[21:] for run in runs])
    assert len(settled) == 20 * 100
    # The errors are correlated over about half a second, so that 2000 of them scatter like 400.
    np.testing.assert_allclose(
        settled.std(axis=0), runs[0].estimate_std[-1], rtol=4 / np.sqrt(2 * 400)
    )


def test_the_estimate_is_recorded_at_all_times_as_predicted():
    """At times when only the wind changes too."""
    run = simulate(
        cart(), Feedback([0.0, 0.0], dt=0.5), x0=[0, 2], seconds=0.5, record_dt=0.1,
        sensors=[Sensor("p", dt=0.5, h="position")], estimator=Kalman(1e-8, 0.0),
        disturbances=[Pulse({"wind": 0.0}, start=0.25)],
    )  # fmt: skip
    assert len(run.t) == 7
    assert len({tuple(row) for row in run.estimate_std}) == 7


def test_another_number_of_coordinates_is_no_error_but_has_none():
    diary = Diary([0.0, 0.0, 0.0], P=np.eye(3) * 4)
    run = simulate(cart(), x0=[0, 0], seconds=0.2, sensors=[Sensor("a", dt=0.1)], estimator=diary)
    assert run.estimate.shape == (21, 3)
    np.testing.assert_allclose(run.estimate_std, 2.0)
    with pytest.raises(ValueError, match="the estimator's x has 3 coordinates, the plant's state"):
        _ = run.estimation_error
    assert not any("estimation" in line for line in run.summary())


def test_an_estimate_that_is_not_finite_ends_the_run():
    class Bad(Diary):
        def update(self, sensor, y):
            self.x = self.x + np.inf

    run = simulate(
        cart(), Feedback([1, 1], 0.1), x0=[0, 0], seconds=1, estimator=Bad(),
        sensors=[Sensor("a", dt=0.1, offset=0.35)],
    )  # fmt: skip
    assert run.status == "diverged"
    assert run.message == "the estimate is not finite after t = 0.35 s"
    assert np.isfinite(run.x).all()


@pytest.mark.parametrize("method", ["predict", "update", "reset"])
def test_what_it_raises_comes_with_the_run_up_to_then(method):
    class Faulty(Diary):
        pass

    def fail(self, *arguments):
        raise ZeroDivisionError("no information")

    setattr(Faulty, method, fail)
    with pytest.raises(SimulationError, match="the estimator failed at t = .*no information") as e:
        simulate(
            cart(), x0=[1, 0], seconds=1, estimator=Faulty(),
            sensors=[Sensor("a", dt=0.1, offset=0.3)],
        )  # fmt: skip
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    assert len(e.value.result.t) >= 1 and e.value.result.status == "failed"


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match=r"object is no estimator: it lacks predict\(\)"):
        simulate(cart(), x0=[0, 0], seconds=1, estimator=object(), sensors=[Sensor("a", dt=0.1)])
    with pytest.raises(ValueError, match="an estimator needs sensors"):
        simulate(cart(), x0=[0, 0], seconds=1, estimator=Diary())
    with pytest.raises(ValueError, match="feedback='estimate' needs an estimator"):
        simulate(cart(), x0=[0, 0], seconds=1, feedback="estimate")
    with pytest.raises(ValueError, match="feedback must be one of state, measurement, estimate"):
        simulate(cart(), x0=[0, 0], seconds=1, feedback="truth")
