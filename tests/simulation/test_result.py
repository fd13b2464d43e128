"""What a result offers: errors, blocks, text, python-control."""

import time
from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol.controllers import MPC, GeometricPD
from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn
from lgcontrol.models import satellite
from lgcontrol.simulation import RunStatus, SimulationResult, simulate
from lgcontrol.simulation._internal import ControllerLog
from lgcontrol.systems import System

from ._plants import Feedback, cart, drone, swinging


@pytest.fixture(scope="module")
def run() -> SimulationResult:
    plant = drone()
    return simulate(
        plant,
        Feedback(np.zeros((4, 13)), 0.1),
        x0=plant.state.random(1),
        reference=plant.state.random(2),
        seconds=1,
    )


def test_error_is_minus_of_state_and_reference(run):
    np.testing.assert_allclose(run.group.plus(run.reference, run.error), run.x, atol=1e-12)
    np.testing.assert_allclose(run.block_error("twist"), run.error[:, 6:])
    np.testing.assert_allclose(run.block("twist"), run.x[:, 7:])


def test_trajectory_interpolates(run):
    assert run.trajectory(0.35).x.shape == (13,)
    np.testing.assert_allclose(run.trajectory(run.t).x, run.x, atol=1e-12)
    np.testing.assert_array_equal(run.trajectory(0.35).u, run.u[3])


def test_shown_in_a_line_and_printed_with_its_summary(run):
    assert repr(run) == "SimulationResult('drone', completed, 1 s, 10 intervals)"
    assert str(run).splitlines() == [repr(run), *(f"  {line}" for line in run.summary())]


def test_unknown_names_list_the_valid_ones(run):
    with pytest.raises(KeyError, match="unknown block 'twst'; valid names are pose, twist"):
        run.block("twst")
    with pytest.raises(KeyError, match="unknown block 'x'"):
        run.block_error("x")
    with pytest.raises(KeyError, match="unknown input 'torque'; valid names are thrust, torque_x"):
        run.input("torque")
    with pytest.raises(TypeError, match=r"the state Rn\(2\) has no blocks"):
        simulate(swinging(), x0=[0, 0], seconds=1).block("angle")


def test_as_python_control_response(run):
    response = run.to_control()
    assert isinstance(response, control.TimeResponseData)
    np.testing.assert_array_equal(response.time, run.t)
    np.testing.assert_array_equal(response.outputs, run.error.T)
    np.testing.assert_array_equal(response.states, run.x.T)
    np.testing.assert_array_equal(response.inputs[:, :-1], run.u.T)
    np.testing.assert_array_equal(response.inputs[:, -1], run.u[-1])
    assert response.output_labels == [n.replace(".", "_") for n in run.group.tangent_names]
    assert response.input_labels == list(run.input_names)
    assert response.title == "drone"


def test_as_python_control_response_without_reference_or_inputs():
    response = simulate(swinging(), x0=[1, 0], seconds=1).to_control()
    np.testing.assert_array_equal(response.outputs, response.states)
    assert response.output_labels == ["angle", "rate"]
    stopped = simulate(cart(), lambda t, x, r: 0 / 0 if t else 0.0, x0=[0, 0], seconds=1, dt=1)
    assert stopped.to_control().inputs.shape == (2, 2)


def test_what_the_controller_does_not_weigh_is_no_error(tmp_path):
    """Wheels turn a satellite and end at any speed: that is told, and not as the final error."""
    craft = satellite(wheels=True)
    weights = {"pose": 1.0, "twist": 20.0, "wheel_speed": 0.0}
    goal = craft.state.join(pose=SO3.exp([0.3, 0.0, 0.0]), twist=np.zeros(3), wheel_speed=[0.0] * 3)
    for law in (
        MPC(craft, 10, 0.5, Q=weights, R=1.0, terminal=weights),
        GeometricPD(craft, frequency=0.3, dt=0.1),
    ):
        run = simulate(craft, law, x0=craft.state.identity, reference=goal, seconds=0.5)
        assert run.tracked.tolist() == 6 * [True] + 3 * [False]
        off = np.linalg.norm(run.block_error("wheel_speed")[-1])
        text = "\n".join(run.summary())
        assert "final error of wheel_speed" not in text and "final error of twist" in text
        told = f"not weighed by the controller: wheel_speed ends {off:.4g} rad/s off its reference"
        assert told in run.summary() and off > 0
    again = SimulationResult.load(run.save(tmp_path / "run.npz"))
    assert again.summary() == run.summary()


