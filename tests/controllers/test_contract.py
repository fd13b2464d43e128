"""What every controller promises to whoever calls it."""

import pickle
from functools import cache

import numpy as np
import pytest

from lgcontrol.controllers import (
    LQR,
    MPC,
    TVLQR,
    Adapted,
    ComputedTorque,
    GeometricPD,
    GravityPD,
    OperationalSpace,
    RealTime,
    ThrustVectorPD,
)
from lgcontrol.models import panda_tree, surface_vessel

from ..optimal.examples import satellite
from .problem_a import GOAL, HOVER, quadrotor

pytestmark = pytest.mark.interpreted

NAMES = ["LQR", "TVLQR", "MPC", "GeometricPD", "ThrustVectorPD"]


def make(name, **options):
    """A controller and its goal."""
    if name == "GeometricPD":
        body = satellite(limit=1.0)
        return GeometricPD(body, **options), body.state.identity
    quad = quadrotor()
    hover = quad.trim(position=GOAL[:3])
    weights = {"Q": {"pose": 10, "twist": 1}, "R": 0.1}
    if name == "LQR":
        return LQR(quad, hover, **weights, **options), GOAL
    if name == "TVLQR":
        return TVLQR(quad, hover.trajectory(2.0, 0.05), **weights, **options), GOAL
    if name == "MPC":
        times = {"period": options.pop("dt", None), "offset": options.pop("offset", 0.0)}
        options = {"real_time": RealTime(**times), **options}
        return MPC(quad, horizon=6, dt=0.05, **weights, **options), GOAL
    return ThrustVectorPD(quad, **options), GOAL


plain = cache(make)  # tracing takes long; none of the tests that share one changes its settings


def fresh(name):
    """The controller with its defaults, as after its making, and its goal."""
    controller, goal = plain(name)
    controller.reset()
    return controller, goal


@pytest.mark.parametrize("name", NAMES)
def test_each_says_which_law_it_is_of_which_system(name):
    law, _ = plain(name)
    assert repr(law).startswith(f"{name}({law.system.name!r}, ")
    assert f"{law.dt:g} s" in repr(law)


