"""Tasks of vehicles on roads, in yards and at quays as a new user states them."""

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import (
    Bound,
    Capsule,
    Cost,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Sphere,
    keep_out,
)
from lgcontrol.systems import Input, System
from tests.optimal.literature._task import Statement, ends, line

from ._unseen_task import unseen


def at(x: Any, ahead: float, left: float = 0.0) -> Any:
    """A point of a body, from its pose."""
    return ca.vertcat(x[0] + ahead * x[2] - left * x[3], x[1] + ahead * x[3] + left * x[2])


def pose_end(goal: Any) -> Bound:
    """The pose at the end."""
    return Bound(
        lambda t, x, u, p: SE2.minus(x[:4], ca.DM(goal)), 0.0, 0.0, at="terminal", name="pose"
    )


@unseen("vehicles")
def trailer_dock() -> Statement:
    """A truck with a trailer of 8 m drives past its dock and backs into it, least time."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        hitch, v, steer = x[4], x[5], x[6]
        turn = v * ca.tan(steer) / 3.8
        return ca.vertcat(v, 0, turn, -v * ca.sin(hitch) / 8.0 - turn, u[1], u[0])

    def back(x: Any, ahead: float) -> Any:  # a point of the trailer, from its axle
        cos = x[2] * ca.cos(x[4]) - x[3] * ca.sin(x[4])
        sin = x[3] * ca.cos(x[4]) + x[2] * ca.sin(x[4])
        return x[:2] - (8.0 - ahead) * ca.vertcat(cos, sin)

    inputs = [Input("steering rate", "rad/s", -0.6, 0.6), Input("push", "m/s²", -1.0, 1.0)]
    state = Product(pose=SE2, hitch=Rn(1), speed=Rn(1), steering=Rn(1))
    truck = System("truck", state, field, inputs=inputs)

    def along(least: float, most: float) -> list[Bound]:
        posts = [
            keep_out(lambda t, x, u, p, a=a: back(x, a), Sphere([side, 5.0], 1.5), radius=1.3)
            for a in (0.0, 2.5)
            for side in (-3.6, 3.6)
        ]
        return [Bound("hitch", -1.2, 1.2), Bound("steering", -0.6, 0.6),
                Bound("speed", least, most), Bound("pose.y", upper=30.0), *posts]  # fmt: skip

    goal = [0.0, 12.0, 0.0, 1.0]
    stop = [pose_end(goal), *ends(hitch=0.0, speed=0.0, steering=0.0)]
    problem = PhasedProblem(
        [Phase(truck, 30, (2.0, 60.0), bounds=along(0.0, 3.0), name="forward"),
         Phase(truck, 40, (2.0, 60.0), bounds=[*along(-2.0, 0.0), *stop], name="back")],
        time_weight=1.0,
    )  # fmt: skip
    return Statement(problem, [-15.0, 18.0, 1.0, 0.0, 0.0, 0.0, 0.0])


@unseen("vehicles")
def race_line() -> Statement:
    """A car through a hairpin and a chicane of 600 m in the least time, along the centre line."""

    def bend(s: Any, start: float, end: float) -> Any:
        return 0.5 * (ca.tanh((s - start) / 5) - ca.tanh((s - end) / 5))

    def curvature(s: Any) -> Any:
        return (
            bend(s, 150, 150 + 18 * np.pi) / 18.0
            + bend(s, 380, 420) / 50.0
            - bend(s, 430, 470) / 40.0
        )

    def pace(s: Any, x: Any) -> Any:  # seconds per metre
        return (1 - x[0] * curvature(s)) / (x[2] * ca.cos(x[1]))

    def field(s: Any, x: Any, u: Any, p: Any) -> Any:
        slow = pace(s, x)
        return ca.vertcat(
            slow * x[2] * ca.sin(x[1]), slow * u[1] / x[2] - curvature(s), slow * u[0]
        )

    inputs = [Input("drive", "m/s²", -12.0, 6.0), Input("turn", "m/s²", -25.0, 25.0)]
    car = System("car", line("offset heading speed"), field, inputs=inputs)
    grip = Bound(
        lambda s, x, u, p: ca.sumsqr(u) - (12.0 + 0.002 * x[2] ** 2) ** 2, upper=0.0, name="grip"
    )
    problem = OptimalControlProblem(
        car, 120, 5.0, Q=0, terminal=0.0, R=1e-6,
        costs=[Cost(lambda s, x, u, p: pace(s, x), name="time")],
        bounds=[Bound("offset", -5.0, 5.0), Bound("heading", -1.0, 1.0),
                Bound("speed", 5.0, 80.0), grip],
    )  # fmt: skip
    return Statement(problem, [0.0, 0.0, 40.0])


@unseen("vehicles")
def ferry() -> Statement:
    """A ferry of 5,000 t slows down and berths behind a moored ship, against wind; N, kg, s."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        v = x[4:]
        gust = ca.vertcat(x[3] * -6e4, x[2] * -6e4)  # 60 kN towards the quay
        drag = ca.vertcat(
            3e4 * v[0] + 2e4 * v[0] * ca.sqrt(v[0] ** 2 + 1e-2),
            2e5 * v[1] + 3e5 * v[1] * ca.sqrt(v[1] ** 2 + 1e-2),
            2e8 * v[2] + 1e10 * v[2] * ca.sqrt(v[2] ** 2 + 1e-6),
        )
        mx, my, inertia = 5.5e6, 8e6, 5e9
        force = ca.vertcat(u[0] + u[2], u[1] + u[3], 35.0 * (u[3] - u[1]))
        round_ = ca.vertcat(my * v[1] * v[2], -mx * v[0] * v[2], (mx - my) * v[0] * v[1])
        total = force + ca.vertcat(gust, 0) - drag + round_
        return ca.vertcat(v, total / ca.vertcat(mx, my, inertia))

    inputs = [
        Input(f"{who}.{axis}", "N", -3e5, 3e5) for who in ("aft", "bow") for axis in ("x", "y")
    ]
    ship = System("ferry", Product(pose=SE2, velocity=Rn(3, ("surge", "sway", "yaw"))), field,
                  inputs=inputs)  # fmt: skip

    def off_quay(t: Any, x: Any, u: Any, p: Any) -> Any:
        corners = [at(x, a, b)[1] for a in (-45.0, 45.0) for b in (-8.0, 8.0)]
        return ca.vertcat(*corners)

    def thrust(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(ca.sumsqr(u[:2]), ca.sumsqr(u[2:]))

    moored = Capsule([75.0, 9.0], [150.0, 9.0], 9.0)
    bounds = [
        Bound(off_quay, lower=0.5, name="quay"),
        Bound(thrust, upper=3e5**2, name="thrust"),
        keep_out(lambda t, x, u, p: ca.horzcat(at(x, -36.0), at(x, 36.0)), moored, radius=9.0),
        pose_end([0.0, 9.0, 1.0, 0.0]),
        Bound("velocity", 0.0, 0.0, at="terminal"),
    ]
    problem = PhasedProblem(Phase(ship, 60, (60.0, 900.0), bounds=bounds), time_weight=1.0)
    return Statement(problem, [-350.0, 120.0, np.cos(0.3), -np.sin(0.3), 3.0, 0.0, 0.0])


@unseen("vehicles")
def overtaking() -> Statement:
    """Past a lorry on a road of two lanes while another car comes along, 20 s."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        v = x[3]
        return ca.vertcat(v * ca.cos(x[2]), v * ca.sin(x[2]), v * ca.tan(u[0]) / 2.7, u[1])

    inputs = [Input("steer", "rad", -0.1, 0.1), Input("push", "m/s²", -6.0, 3.0)]
    car = System("car", line("x y heading speed"), field, inputs=inputs)

    def away(start: float, speed: float, lane: float) -> Bound:
        def ellipse(t: Any, x: Any, u: Any, p: Any) -> Any:
            return ((x[0] - start - speed * t) / 14.0) ** 2 + ((x[1] - lane) / 2.4) ** 2

        return Bound(ellipse, lower=1.0, name=f"car from {start:g} m")

    goal = Bound(lambda t, x, u, p: x[0] - 40.0 - 19.0 * t, 20.0, at="terminal", name="ahead")
    problem = OptimalControlProblem(
        car, 100, 0.2, Q={"y": 0.1, "heading": 1.0, "speed": 0.01}, R={"steer": 100, "push": 0.1},
        terminal=0.0, reference=[0.0, 0.0, 0.0, 25.0],
        bounds=[
            Bound("y", -0.9, 4.4), Bound("speed", 0.0, 34.0),
            away(40.0, 19.0, 0.0), away(330.0, -24.0, 3.5),
            goal, Bound("y", -0.3, 0.3, at="terminal"), *ends(heading=0.0),
        ],
    )  # fmt: skip
    return Statement(problem, [0.0, 0.0, 0.0, 22.0])


def platoon(opening: float) -> Statement:
    """Five lorries of 36 t open a gap for a car within 30 s and close it in 50 s more."""
    mass, count = 36e3, 5

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        place, v = x[:count], x[count:]
        shelter = [ca.DM(1.0)]
        for k in range(1, count):
            shelter.append(1 - 0.4 * ca.exp(-(place[k - 1] - place[k] - 17.0) / 20.0))
        drag = 0.5 * 1.2 * 6.0 * ca.vertcat(*shelter) * v**2 + 0.006 * mass * 9.81
        return ca.vertcat(v, (u - drag) / mass)

    names = (*(f"x{k}" for k in range(count)), *(f"v{k}" for k in range(count)))
    inputs = [Input(f"force{k}", "N", -1.5e5, 2.5e4, nominal=3500.0) for k in range(count)]
    lorries = System("platoon", Rn(2 * count, names), field, inputs=inputs)

    def headway(t: Any, x: Any, u: Any, p: Any) -> Any:
        return x[: count - 1] - x[1:count] - 16.5 - 6.0 - 0.2 * x[count + 1 :]

    def burnt(t: Any, x: Any, u: Any, p: Any) -> Any:
        drive = 0.5 * (u + ca.sqrt(u**2 + 1e6))
        return ca.dot(drive, x[count:])

    gap = Bound(
        lambda t, x, u, p: x[1] - x[2], 16.5 + opening, at=range(30, 31), name="gap for the car"
    )
    speeds = Bound(lambda t, x, u, p: x[count:], 18.0, 25.0, name="speeds")
    closed = Bound(
        lambda t, x, u, p: x[: count - 1] - x[1:count], 16.5, 16.5 + 14.0, at="terminal",
        name="closed",
    )  # fmt: skip
    far = Bound("x0", lower=80 * 22.0, at="terminal")
    problem = OptimalControlProblem(
        lorries, 80, 1.0, Q=0, terminal=0.0, R=1e-6, costs=[Cost(burnt, name="energy, J")],
        bounds=[Bound(headway, 0.0, name="headway"), gap, speeds, closed, far],
    )  # fmt: skip
    return Statement(problem, [*(-28.0 * np.arange(count)), *[22.0] * count])


@unseen("vehicles")
def platoon_opens() -> Statement:
    """By 45 m."""
    return platoon(45.0)


@unseen("vehicles", impossible="speeds from 18 to 25 m/s open a gap by at most 210 m in 30 s")
def platoon_opens_too_far() -> Statement:
    """To 300 m."""
    return platoon(300.0)


def forklift(aisle: float) -> Statement:
    """Turns by 90 degrees in an aisle and puts its forks into a pallet, least time."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(x[4], 0, -x[4] * ca.tan(x[5]) / 1.4, u[0], u[1])

    inputs = [Input("push", "m/s²", -1.0, 1.0), Input("steering rate", "rad/s", -1.5, 1.5)]
    state = Product(pose=SE2, speed=Rn(1), steering=Rn(1))
    truck = System("forklift", state, field, inputs=inputs)
    half = 0.5 * aisle

    def corners(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(*(at(x, a, b)[1] for a in (-1.6, 1.5) for b in (-0.55, 0.55)))

    limits = [Bound("speed", -1.5, 1.5), Bound("steering", -1.3, 1.3)]
    walls = Bound(corners, -half, half, name="walls")
    before = [6.0, half - 1.5, 0.0, 1.0]
    inside = [6.0, half - 0.45, 0.0, 1.0]
    rest = ends(speed=0.0)
    problem = PhasedProblem(
        [Phase(truck, 60, (2.0, 40.0), bounds=[*limits, walls, pose_end(before), *ends(steering=0)],
               name="turn"),
         Phase(truck, 10, (0.5, 10.0), bounds=[*limits, pose_end(inside), *rest], name="insert")],
        time_weight=1.0,
    )  # fmt: skip
    return Statement(problem, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@unseen("vehicles")
def forklift_turns() -> Statement:
    """In an aisle of 3.6 m."""
    return forklift(3.6)


@unseen(
    "vehicles",
    impossible="at 45 degrees, which it has to pass, it is 2.97 m wide, and the aisle is 2.6 m",
)
def forklift_stuck() -> Statement:
    """In an aisle of 2.6 m."""
    return forklift(2.6)
