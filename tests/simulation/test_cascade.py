"""Controllers in a chain, each at its own rate."""

import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.simulation import Cascade, simulate

from ._plants import GRAVITY, INERTIA, MASS, Feedback, cart, drone, rotation

ROUNDING = 1e-10  # closed-loop motion over a thousand steps, the same formulas on both sides
UP = np.array([0.0, 0.0, 1.0])


class Position:
    """Position and velocity errors → acceleration to produce, world axes."""

    def __init__(self, dt=0.02, delay=0.0):
        self.dt, self.delay, self.calls = dt, delay, 0

    def __call__(self, t, x, goal):
        self.calls += 1
        velocity = rotation(x) @ x[7:10]
        return -4.0 * (x[:3] - goal) - 3.2 * velocity


class Attitude:
    """Acceleration to produce → thrust and torques: PD on SO(3) to the tilt it needs."""

    dt = 0.002

    def __init__(self):
        self.calls, self.info = 0, {}

    def __call__(self, t, x, acceleration):
        self.calls += 1
        force = MASS * (acceleration + GRAVITY * UP)
        R = rotation(x)
        z = force / np.linalg.norm(force)
        y = np.cross(z, [1.0, 0.0, 0.0])
        y /= np.linalg.norm(y)
        error = SO3.log(SO3.from_matrix(np.column_stack([np.cross(y, z), y, z]).T @ R))
        self.info = {"angle": np.linalg.norm(error), "status": "ok"}
        torque = -INERTIA * (150.0 * error + 22.0 * x[10:13])
        return np.concatenate([[force @ R @ UP], torque])


def start() -> np.ndarray:
    plant = drone()
    d = plant.state.join_tangent(pose=[0.5, -0.4, 0.3, 0.4, -0.6, 0.5], twist=[0.2] * 6)
    return plant.state.plus(plant.state.identity, d)


@pytest.mark.usually(delay=[0.006])
@pytest.mark.parametrize("delay", [0.0, 0.006])
def test_position_at_50_hz_over_attitude_at_500_hz(delay):
    plant, x0, goal = drone(), start(), np.array([1.0, 0.5, 2.0])
    outer, inner = Position(delay=delay), Attitude()
    run = simulate(plant, Cascade(outer, inner), x0=x0, reference=goal, seconds=3, method="rk4")

    position, attitude = Position(), Attitude()
    step, x, wanted, states = plant.step("rk4"), x0, None, []
    lower, upper = (bound[:4] for bound in plant.input_bounds)
    u = plant.nominal_input
    on_its_way = {}
    for tick in range(1500):  # of 2 ms
        states.append(x)
        if tick % 10 == 0:
            on_its_way[tick + round(delay / 0.002)] = position(0.0, x, goal)
        wanted = on_its_way.get(tick, wanted)
        if wanted is not None:
            u = np.concatenate([np.clip(attitude(0.0, x, wanted), lower, upper), np.zeros(3)])
        x = step(tick * 0.002, x, u, [], 0.002)
    states.append(x)

    # With the delay the inner controller begins when the first reference has arrived.
    assert (outer.calls, inner.calls) == (150, 1500 - round(delay / 0.002))
    np.testing.assert_allclose(run.x, states, rtol=0, atol=ROUNDING)
    assert np.linalg.norm(run.x[-1, :3] - goal) < 0.1
    assert np.linalg.norm(run.x[0, :3] - goal) > 1.5


def test_each_controller_has_its_log():
    run = simulate(drone(), Cascade(Position(), Attitude()), x0=start(), reference=[1, 0, 2],
                   seconds=0.2, max_step=0.002)  # fmt: skip
    assert list(run.controllers) == ["Position", "Attitude"]
    outer, inner = run.controllers.values()
    np.testing.assert_allclose(outer.t, 0.02 * np.arange(10))
    assert outer.command.shape == (10, 3) and inner.command.shape == (100, 4)
    assert set(inner.info) == {"call_time", "angle", "status"} and set(outer.info) == {"call_time"}
    assert run.command is inner.command
    assert list(run.control) == ["t", *inner.info]
    assert any(line.startswith("Position: controller call") for line in run.summary())
    # From the position loop's first answer on, the wanted acceleration is part of the record.
    np.testing.assert_allclose(outer.command[0], Position()(0.0, start(), [1, 0, 2]))


def test_outer_offset_leaves_the_inputs_nominal():
    """The inner controller has nothing to follow before the outer one has spoken."""
    outer = Feedback(np.eye(2), dt=0.2, offset=0.1)
    inner = Feedback([[1.0, 1.0]], dt=0.05)
    run = simulate(cart(), Cascade(outer, inner), x0=[1, 0], seconds=0.3)
    assert inner.calls[0] == 0.1
    np.testing.assert_allclose(run.u[run.t[:-1] < 0.1], 0.0)
    assert run.u[run.t[:-1] >= 0.1, 0].all()


def test_a_late_outer_answer_is_used_by_the_inner_call_at_its_time():
    """Outer at 0 in effect at 0.1: the inner call at 0.1 follows it, that at 0.05 does not run."""
    goals = []

    def inner(t, x, goal):
        goals.append((t, float(goal)))
        return 0.0

    class Outer:
        dt, delay = 0.1, 0.1

        def __call__(self, t, x, goal):
            return 100 * t

    simulate(cart(), Cascade(Outer(), inner), x0=[0, 0], seconds=0.3, dt=0.05)
    assert goals == [(0.1, 0.0), (0.15, 0.0), (0.2, 10.0), (0.25, 10.0)]


def test_three_stages_and_equal_names():
    stages = [Feedback(np.eye(2), dt) for dt in (0.4, 0.2)] + [Feedback([[1.0, 1.0]], 0.1)]
    run = simulate(cart(), Cascade(*stages), x0=[1, 0], seconds=0.8)
    assert list(run.controllers) == ["Feedback", "Feedback 2", "Feedback 3"]
    assert [len(log.t) for log in run.controllers.values()] == [2, 4, 8]


def test_an_answer_that_is_reused_by_its_maker_is_kept_as_it_was():
    """A controller may return the same buffer each time."""

    class Buffer:
        dt, delay = 0.1, 0.2

        def __init__(self):
            self.buffer = np.zeros(2)

        def __call__(self, t, x, goal):
            self.buffer[:] = t
            return self.buffer

    seen = []

    def inner(t, x, goal):
        seen.append(round(goal[0], 6))
        return 0.0

    run = simulate(cart(), Cascade(Buffer(), inner), x0=[0, 0], seconds=0.5, dt=0.1)
    assert seen == [0.0, 0.1, 0.2]
    np.testing.assert_allclose(run.controllers["Buffer"].command[:, 0], 0.1 * np.arange(5))

    class Short(Buffer):
        delay = 0.0

        def __call__(self, t, x, goal):
            return super().__call__(t, x, goal)[:1]

    for saturate in (True, False):
        run = simulate(cart(), Short(), x0=[0, 0], seconds=0.5, saturate=saturate)
        np.testing.assert_allclose(run.command[:, 0], 0.1 * np.arange(5))
        np.testing.assert_allclose(run.input("force"), 0.1 * np.arange(5))


def test_mistakes():
    pd = Feedback([[1.0, 1.0]], 0.1)
    with pytest.raises(ValueError, match="at least two controllers, got 1"):
        Cascade(pd)
    with pytest.raises(TypeError, match="a cascade in a cascade"):
        Cascade(Cascade(pd, pd), pd)
    with pytest.raises(TypeError, match="a controller must be callable, not int"):
        Cascade(pd, 3)
