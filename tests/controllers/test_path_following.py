"""Path following: as fast as the path allows, by its closed form and by IPOPT."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import PathFollowing
from lgcontrol.groups import SE2, Product, Rn, Translation
from lgcontrol.optimal import Bound, OptimalControlProblem, PathTask
from lgcontrol.simulation import simulate
from lgcontrol.systems import Input, System, Trajectory, Waypoints

PLANE = Translation("xy")
RADIUS, GRIP = 2.0, 1.0
EASY = {"fx": 1e-3, "fy": 1e-3, "progress.rate": 1e-3}


@pytest.fixture(scope="module")
def mass():
    return System(
        "mass", Product(place=PLANE, speed=Rn(2)), lambda t, x, u, p: ca.vertcat(x[2:], u),
        inputs=[Input(name, "N", -3, 3) for name in ("fx", "fy")],
    )  # fmt: skip


@pytest.fixture(scope="module")
def circle():
    turn = np.linspace(0, 2 * np.pi, 13)
    points = RADIUS * np.c_[np.cos(turn), np.sin(turn)]
    ends = [[0.0, 1.0], [-1.0 / RADIUS, 0.0]]  # velocity 1 and what turns it, at both ends
    return Waypoints(PLANE, RADIUS * turn, points, 5, stops=False, start=ends, end=ends)


def grip():
    return Bound(lambda t, x, u, p: ca.sumsqr(u[:2]), upper=GRIP**2, name="grip")


def test_around_a_circle_as_fast_as_the_grip_allows(mass, circle):
    """v²/R = a: √(a R), from a start beside the path, by the plant's state alone."""
    task = PathTask(mass, circle, weight=1000.0, speed=3.0)
    law = PathFollowing(task, 25, 0.1, R=EASY, bounds=[grip()])
    run = simulate(mass, law, x0=[RADIUS + 0.1, 0, 0, 0], seconds=6.0)
    late = run.t > 4.0
    speed = np.hypot(run.x[late, 2], run.x[late, 3])
    assert speed == pytest.approx(np.sqrt(GRIP * RADIUS), rel=0.01)
    assert abs(np.hypot(run.x[late, 0], run.x[late, 1]) - RADIUS).max() < 2e-3
    assert np.hypot(*run.u.T).max() < GRIP + 1e-4
    place, rate = law.progress
    assert rate == pytest.approx(speed[-1], rel=0.01)
    assert place == pytest.approx(task.nearest(run.x[-1]), abs=0.2)
    law.reset()
    assert law.progress == (0.0, 0.0)


def test_the_plan_is_that_of_ipopt(mass, circle):
    task = PathTask(mass, circle, weight=100.0, speed=3.0, reward=2.0)
    problem = OptimalControlProblem(
        task.system, 15, 0.15, Q=0.0, R=EASY, terminal=0.0, reference=task.reference,
        **(task.terms | {"bounds": [*task.terms["bounds"], grip()]}),
    )  # fmt: skip
    found = problem.solve(task.start([RADIUS, 0, 0, 0]))
    other = problem.solve(task.start([RADIUS, 0, 0, 0]), solver="ipopt")
    assert found.is_success and other.is_success
    assert found.cost == pytest.approx(other.cost, rel=1e-5)


def test_at_the_end_of_the_path_it_stops(mass):
    line = Waypoints(PLANE, [0.0, 1.0], [[0.0, 0.0], [1.0, 1.0]], order=1)
    task = PathTask(mass, line, weight=50.0, speed=0.8, acceleration=2.0)
    problem = OptimalControlProblem(
        task.system, 30, 0.1, Q={"speed": 0.1}, R=EASY, terminal=0.0, reference=task.reference,
        **task.terms,
    )  # fmt: skip
    found = problem.solve(task.start([0.0, 0.0, 0.0, 0.0]))
    assert found.is_success
    assert found.x[-1, 4] == pytest.approx(1.0, abs=1e-3)
    assert (np.diff(found.x[:, 4]) > -1e-6).all() and found.x[:, 5].max() < 0.8 + 1e-6
    assert found.x[-1, :2] == pytest.approx([1.0, 1.0], abs=0.05)


