"""Constrained systems: fewer error coordinates than the group has, against a minimal model."""

import pickle

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol.groups import SE2, SO2, Product, Rn
from lgcontrol.systems import Input, Parameter, System, check_system, step_derivatives
from lgcontrol.systems._internal import ErrorCoordinates

MASS, LENGTH, INERTIA, GRAVITY = 1.3, 0.7, 0.05, 9.81
EXACT = 1e-10  # both are exact: some rounding errors of numbers up to a hundred
TIP = Rn(2, ("x", "y"), ("m", "m"))


def minimal():
    def field(t, x, u, p):
        cos, sin, rate = ca.vertsplit(x)
        torque = u - p * rate - MASS * GRAVITY * LENGTH * sin
        return ca.vertcat(rate, torque / (INERTIA + MASS * LENGTH**2))

    return System(
        "minimal",
        Product(angle=SO2, rate=Rn(1, ("w",))),
        field,
        inputs=[Input("torque", "N m", -9, 9)],
        parameters=[Parameter("damping", "N m s", 0.3)],
        h=lambda t, x, u, p: ca.vertcat(LENGTH * x[1], -LENGTH * x[0] + 0.1 * u),
        output=TIP,
    )


def absolute(**options):
    """The same in the pose and twist of the centre of mass; the pivot above it stays put."""
    M = ca.diag(ca.DM([MASS, MASS, INERTIA]))
    G = ca.DM([[1, 0, -LENGTH], [0, 1, 0]])  # body velocity of the pivot

    def field(t, x, u, p):
        cos, sin, twist = x[2], x[3], x[4:]
        vx, vy, w = ca.vertsplit(twist)
        weight = -MASS * GRAVITY * ca.vertcat(sin, cos)
        turning = MASS * w * ca.vertcat(vy, -vx)
        F = ca.vertcat(weight + turning, u - p * w)
        # The reaction passes through the pivot: F + Gᵀ λ, with the moment of the joint as it is.
        matrix = ca.blockcat([[M, G.T], [G, ca.DM(2, 2)]])
        return ca.vertcat(twist, ca.solve(matrix, ca.vertcat(F, 0, 0))[:3])

    def constraints(x, p):
        cos, sin = x[2], x[3]
        return ca.vertcat(x[0] - LENGTH * sin, x[1] + LENGTH * cos, G @ x[4:])

    def project(x, p):
        size = ca.sqrt(x[2] ** 2 + x[3] ** 2)
        cos, sin, w = x[2] / size, x[3] / size, x[6]
        return ca.vertcat(LENGTH * sin, -LENGTH * cos, cos, sin, LENGTH * w, 0, w)

    state = Product(pose=SE2, twist=Rn(3, ("vx", "vy", "w")))
    return System(
        "absolute",
        state,
        field,
        inputs=[Input("torque", "N m", -9, 9)],
        parameters=[Parameter("damping", "N m s", 0.3)],
        h=lambda t, x, u, p: ca.vertcat(x[0], x[1] + 0.1 * u),
        output=TIP,
        project=project,
        errors=ErrorCoordinates.independent(state, ["pose.rz", "twist.w"], constraints),
        **options,
    )


def states(angle, rate):
    """The same state for both models."""
    small = np.r_[SO2.exp([angle]), rate]
    cos, sin = SO2.exp([angle])
    return small, np.r_[LENGTH * sin, -LENGTH * cos, cos, sin, LENGTH * rate, 0.0, rate]


@pytest.mark.parametrize(("angle", "rate", "torque"), [(0, 0, 0), (0.9, 1.4, 0.5), (-2.5, -3, 2)])
def test_matrices_and_gain_are_those_of_the_minimal_model(angle, rate, torque):
    small, large = states(angle, rate)
    one, two = minimal().linearize(small, [torque]), absolute().linearize(large, [torque])
    assert two.state_names == ("pose.rz", "twist.w")
    for matrix in "ABCD":
        assert np.abs(getattr(one, matrix) - getattr(two, matrix)).max() < EXACT
    gains = [control.lqr(lin.to_control(), np.diag([3, 1]), np.eye(1))[0] for lin in (one, two)]
    assert np.abs(gains[0] - gains[1]).max() < EXACT


