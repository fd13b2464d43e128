"""Unknown names in every room: one exception, whose text lists the names there are."""

import pickle
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol import Multibody
from lgcontrol.codegen import chain, set_compile_policy, trace
from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import MPC, RealTime
from lgcontrol.estimation import EKF
from lgcontrol.groups import SE3, SO3, Product
from lgcontrol.mechanics import (
    BodyMotion,
    Coefficient,
    FlatMotion,
    Joint,
    JointProperties,
    Link,
    LinkCapsules,
    QuasiVelocity,
    SpatialInertia,
    ad_tilde,
    boltzmann_hamel_matrix,
)
from lgcontrol.models import four_bar_tree, quadrotor
from lgcontrol.optimal import Bound, Cost, OptimalControlProblem, PhasedProblem, Residual
from lgcontrol.optimal._internal import error_weight, state_weight
from lgcontrol.optimal._rows import build_rows
from lgcontrol.systems import System
from lgcontrol.systems._tracing import symbols_of

ROOMS = [Path(__file__).parents[2] / room for room in ("lgcontrol", "controllers", "models")]


def step():
    return trace("step", lambda x: x, {"x": (1,)}, ["x_next"])


CASES = {
    "a policy": (lambda: set_compile_policy("atuo"), "'auto'"),
    "an argument to carry": (lambda: chain(step(), 3, carry=("y", "x_next")), "names are x"),
    "a block": (lambda: Product(pose=SE3).coordinate_slice("poze"), "mean 'pose'"),
    "an operation": (lambda: SE3.function("compos"), "mean 'compose'"),
    "an order of quaternions": (lambda: SO3.from_quaternion([0, 0, 0, 1], "xyz"), "mean 'xyzw'"),
    "a method": (lambda: quadrotor().discretize(0.1, "rk5"), "'rk4'"),
    "a number of a body": (lambda: quadrotor(symbolic=["mas"]), "mean 'mass'"),
    "a number of a tree": (lambda: Multibody().symbolic("gravity.w"), "gravity.x"),
    "a value in a tree": (lambda: Multibody().with_parameters({"gravity.w": 1}), "gravity.x"),
    "a fixed number": (lambda: quadrotor().with_parameters({"mass": 1}), "symbolic=['mass']"),
    "a link": (lambda: Multibody().add_body("a", None, "fixed", "b"), "are world"),
    "a kind of joint": (lambda: Multibody().add_body("a", None, "revolut"), "mean 'revolute'"),
}


