"""Kinds of motion where states are fast next to slow ones, slow altogether, or soon undefined."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.systems import System, TrimError

from ._examples import heavy_top, quadrotor, underwater

MEAN_MOTION = 7.292e-5  # of a geostationary orbit, rad/s


def test_a_tank_that_runs_empty_is_not_steady():
    """The look ahead is beyond the time at which its root ceases to exist."""
    tank = System("tank", Rn(1), lambda t, x, u, p: -0.5 * ca.sqrt(x) + u, inputs=["q"])
    assert tank.linearize([1.0]).kind == "none"
    assert tank.linearize([1.0], [0.5]).kind == "equilibrium"
    with pytest.raises(ValueError, match="no equilibrium or relative equilibrium"):
        tank.to_nlsys("error", about=[1.0])


@pytest.mark.usually(lag=(1e-2, 1e-6))
@pytest.mark.parametrize("lag", [1e-2, 1e-3, 1e-4, 1e-6])
def test_a_battery_that_runs_down_is_seen_whatever_the_lag_of_the_rotors(lag):
    flight = quadrotor().augment(lag=lag)
    n = flight.state

    def field(t, x, u, p):
        return ca.vertcat(flight.f(t, x[: n.nq], u, p), -1e-4 * x[n.nq] ** 2)

    powered = System(
        "powered",
        Product(**n.blocks, charge=Rn(1)),
        field,
        inputs=flight.inputs,
        parameters=flight.parameters,
    )
    hover = flight.trim(position=[0, 0, 1])
    assert flight.linearize(hover).kind == "equilibrium"
    assert powered.linearize(np.append(hover.x, 1.0), hover.u).kind == "none"
    assert powered.linearize(np.append(hover.x, 0.0), hover.u).kind == "equilibrium"


def test_a_fast_state_does_not_excuse_a_drift():
    drifting = System("drifting", Rn(2), lambda t, x, u, p: [0.05, -1e6 * x[1] + u], inputs=["a"])
    assert drifting.linearize([1.0, 0.0]).kind == "relative equilibrium"
    assert drifting.trim([1.0, 0.0]).kind == "relative equilibrium"  # and nowhere at rest


def test_a_fast_state_does_not_loosen_what_was_wished():
    fading = System(
        "fading", Rn(2), lambda t, x, u, p: [-0.05 * x[0] ** 2, -1e6 * x[1] + u], inputs=["a"]
    )
    with pytest.raises(TrimError):
        fading.trim(where={"x0": 1.0})
    with pytest.raises(TrimError, match="no trim point found"):
        System("pulled", Rn(2), lambda t, x, u, p: [-0.05 * x[0], 1e6 * (u - x[1])],
               inputs=["a"]).trim(where={"x0": 1e-4}, conditions={
                   "slow": lambda t, x, u, p: x[0] - 2e-4})  # fmt: skip


@pytest.mark.parametrize(
    ("degrees", "kind"), [(0.0, "equilibrium"), (90.0, "equilibrium"), (1e-3, "none"), (40, "none")]
)
def test_a_satellite_turns_slowly_towards_the_earth(degrees, kind):
    boom = System(
        "boom",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: [x[2], -3 * MEAN_MOTION**2 * 0.8 * x[0] * x[1]],
    )
    assert boom.linearize([*SO2.exp([np.deg2rad(degrees)]), 0.0]).kind == kind
    assert boom.trim([*SO2.exp([0.2]), 0.0]).x[1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.usually(build=(quadrotor,))
@pytest.mark.parametrize("build", [quadrotor, underwater])
@pytest.mark.parametrize("dt", [0.0, 0.01])
def test_points_with_four_digits_do_not_pass_and_those_of_trim_do(build, dt):
    system = build() if not dt else build().discretize(dt)
    point = system.trim(position=[120.0, 0.0, -30.0])
    assert system.linearize(point).kind == "equilibrium"
    typed = point.u * (1 + 1e-4) if point.u.any() else point.u + 1e-4
    assert system.linearize(point.x, typed).kind == "none"


def test_rates_that_cancel_to_rounding_are_zero():
    """The pivot's force and the weight along the top: their difference depends on nothing."""
    top = heavy_top()
    point = top.trim()
    assert point.kind == "equilibrium"
    assert top.linearize(point).kind == "equilibrium"
