"""Weights, references, bounds, residuals: what a problem accepts and what it refuses."""

import functools
import warnings
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.groups import SE2, SE3, SO2, Helical, Product, Rn, Translation
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.optimal import (
    Bound,
    Cost,
    OptimalControlProblem,
    Residual,
    tvlqr,
)
from lgcontrol.optimal._internal import input_weight, sample_reference, state_weight
from lgcontrol.optimal._rows import build_rows
from lgcontrol.systems import Input, Parameter, System, Trajectory
from lgcontrol.systems._tracing import symbols_of

from ..benchmarks._sqp_peer import SQPSolver
from ..controllers.problem_a import GOAL, HOVER, quadrotor
from .examples import double_integrator, mechanical, pendulum, satellite, vessel

STATE = Product(pose=SE2, twist=Rn(3))


@pytest.mark.parametrize(
    ("weight", "diagonal"),
    [
        (2.0, [2, 2, 2, 2, 2, 2]),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        ({"pose": 10, "twist": 1}, [10, 10, 10, 1, 1, 1]),
        ({"pose": [1, 2, 3]}, [1, 2, 3, 0, 0, 0]),
        ({"pose.rz": 5, "twist": np.eye(3)}, [0, 0, 5, 1, 1, 1]),
        ({"pose.rz": 5, "pose": 2}, [2, 2, 5, 0, 0, 0]),  # in any order
    ],
)
def test_weights_by_name(weight, diagonal):
    assert np.array_equal(state_weight("Q", weight, STATE), np.diag(diagonal))


def test_a_block_may_weigh_as_a_full_matrix():
    block = np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]])
    found = state_weight("Q", {"pose": block}, STATE)
    assert np.array_equal(found[:3, :3], block)
    assert not found[3:].any()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({"pos": 1}, r"unknown entry of Q 'pos'; valid names are pose, twist, .*'pose'"),
        ({"pose": [1, 2]}, r"Q\['pose'\] has shape \(2,\), expected a number, \(3,\) or \(3, 3\)"),
        (
            [1, 2],
            r"Q has shape \(2,\), expected .*\(6,\).* rows are pose.x, pose.y, pose.rz",
        ),
        (-1.0, "Q must be positive semidefinite"),
        ({"pose": 1, "twist": -2}, r"Q\['twist'\] must be positive semidefinite.* -2"),
        (np.nan, "Q is not finite: it is nan"),
        (np.triu(np.ones((6, 6))), r"Q must be symmetric: it has 1 at \(0, 1\) and 0 at \(1, 0\)"),
    ],
)
def test_wrong_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        state_weight("Q", weight, STATE)


def test_weights_are_numbers():
    with pytest.raises(TypeError, match="Q must be a number, a diagonal.*got 'large'"):
        state_weight("Q", "large", STATE)


def test_every_control_must_weigh_something():
    craft = vessel()
    assert np.array_equal(input_weight("R", {"surge": 1, "yaw": 2}, craft), np.diag([1, 2]))
    with pytest.raises(ValueError, match="R gives no weight to yaw: weigh every control"):
        input_weight("R", {"surge": 1}, craft)
    with pytest.raises(ValueError, match="every control must cost something.* 0: give a"):
        input_weight("R", 0.0, craft)
    with pytest.raises(ValueError, match="unknown entry of R 'current'"):
        input_weight("R", {"surge": 1, "yaw": 1, "current": 1}, craft)


def test_a_state_at_rest_brings_the_inputs_that_hold_it():
    quad = quadrotor()
    assert np.allclose(sample_reference(quad, GOAL, np.arange(3.0)).u, HOVER)
    hanging = pendulum(2.0)
    aside = np.concatenate([SO2.exp([0.4]), [0.0]])
    assert np.allclose(sample_reference(hanging, aside, np.zeros(1)).u, np.sin(0.4))


def test_a_moving_reference_brings_the_inputs_that_move_it(rng):
    body = satellite()
    start, u = body.state.random(rng), 0.3 * rng.normal(size=3)
    errors = []
    for dt in (0.01, 0.005):
        run = body.rollout(start, u, dt=dt, steps=20)
        found = sample_reference(body, Trajectory(body.state, run.t, run.x), run.t[:-1])
        assert np.array_equal(found.x, run.x[:-1])
        errors.append(np.abs(found.u[:-1] - u).max())
    # The mean rate over a step differs from that at its start by the first order in the step.
    assert errors[0] < 0.1
    assert errors[1] < 0.6 * errors[0]


def test_references_of_every_kind():
    quad, times = quadrotor(), np.linspace(0, 1, 5)
    hover = quad.trim(position=[2, 1, 1])
    for reference in (GOAL, hover, hover.trajectory(1.0, 0.1)):
        found = sample_reference(quad, reference, times)
        assert np.allclose(quad.state.minus(found.x, GOAL), 0, atol=1e-9)
        assert np.allclose(found.u, HOVER, atol=1e-6)
    craft = vessel()
    with_controls = Trajectory(
        craft.state, times, np.tile(craft.state.identity, (5, 1)), np.ones((5, 2))
    )
    assert np.array_equal(sample_reference(craft, with_controls, times).u[0], [1, 1, 0])