ARGUMENTS = {
    "joint": (lambda: Joint(step=()), "Joint(): unknown argument 'step'", "steps"),
    "link": (lambda: Link(nam="arm"), "Link(): unknown argument 'nam'", "name, joint, parent"),
    "capsules": (lambda: LinkCapsules(capsule={}), "LinkCapsules(): ", "tree, capsules"),
    "quasi-velocity": (lambda: QuasiVelocity(n=3), "QuasiVelocity(): ", "dim, transformation"),
    "flat motion": (lambda: FlatMotion(path=None), "FlatMotion(): ", "position, heading"),
    "motion of a body": (lambda: BodyMotion(pose=0), "BodyMotion(): ", "rotation, position"),
    "coefficient": (lambda: Coefficient(values=1), "Coefficient(): ", "mean 'value'"),
    "adjoint": (lambda: ad_tilde(groups=SO3), "ad_tilde(): ", "mean 'group'"),
    "definition": (lambda: boltzmann_hamel_matrix(q=0), "boltzmann_hamel_matrix(): ", "group, p"),
    "symbols of a loop": (lambda: four_bar_tree().symbolic(name="a"), "symbolic(): ", "names"),
    "option of a joint": (lambda: Joint.of("revolute", axes="x"), "revolute joint: ", "'axis'"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_unknown_arguments_list_those_there_are(case):
    call, begin, valid = ARGUMENTS[case]
    with pytest.raises(TypeError) as caught:
        call()
    text = str(caught.value)
    assert begin in text and "valid names are" in text and valid in text
    assert "unexpected keyword" not in text  # Python's own words


@pytest.mark.parametrize("case", CASES)
def test_unknown_names_are_one_exception(case):
    call, hint = CASES[case]
    with pytest.raises(UnknownNameError) as caught:
        call()
    text = str(caught.value)
    assert "unknown" in text and hint in text
    assert text[0] not in "'\"" and "\\'" not in text  # a KeyError's text would be quoted
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


def test_every_room_raises_it():
    """Unexpected arguments (TypeError), attributes and the command line keep their own."""
    raised = re.compile(r"raise (\w+)\(\s*(?:f?\"[^\"\n]*\"\s*\+?\s*|f\"[^\n]*?\{)?unknown_name\(")
    allowed = {"UnknownNameError", "TypeError", "AttributeError", "CommandError"}
    found = [
        (path.name, name)
        for room in ROOMS
        for path in room.rglob("*.py")
        for name in raised.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 40
    assert not [entry for entry in found if entry[1] not in allowed]


OPTIONS = {
    "trim": (lambda: quadrotor().trim(pos=[0, 0, 1]), r"trim\(\): .*'pos'.* mean 'position'"),
    "MPC": (lambda: MPC(quadrotor(), residual=[]), r"MPC\(\): .*'residual'.* mean 'residuals'"),
    "RealTime": (lambda: RealTime(restart=True), r"RealTime\(\): .* mean 'restarts'"),
    "order": (lambda: MPC(quadrotor(), 20, 0.1, 1.0), r"\(system, horizon, dt\), got 4: name .*Q"),
    "EKF": (lambda: EKF(quadrotor(), [], noises=1), r"EKF\(\): .*'noises'.* mean 'noise'"),
    "System": (lambda: System("a", SO3, None, input="a"), r"System\(\): .* mean 'inputs'"),
    "model": (lambda: quadrotor(weight=1), r"quadrotor\(\): .*'weight'; valid names are mass"),
    "order of a model": (lambda: quadrotor(1.0), r"takes no arguments .*, got 1: name .*mass"),
    "solve": (lambda: hover("interior_point"), r"solve\(\): .*'tol'.* mean 'tolerance'"),
    "IPOPT": (lambda: hover("ipopt"), r"solve\(\): .*'tol'.* mean 'tolerance'"),
    "a plan": (lambda: PhasedProblem([], time_wieght=1), r"\(\): .* mean 'time_weight'"),
    "replace": (lambda: replace(Bound("a"), uper=1), r"Bound\(\): .* mean 'upper'"),
}


def hover(solver):
    return OptimalControlProblem(quadrotor(), 2, 0.1).solve(quadrotor().home, solver=solver, tol=1)


@pytest.mark.parametrize("case", OPTIONS)
def test_an_unknown_option_is_refused_with_those_there_are(case):
    call, message = OPTIONS[case]
    with pytest.raises(TypeError, match=message):
        call()


def test_terms_of_what_is_no_quantity_say_what_is_weighed_instead():
    for name, function, weight in (
        ("pose.z", r"x\[2\]", "Q"), ("twist", r"x\[7:13\]", "Q"), ("rotor.1", r"u\[1\]", "R"),
    ):  # fmt: skip
        for term in ({"residuals": [Residual(name)]}, {"costs": [Cost(name)]}):
            with pytest.raises(
                UnknownNameError, match=f"quantity .*{function}; .*{weight}={{'{name}"
            ):
                OptimalControlProblem(quadrotor(), 2, 0.1, **term)
    with pytest.raises(UnknownNameError, match="unknown quantity of quadrotor 'energy'"):
        term = Residual("energy", function=lambda t, y, u, p: y)
        OptimalControlProblem(quadrotor(), 2, 0.1, residuals=[term])


@cache
def arm():
    """Two rods whose inputs have the names of their joints."""
    rod = SpatialInertia.rod(1.0, length=1.0, center_of_mass=[0.5, 0, 0], axis=[1, 0, 0])
    held = JointProperties(lower=-1.0, upper=1.0)
    tree = Multibody()
    for name, parent in (("shoulder", "world"), ("elbow", "shoulder")):
        tree = tree.add_body(name, rod, "revolute", parent, axis="y", properties=held)
    return tree.system()


AMBIGUOUS = {
    "a bound": lambda name: MPC(arm(), horizon=2, dt=0.1, bounds=[Bound(name, -0.1, 0.1)]),
    "a trim": lambda name: arm().trim(where={name: 0.0}),
}


@pytest.mark.filterwarnings("ignore:plans of")
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_joint_and_its_torque_are_told_apart(case):
    with pytest.raises(ValueError, match="'elbow' .* write 'state.elbow' or 'input.elbow'"):
        AMBIGUOUS[case]("elbow")


def bounded(problem):
    """The only bounded quantity of a problem, and the symbols of its state and input."""
    t, x, u, p = symbols_of(problem.system)
    column, _ = build_rows(
        problem.system, problem.bounds, np.ones(2), (t, x, u, p, x), (), np.zeros(0, int)
    )
    return column, x, u


def test_what_the_longer_names_mean():
    for name in ("state.elbow", "configuration.elbow", "configuration.elbow.angle"):
        problem = OptimalControlProblem(arm(), 2, 0.1, bounds=[Bound(name, -0.1, 0.2)])
        assert problem.ignored_limits == ("configuration.shoulder.angle",), name
        column, x, _ = bounded(problem)
        assert ca.is_equal(column, x[1]), name
        assert arm().trim(where={name: 0.3}).x[1] == pytest.approx(0.3)
    problem = OptimalControlProblem(arm(), 2, 0.1, bounds=[Bound("input.elbow", -0.1, 0.2)])
    assert len(problem.ignored_limits) == 2
    column, _, u = bounded(problem)
    assert ca.is_equal(column, u[1])
    assert arm().trim(where={"input.elbow": 0.5}).u[1] == 0.5


def turntable():
    """A table that turns without end, and a lever on it."""
    rod = SpatialInertia.rod(1.0, length=1.0, center_of_mass=[0.5, 0, 0], axis=[1, 0, 0])
    tree = Multibody().add_body("table", rod, "continuous", axis="z")
    return tree.add_body("lever", rod, "revolute", "table", axis="y").system()


def test_the_name_of_a_joint_means_its_angle():
    system = turntable()
    x = np.array([np.cos(0.4), np.sin(0.4), 0.7, 0.1, 0.2])
    for name, value in (
        ("configuration.table", 0.4),
        ("configuration.lever", 0.7),
        ("velocity.table", 0.1),
        ("velocity.lever", 0.2),
    ):
        problem = OptimalControlProblem(system, 2, 0.1, bounds=[Bound(name, -1.0, 1.0)])
        column, at, _ = bounded(problem)
        assert ca.Function("bounded", [at], [column])(x).full() == pytest.approx(value), name
        weights = state_weight("Q", {name: 2.0}, system.state)
        turn = "rz" if name.endswith("table") else "ry"
        place = system.state.tangent_names.index(f"{name}.{turn}")
        assert np.trace(weights) == 2.0 == weights[place, place], name
    with pytest.raises(
        ValueError, match="from its reference.*the angle itself is 'configuration.l"
    ):
        OptimalControlProblem(system, 2, 0.1, bounds=[Bound("configuration.lever.ry", -1, 1)])
    with pytest.raises(ValueError, match="Did you mean 'configuration.lever'"):
        state_weight("Q", {"configuration.lever.angle": 1.0}, system.state)


def test_independent_coordinates_have_the_names_of_their_joints():
    tree = four_bar_tree()
    system = tree.system(independent="crank")
    for name in ("configuration.crank", "crank", "configuration.crank.r"):
        assert np.array_equal(error_weight("Q", {name: 3.0}, system), np.diag([3.0, 0.0])), name
    assert np.array_equal(error_weight("Q", {"velocity.crank": 3.0}, system), np.diag([0.0, 3.0]))
    with pytest.raises(ValueError, match="unknown entry of Q 'coupler'; valid names are .*crank"):
        error_weight("Q", {"coupler": 1.0}, system)


def test_limits_that_a_plan_ignores_are_named():
    with pytest.warns(RuntimeWarning, match="limits of shoulder.angle, elbow.angle: give bounds="):
        MPC(arm(), horizon=2, dt=0.1)
