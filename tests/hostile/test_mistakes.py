"""Mistakes of users: the message says what was given, what is expected, and what to write."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol import Multibody, simulate
from lgcontrol.codegen._internal import check_shape
from lgcontrol.estimation import EKF, Log
from lgcontrol.groups import Rn
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.optimal import Bound
from lgcontrol.simulation import Kick, SimulationResult
from lgcontrol.systems import Input, Parameter, Sensor, System, Trajectory


def cart():
    return System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], u[0] + u[1]], inputs=["wheel.l", "wheel.r"]
    )


def arm():
    return Multibody("arm").add_body("a", SpatialInertia.point_mass(1.0, [1, 0, 0]), "revolute")


def run(**options):
    return simulate(cart(), None, x0=[0.0, 0.0], **({"seconds": 0.1} | options))


MISTAKES = {
    "nothing": (lambda: check_shape("x", None, (3,)), "x must be an array of numbers: got None"),
    "nothing in a list": (lambda: check_shape("x", [1, None], (2,)), r"numbers: got \[1, None\]"),
    "a number as text": (lambda: check_shape("dt", "0.1", ()), "dt must be a number: got the text"),
    "numbers as texts": (lambda: check_shape("x", [1, "2"], (2,)), "must be an array of numbers"),
    "seconds as text": (lambda: run(seconds="4"), "seconds must be a number of seconds, got '4'"),
    "a limit as text": (
        lambda: Input("u", "N", "-1"),
        r"Input\(\): lower must be a number, got '-1'",
    ),
    "a nominal value as text": (
        lambda: Parameter("m", "kg", "3"),
        r"Parameter\(\): nominal must be a number, got '3'",
    ),
    "one sensor": (
        lambda: run(sensors=Sensor("y")),
        r"in sensors=\[Sensor\(…\)\]; got a Sensor",
    ),
    "a class": (lambda: run(estimator=EKF), r"not the class EKF: make one, EKF\(…\)"),
    "a number that is fixed": (lambda: run(p={"mass": 1.0}), r"symbolic=\['mass'\] for a model"),
    "a list of wishes": (lambda: cart().trim(where=[1.0]), r"where=\{'x0': 0.5\}; got \[1.0\]"),
    "the wrong order": (
        lambda: cart().discretize("rk4", 0.1),
        "dt must be a number, got 'rk4'",
    ),
    "a tree as a system": (lambda: arm().linearize([0.0]), r"its system has: tree.system\(…\).lin"),
    "a tree in a filter": (lambda: EKF(arm(), []), r"not Multibody; give its .system\(\)"),
    "a symbol for a switch": (
        lambda: EKF(cart(), [], noise={}, square_root=ca.SX.sym("s")),
        r"square_root must be True or False, got SX\(s\)",
    ),
    "words for inputs as many as states": (
        lambda: cart().linearize([0.0, 0.0], ["fast", "slow"]),
        "u must be an array of numbers: got the text",
    ),
    "the name of a sensor": (
        lambda: EKF(cart(), ["gps"]),
        r"sensors must be a list of Sensor, as in .*; got 'gps'",
    ),
    "the name of a log": (
        lambda: EKF(cart(), [], std0=1, noise={}).run("log"),
        "log must be a Log, .* not str",
    ),
    "equal times": (lambda: Trajectory(Rn(1), [0, 0], [[0], [0]]), r"t\[0\] = 0 and t\[1\] = 0"),
    "no group": (
        lambda: Trajectory([0, 1], Rn(1), [[0], [0]]),
        "group must be a LieGroup, not list",
    ),
    "a bound without a name": (lambda: Bound(-1, 1, "speed"), r"as in Bound\('speed', -1.0, 1.0\)"),
    "a pair that is none": (lambda: Log([0], [0], {"y": [1, 2, 3]}), r"must be \(times, values\)"),
    "half a dimension": (lambda: Rn(2.5), "whole number n >= 0, got 2.5"),
    "a kick without names": (lambda: Kick(0.1, "v", 1.0), r"2 arguments by position"),
    "no logs": (lambda: Log([], []), "at least one time"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_explained(case):
    call, message = MISTAKES[case]
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        call()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="but a folder; expected the name of a file"):
        SimulationResult.load(tmp_path)


def test_what_a_tree_lacks_is_an_attribute_error():
    assert not hasattr(arm(), "poles") and not hasattr(arm(), "_private")


def test_inputs_side_by_side_share_a_lag():
    both, one_by_one = cart().augment(lag={"wheel": 0.2}), {"wheel.l": 0.2, "wheel.r": 0.2}
    assert both.parameter_names == cart().augment(lag=one_by_one).parameter_names
    assert np.array_equal(both.nominal_parameters, [0.2, 0.2])