def test_a_steady_turn_moves_along():
    craft = vessel()
    turn = craft.trim(where={"twist.x0": 0.5, "twist.x2": 0.2}, moving="pose")
    times = np.array([0.0, 1.0, 5.0])
    found = sample_reference(craft, turn, times)
    run = craft.rollout(turn.x, turn.u, dt=0.01, steps=500)
    assert np.abs(craft.state.minus(found.x[-1], run.x[-1])).max() < 1e-6
    assert np.abs(craft.state.minus(found.x[1], run.x[100])).max() < 1e-6


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "no reference to follow"),
        (np.zeros(5), r"has 5 coordinates, expected 13: those of pose \(7\), twist"),
        (lambda t: np.zeros(5), "the reference's state has 5 coordinates, expected 13"),
        (np.zeros(13), "the reference's state .* is no element of Product"),
        (np.full(13, np.nan), "the reference's state is not finite"),
    ],
)
def test_wrong_references_are_refused(reference, message):
    with pytest.raises(ValueError, match=message):
        sample_reference(quadrotor(), reference, np.zeros(1))


def test_plain_functions_are_asked_for_one_time_after_the_other():
    """``if`` on the time must work: users write references with it."""
    craft, times = vessel(), np.linspace(0.0, 2.0, 5)
    goal = craft.state.identity
    away = craft.state.plus(goal, [1.0, 0, 0, 0, 0, 0])
    found = sample_reference(craft, lambda t: away if t > 1 else goal, times)
    assert np.array_equal(found.x[:, 0], [0, 0, 0, 1, 1])

    def with_input(t):
        return Trajectory(craft.state, [0.0, 2.0], [goal, away], [[t, 0, 0]])(t)

    found = sample_reference(craft, with_input, times)
    assert np.array_equal(found.u[:, 0], times)
    assert np.allclose(found.x[2], craft.state.plus(goal, [0.5, 0, 0, 0, 0, 0]))


def test_any_callable_gets_one_time_after_the_other():
    craft = vessel()

    class Motion:
        def __call__(self, t):
            return self.at(away=float(t), goal=craft.state.identity)

        def at(self, goal, away):
            return craft.state.plus(goal, [away, 0, 0, 0, 0, 0]) if away > 0.5 else goal

    times = np.array([0.0, 0.5, 1.0])
    for reference in (Motion(), Motion().__call__, functools.partial(Motion.__call__, Motion())):
        assert np.allclose(sample_reference(craft, reference, times).x[:, 0], [0, 0, 1])


def test_references_off_the_group_are_refused():
    doubled = GOAL.copy()
    doubled[3:7] *= 2
    for reference in (doubled, lambda t: doubled):
        with pytest.raises(ValueError, match="normalize brings coordinates onto the group"):
            sample_reference(quadrotor(), reference, np.zeros(1))


def test_after_the_end_of_a_trajectory_its_inputs_are_those_that_hold_it():
    body = satellite()
    run = body.rollout(body.state.identity, [0.5, 0, 0], dt=0.1, steps=10)
    assert (run.x[-1, 4:] != 0).any()
    times = np.array([0.9, 1.0 - 1e-12, 1.0, 5.0])
    found = sample_reference(body, run, times)
    assert np.allclose(found.u[:, 0], [0.5, 0.0, 0.0, 0.0])
    with_last = Trajectory(body.state, run.t, run.x, run.input_at_nodes)
    assert np.allclose(sample_reference(body, with_last, times).u[:, 0], [0.5, 0.5, 0.5, 0.0])
    always = Trajectory.constant(body.state, run.x[0], [0.5, 0, 0])
    assert np.allclose(sample_reference(body, always, times).u[:, 0], 0.5)


def rows_of(system, *bounds, horizon=4):
    problem = OptimalControlProblem(system, horizon, 0.1, bounds=bounds)
    return SQPSolver(problem).transcription.rows


def test_bounds_hold_where_they_can():
    rows = rows_of(
        vessel(),
        Bound("twist", -1, [1, 2, 3]),
        Bound("pose.x", upper=4.0, at="terminal"),
        Bound("pose.rz", -0.1, 0.1, at="path", soft=5.0),
        Bound("surge", upper=0.5, soft=1.0),
        Bound("yaw", upper=0.5),  # a limit of a control throughout is no row
        Bound(lambda t, x, u, p: x[4] * u[0], upper=2.0, name="power"),
    )
    assert rows.names == (
        "twist.x0", "twist.x1", "twist.x2", "pose.x", "pose.rz", "surge", "power",
    )  # fmt: skip
    assert np.array_equal(rows.upper[:3], [1, 2, 3])
    expected = {
        "twist.x0": [0, 1, 1, 1, 1],
        "pose.x": [0, 0, 0, 0, 1],
        "pose.rz": [0, 1, 1, 1, 0],
        "surge": [1, 1, 1, 1, 0],
        "power": [1, 1, 1, 1, 0],
    }
    for name, where in expected.items():
        assert np.array_equal(rows.active[:, rows.names.index(name)], where), name
    assert rows.soft[rows.names.index("pose.rz")] == 5.0
    assert np.isinf(rows.soft[0])


def held_at_the_end(*bounds, parameters=()):
    """Which rows have a limit at the last node, of a cart with its end fixed by the first bound."""
    problem = OptimalControlProblem(
        double_integrator(), 4, 0.1, bounds=bounds, parameters=parameters
    )
    rows = SQPSolver(problem).transcription.rows
    for name, on in zip(rows.names, rows.active.T, strict=True):
        assert name != "cone" or on[1:-1].all()
    return [name for name, on in zip(rows.names, rows.active[-1], strict=True) if on]


CONE = Bound(lambda t, x, u, p: x[1] - ca.sqrt(x[0] ** 2), 0.0, name="cone")
APEX = Bound(lambda t, x, u, p: x[:2], 0.0, 0.0, at="terminal", name="end")


