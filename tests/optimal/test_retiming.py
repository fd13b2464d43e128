"""retime: against closed forms, and by what the fastest has to be: some limit binds all along."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from lgcontrol.groups import SE3, SO2, Rn, Translation
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import quadrotor, scara
from lgcontrol.optimal import PathRow, retime, slowed
from lgcontrol.systems import BSpline, ScrewMotion, Waypoints

EXACT = 1e-9
LINE = Waypoints(Translation("x"), [0, 1], [[0.0], [1.0]], order=1)


def pendulum(limit, **losses):
    """Rod of 2 kg and 1 m in gravity: I = 2/3, weight torque 9.81 sin θ (hanging at 0)."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    own = JointProperties(effort=limit, **losses)
    tree = Multibody(gravity=[0, 0, -9.81])
    tree = tree.add_body("rod", rod, "revolute", axis="y", properties=own)
    return tree.system()


def test_least_time_of_a_double_integrator():
    """2 √(d/a) from rest to rest; with a speed limit v it is d/v + v/a."""
    for d, a in ((1.0, 2.0), (9.0, 0.5)):
        line = Waypoints(Rn(1), [0, 2], [[0.0], [d]], order=1)
        assert retime(line, acceleration=a).duration == pytest.approx(2 * np.sqrt(d / a), rel=EXACT)
        slow = retime(line, acceleration=a, velocity=0.8)
        assert slow.duration == pytest.approx(d / 0.8 + 0.8 / a, rel=1e-3)
    rolling = retime(LINE, acceleration=1.0, start_speed=0.5, end_speed=0.2)
    top = np.sqrt((2 + 0.5**2 + 0.2**2) / 2)
    assert rolling.duration == pytest.approx(2 * top - 0.7, rel=1e-4)


def test_a_circle_is_limited_by_its_curvature_and_by_nothing_when_rolling():
    """On a screw with ω × v, components are constant: the fastest speed is that of the limits."""
    circle = ScrewMotion(SE3, SE3.identity, [1.0, 0, 0, 0, 0, 0.5], 6.0)
    found = retime(circle, velocity={"rz": 0.25}, acceleration=0.4)
    assert found.speed.max() == pytest.approx(0.5)
    assert set(found.binding) == {
        "acceleration x upper", "velocity rz upper", "acceleration x lower",
    }  # fmt: skip


def test_a_joint_in_gravity_against_its_phase_plane():
    """½ I ṡ² is the work of torque and weight: the switch is where both parabolas meet."""
    limit, end = 14.0, 2.2
    system = pendulum(limit)
    group = system.state.blocks["configuration"]
    path = Waypoints(group, [0, end], [[0.0], [end]], order=1)
    found = retime(path, system=system, intervals=400)
    inertia, weight = 2 / 3, 9.81

    def forward(s):
        return 2 / inertia * (limit * s - weight * (1 - np.cos(s)))

    def backward(s):
        return 2 / inertia * (limit * (end - s) + weight * (np.cos(s) - np.cos(end)))

    switch = brentq(lambda s: forward(s) - backward(s), 0.1, end - 0.1)
    # dt = ds / ṡ, singular like 1/√s at both ends: substitute s = r² there.
    first = quad(lambda r: 2 * r / np.sqrt(forward(r**2)), 0, np.sqrt(switch))[0]
    last = quad(lambda r: 2 * r / np.sqrt(backward(end - r**2)), 0, np.sqrt(end - switch))[0]
    coarse = retime(path, system=system, intervals=200).duration
    # Limits hold at both ends of intervals: on the safe side by half an interval, to first order.
    errors = np.array([coarse, found.duration]) / (first + last) - 1
    assert 1.8 < errors[0] / errors[1] < 2.2 and 0 < errors[1] < 2e-3
    assert 2 * found.duration - coarse == pytest.approx(first + last, rel=3e-5)
    middle = found.s[:-1] < switch - 0.01
    assert {found.binding[i] for i in np.flatnonzero(middle)} == {"input rod upper"}
    at = found.t[np.searchsorted(found.s, switch)]
    assert at == pytest.approx(first, abs=5e-3)


