"""Closed loops of MPC on plants that are not as modelled, and what each call that failed was worth.

    python -m tests.benchmarks.closed_loop_plants [NAME ...]

Plants differ from their models in parameters, delays and noise, lose actuators, and meet obstacles
that appear; bounds are hard. Every call that ends `infeasible` or `unsolved` is solved plainly,
from the same state and a new initial guess. Stored of each plant: calls of each status, those whose
plain solve finds a plan, the share of `unsolved`, whether all inputs were finite and within limits,
and the most iterations of a call.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, SO2, SO3, Product, Rn
from lgcontrol.models import (
    panda,
    quadrotor,
    rover,
    satellite,
    scara,
    surface_vessel,
    underwater_vehicle,
)
from lgcontrol.optimal import (
    Bound,
    Cone,
    Cost,
    HalfSpace,
    InteriorPointSolver,
    Rates,
    Sphere,
    keep_out,
)
from lgcontrol.systems import Input, Parameter, System

RESULTS = Path(__file__).parent / "results" / "closed_loop_plants.json"
FAR = 1e3  # m, where an obstacle is before it appears
G = 9.81


@dataclass
class Loop:
    """A controller, and the plant that it meets.

    Attributes
    ----------
    mpc : MPC
    x0 : array_like
    calls : int
    reference : array_like or callable
        A state, or one of each time.
    plant : System, optional
        That of the controller if left out.
    p : mapping
        Parameters of the plant.
    noise : float or array_like
        Standard deviation of the measured state, in tangent coordinates.
    pushes : mapping
        Standard deviations of disturbance inputs, drawn at each call.
    steady : mapping
        Disturbance inputs that stay.
    dead : mapping
        Controls that fail: their number, and the time from which they are zero [s].
    told : callable
        Parameters of the controller at each time.
    late : int
        Calls by which the plant is late, unknown to the controller.
    """

    mpc: MPC
    x0: Any
    calls: int
    reference: Any
    plant: System | None = None
    p: Mapping[str, float] = field(default_factory=dict)
    noise: Any = 0.0
    pushes: Mapping[str, float] = field(default_factory=dict)
    steady: Mapping[str, float] = field(default_factory=dict)
    dead: Mapping[int, float] = field(default_factory=dict)
    told: Callable[[float], Mapping[str, float]] | None = None
    late: int = 0


def field_of(name: str, space: Any, f: Any, inputs: Any, parameters: Any = (), **more: Any) -> Any:
    """A system of a function (x, u, p)."""
    return System(
        name,
        space,
        lambda t, x, u, p: f(x, u, p),
        inputs=inputs,
        parameters=[Parameter(*one) for one in parameters],
        **more,
    )


def two_link() -> System:
    """Arm of two links in a vertical plane, with a load at its end that is a parameter."""

    def f(x: Any, u: Any, p: Any) -> Any:
        q1, q2, w1, w2 = ca.vertsplit(x)
        m1, m2, l1, l2 = 1.0, 1.0 + p[0], 0.5, 0.5
        c1, c2 = l1 / 2, (l2 / 2 + p[0] * l2) / m2
        i1, i2 = m1 * l1**2 / 12, l2**2 / 12 + p[0] * (l2 - c2) ** 2 + (c2 - l2 / 2) ** 2
        cross = m2 * l1 * c2
        m11 = i1 + i2 + m1 * c1**2 + m2 * (l1**2 + c2**2) + 2 * cross * ca.cos(q2)
        m12, m22 = i2 + m2 * c2**2 + cross * ca.cos(q2), i2 + m2 * c2**2
        s = cross * ca.sin(q2)
        fall = m2 * c2 * G * ca.cos(q1 + q2)
        r1 = u[0] + s * (2 * w1 * w2 + w2**2) - (m1 * c1 + m2 * l1) * G * ca.cos(q1) - fall
        r2 = u[1] - s * w1**2 - fall
        d = m11 * m22 - m12**2
        return ca.vertcat(w1, w2, (m22 * r1 - m12 * r2) / d, (m11 * r2 - m12 * r1) / d)

    return field_of(
        "two links",
        Product(angles=Rn(2, units="rad"), rates=Rn(2, units="rad/s")),
        f,
        [Input("shoulder", "N m", -20, 20), Input("elbow", "N m", -8, 8)],
        [("load", "kg", 0.0)],
    )


def arm_loop(load: float, noise: float) -> Loop:
    """Jumps of the goal, speeds with hard limits."""
    goals = np.array([[0.5, 0.5], [2.5, -1.5], [-0.5, 1.5], [1.5, 0.0]])
    mpc = MPC(
        two_link(),
        25,
        0.04,
        Q={"angles": 20, "rates": 0.5},
        R=0.002,
        terminal={"angles": 200, "rates": 10},
        bounds=[Bound("rates", -1.5, 1.5)],
    )
    return Loop(
        mpc,
        [-1.57, 0, 0, 0],
        400,
        lambda t: np.r_[goals[int(t / 4) % 4], 0, 0],
        p={"load": load},
        noise=[noise / 5, noise / 5, noise, noise],
    )


def two_link_jumps() -> Loop:
    """The model is exact."""
    return arm_loop(0.0, 0.0)


def two_link_loaded() -> Loop:
    """It carries 0.3 kg that nobody told, and rates are noisy."""
    return arm_loop(0.3, 0.01)


def reactor() -> System:
    """Stirred tank with an exothermic reaction; volume, feed and heat are scaled to 1."""

    def f(x: Any, u: Any, p: Any) -> Any:
        c, temperature = x[0], x[1]
        rate = p[0] * c * ca.exp(-8750 / temperature + 8750 / 350)
        return ca.vertcat(
            1 - c - rate, 350 - temperature + 209.2 * rate + 2.09 * (u[0] - temperature)
        )

    return field_of(
        "reactor",
        Product(concentration=Rn(1), temperature=Rn(1, units="K")),
        f,
        [Input("coolant", "K", 280, 370, nominal=350)],
        [("activity", "1/min", 1.0)],
    )


def reactor_profit() -> Loop:
    """Earns most at the limit of its temperature, which is hard; 1 % noise."""
    mpc = MPC(
        reactor(),
        30,
        0.05,
        Q=0.0,
        R=1e-4,
        terminal=0.0,
        costs=[Cost(lambda t, x, u, p: 5 * x[0], name="unused")],
        bounds=[Bound("temperature", 280, 360)],
        reference=[0.5, 350.0],
    )
    return Loop(mpc, [0.8, 330.0], 400, None, p={"activity": 1.1}, noise=[0.005, 0.5])


def reactor_late() -> Loop:
    """Follows a temperature below its limit; a delay that is known, an activity that is not."""
    mpc = MPC(
        reactor(),
        30,
        0.05,
        Q={"concentration": 0, "temperature": 1},
        R=0.01,
        delay=0.1,
        bounds=[Bound("temperature", 280, 361)],
    )
    plant = mpc.system
    goals = [plant.trim(where={"temperature": [T]}, guess=[0.5, T]).x for T in (350.0, 359.0)]
    return Loop(
        mpc,
        [0.8, 330.0],
        300,
        lambda t: goals[int(t / 3) % 2],
        p={"activity": 1.08},
        noise=[0.002, 0.2],
    )


def satellite_wheel() -> Loop:
    """Slews with four wheels, of which one dies; rates have hard limits."""
    axes = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    craft = satellite(wheels=True, wheel_axes=axes.tolist())
    other = satellite(wheels=True, wheel_axes=axes.tolist(), inertia=(1000.0, 760.0, 640.0))
    mpc = MPC(
        craft,
        30,
        5.0,
        Q={"pose": 1.0, "twist": 20.0, "wheel_speed": 0.0},
        R=0.2,
        terminal={"pose": 100.0, "twist": 3e4, "wheel_speed": 0.0},
        bounds=[Bound("twist", -0.012, 0.012)],
    )
    return Loop(
        mpc,
        np.r_[SO3.exp([1.5, -1.2, 0.8]), np.zeros(7)],
        200,
        craft.state.identity,
        plant=other,
        dead={2: 60.0},
        noise=np.r_[np.full(3, 1e-3), np.full(3, 1e-5), np.zeros(4)],
    )


def satellite_sun() -> Loop:
    """An axis keeps off the sun, which is hard; inertia and attitude are not as known."""
    craft, other = satellite(), satellite(inertia=(800.0, 900.0, 650.0))
    goal = np.r_[SO3.exp([0.0, 1.8, 0.0]), np.zeros(3)]
    sun = SO3.act(SO3.exp([0.05, 0.9, 0.0]), [0.0, 0.0, 1.0])
    mpc = MPC(
        craft,
        40,
        5.0,
        Q={"pose": 1.0, "twist": 20.0},
        R=0.2,
        terminal={"pose": 100.0, "twist": 3e4},
        bounds=[
            Cone(sun, np.radians(25)).outside(
                lambda t, x, u, p: SO3.act(x[:4], [0.0, 0.0, 1.0]), name="sun"
            )
        ],
    )
    return Loop(
        mpc,
        craft.state.identity,
        150,
        goal,
        plant=other,
        noise=np.r_[np.full(3, 1e-3), np.full(3, 1e-5)],
    )


def car_obstacle() -> Loop:
    """A car at 12 m/s meets an obstacle that appears 40 m ahead."""

    def f(x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(x[4], 0, x[4] * ca.tan(x[5]) / p[0], u[0], u[1])

    plant = field_of(
        "car",
        Product(pose=SE2, speed=Rn(1), steering=Rn(1)),
        f,
        [Input("acceleration", "m/s²", -4, 2), Input("steering_rate", "rad/s", -0.6, 0.6)],
        [("wheelbase", "m", 2.7)],
    )
    place = lambda t, p: p[1:3]  # noqa: E731
    mpc = MPC(
        plant,
        40,
        0.1,
        Q={"pose": [0.05, 1.0, 5.0], "speed": 1.0, "steering": 1.0},
        R={"acceleration": 0.2, "steering_rate": 2.0},
        bounds=[
            Bound("steering", -0.5, 0.5),
            Bound("pose.y", -1.5, 5.0),
            Bound(lambda t, x, u, p: x[4] ** 2 * ca.tan(x[5]) / 2.7, -4, 4, name="lateral"),
            keep_out(lambda t, x, u, p: x[:2], Sphere(place, 1.0), radius=1.2, name="obstacle"),
        ],
        parameters=[Parameter("place.x", "m", FAR), Parameter("place.y", "m", FAR)],
    )
    return Loop(
        mpc,
        [0, 0, 1, 0, 12.0, 0.0],
        100,
        lambda t: np.r_[12 * t, 0, 1, 0, 12.0, 0.0],
        p={"wheelbase": 2.9},
        noise=[0.02, 0.02, 0.003, 0.05, 0.003],
        told=lambda t: {"place.x": 64.0, "place.y": -0.4} if t > 2 else {},
    )


def quadrotor_heavy() -> Loop:
    """A fifth heavier than modelled, in gusts; speeds, tilt and a floor are hard."""
    quad, other = quadrotor(), quadrotor(mass=1.2)
    goals = [quad.trim(position=place) for place in ([2, 1, 1.0], [-1, 2, 0.3], [0, 0, 1.5])]
    mpc = MPC(
        quad,
        25,
        0.05,
        Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        R=0.1,
        terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
        bounds=[Bound("twist.vx", -1.5, 1.5), Bound("twist.vy", -1.5, 1.5), Bound("pose.z", 0.0)],
    )
    return Loop(
        mpc,
        goals[2].x,
        240,
        lambda t: goals[int(t / 4) % 3],
        plant=other,
        pushes={f"force.{axis}": 0.3 for axis in "xyz"},
        noise=np.r_[np.full(6, 0.002), np.full(6, 0.005)],
    )


def vessel_current() -> Loop:
    """In a current that is estimated; a quay is hard, and a buoy appears."""
    vessel = surface_vessel(current=(0, 0, 0))
    mpc = MPC(
        vessel,
        30,
        0.5,
        Q={"pose": [1, 1, 2], "twist": [5, 5, 5]},
        R=0.1,
        terminal={"pose": [20, 20, 20], "twist": [50, 50, 50]},
        bounds=[
            Bound("twist.vx", -0.3, 0.3),
            keep_out(
                lambda t, x, u, p: x[:2],
                HalfSpace([0.0, 0.3], [0.0, -1.0]),
                radius=0.2,
                name="quay",
            ),
            keep_out(
                lambda t, x, u, p: x[:2], Sphere(lambda t, p: p[-2:], 0.3), radius=0.3, name="buoy"
            ),
        ],
        parameters=[Parameter("buoy.x", "m", FAR), Parameter("buoy.y", "m", FAR)],
        disturbance=("current.x", "current.y"),
    )
    return Loop(
        mpc,
        np.r_[-1.0, -4.0, SO2.exp([1.0]), np.zeros(3)],
        160,
        np.r_[0, 0, 1, 0, 0, 0, 0.0],
        steady={"current.x": 0.08, "current.y": 0.05},
        noise=[0.01, 0.01, 0.005, 0.005, 0.005, 0.003],
        told=lambda t: {"buoy.x": -0.3, "buoy.y": -2.0} if t > 4 else {},
    )


def panda_loaded() -> Loop:
    """Goals jump, rates have hard limits, and they are noisy."""
    arm = panda(losses=False)
    ready = arm.home
    goals = [
        np.r_[ready[:7] + d, np.zeros(7)]
        for d in ([0.5, 0.4, -0.4, 0.5, 0.3, 0.4, -0.6], [-0.7, 0.3, -0.3, 0.2, -0.5, 0.6, 0.8])
    ]
    mpc = MPC(
        arm,
        20,
        0.03,
        Q={"configuration": 50, "velocity": 1},
        R=1e-3,
        terminal={"configuration": 500, "velocity": 10},
        bounds=[Bound("limits", soft=100), Bound("velocity", -1.0, 1.0)],
    )
    return Loop(
        mpc,
        ready,
        200,
        lambda t: goals[int(t / 3) % 2],
        noise=np.r_[np.full(7, 1e-4), np.full(7, 0.003)],
    )


def scara_wall() -> Loop:
    """Goals jump, rates have hard limits, and they are noisy."""
    arm = scara()
    goals = [[0.8, 0.9, -0.05, 0.5], [-0.9, -0.6, -0.1, -1.0]]
    mpc = MPC(
        arm,
        25,
        0.02,
        Q={"configuration": 50, "velocity": 0.5},
        R=1e-3,
        terminal={"configuration": 500, "velocity": 5},
        bounds=[Bound("limits", soft=100), Bound("velocity", -1.5, 1.5)],
    )
    return Loop(
        mpc,
        arm.home,
        250,
        lambda t: np.r_[goals[int(t / 2) % 2], np.zeros(4)],
        noise=np.r_[np.full(4, 1e-4), np.full(4, 0.003)],
    )


def underwater_rock() -> Loop:
    """A current that is not known, and a rock that appears."""
    auv = underwater_vehicle()
    mpc = MPC(
        auv,
        20,
        0.25,
        Q={"pose": [20, 20, 20, 10, 10, 10], "twist": [5, 5, 5, 10, 10, 10]},
        R=0.01,
        bounds=[
            Bound("twist.vx", -0.6, 0.6),
            keep_out(
                lambda t, x, u, p: x[:3], Sphere(lambda t, p: p[-3:], 0.5), radius=0.4, name="rock"
            ),
        ],
        parameters=[Parameter(f"rock.{a}", "m", FAR) for a in "xyz"],
    )
    start = auv.state.identity
    goal = np.array(start)
    goal[0] = 4.0
    return Loop(
        mpc,
        start,
        150,
        goal,
        steady={"current.y": 0.08, "current.z": 0.03},
        noise=np.r_[np.full(6, 0.003), np.full(6, 0.003)],
        told=lambda t: {"rock.x": 2.2, "rock.y": 0.2, "rock.z": 0.1} if t > 1.5 else {},
    )


def cart_pole() -> System:
    """Cart with a pole, its angle from hanging."""

    def f(x: Any, u: Any, p: Any) -> Any:
        angle, v, w = ca.atan2(x[2], x[1]), x[3], x[4]
        s, c = ca.sin(angle), ca.cos(angle)
        m, M, length = p[0], 1.0, 0.5
        a = (u[0] + m * s * (length * w**2 + G * c)) / (M + m * s**2)
        return ca.vertcat(v, w, a, -(a * c + G * s) / length)

    return field_of(
        "cart-pole",
        Product(cart=Rn(1), pole=SO2, speed=Rn(1), rate=Rn(1)),
        f,
        [Input("force", "N", -15, 15)],
        [("mass", "kg", 0.2)],
    )


def cart_pole_track() -> Loop:
    """Swings up on a track with hard ends; the plant is a call late, its pole heavier."""
    mpc = MPC(
        cart_pole(),
        40,
        0.04,
        Q={"cart": 1, "pole": 5, "speed": 0.1, "rate": 0.1},
        R=0.01,
        terminal={"cart": 20, "pole": 100, "speed": 2, "rate": 5},
        bounds=[Bound("cart", -0.8, 0.8), Bound("speed", -3, 3)],
    )
    return Loop(
        mpc,
        [0, 1, 0, 0, 0],
        200,
        [0.3, -1, 0, 0, 0],
        p={"mass": 0.25},
        late=1,
        noise=[0.001, 0.002, 0.005, 0.01],
    )


def pendulum_slow() -> Loop:
    """Swings up with little torque, below a hard rate."""
    plant = field_of(
        "pendulum",
        Product(angle=SO2, rate=Rn(1)),
        lambda x, u, p: ca.vertcat(x[2], u - p[0] * x[1]),
        [Input("torque", "N m", -0.5, 0.5)],
        [("weight", "N m", 1.0)],
    )
    mpc = MPC(
        plant, 50, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.05, bounds=[Bound("rate", -1.2, 1.2)]
    )
    return Loop(mpc, [0, -1, 0], 300, [0, 1, 0], p={"weight": 1.06}, noise=[0.003, 0.01])


def tanks_pump() -> Loop:
    """Four tanks with hard levels; a pump dies."""

    def f(x: Any, u: Any, p: Any) -> Any:
        h = ca.fmax(x, 1e-3)
        out = ca.sqrt(h + 0.01)
        return ca.vertcat(
            -out[0] + out[2] + 0.7 * p[0] * u[0],
            -out[1] + out[3] + 0.6 * p[0] * u[1],
            -out[2] + 0.4 * p[0] * u[1],
            -out[3] + 0.3 * p[0] * u[0],
        )

    plant = field_of(
        "four tanks",
        Rn(4),
        f,
        [Input("left", "1", 0, 3), Input("right", "1", 0, 3)],
        [("pump", "1", 1.0)],
    )
    goals = [np.array(steady_tanks(u)) for u in ([1.0, 1.0], [1.35, 1.1])]
    mpc = MPC(
        plant,
        25,
        0.2,
        Q=[5, 5, 0.1, 0.1],
        R=0.05,
        bounds=[Bound(lambda t, x, u, p: x, 0.05, 2.45, name="levels")],
    )
    return Loop(
        mpc,
        goals[0],
        300,
        lambda t: goals[int(t / 15) % 2],
        p={"pump": 0.93},
        dead={1: 40.0},
        noise=0.01,
    )


def steady_tanks(u: Any) -> Any:
    """Levels at rest."""
    c, d = 0.4 * u[1], 0.3 * u[0]
    return [(c + 0.7 * u[0]) ** 2 - 0.01, (d + 0.6 * u[1]) ** 2 - 0.01, c**2 - 0.01, d**2 - 0.01]


def rover_walls() -> Loop:
    """Through a gate with hard posts, one of which appears; its wheels are smaller than known."""
    plant = rover()
    posts = [Sphere([1.5, 0.7], 0.2), Sphere(lambda t, p: p[-2:], 0.2)]
    mpc = MPC(
        plant,
        40,
        0.1,
        Q={"pose": [2, 2, 0.5], "twist": 0.2},
        R=0.001,
        terminal={"pose": [40, 40, 10], "twist": 5},
        bounds=[
            Bound("twist", [-0.8, -1.5], [0.8, 1.5]),
            *(
                keep_out(lambda t, x, u, p: x[:2], post, radius=0.3, name=f"post{k}")
                for k, post in enumerate(posts)
            ),
        ],
        parameters=[Parameter("post.x", "m", FAR), Parameter("post.y", "m", FAR)],
    )
    return Loop(
        mpc,
        np.r_[0, 0, 1, 0, 0, 0],
        120,
        np.r_[3.0, 0.5, 1, 0, 0, 0],
        plant=rover(payload=6.0),
        noise=[0.005, 0.005, 0.003, 0.01, 0.01],
        told=lambda t: {"post.x": 1.6, "post.y": -0.5} if t > 1 else {},
    )


def planar_rates() -> Loop:
    """A planar quadrotor whose rotors have rates; a ceiling and speeds are hard, gusts blow."""

    def f(x: Any, u: Any, p: Any) -> Any:
        turn = x[2]
        push = (u[0] + u[1]) / p[0]
        return ca.vertcat(
            x[3:6], -push * ca.sin(turn) + u[2], push * ca.cos(turn) - G, 15 * (u[1] - u[0])
        )

    plant = field_of(
        "planar quadrotor",
        Product(place=Rn(2), turn=Rn(1), speed=Rn(2), rate=Rn(1)),
        f,
        [
            Input("left", "N", 0, 9),
            Input("right", "N", 0, 9),
            Input("wind", "m/s²", role="disturbance"),
        ],
        [("mass", "kg", 1.0)],
    )
    goals = [[0.0, 1.0], [2.0, 1.9], [-1.0, 0.2]]
    mpc = MPC(
        plant,
        30,
        0.05,
        Q={"place": 10, "turn": 1, "speed": 1, "rate": 0.1},
        R=0.01,
        terminal={"place": 100, "turn": 10, "speed": 20, "rate": 1},
        rates=Rates(weight=0.001, limit=60.0),
        bounds=[
            Bound(lambda t, x, u, p: x[1], -0.1, 2.0, name="height"),
            Bound("speed", -1.8, 1.8),
        ],
    )
    return Loop(
        mpc,
        np.zeros(6),
        240,
        lambda t: np.r_[goals[int(t / 3) % 3], np.zeros(4)],
        p={"mass": 1.05},
        pushes={"wind": 0.5},
        noise=[0.002, 0.002, 0.002, 0.01, 0.01, 0.01],
    )


def masses_late() -> Loop:
    """Two masses on a spring with a hard speed; the plant is two calls late."""
    plant = field_of(
        "two masses",
        Product(places=Rn(2), speeds=Rn(2)),
        lambda x, u, p: ca.vertcat(
            x[2:4], u - p[0] * (x[0] - x[1]) - 0.1 * x[2], p[0] * (x[0] - x[1]) - 0.1 * x[3]
        ),
        [Input("force", "N", -1, 1)],
        [("spring", "N/m", 3.0)],
    )
    mpc = MPC(
        plant,
        40,
        0.1,
        Q={"places": [0, 5], "speeds": 0.5},
        R=0.1,
        bounds=[Bound("speeds", -0.6, 0.6)],
    )
    return Loop(
        mpc,
        np.zeros(4),
        300,
        lambda t: np.r_[[1.0, 1.0] if int(t / 8) % 2 else [-1, -1.0], 0, 0],
        p={"spring": 2.7},
        late=2,
        noise=0.003,
    )


def crane_sway() -> Loop:
    """A load below a trolley, whose sway has hard limits; the rope is longer than known."""

    def f(x: Any, u: Any, p: Any) -> Any:
        s, c = ca.sin(x[1]), ca.cos(x[1])
        return ca.vertcat(x[2], x[3], u[0], -(u[0] * c + G * s + 0.05 * x[3]) / p[0])

    plant = field_of(
        "crane",
        Product(trolley=Rn(1), sway=Rn(1), speed=Rn(1), rate=Rn(1)),
        f,
        [Input("acceleration", "m/s²", -1.5, 1.5)],
        [("rope", "m", 4.0)],
    )
    mpc = MPC(
        plant,
        40,
        0.15,
        Q={"trolley": 1, "sway": 5, "speed": 0.5, "rate": 1},
        R=0.05,
        terminal={"trolley": 20, "sway": 50, "speed": 20, "rate": 20},
        bounds=[Bound("sway", -0.1, 0.1), Bound("speed", -1.2, 1.2)],
    )
    return Loop(
        mpc,
        np.zeros(4),
        200,
        lambda t: [6.0 if int(t / 10) % 2 == 0 else 1.0, 0, 0, 0],
        p={"rope": 4.6},
        noise=[0.005, 0.001, 0.005, 0.002],
    )


def lander_cone() -> Loop:
    """A lander in a plane under a hard cone about the vertical; it is heavier than known."""

    def f(x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(x[2:4], u[0] / p[0], u[1] / p[0] - 1.62)

    plant = field_of(
        "lander",
        Product(place=Rn(2), speed=Rn(2)),
        f,
        [Input("side", "N", -2, 2), Input("up", "N", 0.3, 5, nominal=1.62)],
        [("mass", "kg", 1.0)],
    )
    mpc = MPC(
        plant,
        40,
        0.5,
        Q={"place": 0.02, "speed": 0.1},
        R=0.05,
        terminal={"place": 5, "speed": 20},
        bounds=[
            Bound(lambda t, x, u, p: 2 * (x[1] + 1) - x[0], 0, name="right side"),
            Bound(lambda t, x, u, p: 2 * (x[1] + 1) + x[0], 0, name="left side"),
            Bound(lambda t, x, u, p: x[3], -8, name="descent"),
        ],
    )
    return Loop(
        mpc, [80, 100, -3, -5], 80, [0, 0, 0, 0], p={"mass": 1.06}, noise=[0.05, 0.05, 0.02, 0.02]
    )


def house() -> Loop:
    """Heat costs by the hour, the room's temperature has hard limits, the weather is not known."""

    def f(t: Any, x: Any, u: Any, p: Any) -> Any:
        outside = 5 + 5 * ca.sin(2 * ca.pi * (t - 8) / 24) + u[1]
        return ca.vertcat(
            2.0 * (x[1] - x[0]) + p[0] * (outside - x[0]) + 3 * u[0], 0.2 * (x[0] - x[1])
        )

    plant = System(
        "house",
        Rn(2),
        f,
        inputs=[Input("heat", "kW", 0, 5), Input("weather", "K", role="disturbance")],
        parameters=[Parameter("loss", "1/h", 0.5)],
    )
    price = lambda t: 1 + 0.8 * ca.sin(2 * ca.pi * (t - 11) / 24)  # noqa: E731
    mpc = MPC(
        plant,
        48,
        0.5,
        Q=0.0,
        R=0.01,
        terminal=0.0,
        costs=[Cost(lambda t, x, u, p: price(t) * u[0])],
        bounds=[Bound(lambda t, x, u, p: x[0], 19.0, 24.0, name="room")],
        reference=[20.0, 20.0],
    )
    return Loop(
        mpc, [21.0, 20.5], 200, None, p={"loss": 0.55}, pushes={"weather": 1.0}, noise=[0.05, 0.05]
    )