def test_rows_that_equalities_determine_have_no_limit_beside_them():
    assert held_at_the_end(APEX, CONE) == ["end[0]", "end[1]"]
    turned = Bound(
        lambda t, x, u, p: ca.vertcat(x[0] + x[1], x[0] - x[1]), 0.0, 0.0, at="terminal", name="end"
    )
    assert held_at_the_end(turned, CONE) == ["end[0]", "end[1]"]
    twice = Bound(lambda t, x, u, p: 2 * x[0] + x[1], 0.0, 0.0, at="terminal", name="again")
    assert held_at_the_end(APEX, twice, CONE) == ["end[0]", "end[1]"]
    # An end that leaves the cone open, and one that is not an equality.
    half = Bound(lambda t, x, u, p: x[0], 0.0, 0.0, at="terminal", name="end")
    assert held_at_the_end(half, CONE) == ["end", "cone"]
    near = Bound(lambda t, x, u, p: x[:2], -1e-3, 1e-3, at="terminal", name="end")
    assert held_at_the_end(near, CONE) == ["end[0]", "end[1]", "cone"]
    circle = Bound(lambda t, x, u, p: x[:2] ** 2, 0.0, 0.0, at="terminal", name="end")
    assert held_at_the_end(circle, CONE) == ["end[0]", "end[1]", "cone"]


def test_an_apex_may_be_a_parameter():
    where = Parameter("where", "m", 0.0)
    end = Bound(
        lambda t, x, u, p: ca.vertcat(x[0] - p[0], x[1]), 0.0, 0.0, at="terminal", name="end"
    )
    there = Bound(lambda t, x, u, p: x[1] - ca.fabs(x[0] - p[0]), 0.0, name="cone")
    assert held_at_the_end(end, there, parameters=[where]) == ["end[0]", "end[1]"]
    assert held_at_the_end(end, CONE, parameters=[where]) == ["end[0]", "end[1]", "cone"]


def test_a_limit_that_equalities_contradict_is_refused():
    """A guarded norm is 0.01 at the apex: by 0.012 too high for a cone of slope 1.2."""
    guarded = Bound(
        lambda t, x, u, p: x[1] - 1.2 * ca.sqrt(x[0] ** 2 + 1e-4), lower=0.0, name="cone"
    )
    end = Bound(lambda t, x, u, p: x[:2], 0.0, 0.0, at="terminal", name="end")
    said = (
        r"'cone' contradicts the equalities on 'end' at node \d+: they make it -0.012, at least 0 "
        r"is asked for. Move its limit by 0.012, .*soft=100"
    )
    with pytest.raises(ValueError, match=said):
        held_at_the_end(end, guarded)
    low = replace(end, lower=[1.0, 0.5], upper=[1.0, 0.5])
    with pytest.raises(ValueError, match="at node 4: they make it -0.5, at least 0"):
        held_at_the_end(low, CONE)
    assert held_at_the_end(end, replace(guarded, lower=-0.0121)) == ["end[0]", "end[1]"]
    assert held_at_the_end(end, replace(guarded, soft=1.0)) == ["end[0]", "end[1]", "cone"]


def test_an_equality_may_have_a_row_that_is_constant():
    """As the position of an arm that moves in a plane."""
    flat = Bound(lambda t, x, u, p: ca.vertcat(x[0], 0, x[1]), 0.0, 0.0, at="terminal", name="end")
    assert held_at_the_end(flat, CONE) == ["end[0]", "end[2]"]


def lander():
    """A point mass with three accelerations and its weight."""
    return System(
        "lander", Rn(6), lambda t, x, u, p: ca.vertcat(x[3:], u - ca.DM([0, 0, 9.81])),
        inputs=["east", "north", "up"],
    )  # fmt: skip


STEEP = 1.2
GLIDESLOPES = {
    "root": lambda t, x, u, p: x[2] - STEEP * ca.sqrt(ca.sumsqr(x[:2])),
    "norm": lambda t, x, u, p: x[2] - STEEP * ca.norm_2(x[:2]),
    "square": lambda t, x, u, p: x[2] ** 2 - STEEP**2 * ca.sumsqr(x[:2]),
}


@pytest.mark.usually(form=("root", "square"))
@pytest.mark.parametrize("least_thrust", [0.0, 8.0])
@pytest.mark.parametrize("form", GLIDESLOPES)
def test_a_glideslope_may_have_its_apex_at_the_end(form, least_thrust):
    # With least thrust the accelerations are in a shell, which is not convex.
    def landing(*more):
        bounds = [
            Bound(lambda t, x, u, p: x, 0.0, 0.0, at="terminal", name="landed"),
            Bound(lambda t, x, u, p: ca.sumsqr(u), least_thrust**2, 400.0, name="thrust"),
            *more,
        ]
        problem = OptimalControlProblem(lander(), 30, 10 / 30, Q=0, R=1.0, bounds=bounds)
        return problem.solve([100.0, 50.0, 150.0, -20.0, 5.0, -40.0])

    free, held = landing(), landing(Bound(GLIDESLOPES[form], 0.0, name="glideslope"))
    assert free.status == held.status == "converged"
    known = landing(Bound(GLIDESLOPES[form], 0.0, at="path", name="glideslope"))
    assert len(held.iterations) <= len(known.iterations) + 2
    assert held.cost == pytest.approx(known.cost, rel=1e-9)
    assert held.cost > 1.001 * free.cost  # the cone is met
    sizes = np.linalg.norm(held.trajectory.u, axis=1)
    assert sizes.min() >= least_thrust - 1e-6
    assert (held.x[:, 2] - STEEP * np.linalg.norm(held.x[:, :2], axis=1)).min() > -1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "twits"}, "unknown bounded quantity 'twits'.*Did you mean 'twist'"),
        ({"of": "twist", "lower": 2, "upper": 1}, "lower must not exceed upper, got 2 and 1"),
        ({"of": "twist", "upper": [1, 2]}, r"upper of bound 'twist' has shape \(2,\), expected"),
        ({"of": "twist", "soft": -1.0}, "soft must be a positive weight"),
        ({"of": "twist", "upper": np.nan}, "upper is not a number, got nan: leave it out"),
        ({"of": "twist", "at": "end"}, "bound 'twist': unknown place 'end'"),
    ],
)
def test_wrong_bounds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rows_of(vessel(), Bound(**options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "at least 1, got 0"),
        ({"horizon": 2.5}, ValueError, "at least 1, got 2.5; 2.5 s are 25 steps of 0.1 s"),
        ({"dt": None}, ValueError, "give dt"),
        ({"dt": -0.1}, ValueError, "dt must be positive"),
        ({"terminal": "lqr"}, ValueError, "'riccati', not 'lqr'"),
        ({"method": "rk5"}, ValueError, "unknown integration method 'rk5'"),
        ({"parameters": ["gravity"]}, ValueError, "parameters of the same name: gravity"),
        ({"system": "pendulum"}, TypeError, "must be a System"),
    ],
)
def test_wrong_problems_are_refused(options, error, message):
    arguments = {"system": pendulum(), "horizon": 5, "dt": 0.1} | options
    with pytest.raises(error, match=message):
        OptimalControlProblem(**arguments)


