"""Tasks that a user would set, as `OptimalControlProblem`; what is not said is left at its default.

Each is made by a function without arguments; `TASKS` has them by name. The ones of legged and
humanoid robots stand in `tests.benchmarks._solver_problems`: they need robot files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn
from lgcontrol.models import quadrotor
from lgcontrol.optimal import Bound, OptimalControlProblem, Residual
from lgcontrol.systems import Input, System, Trajectory
from lgcontrol.systems._internal import with_input_rates

GRAVITY = 9.81
Q = {"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]}
END = {"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]}


class UserTask(NamedTuple):
    """A problem, its start, and whether there is a plan at all."""

    problem: OptimalControlProblem
    x0: np.ndarray
    is_feasible: bool = True


def flight(horizon: int, goal: Any = (0.0, 0.0, 0.0), turn: float = 0.0, **more: Any) -> UserTask:
    """A quadrotor flies from rest at the origin, turned about x, to rest at a point."""
    quad = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x")
    reference = more.pop("reference", None)
    if reference is None:
        reference = quad.trim(position=list(goal))
    problem = OptimalControlProblem(
        quad, horizon, 0.05, Q=Q, R=0.1, terminal=END, reference=reference, **more
    )
    return UserTask(problem, turned(turn))


def turned(angle: float) -> np.ndarray:
    """At rest at the origin, turned about x."""
    return np.r_[0, 0, 0, SO3.exp([angle, 0.0, 0.0]), np.zeros(6)]


def soft_twist() -> UserTask:
    """Speeds that cost above a limit."""
    bounds = [
        Bound("twist", [-1, -1, -1, -2, -2, -2], [1, 1, 1, 2, 2, 2], soft=100.0),
    ]
    return flight(40, (2, 1, 1), bounds=bounds)


def cylinder() -> UserTask:
    """Around a column in the way."""

    def off(t, x, u, p):
        return (x[0] - 1.5) ** 2 + (x[1] - 0.05) ** 2

    return flight(50, (3, 0, 0), bounds=[Bound(off, 0.25, name="column")])


def terminal_equality() -> UserTask:
    """At rest at the goal at the end, to the last digit."""
    goal = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x").trim(position=[2, 1, 1]).x

    def error(t, x, u, p):
        return ca.vertcat(SE3.minus(x[:7], ca.DM(goal[:7])), x[7:])

    return flight(40, (2, 1, 1), 2.0, bounds=[Bound(error, 0.0, 0.0, at="terminal", name="error")])


def circle() -> UserTask:
    """A climbing circle of a Trajectory."""
    radius, rate, climb = 2.0, 1.5, 0.3
    quad = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x")
    t = 0.05 * np.arange(81)
    states = []
    for angle, height in zip(rate * t, climb * t, strict=True):
        place = [radius * np.cos(angle), radius * np.sin(angle), height]
        heading = SO3.exp([0.0, 0.0, angle + np.pi / 2])
        states.append(np.r_[place, heading, [radius * rate, 0, climb, 0, 0, rate]])
    hover = np.tile(quad.trim(position=[0, 0, 0]).u, (80, 1))
    path = Trajectory(quad.state, t, np.array(states), hover)
    return flight(80, reference=path)


def far() -> UserTask:
    """Twenty metres at a bounded speed, upside down at first."""
    return flight(400, (20, 5, 3), 3.0, bounds=[Bound("twist.vx", -3.0, 3.0)])


def input_rates() -> UserTask:
    """Thrusts are states, their rates the controls."""
    quad = quadrotor(mass=1.0, inertia=(0.01, 0.01, 0.02), layout="x")
    hover = quad.trim(position=[2, 1, 1])
    slow = with_input_rates(quad, 40.0)
    thrusts = hover.u[:4]
    problem = OptimalControlProblem(
        slow, 40, 0.05, Q=Q, R=0.001, terminal=END, bounds=[Bound("input")],
        reference=np.r_[hover.x, thrusts],
    )  # fmt: skip
    return UserTask(problem, np.r_[turned(3.0), thrusts])


def cart_pole() -> System:
    """Cart of 1 kg, pole of 0.5 m with 0.2 kg at its end; angle from upright."""
    M, m, length = 1.0, 0.2, 0.5

    def field(t, x, u, p):
        cos, sin, rate = x[1], x[2], x[4]
        push = u + m * length * rate**2 * sin
        cart = (push - m * GRAVITY * sin * cos) / (M + m * sin**2)
        return ca.vertcat(x[3], rate, cart, (GRAVITY * sin - cart * cos) / length)

    state = Product(position=Rn(1, ("position",)), angle=SO2, rates=Rn(2))
    return System("cart-pole", state, field, inputs=[Input("force", "N", -15, 15)])


def swing_up(rail: float = 0.6, speed: float | None = None) -> UserTask:
    """A pole swings up on a short rail."""
    bounds = [Bound("position", -rail, rail)]
    if speed is not None:
        bounds.append(Bound(lambda t, x, u, p: x[3], -speed, speed, name="speed"))
    problem = OptimalControlProblem(
        cart_pole(), 60, 0.05, Q={"position": 1, "angle": 10, "rates": 0.1}, R=0.001,
        bounds=bounds, reference=[0, 1, 0, 0, 0],
    )  # fmt: skip
    return UserTask(problem, np.array([0.0, -1.0, 0.0, 0.0, 0.0]))


def double_pendulum() -> System:
    """Cart of 1 kg, two poles of 0.5 m with 0.3 kg at their ends; angles from upright."""
    masses, length = [1.0, 0.3, 0.3], 0.5
    q, v, u = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("u")
    first = ca.vertcat(q[0] + length * ca.sin(q[1]), length * ca.cos(q[1]))
    second = first + length * ca.vertcat(ca.sin(q[2]), ca.cos(q[2]))
    M, h = ca.SX(3, 3), ca.SX(3, 1)
    for mass, place in zip(masses, (ca.vertcat(q[0], 0), first, second), strict=True):
        J = ca.jacobian(place, q)
        M += mass * J.T @ J
        h += mass * J.T @ (ca.jtimes(J @ v, q, v) + ca.vertcat(0, GRAVITY))
    rate = ca.Function("rate", [ca.vertcat(q, v), u], [ca.vertcat(v, ca.solve(
        M, ca.vertcat(u, 0, 0) - h
    ))])  # fmt: skip
    state = Product(position=Rn(1, ("position",)), angles=Rn(2), rates=Rn(3))
    return System(
        "double-pendulum", state, lambda t, x, u, p: rate(x, u),
        inputs=[Input("force", "N", -30, 30)],
    )  # fmt: skip


def balance(first: float, second: float) -> UserTask:
    """Two poles on a cart, on a rail."""
    problem = OptimalControlProblem(
        double_pendulum(), 150, 0.02, Q={"position": 1, "angles": 10, "rates": 0.1}, R=0.001,
        terminal="riccati", bounds=[Bound("position", -0.8, 0.8, name="rail")],
        reference=np.zeros(6),
    )  # fmt: skip
    return UserTask(problem, np.array([0, first, second, 0, 0, 0]))


def minimum_time() -> UserTask:
    """A car's time as a control that all rates are multiplied by."""

    def field(t, x, u, p):
        v = x[4]
        return u[0] * ca.vertcat(v, 0, v * u[1], u[2])

    inputs = [Input("T", "s", 0.2, 10.0, nominal=4.0), Input("curvature", "1/m", -1, 1)]
    inputs.append(Input("acceleration", "m/s²", -2, 2))
    car = System("car", Product(pose=SE2, speed=Rn(1)), field, inputs=inputs)
    goal = np.r_[4, 2, 1, 0, 0]

    def missed(t, x, u, p):
        return ca.vertcat(SE2.minus(x[:4], ca.DM(goal[:4])), x[4])

    problem = OptimalControlProblem(
        car, 40, 1 / 40, Q=0.0, R=0.01, terminal=0.0, reference=goal,
        residuals=[Residual(lambda t, x, u, p: ca.sqrt(u[0]), 2.0, name="time")],
        bounds=[Bound(missed, 0.0, 0.0, at="terminal", name="missed")],
    )  # fmt: skip
    return UserTask(problem, np.array([0, 0, 1, 0, 0], dtype=float))