def lane_friction() -> Loop:
    """A single track with tyres at 20 m/s changes lanes; its slip angle has hard limits."""

    def f(x: Any, u: Any, p: Any) -> Any:
        y, turn, side, rate, steer = ca.vertsplit(x)
        speed, m, iz, a, b = 20.0, 1500.0, 2500.0, 1.2, 1.6
        front = p[0] * ca.tanh(10 * (steer - (side + a * rate) / speed)) / 10
        rear = -p[0] * ca.tanh(10 * (side - b * rate) / speed) / 10
        return ca.vertcat(
            speed * ca.sin(turn) + side * ca.cos(turn),
            rate,
            (front + rear) / m - speed * rate,
            (a * front - b * rear) / iz,
            u[0],
        )

    plant = field_of(
        "single track",
        Product(offset=Rn(1), turn=Rn(1), side=Rn(1), rate=Rn(1), steer=Rn(1)),
        f,
        [Input("steering_rate", "rad/s", -0.8, 0.8)],
        [("stiffness", "N/rad", 8e4)],
    )
    mpc = MPC(
        plant,
        40,
        0.05,
        Q={"offset": 1, "turn": 5, "side": 0.1, "rate": 0.5, "steer": 1},
        R=0.5,
        bounds=[
            Bound("offset", -0.5, 4.0),
            Bound("rate", -0.35, 0.35),
            Bound("steer", -0.3, 0.3),
        ],
    )
    return Loop(
        mpc,
        np.zeros(5),
        240,
        lambda t: [3.5 if int(t / 3) % 2 else 0.0, 0, 0, 0, 0],
        p={"stiffness": 7e4},
        noise=[0.01, 0.002, 0.01, 0.005, 0.001],
    )