def test_discrete_systems_bring_their_step():
    problem = OptimalControlProblem(double_integrator().discretize(0.2), 5)
    assert problem.dt == 0.2
    with pytest.raises(ValueError, match="sample time 0.2 s, not dt=0.1 s"):
        OptimalControlProblem(problem.system, 5, 0.1)


def test_the_default_end_is_another_horizon():
    problem = OptimalControlProblem(pendulum(), 20, 0.1, Q={"angle": 3})
    assert np.array_equal(problem.terminal, 2.0 * problem.Q)


def test_residuals_of_the_wrong_kind_are_named():
    problem = OptimalControlProblem(
        pendulum(), 5, 0.1, residuals=[Residual(lambda t, x, u, p: "x", name="height")]
    )
    with pytest.raises(TypeError, match="residual 'height' must return a CasADi column"):
        SQPSolver(problem)


def test_se3_blocks_have_their_own_names():
    state = Product(pose=SE3, twist=Rn(6))
    assert state_weight("Q", {"pose.rx": 2.0}, state)[3, 3] == 2.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "horizon must be a whole number of steps, at least 1, got 0"),
        ({"horizon": 2.5}, ValueError, "horizon must be a whole number.*2.5"),
        ({"horizon": 2.0}, ValueError, "got 2.0; 2 s are 20 steps of 0.1 s"),
        ({"horizon": 0.1, "dt": 20}, ValueError, "comes before dt: horizon=20, dt=0.1"),
        ({"horizon": "20"}, ValueError, "horizon must be a whole number.*'20'"),
        ({"horizon": None}, ValueError, "horizon must be a whole number.*None"),
        ({"dt": None}, ValueError, "give dt, the length of a step"),
        ({"dt": -0.1}, ValueError, "dt must be positive"),
        ({"terminal": "lqr"}, ValueError, "terminal must be a weight or 'riccati', not 'lqr'"),
        ({"bounds": Bound("twist", -1, 1)}, TypeError, r"bounds must be a list of Bound, as in"),
        ({"bounds": [("twist", -1, 1)]}, TypeError, r"list of Bound.*got \('twist', -1, 1\)"),
        ({"residuals": [lambda t, x, u, p: x]}, TypeError, "list of Residual, as in residuals="),
        ({"system": "vessel"}, TypeError, "system must be a System, not str"),
    ],
)
def test_what_users_get_wrong_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        OptimalControlProblem(**({"system": vessel(), "horizon": 5, "dt": 0.1} | options))


def test_functions_that_fail_are_named():
    def short(t, x, u, p):
        return x[50]

    for part in ({"residuals": [Residual(short, name="far")]}, {"bounds": [Bound(short, 0)]}):
        problem = OptimalControlProblem(vessel(), 5, 0.1, **part)
        with pytest.raises(ValueError, match="'(far|short)', called with .* x of length 7, u of"):
            SQPSolver(problem)


def test_trees_are_told_to_make_a_system():
    rod = SpatialInertia.rod(2.0, length=1.0)
    tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    with pytest.raises(TypeError, match=r"not Multibody; give its .system\(\)"):
        OptimalControlProblem(tree, 5, 0.1)


def test_regulators_along_states_are_refused():
    plan = OptimalControlProblem(vessel(), 2, 0.1, reference=STATE.identity).solve(STATE.identity)
    with pytest.raises(TypeError, match="not OptimalSolution: give its .trajectory"):
        tvlqr(vessel(), plan)
    with pytest.raises(TypeError, match="trajectory must be a Trajectory, not ndarray$"):
        tvlqr(vessel(), np.zeros(7))


def test_bounds_that_leave_no_room_are_refused_at_once():
    with pytest.raises(ValueError, match="'height': lower must not exceed upper, got 2 and 1"):
        Bound("height", lower=2, upper=1)
    with pytest.raises(ValueError, match="'twist': lower is not a number"):
        Bound("twist", [0, np.nan], 1)
    with pytest.raises(TypeError, match="bound 'twist': upper must be a number, a list of numb"):
        Bound("twist", 0, ["one"])
    with pytest.raises(ValueError, match="unknown parameter 'one'.*declared by parameters=.'one'"):
        rows_of(vessel(), Bound("twist", 0, "one"))
    with pytest.raises(ValueError, match="The rate of 'surge' is no state.*with its rate as the"):
        rows_of(vessel(), Bound("surge.rate", -1, 1))


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (Bound("twits", -1, 1), "unknown bounded quantity 'twits'.*Did you mean 'twist'"),
        (Bound("input", -1, 1), "'input'; valid .* names it, Bound\\('input.surge'"),
        (Bound("twist", upper="fast"), "upper of bound 'twist': unknown parameter 'fast'"),
        (Bound("twist", upper=1.0, soft="dear"), "soft of bound 'twist': unknown parameter 'dear'"),
    ],
)
def test_names_in_bounds_are_looked_up_when_a_problem_is_made(bound, message):
    with pytest.raises(UnknownNameError, match=message):
        OptimalControlProblem(vessel(), 5, 0.1, bounds=[bound])