def test_a_loop_to_the_end_of_a_path_has_answers():
    """Along a figure of eight: the end that comes into view leaves no call without a plan."""
    car = System(
        "car",
        Product(pose=SE2, speed=Rn(1), steer=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(x[5]) / 2.5, u[0], u[1]),
        inputs=[Input("push", "m/s²", -3, 2), Input("steer_rate", "rad/s", -0.8, 0.8)],
    )
    s = np.linspace(0, 2 * np.pi, 33)
    eight = np.c_[20 * np.sin(s), 10 * np.sin(2 * s)]
    path = Waypoints(PLANE, s, eight, order=5, stops=False)
    task = PathTask(
        car, path, weight=50.0, element=lambda t, x, u, p: x[:2], speed=1.0, reward=20.0
    )
    sideways = Bound(
        lambda t, x, u, p: x[4] ** 2 * ca.tan(x[5]) / 2.5, -4.0, 4.0, name="sideways", soft=100.0
    )
    law = PathFollowing(
        task, 25, 0.1, Q={"speed": 1e-6}, R={"push": 0.01, "steer_rate": 0.1},
        bounds=[sideways, Bound("steer", -0.6, 0.6), Bound("speed", 0, 12)],
    )  # fmt: skip
    heading = np.cos(np.pi / 4), np.sin(np.pi / 4)
    run = simulate(car, law, x0=[0, 0.5, *heading, 0, 0], seconds=32.0)
    (record,) = run.controllers.values()
    assert {str(status) for status in record.info["status"]} == {"ok"}
    assert np.hypot(*(run.x[-1, :2] - eight[-1])) < 0.01
    assert law.progress[0] < s[-1]


def test_places_and_elements(mass, circle):
    task = PathTask(mass, circle, weight=1.0)
    for angle in (0.3, 2.0, 5.5):
        x = [1.3 * RADIUS * np.cos(angle), 1.3 * RADIUS * np.sin(angle), 0, 0]
        assert task.nearest(x) == pytest.approx(RADIUS * angle, abs=2e-3)
    assert task.nearest([RADIUS, 0, 0, 0]) == 0.0  # where the loop begins, and not where it ends
    assert task.start([RADIUS, 0, 0, 0], 1.0, 0.5)[-2:] == pytest.approx([1.0, 0.5])
    car = System("car", SE2, lambda t, x, u, p: ca.vertcat(u[0], 0, u[1]), inputs=["speed", "turn"])
    with pytest.raises(ValueError, match=r"0 blocks of car are \(state on SE2.*give element="):
        PathTask(car, circle, weight=1.0)
    tip = PathTask(
        car, circle, weight=1.0, element=lambda t, x, u, p: x[:2] + 0.5 * x[2:4], terminal=2.0
    )
    assert tip.nearest([RADIUS - 0.5, 0.0, 1.0, 0.0]) == pytest.approx(0.0, abs=1e-6)
    points = Trajectory(PLANE, [0.0, 1.0], [[0.0, 0.0], [2.0, 0.0]])
    assert PathTask(mass, points, weight=1.0).nearest([0.5, 0.1, 0, 0]) == pytest.approx(0.25)


def test_what_is_the_tasks_is_refused(mass, circle):
    task = PathTask(mass, circle, weight=1.0)
    with pytest.raises(ValueError, match="reference, residuals and costs are the task's"):
        PathFollowing(task, 5, 0.1, reference=task.reference)
    law = PathFollowing(task, 5, 0.1, R=EASY)
    with pytest.raises(ValueError, match="there is no other reference"):
        law(0.0, [RADIUS, 0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="speed must be positive"):
        PathTask(mass, circle, weight=1.0, speed=0.0)
    with pytest.raises(TypeError, match="path must be a SmoothReference"):
        PathTask(mass, [0.0, 1.0], weight=1.0)
