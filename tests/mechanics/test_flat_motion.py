"""FlatMotion: the system itself flies what position and heading say, exactly."""

import numpy as np
import pytest

from lgcontrol.controllers import ThrustVectorPD
from lgcontrol.groups import SO2, SO3, Rn, Translation
from lgcontrol.mechanics import FlatMotion
from lgcontrol.models import quadrotor, satellite
from lgcontrol.simulation import simulate
from lgcontrol.systems import Waypoints

CORNERS = [[0, 0, 1], [2, 1, 1.5], [4, -1, 1]]
TIMES = [0.0, 1.2, 2.4]


@pytest.fixture(scope="module")
def flight():
    path = Waypoints(Translation("xyz"), TIMES, CORNERS, 9, stops=False)
    turn = Waypoints(SO2, TIMES, SO2.exp([[0.0], [1.0], [2.0]]), 5, stops=False)
    return FlatMotion(quadrotor(), path, turn)


def test_says_where_position_or_heading_jumps(flight):
    rough = Waypoints(Translation("xyz"), TIMES, CORNERS, 3, stops=False)
    found = FlatMotion(flight.system, rough, flight.heading).jumps
    assert [jump.t for jump in found] == sorted(jump.t for jump in found)
    assert len(found) == len(rough.jumps) + len(flight.heading.jumps) > len(rough.jumps) > 0
    assert FlatMotion(flight.system, flight.position).jumps == flight.position.jumps == ()


def test_the_dynamics_agree(flight):
    """Nothing in the six accelerations is missing, the push and the torques are those of f."""
    times = np.linspace(0, 2.4, 13)
    assert np.abs(flight.missing(times)).max() < 1e-8
    point = flight(times)
    np.testing.assert_allclose(point.x[:, :3], flight.position(times).x)
    assert np.abs(flight.states(flight.system, times)[0] - point.x).max() == 0


def test_rates_are_those_of_the_states(flight):
    state, h = flight.system.state, 1e-5
    for t in (0.3, 1.1, 2.0):
        after, before = (flight.states(flight.system, t + s * h)[0] for s in (1, -1))
        rate = flight.states(flight.system, t)[1]
        np.testing.assert_allclose(state.minus(after, before) / (2 * h), rate, atol=1e-6)


def test_the_heading_is_what_a_swing_from_the_vertical_leaves(flight):
    q = flight(np.array([0.0, 2.4])).x[:, 3:7]
    np.testing.assert_allclose(SO3.log(q)[:, 2], [0.0, 2.0], atol=1e-9)  # level at both ends


def test_samples_are_flown_open_loop_with_an_error_of_second_order():
    """Inputs from the starts of the intervals would be off by first order, and by metres."""
    quad, corners = quadrotor(), [[0, 0, 1], [2, 0, 1.5], [2, 2, 1]]
    path = Waypoints(Translation("xyz"), [0, 1.2, 2.0], corners, 7, stops=False)
    off = []
    for spacing in (0.02, 0.01):
        nodes = FlatMotion(quad, path).sampled(spacing)
        run = quad.rollout(nodes.x[0], nodes.u[: len(nodes) - 1], nodes.t[1])
        off.append(np.abs(quad.state.minus(run.x, nodes.x)[:, :3]).max())
    assert off[0] < 0.2 and off[1] == pytest.approx(off[0] / 4, rel=0.1)


@pytest.mark.thorough
def test_it_is_flown_by_feedback_with_its_derivatives(flight):
    control = ThrustVectorPD(flight.system, dt=0.005)
    run = simulate(flight.system, control, x0=flight(0.0).x, reference=flight, seconds=2.5)
    assert run.reference is not None and np.abs(run.error[:, :3]).max() < 5e-3


def test_what_has_no_attitude_is_refused():
    quad, drop = quadrotor(), Rn(3)
    with pytest.raises(ValueError, match="quadrotor falls freely at .* s of the motion"):
        FlatMotion(quad, Waypoints(drop, [0, 0.767], [[0, 0, 2.0], [0, 0, 1.0]]))
    with pytest.raises(ValueError, match="pushes straight down at"):
        FlatMotion(quad, Waypoints(drop, [0, 0.3], [[0, 0, 9.0], [1, 0, 1.0]]))
    with pytest.raises(ValueError, match="the position moves on SO2, expected Translation"):
        FlatMotion(quad, Waypoints(SO2, [0, 1], [SO2.identity] * 2))
    still = Waypoints(drop, [0, 1], [[0, 0, 0]] * 2)
    with pytest.raises(TypeError, match="system must be a System, not str"):
        FlatMotion("x", still)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="position must be a SmoothReference, .* not list"):
        FlatMotion(quad, [0, 0, 1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="heading, an angle in rad, must be"):
        FlatMotion(quad, still, "north")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="FlatMotion is for systems that move a pose"):
        FlatMotion(satellite(), still)
