"""Coordinates of any size are brought onto their group; those far from it are refused by name."""

import re
import warnings
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import LQR, GeometricPD
from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Product,
    Rn,
    Schoenflies,
    check_element,
)
from lgcontrol.integrators import integrate
from lgcontrol.integrators._internal import Problem
from lgcontrol.mechanics import InverseKinematics, Multibody, SpatialInertia
from lgcontrol.models import satellite
from lgcontrol.optimal import (
    OptimalControlProblem,
    lqr,
)
from lgcontrol.simulation import SimulationError, simulate
from lgcontrol.systems import Sensor, Trajectory, Waypoints, check_system
from tests.benchmarks._sqp_peer import SQPSolver

GROUPS = (SO2, SO3, SE2, SE3, Cylindrical, Schoenflies, Product(a=SE3, b=Rn(2), c=SO2))
SAME = 1e-15
FACTORS = (1e-308, 1e-200, 1e-150, 1e150, 1e200, 1e307)


def stretched(group, X, factor):
    longer = X.copy()
    for part in group.unit_parts:
        longer[..., part] *= factor
    return longer


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("factor", FACTORS)
def test_normalize_takes_coordinates_of_any_size(group, factor, rng):
    X = group.random(rng, (4,))
    digits = 1e-7 if factor < 1e-307 else SAME  # a number so small has fewer digits
    for value in (stretched(group, X, factor), stretched(group, X, -factor)):
        same = np.abs(np.abs(group.normalize(value)) - np.abs(X))
        assert same.max() <= digits
        column = group.normalize(ca.DM(value[0])).full().ravel()
        np.testing.assert_array_equal(column, group.normalize(value[0]))


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_what_has_no_direction_is_no_number(group, bad):
    with np.errstate(invalid="ignore"):
        value = stretched(group, group.identity, bad)
    X = group.normalize(value)
    assert all(np.isnan(X[part]).all() for part in group.unit_parts)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_one_rule_for_coordinates_off_the_group(group, rng):
    X = group.random(rng, (5,))
    near = stretched(group, X, 1 + 5e-7)
    np.testing.assert_allclose(check_element("x", near, group, batch=True), X, rtol=SAME, atol=SAME)
    for factor in (1 + 1e-5, 1.01, 2.0, 1e200, 1e-200):
        message = f"{group.coordinate_names[group.unit_parts[0]][0]}.* has norm "
        with pytest.raises(ValueError, match=message + re.escape(f"{factor:.7g}, not 1")):
            check_element("x", stretched(group, group.identity, factor), group)


TIMES = np.linspace(0, 0.4, 5)


@cache
def craft():
    """A satellite, at rest."""
    system = satellite()
    return system, system.trim()


@cache
def problem():
    system, rest = craft()
    return OptimalControlProblem(system, 4, 0.1, Q=1, R=1, reference=rest)


@cache
def star():
    system, _ = craft()
    return Sensor("star", dt=0.1, h="pose", std_discrete=0.01).bind(system)


def law(kind):
    system, rest = craft()
    return LQR(system, rest, dt=0.1) if kind == "LQR" else GeometricPD(system)


def fixed(t, x, reference):
    return np.zeros(3)


def run(controller=fixed, **options):
    """A short run that starts at rest, whatever it follows."""
    system, rest = craft()
    options = {"x0": rest, "reference": rest, "seconds": 0.1, "dt": 0.1} | options
    if controller is not fixed:
        del options["dt"]
    return simulate(system, controller, **options)


def ball():
    tree = Multibody().add_body("ball", SpatialInertia.sphere(1.0, 0.1), "spherical")
    return InverseKinematics(tree, "ball")


# Where states come in from outside, and how messages call them there.
DOORS = {
    "simulate": (lambda x: run(x0=x), "x0"),
    "rollout": (lambda x: craft()[0].rollout(x, None, 0.1, steps=2), "x0"),
    "rollout, a batch": (
        lambda x: craft()[0].rollout(np.stack([craft()[1].x, x]), None, 0.1, steps=2),
        r"x0\[1\]",
    ),
    "trim": (lambda x: craft()[0].trim(x), "guess"),
    "trim, a block": (lambda x: craft()[0].trim(where={"pose": x[:4]}), r"where\['pose'\]"),
    "linearize": (lambda x: craft()[0].linearize(x), "x"),
    "to_nlsys": (lambda x: craft()[0].to_nlsys(coordinates="error", about=x), "x"),
    "check_system": (lambda x: check_system(craft()[0], x=x), "x"),
    "lqr": (lambda x: lqr(craft()[0], x), "the reference's state"),
    "a plan's start": (lambda x: problem().solve(x), "x0"),
    "a solver's start": (lambda x: SQPSolver(problem()).solve(x), "x0"),
    "a plan's reference": (
        lambda x: OptimalControlProblem(craft()[0], 4, 0.1, Q=1, R=1, reference=x),
        "the reference's state",
    ),
    "a controller's reference": (
        lambda x: law("PD")(0.0, craft()[1].x, x),
        "the reference's state",
    ),
    "a run's reference": (lambda x: run(law("LQR"), reference=x), "the reference's state"),
    "a moving reference": (
        lambda x: run(law("LQR"), reference=lambda t: x),
        r"the reference's state\[0\]",
    ),
    "Trajectory": (lambda x: Trajectory(craft()[0].state, TIMES, np.tile(x, (5, 1))), r"x\[0\]"),
    "Waypoints": (lambda x: Waypoints(craft()[0].state, [0, 1], np.tile(x, (2, 1))), r"x\[0\]"),
    "integrate": (
        lambda x: integrate(Problem.of(SO3, lambda t, x: np.ones(3)), x[:4], (0, 0.1)),
        "x0",
    ),
    "a measurement": (
        lambda x: star().innovation(x[:4], 0.0, craft()[1].x, [0.0] * 6, []),
        "measurement star",
    ),
    "inverse kinematics": (lambda x: ball().solve(SE3.identity, guess=x[:4]), "guess"),
    "its target": (lambda x: ball().solve([0, 0, 0, *x[:4]]), "target of the task on 'ball'"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the reference is not in the result")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_has_the_same_rule(door):
    """Off by 1e-6 at most is normalised, more is refused, with the block and its norm."""
    enter, name = DOORS[door]
    on = craft()[1].x
    enter(off(on, 1 + 5e-7))
    for factor in (1 + 1e-5, 3.0):
        text = rf"{name} = \[.*q[xz], .*qw\) has norm {factor:.7g}, not 1"
        with pytest.raises((ValueError, SimulationError), match=text):
            enter(off(on, factor))


def off(state, factor):
    return np.concatenate([factor * state[:4], state[4:]])


def test_a_reference_off_the_group_is_not_recorded():
    with pytest.warns(RuntimeWarning, match="not in the result: .* has norm 2, not 1"):
        done = run(reference=off(craft()[1].x, 2.0))
    assert done.reference is None and done.is_success


def test_angles_that_look_like_degrees_are_asked_about():
    with pytest.warns(UserWarning, match=r"90 rad is 14\.3 turns: are these degrees\?") as caught:
        SO3.from_euler("ZYX", [90, 0, 0])
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="degrees=True"):
        SE3.from_euler("xyz", [[0, 0, 0], [0, -45, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SO3.from_euler("ZYX", [90, -360, 720], degrees=True)
        SO3.from_euler("ZYX", [2 * np.pi, -np.pi, 0])
        SO3.from_euler("x", np.zeros((0, 1)))
