"""LQR and TVLQR as controllers: what they keep to, when they are called, what they say."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import LQR, TVLQR
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.systems import System

from .problem_a import GOAL, quadrotor

YAW_RATE = 0.5  # rad/s


def turntable():
    return System(
        "turntable",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u - x[2]),
        inputs=["torque"],
    )


def ways_to_give_a_steady_turn(system, turn):
    return {
        "trim point": turn,
        "linearization": system.linearize(turn),
        "point of other making": type("Point", (), {"x": turn.x, "u": turn.u})(),
    }


@pytest.mark.usually(way=("trim point", "point of other making"))
@pytest.mark.parametrize("way", ["trim point", "linearization", "point of other making"])
@pytest.mark.parametrize("dt", [0.0, 0.02])
def test_a_steady_motion_is_followed_however_it_is_given(way, dt):
    system = turntable() if not dt else turntable().discretize(dt)
    turn = turntable().trim(where={"rate": [YAW_RATE]})
    if dt:
        turn = system.trim(turn.x, turn.u, moving="angle", where={"rate": [YAW_RATE]})
    given = ways_to_give_a_steady_turn(system, turn)[way]
    law, plant = LQR(system, given, dt=0.02), turntable()
    x = plant.state.join(angle=SO2.exp([0.2]), rate=[0.0])
    for k in range(500):
        x = plant.step()(0.02 * k, x, law(0.02 * k, x), dt=0.02)
    expected = plant.state.join(angle=SO2.exp([YAW_RATE * 10.0]), rate=[YAW_RATE])
    assert np.abs(plant.state.minus(x, expected)).max() < 1e-3


def test_coordinates_with_a_rate_are_followed_too():
    free = System(
        "free",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u),
        inputs=["torque"],
    )
    law = LQR(free, [1.0, 0.0, YAW_RATE])
    assert law.reference.kind == "relative equilibrium"
    x = free.state.join(angle=SO2.exp([2 * YAW_RATE]), rate=[YAW_RATE])
    assert np.abs(law(2.0, x)).max() < 1e-9


def test_the_period_of_a_discrete_system_is_its_own():
    sampled = turntable().discretize(0.02)
    assert LQR(sampled, sampled.state.identity).dt == 0.02
    with pytest.raises(ValueError, match="sample time 0.02 s, not dt = 0.2 s"):
        LQR(sampled, sampled.state.identity, dt=0.2)
    run = sampled.rollout(sampled.state.identity, [0.1], steps=10)
    with pytest.raises(ValueError, match="sample time 0.02 s, not dt = 0.1 s"):
        TVLQR(sampled, run, dt=0.1)


def test_they_say_what_they_are():
    quad = quadrotor()
    law = LQR(quad, GOAL)
    assert law.dt == 0.01
    assert np.array_equal(law.K, law.regulator.K)
    assert repr(law).startswith(
        f"LQR({quad.name!r}, dt=0.01 s, about an equilibrium, largest pole 0.9"
    )
    turn = turntable().trim(where={"rate": [YAW_RATE]})
    assert "about a relative equilibrium" in repr(LQR(turntable(), turn))
    along = TVLQR(turntable(), turn.trajectory(2.0, 0.1))
    assert repr(along) == "TVLQR('turntable', dt=0.1 s, 20 gains from 0 to 2 s)"
