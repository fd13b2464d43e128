"""Arguments of simulate that do not fit: what was given, what was expected, what to do."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SO3, Product, Rn
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.models import four_bar
from lgcontrol.simulation import Kick, simulate
from lgcontrol.systems import Sensor, System, Trajectory

from ._plants import Feedback, cart, drone, swinging


def hold(t, x, reference):
    return 0.0


class Slow:
    dt = 0.2

    def __call__(self, t, x, reference):
        return 0.0


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"controller": hold}, ValueError, r"hold has no dt of its own: give simulate\(..., dt="),
        ({"controller": 3.0}, TypeError, r"callable \(t, x, reference\) → controls, not float"),
        ({"controller": Slow(), "dt": 0.1}, ValueError,
         r"dt = 0.1 s is of no use: Slow has dt = 0.2 s of its own; .* give record_dt"),
        ({"controller": Slow}, TypeError, r"is the class Slow: give an instance, Slow\("),
        ({"disturbances": {"wind": 1.0}}, TypeError, r"a list of .*, as in disturbances=\["),
        ({"x0": [0.0]}, ValueError, r"x0 has shape \(1,\), expected \(2,\)"),
        ({"x0": np.zeros((20, 2))}, ValueError, r"x0 has shape \(20, 2\).* simulate_many\("),
        ({"x0": [0.0, np.inf]}, ValueError, r"x0 is not finite: entry \(1,\) is inf"),
        ({"x0": "home"}, TypeError, "x0 must be an array of numbers"),
        ({"seconds": 0.0}, ValueError, "seconds must be a positive number of seconds, got 0"),
        ({"seconds": np.inf}, ValueError, "seconds must be a positive number of seconds, got inf"),
        ({"seconds": "long"}, TypeError, "seconds must be a number of seconds, got 'long'"),
        ({"max_step": -1.0}, ValueError, "max_step must be a positive"),
        ({"record_dt": 0.0}, ValueError, "record_dt must be a positive"),
        ({"p": [1.0, 2.0]}, ValueError, r"p has shape \(2,\), expected \(1,\)"),
        ({"method": "rk4", "tolerance": 1e-8}, ValueError, "leave out the method .* max_step"),
        ({"method": "rk5"}, ValueError, "rk5.*rk4"),
    ],
)  # fmt: skip
def test_mistakes(options, error, text):
    arguments = {"x0": [0, 0], "seconds": 1} | options
    with pytest.raises(error, match=text):
        simulate(cart(), arguments.pop("controller", None), **arguments)


def test_a_controller_of_another_state_is_refused():
    """It would have as many coordinates and controls, and steer nonsense."""

    def field(t, x, u, p):
        return ca.vertcat(x[4:], u)

    inputs = ["a", "b", "c"]
    craft = System("craft", Product(pose=SE2, twist=Rn(3)), field, inputs=inputs)
    body = System("body", Product(attitude=SO3, rate=Rn(3)), field, inputs=inputs)
    alike = System("alike", Product(place=SE2, v=Rn(2), w=Rn(1)), field, inputs=inputs)

    class Model(Slow):
        def __init__(self, system):
            self.system = system

        def __call__(self, t, x, reference):
            return [0.0, 0.0, 0.0]

    start = craft.state.identity
    with pytest.raises(
        ValueError, match="controller of body, .* attitude, rate, expected pose, twist"
    ):
        simulate(craft, Model(body), x0=start, seconds=1)
    assert simulate(craft, Model(alike), x0=start, seconds=1).is_success


def test_a_tree_is_no_plant():
    rod = SpatialInertia.rod(2.0, length=1.0)
    tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    with pytest.raises(TypeError, match=r"plant must be a System, not Multibody; give its .system"):
        simulate(tree, x0=[0.0, 0.0], seconds=1)


def test_a_start_that_cannot_be_normalised():
    with pytest.raises(ValueError, match="x0 = .* is no element of .* cannot be normalised"):
        simulate(drone(), x0=np.zeros(13), seconds=1)


def test_a_start_with_an_attribute_x():
    """As equilibria from trim have."""
    from types import SimpleNamespace

    assert simulate(cart(), x0=SimpleNamespace(x=[1.0, 0.0]), seconds=1).x[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seconds": 1.01}, "seconds = 1.01 s is no multiple of 0.02 s, the sample time of swing"),
        ({"dt": 0.03}, "dt of hold = 0.03 s is no multiple of 0.02 s"),
        (
            {"sensors": [Sensor("a", dt=0.02, delay=0.01)]},
            "delay of sensor 'a' = 0.01 s is no",
        ),
        ({"disturbances": [Kick(0.33, [0, 1])]}, "time of a Kick = 0.33 s is no multiple"),
        ({"record_dt": 0.05}, "record_dt = 0.05 s is no multiple"),
    ],
)
def test_times_between_the_samples_of_a_discrete_plant(options, text):
    arguments = {"x0": [0, 0], "seconds": 1, "dt": 0.04} | options
    with pytest.raises(ValueError, match=text):
        simulate(swinging(dt=0.02), hold, **arguments)


def test_a_dt_of_zero_means_any_rate():
    control = Feedback([1.0, 1.0], dt=0.0)
    simulate(cart(), control, x0=[1, 0], seconds=1, dt=0.25)
    assert control.calls == [0.0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize(("dt", "count"), [(None, 101), (0.05, 21)])
def test_record_of_a_run_without_controller(dt, count):
    assert len(simulate(cart(), x0=[0, 0], seconds=1, dt=dt).t) == count


def test_references_that_are_states_are_recorded():
    plant = cart()
    path = Trajectory(plant.state, [0.0, 1.0], [[0.0, 1.0], [2.0, 1.0]])
    options = {"x0": [0, 0], "seconds": 1, "dt": 0.25}
    ramp = np.column_stack([2 * np.arange(5) / 4, np.ones(5)])
    for reference, expected in (
        ([3.0, 1.0], np.tile([3.0, 1.0], (5, 1))),
        (path, ramp),
        (lambda t: [2 * t, 1.0], ramp),
        (lambda t: path(t), ramp),
    ):
        run = simulate(plant, hold, reference=reference, **options)
        np.testing.assert_allclose(run.reference, expected)
        np.testing.assert_allclose(run.error, run.x - expected)


@pytest.mark.parametrize(
    "reference",
    [None, [1.0], "north", {"x": 1}, lambda t: "north", lambda: [0, 0],
     Trajectory(SO3, [0.0, 1.0], SO3.random(1, 2))],
)  # fmt: skip
def test_other_references_reach_the_controller_and_leave_no_error(reference):
    seen = []

    def control(t, x, goal):
        seen.append(goal)
        return 0.0

    run = simulate(cart(), control, x0=[0, 0], seconds=1, dt=0.5, reference=reference)
    given = [getattr(goal, "function", goal) for goal in seen]  # functions are asked once
    assert given == [reference, reference]
    assert run.reference is None
    with pytest.raises(ValueError, match="no reference that is a state"):
        _ = run.error


def test_saturation_can_be_left_to_the_plant():
    def push(t, x, reference):
        return 8.0

    options = {"x0": [0, 0], "seconds": 1, "dt": 0.5}
    assert simulate(cart(), push, **options).u.max() == 5.0
    assert simulate(cart(), push, saturate=False, **options).u.max() == 8.0


def test_a_start_off_the_loops_of_a_linkage_is_put_there_and_told():
    linkage = four_bar()
    closed = linkage.trim().x
    gap = linkage.errors.constraints
    assert gap is not None
    bent = closed + [0.05, 0, 0, 0, 0, 0]
    with pytest.warns(RuntimeWarning, match=r"x0 is off the constraints of four_bar by 0\.0\d"):
        run = simulate(linkage, x0=bent, seconds=0.01)
    assert np.abs(ca.DM(gap(ca.DM(run.x[0]), ca.DM(0, 1))).full()).max() < 1e-9
    assert 0 < np.abs(run.x[0] - bent).max() < 0.2
    with pytest.raises(ValueError, match="x0 is no state of four_bar: .* near a trim point"):
        simulate(linkage, x0=[0, np.pi, 0, 0, 0, 0], seconds=0.01)