def test_a_run_that_is_no_success_says_why():
    """Status, answers and loops: ``message`` is empty for a success alone."""

    class Silent:
        dt = 0.1
        info = SimpleNamespace(status="unsolved", message="no plan was found")

        def __call__(self, t, x, reference):
            return [0.0]

    good = simulate(cart(), lambda t, x, r: 0.0, x0=[0, 0], seconds=1, dt=0.1)
    assert good.is_success and good.message == ""
    run = simulate(cart(), Silent(), x0=[0, 0], seconds=1)
    assert not run.is_success and run.status == "completed"
    assert run.message == "Silent was unsolved at every call: no plan was found"
    assert run.message in run.summary()


def test_effort_is_the_integral_of_the_squared_controls():
    run = simulate(cart(), lambda t, x, r: 2.0 if t < 0.45 else 1.0, x0=[0, 0], seconds=1, dt=0.25)
    np.testing.assert_allclose(run.effort(), [4 * 0.5 + 1 * 0.5])


def test_saturation_counts_calls_that_meet_the_bounds():
    """Controllers that clip themselves end at the bounds, others beyond."""
    for most in (5.0, 6.0):
        run = simulate(
            cart(), lambda t, x, r, most=most: most if t > 0.6 else 4.9, x0=[0, 0], seconds=1,
            dt=0.25,
        )  # fmt: skip
        assert run.saturation() == 0.25
    assert simulate(cart(), x0=[0, 0], seconds=1).saturation() == 0.0


def test_commands_just_inside_the_bounds_count():
    """Interior-point solvers end there; near is measured by the range between the bounds."""
    lower, upper = np.array(cart().input_bounds)[:, 0]
    for share, met in ((0.9e-4, 1.0), (1.1e-4, 0.0)):
        most = upper - share * (upper - lower)
        run = simulate(cart(), lambda t, x, r, most=most: most, x0=[0, 0], seconds=1, dt=0.25)
        assert run.saturation() == met
    assert "commands at or beyond the bounds: 0 %" in run.summary()
    half = [np.zeros((2, 1)), np.array([[0.0], [np.inf]]), np.array([[-np.inf], [np.inf]])]
    counts = [replace(run, input_bounds=bounds).saturation() for bounds in half]
    assert counts == [1.0, 0.0, 0.0]


def test_summary_text():
    group = Product(attitude=SO3, speed=Rn(1, ("v",), ("m/s",)))
    x = np.array([[0, 0, 0, 1, 2.0], [*SO3.exp([0.3, 0.0, 0.4]), 1.5]])
    log = ControllerLog(
        np.array([0.0, 1.0]),
        np.array([[1.0, 9.0], [1.0, 1.0]]),
        {"call_time": np.array([1e-3, 3e-3]), "status": np.array(["solved", "late"])},
    )
    run = SimulationResult(
        name="toy",
        group=group,
        t=np.array([0.0, 2.0]),
        x=x,
        u=np.array([[1.0, 4.0, 7.0]]),
        input_names=("a", "b", "w"),
        input_units=("N", "N m", "m"),
        input_roles=("control", "control", "disturbance"),
        input_bounds=np.array([[-5.0, -5.0, 0.0], [5.0, 5.0, 0.0]]),
        reference=np.array([[0, 0, 0, 1, 1.0]] * 2),
        controllers={"mpc": log},
        status=RunStatus.DIVERGED,
        message="gone",
    )
    assert run.summary() == [
        "diverged: gone",
        "final error of attitude: 0.5 rad",
        "final error of speed: 0.5 m/s",
        "effort, integral of u²: 2 N²·s, 32 (N m)²·s",
        "commands at or beyond the bounds: 50 %",
        "controller call: median 2.00 ms, 99 % 2.98 ms, longest 3.00 ms",
        "controller status: late 1, solved 1",
    ]
    two = replace(run, controllers={"plan": log, "track": log}, status=RunStatus.COMPLETED)
    assert two.summary()[4:6] == [
        "plan: controller call: median 2.00 ms, 99 % 2.98 ms, longest 3.00 ms",
        "plan: controller status: late 1, solved 1",
    ]


