"""Motions of the links as references of the whole arm, and paths retimed under its limits."""

from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia
from lgcontrol.models import elastic_planar_arm_tree, elastic_ur5
from lgcontrol.optimal import retime, slowed
from lgcontrol.optimal._internal import sample_reference
from lgcontrol.systems import BSpline, TrimError, Waypoints

from .arms import ARMS

pytestmark = pytest.mark.usually(kind=("mixed", "variable"))

MOVES = [kind for kind in ARMS if kind != "floating"]


def move(group, seconds=0.8):
    """Rest to rest, jerk and snap without jumps."""
    end = group.exp(0.4 * np.cos(np.arange(group.dim)))
    return Waypoints(group, [0, seconds], [group.identity, end], 9)


@pytest.mark.parametrize("kind", MOVES)
def test_states_of_a_motion_of_the_links(kind):
    """The field at these states and inputs is the rate that is told; dampers to order 0."""
    arm = ARMS[kind]()
    system, motion, t = arm.system(), move(arm.tree.configuration), np.array([0.0, 0.2, 0.55])
    x, rate = motion.states(system, t)
    known = system.structure.motion(*motion(t))
    np.testing.assert_array_equal(known.x_out, x)
    f, nv = system.f(t, x, known.u), arm.tree.nv
    np.testing.assert_array_equal(f[:, :nv], rate[:, :nv])
    if kind != "damped":
        np.testing.assert_allclose(f, rate, atol=1e-8 * max(1.0, np.abs(rate).max()))
        u = sample_reference(system, motion, t).u
        np.testing.assert_allclose(u, known.u, atol=1e-7 * max(1.0, np.abs(u).max()))
    h = 1e-5
    ends = [motion.states(system, t[1:] + s)[0] for s in (h, -h)]
    slope = system.state.minus(*ends) / (2 * h)
    if kind != "damped":
        np.testing.assert_allclose(slope, rate[1:], atol=1e-4 * max(1.0, np.abs(rate).max()))


def test_surroundings_have_their_nominal_inputs():
    arm = elastic_planar_arm_tree()
    system = arm.system(wrenches={"tool": "hybrid"})
    found = system.structure.motion(*move(arm.tree.configuration)(0.3))
    np.testing.assert_array_equal(found.u[2:], np.zeros(6))
    np.testing.assert_allclose(found.u[:2], arm.flat_map()(*move(arm.tree.configuration)(0.3)).u)


def limited_arm():
    """The planar arm with limits of all that its motors and springs have."""
    arm = elastic_planar_arm_tree(torque=(60.0, 30.0))
    return arm.with_motors(
        **{
            name: replace(motor, speed=speed, deflection=deflection)
            for (name, motor), speed, deflection in zip(
                arm.motors.items(), (3.0, 4.0), (0.09, 0.06), strict=True
            )
        }
    )


def way(group):
    return BSpline(group, [0, 0.5, 1.0], [[0.2, -0.4], [0.3, -0.6], [0.7, 0.0], [1.1, 0.6],
                                          [1.3, 0.8], [1.2, 0.9], [1.4, 0.7]], 5)  # fmt: skip


def test_retiming_keeps_limits_of_motors_and_springs():
    """Deflection, motor speed, torque: the profile's own numbers, and those of a fitted motion."""
    arm = limited_arm()
    system, path = arm.system(), way(arm.tree.configuration)
    found = retime(path, system=system, intervals=120)
    kinds = {name.split()[0] for name in found.binding if name}
    assert {"quantity", "state", "input"} <= kinds and found.excess < 1e-3
    rigid = retime(path, system=arm.tree.system(), intervals=120, velocity=6.0)
    assert found.duration > rigid.duration
    # A motion that motors can follow, from rest to rest: little is exceeded.
    smooth = found.smooth(0.03)
    assert smooth.smoothness >= 4
    for at in (smooth.t[0], smooth.t[-1]):
        assert max(np.abs(part).max() for part in smooth(at)[1:]) < 1e-9
    assert 1.01 < largest_share(arm, smooth) < 1.25


