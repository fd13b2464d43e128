"""States off the loops of a closed mechanism: projected and told, or refused, at every entry."""

import pickle

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.estimation import EKF, MovingHorizon
from lgcontrol.models import four_bar
from lgcontrol.optimal import OptimalControlProblem
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import Sensor
from lgcontrol.systems._internal import rollout_derivatives
from tests.benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS

LINKAGE = four_bar()
CLOSED = LINKAGE.trim().x
BENT = CLOSED + np.array([0.05, 0, 0, 0, 0, 0])
NOWHERE = [0, np.pi, 0, 0, 0, 0]  # no state near it closes the loop
TOLD = r"off the constraints of four_bar by 0\.05.* differs most by -0.153 in configuration.coupler"
ANGLE = Sensor("crank", lambda t, x, u, p: x[:1], lg.Rn(1), std_discrete=0.01)


def violation(x):
    return np.abs(LINKAGE.errors.constraints(x, LINKAGE.nominal_parameters)).max()


def problem():
    return OptimalControlProblem(LINKAGE, 3, 0.02, Q=1.0, R=1e-3, reference=CLOSED)


def trajectory(x):
    return lg.Trajectory(LINKAGE.state, [0.0, 0.1], [CLOSED, x], [[0.0]])


ENTRIES = {
    "rollout": lambda x: LINKAGE.rollout(x, dt=0.01, steps=2).x[0],
    "rollout of many": lambda x: LINKAGE.rollout([CLOSED, x], dt=0.01, steps=2).x[1, 0],
    "rollout_derivatives": lambda x: rollout_derivatives(LINKAGE, x, dt=0.01, steps=2).trajectory.x[
        0
    ],
    "step": lambda x: LINKAGE.step()(0.0, x, LINKAGE.nominal_input, dt=0.01),
    "step of a copy": lambda x: pickle.loads(pickle.dumps(LINKAGE.step()))(0, x, [0.0], dt=0.01),
    "linearize": lambda x: LINKAGE.linearize(x).x,
    "linearize a trajectory": lambda x: LINKAGE.linearize(trajectory(x)).trajectory.x[1],
    "simulate": lambda x: lg.simulate(LINKAGE, x0=x, seconds=0.01).x[0],
    "solve": lambda x: problem().solve(x).x[0],
    "solve by SQP": lambda x: problem().solve(x, solver="sqp").x[0],
    "solve_many": lambda x: problem().solve_many([CLOSED, x])[1].x[0],
    "EKF": lambda x: EKF(LINKAGE, [ANGLE], x0=x, std0=0.1, noise={"crank": 0.1}).x,
    "MovingHorizon": lambda x: (
        MovingHorizon(LINKAGE, [ANGLE], x0=x, std0=0.1, noise={"crank": 0.1}, dt=0.1, horizon=2).x
    ),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_state_off_the_loops_is_projected_and_told_or_refused(entry):
    with pytest.warns(RuntimeWarning, match=TOLD):
        assert violation(ENTRIES[entry](BENT)) < 1e-6
    with pytest.raises(ValueError, match="is no state of four_bar: .* near a trim point"):
        ENTRIES[entry](NOWHERE)


@pytest.mark.parametrize("entry", ENTRIES)
def test_nothing_is_said_of_states_on_the_loops(entry):
    moved = ENTRIES[entry](CLOSED)
    assert violation(moved) < 1e-6
    if not entry.startswith("step"):
        assert np.array_equal(moved, CLOSED)


def test_trim_closes_the_loops_of_its_guess():
    assert violation(LINKAGE.trim(BENT).x) < 1e-9


def test_symbols_go_through_a_step_as_they_are():
    x = ca.SX.sym("x", 6)
    after = LINKAGE.step()(0.0, x, 0.0, ca.DM(0, 1), 0.01)
    assert isinstance(after, ca.SX | ca.MX)


def test_an_mpc_projects_measured_states_and_holds_where_there_is_no_projection():
    law = lg.MPC(LINKAGE, Q=1.0, R=1e-3, dt=0.02, horizon=3, reference=CLOSED)
    projected = LINKAGE.project(LINKAGE.project(BENT, []), [])
    assert np.allclose(law(0.0, BENT), law.with_parameters({})(0.0, projected), atol=1e-6)
    assert law.info.status in (CallStatus.OK, CallStatus.SATURATED)
    held = law(0.02, NOWHERE)
    assert law.info.status is CallStatus.HELD and np.isfinite(held).all()
    assert "no state of four_bar" in law.info.message