def test_calls_longer_than_a_period_are_counted():
    """One call of four hundred, which a share in percent would round away."""
    times = np.full(400, 1e-3)
    times[7] = 30e-3
    log = ControllerLog(0.02 * np.arange(400), None, {"call_time": times})
    run = simulate(cart(), lambda t, x, r: 0.0, x0=[0, 0], seconds=1, dt=0.25)
    run = replace(run, controllers={"mpc": log})
    assert log.overruns == 1 and log.period == pytest.approx(0.02)
    assert "calls longer than the sample time of 20 ms: 1 of 400" in run.summary()
    quick = ControllerLog(log.t, None, {"call_time": np.full(400, 0.02 - 1e-9)})
    once = ControllerLog(log.t[:1], None, {"call_time": times[7:8]})
    assert quick.overruns == once.overruns == once.period == 0
    assert "longer than the sample" not in "".join(replace(run, controllers={"a": quick}).summary())


@pytest.mark.parametrize(
    ("group", "error", "lines"),
    [
        (
            Product(pose=SE3, twist=Rn(6, tuple("abcdef"), ("m/s",) * 3 + ("rad/s",) * 3)),
            [3, 4, 0, 0, 0.3, 0.4, 0, 0, 2, 1, 0, 0],
            [" of pose: position 5 m, attitude 0.5 rad",
             " of twist: velocity 2 m/s, angular velocity 1 rad/s"],
        ),
        (Product(pose=SE2, fuel=Rn(1)), [0.3, 0.4, 0.1, 7],
         [" of pose: position 0.5 m, heading 0.1 rad", " of fuel: 7"]),
        (SO2, [0.25], [": 0.25 rad"]),
    ],
)  # fmt: skip
def test_summary_says_what_the_error_is_of(group, error, lines):
    toy = System("toy", group, lambda t, x, u, p: ca.SX(group.dim, 1))
    start = group.plus(group.identity, np.array(error, dtype=float))
    run = simulate(toy, x0=start, seconds=1, reference=group.identity)
    assert run.summary()[: len(lines)] == [f"final error{line}" for line in lines]


@pytest.mark.parametrize(
    "info",
    [{"cost": 2.0}, SimpleNamespace(cost=2.0), namedtuple("Info", "cost")(2.0)],
)
def test_info_may_be_a_mapping_an_object_or_a_named_tuple(info):
    control = Feedback([0.0, 0.0], 0.5)
    control.info = info
    run = simulate(cart(), control, x0=[0, 0], seconds=1)
    np.testing.assert_array_equal(run.control["cost"], [2.0, 2.0])
    np.testing.assert_array_equal(run.control["t"], [0.0, 0.5])


def test_states_of_an_enumeration_are_kept_by_name():
    from enum import Enum

    control = Feedback([0.0, 0.0], 0.5)
    control.info = {"status": Enum("Status", "SOLVED FAILED").SOLVED, "ok": np.bool_(True)}
    run = simulate(cart(), control, x0=[0, 0], seconds=1)
    assert run.control["status"].tolist() == ["SOLVED", "SOLVED"]
    assert run.control["ok"].tolist() == [1.0, 1.0]