def test_what_overcomes_drag_is_not_fed_forward_after_the_end():
    def field(t, x, u, p):
        return ca.vertcat(x[1], u - 3.0 * x[1])

    state = Product(place=Rn(1), speed=Rn(1))
    structure = mechanical(state, field, 1)
    boat = System("boat", state, field, inputs=["push"], structure=structure)
    run = boat.rollout([0.0, 1.0], [3.0], dt=0.1, steps=10)
    assert run.x[-1, 1] == pytest.approx(1.0)
    found = sample_reference(boat, run, np.array([0.5, 2.0]))
    assert found.u[:, 0] == pytest.approx([3.0, 0.0])
    assert np.array_equal(found.x[1], run.x[-1])


def test_weights_go_by_joints_and_by_what_inputs_have_in_common():
    joints = Product(configuration=Product(a=SO2, b=SO2), velocity=Rn(2))
    assert np.diag(state_weight("Q", {"b": 3, "velocity": 1}, joints)).tolist() == [0, 3, 1, 1]
    assert np.diag(state_weight("Q", {"configuration.a": 2}, joints)).tolist() == [2, 0, 0, 0]
    inputs = ["rotor.0", "rotor.1", "flap"]
    craft = System("craft", Rn(3), lambda t, x, u, p: u, inputs=inputs)
    weight = input_weight("R", {"rotor": 0.1, "rotor.1": 0.5, "flap": 2}, craft)
    assert np.diag(weight).tolist() == [0.1, 0.5, 2.0]
    with pytest.raises(ValueError, match="R gives no weight to flap: weigh"):
        input_weight("R", {"rotor": 0.1}, craft)


def crane() -> System:
    """A trolley that knows its limits, one quantity, and no limit of its speed's error."""
    return System(
        "crane", Product(place=Rn(1, ("place",)), speed=Rn(1, ("speed",))),
        lambda t, x, u, p: ca.vertcat(x[1], u[0]), inputs=[Input("push", "N", -5, 5)],
        quantities={"energy": lambda t, x, u, p: x[1] ** 2 / 2},
        limits={"place.place": (-2.0, 1.0), "speed.speed": (-0.5, 0.5)},
    )  # fmt: skip


def test_limits_that_a_system_knows_are_one_word():
    """A part of the state without limits takes the known ones, "limits" all of them."""
    given: dict = {"Q": 1.0, "R": 0.1, "reference": [3.0, 0.0]}
    problem = OptimalControlProblem(crane(), 30, 0.1, bounds=[Bound("limits")], **given)
    found = problem.solve([0.2, 0.0])
    assert found.is_success
    assert found.x.max(axis=0) == pytest.approx([1.0, 0.5], abs=1e-4)
    apart = [Bound("place"), Bound("speed")]
    twice = OptimalControlProblem(crane(), 30, 0.1, bounds=apart, **given)
    assert twice.solve([0.2, 0.0]).cost == pytest.approx(found.cost, rel=1e-6)
    assert problem.ignored_limits == ()
    with pytest.raises(ValueError, match="crane knows no limits of energy: give"):
        OptimalControlProblem(crane(), 30, 0.1, bounds=[Bound("energy")])
    with pytest.raises(ValueError, match="vessel knows no limits of pose.y: give"):
        rows_of(vessel(), Bound("pose.y"))
    with pytest.raises(ValueError, match="leave lower and upper out"):
        OptimalControlProblem(crane(), 30, 0.1, bounds=[Bound("limits", upper=1.0)])


def test_a_reference_asks_whether_its_angles_are_degrees():
    arm = System("arm", Helical(0), lambda t, x, u, p: u[0], inputs=["rate"])
    with pytest.warns(UserWarning, match=r"reference's state: angle of 90 rad.*np.radians\(90\)"):
        OptimalControlProblem(arm, 2, 0.1, reference=[90.0])


def test_a_guess_has_the_controls_alone_or_all_inputs():
    pushed = System(
        "pushed", Rn(1), lambda t, x, u, p: u[0] + u[1],
        inputs=["force", Input("push", role="disturbance")],
    )  # fmt: skip
    problem = OptimalControlProblem(pushed, 3, 0.1, reference=[0.0])
    times, states = 0.1 * np.arange(4), np.array([[1.0], [0.9], [0.7], [0.4]])
    controls = np.array([[-1.0], [-2.0], [-3.0]])
    alone = Trajectory(pushed.state, times, states, controls)
    full = Trajectory(pushed.state, times, states, np.hstack([controls, 0 * controls]))
    found = [problem.solve([1.0], guess=given, max_iterations=0) for given in (alone, full)]
    np.testing.assert_array_equal(found[0].u[:, 0], controls[:, 0])
    np.testing.assert_array_equal(found[0].u, found[1].u)
    three = Trajectory(pushed.state, times, states, np.zeros((3, 3)))
    with pytest.raises(
        ValueError, match=r"inputs of the guess has shape \(3, 3\), expected \(3, 2\)"
    ):
        problem.solve([1.0], guess=three)