@pytest.mark.parametrize("name", NAMES)
def test_controls_are_within_bounds_and_said_to_be(name, rng):
    controller, goal = fresh(name)
    system = controller.system
    index = system.input_index("control")
    lower, upper = (bound[index] for bound in system.input_bounds)
    for size in (0.0, 0.1, 3.0):
        x = system.state.plus(goal, size * rng.normal(size=system.state.dim))
        u = controller(0.0, x, goal)
        assert u.shape == (len(index),)
        assert ((u >= lower) & (u <= upper)).all()
        assert controller.info.status in ("ok", "saturated")
    controller.reset()
    at_goal = controller(0.0, goal, goal)
    expected = np.zeros(3) if name == "GeometricPD" else HOVER
    assert np.allclose(at_goal, expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_timing_is_what_was_asked_for(name):
    controller, _ = make(name, dt=0.02, offset=0.01, delay=0.005)
    assert (controller.dt, controller.offset, controller.delay) == (0.02, 0.01, 0.005)
    with pytest.raises(ValueError, match="must be positive"):
        make(name, dt=0.0)
    with pytest.raises(ValueError, match="delay must not be negative"):
        make(name, delay=-0.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_that_is_not_finite_holds_the_last_controls(name, rng):
    controller, goal = fresh(name)
    system = controller.system
    broken = np.full(system.state.nq, np.nan)
    first = controller(0.0, broken, goal)
    resting = np.zeros(3) if name == "GeometricPD" else HOVER
    assert np.allclose(first, resting, atol=1e-6)  # that of the reference, before any other
    assert controller.info.status == "held"
    nowhere = system.state.identity
    nowhere[3:7] = nowhere[:4] = 0.0
    assert np.array_equal(controller(0.0, nowhere, goal), first)
    assert "is no element of" in controller.info.message
    controller(0.0, broken, goal)
    assert "not finite" in controller.info.message
    x = system.state.plus(goal, 0.1 * rng.normal(size=system.state.dim))
    last = controller(0.0, x, goal)
    assert np.array_equal(controller(0.05, broken, goal), last)
    assert controller.info.status == "held"


@pytest.mark.parametrize("name", NAMES)
def test_absurd_states_get_an_answer_within_bounds(name):
    controller, goal = fresh(name)
    index = controller.system.input_index("control")
    lower, upper = (bound[index] for bound in controller.system.input_bounds)
    for size in (1e6, 1e300):
        x = goal.copy()
        x[-1] = size
        u = controller(0.0, x, goal)
        assert ((u >= lower) & (u <= upper)).all()
        controller(0.05, x, goal)
        assert np.isfinite(controller(0.1, goal, goal)).all()


@pytest.mark.parametrize("name", NAMES)
def test_controllers_pickle(name, rng):
    controller, goal = fresh(name)
    x = controller.system.state.plus(goal, 0.2 * rng.normal(size=controller.system.state.dim))
    u = controller(0.0, x, goal)
    copy = pickle.loads(pickle.dumps(controller))
    copy.reset()
    assert np.allclose(copy(0.0, x, goal), u, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_repeated_after_a_reset_and_are_the_callers_own(name, rng):
    controller, goal = fresh(name)
    x = controller.system.state.plus(goal, 0.2 * rng.normal(size=controller.system.state.dim))
    # What is compiled rounds differently, from the first call on.
    assert controller.prepare() is controller
    first = controller(0.0, x, goal)
    kept = first.copy()
    first[:] = 99.0
    controller.reset()
    assert controller.info.status == "ok"
    assert np.array_equal(controller(0.0, x, goal), kept)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_states_and_missing_references_are_named(name):
    controller, goal = fresh(name)
    with pytest.raises(ValueError, match=r"x has shape \(3,\), expected \(\d+,\)"):
        controller(0.0, np.zeros(3), goal)
    if name not in ("LQR", "TVLQR"):  # these have the point they are made for
        with pytest.raises(ValueError, match="no reference to follow"):
            controller(0.0, goal)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_may_be_given_once_and_for_all(name):
    (controller, goal), (other, _) = make(name), make(name)
    controller.reference = goal
    assert np.array_equal(controller(0.0, goal), other(0.0, goal, goal))


def test_adapted_controllers_translate_and_pass_on_the_rest():
    inner, goal = make("LQR", dt=0.02)
    calls = []
    adapted = Adapted(
        inner,
        state=lambda x: x[:13],
        reference=lambda reference: reference["goal"],
        answer=lambda t, x, u: calls.append((t, len(x))) or {"u": u},
    )
    x = np.concatenate([goal, np.zeros(4)])
    assert adapted.prepare(0.3, x, {"goal": goal}) is adapted
    answer = adapted(0.3, x, {"goal": goal})
    assert np.allclose(answer["u"], HOVER, atol=1e-6)
    assert calls == [(0.3, 17)]
    assert adapted.dt == 0.02
    assert adapted.info is inner.info
    adapted.reset()
    with pytest.raises(AttributeError):
        adapted.frequency  # noqa: B018  # the access is what raises


def test_a_saturated_answer_is_reported():
    quad = quadrotor()
    controller = LQR(quad, GOAL, {"pose": 10, "twist": 1}, 0.1)
    far = GOAL.copy()
    far[0] -= 30.0
    controller(0.0, far)
    assert controller.info.status == "saturated"
    free = LQR(quad, GOAL, {"pose": 10, "twist": 1}, 0.1, saturate=False)
    assert (free(0.0, far) < 0).any() or (free(0.0, far) > 6).any()
    assert free.info.status == "ok"


def test_what_is_no_system_is_refused():
    tree = panda_tree()
    with pytest.raises(TypeError, match=r"system must be a System, not Multibody; give its .sys"):
        GeometricPD(tree)
    with pytest.raises(TypeError, match="tree must be a Multibody, not System"):
        ComputedTorque(quadrotor())
    with pytest.raises(TypeError, match="tree must be a Multibody, not System"):
        GravityPD(quadrotor(), stiffness=1.0, damping=1.0)


def test_gains_and_parameters_of_another_length_are_refused():
    vessel = surface_vessel()
    with pytest.raises(ValueError, match=r"frequency has shape \(2,\), expected \(3,\)"):
        GeometricPD(vessel, frequency=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"p has shape \(1,\), expected \(0,\)"):
        GeometricPD(vessel, p=[1.0])


@pytest.mark.parametrize("name", NAMES)
def test_references_that_are_no_elements_of_the_group_are_refused(name):
    controller, goal = fresh(name)
    if name == "TVLQR":  # has its own
        return
    doubled = goal.copy()
    doubled[-10:-6] = doubled[:4] = 2.0
    with pytest.raises(ValueError, match="the reference's state .* is no element of"):
        controller(0.0, goal, doubled)


def test_arms_are_held_where_they_are_to_go_before_anything_is_known():
    tree, broken = panda_tree(), np.full(14, np.nan)
    q = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])
    weight = tree.gravity_forces(q)
    for controller in (ComputedTorque(tree), GravityPD(tree, stiffness=50.0, damping=5.0)):
        for reference in (q, np.r_[q, np.zeros(7)], lambda t: q):
            assert np.allclose(controller(0.0, broken, reference), weight, atol=1e-8)
    frame = OperationalSpace(tree, "panda_link8", posture=q)
    assert np.allclose(frame(0.0, broken, tree.placement("panda_link8")(q)), weight, atol=1e-8)
