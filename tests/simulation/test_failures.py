"""What goes wrong in the loop: the run up to then is never lost, and the message says who."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.simulation import Cascade, InputSignal, RunStatus, SimulationError, simulate
from lgcontrol.systems import Sensor, System

from ._plants import Feedback, cart


def at(time, action, value=0.0):
    """A controller that acts at one time and returns a value at all others."""

    def control(t, x, reference):
        return action() if abs(t - time) < 1e-9 else value

    return control


def fail():
    raise ZeroDivisionError("no gain at this speed")


def interrupt():
    raise KeyboardInterrupt


def test_what_a_controller_raises_comes_with_the_run():
    with pytest.raises(
        SimulationError,
        match=r"control failed at t = 0\.3 s: ZeroDivisionError: no gain at this speed",
    ) as caught:
        simulate(cart(), at(0.3, fail, 1.0), x0=[0, 0], seconds=1, dt=0.1)
    run = caught.value.result
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    np.testing.assert_allclose(run.t, [0.0, 0.1, 0.2])
    assert (run.x.shape, run.u.shape, run.command.shape) == ((3, 2), (2, 2), (3, 1))
    assert run.status == "failed" and "no gain" in run.message and not run.is_success


def test_a_controller_that_raises_at_once():
    with pytest.raises(SimulationError) as caught:
        simulate(cart(), at(0.0, fail), x0=[4, 0], seconds=1, dt=0.1)
    run = caught.value.result
    assert run.x.tolist() == [[4.0, 0.0]] and run.u.shape == (0, 2)
    assert run.trajectory(0.0).x.tolist() == [4.0, 0.0]
    assert run.summary()[0].startswith("failed: control failed")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (np.nan, r"ValueError: the result of control is not finite: entry \(0,\) is nan"),
        ([1.0, 2.0], r"ValueError: the result of control has shape \(2,\), expected \(1,\)"),
        ([[1.0]], r"ValueError: the result of control has shape \(1, 1\), expected \(1,\)"),
        ("full", "ValueError"),
        (None, r"returned None, expected 1 controls \(force\): does it end without a return"),
    ],
)
def test_an_answer_that_is_no_control_is_refused(answer, text):
    with pytest.raises(SimulationError, match=f"control failed at t = 0.2 s: .*{text}"):
        simulate(cart(), at(0.2, lambda: answer), x0=[0, 0], seconds=1, dt=0.1)


def test_an_outer_controller_that_returns_nothing_is_named():
    class Forgetful:
        dt = 0.1

        def __call__(self, t, x, reference):
            pass

    with pytest.raises(SimulationError, match="Forgetful failed .* returned None, expected the re"):
        simulate(cart(), Cascade(Forgetful(), Feedback([1, 1], 0.1)), x0=[0, 0], seconds=1)


def test_what_a_signal_raises_or_calls_wrong_is_named():
    signal = InputSignal(lambda t: fail() if t > 0.15 else {}, dt=0.1)
    with pytest.raises(SimulationError, match=r"InputSignal failed at t = 0\.2 s: ZeroDivision"):
        simulate(cart(), x0=[0, 0], seconds=1, disturbances=[signal])
    signal = InputSignal(lambda t: {"gust": 1.0}, dt=0.1)
    with pytest.raises(SimulationError, match="unknown input 'gust'; valid names are force, wind"):
        simulate(cart(), x0=[0, 0], seconds=1, disturbances=[signal])
    signal = InputSignal(lambda t: {"wind": np.nan}, dt=0.1)
    with pytest.raises(SimulationError, match="InputSignal gave a value that is not finite"):
        simulate(cart(), x0=[0, 0], seconds=1, disturbances=[signal])


def test_what_the_plant_raises_is_named():
    class Fragile(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("fragile", {})

        def eval(self, arguments):
            if float(arguments[0]) > 1.5:
                raise ValueError("broken")
            return [arguments[0] * 0 + 1]

    fragile = Fragile()
    plant = System("vase", Rn(1), lambda t, x, u, p: fragile(x), symbol=ca.MX)
    with pytest.raises(SimulationError, match="vase failed at t = ") as caught:
        simulate(plant, x0=[0], seconds=3, dt=0.1, max_step=0.1, method="euler")
    # Several steps go into one call, and none of the last ones came back.
    assert caught.value.result.is_success is False


def test_divergence_keeps_the_finite_part():
    """ẋ = x² from 1 goes to infinity at t = 1."""
    plant = System("burst", Rn(1), lambda t, x, u, p: x**2, inputs=["u"])
    free = simulate(plant, x0=[1.0], seconds=3, dt=0.01)
    held = simulate(plant, Feedback([[0.0]], 0.01), x0=[1.0], seconds=3)
    for run in (free, held):
        assert run.status == "diverged" and not run.is_success
        assert np.isfinite(run.x).all() and len(run.u) == len(run.t) - 1
        assert 0.98 < run.t[-1] < 1.01
        assert f"after t = {run.t[-1]:g} s" in run.message
        assert run.x[50, 0] == pytest.approx(2.0, rel=1e-6)
        np.testing.assert_allclose(run.x[:99, 0], 1 / (1 - run.t[:99]), rtol=1e-5)


def test_a_plant_with_a_jump_is_unresolved_and_says_so():
    """A relay that pushes back to the switching line: no step follows it along the line."""
    relay = System("relay", Rn(1), lambda t, x, u, p: -1e3 * ca.sign(x))
    run = simulate(relay, x0=[105.0], seconds=1.0)
    assert run.status == RunStatus.UNRESOLVED and not run.is_success
    assert run.t[-1] == pytest.approx(0.1)
    assert "relay moves too fast for steps of" in run.message and "it has jumps" in run.message
    assert run.summary()[0].startswith("unresolved: relay moves too fast")


def test_equal_steps_that_do_not_solve_their_equations_end_a_run():
    bent = System("bent", Rn(1), lambda t, x, u, p: -1e4 * ca.sinh(x))
    for record in ({}, {"dt": 0.02}):  # many steps in one call, or one
        run = simulate(bent, x0=[30.0], seconds=0.2, method="radau_iia5", max_step=0.02, **record)
        assert run.status == RunStatus.UNRESOLVED and not run.is_success
        assert "radau_iia5 did not solve the equations of bent's step of 0.02 s" in run.message
        assert "at t = 0 s: the residual is" in run.message
    assert simulate(bent, x0=[0.01], seconds=0.2, method="radau_iia5", max_step=1e-3).is_success


def test_equal_steps_are_not_watched():
    carts = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"]).augment(lag=0.001)
    literal = simulate(carts, x0=[1.0, 0.0, 0.1], seconds=1, method="euler")
    assert literal.status == "diverged" and "is beyond 1e+12" in literal.message
    assert literal.settings["tolerance"] is None
    assert any("steps of 0.01 s, errors: not watched" in line for line in literal.summary())


@pytest.mark.parametrize("time", [0.0, 0.4])
def test_ctrl_c_keeps_the_run_up_to_then(time):
    run = simulate(
        cart(), at(time, interrupt, 1.0), x0=[1, 0], seconds=1, dt=0.1,
        sensors=[Sensor("all", dt=0.1)],
    )  # fmt: skip
    assert run.status == "interrupted" and run.message == f"stopped at t = {time:g} s"
    count = max(round(time / 0.1), 1)
    assert run.t.shape == (count,) and run.u.shape == (count - 1, 2)
    assert run.controllers["control"].t.shape == (round(time / 0.1),)
    assert run.summary()[0] == f"interrupted: stopped at t = {time:g} s"


def test_ctrl_c_in_progress_keeps_the_run():
    def stop(fraction):
        if fraction > 0.5:
            raise KeyboardInterrupt

    run = simulate(cart(), at(9, fail), x0=[1, 0], seconds=1, dt=0.1, progress=stop)
    assert run.status == "interrupted" and 0.4 < run.t[-1] < 0.7


def test_progress_goes_up_to_one_in_at_most_a_hundred_calls():
    for control in (Feedback([0, 0], 0.01), None):
        seen = []
        simulate(cart(), control, x0=[1, 0], seconds=20, progress=seen.append)
        assert 1 <= len(seen) <= 100 and seen[-1] == 1.0
        assert (np.diff(seen) > 0).all()
    assert seen[0] < 0.5


def test_controllers_are_reset_before_each_run():
    control = Feedback([1.0, 1.0], dt=0.1)
    for _ in range(2):
        simulate(cart(), control, x0=[1, 0], seconds=1)
    assert len(control.calls) == 10