@pytest.mark.thorough
def test_a_fitted_motion_is_slowed_until_it_exceeds_nothing():
    arm = limited_arm()
    system = arm.system()
    found = retime(way(arm.tree.configuration), system=system, intervals=120)
    smooth = found.smooth(0.03)
    slow = slowed(smooth, system=system)
    assert 0.99 < largest_share(arm, slow) < 1 + 1e-4
    assert slow.duration < 1.4 * found.duration


def largest_share(arm, motion):
    """Of limits of torques, deflections and speeds that a motion takes, at times of its own."""
    system, t = arm.system(), np.linspace(motion.t[0], motion.t[-1], 4001)
    there = arm.flat_map()(*motion(t))
    deflection = system.quantities["deflection"](0.0, there.x)
    shares = there.u / [60.0, 30.0], deflection / [0.09, 0.06], there.x[:, 6:] / [3.0, 4.0]
    return max(np.abs(share).max() for share in shares)


@pytest.mark.thorough
def test_slowing_keeps_limits_and_the_way():
    arm = limited_arm()
    system, quick = arm.system(), move(arm.tree.configuration, 0.2)
    assert largest_share(arm, quick) > 3
    slow = slowed(quick, system=system)
    assert largest_share(arm, slow) == pytest.approx(1.0, abs=1e-4)
    assert slowed(slow, system=system) is slow
    share = np.linspace(0, 1, 7)
    both = [motion(motion.t[0] + share * np.ptp(motion.t)).x for motion in (quick, slow)]
    np.testing.assert_allclose(*both, atol=1e-12)
    weak = arm.with_motors(shoulder=replace(arm.motors["shoulder"], deflection=0.01)).system()
    with pytest.raises(ValueError, match="quantity deflection.shoulder is exceeded at rest"):
        slowed(quick, system=weak)


def test_retimed_deflection_of_one_joint():
    """A pendulum without weight: δ = M s̈ / K, bang-bang between ± the limit."""
    ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
    motor = Motor(inertia=1e-4, spring=100.0, deflection=0.02)
    line = Waypoints(tree.configuration, [0, 1], [[0.0], [1.0]], 1)
    found = retime(line, system=SeriesElastic(tree, {"ball": motor}).system())
    assert found.duration == pytest.approx(2 * np.sqrt(1.0 / 2.0), rel=1e-6)  # |s̈| ≤ K δ / M
    assert set(found.binding) == {f"quantity deflection.ball {side}" for side in ("upper", "lower")}


@pytest.mark.thorough
def test_a_path_of_the_soft_ur5():
    """Springs bind where motors do not; the rigid arm is faster."""
    system = elastic_ur5(deflection=0.06)
    ends = [[0, -1.2, 1.0, -1.3, -1.5, 0], [1.2, -0.7, 1.6, -1.9, -0.8, 0.8]]
    line = Waypoints(system.state.blocks["configuration"], [0, 1], ends, 1)
    found = retime(line, system=system, intervals=60)
    assert any(name.startswith("quantity deflection") for name in found.binding)


def test_limits_that_cannot_hold():
    """A spring that may not give way by what the weight takes: named, with its numbers."""
    arm = elastic_planar_arm_tree()
    weak = arm.with_motors(shoulder=replace(arm.motors["shoulder"], deflection=0.01)).system()
    with pytest.raises(TrimError, match=r"limits of deflection.shoulder \(0.07"):
        weak.trim(where={"configuration.shoulder": 1.2, "configuration.elbow": 0.0})
    line = Waypoints(arm.tree.configuration, [0, 1], [[1.0, 0.0], [1.4, 0.2]], 1)
    with pytest.raises(ValueError, match="quantity deflection.shoulder is exceeded at rest"):
        retime(line, system=weak, intervals=40)
