"""Measurements, clocks and models no loop should meet: every answer is finite and in bounds."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC, GravityPD, PathFollowing, RealTime
from lgcontrol.groups import Product, Rn, Translation
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.optimal import Bound, PathTask
from lgcontrol.systems import Input, System, Waypoints

from ..benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS
from .test_contract import NAMES, make

pytestmark = pytest.mark.interpreted

# What is wrong, and whether a controller may answer all the same.
TIMES = {"nan": np.nan, "infinite": np.inf, "far": 1e15, "before": -1e300}


def bounds_of(controller):
    index = controller.system.input_index("control")
    return [bound[index] for bound in controller.system.input_bounds]


def with_quaternion(goal, scale):
    x = goal.copy()
    where = slice(3, 7) if len(x) == 13 else slice(0, 4)
    x[where] *= scale
    return x


@pytest.mark.parametrize("name", NAMES)
def test_wrong_clocks_and_coordinates_are_held_and_forgotten(name):
    controller, goal = make(name)
    lower, upper = bounds_of(controller)
    usual = controller(0.0, goal, goal)
    cases = [(t, goal, "is no time of a clock") for t in TIMES.values()]
    cases += [(0.05, with_quaternion(goal, s), "is no element of") for s in (1e200, 1e-200, 1.1)]
    for t, x, words in cases:
        u = controller(t, x, goal)
        assert np.array_equal(u, usual), (t, x)
        assert ((u >= lower) & (u <= upper)).all()
        assert controller.info.status == "held"
        assert words in controller.info.message
    # Nothing of it is left: the next measurement gets an answer of its own.
    near = controller.system.state.plus(goal, 0.01 * np.ones(controller.system.state.dim))
    u = controller(0.05, near, goal)
    assert controller.info.status in ("ok", "saturated")
    assert not np.array_equal(u, usual)
    assert np.array_equal(controller(0.1, with_quaternion(near, 1 + 1e-8), goal) > lower, u > lower)
    controller.reset()
    first = controller(np.nan, goal, goal)
    assert ((first >= lower) & (first <= upper)).all()


def test_a_moving_reference_is_not_asked_about_times_that_are_none():
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = Multibody().add_body(
        "rod", rod, "revolute", axis="y", properties=JointProperties(effort=5.0)
    )
    law = GravityPD(tree, stiffness=20.0, damping=5.0)
    asked = []

    def reference(t):
        asked.append(t)
        return [0.1 * np.sin(t)]

    for t in (*TIMES.values(), 0.001):
        assert np.abs(law(t, [0.1, 0.0], reference)).max() <= 5.0
    assert np.isfinite(asked).all() and np.abs(asked).max() < 1.0


def cart(**options):
    return System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -1.0, 1.0)], **options,
    )  # fmt: skip


# What a clock does besides going on, from 0.3 s: corrected, set back by hours, epoch seconds once,
# a log that starts again, a pause.
CLOCKS = {
    "back a little": [0.299, 0.399],
    "back for good": [-4e4, -4e4 + 0.1],
    "epoch seconds once": [1.7e9, 0.4],
    "again": [0.0, 0.1],
    "forth": [3600.0, 3600.1],
}
LOOPS = {
    "plain": {},
    "delay": {"delay": 0.25},
    "disturbance": {"disturbance": "gust"},
    "split": {"real_time": RealTime(split=True)},
    "in NumPy": {"solver": "sqp"},
}


def pushed():
    return System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u[0] + u[1]),
        inputs=[Input("push", "N", -1.0, 1.0), Input("gust", "N", role="disturbance")],
    )  # fmt: skip


@cache
def looping(loop):
    options = {"Q": 1.0, "R": 1.0, "reference": [0.0, 0.0], **LOOPS[loop]}
    return MPC(pushed(), horizon=10, dt=0.1, **options)


@pytest.mark.usually(loop=("plain", "delay", "bias"))
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("loop", LOOPS)
def test_an_mpc_takes_a_clock_as_it_comes(loop, clock):
    """The plan goes on, what belonged to the other clock is forgotten: three calls later nothing
    tells a loop whose clock jumped from one whose clock did not."""
    mpc, step = looping(loop), pushed().step()
    both = []
    usual = 0.1 * np.arange(10)
    jumped = [*usual[:4], *CLOCKS[clock]]
    jumped += [jumped[-1] + 0.1 * k for k in range(1, 5)]
    for times in (usual, jumped):
        mpc.reset()
        x, answers = np.array([0.3, 0.0]), []
        for t in times:
            u = mpc(t, x)
            assert np.abs(u).max() <= 1.0 and mpc.info.status == "ok", (t, mpc.info)
            answers.append(u)
            x = step(0.0, x, [u[0], 0.0], [], 0.1)
        assert len(mpc._loop.sent) <= 4 and abs(mpc.disturbance.get("gust", 0.0)) < 0.05
        both.append(answers[-3:])
    np.testing.assert_allclose(*both, atol=0.03)


def test_the_work_of_a_call_is_bounded():
    """A state that jumps in and out of a hard bound, by metres and by kilometres."""
    mpc = MPC(pushed(), 8, 0.1, reference=[0.0, 0.0], bounds=[Bound("x0", -0.5, 0.5)])
    rng, taken, planned = np.random.default_rng(0), [], 0
    for k in range(40):
        x = [0.3 if k // 5 % 2 else rng.choice([0.9, -3.0, 1e3]), rng.choice([0.1, 1, 10])]
        mpc(0.1 * k, x)
        if mpc.info.restart in ("first", "failed"):
            planned += 1
        else:
            taken.append(mpc.info.iterations)
    assert 5 <= max(taken) <= 2 * (mpc.real_time.iterations + 4) and planned < 10


def test_a_preview_of_another_clock_is_none():
    mpc = looping("plain")
    mpc.reset()
    mpc(0.0, [0.3, 0.0])
    for t in (1.7e9, -1e9):
        mpc.preview(t)
        with pytest.raises(RuntimeError, match="no preview waits"):
            mpc.feedback([0.3, 0.0])


def test_a_path_is_taken_up_at_the_nearest_place_after_a_jump_of_the_clock():
    plane = Translation("xy")
    mass = System("mass", Product(place=plane, speed=Rn(2)),
                  lambda t, x, u, p: ca.vertcat(x[2:], u),
                  inputs=[Input("fx", "N", -1, 1), Input("fy", "N", -1, 1)])  # fmt: skip
    line = Waypoints(plane, [0, 2], [[0, 0], [2, 0]], order=3)
    law = PathFollowing(PathTask(mass, line, weight=100.0, speed=0.5), 10, 0.1, R=0.01)
    for t, place in ((0.0, 0.0), (0.1, 0.0), (1.7e9, 0.5), (0.2, 1.0), (-1e6, 1.5)):
        u = law(t, [place, 0.0, 0.0, 0.0])
        assert np.abs(u).max() <= 1.0
        assert law.progress[0] == pytest.approx(law.task.start([place, 0, 0, 0])[-2], abs=0.01)


@pytest.mark.usually(soft=(None,))
@pytest.mark.parametrize("soft", [None, 10.0])
def test_a_bound_that_is_no_number_is_said_not_dropped(soft):
    """log(x) for x < 0: the answer is finite, and nobody vouches for it."""

    def clearance(t, x, u, p):
        return ca.log(x[0])

    bound = Bound(clearance, lower=-3.0, soft=soft, name="clearance")
    mpc = MPC(cart(), horizon=8, dt=0.1, bounds=[bound], reference=[1.0, 0.0])
    for k, place in enumerate((-1.0, -1.0)):
        u = mpc(0.1 * k, [place, 0.0])
        assert np.abs(u).max() <= 1.0
        assert (mpc.info.status, mpc.info.solve) == ("unsolved", "failed")
        assert "the bounded quantity clearance is not a number" in mpc.info.message
    mpc(0.2, [2.0, 0.0])
    assert mpc.info.status == "ok"