def test_limits_of_angles_ask_whether_they_are_degrees():
    """Of what is an angle by its unit, if they are more than two turns and less than "none"."""
    turn = System(
        "turn", Product(angle=SO2, arm=Helical(0), slide=Translation("z"), rate=Rn(1)),
        lambda t, x, u, p: [x[4], 0, 0, u[0]], inputs=[Input("steer", "rad")],
    )  # fmt: skip

    def stated(of, limit):
        OptimalControlProblem(turn, 2, 0.1, bounds=[Bound(of, -limit, limit)])

    for of in ("arm", "arm.angle", "angle", "steer"):
        with pytest.warns(UserWarning, match=f"bound '{of}'.*are these degrees.*radians"):
            stated(of, 90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for of, limit in (("slide", 90), ("rate", 90), ("arm", 1e6), ("arm", 12.0)):
            stated(of, limit)


@pytest.mark.parametrize(
    ("group", "lower", "upper"),
    [(SE3, 0.0, 0.0), (SE3, -0.4, 0.4), (SE2, 0.0, 0.0), (SE2, 0.8, 2.0), (SE3, 0.6, 3.0)],
)
def test_limits_that_no_element_keeps_are_refused(group, lower, upper):
    """Zeros of a quaternion are no attitude: the error from a goal is what has a zero."""
    body = System(
        "body", Product(pose=group, extra=SO2), lambda t, x, u, p: u,
        inputs=[f"u{i}" for i in range(group.dim + 1)],
    )  # fmt: skip
    stated = functools.partial(OptimalControlProblem, body, 2, 0.1)
    with pytest.raises(ValueError, match=r"'pose' \(at 'terminal'\).*norm one.*group.minus"):
        stated(bounds=[Bound("pose", lower, upper, at="terminal")])
    with pytest.raises(ValueError, match="norm one"):
        stated(bounds=[Bound("state.pose", [0.0] * group.nq, [0.0] * group.nq)])
    stated(bounds=[Bound("pose", lower, upper, soft=10.0)])
    stated(bounds=[Bound("pose", -1.0, 1.0), Bound("pose", lower=-0.5), Bound("extra", 0, 0)])
    goal = group.exp(0.3 * np.ones(group.dim))
    at_goal = Bound("pose", goal, goal, at="terminal")
    assert list(stated(bounds=[at_goal]).bounds) == [at_goal]


def test_what_is_wrong_in_functions_of_a_problem_is_told_as_in_those_of_a_system():
    plant = System("plant", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    stated = functools.partial(OptimalControlProblem, plant, 2, 0.1)
    decides = Cost(lambda t, x, u, p: x[0] if x[0] > 0 else -x[0], name="distance")
    with pytest.raises(TypeError, match=r"^cost 'distance' decides by .*use casadi.if_else"):
        SQPSolver(stated(costs=[decides]))
    with pytest.raises(TypeError, match=r"^bound 'ring' must take \(t, x, u, p\)"):
        SQPSolver(stated(bounds=[Bound(lambda x: x, 0, 1, name="ring")]))
    wave = Residual(lambda t, x, u, p: np.sin(x[0]), name="wave")
    with pytest.warns(FutureWarning, match="^residual 'wave' calls NumPy functions"):
        SQPSolver(stated(residuals=[wave]))


def test_references_that_nothing_holds_name_the_parameters():
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u[0] / p[0]], inputs=["push"],
        parameters=[Parameter("mass", "kg", 1.0)],
    )  # fmt: skip
    problem = OptimalControlProblem(cart, 2, 0.1, reference=[0.0, 0.0])
    with pytest.raises(ValueError, match="what holds cart at .*not finite with mass = 0: give"):
        problem.solve([1.0, 0.0], p={"mass": 0.0})
    assert problem.solve([1.0, 0.0], p={"mass": 2.0}).is_success


def test_limits_in_one_word_evaluate_a_quantity_once():
    """However many of its entries have limits."""
    craft = System(
        "craft", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=["push"],
        quantities={"load": lambda t, x, u, p: ca.sin(x[0]) * ca.vertcat(1, x[1], x[0])},
        limits={f"load.{i}": (-1, 1) for i in range(3)} | {"x0": (-2, 2)},
    )  # fmt: skip
    t, x, u, p = symbols_of(craft)
    bounds = OptimalControlProblem(craft, 2, 0.1, bounds=[Bound("limits")]).bounds
    column, rows = build_rows(craft, bounds, np.ones(2), (t, x, u, p, x), (), np.zeros(0, int))
    assert rows.names == ("load.0", "load.1", "load.2", "x0")
    function = ca.Function("rows", [t, x, u, p], [column])
    steps = range(function.n_instructions())
    assert [function.instruction_id(k) for k in steps].count(ca.OP_SIN) == 1


def test_quantities_are_terms_by_name():
    """As a function of the state says it; what nothing is called by is refused when stated."""
    given: dict = {"Q": 1.0, "R": 0.1, "reference": [0.5, 0.0]}

    def cost(**terms):
        return OptimalControlProblem(crane(), 10, 0.1, **terms, **given).solve([-1.0, 0.3]).cost

    by_hand = Cost(lambda t, x, u, p: x[1] ** 2 / 2, 3.0)
    assert cost(costs=[Cost("energy", 3.0)]) == pytest.approx(cost(costs=[by_hand]), rel=1e-9)
    square = Residual(lambda t, x, u, p: x[1] ** 2 / 2, 3.0)
    named = cost(residuals=[Residual("energy", 3.0)])
    assert named == pytest.approx(cost(residuals=[square]), rel=1e-9)
    with pytest.raises(ValueError, match="unknown quantity of crane 'enrgy'"):
        OptimalControlProblem(crane(), 10, 0.1, costs=[Cost("enrgy")])
    for term in ({"costs": [Cost("energy", "w")]}, {"residuals": [Residual("energy", "w")]}):
        with pytest.raises(ValueError, match="unknown parameter 'w'"):
            OptimalControlProblem(crane(), 10, 0.1, **term)