def parking() -> UserTask:
    """Between two cars, backwards."""

    def field(t, x, u, p):
        return ca.vertcat(x[4], 0, x[4] * ca.tan(u[0]) / 2.5, u[1])

    inputs = [Input("steering", "rad", -0.6, 0.6), Input("acceleration", "m/s²", -2, 2)]
    car = System("car", Product(pose=SE2, speed=Rn(1)), field, inputs=inputs)

    def away(t, x, u, p):
        return ca.vertcat(*((x[0] - at) ** 2 + (x[1] + 2.5) ** 2 for at in (-5.2, 5.2)))

    problem = OptimalControlProblem(
        car, 80, 0.1, Q={"pose": 1, "speed": 0.1}, R=0.1, terminal={"pose": 200, "speed": 100},
        bounds=[Bound("speed", -2, 2), Bound(away, 1.2**2, name="cars")],
        reference=[0, -2.5, 1, 0, 0],
    )  # fmt: skip
    return UserTask(problem, np.array([4, 0, 1, 0, 0], dtype=float))


TASKS: dict[str, Callable[[], UserTask]] = {
    "cart-pole": swing_up,
    "cart-pole, tight": lambda: swing_up(0.25, 2.0),
    "soft twist": soft_twist,
    "cylinder": cylinder,
    "terminal equality": terminal_equality,
    "circle": circle,
    "20 m": far,
    "double pendulum, far": lambda: balance(0.25, -0.2),
    "double pendulum, near": lambda: balance(0.12, 0.08),
    "input rates": input_rates,
    "minimum time": minimum_time,
    "parking": parking,
}