def test_losses_in_joints_are_settled():
    """With damping, torques are no longer affine in ṡ²; ṡ̇ = (τ − d ṡ)/I by another integrator."""
    system = pendulum(5.0, damping=3.0)
    ends = [[np.pi - 0.05], [np.pi + 0.05]]
    path = Waypoints(system.state.blocks["configuration"], [0, 0.1], ends, order=1)
    coarse, found = (retime(path, system=system, intervals=n) for n in (200, 400))
    assert found.excess < 1e-6
    inertia, s0 = 2 / 3, np.pi - 0.05

    def field(t, x):
        return [x[1], (5.0 - 3.0 * x[1] - 9.81 * np.sin(s0 + x[0])) / inertia]

    k = 200
    reference = solve_ivp(field, (0, found.t[k]), [0, 0], rtol=1e-10, atol=1e-12).y[:, -1]
    still = [i for i in range(k) if found.binding[i] == "input rod upper"]
    assert len(still) == k
    half = solve_ivp(field, (0, coarse.t[k // 2]), [0, 0], rtol=1e-10, atol=1e-12).y[1, -1]
    errors = 1 - np.array([coarse.speed[k // 2] / half, found.speed[k] / reference[1]])
    assert 1.8 < errors[0] / errors[1] < 2.2 and 0 < errors[1] < 3e-3


@pytest.fixture(scope="module")
def arm():
    system = scara()
    return system, system.state.blocks[system.structure.configuration]


def test_limits_of_an_arm_hold_along_the_motion_and_one_binds(arm, rng):
    system, group = arm
    points = group.exp(0.4 * rng.normal(size=(7, group.dim)))
    path = BSpline(group, [0.0, 0.5, 1.0], points)
    found = retime(path, system=system, acceleration=60.0, intervals=150)
    assert all(found.binding), "the fastest profile leaves nothing to gain"
    assert found.excess < 1e-6
    run = found.trajectory(system, 0.002)
    lower, upper = system.input_bounds
    assert ((run.u >= lower - 1e-2 * upper) & (run.u <= upper + 1e-2 * upper)).all()
    # The motion is the path: the same places in the same order, and exact derivatives.
    np.testing.assert_allclose(group.minus(found.motion(found.t).x, path(found.s).x), 0, atol=1e-9)
    h, t = 1e-5, found.t[40:-40:20] + 1e-4
    step = group.minus(found.motion(t + h).x, found.motion(t - h).x) / (2 * h)
    np.testing.assert_allclose(step, found.motion(t).velocity, atol=1e-4)
    finer = [
        retime(path, system=system, acceleration=60.0, intervals=n).duration for n in (300, 600)
    ]
    gains = -np.diff([found.duration, *finer])
    assert 0 < 1.5 * gains[1] < gains[0] < 0.01 * found.duration  # intervals are on the safe side


def test_corners_are_passed_at_rest():
    square = Waypoints(Translation("xy"), [0, 1, 2], [[0, 0], [1, 0], [1, 1]], order=1)
    found = retime(square, acceleration=1.0)
    assert found.duration == pytest.approx(4.0, rel=1e-6)  # twice 2 √(d/a)
    assert found.speed[np.argmin(np.abs(found.s - 1.0))] == 0


def test_own_rows_join():
    feed = PathRow(lambda s, y, a: y, upper=0.25, name="feed")
    jerkless = PathRow(lambda s, y, a: np.stack([a, 2 * a], -1), -1.0, 1.0, name="push")
    found = retime(LINE, rows=[feed, jerkless])
    assert found.duration == pytest.approx(1 / 0.5 + 0.5 / 0.5, rel=1e-3)
    assert {"feed upper", "push [1] upper", "push [1] lower"} == set(found.binding)
    assert "feed upper" in str(found)


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (LINE, {}, "nothing limits the speed"),
        (LINE, {"velocity": -1.0}, "velocity must be positive"),
        (LINE, {"velocity": {"y": 1.0}}, "unknown entry of velocity 'y'"),
        (LINE, {"acceleration": 1.0, "start_speed": 3.0}, "lower start_speed or end_speed"),
        (LINE, {"acceleration": 1.0, "intervals": 0}, "intervals must be a whole number"),
        (LINE, {"rows": [PathRow(lambda s, y, a: np.zeros(3), 0, 1)]}, "returned shape"),
        (
            LINE,
            {"rows": [PathRow(lambda s, y, a: a + 2, upper=1.0, name="hold")], "velocity": 1.0},
            "hold is exceeded at rest, at s = 0",
        ),
        (Waypoints(Rn(1), [0, 1], [[0.0], [1.0]]), {"velocity": 1.0}, "stands still at s = 0"),
        (
            Waypoints(SO2, [0, 1], SO2.exp([[0], [1]]), 1),
            {"system": quadrotor()},
            "moves that group",
        ),
    ],
)
def test_faults_are_named(path, options, message):
    with pytest.raises(ValueError, match=message):
        retime(path, **options)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda found: found.smooth(100.0), "no longer than the motion, 1.5 s, got 100 s"),
        (lambda found: found.smooth(0.0), "spacing must be positive"),
        (lambda found: found.smooth(0.05, degree=-1), "degree must be a whole number.*got -1"),
        (lambda found: found.smooth(0.05, degree=2.5), "degree must be a whole number.*got 2.5"),
        (lambda found: slowed(found, velocity=1.0), "not Retiming: give its motion, retiming.mot"),
        (lambda found: retime(found, velocity=1.0), "not Retiming: give its motion, retiming.mot"),
        (lambda found: slowed(found.motion, system="panda"), "system must be a System, not str"),
        (lambda found: slowed(found.motion, rows=["fast"]), "rows must hold PathRow"),
    ],
)
def test_what_is_made_of_a_retiming_names_its_faults(ask, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ask(retime(LINE, velocity=1.0, acceleration=2.0))


def test_between_path_parameters_limits_are_exceeded_by_the_square_of_an_interval():
    plane, most = Translation("xy"), 1.0
    bow = Waypoints(
        plane, [0, 1, 2], [[0, 0], [1, 0.5], [1.2, 2]], order=5, stops=False,
        start=[[1.0, 0.0]], end=[[0.0, 1.0]],
    )  # fmt: skip

    def excess(motion):
        t = np.linspace(motion.t[0], motion.t[-1], 20001)
        return np.abs(motion(t).velocity).max() - most

    found = [retime(bow, velocity=most, acceleration=8.0, intervals=n) for n in (50, 100, 200)]
    over = [excess(one.motion) for one in found]
    assert all(one.excess < 1e-9 for one in found)
    assert over[0] > 1e-4  # there is something to take back
    assert np.array(over[:-1]) / over[1:] == pytest.approx([4.0, 4.0], rel=0.25)
    slower = slowed(found[0].motion, velocity=most, acceleration=8.0)
    assert excess(slower) < 0.01 * over[0]
    assert slower.duration < 1.01 * found[0].duration