def test_quantities_are_named_beside_parameters_of_the_problem():
    """They are functions of the system's own parameters, which come first."""
    system = pendulum().replaced(quantities={"pull": lambda t, x, u, p: p[0] * u})
    terms = {
        "costs": [Cost("pull", 0.1)], "bounds": [Bound("pull", -0.3, 0.3)],
        "residuals": [Residual("pull", "price")],
    }  # fmt: skip
    problem = OptimalControlProblem(
        system, 10, 0.1, reference=[-1.0, 0.0, 0.0], parameters=["price"], **terms
    )
    assert np.abs(problem.solve([1.0, 0.0, 0.0]).u).max() == pytest.approx(0.3, abs=1e-4)


def test_problems_and_solutions_are_frozen_and_name_what_they_have():
    class Renamed(OptimalControlProblem):
        pass

    for kind in (OptimalControlProblem, Renamed):
        problem = kind(pendulum(), 5, 0.1, reference=np.array([1.0, 0, 0]))
        with pytest.raises(AttributeError, match="horizon is fixed when .* made: make another"):
            problem.horizon = 3
        with pytest.raises(AttributeError, match="unknown attribute .* 'horizn'.*'horizon'"):
            problem.horizn = 3
        with pytest.raises(AttributeError, match="unknown attribute .* 'horizn'.*'horizon'"):
            problem.horizn  # noqa: B018  # the access is what raises
        with pytest.raises(ValueError, match="read-only"):
            problem.Q[0, 0] = 2.0
    solution = problem.solve([1.0, 0.0, 0.0], max_iterations=1)
    with pytest.raises(AttributeError, match="unknown attribute of OptimalSolution 'costs'"):
        solution.costs  # noqa: B018  # the access is what raises
    with pytest.raises(AttributeError, match="cost"):
        solution.cost = 0.0
    assert not hasattr(solution, "__dict__")


def test_a_copy_with_other_arguments_chooses_defaults_again():
    problem = OptimalControlProblem(pendulum(), 5, 0.1, Q=2.0, bounds=[Bound("rate", -1, 1)])
    longer = problem.with_arguments(horizon=10)
    assert np.array_equal(longer.terminal, 2 * problem.terminal)
    assert longer.bounds == problem.bounds and longer.method == problem.method
    fixed = problem.with_arguments(terminal=problem.terminal).with_arguments(horizon=10)
    assert np.array_equal(fixed.terminal, problem.terminal)


def test_residuals_and_costs_say_what_they_are_of_in_one_form():
    """The name of a quantity or a function of the state; function= takes the quantity's values."""
    system = pendulum().replaced(quantities={"pull": lambda t, x, u, p: 3 * u})
    given = {"Q": 0.0, "R": 1.0, "terminal": 0.0, "reference": np.array([1.0, 0, 0])}
    start = [0.0, 1.0, 0.0]
    for kind in (Residual, Cost):
        by_name = kind("pull", 2.0, function=lambda t, y, u, p: y**2)
        by_hand = kind(lambda t, x, u, p: (3 * u) ** 2, 2.0)
        key = "residuals" if kind is Residual else "costs"
        costs = [
            OptimalControlProblem(system, 5, 0.1, **given, **{key: [term]})
            .solve(start, guess="rest", max_iterations=2).cost
            for term in (by_name, by_hand)
        ]  # fmt: skip
        assert costs[0] == pytest.approx(costs[1], rel=1e-12)
        with pytest.raises(ValueError, match=f"name it, {kind.__name__}\\('input', function="):
            kind(lambda t, x, u, p: x[0], function=lambda t, y, u, p: y)
        with pytest.raises(TypeError, match="of must be a function or a text"):
            kind(3.0)


def test_no_reference_is_asked_where_nothing_is_weighed_from_it():
    """Least effort to an end: u falls linearly, from 6 to -6; a nominal input is what R is from."""
    double = System(
        "double", Product(place=Rn(1), speed=Rn(1)), lambda t, x, u, p: ca.vertcat(x[1], u[0]),
        inputs=[Input("push", "N", nominal=0.5)],
    )  # fmt: skip
    ends = [Bound("place", 1, 1, at="terminal"), Bound("speed", 0, 0, at="terminal")]
    free = OptimalControlProblem(double, 20, 0.05, Q=0.0, R=1.0, bounds=ends)
    held = Trajectory(double.state, [0.0, 1.0], np.zeros((2, 2)), [[0.5]])
    told = free.with_arguments(reference=held)
    found, same = free.solve([0.0, 0.0]), told.solve([0.0, 0.0])
    assert found.is_success and np.abs(found.u - same.u).max() < 1e-7
    assert np.diff(found.u[:, 0], 2) == pytest.approx(0.0, abs=1e-6)
    slow = Bound(lambda t, x, u, p: x[1], upper=1.2, name="slow")
    bounded = free.with_arguments(bounds=[*ends, slow]).solve([0.0, 0.0])
    assert bounded.is_success and bounded.x[:, 1].max() < 1.2 + 1e-6 < found.x[:, 1].max()
    weighed = free.with_arguments(Q=1.0)  # a copy that weighs errors asks for one again
    assert weighed.reference is None
    with pytest.raises(ValueError, match="give reference="):
        weighed.solve([0.0, 0.0])
    turn = System("turn", SO2, lambda t, x, u, p: u, inputs=["rate"])
    with pytest.raises(ValueError, match="give reference="):
        OptimalControlProblem(turn, 5, 0.1, Q=0.0, bounds=[Bound("rz", -1, 1)]).solve([1.0, 0.0])