def lift():
    places = Product(car=Rn(1, ("height",), ("m",)), door=Rn(1))
    return System(
        "lift", Product(configuration=places, rate=Rn(2)),
        lambda t, x, u, p: [x[2], x[3], u, 0.0], inputs=["push"],
        limits={"configuration.car.height": (0.0, 1.0)},
    )  # fmt: skip


def test_states_beyond_their_limits_are_told(tmp_path):
    push = lambda t, x, reference: 4.0  # noqa: E731
    run = simulate(lift(), push, x0=np.zeros(4), seconds=1.0, dt=0.1)
    assert run.beyond_limits() == pytest.approx({"configuration.car.height": 1.0})
    text = (
        "beyond the limits of configuration.car.height from 0.8 s on, by up to 1 m: 2, "
        "allowed are 0 … 1"
    )
    assert text in run.summary()
    again = SimulationResult.load(run.save(tmp_path / "lift"))
    assert again.beyond_limits() == run.beyond_limits()
    assert simulate(lift(), x0=np.zeros(4), seconds=0.1).beyond_limits() == {}
    with pytest.warns(RuntimeWarning, match="x0 is beyond the limits of .*height: -1, allowed"):
        simulate(lift(), x0=[-1.0, 0, 0, 0], seconds=0.1)
    with pytest.warns(RuntimeWarning, match="reference is beyond .*height: 3, all.* by 2;"):
        simulate(lift(), push, x0=np.zeros(4), reference=[3.0, 0, 0, 0], seconds=0.1, dt=0.1)


def test_blocks_in_blocks_go_by_their_own_names():
    run = simulate(lift(), x0=[0.5, 0.25, 0, 0], reference=np.zeros(4), seconds=0.1)
    for name in ("car", "configuration.car"):
        assert np.array_equal(run.block(name), run.x[:, :1])
        assert np.allclose(run.block_error(name), 0.5)
    assert run.block("configuration").shape[1] == 2
    with pytest.raises(KeyError, match="unknown block 'cab'.*car"):
        run.block("cab")


def test_calls_longer_than_the_sample_time_are_counted():
    def slow(t, x, reference):
        time.sleep(0.11 if t > 0.15 else 0.0)
        return 0.0

    run = simulate(cart(), slow, x0=[0, 0], seconds=0.4, dt=0.1)
    assert "calls longer than the sample time of 100 ms: 2 of 4" in run.summary()
    log = run.controllers["slow"]
    always = replace(log, info=log.info | {"call_time": np.full(4, 0.2)})
    late = replace(run, controllers={"slow": always})
    assert "calls longer than the sample time of 100 ms: 4 of 4" in late.summary()


class Commander:
    """A controller with a task of its own, whose reference is no state."""

    dt = 0.1

    def __init__(self, system):
        self.system = system

    def __call__(self, t, x, reference):
        return 0.0

    def reference_states(self, times, reference):
        return np.outer(np.ones(len(times)), [reference, 0.0])

    def task_errors(self, times, x, reference):
        return {"tip": (x[:, :1] - reference, Rn(1, ("height",), ("m",)))}


def test_controllers_say_what_they_follow(tmp_path):
    plant = cart()
    run = simulate(plant, Commander(plant), x0=[1.0, 0.0], reference=0.25, seconds=0.5)
    assert np.allclose(run.error, [0.75, 0.0])
    assert np.allclose(run.tasks["tip"].error, 0.75)
    assert "final error of tip: 0.75 m" in run.summary()
    assert any("tip: position from its goal" in ax.get_title(loc="left") for ax in run.plot().axes)
    again = SimulationResult.load(run.save(tmp_path / "tip"))
    assert np.array_equal(again.tasks["tip"].error, run.tasks["tip"].error)
    assert repr(again.tasks["tip"]) == "TaskError(Rn(1), 6 times, last=[0.75])"