def test_along_a_motion_they_agree_as_well():
    small, large = states(0.5, 2.0)
    torques = np.sin(np.arange(20))[:, None]
    one = minimal().rollout(small, torques, 0.005)
    two = absolute().rollout(large, torques, 0.005)
    # The continuous matrices at the same states, on the motion of the minimal model.
    exact = np.array([states(float(SO2.log(x[:2])[0]), x[2])[1] for x in one.x])
    nodes = absolute().linearize(type(two)(two.group, two.t, exact, two.u))
    reference = minimal().linearize(one)
    for matrix in "ABCD":
        assert np.abs(getattr(nodes, matrix) - getattr(reference, matrix)).max() < EXACT
    # Steps differ by their error of order 5 in dt: coordinates on the group are curved.
    for a, b in zip(reference.discrete(), nodes.discrete(), strict=True):
        assert np.abs(a - b).max() < 1e-8


def test_derivatives_of_a_step_are_differences_on_the_manifold():
    system = absolute()
    _, x = states(1.1, -0.7)
    u, p, dt, h = np.array([0.4]), system.nominal_parameters, 0.05, 1e-5
    here = step_derivatives(system)(0.0, x, u, p, dt)

    def ahead(z):
        return system.step()(0.0, system.retract(x, z), u, p, dt)

    A = np.stack([system.error(ahead(h * e), ahead(-h * e)) / (2 * h) for e in np.eye(2)], axis=-1)
    assert np.abs(A - here.A).max() < 1e-8
    discrete = system.discretize(dt).linearize(x, u)
    assert np.abs(discrete.A - here.A).max() < EXACT
    assert np.abs(discrete.B - here.B).max() < EXACT


def test_errors_and_retractions_are_inverse_to_first_order():
    system = absolute()
    _, x = states(0.3, 1.0)
    z = np.array([[1e-5, -2e-5], [3e-5, 1e-5]])
    moved = system.retract(x, z)
    assert np.abs(system.error(moved, x) - z).max() < 1e-9
    E, N = system.error_selection, system.error_basis(x)
    assert np.abs(E @ N - np.eye(2)).max() < 1e-14
    symbolic = ca.SX.sym("z", 2)
    there = ca.Function("there", [symbolic], [system.retract(ca.DM(x), symbolic, ca.DM([0.3]))])
    assert np.abs(there(z[0]).full().ravel() - moved[0]).max() < 1e-15


def test_whoever_asks_finds_two_states():
    system = absolute()
    assert (system.n_errors, system.error_names) == (2, ("pose.rz", "twist.w"))
    _, x = states(0, 0)
    lin = system.linearize(x)
    assert lin.kind == "equilibrium"
    report = lin.controllability()
    assert report.size == 2 and report.is_controllable
    assert lin.observability().is_observable
    plant = system.to_nlsys("error", about=x)
    assert (plant.nstates, plant.state_labels[0]) == (2, "pose.rz")
    again = control.linearize(plant, [0, 0], [0])
    assert np.abs(again.A - lin.A).max() < 1e-4  # one-sided differences of python-control
    copy = pickle.loads(pickle.dumps(system.discretize(0.1)))
    assert copy.n_errors == 2


def test_the_checks_pass():
    assert max(check_system(absolute()).values()) < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selection": np.eye(3)[:1], "names": ["a"]}, "expected"),
        ({"selection": np.eye(2), "names": ["a", "a"]}, "different names"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        errors = ErrorCoordinates(basis=lambda x, p: ca.DM.eye(2), **arguments)
        System("s", Rn(2), lambda t, x, u, p: -x, errors=errors)


def test_too_few_constraints_are_counted():
    errors = ErrorCoordinates.independent(Rn(3, ("x", "y", "z")), ["x"], lambda x, p: x[1])
    with pytest.raises(ValueError, match="1 constraints leave 2 independent"):
        System("s", Rn(3, ("x", "y", "z")), lambda t, x, u, p: -x, errors=errors)
    with pytest.raises(KeyError, match="unknown entry of the tangent"):
        ErrorCoordinates.independent(Rn(1), ["q"], lambda x, p: x)