def heights():
    """Two bounds of one name, of different quantities."""
    return [
        Bound(lambda t, x, u, p: x[0], upper=2.0, name="height"),
        Bound(lambda t, x, u, p: -x[0], upper=3.0, name="height"),
    ]


def test_limits_of_several_bounds_of_one_name_are_no_parameter():
    problem = OptimalControlProblem(double_integrator(), 4, 0.1, bounds=heights())
    with pytest.raises(ValueError, match="several bounds called 'height' have a limit 'upper'"):
        problem.symbolic("height.upper")


def test_figures_show_each_of_several_bounds_of_one_name():
    problem = OptimalControlProblem(double_integrator(), 4, 0.1, bounds=heights())
    x = np.array([[1.0, 0.0, 0.0, 0.0], [1.5, 0.0, 0.0, 0.0]])
    told = problem.bounded(np.array([0.0, 0.1]), x, np.zeros((2, 2)))
    assert [(name, high) for name, (_, _, high) in told.items()] == [
        ("height", 2.0), ("height (2)", 3.0),
    ]  # fmt: skip
    np.testing.assert_array_equal(told["height"][0], -told["height (2)"][0])


@pytest.mark.parametrize("shape", [{"hold": "first"}, {"blocks": [1, 3]}])
def test_priors_of_a_call_and_derivatives_know_shapes_of_inputs(shape):
    told = {"Q": 1, "R": 0.1, "reference": [0, 0, 0, 0], "free": "x0"}
    problem = OptimalControlProblem(double_integrator(), 4, 0.1, **told, arrival=5.0, **shape)
    called = OptimalControlProblem(double_integrator(), 4, 0.1, **told, **shape)
    weight = np.diag([5.0, 0.0, 0.0, 0.0])
    x0 = [1.0, 0.0, 0.0, 0.0]
    found = called.solve(x0, arrival=weight)
    np.testing.assert_allclose(found.x[0], problem.solve(x0).x[0], atol=1e-6)
    assert found.x[0, 0] < 0.99
    with pytest.raises(ValueError, match=r"arrival has shape \(2, 2\), expected \(4, 4\)"):
        called.solve(x0, arrival=np.eye(2))
    ahead, back = (problem.solve([1 + h, 0, 0, 0], tolerance=1e-10) for h in (1e-3, -1e-3))
    along = problem.solve(x0, tolerance=1e-10).sensitivities().by("x0")
    np.testing.assert_allclose(along.x[..., 0], (ahead.x - back.x) / 2e-3, atol=1e-6)
    np.testing.assert_allclose(along.u[..., 0], (ahead.u - back.u) / 2e-3, atol=1e-5)


def test_the_cost_is_what_the_page_says():
    """The half, per s but for the end, inputs from those that hold the reference: 2, not 0.7."""
    state = Product(angle=SO2, rate=Rn(1))
    pendulum = System(
        "pendulum", state, lambda t, x, u, p: ca.vertcat(x[2], u - 2 - x[1]),
        inputs=[Input("push", nominal=0.7)],
    )  # fmt: skip
    Q, goal = np.diag([1.0, 0.5]), np.array([1.0, 0.0, 0.0])
    found = OptimalControlProblem(
        pendulum, 3, 0.1, Q=Q, R=0.2, terminal=3.0, reference=goal,
        residuals=[Residual(lambda t, x, u, p: x[2], 4.0)],
        costs=[Cost(lambda t, x, u, p: x[2] ** 2, 7.0)],
    ).solve([0.0, 1.0, 0.5])  # fmt: skip
    errors = [state.minus(x, goal) for x in found.x]
    steps = sum(
        0.5 * (e @ Q @ e + 0.2 * (u[0] - 2) ** 2 + 4 * x[2] ** 2) + 7 * x[2] ** 2
        for e, u, x in zip(errors, found.u, found.x, strict=False)
    )
    last = 0.5 * 3.0 * errors[-1] @ errors[-1]
    assert found.cost == pytest.approx(0.1 * steps + last, rel=1e-9)


def test_limits_wider_than_an_angle_are_asked_about_and_deviations_need_a_reference():
    arm = System("arm", Product(angle=SO2), lambda t, x, u, p: u, inputs=["rate"])
    with pytest.warns(UserWarning, match="are these degrees.*within π rad of zero"):
        OptimalControlProblem(arm, 3, 0.1, Q=0, R=1, bounds=[Bound("angle", -10, 10)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OptimalControlProblem(arm, 3, 0.1, Q=0, R=1, bounds=[Bound("angle", -np.pi, 3.0)])
    wide = OptimalControlProblem(arm, 3, 0.1, Q=0, R=1, bounds=[Bound("angle.rz", 0, 0)])
    with pytest.raises(ValueError, match=r"bound 'angle.rz' limits.*Bound\('angle', …\)"):
        wide.solve([1, 0])


def test_steps_of_days_are_told_to_be_in_seconds():
    fast = System("fast", Rn(2), lambda t, x, u, p: [x[1], u - 900 * x[0]], inputs=["u"])
    with pytest.raises(ValueError, match="shorten dt, which is in s.*radau"):
        OptimalControlProblem(fast, 3, 50, Q=0, R=1, method="rk4")
    with pytest.raises(ValueError) as told:
        OptimalControlProblem(fast, 3, 50, Q=0, R=1, method="radau_iia5")
    assert "take method" not in str(told.value)