LOOPS: dict[str, Callable[[], Loop]] = {
    make.__name__: make
    for make in (
        two_link_jumps,
        two_link_loaded,
        reactor_profit,
        reactor_late,
        satellite_wheel,
        satellite_sun,
        car_obstacle,
        quadrotor_heavy,
        vessel_current,
        panda_loaded,
        scara_wall,
        underwater_rock,
        cart_pole_track,
        pendulum_slow,
        tanks_pump,
        rover_walls,
        planar_rates,
        masses_late,
        crane_sway,
        lander_cone,
        house,
        lane_friction,
    )
}


def plain(mpc: MPC, t: float, reference: Any) -> str:
    """What a plain solve from the state of the last call, and from a new guess, ends with."""
    loop = mpc._loop
    assert loop.plan.found is not None
    goal = mpc.reference if reference is None else reference
    aim = mpc._parts.aim(loop, goal, t + mpc.delay, mpc._own)[1]
    found = InteriorPointSolver(mpc.problem).solve(
        loop.plan.found.x[0], reference=aim, t0=t + mpc.delay, p=mpc._p
    )
    return str(found.status)


def run(loop: Loop, calls: int | None = None, seed: int = 0) -> dict[str, Any]:
    """A closed loop, call by call."""
    mpc, rng = loop.mpc, np.random.default_rng(seed)
    model, plant = mpc.system, loop.plant or loop.mpc.system
    p = named(plant, loop.p)
    advance = plant.step("rk4", 10)
    controls = plant.input_index("control")
    low, high = (side[model.input_index("control")] for side in model.input_bounds)
    x = np.asarray(loop.x0, dtype=float)
    sent = [np.clip(model.nominal_input[model.input_index("control")], low, high)] * loop.late
    told: list[dict[str, Any]] = []
    statuses: Counter[str] = Counter()
    most, outside, finite = 0, 0.0, True
    defects: list[float] = []
    for k in range(loop.calls if calls is None else calls):
        t = k * mpc.dt
        goal: Any = loop.reference(t) if callable(loop.reference) else loop.reference
        goal = np.array(goal) if isinstance(goal, list) else goal
        seen = np.asarray(model.retract(x, loop.noise * rng.normal(size=model.state.dim), mpc._own))
        if loop.told is not None:
            mpc.parameters = loop.told(t)
        if not k:
            mpc.prepare(t, seen, goal)
        u = mpc(t, seen, goal)
        status = str(mpc.info.status)
        statuses[status] += 1
        most = max(most, mpc.info.iterations) if k else 0
        defects += [mpc.info.defect] if status == "ok" else []
        if status in ("infeasible", "unsolved"):
            entry = {"call": k, "status": status, "said": mpc.info.message}
            told.append(entry | {"solve": str(mpc.info.solve), "plain": plain(mpc, t, goal)})
        finite = finite and bool(np.isfinite(u).all())
        outside = max(outside, float(np.max([low - u, u - high])))
        sent.append(u)
        whole = plant.nominal_input.copy()
        whole[controls] = sent.pop(0)
        for i, since in loop.dead.items():
            if t >= since:
                whole[controls[i]] = 0.0
        for name, size in loop.pushes.items():
            whole[plant.input_names.index(name)] += size * rng.normal()
        for name, value in loop.steady.items():
            whole[plant.input_names.index(name)] += value
        x = np.asarray(advance(t, x, whole, p, mpc.dt)).ravel()
    count = sum(statuses.values())
    return {
        "calls": count,
        **statuses,
        "infeasible, plain solve finds a plan": sum(
            one["status"] == "infeasible" and one["plain"] == "converged" for one in told
        ),
        "unsolved, plain solve finds a plan": sum(
            one["status"] == "unsolved" and one["plain"] == "converged" for one in told
        ),
        "unsolved [%]": 100 * statuses["unsolved"] / count,
        "inputs finite": finite,
        "inputs beyond limits": max(outside, 0.0),
        "most iterations of a later call": most,
        "ok, with a defect above 0.1": int((np.array(defects) > 0.1).sum()),
        "largest defect of an ok call": max(defects, default=0.0),
        "failed": told,
        "end": x.round(4).tolist(),
    }


def named(plant: System, values: Mapping[str, float]) -> np.ndarray:
    """Parameters of a plant."""
    p = np.array(plant.nominal_parameters)
    for name, value in values.items():
        p[[one.name for one in plant.parameters].index(name)] = value
    return p


def main(loops: Mapping[str, Callable[[], Loop]] = LOOPS, results: Path = RESULTS) -> None:
    """Run, print a table, keep it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=results)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out.exists() and options.names else {}
    for name, make in loops.items():
        if options.names and name not in options.names:
            continue
        found = kept[name] = run(make(), seed=options.seed)
        pairs = Counter((one["status"], one["plain"]) for one in found["failed"])
        print(
            f"{name:18} {found['calls']} calls, infeasible {found.get('infeasible', 0)}, unsolved "
            f"{found['unsolved [%]']:.2f} %, held {found.get('held', 0)}; plain finds "
            f"{found['infeasible, plain solve finds a plan']}, "
            f"{found['unsolved, plain solve finds a plan']}; most "
            f"{found['most iterations of a later call']}, "
            f"{'finite' if found['inputs finite'] else 'NOT FINITE'}, "
            f"{found['inputs beyond limits']:.1g} beyond limits; {dict(pairs)}",
            flush=True,
        )
    options.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
